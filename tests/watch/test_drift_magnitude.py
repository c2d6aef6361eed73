import numpy as np
import pytest

import tamis
from tamis.errors import DataError
from tamis.watch import DriftMagnitude, drift_over_time
from tests.twins import drift_magnitude as twin

DISTANCES = ("hellinger", "total-variation")


def make_rows(rng, n=400):
    X = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 7, n), rng.choice([1.0, np.nan], n)])
    y = np.where(np.arange(n) < n // 2, X[:, 0] > 0, X[:, 1] > 3).astype(int) + (rng.random(n) < 0.1)
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("distance", DISTANCES)
def test_equals_its_twin(rng, distance, corrected):
    X, y = make_rows(rng)
    drift = DriftMagnitude(150, distance=distance, categorical=[0, 1, 2], corrected=corrected).update(X, y)
    values = np.where(np.isnan(X), -1.0, X)[-300:]
    for j in range(3):
        pairs = list(zip(values[:, j].tolist(), y[-300:].tolist(), strict=True))
        expected = twin.magnitudes(pairs[:150], pairs[150:], distance.split("-")[0], corrected)
        for name, magnitudes in drift.measures().items():
            assert magnitudes[j] == pytest.approx(expected[name], abs=1e-9), (name, j)


def test_numbers_have_common_bins_in_both_windows(rng):
    """Two normal distributions, 1 apart: the total variation distance is 2 Phi(1/2) - 1 = 0.383, within bins less."""
    X = np.concatenate([rng.normal(size=(5000, 1)), rng.normal(1.0, size=(5000, 1))])
    drift = DriftMagnitude(5000, 20, "total-variation").update(X, np.arange(10_000) % 2)
    assert drift.measures()["covariate"][0] == pytest.approx(0.383, abs=0.02)
    assert drift.measures()["posterior"][0] < 0.03


@pytest.mark.parametrize("distance", DISTANCES)
def test_no_drift_has_a_mean_near_zero_after_correction(rng, distance):
    X, y = rng.normal(size=(2000, 200)), rng.integers(0, 2, 2000)
    plain, corrected = (
        DriftMagnitude(1000, distance=distance, corrected=c).update(X, y).measures() for c in (False, True)
    )
    for name in plain:
        assert corrected[name].mean() < 0.35 * plain[name].mean(), name
        assert plain[name].mean() > 0.03


def test_a_batch_equals_its_rows(rng):
    X, y = make_rows(rng)
    whole, parts = DriftMagnitude(100), DriftMagnitude(100)
    whole.update(X, y)
    for i in range(0, 400, 7):
        parts.update(X[i : i + 7], y[i : i + 7])
    for name, magnitudes in whole.measures().items():
        np.testing.assert_array_equal(magnitudes, parts.measures()[name])


def test_nothing_is_read_before_both_windows_are_full(rng):
    drift = DriftMagnitude(50)
    assert drift.measures()["joint"].shape == (0,)
    drift.update(rng.normal(size=(99, 2)), np.arange(99) % 2)
    assert not drift.is_ready
    assert np.isnan(drift.measures()["joint"]).all()
    assert not np.isnan(drift.update(rng.normal(size=(1, 2)), [0]).measures()["joint"]).any()


def test_a_rejected_batch_changes_nothing(rng):
    X, y = make_rows(rng)
    drift = DriftMagnitude(100).update(X, y)
    before = tamis.dumps(drift)
    bad = X[:3].copy()
    bad[1, 0] = np.inf
    for rows, labels in ((bad, ["new", "a", "b"]), (X[:3, :2], ["new", "a", "b"]), (X[:3], ["a", "b"])):
        with pytest.raises(DataError):
            drift.update(rows, labels)
        assert tamis.dumps(drift) == before
    assert drift.classes_.tolist() == ["a", "b", "c"]


def test_a_saved_state_continues(rng):
    X, y = make_rows(rng)
    drift = DriftMagnitude(80).update(X[:100], y[:100])
    other = tamis.loads(tamis.dumps(drift))
    for one in (drift, other):
        one.update(X[100:], y[100:])
    assert tamis.dumps(drift) == tamis.dumps(other)


@pytest.mark.parametrize("name", ["BG1", "SEA"])
def test_the_features_that_drift_are_those_of_the_stream(name):
    """Of 50 features the largest magnitudes are of those that are relevant on one side of the drift only."""
    stream = tamis.load_stream(name, seed=0, n_rows=8000, n_drifts=1, width=0)
    drift = drift_over_time(stream, window=4000)
    changed = set(stream.relevant_at(0)) ^ set(stream.relevant_at(7999))
    sources = {j for j, of in enumerate(stream.copy_of) if j in changed or of in changed}
    assert drift["row"].tolist() == [4000]
    first = np.argsort(-drift["posterior"][0])[: len(changed)].tolist()
    assert set(first) <= sources
    assert drift["features"] == list(stream.feature_names)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"window": 5}, "window"), ({"n_bins": 1}, "n_bins"), ({"distance": "euclid"}, "hellinger")],
)
def test_invalid_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        DriftMagnitude(**parameters)
