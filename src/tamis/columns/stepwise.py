"""Forward stepwise regression: accept the best of all candidates, as long as a criterion improves.

The baseline of Zhou, Foster, Stine, Ungar: Streaming Feature Selection using Alpha-investing, KDD 2005, Sections 2
and 5. Streaming selection tests a feature once; forward stepwise regression tests every remaining feature at every
step.

Deviation: the paper searches among all features. Here the search is among the columns of one block of offers, given
the features selected from earlier blocks; `fit` offers all columns as one block, which is the paper's search.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis._validation import Ints
from tamis.base.trace import ACCEPTED, FULL, REJECTED, Verdicts
from tamis.columns.penalised import CriterionSelector, penalty
from tamis.columns.sequential import dense_column


class ForwardStepwise(CriterionSelector):
    """Repeatedly accepts the best column of a block, as long as it improves AIC, BIC or RIC.

    Parameters
    ----------
    criterion : {"aic", "bic", "ric"}, default="bic"
        See :mod:`tamis.columns.penalised`.
    model : {"linear", "logistic", "poisson"}, default="linear"
        A numeric target, two classes, or counts. Until the last relevant feature is found, counts are
        overdispersed. Their gain is therefore the likelihood ratio with the p-value of a robust test.
    n_candidates : int or None, default=None
        p of RIC. None: the number of features offered so far, including the block, plus one.
    intercept : bool, default=True
        Whether the model has a constant term.
    max_features : int or None, default=None
        Largest number of features to select. None: the number of rows minus two.
    missing : {"refuse", "mean"}, default="refuse"
        What to do with NaN. "refuse": raise an error. "mean": replace it by the mean of the feature, recorded in the
        trace.
    trace : {"all", "selected"}, default="all"
        Whether to record each offer, or only accepted ones. ``statistic`` is the gain when the feature was accepted
        or the search ended, ``threshold`` is F.

    Attributes
    ----------
    selected_, trace_, n_offered_, stopped_, classes_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.ColumnSelector`; ``selected_`` is in the order of the steps.

    Raises
    ------
    ValueError
        If a parameter is invalid; raised when the target arrives.
    DataError
        If the target or a column is invalid. The state is then unchanged.

    Notes
    -----
    The method is defined per block: `offer` is a block of one, so offers one at a time give :class:`PenalisedSelector`.
    Time O(n p q) per step; the block is held in memory. Logistic and Poisson models rank candidates by their score
    statistic.

    References
    ----------
    Zhou, Foster, Stine, Ungar (2005). Streaming Feature Selection using Alpha-investing. KDD. Section 2.

    Examples
    --------
    The feature with the larger coefficient is accepted first, although it is offered later:

    >>> import numpy as np
    >>> from tamis import ForwardStepwise
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> y = 3 * X[:, 5] + X[:, 2] + 0.1 * rng.normal(size=100)
    >>> ForwardStepwise("ric").fit(X, y).selected_
    ['x5', 'x2']
    """

    _whole_blocks = True

    def _consider_block(self, columns: Any) -> Verdicts:
        m = columns.shape[1]
        n_candidates = self.n_offered_ + m + 1 if self.n_candidates is None else self.n_candidates
        threshold = float(penalty(self.criterion, self._model.n, np.array([float(n_candidates)]))[0])
        verdicts = Verdicts.empty(m)
        verdicts.threshold[:] = threshold
        entered: list[int] = []
        left = np.arange(m)
        while self.stopped_ is None and len(left):
            left, best = self._rank(columns, left, verdicts)
            if best is None or not self._accept(columns, best, threshold, verdicts):
                break
            entered.append(best)
            left = left[left != best]
        if self.stopped_ is not None:
            verdicts.decision[left] = FULL
        verdicts.entered = tuple(entered)
        return verdicts

    def _rank(self, columns: Any, left: Ints, verdicts: Verdicts) -> tuple[Ints, int | None]:
        """Return the columns that can still be tested, and the best of them."""
        evidence = self._model.evidence(columns if len(left) == columns.shape[1] else columns[:, left])
        verdicts.statistic[left], verdicts.log_p[left] = evidence.statistic, evidence.log_p
        verdicts.decision[left] = evidence.status
        fit = evidence.status == REJECTED
        verdicts.statistic[left[~fit]] = verdicts.log_p[left[~fit]] = np.nan
        left, statistic = left[fit], evidence.statistic[fit]
        return left, int(left[np.argmax(statistic)]) if len(left) else None

    def _accept(self, columns: Any, j: int, threshold: float, verdicts: Verdicts) -> bool:
        proposal = self._model.propose(dense_column(columns, j))
        verdicts.statistic[j], verdicts.log_p[j] = proposal.statistic, proposal.log_p
        if proposal.statistic <= threshold:
            return False
        verdicts.decision[j] = ACCEPTED
        self._grow(proposal)
        return True
