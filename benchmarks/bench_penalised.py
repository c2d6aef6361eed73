"""Streaming BIC beside the same decisions by a least-squares fit for each candidate.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_penalised.py

Both select the same features from the same columns, in one process, in turn; medians over the rounds.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import PenalisedSelector


def rss(design: np.ndarray, y: np.ndarray) -> float:
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return float(residual @ residual)


def by_full_fits(X: np.ndarray, y: np.ndarray) -> list[str]:
    n, selected = len(y), []
    design = np.ones((n, 1))
    before = rss(design, y)
    for j in range(X.shape[1]):
        if len(selected) == n - 2:
            break
        wider = np.column_stack([design, X[:, j]])
        after = rss(wider, y)
        if n * math.log(before / after) > math.log(n):
            design, before = wider, after
            selected.append(f"x{j}")
    return selected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    for n, p in ((100, 1000), (500, 1000)):
        ours, theirs = [], []
        for seed in range(args.rounds):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(n, p))
            y = X[:, ::200].sum(axis=1) + 0.3 * rng.normal(size=n)
            start = time.perf_counter()
            fast = PenalisedSelector("bic").fit(X, y).selected_
            middle = time.perf_counter()
            slow = by_full_fits(X, y)
            ours.append(middle - start)
            theirs.append(time.perf_counter() - middle)
            assert fast == slow
        fast_s, slow_s = statistics.median(ours), statistics.median(theirs)
        print(
            f"n = {n}, {p} candidates, {len(fast)} selected: {1e6 * fast_s / p:.1f} us each, full fits"
            f" {1e6 * slow_s / p:.1f} us each, {slow_s / fast_s:.0f} times"
        )


if __name__ == "__main__":
    main()
