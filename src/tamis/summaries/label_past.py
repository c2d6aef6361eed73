"""Anytime-valid e-values against the null hypothesis that label and feature are independent given the previous label.

If labels are a Markov chain and a feature is unrelated to them, then label y_t is independent of the whole series of
the feature given y_{t-1}, however strongly the feature depends on its own past. The bet is therefore on y_t given
y_{t-1} and the bin b_t of the feature. With N[a, b, c] the rows of bin b and class c after class a, and L[a, c] =
sum_b N[a, b, c]::

    log e = sum_ab log KT(N[a, b]) - sum_ac L[a, c] log(L[a, c] / sum_c L[a, c])                              (1)

KT, the probability that a Dirichlet(1/2) mixture assigns to the label sequence of a cell, is the bet; the second term
is the maximum log-likelihood under the null hypothesis. Therefore e is at most the likelihood ratio of the bet to the
true null distribution, whose mean is 1 at any stopping time (universal inference).

A label may depend on the two or three before it, as in a cycle of two rows. For two classes, the counts after the last
three labels are therefore stored as well, which give e_m for Markov chains of order m = 1, 2, 3. With KT_m the
probability of the labels alone as a chain of order m, and prior weights w of 1/2, 1/4, 1/4::

    M = argmax_m w_m KT_m exp(-.02 n m),    e = sum_(m >= M) w_m e_m                                          (2)

An average of e-values is an e-value, so e is valid if the true order is at most M. KT_m costs (log n) / 2 for each
context. Each further order must also explain 0.02 nats per row, a partial correlation of 0.2 with that label. A weaker
one, such as that of signs of AR(0.9) series, inflates variances by at most 1.2 / 0.8, which does not justify the power
lost with another order.

Labels often depend on many previous labels. Thinned to every k-th row, with y_{t-k} in place of y_{t-1}, they are
closer to a Markov chain. The counts for k = 1, 2, 4, ..., 64 are stored; the k used is the smallest that is at least
1/16 of the correlation length of the labels, which depends on the labels alone. The value 1/16 was chosen on signs of
AR(0.9) series, where k = 1 produces no false evidence. The order is chosen for k = 1 only. The bound is exact for
Markov chains only (measurements: docs/dependent_rows.md).

The bins are thirds of the first 128 values of each feature; these rows are not counted.

Wasserman, Ramdas, Balakrishnan: Universal inference, PNAS 117(29), 2020. Krichevsky, Trofimov: The performance of
universal encoding, IEEE Transactions on Information Theory 27(2), 1981.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from tamis._kernels import njit
from tamis._shapes import Shapes, SizedState
from tamis._validation import Array, Rows
from tamis.summaries.batch import n_bytes

__all__ = ["LabelPast"]

FIRST = 128  # rows that determine the bins
_LEVELS = 7  # k = 1, 2, ..., 64
_LONGEST = 1 << _LEVELS - 1
_BINS = 3
_ORDERS = 3
_WEIGHTS = np.log([0.5, 0.25, 0.25])
_PER_ROW = 0.02  # nats per row that a higher order must explain
_LENGTHS_PER_STEP = 16.0


@njit(strict=True)
def _count(
    X: Array, codes: Array, contexts: Array, start: int, step: int, edges: Array, counts: Array
) -> None:
    """Count every k-th row by its context, the bin of each value, and its class; a context below 0 does not count."""
    for i in range(start, X.shape[0], step):
        a, c = contexts[i], codes[i]
        if a < 0:
            continue
        for j in range(X.shape[1]):
            x = X[i, j]
            if x == x:
                b = 0
                for h in range(edges.shape[1]):
                    b += x > edges[j, h]
                counts[a, b, c, j] += 1.0


def _log_kt(counts: Array) -> NDArray[np.float64]:
    """Return log KT of the labels of each cell; `counts` is (..., c, j), the result (..., j)."""
    n_classes = counts.shape[-2]
    return (
        (gammaln(counts + 0.5) - gammaln(0.5)).sum(axis=-2)
        - gammaln(counts.sum(axis=-2) + 0.5 * n_classes)
        + gammaln(0.5 * n_classes)
    )


def _log_e(counts: Array) -> NDArray[np.float64]:
    """Return (1) of each feature from N, (a, b, c, j)."""
    after = counts.sum(axis=1)  # L
    share = after / np.maximum(after.sum(axis=1, keepdims=True), 1.0)
    return _log_kt(counts).sum(axis=(0, 1)) - xlogy(after, share).sum(axis=(0, 1))


class LabelPast(SizedState):
    """E-values of each feature given the previous label; mergeable.

    Parameters
    ----------
    n_features, n_classes : int

    Notes
    -----
    Memory: 168 C^2 bytes per feature for C classes, 384 more for two, and initially 128 rows. CSR rows are converted to
    dense rows, batch by batch. A batch is equivalent to its rows one at a time, exactly. Sample weights are ignored.

    Examples
    --------
    The label changes after 10 rows on average. The first feature is relevant, the second only autocorrelated:

    >>> rng = np.random.default_rng(0)
    >>> y = np.cumsum(rng.random(4000) < 0.1) % 2
    >>> X = np.repeat(rng.normal(size=(400, 2)), 10, axis=0)
    >>> X[:, 0] = y + rng.normal(size=4000)
    >>> past = LabelPast(n_features=2, n_classes=2)
    >>> past.update(X, y, np.empty(0, np.int64))
    >>> past.log_e(correlation_length=20.0) > np.log(20)
    array([ True, False])
    """

    _state_spec = Shapes("""
        _counts (7, c, 3, c, j) float in [0, inf) fill 0
        _after_three (q, 3, c, j) float in [0, inf) fill 0
        _of_label (q, c) float in [0, inf)
        _edges (j?, 2) finite fill 0
        _start (j) finite fill 0
        _waiting[] (*, j) float in (-inf, inf) or nan fill 0
        _n_rows in [0, 2**62)
    """)

    def __init__(self, n_features: int, n_classes: int) -> None:
        self._counts = np.zeros((_LEVELS, n_classes, _BINS, n_classes, n_features))
        self._make_contexts()
        self._edges = np.empty((0, _BINS - 1))
        self._start = np.zeros(n_features)  # log e of parts with other bins
        self._waiting: list[NDArray[np.float64]] = []
        self._n_rows = 0

    def _make_contexts(self) -> None:
        n_contexts, n_classes = 2**_ORDERS if self._counts.shape[1] == 2 else 0, self._counts.shape[1]
        self._after_three = np.zeros((n_contexts, _BINS, n_classes, self.n_features))
        self._of_label = np.zeros((n_contexts, n_classes))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self._counts.shape[4])

    nbytes = property(n_bytes)

    def grow(self, n_classes: int) -> None:
        """Add classes, with codes after the existing ones, in new arrays."""
        more = (0, n_classes - self._counts.shape[1])
        self._counts = np.pad(self._counts, ((0, 0), more, (0, 0), more, (0, 0)))
        if more[1]:
            self._make_contexts()

    def reorder(self, order: Array) -> None:
        """Reorder the classes: the new class c is the old class `order[c]`."""
        self._counts = np.ascontiguousarray(self._counts[:, order][:, :, :, order])
        if len(self._after_three) and order[0] == 1:
            self._after_three, self._of_label = (
                self._after_three[::-1, :, ::-1].copy(),
                self._of_label[::-1, ::-1].copy(),
            )

    def update(self, X: Rows, codes: Array, before: Array) -> None:
        """Add validated rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), floating
            NaN is skipped, feature by feature.
        codes : ndarray of shape (n_rows,), int64
        before : ndarray of shape (n,), int
            Codes of the preceding rows, oldest first: at least 64 if that many exist.
        """
        if not len(self._edges):
            waiting = sum(len(rows) for rows in self._waiting)
            n = min(FIRST - waiting, len(codes))
            first = X[:n].toarray() if sp.issparse(X) else X[:n]
            self._waiting = [*self._waiting, np.array(first, np.float64)]
            self._n_rows += n
            if waiting + n < FIRST:
                return
            self._cut()
            X, before, codes = X[n:], np.concatenate([before, codes[:n]]), codes[n:]
        if not len(codes):
            return
        dense = X.toarray() if sp.issparse(X) else X
        # Labels before the first one are -1; then those of the rows.
        labels = np.concatenate([np.full(_LONGEST, -1), before, codes])[-_LONGEST - len(codes) :]
        for level in range(_LEVELS):
            k = 1 << level
            if (start := -self._n_rows % k) < len(codes):
                _count(dense, codes, labels[_LONGEST - k : -k], start, k, self._edges, self._counts[level])
        if len(self._after_three) and labels.max() < 2:
            one, two, three = (labels[_LONGEST - k : -k] for k in (1, 2, 3))
            contexts = np.where(three >= 0, one + 2 * two + 4 * three, -1)
            np.add.at(self._of_label, (contexts[contexts >= 0], codes[contexts >= 0]), 1.0)
            _count(dense, codes, contexts, 0, 1, self._edges, self._after_three)
        self._n_rows += len(codes)

    def _cut(self) -> None:
        rows, self._waiting = np.concatenate(self._waiting), []
        ordered = np.sort(rows, axis=0)  # NaN last
        present = np.maximum((~np.isnan(rows)).sum(axis=0), 1)
        places = (np.arange(1, _BINS)[:, None] * present // _BINS).T
        edges = np.take_along_axis(ordered.T, np.minimum(places, len(rows) - 1), axis=1)
        self._edges = np.where(np.isnan(edges), 0.0, edges)

    def merge(self, other: Self) -> None:
        """Add the evidence of other rows of the same features and classes; e-values are multiplied if bins differ."""
        if not len(self._edges) or np.array_equal(self._edges, other._edges):
            self._edges = self._edges if len(self._edges) else other._edges
            self._counts = self._counts + other._counts
            self._after_three = self._after_three + other._after_three
            self._of_label = self._of_label + other._of_label
            self._waiting = [] if len(self._edges) else self._waiting
            self._start = self._start + other._start
        elif len(other._edges):
            mine, theirs = (self, other) if self._counts.sum() >= other._counts.sum() else (other, self)
            start = self._start + other._start + (theirs.log_e(1.0) - theirs._start)
            self._counts, self._edges, self._start = mine._counts, mine._edges, start
            self._after_three, self._of_label = mine._after_three, mine._of_label

    def log_e(self, correlation_length: float) -> NDArray[np.float64]:
        """Return log e of each feature: (2) for two classes without thinning, else (1).

        Parameters
        ----------
        correlation_length : float
            Correlation length of the labels, in rows; determines k.

        Returns
        -------
        ndarray of shape (n_features,), float64
        """
        step = max(correlation_length / _LENGTHS_PER_STEP, 1.0)
        level = min(int(np.ceil(np.log2(step))), _LEVELS - 1)
        if level or not len(self._after_three):
            return self._start + (_log_e(self._counts[level]) if self._counts.shape[1] else 0.0)
        orders = range(1, _ORDERS + 1)
        of_label = [_older_summed(self._of_label[..., None], m) for m in orders]
        found_in_labels = np.array([float(_log_kt(counts).sum()) for counts in of_label])
        penalty = _PER_ROW * float(self._of_label.sum()) * np.arange(_ORDERS)
        order = int(np.argmax(_WEIGHTS + found_in_labels - penalty))
        evidence = [_log_e(_older_summed(self._after_three, m)) for m in orders]
        gain: NDArray[np.float64] = np.logaddexp.reduce(
            [_WEIGHTS[m] + evidence[m] for m in range(order, _ORDERS)], axis=0
        )
        return self._start + gain


def _older_summed(counts: Array, order: int) -> NDArray[np.float64]:
    """Return the counts by the last `order` labels from those by the last three."""
    return counts.reshape(-1, 2**order, *counts.shape[1:]).sum(axis=0)
