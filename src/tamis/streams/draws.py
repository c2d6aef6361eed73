"""Random numbers per row, independent of batches and order.

SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) as a function of a counter: the number of slot j in row t of a table of n
slots is mix(key + (n t + j) gamma). No state is carried from row to row, so a stream can start at any row.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tamis._kernels import njit
from tamis._validation import Array, Floats, Mask

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 2.0**-53


@njit(strict=True)
def unit(key: Any, counter: Any) -> float:
    """Return the number in [0, 1) of a counter (uint64), for kernels that draw their own numbers."""
    z = key + counter * _GAMMA
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    z ^= z >> _S31
    return np.float64(np.int64(z >> _S11)) * _UNIT


@njit(strict=True)
def _fill(key: Any, rows: Array, first: Any, low: Array, span: Array, whole: Array, out: Array) -> None:
    # `first` is unsigned, since a possibly negative index would prevent vectorisation, as would floor.
    width = np.uint64(low.shape[0])
    for i in range(rows.shape[0]):
        counter = rows[i] * width
        for j in range(low.shape[0]):
            out[i, first + np.uint64(j)] = low[j] + unit(key, counter + np.uint64(j)) * span[j]
        for j in whole:
            out[i, first + j] = math.floor(out[i, first + j])


@njit(strict=True)
def _fill_consecutive(key: Any, first: Any, low: float, span: float, out: Array) -> None:
    for i in range(out.shape[0]):
        out[i] = low + unit(key, first + np.uint64(i)) * span


@dataclass(frozen=True)
class Ranges:
    """Ranges of a few adjacent columns: numbers in [low, low + span), integers rounded down.

    Attributes
    ----------
    low, span : ndarray of shape (n_columns,), float64
    whole : ndarray of shape (n_columns,), bool
    """

    low: Floats
    span: Floats
    whole: Mask

    @cached_property
    def indices(self) -> NDArray[np.uint64]:
        """Which of the columns are integers."""
        return np.flatnonzero(self.whole).astype(np.uint64)

    @classmethod
    def same(cls, n: int, low: float = 0.0, span: float = 1.0, *, whole: bool = False) -> Ranges:
        """Return one range for `n` columns."""
        return cls(np.full(n, low), np.full(n, span), np.full(n, whole))

    def take(self, columns: Array) -> Ranges:
        """Return the ranges of some of the columns."""
        return Ranges(self.low[columns], self.span[columns], self.whole[columns])

    def tile(self, times: int) -> Ranges:
        """Return the ranges repeated `times` times."""
        return Ranges(np.tile(self.low, times), np.tile(self.span, times), np.tile(self.whole, times))


class Draws:
    """Independent uniform numbers for the rows of a stream.

    Parameters
    ----------
    seed : int
        At least 0.

    Examples
    --------
    The numbers of row 5 do not depend on the other rows requested:

    >>> draws = Draws(seed=0).child("noise")
    >>> many = draws.uniform(np.arange(10), 2)
    >>> bool((draws.uniform(np.array([5]), 2) == many[5]).all())
    True
    """

    def __init__(self, seed: int) -> None:
        self._key = int(np.random.SeedSequence(int(seed)).generate_state(1, np.uint64)[0])
        self._children: dict[str | int, Draws] = {}

    @property
    def key(self) -> np.uint64:
        """The key of these numbers, for kernels that draw their own numbers."""
        return np.uint64(self._key)

    def child(self, name: str | int) -> Draws:
        """Return independent numbers, one family for each name."""
        if name not in self._children:
            made = Draws.__new__(Draws)
            number = zlib.crc32(name.encode()) if isinstance(name, str) else name
            made._key = _mix((self._key ^ 0xD1342543DE82EF95) + (number + 1) * int(_GAMMA))
            made._children = {}
            self._children[name] = made
        return self._children[name]

    def fill(self, rows: Array, out: Array, ranges: Ranges, first: int = 0) -> None:
        """Write one number for each row and range into the columns of `out` from `first` on.

        Parameters
        ----------
        rows : ndarray of shape (n_rows,), integer
            Positions of the rows in the stream, ascending.
        out : ndarray of shape (n_rows, n_columns), float64, C-contiguous
        ranges : Ranges
        first : int, default=0
        """
        _fill(
            self.key, rows.astype(np.uint64), np.uint64(first), ranges.low, ranges.span, ranges.indices, out
        )

    def uniform(self, rows: Array, n: int) -> Floats:
        """Return numbers in [0, 1), shape (n_rows, n)."""
        return self._numbers(rows, n, 0.0, 1.0)

    def _numbers(self, rows: Array, n: int, low: float, span: float) -> Floats:
        out = np.empty((len(rows), n))
        # Consecutive rows: one run of the counter, 6 times as fast.
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
            _fill_consecutive(self.key, np.uint64(rows[0] * n), low, span, out.reshape(-1))
        else:
            self.fill(rows, out, Ranges.same(n, low, span))
        return out

    def one(self, rows: Array) -> Floats:
        """Return one number in [0, 1) for each row, shape (n_rows,)."""
        return self.uniform(rows, 1)[:, 0]

    def normal(self, rows: Array, n: int) -> Floats:
        """Return standard normal numbers, shape (n_rows, n)."""
        out = self._numbers(rows, n, _UNIT / 2, 1.0 - _UNIT)  # neither 0 nor 1: finite
        ndtri(out, out=out)
        return out

    def generator(self) -> np.random.Generator:
        """Return a separate NumPy generator, for draws that are not per row."""
        return np.random.default_rng(self._key)


def _mix(z: int) -> int:
    mask = (1 << 64) - 1
    z &= mask
    z = ((z ^ (z >> 30)) * int(_M1)) & mask
    z = ((z ^ (z >> 27)) * int(_M2)) & mask
    return z ^ (z >> 31)
