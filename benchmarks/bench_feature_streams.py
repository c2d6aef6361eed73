"""Features made and tested, beside plain loops that make each product.

    pip install pandas
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_feature_streams.py

All pairs of columns are made and tested by alpha-investing, in one process, in turn; processor time, medians over the
rounds. The loops make the same products one by one, with NumPy and with pandas, and offer each to the same selector; a
second NumPy loop only makes them. Then a million candidates with the memory that they take.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from tamis import AlphaInvesting
from tamis.columns.generators import Interactions, explore


def selector() -> AlphaInvesting:
    return AlphaInvesting(target_fdr=0.05, trace="selected")


def by_generator(X: np.ndarray, y: np.ndarray) -> list[str]:
    return explore(selector(), Interactions(X, of="originals"), y).selector.selected_


def by_numpy(X: np.ndarray, y: np.ndarray) -> list[str]:
    found = selector().start(y)
    for j in range(X.shape[1]):
        for k in range(j, X.shape[1]):
            found.offer(X[:, j] * X[:, k], f"x{j}*x{k}" if j < k else f"x{j}^2")
    return found.selected_


def by_pandas(X: np.ndarray, y: np.ndarray) -> list[str]:
    found, frame = selector().start(y), pd.DataFrame(X).add_prefix("x")
    for j, a in enumerate(frame.columns):
        for b in frame.columns[j:]:
            found.offer(frame[a] * frame[b], f"{a}*{b}" if a != b else f"{a}^2")
    return found.selected_


def only_made(X: np.ndarray, y: np.ndarray) -> None:
    for j in range(X.shape[1]):
        for k in range(j, X.shape[1]):
            X[:, j] * X[:, k]


def data(seed: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, 3] * X[:, p // 2] + X[:, 5] ** 2 + 0.5 * rng.normal(size=n)


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = work(*arguments)
    return time.process_time() - start, result


def pairs(n: int, p: int, rounds: int) -> None:
    ways = {
        "generator": by_generator,
        "NumPy loop": by_numpy,
        "pandas loop": by_pandas,
        "NumPy, made only": only_made,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for seed in range(rounds):
        X, y = data(seed, n, p)
        results = {name: timed(way, X, y) for name, way in ways.items()}
        for name, (taken, _) in results.items():
            seconds[name].append(taken)
        assert results["generator"][1] == results["NumPy loop"][1] == results["pandas loop"][1]
    count = p * (p + 1) // 2
    ours = statistics.median(seconds["generator"])
    for name, found in seconds.items():
        taken = statistics.median(found)
        print(f"{n} rows, {count} products, {name}: {1e6 * taken / count:.2f} us each,",
              f"{count / taken:,.0f} a second, {taken / ours:.1f} times ours")  # fmt: skip


def million() -> None:
    X, y = data(0, 100, 1414)
    taken, found = timed(by_generator, X, y)
    tracemalloc.start()
    by_generator(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"100 rows, 1,000,405 products: {taken:.2f} s, selected {found}; at most {peak / 1e6:.0f} MB at once,"
          " all of them would be 800 MB")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    by_generator(*data(0, 50, 20))
    pairs(100, 150, args.rounds)
    pairs(1000, 150, args.rounds)
    million()


if __name__ == "__main__":
    main()
