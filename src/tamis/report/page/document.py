"""A page of a report: one HTML file that needs no network and no script, written completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import tamis
from tamis.persistence import replace_file
from tamis.report.page.markup import text

__all__ = ["check_writable", "document", "write_page"]

# What a browser may do with a page: nothing but show its own styles and pictures. No script runs, nobody is asked.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def write_page(path: str | os.PathLike[str], make: Callable[[], str]) -> Path:
    """Write a page, whole or not at all; what makes it is called once it is known that it can be written."""
    check_writable(path)
    try:
        replace_file(path, lambda file: file.write(make().encode("utf-8")))
    except OSError as error:
        raise _refusal(path, f"{error.strerror or error}; choose another place") from error
    return Path(path)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise if no report can be written to `path`, so that this is known before a long run.

    Raises
    ------
    ValueError
        If `path` is a folder, its folder does not exist, or one of them must not be written to.

    Examples
    --------
    >>> check_writable("missing/report.html")
    Traceback (most recent call last):
    ...
    ValueError: Cannot write the report 'missing/report.html': the folder 'missing' does not exist; make it first.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise _refusal(path, "this is a folder; add the name of a file")
        if not target.parent.is_dir():
            raise _refusal(path, f"the folder {os.fspath(Path(path).parent)!r} does not exist; make it first")
        if target.exists() and not target.is_file():
            raise _refusal(path, "this is not a regular file; choose another name")
        _try_to_write(target)
    except OSError as error:
        raise _refusal(path, f"{error.strerror or error}; choose another place") from error


def _try_to_write(target: Path) -> None:
    """Permission bits do not tell of a read-only file system, nor of a name that is too long: so try."""
    if target.exists():
        open(target, "r+b").close()
        tempfile.TemporaryFile(dir=target.parent).close()
    else:
        open(target, "xb").close()
        target.unlink()


def _refusal(path: str | os.PathLike[str], reason: str) -> ValueError:
    return ValueError(f"Cannot write the report {os.fspath(path)!r}: {reason}.")


def document(heading: str, lead: str, above: str, parts: Sequence[tuple[str, str, str]]) -> str:
    """Return a whole page: its heading, links to its sections, and the sections.

    Parameters
    ----------
    heading : str
        Plain text.
    lead : str
        HTML of the sentence below the heading.
    above : str
        HTML of what stands between that sentence and the links.
    parts : list of (str, str, str)
        Of each section the anchor, the heading and the content, the last two as HTML.
    """
    links = "".join(f'<li><a href="#{key}">{name}</a></li>' for key, name, _ in parts)
    head = (
        f'<header><h1>{text(heading)}</h1><p class="lead">{lead}</p>{above}'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
    )
    style = files("tamis.report.page").joinpath("style.css").read_text(encoding="utf-8")
    body = "".join(
        f'<section id="{key}" aria-labelledby="{key}-h"><h2 id="{key}-h">{name}</h2>{content}</section>\n'
        for key, name, content in parts
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<link rel="icon" href="data:,">\n<title>{text(heading)}</title>\n<style>\n{style}</style>\n</head>\n'
        f"<body>\n{head}\n<main>\n{body}</main>\n"
        f"<footer>Made by Tamis {tamis.__version__}. This file needs no network.</footer>\n</body>\n</html>\n"
    )
