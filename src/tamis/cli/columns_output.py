"""Output of `tamis columns`: a table in the terminal, one JSON document, a report, a saved selector."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.cli.output import check_outputs, print_json, terminal

if TYPE_CHECKING:
    from tamis.cli.walk import Walk
    from tamis.report.columns.numbers import Course

__all__ = ["Output"]


@dataclass
class Output:
    """Output files of the result; each is checked before the first row is read."""

    top: int
    save: str | None
    report: str | None
    checkpoint: str | None
    as_json: bool
    quiet: bool

    def check(self, inputs: list[str], force: bool) -> None:
        """Reject paths that cannot be written, or contain something else."""
        files = {"--save": self.save, "--report": self.report, "--checkpoint": self.checkpoint}
        check_outputs(inputs, files, force=force)

    def finish(self, walk: Walk, error: str | None = None) -> None:
        """Print the result, and write it to the requested files."""
        from tamis.report.columns.numbers import course_of

        course, coefficients = course_of(walk.selector), walk.coefficients()
        if not self.as_json:
            _show(walk, course, coefficients, self.top)
        written = self._write(walk, coefficients, error)
        if self.as_json:
            print_json(_document(walk, course, coefficients, error, written))
        else:
            for name, place in written.items():
                print(f"The {name}: {place}")

    def _write(self, walk: Walk, coefficients: dict[str, float] | None, error: str | None) -> dict[str, str]:
        written = {}
        if self.save is not None:
            import tamis

            saved = {"selector": walk.selector, "recipes": walk.recipes(), "texts": walk.matter.texts}
            tamis.save(saved, self.save)
            written["selector"] = self.save
        if self.report is not None:
            from tamis.report.columns import write_report

            alert = f"Interrupted by: {error}" if error else ""
            if walk.ended == "interrupted":
                alert = "This search was interrupted: the page shows the results so far."
            write_report(
                walk.selector, self.report, walk.heading, note=_sentence(walk), alert=alert,
                coefficients=coefficients, speaks_for=walk.coefficient_note(), stages=walk.stages, seconds=walk.seconds,
                repeat=_repeat(walk),
            )  # fmt: skip
            written["report"] = self.report
        return written


def _sentence(walk: Walk) -> str:
    end = f"The search stopped: {walk.end_reason() or 'an error'}."
    notes = [walk.detail, *filter(None, [_dependence_note(walk)])]
    return " ".join([*(f"{note[0].upper()}{note[1:]}." for note in notes), end])


def _dependence_note(walk: Walk) -> str:
    """Return a note on how the tests treat autocorrelated rows; empty if rows are independent."""
    if not getattr(walk.selector, "rows_dependent_", False):
        return ""
    return "rows are autocorrelated: the tests use their effective number"


def _repeat(walk: Walk) -> dict[str, str]:
    """Return the lines that reproduce the result."""
    from tamis.report.page.rerun import file_words

    lines = {}
    words = file_words({**walk.source, "missing": "error"})
    if words is not None:
        for name, value in walk.settings.items():
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
        lines["In a shell"] = shlex.join(["tamis", "columns", *words, "--report", "report.html"])
    parts = ", ".join(_generator_call(name, walk) for name in walk.generating.names())
    seed = f", random_state={walk.generating.seed}" if walk.generating.shuffle else ""
    lines["In Python"] = "\n".join(
        [
            f"from tamis import {type(walk.selector).__name__}",
            "from tamis.columns.generators import Chain, explore, "
            + ", ".join(sorted(walk.generating.names())),
            "",
            "# X: a frame of the columns, y: the label" + _texts(walk),
            f"exploration = explore({walk.selector!r}, Chain({parts}{seed}), y)",
            "exploration.selector.selected_, exploration.transform(X)",
        ]
    )
    return lines


def _generator_call(name: str, walk: Walk) -> str:
    return f"{name}(X, {walk.generating.pca})" if name == "PrincipalComponents" else f"{name}(X)"


def _texts(walk: Walk) -> str:
    return '; text as pandas.get_dummies(frame, prefix_sep="=") makes it' if walk.matter.texts else ""


# -- what is shown -----------------------------------------------------------------------------------------


def _document(
    walk: Walk,
    course: Course,
    coefficients: dict[str, float] | None,
    error: str | None,
    written: dict[str, str],
) -> dict[str, Any]:
    records = course.records
    features = [
        {
            "name": str(records["name"][i]),
            "candidate": int(course.offer[i]),
            "p_value": float(records["p_value"][i]),
            "statistic": float(records["statistic"][i]),
            "threshold": float(records["threshold"][i]),
            "wealth": float(records["wealth"][i]),
            "coefficient": (coefficients or {}).get(str(records["name"][i])),
        }
        for i in course.kept.tolist()
    ]
    return {
        "stream": walk.source,
        "rule": walk.matter.rule.name,
        "model": walk.matter.model or None,
        "options": walk.settings,
        "selector": repr(walk.selector),
        "n_rows": len(walk.matter.y),
        "n_columns": walk.matter.columns.n_columns,
        "texts": walk.matter.texts,
        "n_offered": course.n_offered,
        "decisions": course.counts(),
        "selected": walk.selector.selected_,
        "features": features,
        "wealth": getattr(walk.selector, "wealth_", None),
        "classes": walk.selector.classes_.tolist() if hasattr(walk.selector, "classes_") else None,
        "seconds": walk.seconds,
        "ended": walk.ended or None,
        "written": written,
        "error": error,
    }


def _show(walk: Walk, course: Course, coefficients: dict[str, float] | None, top: int) -> None:
    """Print the accepted features, and the decisions about the others."""
    from rich.text import Text

    console = terminal()
    console.print(Text(walk.heading, style="bold", no_wrap=True, overflow="ellipsis"))
    console.print(Text(walk.detail, style="dim"))
    if note := _dependence_note(walk):
        console.print(Text(note, style="dim"))
    console.print()
    if len(course.kept):
        console.print(_grid(console, course, coefficients, top))
        if (more := len(course.kept) - top) > 0:
            console.print(Text(f"      and {more:,} more", style="dim"))
        console.print()
    for line in _summary_lines(walk, course, coefficients):
        console.print(line, markup=False)


def _grid(console: Any, course: Course, coefficients: dict[str, float] | None, top: int) -> Any:
    from rich.table import Table
    from rich.text import Text

    from tamis.terminal import printable

    first = course.kept[:top].tolist()
    figures: dict[str, list[str]] = {
        course.scale.evidence: [_figure(course, course.evidence[i]) for i in first],
        course.scale.bar: [_figure(course, course.bar[i]) for i in first],
    }
    if _is_any_finite(course.wealth[first]):
        figures["wealth"] = [f"{course.wealth[i]:.4f}" for i in first]
    if coefficients is not None:
        own = [coefficients.get(str(course.records["name"][i]), math.nan) for i in first]
        figures["coefficient"] = [f"{value:.4g}" if math.isfinite(value) else "-" for value in own]
    names = [printable(str(course.records["name"][i])) for i in first]
    widths = [max(len(head), *map(len, cells)) for head, cells in figures.items()]
    room = min(console.width, 100) - 6 - sum(widths) - 2 * len(widths)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=4, justify="right")
    grid.add_column(width=max(8, min(room, max(map(len, names)))), no_wrap=True, overflow="ellipsis")
    for width in widths:
        grid.add_column(width=width, justify="right", no_wrap=True)
    grid.add_row("", "", *(Text(head, style="dim") for head in figures))
    for place, cells in enumerate(zip(names, *figures.values(), strict=True), start=1):
        grid.add_row(Text(str(place), style="dim"), *map(Text, cells))
    return grid


def _is_any_finite(values: Any) -> bool:
    return bool((values == values).any())


def _figure(course: Course, value: float) -> str:
    """Return evidence or a threshold as plain text."""
    if not math.isfinite(value):
        return "-"
    if course.scale.sign > 0:
        return f"{10.0**value:.2f}" if course.scale.logarithmic else f"{value:.4f}"
    power = course.scale.sign * value
    if power < -300:
        return "<1e-300"
    number = 10.0**power
    return f"{number:.4f}" if 1e-3 <= number < 1e4 else f"{number:.0e}"


_WHY = {
    "rejected": "rejected for insufficient evidence",
    "redundant": "rejected as redundant",
    "constant": "constant",
    "collinear": "collinear with accepted ones",
    "full": "not tested",
}


def _summary_lines(walk: Walk, course: Course, coefficients: dict[str, float] | None) -> list[str]:
    counts = course.counts()
    parts = [f"{counts.get('accepted', 0):,} accepted"]
    if left := len(course.dropped()):
        parts[0] += f" ({left:,} of them dropped again)"
    counts["redundant"] = int(course.redundant().sum())
    counts["rejected"] = counts.get("rejected", 0) - counts["redundant"]
    parts += [f"{counts[name]:,} {why}" for name, why in _WHY.items() if counts.get(name)]
    plural = "s" * (course.n_offered != 1)
    lines = [f"{course.n_offered:,} candidate{plural} in {walk.seconds:.1f} s: {', '.join(parts)}."]
    imputed = int((course.records["n_missing"] > 0).sum())
    if imputed:
        lines.append(
            f"{imputed:,} of them had missing values, replaced by the mean of the others"
            " (--missing error rejects them)."
        )
    wealth = getattr(walk.selector, "wealth_", None)
    ended = f"Stopped: {walk.end_reason()}" if walk.ended else "Stopped by an error"
    lines.append(ended + (f"; wealth left {wealth:.4g}." if wealth is not None else "."))
    if coefficients and walk.coefficient_note():
        lines.append(walk.coefficient_note())
    return lines
