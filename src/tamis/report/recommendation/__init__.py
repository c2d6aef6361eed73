"""The page of a recommendation."""

from tamis.report.recommendation.page import write_report

__all__ = ["write_report"]
