"""ARFF, svmlight and CSV: our readers beside those of other libraries, each in a process of its own, on one thread.

    pip install liac-arff
    python experiments/file_readers.py [--rows 20000] [--only csv]

Of CSV: pyarrow, pandas' C engine, Polars and DuckDB with their defaults, and the types that each finds.

For each reader and file: seconds of the processor, memory above that of the process before it reads, and what became
of it. A reader that takes longer than --patience seconds or more than --memory GB is stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np


def _ours(path: str) -> Any:
    from tamis.streams import open_file

    stream = open_file(path, label=None if path.endswith(".svm") else -1, missing="keep")
    n, last = 0, None
    for X, _y in stream.batches(1000):
        n, last = n + X.shape[0], X[-1]
    shown = last.toarray()[0] if hasattr(last, "toarray") and last.shape[1] < 100 else last
    return n, np.round(np.asarray(shown, dtype=float), 3).tolist()[:3] if getattr(
        shown, "ndim", 2
    ) == 1 else ""


def _scipy(path: str) -> Any:
    from scipy.io import arff

    data, _ = arff.loadarff(path)
    return len(data), list(data[-1])[:3]


def _liac(path: str, kind: str) -> Any:
    import arff

    with open(path, encoding="utf-8") as file:
        rows = arff.load(file, return_type=getattr(arff, kind), encode_nominal=True)["data"]
        n, last = 0, None
        for last in rows:  # noqa: B007
            n += 1
    return n, (last if isinstance(last, dict) else list(last or [])[:3])


def _sklearn(path: str) -> Any:
    from sklearn.datasets import load_svmlight_file

    X, _ = load_svmlight_file(path)
    return X.shape[0], list(X.shape)


def _pyarrow(path: str) -> Any:
    from pyarrow import csv

    table = csv.read_csv(path, read_options=csv.ReadOptions(use_threads=False))
    return (
        table.num_rows,
        [str(kind) for kind in table.schema.types][:3],
        _last(table.slice(table.num_rows - 1)),
    )


def _pandas(path: str) -> Any:
    import pandas as pd

    frame = pd.read_csv(path, engine="c")
    return len(frame), [str(kind) for kind in frame.dtypes][:3], frame.iloc[-1].tolist()[:3]


def _polars(path: str) -> Any:
    import polars as pl

    frame = pl.read_csv(path, glob=False)
    return frame.height, [str(kind) for kind in frame.dtypes][:3], list(frame.row(-1))[:3]


def _duckdb(path: str) -> Any:
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    table = connection.sql(f"select * from read_csv('{path}')").to_arrow_table()
    return (
        table.num_rows,
        [str(kind) for kind in table.schema.types][:3],
        _last(table.slice(table.num_rows - 1)),
    )


def _last(row: Any) -> list[Any]:
    return [column[0].as_py() for column in row.columns[:3]]


CSV_READERS: dict[str, Callable[[str], Any]] = {
    "pyarrow": _pyarrow,
    "pandas": _pandas,
    "polars": _polars,
    "duckdb": _duckdb,
}
READERS: dict[str, Callable[[str], Any]] = {
    "tamis": _ours,
    **CSV_READERS,
    "scipy": _scipy,
    "liac-arff": lambda path: _liac(path, "DENSE"),
    "liac-arff, by rows": lambda path: _liac(path, "DENSE_GEN"),
    "liac-arff, sparse by rows": lambda path: _liac(path, "LOD_GEN"),
    "scikit-learn": _sklearn,
}


def _arff(path: Path, attributes: str, rows: Iterator[str] | list[str]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"@relation r\n{attributes}\n@data\n")
        file.writelines(f"{row}\n" for row in rows)


def _dense(path: Path, n: int) -> None:
    X = np.random.default_rng(0).random((n, 50))
    names = "\n".join(f"@attribute x{j} real" for j in range(50)) + "\n@attribute y {0,1}"
    _arff(path, names, (",".join(f"{value:.6f}" for value in row) + ",1" for row in X))


def _sparse(path: Path, n: int) -> None:
    draw = np.random.default_rng(0)
    names = "\n".join(f"@attribute x{j} real" for j in range(500)) + "\n@attribute y {0,1}"
    some = (np.sort(draw.choice(500, 10, replace=False)) for _ in range(n))
    _arff(path, names, ("{" + ", ".join(f"{j} 1.5" for j in row) + ", 500 1}" for row in some))


def _svmlight(path: Path, n: int) -> None:
    draw = np.random.default_rng(0)
    some = (np.sort(draw.choice(5000, 50, replace=False)) for _ in range(n))
    path.write_text("".join("1 " + " ".join(f"{j + 1}:0.5" for j in row) + "\n" for row in some))


def _csv(path: Path, n: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 100)).round(4)
    names = ",".join(f"x{j}" for j in range(100))
    rows = (",".join(map(str, row)) + f",{'up' if row[0] > 0 else 'down'}\n" for row in X.tolist())
    path.write_text(f"{names},y\n" + "".join(rows))


def _lines(*lines: str) -> Callable[[Path, int], None]:
    return lambda path, n: path.write_text("\n".join(lines) + "\n") and None


ONE = "@attribute a real\n@attribute y {0,1}"
TEXT = "@attribute s {x,'it\\'s'}\n@attribute y {0,1}"
FILES: dict[str, Callable[[Path, int], None]] = {
    "dense.arff": lambda path, n: _dense(path, n),
    "dense twice.arff": lambda path, n: _dense(path, 2 * n),
    "sparse.arff": lambda path, n: _sparse(path, n),
    "sparse twice.arff": lambda path, n: _sparse(path, 2 * n),
    "missing.arff": lambda path, n: _arff(path, ONE, ["1,0", "?,1"]),
    "escaped quote.arff": lambda path, n: _arff(path, TEXT, ["x,0", "'it\\'s',1"]),
    "comma in quotes.arff": lambda path, n: _arff(
        path, "@attribute 'a, b' real\n@attribute s {x,'y, z'}\n@attribute y {0,1}", ["1,x,0", "2,'y, z',1"]
    ),
    "texts.arff": lambda path, n: _arff(
        path, "@attribute s string\n@attribute y {0,1}", ["abc,0", "'d e',1"]
    ),
    "dates.arff": lambda path, n: _arff(
        path, "@attribute d date 'yyyy-MM-dd'\n@attribute y {0,1}", ["2024-01-31,0", "2024-02-01,1"]
    ),
    "20 kB of blanks.arff": lambda path, n: _arff(
        path, f"@attribute a{' ' * 20_000}real\n{ONE[18:]}", ["1,0"]
    ),
    "200 kB of blanks.arff": lambda path, n: _arff(
        path, f"@attribute a{' ' * 200_000}real\n{ONE[18:]}", ["1,0"]
    ),
    "40 kB of \\'.arff": lambda path, n: _arff(path, TEXT, ["\\'" * 20_000 + ",0"]),
    "400 kB of \\'.arff": lambda path, n: _arff(path, TEXT, ["\\'" * 200_000 + ",0"]),
    "30 values, not closed.arff": lambda path, n: _arff(
        path, "@attribute s {" + ",".join(f"v{i}" for i in range(30)) + "\n@attribute y {0,1}", ["v1,0"]
    ),
    "a line of 400 MB.arff": lambda path, n: _arff(path, ONE, ["1" * 400_000_000]),
    "numbers.csv": _csv,
    "missing words.csv": _lines("a,b,y", "1,NA,0", "?,2.5,1", "null,nan,0", "4,-,1"),
    "decimal commas.csv": _lines("a;b;y", "1,5;2;u", "1.250,75;3;v"),
    "dates.csv": _lines("t,b,y", "31/01/2024 10:00,1,0", "01/02/2024 11:30,2,1"),
    "decimals that come late.csv": _lines("a,y", *["1,0", "2,1"] * 20_000, "2.5,1"),
    "integers beyond 2**53.csv": _lines("a,y", "9007199254740993,0", "9007199254740992,1"),
    "a short row.csv": _lines("a,b,y", "1,2,0", "3,1", "4,5,1"),
    "words.svm": lambda path, n: _svmlight(path, n),
    "words twice.svm": lambda path, n: _svmlight(path, 2 * n),
    "index 2e9.svm": lambda path, n: path.write_text("1 1:1\n-1 2000000000:1\n") and None,
    "a line of 400 MB.svm": lambda path, n: path.write_text("1 1:1\n1 2:" + "1" * 400_000_000) and None,
}


def _measure(reader: str, path: str) -> None:
    """Print what a reader takes for a file; in a process of its own."""
    with contextlib.suppress(Exception):
        READERS[reader](str(Path(__file__).parent / "none"))  # what it imports does not count
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        found, became = READERS[reader](path), "read"
    except Exception as error:
        found, became = f"{type(error).__name__}: {' '.join(str(error).split())[:110]}", "refused"
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([time.process_time() - began, used / 1024, became, str(found)[:130]]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--only", choices=("arff", "svm", "csv"))
    parser.add_argument("--patience", type=float, default=20.0)
    parser.add_argument("--memory", type=float, default=6.0)
    arguments = parser.parse_args()

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (int(arguments.memory * 2**30),) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (int(arguments.patience) + 2,) * 2)

    print(f"{'file':<28} {'reader':<26} {'s':>7} {'MB':>7}  what became of it")
    with tempfile.TemporaryDirectory() as folder:
        for name, write in FILES.items():
            path = Path(folder) / name
            kind = path.suffix[1:]
            if arguments.only not in (None, kind):
                continue
            write(path, arguments.rows)
            for reader in READERS:
                reads = "csv" if reader in CSV_READERS else "svm" if reader == "scikit-learn" else "arff"
                if reader != "tamis" and reads != kind:
                    continue
                try:
                    done = subprocess.run(
                        [sys.executable, __file__, "--measure", reader, str(path)], timeout=10 * arguments.patience,
                        capture_output=True, text=True, check=False, preexec_fn=bound,
                        env=os.environ | {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"},
                    )  # fmt: skip
                    told = done.stdout.strip().splitlines()
                    found = (
                        json.loads(told[-1]) if told else [0, 0, f"exit {done.returncode}", done.stderr[-80:]]
                    )
                except subprocess.TimeoutExpired:
                    found = [arguments.patience, float("nan"), "stopped", "not done in time"]
                seconds, memory, became, said = found
                print(f"{name:<28} {reader:<26} {seconds:>7.2f} {memory:>7.0f}  {became}: {said}", flush=True)
            path.unlink()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        _measure(sys.argv[2], sys.argv[3])
    else:
        main()
