"""Drift detectors against their twins, River's decisions, and the rates of false alarms they promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.drift import ADWIN, DDM, DETECTORS, ECDD, HDDMA, HDDMW, DriftDetector, make
from tamis.errors import DataError, UnknownNameError
from tests.twins import drift as twin

ALL = [ADWIN, DDM, ECDD, HDDMA, HDDMW]


def errors(rng, rates=(0.1, 0.45, 0.2, 0.6), n=150):
    return (rng.random(n * len(rates)) < np.repeat(rates, n)).astype(float)


def warnings(detector, values):
    found, warned = [], []
    for i, value in enumerate(values):
        if detector.update(value):
            found.append(i)
        elif detector.in_warning:
            warned.append(i)
    return found, warned


@pytest.mark.parametrize("seed", range(3))
def test_detections_are_the_twins(seed):
    x = errors(np.random.default_rng(seed))
    plain = x.tolist()
    detector = ECDD(arl0=100)
    assert detector.drifts(x) == twin.ecdd(
        plain, lambda p: np.interp(p, np.linspace(0, 1, 1001), detector._limits[0])
    )
    assert HDDMA().drifts(x) == twin.hddm_a(plain)
    assert warnings(DDM(), plain) == twin.ddm(plain)
    assert HDDMA(two_sided=True).drifts(x) == twin.hddm_a(plain, two_sided=True)
    assert HDDMW().drifts(x) == twin.hddm_w(plain)
    assert ADWIN().drifts(x) == twin.adwin(plain)
    assert ADWIN(two_sided=True, every=8).drifts(x) == twin.adwin(plain, every=8, two_sided=True)


def test_windows_of_real_numbers_are_the_twins(rng):
    x = rng.normal(1e3, 1.0, 800) + np.repeat([0.0, 1.5, -1.0, 0.0], 200)
    assert ADWIN(two_sided=True).drifts(x) == twin.adwin(x.tolist(), two_sided=True)
    adwin = ADWIN()
    adwin.update_many(x[:150])
    assert adwin.width == 150
    assert adwin.mean == pytest.approx(x[:150].mean())
    assert adwin.variance == pytest.approx(x[:150].var())


def test_adwin_keeps_what_values_far_from_zero_differ_by(rng):
    """Sums of the values themselves lose it: a constant 1e9 + 0.1 drifted every 25,000 values."""
    assert ADWIN(two_sided=True).drifts(np.full(100_000, 1e9 + 0.1)) == []
    x = np.round(rng.normal(size=600) + np.repeat([0.0, 1.5], 300), 3)
    near, far = ADWIN(two_sided=True), ADWIN(two_sided=True)
    assert near.drifts(x) == far.drifts(x + 1e9) != []
    assert far.mean - 1e9 == pytest.approx(near.mean, abs=1e-6)
    assert far.variance == pytest.approx(near.variance, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_decides_as_river(seed):
    river = pytest.importorskip("river.drift", reason="river is not installed")
    x = errors(np.random.default_rng(seed), np.random.default_rng(seed).uniform(0.05, 0.5, 10), 1000)

    def detections(detector):
        found = []
        for i, value in enumerate(x.tolist()):
            detector.update(value)
            if detector.drift_detected:
                found.append(i)
        return found

    assert ADWIN(two_sided=True).drifts(x) == detections(river.ADWIN())
    assert DDM().drifts(x) == detections(river.binary.DDM())
    assert HDDMA().drifts(x) == detections(river.binary.HDDMA())
    assert HDDMA(two_sided=True).drifts(x) == detections(river.binary.HDDMA(two_sided_test=True))
    ours, theirs = HDDMW().drifts(x), detections(river.binary.HDDMW())
    assert len(set(ours) & set(theirs)) >= 0.8 * len(theirs)  # River's first squared weight is not 1


@given(st.lists(st.sampled_from([0.0, 0.25, 1.0]), max_size=300), st.data())
@settings(max_examples=25)
def test_one_by_one_is_all_at_once(values, data):
    name = data.draw(st.sampled_from(sorted(DETECTORS)))
    whole, single, parts = make(name), make(name), make(name)
    want = whole.drifts(values)
    assert [i for i, value in enumerate(values) if single.update(value)] == want
    at, found = 0, []
    while at < len(values):
        stop = data.draw(st.integers(at + 1, len(values)))
        found.extend(at + i for i in parts.drifts(values[at:stop]))
        at = stop
    assert found == want
    np.testing.assert_array_equal(single.state, whole.state)
    np.testing.assert_array_equal(parts.state, whole.state)


@pytest.mark.parametrize(("arl0", "low", "high"), [(100, 120, 210), (400, 420, 650), (1000, 950, 1400)])
def test_false_alarms_come_as_rarely_as_promised(arl0, low, high):
    """The rate is that of the chart with a known error rate; estimating it and 30 silent values add a little."""
    for rate in (0.01, 0.1, 0.3, 0.6):
        x = (np.random.default_rng(1).random(400_000) < rate).astype(float)
        assert low < len(x) / len(ECDD(arl0=arl0).drifts(x)) < high


def test_published_limits_miss_their_rate():
    x = (np.random.default_rng(1).random(200_000) < 0.4).astype(float)
    assert len(x) / len(ECDD(arl0=1000, limit="published").drifts(x)) < 400
    assert len(x) / len(ECDD(arl0=100, limit="published").drifts(x)) < 100


@pytest.mark.parametrize("kind", ALL)
def test_a_rise_is_found_and_a_fall_is_not(kind, rng):
    x = (rng.random(3000) < np.repeat([0.1, 0.6], 1500)).astype(float)
    rise = [at for at in kind().drifts(x) if at >= 1500]
    assert rise[0] < 1600
    fall = (rng.random(3000) < np.repeat([0.6, 0.1], 1500)).astype(float)
    assert not [at for at in kind().drifts(fall) if 1500 <= at < 1600]


@pytest.mark.parametrize("kind", [DDM, ECDD, HDDMA, HDDMW])
def test_a_warning_comes_before_the_drift(kind, rng):
    detector, warned = kind(), False
    for value in (rng.random(3000) < np.repeat([0.1, 0.3], 1500)).astype(float):
        warned |= detector.in_warning
        if detector.update(value) and detector.n_seen == 0:
            break
    assert warned


@pytest.mark.parametrize("kind", ALL)
def test_protocol(kind):
    detector = kind()
    assert isinstance(detector, DriftDetector)
    detector.update_many([0.0, 1.0, 0.0])
    assert detector.n_seen == 3
    assert not detector.in_warning
    detector.reset()
    assert detector.n_seen == 0


def autocorrelated(rng, n, rate, phi):
    """Errors that are a Markov chain of autocorrelation phi."""
    u, x, last = rng.random(n).tolist(), np.empty(n), 0
    for i in range(n):
        last = u[i] < rate * (1 - phi) + phi * last
        x[i] = last
    return x


@pytest.mark.parametrize("kind", ALL)
def test_auto_is_independent_on_independent_values(kind, rng):
    x = errors(rng, (0.1, 0.3, 0.1), 500)
    auto = kind(dependence="auto")
    assert auto.drifts(x) == kind().drifts(x) != []
    assert auto.variance_inflation == 1.0


@pytest.mark.parametrize("kind", [ADWIN, DDM, HDDMA, HDDMW])
def test_autocorrelated_values_raise_few_false_alarms(kind, rng):
    x = autocorrelated(rng, 20_000, 0.2, 0.9)
    auto = kind(dependence="auto")
    assert len(kind().drifts(x)) > 10 > 2 + len(auto.drifts(x))
    assert 8 < auto.variance_inflation < 25  # 19, (1 + .9) / (1 - .9)


@pytest.mark.parametrize("kind", ALL)
def test_a_rise_of_autocorrelated_values_is_found(kind, rng):
    x = np.r_[autocorrelated(rng, 5000, 0.1, 0.5), autocorrelated(rng, 5000, 0.6, 0.5)]
    found = kind(dependence="auto").drifts(x)
    assert any(5000 <= at < 5500 for at in found)


@pytest.mark.parametrize("phi", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2, 0.3])
def test_ecdd_keeps_its_rate_on_markov_errors(rate, phi):
    x = autocorrelated(np.random.default_rng(2), 100_000, rate, phi)
    nominal = len(x) / 400
    assert 0.5 * nominal < len(ECDD(dependence="auto").drifts(x)) < 1.5 * nominal
    assert len(ECDD().drifts(x)) > 1.4 * nominal


def test_ecdd_by_the_last_value_is_its_twin(rng):
    x = np.r_[autocorrelated(rng, 300, 0.1, 0.3), autocorrelated(rng, 200, 0.45, 0.3)]
    detector = ECDD(arl0=100, dependence="auto")
    detector._series[2] = 3.0
    found = []
    for i, value in enumerate(x):
        if detector.update(value):
            found.append(i)
        detector._series[2] = 3.0
    limits = np.linspace(0, 1, 1001)
    assert (
        found == twin.ecdd_given_last(x.tolist(), lambda p: np.interp(p, limits, detector._limits[0])) != []
    )


@pytest.mark.parametrize("kind", ALL)
def test_auto_is_the_same_in_any_parts(kind, rng):
    x = np.r_[autocorrelated(rng, 1500, 0.1, 0.5), autocorrelated(rng, 800, 0.95, 0.5)]
    whole, single, parts = (kind(dependence="auto") for _ in range(3))
    want = whole.drifts(x)
    assert [i for i, value in enumerate(x) if single.update(value)] == want != []
    found, at = [], 0
    for part in np.split(x, [1, 31, 33, 1000, 1777]):
        found += [at + i for i in parts.drifts(part)]
        at += len(part)
    assert found == want
    for other in (single, parts):
        np.testing.assert_array_equal(other._series, whole._series)
        np.testing.assert_array_equal(other.state, whole.state)
    assert whole.variance_inflation > 1
    whole.reset()
    assert whole.variance_inflation == 1


@pytest.mark.parametrize("kind", ALL)
def test_bad_values_change_nothing(kind):
    detector = kind()
    detector.update_many([0.0, 1.0, 1.0, 0.0])
    before = detector.state.copy()
    for bad in (np.nan, np.inf):
        with pytest.raises(DataError, match=f"{kind.__name__} was given"):
            detector.update(bad)
        with pytest.raises(DataError, match=f"{kind.__name__} was given"):
            detector.update_many([0.0, bad])
    np.testing.assert_array_equal(detector.state, before)
    if kind is not ADWIN:
        with pytest.raises(
            DataError, match=r"was given 1\.5: values must be between 0 \(right\) and 1 \(wrong\)"
        ):
            detector.drifts([0.0, 1.5])


def test_parameters_out_of_range():
    for kind, settings_, message in (
        (ECDD, {"arl0": 200}, "arl0 must be 100, 400 or 1000, got 200"), (ECDD, {"limit": "ross"}, "limit"),
        (HDDMA, {"alpha": 0.0}, "alpha must"), (HDDMW, {"alpha": 0.1}, "choose alpha_warning >= alpha"),
        (DDM, {"drift": 1.0}, "choose warning <= drift"), (DDM, {"warning": 0}, "warning must"),
        (HDDMW, {"rate": 2}, "rate must"), (ADWIN, {"delta": 1.0}, "delta must"), (ADWIN, {"every": 0}, "every must"),
        (ECDD, {"dependence": "series"}, "dependence"), (HDDMA, {"dependence": None}, "dependence"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            kind(**settings_)
    with pytest.raises(UnknownNameError, match="No drift detector is named 'adwn'; did you mean 'adwin'"):
        make("adwn")


def test_ecdd_speaks_from_its_30th_value():
    values = [0.0] * 24 + [1.0] * 5
    assert [ECDD().drifts([*values, 1.0]), ECDD().drifts(values)] == [[29], []]


def test_ddm_needs_more_than_its_limit():
    """Errors all 1: p + s is 1, and so is the limit. That is no drift."""
    assert DDM().drifts([1.0] * 200) == []
