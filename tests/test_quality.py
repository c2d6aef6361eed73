"""The defaults of the recommended methods reach the quality that was measured when they were chosen, on Electricity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tamis
from tamis import (
    FIRES,
    IFC2F,
    AlphaInvesting,
    Auto,
    FisherScore,
    FixedSubset,
    ForwardPartialCorrelation,
    JointScreening,
    PenalisedSelector,
    prequential,
)
from tamis.streams import ArrayStream

# Measured with the defaults and random_state=0. A value that moves by more than the tolerance is a decision: measure
# the new default on more than one stream, then record the new value here.
QUALITY = [
    # prequential accuracy of the default learner on 6000 rows
    (Auto, "rows", (0.802,), (0.01,)),
    (FIRES, "rows", (0.806,), (0.01,)),
    (FisherScore, "rows", (0.811,), (0.01,)),
    (JointScreening, "rows", (0.809,), (0.01,)),
    (ForwardPartialCorrelation, "rows", (0.809,), (0.01,)),
    # share of the stream's columns that are selected on 3000 rows, and share of the noise
    (AlphaInvesting, "columns", (0.125, 0.0), (0.0, 0.0)),
    (PenalisedSelector, "columns", (0.625, 0.0), (0.0, 0.0)),
    # accuracy on rows 4001 to 6000 after learning the rows before, and number of values acquired per row
    (IFC2F, "cells", (0.782, 2.503), (0.01, 0.1)),
    (FixedSubset, "cells", (0.790, 1.0), (0.01, 0.1)),
]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """6000 rows: the 8 columns of the stream between 40 columns of noise."""
    X, y = next(iter(tamis.load_dataset("electricity").batches(6000)))
    noise = np.random.default_rng(0).normal(size=(6000, 40))
    return np.hstack([noise[:, :20], X, noise[:, 20:]]), (np.asarray(y) == "UP").astype(np.int64)


def new(method: type) -> Any:
    model = method()
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


def measured_rows(method: type, X: Any, y: Any) -> tuple[float, ...]:
    result = prequential(ArrayStream(X, y), new(method), baselines="none")
    return (float(result.summary()["accuracy"]),)


def measured_columns(method: type, X: Any, y: Any) -> tuple[float, ...]:
    support = new(method).fit(X[:3000], y[:3000]).get_support()
    return float(support[20:28].mean()), float(np.delete(support, slice(20, 28)).mean())


def measured_cells(method: type, X: Any, y: Any) -> tuple[float, ...]:
    model = new(method).fit(X[:4000], y[:4000])
    return float(np.mean(model.predict(X[4000:]) == y[4000:])), float(model.n_features_used_.mean())


MEASURE = {"rows": measured_rows, "columns": measured_columns, "cells": measured_cells}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "family", "expected", "tolerance"), QUALITY, ids=[one[0].__name__ for one in QUALITY]
)
def test_the_default_reaches_its_quality(
    method: type, family: str, expected: tuple[float, ...], tolerance: tuple[float, ...], data: Any
) -> None:
    measured = MEASURE[family](method, *data)
    assert len(measured) == len(expected)
    for value, golden, margin in zip(measured, expected, tolerance, strict=True):
        assert value == pytest.approx(golden, abs=margin + 1e-9)
