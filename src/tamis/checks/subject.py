"""The selector under test: fresh copies, data, and the comparison of two of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from tamis._validation import Array
from tamis.base import RowSelector

__all__ = ["Subject", "compare", "fail", "rejects", "skip", "table"]


@dataclass(frozen=True)
class Subject:
    """A row selector, and what it promises beyond the contract.

    Attributes
    ----------
    prototype : RowSelector
        Never fitted; every check learns with copies of it.
    per_batch : bool
        A batch need not equal its rows one at a time.
    multiclass : bool
        There may be more than two classes.
    rounding : bool
        A batch equals its rows one at a time up to rounding only.
    """

    prototype: RowSelector
    per_batch: bool = False
    multiclass: bool = True
    rounding: bool = False

    @property
    def regression(self) -> bool:
        """Whether the target is a number."""
        return self.prototype._is_regression()

    @property
    def chooses_count(self) -> bool:
        """Whether the method itself decides how many features to keep."""
        return self.prototype._chooses_count

    @property
    def tags(self) -> Any:
        """The scikit-learn input tags of the selector."""
        return get_tags(self.prototype).input_tags

    def new(self, n_features_to_select: Any = 2) -> Any:
        """Return an unfitted copy, with a fixed seed if it has one."""
        selector = clone(self.prototype)
        if not self.chooses_count:
            selector.set_params(n_features_to_select=n_features_to_select)
        if "random_state" in selector.get_params():
            selector.set_params(random_state=0)
        return selector

    def rows(
        self, n_rows: int = 90, n_features: int = 6, seed: int = 0, relevant: tuple[int, int] = (1, 4)
    ) -> tuple[NDArray[np.float64], Array]:
        """Return rows whose target is decided by two columns.

        The values are multiples of 1/8, and not large: float32 holds them exactly, and about a third are zero.
        """
        rng = np.random.default_rng(seed)
        X = np.round(np.clip(rng.normal(size=(n_rows, n_features)), -4.0, 4.0) * 8.0) / 8.0
        X[rng.random(size=X.shape) < 0.3] = 0.0
        if self.tags.positive_only:
            X = np.abs(X)
        a, b = (column % n_features for column in relevant)
        signal = X[:, a] - X[:, b] if a != b else X[:, a]
        signal = signal + 0.1 * rng.normal(size=n_rows)
        return X, signal if self.regression else (signal > np.median(signal)).astype(np.int64)

    def learned(self, n_batches: int = 1, **options: Any) -> Any:
        """Return a copy that has learned the first batches of 90 rows of 6 features."""
        selector = self.new(**options)
        for seed in range(n_batches):
            selector.partial_fit(*self.rows(seed=seed))
        return selector


def fail(message: str) -> NoReturn:
    """Raise the error of a failed check."""
    raise AssertionError(message)


def skip(reason: str) -> NoReturn:
    """Say that a check does not apply, and why; pytest and unittest report it as skipped."""
    raise SkipTest(reason)


def compare(one: Any, other: Any, what: str, *, tolerance: float = 0.0) -> None:
    """Fail unless two selectors have the same read-outs.

    Parameters
    ----------
    one, other : RowSelector
    what : str
        What was done differently to the two, for the message.
    tolerance : float
        0: the same bits; else the largest difference of two scores, as a fraction of the largest score.
    """
    for name in ("n_features_in_", "n_seen_", "warming_up_"):
        if getattr(one, name) != getattr(other, name):
            fail(f"{what}: {name} is {getattr(one, name)!r} and {getattr(other, name)!r}.")
    compare_scores(one, other, what, tolerance=tolerance)
    for name in ("classes_", "feature_names_in_"):
        left, right = (getattr(selector, name, np.array([])).tolist() for selector in (one, other))
        if left != right:
            fail(f"{what}: {name} is {left!r} and {right!r}.")


def compare_scores(one: Any, other: Any, what: str, *, tolerance: float = 0.0) -> None:
    """Fail unless two selectors give the same scores; see `compare`."""
    left, right = np.asarray(one.scores_), np.asarray(other.scores_)
    if left.shape != right.shape:
        fail(f"{what}: scores_ has shape {left.shape} and {right.shape}.")
    bound = tolerance * max(float(np.abs(right).max(initial=0.0)), 1e-300)
    differs = ~(np.abs(left - right) <= bound)
    if differs.any():
        column = int(np.argmax(differs))
        fail(
            f"{what}: scores_ differs in {np.count_nonzero(differs)} of {len(left)} columns, first in column"
            f" {column}: {left[column]:.17g} and {right[column]:.17g}."
        )


def rejects(act: Callable[[], Any], what: str, *words: str) -> None:
    """Fail unless `act` raises a ValueError or TypeError that says each of the words in one line."""
    try:
        act()
    except (ValueError, TypeError) as error:
        message = str(error)
        missing = [word for word in words if word not in message]
        if missing:
            fail(f"{what} is refused, but the message does not say {', '.join(missing)}: {message}")
        if "\n" in message:
            fail(f"{what} is refused in more than one line: {message}")
    else:
        fail(f"{what} is accepted, but must be refused.")


def table(library: str, X: Array, names: list[str]) -> Any:
    """Return the rows as a frame of a library; skips if it is not installed."""
    try:
        module: Any = importlib.import_module(library)
    except ImportError:
        skip(f"{library} is not installed")
    if library == "pandas":
        return module.DataFrame(X, columns=names)
    if library == "polars":
        return module.DataFrame(X, schema=names)
    return module.table({name: X[:, j] for j, name in enumerate(names)})
