"""How a column selector treats the caller's data, and that a copy continues like the original."""

from __future__ import annotations

import copy
import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from tamis.checks.columns.subject import ColumnSubject, same
from tamis.checks.subject import fail, table
from tamis.persistence import load, save

__all__ = ["CHECKS", "takes_frame"]


NAMES = ["red", "größe", "x 2", "blue", "speed", "T", "x1"]


def _leaves_data_alone(subject: ColumnSubject) -> None:
    """The caller's arrays are neither written to nor kept, and may be read-only or memory-mapped."""
    X, y = subject.columns()
    control = subject.offered()
    target = y.copy()
    selector = subject.new().start(target)
    target[:] = 0
    for part in (slice(0, 3), slice(3, 7)):
        given = np.asfortranarray(X[:, part])
        before = given.copy()
        selector.offer_many(given)
        if not np.array_equal(given, before):
            fail("offer_many writes into the caller's block.")
        given[:] = -7.0
    if not subject.per_batch:
        same(selector, control, "data overwritten after the offers, and left alone", tolerance=1e-9)
    frozen, frozen_y = X.copy(), y.copy()
    frozen.flags.writeable = frozen_y.flags.writeable = False
    same(subject.new().fit(frozen, frozen_y), control, "read-only data, and a copy")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "columns.npy"
        np.save(path, X)
        mapped = np.load(path, mmap_mode="r")
        same(subject.new().fit(mapped, y), control, "memory-mapped data, and an array")
        del mapped


def _read_outs_are_copies(subject: ColumnSubject) -> None:
    """Writing into what was read out changes nothing."""
    selector = subject.offered()
    selector.trace_["name"] = "other"
    selector.selected_.clear()
    selector.get_support()[:] = False
    same(selector, subject.offered(), "after its read-outs were written to, and before")


def _kinds(subject: ColumnSubject) -> None:
    """Columns of any numeric kind, order and format are decided upon as float64 ones."""
    X, y = subject.columns()
    control, whole = subject.offered(), subject.new().fit(np.round(X), y)
    kinds: list[tuple[str, Any, Any]] = [
        ("float32", X.astype(np.float32), control), ("Fortran order", np.asfortranarray(X), control),
        ("every other column of a wider array", np.repeat(X, 2, axis=1)[:, ::2], control),
        ("int64", np.round(X).astype(np.int64), whole), ("int8", np.round(X).astype(np.int8), whole),
        ("a list of lists", X.tolist(), control), ("CSR", sp.csr_matrix(X), control),
        ("CSC", sp.csc_matrix(X), control), ("a CSR array", sp.csr_array(X), control),
        ("COO", sp.coo_matrix(X), control), ("float32 CSC", sp.csc_matrix(X.astype(np.float32)), control),
    ]  # fmt: skip
    for what, given, wanted in kinds:
        same(subject.new().fit(given, y), wanted, f"{what}, and float64", tolerance=1e-6)
    binary = subject.new().fit(X > 0, y)
    same(binary, subject.new().fit((X > 0).astype(np.float64), y), "bool, and float64", tolerance=1e-6)
    one = subject.new().start(y)
    shapes: list[Any] = [
        X[:, 0],
        X[:, 1].tolist(),
        X[:, [2]],
        sp.csc_matrix(X[:, [3]]),
        sp.csr_matrix(X[:, [4]]),
    ]
    for column in [*shapes, X[:, 5].astype(np.float32), X[:, 6]]:
        one.offer(column)
    if not subject.per_batch:
        same(one, control, "columns of any shape, and a block", tolerance=1e-6)


def takes_frame(subject: ColumnSubject, library: str) -> None:
    """A frame gives names to its columns, and transform finds the selected ones."""
    X, y = subject.columns()
    frame = table(library, X, NAMES)
    selector = subject.new().fit(frame, y)
    wanted = [NAMES[int(name[1:])] for name in subject.offered().selected_]
    if selector.selected_ != wanted or selector.feature_names_in_.tolist() != NAMES:
        fail(f"a {library} frame selects {selector.selected_}, and an array {wanted}.")
    offers = subject.new().start(y)
    offers.offer_many(frame)
    if offers.selected_ != wanted:
        fail(f"offer_many of a {library} frame selects {offers.selected_}, and fit {wanted}.")
    in_order = [name for name in NAMES if name in wanted]
    shuffled = table(library, X[:, ::-1], NAMES[::-1])
    out = offers.transform(shuffled)
    if not np.array_equal(np.asarray(out), X[:, [NAMES.index(name) for name in in_order]]):
        fail(f"after offers, transform of a {library} frame must find the selected columns by name.")
    if library != "pyarrow":  # scikit-learn knows no output of this kind
        out = selector.set_output(transform=library).transform(frame)
        if list(out.columns) != in_order or type(out) is not type(frame):
            fail(f"set_output(transform={library!r}) returns columns {list(out.columns)}, not {in_order}.")
        series = frame[NAMES[2]]
        one = subject.new().start(y)
        if one.offer(series) and one.selected_ != [NAMES[2]]:
            fail(f"a {library} series named {NAMES[2]!r} is called {one.selected_}.")


def _any_size(subject: ColumnSubject) -> None:
    """Columns whose squares overflow or vanish are judged as the same columns of usual size, without a warning."""
    X, y = subject.columns()
    wanted = subject.offered().selected_
    sizes = 2.0 ** np.array([-660, 0, 540, -1000, 1000, 0, -660])  # 1e-199, 1, 1e162, ...
    for what, given in (("an array", X * sizes), ("CSC", sp.csc_matrix(X * sizes))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            selected = subject.new().fit(given, y).selected_
        if selected != wanted:
            fail(
                f"of columns of sizes 1e-301 to 1e301 ({what}) it selects {selected}, of usual size {wanted}."
            )


def _clone(subject: ColumnSubject) -> None:
    """A clone has the same parameters and is not fitted; the constructor stores them unchanged."""
    selector = subject.offered()
    copied = clone(selector)
    if repr(copied.get_params()) != repr(selector.get_params()):
        fail(f"the clone of {selector!r} is {copied!r}.")
    if hasattr(copied, "n_offered_"):
        fail("a clone counts as started.")
    same(copied.fit(*subject.columns()), selector, "a clone that was offered the same, and the original")


def _copies_go_on(subject: ColumnSubject) -> None:
    """Pickled, copied deeply, or saved and loaded between offers, a selector continues with the same bits."""
    selector = subject.offered()
    with tempfile.TemporaryDirectory() as folder:
        path = save(selector, Path(folder) / "selector.tamis")
        loaded = load(path, classes=[type(selector)])
    copies = {
        "pickle": pickle.loads(pickle.dumps(selector)),
        "deepcopy": copy.deepcopy(selector),
        "load": loaded,
    }
    more, _ = subject.columns(seed=9)
    control = subject.offered()
    control.offer_many(more)
    for what, copied in copies.items():
        same(copied, selector, f"after {what}, and before")
        copied.offer_many(more)
        same(selector, subject.offered(), f"after its copy by {what} continued, and before")
        same(copied, control, f"continuing after {what}, and without it")


CHECKS = (
    _leaves_data_alone,
    _read_outs_are_copies,
    _kinds,
    _any_size,
    _clone,
    _copies_go_on,
)
