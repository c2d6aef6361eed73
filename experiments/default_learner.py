"""Which linear learner is the default? Accuracy with every feature on 21 streams, test-then-train in batches of 100.

    python experiments/default_learner.py [--rows 30000] [--sets electricity AGR]

The streams are those of real_models.py of up to 30,000 rows (wide ones: 12 million values), the first order or seed. No
setting is chosen for a stream; the default is the setting with the largest mean. docs/linear.md has the table.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from real_models import load

from tamis import Perceptron, SGDLogisticRegression, prequential

DATA = Path(os.environ.get("TAMIS_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"
SETS = (
    "electricity", "usenet", "usenet2", "a8a", "dota2", "isolet", "madelon", "magic04", "mnist", "pcmac", "spambase",
    "splice", "url_day0_part", "AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA", "hyperplane",
)  # fmt: skip
LEARNERS = {
    "Perceptron": lambda: Perceptron(),
    "optimal, alpha 1e-4": lambda: SGDLogisticRegression(),
    "optimal, alpha .03": lambda: SGDLogisticRegression(alpha=0.03),
    "constant .003": lambda: SGDLogisticRegression(learning_rate="constant", eta0=0.003),
    "constant .01": lambda: SGDLogisticRegression(learning_rate="constant"),
    "constant .03": lambda: SGDLogisticRegression(learning_rate="constant", eta0=0.03),
    "constant .01, alpha .01": lambda: SGDLogisticRegression(learning_rate="constant", alpha=0.01),
    "invscaling .1": lambda: SGDLogisticRegression(learning_rate="invscaling", eta0=0.1, power_t=0.25),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="NAME")
    given = parser.parse_args()
    print(f"| stream | {' | '.join(LEARNERS)} |\n| --- |{' ---: |' * len(LEARNERS)}")
    table = []
    for name in given.sets:
        X, y = load(name, 0, given.rows, DATA)
        n = min(len(y), 12_000_000 // X.shape[1])
        row = []
        for make in LEARNERS.values():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # remarks on the result
                result = prequential((X[:n], y[:n]), None, make(), baselines="none", auc=False)
            row.append(result.summary()["accuracy"])
        table.append(row)
        print(f"| {name} | {' | '.join(f'{value:.3f}' for value in row)} |", flush=True)
    print(f"| mean | {' | '.join(f'{value:.3f}' for value in np.mean(table, axis=0))} |")


if __name__ == "__main__":
    main()
