"""The protocol of drift detectors, and the base class of those in Tamis."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from tamis._atomic import atomically
from tamis._guard import ThreadSafe
from tamis._validation import Floats, as_numbers, check_choice, reject_masked, short_repr
from tamis.base.html_repr import html_repr
from tamis.dependence.autocorrelation import SERIES_SIZE
from tamis.errors import DataError

DEPENDENCE = ("independent", "auto")
EVERY = 32  # values between two readings of the variance inflation


@runtime_checkable
class DriftDetector(Protocol):
    """An object that monitors a sequence of numbers, and detects a change of their distribution.

    Attributes
    ----------
    n_seen : int
        Number of values since the last detection or reset.
    in_warning : bool
        Whether a drift is suspected but not yet detected; always False for detectors without a warning level.
    """

    @property
    def n_seen(self) -> int:
        """Number of values since the last detection or reset."""

    @property
    def in_warning(self) -> bool:
        """Whether a drift is suspected."""

    def update(self, value: float) -> bool:
        """Add a value; return True if a drift is detected. The detector has then restarted."""

    def reset(self) -> None:
        """Reset the detector."""


class Detector(ThreadSafe, ABC):
    """A detector with a single state array and a single kernel.

    A subclass validates its parameters in the constructor. Its `_initial_state` returns the initial state, and its
    `_run` updates the state with values. `state[0]` is the number of values seen, `state[1]` is 1 in warning. With
    ``dependence="auto"``, the autocorrelation of all values since the last reset is measured, over drifts too.
    """

    _shapes = f"""
        _one (1)
        _series ({SERIES_SIZE})
        _series[:1] float in [0, 2**62]
        _series[2:3] float in [0, inf]
        _series[4::3] float in [0, inf]
        _series[5::3] float in [0, 2**62]
    """

    dependence: str
    state: Floats
    _series: Floats
    _low, _high = 0.0, 1.0  # an error, or a loss scaled to it

    _n_numbers: int  # of the state

    def __init__(self, dependence: str) -> None:
        check_choice("dependence", dependence, DEPENDENCE)
        self.dependence = dependence
        self.reset()

    def _initial_state(self) -> Floats:
        """Return the state before the first value."""
        return np.zeros(self._n_numbers)

    @abstractmethod
    def _run(self, values: Floats) -> int:
        """Update the state and the `_tracked` series up to the first drift; return its index, or -1."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_seen={self.n_seen}, in_warning={self.in_warning})"

    def _repr_html_(self) -> str:
        names = [name for name in inspect.signature(type(self)).parameters if hasattr(self, name)]
        n = self.n_seen
        facts = [
            f"{n:,} value{'s' * (n != 1)} since the last drift",
            *["a drift is suspected"] * self.in_warning,
            *["values are autocorrelated"] * (self.variance_inflation > 1.0),
        ]
        return html_repr(type(self).__name__, facts, {name: [str(getattr(self, name))] for name in names})

    @property
    def n_seen(self) -> int:
        """Number of values since the last detection or reset."""
        return int(self.state[0])

    @property
    def in_warning(self) -> bool:
        """Whether a drift is suspected."""
        return bool(self.state[1])

    @property
    def variance_inflation(self) -> float:
        """Factor by which autocorrelation inflates the variance of means of the values; 1 if none was found."""
        return 1.0 if self.dependence == "independent" else max(float(self._series[2]), 1.0)

    def reset(self) -> None:
        """Reset the detector."""
        self._series = np.zeros(SERIES_SIZE)
        self._restart()

    def _restart(self) -> None:
        """Reset the state after a drift; the measured autocorrelation is retained."""
        self.state, self._one = self._initial_state(), np.zeros(1)

    @property
    def _tracked(self) -> Floats:
        """The series that the kernels update; empty if values are assumed independent."""
        return self._series[:0] if self.dependence == "independent" else self._series

    def update(self, value: float) -> bool:
        """Add a value. If it raises, the detector is unchanged.

        Returns
        -------
        bool
            True if a drift is detected; the detector has then restarted.

        Raises
        ------
        DataError
            If the value is out of range.
        """
        try:
            fits = self._low <= value <= self._high and math.isfinite(value)
        except (TypeError, ValueError):  # text, or an array
            fits = False
        if not fits:
            self._reject(value)
        # A snapshot; `atomically` would take longer than the kernel.
        before, last, series = self.state.copy(), self._one[0], self._series
        if self.dependence != "independent":  # otherwise the series is not written
            series = series.copy()
        try:
            self._one[0] = value
            if self._run(self._one) < 0:
                return False
            self._restart()
        except BaseException:
            self.state, self._one[0], self._series = before, last, series
            raise
        return True

    def update_many(self, values: ArrayLike) -> int:
        """Add values up to the first drift. If it raises, the detector is unchanged.

        Parameters
        ----------
        values : array-like of shape (n,)

        Returns
        -------
        int
            Index of the value at which a drift was detected, or -1; values after it were not added.

        Raises
        ------
        DataError
            If a value is out of range.
        """
        numbers = as_numbers("values", values)
        self._validate(numbers)
        return atomically(self, self._advance, numbers, in_parts=True)

    def _advance(self, values: Floats) -> int:
        at = self._run(values)
        if at >= 0:
            self._restart()
        return at

    def drifts(self, values: ArrayLike) -> list[int]:
        """Add all values; return the indices at which drifts were detected.

        If it raises, the detector is unchanged.

        Examples
        --------
        >>> from tamis.drift import ECDD
        >>> errors = np.r_[np.zeros(500), np.ones(500)]
        >>> ECDD().drifts(errors)
        [500]
        """
        rest = as_numbers("values", values)
        self._validate(rest)
        return atomically(self, self._all_drifts, rest, in_parts=True)

    def _all_drifts(self, values: Floats) -> list[int]:
        drifts, start = list[int](), 0
        while (at := self._advance(values[start:])) >= 0:
            drifts.append(start + at)
            start += at + 1
        return drifts

    def _reject(self, value: Any) -> None:
        reject_masked("value", value)
        where = "between 0 (right) and 1 (wrong)" if self._high == 1.0 else "finite"
        raise DataError(f"{type(self).__name__} was given {short_repr(value)}: values must be {where}.")

    def _validate(self, values: Floats) -> None:
        if values.ndim != 1:
            raise DataError(f"values must be 1-dimensional, got an array of shape {values.shape}.")
        fit = (values >= self._low) & (values <= self._high) & np.isfinite(values)
        if not fit.all():
            self._reject(float(values[np.argmin(fit)]))
