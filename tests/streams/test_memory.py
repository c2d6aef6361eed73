"""A file larger than the memory there is: read to the end under a limit on the address space."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
resource = pytest.importorskip("resource")

SHAPES = {  # rows, columns, rows of a row group
    "large.csv": (300_000, 60, 10_000),
    "large.parquet": (300_000, 60, 10_000),
    "one-group.parquet": (2_000_000, 8, 2_000_000),
    "large.svm": (120_000, 60, 10_000),
}
READ = """
import resource, sys
from tamis.streams import open_file

small, large, spare = sys.argv[1], sys.argv[2], int(sys.argv[3])

def read(path):
    options = {"n_features": 60} if path.endswith(".svm") else {"label": "y"}
    return sum(len(y) for X, y in open_file(path, **options).batches(100))

read(small)  # everything imported, every pool of threads there
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + spare, used + spare))
print(read(large))
"""


def write(path, rows, columns, group):
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    writer = None
    for _ in range(0, rows, group):
        block = dict(zip([f"x{i}" for i in range(columns)], rng.random((columns, group)), strict=True))
        table = pa.table({**block, "y": rng.integers(0, 2, group)})
        if path.suffix == ".csv":
            writer = writer or pyarrow.csv.CSVWriter(path, table.schema)
            writer.write_table(table)
        else:
            writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema, use_dictionary=False)
            writer.write_table(table, row_group_size=group)
    writer.close()


def write_svmlight(path, rows, columns, group):
    rng = np.random.default_rng(0)
    line = " ".join(f"{j}:{v:.6f}" for j, v in enumerate(rng.random(columns), start=1))
    with open(path, "w") as file:
        file.writelines(f"{i % 2} {line}\n" for i in range(rows))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the address space from /proc")
@pytest.mark.parametrize("name", SHAPES)
def test_a_file_larger_than_the_memory_left(tmp_path, name):
    rows, columns, group = SHAPES[name]
    make = write_svmlight if name.endswith(".svm") else write
    small, large = tmp_path / f"small-{name}", tmp_path / name
    make(small, 2000, columns, 1000)
    make(large, rows, columns, group)
    spare = large.stat().st_size // 3
    command = [sys.executable, "-c", READ, str(small), str(large), str(spare)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == rows
