"""Bins with fixed edges: stored values of CSR rows are counted row by row, each once."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tamis.summaries.contingency import chi_square
from tamis.summaries.fixed_bins import FixedBins


def test_csr_rows_are_counted_as_dense_ones(rng: np.random.Generator) -> None:
    X = np.round(rng.normal(size=(900, 4)), 1) * (rng.random((900, 4)) < 0.5)
    codes, weight = rng.integers(0, 3, 900), rng.integers(1, 4, 900).astype(float)
    dense, sparse = FixedBins(4, 3, 5), FixedBins(4, 3, 5)
    for part in (slice(0, 300), slice(300, 301), slice(301, 900)):
        dense.update(X[part], codes[part], weight[part])
        sparse.update(sp.csr_matrix(X[part]), codes[part], weight[part])
    expected, found = dense.test(chi_square), sparse.test(chi_square)
    assert expected is not None
    assert found is not None
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_array_equal(found[1], expected[1])
    assert expected[0].min() > 0.0
