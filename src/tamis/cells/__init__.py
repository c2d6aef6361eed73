"""Cells arrive: which value of this row to buy next, and when to stop."""

from __future__ import annotations

from tamis.cells.adaptive import AdaptiveIFC2F
from tamis.cells.classifier import Acquisition, CellClassifier
from tamis.cells.etana import ETANA
from tamis.cells.fetana import FETANA
from tamis.cells.ifc2f import IFC2F
from tamis.cells.session import Session

__all__ = ["ETANA", "FETANA", "IFC2F", "Acquisition", "AdaptiveIFC2F", "CellClassifier", "Session"]
