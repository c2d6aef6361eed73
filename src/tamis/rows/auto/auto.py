"""Auto: the smallest feature set that predicts as well as the best one, chosen online among selectors and sizes.

Each selector at each size is a *candidate*, with a separate, inexpensive learner that is evaluated prequentially on
every batch; all features together are a candidate too. The smallest candidate is selected whose loss exceeds that of
the best one by at most ``tolerance``, including one standard error of their paired difference (a stricter form of the
rule of Breiman et al. 1984), and that of all features including two; see :mod:`tamis.summaries.paired_losses`, (1).

==========  =================  ===========================================================================
symbol      here               meaning
==========  =================  ===========================================================================
A           ``candidates_``    candidates: all features, and each selector at each size
S_a         ``_masks[a]``      features of candidate a: the first of its selector's ranking
l_a         ``_paired``        losses of candidate a on the last rows, by the learner of S_a: the Brier score relative
                               to that of the class proportions; if a class is rare, the proportion of other rows
                               ranked above a row of that class (1 - AUC); for regression, absolute errors in units of
                               the mean absolute deviation of the target
g           ``_ahead``         errors by which young learners are ahead of old ones (1)
==========  =================  ===========================================================================

Shared statistics make many candidates cost little more than one:

* One pass over the rows updates the moments of the classes, old (all rows since the last reset) and young (fading over
  300 rows). They yield the Fisher score of every feature, the means and variances of naive Bayes for all candidates at
  once, and the scale of the features for the linear learners.
* The candidates of a selector share its ranking. Its sizes are four fractions of the features, and the knee: where its
  sorted scores are farthest below the chord (Satopaa et al. 2011).
* The matrix of forward selection also yields a lasso (:mod:`tamis.rows.forward.lasso`): refitted, and frozen at the
  first 1000 rows, as a selection made once.
* Forests (:mod:`tamis.rows.auto.forests`) are refitted on the last 2000 rows: at 200, 400, 800, ..., then every 2000.
  On the same rows, boosted trees in which a feature pays to be used yield another ranking.

After an alarm (HDDM-A on the errors of the selected candidate, with a bound that accounts for their autocorrelation)
suspended selectors resume, and earlier losses and the rows of the forests are discarded.

Restarts: naive Bayes that remembers an outdated concept is worse than one trained on recent rows. Two comparisons run,
one of learners with the old moments, one with the young. With m0 and m1 the errors of the best candidate of each::

    g <- max(0, g + m0 - m1 - slack);   restart if g > h                                              (1)

(a cumulative sum: Page 1954). Then the old moments are replaced by those of the last 500 rows, and a learner beside the
selector should be reset and trained on these.
"""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from tamis._atomic import atomic
from tamis._docstrings import fill_docstring
from tamis._validation import Array, Floats, Indices, Ints, Mask, Rows, check_choice, columns_of, short_repr
from tamis._validation.parameters import number, parameter, with_methods
from tamis.base import Claims, Inputs, RowSelector, n_to_select
from tamis.base.numeric_target import N_LEVELS, TargetLevels
from tamis.base.row_intake import RowIntake
from tamis.base.rows import check_mergeable, feature_names, joint_classes, reject_categories
from tamis.drift import HDDMA
from tamis.errors import DataError
from tamis.merging import MERGE_DOCS
from tamis.rows.auto.column_sets import (
    LinearRegressions,
    LogisticRegressions,
    Scale,
    auc_loss,
    bayes_scores,
    brier_loss,
    logistic_shares,
    predictions,
    softmax_shares,
)
from tamis.rows.auto.forests import Forests, Sample
from tamis.rows.auto.history import History
from tamis.rows.fires.fires import FIRES
from tamis.rows.forward.forward import ForwardPartialCorrelation
from tamis.rows.joint.joint import JointScreening
from tamis.rows.screening.mean_variance import fisher_score
from tamis.rows.waiting_block import WaitingBlock, concatenate
from tamis.summaries.class_moments import ClassMoments
from tamis.summaries.paired_losses import PairedLosses, preferred

_BLOCK = 100  # rows per batch
_FIRST = (10, 25, 50)  # rows at which the first batches end
_SIZES = (0.05, 0.1, 0.2, 0.4)  # fractions of the features, by default
_BEGIN = 0.1  # initial fraction, with fewer rows than features
_RARE = 0.1  # proportion of a class below which candidates are evaluated by AUC
_DECIDED = 10  # tested rows before the candidates are compared
_ENOUGH, _ENOUGH_RARE = 1000, 100  # tested rows sufficient to compare a smaller candidate; of a rare class
_YOUNG = 1.0 - 1.0 / 300.0  # fading factor of the young moments per row
_RESTART, _ALARMED, _SLACK = 8.0, 4.0, 0.01  # errors: h of (1); h after an alarm; slack per row
_WINDOW, _LEAST = 500, 100  # rows for a restart, at most and at least
_FOREST = 2000  # rows in the window of forests, and between two fits
_FIRST_FOREST = 200  # rows
_PAIRED = 256  # features whose pairs `joint` counts, of more those most relevant by themselves
_HOPELESS, _TRIAL = 0.03, 2000  # loss above the best, and rows, after which a selector is suspended
_MOST_DENSE = 2000  # columns up to which sparse rows are made dense
_LARGEST = 1e100
_MOST_LOSS = 5.0  # mean absolute deviations of the target: cap on the loss of a row
_LASSO = "lasso", "frozen"  # rankings by the weights of a lasso: of all rows, and of the first ones
_OWN_SIZE = ("boosted", "joint", *_LASSO)  # selectors that determine a size
_PENALTY = 0.02  # of the lasso
_BOOSTED = 3.0  # score of a feature that is used at a penalty of 10
_FROZEN = 1000  # rows
_LASSO_EVERY = 1000  # rows between two fits, at most
_RANKERS = {
    "linear": ("forward", "fires", "fisher", "fisher-recent", "joint", *_LASSO),
    "naive-bayes": ("forward", "fires", "fisher", "fisher-recent", "joint", *_LASSO),
    "trees": ("forward", "fires", "boosted", "joint", *_LASSO),
}
_TREES = ("forest", "tree", "boost", "gbm", "xgb", "patches", "rules", "vfdr")  # substrings of class names

# State:
#   _old, _young  moments of the classes
#   _learners     a logistic regression for each candidate (linear);  _forests  a small forest for each (trees)
#   _rankers      selectors by name; _ranks (R, J) int64, the rank of each feature by each of them
#   _which (A,), _size (A,) int64   ranking (-1: none) and size of each candidate; _masks (A, J) bool
#   _own_size (A,) bool             candidates whose size is the knee of their ranking
#   _paired       losses of the candidates on the last tested rows; _paired_young: of naive Bayes with the young moments
#   _rare         class on which the candidates are evaluated, -1: all rows; _n_tested rows of it since the last reset
#   _window       batches of the last rows


