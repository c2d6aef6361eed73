"""A classifier that restarts after a drift."""

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

import tamis
from tamis import ResetOnDrift
from tamis.drift import ECDD
from tamis.errors import DataError, UnknownNameError


def turning(rng, n=4000):
    X = rng.normal(size=(n, 2))
    return X, np.where(np.arange(n) < n // 2, X[:, 0] > 0, X[:, 0] < 0).astype(int)


def learn(model, X, y, size=50):
    for at in range(0, len(X), size):
        model.partial_fit(X[at : at + size], y[at : at + size], classes=[0, 1])
    return model


@pytest.mark.parametrize("detector", ["adwin", "ecdd", "hddm-a", "hddm-w"])
def test_recovers_from_a_turn(rng, detector):
    X, y = turning(rng)
    model = learn(ResetOnDrift(detector=detector), X, y)
    assert any(2000 <= at < 2150 for at in model.drifts_)
    assert model.score(X[3000:], y[3000:]) > 0.95
    assert GaussianNB().fit(X, y).score(X[3000:], y[3000:]) < 0.7


@pytest.mark.slow
def test_row_by_row_is_the_plain_protocol(rng):
    """Predict, tell the detector, learn; in warning learn beside; at the drift swap. The young are not watched."""
    X, y = turning(rng, 1200)
    model = learn(ResetOnDrift(GaussianNB(), "ecdd"), X, y, 1)
    detector, main, beside, age, beside_age, drifts = ECDD(), GaussianNB(), None, 0, 0, []
    for i in range(len(X)):
        row = X[i : i + 1], y[i : i + 1]
        drift = age >= 30 and detector.update(float(main.predict(row[0])[0] != y[i]))
        if not (age >= 30 and (drift or detector.in_warning)):
            beside, beside_age = None, 0
        elif beside is None:
            beside = GaussianNB()
        if beside is not None:
            beside.partial_fit(*row, classes=[0, 1])
            beside_age += 1
        if drift:
            main, age, beside, beside_age = beside, beside_age, None, 0
            drifts.append(i)
        else:
            main.partial_fit(*row, classes=[0, 1])
            age += 1
    assert model.drifts_ == drifts
    assert len(drifts) >= 1
    np.testing.assert_allclose(model.predict_proba(X), main.predict_proba(X))


def test_a_detector_is_copied_and_a_failure_leaves_nothing(rng):
    X, y = turning(rng, 1000)
    detector = ECDD(arl0=100)
    detector.update_many(np.ones(20))
    model = ResetOnDrift(GaussianNB(), detector)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((5, 2), np.nan), y[:5], classes=[0, 1])
    assert not hasattr(model, "classes_")
    learn(model, X, y)
    assert detector.n_seen == 20
    assert learn(ResetOnDrift(GaussianNB(), ECDD(arl0=100)), X, y).drifts_ == model.drifts_
    assert not hasattr(ResetOnDrift("perceptron"), "predict_proba")


def test_saved_model_goes_on_alike(rng, tmp_path):
    X, y = turning(rng, 2000)
    model = learn(ResetOnDrift(), X[:900], y[:900])
    again = tamis.load(tamis.save(model, tmp_path / "model"))
    for one in (model, again):
        learn(one, X[900:], y[900:])
    assert again.drifts_ == model.drifts_
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_refusals(rng):
    X, y = turning(rng, 100)
    model = ResetOnDrift().partial_fit(X, y)
    with pytest.raises(DataError, match=r"The labels \[0, 1, 'no'\] have mixed types"):
        model.partial_fit(X[:2], np.array([0, "no"], dtype=object))
    assert model.n_seen_ == 100
    assert model.classes_.tolist() == [0, 1]
    with pytest.raises(UnknownNameError, match="No learner is named 'bayes'"):
        ResetOnDrift("bayes").fit(X, y)


class Told:
    """Warns at 2 and drifts at 3 errors in a row, whatever came before."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.run = self.heard = self.n_seen = 0

    def update(self, value):
        self.heard, self.run = self.heard + 1, self.run + 1 if value else 0
        return self.run == 3

    @property
    def in_warning(self):
        return self.run == 2


def test_a_classifier_is_watched_from_its_30th_row_and_replaced_by_one_of_the_rows_since_the_warning(rng):
    X = np.arange(40.0)[:, None] % 2
    y = X[:, 0].astype(int)
    y[[35, 36, 37]] ^= 1
    model = ResetOnDrift(GaussianNB(), Told())
    model.partial_fit(X[:30], y[:30], classes=[0, 1])
    assert model.detector_.heard == 0
    model.partial_fit(X[30:38], y[30:38])
    assert model.drifts_ == [37]
    assert model.estimator_.class_count_.sum() == 2  # rows 36, which made the warning, and 37


@pytest.mark.parametrize("estimator", ["naive-bayes", GaussianNB()])
def test_labels_need_not_be_declared(rng, estimator):
    """A classifier of another library begins again at the new label, and its columns of probabilities are sorted."""
    X = rng.normal(size=(900, 2))
    y = np.where(X[:, 0] > 0.5, 1, np.where(X[:, 0] < -0.5, -1, 5))
    late = y != -1
    model = ResetOnDrift(estimator).partial_fit(X[:300][late[:300]], y[:300][late[:300]])
    assert model.classes_.tolist() == [1, 5]
    for at in range(300, 900, 100):
        model.partial_fit(X[at : at + 100], y[at : at + 100])
    assert model.classes_.tolist() == [-1, 1, 5]
    assert model.score(X[600:], y[600:]) > 0.9
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))


def test_columns_are_those_of_the_first_frame(rng):
    X, y = turning(rng, 600)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = ResetOnDrift().partial_fit(frame[:300], y[:300])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    before = tamis.dumps(model)
    for call in (model.predict, model.predict_proba, lambda X: model.partial_fit(X, y[:300])):
        with pytest.raises(DataError, match="Feature names must be in the same order"):
            call(frame[["b", "a"]][:300])
    assert tamis.dumps(model) == before
    view = ResetOnDrift("naive-bayes").fit(frame, y).restrict_columns(np.array([1]))
    assert view.predict(frame[["b"]]).shape == (600,)
    assert view.predict_proba(frame[["b"]]).shape == (600, 2)
    with pytest.raises(DataError):
        view.predict(frame[["a"]])


def test_constant_columns_give_equal_probabilities():
    X, y = np.ones((200, 2)), np.arange(200) % 2
    for model in (ResetOnDrift().fit(X, y), ResetOnDrift().partial_fit(X[:1], y[:1], classes=[0, 1])):
        proba = model.predict_proba(X[:3])
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
