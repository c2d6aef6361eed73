"""What every row selector promises, one small check for each promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tamis.base import RowSelector
from tamis.checks.rows import data, learning, readouts, refusals
from tamis.checks.rows.data import takes_frame
from tamis.checks.subject import Subject
from tamis.checks.suite import Report, entry_of, named_checks, run_all

__all__ = ["check_row_selector", "row_selector_checks"]


def check_row_selector(
    estimator: RowSelector,
    *,
    per_batch: bool | None = None,
    multiclass: bool | None = None,
    rounding: bool | None = None,
) -> Report:
    """Run every check on a row selector.

    Parameters
    ----------
    estimator : RowSelector
        Any instance, yours or of Tamis; it is not fitted itself. Its class must be one that pickle can find: defined
        in a module, not in a function.
    per_batch : bool, optional
        Whether the method is defined per batch, so that a batch need not equal its rows one at a time. By default
        as the catalogue says, and False for a class that is not in it.
    multiclass : bool, optional
        Whether the method knows more than two classes. By default as the catalogue says, and True for a class that
        is not in it.
    rounding : bool, optional
        Whether a batch equals its rows one at a time up to rounding only, because sums are taken in another order.
        By default as the catalogue says, and False, the same bits, for a class that is not in it.

    Returns
    -------
    Report
        What was run, and what was skipped for which reason.

    Raises
    ------
    AssertionError
        If a check fails; the message lists all that fail, each with its name and what differed.

    Examples
    --------
    >>> from tamis import OFS
    >>> from tamis.checks import check_row_selector
    >>> report = check_row_selector(OFS())
    >>> len(report.passed) > 25, report.failed
    (True, {})
    """
    checks = row_selector_checks(estimator, per_batch=per_batch, multiclass=multiclass, rounding=rounding)
    return run_all(estimator, checks)


def row_selector_checks(
    estimator: RowSelector,
    *,
    per_batch: bool | None = None,
    multiclass: bool | None = None,
    rounding: bool | None = None,
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return the name of each check, and a function that runs it; for ``pytest.mark.parametrize``.

    Parameters
    ----------
    estimator, per_batch, multiclass, rounding
        As for :func:`check_row_selector`.

    Returns
    -------
    iterator of (name, check)
        A check raises AssertionError if the selector does not keep this promise, and unittest.SkipTest if it does
        not apply.

    Raises
    ------
    TypeError
        If `estimator` is not an instance of RowSelector.

    Examples
    --------
    >>> from tamis import OFS
    >>> checks = dict(row_selector_checks(OFS()))
    >>> checks["batch_equals_loop"]()
    """
    if not isinstance(estimator, RowSelector):
        raise TypeError(f"estimator must be an instance of tamis.base.RowSelector, got {estimator!r}.")
    entry = entry_of(estimator)
    if per_batch is None:
        per_batch = entry is not None and entry.per_batch
    if multiclass is None:
        multiclass = entry is None or "multiclass" in entry.targets
    if rounding is None:
        rounding = entry is not None and entry.rounding
    subject = Subject(estimator, per_batch, multiclass, rounding)
    checks = (*learning.CHECKS, *data.CHECKS, *refusals.CHECKS, *readouts.CHECKS)
    return named_checks(checks, takes_frame, subject)
