"""Representation of objects: one line in a shell, a few lines of HTML in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

_MOST = 20  # rows of a table
_LONGEST, _FACT = 60, 1000  # characters of a cell, and of a fact


def html_repr(
    kind: str,
    facts: Iterable[str] = (),
    numbers: Mapping[str, Sequence[str]] | None = None,
    head: Sequence[str] = (),
) -> str:
    """Return a few lines of HTML: the kind of an object, facts about it, and a small table.

    Everything is escaped, nothing is fetched, and long tables and texts are truncated.

    Parameters
    ----------
    kind : str
        The kind of the object, in bold.
    facts : iterable of str
    numbers : mapping of str to sequence of str, optional
        A row for each name.
    head : sequence of str
        Headings of the columns, including that of the names.

    Examples
    --------
    >>> html_repr("Session", ["paid 0.2"])
    '<b>Session</b> paid 0.2'
    >>> html_repr("Result", numbers={"<b>": ["1"]})
    '<b>Result</b><table><tbody><tr><th>&lt;b&gt;</th><td>1</td></tr></tbody></table>'
    """
    text = ", ".join(_text(fact, _FACT) for fact in facts)
    line = f"<b>{_text(kind)}</b>{' ' + text if text else ''}"
    if not numbers:
        return line
    top = f"<thead><tr>{''.join(f'<th>{_text(name)}</th>' for name in head)}</tr></thead>" if head else ""
    rows = "".join(
        f"<tr><th>{_text(name)}</th>{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"
        for name, cells in list(numbers.items())[:_MOST]
    )
    more = f"<small>and {len(numbers) - _MOST:,} more</small>" if len(numbers) > _MOST else ""
    return f"{line}<table>{top}<tbody>{rows}</tbody></table>{more}"


def _text(value: str, at_most: int = _LONGEST) -> str:
    return escape(value if len(value) <= at_most else f"{value[: at_most - 1]}…")
