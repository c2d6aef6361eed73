"""Rules beside the nearest that River has: rows per second, each row first predicted, then learned from.

    pip install '.[river]'
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_vfdr.py

River has no rule learner for classes (its AMRules is for numbers), so its Hoeffding tree, which keeps the same
statistics, stands in; ours is there too. Normal features, two classes by a linear rule of five of them. All run in one
process, in turn, on the same rows, a new model each time; medians over the rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bench_hoeffding import beside_river, of_river  # sets the number of threads first

from tamis import VFDR, HoeffdingTree, RandomRules

OURS: dict[str, Callable[[], Any]] = {
    "ordered": VFDR,
    "unordered": lambda: VFDR(ordered=False),
    "ordered, drift": lambda: VFDR(drift=0.002),
    "ten random sets": RandomRules,
    "Hoeffding tree": HoeffdingTree,
}


def main() -> None:
    tree = partial(of_river, "tree")
    beside_river(
        __doc__.splitlines()[0], "River's Hoeffding tree", tree, OURS, n_values=1_000_000, n_rounds=5
    )


if __name__ == "__main__":
    main()
