"""Nearest neighbours with weights: the twin, scikit-learn, the window's recount, bad input, saving."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

import tamis
from tamis import WeightedKNN, prequential
from tamis.catalog import find_learner
from tamis.errors import DataError
from tamis.learners.knn import Neighbours
from tamis.learners.weighting import WindowWeights
from tests.twins import knn as twin


def rows(rng, n, missing=0.0):
    """Four numbers, one of them far from 0, a constant, and two columns of categories."""
    y = rng.integers(0, 3, n)
    X = np.column_stack(
        [
            rng.normal(size=(n, 3)) + y[:, None],
            1e6 + rng.normal(size=n) * (1 + y),
            np.full(n, 0.1),
            rng.integers(0, 4, n) * 2.5 - 1,
            np.where(rng.random(n) < 0.7, y, rng.integers(0, 30, n)),
        ]
    )
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def filled(X, codes, window, categorical=(), batch=7):
    found = Neighbours(X.shape[1], window, categorical)
    for at in range(0, len(X), batch):
        found.update(np.ascontiguousarray(X[at : at + batch]), codes[at : at + batch])
    return found


# -- distances and votes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 40, 600])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_equals_the_twin(rng, window, missing):
    X, y = rows(rng, 400, missing)
    asked, _ = rows(rng, 21, missing)
    asked[0, 6], asked[1], asked[2, 0] = 77.0, np.nan, 50.0  # a new category; nothing known; out of range
    weights = np.array([1.0, 0.25, 0.5, 0.3, 0.0, 0.7, 0.2])
    neighbours = filled(X, y, window, [5, 6])
    kept, codes = X[-window:].tolist(), y[-window:][::-1].tolist()
    found = neighbours.distances(asked, weights)
    np.testing.assert_allclose(found, [twin.distances(kept, x, weights, (5, 6)) for x in asked], rtol=1e-8)
    expected = [twin.votes(line, codes, 9, 3) for line in found.tolist()]
    np.testing.assert_array_equal(neighbours.votes(asked, weights, 9, 3), expected)


# Few values far apart, so that there are ties, constants, jumps and returns.
VALUES = st.sampled_from([0.0, -0.0, 0.1, 1.0, 2.0, -3.5, 1e-7, 12345.678, 1e12, -1e149, 5e-324, np.nan])


@settings(max_examples=60)
@given(
    st.lists(st.tuples(*[VALUES] * 6, st.integers(0, 2)), min_size=1, max_size=50),
    st.integers(1, 12),
    st.integers(1, 14),
    st.integers(1, 14),
)
def test_state_is_that_of_the_window_recounted(stream, window, batch, k):
    X, y = np.array([row[:6] for row in stream]), np.array([row[6] for row in stream])
    slid, anew = filled(X, y, window, [5], batch), filled(X[-window:], y[-window:], window, [5], window)
    ones = np.ones(6)
    found = slid.distances(X, ones)
    np.testing.assert_array_equal(found, anew.distances(X, ones))
    assert not np.isnan(found).any()
    np.testing.assert_array_equal(np.concatenate([slid.distances(x[None], ones) for x in X]), found)
    votes = slid.votes(X, ones, k, 3)
    np.testing.assert_array_equal(votes, anew.votes(X, ones, k, 3))
    codes, squares = y[-window:][::-1].tolist(), slid._squares(X, ones).tolist()
    np.testing.assert_array_equal(votes, [twin.votes(line, codes, k, 3) for line in squares])


@pytest.mark.parametrize("direction", [1, -1])
def test_ranges_follow_columns_that_only_rise_or_fall(rng, direction):
    """Each row takes the least or the greatest value with it."""
    X = np.column_stack([direction * np.arange(300.0), rng.integers(0, 2, 300)])
    found = filled(X, np.zeros(300, int), 50, batch=3).distances(X[-1:], np.ones(2))[0]
    expected = np.sqrt((np.arange(50) / 49) ** 2 + (X[-50:, 1][::-1] != X[-1, 1]))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_agrees_with_scikit_learn(rng):
    X = rng.normal(size=(1200, 11)) * 10.0 ** rng.integers(-3, 4, 11)
    y = np.digitize(X[:, 0] / X[:, 0].std() + 0.3 * rng.normal(size=1200), [-0.5, 0.7])
    ours = WeightedKNN(7, window=800, weight=None).fit(X[:1000], y[:1000])
    low, high = X[200:1000].min(axis=0), X[200:1000].max(axis=0)
    theirs = KNeighborsClassifier(7).fit((X[200:1000] - low) / (high - low), y[200:1000])
    shares = theirs.predict_proba((X[1000:] - low) / (high - low))
    np.testing.assert_allclose(ours.predict_proba(X[1000:]), shares[:, np.argsort(np.argsort(ours.classes_))])
    np.testing.assert_array_equal(ours.predict(X[1000:]), theirs.classes_[shares.argmax(axis=1)])


def test_the_most_recent_of_equal_distances_votes():
    X = np.array([[0.0], [10.0], [0.0], [10.0]])
    model = WeightedKNN(1, weight=None).fit(X, list("abcd"))
    assert model.predict([[0], [5], [10]]).tolist() == ["c", "d", "d"]
    model.partial_fit([[0.0]], ["e"])
    assert model.predict([[0], [5], [10]]).tolist() == ["e", "e", "d"]
    assert WeightedKNN(2, weight=None).fit(X, list("abcd")).predict([[0]]) == "a"  # a and c: as many votes


# -- weights -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["su", "entropy", "entropy_thesis"])
def test_weights_are_those_of_the_score_window(rng, kind):
    X, y = rows(rng, 500)
    model = WeightedKNN(5, 150, weight=kind, score_window=100, categorical=[5, 6]).fit(X, y)
    expected = WindowWeights(7, 3, kind, 100, categorical=[5, 6])
    expected.update(X, y)
    np.testing.assert_array_equal(model.weights_, expected.weights())
    assert not model.unweighted_
    kept, codes = X[-150:].tolist(), y[-150:][::-1].tolist()
    literal = [
        twin.votes(twin.distances(kept, x, model.weights_, (5, 6)), codes, 5, 3) for x in X[:20].tolist()
    ]
    np.testing.assert_array_equal(model.predict_proba(X[:20]), np.array(literal) / 5)


@pytest.mark.parametrize("parameters", [{}, {"weight": None, "window": 60}], ids=["su", "plain"])
def test_a_batch_is_its_rows_one_at_a_time(rng, parameters):
    X, y = rows(rng, 400, 0.1)
    models = [WeightedKNN(**{"window": 90, **parameters}, categorical=[5, 6]) for _ in range(3)]
    for model, size in zip(models, (400, 33, 1), strict=True):
        for at in range(0, 400, size):
            model.partial_fit(X[at : at + size], y[at : at + size], classes=[0, 1, 2])
    expected = models[0].predict_proba(X)
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        np.testing.assert_array_equal(model.weights_, models[0].weights_)


def test_follows_features_that_change(rng):
    X = rng.normal(size=(2600, 30))
    y = np.where(np.arange(2600) < 1300, X[:, 4] > 0, X[:, 20] > 0).astype(int)
    scores = {}
    for weight in (None, "su"):
        model = WeightedKNN(window=500, weight=weight).fit(X[:2000], y[:2000])
        scores[weight] = model.score(X[2000:], y[2000:])
    assert scores["su"] > 0.85 > scores[None] + 0.05
    assert model.weights_.argmax() == 20


def test_by_name_in_a_prequential_run():
    stream = tamis.load_stream("SEA", seed=0, n_rows=3000, n_drifts=0)
    accuracy = {}
    for name in ("knn", "knn-su"):
        entry = find_learner(name)
        model = entry.load()(**dict(entry.parameters))
        accuracy[name] = prequential(stream, None, model).summary()["accuracy"]
    assert accuracy["knn-su"] > accuracy["knn"] + 0.03


# -- bad input ---------------------------------------------------------------------------------------------


def test_all_weights_zero_is_plain_knn(rng):
    """Constant features in the score window, informative ones before it."""
    X, y = rows(rng, 500)
    X[-100:] = X[0]
    model = WeightedKNN(score_window=100).fit(X, y)
    assert model.unweighted_
    np.testing.assert_array_equal(model.weights_, 1)
    plain = WeightedKNN(weight=None).fit(X, y)
    assert plain.unweighted_
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert WeightedKNN().fit(X[:99], y[:99]).unweighted_  # less than half a score window


def test_constant_and_empty_columns_change_nothing(rng):
    X, y = rows(rng, 200)
    more = np.column_stack([X, np.full(200, 7.0), np.full(200, np.nan)])
    plain, wider = (WeightedKNN(weight=None).fit(table, y) for table in (X, more))
    np.testing.assert_array_equal(wider.predict_proba(more), plain.predict_proba(X))
    assert (
        WeightedKNN().fit(np.ones((9, 2)), [1, 2, 3] * 3).predict([[5, np.nan]]) == 1
    )  # all are equally near


def test_a_class_may_come_late_and_leave_the_window(rng):
    X, y = rows(rng, 300)
    model = WeightedKNN(5, 100, categorical=[5, 6]).partial_fit(X[:100], np.where(y[:100] > 0, "b", "a"))
    model.partial_fit(X[100:200], np.full(100, "c"))
    assert model.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict_proba(X), [[0, 0, 1]] * 300)  # a and b have left the window
    model.partial_fit(X[200:], np.where(y[200:] > 0, "b", "a"))
    assert set(model.predict(X)) == {"a", "b"}


def test_more_neighbours_than_rows_and_more_window_than_stream(rng):
    X, y = rows(rng, 60, 0.1)
    model = WeightedKNN(100, window=10**7).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), np.tile(np.bincount(y) / 60, (60, 1))[:, model.classes_]
    )
    assert WeightedKNN().fit(X[:1], [4]).predict(X).tolist() == [4] * 60


def test_a_huge_value_is_forgotten_without_a_trace(rng):
    X, y = rows(rng, 400)
    X[100] = 1e140
    X[[101, 102], 0] = np.nan, -1e149
    model = WeightedKNN(window=100, weight=None).fit(X[:250], y[:250]).partial_fit(X[250:], y[250:])
    fresh = WeightedKNN(window=100, weight=None).fit(X[-100:], y[-100:])
    order = [fresh.classes_.tolist().index(c) for c in model.classes_]
    np.testing.assert_array_equal(model.predict_proba(X), fresh.predict_proba(X)[:, order])
    assert np.isfinite(model.predict_proba([[1e149, -1e149, 0, 1, np.nan, 1e149, 0]])).all()


def test_refusals_leave_the_model_as_it_was(rng):
    X, y = rows(rng, 200)
    model = WeightedKNN(window=50, categorical=[5, 6]).fit(X, y)
    before = model.predict_proba(X)
    bad = X[:5].copy()
    for value, message in (
        (np.inf, "infinity in column 1 of row 2"),
        (-1e200, "Column 1 contains -1e\\+200 in row 2"),
    ):
        bad[2, 1] = value
        with pytest.raises(DataError, match=message):
            model.partial_fit(bad, y[:5])
    for rows_, labels, error, message in (
        (X[:, :4], y, ValueError, "X has 4 features, but WeightedKNN is expecting 7"),
        (X, y[:9], DataError, "inconsistent numbers of samples"),
        (X[:2], [9, None], DataError, "label of row 1 of the batch is missing"),
        (sp.csr_matrix(X), y, TypeError, "Sparse data was passed"),
    ):
        with pytest.raises(error, match=message):
            model.partial_fit(rows_, labels)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert (model.n_seen_, sorted(model.classes_)) == (200, [0, 1, 2])
    with pytest.raises(DataError, match="infinity"):
        model.predict(np.full((1, 7), np.inf))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be an integer in \\[1, inf\\), got 0"),
        ({"window": 0}, "window must be an integer in \\[1, 10000000\\], got 0"),
        ({"weight": "mi"}, "weight must be one of 'su', 'entropy', 'entropy_thesis', None, got 'mi'"),
        ({"score_window": 1}, "score_window must be an integer in \\[2"),
        ({"categorical": [7]}, "categorical names the column 7"),
    ],
)
def test_parameters_are_checked(rng, parameters, message):
    model = WeightedKNN(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(*rows(rng, 10))
    assert not hasattr(model, "n_features_in_")


# -- around it ---------------------------------------------------------------------------------------------


def test_saved_copied_and_cloned_models_go_on_alike(rng, tmp_path):
    X, y = rows(rng, 400, 0.1)
    model = WeightedKNN(window=90, categorical=[5, 6]).fit(X[:150], y[:150])
    again = [tamis.load(tamis.save(model, tmp_path / "model")), copy.deepcopy(model)]
    for one in (model, *again):
        one.partial_fit(X[150:], y[150:])
    fresh = clone(model).partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    for one in (*again, fresh):
        np.testing.assert_array_equal(one.predict_proba(X), model.predict_proba(X))


def test_columns_by_name_and_the_callers_rows_unchanged(rng):
    X, y = rows(rng, 300, 0.1)
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    before = X.copy()
    model = WeightedKNN(categorical=["f", "g"]).fit(frame, y)
    expected = WeightedKNN(categorical=[5, 6]).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(frame), expected)
    X[:] = 0.0
    np.testing.assert_array_equal(model.predict_proba(pd.DataFrame(before, columns=frame.columns)), expected)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[list("abcedfg")], y)
