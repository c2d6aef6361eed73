"""Terminal output: a running evaluation, a finished one, and listings."""

from tamis.terminal.characters import bar, printable
from tamis.terminal.listing import show_datasets, show_entries, show_parameters, show_streams
from tamis.terminal.result import chosen_features, chosen_steps, feature_map, show_result
from tamis.terminal.watch import Watch

__all__ = [
    "Watch",
    "bar",
    "chosen_features",
    "chosen_steps",
    "feature_map",
    "printable",
    "show_datasets",
    "show_entries",
    "show_parameters",
    "show_result",
    "show_streams",
]
