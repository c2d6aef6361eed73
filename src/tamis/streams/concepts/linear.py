"""Concepts with a linear boundary.

The stream of Wang and Barbu (2021), section 3.2: a linear target of a sliding window of columns.

    x_ij = nu z_i + e_ij,   z, e standard normal                                                              (21)
    y_i  = b (sum of x_ij over j in the window) + c + noise, standard normal                                  (20)
    window of row i: columns floor(i/l) to floor(i/l) + k - 1                                                 (22)

Errata: by (21) the correlation of two features is nu^2 / (1 + nu^2), 0.2 for nu = 0.5, not nu / (1 + nu); the interval
printed in (22) has k + 1 columns. The paper does not specify how y is converted to a class; here the class is y > 0.

SEA: whether the sum of two of many numbers exceeds a threshold (Street, Kim, KDD 2001; feature drift: Barddal).

Deviations from the released generator: every feature, not only the relevant ones, is U(0, 10), so that the scale is
uninformative; the thresholds are those of the paper and of MOA (8, 9, 7, 9.5), not 5 for the first.

Rotating hyperplane: which side of a plane through the middle of the cube (Hulten, Spencer, Domingos, KDD 2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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
        return self.signal * values.sum(axis=1) + self.intercept

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


@dataclass(frozen=True)
class Hyperplane(Concept):
    """Class 1 where sum of w_j (x_j - 1/2) over the relevant features is positive; all features are uniform in [0, 1].

    The weights are random with sizes in [0.5, 1), so that every such feature has an effect.

    Parameters
    ----------
    relevant : tuple of int, default=(0, 1, 2)
        Columns with a weight, ascending.
    n_features : int, default=10
        Number of columns.
    positive_share : float in (0, 1) or None, default=None
        Probability of class 1; None for the natural one, 1/2.
    seed : int, default=0
        Seed of the weights; at least 0.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    References
    ----------
    Hulten, Spencer, Domingos (2001). Mining Time-Changing Data Streams. KDD.

    Examples
    --------
    >>> import numpy as np
    >>> plane = Hyperplane(relevant=(1, 4), seed=1)
    >>> np.abs(plane.weights).min() >= 0.5
    np.True_
    """

    relevant: tuple[int, ...] = (0, 1, 2)
    n_features: int = 10
    positive_share: float | None = None
    seed: int = 0

    @cached_property
    def weights(self) -> Floats:
        """The normal of the plane, shape (n_relevant,)."""
        rng, n = np.random.default_rng(self.seed), len(self.relevant)
        return rng.uniform(0.5, 1.0, n) * rng.choice([-1.0, 1.0], n)

    def label(self, values: Array) -> Array:
        """Return 1 on the side that the normal points to, else 0."""
        return ((values - 0.5) @ self.weights > 0).astype(np.intp)
