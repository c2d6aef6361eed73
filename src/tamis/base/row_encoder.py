"""Online imputation and target encoding, for selectors that require complete numeric rows.

* A missing number is replaced by the mean of its feature over the last 1000 to 2000 earlier rows: sums and counts are
  halved after every 1000 rows. Before any row, it is replaced by the next value in the batch, or 0. In sparse rows it
  becomes 0, like values that are not stored.
* A category is replaced by its mean target in the earlier rows, shrunk towards the mean m of all rows with a prior
  weight of ten rows (Micci-Barreca 2001)::

      code = (sum + 10 m) / (n + 10)                                                                    (1)

  A row does not contribute to its own code (Prokhorenkova et al. 2018), so a column of identifiers remains noise. For
  several classes, the target of class c is the fractional part of 0.618 c: for two classes, (1) is the proportion of
  the second one, up to a factor; for more, a projection of all proportions in which distinct categories rarely
  coincide. Missing values form a separate category. After 10,000 categories of a feature, new ones share a code.
* Categories that are relevant only in combination all have about the same mean target, so (1) cannot tell them apart.
  For methods that count values, a category is encoded by k / K instead, k the index of the category and K = `n_exact`.
  After the first K, later categories have larger codes, in the order of (1). A feature with more than K categories
  in the first 64 rows is encoded by (1) from then on.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from tamis._kernels import njit
from tamis._shapes import Shapes
from tamis._validation import Array, Floats, Ints, Rows, reject_nonfinite
from tamis.base.categories import MAX_CATEGORIES, CategoryCodes

_HALVED_AFTER = 1000  # rows
PRIOR = 10.0  # rows
_GOLDEN = 0.6180339887498949
_FIRST = 64  # rows in which the categories of a feature are counted to choose its encoding


@njit(strict=True)
def _sum_rows(X: Array, n: int, every: int, before: Array) -> tuple[Array, bool]:
    """Return the sums and counts of the features with these rows, and whether all values are finite."""
    total, totals = 0.0, before.copy()
    for i in range(len(X)):
        for j in range(X.shape[1]):
            totals[0, j] += X[i, j]
            totals[1, j] += 1.0
        n += 1
        if n % every == 0:
            totals *= 0.5
    for j in range(X.shape[1]):
        total += totals[0, j]
    return totals, bool(total - total == 0.0)


@njit(strict=True)
def _next_value(column: Array) -> float:
    """Return the first non-missing value; 0 if all are missing."""
    for x in column:
        if x == x:
            return float(x)
    return 0.0


@njit(strict=True)
def _fill(X: Array, counted: Array, n: int, every: int, totals: Array) -> None:
    """Replace NaN by the mean of the rows before, and add the other values to the sums."""
    for i in range(len(X)):
        for j in range(X.shape[1]):
            x = X[i, j]
            if x != x:
                is_known = totals[1, j] > 0.0 and abs(totals[0, j]) < np.inf
                X[i, j] = totals[0, j] / totals[1, j] if is_known else _next_value(X[i:, j])
            else:
                totals[0, j] += counted[i] * x
                totals[1, j] += counted[i]
        n += 1
        if n % every == 0:
            totals *= 0.5


@njit(strict=True)
def _encode(
    slots: Array, target: Array, counted: Array, prior: float, table: Array, total: Array, codes: Array
) -> None:
    """Write the code (1) of each row, then update; `table` and `total` contain counts and means."""
    for i in range(len(slots)):
        if total[0] == 0.0:  # no data yet: a mean of 0 would be an outlier
            total[1] = target[i]
        row = table[slots[i]]
        codes[i] = (row[0] * row[1] + prior * total[1]) / (row[0] + prior)
        row[0] += counted[i]
        row[1] += (target[i] - row[1]) * counted[i] / row[0]
        total[0] += counted[i]
        total[1] += (target[i] - total[1]) * counted[i] / total[0]


class RowEncoder:
    """Encodes missing values and categories as numbers; immutable.

    Parameters
    ----------
    n_features : int
    columns : list of int
        The categorical features.
    n_exact : int, default=0
        Number of categories of a feature that are encoded by their index.

    Attributes
    ----------
    totals : ndarray of shape (2, n_features), float64
        Sums and counts of the numbers, halved after every 1000 rows.
    n_rows : int
    categories : dict of int to list
        The categories of each feature, in the order of occurrence.
    tables : dict of int to ndarray of shape (n_categories, 2), float64
        Count and mean target of each category.
    total : ndarray of shape (2,), float64
        Count and mean target of all rows.
    many : tuple of int
        The features with more than `n_exact` categories in the first rows.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [3.0, 0.0], [np.nan, 0.0], [9.0, 0.0]])
    >>> raw = {1: ["a", "b", "a", "a"]}
    >>> rows, encoder = RowEncoder(2, [1]).with_rows(X, raw, np.array([1.0, 0.0, 1.0, 1.0]))
    >>> rows[:, 0], rows[:, 1].round(2)
    (array([1., 3., 2., 9.]), array([1.  , 1.  , 0.55, 0.72]))
    >>> encoder.categories, encoder.tables[1]
    ({1: ['a', 'b']}, array([[3., 1.],
           [1., 0.]]))
    """

    _state_spec = Shapes("""
        totals (2, j) finite  totals[1:] float in [0, inf)  n_rows in [0, 2**62)
        tables[] (K, 2) float in [-inf, inf)  total (2) finite  n_exact in [0, 2**31)
        many[] in [0, j)
    """)

    _most = MAX_CATEGORIES

    many: tuple[int, ...] = ()

    def __init__(self, n_features: int, columns: list[int], n_exact: int = 0) -> None:
        self.n_exact = n_exact
        self.totals, self.n_rows = np.zeros((2, n_features)), 0
        self.categories: dict[int, list[Any]] = {j: [] for j in columns}
        self.tables: dict[int, Floats] = {j: np.zeros((0, 2)) for j in columns}
        self.total = np.zeros(2)

    def with_rows(
        self,
        X: Rows,
        raw: dict[int, list[Any]],
        target: Floats,
        sample_weight: Floats | None = None,
        names: list[str] | None = None,
    ) -> tuple[Rows, Self]:
        """Return rows without missing values and categories, and the updated encoder.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float32 or float64, or CSR matrix
            0 in place of categories.
        raw : dict of int to list
            The values of each categorical feature.
        target : ndarray of shape (n_rows,), float64
        sample_weight : ndarray of shape (n_rows,), float64, optional
            How often each row counts in the means, positive; a row is encoded once, whatever its weight.
        names : list of str, optional
            Names of the features, for messages.

        Raises
        ------
        DataError
            If a value is infinite.
        """
        if sp.issparse(X):
            return _filled_with_zeros(X, names), self
        later = object.__new__(type(self))  # `copy` takes as long as encoding the rows
        later.__dict__.update(self.__dict__)
        n, is_finite = len(X), False
        if sample_weight is None:
            later.totals, is_finite = _sum_rows(X, self.n_rows, _HALVED_AFTER, self.totals)
            if is_finite and not raw:
                later.n_rows += n
                return X, later
        counted = np.ones(n) if sample_weight is None else sample_weight
        if not is_finite:
            reject_nonfinite(X, names, allow_nan=True)
            X, later.totals = X.copy(), self.totals.copy()
            _fill(X, counted, self.n_rows, _HALVED_AFTER, later.totals)
            lost = ~np.isfinite(later.totals[0])  # values beyond 1e300 have no mean
            later.totals[:, lost] = 0.0
        later.n_rows += n
        if raw:
            numbers = later.n_rows - n + np.arange(n)
            X = later._encode_rows(np.array(X, np.float64), raw, target, counted, numbers)
        return X, later

    def _encode_rows(
        self, X: Array, raw: dict[int, list[Any]], target: Array, counted: Array, numbers: Array
    ) -> Array:
        total = self.total
        self.categories, self.tables = dict(self.categories), dict(self.tables)
        for j, values in raw.items():
            slots = self._slots(j, values)
            old = self.tables[j]
            table = np.zeros((max(len(old), int(slots.max(initial=-1)) + 1), 2))
            table[: len(old)] = old
            self.total, codes = total.copy(), np.empty(len(X))
            _encode(slots, target, counted, PRIOR, table, self.total, codes)
            self.tables[j] = table
            X[:, j] = self._with_indices(j, codes, slots, numbers) if self.n_exact else codes
        return X

    def _with_indices(self, j: int, codes: Array, slots: Array, numbers: Array) -> Array:
        """Return indices in place of the codes of a feature, up to the row that shows that it has many categories."""
        few = 0 if j in self.many else len(codes)
        if few and len(beyond := np.flatnonzero((slots >= self.n_exact) & (numbers < _FIRST))):
            few, self.many = int(beyond[0]), (*self.many, j)
        later = 1.5 + np.arctan(codes) / np.pi  # the same order, in (1, 2)
        indices = np.where(slots < self.n_exact, slots / self.n_exact, later)
        return np.where(np.arange(len(codes)) < few, indices, codes)

    def _slots(self, j: int, values: list[Any]) -> Ints:
        """Return the index of each category; new ones are appended."""
        codes = CategoryCodes(self.categories[j], self._most)
        slots = codes.encode(values)
        self.categories[j] = codes.values
        return slots


def class_targets(codes: Ints) -> Floats:
    """Return a distinct number for each class code, the first 0."""
    return np.asarray(codes, np.float64) * _GOLDEN % 1.0


def _filled_with_zeros(X: Rows, names: list[str] | None) -> Rows:
    if np.isfinite(X.data).all():
        return X
    reject_nonfinite(X, names, allow_nan=True)
    X = X.copy()
    X.data[np.isnan(X.data)] = 0.0
    return X
