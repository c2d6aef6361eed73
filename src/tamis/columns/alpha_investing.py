"""Alpha-investing: features arrive without end, and each must pay for being tested.

Zhou, Foster, Stine, Ungar: Streaming Feature Selection using Alpha-investing, KDD 2005. Covered: Figure 1 and
Theorem 1, for linear, logistic and Poisson regression; and every rule of :mod:`tamis.columns.spending` in its place.

===========  ====================  ====================================================================
paper        here                  meaning
===========  ====================  ====================================================================
W_0          `initial_wealth`      error budget before the first test
alpha_delta  `payout`              what an accepted feature earns
w_i          ``wealth`` (trace)    error budget left
alpha_i      ``threshold`` (trace) w_i / (2 i): a feature is accepted if its p-value is at most this
p            ``p_value`` (trace)   of the feature's coefficient beside the features selected before
===========  ====================  ====================================================================

Errata and deviations, each with its reason (those of Figure 1 are in :mod:`tamis.columns.spending`):

* The p-value of a linear model is that of the t test with n - q - 2 degrees of freedom. Public implementations use
  exp(-Delta / 2), the tail of chi-square with *two* degrees: 3 to 6 times too large; ``pvalue="exp"`` gives it.
* A constant or collinear column is refused without a test: it costs nothing and leaves the basis as it is.
* At q = n - 2 features nothing can be tested any more: it stops, and says why.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._check import Array
from tamis._parameters import number, parameters
from tamis.base.trace import Verdicts
from tamis.columns.projection import Proposal
from tamis.columns.sequential import SequentialSelector, dense_column
from tamis.columns.spending import RULES, AlphaWealth, SpendingRule, make_rule
from tamis.columns.target_shape import warn_of_a_rare_class, warn_of_heavy_tails

__all__ = ["AlphaInvesting"]

Floats = NDArray[np.float64]


class AlphaInvesting(SequentialSelector):
    """Accepts a feature if its p-value is below a bar that rises with every acceptance and falls with every test.

    Parameters
    ----------
    model : {"linear", "logistic", "poisson"}, default="linear"
        The model that gives the p-values: for a numeric target, two classes, or counts. The linear one also serves for
        two classes of about as many rows; where one is rare, its p-values are too small, and a warning says so. So it
        does where a numeric target has outliers.
    rule : str or SpendingRule, default="alpha-investing"
        How the bar moves: one of ``tamis.columns.spending.RULES``, or a rule object with parameters of your choice.
    initial_wealth : float, default=0.5
        W_0 of the rules "alpha-investing" and "information-investing" (in bits), in (0, 1].
    payout : float, default=0.5
        alpha_delta of the rules "alpha-investing" and "information-investing" (in bits), in [0, 1).
    target_fdr : float or None, default=None
        Bound on the false discovery rate, in (0, 1). The rule "alpha-investing" then takes half of it as its wealth and
        half as its payout, and "information-investing" pays the more for a coefficient. None means the two parameters
        above, and 0.05 for every other rule.
    variance : {"auto", "classical", "robust"}, default="auto"
        "classical": the variance of the model. "robust": the test holds even if the noise differs from row to row
        (:mod:`tamis.columns.sandwich`). "auto": robust for counts, which vary more than the model says until the last
        relevant feature is found; else classical.
    pvalue : {"exact", "exp"}, default="exact"
        "exact": the p-value of the test. "exp": exp(-Delta / 2), as in the public implementations, with the classical
        variance; for comparison only.
    release : float or None, default=None
        In (0, 1]: after each acceptance, every selected feature is tested again beside all the others. Those whose
        p-values are above `release` leave, worst first. None: selected features stay. Use it for correlated columns: a
        neighbour that came before the relevant feature leaves when that one comes.
    intercept : bool, default=True
        Whether the model has a constant term.
    max_features : int or None, default=None
        The most features to select. None: two fewer than there are rows.
    missing : {"refuse", "mean"}, default="refuse"
        What to do with NaN. "refuse": raise an error. "mean": replace it by the column's mean, and note this in the
        trace.
    trace : {"all", "selected"}, default="all"
        Whether to keep a record of each offer (64 bytes), or only of accepted ones.

    Attributes
    ----------
    selected_, trace_, n_offered_, stopped_, classes_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.ColumnSelector`.
    wealth_ : float
        The error budget that is left.

    Raises
    ------
    ValueError
        If a parameter is out of its range, when the target arrives.
    DataError
        If the target or a column cannot be used. The state is then unchanged.

    Notes
    -----
    Memory O(n q), q the number selected, and the trace; a feature that is not selected is not stored. Time O(n q) per
    candidate, and with `release` O(n q^2) per accepted one. A feature that leaves does not change the wealth: its price
    stays paid and its payout stays earned, and its record in the trace says "accepted".

    The bound on false features, E(N) <= (payout E(M) + W_0) / (1 - payout), holds for p-values that are valid given the
    past. Here a feature is false if it adds nothing to those selected before it. If columns are correlated, a feature
    whose own coefficient is 0 may add something while the relevant one is still to come. See `release`,
    :func:`tamis.columns.claims.claims` and the rates measured in the documentation.

    References
    ----------
    Zhou, Foster, Stine, Ungar (2005). Streaming Feature Selection using Alpha-investing. KDD. Figure 1, Theorem 1.

    Examples
    --------
    Five of a thousand features matter:

    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1000))
    >>> y = X[:, [10, 20, 500, 600, 990]].sum(axis=1) + 0.3 * rng.normal(size=200)
    >>> AlphaInvesting(target_fdr=0.05).fit(X, y).selected_
    ['x10', 'x20', 'x500', 'x600', 'x990']

    Features that are made one at a time:

    >>> selector = AlphaInvesting().start(y)
    >>> selector.offer(X[:, 10], "a good one"), selector.offer(X[:, 11], "noise")
    (True, False)
    >>> selector.trace_[["name", "decision"]].tolist()
    [('a good one', 'accepted'), ('noise', 'rejected')]

    A stand-in comes before the feature that matters, and leaves when that one comes:

    >>> stand_in, y = X[:, 10] + 0.5 * rng.normal(size=200), X[:, 10] + rng.normal(size=200)
    >>> both = np.column_stack([stand_in, X[:, 10]])
    >>> AlphaInvesting(target_fdr=0.05).fit(both, y).selected_
    ['x0', 'x1']
    >>> AlphaInvesting(target_fdr=0.05, release=0.05).fit(both, y).selected_
    ['x1']
    """

    _parts = ("_model", "_rule")
    _rule: SpendingRule

    _allowed = parameters(
        rule=(*RULES, SpendingRule),
        initial_wealth=number("(0, 1]"),
        payout=number("[0, 1)"),
        target_fdr=(number("(0, 1)"), None),
        variance=("auto", "classical", "robust"),
        pvalue=("exact", "exp"),
        release=(number("(0, 1]"), None),
    )

    def __init__(
        self,
        model: str = "linear",
        *,
        rule: str | SpendingRule = "alpha-investing",
        initial_wealth: float = 0.5,
        payout: float = 0.5,
        target_fdr: float | None = None,
        variance: str = "auto",
        pvalue: str = "exact",
        release: float | None = None,
        intercept: bool = True,
        max_features: int | None = None,
        missing: str = "refuse",
        trace: str = "all",
    ) -> None:
        self.model = model
        self.rule = rule
        self.initial_wealth = initial_wealth
        self.payout = payout
        self.target_fdr = target_fdr
        self.variance = variance
        self.pvalue = pvalue
        self.release = release
        self.intercept = intercept
        self.max_features = max_features
        self.missing = missing
        self.trace = trace

    @property
    def wealth_(self) -> float:
        """The error budget that is left."""
        return self._rule.wealth_

    def _begin(self, y: Array, weight: Array) -> None:
        self._held: tuple[
            tuple[int, Floats], ...
        ] = ()  # with `release`: offer and column of each selected feature
        self._rule = self._make_rule().start()
        robust = self.variance == "robust" or (self.variance == "auto" and self.model == "poisson")
        if self.model == "linear" and not robust:
            warn_of_a_rare_class(
                y, weight, "the p-values of model='linear' are too small there, choose model='logistic'"
            )
            warn_of_heavy_tails(y, weight)
        self._start_model(y, weight, robust, self.pvalue == "exp")

    def _make_rule(self) -> SpendingRule:
        if isinstance(self.rule, SpendingRule):
            rule: SpendingRule = clone(self.rule)
            return rule
        if self.target_fdr is None and issubclass(RULES[self.rule], AlphaWealth):
            invests: SpendingRule = RULES[self.rule](self.initial_wealth, self.payout)
            return invests
        return make_rule(self.rule, 0.05 if self.target_fdr is None else self.target_fdr)

    def _consider_block(self, columns: Any) -> Verdicts:
        before = {place for place, _ in self._held}
        verdicts = super()._consider_block(columns)
        if self.release is not None:
            places = [place for place, _ in self._held]
            verdicts.dropped = tuple(before - set(places))
            verdicts.entered = tuple(place - self.n_offered_ for place in places if place not in before)
        return verdicts

    def _try(self, columns: Any, j: int, start: int, bar: float, verdicts: Verdicts) -> bool:
        accepted = super()._try(columns, j, start, bar, verdicts)
        if accepted and self.release is not None:
            self._held = (*self._held, (self.n_offered_ + start + j, dense_column(columns, j).copy()))
            self._let_go(math.log(self.release))
        return accepted

    def _let_go(self, log_release: float) -> None:
        """Let go of the worst of the earlier features, again and again while its p-value is above `release`."""
        while len(self._held) > 1 and self._model.full() is None:
            log_p = self._model.retest(np.column_stack([column for _, column in self._held]))[:-1]
            worst = int(np.argmax(log_p))
            if log_p[worst] <= log_release:
                break
            self._held = (*self._held[:worst], *self._held[worst + 1 :])
            self._model.restart(np.column_stack([column for _, column in self._held]))
        self.stopped_ = self._model.full() or self._too_many()

    def _bars(self, log_p: Floats, places: NDArray[np.int64]) -> Floats:
        with np.errstate(divide="ignore"):  # where the wealth is next to nothing, so is the level
            return self._rule.levels(log_p)

    def _may_pass(self, statistic: Floats, log_p: Floats, bars: Floats) -> NDArray[np.bool_]:
        near: NDArray[np.bool_] = log_p <= bars + self._model.slack
        return near

    def _passes(self, proposal: Proposal, bar: float) -> bool:
        return proposal.log_p <= bar

    def _settle(self, verdicts: Verdicts, at: NDArray[np.int64], bars: Floats, accepted: bool) -> None:
        log_p = verdicts.log_p[at]
        verdicts.threshold[at] = np.exp(bars)
        if accepted:
            self._rule.update(True, float(log_p[0]))
            verdicts.wealth[at] = self._rule.wealth_
        elif len(at):
            verdicts.wealth[at] = self._rule.wealths(log_p)
            self._rule.skip(log_p)
