"""Magnitude of drift per feature: distances between the distributions of two adjacent windows (Webb et al. 2018).

With windows t and u of w rows each, the older and the newer, values (bins) x of a feature and classes y::

    covariate            d(P_t(x), P_u(x))
    class_conditional    sum_y (P_t(y) + P_u(y)) / 2  d(P_t(x | y), P_u(x | y))                          (1)
    posterior            sum_x (P_t(x) + P_u(x)) / 2  d(P_t(y | x), P_u(y | x))                          (2)
    joint                d(P_t(x, y), P_u(x, y))

The authors use the total variation distance, half the sum of |p - q|. The squared Hellinger distance is half the sum of
(sqrt p - sqrt q)^2; it is averaged in (1) and (2), and the square root is taken of the mean. Where a class or value
occurs in one window only, d is 1.

Two windows of one distribution differ by chance. With m values in either window, pooled shares s, and n_t and n_u rows,
the means of d without drift are about::

    Hellinger, squared   (m - 1) / 8 (1 / n_t + 1 / n_u)                                                 (3)
    total variation      1/2 sum_x sqrt(2 / pi  s_x (1 - s_x) (1 / n_t + 1 / n_u))                       (4)

With `corrected` they are averaged as in (1) and (2), and (3) is subtracted from the square of the distance, or the
square of (4); negative values become 0. Subtracting (4) itself would understate large drifts.

Both windows are halves of one window of 2 w rows in :class:`~tamis.summaries.entropy.WindowCounts`, so they share bins.

Webb, Lee, Goethals, Petitjean: Analyzing concept drift and shift from sample data, DMKD 32, 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis._atomic import atomically
from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Array, Floats, check_choice, check_number
from tamis._validation.labels import encode_labels
from tamis.errors import DataError
from tamis.streams import as_stream
from tamis.summaries.entropy import WindowCounts

MAGNITUDES = ("covariate", "class_conditional", "posterior", "joint")
_DISTANCES = ("hellinger", "total-variation")


@njit(allocates=False)
def _add_distance(p: Array, q: Array, hellinger: bool, weight: float, sums: Array) -> None:
    """Add a distance of two rows of counts and its mean without drift, (3) or (4), times a weight, to two sums."""
    n_t, n_u = p.sum(), q.sum()
    if n_t == 0.0 or n_u == 0.0:
        sums[0] += weight if n_t + n_u > 0.0 else 0.0
        return
    d, bias, each = 0.0, 0.0, 1.0 / n_t + 1.0 / n_u
    for x in range(len(p)):
        a, b = p[x] / n_t, q[x] / n_u
        if a == 0.0 and b == 0.0:
            continue
        if hellinger:
            d += 0.5 * (np.sqrt(a) - np.sqrt(b)) ** 2
            bias += 0.125 * each  # (3) with m instead of m - 1
        else:
            pooled = (p[x] + q[x]) / (n_t + n_u)
            d += 0.5 * abs(a - b)
            bias += 0.5 * np.sqrt(2.0 / np.pi * pooled * (1.0 - pooled) * each)  # (4)
    sums[0] += weight * d
    sums[1] += weight * (bias - (0.125 * each if hellinger else 0.0))


@njit(allocates=False)
def _measure(
    bins: Array, codes: Array, half: int, hellinger: bool, table: Array, columns: Array, magnitudes: Array
) -> None:
    """Write the four distances of each feature and their means without drift.

    Parameters
    ----------
    bins : ndarray of shape (n_rows, n_features), int32
        Values of the rows, oldest first.
    codes : ndarray of shape (n_rows,), int64
    half : int
        Number of rows of the older window.
    hellinger : bool
        Whether to use the squared Hellinger distance rather than total variation.
    table : ndarray of shape (2, n_values * n_classes), float64
        Working space: the counts of each window, value by value.
    columns : ndarray of shape (2, n_values), float64
        Working space: the counts of each window, over all classes.
    magnitudes : ndarray of shape (2, 4, n_features), float64
        Overwritten.
    """
    n = len(codes)
    n_values = columns.shape[1]
    n_classes = table.shape[1] // n_values
    magnitudes[:] = 0.0
    for j in range(bins.shape[1]):
        table[:] = 0.0
        columns[:] = 0.0
        for i in range(n):
            k = 0 if i < half else 1
            table[k, bins[i, j] * n_classes + codes[i]] += 1.0
            columns[k, bins[i, j]] += 1.0
        _add_distance(columns[0], columns[1], hellinger, 1.0, magnitudes[:, 0, j])
        for y in range(n_classes):  # (1)
            p, q = table[0, y::n_classes], table[1, y::n_classes]
            weight = 0.5 * (p.sum() / half + q.sum() / (n - half))
            _add_distance(p, q, hellinger, weight, magnitudes[:, 1, j])
        for x in range(n_values):  # (2)
            of_x = slice(x * n_classes, (x + 1) * n_classes)
            weight = 0.5 * (columns[0, x] / half + columns[1, x] / (n - half))
            _add_distance(table[0, of_x], table[1, of_x], hellinger, weight, magnitudes[:, 2, j])
        _add_distance(table[0], table[1], hellinger, 1.0, magnitudes[:, 3, j])


class DriftMagnitude(ThreadSafe):
    """Magnitude of drift of each feature, jointly with and conditional on the class, between two adjacent windows.

    Parameters
    ----------
    window : int, default=1000
        w: number of rows in each of the two windows, at least 20.
    n_bins : int, default=10
        Largest number of bins of a numeric feature, of about equal weight in both windows together, at least 2.
    distance : {"hellinger", "total-variation"}, default="hellinger"
    categorical : sequence of int, default=()
        Categorical columns.
    corrected : bool, default=True
        Whether to subtract the mean distance of two windows without drift.

    Attributes
    ----------
    classes_ : ndarray
        The labels seen so far.
    is_ready : bool
        Whether both windows are full.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Notes
    -----
    Memory: the 2 w rows, 12 bytes per number, and counts of at most w bins, for any length of the stream. NaN is a
    separate value.

    Examples
    --------
    Feature 0 determines the class, then feature 1 does. The inputs do not drift:

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 3))
    >>> y = np.where(np.arange(4000) < 2000, X[:, 0] > 0, X[:, 1] > 0)
    >>> drift = DriftMagnitude(window=1000).update(X[:2000], y[:2000])
    >>> drift.measures()["posterior"].round(1)
    array([0., 0., 0.])
    >>> drift.update(X[2000:3000], y[2000:3000]).measures()["posterior"].round(1)
    array([0.5, 0.5, 0. ])
    >>> drift.measures()["covariate"].max() < 0.1
    np.True_
    """

    _shapes = "_classes (k) labels  _counts? (its own)"

    def __init__(
        self,
        window: int = 1000,
        n_bins: int = 10,
        distance: str = "hellinger",
        categorical: Any = (),
        *,
        corrected: bool = True,
    ) -> None:
        check_number("window", window, low=20, integer=True)
        check_number("n_bins", n_bins, low=2, integer=True)
        check_choice("distance", distance, _DISTANCES)
        check_choice("corrected", corrected, (True, False))
        self.window, self.n_bins = int(window), int(n_bins)
        self.distance, self.corrected = distance, corrected
        self.categorical = [int(j) for j in categorical]
        self._classes: Array = np.zeros(0)
        self._counts: WindowCounts | None = None

    @property
    def classes_(self) -> Array:
        """The labels seen so far."""
        return self._classes.copy()

    @property
    def is_ready(self) -> bool:
        """Whether both windows are full."""
        return self._counts is not None and self._counts.n_rows == 2 * self.window

    def update(self, X: Floats, y: Array) -> DriftMagnitude:
        """Add rows, in order.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Finite numbers, or NaN where a value is missing.
        y : array-like of shape (n_rows,)
            Labels.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If X or y is invalid, or the number of columns changes; the object is unchanged.
        """
        X, y = np.ascontiguousarray(X, dtype=np.float64), np.asarray(y)
        if X.ndim != 2 or y.shape != X.shape[:1]:
            raise DataError(
                f"X must have one row for each label, got shapes {X.shape} and {y.shape}: pass a table and its labels."
            )
        codes, classes = encode_labels(y, self._classes)
        atomically(self, self._add, X, codes, classes, in_parts=True)
        return self

    def _add(self, X: Floats, codes: Array, classes: Array) -> None:
        counts = self._counts or WindowCounts(
            X.shape[1], 0, 2 * self.window, categorical=self.categorical, n_bins=self.n_bins
        )
        counts.grow(len(classes))
        counts.update(X, codes)
        self._counts, self._classes = counts, classes

    def measures(self) -> dict[str, Floats]:
        """Return the magnitudes of each feature by name; NaN until both windows are full.

        Returns
        -------
        dict of str to ndarray of shape (n_features,), float64
            "covariate", "class_conditional", "posterior" and "joint", each in [0, 1].
        """
        counts = self._counts
        if counts is None or not self.is_ready:
            n_features = 0 if counts is None else counts.n_features
            return {name: np.full(n_features, np.nan) for name in MAGNITUDES}
        bins, codes = counts.binned()
        n_values, result = int(bins.max()) + 1, np.empty((2, len(MAGNITUDES), counts.n_features))
        hellinger = self.distance == "hellinger"
        table, columns = np.empty((2, n_values * len(self._classes))), np.empty((2, n_values))
        _measure(bins, codes, self.window, hellinger, table, columns, result)
        squares, by_chance = result if hellinger else result**2
        magnitudes = np.sqrt(np.clip(squares - (by_chance if self.corrected else 0.0), 0.0, 1.0))
        return dict(zip(MAGNITUDES, magnitudes, strict=True))


def drift_over_time(
    source: Any, window: int = 1000, every: int | None = None, **parameters: Any
) -> dict[str, Any]:
    """Return the magnitude of drift of each feature along a stream.

    Parameters
    ----------
    source : Stream, (X, y), or iterable of batches
        As for :func:`~tamis.streams.as_stream`.
    window : int, default=1000
        Number of rows in each of the two windows that are compared.
    every : int, optional
        Number of rows between two comparisons, at least 1; `window` if omitted.
    **parameters
        Parameters of :class:`DriftMagnitude`. `categorical` defaults to the categorical columns of the stream.

    Returns
    -------
    dict
        "row", the first row of the newer window, shape (n_comparisons,); "features", the names, or x0, x1, ...; and
        each of "covariate", "class_conditional", "posterior" and "joint", shape (n_comparisons, n_features).

    Raises
    ------
    DataError
        If a row is invalid.
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> from tamis import load_stream
    >>> stream = load_stream("SEA", n_rows=20_000, n_drifts=1, width=1)
    >>> magnitudes = drift_over_time(stream, window=2000)
    >>> magnitudes["row"][magnitudes["posterior"].max(axis=1).argmax()]
    np.int64(10000)
    """
    every = window if every is None else every
    check_number("every", every, low=1, integer=True)
    stream = as_stream(source)
    parameters.setdefault("categorical", getattr(stream, "categorical", ()))
    drift = DriftMagnitude(window, **parameters)
    rows: list[int] = []
    series: dict[str, list[Floats]] = {name: [] for name in MAGNITUDES}
    n_seen = 0
    for X, y, *_ in stream.batches(every):
        drift.update(X, y)
        n_seen += len(y)
        if drift.is_ready:
            rows.append(n_seen - window)
            for name, magnitudes in drift.measures().items():
                series[name].append(magnitudes)
    n_features = 0 if drift._counts is None else drift._counts.n_features
    names = list(stream.feature_names or [f"x{j}" for j in range(n_features)])
    return {
        "row": np.array(rows, dtype=np.int64),
        "features": names,
        **{name: np.array(rows_of).reshape(-1, len(names)) for name, rows_of in series.items()},
    }
