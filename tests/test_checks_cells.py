"""The suite for classifiers that acquire values: ours pass, and each kind of fault is found."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest

from tamis import ETANA, IFC2F, AdaptiveIFC2F
from tamis.catalog import CATALOG
from tamis.checks import cell_classifier_checks, check_cell_classifier

# The published order and few steps keep the suite short; the methods have tests of their own.
PARAMETERS: dict[str, dict[str, Any]] = {"AdaptiveIFC2F": {"max_steps": 4}, "FETANA": {"n_iterations": 1500}}
MODELS = [entry.load()(**PARAMETERS.get(entry.name, {})) for entry in CATALOG if entry.family == "cells"]
VARIANTS = [IFC2F.published(order="relevance", always_first=False), ETANA.published(prior="empirical")]


class AsksTwice(ETANA):
    """Forgets what was asked."""

    def _observe(self, state: Any, position: Any, code: Any, value: Any) -> None:
        super()._observe(state, position, code, value)
        state.asked[:] = False


class PaysForHoles(ETANA):
    """Counts a missing value as acquired."""

    def _pay(self, rows: Any, position: Any, code: Any, *rest: Any) -> None:
        super()._pay(rows, position, np.maximum(code, 0), *rest)


class WritesIntoRows(ETANA):
    def _learn(self, X: Any, y: Any) -> None:
        super()._learn(X, y)
        if not hasattr(X, "indptr"):
            X[:] = 0.0


class KeepsItsRows(ETANA):
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        super().fit(X, y, sample_weight)
        self._rows_seen = X
        return self

    def predict_proba(self, X: Any) -> Any:
        found = super().predict_proba(X)
        rows = self._rows_seen
        return found if hasattr(rows, "indptr") else np.where(np.ptp(rows) == 0.0, found[:, ::-1], found)


class NeverStops(ETANA):
    def _is_acquired(self, k: int, posterior: Any, *rest: Any) -> Any:
        return np.ones(len(posterior), dtype=bool)


class LooksAtTheOthers(ETANA):
    """Stops by the mean posterior of all rows."""

    def _is_acquired(self, k: int, posterior: Any, *rest: Any) -> Any:
        return super()._is_acquired(k, posterior, *rest) & (posterior[:, 0] <= posterior[:, 0].mean() + 0.2)


class ForgetsItsSeed(ETANA):
    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(X) + 1e-3 * np.random.default_rng().random()


class CountsItsPredictions(ETANA):
    def predict(self, X: Any) -> Any:
        self._n_read = vars(self).get("_n_read", 0) + 1
        return super().predict(X)


FAULTS = {
    CountsItsPredictions: "reading_changes_nothing",
    AsksTwice: "free_evidence missing_values_cost_nothing",
    PaysForHoles: "missing_values_cost_nothing",
    WritesIntoRows: "leaves_data_alone",
    KeepsItsRows: "leaves_data_alone",
    NeverStops: "prices",
    LooksAtTheOthers: "rows_are_independent sessions_walk_the_same_way",
    ForgetsItsSeed: "same_data_same_bits",
}


def all_checks() -> list[Any]:
    return [
        pytest.param(check, id=f"{model!r}-{name}".replace("\n", ""))
        for model in [*MODELS, *VARIANTS]
        for name, check in cell_classifier_checks(model)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("check", all_checks())
def test_conforms(check: Any) -> None:
    try:
        check()
    except SkipTest as reason:
        pytest.skip(str(reason))


def test_page_lists_every_check() -> None:
    page = (Path(__file__).parents[1] / "docs" / "checks.md").read_text(encoding="utf-8")
    section = page.split("\n## Acquisition classifiers\n")[1].split("\n## ")[0]
    listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?`) \|", section, flags=re.MULTILINE)))
    assert sorted(listed) == sorted(name for name, _ in cell_classifier_checks(ETANA()))


@pytest.mark.slow
def test_the_suite_counts_what_it_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    every = list(cell_classifier_checks(ETANA()))
    assert len(every) >= 25
    monkeypatch.setattr("tamis.checks.cells.cell_classifier_checks", lambda _: iter(every[:6]))
    report = check_cell_classifier(ETANA())
    assert {*report.passed, *report.skipped} == {name for name, _ in every[:6]}
    assert report.failed == {}
    assert str(report).startswith(f"{len(report.passed)} checks passed")


@pytest.mark.slow
@pytest.mark.parametrize("faulty", list(FAULTS), ids=lambda cls: cls.__name__)
def test_faults_are_found(faulty: type[ETANA]) -> None:
    names = FAULTS[faulty].split()
    failed = []
    for name, check in cell_classifier_checks(faulty()):
        if name in names:
            try:
                check()
            except AssertionError as error:
                failed.append(str(error))
    assert any(error.startswith(f"{name}: ") for error in failed for name in names), failed


def test_only_classifiers_that_buy_are_checked() -> None:
    for other in (3, AdaptiveIFC2F):
        with pytest.raises(TypeError, match="must be an instance of tamis"):
            list(cell_classifier_checks(other))
