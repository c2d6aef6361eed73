"""Columns that show only while CSR rows arrive: the state is the same as if they had been known from the start."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from tamis.rows import FisherScore
from tamis.rows.screening import Screening

WIDTHS = [50, 50, 80, 200, 399, 400]


@pytest.mark.slow
@pytest.mark.parametrize("half_life", [None, 300])
@pytest.mark.parametrize("eps", [0.01, 0.2])
def test_bit_for_bit_as_if_known_from_the_start(rng, half_life, eps):
    X = rng.random((1800, 400)) * (rng.random((1800, 400)) < 0.1)
    X[np.arange(400) >= np.repeat(WIDTHS, 300)[:, None]] = 0.0
    X, y = sp.csr_matrix(X), rng.integers(0, 3, 1800)
    known, widened = (Screening(1.0, half_life=half_life, eps=eps) for _ in range(2))
    for i, width in enumerate(WIDTHS):
        rows, labels = X[300 * i : 300 * i + 300], y[300 * i : 300 * i + 300]
        known.partial_fit(rows, labels)
        if i:
            widened.widen(width)
        widened.partial_fit(rows[:, :width], labels)
    assert list(widened.table_) == list(known.table_)
    for name, column in known.table_.items():
        np.testing.assert_array_equal(widened.table_[name], column)


def test_what_cannot_be_widened(rng):
    X, y = rng.random((20, 3)), rng.integers(0, 2, 20)
    with pytest.raises(NotFittedError):
        FisherScore().widen(5)
    with pytest.raises(ValueError, match=r"n_features must be an integer in \[3, inf\), got 2"):
        FisherScore().fit(sp.csr_matrix(X), y).widen(2)
    dense = FisherScore().fit(sp.csr_matrix(X), y).partial_fit(X, y)
    before = dense.scores_
    for screener in (dense, Screening(scores=["mi"]).fit(X, y)):
        with pytest.raises(ValueError, match="Dense rows have a fixed number of columns"):
            screener.widen(4)
    np.testing.assert_array_equal(dense.scores_, before)
