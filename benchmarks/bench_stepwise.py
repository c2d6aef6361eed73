"""Forward stepwise BIC beside statsmodels, one least-squares fit per candidate and step.

    pip install statsmodels
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_stepwise.py

Both take the same six steps on the same columns, in one process, in turn; medians over the rounds. Without
statsmodels its figure is that of NumPy's least squares.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import ForwardStepwise


def fit() -> Callable[[np.ndarray, np.ndarray], float]:
    """Return the residual sum of squares of a regression, by statsmodels if it is here."""
    if importlib.util.find_spec("statsmodels") is not None:
        ols = importlib.import_module("statsmodels.api").OLS
        return lambda design, y: float(ols(y, design).fit().ssr)
    return lambda design, y: float(((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum())


def by_full_fits(X: np.ndarray, y: np.ndarray, steps: int) -> list[str]:
    rss, selected = fit(), []
    for _ in range(steps):
        kept = [np.ones(len(y)), *(X[:, j] for j in selected)]
        left = [j for j in range(X.shape[1]) if j not in selected]
        selected.append(min(left, key=lambda j: rss(np.column_stack([*kept, X[:, j]]), y)))
    return [f"x{j}" for j in selected]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    ours, theirs, wide = [], [], []
    for seed in range(args.rounds):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 1000))
        y = X[:, ::200].sum(axis=1) + 0.3 * rng.normal(size=100)
        start = time.perf_counter()
        fast = ForwardStepwise("aic", max_features=6).fit(X, y).selected_
        middle = time.perf_counter()
        slow = by_full_fits(X, y, 6)
        ours.append(middle - start)
        theirs.append(time.perf_counter() - middle)
        assert fast == slow
        X = rng.normal(size=(100, 100_000))
        start = time.perf_counter()
        ForwardStepwise("ric").fit(X, y)
        wide.append(time.perf_counter() - start)
    fast_s, slow_s = statistics.median(ours), statistics.median(theirs)
    print(f"n = 100, 1000 candidates, 6 steps: {1e3 * fast_s:.1f} ms, a fit for each {1e3 * slow_s:.0f} ms, "
          f"{slow_s / fast_s:.0f} times")  # fmt: skip
    print(f"n = 100, 100,000 candidates, RIC: {statistics.median(wide):.2f} s")


if __name__ == "__main__":
    main()
