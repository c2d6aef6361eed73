"""How well a selector does on a stream: accuracy, stability, time and memory, test-then-train."""

from tamis.evaluate.auc import SlidingAUC
from tamis.evaluate.comparison import ExperimentResult
from tamis.evaluate.experiment import Progress, run_experiment
from tamis.evaluate.metrics import RunningMetrics
from tamis.evaluate.prequential import prequential
from tamis.evaluate.reaction import Detections, Recovery, detections, recovery
from tamis.evaluate.result import PrequentialResult, Step
from tamis.evaluate.selection import SelectionAccuracy, detection_rate, selection_accuracy
from tamis.evaluate.size import state_bytes
from tamis.evaluate.stability import SlidingStability, nogueira, nogueira_variance
from tamis.evaluate.stability_preq_cv import (
    PreqCVStability,
    jaccard_similarity,
    pearson_similarity,
    preq_cv_stability,
)

__all__ = [
    "Detections",
    "ExperimentResult",
    "PreqCVStability",
    "PrequentialResult",
    "Progress",
    "Recovery",
    "RunningMetrics",
    "SelectionAccuracy",
    "SlidingAUC",
    "SlidingStability",
    "Step",
    "detection_rate",
    "detections",
    "jaccard_similarity",
    "nogueira",
    "nogueira_variance",
    "pearson_similarity",
    "preq_cv_stability",
    "prequential",
    "recovery",
    "run_experiment",
    "selection_accuracy",
    "state_bytes",
]
