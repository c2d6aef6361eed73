"""Errors of predicted numbers against scikit-learn's, cut into batches at any place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, r2_score

import tamis
from tamis.evaluate import RunningErrors


def by_definition(y, predicted, window, delay, learned):
    """Return the measures of all rows and of the last ones; the baselines have learned `learned` rows before."""
    mean, last = [], []
    for i in range(learned, len(y)):
        revealed = y[: max(i - delay, 0)]
        mean.append(np.mean(revealed) if len(revealed) else 0.0)
        last.append(revealed[-1] if len(revealed) else 0.0)
    found = []
    for rows in (slice(None), slice(-window, None)):
        actual = y[learned:][rows]
        found += [
            mean_absolute_error(actual, predicted[rows]),
            r2_score(actual, predicted[rows]) if len(set(actual.tolist())) > 1 else np.nan,
            mean_absolute_error(actual, mean[rows]),
            mean_absolute_error(actual, last[rows]),
        ]
    return found


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6), n=st.integers(2, 60), window=st.integers(2, 70), delay=st.integers(0, 12),
    learned=st.integers(0, 10), scale=st.sampled_from([1e-6, 1.0, 1e6]), far=st.sampled_from([0.0, 1e3]),
)  # fmt: skip
def test_equals_scikit_learn_for_any_batches(seed, n, window, delay, learned, scale, far):
    rng = np.random.default_rng(seed)
    y = scale * (rng.normal(size=n + learned) + far)
    predicted = y[learned:] + scale * rng.normal(size=n)
    whole, cut = RunningErrors(window), RunningErrors(window)

    def late(rows):  # of the targets, those that come with these rows
        upto = np.maximum(rows + 1 - delay, 0)
        before = max(rows[0] - delay, 0) if len(rows) else 0
        return y[before : upto[-1]] if len(rows) else y[:0], upto - before

    rows = np.arange(learned, n + learned)
    whole.learn(late(np.arange(learned))[0])
    whole.update(y[learned:], predicted, *late(rows))
    cuts = np.unique(rng.integers(0, n, size=4))
    for part in np.array_split(np.arange(learned), 2):
        cut.learn(late(part)[0])
    for part in (part for part in np.split(np.arange(n), cuts) if len(part)):
        cut.update(y[learned:][part], predicted[part], *late(part + learned))
    np.testing.assert_array_equal(whole.values[1:], cut.values[1:])
    expected = by_definition(y / scale, predicted / scale, window, delay, learned)
    unit = np.array([scale, 1.0, scale, scale] * 2)
    np.testing.assert_allclose(whole.values[1:] / unit, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(whole.values[0], mean_absolute_error(y[learned:], predicted), rtol=1e-9)


def test_an_outlier_leaves_the_window_without_a_trace():
    errors = RunningErrors(window=10)
    errors.update([1e12], [0.0])
    y = np.arange(20.0)
    errors.update(y, y + 0.5)
    assert errors.windowed["mae"] == 0.5
    assert errors.windowed["r2"] == pytest.approx(r2_score(y[-10:], y[-10:] + 0.5), abs=1e-15)


def test_equal_targets_have_no_r2_and_nothing_has_no_error():
    errors = RunningErrors()
    assert np.isnan(list(errors.cumulative.values())).all()
    errors.update([3.0, 3.0], [3.0, 4.0])
    assert errors.cumulative["mae"] == 0.5
    assert np.isnan(errors.cumulative["r2"])


@pytest.mark.parametrize(
    ("actual", "predicted", "message"),
    [
        ([1.0], [1.0, 2.0], "one number for each row"),
        ([], [], "one number for each row"),
        ([np.nan], [1.0], "actual must not contain NaN"),
        ([1.0], [np.nan], "predicted must not contain NaN"),
        (["a"], [1.0], "actual contains .a., which is text"),
    ],
)
def test_what_are_no_numbers(actual, predicted, message):
    errors = RunningErrors()
    before = errors.values
    with pytest.raises(ValueError, match=message):
        errors.update(actual, predicted)
    np.testing.assert_array_equal(errors.values, before)


@pytest.mark.parametrize(
    ("revealed", "upto"), [([1.0], [2]), ([1.0], [1, 1]), ([1.0, 2.0], [-1]), ([1.0], None)]
)
def test_what_cannot_have_come(revealed, upto):
    with pytest.raises((ValueError, TypeError), match=r"upto must contain|NoneType"):
        RunningErrors().update([1.0], [2.0], revealed, upto)


def test_saved_in_the_middle():
    errors, y = RunningErrors(20), np.random.default_rng(0).normal(size=100)
    errors.update(y[:50], y[50:])
    other = tamis.loads(tamis.dumps(errors))
    for one in (errors, other):
        one.update(y[50:], y[:50])
    np.testing.assert_array_equal(errors.values, other.values)
