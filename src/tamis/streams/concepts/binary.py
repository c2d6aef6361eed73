"""BG1-FD, BG2-FD, BG3-FD: three Boolean functions of a few bits among many (Barddal et al.; his thesis, section 4.2).

=====  ==========================================================  ==========
name   class 1 if                                                  relevant
=====  ==========================================================  ==========
BG1    all relevant bits are 1                                     any number
BG2    at least two of the three are 1                             3
BG3    the three are equal                                         3
=====  ==========================================================  ==========

Irrelevant bits are 0 or 1 with probability 1/2. Given the class, ``sampler="uniform"`` draws the relevant bits
uniformly among the combinations of that class. ``sampler="reference"`` reproduces the released generators, with which
the published tables were computed:

- BG1: class 1 sets all to 1; class 0 clears each bit with probability 1/2, until one is 0.
- BG2: class 1 sets one of the three pairs where fewer than two are 1; class 0 sets one and clears the other two.
- BG3: class 1 is 111 with probability 1/3 and 000 with 2/3; class 0 flips one bit where the three are equal.

With the reference sampler, each bit of BG3 alone is weakly relevant (naive Bayes reaches 56.5 % accuracy instead of
50 %, with 10 % of the labels flipped); the argument of the thesis that each is independent of the class is true only
for the uniform sampler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tamis._validation import Array, check_choice
from tamis.streams.concepts.concept import Concept
from tamis.streams.draws import Draws


@dataclass(frozen=True)
class _Bits(Concept):
    """A Boolean function of a few bits."""

    relevant: tuple[int, ...] = (0, 1, 2)
    n_features: int = 10
    sampler: str = "uniform"
    positive_share: float | None = 0.5
    _each: ClassVar = (0.0, 1.0, 2)
    _n_relevant: ClassVar[int | None] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("sampler", self.sampler, ("uniform", "reference"))

    def sample_given_class(self, draws: Draws, rows: Array, values: Array, y: Array) -> None:
        """Draw the relevant bits given the class."""
        if self.sampler == "uniform":
            super().sample_given_class(draws, rows, values, y)
        else:
            self._sample_reference(draws, rows, values, y == 1)

    def _sample_reference(self, draws: Draws, rows: Array, values: Array, one: Array) -> None:
        """Change fair bits to match the class, as the released generator does."""
        raise NotImplementedError


@dataclass(frozen=True)
class BG1(_Bits):
    """Class 1 if all relevant bits are 1.

    Parameters
    ----------
    relevant : tuple of int, default=(0, 1, 2)
        The relevant columns, ascending.
    n_features : int, default=10
        Number of bits in a row.
    sampler : {"uniform", "reference"}, default="uniform"
        How the relevant bits are drawn given the class; see the module.
    positive_share : float in (0, 1) or None, default=0.5
        Probability of class 1; None for the natural one.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> BG1(relevant=(1, 4)).label(np.array([[1, 1], [1, 0]])).tolist()
    [1, 0]
    """

    _n_relevant: ClassVar[int | None] = None

    def label(self, values: Array) -> Array:
        """Return 1 where all bits are 1."""
        return np.asarray(values.all(axis=1), dtype=np.intp)

    def _sample_reference(self, draws: Draws, rows: Array, values: Array, one: Array) -> None:
        values[one] = 1.0
        zero, round_ = np.flatnonzero(~one), 0
        while len(zero):
            values[zero] *= draws.child(round_).uniform(rows[zero], values.shape[1]) < 0.5
            zero, round_ = zero[values[zero].all(axis=1)], round_ + 1


@dataclass(frozen=True)
class BG2(_Bits):
    """Class 1 if at least two of three bits are 1.

    Parameters
    ----------
    relevant : tuple of three int, default=(0, 1, 2)
        The relevant columns, ascending.
    n_features : int, default=10
        Number of bits in a row.
    sampler : {"uniform", "reference"}, default="uniform"
        How the relevant bits are drawn given the class; see the module.
    positive_share : float in (0, 1) or None, default=0.5
        Probability of class 1; None for the natural one, 1/2.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> BG2().label(np.array([[1, 0, 1], [0, 0, 1]])).tolist()
    [1, 0]
    """

    def label(self, values: Array) -> Array:
        """Return 1 where at least two bits are 1."""
        return np.asarray(values.sum(axis=1) >= 2, dtype=np.intp)

    def _sample_reference(self, draws: Draws, rows: Array, values: Array, one: Array) -> None:
        chosen = np.arange(3) == np.floor(3 * draws.uniform(rows, 1))
        few = one & (values.sum(axis=1) < 2)
        values[few] = np.maximum(values[few], ~chosen[few])
        values[~one] = chosen[~one]


@dataclass(frozen=True)
class BG3(_Bits):
    """Class 1 if three bits are equal: no single bit, and with a fair sampler no pair, is informative about the class.

    Parameters
    ----------
    relevant : tuple of three int, default=(0, 1, 2)
        The relevant columns, ascending.
    n_features : int, default=10
        Number of bits in a row.
    sampler : {"uniform", "reference"}, default="uniform"
        How the relevant bits are drawn given the class; see the module.
    positive_share : float in (0, 1) or None, default=0.5
        Probability of class 1; None for the natural one, 1/4.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> BG3().label(np.array([[0, 0, 0], [1, 0, 1], [1, 1, 1]])).tolist()
    [1, 0, 1]
    """

    def label(self, values: Array) -> Array:
        """Return 1 where the three bits are equal."""
        return np.asarray(values.sum(axis=1) % 3 == 0, dtype=np.intp)

    def _sample_reference(self, draws: Draws, rows: Array, values: Array, one: Array) -> None:
        third = np.floor(3 * draws.uniform(rows, 1))
        values[one] = third[one] == 0
        equal = ~one & (values.sum(axis=1) % 3 == 0)
        values[equal] = np.abs(values[equal] - (np.arange(3) == third[equal]))
