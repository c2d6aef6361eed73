"""The cause that Watch names when the labels of a live model change, with delays and wrong "stale feature" alerts.

    OMP_NUM_THREADS=1 python experiments/watch_causes.py --runs 12
    OMP_NUM_THREADS=1 python experiments/watch_causes.py --runs 12 --designs logistic regression
    OMP_NUM_THREADS=1 python experiments/watch_causes.py --ablate --runs 2 --designs logistic few \
        --changes stale "noise 10"

A model is fitted on the first 1,500 rows and the others are watched in batches of 100, with their labels. After 2,500
watched rows, one thing changes, and 3,000 further rows follow. Eight features, of which the label depends on four:

    none        nothing
    stale       the values of the first feature are those of other rows
    weak stale  those of the third feature
    outside     a feature that did not matter becomes relevant
    noise 10    10 % of the labels are of another class (regression: the noise doubles)
    noise 25    25 % (regression: three times the noise)
    prior       rows are drawn so that the first class has half its share (regression: the target rises)
    halved      all coefficients are halved

Designs: "logistic" and "lgbm" for two classes, "few" for a logistic regression on the first three of the features,
"three" for three classes, "correlated" for features with a correlation of .6, "frame" for a pipeline with a text
column, "regression" and "trees" for a ridge regression and LightGBM.

For each change: the number of runs that name its cause first, the median delay in rows, runs with an alert "used but no
longer relevant" for a feature that still matters, and other causes named. With --ablate: the runs that name the cause,
and the median delay, with other values of the constants of the causes and of their comparison, one at a time, and the
causes that are named without a change in 10,000 rows of lots (experiments/watch_nulls.py).
"""

from __future__ import annotations

import argparse
import collections
import warnings
from typing import Any

import numpy as np
import pandas as pd
import watch_nulls
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tamis import Watch
from tamis.watch import causes, hypotheses

FITTED, BEFORE, AFTER, STEP = 1_500, 2_500, 3_000, 100
FIRST_SEED = 500
STALE = "used but no longer relevant"
CAUSES = {
    "none": "",
    "stale": STALE,
    "weak stale": STALE,
    "outside": "something outside the model matters now",
    "noise 10": "labels got noisier",
    "noise 25": "labels got noisier",
    "prior": "prior shift",
    "halved": "calibration changed",
}
DESIGNS = ("logistic", "lgbm", "few", "three", "correlated", "frame", "regression", "trees")
WEIGHTS = np.array([1.2, 1.0, 0.8, 0.5, 0.0, 0.0, 0.0, 0.0])


def stream(design: str, change: str, seed: int) -> tuple[Any, np.ndarray]:
    """Return the rows and the target."""
    rng = np.random.default_rng([12, seed])
    n = FITTED + BEFORE + AFTER
    late = np.arange(n) >= FITTED + BEFORE
    X = rng.normal(size=(n, 8))
    if design == "correlated":
        X = np.sqrt(0.6) * rng.normal(size=(n, 1)) + np.sqrt(0.4) * X
    f = X @ WEIGHTS
    f = (
        f + 1.5 * late * X[:, 7]
        if change == "outside"
        else np.where(late, f / 2, f)
        if change == "halved"
        else f
    )
    if design in ("regression", "trees"):
        size = np.where(late, {"noise 10": 2.0, "noise 25": 3.0}.get(change, 1.0), 1.0)
        y = f + 0.7 * size * rng.normal(size=n) + late * (change == "prior")
    elif design == "three":
        g = X @ np.roll(WEIGHTS, 1)
        g = np.where(late, g / 2, g) if change == "halved" else g
        y = (np.column_stack([np.zeros(n), 2 * f, 2 * g]) + rng.gumbel(size=(n, 3))).argmax(axis=1)
    else:
        y = (f + 0.5 * rng.logistic(size=n) > 0).astype(int)
    if design not in ("regression", "trees"):
        if change.startswith("noise"):
            flip = late & (rng.random(n) < (0.1 if change == "noise 10" else 0.25))
            n_classes = y.max() + 1
            y = np.where(flip, (y + rng.integers(1, n_classes, n)) % n_classes, y)
        if change == "prior":
            weight = np.where(late & (y == 1), 1 / 3, 1.0)
            keep = rng.random(n) < weight
            early = np.flatnonzero(keep & ~late)
            of_late = rng.choice(np.flatnonzero(keep & late), size=AFTER)
            X, y = X[np.append(early, of_late)], y[np.append(early, of_late)]
    if change in ("stale", "weak stale"):
        j, first = (0, 2)[change != "stale"], FITTED + BEFORE
        X[first:, j] = rng.permutation(X[first:, j])
    if design == "frame":
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
        frame["x1"] = np.where(X[:, 1] > 0.5, "high", np.where(X[:, 1] < -0.5, "low", "mid"))
        return frame, y
    return X, y


