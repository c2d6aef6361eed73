"""The columns of a table, ranked by their scores: what :class:`Screening` finds, as a result that shows itself."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tamis._validation import Array, Mask
from tamis.catalog import EFFECT_TITLES, SCORE_MEANINGS, SCORE_TITLES
from tamis.report.charts.chart import Chart, Line, axis, percent, whole_number
from tamis.report.content import Cell, Figure, Meter, Names, Remark, Reproduction, Section, Table
from tamis.report.result import Result
from tamis.report.shared_selection import SharedSelection
from tamis.report.text import count, duration, listed, lower, power_of_ten, rate, scientific
from tamis.rows.screening.screening import Screening

_MOST_ROWS = 1000
_LEAST = 1e-300  # smallest p-value that is written with its digits
_ALPHA = 0.05


class ColumnRanking(Result):
    """The ranking of the columns of a table by their univariate relevance.

    Parameters
    ----------
    screening : Screening
        Fitted.
    columns : dict of str to ndarray of shape (n_features,), optional
        Its ``table_``, in an order with a column "rank"; by default sorted by the first score.
    title, about : str
        Heading, and a sentence on the data.
    remarks : sequence of str
    n_rows : int, optional
        Number of rows learned.
    top : int, default=20
        Number of columns shown at first; the others, up to 1,000, are folded away.
    seconds : float
        Duration of the ranking.

    Examples
    --------
    >>> from tamis import Screening
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 5))
    >>> X[:, 3] += y
    >>> ranking = ColumnRanking(Screening(1, scores=["mi", "t"]).fit(X, y))
    >>> ranking.verdict()
    '1 of 5 columns is relevant to the label (p < 0.05 / 5 by mutual information): x3.'
    >>> page = ranking.report()
    >>> page.index(">x3<") < page.index(">x0<")
    True
    """

    def __init__(
        self,
        screening: Screening,
        columns: Mapping[str, Array] | None = None,
        title: str = "Columns, ranked",
        about: str = "",
        *,
        remarks: Sequence[str] = (),
        n_rows: int | None = None,
        top: int = 20,
        seconds: float = math.nan,
    ) -> None:
        self.screening, self.scores = screening, list(screening.scores)
        if columns is None:
            table = screening.table_
            order = np.lexsort((np.arange(len(table["feature"])), -table[self.scores[0]]))
            ranked = {key: column[order] for key, column in table.items()}
            columns = {"rank": np.arange(1, len(order) + 1), **ranked}
        self.columns, self._title, self._about = columns, title, about
        self._remarks, self.n_rows, self.classes = remarks, n_rows, screening.classes_.tolist()
        self.level, self.top, self.seconds = screening.level, top, seconds

    def heading(self) -> str:
        """Return the title."""
        return self._title

    def about(self) -> str:
        """Return the sentence on the data."""
        return self._about

    def remarks(self) -> Sequence[str]:
        """Return the remarks, and the columns without any value."""
        bare = self._names(self.columns["n_observed"] == 0)
        said = (
            f"{len(bare):,} column{'s have' if len(bare) != 1 else ' has'} no value at all: {listed(bare)}."
        )
        return [*self._remarks, *([Remark(said, "note")] if bare else [])]

    def _names(self, which: Mask | slice) -> list[str]:
        return [str(name) for name in self.columns["feature"][which]]

    def relevant(self) -> list[str] | None:
        """Return the relevant columns, by the level or else a test of the first score; None without either."""
        if self.level is not None:
            return self._names(self.columns["selected"].astype(bool))
        pvalues = self.columns.get(f"{self.scores[0]}_pvalue")
        return None if pvalues is None else self._names(pvalues < _ALPHA / len(pvalues))

    def selected(self) -> list[str]:
        """Return the columns without redundancy if they were requested, else the relevant ones, else those shown."""
        if self.screening.redundancy is not None:
            return self._names(self.columns["selected"])
        relevant = self.relevant()
        return self._names(slice(self.top)) if relevant is None else relevant

    def verdict(self) -> str:
        """Return how many columns are relevant, by which test, and the first of them."""
        n, key = len(self.columns["feature"]), self.scores[0]
        if (relevant := self.relevant()) is None:
            best = float(self.columns[key][0])
            return f"The highest {lower(SCORE_TITLES[key])} is that of {self._names(slice(1))[0]}, {_number(best)}."
        how = f"p < {_ALPHA:g} / {n:,} by {lower(SCORE_TITLES[key])}"
        if self.level is not None:
            how = f"the share of false discoveries is at most {self.level:g} at any time"
        verb = "is" if len(relevant) == 1 else "are"
        said = f"{len(relevant):,} of {n:,} columns {verb}" if relevant else f"None of {n:,} columns is"
        return f"{said} relevant to the label ({how}){': ' + listed(relevant) if relevant else ''}."

    def headline(self) -> list[Figure]:
        """Return the numbers of columns, rows, classes and selected columns, and the duration."""
        n = len(self.columns["feature"])
        shown = [Figure("Columns", count(n), is_main=False)]
        if self.n_rows is not None:
            shown.append(Figure("Rows", count(self.n_rows), is_main=False))
        if len(self.classes):
            names = Names([str(label) for label in self.classes], 3)
            shown.append(Figure("Classes", count(len(self.classes)), names, is_main=False))
        if "selected" in self.columns:
            kept = int(self.columns["selected"].sum())
            share = f"{100 * kept / max(n, 1):.2g} % of the columns"
            shown.append(Figure("Selected", count(kept), share, is_main=False))
        if math.isfinite(self.seconds):
            pace = ""
            if self.n_rows and self.seconds > 0:
                pace = f"{rate(self.n_rows / self.seconds)} rows a second"
            shown.append(Figure("Time", duration(self.seconds), pace, is_main=False))
        return shown

    def sections(self) -> list[Section]:
        """Return the best columns, and the scores by rank."""
        n, top = len(self.columns["feature"]), self.top
        said = "; ".join(f"{SCORE_TITLES[key]}: {SCORE_MEANINGS[key]}" for key in self.scores)
        if "effect_low" in self.columns:
            title = EFFECT_TITLES[self.scores[0]]
            said += f". {title[0].upper()}{title[1:]}: a confidence band for each column, valid at any time"
        items: list[Any] = [f"Each column by itself. {said}.", self._table(range(min(top, n)))]
        if n > top:
            items.append(self._table(range(top, min(n, _MOST_ROWS))))
        return [Section("best", "The best columns", items), *self._fall()]

    def _table(self, which: range) -> Table:
        """Return a table of some ranks: a bar for the first score, the numbers of the others."""
        columns, scores, first = self.columns, self.scores, self.scores[0]
        finite = columns[first][np.isfinite(columns[first])]
        most = float(finite.max(initial=0.0)) or 1.0
        part = {key: column[which.start : which.stop].tolist() for key, column in columns.items()}
        head = [("n", ""), ("long", "column"), ("meter extra", ""), ("n", SCORE_TITLES[first])]
        further: dict[str, list[str]] = {
            SCORE_TITLES[key]: list(map(_number, part[key])) for key in scores[1:]
        }
        if (pvalue := f"{first}_pvalue") in part:
            further["p-value"] = list(map(_probability, part[pvalue]))
        if "evalue" in part:
            further["e-value"] = list(map(_number, part["evalue"]))
        if "effect_low" in part:
            ends = zip(part["effect_low"], part["effect_high"], strict=True)
            further[EFFECT_TITLES[first]] = [f"{_number(low)} to {_number(high)}" for low, high in ends]
        if "selected" in part:
            further["selected"] = ["●" if kept else "" for kept in part["selected"]]
        further["values"] = list(map(count, part["n_observed"]))
        ranked = zip(part["rank"], part["feature"], part[first], *further.values(), strict=True)
        rows: list[list[Cell]] = [
            [count(rank), Names([str(feature)]), _bar(value, most), _number(value), *cells]
            for rank, feature, value, *cells in ranked
        ]
        is_first = which.start == 0
        more = len(columns["feature"]) - (which.stop if is_first else _MOST_ROWS)
        title = f"Ranked by {lower(SCORE_TITLES[first])}" if is_first else f"From {count(which.start + 1)} on"
        return Table(
            title, [*head, *(("n", title) for title in further)], rows,
            f"And {count(more)} more." if more > 0 else "", is_main=is_first, is_folded=not is_first,
        )  # fmt: skip

    def _fall(self) -> list[Section]:
        """Return each score by rank, as a share of its largest value: where the relevant columns end."""
        n = len(self.columns["feature"])
        if n < 3:
            return []
        lines, halves = [], []
        for style, key in enumerate(self.scores, start=1):
            values = np.sort(self.columns[key][np.isfinite(self.columns[key])])[::-1]
            most = float(values.max(initial=0.0))
            if most > 0.0:
                ranks = np.arange(1, len(values) + 1, dtype=np.float64)
                lines.append(Line(ranks, values / most, SCORE_TITLES[key], min(style, 6)))
                halves.append(f"{SCORE_TITLES[key]} {count(int(np.count_nonzero(values >= most / 2)))}")
        said = ", ".join(halves)
        caption = "by rank, as a share of the largest, each sorted by itself"
        x, y = axis(1.0, float(n), 6, whole_number, "rank"), axis(0.0, 1.0, 5, percent)
        chart = Chart("fall", "Scores", caption, said, x, y, lines, "wide")
        items = [chart, Remark(f"Columns with half of the best score or more: {said}.", "note")]
        return [Section("course", "Scores by rank", items if lines else ["No column is relevant."])]

    def reproduce(self) -> Reproduction:
        """Return the lines of Python."""
        made = re.sub(r"\s+", " ", repr(self.screening))
        python = f"from tamis import {type(self.screening).__name__}\n\n{made}.fit(X, y).table_"
        return Reproduction(python=python)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values: the keys are in the table of JSON keys in the documentation."""
        first = {name: column[: self.top].tolist() for name, column in self.columns.items()}
        return {
            "verdict": self.verdict(), "remarks": [str(remark) for remark in self.remarks()], "scores": self.scores,
            "n_rows": self.n_rows, "n_features": len(self.columns["feature"]), "classes": self.classes,
            "seconds": self.seconds,
            "features": [dict(zip(first, row, strict=True)) for row in zip(*first.values(), strict=True)],
        }  # fmt: skip


