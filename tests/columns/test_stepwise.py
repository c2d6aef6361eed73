"""Forward stepwise regression equals full regressions, step by step."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tamis import ForwardStepwise, PenalisedSelector
from tests.twins.stepwise import stepwise


def planted(rng, n=60, p=40):
    X = rng.normal(size=(n, p))
    X[:, 0] = X[:, 20] + X[:, 30] + rng.normal(size=n)
    return X, X[:, 20] + 2 * X[:, 30] + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize("criterion", ["aic", "bic", "ric"])
def test_equals_its_twin(criterion, rng):
    X, y = planted(rng)
    expected = [f"x{j}" for j in stepwise(X, y, criterion, 12)]
    selector = ForwardStepwise(criterion, max_features=12).fit(X, y)
    assert selector.selected_ == expected
    assert selector.selected_[:2] == ["x30", "x20"]
    assert ForwardStepwise(criterion, max_features=12).fit(sp.csc_matrix(X), y).selected_ == expected


def test_blocks_are_searched_one_after_the_other(rng):
    X, y = planted(rng)
    selector = ForwardStepwise("bic").start(y)
    selector.offer_many(X[:, :10])
    selector.offer_many(X[:, 10:])
    assert selector.selected_[0] == "x0"
    assert {"x20", "x30"} <= set(selector.selected_)
    single, stream = ForwardStepwise("bic").start(y), PenalisedSelector("bic").fit(X, y)
    for j in range(40):
        single.offer(X[:, j])
    assert single.selected_ == stream.selected_


def test_ends_when_full_and_names_refused_columns(rng):
    X, y = rng.normal(size=(10, 50)), rng.normal(size=10)
    X[:, 7] = 1.0
    X[:, 9] = X[:, 8]
    selector = ForwardStepwise("aic").fit(X, y)
    assert selector.stopped_ is not None
    assert len(selector.selected_) <= 8
    assert selector.trace_["decision"][7] == "constant"
    assert not {"x8", "x9"} <= set(selector.selected_)
    assert set(selector.trace_["decision"]) <= {"accepted", "full", "constant", "collinear", "rejected"}


@pytest.mark.parametrize("model", ["logistic", "poisson"])
def test_finds_planted_features_of_other_models(model, rng):
    X, y = planted(rng, n=200)
    target = (y > 0) if model == "logistic" else rng.poisson(np.exp(0.4 * y))
    assert {"x20", "x30"} <= set(ForwardStepwise("bic", model=model).fit(X, target).selected_[:3])


def test_a_gain_must_be_more_than_its_price(rng, monkeypatch):
    X, y = planted(rng)
    gain = ForwardStepwise("aic", max_features=1).fit(X, y).trace_["statistic"].max()
    for price, n_selected in ((gain, 0), (np.nextafter(gain, 0.0), 1)):
        monkeypatch.setattr("tamis.columns.stepwise.penalty", lambda *_, price=price: np.array([price]))
        assert len(ForwardStepwise("aic", max_features=1).fit(X, y).selected_) == n_selected
