"""The stopping rule: dynamic programming over the posterior, with a finite set of vectors per stage.

Liyanage, Zois, Chelmis (2021), Section 5. With misclassification costs Q_ij, e_k the price of the k-th feature,
Delta_k(v) = P(x_k = v | known, c) over the classes and g(pi) = min_j Q_j . pi::

    J_k(pi) = min{ g(pi), e_{k+1} + sum_v (Delta_{k+1}(v) . pi) J_{k+1}(pi after v) }                     (8)
    J_k(pi) = min over alpha in Gamma_k of alpha . pi,   Gamma_K = {Q_1, ..., Q_L}                       (Theorem 2)
    backup at a belief b:
    alpha = e_{k+1} + sum_v Delta_{k+1}(v) o argmin over alpha' in Gamma_{k+1} of alpha' . (Delta_{k+1}(v) o b)

Stop as soon as the smallest vector at the posterior is one of the Q_j. Vectors are backed up at beliefs that random
walks through the model reach. Delta_{k+1} depends on the known values, so a vector is only valid in the context of its
backup; `context` defines which rows share a context:

* ``"exact"``: rows with the same values of the features that later ones are linked to; up to V**m contexts for m of
  them;
* ``"local"``: rows with the same value of the feature that the next one is linked to;
* ``"pooled"``: all rows, as published: a lower bound, with which too many features are acquired.

The published Perseus takes the vectors of stage k + 1 as the target at stage k, which can underestimate the cost of a
feature (0.30 expected, 0.60 paid in the smallest example); here all beliefs are backed up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tamis._kernels import njit
from tamis._shapes import state_error
from tamis._validation import Array, Floats, Ints, Mask
from tamis.cells.network import Chain
from tamis.cells.tree import ExactChain

_MOST_CONTEXTS = 4096


Likelihood: TypeAlias = Chain | ExactChain


@njit(strict=True)
def _backup(
    beliefs: Array,
    table: Array,
    condition: Array,
    key: Array,
    start: Array,
    vectors: Array,
    Q: Array,
    price: float,
) -> tuple[Array, Array]:
    """Return the continuation vector at each belief, and its value there."""
    n, n_values, n_classes = len(beliefs), table.shape[1], table.shape[2]
    alpha = np.full((n, n_classes), price)
    value = np.zeros(n)
    weighted = np.empty(n_classes)
    for i in range(n):
        for v in range(n_values):
            for c in range(n_classes):
                weighted[c] = table[condition[i], v, c] * beliefs[i, c]
            best, least, stops = 0, np.inf, True
            for j in range(n_classes):
                dot = 0.0
                for c in range(n_classes):
                    dot += Q[c, j] * weighted[c]
                if dot < least:
                    best, least = j, dot
            first, last = (start[key[i, v]], start[key[i, v] + 1]) if key[i, v] >= 0 else (0, len(vectors))
            for m in range(first, last):
                dot = 0.0
                for c in range(n_classes):
                    dot += vectors[m, c] * weighted[c]
                if dot < least:
                    best, least, stops = m, dot, False
            for c in range(n_classes):
                alpha[i, c] += table[condition[i], v, c] * (Q[c, best] if stops else vectors[best, c])
        for c in range(n_classes):
            value[i] += alpha[i, c] * beliefs[i, c]
    return alpha, value


@njit(strict=True)
def _update(posterior: Array, table: Array, condition: Array, value: Array, updated: Array) -> None:
    for i in range(len(value)):
        total = 0.0
        if value[i] >= 0:
            for c in range(posterior.shape[1]):
                total += posterior[i, c] * table[condition[i], value[i], c]
        for c in range(posterior.shape[1]):
            changed = total > 0.0
            updated[i, c] = (
                posterior[i, c] * table[condition[i], value[i], c] / total if changed else posterior[i, c]
            )


@dataclass
class _Stage:
    """The continuation vectors of a stage, sorted by context."""

    vectors: Floats  # (M, n_classes)
    start: Ints  # (n_contexts + 1,)


class PointBased:
    """The vectors of every stage.

    Parameters
    ----------
    model : Likelihood
    n_values : int
        V.
    Q : ndarray of shape (n_classes, n_classes), float64
        Q[i, j]: cost of predicting j if i is true.
    prices : ndarray of shape (K,)
        Price of the feature of each stage.
    context : {"local", "exact", "pooled"}

    Attributes
    ----------
    stages : list of K + 1 stages
        `stages[k].vectors` are those of acquiring the k-th feature; every stage also includes the Q_j.
    """

    def __init__(
        self, model: Likelihood, n_values: int, Q: Floats, prices: Floats, context: str = "local"
    ) -> None:
        self.model, self.n_values, self.Q, self.prices = model, n_values, Q, prices
        self.context = [self._context(k, context) for k in range(len(model) + 1)]
        self.stages = [self._empty_stage(k) for k in range(len(model) + 1)]

    def _context(self, k: int, context: str) -> Ints:
        """Return the positions whose values form the context of stage k."""
        links = self.model.link[k:]
        if context == "exact":
            seen = np.unique(links[(links >= 0) & (links < k)])
            if self.n_values ** len(seen) > _MOST_CONTEXTS:
                raise ValueError(
                    f"context='exact' needs {self.n_values}**{len(seen)} contexts at stage {k}, more than"
                    f" {_MOST_CONTEXTS}: choose context='local', or fewer bins."
                )
            return seen
        linked = context == "local" and len(links) and links[0] >= 0
        return links[:1] if linked else np.empty(0, dtype=np.int64)

    def _empty_stage(self, k: int) -> _Stage:
        n_contexts = self.n_values ** len(self.context[k])
        return _Stage(np.empty((0, len(self.Q))), np.zeros(n_contexts + 1, dtype=np.int64))

    def _checked_stage(self, k: int) -> _Stage:
        """Return a stage; the kernel uses the keys of its contexts as indices."""
        stage = self.stages[k]
        if len(stage.start) != self.n_values ** len(self.context[k]) + 1:
            raise state_error(f"The contexts of stage {k} do not match its vectors")
        return stage

    def _key(self, k: int, values: Array) -> Ints:
        """Return the context of each row at stage k; -1 if one of its values is unknown."""
        return self._encode(values[:, self.context[k]].astype(np.int64))

    def _encode(self, seen: Ints) -> Ints:
        key = seen @ (self.n_values ** np.arange(seen.shape[1]))
        key[(seen < 0).any(axis=1)] = -1
        return key

    def _next_key(self, k: int, values: Array) -> Ints:
        """Return the context at stage k + 1 of each row and each value of feature k."""
        seen = values[:, self.context[k + 1]].astype(np.int64)
        keys = np.empty((len(values), self.n_values), dtype=np.int64)
        for v in range(self.n_values):
            seen[:, self.context[k + 1] == k] = v
            keys[:, v] = self._encode(seen)
        return keys

    def back_up(self, k: int, beliefs: Floats, values: Array) -> tuple[Floats, Floats]:
        """Return the vector of acquiring the k-th feature at each belief, and its value there, from stage k + 1."""
        following, keys = self._checked_stage(k + 1), self._next_key(k, values)
        alpha, value = np.empty_like(beliefs), np.empty(len(beliefs))
        for rows, table, link in self.model.grouped_likelihood(k, values):
            alpha[rows], value[rows] = _backup(
                beliefs[rows], table, link, keys[rows], following.start, following.vectors, self.Q,
                self.prices[k],
            )  # fmt: skip
        return alpha, value

    def train(self, beliefs: list[Floats], values: Array) -> None:
        """Back up every belief of every stage, from the last to the first.

        Parameters
        ----------
        beliefs : list of K arrays of shape (n, n_classes)
            Posteriors before each stage.
        values : ndarray of shape (n, K), int
            Values known in each walk.
        """
        for k in range(len(self.model) - 1, -1, -1):
            alpha, value = self.back_up(k, beliefs[k], values)  # only values before k are used
            useful = value < (beliefs[k] @ self.Q).min(axis=1)
            self.stages[k] = self._stage(k, alpha[useful], self._key(k, values[useful]), beliefs[k][useful])

    def _stage(self, k: int, alpha: Floats, key: Array, beliefs: Floats) -> _Stage:
        """Return the vectors that are minimal at some belief of their context."""
        stage = self._empty_stage(k)
        if not len(alpha):
            return stage
        needed = []
        for context in np.unique(key):
            mine = np.flatnonzero(key == context)
            needed.append(mine[np.unique(np.argmin(beliefs[mine] @ alpha[mine].T, axis=1))])
        rows = np.concatenate(needed)
        values = np.unique(np.column_stack([key, alpha])[rows], axis=0)
        counts = np.bincount(values[:, 0].astype(np.int64), minlength=len(stage.start) - 1)
        return _Stage(np.ascontiguousarray(values[:, 1:]), np.r_[0, np.cumsum(counts)])

    def should_continue(self, k: int, posterior: Floats, values: Array, *, lookahead: bool = True) -> Mask:
        """Return for which rows the k-th feature is worth its price, (8)."""
        expected = self.continuation_value(k, posterior, values, lookahead=lookahead)
        return expected < (self.Q.T @ posterior.T).min(axis=0)

    def continuation_value(self, k: int, posterior: Floats, values: Array, *, lookahead: bool) -> Floats:
        """Return the expected cost of acquiring the k-th feature for each row; inf if the stage has no vector."""
        if lookahead:
            return self.back_up(k, posterior, values)[1]
        stage, key = self._checked_stage(k), self._key(k, values)
        values_after = np.full(len(posterior), np.inf)
        for context in np.unique(key):
            mine = key == context
            vectors = (
                stage.vectors[stage.start[context] : stage.start[context + 1]]
                if context >= 0
                else stage.vectors
            )
            if len(vectors):
                values_after[mine] = (vectors @ posterior[mine].T).min(axis=0)
        return values_after


def walk_beliefs(
    model: Likelihood, prior: Floats, n_walks: int, rng: np.random.Generator, values: Array | None = None,
    *, uniform: bool = False, class_order: Array | None = None,
) -> tuple[list[Floats], Array]:  # fmt: skip
    """Return the posteriors before each stage along random walks, and the values of the walks.

    Parameters
    ----------
    values : ndarray of shape (n_walks, K), int, optional
        Rows along which to walk instead.
    uniform : bool
        Whether to draw each value uniformly, as published, rather than from the model.
    class_order : ndarray of shape (n_classes,), int, optional
        Order of the classes in which labels are drawn, so that the draws do not depend on the names of the classes.
    """
    K, order = len(model), np.arange(len(prior)) if class_order is None else class_order
    posterior = np.tile(prior, (n_walks, 1))
    seen = np.full((n_walks, K), -1, dtype=np.int16)
    label = order[rng.choice(len(prior), n_walks, p=prior[order])]
    items, rows = [], np.arange(n_walks)
    for k in range(K):
        items.append(posterior)
        delta = model.likelihood(k, seen)
        if values is not None:
            seen[:, k] = values[:, k]
        elif uniform:
            seen[:, k] = rng.integers(0, delta.shape[1], n_walks)
        else:
            below = np.cumsum(delta[rows, :, label], axis=1)
            below /= below[:, -1:]
            seen[:, k] = (rng.random((n_walks, 1)) >= below[:, :-1]).sum(axis=1)
        posterior = update_posterior(model, k, posterior, seen, seen[:, k])
    return items, seen


def update_posterior(model: Likelihood, k: int, posterior: Floats, values: Array, value: Array) -> Floats:
    """Return the posterior after the k-th value, (3); a missing value leaves it unchanged."""
    updated = np.empty_like(posterior)
    for rows, table, link in model.grouped_likelihood(k, values):
        part = np.empty_like(posterior[rows])
        _update(posterior[rows], table, link, value[rows], part)
        updated[rows] = part
    return updated
