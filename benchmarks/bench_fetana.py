"""F-ETANA: seconds, and how they grow with rows drawn and columns; bins make no difference to its training.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_fetana.py

No peer can be installed, so its compiled walks are paired with the same recursion in plain Python (the twin of the
tests).
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
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from bench_etana import genes

from tamis import ETANA, FETANA
from tamis.cells.fetana import _approximate
from tests.twins import fetana as twin


def seconds(act: Callable[[], Any], rounds: int = 3) -> float:
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def pair() -> None:
    rng = np.random.default_rng(0)
    K, n = 50, 2000
    tables = np.ascontiguousarray(np.stack([rng.dirichlet(np.full(4, 0.6), 3).T for _ in range(K)]))
    rows = rng.integers(0, 4, (60, K)).astype(np.int16)
    draws, offset = rng.choice([-1.0, 1.0], (K + 1000, 3)), rng.integers(0, 1000, n)
    drawn, prices, Q = rng.integers(0, 60, n), np.full(K, 0.01), 1.0 - np.eye(3)
    start = 0.85 - np.eye(3)[0] + np.zeros((K, 3))
    fast = start.copy()

    def walk() -> None:
        fast[:] = start
        _approximate(
            fast, rows, drawn, draws, offset, tables, np.full(3, 1 / 3), prices, Q[0], 0.2, 0.0167, 0
        )

    walk()
    ours = seconds(walk)
    began = time.perf_counter()
    signs = [draws[at : at + K] for at in offset]
    slow = twin.train(start, rows[drawn], signs, tables, np.full(3, 1 / 3), prices, Q[0], 0.2, 0.0167)
    theirs = time.perf_counter() - began
    assert np.allclose(fast, slow)
    print(
        f"{n:,} steps, {K} stages: {1e3 * ours:.1f} ms, plain Python {theirs:.2f} s, {theirs / ours:.0f} times"
    )


def main() -> None:
    pair()
    X, y = genes(72, 5848)
    for name, model in (
        ("FETANA", FETANA(random_state=0)), ("FETANA.published", FETANA.published(random_state=0)),
        ("ETANA", ETANA(random_state=0)), ("ETANA.published", ETANA.published()),
    ):  # fmt: skip
        model.fit(X[:57, :50], y[:57])
        took = seconds(lambda model=model: model.fit(X[:57], y[:57]).predict(X[57:]))  # type: ignore[misc]
        print(f"57 x 5,848, {name}: fit and predict {took:.2f} s")
    X, y = genes(3000, 100)
    print("\n| rows drawn | 1,000 | 2,000 | 4,000 | 8,000 |\n|---|---|---|---|---|\n| fit, s |", end="")
    for n in (1000, 2000, 4000, 8000):
        model = FETANA(n_iterations=n, random_state=0)
        print(f" {seconds(lambda model=model: model.fit(X, y)):.3f} |", end="")  # type: ignore[misc]
    print("\n\n| bins | 2 | 4 | 8 | 16 |\n|---|---|---|---|---|\n| fit, s |", end="")
    for n_bins in (2, 4, 8, 16):
        model = FETANA(n_bins=n_bins, random_state=0)
        print(f" {seconds(lambda model=model: model.fit(X, y)):.3f} |", end="")  # type: ignore[misc]
    X, y = genes(100_000, 50)
    model = FETANA(1e-7, random_state=0).fit(X[:5000], y[:5000])
    took = seconds(lambda: model.predict(X))
    print(f"\n\n100,000 rows, 50 stages, {model.n_features_used_.mean():.1f} bought: predict {took:.2f} s")


if __name__ == "__main__":
    main()
