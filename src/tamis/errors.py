"""The exceptions raised by Tamis; each message states what is wrong, the value, and what to do."""

from __future__ import annotations

__all__ = ["CheckpointError", "DataError", "StateError", "StreamError", "TamisError", "UnknownNameError"]


class TamisError(Exception):
    """Base class of every exception that Tamis defines."""


class DataError(TamisError, ValueError):
    """Invalid rows, labels or weights; the model is left unchanged."""


class StreamError(TamisError, ValueError):
    """A file or stream that cannot be read as rows."""


class CheckpointError(TamisError, ValueError):
    """A saved state that is truncated, altered, or of an unexpected type."""


class StateError(TamisError, ValueError):
    """A model with inconsistent arrays, because it was modified from outside; its state is left unchanged."""


class UnknownNameError(TamisError, KeyError):
    """A name that is not in the catalogue; the message suggests similar ones."""

    def __str__(self) -> str:
        # KeyError would show the message in quotes.
        return str(self.args[0]) if self.args else ""
