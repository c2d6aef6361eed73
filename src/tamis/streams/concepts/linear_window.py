"""The stream of Wang and Barbu (2021), section 3.2: a linear target of a sliding window of columns.

    x_ij = nu z_i + e_ij,   z, e standard normal                                                              (21)
    y_i  = b (sum of x_ij over j in the window) + c + noise, standard normal                                  (20)
    window of row i: columns floor(i/l) to floor(i/l) + k - 1                                                 (22)

Errata: by (21) the correlation of two features is nu^2 / (1 + nu^2), 0.2 for nu = 0.5, not nu / (1 + nu); the interval
printed in (22) has k + 1 columns. The paper does not specify how y is converted to a class; here the class is y > 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tamis._validation import Array, Floats, check_choice, check_number
from tamis.streams.concepts.concept import Concept, Feature, make_features
from tamis.streams.draws import Draws


@dataclass(frozen=True)
class LinearWindow(Concept):
    """A target that is linear in a window of adjacent columns, among correlated normal features.

    Parameters
    ----------
    first : int, default=0
        First column of the window; past the last column it continues at the first.
    size : int, default=100
        k, the number of columns in the window, in [1, n_features].
    n_features : int, default=1000
        Number of columns.
    nu : float, default=0.5
        At least 0; the correlation of the features is nu^2 / (1 + nu^2).
    signal : float, default=1.0
        b, the coefficient of every relevant feature; not 0.
    intercept : float, default=0.0
        c.
    target : {"class", "number"}, default="class"
        Whether y > 0, or y itself.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    References
    ----------
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift. Section 3.2.

    Examples
    --------
    >>> LinearWindow(first=8, size=3, n_features=10).relevant
    (0, 8, 9)
    """

    first: int = 0
    size: int = 100
    n_features: int = 1000
    nu: float = 0.5
    signal: float = 1.0
    intercept: float = 0.0
    target: str = "class"
    positive_share = None

    _limits: ClassVar = {
        "first": "[0, inf)", "nu": "[0, inf)", "signal": "(-inf, inf)", "intercept": "(-inf, inf)",
    }  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("size", self.size, low=1, high=self.n_features, integer=True)
        check_choice("target", self.target, ("class", "number"))
        if self.signal == 0:
            raise ValueError("signal must not be 0: then no feature would be relevant.")

    @property
    def features(self) -> tuple[Feature, ...]:
        """Normal numbers; the range contains 99.9 % of the values."""
        bound = 3.3 * (1 + self.nu**2) ** 0.5
        return make_features(self.n_features, -bound, bound)

    @property
    def relevant(self) -> tuple[int, ...]:  # type: ignore[override]
        """The columns of the window."""
        return tuple(sorted((self.first + j) % self.n_features for j in range(self.size)))

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """Two, or none for a number."""
        return 2 if self.target == "class" else 0

    def number(self, values: Array) -> Floats:
        """Return the target of the relevant columns before noise."""
        y: Floats = self.signal * values.sum(axis=1) + self.intercept
        return y

    def label(self, values: Array) -> Array:
        """Return 1 where the target before noise is positive, else 0."""
        return (self.number(values) > 0).astype(np.intp)

    def draw(self, draws: Draws, rows: Array, out: Array) -> Array:
        """Draw some rows of the stream; see :class:`Concept`."""
        n = self.n_features
        out[:, :n] = draws.child("features").normal(rows, n)  # (21)
        out[:, :n] += self.nu * draws.child("common").normal(rows, 1)
        y = self.number(out[:, list(self.relevant)])  # (20)
        y += draws.child("target").normal(rows, 1)[:, 0]
        return (y > 0).astype(np.intp) if self.target == "class" else y
