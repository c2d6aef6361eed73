"""A page of a report: one HTML file that needs no network and no script, written completely or not at all."""

from __future__ import annotations

import html
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, overload

from jinja2 import Environment, PackageLoader, StrictUndefined

import tamis
from tamis._interrupts import raise_asynchronous
from tamis.persistence import replace_file
from tamis.report.charts import svg
from tamis.report.page import number_format
from tamis.report.page.text import plural, printable, shorten

__all__ = ["InlinePage", "Section", "check_writable", "render", "render_page", "write_page"]

# Permissions of a page: only its own styles and pictures. No scripts, no requests.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


class InlinePage(str):
    """The HTML of a page, which a notebook displays in a frame."""

    def __repr__(self) -> str:
        return f"InlinePage({len(self):,} characters of HTML)"

    def _repr_html_(self) -> str:
        frame = 'sandbox style="width: 100%; height: 640px; border: 1px solid #8888"'
        return f'<iframe title="Report" {frame} srcdoc="{html.escape(self)}"></iframe>'


@overload
def write_page(path: str | os.PathLike[str], make: Callable[[], str]) -> Path: ...
@overload
def write_page(path: str | os.PathLike[str] | None, make: Callable[[], str]) -> Path | InlinePage: ...
def write_page(path: str | os.PathLike[str] | None, make: Callable[[], str]) -> Path | InlinePage:
    """Write a page atomically, rendered only after the path is known to be writable; without a path, return it."""
    if path is None:
        return InlinePage(make())
    check_writable(path)
    try:
        replace_file(path, lambda file: file.write(make().encode("utf-8")))
    except OSError as error:
        raise_asynchronous(error)
        raise _unwritable_message(path, f"{error.strerror or error}; choose another path") from error
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
    ValueError: Cannot write the report 'missing/report.html': the folder 'missing' does not exist; create it first.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise _unwritable_message(path, "this is a folder; add the name of a file")
        if not target.parent.is_dir():
            raise _unwritable_message(
                path, f"the folder {os.fspath(Path(path).parent)!r} does not exist; create it first"
            )
        if target.exists() and not target.is_file():
            raise _unwritable_message(path, "this is not a regular file; choose another name")
        _try_to_write(target)
    except OSError as error:
        raise_asynchronous(error)
        raise _unwritable_message(path, f"{error.strerror or error}; choose another path") from error


def _try_to_write(target: Path) -> None:
    """Permission bits reveal neither a read-only file system nor a name that is too long, so try."""
    if target.exists():
        open(target, "r+b").close()
        tempfile.TemporaryFile(dir=target.parent).close()
    else:
        open(target, "xb").close()
        target.unlink()


def _unwritable_message(path: str | os.PathLike[str], reason: str) -> ValueError:
    return ValueError(f"Cannot write the report {os.fspath(path)!r}: {reason}.")


@dataclass(frozen=True)
class Section:
    """A section of a page.

    Attributes
    ----------
    key : str
        Its anchor, and the macro of the page's template that prints it unless `macro` is given.
    heading : str
    values : Any
        What the macro receives.
    macro : str
    """

    key: str
    heading: str
    values: Any
    macro: str = ""


def render_page(template: str, heading: str, top: Any, sections: Sequence[Section]) -> str:
    """Return a page as HTML.

    Parameters
    ----------
    template : str
        Its macros: ``top``, which prints what stands between the heading and the sections, and one for each section.
    heading : str
    top : Any
        What ``top`` receives.
    sections : sequence of Section
    """
    return render("page/base.html.j2", heading=heading, top=top, sections=sections, template=template)


def render(template_name: str, **values: Any) -> str:
    """Return a template of the package ``tamis.report`` with its values filled in."""
    return _environment().get_template(template_name).render(values)


@cache
def _environment() -> Environment:
    """Everything that is printed is escaped; templates lie beside the numbers that they show."""
    environment = Environment(
        loader=PackageLoader("tamis", "report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=lambda value: printable(value) if type(value) is str else value,
    )  # fmt: skip
    formats = (number_format.count, number_format.fraction, number_format.scientific, number_format.duration)
    environment.filters |= {function.__name__: function for function in (*formats, shorten, plural)}
    style = files("tamis.report.page").joinpath("style.css").read_text(encoding="utf-8")
    environment.globals |= {
        "sample": svg.sample, "shapes": svg.shapes, "tick_positions": svg.tick_positions,
        "policy": _POLICY, "style": style, "version": tamis.__version__,
    }  # fmt: skip
    return environment
