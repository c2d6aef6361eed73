"""JointScreening: features that are relevant individually or only in pairs, selected again after every drift.

No univariate score detects a feature that is relevant only in combination with another (XOR; Barddal's thesis, section
8.5, where selection by symmetrical uncertainty ends). Here all pairs are counted, and tested.

========================  ============================================================================================
here                      meaning
========================  ============================================================================================
I(X; Y)                   information gain of a feature with ten levels, in bits
I(X; Y | Z)               information of X given Z, from the table of both                   (1)
H                         of the levels of a feature, by Kruskal and Wallis: whether the classes differ in their mean
                          ranks; with one degree of freedom for two classes it detects a trend in half the rows
G = 2 n ln 2 I            approximately chi-square distributed under independence, like H; the bars are the quantiles
                          1 - alpha / 2d of G and H of d single features, 1 - alpha / d^2 of G of pairs     (2)
relevance of X            the largest of I(X; Y), H / (2 n ln 2) and I(X; Y | Z) over all Z above the bar, less
                          the expected gain by chance, (degrees of freedom) / (2 n ln 2)                    (3)
X is redundant with Z     X depends on Z, and I(X; Y | Z) is below the bar                                      (4)
========================  ============================================================================================

The features above their bar are processed by relevance plus their univariate gain (with finer levels, which reveal a
noisy copy), and selected unless redundant with one selected before; then each is tested again given those selected
later: the grow and shrink phases of Markov blanket discovery, with conditions of one feature.

All rows since the last drift count, so weak features are detected eventually; after a long time the older part is
dropped, in growing chunks, so that rows of the drift itself are removed. A drift is detected by the errors of a minimal
classifier: the table of the most informative pair, which predicts the majority class of its cell. Page's CUSUM, class
by class, is the maximum evidence that the errors have increased since some row (:mod:`tamis.drift.cusum`). Beyond ln(1
/ alpha_drift) all counts are reset to the rows since then. A drift may leave that pair unchanged, if only a third
feature is replaced; so every 500 rows are compared with all rows before, for a change in the relation of any feature to
the class (:mod:`tamis.rows.relation_change`). No learner is needed. A change of the selected set is not a drift, since
more features become significant with more rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import chdtri
from sklearn.base import clone

from tamis._atomic import atomic
from tamis._docstrings import fill_docstring
from tamis._kernels import njit, overwrite
from tamis._validation import Array, Floats, Indices, Mask, Rows, check_choice
from tamis._validation.arrays import repeat_rows
from tamis._validation.parameters import integer, number, parameter
from tamis.base import Claims, Inputs, RowSelector, top_mask
from tamis.base.rows import check_mergeable, joint_classes, reject_categories
from tamis.dependence.e_values import e_bh, restart_level
from tamis.drift.cusum import log_likelihood_steps, update_cusum
from tamis.merging import MERGE_DOCS
from tamis.rows.joint import pair_counts
from tamis.rows.joint.pair_counts import BLOCK, Counts, Gains, count_row, williams_correction
from tamis.rows.joint.pair_evidence import PairEvidence, gain_alone, trend_alone
from tamis.rows.joint.sparse_rows import SparseRows, count_sparse_row, settle, value_at
from tamis.rows.relation_change import critical_values, find_changed_table
from tamis.summaries.label_series import LabelSeries

_FIRST = 64  # rows that determine the first levels
_CHUNK, _LONGER = 512, 1.5  # rows of the first chunk; growth of the next ones
_ROUNDS = 1.125  # growth of the number of rows between tests
_LOOK = 500  # rows that are compared with all rows before
_LEAST, _FEW = 48, 8  # rows before the first test; minimum number of rows between tests
_TOTALS = ("alone", "above", "pairs", "n")  # the counts that are sums over rows


@njit(strict=True)
def _take(
    dense: Any, sparse: Any, codes: Array, start: int, counts: Counts, seen: Array,
    pair: Array, guess: Array, evidence: Array, steps: Array, limit: float, look: int,
) -> tuple[int, bool]:  # fmt: skip
    """Count rows up to a drift, a full word, or `look` rows; return the next row, and whether it was a drift.

    Dense rows come with the arrays in which they are stored, sparse ones with what a value of 0 contributes. The others
    are None, and the branches for them are not compiled.
    """
    for r in range(start, len(codes)):
        x, z = 0.0, 0.0
        if dense is not None:
            X, recent, labels = dense
            count_row(X[r], codes[r], counts)
            at = seen[0] % recent.shape[0]
            overwrite(recent[at], X[r])
            labels[at] = codes[r]
            x, z = X[r, pair[0]], X[r, pair[1]]
        if sparse is not None:
            data, indices, indptr, zero = sparse
            own, features = data[indptr[r] : indptr[r + 1]], indices[indptr[r] : indptr[r + 1]]
            count_sparse_row(own, features, codes[r], zero, counts)
            x, z = value_at(own, features, pair[0]), value_at(own, features, pair[1])
        seen[0] += 1
        if pair[0] >= 0:
            a, b = 0, 0
            for k in range(counts.edges.shape[1]):
                a += x > counts.edges[pair[0], k]
                b += z > counts.edges[pair[1], k]
            if update_cusum(guess[a, b] != codes[r], codes[r], evidence, steps) > limit:
                return r + 1, True
        if counts.n[1] == BLOCK or counts.n[0] == look:
            return r + 1, False
    return len(codes), False


@dataclass(eq=False, repr=False)
class JointScreening(RowSelector):
    """Selects features that are relevant individually or in pairs, by tests on all rows since the last drift.

    Parameters
    ----------
    n_bins : int, optional
        Number of levels of a feature in pairs, from 2 to 10. By default as many as keep the tables of all pairs small:
        9 with 20 features, 4 with 50, 2 with more than 110. A feature with no more values than levels is represented
        exactly. In other features, including categorical ones, neighbouring values share a level.
    alpha : float, default=0.01
        Level of the tests, over all features and over all pairs, in (0, 1).
    alpha_drift : float, default=1e-5
        In (0, 1): at most one false alarm in about 1 / alpha_drift rows.
    memory : int, default=1000
        Number of last rows that are stored, at least 64. After a drift the selector restarts from them, and a learner
        can be retrained on them.
    max_paired : int, default=500
        Maximum number of features that are tested in pairs: those with the largest univariate relevance.
    task : {"classification", "regression"}, default="classification"
        Classification or regression. A numeric target is discretized into five levels of about equal frequency
        (:mod:`tamis.base.numeric_target`).
    categorical : "all", list of int or str, or bool mask, optional
        Categorical features. Text columns and categorical columns of a frame are always included. Up to ten
        categories of a feature are distinguished, more are encoded by their mean target, and missing values by the mean
        of the feature (:mod:`tamis.base.row_encoder`).
    level : float in (0, 1), optional
        Bound on the false discovery rate. Of the features selected by the tests, only those with sufficient evidence
        are kept. At any time, for any number of reads and drifts, the expected proportion of irrelevant features among
        the selected ones is at most this. Weights must then be 0 or 1. By default, only `alpha` applies.
    prices : float, array, mapping of column to float, or PriceList, optional
        Price of each feature, in [0, 1e100]: of features that
        are redundant with each other, the most relevant one per unit of price is selected. A group is paid once.
    keep : list of int or str, optional
        Features that are always selected, in addition.
    groups : list of lists of int or str, optional
        Features that are selected together, such as the one-hot columns of a category: all, as soon as one is.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Relevance (3), in bits; 0 below the bar.
    selected_ : list of int
        The selected features, most relevant first. While nothing is significant the list is empty, and all features are
        kept (with `level`, none).
    evalues_ : ndarray of shape (n_features,)
        With `level`: the evidence since the last drift against "the feature is irrelevant, alone or given any other".
        Its mean is at most 1 for such a feature, at any time (:mod:`tamis.rows.joint.pair_evidence`).
    partners_ : ndarray of shape (n_features,), int
        The feature together with which a feature is most relevant; -1 if it is more relevant alone, or not at all.
    drift_detected_ : bool
        Whether a drift was detected in the last batch, so that a learner should be reset. It is True once more when the
        first rows after a drift are dropped, because they may come from the old and the new concept.
    n_replay : int
        Number of last rows on which a learner should be retrained: those since the last drift, at most `memory`.
    drifts_ : list of int
        Row numbers, from 0, at which drifts were detected.
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid, when rows are passed, or if a weight is not an integer: a row of weight k counts k
        times.
    DataError
        If rows are invalid.

    Notes
    -----
    A batch leaves the same state as its rows one at a time. The tests run after 32 rows, then whenever 8 rows or an
    eighth more have arrived. A feature that was constant when levels were determined gets separate levels when a chunk
    of rows is full (512 at first), if it has other values in 32 of them. The stored rows are then counted again.

    Cost per row: O(d), and d^2 (n_bins - 1)^2 / 64 words per class for the pairs of d features. Memory: 2 d^2 n_bins^2
    bytes per class, `memory` rows, and four tables of d^2 numbers. With 50 features the selector learns some 220,000
    rows a second, with 500 some 15,000 (docs/joint.md). If the first rows are CSR, rows are stored as CSR, 12 bytes per
    value, and counted by their values; the counts of single features take 240 bytes per feature and class at most.

    Features that are relevant only in triples (the parity of three bits) are not detected. Tests are repeated as rows
    arrive, so `alpha` is a nominal level, not a guarantee over the entire stream. `level` is a guarantee. The k-th
    start gets the fraction 6 / (pi k)^2 of it, and counts only the rows after it. A start occurs at the first row, and
    after each drift, new class or new column.

    References
    ----------
    Barddal: Feature drift in data streams, doctoral thesis, section 8.5 (the problem). Aliferis et al. (2010). Local
    causal and Markov blanket induction for causal discovery and feature selection, JMLR 11 (grow and shrink).

    Examples
    --------
    The class depends on two features jointly; neither is relevant by itself:

    >>> import numpy as np
    >>> from tamis import JointScreening
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 20))
    >>> y = X[:, 3] * X[:, 8] > 0
    >>> model = JointScreening().fit(X, y)
    >>> sorted(model.selected_), int(model.partners_[3])
    ([3, 8], 8)
    """

    # The levels of the tests, and the number of levels of a feature, depend on the number of columns.
    claims = Claims(equals_rows="exactly", counts_columns=True)
    _shapes = """
        _recent (w, j?) fill 0 ring w[its._seen[0]]
        _labels (w) int64 in [0, max(c, 1))
        _seen (1) int64 in [0, 2**62)
        _x_log_x (16384) fixed
        partners_ (j) int64 in [-1, j) fill -1
        selected_[] in [0, j)
        _scores (j) finite fill 0
        _arrays[0] (j, e) fill inf
        _arrays[1] (j, 9) fill inf
        _arrays[2] (q) int64 in [0, j)
        _arrays[3] (e, q) uint32 any "a bit for each row of the block"
        _arrays[4] (c) uint32 any "a bit for each row of the block"
        _arrays[5] (j, 10, c) int in [0, _arrays[8][0]]
        _arrays[6] (q, e, c) int in [0, _arrays[8][0]]
        _arrays[7] (e, e, c, q*(q-1)//2) int32 in [0, _arrays[8][0]]
        _arrays[8] (2) int
        _arrays[8][:1] int64 in [0, 2**31)
        _arrays[8][1:] int64 in [0, 32)
        _older[0] int in [0, 2**31)  _older[1] int in [0, 2**31)  _older[2] int32 in [0, 2**31)
        _older[3] int in [0, 2**31)
        _before? (j, 10, c) int in [0, _arrays[5]]
        _bars? (f)  _bars_alone? (f)  _bars_trend? (f)  _tables[0] (q, q)  _tables[1] (q, q)
        _tables[2] (q, q)  _tables[3] (q, q)
        _pair? (2) int64 in [-1, j)
        _guess? (e+1, e+1) int64 any "only compared with codes"
        _evidence? (2)  _steps? (2, c)  _pair_evidence? (its own)
        _label_series._total? (48, c) int  _label_series (its own)
        _sparse? (its own)  _sparse?.n_features (=j)  _sparse?.size (=w)
    """
    _is_part = False  # whether all rows count, in the levels of another selector: see `merge`

    _chooses_count = True
    accepts = Inputs(targets=("binary", "multiclass", "regression"), nan=True, categories=True, levels=True)
    _n_exact_categories = 10  # as many as a feature has levels

    n_bins: int | None = parameter(integer("[2, 10]"), None, default=None)
    _: KW_ONLY
    _older: tuple[Array, ...] | None = field(init=False)  # the counts of the previous chunk
    _before: Array = field(init=False)  # `alone` at the last test
    _pair: Array = field(init=False)
    alpha: float = parameter(number("(0, 1)"), default=0.01)
    alpha_drift: float = parameter(number("(0, 1)"), default=1e-5)
    memory: int = parameter(integer(f"[{_FIRST}, 10000000]"), default=1000)
    max_paired: int = parameter(integer("[2, 100000]"), default=500)
    task: str = "classification"
    categorical: Any = None
    level: float | None = parameter(number("(0, 1)"), None, default=None)
    prices: Any = None
    keep: Any = None
    groups: Any = None

    # -- hooks ---------------------------------------------------------------------------------------------

    def _start(self, n_features: int) -> None:
        # The first rows decide whether rows are stored dense or sparse.
        self._recent = np.zeros((self.memory, 0))
        self._sparse: SparseRows | None = None  # in place of `_recent`, if the first rows were sparse
        self._labels = np.zeros(self.memory, np.int64)
        self._seen = np.zeros(1, np.int64)  # number of rows stored
        self._x_log_x = pair_counts.x_log_x()
        self._arrays: tuple[Array, ...] = ()  # of the counts; none before levels are determined
        self._forget_set(n_features)
        self._pair_evidence: PairEvidence | None = None  # with `level`
        self._n_beginnings = 0
        self._label_series = LabelSeries(len(self.classes_), cycles=self.level is not None)
        self._inflation = 1.0  # factor on the evidence required for a drift, for dependent labels
        self.drift_detected_ = False
        self.drifts_: list[int] = []

    def _forget_set(self, n_features: int) -> None:
        self.selected_: list[int] = []
        self._working: list[int] = []  # selected by the tests; `level` keeps some of them; never modified
        self.partners_ = np.full(n_features, -1)
        self._scores = np.zeros(n_features)

    def _widen(self, n_features: int) -> None:
        new = n_features - self.n_features_in_
        self._settle()
        super()._widen(n_features)
        if not self._arrays:
            self._sparse = None if self._sparse is None else self._sparse.widened(n_features, None)
            return
        n_paired = len(self._counts.columns)
        more = min(n_features, self.max_paired) - n_paired if n_paired == n_features - new else 0
        self._change_counts(lambda counts: pair_counts.widened(counts, new, more))
        before = np.pad(self._before, ((0, new), (0, 0), (0, 0)))
        self._before = pair_counts.set_zero(before, np.arange(n_features - new, n_features))
        self._sparse = None if self._sparse is None else self._sparse.widened(n_features, self._counts)
        self._set_bars()
        if self.level is not None:
            self._begin_evidence()
            self._certify(self.level)

    def _forget_columns(self, columns: Indices) -> None:
        self._settle()
        super()._forget_columns(columns)
        self.selected_ = [j for j in self.selected_ if j not in columns]
        self._working = [j for j in self._working if j not in columns]
        self.partners_ = np.where(np.isin(self.partners_, columns), -1, self.partners_)
        if not self._arrays:
            self._sparse = None if self._sparse is None else self._sparse.without(columns, None)
            return
        self._change_counts(lambda counts: pair_counts.clear_columns(counts, columns))
        self._before = pair_counts.set_zero(self._before, columns)
        self._sparse = None if self._sparse is None else self._sparse.without(columns, self._counts)
        if np.isin(self._pair, columns).any():
            self._pair, self._evidence = np.full(2, -1), np.zeros(2)
        if self.level is not None:
            self._begin_evidence()
            self._certify(self.level)

    def _change_counts(self, change: Callable[[Counts], Counts]) -> None:
        """Change the counts, and those of the previous chunk."""
        counts = self._counts
        self._arrays = tuple(change(counts))
        if self._older is not None:
            older = change(counts._replace(**dict(zip(_TOTALS, self._older, strict=True))))
            self._older = tuple(getattr(older, name) for name in _TOTALS)

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        if self.level is not None and sample_weight is not None and sample_weight.max(initial=0.0) > 1.0:
            raise ValueError(
                f"sample_weight contains {sample_weight.max():g}, but with level a row counts once: give weights of 0"
                " and 1."
            )
        if sample_weight is not None:
            X, y = repeat_rows(X, y, sample_weight)
        if len(self.classes_) > self._label_series.n_classes:
            self._label_series.grow(len(self.classes_))  # even while the first rows are collected
        X = self._convert(X)
        self.drift_detected_, start = False, 0
        if not self._arrays:
            start = min(len(y), _FIRST - int(self._seen[0]))
            self._keep(X[:start], y[:start])
            if self._seen[0] == _FIRST:
                self._begin(_FIRST)
        elif self._is_part:
            self._make_room(len(self.classes_))
        elif len(self.classes_) > len(self._counts.class_bits) or self._levels_are_too_fine():
            self._begin(int(self._counts.n[0]))
        if self._arrays:
            self._feed(X, y, start, fresh=True)
        if self.level is not None:
            self._certify(self.level)

    def _convert(self, X: Rows) -> Rows:
        """Return the rows as all of them are stored: dense, or sparse if the first rows were."""
        if not self._seen[0]:
            n_features, is_sparse = X.shape[1], sp.issparse(X)
            self._sparse = SparseRows(n_features, int(self.memory)) if is_sparse else None
            self._recent = np.zeros((self.memory, 0 if is_sparse else n_features))
            if self._sparse is not None and self._arrays:
                self._sparse.begin(self._counts)
        if self._sparse is None:
            return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
        return sp.csr_matrix(X, dtype=np.float64)

    def _settle(self) -> None:
        """Complete the counts of single features, in which sparse rows of 0 are not counted one by one."""
        if self._sparse is not None and self._arrays:
            settle(self._sparse.zero, self._counts.alone)

    def _certify(self, level: float) -> None:
        """Keep the features with sufficient evidence; any such set satisfies the bound on the false discovery rate."""
        self.selected_ = []
        if self._pair_evidence is not None and self._working:
            log_e = np.full(self.n_features_in_, -np.inf)
            log_e[self._working] = self._log_e(self._pair_evidence)[self._working]
            certified = e_bh(log_e, restart_level(level, self._n_beginnings))
            self.selected_ = [x for x in self._working if certified[x]]

    @property
    def evalues_(self) -> Floats:
        """Evidence against "the feature is irrelevant, alone or given any other"; needs a `level`."""
        _ = self.warming_up_  # raises if not fitted
        if self.level is None:
            raise AttributeError("evalues_ needs level: pass, for example, level=0.05.")
        if self._pair_evidence is None:
            return np.ones(self.n_features_in_)
        with np.errstate(over="ignore"):
            evalues: Floats = np.exp(self._log_e(self._pair_evidence))
        return evalues

    def _log_e(self, evidence: PairEvidence) -> Floats:
        series = self._label_series
        cyclic = series.period > 0
        return evidence.log_e(dependent=cyclic or series.dependent, cyclic=cyclic)

    def _levels_are_too_fine(self) -> bool:
        """Whether the number of features has grown so that the pairs of this many levels would cost too much."""
        counts = self._counts
        return bool(
            pair_counts.default_n_levels(len(counts.columns), self.n_bins) < counts.edges.shape[1] + 1
        )

    def _relevance(self) -> Floats:
        return self._scores.copy()

    def _selection(self) -> Mask:
        mask = np.full(self.n_features_in_, not self.selected_ and self.level is None)
        mask[self.selected_] = True
        return mask

    @property
    def n_replay(self) -> int:
        """Number of recent rows from which a learner should be refitted."""
        rows = self._counts.n[0] if self._arrays else self._seen[0]
        return int(min(rows, self.memory))

    # -- rows ----------------------------------------------------------------------------------------------

    @property
    def _counts(self) -> Counts:
        if not self._arrays:
            raise AttributeError("Counts are available once the bins are formed.")
        return Counts(*self._arrays)

    def _keep(self, X: Rows, y: Array) -> None:
        at = (self._seen[0] + np.arange(len(y))) % self.memory
        self._labels[at] = y
        self._seen[0] += len(y)
        if self._sparse is None:
            self._recent[at] = X
        else:
            self._sparse.store(X, int(self._seen[0]))

    def _last(self, n: int) -> tuple[Rows, Array]:
        numbers = np.arange(self._seen[0] - n, self._seen[0])
        at = numbers % self.memory
        return self._recent[at] if self._sparse is None else self._sparse.last(numbers), self._labels[at]

    def _begin(self, n: int, chunk: float = _CHUNK) -> None:
        """Reset the counts to the last `n` rows; all stored rows determine the levels."""
        rows, _ = self._last(min(int(self._seen[0]), self.memory))
        X, y = self._last(min(n, rows.shape[0]))
        d, n_classes = rows.shape[1], len(self.classes_)
        columns, fresh = np.arange(d), None
        n_levels = pair_counts.default_n_levels(min(d, self.max_paired), self.n_bins)
        if d > self.max_paired:
            fresh = pair_counts.zeros(rows, columns[:0], n_levels, n_classes)
            self._count_alone(X, y, fresh)
            columns = np.flatnonzero(top_mask(gain_alone(fresh.alone)[0], self.max_paired))
        self._arrays = tuple(pair_counts.zeros(rows, columns, n_levels, n_classes, fresh))
        if self._sparse is not None:
            self._sparse.begin(self._counts)
        self._older = None
        self._chunk, self._chunk_end, self._next = float(chunk), int(chunk), _LEAST
        self._set_bars()
        self._pair, self._guess = np.full(2, -1), np.zeros((n_levels,) * 2, np.int64)
        self._before, self._looked = np.zeros_like(self._arrays[5]), 0
        self._evidence, self._steps = np.zeros(2), np.zeros((2, n_classes))  # of the errors, see drift.cusum
        if self.level is not None:  # rows that were tested before are not evidence
            self._begin_evidence()
        self._seen[0] -= len(y)
        self._feed(X, y, 0)

    def _count_alone(self, X: Rows, y: Array, counts: Counts) -> None:
        """Update the univariate counts with rows."""
        if self._sparse is None:
            for row, code in zip(X, y.tolist(), strict=True):
                count_row(row, code, counts)
            return
        self._sparse.begin(counts)
        zero = self._sparse.zero
        for i, code in enumerate(y.tolist()):
            own = slice(X.indptr[i], X.indptr[i + 1])
            count_sparse_row(X.data[own], X.indices[own], code, zero, counts)
        settle(zero, counts.alone)

    def _begin_evidence(self) -> None:
        """Collect evidence from the next row on; the stored rows determine the cuts."""
        rows, _ = self._last(min(int(self._seen[0]), self.memory))
        self._pair_evidence = PairEvidence(rows, self._counts.columns, len(self.classes_))
        self._n_beginnings += 1

    def _set_bars(self) -> None:
        """Set the critical values by degrees of freedom (2), and allocate the results of the tests."""
        counts = self._counts
        (d, _, n_classes), q, n_levels = counts.alone.shape, len(counts.columns), counts.edges.shape[1] + 1
        freedom = np.arange(1, max(10, n_levels * (n_levels - 1)) * n_classes + 1)
        self._bars = np.append(np.inf, chdtri(freedom, self.alpha / max(d, q**2)))
        self._bars_alone = np.append(np.inf, chdtri(freedom, 0.75 * self.alpha / d))
        self._bars_trend = np.append(np.inf, chdtri(freedom, 0.25 * self.alpha / d))
        self._tables = tuple(np.zeros((q, q)) for _ in Gains._fields)

    def _feed(self, X: Rows, y: Array, start: int, *, fresh: bool = False) -> None:
        while start < len(y):
            counts, first, limit = self._counts, start, float(-np.log(self.alpha_drift)) * self._inflation
            start, drift = self._take(X, y, start, limit)
            if fresh:
                before = self._label_series.update(y[first:start])
                if self._pair_evidence is not None and not drift:
                    rows = X[first:start]
                    dense = rows.toarray() if sp.issparse(rows) else rows
                    self._pair_evidence.update(dense, y[first:start], before)
            if drift:
                self._restart(max(BLOCK, int(self._evidence[1])))  # the rows that are evidence for a drift
            elif counts.n[1] == BLOCK or counts.n[0] == self._next:
                pair_counts.count_pairs(counts)
                self._inflation = self._label_series.variance_inflation()
                if not self._is_part:
                    if counts.n[0] - self._looked >= _LOOK and self._relation_has_changed(counts):
                        self._restart(int(counts.n[0]) - self._looked)
                        continue
                    if self._end_chunk(counts):
                        continue
                if counts.n[0] >= self._next:
                    self._renew(counts)

    def _take(self, X: Rows, y: Array, start: int, limit: float) -> tuple[int, bool]:
        """Count and store rows from `start` on; return the next row, and whether there was a drift."""
        sparse = self._sparse
        end, drift = _take(
            (X, self._recent, self._labels) if sparse is None else None,
            None if sparse is None else (X.data, X.indices, X.indptr, sparse.zero),
            y, start, self._counts, self._seen, self._pair, self._guess, self._evidence, self._steps, limit, self._next,
        )  # fmt: skip
        if sparse is None:
            return end, drift
        self._labels[np.arange(self._seen[0] - (end - start), self._seen[0]) % self.memory] = y[start:end]
        sparse.store(X[start:end], int(self._seen[0]))
        return end, drift

    # -- merging -------------------------------------------------------------------------------------------

    def _claims(self) -> Claims:
        return replace(self.claims, first_rows=_FIRST)

    def clone_unfitted(self) -> Self:
        """Return an unfitted selector that counts in the levels of this one; see `RowSelector.clone_unfitted`.

        It counts all of its rows, detects no drift, and can be merged with others of the same origin.
        """
        _ = self.warming_up_  # raises if not fitted
        if not self._arrays:
            return clone(self)
        part = copy.copy(self)
        n_features, n_classes = self.n_features_in_, len(self.classes_)
        part._unseen, part.n_seen_ = np.arange(n_classes), 0
        arrays = self._arrays
        part._start(n_features)
        part._arrays = tuple(
            array if name in ("edges", "fine", "columns") else np.zeros_like(array)
            for name, array in zip(Counts._fields, arrays, strict=True)
        )
        part._is_part, part._older = True, None
        part._chunk, part._chunk_end, part._next = float(_CHUNK), _CHUNK, _LEAST
        part._pair, part._evidence = np.full(2, -1), np.zeros(2)
        part._guess = np.zeros_like(self._guess)
        part._looked, part._before = 0, np.zeros_like(part._counts.alone)
        part._steps = np.zeros((2, len(part._counts.class_bits)))
        part._make_room(n_classes)
        part._set_bars()
        return part

    def _make_room(self, n_classes: int) -> None:
        """Grow the counts of a part, keeping its levels."""
        counts = self._counts
        if n_classes > len(counts.class_bits):
            self._settle()
            self._arrays = tuple(pair_counts.add_classes(counts, n_classes))
            self._before = np.zeros_like(self._counts.alone)
            self._steps = np.zeros((2, n_classes))
            if self._sparse is not None:
                self._sparse.totals = np.pad(self._sparse.totals, (0, n_classes - len(self._sparse.totals)))
            self._set_bars()

    @atomic
    @fill_docstring(MERGE_DOCS)
    def merge(self, other: Self, when: str = "after") -> Self:
        """Add the rows of another selector of the same stream.

        Parts that :meth:`clone_unfitted` of one selector returned have the same levels and count all of their rows:
        their counts are added, and the selection is that of one part with all rows, in any order. Otherwise the earlier
        selector learns the stored rows of the later one. Up to `memory` rows there, this equals one pass, bit for
        bit; of more, the last `memory` rows count.

        Parameters
        ----------
        other : JointScreening
            With the same columns and parameters.
        %(when)s

        %(returns_and_raises)s
        ValueError
            If its columns or parameters differ, or if `level` is set or features are categorical: counts and stored
            rows do not determine their evidence and encoding.

        Examples
        --------
        >>> import numpy as np, tamis
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(4000, 20))
        >>> y = X[:, 3] * X[:, 8] > 0
        >>> first = tamis.JointScreening().fit(X[:100], y[:100])
        >>> parts = [first.clone_unfitted().partial_fit(X[i::4], y[i::4]) for i in range(4)]
        >>> sorted(tamis.merge_tree(parts).selected_)
        [3, 8]
        """
        check_choice("when", when, ("after", "before"))
        if self.level is not None:
            raise ValueError(
                f"level is {self.level!r}, but the evidence of parts cannot be added: merge with level=None."
            )
        if not check_mergeable(self, other, ()) or not other.n_seen_:
            return self
        reject_categories(self, other)
        codes, joint = joint_classes(self, other)
        n_seen = self.n_seen_ + other.n_seen_
        if self._counts_with(other):
            self._add(other, codes, when)
        else:
            earlier, later = (self, other) if when == "after" else (copy.deepcopy(other), self)
            X, y = later._stored_rows()
            codes, joint = joint_classes(earlier, later)
            earlier.__dict__.update(joint)
            earlier._learn(X, codes[y], None)
            self.__dict__.update(vars(earlier))
        self.__dict__.update({**joint, "n_seen_": n_seen})
        return self

    def _stored_rows(self) -> tuple[Rows, Array]:
        return self._last(int(min(self._seen[0], self.memory)))

    def _counts_with(self, other: Self) -> bool:
        """Return whether both are parts with the same levels."""
        return (
            self._is_part
            and other._is_part
            and all(np.array_equal(a, b) for a, b in zip(self._arrays[:3], other._arrays[:3], strict=True))
        )

    def _add(self, other: Self, codes: Indices, when: str) -> None:
        """Add the counts of another part, and store the last rows of both."""
        n_classes = int(max(len(self.classes_), codes.max(initial=-1) + 1))
        self._make_room(n_classes)
        if n_classes > self._label_series.n_classes:
            self._label_series.grow(n_classes)
        theirs = Counts._make(array.copy() for array in other._arrays)
        if other._sparse is not None:
            settle(other._sparse.zero, theirs.alone)
        self._settle()
        pair_counts.count_pairs(theirs)
        pair_counts.count_pairs(self._counts)
        self._arrays = tuple(pair_counts.add_counts(self._counts, theirs, codes[: len(theirs.class_bits)]))
        rows, labels = other._stored_rows()
        parts = [self._stored_rows(), (rows, codes[labels])]
        self._store_last(parts[:: 1 if when == "after" else -1], int(self._seen[0] + other._seen[0]))
        self._renew(self._counts)

    def _store_last(self, parts: list[tuple[Rows, Array]], n_seen: int) -> None:
        """Store the last of these rows, as the last of `n_seen`."""
        is_sparse = self._sparse is not None
        self._labels, self._seen = np.zeros_like(self._labels), np.zeros(1, np.int64)
        rows = [
            X if sp.issparse(X) == is_sparse else sp.csr_matrix(X) if is_sparse else X.toarray()
            for X, _ in parts
        ]
        X = sp.vstack(rows, "csr") if is_sparse else np.concatenate(rows)
        y = np.concatenate([labels for _, labels in parts])[-self.memory :]
        self._seen[0] = n_seen - len(y)
        if self._sparse is not None:
            fresh = SparseRows(self.n_features_in_, int(self.memory))
            fresh.n_written = int(self._seen[0])
            self._sparse = fresh
        else:
            self._recent = np.zeros_like(self._recent)
        self._keep(X[-self.memory :], y)
        if self._sparse is not None and self._arrays:
            self._sparse.begin(self._counts)
            self._sparse.totals[:] = self._counts.alone[0].sum(axis=0)

    def _restart(self, n: int) -> None:
        """Signal a drift, and reset the counts to the last n rows."""
        self.drift_detected_ = True
        self.drifts_.append(int(self._seen[0]) - 1)
        self._forget_set(self.n_features_in_)
        self._begin(n)

    def _relation_has_changed(self, counts: Counts) -> bool:
        """Return whether the relation of a feature to the class has changed since the last test."""
        self._settle()
        young = counts.alone - self._before
        n_features, _, n_classes = young.shape
        bar = self._inflation * critical_values(self.alpha_drift, n_features, n_classes)
        changed = find_changed_table(self._before, young, bar) >= 0
        if not changed:
            self._before, self._looked = counts.alone.copy(), int(counts.n[0])
        return changed

    def _end_chunk(self, counts: Counts) -> bool:
        """Drop the previous chunk, when this one is full; return whether levels were determined again instead."""
        if counts.n[0] < self._chunk_end:
            return False
        if self._varies_by_now(counts):
            self._begin(int(counts.n[0]), self._chunk)
            return True
        self._settle()
        totals = tuple(getattr(counts, name) for name in _TOTALS)
        if self._older is not None:
            for total, older in zip(totals, self._older, strict=True):
                total -= older
            if self._sparse is not None:
                self._sparse.totals[:] = counts.alone[0].sum(axis=0)
            self._before, self._looked = counts.alone.copy(), int(counts.n[0])
            # A gradual drift ends with rows of both concepts.
            if self.drifts_ and self._chunk < _LONGER * _LONGER * _CHUNK:
                self.drift_detected_ = True
        self._older = tuple(total.copy() for total in totals)
        self._chunk *= _LONGER
        self._chunk_end, self._next = int(counts.n[0] + self._chunk), 0
        return False

    def _varies_by_now(self, counts: Counts) -> bool:
        """Return whether a feature that was constant when levels were determined has other values now."""
        flat = np.flatnonzero(np.isinf(counts.fine[:, 0]))
        rows, _ = self._last(min(int(counts.n[0]), self.memory))
        if self._sparse is not None:  # at least this many values must differ from 0
            flat = flat[np.bincount(rows.indices, minlength=len(counts.fine))[flat] >= BLOCK]
        values = rows[:, flat]
        rows = np.sort(values.toarray() if sp.issparse(values) else values, axis=0)
        return bool((np.count_nonzero(rows != rows[len(rows) // 2], axis=0) >= BLOCK).any())

    # -- the set -------------------------------------------------------------------------------------------

    def _renew(self, counts: Counts) -> None:
        """Test all features and pairs, and select (3), (4)."""
        n = int(counts.n[0])
        self._next = max(n + _FEW, int(n * _ROUNDS))
        self._settle()
        totals = counts.alone[0].sum(axis=0)
        if np.count_nonzero(totals) < 2:
            return
        gains = Gains(*self._tables)
        pair_counts.measure(counts, totals, self._bars, self._x_log_x, gains)
        unit = 2.0 * n * np.log(2.0)
        gain, freedom = gain_alone(counts.alone)
        n_classes = np.count_nonzero(totals)
        bars = self._bars_alone[freedom] * williams_correction(1 + freedom // (n_classes - 1), n_classes, n)
        alone = np.where(unit * gain > bars, gain - freedom / unit, 0.0)
        trend, freedom = trend_alone(counts.alone)
        clear = unit * trend > self._bars_trend[freedom]
        np.maximum(alone, np.where(clear, trend - freedom / unit, 0.0), out=alone)
        scores, partners = alone.copy(), np.full(len(alone), -1)
        if len(counts.columns) > 1:
            added = np.where(gains.given > 0.0, gains.gain, 0.0)
            np.fill_diagonal(added, 0.0)
            most, best = added.max(axis=1), added.argmax(axis=1)
            better = most > scores[counts.columns]
            scores[counts.columns[better]] = most[better]
            partners[counts.columns[better]] = counts.columns[best[better]]
        # Of redundant features, the first one is selected.
        order = scores + alone if self._terms is None else (scores + alone) * self._terms.worth
        chosen = _select(scores, order, counts.columns, gains)
        if chosen:
            self._working = chosen
        if self.level is None:
            self.selected_ = self._working
        self._scores, self.partners_ = scores, partners
        if not self._is_part:
            self._watch(counts, gains, totals)

    def _watch(self, counts: Counts, gains: Gains, totals: Array) -> None:
        """Predict from the most informative pair of selected features; its errors are monitored for drifts."""
        place = {int(j): i for i, j in enumerate(counts.columns)}
        inside = [place[x] for x in self._working if x in place]
        if not inside:
            return
        joint = gains.joint[np.ix_(inside, inside)]
        # Without pair counts: the first column of the set, twice.
        a, b = np.unravel_index(np.argmax(joint), joint.shape)
        i, j = sorted((inside[a], inside[b]))
        cells = np.zeros((*self._guess.shape, len(totals)), np.int64)
        if i < j:
            pair_counts.table(counts, i, j, totals, cells)
        else:
            above = np.vstack([totals, counts.above[i], np.zeros_like(totals)])
            cells[np.arange(len(cells)), np.arange(len(cells))] = above[:-1] - above[1:]
        pair = counts.columns[[i, j]]
        if (pair != self._pair).any():
            self._evidence[:] = 0.0
        self._pair[:], self._guess = pair, cells.argmax(axis=2)
        n_cells, n_classes = np.count_nonzero(cells.sum(axis=2)), len(totals)
        guessed = np.bincount(self._guess.ravel(), cells.sum(axis=2).ravel(), n_classes)
        right = np.bincount(self._guess.ravel(), cells.max(axis=2).ravel(), n_classes)
        spare = n_cells / n_classes  # correction for overfitting of the table
        wrong, rows = totals - right + spare / 2.0, totals + spare
        wrong += 0.5 * np.sqrt(wrong * (1.0 - wrong / rows))  # and for the selection of the best pair
        log_likelihood_steps(wrong, rows, 1.0 - guessed / totals.sum(), self._steps)


def _select(scores: Array, order: Array, columns: Indices, gains: Gains) -> list[int]:
    """Return the features of a score that are not redundant (4), in decreasing `order`."""
    place = {int(j): i for i, j in enumerate(columns)}
    related = (gains.dependent > 0.0) & (gains.given <= 0.0)
    np.fill_diagonal(related, False)
    inside = np.zeros(len(columns), dtype=bool)  # the places of those chosen

    def redundant(x: int) -> bool:
        return x in place and bool((related[place[x]] & inside).any())

    chosen: list[int] = []
    for x in np.argsort(-order, kind="stable")[: np.count_nonzero(scores > 0.0)].tolist():
        if not redundant(x):
            chosen.append(x)
            if x in place:
                inside[place[x]] = True
    for x in list(chosen):
        if redundant(x):
            chosen.remove(x)
            inside[place[x]] = False
    return chosen
