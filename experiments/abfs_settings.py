"""ABFS: the golden numbers of the released program's semantics, and its settings chosen on half the streams.

    python experiments/abfs_settings.py --golden [--rows 60000] [--seeds 1]
    python experiments/abfs_settings.py --choose [--rows 60000] [--seeds 2] [--irrelevant 100]
    python experiments/abfs_settings.py --stability [--rows 60000] [--irrelevant 100]
    python experiments/abfs_settings.py --figure docs/abfs_over_time.png

--golden: BG1, BG2, BG3 of Chapter 9 with 100 irrelevant features, drifts of width 5000: relevant features found (RSR),
irrelevant ones left out (CUCP), selected features, drifts. Nothing selected counts as the empty set.

--choose: every grace period, threshold and detector of the thesis' grid; the setting with the best mean accuracy of
naive Bayes on one half of the seven streams, and what it gives on the other half.

--figure FILE: the number of features selected over time at two thresholds, drifts marked, and the selection map of BG1
beside the truth (needs matplotlib).

--stability: Preq-CV (ten copies, cross folds), the mean Pearson and Jaccard similarity of the ten selections.
"""

from __future__ import annotations

import argparse
import itertools
import os
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import ABFS, WeightedNaiveBayes, load_stream, prequential
from tamis.evaluate import preq_cv_stability

# As in the published tables: no scaling, nothing beside the run.
PLAIN: dict[str, Any] = {"scale": "none", "baselines": "none", "replay": "always"}
HALVES = (("AGR", "BG1", "RTG", "BG3"), ("AN", "BG2", "SEA"))
GOLDEN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("BG1", {"threshold": 0.01}),
    ("BG1", {}),
    ("BG1", {"hoeffding": True}),
    ("BG1", {"threshold": 0.01, "detector": "hddm-a"}),
    ("BG2", {"threshold": 0.01}),
    ("BG2", {}),
    ("BG2", {"grace_period": 100}),
    ("BG3", {}),
)


def selections(name: str, n_rows: int, seed: int, options: dict[str, Any]) -> list[float]:
    stream = load_stream(name, seed=seed, protocol="chapter9", n_rows=n_rows, width=5000, n_irrelevant=100)
    selector, found = ABFS(categorical="all", **options), []
    for start, (X, y) in zip(itertools.count(0, 20), stream.batches(20), strict=False):
        selector.partial_fit(X, y, classes=stream.classes)
        truth, chosen = set(stream.relevant_at(start).tolist()), set(selector.selected_.tolist())
        extra = len(chosen - truth) / (X.shape[1] - len(truth))
        found.append((len(truth & chosen) / len(truth), 1 - extra, len(chosen)))
    return [*np.mean(found, axis=0).tolist(), float(len(selector.drifts_))]


def accuracy(name: str, n_rows: int, seed: int, n_irrelevant: int, options: dict[str, Any]) -> float:
    stream = load_stream(name, seed=seed, protocol="chapter9", n_rows=n_rows, n_irrelevant=n_irrelevant)
    columns = stream.categorical
    learner = WeightedNaiveBayes(window=None, weight=None, categorical=columns)
    result = prequential(stream, ABFS(categorical=columns, **options), learner, n_tracked=0, **PLAIN)
    return float(result.summary()["accuracy"])


def choose(n_rows: int, n_seeds: int, n_irrelevant: int) -> None:
    grid = [
        {"grace_period": period, "threshold": threshold, "detector": detector}
        for period in (100, 200, 500, 1000)
        for threshold in (0.01, 0.05, 0.1)
        for detector in ("adwin", "hddm-a", "hddm-w")
    ]
    found = np.zeros((len(grid), len(HALVES)))
    for i, options in enumerate(grid):
        for half, names in enumerate(HALVES):
            runs = [
                accuracy(name, n_rows, seed, n_irrelevant, options)
                for name in names
                for seed in range(n_seeds)
            ]
            found[i, half] = np.mean(runs)
        print(options, *(f"{value:.4f}" for value in found[i]), flush=True)
    for half, other in ((0, 1), (1, 0)):
        best = int(found[:, half].argmax())
        print(
            f"best on {HALVES[half]}: {grid[best]} {found[best, half]:.4f}; on {HALVES[other]} {found[best, other]:.4f}"
            f" (the best there {found[:, other].max():.4f}, the median {np.median(found[:, other]):.4f})"
        )


def draw(path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    stream = load_stream("BG1", seed=1, protocol="chapter9", n_rows=60_000, width=1000, n_irrelevant=30)
    maps = {}
    for threshold in (0.05, 0.01):
        selector, found = ABFS(threshold=threshold, categorical="all"), []
        for X, y in stream.batches(100):
            selector.partial_fit(X, y, classes=stream.classes)
            found.append(np.isin(np.arange(X.shape[1]), selector.selected_))
        maps[threshold] = np.array(found)
    truth = np.array(
        [np.isin(np.arange(stream.n_features), stream.relevant_at(t)) for t in range(0, 60_000, 100)]
    )
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
    for (threshold, found), colour in zip(maps.items(), ("#0072b2", "#d55e00"), strict=True):
        top.plot(np.arange(600) / 10, found.sum(axis=1), color=colour, label=f"threshold {threshold}")
    top.set_ylabel("features selected")
    top.axhline(3, color="grey", linewidth=0.8, label="relevant")
    top.legend(loc="upper left", fontsize=8)
    for values, colour, shift in ((truth, "#bbbbbb", 0.0), (maps[0.05], "#0072b2", 0.25)):
        times, features = np.nonzero(values)
        bottom.scatter(times / 10, features + shift, s=3, marker="s", color=colour, linewidths=0)
    bottom.set_ylabel("feature (grey: relevant)")
    bottom.set_xlabel("thousand rows")
    bottom.set_ylim(10.5, -0.5)
    for axis in (top, bottom):
        for drift in stream.drifts:
            axis.axvline(drift / 1000, color="black", linestyle=":", linewidth=1)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--stability", action="store_true")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--irrelevant", type=int, default=100)
    parser.add_argument("--figure")
    args = parser.parse_args()
    if args.figure:
        draw(args.figure)
    if args.golden:
        for name, options in GOLDEN:
            runs = [selections(name, args.rows, seed, options) for seed in range(1, 1 + args.seeds)]
            recall, clean, n_selected, drifts = np.mean(runs, axis=0)
            print(
                f"{name} {options}: RSR {recall:.2f} CUCP {clean:.2f} SA {0.7 * recall + 0.3 * clean:.2f}"
                f" features {n_selected:.1f} drifts {drifts:.0f}",
                flush=True,
            )
    for name in sum(HALVES, ()) if args.stability else ():
        stream = load_stream(
            name, seed=1, protocol="chapter9", n_rows=args.rows, n_irrelevant=args.irrelevant
        )
        found = preq_cv_stability(stream, ABFS(categorical=stream.categorical))
        print(f"{name}: Pearson {found.mean_pearson:.3f} Jaccard {found.mean_jaccard:.3f}", flush=True)
    if args.choose:
        choose(args.rows, args.seeds, args.irrelevant)


if __name__ == "__main__":
    main()
