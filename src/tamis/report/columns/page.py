"""The report on features that arrived: wealth, evidence against the bar, what was accepted and what nearly was."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.report.columns.numbers import Course, course_of, evidence_limits
from tamis.report.columns.plots import plot_columns
from tamis.report.figures import svg
from tamis.report.figures.figure import figure
from tamis.report.figures.thinning import thin
from tamis.report.page.document import document, write_page
from tamis.report.page.markup import name, notice, plural, repeat_lines, table, text, tiles
from tamis.report.page.number_format import count, duration, rate, scientific

__all__ = ["columns_page", "plot_columns", "write_report"]

Floats = NDArray[np.float64]
_SPECKS = 500  # refused features in the figure
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
    """Write a report of the columns that a selector was offered, as one HTML file that opens offline.

    Parameters
    ----------
    selector : ColumnSelector
        Fitted, with ``trace="all"``; otherwise the page shows the accepted features only.
    path : str or path
        The file; one that exists is replaced in one step, or stays as it is if anything fails.
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
        Headings and lines that repeat the result; by default the selector with its parameters.

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
    parts = [
        ("course", "What it took", _course(course, stages)),
        ("accepted", "Accepted features", _accepted(course, coefficients, speaks_for)),
        ("near", "Refused by the least", _near(course)),
        ("repeat", "Repeat this run", repeat_lines(repeat or {"In Python": f"selector = {selector!r}"})),
    ]
    parts = [part for part in parts if part[2]]
    heading = title or type(selector).__name__
    warning = notice(f"<b>{text(alert)}</b>") if alert else ""
    above = warning + _tiles(course, selector, seconds)
    return document(heading, text(note, 600), above, parts)


def _tiles(course: Course, selector: Any, seconds: float) -> str:
    counts = course.counts()
    n_kept = len(selector.selected_)
    left, told = counts.get("accepted", 0) - n_kept, int(course.redundant().sum())
    unknown = course.n_offered - len(course.records)  # of a trace that has the accepted ones only
    why = f"{count(told)} of them told by others" if told else "for too little evidence"
    why = "why was not noted" if unknown else why
    share = f"{100 * n_kept / max(course.n_offered, 1):.2g} % of the candidates"
    shown = [
        ("Candidates", count(course.n_offered), f"stopped: {text(selector.stopped_)}" if selector.stopped_ else ""),
        ("Accepted", count(n_kept), f"{count(left)} more left later" if left else share),
        ("Refused", count(counts.get("rejected", 0) + unknown), why),
        ("Passed over", count(sum(counts.get(name, 0) for name in _UNTESTED)),
         ", ".join(f"{count(counts.get(name, 0))} {said}" for name, said in _UNTESTED.items() if said != "untested"
                   or counts.get(name))),
    ]  # fmt: skip
    known = course.wealth[np.isfinite(course.wealth)]
    if len(known):
        shown.append(("Wealth left", scientific(float(known[-1])), f"least {scientific(float(known.min()))}"))
    if math.isfinite(seconds):
        pace = rate(course.n_offered / seconds) if seconds > 0 else "–"
        shown.append(("Time", duration(seconds), f"{pace} candidates a second"))
    return tiles(shown)


# -- figures -----------------------------------------------------------------------------------------------


def _course(course: Course, stages: Sequence[tuple[int, str]]) -> str:
    if not len(course.offer):
        return '<p class="note">No candidate was offered.</p>'
    last = float(course.offer[-1])
    x = svg.axis(0.0, max(last, 1.0), 5, _candidates(last))
    borders = svg.uprights(x, np.array([first - 0.5 for first, _ in stages[1:]]))
    begun = "; ".join(f"{kind} from {count(first)} on" for first, kind in stages)
    dotted = f'<p class="note">Dotted lines: another kind of feature begins ({text(begun)}).</p>'
    small = [_line(course, "acc", "Features accepted", course.n_accepted(), x, borders, "s3")]
    if np.isfinite(course.wealth).any():
        wealth = course.standing(course.wealth)
        small.insert(0, _line(course, "wea", "Wealth after each candidate", wealth, x, borders, "s1"))
    kind = "pair" if len(small) > 1 else ""
    return (
        _evidence(course, x, borders)
        + f'<div class="{kind}">{"".join(small)}</div>'
        + (dotted if len(stages) > 1 else "")
    )


def _candidates(last: float) -> Any:
    if last >= 2e6:
        return lambda value: f"{value / 1e6:g} M" if value else "0"
    return lambda value: count(value) if float(value).is_integer() else ""


def _line(course: Course, key: str, title: str, values: Floats, x: svg.Axis, borders: str, kind: str) -> str:
    whole = (lambda at: f"{at:,.0f}" if at.is_integer() else "") if key == "acc" else None
    y = svg.axis(0.0, max(float(np.nanmax(values)), 1e-12) * 1.06, 5, whole)
    at, shown = thin(course.offer, values)
    if key == "acc":  # it goes up in steps
        at, shown = np.repeat(at, 2)[1:], np.repeat(shown, 2)[:-1]
    said = f"{scientific(float(np.nanmax(values)))} at most, {scientific(float(values[-1]))} at the end."
    chart = svg.chart(key, title, text(said), x, y, [borders, svg.line(x, y, at, shown, kind)])
    return figure(f"<b>{title}</b> by candidates offered", [], chart, "")


