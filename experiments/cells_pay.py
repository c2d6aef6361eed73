"""Do bought values pay? Every cell classifier beside buying nothing, the same values for every row, and all of them.

    python experiments/cells_pay.py [--sets wdbc cube ...] [--prices 0.01 0.05] [--out cells_pay.csv]

Five folds, the same for all. A fixed subset is `FixedSubset` with as many values as the method bought on average
(rounded), decided by its own discriminant, logistic regression, naive Bayes or boosting. The loss is the share of
errors and what the values cost. The file is written after each set, and sets that it holds are not run again.

CUBE: 20 values, 8 classes; three values beside each other, at the place of the class, are normal about its three bits
(sd 0.3), the others are normal about 0.5; 4,000 rows are learned from and 2,000 predicted. Its published curves were
read off a plot: DIME .76 with 7 values, GDFS .80 with 7.5.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamis import ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("TAMIS_SHARED", ROOT.parent / "shared"))
SETS = (
    "noise", "cleveland", "german", "ionosphere", "wdbc", "cube", "spambase", "splice", "colon", "srbct",
    "golub_leukemia", "allaml", "madelon", "dexter", "mnist38", "mnist",
)  # fmt: skip
MOST_ROWS = 5000
Found = dict[str, list[tuple[float, float, float]]]


def logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.5, max_iter=300))


DECIDE: dict[str, Callable[[], Any]] = {
    "discriminant": lambda: None, "logistic": logistic, "naive Bayes": GaussianNB,
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}  # fmt: skip
METHODS: dict[str, Callable[[float], Any]] = {
    "IFC2F": lambda price: IFC2F(price, random_state=0),
    "IFC2F uncalibrated": lambda price: IFC2F(price, calibrate=False, random_state=0),
    "ETANA": lambda price: ETANA(price, random_state=0),
    "ETANA uncalibrated": lambda price: ETANA(price, calibrate=False, random_state=0),
    "FETANA": lambda price: FETANA(price, random_state=0),
    "FETANA uncalibrated": lambda price: FETANA(price, calibrate=False, random_state=0),
    "AdaptiveIFC2F": lambda price: AdaptiveIFC2F(price, random_state=0),
    "AdaptiveIFC2F, tree": lambda price: AdaptiveIFC2F(price, decision="tree", random_state=0),
    "FixedSubset": lambda price: FixedSubset(price),
}


def cube(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(0, 8, n)
    X = rng.normal(0.5, 0.3, (n, 20))
    at = y[:, None] + np.arange(3)
    np.put_along_axis(X, at, rng.normal((y[:, None] >> np.arange(3)) & 1, 0.3), axis=1)
    return X, y


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    if name == "noise":
        return rng.normal(size=(400, 30)), (rng.random(400) < 0.258).astype(np.int64)
    if name == "cube":
        return cube(rng, 6000)
    path = SHARED / "data" / name.replace("38", "") / "data.npz"
    with np.load(path, allow_pickle=False) as arrays:
        y = arrays["y"].astype(np.int64)
        X = sp.load_npz(path).toarray() if "indptr" in arrays else arrays["X"]
    X = X.astype(np.float64)
    if name == "mnist38":
        X, y = X[(y == 3) | (y == 8)], y[(y == 3) | (y == 8)] // 5
    if len(y) > MOST_ROWS:
        rows = rng.permutation(len(y))[:MOST_ROWS]
        X, y = X[rows], y[rows]
    return X, y


def folds(name: str, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if name == "cube":
        yield np.arange(4000), np.arange(4000, 6000)
    else:
        yield from StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(len(y)), y)


def judge(name: str, X: np.ndarray, y: np.ndarray, price: float) -> Found:
    """Return accuracy, values bought and seconds of processor time of each way to spend, fold by fold."""
    found: Found = {}
    for train, test in folds(name, y):
        majority = np.bincount(y[train]).argmax()
        found.setdefault("nothing", []).append((float((y[test] == majority).mean()), 0.0, 0.0))
        cache: dict[tuple[int, str], float] = {}
        for method, make in METHODS.items():
            start = time.process_time()
            model = make(price).fit(X[train], y[train])
            right = float((model.predict(X[test]) == y[test]).mean())
            seconds, bought = time.process_time() - start, float(model.n_features_used_.mean())
            found.setdefault(method, []).append((right, bought, seconds))
            size = round(bought)
            for decide, classifier in DECIDE.items():
                if (size, decide) not in cache:
                    fixed = FixedSubset(price, n_features=size, classifier=classifier())
                    cache[size, decide] = float(
                        (fixed.fit(X[train], y[train]).predict(X[test]) == y[test]).mean()
                    )
                found.setdefault(f"{method} | fixed, {decide}", []).append(
                    (cache[size, decide], float(size), 0.0)
                )
        filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        all_of_them = logistic().fit(filled[train], y[train]).score(filled[test], y[test])
        found.setdefault("all values, logistic", []).append((float(all_of_them), float(X.shape[1]), 0.0))
    return found


def show(name: str, price: float, found: Found) -> None:
    print(
        f"\n{name}, a value costs {price}: accuracy / values = loss; fixed subsets of that size: "
        + ", ".join(DECIDE)
    )
    for method, folds_ in found.items():
        if "|" in method:
            continue
        right, bought, seconds = np.mean(folds_, axis=0)
        beside = [
            np.mean(found[f"{method} | fixed, {d}"], axis=0)[0]
            for d in DECIDE
            if f"{method} | fixed, {d}" in found
        ]
        text = "  ".join(f"{value:.3f}" for value in beside)
        print(
            f"  {method:22s} {right:.3f} / {bought:5.2f} = {1 - right + price * bought:.3f}   {text}   {seconds:.1f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--prices", nargs="+", type=float, default=[0.01])
    parser.add_argument("--out", type=Path, default=Path("cells_pay.csv"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")
    done = set()
    if options.out.exists():
        with options.out.open(encoding="utf-8") as file:
            done = {(row["set"], float(row["price"])) for row in csv.DictReader(file)}
    for name in options.sets:
        for price in options.prices:
            if (name, price) in done:
                continue
            found = judge(name, *load(name), price)
            show(name, price, found)
            new = not options.out.exists()
            with options.out.open("a", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                if new:
                    writer.writerow(["set", "price", "method", "fold", "accuracy", "bought", "seconds"])
                writer.writerows(
                    (name, price, method, i, *values)
                    for method, each in found.items()
                    for i, values in enumerate(each)
                )


if __name__ == "__main__":
    main()
