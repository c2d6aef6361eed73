"""Terminal output in which names and values from data cannot act as escape sequences.

A label or a column name may contain control sequences: to hide lines, to set the clipboard, to move the cursor. All
text passes one of two places, where question marks replace it: `SanitisedStream` for `print`, warnings and tracebacks,
and the console of `tamis.cli.output` for what rich lays out, whose own codes remain.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO


def sanitise(text: str) -> str:
    r"""Return text of any number of lines with a question mark for each character that a terminal cannot display.

    >>> sanitise("on\x1b[2J\noff")
    'on?[2J\noff'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)


class SanitisedStream:
    """A text stream that passes text without control characters on to another one."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # the name by which rich finds where its own codes go

    def write(self, text: str) -> int:
        """Write a text."""
        self.rich_proxied_file.write(sanitise(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextlib.contextmanager
def sanitised_output() -> Iterator[None]:
    """Sanitise all text printed to standard output and standard error."""
    out: Any = SanitisedStream(sys.stdout)
    errors: Any = SanitisedStream(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        yield
