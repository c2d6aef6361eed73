"""Estimators without `partial_fit` as stream learners, refitted on the last rows."""

from tamis.learners.refit.refit import Refit

__all__ = ["Refit"]
