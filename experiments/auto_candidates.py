"""`Auto` beside every candidate, fixed, on drifting streams and on real ones.

    python experiments/auto_candidates.py [--data FOLDER] [--out FOLDER] [--rows 20000] [--streams NAMES]
        [--learners NAMES] [--seed 1] [--orders 0]

Prequential evaluation in batches of 100 rows, accuracy in percent; Gaussian naive Bayes and a logistic regression on
standardised features. A method that asks for it has the learner reset. Drifting streams have five drifts of 500 rows,
and the same seeds for all. Each finished cell is stored in --out, and not computed again.

The best method in hindsight owes part of its lead to luck. "luck" says how much, by a bootstrap over stretches of three
batches: how much better the best method of a resample is there than in the whole run. "to chosen" is Auto beside the
method that is best on half of the stretches, on the other half.

`--streams new` has nine kinds on which no rule of `Auto` was chosen: make_classification with 20, 60 and 150 columns,
and with other columns from half-way; handwritten digits with 64 columns of noise; 60 columns of which each is like the
one before it, or that hold still in time.

`--orders 4` compares nothing: it measures how far logistic regressions with every column differ if only the order
differs in which they learn the rows of a batch.

`--streams rare` has streams of 20,000 rows of which 1 % are of one class: columns with copies, with many weak signals,
with one strong signal and its copies, with heavy tails, whose signals change half-way, that tell nothing, that tell by
their variance, and bits; and three real ones that have lost 19 of 20 rows of a class. There the figures are the AUC,
and the luck of the draw is not computed.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.naive_bayes import GaussianNB

from tamis import (
    FIRES,
    Auto,
    FisherScore,
    ForwardPartialCorrelation,
    JointScreening,
    SGDLogisticRegression,
    load_stream,
    prequential,
)
from tamis.learners import AdaptiveRandomForest
from tamis.streams import load_dataset

ROOT = Path(__file__).resolve().parents[1]
DRIFTING = ("AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA", "SEA50")
REAL = (
    "electricity",
    "magic04",
    "spambase",
    "usenet",
    "usenet2",
    "german",
    "splice",
    "isolet",
    "coil20",
    "madelon",
)
INFORMATIVE = {20: 5, 60: 10, 150: 15}  # of so many columns
NEW = (*(f"mc{p}{drift}" for p in INFORMATIVE for drift in ("", "-drift")), "digits", "ar-columns", "ar-time")
KINDS = ("copies", "weak", "strong", "tails", "drift", "noise", "variance", "bits")
RARE = (
    *(f"rare-{kind}" for kind in KINDS),
    *(f"{name}-rare" for name in ("spambase", "magic04", "electricity")),
)
IN_TIME = ("electricity", "usenet", "usenet2")  # kept in their order; the others are shuffled
LEARNERS: dict[str, Callable[[], Any]] = {
    "naive-bayes": GaussianNB,
    "linear": lambda: SGDLogisticRegression(learning_rate="constant"),
    "trees": lambda: AdaptiveRandomForest(random_state=0),
}
FIXED: dict[str, Callable[[], Any]] = {
    "all": lambda: None,
    **{f"forward {k}": lambda k=k: ForwardPartialCorrelation(k) for k in (0.1, 0.2, 0.4)},
    **{f"fires {k}": lambda k=k: FIRES(k) for k in (0.1, 0.2, 0.4)},
    **{f"fisher {k}": lambda k=k: FisherScore(k, half_life=2000) for k in (0.1, 0.2, 0.4)},
    "joint": JointScreening,
}


def rows_of(name: str, data: Path, n_rows: int, seed: int) -> Any:
    if name in DRIFTING:
        more = {"n_irrelevant": 48} if name == "SEA50" else {}
        found = load_stream(name.removesuffix("50"), seed=seed, n_rows=n_rows, n_drifts=5, width=500, **more)
        X, y = found.take(n_rows)
        return np.asarray(X, dtype=np.float64), y
    if name in NEW:
        return new_rows(name, seed - 1)
    if name.startswith("rare-"):
        return rare_rows(name.removeprefix("rare-"), seed)
    if name.endswith("-rare"):
        X, y = rows_of(name.removesuffix("-rare"), data, n_rows, seed)
        kept = (y != np.unique(y)[-1]) | (np.random.default_rng(seed).random(len(y)) < 0.05)
        return X[kept], y[kept]
    source = load_dataset(name, data_home=data)
    X, y = source.take(source.n_rows)
    order = np.arange(len(y)) if name in IN_TIME else np.random.default_rng(seed - 1).permutation(len(y))
    X = np.asarray(X[order[:n_rows]], dtype=np.float64)
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X), np.asarray(y)[order[:n_rows]]


def new_rows(name: str, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    if name.startswith("mc"):
        p = int(name.removesuffix("-drift")[2:])
        k = INFORMATIVE[p]
        X, y = make_classification(
            6000, p, n_informative=k, n_redundant=k // 2, class_sep=0.7, flip_y=0.05, random_state=seed
        )
        if name.endswith("drift"):
            X[3000:] = X[3000:, rng.permutation(p)]
        return X, y
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


def rare_rows(kind: str, seed: int) -> tuple[Any, Any]:
    n, p = 20_000, {"strong": 30, "tails": 100, "drift": 40, "variance": 20}.get(kind, 60)
    rng = np.random.default_rng([seed, len(kind)])
    y = (rng.random(n) < 0.01).astype(int)
    X, shift = rng.normal(size=(n, p)), y[:, None]
    if kind == "copies":
        X[:, [3, 17]] += 0.7 * shift
        X[:, 5:10] = X[:, [3]] + 0.1 * rng.normal(size=(n, 5))
    elif kind == "weak":
        X[:, :20] += 0.35 * shift
    elif kind == "strong":
        X[:, :1] += 1.5 * shift
        X[:, 1:10] = X[:, [0]] + 0.5 * rng.normal(size=(n, 9))
    elif kind == "tails":
        X[:, [2, 50, 99]] += np.array([0.6, 0.8, 1.0]) * shift
        X = np.exp(0.7 * X)
    elif kind == "drift":
        X[: n // 2, [1, 2]] += shift[: n // 2]
        X[n // 2 :, [10, 11]] += shift[n // 2 :]
    elif kind == "variance":
        X[:, 0] *= 1.0 + 2.0 * y
        X[:, 1] += 0.8 * y
    elif kind == "bits":
        X = (X > 1.0).astype(np.float64)
        X[:, [4, 9, 30]] = np.where(shift * (rng.random((n, 3)) < 0.5), 1.0, X[:, [4, 9, 30]])
    return X, y


def cell(rows: Any, method: str, learner: str, measure: str = "accuracy") -> dict[str, Any]:
    """Return the accuracy (or the AUC) in percent, the stability, and rows per second of the selector."""
    selector = Auto(learner=learner) if method == "auto" else FIXED[method]()
    begin = time.process_time()
    result = prequential(
        rows, selector, LEARNERS[learner](), batch_size=100, baselines="none", auc=measure == "auc"
    )
    found, steps = result.summary(), result.frames["steps"]
    measured = {
        "accuracy": 100.0 * found[measure],
        "stability": found["stability"],
        "seconds": time.process_time() - begin,
    }
    measured["batches"] = [100.0 * float(share) for share in steps["accuracy"]]
    measured["rows_per_second"] = len(rows[1]) / max(float(np.sum(steps["seconds_select"])), 1e-9)
    if method == "auto":
        measured["followed"] = [(s["row"], s["to"], s["why"]) for s in selector.switches_]
        measured["restarts"] = selector.restarts_
        measured["n_selected"], measured["n_features"] = float(np.mean(steps["n_selected"])), rows[0].shape[1]
    return measured


def of_orders(rows: Any, n_orders: int) -> np.ndarray:
    """Return the accuracy of logistic regressions with every column, each with a separate order of the rows."""
    learners = (
        SGDLogisticRegression(learning_rate="constant", random_state=order) for order in range(n_orders)
    )
    runs = (prequential(rows, None, learner, batch_size=100, baselines="none") for learner in learners)
    return np.array([100.0 * run.summary()["accuracy"] for run in runs])


def hindsight(batches: np.ndarray, n_draws: int = 200) -> tuple[float, float]:
    """Return the luck of the best method, and `Auto` (the last row) beside one chosen on other batches."""
    rng, fixed, auto = np.random.default_rng(0), batches[:-1], batches[-1]
    stretch = np.arange(batches.shape[1]) // 3
    n, whole, luck, beside = stretch[-1] + 1, fixed.mean(axis=1), [], []
    for _ in range(n_draws):
        drawn = np.concatenate([np.flatnonzero(stretch == at) for at in rng.integers(0, n, n)])
        found = fixed[:, drawn].mean(axis=1)
        luck.append(found.max() - whole[found.argmax()])
        half = np.isin(stretch, rng.permutation(n)[: n // 2])
        for known, other in ((half, ~half), (~half, half)):
            best = fixed[:, known].mean(axis=1).argmax()
            beside.append(auto[other].mean() - fixed[best, other].mean())
    return float(np.mean(luck)), float(np.mean(beside))


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    given.add_argument("--out", type=Path, default=ROOT / "results" / "auto_candidates")
    given.add_argument("--rows", type=int, default=20_000)
    given.add_argument("--streams", default=",".join((*DRIFTING, *REAL)))
    given.add_argument(
        "--seed", type=int, default=1, help="of the drifting streams, and of the order of the others"
    )
    given.add_argument("--learners", default="naive-bayes,linear", help="of naive-bayes, linear and trees")
    given.add_argument("--orders", type=int, default=0)
    args = given.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings(
        "ignore", "divide by zero", RuntimeWarning
    )  # naive Bayes before the first rare row
    names = {"new": NEW, "rare": RARE}.get(args.streams) or args.streams.split(",")
    if args.orders:
        found = np.array([of_orders(rows_of(n, args.data, args.rows, args.seed), args.orders) for n in names])
        for name, of_each in zip(names, found, strict=True):
            print(f"| {name} | {' | '.join(f'{value:.1f}' for value in of_each)} |")
        behind = found[:, :, None] - found[:, None, :] < -0.5
        share = behind.sum() / (len(names) * args.orders * (args.orders - 1))
        print(f"more than half a point behind another order: {share:.1%} of pairs")
        return
    for learner in args.learners.split(","):
        print(
            f"\n{learner}\n| stream | {' | '.join(FIXED)} | auto | kept | to best | luck | to chosen | to all"
            " | rows/s |"
        )
        for name in names:
            print(row(name, learner, args), flush=True)


def row(name: str, learner: str, args: Any) -> str:
    rows, found = None, {}
    for method in (*FIXED, "auto"):
        seed = "" if args.seed == 1 else f"-seed-{args.seed}"
        kept = args.out / f"{name}-{args.rows}-{learner}-{method.replace(' ', '-')}{seed}.json"
        if not kept.exists():
            rows = rows_of(name, args.data, args.rows, args.seed) if rows is None else rows
            measure = "auc" if name in RARE else "accuracy"
            kept.write_text(json.dumps(cell(rows, method, learner, measure), default=str))
        found[method] = json.loads(kept.read_text())
    accuracy = {method: found[method]["accuracy"] for method in found}
    best = max(accuracy[method] for method in FIXED)
    own = accuracy["auto"]
    figures = " | ".join(f"{value:.1f}" for value in accuracy.values())
    speed = found["auto"]["rows_per_second"]
    batches = np.array([found[method]["batches"] for method in (*FIXED, "auto")])
    lucky, chosen = (np.nan, np.nan) if name in RARE else hindsight(batches)
    kept_of = f"{found['auto']['n_selected']:.0f} of {found['auto']['n_features']}"
    beside = f"{kept_of} | {own - best:+.2f} | {lucky:.2f} | {chosen:+.2f} | {own - accuracy['all']:+.2f}"
    return f"| {name} | {figures} | {beside} | {speed:,.0f} |"


if __name__ == "__main__":
    main()
