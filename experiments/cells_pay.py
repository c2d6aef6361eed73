"""Do acquired values pay? Cell classifiers and a CART beside no values, the same ones for every row, and all of them.

    python experiments/cells_pay.py [--sets wdbc cube ...] [--prices 0.01 0.05] [--errors 10] [--draws 3]
        [--out cells_pay.csv]
    python experiments/cells_pay.py --matrix "[[0, 1], [5, 0]]" --sets wdbc german
    python experiments/cells_pay.py --summary [--out cells_pay.csv]

Five folds, the same for all, drawn once or, with `--draws`, more often; of the large sets 2,000 rows. A fixed subset is
`FixedSubset` (mRMR) with as many values as the method bought on average (rounded), decided by its own discriminant,
logistic regression, naive Bayes or boosting. Each has its accuracy, loss, area under the ROC curve and log loss. The
loss is what errors cost and what the values cost; with `--errors 10` taking the rarer classes for the most frequent one
costs 10 instead of 1, and with `--matrix` the costs are those given, and the matrix is a part of the name of the set.
The file is written after each set, and sets that it holds are not run again. The summary has mean ranks with their 95 %
intervals over sets and prices, and how often each method is ahead of the fixed subset.

All settings are the defaults. What is fixed in the code (the level of the filter, ridges, folds, depths, whether an
order wins ties) was looked at on the sets of CHOSEN_ON only.

CUBE: 20 values, 8 classes; three values beside each other, at the place of the class, are normal about its three bits
(sd 0.3), the others are normal about 0.5; 4,000 rows are learned from and 2,000 predicted. Its published curves were
read off a plot: DIME .76 with 7 values, GDFS .80 with 7.5.
"""

from __future__ import annotations

import argparse
import csv
import json
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
from cells_peers import CART, log_loss, roc_auc
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("TAMIS_SHARED", ROOT.parent / "shared"))
SETS = (
    "noise", "cleveland", "german", "ionosphere", "wdbc", "cube", "spambase", "splice", "colon", "srbct",
    "golub_leukemia", "allaml", "madelon", "dexter", "mnist38", "mnist", "spect", "svmguide3", "magic04", "glioma",
    "dlbcl", "lymphoma_discrete",
)  # fmt: skip
CHOSEN_ON = (
    "noise", "wdbc", "ionosphere", "cleveland", "german", "srbct", "colon", "splice", "golub_leukemia", "glioma",
    "dlbcl", "lymphoma_discrete", "spambase", "magic04", "madelon",
)  # fmt: skip
MOST_ROWS = 2000
# accuracy, values, loss, seconds, area under the ROC curve, log loss
Found = dict[str, list[tuple[float, float, float, float, float, float]]]
Case = tuple[str, float, float]  # set, price, errors


def logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.5, max_iter=300))


