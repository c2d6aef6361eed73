"""Active feature acquisition: which feature of a row to acquire next, and when to stop."""

from __future__ import annotations

from tamis.base import Acquisition, CellClassifier, PriceList, Session
from tamis.cells.aaco import AACO
from tamis.cells.adaptive import AdaptiveIFC2F
from tamis.cells.etana import ETANA
from tamis.cells.fetana import FETANA
from tamis.cells.fixed_subset import FixedSubset
from tamis.cells.ifc2f import IFC2F
from tamis.cells.monitor import CaseMonitor

__all__ = [
    "AACO", "ETANA", "FETANA", "IFC2F", "Acquisition", "AdaptiveIFC2F", "CaseMonitor", "CellClassifier",
    "FixedSubset", "PriceList", "Session",
]  # fmt: skip
