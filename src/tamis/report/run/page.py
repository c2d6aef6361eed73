"""The report of a run: one HTML file that needs nothing else, no network, no script."""

from __future__ import annotations

import os
from pathlib import Path

from tamis.evaluate import PrequentialResult
from tamis.report.page.document import document, write_page
from tamis.report.page.rerun import subject
from tamis.report.run.sections import above, lead, sections

__all__ = ["page", "write_report"]


def write_report(result: PrequentialResult, path: str | os.PathLike[str], title: str | None = None) -> Path:
    """Write a run's report: one HTML file of tens of kilobytes that opens offline.

    Parameters
    ----------
    result : PrequentialResult
        What :func:`tamis.prequential` returns.
    path : str or path
        The file; one that exists is replaced in one step, or stays as it is if anything fails.
    title : str, optional
        Heading of the page; by default the names of selector, learner and data.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ValueError
        If the file cannot be written; see :func:`check_writable`.

    Examples
    --------
    >>> import tempfile
    >>> from tamis import FIRES, load_dataset, prequential
    >>> result = prequential(load_dataset("electricity"), FIRES(n_features_to_select=4), max_rows=3000)
    >>> path = write_report(result, tempfile.mkdtemp() + "/report.html")
    >>> page = path.read_text(encoding="utf-8")
    >>> "<h1>FIRES on electricity</h1>" in page, "http:" in page, len(page) < 100_000
    (True, False, True)
    """
    return write_page(path, lambda: page(result, title))


def page(result: PrequentialResult, title: str | None = None) -> str:
    """Return the report of a run as HTML. It holds no date: the same run gives the same page."""
    parts = [(key, name, make(result)) for key, name, make in sections(result)]
    return document(title or subject(result.settings), lead(result), above(result), parts)
