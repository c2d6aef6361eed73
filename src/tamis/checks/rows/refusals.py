"""Input that a row selector rejects, and that it is unchanged afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from tamis.checks.subject import Subject, compare, fail, rejects, skip


def _refuses_batch(subject: Subject, batch: tuple[Any, Any], what: str, *words: str, **options: Any) -> None:
    """Fail unless the batch is refused, by a new copy and by one that has learned, and leaves no trace in either."""
    selector = subject.new()
    rejects(lambda: selector.partial_fit(*batch, **options), what, *words)
    if _is_fitted(selector):
        fail(f"after refusing {what} as its first batch, the selector counts as fitted.")
    selector = subject.learned()
    rejects(lambda: selector.partial_fit(*batch, **options), what, *words)
    rejects(lambda: selector.fit(*batch, **options), f"{what} (by fit)", *words)
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
        rejects(lambda: selector.partial_fit(X, y), what, "6", str(n_features))  # noqa: B023
        rejects(lambda: selector.transform(X), f"{what} (by transform)", "6", str(n_features))  # noqa: B023
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
    if subject.chooses_count:
        skip("the method decides how many features to keep")
    X, y = subject.rows()
    for value in (0, -1, 7, 0.0, 1.5, -0.5, float("nan"), "a", None, True):
        selector = subject.new(n_features_to_select=value)
        if selector._chooses_count:
            continue  # None leaves it to the method
        rejects(
            lambda: selector.partial_fit(X, y),  # noqa: B023
            f"n_features_to_select={value!r} of 6 columns",
            "n_features_to_select",
            repr(value),
        )
        if _is_fitted(selector):
            fail(f"after refusing n_features_to_select={value!r}, the selector counts as fitted.")


CHECKS = (
    _empty_batch,
    _feature_count,
    _non_finite,
    _not_numbers,
    _impossible_targets,
    _impossible_selection,
)
