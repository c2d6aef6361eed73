"""VFDR: incremental decision rules.

Gama, Kosina: Learning decision rules from data streams, IJCAI 2011; Kosina, Gama: Very fast decision rules for
classification in data streams, Data Mining and Knowledge Discovery 29, 2015 (also AVFDR, which drops rules).

===============  ==================  ====================================================================
papers           here                meaning
===============  ==================  ====================================================================
N_min            `grace_period`      rows that a rule covers between two attempts to grow
delta            `delta`             probability that a literal is not the best one
tau              `tie_threshold`     the bound below which the best two features count as tied
===============  ==================  ====================================================================

The formulas are next to their code: literals and votes in `rule_set.py`, merits in `splits.py`, the prediction of a
rule in `leaves.py`.

Errata and deviations, each with its reason:

* The best literal is one side of the best split: the information gain of both sides determines feature and threshold,
  the entropy the side. The entropy of a single side is lowest for the smallest sides, so rules would cover few rows.
* n of the bound is the number of rows since the last literal, because the statistics are reset with it.
* After a literal is added, the rule (or the default rule that it was split from) starts with estimated class weights.
* A threshold replaces an older one that it implies, so a numeric feature occurs at most twice in a rule.
* An unordered set grows one literal at a time, as an ordered one does; the papers also grow a rule for each class.
* Errors are monitored by ADWIN, as elsewhere in this library; AVFDR uses a different detector.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, Mask, columns_of
from tamis._validation.parameters import SEED, allowed, integer, number, parameter
from tamis.learners.hoeffding import rule_set
from tamis.learners.hoeffding.adaptive import uniform
from tamis.learners.hoeffding.classifier import LEAVES, TreeClassifier
from tamis.learners.hoeffding.nodes import Pools, State, shapes_of_pools
from tamis.learners.hoeffding.records import shares_of_gain
from tamis.learners.subsets import COUNT_OR_FRACTION, balanced_subsets, resolve_max_features


@dataclass(frozen=True)
class Literal:
    """One condition of a rule.

    Attributes
    ----------
    feature : int
        Column.
    operator : {"<=", ">", "==", "!="}
        The first two for numbers, the others for categories.
    value : float
        Threshold or category.
    gain : float
        Information gain in bits, times the weight of the rule when the literal was added.
    """

    feature: int
    operator: str
    value: float
    gain: float


@dataclass(frozen=True)
class Rule:
    """A rule, or the default rule, which has no literals.

    Attributes
    ----------
    literals : tuple of Literal
        The rule covers a row if all of them hold.
    class_weights : ndarray of shape (n_classes,), float64
        Weight of the rows of each class, including the initial weight after its last literal.
    n_covered, n_right : int
        Number of rows covered since its last literal, and of those that it predicted correctly before learning them.
    """

    literals: tuple[Literal, ...]
    class_weights: Floats
    n_covered: int
    n_right: int


@dataclass(repr=False, eq=False, kw_only=True)
class RuleClassifier(TreeClassifier):
    """A classifier of rules: those of one set, or of several."""

    ordered: bool = parameter(True, False, default=False)
    drift: float | None = parameter(number("(0, 1)"), None, default=None)
    max_rules: int | None = parameter(integer("[1, inf)"), None, default=None)
    # A literal refers to one category; the rules of a set are bounded by `max_rules`.
    binary_splits: bool = field(default=True, init=False)
    max_depth: int | None = field(default=None, init=False)
    max_nodes: int | None = field(default=None, init=False)

    @abstractmethod
    def _every_rule(self) -> Iterable[Rule]:
        """Return the rules of all sets, with the columns of the input."""

    @property
    def feature_importances_(self) -> Floats:
        """Gain of the literals, summed by feature; the sum is 1, or 0 before the first literal."""
        literals = (literal for rule in self._every_rule() for literal in rule.literals)
        return shares_of_gain(((one.feature, one.gain) for one in literals), self.n_features_in_)


@dataclass(repr=False, eq=False)
class VFDR(RuleClassifier):
    """Interpretable rules that add a literal once the Hoeffding bound identifies the best one (VFDR, AVFDR).

    Parameters
    ----------
    grace_period : int, at least 1, default=200
        Rows that a rule covers between two attempts to grow.
    delta : float in (0, 1), default=1e-7
        Probability that the feature of a literal is not the best one.
    tie_threshold : float, at least 0, default=0.05
        If the Hoeffding bound is below this, the best feature is used even if the second best is equally good.
    ordered : bool, default=True
        A rule covers a row that meets all its conditions. True: only the first rule that covers a row learns from it
        and predicts it, so rules are read from top to bottom. False: all rules that cover a row learn from it and vote,
        so each rule can be interpreted separately.
    leaf : {"majority", "nb", "nb-adaptive"}, default="nb-adaptive"
        What a rule predicts, as a leaf of :class:`HoeffdingTree` does: its most frequent class, naive Bayes from its
        statistics, or the more accurate of the two.
    drift : float in (0, 1) or None, default=None
        False-alarm rate of the ADWIN that drops a rule when its errors rise (AVFDR); None: rules are never dropped.
    n_cuts : int, at least 1, default=10
        Number of candidate thresholds of a numeric feature, equally spaced over its range.
    categorical : None, "all", list of int or str, or bool mask, default=None
        Categorical features: any finite numbers.
    max_rules : int, at least 1, or None, default=None
        Maximum number of rules, not counting the default rule. This bounds the memory.

    Attributes
    ----------
    rules_ : list of Rule
        The rules, the oldest first, and the default rule at the end.
    n_rules_ : int
        Number of rules, without the default rule.
    n_dropped_ : int
        Number of rules dropped so far, and of resets of the default rule.
    feature_importances_ : ndarray of shape (n_features,), float64
        Gain of the literals of all rules: merit times weight, summed by feature and divided by the sum of all.
    %(fitted)s

    Notes
    -----
    A row costs O(literals + features times classes) for each rule that learns it, an attempt to grow O(features times
    classes times cuts). Memory: 5 float64 per rule, class and numeric feature, one per rule, class and category, and
    5 kB per rule with `drift`. A batch leaves the same state as its rows one at a time. Sparse rows are rejected.

    No literal holds for a missing value (NaN), so the row is covered by rules without literals on that feature only;
    the statistics ignore it. A new category differs from all categories in literals,
    and so do all after the first 1,000 of a feature.

    References
    ----------
    Gama, Kosina (2011). Learning decision rules from data streams. IJCAI. Kosina, Gama (2015). Very fast decision rules
    for classification in data streams. Data Mining and Knowledge Discovery 29.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import VFDR
    >>> from tamis.learners import export_text
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(20000, 3))
    >>> y = np.where((X[:, 0] > 0.7) | (X[:, 2] > 0.6), "b", "a")
    >>> model = VFDR().fit(X[:15000], y[:15000])
    >>> print(export_text(model, ["height", "width", "age"]))
    IF age > 0.64 THEN b
    ELSE IF height > 0.73 THEN b
    ELSE IF age <= 0.46 AND height <= 0.66 THEN a
    ELSE a
    >>> bool(model.score(X[15000:], y[15000:]) > 0.95)
    True
    """

    _shapes = f"""
        classes_ (c) labels  _numeric_ (p) int fill -1  _categorical_ (q) int  {shapes_of_pools("_rules_.pools")}
        _rules_.features (n, l) in [-1, p+q)  _rules_.operators (n, l) in [0, 4)  _rules_.values (n, l) finite
        _rules_.gains (n, l) finite  _rules_.order (n) int  _rules_.tally (n, 2) float in [0, inf)
        _rules_.detectors (n?, 629)  _categories_.values (v)  _categories_._table (2*v, 3) int
    """

    grace_period: int = 200
    delta: float = 1e-7
    tie_threshold: float = 0.05
    _: KW_ONLY
    ordered: bool = True

    # -- learning ------------------------------------------------------------------------------------------

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        super()._initialize(n_features, names)
        self._rules_ = rule_set.RuleSet(len(self._numeric_), len(self._categorical_), len(self.classes_))

    def _columns_in_use(self) -> Ints:
        return self._rules_.features[self._rules_.order[: self.n_rules_]]

    def _check_trees(self) -> None:
        self._rules_.check(len(self._numeric_), self._categories_)

    def _every_pool(self) -> list[Pools]:
        return [self._rules_.pools]

    def _learn(self, rows: Floats, codes: Ints) -> None:
        numbers, cells = self._encode(rows, learn=True)
        rules, growth, at = self._rules_, self._split_options(watched=True), 0
        max_rules = -1 if self.max_rules is None else int(self.max_rules)
        if self.drift is not None:
            rules.watch()
        options = rule_set.RuleOptions(bool(self.ordered), float(self.drift or 0.0), max_rules)
        while at < len(codes) or rules.pools.state[State.PENDING]:
            at = rule_set.learn(rules.arrays(), numbers, cells, codes, at, growth, options)
            if rules.pools.state[State.PENDING]:
                rules.make_room()

    # -- reading -------------------------------------------------------------------------------------------

    def _vote(self, rows: Array, numbers: Array, cells: Ints, votes: Array) -> None:
        rule_set.predict_votes(
            self._rules_.arrays(), numbers, cells, LEAVES.index(self.leaf), bool(self.ordered), votes
        )

    @property
    def rules_(self) -> list[Rule]:
        """The rules, the oldest first, and the default rule at the end."""
        check_is_fitted(self)
        rules = self._rules_
        nodes = [*rules.order[: self.n_rules_].tolist(), int(rules.pools.state[State.ROOT])]
        return [
            Rule(
                self._literals(node), rules.pools.weights[node].copy(), int(rules.tally[node, rule_set.SEEN]),
                int(rules.tally[node, rule_set.RIGHT]),
            )
            for node in nodes
        ]  # fmt: skip

    def _literals(self, node: int) -> tuple[Literal, ...]:
        rules, columns = self._rules_, np.concatenate([self._numeric_, self._categorical_])
        items = []
        for place in np.flatnonzero(rules.features[node] != rule_set.NOTHING):
            feature, operator = rules.features[node, place], int(rules.operators[node, place])
            value = float(rules.values[node, place])
            if feature >= len(self._numeric_):
                value = float(self._categories_.values[int(value)])
            gain = float(rules.gains[node, place])
            items.append(Literal(int(columns[feature]), rule_set.OPERATORS[operator], value, gain))
        return tuple(items)

    @property
    def n_rules_(self) -> int:
        """Number of rules, without the default rule."""
        check_is_fitted(self)
        return int(self._rules_.pools.state[State.LIVE]) - 1

    @property
    def n_dropped_(self) -> int:
        """Number of rules dropped so far, and of resets of the default rule."""
        check_is_fitted(self)
        return int(self._rules_.pools.state[State.DROPPED])

    def _every_rule(self) -> list[Rule]:
        return self.rules_


# -- RandomRules: an ensemble of rule sets, each on a random subset of the features and of the rows

# Almeida, Kosina, Gama: Random rules from data streams, ACM SAC 2013.
#
# ===========  ==================  ==================================================================
# paper        here                meaning
# ===========  ==================  ==================================================================
# N            `n_estimators`      rule sets
# M            `max_features`      features of a rule set, sampled once
# T_rand       `skip`              a set learns a row if a uniform number in [0, 1) is at least this
# ===========  ==================  ==================================================================
#
# Each set is a :class:`VFDR` on its features. The probability of a class is the mean over the sets::
#
#     P[y] = 1 / N sum_t P_t[y]                                                                                  (1)
#
# The two kinds of votes of the paper: `leaf="majority"` uses the class frequencies of the covered rows, P[y], and
# `leaf="nb"` the posterior of the rule's naive Bayes, P[y | x].
#
# Deviations, each with its reason:
#
# * Subsets are balanced: the numbers of subsets that contain two features differ by at most one. With independent
#   draws, some features are in no subset.
# * A random number depends only on the seed, the set and the row: the result does not depend on the batch size.
# * Rules grow earlier than those of a single set, and are dropped when their errors rise. The defaults of VFDR and
#   `drift=None` give the algorithm of the paper.
# * The deviations of VFDR apply here too.

_SET_PARAMETERS = sorted(allowed(VFDR).keys() - {"categorical"})


@njit()
def _rows_to_learn(seed: int, first: int, n_rows: int, skip: float) -> Mask:
    """Return which of the rows a set learns; `first` is the number of the first row."""
    is_learned = np.empty(n_rows, np.bool_)
    for i in range(n_rows):
        is_learned[i] = uniform(seed, first + i, 0) >= skip
    return is_learned


@dataclass(repr=False, eq=False)
class RandomRules(RuleClassifier):
    """An ensemble of interpretable rule sets on random subsets of the features and rows.

    Parameters
    ----------
    n_estimators : int from 1 to 1000, default=10
        Number of rule sets.
    max_features : "sqrt", int, float in (0, 1] or None, default=0.6
        Number of features of a set: this fraction of them, this many, sqrt(n_features) + 1, or all.
    skip : float in [0, 1), default=0.25
        Fraction of the rows that a set skips, sampled for each set and row.
    ordered : bool, default=False
        As in :class:`VFDR`: whether the first rule of a set that covers a row learns it and votes alone, or all do.
    drift : float in (0, 1) or None, default=0.002
        As in :class:`VFDR`: false-alarm rate of the ADWIN that drops a rule when its errors rise. None: never, as in
        the paper.
    grace_period, delta, tie_threshold, n_cuts
        As in :class:`VFDR`. The defaults of the first two are those of trees in a forest, because an ensemble tolerates
        wrong literals; VFDR's are `grace_period=200, delta=1e-7`.
    leaf : {"majority", "nb", "nb-adaptive"}, default="nb-adaptive"
        What a rule predicts, as in :class:`VFDR`. The first two are the votes of the paper.
    categorical : None, "all", list of int or str, or bool mask, default=None
        Categorical features: any finite numbers.
    max_rules : int, at least 1, or None, default=None
        Maximum number of rules of a set, not counting its default rule. This bounds the memory.
    random_state : int, at least 0, default=0
        Seed of the subsets, and of the rows that a set skips.

    Attributes
    ----------
    subsets_ : ndarray of shape (n_estimators, n_of_a_set), int64
        The features of each set, in ascending order.
    rule_sets_ : list of list of Rule
        The rules of each set, the oldest first, and its default rule at the end.
    n_rules_ : ndarray of shape (n_estimators,), int64
        Number of rules of each set, without its default rule.
    n_dropped_ : int
        Number of rules dropped so far, and of resets of a default rule, in all sets.
    feature_importances_ : ndarray of shape (n_features,), float64
        Gain of the literals of all rules: merit times weight, summed by feature and divided by the sum of all.
    %(fitted)s

    Notes
    -----
    Time and memory are those of `n_estimators` rule sets, each with its own features and 1 - `skip` of the rows. A
    batch leaves the same state as its rows one at a time. Missing values are treated as in :class:`VFDR`; sparse rows
    are rejected.

    References
    ----------
    Almeida, Kosina, Gama (2013). Random rules from data streams. ACM Symposium on Applied Computing.

    Examples
    --------
    Two of ten features determine the class, and the rules use them:

    >>> import numpy as np
    >>> from tamis import RandomRules
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(12000, 10))
    >>> y = ((X[:, 4] > 0.7) | (X[:, 7] > 0.6)).astype(int)
    >>> model = RandomRules().fit(X[:10000], y[:10000])
    >>> sorted(model.feature_importances_.argsort()[-2:].tolist())
    [4, 7]
    >>> model.subsets_[4]
    array([0, 3, 4, 6, 7, 8])
    >>> first = model.rule_sets_[4][0].literals[0]
    >>> first.feature, first.operator, round(first.value, 2)
    (7, '>', 0.64)
    >>> bool(model.score(X[10000:], y[10000:]) > 0.95)
    True
    """

    _shapes = """
        classes_ (k) labels  n_features_in_ (=j)  _is_category_ (j) bool  _size_ (=n)  _width_ (=m)
        _size_ in [len(_sets_), len(_sets_)]  subsets_ (n, m) in [0, j)
        _sets_[] (its own)  _sets_[].classes_ (k) labels
    """

    n_estimators: int = parameter(integer("[1, 1000]"), default=10)
    max_features: Any = parameter("sqrt", COUNT_OR_FRACTION, None, default=0.6)
    _: KW_ONLY
    skip: float = parameter(number("[0, 1)"), default=0.25)
    drift: float | None = 0.002
    grace_period: int = 50
    delta: float = 0.01
    random_state: int = parameter(SEED[0], default=0)

    # -- learning ------------------------------------------------------------------------------------------

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        self._is_category_ = np.zeros(n_features, dtype=bool)
        self._is_category_[columns_of(self.categorical, n_features, names)] = True
        self._size_ = int(self.n_estimators)
        self._width_ = resolve_max_features(self.max_features, n_features)
        self.subsets_ = balanced_subsets(self._size_, self._width_, n_features, int(self.random_state))
        self._sets_ = [self._new_set(columns) for columns in self.subsets_]

    def _new_set(self, columns: Ints) -> VFDR:
        rules = VFDR(categorical=self._is_category_[columns])
        rules.n_features_in_ = self._width_
        rules._start(self._width_, self.classes_ if len(self.classes_) else None)
        return rules

    def _check_trees(self) -> None:
        """Do nothing: each set is checked by itself."""

    def _grow(self, n_classes: int) -> None:
        for rules in self._sets_:
            rules.classes_ = self.classes_
            rules._grow(n_classes)

    def _encode(self, rows: Array, *, learn: bool) -> tuple[Array, Ints]:
        return rows, np.empty((len(rows), 0), dtype=np.int64)

    def _learn(self, rows: Floats, codes: Ints) -> None:
        seed = (int(self.random_state) << 24) + (1 << 23)
        shared = {name: getattr(self, name) for name in _SET_PARAMETERS}
        for t, (columns, rules) in enumerate(zip(self.subsets_, self._sets_, strict=True)):
            rules.__dict__.update(shared)  # parameters may have been set between two batches
            learned = _rows_to_learn(seed + t, self.n_seen_, len(codes), float(self.skip))
            rules._learn(rows[learned].take(columns, axis=1), codes[learned])
            rules.n_seen_ += int(learned.sum())

    # -- reading -------------------------------------------------------------------------------------------

    def _vote(self, rows: Array, numbers: Array, cells: Ints, votes: Array) -> None:
        proba = np.empty_like(votes)
        votes[:] = 0.0
        for columns, rules in zip(self.subsets_, self._sets_, strict=True):
            own = rows.take(columns, axis=1)
            rules._vote(own, *rules._encode(own, learn=False), proba)
            votes += proba
        votes /= len(self._sets_)  # (1)

    @property
    def rule_sets_(self) -> list[list[Rule]]:
        """The rules of each set, the oldest first, and its default rule at the end."""
        check_is_fitted(self)
        return [
            [_to_input_columns(rule, columns) for rule in rules.rules_]
            for columns, rules in zip(self.subsets_, self._sets_, strict=True)
        ]

    @property
    def n_rules_(self) -> Ints:
        """Number of rules of each set, without its default rule."""
        check_is_fitted(self)
        return np.array([rules.n_rules_ for rules in self._sets_])

    @property
    def n_dropped_(self) -> int:
        """Number of rules dropped so far, and of resets of a default rule, in all sets."""
        check_is_fitted(self)
        return sum(rules.n_dropped_ for rules in self._sets_)

    def _every_rule(self) -> Iterable[Rule]:
        return chain.from_iterable(self.rule_sets_)


def _to_input_columns(rule: Rule, columns: Ints) -> Rule:
    """Return a rule of a set with the column numbers of the ensemble's input."""
    literals = tuple(replace(one, feature=int(columns[one.feature])) for one in rule.literals)
    return replace(rule, literals=literals)
