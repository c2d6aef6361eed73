"""GFSFS: groups of streaming features, selected by their conditional information about the class.

Li, Wu, Li, Ding: Online Group Feature Selection from Feature Streams, AAAI 2013, and Group Feature Selection with
Streaming Features, ICDM 2013 (GFSSF there). Covered: the selection of groups and of features within them, by
information and two penalties. With C the class and S the selected features::

    gain(F | S) = I(F; C | S) - E[I(F; C | S)], of noise with standard deviation sd           (1)
    a feature f enters the group g if gain(f | S, g) > lambda_2 + 3 sd                     (2)
    a group enters if gain(g | S) > lambda_1 + lambda_2 |g| + 3 sd                         (3)
    it replaces a selected group h if gain(g | S - h) - gain(h | S - h) > lambda_2 (|g| - |h|)    (4)

==================  ====================  =================================================================
paper               here                  meaning
==================  ====================  =================================================================
lambda_1            `group_penalty`       penalty of a group, in units of log(n) / n nats
lambda_2            `feature_penalty`     penalty of each feature, in the same units
S                   ``selected_``         features selected so far, in groups
==================  ====================  =================================================================

Errata and deviations, each with its reason:

* (1) subtracts the expected information under independence: its exact mean (hypergeometric) over permutations of the
  classes among the rows that agree in all selected features. Otherwise any feature with many values would add
  information, since few rows agree in several features. The gain must exceed the penalty by three standard deviations.
* The penalties of the paper were set per experiment. Here the unit is log(n) / n, the penalty of a parameter in BIC,
  which decreases with the number of rows, like chance information.
* A group none of whose features enters alone is tested as a whole, since columns may be relevant only jointly.
* Conditions (2) to (4) are those used by Smith, Cito, Lu, Veeramachaneni (2021), because the text of the two papers was
  not available. The order of the steps is our choice.
* Columns with many values are binned at their quantiles, as in :class:`tamis.dependence.g_square.GSquare`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from tamis._kernels import njit
from tamis._validation import Array, Ints
from tamis._validation.parameters import integer, number, parameter
from tamis.base.trace import ACCEPTED, CONSTANT, Verdicts
from tamis.columns.groups import GroupedOffers
from tamis.dependence.g_square import GSquare
from tamis.dependence.information import log_factorials

# -- The conditional information gain of a variable about a class, corrected for chance ------------------

# With n_uc the rows of value u of the variable and class c, in the stratum s of rows that agree in all conditions, and
# the margins a_u of the value, b_sc of the class in the stratum, N_s of the stratum::
#
#     n I(X; C | S) = sum n_uc log n_uc - sum a_u log a_u - sum b_sc log b_sc + sum N_s log N_s      (1)
#     n (I - E[I]) = sum_s sum_uc (n_uc log n_uc - E[t log t]), t hypergeometric (N_s, a_u, b_sc)     (2)
#
# E is over the permutations of the classes within each stratum, so the mean of (2) is exactly 0 for a variable that is
# independent of the class given the conditions, for any number of rows per stratum; a stratum of one row contributes 0.
# 2 n I is then nearly chi-square, whose variance is twice its mean, so its standard deviation is sqrt(E[I] / n)  (3)

_SPREAD = 12.0  # standard deviations of t beyond which (2) has no terms


@njit()
def _refine(strata: Array, values: Array, n_strata: int, n_values: int) -> tuple[Array, int]:
    label_of, labels, n = np.full(n_strata * n_values, -1, np.int64), np.empty(len(strata), np.int64), 0
    for i in range(len(strata)):
        cell = strata[i] * n_values + values[i]
        if label_of[cell] < 0:
            label_of[cell] = n
            n += 1
        labels[i] = label_of[cell]
    return labels, n


def refine(strata: tuple[Ints, int], values: Ints) -> tuple[Ints, int]:
    """Return the strata of rows that agree in the conditions and in one more variable, and their number.

    Parameters
    ----------
    strata : tuple of ndarray of shape (n_rows,), int64, and int
        The stratum of each row, from 0, and the number of strata.
    values : ndarray of shape (n_rows,), int64
        Codes from 0.

    Examples
    --------
    >>> refine((np.array([0, 0, 1]), 2), np.array([1, 0, 1]))
    (array([0, 1, 2]), 3)
    """
    labels, n = _refine(strata[0], values, strata[1], int(values.max(initial=0)) + 1)
    return labels, int(n)


@njit(strict=True)
def _mean(total: int, a: int, b: int, log_factorial: Array) -> float:
    """E[t log t] of a hypergeometric t, by the ratio of neighbouring probabilities."""
    low, high = max(0, a + b - total), min(a, b)
    centre = a * b / total
    reach = _SPREAD * np.sqrt(centre * (total - a) * (total - b) / (total * max(total - 1.0, 1.0))) + _SPREAD
    t, last = max(low, int(centre - reach)), min(high, int(centre + reach) + 1)
    p = np.exp(
        log_factorial[a] + log_factorial[b] + log_factorial[total - a] + log_factorial[total - b]
        - log_factorial[total] - log_factorial[t] - log_factorial[a - t] - log_factorial[b - t]
        - log_factorial[total - a - b + t]
    )  # fmt: skip
    mean = 0.0
    while t <= last:
        if t > 1:
            mean += p * t * np.log(t)
        p *= (a - t) * (b - t) / ((t + 1.0) * (total - a - b + t + 1.0))
        t += 1
    return mean


@njit(strict=True)
def _gain(
    fine: Array, n_fine: int, coarse: Array, n_coarse: int, target: Array, n_classes: int, log_factorial: Array
) -> tuple[float, float]:  # fmt: skip
    of_fine, of_coarse = np.zeros((n_fine, n_classes), np.int64), np.zeros((n_coarse, n_classes), np.int64)
    parent = np.zeros(n_fine, np.int64)
    for i in range(len(target)):
        of_fine[fine[i], target[i]] += 1
        of_coarse[coarse[i], target[i]] += 1
        parent[fine[i]] = coarse[i]
    gain, chance = 0.0, 0.0
    for u in range(n_fine):
        a, around = of_fine[u].sum(), of_coarse[parent[u]]
        size = around.sum()
        if a == size:  # the stratum is not divided
            continue
        for c in range(n_classes):
            b = around[c]
            if 0 < b < size:
                mean, t = _mean(size, a, b, log_factorial), of_fine[u, c]
                gain += (t * np.log(t) if t > 1 else 0.0) - mean  # (2)
                # Summed over values and classes, the marginal terms of (1).
                chance += mean - a * b / size * np.log(a * b / size)
    return gain / len(target), max(chance, 0.0) / len(target)


def conditional_gain(fine: tuple[Ints, int], coarse: tuple[Ints, int], target: Ints) -> tuple[float, float]:
    """Return the information gain of refining the strata, corrected for chance, and its standard deviation.

    Parameters
    ----------
    fine, coarse : tuple of ndarray of shape (n_rows,), int64, and int
        Strata with and without the variable, as :func:`refine` returns them.
    target : ndarray of shape (n_rows,), int64
        Codes of the classes, from 0.

    Returns
    -------
    gain, deviation : float
        (2) per row, and (3), the standard deviation for an irrelevant variable, in nats.

    Examples
    --------
    A variable that equals the class, and one with a different value in every row:

    >>> target, all_rows = np.tile([0, 1], 50), (np.zeros(100, dtype=np.int64), 1)
    >>> same, unique = refine(all_rows, target), (np.arange(100), 100)
    >>> [round(value, 3) for value in conditional_gain(same, all_rows, target)]
    [0.688, 0.007]
    >>> conditional_gain(unique, all_rows, target)[0]
    0.0
    """
    n_classes = int(target.max(initial=0)) + 1
    gain, chance = _gain(*fine, *coarse, target, n_classes, log_factorials(len(target)))
    return float(gain), math.sqrt(float(chance) / len(target))


# -- GFSFS: groups of streaming features, selected by their conditional information about the class

_EQUAL = 1e-12  # nats: largest difference of two equal gains by rounding
_DEVIATIONS = 3.0  # margin of a gain over its penalty: with many strata, gains by chance vary widely


@dataclass(frozen=True, eq=False)
class Member:
    """A feature: its position in the order of offers, and its values as codes, shape (n_rows,)."""

    place: int
    codes: Ints


@dataclass(frozen=True, eq=False)
class GroupSearch:
    """The target and the penalties of groups and features.

    Attributes
    ----------
    target : ndarray of shape (n_rows,), int64
        Codes from 0.
    of_group, of_feature : float
        Penalties in nats.
    """

    target: Ints
    of_group: float
    of_feature: float

    def gain(self, members: Iterable[Member], others: Iterable[Member]) -> float:
        """Return (1), the gain of the members given others."""
        return self._gain_and_deviation(members, others)[0]

    def _gain_and_deviation(self, members: Iterable[Member], others: Iterable[Member]) -> tuple[float, float]:
        strata: tuple[Ints, int] = np.zeros(len(self.target), dtype=np.int64), 1
        for member in others:
            strata = refine(strata, member.codes)
        fine = strata
        for member in members:
            fine = refine(fine, member.codes)
        return conditional_gain(fine, strata, self.target)

    def add(self, candidates: list[Member], groups: list[list[Member]]) -> list[list[Member]]:
        """Return the selected groups after the candidates arrive as a group."""
        selected = [*chain(*groups)]
        members = self.choose(candidates, selected)
        if self._is_worth_it(members, selected):  # (3)
            return self._without_redundant([*groups, members])
        return self._replace_best(candidates, groups)

    def choose(self, candidates: list[Member], selected: list[Member]) -> list[Member]:
        """Return the candidates that enter their group, given the selected features; all candidates if none enters."""
        members: list[Member] = []
        for candidate in candidates:
            if self._exceeds([candidate], [*selected, *members], self.of_feature):  # (2)
                members.append(candidate)
            else:
                members = self._with_better(candidate, members, selected)
        if not members and self._is_worth_it(candidates, selected):
            members = candidates
        return self._drop_weak(members, selected)

    def _with_better(self, candidate: Member, members: list[Member], selected: list[Member]) -> list[Member]:
        """Return the members with one of them replaced by the candidate, if its gain given the others is larger."""
        best, chosen = _EQUAL, members
        for old in members:
            rest = [member for member in members if member is not old]
            others = [*selected, *rest]
            if self._exceeds([candidate], others, self.of_feature):
                more = self.gain([candidate], others) - self.gain([old], others)
                if more > best:
                    best, chosen = more, [*rest, candidate]
        return chosen

    def _drop_weak(self, members: list[Member], selected: list[Member]) -> list[Member]:
        """Return the members without those whose gain given the others is too small, in order of arrival."""
        needed = members
        for member in members if len(members) > 1 else ():
            rest = [other for other in needed if other is not member]
            if self.gain([member], [*selected, *rest]) <= self.of_feature:
                needed = rest
        return needed

    def _is_worth_it(self, members: list[Member], others: list[Member]) -> bool:
        return bool(members) and self._exceeds(members, others, self._cost(members))

    def _exceeds(self, members: list[Member], others: list[Member], cost: float) -> bool:
        """Return whether the gain of new members significantly exceeds their cost."""
        gain, deviation = self._gain_and_deviation(members, others)
        return gain > cost + _DEVIATIONS * deviation

    def _cost(self, members: list[Member]) -> float:
        return self.of_group + self.of_feature * len(members)

    def _replace_best(self, candidates: list[Member], groups: list[list[Member]]) -> list[list[Member]]:
        """Return the groups with the one replaced by the candidates for which the gain is largest, if any."""
        best, chosen = _EQUAL, groups
        for old in groups:
            rest = [group for group in groups if group is not old]
            others = [*chain(*rest)]
            members = self.choose(candidates, others)
            if not self._is_worth_it(members, others):
                continue
            saved = self.of_feature * (len(old) - len(members))
            more = self.gain(members, others) - self.gain(old, others) + saved
            if more > best:  # (4)
                best, chosen = more, [*rest, members]
        return chosen

    def _without_redundant(self, groups: list[list[Member]]) -> list[list[Member]]:
        """Return the groups without earlier features and groups that the last group makes redundant."""
        for old in groups[:-1]:
            others = [*chain(*(group for group in groups if group is not old))]
            needed = [*old]
            for member in old:
                rest = [other for other in needed if other is not member]
                if self.gain([member], [*others, *rest]) <= self.of_feature:
                    needed = rest
            kept = [needed] if needed and self.gain(needed, others) > self._cost(needed) else []
            place = next(i for i, group in enumerate(groups) if group is old)
            groups = [*groups[:place], *kept, *groups[place + 1 :]]
        return groups


@dataclass(eq=False, repr=False)
class GFSFS(GroupedOffers):
    """Keeps groups of features that add information about the class, and the features of each group that do.

    Parameters
    ----------
    groups : "blocks", dict of str to list of str or int, or None, default="blocks"
        "blocks": the columns of each block of offers are a group; `offer` is a group of one. A dict: the columns of
        each group, by name or position in the order of offers; columns of a group must be adjacent within a block, and
        any other column is a group of one. None: every column is a group of one.
    group_penalty : float, default=1.0
        lambda_1, in units of log(n) / n nats, 0 or more.
    feature_penalty : float, default=1.0
        lambda_2, in units of log(n) / n nats, 0 or more.
    n_bins : int or None, default=None
        Number of bins of equal frequency for a column with more than 16 values, 2 to 16. None: 4, or fewer for few
        rows.
    missing : {"refuse", "mean"}, default="refuse"
        What to do with NaN. "refuse": raise an error. "mean": replace it by the mean of the feature, recorded in the
        trace.
    trace : {"all", "selected"}, default="all"
        Whether to record each offer, or only accepted ones. ``statistic`` is the gain of the feature when
        it was tested, in nats, ``threshold`` lambda_2.

    Attributes
    ----------
    selected_, trace_, n_offered_, stopped_, classes_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.ColumnSelector`. An accepted feature may be removed later.
    selected_groups_ : list of list of str
        The selected features of each selected group.

    Raises
    ------
    ValueError
        If a parameter is invalid, or a weight is not an integer; raised when the target arrives.
    DataError
        If the target or a column is invalid, or the columns of a group are not adjacent. The state is then unchanged.

    Notes
    -----
    Time O(n q) for a group, and O(n h) for each of its features, q the number of selected features and h that of
    selected groups; memory O(n q). Deterministic.

    References
    ----------
    Li, Wu, Li, Ding (2013). Group Feature Selection with Streaming Features. IEEE ICDM.

    Examples
    --------
    Five sensors with four columns each. The class depends on two columns of the third sensor, and one of the last:

    >>> import numpy as np
    >>> from tamis import GFSFS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 20))
    >>> y = (X[:, 9] + X[:, 11] + X[:, 18] > 0).astype(int)
    >>> sensors = {f"sensor {k}": list(range(4 * k, 4 * k + 4)) for k in range(5)}
    >>> GFSFS(sensors).fit(X, y).selected_groups_
    [['x9', 'x11'], ['x18']]

    Two columns that are only jointly relevant:

    >>> y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)
    >>> GFSFS().start(y).offer_many(X[:, :2]), GFSFS(None).start(y).offer_many(X[:, :2])
    (array([ True,  True]), array([False, False]))
    """

    _whole_blocks = True
    _counts_rows = True
    _statistic = "gain"
    _shapes = """
        _target (n) codes  _codes (q, n) in [0, 16)  _place_of (q) in [0, n_offered_)  _sizes (*) in [1, q]
    """

    groups: Any = "blocks"
    _: KW_ONLY
    group_penalty: float = parameter(number("[0, inf)"), default=1.0)
    feature_penalty: float = parameter(number("[0, inf)"), default=1.0)
    n_bins: int | None = parameter(integer("[2, 16]"), None, default=None)

    @property
    def selected_groups_(self) -> list[list[str]]:
        """The selected features of each selected group."""
        check_is_fitted(self)
        name_of = dict(self._kept)
        return [[name_of[member.place] for member in group] for group in self._groups()]

    # -- hooks ---------------------------------------------------------------------------------------------

    def _begin(self, y: Array, weight: Array) -> None:
        self._coder: GSquare = GSquare(n_bins=self.n_bins, dependence="independent").start(y)
        self._target = np.unique(y, return_inverse=True)[1].astype(np.int64)
        self._set_groups([])

    def _consider_block(self, columns: Any) -> Verdicts:
        return self._consider_groups([columns[:, [j]] for j in range(columns.shape[1])])

    def _consider_group(self, columns: Any) -> Verdicts:
        return self._consider_groups([columns])

    def _consider_groups(self, blocks: list[Any]) -> Verdicts:
        """Decide on groups of columns, one after the other."""
        verdicts = Verdicts.empty(sum(block.shape[1] for block in blocks))
        unit = math.log(len(self._target)) / len(self._target)
        search = GroupSearch(self._target, unit * self.group_penalty, unit * self.feature_penalty)
        before, groups, start = set(self._place_of.tolist()), self._groups(), 0
        for block in blocks:
            candidates = self._candidates(block, start, verdicts)
            selected = [*chain(*groups)]
            for member in candidates:
                at = member.place - self.n_offered_
                verdicts.statistic[at] = search.gain([member], selected)
                verdicts.threshold[at] = search.of_feature
            groups = search.add(candidates, groups) if candidates else groups
            now = {member.place for group in groups for member in group}
            for member in candidates:
                if member.place in now:
                    verdicts.decision[member.place - self.n_offered_] = ACCEPTED
            start += block.shape[1]
        self._set_groups(groups)
        places = self._place_of.tolist()
        verdicts.dropped = tuple(before - set(places))
        verdicts.entered = tuple(place - self.n_offered_ for place in places if place not in before)
        return verdicts

    def _candidates(self, block: Any, start: int, verdicts: Verdicts) -> list[Member]:
        """Return the non-constant columns of a group as codes; record the constant ones."""
        X = np.asarray(block.toarray() if sp.issparse(block) else block)
        candidates = []
        for j in range(X.shape[1]):
            candidate = self._coder.candidate(np.ascontiguousarray(X[:, j]))
            if candidate.constant:
                verdicts.decision[start + j] = CONSTANT
            else:
                candidates.append(Member(self.n_offered_ + start + j, candidate.values))
        return candidates

    # -- the selected groups -------------------------------------------------------------------------------

    def _groups(self) -> list[list[Member]]:
        members = [Member(*one) for one in zip(self._place_of.tolist(), self._codes, strict=True)]
        ends = np.cumsum(self._sizes).tolist()
        return [members[end - size : end] for end, size in zip(ends, self._sizes.tolist(), strict=True)]

    def _set_groups(self, groups: list[list[Member]]) -> None:
        members = [*chain(*groups)]
        self._sizes = np.array([len(group) for group in groups], dtype=np.int64)
        self._place_of = np.array([member.place for member in members], dtype=np.int64)
        codes = [member.codes for member in members]
        self._codes = np.array(codes, dtype=np.int64).reshape(len(members), len(self._target))
