"""svmlight files of unknown width, read once."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from tamis.errors import StreamError
from tamis.streams import open_file


@pytest.fixture
def rows(rng: np.random.Generator) -> sp.csr_matrix:
    """3,000 rows, the later the wider."""
    X = rng.random((3000, 70)).round(3) * (rng.random((3000, 70)) < 0.2)
    X[np.arange(70) > 10 + np.arange(3000)[:, None] // 50] = 0.0
    return sp.csr_matrix(X)


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("size", [1, 100, 1700])
def test_each_batch_is_as_wide_as_the_widest_row_so_far(tmp_path, rows, zero_based, size):
    path = tmp_path / "rows.svm"
    dump_svmlight_file(rows, np.arange(3000) % 2, str(path), zero_based=zero_based)
    stream = open_file(path, n_features="any")
    assert stream.n_features is None
    batches = [X for X, _ in stream.batches(size)]
    widths = [X.shape[1] for X in batches]
    assert widths == sorted(widths)
    shift = stream.n_unused
    assert shift == (0 if zero_based else 1)
    together = sp.vstack([sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], 71)) for X in batches])
    np.testing.assert_array_equal(
        together.toarray()[:, shift : 70 + shift], rows[: together.shape[0]].toarray()
    )
    assert stream.describe()["n_features"] == "any"


def test_columns_said_to_count_from_1(tmp_path, rows):
    path = tmp_path / "rows.svm"
    dump_svmlight_file(rows, np.arange(3000) % 2, str(path), zero_based=False)
    X, _ = open_file(path, n_features="any", zero_based=False).take(3000)
    np.testing.assert_array_equal(X.toarray(), rows[:, : X.shape[1]].toarray())
    path.write_text("1 0:3\n")
    with pytest.raises(StreamError, match="counts columns from 0"):
        open_file(path, n_features="any", zero_based=False).take(1)


def test_standard_input_needs_no_width(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0 1:1 2:2\n1 1:3 2:4 9:1\n")))
    X, y = open_file("-", format="svmlight", n_features="any").take(2)
    assert (X.shape, y.tolist()) == ((2, 10), [0, 1])


def test_a_target_with_a_fraction_stays_a_number_where_later_ones_are_whole(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("0.5 1:1\n" + "2 1:1\n" * 3000)
    batches = [y for _, y in open_file(path, n_features=2).batches(1000)]
    assert [y.dtype.kind for y in batches] == ["f"] * len(batches)


def test_the_last_column_there_can_be(tmp_path):
    """A batch takes memory for its values, not for its width; a column beyond is refused in one sentence."""
    path = tmp_path / "wide.svm"
    path.write_text("1 1:1 2147483646:2\n0 1:1\n")
    X, _ = open_file(path, n_features="any").take(2)
    assert (X.shape, X.nnz, X.indices.dtype) == ((2, 2**31 - 1), 3, np.int32)
    for column in (2**31 - 1, 2**31, 2**63, 10**30):
        path.write_text(f"0 1:1\n1 {column}:1\n")
        for width in ("any", None):
            with pytest.raises(
                StreamError, match=r"line 2 \(it names a column beyond 2,147,483,646\): fix that"
            ):
                open_file(path, n_features=width).take(2)
