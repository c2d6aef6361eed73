"""DISCUSS and its parts: window statistics, selection of features, and drift detection."""

from tamis.rows.discuss.discuss import DISCUSS

__all__ = ["DISCUSS"]
