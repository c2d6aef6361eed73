"""Columns as numbers: what each type becomes, and that the cutting into blocks makes no difference."""

from __future__ import annotations

import datetime
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import StreamError
from tamis.streams import encode
from tamis.streams.encode import ColumnEncoder

pa = pytest.importorskip("pyarrow")


def in_blocks(encoder, values, cuts, kind):
    bounds = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    parts = [
        encoder.encode(pa.array(values[a:b], type=kind), first_row=a + 1)
        for a, b in itertools.pairwise(bounds)
    ]
    return np.concatenate(parts) if parts else np.empty(0)


cuts = st.lists(st.integers(1, 39), max_size=6)


@given(
    values=st.lists(st.sampled_from(["a", "b", "", "c", None, "Ä", "d"]), min_size=1, max_size=40), cuts=cuts
)
@settings(max_examples=60, deadline=None)
def test_text_becomes_codes_in_order_of_appearance(values, cuts):
    encoder = ColumnEncoder("t", "error")
    codes = in_blocks(encoder, values, cuts, pa.string())
    seen = list(dict.fromkeys(values))
    assert codes.tolist() == [seen.index(value) for value in values]
    assert encoder.categories == seen


@given(values=st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=40), cuts=cuts)
@settings(max_examples=60, deadline=None)
def test_missing_numbers_become_the_mean_of_the_rows_before(values, cuts):
    found = in_blocks(ColumnEncoder("t", "mean"), values, cuts, pa.float64())
    whole = in_blocks(ColumnEncoder("t", "mean"), values, [], pa.float64())
    assert found.tolist() == whole.tolist()  # bit for bit
    known = []
    for value, number in zip(values, found, strict=True):
        if value is None:
            assert number == pytest.approx(np.mean(known) if known else 0.0, rel=1e-9, abs=1e-6)
        else:
            assert number == value
            known.append(value)


UTC = datetime.UTC


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([True, False], pa.bool_(), [1, 0]),
        ([3, -4], pa.int8(), [3, -4]),
        ([2**40], pa.uint64(), [2**40]),
        ([0.5], pa.float16(), [0.5]),
        ([datetime.date(1970, 1, 2)], pa.date32(), [86400]),
        ([datetime.date(1970, 1, 2)], pa.date64(), [86400]),
        ([datetime.datetime(1970, 1, 1, 0, 1)], pa.timestamp("ns"), [60]),
        ([datetime.datetime(1970, 1, 1, 0, 1, tzinfo=UTC)], pa.timestamp("s", "Europe/Paris"), [60]),
        ([datetime.time(1, 0, 0)], pa.time32("s"), [3600]),
        ([datetime.timedelta(minutes=2)], pa.duration("ms"), [120]),
        (["u", "v", "u"], pa.dictionary(pa.int8(), pa.string()), [0, 1, 0]),
        (["u", "v"], pa.large_string(), [0, 1]),
    ],
    ids=str,
)
def test_what_each_type_becomes(values, kind, expected):
    found = ColumnEncoder("t", "error").encode(pa.array(values, type=kind), first_row=1)
    assert found.dtype == np.float64
    assert found.tolist() == expected


def test_numbers_can_be_categories_and_not_a_number_is_one_of_them():
    encoder = ColumnEncoder("t", "error", categorical=True)
    for _ in range(3):
        assert encoder.encode(pa.array([7.0, float("nan"), None, 3.0]), first_row=1).tolist() == [0, 1, 1, 2]
    assert encoder.categories == [7.0, None, 3.0]


def test_declared_categories_keep_their_codes():
    encoder = ColumnEncoder("t", "error", declared=["low", "mid", "high"])
    assert encoder.encode(pa.array(["high", "low"]), first_row=1).tolist() == [2, 0]


def test_categories_beyond_the_limit_share_a_code(monkeypatch):
    monkeypatch.setattr(encode, "MAX_CATEGORIES", 3)
    encoder = ColumnEncoder("t", "error")
    assert encoder.encode(pa.array(list("abcdef")), first_row=1).tolist() == [0, 1, 2, 3, 3, 3]
    assert encoder.encode(pa.array(list("fb")), first_row=7).tolist() == [3, 1]
    assert len(encoder.categories) == 3


@pytest.mark.parametrize(
    ("values", "missing", "message"),
    [
        ([1.0, None], "error", "Column 't' is missing in row 11"),
        ([1.0, float("nan")], "error", "Column 't' is missing in row 11"),
        ([None, float("inf")], "mean", "Column 't' is infinite in row 11"),
        ([b"x"], "error", "Column 't' contains bytes that are not UTF-8"),
        ([[1]], "error", r"Column 't' contains \[1\], which is neither"),
    ],
)
def test_what_is_no_number_is_refused_by_row(values, missing, message):
    encoder = ColumnEncoder("t", missing)
    with pytest.raises(StreamError, match=message):
        encoder.encode(pa.array(values), first_row=10)
    assert (encoder._sum, encoder._count) == (0.0, 0)


def test_missing_numbers_can_be_kept():
    encoder = ColumnEncoder("heat", "keep")
    np.testing.assert_array_equal(encoder.encode(pa.array([1.5, None, 2.0]), 1), [1.5, np.nan, 2.0])
    with pytest.raises(StreamError, match="infinite in row 5"):
        encoder.encode(pa.array([None, np.inf]), 4)
