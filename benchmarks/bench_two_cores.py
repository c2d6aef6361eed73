"""What a second core would do for a screen: halves of the columns on two threads, beside all columns on one.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_two_cores.py

Each half has its own moments and its own contiguous rows, so this is the most that threads over columns could gain. In
turn, wall time; the quickest round of each counts, as others may use the machine. The last column is a thread that does
nothing.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis.summaries.class_moments import ClassMoments


def microseconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return 1e6 * (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=400)
    given = parser.parse_args()
    rng, half = np.random.default_rng(0), given.columns // 2
    print(
        f"{given.columns} columns, microseconds a batch\n{'rows':>6}{'one':>8}{'two':>8}{'ratio':>7}{'nothing':>9}"
    )
    with ThreadPoolExecutor(1) as pool:
        for n_rows in (100, 1000):
            X, y = rng.standard_normal((n_rows, 2 * half)), rng.integers(0, 2, n_rows)
            left, right = np.ascontiguousarray(X[:, :half]), np.ascontiguousarray(X[:, half:])
            whole, first, second = ClassMoments(2 * half, 2), ClassMoments(half, 2), ClassMoments(half, 2)

            def one(whole: ClassMoments = whole, X: np.ndarray = X, y: np.ndarray = y) -> None:
                whole.update(X, y)

            def two(
                first: ClassMoments = first, second: ClassMoments = second, y: np.ndarray = y,
                left: np.ndarray = left, right: np.ndarray = right,
            ) -> None:  # fmt: skip
                other = pool.submit(second.update, right, y)
                first.update(left, y)
                other.result()

            def nothing() -> None:
                pool.submit(int).result()

            spent = [[microseconds(call) for call in (one, two, nothing)] for _ in range(given.rounds)]
            best = np.min(spent, axis=0)
            assert np.array_equal(whole.mean(), np.hstack([first.mean(), second.mean()]))
            print(
                f"{n_rows:>6}{best[0]:8.0f}{best[1]:8.0f}{best[0] / best[1]:7.2f}{best[2]:9.0f}", flush=True
            )


if __name__ == "__main__":
    main()
