"""What HEFT-Stream and HUWRS promise alike: any batching, categories, late classes, bad input, saving, names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Perceptron
from sklearn.naive_bayes import GaussianNB

import tamis
from tamis import HUWRS, HEFTStream, prequential
from tamis.errors import DataError, UnknownNameError
from tests.learners.test_hoeffding import grown

ENSEMBLES = [HEFTStream(4, 60), HUWRS(4, 60, estimator="nb", retrain_below=0.85)]
MEMBERS = {HEFTStream: "estimators", HUWRS: "estimator"}  # what says of which kind they are
both = pytest.mark.parametrize("ensemble", ENSEMBLES, ids=lambda one: type(one).__name__)


def moving(n=600, n_features=6, seed=0):
    """Three classes, told by feature 0, and by feature 3 from the middle on; the last feature has five values."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, size=n)
    X = rng.normal(size=(n, n_features))
    X[np.arange(n), np.where(np.arange(n) < n // 2, 0, 3)] += 2 * y
    X[:, -1] = rng.integers(0, 5, size=n)
    return X, y


@pytest.mark.slow
@both
@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.integers(0, 400), max_size=12).map(sorted), seed=st.integers(0, 3))
def test_any_batching_leaves_the_same_bits(ensemble, cuts, seed):
    X, y = moving(400, seed=seed)
    X[::17, 1] = np.nan
    models = [clone(ensemble).set_params(categorical=[5]) for _ in range(2)]
    for rows, labels in ((X, y), (X[::-1], y[::-1])):
        whole, parts = grown(models[0], rows, labels), grown(models[1], rows, labels, cuts)
        np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))
        assert whole.drifts_ == parts.drifts_
        for name, array in vars(whole).items():
            if isinstance(array, np.ndarray):
                np.testing.assert_array_equal(array, vars(parts)[name])


@both
def test_categories_frames_and_late_classes(ensemble):
    X, y = moving(400)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = clone(ensemble).set_params(categorical=["f"])
    model.partial_fit(frame[:200], np.where(y[:200] == 2, 0, y[:200]))
    model.partial_fit(frame[200:], y[200:])
    assert sorted(model.classes_.tolist()) == [0, 1, 2]
    assert model.predict(frame).shape == (400,)
    with pytest.raises(TypeError, match="toarray"):
        model.partial_fit(sp.csr_matrix(X), y)
    broken = frame[:5].copy()
    broken.loc[2, "b"] = np.inf
    with pytest.raises(DataError, match="infinity in column 'b' of row 2"):
        model.partial_fit(broken, y[:5])


@both
def test_a_saved_ensemble_goes_on_as_if_nothing_had_happened(ensemble, tmp_path):
    X, y = moving(500)
    straight, stopped = grown(clone(ensemble), X, y), grown(clone(ensemble), X[:230], y[:230])
    tamis.save(stopped, tmp_path / "ensemble.tamis")
    resumed = tamis.load(tmp_path / "ensemble.tamis")
    resumed.predict(X)
    resumed.partial_fit(X[230:], y[230:])
    np.testing.assert_array_equal(resumed.predict_proba(X), straight.predict_proba(X))
    assert resumed.drifts_ == straight.drifts_ != []


@both
def test_runs_in_a_prequential_loop(ensemble):
    assert prequential(moving(), None, clone(ensemble), baselines="none").summary()["accuracy"] > 0.5


@both
@pytest.mark.parametrize(
    ("name", "value"),
    [("n_estimators", 0), ("chunk_size", 7), ("categorical", [9]), ("random_state", None)]
    + [("members", one) for one in (GaussianNB, Perceptron(), "perceptron")],
)  # fmt: skip
def test_refuses_parameters(ensemble, name, value):
    if name == "members":
        name = MEMBERS[type(ensemble)]
        value = [value] if name.endswith("s") else value
    with pytest.raises(ValueError, match=name):
        clone(ensemble).set_params(**{name: value}).fit(np.eye(4), [0, 0, 1, 1])


@both
def test_a_learner_that_nobody_knows_is_named(ensemble):
    name = MEMBERS[type(ensemble)]
    unknown = ["nbb"] if name.endswith("s") else "nbb"
    with pytest.raises(UnknownNameError, match=f"{name}: No learner is named 'nbb'; did you mean 'nb'"):
        clone(ensemble).set_params(**{name: unknown}).fit(np.eye(4), [0, 0, 1, 1])
