"""HUWRS beside River's random patches of as many trees: rows per second, first predicted, then learned from.

    pip install '.[river]'
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_huwrs.py

River has no ensemble that compares distributions; its `SRPClassifier` has members on random halves of the features as
HUWRS has, ten Hoeffding trees, of which each is replaced when its errors rise. Normal features, two classes by a
linear rule of five of them. All run in one process, in turn, on the same rows, a new model each time; medians over the
rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bench_hoeffding import Run, beside_river, one_by_one  # sets the number of threads first

from tamis import HUWRS, StreamingRandomPatches

OURS: dict[str, Callable[[], Any]] = {
    "HUWRS": HUWRS,
    "HUWRS, trees": lambda: HUWRS(estimator="hoeffding-tree"),
    "random patches": lambda: StreamingRandomPatches(10, 0.5),
}


def of_river(X: np.ndarray, y: np.ndarray) -> Run | None:
    try:
        from river import ensemble
    except ImportError:
        return None
    return one_by_one(lambda: ensemble.SRPClassifier(n_models=10, subspace_size=0.5, seed=0), X, y)


def main() -> None:
    beside_river(__doc__.splitlines()[0], "River's patches", of_river, OURS, n_values=500_000, n_rounds=3)


if __name__ == "__main__":
    main()