def model_of(design: str, X: Any, y: np.ndarray) -> Any:
    settings: Any = {"n_estimators": 40, "num_leaves": 15, "verbose": -1, "n_jobs": 1}
    if design == "lgbm":
        return LGBMClassifier(**settings).fit(X, y)
    if design == "trees":
        return LGBMRegressor(**settings).fit(X, y)
    if design == "regression":
        return Ridge().fit(X, y)
    if design == "few":
        return make_pipeline(
            ColumnTransformer([("few", "passthrough", [0, 1, 2])]), LogisticRegression(C=10)
        ).fit(X, y)
    if design == "frame":
        encoder = ColumnTransformer([("text", OneHotEncoder(), ["x1"])], remainder=StandardScaler())
        return make_pipeline(encoder, LogisticRegression()).fit(X, y)
    return LogisticRegression(C=10).fit(X, y)


def run(design: str, change: str, seed: int) -> tuple[list[tuple[int, str, str]], int]:
    """Return (row, cause, feature) of each alert after the change, and the number of alerts before it."""
    X, y = stream(design, change, seed)
    take = (lambda a, b: X.iloc[a:b]) if isinstance(X, pd.DataFrame) else (lambda a, b: X[a:b])
    task = "regression" if design in ("regression", "trees") else "classification"
    watch, alerts = Watch(model_of(design, take(0, FITTED), y[:FITTED]), task=task), []
    for start in range(FITTED, len(y), STEP):
        alerts += watch.update(take(start, start + STEP), y=y[start : start + STEP])
    found = [
        (
            alert["row"] - BEFORE,
            STALE if STALE in alert["rule"] else alert.get("cause") or "",
            str(alert["feature"]),
        )
        for alert in alerts
    ]
    return [one for one in found if one[0] > 0], sum(one[0] <= 0 for one in found)


def measure(design: str, change: str, seeds: range) -> tuple[int, list[int], int, int, dict[str, int]]:
    """Return the runs with the right cause, their delays, runs with a wrong feature, alerts before, other causes."""
    right, delays, wrong, early, others = 0, [], 0, 0, collections.Counter[str]()
    for seed in seeds:
        alerts, before = run(design, change, seed)
        early += before
        stale = {"stale": "0", "weak stale": "2"}.get(change)
        names = [
            (row, cause if cause != STALE or feature in (stale, f"x{stale}") else "wrong feature")
            for row, cause, feature in alerts
            if cause and (cause, feature) != (STALE, "None")  # the cause, beside the alert of its feature
        ]
        wrong += any(cause == "wrong feature" for _, cause in names)
        right += (names[0][1] if names else "") == CAUSES[change]
        delays += [row for row, cause in names[:1] if cause == CAUSES[change]]
        others.update({cause for _, cause in names} - {CAUSES[change], "wrong feature"})
    return right, delays, wrong, early, dict(others)


# Most of these values remove a distinction: that of two constants, or of a cause from the others.
ALTERNATIVES: list[tuple[Any, str, Any]] = [
    (causes, "_SURE_OF_LOSS", 0.99),
    (causes, "_TWICE", 0.995),
    (causes, "_SURE", 0.95),
    (causes, "_ALMOST_SURE", 0.99),
    (causes, "_FEWEST_INDEPENDENT", 10),
    (causes, "_FEWEST_ALIKE", 100),
    (hypotheses, "_SIZES", (0.3,)),
    (hypotheses, "_FLOOR", 0.02),
    (hypotheses, "_SELDOM", 0.0),
]


def ablate(designs: list[str], changes: list[str], seeds: range) -> None:
    """Print what other constants change, one at a time."""
    cells = [(design, change) for design in designs for change in changes]
    print("| constant | right | " + " | ".join(map(" ".join, cells)) + " | lots |")
    print("| --- |" + " ---: |" * (2 + len(cells)))
    for module, name, value in [(causes, "", ""), *ALTERNATIVES]:
        before = getattr(module, name, None)
        if name:
            setattr(module, name, value)
        found = [measure(design, change, seeds) for design, change in cells]
        each = [f"{one[0]}, {np.median(one[1]):.0f}" if one[1] else "0" for one in found]
        alarms = sum(watch_nulls.count("geometric lots", 10_000, seed)['cause != "none"'] for seed in seeds)
        if name:
            setattr(module, name, before)
        total = f"{sum(one[0] for one in found)} of {len(cells) * len(seeds)}"
        print(f"| {name or 'as it is'} {value} | {total} | {' | '.join(each)} | {alarms} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=DESIGNS)
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help="the first seed")
    parser.add_argument("--changes", nargs="+", choices=list(CAUSES), default=list(CAUSES))
    parser.add_argument("--ablate", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    seeds = range(options.seed, options.seed + options.runs)
    if options.ablate:
        ablate(options.designs, options.changes, seeds)
        return
    print(f"{'design':10} {'change':10} {'cause':>8} {'delay':>6} {'stale':>6} {'early':>6}  other causes")
    for design in options.designs:
        for change in options.changes:
            right, delays, wrong, early, others = measure(design, change, seeds)
            delay = f"{np.median(delays):.0f}" if delays else "-"
            print(
                f"{design:10} {change:10} {right:>2} of {options.runs:>2} {delay:>6} {wrong:>6} {early:>6}  {others}",
                flush=True,
            )


if __name__ == "__main__":
    main()
