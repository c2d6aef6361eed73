"""One FIRES step (learn from 100 rows, read the scores) beside float-evaluation's FIRES and two reads of the batch.

    pip install --no-deps float-evaluation==0.0.2
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_fires.py

All run in one process, in turn, on the same batches; the median over the rounds and the median of the ratios
round by round are printed. Without float-evaluation only our own columns are.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

from tamis import FIRES, MonteCarloFIRES

MODELS = {
    "probit": FIRES,
    "logit": lambda: FIRES(model="logit"),
    "tree": lambda: MonteCarloFIRES(model="tree"),
    "network": MonteCarloFIRES,
}
Batches = list[tuple[np.ndarray, np.ndarray]]


def peer() -> type | None:
    """Return float-evaluation's FIRES; its package needs scikit-multiflow, so only the module is imported."""
    found = importlib.util.find_spec("float")
    if found is None or not found.submodule_search_locations:
        return None
    (root,) = found.submodule_search_locations
    for name, folder in (
        ("float", root),
        ("float.feature_selection", os.path.join(root, "feature_selection")),
    ):
        stub = types.ModuleType(name)
        stub.__path__ = [folder]
        sys.modules[name] = stub
    base = importlib.import_module("float.feature_selection.base_feature_selector")
    sys.modules["float.feature_selection"].BaseFeatureSelector = base.BaseFeatureSelector
    return importlib.import_module("float.feature_selection.fires").FIRES


def batches(n_features: int, n_batches: int) -> Batches:
    rng = np.random.default_rng(0)
    weight = np.zeros(n_features)
    weight[rng.choice(n_features, max(5, n_features // 20), replace=False)] = 1.0
    found = []
    for _ in range(n_batches):
        X = rng.random((100, n_features))
        margin = (X - 0.5) @ weight
        found.append((X, (margin + 0.3 * margin.std() * rng.normal(size=100) > 0).astype(int)))
    return found


def step_of(selector: FIRES) -> Callable[[np.ndarray, np.ndarray], object]:
    def step(X: np.ndarray, y: np.ndarray) -> object:
        return selector.partial_fit(X, y).scores_

    return step


def seconds(step: Callable[[np.ndarray, np.ndarray], object], data: Batches) -> float:
    start = time.perf_counter()
    for X, y in data:
        step(X, y)
    return (time.perf_counter() - start) / len(data)


def compare_models(widths: list[int], rounds: int) -> None:
    print(
        f"milliseconds per batch of 100 rows, medians over rounds\n{'features':>8}",
        *(f"{m:>10}" for m in MODELS),
    )
    for n_features in widths:
        data = batches(n_features, 5)
        steps = [step_of(make()) for make in MODELS.values()]
        for step in steps:
            step(*data[0])
        times = [[seconds(step, data) for step in steps] for _ in range(rounds)]
        print(
            f"{n_features:8d}",
            *(f"{1e3 * statistics.median(column):10.3f}" for column in zip(*times, strict=True)),
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", type=int, nargs="+", default=[57, 500, 5000, 10000])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--models", action="store_true", help="our models beside one another instead of the peer"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.models:
        compare_models(arguments.features, arguments.rounds)
        return
    peer_class = peer()
    print("milliseconds per batch of 100 rows, float64, one thread; ratios are medians over rounds")
    print(f"{'':>8} {'two reads':>10} {'default':>9} {'paper':>9} {'peer':>9} {'peer/default':>13} {'peer/paper':>11}"
          f" {'default/reads':>14} {'paper/reads':>12}")  # fmt: skip
    for n_features in arguments.features:
        data = batches(n_features, 12 if n_features > 1000 else 50)
        steps = {
            "reads": lambda X, y: (X.sum(), X.sum()),
            "default": step_of(FIRES()),
            "paper": step_of(FIRES.paper()),
        }
        if peer_class is not None:
            judge = peer_class(n_features, max(1, n_features // 10), classes=[0, 1])
            steps["peer"] = lambda X, y, judge=judge: judge.weight_features(X, y.copy())
        for step in steps.values():
            step(*data[0])
        rounds = [
            {name: seconds(step, data) for name, step in steps.items()} for _ in range(arguments.rounds)
        ]

        def median(of: str, to: str | None = None, rounds: list[dict[str, float]] = rounds) -> float:
            if of not in rounds[0]:
                return float("nan")
            return statistics.median(r[of] / (r[to] if to else 1e-3) for r in rounds)

        print(f"{n_features:>8} {median('reads'):>10.4f} {median('default'):>9.4f} {median('paper'):>9.4f}"
              f" {median('peer'):>9.3f} {median('peer', 'default'):>13.1f} {median('peer', 'paper'):>11.1f}"
              f" {median('default', 'reads'):>14.2f} {median('paper', 'reads'):>12.2f}", flush=True)  # fmt: skip
    sparse()


def sparse() -> None:
    print("\nCSR, 100 rows of 100 stored values: milliseconds per batch, and how many times as long it takes if columns"
          " without a stored value are walked as the others are")  # fmt: skip
    rng = np.random.default_rng(0)
    fires = importlib.import_module("tamis.rows.fires.fires")
    for n_features in (1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000):
        data = []
        for _ in range(10):
            columns = rng.integers(0, n_features, 10_000)
            X = sp.csr_matrix(
                (rng.random(10_000), (np.repeat(np.arange(100), 100), columns)), (100, n_features)
            )
            X.sum_duplicates()
            data.append((X, rng.integers(0, 2, 100)))
        print(f"{n_features:>10}", end="")
        for name, selector in (("default", FIRES()), ("paper", FIRES.paper())):
            selector.partial_fit(*data[0], classes=[0, 1])
            took = []
            for _ in range(7):
                row = []
                for wide in (fires._WIDE, np.inf):
                    kept, fires._WIDE = fires._WIDE, wide
                    row.append(seconds(lambda X, y, s=selector: s.partial_fit(X, y), data) * 1e3)
                    fires._WIDE = kept
                took.append(row)
            ours, ratio = min(row[0] for row in took[1:]), statistics.median(b / a for a, b in took[1:])
            print(f"   {name} {ours:8.3f} {ratio:6.2f}", end="", flush=True)
        print()


if __name__ == "__main__":
    main()
