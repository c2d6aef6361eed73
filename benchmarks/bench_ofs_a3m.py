"""OFS-A3M beside its plain version, which sorts all rows for each row; and one dependency of many rows.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_ofs_a3m.py

Columns and timing are those of bench_saola.py.
"""

from __future__ import annotations

import time

import numpy as np
from bench_saola import columns, compare

from tamis import OFSA3M
from tamis.dependence.rough_set import neighbourhood_dependency
from tests.twins.ofs_a3m import ofs_a3m


def main() -> None:
    compare(OFSA3M(), ofs_a3m, 100, rounds=3, n_rows=60)
    X, y = columns(0, 4600, 10)
    for k in (1, 10):
        neighbourhood_dependency(X[:50, :k], y[:50])
        start = time.perf_counter()
        neighbourhood_dependency(X[:, :k], y)
        fast = time.perf_counter() - start
        start = time.perf_counter()
        distances = np.zeros((len(y), len(y)))
        for column in X[:, :k].T:
            distances += (column[:, None] - column) ** 2
        np.argsort(distances, axis=1, kind="stable")
        slow = time.perf_counter() - start
        print(f"dependency on {k} columns, 4600 rows: {1e3 * fast:.1f} ms; "
              f"NumPy, distances and sorting alone: {slow:.2f} s, {slow / fast:.0f} times")  # fmt: skip


if __name__ == "__main__":
    main()
