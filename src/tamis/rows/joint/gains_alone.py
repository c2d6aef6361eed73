"""The information gain of each feature by itself, from the rows of each level and class.

Two statistics, both about chi-square distributed if there is nothing to be found: G sees any relation and has a degree
of freedom for each level; H of Kruskal and Wallis sees only whether the classes have other mean ranks, and has one for
each class but one, so a trend is found in half the rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis._validation import Array

__all__ = ["gain_alone", "trend_alone"]


def gain_alone(alone: Array) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return I(X; Y) of each feature in bits, and its degrees of freedom."""
    levels, totals = alone.sum(axis=2), alone[0].sum(axis=0)
    n = totals.sum()
    gain = np.log2(n) + (_f(alone).sum(axis=(1, 2)) - _f(levels).sum(axis=1) - _f(totals).sum()) / n
    freedom = (np.count_nonzero(levels, axis=1) - 1) * (np.count_nonzero(totals) - 1)
    return gain, freedom


def trend_alone(alone: Array) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the bits that lie in different mean ranks of the classes (Kruskal and Wallis), and the degrees of freedom.

    One degree for each class but one, however many levels, so a trend needs half the rows. It is left out where
    so few rows are outside the commonest level and class that H is not about chi-square distributed.
    """
    levels, totals = alone.sum(axis=2), alone[0].sum(axis=0)
    n = totals.sum()
    ranks = (levels.cumsum(axis=1) - levels / 2.0) / n - 0.5  # of the middle of each level, about 0
    sums = np.einsum("jl,jlc->jc", ranks, alone)
    between = (sums**2 / np.maximum(totals, 1)).sum(axis=1)
    spread = (ranks**2 * levels).sum(axis=1)
    enough = (n - levels.max(axis=1)) * (n - totals.max()) >= 5 * n
    share = between / np.where(enough & (spread > 0.0), spread, np.inf)
    return (n - 1) * share / (2.0 * n * np.log(2.0)), np.full(len(alone), np.count_nonzero(totals) - 1)


def _f(counts: Array) -> NDArray[np.float64]:
    result: NDArray[np.float64] = counts * np.log2(np.maximum(counts, 1))
    return result