@dataclass(eq=False, repr=False)
class Auto(RowSelector):
    """Compares selectors and sizes online; selects the smallest feature set that predicts as well as the best.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        None: sizes are compared too, and one candidate keeps every feature. An int or a fraction in (0, 1]: only
        selectors are compared, each at that size.
    learner : {"linear", "naive-bayes", "trees"} or estimator, default="linear"
        The learner of the comparison: a logistic regression on standardised features, Gaussian naive Bayes, or a small
        forest refitted on the last 2000 rows. Choose the one most similar to the learner that will use the features, or
        pass that learner: forests, trees and boosted trees (also within a `Refit` or a pipeline) are "trees", naive
        Bayes is "naive-bayes", anything else "linear". Sparse rows of more than 2000 columns are always compared with
        logistic regressions.
    task : {"classification", "regression"}, default="classification"
        Classification or regression. For regression, "linear" is a linear regression by the steps of the `learner`, if
        that is an `SGDRegressor`, or else of the default learner of a run; "naive-bayes" is unavailable.
    objective : {"auto", "brier", "accuracy", "auc"}, default="auto"
        What candidates are compared by: the Brier score relative to that of the proportions of the classes (a proper
        score, which also sees whether probabilities rank the rows), the error rate, or 1 - AUC (of two classes; of
        more, the Brier score). "auto": 1 - AUC if one of two classes has less than a tenth of the rows, otherwise the
        Brier score. A numeric target is always compared by absolute errors.
    tolerance : float, default=0.01
        Loss above that of the best set up to which a smaller one is preferred, including one standard error of the
        difference, and above that of all features, including two: in units of the `objective` (the Brier score of the
        class proportions is 1), or in mean absolute deviations of a numeric target. 0: the best set, whatever its size.
    categorical : "all", list of int or str, or bool mask, optional
        Categorical features. Text columns and categorical columns of a frame are always included. They are encoded by
        their mean target, with trees up to ten categories of a feature by their index, and missing values by the mean
        of the feature (:mod:`tamis.base.row_encoder`).
    prices : float, array, mapping of column to float, or PriceList, optional
        Price of each feature, in [0, 1e100]: features are ranked per unit of price, and of the sets that are as good as
        the best one, the cheapest is selected, rather than the smallest. A group is paid once.
    keep : list of int or str, optional
        Features that are always selected, in addition.
    groups : list of lists of int or str, optional
        Features that are selected together, such as the one-hot columns of a category: all, as soon as one is.
    prior : dict of str or int to float, optional
        Weights of features, from 0.001 to 1000; 1 for the others. Features are ranked by their relevance times their
        weight. Since sets are compared by their errors, weights that prove wrong cost little.
    random_state : int, RandomState or None, default=0
        Seed of the learners.

    Attributes
    ----------
    candidate_ : str
        The selected candidate: a selector and a size. "forward 5" keeps the 5 features that forward selection ranks
        first, "forward knee" those before the knee of its scores, "all" every feature.
    candidates_ : list of str
        The names of all candidates.
    sizes_ : ndarray of shape (n_candidates,), int64
        Number of features of each candidate.
    errors_ : ndarray of shape (n_candidates,), float64
        Mean error of each candidate's learner on the last rows: half of the tested ones, at most 2000. It is the error
        rate; if candidates are compared by AUC, it is 1 - AUC, and only rows of the rarer class count. For regression
        it is the mean absolute error, divided by the mean absolute deviation of the last 1000 targets from their mean;
        the error of a row is at most 5.
    excess_losses_ : ndarray of shape (n_candidates,), float64
        Loss of each candidate above that of the best one, in units of the `objective`.
    allowed_ : ndarray of shape (n_candidates,), float64
        Largest loss above the best one at which a candidate is as good: `tolerance` less a standard error of the paired
        difference, at least 0.
    measure_ : {"brier", "accuracy", "auc", "mae"}
        Current objective of the comparison.
    switches_ : list of dict
        Changes of the selected candidate and their reasons. Keys: "row", "from", "to", "error_from" and "error_to"
        (`errors_` of both at that row) and "why". "better": the previous candidate was too far behind. "smaller": the
        new candidate is as good, with fewer features. "drift": a drift was detected.
    comparison_ : dict of str to ndarray
        The history of the comparison, one entry per batch (or per several batches, when there were many): "n_seen",
        "followed" (number of the selected candidate), "errors" (as `errors_`, shape (n_records, n_candidates)),
        "n_tested" (rows on which they were measured).
    restarts_, drifts_ : list of int
        Row numbers at which the learners restarted, and at which the errors of the selected candidate rose.
    suspended_ : list of str
        Suspended selectors: the loss of their candidates exceeded the best one by 0.03.
    drift_detected_ : bool
        Whether a learner should be reset after the last batch: true after a restart, which only naive Bayes makes. A
        change of the candidate does not count: a linear learner that continues is more accurate than one trained on the
        last rows without the features that are now unselected.
    n_replay : int
        Number of last rows on which it should be retrained: those since the change, 100 to 500.
    scores_ : ndarray of shape (n_features,), float64
        From 1 / n_features to 1: the rank of each feature by the selected candidate (if that is "all", by the best
        other candidate).
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid, when the first rows are passed.
    DataError
        If rows, labels or weights are invalid (infinite, or beyond 1e100); the model is left unchanged.

    Notes
    -----
    Auto processes batches of 100 rows (the first ones end after 10, 25 and 50 rows), however many rows arrive per call,
    so a call with many rows is equivalent to one call per row, if the first one declares the ``classes``: otherwise a
    call reveals all its classes at its first row, in sorted order. Selection and scores are those of the last full
    batch. While more than an eighth of all rows is pending, reading the scores includes them.

    Initially every feature is kept. With linear learners and fewer rows than features it is a tenth, by forward
    selection: a linear learner of fewer rows than features fits any labels, also noise. (Not for sparse rows.)

    If one of two classes is rare, predicting the other one is almost always correct, and the error rates of the
    candidates hardly differ; nor does the Brier score show how well rows are ranked. The loss of a candidate on a row
    of the rare class is then the proportion of the other rows of the batch that its learner ranks above it; its mean is
    1 - AUC. When a class becomes rare (a tenth of the rows), or is no longer rare (a fifth), the losses are reset.

    The selectors compared are ``forward``, ``fires``, with up to 2000 features ``joint`` (unweighted), ``lasso`` and
    ``frozen`` (the weights of a lasso of all rows, and of the first 1000), and, with trees, ``boosted`` (the features
    of boosted trees in which each pays to be used), otherwise the Fisher score of all rows and of recent ones. With
    trees, the features of a candidate change when its forest is fitted. If features are added (:meth:`widen`), sizes
    that are fractions are updated when their number has doubled. A candidate keeps its losses and learner. A new
    candidate starts with the losses and the learner of the candidate that keeps every feature.

    Memory: two moments and a weight per feature, class and candidate, the state of the selectors, 2000 losses per
    candidate, and 500 rows (with trees, 2000).

    References
    ----------
    Breiman, Friedman, Olshen, Stone (1984). Classification and Regression Trees, section 3.4.3 (one standard error).
    Brier (1950). Verification of forecasts expressed in terms of probability, Monthly Weather Review 78.
    Peter, Diego, Hamprecht, Nadler (2017). Cost efficient gradient boosting, NeurIPS (``boosted``).
    McNemar (1947). Note on the sampling error of the difference between correlated proportions, Psychometrika 12.
    Satopaa et al. (2011). Finding a "kneedle" in a haystack, ICDCS Workshops. Page (1954). Continuous inspection
    schemes, Biometrika 41. Frias-Blanco et al. (2015), IEEE TKDE 27(3) (HDDM-A).

    Examples
    --------
    Two of the 30 features are relevant, and only a few are kept:

    >>> import numpy as np
    >>> from tamis import Auto
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 30))
    >>> y = X[:, 4] + X[:, 11] + 0.5 * rng.normal(size=3000) > 0
    >>> auto = Auto().fit(X, y)
    >>> auto.candidate_, auto.get_support(indices=True)
    ('forward 2', array([ 4, 11]))
    >>> every, few = auto.candidates_.index("all"), auto.candidates_.index("forward 2")
    >>> bool(auto.errors_[few] < auto.errors_[every])
    True
    """

    claims = Claims(
        equals_rows="exactly",
        merges_exactly=False,
        copies_differ="blocks and windows count rows; `joint` ignores weights",
    )
    _shapes = f"""
        _window fixed  _rankers late {_BLOCK}  _pending.size in [{_BLOCK}, {_BLOCK}]
        _n_rankers (=r)
        _n_rankers in [len(_rankers), len(_rankers)]
        _ranks (r, j) int64 in [0, j)
        _which (a) int64 in [-1, r)
        _size (a) int64 in [0, 2**62)
        _sizes[] in [1, 2**62)
        _masks (a, j) bool
        _own_size (a) bool
        _paired (its own)  _paired_young (its own)  _forests (its own)
        _paired.losses (n, a)  _paired_young.losses (m, a)
        _candidate in [0, a)
        _learners.W (a, o, j)  _learners.b (a, o)
        _forests.feature (a, t, u) int32  _forests.value (a, t, u, o)  _forests.importance (j)
        _fit_at in [0, 2**62)
        _lasso_at in [0, 2**62)
        _changed_at in [0, 2**62)
        _history.n_seen (g) int
        _history.followed (g) int64 in [0, a)
        _history.n_tested (g) int  _history.errors (g, a)
        _seed in [0, 2**31)
        _rows in [0, 2**62)
        _blocks in [0, 2**62)
        _n_tested in [0, 2**62)
        _counted_from in [0, 2**62)
        _begun in [0, a)
        _level in [0, 2**62)
        _alarm in [0, 2**62)
        _n_fresh in [0, 2**62)
        _laid_out_for in [1, 2**62)
        _rare in [-1, 2)
        _ahead float in [0, inf)
        _target? (its own)
        _resumed_at[] in [0, 2**62)
        restarts_[] in [0, 2**62)
        drifts_[] in [0, 2**62)
        _pending.X? (w?, j)
        _pending.n_rows in [0, max(_block_end() - _rows, 1))
        _pending.y? (z) codes
        _pending.weight? (z)
        _window[][0] (W, j) finite fill 0
        _window[][1] (W) codes
        _window[][2] (W) float in [0, inf)
    """

    _chooses_count = True
    accepts = Inputs(targets=("binary", "multiclass", "regression"), nan=True, categories=True)
    # For regression; the moments are those of its levels.
    _target: TargetLevels | None = field(default=None, init=False)
    _n_fresh = _WINDOW  # rows since the last drift

    n_features_to_select: int | float | None = parameter(number("(0, inf)"), None, default=None)  # type: ignore[assignment]
    _: KW_ONLY
    learner: Any = parameter(*_RANKERS, with_methods("an estimator", "fit", "predict"), default="linear")
    task: str = "classification"
    objective: str = parameter("auto", "brier", "accuracy", "auc", default="auto")
    tolerance: float = parameter(number("[0, 1]"), default=0.01)
    categorical: Any = None
    prices: Any = None
    keep: Any = None
    groups: Any = None
    prior: Any = None
    random_state: Any = 0

    def _is_regression(self) -> bool:
        return self.task == "regression"

    @property
    def _n_exact_categories(self) -> int:  # type: ignore[override]
        """Categories encoded by index for forests, which combine them; other learners do better with mean targets."""
        return JointScreening._n_exact_categories if self._kind == "trees" else 0

    # -- candidates ----------------------------------------------------------------------------------------------

    def _start(self, n_features: int) -> None:
        columns_of(self.categorical, n_features, feature_names(self))
        if self._is_regression() and self._kind == "naive-bayes":
            raise ValueError(
                "learner='naive-bayes' predicts classes, but task='regression': choose 'linear' or 'trees'."
            )
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._sizes = self._all_sizes(n_features)
        self._rankers: dict[str, Any] = {name: self._new(name) for name in self._names_of_rankers(n_features)}
        self._ranks = np.tile(np.arange(n_features), (len(self._rankers), 1))
        self._lay_out_candidates(n_features)
        self._old, self._young = ClassMoments(n_features, 0), ClassMoments(n_features, 0)
        self._target = TargetLevels() if self._is_regression() else None
        self._learners = self._new_learners(2)
        self._forests = Forests(len(self.candidates_), n_features, 1)
        self._fit_at, self._changed_at, self._lasso_at = _FIRST_FOREST, 0, _BLOCK
        self._begun = 0
        self._pending = WaitingBlock(_BLOCK, n_features)
        self._window: tuple[tuple[Rows, Array, Array], ...] = ()
        self._rows = self._blocks = 0
        self._rare, self._n_tested, self._counted_from = -1, 0, 0
        self._ahead = 0.0
        self._level = self._alarm = 0  # last row at which (1) was 0; row of the last alarm
        self._paired = self._paired_young = PairedLosses(len(self.candidates_), batch=_BLOCK)
        self._resumed_at: dict[str, int] = dict.fromkeys(self._rankers, 0)
        self._detector = HDDMA(1e-4, 1e-4, dependence="auto")
        self.suspended_ = list[str]()
        self.drift_detected_, self.restarts_, self.drifts_ = False, list[int](), list[int]()
        self.switches_ = list[dict[str, Any]]()
        self._history = History(len(self.candidates_))

    @property
    def _sizes_too(self) -> bool:
        """Whether sizes are compared too."""
        return self.n_features_to_select is None

    def _all_sizes(self, n_features: int) -> list[int]:
        if self.n_features_to_select is not None:
            return [n_to_select(self.n_features_to_select, n_features)]
        shares = _SIZES if n_features <= _MOST_DENSE else _SIZES[1:3]
        sizes = sorted({max(1, round(share * n_features)) for share in shares})
        return [size for size in sizes if size < n_features] or [1]

    def _names_of_rankers(self, n_features: int) -> list[str]:
        # The levels of wide sparse rows would be stored.
        return [name for name in _RANKERS[self._kind] if name != "joint" or n_features <= _MOST_DENSE]

    @property
    def _kind(self) -> str:
        """The kind of learner in the comparison."""
        if isinstance(self.learner, str):
            return self.learner
        kind = kind_of_learner(self.learner)
        return "linear" if self._is_regression() and kind != "trees" else kind

    def _new_learners(self, n_classes: int) -> LogisticRegressions:
        if self._is_regression():
            return LinearRegressions(len(self.candidates_), self._masks.shape[1])
        return LogisticRegressions(len(self.candidates_), n_classes, self._masks.shape[1])

    @property
    def _all_classes(self) -> Array | None:
        """The classes in the order of the selectors."""
        return None if self._is_regression() else np.arange(len(self.classes_))

    def _new(self, name: str) -> Any:
        """Return a new selector; None if the ranking is read from the moments."""
        prices = None if self._terms is None else 1.0 / self._terms.worth
        if name == "forward":
            return self._resize(ForwardPartialCorrelation(max_columns=1000, task=self.task, prices=prices))
        if name == "fires":
            return self._resize(FIRES(model="gaussian") if self._is_regression() else FIRES())
        return JointScreening(task=self.task, max_paired=_PAIRED, prices=prices) if name == "joint" else None

    def _lay_out_candidates(self, n_features: int) -> None:
        self._n_rankers, self._laid_out_for = len(self._rankers), n_features
        candidates = [("all", -1, n_features)] if self._sizes_too else []
        for which, name in enumerate(self._rankers):
            candidates += [(f"{name} {size}", which, size) for size in self._sizes]
            if self._sizes_too:
                own = name if name in _OWN_SIZE else f"{name} knee"
                candidates.append((own, which, n_features))
        self.candidates_ = [name for name, _, _ in candidates]
        self._own_size = np.array(
            [candidate.endswith("knee") or candidate in _OWN_SIZE for candidate in self.candidates_]
        )
        self._which = np.array([which for _, which, _ in candidates])
        self._size = np.array([size for _, _, size in candidates])
        self._masks = np.ones((len(candidates), n_features), dtype=bool)
        self._candidate = 0

    # -- further columns -----------------------------------------------------------------------------------

    def _widen(self, n_features: int) -> None:
        self._rankers = {
            name: copy.copy(one).widen(n_features) if hasattr(one, "n_seen_") else one
            for name, one in self._rankers.items()
        }
        self._old, self._young = copy.copy(self._old), copy.copy(self._young)
        self._old.widen(n_features, dense_too=True)
        self._young.widen(n_features, dense_too=True)
        self._learners = self._learners.widened(n_features)
        self._forests = self._forests.widened(n_features)
        self._pending = self._pending.widened(n_features)
        super()._widen(n_features)
        new = np.arange(self._ranks.shape[1], n_features)
        self._ranks = np.hstack([self._ranks, np.tile(new, (len(self._ranks), 1))])
        if n_features >= 2 * self._laid_out_for:
            self._update_sizes(n_features)
        self._size = np.where(self._which < 0, n_features, self._size)
        self._masks = self._ranks[self._which] < self._size[:, None]

    def _update_sizes(self, n_features: int) -> None:
        """Adapt the sizes to the number of columns; new candidates start with the statistics of "all"."""
        before, names = copy.copy(self), self._names_of_rankers(n_features)
        self._sizes = self._all_sizes(n_features)
        self._ranks = self._ranks[[at for at, name in enumerate(self._rankers) if name in names]]
        self._rankers = {name: self._resize(one) for name, one in self._rankers.items() if name in names}
        self.suspended_ = [name for name in self.suspended_ if name in names]
        self._lay_out_candidates(n_features)
        old, new = _keys(before.candidates_), _keys(self.candidates_)
        origin = np.array([old.get(key, 0) for key in new])
        goes_to = [new.get(key, 0) for key in old]
        keeps = np.array([candidate in before.candidates_ for candidate in self.candidates_]) & self._own_size
        self._size = np.where(keeps, before._size[origin], self._size)
        self._paired, self._paired_young = before._paired.select(origin), before._paired_young.select(origin)
        self._learners, self._forests = before._learners.select(origin), before._forests.select(origin)
        self._history = before._history.select(origin, np.array(goes_to))
        self._candidate = goes_to[before._candidate]

    def _resize(self, ranker: Any) -> Any:
        """Return a ranker that selects as many features as the largest candidate."""
        if getattr(ranker, "n_features_to_select", None) is None:
            return ranker
        resized = copy.copy(ranker).set_params(n_features_to_select=self._sizes[-1])
        if isinstance(resized, ForwardPartialCorrelation):
            # The features of every candidate are stable, not only those of the largest.
            resized._parts = tuple(self._sizes)
        return resized

    def _forget_columns(self, columns: Indices) -> None:
        self._rankers = {
            name: copy.copy(one).forget_columns(columns) if hasattr(one, "n_seen_") else one
            for name, one in self._rankers.items()
        }
        self._old, self._young = copy.copy(self._old), copy.copy(self._young)
        self._old.forget(columns, dense_too=True)
        self._young.forget(columns, dense_too=True)
        self._learners, self._pending = self._learners.without(columns), self._pending.without(columns)
        self._forests, self._fit_at = self._forests.without(columns), self._rows + _FIRST_FOREST
        super()._forget_columns(columns)

    # -- rows ----------------------------------------------------------------------------------------------

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        if not float(np.abs(X.data if sp.issparse(X) else X).max(initial=0)) < _LARGEST:
            raise DataError(f"X contains values beyond {_LARGEST:g}: rescale them.")
        self.drift_detected_ = False
        if sp.issparse(X) and X.shape[1] <= _MOST_DENSE:
            X = X.toarray()
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        start = 0
        while start < len(y):
            end = min(start + self._block_end() - self._rows - self._pending.n_rows, len(y))
            part = slice(start, end)
            self._pending = self._pending.with_rows(X[part], y[part], weight[part])
            if self._rows + self._pending.n_rows == self._block_end():
                self._take_block()
            start = end

    def _block_end(self) -> int:
        return next((n for n in _FIRST if n > self._rows), self._rows - self._rows % _BLOCK + _BLOCK)

    def _take_block(self) -> None:
        """Test all candidates on the pending rows, update learners and selectors, then select a candidate."""
        X, y, weight = self._pending.rows()
        n, self._pending = len(y), self._pending.empty_copy()
        self._make_room()
        before = self._target
        codes, self._target = (y, None) if before is None else before.with_rows(y)
        drifted = self._test(X, y, weight)
        self._train(X, y, codes, weight)
        self._rows, self._blocks = self._rows + n, self._blocks + 1
        self._keep(X, y, weight)
        if drifted:
            self._react_to_alarm()
        self._rank(X, y, weight)
        self._fit_forests()
        self._follow(drifted)

    def _make_room(self) -> None:
        n_classes = N_LEVELS if self._is_regression() else len(self.classes_)
        for name in ("_old", "_young"):
            if getattr(self, name).n_classes < n_classes:
                setattr(self, name, getattr(self, name).grown(n_classes))
        if self._learners.n_classes < n_classes and not self._is_regression():
            self._learners = self._new_learners(n_classes)
            self._forests = Forests(
                len(self.candidates_), self.n_features_in_, n_classes if n_classes > 2 else 1
            )

    # -- the comparison ------------------------------------------------------------------------------------------

    def _is_linear(self, X: Rows) -> bool:
        return self._kind == "linear" or sp.issparse(X)

    def _test(self, X: Rows, y: Array, weight: Array) -> bool:
        """Record the losses of all candidates before they learn the rows; return whether a drift was detected."""
        if np.count_nonzero(self._old.weight()) < 2:
            return False
        self._choose_measure()
        tested = self._tested_rows(y)
        n, is_forest = len(tested), self._kind == "trees" and not self._is_linear(X)
        if n == 0 or (is_forest and not self._forests.is_fitted):  # only one of the two classes
            self._history = self._history.with_block(self._rows + len(y), self._candidate, self.errors_, 0)
            return False
        wrong, losses, young = self._losses(X, y)
        self._n_tested += n
        self._history = self._history.with_block(self._rows + len(y), self._candidate, wrong.mean(axis=1), n)
        if young is not None:
            old, fresh = (
                errors[int(known.mean().argmin())].sum()
                for errors, known in ((wrong, self._paired), (young[0], self._paired_young))
            )
            self._ahead = max(0.0, self._ahead + float(old - fresh) - _SLACK * n)  # (1)
            self._level = self._rows if self._ahead == 0.0 else self._level
            self._paired_young = self._paired_young.with_rows(young[1].T, weight[tested])
        # At first linear learners are trained on all features, not those of their candidate, so their losses are not
        # compared.
        if self._rows >= _BLOCK or not self._is_linear(X):
            paired = self._paired.with_rows(losses.T, weight[tested])
            self._paired = paired.last(max(_BLOCK, self._n_tested // 2))
        unit = _MOST_LOSS if self._is_regression() else 1.0
        drifts = self._detector.drifts(wrong[self._candidate] / unit)
        if drifts:
            self.drifts_ = [*self.drifts_, *(self._rows + int(tested[at]) for at in drifts)]
            self._alarm = self._rows
        return bool(drifts) or self._is_late()

    def _choose_measure(self) -> None:
        """Evaluate the candidates on a class that has become rare, or on all rows again; then reset the losses."""
        rare = self._rarer_class()
        if rare != self._rare:  # earlier losses are of another measure
            self._rare, self._n_tested, self._counted_from = rare, 0, self._rows
            self._paired, self._paired_young = self._paired.last(0), self._paired_young.last(0)

    def _rarer_class(self) -> int:
        """Return the class whose rows are ranked against those of the other one; -1 if rows are not ranked."""
        if self._is_regression() or self.objective not in ("auto", "auc"):
            return -1
        counts = self._old.weight()
        share = (1.0 if self._rare < 0 else 2.0) * _RARE if self.objective == "auto" else 1.0  # hysteresis
        if self.objective == "auc" and self._rare >= 0 and len(counts) == 2:
            return self._rare
        is_rare = len(counts) == 2 and float(counts.min()) < share * float(counts.sum())
        return int(counts.argmin()) if is_rare else -1

    def _tested_rows(self, y: Array) -> Indices:
        """Return the rows on which the candidates are evaluated: all of them, or those of a rare class."""
        if self._rare < 0:
            return np.arange(len(y))
        values = np.flatnonzero(y == self._rare)
        return values if len(values) < len(y) else values[:0]

    def _losses(self, X: Rows, y: Array) -> tuple[Array, Array, tuple[Array, Array] | None]:
        """Return errors and losses of all candidates on the tested rows; those of young learners too, if they differ.

        If candidates are ranked, both are the proportion of the rows of the other class that are ranked above the row,
        and the mean of a candidate is 1 - AUC.
        """

        def both(scores: Array, to_shares: Any) -> tuple[Array, Array]:
            if self._is_regression():
                assert self._target is not None
                recent = self._target.recent
                unit = max(float(np.abs(recent - recent.mean()).mean()), 1e-300)
                errors = np.minimum(np.abs(scores[:, :, 0] - y[:, None]).T / unit, _MOST_LOSS)
                return errors, errors
            if self._rare >= 0:
                errors = auc_loss(scores if self._rare == 1 else -scores, y == self._rare)
                return errors, errors
            wrong = np.asarray(predictions(scores) != y, np.float64)
            if self.objective == "accuracy":
                return wrong, wrong
            return wrong, brier_loss(to_shares(scores), y, self._old.weight())

        if self._is_linear(X):
            scores = self._learners.scores(Scale(self._old).standardise(X), self._masks)
            return *both(scores, logistic_shares), None
        if self._kind == "trees":
            scores = self._forests.scores(X)
            is_share = scores.shape[2] == 1 and not self._is_regression()
            offset = 0.5 if is_share else 0.0
            return *both(scores - offset, lambda margins: margins + offset), None
        young = both(bayes_scores(X, self._young, self._masks), softmax_shares)
        return *both(bayes_scores(X, self._old, self._masks), softmax_shares), young

    def _initial_candidate(self, X: Rows) -> int:
        """Return the candidate that is selected until the candidates can be compared: usually all features.

        With fewer rows than features, a linear learner of all features fits any labels, and thus noise. Then it is
        forward selection, of the size nearest to a tenth.
        """
        dense_linear = self._kind == "linear" and not sp.issparse(X)
        if not dense_linear or not self._sizes_too or not _BLOCK <= self._rows < self.n_features_in_:
            return 0
        off = np.abs(self._size - _BEGIN * self.n_features_in_)
        return int(np.where((self._which == 0) & ~self._own_size, off, np.inf).argmin())

    def _is_late(self) -> bool:
        """Whether young learners are so far ahead that the old ones should be reset."""
        if self._rows - (self.restarts_[-1] if self.restarts_ else 0) < _WINDOW:
            return False  # old and young rows are the same
        alarmed = self._alarm > 0 and self._rows - self._alarm < _WINDOW
        return self._ahead > (_ALARMED if alarmed else _RESTART)

    def _train(self, X: Rows, y: Array, codes: Array, weight: Array) -> None:
        """Update the moments, of the classes or levels in `codes`, and the linear learners."""
        n, is_linear = len(y), self._is_linear(X)
        # That of the rows before, as in the test of these rows.
        scale = Scale(self._old) if is_linear and self._rows else None
        self._old, self._young = copy.copy(self._old), copy.copy(self._young)
        self._old.update(X, codes, weight)
        if is_linear:
            learners, scale = copy.copy(self._learners), scale or Scale(self._old)
            # At first on all features, so that a feature selected later has a weight.
            masks = self._masks if self._rows >= _BLOCK else np.ones_like(self._masks)
            if isinstance(learners, LinearRegressions):
                learners.fit_step(scale.standardise(X), y, weight, masks, self.learner, self._rows)
            else:
                rng = np.random.default_rng([self._seed, self._blocks, 1])
                learners.learn(scale.standardise(X), y, weight, masks, rng)
            self._learners = learners
        self._young.update(X, codes, weight, _YOUNG**n, _YOUNG ** np.arange(n - 1, -1, -1.0))

    def _keep(self, X: Rows, y: Array, weight: Array) -> None:
        """Store the last rows."""
        window, most = (*self._window, (X, y, weight)), _FOREST if self._kind == "trees" else _WINDOW
        while sum(len(labels) for _, labels, _ in window[1:]) >= most:
            window = window[1:]
        self._window = window

    def _react_to_alarm(self) -> None:
        """Resume suspended selectors, and drop earlier losses; young learners that are ahead replace the old ones."""
        self._resume(list(self.suspended_))
        self._changed_at, self._fit_at = self._rows, self._rows + _FIRST_FOREST
        self._paired = self._paired.last(_BLOCK)
        if not self._is_late():
            return
        X, y, weight = concatenate(self._window)
        self._n_fresh = int(np.clip(self._rows - self._level, _LEAST, _WINDOW))
        last = slice(-self._n_fresh, None)
        self._old = ClassMoments(self.n_features_in_, len(self.classes_))
        self._old.update(X[last], y[last], weight[last])
        self._paired = self._paired_young.last(self._n_fresh)
        self._ahead, self._level, self._alarm = 0.0, self._rows, 0
        self.drift_detected_, self.restarts_ = True, [*self.restarts_, self._rows]

    def _fit_forests(self) -> None:
        """Fit the forests on the last rows since a drift."""
        if self._kind != "trees" or self._rows < self._fit_at or sp.issparse(self._window[-1][0]):
            return
        if self._fit_at == self._changed_at + _FIRST_FOREST:
            self._paired = self._paired.last(0)  # losses of forests of the rows before a drift
        X, y, weight = concatenate(self._window)
        last = slice(-min(self._rows - self._changed_at, _FOREST), None)
        rng = np.random.default_rng([self._seed, self._blocks, 2])
        sample = Sample(X[last], y[last], weight[last], self._forests.value.shape[3])
        self._forests = self._forests.ranked(sample, rng)
        self._update_ranks()
        self._forests = self._forests.fit(sample, self._masks, rng)
        self._fit_at = self._rows + min(self._rows - self._changed_at, _FOREST)

    # -- selectors -----------------------------------------------------------------------------------------

    def _rank(self, X: Rows, y: Array, weight: Array) -> None:
        """Update the active selectors, and rank the features again."""
        self._suspend()
        for name, selector in self._rankers.items():
            if selector is None or name in self.suspended_:
                continue
            n_drifts = len(getattr(selector, "drifts_", ()))
            selector.partial_fit(X, y, self._all_classes, None if name == "joint" else weight)
            if len(getattr(selector, "drifts_", ())) > n_drifts:
                self._alarm = self._rows
        # With forests, sets change when these are fitted, so that they are evaluated.
        if not self._forests.is_fitted:
            self._update_ranks()

    def _update_ranks(self) -> None:
        """Rank the features by the scores of the active selectors."""
        ranks = self._ranks.copy()
        lasso = self._fit_lasso()
        for at, (name, selector) in enumerate(self._rankers.items()):
            if name in self.suspended_:
                continue
            if name in _LASSO:
                if lasso is not None and (name == "lasso" or self._rows <= _FROZEN):
                    ranks[at][lasso[0]] = np.arange(ranks.shape[1])
                    self._set_own_size(at, max(lasso[1], 1))
                continue
            scores = self._scores_without_selector(name) if selector is None else selector.scores_
            if name == "joint":
                kept = selector.get_support()
                scores = scores + kept * (1.0 + np.ptp(scores))
                self._set_own_size(at, int(kept.sum()))
            else:
                n_used = int((scores >= _BOOSTED).sum())
                if self._terms is not None and name != "forward":
                    scores = self._terms.per_price(scores)
                size = n_used if name == "boosted" else knee(scores, self._sizes[-1])
                self._set_own_size(at, max(size, 1))
            ranks[at] = _places(scores)
        self._ranks = ranks
        self._masks = self._sets(ranks)

    def _sets(self, ranks: Ints) -> Mask:
        """Return the features of each candidate: the first ones of its ranking, with those that go with them."""
        masks: Mask = ranks[self._which] < self._size[:, None]
        return masks if self._terms is None else self._terms.complete(masks)

    def _fit_lasso(self) -> tuple[Indices, int] | None:
        """Return the order of the features by a lasso, and how many of its weights are not 0, if it is due."""
        if self._rows < self._lasso_at:
            return None
        following = self._rows + min(self._rows // 4, _LASSO_EVERY)
        self._lasso_at = min(following, _FROZEN) if self._rows < _FROZEN else following
        return self._rankers["forward"].lasso_order(_PENALTY)

    def _set_own_size(self, ranker: int, size: int) -> None:
        self._size = np.where((self._which == ranker) & self._own_size, size, self._size)

    def _scores_without_selector(self, name: str) -> Floats:
        """Return the scores of a ranking by boosted trees, or by the moments."""
        if name == "boosted":
            return self._forests.boosted
        return fisher_score(self._old if name == "fisher" else self._young)

    def _suspend(self) -> None:
        """Suspend selectors that are far behind, and resume one that leads."""
        if len(self._paired) < _ENOUGH // 2:  # too few rows to judge
            return
        losses = self._paired.mean()
        best = losses.min()
        names = list(self._rankers)
        for at, name in enumerate(names):
            if self._rankers[name] is None:
                continue
            # The matrix of forward selection also yields the lasso.
            mine = [at, names.index("lasso")] if name == "forward" else [at]
            own = losses[np.isin(self._which, mine)].min()
            if name in self.suspended_:
                if own <= best:
                    self._resume([name])
            elif own > best + _HOPELESS and self._rows - self._resumed_at[name] >= _TRIAL:
                self.suspended_ = [*self.suspended_, name]

    def _resume(self, names: list[str]) -> None:
        """Resume selectors, refitted on the last rows."""
        for name in names:
            selector = self._new(name)
            for X, y, weight in self._window[:-1]:
                selector.partial_fit(X, y, self._all_classes, None if name == "joint" else weight)
            self._rankers = {**self._rankers, name: selector}
            self._resumed_at = {**self._resumed_at, name: self._rows}
        self.suspended_ = [name for name in self.suspended_ if name not in names]

    # -- following -----------------------------------------------------------------------------------------

    def _follow(self, drifted: bool) -> None:
        """Select the smallest candidate that is as good as the best."""
        errors = self.errors_
        begun = self._initial_candidate(self._window[-1][0])
        if not self.switches_ and begun != self._begun:
            candidate, why, self._begun = begun, "better", begun
        elif len(self._paired) < _DECIDED:
            return
        else:
            enough = _ENOUGH if self._rare < 0 else _ENOUGH_RARE
            cost = self._size if self._terms is None else self._terms.total(self._masks)
            candidate, why = preferred(
                cost, self._paired, self.tolerance, self._candidate, is_costly=self._kind == "linear",
                enough=enough, anchor=0 if self._sizes_too else None,
            )  # fmt: skip
        if candidate == self._candidate:
            return
        self.switches_ = [
            *self.switches_,
            {
                "row": self._rows, "from": self.candidates_[self._candidate], "to": self.candidates_[candidate],
                "error_from": float(errors[self._candidate]), "error_to": float(errors[candidate]),
                "why": "drift" if drifted else why,
            },
        ]  # fmt: skip
        self._candidate = candidate

    # -- merging -------------------------------------------------------------------------------------------

    def _claims(self) -> Claims:
        return replace(self.claims, first_rows=_BLOCK)

    def clone_unfitted(self) -> Self:
        """Return an unfitted selector with the classes of this one; see `RowSelector.clone_unfitted`."""
        _ = self.warming_up_  # raises if not fitted
        part = copy.copy(self)
        if not self._is_regression():
            part._unseen = np.arange(len(self.classes_))
        part.n_seen_ = 0
        part._start(self.n_features_in_)
        return part

    @atomic
    @fill_docstring(MERGE_DOCS)
    def merge(self, other: Self, when: str = "after") -> Self:
        """Add the rows of another selector, which precede or follow those of this one.

        If the later part still stores all of its rows (500; 2000 with trees), the earlier one learns them, as in one
        pass. Otherwise the comparison continues with the learners and losses of both parts, on the rankings of both.

        Parameters
        ----------
        other : Auto
            With the same columns and parameters, except the seed.
        %(when)s

        %(returns_and_raises)s
        ValueError
            If its columns, parameters or kind of learner differ, if its classes have another order, or if features are
            categorical.

        Notes
        -----
        Moments of the classes are added, exactly. ``forward``, ``fires`` and ``joint`` merge by their own rules; with
        more than 1000 columns, and ``joint`` for regression, those of the later part are used. Linear learners are
        averaged, weighted by rows. The losses are those of the last 2000 tested rows of both. After a restart in the
        later part, nothing is added. Drift between the parts is not tested.

        Examples
        --------
        >>> import numpy as np, tamis
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(6000, 30))
        >>> y = X[:, 4] + X[:, 11] + 0.5 * rng.normal(size=6000) > 0
        >>> parts = [tamis.Auto().fit(X[i : i + 2000], y[i : i + 2000]) for i in range(0, 6000, 2000)]
        >>> merged = tamis.merge_tree(parts)
        >>> merged.n_seen_, merged.get_support(indices=True)
        (6000, array([ 4, 11]))
        """
        check_choice("when", when, ("after", "before"))
        if self._kind != other._kind:
            raise ValueError(
                f"The learner is of kind {self._kind!r} here and {other._kind!r} there:"
                " merge selectors of the same kind."
            )
        if not check_mergeable(self, other, ("learner", "random_state")):
            return self
        reject_categories(self, other)
        earlier, later = (self, other) if when == "after" else (other, self)
        merged = copy.deepcopy(earlier)
        merged._append(copy.deepcopy(later))
        self.__dict__.update({**vars(merged), **self.get_params(deep=False)})
        return self

    def _append(self, later: Self) -> None:
        """Add a later part, which is changed."""
        joint: dict[str, Any] = {"n_seen_": self.n_seen_ + later.n_seen_}
        if not self._is_regression():
            codes, classes = joint_classes(self, later)
            joint.update(classes)
            if not np.array_equal(codes, np.arange(len(codes))):
                raise ValueError(
                    f"The classes are in the order {short_repr(self.classes_.tolist())} here and"
                    f" {short_repr(later.classes_.tolist())} there: declare them, by classes= in the first call."
                )
        if not self._rows + self._pending.n_rows:
            self.__dict__.update(vars(later))
        elif sum(len(y) for _, y, _ in later._window) == later._rows:  # it stores all of its rows
            self.__dict__.update(joint)
            pending = (later._pending.rows(),) if later._pending.n_rows else ()
            if later._window or pending:
                X, y, weight = concatenate((*later._window, *pending))
                encoder = self._intake.encode(X, {}, y, None, None)[1]
                self._intake = RowIntake(encoder, self._intake.levels, self._intake.n_unlabelled)
                self._learn(X, y, weight)
        else:
            for part in (self, later):
                part.__dict__.update(joint)
                if part._pending.n_rows:
                    part._take_block()
                part._make_room()
            later._prepend(self)
            self.__dict__.update(vars(later))
        self.__dict__.update(joint)

    def _prepend(self, earlier: Self) -> None:
        """Add an earlier part, unless the learners have restarted since."""
        n_before, has_restarted = earlier._rows, bool(self.restarts_)
        if not has_restarted:
            self._add_summaries(earlier)
        if self.candidates_ == earlier.candidates_:
            self._history = self._history.after(earlier._history)
            if not has_restarted:
                self._add_comparison(earlier)
        for name in ("_changed_at", "_alarm"):  # 0: never
            now = getattr(self, name)
            setattr(self, name, now + n_before if now else getattr(earlier, name))
        self._fit_at, self._level = self._fit_at + n_before, self._level + n_before
        self._counted_from += n_before
        self._resumed_at = {name: row + n_before for name, row in self._resumed_at.items()}
        self.restarts_ = [*earlier.restarts_, *(row + n_before for row in self.restarts_)]
        self.drifts_ = [*earlier.drifts_, *(row + n_before for row in self.drifts_)]
        moved = [{**switch, "row": switch["row"] + n_before} for switch in self.switches_]
        self.switches_ = [*earlier.switches_, *moved]
        self._rows, self._blocks = self._rows + n_before, self._blocks + earlier._blocks
        if not self._forests.is_fitted:
            self._update_ranks()
        self._follow(drifted=False)

    def _add_summaries(self, earlier: Self) -> None:
        """Add the moments of the classes, and the states of the selectors that are active in both parts."""
        if not self._is_regression():
            for mine, theirs, keep in (
                (self._old, earlier._old, 1.0), (self._young, earlier._young, _YOUNG**self._rows),
            ):  # fmt: skip
                theirs.fade(keep)
                mine.merge(theirs)
        for name, selector in self._rankers.items():
            before = earlier._rankers.get(name)
            if selector is None or before is None or name in (*self.suspended_, *earlier.suspended_):
                continue
            is_large = any(getattr(one, "_marginals", None) is not None for one in (selector, before))
            if not is_large and not (name == "joint" and self._is_regression()):
                selector.merge(before, when="before")

    def _add_comparison(self, earlier: Self) -> None:
        """Add losses of the same measure, and the linear learners."""
        if self._rare == earlier._rare and not self._changed_at:
            for name in ("_paired", "_paired_young"):
                mine, theirs = getattr(self, name), getattr(earlier, name)
                setattr(self, name, theirs.with_rows(mine.losses, mine.weight))
            self._n_tested += earlier._n_tested
        if self._learners.W.shape == earlier._learners.W.shape:
            share = earlier._rows / (earlier._rows + self._rows)
            self._learners = self._learners.average_with(earlier._learners, share)

    # -- read-outs -----------------------------------------------------------------------------------------

    def _now(self) -> Self:
        """Return self, or a copy that has learned the pending rows if these are many."""
        if not self._pending.n_rows or 8 * self._pending.n_rows <= self._rows:
            return self
        ahead = copy.deepcopy(self)
        ahead._take_block()
        return ahead

    def _selection(self) -> Mask:
        now = self._now()
        return now._masks[now._candidate].copy()

    def _relevance(self) -> Floats:
        now = self._now()
        candidate = now._candidate
        if now.candidates_[candidate] == "all":
            # Equal sets differ by rounding alone: the first of them.
            candidate = 1 + int(now._paired.mean()[1:].round(6).argmin())
        return 1.0 - now._ranks[now._which[candidate]] / now.n_features_in_

    @property
    def candidate_(self) -> str:
        """The selected candidate."""
        _ = self.warming_up_
        return self.candidates_[self._candidate]

    @property
    def errors_(self) -> Floats:
        """Mean error of each candidate on the last tested rows."""
        return self._history.recent(len(self._paired))

    @property
    def sizes_(self) -> Ints:
        """Number of features of each candidate."""
        _ = self.warming_up_
        return self._size.copy() if self._terms is None else self._masks.sum(axis=1)

    @property
    def excess_losses_(self) -> Floats:
        """Loss of each candidate above that of the best one."""
        _ = self.warming_up_
        return self._paired.behind()[0]

    @property
    def allowed_(self) -> Floats:
        """Largest loss above the best one at which a candidate counts as equally good."""
        _ = self.warming_up_
        return np.maximum(self.tolerance - self._paired.behind()[1], 0.0)

    @property
    def measure_(self) -> str:
        """Current objective of the comparison: "brier", "accuracy" or "auc"; "mae" for regression."""
        _ = self.warming_up_
        if self._is_regression():
            return "mae"
        if self._rare >= 0:
            return "auc"
        return "accuracy" if self.objective == "accuracy" else "brier"

    @property
    def n_replay(self) -> int:
        """Number of recent rows from which a learner should be refitted."""
        return self._n_fresh if self.drift_detected_ else _WINDOW

    @property
    def comparison_(self) -> dict[str, Array]:
        """The history of the comparison."""
        _ = self.warming_up_
        return self._history.records()

    def comparison_summary(self, n_points: int = 100) -> dict[str, Any]:
        """Return a summary of the comparison in plain values, for a report.

        Parameters
        ----------
        n_points : int, default=100
            Maximum number of sections of the history.

        Returns
        -------
        dict
            "candidates", "objective" (`measure_`), "measure" (of "accuracy": "accuracy", "auc" or "mae"), "n_seen" (at
            the end of each section), "followed" (the candidate there), "share" (of the rows, by candidate, in
            decreasing order), "accuracy" (recent, or the AUC, of each candidate, the best overall first), "switches"
            (the last 100), "n_switches", "restarts", "behind" and "allowed" (of each candidate, at the end), "regret"
            (loss of the selected candidate above that of all features, of a selection frozen after 1000 rows of about
            its size, of its periodic refresh ``lasso``, and with trees of ``boosted``, each with the standard error of
            the difference), "tolerance".
        """
        _ = self.warming_up_
        regret = {}
        for anchor in self._anchors():
            behind, error = self._paired.behind(anchor)
            regret[self.candidates_[anchor]] = [float(behind[self._candidate]), float(error[self._candidate])]
        return {
            "candidates": list(self.candidates_),
            "objective": self.measure_,
            "measure": "accuracy" if self.measure_ == "brier" else self.measure_,
            **self._history.summary(self.candidates_, n_points),
            "switches": [dict(one) for one in self.switches_[-100:]],
            "n_switches": len(self.switches_),
            "restarts": list(self.restarts_),
            "behind": dict(zip(self.candidates_, self.excess_losses_.tolist(), strict=True)),
            "allowed": dict(zip(self.candidates_, self.allowed_.tolist(), strict=True)),
            "regret": regret,
            "tolerance": float(self.tolerance),
        }

    def _anchors(self) -> list[int]:
        """Return the candidates that are simple alternatives.

        They are all features, the frozen selection nearest in size, its periodic refresh and the features of penalised
        boosted trees.
        """
        off = np.abs(self._size - self._size[self._candidate])
        names = [one.partition(" ")[0] for one in self.candidates_]
        frozen = min((at for at, name in enumerate(names) if name == "frozen"), key=lambda at: off[at])
        fixed = "all", "lasso", "boosted"
        return [at for at, one in enumerate(self.candidates_) if one in fixed or at == frozen]


def kind_of_learner(learner: Any) -> str:
    """Return which learner of the comparison is most similar to an estimator: "linear", "naive-bayes" or "trees".

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> pipeline = make_pipeline(StandardScaler(), RandomForestClassifier())
    >>> [kind_of_learner(one) for one in (SGDClassifier(), GaussianNB(), RandomForestClassifier(), pipeline)]
    ['linear', 'naive-bayes', 'trees', 'trees']
    >>> from tamis import Refit
    >>> kind_of_learner(Refit("lightgbm"))
    'trees'
    """
    inner = getattr(learner, "estimator", None)
    if hasattr(learner, "steps"):
        inner = learner.steps[-1][1] if learner.steps else None
    if inner is not None and not isinstance(inner, str):
        return kind_of_learner(inner)
    name = inner if isinstance(inner, str) else type(learner).__name__.lower()
    if any(word in name for word in _TREES):
        return "trees"
    return "naive-bayes" if "nb" in name or "bayes" in name else "linear"


def knee(scores: Array, most: int) -> int:
    """Return the number of sorted scores up to where the curve is farthest below its chord, 1 to `most`.

    >>> knee(np.array([0.1, 9.0, 8.0, 0.2, 0.15, 0.1]), 4)
    2
    """
    ordered = -np.sort(-np.minimum(scores, _LARGEST))[: most + 1]
    if len(ordered) < 2 or not ordered[0] > ordered[-1]:
        return 1
    heights = (ordered - ordered[-1]) / (ordered[0] - ordered[-1])
    below = _chord(len(ordered)) - heights
    return min(max(int(below.argmax()), 1), most)


@lru_cache(maxsize=16)
def _chord(n: int) -> Floats:
    """Return n heights from 1 to 0; `linspace` takes longer than the rest of `knee`."""
    return np.linspace(1.0, 0.0, n)


def _keys(candidates: list[str]) -> dict[tuple[str, str | int], int]:
    """Return the index of each candidate by its selector and its size or size number, in the order of the candidates.

    >>> _keys(["all", "fires 2", "fires 5", "fires knee"])
    {('all', 0): 0, ('fires', 0): 1, ('fires', 1): 2, ('fires', 'knee'): 3}
    """
    keys: dict[tuple[str, str | int], int] = {}
    for at, candidate in enumerate(candidates):
        selector, _, size = candidate.partition(" ")
        is_own = size == "knee" or candidate in _OWN_SIZE
        keys[selector, "knee" if is_own else sum(known == selector for known, _ in keys)] = at
    return keys


def _places(scores: Array) -> Ints:
    """Return the rank of each feature, from 0; ties in the order of the columns."""
    places = np.empty(len(scores), np.int64)
    places[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return places
