"""SEA: whether the sum of two of many numbers exceeds a threshold (Street, Kim, KDD 2001; feature drift: Barddal).

Deviations from the released generator: every feature, not only the relevant ones, is U(0, 10), so that the scale is
uninformative; the thresholds are those of the paper and of MOA (8, 9, 7, 9.5), not 5 for the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tamis._validation import Array
from tamis.streams.concepts.concept import Concept
from tamis.streams.draws import Draws


@dataclass(frozen=True)
class SEA(Concept):
    """Class 1 if the sum of two features exceeds a threshold; all features are uniform in [0, 10].

    Parameters
    ----------
    relevant : tuple of two int, default=(0, 1)
        The columns that are added.
    theta : float in (0, 20), default=8.0
        The threshold.
    n_features : int, default=3
        At least 2.
    positive_share : float in (0, 1) or None, default=0.5
        Probability of class 1; None for the natural one, 0.68 with the threshold 8.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    References
    ----------
    Street, Kim (2001). A Streaming Ensemble Algorithm (SEA) for Large-Scale Classification. KDD.

    Examples
    --------
    >>> import numpy as np
    >>> SEA(relevant=(0, 2), theta=9.0).label(np.array([[4.0, 4.9], [4.0, 5.1]])).tolist()
    [0, 1]
    """

    relevant: tuple[int, ...] = (0, 1)
    theta: float = 8.0
    n_features: int = 3
    positive_share: float | None = 0.5

    _limits: ClassVar = {"theta": "(0, 20)"}
    _each: ClassVar = (0.0, 10.0, 0)
    _n_relevant: ClassVar = 2

    def sample_given_class(self, draws: Draws, rows: Array, values: Array, y: Array) -> None:
        """Transform two uniform values into two of the required class: their sum, then the first one given the sum.

        The distribution function of the sum s is F(s) = s^2/200 up to 10, and 1 - (20 - s)^2/200 above.
        """
        below = self.theta**2 / 200 if self.theta <= 10 else 1 - (20 - self.theta) ** 2 / 200
        f = values[:, 0] * 0.1
        f *= np.where(y == 1, 1 - below, below)
        f += below * y
        upper = f > 0.5
        half = np.sqrt(200 * np.where(upper, 1 - f, f))  # the sum, or 20 minus the sum
        first = values[:, 1] * 0.1 * half
        second = half - first
        values[:, 0] = np.where(upper, 10 - first, first)
        values[:, 1] = np.where(upper, 10 - second, second)

    def label(self, values: Array) -> Array:
        """Return 1 where the two values sum to more than the threshold, else 0."""
        return (values[:, 0] + values[:, 1] > self.theta).astype(np.intp)
