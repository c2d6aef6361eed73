"""OSFS: online streaming feature selection, a Markov blanket of the class from streaming features.

Wu, Yu, Wang, Ding: Online Streaming Feature Selection, ICML 2010; Wu, Yu, Ding, Wang, Zhu: Online Feature Selection
with Streaming Features, IEEE TPAMI 35(5), 2013. Covered: Algorithm OSFS; Fast-OSFS is in
:mod:`tamis.columns.fast_osfs`.

==================  ====================  =================================================================
paper               here                  meaning
==================  ====================  =================================================================
BCF                 ``selected_``         best candidate features so far
Ind(C, X given S)   `test`, `alpha`       is the class independent of X, given S?
k                   `max_conditions`      size of the largest S
==================  ====================  =================================================================

A feature on which the class depends enters. Then each selected feature, in order of entry and the new one last, is
removed if some set S of 1 to k other selected features makes the class independent of it.

Errata and deviations, each with its reason:

* For the old features, only sets that contain the new one are tested: the other sets were tested when their last member
  arrived. The decisions are the same, with fewer tests by a factor of the size of BCF over k.
* The public implementation skips every column with a sum of 0 in order to skip empty columns, and thereby all centred
  columns. Here constant columns are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass

from tamis.columns.dependent import DependenceSelector
from tamis.dependence.criterion import Candidate


@dataclass(eq=False, repr=False, kw_only=True)
class OSFS(DependenceSelector):
    """Keeps features that depend on the class, given any few of the other selected features.

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
    x1 causes the class; x0, a noisy copy of it, is selected until x1 arrives:

    >>> import numpy as np
    >>> from tamis import OSFS
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, size=500)
    >>> X = rng.normal(size=(500, 50))
    >>> X[:, 1] = y + 0.4 * X[:, 1]
    >>> X[:, 0] = X[:, 1] + 0.6 * X[:, 0]
    >>> selector = OSFS(alpha=0.001).fit(X, y)
    >>> selector.selected_, selector.trace_["decision"][:3].tolist()
    (['x1'], ['accepted', 'accepted', 'rejected'])
    """

    max_conditions: int = 3

    def _decide(self, candidate: Candidate) -> tuple[bool, list[int]]:
        new = self._memory.n_kept_
        self._memory.keep(candidate)
        left = list(range(new))
        for old in range(new):
            rest = [place for place in left if place != old]
            if self._memory.is_separated(old, rest, self.max_conditions, always=new):
                left = rest
        accepted = not self._memory.is_separated(new, left, self.max_conditions)
        dropped = [old for old in range(new) if old not in left]
        self._memory.drop(dropped if accepted else [*dropped, new])
        return accepted, dropped
