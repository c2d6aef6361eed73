"""Checks of models with a selection for each of several targets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from tamis._validation import Array
from tamis.base.rows import can_forget_columns, can_widen
from tamis.checks.subject import ColumnSubject, RowSubject, fail, rejects, skip, table
from tamis.checks.suite import Report, entry_of, run_all, run_check
from tamis.persistence import dumps, loads


def check_target_model(model: Any) -> Report:
    """Run every check on a model of several targets.

    Parameters
    ----------
    model : PerTarget or AlphaInvestingPerTarget
        With a selector of yours or of Tamis; it is not fitted itself. The class of the selector must be one that pickle
        can find: defined in a module, not in a function.

    Returns
    -------
    Report
        The checks that ran, and those skipped with their reasons.

    Raises
    ------
    AssertionError
        If a check fails; the message lists all failed checks, each with its name and the difference.

    Examples
    --------
    >>> from tamis import FisherScore, PerTarget
    >>> from tamis.checks import check_target_model
    >>> report = check_target_model(PerTarget(FisherScore(2)))
    >>> len(report.passed) > 5, report.failed
    (True, {})
    """
    return run_all(model, target_model_checks(model))


def target_model_checks(model: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return the name of each check, and a function that runs it; for ``pytest.mark.parametrize``.

    Parameters
    ----------
    model : PerTarget or AlphaInvestingPerTarget
        As for :func:`check_target_model`.

    Returns
    -------
    iterator of (name, check)
        A check raises AssertionError if the model does not keep this promise, and unittest.SkipTest if it does not
        apply.

    Examples
    --------
    >>> from tamis import AlphaInvesting, AlphaInvestingPerTarget
    >>> dict(target_model_checks(AlphaInvestingPerTarget(AlphaInvesting())))["union"]()
    """
    shared = (_union, _names_of_targets, _rejected_target, _save_and_load)
    own = (_missing_labels, _rows_one_at_a_time, _columns_that_come_later, _forgotten_columns, _merge)
    for check in (*shared, *(own if _of_rows(model) else (_one_target, _one_budget))):
        name = check.__name__[1:]
        yield name, functools.partial(run_check, name, check, model)


def _of_rows(model: Any) -> bool:
    return hasattr(model, "partial_fit")


def _subject(model: Any) -> Any:
    entry = entry_of(model.selector)
    per_batch, rounding = entry is not None and entry.per_batch, entry is not None and entry.rounding
    if _of_rows(model):
        return RowSubject(model.selector, per_batch, rounding=rounding)
    return ColumnSubject(model.selector, per_batch)


def _data(model: Any) -> tuple[Array, Array]:
    """Return features and two targets, which depend on two features each and have one of these in common."""
    if _of_rows(model):
        subject = _subject(model)
        X, first = subject.data(0, 120, 6, (1, 4))
        return X, np.column_stack([first, subject.data(0, 120, 6, (4, 2))[1]])
    X, first = _subject(model).data(0)
    return X, np.column_stack([first, _subject(model).data(0, 7, (5, 3))[1]])


def _new(model: Any) -> Any:
    """Return a copy, with fixed seeds."""
    copied = clone(model)
    has_seed = "selector__random_state" in model.get_params()
    return copied.set_params(selector__random_state=0) if has_seed else copied


def _learned(model: Any, X: Any = None, Y: Any = None) -> Any:
    """Return a copy that learned the rows or columns in two parts."""
    if X is None:
        X, Y = _data(model)
    if _of_rows(model):
        return _new(model).partial_fit(X[:50], Y[:50]).partial_fit(X[50:], Y[50:])
    fitted = _new(model).start(Y)
    fitted.offer_many(X[:, :3]), fitted.offer_many(X[:, 3:])
    return fitted


def _compare(model: Any, one: Any, other: Any, what: str, tolerance: float = 1e-9) -> None:
    subject = _subject(model)
    for target, left, right in zip(one.targets_, one.selectors_, other.selectors_, strict=True):
        subject.compare(left, right, f"{what} (target {target})", tolerance=tolerance)


