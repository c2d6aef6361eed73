"""Irrelevant and redundant features that are appended to the features of a concept.

| kind | value, from x in [low, high] with middle E and width A | disturbed |
|---|---|---|
| linear | x + noise * A * U(-1, 1) | always; Pearson correlation 1 / sqrt(1 + 4 noise^2) for a uniform x |
| copy | x | with probability `noise`: uniform in [low, high], or another code |
| quadratic | (x - E)^2 | with probability `noise`: uniform in [0, (A/2)^2] |
| gaussian | exp(-(x - E)^2 / (2 (A/4)^2)) | with probability `noise`: uniform in [exp(-2), 1] |
| cosine | cos(2 pi (x - low) / A) | with probability `noise`: uniform in [-1, 1] |

The last three are symmetric about E, so they are redundant with x but contain only part of its information. A nominal
feature is always copied. Errata of Barddal's thesis: E is (high + low)/2, not (high - low)/2 (Eq. 4.6); the feature
called RBF there is a squared deviation; the cosine must subtract the minimum (Eq. 4.7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, check_choice, check_number, is_integer
from tamis.streams.concepts.concept import Feature
from tamis.streams.draws import Draws, unit

_KINDS = ("linear", "copy", "quadratic", "gaussian", "cosine")
_LINEAR, _COPY, _GAUSSIAN, _COSINE = 0, 1, 3, 4  # positions in _KINDS, for the kernel
_BLOCK = 64  # rows
_S = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(10))


@dataclass(frozen=True)
class Irrelevant:
    """Appends features that are independent of the class.

    Parameters
    ----------
    n : int
        Number of features, at least 1.
    n_values : int, default=0
        0 for numeric features, uniform in [0, 1]; otherwise the number of values of a nominal feature, at least 2.

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
        """The appended features."""
        names = [f"irrelevant{j}" for j in range(self.n)]
        return tuple(Feature.nominal(one, self.n_values) if self.n_values else Feature(one) for one in names)


