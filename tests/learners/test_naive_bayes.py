"""Naive Bayes with weights: the twin, the window's recount, the printed formula, bad input, saving."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

import tamis
from tamis import WeightedNaiveBayes
from tamis.errors import DataError
from tamis.learners.class_likelihoods import ClassLikelihoods
from tamis.learners.weighting import WindowWeights
from tests.twins import naive_bayes as twin


def rows(rng, n, missing=0.0):
    """Two numbers, one of them far from 0, a constant, and two columns of categories."""
    y = rng.integers(0, 3, n)
    X = np.column_stack(
        [
            rng.normal(size=n) + y,
            1e6 + rng.normal(size=n) * (1 + y),
            np.full(n, 0.1),
            rng.integers(0, 4, n) * 2.5 - 1,
            np.where(rng.random(n) < 0.7, y, rng.integers(0, 30, n)),
        ]
    )
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def likelihoods_of(X, y, *, window=None, categorical=(), exponents=None, n_classes=3, batch=7):
    found = ClassLikelihoods(X.shape[1], n_classes, window, categorical)
    for at in range(0, len(X), batch):
        found.update(np.ascontiguousarray(X[at : at + batch]), y[at : at + batch])
    found.prepare(np.ones(X.shape[1]) if exponents is None else exponents)
    return found


@pytest.mark.parametrize("window", [None, 1, 40])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_equals_the_twin(rng, window, missing):
    X, y = rows(rng, 150, missing)
    asked, _ = rows(rng, 30, missing)
    asked[0, 4], asked[1] = 77.0, np.nan  # a category never seen; a row of which nothing is known
    exponents = np.array([1.0, 0.25, 0.5, 0.0, 0.7])
    found = likelihoods_of(X, y, window=window, categorical=[3, 4], exponents=exponents).joint(asked)
    kept = list(zip(X.tolist(), y.tolist(), strict=True))[-(window or len(X)) :]
    expected = [twin.joint(kept, x, 3, (3, 4), exponents) for x in asked.tolist()]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


# Few values far apart, so that there are ties, constants, jumps and returns.
VALUES = st.sampled_from([0.0, -0.0, 0.1, 1.0, 2.0, -3.5, 1e-7, 12345.678, 1e12, np.nan])


@settings(max_examples=60)
@given(
    st.lists(st.tuples(VALUES, VALUES, VALUES, st.integers(0, 2)), min_size=1, max_size=60),
    st.integers(1, 12),
    st.integers(1, 9),
)
@example(  # what leaves first is large, what leaves next lets a constant be left
    [(x, 0.0, 0.0, 0) for x in (0.0, 12345.678, 0.0)] + [(0.0, 0.0, 0.0, 1)] * 6
    + [(1.0, 0.0, 0.0, 0)] + [(0.0, 0.0, 0.0, 1)] * 2, 9, 1,
)  # fmt: skip
def test_state_is_that_of_the_window_recounted(stream, window, batch):
    X, y = np.array([row[:3] for row in stream]), np.array([row[3] for row in stream])
    slid = likelihoods_of(X, y, window=window, categorical=[2], batch=batch)
    anew = likelihoods_of(X[-window:], y[-window:], categorical=[2])
    np.testing.assert_array_equal(slid.n_rows, anew.n_rows)
    np.testing.assert_array_equal(slid.n, anew.n)
    # Sums of squares keep 7 digits or more; that a feature is constant is exact.
    np.testing.assert_array_equal(slid.m2[:, :2] == 0, anew.m2[:, :2] == 0)
    np.testing.assert_allclose(slid.m2[:, :2], anew.m2[:, :2], rtol=1e-6)
    size = np.sqrt(anew.m2) + np.abs(anew.mean)
    assert (np.abs(slid.mean - anew.mean)[:, :2] <= 1e-6 * size[:, :2] + 1e-9).all()
    for value in set(X[:, 2].tolist()):
        x = np.array([[np.nan, np.nan, value]])
        np.testing.assert_allclose(slid.joint(x), anew.joint(x), rtol=1e-13)


@pytest.mark.parametrize("parameters", [{}, {"window": None, "weight": "entropy"}], ids=["window", "all"])
def test_a_batch_is_its_rows_one_at_a_time(rng, parameters):
    X, y = rows(rng, 400, 0.1)
    models = [WeightedNaiveBayes(**{"window": 90, **parameters}, categorical=[3, 4]) for _ in range(3)]
    for model, size in zip(models, (400, 33, 1), strict=True):
        for at in range(0, 400, size):
            model.partial_fit(X[at : at + size], y[at : at + size], classes=[0, 1, 2])
    expected = models[0].predict_proba(X)
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        np.testing.assert_array_equal(model.weights_, models[0].weights_)
    one_by_one = np.concatenate([models[0].predict_proba(x[None]) for x in X])
    np.testing.assert_array_equal(one_by_one, expected)


def test_agrees_with_scikit_learn(rng):
    """GaussianNB divides by n, not n - 1: with many rows the difference is small."""
    X = rng.normal(size=(4000, 6)) * 10.0 ** rng.integers(-3, 4, 6)
    y = (X[:, 0] / X[:, 0].std() + rng.normal(size=4000) > 0.3).astype(int)
    ours = WeightedNaiveBayes(None, weight=None).fit(X, y)
    theirs = GaussianNB(var_smoothing=0).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.999


def test_printed_formula_predicts_as_naive_bayes(rng):
    X, y = rows(rng, 300)
    plain = WeightedNaiveBayes(200, weight=None, categorical=[3, 4]).fit(X, y)
    ours = WeightedNaiveBayes(200, formulation="printed", categorical=[3, 4]).fit(X, y)
    np.testing.assert_array_equal(ours.predict_proba(X), plain.predict_proba(X))
    kept = list(zip(X.tolist(), y.tolist(), strict=True))[-200:]
    literal = [np.argmax(twin.printed(kept, x, 3, (3, 4), ours.weights_)) for x in X[:60].tolist()]
    np.testing.assert_array_equal(ours.predict(X[:60]), ours.classes_[literal])
    exponents = WeightedNaiveBayes(200, categorical=[3, 4]).fit(X, y)
    np.testing.assert_array_equal(exponents.weights_, ours.weights_)
    assert np.abs(exponents.predict_proba(X) - plain.predict_proba(X)).max() > 0.01


@pytest.mark.parametrize(("formulation", "power"), [("exponents", 1.0), ("roots", 0.5)])
def test_weights_are_exponents_or_their_roots(rng, formulation, power):
    X, y = rows(rng, 300)
    model = WeightedNaiveBayes(200, formulation=formulation, categorical=[3, 4]).fit(X, y)
    kept = list(zip(X.tolist(), y.tolist(), strict=True))[-200:]
    exponents = model.weights_**power
    expected = np.exp([twin.joint(kept, x, 3, (3, 4), exponents) for x in X[:20].tolist()])
    np.testing.assert_allclose(
        model.predict_proba(X[:20]), expected / expected.sum(axis=1)[:, None], rtol=1e-6
    )


@pytest.mark.parametrize("kind", ["su", "entropy", "entropy_thesis"])
def test_weights_are_those_of_the_score_window(rng, kind):
    X, y = rows(rng, 500)
    model = WeightedNaiveBayes(weight=kind, score_window=100, categorical=[3, 4]).fit(X, y)
    expected = WindowWeights(5, 3, kind, 100, categorical=[3, 4])
    expected.update(np.ascontiguousarray(X[-100:]), y[-100:])
    np.testing.assert_allclose(
        model.weights_, expected.weights() / expected.weights().max(), rtol=0.1, atol=0.1
    )
    assert model.weights_.max() == 1
    assert not model.unweighted_


def test_follows_features_that_change(rng):
    X = rng.normal(size=(3000, 30))
    y = np.where(np.arange(3000) < 1500, X[:, 4] > 0, X[:, 20] > 0).astype(int)
    scores = {}
    for name, parameters in {"all": {"window": None, "weight": None}, "su": {}}.items():
        model = WeightedNaiveBayes(**{"window": 600, **parameters}).fit(X[:2200], y[:2200])
        scores[name] = model.score(X[2200:], y[2200:])
    assert scores["su"] > 0.95
    assert scores["all"] < 0.85
    assert model.weights_.argmax() == 20


# -- bad input ---------------------------------------------------------------------------------------------


def test_all_weights_zero_is_plain_naive_bayes(rng):
    """Constant features in the score window, informative ones before it."""
    X, y = rows(rng, 500)
    X[-100:] = X[0]
    model = WeightedNaiveBayes(score_window=100).fit(X, y)
    assert model.unweighted_
    np.testing.assert_array_equal(model.weights_, 1)
    plain = WeightedNaiveBayes(weight=None).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert WeightedNaiveBayes().fit(X[:99], y[:99]).unweighted_  # less than half a score window


def test_a_class_may_come_late_and_leave_the_window(rng):
    X, y = rows(rng, 300)
    model = WeightedNaiveBayes(100, categorical=[3, 4]).partial_fit(X[:100], np.where(y[:100] > 0, "b", "a"))
    assert model.classes_.tolist() == ["a", "b"]
    model.partial_fit(X[100:200], np.full(100, "c"))
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert (model.predict(X) == "c").all()  # a and b have left the window
    np.testing.assert_array_equal(model.predict_proba(X), [[0, 0, 1]] * 300)
    model.partial_fit(X[200:], np.where(y[200:] > 0, "b", "a"))
    assert set(model.predict(X)) == {"a", "b"}


def test_categories_that_come_and_go_take_no_memory(rng):
    model = WeightedNaiveBayes(50, weight=None, categorical="all")
    for at in range(0, 5000, 10):
        ids = np.arange(at, at + 10.0)
        model.partial_fit(np.column_stack([ids, ids % 2]), ids % 2)
    np.testing.assert_array_equal(
        model.predict([[np.nan, 0], [np.nan, 1], [4999, 7], [4998, 7]]), [0, 1, 1, 0]
    )
    assert len(model._likelihoods_._keys) < 300


def test_a_window_larger_than_the_stream_is_all_rows(rng):
    X, y = rows(rng, 200, 0.1)
    large, every = (WeightedNaiveBayes(window, weight=None).fit(X, y) for window in (5000, None))
    np.testing.assert_array_equal(large.predict_proba(X), every.predict_proba(X))


def test_a_huge_value_is_forgotten_without_a_trace(rng):
    X, y = rows(rng, 400)
    X[100] = 1e140
    X[[101, 102], 0] = np.nan, -1e149
    model = WeightedNaiveBayes(100, weight=None).fit(X, y)
    fresh = WeightedNaiveBayes(100, weight=None).fit(X[-100:], y[-100:])
    np.testing.assert_allclose(model.predict_proba(X[-50:]), fresh.predict_proba(X[-50:]))
    assert np.isfinite(model.predict_proba([[1e300, -1e300, 0, 1, np.nan]])).all()


def test_refusals_leave_the_model_as_it_was(rng):
    X, y = rows(rng, 200)
    model = WeightedNaiveBayes(50, categorical=[3, 4]).fit(X, y)
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
        (X[:, :4], y, ValueError, "X has 4 features, but WeightedNaiveBayes is expecting 5"),
        (X, y[:9], DataError, "inconsistent numbers of samples"),
        (X[:2], [9, None], DataError, "label of row 1 of the batch is missing"),
        (sp.csr_matrix(X), y, TypeError, "Sparse data was passed"),
    ):
        with pytest.raises(error, match=message):
            model.partial_fit(rows_, labels)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert (model.n_seen_, model.classes_.tolist()) == (200, [0, 1, 2])
    with pytest.raises(DataError, match="infinity"):
        model.predict(np.full((1, 5), np.inf))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"window": 0}, "window must be an integer in \\[1, 10000000\\] or None, got 0"),
        ({"weight": "mi"}, "weight must be one of 'su', 'entropy', 'entropy_thesis', None, got 'mi'"),
        ({"score_window": 1}, "score_window must be an integer in \\[2"),
        ({"formulation": "product"}, "formulation must be one of 'exponents', 'roots', 'printed'"),
        ({"categorical": [7]}, "categorical names the column 7"),
    ],
)
def test_parameters_are_checked(rng, parameters, message):
    model = WeightedNaiveBayes(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(*rows(rng, 10))
    assert not hasattr(model, "n_features_in_")


# -- around it ---------------------------------------------------------------------------------------------


def test_saved_copied_and_cloned_models_go_on_alike(rng, tmp_path):
    X, y = rows(rng, 400, 0.1)
    model = WeightedNaiveBayes(90, categorical=[3, 4]).fit(X[:150], y[:150])
    again = [tamis.load(tamis.save(model, tmp_path / "model")), copy.deepcopy(model)]
    for one in (model, *again):
        one.partial_fit(X[150:], y[150:])
    fresh = clone(model).partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    for one in (*again, fresh):
        np.testing.assert_array_equal(one.predict_proba(X), model.predict_proba(X))


def test_columns_by_name_and_the_callers_rows_unchanged(rng):
    X, y = rows(rng, 300, 0.1)
    frame = pd.DataFrame(X, columns=list("abcde"))
    before = X.copy()
    model = WeightedNaiveBayes(categorical=["d", "e"]).fit(frame, y)
    expected = WeightedNaiveBayes(categorical=[3, 4]).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(frame), expected)
    np.testing.assert_array_equal(X, before)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[list("abced")], y)
    halves = WeightedNaiveBayes(categorical=[3, 4]).fit(X.astype(np.float32), y)
    assert np.abs(halves.predict_proba(X.astype(np.float32)) - expected).max() < 0.2


def test_columns_that_are_always_zero_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=300) > 0.8).astype(int)
    wide = np.hstack([X, np.zeros((300, 60))])
    few, many = (WeightedNaiveBayes(window=None, weight=None).fit(rows, y) for rows in (X, wide))
    np.testing.assert_allclose(many.predict_proba(wide), few.predict_proba(X), rtol=1e-12)


def test_a_class_of_one_value_has_the_spread_of_all():
    """2, 4 and, of the other class, 6: the spread of all is 8 / (3 - 1) around 4."""
    x = np.array([[5.0]])
    found = likelihoods_of(np.array([[2.0], [4.0], [6.0]]), np.array([0, 0, 1]), n_classes=2).joint(x)
    assert found[0, 1] == pytest.approx(norm.logpdf(5.0, 6.0, 2.0) + np.log(1 / 3))


def test_the_variance_of_a_class_has_a_floor():
    """Values 1e-12 apart beside others of 1 apart: a variance of 5e-25 counts as 1e-18 of that of all."""
    X, y = np.array([[0.0], [1e-12], [1.0], [-1.0]]), np.array([0, 0, 1, 1])
    found = likelihoods_of(X, y, n_classes=2).joint(np.array([[1e-9]]))
    sigma = np.sqrt(1e-18 * X.var(ddof=1))
    assert found[0, 0] == pytest.approx(norm.logpdf(1e-9, 5e-13, sigma) + np.log(0.5), rel=1e-9)
