"""HEFT-Stream beside River's online bagging of Hoeffding trees: rows per second, first predicted, then learned from.

    pip install '.[river]'
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_heft_stream.py

River has no ensemble that selects features, nor one of several kinds; its `BaggingClassifier` of ten trees counts rows
by Poisson(1) as HEFT-Stream does. Normal features, two classes by a linear rule of five of them. All run in one
process, in turn, on the same rows, a new model each time; medians over the rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bench_hoeffding import Run, beside_river, one_by_one  # sets the number of threads first

from tamis import AdaptiveRandomForest, HEFTStream

OURS: dict[str, Callable[[], Any]] = {
    "HEFT-Stream": HEFTStream,
    "HEFT-Stream, trees": lambda: HEFTStream(estimators=["hoeffding-tree"]),
    "adaptive random forest": AdaptiveRandomForest,
}


def of_river(X: np.ndarray, y: np.ndarray) -> Run | None:
    try:
        from river import ensemble, tree
    except ImportError:
        return None
    return one_by_one(
        lambda: ensemble.BaggingClassifier(tree.HoeffdingTreeClassifier(), n_models=10, seed=0), X, y
    )


def main() -> None:
    beside_river(__doc__.splitlines()[0], "River's bagging", of_river, OURS, n_values=500_000, n_rounds=3)


if __name__ == "__main__":
    main()
