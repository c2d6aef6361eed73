"""OSFS equals its twin, which tests every subset."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from tamis import OSFS, SAOLA, FastOSFS
from tests.columns.test_saola import chained
from tests.twins.osfs import osfs


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_equals_its_twin(seed, most):
    X, y = chained(seed, n=80, p=24)
    selector = OSFS(alpha=0.05, max_conditions=most).fit(X, y)
    assert selector.selected_ == [f"x{j}" for j in osfs(X, y, 0.05, most)]


def test_only_the_causes_stay(rng):
    y = rng.integers(0, 2, size=500)
    cause = y + 0.4 * rng.normal(size=500)
    X = np.column_stack([cause + 0.6 * rng.normal(size=500), cause, cause + 0.5 * rng.normal(size=500)])
    selector = OSFS().fit(X, y)
    assert selector.selected_ == ["x1"]
    assert selector.trace_["decision"].tolist() == ["accepted", "accepted", "rejected"]
    assert selector.trace_["threshold"].tolist() == [0.01] * 3


def test_gene_expression(load_shared):
    """The specification's prototype selects the same genes, in another order of tests."""
    X, y, _ = load_shared("allaml")
    train = next(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))[0]
    assert OSFS().fit(X[train], y[train]).selected_ == ["x4846", "x4950"]


@pytest.mark.parametrize("value", [0, 2.5, "3", None])
def test_refusals(value):
    with pytest.raises(ValueError, match="max_conditions must be an integer in"):
        OSFS(max_conditions=value).start(np.array([0, 1, 0, 1]))


@pytest.mark.parametrize("make", [OSFS, FastOSFS, SAOLA])
def test_fisher_z_warns_of_a_rare_class(make):
    X, y = (np.random.default_rng(0).random((300, 400)) < 0.01).astype(float), np.arange(300) < 6
    with pytest.warns(UserWarning, match="6 of 300 rows have the value 1: .*choose test='g-square'"):
        found = make(alpha=0.001).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counted = make(alpha=0.001, test="g-square").fit(X, y)
        make().fit(X, np.arange(300) < 80)
    assert (counted.trace_["p_value"] < 0.001).sum() < 3 < (found.trace_["p_value"] < 0.001).sum()
