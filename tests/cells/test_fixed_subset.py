"""FixedSubset: its order against its twin, how many pay, any classifier."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from tamis import FixedSubset, load, save
from tamis.base.prices import Tariff
from tamis.cells.bins import Bins
from tamis.cells.relevance import mrmr
from tests.twins import fixed_subset as twin


def copies(rng, n=800):
    """Columns 0 and 3 tell of the class, 1 and 2 are 0 with a little noise, the rest is noise."""
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 9))
    X[:, 0] += 2 * y
    X[:, 1:3] = X[:, [0]] + 0.05 * rng.normal(size=(n, 2))
    X[:, 3] += 1.5 * y
    return X, y


def without_fees(price):
    return Tariff(price, np.zeros((0, len(price)), bool), np.zeros(0))


@pytest.mark.parametrize("price", [np.ones(9), np.array([1, 0.1, 3, 2, 1, 1, 5, 1, 1.0])])
def test_order_is_the_definition(rng, price):
    X, y = copies(rng)
    bins = Bins.quantile(X, 4)
    found = mrmr(X, y, bins, bins.tables(X, y, 2), without_fees(price), 9).tolist()
    assert found == twin.mrmr(bins.codes(X).tolist(), y.tolist(), price, 9)


def test_a_copy_does_not_come_second(rng):
    X, y = copies(rng)
    bins = Bins.quantile(X, 4)
    order = mrmr(X, y, bins, bins.tables(X, y, 2), without_fees(np.ones(9)), 9).tolist()
    assert set(order[:2]) & {0, 1, 2}
    assert 3 in order[:2]


def test_every_row_is_asked_the_same(rng):
    X, y = copies(rng)
    model = FixedSubset(0.01).fit(X[:400], y[:400])
    traces = model.acquire(X[400:])
    assert len({tuple(trace.features) for trace in traces}) == 1
    assert 1 <= model.policy_.max_values == model.n_features_used_[0] <= 4


@pytest.mark.parametrize("n", [0, 1, 5])
def test_as_many_as_asked_for(rng, n):
    X, y = copies(rng)
    model = FixedSubset(n_features=n).fit(X, y)
    model.predict(X[:50])
    assert (model.n_features_used_ == n).all()


@pytest.mark.parametrize("classifier", [LogisticRegression(), HistGradientBoostingClassifier(random_state=0)])
def test_any_classifier_decides(rng, classifier):
    X, y = copies(rng)
    model = FixedSubset(n_features=3, classifier=classifier).fit(X[:500], y[:500])
    columns = model.candidates_[:3]
    own = classifier.fit(X[:500, columns], y[:500])
    np.testing.assert_allclose(model.predict_proba(X[500:]), own.predict_proba(X[500:, columns]), rtol=1e-10)
    holes = X[500:].copy()
    holes[rng.random(holes.shape) < 0.3] = np.nan
    assert (model.predict(holes) == y[500:]).mean() > 0.6


def test_sparse_named_and_saved(rng, tmp_path):
    X, y = copies(rng)
    X[np.abs(X) < 0.5] = 0.0
    frame = pd.DataFrame(X, columns=list("abcdefghi"))
    model = FixedSubset(n_features=2, classifier=LogisticRegression()).fit(frame, y)
    assert set(model.acquire(frame.iloc[:1])[0].features) <= set("abcdefghi")
    sparse = FixedSubset(n_features=2).fit(sp.csr_array(X), y).predict_proba(sp.csr_array(X))
    np.testing.assert_allclose(sparse, FixedSubset(n_features=2).fit(X, y).predict_proba(X), rtol=1e-10)
    save(model, tmp_path / "model.tamis")
    np.testing.assert_array_equal(load(tmp_path / "model.tamis").predict(frame), model.predict(frame))


def test_where_no_row_can_be_held_out_nothing_is_bought(rng):
    X = rng.normal(size=(2, 4))
    model = FixedSubset(cost=0.05).fit(X, [0, 1])
    assert model.predict(X).tolist() == [0, 0]
    assert model.n_features_used_.tolist() == [0, 0]
    prior = model.open().posterior
    for j in model.candidates_.tolist():  # what is known anyway changes nothing
        session = model.open()
        session.observe(1.0, feature=j)
        assert session.posterior == prior


def test_one_class_and_columns_that_do_not_vary(rng):
    X = np.ones((30, 3))
    assert (FixedSubset().fit(X, np.arange(30) % 2).predict(X) == 0).all()
    assert (FixedSubset().fit(rng.normal(size=(30, 3)), np.zeros(30)).predict(X) == 0).all()


@pytest.mark.parametrize(
    ("settings", "word"), [({"n_bins": 1}, "n_bins"), ({"n_features": -1}, "n_features")]
)
def test_refuses(rng, settings, word):
    X, y = copies(rng)
    with pytest.raises(ValueError, match=word):
        FixedSubset(**settings).fit(X, y)
