"""Drift detection by the prequential errors of a classifier.

:mod:`tamis.drift.cusum` tests whether the errors have risen within the classes since some row, compared with the error
rate of each class over about the last 1000 rows.
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._shapes import Shapes, SizedState
from tamis._validation import Array
from tamis.drift.cusum import log_likelihood_steps, update_cusum

_MEMORY = 1000.0  # rows over which error rates are averaged
_BLIND = 10.0  # prior: random predictions per class

# State, of C classes:
#   tally     (3, C) float64   faded rows of each class, errors on them, predictions of it
#   evidence  (2,)   float64   \  see :mod:`tamis.drift.cusum`
#   steps     (2, C) float64   /


@njit(strict=True)
def _update(
    guesses: Array, codes: Array, limit: float, fading: float, tally: Array, evidence: Array, steps: Array
) -> int:  # fmt: skip
    """Update with rows up to the first at which the evidence exceeds the limit; return their number."""
    for i in range(len(codes)):
        for a in range(3):
            for c in range(tally.shape[1]):
                tally[a, c] *= fading
        wrong = guesses[i] != codes[i]
        tally[0, codes[i]] += 1.0
        tally[1, codes[i]] += wrong
        tally[2, guesses[i]] += 1.0
        if update_cusum(wrong, codes[i], evidence, steps) > limit:
            return i + 1
    return len(codes)


@njit(strict=True)
def _expect(tally: Array, steps: Array) -> None:
    """Write the steps, with a prior of some random predictions of each class; 0 for a class not seen yet."""
    n_seen, n_classes = 0, tally.shape[1]
    chance = np.zeros(n_classes)
    for c in range(n_classes):
        n_seen += tally[0, c] > 0.0
        chance[c] = tally[2, c] + (2.0 if tally[0, c] > 0.0 else 0.0)
    total, blindly = max(chance.sum(), 1.0), 1.0 - 1.0 / max(n_seen, 2)
    log_likelihood_steps(tally[1] + _BLIND * blindly, tally[0] + _BLIND, 1.0 - chance / total, steps)
    for c in range(n_classes):
        if tally[0, c] == 0.0:
            steps[:, c] = 0.0


class ErrorWatch(SizedState):
    """Evidence that the errors of a classifier have increased.

    Parameters
    ----------
    alpha : float
        At most one false alarm in about 1 / alpha rows, in (0, 1).

    Examples
    --------
    A classifier that is correct on nine of ten rows, and then predicts a class at random:

    >>> rng, watch = np.random.default_rng(0), ErrorWatch(1e-4)
    >>> codes = rng.integers(0, 2, 1000)
    >>> guesses = np.where(np.arange(1000) < 700, codes ^ (rng.random(1000) < 0.1), rng.integers(0, 2, 1000))
    >>> watch.grow(2)
    >>> for start in range(0, 700, 100):
    ...     watch.expect()
    ...     _ = watch.update(guesses[start : start + 100], codes[start : start + 100])
    >>> 700 + watch.update(guesses[700:], codes[700:]), watch.is_sufficient, watch.n_rows
    (717, True, 16)
    """

    def __init__(self, alpha: float) -> None:
        self.limit = float(-np.log(alpha))
        self.tally, self.evidence, self.steps = np.zeros((3, 0)), np.zeros(2), np.zeros((2, 0))

    _state_spec = Shapes("""
        limit float in (0, inf)  evidence (2) float in [0, 2**62]
        tally (3, c) float in [0, 2**62] fill 0  steps (2, c) finite fill 0
    """)

    def grow(self, n_classes: int) -> None:
        """Add classes, with codes after the existing ones, if there are more."""
        if n_classes > self.tally.shape[1]:
            super().grow(n_classes)

    def expect(self) -> None:
        """Update the expected error rate of each class."""
        _expect(self.tally, self.steps)

    def update(self, guesses: Array, codes: Array) -> int:
        """Update with predictions of some rows, up to the first that makes the evidence sufficient.

        Returns
        -------
        int
            Number of rows processed.
        """
        fading = 1.0 - 1.0 / _MEMORY
        return int(_update(guesses, codes, self.limit, fading, self.tally, self.evidence, self.steps))

    def count(self, guesses: Array, codes: Array) -> None:
        """Count the predictions of a classifier with too few rows, without using them as evidence."""
        _update(guesses, codes, np.inf, 1.0 - 1.0 / _MEMORY, self.tally, self.evidence, self.steps)
        self.evidence[:] = 0.0

    @property
    def is_sufficient(self) -> bool:
        """Whether the evidence is sufficient."""
        return bool(self.evidence[0] > self.limit)

    @property
    def n_rows(self) -> int:
        """Number of recent rows that are the evidence."""
        return int(self.evidence[1])

    def reset(self) -> None:
        """Reset, for a new classifier."""
        self.evidence[:], self.tally[:] = 0.0, 0.0
