"""Classifiers: feature-weighted and feature-selecting models, trees, forests, rules, and models reset after a drift."""

from tamis.learners.hoeffding import (
    CVFDT,
    VFDR,
    AdaptiveRandomForest,
    HoeffdingAdaptiveTree,
    HoeffdingTree,
    OzaBoost,
    RandomRules,
    StreamingRandomPatches,
    StreamingStacking,
    export_text,
    plot_tree,
)
from tamis.learners.huwrs import HUWRS
from tamis.learners.knn import WeightedKNN
from tamis.learners.linear import Perceptron, SGDLinearSVM, SGDLogisticRegression
from tamis.learners.naive_bayes import WeightedNaiveBayes
from tamis.learners.refit import Refit
from tamis.learners.reset import ResetOnDrift
from tamis.learners.sgbt import SGBT
from tamis.learners.sparse_fsa import SparseFSA

__all__ = [
    "CVFDT", "HUWRS", "SGBT", "VFDR", "AdaptiveRandomForest", "HoeffdingAdaptiveTree", "HoeffdingTree", "OzaBoost",
    "Perceptron", "RandomRules", "Refit", "ResetOnDrift", "SGDLinearSVM", "SGDLogisticRegression", "SparseFSA",
    "StreamingRandomPatches", "StreamingStacking", "WeightedKNN", "WeightedNaiveBayes", "export_text", "plot_tree",
]  # fmt: skip
