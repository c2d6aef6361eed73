"""Paragraphs that the docstrings of several classes share, written once."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import TypeVar

__all__ = ["fill_docstring"]

_C = TypeVar("_C", bound=type)


def fill_docstring(paragraphs: Mapping[str, str]) -> Callable[[_C], _C]:
    """Return a decorator that replaces each line ``%(name)s`` of a class's docstring with the paragraph of this name.

    Parameters
    ----------
    paragraphs : mapping of str to str
        They receive the indentation of the line.

    Raises
    ------
    KeyError
        If a docstring names another paragraph.

    Examples
    --------
    >>> @fill_docstring({"seed": "random_state : int"})
    ... class Model:
    ...     '''A model.
    ...
    ...     %(seed)s
    ...     '''
    >>> "    random_state : int" in Model.__doc__.splitlines()
    True
    """

    def paragraph(line: re.Match[str]) -> str:
        return textwrap.indent(textwrap.dedent(paragraphs[line[2]]).strip("\n"), line[1])

    def fill(cls: _C) -> _C:
        if cls.__doc__ is not None:  # python -OO
            cls.__doc__ = re.sub(r"^( *)%\((\w+)\)s$", paragraph, cls.__doc__, flags=re.MULTILINE)
        return cls

    return fill
