"""One row at a time: microseconds for `partial_fit`, `predict` and `transform` of one row, beside River's.

    pip install '.[river]'
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_one_row.py

Fifty normal features, two classes by two of them. Every method has learned 500 rows; then it takes row after row, in
turn with its peer, and the best of the rounds counts. River's take a dict, made beforehand, as the arrays are.
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

from tamis import FIRES, OFS, AdaptiveRandomForest, FisherScore, HoeffdingTree, TScore, WeightedNaiveBayes

ROWS = 200  # in a round
OURS: dict[str, Callable[[], Any]] = {
    "TScore": lambda: TScore(5),
    "FisherScore": lambda: FisherScore(5),
    "OFS": lambda: OFS(5),
    "FIRES": lambda: FIRES(5),
    "WeightedNaiveBayes": WeightedNaiveBayes,
    "HoeffdingTree": HoeffdingTree,
    "AdaptiveRandomForest": AdaptiveRandomForest,
}


def peers() -> dict[str, tuple[str, Callable[[], Any]]]:
    """Return what River has in place of each."""
    from river import feature_selection, forest, naive_bayes, stats, tree

    def best() -> Any:
        return feature_selection.SelectKBest(similarity=stats.PearsonCorr(), k=5)

    selecting = ("SelectKBest", best)
    return {
        **dict.fromkeys(("TScore", "FisherScore", "OFS", "FIRES"), selecting),
        "WeightedNaiveBayes": ("GaussianNB", naive_bayes.GaussianNB),
        "HoeffdingTree": ("HoeffdingTreeClassifier", tree.HoeffdingTreeClassifier),
        "AdaptiveRandomForest": ("ARFClassifier", lambda: forest.ARFClassifier(max_features=None, seed=0)),
    }


def microseconds(call: Callable[[int], object], start: int, n: int) -> float:
    begun = time.perf_counter()
    for i in range(start, start + n):
        call(i)
    return 1e6 * (time.perf_counter() - begun) / n


def calls_of(
    model: Any, peer: Any, X: np.ndarray, y: np.ndarray, dicts: list[dict[int, float]], labels: list[int]
) -> dict[str, Callable[[int], object]]:
    calls: dict[str, Callable[[int], object]] = {
        "partial_fit": lambda i: model.partial_fit(X[i : i + 1], y[i : i + 1]),
        "peer": lambda i: peer.learn_one(dicts[i], labels[i]),
    }
    if hasattr(model, "transform"):
        calls["transform"] = lambda i: model.transform(X[i : i + 1])
    if hasattr(model, "predict"):
        calls["predict"] = lambda i: model.predict(X[i : i + 1])
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    n = 500 + ROWS * given.rounds
    X = rng.standard_normal((n, 50))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    dicts, labels = [dict(enumerate(row)) for row in X.tolist()], y.tolist()
    river = peers()
    print(
        f"{'':20}{'partial_fit':>12}{'transform':>11}{'predict':>9}   {'River':24}{'learn_one':>10}{'ratio':>7}"
    )
    for name, make in OURS.items():
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
            for v, w in (("partial_fit", 12), ("transform", 11), ("predict", 9))
        )
        print(f"{name:20}{shown}   {title:24}{best['peer']:10.1f}{best['peer'] / best['partial_fit']:7.1f}")


if __name__ == "__main__":
    main()
