"""Losses of all arms on the same rows, and the smallest feature set that is as good as the best.

With l_ia the loss of arm a on row i and b the arm with the smallest mean loss, an arm is as good as the best if::

    mean_i (l_ia - l_ib)  <=  min(se_a, tolerance),   se_a = sd_i (l_ia - l_ib) / sqrt(n)              (1)

The difference is paired: rows on which both arms err, or neither does, contribute 0, so se_a is much smaller than the
standard error of either loss (McNemar 1947). This is the one-standard-error rule of Breiman et al. (1984, section
3.4.3) with paired rows and a cap.

The current arm is replaced only

* by a better one: if it is behind by more than two standard errors and two errors. If a change costs the learner its
  weights, by more than z se_a, z the normal quantile of 1 - .05 / A (the best of A arms is partly so by chance), on at
  least 500 rows (50 of a rare class);
* by a smaller one: if that one is as good (1), and there are enough rows: both standard errors are at most
  ``tolerance``, or there are 1000 rows (100 of a rare class).
"""

from __future__ import annotations

import copy
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tamis._shapes import Shapes
from tamis._validation import Array

__all__ = ["PairedLosses", "smallest"]

_LAST = 2000  # rows
_CAUTION = 2.0  # additional errors, against decisions by chance on the first rows


class PairedLosses:
    """Losses of every arm on the last 2000 tested rows.

    Parameters
    ----------
    n_arms : int

    Examples
    --------
    >>> losses = PairedLosses(2).with_rows(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), np.ones(4))
    >>> losses.mean(), losses.behind()
    (array([0.5 , 0.25]), (array([0.25, 0.  ]), array([0.25, 0.  ])))
    """

    _state_spec = Shapes("losses (n, a) float in [0, inf)  weight (n) float in [0, inf)")

    _written_once = ("losses", "weight")

    def __init__(self, n_arms: int) -> None:
        self.losses, self.weight = np.zeros((0, n_arms)), np.zeros(0)

    def __len__(self) -> int:
        return len(self.weight)

    def with_rows(self, losses: Array, weight: Array) -> Self:
        """Return a copy with more rows, without those before the last 2000."""
        longer = copy.copy(self)
        longer.losses = np.concatenate([self.losses, losses])[-_LAST:]
        longer.weight = np.concatenate([self.weight, weight])[-_LAST:]
        return longer

    def last(self, n_rows: int) -> Self:
        """Return a copy with only the last rows."""
        recent, first = copy.copy(self), max(len(self) - n_rows, 0)
        recent.losses, recent.weight = self.losses[first:], self.weight[first:]
        return recent

    def of(self, arms: Array) -> Self:
        """Return a copy with the losses of some arms, which may be repeated."""
        some = copy.copy(self)
        some.losses = self.losses[:, arms]
        return some

    def mean(self) -> NDArray[np.float64]:
        """Return the mean loss of each arm; 0 without rows."""
        mean: NDArray[np.float64] = self.weight @ self.losses / max(float(self.weight.sum()), 1e-300)
        return mean

    def behind(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean loss of each arm above that of the best, and the standard error of the difference (1)."""
        best = int(self.mean().argmin())
        total = float(self.weight.sum())
        share = self.weight / max(total, 1e-300)
        differences = self.losses - self.losses[:, [best]]
        mean = share @ differences
        # In place: a new array of 2000 rows is one of new pages of memory.
        differences -= mean
        differences *= differences
        variance = share @ differences
        return mean, np.sqrt(variance / max(total - 1.0, 1.0))


def smallest(
    sizes: NDArray[np.int64],
    paired: PairedLosses,
    tolerance: float,
    now: int,
    is_costly: bool,
    enough: int = 1000,
) -> tuple[int, str]:
    """Return the smallest arm that is as good as the best (ties: the best), and why it is not `now`.

    Keeping all features errs on a quarter of the rows, three features on none:

    >>> losses = np.zeros((600, 2))
    >>> losses[::4, 0] = 1.0
    >>> smallest(np.array([30, 3]), PairedLosses(2).with_rows(losses, np.ones(600)), 0.01, now=0, is_costly=True)
    (1, 'better')

    Both err on the same rows except two:

    >>> losses[:, 1] = losses[:, 0]
    >>> losses[[1, 4], 1] = 1.0, 0.0
    >>> smallest(np.array([30, 3]), PairedLosses(2).with_rows(losses, np.ones(600)), 0.01, now=0, is_costly=True)
    (1, 'smaller')
    """
    behind, error = paired.behind()
    is_good = behind <= np.minimum(error, tolerance)
    why, z = "better", NormalDist().inv_cdf(1.0 - 0.05 / len(sizes))
    bar = (z if is_costly else 2.0) * error[now]
    is_early = is_costly and len(paired) < enough / 2
    if is_early or behind[now] <= bar + _CAUTION / len(paired):
        is_good &= (sizes < sizes[now]) & (
            (np.maximum(error, error[now]) <= tolerance) | (len(paired) >= enough)
        )
        if not is_good.any():
            return now, ""
        why = "smaller"
    least = int(sizes[is_good].min())
    return int(np.where(is_good & (sizes == least), behind, np.inf).argmin()), why
