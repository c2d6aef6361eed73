"""Chapter 8 of Barddal's thesis: DISCUSS rerun, beside the published figures.

    python experiments/thesis_chapter8.py trigger                    how often each trigger selects again
    python experiments/thesis_chapter8.py selection [--seeds 3]      selection accuracy, its parts, recovery
    python experiments/thesis_chapter8.py tables [--learners nb vfdr] [--streams BG1 SEA] [--tuned] [--rows 30000]
    python experiments/thesis_chapter8.py sea50                      50 uniform features, two relevant, nine drifts

`trigger`: 20,000 rows, four concepts, abrupt drifts, 50 bits of which 15 are copies; the share of rows with a
selection, and the selection accuracy. `selection` and `tables`: the streams of Table 4.1 as `tamis.load_stream` makes
them, test-then-train in batches of 50 rows; the accuracy is the mean, over all batches, of that of the last 10,000
rows (of the real sets: of the last tenth). Columns of the tables: all features; the printed algorithm but for its
trigger (crossing by 0.02) with n = 5 and w = 300, with theta = 0.03 and w = 200, and with the automatic threshold; the
defaults of `tamis.DISCUSS`. With `--tuned` also n* and theta*: the best of a grid, chosen on the rows it is shown for,
as in the thesis. With `--seeds` a cell is a mean with its 95 % confidence interval. SPAM and IADS (998 rows, shuffled)
are real sets. Every cell is kept in `--out` and not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from thesis_chapter7 import MOA, real, with_interval

from tamis import load_stream, prequential
from tamis.catalog import find_learner
from tamis.evaluate import selection_accuracy
from tamis.rows.discuss.discuss import DISCUSS

# As in the published tables: columns that are not selected are 0, no scaling, nothing beside the run.
PLAIN: dict[str, Any] = {"masking": "zeros", "scale": "none", "baselines": "none", "replay": "always"}
ROOT = Path(__file__).resolve().parents[1]
TUNED, REPORTED = ("BG1", "SEA", "AGR"), ("BG2", "AN", "BG3", "RTG")
REAL = {"IADS": ("ads", "shuffled", 100), "SPAM": ("spam", "", 932)}  # a set, its order, a tenth of its rows
PUBLISHED = {"nb": "NB", "knn": "kNN", "hoeffding-tree": "VFDT", "hoeffding-adaptive-tree": "HAT"}
SUFFIXES = {"all": "", "n = 5": "_nbar", "n*": "_nstar", "0.03": "_thetabar", "theta*": "_thetastar",
            "auto": "_thetaauto"}  # fmt: skip
LEARNERS = (*PUBLISHED, "cvfdt", "vfdr", "huwrs", "heft-stream", "adaptive-random-forest")
Make = Callable[[list[int]], Any]


class Counting(DISCUSS):
    """DISCUSS that counts its selections."""

    def _renew(self, n: int) -> None:
        self.n_selections = getattr(self, "n_selections", 0) + 1
        super()._renew(n)


def learner(key: str) -> Any:
    entry = find_learner(key)
    return entry.load()(**dict(entry.parameters), **(MOA if key.startswith("hoeffding") else {}))


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


def printed(n: int | None, **parameters: Any) -> Make:
    """Return a maker of the printed algorithm but for its trigger."""
    return lambda c: DISCUSS.paper(
        n, categorical=c, **{"trigger": "crossing", "min_interval": 75, **parameters}
    )


ARMS: dict[str, Make] = {
    "all": lambda _: None,
    "n = 5": printed(5),
    "0.03": printed(None, threshold=0.03, window=200),
    "auto": printed(None, threshold="auto", window=200),
    "ours": lambda c: DISCUSS(categorical=c),
}
GRID: dict[str, dict[str, Make]] = {
    "n*": {f"n = {n}, w = {w}": printed(n, window=w) for n in (2, 3, 5, 10) for w in (200, 500)},
    "theta*": {
        f"theta = {t}, w = {w}": printed(None, threshold=t, window=w)
        for t in (0.01, 0.03, 0.1, 0.2)
        for w in (200, 500)
    },
}
Cells = dict[tuple[str, str, str], dict[int, float]]


def rows_of(name: str, n_rows: int, seed: int, data: Path) -> tuple[Any, list[int], int]:
    """Return a stream, its categories, and over how many rows its accuracy is taken."""
    if name not in REAL:
        stream = load_stream(name, seed=seed, n_rows=n_rows, n_drifts=n_rows // 10_000 - 1)
        return stream, list(stream.categorical), 10_000
    what, order, window = REAL[name]
    stream, categorical = real(data, what, order, 50)
    return stream, categorical, window


def read(place: Path) -> Cells:
    cells: Cells = defaultdict(dict)
    if place.exists():
        with place.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                cells[row["stream"], row["learner"], row["arm"]][int(row["seed"])] = float(row["accuracy"])
    return cells


def tables(
    names: list[str], learners: list[str], tuned: bool, n_rows: int, seeds: list[int], data: Path, place: Path
) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    arms = {**ARMS, **({arm: make for grid in GRID.values() for arm, make in grid.items()} if tuned else {})}
    known = read(place)
    cells = [(seed, *cell) for seed in seeds for cell in product(names, learners, arms)]
    for seed, name, key, arm in cells:
        if seed in known[name, key, arm] or (seed and name in REAL):
            continue
        stream, categorical, window = rows_of(name, n_rows, seed, data)
        begin = time.process_time()
        result = prequential(
            stream,
            arms[arm](categorical),
            learner(key),
            batch_size=50,
            window=window,
            n_tracked=0,
            **PLAIN,
        )
        accuracy = 100 * result.to_frame()["accuracy_windowed"].mean()
        seconds = time.process_time() - begin
        new = not place.exists()
        with place.open("a", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            if new:
                rows.writerow(["stream", "learner", "arm", "seed", "accuracy", "seconds"])
            rows.writerow([name, key, arm, seed, f"{accuracy:.4f}", f"{seconds:.1f}"])
        print(f"{name:5} {key:24} {arm:20} {seed:3} {accuracy:6.2f} {seconds:6.1f} s", flush=True)


def show_tables(cells: Cells, folder: Path) -> None:
    """Print published beside ours for each learner of the thesis, and the means over the seven streams for all."""
    printed_there: dict[str, dict[str, str]] = {}
    for table in ("table_8_2", "table_8_3"):
        with (folder / f"{table}.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                printed_there.setdefault(row["experiment"], {}).update(row)
    shown = ("all", "n = 5", "n*", "0.03", "theta*", "auto", "ours")
    best: Cells = defaultdict(dict, cells)
    for key in LEARNERS:
        for name in (*TUNED, *REPORTED, *REAL):
            for arm, grid in GRID.items():
                seeds = set.intersection(*(set(cells.get((name, key, one), {})) for one in grid))
                best[name, key, arm] = {s: max(cells[name, key, one][s] for one in grid) for s in seeds}
    head = "| | " + " | ".join(shown) + " |\n|---|" + "---|" * len(shown)
    for key, column in PUBLISHED.items():
        print(f"\n{key} (published in brackets)\n\n{head}")
        for name in printed_there:
            if not best[name, key, "all"]:
                continue
            words = []
            for arm in shown:
                theirs = printed_there[name].get(column + SUFFIXES.get(arm, "?"))
                ours = with_interval(list(best[name, key, arm].values()))
                words.append(ours + (f" ({float(theirs):.1f})" if theirs else ""))
            print(f"| {name} | " + " | ".join(words) + " |")
    print(f"\nmeans over the seven streams\n\n{head}")
    for key in LEARNERS:
        means = {arm: means_of_seeds(best, key, arm) for arm in shown}
        if means["all"]:
            words = [with_interval(list(means[arm].values())) for arm in shown]
            both = sorted(set(means["all"]) & set(means["ours"]))
            gain = with_interval([means["ours"][seed] - means["all"][seed] for seed in both])
            print(f"| {key}, {len(both)} seeds | " + " | ".join(words) + f" | gain {gain} |")


def means_of_seeds(cells: Cells, key: str, arm: str) -> dict[int, float]:
    """Return the mean over the seven streams of each seed that ran on all of them."""
    streams = [cells[name, key, arm] for name in (*TUNED, *REPORTED)]
    return {seed: float(np.mean([s[seed] for s in streams])) for seed in set.intersection(*map(set, streams))}


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
    parser.add_argument(
        "--streams", nargs="+", default=[*TUNED, *REPORTED], choices=[*TUNED, *REPORTED, *REAL]
    )
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=LEARNERS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--tuned", action="store_true", help="n* and theta* too")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "thesis_chapter8")
    parser.add_argument("--width", type=int, default=1000, help="of the drifts; 1: abrupt")
    parser.add_argument("--tables", type=Path, default=ROOT.parent / "shared" / "tables" / "thesis")
    asked = parser.parse_args()
    if asked.what == "trigger":
        trigger()
    elif asked.what == "selection":
        selection(asked.streams, asked.seeds, asked.rows, asked.width)
    elif asked.what == "tables":
        place = asked.out / f"tables_{asked.rows}.csv"
        seeds = list(range(asked.seeds))
        tables(asked.streams, asked.learners, asked.tuned, asked.rows, seeds, asked.data, place)
        show_tables(read(place), asked.tables)
    else:
        sea(asked.seeds)


if __name__ == "__main__":
    main()
