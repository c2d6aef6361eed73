"""Presentation of results: one page, one terminal output and one notebook representation for every kind of result."""

from tamis.report.charts.chart import Chart
from tamis.report.content import Figure, Names, Remark, Reproduction, Section, Table
from tamis.report.page import check_writable, write_page
from tamis.report.result import Result

__all__ = [
    "Chart", "Figure", "Names", "Remark", "Reproduction", "Result", "Section", "Table", "check_writable", "write_page",
]  # fmt: skip
