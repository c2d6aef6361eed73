"""Categories: the names of classes, the codes of categories and the order of columns change nothing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tamis
from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset
from tamis.base.categories import Categories
from tamis.cells.bins import Bins
from tamis.cells.small_trees import SmallTrees, _profile_bins
from tamis.errors import DataError

METHODS = {
    "IFC2F": IFC2F(random_state=0),
    "ETANA": ETANA(random_state=0),
    "FETANA": FETANA(n_iterations=500, random_state=0),
    "AdaptiveIFC2F": AdaptiveIFC2F(max_steps=4, random_state=0),
    "FixedSubset": FixedSubset(random_state=0),
    "AACO": AACO(random_state=0),
}
every_method = pytest.mark.parametrize("name", METHODS)
COST = 0.01


def rows(n=420, seed=0):
    """Column 1 indicates only whether the class is the second one; 2 has ten categories; 0 and 3 are numbers."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.42, 0.33, 0.25])
    X = np.empty((n, 5))
    X[:, 0] = rng.normal(size=n) + 0.9 * (y == 0)
    X[:, 1] = np.where(rng.random(n) < 0.85, y == 1, rng.random(n) < 0.3)
    X[:, 2] = np.where(rng.random(n) < 0.6, 3 * y, 0) + rng.integers(0, 4, n)
    X[:, 3] = rng.normal(size=n) + 0.7 * (y == 2)
    X[:, 4] = rng.integers(0, 5, n)
    X[rng.random(n) < 0.05, 2] = np.nan
    return X, y


def fitted(name, X, y, **changes):
    model = METHODS[name].__class__(**{**METHODS[name].get_params(), "cost": COST, **changes})
    return model.fit(X, y)


CATEGORICAL = (1, 2, 4)


@pytest.fixture(scope="module")
def plain():
    X, y = rows()
    return {name: fitted(name, X[:300], y[:300], categorical=CATEGORICAL) for name in METHODS}


def equal(model, other, X, X_other, columns=None, order=None):
    """Whether two models decide alike, buy as much and ask for the same columns."""
    posterior, cost = model.predict_proba(X), model.cost_
    found = other.predict_proba(X_other)
    np.testing.assert_allclose(found if order is None else found[:, order], posterior, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.cost_, cost)
    columns = np.arange(X.shape[1]) if columns is None else columns
    assert [columns[j] for j in other.candidates_] == model.candidates_.tolist()


@pytest.mark.slow
@every_method
def test_names_of_classes_change_nothing(plain, name):
    X, y = rows()
    for names in (["b", "a", "c"], ["z", "m", "a"], ["b", "c", "a"]):
        other = fitted(name, X[:300], np.array(names)[y[:300]], categorical=CATEGORICAL)
        equal(plain[name], other, X[300:], X[300:], order=np.argsort(np.argsort(names)))


@pytest.mark.slow
@every_method
def test_codes_of_categories_change_nothing(plain, name):
    X, y = rows()
    other = X.copy()
    for j, seed in zip(CATEGORICAL, range(3), strict=True):
        known = ~np.isnan(X[:, j])
        code = np.random.default_rng(seed).permutation(20) * 1.5 - 3
        other[known, j] = code[X[known, j].astype(int)]
    changed = fitted(name, other[:300], y[:300], categorical=CATEGORICAL)
    np.testing.assert_array_equal(changed.predict_proba(other), plain[name].predict_proba(X))
    np.testing.assert_array_equal(changed.cost_, plain[name].cost_)


@pytest.mark.slow
@every_method
def test_the_order_of_columns_changes_nothing(plain, name):
    X, y = rows()
    columns = np.array([3, 1, 4, 0, 2])
    mine = [int(np.flatnonzero(columns == j)[0]) for j in CATEGORICAL]
    other = fitted(name, X[:300][:, columns], y[:300], categorical=mine)
    equal(plain[name], other, X[300:], X[300:][:, columns], columns)


