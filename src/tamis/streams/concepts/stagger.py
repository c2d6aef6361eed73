"""STAGGER: three concepts about the size, colour and shape of an object (Schlimmer, Granger, Machine Learning 1, 1986).

Size small, medium, large; colour red, blue, green; shape circle, square, triangle. The relevant
features differ between concepts, so the stream has feature drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tamis._validation import Array
from tamis.streams.concepts.concept import Concept, Feature

_FEATURES = (Feature.nominal("size", 3), Feature.nominal("color", 3), Feature.nominal("shape", 3))
_RELEVANT = ((0, 1), (1, 2), (0,))
_RED, _GREEN = 0, 2


@dataclass(frozen=True)
class STAGGER(Concept):
    """Class 1 for objects that are small and red (1), green or round (2), medium or large (3).

    Parameters
    ----------
    function : int in [1, 3], default=1
        Number of the rule.
    positive_share : float in (0, 1) or None, default=0.5
        Probability of class 1; None for the natural ones: 1/9, 5/9, 2/3.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    References
    ----------
    Schlimmer, Granger (1986). Incremental Learning from Noisy Data. Machine Learning 1.

    Examples
    --------
    >>> [STAGGER(function).relevant for function in (1, 2, 3)]
    [(0, 1), (1, 2), (0,)]
    """

    function: int = 1
    positive_share: float | None = 0.5

    _limits: ClassVar = {"function": "[1, 3]"}
    features: ClassVar = _FEATURES
    tied: ClassVar = (0, 1, 2)  # all columns

    @property
    def relevant(self) -> tuple[int, ...]:  # type: ignore[override]
        """The columns that the rule depends on."""
        return _RELEVANT[self.function - 1]

    def label(self, values: Array) -> Array:
        """Return 1 for the objects that the rule describes, else 0."""
        size, color, shape = list[Array](values.T)
        if self.function == 1:
            wanted = (size == 0) & (color == _RED)
        elif self.function == 2:
            wanted = (color == _GREEN) | (shape == 0)
        else:
            wanted = size > 0
        return np.asarray(wanted, dtype=np.intp)
