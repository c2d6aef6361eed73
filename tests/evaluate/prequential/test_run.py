"""One batch at a time: what the learner is given, what happens when something goes wrong in the middle, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import GaussianNB

from tamis import FIRES, StreamingStacking, prequential
from tamis.errors import CheckpointError, DataError
from tamis.evaluate.prequential.loop import Checkpoint
from tamis.evaluate.prequential.run_log import Table
from tamis.options import RunOptions
from tamis.pipeline.masked_learner import Masker
from tamis.streams import ArrayStream


class ByMeans(BaseEstimator):
    """A selector of somebody else: far class means, neither `scores_` nor `warming_up_`; NaN does not trouble it."""

    def __init__(self, k=2):
        self.k = k

    def partial_fit(self, X, y):
        if not hasattr(self, "sums_"):
            self.sums_, self.rows_ = np.zeros((2, X.shape[1])), np.ones((2, 1))
        for c in (0, 1):
            self.sums_[c] += np.nan_to_num(X[y == c]).sum(axis=0)
            self.rows_[c] += (y == c).sum()
        return self

    def get_support(self):
        far = np.abs(np.diff(self.sums_ / self.rows_, axis=0)[0])
        return far >= np.sort(far)[-self.k]


class Witness(ClassifierMixin, BaseEstimator):
    """A learner that remembers what it was given."""

    def __init__(self):
        self.seen, self.sizes = [], []

    def partial_fit(self, X, y, classes=None):
        self.seen.append(X.copy())
        self.sizes.append(len(y))
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return np.zeros(X.shape[0], dtype=int)


def rows(n=1000, n_features=8):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, n_features))
    return X, (X[:, 2] + X[:, 5] > 0).astype(int)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.3, 1.0])
def test_masked_batches_have_zeros_elsewhere(rng, dtype, share):
    masker = Masker()
    for n_rows in (20, 20, 7, 20):
        X = rng.normal(size=(n_rows, 30)).astype(dtype)
        X[rng.random(X.shape) < 0.4] = 0.0
        mask = rng.random(30) < share
        before, expected = X.copy(), np.where(mask, X, 0)
        dense = masker.mask(X, mask, np.flatnonzero(mask))
        sparse = masker.mask(sp.csr_matrix(X), mask, np.flatnonzero(mask))
        assert dense.dtype == sparse.dtype == dtype
        np.testing.assert_array_equal(dense, expected)
        np.testing.assert_array_equal(sparse.toarray(), expected)
        assert sparse.nnz == np.count_nonzero(expected)  # nothing is stored of the other columns
        assert (
            sparse.indices.dtype == sparse.indptr.dtype == np.int32
        )  # scikit-learn's kernels take no others
        np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_the_learner_sees_the_selection_alone(kind):
    X, y = rows()
    learner = Witness()
    result = prequential((kind(X), y), FIRES(2), learner)
    chosen = result.selection_map()
    assert learner.sizes == [100] * 10
    for step, seen in enumerate(learner.seen[1:]):
        part = X[100 * (step + 1) : 100 * (step + 2)]
        seen = seen.toarray() if sp.issparse(seen) else seen
        np.testing.assert_array_equal(seen, np.where(chosen[step], part, 0))


def test_missing_values_are_not_blamed_where_the_learner_takes_them():
    X, y = np.zeros((40, 6)), np.arange(40) % 2
    X[3, 2] = np.nan
    with pytest.raises(DataError, match="15 subsets of 2, more than max_trees = 9"):
        prequential((X, y), None, StreamingStacking(max_trees=9))


def test_a_selector_without_scores_and_nan_in_columns_that_are_not_selected():
    X, y = rows()
    X[100:, 0] = np.nan  # (the first batch trains the learner on every column)
    result = prequential((X, y), ByMeans(2), Perceptron(random_state=0))
    assert result.selected() == ["x2", "x5"]
    assert result.summary()["accuracy"] > 0.8
    assert len(result.frames["scores"]["step"]) == 0


@pytest.mark.parametrize("protocol", ["honest", "paper"])
@pytest.mark.parametrize("column", [2, 3])  # selected, not selected
def test_a_refused_batch_teaches_nobody_and_is_named(protocol, column):
    X, y = rows()
    X[725, column] = np.inf
    selector, learner = FIRES(2), GaussianNB()
    stream = ArrayStream(X, y, feature_names=[f"sensor {j}" for j in range(8)])
    with pytest.raises(
        DataError, match=f"infinity in column 'sensor {column}' of row 25 of the batch"
    ) as caught:
        prequential(stream, selector, learner, protocol=protocol)
    assert "\n" not in str(caught.value)
    result = caught.value.result
    assert result.settings["interrupted"]
    assert result.frames["steps"]["n_seen"][-1] == 700 == selector.n_seen_ == learner.class_count_.sum()


def test_any_error_keeps_the_results_so_far():
    def stop(step):
        if step.values["n_seen"] == 500:
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="disk is full") as caught:
        prequential(rows(), FIRES(2), on_step=stop)
    assert caught.value.result.frames["steps"]["n_seen"].tolist() == [200, 300, 400, 500]


def test_a_learner_that_was_trained_before_goes_on():
    X, y = rows()
    learner = SGDClassifier(random_state=0).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    source = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 1000, 100)]
    result = prequential(source, FIRES(2), learner)
    assert result.settings["learner_restarts"] == 0
    assert learner.classes_.tolist() == [0, 1, 2]
    assert learner.t_ == 1101


def test_labels_of_any_type():
    X, y = rows()
    numbers = prequential((X, y), FIRES(2)).frames["steps"]["accuracy"]
    for labels in (
        np.where(y, "yes", "no"),
        y.astype(bool),
        y.astype(object),
        np.where(y, "yes", "no").astype(object),
    ):
        np.testing.assert_array_equal(prequential((X, labels), FIRES(2)).frames["steps"]["accuracy"], numbers)


def test_no_row_is_read_beyond_the_last_one_wanted():
    X, y = rows()
    read = []

    def source():
        for start in range(0, 1000, 100):
            read.append(start)
            yield X[start : start + 100], y[start : start + 100]

    result = prequential(source(), FIRES(2), max_rows=300)
    assert result.frames["steps"]["n_seen"].tolist() == [200, 300]
    assert read == [0, 100, 200]
    cut = prequential((X, y), FIRES(2), max_rows=350)
    assert cut.frames["steps"]["n_rows"].tolist() == [100, 100, 50]


def test_progress_is_of_what_ends_first():
    X, y = rows()
    for options, source, expected in (
        ({}, (X, y), [0.2, 1.0]),
        ({"max_rows": 500}, (X, y), [0.4, 1.0]),
        ({"max_rows": 500}, [(X, y)], [0.4, 1.0]),
        ({}, [(X, y)], [None, None]),
    ):
        told = []
        prequential(source, FIRES(2), on_step=told.append, **options)
        assert [told[0].progress, told[-1].progress] == expected


def test_times_add_up():
    begin = time.perf_counter()
    steps = prequential(rows(), FIRES(2)).frames["steps"]
    spent = time.perf_counter() - begin
    parts = steps["seconds_select"] + steps["seconds_predict"] + steps["seconds_learn"]
    assert (steps["seconds_learn"] > 0).all()
    assert (parts < steps["seconds_total"]).all()
    assert steps["seconds_total"].sum() < spent
    assert (steps["memory_bytes"] > 10_000_000).all() or not os.path.exists("/proc/self/statm")


def test_tables_grow():
    table, expected = Table(3), []
    for n in (0, 1, 63, 1, 500, 2):
        new = np.arange(3.0 * n).reshape(n, 3) + len(expected)
        table.more(n)[:] = new
        expected.extend(new.tolist())
    assert table.rows.tolist() == expected


# -- checkpoints and Ctrl-C --------------------------------------------------------------------------------


def test_a_run_of_somebody_elses_selector_goes_on(tmp_path):
    X, y = rows()
    path = tmp_path / "run.tamis"

    def stop(step):
        if step.values["n_seen"] == 600:
            raise KeyboardInterrupt

    prequential((X, y), ByMeans(2), checkpoint=path, on_step=stop, on_interrupt="return")
    resumed = prequential((X, y), ByMeans(2), checkpoint=path)
    whole = prequential((X, y), ByMeans(2))
    for name in ("n_seen", "accuracy", "stability", "n_entered"):
        np.testing.assert_array_equal(resumed.frames["steps"][name], whole.frames["steps"][name])
    again = prequential((X, y), selector := ByMeans(2), checkpoint=path)  # a finished run is there at once
    assert (
        again.frames["steps"]["seconds_total"].tolist() == resumed.frames["steps"]["seconds_total"].tolist()
    )
    assert again.feature_names == whole.feature_names
    assert selector.rows_.sum() == 1002


def test_names_and_labels_survive_a_checkpoint(tmp_path):
    X, y = rows()
    stream = ArrayStream(X, np.where(y, "ja", "nein"), feature_names=list("abcdefgh"))
    first = prequential(stream, FIRES(2), checkpoint=tmp_path / "run.tamis")
    again = prequential(stream, FIRES(2), checkpoint=tmp_path / "run.tamis")
    assert again.selected() == first.selected() == ["c", "f"]
    assert again.frames["changes"]["name"].tolist() == first.frames["changes"]["name"].tolist()


@pytest.mark.parametrize("place", ["nowhere/run.tamis", "."])
def test_a_place_for_no_checkpoint_is_refused_before_a_row_is_read(tmp_path, place):
    def unread():
        raise AssertionError("a row was read")
        yield

    with pytest.raises(CheckpointError, match="Cannot write the checkpoint"):
        prequential(unread(), FIRES(2), checkpoint=tmp_path / place)


def test_saving_takes_a_small_part_of_the_time(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    saved = []

    def state():
        saved.append(now[0])
        now[0] += 3.0  # saving takes three seconds
        return {}

    kept = Checkpoint(RunOptions(checkpoint=tmp_path / "run.tamis", checkpoint_every=10))
    for step in range(400):
        now[0] += 1.0
        kept.keep(step, {}, state)
    # due every 13 seconds, saved when 60 (three is a twentieth of that) have passed
    assert saved[:3] == [1.0, 64.0, 127.0]
    assert len(saved) == 7


SLOW = """
import signal, sys
import numba
import numpy as np
from sklearn.naive_bayes import GaussianNB
from tamis import FIRES, StreamingStacking, prequential

