"""Screening: learning and reading, beside scikit-learn and the offline computation; sparse rows, memory, two threads.

OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_screening.py
OMP_NUM_THREADS=1 python benchmarks/bench_screening.py --only-dependence  # cost of the correction for dependent rows
OMP_NUM_THREADS=1 python benchmarks/bench_screening.py --only-labels  # 900 labels that never repeat
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from scipy.signal import lfilter
from sklearn.feature_selection import chi2, f_classif, mutual_info_classif

from tamis import ChiSquare, FisherScore, GiniIndex, MutualInformation, Screening, TScore, WeightedNaiveBayes
from tamis.summaries import quantiles
from tamis.summaries.contingency import chi_square, gini_decrease, mutual_information

KINDS: tuple[type[Any], ...] = (TScore, FisherScore, MutualInformation, ChiSquare, GiniIndex, Screening)


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def median(action: Callable[[], object], rounds: int = 3) -> float:
    return statistics.median(seconds(action) for _ in range(rounds))


def data(n_rows: int, n_features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_features)).astype(np.float32), rng.integers(0, 2, n_rows)


def learn(selector: Any, X: Any, y: np.ndarray, size: int = 100) -> Any:
    for start in range(0, X.shape[0], size):
        selector.partial_fit(X[start : start + size], y[start : start + size], classes=[0, 1])
    return selector


def offline_table(X: np.ndarray, y: np.ndarray, n_bins: int = 5) -> np.ndarray:
    """Counts of quantile bins with NumPy, all rows at once."""
    cuts = np.quantile(X, np.arange(1, n_bins) / n_bins, axis=0, method="inverted_cdf")
    table = np.empty((X.shape[1], n_bins, 2))
    for j in range(X.shape[1]):
        bins = np.searchsorted(cuts[:, j], X[:, j], side="left")
        table[j] = np.bincount(2 * bins + y, minlength=2 * n_bins).reshape(n_bins, 2)
    return table


def offline_scores(X: np.ndarray, y: np.ndarray) -> list[object]:
    table = offline_table(X, y)
    return [f_classif(X, y)[0], mutual_information(table), chi_square(table), gini_decrease(table)]


def learning_and_reading(dtype: type[Any]) -> None:
    print(f"\na batch of 100 rows of 10,000 features ({dtype.__name__}): ms, and times the copying of it;"
          " ms to read scores first, and again")  # fmt: skip
    X, y = data(4000, 10_000)
    X = X.astype(dtype)
    batches = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 4000, 100)]
    copy = statistics.median(seconds(rows.copy) for rows, _ in batches)
    for kind in KINDS:
        learn(kind(), X[:300], y[:300]).get_support()  # compiled
        selector = kind().partial_fit(*batches[0], classes=[0, 1])
        # A mean, since bin counts sort a block of rows once it is full; the median of two for the clock's hiccups.
        batch = median(lambda s=selector: learn(s, X, y), 2) / len(batches)
        first = seconds(lambda s=selector: s.scores_)
        again = median(lambda s=selector: s.scores_, 9)
        print(f"{kind.__name__:>18} {1e3 * batch:8.2f} {batch / copy:6.2f} {1e3 * first:8.2f} {1e3 * again:8.2f}",
              flush=True)  # fmt: skip


def beside_peers(n_features: int) -> None:
    X, y = data(10_000, n_features)
    positive, bins = X - X.min(axis=0), np.argsort(np.argsort(X, axis=0), axis=0) // 2000
    ours = {(k, s): median(lambda k=k, s=s: learn(k(), X, y, s).scores_) for k in KINDS for s in (100, 1000)}
    peers: list[tuple[str, type[Any], float]] = [
        ("f_classif", FisherScore, median(lambda: f_classif(X, y))),
        ("chi2 (of sums, no bins)", ChiSquare, median(lambda: chi2(positive, y))),
        ("mutual_info_classif, of given bins", MutualInformation,
         seconds(lambda: mutual_info_classif(bins, y, discrete_features=True))),
        ("NumPy, offline, all scores", Screening, median(lambda: offline_scores(X, y))),
    ]  # fmt: skip
    if n_features < 100:
        neighbours = seconds(lambda: mutual_info_classif(X, y, random_state=0))
        peers.append(("mutual_info_classif, by neighbours", MutualInformation, neighbours))
    for name, kind, peer in peers:
        by_100, by_1000 = ours[kind, 100], ours[kind, 1000]
        print(f"{n_features:>5} features {name:>36} {peer:8.3f}  {kind.__name__:>17} {by_100:7.3f} {by_1000:7.3f}"
              f"   peer / ours {peer / by_100:7.2f} {peer / by_1000:7.2f}", flush=True)  # fmt: skip


def sparse_rows(density: float, n_features: int) -> None:
    rng = np.random.default_rng(0)
    per_row = max(1, round(density * n_features))
    n_rows = 2_000_000 // per_row
    gap = n_features // per_row  # one stored value in each stretch of columns
    columns = np.arange(per_row) * gap + rng.integers(0, gap, (n_rows, per_row))
    values, ends = rng.normal(size=columns.size).astype(np.float32), np.arange(0, columns.size + 1, per_row)
    X, y = sp.csr_matrix((values, columns.ravel(), ends), (n_rows, n_features)), rng.integers(0, 2, n_rows)
    cost = [1e9 * seconds(lambda k=k: learn(k(), X, y, 500)) / X.nnz for k in (FisherScore, Screening)]
    print(
        f"{density:>8g} of {n_features:>7,} features: Fisher {cost[0]:7.1f}, all five {cost[1]:7.1f}",
        flush=True,
    )


def reading_sparse() -> None:
    """Mutual information of a million columns, in processor time, beside copying the counts that it is read from."""
    per_row, n_features, n_rows = 100, 1_000_000, 20_000
    rng = np.random.default_rng(0)
    gap = n_features // per_row
    columns = np.arange(per_row) * gap + rng.integers(0, gap, (n_rows, per_row))
    values, ends = rng.normal(size=columns.size).astype(np.float32), np.arange(0, columns.size + 1, per_row)
    X, y = sp.csr_matrix((values, columns.ravel(), ends), (n_rows, n_features)), rng.integers(0, 2, n_rows)
    selector, took = learn(MutualInformation(), X, y, 500), []
    for _ in range(7):
        selector._bins._tables = None
        start = time.process_time()
        _ = selector.scores_
        took.append(time.process_time() - start)
        counts, start = selector._bins.tables()[0][1], time.process_time()
        counts.copy()
        copied = time.process_time() - start
    print(f"\nscores of {n_features:,} columns, two values stored in each: {min(took[1:]):.2f} s,"
          f" {min(took[1:]) / copied:.0f} times copying their counts", flush=True)  # fmt: skip


def selecting_while_learning() -> None:
    """Mutual information, selecting after each batch, from all points and from those at the edges of bins."""
    print("\nns of processor time a value to select after each batch, and to learn")
    for n_features, size in (
        (50, 10),
        (500, 100),
        (1000, 100),
        (1000, 10),
        (10_000, 100),
    ):  # the first one compiles
        n_rows = min(20_000_000 // n_features, 200 * size)
        X, y = data(n_rows, n_features)
        took = {"all": 0.0, "edges": 0.0, "learn": 0.0}
        for mode in ("edges", "all") * 2:
            selector = MutualInformation()
            for start in range(0, n_rows, size):
                part, before = slice(start, start + size), time.process_time()
                selector.partial_fit(X[part], y[part], classes=[0, 1])
                learned = time.process_time()
                if mode == "all":
                    quantiles._readings.clear()
                selector.get_support()
                took["learn"] += (learned - before) / 2
                took[mode] += time.process_time() - learned
        value = 1e9 / (2 * X.size)
        print(
            f"{n_features:>7,} features, batches of {size:>3}: learn {value * took['learn']:6.1f}, select"
            f" {value * took['edges']:6.1f} for {value * took['all']:6.1f}, {took['all'] / took['edges']:.1f} times",
            flush=True,
        )


def evidence() -> None:
    """A batch of 100 rows of 2,000 features with and without a level, interleaved."""
    X, y = data(100, 2000)
    for kind in (TScore, MutualInformation):
        plain, weighed = kind(10), kind(None, level=0.05)
        for _ in range(5):
            plain.partial_fit(X, y), weighed.partial_fit(X, y)
        times = np.array(
            [[seconds(lambda s=s: s.partial_fit(X, y)) for s in (plain, weighed)] for _ in range(15)]
        )
        one, other = np.median(times, axis=0)
        print(
            f"{kind.__name__} with level: {other * 1e3:.2f} ms for {one * 1e3:.2f} ms, {other / one:.1f} times"
        )


def memory() -> None:
    print("\nbytes kept per feature after so many rows (10 features, 2 classes, eps=0.01)")
    rng = np.random.default_rng(0)
    means, both, rows = TScore(), Screening(), 0
    for goal in (10_000, 100_000, 1_000_000, 10_000_000):
        while rows < goal:
            n = min(goal - rows, 100_000)
            X, y = rng.normal(size=(n, 10)).astype(np.float32), rng.integers(0, 2, n)
            for selector in (means, both):
                selector.partial_fit(X, y, classes=[0, 1])
            rows += n
        print(f"{rows:>12,} rows: T {means.nbytes_ // 10:>6,}, all five {both.nbytes_ // 10:>8,}", flush=True)


def two_threads() -> None:
    X, y = data(400_000, 50)
    halves = (slice(0, 200_000), slice(200_000, 400_000))
    plain = np.random.default_rng(0).random(1 << 16, dtype=np.float32)

    def sort(times: int) -> None:
        for _ in range(times):
            np.sort(plain)

    def together() -> object:
        with ThreadPoolExecutor(2) as pool:
            left, right = pool.map(lambda half: learn(Screening(), X[half], y[half], 10_000), halves)
        return left.merge(right)

    def sort_together() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(sort, (300, 300)))

    ours, machine = [], []
    for _ in range(9):
        machine.append(seconds(lambda: sort(600)) / seconds(sort_together))
        ours.append(seconds(lambda: learn(Screening(), X, y, 10_000)) / seconds(together))
    print(f"\ntwo threads and merge, median and best of 9: {statistics.median(ours):.2f} {max(ours):.2f} times as fast;"
          f" np.sort alone in two threads here: {statistics.median(machine):.2f} {max(machine):.2f}")  # fmt: skip


def dependence(rounds: int = 10) -> None:
    print(
        "TScore, 50 features, batches of 100: processor time with dependence='auto' over that with 'independent'"
    )
    noise = np.random.default_rng(0).normal(size=(32_768, 51))
    for name, series in (("independent rows", noise), ("AR, phi .9", lfilter([1], [1, -0.9], noise, axis=0))):
        X, y = np.ascontiguousarray(series[:, :50]), (series[:, 50] > 0).astype(int)
        best: dict[tuple[str, bool], float] = {}
        for _ in range(rounds):
            for kind in ("independent", "auto"):
                selector = TScore(5, dependence=kind)
                for late, rows in ((False, slice(0, 8192)), (True, slice(8192, None))):
                    start = time.process_time()
                    learn(selector, X[rows], y[rows])
                    spent = time.process_time() - start
                    best[kind, late] = min(best.get((kind, late), np.inf), spent)
        early, late = (best["auto", part] / best["independent", part] for part in (False, True))
        print(f"{name:>20}: {early:.2f} in the first 8,192 rows, {late:.2f} after them", flush=True)


def labels(n_labels: int = 900, n_rows: int = 60) -> None:
    """Time of a row, one at a time, with a new label and an old one, after 8 and after 900 that occurred once."""
    print(
        "us of processor time a row of 20 columns, one at a time, and ms to read the scores; kB for each label"
    )
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_labels + n_rows, 20)), np.arange(n_labels + n_rows)
    for kind in (*KINDS, WeightedNaiveBayes):
        learn_each(kind(), X[:200], y[:200])  # compiled
        for before in (8, n_labels):
            model = kind()
            model.partial_fit(X[:before], y[:before])
            start = time.process_time()
            learn_each(model, X[before : before + n_rows], y[before : before + n_rows])
            middle = time.process_time()
            learn_each(model, X[:n_rows], y[:n_rows])
            end = time.process_time()
            _ = model.predict(X[:1]) if isinstance(model, WeightedNaiveBayes) else model.scores_
            read, kept = time.process_time() - end, getattr(model, "nbytes_", 0) / (before + n_rows) / 1e3
            new, old = (1e6 * (b - a) / n_rows for a, b in ((start, middle), (middle, end)))
            print(
                f"{kind.__name__:>18}, {before:>3} labels: new {new:7.0f}, old {old:7.0f}, read {1e3 * read:5.1f}"
                + (f", {kept:.1f} kB" if kept else ""),
                flush=True,
            )


def learn_each(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1])


def main() -> None:
    if "--only-labels" in sys.argv[1:]:
        return labels()
    if "--only-dependence" in sys.argv[1:]:
        return dependence()
    for dtype in (np.float64, np.float32):
        learning_and_reading(dtype)
    print("\nseconds for 10,000 rows: ours in batches of 100 and of 1000; peers get all rows at once")
    for n_features in (57, 500):
        beside_peers(n_features)
    print("\nnanoseconds per stored value of 2,000,000 in CSR rows")
    for kind in (FisherScore, Screening):
        learn(kind(), sp.csr_matrix(data(40_000, 4)[0]), data(40_000, 4)[1])  # compiled
    for density, n_features in ((1e-4, 100_000), (1e-3, 100_000), (1e-2, 100_000), (1e-1, 2000), (1.0, 2000)):
        sparse_rows(density, n_features)
    reading_sparse()
    selecting_while_learning()
    evidence()
    memory()
    two_threads()
    labels()
    return dependence()


if __name__ == "__main__":
    main()
