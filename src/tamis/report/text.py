"""Short texts: names of any length and content prepared for display, numbers with their noun."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tamis.report.number_format import count

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


def listed(names: Sequence[str], at_most: int = 6) -> str:
    """Return the first names within a sentence, and how many more there are.

    >>> listed(["heat", "light", "sound"], at_most=2)
    'heat, light and 1 more'
    """
    more = f" and {len(names) - at_most:,} more" * (len(names) > at_most)
    return ", ".join(shorten(name, 40) for name in names[:at_most]) + more


def lower(title: str) -> str:
    """Return a title within a sentence; abbreviations keep their capitals.

    >>> lower("Mutual information"), lower("AUC"), lower("T-score")
    ('mutual information', 'AUC', 'T-score')
    """
    return title[:1].lower() + title[1:] if title[1:2].islower() else title
