"""Every selector of columns in the catalogue keeps the contract, and the checks notice one that does not."""

from __future__ import annotations

from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.base import clone

from tamis import AlphaInvesting, Grafting, GramInvesting, PenalisedSelector
from tamis.base import ColumnSelector
from tamis.base.declarations import Inputs
from tamis.base.trace import ACCEPTED, Verdicts
from tamis.catalog import CATALOG
from tamis.checks import check_column_selector, column_selector_checks

SELECTORS = [entry.load()() for entry in CATALOG if entry.family == "columns"]
VARIANTS = [
    AlphaInvesting("logistic"), AlphaInvesting("poisson"), AlphaInvesting(variance="robust"),
    AlphaInvesting(release=0.05), AlphaInvesting("logistic", release=0.05), AlphaInvesting("poisson", release=0.05),
    AlphaInvesting("logistic", variance="robust"), AlphaInvesting(rule="saffron", target_fdr=0.2),
    AlphaInvesting(rule="lord++", target_fdr=0.2), PenalisedSelector("aic", model="logistic"),
    Grafting(model="logistic"),
]  # fmt: skip


class Correlated(ColumnSelector):
    """Accepts a column that correlates with the target, and with no column accepted before."""

    def __init__(self, threshold: float = 0.3, missing: str = "refuse", trace: str = "all") -> None:
        self.threshold = threshold
        self.missing = missing
        self.trace = trace

    def _is_regression(self) -> bool:
        return True

    def _begin(self, y: Any, weight: Any) -> None:
        if np.ptp(y) == 0:
            raise ValueError("y is constant: choose another.")
        self._y, self._weight = y, weight
        self._columns: tuple[Any, ...] = ()

    def _consider(self, column: Any) -> Verdicts:
        verdict = Verdicts.empty(1)
        if np.ptp(column) == 0:
            return verdict
        verdict.statistic[:] = self._correlation(column, self._y)
        close = [other for other in self._columns if self._correlation(column, other) > 0.95]
        if verdict.statistic[0] > self.threshold and not close:
            verdict.decision[:] = ACCEPTED
            self._columns = (*self._columns, column.copy())
        return verdict

    def _correlation(self, one: Any, other: Any) -> float:
        covariance = np.cov(one, other, aweights=self._weight)
        return float(abs(covariance[0, 1]) / np.sqrt(covariance[0, 0] * covariance[1, 1]))


class KeepsReference(Correlated):
    def _begin(self, y: Any, weight: Any) -> None:
        super()._begin(y, weight)
        self._first: Any = None

    def _consider(self, column: Any) -> Verdicts:
        self._first = column if self._first is None else self._first
        verdict = super()._consider(column)
        verdict.statistic[:] = self._first[0]
        return verdict


class WritesIntoColumns(Correlated):
    def _consider(self, column: Any) -> Verdicts:
        verdict = super()._consider(column)
        column -= column.mean()
        return verdict


class LearnsBeforeItRefuses(Correlated):
    def _begin(self, y: Any, weight: Any) -> None:
        super()._begin(y, weight)
        self._offers: list[int] = []

    def _consider(self, column: Any) -> Verdicts:
        self._offers.append(1)  # in place: an error later in the block does not undo it
        verdict = super()._consider(column)
        verdict.statistic[:] = len(self._offers)
        return verdict


class AcceptsConstants(Correlated):
    def _consider(self, column: Any) -> Verdicts:
        if np.ptp(column) > 0:
            return super()._consider(column)
        verdict = Verdicts.empty(1)
        verdict.decision[:] = ACCEPTED
        return verdict


class AcceptsCopies(Correlated):
    def _consider(self, column: Any) -> Verdicts:
        self._columns = ()
        return super()._consider(column)


class AnswersWithIntegers(Correlated):
    def offer(self, column: Any, name: str | None = None) -> bool:
        return int(super().offer(column, name))  # type: ignore[return-value]


class RemembersTheBlock(Correlated):
    """The threshold falls with the width of the block."""

    def _consider_block(self, columns: Any) -> Verdicts:
        dense = columns.toarray() if hasattr(columns, "toarray") else columns
        verdicts = Verdicts.empty(columns.shape[1])
        for j in range(columns.shape[1]):
            one = self._consider(dense[:, j])
            verdicts.decision[j], verdicts.statistic[j] = one.decision[0], one.statistic[0]
        verdicts.threshold[:] = columns.shape[1]
        return verdicts


