"""The base class of concepts: features with their ranges, the relevant ones, and sampling of rows given the class.

A stream with drift is a list of concepts over the same features (`tamis.streams.SyntheticStream`).
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, cast

import numpy as np

from tamis._validation import Array, check_number, is_integer
from tamis.streams.draws import Draws, Ranges

_MOST_TRIES = 1 << 16


@dataclass(frozen=True)
class Feature:
    """A column of a stream: a number in [low, high], or one of `n_values` codes.

    Parameters
    ----------
    name : str
    low, high : float, default=0.0, 1.0
        Smallest and largest value; for a nominal feature 0 and n_values - 1.
    n_values : int, default=0
        Number of values of a nominal feature, at least 2; 0 for a numeric one.
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    n_values: int = 0

    @classmethod
    def nominal(cls, name: str, n_values: int) -> Feature:
        """Return a feature with the codes 0, 1, ..., n_values - 1."""
        return cls(name, 0.0, n_values - 1.0, n_values)


class Concept(ABC):
    """One distribution of rows and classes; a stream may change from one concept to another.

    A subclass is a frozen dataclass whose fields are its parameters. It defines `features` and `relevant`; `label`
    computes the class from the columns in `tied`. If `positive_share` is a number, the class of each row is drawn
    first, and the tied columns are redrawn until they have it.

    Attributes
    ----------
    features : tuple of Feature
        The same for all concepts of a stream.
    relevant : tuple of int
        Columns that the class depends on, in ascending order.
    tied : tuple of int
        Columns that are drawn together: the relevant columns, and those that depend on them.
    positive_share : float or None
        Probability of class 1; None for the natural one.
    n_classes : int
        0 for a regression.
    """

    relevant: tuple[int, ...]
    positive_share: float | None
    n_classes: int = 2

    # Valid values of the parameters; an `int` must be an integer.
    _limits: ClassVar[dict[str, str]] = {}
    _each: ClassVar[tuple[float, float, int]] = (0.0, 1.0, 0)  # range and number of values of each feature
    _n_relevant: ClassVar[int | None] = None  # if their number is fixed

    def __post_init__(self) -> None:
        limits = {"seed": "[0, inf)", "n_features": "[1, inf)", "positive_share": "(0, 1)"} | self._limits
        names = {one.name: one.type for one in fields(cast(Any, self))}
        for name in [name for name in names if name in limits]:
            value, interval = getattr(self, name), limits[name]
            low, high = map(float, interval[1:-1].split(","))
            if value is not None or name != "positive_share":
                check_number(
                    name, value, low=low, high=high, open_low=interval[0] == "(", open_high=interval[-1] == ")",
                    integer=names[name] in ("int", int),
                )  # fmt: skip
        if "relevant" in names:
            _check_relevant(self.relevant, len(self.features), self._n_relevant)

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns of a row."""
        return make_features(cast(Any, self).n_features, *self._each)

    @abstractmethod
    def label(self, values: Array) -> Array:
        """Return the class of each row from its tied columns, shape (n_rows, n_tied)."""

    @property
    def tied(self) -> tuple[int, ...]:
        """Columns that are drawn together."""
        return self.relevant

    def draw(self, draws: Draws, rows: Array, out: Array) -> Array:
        """Draw some rows of the stream.

        Parameters
        ----------
        draws : Draws
        rows : ndarray of shape (n_rows,), integer
            Positions of these rows in the stream.
        out : ndarray of shape (n_rows, at least n_features), float64, C-contiguous
            The features are written into its first columns.

        Returns
        -------
        ndarray of shape (n_rows,)
            The class of each row, without noise.
        """
        draws.child("features").fill(rows, out, self._ranges)
        tied = list(self.tied)
        values = self.shape(out[:, tied])
        if self.positive_share is None:
            y = self.label(values)
        else:
            y = (draws.child("class").one(rows) < self.positive_share).astype(np.intp)
            self.sample_given_class(draws.child("give"), rows, values, y)
        out[:, tied] = self.perturb(draws.child("blur"), rows, values)
        return y

    def shape(self, values: Array) -> Array:
        """Return the tied columns, given independent values of them; unchanged by default."""
        return values

    def perturb(self, draws: Draws, rows: Array, values: Array) -> Array:
        """Return the tied columns with noise, after the class has been determined; unchanged by default."""
        return values

    def sample_given_class(self, draws: Draws, rows: Array, values: Array, y: Array) -> None:
        """Redraw the tied columns of rows until they have the required class, in place."""
        self._redraw(draws, rows, values, y, self._ranges.take(np.array(self.tied)))

    def _redraw(self, draws: Draws, rows: Array, values: Array, y: Array, ranges: Ranges) -> None:
        missing = np.flatnonzero(self.label(values) != y)
        tries, tried = 2, 0
        while len(missing):
            if tried > _MOST_TRIES:
                raise ValueError(
                    f"{self!r} generated no row of class {y[missing[0]]} in {tried} tries: make it more likely."
                )
            drawn = self._candidates(draws.child(tried), rows[missing], ranges.tile(tries))
            fits = self.label(drawn).reshape(-1, tries) == y[missing, None]
            line = fits.argmax(axis=1) + tries * np.arange(len(missing))  # the first that fits, if any
            fits_at_last = fits.reshape(-1)[line]
            values[missing[fits_at_last]] = drawn[line[fits_at_last]]
            missing = missing[~fits_at_last]
            tried, tries = tried + tries, min(4 * tries, 256)

    def _candidates(self, draws: Draws, rows: Array, ranges: Ranges) -> Array:
        """Return values of the tied columns: for each row as many lines as the ranges are repeated."""
        drawn = np.empty((len(rows), len(ranges.low)))
        draws.fill(rows, drawn, ranges)
        return self.shape(drawn.reshape(-1, len(self.tied)))

    @functools.cached_property
    def _ranges(self) -> Ranges:
        return feature_ranges(self.features)


def feature_ranges(features: tuple[Feature, ...]) -> Ranges:
    """Return the ranges of the features; codes are integers."""
    whole = np.array([feature.n_values > 0 for feature in features])
    low = np.array([feature.low for feature in features], dtype=np.float64)
    span = np.array([one.n_values or one.high - one.low for one in features], dtype=np.float64)
    return Ranges(low, span, whole)


@functools.lru_cache  # one tuple for all concepts of a stream, for fast comparison
def make_features(n: int, low: float = 0.0, high: float = 1.0, n_values: int = 0) -> tuple[Feature, ...]:
    """Return `n` features of one kind, named x0, x1, ..."""
    if n_values:
        return tuple(Feature.nominal(f"x{j}", n_values) for j in range(n))
    return tuple(Feature(f"x{j}", low, high) for j in range(n))


def _check_relevant(relevant: Any, n_features: int, size: int | None) -> None:
    """Raise unless the relevant columns are distinct, ascending and within the features."""
    whole = isinstance(relevant, tuple) and all(map(is_integer, relevant))
    if not whole or list(relevant) != sorted(set(relevant)) or min(relevant, default=-1) < 0:
        raise ValueError(f"relevant must be a tuple of column numbers in ascending order, got {relevant!r}.")
    if max(relevant) >= n_features:
        raise ValueError(f"relevant names column {max(relevant)}, but there are only {n_features} features.")
    if size is not None and len(relevant) != size:
        raise ValueError(f"relevant must name {size} columns, got {relevant!r}.")
