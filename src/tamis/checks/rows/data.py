"""What a row selector does with the caller's data: every kind is taken, nothing is written to or kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._validation import Array
from tamis.checks.subject import Subject, compare, compare_scores, fail, rejects, skip, table

__all__ = ["CHECKS", "takes_frame"]


NAMES = ["red", "größe", "x 2", "blue", "speed", "T"]


def _leaves_data_alone(subject: Subject) -> None:
    """The caller's arrays are neither written to nor kept: overwriting them later changes nothing."""
    control = subject.learned(2)
    kinds: tuple[Any, ...] = (np.ascontiguousarray, np.asfortranarray, sp.csr_matrix)
    for kind in kinds if subject.tags.sparse else kinds[:2]:
        selector = subject.new()
        for seed in range(2):
            rows, y = subject.rows(seed=seed)
            X: Any = kind(rows.copy())
            labels = y.copy()
            selector.partial_fit(X, y)
            if not np.array_equal(X.toarray() if sp.issparse(X) else X, rows) or not np.array_equal(
                y, labels
            ):
                fail("partial_fit writes into the caller's X or y.")
            (X.data if sp.issparse(X) else X)[:] = -7.0
            y[:] = 0
        tolerance = 1e-6 if kind is sp.csr_matrix else 0.0
        compare(selector, control, "data overwritten after learning, and left alone", tolerance=tolerance)


def _takes_read_only_data(subject: Subject) -> None:
    """Arrays that must not be written to are learned from, and stay as they are."""
    X, y = subject.rows()
    before = X.copy()
    for array in (X, y):
        array.setflags(write=False)
    compare(subject.new().partial_fit(X, y), subject.learned(), "read-only data, and writable data")
    if not np.array_equal(X, before, equal_nan=True):
        fail("read-only data is written to.")
    matrix = sp.csr_matrix(X)
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)
    if subject.tags.sparse:
        subject.new().partial_fit(matrix, y)


def _read_outs_are_copies(subject: Subject) -> None:
    """Writing into `scores_` or the support changes nothing in the model."""
    selector = subject.learned()
    scores, support = selector.scores_, selector.get_support()
    if scores.flags.writeable:
        scores[...] = -1.0
    if support.flags.writeable:
        support[...] = False
    compare(selector, subject.learned(), "after writing into scores_, and before")
    if not np.array_equal(selector.get_support(), subject.learned().get_support()):
        fail("writing into what get_support() returned changes the model.")


def _input_kinds(subject: Subject) -> None:
    """float32, int, bool, Fortran order, views and lists give the scores of the same numbers in float64."""
    X, y = subject.rows()
    wide = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)
    whole, truth = np.round(X), X > 0
    kinds: list[tuple[str, Any, Array, float]] = [
        ("float32", X.astype(np.float32), X, 1e-4),
        ("float16", X.astype(np.float16), X, 1e-4),
        ("big-endian", X.astype(">f8"), X, 0.0),
        ("int64", whole.astype(np.int64), whole, 0.0),
        ("int8", whole.astype(np.int8), whole, 0.0),
        ("bool", truth, truth.astype(np.float64), 0.0),
        ("Fortran order", np.asfortranarray(X), X, 0.0),
        ("every second cell of an array", wide[::2, ::2], X, 0.0),
        ("a view that runs backwards", X[::-1, ::-1].copy()[::-1, ::-1], X, 0.0),
        ("a list of lists", X.tolist(), X, 0.0),
        ("an array of objects", X.astype(object), X, 0.0),
    ]
    for what, given, plain, tolerance in kinds:
        control = subject.new().partial_fit(plain, y)
        compare(subject.new().partial_fit(given, y), control, f"{what}, and float64", tolerance=tolerance)


