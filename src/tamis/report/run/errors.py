"""What the report says of a run that predicts numbers: how far the predictions were from the targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tamis.evaluate import PrequentialResult
from tamis.report.figures import svg
from tamis.report.figures.figure import limits
from tamis.report.figures.thinning import bucket_starts
from tamis.report.page.markup import plural, table
from tamis.report.page.number_format import count, fraction, scientific
from tamis.report.page.rerun import option
from tamis.report.run.figures import Series, lines
from tamis.report.run.numbers import Column

__all__ = ["course_of", "error_tiles", "errors", "predicts_numbers"]

_TABLE_ROWS = 20
_BASELINES = {
    "random": ("random subsets", "s3"), "all": ("every feature", "s4 thin"), "mean": ("mean so far", "s6 thin"),
    "last": ("last target again", "s5 thin"),
}  # fmt: skip


def predicts_numbers(result: PrequentialResult) -> bool:
    """Return whether the run predicted numbers, not classes."""
    return "mae_cumulative" in result.frames["steps"]


def error_tiles(steps: dict[str, Column]) -> list[tuple[str, str, str]]:
    """Return the headline numbers: each with its name, and what it is to be compared with."""
    told = [
        f"{label} {scientific(steps[f'{name}_mae_cumulative'][-1])}"
        for name, (label, _) in _BASELINES.items()
        if _is_known(steps, name)
    ]
    return [
        ("Mean absolute error", scientific(steps["mae_cumulative"][-1]), ", ".join(told)),
        ("R²", fraction(steps["r2_cumulative"][-1]), "1 is perfect, 0 is the mean of all targets"),
    ]


def errors(result: PrequentialResult) -> str:
    """Return how far the predictions were from the targets, with the features that the learner was given."""
    steps, window = result.frames["steps"], option(result.settings, "window")
    recent = f"last {plural(window, 'row', 'rows')}" if isinstance(window, int) else "recent rows"
    series = [Series(recent, steps["mae_windowed"], "s1"), Series("whole run", steps["mae_cumulative"], "s2")]
    for name, (label, style) in _BASELINES.items():
        if _is_known(steps, name):
            series.append(Series(label, steps[f"{name}_mae_windowed"], style))
    y = svg.axis(*limits(*(one.values for one in series), within=(0, np.inf)))
    first = lines(result, "mae", "Mean absolute error", series, y)
    told = [Series(recent, steps["r2_windowed"], "s1"), Series("whole run", steps["r2_cumulative"], "s2")]
    second = lines(
        result, "rsq", "R²", told, svg.axis(*limits(*(one.values for one in told), within=(-1, 1)))
    )
    columns: dict[str, tuple[str, Callable[[float], str]]] = {
        "error, whole run": ("mae_cumulative", scientific),
        recent: ("mae_windowed", scientific),
        **{
            label: (f"{name}_mae_windowed", scientific)
            for name, (label, _) in _BASELINES.items()
            if _is_known(steps, name)
        },
        "R²": ("r2_windowed", fraction),
        "stability": ("stability", fraction),
    }
    return (
        "<p>How far the learner's predictions of each batch were from the targets, from the features kept at that time;"
        " the mean absolute error is in the units of the target. The mean of all targets so far, or the last target"
        f" again, can be told without any feature: the learner should be nearer.{_beside(result)}</p>"
        f'<div class="pair">{first}{second}</div>{course_of(result, columns)}'
    )


def _beside(result: PrequentialResult) -> str:
    """Return what stood beside the selection."""
    steps, said = result.frames["steps"], ""
    if _is_known(steps, "random"):
        n_draws, spread = option(result.settings, "n_draws", 1), float(steps["random_spread_cumulative"][-1])
        with_spread = f", standard deviation {scientific(spread)}" if np.isfinite(spread) else ""
        said = (
            " Random subsets are as many features, drawn blindly, for a copy of the same learner: the mean of"
            f" {plural(n_draws, 'draw', 'draws')}{with_spread}."
        )
    if option(result.settings, "scale") == "standard":
        said += " The learner was given standardised columns and targets."
    return said


def _is_known(steps: dict[str, Column], name: str) -> bool:
    return bool(np.isfinite(np.asarray(steps[f"{name}_mae_cumulative"], np.float64)).any())


def course_of(result: PrequentialResult, columns: Mapping[str, tuple[str, Callable[[float], str]]]) -> str:
    """Return the course of a run as a table: of each heading, the column and how its numbers are written."""
    steps = result.frames["steps"]
    starts = bucket_starts(len(steps["step"]), _TABLE_ROWS)
    ends = np.append(starts[1:], len(steps["step"])) - 1
    rows = [
        [
            count(steps["n_seen"][end]),
            *(written(steps[column][end]) for column, written in columns.values()),
            count(steps["n_selected"][end]),
            *(count(np.sum(steps[column][start : end + 1])) for column in ("n_entered", "n_left")),
        ]
        for start, end in zip(starts, ends, strict=True)
    ]
    head = ("rows seen", *columns, "kept", "entered", "left")
    listing = table("The course of the run", head, rows, ["n"] * len(head))
    note = '<p class="note">Entered and left are counted since the line above.</p>'
    return f"<details><summary>The numbers as a table</summary>{listing}{note}</details>"
