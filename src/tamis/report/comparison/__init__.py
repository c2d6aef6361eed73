"""The report of an experiment: its page, and its figure with matplotlib."""

from tamis.report.comparison.page import write_comparison
from tamis.report.comparison.plots import plot_experiment

__all__ = ["plot_experiment", "write_comparison"]
