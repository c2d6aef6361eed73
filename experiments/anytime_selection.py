"""How many of the features that a screen selects by evidence are false, at every look, and what looking at will costs.

    python experiments/anytime_selection.py [--runs 1000] [--score t] [--rows 1600] [--features 30]

The class decides five of the features, the others are independent of it. Every 100 rows the selection is looked at, by
evidence (`n_features_to_select=None, level=0.05`) and by Benjamini-Hochberg on the p-values of the same score. Printed:
the false discovery rate at the worst look (the mean over the runs of the share of false ones, with its standard error),
the share of runs with a false selection at some look, and the share of the five that is selected at the end. The last
table compares the evidence of 2 n rows with one test of n rows.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import Screening
from tamis.dependence.e_values import e_bh

LEVEL, RELEVANT, LOOK = 0.05, 5, 100
GROUP = (
    50  # runs that share their labels, and nothing else, are screened at once: features are tested one by one
)
FIRST = 6 / np.pi**2  # share of the level before the first restart
CASES = (
    "nothing relevant",
    "independent",
    "AR(.9) columns",
    "AR(.9) rows",
    "blocks of .9",
    "Cauchy",
    "lognormal, 5 % in class 1",
    "3 classes",
    "two drifts",
)


def noise(rng: np.random.Generator, case: str, n: int, p: int) -> np.ndarray:
    if case == "AR(.9) columns" or case == "AR(.9) rows":
        X = rng.normal(size=(p, n) if case.endswith("columns") else (n, p))
        for i in range(1, len(X)):
            X[i] = 0.9 * X[i - 1] + np.sqrt(1 - 0.81) * X[i]
        return np.ascontiguousarray(X.T) if case.endswith("columns") else X
    if case.startswith("blocks"):
        common = np.repeat(rng.normal(size=(n, p // 5)), 5, axis=1)
        return np.sqrt(0.9) * common + np.sqrt(0.1) * rng.normal(size=(n, p))
    if case == "Cauchy":
        return rng.standard_cauchy((n, p))
    return np.exp(rng.normal(size=(n, p))) if case.startswith("lognormal") else rng.normal(size=(n, p))


def stream(seed: int, case: str, n: int, p: int, effect: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of GROUP runs side by side, labels, and which features of a run are relevant in each row."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < (0.05 if case.startswith("lognormal") else 0.5)).astype(np.int64)
    if case == "3 classes":
        y = rng.integers(0, 3, n)
    X, relevant = noise(rng, case, n, p * GROUP), np.zeros((n, p), dtype=bool)
    drifts = [n // LOOK // 3 * LOOK, 2 * (n // LOOK // 3) * LOOK] if case == "two drifts" else []
    for i, rows in enumerate(np.split(np.arange(n), drifts)):
        if case != "nothing relevant":
            relevant[rows, RELEVANT * i : RELEVANT * (i + 1)] = True
    X += effect * np.tile(relevant, GROUP) * (y == 1)[:, None]
    return X, y, relevant


def benjamini_hochberg(p: np.ndarray, level: float) -> np.ndarray:
    enough = np.flatnonzero(np.sort(p) <= level * np.arange(1, len(p) + 1) / len(p))
    return p <= np.sort(p)[enough[-1]] if len(enough) else np.zeros(len(p), dtype=bool)


def watch(seed: int, case: str, score: str, n: int, p: int) -> np.ndarray:
    """Return the share of false features and that of the relevant ones found, (GROUP, 2 methods, n_looks, 2)."""
    X, y, relevant = stream(seed, case, n, p, 0.5)
    screen, found, share = Screening(None, scores=[score], level=LEVEL, eps=0.01), [], FIRST
    for start in range(0, n, LOOK):
        if start and (relevant[start] != relevant[start - 1]).any():
            screen.restart()  # as after a drift that was detected
            share = FIRST / (screen._n_restarts + 1) ** 2
        rows = slice(start, start + LOOK)
        screen.partial_fit(X[rows], y[rows], classes=range(3) if case == "3 classes" else [0, 1])
        with np.errstate(divide="ignore"):
            log_e = np.log(screen.evalues_).reshape(GROUP, p)
        pvalues = (np.ones(p * GROUP) if screen.pvalues_ is None else screen.pvalues_).reshape(GROUP, p)
        now = relevant[start]
        looks = []
        for e, q in zip(log_e, pvalues, strict=True):
            kept = (e_bh(e, LEVEL * share), benjamini_hochberg(q, LEVEL))
            looks.append([[k[~now].sum() / max(k.sum(), 1), k[now].sum() / max(now.sum(), 1)] for k in kept])
        found.append(looks)
    return np.array(found).transpose(1, 2, 0, 3)


def report(case: str, score: str, runs: int, n: int, p: int) -> None:
    all_ = np.concatenate([watch(seed, case, score, n, p) for seed in range(-(-runs // GROUP))])
    cells = []
    for method in range(2):
        false = all_[:, method, :, 0]
        worst = int(false.mean(axis=0).argmax())
        rate, error = false[:, worst].mean(), false[:, worst].std() / np.sqrt(len(all_))
        cells += [f"{rate:.4f} +- {error:.4f}", f"{(false > 0).any(axis=1).mean():.3f}"]
        cells += [f"{all_[:, method, -1, 1].mean():.3f}"]
    print(f"| {case} | {' | '.join(cells)} |", flush=True)


def power(score: str, runs: int, p: int) -> None:
    print("\n| effect | n | one test of n rows | evidence of 2 n rows |\n|---|---|---|---|")
    for effect, n in ((0.4, 500), (0.2, 2000)):
        fixed, anytime = [], []
        for seed in range(-(-runs // GROUP)):
            X, y, _ = stream(seed, "independent", 2 * n, p, effect)
            test = Screening(1, scores=[score], eps=0.01).partial_fit(X[:n], y[:n])
            fixed += [benjamini_hochberg(q, LEVEL)[:RELEVANT].mean() for q in test.pvalues_.reshape(GROUP, p)]
            screen = Screening(None, scores=[score], level=LEVEL, eps=0.01).partial_fit(X, y)
            log_e = np.log(screen.evalues_).reshape(GROUP, p)
            anytime += [e_bh(e, LEVEL * FIRST)[:RELEVANT].mean() for e in log_e]
        print(f"| {effect} | {n:,} | {np.mean(fixed):.3f} | {np.mean(anytime):.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--score", choices=("t", "fisher", "mi", "chi2", "gini"), default="t")
    parser.add_argument("--case", choices=CASES, action="append", help="only this one; may be repeated")
    parser.add_argument("--rows", type=int, default=1600)
    parser.add_argument("--features", type=int, default=30)
    given = parser.parse_args()
    three = "worst FDR | any false | found"
    print(
        f"| {given.score}, {given.runs} runs | {three} | p-values: {three} |\n|---|---|---|---|---|---|---|"
    )
    for case in given.case or CASES:
        report(case, given.score, given.runs, given.rows, given.features)
    power(given.score, given.runs // 5, given.features)


if __name__ == "__main__":
    main()
