"""OFS-A3M: features that raise the dependency of the class, with neighbourhoods that end at the first gap.

Zhou, Hu, Li, Wu: Online streaming feature selection using adapted Neighborhood Rough Set. Information Sciences 481,
2019. Covered: the algorithm OFS-A3M and its worked example.

=============  =====================  =============================================================================
paper          here                   meaning
=============  =====================  =============================================================================
gamma_B(D)     ``_gamma``             dependency of the class on features B: mean proportion of neighbours of a row
                                      that have its class
Mean_R         ``threshold`` (trace)  mean of the dependencies on each selected feature alone
sigma_B(D, f)  significance           decrease of gamma without f
=============  =====================  =============================================================================

A feature is rejected if its dependency is below Mean_R (relevance). It enters if it raises gamma (dependency). If gamma
stays the same, it enters, and selected features whose significance is 0 are removed, in random order (significance).

Errata and deviations, each with its reason (those of the neighbourhoods are in :mod:`tamis.dependence.rough_set`):

* The released program compares with gamma of all selected features divided by their number, and rejects a tie:
  ``relevance="code"``. That is far below Mean_R, so more features pass; the worked example requires Mean_R.
* A shifted and scaled copy of a selected column is rejected, because it would only increase the weight of that column.
* Distances are computed from the columns each time rather than by updating a matrix, so rounding errors do not
  accumulate, and memory is O(N q) instead of O(N^2).
"""

from __future__ import annotations

from dataclasses import dataclass

from tamis._validation.parameters import parameter
from tamis.columns.neighbourhood import Member, NeighbourhoodSelector


@dataclass(eq=False, repr=False)
class OFSA3M(NeighbourhoodSelector):
    """Keeps features that raise the dependency of the class on them; the neighbours of a row end at the first gap.

    Parameters
    ----------
    relevance : {"article", "code"}, default="article"
        The threshold for the dependency on a feature alone. "article": the mean of the selected features. "code": their
        joint dependency divided by their number, which must be exceeded.
    random_state : int, RandomState or None, default=0
        Seed of the order in which selected features are tried for removal.
    missing : {"refuse", "mean"}, default="refuse"
        What to do with NaN. "refuse": raise an error. "mean": replace it by the mean of the feature, recorded in the
        trace.
    trace : {"all", "selected"}, default="all"
        Whether to record each offer, or only accepted ones. ``statistic`` is the dependency of the class on the
        feature alone, ``threshold`` the value that it had to reach.

    Attributes
    ----------
    selected_, trace_, n_offered_, stopped_, classes_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.ColumnSelector`. An accepted feature may be removed later.
    dependency_ : float
        gamma, the dependency of the class on the selected features, in [0, 1].

    Raises
    ------
    ValueError
        If a parameter is invalid, or a weight is not an integer; raised when the target arrives.
    DataError
        If the target or a column is invalid. The state is then unchanged.

    Notes
    -----
    With N rows and q selected features: time O(N log N) for an irrelevant feature and O(N^2 q) for any other; memory
    O(N q).

    References
    ----------
    Zhou, Hu, Li, Wu (2019). Online streaming feature selection using adapted Neighborhood Rough Set. Information
    Sciences 481.

    Examples
    --------
    The example of the article, eight objects with four features: f3 is below the mean of f1 and f2.

    >>> import numpy as np
    >>> from tamis import OFSA3M
    >>> X = np.array([[3, 5.6, -66, 3.05], [5, 6.9, 95, 4.84], [8, 5.3, -28, 5.89], [13, 12.3, -35, 6.14],
    ...               [6, 15.2, 72, 6.55], [5, 2.6, 42, 10.94], [9, 6.8, -33, 23.85], [15, 8.4, 15, 23.85]])
    >>> y = np.array([-1, 1, 1, 1, -1, 1, -1, -1])
    >>> selector = OFSA3M().fit(X, y)
    >>> selector.selected_, round(selector.dependency_, 5)
    (['x0', 'x1', 'x3'], 0.55357)
    >>> selector.trace_["statistic"].round(5).tolist(), selector.trace_["threshold"].round(5).tolist()
    ([0.2625, 0.33542, 0.29464, 0.6], [0.0, 0.2625, 0.29896, 0.29896])
    """

    relevance: str = parameter("article", "code", default="article")

    def _rule(self) -> str:
        return "gap"

    def _update_threshold(self) -> None:
        super()._update_threshold()
        if self.relevance == "code":
            self._threshold = self._gamma / len(self._members)

    def _is_relevant(self, alone: float) -> bool:
        equal = self._is_equal(alone, self._threshold)
        return (alone > self._threshold and not equal) or (equal and self.relevance == "article")

    def _is_tied(self, gamma: float) -> bool:
        return self._is_equal(gamma, self._gamma)

    def _replace_redundant(self, members: tuple[Member, ...], gamma: float) -> None:
        self._set_members(*self._remove_redundant(members, gamma, zero_only=True))
