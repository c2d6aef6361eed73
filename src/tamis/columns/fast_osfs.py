"""Fast-OSFS: as OSFS, but a new feature is tested for redundancy before it can replace selected ones.

Wu, Yu, Wang, Ding: Online Streaming Feature Selection, ICML 2010; Wu, Yu, Ding, Wang, Zhu: Online Feature Selection
with Streaming Features, IEEE TPAMI 35(5), 2013. Covered: Algorithm Fast-OSFS; symbols as in :mod:`tamis.columns.osfs`.

A feature on which the class depends is rejected if some set S of the selected ones, of 1 to k members, makes the class
independent of it. Otherwise it enters, and each old feature is removed if a set S of the others that contains the
new one makes the class independent of it.

Errata and deviations, each with its reason:

* The public implementation then tests the new feature again, with sets that contain the last old one. All of these
  sets were tested when it entered, so the step changes nothing and is omitted.
* Constant columns are skipped, not those whose sum is 0: see :mod:`tamis.columns.osfs`.
"""

from __future__ import annotations

import copy

from tamis.columns.osfs import OSFS
from tamis.dependence.criterion import Candidate


class FastOSFS(OSFS):
    """Keeps features that depend on the class, given any few of the features selected before.

    Parameters
    ----------
    test : {"fisher-z", "g-square"} or DependenceTest, default="fisher-z"
        The test of conditional independence. "fisher-z": partial correlation, for two classes, neither of them rare.
        "g-square": counts of columns with few values, or of their quantiles. Or a test object, see
        :mod:`tamis.dependence.criterion`.
    alpha : float, default=0.01
        Significance level of a test given by name, in (0, 1).
    max_conditions : int, default=3
        k, the largest number of selected features that are conditioned on together, 1 or more.
    missing : {"refuse", "mean"}, default="refuse"
        What to do with NaN. "refuse": raise an error. "mean": replace it by the mean of the feature, recorded in the
        trace.
    trace : {"all", "selected"}, default="all"
        Whether to record each offer, or only accepted ones. ``statistic`` is the dependence on the class.

    Attributes
    ----------
    selected_, trace_, n_offered_, stopped_, classes_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.ColumnSelector`. An accepted feature may be removed later.

    Raises
    ------
    ValueError
        If a parameter is invalid, or a weight is not an integer; raised when the target arrives.
    DataError
        If the target or a column is invalid. The state is then unchanged.

    Notes
    -----
    Time O(n) for a feature that does not depend on the class, O(n q + q^k) for another, q the number selected.
    Memory O(n q).

    References
    ----------
    Wu, Yu, Ding, Wang, Zhu (2013). Online Feature Selection with Streaming Features. IEEE TPAMI 35(5).

    Examples
    --------
    x1 causes the class. x0, a noisy copy of it, is removed when x1 arrives; x2, another copy, is rejected:

    >>> import numpy as np
    >>> from tamis import FastOSFS
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, size=500)
    >>> X = rng.normal(size=(500, 50))
    >>> X[:, 1] = y + 0.4 * X[:, 1]
    >>> X[:, [0, 2]] = X[:, [1]] + 0.6 * X[:, [0, 2]]
    >>> selector = FastOSFS(alpha=0.001).fit(X, y)
    >>> selector.selected_, selector.trace_["decision"][:3].tolist()
    (['x1'], ['accepted', 'accepted', 'rejected'])
    """

    def _decide(self, candidate: Candidate) -> tuple[bool, list[int]]:
        before, new = copy.copy(self._memory), self._memory.n_kept_
        left = list(range(new))
        self._memory.keep(candidate)
        if self._memory.is_separated(new, left, self.max_conditions):
            before.clear_room()
            self._memory = before
            return False, []
        for old in range(new):
            rest = [place for place in left if place != old]
            if self._memory.is_separated(old, rest, self.max_conditions, always=new):
                left = rest
        dropped = [old for old in range(new) if old not in left]
        self._memory.drop(dropped)
        return True, dropped
