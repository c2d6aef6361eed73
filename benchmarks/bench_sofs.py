"""One SOFS step (learn from 100 CSR rows of 100 stored values) beside OFS and beside SOFS in NumPy, over the columns.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_sofs.py

All run in one process, in turn, on the same batches with noise labels, B = 1000. NumPy's touches the stored values of a
row alone too, but selects the B most certain of all columns after a mistake. Ratios are medians over the rounds.
"""

from __future__ import annotations

import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

from tamis import OFS, SOFS


class NumpySOFS:
    def __init__(self, n_features: int, n_kept: int) -> None:
        self.w, self.certainty, self.n_kept = np.zeros(n_features), np.zeros(n_features), n_kept

    def partial_fit(self, X: sp.csr_matrix, y: np.ndarray) -> None:
        for i, sign in enumerate(np.where(y > 0, 1.0, -1.0)):
            at = slice(X.indptr[i], X.indptr[i + 1])
            columns, x = X.indices[at], X.data[at]
            lead = sign * (self.w[columns] @ x)
            if lead < 1.0:
                sigma = 1.0 / (1.0 + self.certainty[columns])
                self.w[columns] += (1.0 - lead) / (sigma @ x**2 + 1.0) * sign * sigma * x
                self.certainty[columns] += x**2
                kept = np.argpartition(-self.certainty, self.n_kept)[: self.n_kept]
                weights = self.w[kept]
                self.w[:] = 0.0
                self.w[kept] = weights


def batches(n_features: int, n_batches: int) -> list[tuple[sp.csr_matrix, np.ndarray]]:
    rng, found = np.random.default_rng(0), []
    for _ in range(n_batches):
        places = np.repeat(np.arange(100), 100), rng.integers(0, n_features, 10_000)
        X = sp.csr_matrix((rng.random(10_000), places), (100, n_features))
        found.append((X, rng.integers(0, 2, 100)))
    return found


def main() -> None:
    print("  columns   SOFS, ms   OFS / SOFS   NumPy / SOFS")
    for n_features in (3_000, 30_000, 300_000):
        data = batches(n_features, 12)
        steps = {"sofs": SOFS(1000), "ofs": OFS(1000), "numpy": NumpySOFS(n_features, 1000)}
        rounds = []
        for X, y in data:
            seconds = {}
            for name, selector in steps.items():
                start = time.process_time()
                selector.partial_fit(X, y)
                seconds[name] = time.process_time() - start
            rounds.append(seconds)
        rounds = rounds[2:]  # the first compile
        own, first, plain = (
            statistics.median(one[name] / one[to] if to else one[name] for one in rounds)
            for name, to in (("sofs", None), ("ofs", "sofs"), ("numpy", "sofs"))
        )
        print(f"{n_features:>9} {own * 1e3:>10.2f} {first:>12.1f} {plain:>14.0f}", flush=True)


if __name__ == "__main__":
    main()
