"""A page of a report: one HTML file that needs no network and no script, written completely or not at all."""

from __future__ import annotations

import html
import json
import os
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import tamis
from tamis._interrupts import raise_asynchronous
from tamis.report.charts import svg
from tamis.report.charts.chart import Chart
from tamis.report.content import Group, present
from tamis.report.text import count, printable, shorten

# -- templates ---------------------------------------------------------------------------------------------


# -- the terms ---------------------------------------------------------------------------------------------


VOCABULARY = {
    "autocorrelated": "Rows are similar to those before them, so they are worth fewer independent rows.",
    "balanced accuracy": "The mean, over the classes, of the share of their rows that is predicted correctly.",
    "candidate": "A selector with a number of features and a learner of its own, one of several that are compared.",
    "delayed": "A label or a value that becomes known some rows after its row; until then nothing learns it.",
    "drift": "A change over time: of what the label depends on (concept drift), or of the inputs alone (input drift).",
    "every feature": "A baseline: a copy of the learner that uses all features.",
    "frozen": "A baseline: a selection of the same size made once, on the first rows, for a copy of the learner.",
    "kappa": "Agreement of predictions and labels beyond chance: 1 is perfect, 0 is chance.",
    "learner": "The model that predicts the label from the selected features.",
    "majority": "A baseline without features: it predicts the most frequent label so far.",
    "no-change": "A baseline without features: it predicts the previous label.",
    "random subsets": "A baseline: copies of the learner with features drawn at random, as many as are selected.",
    "selector": "The method that selects features while rows arrive.",
    "stability": "Similarity of the last selections (Nogueira's measure): 1 if equal, 0 in expectation if random.",
    "test-then-train": "Each batch is predicted before selector and learner learn it (prequential evaluation).",
    "95 % interval": "It contains the true value in 95 of 100 repetitions; dependent rows are accounted for.",
}


# Permissions of a page: only its own styles and pictures. No scripts, no requests.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render(template_name: str, **values: Any) -> str:
    """Return a template of the package ``tamis.report`` with its values filled in."""
    return _environment().get_template(template_name).render(values)


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tamis", "report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_finalize,
    )  # fmt: skip
    environment.filters |= {
        "count": count,
        "shorten": shorten,
        "kind": lambda item: type(item).__name__,
        "listing": _listing,
    }
    style = files("tamis.report").joinpath("style.css").read_text(encoding="utf-8")
    environment.globals |= {
        "sample": svg.sample, "shapes": svg.shapes, "tick_positions": svg.tick_positions,
        "policy": _POLICY, "style": style, "version": tamis.__version__,
        "vocabulary": VOCABULARY,
    }  # fmt: skip
    return environment


def _listing(settings: Any) -> str:
    return json.dumps(settings, indent=1, ensure_ascii=False, default=str)


def _finalize(value: Any) -> Any:
    """Return a text without characters that HTML rejects; markup is unchanged."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


class InlinePage(str):
    """The HTML of a page, which a notebook displays in a frame."""

    def __repr__(self) -> str:
        return f"InlinePage({len(self):,} characters of HTML)"

    def _repr_html_(self) -> str:
        return _framed(self, "Report", 640)


def _framed(page: str, title: str, height: int) -> str:
    frame = f'sandbox style="width: 100%; height: {height}px; border: 1px solid #8888"'
    return f'<iframe title="{html.escape(title)}" {frame} srcdoc="{html.escape(page)}"></iframe>'


def inline_chart(chart: Chart) -> str:
    """Return a chart in a frame, for a notebook."""
    height = 140 + (chart.row_height * len(chart.rows) if not chart.y else 240)
    return _framed(render("inline.html.j2", chart=chart), chart.title, int(height))


def write_page(
    result: Any, path: str | os.PathLike[str] | None = None, title: str | None = None, *, command: str = ""
) -> Path | InlinePage:
    """Write any result as one HTML file that opens offline, atomically.

    Parameters
    ----------
    result : object
        With the methods of :class:`tamis.report.Result`, of which only ``verdict`` is required.
    path : path-like, optional
        An existing file is replaced, or left unchanged on failure. The page is rendered only after the path is known to
        be writable. Without a path the page is returned.
    title : str, optional
        In place of the result's heading.
    command : str
        The command line that repeats the result, unless the result has one.

    Raises
    ------
    ValueError
        If the file cannot be written; see :func:`check_writable`.
    """
    if path is None:
        return InlinePage(render_page(result, title, command))
    check_writable(path)
    from tamis.persistence import replace_file  # imports scikit-learn, which listings do without

    try:
        replace_file(path, lambda file: file.write(render_page(result, title, command).encode("utf-8")))
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


def render_page(result: Any, title: str | None = None, command: str = "") -> str:
    """Return a page as HTML; parameters as for :func:`write_page`."""
    shown = present(result, title, command)
    sections = [(one, _paired(one.items)) for one in shown.sections]
    return render("page.html.j2", shown=shown, sections=sections).lstrip()


def _paired(items: Sequence[Any]) -> list[list[Any]]:
    """Return the items in rows of a section: neighbouring small charts, and groups, stand side by side."""
    rows: list[list[Any]] = []
    for item in items:
        kind = _is_small(item)
        if rows and kind and all(map(_is_small, rows[-1])):
            rows[-1].append(item)
        else:
            rows.append([item])
    return rows


def _is_small(item: Any) -> bool:
    return isinstance(item, Group) or (isinstance(item, Chart) and item.is_small)
