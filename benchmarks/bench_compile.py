"""The first minute: processor seconds that the first use of a method takes, while its kernels are compiled.

    python benchmarks/bench_compile.py
    python benchmarks/bench_compile.py fires discuss --before ../tamis-before/src   # against another version

Each method learns 2,000 rows of 20 normal features in batches of 100 and predicts or selects in between, in a new
process: first with an empty cache of kernels, then with the cache that the first has filled.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

METHODS = (
    "t-score", "fisher", "ofs", "fires", "forward", "joint", "mi", "nb", "knn", "hoeffding-tree",
    "hoeffding-adaptive-tree", "discuss", "auto",
)  # fmt: skip
USE = """
import sys, time
import numpy as np
import sklearn.base
from tamis.catalog import CATALOG, LEARNERS
entry = next(entry for entry in CATALOG + LEARNERS if entry.key == sys.argv[1])
model = entry.load()(**dict(entry.parameters))
rng = np.random.default_rng(0)
X = rng.standard_normal((2000, 20))
y = (X[:, 0] + X[:, 1] > 0).astype(int)
begun = time.process_time()
for start in range(0, 2000, 100):
    model.partial_fit(X[start : start + 100], y[start : start + 100], classes=[0, 1])
    (model.predict if hasattr(model, "predict") else model.transform)(X[start : start + 100])
print(time.process_time() - begun)
"""


def seconds(method: str, cache: str, source: str | None) -> float:
    """Return the processor seconds of a use, importing not counted."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": cache,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if source is not None:
        environment["PYTHONPATH"] = source
    command = [sys.executable, "-c", USE, method]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def cold_and_warm(method: str, source: str | None) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as cache:
        return seconds(method, cache, source), seconds(method, cache, source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", default=METHODS, help="keys of the catalogue")
    parser.add_argument("--before", type=Path, help="folder of the sources of another version")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    sources = [None] if given.before is None else [None, str(given.before.resolve())]
    print(f"{'':26}{'first':>8}{'second':>8}" + (f"{'before':>10}{'ratio':>7}" if given.before else ""))
    for method in given.methods:
        runs = [[cold_and_warm(method, source) for source in sources] for _ in range(given.rounds)]
        cold, warm = (min(run[0][i] for run in runs) for i in (0, 1))
        shown = f"{method:26}{cold:8.1f}{warm:8.1f}"
        if given.before is not None:
            before = min(run[1][0] for run in runs)
            shown += f"{before:10.1f}{cold / before:7.2f}"
        print(shown, flush=True)


if __name__ == "__main__":
    main()