def _sparse_kinds(subject: Subject) -> None:
    """CSR, CSC and COO rows, sorted or not, give the scores of the dense rows; or are refused."""
    X, y = subject.rows()
    if not subject.tags.sparse:
        rejects(lambda: subject.new().partial_fit(sp.csr_matrix(X), y), "a CSR matrix")
        skip("the method takes dense rows only")
    unsorted, halves = sp.csr_matrix(X), sp.csr_matrix(X)
    for i in range(len(X)):
        row = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[row], unsorted.data[row] = (
            unsorted.indices[row][::-1],
            unsorted.data[row][::-1].copy(),
        )
    unsorted.has_sorted_indices = False
    twice = sp.csr_matrix(
        (np.repeat(halves.data / 2, 2), np.repeat(halves.indices, 2), 2 * halves.indptr), shape=X.shape
    )
    zeros = sp.csr_matrix(
        (X.ravel(), np.tile(np.arange(6), len(X)), 6 * np.arange(len(X) + 1)), shape=X.shape
    )
    kinds = {
        "a CSR matrix": sp.csr_matrix(X), "a CSR array": sp.csr_array(X), "a CSC matrix": sp.csc_matrix(X),
        "a COO matrix": sp.coo_matrix(X), "a float32 CSR matrix": sp.csr_matrix(X.astype(np.float32)),
        "unsorted columns": unsorted, "cells stored in two halves": twice, "stored zeros": zeros,
    }  # fmt: skip
    control = subject.learned()
    for what, given in kinds.items():
        before = [
            getattr(given, part).copy() for part in ("data", "indices", "indptr") if hasattr(given, part)
        ]
        tolerance = 1e-4 if given.dtype == np.float32 else 1e-6
        compare(subject.new().partial_fit(given, y), control, f"{what}, and an array", tolerance=tolerance)
        after = [getattr(given, part) for part in ("data", "indices", "indptr") if hasattr(given, part)]
        if not all(map(np.array_equal, before, after)):
            fail(f"partial_fit sorts or sums {what} in place.")


def _columns_that_come_later(subject: Subject) -> None:
    """After `widen`, columns of zeros until then score as if they had been there all the time; or it is refused."""
    (X, y), (later, target) = subject.rows(), subject.rows(seed=1)
    X[:, 4:] = 0.0
    if not subject.prototype._can_widen:
        rejects(lambda: subject.new().partial_fit(X, y).widen(7), "widen", "number of columns")
        skip("the method has a fixed number of columns")
    if subject.prototype._counts_columns:
        skip("what the method learns depends on the number of columns")
    grown = subject.new().partial_fit(sp.csr_matrix(X[:, :4]), y).widen(6)
    grown.partial_fit(sp.csr_matrix(later), target)
    whole = subject.new().partial_fit(sp.csr_matrix(X), y).partial_fit(sp.csr_matrix(later), target)
    compare(grown, whole, "columns that came later, and columns of zeros", tolerance=1e-9)


def takes_frame(subject: Subject, library: str) -> None:
    """A frame gives the scores of its numbers; its column names come back, in the kind of frame asked for."""
    X, y = subject.rows()
    frame = table(library, X, NAMES)
    selector = subject.new().partial_fit(frame, y)
    compare_scores(selector, subject.learned(), f"a {library} frame, and an array")
    if selector.feature_names_in_.tolist() != NAMES:
        fail(f"feature_names_in_ of a {library} frame is {selector.feature_names_in_.tolist()}.")
    kept = [name for name, keep in zip(NAMES, selector.get_support(), strict=True) if keep]
    if selector.get_feature_names_out().tolist() != kept:
        fail(
            f"get_feature_names_out() is {selector.get_feature_names_out().tolist()}, but {kept} are selected."
        )
    other = table(library, X[:, ::-1], NAMES[::-1])
    _refuses_frame(
        subject, selector, frame, other, y, "columns in another order", NAMES[0], NAMES[-1], "order"
    )
    other = table(library, X, [*NAMES[:-1], "new"])
    _refuses_frame(subject, selector, frame, other, y, "a column of another name", "new", NAMES[-1])
    gap = X.copy()
    gap[7, 2] = np.nan
    other = table(library, gap, NAMES)
    _refuses_frame(subject, selector, frame, other, y, "a frame with NaN", NAMES[2], "row 7")
    if library != "pyarrow":  # scikit-learn knows no output of this kind
        out = selector.set_output(transform=library).transform(frame)
        if list(out.columns) != kept or type(out) is not type(frame):
            fail(
                f"set_output(transform={library!r}): transform returns {type(out)} of columns {list(out.columns)}."
            )


def _refuses_frame(
    subject: Subject, selector: Any, frame: Any, other: Any, y: Array, what: str, *words: str
) -> None:
    if subject.tags.allow_nan and "NaN" in what:
        return
    rejects(lambda: selector.partial_fit(other, y), what, *words)
    compare(selector, subject.new().partial_fit(frame, y), f"after refusing {what}, and before")


CHECKS = (
    _leaves_data_alone,
    _takes_read_only_data,
    _read_outs_are_copies,
    _input_kinds,
    _sparse_kinds,
    _columns_that_come_later,
)
