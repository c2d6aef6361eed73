"""`tamis run FILE --label y`, end to end, as a ratio to the time that Polars, and pandas, take to read the same CSV.

    python benchmarks/bench_run.py [--rows 50000] [--columns 100] [--rounds 3] [--smoke] [--only "reads"]

Processor time on one thread, the smallest of the rounds, in which all take turns. Each has run before on 500 rows, so
nothing is imported or compiled. The parts of a run are wall-clock times. River reads with csv.DictReader, predicts and
learns row by row, and has a tenth of the rows. `--only` takes a part of the names of what is measured beside Polars.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ |= {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
from river import naive_bayes

from tamis import open_file
from tamis.cli import main as tamis

RUNS = {
    "FIRES, naive Bayes": ["--selector", "fires", "--learner", "nb"],
    "the same, no baselines": ["--selector", "fires", "--learner", "nb", "--baselines", "none"],
    "FIRES, Perceptron": ["--selector", "fires", "--learner", "perceptron"],
    "Auto, Perceptron": ["--learner", "perceptron"],
    "all defaults": [],
}
PARTS = ("read", "select", "learn", "predict", "baselines")


def run(path: Path, options: list[str]) -> dict[str, float]:
    """Return the summary that the command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()):
        code = tamis(["run", str(path), "--label", "y", "--quiet", "--json", *options])
    if code:
        raise SystemExit(f"tamis run {' '.join(options)} ended with code {code}")
    summary: dict[str, float] = json.loads(printed.getvalue())["summary"]
    return summary


def read(path: Path) -> None:
    for _ in open_file(path, label="y").batches(100):
        pass


def river(path: Path, n_rows: int) -> None:
    model = naive_bayes.GaussianNB()
    with open(path, newline="") as file:
        for row, _ in zip(csv.DictReader(file), range(n_rows), strict=False):
            label = row.pop("y")
            x = {name: float(value) for name, value in row.items()}
            model.predict_one(x)
            model.learn_one(x, label)


def write(path: Path, n_rows: int, n_columns: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns)).round(4)
    y = np.where(X[:, 0] + X[:, 1] - X[:, 2] + rng.normal(size=n_rows) > 0, "up", "down")
    table = pl.DataFrame({**{f"x{j}": X[:, j] for j in range(n_columns)}, "y": y})
    table.write_csv(path)
    table.write_parquet(path.with_suffix(".parquet"))


def read_parquet(path: Path) -> None:
    with pq.ParquetFile(path.with_suffix(".parquet")) as file:
        for _ in file.iter_batches(5000, use_threads=False):
            pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    n_rows, rounds = (2000, 1) if arguments.smoke else (arguments.rows, arguments.rounds)
    with tempfile.TemporaryDirectory() as folder:
        path, first = Path(folder) / "rows.csv", Path(folder) / "first.csv"
        write(path, n_rows, arguments.columns)
        write(first, 500, arguments.columns)
        summaries: dict[str, dict[str, float]] = {}
        calls: dict[str, tuple[Callable[[Path], object], int]] = {
            "Polars reads": (pl.read_csv, n_rows),
            "pandas reads": (pd.read_csv, n_rows),
            "Tamis reads": (read, n_rows),
            "pyarrow reads Parquet": (read_parquet, n_rows),
            "Tamis reads Parquet": (lambda path: read(path.with_suffix(".parquet")), n_rows),
            "River's naive Bayes": (lambda path: river(path, n_rows // 10), n_rows // 10),
        }
        for name, options in RUNS.items():
            calls[name] = (
                lambda path, name=name, options=options: summaries.update({name: run(path, options)}),
                n_rows,
            )
        peers = ("Polars reads", "pandas reads")
        calls = {name: one for name, one in calls.items() if arguments.only in name or name in peers}
        for call, _ in calls.values():
            call(first)
        best = dict.fromkeys(calls, float("inf"))
        for _ in range(rounds):
            for name, (call, n) in calls.items():
                start = time.process_time()
                call(path)
                best[name] = min(best[name], (time.process_time() - start) / n * 1e6)
    print(
        f"{n_rows:,} rows of {arguments.columns} columns; us of the processor a row, and as ratios to Polars and pandas"
    )
    for name, took in best.items():
        parts = summaries.get(name, {})
        shown = ", ".join(f"{part} {parts[f'seconds_{part}'] / n_rows * 1e6:.1f}" for part in PARTS if parts)
        ratios = f"{took / best['Polars reads']:>6.1f} {took / best['pandas reads']:>6.1f}"
        print(f"{name:<24} {took:>8.1f} {ratios}  {shown}".rstrip())


if __name__ == "__main__":
    main()
