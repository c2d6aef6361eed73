"""Symmetrical uncertainty over a window: ours, the same in NumPy, a recount for every row, and River's entropies.

    pip install river==0.26.1
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_entropy.py [--sparse FILE.npz] [--only bias ...]

Two classes, a window of 200 rows, one thread; all of one line of features in turn, over and over, in one process. Rows
per second, medians over the rounds, with SU of all features read after every row ("per row") or every 100 rows.

* `numpy`: the same sums of k log2 k, in floating point, all features at once in NumPy, row by row.
* `recount`: one bincount of all features' value-class pairs over the window for every row.
* `river`: `stats.Entropy` for H(X), H(X, Y) and H(Y), 2 d + 1 objects. It cannot forget a row, so it fades
  (`fading_factor`), and drifts; it is the nearest thing there is.

Peers get categories of 10 values; they have nothing for numbers. "bias" is SU of features that tell nothing.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

from tamis._kernels import njit
from tamis.summaries.entropy import WindowCounts, update_row

WINDOW, VALUES = 200, 10
Step = Callable[[np.ndarray, np.ndarray], None]


class NumpyWindow:
    """SU of discrete features, an array operation for all features at a time."""

    def __init__(self, n_features: int) -> None:
        self.every, self.n, self.rows = np.arange(n_features), 0, deque()
        self.of_x = np.zeros((n_features, VALUES), np.int64)
        self.of_xy = np.zeros((n_features, VALUES, 2), np.int64)
        self.of_y = np.zeros(2, np.int64)
        self.t_x, self.t_xy, self.t_y = np.zeros(n_features), np.zeros(n_features), 0.0
        k = np.arange(WINDOW + 2)
        self.f = k * np.log2(np.maximum(k, 1))

    def _add(self, x: np.ndarray, y: int, sign: int) -> None:
        every, f = self.every, self.f
        k = self.of_x[every, x]
        self.t_x += f[k + sign] - f[k]
        self.of_x[every, x] = k + sign
        k = self.of_xy[every, x, y]
        self.t_xy += f[k + sign] - f[k]
        self.of_xy[every, x, y] = k + sign
        k = self.of_y[y]
        self.t_y += f[k + sign] - f[k]
        self.of_y[y] = k + sign
        self.n += sign

    def update(self, x: np.ndarray, y: int) -> None:
        if self.n == WINDOW:
            self._add(*self.rows.popleft(), -1)
        self._add(x, y, 1)
        self.rows.append((x, y))

    def su(self) -> np.ndarray:
        log = math.log2(self.n)
        h_x, h_y, h_xy = log - self.t_x / self.n, log - self.t_y / self.n, log - self.t_xy / self.n
        both = h_x + h_y
        return np.where(both > 1e-12, np.clip(2 * (both - h_xy) / np.maximum(both, 1e-12), 0, 1), 0.0)


def entropy_of(counts: np.ndarray) -> np.ndarray:
    share = counts / WINDOW
    return -(share * np.log2(np.where(share > 0, share, 1.0))).sum(axis=-1)


def numpy_steps(n_features: int) -> Step:
    window = NumpyWindow(n_features)

    def step(X: np.ndarray, y: np.ndarray) -> None:
        for x, label in zip(X.astype(np.int64), y.tolist(), strict=True):
            window.update(x, label)
            window.su()

    return step


def recount_steps(n_features: int) -> Step:
    held: list[np.ndarray] = [np.empty((0, n_features), np.int64)]

    def step(X: np.ndarray, y: np.ndarray) -> None:
        cells = 2 * X.astype(np.int64) + y[:, None] + 2 * VALUES * np.arange(n_features)
        cells = np.concatenate([held[0], cells])
        for end in range(len(held[0]) + 1, len(cells) + 1):
            table = np.bincount(cells[max(end - WINDOW, 0) : end].ravel(), minlength=2 * VALUES * n_features)
            table = table.reshape(n_features, VALUES, 2)
            h_x, h_y = entropy_of(table.sum(axis=2)), entropy_of(table.sum(axis=1))
            both = h_x + h_y
            2 * (both - entropy_of(table.reshape(n_features, -1))) / np.maximum(both, 1e-12)
        held[0] = cells[-WINDOW:]

    return step


def river_steps(n_features: int) -> Step:
    from river import stats

    of_x, of_xy = ([stats.Entropy(fading_factor=0.995) for _ in range(n_features)] for _ in range(2))
    of_y = stats.Entropy(fading_factor=0.995)

    def step(X: np.ndarray, y: np.ndarray) -> None:
        for x, label in zip(X.tolist(), y.tolist(), strict=True):
            of_y.update(label)
            for j, value in enumerate(x):
                of_x[j].update(value)
                of_xy[j].update((value, label))
            h_y = of_y.get()
            [
                2 * (a.get() + h_y - b.get()) / (a.get() + h_y + 1e-12)
                for a, b in zip(of_x, of_xy, strict=True)
            ]

    return step


@njit(strict=True)
def _each_row(X: np.ndarray, y: np.ndarray, state: tuple, su: np.ndarray) -> None:
    for i in range(len(X)):
        update_row(X[i], y[i], state, su, False)


def our_steps(every: int, categorical: bool, discretizer: str = "pad") -> Callable[[int], Step]:
    def make(n_features: int) -> Step:
        columns, su = range(n_features) if categorical else (), np.empty(n_features)
        counts = WindowCounts(n_features, 2, WINDOW, categorical=columns, discretizer=discretizer)

        def step(X: np.ndarray, y: np.ndarray) -> None:
            while len(X):
                if every == 1:
                    n = counts.prepare(X, y)
                    _each_row(X[:n], y[:n], counts.state, su)
                else:
                    n = every
                    counts.update(X[:n], y[:n])
                    counts.symmetrical_uncertainty()
                X, y = X[n:], y[n:]

        return step

    return make


OURS = {
    "PaD, per row": (our_steps(1, False), "numbers", 1.0),
    "PaD, per 100": (our_steps(100, False), "numbers", 1.0),
    "quantiles, per 100": (our_steps(100, False, "quantile"), "numbers", 1.0),
    "10 values, per row": (our_steps(1, True), "categories", 1.0),
    "10 values, per 100": (our_steps(100, True), "categories", 1.0),
    "binary, per 100": (our_steps(100, True), "bits", 1.0),
}
PEERS = {  # and which part of the rows they get, being slow
    "numpy, per row": (numpy_steps, "categories", 0.2),
    "recount, per row": (recount_steps, "categories", 0.1),
    "river, per row": (river_steps, "categories", 0.05),
}


def data(n: int, d: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(n, d))
    return {
        "numbers": numbers,
        "categories": rng.integers(0, VALUES, (n, d)).astype(float),
        "bits": (numbers > 0).astype(float),
        "y": rng.integers(0, 2, n),
    }


def bench(d: int, rounds: int, peers: bool) -> None:
    """Time all of them in turn, each with a full window from the start."""
    n = max(min(2_000_000 // d, 100_000), 1000)
    X = data(WINDOW + n, d)
    runs = OURS | PEERS if peers else OURS
    speed: dict[str, list[float]] = {name: [] for name in runs}
    for each in range(rounds + 1):
        for name, (make, kind, part) in runs.items():
            step, end = make(d), WINDOW + int(part * n)
            step(X[kind][:WINDOW], X["y"][:WINDOW])
            start = time.process_time()
            step(X[kind][WINDOW:end], X["y"][WINDOW:end])
            if each:  # the first round compiles
                speed[name].append((end - WINDOW) / (time.process_time() - start))
    base = statistics.median(speed["10 values, per row"])
    for name, found in speed.items():
        rate = statistics.median(found)
        print(f"| {d} | {name} | {rate:,.0f} | {1e9 / rate / d:.1f} | {base / rate:.3g} |", flush=True)


def bench_sparse(path: Path | None, rounds: int) -> None:
    if path is None:
        X = sp.random(9324, 39_917, 0.0058, "csr", random_state=0)
        X.data[:] = 1.0
    else:
        X = sp.csr_matrix(sp.load_npz(path), dtype=np.float64)
        X.data[:] = 1.0
    y = np.arange(X.shape[0]) % 2
    for every in (1, 100):
        rates, reads = [], []
        for _ in range(rounds):
            counts = WindowCounts(X.shape[1], 2, WINDOW)
            parts = [(X[i : i + every], y[i : i + every]) for i in range(0, X.shape[0], every)]
            start = time.process_time()
            for rows, of_rows in parts:
                counts.update(rows, of_rows)
            rates.append(X.shape[0] / (time.process_time() - start))
            counts.symmetrical_uncertainty()
            start = time.process_time()
            for _ in range(20):
                counts.symmetrical_uncertainty()
            reads.append((time.process_time() - start) / 20)
        ones = X.nnz / X.shape[0]
        print(
            f"CSR {X.shape[0]} x {X.shape[1]}, {ones:.0f} ones a row, batches of {every}:"
            f" {statistics.median(rates):,.0f} rows per second, {1e9 / statistics.median(rates) / ones:.1f} ns a one;"
            f" reading SU of all {1e3 * statistics.median(reads):.2f} ms; state {counts.nbytes / 1e6:.1f} MB"
        )


def bench_bias() -> None:
    """Print the mean and 95th percentile of SU of features that tell nothing, as it is and corrected."""
    print("| values | window | mean | 95 % | corrected mean | 95 % | (4), in units of SU |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(0)
    for values in (2, 5, 10):
        for window in (100, 200, 300, 500, 1000):
            plain, corrected = [], []
            for _ in range(20):
                X = rng.integers(0, values, (window, 1000)).astype(float)
                counts = WindowCounts(1000, 2, window, categorical=range(1000))
                counts.update(X, rng.integers(0, 2, window))
                plain.append(counts.symmetrical_uncertainty())
                corrected.append(counts.symmetrical_uncertainty(corrected=True))
            expected = (values - 1) / (window * math.log(2)) / (math.log2(values) + 1)
            cells = [part for su in (plain, corrected) for part in (np.mean(su), np.quantile(su, 0.95))]
            print(f"| {values} | {window} | " + " | ".join(f"{x:.4f}" for x in (*cells, expected)) + " |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--only", nargs="*", choices=("speed", "sparse", "bias"), default=["speed", "sparse", "bias"]
    )
    parser.add_argument("--features", type=int, nargs="*", default=[10, 50, 100, 1000, 10_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sparse", type=Path, help="a CSR matrix as scipy.sparse.save_npz writes it")
    parser.add_argument("--no-peers", action="store_true")
    arguments = parser.parse_args()
    if "speed" in arguments.only:
        print("| features | | rows per second | ns per feature and row | times ours, 10 values, per row |")
        print("| --- | --- | --- | --- | --- |")
        for d in arguments.features:
            bench(d, arguments.rounds, not arguments.no_peers)
    if "sparse" in arguments.only:
        bench_sparse(arguments.sparse, arguments.rounds)
    if "bias" in arguments.only:
        bench_bias()


if __name__ == "__main__":
    main()
