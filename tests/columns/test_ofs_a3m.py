"""OFS-A3M equals its twin, and goes through the example of its article."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import OFSA3M
from tests.dependence.test_rough_set import CLASSES, OBJECTS
from tests.twins.ofs_a3m import ofs_a3m


def grouped(seed, discrete):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 12))
    X = np.round(X) if discrete else X
    y = (X[:, 3] + X[:, 7] + 0.5 * rng.normal(size=40) > 0).astype(np.int64)
    if seed % 3 == 0:  # two columns that tell everything
        X[:, 6], X[:, 9] = 9 * y + X[:, 6], y
    X[:, 11], X[:, 1] = 5 - 2 * X[:, 3], 4.0
    return X, y


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from(["article", "code"]))
def test_equals_its_twin(seed, discrete, relevance):
    X, y = grouped(seed, discrete)
    selector = OFSA3M(relevance, random_state=3).fit(X, y)
    assert selector.selected_ == [f"x{j}" for j in ofs_a3m(X, y, relevance, seed=3)]
    assert selector.trace_["decision"][1] == "constant"


def test_worked_example():
    selector = OFSA3M().fit(OBJECTS, CLASSES)
    assert selector.selected_ == ["x0", "x1", "x3"]
    assert selector.trace_["statistic"].round(5).tolist() == [0.2625, 0.33542, 0.29464, 0.6]
    assert selector.trace_["threshold"].round(5).tolist() == [0.0, 0.2625, 0.29896, 0.29896]
    assert round(selector.dependency_, 5) == 0.55357


def test_what_adds_nothing_may_replace_others(rng):
    y = np.repeat([0, 1], 30)
    better = y * 10.0 + rng.normal(size=60)
    selector = OFSA3M().fit(np.column_stack([better, 3.0 - 2.0 * better, rng.normal(size=60) + 20.0 * y]), y)
    assert selector.trace_["decision"].tolist() == ["accepted", "collinear", "accepted"]
    assert selector.selected_ == ["x2"]
    assert selector.dependency_ == 1.0


def test_weights_are_rows(rng):
    X, y = grouped(1, False)
    weights = rng.integers(0, 3, size=40)
    rows = np.repeat(np.arange(40), weights)
    assert OFSA3M().fit(X, y, sample_weight=weights).selected_ == OFSA3M().fit(X[rows], y[rows]).selected_


@pytest.mark.parametrize(
    ("parameters", "y", "words"),
    [
        ({"relevance": "mean"}, [0, 1, 0], "relevance must be one of 'article', 'code', got 'mean'"),
        ({}, [0, 1], "y has 2 sample"), ({}, [1, 1, 1], "of 1 class"), ({"random_state": "x"}, [0, 1, 0], "'x'"),
    ],
)  # fmt: skip
def test_refusals(parameters, y, words):
    with pytest.raises(ValueError, match=words):
        OFSA3M(**parameters).start(np.array(y))
