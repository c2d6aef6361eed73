from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

import tamis
from tamis.errors import DataError
from tamis.learners import SparseFSA
from tamis.learners.sparse_fsa import _LOSSES, _schedule, _slope
from tests.twins import sparse_fsa as twin


def rows(rng: np.random.Generator, n: int, n_features: int, density: float = 0.3) -> sp.csr_matrix:
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < density)
    X *= 10.0 ** rng.integers(-2, 3, n_features)
    X[:, 3] = 7.1  # a constant feature
    return sp.csr_matrix(X)


def labels(X: Any, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    size = np.sqrt((X.toarray() ** 2).mean(axis=0))[:n_classes]
    return (X.toarray()[:, :n_classes] / size + rng.normal(size=(X.shape[0], n_classes))).argmax(axis=1)


@pytest.mark.parametrize("loss", _LOSSES)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_equals_the_twin(rng, loss, n_classes):
    X = rows(rng, 90, 25)
    y = labels(X, n_classes, rng)
    weight = rng.integers(1, 4, 90).astype(float)
    for k, ours, theirs in (
        (5, {}, {}),
        (25, {"batch_size": 7, "n_epochs": 4}, {"size": 7, "n_epochs": 4}),
        (3, {"scaling": None, "class_weight": None}, {"scaled": False, "balanced": False}),
        (9, {"ridge": 2.0, "annealing": 0.0, "n_epochs": 13}, {"ridge": 2.0, "mu": 0.0, "n_epochs": 13}),
    ):
        coef, intercept, left = twin.sparse_fsa(X.toarray(), y, k, name=loss, weight=weight, seed=3, **theirs)
        for given in (X, X.toarray()):
            model = SparseFSA(k, loss=loss, random_state=3, **ours).fit(given, y, weight)
            np.testing.assert_array_equal(model.get_support(indices=True), left)
            np.testing.assert_allclose(model.coef_, coef, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-7, atol=1e-7)


def test_a_ridge_that_shrinks_the_weights_to_nothing_keeps_its_digits(rng):
    X = rows(rng, 60, 6, density=1.0)
    y = labels(X, 2, rng)
    ours = SparseFSA(6, ridge=50.0, batch_size=1, n_epochs=3, random_state=0).fit(X, y)
    coef, intercept, _ = twin.sparse_fsa(X.toarray(), y, 6, ridge=50.0, size=1, n_epochs=3)
    np.testing.assert_allclose(ours.coef_, coef, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.intercept_, intercept, rtol=1e-9)


@pytest.mark.parametrize("loss", _LOSSES)
def test_slopes_are_those_of_the_losses(loss):
    for u in (-50.0, -3.0, 0.0, 0.85, 0.95, 1.05, 1.2, 4.0):
        rise = (twin.loss(u + 1e-6, loss) - twin.loss(u - 1e-6, loss)) / 2e-6
        assert _slope(u, _LOSSES[loss]) == pytest.approx(rise, abs=1e-6)
        assert _slope(u, _LOSSES[loss]) == pytest.approx(twin.slope(u, loss), abs=1e-15)
    assert _slope(1e6, 0) == 0.0


def test_schedule_is_that_of_the_paper():
    """N^iter = 500 and mu = 300 are the paper's; (500 - 2) / (600 + 500) of the features are left after one pass."""
    assert _schedule(1, 500, 300.0, 0, 1100) == 498
    assert _schedule(1, 500, 300.0, 100, 1200) == 598
    assert [_schedule(e, 500, 300.0, 40, 10_000) for e in (249, 250, 500)] == [40, 40, 40]
    sizes = [_schedule(e, 30, 10.0, 7, 5000) for e in range(1, 31)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[14:] == [7] * 16


def test_finds_few_words_among_very_many(rng):
    n, width = 400, 1_000_000
    noise = sp.random_array((n, width), density=2e-5, format="csr", rng=rng, dtype=np.float32)
    y = rng.integers(0, 3, n)
    marks = sp.csr_matrix((np.ones(n, dtype=np.float32), (np.arange(n), 100_000 * (y + 1))), (n, width))
    model = SparseFSA(3, random_state=0).fit(noise + marks, y)
    assert model.get_support(indices=True).tolist() == [100_000, 200_000, 300_000]
    assert model.score(noise + marks, y) == 1.0
    assert model.transform(noise + marks).shape == (n, 3)


def test_the_offset_of_a_feature_does_not_matter(rng):
    X, y = rng.normal(size=(300, 10)), rng.integers(0, 2, 300)
    X[:, 4] += y
    near, far = (SparseFSA(2, random_state=0).fit(X + offset, y) for offset in (0.0, 1e6))
    np.testing.assert_array_equal(near.get_support(), far.get_support())
    np.testing.assert_allclose(near.coef_, far.coef_, rtol=1e-6)
    sparse = SparseFSA(2, random_state=0).fit(sp.csr_matrix(X + 100.0), y)
    np.testing.assert_allclose(near.coef_, sparse.coef_, rtol=1e-8)


def test_dexter_with_300_of_20000_words_is_as_good_as_all(load_shared):
    X, y, _ = load_shared("dexter")
    everything = SGDClassifier(loss="log_loss", random_state=0).fit(X[:300], y[:300]).score(X[300:], y[300:])
    model = SparseFSA(300, random_state=0).fit(X[:300], y[:300])
    assert np.count_nonzero(model.coef_) <= 300 == model.get_support().sum()
    assert model.score(X[300:], y[300:]) > max(everything - 0.01, 0.87)


def test_same_seed_same_bits_and_nothing_of_the_caller_changes(rng):
    X = rows(rng, 80, 12)
    y = labels(X, 3, rng)
    before = X.copy()
    models = [SparseFSA(4, random_state=seed).fit(X, y) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert (models[0].coef_ != models[2].coef_).any()
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, part), getattr(before, part))


def test_classes_and_probabilities(rng):
    X = rows(rng, 200, 8, density=1.0)
    y = np.array(["wet", "dry", "ice"])[labels(X, 3, rng)]
    model = SparseFSA(4, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["dry", "ice", "wet"]
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X))
    two = SparseFSA(4, random_state=0).fit(X, y == "wet")
    np.testing.assert_array_equal(two.predict_proba(X)[:, 1] > 0.5, two.decision_function(X) > 0)
    assert not hasattr(SparseFSA(loss="lorenz"), "predict_proba")


