"""Hoeffding trees and rules in flat arrays: a kernel learns a batch row by row, without Python objects for nodes."""

from tamis.learners.hoeffding.cvfdt import CVFDT
from tamis.learners.hoeffding.export import export_text, plot_tree
from tamis.learners.hoeffding.forest import AdaptiveRandomForest, OzaBoost, StreamingRandomPatches
from tamis.learners.hoeffding.records import Node
from tamis.learners.hoeffding.stacking import StreamingStacking
from tamis.learners.hoeffding.tree import HoeffdingAdaptiveTree, HoeffdingTree
from tamis.learners.hoeffding.vfdr import VFDR, Literal, RandomRules, Rule

__all__ = [
    "CVFDT", "VFDR", "AdaptiveRandomForest", "HoeffdingAdaptiveTree", "HoeffdingTree", "Literal", "Node", "OzaBoost",
    "RandomRules", "Rule", "StreamingRandomPatches", "StreamingStacking", "export_text", "plot_tree",
]  # fmt: skip
