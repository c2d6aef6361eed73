"""Comparison of candidates by their losses on the same rows; when another one is preferred to the current one.

With l_ia the loss of candidate a on row (or block) i and b the reference, by default the candidate with the smallest
mean loss, the standard error of the difference is::

    se_a = sd_i (l_ia - l_ib) / sqrt(n)                                                                (1)

The difference is paired: rows on which both err, or neither does, contribute 0, so se_a is much smaller than the
standard error of either loss (McNemar 1947). A candidate is as good as the best if it is not inferior: if it is behind
by at most a tolerance, including se_a. If rows are autocorrelated, se_a is that of the sums of batches, if it is larger
(batch means, Schmeiser 1982). Few rows thus never justify a smaller set that is behind.

The best of many candidates is partly so by chance, and so is its lead. So a candidate must not be inferior either to an
anchor that was not chosen among many, such as all features: it is behind the anchor by at most the tolerance, including
two standard errors of that difference. If none is, the anchor is preferred.

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
from typing import Literal, NamedTuple, Self

import numpy as np
from scipy.special import betainc, betaln

from tamis._kernels import njit
from tamis._shapes import Shapes
from tamis._validation import Array, Floats, Ints, Mask
from tamis.dependence.autocorrelation import mean_error

_BATCHES = 5  # at least, for their standard error
_SURE = 2.0  # standard errors
_CAUTION = 2.0  # additional errors, against decisions by chance on the first rows


class Gaps(NamedTuple):
    """Mean loss of each candidate above that of the reference, and its standard error (1)."""

    gap: Floats
    error: Floats

    def within(self, tolerance: float, n_errors: float = 1.0) -> Mask:
        """Return which candidates are behind by at most the tolerance, including some standard errors."""
        return np.asarray(self.gap + n_errors * self.error <= tolerance)


class PairedLosses:
    """Losses of every candidate on the last rows.

    Parameters
    ----------
    n_candidates : int
    max_rows : int, default=2000
        Earlier rows are discarded.
    batch : int, default=0
        Number of consecutive rows whose sum is independent of other sums, for the standard error of autocorrelated
        rows; 0: rows are independent.

    Examples
    --------
    >>> losses = PairedLosses(2).with_rows(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), np.ones(4))
    >>> losses.mean(), losses.behind()
    (array([0.5 , 0.25]), Gaps(gap=array([0.25, 0.  ]), error=array([0.25, 0.  ])))
    >>> losses.behind().within(0.4), losses.behind().within(0.5)
    (array([False,  True]), array([ True,  True]))
    """

    _state_spec = Shapes(
        "losses (n, a) float in [0, inf) fixed  weight (n) float in [0, inf) fixed  max_rows in [1, 2**62)"
        " batch in [0, 2**31)"
    )

    def __init__(self, n_candidates: int, max_rows: int = 2000, batch: int = 0) -> None:
        self.max_rows, self.batch = max_rows, batch
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

    def mean(self) -> Floats:
        """Return the mean loss of each candidate; 0 without rows."""
        return self.weight @ self.losses / max(float(self.weight.sum()), 1e-300)

    def behind(
        self, reference: int | None = None, *, in_order: Literal["error", "bound"] | None = None
    ) -> Gaps:
        """Return the mean loss of each candidate above that of the reference, and its standard error (1).

        Parameters
        ----------
        reference : int, optional
            By default the best candidate.
        in_order : {"error", "bound"}, optional
            For rows of a stream, whose differences may depend on earlier ones: the standard error (10) of
            :mod:`tamis.dependence.autocorrelation`, or half of its 95 % interval; infinite if it is undetermined.
        """
        best = int(self.mean().argmin()) if reference is None else reference
        if in_order:
            sums = self.weight[:, None] * (self.losses - self.losses[:, [best]])
            errors = np.array([getattr(mean_error(column, self.weight), in_order) for column in sums.T])
            errors[best] = 0.0
            gaps = sums.sum(axis=0) / max(float(self.weight.sum()), 1e-300)
            return Gaps(gaps, np.nan_to_num(errors, nan=np.inf))
        total = float(self.weight.sum())
        mean, variance, batched = np.zeros((3, self.losses.shape[1]))
        if total:
            _compare(self.losses, self.weight / total, best, self.batch, mean, variance, batched)
        variance /= max(total - 1.0, 1.0)
        if self.batch and (n := -(-len(self) // self.batch)) >= _BATCHES:
            variance = np.maximum(variance, batched * n / (n - 1))
        return Gaps(mean, np.sqrt(variance))


@njit()
def _compare(
    losses: Array, share: Array, reference: int, batch: int, mean: Array, variance: Array, batched: Array
) -> None:
    """Write the mean and variance of the differences to the reference, and the sum of squares of those of batches."""
    n, n_candidates = losses.shape
    for i in range(n):
        for a in range(n_candidates):
            mean[a] += share[i] * (losses[i, a] - losses[i, reference])
    sums = np.zeros(n_candidates)
    for i in range(n):
        for a in range(n_candidates):
            gap = losses[i, a] - losses[i, reference] - mean[a]
            variance[a] += share[i] * gap * gap
            sums[a] += share[i] * gap
        if batch > 0 and ((i + 1) % batch == 0 or i + 1 == n):
            batched += sums * sums
            sums[:] = 0.0


def preferred(
    sizes: Ints | Floats,
    paired: PairedLosses,
    tolerance: float,
    now: int,
    *,
    is_costly: bool = False,
    is_lenient: bool = False,
    enough: int = 1000,
    anchor: int | None = None,
) -> tuple[int, str]:
    """Return the smallest candidate that is as good as the best (ties: the best), and why it is not `now`.

    Parameters
    ----------
    sizes : ndarray of shape (n_candidates,)
        Sizes or prices.
    paired : PairedLosses
    tolerance : float
    now : int
        The current candidate.
    is_costly : bool, default=False
        Whether a change costs the learner its weights.
    is_lenient : bool, default=False
        Whether a candidate is as good if it is behind by at most the tolerance and at most one standard error (Breiman
        et al. 1984), which does not require any certainty.
    enough : int, default=1000
        Rows for a smaller candidate, if standard errors exceed the tolerance.
    anchor : int, optional
        The candidate to which no other one may be inferior, such as all features.

    Returns
    -------
    candidate : int
    why : {"better", "smaller", ""}

    Examples
    --------
    Keeping all features errs on a quarter of the rows, three features on none:

    >>> losses = np.zeros((600, 2))
    >>> losses[::4, 0] = 1.0
    >>> preferred(np.array([30, 3]), PairedLosses(2).with_rows(losses, np.ones(600)), 0.01, now=0)
    (1, 'better')

    Both err on the same rows except two:

    >>> losses[:, 1] = losses[:, 0]
    >>> losses[[1, 4], 1] = 1.0, 0.0
    >>> preferred(np.array([30, 3]), PairedLosses(2).with_rows(losses, np.ones(600)), 0.01, now=0)
    (1, 'smaller')
    """
    gaps = paired.behind()
    behind, error = gaps
    is_good = behind <= np.minimum(error, tolerance) if is_lenient else gaps.within(tolerance)
    if anchor is not None:
        is_good &= paired.behind(anchor).within(tolerance, _SURE)
        is_good[anchor] |= not is_good.any()
    why, z = "better", NormalDist().inv_cdf(1.0 - 0.05 / len(sizes))
    bar = (z if is_costly else _SURE) * error[now]
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
