"""Any classifier of scikit-learn as the decision: trained on rows of which only the bought values are known.

A row is learned from at several moments of its walk, when one value is known, when three are, and so on, the others NaN
(or their mean, for a classifier that takes no missing values). So one classifier has a probability at every step::

    log P(c | x_S) = log P(c) + b log(P'(c | x_S) / P(c)) + const                                    (1)

P' is the classifier's, S the columns bought, and b what its evidence is worth on rows that it was not taught, as in
:mod:`tamis.cells.discriminant`: a classifier that is too sure is believed less.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils import get_tags

from tamis._check import Array
from tamis.cells.discriminant import posterior_of
from tamis.cells.scikit_trees import Trees, few_threads

__all__ = ["Masked", "check_classifier", "moments"]

Floats = NDArray[np.float64]

_MOMENTS = 5  # of each row: more would count a row of small data as many
_FEW = 20  # of many rows: a column known in fewer is left out
_LEAST = 1e-12  # probability that a classifier may have for a class


class Masked:
    """Probabilities of the classes by a classifier, from any of the columns.

    Parameters
    ----------
    classifier : scikit-learn classifier with `predict_proba`
    n_classes : int

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 2))
    >>> X[:, 1] += 3 * y
    >>> model = Masked(LogisticRegression(), 2).fit(X, y)
    >>> np.exp(model.evidence(np.array([[0.0, 3.0]]))[:, 0, 1]).round(1)  # times its prior odds
    array([1. , 1. , 1.8])
    """

    # State, after fit:
    #   _known   (K,)   bool     columns known in enough rows; only these are looked at
    #   _means   (K,)   float64  stand in for missing values; NaN where the classifier takes those
    #   _classes (L',)  int64    classes met
    #   _fitted                  Trees, or the classifier

    def __init__(self, classifier: Any, n_classes: int) -> None:
        self.classifier, self.n_classes, self.worth = classifier, n_classes, 1.0
        self.prior: Floats = np.full(n_classes, 1.0 / n_classes)
        self._known, self._means = np.zeros(0, dtype=bool), np.zeros(0)
        self._classes = np.zeros(0, dtype=np.int64)
        self._fitted: Any = None

    @property
    def n_columns(self) -> int:
        """How many columns it knows."""
        return len(self._known)

    def fit(self, values: Floats, y: Array, order: Array | None = None, *, complete: bool = False) -> Masked:
        """Learn from rows.

        Parameters
        ----------
        values : ndarray of shape (n_rows, K)
            NaN where missing.
        y : ndarray of shape (n_rows,), int
        order : ndarray of shape (n_rows, n_steps), int, optional
            The columns in the order in which each row comes to know them, -1 where none; by default all.
        complete : bool
            Learn from rows of which every value is known, for a classifier that is asked for nothing else.
        """
        n, K = values.shape
        self.prior = np.bincount(y, minlength=self.n_classes) / len(y)
        rows, taught = np.arange(n), np.asarray(values, dtype=np.float64)
        if not complete:
            rows, taught = moments(taught, order)
        # Boosting holds rows back of its own, so a column known in a few rows may be known in none of the others.
        enough = max(1, min(_FEW, len(taught) // 100))
        self._known = np.asarray((~np.isnan(taught)).sum(axis=0) >= enough)
        model = clone(self.classifier)
        self._means = np.full(K, np.nan)
        if not get_tags(model).input_tags.allow_nan:
            there = ~np.isnan(values)
            self._means = np.where(there, values, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        if not self._known.any() or len(np.unique(y)) < 2:
            self._known[:] = False
            return self
        given = self._filled(taught)
        with few_threads(given):
            model.fit(given, y[rows])
        self._classes = np.asarray(model.classes_, dtype=np.int64)
        self._fitted = Trees(model) if type(model) is HistGradientBoostingClassifier else model
        return self

    def updated(self, values: Floats, y: Array, fading: float) -> Masked:
        """Return itself: a classifier learns all its rows at once."""
        return self

    def evidence(self, values: Floats, order: Array | None = None) -> Floats:
        """Return what the values of each row say of each class, one column after the other, at full worth.

        Parameters and result are those of :meth:`tamis.cells.discriminant.Discriminant.evidence`.
        """
        values = np.asarray(values, dtype=np.float64)
        if order is None:
            order = np.broadcast_to(np.arange(values.shape[1]), values.shape)
        found = np.zeros((order.shape[1] + 1, len(values), self.n_classes))
        seen, rows = np.full(values.shape, np.nan), np.arange(len(values))
        for s in range(order.shape[1]):
            new = rows[order[:, s] >= 0]
            seen[new, order[new, s]] = values[new, order[new, s]]
            found[s + 1] = found[s]
            new = new[~np.isnan(values[new, order[new, s]])]
            if len(new) and self._known.any():
                found[s + 1, new] = np.log(self._probability(seen[new])) - self._base()
        return found

    def posterior(self, values: Floats) -> Floats:
        """Return P(class) of rows of shape (n_rows, K), NaN where a value is unknown, (1)."""
        known = ~np.isnan(values[:, self._known]).all(axis=1)
        evidence = np.zeros((len(values), self.n_classes))
        if known.any():
            evidence[known] = np.log(self._probability(values[known])) - self._base()
        return posterior_of(evidence, self.prior, self.worth)

    def _base(self) -> Floats:
        found: Floats = np.log(np.maximum(self.prior, _LEAST))
        return found

    def _probability(self, seen: Floats) -> Floats:
        found = np.full((len(seen), self.n_classes), _LEAST)
        found[:, self._classes] = np.maximum(self._fitted.predict_proba(self._filled(seen)), _LEAST)
        return found

    def _filled(self, seen: Floats) -> Floats:
        return np.where(np.isnan(seen), self._means, seen)[:, self._known]


def check_classifier(classifier: Any, may_decide: bool, needed: str) -> None:
    """Refuse a classifier that cannot decide, or where something else does."""
    if classifier is None:
        return
    if not hasattr(classifier, "predict_proba"):
        raise ValueError(
            f"classifier={classifier!r} has no predict_proba: give a classifier that has probabilities."
        )
    if not may_decide:
        raise ValueError(f"classifier={classifier!r} would not be asked: it needs {needed}.")


def moments(values: Floats, order: Array | None, most: int = _MOMENTS) -> tuple[NDArray[np.int64], Floats]:
    """Return rows at several moments of their walks: which row, and its values that are known then, NaN the others."""
    n, K = values.shape
    if order is None:
        order = np.broadcast_to(np.arange(K), (n, K))
    n_steps = order.shape[1]
    n_moments = min(n_steps, most, _MOMENTS)
    rows = np.repeat(np.arange(n), n_moments)
    turn = np.tile(np.arange(n_moments), n)  # every row at other moments, all of them equally often
    n_known = (rows + turn * n_steps // max(n_moments, 1)) % n_steps + 1 if n_steps else rows
    return rows, _first(values[rows], order[rows], n_known)


def _first(values: Floats, order: Array, n_known: Array) -> Floats:
    """Return the values with only the first so many columns in order known, for each row."""
    found = np.full(values.shape, np.nan)
    known = (np.arange(order.shape[1]) < n_known[:, None]) & (order >= 0)
    rows, steps = np.nonzero(known)
    found[rows, order[rows, steps]] = values[rows, order[rows, steps]]
    return found
