"""Comparison of the classifiers that acquire values: the loss of each on held-out rows, row by row.

The loss of a row is the misclassification cost of its decision plus the prices of its values. Every row is held out
once (three folds), so the losses of two candidates are compared on the same rows. The first candidate is the reference.
It is chosen unless others are better by more than one standard error of the paired differences; among these, the one
with the lowest loss is chosen. The reference of `tamis train` is the simplest policy: the same features for every row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from tamis._validation import Array, Floats, Ints
from tamis.base import CellClassifier
from tamis.base.numeric_target import NumericTarget
from tamis.cells.evaluation import completed
from tamis.cells.policy_selection import stratified_folds
from tamis.summaries.paired_losses import PairedLosses

_FOLDS = 3


@dataclass(frozen=True)
class Candidate:
    """A candidate and its results on the held-out rows.

    Attributes
    ----------
    name : str
    loss : float
        Mean misclassification cost and price per row.
    cost, n_values : float
        Mean price, and mean number of values.
    accuracy : float
    ahead : float
        Mean loss of the reference minus the mean loss of this candidate.
    error : float
        Standard error of `ahead`.
    """

    name: str
    loss: float
    cost: float
    n_values: float
    accuracy: float
    ahead: float
    error: float


def compare_classifiers(
    models: Mapping[str, CellClassifier],
    take: Callable[[Ints], Any],
    y: Array,
    on_progress: Callable[[float, str], None] | None = None,
) -> list[Candidate]:
    """Return the results of the candidates, in order.

    Parameters
    ----------
    models : mapping of name to unfitted classifier
        The first one is the reference.
    take : callable
        Returns the rows with these indices.
    y : ndarray of shape (n_rows,)
    on_progress : callable, optional
        Called with the completed share and the name of the next candidate.

    Examples
    --------
    >>> from tamis import ETANA, FixedSubset
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = rng.normal(size=(300, 4)) + y[:, None]
    >>> candidates = {"fixed-subset": FixedSubset(0.05), "etana": ETANA(0.05, random_state=0)}
    >>> result = compare_classifiers(candidates, lambda rows: X[rows], y)
    >>> [candidate.name for candidate in result], winner(result).name in candidates
    (['fixed-subset', 'etana'], True)
    """
    y = np.asarray(y)
    is_number = any(model._is_regression for model in models.values())
    codes = NumericTarget(y).codes(y) if is_number else np.unique(y, return_inverse=True)[1]
    fold = stratified_folds(codes, _FOLDS)
    losses, means = list[Floats](), list[Floats]()
    for place, (name, model) in enumerate(models.items()):
        rows = np.full((4, len(y)), np.nan)  # loss, price, number of values, whether correct
        for f in range(_FOLDS):
            if on_progress is not None:
                on_progress((place + f / _FOLDS) / len(models), name)
            held = np.flatnonzero(fold == f)
            if len(held):
                rows[:, held] = _evaluate_fold(clone(model), take, y, np.flatnonzero(fold != f), held)
        rows = rows[:, fold >= 0]
        losses.append(rows[0])
        means.append(rows.mean(axis=1) if rows.size else np.full(4, np.nan))
    paired = PairedLosses(len(models), max_rows=max(len(y), 1))
    behind, error = paired.with_rows(np.stack(losses, axis=1), np.ones(len(losses[0]))).behind(reference=0)
    return [
        Candidate(name, *map(float, (*mean, -gap, one)))
        for name, mean, gap, one in zip(models, means, behind, error, strict=True)
    ]


def _evaluate_fold(
    model: CellClassifier, take: Callable[[Ints], Any], y: Array, learned: Array, held: Array
) -> Floats:
    """Return loss, price, number of values and whether the decision is correct for each held-out row."""
    model.fit(take(learned), y[learned])
    label = model.predict(completed(model, take(held), y[held]))
    price = model.cost_
    return np.stack([model._losses(y[held], label) + price, price, model.n_features_used_, label == y[held]])


def winner(candidates: list[Candidate]) -> Candidate:
    """Return the best candidate among those ahead of the first by more than one standard error, or else the first.

    >>> one = Candidate("fixed-subset", 0.30, 0.1, 2.0, 0.8, 0.0, 0.0)
    >>> winner([one, Candidate("etana", 0.28, 0.1, 2.0, 0.8, 0.02, 0.03)]).name
    'fixed-subset'
    >>> winner([one, Candidate("etana", 0.28, 0.1, 2.0, 0.8, 0.02, 0.01)]).name
    'etana'
    """
    surely = [candidate for candidate in candidates if candidate.ahead > candidate.error]
    return max(surely, key=lambda candidate: candidate.ahead, default=candidates[0])  # the first on ties
