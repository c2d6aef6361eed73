"""Chapter 9 of Barddal's thesis rerun: learners with ABFS, with the truth, with nothing; and with what came after.

    python experiments/thesis_chapter9.py FOLDER [--irrelevant 100 200 500] [--seeds 30] [--learners nb knn ...]
        [--selectors none oracle abfs joint discuss] [--streams BG1 SEA ...] [--rows 200000] [--jobs 2]
        [--protocol chapter9] [--published TABLES] [--report page.html]

Streams of the chapter: 200,000 rows, three concepts, drifts of width 5000, and 100, 200 or 500 features that never
matter, half of them numbers and half bits; or, with `--protocol thesis`, those of Table 4.1. Prints, for each number of
irrelevant features, accuracy beside Tables 9.1 to 9.3, selection accuracy with its two parts, stability over time, rows
until the accuracy has recovered, and seconds (Table 9.4 has those of another machine). The page of `--report` has the
selection maps beside the truth and the curves over time with the drifts marked. Every finished cell is kept in FOLDER
and not run again.
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

from tamis import run_experiment
from tamis.evaluate import ExperimentResult

# As in the published tables: no scaling, nothing beside the run.
PLAIN: dict[str, Any] = {"scale": "none", "baselines": "none"}
SEVEN = ("AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA")
NAMES = {"nb": "NB", "knn": "KNN", "hoeffding-tree": "HT", "hoeffding-adaptive-tree": "HAT"}
SUFFIX = {"none": "", "oracle": "_ORACLE", "abfs": "_ABFS"}
METRICS = ("accuracy", "selection_accuracy", "rsr", "cucp", "stability", "recovery_rows", "seconds")


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


def value(result: ExperimentResult, stream: str, selector: str, learner: str, metric: str) -> float:
    cells = result.cells
    here = (cells["stream"] == stream) & (cells["selector"] == selector) & (cells["learner"] == learner)
    here &= cells["status"] == "done"
    if metric not in cells or not here.any():
        return float("nan")
    found = np.asarray(cells[metric], dtype=float)[here]
    return float(found[~np.isnan(found)].mean()) if not np.isnan(found).all() else float("nan")


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
                told = known.get((stream, NAMES.get(learner, "") + SUFFIX.get(selector, "?")))
                found = 100.0 * value(result, stream, selector, learner, "accuracy")
                words.append(f"{found:.2f}" + (f" ({told:.2f})" if told is not None else ""))
            print(f"| {stream} | " + " | ".join(words) + " |")
    learner = args.learners[0]
    shown = [metric for metric in METRICS[1:] if metric in result.cells]
    print(f"\n### selections, {n_irrelevant} irrelevant features, with {learner}\n")
    print("| stream | selector | " + " | ".join(shown) + " |\n" + "| --- " * (len(shown) + 2) + "|")
    for stream in args.streams:
        for selector in args.selectors:
            words = [f"{value(result, stream, selector, learner, metric):.3f}" for metric in shown]
            print(f"| {stream} | {selector} | " + " | ".join(words) + " |")


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
    args = parser.parse_args()
    for n_irrelevant in args.irrelevant if args.protocol == "chapter9" else [0]:
        options: dict[str, Any] = {"protocol": args.protocol}
        if args.protocol == "chapter9":
            options["n_irrelevant"] = n_irrelevant
        if args.rows:
            options["n_rows"] = args.rows
        result = run_experiment(
            {name: (name, options) for name in args.streams},
            args.selectors,
            args.learners,
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
