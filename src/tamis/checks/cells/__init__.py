"""What every classifier that buys the values of a row promises, one small check for each promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tamis.checks.cells import data, purchases, refusals
from tamis.checks.cells.data import takes_frame
from tamis.checks.cells.subject import CellSubject
from tamis.checks.suite import Report, named_checks, run_all

__all__ = ["CellSubject", "cell_classifier_checks", "check_cell_classifier"]

_VERBS = ("fit", "predict", "predict_proba", "acquire", "open")


def check_cell_classifier(estimator: Any) -> Report:
    """Run every check on a classifier that buys values one by one.

    Parameters
    ----------
    estimator : CellClassifier
        Any instance, yours or of Tamis, with `cost` among its parameters; it is not fitted itself. Its class must be
        one that pickle can find: defined in a module, not in a function.

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
    >>> from tamis import ETANA
    >>> from tamis.checks import check_cell_classifier
    >>> report = check_cell_classifier(ETANA())
    >>> len(report.passed) > 15, report.failed
    (True, {})
    """
    return run_all(estimator, cell_classifier_checks(estimator))


def cell_classifier_checks(estimator: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return the name of each check, and a function that runs it; for ``pytest.mark.parametrize``.

    Parameters
    ----------
    estimator : CellClassifier

    Returns
    -------
    iterator of (name, check)
        A check raises AssertionError if the classifier does not keep this promise, and unittest.SkipTest if it does not
        apply.

    Raises
    ------
    TypeError
        If `estimator` has not the verbs of a CellClassifier.

    Examples
    --------
    >>> from tamis import ETANA
    >>> checks = dict(cell_classifier_checks(ETANA()))
    >>> checks["sessions_walk_the_same_way"]()
    """
    if isinstance(estimator, type) or not all(hasattr(estimator, verb) for verb in _VERBS):
        raise TypeError(f"estimator must be an instance of tamis.cells.CellClassifier, got {estimator!r}.")
    subject = CellSubject(estimator)
    return named_checks((*purchases.CHECKS, *data.CHECKS, *refusals.CHECKS), takes_frame, subject)
