r"""Input drift: the distribution of each feature in recent rows compared with that in a reference window.

The reference is the first `reference` rows. Its quantiles are the bin edges of a numeric feature; the bins of a
categorical feature are its values. With the proportions r_b in the reference and c_b in the (faded) recent rows, where
missing values and new categories are separate bins:

    PSI = sum_b (c_b - r_b) ln(c_b / r_b)                                        population stability index
    JS  = sqrt(H((r + c) / 2) - (H(r) + H(c)) / 2), H in bits                    Jensen-Shannon distance, in [0, 1]
    KS  = max over the edges of |F_r - F_c|, without missing values              Kolmogorov-Smirnov distance, in [0, 1]

Half a row is added to each bin in PSI, which is infinite for an empty one.

**Dependent rows.** The PSI of a slow series is large without a drift. A drift is therefore a PSI of a window in which
the mean of a score of the bins differs significantly from the reference: the number of the bin, its distance from the
middle, whether it is odd, or whether the value is missing. With the long-run variance V of the score and the effective
numbers of rows n_r and n_c,

    |mean_c - mean_r| > t sqrt(V (1 / n_r + 1 / n_c)),                                                        (1)

with t the two-sided quantile of Student's t at a level of 1e-4 / n_features. V is estimated from blocks
(:mod:`tamis.watch.long_run`), and t has the degrees of freedom of the estimate. If V is undetermined, or if V of any
score of the value still grows with the length of the blocks at a rate above .5, or if a window counts as fewer than 20
independent rows, so is the drift. The windows have the half-lives `half_life` and 8 times as much; the drift is the PSI
in the shortest significant one.

Where the reference contains fewer than 50 times as many rows as V exceeds the variance of a row, it is extended, to at
most 20 times `reference` rows, before recent rows are compared with it.

**Seasons.** With `season`, the reference is counted by phase, in at most 24 phases, and r_b is the mean of the phases
of the recent rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from tamis._atomic import atomically
from tamis._guard import ThreadSafe
from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, Mask, as_rows, check_choice, check_number
from tamis.watch.long_run import LongRunVariance

_MOST_CATEGORIES = 100  # categories of a column with separate bins; rarer ones are treated as new
# Half-lives, in multiples of the shortest; the first window is that of the distances, the others are those of a drift.
_WINDOWS = np.array([1.0, 1.0, 8.0])
_MOST_PHASES = 24
_LEVEL = 1e-4
_FEWEST = 50  # weight of the recent rows
_FEWEST_INDEPENDENT = 20.0  # effective rows of a window
_MOST_GROWTH = 0.5  # of a variance with the length of the blocks; beyond, no block is long enough
_INDEPENDENT = 50.0  # effective rows of a reference
_EXTENDED = 20  # its maximum length, in multiples of `reference`
MEASURES = ("psi", "js", "ks", "drift", "shift", "missing", "missing_before", "missing_rise", "new", "gone")


@njit(allocates=False)
def _count(
    X: Array, edges: Array, is_category: Array, is_open: Array, fading: Array, phase: Array, scores: Array,
    centres: Array, reference: Array, recent: Array, weights: Array, values: Array,
) -> None:  # fmt: skip
    """Count rows in their bins, and write their scores.

    X          (n, j)
    edges      (j, e)  inf beyond the last one
    is_open    (j)     whether these rows belong to the reference
    fading     (w, n)  weight of each row
    phase      (n)
    scores     (k, j, b)
    centres    (p, k, j)  means of the scores in the reference
    reference  (p, j, b)  counts
    recent     (w, j, b)  faded counts
    weights    (w, j, 1 + p)  sums of the squared weights, and of the weights of each phase
    values     (n, k, j)  written: the scores of the rows
    """
    width = recent.shape[2]
    for i in range(X.shape[0]):
        p = phase[i]
        for j in range(X.shape[1]):
            x, b = X[i, j], width - 1
            if not np.isnan(x):
                low, high = 0, edges.shape[1]
                while low < high:
                    middle = (low + high) // 2
                    if edges[j, middle] < x:
                        low = middle + 1
                    else:
                        high = middle
                b = low
                if is_category[j] and (b == edges.shape[1] or edges[j, b] != x):
                    b = width - 2
            if is_open[j]:
                reference[p, j, b] += 1.0
            for w in range(fading.shape[0]):
                recent[w, j, b] += fading[w, i]
                weights[w, j, 0] += fading[w, i] ** 2
                weights[w, j, 1 + p] += fading[w, i]
            for k in range(scores.shape[0]):
                values[i, k, j] = scores[k, j, b] - centres[p, k, j]


class InputDrift(ThreadSafe):
    """Distances between recent rows and a reference window, for each feature.

    Parameters
    ----------
    reference : int, default=2000
        Number of rows in the reference window, the first of the stream; at least 20. The counts of features that depend
        on their earlier values are extended to up to 20 times as many rows.
    n_bins : int, default=10
        Number of bins, of about equal weight in the reference; at least 2.
    half_life : float, default=500
        Number of rows after which a row weighs half as much in the current distribution.
    categorical : sequence of int, default=()
        Categorical columns; the 100 most frequent categories of each have separate bins.
    season : int or None, default=None
        Number of rows of a season, such as a day or a week: recent rows are compared with the rows of the reference in
        the same phase. The reference then has at least two seasons.

    Notes
    -----
    Memory: the rows of the reference until it is complete; then about 150 numbers per feature, and six more per bin.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> drift = InputDrift(reference=1000)
    >>> drift.update(rng.normal(size=(2000, 2)))
    >>> drift.update(rng.normal(size=(2000, 2)) + [0.0, 1.0])
    >>> drift.measures()["psi"].round(1)
    array([0. , 0.9])
    >>> drift.measures()["drift"].round(1)
    array([0. , 0.9])
    """

    _shapes = (
        "_n_seen in [0, 2**62)  _rows (r, m) float in (-inf, inf) or nan fixed"
        "  _edges (j, e) float  _is_category (j) bool  _is_open (j) bool  _n_bins (j) int64 in [1, e+1]"
        "  _scores (k, j, e+3) float finite  _centres (p, k, j) float  _reference (2, p, j, e+3) float in [0, inf)"
        "  _recent (w, j, e+3) float in [0, inf)  _weights (w, j, p+1) float in [0, inf)"
        "  _long_run? (its own)"
    )

    def __init__(
        self, reference: int = 2000, n_bins: int = 10, half_life: float = 500, categorical: Any = (),
        season: int | None = None,
    ) -> None:  # fmt: skip
        check_number("reference", reference, low=20, integer=True)
        check_number("n_bins", n_bins, low=2, high=_MOST_CATEGORIES, integer=True)
        check_number("half_life", half_life, low=1.0)
        if season is not None:
            check_number("season", season, low=2, integer=True)
        self.n_bins, self.half_life, self.season = int(n_bins), float(half_life), season
        self.reference = max(int(reference), 2 * int(season or 0))
        self.categorical = [int(j) for j in categorical]
        self.most_growth: float | Floats = _MOST_GROWTH  # of each feature
        self._n_seen = 0
        self._rows: Floats = np.empty((0, 0))
        # Once the reference is complete:
        phases = 1 if season is None else min(int(season), _MOST_PHASES)
        self._edges: Floats = np.empty((0, 0))
        self._is_category, self._is_open = np.empty(0, dtype=bool), np.empty(0, dtype=bool)
        self._n_bins: Ints = np.empty(0, dtype=np.int64)
        self._scores: Floats = np.empty((4, 0, 3))
        self._centres: Floats = np.empty((phases, 4, 0))
        # The first rows, and those that a drift is measured from.
        self._reference: Floats = np.empty((2, phases, 0, 3))
        self._recent: Floats = np.empty((len(_WINDOWS), 0, 3))
        self._weights: Floats = np.empty((len(_WINDOWS), 0, phases + 1))
        self._long_run: LongRunVariance | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the reference is complete and later rows have arrived."""
        return self._n_seen > self.reference

    def update(self, X: Floats) -> None:
        """Add rows of shape (n_rows, n_features), NaN for missing values."""
        X = np.asarray(X if type(X) is np.ndarray else as_rows(X)[0], dtype=np.float64)
        while len(X):
            n = self.reference - self._n_seen % self.reference
            part, X = X[:n], X[n:]
            if self._n_seen < self.reference:
                self._rows = np.concatenate([self._rows.reshape(-1, part.shape[1]), part])
                self._n_seen += len(part)
                if self._n_seen == self.reference:
                    self._freeze()
            else:
                self._add(np.ascontiguousarray(part), self._n_seen, is_recent=True)
                self._n_seen += len(part)
                if self._n_seen % self.reference == 0:
                    self._estimate()

    def _add(self, X: Floats, first: int, *, is_recent: bool) -> None:
        n_windows = len(_WINDOWS) if is_recent else 0
        keep = 0.5 ** (1.0 / (self.half_life * _WINDOWS[:n_windows]))
        fading = keep[:, None] ** np.arange(len(X) - 1, -1, -1.0)
        if is_recent:
            faded = keep ** len(X)
            self._recent *= faded[:, None, None]
            self._weights[:, :, 1:] *= faded[:, None, None]
            self._weights[:, :, 0] *= faded[:, None] ** 2
        phase = np.zeros(len(X), dtype=np.int64)
        if self.season is not None:
            phase = np.arange(first, first + len(X)) % self.season * self._reference.shape[1] // self.season
        values = np.empty((len(X), *self._centres.shape[1:]))
        _count(
            X, self._edges, self._is_category, self._is_open, fading, phase, self._scores, self._centres,
            self._reference[1], self._recent, self._weights, values,
        )  # fmt: skip
        assert self._long_run is not None
        self._long_run.update(values.reshape(len(X), -1))

    def _freeze(self) -> None:
        """Define the bins and count the reference in them."""
        X, n_features = self._rows, self._rows.shape[1]
        edges, n_phases = [], self._reference.shape[1]
        for j in range(n_features):
            known = np.sort(X[~np.isnan(X[:, j]), j])
            if j in self.categorical:
                values, times = np.unique(known, return_counts=True)
                edges.append(np.sort(values[np.argsort(-times, kind="stable")[:_MOST_CATEGORIES]]))
            elif len(known):
                at = np.ceil(np.arange(1, self.n_bins) / self.n_bins * len(known) - 1e-9).astype(np.int64) - 1
                edges.append(np.unique(known[np.maximum(at, 0)]))
            else:
                edges.append(known)
        width = max(1, *map(len, edges))
        self._is_category = np.isin(np.arange(n_features), self.categorical)
        self._n_bins = np.array([max(1, len(one)) for one in edges]) + ~self._is_category
        self._n_bins = np.minimum(self._n_bins, width + 1)
        self._edges = np.full((n_features, width), np.inf)
        for j, one in enumerate(edges):
            self._edges[j, : len(one)] = one
        place = np.arange(width + 3) / np.maximum(self._n_bins - 1, 1)[:, None] - 0.5
        parity = np.broadcast_to(np.arange(width + 3) % 2 - 0.5, place.shape)
        self._scores = np.stack([place, 2.0 * np.abs(place) - 0.5, parity, np.zeros_like(place)])
        self._scores[:, :, -2] = 1.0  # new categories are far from all others
        self._scores[:, :, -1] = np.array([0.0, 0.0, 0.0, 1.0])[:, None]
        self._scores[3, :, -2] = 0.0
        self._is_open = np.ones(n_features, dtype=bool)
        self._reference = np.zeros((2, n_phases, n_features, width + 3))
        self._recent = np.zeros((len(_WINDOWS), n_features, width + 3))
        self._weights = np.zeros((len(_WINDOWS), n_features, n_phases + 1))
        self._long_run = LongRunVariance(4 * n_features)
        self._centres = np.zeros((n_phases, 4, n_features))
        if n_phases > 1:  # the blocks need the means of the phases
            self._add(self._rows, 0, is_recent=False)
            self._centres = np.einsum("kjb,pjb->pkj", self._scores, self._shares(1))
            self._reference[:], self._long_run = 0.0, LongRunVariance(4 * n_features)
        self._add(self._rows, 0, is_recent=False)
        self._reference[0] = self._reference[1]
        self._rows = np.empty((0, 0))
        self._estimate(at_once=True)

    def _shares(self, which: int) -> Floats:
        """Return the proportions of the bins in a reference, by phase."""
        counts = self._reference[which]
        return np.asarray(counts / np.maximum(counts.sum(axis=2, keepdims=True), 1e-300))

    def _estimate(self, *, at_once: bool = False) -> None:
        """Estimate the long-run variances; features whose reference is long enough are compared from now on."""
        assert self._long_run is not None
        self._long_run.estimate(at_once=at_once)
        shape = self._centres.shape[1:]
        of_row = np.maximum(
            self._long_run.of_row.reshape(shape), self._row_variance(self._reference[1].sum(axis=0))
        )
        V = self._long_run.variance.reshape(shape)
        inflation = np.divide(V, of_row, out=np.ones(shape), where=of_row > 0.0).max(axis=0)
        too_short = ~(self._reference[1].sum(axis=(0, 2)) >= _INDEPENDENT * inflation)
        is_open = self._is_open & too_short & (self._n_seen < _EXTENDED * self.reference)
        closed = self._is_open & ~is_open
        self._recent[1:, closed], self._weights[1:, closed] = 0.0, 0.0
        self._is_open = is_open

    def inflation(self) -> Floats:
        """Return the variance of sums of rows relative to that of independent rows; infinite if undetermined."""
        if self._long_run is None:
            return np.full(self._rows.shape[1], np.inf)
        V = self._long_run.largest.reshape(self._centres.shape[1:])
        of_row = self._row_variance(self._reference[1].sum(axis=0))
        ratio = np.divide(V, of_row, out=np.ones(V.shape), where=of_row > 0.0)
        return np.asarray(np.where(np.isnan(ratio), np.inf, ratio).max(axis=0))

    def _row_variance(self, counts: Floats) -> Floats:
        """Return the variance of each score, (k, j), from counts (j, b)."""
        share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
        mean = np.einsum("kjb,jb->kj", self._scores, share)
        return np.maximum(np.einsum("kjb,jb->kj", self._scores**2, share) - mean**2, 0.0)

    def merge(self, other: InputDrift, when: str = "after") -> InputDrift:
        """Add the rows of another part of the stream; `other` is unchanged.

        The long-run variances remain those of this object.

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
        return self.reference, self.n_bins, self.half_life, self.categorical, self.season

    def _has_reference_of(self, other: InputDrift) -> bool:
        if not (len(self._edges) and len(other._edges)):  # both parts must belong to the reference
            is_open = not (len(self._edges) or len(other._edges))
            same = not self._n_seen or self._rows.shape[1] == other._rows.shape[1]
            return is_open and same and self._n_seen + other._n_seen <= self.reference
        return np.array_equal(self._edges, other._edges) and np.array_equal(
            self._reference[0], other._reference[0]
        )

    def _merge(self, other: InputDrift, when: str) -> None:
        if not len(self._edges):
            self.update(other._rows)
            return
        n_after = other._n_seen - self.reference
        windows = self.half_life * _WINDOWS
        keep = 0.5 ** (n_after / windows) if when == "after" else np.ones(len(windows))
        self._recent = keep[:, None, None] * self._recent + other._recent
        self._weights[:, :, 1:] *= keep[:, None, None]
        self._weights[:, :, 0] *= keep[:, None] ** 2
        self._weights += other._weights
        self._n_seen += n_after

    def measures(self) -> dict[str, Floats]:
        """Return the distances of each feature by name; NaN until the first row after the reference.

        Returns
        -------
        dict of str to ndarray of shape (n_features,)
            "psi", "js" and "ks" (NaN for categories, and if all recent values are missing); "drift", the PSI if it is
            not explained by chance and by the dependence of the rows, else 0, and "shift", the change of the mean
            rank, in [-1, 1], likewise; "missing", the proportion of missing
            values in recent rows, "missing_before", that in the reference, and "missing_rise", their difference if it
            is not explained by chance, else 0; "new", the proportion of categories not in the reference; and "gone",
            the number of categories of the reference that no longer occur.
        """
        if not self.is_ready:
            return {name: np.full(max(self._rows.shape[1], len(self._edges)), np.nan) for name in MEASURES}
        reference = self._expected()
        counts = np.stack([reference[0], self._recent[0]])
        r, c = counts / counts.sum(axis=2, keepdims=True)
        known = counts[:, :, :-2]
        cumulative = np.cumsum(known, axis=2) / np.maximum(known.sum(axis=2, keepdims=True), 1e-300)
        ks = np.abs(cumulative[0] - cumulative[1]).max(axis=1)
        # The values fade, but their shares do not.
        no_ks = self._is_category | (known.sum(axis=2) < 0.5).any(axis=0)
        gone = ((counts[0, :, :-2] >= 0.5) & (counts[1, :, :-2] < 0.5)).sum(axis=1)
        psi = np.stack([self._psi(*pair) for pair in zip(reference, self._recent, strict=True)])
        significant, change = self._significant(reference)
        drift, rise, shift = (np.zeros(len(r)) for _ in range(3))
        for w in range(len(psi) - 1, 0, -1):
            drift = np.where(significant[w].any(axis=0), psi[w], drift)
            shift = np.where(significant[w, 0], change[w, 0], shift)
            shares = [
                one[w, :, -1] / np.maximum(one[w].sum(axis=1), 1e-300) for one in (self._recent, reference)
            ]
            rise = np.where(significant[w, 3], shares[0] - shares[1], rise)
        return {
            "psi": psi[0],
            "js": np.sqrt(np.maximum(_entropy((r + c) / 2) - (_entropy(r) + _entropy(c)) / 2, 0.0)),
            "ks": np.where(no_ks, np.nan, ks),
            "drift": drift,
            "shift": shift,
            "missing": c[:, -1],
            "missing_before": r[:, -1],
            "missing_rise": rise,
            "new": np.where(self._is_category, np.maximum(c[:, -2] - r[:, -2], 0.0), 0.0),
            "gone": np.where(self._is_category, gone, 0).astype(np.float64),
        }

    def _expected(self) -> Floats:
        """Return the counts of the reference, (w, j, b), in the phases of each window."""
        which = np.minimum(np.arange(len(_WINDOWS)), 1)
        if self._reference.shape[1] == 1:
            return np.asarray(self._reference[which, 0])
        total = self._reference.sum(axis=(1, 3))[which]
        phases = self._weights[:, :, 1:] / np.maximum(
            self._weights[:, :, 1:].sum(axis=2, keepdims=True), 1e-300
        )
        return np.asarray(
            np.einsum("wjp,wpjb->wjb", phases, np.stack([self._shares(k) for k in which])) * total[:, :, None]
        )

    def _psi(self, reference: Floats, recent: Floats) -> Floats:
        is_bin = np.arange(recent.shape[1]) < self._n_bins[:, None]
        is_bin[:, -2:] = (reference[:, -2:] > 0.0) | (recent[:, -2:] > 0.0)
        smooth = np.stack([reference, recent]) + 0.5 * is_bin
        smooth = np.where(is_bin, smooth / smooth.sum(axis=2, keepdims=True), 1.0)
        return np.asarray(((smooth[1] - smooth[0]) * np.log(smooth[1] / smooth[0])).sum(axis=1))

    def _significant(self, reference: Floats) -> tuple[Mask, Floats]:
        """Return where (1) holds, and the change of the mean, (w, k, j)."""
        weight = np.maximum(self._weights[:, :, 1:], 0.0)
        total = np.maximum(weight.sum(axis=2), 1e-100)
        of_phase = np.maximum(self._reference[1].sum(axis=2).T, 1e-300)  # (j, p)
        error = (np.square(weight / total[:, :, None]) / of_phase).sum(axis=2) + self._weights[
            :, :, 0
        ] / total**2
        share = np.stack([reference, self._recent]) / np.maximum(
            np.stack([reference, self._recent]).sum(axis=3, keepdims=True), 1e-300
        )
        mean = np.einsum("kjb,swjb->swkj", self._scores, share)
        square = np.einsum("kjb,swjb->swkj", self._scores**2, share)
        of_rows = np.maximum(square - mean**2, 0.0).max(axis=0)  # a score that was constant has no variance
        assert self._long_run is not None
        V, growth = (
            one.reshape(self._centres.shape[1:]) for one in (self._long_run.variance, self._long_run.growth)
        )
        # The scores of a value share its memory, which some of them hide.
        growth = np.where(np.arange(len(growth))[:, None] < 3, growth[:3].max(axis=0), growth)
        V = np.where(growth > self.most_growth, np.nan, V)
        freedom = self._long_run.freedom.reshape(V.shape)
        t = scipy.special.stdtrit(np.maximum(freedom, 1.0), 1.0 - 0.5 * _LEVEL / max(len(self._edges), 1))
        V = np.maximum(V, of_rows)
        bound = t * np.sqrt(V * error[:, None])
        change = mean[1] - mean[0]
        enough = (total >= min(_FEWEST, self.half_life))[:, None] & ~self._is_open
        # The mean of few independent values, most of which are small, as of error rates of lots, is far from normal.
        squares = np.maximum(self._weights[:, :, 0], 1e-300)
        enough = enough & ((total**2 / squares)[:, None] * of_rows >= _FEWEST_INDEPENDENT * V)
        return np.asarray((np.abs(change) > bound) & enough), change  # NaN is not significant


def _entropy(shares: Floats) -> Floats:
    """Return the entropy of each row in bits."""
    return np.asarray(-(shares * np.log2(np.where(shares > 0.0, shares, 1.0))).sum(axis=-1))
