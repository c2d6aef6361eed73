"""Quoted values of delimited text: their positions, the ends of rows, and unclosed quotes.

An unclosed quote would include all later rows in one value. A quote that remains open for too many lines, is closed in
the middle of a value on a later line, or is open at the end of the text is an error in the line where it opens.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

import numpy as np

from tamis._validation import Array, check_number
from tamis.streams.converted import LONGEST_LINE

MAX_LINES = 100  # largest number of lines of a quoted value


class UnclosedQuote(NamedTuple):
    """A quote that is not closed.

    Attributes
    ----------
    at : int
        Byte offset of the quote in the block.
    at_end : bool
        Whether the quote is open at the end of the text.
    """

    at: int
    at_end: bool

    def message(self, name: str, place: str, max_lines: int) -> str:
        """Return the error message; `place` is the line or row where the quote opens."""
        if self.at_end:
            return (
                f"{name!r} ends within a quoted value that begins in {place}: close the quote there, or copy the file"
                " again if its end is missing."
            )
        return (
            f"{name!r} has a quote in {place} that is not closed where a value ends within {max_lines:,} lines: close"
            f" or double it, or allow more by max_quoted_lines={10 * max_lines}."
        )


def check_max_quoted_lines(max_lines: int | None) -> int | None:
    """Validate `max_quoted_lines` and return it as an option of a file; None: the default."""
    if max_lines is None:
        return None
    check_number("max_quoted_lines", max_lines, low=1, integer=True)
    return None if max_lines == MAX_LINES else int(max_lines)


def quoted_spans(block: bytes, delimiter: str) -> tuple[Array, Array]:
    """Return the starts and ends of quoted values; the end is len(block) if the closing quote is missing.

    A quote in the middle of a value is part of the value.
    """
    if block.startswith(codecs.BOM_UTF8):
        block = b"\n\n\n" + block[3:]
    quotes = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord('"'))
    starts, ends = quotes[0::2], quotes[1::2]
    if len(ends) < len(starts):
        ends = np.append(ends, len(block))
    before = np.frombuffer(b"\n" + block, dtype=np.uint8)[starts]
    allowed = np.frombuffer(delimiter.encode() + b'\r\n"', dtype=np.uint8)
    if np.isin(before, allowed).all():
        parted = starts[1:] != ends[:-1] + 1  # the second quote of two is an escaped quote
        if parted.all():
            return starts, ends
        return starts[np.append(True, parted)], ends[np.append(parted, True)]
    at = rf'(?:^|(?<=[{re.escape(delimiter)}\r\n]))"[^"]*+(?:""[^"]*+)*+(?:"|\Z)'
    items = [match.span() for match in re.finditer(at.encode(), block)]
    spans = np.array(items, dtype=np.int64).reshape(-1, 2)
    starts, ends = spans[:, 0], spans[:, 1] - 1
    if len(spans) and spans[-1, 1] == len(block) and block.count(b'"', int(starts[-1])) % 2:
        ends[-1] = len(block)
    return starts, ends


def first_unclosed(
    block: bytes,
    spans: tuple[Array, Array],
    delimiter: str,
    max_lines: int,
    newline: bytes = b"\n",
    *,
    whole: bool,
) -> UnclosedQuote | None:
    """Return the first unclosed quote, or None.

    Parameters
    ----------
    block : bytes
        Must begin at the start of a row.
    spans : pair of ndarray
        As returned by `quoted_spans`.
    delimiter : str
        Each of its characters may end a value.
    max_lines : int
        Largest number of lines of a quoted value.
    newline : bytes, optional
    whole : bool
        Whether the block is the end of the text.
    """
    starts, ends = spans
    text = np.frombuffer(block, dtype=np.uint8)
    allowed = np.frombuffer(delimiter.encode() + b"\r\n", dtype=np.uint8)
    inside = ends < len(block) - 1
    is_wrong = np.zeros(len(starts), dtype=bool)
    is_wrong[inside] = ~np.isin(text[ends[inside] + 1], allowed)
    is_long = ends - starts >= max_lines
    if is_wrong.any() or is_long.any():
        lines = np.flatnonzero(text == newline[0])
        n = np.searchsorted(lines, ends) - np.searchsorted(lines, starts)
        is_wrong = (n > 0) & (is_wrong | (n >= max_lines) | (ends - starts > LONGEST_LINE))
        if is_wrong.any():
            return UnclosedQuote(int(starts[np.argmax(is_wrong)]), at_end=False)
    if whole and len(starts) and ends[-1] == len(block):
        return UnclosedQuote(int(starts[-1]), at_end=True)
    return None


def row_ends(
    block: bytes, delimiter: str, max_lines: int, *, whole: bool
) -> tuple[list[int], UnclosedQuote | None]:
    r"""Return the ends of the rows of a block, and the unclosed quote in the last of them, if any.

    That row is the line in which the quote opens. Without a delimiter, each line is a row.

    >>> row_ends(b'1,2\n3,"a\nb"\n5,', ",", 100, whole=False)
    ([4, 12], None)
    >>> row_ends(b'1,"2\n3,4\n', ",", 1, whole=False)
    ([5], UnclosedQuote(at=2, at_end=False))
    """
    text = np.frombuffer(block, dtype=np.uint8)
    ends: Array = np.flatnonzero(text == ord("\n"))
    newline = b"\n"
    if b"\r" in block:  # \r without \n also ends a row; for a final \r, this is not known yet
        returns = np.flatnonzero(text[:-1] == ord("\r"))
        returns = returns[text[returns + 1] != ord("\n")]
        newline = newline if len(ends) else b"\r"
        ends = np.sort(np.concatenate([ends, returns])) if len(returns) else ends
    quote: UnclosedQuote | None = None
    if delimiter and b'"' in block:
        starts, stops = quoted_spans(block, delimiter)
        quote = first_unclosed(block, (starts, stops), delimiter, max_lines, newline, whole=whole)
        if len(starts):
            at = np.searchsorted(starts, ends) - 1
            is_end = (at < 0) | (ends > stops[np.maximum(at, 0)])
            if quote is not None:
                is_end = (ends < quote.at) & is_end
                is_end[np.searchsorted(ends, quote.at) :][:1] = True
            ends = ends[is_end]
    stops_at: list[int] = (ends + 1).tolist()
    # In the last line, which has no newline.
    is_cut = quote is not None and (not stops_at or stops_at[-1] <= quote.at)
    if whole and (is_cut or (quote is None and len(block) > (stops_at[-1] if stops_at else 0))):
        stops_at.append(len(block))
    return stops_at, quote
