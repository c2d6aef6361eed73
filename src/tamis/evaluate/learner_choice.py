"""Choice of a learner if none is named: a few are compared on the first rows of a stream.

Each is evaluated prequentially (test-then-train) on these rows, with all features. The most accurate one is chosen. If
one of two classes is rare, it is the one with the largest average precision, since the majority-class baseline is
nearly always correct there. If features are categorical or have missing values, the naive Bayes that accepts them
replaces the Gaussian one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._validation import check_number
from tamis.catalog import find_learner
from tamis.errors import DataError
from tamis.evaluate.prequential import prequential
from tamis.evaluate.prequential.remarks import RARE
from tamis.options import model_parameters
from tamis.streams.any_source import as_stream
from tamis.streams.stream import ArrayStream

__all__ = ["LearnerChoice", "choose_learner"]

CANDIDATES = ("logistic", "perceptron", "naive-bayes", "adaptive-random-forest")
# Replacements if features are categorical, whose codes would be treated as numbers, or have missing values.
_TOLERANT = {"naive-bayes": "nb"}
_ROWS = 2000
_RARE_ROWS, _MOST = 200, 50_000  # rows of the rare class to wait for; maximum number of rows to read


@dataclass(frozen=True)
class LearnerChoice:
    """The learner chosen on the first rows, and the scores of all compared learners.

    Attributes
    ----------
    name : str
        Key of the catalogue.
    scores : dict of str to float
        Accuracy or average precision of each learner.
    measure : {"accuracy", "average precision"}
    n_rows : int
        Number of rows read.
    majority, no_change : float
        Accuracy of the majority-class and of the no-change baseline; with average precision, the share of the rare
        class, and NaN.
    """

    name: str
    scores: dict[str, float]
    measure: str
    n_rows: int
    majority: float
    no_change: float

    def sentence(self) -> str:
        """Return the choice and its reason, as one sentence."""
        others = ", ".join(f"{name} {score:.3f}" for name, score in self.scores.items() if name != self.name)
        beside = f"majority {self.majority:.3f}, no-change {self.no_change:.3f}"
        if self.measure != "accuracy":
            beside = f"the rare class has {self.majority:.2%} of the rows"
        return (
            f"Learner: {self.name}, {self.measure} {self.scores[self.name]:.3f} on the first {self.n_rows:,} rows"
            f" ({others}; {beside})."
        )


def choose_learner(stream: Any, *, max_rows: int | None = None, random_state: int = 0) -> LearnerChoice:
    """Choose a learner for a stream: a linear one, naive Bayes or an adaptive forest.

    Parameters
    ----------
    stream : Stream or (X, y)
        As for :func:`tamis.prequential`; its first rows are read.
    max_rows : int, optional
        Maximum number of rows to use, at least 100. By default 2000, or for a rare class as many as contain 200 rows of
        it, at most 50,000.
    random_state : int, default=0
        Seed of the learners.

    Returns
    -------
    LearnerChoice

    Raises
    ------
    DataError
        If there are fewer than 100 rows, or only one class.

    Examples
    --------
    The label is whether two features have the same sign, which a linear model cannot represent:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 4))
    >>> choice = choose_learner((X, X[:, 0] * X[:, 1] > 0))
    >>> choice.name, choice.scores["logistic"] < 0.6 < choice.scores["adaptive-random-forest"]
    ('adaptive-random-forest', True)
    """
    if max_rows is not None:
        check_number("max_rows", max_rows, low=100, integer=True)
    source = as_stream(stream)
    X, y = _first_rows(source, max_rows)
    # Values that arrive later than these rows would leave no row to compare on.
    waits = {name: min(rows, len(y) // 4) for name, rows in source.delayed_features.items()}
    labels, counts = np.unique(y, return_counts=True)
    if len(y) < 100 or len(labels) < 2:
        reason = f"has {len(y)} rows" if len(y) < 100 else f"has one class in its first {len(y):,} rows"
        raise DataError(f"The stream {reason}, too few to choose a learner: name one.")
    rare = len(labels) == 2 and counts.min() < RARE * len(y)
    measure = "average_precision" if rare else "accuracy"
    scores, total = dict[str, float](), dict[str, float]()
    categorical = [int(j) for j in getattr(source, "categorical", ())]
    is_missing = any(waits.values()) or (not sp.issparse(X) and bool(np.isnan(X).any()))
    for name in (_TOLERANT.get(name, name) if categorical or is_missing else name for name in CANDIDATES):
        entry = find_learner(name)
        if sp.issparse(X) and not entry.sparse:
            continue
        learner = entry.load()(**model_parameters(entry, seed=random_state, categorical=categorical))
        run = prequential(
            ArrayStream(X, y, source.feature_names, classes=labels).with_delayed_features(waits),
            None,
            learner,
            baselines="none",
            auc=bool(rare),
        )
        total = run.summary()
        scores[name] = float(total[measure])
    best = max(scores, key=lambda name: scores[name])
    share = float(counts.min() / len(y)) if rare else float(total["majority_accuracy"])
    no_change = float("nan") if rare else float(total["no_change_accuracy"])
    return LearnerChoice(best, scores, measure.replace("_", " "), len(y), share, no_change)


def _first_rows(source: Any, max_rows: int | None) -> tuple[Any, Any]:
    parts, n, counts = list[tuple[Any, Any]](), 0, dict[Any, int]()
    for X, y in source.batches(100):
        parts.append((X.copy(), np.asarray(y).copy()))
        n += len(y)
        for label, count in zip(*np.unique(y, return_counts=True), strict=True):
            counts[label] = counts.get(label, 0) + int(count)
        waits = max_rows is None and len(counts) <= 2 and min(counts.values()) < _RARE_ROWS and n < _MOST
        waits &= len(counts) == 1 or min(counts.values()) < RARE * n
        if n >= (max_rows or _ROWS) and not waits:
            break
    if not parts:
        return np.empty((0, 0)), np.empty(0)
    stack = sp.vstack if sp.issparse(parts[0][0]) else np.concatenate
    X, y = stack([X for X, _ in parts]), np.concatenate([y for _, y in parts])
    return (X, y) if max_rows is None else (X[:max_rows], y[:max_rows])
