"""Input drift: the distribution of each feature in recent rows compared with that in a reference window.

The reference is the first `reference` rows. Its quantiles, from a :class:`~tamis.summaries.quantiles.QuantileSummary`,
are the bin edges of a numeric feature; the bins of a categorical feature are its values. With the proportions r_b in
the reference and c_b in the (faded) recent rows, where missing values and new categories are separate bins:

    PSI = sum_b (c_b - r_b) ln(c_b / r_b)                                        population stability index
    JS  = sqrt(H((r + c) / 2) - (H(r) + H(c)) / 2), H in bits                    Jensen-Shannon distance, in [0, 1]
    KS  = max over the edges of |F_r - F_c|, without missing values              Kolmogorov-Smirnov distance, in [0, 1]

Half a row is added to each bin in PSI, which is infinite for an empty one.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tamis._atomic import atomically
from tamis._guard import ThreadSafe
from tamis._validation import Floats, Ints, Mask, as_rows, check_choice, check_number
from tamis.summaries.quantiles import QuantileSummary

__all__ = ["InputDrift"]


_MOST_CATEGORIES = 100  # categories of a column with separate bins; rarer ones are treated as new


class InputDrift(ThreadSafe):
    """Distances between recent rows and a reference window, for each feature.

    Parameters
    ----------
    reference : int, default=2000
        Number of rows in the reference window, the first of the stream; at least 20.
    n_bins : int, default=10
        Number of bins, of about equal weight in the reference; at least 2.
    half_life : float, default=500
        Number of rows after which a row weighs half as much in the current distribution.
    categorical : sequence of int, default=()
        Categorical columns; the 100 most frequent categories of each have separate bins.

    Notes
    -----
    Memory: that of a quantile summary until the reference is complete, then at most 102 counts per feature, twice.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> drift = InputDrift(reference=1000)
    >>> drift.update(rng.normal(size=(2000, 2)))
    >>> drift.update(rng.normal(size=(2000, 2)) + [0.0, 1.0])
    >>> drift.measures()["psi"].round(1)
    array([0. , 0.9])
    """

    _shapes = (
        "_n_seen in [0, inf)  _edges (j, e) float  _is_category (j) bool  _counts (2, j, e+3) float in [0, inf)"
        "  _n_bins (j) int64 in [1, e+1]  _summary? (its own)"
    )

    def __init__(
        self, reference: int = 2000, n_bins: int = 10, half_life: float = 500, categorical: Any = ()
    ) -> None:
        check_number("reference", reference, low=20, integer=True)
        check_number("n_bins", n_bins, low=2, high=_MOST_CATEGORIES, integer=True)
        check_number("half_life", half_life, low=1.0)
        self.reference, self.n_bins, self.half_life = int(reference), int(n_bins), float(half_life)
        self.categorical = [int(j) for j in categorical]
        self._n_seen = 0
        self._summary: QuantileSummary | None = None
        self._found: dict[int, dict[float, float]] = {}  # values of each categorical column and their counts
        self._missing: Floats = np.zeros(0)
        # Once the reference is complete:
        self._edges: Floats = np.empty((0, 0))
        self._is_category: Mask = np.empty(0, dtype=bool)
        self._n_bins: Ints = np.empty(0, dtype=np.int64)
        self._counts: Floats = np.empty((2, 0, 3))  # counts of the reference, and of the recent rows

    @property
    def is_ready(self) -> bool:
        """Whether the reference is complete and later rows have arrived."""
        return self._n_seen > self.reference

    def update(self, X: Floats) -> None:
        """Add rows of shape (n_rows, n_features), NaN for missing values."""
        X = X if type(X) is np.ndarray else as_rows(X)[0]
        first = max(0, self.reference - self._n_seen)
        if first:
            self._add_to_reference(np.ascontiguousarray(X[:first], dtype=np.float64))
        self._n_seen += len(X)
        if not len(self._edges) and self._n_seen >= self.reference:
            self._freeze()
        if len(X) > first:
            self._add_to_current(np.asarray(X[first:], dtype=np.float64))

    def _add_to_reference(self, X: Floats) -> None:
        if self._summary is None:
            self._missing = np.zeros(X.shape[1])
            self._summary = QuantileSummary(X.shape[1], 1, dtype=np.float64)
        self._summary.update(X, np.zeros(len(X), dtype=np.int64))
        self._missing += np.isnan(X).sum(axis=0)
        for j in self.categorical:
            counts = self._found.setdefault(j, {})
            values, times = np.unique(X[~np.isnan(X[:, j]), j], return_counts=True)
            for value, n in zip(values.tolist(), times.tolist(), strict=True):
                counts[value] = counts.get(value, 0.0) + n

    def _freeze(self) -> None:
        """Define the bins and count the reference in them."""
        assert self._summary is not None
        n_features = len(self._missing)
        cuts = self._summary.quantile(np.arange(1, self.n_bins) / self.n_bins)
        edges = []
        for j in range(n_features):
            if j in self._found:
                ranked = sorted(self._found[j].items(), key=lambda item: (-item[1], item[0]))
                edges.append(np.array(sorted(value for value, _ in ranked[:_MOST_CATEGORIES])))
            else:
                edges.append(np.unique(cuts[j][~np.isnan(cuts[j])]))
        width = max(1, *map(len, edges))
        all_edges = np.full((n_features, width), np.inf)
        for j, entry in enumerate(edges):
            all_edges[j, : len(entry)] = entry
        n_bins = np.array([max(1, len(entry) + (j not in self._found)) for j, entry in enumerate(edges)])
        both = np.zeros((2, n_features, width + 3))
        below = self._summary.weight_below(all_edges)[:, :, 0]
        total = self.reference - self._missing
        for j in range(n_features):
            counts = both[0, j]
            if j in self._found:
                counts[: len(edges[j])] = [self._found[j][value] for value in edges[j].tolist()]
                counts[-2] = total[j] - counts[: len(edges[j])].sum()
            else:
                counts[: len(edges[j]) + 1] = np.diff(np.r_[0.0, below[j, : len(edges[j])], total[j]])
        both[0, :, -1] = self._missing
        self._is_category = np.isin(np.arange(n_features), self.categorical)
        self._edges, self._n_bins, self._counts = all_edges, n_bins, np.maximum(both, 0.0)
        self._summary, self._found = None, {}

    def _add_to_current(self, X: Floats) -> None:
        keep = 0.5 ** (1.0 / self.half_life)
        weights = keep ** np.arange(len(X) - 1, -1, -1.0)
        self._counts[1] *= keep ** len(X)
        width = self._counts.shape[2]
        for j in range(X.shape[1]):
            x, edges = X[:, j], self._edges[j]
            bins = np.searchsorted(edges, x, side="left")
            if self._is_category[j]:
                is_known = edges[np.minimum(bins, len(edges) - 1)] == x
                bins = np.where(is_known, bins, width - 2)
            bins = np.where(np.isnan(x), width - 1, bins)
            self._counts[1, j] += np.bincount(bins, weights, minlength=width)

    def merge(self, other: InputDrift, when: str = "after") -> InputDrift:
        """Add the rows of another part of the stream; `other` is unchanged.

        Parameters
        ----------
        other : InputDrift
            Must have the same parameters and reference (a copy of this object made after the reference was complete),
            or both parts must still belong to the reference.
        when : {"after", "together"}, default="after"
            Whether the rows of `other` came after these rows, which fade accordingly, or at the same time.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If parameters, columns or references differ; both objects are unchanged.
        """
        check_choice("when", when, ("after", "together"))
        if other._n_seen == 0:
            return self
        if self._parameters() != other._parameters() or not self._has_reference_of(other):
            raise ValueError(
                "Cannot merge two InputDrift with other parameters, columns or references: copy one when its reference"
                " is complete, and let the copies continue."
            )
        atomically(self, self._merge, other, when, in_parts=True)
        return self

    def _parameters(self) -> tuple[Any, ...]:
        return self.reference, self.n_bins, self.half_life, self.categorical

    def _has_reference_of(self, other: InputDrift) -> bool:
        if not (len(self._edges) and len(other._edges)):  # both parts must belong to the reference
            n_columns = {len(one._missing) for one in (self, other) if len(one._missing)}
            is_open = not (len(self._edges) or len(other._edges))
            return is_open and len(n_columns) == 1 and self._n_seen + other._n_seen <= self.reference
        return np.array_equal(self._edges, other._edges) and np.array_equal(self._counts[0], other._counts[0])

    def _merge(self, other: InputDrift, when: str) -> None:
        if len(self._edges) and len(other._edges):
            n_after = other._n_seen - self.reference
            keep = 0.5 ** (n_after / self.half_life) if when == "after" else 1.0
            self._counts[1] = keep * self._counts[1] + other._counts[1]
            self._n_seen += n_after
            return
        assert other._summary is not None
        if self._summary is None:
            self._missing, self._summary = np.zeros_like(other._missing), copy.deepcopy(other._summary)
        else:
            self._summary.merge(other._summary)
        self._missing = self._missing + other._missing
        for j, counts in other._found.items():
            mine = dict(self._found.get(j, {}))
            self._found[j] = mine | {value: mine.get(value, 0.0) + n for value, n in counts.items()}
        self._n_seen += other._n_seen
        if self._n_seen >= self.reference:
            self._freeze()

    def measures(self) -> dict[str, Floats]:
        """Return the distances of each feature by name; NaN until the first row after the reference.

        Returns
        -------
        dict of str to ndarray of shape (n_features,)
            "psi", "js" and "ks" (NaN for categories, and if all recent values are missing); "missing", the proportion
            of missing values in recent rows, and "missing_before", that in the reference; "new", the proportion
            of categories not in the reference; and "gone", the number of categories of the reference that no longer
            occur.
        """
        if not self.is_ready:
            n = len(self._missing)
            names = ("psi", "js", "ks", "missing", "missing_before", "new", "gone")
            return {name: np.full(n, np.nan) for name in names}
        width = self._counts.shape[2]
        is_bin = np.arange(width) < self._n_bins[:, None]
        is_bin[:, -2:] = (self._counts[:, :, -2:] > 0.0).any(axis=0)
        totals = self._counts.sum(axis=2, keepdims=True)
        r, c = self._counts / totals
        smooth = self._counts + 0.5 * is_bin
        smooth = np.where(is_bin, smooth / smooth.sum(axis=2, keepdims=True), 1.0)
        known = self._counts[:, :, :-2]
        cumulative = np.cumsum(known, axis=2) / np.maximum(known.sum(axis=2, keepdims=True), 1e-300)
        ks = np.abs(cumulative[0] - cumulative[1]).max(axis=1)
        no_ks = self._is_category | (known.sum(axis=2) < 0.5).any(
            axis=0
        )  # values fade, but their shares do not
        gone = ((self._counts[0, :, :-2] >= 0.5) & (self._counts[1, :, :-2] < 0.5)).sum(axis=1)
        return {
            "psi": ((smooth[1] - smooth[0]) * np.log(smooth[1] / smooth[0])).sum(axis=1),
            "js": np.sqrt(np.maximum(_entropy((r + c) / 2) - (_entropy(r) + _entropy(c)) / 2, 0.0)),
            "ks": np.where(no_ks, np.nan, ks),
            "missing": c[:, -1],
            "missing_before": r[:, -1],
            "new": np.where(self._is_category, np.maximum(c[:, -2] - r[:, -2], 0.0), 0.0),
            "gone": np.where(self._is_category, gone, 0).astype(np.float64),
        }


def _entropy(shares: Floats) -> Floats:
    """Return the entropy of each row in bits."""
    return np.asarray(-(shares * np.log2(np.where(shares > 0.0, shares, 1.0))).sum(axis=-1))
