"""The same rows and the same seed have the same bits, wherever the rows lie in memory and whichever process learns."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tamis import ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset
from tamis.cells.discriminant import Discriminant

METHODS = [IFC2F, ETANA, FETANA, AdaptiveIFC2F, FixedSubset]


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 8)).astype(np.float32).astype(np.float64)
    X[:, :3] += np.round(y[:, None] * [1.0, 0.7, 0.4], 1)
    X = X.astype(np.float32).astype(np.float64)  # so that float32 has the same numbers
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


def believed(method, X, y):
    model = method(cost=0.01, random_state=0).fit(X, y)
    return model.predict_proba(X), model.cost_


def shifted(X):
    """The same numbers, eight bytes after an address that vectors of any width divide."""
    memory = np.empty(X.nbytes + 128, dtype=np.uint8)
    start = -memory.ctypes.data % 64 + 8
    found = memory[start : start + X.nbytes].view(np.float64).reshape(X.shape)
    found[:] = X
    return found


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_where_the_rows_lie_changes_no_bit(method):
    X, y = rows()
    want = believed(method, X, y)
    for other in (shifted(X), np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.astype(np.float32)):
        for found, of_plain in zip(believed(method, other, y), want, strict=True):
            np.testing.assert_array_equal(found, of_plain)


@pytest.mark.parametrize("method", METHODS)
def test_memory_that_was_not_written_is_not_read(method, monkeypatch):
    """Without the JIT this holds for what the kernels allocate, too."""
    X, y = rows(60)
    want = believed(method, X, y)  # kernels are compiled before np.empty is another one
    empty = np.empty

    def dirty(*args, **kwargs):
        found = empty(*args, **kwargs)
        found.view(np.uint8).fill(0xA5) if found.flags.c_contiguous and found.ndim else None
        return found

    monkeypatch.setattr(np, "empty", dirty)
    for found, clean in zip(believed(method, X, y), want, strict=True):
        np.testing.assert_array_equal(found, clean)


@pytest.mark.parametrize(("n", "K"), [(640, 20), (700, 64)])
def test_a_discriminant_has_the_same_bits_however_many_threads_there_are(rng, n, K):
    X, y = rng.normal(size=(n, K)), rng.integers(0, 3, n)
    said = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            said.append(Discriminant(4, 3).fit(X, y).evidence(X[:50]))
    np.testing.assert_array_equal(said[1], said[0])
    np.testing.assert_array_equal(said[2], said[0])
