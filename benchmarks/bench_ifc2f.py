"""IFC2F from gene expressions to a million words: seconds, memory, and how they grow.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_ifc2f.py [--wide]

The authors' program cannot be installed; on 57 x 5,848 gene expressions it takes 134 s, nearly all of it in scoring the
columns one at a time with scikit-learn. So that is what is paired here: the same scores of the same columns, in one
process, in turn. `--wide` adds the two large sparse sets, and the most memory that was used.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.model_selection import StratifiedKFold, cross_val_score

from tamis import IFC2F
from tamis.cells.bins import Bins
from tamis.cells.network import Chain
from tamis.cells.stopping import PointBased, walk_beliefs
from tamis.dependence.information import adjusted_mutual_information


def seconds(act: Callable[[], Any], rounds: int = 3) -> float:
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def genes(n: int = 72, d: int = 5848) -> tuple[np.ndarray, np.ndarray]:
    """Return whole numbers floored at 100, one gene in twenty of them different in one of three classes."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.normal(6.0, 1.0, (n, d))
    X[:, ::20] += 1.5 * (y[:, None] == np.arange(0, d, 20) % 3)
    return np.maximum(np.exp(X), 100).round(), y


def mail(n: int = 4601, d: int = 57, lean: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    """Return shares of words, most of them 0, each of which leans to one of two classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    there = rng.random((n, d)) < 0.15 + lean * (y[:, None] == np.arange(d) % 2)
    return np.where(there, rng.exponential(1.0, (n, d)), 0.0), y


def words(n: int, d: int, stored: int) -> tuple[sp.csr_array, np.ndarray]:
    """Return documents of words whose frequency falls as 1 / rank; one word in fifty leans to a class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    rank = np.exp(rng.random(n * stored) * np.log(d)).astype(np.int64) - 1
    row = np.repeat(np.arange(n), stored)
    lean = (rank % 50 == 7) & (rng.random(len(rank)) < 0.5)
    rank[lean] += 1 - y[row[lean]]
    X = sp.csr_array((np.ones(len(rank), dtype=np.float32), (row, rank.clip(0, d - 1))), shape=(n, d))
    X.data[:] = np.log1p(X.data)
    return X, y


def pair_scores() -> None:
    X, y = genes()
    tables, codes = Bins.quantile(X, 4).tables(X, y, 3), Bins.quantile(X, 4).codes(X)
    adjusted_mutual_information(tables[:5])
    ours = seconds(lambda: adjusted_mutual_information(tables))
    theirs = seconds(lambda: [adjusted_mutual_info_score(y, c) for c in codes.T], 1)
    print(
        f"scores of 5,848 columns: {ours:.3f} s, scikit-learn one at a time {theirs:.1f} s, {theirs / ours:.0f} times"
    )


def small() -> None:
    X, y = genes()
    for name, model in (
        ("", IFC2F(random_state=0)),
        (".published()", IFC2F.published(random_state=0)),
    ):
        took = seconds(lambda model=model: model.fit(X[:57], y[:57]).predict(X[57:]))  # type: ignore[misc]
        print(f"57 x 5,848, IFC2F{name}: fit and predict {took:.2f} s; the authors' program 134 s")
    X, y = mail()
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    took = seconds(lambda: cross_val_score(IFC2F(random_state=0), X, y, cv=folds))
    print(f"4,601 x 57, five folds: {took:.2f} s")


def rows() -> None:
    X, y = mail(100_000, 50)
    for n_bins in (4, 10):
        model = IFC2F(1e-7, n_bins=n_bins, order="relevance", random_state=0).fit(X[:5000], y[:5000])
        for lookahead in (True, False):
            model.lookahead = lookahead
            took = seconds(lambda model=model: model.predict(X))  # type: ignore[misc]
            print(f"100,000 rows, {len(model.candidates_)} stages, {model.n_features_used_.mean():.1f} bought,"
                  f" {n_bins} bins, lookahead={lookahead}: predict {took:.2f} s")  # fmt: skip


def curves() -> None:
    print("\n| bins (20 stages) | 2 | 4 | 8 | 16 | 32 |\n|---|---|---|---|---|---|\n| vectors, s |", end="")
    for n_bins in (2, 4, 8, 16, 32):
        print(f" {vectors(n_bins, 20):.4f} |", end="")
    print(
        "\n\n| stages (4 bins) | 10 | 20 | 40 | 80 | 160 |\n|---|---|---|---|---|---|\n| vectors, s |", end=""
    )
    for stages in (10, 20, 40, 80, 160):
        print(f" {vectors(4, stages):.4f} |", end="")
    print()


def vectors(n_bins: int, stages: int) -> float:
    """Return the seconds that the vectors of a line of features take."""
    rng = np.random.default_rng(0)
    tables = rng.dirichlet(np.full(n_bins, 5.0), (stages, 3, n_bins)).transpose(0, 1, 3, 2)
    chain = Chain(np.arange(-1, stages - 1), np.ascontiguousarray(tables), np.arange(stages))
    prior, prices = np.full(3, 1 / 3), np.full(stages, 1e-4)

    def train() -> None:
        beliefs, values = walk_beliefs(chain, prior, 100, np.random.default_rng(0))
        PointBased(chain, n_bins, 1.0 - np.eye(3), prices).train(beliefs, values)

    train()
    return seconds(train, 5)


def wide() -> None:
    for name, n, d, stored in (("Dorothea", 1150, 100_000, 900), ("News20", 20_000, 1_300_000, 455)):
        X, y = words(n, d, stored)
        took = seconds(lambda X=X, y=y: IFC2F(n_bins=10, random_state=0).fit(X, y), 1)  # type: ignore[misc]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{n:,} x {d:,} like {name}, {X.nnz:,} stored: fit {took:.1f} s, at most {peak:.2f} GB so far")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wide", action="store_true")
    args = parser.parse_args()
    pair_scores()
    small()
    rows()
    curves()
    if args.wide:
        wide()


if __name__ == "__main__":
    main()
