"""Discriminant analyses, spreads and boosted trees together: what a sum sees, and what only several values say.

Each adds its evidence E_m, as far as that held on rows that were not learned from::

    log P(c | x_S) = log P(c) + sum_m b_m E_m(c, x_S) + const                                        (1)

The worths b_m, from 0 to 1.2, are those that make the labels of such rows most likely, the mean over the steps of their
walks. For each unit of worth 1 is taken off the logarithm of the likelihood, as in Akaike's criterion: of few rows,
little is believed.

There are two discriminant analyses: one of numbers and bins, and one of the numbers alone, which needs fewer rows. So
how much the bins are shrunk is found on the rows held out. Both have one covariance for all classes; what the spread
of a class says is a kind of its own (:mod:`tamis.cells.spread`).
"""

from __future__ import annotations

import copy
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
from tamis.cells.spread import Spread

__all__ = ["Ensemble", "best_worths", "calibrated", "joined", "kinds_of", "taught"]

Floats = NDArray[np.float64]
_MOST = 1.2  # worth


class Ensemble:
    """Probabilities of the classes from any of the columns: two discriminant analyses, spreads, and trees if wanted.

    Parameters
    ----------
    n_bins : int
        Of the first discriminant analysis; the second looks at numbers alone.
    n_classes : int
    trees : bool

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
        "n_kinds (=m)  worth (m) float in [0, 2]  prior (k) float in [0, 1]"
        "  _sums[] (its own)  _spread (its own)  _trees[] (its own)"
        "  _sums[].prior (k)  _spread._means (k, d)  _trees[].prior (k)  _sums[]._low (d)  _trees[]._bins.edges (d, *)"
    )

    # State, after fit:
    #   worth    (3 or 4,)     float64  b
    #   prior    (n_classes,)  float64
    #   _sums          two Discriminant
    #   _spread        Spread
    #   _trees         SmallTrees, if any

    def __init__(self, n_bins: int, n_classes: int, trees: bool = True) -> None:
        self._sums = [Discriminant(n_bins, n_classes), Discriminant(1, n_classes)]
        self._spread = Spread(n_classes)
        self._trees = [SmallTrees(n_classes)] if trees else []
        self.worth: Worth = np.ones(self.n_kinds)
        self.prior: Floats = self._sums[0].prior

    def fit(self, values: Floats, y: Array, order: Array | None = None) -> Ensemble:
        """Learn from rows, see :meth:`tamis.cells.small_trees.SmallTrees.fit`."""
        for part in self._sums:
            part.fit(values, y)
        self._spread.fit(values, y)
        for trees in self._trees:
            trees.fit(values, y, order)
        self.prior = self._sums[0].prior
        return self

    def updated(self, values: Floats, y: Array, fading: float) -> Ensemble:
        """Take more rows into what is added up over columns; the trees stay."""
        found = copy.copy(self)
        found._sums = [copy.copy(part).updated(values, y, fading) for part in self._sums]
        found._spread = copy.copy(self._spread).updated(values, y, fading)
        found.prior = found._sums[0].prior
        return found

    @property
    def n_kinds(self) -> int:
        """How many kinds of evidence there are."""
        return len(self._sums) + 1 + len(self._trees)

    @property
    def n_columns(self) -> int:
        """How many columns it knows."""
        return self._sums[0].n_columns

    def evidence(self, values: Floats, order: Array | None = None) -> Floats:
        """Return the evidence of each kind, shape (n_kinds, n_steps + 1, n_rows, n_classes).

        Parameters are those of :meth:`tamis.cells.discriminant.Discriminant.evidence`.
        """
        said = [part.evidence(values, order) for part in self._sums]
        said.append(self._spread.evidence(values, order))
        return np.stack([*said, *(trees.evidence(values, order) for trees in self._trees)])

    def posterior(self, values: Floats) -> Floats:
        """Return P(class) of rows of shape (n_rows, K), NaN where a value is unknown, (1)."""
        said = [part.evidence(values)[-1] for part in self._sums]
        said.append(self._spread.evidence(values)[-1])
        return posterior_of(
            np.stack([*said, *(trees.said(values) for trees in self._trees)]), self.prior, self.worth
        )


def taught(
    kind: str, values: Floats, y: Array, order: Array | None, *, n_bins: int, n_classes: int, classifier: Any
) -> Judge:
    """Return who decides, taught by rows that come to know their values in this order.

    Parameters
    ----------
    kind : {"ensemble", "discriminant", "classifier"}
        "discriminant" is the ensemble without trees.
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
    return Ensemble(n_bins, n_classes, trees=kind == "ensemble").fit(values, y, order)


def kinds_of(judge: Judge, values: Floats, order: Array | None = None) -> Floats:
    """Return the evidence of each kind that a judge has, shape (n_kinds, n_steps + 1, n_rows, n_classes)."""
    said = judge.evidence(values, order)
    return said if isinstance(judge, Ensemble) else said[None]


def joined(parts: list[Floats]) -> Floats:
    """Return evidence (n_kinds, n_steps, n_rows, ...) of all rows, part after part; shorter walks stay at their end."""
    n_steps = max(part.shape[1] for part in parts)
    return np.concatenate([longer(part, n_steps, axis=1) for part in parts], axis=2)


def calibrated(evidence: Floats, prior: Floats, y: Array) -> tuple[Floats, Worth]:
    """Return the posteriors of who decides, and what its evidence is worth.

    Parameters
    ----------
    evidence : ndarray of shape (n_kinds, n_steps + 1, n_rows, n_classes)
        On walks of rows that were not learned from.
    prior : ndarray of shape (n_rows, n_classes)
    y : ndarray of shape (n_rows,), int
    """
    told = evidence[:, 1:]
    if len(evidence) > 1:
        worths = best_worths(told, prior, y)
        return posterior_of(evidence, prior, worths), worths
    worth = best_worth(told[0], prior, y) if told.shape[1] else 1.0
    return posterior_of(evidence[0], prior, worth), worth


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
