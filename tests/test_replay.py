"""A learner restarts from the last rows: when, from which, and with what masked."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import GaussianNB

from tamis import TScore, load_stream, prequential
from tamis.evaluate.experiment.grid import Oracle
from tamis.replay import Replay


class Renews:
    """Keeps column 0 for 300 rows, then column 1; says so, or is silent."""

    n_replay = 150

    def __init__(self, says_so=True):
        self.says_so, self.n_seen, self.drift_detected_ = says_so, 0, False

    def partial_fit(self, X, y):
        before = self.n_seen
        self.n_seen += X.shape[0]
        self.drift_detected_ = self.says_so and before < 300 <= self.n_seen
        return self

    def get_support(self):
        return np.arange(3) == (self.n_seen >= 300)


class Notes(GaussianNB):
    """Remembers what it was taught since it began."""

    def partial_fit(self, X, y, classes=None):
        self.taught = [*getattr(self, "taught", []), np.array(X.toarray() if sp.issparse(X) else X)]
        return super().partial_fit(self.taught[-1], y, classes=classes)

    def predict(self, X):
        return super().predict(X.toarray() if sp.issparse(X) else X)


def rows(n=500):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)), rng.integers(0, 2, n)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_begins_anew_from_as_many_rows_as_the_selector_says(kind):
    X, y = rows()
    learner = Notes()
    result = prequential(
        (kind(X), y), Renews(), learner, batch_size=100, masking="zeros", auc=False, replay="always"
    )
    masked = X * (np.arange(3) == 1)
    np.testing.assert_array_equal(learner.taught[0], masked[150:300])
    np.testing.assert_array_equal(np.vstack(learner.taught[1:]), masked[300:])
    assert result.settings["replays"] == 1


def test_a_learner_of_whole_rows_begins_anew_from_whole_rows():
    X, y = rows()
    learner = Notes()
    prequential((X, y), Renews(), learner, batch_size=100, replay="always")
    np.testing.assert_array_equal(np.vstack(learner.taught), X[150:])


def test_goes_on_if_the_selector_is_silent_or_is_not_to_be_heard():
    X, y = rows()
    for selector, replay in ((Renews(says_so=False), "auto"), (Renews(), "never"), (TScore(1), "auto")):
        learner = Notes()
        result = prequential((X, y), selector, learner, batch_size=100, replay=replay)
        assert len(learner.taught) == 5
        assert result.settings["replays"] == 0


def test_a_number_of_rows_holds_for_every_selector():
    X, y = rows()
    learner = Notes()
    result = prequential((X, y), Renews(says_so=False), learner, batch_size=100, replay=40, masking="zeros")
    np.testing.assert_array_equal(learner.taught[0], (X * (np.arange(3) == 1))[260:300])
    assert result.settings["replays"] == 2  # the first selection, and the other


def test_from_no_rows_the_first_class_is_said_until_there_are_some():
    X, y = rows()
    learner = Notes()
    prequential((X, y), Renews(), learner, batch_size=100, replay=0, masking="zeros")
    np.testing.assert_array_equal(np.vstack(learner.taught), (X * (np.arange(3) == 1))[300:])


def test_in_the_order_of_the_paper_the_batch_is_learned_once():
    X, y = rows()
    learner = Notes()
    prequential((X, y), Renews(), learner, batch_size=100, protocol="paper", replay="always")
    taught = np.vstack(learner.taught)
    np.testing.assert_array_equal(taught[:, 1], X[50:, 1])  # 150 rows before the batch that began at 200


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_keeps_the_last_rows_and_few_more(size):
    X, y = rows()
    replay = Replay(None, 130)
    for at in range(0, 500, size):
        replay.add(X[at : at + size], y[at : at + size])
        kept = replay.rows()
        assert kept is not None
        stop = min(at + size, 500)
        np.testing.assert_array_equal(kept[0], X[max(0, stop - 130) : stop])
        np.testing.assert_array_equal(kept[1], y[max(0, stop - 130) : stop])
        assert sum(len(labels) for _, labels in replay.batches) < 130 + size
        again = Replay(None, 130)
        again.restore(list(replay.batches))
        replay = again


def test_the_rows_are_copies():
    X, y = rows()
    replay = Replay(None, 10)
    replay.add(X, y)
    expected = X[-10:].copy()
    X[:] = 0.0
    kept = replay.rows()
    assert kept is not None
    np.testing.assert_array_equal(kept[0], expected)


def test_goes_on_from_a_checkpoint(tmp_path):
    stream = load_stream("SEA", seed=1, n_rows=3000)
    options = {"batch_size": 100, "replay": 250}
    whole = prequential(stream, TScore(2, half_life=300), GaussianNB(), **options)
    file = tmp_path / "run.tamis"

    def stop(step):
        if step.values["n_seen"] == 1500:
            raise KeyboardInterrupt

    prequential(
        stream,
        TScore(2, half_life=300),
        GaussianNB(),
        **options,
        on_step=stop,
        on_interrupt="return",
        checkpoint=file,
        checkpoint_every=1,
    )
    again = prequential(stream, TScore(2, half_life=300), GaussianNB(), **options, checkpoint=file)
    assert again.settings["replays"] == whole.settings["replays"] > 1
    np.testing.assert_array_equal(again.frames["steps"]["accuracy"], whole.frames["steps"]["accuracy"])


def test_the_oracle_begins_anew_at_first_and_once_for_each_drift():
    stream = load_stream("SEA", seed=0, n_rows=4000)
    result = prequential(stream, Oracle(stream), GaussianNB(), batch_size=50, replay="always")
    plain = prequential(stream, None, GaussianNB(), batch_size=50)
    assert result.settings["replays"] == 1 + len(stream.drifts) > 1
    assert result.summary()["accuracy"] > plain.summary()["accuracy"] + 0.02


@pytest.mark.parametrize("wrong", ["sometimes", -1, 2.5, None])
def test_refuses_what_it_does_not_know(wrong):
    with pytest.raises(ValueError, match="replay"):
        prequential(rows(), None, GaussianNB(), replay=wrong)


@pytest.mark.parametrize("size", [50, 130])
def test_the_oracle_says_how_many_rows_came_since_the_drift(size):
    stream = load_stream("SEA", seed=0, n_rows=1000, n_drifts=1)
    oracle, told = Oracle(stream), []
    for X, y in stream.batches(size):
        oracle.partial_fit(X, y)
        told.append(oracle.n_replay if oracle.drift_detected_ else None)
    at = (stream.drifts[0] - 1) // size  # the batch after which the features of the next row are others
    since = (at + 1) * size - stream.drifts[0]
    assert told == [size, *[None] * (at - 1), since, *[None] * (len(told) - at - 1)]


def test_after_the_last_row_the_oracle_keeps_what_was():
    class Ends:
        n_rows = 200

        def relevant_at(self, t):
            return np.array([[1], [3]][t // 100])  # of no row after the last

    oracle = Oracle(Ends()).partial_fit(np.zeros((150, 4)), np.zeros(150))
    np.testing.assert_array_equal(oracle.get_support(), [False, False, False, True])
    np.testing.assert_array_equal(
        oracle.partial_fit(np.zeros((50, 4)), np.zeros(50)).get_support(), [False, False, False, True]
    )
