"""Rotating hyperplane: which side of a plane through the middle of the cube (Hulten, Spencer, Domingos, KDD 2001)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tamis._validation import Array, Floats
from tamis.streams.concepts.concept import Concept


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
        weights: Floats = rng.uniform(0.5, 1.0, n) * rng.choice([-1.0, 1.0], n)
        return weights

    def label(self, values: Array) -> Array:
        """Return 1 on the side that the normal points to, else 0."""
        return ((values - 0.5) @ self.weights > 0).astype(np.intp)
