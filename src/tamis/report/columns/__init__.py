"""The report on streaming features: its page, and its figures with matplotlib."""

from tamis.report.columns.charts import plot_columns
from tamis.report.columns.page import columns_page, write_report

__all__ = ["columns_page", "plot_columns", "write_report"]
