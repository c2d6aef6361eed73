"""SAOLA beside its plain version, one column and one pair at a time with NumPy.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_saola.py

Both decide about the same columns, in one process, in turn; medians over the rounds. There is no other version for
Python to compare with.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tamis import SAOLA
from tests.twins.saola import saola


def columns(seed: int, n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of which every tenth depends on the class, in ten groups of copies with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    causes = rng.normal(size=(n_rows, 10))
    y = (causes.sum(axis=1) + rng.normal(size=n_rows) > 0).astype(np.int64)
    X[:, ::10] = causes[:, np.arange(X[:, ::10].shape[1]) % 10] + 0.7 * X[:, ::10]
    return X, y


def compare(
    ours: Any, plain: Callable[..., list[int]], n_columns: int, rounds: int, n_rows: int = 200
) -> None:
    """Print how long a selector and its plain version take for the same columns."""
    fast, slow = [], []
    ours.fit(*columns(0, n_rows, 50))  # compile
    for seed in range(rounds):
        X, y = columns(seed, n_rows, n_columns)
        start = time.perf_counter()
        selected = ours.fit(X, y).selected_
        middle = time.perf_counter()
        expected = plain(X, y)
        fast.append(middle - start)
        slow.append(time.perf_counter() - middle)
        assert selected == [f"x{j}" for j in expected]
    mine, theirs = statistics.median(fast), statistics.median(slow)
    print(f"{type(ours).__name__}, {n_rows} rows, {n_columns} columns, {len(selected)} selected:",
          f"{1e6 * mine / n_columns:.2f} us a column, plain {1e6 * theirs / n_columns:.0f} us,",
          f"{theirs / mine:.0f} times")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    compare(SAOLA(), saola, 2000, args.rounds)
    X, y = columns(1, 200, 200_000)
    start = time.perf_counter()
    SAOLA().fit(X, y)
    print(f"200,000 columns of 200 rows: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
