"""OFS-Density beside its plain version, which sorts all rows for each row.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_ofs_density.py

Columns and timing are those of bench_saola.py.
"""

from __future__ import annotations

from bench_saola import compare

from tamis import OFSDensity
from tests.twins.ofs_density import ofs_density

if __name__ == "__main__":
    compare(OFSDensity(), ofs_density, 100, rounds=3, n_rows=60)
