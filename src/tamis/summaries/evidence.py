"""Anytime-valid e-values against the null hypothesis that a feature is irrelevant to the class.

Rows are processed in blocks of 32. If a feature is irrelevant to the class, then within a block, given the values and
the labels, all permutations of the labels are equally likely. With phi_i a function of the feature's value in row i,
and z_i = 1 if the row is of class c, else 0, a block of m rows contributes

    D = sum_i (phi_i - mean) z_i                                                                            (1)

whose mean over the permutations is 0 and whose covariance is R Y / (m - 1), with R = sum_i (phi_i - mean) (phi_i -
mean)^T and Y = m_c - m_c^2 / m for the m_c rows of the class. For every vector l, exp(l^T D - l^T V l / 2) with

    V = D D^T / 3 + 2 R Y / (3 (m - 1))                                                                     (2)

has a mean of at most 1 over the permutations, since exp(x - x^2 / 6) <= 1 + x + x^2 / 3 for every x (Delyon 2009).
With S and V summed over the blocks, and l averaged over a normal distribution of covariance tau^2 I,

    e = exp(S^T (V + I / tau^2)^-1 S / 2) / sqrt(det(I + tau^2 V))                                          (3)

is therefore an e-value: it starts at 1, and its mean is at most 1 at any stopping time. No assumption is made about the
distribution of the values, and both this distribution and the class proportions may change from block to block. Sample
weights are ignored: weights correlated with the values, such as amounts of money, would look like a relation to the
class. The one-vs-rest e-values of the classes are averaged; features may depend on one another in any way
(:func:`tamis.dependence.e_values.e_bh`).

If both values and labels are autocorrelated, the rows of a block are not exchangeable, and R Y / (m - 1) is not the
variance of D. Given the labels, D is then about as likely as -D if the feature is unrelated to the class. It is centred
within its block, so that slow states, lots, trends and random walks hardly correlate the D of neighbouring blocks,
whatever their length. exp(l^T D - (l^T D)^2 / 2) has a mean of at most 1 for such a D (de la Pena 1999), so (3) uses,
with Q the sum of D D^T over the blocks, and the positive part of a matrix that of its eigenvalues,

    V' = V + (Q - V)^+                                                                                       (4)

V' is at least V, so this e-value is never larger, and remains valid for exchangeable rows.

A common cycle of feature and label gives all D the same mean. While labels have a cycle of P rows
(:mod:`tamis.summaries.label_series`), the e-value is therefore at most that of the difference of the labels to those P
rows earlier, z_i = 1 if the row is of class c, minus 1 if the earlier one is, in which this cycle cancels, whatever its
shape and that of the feature. Y is then the sum of (z_i - mean z)^2. It is collected from the first time on at which
the labels have a cycle.

phi is the value divided by its standard deviation in the block (K = 1), which is sensitive to a difference of the class
means, or the indicators of K bins times sqrt(K), whose edges do not depend on the labels.

de la Pena: A general class of exponential inequalities for martingales and ratios, Annals of Probability 27(1), 1999.
Delyon: Exponential inequalities for sums of weakly dependent variables, Electronic Journal of Probability 14, 2009.
De la Pena, Lai, Shao: Self-Normalized Processes, Springer, 2009 (the mixture).
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from tamis._atomic import atomic
from tamis._guard import ThreadSafeState
from tamis._kernels import njit
from tamis._validation import Array, Floats, Rows
from tamis.summaries.batch import check_waiting, n_bytes

BLOCK = 32  # rows permuted together
_TAU2 = 0.02  # variance of l: the expected effect is about 1/7 of a standard deviation


@njit(strict=True)
def _add_values(X: Array, codes: Array, before: Array, columns: Array, s: Array, v: Array, q: Array) -> None:
    """Add (1), (2) and D D^T for the values divided by their standard deviation; NaN is skipped.

    `before` is the class one period earlier, which is subtracted, or negative.
    """
    n_classes = s.shape[1]
    for at in range(columns.shape[0]):
        j, m, mean, largest = columns[at], 0, 0.0, 0.0
        for i in range(X.shape[0]):
            if X[i, at] == X[i, at]:
                m += 1
                mean += (X[i, at] - mean) / m
        for i in range(X.shape[0]):
            if X[i, at] == X[i, at]:
                largest = max(largest, abs(X[i, at] - mean))
        if m < 2 or not largest > 1e-13 * abs(mean):
            continue  # constant
        d, count, moved, squares = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes), 0.0
        for i in range(X.shape[0]):
            if X[i, at] == X[i, at]:
                u = (X[i, at] - mean) / largest
                squares += u * u
                if codes[i] == before[i]:
                    continue
                d[codes[i]] += u
                count[codes[i]] += 1.0
                moved[codes[i]] += 1.0
                if before[i] >= 0:
                    d[before[i]] -= u
                    count[before[i]] -= 1.0
                    moved[before[i]] += 1.0
        for c in range(n_classes):
            gap = d[c] / np.sqrt(squares / (m - 1))
            s[j, c, 0] += gap  # (1)
            q[j, c, 0, 0] += gap * gap
            v[j, c, 0, 0] += gap * gap / 3.0 + 2.0 / 3.0 * (moved[c] - count[c] ** 2 / m)  # (2)


@njit(strict=True)
def _add_cells(
    cells: Array, codes: Array, before: Array, columns: Array, s: Array, v: Array, q: Array
) -> None:
    """Add (1), (2) and D D^T for the bin indicators; a cell below 0 is missing, `before` as for values."""
    n_classes, n_bins = s.shape[1], s.shape[2]
    for at in range(columns.shape[0]):
        j, m = columns[at], 0
        rows, table, moved = np.zeros(n_bins), np.zeros((n_classes, n_bins)), np.zeros(n_classes)
        for i in range(cells.shape[0]):
            b = cells[i, at]
            if b >= 0:
                m += 1
                rows[b] += 1.0
                if codes[i] == before[i]:
                    continue
                table[codes[i], b] += 1.0
                moved[codes[i]] += 1.0
                if before[i] >= 0:
                    table[before[i], b] -= 1.0
                    moved[before[i]] += 1.0
        if m < 2 or rows.max() == m:
            continue
        d = np.empty(n_bins)
        for c in range(n_classes):
            count = table[c].sum()
            spread = n_bins * 2.0 / 3.0 * (moved[c] - count * count / m) / (m - 1)
            for b in range(n_bins):
                d[b] = (table[c, b] - rows[b] * count / m) * np.sqrt(n_bins)
                s[j, c, b] += d[b]  # (1)
            for a in range(n_bins):
                for b in range(n_bins):
                    r = (rows[a] if a == b else 0.0) - rows[a] * rows[b] / m
                    q[j, c, a, b] += d[a] * d[b]
                    v[j, c, a, b] += d[a] * d[b] / 3.0 + spread * r  # (2)


class Evidence(ThreadSafeState):
    """E-values of each feature against the null hypothesis that it is irrelevant to the class; mergeable.

    Parameters
    ----------
    n_features, n_classes : int
    n_bins : int
        Number of bins, or 1 to test the values themselves.

    Notes
    -----
    Memory: 8 (1 + K + 2 K^2) bytes per feature and class, K = `n_bins`, twice as much once labels have a cycle, and up
    to 32 rows (all rows until the bins are defined). CSR rows cost 32 operations per column that stores a value in the
    block.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)
    >>> X[:, 1] += 0.5 * y
    >>> evidence = Evidence(n_features=2, n_classes=2)
    >>> evidence.update(X, y)
    >>> np.exp(evidence.log_e()).round(1)[0], bool(evidence.log_e()[1] > 30)
    (np.float64(0.7), True)
    """

    _shapes = """
        n_bins (=b)
        _sum (s, j, c, b) float in [-1e150, 1e150] fill 0
        _spread (s, j, c, b, b) float in [-1e150, 1e150] fill 0
        _squares (s, j, c, b, b) float in [-1e150, 1e150] fill 0
        _start (s, j, c) finite fill 0
        _waiting[][0] (N, j) float in (-inf, inf) or nan fill 0
        _waiting[][1] (N) int64 in [0, c)
        _waiting[][2] (N) int64 in [-1, c)
    """

    def __init__(self, n_features: int, n_classes: int, n_bins: int = 1) -> None:
        self.n_bins = n_bins
        # Of the labels, and from the first cycle on of their differences to those one period earlier.
        self._sum = np.zeros((1, n_features, n_classes, n_bins))  # S
        self._spread = np.zeros((1, n_features, n_classes, n_bins, n_bins))  # V
        self._squares = np.zeros_like(self._spread)  # Q
        self._start = np.zeros((1, n_features, n_classes))  # log e of each class before its first row
        self._waiting: list[tuple[Rows, Array, Array]] = []

    def check_state(self) -> None:
        """Validate the columns and classes of loaded pending rows.

        Raises
        ------
        StateError
            If their number of columns or classes differs.
        """
        check_waiting(self._waiting, self._sum.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._sum.shape[2]

    nbytes = property(n_bytes)

    def grow(self, n_classes: int) -> None:
        """Add classes, each of which starts with the mean e-value of the existing ones."""
        n, mean = self.n_classes, self._log_e(dependent=False)[..., None]
        super().grow(n_classes)
        self._start[..., n:] = mean

    def reorder(self, order: Array) -> None:
        """Reorder the classes: the new class c is the old class `order[c]`."""
        super().reorder(order)
        new = np.argsort(order)
        self._waiting = [
            (X, new[codes], np.where(before < 0, -1, new[before])) for X, codes, before in self._waiting
        ]

    # -- learning ------------------------------------------------------------------------------------------

    def update(
        self,
        X: Rows,
        codes: Array,
        cells_of: Callable[[Array, Array], Array] | None = None,
        before: Array | None = None,
    ) -> None:
        """Add validated rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), floating
        codes : ndarray of shape (n_rows,), int64
        cells_of : callable, optional
            Function of values (n_rows, n) and their column numbers that returns their bins, negative where missing.
            With more than one bin, rows are buffered until it is passed.
        before : ndarray of shape (n_rows,), int64, optional
            Class of the row one period earlier; -1 if it is unknown, or labels have no cycle.
        """
        self.wait(X, codes, before)
        self.weigh(cells_of)

    def wait(self, X: Rows, codes: Array, before: Array | None = None) -> None:
        """Store rows until their block is complete."""
        known = np.full(len(codes), -1, np.int64) if before is None else before.copy()
        self._waiting = [*self._waiting, (X.copy(), codes.copy(), known)]

    def weigh(self, cells_of: Callable[[Array, Array], Array] | None = None) -> None:
        """Add the evidence of the complete blocks."""
        if self.n_waiting < BLOCK or (self.n_bins > 1 and cells_of is None):
            return
        X, codes, before = self._stack_waiting()
        whole = len(codes) - len(codes) % BLOCK
        self._pad(1 + (len(self._sum) > 1 or bool((before[:whole] >= 0).any())))
        for start in range(0, whole, BLOCK):
            rows = slice(start, start + BLOCK)
            self._add(X[rows], codes[rows], before[rows], cells_of)
        rest = slice(whole, len(codes))
        self._waiting = [(X[rest].copy(), codes[rest], before[rest])] if whole < len(codes) else []

    def _pad(self, n: int) -> None:
        """Copy the sums, with 0 for differences of labels that were not collected so far."""
        for name in ("_sum", "_spread", "_squares", "_start"):
            old = getattr(self, name)
            new = np.zeros((n, *old.shape[1:]))
            new[: len(old)] = old
            setattr(self, name, new)

    @property
    def n_waiting(self) -> int:
        """Number of buffered rows."""
        return sum(len(codes) for _, codes, _ in self._waiting)

    def first_waiting(self, n: int) -> Rows:
        """Return the first n buffered rows."""
        return self._stack_waiting()[0][:n]

    def _stack_waiting(self) -> tuple[Rows, Array, Array]:
        rows, codes, before = zip(*self._waiting, strict=True)
        if len(rows) == 1:
            stacked = rows[0]
        elif all(sp.issparse(X) for X in rows):
            stacked = sp.vstack(rows, format="csr")
        else:
            stacked = np.concatenate([X.toarray() if sp.issparse(X) else X for X in rows])
        return stacked, np.concatenate(codes), np.concatenate(before)

    def _add(
        self, X: Rows, codes: Array, before: Array, cells_of: Callable[[Array, Array], Array] | None
    ) -> None:
        if sp.issparse(X):
            columns = np.unique(X.indices)  # the others are constant in the block
            X = X[:, columns].toarray()
        else:
            columns = np.arange(X.shape[1])
        values, add = (X, _add_values) if cells_of is None else (cells_of(X, columns), _add_cells)
        add(values, codes, np.full(len(codes), -1), columns, self._sum[0], self._spread[0], self._squares[0])
        if (known := before >= 0).any():
            part = values[known], codes[known], before[known]
            add(*part, columns, self._sum[1], self._spread[1], self._squares[1])

    @atomic
    def merge(self, other: Evidence, cells_of: Callable[[Array, Array], Array] | None = None) -> None:
        """Add the evidence of other rows of the same features, classes and bins; e-values are multiplied."""
        theirs = copy.copy(other)
        for part in (self, theirs):
            part._pad(max(len(self._sum), len(other._sum)))
        for name in ("_sum", "_spread", "_squares", "_start"):
            setattr(self, name, getattr(self, name) + getattr(theirs, name))
        mine, self._waiting = self._waiting, []
        for X, codes, before in (*mine, *other._waiting):
            self.update(X, codes, cells_of, before)

    # -- results -------------------------------------------------------------------------------------------

    def log_e(self, *, dependent: bool = False, cyclic: bool = False) -> Floats:
        """Return the logarithm of each feature's e-value, (3), shape (n_features,).

        Parameters
        ----------
        dependent : bool, default=False
            Whether rows may depend on those before them, so that (4) is used.
        cyclic : bool, default=False
            Whether labels have a cycle, so that it is at most that of their differences, and at most 1 without any.
        """
        log_e = self._log_e(dependent=dependent)
        if not cyclic:
            return log_e[0]
        return np.minimum(log_e[0], log_e[1] if len(log_e) > 1 else 0.0)

    def _log_e(self, *, dependent: bool) -> Floats:
        """Return the logarithm of the e-values of the labels and of their differences."""
        if self.n_classes == 0:
            return np.zeros(self._sum.shape[:2])
        spread = self._spread
        if dependent and self.n_bins == 1:
            spread = np.maximum(spread, self._squares)
        elif dependent:
            value, vector = np.linalg.eigh(self._squares - spread)
            spread = spread + (vector * np.maximum(value, 0.0)[..., None, :]) @ vector.swapaxes(-1, -2)  # (4)
        precision = spread + np.eye(self.n_bins) / _TAU2
        if self.n_bins == 1:
            quadratic, volume = self._sum[..., 0] ** 2 / precision[..., 0, 0], np.log(precision[..., 0, 0])
        else:
            solved = np.linalg.solve(precision, self._sum[..., None])[..., 0]
            quadratic, volume = (self._sum * solved).sum(axis=-1), np.linalg.slogdet(precision)[1]
        log_e = self._start + 0.5 * quadratic - 0.5 * (volume + self.n_bins * np.log(_TAU2))  # (3)
        largest = log_e.max(axis=-1)
        return largest + np.log(np.mean(np.exp(log_e - largest[..., None]), axis=-1))
