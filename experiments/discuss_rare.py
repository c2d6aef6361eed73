"""How many features DISCUSS keeps where a class is rare, and what a longer window or filling up to the count is worth.

    python experiments/discuss_rare.py [--data FOLDER] [--rows 12000] [--seeds 1] [--streams NAMES] [--shares]

The streams with a rare class of `experiments/auto_candidates.py` (1 %, or 5 % of one class of a real set), prequential
evaluation in batches of 100 rows with Gaussian naive Bayes; 10 features asked for (5 where there are 10 or fewer). For
each variant: the AUC, and the mean number of features that are kept once the first window is full.

`--shares` thins the other class instead, so that the rare class has 2.5 % to 50 % of at most 8,000 rows: from which
share on filling stops paying.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from auto_candidates import RARE, ROOT, rare_rows, rows_of
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

from tamis import DISCUSS
from tamis.learners.traits import restrict_columns

VARIANTS: dict[str, Callable[[int], Any]] = {
    "only what passes": lambda k: DISCUSS(k, min_features=1),
    "filled": lambda k: DISCUSS(k, min_features=k),
    "window 2000": lambda k: DISCUSS(k, window=2000, min_features=1),
    "window 5000": lambda k: DISCUSS(k, window=5000, min_features=1),
    "window 5000 filled": lambda k: DISCUSS(k, window=5000, min_features=k),
}


def cell(X: Any, y: Any, make: Callable[[int], Any]) -> tuple[float, float]:
    """Return the AUC of the rows after the first 1,000, and how many features were kept at the end of each batch."""
    selector, learner, classes = make(10 if X.shape[1] > 10 else 5), GaussianNB(), np.unique(y)
    kept, scores, counts = np.arange(X.shape[1]), [], []
    for start in range(0, len(y), 100):
        rows, labels = X[start : start + 100], y[start : start + 100]
        if start >= 1000:
            scores.append(restrict_columns(learner, kept).predict_proba(rows[:, kept])[:, 1])
        learner.partial_fit(rows, labels, classes=classes)
        selector.partial_fit(rows, labels, classes=classes)
        kept = selector.get_support(indices=True)
        if selector.n_seen_ > selector.window and len(selector.selected_):
            counts.append(len(kept))
    return float(roc_auc_score(y[1000:] == classes[1], np.concatenate(scores))), float(
        np.mean(counts)
    ) if counts else np.nan


def thinned(kind: str, share: float) -> tuple[Any, Any]:
    """Return shuffled rows of which a share has the rare class."""
    X, y = (np.concatenate(part) for part in zip(*(rare_rows(kind, seed) for seed in (1, 2, 3)), strict=True))
    rng = np.random.default_rng(0)
    rare, others = np.flatnonzero(y == 1), rng.permutation(np.flatnonzero(y == 0))
    at = rng.permutation(np.r_[rare, others[: int(len(rare) / share * (1.0 - share))]])[:8000]
    return X[at], y[at]


def by_share() -> None:
    kinds, variants = ("copies", "weak", "strong", "tails", "variance", "bits"), list(VARIANTS.values())[:2]
    print(
        "| share | " + " | ".join(kinds) + " | mean gain of filling |\n|---" + "|---" * (len(kinds) + 1) + "|"
    )
    for share in (0.025, 0.05, 0.1, 0.2, 0.5):
        found = np.array([[cell(*thinned(kind, share), make)[0] for make in variants] for kind in kinds])
        line = " | ".join(f"{plain:.3f} / {filled:.3f}" for plain, filled in found)
        print(f"| {share:g} | {line} | {np.mean(found[:, 1] - found[:, 0]):+.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--streams", default=",".join(RARE))
    parser.add_argument("--shares", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    if options.shares:
        by_share()
        return
    print("| stream | " + " | ".join(VARIANTS) + " |\n|---" + "|---" * len(VARIANTS) + "|")
    table = []
    for name in options.streams.split(","):
        found = np.zeros((len(VARIANTS), 2))
        for seed in range(1, options.seeds + 1):
            X, y = rows_of(name, options.data, 20_000, seed)
            X, y = (
                np.asarray(X, dtype=float)[: options.rows],
                np.unique(y, return_inverse=True)[1][: options.rows],
            )
            found += [cell(X, y, make) for make in VARIANTS.values()]
        found /= options.seeds
        table.append(found)
        print(f"| {name} | " + " | ".join(f"{auc:.3f} ({n:.1f})" for auc, n in found) + " |", flush=True)
    print("| **mean** | " + " | ".join(f"{auc:.3f} ({n:.1f})" for auc, n in np.mean(table, axis=0)) + " |")


if __name__ == "__main__":
    main()