class ForgetsNothing(Correlated):
    def start(self, y: Any, sample_weight: Any = None) -> Any:
        return self if hasattr(self, "n_offered_") else super().start(y, sample_weight)


class FindsNothing(Correlated):
    def __init__(self, threshold: float = 2.0, missing: str = "refuse", trace: str = "all") -> None:
        super().__init__(threshold, missing, trace)


class CountsItsReadings(Correlated):
    @property
    def trace_(self) -> Any:
        self._n_read = vars(self).get("_n_read", 0) + 1
        return super().trace_


class RejectsFavourites(Correlated):
    def __init__(
        self, threshold: float = 0.3, missing: str = "refuse", trace: str = "all", prior: Any = None
    ) -> None:
        super().__init__(threshold, missing, trace)
        self.prior = prior

    def _consider(self, column: Any) -> Verdicts:
        if max((self.prior or {None: 1.0}).values()) <= 5.0:
            return super()._consider(column)
        return Verdicts.empty(1)


FAULTS = {
    RejectsFavourites: "prior",
    CountsItsReadings: "reading_changes_nothing",
    KeepsReference: "same_data_same_bits leaves_data_alone",
    WritesIntoColumns: "leaves_data_alone",
    LearnsBeforeItRefuses: "fails_late",
    AcceptsConstants: "redundant_columns",
    AcceptsCopies: "redundant_columns",
    AnswersWithIntegers: "answers",
    RemembersTheBlock: "block_equals_one_by_one",
    ForgetsNothing: "fit_equals_offers",
    FindsNothing: "finds_planted_features second_pass",
}


def all_checks() -> list[Any]:
    found = []
    for selector in [*SELECTORS, *VARIANTS, Correlated()]:
        for name, check in column_selector_checks(selector):
            found.append(pytest.param(check, id=f"{selector!r}-{name}".replace("\n", "")))
    return found


@pytest.mark.parametrize("check", all_checks())
def test_conforms(check: Any) -> None:
    try:
        check()
    except SkipTest as reason:
        pytest.skip(str(reason))


def test_the_suite_counts_what_it_ran() -> None:
    report = check_column_selector(AlphaInvesting())
    n_checks = len(list(column_selector_checks(AlphaInvesting())))
    assert len(report.passed) + len(report.skipped) == n_checks >= 23
    assert report.failed == {}
    assert str(report).startswith(f"{len(report.passed)} checks passed")


@pytest.mark.parametrize("faulty", list(FAULTS), ids=lambda cls: cls.__name__)
def test_faults_are_found(faulty: type[Correlated]) -> None:
    checks, found = dict(column_selector_checks(faulty())), []
    for name in FAULTS[faulty].split():
        try:
            checks[name]()
        except AssertionError as error:
            found.append(str(error))
    assert any(error.startswith(f"{name}: ") for error in found for name in FAULTS[faulty].split())


def test_only_selectors_of_columns_are_checked() -> None:
    with pytest.raises(TypeError, match="must be an instance of tamis"):
        list(column_selector_checks(3))  # type: ignore[arg-type]


def test_weights_are_refused_by_a_method_that_cannot_weigh() -> None:
    class Unweighted(Correlated):
        accepts = Inputs(weights=False)

    with pytest.raises(ValueError, match="Unweighted has no sample_weight"):
        Unweighted().start(np.arange(9.0), sample_weight=np.ones(9))


@pytest.mark.parametrize("nonsense", ["nonsense", {}, [1], -1, 2.5, np.nan, 10**400], ids=repr)
@pytest.mark.parametrize(
    "selector", [*SELECTORS, GramInvesting()], ids=lambda selector: type(selector).__name__
)
def test_parameters_that_make_no_sense_are_named(selector: Any, nonsense: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    rows = {"a": X[:, 0], "b": X[:, 1]}
    for name in selector.get_params(deep=False):
        sensible = dict.fromkeys(("half_life", "penalty", "group_penalty", "feature_penalty"), (2.5,))
        if nonsense in sensible.get(name, ()):
            continue
        changed = clone(selector).set_params(**{name: nonsense})
        learn = changed.partial_fit if isinstance(changed, GramInvesting) else changed.fit
        with pytest.raises(ValueError, match=name):
            learn(rows if isinstance(changed, GramInvesting) else X, y)
