"""A file larger than the memory there is: read to the end under a limit on the address space."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
resource = pytest.importorskip("resource")

ROWS = {"large.csv": 300_000, "large.parquet": 300_000, "one-group.parquet": 300_000, "large.svm": 120_000}
COLUMNS = 60
READ = """
import resource, sys
import numpy as np
from tamis.streams import open_file

path, spare = sys.argv[1], int(sys.argv[2])
options = {} if path.endswith(".svm") else {"label": "y"}
if path.endswith(".svm"):
    options["n_features"] = 60
next(iter(open_file(path, **options)))  # everything imported, every pool of threads there
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + spare, used + spare))
rows = sum(len(y) for X, y in open_file(path, **options).batches(100))
print(rows)
"""


def write(path):
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(COLUMNS)]
    writer = None
    size = ROWS[path.name] if path.stem == "one-group" else 10_000
    for _ in range(ROWS[path.name] // size):
        block = rng.random((size, COLUMNS))
        table = pa.table({**dict(zip(names, block.T, strict=True)), "y": rng.integers(0, 2, size)})
        if path.suffix == ".csv":
            writer = writer or pyarrow.csv.CSVWriter(path, table.schema)
        else:
            writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def write_svmlight(path):
    rng = np.random.default_rng(0)
    line = " ".join(f"{j}:{v:.6f}" for j, v in enumerate(rng.random(COLUMNS), start=1))
    with open(path, "w") as file:
        for i in range(ROWS[path.name]):
            file.write(f"{i % 2} {line}\n")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the address space from /proc")
@pytest.mark.parametrize("name", ROWS)
def test_a_file_larger_than_the_memory_left(tmp_path, name):
    path = tmp_path / name
    write_svmlight(path) if name.endswith(".svm") else write(path)
    spare = path.stat().st_size // 3
    done = subprocess.run([sys.executable, "-c", READ, str(path), str(spare)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == ROWS[name]
