"""The page of a recommendation: the line to copy, and accuracy over the number of columns for each learner."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tamis.evaluate import Recommendation
from tamis.report.figures import svg
from tamis.report.figures.figure import course, figure, limits
from tamis.report.page.document import document, write_page
from tamis.report.page.markup import plural, repeat_lines, table, text
from tamis.report.page.number_format import NAME_OF, count, fraction

__all__ = ["write_report"]

_IN_PYTHON = (
    'from tamis.evaluate import recommend\n\nrecommend(stream).report("report.html")  # stream: the same rows'
)
_STYLES = {
    "forward": "s1",
    "fires": "s2",
    "fisher": "s3",
    "fisher-recent": "s4",
    "joint": "s5",
    "random": "s6",
}


def write_report(
    found: Recommendation, path: str | os.PathLike[str], title: str, repeat: Mapping[str, str] | None = None
) -> Path:
    """Write the page of a recommendation.

    Parameters
    ----------
    found : Recommendation
        What :func:`tamis.evaluate.recommend` returns.
    path : str or path
        The file; one that exists is replaced in one step.
    title : str
    repeat : dict of str to str, optional
        Headings and lines that repeat the result.

    Returns
    -------
    pathlib.Path
        The file.
    """
    return write_page(path, lambda: _page(found, title, repeat or {"In Python": _IN_PYTHON}))


def _page(found: Recommendation, title: str, repeat: Mapping[str, str]) -> str:
    told = found.as_dict()
    lead = (
        f"{plural(found.n_rows, 'row', 'rows')} of {plural(found.n_features, 'column', 'columns')}, each predicted"
        f" before anything had learned from it. Always naming the commonest class is right in {found.majority:.3f}."
    )
    above = (
        f"<p><b>{text(found.reason)}</b></p>"
        f"<pre><code>tamis run FILE --label NAME {text(found.arguments())}</code></pre>"
        "<p>If the stream drifts, leave the selector out: <code>tamis run FILE --label NAME</code> goes on racing.</p>"
    )
    sections = [
        (f"curve-{learner}", f"With {learner}", _curve(learner, curves, told))
        for learner, curves in told["curves"].items()
    ]
    return document(title, lead, above, [*sections, ("repeat", "Repeat this run", repeat_lines(repeat))])


def _curve(learner: str, curves: dict[str, list[tuple[int, float]]], told: dict[str, Any]) -> str:
    word = NAME_OF[told["measure"]]
    sizes = sorted({size for name, curve in curves.items() if name != "joint" for size, _ in curve})
    place = {size: float(at) for at, size in enumerate(sizes)}
    x = svg.Axis(-0.3, len(sizes) - 0.7, [(place[size], count(size)) for size in sizes])
    drawn = {name: curve + curves["all"] for name, curve in curves.items() if name not in ("joint", "all")}
    everything = curves["all"][0][1]
    values = [np.array([accuracy for _, accuracy in curve]) for curve in curves.values()]
    y = svg.axis(*limits(*values, within=(0, 1)))
    marks = [
        svg.line(
            x, y, np.array([place[k] for k, _ in curve]), np.array([v for _, v in curve]), _STYLES[name], name
        )
        for name, curve in drawn.items()
    ]
    marks.append(
        svg.line(x, y, np.array([x.low, x.high]), np.array([everything] * 2), "s5 thin", "every column")
    )
    chosen = told["chosen"]
    if chosen["learner"] == learner and chosen["size"] in place:
        marks.append(svg.uprights(x, np.array([place[chosen["size"]]])))
    said = "; ".join(f"{name}: {course(np.array([v for _, v in curve]))}" for name, curve in drawn.items())
    chart = svg.chart(f"cur-{learner}", f"{word} by columns kept, {learner}", text(said, 900), x, y, marks)
    legend = [(f"line {_STYLES[name]}", "M0 4h24", text(name)) for name in drawn]
    legend.append(("line s5 thin", "M0 4h24", "every column"))
    dotted = "; dotted: recommended" if chosen["learner"] == learner else ""
    return figure(f"<b>{word}</b> by number of columns kept{dotted}", legend, chart, "wide") + _table(
        curves, sizes, word
    )


def _table(curves: dict[str, list[tuple[int, float]]], sizes: list[int], word: str) -> str:
    names = [name for name in curves if name not in ("joint", "all")]
    rows = []
    for size in sizes:
        cells = [dict(curves[name]).get(size) for name in names]
        rows.append([count(size), *("–" if cell is None else fraction(cell) for cell in cells)])
    rows[-1] = [f"{rows[-1][0]} (all)", *[fraction(curves["all"][0][1])] * len(names)]
    note = ""
    if "joint" in curves:
        size, accuracy = curves["joint"][0]
        note = (
            f'<p class="note">joint decides itself: {fraction(accuracy)} with {count(size)} at the end.</p>'
        )
    return table(word, ("columns", *names), rows, ["n"] * (1 + len(names))) + note
