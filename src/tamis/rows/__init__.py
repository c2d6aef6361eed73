"""Rows arrive: which features matter now?"""

from tamis.rows.fires import FIRES
from tamis.rows.ofs import OFS

__all__ = ["FIRES", "OFS"]
