"""Class-conditional moments of a batch beside copying it, over densities, numbers of rows and two threads.

OMP_NUM_THREADS=1 python benchmarks/bench_moments.py
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

from tamis.summaries.class_moments import ClassMoments


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def cpu_seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def against_copy() -> None:
    print("rows x features, microseconds of CPU: moments, copy, ratio")
    for dtype in (np.float64, np.float32):
        for n, p in ((1, 50), (100, 50), (1000, 50), (100, 500), (1000, 500), (100, 2000), (100, 10_000)):
            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(n, p)).astype(dtype), rng.integers(0, 2, n)
            moments, turns = ClassMoments(p, 2), max(5, 1_000_000 // (n * p + 1000))
            moments.update(X, y)
            pairs = []
            for _ in range(15):
                ours = cpu_seconds(lambda: [moments.update(X, y) for _ in range(turns)]) / turns  # noqa: B023
                pairs.append((ours, cpu_seconds(lambda: [X.copy() for _ in range(turns)]) / turns))  # noqa: B023
            ours, copy = (1e6 * statistics.median(pair[i] for pair in pairs) for i in (0, 1))
            ratio = statistics.median(a / b for a, b in pairs)
            print(f"  {n:>4} x {p:<6} {np.dtype(dtype).name}   {ours:8.1f} {copy:8.1f} {ratio:8.2f}")


def over_densities() -> None:
    print("CSR, 100 rows x 100,000 features: nanoseconds per stored value")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    for density in (1e-4, 1e-3, 1e-2, 1e-1, 1.0):
        X = sp.random(100, 100_000, density=density, format="csr", random_state=0)
        moments = ClassMoments(100_000, 2)
        moments.update(X, y)
        best = min(seconds(lambda X=X, m=moments: m.update(X, y)) for _ in range(7))
        print(
            f"  density {density:<7g} {X.nnz:>10,} stored   {1e3 * best:9.3f} ms   {1e9 * best / X.nnz:8.1f}"
        )


def two_threads() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200_000, 100)), rng.integers(0, 2, 200_000)

    def learn(rows: slice) -> ClassMoments:
        moments = ClassMoments(100, 2)
        for start in range(rows.start, rows.stop, 1000):
            moments.update(X[start : start + 1000], y[start : start + 1000])
        return moments

    def halves() -> None:
        left, right = pool.map(learn, [slice(0, 100_000), slice(100_000, 200_000)])
        left.merge(right)

    with ThreadPoolExecutor(2) as pool:
        halves()
        ratios = [seconds(lambda: learn(slice(0, 200_000))) / seconds(halves) for _ in range(9)]
    print(f"two threads over row blocks, then merge: {statistics.median(ratios):.2f} times one")


if __name__ == "__main__":
    against_copy()
    over_densities()
    two_threads()
