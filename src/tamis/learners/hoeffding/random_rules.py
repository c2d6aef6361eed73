"""RandomRules: an ensemble of rule sets, each on a random subset of the features and of the rows.

Almeida, Kosina, Gama: Random rules from data streams, ACM SAC 2013.

===========  ==================  ==================================================================
paper        here                meaning
===========  ==================  ==================================================================
N            `n_estimators`      rule sets
M            `max_features`      features of a rule set, sampled once
T_rand       `skip`              a set learns a row if a uniform number in [0, 1) is at least this
===========  ==================  ==================================================================

Each set is a :class:`VFDR` on its features. The probability of a class is the mean over the sets::

    P[y] = 1 / N sum_t P_t[y]                                                                                  (1)

The two kinds of votes of the paper: `leaf="majority"` uses the class frequencies of the covered rows, P[y], and
`leaf="nb"` the posterior of the rule's naive Bayes, P[y | x].

Deviations, each with its reason:

* Subsets are balanced: the numbers of subsets that contain two features differ by at most one. With independent draws,
  some features are in no subset.
* A random number depends only on the seed, the set and the row: the result does not depend on the batch size.
* Rules grow earlier than those of a single set, and are dropped when their errors rise. The defaults of VFDR and
  `drift=None` give the algorithm of the paper.
* The deviations of VFDR apply here too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, Mask, columns_of
from tamis._validation.parameters import SEED, allowed, integer, number, parameter
from tamis.learners.hoeffding.adaptive import uniform
from tamis.learners.hoeffding.vfdr import VFDR, Rule, RuleClassifier
from tamis.learners.subsets import COUNT_OR_FRACTION, balanced_subsets, resolve_max_features

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
