"""ForwardPartialCorrelation: forward selection by partial correlation, on a faded scatter matrix.

A univariate score selects many copies of one signal. Forward selection does not (Efroymson 1960): it selects the
feature with the largest correlation with the target, then the one with the largest correlation with the residual, and
so on. It only needs means, variances and covariances, which can be updated on a stream.

==============  ============================================================================================
here            meaning
==============  ============================================================================================
R               correlations of the features, with the ridge added to its diagonal
b_c             covariances of the standardised features with the indicator of class c, over sqrt(p_c), its
                proportion; of a numeric target, their correlations
v_j             residual variance of feature j given the selected features; r_jc: residual of b_jc
gain            sum_c r_jc^2 / v_j: what j would add to the explained variance of the target (the partial
                correlation ratio)                                                                       (1)
n               effective rows: (sum w f)^2 / sum w f^2 for weights w that fade by f
==============  ============================================================================================

Selecting i is one step of a pivoted Cholesky factorisation, O(p) for each selected feature and each class::

    l = (R_i - sum_h L_h L_hi) / sqrt(v_i);   r_c <- r_c - l r_ic / sqrt(v_i);   v <- v - l^2         (2)

Determined by the data:

* ridge = (1 + sqrt(p / n))^2 - 1: how far the largest eigenvalue of R is from 1 if the features are independent
  (Marchenko and Pastur 1967). Smaller residual variances may be due to chance.                                 (3)
* A selected feature competes with twice its gain, or with (sqrt(gain) + 3.5 e)^2, whichever is larger, where 3.5 is
  `inertia` and e^2 = (v - ridge) / (n v (1 + ridge)) the variance of r / sqrt(v), which is smaller if a ridge already
  stabilises the set. This prevents changes between near ties, and by chance.                                   (4)
* The number of features, if `n_features_to_select` is None: as long as n gain exceeds the chi-square quantile
  1 - alpha / p, with one degree of freedom per class but one; 1 - alpha w / p for a feature of the prior weight w, of
  mean 1. The ridge is then negligible, since a copy must not add anything.                                     (5)
* Rows fade only when their weight exceeds five times the number of features, and 5000: enough for a correlation matrix.
* The linear model that (2) fits anyway predicts each row before it is learned, with equal class weights. If the errors
  within the classes have increased since some row (Page's CUSUM), the evidence before fades to that of 30 rows, the
  rows since then are counted once more, and once a selected feature competes with at most (sqrt(gain) + e)^2, so that
  changes by chance are avoided. A model of fewer than 100 rows is not tested. A second test compares a model of the
  last rows with one of all rows (:mod:`tamis.rows.forward.recency`): errors do not increase if nothing was related
  before.
"""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import chdtri

from tamis._atomic import atomic
from tamis._docstrings import fill_docstring
from tamis._validation import Array, Floats, Ints, Mask, Rows, check_choice, check_number
from tamis._validation.parameters import integer, number, parameter
from tamis.base import RowSelector, n_to_select, top_mask
from tamis.base.declarations import Claims, Inputs
from tamis.base.rows import check_mergeable, feature_names, joint_classes
from tamis.merging import MERGE_DOCS
from tamis.rows.forward.error_watch import ErrorWatch
from tamis.rows.forward.lasso import lasso_scores
from tamis.rows.forward.linear_model import guess, inverse, inverse_root, solve, target_scales, unscale
from tamis.rows.forward.marginals import Marginals
from tamis.rows.forward.recency import Recency, standardise
from tamis.rows.forward.scatter import Scatter
from tamis.rows.forward.steps import ADVANTAGE, ADVANTAGE_AFTER_DRIFT, ERRORS, choose, favour
from tamis.rows.waiting_block import WaitingBlock, concatenate, own
from tamis.summaries.label_series import LabelSeries

_BLOCK = 100  # rows per batch
_FIRST = (10, 25, 50)  # rows at which the first batches end
_STEPS = 250  # features selected sequentially; any more by their gain given these
_NEXT_TO_NOTHING = 1e-6
_LEAST_MEMORY = 5000.0  # memory in rows for any number of features
_SETTLING = 1000  # rows after a drift within which a new set signals a drift
_AFTER_DRIFT = 30.0  # maximum weight in rows of the evidence before a drift
_RECENT = 1000  # rows that are stored
_LEAST_LEVEL = 5e-324  # half of it would be 0

