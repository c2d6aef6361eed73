"""Every selector of the catalogue keeps the contract, and the checks notice one that does not."""

from __future__ import annotations

import functools
import importlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self
from unittest import SkipTest

import narwhals as nw
import numpy as np
import pytest
import scipy.sparse as sp

from tamis import DISCUSS, FIRES, OFS, Auto, FisherScore, JointScreening, MonteCarloFIRES, Screening, TScore
from tamis.base import RowSelector
from tamis.base.declarations import Inputs
from tamis.base.rows import feature_names, joint_classes
from tamis.catalog import CATALOG
from tamis.checks import Report, check_row_selector, row_selector_checks
from tamis.errors import DataError

SELECTORS = [entry.load()() for entry in CATALOG if entry.family == "rows"]
VARIANTS = [
    FIRES.paper(), FIRES(update="assumed-density"), FIRES(scaling="center", intercept=True), FIRES(model="gaussian"),
    FIRES(model="logit"), MonteCarloFIRES(model="tree"), MonteCarloFIRES(task="regression"),
    TScore(task="regression"), Screening(task="regression"), JointScreening(task="regression"),
    DISCUSS(task="regression"), Auto(task="regression"),
    FIRES(importance="signal", scaling=None), OFS(information="partial"), OFS(regularization=0, margin=0),
]  # fmt: skip


class MeanGap(RowSelector):
    """Scores a feature by the largest gap between its means in two classes."""

    def __init__(self, n_features_to_select: Any = 0.5, shift: float = 0.0) -> None:
        self.n_features_to_select = n_features_to_select
        self.shift = shift

    def _start(self, n_features: int) -> None:
        self._counts = np.zeros((0, 1))
        self._sums = np.zeros((0, n_features))

    def _grow(self) -> None:
        new = len(self.classes_) - len(self._counts)
        if new == 0:
            return
        self._counts = np.vstack([self._counts, np.zeros((new, 1))])
        self._sums = np.vstack([self._sums, np.zeros((new, self.n_features_in_))])

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._grow()
        rows = X.toarray() if sp.issparse(X) else X
        for i, code in enumerate(y):
            weight = 1.0 if sample_weight is None else sample_weight[i]
            self._counts[code] += weight
            self._sums[code] += weight * rows[i].astype(np.float64)

    def _relevance(self) -> Any:
        seen = self._counts[:, 0] > 0
        if seen.sum() < 2:
            return np.zeros(self.n_features_in_)
        means = self._sums[seen] / self._counts[seen]
        return means.max(axis=0) - means.min(axis=0) + self.shift

    def merge(self, other: MeanGap) -> Self:
        codes, joint = joint_classes(self, other)
        self.__dict__.update(joint)
        self._grow()
        np.add.at(self._counts, codes, other._counts[: len(codes)])
        np.add.at(self._sums, codes, other._sums[: len(codes)])
        self.n_seen_ += other.n_seen_
        return self


# -- the catalogue -----------------------------------------------------------------------------------------


def cases(selectors: list[RowSelector]) -> Iterator[Any]:
    for selector in selectors:
        for name, check in row_selector_checks(selector):
            label = " ".join(repr(selector).split())
            many = type(selector).__name__ in (
                "Auto",
                "JointScreening",
            )  # which hold many others, or many pairs
            yield pytest.param(check, id=f"{label}-{name}", marks=[pytest.mark.slow] * many)


@pytest.mark.parametrize("check", list(cases([*SELECTORS, *VARIANTS, MeanGap()])))
def test_contract(check: Any) -> None:
    check()


def test_every_row_selector_is_examined() -> None:
    assert {type(selector).__name__ for selector in SELECTORS} == {
        e.name for e in CATALOG if e.family == "rows"
    }


# -- the report --------------------------------------------------------------------------------------------


def test_report_counts_what_was_run() -> None:
    names = [name for name, _ in row_selector_checks(MeanGap())]
    report = check_row_selector(MeanGap())
    assert len(set(names)) == len(names) >= 33
    assert set(report.passed) | set(report.skipped) == set(names)
    assert {"batch_equals_loop", "merge", "sparse_kinds"} <= set(report.passed)
    assert str(report).startswith(f"{len(report.passed)} checks passed")


def test_skipped_checks_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without_frames(name: str, package: str | None = None) -> Any:
        if name in ("pandas", "polars"):
            raise ModuleNotFoundError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", without_frames)
    report = check_row_selector(FIRES(model="gaussian"))
    assert report.skipped == {
        "batch_equals_loop": "the method is defined per batch",
        "single_class": "a regression has no classes",
        "late_class": "a regression has no classes",
        "labels_of_any_type": "a regression has no classes",
        "prior": "the method has no prior weights",
        "labels_are_optional": "the method uses labels",
        "columns_that_come_later": "what the method learns depends on the number of columns",
        "frame_pandas": "pandas is not installed",
        "frame_polars": "polars is not installed",
    }
    assert "skipped (batch_equals_loop: the method is defined per batch; " in str(report)


