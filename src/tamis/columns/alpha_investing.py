"""Alpha-investing: streamwise feature selection in which each test spends part of an error budget.

Zhou, Foster, Stine, Ungar: Streaming Feature Selection using Alpha-investing, KDD 2005. Covered: Figure 1 and
Theorem 1, for linear, logistic and Poisson regression; or with any rule of :mod:`tamis.columns.online_fdr`.

===========  =====================  =======================================================================
paper        here                   meaning
===========  =====================  =======================================================================
W_0          `initial_wealth`       error budget before the first test
alpha_delta  `payout`               wealth earned by an accepted feature
w_i          ``wealth`` (trace)     remaining error budget
alpha_i      ``threshold`` (trace)  w_i / (2 i): a feature is accepted if its p-value is at most this
p            ``p_value`` (trace)    p-value of the feature's coefficient given the features selected before
===========  =====================  =======================================================================

Errata and deviations, each with its reason (those of Figure 1 are in :mod:`tamis.columns.online_fdr`):

* The p-value of a linear model is that of the t test with n - q - 2 degrees of freedom. Public implementations use
  exp(-Delta / 2), the tail of chi-square with *two* degrees: 3 to 6 times too large; ``pvalue="exp"`` gives it.
* A constant or collinear column is rejected without a test, at no cost, and leaves the basis unchanged.
* At q = n - 2 features, no further test is possible; the selector stops and records the reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._validation import Array, Floats, Indices, Ints, Mask
from tamis._validation.parameters import PRIOR, number, parameter, parameters
from tamis.base.declarations import Inputs
from tamis.base.trace import ACCEPTED, FULL, REJECTED, Verdicts
from tamis.columns.groups import GroupedOffers
from tamis.columns.linear import LinearModel
from tamis.columns.online_fdr import RULES, SpendingRule, make_rule
from tamis.columns.projection import GroupEvidence, Proposal
from tamis.columns.sequential import SequentialSelector, dense_column
from tamis.columns.target_shape import HEAVY, rests_on_few_rows, warn_heavy_tails, warn_rare_class
from tamis.dependence.autocorrelation import correlation_length, is_series


@dataclass(eq=False, repr=False, kw_only=True)
class AlphaInvesting(SequentialSelector, GroupedOffers):
    """Accepts a feature if its p-value is below a threshold that rises with each acceptance and falls with each test.

    Parameters
    ----------
    model : {"linear", "logistic", "multinomial", "poisson"}, default="linear"
        The model from which p-values are computed: for a numeric target, two classes, any number of classes, or counts.
        The linear model is also valid for two classes. If one of them is rare or a numeric target has outliers, its
        classical p-values are too small; see `variance`.
    rule : str or SpendingRule, default="alpha-investing"
        How the threshold is updated: one of ``tamis.columns.online_fdr.RULES``, or a rule object.
    initial_wealth : float, default=0.5
        W_0 of the rules "alpha-investing" and "information-investing" (in bits), in (0, 1].
    payout : float, default=0.5
        alpha_delta of the rules "alpha-investing" and "information-investing" (in bits), in [0, 1).
    target_fdr : float or None, default=None
        Bound on the false discovery rate, in (0, 1). The rule "alpha-investing" then takes half of it as its wealth and
        half as its payout, and "information-investing" charges more for a coefficient. None: the two parameters above,
        and 0.05 for every other rule.
    variance : {"auto", "classical", "robust", "series"}, default="auto"
        "classical": the variance of the model. "robust": valid for heteroscedastic noise
        (:mod:`tamis.columns.sandwich`). "series": valid for autocorrelated rows in the given order
        (:mod:`tamis.columns.block_test`). "auto": "series" if the target is autocorrelated, or the square of a numeric
        one; otherwise "robust" for counts, which are overdispersed until the last relevant feature is found, and for
        columns of outliers (kurtosis above 6) if the target of a linear model has outliers or a rare class, too;
        otherwise "classical".
    pvalue : {"exact", "exp"}, default="exact"
        "exact": the p-value of the test. "exp": exp(-Delta / 2), as in the public implementations, with the classical
        variance; for comparison only.
    release : float or None, default=None
        In (0, 1]: after each acceptance, every selected feature is tested again beside all the others. Those whose
        p-values are above `release` are removed, largest first. None: selected features stay. Use it for correlated
        columns: a proxy offered before the relevant feature is removed once that feature is accepted.
    groups : dict of str to list of str or int, "blocks" or None, default=None
        Columns that are tested as one candidate, and accepted or rejected together. A dict: the columns of each group,
        by name or position in the order of offers, adjacent within a block. "blocks": the columns of each block of
        offers. None: every column is a separate candidate. See Notes.
    prior : dict of str or int to float, optional
        Weights of columns, from 0.001 to 1000, by name or position in the order of offers; 1 for the others. A column
        of weight w is tested at, and costs, the level of w columns of weight 1 in a row, so the bound holds for any
        weights that were chosen before the columns were seen. A group has the mean weight of its columns. Not for the
        rule "closed-e-lond".
    intercept : bool, default=True
        Whether the model has a constant term.
    max_features : int or None, default=None
        Largest number of features to select. None: the number of rows minus two.
    missing : {"refuse", "mean"}, default="refuse"
        What to do with NaN. "refuse": raise an error. "mean": replace it by the mean of the feature, recorded in the
        trace.
    trace : {"all", "selected"}, default="all"
        Whether to keep a record of each offer (64 bytes), or only of accepted ones.

    Attributes
    ----------
    selected_, trace_, n_offered_, stopped_, classes_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.ColumnSelector`.
    wealth_ : float
        The remaining error budget.
    rows_dependent_ : bool
        Whether tests are those for autocorrelated rows; see `variance`.

    Raises
    ------
    ValueError
        If a parameter is invalid; raised when the target arrives.
    DataError
        If the target or a column is invalid. The state is then unchanged.

    Notes
    -----
    Memory O(n q), where q is the number of selected features, plus the trace; unselected features are not stored. Time
    O(n q) per candidate, and with `release` O(n q^2) per accepted one. Removing a feature changes neither the wealth
    nor its trace record, which remains "accepted".

    The test of a group is the F test of all its coefficients, or the likelihood ratio of a logistic or Poisson model;
    with the robust variances, the smallest p-value of its columns times their number. A group costs one test, and its
    records in the trace are equal. Constant and collinear columns of a group are omitted. A group with more columns
    than `max_features` or the number of rows allows is not tested. `release` tests columns, not groups.

    The bound on false features, E(N) <= (payout E(M) + W_0) / (1 - payout), holds for p-values that are valid given the
    past. A feature is false if it is irrelevant given the features selected before it. If columns are correlated, a
    feature with a true coefficient of 0 may be accepted before the relevant one arrives. See `release`,
    :func:`tamis.columns.claims.claims` and the rates measured in the documentation.

    References
    ----------
    Zhou, Foster, Stine, Ungar (2005). Streaming Feature Selection using Alpha-investing. KDD. Figure 1, Theorem 1.

    Examples
    --------
    Five of 1000 features are relevant:

    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1000))
    >>> y = X[:, [10, 20, 500, 600, 990]].sum(axis=1) + 0.3 * rng.normal(size=200)
    >>> AlphaInvesting(target_fdr=0.05).fit(X, y).selected_
    ['x10', 'x20', 'x500', 'x600', 'x990']

    Features generated one at a time:

    >>> selector = AlphaInvesting().start(y)
    >>> selector.offer(X[:, 10], "signal"), selector.offer(X[:, 11], "noise")
    (True, False)
    >>> selector.trace_[["name", "decision"]].tolist()
    [('signal', 'accepted'), ('noise', 'rejected')]

    The indicator columns of a categorical feature with a weak effect, tested together and one by one:

    >>> category = rng.integers(0, 6, size=200)
    >>> y_of_category = 0.3 * np.array([1, -1, 1, -1, 1, -1])[category] + rng.normal(size=200)
    >>> indicators = np.eye(6)[category]
    >>> AlphaInvesting(target_fdr=0.05, groups={"category": list(range(6))}).fit(indicators, y_of_category).selected_
    ['x0', 'x1', 'x2', 'x3', 'x4']
    >>> AlphaInvesting(target_fdr=0.05).fit(indicators, y_of_category).selected_
    ['x4']

    A weak effect in one of 100 columns, which was suspected:

    >>> y_weak = 0.33 * X[:, 60] + np.random.default_rng(1).normal(size=200)
    >>> for prior in (None, {"x60": 50}):
    ...     print(AlphaInvesting(target_fdr=0.05, prior=prior).fit(X[:, :100], y_weak).selected_)
    []
    ['x60']

    A proxy arrives before the relevant feature, and is removed when that feature is accepted:

    >>> proxy, y = X[:, 10] + 0.5 * rng.normal(size=200), X[:, 10] + rng.normal(size=200)
    >>> both = np.column_stack([proxy, X[:, 10]])
    >>> AlphaInvesting(target_fdr=0.05).fit(both, y).selected_
    ['x0', 'x1']
    >>> AlphaInvesting(target_fdr=0.05, release=0.05).fit(both, y).selected_
    ['x1']
    """

    _parts = ("_model", "_rule")
    accepts = Inputs(targets=("binary", "multiclass", "regression"))

    _allowed = parameters(model=("linear", "logistic", "multinomial", "poisson"))

    rule: str | SpendingRule = parameter(*RULES, SpendingRule, default="alpha-investing")
    initial_wealth: float = parameter(number("(0, 1]"), default=0.5)
    payout: float = parameter(number("[0, 1)"), default=0.5)
    target_fdr: float | None = parameter(number("(0, 1)"), None, default=None)
    variance: str = parameter("auto", "classical", "robust", "series", default="auto")
    pvalue: str = parameter("exact", "exp", default="exact")
    release: float | None = parameter(number("(0, 1]"), None, default=None)
    groups: Any = None
    prior: Any = parameter(PRIOR, None, default=None)
    _weights: Floats | None = field(default=None, init=False)  # of the columns that are offered

    @property
    def wealth_(self) -> float:
        """The remaining error budget."""
        return self._rule.wealth_

    def _begin(self, y: Array, weight: Array) -> None:
        # With `release`: offer and column of each selected feature.
        self._selected_columns: tuple[tuple[int, Floats], ...] = ()
        rule = make_rule(self.rule, self.target_fdr, self.initial_wealth, self.payout)
        self._rule: SpendingRule = rule.start()
        if self.prior and not self._rule.weighted:
            raise ValueError(
                f"prior was given, but the rule {type(self._rule).__name__} has no weights: choose another rule,"
                " such as 'lord++'."
            )
        linear, auto = self.model == "linear", self.variance == "auto" and self.pvalue == "exact"
        by_tails = auto and linear and rests_on_few_rows(y, weight)
        robust = (
            by_tails
            or self.variance in ("robust", "series")
            or (self.variance == "auto" and self.model == "poisson")
        )
        self._start_model(y, weight, robust, self.pvalue == "exp")
        if by_tails and isinstance(self._model, LinearModel):
            self._model.light_tails = HEAVY
        residuals = (self._model.residual.reshape(len(weight), -1) / np.sqrt(weight)[:, None]).T
        is_volatile = linear and self._is_volatile(residuals[0])
        by_order = auto and (is_volatile or any(is_series(one, self._own_weight()) for one in residuals))
        if linear and not (robust or by_order):
            warn_rare_class(
                y, weight, "the p-values of model='linear' are then too small, choose model='logistic'"
            )
            warn_heavy_tails(y, weight, is_volatile)
        if by_order and not robust:
            self._start_model(y, weight, robust=True)
        self._model.series = by_order or self.variance == "series"
        self.rows_dependent_: bool = self._model.series

    def _is_volatile(self, residual: Floats) -> bool:
        """Return whether the squares of the target are autocorrelated, and over more rows than the target."""
        square = (residual / max(float(np.abs(residual).max()), 1e-300)) ** 2
        square -= square.mean()
        lengths = [correlation_length(values, self._own_weight()) for values in (square, residual)]
        return is_series(square, self._own_weight()) and lengths[0] > 2.0 * lengths[1]

    def _own_weight(self) -> Floats | None:
        return None if self._row_weight is None else self._model.weight

    def _offer_part(self, columns: Any, names: list[str] | None, together: bool) -> Mask:
        if self.prior:
            labels = [self._label(names, j) for j in range(columns.shape[1])]
            found = [
                self.prior.get(label, self.prior.get(at, 1.0))
                for at, label in enumerate(labels, self.n_offered_)
            ]
            self._weights = np.array(found, dtype=np.float64)
            if together:
                self._weights = np.full(len(found), self._weights.mean())
        return super()._offer_part(columns, names, together)

    def _own_weights(self, at: Ints) -> tuple[Floats, ...]:
        """Return the weights of these columns of the block, if there are any."""
        return () if self._weights is None else (self._weights[at],)

    def _consider_block(self, columns: Any) -> Verdicts:
        before = {place for place, _ in self._selected_columns}
        return self._with_changes(super()._consider_block(columns), before)

    def _consider_group(self, columns: Any) -> Verdicts:
        verdicts = Verdicts.empty(columns.shape[1])
        if self.stopped_ is not None:
            verdicts.decision[:] = FULL
            return verdicts
        X = columns.toarray() if sp.issparse(columns) else columns
        evidence = self._model.evidence_of_group(X)
        verdicts.decision[:] = evidence.status
        testable = np.flatnonzero(evidence.status == REJECTED)
        before = {place for place, _ in self._selected_columns}
        if len(testable) and not self._has_room(len(testable), evidence.log_p):
            verdicts.decision[testable] = FULL
        elif len(testable):
            self._decide_on_group(X, testable, evidence, verdicts)
        return self._with_changes(verdicts, before)

    def _has_room(self, k: int, log_p: float) -> bool:
        """Return whether a group of k columns can be tested, and selected."""
        q = self._model.k - self.intercept
        return not math.isnan(log_p) and (self.max_features is None or q + k <= self.max_features)

    def _decide_on_group(
        self, X: Floats, testable: Indices, evidence: GroupEvidence, verdicts: Verdicts
    ) -> None:
        verdicts.statistic[testable], verdicts.log_p[testable] = evidence.statistic, evidence.log_p
        head = testable[:1]
        thresholds = self._thresholds(verdicts.log_p[head], self.n_offered_ + head)
        accepted = evidence.log_p <= float(thresholds[0])
        self._record(verdicts, head, thresholds, accepted)
        verdicts.threshold[testable] = verdicts.threshold[head]
        verdicts.wealth[testable] = verdicts.wealth[head]
        if not accepted:
            return
        verdicts.decision[testable] = ACCEPTED
        for j in testable.tolist():
            self._grow(self._model.propose(X[:, j]))
        if self.release is not None:
            group = tuple((self.n_offered_ + j, X[:, j].copy()) for j in testable.tolist())
            self._selected_columns = (*self._selected_columns, *group)
            self._release(math.log(self.release))

    def _with_changes(self, verdicts: Verdicts, before: set[int]) -> Verdicts:
        """Record the features removed by `release`, and the order in which the others entered."""
        if self.release is not None:
            places = [place for place, _ in self._selected_columns]
            verdicts.dropped = tuple(before - set(places))
            verdicts.entered = tuple(place - self.n_offered_ for place in places if place not in before)
        return verdicts

    def _try(self, columns: Any, j: int, start: int, threshold: float, verdicts: Verdicts) -> bool:
        accepted = super()._try(columns, j, start, threshold, verdicts)
        if accepted and self.release is not None:
            feature = (self.n_offered_ + start + j, dense_column(columns, j).copy())
            self._selected_columns = (*self._selected_columns, feature)
            self._release(math.log(self.release))
        return accepted

    def _release(self, log_release: float) -> None:
        """Remove the earlier feature with the largest p-value until none is above `release`."""
        while len(self._selected_columns) > 1 and self._model.stop_reason() is None:
            log_p = self._model.retest(np.column_stack([column for _, column in self._selected_columns]))[:-1]
            worst = int(np.argmax(log_p))
            if log_p[worst] <= log_release:
                break
            self._selected_columns = (*self._selected_columns[:worst], *self._selected_columns[worst + 1 :])
            self._model.restart(np.column_stack([column for _, column in self._selected_columns]))
        self.stopped_ = self._model.stop_reason() or self._limit_reason()

    def _thresholds(self, log_p: Floats, places: Ints) -> Floats:
        with np.errstate(divide="ignore"):  # a wealth near 0 gives a level near 0
            return self._rule.levels(log_p, *self._own_weights(places - self.n_offered_))

    def _may_be_accepted(self, statistic: Floats, log_p: Floats, thresholds: Floats) -> Mask:
        return log_p <= thresholds + self._model.slack

    def _is_accepted(self, proposal: Proposal, threshold: float) -> bool:
        return proposal.log_p <= threshold

    def _record(self, verdicts: Verdicts, at: Ints, thresholds: Floats, accepted: bool) -> None:
        log_p = verdicts.log_p[at]
        weight = self._own_weights(at)
        verdicts.threshold[at] = np.exp(thresholds)
        if accepted:
            self._rule.update(True, float(log_p[0]), *(float(own[0]) for own in weight))
            verdicts.wealth[at] = self._rule.wealth_
        elif len(at):
            verdicts.wealth[at] = self._rule.wealths(log_p, *weight)
            self._rule.skip(log_p, *weight)
