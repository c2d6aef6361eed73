"""Incremental importance: how much the predictions of any model depend on each feature, over a stream."""

from tamis.importance.pfi import IncrementalPFI
from tamis.importance.sage import IncrementalSAGE

__all__ = ["IncrementalPFI", "IncrementalSAGE"]
