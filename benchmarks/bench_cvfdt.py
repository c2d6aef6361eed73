"""CVFDT beside the nearest that River has: rows per second, each row first predicted, then learned from.

    pip install '.[river]'
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_cvfdt.py

River has no tree of a window, so its adaptive tree, which has alternate trees too, stands in; ours is there as well.
Normal features, two classes by a linear rule of five of them. All run in one process, in turn, on the same rows, a new
model each time; medians over the rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bench_hoeffding import beside_river, of_river  # sets the number of threads first

from tamis import CVFDT, HoeffdingAdaptiveTree, HoeffdingTree

OURS: dict[str, Callable[[], Any]] = {
    "CVFDT": CVFDT,
    "adaptive tree": HoeffdingAdaptiveTree,
    "Hoeffding tree": HoeffdingTree,
}


def main() -> None:
    tree = partial(of_river, "adaptive tree")
    beside_river(__doc__.splitlines()[0], "River's adaptive tree", tree, OURS, n_values=1_000_000, n_rounds=5)


if __name__ == "__main__":
    main()
