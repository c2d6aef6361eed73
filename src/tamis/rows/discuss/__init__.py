"""DISCUSS and its parts: what the last rows tell, how features are walked, and what speaks for a drift."""

from tamis.rows.discuss.discuss import DISCUSS

__all__ = ["DISCUSS"]
