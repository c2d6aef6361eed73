"""How well a selector does on a stream: accuracy, stability, time and memory, test-then-train."""

from tamis.evaluate.auc import SlidingAUC
from tamis.evaluate.metrics import RunningMetrics
from tamis.evaluate.prequential import prequential
from tamis.evaluate.reaction import Detections, Recovery, detections, recovery
from tamis.evaluate.result import PrequentialResult, Step
from tamis.evaluate.selection import SelectionAccuracy, detection_rate, selection_accuracy
from tamis.evaluate.size import state_bytes
from tamis.evaluate.stability import SlidingStability, nogueira, nogueira_variance

__all__ = [
    "Detections",
    "PrequentialResult",
    "Recovery",
    "RunningMetrics",
    "SelectionAccuracy",
    "SlidingAUC",
    "SlidingStability",
    "Step",
    "detection_rate",
    "detections",
    "nogueira",
    "nogueira_variance",
    "prequential",
    "recovery",
    "selection_accuracy",
    "state_bytes",
]
