"""The constants of `Auto` at half and at twice their value: accuracy on six streams, and how many features are kept.

    python experiments/auto_constants.py [--learner linear|naive-bayes] [--rows 4000]

Test-then-train in batches of 100 rows; logistic regression or Gaussian naive Bayes on the features that `Auto` selects.
The streams are those of real_models.py: AGR, SEA and BG2 drift, electricity has its order, spambase and splice are
shuffled. Nothing was chosen by this table; it shows which constants matter. docs/evidence/auto.md has it.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from real_models import load
from sklearn.naive_bayes import GaussianNB

from tamis import Auto, SGDLogisticRegression, prequential
from tamis.rows.auto import auto, paired

DATA = Path(os.environ.get("TAMIS_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"
SETS = ("AGR", "SEA", "BG2", "electricity", "spambase", "splice")
CONSTANTS = (
    ("rows before candidates are compared", auto, "_DECIDED"),
    ("rows sufficient for a smaller candidate", auto, "_ENOUGH"),
    ("rows over which young moments fade", auto, "_YOUNG"),
    ("threshold of the restart", auto, "_RESTART"),
    ("threshold after an alarm", auto, "_ALARMED"),
    ("slack per row of the restart", auto, "_SLACK"),
    ("rows for a restart, at most", auto, "_WINDOW"),
    ("rows for a restart, at least", auto, "_LEAST"),
    ("loss after which a selector is suspended", auto, "_HOPELESS"),
    ("rows after which it is suspended", auto, "_TRIAL"),
    ("first fraction of the features", auto, "_BEGIN"),
    ("rows that are compared", paired, "_LAST"),
    ("additional errors of caution", paired, "_CAUTION"),
)


def changed(name: str, value: float, factor: float) -> float:
    """Return the constant times a factor; of the fading factor, its number of rows."""
    if name == "_YOUNG":
        return 1.0 - (1.0 - value) / factor
    return type(value)(value * factor)


def measure(learner: str, rows: int) -> tuple[float, float]:
    """Return the mean accuracy in percent, and the mean share of the features that are kept at the end."""
    accuracy, kept = [], []
    for name in SETS:
        X, y = load(name, 0, rows, DATA)
        model = GaussianNB() if learner == "naive-bayes" else SGDLogisticRegression(learning_rate="constant")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on the result
            run = prequential((X, y), Auto(learner=learner), model, baselines="none", auc=False).summary()
        accuracy.append(100.0 * run["accuracy"])
        kept.append(100.0 * run["n_selected"] / X.shape[1])
    return float(np.mean(accuracy)), float(np.mean(kept))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learner", choices=("linear", "naive-bayes"), default="linear")
    parser.add_argument("--rows", type=int, default=4000)
    given = parser.parse_args()
    print(f"| constant | value | half: {given.learner} | kept | twice | kept |")
    print("| --- |" + " ---: |" * 5)
    accuracy, kept = measure(given.learner, given.rows)
    print(f"| as it is | | {accuracy:.1f} | {kept:.0f} % | {accuracy:.1f} | {kept:.0f} % |", flush=True)
    for title, module, name in CONSTANTS:
        value, cells = getattr(module, name), []
        for factor in (0.5, 2.0):
            with patch.object(module, name, changed(name, value, factor)):
                accuracy, kept = measure(given.learner, given.rows)
            cells.append(f"{accuracy:.1f} | {kept:.0f} %")
        print(f"| {title} | {value:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
