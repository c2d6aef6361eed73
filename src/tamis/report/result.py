"""The protocol of every result: a verdict, tables, charts, remarks, and what reproduces it."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tamis.report.charts.axes import draw_stacked
from tamis.report.charts.chart import Chart
from tamis.report.content import Code, Figure, Reproduction, Section, Table, cell_text, flat
from tamis.report.page import InlinePage, inline_chart, write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Item = TypeVar("Item", Table, Chart)


class Result:
    """A result that is shown as a page, in a terminal and in a notebook.

    A subclass defines :meth:`verdict`, and of the others what it has: either :meth:`sections`, or :meth:`tables` and
    :meth:`charts`, which form a single section.

    Examples
    --------
    >>> class Coin(Result):
    ...     def verdict(self):
    ...         return "The coin is fair."
    ...
    ...     def tables(self):
    ...         return [Table("Tosses", [("", "side"), ("n", "count")], [["heads", "12"], ["tails", "11"]])]
    >>> page = Coin().report()
    >>> "The coin is fair." in page, "Tosses" in page, Coin()._repr_html_()
    (True, True, '<b>Coin</b> The coin is fair.')
    """

    def heading(self) -> str:
        """Return the heading of the page; by default the name of the class."""
        return type(self).__name__

    def verdict(self) -> str:
        """Return the answer in one sentence: does the selection pay, against what, by how much, how sure."""
        raise NotImplementedError(f"{type(self).__name__} must define verdict().")

    def about(self) -> str:
        """Return what was evaluated: the data and the methods."""
        return ""

    def headline(self) -> Sequence[Figure]:
        """Return the headline numbers."""
        return []

    def remarks(self) -> Sequence[str]:
        """Return what restricts or explains the result; a text without a level is a warning."""
        return []

    def sections(self) -> Sequence[Section]:
        """Return tables, charts and paragraphs in their order; by default :meth:`charts`, then :meth:`tables`."""
        return []

    def main_sections(self) -> Sequence[Section]:
        """Return the sections with what a terminal shows, where all take long to compute; by default all."""
        return self.sections()

    def tables(self) -> list[Table]:
        """Return the tables of all sections."""
        return _of_kind(Table, self.sections())

    def charts(self) -> list[Chart]:
        """Return the charts of all sections."""
        return _of_kind(Chart, self.sections())

    def reproduce(self) -> Reproduction:
        """Return the shell command and the lines of Python that repeat the result."""
        return Reproduction()

    def report(
        self, path: str | os.PathLike[str] | None = None, title: str | None = None, *, command: str = ""
    ) -> Path | InlinePage:
        """Write one self-contained HTML file that shows the result, and return its path.

        Parameters
        ----------
        path : path-like, optional
            An existing file is replaced atomically, or left unchanged on failure. Without a path the page is returned,
            which a notebook displays.
        title : str, optional
            Heading of the page.
        command : str
            The command line that repeats the result, if the result does not know it.

        Raises
        ------
        ValueError
            If the file cannot be written; see :func:`tamis.report.check_writable`.
        """
        return write_page(self, path, title, command=command)

    def plot(self) -> Drawing:
        """Return a matplotlib figure of the main charts, one below the other, or of all if none is main.

        Raises
        ------
        ImportError
            If matplotlib is missing; the message names the extra to install.
        ValueError
            If the result has no charts.
        """
        charts = self.charts()
        if not charts:
            raise ValueError(f"{self.heading()!r} has no chart: {self.verdict()}")
        return draw_stacked([chart for chart in charts if chart.is_main] or charts)

    def _repr_html_(self) -> str:
        from tamis.base.html_repr import html_repr  # imports scikit-learn, which listings do without

        parts = [html_repr(type(self).__name__, [self.verdict()])]
        sections = self.main_sections()
        charts = _of_kind(Chart, sections)
        if (chart := next((one for one in charts if one.is_main), next(iter(charts), None))) is not None:
            parts.append(inline_chart(chart))
        parts += [f"<p>{html.escape(part)}</p>" for part in (self.about(), *self.remarks()) if part]
        codes = [item for section in sections for item in flat(section.items) if isinstance(item, Code)]
        parts += [f"<pre>{html.escape(code)}</pre>" for code in codes]
        figures = {one.name: [one.value, cell_text(one.note)] for one in self.headline()}
        parts += [html_repr("Summary", (), figures)] if figures else []
        for table in [one for one in _of_kind(Table, sections) if one.is_main][:2]:
            rows = {cell_text(first).strip(): list(map(cell_text, rest)) for first, *rest in table.rows}
            parts.append(html_repr(table.title, (), rows, [cell_text(head) for _, head in table.columns]))
        return "".join(parts)


def _of_kind(kind: type[Item], sections: Sequence[Section]) -> list[Item]:
    """Return the tables or the charts of sections."""
    return [item for section in sections for item in flat(section.items) if isinstance(item, kind)]
