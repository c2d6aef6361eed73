"""Features that are appended to those of a concept: irrelevant ones, and redundant ones made from another column.

| kind | value, from x in [low, high] with middle E and width A | disturbed |
|---|---|---|
| linear | x + noise * A * U(-1, 1) | always; Pearson correlation 1 / sqrt(1 + 4 noise^2) for a uniform x |
| copy | x | with probability `noise`: uniform in [low, high], or another code |
| quadratic | (x - E)^2 | with probability `noise`: uniform in [0, (A/2)^2] |
| gaussian | exp(-(x - E)^2 / (2 (A/4)^2)) | with probability `noise`: uniform in [exp(-2), 1] |
| cosine | cos(2 pi (x - low) / A) | with probability `noise`: uniform in [-1, 1] |

The last three are two-to-one: they lose the side of x, so they are redundant to it but do not carry all of it. A
nominal feature is always copied. Errata of Barddal's thesis: E is (high + low)/2, not (high - low)/2 (Eq. 4.6); that
feature is a squared deviation, called RBF there; the cosine must subtract the minimum (Eq. 4.7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array, check_choice, check_number, is_integer
from tamis.streams.concepts.concept import Feature
from tamis.streams.draws import Draws

__all__ = ["Irrelevant", "Made", "Redundant", "make"]

_KINDS = ("linear", "copy", "quadratic", "gaussian", "cosine")


@dataclass(frozen=True)
class Irrelevant:
    """Features that have nothing to do with the class.

    Parameters
    ----------
    n : int
        How many, at least 1.
    n_values : int, default=0
        0 for numbers uniform in [0, 1], else the number of values of a nominal feature, at least 2.

    Examples
    --------
    >>> Irrelevant(1, n_values=10).features
    (Feature(name='irrelevant0', low=0.0, high=9.0, n_values=10),)
    """

    n: int
    n_values: int = 0

    def __post_init__(self) -> None:
        check_number("n", self.n, low=1, integer=True)
        check_number("n_values", self.n_values, low=0, integer=True)
        if self.n_values == 1:
            raise ValueError("n_values must be 0 for numbers or at least 2 for categories, got 1.")

    @property
    def features(self) -> tuple[Feature, ...]:
        """What is appended."""
        names = [f"irrelevant{j}" for j in range(self.n)]
        return tuple(
            Feature.nominal(name, self.n_values) if self.n_values else Feature(name) for name in names
        )


@dataclass(frozen=True)
class Redundant:
    """Features made from other columns.

    Parameters
    ----------
    n : int
        How many, at least 1.
    kind : {"linear", "copy", "quadratic", "gaussian", "cosine"}, default="linear"
        How they are made; see the module.
    noise : float in [0, 1], default=0.1
        How much they are disturbed.
    source : {"relevant", "any"} or tuple of int, default="relevant"
        Columns they are made from, in turn: those relevant in any concept, all, or the ones named. Kinds other than
        "linear" and "copy" pass over nominal columns.

    Examples
    --------
    >>> columns = (Feature("a"), Feature("b"), Feature("c"))
    >>> Redundant(3, source="any").sources(columns, relevant=(1,))
    (0, 1, 2)
    >>> Redundant(3).sources(columns, relevant=(1,))
    (1, 1, 1)
    """

    n: int
    kind: str = "linear"
    noise: float = 0.1
    source: str | tuple[int, ...] = "relevant"

    def __post_init__(self) -> None:
        check_number("n", self.n, low=1, integer=True)
        check_choice("kind", self.kind, _KINDS)
        check_number("noise", self.noise, low=0, high=1)
        if isinstance(self.source, str):
            check_choice("source", self.source, ("relevant", "any"))
        elif not self.source or not all(is_integer(j) and j >= 0 for j in self.source):
            raise ValueError(f"source must be 'relevant', 'any' or a tuple of columns, got {self.source!r}.")

    def sources(self, features: tuple[Feature, ...], relevant: tuple[int, ...]) -> tuple[int, ...]:
        """Return the column that each new feature is made from.

        Parameters
        ----------
        features : tuple of Feature
            Those of the concepts.
        relevant : tuple of int
            Columns relevant in any of the concepts.

        Raises
        ------
        ValueError
            If there is no column it can be made from.
        """
        if isinstance(self.source, str):
            columns = relevant if self.source == "relevant" else tuple(range(len(features)))
        else:
            columns = self.source
            if max(columns) >= len(features):
                raise ValueError(
                    f"source names column {max(columns)}, but the concepts have {len(features)}."
                )
        if self.kind not in ("linear", "copy"):
            columns = tuple(j for j in columns if not features[j].n_values)
        if not columns:
            raise ValueError(
                f"{self!r} has no numeric column to be made from: choose kind='copy' or another source."
            )
        return tuple(columns[i % len(columns)] for i in range(self.n))

    def features(self, sources: Sequence[Feature]) -> tuple[Feature, ...]:
        """Return what is appended, given what it is made from; named after that and the kind."""
        return tuple(
            Feature(f"{feature.name}_{self.kind}", *self._bounds(feature), feature.n_values)
            for feature in sources
        )

    def _bounds(self, feature: Feature) -> tuple[float, float]:
        low, high = feature.low, feature.high
        if feature.n_values or self.kind == "copy":
            return low, high
        if self.kind == "linear":
            span = self.noise * (high - low)
            return low - span, high + span
        return {
            "quadratic": (0.0, ((high - low) / 2) ** 2),
            "gaussian": (math.exp(-2.0), 1.0),
            "cosine": (-1.0, 1.0),
        }[self.kind]


class Made:
    """Appended columns of one kind that are written together.

    Parameters
    ----------
    kind : str
        As of :class:`Redundant`.
    noise : float
    sources, features : sequence of Feature
        What they are made from, and what they are.
    at, to : ndarray of shape (n_columns,), integer
        Columns they are made from, and where they are written.
    """

    def __init__(
        self,
        kind: str,
        noise: float,
        sources: Sequence[Feature],
        features: Sequence[Feature],
        at: Array,
        to: Array,
    ) -> None:
        self._kind, self._noise, self._at = kind, noise, at
        gapless = to[-1] - to[0] == len(to) - 1
        self._to: Any = slice(int(to[0]), int(to[-1]) + 1) if gapless else to
        self._low, self._width = _bounds(sources)
        self._made_low, self._made_width = _bounds(features)
        self._n_values = np.array([feature.n_values for feature in features])

    def write(self, draws: Draws, rows: Array, X: Array) -> None:
        """Write the columns of some rows of the stream into `X`, whose sources are there already."""
        x, u = X[:, self._at], draws.uniform(rows, len(self._at))
        if self._kind == "linear":
            u *= 2 * self._noise * self._width
            u -= self._noise * self._width
            u += x
            X[:, self._to] = u
            return
        hit = np.flatnonzero(u < self._noise)
        again, column = (
            u.ravel()[hit] / (self._noise or 1.0),
            hit % len(self._at),
        )  # u, where hit: uniform once more
        if self._n_values.any():
            m = self._n_values[column]
            fresh = (x.ravel()[hit] + 1 + np.floor(again * (m - 1))) % m
        else:
            fresh = self._made_low[column] + again * self._made_width[column]
        made = self._value(x)
        made.ravel()[hit] = fresh
        X[:, self._to] = made

    def _value(self, x: Array) -> NDArray[np.float64]:
        """Return what the feature is where it is not disturbed; `x` is used up."""
        if self._kind == "cosine":
            x -= self._low
            x *= 2 * np.pi / self._width
            return np.cos(x, out=x)
        if self._kind != "copy":
            x -= self._low + self._width / 2
            x *= x
        if self._kind == "gaussian":
            x *= -8 / self._width**2
            np.exp(x, out=x)
        return x


def _bounds(features: Sequence[Feature]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    low = np.array([feature.low for feature in features])
    return low, np.array([feature.high for feature in features]) - low


def make(
    part: Redundant, sources: Sequence[Feature], features: Sequence[Feature], at: Array, first: int
) -> list[Made]:
    """Return the columns of a part, numbers and categories apart, to be written from column `first` on."""
    nominal = np.array([feature.n_values > 0 for feature in sources])
    groups = []
    for kind, members in ((part.kind, np.flatnonzero(~nominal)), ("copy", np.flatnonzero(nominal))):
        if len(members):
            mine, made = [sources[int(i)] for i in members], [features[int(i)] for i in members]
            groups.append(Made(kind, part.noise, mine, made, at[members], first + members))
    return groups
