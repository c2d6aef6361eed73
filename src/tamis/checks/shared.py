"""Checks that every estimator must pass, whether it learns from rows, streaming features or acquired values."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tamis._validation import Array
from tamis.checks.reads import check_reads, public_reads
from tamis.checks.subject import NAMES, Subject, fail, rejects, skip, table
from tamis.persistence import dumps, load, loads, save

_ROUNDING = 1e-9  # relative, of the same sums in another order
# What it is, the rows as they are passed, the same rows as a float64 array, and the relative tolerance.
_Form: TypeAlias = tuple[str, Any, Array, float]


def _same_data_same_bits(subject: Subject) -> None:
    """Two copies fitted to the same data are identical, bit for bit."""
    subject.compare(subject.learned(3), subject.learned(3), "two copies that learned the same")


def _leaves_data_alone(subject: Subject) -> None:
    """The caller's arrays are neither modified nor retained: overwriting them later changes nothing."""
    kinds: tuple[Any, ...] = (np.ascontiguousarray, np.asfortranarray, sp.csr_matrix)
    for kind in kinds if subject.accepts_sparse else kinds[:2]:
        model = subject.new()
        for seed, learn in enumerate((subject.learn, subject.learn_on)):
            rows, target = subject.data(seed)
            X, y = kind(rows.copy()), target.copy()
            learn(model, X, y)
            if not np.array_equal(_dense(X), rows) or not np.array_equal(y, target):
                fail("fitting modifies the caller's X or y.")
            (X.data if sp.issparse(X) else X)[:] = -7.0
            y[:] = 0
        tolerance = 1e-6 if kind is sp.csr_matrix else subject.order_tolerance
        what = "data overwritten after learning, and unchanged"
        subject.compare(model, subject.learned(2), what, tolerance=tolerance)


def _takes_read_only_data(subject: Subject) -> None:
    """Read-only arrays, memory-mapped ones too, are supported and remain unchanged."""
    X, y = subject.data()
    before = X.copy()
    for array in (X, y):
        array.setflags(write=False)
    control = subject.learned()
    subject.compare(subject.learn(subject.new(), X, y), control, "read-only data, and writable data")
    if not np.array_equal(X, before, equal_nan=True):
        fail("read-only data is modified.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        mapped = np.load(path, mmap_mode="r")
        subject.compare(subject.learn(subject.new(), mapped, y), control, "memory-mapped data, and an array")
        del mapped
    if subject.accepts_sparse:
        matrix = sp.csr_matrix(X)
        for array in (matrix.data, matrix.indices, matrix.indptr):
            array.setflags(write=False)
        subject.learn(subject.new(), matrix, y)


def _input_kinds(subject: Subject) -> None:
    """float32, int, bool, Fortran order, views and lists give the results of the same numbers in float64."""
    X, y = subject.data()
    wide = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)
    whole, truth = np.round(X), X > 0
    kinds: list[_Form] = [
        ("float32", X.astype(np.float32), X, 1e-4), ("float16", X.astype(np.float16), X, 1e-4),
        ("big-endian", X.astype(">f8"), X, 0.0), ("int64", whole.astype(np.int64), whole, 0.0),
        ("int8", whole.astype(np.int8), whole, 0.0), ("bool", truth, truth.astype(np.float64), 0.0),
        ("Fortran order", np.asfortranarray(X), X, 0.0), ("every second cell of an array", wide[::2, ::2], X, 0.0),
        ("a view that runs backwards", X[::-1, ::-1].copy()[::-1, ::-1], X, 0.0),
        ("a list of lists", X.tolist(), X, 0.0), ("an array of objects", X.astype(object), X, 0.0),
    ]  # fmt: skip
    compare_forms(subject, kinds, y)


def compare_forms(subject: Subject, forms: list[_Form], y: Array) -> None:
    """Fail unless rows in each form lead to the same model as the same rows as a float64 array."""
    distinct = {id(plain): plain for _, _, plain, _ in forms}
    controls = {key: subject.learn(subject.new(), plain, y) for key, plain in distinct.items()}
    for what, given, plain, tolerance in forms:
        model, control = subject.learn(subject.new(), given, y), controls[id(plain)]
        compare = subject.compare_results if hasattr(given, "columns") else subject.compare
        compare(
            model, control, f"{what}, and a float64 array", tolerance=max(tolerance, subject.order_tolerance)
        )


def same_as_frame(subject: Subject, library: str) -> None:
    """Fail unless a frame with ties, constants, a rare class and allowed missing values leads to the same model."""
    X, y = subject.small(0)
    compare_forms(subject, [(f"a {library} frame", table(library, X, NAMES), X, 0.0)], y)


def _same_rows(subject: Subject) -> None:
    """Rows with ties, constants and a rare class are the same as an array or CSR matrix, at once or in parts."""
    for seed in range(subject.n_small):
        X, y = subject.small(seed)
        if subject.accepts_sparse:
            # A method may count a stored NaN as 0.
            complete = np.nan_to_num(X)
            compare_forms(subject, [("a CSR matrix", sp.csr_matrix(complete), complete, 1e-6)], y)
        if (parts := subject.in_parts(X, y)) is not None:
            whole, tolerance = subject.learn(subject.new(), X, y), subject.part_tolerance
            subject.compare_results(whole, parts, "rows at once, and in parts", tolerance=tolerance)


