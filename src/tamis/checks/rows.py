"""What every row selector promises, one small check for each promise."""

from __future__ import annotations

import copy
import functools
import pickle
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tamis._check import Array
from tamis.base import RowSelector, n_to_select, top_mask
from tamis.catalog import CATALOG
from tamis.checks.subject import Subject, compare, compare_scores, fail, refuses, skip, table
from tamis.persistence import load, save

__all__ = ["Report", "check_row_selector", "row_selector_checks", "run_all", "run_check"]

_ROUNDING = 1e-9  # of the largest score: the same sums in another order
FRAMES = ("pandas", "polars", "pyarrow")
NAMES = ["red", "größe", "x 2", "blue", "speed", "T"]


@dataclass
class Report:
    """Which checks were run.

    Attributes
    ----------
    passed : list of str
    skipped : dict of str to str
        Checks that do not apply, or need something that is not installed, and the reason.
    failed : dict of str to str
        Checks that did not pass, and what differed.

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
    """Yield the name of each check, and a function that runs it; for ``pytest.mark.parametrize``.

    Parameters
    ----------
    estimator, per_batch, multiclass, rounding
        As for :func:`check_row_selector`.

    Yields
    ------
    name : str
    check : callable
        Raises AssertionError if the selector does not keep this promise, and unittest.SkipTest if the check does
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
    entry = next((e for e in CATALOG if (e.module, e.name) == _where(estimator)), None)
    if per_batch is None:
        per_batch = entry is not None and entry.per_batch
    if multiclass is None:
        multiclass = entry is None or "multiclass" in entry.targets
    if rounding is None:
        rounding = entry is not None and entry.rounding
    subject = Subject(estimator, per_batch, multiclass, rounding)
    for check in _CHECKS:
        name = check.__name__.removeprefix("_")
        yield name, functools.partial(run_check, name, check, subject)
    for library in FRAMES:
        yield f"frame_{library}", functools.partial(run_check, f"frame_{library}", _frame, subject, library)


def _where(estimator: RowSelector) -> tuple[str, str]:
    return type(estimator).__module__, type(estimator).__name__


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


# -- learning ----------------------------------------------------------------------------------------------


def _batch_equals_loop(subject: Subject) -> None:
    """A batch leaves the same bits as its rows one at a time, weighted or not; the same to rounding, if `rounding`."""
    if subject.per_batch:
        skip("the method is defined per batch")
    X, y = subject.rows()
    tolerance = _ROUNDING if subject.rounding else 0.0
    for classes in (None if subject.regression else [0, 1], None):
        for weights in (np.ones(len(X)), 0.25 + np.arange(len(X)) % 7):
            if np.ptp(weights) and not _takes(subject, weights):
                continue
            whole = subject.new().partial_fit(X, y, classes, weights if np.ptp(weights) else None)
            for size in (1, 7):
                parts = subject.new()
                for start in range(0, len(X), size):
                    rows = slice(start, start + size)
                    parts.partial_fit(X[rows], y[rows], classes, weights[rows] if np.ptp(weights) else None)
                what = f"{len(X)}{' weighted' * bool(np.ptp(weights))} rows at once, and {size} at a time"
                # Classes that are not declared are numbered as they come, so only the scores must agree.
                (compare if classes else compare_scores)(whole, parts, what, tolerance=tolerance)


def _takes(subject: Subject, weights: Array) -> bool:
    try:
        subject.new().partial_fit(*subject.rows(), sample_weight=weights)
    except (ValueError, TypeError):
        return False
    return True


def _same_data_same_bits(subject: Subject) -> None:
    """Two copies that learn the same rows are the same, bit for bit."""
    compare(subject.learned(3), subject.learned(3), "two copies that learned the same")


