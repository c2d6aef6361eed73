"""One row at a time: microseconds for `partial_fit`, `predict` and `transform` of one row, beside River's.

    pip install '.[river]'
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_one_row.py

Fifty normal features, two classes by two of them. Every method has learned 500 rows; then it takes row after row, in
turn with its peer, and the best of the rounds counts, in processor time. River's take a dict, made beforehand, as the
arrays are. "In turn" is a row that is predicted, then learned. The second table is of dicts for both: Tamis's selectors
and learners through River's adapters.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import (
    FIRES,
    OFS,
    AdaptiveRandomForest,
    FisherScore,
    HoeffdingTree,
    StreamPipeline,
    TScore,
    WeightedNaiveBayes,
)  # fmt: skip

ROWS = 200  # in a round
OURS: dict[str, Callable[[], Any]] = {
    "TScore": lambda: TScore(5),
    "FisherScore": lambda: FisherScore(5),
    "OFS": lambda: OFS(5),
    "FIRES": lambda: FIRES(5),
    "WeightedNaiveBayes": WeightedNaiveBayes,
    "FIRES, naive Bayes": lambda: StreamPipeline(FIRES(5), plain_naive_bayes(), batch_size=1),
    "HoeffdingTree": HoeffdingTree,
    "AdaptiveRandomForest": AdaptiveRandomForest,
}


def plain_naive_bayes() -> WeightedNaiveBayes:
    return WeightedNaiveBayes(window=None, weight=None)


def peers() -> dict[str, tuple[str, Callable[[], Any]]]:
    """Return what River has in place of each."""
    from river import feature_selection, forest, naive_bayes, stats, tree

    def best() -> Any:
        return feature_selection.SelectKBest(similarity=stats.PearsonCorr(), k=5)

    selecting = ("SelectKBest", best)
    return {
        **dict.fromkeys(("TScore", "FisherScore", "OFS", "FIRES"), selecting),
        "WeightedNaiveBayes": ("GaussianNB", naive_bayes.GaussianNB),
        "FIRES, naive Bayes": ("SelectKBest | GaussianNB", lambda: best() | naive_bayes.GaussianNB()),
        "HoeffdingTree": ("HoeffdingTreeClassifier", tree.HoeffdingTreeClassifier),
        "AdaptiveRandomForest": ("ARFClassifier", lambda: forest.ARFClassifier(max_features=None, seed=0)),
    }


def microseconds(call: Callable[[int], object], start: int, n: int) -> float:
    begun = time.process_time()
    for i in range(start, start + n):
        call(i)
    return 1e6 * (time.process_time() - begun) / n


def rows_as_dicts(dicts: list[dict[int, float]], labels: list[int], rounds: int) -> None:
    """Print microseconds for `learn_one`, and for `predict_one` or `transform_one`, beside River's."""
    from river import feature_selection, naive_bayes, stats

    from tamis.adapters.river import RiverLearner, RiverSelector

    def best() -> Any:
        return feature_selection.SelectKBest(similarity=stats.PearsonCorr(), k=5)

    def ours() -> Any:
        return RiverLearner(plain_naive_bayes())

    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "FIRES": (lambda: RiverSelector(FIRES(5)), best),
        "naive Bayes": (ours, naive_bayes.GaussianNB),
        "FIRES | naive Bayes": (
            lambda: RiverSelector(FIRES(5)) | ours(),
            lambda: best() | naive_bayes.GaussianNB(),
        ),
    }
    print(
        f"{'rows as dicts':20}{'learn_one':>12}{'read':>11}   {'River: learn_one':>18}{'read':>10}{'ratio':>7}"
    )
    for name, makers in pairs.items():
        found = []
        for make in makers:
            model = make()
            for row, label in zip(dicts[:500], labels[:500], strict=True):
                model.learn_one(row, label)
            read = model.predict_one if hasattr(model, "predict_one") else model.transform_one
            calls = (
                lambda i, model=model: model.learn_one(dicts[i], labels[i]),
                lambda i, read=read: read(dicts[i]),
            )
            found += [min(microseconds(call, 500 + ROWS * k, ROWS) for k in range(rounds)) for call in calls]
        a, b, c, d = found
        print(f"{name:20}{a:12.1f}{b:11.1f}   {c:18.1f}{d:10.1f}{(c + d) / (a + b):7.1f}")


def calls_of(
    model: Any, peer: Any, X: np.ndarray, y: np.ndarray, dicts: list[dict[int, float]], labels: list[int]
) -> dict[str, Callable[[int], object]]:
    def in_turn(i: int) -> None:
        model.predict(X[i : i + 1])
        model.partial_fit(X[i : i + 1], y[i : i + 1])

    calls: dict[str, Callable[[int], object]] = {
        "partial_fit": lambda i: model.partial_fit(X[i : i + 1], y[i : i + 1]),
        "peer": lambda i: peer.learn_one(dicts[i], labels[i]),
    }
    if hasattr(model, "transform"):
        calls["transform"] = lambda i: model.transform(X[i : i + 1])
    if hasattr(model, "predict"):
        calls["predict"] = lambda i: model.predict(X[i : i + 1])
        calls["in turn"] = in_turn
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="", help="a part of the names of what is measured")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    n = 500 + ROWS * given.rounds
    X = rng.standard_normal((n, 50))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    dicts, labels = [dict(enumerate(row)) for row in X.tolist()], y.tolist()
    river = peers()
    print(
        f"{'':20}{'partial_fit':>12}{'transform':>11}{'predict':>9}{'in turn':>9}   {'River':24}{'learn_one':>10}"
        f"{'ratio':>7}"
    )
    for name, make in OURS.items():
        if given.only not in name:
            continue
        model = make().partial_fit(X[:500], y[:500], classes=[0, 1])
        title, of_peer = river[name]
        peer = of_peer()
        for row, label in zip(dicts[:500], labels[:500], strict=True):
            peer.learn_one(row, label)
        calls = calls_of(model, peer, X, y, dicts, labels)
        best = {
            verb: min(microseconds(call, 500 + ROWS * k, ROWS) for k in range(given.rounds))
            for verb, call in calls.items()
        }
        shown = "".join(
            f"{best[v]:{w}.1f}" if v in best else f"{'':{w}}"
            for v, w in (("partial_fit", 12), ("transform", 11), ("predict", 9), ("in turn", 9))
        )
        print(f"{name:20}{shown}   {title:24}{best['peer']:10.1f}{best['peer'] / best['partial_fit']:7.1f}")
    rows_as_dicts(dicts, labels, given.rounds)


if __name__ == "__main__":
    main()
