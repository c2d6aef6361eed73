"""Watch a model in production: which features it relies on, which are relevant, which inputs drift, and alerts."""

from tamis.watch.input_drift import InputDrift
from tamis.watch.rules import Rule
from tamis.watch.watch import Watch

__all__ = ["InputDrift", "Rule", "Watch"]