def _fit_forgets(subject: Subject) -> None:
    """`fit` equals `partial_fit` of a new copy, whatever was learned before."""
    X, y = subject.rows(seed=5)
    wider, target = subject.rows(n_features=8, seed=6)
    once = subject.new().partial_fit(X, y)
    compare(subject.new().fit(X, y), once, "fit, and partial_fit of a new copy")
    compare(
        subject.new().fit(wider, target).fit(X, y),
        once,
        "fit after another fit, and partial_fit of a new copy",
    )


def _finds_planted_features(subject: Subject) -> None:
    """Two of twenty columns decide the target: after 3000 rows, they have the largest scores of ten kept."""
    selector = subject.new(n_features_to_select=10)
    for seed in range(30):
        selector.partial_fit(*subject.rows(100, 20, seed, relevant=(4, 11)))
    best = set(np.argsort(selector.scores_)[-2:].tolist())
    if best != {4, 11}:
        fail(f"columns 4 and 11 decide the target, but columns {sorted(best)} have the largest scores.")


def _single_class(subject: Subject) -> None:
    """While only one class was seen, however many are declared, nothing is ranked and every column is kept."""
    if subject.regression:
        skip("a regression has no classes")
    X, y = subject.rows()
    for declared in ([0, 1], None):
        selector = subject.new().partial_fit(X[y == 1], y[y == 1], classes=declared)
        what = "" if declared is None else f", two declared (classes={declared})"
        if not selector.waiting_ or selector.scores_.any() or not selector.get_support().all():
            fail(
                f"after rows of one class only{what}, waiting_ must be True, scores_ all zero and get_support()"
                " all True."
            )
    if selector.transform(X).shape != X.shape:
        fail(
            f"after rows of one class only, transform keeps {selector.transform(X).shape[1]} of {X.shape[1]} columns."
        )
    selector.partial_fit(X[y == 0], y[y == 0])
    if selector.waiting_ or not _keeps(subject, selector, 2):
        fail("after rows of a second class, waiting_ must be False and get_support() must keep 2 columns.")
    selector.partial_fit(X[y == 0], y[y == 0])
    if selector.n_seen_ != len(X) + np.count_nonzero(y == 0) or not np.isfinite(selector.scores_).all():
        fail(
            f"after another batch of one class, n_seen_ is {selector.n_seen_} and scores_ {selector.scores_}."
        )


def _keeps(subject: Subject, selector: Any, n_selected: int) -> bool:
    n_kept = selector.get_support().sum()
    return bool(n_kept >= 1 if subject.decides_how_many else n_kept == n_selected)


def _late_class(subject: Subject) -> None:
    """A class may appear later; those known keep their places."""
    if subject.regression:
        skip("a regression has no classes")
    if not subject.multiclass:
        skip("the method knows two classes only")
    X, y = subject.rows()
    selector = subject.new().partial_fit(X, y).partial_fit(X, np.where(X[:, 2] > 1, -5, y))
    if selector.classes_.tolist() != [0, 1, -5]:
        fail(f"classes 0 and 1, then -5, must make classes_ [0, 1, -5], not {selector.classes_.tolist()}.")
    if not np.isfinite(selector.scores_).all() or not _keeps(subject, selector, 2):
        fail(f"after a third class appeared, scores_ is {selector.scores_}.")
    declared = subject.new().partial_fit(X, y, classes=[1, -5, 0]).classes_.tolist()
    if declared != [1, -5, 0]:
        fail(f"classes=[1, -5, 0] must make classes_ that, not {declared}.")


