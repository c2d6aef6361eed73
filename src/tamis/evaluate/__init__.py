"""Evaluation of a selector on a stream: accuracy, stability, time and memory, test-then-train."""

from tamis.evaluate import metrics
from tamis.evaluate.experiment import ExperimentResult, Progress, run_experiment
from tamis.evaluate.metrics import *
from tamis.evaluate.prequential import PrequentialResult, Step, prequential
from tamis.evaluate.prequential.targets import TargetsResult, prequential_by_target
from tamis.evaluate.recommendation import (
    Recommendation,
    TargetsRecommendation,
    recommend,
    recommend_by_target,
)

__all__ = ["ExperimentResult", "PrequentialResult", "Progress", "Recommendation", "Step"]
__all__ += ["TargetsRecommendation", "TargetsResult", "prequential", "prequential_by_target", "recommend"]
__all__ += ["recommend_by_target", "run_experiment"]
__all__ += metrics.__all__
