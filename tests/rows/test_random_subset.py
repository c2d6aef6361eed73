"""RandomSubset draws once, blindly, the same for the same seed, and uniformly."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tamis import RandomSubset
from tamis.checks import check_row_selector
from tests.twins.random_subset import random_subset


def rows(n=50, n_features=12):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    return X, (X[:, 3] > 0).astype(int)


def test_conforms_but_for_what_it_cannot_find():
    report = check_row_selector(RandomSubset())
    assert report.skipped["finds_planted_features"] == "the scores do not rank relevance"
    assert len(report.passed) >= 29


def test_the_draw_depends_on_the_seed_alone():
    X, y = rows()
    found = RandomSubset(3, random_state=4).fit(X, y).get_support()
    for other in (-X, sp.csr_matrix(X)):
        np.testing.assert_array_equal(RandomSubset(3, random_state=4).fit(other, 1 - y).get_support(), found)
    more = RandomSubset(3, random_state=4).fit(X, y)
    for _ in range(3):
        more.partial_fit(X, 1 - y)
    np.testing.assert_array_equal(more.get_support(), found)
    larger = RandomSubset(7, random_state=4).fit(X, y).get_support()
    assert larger[found].all()
    assert any((RandomSubset(3, random_state=s).fit(X, y).get_support() != found).any() for s in range(3))


def test_each_feature_is_as_likely():
    X, y = rows()
    drawn = sum(RandomSubset(3, random_state=seed).fit(X, y).get_support() for seed in range(800))
    # 800 draws of 3 in 12: 200 expected, 12 the standard deviation
    assert abs(drawn - 200).max() < 50


def test_equals_its_twin():
    X, y = rows()
    for seed in range(5):
        for size in (1, 5, 12):
            found = RandomSubset(size, random_state=seed).fit(X, y).get_support(indices=True)
            assert found.tolist() == random_subset(12, size, seed)


def test_columns_that_come_later_are_as_likely():
    X, y = rows(4, 5)
    first = np.zeros(12)
    for seed in range(600):
        model = RandomSubset(1, random_state=seed).fit(X, y).widen(8).widen(12)
        np.testing.assert_array_equal(np.sort(model._rank), np.arange(12))
        first += model.get_support()
    assert 25 < first.min() <= first.max() < 80
    again = RandomSubset(1, random_state=599).fit(X, y).widen(8).widen(12)
    np.testing.assert_array_equal(again.scores_, model.scores_)
