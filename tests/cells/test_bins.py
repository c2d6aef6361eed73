"""Bins against the plain definition, dense and sparse."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tamis.cells.bins import Bins
from tests.twins.ifc2f import quantile_codes, width_codes

COLUMNS = arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(1, 3)),
    elements=st.sampled_from([0.0, 0.0, 0.0, -1.5, 1.0, 2.0, 3.5, 7.0]),
)


@given(COLUMNS, st.integers(2, 6))
def test_dense_and_sparse_bins_are_the_definition(X, n_bins):
    want = [quantile_codes(x, np.quantile(x, np.arange(1, n_bins) / n_bins)) for x in X.T]
    for rows in (X, sp.csr_array(X)):
        bins = Bins.quantile(rows, n_bins)
        np.testing.assert_array_equal(bins.codes(X).T, want)
        tables = bins.tables(rows, np.arange(len(X)) % 2, 2)
        again = [
            [[np.sum((c == b) & (np.arange(len(X)) % 2 == k)) for k in (0, 1)] for b in range(n_bins)]
            for c in want
        ]
        np.testing.assert_array_equal(tables, again)


@given(COLUMNS, st.integers(2, 5))
def test_equal_widths(X, n_bins):
    want = [width_codes(x, x.min(), x.max(), n_bins) for x in X.T]
    for rows in (X, sp.csr_array(X)):
        np.testing.assert_array_equal(Bins.width(rows, n_bins).codes(X).T, want)


def test_missing_values_have_no_bin(rng):
    X = rng.normal(size=(50, 3))
    X[::3, 1] = np.nan
    X[:, 2] = np.nan
    bins = Bins.quantile(X, 4)
    np.testing.assert_allclose(bins.edges[1], np.nanquantile(X[:, 1], [0.25, 0.5, 0.75]))
    assert (bins.codes(X)[:, 2] == -1).all()
    sparse = sp.csr_array(np.nan_to_num(X, nan=0.0))
    sparse.data[:5] = np.nan
    dense = sparse.toarray()
    np.testing.assert_allclose(Bins.quantile(sparse, 4).edges, Bins.quantile(dense, 4).edges)
    tables = [
        b.tables(m, np.zeros(50, int), 1)
        for b, m in ((Bins.quantile(sparse, 4), sparse), (Bins.quantile(dense, 4), dense))
    ]
    np.testing.assert_array_equal(*tables)


def test_values_beyond_the_range_go_to_the_last_bins():
    bins = Bins.quantile(np.arange(8.0)[:, None], 4)
    assert bins.codes(np.array([[-100.0], [100.0]])).ravel().tolist() == [0, 3]
    assert bins.n_bins == 4


def test_blocks_of_columns_make_no_difference(rng, monkeypatch):
    X, y = sp.random_array((40, 30), density=0.3, rng=rng, format="csr"), rng.integers(0, 3, 40)
    whole = Bins.quantile(X, 5).tables(X, y, 3)
    monkeypatch.setattr("tamis.cells.bins._CELLS", 64)
    np.testing.assert_array_equal(Bins.quantile(X, 5).tables(X, y, 3), whole)
    np.testing.assert_array_equal(Bins.quantile(X.toarray(), 5).tables(X.toarray(), y, 3), whole)


def test_same_edges_count_once():
    X = np.r_[np.zeros(9), 5.0][:, None]
    assert Bins.quantile(X, 4).edges.tolist() == [[0.0, np.inf, np.inf]]
    assert pytest.approx(Bins.quantile(X, 4).codes(X).ravel().tolist()) == [0] * 9 + [1]


def test_what_lies_above_all_rows_belongs_to_the_last_bin_that_had_some():
    bins = Bins.quantile(np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0], [1.0], [1.0]]), 4)
    assert bins.codes(np.array([[0.0], [1.0], [2.0]]))[:, 0].tolist() == [0, 1, 1]
