"""The concepts of streams with known relevant features, one family per file."""

from tamis.streams.concepts.agrawal import Agrawal
from tamis.streams.concepts.asset_negotiation import AssetNegotiation
from tamis.streams.concepts.binary import BG1, BG2, BG3
from tamis.streams.concepts.concept import Concept, Feature
from tamis.streams.concepts.hyperplane import Hyperplane
from tamis.streams.concepts.linear_window import LinearWindow
from tamis.streams.concepts.random_rbf import RandomRBF
from tamis.streams.concepts.random_tree import RandomTree
from tamis.streams.concepts.sea import SEA
from tamis.streams.concepts.stagger import STAGGER

__all__ = [
    "BG1",
    "BG2",
    "BG3",
    "SEA",
    "STAGGER",
    "Agrawal",
    "AssetNegotiation",
    "Concept",
    "Feature",
    "Hyperplane",
    "LinearWindow",
    "RandomRBF",
    "RandomTree",
]
