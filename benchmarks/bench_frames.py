"""What a frame costs beside its array: milliseconds for 100 rows of 1,000 columns, microseconds for one row.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_frames.py

The first table has the time with the array, and what each library adds to it; the others the time of one row, and in
parentheses that of `transform` as a multiple of scikit-learn's SelectKBest, which does not accept Arrow tables.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import SGDClassifier

from tamis import FIRES, OFS, AlphaInvesting, FisherScore, HoeffdingTree, Refit, StreamPipeline
from tamis.streams import as_stream
from tamis.watch import InputDrift, Watch

RNG = np.random.default_rng(0)
MODELS: dict[str, Callable[[], Any]] = {
    "FisherScore": lambda: FisherScore(5),
    "FIRES": lambda: FIRES(5),
    "OFS": lambda: OFS(5),
    "HoeffdingTree": HoeffdingTree,
    "Refit": lambda: Refit(SGDClassifier(), every=10**6),
    "StreamPipeline": lambda: StreamPipeline(FIRES(5)),
}
VERBS = ("partial_fit", "predict", "transform")


def libraries(X: np.ndarray) -> dict[str, Any]:
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return {"array": X, "pandas": frame, "Polars": pl.from_arrow(table), "Arrow": table}


def seconds(call: Callable[[], object], n: int) -> float:
    call()
    times = []
    for _ in range(n):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def calls(rows: Any, all_rows: Any, y: np.ndarray) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {}
    for name, make in MODELS.items():
        for verb in VERBS:
            model = make().partial_fit(all_rows, y)
            if hasattr(model, verb):
                more = (y[: len(rows)],) if verb == "partial_fit" else ()
                found[f"{name}.{verb}"] = partial(getattr(model, verb), rows, *more)
    return found


def whole(rows: Any, y: np.ndarray) -> dict[str, Callable[[], object]]:
    drift, watch = InputDrift(), Watch()
    named = not isinstance(rows, np.ndarray)
    return {
        "a stream with label=": lambda: as_stream(*(rows, "c7") if named else [(rows, y)]).take(100),
        "AlphaInvesting.fit": lambda: AlphaInvesting().fit(rows, y),
        "InputDrift.update": lambda: drift.update(rows),
        "Watch.update": lambda: watch.update(rows, predictions=y, y=y),
        "a stream of (X, y)": lambda: as_stream((rows, y)).take(100),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    X = RNG.standard_normal((200, 1000))
    y = (X[:, 0] > 0).astype(int)
    tables = libraries(X[:100])
    times = {
        library: {
            name: seconds(call, 7)
            for name, call in {**calls(rows, rows, y[:100]), **whole(rows, y[:100])}.items()
        }
        for library, rows in tables.items()
    }
    print(
        f"{'100 rows of 1,000 columns, ms':32}{'array':>8}"
        + "".join(f"{'+ ' + name:>10}" for name in [*tables][1:])
    )
    for name, base in times["array"].items():
        added = "".join(f"{1e3 * (times[library][name] - base):10.2f}" for library in [*tables][1:])
        print(f"{name:32}{1e3 * base:8.2f}{added}")
    for n_columns in (20, 300):
        every = libraries(X[:, :n_columns])
        one = libraries(X[:1, :n_columns])
        print(f"\none row of {n_columns} columns, us" + "".join(f"{library:>16}" for library in one))
        peer = {
            library: seconds(partial(SelectKBest(k=5).fit(every[library], y).transform, rows), 200)
            for library, rows in one.items()
            if library != "Arrow"
        }
        shown = {library: calls(rows, every[library], y) for library, rows in one.items()}
        print(f"{'SelectKBest.transform':28}" + "".join(f"{1e6 * t:16.0f}" for t in peer.values()))
        for name in shown["array"]:
            if name.endswith("partial_fit"):
                continue
            cells = []
            for library in one:
                taken = seconds(shown[library][name], 200)
                ratio = (
                    f" ({taken / peer[library]:.2f})"
                    if name.endswith("transform") and library in peer
                    else ""
                )
                cells.append(f"{1e6 * taken:.0f}{ratio}")
            print(f"{name:28}" + "".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
