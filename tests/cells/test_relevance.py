"""What passes the filter: columns that tell, and of noise nothing."""

import numpy as np
import pytest

from tamis import ETANA, FETANA, IFC2F
from tamis.cells.bins import Bins
from tamis.cells.relevance import benjamini_hochberg, chance_p_values, relevance
from tamis.dependence.information import mutual_information


def tables_of(X, y, n_bins=4):
    return Bins.quantile(X, n_bins).tables(X, y, int(y.max()) + 1)


@pytest.mark.parametrize(("n", "share"), [(30, 0.5), (60, 0.2), (200, 0.26)])
def test_chance_is_that_of_permuted_labels(n, share):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 40)), (np.arange(n) < share * n).astype(int)
    X[:, :20] += 0.6 * y[:, None]
    bins = Bins.quantile(X, 4)
    told = mutual_information(bins.tables(X, y, 2))
    orders = np.array([mutual_information(bins.tables(X, rng.permutation(y), 2)) for _ in range(2000)])
    more, as_much = orders > told + 1e-9, np.abs(orders - told) <= 1e-9
    by_permutation = (more + 0.5 * as_much).mean(
        axis=0
    )  # few rows have few values: half of those that are equal
    found = chance_p_values(bins.tables(X, y, 2))
    low = by_permutation < 0.15  # above, it is not looked at
    assert low.sum() >= 8
    np.testing.assert_allclose(found[low], by_permutation[low], rtol=0.5, atol=0.003)


def test_noise_does_not_pass():
    passed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(200, 30)), (rng.random(200) < 0.26).astype(int)
        passed += np.nansum(relevance(tables_of(X, y), "chance")[0] > 0) > 0
    assert passed < 200 * 0.17  # a rate of 0.1, and three standard errors
    assert (
        np.count_nonzero(relevance(tables_of(X, y), "count")[0] > 0) >= 5
    )  # the published rule lets it pass


def test_their_number_is_that_of_the_columns_that_tell(rng):
    y = rng.integers(0, 2, 400)
    for telling in (1, 5, 25):
        X = rng.normal(size=(400, 60))
        X[:, :telling] += 1.2 * y[:, None]
        scores, least = relevance(tables_of(X, y), "chance")
        passed = np.flatnonzero(scores > least)
        assert set(range(telling)) <= set(passed.tolist())
        assert len(passed) <= telling + 0.35 * telling + 2


def test_discoveries_are_those_of_the_definition(rng):
    for _ in range(50):
        p = np.round(rng.random(12) ** 3, 2)
        ranked = sorted(p)
        largest = max([k for k in range(1, 13) if ranked[k - 1] <= 0.1 * k / 12], default=0)
        want = p <= ranked[largest - 1] if largest else np.zeros(12, dtype=bool)
        np.testing.assert_array_equal(benjamini_hochberg(p, 0.1), want)


@pytest.mark.parametrize("kind", [IFC2F, ETANA, FETANA])
def test_models_hold_no_noise(kind):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(300, 30)), rng.integers(0, 2, 300)
    X[:, [4, 9]] += 1.5 * y[:, None]
    model = kind(random_state=0).fit(X, y)
    assert {4, 9} <= set(model.candidates_.tolist()) or model.candidates_[0] in (4, 9)
    assert len(model.candidates_) <= 5
    by_count = IFC2F(threshold="count", order="relevance") if kind is IFC2F else kind.published()
    assert len(by_count.fit(X, y).candidates_) > 5


@pytest.mark.parametrize("kind", [IFC2F, ETANA, FETANA])
def test_where_nothing_tells_nothing_is_bought(kind):
    X, y = np.tile([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]], (10, 1)), np.arange(40) // 20
    model = kind(random_state=0).fit(X, y)
    assert len(model.candidates_) == 0
    assert model.predict_proba(X[:3]).tolist() == [[0.5, 0.5]] * 3
    assert model.open().next_feature is None
