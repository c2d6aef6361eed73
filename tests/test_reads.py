"""Reading changes no model, also when it is interrupted; `tamis.checks` tries the selectors of the catalogue."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import tamis
from tamis import Auto, ByName, FisherScore, MutualInformation, StreamPipeline, Watch, WeightedNaiveBayes
from tamis.catalog import CATALOG, LEARNERS, Entry
from tamis.checks.reads import check_reads, public_reads
from tamis.importance import IncrementalPFI, IncrementalSAGE
from tamis.watch import InputDrift
from tests.behaviour import stream, variants
from tests.test_threads import DETECTORS, detector, summaries

X, Y = stream()
OWN = {e.key: e for e in (*CATALOG, *LEARNERS) if e.module.startswith("tamis.") and "river" not in e.key}
# The hundred trees of a streaming random forest are those of streaming random patches.
LEARNING = [
    key for key, entry in OWN.items() if entry.family == "learners" and key != "streaming-random-forest"
]


def learned(entry: Entry, model: Any, n_rows: int = 600) -> Any:
    if entry.family in ("columns", "cells") or not hasattr(model, "partial_fit"):
        return model.fit(X[:200], Y[:200])
    for start in range(0, n_rows, 100):
        first = entry.family == "learners" and not start and entry.targets != ("regression",)
        rows = slice(start, start + 100)
        model.partial_fit(X[rows], Y[rows], **({"classes": [0, 1]} if first else {}))
    return model


@pytest.mark.parametrize("key", LEARNING)
def test_reading_changes_no_learner(key: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = learned(OWN[key], variants(OWN[key])[0])
    check_reads(model, public_reads(model, X[[3, 50, 120]]), n_places=4)


@pytest.mark.slow
@pytest.mark.hypothesis
@pytest.mark.parametrize("key", OWN)
def test_many_lines_of_every_read(key: str, is_search: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in variants(OWN[key]):
            learned(OWN[key], model)
            # A policy runs the same lines for each row, and a copy is compared at each of them.
            rows = [3, 120] if OWN[key].family == "cells" else [3, 50, 77, 120, 250]
            check_reads(model, public_reads(model, X[rows]), None if is_search else 12)


# -- what the catalogue does not contain -----------------------------------------------------------------------


def watch(delay: int = 0) -> Watch:
    one = Watch(LogisticRegression().fit(X[:100, :6], Y[:100]))
    for start in range(0, 600, 100):
        one.update(
            X[start : start + 100, :6],
            keys=range(start, start + 100),
            y=None if delay else Y[start : start + 100],
        )
    return one


def importance(cls: type[Any], sampling: str) -> Any:
    one, model = cls(random_state=0, sampling=sampling), LogisticRegression().fit(X[:100, :6], Y[:100])
    for start in range(0, 600, 100):
        one.update(model, X[start : start + 100, :6], Y[start : start + 100])
    return one


def pipeline(selector: Any) -> StreamPipeline:
    one = StreamPipeline(selector, WeightedNaiveBayes())
    for start in range(0, 490, 70):
        one.partial_fit(X[start : start + 70], Y[start : start + 70], classes=[0, 1])
    return one


def by_name(**parameters: Any) -> ByName:
    rows = [{f"x{j}": value for j, value in enumerate(row)} for row in X[:300].tolist()]
    return ByName(MutualInformation(3), **parameters).partial_fit(rows, Y[:300])


def input_drift(reference: int) -> InputDrift:
    one = InputDrift(reference, categorical=[7])
    one.update(X)
    return one


def written(subject: Any) -> Any:
    one = subject.make()
    subject.writes[0](one)
    return one


OTHERS: dict[str, Callable[[], Any]] = {
    "Watch": watch,
    "Watch, labels to come": functools.partial(watch, 1),
    **{
        f"{cls.__name__} {sampling}": functools.partial(importance, cls, sampling)
        for cls in (IncrementalPFI, IncrementalSAGE) for sampling in ("marginal", "conditional")
    },
    **{
        f"StreamPipeline {type(selector).__name__}": functools.partial(pipeline, selector)
        for selector in (FisherScore(3), MutualInformation(3))
    },
    "ByName": by_name,
    "ByName with a budget": functools.partial(by_name, budget=8),
    "InputDrift": functools.partial(input_drift, 100),
    "InputDrift, reference not complete": functools.partial(input_drift, 1000),
    **{name: lambda name=name: written(detector(name)) for name in DETECTORS},
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_reading_changes_nothing_else(name: str) -> None:
    one = OTHERS[name]()
    check_reads(one, public_reads(one, X[:3]), n_places=8)


@pytest.mark.slow
@pytest.mark.hypothesis
@pytest.mark.parametrize("name", [*OTHERS, "StreamPipeline Auto"])
def test_many_lines_of_other_reads(name: str, is_search: bool) -> None:
    one = OTHERS[name]() if name in OTHERS else pipeline(Auto(3))
    check_reads(one, public_reads(one, X[:3]), None if is_search else 20)


@pytest.mark.parametrize("name", summaries())
def test_reading_changes_no_summary(name: str) -> None:
    subject = summaries()[name]()
    reads = {key: read for key, read in subject.reads.items() if key.startswith("reading")}
    one = written(subject)
    check_reads(one, public_reads(one, X[:3]) | reads)


# -- caches and files ------------------------------------------------------------------------------------------


def test_an_interrupt_leaves_scores_for_the_saved_model_too(monkeypatch: pytest.MonkeyPatch) -> None:
    model = MutualInformation(3).partial_fit(X, Y)
    expected = tamis.loads(tamis.dumps(model)).scores_
    with monkeypatch.context() as patch:
        patch.setattr("tamis.summaries.quantiles.QuantileSummary.counts", lambda *_: _raise())
        with pytest.raises(MemoryError):
            _ = model.scores_
    np.testing.assert_array_equal(tamis.loads(tamis.dumps(model)).scores_, expected)
    np.testing.assert_array_equal(model.scores_, expected)


def _raise() -> None:
    raise MemoryError


def test_caches_in_a_file_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    model = MutualInformation(3).partial_fit(X, Y)
    expected = model.scores_
    model._bins.tables().clear()  # as versions before 0.1 could save it
    with monkeypatch.context() as patch:
        patch.setattr("tamis.persistence.codec.state_of", vars)
        data = tamis.dumps(model)
    assert data != tamis.dumps(model)
    np.testing.assert_array_equal(tamis.loads(data).scores_, expected)
