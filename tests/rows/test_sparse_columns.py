"""JointScreening and DISCUSS learn sparse rows as the same dense ones, bit for bit, in a fraction of their memory."""

import numpy as np
import pytest
import scipy.sparse as sp

import tamis
from tamis import DISCUSS, JointScreening


def _stream(seed, n_rows, n_features):
    """Rows that are mostly 0, in columns of any density, and a class whose relation to them changes halfway."""
    rng = np.random.default_rng(seed)
    dense = rng.random((n_rows, n_features)) < rng.uniform(0.01, 0.7, n_features)
    X = rng.normal(size=(n_rows, n_features)) * dense
    y = ((X[:, 2] != 0) ^ (X[:, 5] > 0.1) ^ (rng.random(n_rows) < 0.1)).astype(int)
    half = n_rows // 2
    y[half:] = (X[half:, 1] > 0) | (X[half:, 4] != 0)
    return X, y, rng


def _assert_same(dense, sparse):
    np.testing.assert_array_equal(sparse.scores_, dense.scores_)
    np.testing.assert_array_equal(sparse.get_support(), dense.get_support())
    assert list(sparse.selected_) == list(dense.selected_)
    assert sparse.drift_detected_ == dense.drift_detected_
    assert sparse.n_replay == dense.n_replay
    assert getattr(sparse, "why_fewer_", "") == getattr(dense, "why_fewer_", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_features", "parameters"),
    [(8, {}), (30, {"n_bins": 3}), (40, {"max_paired": 12, "memory": 300}), (12, {"level": 0.05})],
)
def test_joint_screening_is_that_of_dense_rows(n_features, parameters):
    X, y, rng = _stream(n_features, 3000, n_features)
    y[1900:] += rng.random(1100) < 0.2  # a new class
    dense, sparse, start = JointScreening(**parameters), JointScreening(**parameters), 0
    while start < len(X):
        part = slice(start, start := start + int(rng.integers(1, 150)))
        dense.partial_fit(X[part], y[part])
        # dense rows are learned as sparse ones once the first were sparse
        sparse.partial_fit(X[part] if 900 < start < 1300 else sp.csr_matrix(X[part]), y[part])
        _assert_same(dense, sparse)
        np.testing.assert_array_equal(sparse.partners_, dense.partners_)
    assert sparse.drifts_ == dense.drifts_
    if "level" not in parameters:
        assert dense.selected_
    assert sparse._recent.size == 0


@pytest.mark.parametrize("n_first", [40, 700])
def test_joint_screening_widens_and_forgets_sparse_columns(n_first, tmp_path):
    X, y, _ = _stream(3, 1500, 12)
    dense = JointScreening().fit(X[:n_first, :9], y[:n_first])
    sparse = JointScreening().fit(sp.csr_matrix(X[:n_first, :9]), y[:n_first])
    for model in (dense, sparse):
        model.widen(12).forget_columns([2, 10])
    tamis.save(sparse, tmp_path / "sparse.tamis")
    sparse = tamis.load(tmp_path / "sparse.tamis")
    for start in range(n_first, 1500, 100):
        part = slice(start, start + 100)
        dense.partial_fit(X[part], y[part])
        sparse.partial_fit(sp.csr_matrix(X[part]), y[part])
        _assert_same(dense, sparse)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"n_features_to_select": 5, "window": 100},
        {"half_life": None, "min_features": 3},
        {"cuts": "range"},
    ],
)
def test_discuss_is_that_of_dense_rows(parameters, tmp_path):
    """Also beside features that never had a value, with missing values, and when columns are added and forgotten."""
    X, y, rng = _stream(7, 2000, 150)
    X[:, 60:140] *= rng.random((2000, 80)) < 0.002
    X[rng.random(X.shape) < 0.0005] = np.nan
    y[900:] += rng.random(1100) < 0.02  # a new class
    dense, sparse, start = DISCUSS(**parameters), DISCUSS(**parameters), 0
    while start < len(X):
        if 700 < start < 900 and dense.n_features_in_ == 147:
            for model in (dense, sparse):
                model.widen(150).forget_columns([1, 75, 149])
            tamis.save(sparse, tmp_path / "sparse.tamis")
            sparse = tamis.load(tmp_path / "sparse.tamis")
        part = slice(start, start := start + int(rng.integers(1, 150)))
        rows = X[part, : 147 if start < 850 and dense.__dict__.get("n_features_in_") != 150 else 150]
        dense.partial_fit(rows, y[part])
        sparse.partial_fit(rows if 1200 < start < 1500 else sp.csr_matrix(rows), y[part])
        _assert_same(dense, sparse)
    assert dense.n_features_in_ == 150
    assert len(sparse._su) < 150


def test_discuss_has_the_same_state_for_one_row_at_a_time():
    X, y, _ = _stream(7, 700, 90)
    rows, whole, single = sp.csr_matrix(X), DISCUSS(window=100), DISCUSS(window=100)
    whole.partial_fit(rows, y)
    for i in range(len(y)):
        single.partial_fit(rows[i], y[i : i + 1], classes=[0, 1])
    np.testing.assert_array_equal(single._known, whole._known)
    np.testing.assert_array_equal(single._mean, whole._mean)
    _assert_same(whole, single)


@pytest.mark.slow
def test_memory_of_sparse_rows_does_not_grow_with_the_stream():
    """Of 20,000 columns: the dense rows of `memory` would be 160 MB."""
    rng = np.random.default_rng(0)
    rows = sp.random(1200, 20_000, 0.001, "csr", random_state=0)
    y = rng.integers(0, 2, 1200)
    model, held = JointScreening(), []
    for _ in range(4):
        for start in range(0, 1200, 100):
            model.partial_fit(rows[start : start + 100], y[start : start + 100])
        held.append(len(tamis.dumps(model)) / 1e6)
    assert max(held) < 40.0  # MB, saved
    assert held[3] < held[0] + 1.0
