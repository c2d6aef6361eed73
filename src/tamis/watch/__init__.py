"""Monitoring of a model in production: reliance on features, their relevance, input drift and alerts."""

from tamis.watch.delivery import Delivery
from tamis.watch.drift_magnitude import DriftMagnitude, drift_over_time
from tamis.watch.input_drift import InputDrift
from tamis.watch.retirement import loss_bound, retire
from tamis.watch.rules import Rule
from tamis.watch.rules_file import read_rules
from tamis.watch.watch import Watch

__all__ = [
    "Delivery",
    "DriftMagnitude",
    "InputDrift",
    "Rule",
    "Watch",
    "drift_over_time",
    "loss_bound",
    "read_rules",
    "retire",
]
