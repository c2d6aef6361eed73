"""Quantile summaries beside Apache DataSketches' KLL and XGBoost's QuantileDMatrix, and what they cost alone.

    pip install datasketches==5.2.0 xgboost==3.2.0
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_quantiles.py [--only peers ...] [--plot FILE]

Peers run in one process, in turn, on the same float32 batches, on one thread; medians over the rounds and the median of
the ratios round by round are printed. Ours keeps the counts of two classes, the others keep none. Errors are the
largest found over 199 quantiles of 100 features. Bytes per feature: ours all arrays, KLL its serialised sketch.
Without a peer its lines are missing.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

from tamis.summaries.contingency import chi_square, gini_decrease, mutual_information
from tamis.summaries.quantiles import QuantileSummary

QUANTILES = np.arange(1, 200) / 200
Series = dict[str, list[tuple[float, float]]]


def data(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n_rows, n_features), dtype=np.float32), rng.integers(0, 2, n_rows)


def ours(eps: float, batch: int = 1000, dtype: str = "float32", keep: float = 1.0) -> Callable[..., object]:
    def build(X: np.ndarray, y: np.ndarray) -> QuantileSummary:
        summary = QuantileSummary(X.shape[1], 2, eps, dtype)
        for start in range(0, len(X), batch):
            summary.update(X[start : start + batch], y[start : start + batch], keep=keep)
        return summary

    return build


def kll(k: int, batch: int = 1000) -> Callable[..., object]:
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


def seconds(of: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    of()
    return clock() - start


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


def promised(name: str, found: object) -> float:
    """Return ours, which always holds, or KLL's, which holds with 99 percent probability for one quantile."""
    if isinstance(found, QuantileSummary):
        return float(found.rank_error().max())
    from datasketches import kll_floats_sketch

    return float(kll_floats_sketch.get_normalized_rank_error(int(name.split("=")[1]), False))


