"""Comparison of two methods over several data sets: Wilcoxon's signed-rank test and its Bayesian counterpart.

With z_i the difference of the two on data set i:

    Wilcoxon  W = min of the rank sums of the positive and the negative z_i, zeros dropped              (1)
    Bayesian  theta_first = sum_ij w_i w_j [z_i + z_j > 2 rope],  w ~ Dirichlet(prior, 1, ..., 1)       (2)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from tamis._validation import Floats, check_number
from tamis.evaluate.significance.friedman import as_pair

_EXACT = 25  # number of pairs up to which Wilcoxon's distribution is exact


@dataclass(frozen=True)
class Wilcoxon:
    """The result of :func:`wilcoxon`.

    Attributes
    ----------
    names : (str, str)
    plus, minus : float
        Rank sums of the data sets on which the first method, or the second, scored higher.
    n_pairs : int
        Number of data sets on which the methods differ.
    p_value : float
        Two-sided; 1 if they do not differ on any.
    exact : bool
        Whether the exact distribution was used, up to 25 pairs; otherwise the normal approximation.
    """

    names: tuple[str, str]
    plus: float
    minus: float
    n_pairs: int
    p_value: float
    exact: bool

    @property
    def statistic(self) -> float:
        """The smaller of the two rank sums (1). The smaller it is, the more the two methods differ."""
        return min(self.plus, self.minus)

    def __str__(self) -> str:
        how = "exact" if self.exact else "normal approximation"
        first, second = self.names
        return (
            f"Wilcoxon, {first} against {second}: {self.n_pairs} data sets differ, rank sums {self.plus:g} and"
            f" {self.minus:g}, p = {self.p_value:.3g} ({how})"
        )


def wilcoxon(first: Any, second: Any = None, names: Sequence[str] | None = None) -> Wilcoxon:
    """Compare two methods over data sets by Wilcoxon's signed-rank test, two-sided.

    Data sets without a difference are dropped, and ties share their mean rank, in the exact distribution too, which
    SciPy supports only without ties.

    Parameters
    ----------
    first : array-like of shape (n_datasets,), or table of shape (n_datasets, 2)
        Scores of the first method, or of both.
    second : array-like of shape (n_datasets,), optional
        Scores of the second method.
    names : list of two str, optional

    Returns
    -------
    Wilcoxon

    Raises
    ------
    ValueError
        If there are not two columns of numbers of one length, at least 2.

    Examples
    --------
    >>> print(wilcoxon([0.9, 0.8, 0.7, 0.9, 0.6, 0.8], [0.8, 0.6, 0.4, 0.5, 0.1, 0.8]))
    Wilcoxon, method 0 against method 1: 5 data sets differ, rank sums 15 and 0, p = 0.0625 (exact)
    """
    (one, other), scores = as_pair(first, second, names)
    gaps = _differences(scores)
    gaps = gaps[gaps != 0]
    n = len(gaps)
    ranks = scipy.stats.rankdata(np.abs(gaps))
    plus = float(ranks[gaps > 0].sum())
    minus = n * (n + 1) / 2 - plus
    exact = n <= _EXACT
    p_value = _exact_p(ranks, min(plus, minus)) if exact else _normal_p(ranks, plus)
    return Wilcoxon((one, other), plus, minus, n, p_value, exact)


def _differences(scores: Floats) -> Floats:
    """Return the differences, with those equal up to rounding made equal, so that 0.9 - 0.8 and 0.8 - 0.7 are a tie."""
    gaps = scores[:, 0] - scores[:, 1]
    unit = float(np.abs(scores).max(initial=0.0)) * 2.0**-44
    return np.asarray(np.rint(gaps / unit) * unit if unit > 0 else gaps, dtype=np.float64)


def _exact_p(ranks: Floats, statistic: float) -> float:
    """Count, over all signs of the ranks, how often a rank sum is as small; ranks are doubled to be whole."""
    ways = np.ones(1)
    for rank in np.rint(2 * ranks).astype(int):
        longer = np.zeros(len(ways) + rank)
        longer[: len(ways)] = ways
        longer[rank:] += ways
        ways = longer
    as_small = ways[: round(2 * statistic) + 1].sum() / ways.sum()
    return float(min(1.0, 2 * as_small))


def _normal_p(ranks: Floats, plus: float) -> float:
    deviation = math.sqrt(float((ranks**2).sum()) / 4)  # ties included
    return float(2 * scipy.stats.norm.sf(abs(plus - ranks.sum() / 2) / deviation))


@dataclass(frozen=True)
class BayesianSignedRank:
    """The result of :func:`bayesian_signed_rank`.

    Attributes
    ----------
    names : (str, str)
    first, equal, second : float
        Probability that the first is better, that the two are practically equal, that the second is better.
    rope : float
        Half-width of the region of practical equivalence.
    """

    names: tuple[str, str]
    first: float
    equal: float
    second: float
    rope: float

    def __str__(self) -> str:
        first, second = self.names
        return (
            f"Bayesian signed rank: P({first} better) = {self.first:.3f}, P(within {self.rope:g}) = {self.equal:.3f},"
            f" P({second} better) = {self.second:.3f}"
        )


def bayesian_signed_rank(
    first: Any,
    second: Any = None,
    names: Sequence[str] | None = None,
    *,
    rope: float = 0.01,
    prior: float = 0.5,
    n_samples: int = 50_000,
    random_state: int = 0,
) -> BayesianSignedRank:
    """Return the probability that one method is better than another, or that both are practically equal.

    Parameters
    ----------
    first, second, names
        See :func:`wilcoxon`.
    rope : float, default=0.01
        Half-width of the region of practical equivalence, in units of the scores. 0 means no such region.
    prior : float, default=0.5
        Weight of the prior, above 0, as that of an additional data set without a difference.
    n_samples : int, default=50000
        Number of draws from the posterior.
    random_state : int, default=0

    Returns
    -------
    BayesianSignedRank

    Raises
    ------
    ValueError
        If there are not two columns of numbers of one length, at least 2, or a parameter is out of range.

    References
    ----------
    Benavoli, Corani, Demsar, Zaffalon (2017). Time for a Change: a Tutorial for Comparing Multiple Classifiers Through
    Bayesian Analysis. JMLR 18.

    Examples
    --------
    >>> better = [0.90, 0.85, 0.70, 0.93, 0.62, 0.84, 0.75, 0.88]
    >>> worse = [0.82, 0.80, 0.66, 0.84, 0.60, 0.84, 0.70, 0.80]
    >>> result = bayesian_signed_rank(better, worse)
    >>> result.first > 0.99, result.second < 0.001
    (True, True)
    """
    check_number("rope", rope, low=0)
    check_number("prior", prior, low=0, open_low=True)
    check_number("n_samples", n_samples, low=1, integer=True)
    (one, other), scores = as_pair(first, second, names)
    gaps = np.append(0.0, _differences(scores))
    sums = gaps[:, None] + gaps
    wins = [_above(sums, 2 * rope), _above(-sums, 2 * rope)]
    rng = np.random.default_rng(random_state)
    concentration = np.append(prior, np.ones(len(gaps) - 1))
    counts = np.zeros(3)
    for start in range(0, n_samples, 5000):
        weights = rng.dirichlet(concentration, min(5000, n_samples - start))
        better, worse = (((weights @ win) * weights).sum(axis=1) for win in wins)  # (2)
        shares = np.column_stack([better, 1 - better - worse, worse])
        counts += np.bincount(shares.argmax(axis=1), minlength=3)
    left, middle, right = (counts / n_samples).tolist()
    return BayesianSignedRank((one, other), left, middle, right, float(rope))


def _above(sums: Floats, limit: float) -> Floats:
    """Return 1 above the limit, 1/2 at it."""
    return np.asarray((sums > limit) + 0.5 * (sums == limit), dtype=np.float64)