def _evidence(course: Course, x: svg.Axis, borders: str) -> str:
    scale = course.scale
    if not np.isfinite(course.evidence).any():
        return ""
    low, high, cut = evidence_limits(course)
    y = svg.axis(low, high, 6, scale.label)
    n_refused = int(np.count_nonzero(~course.accepted & np.isfinite(course.evidence)))
    n_shown = n_refused if n_refused <= 2 * _SPECKS else _SPECKS
    best, entered = course.best_refused(n_shown), course.entered()
    bar = course.standing(course.bar)
    marks = [
        borders,
        _dots(x, y, course.offer[best], course.evidence[best], "s6 speck"),
        svg.line(x, y, *thin(course.offer, bar), "s2"),
        _dots(x, y, *thin(course.offer[entered], course.evidence[entered], 1000), "s1"),
    ]
    of = "" if n_shown == n_refused else f", the best of every {count(n_refused / n_shown)}"
    legend = [
        ("line s1 dot", "M12 4h0", f"accepted ({count(len(entered))})"),
        ("line s6 dot speck", "M12 4h0", f"refused{of}"),
        ("line s2", "M0 4h24", f"the {scale.bar}"),
    ]
    evidence = (course.evidence[entered] if len(entered) else course.evidence)[:]
    said = (
        f"{count(len(entered))} accepted, best {scale.evidence} {scale.written(float(np.nanmax(evidence)))}."
    )
    edge = " What lies beyond is put at the edge." if cut else ""
    up = "the smaller the higher" if scale.sign < 0 else "the larger the higher"
    chart = svg.chart("evi", f"{scale.evidence} against {scale.bar}", text(said), x, y, marks)
    title = f"{scale.evidence[0].upper()}{scale.evidence[1:]} of each candidate"
    caption = f"<b>{title}</b> and the {scale.bar} it had to pass, {up}.{edge}"
    return figure(caption, legend, chart, "wide")


def _dots(x: svg.Axis, y: svg.Axis, at: Any, values: Any, kind: str) -> str:
    """Return dots that no line connects."""
    gaps = np.full(len(at), np.nan)
    xs = np.column_stack([np.asarray(at, np.float64), gaps]).ravel()
    return svg.line(x, y, xs, np.column_stack([np.asarray(values, np.float64), gaps]).ravel(), kind)


# -- tables ------------------------------------------------------------------------------------------------


def _accepted(course: Course, coefficients: Mapping[str, float] | None, speaks_for: str) -> str:
    if not len(course.kept):
        kept = '<p class="note">Nothing was accepted.</p>'
    else:
        kept = _listing(course, course.kept, "In the order in which they entered", coefficients)
    sign = f'<p class="note">{text(speaks_for)}</p>' if coefficients and speaks_for else ""
    dropped = course.dropped()
    if not len(dropped):
        return kept + sign
    said = plural(len(dropped), "feature that left", "features that left")
    listing = _listing(course, dropped, "Accepted, and dropped when a better one came", None)
    return f"{kept}{sign}<details><summary>{said}</summary>{listing}</details>"


def _listing(
    course: Course, which: NDArray[np.intp], caption: str, coefficients: Mapping[str, float] | None
) -> str:
    """Return a table of some records."""
    head, kinds = ["", "feature", course.scale.evidence, course.scale.bar], ["n", "long", "n", "n"]
    has_wealth = bool(np.isfinite(course.wealth).any())
    head += ["wealth after"] * has_wealth + ["coefficient"] * (coefficients is not None) + ["candidate"]
    kinds += ["n"] * (len(head) - len(kinds))
    rows = []
    for place, i in enumerate(which[:_MOST_ROWS].tolist(), start=1):
        own = str(course.records["name"][i])
        row = [count(place), name(own)]
        row += [course.scale.written(float(values[i])) for values in (course.evidence, course.bar)]
        row += [scientific(float(course.wealth[i]))] * has_wealth
        if coefficients is not None:
            row.append(scientific(float(coefficients.get(own, math.nan))))
        rows.append([*row, count(course.offer[i])])
    more = len(which) - len(rows)
    note = f'<p class="note">And {count(more)} more.</p>' if more else ""
    return table(caption, head, rows, kinds) + note


def _near(course: Course) -> str:
    near = course.near_misses(_NEAR).tolist()
    if not near:
        return ""
    rows = [
        [count(place), name(str(course.records["name"][i])),
         *(course.scale.written(float(values[i])) for values in (course.evidence, course.bar)),
         count(course.offer[i])]
        for place, i in enumerate(near, start=1)
    ]  # fmt: skip
    head = ["", "feature", course.scale.evidence, course.scale.bar, "candidate"]
    return (
        "<p>Each was tested once, beside what had been accepted by then. In another order they might have passed.</p>"
        + table("The nearest to their bar",
                head, rows, ["n", "long", "n", "n", "n"])
    )  # fmt: skip