def _union(model: Any) -> None:
    """The shared selection contains the features of each target, and no others."""
    fitted = _learned(model)
    if not _of_rows(model):
        found = {name for names in fitted.selected_by_target_.values() for name in names}
        if len(set(fitted.selected_)) != len(fitted.selected_) or set(fitted.selected_) != found:
            fail(f"selected_ is {fitted.selected_}, and the targets have {sorted(found)}.")
        return
    mask, (X, _) = fitted.support_by_target_.any(axis=0), _data(model)
    if not np.array_equal(fitted.get_support(), mask) or not np.array_equal(fitted.transform(X), X[:, mask]):
        fail("get_support and transform must keep the features selected for any target.")
    names = fitted.get_feature_names_out().tolist()
    if names != [f"x{j}" for j in np.flatnonzero(mask)]:
        fail(f"get_feature_names_out() is {names}.")
    prices = getattr(model.selector, "prices", None)
    if prices is None and fitted.price_ != mask.sum():
        fail(f"price_ is {fitted.price_} for {mask.sum()} features without prices.")


def _names_of_targets(model: Any) -> None:
    """A frame names the targets, and labels of any type are those of arrays."""
    X, Y = _data(model)
    frame = table("pandas", Y, ["hot", "dry"])
    fitted = _learned(model, X, frame.to_numpy())
    named = _new(model).fit(X, frame)
    if fitted.targets_ != ["y0", "y1"] or named.targets_ != ["hot", "dry"]:
        fail(f"targets_ is {fitted.targets_} for an array, and {named.targets_} for a frame.")
    n = len(named.support_by_target_ if _of_rows(model) else named.selected_by_target_)
    if n != 2:
        fail(f"two targets have {n} selections.")


def _rejected_target(model: Any) -> None:
    """Targets with infinite values, of another length or number are rejected by name, and change nothing."""
    X, Y = _data(model)
    gaps = Y.astype(np.float64)
    gaps[7, 1] = np.inf
    learn = "partial_fit" if _of_rows(model) else "fit"
    fitted, before = _learned(model), dumps(_learned(model))
    rejects(lambda: getattr(fitted, learn)(X, gaps), "an infinite value of the second target", "y1")
    rejects(lambda: getattr(fitted, learn)(X, Y[1:]), "targets that are too short", "sample")
    if _of_rows(model):
        rejects(lambda: fitted.partial_fit(X, Y[:, :1]), "one target less", "targets")
    if dumps(fitted) != before:
        fail("a rejected target changes the model.")


def _missing_labels(model: Any) -> None:
    """A row is skipped by the targets whose label is missing, and by no others."""
    X, Y = _data(model)
    gaps = Y.astype(np.float64)
    gaps[::3, 1], gaps[50:60, 0], gaps[60:, 1] = np.nan, np.nan, np.nan
    fitted = _learned(model, X, gaps)
    for target, one in enumerate(fitted.selectors_):
        there = ~np.isnan(gaps[:, target])
        alone = clone(one)
        for part in (slice(50), slice(50, None)):
            own = there[part]
            alone.partial_fit(X[part][own], gaps[part, target][own])
        _subject(model).compare(
            one, alone, f"the labelled rows of target {target}, and these alone", tolerance=0.0
        )


def _save_and_load(model: Any) -> None:
    """A saved model continues with the same bits."""
    X, Y = _data(model)
    fitted = _learned(model)
    again = loads(dumps(fitted), classes=[type(model.selector), type(model)])
    for one in (fitted, again):
        one.partial_fit(X, Y) if _of_rows(model) else one.offer_many(X[:, ::-1] ** 2)
    if dumps(fitted) != dumps(again):
        fail("a loaded model, and the model itself, differ after they learned the same.")


def _rows_one_at_a_time(model: Any) -> None:
    """A batch equals its rows one at a time, where the selector does."""
    if _subject(model).per_batch:
        skip("the method is defined per batch")
    X, Y = _data(model)
    classes = None if model.selector._is_regression() else [[0, 1], [0, 1]]
    whole, rows = _new(model).partial_fit(X, Y, classes), _new(model)
    for at in range(len(X)):
        rows.partial_fit(X[at : at + 1], Y[at : at + 1], classes)
    _compare(model, whole, rows, "a batch, and its rows one at a time")


