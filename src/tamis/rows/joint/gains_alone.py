"""The univariate information gain of features, from the number of rows of each level and class.

Two statistics, both approximately chi-square distributed under independence: G detects any relation and has one degree
of freedom per level but one; H of Kruskal and Wallis only detects differences of the mean ranks of the classes, and has
one degree per class but one, so it detects a trend in half the rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tamis._validation import Array, Floats, Indices


def gain_alone(alone: Array) -> tuple[Floats, Indices]:
    """Return I(X; Y) of each feature in bits, and its degrees of freedom."""
    return _constant_once(_gains, alone)


def _gains(alone: Array) -> tuple[Floats, Indices]:
    levels, totals = alone.sum(axis=2), alone[0].sum(axis=0)
    n = totals.sum()
    gain = np.log2(n) + (_f(alone).sum(axis=(1, 2)) - _f(levels).sum(axis=1) - _f(totals).sum()) / n
    freedom = (np.count_nonzero(levels, axis=1) - 1) * (np.count_nonzero(totals) - 1)
    return gain, freedom


def trend_alone(alone: Array) -> tuple[Floats, Indices]:
    """Return the bits due to different mean ranks of the classes (Kruskal and Wallis), and the degrees of freedom.

    One degree per class but one, for any number of levels, so a trend needs half the rows. It is 0 if so few rows are
    outside the most frequent level and class that H is not approximately chi-square distributed.
    """
    return _constant_once(_trends, alone)


def _trends(alone: Array) -> tuple[Floats, Indices]:
    levels, totals = alone.sum(axis=2), alone[0].sum(axis=0)
    n = totals.sum()
    ranks = (levels.cumsum(axis=1) - levels / 2.0) / n - 0.5  # of the middle of each level, about 0
    sums = np.einsum("jl,jlc->jc", ranks, alone)
    between = (sums**2 / np.maximum(totals, 1)).sum(axis=1)
    spread = (ranks**2 * levels).sum(axis=1)
    enough = (n - levels.max(axis=1)) * (n - totals.max()) >= 5 * n
    share = between / np.where(enough & (spread > 0.0), spread, np.inf)
    return (n - 1) * share / (2.0 * n * np.log(2.0)), np.full(len(alone), np.count_nonzero(totals) - 1)


def _constant_once(statistic: Callable[[Array], tuple[Array, Array]], alone: Array) -> tuple[Array, Array]:
    """Return the statistic of each feature, computed once for all those whose rows are all in the first level."""
    constant = alone[:, 0].sum(axis=1) == alone[0].sum()
    if np.count_nonzero(constant) < 2:
        return statistic(alone)
    one, others = int(constant.argmax()), np.flatnonzero(~constant)
    few = statistic(alone[np.append(others, one)])
    gain, freedom = (np.full(len(alone), values[-1]) for values in few)
    gain[others], freedom[others] = few[0][:-1], few[1][:-1]
    return gain, freedom


def _f(counts: Array) -> Floats:
    return counts * np.log2(np.maximum(counts, 1))
