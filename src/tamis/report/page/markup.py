"""Text, names and tables as HTML: whatever a name holds, the page shows it and does not run it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from tamis.report.page.number_format import count

__all__ = ["name", "names", "notice", "plural", "repeat_lines", "shorten", "table", "text", "tiles"]

_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # by HTML and XML alike


def text(value: object, at_most: int = 300) -> str:
    """Return any text as HTML that shows it.

    >>> text("<script>"), text("a" * 40, at_most=10)
    ('&lt;script&gt;', 'aaaaa…aaaaa')
    """
    return escape(shorten(str(value), at_most))


def shorten(value: str, at_most: int) -> str:
    """Return a text with its middle left out where it is longer than `at_most`; not escaped yet."""
    shown = _REFUSED.sub("\ufffd", value)
    return shown if len(shown) <= at_most else shown[: at_most // 2] + "…" + shown[-(at_most // 2) :]


def name(of: str, at_most: int = 48) -> str:
    """Return the name of a feature; a long one is shortened, and whole (nearly) when pointed at."""
    title = f' title="{text(of)}"' if len(of) > at_most else ""
    return f'<span class="name"{title}>{text(of, at_most) or "&nbsp;"}</span>'


def names(of: Sequence[str], at_most: int = 6) -> str:
    """Return the first names of a list, and how many more there are."""
    shown = ", ".join(name(one) for one in of[:at_most])
    more = f" and {count(len(of) - at_most)} more" if len(of) > at_most else ""
    return shown + more or "–"


def plural(n: int, noun: str, nouns: str) -> str:
    """Return a number of things.

    >>> plural(1, "batch", "batches"), plural(2000, "batch", "batches")
    ('1 batch', '2,000 batches')
    """
    return f"{count(n)} {noun if n == 1 else nouns}"


def notice(said: str) -> str:
    """Return what a reader must know before the numbers; HTML in, HTML out."""
    return f'<p class="alert" role="note">{said}</p>'


def tiles(shown: Iterable[tuple[str, str, str]]) -> str:
    """Return the headline numbers: of each what it is, its value, and what is to be said of it, as HTML."""
    items = (
        f"<div><dt>{what}</dt><dd>{value}<small>{note}</small></dd></div>" for what, value, note in shown
    )
    return f'<dl class="tiles">{"".join(items)}</dl>'


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], kinds: Sequence[str]) -> str:
    """Return a table. Cells are HTML, the first of a row is its heading; `kinds` are the columns' style classes."""
    top = "".join(f'<th scope="col" class="{k}">{h}</th>' for h, k in zip(head, kinds, strict=True))
    body = "".join(
        f'<tr><th scope="row" class="{kinds[0]}">{row[0]}</th>'
        + "".join(f'<td class="{kind}">{cell}</td>' for cell, kind in zip(row[1:], kinds[1:], strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{caption}"><table><caption>{caption}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def repeat_lines(lines: Mapping[str, str], listings: Mapping[str, str] | None = None) -> str:
    """Return what it takes to do the same again: lines by where they are typed, and what is long folded away."""
    typed = (
        f"<h3>{text(where)}</h3><pre><code>{text(line, 4000)}</code></pre>" for where, line in lines.items()
    )
    folded = (
        f"<details><summary>{text(what)}</summary><pre><code>{text(all_of_it, 40_000)}</code></pre></details>"
        for what, all_of_it in (listings or {}).items()
    )
    return "".join([*typed, *folded])
