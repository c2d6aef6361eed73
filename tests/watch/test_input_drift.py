import copy

import numpy as np
import pytest

import tamis
from tamis.watch import InputDrift
from tamis.watch.long_run import LongRunVariance
from tests.twins import input_drift as twin


def test_equals_its_twin(rng):
    before = rng.normal(size=400)
    after = rng.normal(0.4, 1.5, size=300)
    drift = InputDrift(reference=400, n_bins=5, half_life=100)
    drift.update(np.r_[before, after][:, None])
    edges = np.sort(before)[[79, 159, 239, 319]].tolist()
    weights = 0.5 ** (np.arange(299, -1, -1) / 100)
    counts = [[0.0] * 5, [0.0] * 5]
    for value in before.tolist():
        counts[0][twin.bin_of(value, edges)] += 1
    for value, weight in zip(after.tolist(), weights.tolist(), strict=True):
        counts[1][twin.bin_of(value, edges)] += weight
    found = drift.measures()
    for name in ("psi", "js", "ks"):
        assert found[name][0] == pytest.approx(getattr(twin, name)(*counts), rel=0.02)


def test_a_batch_equals_its_rows(rng):
    X = rng.normal(size=(300, 3))
    X[:, 2] = rng.integers(0, 4, 300)
    X[::5, 1] = np.nan
    whole, rows = (InputDrift(reference=100, half_life=50, categorical=[2]) for _ in range(2))
    whole.update(X)
    for i in range(300):
        rows.update(X[i : i + 1])
    for name, found in whole.measures().items():
        np.testing.assert_allclose(found, rows.measures()[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_categories_and_missing_values(rng):
    before = np.column_stack([rng.choice([1, 2, 7], 1000), rng.normal(size=1000)])
    after = np.column_stack([rng.choice([1, 2, 9], 1000), rng.normal(size=1000)])
    after[:500:2, 1] = after[500::2, 1] = np.nan
    drift = InputDrift(reference=1000, categorical=[0], half_life=1e6)
    drift.update(before)
    assert not drift.is_ready
    assert np.isnan(drift.measures()["psi"]).all()
    drift.update(after)
    found = drift.measures()
    assert found["new"].tolist() == pytest.approx([(after[:, 0] == 9).mean(), 0])
    assert found["gone"].tolist() == [1, 0]
    assert found["missing"].tolist() == pytest.approx([0, 0.5], abs=1e-3)
    assert found["missing_before"].tolist() == [0, 0]
    assert np.isnan(found["ks"][0])
    assert found["ks"][1] < 0.1
    assert (found["psi"] > 0.2).all()


def test_a_stationary_stream_stays_below_the_usual_limit(rng):
    """The expected PSI is about (bins - 1) (1 / reference + 1 / effective rows), 0.011 here."""
    drift, largest = InputDrift(), []
    drift.update(rng.normal(size=(4000, 20)))
    for _ in range(20):
        drift.update(rng.normal(size=(500, 20)))
        largest.append(drift.measures()["psi"].max())
    assert max(largest) < 0.06


def test_a_saved_state_continues(rng):
    X = rng.normal(size=(300, 2))
    for at in (50, 200):
        drift = InputDrift(reference=100)
        drift.update(X[:at])
        other = tamis.loads(tamis.dumps(drift))
        for one in (drift, other):
            one.update(X[at:])
        assert tamis.dumps(drift) == tamis.dumps(other)


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"reference": 5}, "reference"), ({"n_bins": 1}, "n_bins"), ({"half_life": 0}, "half_life")],
)
def test_refuses_what_is_invalid(settings, name):
    with pytest.raises(ValueError, match=name):
        InputDrift(**settings)


@pytest.mark.parametrize("when", ["after", "together"])
def test_parts_that_share_a_reference_merge(rng, when):
    X = np.column_stack([rng.normal(size=900), rng.integers(0, 4, 900)])
    X[::7, 0] = np.nan
    first, whole = (InputDrift(reference=300, categorical=[1], half_life=100) for _ in range(2))
    first.update(X[:300])
    second = copy.deepcopy(first)
    first.update(X[300:600])
    second.update(X[600:])
    whole.update(X if when == "after" else np.concatenate([X[:300], X[300:600]]))
    first.merge(second, when)
    for name in ("psi", "js", "ks", "missing", "missing_before", "new", "gone"):  # of no long-run variance
        found = first.measures()[name]
        if when == "after":
            np.testing.assert_allclose(found, whole.measures()[name], rtol=1e-9, atol=1e-12, err_msg=name)
    assert first._n_seen == 900
    assert first._recent[0].sum() == pytest.approx(
        (1 + (when == "together")) * second._recent[0].sum(), rel=0.2
    )


def test_parts_of_a_reference_merge(rng):
    X = np.column_stack([np.round(rng.normal(size=500), 1), rng.integers(0, 4, 500)])
    parts = [InputDrift(reference=300, categorical=[1]) for _ in range(3)]
    whole = InputDrift(reference=300, categorical=[1])
    for part, rows in zip(parts, (slice(0, 100), slice(100, 300), slice(0, 0)), strict=True):
        part.update(X[rows])
    parts[2].merge(parts[0]).merge(parts[1])
    for one in (parts[2], whole):
        one.update(X[300:] if one is not whole else X)
    for name, found in parts[2].measures().items():
        np.testing.assert_allclose(found, whole.measures()[name], rtol=1e-9, err_msg=name)


