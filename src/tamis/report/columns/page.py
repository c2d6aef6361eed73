"""The report on streaming features: wealth, evidence against the threshold, accepted features and near misses."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.report.columns.charts import accepted_chart, evidence_chart, wealth_chart
from tamis.report.columns.numbers import Course, course_of
from tamis.report.page.cells import Cell, Names, Table
from tamis.report.page.document import Section, render_page, write_page
from tamis.report.page.number_format import count, duration, rate, scientific
from tamis.report.page.text import shorten

__all__ = ["columns_page", "write_report"]

_MOST_ROWS = 1000
_NEAR = 10
_UNTESTED = {"constant": "constant", "collinear": "collinear", "full": "untested"}


def write_report(
    selector: Any,
    path: str | os.PathLike[str],
    title: str | None = None,
    *,
    note: str = "",
    alert: str = "",
    coefficients: Mapping[str, float] | None = None,
    speaks_for: str = "",
    stages: Sequence[tuple[int, str]] = (),
    seconds: float = math.nan,
    repeat: Mapping[str, str] | None = None,
) -> Path:
    """Write a report of the features offered to a selector, as one HTML file that opens offline.

    Parameters
    ----------
    selector : ColumnSelector
        Fitted with ``trace="all"``; otherwise the page shows the accepted features only.
    path : str or path
        The file. An existing one is replaced atomically, or left unchanged on failure.
    title : str, optional
        By default the name of the class.
    note, alert : str
        Further texts on the page: about the data, and about errors.
    coefficients : dict of str to float, optional
        Coefficients of the accepted features, by name.
    speaks_for : str
        The meaning of a positive coefficient.
    stages : list of (int, str)
        The first candidate of each kind of feature, counted from 1, and the name of the kind.
    seconds : float
        Duration of the selection.
    repeat : dict of str to str, optional
        Headings and lines that reproduce the result; by default the selector with its parameters.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ValueError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from tamis import AlphaInvesting
    >>> X = np.random.default_rng(0).normal(size=(100, 50))
    >>> selector = AlphaInvesting(target_fdr=0.05).fit(X, X[:, 3] + X[:, 30])
    >>> path = write_report(selector, tempfile.mkdtemp() + "/report.html")
    >>> "<h1>AlphaInvesting</h1>" in path.read_text(encoding="utf-8")
    True
    """
    return write_page(
        path,
        lambda: columns_page(
            selector, title, note=note, alert=alert, coefficients=coefficients, speaks_for=speaks_for,
            stages=stages, seconds=seconds, repeat=repeat,
        ),
    )  # fmt: skip


def columns_page(
    selector: Any,
    title: str | None = None,
    *,
    note: str = "",
    alert: str = "",
    coefficients: Mapping[str, float] | None = None,
    speaks_for: str = "",
    stages: Sequence[tuple[int, str]] = (),
    seconds: float = math.nan,
    repeat: Mapping[str, str] | None = None,
) -> str:
    """Return the report as HTML; parameters as for :func:`write_report`."""
    course = course_of(selector)
    sections = [
        Section("course", "Evidence and wealth", _course(course, stages)),
        Section("accepted", "Accepted features", _accepted(course, coefficients, speaks_for)),
        Section("near", "Near misses", _near(course)),
        Section("repeat", "Repeat this run", repeat or {"In Python": f"selector = {selector!r}"}),
    ]
    top = {"note": note, "alert": alert, "tiles": _tiles(course, selector, seconds)}
    heading = title or type(selector).__name__
    present = [section for section in sections if section.values is not None]
    return render_page("columns/page.html.j2", heading, top, present)


def _tiles(course: Course, selector: Any, seconds: float) -> list[tuple[str, str, str]]:
    counts = course.counts()
    n_kept = len(selector.selected_)
    left, redundant = counts.get("accepted", 0) - n_kept, int(course.redundant().sum())
    unknown = course.n_offered - len(course.records)  # of a trace that has the accepted ones only
    why = f"{count(redundant)} of them redundant given others" if redundant else "for insufficient evidence"
    why = "reasons not recorded" if unknown else why
    share = f"{100 * n_kept / max(course.n_offered, 1):.2g} % of the candidates"
    stopped = f"stopped: {shorten(selector.stopped_, 300)}" if selector.stopped_ else ""
    shown = [
        ("Candidates", count(course.n_offered), stopped),
        ("Accepted", count(n_kept), f"{count(left)} more dropped later" if left else share),
        ("Rejected", count(counts.get("rejected", 0) + unknown), why),
        ("Skipped", count(sum(counts.get(name, 0) for name in _UNTESTED)),
         ", ".join(f"{count(counts.get(name, 0))} {said}" for name, said in _UNTESTED.items() if said != "untested"
                   or counts.get(name))),
    ]  # fmt: skip
    known = course.wealth[np.isfinite(course.wealth)]
    if len(known):
        shown.append(("Wealth left", scientific(float(known[-1])), f"min {scientific(float(known.min()))}"))
    if math.isfinite(seconds):
        pace = rate(course.n_offered / seconds) if seconds > 0 else "–"
        shown.append(("Time", duration(seconds), f"{pace} candidates a second"))
    return shown


# -- the sections ------------------------------------------------------------------------------------------


def _course(course: Course, stages: Sequence[tuple[int, str]]) -> dict[str, Any]:
    if not len(course.offer):
        return {"is_empty": True}
    begun = "; ".join(f"{kind} from {count(first)} on" for first, kind in stages) if len(stages) > 1 else ""
    small = [wealth_chart(course, stages), accepted_chart(course, stages)]
    return {
        "is_empty": False,
        "evidence": evidence_chart(course, stages),
        "charts": [chart for chart in small if chart is not None],
        "stages": begun,
    }


def _accepted(course: Course, coefficients: Mapping[str, float] | None, speaks_for: str) -> dict[str, Any]:
    kept, dropped = course.kept, course.dropped()
    return {
        "kept": _listing(course, kept, "In order of acceptance", coefficients) if len(kept) else None,
        "speaks_for": speaks_for if coefficients else "",
        "n_dropped": len(dropped),
        "dropped": _listing(course, dropped, "Accepted, then dropped for a better one", None),
    }


def _listing(
    course: Course, which: NDArray[np.intp], caption: str, coefficients: Mapping[str, float] | None
) -> Table:
    """Return a table of some records."""
    has_wealth = bool(np.isfinite(course.wealth).any())
    head = [("n", ""), ("long", "feature"), ("n", course.scale.evidence), ("n", course.scale.bar)]
    head += [("n", "wealth after")] * has_wealth + [("n", "coefficient")] * (coefficients is not None)
    rows = []
    for place, i in enumerate(which[:_MOST_ROWS].tolist(), start=1):
        own = str(course.records["name"][i])
        row: list[Cell] = [count(place), Names([own])]
        row += [course.scale.written(float(values[i])) for values in (course.evidence, course.bar)]
        row += [scientific(float(course.wealth[i]))] * has_wealth
        if coefficients is not None:
            row.append(scientific(float(coefficients.get(own, math.nan))))
        rows.append([*row, count(course.offer[i])])
    more = len(which) - len(rows)
    return Table(caption, [*head, ("n", "candidate")], rows, f"And {count(more)} more." if more else "")


def _near(course: Course) -> Table | None:
    rows: list[list[Cell]] = [
        [
            count(place), Names([str(course.records["name"][i])]),
            *(course.scale.written(float(values[i])) for values in (course.evidence, course.bar)),
            count(course.offer[i]),
        ]
        for place, i in enumerate(course.near_misses(_NEAR).tolist(), start=1)
    ]  # fmt: skip
    head = [
        ("n", ""),
        ("long", "feature"),
        ("n", course.scale.evidence),
        ("n", course.scale.bar),
        ("n", "candidate"),
    ]
    return Table("Closest to their threshold", head, rows) if rows else None
