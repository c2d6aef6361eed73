"""Paragraphs that the docstrings of several classes share, written once."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_C = TypeVar("_C", bound=Callable[..., Any])


def fill_docstring(paragraphs: Mapping[str, str]) -> Callable[[_C], _C]:
    """Return a decorator that replaces each line ``%(name)s`` of a docstring with the paragraph of this name.

    It decorates classes, functions and methods.

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
    >>> import inspect
    >>> @fill_docstring({"seed": "random_state : int"})
    ... class Model:
    ...     '''A model.
    ...
    ...     %(seed)s
    ...     '''
    >>> "random_state : int" in inspect.getdoc(Model)
    True
    """

    def paragraph(line: re.Match[str]) -> str:
        return textwrap.indent(textwrap.dedent(paragraphs[line[2]]).strip("\n"), line[1])

    def fill(item: _C) -> _C:
        if item.__doc__ is not None:  # python -OO
            item.__doc__ = re.sub(r"^( *)%\((\w+)\)s$", paragraph, item.__doc__, flags=re.MULTILINE)
        return item

    return fill


def paragraphs_of(cls: type) -> dict[str, str]:
    """Return the sections of the docstrings of a class and its bases, and each parameter and attribute in them.

    Of two with the same name, that of the derived class.

    Examples
    --------
    >>> class Model:
    ...     '''A model.
    ...
    ...     Parameters
    ...     ----------
    ...     level : float
    ...         Larger is stricter.
    ...     random_state : int
    ...     '''
    >>> print(paragraphs_of(Model)["level"])
    level : float
        Larger is stricter.
    """
    paragraphs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        doc = inspect.cleandoc(base.__doc__ or "")  # python -OO
        for title, body in re.findall(r"^(\w+)\n-+\n(.*?)(?=\n+\w+\n---|\Z)", doc, re.MULTILINE | re.DOTALL):
            paragraphs[title] = body
            paragraphs |= {
                entry[1]: entry[0] for entry in re.finditer(r"^(\w+).*(?:\n .*)*", body, re.MULTILINE)
            }
    return paragraphs
