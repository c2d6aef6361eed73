"""The report of a run: its page, and its figure with matplotlib."""

from tamis.report.run.charts import plot
from tamis.report.run.page import write_report

__all__ = ["plot", "write_report"]