# State:
#   _scatter    of the columns in the matrix, then one indicator for each class (or the numeric target)
#   _columns    (m,) int64     the features of these columns
#   _known      (m,) float64   faded weight of the rows since the column entered the matrix
#   _marginals  of all features, if there are more than `max_columns`; else None
#   _pending    the incomplete batch, a WaitingBlock
#   _order      (k,) int64     positions in the matrix of the selected features, in order
#   _parts      ascending int: prefixes of the order that are used too, and should be stable
#   _more       (r,) int64     further selected features, if more than `_STEPS` are selected
#   _entered, _left, _alone, _blame   see :func:`tamis.rows.forward.steps.choose`
#   _recent     rows, targets and weights of the last batches
#   _model      columns, weights and offset of the linear model of the selected features: it predicts the class of
#               the largest ``x[columns] @ weights + offset``


@dataclass(eq=False, repr=False)
class ForwardPartialCorrelation(RowSelector):
    """Selects the features that add most to those already selected, by forward selection on a faded scatter matrix.

    The selection accounts for redundancy: of many copies of one signal it selects few, which leaves room for other
    features.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=0.1
        How many features to keep, or which fraction of them, in (0, 1]. None keeps those that add more than noise does.
    task : {"classification", "regression"}, default="classification"
        Classification, with two or more classes, or regression.
    half_life : float, optional
        Rows after which the weight of a row is halved, in (0, inf]. By default rows do not fade, except after a drift,
        until their weight exceeds five times the number of features in the matrix, and 5000; then they fade so that the
        total weight remains there.
    alpha : float, default=0.01
        Level, in (0, 1), of the test that determines the number of features if `n_features_to_select` is None; over all
        features. For a rare class and sparse or skewed features, more are selected by chance.
    alpha_drift : float or None, default=1e-4
        In (0, 1): at most one false alarm in about 1 / alpha_drift rows. None: drifts are not detected.
    inertia : float, default=3.5
        How many standard errors the gain of a selected feature may be below that of another one before it is replaced,
        in [0, inf); it is never replaced while it has more than half the gain of the other. Smaller values follow the
        data sooner, and change the set more often.
    max_columns : int, default=2000
        Maximum number of features in the scatter matrix, which takes 8 bytes times its square (32 MB). If there are
        more features, the matrix contains those that are most relevant by themselves; others enter it when they become
        more relevant.
    categorical : "all", list of int or str, or bool mask, optional
        Categorical features. Text columns and categorical columns of a frame are always included. They are encoded by
        their mean target, and missing values by the mean of the feature (:mod:`tamis.base.row_encoder`).
    prices : float, array, mapping of column to float, or PriceList, optional
        Price of each feature, in [0, 1e100]: gains are compared
        per unit of price. A group is paid once.
    keep : list of int or str, optional
        Features that are always selected, in addition.
    groups : list of lists of int or str, optional
        Features that are selected together, such as the one-hot columns of a category: all, as soon as one is.
    prior : dict of str or int to float, optional
        Weights of features, from 0.001 to 1000; 1 for the others. Gains are compared times the weight over the mean
        weight. If `n_features_to_select` is None, the level of the test of a feature is multiplied by it too, so that
        the levels of all features still add up to `alpha`.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        For a selected feature, its gain (1) on entry (at least that of the next one). For any other feature, its
        current gain (always less).
    table_ : dict of str to ndarray of shape (n_features,)
        Why each feature is selected or not, one row per feature; it can be converted to a data frame. "feature" (its
        name), "selected", "entered" (1 for the first selected; 0: not selected), "alone" (the gain of the feature by
        itself), "added" (its gain on entry, or its current gain), "redundant_to" (the selected feature that accounts
        for most of it, or "").
    redundant_to_ : ndarray of shape (n_features,), int
        Column of that selected feature; -1 for a selected feature, or if there is none.
    drift_detected_ : bool
        Whether a learner should be reset: in the last batch the set changed, within 1000 rows of a drift. After a drift
        that leaves the set unchanged, the learner may continue.
    n_replay : int
        Number of last rows to retrain it on: those since the first sign of the drift, at most 1000.
    drifts_ : list of int
        Row numbers, from 0, at which drifts were detected.
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.
    DataError
        If rows, labels or weights are invalid (infinite values); the model is left unchanged.

    Notes
    -----
    Rows are processed in batches of 100, however many arrive per call, so a call with many rows is equivalent to one
    call per row. (If the first call does not declare the ``classes``, their order may differ, and thus the last
    digits.) After the start and after a drift, the first batches end after 10, 25 and 50 rows. A batch ends early if a
    drift is detected. Scores are those of the last full batch. While more than an eighth of all rows is pending,
    reading the scores includes them. Rows of weight 0 are ignored.

    A batch costs O(100 p^2) for p features in the matrix. A selection of k features costs O(p k^2); it is repeated
    whenever the number of rows has grown by an eighth, and at least every 500 rows. Memory: 8 p^2 bytes, the last rows
    (at most 1000, and no more values than the matrix may have), and 8 features x (classes + 2) bytes if there are more
    than `max_columns`.

    References
    ----------
    Efroymson (1960). Multiple regression analysis, in: Mathematical methods for digital computers (forward selection).
    Chan, Golub, LeVeque (1983). Algorithms for computing the sample variance, The American Statistician 37(3).
    Page (1954). Continuous inspection schemes, Biometrika 41(1/2).
    Marchenko, Pastur (1967). Distribution of eigenvalues for some sets of random matrices, Mathematics of the
    USSR-Sbornik 1(4).

    Examples
    --------
    Ten copies of one signal, and a second, weaker one. Univariate scores select copies:

    >>> import numpy as np
    >>> from tamis import FisherScore, ForwardPartialCorrelation
    >>> rng = np.random.default_rng(0)
    >>> signals = rng.normal(size=(3000, 2))
    >>> X = signals[:, [0] * 10 + [1]] + 0.1 * rng.normal(size=(3000, 11))
    >>> y = 2 * signals[:, 0] + signals[:, 1] > 0
    >>> for selector in (FisherScore(2), ForwardPartialCorrelation(2)):
    ...     print(selector.fit(X, y).get_support(indices=True))
    [6 7]
    [ 5 10]

    Why is the first feature not selected? It is redundant with the sixth:

    >>> table = selector.table_
    >>> table["redundant_to"][0], table["alone"][[0, 10]].round(2), table["added"][[0, 10]].round(2)
    ('x5', array([0.46, 0.09]), array([0.03, 0.11]))
    """

    claims = Claims(
        equals_rows="up to rounding",
        copies_differ="blocks of rows, windows and fading count rows",
        # The ridge (3), the level (5) and the memory in rows.
        counts_columns=True,
    )
    accepts = Inputs(targets=("binary", "multiclass", "regression"), nan=True, categories=True)
    _shapes = f"""
        _recent fixed  _columns (q) int64 in [0, j) distinct
        _known (q) float in [0, 1e150] fill self._known[-1]
        _alone (q) finite fill 0
        _left (q) finite fill 0
        _blame (q) int64 in [-1, q) fill -1
        _relevance_now (j) finite fill 0
        _order (o) int64 in [0, q) distinct
        _entered (o) finite
        _more? (*) int64 in [0, j) distinct
        _ridge float in [0, 1e150]
        _scatter.mean (m)  _scatter.unit (m)  _scatter.S (m, m) fortran
        _model[0] (r) int64 in [0, j)
        _model[1] (r, t) finite
        _model[2] (t) float in [-inf, inf)
        _errors.tally? (3, e)  _errors (its own)
        classes_? (>e) labels
        _rows in [0, 2**62)
        _next in [0, 2**62)
        _settled in [0, 2**62)
        _start_row in [0, _rows]
        _young in [0, 2**62)
        drifts_[] in [0, 2**62)
        _pending.X? (w?, j)
        _pending.size in [{_BLOCK}, {_BLOCK}]
        _pending.n_rows in [0, max(_block_end() - _rows, 1))
        _pending.y? (z) codes
        _pending.weight? (z)
        _recent[][0] (R, j) finite fill 0
        _recent[][1] (R) codes
        _recent[][2] (R) float in [0, inf)
        _recency (its own)
        _label_series._total? (48, c) int  _label_series (its own)
    """

    n_features_to_select: int | float | None = parameter(number("(0, inf)"), None, default=0.1)  # type: ignore[assignment]
    _: KW_ONLY
    task: str = "classification"
    half_life: float | None = parameter(number("(0, inf]"), None, default=None)
    alpha: float = parameter(number("(0, 1)"), default=0.01)
    alpha_drift: float | None = parameter(number("(0, 1)"), None, default=1e-4)
    inertia: float = parameter(number("[0, inf)"), default=3.5)
    max_columns: int = parameter(integer("[1, inf)"), default=2000)
    categorical: Any = None
    prices: Any = None
    keep: Any = None
    groups: Any = None
    prior: Any = None

    _parts: tuple[int, ...] = field(default=(), init=False)

    @property
    def _chooses_count(self) -> bool:  # type: ignore[override]
        return self.n_features_to_select is None

    # -- rows ----------------------------------------------------------------------------------------------

    def _start(self, n_features: int) -> None:
        n_columns, n_targets = min(n_features, self.max_columns), int(self._is_regression())
        self._scatter = Scatter(n_columns + n_targets)
        self._marginals = Marginals(n_features, n_targets) if n_columns < n_features else None
        self._columns, self._known = np.arange(n_columns), np.zeros(n_columns)
        self._pending = WaitingBlock(_BLOCK, n_features)
        self._recent: tuple[tuple[Rows, Array, Array], ...] = ()
        self._rows = self._next = 0  # rows learned, and at which to select again
        half = None if self.alpha_drift is None else max(self.alpha_drift / 2.0, _LEAST_LEVEL)
        self._errors = None if half is None else ErrorWatch(half)
        self._recency = None if half is None else Recency(half, n_columns, n_targets)
        self._label_series = (
            None if self._is_regression() or half is None else LabelSeries(len(self.classes_))
        )
        self.drift_detected_, self.drifts_ = False, list[int]()
        self._settled = 0  # the row from which on a new set does not signal the drift
        self._start_row = self._young = 0  # the last drift, and the rows before it that are its evidence
        self._reset_selection(n_columns)

    def _reset_selection(self, n_columns: int) -> None:
        self._order, self._entered, self._more = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
        self._alone, self._left = np.zeros(n_columns), np.zeros(n_columns)
        self._blame, self._ridge = np.full(n_columns, -1), 0.0
        self._model = np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros(0)
        self._relevance_now = np.zeros(self.n_features_in_)

    def _widen(self, n_features: int) -> None:
        n, more = len(self._columns), min(n_features, self.max_columns) - len(self._columns)
        if self._marginals is None and n_features > n + more:
            self._marginals = Marginals.of_matrix(self._scatter, n)
        if self._marginals is not None:
            self._marginals = self._marginals.widened(n_features)
        if more > 0:  # then every feature was in the matrix
            self._scatter = copy.copy(self._scatter)
            self._scatter.insert(n, more)
            self._columns = np.arange(n + more)
            self._state_spec.extend(self, "q", n + more)
            if self._recency is not None:
                self._recency = self._recency.widened(n + more)
        super()._widen(n_features)
        self._pending = self._pending.widened(n_features)

    def _forget_columns(self, columns: NDArray[np.intp]) -> None:
        places = np.flatnonzero(np.isin(self._columns, columns))
        self._scatter = copy.copy(self._scatter)
        self._scatter.forget(places)
        self._known = self._known.copy()
        self._known[places] = self._scatter.weight
        if self._marginals is not None:
            self._marginals = self._marginals.without(columns)
        if self._recency is not None:
            self._recency = self._recency.without(places)
        super()._forget_columns(columns)
        self._pending = self._pending.without(columns)
        if self._scatter.weight > 0.0:
            self._choose()

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        self.drift_detected_ = False
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        start = 0
        while start < len(y):
            end = min(start + self._block_end() - self._rows - self._pending.n_rows, len(y))
            end, drift = self._watch(X, y, start, end)
            if self._label_series is not None:
                if len(self.classes_) > self._label_series.n_classes:
                    self._label_series.grow(len(self.classes_))
                self._label_series.update(y[start:end])
            part = X[start:end], y[start:end], weight[start:end]
            full = self._rows + self._pending.n_rows + end - start == self._block_end()
            if full and not drift and not self._pending.n_rows:
                self._take_block(whole=own(*part))
            else:
                self._pending = self._pending.with_rows(*part)
                if drift:
                    self._restart()
                elif full:
                    self._take_block()
            start = end

    def _block_end(self) -> int:
        """Return the row at which the batch is full: the first ones after the start, or after a drift, are short."""
        since = self._rows - self._start_row
        return self._start_row + next((n for n in _FIRST if n > since), since - since % _BLOCK + _BLOCK)

    def _take_block(self, *, whole: tuple[Rows, Array, Array] | None = None, choose: bool = False) -> None:
        """Learn a batch that is passed whole, or else the pending rows."""
        if whole is None:
            whole, self._pending = self._pending.rows(), self._pending.empty_copy()
        (X, y, weight), before = whole, self._selected_set()
        self._keep(whole)
        self._learn_rows(X, y, weight)
        self._rows += len(y)
        if self._errors is not None:
            self._errors.expect()
        self._set_limits()
        if choose or self._rows >= self._next:
            self._next = self._rows + min(max(int(self._scatter.weight / 8.0), 1), 5 * _BLOCK)
            self._choose()
            if self._rows < self._settled and self._selected_set() != before:
                self.drift_detected_ = True

    def _set_limits(self) -> None:
        """Require more evidence for a drift if labels are autocorrelated: fewer rows are then effective."""
        if self._label_series is None or self.alpha_drift is None:
            return
        level = max(self.alpha_drift / 2.0, _LEAST_LEVEL)
        limit = float(-np.log(level)) * self._label_series.variance_inflation()
        for watch in (self._errors, self._recency):
            if watch is not None:
                watch.limit = limit

    def _learn_rows(self, X: Rows, y: Array, weight: Array) -> None:
        factor, n, squares = self._fading(), len(y), None
        if factor < 1.0:
            recency = factor ** np.arange(n - 1, -1, -1.0)
            weight = weight * recency
            squares = float(weight @ recency)
        self._add(X, self._targets(y), weight, factor**n, squares)

    def _keep(self, block: tuple[Rows, Array, Array]) -> None:
        """Store the last rows, in no more memory than the matrix may take."""
        room = max(1, min(_RECENT, self.max_columns**2 // self.n_features_in_))
        kept = [*self._recent, block]
        n_rows = sum(len(y) for _, y, _ in kept)
        while n_rows - len(kept[0][1]) >= room:
            n_rows -= len(kept.pop(0)[1])
        self._recent = tuple(kept)

    @property
    def _most(self) -> float:
        """Default for the weight of the rows at which they start to fade."""
        return max(_LEAST_MEMORY, 5.0 * len(self._columns))

    def _fading(self) -> float:
        """Return the fading factor of a row."""
        if self.half_life is not None:
            return float(0.5 ** (1.0 / self.half_life))
        return 1.0 if self._scatter.weight < self._most else 1.0 - 1.0 / self._most

    def _targets(self, y: Array) -> Floats:
        """Return the targets of the scatter matrix: indicators of the classes, or the number."""
        if self._is_regression():
            return y[:, None]
        n_classes = len(self.classes_)
        if n_classes > self._n_targets:
            self._scatter = copy.deepcopy(self._scatter)
            self._scatter.grow(len(self._columns) + n_classes)
            if self._marginals is not None:
                self._marginals = copy.deepcopy(self._marginals)
                self._marginals.grow(n_classes)
        indicators = np.zeros((len(y), n_classes))
        indicators[np.arange(len(y)), y] = 1.0
        return indicators

    @property
    def _n_targets(self) -> int:
        return len(self._scatter.mean) - len(self._columns)

    def _add(self, X: Rows, targets: Array, weight: Array, fade: float, squares: float | None) -> None:
        if self._marginals is not None:
            self._marginals.update(X, targets, weight, fade)
            X = X[:, self._columns]
        n = len(self._columns)
        Z = np.empty((len(weight), n + targets.shape[1]))
        Z[:, :n], Z[:, n:] = X.toarray() if sp.issparse(X) else X, targets
        self._scatter.update(Z, weight, fade, squares)
        if self._recency is not None:
            rows = self._standardise(Z, np.arange(n + self._is_regression()))
            targets = rows[:, n:] if self._is_regression() else targets
            self._recency.learn(rows[:, :n], targets, weight, fade)
        self._known = fade * self._known + float(weight.sum())

    def _selected_set(self) -> set[int]:
        return set(self._columns[self._order].tolist())

    # -- drifts --------------------------------------------------------------------------------------------

    def _watch(self, X: Rows, y: Array, start: int, end: int) -> tuple[int, bool]:
        """Predict rows of the batch with the current model; return the end, and whether it is a drift."""
        if self._errors is None or self._recency is None or not len(self._order):
            return end, False
        self._errors.grow(2 if self._is_regression() else len(self.classes_))
        guesses, codes = self._guesses(X[start:end], y[start:end])
        if self._rows - self._start_row < _BLOCK:
            self._errors.count(guesses, codes)
            return end, False
        n_used = self._errors.update(guesses, codes)
        at = self._recency.columns
        rows = self._standardise(_dense_columns(X[start : start + n_used], self._columns[at]), at)
        n_used = self._recency.update(rows, codes[:n_used])
        return start + n_used, self._errors.is_sufficient or self._recency.is_sufficient

    def _standardise(self, Z: Array, at: Array) -> Array:
        """Return the first columns, at these positions in the matrix, standardised."""
        its = self._scatter
        return standardise(Z, at, its.unit, its.mean, its.S, its.weight)

    def _guesses(self, X: Rows, y: Array) -> tuple[Array, Array]:
        """Return the predicted class of each row, with equal class weights, and the true one.

        The classes of a regression are whether the target is above its mean.
        """
        columns, weights, offset = self._model
        codes = y > self._scatter.mean[-1] if self._is_regression() else y
        return guess(_dense_columns(X, columns), 0, weights, offset), codes.astype(np.int64, copy=False)

    def _restart(self) -> None:
        """Let earlier rows fade, and count the rows that are evidence for a drift once more."""
        assert self._errors is not None
        assert self._recency is not None
        watch = self._errors if self._errors.is_sufficient else self._recency
        young, before = watch.n_rows, self._selected_set()
        self.drifts_ = [*self.drifts_, self._rows + self._pending.n_rows - 1]
        self._take_block()
        keep = min(1.0, _AFTER_DRIFT / self._scatter.weight)
        self._scatter.fade(keep)
        self._recency.reset_evidence(keep)
        self._known = keep * self._known
        if self._marginals is not None:
            self._marginals.fade(keep)
        X, y, weight = concatenate(self._recent)
        self._learn_rows(X[-young:], y[-young:], weight[-young:])
        self._errors.reset()
        self._start_row, self._settled = self._rows, self._rows + _SETTLING
        self._young = min(young, len(y))
        self._next = self._rows + 10
        self._choose(ADVANTAGE_AFTER_DRIFT)
        self.drift_detected_ = self._selected_set() != before

    @property
    def n_replay(self) -> int:
        """Number of last rows on which a learner should be retrained: those since a drift, at most 1000."""
        since = self._start_row - self._young
        return min(self._rows + self._pending.n_rows - since, _SETTLING)

    # -- choosing ------------------------------------------------------------------------------------------

    @property
    def _advantage(self) -> tuple[float, float]:
        return ADVANTAGE[0], float(self.inertia)

    def _choose(self, advantage: tuple[float, float] | None = None) -> None:
        before = np.append(self._columns[self._order], self._more)
        if self._marginals is not None:
            self._update_matrix_columns(self._marginals)
        scatter, n = self._scatter, len(self._columns)
        one_over = inverse_root(np.diag(scatter.S))
        scale, back = target_scales(scatter, one_over[n:], n, of_number=self._is_regression())
        b = np.ascontiguousarray(scatter.S[:n, n:].T) * one_over[:n] * scale[:, None]
        n_effective, freedom = scatter.n_effective, max(np.count_nonzero(scale) - 1.0, 1.0)
        place = np.full(n, n)
        place[self._order] = np.arange(len(self._order))
        ends = np.array([*(end for end in self._parts if end < n), n])
        if self._chooses_count:  # (5)
            self._ridge, most = _NEXT_TO_NOTHING, n
            weights = None if self._terms is None else self._terms.prior
            prior = 1.0 if weights is None else weights[self._columns]
            level = np.minimum(self.alpha * prior / self.n_features_in_, 1.0)
            bar = np.zeros(n) + chdtri(freedom, level) / n_effective
        else:
            self._ridge, bar = (1.0 + np.sqrt(n / n_effective)) ** 2 - 1.0, np.zeros(n)  # (3)
            most = min(self._n_kept(), n)
        self._order, self._entered, self._alone, self._left, self._blame, factor, made = choose(
            scatter.S, one_over[:n], np.maximum(self._known, _BLOCK), float(max(scatter.weight, _BLOCK)), b,
            self._ridge, min(most, _STEPS), place, ends, n_effective, bar, freedom,
            self._advantage if advantage is None else advantage,
            np.ones(n) if self._terms is None else self._terms.worth[self._columns],
        )  # fmt: skip
        slopes, at = solve(factor, self._order, made) * one_over[self._order, None] * back, self._order
        self._model = self._columns[at], *unscale(scatter, at, slopes, n, of_number=self._is_regression())
        self._relevance_now = self._scores(before, n_effective)

    def _n_kept(self) -> int:
        return n_to_select(self.n_features_to_select, self.n_features_in_)  # type: ignore[arg-type]

    def _update_matrix_columns(self, marginals: Marginals) -> None:
        """Move the features that are most relevant by themselves into the matrix, replacing others."""
        strength = np.sqrt(self._gain_alone(marginals))
        strength[self._columns] += ERRORS / np.sqrt(self._scatter.n_effective)
        wanted = top_mask(strength, len(self._columns))
        leaving = np.flatnonzero(~wanted[self._columns])
        wanted[self._columns] = False
        coming = np.flatnonzero(wanted)
        if not len(coming):
            return
        X, _, weight = concatenate(self._recent)
        rows = min(len(weight), self.n_replay)  # rows since the last drift
        self._columns, self._known = self._columns.copy(), self._known.copy()
        self._columns[leaving] = coming
        X = X[-rows:, self._columns]
        weight = weight[-rows:] * self._fading() ** np.arange(rows - 1, -1, -1.0)
        self._known[leaving] = weight.sum()
        if self._recency is not None:
            self._recency.replace(leaving)
        self._order = self._order[~np.isin(self._order, leaving)]
        self._scatter.replace(
            leaving, marginals.mean[coming], marginals.variance[coming], marginals.covariance[:, coming],
            np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64), weight,
        )  # fmt: skip

    def _gain_alone(self, marginals: Marginals) -> Floats:
        """Return (1) for every feature before any is selected, without a ridge."""
        if self._is_regression():
            share = np.array([self._scatter.S[-1, -1] * self._scatter.unit[-1] ** 2 / self._scatter.weight])
        else:
            share = np.maximum(marginals.target_mean, 0.0)
        of_each = marginals.covariance**2 * inverse(share)[:, None] * inverse(marginals.variance)
        return of_each.sum(axis=0)

    # -- read-outs -----------------------------------------------------------------------------------------

    def lasso_order(self, penalty: float) -> tuple[NDArray[np.intp], int]:
        """Return the features in descending order of their weights in a lasso of the matrix, and how many are not 0.

        Features of weight 0 follow by their correlation with the target; those outside of the matrix come last.

        Parameters
        ----------
        penalty : float
            Of the absolute weights of standardised features, for a standardised target.
        """
        _ = self.warming_up_
        weights, ties = np.zeros((2, self.n_features_in_))
        if self._scatter.weight > 0.0:
            weights[self._columns], ties[self._columns] = lasso_scores(
                self._scatter, len(self._columns), penalty
            )
        return np.lexsort((-ties, -weights)), int(np.count_nonzero(weights))

    def _now(self) -> Self:
        """Return self, or a copy that has learned the pending rows if these are many."""
        if not self._pending.n_rows or 8 * self._pending.n_rows <= self._rows:
            return self
        ahead = copy.deepcopy(self)
        ahead._take_block(choose=True)
        return ahead

    def _relevance(self) -> Floats:
        return self._now()._relevance_now.copy()

    def _scores(self, before: Array, n_effective: float) -> Floats:
        scores = np.zeros(self.n_features_in_)
        if self._marginals is not None:
            scores = self._gain_alone(self._marginals) / (1.0 + self._ridge)
        scores[self._columns] = self._left
        if len(self._order):
            scores[self._columns[self._order]] = 0.0
            self._more = self._keep_more(scores, before, n_effective)
            chosen = np.append(self._columns[self._order], self._more)
            entered = np.append(self._entered, scores[self._more])
            scores[chosen] = 0.0
            # If gains are equal, the earlier one first.
            ahead = 1.0 + 1e-12 * np.arange(len(chosen), 0, -1.0)
            falling = np.maximum.accumulate((entered / ahead)[::-1])[::-1] * ahead
            above = scores.max() / falling[-1]
            if above >= 1.0:  # one favoured by (4) may add less than another
                scores *= (1.0 - 1e-9) / above
            scores[chosen] = falling
        return scores

    def _keep_more(self, gains: Array, before: Array, n_effective: float) -> Ints:
        """Return the features selected beyond the sequential ones, by gain; selected ones are favoured."""
        n_more = 0 if self._chooses_count else self._n_kept() - len(self._order)
        if n_more <= 0:
            return np.zeros(0, np.int64)
        ranked = gains.copy()
        ridge = np.sqrt(1.0 + self._ridge) - 1.0  # favoured more strongly, since they are closer to noise
        ranked[before] = favour(gains[before], 1.0 / (1.0 + self._ridge), ridge, n_effective, self._advantage)
        ranked[gains == 0.0] = 0.0
        best = np.argsort(-ranked, kind="stable")[:n_more]
        return best[ranked[best] > 0.0]

    def _selection(self) -> Mask:
        now = self._now()
        kept = np.zeros(self.n_features_in_, np.bool_)
        kept[now._columns[now._order]] = True
        return kept if kept.any() else ~kept

    @property
    def redundant_to_(self) -> Ints:
        """The selected feature that accounts for most of the gain of each feature; -1 if there is none."""
        _ = self.warming_up_  # raises if not fitted
        now = self._now()
        redundant_to = np.full(self.n_features_in_, -1)
        redundant_to[now._columns] = np.where(now._blame < 0, -1, now._columns[now._blame])
        redundant_to[now._columns[now._order]] = -1
        return redundant_to

    @property
    def table_(self) -> dict[str, NDArray[Any]]:
        """Why each feature is selected or not: one row per feature; it can be converted to a data frame."""
        _ = self.warming_up_
        now, n = self._now(), self.n_features_in_
        names = np.array(feature_names(self) or [f"x{j}" for j in range(n)], dtype=object)
        alone, added, entered = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
        if now._marginals is not None:
            alone = now._gain_alone(now._marginals) / (1.0 + now._ridge)
            added = alone.copy()
        alone[now._columns], added[now._columns] = now._alone, now._left
        chosen = now._columns[now._order]
        added[chosen], entered[chosen] = now._entered, np.arange(1, len(chosen) + 1)
        blame = self.redundant_to_
        return {
            "feature": names, "selected": self.get_support(), "entered": entered, "alone": alone, "added": added,
            "redundant_to": np.where(blame < 0, "", names[blame]),
        }  # fmt: skip

    # -- merging -------------------------------------------------------------------------------------------

    @atomic
    @fill_docstring(MERGE_DOCS)
    def merge(self, other: Self, when: str = "after", age: float | None = None) -> Self:
        """Add what another selector has learned from other rows of the same stream.

        The earlier part fades by the number of rows of the later one. Merged in order, parts of a stream thus equal one
        selector of all rows, except for the selected features and the detected drifts.

        Parameters
        ----------
        other : ForwardPartialCorrelation
            With the same columns and parameters (except the number of selected features).
        %(when)s
        age : float, optional
            The number of rows by which the earlier part fades, if not that of the later part. Requires a `half_life`.

        %(returns_and_raises)s
        ValueError
            If its columns or parameters differ, `age` is negative, or there are more than `max_columns` features: the
            two matrices may then contain different features.
        """
        check_choice("when", when, ("after", "before"))
        if age is not None:
            check_number("age", age, low=0.0, open_high=True)
            if self.half_life is None:
                raise ValueError(
                    f"age={age!r} needs a half_life: without one, fading depends on the weight of the rows."
                )
        if not check_mergeable(self, other, ("n_features_to_select",)):
            return self
        if self._marginals is not None:
            raise ValueError(
                f"{self.n_features_in_} features are more than max_columns={self.max_columns}, and two selectors need"
                " not have the same ones in their matrices: raise max_columns to merge."
            )
        earlier, later = (self, other) if when == "after" else (other, self)
        merged = copy.deepcopy(earlier)
        merged._append(
            copy.deepcopy(later), later._rows + later._pending.n_rows if age is None else float(age)
        )
        self.__dict__.update({**vars(merged), "n_features_to_select": self.n_features_to_select})
        return self

    def _append(self, later: Self, age: float) -> None:
        for part in (self, later):
            if part._pending.n_rows:
                part._take_block()
        order, self._errors = np.zeros(1, np.int64), later._errors
        if not self._is_regression():
            codes, joint = joint_classes(self, later)
            self.__dict__.update(joint)
            n, n_classes = len(self._columns), len(self.classes_)
            self._scatter.grow(n + n_classes)
            later._scatter.grow(n + n_classes)
            order = np.argsort(np.r_[codes, np.setdiff1d(np.arange(n_classes), codes)])
            later._scatter.reorder(np.r_[np.arange(n), n + order])
            if self._errors is not None:
                self._errors.grow(n_classes)
                self._errors.reorder(order)
            if self._label_series is not None and later._label_series is not None:
                for series in (self._label_series, later._label_series):
                    series.grow(n_classes)
                later._label_series.reorder(order)
                self._label_series.merge(later._label_series)
        room = max(self._most - later._scatter.weight, 0.0) / max(self._scatter.weight, 1.0)
        fade = min(1.0, room) if self.half_life is None else 0.5 ** (age / self.half_life)
        self._scatter.merge(later._scatter, fade)
        self._known = fade * self._known + later._known
        self.drifts_ = [*self.drifts_, *(self._rows + row for row in later.drifts_)]
        self._settled = self._rows + later._settled if later._settled else self._settled
        self._rows, self.n_seen_ = self._rows + later._rows, self.n_seen_ + later.n_seen_
        if self._recency is not None and later._recency is not None:
            self._recency.append(later._recency, fade, order)
        self._choose()


def _dense_columns(X: Rows, columns: Array) -> Floats:
    """Return some columns, dense."""
    dense = X[:, columns].toarray() if sp.issparse(X) else X.take(columns, axis=1)
    return np.asarray(dense, dtype=np.float64, order="C")
