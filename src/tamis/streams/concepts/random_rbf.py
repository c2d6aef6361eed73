"""Random RBF: classes are clouds around random centres (Kirkby 2007, as in MOA), in a few of many features.

Deviation from MOA: all classes are equally likely, and each has at least one centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tamis._validation import Array, Floats, check_number
from tamis.streams.concepts.concept import Concept
from tamis.streams.draws import Draws, Ranges


@dataclass(frozen=True)
class RandomRBF(Concept):
    """Classes are clouds around random centres in the relevant features; the others are uniform in [0, 1].

    A row lies in a random direction from its centre, at a normally distributed distance whose standard deviation is
    drawn per centre, uniform in [0, 1). Values may lie outside [0, 1].

    Parameters
    ----------
    relevant : tuple of int, default=(0, 1, 2)
        Columns that depend on the class, ascending.
    n_features : int, default=10
        Number of columns.
    n_classes : int, default=2
        At least 2.
    n_centres : int, default=50
        At least n_classes; the classes are assigned to the centres in turn.
    seed : int, default=0
        Seed of the centres; at least 0.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    References
    ----------
    Bifet, Holmes, Kirkby, Pfahringer (2010). MOA: Massive Online Analysis. JMLR 11.

    Examples
    --------
    >>> RandomRBF(relevant=(1, 4), n_centres=7, seed=1).centres.shape
    (7, 2)
    """

    relevant: tuple[int, ...] = (0, 1, 2)
    n_features: int = 10
    n_classes: int = 2
    n_centres: int = 50
    seed: int = 0
    positive_share = None

    _limits: ClassVar = {"n_classes": "[2, inf)"}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("n_centres", self.n_centres, low=self.n_classes, integer=True)

    @cached_property
    def centres(self) -> Floats:
        """Positions of the centres, shape (n_centres, n_relevant)."""
        return np.random.default_rng(self.seed).random((self.n_centres, len(self.relevant)))

    @cached_property
    def _clouds(self) -> tuple[Floats, Floats]:
        """Standard deviation of each cloud, and the cumulative probabilities."""
        rng = np.random.default_rng((self.seed, 1))
        deviation, weight = rng.random(self.n_centres), rng.random(self.n_centres) + 1e-9
        classes = np.arange(self.n_centres) % self.n_classes
        weight /= np.bincount(classes, weight)[classes] * self.n_classes
        return deviation, np.cumsum(weight)

    def label(self, values: Array) -> Array:
        """Return the class of the nearest centre; approximate, because clouds overlap."""
        gaps = ((values[:, None, :] - self.centres) ** 2).sum(axis=2)
        return np.asarray(gaps.argmin(axis=1) % self.n_classes)

    def draw(self, draws: Draws, rows: Array, out: Array) -> Array:
        """Draw some rows of the stream; see :class:`Concept`."""
        draws.child("features").fill(rows, out, Ranges.same(self.n_features))
        deviation, chances = self._clouds
        which: Array = np.searchsorted(chances[:-1], draws.child("class").one(rows), side="right")
        direction = draws.child("direction").normal(rows, len(self.relevant))
        reach = draws.child("distance").normal(rows, 1) * deviation[which, None]
        reach /= np.sqrt((direction**2).sum(axis=1, keepdims=True))
        out[:, list(self.relevant)] = self.centres[which] + reach * direction
        return which % self.n_classes
