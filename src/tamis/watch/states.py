"""The state of each feature (used or not, relevant or not), and the row in which it began."""

from __future__ import annotations

import numpy as np

from tamis._guard import ThreadSafe
from tamis._validation import Floats, Ints, Mask

# By 2 * used + relevant, and 4 if used and never relevant before; -1 is unknown.
STATES = (
    "neither",
    "relevant but unused",
    "used but no longer relevant",
    "used and relevant",
    "used but not relevant",
)
UNKNOWN = "unknown"
# "Used but no longer relevant" raises alarms, and a weak feature can be insignificant in recent rows by chance. If a
# test detects lost features sooner, this state requires this many times `patience`.
_LOST_FACTOR = 4
_LEVEL_HALF_LIFE = 2000  # rows, of the mean and the variance of an earlier share
_FALLING = 0.75  # of the mean
_FALLEN = 3.0  # standard deviations by which a share must have fallen


class FeatureStates(ThreadSafe):
    """Feature states with a delay: a new state takes effect after it has lasted for `patience` rows.

    Parameters
    ----------
    n_features : int
    patience : int
    """

    _shapes = (
        "_state (j) int64 in [-1, 5)  _since (j) int64 in [0, 2**62)  _candidate (j) int64 in [-1, 5)"
        "  _candidate_since (j) int64 in [0, 2**62)  _was_relevant (j) bool  _level (3, j) float  _row in [0, 2**62)"
    )

    def __init__(self, n_features: int, patience: int) -> None:
        self.patience = patience
        self._state, self._candidate = (np.full(n_features, -1, dtype=np.int64) for _ in range(2))
        self._since, self._candidate_since = (np.zeros(n_features, dtype=np.int64) for _ in range(2))
        self._was_relevant = np.zeros(n_features, dtype=bool)
        # Weight, mean and variance of the share of each feature in the relevance, while it is relevant.
        self._level, self._row = np.zeros((3, n_features)), 0

    def update(
        self, used: Mask, relevant: Mask, row: int, ages: Ints | None = None, shares: Floats | None = None, *,
        has_cause: bool = False, is_tested: bool = True,
    ) -> None:  # fmt: skip
        """Add the states after `row` rows; an age above 0 means a detected loss that many rows ago, without delay.

        With ages, and if the features used are tested, one without a detection is lost only after four times `patience`
        rows without relevance. With its share in the relevance of the features used, this share must also have fallen
        below that of earlier rows, by three standard deviations. A feature is not lost while a cause explains why all
        features are less relevant.
        """
        fallen = np.full(len(used), not has_cause)
        if shares is not None:
            weight, mean, variance = self._level
            is_low = shares < mean - _FALLEN * np.sqrt(variance)
            fallen &= is_low | (weight == 0.0) | ~relevant.any()
            self._add_shares(shares, relevant, row)
        factor = _LOST_FACTOR if ages is not None and is_tested else 1
        ages = np.zeros(len(used), dtype=np.int64) if ages is None else ages
        self._was_relevant |= ages > 0
        values = 2 * used.astype(np.int64) + relevant
        values = np.where((values == 2) & ~self._was_relevant, 4, values)
        # A loss that other changes explain leaves the state as it was.
        values = np.where((values == 2) & (self._state != 2) & ~fallen & (ages == 0), self._state, values)
        changed = values != self._candidate
        self._candidate_since = np.where(changed, np.maximum(row - ages, 0), self._candidate_since)
        self._candidate = values
        wait = np.where(values == 2, factor * self.patience, self.patience)
        settled = (values != self._state) & ((row - self._candidate_since >= wait) | (ages > 0))
        self._since = np.where(settled, self._candidate_since, self._since)
        self._state = np.where(settled, values, self._state)
        self._was_relevant |= (self._state == 1) | (self._state == 3)

    def _add_shares(self, shares: Floats, relevant: Mask, row: int) -> None:
        keep = 0.5 ** ((row - self._row) / _LEVEL_HALF_LIFE)
        weight, mean, variance = self._level
        relevant = relevant & ((weight == 0.0) | (shares > _FALLING * mean))  # not of a share that is falling
        now = np.where(relevant, keep * weight + (1.0 - keep), weight)
        step = np.divide(1.0 - keep, now, out=np.zeros(len(now)), where=relevant & (now > 0.0))
        change = shares - mean
        self._level = np.array([now, mean + step * change, (1.0 - step) * (variance + step * change**2)])
        self._row = row

    @property
    def is_relevant(self) -> Mask:
        """Whether each feature is in a state of relevant features."""
        return np.isin(self._state, (1, 3))

    @property
    def is_used(self) -> Mask:
        """Whether each feature is in a state of features that the model uses."""
        return self._state >= 2

    @property
    def names(self) -> list[str]:
        """The state of each feature; "unknown" until one has lasted for `patience` rows."""
        return [UNKNOWN if code < 0 else STATES[code] for code in self._state.tolist()]

    @property
    def since(self) -> list[int]:
        """Number of rows before the current state began."""
        return self._since.tolist()


def share(values: Floats) -> Floats:
    """Return values divided by their sum, negative ones and NaN as 0.

    >>> share(np.array([3.0, 1.0, -1.0, np.nan]))
    array([0.75, 0.25, 0.  , 0.  ])
    """
    positive = np.maximum(np.nan_to_num(values, nan=0.0), 0.0)
    total = positive.sum()
    return positive / total if total > 0.0 else positive