def _labels_of_any_type(subject: Subject) -> None:
    """Labels may be text, bool, int, whole floats or several types at once; the scores are the same."""
    if subject.regression:
        skip("a regression has no labels")
    X, y = subject.rows()
    plain = subject.new().partial_fit(X, y)
    pairs = [
        ("ham", "spam"),
        (False, True),
        (-1, 1),
        (np.int8(3), np.int8(7)),
        (1.0, 2.0),
        (1, "one"),
        (b"n", b"y"),
    ]
    for pair in pairs:
        labels = np.array(pair, dtype=object if type(pair[0]) is not type(pair[1]) else None)[y]
        for given in (labels, labels.astype(object), labels.tolist()):
            selector = subject.new().partial_fit(X, given)
            compare_scores(selector, plain, f"labels {pair[0]!r} and {pair[1]!r}, and 0 and 1")
            if selector.classes_.tolist() != list(pair):
                fail(f"labels {pair[0]!r} and {pair[1]!r} make classes_ {selector.classes_.tolist()}.")
            selector.partial_fit(X, given)
            compare_scores(
                selector, clone(plain).partial_fit(X, y).partial_fit(X, y), f"the labels {pair} again"
            )


def _sample_weights(subject: Subject) -> None:
    """Equal weights change nothing, rows of weight 0 do not count, and impossible weights are refused."""
    X, y = subject.rows()
    none = subject.new().partial_fit(X, y)
    try:
        ones = subject.new().partial_fit(X, y, sample_weight=np.ones(len(X)))
    except (ValueError, TypeError) as error:
        refuses(
            lambda: subject.new().partial_fit(X, y, sample_weight=np.ones(len(X))), "weights", "sample_weight"
        )
        skip(f"the method takes no weights ({error})")
    compare(ones, none, "every weight 1, and no weights", tolerance=_ROUNDING)
    few, half = np.arange(40), np.repeat([1.0, 0.0], [40, 50])
    compare_scores(
        subject.new().partial_fit(X, y, sample_weight=half),
        subject.new().partial_fit(X[few], y[few]),
        "rows of weight 0, and without these rows",
        tolerance=_ROUNDING,
    )
    bad = {"too few weights": half[1:], "a negative weight": half - 1.0, "a weight NaN": half * np.nan}
    for what, weights in bad.items():
        _refuses_batch(subject, (X, y), what, "sample_weight", sample_weight=weights)


def _merge(subject: Subject) -> None:
    """Merged parts of a stream equal the whole, in whatever order, and the other part stays as it is."""
    if not hasattr(subject.prototype, "merge"):
        skip("the method cannot be merged")
    batches = [subject.rows(seed=seed) for seed in range(3)]
    classes = None if subject.regression else [0, 1]

    def part(*which: int) -> Any:
        selector = subject.new()
        for i in which:
            selector.partial_fit(*batches[i], classes=classes)
        return selector

    other = part(1)
    merged = part(0).merge(other)
    compare(other, part(1), "a part that was merged into another, and the same part")
    compare(merged, part(0, 1), "two parts merged, and the whole", tolerance=_ROUNDING)
    left, right = part(0).merge(part(1)).merge(part(2)), part(0).merge(part(1).merge(part(2)))
    compare(left, right, "(a + b) + c, and a + (b + c)", tolerance=_ROUNDING)
    compare(left, part(0, 1, 2), "three parts merged, and the whole", tolerance=_ROUNDING)
    if classes is not None:
        X, y = batches[0]
        zeros, ones = (subject.new().partial_fit(X[y == c], y[y == c], classes=classes) for c in (0, 1))
        compare(
            zeros.merge(ones),
            subject.new().partial_fit(X, y, classes=classes),
            "a part of each class, merged, and the whole",
            tolerance=_ROUNDING,
        )


# -- the caller's data -------------------------------------------------------------------------------------


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
    """Arrays that cannot be written to are learned from."""
    X, y = subject.rows()
    weights = np.ones(len(X))
    for array in (X, y, weights):
        array.setflags(write=False)
    compare(subject.new().partial_fit(X, y), subject.learned(), "read-only data, and writable data")
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
        refuses(lambda: subject.new().partial_fit(sp.csr_matrix(X), y), "a CSR matrix")
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


def _frame(subject: Subject, library: str) -> None:
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
    refuses(lambda: selector.partial_fit(other, y), what, *words)
    compare(selector, subject.new().partial_fit(frame, y), f"after refusing {what}, and before")


