"""What the inertia of ForwardPartialCorrelation costs in accuracy: 10 % of the features, several sets.

    python experiments/forward_inertia.py [--data FOLDER] [--rows 3000] [--sets NAMES] [--inertias 3.5,2,1]

Prequential evaluation (test-then-train) in batches of 100 rows; features scaled to [0, 1]; real sets in the order of
time or shuffled. For each inertia: accuracy of a Perceptron / of Gaussian naive Bayes (share of the selected features
that stay from one batch to the next). "sensors" are 500 columns that share 25 factors (`experiments/fires_default.py`).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from auto_candidates import ROOT
from auto_candidates import rows_of as candidate_rows
from fires_classes import KEEL, Learners
from fires_classes import rows_of as class_rows
from fires_default import sensors

from tamis import ForwardPartialCorrelation

SETS = (
    "spambase", "sensors", "usenet", "usenet2", "german", "splice", "madelon", "satimage", "isolet", "AGR", "SEA50",
)  # fmt: skip


def rows_of(name: str, data: Path, n_rows: int) -> tuple[Any, Any]:
    if name == "sensors":
        X, y = sensors(500).take(n_rows)
    elif name in KEEL:
        X, y = class_rows(name, data)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
    else:
        X, y = candidate_rows(name, data, 4000, 1)
    X, y = np.asarray(X, dtype=float)[:n_rows], np.unique(y, return_inverse=True)[1][:n_rows]
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return (X - low) / np.where(width > 0, width, 1.0), y


def cell(X: Any, y: Any, inertia: float) -> tuple[float, float, float]:
    selector, learners, classes = ForwardPartialCorrelation(0.1, inertia=inertia), Learners(), np.unique(y)
    kept, stay = np.arange(X.shape[1]), list[float]()
    for start in range(0, len(y) - 99, 100):
        rows, labels = X[start : start + 100], y[start : start + 100]
        learners.step(rows, labels, {0.1: kept}, classes, start > 0)
        before = kept
        kept = selector.partial_fit(rows, labels, classes=classes).get_support(indices=True)
        if start:
            stay.append(float(np.isin(kept, before).mean()))
    right = learners.right
    return float(np.mean(right["linear", 0.1])), float(np.mean(right["bayes", 0.1])), float(np.mean(stay))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--inertias", default="3.5,2,1")
    options = parser.parse_args()
    inertias, table = [float(value) for value in options.inertias.split(",")], []
    for name in options.sets.split(","):
        X, y = rows_of(name, options.data, options.rows)
        table.append([cell(X, y, inertia) for inertia in inertias])
        line = " | ".join(f"{linear:.3f} / {bayes:.3f} ({stay:.2f})" for linear, bayes, stay in table[-1])
        print(f"| {name} | {line} |", flush=True)
    line = " | ".join(
        f"{linear:.3f} / {bayes:.3f} ({stay:.3f})" for linear, bayes, stay in np.mean(table, axis=0)
    )
    print(f"| **mean** | {line} |")


if __name__ == "__main__":
    main()
