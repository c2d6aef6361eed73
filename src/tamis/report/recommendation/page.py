"""The page of a recommendation: the command to copy, and accuracy by number of features for each learner."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tamis.evaluate import Recommendation
from tamis.report.charts.chart import Axis, Chart, Line, VerticalLines, axis, limits, trend
from tamis.report.page.cells import Table
from tamis.report.page.document import InlinePage, Section, render_page, write_page
from tamis.report.page.number_format import NAME_OF, count, fraction

__all__ = ["write_report"]

_IN_PYTHON = 'from tamis import recommend\n\nrecommend(stream).report("report.html")  # stream: the same rows'
_STYLES = {"forward": 1, "fires": 2, "fisher": 3, "fisher-recent": 4, "joint": 5}


def write_report(
    recommendation: Recommendation,
    path: str | os.PathLike[str] | None,
    title: str,
    repeat: Mapping[str, str] | None = None,
    command: str = "tamis run FILE --label NAME",
) -> Path | InlinePage:
    """Write the page of a recommendation.

    Parameters
    ----------
    recommendation : Recommendation
        What :func:`tamis.evaluate.recommend` returns.
    path : str or path
        The file; one that exists is replaced in one step.
    title : str
    repeat : dict of str to str, optional
        Headings and lines that repeat the result.
    command : str
        `tamis run` with the options of the stream; those of the recommendation are appended.

    Returns
    -------
    pathlib.Path
        The file.
    """
    return write_page(
        path, lambda: _page(recommendation, title, repeat or {"In Python": _IN_PYTHON}, command)
    )


def _page(recommendation: Recommendation, title: str, repeat: Mapping[str, str], command: str) -> str:
    plain = recommendation.as_dict()
    rows = [[one["command"], count(one["size"]), fraction(one["score"])] for one in plain["candidates"]]
    heads = [("", "options of tamis run"), ("n", "columns"), ("n", recommendation.word)]
    sections = [
        Section("candidates", "Candidates", Table("Each was run on these rows", heads, rows), "candidates")
    ]
    sections += [
        Section(f"curve-{learner}", f"Sizes, with {learner}", _curve(learner, curves, plain), "curve")
        for learner, curves in plain["curves"].items()
        if curves
    ]
    sections.append(Section("repeat", "Repeat this run", repeat))
    top = {"result": recommendation, "command": command}
    return render_page("recommendation/page.html.j2", title, top, sections)


def _curve(learner: str, curves: dict[str, list[tuple[int, float]]], plain: dict[str, Any]) -> dict[str, Any]:
    word, chosen = NAME_OF[plain["measure"]], plain["chosen"]
    sizes = sorted({size for name, curve in curves.items() if name != "joint" for size, _ in curve})
    place = {size: float(at) for at, size in enumerate(sizes)}
    x = Axis(-0.3, len(sizes) - 0.7, [(place[size], count(size)) for size in sizes])
    drawn = {name: curve + curves["all"] for name, curve in curves.items() if name not in ("joint", "all")}
    lines = [
        Line(np.array([place[k] for k, _ in curve]), np.array([v for _, v in curve]), name, _STYLES[name])
        for name, curve in drawn.items()
    ]
    everything = curves["all"][0][1]
    level = Line(np.array([x.low, x.high]), np.array([everything] * 2), "every column", 5, is_thin=True)
    is_chosen = chosen["learner"] == learner
    at = [place[chosen["size"]]] if is_chosen and chosen["size"] in place else []
    y = axis(*limits(*(np.array([v for _, v in curve]) for curve in curves.values()), within=(0, 1)))
    dotted = "; dotted: recommended" if is_chosen else ""
    said = "; ".join(f"{line.name}: {trend(line.y)}" for line in lines)
    chart = Chart(
        f"cur-{learner}", word, f"by number of columns kept{dotted}", f"With {learner}. {said}", x, y,
        [*lines, level, VerticalLines(np.array(at))], "wide",
    )  # fmt: skip
    joint = curves["joint"][0] if "joint" in curves else None
    note = f"joint chooses the size: {fraction(joint[1])} with {count(joint[0])} at the end." if joint else ""
    return {"chart": chart, "table": _table(curves, sizes, word, note)}


def _table(curves: dict[str, list[tuple[int, float]]], sizes: list[int], word: str, note: str) -> Table:
    names = [name for name in curves if name not in ("joint", "all")]
    rows = []
    for size in sizes:
        cells = [dict(curves[name]).get(size) for name in names]
        rows.append([count(size), *("–" if cell is None else fraction(cell) for cell in cells)])
    rows[-1] = [f"{rows[-1][0]} (all)", *[fraction(curves["all"][0][1])] * len(names)]
    return Table(word, [("n", one) for one in ("columns", *names)], rows, note)
