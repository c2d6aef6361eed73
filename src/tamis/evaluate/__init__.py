"""How well a selector does on a stream: accuracy, stability, time and memory, test-then-train."""

from tamis.evaluate.metrics import RunningMetrics
from tamis.evaluate.prequential import prequential
from tamis.evaluate.result import PrequentialResult, Step
from tamis.evaluate.stability import SlidingStability, nogueira, nogueira_variance

__all__ = [
    "PrequentialResult",
    "RunningMetrics",
    "SlidingStability",
    "Step",
    "nogueira",
    "nogueira_variance",
    "prequential",
]
