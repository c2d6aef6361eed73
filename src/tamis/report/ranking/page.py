"""The report on columns that were scored one by one: the best of them, and how the scores fall."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.catalog import EFFECT_TITLES, SCORE_MEANINGS, SCORE_TITLES
from tamis.report.figures import svg
from tamis.report.figures.figure import figure
from tamis.report.figures.thinning import thin
from tamis.report.page.document import document, write_page
from tamis.report.page.markup import name, names, notice, plural, repeat_lines, table, text, tiles
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
        The file; one that exists is replaced in one step, or stays as it is if anything fails.
    title : str
    note, alert : str
        Further texts on the page: about the data, and about errors.
    n_rows : int, optional
        Number of rows learned from.
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
    parts = [
        ("best", "The best columns", _best(columns, scores, top)),
        ("course", "How the scores fall", _course(columns, scores)),
        ("bare", "Columns without any value", _bare(columns)),
        ("repeat", "Repeat this run", repeat_lines(repeat or {"In Python": _in_python(scores)})),
    ]
    parts = [part for part in parts if part[2]]
    warning = notice(f"<b>{text(alert)}</b>") if alert else ""
    above = warning + _tiles(columns, n_rows, classes, seconds)
    return document(title, text(note, 600), above, parts)


def _tiles(columns: Columns, n_rows: int | None, classes: Sequence[Any], seconds: float) -> str:
    n = len(columns["feature"])
    bare = int((columns["n_observed"] == 0).sum())
    shown = [("Columns", count(n), f"{count(bare)} without any value" if bare else "")]
    if n_rows is not None:
        shown.append(("Rows", count(n_rows), ""))
    if len(classes):
        shown.append(("Classes", count(len(classes)), names([str(label) for label in classes], 3)))
    if "selected" in columns:
        kept = int(columns["selected"].sum())
        shown.append(("Selected", count(kept), f"{100 * kept / max(n, 1):.2g} % of the columns"))
    if math.isfinite(seconds):
        pace = f"{rate(n_rows / seconds)} rows a second" if n_rows and seconds > 0 else ""
        shown.append(("Time", duration(seconds), pace))
    return tiles(shown)


# -- the best ----------------------------------------------------------------------------------------------


def _best(columns: Columns, scores: Sequence[str], top: int) -> str:
    n = len(columns["feature"])
    said = "; ".join(f"{SCORE_TITLES[key]}: {SCORE_MEANINGS[key]}" for key in scores)
    if "effect_low" in columns:
        said += f". {EFFECT_TITLES[scores[0]].capitalize()}: a band for each column that is true at all times"
    shown = f"<p>Each column by itself. {text(said, 600)}.</p>" + _listing(
        columns, scores, range(min(top, n)), f"Ranked by {SCORE_TITLES[scores[0]].lower()}"
    )
    if n <= top:
        return shown
    rest = range(top, min(n, _MOST_ROWS))
    more = f'<p class="note">And {count(n - _MOST_ROWS)} more.</p>' if n > _MOST_ROWS else ""
    listing = _listing(columns, scores, rest, f"From {count(top + 1)} on")
    others = plural(n - top, "other column", "other columns")
    return f"{shown}<details><summary>{others}</summary>{listing}{more}</details>"


def _listing(columns: Columns, scores: Sequence[str], which: range, caption: str) -> str:
    """Return a table of some ranks: a bar for the first score, the numbers of the others."""
    first, pvalue = scores[0], f"{scores[0]}_pvalue"
    finite = columns[first][np.isfinite(columns[first])]
    most = float(finite.max(initial=0.0)) or 1.0
    part = {key: column[which.start : which.stop].tolist() for key, column in columns.items()}
    head, kinds = ["", "column", "", SCORE_TITLES[first]], ["n", "long", "meter extra", "n"]
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
        [count(rank), name(str(feature)), _bar(value, most), _number(value), *cells]
        for rank, feature, value, *cells in zip(
            part["rank"], part["feature"], part[first], *further.values(), strict=True
        )
    ]
    return table(caption, [*head, *further], rows, [*kinds, *["n"] * len(further)])


def _bar(value: float, most: float) -> str:
    width = 100 * min(max(value, 0.0) / most, 1.0)
    return f'<i class="k1" style="width:{width:.1f}%"></i>'


def _number(value: float) -> str:
    if value == math.inf or value > 1e300:
        return "∞" if value == math.inf else f"&gt; {power_of_ten(300)}"
    return scientific(value)


def _probability(value: float) -> str:
    return f"&lt; {power_of_ten(-300)}" if value < _LEAST else scientific(value)


# -- how the scores fall -----------------------------------------------------------------------------------


def _course(columns: Columns, scores: Sequence[str]) -> str:
    """Return each score by rank, as a share of its largest value: where the columns that tell something end."""
    if len(columns["feature"]) < 3:
        return ""
    x = svg.axis(
        1.0, float(len(columns["feature"])), 6, lambda at: count(at) if float(at).is_integer() else ""
    )
    y = svg.axis(0.0, 1.0, 5, lambda at: f"{at:.0%}")
    marks, legend, told = [], [], []
    for number, key in enumerate(scores, start=1):
        values = np.sort(np.where(np.isfinite(columns[key]), columns[key], np.nan))[::-1]
        values = values[np.isfinite(values)]
        most = float(values.max(initial=0.0))
        if most <= 0.0:
            continue
        ranks = np.arange(1, len(values) + 1, dtype=np.float64)
        kind = f"s{min(number, 6)}"
        marks.append(svg.line(x, y, *thin(ranks, values / most), kind, SCORE_TITLES[key]))
        legend.append((f"line {kind}", "M0 4h24", SCORE_TITLES[key]))
        half = int(np.count_nonzero(values >= most / 2))
        told.append(f"{SCORE_TITLES[key]} {count(half)}")
    if not marks:
        return '<p class="note">No column tells anything.</p>'
    chart = svg.chart("fall", "Scores by rank", text(", ".join(told), 900), x, y, marks[::-1])
    said = f"Columns with half of the best score or more: {', '.join(told)}."
    caption = "<b>Scores</b> by rank, as a share of the largest, each sorted by itself"
    return figure(caption, legend if len(legend) > 1 else [], chart, "wide") + f'<p class="note">{said}</p>'


def _bare(columns: Columns) -> str:
    bare = [str(one) for one in columns["feature"][columns["n_observed"] == 0]]
    return f"<p>{names(bare, 30)}</p>" if bare else ""


def _in_python(scores: Sequence[str]) -> str:
    return f"from tamis import Screening\n\nScreening(scores={list(scores)!r}).fit(X, y).table_"
