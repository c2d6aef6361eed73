"""Test-then-train against a plain loop; interruptions, checkpoints, labels that come late, and wrong input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB

import tamis
from tamis import FIRES, OFS, TScore, prequential
from tamis.catalog import CATALOG
from tamis.errors import CheckpointError, DataError, StreamError
from tamis.evaluate import PrequentialResult
from tamis.streams import ArrayStream
from tests.twins import prequential as twin

TIMED = {
    "seconds_select", "seconds_predict", "seconds_learn", "seconds_baselines", "seconds_total", "seconds_read",
    "seconds_compile", "seconds_run", "memory_bytes", "model_bytes",
}  # fmt: skip


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


@pytest.mark.slow
@pytest.mark.parametrize(("delay", "n_classes"), [(1, 2), (30, 3), (70, 2), (200, 3), (333, 2)])
def test_late_labels_are_learned_when_they_come(delay, n_classes):
    X, y = rows(n=900, n_classes=n_classes)
    known = np.unique(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = twin.prequential(X, y, FIRES(3), Perceptron(random_state=0), 70, delay=delay)
    result = prequential(
        ArrayStream(X, y, classes=known),
        FIRES(3),
        tamis.Perceptron(),
        batch_size=70,
        delay=delay,
        stability_window=10,
    )
    steps = result.frames["steps"]
    assert len(steps["step"]) == len(expected)
    for name in set(expected[0]) - {"selected"}:
        np.testing.assert_allclose(steps[name], [row[name] for row in expected], err_msg=name, atol=1e-12)
    tested = 900 - int(steps["n_rows"].sum())  # the first of them
    same_as = [i >= delay and y[i] == y[i - 1 - delay] for i in range(tested, 900)]
    assert steps["no_change_accuracy_cumulative"][-1] == pytest.approx(np.mean(same_as))


def test_a_label_nobody_has_told_is_not_known():
    """A class that appears is predicted when its first label has come, not when its first row has."""
    y = np.repeat([0, 1, 0, 2], 300)
    y[:600:2] = 1 - y[:600:2]
    X = np.random.default_rng(0).normal(size=(1200, 4)) + 3 * np.eye(4)[y]
    batches = [(X[at : at + 50], y[at : at + 50]) for at in range(0, 1200, 50)]  # nobody knows the classes
    result = prequential(batches, FIRES(3), batch_size=50, delay=100, replay="never")
    accuracy = result.frames["steps"]["accuracy"]
    ends = result.frames["steps"]["n_seen"]
    assert (accuracy[(ends > 900) & (ends <= 1000)] < 0.1).all()
    assert accuracy[ends > 1100].min() > 0.9
    assert result.settings["learner_restarts"] == 1


def test_labels_that_never_come_in_time():
    X, y = rows(n=300)
    result = prequential((X, y), FIRES(3), delay=300)
    assert len(result.frames["steps"]["step"]) == 0
    with pytest.raises(ValueError, match="delay must be an integer in"):
        prequential((X, y), FIRES(3), delay=-1)
    with pytest.raises(ValueError, match="protocol='paper' shows the selector the labels"):
        prequential((X, y), FIRES(3), delay=5, protocol="paper")


def test_late_labels_survive_a_stop(tmp_path):
    X, y = rows()
    path = tmp_path / "run.tamis"
    for kept in (X, sp.csr_matrix(X)):
        whole = prequential((kept, y), FIRES(3), delay=250)
        prequential(
            (kept, y), FIRES(3), delay=250, checkpoint=path, on_step=stop_after(6), on_interrupt="return"
        )
        same(whole, prequential((kept, y), FIRES(3), delay=250, checkpoint=path))
        path.unlink()


def stop_after(n):
    def on_step(step):
        if step.values["step"] == n:
            raise KeyboardInterrupt

    return on_step


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["honest", "paper"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("selector", [FIRES, OFS])
def test_equals_the_plain_loop(protocol, n_classes, selector):
    X, y = rows(n_classes=n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = twin.prequential(X, y, selector(3), Perceptron(random_state=0), 70, protocol, 300, 5)
    result = prequential(
        (X, y),
        selector(3),
        tamis.Perceptron(),
        batch_size=70,
        protocol=protocol,
        window=300,
        stability_window=5,
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
    steps = prequential((X, y), FIRES(0.1), tamis.Perceptron(), batch_size=50).frames["steps"]
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
    assert set(scores["step"]) == set(range(14))
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
    assert os.listdir(tmp_path) == ["run"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "settings.json").write_text("{}")  # others use that name too
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    (tmp_path / "file").write_text("precious")
    for taken in ("mine", "file"):
        with pytest.raises(CheckpointError, match="contains other files"):
            result.save(tmp_path / taken)
    with pytest.raises(CheckpointError, match="Cannot write"):
        result.save(tmp_path / "file" / "run")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"
    (tmp_path / "run" / "steps.parquet").write_bytes(b"PAR1")
    with pytest.raises(CheckpointError, match="does not contain a whole result"):
        PrequentialResult.load(tmp_path / "run")


def test_the_settings_are_strict_json_that_others_may_read(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "plain").mkdir()
    folder = prequential(rows()).save(tmp_path / "run")  # no selector: no stability
    document = json.loads((folder / "settings.json").read_text(), parse_constant=pytest.fail)
    assert document["summary"]["stability"] is None
    assert folder.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_result_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    old = prequential(rows(), FIRES(3))
    old.save(tmp_path / "run")
    replace = os.replace

    def fail(source, target):
        if source.suffix != ".old" and target == tmp_path / "run":
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(CheckpointError, match="No space left"):
        prequential(rows(seed=1), FIRES(3)).save(tmp_path / "run")
    same(PrequentialResult.load(tmp_path / "run"), old)
    assert os.listdir(tmp_path) == ["run"]


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


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("column", [0, 7])  # selected, and not
@pytest.mark.parametrize("selector", [FIRES(1), TScore(12), None])
@pytest.mark.parametrize(
    ("value", "what", "scale"), [(np.nan, "NaN", "none"), (np.inf, "infinity", "standard")]
)
def test_a_bad_batch_keeps_the_results_so_far(kind, column, selector, value, what, scale):
    if what == "NaN" and isinstance(selector, FIRES):
        column = 0  # FIRES takes NaN, and the learner gets the selected column alone
    X, y = rows()
    X[1234, column] = value
    learner = SGDClassifier(random_state=0)
    with pytest.raises(DataError, match=f"{what} in column {column} of row 34") as caught:
        prequential((kind(X), y), None if selector is None else clone(selector), learner, scale=scale)
    assert caught.value.result.frames["steps"]["n_seen"][-1] == 1200
    assert learner.t_ == 1201  # nothing of the bad batch was learned


def test_a_learner_of_standardised_columns_gets_the_mean_for_a_missing_value():
    X, y = rows()
    X[:, 0] += 5.0
    X[300:, 0][np.random.default_rng(0).random(1200) < 0.3] = np.nan
    found = prequential((X, y), None, SGDClassifier(random_state=0))
    steps = found.frames["steps"]
    assert steps["n_seen"][-1] == 1500
    as_zero = prequential((np.nan_to_num(X), y), None, SGDClassifier(random_state=0)).frames["steps"]
    assert steps["accuracy"][:2].tolist() == as_zero["accuracy"][:2].tolist()
    assert steps["accuracy"][2:].mean() > as_zero["accuracy"][2:].mean() + 0.05


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_a_selector_that_takes_nan_may_drop_its_column(kind):
    X, y = rows()
    X[1::2, 7] = np.nan
    with pytest.raises(DataError, match="column 7 of row 1 "):  # the first batch trains on all columns
        prequential((kind(X), y), TScore(1), scale="none")
    X[:100, 7] = 0.0
    result = prequential((kind(X), y), TScore(1))
    assert result.selected() == ["x0"]
    assert result.summary()["n_rows"] == 1400


def test_whatever_is_raised_carries_the_results_so_far():
    def stop(step):
        if step.n_seen == 500:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full") as caught:
        prequential(rows(), FIRES(3), on_step=stop)
    assert caught.value.result.frames["steps"]["n_seen"].tolist() == [200, 300, 400, 500]


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
    with pytest.raises(KeyboardInterrupt) as caught:
        prequential((X, y), FIRES(3), on_step=stop, checkpoint=path)
    result = caught.value.result
    assert result.settings["interrupted"]
    assert result.frames["steps"]["n_seen"][-1] == 700
    selector = FIRES(3)
    resumed = prequential((X, y), selector, checkpoint=path)
    assert not resumed.settings["interrupted"]
    same(resumed, prequential((X, y), FIRES(3)))
    assert selector.n_seen_ == 1500


def test_an_exit_is_passed_on_after_the_checkpoint_is_written(tmp_path):
    def leave(step):
        if step.values["n_seen"] == 700:
            raise SystemExit(3)

    path = tmp_path / "run.tamis"
    with pytest.raises(SystemExit) as caught:
        prequential(rows(), FIRES(3), on_step=leave, checkpoint=path, on_interrupt="return")
    assert caught.value.code == 3
    selector = FIRES(3)
    same(prequential(rows(), selector, checkpoint=path), prequential(rows(), FIRES(3)))
    assert selector.n_seen_ == 1500
    with pytest.raises(ValueError, match="on_interrupt must be"):
        prequential(rows(), FIRES(3), on_interrupt="ignore")


class Interrupted(FIRES):
    """Is stopped within a batch, after the learner has learned from it."""

    at = None

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if getattr(self, "n_seen_", 0) == self.at:
            raise KeyboardInterrupt
        return super().partial_fit(X, y, classes=classes)


def test_a_batch_half_done_is_not_saved(tmp_path, monkeypatch):
    path, source = tmp_path / "run.tamis", rows()
    monkeypatch.setattr(Interrupted, "at", 700)
    result = prequential(source, Interrupted(3), checkpoint=path, checkpoint_every=2, on_interrupt="return")
    assert result.settings["interrupted"]
    assert result.frames["steps"]["n_seen"][-1] == 700
    monkeypatch.setattr(Interrupted, "at", None)
    resumed = prequential(source, Interrupted(3), checkpoint=path, checkpoint_every=2)
    same(resumed, prequential(source, Interrupted(3)))


@pytest.mark.parametrize(("presses", "last"), [(1, 800), (2, 700)])
def test_control_c_waits_for_the_batch_unless_pressed_twice(presses, last):
    class Pressed(FIRES):
        def partial_fit(self, X, y, classes=None, sample_weight=None):
            if getattr(self, "n_seen_", 0) == 700:
                for _ in range(presses):
                    signal.raise_signal(signal.SIGINT)
            return super().partial_fit(X, y, classes=classes)

    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started without
    try:
        result = prequential(rows(), Pressed(3), on_interrupt="return")
        assert result.settings["interrupted"]
        assert result.frames["steps"]["n_seen"][-1] == last
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, usual)


def test_what_cannot_be_saved_shows_before_the_first_step(tmp_path):
    class Own(Perceptron):
        """Not a public class of scikit-learn."""

    def unreached(step):
        raise AssertionError("a step was done")

    with pytest.raises(TypeError, match=r"Cannot save run\.models\.learner"):
        prequential(rows(), FIRES(3), Own(), checkpoint=tmp_path / "run.tamis", on_step=unreached)
    with pytest.raises(CheckpointError, match="Cannot write"):
        prequential(rows(), FIRES(3), checkpoint=tmp_path / "none" / "run.tamis", on_step=unreached)


def test_numbers_of_numpy_are_numbers(tmp_path):
    path, source = tmp_path / "run.tamis", rows()
    first = prequential(source, FIRES(np.int64(3)), checkpoint=path, max_rows=np.int64(800))
    assert json.loads(json.dumps(first.settings)) == first.settings
    same(first, prequential(source, FIRES(3), checkpoint=path, max_rows=800))


def test_no_batch_is_awaited_beyond_max_rows():
    X, y = rows()

    def source():
        yield X[:400], y[:400]
        raise AssertionError("it waited for more")

    assert prequential(source(), FIRES(3), max_rows=400).summary()["n_rows"] == 300


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path, (X, y) = tmp_path / "run.tamis", rows()
    prequential((X, y), FIRES(3), checkpoint=path)
    for stream, selector, learner, options, what in (
        ((X + 1, y), FIRES(3), None, {}, "stream.fingerprint"),
        ((X, y), FIRES(4), None, {}, "selector.params.n_features_to_select"),
        ((X, y), OFS(3), None, {}, "selector.class"),
        ((X, y), None, None, {}, "selector"),
        ((X, y), FIRES(3), tamis.SGDLogisticRegression(), {}, "learner.params.learning_rate"),
        ((X, y), FIRES(3), None, {"batch_size": 50}, "options.batch_size"),
    ):
        with pytest.raises(CheckpointError, match=f"another run, whose {what} is"):
            prequential(stream, selector, learner, checkpoint=path, **options)
    tamis.save([1, 2], path)
    with pytest.raises(CheckpointError, match="is not a checkpoint of a run"):
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


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_run_goes_on_from_its_checkpoint(tmp_path, monkeypatch, capsys):
    def run(path):
        monkeypatch.setattr(sys, "argv", ["-c", str(path), "0"])
        exec(KILLED, {"__name__": "__main__"})
        return capsys.readouterr().out.splitlines()

    path = tmp_path / "run.tamis"
    command = [sys.executable, "-c", KILLED, str(path), "0.05"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as victim:
        victim.stdout.readline()
        first = path.stat().st_mtime_ns
        while path.stat().st_mtime_ns == first:  # until it is saved again
            victim.stdout.readline()
        victim.stdout.readline()
        victim.kill()
    *seen, document = run(path)
    *_, whole = run(tmp_path / "other.tamis")
    assert 300 <= int(seen[0]) < 6000
    assert json.loads(document) == json.loads(whole)


def test_an_empty_or_short_stream_gives_an_empty_result():
    X, y = rows()
    result = prequential((X[:60], y[:60]), FIRES(3))
    assert result.summary()["n_steps"] == 0
    assert result.selected() == []
    assert result.selection_map().shape == (0, 12)
    assert np.isnan(result.summary()["accuracy"])


def test_scores_are_written_down_often_at_first_and_then_every_thousand_rows():
    X, y = rows(30_000)
    steps = np.unique(prequential(ArrayStream(X, y), FIRES(3), baselines="none").frames["scores"]["step"])
    assert steps[:20].tolist() == list(range(20))
    assert np.diff(steps).max() <= 12
    assert (np.diff(steps)[-10:] == 10).all()
    assert np.diff(steps[-8:]).tolist() == [10] * 7


# -- the words of the shell --------------------------------------------------------------------------------


def numbers(n=1500, n_features=8):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    return X, 2 * X[:, 3] - X[:, 5] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize(
    "entry", [one for one in CATALOG if one.family == "rows" and one.regression], ids=lambda one: one.key
)
def test_a_task_is_that_of_the_parameters(entry):
    stream, seed = numbers(600), {"random_state": 0} if entry.name == "RandomSubset" else {}
    result = prequential(stream, entry.load()(**seed), task="regression")
    same(result, prequential(stream, entry.load()(**seed, **dict(entry.regression))))
    assert result.settings["task"] == "regression"


def test_a_task_that_a_model_cannot_have_is_an_error_that_names_one():
    stream = numbers(600)
    with pytest.raises(ValueError, match=r"task='regression' does not suit this OFS: pass one of FIRES, "):
        prequential(stream, OFS(2), task="regression")
    with pytest.raises(ValueError, match=r"task='regression' does not suit the learner GaussianNB"):
        prequential(stream, None, GaussianNB(), task="regression")
    with pytest.raises(ValueError, match=r"pass FIRES\(model='gaussian'\)"):
        prequential(stream, FIRES(2, model="logit"), task="regression")
    with pytest.raises(ValueError, match=r"task='classification' does not suit this FIRES"):
        prequential(stream, FIRES(2, model="gaussian"), task="classification")
    with pytest.raises(DataError, match=r"choose task='regression' \(for FIRES model='gaussian'"):
        prequential(stream, FIRES(2))
    assert prequential(stream, task="regression").settings["task"] == "regression"


def test_missing_numbers_are_treated_as_requested():
    X, y = rows()
    X[::7, 2] = np.nan
    learner = SGDClassifier(random_state=0)
    with pytest.raises(StreamError, match="missing='mean'"):
        prequential((X, y), None, clone(learner), missing="error")
    with pytest.raises(DataError, match="NaN in column 2"):
        prequential((X, y), None, clone(learner), scale="none")
    result = prequential((X, y), None, clone(learner), scale="none", missing="mean")
    filled = ArrayStream(X, y).with_missing("mean").take(len(y))
    same(result, prequential(filled, None, clone(learner), scale="none"))
    assert result.settings["stream"]["missing"] == "mean"


@pytest.mark.parametrize(
    ("absent", "options", "said"),
    [
        (["pandas"], {}, "polars.dataframe.frame"),
        (
            ["pandas", "polars", "pyarrow"],
            {},
            "None of pandas, polars and pyarrow is installed: pip install pandas.",
        ),
        (["polars"], {"backend": "polars"}, "backend='polars' is not installed: pip install polars."),
    ],
)
def test_a_frame_is_of_a_library_that_is_installed(absent, options, said):
    code = f"""
import sys
import numpy as np
sys.modules.update(dict.fromkeys({absent}))
from tamis import FIRES, prequential
result = prequential((np.eye(300, 3), np.arange(300) % 2), FIRES(2))
try:
    print(type(result.to_frame(**{options})).__module__)
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said
