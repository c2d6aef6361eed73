"""Something to look at: a self-contained HTML page, and a figure."""

from tamis.report.html import check_writable, write_report
from tamis.report.plots import plot

__all__ = ["check_writable", "plot", "write_report"]