# -- refusals ----------------------------------------------------------------------------------------------


def _refuses_batch(subject: Subject, batch: tuple[Any, Any], what: str, *words: str, **options: Any) -> None:
    """Fail unless the batch is refused, by a new copy and by one that has learned, and leaves no trace in either."""
    selector = subject.new()
    refuses(lambda: selector.partial_fit(*batch, **options), what, *words)
    if _is_fitted(selector):
        fail(f"after refusing {what} as its first batch, the selector counts as fitted.")
    selector = subject.learned()
    refuses(lambda: selector.partial_fit(*batch, **options), what, *words)
    refuses(lambda: selector.fit(*batch, **options), f"{what} (by fit)", *words)
    compare(selector, subject.learned(), f"after refusing {what}, and before")
    selector.partial_fit(*subject.rows(seed=1))
    compare(selector, subject.learned(2), f"learning on after refusing {what}, and without it")


def _is_fitted(selector: Any) -> bool:
    try:
        return bool(selector.scores_ is not None)
    except NotFittedError:
        return False


def _empty_batch(subject: Subject) -> None:
    """No rows, or no columns, are refused."""
    X, y = subject.rows()
    for what, empty in {"a batch of 0 rows": X[:0], "a batch of 0 columns": X[:, :0]}.items():
        target = y[: len(empty)]
        _refuses_batch(subject, (empty, target), what, "0")
        if subject.tags.sparse:
            _refuses_batch(subject, (sp.csr_matrix(empty), target), f"{what} (CSR)", "0")
    _refuses_batch(subject, (X[0], y[:1]), "one row that is not a table")


def _feature_count(subject: Subject) -> None:
    """Another number of columns than before is refused, naming both."""
    for n_features in (5, 7):
        X, y = subject.rows(n_features=n_features)
        selector = subject.learned()
        what = f"{n_features} columns after 6"
        refuses(lambda: selector.partial_fit(X, y), what, "6", str(n_features))  # noqa: B023
        refuses(lambda: selector.transform(X), f"{what} (by transform)", "6", str(n_features))  # noqa: B023
        compare(selector, subject.learned(), f"after refusing {what}, and before")


def _non_finite(subject: Subject) -> None:
    """NaN and infinity are refused, naming the column and the row, wherever they are."""
    for value in (np.inf, -np.inf, np.nan):
        if np.isnan(value) and subject.tags.allow_nan:
            continue
        for row, column in ((0, 0), (83, 5), (89, 2)):
            X, y = subject.rows()
            X[row, column] = value
            what = f"{value} in row {row}, column {column}"
            _refuses_batch(subject, (X, y), what, f"column {column}", f"row {row}")
            if subject.tags.sparse:
                _refuses_batch(
                    subject, (sp.csr_matrix(X), y), f"{what} (CSR)", f"column {column}", f"row {row}"
                )
    X, y = subject.rows()
    X[3, 1], X[4, 1] = np.inf, -np.inf  # their sum is NaN
    _refuses_batch(subject, (X.astype(np.float32), y), "inf and -inf in float32", "column 1", "row 3")


def _not_numbers(subject: Subject) -> None:
    """Text and complex numbers are refused."""
    X, y = subject.rows()
    text = X.astype(object)
    text[7, 3] = "seven"
    _refuses_batch(subject, (text, y), "text", "3", "seven")
    _refuses_batch(subject, (X + 1j, y), "complex numbers", "omplex")


