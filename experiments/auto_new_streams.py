"""`Auto` beside every column on streams that its rule was not chosen on: nine kinds, nine seeds, a Perceptron.

    python experiments/auto_new_streams.py [--out FILE]

make_classification with 20, 60 and 150 columns, and with other columns from half-way; handwritten digits with 64
columns of noise; 60 columns of which each is like the one before it, or that hold still in time. Test-then-train in
batches of 100 rows, accuracy in percent. With --out, the cells are kept as JSON, to be compared with those of other
code.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import Perceptron

from tamis import Auto, prequential

STREAMS = (
    "mc20",
    "mc20-drift",
    "mc60",
    "mc60-drift",
    "mc150",
    "mc150-drift",
    "digits",
    "ar-columns",
    "ar-time",
)
INFORMATIVE = {20: 5, 60: 10, 150: 15}


def rows_of(name: str, seed: int) -> tuple[Any, Any]:
    if name.startswith("mc"):
        p = int(name.removesuffix("-drift")[2:])
        k = INFORMATIVE[p]
        X, y = make_classification(
            6000, p, n_informative=k, n_redundant=k // 2, class_sep=0.7, flip_y=0.05, random_state=seed
        )
        if name.endswith("drift"):
            X[3000:] = X[3000:, np.random.default_rng(seed).permutation(p)]
        return X, y
    rng = np.random.default_rng(seed)
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        at = np.concatenate([rng.permutation(len(y)) for _ in range(3)])
        return np.hstack([X[at], rng.normal(size=(len(at), 64))]), y[at]
    X = rng.normal(size=(6000, 60))
    along = X.T if name == "ar-columns" else X
    for i in range(1, len(along)):
        along[i] = 0.9 * along[i - 1] + np.sqrt(1 - 0.81) * along[i]
    weights = np.zeros(60)
    weights[rng.choice(60, 6, False)] = rng.normal(size=6)
    signal = X @ weights
    return X, (signal + 0.5 * signal.std() * rng.normal(size=6000) > 0).astype(int)


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--out", type=Path)
    args = given.parse_args()
    cells: dict[str, tuple[float, float]] = {}
    print("| stream | Auto | every column |")
    for name in STREAMS:
        for seed in range(9):
            learner = Perceptron(random_state=0)
            told = prequential(rows_of(name, seed), Auto(), learner, baselines="all", auc=False).summary()
            cells[f"{name} {seed}"] = 100 * told["accuracy"], 100 * told["all_accuracy"]
        auto, every = np.mean([cells[f"{name} {seed}"] for seed in range(9)], axis=0)
        print(f"| {name} | {auto:.2f} | {every:.2f} |", flush=True)
    auto, every = np.array(list(cells.values())).T
    print(
        f"\nmean {auto.mean():.2f}, every column {every.mean():.2f}; of {len(auto)} runs over half a point behind it:"
    )
    print(
        f"{(auto - every < -0.5).sum()}, ahead: {(auto - every > 0.5).sum()}; worst {(auto - every).min():.1f}"
    )
    if args.out:
        args.out.write_text(json.dumps(cells), encoding="utf-8")


if __name__ == "__main__":
    main()
