"""Auto, JointScreening and DISCUSS on Parquet files of any size: merged over parts, and in one pass.

    python benchmarks/bench_scale.py --rows 1000000             # 0.4 GB on disk, deleted afterwards
    python benchmarks/bench_scale.py --rows 50000000 --parts 50 # 20 GB

Each part is a file of float32 columns with a seed of its own: ten of the columns are relevant with falling slopes, and
ten are correlated with these at .7. Part by part, a selector that `clone_unfitted` of the first one returned learns the
file, as a worker of a cluster would, and `merge_tree` merges the saved states. One pass learns the same files in order.

Printed are seconds of the processor and of the clock, the largest memory of a process, the relevant columns among those
selected, and how many selected columns both have in common. Each runs in a process of its own, on one thread. The
estimate for a cluster is a straight line: seconds of the parts divided by the workers, and those of the merge.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from tamis import DISCUSS, Auto, JointScreening

RELEVANT, BATCH, GROUP = 10, 1000, 100_000
SELECTORS: dict[str, Callable[[], Any]] = {
    "JointScreening": lambda: JointScreening(10),
    "DISCUSS": lambda: DISCUSS(10),
    "Auto": lambda: Auto(10),
}


def write_part(path: Path, seed: int, n_rows: int, n_columns: int) -> None:
    rng = np.random.default_rng(seed)
    names = [*(f"x{j}" for j in range(n_columns)), "y"]
    schema = pa.schema([(name, pa.float32() if name != "y" else pa.int8()) for name in names])
    slopes = np.linspace(1.0, 0.1, RELEVANT, dtype=np.float32)
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for at in range(0, n_rows, GROUP):
            X = rng.standard_normal((min(GROUP, n_rows - at), n_columns), dtype=np.float32)
            X[:, RELEVANT : 2 * RELEVANT] *= np.float32(0.51**0.5)
            X[:, RELEVANT : 2 * RELEVANT] += np.float32(0.7) * X[:, :RELEVANT]
            noise = rng.standard_normal(len(X), dtype=np.float32)
            y = (X[:, :RELEVANT] @ slopes + noise > 0.0).astype(np.int8)
            file.write_table(pa.table([*np.ascontiguousarray(X.T), y], schema=schema))


def batches(path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    with pq.ParquetFile(path) as file:
        for group in file.iter_batches(BATCH, use_threads=False):
            *columns, y = (column.to_numpy() for column in group.columns)
            yield np.column_stack(columns), y


def learn(selector: Any, paths: list[Path]) -> Any:
    for path in paths:
        for X, y in batches(path):
            selector.partial_fit(X, y, classes=[0, 1])
    return selector


def first_selector(name: str, path: Path) -> Any:
    """Return a selector that learned the first rows, whose choices all parts share."""
    X, y = next(batches(path))
    return SELECTORS[name]().partial_fit(X, y, classes=[0, 1])


def merged(name: str, paths: list[Path]) -> tuple[dict[str, float], list[int]]:
    origin, states, learning = first_selector(name, paths[0]), list[bytes](), 0.0
    for path in paths:
        begun = time.process_time()
        states.append(tamis.dumps(learn(origin.clone_unfitted(), [path])))
        learning += time.process_time() - begun
    begun = time.process_time()
    whole = tamis.merge_tree([tamis.loads(state) for state in states])
    selected = whole.get_support(indices=True).tolist()
    seconds = {"parts": learning, "merge": time.process_time() - begun}
    return {**seconds, "state": max(map(len, states)) / 1e6}, selected


def one_pass(name: str, paths: list[Path]) -> tuple[dict[str, float], list[int]]:
    begun = time.process_time()
    selected = learn(SELECTORS[name](), paths).get_support(indices=True).tolist()
    return {"pass": time.process_time() - begun}, selected


def measured(run: Callable[..., Any], name: str, paths: list[Path], results: Any) -> None:
    run(name, [paths[0].with_name("small.parquet")] * 2)  # compiles
    begun = time.perf_counter()
    numbers, selected = run(name, paths)
    numbers |= {
        "clock": time.perf_counter() - begun,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }
    results.put((numbers, selected))


def in_own_process(
    run: Callable[..., Any], name: str, paths: list[Path]
) -> tuple[dict[str, float], list[int]]:
    context = mp.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=measured, args=(run, name, paths, results))
    process.start()
    while process.is_alive() and results.empty():
        process.join(0.2)
    if results.empty():
        raise SystemExit(f"{name} ended with code {process.exitcode}")
    found: tuple[dict[str, float], list[int]] = results.get()
    process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--parts", type=int, default=10)
    parser.add_argument("--workers", type=int, default=100, help="of the cluster that is estimated")
    parser.add_argument("--target", type=int, default=50_000_000, help="rows that are estimated")
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args()
    needed = given.rows * (4 * given.columns + 1)
    if shutil.disk_usage(given.folder or tempfile.gettempdir()).free < 1.2 * needed:
        raise SystemExit(f"the rows need {needed / 1e9:.0f} GB of free disk")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        begun, paths = time.perf_counter(), [Path(folder) / f"{k}.parquet" for k in range(given.parts)]
        for k, path in enumerate(paths):
            write_part(path, k, given.rows // given.parts, given.columns)
        write_part(Path(folder) / "small.parquet", given.parts, 3000, given.columns)
        size = sum(path.stat().st_size for path in paths) / 1e9
        print(
            f"{given.rows:,} rows of {given.columns} columns in {given.parts} parts, {size:.1f} GB, written in"
            f" {time.perf_counter() - begun:.0f} s",
            flush=True,
        )
        for name in SELECTORS:
            if given.only not in name:
                continue
            (parts, found), (whole, alone) = (in_own_process(run, name, paths) for run in (merged, one_pass))
            relevant = [sum(j < RELEVANT for j in columns) for columns in (found, alone)]
            print(
                f"{name}: parts {parts['parts']:.1f} s, merge {parts['merge']:.2f} s of states of"
                f" {parts['state']:.2f} MB, clock {parts['clock']:.1f} s, {parts['memory']:.0f} MB;"
                f" one pass {whole['pass']:.1f} s, clock {whole['clock']:.1f} s, {whole['memory']:.0f} MB;"
                f" relevant {relevant[0]} of {len(found)} and {relevant[1]} of {len(alone)}, in common"
                f" {len(set(found) & set(alone))}"
            )
            scale, merges = given.target / given.rows, given.workers / given.parts
            print(
                f"  {given.target:,} rows by a straight line: one pass {scale * whole['pass'] / 60:.1f} min;"
                f" {given.workers} workers {scale * parts['parts'] / given.workers:.1f} s,"
                f" and {merges * parts['merge']:.1f} s to merge",
                flush=True,
            )


if __name__ == "__main__":
    main()