def test_parts_of_other_references_do_not_merge(rng):
    one, other = InputDrift(reference=100), InputDrift(reference=100)
    one.update(rng.normal(size=(150, 2)))
    before = tamis.dumps(one)
    other.update(rng.normal(size=(150, 2)))
    with pytest.raises(ValueError, match="other parameters, columns or references"):
        one.merge(other)
    assert tamis.dumps(one) == before
    with pytest.raises(ValueError, match="when"):
        one.merge(other, "before")


def test_ks_of_a_column_whose_recent_values_are_missing_is_undefined(rng):
    X = rng.normal(size=(1000, 2))
    drift = InputDrift(reference=300, half_life=20)
    drift.update(X[:500] + (np.arange(500) >= 300)[:, None])
    assert (drift.measures()["ks"] > 0.2).all()
    X[500:, 0] = np.nan
    drift.update(X[500:])
    ks, missing = drift.measures()["ks"], drift.measures()["missing"]
    assert np.isnan(ks[0])
    assert ks[1] < 0.2
    assert missing[0] == pytest.approx(1.0)


def autoregressive(rng, n, phi, d):
    X = rng.normal(size=(n, d))
    for i in range(1, n):
        X[i] = phi * X[i - 1] + np.sqrt(1 - phi**2) * X[i]
    return X


def largest(X, **settings):
    """Return the largest measures of each feature along rows."""
    drift, most = InputDrift(**settings), {}
    for i in range(0, len(X), 500):
        drift.update(X[i : i + 500])
        for name, values in drift.measures().items():
            most[name] = np.fmax(most.get(name, -np.inf), np.nan_to_num(values))
    return most


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["slow", "lots"])
def test_slow_rows_have_a_large_psi_and_no_drift(rng, kind):
    n = 40_000
    X = (
        autoregressive(rng, n, 0.99, 3)
        if kind == "slow"
        else np.repeat(rng.normal(size=(n // 200, 3)), 200, axis=0)
    )
    found = largest(X)
    assert (found["psi"] > 0.2).all()
    assert (found["drift"] == 0.0).all()


@pytest.mark.slow
def test_a_shift_of_autocorrelated_rows_is_a_drift(rng):
    X = autoregressive(rng, 12_000, 0.9, 3)
    X[8000:, 1] += 1.5
    X[8000::3, 2] = np.nan
    found = largest(X)
    assert (found["drift"] > 0.2).tolist() == [False, True, True]
    assert found["missing_rise"].tolist() == pytest.approx([0.0, 0.0, 0.33], abs=0.05)


@pytest.mark.slow
def test_a_known_season_is_no_drift(rng):
    phase = np.arange(24_000) / 4000
    X = np.sin(2 * np.pi * phase)[:, None] + 0.3 * rng.normal(size=(24_000, 2))
    X[20_000:, 1] += 1.0
    found = largest(X, season=4000)
    assert found["psi"][0] < 0.2
    assert found["drift"][0] == 0.0
    assert found["drift"][1] > 0.2
    with pytest.raises(ValueError, match="season"):
        InputDrift(season=1)


def fractional(rng, n, d):
    """Return ARFIMA(0, .4, 0)."""
    k = np.arange(1, 4000)
    weights = np.append(1.0, np.cumprod((k - 0.6) / k))
    return np.array([np.convolve(rng.normal(size=n + 3999), weights, "valid") for _ in range(d)]).T


def test_the_variance_of_long_memory_grows_with_the_blocks(rng):
    long = fractional(rng, 16_000, 4)
    series = LongRunVariance(8)
    series.update(np.column_stack([long, autoregressive(rng, len(long), 0.9, 4)]))
    series.estimate(at_once=True)
    assert 0.5 < np.median(series.growth[:4]) < 1.1
    assert (np.abs(series.growth[4:]) < 0.5).all()


def test_long_memory_is_no_drift_although_a_score_of_the_feature_hides_it(rng):
    found = largest(fractional(rng, 8000, 40))
    assert np.count_nonzero(found["psi"] > 0.2) > 10
    assert np.count_nonzero(found["drift"] > 0.2) <= 1


def test_the_growth_of_a_variance_limits_some_columns_only(rng):
    drift = InputDrift(reference=1000)
    drift.update(np.repeat(rng.normal(size=2000), 2).reshape(-1, 2))
    drift.update(np.repeat(rng.normal(3.0, size=500), 2).reshape(-1, 2))
    assert (drift.measures()["drift"] > 0.2).all()
    drift.most_growth = np.array([0.5, np.inf])
    drift._long_run.growth[:2] = 0.6
    assert (drift.measures()["drift"] > 0.2).tolist() == [False, True]


def test_windows_of_few_independent_rows_have_no_drift(rng):
    drift = InputDrift(reference=2000, half_life=20)
    X = np.repeat(rng.normal(size=(80, 2)), 50, axis=0)  # windows of at most 460 rows, or nine lots
    drift.update(X)
    drift.update(X + 5.0)
    assert (drift.measures()["psi"] > 1.0).all()
    assert (drift.measures()["drift"] == 0.0).all()
