"""The concepts of streams with known relevant features, one family per file."""

from tamis.streams.concepts.concept import Concept, Feature
from tamis.streams.concepts.linear import SEA, Hyperplane, LinearWindow
from tamis.streams.concepts.random_regions import RandomRBF, RandomTree
from tamis.streams.concepts.rules import BG1, BG2, BG3, STAGGER, Agrawal, AssetNegotiation

__all__ = [
    "BG1", "BG2", "BG3", "SEA", "STAGGER", "Agrawal", "AssetNegotiation", "Concept", "Feature", "Hyperplane",
    "LinearWindow", "RandomRBF", "RandomTree",
]  # fmt: skip
