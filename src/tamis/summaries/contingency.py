"""Counts of the bins of each feature by class, and the scores computed from them.

With counts T[b, c] of bin b and class c, r_b = sum_c T[b, c], k_c = sum_b T[b, c] and n = sum_b r_b::

    mutual information = sum_bc T[b, c] / n log(T[b, c] n / (r_b k_c))                                 (1)
    chi-square         = sum_bc (T[b, c] - r_b k_c / n)^2 / (r_b k_c / n)                              (2)
    Gini decrease      = max_h sum_c [A_c^2 / a + B_c^2 / b - k_c^2 / n] / n                           (3)

where A_c counts class c up to edge h, B_c beyond it, a = sum_c A_c and b = sum_c B_c. Empty bins and classes contribute
0. The Gini index of Wang and Barbu (2021) is the remaining impurity, which is smaller for a better feature; (3) is the
decrease of the impurity 1 - sum_c (k_c / n)^2, so that for all three a larger score means more relevant.
"""

from __future__ import annotations

import numpy as np
import scipy.special

from tamis._atomic import atomic
from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, check_number
from tamis.errors import DataError
from tamis.summaries.batch import FadingState, check_batch, n_bytes

Table = Floats  # (n_features, n_bins, n_classes)
_EXPECTED = 5.0  # smallest expected count for chi-square (Cochran 1954, Biometrics 10)


@njit(strict=True)
def _count(X: Array, codes: Array, weight: Array, table: Array) -> None:
    for i in range(X.shape[0]):
        c, w = codes[i], weight[i]
        for j in range(X.shape[1]):
            x = X[i, j]
            if x == x:
                table[j, int(x), c] += w


