"""SparseFSA beside scikit-learn's SGD with log-loss and liblinear's L1 logistic: accuracy, features, seconds.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_sparse_fsa.py [--data FOLDER] [--rounds N]

The data are the two forms of 20 Newsgroups, trained on the earlier posts and tested on the later ones, as word counts
turned into tf-idf by the training rows. L1 logistic regression cannot be told how many features to keep: its C is the
scikit-learn default and ten times that. All run in one process, in turn; seconds are medians over the rounds, the
ratios are paired. Then the cost of a fit over the number of columns, with as many stored values.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier

from tamis import SparseFSA

ROOT = Path(__file__).resolve().parents[1]


def newsgroups(folder: Path) -> tuple[sp.csr_matrix, np.ndarray, sp.csr_matrix, np.ndarray]:
    counts = sp.load_npz(folder / "data.npz").astype(np.float64)
    with np.load(folder / "data.npz", allow_pickle=False) as arrays:
        y, later = arrays["y"].astype(np.int64), arrays["split"] == 1
    tfidf = TfidfTransformer(sublinear_tf=True).fit(counts[~later])
    return tfidf.transform(counts[~later]), y[~later], tfidf.transform(counts[later]), y[later]


def lasso(C: float) -> OneVsRestClassifier:
    return OneVsRestClassifier(LogisticRegression(l1_ratio=1, C=C, solver="liblinear", random_state=0))


def n_used(model: ClassifierMixin) -> int:
    parts = [part.coef_ for part in getattr(model, "estimators_", [model])]
    return int(np.count_nonzero(np.vstack(parts).any(axis=0)))


def compare(title: str, folder: Path, sizes: tuple[int, ...], n_rounds: int) -> None:
    X, y, X_later, y_later = newsgroups(folder)
    models: dict[str, ClassifierMixin] = {
        f"SparseFSA, {k:,}": SparseFSA(k, scaling=None, random_state=0) for k in sizes
    }
    models |= {f"SparseFSA, {sizes[0]:,}, scaled": SparseFSA(sizes[0], random_state=0)}
    models |= {"SGD log-loss": SGDClassifier(loss="log_loss", random_state=0)}
    models |= {"L1 logistic, C=1": lasso(1.0), "L1 logistic, C=10": lasso(10.0)}
    SparseFSA(5, n_epochs=1, random_state=0).fit(X[:50], np.arange(50) % 3)  # compiles
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(n_rounds):
        for name, model in models.items():
            start = time.perf_counter()
            model.fit(X, y)
            seconds[name].append(time.perf_counter() - start)
    print(f"{title}: {X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} stored values, {y.max() + 1} classes")
    print("method                     features  accuracy   seconds  seconds / SGD's")
    for name, model in models.items():
        ratio = statistics.median(a / b for a, b in zip(seconds[name], seconds["SGD log-loss"], strict=True))
        accuracy = (model.predict(X_later) == y_later).mean()
        median = statistics.median(seconds[name])
        print(f"{name:25} {n_used(model):>9,} {accuracy:>9.4f} {median:>9.2f} {ratio:>12.1f}", flush=True)


def widths() -> None:
    print(
        "\n2,000 rows with 50 stored values each, two classes, k = 1,000: milliseconds over the number of columns"
    )
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    for n_features in (10_000, 100_000, 1_000_000):
        columns = rng.integers(0, n_features, 100_000)
        X = sp.csr_matrix(
            (rng.random(100_000), (np.repeat(np.arange(2000), 50), columns)), (2000, n_features)
        )
        X.sum_duplicates()
        times = []
        for _ in range(5):
            start = time.perf_counter()
            SparseFSA(1000, random_state=0).fit(X, y)
            times.append(time.perf_counter() - start)
        print(f"{n_features:>10,} {min(times) * 1e3:9.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    compare("20 Newsgroups", arguments.data / "news20", (3000, 10_000, 30_063), arguments.rounds)
    compare(
        "20 Newsgroups, all words", arguments.data / "news20_full", (3000, 35_000, 130_107), arguments.rounds
    )
    widths()


if __name__ == "__main__":
    main()