def test_catalogue_says_what_is_promised_unless_told() -> None:
    with pytest.raises(SkipTest):
        dict(row_selector_checks(FIRES()))["batch_equals_loop"]()
    with pytest.raises(
        AssertionError, match=r"^batch_equals_loop: 90 rows at once, and 1 at a time: scores_ differs"
    ):
        dict(row_selector_checks(FIRES(), per_batch=False))["batch_equals_loop"]()
    with pytest.raises(
        AssertionError, match=r"^batch_equals_loop: 90 .*rows at once, and 1 at a time: scores_"
    ):
        dict(row_selector_checks(FisherScore(), rounding=False))["batch_equals_loop"]()
    dict(row_selector_checks(FisherScore()))["batch_equals_loop"]()
    with pytest.raises(SkipTest, match="two classes only"):
        dict(row_selector_checks(OFS(), multiclass=False))["late_class"]()


def test_all_failures_are_reported_at_once() -> None:
    with pytest.raises(AssertionError) as caught:
        check_row_selector(Blind())
    message = str(caught.value)
    assert message.startswith("Blind: ")
    assert ", 1 failed\nfinds_planted_features: the target depends on" in message


def test_only_instances_are_examined() -> None:
    with pytest.raises(TypeError, match=r"must be an instance of .*RowSelector"):
        check_row_selector(MeanGap)  # type: ignore[arg-type]


def test_report_lists_failures() -> None:
    report = Report(passed=["a"], failed={"b": "b: x is 1 and 2."})
    assert str(report) == "1 checks passed, 1 failed\nb: x is 1 and 2."


def test_page_lists_every_check_and_what_it_promises() -> None:
    page = (Path(__file__).parents[1] / "docs" / "checks.md").read_text(encoding="utf-8")
    section = page.split("\n## The checks\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", section, flags=re.MULTILINE)
    listed = {name: promise for names, promise in rows for name in re.findall(r"`(\w+)`", names)}
    checks = {name: check.args[1].__doc__ for name, check in row_selector_checks(MeanGap())}
    assert listed == {name: promise.splitlines()[0] for name, promise in checks.items()}


# -- selectors that break one promise each -----------------------------------------------------------------


class LearnsBatchMeans(MeanGap):
    """batch_equals_loop"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._grow()
        for code in np.unique(y):
            self._counts[code] += 1.0
            rows, weights = X[y == code], None if sample_weight is None else sample_weight[y == code]
            if weights is None or weights.any():
                self._sums[code] += np.average(
                    rows.toarray() if sp.issparse(rows) else rows, axis=0, weights=weights
                )


class Unseeded(MeanGap):
    """same_data_same_bits"""

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self._noise = np.random.default_rng().random(n_features) * 1e-9

    def _relevance(self) -> Any:
        return super()._relevance() + self._noise


class Narrow(MeanGap):
    """shifted_features"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X.astype(np.float32), y, sample_weight)


class NeverForgets(MeanGap):
    """fit_forgets"""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        return self.partial_fit(X, y, sample_weight=sample_weight)


class Blind(MeanGap):
    """finds_planted_features"""

    def _relevance(self) -> Any:
        scores = super()._relevance()
        return scores if len(scores) < 20 or len(scores) > 100 else -scores


class NeverWaits(MeanGap):
    """single_class"""

    warming_up_ = property(lambda self: len(self.classes_) < 1)


class WaitsForNoRows(MeanGap):
    """single_class"""

    warming_up_ = property(lambda self: len(self.classes_) < 2)


class MergesOnlyWhatWasSeen(MeanGap):
    """merge"""

    def merge(self, other: MeanGap) -> Self:
        unseen = self._unseen
        super().merge(other)
        self._unseen = unseen
        return self


class TwoClassesOnly(MeanGap):
    """late_class"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        if len(self.classes_) > 2:
            raise DataError(f"Only two classes can be told apart, but y has {len(self.classes_)}.")
        super()._learn(X, y, sample_weight)


class LabelsAreNumbers(MeanGap):
    """labels_of_any_type"""

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        y = np.asarray(y)
        return super().partial_fit(X, y.astype(float) if y.dtype.kind in "bi" else y, classes, sample_weight)


class SquaresWeights(MeanGap):
    """sample_weights"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X, y, None if sample_weight is None else sample_weight + 0.5)


class TakesNegativeWeights(MeanGap):
    """sample_weights"""

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        return super().partial_fit(X, y, classes, None if sample_weight is None else np.abs(sample_weight))


class MergesTwice(MeanGap):
    """merge"""

    def merge(self, other: MeanGap) -> Self:
        super().merge(other)
        return super().merge(other)


