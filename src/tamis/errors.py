"""The exceptions Tamis raises; each message says what was wrong, with which value, and what to do."""

from __future__ import annotations

__all__ = ["CheckpointError", "DataError", "StateError", "StreamError", "TamisError", "UnknownNameError"]


class TamisError(Exception):
    """Base class of every exception that Tamis defines."""


class DataError(TamisError, ValueError):
    """Rows, labels or weights that cannot be learned from; the model is left as it was."""


class StreamError(TamisError, ValueError):
    """A file or stream that cannot be read as rows."""


class CheckpointError(TamisError, ValueError):
    """A saved state that is truncated, altered, or of another kind than expected."""


class StateError(TamisError, ValueError):
    """A model whose arrays do not fit together, because it was changed from outside; its state is left as it is."""


class UnknownNameError(TamisError, KeyError):
    """A name that is not in the catalogue, with the nearest names that are."""

    def __str__(self) -> str:
        # KeyError would show the message in quotes.
        return str(self.args[0]) if self.args else ""
