"""Features whose values arrive after their row: NaN in the prediction, there when the row is learned."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin

from tamis import FIRES, HoeffdingTree, load_stream, prequential
from tamis.errors import DataError
from tamis.evaluate.prequential.rerun import command_line, snippet
from tamis.streams import ArrayStream


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it predicted and what it learned."""

    def __init__(self):
        self.predicted, self.learned = [], []

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def partial_fit(self, X, y, classes=None):
        self.classes_ = np.array([0, 1])
        self.learned.append(X.copy())
        return self

    def predict(self, X):
        self.predicted.append(X.copy())
        return np.zeros(len(X), dtype=int)


def rows(n=1000):
    """Column 0 numbers the rows."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(n), rng.normal(size=(n, 2))])
    return X, (X[:, 1] + X[:, 2] > 0).astype(int)


def run(late, n=1000, **options):
    stream = ArrayStream(*rows(n), feature_names=["row", "early", "late"])
    learner = Recorder()
    options = {"scale": "none", "auc": False} | options
    return prequential(stream.with_delayed_features(late), None, learner, **options), learner


@pytest.mark.parametrize(("delay", "late", "wait"), [(0, 300, 300), (400, 300, 400), (200, 300, 300)])
def test_a_row_is_learned_with_its_last_value_and_predicted_without_it(delay, late, wait):
    X, _ = rows()
    result, learner = run({"late": late}, delay=delay)
    learned, predicted = np.concatenate(learner.learned), np.concatenate(learner.predicted)
    np.testing.assert_array_equal(learned, X[: 1000 - wait])
    assert np.isnan(predicted[:, 2]).all()
    np.testing.assert_array_equal(predicted[:, :2], X[-len(predicted) :, :2])
    assert predicted[0, 0] == 100 * (wait // 100 + 1)
    assert result.settings["stream"]["delayed_features"] == {"late": late}


def test_a_feature_that_is_not_late_changes_nothing():
    stream = load_stream("SEA", n_rows=3000, n_drifts=0)
    plain, zero = (
        prequential(one, FIRES(2), HoeffdingTree(), baselines="none").to_frame("steps", "pandas")
        for one in (stream, stream.with_delayed_features({"x3": 0}))
    )
    times = [name for name in plain if "seconds" in name or "bytes" in name]
    assert plain.drop(columns=times).equals(zero.drop(columns=times))
    assert stream.delayed_features == {}


def test_the_scale_is_that_of_the_complete_rows():
    X, y = rows(2000)
    X[:, 2] = 50.0 + 10.0 * X[:, 2]
    result = prequential(ArrayStream(X, y).with_delayed_features({"x2": 100}), FIRES(2))
    assert result.scale.shift[2] == pytest.approx(X[:1900, 2].mean(), rel=1e-6)
    assert np.isfinite(result.to_frame()["accuracy"]).all()


def test_a_run_is_resumed(tmp_path):
    stream = load_stream("SEA", n_rows=3000, n_drifts=0).with_delayed_features({"x1": 250})

    def go(**options):
        return prequential(stream, FIRES(3), HoeffdingTree(), baselines="none", **options)

    def interrupt(step):
        if step.n_seen == 1500:
            raise KeyboardInterrupt

    go(checkpoint=tmp_path / "run", on_step=interrupt, on_interrupt="return")
    resumed, whole = (go(**one).to_frame("steps", "pandas") for one in ({"checkpoint": tmp_path / "run"}, {}))
    times = [name for name in whole if "seconds" in name or "bytes" in name]
    assert whole.drop(columns=times).equals(resumed.drop(columns=times))


def test_the_printed_program_repeats_it():
    stream = load_stream("SEA").with_delayed_features({"x1": 250, "x2": 100})
    settings = json.loads(json.dumps(prequential(stream, FIRES(3), max_rows=1000).settings))
    assert ".with_delayed_features({'x1': 250, 'x2': 100})" in snippet(settings)
    assert " --delayed=x1=250 --delayed=x2=100 " in command_line(settings)


def test_what_cannot_be_late_is_told():
    with pytest.raises(DataError, match="delayed_features must name features, got 'lat'"):
        run({"lat": 100})
    with pytest.raises(ValueError, match="delays\\['late'\\]"):
        run({"late": -1})
    with pytest.raises(ValueError, match="protocol='paper'"):
        run({"late": 100}, protocol="paper")
    with pytest.raises(ValueError, match="delay must be a number of rows"):
        run({"late": 100}, delay=("row", "early"))
    X, y = rows()
    with pytest.raises(DataError, match="pass dense rows"):
        prequential(ArrayStream(sp.csr_matrix(X), y).with_delayed_features({"x1": 5}), None, HoeffdingTree())
