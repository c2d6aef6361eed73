"""Test-then-train: one run of a selector and a learner over a stream, and its result."""

from tamis.evaluate.test_then_train.prequential import prequential
from tamis.evaluate.test_then_train.result import PrequentialResult, Step

__all__ = ["PrequentialResult", "Step", "prequential"]
