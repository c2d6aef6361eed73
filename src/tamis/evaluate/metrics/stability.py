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
from typing import Any

import numpy as np

from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Ints, as_numbers, check_number, reject_masked


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
