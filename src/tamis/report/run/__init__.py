"""The report of a run: its page, and its figure with matplotlib."""

from tamis.report.run.page import write_report
from tamis.report.run.plots import plot

__all__ = ["plot", "write_report"]
