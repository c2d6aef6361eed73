"""Alpha-investing beside scikit-feature's, full regressions by least squares, and the time to read the columns.

    pip install skfeature-chappers
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_alpha_investing.py

All in one process, in turn, on the same columns; medians over the rounds, generation of the columns excluded. Without
scikit-feature its figure is nan. Its time per candidate grows with what it selects, and so does ours: both are given
columns of which 50 are relevant, after these 50. Its public function fails on columns that it rejects first, so the
relevant ones come first.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import os
import statistics
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import AlphaInvesting


def seconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def planted(n: int, q: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the q relevant columns and the target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, q))
    return X, X.sum(axis=1) + 0.3 * rng.normal(size=n)


def a_million(n: int, n_candidates: int) -> tuple[float, float, int]:
    """Return the seconds for the candidates in blocks of 10,000, for reading them, and how many were selected."""
    X, y = planted(n, 5)
    selector = AlphaInvesting(trace="selected").start(y)
    rng, took, read = np.random.default_rng(1), 0.0, 0.0
    selector.offer_many(X)
    for _ in range(n_candidates // 10_000):
        block = rng.standard_normal((n, 10_000))
        read += seconds(block.sum)
        took += seconds(lambda: selector.offer_many(block))  # noqa: B023
    return took, read, len(selector.selected_)


def peer() -> Any:
    if importlib.util.find_spec("skfeature") is None:
        return None
    return importlib.import_module("skfeature.function.streaming.alpha_investing").alpha_investing


def full_fits(X: np.ndarray, relevant: np.ndarray, y: np.ndarray) -> None:
    for j in range(X.shape[1]):
        np.linalg.lstsq(np.column_stack([np.ones(len(y)), relevant, X[:, j]]), y, rcond=None)


def per_candidate(n: int, q: int, n_candidates: int, rounds: int) -> dict[str, list[float]]:
    relevant, y = planted(n, q)
    rng, theirs = np.random.default_rng(2), peer()
    found: dict[str, list[float]] = {
        "block": [],
        "single": [],
        "robust": [],
        "logistic": [],
        "least squares": [],
        "skfeature": [],
    }
    labels = (y + 4.0 * rng.normal(size=n) > 0).astype(int)
    for _ in range(rounds):
        X = rng.normal(size=(n, n_candidates))
        selector = AlphaInvesting(trace="selected").start(y)
        assert selector.offer_many(relevant).sum() > 0.9 * q
        selector.offer_many(rng.normal(size=(n, 2000)))  # after 50 discoveries, many a useless one is welcome
        few = X[:, :40]
        robust = AlphaInvesting(variance="robust", trace="selected").start(y)
        assert robust.offer_many(relevant).sum() > 0.9 * q
        found["robust"].append(seconds(lambda: robust.offer_many(X)) / n_candidates)  # noqa: B023
        found["block"].append(seconds(lambda: selector.offer_many(X)) / n_candidates)  # noqa: B023
        found["single"].append(seconds(lambda: [selector.offer(few[:, j]) for j in range(40)]) / 40)  # noqa: B023
        two = AlphaInvesting("logistic", trace="selected").start(labels)
        two.offer_many(relevant)
        assert two.stopped_ is None
        found["logistic"].append(seconds(lambda: two.offer_many(X)) / n_candidates)  # noqa: B023
        found["least squares"].append(seconds(lambda: full_fits(few, relevant, y)) / 40)  # noqa: B023
        if theirs is not None:
            both = np.column_stack([relevant, few])
            first = seconds(lambda: theirs(relevant, y, 0.5, 0.5))
            found["skfeature"].append((seconds(lambda: theirs(both, y, 0.5, 0.5)) - first) / 40)  # noqa: B023
        else:
            found["skfeature"].append(math.nan)
    return found


def tall(n: int = 100_000, n_candidates: int = 600) -> None:
    """Print the processor time of a candidate with many rows, by the order of the matrix."""
    X, y = planted(n, n_candidates)[0], planted(n, 5)[1]
    for order in ("C", "F"):
        given = np.asarray(X, order=order)  # type: ignore[call-overload]
        start = time.process_time()
        given.sum(axis=0)
        summed = time.process_time()
        AlphaInvesting(variance="classical").fit(given, y)
        took = time.process_time() - summed
        print(f"n = {n:,}, order {order}: {1e6 * took / n_candidates:.0f} us of processor time a candidate,"
              f" summing it {1e6 * (summed - start) / n_candidates:.0f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--candidates", type=int, default=1_000_000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tracemalloc.start()
    took, read, selected = a_million(100, 20_000)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    took, read, selected = a_million(100, args.candidates)
    print(
        f"n = 100, {args.candidates:,} N(0, 1) candidates: {took:.2f} s, {selected} selected; summing them {read:.2f} s"
    )
    print(f"peak memory while offering blocks of 8 MB: {peak:.0f} MB")
    tall()
    for n, q in ((500, 50), (100, 5)):
        found = {
            name: statistics.median(times) for name, times in per_candidate(n, q, 10_000, args.rounds).items()
        }
        print(f"\nn = {n}, {q} selected: microseconds per candidate, and how many times the block's")
        for name, took in found.items():
            print(f"  {name:14s} {1e6 * took:10.2f} {took / found['block']:10.1f}")


if __name__ == "__main__":
    sys.exit(main())
