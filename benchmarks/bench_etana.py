"""ETANA by vectors and on the published grid: seconds, and how they grow.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_etana.py

The authors' program cannot be installed; on 57 x 5,848 gene expressions it takes 80 s. Its slow step, the value at
every point of the grid and every stage, is what is paired here with the same recursion in plain Python (the twin of the
tests), on 200 of the stages.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from tamis import ETANA, IFC2F
from tamis.cells.etana import Grid
from tests.twins import etana as twin


def seconds(act: Callable[[], Any], rounds: int = 3) -> float:
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def processor_seconds(model: Any, X: np.ndarray) -> float:
    start = time.process_time()
    model.predict(X)
    return time.process_time() - start


def genes(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return whole numbers floored at 100, one gene in twenty of them different in one of three classes."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.normal(6.0, 1.0, (n, d))
    X[:, ::20] += 1.5 * (y[:, None] == np.arange(0, d, 20) % 3)
    return np.maximum(np.exp(X), 100).round(), y


def main() -> None:
    rng = np.random.default_rng(0)
    tables = [rng.dirichlet(np.full(3, 0.6), 3) for _ in range(200)]
    Q, prices = 1.0 - np.eye(3), np.full(200, 0.01)
    ours = seconds(lambda: Grid([t[..., None] for t in tables], Q, prices, 10))
    theirs = seconds(lambda: twin.train([t.T for t in tables], Q, prices, 10), 1)
    print(
        f"grid of 66 points, 200 stages: {ours:.3f} s, plain Python {theirs:.2f} s, {theirs / ours:.0f} times"
    )
    X, y = genes(72, 5848)
    for name, model in (("", ETANA(random_state=0)), (".published()", ETANA.published())):
        model.fit(X[:57, :50], y[:57])
        took = seconds(lambda model=model: model.fit(X[:57], y[:57]).predict(X[57:]))  # type: ignore[misc]
        print(f"57 x 5,848, ETANA{name}: fit and predict {took:.2f} s; the authors' program 80 s")
    print("\n| columns | 500 | 1,000 | 2,000 | 4,000 |\n|---|---|---|---|---|\n| fit, s |", end="")
    for d in (500, 1000, 2000, 4000):
        print(f" {seconds(lambda d=d: ETANA(random_state=0).fit(X[:57, :d], y[:57])):.3f} |", end="")  # type: ignore[misc]
    print("\n\n| bins | 2 | 4 | 8 | 16 |\n|---|---|---|---|---|\n| fit, s |", end="")
    for n_bins in (2, 4, 8, 16):
        model = ETANA(n_bins=n_bins, random_state=0)
        print(f" {seconds(lambda model=model: model.fit(X[:57, :1000], y[:57])):.3f} |", end="")  # type: ignore[misc]
    X, y = genes(100_000, 50)
    model = ETANA(1e-7, random_state=0).fit(X[:5000], y[:5000])
    other = IFC2F(1e-7, random_state=0).fit(X[:5000], y[:5000])
    print("\n\n100,000 rows of 50 columns, predict, processor time:")
    turns = [(processor_seconds(model, X), processor_seconds(other, X)) for _ in range(5)]
    for name, one, took in (
        ("ETANA", model, min(t[0] for t in turns)),
        ("IFC2F", other, min(t[1] for t in turns)),
    ):
        print(
            f"{name}: {took:.2f} s, {1e6 * took / len(X):.1f} us a row, {one.n_features_used_.mean():.1f} bought"
        )
    ratio = statistics.median(ours / theirs for ours, theirs in turns)
    values = other.n_features_used_.mean() / model.n_features_used_.mean()
    print(f"ETANA takes {ratio:.2f} times as long as IFC2F a row, {ratio * values:.2f} times a value bought")


if __name__ == "__main__":
    main()
