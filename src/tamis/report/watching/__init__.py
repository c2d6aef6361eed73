"""The report of a watch on a model in production: its page, and its figure with matplotlib."""

from tamis.report.watching.charts import plot_watch
from tamis.report.watching.page import watch_page, write_report

__all__ = ["plot_watch", "watch_page", "write_report"]
