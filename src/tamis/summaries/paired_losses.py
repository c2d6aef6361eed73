"""Comparison of candidates by their losses on the same rows; when another one is preferred to the current one.

With l_ia the loss of candidate a on row (or block) i and b the reference, by default the candidate with the smallest
mean loss, the standard error of the difference is::

    se_a = sd_i (l_ia - l_ib) / sqrt(n)                                                                (1)

The difference is paired: rows on which both err, or neither does, contribute 0, so se_a is much smaller than the
standard error of either loss (McNemar 1947). A candidate is as good as the best if it is not inferior: if it is behind
by at most a tolerance, including se_a. Few rows thus never justify a smaller set that is behind.

While rows arrive, the current candidate is replaced only

* by a better one: if it is no longer as good, and behind by more than two standard errors and two errors. If a change
  costs the learner its weights, by more than z se_a, z the normal quantile of 1 - .05 / A (the best of A candidates is
  partly so by chance);
* by a smaller one: if that one is as good, and there are enough rows: both standard errors are at most the tolerance,
  or there are 1000 rows (100 of a rare class).

A change that costs the learner its weights requires at least 500 rows (50 of a rare class).

Where a new candidate takes the place of an old one for good, the decision has an error probability that holds at any
time. Let b be the number of rows on which only the new one is correct (or has the smaller loss), c the number on which
only the old one is, and p the probability that a row on which they differ is one of the b::

    H0: p <= 1/2,     E = int_{1/2}^1 2 (2 p)^b (2 (1 - p))^c dp                                     (2)

E is a mixture of likelihood ratios against p = 1/2, so under H0 its expectation is at most 1 at any time, and the
probability that it ever reaches 1 / level is at most `level` (Ville's inequality).

Robbins (1970), Annals of Mathematical Statistics 41(5); Ramdas, Grunwald, Vovk, Shafer (2023), Statistical Science
38(4).
"""

from __future__ import annotations

import copy
import math
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln

from tamis._shapes import Shapes
from tamis._validation import Array
from tamis.dependence.autocorrelation import mean_error

__all__ = ["PairedLosses", "log_evidence", "preferred"]

_CAUTION = 2.0  # additional errors, against decisions by chance on the first rows


class PairedLosses:
    """Losses of every candidate on the last rows.

    Parameters
    ----------
    n_candidates : int
    max_rows : int, default=2000
        Earlier rows are discarded.

    Examples
    --------
    >>> losses = PairedLosses(2).with_rows(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), np.ones(4))
    >>> losses.mean(), losses.behind()
    (array([0.5 , 0.25]), (array([0.25, 0.  ]), array([0.25, 0.  ])))
    """

    _state_spec = Shapes(
        "losses (n, a) float in [0, inf) fixed  weight (n) float in [0, inf) fixed  max_rows in [1, 2**62)"
    )

    def __init__(self, n_candidates: int, max_rows: int = 2000) -> None:
        self.max_rows = max_rows
        self.losses, self.weight = np.zeros((0, n_candidates)), np.zeros(0)

    def __len__(self) -> int:
        return len(self.weight)

    def with_rows(self, losses: Array, weight: Array) -> Self:
        """Return a copy with more rows, without those before the last `max_rows`."""
        longer = copy.copy(self)
        longer.losses = np.concatenate([self.losses, losses])[-self.max_rows :]
        longer.weight = np.concatenate([self.weight, weight])[-self.max_rows :]
        return longer

    def last(self, n_rows: int) -> Self:
        """Return a copy with only the last rows."""
        recent, first = copy.copy(self), max(len(self) - n_rows, 0)
        recent.losses, recent.weight = self.losses[first:], self.weight[first:]
        return recent

    def select(self, candidates: Array) -> Self:
        """Return a copy with the losses of some candidates, which may be repeated."""
        some = copy.copy(self)
        some.losses = self.losses[:, candidates]
        return some

    def mean(self) -> NDArray[np.float64]:
        """Return the mean loss of each candidate; 0 without rows."""
        mean: NDArray[np.float64] = self.weight @ self.losses / max(float(self.weight.sum()), 1e-300)
        return mean

    def behind(
        self, reference: int | None = None, *, in_order: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean loss of each candidate above that of the reference, and its standard error (1).

        Parameters
        ----------
        reference : int, optional
            By default the best candidate.
        in_order : bool, default=False
            Whether the rows are those of a stream, whose differences may depend on earlier ones: the standard error is
            then (10) of :mod:`tamis.dependence.autocorrelation`, and infinite if it is undetermined.
        """
        best = int(self.mean().argmin()) if reference is None else reference
        if in_order:
            sums = self.weight[:, None] * (self.losses - self.losses[:, [best]])
            errors = np.array([mean_error(column, self.weight).error for column in sums.T])
            errors[best] = 0.0
            return sums.sum(axis=0) / max(float(self.weight.sum()), 1e-300), np.nan_to_num(errors, nan=np.inf)
        total = float(self.weight.sum())
        share = self.weight / max(total, 1e-300)
        differences = self.losses - self.losses[:, [best]]
        mean = share @ differences
        # In place: a new array of 2000 rows is one of new pages of memory.
        differences -= mean
        differences *= differences
        variance = share @ differences
        return mean, np.sqrt(variance / max(total - 1.0, 1.0))


def preferred(
    sizes: NDArray[np.int64] | NDArray[np.float64],
    paired: PairedLosses,
    tolerance: float,
    now: int,
    is_costly: bool,
    enough: int = 1000,
) -> tuple[int, str]:
    """Return the smallest candidate that is as good as the best (ties: the best), and why it is not `now`.

    Sizes may be prices.

    Keeping all features errs on a quarter of the rows, three features on none:

    >>> losses = np.zeros((600, 2))
    >>> losses[::4, 0] = 1.0
    >>> preferred(np.array([30, 3]), PairedLosses(2).with_rows(losses, np.ones(600)), 0.01, now=0, is_costly=True)
    (1, 'better')

    Both err on the same rows except two:

    >>> losses[:, 1] = losses[:, 0]
    >>> losses[[1, 4], 1] = 1.0, 0.0
    >>> preferred(np.array([30, 3]), PairedLosses(2).with_rows(losses, np.ones(600)), 0.01, now=0, is_costly=True)
    (1, 'smaller')
    """
    behind, error = paired.behind()
    is_good = (behind + error <= tolerance) | (behind <= 0.0)
    why, z = "better", NormalDist().inv_cdf(1.0 - 0.05 / len(sizes))
    bar = (z if is_costly else 2.0) * error[now]
    is_early = is_costly and len(paired) < enough / 2
    if is_early or is_good[now] or behind[now] <= bar + _CAUTION / len(paired):
        is_good &= (sizes < sizes[now]) & (
            (np.maximum(error, error[now]) <= tolerance) | (len(paired) >= enough)
        )
        if is_early or not is_good.any():
            return now, ""
        why = "smaller"
    least = sizes[is_good].min()
    return int(np.where(is_good & (sizes == least), behind, np.inf).argmin()), why


def log_evidence(n_ahead: int, n_behind: int) -> float:
    """Return the logarithm of E (2).

    Examples
    --------
    >>> round(log_evidence(20, 5), 2), round(log_evidence(5, 20), 2)
    (3.88, -2.8)
    """
    share = float(betainc(n_behind + 1.0, n_ahead + 1.0, 0.5))  # P[p > 1/2] of a Beta(b + 1, c + 1)
    if share == 0.0:
        return -math.inf
    total = (n_ahead + n_behind + 1.0) * math.log(2.0)
    return total + float(betaln(n_ahead + 1.0, n_behind + 1.0)) + math.log(share)
