"""A suite of checks: run one after the other, and reported."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import SkipTest

from tamis.catalog import CATALOG, Entry
from tamis.checks import shared

FRAMES = ("pandas", "polars", "pyarrow")


@dataclass
class Report:
    """Which checks were run.

    Attributes
    ----------
    passed : list of str
    skipped : dict of str to str
        Checks that do not apply, or need something that is not installed, and the reason.
    failed : dict of str to str
        Failed checks, and their differences.

    Examples
    --------
    >>> print(Report(passed=["one_row", "one_feature"], skipped={"frame_polars": "polars is not installed"}))
    2 checks passed, 1 skipped (frame_polars: polars is not installed)
    """

    passed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        skipped = "; ".join(f"{name}: {reason}" for name, reason in self.skipped.items())
        parts = [f"{len(self.passed)} checks passed"]
        parts += [f"{len(self.skipped)} skipped ({skipped})"] if skipped else []
        parts += [f"{len(self.failed)} failed"] if self.failed else []
        return "\n".join([", ".join(parts), *self.failed.values()])


def entry_of(estimator: Any) -> Entry | None:
    """Return the catalogue entry of the class of an estimator, if it has one."""
    cls = type(estimator)
    return next((entry for entry in CATALOG if entry.name == cls.__name__ and entry.load() is cls), None)


def named_checks(module: str, subject: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the name of each check, and a function that runs it: the shared ones, then those of a module.

    A check is a private function of a module with the subject as its only argument; `takes_frame` also takes a library.
    """
    for home in (shared.__name__, module):
        own = [one for one in vars(sys.modules[home]).values() if inspect.isfunction(one)]
        for check in own:
            name, takes = check.__name__, [*inspect.signature(check).parameters]
            if check.__module__ == home and name.startswith("_") and takes == ["subject"]:
                yield name[1:], functools.partial(run_check, name[1:], check, subject)
    for library in FRAMES:
        name = f"frame_{library}"
        yield name, functools.partial(run_check, name, sys.modules[module].takes_frame, subject, library)


def run_all(estimator: Any, checks: Iterator[tuple[str, Callable[[], None]]]) -> Report:
    """Run checks one after the other and report them; raise AssertionError with all that fail."""
    report = Report()
    for name, check in checks:
        try:
            check()
        except SkipTest as reason:
            report.skipped[name] = str(reason)
        except AssertionError as error:
            report.failed[name] = str(error)
        else:
            report.passed.append(name)
    if report.failed:
        raise AssertionError(f"{type(estimator).__name__}: {report}")
    return report


def run_check(name: str, check: Callable[..., None], *arguments: Any) -> None:
    """Run a check; whatever it raises becomes an AssertionError with its name."""
    try:
        check(*arguments)
    except SkipTest:
        raise
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from error
    except Exception as error:
        raise AssertionError(f"{name}: {type(error).__name__} was raised: {error}") from error
