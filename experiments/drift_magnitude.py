"""The magnitude of drift per feature: of streams whose drifting features are known, and of data sets in their order.

    python experiments/drift_magnitude.py [--seeds 5] [--window 1000] [--data FOLDER]

Streams: those of Barddal's Table 4.1 with one abrupt drift. Printed is the probability that a feature that drifts has a
larger magnitude than one that does not (AUC), at the drift. A feature may drift if it is relevant before the drift or
after it, since concepts with the same features differ in their rule; copies of it count too.

Data sets: the mean over features and comparisons of the posterior and the covariate magnitude, and the largest
posterior magnitude of a feature, in the order of the file and after a shuffle.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.metrics import roc_auc_score

from tamis import load_dataset, load_stream
from tamis.streams import SyntheticStream
from tamis.watch import drift_over_time

ROOT = Path(__file__).resolve().parents[1]
SEVEN = ("AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA")
READ = ("covariate", "class_conditional", "posterior", "joint")
SETS = ("electricity", "spambase", "magic04", "usenet", "usenet2")


def is_drifting(stream: SyntheticStream) -> np.ndarray:
    before, after = (set(stream.relevant_at(t)) for t in (0, stream.n_rows - 1))
    relevant = before | after
    sources = [j if of is None or of < 0 else of for j, of in enumerate(stream.copy_of)]
    return np.array([j in relevant or source in relevant for j, source in enumerate(sources)])


def show_streams(n_seeds: int, window: int) -> None:
    print("| | distance | " + " | ".join(READ) + " |\n|" + "---|" * (2 + len(READ)))
    for name in SEVEN:
        for distance in ("hellinger", "total-variation"):
            areas: dict[str, list[float]] = {measure: [] for measure in READ}
            for seed in range(n_seeds):
                stream = load_stream(name, seed=seed, n_rows=4 * window, n_drifts=1, width=0)
                truth = is_drifting(stream)
                if truth.all() or not truth.any():
                    continue
                drift = drift_over_time(stream, window, distance=distance)
                at = drift["row"].tolist().index(2 * window)
                for measure in READ:
                    areas[measure].append(roc_auc_score(truth, drift[measure][at]))
            cells = [f"{np.mean(area):.2f}" if area else "-" for area in areas.values()]
            print(f"| {name} | {distance} | {' | '.join(cells)} |", flush=True)


def show_sets(data: Path, window: int) -> None:
    print("\n| | rows | posterior | covariate | largest posterior (feature, row) |\n|---|---|---|---|---|")
    for name in SETS:
        stream = load_dataset(name, data_home=data)
        X, y = stream.take(stream.n_rows)
        size = min(window, stream.n_rows // 6)
        for order in ("as it comes", "shuffled"):
            at = np.random.default_rng(0).permutation(len(y)) if order == "shuffled" else np.arange(len(y))
            drift = drift_over_time((X[at], y[at]), size, categorical=list(stream.categorical))
            row, j = np.unravel_index(drift["posterior"].argmax(), drift["posterior"].shape)
            largest = f"{drift['posterior'].max():.2f} ({drift['features'][j]}, {drift['row'][row]})"
            print(
                f"| {name}, {order} | {len(y)} | {drift['posterior'].mean():.3f} | {drift['covariate'].mean():.3f} |"
                f" {largest} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--window", type=int, default=1000)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    options = parser.parse_args()
    if options.seeds:
        show_streams(options.seeds, options.window)
    show_sets(options.data, options.window)


if __name__ == "__main__":
    main()
