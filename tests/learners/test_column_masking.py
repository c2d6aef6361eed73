"""A learner that leaves columns out predicts what it would had it never met them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB

from tamis.catalog import LEARNERS
from tamis.learners import HoeffdingTree, ResetOnDrift, WeightedKNN, WeightedNaiveBayes
from tamis.learners.traits import masking_strategy, restrict_columns

WHOLE = {
    "gaussian": GaussianNB(var_smoothing=0),  # otherwise by the largest variance of all columns
    "multinomial": MultinomialNB(alpha=0.5),
    "bernoulli": BernoulliNB(binarize=1.0),
    "nb": WeightedNaiveBayes(None, weight=None),
    "nb-window": WeightedNaiveBayes(150, weight=None),
    "nb-su": WeightedNaiveBayes(),
    "nb-roots": WeightedNaiveBayes(formulation="roots"),
    "nb-categories": WeightedNaiveBayes(categorical=[1, 4, 5]),
    "knn": WeightedKNN(weight=None),
    "knn-su": WeightedKNN(5, 150),
    "knn-categories": WeightedKNN(categorical=[4]),
    "reset": ResetOnDrift(GaussianNB(var_smoothing=0)),
    "reset-knn": ResetOnDrift("knn"),
}
COLUMNS = np.array([1, 4, 6])


def rows(n=400, n_features=8):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 5, size=(n, n_features)).astype(float)
    y = (X[:, 1] + X[:, 4] + rng.normal(size=n) > X[:, 6] + 2).astype(int)
    return X, y


def on(columns, model):
    """Return the model for these columns alone, its categorical ones renumbered."""
    if getattr(model, "categorical", None):
        kept = [i for i, j in enumerate(columns.tolist()) if j in model.categorical]
        model = type(model)(**{**model.get_params(deep=False), "categorical": kept})
    return model


@pytest.mark.parametrize("name", WHOLE)
def test_narrowed_is_as_if_it_had_learned_these_columns_alone(name):
    from sklearn.base import clone

    X, y = rows()
    whole, alone = clone(WHOLE[name]), clone(on(COLUMNS, WHOLE[name]))
    for start in range(0, 300, 60):
        part = slice(start, start + 60)
        whole.partial_fit(X[part], y[part], classes=[0, 1])
        alone.partial_fit(X[part][:, COLUMNS], y[part], classes=[0, 1])
    before = whole.predict(X[300:])
    view = restrict_columns(whole, COLUMNS)
    asked = np.ascontiguousarray(X[300:, COLUMNS])
    np.testing.assert_array_equal(view.predict(asked), alone.predict(asked))
    np.testing.assert_allclose(view.predict_proba(asked), alone.predict_proba(asked), rtol=1e-9)
    np.testing.assert_array_equal(whole.predict(X[300:]), before)  # the learner stays as it was
    whole.partial_fit(X[300:], y[300:])


@pytest.mark.parametrize("settings", [{}, {"window": None, "weight": None}, {"formulation": "printed"}])
def test_naive_bayes_narrowed_is_bit_for_bit_what_the_columns_alone_would_teach(settings):
    rng = np.random.default_rng(2)
    X, columns = rng.standard_normal((300, 9)), np.array([0, 2, 4, 5, 8])
    X[:, [2, 5, 6]] = rng.integers(0, 4, (300, 3))
    y = (X[:, 0] + X[:, 5] > 1.0).astype(int)
    X[rng.random(X.shape) < 0.03] = np.nan
    some = np.ascontiguousarray(X[:, columns])
    whole = WeightedNaiveBayes(categorical=[2, 5, 6], **settings).partial_fit(X[:200], y[:200])
    alone = WeightedNaiveBayes(categorical=[1, 3], **settings).partial_fit(some[:200], y[:200])
    np.testing.assert_array_equal(
        whole.restrict_columns(columns).predict_proba(some[200:]), alone.predict_proba(some[200:])
    )


def test_a_view_of_columns_that_tell_nothing_counts_them_alike():
    X, y = rows()
    X[:, [0, 2]] = 7.0
    for model in (WeightedNaiveBayes(), WeightedKNN()):
        view = restrict_columns(model.partial_fit(X, y), np.array([0, 2]))
        assert np.isfinite(view.predict_proba(X[:5, [0, 2]])).all()


def test_the_errors_that_reset_watches_are_those_of_the_columns():
    X, y = rows(3000)
    y[1500:] = X[1500:, 0] > 2  # column 0 takes over, which is not among the columns
    watched = ResetOnDrift(GaussianNB(), "hddm-a")
    for start in range(0, 3000, 100):
        part = slice(start, start + 100)
        watched.partial_fit(X[part], y[part], classes=[0, 1], columns=COLUMNS)
    assert watched.drifts_
    assert 1500 < watched.drifts_[0] < 1700


class Plain(ClassifierMixin, BaseEstimator):
    """Neither linear nor known."""


class Stranger:
    """Not even scikit-learn's."""


def test_every_learner_has_a_way():
    expected = {
        "perceptron": "zeros", "svm": "zeros", "sgd": "zeros", "logistic": "zeros", "sgd-regressor": "zeros",
        "least-squares": "zeros", "hoeffding-tree": "missing",
        "hoeffding-adaptive-tree": "missing", "hoeffding-tree-adwin": "missing", "hoeffding-tree-ecdd": "missing",
        "adaptive-random-forest": "missing", "streaming-random-patches": "missing",
        "streaming-random-forest": "missing",
        "vfdr": "missing", "vfdr-unordered": "missing", "avfdr": "missing", "random-rules": "missing",
        "heft-stream": "missing",
        "sgbt": "missing", "oza-boost": "missing",
        "huwrs": "missing", "streaming-stacking": "missing", "cvfdt": "missing",
        **{entry.key: "columns" for entry in LEARNERS if entry.name == "Refit"},
    }  # fmt: skip
    for entry in LEARNERS:
        default = "missing" if entry.key.startswith("river-") else "whole"
        learner = entry.load()(**dict(entry.parameters))
        assert masking_strategy(learner) == expected.get(entry.key, default), entry.key
    assert [masking_strategy(model) for model in (Plain(), Stranger(), SGDClassifier(), Perceptron())] == [
        "zeros"
    ] * 4
    assert masking_strategy(HoeffdingTree()) == "missing"