@pytest.mark.slow
@every_method
@pytest.mark.parametrize("library", [pd, pl])
def test_text_of_a_frame_is_a_category_without_encoding(plain, name, library, tmp_path):
    X, y = rows()
    names = ["age", "test", "ward", "dose", "smell"]
    columns = {key: X[:, j] for j, key in enumerate(names)}
    for j in CATEGORICAL:
        columns[names[j]] = [None if np.isnan(v) else f"category {v:g}" for v in X[:, j]]
    frame = library.DataFrame(columns)
    model = fitted(name, frame[:300], y[:300])
    np.testing.assert_array_equal(model.predict_proba(frame), plain[name].predict_proba(X))
    assert sorted(model.categories_) == ["smell", "test", "ward"]
    assert sorted(model.categories_["test"]) == ["category 0", "category 1"]
    again = tamis.load(tamis.save(model, tmp_path / "model.tamis"))
    np.testing.assert_array_equal(again.predict_proba(frame), plain[name].predict_proba(X))


def test_a_session_takes_and_reports_categories(plain):
    X, y = rows()
    text = X.astype(object)
    text[:, 1] = np.where(X[:, 1] == 1, "yes", "no")
    model = fitted("ETANA", text[:300], y[:300], categorical=CATEGORICAL)
    session = model.open()
    with pytest.raises(DataError, match="cannot be a category"):
        session.observe(["perhaps"], 1)
    assert session.question("perhaps", 1) == "'perhaps' did not occur in the training rows: is it right?"
    assert session.explain() == []
    session.observe("yes", 1)
    assert session.explain()[0]["value"] == "yes"
    assert model.open(session.state()).posterior == session.posterior
    trace = next(one for one in model.acquire(text[300:]) if 1 in one.features)
    assert trace.values[trace.features.index(1)] in ("yes", "no")


def test_a_category_of_the_middle_class_is_told_from_the_others():
    """A column that indicates class 1 has the same mean class index for its other two categories."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 900)
    X = np.column_stack([rng.choice(6, 900), (y + 1) % 3])
    for name in METHODS:
        assert fitted(name, X[:600], y[:600], categorical="all").score(X[600:], y[600:]) == 1.0


def test_categories_that_were_not_seen_are_missing_values():
    X, y = rows()
    model = fitted("ETANA", X[:300], y[:300], categorical=CATEGORICAL)
    unseen, missing = X[300:].copy(), X[300:].copy()
    unseen[:, 1], missing[:, 1] = 77.0, np.nan
    np.testing.assert_array_equal(model.predict_proba(unseen), model.predict_proba(missing))


def test_rare_categories_share_a_bin():
    column = np.repeat(np.arange(40.0), np.r_[np.full(31, 5), np.full(9, 2)])
    categories, X, _ = Categories.learn(column[:, None], "all")
    sizes = categories.sizes(1)
    bins = Bins.quantile(X, 4).with_categories(sizes)
    assert (sizes[0], bins.n_bins) == (32, 32)
    np.testing.assert_array_equal(bins.codes(X)[:, 0], np.minimum(column, 31))
    assert categories.values[0][35] == 35.0  # decoded as itself


def test_a_sparse_matrix_has_no_categories():
    import scipy.sparse as sp

    X, y = rows(60)
    with pytest.raises(DataError, match="categorical names columns of a sparse matrix"):
        ETANA(categorical=[1]).fit(sp.csr_array(np.nan_to_num(X)), y)


def test_trees_order_categories_by_their_class_profiles():
    """Codes 0 to 5; the class is likely for 1, 4, 5: two of the six codes beside each other are never alike."""
    column = np.tile(np.arange(6.0), 50)
    rng = np.random.default_rng(0)
    y = (np.isin(column, [1, 4, 5]) ^ (rng.random(300) < 0.1)).astype(int)
    place = _profile_bins(column, y, 6, 2)
    assert max(place[[0, 2, 3]]) < min(place[[1, 4, 5]]) or max(place[[1, 4, 5]]) < min(place[[0, 2, 3]])
    trees = SmallTrees(2).fit(column[:, None], y, sizes=np.array([6]))
    likely = trees.posterior(np.arange(6.0)[:, None])[:, 1] > 0.5
    assert likely.tolist() == [False, True, False, False, True, True]
