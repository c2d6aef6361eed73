"""GFSFS beside its plain version, with dictionaries and binomial coefficients.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_gfsfs.py

Columns are those of bench_saola.py, cut into four values, in groups of five.
"""

from __future__ import annotations

import math
import statistics
import time

import numpy as np
from bench_saola import columns

from tamis import GFSFS
from tests.twins.gfsfs import gfsfs

N_ROWS, N_COLUMNS, WIDTH = 300, 200, 5


def main() -> None:
    fast, slow, kept = [], [], 0
    groups = {start: [*range(start, start + WIDTH)] for start in range(0, N_COLUMNS, WIDTH)}
    unit = math.log(N_ROWS) / N_ROWS
    for seed in range(4):
        X, y = columns(seed, N_ROWS, N_COLUMNS)
        codes = np.digitize(X, [-0.7, 0.0, 0.7])
        start = time.perf_counter()
        ours = GFSFS(groups).fit(codes, y)
        middle = time.perf_counter()
        plain = [{f"x{j}": codes[:, j].tolist() for j in group} for group in groups.values()]
        wanted = gfsfs(plain, y.tolist(), unit, unit)
        if seed:  # the first compiles
            fast.append(middle - start)
            slow.append(time.perf_counter() - middle)
        assert ours.selected_groups_ == wanted
        kept += len(ours.selected_)
    mine, theirs = statistics.median(fast), statistics.median(slow)
    print(f"GFSFS, {N_ROWS} rows, {N_COLUMNS} columns, {kept / 4:.1f} selected:",
          f"{1e6 * mine / N_COLUMNS:.0f} us a column, plain {1e6 * theirs / N_COLUMNS:.0f} us,",
          f"{theirs / mine:.0f} times")  # fmt: skip


if __name__ == "__main__":
    main()
