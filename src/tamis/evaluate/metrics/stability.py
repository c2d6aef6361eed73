"""Stability of feature selection: how much the selected sets agree (Nogueira, Sechidis, Brown 2018, JMLR 18).

For r sets among J features, p_j the proportion of sets that contain feature j, k_i the size of set i, kbar their mean:

    Phi   = 1 - (1/J) sum_j r/(r-1) p_j (1 - p_j) / ((kbar/J) (1 - kbar/J))                                    (1)
    phi_i = [(1/J) sum_{j in set i} p_j - k_i kbar/J^2 + (Phi/2) (2 kbar k_i/J^2 - k_i/J - kbar/J + 1)]
            / ((kbar/J) (1 - kbar/J))                                                                          (2)
    Var   = (4/r^2) sum_i (phi_i - mean phi)^2                                                                 (3)

With integer counts c_j = r p_j, T = sum_j c_j and S = sum_j c_j^2, (1) is 1 - r J (r T - S) / ((r-1) T (r J - T)):
a set that enters or leaves the window changes T and S by the counts of its members, so the cost does not depend on J.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, Rows, as_numbers, check_choice, check_number, reject_masked
from tamis.base import RowSelector, html_repr
from tamis.streams.named_streams import as_stream


@njit(strict=True)
def _slide(selected: Any, counts: Any, ring: Any, sizes: Any, totals: Any, slot: int) -> bool:
    """Replace the set in `slot`; return False, with nothing changed, if the new one is not strictly increasing."""
    last = -1
    for j in selected:
        if j <= last or j >= counts.shape[0]:
            return False
        last = j
    total, squares = totals[0], totals[1]
    for i in range(sizes[slot]):
        j = ring[slot, i]
        squares += 1 - 2 * counts[j]
        counts[j] -= 1
    total += selected.shape[0] - sizes[slot]
    for i in range(selected.shape[0]):
        j = selected[i]
        squares += 1 + 2 * counts[j]
        counts[j] += 1
        ring[slot, i] = j
    sizes[slot] = selected.shape[0]
    totals[0], totals[1] = total, squares
    return True


@njit(strict=True)
def _variance(counts: Any, ring: Any, sizes: Any, n_sets: int, mean_size: float, value: float) -> float:
    n_features = counts.shape[0]
    share = mean_size / n_features
    mean, squares = 0.0, 0.0
    for i in range(n_sets):
        overlap = 0
        for at in range(sizes[i]):
            overlap += counts[ring[i, at]]
        size = sizes[i] / n_features
        # (2)
        phi = overlap / n_sets / n_features - size * share + value / 2 * (2 * share * size - size - share + 1)
        phi /= share * (1 - share)
        gap = phi - mean
        mean += gap / (i + 1)
        squares += gap * (phi - mean)
    return 4.0 * squares / n_sets**2  # (3)


class SlidingStability(ThreadSafe):
    """Nogueira's stability of the last sets of selected features.

    Adding a set costs O(its size + the size of the set that leaves). Reading the variance costs O(window x size).
    Memory: O(n_features + window x size).

    Parameters
    ----------
    n_features : int
        J, at least 1.
    window : int, default=10
        Number of most recent sets that are compared, at least 2.

    Attributes
    ----------
    n_sets : int
        Number of sets currently in the window.

    Examples
    --------
    Three equal sets have stability 1; a different one lowers it.

    >>> stability = SlidingStability(n_features=6, window=3)
    >>> for _ in range(3):
    ...     stability.add([0, 4])
    >>> stability.value
    1.0
    >>> stability.add([1, 2])
    >>> round(stability.value, 3)
    0.0
    """

    _shapes = """
        n_features (=p)  window (=w)  _counts (p) in [0, w]  _room (=r)  _ring (w, r) int32 in [0, p)
        _sizes (w) in [0, r]
        _totals (2) in [0, 2**62)  _added in [0, 2**62)  n_sets in [min(_added, w), min(_added, w)]
    """

    def __init__(self, n_features: int, window: int = 10) -> None:
        check_number("n_features", n_features, low=1, integer=True)
        check_number("window", window, low=2, integer=True)
        self.n_features, self.window, self.n_sets = int(n_features), int(window), 0
        self._added = 0
        self._counts = np.zeros(self.n_features, np.int64)  # c_j
        self._room = 1  # largest size of a set that `_ring` can store
        self._ring = np.zeros((self.window, 1), np.int32)  # the sets in the window
        self._sizes = np.zeros(self.window, np.int64)
        self._totals = np.zeros(2, np.int64)  # T, S
        self._value = math.nan

    def add(self, selected: Any) -> None:
        """Add a set; if the window is full, the oldest set leaves.

        Parameters
        ----------
        selected : array-like of int, shape (n_selected,)
            Distinct column indices, in any order; may be empty.

        Raises
        ------
        ValueError
            If an index is out of range or occurs twice. The window is then unchanged.
        """
        reject_masked("selected", selected)
        indices = np.asarray(selected)
        if indices.ndim != 1 or (indices.dtype.kind not in "iu" and indices.shape[0]):
            raise ValueError(f"selected must be a list of column indices, got {selected!r}.")
        indices = indices.astype(np.int64, copy=False)
        if indices.shape[0] > self._room:
            room = min(2 * indices.shape[0], self.n_features + 1)
            ring = np.zeros((self.window, room), np.int32)
            ring[:, : self._room] = self._ring[:, :room]
            self._ring, self._room = ring, room
        if not self._slide(indices):
            distinct = np.unique(indices)
            if len(distinct) < len(indices) or not self._slide(distinct):
                raise ValueError(
                    f"selected must contain distinct indices from 0 to {self.n_features - 1}, got {selected!r}."
                )
        self._added += 1
        self.n_sets = min(self._added, self.window)
        self._value = self._phi()

    def widen(self, n_features: int) -> None:
        """Append features, which were in no set so far."""
        self._counts = np.pad(self._counts, (0, n_features - self.n_features))
        self.n_features = n_features

    def _slide(self, indices: Ints) -> bool:
        slot = self._added % self.window
        return bool(_slide(indices, self._counts, self._ring, self._sizes, self._totals, slot))

    def _phi(self) -> float:
        r, (total, squares) = self.n_sets, self._totals.tolist()
        left_out = r * self.n_features - total
        if r < 2:
            return math.nan
        if total == 0 or left_out == 0:
            return 1.0
        # Python's integers are exact; only their quotient is rounded.
        return 1.0 - (r * self.n_features * (r * total - squares)) / ((r - 1) * total * left_out)  # (1)

    @property
    def value(self) -> float:
        """Stability in [-1 / (n_sets - 1), 1]; 1 if every set is empty or full, NaN for fewer than two sets."""
        return self._value

    @property
    def variance(self) -> float:
        """Asymptotic variance of `value` for independent sets; NaN for fewer than two sets."""
        return self._variance()

    def _variance(self) -> float:
        if self.n_sets < 2:
            return math.nan
        total = int(self._totals[0])
        if total in (0, self.n_sets * self.n_features):
            return 0.0
        mean_size = total / self.n_sets
        return float(_variance(self._counts, self._ring, self._sizes, self.n_sets, mean_size, self._value))


def nogueira(Z: Any) -> float:
    """Return the stability of sets of features.

    Parameters
    ----------
    Z : array-like of bool or 0/1, shape (n_sets, n_features)
        One row per set: its features.

    Returns
    -------
    float
        1 if all sets are equal, 0 in expectation for random sets of one size, at least -1 / (n_sets - 1). NaN for
        fewer than two sets; 1 if every set is empty or every set is full.

    Raises
    ------
    ValueError
        If `Z` is not a table of zeros and ones.

    References
    ----------
    Nogueira, Sechidis, Brown (2018). On the Stability of Feature Selection Algorithms. JMLR 18(174).

    Examples
    --------
    >>> nogueira([[1, 1, 0, 0], [1, 1, 0, 0]])
    1.0
    >>> nogueira([[1, 1, 0, 0], [0, 0, 1, 1]])
    -1.0
    """
    return _of_table(Z).value


def nogueira_variance(Z: Any) -> float:
    """Return the asymptotic variance of :func:`nogueira` for independent sets.

    Parameters
    ----------
    Z : array-like of bool or 0/1, shape (n_sets, n_features)

    Returns
    -------
    float
        NaN for fewer than two sets.

    Examples
    --------
    >>> round(nogueira_variance([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 1]]), 4)
    0.0329
    """
    return _of_table(Z).variance


def _of_table(Z: Any) -> SlidingStability:
    table = as_numbers("Z", Z)
    if table.ndim != 2 or table.shape[1] == 0 or not np.isin(table, (0, 1)).all():
        raise ValueError(f"Z must be a table (n_sets, n_features) of zeros and ones, got {Z!r}.")
    stability = SlidingStability(table.shape[1], max(2, table.shape[0]))
    for row in table:
        stability.add(np.flatnonzero(row))
    return stability


# -- Preq-CV stability: agreement of the features selected by copies of a selector on different rows of one stream

# Row t goes to (k copies, numbered from 0)
#
#     cross      all copies but t mod k: two of them share (k - 2)/k of the rows, 80 % for k = 10
#     split      copy t mod k alone: no row is shared
#     bootstrap  each copy a Poisson(1) number of times: two share (1 - 1/e)^2 = 40 % of the rows
#
# and after each batch the mean similarity over all pairs of selected sets is taken. With r = abs(A & B), sizes k_A, k_B
# among d features, v_A = sqrt(k_A/d (1 - k_A/d)):
#
#     pearson    (r - k_A k_B / d) / (d v_A v_B)                                                   (1)
#     jaccard    r / abs(A | B), also known as Tanimoto                                            (2)
#
# (1) is the correlation of the two masks: 1 for equal sets, 0 in expectation for random ones. Where it is not defined
# (a set is empty or full) it is 1 for equal sets and 0 otherwise. (2) is not corrected for chance: it increases with
# the size of random sets. Published code takes absolute values in (1), which rates random sets far above 0; here it
# is as printed, so figures of that code are not comparable.


def pearson_similarity(Z: Any) -> float:
    """Return the mean correlation over all pairs of sets (1).

    Parameters
    ----------
    Z : array-like of bool or 0/1, shape (n_sets, n_features)
        One row per set: its features.

    Returns
    -------
    float
        In [-1, 1]; NaN for fewer than two sets. For sets of one size it is :func:`tamis.evaluate.nogueira`.

    Raises
    ------
    ValueError
        If `Z` is not a table of zeros and ones.

    Examples
    --------
    >>> pearson_similarity([[1, 1, 0, 0], [1, 1, 0, 0]]), pearson_similarity([[1, 1, 0, 0], [0, 0, 1, 1]])
    (1.0, -1.0)
    """
    sets = _as_sets(Z)
    d, sizes, shared = sets.shape[1], sets.sum(axis=1), sets @ sets.T
    spread = np.sqrt(sizes * (d - sizes))  # d v
    with np.errstate(divide="ignore", invalid="ignore"):
        similarity = (shared * d - np.outer(sizes, sizes)) / np.outer(spread, spread)
    equal = (shared == sizes) & (shared == sizes[:, None])
    return _mean_of_pairs(np.where(np.outer(spread, spread) > 0, similarity, equal))


def jaccard_similarity(Z: Any) -> float:
    """Return the mean share of common features over all pairs of sets (2).

    Parameters
    ----------
    Z : array-like of bool or 0/1, shape (n_sets, n_features)

    Returns
    -------
    float
        In [0, 1]; NaN for fewer than two sets, 1 for two empty ones.

    Raises
    ------
    ValueError
        If `Z` is not a table of zeros and ones.

    Examples
    --------
    >>> jaccard_similarity([[1, 1, 1, 0], [0, 1, 1, 1]])
    0.5
    """
    sets = _as_sets(Z)
    sizes, shared = sets.sum(axis=1), sets @ sets.T
    union = sizes + sizes[:, None] - shared
    return _mean_of_pairs(np.where(union > 0, shared / np.maximum(union, 1), 1.0))


def _as_sets(Z: Any) -> Floats:
    table = as_numbers("Z", Z)
    if table.ndim != 2 or table.shape[1] == 0 or not np.isin(table, (0, 1)).all():
        raise ValueError(f"Z must be a table (n_sets, n_features) of zeros and ones, got {Z!r}.")
    return table


def _mean_of_pairs(similarity: Floats) -> float:
    pairs = similarity[np.triu_indices(len(similarity), 1)]
    return float(pairs.mean()) if len(pairs) else math.nan


@dataclass(frozen=True)
class PreqCVStability:
    """The result of :func:`preq_cv_stability`.

    Attributes
    ----------
    n_seen : ndarray of shape (n_steps,), int
        Rows seen after each batch.
    pearson, jaccard : ndarray of shape (n_steps,)
        Mean similarity over the pairs of copies after each batch; NaN until each copy has selected.
    folds : str
    """

    n_seen: Ints
    pearson: Floats
    jaccard: Floats
    folds: str

    @property
    def mean_pearson(self) -> float:
        """Mean of `pearson` over the stream; NaN if it was never defined."""
        return _mean(self.pearson)

    @property
    def mean_jaccard(self) -> float:
        """Mean of `jaccard` over the stream; NaN if it was never defined."""
        return _mean(self.jaccard)

    def __str__(self) -> str:
        return (
            f"Preq-CV stability ({self.folds}): Pearson {self.mean_pearson:.3f}, Jaccard {self.mean_jaccard:.3f}"
            f" over {len(self.n_seen)} batches"
        )

    def __repr__(self) -> str:
        return f"PreqCVStability({self})"

    def _repr_html_(self) -> str:
        return html_repr("PreqCVStability", [str(self)])


def preq_cv_stability(
    stream: Any,
    selector: Any,
    *,
    folds: str = "cross",
    n_folds: int = 10,
    batch_size: int = 100,
    max_rows: int | None = None,
    random_state: int = 0,
) -> PreqCVStability:
    """Run copies of a selector over parts of one stream, and compare their selections after each batch.

    Parameters
    ----------
    stream : Stream, pair (X, y) or iterable of pairs
    selector : estimator with `partial_fit` and `get_support`
        Cloned; the selector itself is not fitted.
    folds : {"cross", "split", "bootstrap"}, default="cross"
        How rows are assigned to the copies, see above.
    n_folds : int, default=10
        Number of copies, at least 2.
    batch_size : int, default=100
    max_rows : int, optional
        Stop after this many rows.
    random_state : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    PreqCVStability

    Raises
    ------
    ValueError
        If an option is out of range.
    DataError, StreamError
        If a batch is invalid or the stream cannot be read.

    References
    ----------
    Bifet et al. (2015). Efficient Online Evaluation of Big Data Stream Classifiers. KDD. Nogueira, Brown (2016).
    Measuring the Stability of Feature Selection. ECML PKDD.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import FIRES
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 20))
    >>> clear = preq_cv_stability((X, X[:, 3] > X[:, 8]), FIRES(2))
    >>> noise = preq_cv_stability((X, rng.integers(0, 2, 2000)), FIRES(2), folds="split")
    >>> print(clear)
    Preq-CV stability (cross): Pearson 1.000, Jaccard 1.000 over 20 batches
    >>> noise.mean_pearson < 0.2
    True
    """
    source = as_stream(stream)
    check_choice("folds", folds, ("cross", "split", "bootstrap"))
    check_number("n_folds", n_folds, low=2, integer=True)
    if max_rows is not None:
        check_number("max_rows", max_rows, low=1, integer=True)
    copies, fitted = [clone(selector) for _ in range(n_folds)], np.zeros(n_folds, dtype=bool)
    rng, seen, items = np.random.default_rng(random_state), 0, []
    for X, y in source.batches(batch_size):
        rows = slice(0, None if max_rows is None else max_rows - seen)
        X, y = X[rows], y[rows]
        times = _times(folds, n_folds, seen, len(y), rng)
        for i, copy in enumerate(copies):
            mine = np.repeat(np.arange(len(y)), times[:, i])
            if len(mine):
                _train(copy, source.classes, X[mine], y[mine], first=not fitted[i])
                fitted[i] = True
        seen += len(y)
        items.append((seen, *(_similarities(copies) if fitted.all() else (math.nan, math.nan))))
        if seen == max_rows:
            break
    columns = np.array(items, dtype=np.float64).reshape(-1, 3).T
    return PreqCVStability(columns[0].astype(np.int64), columns[1], columns[2], folds)


def _times(folds: str, n_folds: int, start: int, n_rows: int, rng: np.random.Generator) -> Ints:
    """Return the weight of each row for each copy, shape (n_rows, n_folds); independent of the batch size."""
    if folds == "bootstrap":
        return np.asarray(rng.poisson(1.0, size=(n_rows, n_folds)), dtype=np.int64)
    own = (start + np.arange(n_rows))[:, None] % n_folds == np.arange(n_folds)
    return np.asarray(own if folds == "split" else ~own, dtype=np.int64)


def _train(copy: Any, classes: Array | None, X: Rows, y: Array, first: bool) -> None:
    if first and isinstance(copy, RowSelector) and not copy._is_regression():
        copy.partial_fit(X, y, classes=classes)
    else:
        copy.partial_fit(X, y)


def _similarities(copies: list[Any]) -> tuple[float, float]:
    if any(getattr(copy, "warming_up_", False) for copy in copies):
        return math.nan, math.nan
    masks = np.array([copy.get_support() for copy in copies])
    return pearson_similarity(masks), jaccard_similarity(masks)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
