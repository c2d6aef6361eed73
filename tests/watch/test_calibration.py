import numpy as np
import pytest
from scipy.special import softmax

from tamis.watch.calibration import find_exponents, fit_calibration, recalibrate


def test_the_calibration_undoes_a_temperature_and_offsets(rng):
    logits = rng.normal(size=(20_000, 3))
    codes = (rng.random(20_000)[:, None] > softmax(logits, axis=1).cumsum(axis=1)).sum(axis=1)
    p = softmax(1.6 * logits + [0.5, 0.0, -0.5], axis=1)
    calibration = fit_calibration(p, codes)
    assert calibration[0] == pytest.approx(1 / 1.6, abs=0.03)
    np.testing.assert_allclose(recalibrate(p, calibration), softmax(logits, axis=1), atol=0.02)


def test_a_class_that_the_model_does_not_know_does_not_count(rng):
    p = rng.dirichlet([1.0, 1.0], size=500)
    codes = rng.integers(0, 2, size=500)
    with_unknown = np.append(codes, np.full(50, 2))
    np.testing.assert_array_equal(
        fit_calibration(np.concatenate([p, p[:50]]), with_unknown), fit_calibration(p, codes)
    )


def test_the_exponent_is_the_largest_whose_mean_is_at_most_1(rng):
    ratios = rng.normal(-0.4, 0.8, size=(2000, 1))
    [theta] = find_exponents(ratios)
    for factor, within in ((1.0, True), (1.2, False)):
        powers = np.exp(factor * theta * ratios)
        assert (powers.mean() + powers.std() / np.sqrt(2000) <= 1.0) is np.bool_(within)


def test_the_exponent_has_a_lower_limit(rng):
    assert find_exponents(rng.normal(0.4, 0.8, size=(2000, 1)))[0] <= 0.05
