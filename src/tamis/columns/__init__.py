"""Features that arrive: a selector is told the target once, then offered columns, and decides upon each at once."""

from tamis.columns.alpha_investing import AlphaInvesting

__all__ = ["AlphaInvesting"]
