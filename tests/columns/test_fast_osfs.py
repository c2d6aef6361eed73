"""Fast-OSFS equals its twin, which tests every subset, and selects what is published."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from tamis import FastOSFS
from tests.columns.test_saola import chained
from tests.twins.fast_osfs import fast_osfs


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_equals_its_twin(seed, most):
    X, y = chained(seed, n=80, p=24)
    selector = FastOSFS(alpha=0.05, max_conditions=most).fit(X, y)
    assert selector.selected_ == [f"x{j}" for j in fast_osfs(X, y, 0.05, most)]


def test_gene_expression(load_shared):
    """Measured with the prototype of the specification: 5.0 genes and 0.832 with 3 neighbours, on the same folds."""
    X, y, _ = load_shared("allaml")
    n_selected, accuracy = [], []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        selector = FastOSFS().fit(X[train], y[train])
        knn = KNeighborsClassifier(3).fit(selector.transform(X[train]), y[train])
        accuracy.append(knn.score(selector.transform(X[test]), y[test]))
        n_selected.append(len(selector.selected_))
    assert n_selected == [5] * 5
    assert np.mean(accuracy) == pytest.approx(0.832, abs=0.0006)


def test_a_redundant_feature_does_not_enter(rng):
    y = rng.integers(0, 2, size=500)
    cause = y + 0.4 * rng.normal(size=500)
    selector = FastOSFS().start(y)
    assert selector.offer(cause + 0.6 * rng.normal(size=500), "effect")
    assert selector.offer(cause, "cause")
    assert not selector.offer(cause + 0.6 * rng.normal(size=500), "another effect")
    assert selector.selected_ == ["cause"]


@pytest.mark.parametrize("value", [0, 2.5, "3", None])
def test_refusals(value):
    with pytest.raises(ValueError, match="max_conditions must be an integer in"):
        FastOSFS(max_conditions=value).start(np.array([0, 1, 0, 1]))
