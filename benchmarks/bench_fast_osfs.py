"""FastOSFS beside its plain version: two regressions for each set of conditions.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_fast_osfs.py

Columns and timing are those of bench_saola.py.
"""

from __future__ import annotations

from bench_saola import compare

from tamis import FastOSFS
from tests.twins.fast_osfs import fast_osfs

if __name__ == "__main__":
    compare(FastOSFS(), fast_osfs, 300, rounds=3, n_rows=1000)
