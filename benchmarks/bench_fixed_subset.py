"""FixedSubset beside the same order made with scikit-learn's information, one thread, in one run.

    python benchmarks/bench_fixed_subset.py [--rows 1000]

Both put ten of the columns in order by minimum redundancy and maximum relevance, on the same bins.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.metrics import adjusted_mutual_info_score

from tamis import FixedSubset
from tamis.base.prices import Tariff
from tamis.cells.bins import Bins
from tamis.cells.relevance import mrmr

CHOSEN = 10


def peer(codes: np.ndarray, y: np.ndarray) -> list[int]:
    relevance = np.array([adjusted_mutual_info_score(y, column) for column in codes.T])
    chosen, shared = [int(relevance.argmax())], np.zeros(len(relevance))
    while len(chosen) < CHOSEN:
        last = codes[:, chosen[-1]]
        shared += [adjusted_mutual_info_score(last, column) for column in codes.T]
        worth = relevance - shared / len(chosen)
        worth[chosen] = -np.inf
        chosen.append(int(worth.argmax()))
    return chosen


def seconds(run: Callable[[], object]) -> tuple[float, object]:
    start = time.process_time()
    found = run()
    return time.process_time() - start, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    n = parser.parse_args().rows
    rng = np.random.default_rng(0)
    FixedSubset(n_features=2).fit(
        rng.normal(size=(50, 3)), np.arange(50) % 2
    )  # compiled before the clock runs
    print("columns   order, s   scikit-learn, s   ratio   whole fit, s")
    for d in (10, 30, 100):
        y = rng.integers(0, 2, n)
        X = rng.normal(size=(n, d)) + rng.uniform(0, 1.5, d) * y[:, None]
        bins = Bins.quantile(X, 4)
        price = Tariff(np.ones(d), np.zeros((0, d), bool), np.zeros(0))
        ours, found = seconds(
            lambda X=X, y=y, bins=bins, price=price: mrmr(X, y, bins, bins.tables(X, y, 2), price, CHOSEN)
        )
        theirs, expected = seconds(lambda X=X, y=y, bins=bins: peer(bins.codes(X), y))
        assert np.asarray(found).tolist() == expected
        whole, _ = seconds(lambda X=X, y=y: FixedSubset().fit(X, y))
        print(f"{d:7d} {ours:10.4f} {theirs:17.3f} {theirs / ours:7.0f} {whole:14.2f}")


if __name__ == "__main__":
    main()
