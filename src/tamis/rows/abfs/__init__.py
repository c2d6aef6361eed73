"""ABFS and its parts."""

from tamis.rows.abfs.abfs import ABFS

__all__ = ["ABFS"]
