"""The section on a race of selectors: the selected candidate over time, accuracies, and the reason of each switch."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.evaluate import PrequentialResult
from tamis.report.charts.chart import Chart, Line, axis, limits
from tamis.report.page.cells import Table
from tamis.report.page.number_format import NAME_OF, count, fraction
from tamis.report.run.charts import line_chart, map_chart
from tamis.report.run.numbers import SelectionMap

__all__ = ["race"]

_LINES = 6  # maximum number of candidates in a chart
_SWITCHES = 20
_WHY = {
    "better": "significantly more accurate",
    "smaller": "as accurate, with fewer features",
    "drift": "concept drift",
}


def race(result: PrequentialResult) -> dict[str, Any]:
    """Return the values of the section."""
    course: dict[str, Any] = result.settings["comparison"]
    shares = {candidate: share for candidate, share in course["share"].items() if share > 0}
    return {
        "n_candidates": len(course["candidates"]),
        "shares": [(candidate, f"{share:.0%}") for candidate, share in list(shares.items())[:3]],
        "last": course["followed"][-1],
        "n_restarts": len(course["restarts"]),
        "verdict": _verdict(course),
        "charts": [_selected_candidates(result, course, list(shares)), _accuracy(result, course)],
        "table": _switches(course),
    }


def _verdict(course: dict[str, Any]) -> str:
    """Return a sentence that compares the final set with the best one."""
    candidate, behind, allowed = course["followed"][-1], course["behind"], course["allowed"]
    word, most = NAME_OF[course["measure"]].lower(), course["tolerance"]
    if candidate == "all":
        nearest = min((one for one in behind if one != "all"), key=lambda one: behind[one])
        return (
            f"Every feature is selected: the best smaller set, {nearest}, loses {behind[nearest]:.3f} of {word}; the"
            f" tolerance is {allowed[nearest]:.3f}."
        )
    best = min(behind, key=lambda one: behind[one])
    return (
        f"At the end, {candidate} loses {behind[candidate]:.3f} of {word} to the best set, {best}. For fewer"
        f" features, a loss of one standard error of the difference is tolerated, {most:g} at most."
    )


def _selected_candidates(result: PrequentialResult, course: dict[str, Any], candidates: list[str]) -> Chart:
    """Return the chart of the selected candidate over time, a row of pixels for each."""
    steps = result.frames["steps"]
    edges = np.linspace(float(steps["n_seen"][0] - steps["n_rows"][0]), float(steps["n_seen"][-1]), 201)
    at = np.searchsorted(np.asarray(course["n_seen"], np.float64), (edges[:-1] + edges[1:]) / 2)
    followed = np.array(course["followed"], dtype=object)[np.minimum(at, len(course["followed"]) - 1)]
    shares = np.array([(followed == candidate).astype(np.float64) for candidate in candidates])
    kept = np.array([course["share"][candidate] for candidate in candidates])
    selection = SelectionMap(np.arange(len(candidates)), candidates, kept, shares, None, len(candidates))
    return map_chart(result, selection, "who", "Selected candidate")


def _accuracy(result: PrequentialResult, course: dict[str, Any]) -> Chart:
    """Return the chart of the criterion of the race: recent accuracy of each selector's best candidate."""
    at = np.asarray(course["n_seen"], np.float64)
    best = {candidate.split(" ")[0]: candidate for candidate in reversed(course["accuracy"])}
    candidates = [candidate for candidate in course["accuracy"] if candidate in best.values()][:_LINES]
    lines = [
        Line(at, np.asarray(course["accuracy"][candidate]), candidate, style)
        for style, candidate in enumerate(candidates, start=1)
    ]
    late = at >= min(500.0, at[-1] / 2)  # the first rows are noisy, and would stretch the axis
    y = axis(*limits(*(line.y[late] for line in lines), within=(0, 1)))
    measure = NAME_OF[course.get("measure", "accuracy")]
    title = f"Recent {measure[:1].lower()}{measure[1:]} of the best candidate of each selector, with its own learner"
    return line_chart(result, "candidate", title, lines, y, shape="wide")


def _switches(course: dict[str, Any]) -> Table | None:
    """Return the last switches and the reason of each."""
    rows = [
        [
            count(one["row"]), one["from"], one["to"], fraction(1.0 - one["error_from"]),
            fraction(1.0 - one["error_to"]), _WHY[one["why"]],
        ]
        for one in course["switches"][-_SWITCHES:]
    ]  # fmt: skip
    if not rows:
        return None
    word = NAME_OF[course.get("measure", "accuracy")]
    columns = [
        ("n", "rows seen"), ("", "from"), ("", "to"), ("n", f"{word} of the previous"), ("n", "of the new one"),
        ("", "reason"),
    ]  # fmt: skip
    which = f"The last {len(rows)} of {course['n_switches']}" if course["n_switches"] > len(rows) else "All"
    note = "Measured with the candidates’ own learners on the most recent half of the rows, 2,000 at most."
    return Table(f"{which} switches", columns, rows, note)