def test_class_weights(rng):
    X = rng.normal(size=(500, 3))
    y = (X[:, 0] + rng.normal(size=500) > 1.5).astype(int)
    share = {
        str(weight): SparseFSA(3, class_weight=weight, random_state=0).fit(X, y).predict(X).mean()
        for weight in (None, "balanced", {0: 1, 1: 50})
    }
    assert share["None"] < y.mean() < share["balanced"] < share["{0: 1, 1: 50}"]


def test_works_in_a_pipeline_with_names_and_on_disk(rng, tmp_path):
    frame = pd.DataFrame(rng.normal(size=(100, 4)), columns=list("abcd"))
    y = (frame["c"] > 0).astype(int)
    model = SparseFSA(1, random_state=0).set_output(transform="pandas").fit(frame, y)
    assert model.transform(frame).columns.tolist() == ["c"]
    assert make_pipeline(model, SGDClassifier(random_state=0)).fit(frame, y).score(frame, y) > 0.9
    tamis.save(model, tmp_path / "model.tamis")
    again = tamis.load(tmp_path / "model.tamis")
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["d", "c", "b", "a"]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of 'logistic', 'lorenz', 'huber', got 'hinge'"),
        ({"scaling": "standard"}, "scaling must be one of 'max', None"),
        ({"class_weight": "even"}, "class_weight must be one of 'balanced', None"),
        ({"n_epochs": 0}, r"n_epochs must be an integer in \[1, 1000000\], got 0"),
        ({"batch_size": 1.5}, "batch_size must be an integer"),
        ({"annealing": -1}, r"annealing must be a number in \[0, inf\)"),
        ({"learning_rate": 0}, r"learning_rate must be a number in \(0, inf\)"),
        ({"ridge": float("nan")}, r"ridge must be a number in \[0, inf\)"),
        ({"n_features_to_select": 9}, r"n_features_to_select must be an integer in \[1, 3\], got 9"),
        ({"loss": "huber", "learning_rate": 1e308}, "overflow at learning_rate=1e\\+308: choose a lower one"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    X, y = np.eye(3), [0, 1, 1]
    with pytest.raises(ValueError, match=message):
        SparseFSA(**parameters).fit(X, y)


def test_rows_that_cannot_be_learned_from(rng):
    X, y = rng.normal(size=(6, 3)), np.array([0, 1, 0, 1, 0, 1])
    model = SparseFSA(1, random_state=0).fit(X, y)
    coef = model.coef_.copy()
    wrong = X.copy()
    wrong[2, 1] = np.inf
    for bad, target, weight, message in (
        (wrong, y, None, "infinity in column 1 of row 2"),
        (X, np.ones(6), None, "y contains one class, 1.0: pass more rows"),
        (X, y, [1, 0, 1, 0, 1, 0], "y contains one class"),
        (X, y, np.zeros(6), "Every sample_weight is zero"),
        (X, y, [1, 1, 1, 1, 1, -1], r"sample_weight\[5\] is -1.0"),
        (X, rng.normal(size=6), None, "Unknown label type: continuous"),
    ):
        with pytest.raises(DataError, match=message):
            model.fit(bad, target, weight)
    np.testing.assert_array_equal(model.coef_, coef)
    with pytest.raises(ValueError, match="X has 2 features, but SparseFSA is expecting 3"):
        model.predict(X[:, :2])


@pytest.mark.parametrize("value", [0.1, 1e9 / 3, 1e300])
def test_a_constant_of_any_size_has_no_weight(rng, value):
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
    X[:, 1] += y
    plain = SparseFSA(2, random_state=0).fit(X, y)
    X = np.column_stack([X, np.full(300, value)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SparseFSA(2, random_state=0).fit(X, y)
    assert model.coef_[0, 4] == 0.0
    np.testing.assert_array_equal(model.get_support()[:4], plain.get_support())
