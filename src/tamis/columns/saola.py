"""SAOLA: streaming features filtered by pairwise comparisons only, which scales to millions of columns.

Yu, Wu, Ding, Pei: Towards Scalable and Accurate Online Feature Selection for Big Data, ICDM 2014; and Scalable and
Accurate Online Feature Selection for Big Data, ACM TKDD 11(2), 2016. Covered: Algorithm 1, with correlation or with
symmetrical uncertainty.

==================  ====================  =================================================================
paper               here                  meaning
==================  ====================  =================================================================
I(F; C), delta      `test`, `alpha`       relevance of a feature, and whether it is significant
S*_(t-1)            ``selected_``         features selected so far
Eq. (20)            ``beaten``            Y in S has I(Y; C) >= I(F; C) and I(F; Y) > I(F; C): F is rejected
Eq. (21)            ``weaker``            I(F; C) > I(Y; C) and I(F; Y) > I(Y; C): Y leaves
==================  ====================  =================================================================

Errata and deviations, each with its reason:

* As published, the comparisons stop at the first Y that beats F, and features that F has replaced by then remain
  removed: F is rejected, and a weaker Y may have been removed as well.
* The public implementation skips every column with a sum of 0 in order to skip empty columns, and thereby all centred
  columns. Here constant columns are skipped.
* For discrete features, the public implementation uses I(Y; C) > I(F; C) in Eq. (20), which keeps both of two equal
  columns; the equation has >=.
* Correlations that are not significant are treated as 0 in both equations, as in the public implementation.
"""

from __future__ import annotations

import numpy as np

from tamis.columns.dependent import DependenceSelector
from tamis.dependence.criterion import Candidate


class SAOLA(DependenceSelector):
    """Keeps features that depend on the class, and are not redundant with any single other feature.

    Parameters
    ----------
    test : {"fisher-z", "g-square"} or DependenceTest, default="fisher-z"
        The measure and test of dependence. "fisher-z": correlation, for two classes, neither of them rare. "g-square":
        symmetrical uncertainty of columns with few values, or of their quantiles. Or a test object, see
        :mod:`tamis.dependence.criterion`.
    alpha : float, default=0.01
        Significance level of a test given by name, in (0, 1).
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
    Time O(n) for a feature that does not depend on the class, O(n q) for another, q the number selected. Memory
    O(n q).

    References
    ----------
    Yu, Wu, Ding, Pei (2016). Scalable and Accurate Online Feature Selection for Big Data. ACM TKDD 11(2). Algorithm 1.

    Examples
    --------
    x700 and x900 are relevant; x3 is a noisy copy of x700, selected until x700 arrives:

    >>> import numpy as np
    >>> from tamis import SAOLA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 1000))
    >>> y = (X[:, 700] + X[:, 900] > 0).astype(int)
    >>> X[:, 3] = X[:, 700] + 0.4 * rng.normal(size=300)
    >>> selector = SAOLA(alpha=1e-4).fit(X, y)
    >>> selector.selected_, selector.trace_["decision"].tolist()[3]
    (['x700', 'x900'], 'accepted')
    """

    def _decide(self, candidate: Candidate) -> tuple[bool, list[int]]:
        shared, significant = self._memory.dependence_on_kept(candidate)
        of_kept, own = self._memory.strength_, candidate.strength
        beaten = significant & (of_kept >= own) & (shared > own)  # (20)
        weaker = significant & (own > of_kept) & (shared > of_kept)  # (21)
        accepted = not beaten.any()
        dropped = np.flatnonzero(weaker if accepted else weaker[: int(np.argmax(beaten))]).tolist()
        self._memory.drop(dropped)
        if accepted:
            self._memory.keep(candidate)
        return accepted, dropped
