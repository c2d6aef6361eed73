"""What a selector of columns refuses, and that it is then as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from tamis.checks.columns.subject import ColumnSubject, same
from tamis.checks.subject import fail, rejects


def _refuses_columns(subject: ColumnSubject, X: Any, what: str, *words: str, names: Any = None) -> None:
    """Fail unless the block is refused and leaves no trace, in what is read out and in what is decided next."""
    selector, control = subject.offered(), subject.offered()
    more, _ = subject.columns(seed=9)
    rejects(lambda: selector.offer_many(X, names), what, *words)
    same(selector, control, f"after refusing {what}, and before")
    if sp.issparse(X) or np.ndim(X) == 2:
        last = X[:, [-1]] if sp.issparse(X) else np.asarray(X)[:, -1]
        if np.shape(X)[1] == 3:  # the last column of three is the one to refuse
            rejects(lambda: selector.offer(last, "the last"), what, "the last")
    same(selector, control, f"after refusing {what}, and before")
    selector.offer_many(more), control.offer_many(more)
    same(selector, control, f"offers after refusing {what}, and without it")


def _impossible_columns(subject: ColumnSubject) -> None:
    """Columns of a wrong length, with NaN or infinity, or of text, are refused by name, and nothing has changed."""
    X, _ = subject.columns(n_features=3, seed=5, relevant=(0, 1))
    good = X.copy()
    for value in (np.nan, np.inf, -np.inf):
        X[:] = good
        X[17, 2] = value
        what = f"{value} in row 17"
        _refuses_columns(subject, X, what, "'c'", "row 17", names=list("abc"))
        _refuses_columns(subject, sp.csc_matrix(X), f"{what} (CSC)", "'c'", "row 17", names=list("abc"))
        _refuses_columns(subject, X, f"{what}, without a name", "'x9'")
    X[3, 2], X[4, 2] = np.inf, -np.inf  # their sum is NaN
    _refuses_columns(subject, X, "inf and -inf", "'c'", "infinity", names=list("abc"))
    _refuses_columns(subject, good[:-1], "a block that is too short", "119", "120")
    text = good.astype(object)
    text[7, 2] = "seven"
    selector = subject.offered()
    rejects(lambda: selector.offer_many(text), "text", "seven")
    rejects(lambda: selector.offer_many(good + 1j), "complex numbers", "omplex")
    rejects(lambda: selector.offer(good[:50, 0], "short"), "a short column", "'short'", "50", "120")
    rejects(lambda: selector.offer(good), "a block as a column", "offer_many")
    rejects(lambda: selector.offer_many(good[:, :0]), "a block of 0 columns", "0")
    same(selector, subject.offered(), "after refusing columns, and before")


def _fails_late(subject: ColumnSubject) -> None:
    """A column rejected at the end of a block that is processed in parts undoes the whole block."""
    more, _ = subject.columns(seed=9)
    wide = np.ones((120, 3000))
    wide[:, :3], wide[60, -1] = more[:, :3], np.nan
    selector, control = subject.offered(), subject.offered()
    rejects(lambda: selector.offer_many(wide), "NaN in the last of 3000 columns", "'x3006'", "row 60")
    same(selector, control, "after refusing the end of a block, and before")
    selector.offer_many(more), control.offer_many(more)
    same(selector, control, "offers after refusing the end of a block, and without it")


def _imputes_if_told(subject: ColumnSubject) -> None:
    """With ``missing="mean"``, NaN becomes the column's mean, and the trace says how many there were."""
    X, y = subject.columns()
    X[4, 2] = X[5, 2] = X[0, 6] = np.nan
    filled = X.copy()
    for j in (2, 6):
        filled[np.isnan(X[:, j]), j] = np.nanmean(X[:, j])
    for kind in (np.array, sp.csc_matrix):
        selector = subject.new(missing="mean").fit(kind(X), y)
        wanted = subject.new().fit(filled, y)
        if selector.selected_ != wanted.selected_:
            fail(
                f"missing='mean' selects {selector.selected_}, and columns that were filled {wanted.selected_}."
            )
        if selector.trace_["n_missing"].tolist() != [0, 0, 2, 0, 0, 0, 1]:
            fail(f"the trace says that {selector.trace_['n_missing'].tolist()} values were missing.")
    rejects(lambda: selector.offer(np.full(120, np.nan), "empty"), "a column of NaN only", "'empty'")
    rejects(lambda: selector.offer(np.full(120, np.inf), "infinite"), "a column of infinity", "'infinite'")


def _impossible_targets(subject: ColumnSubject) -> None:
    """A target that is missing, constant, a table, of another length, or has gaps is refused; so are bad parameters."""
    X, y = subject.columns()
    gaps = y.astype(np.float64)
    gaps[8] = np.nan
    targets = {
        "no target": None, "a target that is too short": y[1:], "a target of two columns": np.column_stack([y, y]),
        "a target with NaN": gaps, "a constant target": np.ones(120), "an empty target": y[:0],
    }  # fmt: skip
    for what, target in targets.items():
        selector = subject.offered()
        rejects(lambda: selector.fit(X, target), what, "y")  # noqa: B023
        same(selector, subject.offered(), f"after refusing {what}, and before")
        if what != "a target that is too short":
            rejects(lambda: subject.new().start(target), what, "y")  # noqa: B023
    for name in ("missing", "trace"):
        rejects(lambda: subject.new(**{name: "other"}).start(y), f"{name}='other'", name, "'other'")  # noqa: B023


def _not_started(subject: ColumnSubject) -> None:
    """Before `start`, offers and read-outs raise NotFittedError."""
    X, _ = subject.columns()
    acts: dict[str, Callable[[Any], Any]] = {
        "offer": lambda selector: selector.offer(X[:, 0]), "offer_many": lambda selector: selector.offer_many(X),
        "selected_": lambda selector: selector.selected_, "trace_": lambda selector: selector.trace_,
        "get_support()": lambda selector: selector.get_support(), "transform": lambda selector: selector.transform(X),
        "offer_stream": lambda selector: selector.offer_stream([]),
    }  # fmt: skip
    for what, act in acts.items():
        try:
            act(subject.new())
        except NotFittedError:
            continue
        fail(f"{what} before start does not raise NotFittedError.")


CHECKS = (
    _impossible_columns,
    _fails_late,
    _imputes_if_told,
    _impossible_targets,
    _not_started,
)
