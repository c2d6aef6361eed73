"""Rows per second of each file format through Tamis, beside the plain reader of that format, in one run.

    python benchmarks/bench_streams.py [--rows 200000] [--columns 50]

The plain readers give blocks of whatever size and type they like; Tamis gives float64 batches of 100 rows.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from scipy.io import arff
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from tamis.streams import open_file


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def write_arff(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    head = "".join(f"@attribute x{j} real\n" for j in range(X.shape[1]))
    with open(path, "w") as file:
        file.write(f"@relation r\n{head}@attribute y {{0,1}}\n@data\n")
        np.savetxt(file, np.column_stack([X, y]), delimiter=",", fmt=["%.6f"] * X.shape[1] + ["%d"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=50)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    X, y = rng.random((arguments.rows, arguments.columns)), rng.integers(0, 2, arguments.rows)
    table = pa.table({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "y": y})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pyarrow.csv.write_csv(table, folder / "t.csv")
        pyarrow.parquet.write_table(table, folder / "t.parquet")
        pyarrow.feather.write_feather(table, folder / "t.feather")
        dump_svmlight_file(
            X[: arguments.rows // 10], y[: arguments.rows // 10], str(folder / "t.svm"), zero_based=False
        )
        write_arff(folder / "t.arff", X[: arguments.rows // 10], y[: arguments.rows // 10])
        plain: dict[str, Callable[[], object]] = {
            "t.csv": lambda: list(pyarrow.csv.open_csv(folder / "t.csv")),
            "t.csv (pandas)": lambda: list(pd.read_csv(folder / "t.csv", chunksize=10_000)),
            "t.parquet": lambda: list(pyarrow.parquet.ParquetFile(folder / "t.parquet").iter_batches()),
            "t.feather": lambda: pyarrow.feather.read_table(folder / "t.feather").to_batches(),
            "t.arff": lambda: arff.loadarff(folder / "t.arff"),
            "t.svm": lambda: load_svmlight_file(str(folder / "t.svm"), n_features=X.shape[1]),
        }
        print(f"{'format':>15} {'rows/s':>12} {'plain rows/s':>14} {'ours/plain':>11}")
        for title, read in plain.items():
            file = title.split()[0]
            options = {"n_features": X.shape[1]} if file == "t.svm" else {"label": "y"}
            rows = arguments.rows // 10 if file in ("t.svm", "t.arff") else arguments.rows
            stream = open_file(folder / file, **options)
            pairs = [
                (seconds(lambda s=stream: sum(1 for _ in s.batches(100))), seconds(read)) for _ in range(5)
            ]
            ours, theirs = (statistics.median(p[i] for p in pairs) for i in (0, 1))
            ratio = statistics.median(a / b for a, b in pairs)
            print(f"{title:>15} {rows / ours:>12,.0f} {rows / theirs:>14,.0f} {ratio:>11.2f}", flush=True)


if __name__ == "__main__":
    main()
