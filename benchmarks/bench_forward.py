"""ForwardPartialCorrelation against the matrix product that it cannot do without, against FIRES, and on wide rows.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_forward.py [--batches 60]

For each width: milliseconds of CPU per batch of 100 rows, reading the selection included, of 10 % of the features; of
`X.T @ X` of the same batch; the update of the scatter alone in units of that; the selector in units of scikit-learn's
`SelectKBest` (analysis of variance of the same 100 rows, which remembers nothing) and of `FIRES`; and what no row
selector can be below, the checks of a batch (`RandomSubset`). All in turns in one run, the least of three means. Then
rows a second one at a time, and 100,000 sparse and 20,000 dense columns with the memory they take.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from sklearn.feature_selection import SelectKBest

from tamis import FIRES, ForwardPartialCorrelation, RandomSubset
from tamis.rows.forward.scatter import Scatter


def rows(n_features: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(n_rows, 20))
    X = factors @ rng.normal(size=(20, n_features)) + rng.normal(size=(n_rows, n_features))
    return X, (factors[:, 0] + rng.normal(size=n_rows) > 0).astype(int)


def cost(act: Callable[[int], object], n_batches: int) -> float:
    """Return milliseconds of CPU per batch."""
    start = time.process_time()
    for i in range(n_batches):
        act(i)
    return 1e3 * (time.process_time() - start) / n_batches


def learner(
    selector: ForwardPartialCorrelation | FIRES | RandomSubset, X: np.ndarray, y: np.ndarray
) -> Callable[[int], object]:
    def act(i: int) -> object:
        part = slice(100 * i, 100 * i + 100)
        return selector.partial_fit(X[part], y[part], classes=[0, 1]).get_support()

    return act


def by_the_batch(X: np.ndarray, y: np.ndarray) -> Callable[[int], object]:
    def act(i: int) -> object:
        part = slice(100 * i, 100 * i + 100)
        return SelectKBest(k=max(1, X.shape[1] // 10)).fit(X[part], y[part]).get_support()

    return act


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=60)
    n = parser.parse_args().batches
    print(
        "| features | selector, ms | checks alone, ms | X.T @ X, ms | scatter / X.T @ X | selector / SelectKBest"
        " | selector / FIRES |"
        "\n|---|---|---|---|---|---|---|"
    )
    for p in (57, 561, 784, 2000):
        X, y = rows(p, 100 * n)
        scatter, weight = Scatter(p), np.ones(100)
        acts = {
            "selector": learner(ForwardPartialCorrelation(), X, y),
            "product": lambda i, X=X: X[100 * i : 100 * i + 100].T @ X[100 * i : 100 * i + 100],
            "scatter": lambda i, X=X, s=scatter, w=weight: s.update(X[100 * i : 100 * i + 100], w, 0.97),
            "fires": learner(FIRES(), X, y),
            "checks": learner(RandomSubset(), X, y),
            "best": by_the_batch(X, y),
        }
        for act in acts.values():
            cost(act, 5)
        least = {name: min(cost(act, n) for _ in range(3)) for name, act in acts.items()}
        print(
            f"| {p} | {least['selector']:.2f} | {least['checks']:.2f} | {least['product']:.2f}"
            f" | {least['scatter'] / least['product']:.2f} | {least['selector'] / least['best']:.2f}"
            f" | {least['selector'] / least['fires']:.2f} |",
            flush=True,
        )
    X, y = rows(561, 5000)
    one = ForwardPartialCorrelation().partial_fit(X[:1000], y[:1000])
    spent = cost(
        lambda i: one.partial_fit(X[1000 + i : 1001 + i], y[1000 + i : 1001 + i]).get_support(), 4000
    )
    print(
        f"\none row at a time, 561 features, the selection read after each: {1e3 / spent:,.0f} rows a second"
    )
    rng = np.random.default_rng(0)
    for what, X in {
        "100,000 sparse columns, 100 cells a row": sp.random(100 * n, 100_000, 0.001, "csr", random_state=0),
        "20,000 dense columns": rng.normal(size=(1500, 20_000)).astype(np.float32),
    }.items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        act = learner(ForwardPartialCorrelation(100), X, rng.integers(0, 2, X.shape[0]))
        cost(act, 5)
        spent = cost(act, X.shape[0] // 100)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"{what}: {spent:.0f} ms per batch, {1e5 / spent:,.0f} rows a second, {more:.0f} MB more")


if __name__ == "__main__":
    main()
