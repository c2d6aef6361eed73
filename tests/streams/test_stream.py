"""Batches: the same rows for any batch size, from any row on."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import DataError, StreamError, TamisError
from tamis.streams import ArrayStream, BatchStream, as_stream, open_file

X = np.arange(60.0).reshape(20, 3)
Y = np.array(["a", "b"] * 10)


def rows_of(batches):
    parts = [(part.toarray() if sp.issparse(part) else part, y) for part, y in batches]
    return np.vstack([x for x, _ in parts]), np.concatenate([y for _, y in parts])


@given(
    size=st.integers(1, 25), start=st.integers(0, 19), cuts=st.lists(st.integers(1, 19)), sparse=st.booleans()
)
@settings(max_examples=80, deadline=None)
def test_any_blocks_any_size_any_start_give_the_same_rows(size, start, cuts, sparse):
    whole = sp.csr_matrix(X) if sparse else X
    bounds = [0, *sorted(set(cuts)), 20]
    source = [(whole[a:b], Y[a:b]) for a, b in itertools.pairwise(bounds)]
    for stream in (ArrayStream(whole, Y), BatchStream(source)):
        batches = list(stream.batches(size, start=start))
        assert [len(y) for _, y in batches[:-1]] == [size] * (len(batches) - 1)
        found, labels = rows_of(batches)
        np.testing.assert_array_equal(found, X[start:])
        np.testing.assert_array_equal(labels, Y[start:])


def test_a_frame_brings_its_names():
    pandas = pytest.importorskip("pandas")
    stream = ArrayStream(pandas.DataFrame({"height": [1.0, 2.0], "width": [3, 4]}), [0, 1])
    assert stream.feature_names == ["height", "width"]
    assert stream.take(2)[0].tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_labels_of_several_types_stay_apart():
    stream = BatchStream([(X[:1], np.array([1])), (X[1:2], np.array(["1"]))])
    assert stream.take(2)[1].tolist() == [1, "1"]


def test_whole_and_broken_numbers_are_numbers_together():
    stream = BatchStream([(X[:1], np.array([1])), (X[1:2], np.array([0.5]))])
    assert stream.take(2)[1].dtype == np.float64


def test_an_iterator_is_read_once():
    stream = as_stream(iter([(X, Y)]))
    assert len(stream.take(20)[1]) == 20
    with pytest.raises(StreamError, match="read already"):
        list(stream.batches(5))


def test_progress_is_that_of_the_current_pass():
    stream = ArrayStream(np.zeros((10_000, 1)), np.zeros(10_000, dtype=int))
    batches = stream.batches(100)
    next(batches)
    assert 0 < stream.progress() < 1
    assert list(batches)
    assert stream.progress() == 1


def test_the_fingerprint_tells_other_rows():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(1000, 5)), rng.integers(0, 2, 1000)
    for make in (np.array, sp.csr_array):
        known = ArrayStream(make(rows), labels).describe()
        assert known == ArrayStream(make(rows.copy()), labels.copy()).describe()
        for i in (0, 500, 999):
            other, flipped = rows.copy(), labels.copy()
            other[i, 3], flipped[i] = -1, 1 - flipped[i]
            assert ArrayStream(make(other), labels).describe() != known
            assert ArrayStream(make(rows), flipped).describe() != known
    moved = sp.csr_array(rows)
    moved.indices[2500:2505] = moved.indices[2504:2499:-1]  # the same values in other columns
    assert ArrayStream(moved, labels).describe() != known


def test_the_fingerprint_of_a_file_is_that_of_all_its_bytes(tmp_path):
    path = tmp_path / "a.csv"
    text = bytearray(b"x,state\n" + b"1,on\n2,off\n" * 200_000)
    path.write_bytes(text)
    known = open_file(path, label="state").describe()
    assert open_file(path, label="state").describe() == known
    text[len(text) - 4] = ord("n")  # beyond the first megabyte
    path.write_bytes(text)
    assert open_file(path, label="state").describe() != known


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "10"])
def test_wrong_batch_sizes_are_refused_at_once(size):
    with pytest.raises(ValueError, match="batch_size must be an integer in"):
        ArrayStream(X, Y).batches(size)


@pytest.mark.parametrize("source", [3, {"X": X}, X, None])
def test_what_is_no_stream_is_refused(source):
    with pytest.raises(TypeError, match="A stream is a Stream, a pair"):
        as_stream(source)


def test_batches_that_do_not_fit_are_refused():
    with pytest.raises(StreamError, match="2 columns, the earlier ones had 3"):
        list(BatchStream([(X[:5], Y[:5]), (X[5:, :2], Y[5:])]).batches(4))
    with pytest.raises(StreamError, match="yielded a int"):
        list(BatchStream([3]).batches(4))
    with pytest.raises(DataError, match="20 rows, y has 3"):
        ArrayStream(X, Y[:3])
    with pytest.raises(ValueError, match="2 names for 3 columns"):
        ArrayStream(X, Y, feature_names=["a", "b"])


@given(size=st.integers(1, 25), start=st.integers(0, 19), cuts=st.lists(st.integers(1, 19)))
@settings(max_examples=60, deadline=None)
def test_missing_numbers_are_the_mean_of_the_earlier_rows_for_any_blocks(size, start, cuts):
    rng = np.random.default_rng(3)
    holed = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    expected = holed.copy()
    for i, j in np.argwhere(np.isnan(holed)):
        known = holed[:i, j][~np.isnan(holed[:i, j])]
        expected[i, j] = known.mean() if len(known) else 0.0
    bounds = [0, *sorted(set(cuts)), 20]
    source = [(holed[a:b], Y[a:b]) for a, b in itertools.pairwise(bounds)]
    for stream in (ArrayStream(holed, Y), BatchStream(source)):
        found, _ = rows_of(stream.with_missing("mean").batches(size, start=start))
        np.testing.assert_allclose(found, expected[start:], rtol=1e-12)
        assert np.isnan(stream.take(20)[0]).any()  # the stream itself is unchanged


def test_files_and_frames_treat_missing_numbers_alike(tmp_path):
    frame = pd.DataFrame({"a": [2.0, None, 6.0, None], "b": [None, 1.0, 2.0, 3.0], "y": [0, 1, 0, 1]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    file, rows = open_file(tmp_path / "rows.csv", label="y"), as_stream(frame, "y")
    for how in ("mean", "keep"):
        np.testing.assert_array_equal(file.with_missing(how).take(4)[0], rows.with_missing(how).take(4)[0])
    for stream in (file, rows):
        with pytest.raises(TamisError, match=r"Column 'a' is missing in row 2: .*missing='mean'"):
            stream.with_missing("error").take(4)
        with pytest.raises(ValueError, match="missing must be"):
            stream.with_missing("median")


def test_missing_numbers_of_sparse_rows_cannot_be_replaced():
    rows = sp.csr_matrix([[1.0, np.nan], [0.0, 2.0]])
    with pytest.raises(DataError, match="missing='mean' is for dense rows"):
        ArrayStream(rows, [0, 1]).with_missing("mean").take(2)
