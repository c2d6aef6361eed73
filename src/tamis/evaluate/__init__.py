"""How well a selector does on a stream: accuracy, stability, time and memory, test-then-train."""

from tamis.evaluate.experiment import ExperimentResult, Progress, run_experiment
from tamis.evaluate.metrics import (
    Detections,
    PreqCVStability,
    Recovery,
    RunningMetrics,
    SelectionAccuracy,
    SlidingAUC,
    SlidingPrecisionRecall,
    SlidingStability,
    detection_rate,
    detections,
    jaccard_similarity,
    nogueira,
    nogueira_variance,
    pearson_similarity,
    preq_cv_stability,
    recovery,
    selection_accuracy,
    state_bytes,
)
from tamis.evaluate.recommendation import Recommendation, recommend
from tamis.evaluate.test_then_train import PrequentialResult, Step, prequential

__all__ = [
    "Detections",
    "ExperimentResult",
    "PreqCVStability",
    "PrequentialResult",
    "Progress",
    "Recommendation",
    "Recovery",
    "RunningMetrics",
    "SelectionAccuracy",
    "SlidingAUC",
    "SlidingPrecisionRecall",
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
    "recommend",
    "recovery",
    "run_experiment",
    "selection_accuracy",
    "state_bytes",
]
