"""Reports: self-contained HTML pages, and figures; one folder for each kind of result."""

from tamis.report.page.document import check_writable
from tamis.report.run import plot, write_report

__all__ = ["check_writable", "plot", "write_report"]