class MergesOneWay(MeanGap):
    """merge"""

    def merge(self, other: MeanGap, when: str = "after") -> Self:
        return self if when == "before" else super().merge(other)


class WidensByOnes(MeanGap):
    """columns_that_come_later"""

    def _widen(self, n_features: int) -> None:
        more = np.zeros((len(self._sums), n_features - self.n_features_in_))
        more[0] = 100.0
        self._sums = np.hstack([self._sums, more])


class CountsTheRowsOfOthers(MeanGap):
    """several_targets"""

    n_batches = 0

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X, y, sample_weight)
        type(self).n_batches += 1
        self._sums[0] += self.n_batches * np.arange(X.shape[1])


class LosesTies(MeanGap):
    """same_rows"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        rows = X.toarray() if sp.issparse(X) else X
        kept = np.unique(np.column_stack([rows, y]), axis=0, return_index=True)[1]
        tied = len(kept) < len(y)
        kept = np.sort(kept) if tied else np.arange(len(y))
        super()._learn(rows[kept], y[kept], None if sample_weight is None else sample_weight[kept])


class CountsWeightedRowsOnce(MeanGap):
    """sample_weights"""

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self._n_rows = 0

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X, y, sample_weight)
        self._n_rows += len(y)

    def _relevance(self) -> Any:
        return super()._relevance() * np.sqrt(self._n_rows)


class WritesIntoRows(MeanGap):
    """leaves_data_alone"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X, y, sample_weight)
        cells = X.data if sp.issparse(X) else X
        if cells.flags.writeable:
            cells *= 2.0


class KeepsRows(MeanGap):
    """leaves_data_alone"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X, y, sample_weight)
        self._last = X

    def _relevance(self) -> Any:
        return super()._relevance() + 1e-3 * np.asarray(self._last.mean(axis=0)).ravel()


class WritesIntoReadOnlyRows(MeanGap):
    """takes_read_only_data"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X, y, sample_weight)
        if not sp.issparse(X):
            X[0, 0] += 1.0


class HandsOutItsState(MeanGap):
    """read_outs_are_copies"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X, y, sample_weight)
        self._scores = super()._relevance()

    def _relevance(self) -> Any:
        return self._scores


class RoundsFloat32(MeanGap):
    """input_kinds"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X if X.dtype == np.float64 or sp.issparse(X) else np.round(X), y, sample_weight)


class SkipsStoredZeros(MeanGap):
    """sparse_kinds"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        if sp.issparse(X):
            X = X.toarray()
            X[X == 0] = 0.1
        super()._learn(X, y, sample_weight)


class SaysSparseIsFine(MeanGap):
    """sparse_kinds"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        if sp.issparse(X):
            raise NotImplementedError
        super()._learn(X, y, sample_weight)


class DropsNames(MeanGap):
    """frame_pandas frame_polars frame_pyarrow"""

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        X = X if sp.issparse(X) or isinstance(X, list) else np.asarray(X)
        return super().partial_fit(X, y, classes, sample_weight)


class IgnoresOrder(MeanGap):
    """frame_pandas frame_polars frame_pyarrow"""

    def _fit_atomic(self, X: Any, *arguments: Any, forget: bool) -> Any:
        known, frame = feature_names(self), nw.from_native(X, eager_only=True, pass_through=True)
        if known and isinstance(frame, nw.DataFrame) and sorted(frame.columns) == sorted(known):
            X = frame.rename(dict(zip(frame.columns, known, strict=True))).to_native()
        return super()._fit_atomic(X, *arguments, forget=forget)


class CountsEmptyBatches(MeanGap):
    """empty_batch"""

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        if X.shape[0] == 0 and hasattr(self, "n_seen_"):
            self.n_seen_ += 1
        return super().partial_fit(X, y, classes, sample_weight)


class CutsColumns(MeanGap):
    """feature_count"""

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        if hasattr(self, "n_seen_") and isinstance(X, np.ndarray) and X.ndim == 2:
            X = X[:, : self.n_features_in_] if X.shape[1] else X
        return super().partial_fit(X, y, classes, sample_weight)


class FillsGaps(MeanGap):
    """non_finite"""

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        if isinstance(X, np.ndarray) and X.dtype.kind == "f":
            X = np.nan_to_num(X)
        return super().partial_fit(X, y, classes, sample_weight)


class AcceptsNonFinite(MeanGap):
    """non_finite"""

    accepts = Inputs(checked_in_kernel=True)  # but it does not check either


class VagueAboutGaps(MeanGap):
    """non_finite"""

    def _fit_atomic(self, X: Any, *arguments: Any, forget: bool) -> Any:
        if isinstance(X, np.ndarray) and X.dtype.kind == "f" and not np.isfinite(X).all():
            raise ValueError("X contains NaN or infinity.")
        return super()._fit_atomic(X, *arguments, forget=forget)


