"""The exceptions raised by Tamis; each message states what is wrong, the value, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["CheckpointError", "DataError", "StateError", "StreamError", "TamisError", "UnknownNameError"]


def did_you_mean(
    word: str, known: Iterable[str], otherwise: str = ".", *, n: int = 1, cutoff: float = 0.6
) -> str:
    """Return the end of a clause, which suggests the known names that resemble a word; `otherwise` if none does.

    The names of a mapping stand for its values.

    >>> did_you_mean("offs", ["ofs", "sofs"]), did_you_mean("x", ["ofs"])
    ("; did you mean 'ofs'?", '.')
    """
    import difflib

    near: dict[Any, None] = {}
    for one in difflib.get_close_matches(word, known, n=n, cutoff=cutoff):
        near[known[one] if isinstance(known, Mapping) else one] = None
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else otherwise


def import_extra(module: str, purpose: str, extra: str) -> Any:
    """Import a module of an optional package, or raise an ImportError that names the extra that installs it.

    >>> import_extra("no_such_package", "A plot needs matplotlib", "plots")
    Traceback (most recent call last):
    ...
    ImportError: A plot needs matplotlib: pip install 'tamis[plots]'.
    """
    import importlib

    try:
        importlib.import_module(module.partition(".")[0])
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"{purpose}: pip install 'tamis[{extra}]'.") from None


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
