"""Grafting beside its plain version and beside scikit-learn's lasso fitted again to the columns so far.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_grafting.py

All decide about the same columns, in one process, in turn; medians over the rounds. The lasso is fitted whenever a
column would enter, as grafting does; it begins from zero each time. There is no other version for Python.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.linear_model import Lasso

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tamis import Grafting
from tests.twins.grafting import graft


def columns(seed: int, n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    weights = np.zeros(n_columns)
    weights[rng.choice(n_columns, 20, replace=False)] = rng.choice([-1.0, 1.0], 20)
    return X, X @ weights + 2 * rng.normal(size=n_rows)


def with_lasso(X: np.ndarray, y: np.ndarray, cost: float) -> list[int]:
    y = (y - y.mean()) / y.std()
    kept: list[int] = []
    residual = y
    for j in range(X.shape[1]):
        z = (X[:, j] - X[:, j].mean()) / X[:, j].std()
        if abs(z @ residual) / len(y) <= cost * (1 + 1e-5):
            continue
        kept.append(j)
        Z = X[:, kept]
        Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
        fitted = Lasso(alpha=cost, tol=1e-7, max_iter=100_000).fit(Z, y)
        kept = [k for k, w in zip(kept, fitted.coef_, strict=True) if w != 0]
        residual = y - fitted.predict(Z)
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    Grafting(0.1).fit(*columns(0, 500, 50))  # compile
    times: list[tuple[float, float, float]] = []
    for seed in range(args.rounds):
        X, y = columns(seed, 500, 2000)
        marks = [time.perf_counter()]
        selector = Grafting(alpha=0.01).fit(X, y)
        marks.append(time.perf_counter())
        lasso = with_lasso(X, y, selector.threshold_)
        marks.append(time.perf_counter())
        plain, _ = graft(X, y, selector.threshold_, False)
        marks.append(time.perf_counter())
        assert selector.selected_ == [f"x{j}" for j in plain] == [f"x{j}" for j in lasso]
        times.append(tuple(np.diff(marks).tolist()))
    ours, theirs, slow = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"500 rows, 2,000 columns, {len(plain)} selected: {1e3 * ours:.0f} ms,",
          f"with scikit-learn's lasso {1e3 * theirs:.0f} ms ({theirs / ours:.1f} times),",
          f"plain {1e3 * slow:.0f} ms ({slow / ours:.1f} times)")  # fmt: skip
    X, y = columns(9, 500, 20_000)
    start = time.perf_counter()
    selected = Grafting(alpha=1e-4).fit(X, y).selected_
    print(f"20,000 columns of 500 rows, {len(selected)} selected: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
