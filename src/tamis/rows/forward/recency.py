"""A drift test: a classifier trained with recent rows is compared with the same classifier trained with all rows.

Increasing errors (:mod:`tamis.rows.forward.error_watch`) indicate that a relation has disappeared. They do not indicate
a new relation where there was none, since random predictions cannot become worse. So two more classifiers are compared
that differ only in their memory: all rows, or about the last 300. Both track the means, variances and covariances with
the targets, and predict by the ten features that are most relevant by themselves, each considered separately::

    sum_j x_j cov(x_j, target) / var(x_j)                                                       (1)

Rows on which both are correct, or both wrong, are uninformative. On the others, with g = 1 where only the model of the
last rows is correct, -1 where only it is wrong, and p_c the proportion of the row's class: if nothing has changed, the
model of more rows is the better one, and g / p_c has a mean of at most 0 in every class. So ::

    S <- max(0, S + ln(1 + 0.4 g p / p_c))       p: share of the rarest class                   (2)

is the maximum evidence of a change since some row: the last one at which S was 0. It exceeds ln(1 / alpha) by chance at
most once in 1 / alpha rows (Shin, Ramdas, Rinaldo: E-detectors, The New England Journal of Statistics in Data Science
2(2), 2024).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._kernels import njit
from tamis._shapes import Shapes, SizedState
from tamis._validation import Array
from tamis.rows.forward.linear_model import NO_SPREAD, guess
from tamis.rows.forward.marginals import Marginals, merge_moments, of_dense

FAR = 10.0  # standard deviations at which values are clipped

_MEMORY = 300  # approximate memory of the younger model in rows
_FADING = 1.0 - 1.0 / _MEMORY  # per row; the rows of a batch fade together
_STAKE = 0.4
_COLUMNS = 10  # features of a model
_RARE = 0.05  # lower bound on the proportion of a class
_NO_SPREAD = 1e-9  # of a standardised column

# State, of p columns and C targets:
#   evidence  (2,) float64   S, and the rows since it was 0
#   stakes    (C,) float64   0.4 p / p_c; for regression two, 0.4
#   memory    two Marginals: of all rows, and of the last
#   models    of each: columns (k,), weights (k, C), offset (C,)


@njit(strict=True)
def _update(old: Array, young: Array, codes: Array, limit: float, stakes: Array, evidence: Array) -> int:
    """Update (2) up to the first row at which the evidence exceeds the limit; return the number of rows."""
    for i in range(len(codes)):
        before, now = old[i] == codes[i], young[i] == codes[i]
        if now and not before:
            evidence[0] += np.log(1.0 + stakes[codes[i]])
        elif before and not now:
            evidence[0] = max(0.0, evidence[0] + np.log(1.0 - stakes[codes[i]]))
        evidence[1] = evidence[1] + 1.0 if evidence[0] > 0.0 else 0.0
        if evidence[0] > limit:
            return i + 1
    return len(codes)


@njit(strict=True)
def _update_rows(
    X: Array, codes: Array, limit: float, every: tuple[Array, Array], last: tuple[Array, Array], stakes: Array,
    evidence: Array,
) -> int:  # fmt: skip
    """Predict rows with both models and update the evidence; the columns of the old model come first."""
    old, young = guess(X, 0, every[0], every[1]), guess(X, len(every[0]), last[0], last[1])
    return _update(old, young, codes, limit, stakes, evidence)


@njit(strict=True)
def standardise(X: Array, at: Array, unit: Array, mean: Array, S: Array, weight: float) -> Array:
    """Return the first columns, at these positions in a scatter matrix, standardised."""
    n, p = X.shape[0], len(at)
    Z, shift, inverse, root = np.empty((n, p)), np.empty(p), np.empty(p), np.empty(p)
    for j in range(p):
        a = at[j]
        inverse[j] = 1.0 / unit[a] if unit[a] > 0.0 else 1.0
        shift[j] = mean[a] * inverse[j]
        root[j] = np.sqrt(weight) / np.sqrt(S[a, a]) if S[a, a] > NO_SPREAD else 0.0
    for i in range(n):
        for j in range(p):
            far = (X[i, j] * inverse[j] - shift[j]) * root[j]
            far = far if far < FAR else FAR
            Z[i, j] = far if far > -FAR else -FAR
    return Z


@njit(strict=True)
def _model(mean: Array, variance: Array, target_mean: Array, covariance: Array) -> tuple[Array, Array, Array]:
    """Return (1): columns, weights and offset; outputs are the excess of a class, relative to its proportion."""
    n_targets, p = covariance.shape
    share = np.ones(1) if n_targets == 1 else target_mean
    relevance = np.zeros(p)
    for c in range(n_targets):
        for j in range(p):
            if share[c] > 0.0 and variance[j] > _NO_SPREAD:
                relevance[j] += covariance[c, j] * covariance[c, j] / variance[j] / share[c]
    best, n_best = np.zeros(min(_COLUMNS, p), np.int64), 0
    for j in range(p):  # by decreasing relevance
        at = n_best
        while at > 0 and relevance[j] > relevance[best[at - 1]]:
            at -= 1
        if at < len(best):
            n_best = min(n_best + 1, len(best))
            for later in range(n_best - 1, at, -1):
                best[later] = best[later - 1]
            best[at] = j
    weights, offset = np.zeros((len(best), n_targets)), np.full(n_targets, -np.inf)
    for c in range(n_targets):
        if share[c] > 0.0:
            offset[c] = 0.0
            for k, j in enumerate(best):
                weights[k, c] = covariance[c, j] / variance[j] / share[c] if variance[j] > _NO_SPREAD else 0.0
                offset[c] -= mean[j] * weights[k, c]
    return best, weights, offset


@njit(strict=True)
def _stakes(share: Array) -> Any:
    """Return the stake of a row of each class in (2)."""
    if len(share) < 2:
        return np.full(2, _STAKE)
    often = np.maximum(share, _RARE)
    return _STAKE * often.min() / often


@njit(strict=True)
def _update_memories(
    X: Array, targets: Array, weight: Array, new: float, old: tuple[float, float], every: Any, last: Any
) -> Any:  # fmt: skip
    """Return both memories, updated with rows of weight `new`, both models and the stakes."""
    rows = of_dense(X, targets, weight, new)
    every = merge_moments(old[0] / (old[0] + new), new / (old[0] + new), *(every + rows))
    last = merge_moments(old[1] / (old[1] + new), new / (old[1] + new), *(last + rows))
    return every, last, (_model(*every), _model(*last)), _stakes(last[2])


class Recency(SizedState):
    """Evidence that a model of recent rows is more accurate than a model of all rows.

    Parameters
    ----------
    alpha : float
        At most one false alarm in about 1 / alpha rows, in (0, 1).
    n_features, n_targets : int

    Examples
    --------
    A feature indicates the class for 1500 rows, then with the opposite sign:

    >>> rng = np.random.default_rng(0)
    >>> X, codes, recency = rng.normal(size=(2000, 5)), rng.integers(0, 2, 2000), Recency(1e-4, 5, 2)
    >>> X[:, 0] += np.where(np.arange(2000) < 1500, codes, -codes)
    >>> for row in range(0, 2000, 100):
    ...     rows = slice(row, row + 100)
    ...     if row and recency.update(X[rows][:, recency.columns], codes[rows]) and recency.is_sufficient:
    ...         break
    ...     recency.learn(X[rows], np.eye(2)[codes[rows]], np.ones(100), 1.0)
    >>> row, recency.n_rows
    (1900, 300)
    """

    _state_spec = Shapes("""
        limit float in (0, inf)
        evidence (2) float in [0, 2**62]
        stakes (>2) float in [0, 1)
        stakes (>c)
        memory[] (its own) fill own
        memory[0].target_mean (c)  memory[1].target_mean (c)
        memory[0].mean (p)  memory[0].variance (p)  memory[0].covariance (c, p)
        memory[1].mean (p)  memory[1].variance (p)  memory[1].covariance (c, p)
        models[][0] (K) int64 in [0, p)
        models[][1] (K, c) finite
        models[][2] (c) float in [-inf, inf)
    """)

    models: tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]

    def __init__(self, alpha: float, n_features: int, n_targets: int) -> None:
        self.limit, self.evidence = float(-np.log(alpha)), np.zeros(2)
        self.memory = (Marginals(n_features, n_targets), Marginals(n_features, n_targets))
        self._remember(*self.memory)

    def learn(self, X: Array, targets: Array, weight: Array, fade: float) -> None:
        """Update with rows.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Standardised.
        targets : ndarray of shape (n_rows, n_targets)
            Indicators of the classes, or one standardised number.
        weight : ndarray of shape (n_rows,)
        fade : float in (0, 1]
            Factor of the weight of all earlier rows, in the memory of all rows.
        """
        known, new = self.memory, float(weight.sum())
        if targets.shape[1] > len(known[0].target_mean):
            known = (copy.copy(known[0]), copy.copy(known[1]))
            for memory in known:
                memory.grow(targets.shape[1])
        old = fade * known[0].weight, _FADING ** len(weight) * known[1].weight
        every, last, self.models, self.stakes = _update_memories(
            np.ascontiguousarray(X), np.ascontiguousarray(targets), weight, new, old, known[0].moments[1:],
            known[1].moments[1:],
        )  # fmt: skip
        self.memory = (
            Marginals.of_moments((old[0] + new, *every)),
            Marginals.of_moments((old[1] + new, *last)),
        )

    def _remember(self, every: Marginals, last: Marginals) -> None:
        self.memory, self.models = (every, last), (_model(*every.moments[1:]), _model(*last.moments[1:]))
        self.stakes = _stakes(last.target_mean)

    @property
    def columns(self) -> NDArray[np.intp]:
        """The columns of the models, those of the memory of all rows first."""
        return np.append(self.models[0][0], self.models[1][0])

    def update(self, X: Array, codes: Array) -> int:
        """Predict rows, up to the first that makes the evidence sufficient.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            The values of `columns`, standardised.
        codes : ndarray of shape (n_rows,), int64
            Classes; for regression, 1 above the mean.

        Returns
        -------
        int
            Number of rows processed.
        """
        every, last = self.models
        return int(_update_rows(X, codes, self.limit, every[1:], last[1:], self.stakes, self.evidence))

    @property
    def is_sufficient(self) -> bool:
        """Whether the evidence is sufficient."""
        return bool(self.evidence[0] > self.limit)

    @property
    def n_rows(self) -> int:
        """Number of recent rows that are the evidence, limited by the memory of the recent model."""
        return min(int(self.evidence[1]), _MEMORY)

    def reset_evidence(self, keep: float) -> None:
        """Reset the evidence, and fade the memory of all rows."""
        self.evidence[:] = 0.0
        self.memory[0].fade(keep)

    def append(self, later: Recency, fade: float, order: Array) -> None:
        """Append the memory of later rows; the evidence becomes that of the later rows.

        Parameters
        ----------
        later : Recency
            With the same columns.
        fade : float in (0, 1]
            Factor of the weight of this one's rows, in the memory of all rows.
        order : ndarray of int
            The code in `later` of each target of both together; new ones follow its own.
        """
        mine, *known = (memory.grown(len(order)) for memory in (self.memory[0], *later.memory))
        for memory in known:
            memory.reorder(order)
        mine.merge(known[0].moments, fade)
        self._remember(mine, known[1])
        self.evidence = later.evidence.copy()

    def forget(self, columns: Array) -> None:
        """Set some columns to 0 in all rows so far."""
        super().forget(columns)
        self._remember(*self.memory)

    def replace(self, at: Array) -> None:
        """Replace some columns by standardised ones without statistics."""
        self.memory = copy.deepcopy(self.memory)
        for memory in self.memory:
            memory.mean[at], memory.variance[at], memory.covariance[:, at] = 0.0, 1.0, 0.0
