"""What Spark costs beside one process, at one and two local workers, and what that makes of a large cluster.

    python benchmarks/bench_spark.py [--rows 200000] [--columns 50]

Parquet files of float32 columns, in 8 parts, as columns and as dense vectors. "One process" reads them with
pyarrow and calls `partial_fit`; Spark's figures are of `screen`, the second of two runs, so that kernels are
compiled. Then a state of mutual information, by its rows: its bytes for a column, and what merging two of them
costs. From these comes the table of a cluster.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from tamis.adapters import spark as adapter

PARTS = 8
SELECTORS = {"TScore": tamis.TScore(10), "MutualInformation": tamis.MutualInformation(10)}


def write(folder: Path, n_rows: int, n_columns: int) -> None:
    rng = np.random.default_rng(0)
    for part in range(PARTS):
        X = rng.normal(size=(n_rows // PARTS, n_columns)).astype(np.float32)
        y = rng.integers(0, 2, len(X))
        X[:, 0] += y
        columns = {f"x{j}": X[:, j] for j in range(n_columns)}
        pq.write_table(pa.table({**columns, "y": y}), folder / f"{part}.parquet", row_group_size=20_000)


def session(cores: int) -> Any:
    from pyspark.sql import SparkSession

    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.files.maxPartitionBytes", str(1 << 40))
    builder = builder.config("spark.sql.files.openCostInBytes", str(1 << 40))  # a partition for each file
    found = builder.config("spark.driver.memory", "3g").getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


def with_spark(folder: str, cores: int) -> None:
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions as F

    spark = session(cores)
    df = spark.read.parquet(folder)
    names = [name for name in df.columns if name != "y"]
    vectors = df.select("y", array_to_vector(F.array(*(F.col(n).cast("double") for n in names))).alias("x"))
    found = {}
    for kind, rows in (("columns", df), ("vectors", vectors)):
        for name, selector in SELECTORS.items():
            for _ in range(2):
                start = perf_counter()
                adapter.screen(rows, "y", selector)
                found[f"{name}, {kind}"] = perf_counter() - start
    print(json.dumps(found))


def in_one_process(folder: Path, selector: Any) -> tuple[float, float]:
    """Return seconds of wall clock and of processor, those of the kernels' compilation left out."""
    for _ in range(2):
        start, began = perf_counter(), process_time()
        one = copy.deepcopy(selector)
        for path in sorted(folder.glob("*.parquet")):
            for batch in pq.ParquetFile(path).iter_batches(10_000):
                table = pa.Table.from_batches([batch])
                one.partial_fit(table.drop_columns(["y"]), table["y"].to_numpy())
    return perf_counter() - start, process_time() - began


def of_states(n_columns: int = 20) -> dict[int, tuple[float, float]]:
    """Return bytes and seconds to merge two states, for a column, by rows."""
    rng, found = np.random.default_rng(0), {}
    first = tamis.MutualInformation(10, eps=0.01)
    first.fit(rng.normal(size=(256, n_columns)), np.arange(256) % 2)
    halves = [first.blank(), first.blank()]
    seen = 0
    for n_rows in (1_000, 10_000, 100_000, 1_000_000):
        for half in halves:
            for _ in range(seen, n_rows, 1_000):
                half.partial_fit(rng.normal(size=(1_000, n_columns)), rng.integers(0, 2, 1_000))
        seen = n_rows
        start = perf_counter()
        merged = tamis.loads(tamis.dumps(halves[0])).merge(tamis.loads(tamis.dumps(halves[1])))
        seconds = perf_counter() - start
        found[n_rows] = (len(tamis.dumps(merged)) / n_columns, seconds / n_columns)
    return found


def cluster(name: str, ns: float, bytes_of_part: float, bytes_of_all: float, seconds: float) -> str:
    """Return a line for 10,000 columns of 10^8 rows in 1,000 partitions, on 1,000 cores."""
    n_columns, n_parts, values = 10_000, 1_000, 1e12
    part = bytes_of_part * n_columns
    fan_in = int(max(2, min(32, adapter._GROUP_BYTES // part)))
    depth, left, sent = 0, n_parts, 0.0
    while left > 1:
        sent += left * part
        left = math.ceil(left / fan_in)
        depth += 1
    learning = values * ns * 1e-9 / 1_000
    merging = depth * (fan_in - 1) * seconds * n_columns
    return (
        f"| `{name}` | {learning:,.0f} s | {part / 1e6:.1f} MB | {fan_in} | {depth} | {sent / 1e9:.1f} GB |"
        f" {merging:.0f} s | {999 * seconds * n_columns:,.0f} s | {bytes_of_all * n_columns / 1e6:.0f} MB |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--cores", type=int)
    parser.add_argument("--folder")
    given = parser.parse_args()
    if given.folder:
        return with_spark(given.folder, given.cores)
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), given.rows, given.columns)
        values, spent = given.rows * given.columns, {}
        print("| selector | one process | Spark, 1 core | Spark, 2 cores | 2 cores / 1 |", flush=True)
        print("| --- | --- | --- | --- | --- |", flush=True)
        for cores in (1, 2):
            command = [sys.executable, "-W", "ignore", __file__, "--folder", name, "--cores", str(cores)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            spent[cores] = json.loads(done.stdout.splitlines()[-1])
        for key in spent[1]:
            wall, _ = in_one_process(Path(name), SELECTORS[key.split(",")[0]])
            one, two = spent[1][key], spent[2][key]
            rates = " | ".join(f"{values / s / 1e6:.1f}" for s in (wall, one, two))
            print(f"| {key} | {rates} | {one / two:.2f} |", flush=True)
    print(
        "\nMillions of values a second.\n\n| rows of a state | bytes a column | merge of two, a column |",
        flush=True,
    )
    print("| --- | --- | --- |")
    states = of_states()
    for n_rows, (size, seconds) in states.items():
        print(f"| {n_rows:,} | {size:,.0f} | {seconds * 1e6:.0f} us |")
    columns = "| selector | learning | a state | fan-in | depth | network | merging | at the driver | driver holds |"
    print(f"\n{columns}\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, size, all_rows, seconds in (
        ("TScore", 48.4, 48.4, 1.7e-3 / 10_000),
        ("MutualInformation", states[100_000][0], states[1_000_000][0], states[100_000][1]),
    ):
        ns = 1e9 * spent[1][f"{name}, vectors"] / values
        print(cluster(name, ns, size, all_rows, seconds))


if __name__ == "__main__":
    main()
