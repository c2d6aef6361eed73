"""Two million rows in small batches: do memory, open files and time per row stay flat?

    python experiments/soak.py [--rows 2000000] [--batch 20] [--only auto watch pipeline discuss names labels]

Each subject runs in a process of its own. The label depends on one of ten columns, another one every 10,000 rows, so
drifts are detected and models are reset.

    auto       Auto, which compares several selectors
    watch      Watch; every second batch never gets its labels
    pipeline   StreamPipeline of FisherScore and a naive Bayes, which also predicts each batch
    discuss    DISCUSS
    names      ByName of FIRES with a budget of 100 names; each row has two names that no other row has
    labels     FisherScore, with a new label in each row: labels are rejected after 1,000

Prints resident memory, open descriptors and time per row at every twentieth of the way. The first fifth is the warm-up.
The program ends with 1 if, between the first and the last quarter of the rest, the median memory grows by more than
`--limit` MB, a descriptor is left open, or the median time per row grows by more than the factor `--slower`.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.linear_model import LogisticRegression

from tamis import DISCUSS, FIRES, Auto, ByName, FisherScore, StreamPipeline, Watch, WeightedNaiveBayes
from tamis.errors import DataError

N_COLUMNS, N_STEPS, CONCEPT = 10, 20, 10_000
RNG = np.random.default_rng(0)
POOL = RNG.normal(size=(4096, N_COLUMNS))  # so that drawing rows takes no time


def batch(start: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows from number `start` on, and their labels."""
    at = RNG.integers(0, len(POOL) - size)
    X = POOL[at : at + size]
    return X, (X[:, start // CONCEPT % N_COLUMNS] > 0).astype(int)


def learn_rows(model: Any) -> Callable[[int, int], None]:
    def step(start: int, size: int) -> None:
        X, y = batch(start, size)
        if hasattr(model, "predict") and hasattr(model, "classes_"):
            model.predict(X)
        model.partial_fit(X, y, classes=[0, 1])

    return step


def watch_rows() -> Callable[[int, int], None]:
    X, y = batch(0, 1000)
    watch = Watch(LogisticRegression().fit(X, y))

    def step(start: int, size: int) -> None:
        X, y = batch(start, size)
        keys = range(start, start + size)
        watch.update(X, keys=keys)
        if start // size % 2:
            watch.update_labels(keys, y)
        watch.table()

    return step


def learn_names() -> Callable[[int, int], None]:
    model = ByName(FIRES(5), budget=100)

    def step(start: int, size: int) -> None:
        X, y = batch(start, size)
        rows = [
            {
                **{f"x{j}": value for j, value in enumerate(row)},
                f"user {start + i}": 1.0,
                f"page {start + i}": 1.0,
            }
            for i, row in enumerate(X.tolist())
        ]
        model.partial_fit(rows, y)

    return step


def learn_labels() -> Callable[[int, int], None]:
    model = FisherScore(5)

    def step(start: int, size: int) -> None:
        try:
            model.partial_fit(batch(start, size)[0], [f"order {start + i}" for i in range(size)])
        except DataError:
            if start + size <= 1000:
                raise

    return step


SUBJECTS: dict[str, Callable[[], Callable[[int, int], None]]] = {
    "auto": lambda: learn_rows(Auto()),
    "watch": watch_rows,
    "pipeline": lambda: learn_rows(StreamPipeline(FisherScore(5), WeightedNaiveBayes())),
    "discuss": lambda: learn_rows(DISCUSS()),
    "names": learn_names,
    "labels": learn_labels,
}


def resident() -> float:
    """Return the memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def soak(name: str, rows: int, size: int, limit: float, slower: float) -> bool:
    """Run a subject, and return whether memory, descriptors and time stayed flat."""
    step, seen = SUBJECTS[name](), []
    for k in range(N_STEPS):
        began = time.process_time()
        for start in range(
            k * rows // N_STEPS // size * size, (k + 1) * rows // N_STEPS // size * size, size
        ):
            step(start, size)
        spent = 1e6 * (time.process_time() - began) / (rows / N_STEPS)
        gc.collect()
        seen.append((resident(), len(os.listdir("/proc/self/fd")), spent))
        print(
            f"{name:<9}{(k + 1) * rows // N_STEPS:>10,} rows  {seen[-1][0]:7.1f} MB  {seen[-1][1]:3d} descriptors "
            f" {spent:6.1f} us/row",
            flush=True,
        )
    rest = np.array(seen[N_STEPS // 5 :])
    first, last = (np.median(part, axis=0) for part in (rest[: len(rest) // 4], rest[-(len(rest) // 4) :]))
    grown, opened, ratio = last[0] - first[0], int(last[1] - first[1]), last[2] / first[2]
    flat = bool(grown <= limit and opened <= 0 and ratio <= slower)
    print(
        f"{name:<9}{'flat' if flat else 'NOT FLAT'}: {grown:+.1f} MB, {opened:+d} descriptors, {ratio:.2f} times"
        " the time per row",
        flush=True,
    )
    return flat


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=[*SUBJECTS], default=[*SUBJECTS])
    parser.add_argument("--limit", type=float, default=4.0, help="MB")
    parser.add_argument("--slower", type=float, default=1.5)
    given = parser.parse_args()
    if len(given.only) == 1:
        sys.exit(not soak(given.only[0], given.rows, given.batch, given.limit, given.slower))
    options = [f"--{key}={getattr(given, key)}" for key in ("rows", "batch", "limit", "slower")]
    codes = [
        subprocess.run([sys.executable, __file__, "--only", name, *options]).returncode for name in given.only
    ]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
