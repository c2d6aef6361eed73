"""One EFS step (learn from 100 rows, read the scores) beside float-evaluation's EFS and the same in NumPy.

    pip install --no-deps float-evaluation==0.0.2
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_efs.py

All run in one process, in turn, on the same batches of values in [0, 1], once where a twentieth of the features tells
the classes well apart (few mistakes) and once where labels are noise (a mistake in nearly every row). "range" does what
float-evaluation does; "sum" is the paper's, and our default. Medians over the rounds; without float-evaluation its
column is nan. Then CSR rows over the number of columns, whose cost is that of their stored cells.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import warnings
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from bench_ofs import batches, peer, seconds

from tamis import EFS


class NumpyEFS:
    """The winnow of the paper, one row at a time, with NumPy's arithmetic over its features."""

    def __init__(self, n_features: int) -> None:
        self.u, self.v = np.full(n_features + 1, 2.0), np.ones(n_features + 1)

    def learn(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        for x, sign in zip(np.column_stack([X, np.ones(len(X))]), np.where(y > 0, 1.0, -1.0), strict=True):
            share = x / np.abs(x).sum()
            if sign * (share @ (self.u - self.v) - 1.0) <= 1.0:
                up, down = 1.5 * (1.0 + np.abs(share)), 0.5 * (1.0 - np.abs(share))
                own = (share < 0) == (sign < 0)
                self.u *= np.where(own, up, down)
                self.v *= np.where(own, down, up)
                for weights in (self.u, self.v):
                    np.clip(weights, 2.0**-200, 2.0**200, out=weights)
        return np.abs(self.u - self.v)[:-1]


def dense(n_features: int, apart: float, n_rounds: int, peer_class: type | None) -> None:
    data = batches(n_features, 4 if n_features > 1000 else 10, apart)
    ours = {name: EFS(normalize=name) for name in ("sum", "range")}
    plain = NumpyEFS(n_features)
    steps: dict[str, Callable[[np.ndarray, np.ndarray], object]] = {
        "sum": lambda X, y: ours["sum"].partial_fit(X, y).scores_,
        "range": lambda X, y: ours["range"].partial_fit(X, y).scores_,
        "numpy": plain.learn,
    }
    if peer_class is not None:
        judge = peer_class(n_features, max(1, n_features // 10))
        steps["float"] = lambda X, y: judge.weight_features(X, y.copy())
    for name, step in steps.items():
        seconds(step, data[: 1 if name == "float" else None])
    rounds = [{name: seconds(step, data) for name, step in steps.items()} for _ in range(n_rounds)]

    def median(of: str, to: str | None = None) -> float:
        return statistics.median(r.get(of, math.nan) / (r[to] if to else 1e-3) for r in rounds)

    times = " ".join(f"{median(name):>9.3f}" for name in ("sum", "range", "numpy", "float"))
    ratios = (
        f"{median('numpy', 'sum'):>10.1f} {median('float', 'sum'):>10.1f} {median('float', 'range'):>12.1f}"
    )
    print(f"{n_features:>9} {times} {ratios}", flush=True)


def sparse() -> None:
    print("\nCSR, 100 stored values a row: milliseconds per batch of 100 rows over the number of columns")
    rng = np.random.default_rng(0)
    for n_features in (10_000, 100_000, 1_000_000):
        data = []
        for _ in range(10):
            X = sp.random(100, n_features, 100 / n_features, "csr", rng=rng)
            data.append((X, rng.integers(0, 2, 100)))
        selector = EFS()
        best = min(seconds(selector.partial_fit, data) for _ in range(5))
        print(f"{n_features:>10} {best * 1e3:9.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", type=int, nargs="+", default=[57, 500, 5000, 10000])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    peer_class = peer("EFS")
    for title, apart in (("few mistakes", 1.0), ("noise labels", 0.0)):
        print(
            f"{title}: milliseconds per batch of 100 rows, float64, one thread; ratios are medians over rounds"
        )
        print(" features       sum     range     numpy     float  numpy/sum  float/sum  float/range")
        for n_features in arguments.features:
            dense(n_features, apart, arguments.rounds, peer_class)
    sparse()


if __name__ == "__main__":
    main()
