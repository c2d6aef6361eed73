"""The report of features that arrived: its page, and its figures with matplotlib."""

from tamis.report.columns.page import columns_page, write_report
from tamis.report.columns.plots import plot_columns

__all__ = ["columns_page", "plot_columns", "write_report"]
