"""A CSV file read while one learns from it: how the work is shared between the two threads, beside reading in turn.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_prefetch.py [--rows 200000] [--rounds 5]

Reading alone, a screening and a run, each reading ahead and in turn. The elapsed time shows something only where two
cores are free, which sorting in two threads tells. The processor time of each thread does not depend on that: with
free cores, the longer one is what remains.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.csv

from tamis import FIRES, Screening, WeightedNaiveBayes, prequential
from tamis.streams import files
from tamis.streams.files import prefetch

reading = 0.0  # seconds of processor time


def timed(blocks: Iterator[Any]) -> Iterator[Any]:
    """Yield the blocks, and add up what making them takes in the thread that makes them."""
    global reading
    while True:
        start = time.thread_time()
        block = next(blocks, None)
        reading += time.thread_time() - start
        if block is None:
            return
        yield block


def took(act: Callable[[], object], *, ahead: bool) -> tuple[float, float, float]:
    """Return the elapsed seconds, and the processor seconds of reading and of all else."""
    global reading
    files.prefetch = (lambda blocks: prefetch(timed(blocks))) if ahead else timed
    reading, before, start = 0.0, time.process_time(), time.perf_counter()
    act()
    return time.perf_counter() - start, reading, time.process_time() - before - reading


def two_threads() -> float:
    """Return how many times as fast this machine sorts in two threads just now."""
    plain = np.random.default_rng(0).random(1 << 16, dtype=np.float32)

    def sort(times: int) -> None:
        for _ in range(times):
            np.sort(plain)

    start = time.perf_counter()
    sort(300)
    between = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(sort, (150, 150)))
    return (between - start) / (time.perf_counter() - between)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.random((arguments.rows, 50))
    y = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=len(X)) > 1).astype(int)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        pyarrow.csv.write_csv(pa.table({**{f"x{j}": X[:, j] for j in range(50)}, "y": y}), path)

        def read() -> None:
            for _ in files.open_file(path, label="y").batches(1000):
                pass

        def screen() -> None:
            screening = Screening(10, scores=["mi"])
            for rows, labels in files.open_file(path, label="y").batches(1000):
                screening.partial_fit(rows, labels)

        def run() -> None:
            learner = WeightedNaiveBayes(window=None, weight=None)
            stream = files.open_file(path, label="y")
            prequential(stream, FIRES(), learner, batch_size=1000, baselines="none")

        print(f"{arguments.rows:,} rows of 50 columns, seconds: elapsed (processor: reading + all else)")
        for act in (read, screen, run):
            act()  # compiles
            free, turns = [], []
            for _ in range(arguments.rounds):
                free.append(two_threads())
                turns.append([took(act, ahead=ahead) for ahead in (True, False)])
            ours, before = (min(column) for column in zip(*turns, strict=True))
            ratio = statistics.median(b[0] / a[0] for a, b in turns)
            print(f"{act.__name__:>8}: ahead {ours[0]:.2f} ({ours[1]:.2f} + {ours[2]:.2f})   in turn {before[0]:.2f}"
                  f" ({before[1]:.2f} + {before[2]:.2f})   {ratio:.2f} times as fast, sorting in two threads"
                  f" {statistics.median(free):.2f}; of two free cores {sum(before[1:]) / max(ours[1:]):.2f}",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
