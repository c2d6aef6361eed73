"""Auto, which compares selectors online, and its parts."""

from tamis.rows.auto.auto import Auto

__all__ = ["Auto"]
