"""The concepts that streams with known truth are made of, one family a file."""

from tamis.streams.concepts.concept import Concept, Feature
from tamis.streams.concepts.sea import SEA

__all__ = ["SEA", "Concept", "Feature"]