class ReadsTextAsZero(MeanGap):
    """not_numbers"""

    def _fit_atomic(self, X: Any, *arguments: Any, forget: bool) -> Any:
        if isinstance(X, np.ndarray) and X.dtype == object:
            X = np.array([[0.0 if isinstance(cell, str) else cell for cell in row] for row in X.tolist()])
        return super()._fit_atomic(X, *arguments, forget=forget)


class GuessesLabels(MeanGap):
    """impossible_targets"""

    def _fit_atomic(self, X: Any, y: Any, *arguments: Any, forget: bool) -> Any:
        if isinstance(y, np.ndarray) and y.dtype.kind == "f":
            y = np.nan_to_num(y)
        return super()._fit_atomic(X, y, *arguments, forget=forget)


class SelectsAnyNumber(MeanGap):
    """impossible_selection"""

    def __init__(self, n_features_to_select: Any = 0.5, shift: float = 0.0) -> None:
        super().__init__(n_features_to_select, shift)

    def _fit_atomic(self, *arguments: Any, forget: bool) -> Any:
        asked = self.n_features_to_select
        self.n_features_to_select = 1
        try:
            return super()._fit_atomic(*arguments, forget=forget)
        finally:
            self.n_features_to_select = asked


class NeedsTwoRows(MeanGap):
    """one_row"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X, y, sample_weight)
        if len(y) == 1:
            self._sums = self._sums * math.nan


class SqueezesColumns(MeanGap):
    """one_feature"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        X = X.toarray() if sp.issparse(X) else X
        super()._learn(np.squeeze(X, axis=1)[:, [0]] if X.shape[1] == 1 else X, y, sample_weight)


class DividesByRange(MeanGap):
    """constant_features"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X, y, sample_weight)
        rows = X.toarray() if sp.issparse(X) else X
        previous = getattr(self, "_range", np.zeros(1))
        self._range = previous + (rows.max(axis=0) > rows.min(axis=0))

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self._range = np.zeros(n_features)

    def _relevance(self) -> Any:
        with np.errstate(all="ignore"):
            return super()._relevance() * (self._range / self._range)


class NarrowOnly(MeanGap):
    """wide_and_long"""

    def _relevance(self) -> Any:
        return super()._relevance()[:1000]


class SelectsTheWorst(MeanGap):
    """selects_the_best"""

    def _get_support_mask(self) -> Any:
        kept = super()._get_support_mask()
        return kept if kept.all() else kept[::-1]


class FadesWhenRead(MeanGap):
    """reading_changes_nothing"""

    def _relevance(self) -> Any:
        scores = super()._relevance()
        self._counts *= 0.5
        return scores


class CachesInItsState(MeanGap):
    """reading_changes_nothing"""

    def _relevance(self) -> Any:
        self._scores = super()._relevance()
        return self._scores


class FillsItsCacheLate(MeanGap):
    """reading_changes_nothing"""

    _cache = functools.cached_property(lambda self: None)

    def _relevance(self) -> Any:
        if self._cache is None:
            self._cache = np.zeros(self.n_features_in_)
            self._cache += super()._relevance()
        return self._cache.copy()

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X, y, sample_weight)
        self._cache = None


class AlwaysFitted(MeanGap):
    """not_fitted"""

    @property
    def scores_(self) -> Any:
        return super().scores_ if hasattr(self, "n_seen_") else np.zeros(1)


class LearnsItsParameter(MeanGap):
    """clone"""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        super()._learn(X, y, sample_weight)
        self.shift += 0.125


class NeedsLabels(MeanGap):
    """labels_are_optional"""

    accepts = Inputs(labels=False)


class PicklesParameters(MeanGap):
    """copies_go_on"""

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {**state, "_sums": state["_sums"] * 2.0} if "_sums" in state else state


class HoldsAMatrix(MeanGap):
    """save_and_load"""

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self._extra = np.ma.masked_array([1.0])


class IgnoresPrior(MeanGap):
    """prior"""

    def __init__(self, n_features_to_select: Any = 0.1, shift: float = 0.0, prior: Any = None) -> None:
        super().__init__(n_features_to_select, shift)
        self.prior = prior


BROKEN = MeanGap.__subclasses__()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda cls: cls.__name__)
def test_broken_promise_is_noticed(broken: type[MeanGap]) -> None:
    checks = dict(row_selector_checks(broken()))
    for name in (broken.__doc__ or "").split():
        with pytest.raises(AssertionError, match=f"^{name}: "):
            checks[name]()


def test_every_check_notices_something() -> None:
    noticed = {name for broken in BROKEN for name in (broken.__doc__ or "").split()}
    assert noticed == {name for name, _ in row_selector_checks(MeanGap())}
