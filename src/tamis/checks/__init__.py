"""Conformance checks of the selectors' contract, for the estimators of Tamis and for your own."""

from tamis.checks.cells import cell_classifier_checks, check_cell_classifier
from tamis.checks.columns import check_column_selector, column_selector_checks
from tamis.checks.names import check_named_model, named_model_checks
from tamis.checks.rows import check_row_selector, row_selector_checks
from tamis.checks.suite import Report
from tamis.checks.targets import check_target_model, target_model_checks

__all__ = [
    "Report", "cell_classifier_checks", "check_cell_classifier", "check_column_selector", "check_named_model",
    "check_row_selector", "check_target_model", "column_selector_checks", "named_model_checks", "row_selector_checks",
    "target_model_checks",
]  # fmt: skip
