"""OFS-Density: features that raise the dependency of the class, with neighbourhoods of maximal density.

Zhou, Hu, Li, Wu: OFS-Density: A novel online streaming feature selection method. Pattern Recognition 86, 2019. Covered:
the algorithm, with the neighbourhoods of the article and of the released program.

=========  =====================  =============================================================================
paper      here                   meaning
=========  =====================  =============================================================================
Dep(B, D)  ``_gamma``             dependency of the class on features B: mean proportion of neighbours of a row
                                  that have its class
Mean       ``threshold`` (trace)  mean of the dependencies on each selected feature alone
lambda     `tolerance`            relative change of dependency that is treated as equal
=========  =====================  =============================================================================

A feature is rejected if its dependency is below the mean. It enters if it raises gamma. If gamma changes by a fraction
of at most lambda, it enters, and selected features whose removal does not decrease gamma are removed, in random order.

Errata and deviations, each with its reason (those of the neighbourhoods are in :mod:`tamis.dependence.rough_set`):

* If gamma is smaller after the removal than before the new feature, the released program restores the removed features
  and also keeps the new one; gamma and the mean are unchanged. The same is done here.
* A shifted and scaled copy of a selected column is rejected, because it would only increase the weight of that column.
* Distances are computed from the columns each time rather than by updating a matrix, so rounding errors do not
  accumulate, and memory is O(N q) instead of O(N^2).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from tamis._validation.parameters import number, parameter
from tamis.columns.neighbourhood import Member, NeighbourhoodSelector


@dataclass(eq=False, repr=False)
class OFSDensity(NeighbourhoodSelector):
    """Keeps features that raise the dependency of the class on them; the neighbours of a row are dense.

    Parameters
    ----------
    tolerance : float, default=0.05
        lambda, in [0, 1): two dependencies are treated as equal if they differ by at most this fraction.
    neighbours : {"code", "article"}, default="code"
        Where the neighbours of a row end. "code": where distance per neighbour first rises, as in the released program.
        "article": where it first falls.
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
        gamma, in [0, 1].

    Raises
    ------
    ValueError
        If a parameter is invalid, or a weight is not an integer; raised when the target arrives.
    DataError
        If the target or a column is invalid. The state is then unchanged.

    Notes
    -----
    With N rows and q selected features: time O(N log N) for an irrelevant feature and O(N^2 (q + log N)) for any other;
    memory O(N q).

    References
    ----------
    Zhou, Hu, Li, Wu (2019). OFS-Density: A novel online streaming feature selection method. Pattern Recognition 86.

    Examples
    --------
    Two of 40 features are relevant:

    >>> import numpy as np
    >>> from tamis import OFSDensity
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 40))
    >>> y = (X[:, 10] + X[:, 20] > 0).astype(int)
    >>> selector = OFSDensity().fit(X, y)
    >>> {"x10", "x20"} <= set(selector.selected_), len(selector.selected_) < 10
    (True, True)
    """

    tolerance: float = parameter(number("[0, 1)"), default=0.05)
    _: KW_ONLY
    neighbours: str = parameter("code", "article", default="code")

    def _rule(self) -> str:
        return "density" if self.neighbours == "code" else "density-article"

    def _is_relevant(self, alone: float) -> bool:
        return alone >= self._threshold or self._is_equal(alone, self._threshold)

    def _is_tied(self, gamma: float) -> bool:
        return self._gamma > 0.0 and abs(gamma - self._gamma) <= self.tolerance * self._gamma

    def _replace_redundant(self, members: tuple[Member, ...], gamma: float) -> None:
        fewer, without = self._remove_redundant(members, gamma, zero_only=False)
        if without >= self._gamma or self._is_equal(without, self._gamma):
            self._set_members(fewer, without)
        else:
            self._members = members