def _impossible_targets(subject: Subject) -> None:
    """A target that is missing, too short, a table, or has gaps is refused."""
    X, y = subject.rows()
    gaps, nothing = y.astype(np.float64), y.astype(object)
    gaps[8], nothing[8] = np.nan, None
    targets: dict[str, tuple[Any, tuple[str, ...]]] = {
        "no target": (None, ("y",)),
        "a target that is too short": (y[1:], ("90", "89")),
        "a target of two columns": (np.column_stack([y, y]), ("y",)),
        "a target with NaN": (gaps, ("row 8",)),
        "a target with None": (nothing, ("row 8",)),
    }
    for what, (target, words) in targets.items():
        _refuses_batch(subject, (X, target), what, *words)
    if not subject.regression:
        _refuses_batch(subject, (X, 0.5 * y), "labels that are not whole", "0.5")


def _impossible_selection(subject: Subject) -> None:
    """`n_features_to_select` of 0, more than there are, or no number, is refused when rows arrive, not before."""
    if subject.decides_how_many:
        skip("the method decides how many features to keep")
    X, y = subject.rows()
    for value in (0, -1, 7, 0.0, 1.5, -0.5, float("nan"), "a", None, True):
        selector = subject.new(n_features_to_select=value)
        if selector._decides_how_many:
            continue  # None leaves it to the method
        refuses(
            lambda: selector.partial_fit(X, y),  # noqa: B023
            f"n_features_to_select={value!r} of 6 columns",
            "n_features_to_select",
            repr(value),
        )
        if _is_fitted(selector):
            fail(f"after refusing n_features_to_select={value!r}, the selector counts as fitted.")


# -- shapes ------------------------------------------------------------------------------------------------


def _one_row(subject: Subject) -> None:
    """Rows may come one at a time, from the first on."""
    X, y = subject.rows()
    selector = subject.new()
    for i in range(20):
        selector.partial_fit(X[i : i + 1], y[i : i + 1])
    if selector.n_seen_ != 20 or not np.isfinite(selector.scores_).all():
        fail(f"after 20 rows one at a time, n_seen_ is {selector.n_seen_} and scores_ {selector.scores_}.")


def _one_feature(subject: Subject) -> None:
    """One column is enough, and is selected."""
    X, y = subject.rows(n_features=1)
    selector = subject.new(n_features_to_select=1).partial_fit(X, y)
    if selector.get_support().tolist() != [True] or not np.isfinite(selector.scores_).all():
        fail(f"of one column, get_support() is {selector.get_support()} and scores_ {selector.scores_}.")


def _constant_features(subject: Subject) -> None:
    """Columns that never change, all zero or not, leave the scores finite and are never the best."""
    X, y = subject.rows()
    X[:, 0], X[:, 5] = 0.0, 3.0
    selector = subject.new().fit(X, y).partial_fit(X, y)
    if not np.isfinite(selector.scores_).all() or int(np.argmax(selector.scores_)) in (0, 5):
        fail(f"columns 0 and 5 are constant, and scores_ is {selector.scores_}.")


def _wide_and_long(subject: Subject) -> None:
    """Many more columns than rows, and many more rows than columns."""
    for n_rows, n_features in ((5, 2000), (5000, 2)):
        X, y = subject.rows(n_rows, n_features)
        scores = subject.new().partial_fit(X, y).scores_
        if scores.shape != (n_features,) or not np.isfinite(scores).all():
            fail(
                f"{n_rows} rows of {n_features} columns give scores_ of shape {scores.shape}, or not finite."
            )


# -- read-outs ---------------------------------------------------------------------------------------------


def _selects_the_best(subject: Subject) -> None:
    """The support is the columns of the largest scores, as many as asked for; transform returns them in order."""
    X, y = subject.rows()
    many: list[Any] = [1] if subject.decides_how_many else [1, 3, np.int64(2), 6, 0.5, 1.0, 0.01]
    for asked in many:
        selector = subject.new(n_features_to_select=asked).partial_fit(X, y)
        scores, support = selector.scores_, selector.get_support()
        if scores.dtype != np.float64 or scores.shape != (6,):
            fail(f"scores_ must be float64 of shape (6,), not {scores.dtype} of shape {scores.shape}.")
        best = top_mask(scores, n_to_select(asked, 6))
        if not subject.decides_how_many and not np.array_equal(support, best):
            fail(
                f"n_features_to_select={asked!r} selects {np.flatnonzero(support)}, and scores_ is {scores}."
            )
        if not np.array_equal(selector.transform(X), X[:, support]):
            fail("transform does not return the selected columns in their order.")
        names = [f"x{j}" for j in np.flatnonzero(support)]
        if selector.get_feature_names_out().tolist() != names:
            fail(f"get_feature_names_out() is {selector.get_feature_names_out().tolist()}, not {names}.")


