"""The report on active feature acquisition: its page, and its figures with matplotlib."""

from tamis.report.acquisition.charts import plot_costs, plot_missing, plot_paths
from tamis.report.acquisition.page import acquisition_page, write_report

__all__ = ["acquisition_page", "plot_costs", "plot_missing", "plot_paths", "write_report"]
