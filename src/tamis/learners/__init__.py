"""Classifiers: those that choose their own features, and those that begin anew after a drift."""

from tamis.learners.hoeffding import HoeffdingAdaptiveTree, HoeffdingTree, export_text, plot_tree
from tamis.learners.knn import WeightedKNN
from tamis.learners.naive_bayes import WeightedNaiveBayes
from tamis.learners.reset import ResetOnDrift
from tamis.learners.sparse_fsa import SparseFSA

__all__ = [
    "HoeffdingAdaptiveTree",
    "HoeffdingTree",
    "ResetOnDrift",
    "SparseFSA",
    "WeightedKNN",
    "WeightedNaiveBayes",
    "export_text",
    "plot_tree",
]
