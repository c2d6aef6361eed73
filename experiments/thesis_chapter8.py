"""Chapter 8 of Barddal's thesis: DISCUSS rerun, beside the published figures.

    python experiments/thesis_chapter8.py trigger                    how often each trigger selects again
    python experiments/thesis_chapter8.py selection [--seeds 3]      selection accuracy, its parts, recovery
    python experiments/thesis_chapter8.py tables [--streams BG1 SEA] [--learners nb knn] [--tables FOLDER]
    python experiments/thesis_chapter8.py sea50                      50 uniform features, two relevant, nine drifts

`trigger`: 20,000 rows, four concepts, abrupt drifts, 50 bits of which 15 are copies; the share of rows with a
selection, and the selection accuracy. `selection` and `tables`: the streams of Table 4.1 as `tamis.load_stream` makes
them, test-then-train in batches of 50 rows; the accuracy is the mean, over all batches, of that of the last 10,000
rows. Columns of the tables: all features; the printed algorithm but for its trigger (crossing by 0.02), in both modes
and with the automatic threshold; the defaults of `tamis.DISCUSS`; then the published figures, by default parameters.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import load_stream, prequential
from tamis.catalog import find_learner
from tamis.evaluate import selection_accuracy
from tamis.rows.discuss.discuss import DISCUSS

# As in the published tables: columns that are not selected are 0, no scaling, nothing beside the run.
PLAIN: dict[str, Any] = {"masking": "zeros", "scale": "none", "baselines": "none"}
ROOT = Path(__file__).resolve().parents[1]
TUNED, REPORTED = ("BG1", "SEA", "AGR"), ("BG2", "AN", "BG3", "RTG")
PUBLISHED = {"nb": "NB", "knn": "kNN", "hoeffding-tree": "VFDT"}


class Counting(DISCUSS):
    """DISCUSS that counts its selections."""

    def _renew(self, n: int) -> None:
        self.n_selections = getattr(self, "n_selections", 0) + 1
        super()._renew(n)


def learner(key: str) -> Any:
    entry = find_learner(key)
    return entry.load()(**dict(entry.parameters))


def trigger() -> None:
    print(f"{'':24} {'literal':>16} {'crossing':>16} {'crossing + 0.02':>16}")
    for name in ("BG1", "BG2", "BG3"):
        for title, options in (
            ("n = 5, w = 300", {}),
            ("theta = 0.03, w = 200", {"threshold": 0.03, "window": 200}),
        ):
            shown = []
            for printed in ({}, {"trigger": "crossing", "margin": 0.0}, {"trigger": "crossing"}):
                stream = load_stream(name, seed=3, n_rows=20_000, n_drifts=3, width=1)
                n = None if options else 5
                selector = Counting.paper(n, categorical="all", **{**options, **printed, "min_interval": 1})
                found = []
                for t, (X, y) in enumerate(stream.batches(50)):
                    selector.partial_fit(X, y)
                    if len(selector.selected_):
                        truth = stream.relevant_at(50 * t)
                        found.append(selection_accuracy(selector.selected_, truth, 50).accuracy)
                share = selector.n_selections / (20_001 - selector.window)
                shown.append(f"{100 * share:6.1f} % ({np.mean(found):.3f})")
            print(f"{name} {title:20} " + " ".join(f"{cell:>16}" for cell in shown), flush=True)


def selection(names: list[str], n_seeds: int, n_rows: int, width: int) -> None:
    print("                 SA    RSR   CUCP features  recovery  lost renewals     NB  rows/s")
    for name in names:
        rows = []
        for seed in range(n_seeds):
            stream = load_stream(name, seed=seed, n_rows=n_rows, n_drifts=n_rows // 10_000 - 1, width=width)
            begin = time.process_time()
            result = prequential(
                stream, DISCUSS(categorical=stream.categorical), learner("nb"), batch_size=50, **PLAIN
            )
            told = result.summary()
            rows.append([
                told["selection_accuracy"], told["rsr"], told["cucp"], result.to_frame()["n_selected"].mean(),
                told["recovery_rows"], told["n_drifts_not_recovered"], result.settings["replays"],
                100 * told["accuracy"], n_rows / (time.process_time() - begin),
            ])  # fmt: skip
        m, s = np.nanmean(rows, axis=0), np.nanstd([row[0] for row in rows])
        print(
            f"{name:5} {m[0]:.3f} +- {s:.3f} {m[1]:6.3f} {m[2]:6.3f} {m[3]:8.1f} {m[4]:9.0f} {m[5]:5.1f} {m[6]:8.0f}"
            f" {m[7]:6.2f} {m[8]:7,.0f}", flush=True,
        )  # fmt: skip


def tables(names: list[str], learners: list[str], n_rows: int, seed: int, folder: Path) -> None:
    printed = {"trigger": "crossing", "min_interval": 75}
    makers: dict[str, Callable[[list[int]], Any]] = {
        "all": lambda _: None,
        "n=5": lambda c: DISCUSS.paper(5, categorical=c, **printed),
        "0.03": lambda c: DISCUSS.paper(None, categorical=c, **{**printed, "threshold": 0.03, "window": 200}),
        "auto": lambda c: DISCUSS.paper(
            None, categorical=c, **{**printed, "threshold": "auto", "window": 200}
        ),
        "ours": lambda c: DISCUSS(categorical=c),
    }
    published = {}
    for table in ("table_8_2", "table_8_3"):
        for row in csv.DictReader((folder / f"{table}.csv").open(encoding="utf-8")):
            published.setdefault(row["experiment"], {}).update(row)
    print(
        "learner stream "
        + " ".join(f"{name:>6}" for name in makers)
        + " |    all    n=5   0.03   auto (published)"
    )
    for key in learners:
        for name in names:
            shown = []
            for make in makers.values():
                stream = load_stream(name, seed=seed, n_rows=n_rows, n_drifts=n_rows // 10_000 - 1)
                model = learner(key)
                result = prequential(
                    stream, make(stream.categorical), model, batch_size=50, window=10_000, **PLAIN
                )
                shown.append(100 * result.to_frame()["accuracy_windowed"].mean())
            told, column = published[name], PUBLISHED[key]
            theirs = [
                told[column],
                told[f"{column}_nbar"],
                told[f"{column}_thetabar"],
                told[f"{column}_thetaauto"],
            ]
            print(
                f"{key:7} {name:6} " + " ".join(f"{value:6.2f}" for value in shown),
                "| " + " ".join(f"{value:>6}" for value in theirs),
                flush=True,
            )


def sea50(seed: int) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    rng = np.random.default_rng(1000 + seed)
    X, y = rng.uniform(0, 10, (100_000, 50)), np.zeros(100_000, dtype=int)
    relevant: list[tuple[int, int]] = []
    for start in range(0, 100_000, 10_000):
        before = relevant[-1] if relevant else ()
        a, b = rng.choice([j for j in range(50) if j not in before], 2, replace=False)
        relevant.append((int(a), int(b)))
        y[start : start + 10_000] = X[start : start + 10_000, a] + X[start : start + 10_000, b] <= 7.0
    return X, np.where(rng.random(100_000) < 0.1, 1 - y, y), relevant


def sea(n_seeds: int) -> None:
    for seed in range(n_seeds):
        X, y, relevant = sea50(seed)
        for batch in (100, 50):
            selector, found = DISCUSS(), []
            begin = time.process_time()
            result = prequential((X, y), selector, learner("nb"), batch_size=batch, n_tracked=0, **PLAIN)
            seconds, alone = time.process_time() - begin, time.process_time()
            again = DISCUSS()
            for start in range(0, 100_000, batch):
                again.partial_fit(X[start : start + batch], y[start : start + batch])
                if start >= 400:
                    found.append(selection_accuracy(again.selected_, relevant[start // 10_000], 50).accuracy)
            alone = time.process_time() - alone
            print(
                f"seed {seed}, batches of {batch}: accuracy {100 * result.summary()['accuracy']:.2f},",
                f"selection accuracy {np.mean(found):.3f},",
                f"{100_000 / seconds:,.0f} rows/s, selection alone {100_000 / alone:,.0f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("trigger", "selection", "tables", "sea50"))
    parser.add_argument("--streams", nargs="+", default=[*TUNED, *REPORTED])
    parser.add_argument("--learners", nargs="+", default=["nb"], choices=sorted(PUBLISHED))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=1000, help="of the drifts; 1: abrupt")
    parser.add_argument("--tables", type=Path, default=ROOT.parent / "shared" / "tables" / "thesis")
    asked = parser.parse_args()
    if asked.what == "trigger":
        trigger()
    elif asked.what == "selection":
        selection(asked.streams, asked.seeds, asked.rows, asked.width)
    elif asked.what == "tables":
        tables(asked.streams, asked.learners, asked.rows, 0, asked.tables)
    else:
        sea(asked.seeds)


if __name__ == "__main__":
    main()