class Slow(GaussianNB):
    def partial_fit(self, X, y, classes=None):
        if len(sys.argv) > 2 and getattr(self, "class_count_", np.zeros(1)).sum() == 500:
            for _ in range(int(sys.argv[2])):  # Ctrl-C in the middle of the sixth batch
                signal.raise_signal(signal.SIGINT)
        return super().partial_fit(X, y, classes)

rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 8))
y = (X[:, 2] > 0).astype(int)
selector, learner = FIRES(2), Slow()
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started without
before = signal.getsignal(signal.SIGINT)
result = prequential((X, y), selector, learner, checkpoint=sys.argv[1], checkpoint_every=2, baselines="none",
                     on_interrupt="return")
assert signal.getsignal(signal.SIGINT) is before
print(result.settings["interrupted"], selector.n_seen_, int(learner.class_count_.sum()))
print(result.frames["steps"]["accuracy"].tolist())
"""


@pytest.fixture
def go(monkeypatch, capsys):
    """Run a program: in this process, or in one of its own, which a signal may end."""

    def go(program, *arguments, alone=False):
        if alone:
            command = [sys.executable, "-c", program, *map(str, arguments)]
            return subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout
        monkeypatch.setattr(sys, "argv", ["-c", *map(str, arguments)])
        exec(program, {"__name__": "__main__"})
        return capsys.readouterr().out

    return go


@pytest.mark.slow
@pytest.mark.parametrize(("times", "last"), [(1, 600), (2, 500)])
def test_control_c_in_the_middle_of_a_batch_leaves_a_whole_checkpoint(go, tmp_path, times, last):
    stopped, seen = go(SLOW, tmp_path / "a.tamis", times, alone=True).splitlines()
    assert stopped.split()[0] == "True"
    assert len(json.loads(seen)) == last // 100 - 1
    resumed = go(SLOW, tmp_path / "a.tamis")
    assert resumed.startswith("False 1000 1000\n")
    assert resumed == go(SLOW, tmp_path / "b.tamis")


def test_somebody_elses_handler_of_control_c_stays():
    def mine(number, frame):
        raise AssertionError("not called")

    before, found = signal.signal(signal.SIGINT, mine), []
    try:
        prequential(rows(), FIRES(2), on_step=lambda step: found.append(signal.getsignal(signal.SIGINT)))
    finally:
        signal.signal(signal.SIGINT, before)
    assert set(found) == {mine}


class OneArray(ByMeans):
    """A selector that hands out the array it goes on writing in."""

    def get_support(self):
        mask = super().get_support()
        if not hasattr(self, "mask_"):
            self.mask_ = np.zeros_like(mask)
        self.mask_[:] = mask
        return self.mask_


class OneAnswer(Witness):
    """A learner that hands out the array of its last answer."""

    def predict(self, X):
        if not hasattr(self, "answer_"):
            self.answer_ = np.zeros(10, dtype=int)
        self.answer_[:] = len(self.sizes) % 2
        return self.answer_[: X.shape[0]]


def turning_rows(n=200):
    """The first two of four columns tell the class, later the last two."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4))
    X[: n // 2, :2] += 20.0 * y[: n // 2, None]
    X[n // 2 :, 2:] += 60.0 * y[n // 2 :, None]
    return X, y


def test_a_selector_may_go_on_writing_in_what_it_handed_out():
    X, y = turning_rows()
    runs = [
        prequential((X, y), selector, Perceptron(), batch_size=10) for selector in (ByMeans(), OneArray())
    ]
    changes = [run.frames["changes"]["feature"].tolist() for run in runs]
    assert changes[0] == changes[1]
    assert len(changes[0]) > 2


def test_a_learner_may_go_on_writing_in_what_it_answered():
    X, y = turning_rows()
    result = prequential((X, y), None, OneAnswer(), batch_size=10)
    answers = (1 + np.arange(19)) % 2  # after 1, 2, ... batches
    want = [np.mean(y[10 * (t + 1) : 10 * (t + 2)] == answers[t]) for t in range(19)]
    np.testing.assert_allclose(result.frames["steps"]["accuracy"], want)


def test_the_baselines_too_have_seen_the_first_batch():
    X = np.zeros((20, 1))
    y = np.array([0] * 10 + [1] * 6 + [0] * 4)
    result = prequential((X, y), None, Witness(), batch_size=10)
    assert result.summary()["majority_accuracy"] == pytest.approx(0.4)
    assert result.summary()["no_change_accuracy"] == pytest.approx(0.8)


# -- remarks ------------------------------------------------------------------------------------------------


def test_remarks_say_which_baselines_the_run_does_not_beat():
    X, y = rows(2000)

    class Wrong(ByMeans):
        def get_support(self):
            return np.isin(np.arange(8), [3, 4])

    loses = prequential((X, y), Wrong(), GaussianNB(), baselines="both")
    assert any("random subsets of the same size" in remark for remark in loses.remarks())
    [level] = prequential(
        (X, y), FIRES(2), GaussianNB(), n_draws=10
    ).remarks()  # nothing changes on this stream
    assert "one frozen after 1,000 rows (L1): since then its accuracy is the same." in level
    rare = np.where(np.arange(2000) % 20 == 0, 1, 0)
    X[:, 1] *= 1e4
    below = prequential((X, rare), None, Perceptron(random_state=0), scale="none").remarks()
    assert len(below) == 2
    assert below[1].endswith("as one class is rare: read AUC and average precision here.")
    assert "hardly better than a random ranking, 0.5" in below[0]
    assert below[0].endswith("standardised columns.")
    for every, apart, remarks in ((20, 2.0, [False]), (7, 1.2, [True])):
        rarer = np.where(np.arange(2000) % every == 0, 1, 0)
        shifted = np.random.default_rng(0).normal(size=(2000, 8))
        shifted[:, 0] += apart * rarer
        ranks = prequential((shifted, rarer), None, Perceptron(random_state=0)).remarks()
        assert [
            "below the majority class" in remark and "but the model ranks the rows" in remark
            for remark in ranks
        ] == remarks
    assert prequential((X[:100], y[:100]), FIRES(2)).remarks() == []  # nothing was tested


def test_a_remark_wherever_a_baseline_without_features_wins():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    runs = np.repeat(rng.integers(0, 2, 100), 20)
    for selector in (FIRES(2), None):
        result = prequential((X, runs), selector)
        total = result.summary()
        assert total["no_change_accuracy"] > max(total["accuracy"], total["majority_accuracy"])
        [remark] = [one for one in result.remarks() if "no-change" in one]
        assert remark.startswith(f"Accuracy {total['accuracy']:.3f} is below the no-change baseline, ")
    walk = np.cumsum(rng.normal(size=2000))
    result = prequential((X, walk), FIRES(2, model="gaussian"))
    assert any("that of the previous target" in remark for remark in result.remarks())
    noise = rng.permutation([0] * 1200 + [1] * 800)
    majority = prequential((X, noise), FIRES(2)).remarks()
    assert any("the majority class, 0." in remark for remark in majority)
    assert not any("no-change" in remark for remark in majority)
    constant = [0] * 950 + [1] * 50  # a learner that always predicts the majority does not exceed it
    level = prequential(
        (X[:1000], rng.permutation(constant)), FIRES(2), GaussianNB(var_smoothing=1e9)
    ).remarks()
    assert any("does not exceed the majority class" in remark for remark in level)


def test_all_columns_are_always_among_the_baselines():
    X, y = rows(2000)
    y = (X[:, 0] + X[:, 1] + X[:, 2] > 0).astype(int)
    total = prequential((X, y), FIRES(1)).summary()
    alone = prequential((X, y), None).summary()
    assert total["all_accuracy"] == alone["accuracy"] > total["accuracy"]
    assert total["all_gain"] == pytest.approx(total["accuracy"] - total["all_accuracy"], abs=0.02)
    assert total["all_gain"] < -total["all_gain_error"] < 0
    assert any(
        one.startswith("The selection loses to all 8 features")
        for one in prequential((X, y), FIRES(1)).remarks()
    )
    assert np.isnan(prequential((X, y), FIRES(1), baselines="none").summary()["all_accuracy"])


def test_times_add_up_and_compilation_is_apart():
    parts = ("select", "predict", "learn", "baselines", "read", "compile", "other")
    X, y = rows(1000)

    class Compiles(ByMeans):
        def partial_fit(self, X, y):
            scope = {}
            exec("def kernel(x):\n    return x + 1", scope)
            assert numba.njit(scope["kernel"])(2) == 3
            return super().partial_fit(X, y)

    begin = time.perf_counter()
    compiled = prequential((X, y), Compiles(), batch_size=250, baselines="none")
    spent = time.perf_counter() - begin
    total = compiled.summary()
    assert sum(total[f"seconds_{part}"] for part in parts) == pytest.approx(total["seconds_run"], rel=1e-9)
    assert all(total[f"seconds_{part}"] >= 0.0 for part in parts)
    assert 0.02 < total["seconds_compile"] < total["seconds_run"] < spent
    assert total["seconds_select"] < 0.5 * total["seconds_compile"]
    steps = compiled.frames["steps"]
    assert (steps["seconds_compile"] > 0.0).all()  # the first step includes the batch before it


@pytest.mark.slow
def test_where_a_class_is_rare_random_subsets_are_beaten_by_ranking():
    rng = np.random.default_rng(0)
    y = (rng.random(6000) < 0.03).astype(int)
    X = rng.normal(size=(6000, 12))
    X[:, 0] += 1.2 * y  # it never makes a row of the rarer class the likelier one: accuracy does not move

    class Takes(ByMeans):
        def __init__(self, column):
            self.column = column

        def get_support(self):
            return np.arange(8) == self.column

    def run(column):
        return prequential((X[:, :8], y), Takes(column), GaussianNB())

    right, wrong = run(0), run(5)
    total = right.summary()
    assert abs(total["accuracy"] - total["random_accuracy"]) < 0.002
    assert total["auc"] > total["random_auc"] + 0.1
    assert not any("random subsets" in remark for remark in right.remarks())
    [told] = [remark for remark in wrong.remarks() if "random subsets" in remark]
    assert "of the same size: AUC" in told


# -- SIGTERM -----------------------------------------------------------------------------------------------

TERMINATED = """
import os, signal, sys
import numba
import numpy as np
from tamis import FIRES, StreamingStacking, prequential

rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 8))
y = (X[:, 2] > 0).astype(int)

def stop(step):
    if len(sys.argv) > 2 and step.values["n_seen"] == 600:
        os.kill(os.getpid(), signal.SIGTERM)

signal.signal(signal.SIGTERM, signal.SIG_DFL)
result = prequential((X, y), FIRES(2), checkpoint=sys.argv[1], checkpoint_every=3, on_step=stop, on_interrupt="return")
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
print(result.settings["interrupted"], int(result.frames["steps"]["n_seen"][-1]))
"""


@pytest.mark.slow
def test_sigterm_ends_as_control_c_does(go, tmp_path):
    path = tmp_path / "run.tamis"
    assert go(TERMINATED, path, "stop", alone=True).split() == ["True", "600"]
    assert path.exists()
    assert go(TERMINATED, path).split() == ["False", "1000"]


def test_somebody_elses_handler_of_sigterm_stays():
    def mine(number, frame):
        raise AssertionError("not called")

    before, found = signal.signal(signal.SIGTERM, mine), []
    try:
        prequential(rows(), FIRES(2), on_step=lambda step: found.append(signal.getsignal(signal.SIGTERM)))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert set(found) == {mine}


def test_a_listener_receives_the_steps_that_are_due():
    class EveryThird:
        def __init__(self):
            self.asked, self.seen = 0, []

        def is_due(self):
            self.asked += 1
            return self.asked % 3 == 0

        def __call__(self, step):
            self.seen.append(step.step)

    listener = EveryThird()
    every = prequential(rows(), FIRES(2), on_step=lambda step: None)
    result = prequential(rows(), FIRES(2), on_step=listener)
    n_steps = len(result.frames["steps"]["step"])
    assert listener.seen == list(range(2, n_steps, 3))
    for name in ("accuracy", "auc_windowed", "random_accuracy_windowed", "stability"):
        np.testing.assert_array_equal(result.frames["steps"][name], every.frames["steps"][name])