def bytes_per_feature(found: object, n_features: int) -> float:
    if isinstance(found, QuantileSummary):
        return found.nbytes / n_features
    return statistics.mean(
        len(found.serialize(j)[0]) for j in range(0, n_features, max(1, n_features // 100))
    )


# -- beside peers ------------------------------------------------------------------------------------------


def peers(n_rows: int, n_features: int, n_rounds: int) -> None:
    X, y = data(n_rows, n_features)
    build = {f"tamis eps={eps:g}": ours(eps) for eps in (0.01, 0.02)}
    build |= {
        "tamis eps=0.02 float64": ours(0.02, dtype="float64"),
        "tamis eps=0.02 faded": ours(0.02, keep=0.9),
    }
    if importlib.util.find_spec("datasketches"):
        build |= {f"KLL k={k}": kll(k) for k in (200, 300, 400)}
    if importlib.util.find_spec("xgboost"):
        build["QuantileDMatrix 256"] = matrix(256)
    for one in build.values():
        one(X[:2000, :20], y[:2000])  # compiles
    rounds = [
        {name: seconds(lambda one=one: one(X, y)) for name, one in build.items()} for _ in range(n_rounds)
    ]
    print(f"\n{n_rows} rows of {n_features} features, batches of 1000, {n_rounds} rounds")
    print(
        f"{'':>24} {'seconds':>8} {'ns/value':>8} {'x eps=.02':>9} {'error':>7} {'promise':>7} {'bytes':>7}"
    )
    for name, one in build.items():
        median = statistics.median(r[name] for r in rounds)
        ratio = statistics.median(r[name] / r["tamis eps=0.02"] for r in rounds)
        line = f"{name:>24} {median:>8.3f} {median / X.size * 1e9:>8.2f} {ratio:>9.2f}"
        if not name.startswith("Quantile"):
            found = one(X, y)
            size = bytes_per_feature(found, n_features)
            line += f" {error(found, X):>7.4f} {promised(name, found):>7.4f} {size:>7.0f}"
        print(line, flush=True)


def lengths() -> None:
    """Bytes go up and down as levels fill, so the fair comparison is one over many lengths."""
    print("\n500 features, means over streams of m to 2.4 m rows: bytes per feature and error found")
    for shortest in (6_000, 60_000):
        X, y = data(int(2.4 * shortest), 500)
        stops = np.linspace(shortest, len(X), 8).astype(int)
        build = {f"tamis eps={eps:g}": ours(eps) for eps in (0.01, 0.02, 0.03, 0.04)}
        if importlib.util.find_spec("datasketches"):
            build |= {f"KLL k={k}": kll(k) for k in (100, 200, 300, 400)}
        for name, one in build.items():
            found = [one(X[:stop], y[:stop]) for stop in stops]
            worst = statistics.mean(
                error(summary, X[:stop]) for summary, stop in zip(found, stops, strict=True)
            )
            size = statistics.mean(bytes_per_feature(summary, 500) for summary in found)
            promise = statistics.mean(promised(name, summary) for summary in found)
            print(f"{name:>18}, m = {shortest:>6}: {size:>6.0f} bytes, error {worst:.4f}, promised {promise:.4f},"
                  f" error x bytes {worst * size:.1f}", flush=True)  # fmt: skip


def batches(n_rows: int, n_rounds: int) -> None:
    """Few columns, small batches: where calls cost more than values."""
    print(f"\n{n_rows} rows, nanoseconds of processor time a value, medians of {n_rounds} rounds;"
          " KLL's time over ours at eps=0.01")  # fmt: skip
    for n_features, batch in ((100, 100), (500, 100), (1000, 100), (1000, 1000)):
        X, y = data(n_rows, n_features)
        build = {f"tamis eps={eps:g}": ours(eps, batch) for eps in (0.01, 0.02)}
        if importlib.util.find_spec("datasketches"):
            build["KLL k=200"] = kll(200, batch)
        build["sort of the columns"] = lambda X, y: np.sort(np.ascontiguousarray(X.T), axis=1)
        for one in build.values():
            one(X[:2000], y[:2000])  # compiles
        rounds = [
            {name: seconds(functools.partial(one, X, y), time.process_time) for name, one in build.items()}
            for _ in range(n_rounds)
        ]
        shown = [f"{name} {statistics.median(r[name] for r in rounds) / X.size * 1e9:.1f}" for name in build]
        if "KLL k=200" in build:
            ratio = statistics.median(r["KLL k=200"] / r["tamis eps=0.01"] for r in rounds)
            shown.append(f"{ratio:.1f} times")
        print(f"{n_features} columns, batches of {batch}: {', '.join(shown)}", flush=True)


# -- alone -------------------------------------------------------------------------------------------------


def reading() -> None:
    """What a user pays who asks for the scores after each batch."""
    X, y = data(12_000, 10_000)
    print("\n10,000 features, 2 classes: milliseconds, medians")
    for eps in (0.01, 0.02):
        summary = ours(eps)(X[:10_000], y[:10_000])
        summary.counts(5)
        spent: dict[str, list[float]] = {"update with 100 rows": [], "counts of 5 bins": []}
        for start in range(10_000, 12_000, 100):
            part = slice(start, start + 100)
            update = functools.partial(summary.update, X[part], y[part])
            spent["update with 100 rows"].append(seconds(update))
            spent["counts of 5 bins"].append(seconds(functools.partial(summary.counts, 5)))
        table = summary.counts(5)
        for score in (mutual_information, chi_square, gini_decrease):
            score(table)
            spent[score.__name__] = [seconds(functools.partial(score, table)) for _ in range(9)]
        print(f"eps={eps:g}: " + ", ".join(f"{k} {statistics.median(v) * 1e3:.2f}" for k, v in spent.items()))


def sparse() -> Series:
    """Time per stored value, over densities and over numbers of columns."""
    found: Series = {"density": [], "columns": []}
    print("\nCSR rows, batches of 1000: nanoseconds a stored value")
    for density in (1e-4, 1e-3, 1e-2, 1e-1, 1.0):
        passed = _sparse_cost(10_000, density, 20)
        found["density"].append((density, passed))
        print(f"  10,000 columns, density {density:g}: {passed:.0f}", flush=True)
    for columns in (1_000, 10_000, 100_000, 1_000_000):
        passed = _sparse_cost(columns, 100 / columns, 100)
        found["columns"].append((columns, passed))
        print(f"  {columns} columns, 100 stored values a row: {passed:.0f}", flush=True)
    return found


def _sparse_cost(columns: int, density: float, n_batches: int) -> float:
    rng = np.random.default_rng(0)
    X = sp.random(1000, columns, density=density, format="csr", rng=rng, dtype=np.float32)
    y, summary = rng.integers(0, 2, 1000), QuantileSummary(columns, 2)
    summary.update(X, y)
    spent = sum(seconds(lambda: summary.update(X, y)) for _ in range(n_batches))
    return spent / n_batches / X.nnz * 1e9


def memory() -> Series:
    """Bytes over the number of rows."""
    found: Series = {}
    print("\n5 features, 2 classes: bytes per feature after n rows (of the rows: 4 n)")
    for eps in (0.01, 0.05):
        rng, summary = np.random.default_rng(0), QuantileSummary(5, 2, eps)
        points, n = [], 0
        for stop in (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000):
            while n < stop:
                summary.update(rng.standard_normal((10_000, 5), dtype=np.float32), rng.integers(0, 2, 10_000))
                n += 10_000
            points.append((n, summary.nbytes / 5))
        found[f"eps = {eps:g}"] = points
        print(f"  eps={eps:g}: " + ", ".join(f"{n:.0e}: {size:.0f}" for n, size in points), flush=True)
    return found


def threads() -> None:
    """Two halves of the rows on two threads, then merged, beside all rows on one."""
    X, y = data(20_000, 2_000)
    build = ours(0.02)

    def two() -> None:
        with ThreadPoolExecutor(2) as pool:
            halves = [
                pool.submit(build, X[part], y[part]) for part in (slice(0, 10_000), slice(10_000, None))
            ]
            first, second = (half.result() for half in halves)
        first.merge(second)

    build(X[:2000], y[:2000])
    rounds = [(seconds(lambda: build(X, y)), seconds(two)) for _ in range(15)]
    ratios = sorted(one / both for one, both in rounds)
    best = min(one for one, _ in rounds) / min(both for _, both in rounds)
    print(f"\ntwo threads and a merge: {statistics.median(ratios):.2f} times one thread (median of 15 pairs;"
          f" quickest of each {best:.2f}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")  # fmt: skip


def plot(cost: Series, sizes: Series, file: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    axes[0].plot(*zip(*cost["density"], strict=True), marker="o")
    axes[1].plot(*zip(*cost["columns"], strict=True), marker="o")
    for name, points in sizes.items():
        axes[2].plot(*zip(*points, strict=True), marker="o", label=name)
    axes[2].legend(frameon=False)
    texts = [("density (10,000 columns)", "ns per stored value"), ("columns (100 stored values a row)", ""),
             ("rows", "bytes per feature (2 classes)")]  # fmt: skip
    for ax, (x, y) in zip(axes, texts, strict=True):
        ax.set(xscale="log", xlabel=x, ylabel=y, ylim=(0, None))
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(file)


def main() -> None:
    parts = ("peers", "batches", "lengths", "reading", "sparse", "memory", "threads")
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plot", help="draw cost and memory to this file; needs the parts sparse and memory")
    arguments = parser.parse_args()
    wanted = arguments.only
    if "peers" in wanted:
        peers(arguments.rows, arguments.features, arguments.rounds)
    if "batches" in wanted:
        batches(arguments.rows, arguments.rounds)
    for name, part in (("lengths", lengths), ("reading", reading), ("threads", threads)):
        if name in wanted:
            part()
    cost, sizes = sparse() if "sparse" in wanted else {}, memory() if "memory" in wanted else {}
    if arguments.plot:
        plot(cost, sizes, arguments.plot)


if __name__ == "__main__":
    main()
