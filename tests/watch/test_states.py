"""States of features: patience, the slower patience beside a test, and ages."""

import numpy as np

from tamis.watch.states import FeatureStates

YES, NO = np.array([True]), np.array([False])


def after(states, used, relevant, rows, ages=None):
    """Return the number of rows until the state changes, at most the last of `rows`."""
    before = states.names
    for row in rows:
        states.update(used, relevant, row, ages)
        if states.names != before:
            return row
    return None


def test_a_state_changes_after_patience():
    states = FeatureStates(1, 500)
    assert after(states, YES, YES, range(100, 1000, 100)) == 600
    assert states.names == ["used and relevant"]
    assert after(states, YES, NO, range(1000, 3000, 100)) == 1500
    assert states.names == ["used but no longer relevant"]
    assert states.since == [1000]


def test_lost_relevance_needs_more_patience_where_a_test_runs():
    none = np.zeros(1, dtype=np.int64)
    states = FeatureStates(1, 500)
    assert after(states, YES, YES, range(100, 1000, 100), none) == 600
    assert after(states, YES, NO, range(1000, 5000, 100), none) == 3000
    assert states.names == ["used but no longer relevant"]
    assert after(states, YES, YES, range(5000, 7000, 100), none) == 5500  # other states do not


def test_an_age_changes_the_state_at_once():
    states = FeatureStates(1, 500)
    after(states, YES, YES, range(100, 1000, 100))
    states.update(YES, NO, 1000, np.array([40]))
    assert (states.names, states.since) == (["used but no longer relevant"], [960])


def test_used_and_relevant_are_those_of_the_settled_state():
    states = FeatureStates(4, 0)
    states.update(np.array([False, False, True, True]), np.array([False, True, False, True]), 100)
    assert states.names == ["neither", "relevant but unused", "used but not relevant", "used and relevant"]
    assert states.is_relevant.tolist() == [False, True, False, True]
    assert states.is_used.tolist() == [False, False, True, True]
