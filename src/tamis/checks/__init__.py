"""Does a selector keep the contract? Checks for the ones in Tamis, and for your own."""

from tamis.checks.rows import Report, check_row_selector, row_selector_checks

__all__ = ["Report", "check_row_selector", "row_selector_checks"]