DECIDE: dict[str, Callable[[], Any]] = {
    "discriminant": lambda: None, "logistic": logistic, "naive Bayes": GaussianNB,
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}  # fmt: skip
METHODS: dict[str, Callable[..., Any]] = {
    "IFC2F": lambda **given: IFC2F(random_state=0, **given),
    "ETANA": lambda **given: ETANA(random_state=0, **given),
    "FETANA": lambda **given: FETANA(random_state=0, **given),
    "AdaptiveIFC2F": lambda **given: AdaptiveIFC2F(random_state=0, **given),
    "FixedSubset": lambda **given: FixedSubset(**given),
    "AACO": lambda **given: AACO(random_state=0, **given),
    "CART": lambda **given: CART(**given),
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


def folds(name: str, y: np.ndarray, draws: int = 1) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if name == "cube":
        yield np.arange(4000), np.arange(4000, 6000)
        return
    for seed in range(draws):
        yield from StratifiedKFold(5, shuffle=True, random_state=seed).split(np.zeros(len(y)), y)


def costs_of(y: np.ndarray, errors: float) -> np.ndarray:
    """Return what it costs to say j where i is true: `errors` where that is the most frequent class and i is not."""
    n = int(y.max()) + 1
    Q = 1.0 - np.eye(n)
    most = int(np.bincount(y).argmax())
    Q[np.arange(n) != most, most] = errors
    return Q


def judge(name: str, X: np.ndarray, y: np.ndarray, price: float, Q: np.ndarray, draws: int) -> Found:
    """Return the results of each way to spend, fold by fold."""
    found: Found = {}

    def note(method: str, belief: np.ndarray, test: np.ndarray, bought: float, seconds: float) -> None:
        label, true = (belief @ Q).argmin(axis=1), y[test]
        lost = float(Q[true, label].mean()) + price * bought
        measures = roc_auc(belief, true), log_loss(belief, true)
        found.setdefault(method, []).append((float((label == true).mean()), bought, lost, seconds, *measures))

    for train, test in folds(name, y, draws):
        share = np.bincount(y[train], minlength=len(Q)) / len(train)
        note("nothing", np.tile(share, (len(test), 1)), test, 0.0, 0.0)
        given = {"cost": price, "misclassification_cost": Q}
        cache: dict[tuple[int, str], np.ndarray] = {}
        for method, make in METHODS.items():
            start = time.process_time()
            model = make(**given).fit(X[train], y[train])
            belief = model.predict_proba(X[test])
            bought = float(model.n_features_used_.mean())
            note(method, belief, test, bought, time.process_time() - start)
            size = round(bought)
            for decide, classifier in DECIDE.items():
                if (size, decide) not in cache:
                    fixed = FixedSubset(n_features=size, classifier=classifier(), **given)
                    cache[size, decide] = fixed.fit(X[train], y[train]).predict_proba(X[test])
                note(f"{method} | fixed, {decide}", cache[size, decide], test, float(size), 0.0)
        filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        belief = logistic().fit(filled[train], y[train]).predict_proba(filled[test])
        note("all values, logistic", belief, test, float(X.shape[1]), 0.0)
    return found


def show(name: str, price: float, errors: float, found: Found) -> None:
    print(
        f"\n{name}, a value costs {price}, errors up to {errors}: accuracy / values = loss; loss of fixed subsets of"
        f" that size: {', '.join(DECIDE)}"
    )
    for method, folds_ in found.items():
        if "|" in method:
            continue
        right, bought, lost, seconds, area, nats = np.mean(folds_, axis=0)
        beside = [
            np.mean(found[key], axis=0)[2] for d in DECIDE if (key := f"{method} | fixed, {d}") in found
        ]
        text = "  ".join(f"{value:.3f}" for value in beside)
        print(
            f"  {method:22s} {right:.3f} / {bought:5.2f} = {lost:.3f}   {text}   AUC {area:.3f}, log loss {nats:.3f}"
            f"   {seconds:.1f} s",
            flush=True,
        )


def summary(path: Path) -> None:
    """Print the table for the page, mean ranks of the losses, and how often buying row by row is ahead."""
    found: dict[Case, dict[str, np.ndarray]] = {}  # (n_folds, 3): accuracy, values bought, loss
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            case = (row["set"], float(row["price"]), float(row["errors"]))
            values = [[float(row[name]) for name in ("accuracy", "bought", "loss")]]
            of_case = found.setdefault(case, {})
            of_case[row["method"]] = np.concatenate([of_case.get(row["method"], np.empty((0, 3))), values])
    shown = ["nothing", *METHODS]
    header = ["set, price, errors", *shown, "all, logistic"]
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for (name, price, errors), of_case in found.items():
        means = [of_case[method].mean(axis=0) for method in [*shown, "all values, logistic"]]
        cells = [f"{right:.3f} / {bought:.1f} = {lost:.3f}" for right, bought, lost in means]
        print(f"| {name}, {price:g}, {errors:g} | " + " | ".join(cells) + " |")
    for wanted in (True, False):
        part = {
            case: of_case for case, of_case in found.items() if (case[0].split()[0] in CHOSEN_ON) is wanted
        }
        if part:
            print(
                f"\n{'sets that settings were looked at on' if wanted else 'the other sets'}, {len(part)} cases"
            )
            _print_ranks(part, shown)
            _print_gaps(part)
    _print_where_bought(found)
    _print_prices(found)
    _print_probabilities(path)


def _print_probabilities(path: Path) -> None:
    """Print mean area under the ROC curve and log loss, each less those of fixed subsets of that size, with errors."""
    rows: dict[tuple[str, ...], dict[str, list[float]]] = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            case = (row["set"], row["price"], row["errors"], row["fold"])
            rows.setdefault(case, {})[row["method"]] = [float(row["auc"]), float(row["log_loss"])]
    print(
        "\nAUC and log loss; difference from fixed subsets of that size (mean and paired standard error over folds)"
    )
    for method in METHODS:
        own = np.array([each[method] for each in rows.values()])
        texts = [f"{method:14s} AUC {np.nanmean(own[:, 0]):.3f}, log loss {own[:, 1].mean():.3f}"]
        for decide in ("logistic", "boosting"):
            gap = own - np.array([each[f"{method} | fixed, {decide}"] for each in rows.values()])
            gap = gap[~np.isnan(gap).any(axis=1)]
            error = gap.std(axis=0, ddof=1) / np.sqrt(len(gap))
            differences = ", ".join(
                f"{m:+.3f} ± {e:.3f}" for m, e in zip(gap.mean(axis=0), error, strict=True)
            )
            texts.append(f"mRMR, {decide}: {differences}")
        print("  " + "; ".join(texts))


def _print_ranks(found: dict[Case, dict[str, np.ndarray]], shown: list[str]) -> None:
    ranks = np.array([rankdata([of_case[m][:, 2].mean() for m in shown]) for of_case in found.values()])
    spread = 1.96 * ranks.std(axis=0, ddof=1) / np.sqrt(len(ranks))
    print("mean ranks of the loss, with 95 % intervals:")
    print(
        "  "
        + "  ".join(
            f"{m} {r:.2f} +- {w:.2f}" for m, r, w in zip(shown, ranks.mean(axis=0), spread, strict=True)
        )
    )


def _print_gaps(found: dict[Case, dict[str, np.ndarray]]) -> None:
    print(
        "loss less that of the fixed subset of that size: ahead / level within 1 s.e. / behind (worst, of its s.e.)"
    )
    for method in METHODS:
        texts = []
        for decide in (*DECIDE, "nothing"):
            count, worst = [0, 0, 0], 0.0
            for of_case in found.values():
                gap = (
                    of_case[method]
                    - of_case["nothing" if decide == "nothing" else f"{method} | fixed, {decide}"]
                )[:, 2]
                error = _error(gap)
                behind = abs(gap.mean()) > error and gap.mean() > 0
                count[1 if abs(gap.mean()) <= error else 2 if behind else 0] += 1
                worst = max(worst, gap.mean() / max(error, 1e-12)) if behind and len(gap) > 1 else worst
            texts.append(f"{decide} {count[0]}/{count[1]}/{count[2]}" + (f" ({worst:.1f})" if worst else ""))
        print(f"  {method:14s} " + "  ".join(texts))


def _error(gap: np.ndarray) -> float:
    return float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else 0.0


def _print_where_bought(found: dict[Case, dict[str, np.ndarray]]) -> None:
    """Print how often a method is ahead where it buys anything, and where its accuracy is below buying nothing."""
    print(
        "\nwhere anything is bought, all fixed subsets: smaller loss, behind by more than 1 s.e., comparisons; accuracy"
    )
    for method in METHODS:
        bought = [of_case for of_case in found.values() if of_case[method][:, 1].mean() > 0.0]
        gaps = [(c[method] - c[f"{method} | fixed, {decide}"])[:, 2] for c in bought for decide in DECIDE]
        ahead, behind = (
            sum(map(test, gaps)) for test in (lambda g: g.mean() < 0.0, lambda g: g.mean() > _error(g))
        )
        # Errors of one price: with others, less accuracy may cost less.
        right = [
            (c[method] - c["nothing"])[:, 0]
            for (name, _, errors), c in found.items()
            if errors == 1.0 and " " not in name
        ]
        below = sum(g.mean() < -_error(g) for g in right)
        print(
            f"  {method:14s} {ahead}, {behind} of {len(gaps)};"
            f" below nothing by more than 1 s.e. in {below} of {len(right)}"
        )


def _print_prices(found: dict[Case, dict[str, np.ndarray]]) -> None:
    """Print how often the loss falls though the price rises."""
    pairs, falls = 0, []
    for (name, price, errors), of_case in found.items():
        for (other, higher, also), dearer in found.items():
            if other == name and also == errors and higher > price:
                for method in METHODS:
                    gap = (dearer[method] - of_case[method])[:, 2]
                    pairs += 1
                    if gap.mean() < -_error(gap):
                        falls.append(f"{name} {method} {price:g} -> {higher:g}: {gap.mean():.3f}")
    print(
        f"\nloss falls by more than 1 s.e. where the price rises: {len(falls)} of {pairs}", *falls, sep="\n  "
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--prices", nargs="+", type=float, default=[0.01])
    parser.add_argument("--errors", type=float, default=1.0)
    parser.add_argument("--matrix", type=json.loads, help="what it costs to say j where i is true, as JSON")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("cells_pay.csv"))
    options = parser.parse_args()
    if options.summary:
        summary(options.out)
        return
    warnings.filterwarnings("ignore", module="sklearn")
    done = set()
    if options.out.exists():
        with options.out.open(encoding="utf-8") as file:
            done = {(row["set"], float(row["price"]), float(row["errors"])) for row in csv.DictReader(file)}
    for set_ in options.sets:
        name = f"{set_} {json.dumps(options.matrix)}" if options.matrix else set_
        for price in options.prices:
            if (name, price, options.errors) in done:
                continue
            X, y = load(set_)
            Q = np.array(options.matrix, dtype=float) if options.matrix else costs_of(y, options.errors)
            found = judge(set_, X, y, price, Q, options.draws)
            show(name, price, options.errors, found)
            new = not options.out.exists()
            with options.out.open("a", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                if new:
                    writer.writerow(
                        [
                            "set",
                            "price",
                            "errors",
                            "method",
                            "fold",
                            "accuracy",
                            "bought",
                            "loss",
                            "seconds",
                            "auc",
                            "log_loss",
                        ]
                    )
                writer.writerows(
                    (name, price, options.errors, method, i, *values)
                    for method, each in found.items()
                    for i, values in enumerate(each)
                )


if __name__ == "__main__":
    main()
