"""Rules beside the nearest that River has: rows per second, each row first predicted, then learned from.

    pip install '.[river]'
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_vfdr.py

River has no rule learner for classes (its AMRules is for numbers), so its Hoeffding tree, which keeps the same
statistics, stands in; ours is there too. Normal features, two classes by a linear rule of five of them. All run in one
process, in turn, on the same rows, begun anew each time; medians over the rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from bench_hoeffding import Run, data, in_batches, of_river, speeds  # sets the number of threads first

from tamis import VFDR, HoeffdingTree

OURS: dict[str, Callable[[], Any]] = {
    "ordered": VFDR,
    "unordered": lambda: VFDR(ordered=False),
    "ordered, drift": lambda: VFDR(drift=0.002),
    "Hoeffding tree": HoeffdingTree,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'features':>8} {'':>30} {'rows / s':>10} {'to River':>9}")
    for n_features in options.features:
        n = 1_000_000 // n_features
        X, y = data(n, n_features)
        few = n // 10
        runs: dict[str, tuple[Run | None, int]] = {
            "River's Hoeffding tree": (of_river("tree", X[:few], y[:few]), few)
        }
        for name, make in OURS.items():
            for size in (1, 100, 1000):
                part = few if size == 1 else n
                runs[f"{name}, {size}"] = in_batches(make, X[:part], y[:part], size), part
        found = speeds(runs, options.rounds)
        river = found.get("River's Hoeffding tree", float("nan"))
        for name, rate in found.items():
            print(f"{n_features:>8} {name:>30} {rate:>10,.0f} {rate / river:>9.1f}", flush=True)


if __name__ == "__main__":
    main()
