"""AdaptiveIFC2F beside gradient boosting that has every column: seconds to fit and to predict, and how they grow.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_adaptive.py

Same rows, one process, in turn. Boosting predicts at once what costs all the columns; an adaptive row is walked step by
step, each with exact inference in the tree, so the ratio says what asking in the best order costs.
"""

from __future__ import annotations

import os
import statistics
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset

METHODS: dict[str, Callable[[], Any]] = {
    "FixedSubset": FixedSubset,
    **{m.__name__: partial(m, random_state=0) for m in (IFC2F, ETANA, FETANA, AdaptiveIFC2F, AACO)},
}


def seconds(act: Callable[[], Any], rounds: int = 3) -> float:
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def mail(n: int = 4601, d: int = 57) -> tuple[np.ndarray, np.ndarray]:
    """Return shares of words, most of them 0, each of which leans to one of two classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    there = rng.random((n, d)) < 0.15 + 0.25 * (y[:, None] == np.arange(d) % 2)
    return np.where(there, rng.exponential(1.0, (n, d)), 0.0), y


def print_seven_classes() -> None:
    """Print the processor time of a fit to seven classes, each of which has trees of its own."""
    X, y = make_classification(
        2000, 54, n_informative=12, n_redundant=10, n_classes=7, class_sep=1.5, random_state=0
    )
    AdaptiveIFC2F(random_state=0).fit(X[:300, :10], y[:300])
    start = time.process_time()
    AdaptiveIFC2F(random_state=0).fit(X, y)
    print(f"2,000 x 54, 7 classes: fit in {time.process_time() - start:.2f} s of processor time\n")


def print_methods_beside_lightgbm() -> None:
    """Print the time of a fit beside LightGBM on one thread, and the memory beside that of the rows."""
    from lightgbm import LGBMClassifier

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = rng.normal(size=(2000, 20)) + 0.7 * rng.normal(size=(2, 20))[y]
    boosting = LGBMClassifier(verbose=-1, n_jobs=1)
    print("| 2,000 x 20 | times LightGBM |\n|---|---|")
    for name, make in METHODS.items():
        make().fit(X[:300], y[:300])
        ratios = []
        for _ in range(3):
            own, other = (processor_seconds(model, X, y) for model in (make(), boosting))
            ratios.append(own / other)
        print(f"| {name} | {statistics.median(ratios):.1f} |", flush=True)
    print("\n| arrays of a fit, MB | rows | 100,000 x 20, 2 classes | rows | 5,000 x 50, 50 classes |")
    print("|---|---|---|---|---|")
    for name in ("ETANA", "AdaptiveIFC2F", "FixedSubset"):
        cells = []
        for n, d, n_classes in ((100_000, 20, 2), (5000, 50, 50)):
            y = rng.integers(0, n_classes, n)
            X = rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(n_classes, d))[y]
            tracemalloc.start()
            METHODS[name]().fit(X, y)
            cells += [f"{X.nbytes / 1e6:.0f}", f"{tracemalloc.get_traced_memory()[1] / 1e6:.0f}"]
            tracemalloc.stop()
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print()


def processor_seconds(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def main() -> None:
    print_methods_beside_lightgbm()
    print_seven_classes()
    X, y = mail()
    train, test = slice(0, 3601), slice(3601, None)
    models = {
        "boosting, all 57 columns": HistGradientBoostingClassifier(random_state=0),
        "AdaptiveIFC2F": AdaptiveIFC2F(random_state=0),
        'AdaptiveIFC2F(decision="ensemble")': AdaptiveIFC2F(decision="ensemble", random_state=0),
    }
    AdaptiveIFC2F(max_steps=2).fit(X[:500], y[:500]).predict(X[:9])
    print("| 3,601 x 57, 1,000 to predict | fit, s | predict, s | columns used |\n|---|---|---|---|")
    for name, model in models.items():
        rounds = 1 if "ensemble" in name else 3
        fit = seconds(lambda model=model: model.fit(X[train], y[train]), rounds)  # type: ignore[misc]
        predict = seconds(lambda model=model: model.predict(X[test]))  # type: ignore[misc]
        used = model.n_features_used_.mean() if isinstance(model, AdaptiveIFC2F) else 57
        print(f"| {name} | {fit:.2f} | {predict:.3f} | {used:.1f} |")
    print("\n| columns | 8 | 16 | 32 | 57 |\n|---|---|---|---|---|\n| fit, s |", end="")
    for d in (8, 16, 32, 57):
        print(f" {seconds(lambda d=d: AdaptiveIFC2F().fit(X[train, :d], y[train]), 1):.2f} |", end="")  # type: ignore[misc]
    print("\n\n| bins | 2 | 4 | 8 |\n|---|---|---|---|\n| fit, s |", end="")
    for n_bins in (2, 4, 8):
        print(
            f" {seconds(lambda n=n_bins: AdaptiveIFC2F(n_bins=n).fit(X[train], y[train]), 1):.2f} |", end=""
        )  # type: ignore[misc]
    print("\n\n| steps at most | 5 | 10 | 20 | 40 |\n|---|---|---|---|---|\n| fit, s |", end="")
    for n in (5, 10, 20, 40):
        print(f" {seconds(lambda n=n: AdaptiveIFC2F(max_steps=n).fit(X[train], y[train]), 1):.2f} |", end="")  # type: ignore[misc]
    print()


if __name__ == "__main__":
    main()
