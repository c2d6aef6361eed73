"""Do bought values pay on kinds of data that no setting was looked at on?

    python experiments/cells_unseen.py [--sets xor rare ...] [--errors 10] [--draws 8] [--out cells_unseen.csv]
    python experiments/cells_unseen.py --summary [--out cells_unseen.csv]

Nine kinds are drawn anew for each draw, with 2,000 rows to predict, so a loss is known well. Four sets of scikit-learn
are cut into five folds, drawn `--draws` / 4 times. Beside each method that buys values stand buying nothing, and fixed
subsets of mRMR that cost as much (the number of columns whose prices come nearest to what the method paid on average),
decided by four classifiers. The summary has the difference of the losses with its standard error over draws or folds.
The file is written after each set, and sets that it holds are not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from cells_pay import DECIDE, METHODS, costs_of
from cells_peers import log_loss, roc_auc
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import StratifiedKFold

from tamis import FixedSubset

TEST = 2000
PRICE = 0.01
Drawn = tuple[np.ndarray, np.ndarray, int, Any]  # X, y, rows to learn from, prices
Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Any]  # X, y, train, test, prices


def few_noise(rng: np.random.Generator) -> Drawn:
    """40 rows of 100 columns that tell nothing of three classes."""
    return rng.normal(size=(40 + TEST, 100)), rng.choice(3, 40 + TEST, p=[0.5, 0.3, 0.2]), 40, PRICE


def xor(rng: np.random.Generator) -> Drawn:
    """The class is the sign of a product, in nine rows of ten; eight other columns tell nothing."""
    X = rng.normal(size=(400 + TEST, 10))
    return X, (X[:, 2] * X[:, 7] > 0) ^ (rng.random(len(X)) < 0.1), 400, PRICE


def blocks(rng: np.random.Generator) -> Drawn:
    """40 columns in eight blocks of five that are nearly the same; three blocks tell."""
    hidden = rng.normal(size=(300 + TEST, 8))
    y = hidden[:, :3] @ [1.5, 1.0, -1.0] + 0.5 * rng.normal(size=len(hidden)) > 0
    return np.repeat(hidden, 5, axis=1) + 0.3 * rng.normal(size=(len(hidden), 40)), y, 300, PRICE


def heavy(rng: np.random.Generator) -> Drawn:
    """Twelve columns whose tails have no variance; four of them tell."""
    y = rng.integers(0, 3, 300 + TEST)
    X = rng.standard_t(1.5, size=(len(y), 12))
    X[:, :4] += 1.5 * rng.normal(size=(3, 4))[y]
    return X, y, 300, PRICE


def gaps(rng: np.random.Generator) -> Drawn:
    """15 columns of which three values in ten are missing, large ones more often."""
    y = rng.integers(0, 2, 400 + TEST)
    X = rng.normal(size=(len(y), 15))
    X[:, :5] += 0.9 * y[:, None]
    return np.where(rng.random(X.shape) < 0.6 / (1.0 + np.exp(-X)), np.nan, X), y, 400, PRICE


def rare(rng: np.random.Generator) -> Drawn:
    """Five classes, of which two have a share of two and three in a hundred."""
    y = rng.choice(5, 500 + TEST, p=[0.6, 0.25, 0.1, 0.03, 0.02])
    y[:10] = np.arange(10) % 5
    X = rng.normal(size=(len(y), 20))
    X[:, :6] += 1.5 * rng.normal(size=(5, 6))[y]
    return X, y, 500, PRICE


def mixed(rng: np.random.Generator) -> Drawn:
    """Six categories whose codes have no order, counts, and numbers; the class follows a table of two categories."""
    codes = rng.integers(0, 6, size=(500 + TEST, 5))
    counts, numbers = rng.poisson(2.0, size=(len(codes), 5)), rng.normal(size=(len(codes), 5))
    score = rng.normal(size=(6, 6))[codes[:, 0], codes[:, 1]] + 0.5 * (counts[:, 0] - 2.0) + numbers[:, 0]
    return np.hstack([codes, counts, numbers]), score + 0.5 * rng.normal(size=len(codes)) > 0, 500, PRICE


def prices(rng: np.random.Generator) -> Drawn:
    """Twelve columns whose prices are .0005 to .05; the dear ones are those of less noise."""
    y = rng.integers(0, 3, 400 + TEST)
    price = np.geomspace(0.0005, 0.05, 12)
    X = (1.2 * rng.normal(size=(3, 12)))[y] + rng.normal(size=(len(y), 12)) * np.linspace(4.0, 0.7, 12)
    return X, y, 400, price


def spread(rng: np.random.Generator) -> Drawn:
    """The classes have the same means in ten columns, but not the same spread in four."""
    y = rng.integers(0, 2, 400 + TEST)
    X = rng.normal(size=(len(y), 10))
    X[:, :4] *= np.where(y, 2.5, 1.0)[:, None]
    return X, y, 400, PRICE


def diabetes(**_: Any) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_diabetes(return_X_y=True)
    return X, (y > np.median(y)).astype(np.int64)


DRAWN: dict[str, Callable[[np.random.Generator], Drawn]] = {
    f.__name__: f for f in (few_noise, xor, blocks, heavy, gaps, rare, mixed, prices, spread)
}
LOADED: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    "digits": load_digits, "wine": load_wine, "iris": load_iris, "diabetes": diabetes,
}  # fmt: skip


def parts(name: str, draws: int) -> Iterator[Part]:
    if name in DRAWN:
        for seed in range(draws):
            X, y, n, price = DRAWN[name](np.random.default_rng([seed, 15]))
            yield X, y.astype(np.int64), np.arange(n), np.arange(n, len(y)), price
        return
    X, y = LOADED[name](return_X_y=True)
    for seed in range(max(1, draws // 4)):
        for train, test in StratifiedKFold(5, shuffle=True, random_state=100 + seed).split(X, y):
            yield X, y, train, test, PRICE


def judge(part: Part, errors: float) -> dict[str, tuple[float, ...]]:
    """Return accuracy, values bought, loss, area under the ROC curve and log loss of each way to spend."""
    X, y, train, test, price = part
    Q = costs_of(y, errors)
    found = {}

    def note(way: str, belief: np.ndarray, bought: float, paid: float) -> None:
        label, true = (belief @ Q).argmin(axis=1), y[test]
        lost = float(Q[true, label].mean()) + paid
        found[way] = (
            float((label == true).mean()), bought, lost, roc_auc(belief, true), log_loss(belief, true),
        )  # fmt: skip

    share = np.bincount(y[train], minlength=len(Q)) / len(train)
    note("nothing", np.tile(share, (len(test), 1)), 0.0, 0.0)
    given = {"cost": price, "misclassification_cost": Q}
    order = FixedSubset(n_features=40, **given).fit(X[train], y[train])
    total = np.r_[0.0, np.cumsum(order.prices_)]
    cache: dict[tuple[int, str], tuple[np.ndarray, float]] = {}
    for method, make in METHODS.items():
        model = make(**given).fit(X[train], y[train])
        belief = model.predict_proba(X[test])
        paid = float(model.cost_.mean())
        note(method, belief, float(model.n_features_used_.mean()), paid)
        # A value that is missing costs nothing, so of some columns more can be had than their prices say.
        size = int(np.abs(total * (1.0 - np.isnan(X).mean()) - paid).argmin())
        for decide, classifier in DECIDE.items():
            if (size, decide) not in cache:
                fixed = FixedSubset(n_features=size, classifier=classifier(), **given).fit(X[train], y[train])
                belief = fixed.predict_proba(X[test])
                cache[size, decide] = belief, float(fixed.cost_.mean())
            note(f"{method} | fixed, {decide}", cache[size, decide][0], float(size), cache[size, decide][1])
    return found


def summary(path: Path) -> None:
    """Print a line for each set and method, and how often each is ahead or behind."""
    found: dict[tuple[str, str], dict[str, list[list[float]]]] = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            values = [float(row[name]) for name in ("accuracy", "bought", "loss")]
            found.setdefault((row["set"], row["errors"]), {}).setdefault(row["method"], []).append(values)
    beside = [*DECIDE, "nothing"]
    counts = {(method, other): [0, 0, 0, 0.0] for method in METHODS for other in beside}
    print("| data, errors | method | accuracy / values = loss | " + " | ".join(beside) + " |")
    print("|---|---|---|" + "---|" * len(beside))
    for (name, errors), of_case in found.items():
        for method in METHODS:
            mine = np.array(of_case[method])
            right, bought, lost = mine.mean(axis=0)
            cells = []
            for other in beside:
                theirs = np.array(of_case["nothing" if other == "nothing" else f"{method} | fixed, {other}"])
                gap = mine[:, 2] - theirs[:, 2]
                error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
                cells.append(f"{gap.mean():+.3f} ± {error:.3f}")
                count = counts[method, other]
                count[1 if abs(gap.mean()) <= error else 2 if gap.mean() > 0 else 0] += 1
                if gap.mean() > error:
                    count[3] = max(count[3], gap.mean() / max(error, 1e-12))
            text = f"{right:.3f} / {bought:.1f} = {lost:.3f}"
            print(f"| {name}, {float(errors):g} | {method} | {text} | " + " | ".join(cells) + " |")
    _print_probabilities(path)
    print("\nahead / level within 1 s.e. / behind (worst, in its s.e.)")
    for method in METHODS:
        texts = [
            f"{other} {a} / {level} / {b}" + (f" ({worst:.1f})" if b else "")
            for other in beside
            for a, level, b, worst in [counts[method, other]]
        ]
        print(f"  {method:14s} " + "  ".join(texts))


def _print_probabilities(path: Path) -> None:
    """Print the mean area under the ROC curve and log loss over all draws, beside fixed subsets at the same price."""
    rows: dict[str, list[list[float]]] = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["method"], []).append([float(row["auc"]), float(row["log_loss"])])
    print("\nAUC and log loss, and those of mRMR at the same price with logistic regression and boosting")
    for method in METHODS:
        ways = [method, f"{method} | fixed, logistic", f"{method} | fixed, boosting"]
        means = [np.nanmean(rows[way], axis=0) for way in ways]
        print(f"  {method:14s} " + "  ".join(f"{area:.3f}, {nats:.3f}" for area, nats in means))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=[*DRAWN, *LOADED], choices=[*DRAWN, *LOADED])
    parser.add_argument("--errors", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("cells_unseen.csv"))
    options = parser.parse_args()
    if options.summary:
        summary(options.out)
        return
    warnings.filterwarnings("ignore", module="sklearn")
    done = set()
    if options.out.exists():
        with options.out.open(encoding="utf-8") as file:
            done = {(row["set"], float(row["errors"])) for row in csv.DictReader(file)}
    for name in options.sets:
        if (name, options.errors) in done:
            continue
        rows = [
            (name, options.errors, method, i, *values)
            for i, part in enumerate(parts(name, options.draws))
            for method, values in judge(part, options.errors).items()
        ]
        new = not options.out.exists()
        with options.out.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(
                    ["set", "errors", "method", "draw", "accuracy", "bought", "loss", "auc", "log_loss"]
                )
            writer.writerows(rows)
        print(f"{name}, errors {options.errors:g}: done", flush=True)


if __name__ == "__main__":
    main()
