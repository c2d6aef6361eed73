"""The sections of the report, one function each: from a run to a piece of HTML."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.evaluate import PrequentialResult
from tamis.report.figures import svg
from tamis.report.figures.figure import limits
from tamis.report.figures.thinning import mean_per_bucket
from tamis.report.page.markup import names, notice, plural, repeat_lines, table, text, tiles
from tamis.report.page.number_format import count, duration, fraction, rate, scientific, size
from tamis.report.page.rerun import command_line, option, snippet
from tamis.report.run import numbers
from tamis.report.run.errors import course_of, error_tiles, errors, predicts_numbers
from tamis.report.run.figures import Series, change_bars, lines, map_of
from tamis.report.run.numbers import Change, Column
from tamis.report.run.race import has_race, race

__all__ = ["above", "lead", "sections"]

Section: TypeAlias = tuple[str, str, Callable[[PrequentialResult], str]]  # anchor, heading, content


def above(result: PrequentialResult) -> str:
    """Return what is to be known before the sections: what speaks against the run, and the headline numbers."""
    n_steps = len(result.frames["steps"]["step"])
    found = [text(remark) for remark in result.remarks()]
    if option(result.settings, "interrupted"):
        until = plural(n_steps, "batch", "batches")
        found.insert(0, f"<b>This run was interrupted.</b> The numbers are those of the {until} until then.")
    return "".join(map(notice, found)) + (_tiles(result) if n_steps else "")


def lead(result: PrequentialResult) -> str:
    """Return what was run, in a sentence."""
    steps = result.frames["steps"]
    if not len(steps["step"]):
        return "No batch was tested: the stream ended before there was one to predict."
    orders = {
        "honest": ", each before anything had learned from it",
        "paper": ", each after the selector had learned from it (the order of the FIRES paper)",
    }
    everything = (
        ""
        if len(result.frames["changes"]["step"])
        else " Nothing was selected: the learner had every feature."
    )
    order = orders.get(option(result.settings, "protocol"), "")
    if delay := option(result.settings, "delay", 0):
        when = f"{plural(delay, 'row', 'rows')} after it" if isinstance(delay, int) else "as the times tell"
        order = f", each before its label came, {when}"
    rows = plural(int(np.sum(steps["n_rows"])), "row was", "rows were")
    batches = plural(len(steps["step"]), "batch", "batches")
    return f"{rows} predicted in {batches}{order}.{everything}"


def _tiles(result: PrequentialResult) -> str:
    steps = result.frames["steps"]
    seconds, rows = float(np.nansum(steps["seconds_total"])), float(np.sum(steps["n_rows"]))
    low, high = _last(steps["stability_low"]), _last(steps["stability_high"])
    latest = f"latest {fraction(_last(steps['stability']))} (95 %: {fraction(low)} to {fraction(high)})"
    return tiles((
        *_judged_tiles(result),
        (
            "Mean stability",
            fraction(_mean(steps["stability"])),
            latest if np.isfinite(low) else "nothing to compare",
        ),
        ("Features kept", *_kept(steps["n_selected"], len(result.feature_names))),
        ("Rows per second", rate(rows / seconds) if seconds > 0 else "–", f"{duration(seconds)} in all"),
    ))  # fmt: skip


def _judged_tiles(result: PrequentialResult) -> list[tuple[str, str, str]]:
    steps = result.frames["steps"]
    if predicts_numbers(result):
        return [*error_tiles(steps), *([_truth_tile(steps)] if _knows_truth(result) else [])]
    return [
        ("Accuracy", fraction(_last(steps["accuracy_cumulative"])), _baselines(steps)),
        ("Kappa", fraction(_last(steps["kappa_cumulative"])), "0 is chance, 1 is perfect"),
        _truth_tile(steps) if _knows_truth(result) else _balanced_tile(steps),
    ]


def _baselines(steps: dict[str, Column]) -> str:
    told = [
        f"{label} {fraction(_last(steps[f'{name}_accuracy_cumulative']))}"
        for name, label in _BASELINES.items()
        if _is_known(steps, f"{name}_accuracy_cumulative")
    ]
    return ", ".join(told)


_BASELINES = {
    "random": "random subsets",
    "all": "every feature",
    "majority": "majority class",
    "no_change": "last label again",
}


def _is_known(steps: dict[str, Column], name: str) -> bool:
    return bool(np.isfinite(np.asarray(steps.get(name, np.empty(0)), np.float64)).any())


def _balanced_tile(steps: dict[str, Column]) -> tuple[str, str, str]:
    return (
        "Balanced accuracy",
        fraction(_last(steps["balanced_accuracy_cumulative"])),
        "mean over the classes",
    )


def _truth_tile(steps: dict[str, Column]) -> tuple[str, str, str]:
    found, spared = (100 * _mean(steps[name]) for name in ("rsr", "cucp"))
    note = f"{found:.0f} % of what is relevant kept, {spared:.0f} % of the rest left out"
    return "Selection accuracy", fraction(_mean(steps["selection_accuracy"])), note


def _knows_truth(result: PrequentialResult) -> bool:
    steps = result.frames["steps"]
    return bool(np.isfinite(steps.get("selection_accuracy", np.empty(0))).any())


def _last(values: Column) -> float:
    there = np.asarray(values, np.float64)
    there = there[np.isfinite(there)]
    return float(there[-1]) if len(there) else float("nan")


def _mean(values: Column) -> float:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else float("nan")


def _kept(n_selected: Column, n_features: int) -> tuple[str, str]:
    low, high, last = int(n_selected.min()), int(n_selected.max()), int(n_selected[-1])
    note = "at every step" if low == high else f"at the end; {count(low)} to {count(high)} on the way"
    return f"{count(last)} of {count(n_features)}", note


def accuracy(result: PrequentialResult) -> str:
    """Return how well the learner predicted with the features it was given."""
    steps, window = result.frames["steps"], _window(result)
    series = [
        Series(window, steps["accuracy_windowed"], "s1"),
        Series("whole run", steps["accuracy_cumulative"], "s2"),
        Series("majority class", steps["majority_accuracy_windowed"], "s6 thin"),
        Series("last label again", steps["no_change_accuracy_windowed"], "s5 thin"),
    ]
    for name, label, style in (("random", "random subsets", "s3"), ("all", "every feature", "s4 thin")):
        if _is_known(steps, f"{name}_accuracy_windowed"):
            series.append(Series(label, steps[f"{name}_accuracy_windowed"], style))
    y = svg.axis(*limits(*(one.values for one in series), within=(0, 1)))
    first = lines(result, "acc", "Accuracy", series, y)
    others = [
        Series("balanced accuracy", steps["balanced_accuracy_windowed"], "s4"),
        Series("kappa", steps["kappa_windowed"], "s3"),
    ]
    ranked = {"auc": ("AUC", "s1"), "average_precision": ("average precision", "s2"),
              "recall_at_precision": ("recall at precision 0.9", "s5")}  # fmt: skip
    for name, (label, style) in reversed(ranked.items()):
        if _is_known(steps, f"{name}_windowed"):
            others.insert(0, Series(label, steps[f"{name}_windowed"], style))
    if _is_known(steps, "random_auc_windowed"):
        others.append(Series("AUC of random subsets", steps["random_auc_windowed"], "s6 thin"))
    y = svg.axis(*limits(*(one.values for one in others), within=(-1, 1)))
    title = "Ranking, balanced accuracy and kappa" if len(others) > 2 else "Balanced accuracy and kappa"
    second = lines(result, "kap", title, others, y)
    return (
        "<p>How well the learner predicted each batch from the features kept at that time. Where the classes are of"
        f" unequal size, balanced accuracy and kappa, over the {window}, say more than accuracy. The most frequent"
        " class so far, or the last label again, can be told without any feature: the learner should do better."
        f"{_beside(result)}</p>"
        f'<div class="pair">{first}{second}</div>{_numbers(result)}'
    )


def _beside(result: PrequentialResult) -> str:
    """Return what stood beside the selection, and which class the ranking is of."""
    steps, said = result.frames["steps"], ""
    if _is_known(steps, "random_accuracy_cumulative"):
        n_draws, spread = option(result.settings, "n_draws", 1), _last(steps["random_spread_cumulative"])
        with_spread = f", standard deviation {fraction(spread)}" if np.isfinite(spread) else ""
        said = (
            " Random subsets are as many features, drawn blindly, for a copy of the same learner: the mean of"
            f" {plural(n_draws, 'draw', 'draws')}{with_spread}."
        )
    if _is_known(steps, "average_precision_windowed"):
        said += (
            f" Average precision, and recall at a precision of 0.9, are those of the rarer class,"
            f" {text(repr(option(result.settings, 'positive')))}."
        )
    if option(result.settings, "scale") == "standard":
        said += " The learner was given standardised columns."
    return said


def _window(result: PrequentialResult) -> str:
    window = option(result.settings, "window")
    return f"last {plural(window, 'row', 'rows')}" if isinstance(window, int) else "recent rows"


def _numbers(result: PrequentialResult) -> str:
    steps = result.frames["steps"]
    columns = {
        "accuracy, whole run": "accuracy_cumulative",
        _window(result): "accuracy_windowed",
        "kappa": "kappa_windowed",
        "balanced": "balanced_accuracy_windowed",
        "majority": "majority_accuracy_windowed",
        "last label": "no_change_accuracy_windowed",
        **{
            label: f"{name}_accuracy_windowed"
            for name, label in (("random", "random"), ("all", "every feature"))
            if _is_known(steps, f"{name}_accuracy_windowed")
        },
        "stability": "stability",
    }
    return course_of(result, {label: (column, fraction) for label, column in columns.items()})


def stability(result: PrequentialResult) -> str:
    """Return how alike the last selections were."""
    steps, window = result.frames["steps"], option(result.settings, "stability_window")
    line = Series("stability", steps["stability"], "s1")
    if not np.isfinite(line.values).any():
        return '<p class="note">No stability: it takes two selections that keep some features and leave others.</p>'
    band = (steps["stability_low"], steps["stability_high"])
    y = svg.axis(*limits(line.values, *band, within=(-1, 1)))
    said = f"the last {count(window)} selections" if isinstance(window, int) else "the latest selections"
    figure = lines(result, "sta", "Stability with its 95 % interval", [line], y, kind="wide", band=band)
    return (
        f"<p>How alike {said} are, by Nogueira's measure: 1 is the same set every time, 0 no more than sets drawn"
        f" at random.</p>{figure}"
    )


def truth(result: PrequentialResult) -> str:
    """Return how near the selection was to the features that are relevant in truth."""
    steps = result.frames["steps"]
    series = [
        Series("selection accuracy", steps["selection_accuracy"], "s1"),
        Series("of the relevant, kept (RSR)", steps["rsr"], "s3"),
        Series("of the rest, left out (CUCP)", steps["cucp"], "s4"),
    ]
    y = svg.axis(*limits(*(one.values for one in series), within=(0, 1)))
    return (
        "<p>The relevant features of this stream are known at every row. Selection accuracy weighs the share of them"
        " that was kept (0.7) and the share of the others that was left out (0.3): to keep nothing has 0.3, everything"
        f" 0.7.</p>{lines(result, 'tru', 'Selection accuracy', series, y, kind='wide')}{_drift_table(result)}"
    )


def _drift_table(result: PrequentialResult) -> str:
    drifts = numbers.drift_rows(result)
    if not len(drifts):
        return ""
    rows = [[count(round(at))] for at in drifts]
    judged = "r2_windowed" if predicts_numbers(result) else "accuracy_windowed"
    name = "R²" if predicts_numbers(result) else "accuracy"
    for column in (judged, "selection_accuracy"):
        back = result.recovery(column)
        for row, drop, until in zip(rows, back.drops, back.rows, strict=True):
            row += [fraction(drop), count(round(until)) if np.isfinite(until) else "not back"]
    head = (
        "true drift at row",
        f"{name} fell by",
        "back after rows",
        "selection fell by",
        "back after rows",
    )
    note = (
        '<p class="note">Back: not more than 0.05 below the median before the drift; the last rows make the '
        f"{name}, so it falls and returns late by as many.</p>"
    )
    return table("After each true drift", head, rows, ["n"] * len(head)) + note


def selection(result: PrequentialResult) -> str:
    """Return the map of features by time, and what was kept in the end."""
    shown = numbers.selection_map(result)
    n_shown, n_features = len(shown.names), len(result.feature_names)
    which = f"The {count(n_shown)} kept longest of" if n_shown < shown.n_ever else f"{count(n_shown)} of"
    which = "All" if n_shown == n_features else which
    never = n_features - shown.n_ever
    unused = f" {count(never)} {'was' if never == 1 else 'were'} never kept." if never else ""
    first = (
        "the one kept longest on top" if shown.relevant is None else "those that were ever relevant on top"
    )
    return (
        f"<p>{which} {plural(n_features, 'feature', 'features')}, {first}. Colour says when"
        " a feature was kept (paler: some of the time), the number at the right for how much of the run."
        f"{unused}</p>{map_of(result, shown)}"
        f"<h3>Kept at the end</h3><p>{names(numbers.last_selection(result), 60)}</p>"
    )


def reasons(result: PrequentialResult) -> str:
    """Return why features are kept, and why others are not."""
    left, kept = (numbers.reasons(result, 12, kept=whether) for whether in (False, True))
    top = max((one.alone for one in (*left, *kept)), default=0.0)
    top = max([top, *(one.added for one in (*left, *kept))])
    if top <= 0.0:
        return '<p class="note">No feature tells anything of the target yet.</p>'
    head = ("feature", "alone", "beside those kept", "redundant to")
    rows = [
        [
            names([one.name]),
            _bar(one.alone, top, 2),
            _bar(one.added, top, 1),
            names([one.redundant_to] if one.redundant_to else []),
        ]
        for one in left
    ]
    others = [[names([one.name]), _bar(one.alone, top, 2), _bar(one.added, top, 1)] for one in kept]
    kinds = ["", "share", "share", ""]
    tables = table("Left out, though they tell most alone", head, rows, kinds) if rows else ""
    tables += table(
        "Kept, of those that tell most alone", (*head[:2], "added when chosen"), others, kinds[:3]
    )
    return (
        "<p>Which share of the target's variation a feature explains, at the end of the run: by itself, and beside"
        " the features that are kept. A feature that tells much alone and adds little is left out because a kept one"
        " tells the same: the last column names the one that took most of it. The shares are cautious while the"
        f" rows are few.</p>{tables}"
    )


def _bar(value: float, top: float, colour: int) -> str:
    width = 96 * max(value, 0.0) / top
    return f'<span aria-hidden="true"><i class="k{colour}" style="width:{width:.1f}%"></i></span>{fraction(value)}'


def scores(result: PrequentialResult) -> str:
    """Return the scores of the leading features over time."""
    at, leaders = numbers.score_lines(result)
    if not leaders:
        return '<p class="note">No scores: the selector has none, or none were tracked.</p>'
    series = [
        Series(line.name, line.scores, f"s{i}", f' <span class="unit">{scientific(line.last)}</span>')
        for i, line in enumerate(leaders, start=1)
    ]
    y = svg.axis(*limits(*(one.values for one in series)))
    few = f"{len(leaders)} features" if len(leaders) > 1 else "feature"
    return (
        f"<p>The {few} that ranked highest over the run, in the order of the last score, which the legend tells."
        " Larger is more relevant. A line pauses while its feature is not among those tracked.</p>"
        f"{lines(result, 'sco', 'Score', series, y, kind='wide', at=at)}"
    )


def changes(result: PrequentialResult) -> str:
    """Return when the selected set changed, and which features came and went."""
    latest, largest = numbers.changes(result, 10), numbers.changes(result, 6, largest=True)
    if not latest:
        return '<p class="note">The selected set never changed.</p>'
    n_changed = len(np.unique(result.frames["changes"]["step"])) - 1
    tables = _changes_table("Latest changes", latest)
    if largest[0].n_features > max(change.n_features for change in latest):
        other = _changes_table("Largest changes", largest)
        tables = f'<div class="pair"><div>{tables}</div><div>{other}</div></div>'
    of = plural(len(result.frames["steps"]["step"]), "step", "steps")
    said = f"<p>After the first selection, the set changed at {count(n_changed)} of {of}.</p>"
    return f"{said}{change_bars(result)}{tables}"


def _changes_table(caption: str, rows: Sequence[Change]) -> str:
    cells = [[count(change.n_seen), names(change.entered), names(change.left)] for change in rows]
    return table(caption, ("rows seen", "entered", "left"), cells, ["n", "half", "half"])


def costs(result: PrequentialResult) -> str:
    """Return where the time went, and the memory."""
    steps = result.frames["steps"]
    parts = [
        ("selector", steps["seconds_select"], 1),
        ("prediction", steps["seconds_predict"], 2),
        ("learner", steps["seconds_learn"], 3),
    ]
    # Single batches vary with whatever else the machine does, so each point is a mean.
    milliseconds = [Series(name, 1e3 * mean_per_bucket(s, 100), f"s{i}") for name, s, i in parts]
    at = mean_per_bucket(steps["n_seen"], 100)
    y = svg.axis(0, limits(*(one.values for one in milliseconds))[1], unit="milliseconds")
    figures = lines(result, "tim", "Time per batch", milliseconds, y, at=at)
    memory = np.asarray(steps["memory_bytes"], np.float64)
    if memory.max() > 0:  # 0: the system does not tell
        y = svg.axis(0, limits(memory)[1], 5, size)
        figures += lines(result, "mem", "Memory of the process", [Series("memory", memory, "s1")], y)
    rest = steps["seconds_total"] - sum(seconds for _, seconds, _ in parts)
    parts.append(("the rest (reading, scoring)", np.maximum(rest, 0), 6))
    return f'{_time_table(parts)}<div class="pair">{figures}</div>'


def _time_table(parts: Sequence[tuple[str, NDArray[np.float64], int]]) -> str:
    total = sum(float(np.nansum(seconds)) for _, seconds, _ in parts) or 1.0
    rows = []
    for name, seconds, colour in parts:
        spent = float(np.nansum(seconds))
        percent = 100 * spent / total
        bar = f'<span aria-hidden="true"><i class="k{colour}" style="width:{percent:.1f}%"></i></span>'
        slow = duration(float(np.nanpercentile(seconds, 95)))
        rows.append([name, f"{bar}{percent:.0f} %", duration(spent), duration(spent / len(seconds)), slow])
    head = ("part", "share", "in all", "mean per batch", "slowest 5 % from")
    return table("Where the time went", head, rows, ["", "share", "n", "n", "n extra"])


def repeat(result: PrequentialResult) -> str:
    """Return what it takes to run the same again."""
    settings, line = result.settings, command_line(result.settings)
    shell = {"In a shell": line} if line else {}
    own = {name: value for name, value in settings.items() if name != "race"}
    listing = json.dumps(own, indent=2, ensure_ascii=False, default=str)
    return repeat_lines({**shell, "In Python": snippet(settings)}, {"All settings as JSON": listing})


_SECTIONS: tuple[Section, ...] = (
    ("accuracy", "Accuracy", accuracy),
    ("errors", "Errors", errors),
    ("race", "The race", race),
    ("stability", "Stability", stability),
    ("truth", "Selection and truth", truth),
    ("selection", "Selection", selection),
    ("reasons", "Why, and why not", reasons),
    ("scores", "Scores", scores),
    ("changes", "Changes", changes),
    ("costs", "Time and memory", costs),
    ("repeat", "Repeat this run", repeat),
)


def sections(result: PrequentialResult) -> list[Section]:
    """Return the sections that have something to show."""
    tested = bool(len(result.frames["steps"]["step"]))
    selected = tested and bool(len(result.frames["changes"]["step"]))
    about = {
        "accuracy": tested and not predicts_numbers(result), "errors": tested and predicts_numbers(result),
        "truth": tested and _knows_truth(result), "costs": tested, "repeat": True,
        "race": tested and has_race(result), "reasons": selected and "reasons" in result.frames,
    }  # fmt: skip
    return [section for section in _SECTIONS if about.get(section[0], selected)]
