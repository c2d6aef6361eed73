"""Test-then-train: one run of a selector and a learner over a stream, and its result."""

from tamis.evaluate.prequential.loop import prequential
from tamis.evaluate.prequential.result import PrequentialResult, Step

__all__ = ["PrequentialResult", "Step", "prequential"]
