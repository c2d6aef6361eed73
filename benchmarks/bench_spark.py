"""What Spark costs beside one process, in CPU time, and what that makes of a large cluster.

    python benchmarks/bench_spark.py [--rows 400000] [--columns 50] [--routes files frame rows vectors]

Parquet files of float32 columns, in 8 parts. "One process" reads them with pyarrow and calls `partial_fit`. Spark, with
two local workers, learns from the files by their path, from a DataFrame that is a scan of them ("frame"), from one with
a filter, whose rows Spark hands over ("rows"), and from one vector column. It is asked for all rows, which starts the
workers and compiles the kernels, for a tenth of them, and for all again: the difference of the last two is the cost of
rows. CPU time is that of all processes of the session, Java included.
Then the state of mutual information, by its rows: its bytes for a column, and the cost of loading and merging one. From
these comes the table of a cluster.
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
from tamis.adapters.spark import arrow_rows, jobs
from tamis.adapters.spark.selection import ForwardOnce

PARTS = 8
ROUTES = ("files", "frame", "rows", "vectors")
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


def cpu_seconds() -> float:
    """Return the CPU time of all processes of this session: driver, Java and workers."""
    ticks, mine = 0, os.getsid(0)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) == mine:
            ticks += sum(map(int, fields[11:15]))  # children that have ended included
    return ticks / os.sysconf("SC_CLK_TCK")


def with_spark(folder: str, cores: int, routes: list[str]) -> None:
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions as F

    spark = session(cores)

    def rows_of(route: str, path: str) -> Any:
        df = path if route == "files" else spark.read.parquet(path)
        if route == "rows":
            df = df.filter(F.col("x0").isNotNull())
        if route == "vectors":
            columns = [F.col(n).cast("double") for n in df.columns if n != "y"]
            df = df.select("y", array_to_vector(F.array(*columns)).alias("x"))
        return df

    for route in routes:
        for name, selector in SELECTORS.items():
            for size in ("all", "few", "all"):
                n_bytes = sum(path.stat().st_size for path in Path(folder, size).iterdir())
                arrow_rows._PART_BYTES = n_bytes // PARTS  # both workers have work
                rows = rows_of(route, f"{folder}/{size}")
                began, start = cpu_seconds(), perf_counter()
                adapter.screen(rows, "y", selector)
                line = [route, name, size, cpu_seconds() - began, perf_counter() - start]
                print(json.dumps(line), flush=True)


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


def of_states(n_columns: int = 100) -> dict[int, tuple[float, float]]:
    """Return bytes of a merged state, and CPU seconds to load one and merge it, for a column, by rows."""
    rng, found = np.random.default_rng(0), {}
    first = tamis.MutualInformation(10, eps=0.01)
    first.fit(rng.normal(size=(256, n_columns)), np.arange(256) % 2)
    halves, seen = [first.clone_unfitted(), first.clone_unfitted()], 0
    for n_rows in (1_000, 10_000, 100_000):
        for half in halves:
            for _ in range(seen, n_rows, 1_000):
                half.partial_fit(rng.normal(size=(1_000, n_columns)), rng.integers(0, 2, 1_000))
        seen, times = n_rows, []
        for _ in range(3):
            merged, other = copy.deepcopy(halves[0]), tamis.dumps(halves[1])
            start = process_time()
            merged.merge(tamis.loads(other))
            times.append(process_time() - start)
        found[n_rows] = (len(tamis.dumps(merged)) / n_columns, min(times) / n_columns)
    return found


def of_candidates(m: int) -> float:
    """Return CPU seconds of a value in the second pass of `select`, in one process."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2_000, m)), rng.integers(0, 2, 2_000)
    one = ForwardOnce(20, half_life=math.inf, alpha_drift=None, max_columns=m)
    one.partial_fit(X[:200], y[:200], classes=[0, 1])  # compiles
    began = process_time()
    one.partial_fit(X[200:], y[200:])
    return (process_time() - began) / X[200:].size


def cluster(name: str, ns: float, size: float, seconds: float) -> str:
    """Return a line for 10^8 rows of 10,000 columns in 1,000 partitions, on 1,000 cores."""
    n_columns, n_parts = 10_000, 1_000
    part, merge = size * n_columns, seconds * n_columns
    fan_in = int(max(2, min(32, jobs._GROUP_BYTES // part)))
    depth, left, sent = 0, n_parts, 0.0
    while left > 1:
        sent += left * part
        left = math.ceil(left / fan_in)
        depth += 1
    return (
        f"| `{name}` | {1e12 * ns * 1e-9 / 1_000:,.0f} s | {part / 1e6:.1f} MB | {fan_in} | {depth} |"
        f" {sent / 1e9:.1f} GB | {depth * (fan_in - 1) * merge:.1f} s | {(n_parts - 1) * merge:,.0f} s |"
        f" {part / 1e6:.1f} MB |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--cores", type=int)
    parser.add_argument("--folder")
    parser.add_argument("--routes", nargs="+", choices=ROUTES, default=ROUTES)
    given = parser.parse_args()
    if given.folder:
        return with_spark(given.folder, given.cores, given.routes)
    spent, few, values = {}, given.rows // 10 * given.columns, given.rows * given.columns
    with tempfile.TemporaryDirectory() as name:
        for size, n_rows in (("few", given.rows // 10), ("all", given.rows)):
            (Path(name) / size).mkdir()
            write(Path(name) / size, n_rows, given.columns)
        command = [
            sys.executable,
            "-W",
            "ignore",
            __file__,
            "--folder",
            name,
            "--cores",
            "2",
            "--routes",
            *given.routes,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True)
        for line in done.stdout.splitlines():
            if line.startswith("["):
                route, method, size, cpu, wall = json.loads(line)
                spent[route, method, size] = cpu, wall
        one = {key: in_one_process(Path(name) / "all", selector)[1] for key, selector in SELECTORS.items()}
    print("| selector | rows from | CPU of a job of few rows | CPU of a value | / one process |")
    print("| --- | --- | --- | --- | --- |")
    ns = {}
    for key in SELECTORS:
        base = 1e9 * one[key] / values
        print(f"| `{key}` | one process | | {base:.1f} ns | 1 |")
        for route in given.routes:
            small, large = spent[route, key, "few"][0], spent[route, key, "all"][0]
            ns[key, route] = 1e9 * (large - small) / (values - few)
            print(f"| | {route} | {small:.1f} s | {ns[key, route]:.1f} ns | {ns[key, route] / base:.1f} |")
    print("\n| rows of each state | bytes a column | merge of two, a column |")
    print("| --- | --- | --- |")
    states = of_states()
    for n_rows, (size, seconds) in states.items():
        print(f"| {n_rows:,} | {size:,.0f} | {seconds * 1e6:.0f} us |")
    print("\n| candidates | CPU of a value, second pass of select |\n| --- | --- |")
    for m in (500, 2_000):
        print(f"| {m:,} | {1e9 * of_candidates(m):.0f} ns |")
    head = "| selector | learning | a state | fan-in | depth | network | merging | at the driver | driver holds |"
    print(f"\n{head}\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    moments = 48.4, 1.7e-7  # bytes and seconds a column: benchmarks/bench_merge.py
    for key, state in (("TScore", moments), ("MutualInformation", states[100_000])):
        print(cluster(key, ns[key, given.routes[0]], *state))


if __name__ == "__main__":
    main()
