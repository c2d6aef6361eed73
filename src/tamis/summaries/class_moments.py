"""Count, mean and variance of every feature within every class, in one pass and fixed memory.

Values are summed as deviations from the current mean (Chan, Golub and LeVeque 1983), so a large offset costs no more
digits than are lost in a mean of that size: the error of a score is 1e-9 if values are 1e6 standard deviations from 0,
and 1e-6 at 1e9. Older rows fade by forward decay (Cormode, Shkapenyuk, Srivastava and Xu 2009): instead of scaling
the statistics down, new rows get increasing weights, which cancel in every ratio. Only the stored cells of a sparse row
are updated.

==============  ==================================================================================
here            meaning
==============  ==================================================================================
gain_c          weight of a new row of class c, 1 / f for the rows before it
W_c, W2_c       sums over the rows of class c of w f and w f^2, for weights w that fade by f
P_cj            sum of the weights of the values present: all but NaN and the zeros of CSR rows
m_cj, M_cj      mean of those values, sum of their weighted squared deviations from it
Z_cj            weight of the implicit zeros: that of all CSR rows minus that of their stored cells
==============  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._atomic import atomic
from tamis._kernels import njit
from tamis._validation import Array, Floats, Indices, Rows
from tamis.summaries.batch import FadingState, faded, n_bytes
from tamis.summaries.moments import all_finite

_NO_WEIGHT = np.empty(0)
_TILE = 64, 512  # rows and columns that stay in the cache while the sums of all targets are updated
_ROUNDING = 1e-12  # rounding error relative to the weight of all CSR rows


@njit()
def _sum_rows(X: Array, some: Array, w: Array, centre: Array, s1: Array, s2: Array, first: int) -> None:
    """s1 += sum w (x - c), s2 += sum w (x - c)^2 over some rows, four rows per pass over the sums.

    The sums are those of the columns from `first` on.
    """
    last = len(some) - 1
    for i in range(0, last + 1, 4):
        r1, r2, r3 = some[min(i + 1, last)], some[min(i + 2, last)], some[min(i + 3, last)]
        x0, x1, x2, x3 = X[some[i]][first:], X[r1][first:], X[r2][first:], X[r3][first:]
        w0, w1 = w[some[i]], w[r1] if i + 1 <= last else 0.0
        w2, w3 = w[r2] if i + 2 <= last else 0.0, w[r3] if i + 3 <= last else 0.0
        for j in range(len(centre)):
            c = centre[j]
            z0, z1, z2, z3 = x0[j] - c, x1[j] - c, x2[j] - c, x3[j] - c
            u0, u1, u2, u3 = w0 * z0, w1 * z1, w2 * z2, w3 * z3
            s1[j] += u0 + u1 + u2 + u3
            s2[j] += u0 * z0 + u1 * z1 + u2 * z2 + u3 * z3


@njit(strict=True)
def _sum_class_present(
    X: Array,
    codes: Array,
    c: int,
    gain: float,
    weight: Array,
    centre: Array,
    s1: Array,
    s2: Array,
    arrived: Array,
) -> bool:
    """Sum the values of one class, skipping NaN feature by feature; return False if a value is infinite."""
    for i in range(X.shape[0]):
        if codes[i] != c:
            continue
        w = gain * (weight[i] if weight.shape[0] else 1.0)
        for j in range(X.shape[1]):
            x = X[i, j]
            if np.isinf(x):
                return False
            if x == x:
                if arrived[j] == 0.0:
                    centre[j] = x
                z = x - centre[j]
                s1[j] += w * z
                s2[j] += w * z * z
                arrived[j] += w
    return True


@njit()
def _centre(X: Array, codes: Array, c: int, mean: Array, centre: Array) -> None:
    """Write the first row of the class in the batch, which is near the others; the mean where it has NaN."""
    for i in range(X.shape[0]):
        if codes[i] == c:
            for j in range(mean.shape[0]):
                x = float(X[i, j])
                centre[j] = x if x - x == 0.0 else mean[j]
            return


@njit(strict=True)  # w / w must be 1: a constant feature has a mean without rounding
def _absorb(
    s1: Array,
    s2: Array,
    arrived: Array,
    everywhere: float,
    centre: Array,
    present: Array,
    mean: Array,
    m2: Array,
) -> None:
    """Combine the moments of the batch with the current ones (Chan's formula)."""
    for j in range(mean.shape[0]):
        w = arrived[j] if arrived.shape[0] else everywhere
        if w > 0.0:
            shift = s1[j] / w
            gap = centre[j] + shift - mean[j]
            total = present[j] + w
            mean[j] += gap * (w / total)
            m2[j] += max(s2[j] - shift * s1[j], 0.0) + gap * gap * (present[j] * w / total)
            present[j] = total


@njit()
def _add_dense(
    X: Array, codes: Array, gain: Array, weight: Array, present: Array, mean: Array, m2: Array
) -> bool:
    """Add rows without NaN, of all classes; return False, with nothing changed, if a sum is not finite."""
    n_classes, n_features = mean.shape
    w, arrived, by_class = np.empty(len(codes)), np.zeros(n_classes), np.empty(len(codes), np.int64)
    at = np.zeros(n_classes + 1, np.int64)  # where the rows of each class begin in `by_class`
    for i in range(len(codes)):
        w[i] = gain[codes[i]] * (weight[i] if weight.shape[0] else 1.0)
        arrived[codes[i]] += w[i]
        at[codes[i] + 1] += 1
    for c in range(n_classes):
        at[c + 1] += at[c]
    for i in range(len(codes)):
        by_class[at[codes[i]]] = i
        at[codes[i]] += 1
    centre, s1, s2 = np.empty(mean.shape), np.zeros(mean.shape), np.zeros(mean.shape)
    for c in range(n_classes):
        some = by_class[at[c - 1] if c else 0 : at[c]]
        if len(some):
            for j in range(n_features):  # the first row is near the others
                centre[c, j] = X[some[0], j]
            _sum_rows(X, some, w, centre[c], s1[c], s2[c], 0)
            if not (all_finite(s1[c]) and all_finite(s2[c])):
                return False
    for c in range(n_classes):
        _absorb(s1[c], s2[c], w[:0], arrived[c], centre[c], present[c], mean[c], m2[c])
    return True


@njit(strict=True)
def _update_csr(
    data: Array, indices: Array, indptr: Array, codes: Array, gain: Array, weight: Array,
    present: Array, mean: Array, m2: Array, stored: Array,
) -> None:  # fmt: skip
    """Apply West's update to every stored value; a stored NaN is neither present nor zero."""
    for i in range(codes.shape[0]):
        c = codes[i]
        w = gain[c] * (weight[i] if weight.shape[0] else 1.0)
        if w == 0.0:
            continue
        for at in range(indptr[i], indptr[i + 1]):
            j, x = indices[at], float(data[at])
            stored[c, j] += w
            if x == x:
                present[c, j] += w
                gap = x - mean[c, j]
                mean[c, j] += gap * (w / present[c, j])
                m2[c, j] += w * gap * (x - mean[c, j])


@njit(strict=True)
def _read(
    present: Array, mean: Array, m2: Array, stored: Array, sparse_weight: Array, gain: Array, moments: Array
) -> None:
    """Write count, mean and variance of each class and feature; implicit zeros are included."""
    for c in range(mean.shape[0]):
        for j in range(mean.shape[1]):
            zeros = sparse_weight[c] - stored[c, j] if stored.shape[1] else 0.0
            if zeros < _ROUNDING * sparse_weight[c]:
                zeros = 0.0  # rounding error of two equal sums; a large mean would turn it into a variance
            total = present[c, j] + zeros
            if total > 0.0:
                moments[0, c, j] = total / gain[c]
                # The ratio may be exactly 1, so that a constant is unchanged.
                moments[1, c, j] = mean[c, j] * (present[c, j] / total)
                squares = m2[c, j] + mean[c, j] ** 2 * present[c, j] * (zeros / total)
                moments[2, c, j] = squares / total


@njit(strict=True)
def _effective(weight: Array, weight2: Array, gain: Array, count: Array, effective: Array) -> None:
    """Write the counts times W / W2, W and W2 being the weight of the class and the sum of its squares."""
    for c in range(count.shape[0]):
        faded, share = weight[c] / gain[c], 0.0
        if faded > 0.0 and weight2[c] > 0.0:
            share = weight[c] * weight[c] / weight2[c] / faded
        for j in range(count.shape[1]):
            effective[c, j] = count[c, j] * share


@njit()
def _rows_by_class(codes: Array, first: Array) -> tuple[Array, Array]:
    """Return where the rows of each class of each target begin in a list, and the list."""
    at, rows = np.zeros(first[-1] + 1, np.int64), np.empty(codes.size, np.int64)
    for t in range(len(codes)):
        for code in codes[t]:
            at[first[t] + code + 1] += 1
    for c in range(first[-1]):
        at[c + 1] += at[c]
    end = at.copy()
    for t in range(len(codes)):
        for i in range(codes.shape[1]):
            c = first[t] + codes[t, i]
            rows[end[c]] = i
            end[c] += 1
    return at, rows


@njit()
def _sum_targets(X: Array, codes: Array, first: Array, tile: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Return first row, sums and sums of squares of each class of each target; those of target t begin at first[t].

    Each sum adds the same rows four at a time as in `_add_dense`, so it has the same bits.
    """
    (n, n_features), n_classes = X.shape, first[-1]
    at, by_class = _rows_by_class(codes, first)
    centre = np.zeros((n_classes, n_features))
    s1, s2, weight = np.zeros(centre.shape), np.zeros(centre.shape), np.ones(n)
    for c in range(n_classes):
        if at[c] < at[c + 1]:
            for j in range(n_features):
                centre[c, j] = X[by_class[at[c]], j]
    for column in range(0, n_features, tile[1]):
        stop = min(column + tile[1], n_features)
        place = at[:-1].copy()
        for row in range(tile[0], n + tile[0], tile[0]):
            for c in range(n_classes):
                last = place[c]
                while last < at[c + 1] and by_class[last] < row:
                    last += 1
                if row < n:
                    last -= (last - place[c]) % 4
                some, (c0, c1, c2) = by_class[place[c] : last], (centre[c], s1[c], s2[c])
                _sum_rows(X, some, weight, c0[column:stop], c1[column:stop], c2[column:stop], column)
                place[c] = last
    return centre, s1, s2


class SharedSums:
    """Sums of dense rows within the classes of several targets, in one pass for all of them.

    The moments of each target find theirs within :func:`sharing_sums`.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64, C order
    codes : list of ndarray of shape (n_rows,), int64
        Classes of the rows, for each target.

    Examples
    --------
    >>> X, codes = np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 7.0]]), np.array([0, 1, 0])
    >>> centre, sums, squares = SharedSums(X, [codes]).of(X, codes)
    >>> sums, squares  # deviations from the first row of the class
    (array([[4., 5.],
           [0., 0.]]), array([[16., 25.],
           [ 0.,  0.]]))
    """

    def __init__(self, X: Array, codes: list[Array]) -> None:
        self._X, self._codes = X, np.array(codes)
        self._first = np.cumsum([0, *(int(one.max(initial=0)) + 1 for one in codes)])
        self._found: dict[int, tuple[Array, Array, Array]] = {}

    def of(self, X: Array, codes: Array) -> tuple[Array, ...] | None:
        """Return the first row of each class, and the sums of the deviations from it and of their squares.

        None for rows that are not among those of the batch.
        """
        start, inside = divmod(X.ctypes.data - self._X.ctypes.data, self._X.strides[0])
        stop, same_rows = start + len(X), X.shape[1:] == self._X.shape[1:] and X.strides == self._X.strides
        if inside or not (same_rows and 0 <= start < stop <= len(self._X)):
            return None
        some = self._codes[:, start:stop]
        at = next((t for t, one in enumerate(some) if np.array_equal(one, codes)), -1)
        if at < 0:
            return None
        if start not in self._found:
            self._found[start] = _sum_targets(X, some, self._first, _TILE)
        part = slice(self._first[at], self._first[at + 1])
        return tuple(found[part] for found in self._found[start])


_shared_sums: ContextVar[SharedSums | None] = ContextVar("_shared_sums", default=None)


@contextmanager
def sharing_sums(X: Array, codes: list[Array]) -> Iterator[None]:
    """Compute the sums of these rows once for all targets within the context."""
    token = _shared_sums.set(SharedSums(X, codes) if codes else None)
    try:
        yield
    finally:
        _shared_sums.reset(token)


class ClassMoments(FadingState):
    """Weighted count, mean and variance of each feature within each class; mergeable.

    Parameters
    ----------
    n_features, n_classes : int

    Notes
    -----
    Memory: 24 bytes per feature and class, 32 once CSR rows have been seen. Time: one pass over a dense batch,
    O(stored values) for CSR rows. Counts are exact up to 2**53 rows. The weight of implicit zeros is the difference of
    two sums; below 1e-12 of the rows' weight it is treated as 0.

    Examples
    --------
    >>> import numpy as np
    >>> moments = ClassMoments(n_features=1, n_classes=2)
    >>> moments.update(np.array([[1e6], [1e6 + 2], [5.0], [np.nan]]), np.array([0, 0, 1, 1]))
    True
    >>> moments.mean().ravel(), moments.variance().ravel(), moments.count().ravel()
    (array([1.000001e+06, 5.000000e+00]), array([1., 0.]), array([2., 1.]))
    """

    _shapes = """
        _gain (c) float in (0, inf) fill 1
        _weight (c) float in [0, inf) fill 0
        _weight2 (c) float in [0, inf) fill 0
        _sparse_weight (c) float in [0, inf) fill 0
        _present (c, j) float in [0, inf) fill "(its._weight - its._sparse_weight)[:, None]"
        _mean (c, j) float in [-1.4e154, 1.4e154] fill 0
        _m2 (c, j) float in [0, inf] fill 0
        _stored (c, j?) float in [0, inf) fill 0
    """

    def __init__(self, n_features: int, n_classes: int) -> None:
        self._gain = np.ones(n_classes)
        self._weight = np.zeros(n_classes)  # W_c
        self._weight2 = np.zeros(n_classes)  # W2_c
        self._sparse_weight = np.zeros(n_classes)  # weight of the CSR rows
        self._present = np.zeros((n_classes, n_features))
        self._mean = np.zeros((n_classes, n_features))
        self._m2 = np.zeros((n_classes, n_features))
        self._stored = np.zeros((n_classes, 0))  # (n_classes, n_features) once CSR rows were seen

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self._weight)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._mean.shape[1]

    def widen(self, n_features: int, *, dense_too: bool = False, missing: bool = False) -> None:
        """Add features, which count as 0 in all rows so far.

        Parameters
        ----------
        n_features : int
        dense_too : bool, default=False
            Whether they were also 0 in dense rows; otherwise all rows must have been CSR.
        missing : bool, default=False
            Whether they were missing in dense rows.

        Raises
        ------
        ValueError
            If some rows were dense, and neither is true.
        """
        n_before = self.n_features
        if not (dense_too or missing):
            self._reject_dense()
        super().widen(n_features)
        if missing:
            self._present[:, n_before:] = 0.0

    def _reject_dense(self) -> None:
        if not np.array_equal(self._weight, self._sparse_weight):
            raise ValueError("Dense rows have a fixed number of columns: pass CSR rows from the start.")

    def forget(self, columns: Indices, *, dense_too: bool = False, missing: bool = False) -> None:
        """Forget some features: they then count as 0 in all rows. Parameters and errors as for :meth:`widen`."""
        if not (dense_too or missing):
            self._reject_dense()
        super().forget(columns)
        if missing:
            self._present[:, columns] = 0.0

    def update(
        self,
        X: Rows,
        codes: Array,
        sample_weight: Array | None = None,
        keep: float | Array = 1.0,
        fade: Array | None = None,
    ) -> bool:
        """Add a batch of rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), floating
            NaN is skipped, feature by feature.
        codes : ndarray of shape (n_rows,), int64
            Class of each row, below `n_classes`.
        sample_weight : ndarray of shape (n_rows,), optional
        keep : float or ndarray of shape (n_classes,), in [0, 1]
            Factor for the weight of all earlier rows (per class, if an array), applied first.
        fade : ndarray of shape (n_rows,), optional
            Factor for the weight of each of these rows at the end of the batch.

        Returns
        -------
        bool
            False, with the state unchanged, if a value is infinite (or too large to be squared).
        """
        own = sample_weight if fade is None else faded(sample_weight, fade)
        weight = _NO_WEIGHT if own is None else own
        gain = self._faded_gain(keep)
        if sp.issparse(X):
            if np.isinf(X.data).any():
                return False
            self._add_csr(X, codes, weight, gain)
        elif not (
            self._add_shared(X, codes, weight, gain)
            or _add_dense(X, codes, gain, weight, self._present, self._mean, self._m2)
            or self._take_present(X, codes, weight, gain)
        ):
            return False
        arrived = squares = np.bincount(codes, weight if len(weight) else None, minlength=self.n_classes)
        if fade is not None:
            squares = np.bincount(codes, fade * weight, minlength=self.n_classes)
        self._gain = gain
        self._weight = self._weight + gain * arrived
        self._weight2 = self._weight2 + gain * gain * squares
        if sp.issparse(X):
            self._sparse_weight = self._sparse_weight + gain * arrived
        return True

    def _add_csr(self, X: Rows, codes: Array, weight: Array, gain: Array) -> None:
        if self._stored.shape[1] == 0:
            self._stored = np.zeros_like(self._mean)
        _update_csr(
            X.data,
            X.indices,
            X.indptr,
            codes,
            gain,
            weight,
            self._present,
            self._mean,
            self._m2,
            self._stored,
        )

    def _add_shared(self, X: Array, codes: Array, weight: Array, gain: Array) -> bool:
        """Add rows whose sums are shared with other targets, if they are finite; return whether it was done."""
        shared = _shared_sums.get()
        if shared is None or len(weight) or (gain != 1.0).any() or (found := shared.of(X, codes)) is None:
            return False
        centre, s1, s2 = found
        if not (np.isfinite(s1).all() and np.isfinite(s2).all()):
            return False
        arrived = np.bincount(codes, minlength=len(centre)).astype(np.float64)
        for c in np.flatnonzero(arrived):
            _absorb(
                s1[c], s2[c], _NO_WEIGHT, arrived[c], centre[c], self._present[c], self._mean[c], self._m2[c]
            )
        return True

    def _take_present(self, X: Array, codes: Array, weight: Array, gain: Array) -> bool:
        """Add rows with NaN; return False, with nothing changed, if a value is infinite."""
        sums: list[tuple[Any, ...]] = []
        for c in np.flatnonzero(np.bincount(codes, minlength=self.n_classes)).tolist():
            centre = np.empty(self.n_features)
            _centre(X, codes, c, self._mean[c], centre)
            s1, s2, arrived = (np.zeros(self.n_features) for _ in range(3))
            finite = _sum_class_present(X, codes, c, gain[c], weight, centre, s1, s2, arrived)
            if not (finite and all_finite(s1) and all_finite(s2)):
                return False
            sums.append((c, s1, s2, arrived, 0.0, centre))
        for c, s1, s2, arrived, total, centre in sums:
            _absorb(s1, s2, arrived, total, centre, self._present[c], self._mean[c], self._m2[c])
        return True

    def _rescale(self) -> None:
        by = self._gain[:, None]
        self._present, self._m2, self._stored = self._present / by, self._m2 / by, self._stored / by
        self._weight, self._sparse_weight = self._weight / self._gain, self._sparse_weight / self._gain
        self._weight2 = self._weight2 / self._gain**2
        self._gain = np.ones_like(self._gain)

    def fade(self, keep: float | Array) -> None:
        """Multiply the weight of all rows (per class, if an array) by `keep`, in [0, 1]."""
        self._rescale()
        super().fade(keep)

    @atomic
    def merge(self, other: ClassMoments) -> None:
        """Add another summary of the same features and classes, each with its weights as of its last row.

        Raises
        ------
        ValueError
            If the numbers of features or classes differ.
        """
        if other._mean.shape != self._mean.shape:
            raise ValueError(
                f"Cannot merge moments of {other.n_features} features and {other.n_classes} classes into moments of"
                f" {self.n_features} features and {self.n_classes} classes."
            )
        self._rescale()
        by = other._gain[:, None]
        present, m2 = other._present / by, other._m2 / by
        total = self._present + present
        share = np.divide(present, total, out=np.zeros_like(total), where=total > 0)
        gap = other._mean - self._mean
        self._m2 = self._m2 + m2 + gap * gap * (self._present * share)
        self._mean = self._mean + gap * share
        self._present = total
        self._weight = self._weight + other._weight / other._gain
        self._weight2 = self._weight2 + other._weight2 / other._gain**2
        self._sparse_weight = self._sparse_weight + other._sparse_weight / other._gain
        if other._stored.shape[1]:
            self._stored = other._stored / by + (self._stored if self._stored.shape[1] else 0.0)

    # -- read-outs -----------------------------------------------------------------------------------------

    def weight(self) -> Floats:
        """Return the faded number of rows of each class, shape (n_classes,)."""
        return self._weight / self._gain

    def squared_weight(self) -> Floats:
        """Return the sum of the squared (faded) weights of the rows of each class, shape (n_classes,)."""
        return self._weight2 / self._gain**2

    def effective(self) -> Floats:
        """Return the effective sample size W^2 / W2 of each class, shape (n_classes,); without fading, W."""
        return np.divide(
            self._weight**2, self._weight2, out=np.zeros_like(self._weight), where=self._weight2 > 0
        )

    def effective_count(self, count: Array) -> Floats:
        """Return the effective number of values of each class and feature from their (faded) `count`.

        Parameters
        ----------
        count : ndarray of shape (n_classes, n_features), float64

        Returns
        -------
        ndarray of shape (n_classes, n_features), float64
        """
        effective = np.empty_like(count)
        _effective(self._weight, self._weight2, self._gain, count, effective)
        return effective

    def read(self) -> Floats:
        """Return (faded) count, mean and variance of the values, shape (3, n_classes, n_features); 0 without values.

        The variance is the population variance (divisor: the weight, not the weight minus one).
        """
        moments = np.zeros((3, *self._mean.shape))
        _read(self._present, self._mean, self._m2, self._stored, self._sparse_weight, self._gain, moments)
        return moments

    def count(self) -> Floats:
        """Return the (faded) number of non-missing values of each class and feature."""
        return self.read()[0]

    def mean(self) -> Floats:
        """Return the mean of each class and feature, shape (n_classes, n_features)."""
        return self.read()[1]

    def variance(self) -> Floats:
        """Return the variance of each class and feature, shape (n_classes, n_features)."""
        return self.read()[2]

    nbytes = property(n_bytes)
