"""The report of values that were bought: its page, and its figures with matplotlib."""

from tamis.report.acquisition.page import acquisition_page, write_report
from tamis.report.acquisition.plots import plot_costs, plot_missing, plot_paths

__all__ = ["acquisition_page", "plot_costs", "plot_missing", "plot_paths", "write_report"]
