"""Regularised trees: accuracy, features in use and nodes at each penalty on features that no split uses yet.

    python experiments/regularised_trees.py [--data FOLDER] [--out FOLDER] [--streams NAMES] [--rows 20000] [--seeds 1]

Test-then-train in batches of 100 rows, all features, on the streams of `forests.py`. Shown are the accuracy in %, the
mean over the batches of the number of features with a split in the tree, or in any tree of the forest, and the mean
number of nodes. Each cell is kept in --out as it is done, and not done again.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from forests import DRIFTING, IN_TIME, SHUFFLED, rows_of

from tamis import AdaptiveRandomForest, HoeffdingAdaptiveTree, HoeffdingTree

ROOT = Path(__file__).resolve().parents[1]
PENALTIES = (0.0, 0.1, 0.3, 0.6, 0.9)
TREES: dict[str, Callable[[float], Any]] = {
    "tree": lambda penalty: HoeffdingTree(new_feature_penalty=penalty),
    "adaptive tree": lambda penalty: HoeffdingAdaptiveTree(new_feature_penalty=penalty),
    "forest": lambda penalty: AdaptiveRandomForest(new_feature_penalty=penalty),
}


def cell(X: np.ndarray, y: np.ndarray, model: Any) -> list[float]:
    """Return the prequential accuracy, and the means over the batches of features used and of nodes."""
    classes, right, sizes = np.unique(y), 0, []
    for start in range(0, len(y), 100):
        rows, labels = X[start : start + 100], y[start : start + 100]
        if start:
            right += int((model.predict(rows) == labels).sum())
        model.partial_fit(rows, labels, classes=classes)
        sizes.append((np.count_nonzero(model.feature_importances_), np.sum(model.n_nodes_)))
    return [right / (len(y) - 100), *np.mean(sizes, axis=0).tolist()]


def table(done: dict[str, list[float]], tree: str, streams: list[str], seeds: int) -> str:
    """Return accuracy, features used and nodes of each stream by penalty, means over the seeds."""
    lines = [f"| {tree} | " + " | ".join(map(str, PENALTIES)) + " |", "| --- |" + " ---: |" * len(PENALTIES)]
    whole = []
    for name in streams:
        cells = [
            np.mean([done[f"{name}/{s}/{tree}/{p}"] for s in range(1 if name in IN_TIME else seeds)], axis=0)
            for p in PENALTIES
        ]
        whole.append(cells)
        lines.append(
            f"| {name} | " + " | ".join(f"{100 * a:.1f} / {u:.1f} / {n:.0f}" for a, u, n in cells) + " |"
        )
    mean = np.mean(whole, axis=0)
    lines.append("| mean | " + " | ".join(f"{100 * a:.1f} / {u:.1f} / {n:.0f}" for a, u, n in mean) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "regularised_trees")
    parser.add_argument("--streams", default=",".join((*DRIFTING, *IN_TIME, *SHUFFLED)))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    place = options.out / f"{options.rows}.json"
    done: dict[str, list[float]] = json.loads(place.read_text()) if place.exists() else {}
    streams = options.streams.split(",")
    for tree, make in TREES.items():
        for name in streams:
            for seed in range(1 if name in IN_TIME else options.seeds):
                X, y = rows_of(name, options.data, options.rows, seed)
                for penalty in PENALTIES:
                    key = f"{name}/{seed}/{tree}/{penalty}"
                    if key not in done:
                        done[key] = cell(X, y, make(penalty))
                        print(key, *(f"{value:.4g}" for value in done[key]), flush=True)
                        place.write_text(json.dumps(done, indent=1))
        print(f"\n{table(done, tree, streams, options.seeds)}\n", flush=True)


if __name__ == "__main__":
    main()
