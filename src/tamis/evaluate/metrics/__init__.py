"""Measures of predictions, selected sets, reaction to drift, and memory of models."""

from tamis.evaluate.metrics.classification import RunningMetrics
from tamis.evaluate.metrics.drift import Detections, Recovery, detections, recovery
from tamis.evaluate.metrics.metric import Fading, Metric, Sliding
from tamis.evaluate.metrics.predictions import (
    F1,
    MAE,
    R2,
    RMSE,
    Accuracy,
    BalancedAccuracy,
    BrierScore,
    Kappa,
    LogLoss,
    MacroAUC,
    PinballLoss,
    Precision,
    Recall,
)  # fmt: skip
from tamis.evaluate.metrics.ranking import SlidingAUC, SlidingMacroAUC, SlidingPrecisionRecall
from tamis.evaluate.metrics.regression import RunningErrors
from tamis.evaluate.metrics.selection import (
    SelectionAccuracy,
    detection_rate,
    selection_accuracy,
    state_bytes,
)
from tamis.evaluate.metrics.stability import (
    PreqCVStability,
    SlidingStability,
    jaccard_similarity,
    nogueira,
    nogueira_variance,
    pearson_similarity,
    preq_cv_stability,
)

__all__ = [
    "F1", "MAE", "R2", "RMSE", "Accuracy", "BalancedAccuracy", "BrierScore", "Detections", "Fading", "Kappa",
    "LogLoss", "MacroAUC", "Metric", "PinballLoss", "Precision", "PreqCVStability", "Recall", "Recovery",
    "RunningErrors", "RunningMetrics", "SelectionAccuracy", "Sliding", "SlidingAUC", "SlidingMacroAUC",
    "SlidingPrecisionRecall", "SlidingStability", "detection_rate", "detections", "jaccard_similarity", "nogueira",
    "nogueira_variance", "pearson_similarity", "preq_cv_stability", "recovery", "selection_accuracy", "state_bytes",
]  # fmt: skip
