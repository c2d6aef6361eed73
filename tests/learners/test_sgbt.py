from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import tamis
from tamis import SGBT, HoeffdingAdaptiveTree, load_stream
from tamis.errors import CheckpointError, StateError
from tests.twins.sgbt import SgbtTwin

EAGER = {"grace_period": 10, "delta": 0.5, "tie_threshold": 0.2, "n_bins": 6}


def drifting(seed, n=900, n_classes=2, missing=0.05):
    """Numbers, of which the first two decide one after the other, a coin, a moving one, and missing values."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 2] = rng.integers(0, 2, n)
    X[:, 3] += np.where(np.arange(n) < 500, 0.0, 8.0)  # its cuts are renewed
    decides = np.where(np.arange(n) < n // 2, X[:, 0], -X[:, 1]) + X[:, 2]
    y = np.digitize(decides, np.quantile(decides, np.arange(1, n_classes) / n_classes))
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def grown(model, X, y, cuts, classes=None):
    for start, stop in zip([0, *cuts], [*cuts, len(y)], strict=True):
        if stop > start:
            model.partial_fit(X[start:stop], y[start:stop], classes=classes)


@pytest.mark.parametrize(("n_classes", "drift"), [(2, 0.05), (3, 0.05), (2, None)])
def test_equals_the_twin(n_classes, drift):
    X, y = drifting(0, 700, n_classes)
    model = SGBT(4, 0.3, 3, drift=drift, max_leaves=7, random_state=5, **EAGER)
    grown(model, X, y, [3, 150, 230, 231, 500], classes=range(n_classes))
    twin = SgbtTwin(
        5, n_classes if n_classes > 2 else 1, 4, 0.3, 3, grace=10, delta=0.5, tie=0.2, leaves=7, n_bins=6,
        drift=drift, seed=5,
    )  # fmt: skip
    twin.learn(X.tolist(), y.tolist())
    assert model._events_.tolist() == twin.events
    assert (sum(twin.events) > 0) == (drift is not None)
    assert model._leaves_.tolist() == [tree["leaves"] for tree in twin.trees]
    assert model._leaves_.max() > 3
    np.testing.assert_allclose(
        model.predict_proba(X[-80:]), [twin.predict_proba(row) for row in X[-80:].tolist()], rtol=1e-9
    )
    model.check_state()


@settings(max_examples=6, deadline=None)
@given(cuts=st.lists(st.integers(0, 600), max_size=12).map(sorted), seed=st.integers(0, 5))
def test_any_batching_leaves_the_same_bits(cuts, seed):
    """Also where a third and a fourth class appear late."""
    X, y = drifting(seed, 600, 4)
    y[:300] = np.minimum(y[:300], 1)
    y[[0, 1, 300, 301]] = range(4)  # codes are in order of appearance
    whole, parts = (SGBT(3, 0.3, max_leaves=5, drift=0.1, **EAGER) for _ in range(2))
    grown(whole, X, y, []), grown(parts, X, y, cuts)
    np.testing.assert_array_equal(parts.predict_proba(X), whole.predict_proba(X))
    assert whole.predict_proba(X).shape == (600, 4)
    assert (whole.n_drifts_, whole._leaves_.max()) == (parts.n_drifts_, 5)
    whole.check_state()


def test_a_third_class_leaves_the_odds_of_the_other_two():
    X, y = drifting(1, 500, 2)
    model = SGBT(5, 0.3, **EAGER).fit(X[:400], y[:400])
    before = model.predict_proba(X)
    model._n_known_, model.classes_ = 2, np.array([0, 1, 2])
    model._add_class(3)
    after = model.predict_proba(X)
    np.testing.assert_allclose(after[:, 1] / after[:, 0], before[:, 1] / before[:, 0], rtol=1e-12)
    model.check_state()


def test_the_first_rows_are_predicted_by_their_frequencies():
    model = SGBT(2).partial_fit(np.zeros((4, 2)), ["a", "b", "b", "b"])
    np.testing.assert_array_equal(model.predict_proba([[1.0, np.nan]]), [[0.25, 0.75]])
    assert SGBT(2).fit(np.zeros((500, 2)), np.zeros(500)).predict_proba([[0.0, 0.0]]).tolist() == [[1.0]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["AGR", "AN"])
def test_golden(name):
    """Accuracy on rows 2001 to 4000, batches of 100, as measured at first; ahead of an adaptive tree."""
    X, y = load_stream(name, seed=1, n_rows=4000).take(4000)
    scores = []
    for model in (SGBT(), HoeffdingAdaptiveTree()):
        right = 0
        for at in range(0, 4000, 100):
            part = slice(at, at + 100)
            right += int((model.predict(X[part]) == y[part]).sum()) if at >= 2000 else 0
            model.partial_fit(X[part], y[part])
        scores.append(right / 2000)
    assert scores[0] == pytest.approx({"AGR": 0.672, "AN": 0.856}[name], abs=1e-9)
    assert scores[0] > scores[1]


def test_a_saved_model_resumes_and_a_broken_one_is_rejected(tmp_path):
    X, y = drifting(2, 700, 3)
    model = SGBT(3, 0.3, drift=0.1, **EAGER).fit(X[:500], y[:500])
    tamis.save(model, tmp_path / "model.tamis")
    resumed = tamis.load(tmp_path / "model.tamis")
    for one in (model, resumed):
        one.partial_fit(X[500:], y[500:])
    np.testing.assert_array_equal(resumed.predict_proba(X), model.predict_proba(X))
    with pytest.raises(CheckpointError, match="learning_rate"):
        tamis.loads(tamis.dumps(tamis.loads(tamis.dumps(model)).set_params(learning_rate=np.nan)))
    inner = int(np.flatnonzero(model._feature_ >= 0)[0])
    model._left_[inner] = inner  # a circle
    with pytest.raises(StateError):
        model.check_state()


@pytest.mark.parametrize(
    "options", [{"n_estimators": 0}, {"learning_rate": 0}, {"n_bins": 1}, {"max_leaves": 1}, {"drift": 1.0}]
)
def test_parameters_out_of_range(options):
    model = clone(SGBT()).set_params(**options)
    with pytest.raises(ValueError, match=next(iter(options))):
        model.partial_fit([[1.0, 2.0]], [0])
    assert not hasattr(model, "n_seen_")
