"""FIRES and its parts."""

from tamis.rows.fires.fires import FIRES

__all__ = ["FIRES"]
