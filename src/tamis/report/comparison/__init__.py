"""The report of an experiment: its page, and its figure with matplotlib."""

from tamis.report.comparison.charts import plot_experiment
from tamis.report.comparison.page import write_comparison

__all__ = ["plot_experiment", "write_comparison"]
