"""Discretization of a numeric target into levels, for classification methods.

The target is cut at the quantiles of its last 1000 values into five levels of about equal frequency. The level of a
row is determined by the cuts at that time and never changes. The cuts are updated after an eighth more rows, later
every 125 rows, so the levels follow a drifting target.

Level h contains the targets in (q_h, q_(h+1)], ties included. If several quantiles are equal, as for counts with many
zeros, some levels stay empty; a mode that is also the maximum has a separate level.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from tamis._shapes import Shapes
from tamis._validation import Floats, Ints

N_LEVELS = 5
_LAST = 1000  # values of the target
_GROWTH = 8  # cuts are updated after an eighth more rows


class TargetLevels:
    """Cuts of a numeric target; immutable.

    Attributes
    ----------
    recent : ndarray of shape (n_recent,), float64
        The last values, at most 1000.
    cuts : ndarray of shape (4,), float64
    n_seen, due : int
        Number of values, and the number at which the cuts are updated next.

    Examples
    --------
    >>> codes, levels = TargetLevels().with_rows(np.arange(100.0))
    >>> codes[:9], codes[-1], levels.cuts
    (array([0, 4, 4, 4, 4, 4, 4, 4, 4]), np.int64(4), array([18., 36., 54., 72.]))
    """

    _state_spec = Shapes(f"""
        recent (w) finite  cuts ({N_LEVELS - 1}) finite  n_seen in [0, 2**62)  due in [0, 2**62)
    """)

    def __init__(self) -> None:
        self.recent, self.cuts = np.empty(0), np.zeros(N_LEVELS - 1)
        self.n_seen = self.due = 0

    @property
    def warming_up(self) -> bool:
        """Whether there are so few values that each level may contain only one, without any variation."""
        return self.n_seen < 2 * N_LEVELS

    def with_rows(self, target: Floats) -> tuple[Ints, Self]:
        """Return the levels of further rows, 0 to 4, and the updated cuts.

        Parameters
        ----------
        target : ndarray of shape (n_rows,), float64
            Finite.
        """
        later, start, n = copy.copy(self), 0, len(target)
        values = np.concatenate([self.recent, target])
        codes, before = np.empty(n, np.int64), len(self.recent)
        while start < n:
            if later.n_seen == later.due:  # this row contributes to the new cuts
                end = before + start + 1
                later.cuts = _quantiles(values[max(end - _LAST, 0) : end])
                later.due += max(min(later.n_seen + 1, _LAST) // _GROWTH, 1)
            stop = min(n, start + later.due - later.n_seen)
            codes[start:stop] = np.searchsorted(later.cuts, target[start:stop], side="left")
            later.n_seen, start = later.n_seen + stop - start, stop
        later.recent = values[-_LAST:].copy()
        return codes, later


def _quantiles(values: Floats) -> Floats:
    """Return values that cut into levels: the largest one is above each of them."""
    ordered = np.sort(values)
    at = np.ceil(np.arange(1, N_LEVELS) / N_LEVELS * len(ordered)).astype(int) - 1
    below = ordered[ordered < ordered[-1]]
    return np.minimum(ordered[at], below[-1] if len(below) else ordered[-1])
