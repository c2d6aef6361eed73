"""The draws of the random baseline: one pass over a batch is the same as one draw after the other."""

from __future__ import annotations

import numpy as np
import pytest

import tamis
from tamis import FIRES, Perceptron, SGDLogisticRegression, prequential
from tamis.evaluate.prequential import pairs as pairs_module
from tamis.evaluate.prequential.pairs import Draws
from tamis.rows import Auto


@pytest.mark.parametrize(
    "selector", [lambda: FIRES(3), lambda: Auto(random_state=0)], ids=["fixed", "moving"]
)
@pytest.mark.parametrize(
    "learner", [Perceptron, lambda: SGDLogisticRegression(shuffle=False)], ids=["perceptron", "logistic"]
)
def test_one_pass_is_the_same_as_one_draw_after_the_other(selector, learner, rng, monkeypatch):
    X = rng.normal(size=(1500, 12))
    y = np.where(X[:, 0] - X[:, 4] + 0.5 * rng.normal(size=1500) > 0, "on", "off")
    y[:700] = np.where(X[:700, 2] > 0.8, "other", y[:700]) if learner is not Perceptron else y[:700]
    X[:, 7] *= 1e3
    called = []
    together = Draws.test_and_train_linear

    def counted(*args):
        called.append(together(*args))
        return called[-1]

    monkeypatch.setattr(Draws, "test_and_train_linear", counted)
    found = prequential((X, y), selector(), learner(), n_draws=4, batch_size=70)
    assert sum(called) > 10
    monkeypatch.setattr(Draws, "test_and_train_linear", lambda *args: False)
    expected = prequential((X, y), selector(), learner(), n_draws=4, batch_size=70)
    names = [name for name in found.frames["steps"] if "seconds" not in name and "bytes" not in name]
    for name in names:
        np.testing.assert_allclose(
            found.frames["steps"][name], expected.frames["steps"][name], rtol=1e-9, err_msg=name
        )


@pytest.mark.parametrize("learner", [tamis.WeightedNaiveBayes, tamis.WeightedKNN])
def test_draws_that_share_a_learner_have_the_bits_of_separate_copies(learner, rng, monkeypatch):
    X = rng.normal(size=(1500, 12))
    y = np.where(X[:, 0] - X[:, 4] + 0.5 * rng.normal(size=1500) > 0, "on", "off")
    X[rng.random(X.shape) < 0.02] = np.nan
    shared = prequential((X, y), tamis.DISCUSS(), learner(), n_draws=4, delay=150)
    monkeypatch.setattr(pairs_module, "_can_be_shared", lambda learner: False)
    separate = prequential((X, y), tamis.DISCUSS(), learner(), n_draws=4, delay=150)
    for name, column in separate.frames["steps"].items():
        if "seconds" not in name and "bytes" not in name:
            np.testing.assert_array_equal(shared.frames["steps"][name], column, err_msg=name)


@pytest.mark.parametrize("learner", [Perceptron, tamis.WeightedNaiveBayes])
@pytest.mark.parametrize("selector", [lambda: FIRES(2), tamis.DISCUSS], ids=["fixed", "moving"])
def test_a_run_continues_after_one_pass(selector, learner, rng, tmp_path):
    X = rng.normal(size=(1200, 8))
    y = (X[:, 0] > 0).astype(int)
    path = tmp_path / "run.tamis"
    whole = prequential((X, y), selector(), learner())

    def stop(step):
        if step.values["n_seen"] >= 600:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        prequential((X, y), selector(), learner(), checkpoint=path, checkpoint_every=1, on_step=stop)
    assert path.exists()
    parts = prequential((X, y), selector(), learner(), checkpoint=path)
    assert whole.summary()["random_accuracy"] == parts.summary()["random_accuracy"]


def test_labels_and_scores_of_one_call_are_those_of_two(rng):
    X = rng.normal(size=(300, 5))
    y = np.where(X[:, 1] > 0.2, "b", "a")
    for model in (Perceptron(), SGDLogisticRegression(), tamis.WeightedNaiveBayes()):
        model.fit(X, y)
        labels, scores = model.predict_with_scores(X)
        asked = model.decision_function if hasattr(model, "decision_function") else model.predict_proba
        np.testing.assert_array_equal(labels, model.predict(X))
        np.testing.assert_array_equal(scores, asked(X))
