"""LabelSeries equals its definition, in any batching and after merging."""

import numpy as np
import pytest
from scipy.signal import lfilter

from tamis.summaries.label_series import LAGS, LabelSeries
from tests.twins import dependent_rows as twin


def series(y, n_classes, step=None):
    found = LabelSeries(n_classes)
    for start in range(0, len(y), step or len(y)):
        found.update(y[start : start + (step or len(y))])
    return found


@pytest.mark.parametrize("n_classes", [2, 3])
def test_equals_its_definition(n_classes):
    y = np.repeat(np.random.default_rng(0).integers(0, n_classes, 200), 3)[:557]
    ratio, excess = series(y, n_classes).inflation()
    assert len(ratio) == 5  # levels of at least 8 blocks
    largest = 1.0
    for level, found in enumerate(ratio, start=2):
        expected, of_class = twin.label_inflation(y.tolist(), n_classes, level)
        n_blocks = len(y) >> level
        assert found == pytest.approx(expected)
        assert excess[level - 2] == pytest.approx(
            (expected - 1) * np.sqrt((n_blocks - 1) * (n_classes - 1) / 2)
        )
        largest = max(largest, *of_class)
    assert series(y, n_classes).correlation_length() == pytest.approx(largest)


@pytest.mark.parametrize("step", [1, 7, 64])
def test_any_batching_is_the_same(step):
    y = np.random.default_rng(1).integers(0, 3, 5000)
    one, other = series(y, 3), series(y, 3, step)
    for name, value in vars(one).items():
        np.testing.assert_array_equal(value, getattr(other, name))
    np.testing.assert_array_equal(one.last, y[-max(LAGS) :])


@pytest.mark.slow
def test_a_cycle_of_the_labels_is_found_and_no_other_dependence_is_one():
    rng, t = np.random.default_rng(6), np.arange(9000)

    def cyclic(y):
        return series(y, int(y.max()) + 1).find_period() > 0

    def daily(period, share=0.2):
        chance = 0.5 + share * np.sin(2 * np.pi * (t / period + rng.random()))
        return (rng.random(len(t)) < chance).astype(int)

    assert all(cyclic(daily(period)) for period in (7, 24, 48, 96, 168))
    assert all(cyclic(daily(48, 0.4) + rng.integers(0, 2, len(t))) for _ in range(5))  # three classes
    noise = rng.normal(size=(10_000, 60))
    for phi in (0.5, 0.9, 0.99):
        series_ = lfilter([1], [1, -phi], noise, axis=0)[1000:]
        assert np.mean([cyclic((column > 0).astype(int)) for column in series_.T]) < 0.3
    assert np.mean([cyclic((np.cumsum(rng.normal(size=9000)) > 0).astype(int)) for _ in range(30)]) < 0.45


@pytest.mark.parametrize(
    ("period", "found"), [(24, {24, 48, 72}), (29.53, {59}), (7, {7, 14, 21, 28, 35, 56})]
)
def test_labels_are_paired_with_those_one_period_earlier_in_any_batching(period, found):
    t = np.arange(3000)
    y = (np.random.default_rng(0).random(3000) < 0.5 + 0.3 * np.sin(2 * np.pi * t / period)).astype(int)
    whole, parts = LabelSeries(2, cycles=True), LabelSeries(2, cycles=True)
    before = whole.update(y)
    np.testing.assert_array_equal(
        np.concatenate([parts.update(y[i : i + 37]) for i in range(0, 3000, 37)]), before
    )
    assert whole.period == parts.period
    assert whole.period in found
    known = np.flatnonzero(before >= 0)
    assert len(known) > 2500
    last = known[known >= 2560]  # the period was last looked for there
    np.testing.assert_array_equal(before[last], y[last - whole.period])


@pytest.mark.parametrize("effect", [0.05, 0.1, 0.4])
def test_the_memory_is_that_of_lots_whatever_the_noise(effect):
    lengths = []
    for seed in range(7):
        rng = np.random.default_rng(seed)
        state = np.repeat(rng.choice([-effect, effect], 300), 100)
        labels = series((rng.random(30_000) < 0.5 + state).astype(int), 2)
        lengths.append(labels.memory_length())
        assert labels.dependent
    assert 64.0 <= np.median(lengths) <= 256.0


@pytest.mark.slow
def test_exchangeable_labels_are_rarely_called_dependent_and_runs_always():
    rng = np.random.default_rng(2)
    assert sum(series(rng.integers(0, 2, 3000), 2).dependent for _ in range(200)) <= 6
    runs = [np.repeat(rng.integers(0, 2, 1500), 2) for _ in range(50)]
    assert all(series(y, 2).dependent for y in runs)


def test_parts_add_their_complete_blocks():
    y = np.random.default_rng(3).integers(0, 2, 2048)
    early, late = series(y[:1024], 2), series(y[1024:], 2)
    early.merge(late)
    whole = series(y, 2)
    np.testing.assert_array_equal(early.inflation()[0], whole.inflation()[0])
    np.testing.assert_array_equal(early.last, whole.last)
    second = series(y[1024:], 2)
    second.merge(series(y[:1024], 2), first=True)
    np.testing.assert_array_equal(second.last, whole.last)


def test_classes_may_come_late_and_in_another_order():
    y = np.random.default_rng(4).integers(0, 2, 1000)
    late = series(y, 2)
    late.grow(3)
    late.reorder(np.array([2, 0, 1]))
    assert late.correlation_length() == series(y, 2).correlation_length()
    np.testing.assert_array_equal(late.last, y[-max(LAGS) :] + 1)
