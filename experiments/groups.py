"""Columns that arrive in groups: GFSFS beside methods for single columns, and AlphaInvesting with and without groups.

    python experiments/groups.py [--part sets|noise|power] [--runs 100]

sets: five folds, `StratifiedKFold(5, shuffle=True, random_state=0)`, three nearest neighbours on what is selected.
noise: columns accepted of 200 that have nothing to do with a class of two. power: 100 categories of six values as
indicator columns, 500 rows; ten categories have effects of 0.5 standard deviations with alternating signs, and a
category is selected if any of its columns is; GFSFS has the classes y > 0.
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
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from tamis import GFSFS, SAOLA, AlphaInvesting, FastOSFS

SHARED = Path(os.environ.get("TAMIS_SHARED", Path(__file__).parents[2] / "shared"))
SETS = ("allaml", "srbct", "spambase", "madelon")
N_CATEGORIES, N_VALUES, N_TRUE = 100, 6, 10


def runs_of(width: int, p: int) -> dict[int, list[int]]:
    return {start: [*range(start, min(start + width, p))] for start in range(0, p, width)}


def of_sets() -> None:
    methods: dict[str, Callable[[int], Any]] = {
        "SAOLA": lambda p: SAOLA("g-square"),
        "Fast-OSFS": lambda p: FastOSFS("g-square"),
        "GFSFS, single columns": lambda p: GFSFS(None),
        "GFSFS, groups of ten": lambda p: GFSFS(runs_of(10, p)),
    }
    for name in SETS:
        with np.load(SHARED / "data" / name / "data.npz", allow_pickle=False) as arrays:
            X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)
        for title, make in methods.items():
            accuracies, sizes = [], []
            for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
                kept = make(X.shape[1]).fit(X[train], y[train]).get_support()
                knn = KNeighborsClassifier(3).fit(X[train][:, kept], y[train])
                accuracies.append(knn.score(X[test][:, kept], y[test]))
                sizes.append(kept.sum())
            print(f"{name:10} {title:24} {np.mean(accuracies):.3f} {np.mean(sizes):6.1f}", flush=True)


def of_noise(runs: int) -> None:
    for n in (60, 200, 1000):
        accepted = {None: 0, 5: 0}
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            X, y = rng.normal(size=(n, 200)), rng.integers(0, 2, size=n)
            for width in accepted:
                groups = None if width is None else runs_of(width, 200)
                accepted[width] += len(GFSFS(groups).fit(X, y).selected_)
        print(f"{n:5} rows", {width: count / runs for width, count in accepted.items()}, flush=True)


def categories(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return indicator columns, a numeric target, and which categories have an effect."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, N_VALUES, size=(500, N_CATEGORIES))
    true = np.isin(np.arange(N_CATEGORIES), rng.choice(N_CATEGORIES, N_TRUE, replace=False))
    effect = 0.5 * np.where(np.arange(N_VALUES) % 2 == 0, 1.0, -1.0)
    y = effect[codes[:, true]].sum(axis=1) + rng.normal(size=500)
    return np.eye(N_VALUES)[codes].reshape(500, -1), y, true


def of_power(runs: int) -> None:
    groups = runs_of(N_VALUES, N_CATEGORIES * N_VALUES)
    methods: dict[str, Callable[[], Any]] = {
        "alpha-investing": lambda: AlphaInvesting(target_fdr=0.1),
        "alpha-investing, groups": lambda: AlphaInvesting(target_fdr=0.1, groups=groups),
        "logistic": lambda: AlphaInvesting("logistic", target_fdr=0.1),
        "logistic, groups": lambda: AlphaInvesting("logistic", target_fdr=0.1, groups=groups),
        "GFSFS": lambda: GFSFS(groups),
    }
    for title, make in methods.items():
        shares = []
        for seed in range(runs):
            X, y, true = categories(seed)
            target = y if title.startswith("alpha") else (y > 0).astype(int)
            kept = make().fit(X, target).get_support().reshape(N_CATEGORIES, N_VALUES).any(axis=1)
            shares.append(((kept & ~true).sum() / max(kept.sum(), 1), kept[true].mean()))
        mean, error = np.mean(shares, axis=0), np.std(shares, axis=0) / np.sqrt(runs)
        print(
            f"{title:24} false {mean[0]:.3f} ({error[0]:.3f}), power {mean[1]:.3f} ({error[1]:.3f})",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("sets", "noise", "power"))
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.part in (None, "sets"):
        of_sets()
    if options.part in (None, "noise"):
        of_noise(options.runs)
    if options.part in (None, "power"):
        of_power(options.runs)


if __name__ == "__main__":
    main()