@dataclass(frozen=True)
class Redundant:
    """Appends features that are computed from other columns.

    Parameters
    ----------
    n : int
        Number of features, at least 1.
    kind : {"linear", "copy", "quadratic", "gaussian", "cosine"}, default="linear"
        How the features are computed; see the module docstring.
    noise : float in [0, 1], default=0.1
        Amount of noise.
    source : {"relevant", "any"} or tuple of int, default="relevant"
        Columns from which the features are computed, in turn: those relevant in any concept, all, or the given ones.
        Kinds other than "linear" and "copy" skip nominal columns.

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
        """Return the source column of each new feature.

        Parameters
        ----------
        features : tuple of Feature
            The features of the concepts.
        relevant : tuple of int
            Columns relevant in any of the concepts.

        Raises
        ------
        ValueError
            If no column is suitable.
        """
        if isinstance(self.source, str):
            columns = relevant if self.source == "relevant" else tuple(range(len(features)))
        else:
            columns = self.source
            if max(columns) >= len(features):
                raise ValueError(
                    f"source names column {max(columns)}, but the concepts have {len(features)} columns."
                )
        if self.kind not in ("linear", "copy"):
            columns = tuple(j for j in columns if not features[j].n_values)
        if not columns:
            raise ValueError(f"{self!r} has no numeric source column: choose kind='copy' or another source.")
        return tuple(columns[i % len(columns)] for i in range(self.n))

    def features(self, sources: Sequence[Feature]) -> tuple[Feature, ...]:
        """Return the appended features, given their source columns; their names combine source and kind."""
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
        square = ((high - low) / 2) ** 2
        return {"quadratic": (0.0, square), "gaussian": (math.exp(-2.0), 1.0), "cosine": (-1.0, 1.0)}[
            self.kind
        ]


@njit(strict=True)
def _cosine(z: float) -> float:
    """Return cos(2 pi z), within 4e-16: Taylor's sum of the sine, at half the time of the library's cosine."""
    x = 2.0 * math.pi * (0.25 - abs(z - math.floor(z + 0.5)))  # in [-pi/2, pi/2], where sin(x) is cos(2 pi z)
    q = x * x
    tail = _S[5] + q * (_S[6] + q * (_S[7] + q * (_S[8] + q * _S[9])))
    return x * (1.0 + q * (_S[1] + q * (_S[2] + q * (_S[3] + q * (_S[4] + q * tail)))))


@njit(strict=True)
def _replace_codes(x: Array, u: Array, noise: float, n_values: float) -> None:
    """Replace each code with probability `noise` by another one, in place."""
    for i in range(x.shape[0]):
        if u[i] < noise:  # u / noise is again uniform and selects the other code
            x[i] = (x[i] + 1.0 + math.floor(u[i] / noise * (n_values - 1.0))) % n_values


@njit(strict=True)
def _transform(kind: int, line: Array, x: Array, u: Array) -> None:
    """Transform the values of one source column into the redundant column, in place; `u` are uniform numbers."""
    noise, low, span, made_low, made_span, n_values = line[0], line[1], line[2], line[3], line[4], line[5]
    if kind == _LINEAR:
        for i in range(x.shape[0]):
            x[i] += (2.0 * u[i] - 1.0) * noise * span
        return
    if n_values > 0:
        _replace_codes(x, u, noise, n_values)
        return
    if kind == _COSINE:
        for i in range(x.shape[0]):
            x[i] = _cosine((x[i] - low) / span)
    elif kind != _COPY:
        for i in range(x.shape[0]):
            x[i] = (x[i] - low - span / 2.0) ** 2
    if kind == _GAUSSIAN:
        for i in range(x.shape[0]):
            x[i] = math.exp(-8.0 * x[i] / span**2)
    scale = made_span / noise if noise > 0 else 0.0
    for i in range(x.shape[0]):
        x[i] = made_low + u[i] * scale if u[i] < noise else x[i]


@njit(strict=True)
def _write(key: Any, rows: Array, at: Array, kinds: Array, plan: Array, X: Array, first: Any) -> None:
    """Write a column for each line of the plan, block by block, in short loops that the compiler vectorises."""
    width = np.uint64(at.shape[0])
    x, u = np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(0, rows.shape[0], _BLOCK):
        n = min(_BLOCK, rows.shape[0] - start)
        for j in range(at.shape[0]):
            for i in range(n):
                x[i] = X[start + i, at[j]]
            for i in range(n):
                u[i] = unit(key, rows[start + i] * width + np.uint64(j))
            _transform(kinds[j], plan[j], x[:n], u[:n])
            for i in range(n):
                X[start + i, first + np.uint64(j)] = x[i]


class RedundantColumns:
    """Adjacent redundant columns, written in one pass over the rows.

    Parameters
    ----------
    part : Redundant
    sources, features : sequence of Feature
        Their origin and kind.
    at : sequence of int
        Columns from which they are computed.
    first : int
        Index of the first column written.
    """

    def __init__(
        self,
        part: Redundant,
        sources: Sequence[Feature],
        features: Sequence[Feature],
        at: Sequence[int],
        first: int,
    ) -> None:
        self._first, self._at = np.uint64(first), np.array(at, dtype=np.uint64)
        kinds = ["copy" if x.n_values else part.kind for x in sources]
        self._kinds = np.array([_KINDS.index(kind) for kind in kinds])
        self._plan = np.array([
            (part.noise, x.low, x.high - x.low, made.low, made.high - made.low, x.n_values)
            for x, made in zip(sources, features, strict=True)
        ], dtype=np.float64)  # fmt: skip

    def write(self, draws: Draws, rows: Array, X: Array) -> None:
        """Write the columns of some rows of the stream into `X`, which already contains their sources."""
        _write(draws.key, rows.astype(np.uint64), self._at, self._kinds, self._plan, X, self._first)
