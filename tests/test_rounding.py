"""Integers beyond 2**53, which float64 cannot tell apart: a warning names the column, wherever the rows come from."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from tamis import AlphaInvesting, FisherScore
from tamis._validation import as_rows, warn_of_rounding
from tamis.streams import open_file

pa = pytest.importorskip("pyarrow")

LARGE = 2**60 + 1
IDS = np.array([1, 2, LARGE, LARGE + 2])
SMALL = np.array([3, 4, 5, 2**53])


def told(call: Any, *arguments: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*arguments)
    return [str(one.message) for one in caught if "2**53" in str(one.message)]


def frame(library: Any, **columns: Any) -> Any:
    return library.table(columns) if library is pa else library.DataFrame(columns)


@pytest.mark.parametrize("library", [pd, pl, pa])
@pytest.mark.parametrize("beside", [SMALL, SMALL / 2, [True, False, True, True]])
@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_a_column_of_a_frame_is_named(library: Any, beside: Any, kind: type) -> None:
    [message] = told(as_rows, frame(library, beside=beside, ids=IDS.astype(kind)))
    assert message == (
        f"Column 'ids' contains {LARGE}, and float64 rounds integers beyond 2**53 = {2**53}: values that differ may"
        " become equal; drop the column, or encode it as categories."
    )


def test_a_frame_with_missing_integers_is_looked_at() -> None:
    ids = pl.Series("ids", [None, 1, LARGE, 2])
    assert "Column 'ids'" in told(as_rows, pl.DataFrame([ids, pl.Series("x", [0.5, 1.0, 2.0, 3.0])]))[0]


def test_a_column_of_an_array_is_named_by_its_place() -> None:
    X = np.column_stack([SMALL, IDS])
    for rows in (X, X.tolist(), X.astype(np.uint64), sp.csr_matrix(X), sp.coo_matrix(X)):
        [message] = told(as_rows, rows)
        assert message.startswith(f"Column 1 contains {LARGE}, ")
    assert "Column 1" in told(FisherScore(1).partial_fit, X, [0, 1, 0, 1])[0]


def test_offered_columns_are_named() -> None:
    y = [0, 1, 0, 1]
    assert "Column 'ids'" in told(AlphaInvesting().start(y).offer, IDS, "ids")[0]
    assert "Column 'ids'" in told(AlphaInvesting().fit, pd.DataFrame({"small": SMALL, "ids": IDS}), y)[0]


@pytest.mark.parametrize(
    "values",
    [
        SMALL,
        -SMALL,
        SMALL.astype(np.uint64),
        SMALL.astype(np.int32),
        IDS.astype(np.float64),
        np.array([2**60, 2**62, -(2**63)]),
        np.array([2**63], dtype=np.uint64),
        np.empty(0, dtype=np.int64),
        SMALL > 3,
    ],
)
def test_what_float64_has_exactly_is_no_matter(values: Any) -> None:
    assert told(warn_of_rounding, values, str) == []


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**63 - 1, 1 - 2**63])
def test_each_rounded_integer_is_found(value: int) -> None:
    assert f"contains {value}," in told(warn_of_rounding, np.array([0, value]), str)[0]


def test_the_largest_integer_of_all_is_found() -> None:
    assert "18446744073709551615" in told(warn_of_rounding, np.array([2**64 - 1], dtype=np.uint64), str)[0]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_column_of_a_file_is_named_once(tmp_path: Any, ending: str) -> None:
    n = 100_000  # more than one block
    rows = pd.DataFrame({"ids": LARGE + 2 * np.arange(n), "small": np.arange(n), "y": np.arange(n) % 2})
    path = tmp_path / f"t.{ending}"
    rows.to_parquet(path, index=False) if ending == "parquet" else rows.to_csv(path, index=False)
    stream = open_file(path, label="y")
    [message] = told(lambda: list(stream.batches(1000)))
    assert re.match(rf"Column 'ids' contains {LARGE}, ", message)


def test_integers_of_a_csv_file_that_become_large_late_are_found(tmp_path: Any) -> None:
    ids = np.arange(200_000)
    ids[-3] = LARGE
    rows = pd.DataFrame({"label": ids % 2, "text": np.where(ids % 2, "a", "b"), "ids": ids, "x": ids / 7})
    rows.to_csv(tmp_path / "t.csv", index=False)
    [message] = told(lambda: list(open_file(tmp_path / "t.csv", label="label").batches(1000)))
    assert message.startswith(f"Column 'ids' contains {LARGE}, ")