def _columns_that_come_later(model: Any) -> None:
    """Columns appended by `widen` count as zeros in the rows before, if the selector supports it."""
    X, Y = _data(model)
    if not (_subject(model).accepts_sparse and can_widen(_learned(model).selectors_[0])):
        rejects(lambda: _learned(model).widen(9), "widen", "number of columns")
        skip("the method has a fixed number of columns")
    if model.selector._claims().counts_columns:
        skip("what the method learns depends on the number of columns")
    X[:, 4:] = 0.0
    grown = _new(model).partial_fit(sp.csr_matrix(X[:, :4]), Y).widen(6)
    if grown.support_by_target_.shape != (2, 6):
        fail(f"support_by_target_ has the shape {grown.support_by_target_.shape} after widen(6).")
    whole = _new(model).partial_fit(sp.csr_matrix(X), Y)
    rows = sp.csr_matrix(X[:, ::-1])
    grown.partial_fit(rows, Y), whole.partial_fit(rows, Y)
    _compare(model, grown, whole, "columns that came later, and zeros")


def _forgotten_columns(model: Any) -> None:
    """`forget_columns` resets a column for every target, as in each selector alone, if the selector supports it."""
    X, Y = _data(model)
    rows = sp.csr_matrix(X) if _subject(model).accepts_sparse else X
    fitted, control = _new(model).partial_fit(rows, Y), _new(model).partial_fit(rows, Y)
    if not can_forget_columns(fitted.selectors_[0]):
        rejects(lambda: fitted.forget_columns([4]), "forget_columns", "forget")
        skip("the method cannot forget single columns")
    for one in control.selectors_:
        one.forget_columns([4])
    fitted.forget_columns([4])
    _compare(model, fitted, control, "a forgotten column, and that of each target alone", 0.0)


def _merge(model: Any) -> None:
    """Merged models equal the merged selectors of each target; models of other targets are rejected."""
    X, Y = _data(model)
    if not hasattr(model, "merge"):
        skip("the method cannot be merged")
    early, late = (_new(model).partial_fit(X[part], Y[part]) for part in (slice(50), slice(50, None)))
    try:
        merged = clone(model).merge(early).merge(late)
    except ValueError as reason:
        skip(f"parts cannot be merged: {reason}")
    for one, theirs in zip(early.selectors_, late.selectors_, strict=True):
        one.merge(theirs)
    _compare(model, merged, early, "merged models, and merged selectors", 0.0)
    other = _new(model).partial_fit(X, table("pandas", Y, ["hot", "dry"]))
    before = dumps(merged)
    rejects(lambda: merged.merge(other), "a model of other targets", "targets")
    if dumps(merged) != before:
        fail("a rejected model changes this one.")


def _one_target(model: Any) -> None:
    """A single target gets the decisions of its selector alone."""
    X, Y = _data(model)
    several, alone = _learned(model, X, Y[:, :1]), clone(model.selector).start(Y[:, 0])
    alone.offer_many(X[:, :3]), alone.offer_many(X[:, 3:])
    _subject(model).compare(several.selectors_[0], alone, "one target, and its selector alone", tolerance=0.0)


def _one_budget(model: Any) -> None:
    """All targets draw on one error budget, also after a rejected block, and in a loaded model."""
    fitted, (X, _) = _learned(model), _data(model)
    rejects(lambda: fitted.offer_many(np.where(X > 0.0, np.nan, X)), "columns with NaN", "NaN")
    for one in (fitted, loads(dumps(fitted), classes=[type(model.selector), type(model)])):
        before = {selector.wealth_ for selector in one.selectors_}
        one.offer_many(X[:, ::-1] ** 3)
        after = {selector.wealth_ for selector in one.selectors_}
        if len(before) != 1 or len(after) != 1 or before == after:
            fail(f"the budgets of the targets are {sorted(before)}, and {sorted(after)} after more offers.")
