"""Output of `tamis screen`: a table in the terminal, one JSON document, a CSV file, a picture, a page."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.catalog import SCORE_TITLES
from tamis.cli.failure import MisuseError
from tamis.cli.output import PICTURE_MARK, check_outputs, print_json, rerun_commands, terminal, write_output
from tamis.cli.ranking import Ranking

if TYPE_CHECKING:
    from numpy.typing import NDArray


__all__ = ["Output"]

_BANDS = {"t": "means apart", "fisher": "means apart", "mi": "nats", "chi2": "nats", "gini": "nats"}


@dataclass
class Output:
    """Output files of the ranking; each is checked before the first row is read."""

    out: str | None
    plot: str | None
    report: str | None
    top: int
    as_json: bool
    quiet: bool

    def check(self, inputs: list[str], force: bool) -> None:
        """Reject paths that cannot be written, or contain something else."""
        places = {"--out": self.out, "--plot": self.plot, "--report": self.report}
        check_outputs(inputs, places, force=force)
        if self.plot is not None:
            from tamis.report.scores import check_picture

            try:
                check_picture(self.plot)
            except ValueError as error:
                raise MisuseError(str(error)) from error

    def finish(self, ranking: Ranking, error: str | None = None) -> None:
        """Show the ranking, and write the output files."""
        columns = ranking.columns()
        if not self.as_json:
            _show(ranking, columns, self.top)
        written = {}
        if self.out is not None:
            written["table"] = _write_csv(columns, self.out)
        if self.plot is not None:
            written["plot"] = self._draw(ranking, columns, self.plot)
        if self.report is not None:
            written["report"] = self._page(ranking, columns, self.report, error)
        if self.as_json:
            print_json(_document(ranking, columns, self.top, error, written))
        else:
            for name, place in written.items():
                print(f"The {name}: {place}")

    def _draw(self, ranking: Ranking, columns: dict[str, NDArray[Any]], place: str) -> str:
        from tamis.report.scores import plot_ranking

        scores = {SCORE_TITLES[name]: columns[name][: self.top] for name in ranking.scores}
        title = f"{ranking.title.partition(' on ')[2]}: {ranking.detail}"
        figure = plot_ranking(columns["feature"][: self.top].tolist(), scores, title)
        kind = Path(place).suffix[1:].lower()
        signed = {"Software" if kind == "png" else "Creator": PICTURE_MARK}
        write_output(place, lambda file: figure.savefig(file, format=kind, dpi=150, metadata=signed))
        return place

    def _page(self, ranking: Ranking, columns: dict[str, NDArray[Any]], place: str, error: str | None) -> str:
        from tamis.report.ranking.page import write_report

        alert = f"Interrupted by: {error}" if error else ""
        if ranking.interrupted:
            alert = "This run was interrupted: the page shows the rows that were read until then."
        write_report(
            columns, place, ranking.title, note=_note(ranking), alert=alert,
            n_rows=ranking.n_rows, classes=ranking.screening.classes_.tolist(), top=self.top, seconds=ranking.seconds,
            repeat=rerun_commands(),
        )  # fmt: skip
        return place


def _note(ranking: Ranking) -> str:
    sentences = [ranking.detail, *filter(None, [ranking.dependence_note()])]
    return " ".join(f"{one[0].upper()}{one[1:]}." for one in sentences)


def _write_csv(columns: dict[str, NDArray[Any]], place: str) -> str:
    from tamis.streams.dialect import escape_formula

    texts = {"feature": [escape_formula(str(name)) for name in columns["feature"]]}
    written = {name: texts.get(name, column.tolist()) for name, column in columns.items()}
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(written)
    writer.writerows(zip(*written.values(), strict=True))
    write_output(place, lambda file: file.write(text.getvalue().encode()))
    return place


def _document(
    ranking: Ranking, columns: dict[str, NDArray[Any]], top: int, error: str | None, written: dict[str, str]
) -> dict[str, Any]:
    first = {name: column[:top].tolist() for name, column in columns.items()}
    if "n_effective" in first:  # undetermined: JSON has no NaN
        first["n_effective"] = [None if math.isnan(n) else n for n in first["n_effective"]]
    return {
        "stream": ranking.stream.describe(),
        "scores": ranking.scores,
        "options": {
            name: getattr(ranking.screening, name)
            for name in ("half_life", "dependence", "n_bins", "eps", "level", "redundancy", "restarts")
        },
        "n_rows": ranking.n_rows,
        "rows_dependent": ranking.screening.rows_dependent_,
        "n_features": len(columns["rank"]),
        "classes": ranking.screening.classes_.tolist(),
        "seconds": ranking.seconds,
        "interrupted": ranking.interrupted,
        "features": [dict(zip(first, row, strict=True)) for row in zip(*first.values(), strict=True)],
        "written": written,
        "error": error,
    }


def _show(ranking: Ranking, columns: dict[str, NDArray[Any]], top: int) -> None:
    """Print the table: rank, name, scores, the probability of the first one, and a bar of its size."""
    import numpy as np
    from rich.table import Table
    from rich.text import Text

    from tamis.terminal import bar, printable

    console, names = terminal(), ranking.scores
    width = min(console.width, 100)
    first = {name: column[:top] for name, column in columns.items()}
    widest = max(4, min(max(map(len, first["feature"])), width - 18 - 11 * len(names) - 12, 40))
    pvalue = f"{names[0]}_pvalue"
    grid = Table.grid(padding=(0, 2, 0, 0))
    has_level = "evalue" in first
    sizes = [4, widest, *[9] * len(names), *[8] * (pvalue in first), *[8, 13, 1] * has_level]
    sizes.append(max(width - sum(sizes) - 2 * len(sizes) - 2, 0))
    for i, size in enumerate(sizes):
        grid.add_column(
            width=size,
            no_wrap=True,
            overflow="ellipsis",
            justify="left" if i in (1, len(sizes) - 1) else "right",
        )
    head = ["", "", *names, *["p"] * (pvalue in first), *["e", _BANDS[names[0]], ""] * has_level, ""]
    grid.add_row(*(Text(text, style="dim") for text in head))
    finite = first[names[0]][np.isfinite(first[names[0]])]
    most = float(finite.max(initial=0.0)) or 1.0
    for i in range(len(first["rank"])):
        score = float(first[names[0]][i])
        cells = [Text(f"{first['rank'][i]}", style="dim"), Text(printable(str(first["feature"][i])))]
        cells += [
            Text(_number(float(first[name][i])), style="" if name == names[0] else "dim") for name in names
        ]
        if pvalue in first:
            cells.append(Text(_probability(float(first[pvalue][i])), style="dim"))
        if has_level:
            cells.append(Text(_evidence(float(first["evalue"][i])), style="dim"))
            low, high = float(first["effect_low"][i]), float(first["effect_high"][i])
            cells.append(Text(f"{_short(low)} - {_short(high)}", style="dim"))
            mark = "*" if console.options.ascii_only else "●"
            cells.append(Text(mark if first["selected"][i] else "", style="green"))
        share = min(score / most, 1.0)
        grid.add_row(*cells, Text(bar(share, sizes[-1], console.options.ascii_only), style="cyan"))
    console.print(Text(ranking.title, style="bold", no_wrap=True, overflow="ellipsis"))
    detail = f"{len(columns['rank']):,} columns, {ranking.detail}, {ranking.seconds:.1f} s"
    console.print(Text(detail, style="dim", no_wrap=True, overflow="ellipsis"))
    console.print()
    console.print(grid)
    if (more := len(columns["rank"]) - top) > 0:
        console.print(Text(f"      and {more:,} more", style="dim"))
    if empty := int((columns["n_observed"] == 0).sum()):
        console.print(Text(f"      {empty:,} column{'s' * (empty > 1)} without any value", style="dim"))
    if note := ranking.dependence_note():
        console.print(Text(f"      {note}", style="dim"))


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "inf"
    return f"{value:.4f}" if 1e-3 <= value < 1e4 or value == 0 else f"{value:.2e}"


def _short(value: float) -> str:
    if not math.isfinite(value):
        return "inf"
    return f"{value:.3g}" if 1e-3 <= value < 1e3 or value == 0 else f"{value:.0e}"


def _evidence(value: float) -> str:
    if value > 1e300:
        return ">1e300"
    return f"{value:.2f}" if value < 1e3 else f"{value:.0e}"


def _probability(value: float) -> str:
    if value < 1e-300:
        return "<1e-300"
    return f"{value:.3f}" if value >= 1e-3 else f"{value:.0e}"
