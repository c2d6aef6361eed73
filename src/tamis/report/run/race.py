"""The section on a race of selectors: which arm was followed when, how well each did, and why it changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.evaluate import PrequentialResult
from tamis.report.figures import svg
from tamis.report.figures.figure import limits
from tamis.report.page.markup import plural, table, text
from tamis.report.page.number_format import NAME_OF, count, fraction
from tamis.report.run.figures import Series, bare_map, lines
from tamis.report.run.numbers import SelectionMap

__all__ = ["has_race", "race"]

_LINES = 6  # arms drawn
_SWITCHES = 20
_WHY = {"lead": "it had come to lead", "drift": "the stream drifted", "net": "the leader had lost too much"}


def has_race(result: PrequentialResult) -> bool:
    """Return whether the selector raced several."""
    return bool(result.settings.get("race"))


def race(result: PrequentialResult) -> str:
    """Return which arm was followed when, and why."""
    told: dict[str, Any] = result.settings["race"]
    shares = {arm: share for arm, share in told["share"].items() if share > 0}
    longest = list(shares)
    head = ", ".join(f"{text(arm)} for {share:.0%}" for arm, share in list(shares.items())[:3])
    restarts = len(told["restarts"])
    anew = f" The learners restarted {plural(restarts, 'time', 'times')}." if restarts else ""
    said = (
        f"<p>{plural(len(told['arms']), 'arm was', 'arms were')} raced: selectors at several sizes, each with a learner"
        f" of its own. Of the rows, {head} {'were' if len(shares) > 1 else 'was'} followed; at the end"
        f" {text(told['followed'][-1])}.{anew} The switching rule expects at most"
        f" {count(told['regret_bound'])} errors more than the best single arm made.</p>"
    )
    return said + _map(result, told, longest) + _accuracy(result, told) + _switches(told)


def _map(result: PrequentialResult, told: dict[str, Any], arms: list[str]) -> str:
    """Return a row of pixels for each arm that was followed."""
    steps = result.frames["steps"]
    edges = np.linspace(float(steps["n_seen"][0] - steps["n_rows"][0]), float(steps["n_seen"][-1]), 201)
    at = np.searchsorted(np.asarray(told["n_seen"], np.float64), (edges[:-1] + edges[1:]) / 2)
    followed = np.array(told["followed"], dtype=object)[np.minimum(at, len(told["followed"]) - 1)]
    shares = np.array([(followed == arm).astype(np.float64) for arm in arms])
    kept = np.array([told["share"][arm] for arm in arms])
    shown = SelectionMap(np.arange(len(arms)), arms, kept, shares, None, len(arms))
    content = bare_map("who", result, shown, 26 if len(arms) <= 12 else 17)
    return f"<figure><figcaption><b>Arm followed</b> by rows seen</figcaption>{content}</figure>"


def _accuracy(result: PrequentialResult, told: dict[str, Any]) -> str:
    """Return the accuracy of the best arm of each selector lately, and of every column: what the race decides by."""
    at = np.asarray(told["n_seen"], np.float64)
    best = {arm.split(" ")[0]: arm for arm in reversed(told["accuracy"])}
    shown = [arm for arm in told["accuracy"] if arm in best.values()][:_LINES]
    series = [
        Series(arm, np.asarray(told["accuracy"][arm]), f"s{number}")
        for number, arm in enumerate(shown, start=1)
    ]
    late = at >= min(500.0, at[-1] / 2)  # the first rows say little, and would stretch the axis
    y = svg.axis(*limits(*(one.values[late] for one in series), within=(0, 1)))
    title = f"{NAME_OF[told.get('measure', 'accuracy')]} lately of the best arm of each selector, by its own learner"
    return lines(result, "arm", title, series, y, kind="wide", at=at)


def _switches(told: dict[str, Any]) -> str:
    """Return the last switches, and why each was made."""
    rows = [
        [
            count(one["row"]),
            text(one["from"]),
            text(one["to"]),
            fraction(1.0 - one["error_from"]),
            fraction(1.0 - one["error_to"]),
            _WHY[one["why"]],
        ]
        for one in told["switches"][-_SWITCHES:]
    ]
    if not rows:
        return '<p class="note">The arm was never changed.</p>'
    word = NAME_OF[told.get("measure", "accuracy")]
    head = ("rows seen", "from", "to", f"{word} of the one left", "of the new one", "why")
    shown = f"The last {len(rows)} of {told['n_switches']}" if told["n_switches"] > len(rows) else "All"
    note = '<p class="note">Of the arms’ own learners lately: rows fade over half of those so far, 2,000 at most.</p>'
    return table(f"{shown} changes of the arm", head, rows, ["n", "", "", "n", "n", ""]) + note
