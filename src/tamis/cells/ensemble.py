"""A discriminant analysis and boosted trees together: what a sum over columns sees, and what only several values say.

Each adds its evidence E_m, as far as that held on rows that were not learned from::

    log P(c | x_S) = log P(c) + sum_m b_m E_m(c, x_S) + const                                        (1)

The worths b_m, from 0 to 1.2, are those that make the labels of such rows most likely, the mean over the steps of their
walks. For each unit of worth 1 is taken off the logarithm of the likelihood, as in Akaike's criterion: of few rows,
little is believed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from tamis._check import Array
from tamis._jit import njit
from tamis._shapes import Shapes
from tamis.cells.discriminant import Discriminant, Judge, Worth, best_worth, posterior_of
from tamis.cells.held_out import longer
from tamis.cells.masked import Masked
from tamis.cells.small_trees import SmallTrees

__all__ = ["Ensemble", "best_worths", "calibrated", "joined", "taught", "with_trees"]

Floats = NDArray[np.float64]
_MOST = 1.2  # worth
_PARTS = 2  # of the rows, on which an ensemble must have promise


class Ensemble:
    """Probabilities of the classes from any of the columns, by a discriminant analysis and trees.

    Parameters
    ----------
    n_bins : int
        Of the discriminant analysis.
    n_classes : int

    Examples
    --------
    The class is the sign of a product, of which a sum over columns tells nothing:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> model = Ensemble(4, 2).fit(X, (X[:, 0] * X[:, 1] > 0).astype(int))
    >>> model.posterior(np.array([[1.0, 1.0], [1.0, -1.0]])).round(1)
    array([[0., 1.],
           [1., 0.]])
    """

    _fit_together = Shapes(
        "worth (2)  prior (k)  _normal (its own)  _trees (its own)"
        "  _normal.prior (k)  _trees.prior (k)  _normal._low (d)  _trees._bins.edges (d, *)"
    )

    # State, after fit:
    #   worth    (2,)          float64  b
    #   prior    (n_classes,)  float64
    #   _normal        Discriminant
    #   _trees         SmallTrees

    def __init__(self, n_bins: int, n_classes: int) -> None:
        self.worth: Worth = np.ones(2)
        self._normal, self._trees = Discriminant(n_bins, n_classes), SmallTrees(n_classes)
        self.prior: Floats = self._normal.prior

    def fit(self, values: Floats, y: Array, order: Array | None = None) -> Ensemble:
        """Learn from rows, see :meth:`tamis.cells.small_trees.SmallTrees.fit`."""
        self._normal.fit(values, y)
        self._trees.fit(values, y, order)
        self.prior = self._normal.prior
        return self

    def updated(self, values: Floats, y: Array, fading: float) -> Ensemble:
        """Take more rows into the discriminant analysis; the trees stay."""
        found = copy.copy(self)
        found._normal = self._normal.updated(values, y, fading)
        found.prior = found._normal.prior
        return found

    @property
    def n_columns(self) -> int:
        """How many columns it knows."""
        return self._normal.n_columns

    def evidence(self, values: Floats, order: Array | None = None) -> Floats:
        """Return the evidence of both, shape (2, n_steps + 1, n_rows, n_classes).

        Parameters are those of :meth:`tamis.cells.discriminant.Discriminant.evidence`.
        """
        return np.stack([self._normal.evidence(values, order), self._trees.evidence(values, order)])

    def posterior(self, values: Floats) -> Floats:
        """Return P(class) of rows of shape (n_rows, K), NaN where a value is unknown, (1)."""
        said = np.stack([self._normal.evidence(values)[-1], self._trees.said(values)])
        return posterior_of(said, self.prior, self.worth)


def taught(
    kind: str, values: Floats, y: Array, order: Array | None, *, n_bins: int, n_classes: int, classifier: Any
) -> Judge:
    """Return who decides, taught by rows that come to know their values in this order.

    Parameters
    ----------
    kind : {"ensemble", "discriminant", "classifier"}
    values : ndarray of shape (n_rows, K)
        NaN where missing.
    y : ndarray of shape (n_rows,), int
    order : ndarray of shape (n_rows, n_steps), int, or None
        Columns, -1 where none; None: one after the other.
    n_bins, n_classes : int
    classifier : scikit-learn classifier
        The one that is taught if `kind` says so.
    """
    if kind == "classifier":
        return Masked(classifier, n_classes).fit(values, y, order)
    if kind == "discriminant":
        return Discriminant(n_bins, n_classes).fit(values, y)
    return Ensemble(n_bins, n_classes).fit(values, y, order)


def joined(parts: list[Floats]) -> Floats:
    """Return the steps (n_steps, n_rows, ...) of all rows, one part after another; shorter walks stay at their end."""
    n_steps = max(len(part) for part in parts)
    return np.concatenate([longer(part, n_steps) for part in parts], axis=1)


def calibrated(evidence: Floats, prior: Floats, y: Array) -> tuple[Floats, Worth]:
    """Return the posteriors of who decides, and what its evidence is worth.

    Parameters
    ----------
    evidence : ndarray of shape (n_steps + 1, n_rows, n_classes)
        On walks of rows that were not learned from.
    prior : ndarray of shape (n_rows, n_classes)
    y : ndarray of shape (n_rows,), int
    """
    worth = best_worth(evidence[1:], prior, y) if len(evidence) > 1 else 1.0
    return posterior_of(evidence, prior, worth), worth


def with_trees(
    evidence: Floats, prior: Floats, y: Array, said: Iterable[Floats], promising: Callable[[Floats], bool]
) -> tuple[Floats, Worth] | None:
    """Return the posteriors of an ensemble and what its kinds of evidence are worth, or None where it has no promise.

    Parameters
    ----------
    evidence, prior, y
        Those of the discriminant analysis, see :func:`calibrated`.
    said : iterable of ndarray
        The trees' evidence on the first rows, the next ones, and so on. Trees are dear to grow: more is asked for only
        if two parts have promise.
    promising : callable
        Whether posteriors of the first rows, so many as it is given, cost less than what else there is.
    """
    parts: list[Floats] = []
    for i, part in enumerate(said):
        if i == _PARTS and not promising(_together(evidence, prior, y, parts)[0]):
            return None
        parts.append(part)
    return _together(evidence, prior, y, parts)


def _together(evidence: Floats, prior: Floats, y: Array, said: list[Floats]) -> tuple[Floats, Floats]:
    """Return the posteriors of the rows that the trees have spoken of, and the worths."""
    trees = longer(joined(said), len(evidence))
    n = trees.shape[1]
    each = np.stack([evidence[:, :n], trees])
    worths = best_worths(each[:, 1:], prior[:n], y[:n])
    return posterior_of(each, prior[:n], worths), worths


def best_worths(each: Floats, prior: Floats, y: Array) -> Floats:
    """Return what evidence of several kinds is worth by the likelihood of labels.

    `each` has the shape (m, n_steps, n_rows, n_classes).

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> tells = (2 * y - 1) + rng.normal(size=500)
    >>> each = np.zeros((2, 1, 500, 2))
    >>> each[0, 0, :, 1], each[1, 0, :, 1] = 2 * tells, rng.normal(size=500)
    >>> best_worths(each, np.full((500, 2), 0.5), y).round(1)
    array([0.9, 0. ])
    """
    n_steps = max(each.shape[1], 1)
    base, each = np.log(np.maximum(prior, 1e-300)), np.ascontiguousarray(each)

    def loss(worths: Floats) -> tuple[float, Floats]:
        slope = np.zeros(len(worths))
        total = _label_loss(each, base, y, worths, slope)
        return total / n_steps + float(worths.sum()), slope / n_steps + 1.0

    start, bounds = np.full(len(each), 0.5), [(0.0, _MOST)] * len(each)
    found: Floats = scipy.optimize.minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    return found


@njit(strict=True)
def _label_loss(each: Array, base: Array, y: Array, worths: Array, slope: Array) -> float:
    """Return the negative logarithm of the likelihood of the labels, over steps and rows, and fill in its slope."""
    n_kinds, n_steps, n, n_classes = each.shape
    total, score = 0.0, np.empty(n_classes)
    for s in range(n_steps):
        for i in range(n):
            top = -np.inf
            for c in range(n_classes):
                score[c] = base[i, c]
                for m in range(n_kinds):
                    score[c] += worths[m] * each[m, s, i, c]
                top = max(top, score[c])
            norm = 0.0
            for c in range(n_classes):
                norm += np.exp(score[c] - top)
            total += top + np.log(norm) - score[y[i]]
            for c in range(n_classes):
                error = np.exp(score[c] - top) / norm - (c == y[i])
                for m in range(n_kinds):
                    slope[m] += error * each[m, s, i, c]
    return total
