"""Incremental importances: their time beside the model and the authors' program, and the coverage of their bands.

    pip install '.[dev]'
    OMP_NUM_THREADS=1 python benchmarks/bench_importance.py

The first table is microseconds of CPU time a row, of a LightGBM classifier's predictions of the rows and the altered
rows, and of everything else. The second compares with `ixai` on a model that costs next to nothing, all features
measured, in turn in one process. The third is the share of runs in which the band contains the known expectation.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier

from tamis import IncrementalPFI, IncrementalSAGE

KINDS = (IncrementalPFI, IncrementalSAGE)


class Timed:
    """A model that adds up the time and the rows of its calls."""

    def __init__(self, model: Any) -> None:
        self.model, self.seconds, self.n_rows, self.n_calls = model, 0.0, 0, 0
        self.classes_ = model.classes_

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        start = time.process_time()
        found = self.model.predict_proba(X)
        self.seconds += time.process_time() - start
        self.n_rows += len(X)
        self.n_calls += 1
        return found


def beside_the_model(n: int, n_features: int, n_rounds: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + 1000, n_features))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    model = LGBMClassifier(n_estimators=30, num_leaves=15, verbose=-1, n_jobs=1).fit(X[:1000], y[:1000])
    print(f"LightGBM, {n_features} features, microseconds a row, {n_rounds} rounds, batches of 100")
    print(f"{'':>16} {'budget':>7} {'predictions':>12} {'calls':>6} {'model':>7} {'the rest':>9}")
    for kind in KINDS:
        for budget in (3, None):
            rounds = []
            for seed in range(n_rounds):
                explainer, timed = kind(max_calls_per_row=budget, random_state=seed), Timed(model)
                explainer.update(timed, X[:1000], y[:1000])
                timed.seconds, timed.n_rows, timed.n_calls = 0.0, 0, 0
                start = time.process_time()
                for first in range(1000, n + 1000, 100):
                    explainer.update(timed, X[first : first + 100], y[first : first + 100])
                spent = time.process_time() - start
                rounds.append((timed.seconds / n * 1e6, (spent - timed.seconds) / n * 1e6))
            of_model, rest = (statistics.median(column) for column in zip(*rounds, strict=True))
            print(
                f"{kind.__name__:>16} {budget or 'all':>7} {timed.n_rows / n:>12.1f} {timed.n_calls / n:>6.2f}"
                f" {of_model:>7.1f} {rest:>9.1f}"
            )


def beside_the_authors_program(n: int, n_features: int, n_rounds: int) -> None:
    try:
        from ixai.explainer import IncrementalPFI as TheirPFI
        from ixai.explainer.sage.incremental import IncrementalSage
    except ImportError:
        print("pip install ixai to compare with the authors' program.")
        return
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    y = X[:, 0] + X[:, 1]
    rows, targets = [dict(enumerate(row)) for row in X.tolist()], y.tolist()
    print(
        f"A sum of two of {n_features} features, all features measured, microseconds a row, {n_rounds} rounds"
    )
    print(f"{'':>16} {'ixai':>8} {'Tamis':>8} {'ratio':>8}")
    for kind, theirs in zip(KINDS, (TheirPFI, IncrementalSage), strict=True):
        seconds: dict[str, list[float]] = {"ixai": [], "Tamis": []}
        for seed in range(n_rounds):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reference = theirs(
                    lambda x: {"output": x[0] + x[1]},
                    lambda truth, p: (
                        (p["output"] - truth) ** 2 if isinstance(p, dict) else (truth["output"] - p) ** 2
                    ),
                    list(range(n_features)),
                    smoothing_alpha=0.001,
                )
            start = time.process_time()
            for row, target in zip(rows, targets, strict=True):
                reference.explain_one(row, target)
            seconds["ixai"].append(time.process_time() - start)
            explainer = kind(max_calls_per_row=None, random_state=seed)
            start = time.process_time()
            for first in range(0, n, 100):
                explainer.update(lambda A: A[:, 0] + A[:, 1], X[first : first + 100], y[first : first + 100])
            seconds["Tamis"].append(time.process_time() - start)
        medians = {name: statistics.median(found) / n * 1e6 for name, found in seconds.items()}
        print(
            f"{kind.__name__:>16} {medians['ixai']:>8.0f} {medians['Tamis']:>8.1f}"
            f" {medians['ixai'] / medians['Tamis']:>8.0f}"
        )


def coverage(n_runs: int) -> None:
    print(
        f"Share of {n_runs} runs of 2,000 rows in which a 95 % band contains the expectation, over 10 features"
    )
    print(f"{'':>16} {'budget':>7} {'chebyshev':>10} {'normal':>7}")
    weights = np.array([2.0, 1.0, 0.5, *[0.0] * 7])
    expected = 2 * weights**2  # of both, for the squared loss of an additive model with one replacing row
    for kind in KINDS:
        for budget in (3, None):
            inside: dict[str, list[np.ndarray]] = {"chebyshev": [], "normal": []}
            for seed in range(n_runs):
                X = np.random.default_rng([1, seed]).normal(size=(2000, 10))
                explainer = kind(max_calls_per_row=budget, random_state=seed)
                explainer.update(lambda A: A @ weights, X, X @ weights)
                for method, found in inside.items():
                    low, high = explainer.bands(method=method)[:3].T
                    found.append((low <= expected[:3]) & (expected[:3] <= high))
            shares = [np.mean(found) for found in inside.values()]
            print(f"{kind.__name__:>16} {budget or 'all':>7} {shares[0]:>10.3f} {shares[1]:>7.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=300)
    options = parser.parse_args()
    beside_the_model(options.rows, 50, options.rounds)
    beside_the_authors_program(options.rows // 10, 50, options.rounds)
    coverage(options.runs)
