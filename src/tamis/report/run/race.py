"""The section on a race of selectors: the selected arm over time, accuracies, and the reason of each switch."""

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

_LINES = 6  # maximum number of arms in a chart
_SWITCHES = 20
_WHY = {
    "better": "significantly more accurate",
    "smaller": "as accurate, with fewer features",
    "drift": "concept drift",
}


def race(result: PrequentialResult) -> dict[str, Any]:
    """Return the values of the section."""
    course: dict[str, Any] = result.settings["race"]
    shares = {arm: share for arm, share in course["share"].items() if share > 0}
    return {
        "n_arms": len(course["arms"]),
        "shares": [(arm, f"{share:.0%}") for arm, share in list(shares.items())[:3]],
        "last": course["followed"][-1],
        "n_restarts": len(course["restarts"]),
        "verdict": _verdict(course),
        "charts": [_selected_arms(result, course, list(shares)), _accuracy(result, course)],
        "table": _switches(course),
    }


def _verdict(course: dict[str, Any]) -> str:
    """Return a sentence that compares the final set with the best one."""
    arm, behind, allowed = course["followed"][-1], course["behind"], course["allowed"]
    word, most = NAME_OF[course["measure"]].lower(), course["tolerance"]
    if arm == "all":
        nearest = min((one for one in behind if one != "all"), key=lambda one: behind[one])
        return (
            f"Every feature is selected: the best smaller set, {nearest}, loses {behind[nearest]:.3f} of {word}; the"
            f" tolerance is {allowed[nearest]:.3f}."
        )
    best = min(behind, key=lambda one: behind[one])
    return (
        f"At the end, {arm} loses {behind[arm]:.3f} of {word} to the best set, {best}. For fewer features, a loss of"
        f" one standard error of the difference is tolerated, {most:g} at most."
    )


def _selected_arms(result: PrequentialResult, course: dict[str, Any], arms: list[str]) -> Chart:
    """Return the chart of the selected arm over time, a row of pixels for each."""
    steps = result.frames["steps"]
    edges = np.linspace(float(steps["n_seen"][0] - steps["n_rows"][0]), float(steps["n_seen"][-1]), 201)
    at = np.searchsorted(np.asarray(course["n_seen"], np.float64), (edges[:-1] + edges[1:]) / 2)
    followed = np.array(course["followed"], dtype=object)[np.minimum(at, len(course["followed"]) - 1)]
    shares = np.array([(followed == arm).astype(np.float64) for arm in arms])
    kept = np.array([course["share"][arm] for arm in arms])
    selection = SelectionMap(np.arange(len(arms)), arms, kept, shares, None, len(arms))
    return map_chart(result, selection, "who", "Selected candidate")


def _accuracy(result: PrequentialResult, course: dict[str, Any]) -> Chart:
    """Return the chart of the criterion of the race: recent accuracy of each selector's best arm."""
    at = np.asarray(course["n_seen"], np.float64)
    best = {arm.split(" ")[0]: arm for arm in reversed(course["accuracy"])}
    arms = [arm for arm in course["accuracy"] if arm in best.values()][:_LINES]
    lines = [
        Line(at, np.asarray(course["accuracy"][arm]), arm, style) for style, arm in enumerate(arms, start=1)
    ]
    late = at >= min(500.0, at[-1] / 2)  # the first rows are noisy, and would stretch the axis
    y = axis(*limits(*(line.y[late] for line in lines), within=(0, 1)))
    measure = NAME_OF[course.get("measure", "accuracy")]
    title = f"Recent {measure[:1].lower()}{measure[1:]} of the best candidate of each selector, with its own learner"
    return line_chart(result, "arm", title, lines, y, shape="wide")


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
