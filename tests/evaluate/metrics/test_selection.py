"""Selection accuracy, detection rate, delays and recovery against sets and cases by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.evaluate import detection_rate, detections, recovery, selection_accuracy
from tests.twins.measures import selection_accuracy as by_sets

some = st.sets(st.integers(0, 6))


@given(selected=some, truths=st.lists(some, min_size=1, max_size=5), gamma=st.floats(0, 1))
@settings(max_examples=100)
def test_selection_accuracy_equals_the_sets(selected, truths, gamma):
    expected = np.array([by_sets(selected, truth, 7, gamma) for truth in truths])
    found = selection_accuracy(selected, truths[0], 7, gamma=gamma)
    np.testing.assert_allclose(found, expected[0], atol=1e-12)
    mask, table = np.zeros(7, dtype=bool), np.zeros((len(truths), 7), dtype=bool)
    mask[list(selected)] = True
    for row, truth in zip(table, truths, strict=True):
        row[list(truth)] = True
    np.testing.assert_allclose(
        selection_accuracy(mask, table, 7, gamma=gamma), expected.mean(axis=0), atol=1e-12
    )
    alone = selection_accuracy(mask, table, 7, gamma=gamma, copy_of=np.arange(7))
    np.testing.assert_allclose(alone, expected.mean(axis=0), atol=1e-12)


def test_the_ends_of_the_range():
    assert selection_accuracy([], [0, 1], 10).accuracy == pytest.approx(0.3)
    assert selection_accuracy(range(10), [0, 1], 10).accuracy == pytest.approx(0.7)
    assert selection_accuracy([0, 1], [0, 1], 10) == (1, 1, 1, 1)
    assert selection_accuracy(range(2, 10), [0, 1], 10).accuracy == 0
    assert selection_accuracy([], [], 10).accuracy == 1
    assert selection_accuracy([3], range(10), 10).accuracy == pytest.approx(0.7 / 10 + 0.3)


def test_a_copy_counts_for_its_original_once():
    copies = [0, 1, 2, 1, 1, 2]  # 3 and 4 are copies of 1, 5 of the irrelevant 2
    both = {"relevant": [0, 1], "n_features": 6, "copy_of": copies}
    assert selection_accuracy([0, 3], **both) == (1, 1, 1, 1)
    assert selection_accuracy([0, 1, 3, 4], **both).cucp == pytest.approx(1 - 2 / 4)
    assert selection_accuracy([0, 5], **both)[1:] == (0.5, 0.75, 0.5)
    assert selection_accuracy([0, 3], [0, 1], 6)[1:] == (0.5, 0.75, 0.5)


def test_detection_rate_by_hand():
    scores = [0.1, 0.9, 0.5, 0.5, 0.2]
    assert detection_rate(scores, [1, 3]) == 0.5  # of the two equal ones the earlier
    assert detection_rate(scores, [1, 3], k=3) == 1.0
    assert detection_rate(scores, np.array([True, False, False, False, True]), k=4) == 0.5
    assert detection_rate(scores, []) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: selection_accuracy([7], [0], 7), r"selected must contain indices from 0 to 6"),
        (lambda: selection_accuracy([0], [-1], 7), r"relevant must contain indices"),
        (lambda: selection_accuracy([0.5], [1], 7), r"selected must contain indices"),
        (lambda: selection_accuracy([0], np.ones((2, 6), bool), 7), r"relevant must have 7 columns"),
        (lambda: selection_accuracy([0], [0], 7, gamma=1.1), r"gamma must be"),
        (lambda: selection_accuracy([0], [0], 2, copy_of=[1, 0]), r"copy_of must name originals"),
        (
            lambda: selection_accuracy([0], [0], 2, copy_of=[0]),
            r"copy_of must contain a column index for each of 2",
        ),
        (lambda: detection_rate([0.1, np.nan], [0]), r"scores must be a column of numbers"),
        (lambda: detection_rate([0.1, 0.2], [0], k=3), r"k must be an integer"),
        (lambda: detections([5, 5], []), r"drifts must begin in ascending order"),
        (lambda: recovery([1, 2], [1], [1]), r"at and values must have the same length"),
        (lambda: recovery([1], [1], [1], tolerance=-1), r"tolerance must be"),
        (lambda: recovery([1], [1], [1], widths=[-2]), r"widths must be at least 0"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_alarms_are_given_to_the_drift_in_whose_turn_they_are():
    found = detections([1000, 2000, 3000], [50, 999, 1000, 1500, 2960, 3100], widths=[0, 0, 100])
    # the third drift begins at 2950; the second was missed
    np.testing.assert_array_equal(found.delays, [0, np.nan, 10])
    assert (found.n_missed, found.n_false_alarms, found.mean_delay) == (1, 4, 5)
    strict = detections([1000, 2000], [1300, 2400], max_delay=350)
    np.testing.assert_array_equal(strict.delays, [300, np.nan])
    assert strict.n_false_alarms == 1
    assert detections([], [3]).n_false_alarms == 1


def test_recovery_by_hand():
    at = np.arange(100, 2001, 100)
    values = np.full(20, 0.9)
    values[6:9] = [0.85, 0.5, 0.7]  # rows 700, 800, 900: below from 800 on, back at 1000
    values[16:] = 0.6  # never back after 1600
    back = recovery(at, values, [600, 1200, 1600])
    np.testing.assert_array_equal(back.rows, [400, 0, np.nan])
    np.testing.assert_allclose(back.drops, [0.4, 0, 0.3], atol=1e-12)
    assert (back.n_lost, back.mean_rows) == (1, 200)
    # with another width the drift begins 100 rows earlier
    assert recovery(at, values, [600], widths=200).rows[0] == 500
    # nothing before the drift, nothing after it
    assert recovery(at, values, [50, 2000]).n_lost == 2
    values[7] = np.nan
    assert recovery(at, values, [600]).rows[0] == 400
