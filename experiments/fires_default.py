"""Which options of FIRES should be the default: accuracy and stability over real and planted streams.

    python experiments/fires_default.py [--data FOLDER]

Every candidate runs over every stream in honest order (select on what was learned before, predict, then learn):
100 rows a batch (25 for streams under 1600 rows), 10 % of the features, a Perceptron, features scaled to [0, 1]
beforehand so that the published method is at its best. The last columns are the share of relevant features selected
some rows after all relevant features of a planted stream (200 features, 20 relevant) were replaced by others.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

from tamis import FIRES, Perceptron, prequential
from tamis.streams import ArrayStream, load_dataset

# As in the published tables: columns that are not selected are 0, no scaling, nothing beside the run.
PLAIN = {"masking": "zeros", "scale": "none", "baselines": "none"}
ROOT = Path(__file__).resolve().parents[1]
CANDIDATES: dict[str, Callable[[float], FIRES]] = {
    "published": FIRES.paper,
    "default": FIRES,
    "half_life=500": lambda share: FIRES(share, half_life=500),
    "half_life=1000": lambda share: FIRES(share, half_life=1000),
    "half_life=5000": lambda share: FIRES(share, half_life=5000),
    "half_life=inf": lambda share: FIRES(share, half_life=math.inf),
    "half_life=None": lambda share: FIRES(share, half_life=None),
    "learning_rate=0.3": lambda share: FIRES(share, learning_rate=0.3),
    "learning_rate=2": lambda share: FIRES(share, learning_rate=2.0),
    "class_weight=None": lambda share: FIRES(share, class_weight=None),
    "intercept=True": lambda share: FIRES(share, intercept=True),
    "scaling=center": lambda share: FIRES(share, scaling="center"),
    "scaling=center, importance=signal": lambda share: FIRES(share, scaling="center", importance="signal"),
    "scaling=None": lambda share: FIRES(share, scaling=None),
    "update=assumed-density": lambda share: FIRES(share, update="assumed-density"),
    "update=assumed-density, batch_size=10": lambda share: FIRES(
        share, update="assumed-density", batch_size=10
    ),
    "uncertainty_penalty=1": lambda share: FIRES(share, uncertainty_penalty=1.0),
}
# Rows kept of the large ones; those marked True keep their order, which is that of time.
REAL = {
    "spambase": (None, False),
    "usenet": (None, True),
    "madelon": (None, False),
    "dota2": (12_000, False),
    "mnist": (8_000, False),
    "a8a": (10_000, False),
    "electricity": (15_000, True),
    "magic04": (10_000, False),
    "german": (None, False),
    "splice": (None, False),
    "pcmac": (None, False),
    "spam_corpus": (6_000, True),
    "usenet2": (None, True),
    "news20": (5_000, False),
}
PAPER = ("spambase", "usenet", "madelon", "dota2", "mnist")


def unit(X: np.ndarray) -> np.ndarray:
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return (X - low) / np.where(width > 0, width, 1.0)


def real(name: str, data: Path) -> ArrayStream:
    rows, in_time = REAL[name]
    source = load_dataset(name, data_home=data)
    X, y = source.take(source.n_rows)
    if sp.issparse(X):  # the 3000 most frequent columns, so that the published method can run on them densely
        keep = np.sort(np.argsort(-np.asarray((X > 0).sum(axis=0)).ravel(), kind="stable")[:3000])
        X = X[:, keep].toarray()
    if len(np.unique(y)) > 2:
        y = np.asarray(y).astype(str) == "3" if name == "mnist" else np.unique(y, return_inverse=True)[1] < 10
    order = np.arange(len(y)) if in_time else np.random.default_rng(0).permutation(len(y))
    X, y = np.asarray(X, dtype=np.float64)[order[:rows]], np.asarray(y)[order[:rows]]
    return ArrayStream(unit(X), y, classes=np.unique(y))


def planted(n_features: int, seed: int = 0) -> ArrayStream:
    """Independent uniform features; one in twenty decides the class."""
    rng = np.random.default_rng(seed)
    weight = np.zeros(n_features)
    weight[rng.choice(n_features, n_features // 20, replace=False)] = rng.normal(size=n_features // 20)
    X = rng.random((10_000, n_features))
    margin = (X - 0.5) @ weight
    return ArrayStream(X, (margin + 0.3 * margin.std() * rng.normal(size=len(X)) > 0).astype(int))


def sensors(n_features: int, seed: int = 0) -> ArrayStream:
    """Features that share 25 hidden factors, five of which decide the class."""
    rng = np.random.default_rng(seed)
    n_factors = n_features // 20
    factors = rng.normal(size=(10_000, n_factors))
    loading = rng.normal(size=(n_factors, n_features)) * (rng.random((n_factors, n_features)) < 0.1)
    X = factors @ loading + 0.3 * rng.normal(size=(10_000, n_features))
    margin = factors[:, :5] @ rng.normal(size=5)
    return ArrayStream(unit(X), (margin + 0.3 * margin.std() * rng.normal(size=len(X)) > 0).astype(int))


def recovery(candidate: Callable[[float], FIRES], after: tuple[int, ...], seed: int) -> list[float]:
    """Return the share of the relevant features among as many selected, some rows after all of them changed."""
    rng = np.random.default_rng(seed)
    X, order = rng.random((20_000, 200)), rng.permutation(200)
    shares, selector = [], candidate(0.1)
    for start in range(0, len(X), 100):
        relevant = order[:20] if start < 10_000 else order[20:40]
        margin = (X[start : start + 100, relevant] - 0.5) @ np.where(np.arange(20) % 2, 1.0, -1.0)
        selector.partial_fit(
            X[start : start + 100], margin + 0.3 * rng.normal(size=100) > 0, classes=[False, True]
        )
        if start + 100 - 10_000 in after:
            shares.append(float(np.isin(selector.get_support(indices=True), relevant).mean()))
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of data sets"
    )
    data = parser.parse_args().data
    streams = {name: real(name, data) for name in REAL}
    streams |= {"planted": planted(2000), "sensors": sensors(500)}
    after = (1000, 2000, 4000, 10_000)
    table = {name: np.empty((len(streams), 2)) for name in CANDIDATES}
    for i, stream in enumerate(streams.values()):
        size = 100 if stream.n_rows > 1600 else 25
        for name, candidate in CANDIDATES.items():
            result = prequential(stream, candidate(0.1), Perceptron(), batch_size=size, **PLAIN)
            steps = result.frames["steps"]
            table[name][i] = steps["accuracy"].mean(), np.nanmean(steps["stability"])
    of_paper = [i for i, name in enumerate(streams) if name in PAPER]
    print("| options | accuracy | stability | sum | accuracy, paper's five | stability, paper's five |"
          + "".join(f" found {rows} rows after |" for rows in after))  # fmt: skip
    print("|---" * (6 + len(after)) + "|")
    for name, values in table.items():
        accuracy, stability = values.mean(axis=0)
        five = values[of_paper].mean(axis=0)
        found = np.mean([recovery(CANDIDATES[name], after, seed) for seed in range(3)], axis=0)
        print(f"| {name} | {accuracy:.3f} | {stability:.3f} | {accuracy + stability:.3f} | {five[0]:.3f} |"
              f" {five[1]:.3f} |" + "".join(f" {share:.2f} |" for share in found), flush=True)  # fmt: skip
    print("\naccuracy / stability of each stream: published, default")
    for i, name in enumerate(streams):
        pairs = [f"{table[c][i, 0]:.3f} / {table[c][i, 1]:.3f}" for c in ("published", "default")]
        print(f"| {name} | {pairs[0]} | {pairs[1]} |")


if __name__ == "__main__":
    main()