def _sample_weights(subject: Subject) -> None:
    """A row of weight w counts as w rows, unless the class declares how it differs; impossible weights are rejected."""
    X, y = subject.data()
    n = len(y)
    try:
        model = subject.learn(subject.new(), X, y, np.ones(n))
    except (ValueError, TypeError) as error:
        rejects(lambda: subject.learn(subject.new(), X, y, np.ones(n)), "weights", "sample_weight")
        skip(f"the method does not support weights ({error})")
    subject.compare(model, subject.learned(), "every weight 1, and no weights", tolerance=_ROUNDING)
    negative = np.r_[-1.0, np.ones(n - 1)]
    impossible = {"too few": np.ones(n - 1), "negative": negative, "NaN": np.full(n, np.nan)}
    for what, weight in impossible.items():
        rejects(lambda: subject.learn(model, X, y, weight), f"weights: {what}", "sample_weight")  # noqa: B023
        subject.compare(model, subject.learned(), f"after rejecting weights ({what})", tolerance=_ROUNDING)
    for seed in range(subject.n_small + 1):
        X, y = subject.small(seed) if seed else (X, y)
        for most in (1,) if subject.copies_differ else (1, 3):
            weight = np.random.default_rng(seed).integers(0, most + 1, len(y)).astype(np.float64)
            at = np.repeat(np.arange(len(y)), weight.astype(np.int64))
            subject.compare_results(
                subject.learn(subject.new(), X, y, weight),
                subject.learn(subject.new(), X[at], y[at]),
                f"weights 0 to {most}, and rows repeated by them",
                tolerance=max(_ROUNDING, subject.order_tolerance),
            )


def _sparse_kinds(subject: Subject) -> None:
    """CSR, CSC and COO input, sorted or not, gives the results of the dense input; or is rejected."""
    X, y = subject.data()
    if not subject.accepts_sparse:
        rejects(lambda: subject.learn(subject.new(), sp.csr_matrix(X), y), "a CSR matrix")
        skip("the method accepts dense input only")
    width = X.shape[1]
    unsorted, halves = sp.csr_matrix(X), sp.csr_matrix(X)
    for i in range(len(X)):
        row = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[row] = unsorted.indices[row][::-1]
        unsorted.data[row] = unsorted.data[row][::-1].copy()
    unsorted.has_sorted_indices = False
    twice = sp.csr_matrix(
        (np.repeat(halves.data / 2, 2), np.repeat(halves.indices, 2), 2 * halves.indptr), shape=X.shape
    )
    zeros = sp.csr_matrix(
        (X.ravel(), np.tile(np.arange(width), len(X)), width * np.arange(len(X) + 1)), shape=X.shape
    )
    kinds = {
        "a CSR matrix": sp.csr_matrix(X), "a CSR array": sp.csr_array(X), "a CSC matrix": sp.csc_matrix(X),
        "a COO matrix": sp.coo_matrix(X), "a float32 CSR matrix": sp.csr_matrix(X.astype(np.float32)),
        "unsorted columns": unsorted, "cells stored in two halves": twice, "stored zeros": zeros,
    }  # fmt: skip
    for what, given in kinds.items():
        parts = [part for part in ("data", "indices", "indptr") if hasattr(given, part)]
        before = [getattr(given, part).copy() for part in parts]
        compare_forms(subject, [(what, given, X, 1e-4 if given.dtype == np.float32 else 1e-6)], y)
        if not all(map(np.array_equal, before, [getattr(given, part) for part in parts])):
            fail(f"fitting sorts or sums {what} in place.")


def _not_fitted(subject: Subject) -> None:
    """Before fitting, methods and attributes that need a fitted estimator raise NotFittedError."""
    X, _ = subject.data()
    for what, read in subject.reads.items():
        try:
            read(subject.new(), X)
        except NotFittedError:
            continue
        fail(f"{what} before fitting does not raise NotFittedError.")


def _reading_changes_nothing(subject: Subject) -> None:
    """Reading leaves the bytes of `tamis.dumps` unchanged, and so does an exception at a line of it."""
    model = subject.learned(2)
    check_reads(model, public_reads(model, subject.data(2)[0][:5]))


def _clone(subject: Subject) -> None:
    """A clone has the same parameters and is not fitted; the constructor stores them unchanged."""
    model = subject.learned()
    copied = clone(model)
    if repr(copied.get_params()) != repr(model.get_params()):
        fail(f"the clone of {model!r} is {copied!r}.")
    if subject.is_fitted(copied):
        fail("a clone counts as fitted.")
    subject.learn(copied, *subject.data())
    subject.compare(copied, model, "a clone that learned the same, and the original")


def _copies_go_on(subject: Subject) -> None:
    """A pickle or deep copy made in the middle of a stream continues with the same bits."""
    model = subject.learned(2)
    copies = {"pickle": pickle.loads(pickle.dumps(model)), "copy.deepcopy": copy.deepcopy(model)}
    for what, copied in copies.items():
        _goes_on(subject, model, copied, what)


def _save_and_load(subject: Subject) -> None:
    """An estimator saved and loaded in the middle of a stream, as a file or bytes, continues with the same bits."""
    model = subject.learned(2)
    state = dumps(model)
    if dumps(model) != state or dumps(subject.learned(2)) != state:
        fail("tamis.dumps returns different bytes for the same state.")
    _goes_on(subject, model, loads(state, classes=[type(model)]), "tamis.dumps and tamis.loads")
    with tempfile.TemporaryDirectory() as folder:
        path = save(model, Path(folder) / "model.tamis")
        _goes_on(subject, model, load(path, classes=[type(model)]), "tamis.save and tamis.load")


def _goes_on(subject: Subject, model: Any, copied: Any, what: str) -> None:
    subject.compare(copied, model, f"after {what}, and before")
    subject.learn_on(copied, *subject.data(2))
    subject.compare(model, subject.learned(2), f"after its copy by {what} learned on, and before")
    subject.compare(copied, subject.learned(3), f"learning on after {what}, and without it")


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X
