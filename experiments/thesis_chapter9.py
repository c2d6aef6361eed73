"""Chapter 9 of Barddal's thesis rerun: learners with ABFS, with the truth, with nothing; and with what came after.

    python experiments/thesis_chapter9.py FOLDER [--irrelevant 100 200 500] [--seeds 30] [--learners nb knn ...]
        [--selectors none oracle abfs joint discuss] [--streams BG1 SEA ...] [--rows 200000] [--jobs 2]
        [--protocol chapter9] [--published TABLES] [--report page.html]
    python experiments/thesis_chapter9.py FOLDER --real IADS SPAM [--learners nb ...] [--selectors none abfs ...]

Streams of the chapter: 200,000 rows, three concepts, drifts of width 5000, and 100, 200 or 500 features that never
matter, half of them numbers and half bits; or, with `--protocol thesis`, those of Table 4.1. Prints, for each number of
irrelevant features, accuracy with its 95 % confidence interval beside Tables 9.1 to 9.3, selection accuracy with its
two parts, stability over time, rows until the accuracy has recovered, and seconds (Table 9.4 has those of another
machine). The page of `--report` has the selection maps beside the truth and the curves over time with the drifts
marked. Every finished cell is kept in FOLDER and not run again. Memory is that of the numbers that selector and learner
hold (Tables 9.5 and 9.8 have GB-hours).

`--real`: Tables 9.6 to 9.8. IADS are 998 rows of 3,278, shuffled, with means in place of missing values. ABFS has the
chapter's settings for real sets, a grace period of 100.
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from thesis_chapter7 import MOA, real, with_interval

from tamis import prequential, run_experiment
from tamis.catalog import find, find_learner
from tamis.evaluate import ExperimentResult

ROOT = Path(__file__).resolve().parents[1]
# As in the published tables: no scaling, nothing beside the run.
PLAIN: dict[str, Any] = {"scale": "none", "baselines": "none", "replay": "always"}
SEVEN = ("AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA")
NAMES = {"nb": "NB", "knn": "KNN", "hoeffding-tree": "HT", "hoeffding-adaptive-tree": "HAT"}
SUFFIX = {"none": "", "oracle": "_ORACLE", "abfs": "_ABFS"}
METRICS = ("accuracy", "selection_accuracy", "rsr", "cucp", "stability", "recovery_rows", "seconds")
COSTS = ("seconds", "model_bytes", "ram_hours")
REAL = {"IADS": ("ads", "shuffled"), "SPAM": ("spam", "")}


def published(
    folder: Path | None, n_irrelevant: int, table: str | None = None
) -> dict[tuple[str, str], float]:
    """Return the figures of a table by stream and column; none without the tables."""
    number = table or {100: "9_1", 200: "9_2", 500: "9_3"}.get(n_irrelevant)
    path = folder / f"table_{number}.csv" if folder and number else None
    if path is None or not path.exists():
        return {}
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        (row["experiment"], name): float(value)
        for row in rows
        for name, value in row.items()
        if name != "experiment" and value
    }


def ram_hours(folder: Path | None, table: str) -> dict[tuple[str, str], str]:
    """Return the published GB-hours by stream and column; the exponent is ? where the text of the table lost it."""
    path = folder / f"table_{table}.csv" if folder else None
    if path is None or not path.exists():
        return {}
    with path.open(encoding="utf-8") as file:
        return {
            (
                row["experiment"],
                row["method"],
            ): f"{row['mantissa'] or '?'}e{row['exponent_if_legible'] or '?'}"
            for row in csv.DictReader(file)
        }


def values(result: ExperimentResult, stream: str, selector: str, learner: str, metric: str) -> np.ndarray:
    """Return a metric of the finished cells, one for each seed; none where the metric was not recorded."""
    cells = result.cells
    here = (cells["stream"] == stream) & (cells["selector"] == selector) & (cells["learner"] == learner)
    here &= cells["status"] == "done"
    if metric not in cells or not here.any():
        return np.zeros(0)
    return np.asarray(cells[metric], dtype=float)[here]


def value(result: ExperimentResult, stream: str, selector: str, learner: str, metric: str) -> float:
    recorded = values(result, stream, selector, learner, metric)
    return float("nan") if np.isnan(recorded).all() else float(np.nanmean(recorded))


def tell(result: ExperimentResult, args: Any, n_irrelevant: int) -> None:
    known = published(args.published, n_irrelevant) if args.protocol == "chapter9" else {}
    for learner in args.learners:
        print(f"\n### {learner}, {n_irrelevant} irrelevant features, accuracy in % (published)\n")
        print(
            "| stream | " + " | ".join(args.selectors) + " |\n" + "| --- " * (len(args.selectors) + 1) + "|"
        )
        for stream in args.streams:
            words = []
            for selector in args.selectors:
                printed = known.get((stream, NAMES.get(learner, "") + SUFFIX.get(selector, "?")))
                accuracies = 100.0 * values(result, stream, selector, learner, "accuracy")
                words.append(with_interval(accuracies) + (f" ({printed:.1f})" if printed is not None else ""))
            print(f"| {stream} | " + " | ".join(words) + " |")
    here = args.published if n_irrelevant == 500 else None
    columns = [(learner, selector) for learner in args.learners for selector in args.selectors]
    times = {key: f"{told:.0f}" for key, told in published(here, 500, "9_4").items()}
    for title, metric, shown_as, told in (
        ("seconds", "seconds", "{:.1f}", times),
        ("MB", "model_bytes", "{:.2f}", {}),
        ("GB-hours", "ram_hours", "{:.1e}", ram_hours(here, "9_5")),
    ):
        print(f"\n### {title} (published), {n_irrelevant} irrelevant features\n")
        head = " | ".join(f"{NAMES.get(a, a)}, {b}" for a, b in columns)
        print(f"| stream | {head} |\n" + "| --- " * (len(columns) + 1) + "|")
        for stream in args.streams:
            words = []
            for learner, selector in columns:
                found = value(result, stream, selector, learner, metric) / (1e6 if title == "MB" else 1.0)
                theirs = told.get((stream, NAMES.get(learner, "") + SUFFIX.get(selector, "?")))
                words.append(shown_as.format(found) + (f" ({theirs})" if theirs else ""))
            print(f"| {stream} | " + " | ".join(words) + " |")
    learner = args.learners[0]
    shown = [metric for metric in METRICS[1:] if metric in result.cells]
    print(f"\n### selections, {n_irrelevant} irrelevant features, with {learner}\n")
    print("| stream | selector | " + " | ".join(shown) + " |\n" + "| --- " * (len(shown) + 2) + "|")
    for stream in args.streams:
        for selector in args.selectors:
            words = [with_interval(values(result, stream, selector, learner, metric), 3) for metric in shown]
            print(f"| {stream} | {selector} | " + " | ".join(words) + " |")


def cost(
    seconds: float, size: float, hours: float, seconds_told: float | None, hours_told: str | None
) -> str:
    told = f" ({seconds_told:g} s, {hours_told or '-'})" if seconds_told is not None else ""
    return f"{seconds:.1f} s, {size / 1e6:.2f}, {hours:.1e}{told}"


def part(key: str, categorical: list[int]) -> Any:
    """Return a selector or learner by its key; ABFS as the chapter sets it for real sets."""
    if key == "none":
        return None
    entry = find_learner(key) if key in NAMES else find(key, "rows")
    own = {"grace_period": 100} if key == "abfs" else MOA if key.startswith("hoeffding") else {}
    made = entry.load()(**dict(entry.parameters), **own)
    return made.set_params(categorical=categorical) if "categorical" in made.get_params() else made


def run_real(args: Any) -> None:
    """Print Tables 9.6 to 9.8; a finished cell is kept in `real.csv` of the folder."""
    place = args.folder / "real.csv"
    args.folder.mkdir(parents=True, exist_ok=True)
    metrics = ("accuracy", *COSTS, "n_selected")

    def known() -> dict[tuple[str, ...], list[float]]:
        if not place.exists():
            return {}
        with place.open(encoding="utf-8") as file:
            return {tuple(row[:3]): [float(cell) for cell in row[3:]] for row in csv.reader(file)}

    for name in args.real:
        for learner in args.learners:
            for selector in args.selectors:
                if (name, learner, selector) in known():
                    continue
                stream, categorical = real(args.data, *REAL[name])
                if isinstance(stream, tuple):  # ABFS takes no missing values
                    X, y = stream
                    stream = np.where(np.isnan(X), np.nanmean(X, axis=0), X), y
                result = prequential(
                    stream, part(selector, categorical), part(learner, categorical), n_tracked=0, **PLAIN
                )
                told = result.summary()
                with place.open("a", encoding="utf-8", newline="") as file:
                    csv.writer(file).writerow(
                        [name, learner, selector, *(told[metric] for metric in metrics)]
                    )
                print(name, learner, selector, *(f"{told[metric]:.4g}" for metric in metrics), flush=True)
    right, times = published(args.published, 0, "9_6"), published(args.published, 0, "9_7")
    memory, found = ram_hours(args.published, "9_8"), known()
    print("\n| set | learner | selector | accuracy in % | seconds, MB, GB-hours (published) | features |")
    print("| --- " * 6 + "|")
    for (name, learner, selector), (accuracy, *costs, n_selected) in found.items():
        told = (name, NAMES[learner] + SUFFIX.get(selector, "?"))
        percent = f"{100 * accuracy:.1f}" + (f" ({right[told]:.1f})" if told in right else "")
        spent = cost(*costs, times.get(told), memory.get(told))
        print(f"| {name} | {learner} | {selector} | {percent} | {spent} | {n_selected:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--irrelevant", type=int, nargs="+", default=[100, 200, 500])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--learners", nargs="+", default=list(NAMES))
    parser.add_argument("--selectors", nargs="+", default=["none", "oracle", "abfs", "joint", "discuss"])
    parser.add_argument("--streams", nargs="+", default=list(SEVEN))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--protocol", choices=["chapter9", "thesis"], default="chapter9")
    parser.add_argument("--published", type=Path)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--real", nargs="+", choices=list(REAL))
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    args = parser.parse_args()
    if args.real:
        run_real(args)
        return
    for n_irrelevant in args.irrelevant if args.protocol == "chapter9" else [0]:
        options: dict[str, Any] = {"protocol": args.protocol}
        if args.protocol == "chapter9":
            options["n_irrelevant"] = n_irrelevant
        if args.rows:
            options["n_rows"] = args.rows
        result = run_experiment(
            {name: (name, options) for name in args.streams},
            args.selectors,
            {
                key: find_learner(key).load()(**MOA) if key.startswith("hoeffding") else key
                for key in args.learners
            },
            args.seeds,
            args.folder / f"{args.protocol}_{n_irrelevant}",
            n_jobs=args.jobs,
            batch_size=args.batch,
            n_tracked=0,
            **PLAIN,
        )
        for cell, error in result.failed.items():
            print(f"failed: {cell}: {error}")
        tell(result, args, n_irrelevant)
        if args.report:
            result.report(args.report.with_stem(f"{args.report.stem}_{n_irrelevant}"))


if __name__ == "__main__":
    main()
