"""One FSDS step (learn from 100 rows, read the scores) beside float-evaluation's FSDS, which is its authors' code.

    pip install --no-deps float-evaluation==0.0.2
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_fsds.py

Both run in one process, in turn, on the same batches; the largest difference of their scores stands beside the times,
as a fraction of the largest score. Medians over the rounds; without float-evaluation its columns are nan.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import warnings
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from bench_ofs import batches, peer, seconds

from tamis import FSDS


def compare(n_features: int, n_rounds: int, peer_class: type | None) -> None:
    data = batches(n_features, 4 if n_features > 1000 else 20, 1.0)
    selector, difference = FSDS(), math.nan
    steps: dict[str, Callable[[np.ndarray, np.ndarray], object]] = {
        "ours": lambda X, y: selector.partial_fit(X, y).scores_
    }
    if peer_class is not None:
        judge = peer_class(n_features, max(1, n_features // 10))
        steps["float"] = judge.weight_features
    for step in steps.values():
        seconds(step, data)
    if peer_class is not None:
        difference = np.abs(judge.weights - selector.scores_).max() / judge.weights.max()
    rounds = [{name: seconds(step, data) for name, step in steps.items()} for _ in range(n_rounds)]
    ours, theirs, ratio = (
        statistics.median(found)
        for found in zip(
            *(
                (1e3 * r["ours"], 1e3 * r.get("float", math.nan), r.get("float", math.nan) / r["ours"])
                for r in rounds
            ),
            strict=True,
        )
    )
    print(f"{n_features:>9} {ours:>9.3f} {theirs:>9.3f} {ratio:>11.1f} {difference:>12.1e}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", type=int, nargs="+", default=[57, 500, 5000, 10000])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    peer_class = peer("FSDS")
    print("milliseconds per batch of 100 rows, float64, one thread; ratios are medians over rounds")
    print(" features      ours     float  float/ours   difference")
    for n_features in arguments.features:
        compare(n_features, arguments.rounds, peer_class)


if __name__ == "__main__":
    main()
