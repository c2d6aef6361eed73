"""Streaming AIC, BIC and RIC: a feature is accepted if its gain in log likelihood exceeds a penalty.

Zhou, Foster, Stine, Ungar: Streaming Feature Selection using Alpha-investing, KDD 2005, Sections 2 and 5: the
penalties with which alpha-investing is compared. A candidate is accepted if 2 (log likelihood with it - without it)
exceeds F:

=====  =========  =====================================================================================
name   F          meaning
=====  =========  =====================================================================================
AIC    2          Akaike: accepts an irrelevant feature with probability 0.16, at any n
BIC    log n      Schwarz: with probability 0.03 at n = 100
RIC    2 log p    Foster, George (1994): about Bonferroni among p candidates
=====  =========  =====================================================================================

Errata and deviations, each with its reason:

* The paper prints F = 2 log n for BIC in a table and log n in the text; log n is correct.
* RIC at p = 1000 requires a p-value of 0.20 / p, not "smaller than 0.05 / p".
* In a linear model the variance is unknown: 2 (change of log likelihood) = n log(RSS / RSS').
* RIC needs the number of candidates in advance. If it is not given, the i-th candidate is charged 2 log(i + 1).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from tamis._validation import Array, Floats, Ints, Mask
from tamis._validation.parameters import integer, parameter
from tamis.base.trace import Verdicts
from tamis.columns.projection import Proposal
from tamis.columns.sequential import RegressionSelector, SequentialSelector


def penalty(criterion: str, n_rows: float, n_candidates: Floats) -> Floats:
    """Return F of a criterion: the gain in 2 log likelihood that a feature must exceed.

    Parameters
    ----------
    criterion : {"aic", "bic", "ric"}
    n_rows : float
        n, in [1, inf).
    n_candidates : ndarray of shape (m,), float64
        p, in [1, inf).

    Returns
    -------
    ndarray of shape (m,), float64

    Examples
    --------
    >>> [penalty(name, 100, np.array([1000.0])).round(2).tolist() for name in ("aic", "bic", "ric")]
    [[2.0], [4.61], [13.82]]
    """
    if criterion == "ric":
        return 2.0 * np.log(n_candidates)
    return np.full(len(n_candidates), 2.0 if criterion == "aic" else math.log(n_rows))


@dataclass(eq=False, repr=False)
class CriterionSelector(RegressionSelector):
    """A selector that accepts a feature whose gain in 2 log likelihood exceeds F."""

    criterion: str = parameter("aic", "bic", "ric", default="bic")
    _: KW_ONLY
    model: str = "linear"
    n_candidates: int | None = parameter(integer("[1, inf)"), None, default=None)

    def _begin(self, y: Array, weight: Array) -> None:
        self._start_model(y, weight, robust=self.model == "poisson")
        if self.model == "poisson":
            self._model.in_likelihood = True  # type: ignore[union-attr]


class PenalisedSelector(CriterionSelector, SequentialSelector):
    """Accepts a feature if it improves AIC, BIC or RIC; accepted features are never removed.

    Parameters
    ----------
    criterion : {"aic", "bic", "ric"}, default="bic"
        The threshold for twice the gain in log likelihood, for n rows and p candidates. "aic": 2. "bic": log n. "ric":
        2 log p, about as strict as a Bonferroni correction.
    model : {"linear", "logistic", "poisson"}, default="linear"
        A numeric target, two classes, or counts. Until the last relevant feature is found, counts are
        overdispersed. Their gain is therefore the likelihood ratio with the p-value of a robust test.
    n_candidates : int or None, default=None
        p of RIC. None: the number of features offered so far, plus one.
    intercept : bool, default=True
        Whether the model has a constant term.
    max_features : int or None, default=None
        Largest number of features to select. None: the number of rows minus two.
    missing : {"refuse", "mean"}, default="refuse"
        What to do with NaN. "refuse": raise an error. "mean": replace it by the mean of the feature, recorded in the
        trace.
    trace : {"all", "selected"}, default="all"
        Whether to record each offer, or only accepted ones. ``statistic`` is the gain, ``threshold`` is F.

    Attributes
    ----------
    selected_, trace_, n_offered_, stopped_, classes_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.ColumnSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid; raised when the target arrives.
    DataError
        If the target or a column is invalid. The state is then unchanged.

    References
    ----------
    Zhou, Foster, Stine, Ungar (2005). Streaming Feature Selection using Alpha-investing. KDD. Table 2.

    Examples
    --------
    Two of 200 features are relevant; AIC also accepts many others:

    >>> import numpy as np
    >>> from tamis import PenalisedSelector
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(100, 200))
    >>> y = X[:, 50] - X[:, 150] + 0.5 * rng.normal(size=100)
    >>> PenalisedSelector("ric", n_candidates=200).fit(X, y).selected_
    ['x50', 'x150']
    >>> len(PenalisedSelector("aic").fit(X, y).selected_) > 20
    True
    """

    def _thresholds(self, log_p: Floats, places: Ints) -> Floats:
        counts = (places + 2).astype(np.float64)
        if self.n_candidates is not None:
            counts = np.full(len(places), float(self.n_candidates))
        return penalty(self.criterion, self._model.n, counts)

    def _may_be_accepted(self, statistic: Floats, log_p: Floats, thresholds: Floats) -> Mask:
        # A score statistic is within a factor of 2 of the likelihood ratio that it approximates.
        return statistic > thresholds * (1.0 - 1e-9 if self.model == "linear" else 0.5)

    def _is_accepted(self, proposal: Proposal, threshold: float) -> bool:
        return proposal.statistic > threshold

    def _record(self, verdicts: Verdicts, at: Ints, thresholds: Floats, accepted: bool) -> None:
        verdicts.threshold[at] = thresholds
