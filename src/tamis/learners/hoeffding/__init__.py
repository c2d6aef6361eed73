"""Hoeffding trees in flat arrays: one kernel learns a batch row by row, with no Python object per node."""

from tamis.learners.hoeffding.export import export_text, plot_tree
from tamis.learners.hoeffding.forest import AdaptiveRandomForest, StreamingRandomPatches
from tamis.learners.hoeffding.shape import Node
from tamis.learners.hoeffding.tree import HoeffdingAdaptiveTree, HoeffdingTree

__all__ = [
    "AdaptiveRandomForest",
    "HoeffdingAdaptiveTree",
    "HoeffdingTree",
    "Node",
    "StreamingRandomPatches",
    "export_text",
    "plot_tree",
]