def _reading_changes_nothing(subject: Subject) -> None:
    """Reading scores and support, or transforming, does not change what is learned next."""
    selector = subject.learned()
    X, _ = subject.rows()
    for _ in range(2):
        selector.transform(X[:, :]), selector.get_support(), selector.scores_, repr(selector)
    selector.partial_fit(*subject.rows(seed=1))
    compare(selector, subject.learned(2), "reading between two batches, and not")


def _not_fitted(subject: Subject) -> None:
    """Before the first rows, read-outs raise NotFittedError."""
    X, _ = subject.rows()
    reads: dict[str, Callable[[Any], Any]] = {
        "scores_": lambda selector: selector.scores_,
        "get_support()": lambda selector: selector.get_support(),
        "transform(X)": lambda selector: selector.transform(X),
    }
    for what, read in reads.items():
        try:
            read(subject.new())
        except NotFittedError:
            continue
        fail(f"{what} before the first rows does not raise NotFittedError.")


# -- copies ------------------------------------------------------------------------------------------------


def _clone(subject: Subject) -> None:
    """A clone has the same parameters and has learned nothing; the constructor stores them as they are."""
    selector = subject.learned()
    copied = clone(selector)
    if repr(copied.get_params()) != repr(selector.get_params()):
        fail(f"the clone of {selector!r} is {copied!r}.")
    if _is_fitted(copied):
        fail("a clone counts as fitted.")
    compare(copied.partial_fit(*subject.rows()), selector, "a clone that learned the same, and the original")


def _copies_go_on(subject: Subject) -> None:
    """Pickled, or copied deeply, in the middle of a stream, a selector goes on with the same bits."""
    selector = subject.learned(2)
    copies = {"pickle": pickle.loads(pickle.dumps(selector)), "copy.deepcopy": copy.deepcopy(selector)}
    for what, copied in copies.items():
        _goes_on(subject, selector, copied, what)


def _save_and_load(subject: Subject) -> None:
    """Saved and loaded in the middle of a stream, a selector goes on with the same bits."""
    selector = subject.learned(2)
    with tempfile.TemporaryDirectory() as folder:
        path = save(selector, Path(folder) / "selector.tamis")
        _goes_on(subject, selector, load(path, classes=[type(selector)]), "tamis.save and tamis.load")


def _goes_on(subject: Subject, selector: Any, copied: Any, what: str) -> None:
    compare(copied, selector, f"after {what}, and before")
    copied.partial_fit(*subject.rows(seed=2))
    compare(selector, subject.learned(2), f"after its copy by {what} learned on, and before")
    compare(copied, subject.learned(3), f"learning on after {what}, and without it")


_CHECKS = (
    _batch_equals_loop, _same_data_same_bits, _fit_forgets, _finds_planted_features, _single_class, _late_class,
    _labels_of_any_type, _sample_weights, _merge, _leaves_data_alone, _takes_read_only_data, _read_outs_are_copies,
    _input_kinds, _sparse_kinds, _empty_batch, _feature_count, _non_finite, _not_numbers, _impossible_targets,
    _impossible_selection, _one_row, _one_feature, _constant_features, _wide_and_long, _selects_the_best,
    _reading_changes_nothing, _not_fitted, _clone, _copies_go_on, _save_and_load,
)  # fmt: skip