@njit(strict=True)
def _first_unfit(X: Array, n_bins: int) -> tuple[int, int]:
    """Return the row and column of the first value that is neither NaN nor a code below n_bins, else -1, -1."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            if x == x and not (0 <= x < n_bins and x == np.floor(x)):
                return i, j
    return -1, -1


class Contingency(FadingState):
    """Weights of the values of discrete features in each class; exact and mergeable.

    Parameters
    ----------
    n_features, n_bins, n_classes : int
        Values are the codes 0, 1, ..., n_bins - 1, as integers or floats.

    Attributes
    ----------
    n_features, n_bins, n_classes : int

    Notes
    -----
    Memory: 8 bytes per feature, bin and class. Counts are exact up to 2**53 rows.

    Examples
    --------
    >>> import numpy as np
    >>> contingency = Contingency(n_features=2, n_bins=3, n_classes=2)
    >>> contingency.update(np.array([[0, 2], [1, 2], [0, 0], [1, 0]]), np.array([0, 1, 0, 1]))
    >>> contingency.table()[0]
    array([[2., 0.],
           [0., 2.],
           [0., 0.]])
    >>> mutual_information(contingency.table())
    array([0.69314718, 0.        ])
    """

    _shapes = "_gain (c) float in (0, inf) fill 1  _table (*, b, c) float in [0, inf) fill 0"

    def __init__(self, n_features: int, n_bins: int, n_classes: int) -> None:
        for name, value in (("n_features", n_features), ("n_bins", n_bins), ("n_classes", n_classes)):
            check_number(name, value, low=0 if name == "n_classes" else 1, integer=True)
        self._gain = np.ones(n_classes)  # weight of a new row of each class
        self._table = np.zeros((n_features, n_bins, n_classes))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._table.shape[0]

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return self._table.shape[1]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._table.shape[2]

    nbytes = property(n_bytes)

    def grow(self, n_classes: int, n_bins: int | None = None) -> None:
        """Add classes, and optionally bins, with codes after the existing ones."""
        super().grow(n_classes)
        if n_bins is not None:
            self._state_spec.extend(self, "b", n_bins)

    def update(
        self, X: Array, codes: Array, sample_weight: Array | None = None, keep: float | Array = 1.0
    ) -> None:
        """Add a batch of rows.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), integer or floating
            Codes below `n_bins`; NaN is skipped.
        codes : ndarray of shape (n_rows,), int64
            Class of each row, below `n_classes`.
        sample_weight : ndarray of shape (n_rows,), optional
        keep : float or ndarray of shape (n_classes,), in [0, 1]
            Factor for the weight of all earlier rows (per class, if an array), applied first.

        Raises
        ------
        DataError
            If a value is not a valid code, or another argument is invalid; the state is unchanged.
        """
        check_batch(X, codes, sample_weight, keep, self.n_features, self.n_classes)
        row, column = _first_unfit(X, self.n_bins)
        if row >= 0:
            raise DataError(
                f"Column {column} contains {X[row, column]} in row {row} of the batch: encode the values as"
                f" 0 to {self.n_bins - 1}, or raise n_bins."
            )
        self._gain = self._faded_gain(keep)
        weight = self._gain[codes]
        _count(X, codes, weight if sample_weight is None else weight * sample_weight, self._table)

    def _rescale(self) -> None:
        self._table, self._gain = self.table(), np.ones_like(self._gain)

    def fade(self, keep: float | Array) -> None:
        """Multiply the weight of all rows (per class, if an array) by `keep`, in [0, 1]."""
        self._rescale()
        super().fade(keep)

    @atomic
    def merge(self, other: Contingency) -> None:
        """Add another table of the same features, bins and classes, each with its weights as of its last row.

        Raises
        ------
        ValueError
            If the number of features, bins or classes differs.
        """
        if other._table.shape != self._table.shape:
            theirs, mine = (
                f"{t.n_features} features, {t.n_bins} bins and {t.n_classes} classes" for t in (other, self)
            )
            raise ValueError(f"Cannot merge counts of {theirs} into counts of {mine}.")
        self._rescale()
        self._table = self._table + other.table()

    def table(self) -> Table:
        """Return the (faded) counts, shape (n_features, n_bins, n_classes)."""
        return self._table / self._gain


@njit()
def _margins(table: Array, j: int, r: Array, k: Array) -> float:
    """Fill in the sums over classes and over bins; return the sum of all."""
    r[:], k[:], n = 0.0, 0.0, 0.0
    for b in range(table.shape[1]):
        for c in range(table.shape[2]):
            r[b] += table[j, b, c]
            k[c] += table[j, b, c]
        n += r[b]
    return n


@njit()
def _freedom(r: Array, k: Array) -> int:
    """Return (bins with counts - 1) (classes with counts - 1)."""
    bins, classes = 0, 0
    for weight in r:
        bins += weight > 0.0
    for weight in k:
        classes += weight > 0.0
    return max(bins - 1, 0) * max(classes - 1, 0)


@njit()
def _mutual_information(table: Array, information: Array) -> None:
    r, k = np.empty(table.shape[1]), np.empty(table.shape[2])
    for j in range(table.shape[0]):
        n, total = _margins(table, j, r, k), 0.0
        if _freedom(r, k) == 0:
            information[j] = 0.0
            continue
        for b in range(table.shape[1]):
            for c in range(table.shape[2]):
                t = table[j, b, c]
                if t > 0.0:
                    total += t * np.log(t * n / (r[b] * k[c]))  # (1)
        information[j] = max(total / n, 0.0) if n > 0.0 else 0.0


@njit()
def _chi_square(table: Array, statistic: Array, freedom: Array) -> None:
    r, k = np.empty(table.shape[1]), np.empty(table.shape[2])
    for j in range(table.shape[0]):
        n, total = _margins(table, j, r, k), 0.0
        for b in range(table.shape[1]):
            for c in range(table.shape[2]):
                expected = r[b] * k[c] / n if n > 0.0 else 0.0
                if expected > 0.0:
                    total += (table[j, b, c] - expected) ** 2 / expected  # (2)
        freedom[j] = _freedom(r, k)
        statistic[j] = total if freedom[j] > 0 else 0.0  # otherwise rounding error


@njit()
def _gini_decrease(table: Array, decrease: Array) -> None:
    r, k, below = np.empty(table.shape[1]), np.empty(table.shape[2]), np.empty(table.shape[2])
    for j in range(table.shape[0]):
        n, a, best = _margins(table, j, r, k), 0.0, 0.0
        below[:] = 0.0
        for b in range(table.shape[1] - 1):
            a += r[b]
            gain = 0.0
            for c in range(table.shape[2]):
                below[c] += table[j, b, c]
                # A^2 / a + B^2 / b - k^2 / n, without cancellation
                gain += (below[c] * n - k[c] * a) ** 2
            if a > 0.0 and n > a:
                best = max(best, gain / (a * (n - a) * n))  # (3)
        decrease[j] = best / n if n > 0.0 else 0.0


def mutual_information(table: Table) -> Floats:
    """Return equation (1) of each feature, in nats: between 0 and log(n_classes).

    Parameters
    ----------
    table : ndarray of shape (n_features, n_bins, n_classes), float64
        Counts, nonnegative.

    Returns
    -------
    ndarray of shape (n_features,), float64
        0 without counts, or with counts in a single bin or class.

    Examples
    --------
    >>> import numpy as np
    >>> mutual_information(np.array([[[50.0, 0.0], [0.0, 50.0]], [[25.0, 25.0], [25.0, 25.0]]]))
    array([0.69314718, 0.        ])
    """
    information = np.empty(len(table))
    _mutual_information(table, information)
    return information


def chi_square(table: Table) -> tuple[Floats, Ints]:
    """Return equation (2) of each feature, and its degrees of freedom.

    Parameters
    ----------
    table : ndarray of shape (n_features, n_bins, n_classes), float64
        Counts, nonnegative.

    Returns
    -------
    statistic : ndarray of shape (n_features,), float64
        0 without counts, or with counts in a single bin or class.
    freedom : ndarray of shape (n_features,), int64
        (bins with counts - 1) (classes with counts - 1).

    Examples
    --------
    >>> import numpy as np
    >>> chi_square(np.array([[[50.0, 0.0], [0.0, 50.0]], [[25.0, 25.0], [25.0, 25.0]]]))
    (array([100.,   0.]), array([1, 1]))
    """
    values, freedom = np.empty(len(table)), np.empty(len(table), np.int64)
    _chi_square(table, values, freedom)
    return values, freedom


def independence_statistic(table: Table, log: bool) -> tuple[Floats, Ints]:
    """Return the statistic of the chi-square test or the G-test, and its degrees of freedom, for each feature.

    If an expected count is below five, the smaller of the two statistics is returned: a single row of a rare class
    inflates chi-square, and G is inflated if all expected counts are small.

    Parameters
    ----------
    table : ndarray of shape (n_features, n_bins, n_classes), float64
        Counts, nonnegative.
    log : bool
        Whether to return the statistic of the G-test.

    Examples
    --------
    A feature that occurs in one of 3000 rows, which is one of the 30 rows of class 1:

    >>> import numpy as np
    >>> once = np.array([[[2970.0, 29.0], [0.0, 1.0]]])
    >>> chi_square(once)[0].round(1), independence_statistic(once, log=False)[0].round(1)
    (array([99.]), array([9.2]))
    """
    chi, freedom = chi_square(table)
    g = 2.0 * table.sum(axis=(1, 2)) * mutual_information(table)
    bins, classes = table.sum(axis=2), table.sum(axis=1)
    least = np.where(bins > 0.0, bins, np.inf).min(axis=1) * np.where(classes > 0.0, classes, np.inf).min(
        axis=1
    )
    few = least < _EXPECTED * classes.sum(axis=1)
    return np.where(few, np.minimum(chi, g), g if log else chi), freedom


def chi_square_pvalue(statistic: Array, freedom: Array) -> Floats:
    """Return the probability of a larger statistic if the feature and the class are independent (large counts).

    Parameters
    ----------
    statistic, freedom : ndarray of shape (n_features,)
        As :func:`chi_square` returns them.

    Returns
    -------
    ndarray of shape (n_features,), float64
        1 if the degrees of freedom are 0.

    Examples
    --------
    >>> import numpy as np
    >>> chi_square_pvalue(np.array([3.841, 0.0]), np.array([1, 0])).round(3)
    array([0.05, 1.  ])
    """
    tail = scipy.special.chdtrc(np.maximum(freedom, 1), statistic)
    return np.where(freedom > 0, tail, 1.0)


def gini_decrease(table: Table) -> Floats:
    """Return equation (3) of each feature: the largest decrease of Gini impurity by a split at an edge, in [0, 1).

    Parameters
    ----------
    table : ndarray of shape (n_features, n_bins, n_classes), float64
        Counts, not negative; the bins are in order.

    Returns
    -------
    ndarray of shape (n_features,), float64
        0 without counts, or with counts in a single bin or class.

    Examples
    --------
    >>> import numpy as np
    >>> gini_decrease(np.array([[[50.0, 0.0], [0.0, 50.0]], [[25.0, 25.0], [25.0, 25.0]]]))
    array([0.5, 0. ])
    """
    decrease = np.empty(len(table))
    _gini_decrease(table, decrease)
    return decrease
