"""The report on a univariate ranking of features: the best ones, and the decay of the scores."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.catalog import EFFECT_TITLES, SCORE_MEANINGS, SCORE_TITLES
from tamis.report.charts.chart import Chart, Line, axis
from tamis.report.page.cells import Cell, Meter, Names, Table
from tamis.report.page.document import Section, render_page, write_page
from tamis.report.page.number_format import count, duration, power_of_ten, rate, scientific

__all__ = ["ranking_page", "write_report"]

Columns = Mapping[str, NDArray[Any]]
_MOST_ROWS = 1000
_LEAST = 1e-300  # a p-value below it is written so


def write_report(
    columns: Columns,
    path: str | os.PathLike[str],
    title: str = "Columns, ranked",
    *,
    note: str = "",
    alert: str = "",
    n_rows: int | None = None,
    classes: Sequence[Any] = (),
    top: int = 20,
    seconds: float = math.nan,
    repeat: Mapping[str, str] | None = None,
) -> Path:
    """Write the ranking of the columns of a table, as one HTML file that opens offline.

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n_features,)
        The ``table_`` of a :class:`Screening <tamis.rows.screening.screening.Screening>`. With a column "rank", it is
        shown in its own order; otherwise it is sorted by the first of its scores.
    path : str or path
        The file. An existing one is replaced atomically, or left unchanged on failure.
    title : str
    note, alert : str
        Further texts on the page: about the data, and about errors.
    n_rows : int, optional
        Number of rows learned.
    classes : sequence
        The labels of the classes.
    top : int, default=20
        Number of columns shown at first; the others, up to 1,000, are folded away.
    seconds : float
        Duration of the ranking.
    repeat : dict of str to str, optional
        Headings and lines that repeat the result.

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
    >>> from tamis import Screening
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 5))
    >>> X[:, 3] += y
    >>> table = Screening(1, scores=["mi", "t"]).fit(X, y).table_
    >>> page = write_report(table, tempfile.mkdtemp() + "/ranking.html").read_text(encoding="utf-8")
    >>> page.index(">x3<") < page.index(">x0<")
    True
    """
    return write_page(
        path,
        lambda: ranking_page(
            columns, title, note=note, alert=alert, n_rows=n_rows, classes=classes, top=top, seconds=seconds,
            repeat=repeat,
        ),
    )  # fmt: skip


def ranking_page(
    columns: Columns,
    title: str = "Columns, ranked",
    *,
    note: str = "",
    alert: str = "",
    n_rows: int | None = None,
    classes: Sequence[Any] = (),
    top: int = 20,
    seconds: float = math.nan,
    repeat: Mapping[str, str] | None = None,
) -> str:
    """Return the report as HTML; parameters as for :func:`write_report`."""
    scores = [key for key in columns if key in SCORE_TITLES]
    if "rank" not in columns:
        order = np.lexsort((np.arange(len(columns["feature"])), -columns[scores[0]]))
        columns = {
            "rank": np.arange(1, len(order) + 1),
            **{key: column[order] for key, column in columns.items()},
        }
    sections = [
        Section("best", "The best columns", _best(columns, scores, top)),
        Section("course", "Scores by rank", _course(columns, scores)),
        Section("bare", "Columns without any value", _bare(columns)),
        Section("repeat", "Repeat this run", repeat or {"In Python": _in_python(scores)}),
    ]
    above = {"note": note, "alert": alert, "tiles": _tiles(columns, n_rows, classes, seconds)}
    return render_page("ranking/page.html.j2", title, above, [one for one in sections if one.values])


def _tiles(
    columns: Columns, n_rows: int | None, classes: Sequence[Any], seconds: float
) -> list[tuple[str, str, Cell]]:
    n = len(columns["feature"])
    bare = int((columns["n_observed"] == 0).sum())
    shown: list[tuple[str, str, Cell]] = [
        ("Columns", count(n), f"{count(bare)} without any value" if bare else "")
    ]
    if n_rows is not None:
        shown.append(("Rows", count(n_rows), ""))
    if len(classes):
        shown.append(("Classes", count(len(classes)), Names([str(label) for label in classes], 3)))
    if "selected" in columns:
        kept = int(columns["selected"].sum())
        shown.append(("Selected", count(kept), f"{100 * kept / max(n, 1):.2g} % of the columns"))
    if math.isfinite(seconds):
        pace = f"{rate(n_rows / seconds)} rows a second" if n_rows and seconds > 0 else ""
        shown.append(("Time", duration(seconds), pace))
    return shown


# -- the best ----------------------------------------------------------------------------------------------


def _best(columns: Columns, scores: Sequence[str], top: int) -> dict[str, Any]:
    n = len(columns["feature"])
    said = "; ".join(f"{SCORE_TITLES[key]}: {SCORE_MEANINGS[key]}" for key in scores)
    if "effect_low" in columns:
        said += (
            f". {EFFECT_TITLES[scores[0]].capitalize()}: a confidence band for each column, valid at any time"
        )
    first = _listing(columns, scores, range(min(top, n)), f"Ranked by {SCORE_TITLES[scores[0]].lower()}")
    rest = (
        _listing(columns, scores, range(top, min(n, _MOST_ROWS)), f"From {count(top + 1)} on")
        if n > top
        else None
    )
    return {
        "meanings": said,
        "first": first,
        "rest": rest,
        "n_rest": n - top,
        "n_more": max(n - _MOST_ROWS, 0),
    }


def _listing(columns: Columns, scores: Sequence[str], which: range, caption: str) -> Table:
    """Return a table of some ranks: a bar for the first score, the numbers of the others."""
    first, pvalue = scores[0], f"{scores[0]}_pvalue"
    finite = columns[first][np.isfinite(columns[first])]
    most = float(finite.max(initial=0.0)) or 1.0
    part = {key: column[which.start : which.stop].tolist() for key, column in columns.items()}
    head = [("n", ""), ("long", "column"), ("meter extra", ""), ("n", SCORE_TITLES[first])]
    further = {SCORE_TITLES[key]: list(map(_number, part[key])) for key in scores[1:]}
    if pvalue in part:
        further["p-value"] = list(map(_probability, part[pvalue]))
    if "evalue" in part:
        further["e-value"] = list(map(_number, part["evalue"]))
    if "effect_low" in part:
        ends = zip(part["effect_low"], part["effect_high"], strict=True)
        further[EFFECT_TITLES[first]] = [f"{_number(low)} to {_number(high)}" for low, high in ends]
    if "selected" in part:
        further["selected"] = ["●" if kept else "" for kept in part["selected"]]
    further["values"] = list(map(count, part["n_observed"]))
    rows = [
        [count(rank), Names([str(feature)]), _bar(value, most), _number(value), *cells]
        for rank, feature, value, *cells in zip(
            part["rank"], part["feature"], part[first], *further.values(), strict=True
        )
    ]
    return Table(caption, [*head, *(("n", title) for title in further)], rows)


def _bar(value: float, most: float) -> Meter:
    return Meter(100 * min(max(value, 0.0) / most, 1.0), is_block=True)


def _number(value: float) -> str:
    if value == math.inf or value > 1e300:
        return "∞" if value == math.inf else f"> {power_of_ten(300)}"
    return scientific(value)


def _probability(value: float) -> str:
    return f"< {power_of_ten(-300)}" if value < _LEAST else scientific(value)


# -- how the scores fall -----------------------------------------------------------------------------------


def _course(columns: Columns, scores: Sequence[str]) -> dict[str, Any] | None:
    """Return each score by rank, as a share of its largest value: where the relevant columns end."""
    n = len(columns["feature"])
    if n < 3:
        return None
    lines, halves = [], []
    for style, key in enumerate(scores, start=1):
        values = np.sort(columns[key][np.isfinite(columns[key])])[::-1]
        most = float(values.max(initial=0.0))
        if most <= 0.0:
            continue
        ranks = np.arange(1, len(values) + 1, dtype=np.float64)
        lines.append(Line(ranks, values / most, SCORE_TITLES[key], min(style, 6)))
        halves.append(f"{SCORE_TITLES[key]} {count(int(np.count_nonzero(values >= most / 2)))}")
    x = axis(1.0, float(n), 6, lambda at: count(at) if float(at).is_integer() else "")
    y = axis(0.0, 1.0, 5, lambda at: f"{at:.0%}")
    caption = "by rank, as a share of the largest, each sorted by itself"
    chart = Chart("fall", "Scores", caption, ", ".join(halves), x, y, lines, "wide")
    return {"chart": chart if lines else None, "halves": ", ".join(halves)}


def _bare(columns: Columns) -> list[str]:
    return [str(one) for one in columns["feature"][columns["n_observed"] == 0]]


def _in_python(scores: Sequence[str]) -> str:
    return f"from tamis import Screening\n\nScreening(scores={list(scores)!r}).fit(X, y).table_"