class TargetsRanking(SharedSelection):
    """The rankings of the columns of a table for several targets, and the columns that are relevant to any.

    Parameters
    ----------
    rankings : dict of str to ColumnRanking
        The ranking for each target.
    title : str
    """

    def __init__(self, rankings: Mapping[str, ColumnRanking], title: str = "Columns, ranked") -> None:
        self.rankings, self._title = dict(rankings), title
        names = dict.fromkeys(str(name) for one in rankings.values() for name in one.columns["feature"])
        super().__init__({target: one.selected() for target, one in rankings.items()}, list(names))

    def heading(self) -> str:
        """Return the title."""
        return self._title

    def sections(self) -> list[Section]:
        """Return the shared selection, and the best columns for each target."""
        sections = [Section("targets", "Targets", [self.shared_table()])]
        for at, (name, one) in enumerate(self.rankings.items()):
            said, *tables = one.sections()[0].items
            named = [replace(table, title=f"{name}: {lower(table.title)}") for table in tables]
            sections.append(Section(f"best-{at}", f"The best columns for {name}", [said, *named]))
        return sections

    def remarks(self) -> list[str]:
        """Return the verdict and the remarks of each ranking."""
        said: list[str] = []
        for name, one in self.rankings.items():
            said += [
                Remark(f"{name}: {one.verdict()}", "note"),
                *(f"{name}: {text}" for text in one.remarks()),
            ]
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values: the shared selection, and the ranking for each target."""
        return super().to_dict() | {"by_target": {name: one.to_dict() for name, one in self.rankings.items()}}


def _bar(value: float, most: float) -> Meter:
    return Meter(100 * min(max(value, 0.0) / most, 1.0), is_block=True)


def _number(value: float) -> str:
    if value == math.inf or value > 1e300:
        return "∞" if value == math.inf else f"> {power_of_ten(300)}"
    return scientific(value)


def _probability(value: float) -> str:
    return f"< {power_of_ten(-300)}" if value < _LEAST else scientific(value)
