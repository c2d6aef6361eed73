"""Running measures and stability against scikit-learn and the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, cohen_kappa_score

from tamis.evaluate import RunningMetrics, SlidingStability, nogueira, nogueira_variance
from tests.twins.prequential import stability, stability_variance


@pytest.mark.slow
@given(
    labels=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=80),
    window=st.integers(1, 30),
    size=st.integers(1, 20),
)
@settings(max_examples=100, deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_measures_equal_scikit_learn(labels, window, size):
    actual, predicted = (np.array(side) for side in zip(*labels, strict=True))
    metrics = RunningMetrics(window)
    for start in range(0, len(actual), size):
        metrics.update(actual[start : start + size], predicted[start : start + size])
    for found, part in ((metrics.cumulative, slice(None)), (metrics.windowed, slice(-window, None))):
        a, b = actual[part], predicted[part]
        assert found["accuracy"] == pytest.approx(accuracy_score(a, b))
        assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(a, b))
        assert found["kappa"] == pytest.approx(
            cohen_kappa_score(a, b, labels=range(5)), nan_ok=True, abs=1e-12
        )


@given(sets=st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=25), window=st.integers(2, 9))
@settings(max_examples=150, deadline=None)
def test_sliding_stability_equals_the_definition(sets, window):
    sliding = SlidingStability(8, window)
    for t, chosen in enumerate(sets):
        sliding.add(np.array(sorted(chosen), dtype=int))
        recent = sets[max(0, t + 1 - window) : t + 1]
        expected = stability(recent, 8)
        assert sliding.value == pytest.approx(expected, abs=1e-12, nan_ok=True)
        assert sliding.variance == pytest.approx(stability_variance(recent, 8), abs=1e-12, nan_ok=True)


def test_stability_by_hand():
    assert nogueira([[1, 1, 0, 0], [1, 1, 0, 0]]) == 1.0
    assert nogueira([[1, 1, 0, 0], [0, 0, 1, 1]]) == pytest.approx(-1.0)
    # p = (1, .5, .5, 0): mean of 2 p (1 - p) is 0.25, size 2 of 4: 1 - 0.25 / 0.25
    assert nogueira([[1, 1, 0, 0], [1, 0, 1, 0]]) == pytest.approx(0.0)


def test_the_variance_is_that_of_independent_sets():
    rng = np.random.default_rng(0)
    weight, values, variances = np.linspace(-2, 2, 60), [], []
    for _ in range(300):
        Z = np.zeros((25, 60))
        for row in Z:
            row[np.argsort(-(weight + rng.normal(size=60)))[:12]] = 1
        values.append(nogueira(Z))
        variances.append(nogueira_variance(Z))
    assert np.sqrt(np.mean(variances)) == pytest.approx(np.std(values), rel=0.15)


def test_the_variance_by_hand():
    Z = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 1]]
    sliding = SlidingStability(4, 3)
    for row in Z:
        sliding.add(np.flatnonzero(row))
    # p = (1, 2/3, 0, 1/3): Phi = 1 - (3/2)(4/9)/4 / (1/4) = 1/3; phi = (1, 1, 2/3)
    assert sliding.value == pytest.approx(1 / 3)
    assert sliding.variance == pytest.approx(8 / 243)  # 4/9 times the squares (1/9)^2 + (1/9)^2 + (2/9)^2


@pytest.mark.parametrize("wrong", [[0, 0], [-1], [8], [0.5], "ab"])
def test_sets_that_are_none_change_nothing(wrong):
    sliding = SlidingStability(8, 3)
    sliding.add([1, 2])
    sliding.add([1, 2])
    with pytest.raises(ValueError, match="selected must"):
        sliding.add(wrong)
    sliding.add([1, 2])
    assert sliding.value == 1.0
