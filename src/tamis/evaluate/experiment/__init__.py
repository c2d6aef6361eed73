"""A grid of streams, selectors, learners and seeds: run it, resume it, compare the methods."""

from tamis.evaluate.experiment.result import ExperimentResult
from tamis.evaluate.experiment.runner import Progress, run_experiment

__all__ = ["ExperimentResult", "Progress", "run_experiment"]
