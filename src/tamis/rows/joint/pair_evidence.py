"""E-values, valid at any time, against "this feature is irrelevant, alone or given any other".

The evidence of :mod:`tamis.summaries.evidence`, with one bit per feature: b_x is whether x is above its middle edge.
Rows are processed in groups of 32, one word per feature. Suppose x is independent of the class given a feature z. Among
the m rows of a word with b_z = k, given which rows have b_x = 1 and given the labels, all assignments of labels to rows
are equally likely. For class c, with n rows of b_x = 1 and y of c among the m::

    D = (rows with both) - n y / m                                                                         (1)
    V = D^2 / 3 + 2 n (m - n) y (m - y) / (3 m^2 (m - 1))                                                  (2)

exp(l D - l^2 V / 2) has a mean of at most 1 for every l. XOR changes the sign of D with k, so each k has its own l,
drawn from a normal distribution of variance tau^2. With S and V summed over the words, for each k::

    e(x beside z) = prod_k exp(S_k^2 / (V_k + 1 / tau^2) / 2) / sqrt(1 + tau^2 V_k)                        (3)

is an e-value; so is e(x alone), with five bins of x, and so is the mean of e-values, over classes and

    e(x) = e(x alone) / 2 + (mean over z of e(x beside z)) / 2                                             (4)

against "x has no information about the class, alone or given the side of the edge of any one z". If labels depend on
earlier ones, V is at least the sum of D^2, and if they have a cycle, e(x) is at most that of their differences to the
labels one period earlier, as in :mod:`tamis.summaries.evidence`. With y of c among these labels subtracted from y, and
u rows of which just one of the two labels is c, y (m - y) in (2) is m u - y^2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Array, Floats, Indices, Mask, Rows
from tamis.rows.joint.pair_counts import cut, popcount
from tamis.summaries.evidence import BLOCK, Evidence

# -- The univariate information gain of features, from the number of rows of each level and class --------

# Two statistics, both approximately chi-square distributed under independence: G detects any relation and has one
# degree of freedom per level but one; H of Kruskal and Wallis only detects differences of the mean ranks of the
# classes, and has one degree per class but one, so it detects a trend in half the rows.


def gain_alone(alone: Array) -> tuple[Floats, Indices]:
    """Return I(X; Y) of each feature in bits, and its degrees of freedom."""
    return _constant_once(_gains, alone)


def _gains(alone: Array) -> tuple[Floats, Indices]:
    levels, totals = alone.sum(axis=2), alone[0].sum(axis=0)
    n = totals.sum()
    gain = np.log2(n) + (_f(alone).sum(axis=(1, 2)) - _f(levels).sum(axis=1) - _f(totals).sum()) / n
    freedom = (np.count_nonzero(levels, axis=1) - 1) * (np.count_nonzero(totals) - 1)
    return gain, freedom


def trend_alone(alone: Array) -> tuple[Floats, Indices]:
    """Return the bits due to different mean ranks of the classes (Kruskal and Wallis), and the degrees of freedom.

    One degree per class but one, for any number of levels, so a trend needs half the rows. It is 0 if so few rows are
    outside the most frequent level and class that H is not approximately chi-square distributed.
    """
    return _constant_once(_trends, alone)


def _trends(alone: Array) -> tuple[Floats, Indices]:
    levels, totals = alone.sum(axis=2), alone[0].sum(axis=0)
    n = totals.sum()
    ranks = (levels.cumsum(axis=1) - levels / 2.0) / n - 0.5  # of the middle of each level, about 0
    sums = np.einsum("jl,jlc->jc", ranks, alone)
    between = (sums**2 / np.maximum(totals, 1)).sum(axis=1)
    spread = (ranks**2 * levels).sum(axis=1)
    enough = (n - levels.max(axis=1)) * (n - totals.max()) >= 5 * n
    share = between / np.where(enough & (spread > 0.0), spread, np.inf)
    return (n - 1) * share / (2.0 * n * np.log(2.0)), np.full(len(alone), np.count_nonzero(totals) - 1)


def _constant_once(statistic: Callable[[Array], tuple[Array, Array]], alone: Array) -> tuple[Array, Array]:
    """Return the statistic of each feature, computed once for all those whose rows are all in the first level."""
    constant = alone[:, 0].sum(axis=1) == alone[0].sum()
    if np.count_nonzero(constant) < 2:
        return statistic(alone)
    one, others = int(constant.argmax()), np.flatnonzero(~constant)
    few = statistic(alone[np.append(others, one)])
    gain, freedom = (np.full(len(alone), values[-1]) for values in few)
    gain[others], freedom[others] = few[0][:-1], few[1][:-1]
    return gain, freedom


def _f(counts: Array) -> Floats:
    return counts * np.log2(np.maximum(counts, 1))


# -- E-values, valid at any time, against "this feature is irrelevant, alone or given any other" ---------

_BINS = 5  # of a feature alone
_TAU2 = 0.25  # of l: expects class proportions to differ by about .1 across an edge


@njit(strict=True)
def _add(bits: Array, classes: Array, before: Array, known: np.uint32, s: Array, v: Array, q: Array) -> None:
    """Add (1) and (2) of a word, for x given b_z = k, to s[c, k, z, x].

    `before` are the words of the classes one period earlier, `known` is that of the rows that count.
    """
    everywhere = np.uint32(0xFFFFFFFF)
    for z in range(len(bits)):
        for k in range(2):
            within = (bits[z] if k else everywhere ^ bits[z]) & known
            m = popcount(within)
            for c in range(len(classes)):
                of_class, earlier = classes[c] & within, before[c] & within
                y, u = popcount(of_class) - popcount(earlier), popcount(of_class ^ earlier)
                share = m * u - y * y
                if m >= 2 and share > 0:
                    for x in range(len(bits)):
                        if x != z:
                            n = popcount(bits[x] & within)
                            if 0 < n < m:
                                d = popcount(bits[x] & of_class) - popcount(bits[x] & earlier) - n * y / m
                                s[c, k, z, x] += d  # (1)
                                q[c, k, z, x] += d * d
                                spread = 2.0 * n * (m - n) * share / (3.0 * m * m * (m - 1.0))
                                v[c, k, z, x] += d * d / 3.0 + spread  # (2)


class PairEvidence(ThreadSafe):
    """E-values of every feature against "it is irrelevant, alone or given any other".

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_rows, n_features)
        Their medians and other quantiles are the edges. Their classes must not have been used, or the rows must not be
        passed to `update`.
    columns : ndarray of int
        The features that are tested in pairs; the others are tested alone.
    n_classes : int

    Notes
    -----
    Memory: 48 bytes for each ordered pair of features and each class (for two classes, once), and 440 bytes for each
    feature and class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5))
    >>> y = (X[:, 1] * X[:, 3] > 0).astype(np.int64)  # neither tells anything alone
    >>> evidence = PairEvidence(X[:100], np.arange(5), 2)
    >>> evidence.update(X[100:], y[100:])
    >>> evidence.log_e() > 5
    array([False,  True, False,  True, False])
    """

    _shapes = """
        _edges (j, 1) finite
        _fine (j, 4) finite
        _columns (q) int64 in [0, j) distinct
        _sum (s, c, 2, q, q) float in [-1e150, 1e150]
        _spread (s, c, 2, q, q) float in [0, 1e150]
        _squares (s, c, 2, q, q) float in [0, 1e150]
        _rows (w, j) finite
        _codes (w) int64 any "only compared with codes"
        _earlier (w) int64 any "only compared with codes"
    """

    def __init__(self, rows: Rows, columns: Indices, n_classes: int) -> None:
        low, high = (_dense(extreme) for extreme in (rows.min(axis=0), rows.max(axis=0)))
        same = low == high  # constant so far: larger values will differ
        self._edges, self._fine = cut(rows, 2), cut(rows, _BINS)
        self._edges[same, 0] = self._fine[same, 0] = low[same]
        self._columns = columns
        shape = (1, 1 if n_classes == 2 else n_classes, 2, len(columns), len(columns))
        self._sum, self._spread, self._squares = np.zeros((3, *shape))  # S, V and the sum of D^2
        self._alone = Evidence(rows.shape[1], n_classes, _BINS)
        # Rows buffered until their block is full.
        self._rows = np.zeros((0, rows.shape[1]))
        self._codes = self._earlier = np.zeros(0, np.int64)

    def update(self, X: Array, codes: Array, before: Array | None = None) -> None:
        """Update with validated dense rows; `before`: classes one period earlier, -1 where there is none."""
        before = np.full(len(codes), -1, np.int64) if before is None else before
        self._alone.update(X, codes, self._cells, before)
        rows, labels = np.concatenate([self._rows, X]), np.concatenate([self._codes, codes])
        earlier = np.concatenate([self._earlier, before])
        whole = len(labels) - len(labels) % BLOCK
        if len(self._sum) == 1 and (earlier[:whole] >= 0).any():
            for name in ("_sum", "_spread", "_squares"):
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros_like(getattr(self, name))]))
        if whole:
            above = rows[:whole, self._columns] > self._edges[self._columns, 0]
            classes = np.arange(self._alone.n_classes)[-self._sum.shape[1] :]
            for start in range(0, whole, BLOCK):
                part = slice(start, start + BLOCK)
                bits, of_class = _words(above[part]), _words(labels[part, None] == classes)
                known, minus = earlier[part] >= 0, _words(earlier[part, None] == classes)
                for p, (less, counts) in enumerate(
                    ((np.zeros_like(minus), np.ones(BLOCK, dtype=bool)), (minus, known))[: 1 + known.any()]
                ):
                    word = _words(counts[:, None])[0]
                    _add(bits, of_class, less, word, self._sum[p], self._spread[p], self._squares[p])
        self._rows, self._codes, self._earlier = (part[whole:].copy() for part in (rows, labels, earlier))

    def _cells(self, X: Array, columns: Array) -> NDArray[np.int16]:
        return (X[:, :, None] > self._fine[columns]).sum(axis=2).astype(np.int16)

    def log_e(self, *, dependent: bool = False, cyclic: bool = False) -> Floats:
        """Return the logarithm of each feature's e-value, (4), shape (n_features,).

        Parameters
        ----------
        dependent, cyclic : bool, default=False
            Whether rows may depend on those before them, and whether labels have a cycle.
        """
        log_e = self._alone.log_e(dependent=dependent, cyclic=cyclic)
        q = len(self._columns)
        if q < 2:
            return log_e
        spread = np.maximum(self._spread, self._squares) if dependent else self._spread
        of_pairs = 0.5 * self._sum**2 / (spread + 1.0 / _TAU2) - 0.5 * np.log1p(_TAU2 * spread)
        beside = of_pairs.sum(axis=2)  # (3), of the difference or not, class, z and x
        beside[..., np.arange(q), np.arange(q)] = -np.inf
        largest = beside.max(axis=(1, 2))
        mean = np.exp(beside - largest[:, None, None]).sum(axis=(1, 2)) / (beside.shape[1] * (q - 1))
        pairs = largest + np.log(mean)
        if cyclic:
            pairs[0] = np.minimum(pairs[0], pairs[1] if len(pairs) > 1 else 0.0)
        log_e[self._columns] = np.logaddexp(log_e[self._columns], pairs[0]) - np.log(2.0)  # (4)
        return log_e


def _dense(row: Rows) -> Floats:
    return row.toarray().ravel() if sp.issparse(row) else row


def _words(bits: Mask) -> NDArray[np.uint32]:
    """Return a word of 32 rows for each column."""
    powers = np.uint32(1) << np.arange(BLOCK, dtype=np.uint32)
    return (bits * powers[:, None]).sum(axis=0, dtype=np.uint32)
