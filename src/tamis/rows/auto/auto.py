"""Auto: selectors and sizes compared online; the columns of the currently most accurate one are selected.

Which selector, and how many features? A stream can answer by itself: each selector at each size is an *arm*, with a
cheap learner of its own that is tested on every block before it learns from it; every column is an arm too. The columns
kept are those of one arm, the one followed: the leader in the last rows, over a net, a fixed share (Herbster, Warmuth
1998) that bounds the regret. The rule is in :mod:`tamis.rows.auto.switching`.

==========  =================  ===========================================================================
symbol      here               meaning
==========  =================  ===========================================================================
A           ``arms_``          arms: every column, and each selector at each size
S_a         ``_masks[a]``      columns of arm a: the first of its selector's ranking
l_a         ``losses``         errors of arm a in a block, by the learner of S_a; where a class is rare, of its ranking
w_a         ``_weights``       weight of arm a in the net; that of the leader comes last
g           ``_ahead``         by how many errors young learners are ahead of old ones (1)
==========  =================  ===========================================================================

What is shared, so that many arms cost little more than one:

* One pass over the rows keeps the moments of the classes, old (all rows since the last restart) and young (fading over
  300 rows). The Fisher score of every column is read from both, at no further cost; so are the means and variances of
  naive Bayes for all arms at once, and the scale of the columns for the linear learners.
* The sizes of a selector share its ranking.

A restart: naive Bayes that remembers a world that is gone is worse than one that began lately. Two races run, one of
learners with the old moments, one with the young. With m0 and m1 the errors of the leader of each::

    g <- max(0, g + m0 - m1 - slack);   restart if g > h                                              (1)

(a cumulative sum: Page 1954). Then the old moments are those of the last 500 rows, and a learner beside should begin
again from these. Selectors whose arms are hopeless stop learning: their last sets stay in the race, and they restart
when a drift is found (HDDM-A on the errors of the arm followed, or a restart), or when they lead.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tamis._validation import Array, Rows, columns_of
from tamis._validation.parameters import COLUMNS, SEED, number, parameters
from tamis.base import RowSelector, n_to_select
from tamis.drift import HDDMA
from tamis.errors import DataError
from tamis.rows.auto.column_sets import Perceptrons, Scale, bayes_scores, misranked, predictions
from tamis.rows.auto.course import Course, fades_over, news_of
from tamis.rows.auto.switching import follow, lead, paired_margin, regret_bound, reweigh
from tamis.rows.fires.fires import FIRES
from tamis.rows.forward.forward import ForwardPartialCorrelation
from tamis.rows.joint.joint import JointScreening
from tamis.rows.screening.mean_variance import fisher_score
from tamis.rows.waiting_block import WaitingBlock, joined, padded
from tamis.summaries.batch import without_columns
from tamis.summaries.class_moments import ClassMoments

__all__ = ["Auto"]

_BLOCK = 100  # rows of a block
_FIRST = (10, 25, 50)  # the first blocks end sooner
_SIZES = (0.05, 0.1, 0.2, 0.4)  # fractions of the columns, where the user names none
_RARE = 0.1  # of the rows: where one of two classes has fewer, arms are judged by how they rank
_USUAL = 0.1  # fraction selected by forward selection if no size is given
_RATE, _SHARE = 0.05, 0.002  # eta, per error, and alpha of the net
_MARGIN = 0.006  # by how much it must be better, at least
_FAVOUR = {"naive-bayes": 0.005, "linear": 0.015}  # of every column: no selection is risked for less
_CAUTION = 2.0  # errors more, so that the first rows do not decide by chance
_SETTLED = 2  # rows a column, from which on the errors of a linear learner of every column say something
_YOUNG = 1.0 - 1.0 / 300.0  # what a row of the young moments fades by
_RESTART, _ALARMED, _SLACK = 8.0, 4.0, 0.01  # errors: h of (1), and after an alarm; and per row: its slack
_WINDOW, _LEAST = 500, 100  # rows that a restart begins with, at most and at least
_HOPELESS = 0.03  # how far behind in error lately
_TRIAL = 2000  # rows that a selector learns before it can be hopeless
_MOST_DENSE = 2000  # columns; sparse rows of no more are made dense
_MOST_JOINT = 200  # columns that pairs are counted of
_LARGEST = 1e100

# State:
#   _old, _young  moments of the classes
#   _learners     a Perceptron for each arm (linear)
#   _rankers      selectors by name; _ranks (R, J) int64, the place of each column with each of them
#   _which (A,), _size (A,) int64   ranking (-1: none) and size of each arm; _masks (A, J) bool
#   _weights (A + 1,) float64       of the arms and of the leader, in the net
#   _recent (2, A) float64          share of errors lately, of learners with old moments and with young ones
#   _apart (A,) float64             share of rows lately where one of the arm and every column errs; for linear learners
#   _rare         class that the arms are judged by, -1: every row; _n_tested rows of it since row _judged_from
#   _leaders (2,) int               who leads the two races
#   _window       blocks of the last rows


class Auto(RowSelector):
    """Compares selectors and sizes online, and selects the columns of the currently most accurate one.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        None: the race also tries several sizes, and one arm keeps every column. An int or a fraction in (0, 1]: only
        selectors are raced, each at that size.
    learner : {"linear", "naive-bayes"}, default="linear"
        The classifier that predicts in the race: a Perceptron on standardised columns, or Gaussian naive Bayes. Choose
        the one that is closer to the learner that will use the columns. Wide sparse rows (more than 2000 columns) are
        always raced with Perceptrons.
    categorical : "all", list of int or str, or bool mask, optional
        Columns whose values are categories. The race treats their codes as numbers.
    random_state : int, RandomState or None, default=0
        Seed of the switching rule's draws.

    Attributes
    ----------
    followed_ : str
        The arm followed now: a selector and a size. "forward 5" keeps the 5 columns that forward selection ranks first;
        "all" keeps every column.
    arms_ : list of str
        The names of all arms.
    weights_ : ndarray of shape (n_arms,), float64
        Probability that each arm is followed next; they add up to 1.
    errors_ : ndarray of shape (n_arms,), float64
        Recent error of each arm's learner: rows fade over half of those so far, 2000 at most. It is the error rate.
        Where one of two classes has less than a tenth of the rows, it is 1 - AUC, and the rows that fade are those of
        that class.
    measure_ : {"accuracy", "auc"}
        What the arms are judged by now.
    switches_ : list of dict
        When the selector moved to another arm, and why. Keys: "row", "from", "to", "error_from" and "error_to"
        (`errors_` of both at that row) and "why". "lead": the new arm has taken the lead. "drift": a drift was found.
        "net": the leader had been worse by so many errors that the switching rule left it, or took it back.
    race_ : dict of str to ndarray
        The course of the race, one entry per block (or per several blocks, when there were many): "n_seen", "followed"
        (number of the arm), "errors" (shape (n_blocks, n_arms): of each arm), "n_tested" (rows that they are of).
    restarts_, drifts_ : list of int
        Numbers of rows learned from when the learners restarted, and when the errors of the followed arm rose.
    resting_ : list of str
        Selectors that do not learn at the moment.
    drift_detected_ : bool
        Whether a learner should restart after the last batch: true after a restart of the race, which only naive Bayes
        makes. Another arm is no reason: a linear learner that continues is better than one that learns the last rows
        again, without the columns that are left out now.
    n_replay : int
        From how many of the last rows it should restart: those since the change, 100 to 500.
    scores_ : ndarray of shape (n_features,), float64
        From 1 / n_features to 1: the place of each column in the ranking of the followed arm (if that is "all", of the
        best other arm).
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is not as above, when the first rows arrive.
    DataError
        If rows, labels or weights cannot be learned from (NaN, or beyond 1e100); the model is left as it was.

    Notes
    -----
    Auto learns in blocks of 100 rows (the first blocks end after 10, 25 and 50 rows), wherever batches end. So a batch
    is the same as its rows one at a time, if the first call names the ``classes``: otherwise a batch reveals all its
    classes at its first row, in sorted order. Selection and scores are those of the last full block. While more than an
    eighth of all rows waits for a block to fill, reading the scores includes those rows.

    The race begins with every column. With linear learners and more columns than rows, it begins with forward selection
    of a tenth, until there are as many rows: a linear learner of fewer rows than columns fits any classes, also by
    chance. (Not with rows that stay sparse.) From two rows a column on, linear learners leave every column only for an
    arm that is better beyond chance: by two standard errors, on the same rows. They go back to it without a margin.

    Where one of two classes is rare, naming the other one is right nearly always, and hardly any arm is ever wrong. So
    from 500 rows on the error of an arm on a row of the rare class is the share of the block's other rows that its
    learner ranks above that row. Its mean is 1 - AUC. Until then no arm takes the lead. Where a class becomes rare (a
    tenth of the rows), or is so no longer (a fifth), the errors are counted from scratch.

    The selectors in the race are ``forward``, ``fires``, the Fisher score of all rows and of recent ones, and with up
    to 200 columns ``joint``, which counts every row once, whatever its weight. Where columns are added (:meth:`widen`),
    the sizes that are fractions stay until there are twice as many columns. Then they are computed again. An arm keeps
    its errors, weight and learner. A new arm begins with weight 0, and with the errors and the learner of the arm that
    keeps every column.

    Memory: two moments and a weight per column, class and arm, the state of the selectors, and 500 rows.

    References
    ----------
    Herbster, Warmuth (1998). Tracking the best expert, Machine Learning 32(2). Geulen, Voecking, Winkler (2010). Regret
    minimization for online buffering problems using the weighted majority algorithm, COLT. McNemar (1947). Note on the
    sampling error of the difference between correlated proportions, Psychometrika 12. Page (1954). Continuous
    inspection schemes, Biometrika 41. Frias-Blanco et al. (2015), IEEE TKDE 27(3) (HDDM-A).

    Examples
    --------
    Ten copies of one signal and a weaker second one among forty columns. Few columns do for naive Bayes, if they are
    not copies, and the race finds that out:

    >>> import numpy as np
    >>> from tamis import Auto
    >>> rng = np.random.default_rng(0)
    >>> signals = rng.normal(size=(6000, 2))
    >>> X = np.hstack([signals[:, [0] * 10 + [1]] + 0.1 * rng.normal(size=(6000, 11)), rng.normal(size=(6000, 29))])
    >>> y = signals[:, 0] + signals[:, 1] > 0
    >>> auto = Auto(learner="naive-bayes").fit(X, y)
    >>> auto.followed_, auto.get_support(indices=True)
    ('fires 2', array([ 7, 10]))
    >>> auto.errors_[[auto.arms_.index("all"), auto.arms_.index("fires 2")]].round(2)
    array([0.22, 0.04])
    """

    _equals_rows = "exactly"
    _copied_per_byte = 40
    _shapes = """
        _n_rankers (=r)
        _n_rankers in [len(_rankers), len(_rankers)]
        _ranks (r, j) int64 in [0, j)
        _which (a) int64 in [-1, r)
        _size (a) int64 in [0, 2**62)
        _sizes[] in [1, 2**62)
        _masks (a, j)
        _weights (a+1) float in [0, 1.01]
        _before? (a+1) float in [0, 1.01]
        _recent (2, a) float in [0, 1.01]
        _apart (a) float in [0, 1.01]
        _leaders[] in [0, a)
        _arm in [0, a)
        _expert in [0, a]
        _learners.W (a, o, j)  _learners.b (a, o)
        _course.n_seen (g)
        _course.followed (g) int64 in [0, a)
        _course.n_tested (g)  _course.errors (g, a)
        _seed in [0, 2**31)
        _rows in [0, 2**62)
        _blocks in [0, 2**62)
        _raced in [0, 2**62)
        _n_tested in [0, 2**62)
        _judged_from in [0, 2**62)
        _level in [0, 2**62)
        _alarm in [0, 2**62)
        _n_fresh in [0, 2**62)
        _laid_out_for in [1, 2**62)
        _rare in [-1, 2)
        _gaps finite
        _ahead float in [0, inf)
        _seen float in [0, 2**62]
        _woke[] in [0, 2**62)
        restarts_[] in [0, 2**62)
        drifts_[] in [0, 2**62)
        _pending.X? (w?, j)
        _pending.n_rows in [0, max(_block_end() - _rows, 1))
        _pending.y? (z) codes
        _pending.weight? (z)
        _window[][0] (W, j) finite
        _window[][1] (W) codes
        _window[][2] (W) float in [0, inf)
    """

    _chooses_count = True
    _n_fresh = _WINDOW  # rows since the last drift

    _allowed = parameters(
        n_features_to_select=(number("(0, inf)"), None),
        learner=("linear", "naive-bayes"),
        categorical=(COLUMNS, None),
        random_state=SEED,
    )

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        learner: str = "linear",
        categorical: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.n_features_to_select = n_features_to_select  # type: ignore[assignment]
        self.learner = learner
        self.categorical = categorical
        self.random_state = random_state

    # -- arms ----------------------------------------------------------------------------------------------

    def _start(self, n_features: int) -> None:
        columns_of(self.categorical, n_features, self._names())
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._sizes = self._all_sizes(n_features)
        self._rankers: dict[str, Any] = {name: self._new(name) for name in self._names_of_rankers(n_features)}
        self._ranks = np.tile(np.arange(n_features), (len(self._rankers), 1))
        self._lay_out_arms(n_features)
        self._old, self._young = ClassMoments(n_features, 0), ClassMoments(n_features, 0)
        self._learners = Perceptrons(len(self.arms_), 2, n_features)
        self._pending = WaitingBlock(_BLOCK, n_features)
        self._window: tuple[tuple[Rows, Array, Array], ...] = ()
        self._rows = self._blocks = self._raced = 0
        self._rare, self._n_tested, self._judged_from = -1, 0, 0
        self._gaps = self._ahead = 0.0
        self._level = self._alarm = 0  # rows at which (1) was 0 last, and at which there was an alarm
        self._recent, self._seen = np.zeros((2, len(self.arms_))), 0.0
        self._apart = np.zeros(len(self.arms_))
        self._woke = dict.fromkeys(self._rankers, 0)
        self._detector = HDDMA(1e-4, 1e-4)
        self.resting_ = list[str]()
        self.drift_detected_, self.restarts_, self.drifts_ = False, list[int](), list[int]()
        self.switches_ = list[dict[str, Any]]()
        self._course = Course(len(self.arms_))

    @property
    def _sizes_too(self) -> bool:
        """Whether sizes are raced too."""
        return vars(self)["n_features_to_select"] is None

    def _all_sizes(self, n_features: int) -> list[int]:
        if not self._sizes_too:
            return [n_to_select(self.n_features_to_select, n_features)]
        shares = _SIZES if n_features <= _MOST_DENSE else _SIZES[1:3]
        sizes = sorted({max(1, round(share * n_features)) for share in shares})
        return [size for size in sizes if size < n_features] or [1]

    def _names_of_rankers(self, n_features: int) -> list[str]:
        names = ["forward", "fires", "fisher", "fisher-recent"]
        return [*names, "joint"] if self._sizes_too and n_features <= _MOST_JOINT else names

    def _new(self, name: str) -> Any:
        """Return a new selector; None where the ranking is read from the moments."""
        if name == "forward":
            return self._resized(ForwardPartialCorrelation(max_columns=1000))
        if name == "fires":
            return self._resized(FIRES())
        return JointScreening() if name == "joint" else None

    def _lay_out_arms(self, n_features: int) -> None:
        self._n_rankers, self._laid_out_for = len(self._rankers), n_features
        arms = [("all", -1, n_features)] if self._sizes_too else []
        for which, name in enumerate(self._rankers):
            if name == "joint":
                arms.append((name, which, n_features))
            else:
                arms += [(f"{name} {size}", which, size) for size in self._sizes]
        self.arms_ = [name for name, _, _ in arms]
        self._which = np.array([which for _, which, _ in arms])
        self._size = np.array([size for _, _, size in arms])
        self._masks = np.ones((len(arms), n_features), dtype=bool)
        self._weights = np.zeros(len(arms) + 1)
        self._weights[-1] = 1.0
        self._leaders, self._expert, self._arm = [0, 0], len(arms), 0

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
        self._pending = self._pending.widened(n_features)
        self._window = tuple((padded(X, n_features), y, weight) for X, y, weight in self._window)
        new = np.arange(self._ranks.shape[1], n_features)
        self._ranks = np.hstack([self._ranks, np.tile(new, (len(self._ranks), 1))])
        if n_features >= 2 * self._laid_out_for:
            self._lay_out_again(n_features)
        self._size = np.where(self._which < 0, n_features, self._size)
        self._masks = self._ranks[self._which] < self._size[:, None]

    def _lay_out_again(self, n_features: int) -> None:
        """Let the sizes follow the columns. An arm keeps what is known of it; a new one begins as every column did."""
        race, names = copy.copy(self), self._names_of_rankers(n_features)
        self._sizes = self._all_sizes(n_features)
        self._ranks = self._ranks[[at for at, name in enumerate(self._rankers) if name in names]]
        self._rankers = {name: self._resized(one) for name, one in self._rankers.items() if name in names}
        self.resting_ = [name for name in self.resting_ if name in names]
        self._lay_out_arms(n_features)
        old, new = _keys(race.arms_), _keys(self.arms_)
        came_from = np.array([old.get(key, 0) for key in new])
        goes_to = [new.get(key, 0) for key in old]
        is_new = np.array([key not in old for key in new])
        keeps = [arm == "joint" and arm in race.arms_ for arm in self.arms_]  # it decides its size itself
        self._size = np.where(keeps, race._size[came_from], self._size)
        weights = np.append(np.where(is_new, 0.0, race._weights[came_from]), race._weights[-1])
        self._weights = self._before = weights / weights.sum()
        self._recent, self._apart = race._recent[:, came_from], race._apart[came_from]
        self._learners = race._learners.of(came_from)
        self._course = race._course.of(came_from, np.array(goes_to))
        self._leaders = [goes_to[leader] for leader in race._leaders]
        self._arm = goes_to[race._arm]
        self._expert = len(self.arms_) if race._expert == len(race.arms_) else goes_to[race._expert]
        if list(old) != list(new):
            self._raced, self._gaps = 0, 0.0  # the bound is of one set of arms

    def _resized(self, ranker: Any) -> Any:
        """Return a ranker that looks for as many columns as the largest arm has."""
        if getattr(ranker, "n_features_to_select", None) is None:
            return ranker
        found = copy.copy(ranker).set_params(n_features_to_select=self._sizes[-1])
        if isinstance(found, ForwardPartialCorrelation):
            found._parts = tuple(self._sizes)  # the columns of every arm hold still, not of the largest alone
        return found

    def _forget_columns(self, columns: NDArray[np.intp]) -> None:
        self._rankers = {
            name: copy.copy(one).forget_columns(columns) if hasattr(one, "n_seen_") else one
            for name, one in self._rankers.items()
        }
        self._old, self._young = copy.copy(self._old), copy.copy(self._young)
        self._old.forget(columns, dense_too=True)
        self._young.forget(columns, dense_too=True)
        self._learners, self._pending = self._learners.without(columns), self._pending.without(columns)
        self._window = tuple((without_columns(X, columns), y, weight) for X, y, weight in self._window)

    # -- rows ----------------------------------------------------------------------------------------------

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        if not float(np.abs(X.data if sp.issparse(X) else X).max(initial=0)) < _LARGEST:
            raise DataError(f"X holds values beyond {_LARGEST:g}: rescale them.")
        self.drift_detected_ = False
        if sp.issparse(X) and X.shape[1] <= _MOST_DENSE:
            X = X.toarray()
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        if not weight.all():
            X, y, weight = X[weight > 0.0], y[weight > 0.0], weight[weight > 0.0]
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
        """Test all arms on the pending rows, then let learners and selectors learn from them; follow the next arm."""
        X, y, weight = self._pending.rows()
        n, self._pending = len(y), self._pending.emptied()
        self._make_room()
        drifted = self._test(X, y, weight)
        self._teach(X, y, weight)
        self._rows, self._blocks = self._rows + n, self._blocks + 1
        self._keep(X, y, weight)
        if drifted:
            self._restart_if_late()
        self._rank(X, y, weight)
        self._follow(drifted)

    def _make_room(self) -> None:
        n_classes = len(self.classes_)
        for name in ("_old", "_young"):
            if getattr(self, name).n_classes < n_classes:
                grown = copy.copy(getattr(self, name))
                grown.grow(n_classes)
                setattr(self, name, grown)
        if self._learners.n_classes < n_classes:
            self._learners = Perceptrons(len(self.arms_), n_classes, self.n_features_in_)

    # -- the race ------------------------------------------------------------------------------------------

    def _is_linear(self, X: Rows) -> bool:
        return self.learner == "linear" or sp.issparse(X)

    def _test(self, X: Rows, y: Array, weight: Array) -> bool:
        """Count the errors of all arms (before they learn from the rows), and reweigh; return whether a drift shows."""
        self._before = self._weights
        if np.count_nonzero(self._old.weight()) < 2:
            return False
        self._choose_measure()
        tested = self._tested_rows(y)
        n = len(tested)
        if n == 0:  # no row of the rarer class, or no other
            self._course = self._course.with_block(self._rows + len(y), self._arm, self._recent[0], 0)
            return False
        wrong, young = self._errors(X, y)
        self._n_tested += n
        worth = weight[tested] / weight[tested].mean()
        losses = np.stack([wrong @ worth, young @ worth])
        old, fresh = losses[0, self._leaders[0]], losses[1, self._leaders[1]]
        if young is not wrong:
            self._ahead = max(0.0, self._ahead + float(old - fresh) - _SLACK * n)  # (1)
            self._level = self._rows if self._ahead == 0.0 else self._level
        favour = np.where(self._which < 0, _FAVOUR[self.learner], 0.0)
        # What linear learners pay for a change is counted in the net too.
        adjusted_losses = losses[0] - (n * favour if self.learner == "linear" else 0.0)
        adjusted_losses = np.append(adjusted_losses, adjusted_losses[self._leaders[0]])
        self._weights, gap = reweigh(self._weights, adjusted_losses, _RATE, _SHARE)
        self._raced, self._gaps = self._raced + 1, self._gaps + gap
        self._note(losses / n, (wrong - wrong[0]) ** 2 @ worth / n, n, len(y))
        begun = self._to_begin_with(self._rows + len(y), X)
        if begun != self._to_begin_with(self._rows, X):
            self._leaders = [begun, begun]
        # In the first rows linear learners learn with every column, and errors are uninformative about a rare class.
        taught = self._rows >= _BLOCK or not self._is_linear(X)
        if taught and self._rare == self._rarer_class():
            self._leaders = [
                lead(old, lately - favour, self._margins(old, lately[old], self._rows + len(y)))
                for old, lately in zip(self._leaders, self._recent, strict=True)
            ]
        found = self._detector.drifts(wrong[self._arm])
        if found:
            self.drifts_ = [*self.drifts_, *(self._rows + int(tested[at]) for at in found)]
            self._alarm = self._rows
        return bool(found) or self._is_late()

    def _choose_measure(self) -> None:
        """Judge the arms by the rows of a class that has become rare, or by all rows again; then count from scratch."""
        rare = self._rarer_class() if self._rows >= _WINDOW else -1
        if rare != self._rare:  # what was counted until now is another measure
            self._rare, self._n_tested, self._seen, self._judged_from = rare, 0, 0.0, self._rows
            self._recent, self._apart = np.zeros_like(self._recent), np.zeros_like(self._apart)

    def _rarer_class(self) -> int:
        """Return the class that is rare, -1 if none is."""
        counts = self._old.weight()
        share = (1.0 if self._rare < 0 else 2.0) * _RARE  # it goes back later than it comes
        is_rare = len(counts) == 2 and float(counts.min()) < share * float(counts.sum())
        return int(counts.argmin()) if is_rare else -1

    def _tested_rows(self, y: Array) -> NDArray[np.intp]:
        """Return the rows that the arms are judged by: all of them, or where a class is rare those of that class."""
        if self._rare < 0:
            return np.arange(len(y))
        found = np.flatnonzero(y == self._rare)
        return found if len(found) < len(y) else found[:0]

    def _errors(self, X: Rows, y: Array) -> tuple[Array, Array]:
        """Return the errors of all arms on the rows they are judged by, of old learners and of young ones.

        Where a class is rare, hardly any arm is ever wrong. There the error of a row is the share of the rows of the
        other class that are ranked above it, and the mean error of an arm is 1 - AUC.
        """

        def judged(scores: Array) -> Array:
            if self._rare < 0:
                return np.asarray(predictions(scores) != y, np.float64)
            found: Array = misranked(scores if self._rare == 1 else -scores, y == self._rare)
            return found

        if self._is_linear(X):
            young = wrong = judged(self._learners.scores(Scale(self._old).of(X), self._masks))
            return wrong, young
        wrong = judged(bayes_scores(X, self._old, self._masks))
        return wrong, judged(bayes_scores(X, self._young, self._masks))

    def _to_begin_with(self, n_rows: int, X: Rows) -> int:
        """Return the arm that is followed as long as no other is better by the margin: every column, as a rule.

        Where there are fewer rows than columns, a linear learner of every column fits any classes, so it fits chance.
        There it is forward selection, of the size that is nearest to a tenth.
        """
        dense_linear = self.learner == "linear" and not sp.issparse(X)
        if not dense_linear or not self._sizes_too or not _BLOCK <= n_rows < self.n_features_in_:
            return 0
        off = np.abs(self._size - _USUAL * self.n_features_in_)
        return int(np.where(self._which == 0, off, np.inf).argmin())

    def _margins(self, leader: int, error: float, n_rows: int) -> Array:
        """Return by how much each arm must be better than the leader, which errs so often.

        The weights of a linear learner go with the columns beside them, so a rash choice costs it more than naive
        Bayes. So there an arm must also be better by one standard error of the difference. Where every column leads, it
        must be better by two, on the same rows; and every column itself needs no margin, to be taken back at once. Both
        wait for two rows a column: before, every column has learned too little to be judged by its errors.
        """
        margins, n_tested = np.full(len(self.arms_), _MARGIN), n_rows if self._rare < 0 else self._n_tested
        if self.learner != "linear":
            return margins + _CAUTION / n_tested
        lately = fades_over(n_tested)
        settled = n_rows >= _SETTLED * self.n_features_in_
        if settled and self._which[leader] < 0:
            margins += paired_margin(self._apart, lately)
        else:
            margins += np.sqrt(2.0 * error / lately)
        if settled:
            margins[self._which < 0] = 0.0
        return margins

    def _is_late(self) -> bool:
        """Whether young learners are so far ahead that the old ones should restart."""
        if self._rows - (self.restarts_[-1] if self.restarts_ else 0) < _WINDOW:
            return False  # what is old is young itself
        alarmed = self._alarm > 0 and self._rows - self._alarm < _WINDOW
        return self._ahead > (_ALARMED if alarmed else _RESTART)

    def _note(self, errors: Array, apart: Array, n: int, n_rows: int) -> None:
        """Keep the share of errors of every arm, lately and for the course of the race, and where it is apart."""
        self._seen, news = news_of(self._seen, n, fades_over(self._n_tested))
        self._recent = self._recent + news * (errors - self._recent)
        self._apart = self._apart + news * (apart - self._apart)
        self._course = self._course.with_block(self._rows + n_rows, self._arm, errors[0], n)

    def _teach(self, X: Rows, y: Array, weight: Array) -> None:
        n, before = len(y), self._old
        self._old, self._young = copy.copy(self._old), copy.copy(self._young)
        self._old.update(X, y, weight)
        if self._is_linear(X):
            learners, scale = copy.copy(self._learners), Scale(before if self._rows else self._old)
            # At first with every column, so that one that comes in later has a weight.
            masks = self._masks if self._rows >= _BLOCK else np.ones_like(self._masks)
            rng = np.random.default_rng([self._seed, self._blocks, 1])
            learners.learn(scale.of(X), y, weight, masks, rng)
            self._learners = learners
        self._young.update(X, y, weight * _YOUNG ** np.arange(n - 1, -1, -1.0), _YOUNG**n)

    def _keep(self, X: Rows, y: Array, weight: Array) -> None:
        """Keep the last rows."""
        window = (*self._window, (X, y, weight))
        while sum(len(labels) for _, labels, _ in window[1:]) >= _WINDOW:
            window = window[1:]
        self._window = window

    def _restart_if_late(self) -> None:
        """After a drift all selectors learn again; if young learners are ahead, the old ones restart."""
        self._wake(list(self.resting_))
        if not self._is_late():
            return
        X, y, weight = joined(self._window)
        self._n_fresh = int(np.clip(self._rows - self._level, _LEAST, _WINDOW))
        last = slice(-self._n_fresh, None)
        self._old = ClassMoments(self.n_features_in_, len(self.classes_))
        self._old.update(X[last], y[last], weight[last])
        self._recent, self._leaders = self._recent[[1, 1]], [self._leaders[1], self._leaders[1]]
        self._ahead, self._level, self._alarm = 0.0, self._rows, 0
        self.drift_detected_, self.restarts_ = True, [*self.restarts_, self._rows]

    # -- selectors -----------------------------------------------------------------------------------------

    def _rank(self, X: Rows, y: Array, weight: Array) -> None:
        """Update the active selectors, and rank the columns again."""
        self._let_rest()
        ranks, codes = self._ranks.copy(), np.arange(len(self.classes_))
        for at, (name, selector) in enumerate(self._rankers.items()):
            if name in self.resting_:
                continue
            if selector is None:
                ranks[at] = self._places_without_selector(name)
                continue
            n_drifts = len(getattr(selector, "drifts_", ()))
            selector.partial_fit(X, y, codes, None if name == "joint" else weight)
            if len(getattr(selector, "drifts_", ())) > n_drifts:
                self._alarm = self._rows
            scores = selector.scores_
            if name == "joint":
                kept = selector.get_support()
                scores = scores + kept * (1.0 + np.ptp(scores))
                self._size = np.where(self._which == at, int(kept.sum()), self._size)
            ranks[at] = _places(scores)
        self._ranks = ranks
        self._masks = ranks[self._which] < self._size[:, None]

    def _places_without_selector(self, name: str) -> NDArray[np.int64]:
        """Return a ranking by the moments, without a selector."""
        return _places(fisher_score(self._old if name == "fisher" else self._young))

    def _let_rest(self) -> None:
        """Suspend selectors that are far behind, and resume one that leads."""
        best = self._recent[0].min()
        names = list(self._rankers)
        for at, name in enumerate(names):
            if self._rankers[name] is None:
                continue
            own = self._recent[0, self._which == at].min()
            if name in self.resting_:
                if own <= best:
                    self._wake([name])
            elif own > best + _HOPELESS and self._rows - self._woke[name] >= _TRIAL:
                self.resting_ = [*self.resting_, name]

    def _wake(self, names: list[str]) -> None:
        """Resume selectors, refitted from the last rows."""
        for name in names:
            selector = self._new(name)
            for X, y, weight in self._window[:-1]:
                selector.partial_fit(X, y, np.arange(len(self.classes_)), None if name == "joint" else weight)
            self._rankers = {**self._rankers, name: selector}
            self._woke = {**self._woke, name: self._rows}
        self.resting_ = [name for name in self.resting_ if name not in names]

    # -- following -----------------------------------------------------------------------------------------

    def _follow(self, drifted: bool) -> None:
        chance = float(np.random.default_rng([self._seed, self._blocks]).random())
        expert = follow(self._expert, self._before, self._weights, chance)
        arm = self._leaders[0] if expert == len(self.arms_) else expert
        why = "drift" if drifted else "lead" if expert == self._expert else "net"
        self._expert = expert
        if arm == self._arm:
            return
        self.switches_ = [
            *self.switches_,
            {
                "row": self._rows, "from": self.arms_[self._arm], "to": self.arms_[arm],
                "error_from": float(self._recent[0, self._arm]), "error_to": float(self._recent[0, arm]), "why": why,
            },
        ]  # fmt: skip
        self._arm = arm

    # -- read-outs -----------------------------------------------------------------------------------------

    def _now(self) -> Self:
        """Return itself, or a copy that has learned from the pending rows if these are many."""
        if not self._pending.n_rows or 8 * self._pending.n_rows <= self._rows:
            return self
        ahead = copy.deepcopy(self)
        ahead._take_block()
        return ahead

    def _selection(self) -> NDArray[np.bool_]:
        now = self._now()
        kept: NDArray[np.bool_] = now._masks[now._arm].copy()
        return kept

    def _relevance(self) -> NDArray[np.float64]:
        now = self._now()
        arm = now._arm
        if now.arms_[arm] == "all":
            arm = 1 + int(now._recent[0, 1:].argmin())
        found: NDArray[np.float64] = 1.0 - now._ranks[now._which[arm]] / now.n_features_in_
        return found

    @property
    def followed_(self) -> str:
        """The arm followed now."""
        _ = self.warming_up_
        return self.arms_[self._arm]

    @property
    def weights_(self) -> NDArray[np.float64]:
        """Probability that each arm is followed next."""
        _ = self.warming_up_
        weights: NDArray[np.float64] = self._weights[:-1].copy()
        weights[self._leaders[0]] += self._weights[-1]
        return weights

    @property
    def errors_(self) -> NDArray[np.float64]:
        """Recent error rate of each arm."""
        _ = self.warming_up_
        found: NDArray[np.float64] = self._recent[0].copy()
        return found

    @property
    def measure_(self) -> str:
        """Current measure of the arms: "accuracy", or "auc" if one of two classes is rare."""
        _ = self.warming_up_
        return "accuracy" if self._rare < 0 else "auc"

    @property
    def n_replay(self) -> int:
        """Number of recent rows from which a learner should be refitted."""
        return self._n_fresh if self.drift_detected_ else _WINDOW

    @property
    def race_(self) -> dict[str, NDArray[Any]]:
        """The course of the race."""
        _ = self.warming_up_
        return self._course.records()

    def race_summary(self, n_points: int = 100) -> dict[str, Any]:
        """Return a summary of the race in plain values, for a report.

        Parameters
        ----------
        n_points : int, default=100
            The most stretches that the course is cut into.

        Returns
        -------
        dict
            "arms", "measure" (`measure_`), "n_seen" (at the end of each stretch), "followed" (the arm there), "share"
            (of the rows, by arm, the one followed longest first), "accuracy" (recent, or the AUC, of each arm, the best
            overall first), "switches" (the last 100), "n_switches", "restarts", "regret_bound".
        """
        _ = self.warming_up_
        return {
            "arms": list(self.arms_),
            "measure": self.measure_,
            **self._course.summary(self.arms_, n_points),
            "switches": [dict(one) for one in self.switches_[-100:]],
            "n_switches": len(self.switches_),
            "restarts": list(self.restarts_),
            "regret_bound": self.regret_bound(),
        }

    def regret_bound(self, n_switches: int = 0) -> float:
        """Return the most errors by which the race expects to be behind the best arms in hindsight.

        With linear learners, the arm of every column is credited with fewer errors: 1.5 % of the rows.

        Parameters
        ----------
        n_switches : int, default=0
            How many changes of arm the comparison in hindsight may make.

        Returns
        -------
        float
        """
        _ = self.warming_up_
        return regret_bound(len(self.arms_) + 1, self._raced, self._gaps, _RATE, _SHARE, n_switches + 1)


def _keys(arms: list[str]) -> dict[tuple[str, int], int]:
    """Return the place of each arm by its selector, and by which of its sizes it has; their order is that of the arms.

    >>> _keys(["all", "fires 2", "fires 5"])
    {('all', 0): 0, ('fires', 0): 1, ('fires', 1): 2}
    """
    found: dict[tuple[str, int], int] = {}
    for at, arm in enumerate(arms):
        selector = arm.split(" ")[0]
        found[selector, sum(known == selector for known, _ in found)] = at
    return found


def _places(scores: Array) -> NDArray[np.int64]:
    """Return the place of each column, from 0; of equal scores the first column is first."""
    places = np.empty(len(scores), np.int64)
    places[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return places
