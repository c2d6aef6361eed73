"""Test-then-train against a plain loop; interruptions, checkpoints, labels that come late, and wrong input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB

import tamis
from tamis import FIRES, OFS, prequential
from tamis.errors import CheckpointError, DataError, StreamError
from tamis.evaluate import PrequentialResult
from tamis.streams import ArrayStream
from tests.twins import prequential as twin

TIMED = {"seconds_select", "seconds_predict", "seconds_learn", "seconds_total", "memory_bytes"}


def rows(n=1500, n_features=12, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    latent = X[:, :n_classes] + 0.5 * rng.normal(size=(n, n_classes))
    return X, latent.argmax(axis=1) if n_classes > 2 else (latent[:, 0] > 0).astype(int)


def same(a, b):
    assert a.feature_names == b.feature_names
    for kind, frame in a.frames.items():
        for name, column in frame.items():
            if name not in TIMED:
                np.testing.assert_array_equal(column, b.frames[kind][name], err_msg=f"{kind}.{name}")


@pytest.mark.parametrize("protocol", ["honest", "paper"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("selector", [FIRES, OFS])
def test_equals_the_plain_loop(protocol, n_classes, selector):
    X, y = rows(n_classes=n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = twin.prequential(X, y, selector(3), Perceptron(random_state=0), 70, protocol, 300, 5)
    result = prequential(
        (X, y), selector(3), batch_size=70, protocol=protocol, window=300, stability_window=5
    )
    steps = result.frames["steps"]
    assert len(steps["step"]) == len(expected)
    for name in expected[0]:
        if name != "selected":
            np.testing.assert_allclose(steps[name], [row[name] for row in expected], rtol=1e-12, err_msg=name)
    chosen = result.selection_map()
    assert [set(np.flatnonzero(row).tolist()) for row in chosen] == [row["selected"] for row in expected]
    assert result.selected() == [f"x{j}" for j in sorted(expected[-1]["selected"])]
    assert result.selected(0) == [f"x{j}" for j in sorted(expected[0]["selected"])]


def test_equals_the_plain_loop_on_a_real_stream(load_shared):
    X, y, _ = load_shared("usenet2")
    X = np.asarray(X, dtype=np.float64)
    expected = twin.prequential(X, y, FIRES(0.1), Perceptron(random_state=0), 50)
    steps = prequential((X, y), FIRES(0.1), batch_size=50).frames["steps"]
    np.testing.assert_allclose(steps["accuracy"], [row["accuracy"] for row in expected])
    np.testing.assert_allclose(steps["stability"], [row["stability"] for row in expected], rtol=1e-12)


def test_sparse_rows_equal_dense():
    X, y = rows()
    X[np.abs(X) < 0.5] = 0.0
    # (scikit-learn's linear models step their intercept otherwise where rows are sparse)
    dense, sparse = (prequential((rows, y), FIRES(3), BernoulliNB()) for rows in (X, sp.csr_matrix(X)))
    np.testing.assert_array_equal(dense.selection_map(), sparse.selection_map())
    np.testing.assert_array_equal(dense.frames["steps"]["accuracy"], sparse.frames["steps"]["accuracy"])


def test_the_callers_models_are_fitted_and_the_rows_left_alone():
    X, y = rows()
    before = X.copy()
    selector, learner = FIRES(3), GaussianNB()
    prequential((X, y), selector, learner)
    np.testing.assert_array_equal(X, before)
    assert selector.n_seen_ == 1500
    assert learner.class_count_.sum() == 1500


def test_without_a_selector_all_features_count():
    result = prequential(rows())
    steps = result.frames["steps"]
    assert set(steps["n_selected"]) == {12}
    assert np.isnan(steps["stability"]).all()
    assert len(result.frames["changes"]["step"]) == len(result.frames["scores"]["step"]) == 0


def test_summary_and_frames():
    X, y = rows()
    names = [f"sensor {j}" for j in range(12)]
    result = prequential(ArrayStream(X, y, feature_names=names), FIRES(3))
    summary, steps = result.summary(), result.frames["steps"]
    assert summary["n_rows"] == 1400 == steps["n_rows"].sum()
    assert summary["accuracy"] == steps["accuracy_cumulative"][-1]
    assert summary["stability"] == pytest.approx(np.nanmean(steps["stability"]))
    assert steps["n_seen"].tolist() == list(range(200, 1501, 100))
    scores = result.frames["scores"]
    assert set(scores["step"]) == {0, 10}
    assert scores["name"][0] == names[scores["feature"][0]]
    assert (np.diff(scores["score"][scores["step"] == 0]) <= 0).all()
    for backend in ("pandas", "polars", "pyarrow"):
        pytest.importorskip(backend)
        assert result.to_frame("changes", backend).shape[0] == len(result.frames["changes"]["step"])


def test_results_survive_a_folder(tmp_path):
    pytest.importorskip("pyarrow")
    result = prequential(rows(), FIRES(3))
    loaded = PrequentialResult.load(result.save(tmp_path / "run"))
    same(result, loaded)
    assert loaded.settings == result.settings
    result.save(tmp_path / "run")  # over itself
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(CheckpointError, match="holds something else"):
        result.save(tmp_path / "mine")
    (tmp_path / "run" / "steps.parquet").write_bytes(b"PAR1")
    with pytest.raises(CheckpointError, match="does not hold a whole result"):
        PrequentialResult.load(tmp_path / "run")


def test_every_step_is_told():
    told = []
    X, y = rows()
    result = prequential((X, y), FIRES(3), on_step=told.append, max_rows=1000)
    assert (
        [step.values["n_seen"] for step in told]
        == result.frames["steps"]["n_seen"].tolist()
        == [*range(200, 1001, 100)]
    )
    assert told[-1].accuracy_cumulative == result.summary()["accuracy"]
    assert told[-1].progress == 1.0
    assert len(told[-1].top) == 12
    assert {f"x{j}" for j in told[-1].selected} == set(result.selected())


def test_one_class_at_first_is_no_selection_yet():
    X, y = rows()
    y = np.where(np.arange(1500) < 450, 0, y)
    result = prequential(([(X[i : i + 100], y[i : i + 100]) for i in range(0, 1500, 100)]), FIRES(3))
    steps = result.frames["steps"]
    assert steps["n_selected"][:4].tolist() == [12] * 4
    assert steps["accuracy"][:3].tolist() == [1.0] * 3
    assert np.isnan(steps["stability"][:4]).all()
    assert result.frames["changes"]["step"][0] == 4
    assert result.settings["learner_restarts"] == 0


def test_a_label_that_comes_late_starts_the_learner_anew():
    X, y = rows(n_classes=3)
    y = np.where((np.arange(1500) < 500) & (y == 2), 0, y)
    source = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 1500, 100)]
    result = prequential(source, FIRES(3), SGDClassifier(random_state=0))
    assert result.settings["learner_restarts"] == 1
    assert result.summary()["accuracy"] > 0.5
    known = prequential((X, y), FIRES(3), SGDClassifier(random_state=0))
    assert known.settings["learner_restarts"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be an integer in"),
        ({"batch_size": -5}, "got -5"),
        ({"protocol": "fair"}, "protocol must be one of 'honest', 'paper', got 'fair'"),
        ({"window": 0}, "window must be an integer in"),
        ({"stability_window": 1}, "window must be an integer in"),
        ({"n_tracked": -1}, "n_tracked must be an integer in"),
        ({"max_rows": 0}, "max_rows must be an integer in"),
        ({"checkpoint_every": 0}, "checkpoint_every must be an integer in"),
    ],
)
def test_wrong_options_are_refused_before_a_row_is_read(options, message):
    def unread():
        raise AssertionError("a row was read")
        yield

    with pytest.raises(ValueError, match=message):
        prequential(unread(), FIRES(3), **options)


def test_a_bad_batch_keeps_the_results_so_far():
    X, y = rows()
    X[1234, 7] = np.nan
    with pytest.raises(DataError, match="NaN in column 7 of row 34") as caught:
        prequential((X, y), FIRES(3))
    assert caught.value.result.frames["steps"]["n_seen"][-1] == 1200


def test_a_stream_that_fails_keeps_the_results_so_far():
    X, y = rows()

    def source():
        yield X[:500], y[:500]
        raise StreamError("the line went dead")

    with pytest.raises(StreamError, match="went dead") as caught:
        prequential(source(), FIRES(3))
    assert caught.value.result.frames["steps"]["n_seen"].tolist() == [200, 300, 400, 500]


def test_control_c_keeps_the_results_so_far(tmp_path):
    X, y = rows()

    def stop(step):
        if step.values["n_seen"] == 700:
            raise KeyboardInterrupt

    path = tmp_path / "run.tamis"
    result = prequential((X, y), FIRES(3), on_step=stop, checkpoint=path)
    assert result.settings["interrupted"]
    assert result.frames["steps"]["n_seen"][-1] == 700
    selector = FIRES(3)
    resumed = prequential((X, y), selector, checkpoint=path)
    assert not resumed.settings["interrupted"]
    same(resumed, prequential((X, y), FIRES(3)))
    assert selector.n_seen_ == 1500


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path, (X, y) = tmp_path / "run.tamis", rows()
    prequential((X, y), FIRES(3), checkpoint=path)
    for stream, selector, learner, options, what in (
        ((X + 1, y), FIRES(3), None, {}, "stream"),
        ((X, y), FIRES(4), None, {}, "selector"),
        ((X, y), FIRES(3), Perceptron(random_state=1), {}, "learner"),
        ((X, y), FIRES(3), None, {"batch_size": 50}, "options"),
    ):
        with pytest.raises(CheckpointError, match=f"another run, whose {what} is"):
            prequential(stream, selector, learner, checkpoint=path, **options)
    tamis.save([1, 2], path)
    with pytest.raises(CheckpointError, match="is no checkpoint of a run"):
        prequential((X, y), FIRES(3), checkpoint=path)


KILLED = """
import json, sys, time
import numpy as np
from tamis import FIRES, prequential
rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 12))
y = (X[:, 0] + 0.5 * rng.normal(size=6000) > 0).astype(int)
def wait(step):
    print(int(step.values["n_seen"]), flush=True)
    time.sleep(float(sys.argv[2]))
result = prequential((X, y), FIRES(3), checkpoint=sys.argv[1], checkpoint_every=5, on_step=wait)
print(json.dumps({name: result.frames["steps"][name].tolist() for name in ("n_seen", "accuracy", "n_entered")}))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_run_goes_on_from_its_checkpoint(tmp_path):
    def start(path, pause):
        return subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), pause],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ,
        )

    path = tmp_path / "run.tamis"
    victim = start(path, "0.05")
    while not path.exists():
        time.sleep(0.02)
    time.sleep(0.2)
    victim.kill()
    victim.communicate()
    *seen, document = start(path, "0").communicate()[0].splitlines()
    *_, whole = start(tmp_path / "other.tamis", "0").communicate()[0].splitlines()
    assert 700 <= int(seen[0]) < 6000
    assert json.loads(document) == json.loads(whole)


def test_an_empty_or_short_stream_gives_an_empty_result():
    X, y = rows()
    result = prequential((X[:60], y[:60]), FIRES(3))
    assert result.summary()["n_steps"] == 0
    assert result.selected() == []
    assert result.selection_map().shape == (0, 12)
    assert np.isnan(result.summary()["accuracy"])
