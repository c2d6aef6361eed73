"""Quantile summaries of a matrix beside Apache DataSketches' vectorised KLL and XGBoost's QuantileDMatrix.

    pip install datasketches==5.2.0 xgboost==3.2.0
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_quantiles.py

All run in one process, in turn, on the same float32 batches, on one thread; medians over the rounds and the median of
the ratios round by round are printed. Ours keeps the counts of two classes, the others keep none. Errors are the
largest found over 199 quantiles of 100 features. Bytes per feature: ours all arrays, KLL its serialised sketch, and
for both the growth of the process. Without a peer its lines are missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import psutil
import scipy.sparse as sp

from tamis.summaries.contingency import chi_square, gini_decrease, mutual_information
from tamis.summaries.quantiles import QuantileSummary

QUANTILES = np.arange(1, 200) / 200


def data(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n_rows, n_features), dtype=np.float32), rng.integers(0, 2, n_rows)


def ours(eps: float, batch: int, dtype: str = "float32", keep: float = 1.0) -> Callable[..., object]:
    def build(X: np.ndarray, y: np.ndarray) -> QuantileSummary:
        summary = QuantileSummary(X.shape[1], 2, eps, dtype)
        for start in range(0, len(X), batch):
            summary.update(X[start : start + batch], y[start : start + batch], keep=keep)
        return summary

    return build


def kll(k: int, batch: int) -> Callable[..., object]:
    from datasketches import vector_of_kll_floats_sketches

    def build(X: np.ndarray, y: np.ndarray) -> object:
        sketches = vector_of_kll_floats_sketches(k, X.shape[1])
        for start in range(0, len(X), batch):
            sketches.update(X[start : start + batch])
        return sketches

    return build


def matrix(bins: int) -> Callable[..., object]:
    import xgboost

    return lambda X, y: xgboost.QuantileDMatrix(X, label=y, max_bin=bins, nthread=1)


def builders(batch: int) -> dict[str, Callable[..., object]]:
    found = {f"tamis eps={eps:g}": ours(eps, batch) for eps in (0.01, 0.02)}
    found["tamis eps=0.01 float64"] = ours(0.01, batch, "float64")
    found["tamis eps=0.01 faded"] = ours(0.01, batch, keep=0.9)
    if importlib.util.find_spec("datasketches"):
        found |= {f"KLL k={k}": kll(k, batch) for k in (200, 270, 400)}
    if importlib.util.find_spec("xgboost"):
        found["QuantileDMatrix 256"] = matrix(256)
    return found


def seconds(build: Callable[..., object], X: np.ndarray, y: np.ndarray) -> float:
    start = time.perf_counter()
    build(X, y)
    return time.perf_counter() - start


def error(found: object, X: np.ndarray) -> float:
    """Return the largest distance of a quantile's true rank from the rank asked for."""
    worst = 0.0
    all_ours = found.quantile(QUANTILES) if isinstance(found, QuantileSummary) else None
    for j in range(0, X.shape[1], max(1, X.shape[1] // 100)):
        x = np.sort(X[:, j])
        answer = all_ours[j] if all_ours is not None else found.get_quantiles(QUANTILES.tolist(), j)[0]
        answer = np.asarray(answer, np.float32)
        low, high = (np.searchsorted(x, answer, side) / len(x) for side in ("left", "right"))
        worst = max(worst, float(np.maximum(low - QUANTILES, QUANTILES - high).max()))
    return worst


def growth(name: str, batch: int, shape: tuple[int, int]) -> float:
    """Return the bytes per feature by which a process of its own has grown."""
    options = {"--grow": name, "--batch": batch, "--rows": shape[0], "--features": shape[1]}
    words = [str(word) for option in options.items() for word in option]
    command = [sys.executable, __file__, *words]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(child.stdout)


def grow(name: str, batch: int, shape: tuple[int, int]) -> None:
    build, (X, y) = builders(batch)[name], data(*shape)
    build(X[:2000, :20], y[:2000])  # compiles
    before = psutil.Process().memory_info().rss
    kept = build(X, y)
    print((psutil.Process().memory_info().rss - before) / shape[1])
    del kept


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--grow", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    shape = arguments.rows, arguments.features
    if arguments.grow:
        grow(arguments.grow, arguments.batch, shape)
        return
    X, y = data(*shape)
    build = builders(arguments.batch)
    for one in build.values():
        one(X[:2000, :20], y[:2000])
    rounds = [{name: seconds(one, X, y) for name, one in build.items()} for _ in range(arguments.rounds)]
    print(f"{shape[0]} rows of {shape[1]} features, batches of {arguments.batch}, {arguments.rounds} rounds")
    print(
        f"{'':>24} {'seconds':>8} {'ns/value':>8} {'x eps=.01':>9} {'error':>7} {'bound':>7} {'bytes':>7} {'grown':>7}"
    )
    for name, one in build.items():
        median = statistics.median(r[name] for r in rounds)
        ratio = statistics.median(r[name] / r["tamis eps=0.01"] for r in rounds)
        line = f"{name:>24} {median:>8.3f} {median / X.size * 1e9:>8.2f} {ratio:>9.2f}"
        if name.startswith("Quantile") or name.endswith("faded"):
            print(line, flush=True)
            continue
        found = one(X, y)
        if isinstance(found, QuantileSummary):
            bound, size = float(found.rank_error().max()), found.nbytes / shape[1]
        else:
            bound = found_bound(name)
            size = statistics.mean(len(found.serialize(j)[0]) for j in range(0, shape[1], 100))
        print(f"{line} {error(found, X):>7.4f} {bound:>7.4f} {size:>7.0f}"
              f" {growth(name, arguments.batch, shape):>7.0f}", flush=True)  # fmt: skip
    read(ours(0.01, arguments.batch)(X, y))
    sparse()


def found_bound(name: str) -> float:
    """Return KLL's stated error, which holds with 99 percent probability for one quantile."""
    from datasketches import kll_floats_sketch

    return float(kll_floats_sketch.get_normalized_rank_error(int(name.split("=")[1]), False))


def read(summary: QuantileSummary) -> None:
    def best(of: Callable[[], object], times: int = 7) -> float:
        of()
        found = []
        for _ in range(times):
            start = time.perf_counter()
            of()
            found.append(time.perf_counter() - start)
        return statistics.median(found) * 1e3

    table = summary.counts(5)
    print(f"\nmilliseconds: counts of 5 bins and 2 classes {best(lambda: summary.counts(5)):.1f}", end="")
    for score in (mutual_information, chi_square, gini_decrease):
        print(f", {score.__name__} {best(lambda score=score: score(table)):.2f}", end="")
    print()


def sparse() -> None:
    print(
        "\nCSR, 1000 rows of 10,000 columns a batch, 20 batches: microseconds a batch, nanoseconds a stored value"
    )
    for density in (1e-4, 1e-3, 1e-2, 1e-1, 1.0):
        X = sp.random(1000, 10_000, density=density, format="csr", random_state=0, dtype=np.float32)
        y = np.random.default_rng(0).integers(0, 2, 1000)
        summary = QuantileSummary(10_000, 2)
        summary.update(X, y)
        start = time.perf_counter()
        for _ in range(20):
            summary.update(X, y)
        passed = (time.perf_counter() - start) / 20
        print(f"{density:>8g} {passed * 1e6:>12.0f} {passed / X.nnz * 1e9:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
