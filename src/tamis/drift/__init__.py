"""Drift detectors, which monitor a sequence of errors or of other numbers."""

from __future__ import annotations

import copy
from typing import Any

from tamis._validation import short_repr
from tamis._validation.parameters import Kind, name_or
from tamis.drift.adwin import ADWIN
from tamis.drift.ddm import DDM
from tamis.drift.detector import Detector, DriftDetector
from tamis.drift.ecdd import ECDD
from tamis.drift.hddm import HDDMA, HDDMW
from tamis.errors import UnknownNameError, did_you_mean

__all__ = [
    "ADWIN", "DDM", "DETECTOR", "DETECTORS", "ECDD", "HDDMA", "HDDMW", "Detector", "DriftDetector", "make",
    "new_detector",
]  # fmt: skip

DETECTORS: dict[str, type[Detector]] = {
    "adwin": ADWIN, "ddm": DDM, "ecdd": ECDD, "hddm-a": HDDMA, "hddm-w": HDDMW,
}  # fmt: skip


def make(name: str, **parameters: Any) -> Detector:
    """Return a new detector.

    Parameters
    ----------
    name : {"adwin", "ddm", "ecdd", "hddm-a", "hddm-w"}
    **parameters
        Parameters of its class.

    Raises
    ------
    UnknownNameError
        If the name is unknown; the message suggests the nearest name.

    Examples
    --------
    >>> make("ecdd", arl0=1000).arl0
    1000
    """
    if name.lower() not in DETECTORS:
        hint = did_you_mean(name.lower(), [*DETECTORS])
        raise UnknownNameError(
            f"No drift detector is named {short_repr(name)}{hint} Known: {', '.join(DETECTORS)}."
        )
    return DETECTORS[name.lower()](**parameters)


def new_detector(detector: str | DriftDetector) -> DriftDetector:
    """Return a detector that has seen nothing, by name or as a copy of another one."""
    new: DriftDetector = make(detector) if isinstance(detector, str) else copy.deepcopy(detector)
    new.reset()
    return new


DETECTOR = name_or(
    "a drift detector",
    make,
    Kind(
        "an object with update and reset",
        lambda value: isinstance(value, DriftDetector) and not isinstance(value, type),
    ),
)
