"""What every selector of columns promises, one small check for each promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tamis.base import ColumnSelector
from tamis.checks.columns import data, offers, refusals
from tamis.checks.columns.data import takes_frame
from tamis.checks.columns.subject import ColumnSubject
from tamis.checks.suite import Report, entry_of, named_checks, run_all

__all__ = ["check_column_selector", "column_selector_checks"]


def check_column_selector(estimator: ColumnSelector, *, per_batch: bool | None = None) -> Report:
    """Run every check on a selector that is offered columns.

    Parameters
    ----------
    estimator : ColumnSelector
        Any instance, yours or of Tamis; it is not started itself. Its class must be one that pickle can find: defined
        in a module, not in a function.
    per_batch : bool, optional
        Whether the method is defined per block, so that a block need not equal its columns one at a time. By default
        as the catalogue says, and False for a class that is not in it.

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
    >>> from tamis import AlphaInvesting
    >>> from tamis.checks import check_column_selector
    >>> report = check_column_selector(AlphaInvesting())
    >>> len(report.passed) > 20, report.failed
    (True, {})
    """
    return run_all(estimator, column_selector_checks(estimator, per_batch=per_batch))


def column_selector_checks(
    estimator: ColumnSelector, *, per_batch: bool | None = None
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return the name of each check, and a function that runs it; for ``pytest.mark.parametrize``.

    Parameters
    ----------
    estimator, per_batch
        As for :func:`check_column_selector`.

    Returns
    -------
    iterator of (name, check)
        A check raises AssertionError if the selector does not keep this promise, and unittest.SkipTest if it does
        not apply.

    Raises
    ------
    TypeError
        If `estimator` is not an instance of ColumnSelector.

    Examples
    --------
    >>> from tamis import AlphaInvesting
    >>> checks = dict(column_selector_checks(AlphaInvesting()))
    >>> checks["block_equals_one_by_one"]()
    """
    if not isinstance(estimator, ColumnSelector):
        raise TypeError(f"estimator must be an instance of tamis.base.ColumnSelector, got {estimator!r}.")
    entry = entry_of(estimator)
    if per_batch is None:
        per_batch = entry is not None and entry.per_batch
    subject = ColumnSubject(estimator, per_batch)
    return named_checks((*offers.CHECKS, *data.CHECKS, *refusals.CHECKS), takes_frame, subject)
