"""Terminal output: a running evaluation, any result, and listings."""

from tamis.terminal.characters import bar, printable
from tamis.terminal.listing import show_datasets, show_entries, show_parameters, show_streams
from tamis.terminal.result import show
from tamis.terminal.watch import Watch

__all__ = [
    "Watch", "bar", "printable", "show", "show_datasets", "show_entries", "show_parameters", "show_streams",
]  # fmt: skip
