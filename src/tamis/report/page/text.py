"""Short texts: names of any length and content prepared for display, numbers with their noun."""

from __future__ import annotations

import re

from tamis.report.page.number_format import count

__all__ = ["plural", "printable", "shorten"]

_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # by HTML and XML alike


def printable(text: str) -> str:
    """Return a text without the characters that HTML and XML reject."""
    return _REFUSED.sub("\ufffd", text)


def shorten(text: object, at_most: int) -> str:
    """Return a text with its middle elided if it is longer than `at_most`.

    >>> shorten("a" * 40, 10)
    'aaaaa…aaaaa'
    """
    line = printable(str(text))
    return line if len(line) <= at_most else line[: at_most // 2] + "…" + line[-(at_most // 2) :]


def plural(n: int, noun: str, nouns: str) -> str:
    """Return a number with a noun, in singular or plural.

    >>> plural(1, "batch", "batches"), plural(2000, "batch", "batches")
    ('1 batch', '2,000 batches')
    """
    return f"{count(n)} {noun if n == 1 else nouns}"
