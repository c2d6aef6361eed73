"""Drift detection by the prequential errors of naive Bayes on the selected features.

A change of the selected set does not indicate a drift; a drift invalidates what was learned about the selected
features. A naive Bayes classifier, trained with all rows since the last drift and with equal class priors, therefore
predicts each row from them before it learns the row. :mod:`tamis.drift.cusum` tests whether its errors have risen. The
test needs no learner, and depends neither on unselected features nor on the class frequencies.

With G features, K = 9 edges of their values and C classes, the state is a tuple of arrays::

    columns  (G,) int64        the features
    edges    (G, K) float64    bin edges of a numeric feature, ascending; or the values of a category; padded with inf
    exact    (G,) bool         whether it is categorical
    tables   (G, K + 2, C)     rows of each bin and class plus one half: below or at an edge, above all (a category:
                               other values), missing
    totals   (G, C)            rows of each class
    tally    (3, C)            rows of each class, errors, predictions of it; over about the last 1000 rows
    evidence (2,), steps (2, C)   see :mod:`tamis.drift.cusum`
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, Mask
from tamis.drift.cusum import log_likelihood_steps, update_cusum

_MOST = 16  # maximum number of features of the classifier
_MEMORY = 1000.0  # rows over which the expected errors are averaged
_EDGES = 9  # bin edges of a numeric feature, and separately counted values of a category


class BayesWatch(NamedTuple):
    """The state, see the module docstring."""

    columns: Ints
    edges: Floats
    exact: Mask
    tables: Floats
    totals: Floats
    tally: Floats
    evidence: Floats
    steps: Floats


def empty_watch(n_classes: int) -> BayesWatch:
    """Return the state without features and without errors."""
    tally = np.full((3, n_classes), 2.0)  # prior: four rows of each class, half of them misclassified
    tally[0] = 4.0
    return BayesWatch._make((*_features(0, n_classes), tally, np.zeros(2), np.zeros((2, n_classes))))


def _features(n: int, n_classes: int) -> Any:
    """Return the initial state of n features."""
    tables = np.full((n, _EDGES + 2, n_classes), 0.5)
    return (
        np.zeros(n, np.int64), np.full((n, _EDGES), np.inf), np.zeros(n, bool), tables, np.zeros((n, n_classes)),
    )  # fmt: skip


def watch(selected: list[int], X: Array, codes: Array, exact: Array, before: BayesWatch) -> BayesWatch:
    """Return the state for the first selected features, which continues the statistics of known ones and the errors.

    Parameters
    ----------
    selected : list of int
    X : ndarray of shape (n_rows, n_features)
        Recent rows, from which new features are learned.
    codes : ndarray of shape (n_rows,)
    exact : ndarray of shape (n_features,), bool
        Whether each feature is categorical.
    before : BayesWatch
        The previous state.
    """
    known = {int(j): g for g, j in enumerate(before.columns)}
    features = _features(len(selected[:_MOST]), before.steps.shape[1])
    for g, j in enumerate(selected[:_MOST]):
        mine = [part[g : g + 1] for part in features]
        if j in known:
            for part, old in zip(mine, before[:5], strict=True):
                part[0] = old[known[j]]
            continue
        mine[0][0], mine[2][0] = j, exact[j]
        _cut(X[:, j], bool(exact[j]), mine[1][0])
        count(np.ascontiguousarray(X[:, j : j + 1]), codes, *mine[1:4])
        mine[4][0] += np.bincount(codes, minlength=mine[4].shape[1])
    return BayesWatch._make((*features, *before[5:]))


def cuts(X: Array, exact: Mask) -> Floats:
    """Return the edges of every feature, shape (n_features, 9)."""
    edges = np.full((X.shape[1], _EDGES), np.inf)
    columns = np.sort(np.ascontiguousarray(X.T), axis=1)
    n_values = 1 + np.count_nonzero(columns[:, 1:] != columns[:, :-1], axis=1)
    known, n = ~np.isnan(columns[:, -1]), columns.shape[1]
    few = known & (n_values <= np.where(exact, _EDGES, _EDGES + 1))
    many = known & ~few & ~exact
    ranks = np.searchsorted(np.arange(1, n + 1) / n * (_EDGES + 1), np.arange(1, _EDGES + 1))
    _write_distinct(columns, few, n_values - ~exact, edges)
    _write_distinct(columns[:, ranks], many, np.full(len(edges), _EDGES), edges)
    for j in np.flatnonzero(~few & ~many):
        _cut(X[:, j], bool(exact[j]), edges[j])
    return edges


def _write_distinct(columns: Array, which: Mask, most: Array, edges: Array) -> None:
    """Write the first distinct values of some sorted columns, at most `most` of each."""
    features = np.flatnonzero(which)
    values = columns[features]
    new = np.ones(values.shape, np.bool_)
    new[:, 1:] = values[:, 1:] != values[:, :-1]
    row, at = np.nonzero(new)
    place = new.cumsum(axis=1)[row, at] - 1
    kept = place < most[features[row]]
    edges[features[row[kept]], place[kept]] = values[row[kept], at[kept]]


def _cut(column: Array, exact: bool, edges: Array) -> None:
    """Write the edges of a feature: its most frequent values, or its quantiles."""
    values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    if exact:
        values = np.sort(values[np.argsort(-counts, kind="stable")][: len(edges)])
    elif len(values) > len(edges) + 1:
        level = np.cumsum(counts) / counts.sum() * (len(edges) + 1)
        values = np.unique(values[np.searchsorted(level, np.arange(1, len(edges) + 1))])
    else:
        values = values[:-1]
    edges[: len(values)] = values


@njit(strict=True)
def _bin(x: float, edges: Array, exact: bool) -> int:
    if x != x:
        return len(edges) + 1
    b = 0
    for k in range(len(edges)):
        b += edges[k] < x
    return b if not exact or (b < len(edges) and edges[b] == x) else len(edges)


@njit(strict=True)
def count(X: Array, codes: Array, edges: Array, exact: Array, tables: Array) -> None:
    """Add rows to the tables of every feature, shape (n_features, 11, n_classes)."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            tables[j, _bin(X[i, j], edges[j], exact[j]), codes[i]] += 1.0


@njit(strict=True)
def judge(row: Array, code: int, state: Any) -> float:
    """Predict a row, learn it, and return the evidence for a drift.

    Parameters
    ----------
    row : ndarray of shape (n_features,)
    code : int
    state : BayesWatch
        Changed.
    """
    columns, edges, exact, tables, totals, tally, evidence, steps = state
    n_classes, guess = steps.shape[1], -1
    likelihood = np.ones(n_classes)
    for g in range(len(columns)):
        b = _bin(row[columns[g]], edges[g], exact[g])
        for c in range(n_classes):
            likelihood[c] *= tables[g, b, c] / (totals[g, c] + 0.5 * tables.shape[1])
        tables[g, b, code] += 1.0
        totals[g, code] += 1.0
    most = -1.0
    for c in range(n_classes):
        if likelihood[c] > most and totals[0, c] > (1.0 if c == code else 0.0):
            guess, most = c, likelihood[c]
    tally *= 1.0 - 1.0 / _MEMORY
    tally[0, code] += 1.0
    tally[1, code] += guess != code
    if guess >= 0:
        tally[2, guess] += 1.0
    return update_cusum(guess != code, code, evidence, steps)


@njit(strict=True)
def expect(state: Any) -> None:
    """Update the expected error rate of each class."""
    tally, steps = state[5], state[7]
    log_likelihood_steps(tally[1], tally[0], 1.0 - tally[2] / tally[2].sum(), steps)
