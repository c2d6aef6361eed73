"""Rows arrive: which features matter now?"""

from tamis.rows.fires import FIRES

__all__ = ["FIRES"]
