"""Gradient-boosted trees that learn from a stream."""

from tamis.learners.sgbt.sgbt import SGBT

__all__ = ["SGBT"]
