"""Spark: files or DataFrames of a cluster are learned from on its workers, and one selector comes back."""

from tamis.adapters.spark.screening import StreamingScreen, screen, transform
from tamis.adapters.spark.selection import Selection, recommend, select

__all__ = ["Selection", "StreamingScreen", "recommend", "screen", "select", "transform"]
