"""Neighbourhood dependencies equal those of rows sorted one at a time, and those that the articles print."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.dependence import rough_set
from tamis.dependence.rough_set import (
    RULES,
    column_dependencies,
    neighbourhood_dependency,
    set_dependency,
)
from tests.twins.ofs_a3m import dependency, gamma_of

# The eight objects of both articles, with four features and two classes.
OBJECTS = np.array(
    [
        [3, 5.6, -66, 3.05], [5, 6.9, 95, 4.84], [8, 5.3, -28, 5.89], [13, 12.3, -35, 6.14],
        [6, 15.2, 72, 6.55], [5, 2.6, 42, 10.94], [9, 6.8, -33, 23.85], [15, 8.4, 15, 23.85],
    ]
)  # fmt: skip
CLASSES = np.array([-1, 1, 1, 1, -1, 1, -1, -1])
SETS = ([0], [1], [0, 1], [2], [3], [0, 1, 3])


def test_worked_example_of_ofs_a3m():
    found = [round(neighbourhood_dependency(OBJECTS[:, part], CLASSES), 5) for part in SETS]
    assert found == [0.2625, 0.33542, 0.32292, 0.29464, 0.6, 0.55357]


def test_worked_example_of_ofs_density():
    """The values of the released program's rule, with columns that are not standardised."""
    codes = (CLASSES > 0).astype(np.int64)
    found = [
        float(column_dependencies(OBJECTS[:, part], codes, "density")[0]) if len(part) == 1
        else set_dependency(np.ascontiguousarray(OBJECTS[:, part].T), codes, "density")
        for part in SETS
    ]  # fmt: skip
    assert np.round(found, 5).tolist() == [0.39583, 0.16667, 0.39673, 0.15417, 0.625, 0.57708]


@given(st.integers(0, 10_000), st.integers(3, 50), st.integers(1, 3), st.sampled_from(RULES), st.booleans())
def test_equals_sorted_rows(seed, n, k, rule, ties):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, k)), rng.integers(0, 3, size=n)
    if ties:
        X = np.round(X)
    X = X[:, np.ptp(X, axis=0) > 0]
    if X.shape[1] == 0:
        return
    Z = X / X.std(axis=0, ddof=1)
    columns = [X[:, 0]] if X.shape[1] == 1 else list(Z.T)
    assert neighbourhood_dependency(X, y, rule) == pytest.approx(dependency(columns, y, rule), abs=1e-13)


def test_many_rows_are_looked_at_in_parts(rng, monkeypatch):
    X, y = rng.normal(size=(90, 2)), rng.integers(0, 2, size=90)
    whole = neighbourhood_dependency(X, y, "density")
    monkeypatch.setattr(rough_set, "_CELLS", 700)
    monkeypatch.setattr(rough_set, "_NEAREST", 3)
    assert neighbourhood_dependency(X, y, "density") == whole
    assert whole == pytest.approx(dependency(list((X / X.std(axis=0, ddof=1)).T), y, "density"), abs=1e-13)


@pytest.mark.parametrize("rule", RULES)
def test_the_order_of_the_rows_does_not_matter(rule, rng):
    X, y = rng.integers(0, 3, size=(60, 3)).astype(float), rng.integers(0, 2, size=60)
    other = rng.permutation(60)
    for part in ([0], [0, 1, 2]):
        assert neighbourhood_dependency(X[:, part], y, rule) == pytest.approx(
            neighbourhood_dependency(X[other][:, part], y[other], rule), abs=1e-13
        )


def test_a_column_that_is_the_class_has_dependency_1(rng):
    y = rng.integers(0, 2, size=60)
    assert neighbourhood_dependency(y[:, None], y) == 1.0
    assert gamma_of(y[:, None].astype(float), y, [0], "gap") == 1.0


def test_refusals():
    with pytest.raises(ValueError, match="X has 2 rows"):
        neighbourhood_dependency(np.eye(2), np.arange(2))
    with pytest.raises(ValueError, match="rule must be one of 'gap'"):
        neighbourhood_dependency(np.eye(4), np.arange(4), "nearest")
