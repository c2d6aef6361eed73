"""The report of a run: one self-contained HTML file without scripts.

Each function returns the values of one section; the text is in ``run/page.html.j2``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tamis.evaluate import PrequentialResult
from tamis.report.charts.thinning import bucket_starts
from tamis.report.page.cells import Cell, Meter, Names, Table
from tamis.report.page.document import InlinePage, Section, render_page, write_page
from tamis.report.page.number_format import count, duration, fraction, rate, scientific
from tamis.report.page.rerun import command_line, snippet, subject
from tamis.report.page.text import plural
from tamis.report.run import charts, numbers
from tamis.report.run.numbers import Change, is_known, last, mean
from tamis.report.run.race import race

__all__ = ["page", "write_report"]

Values = dict[str, Any]
_TABLE_ROWS = 20
_ORDERS = {
    "honest": ", each before any model was updated with it",
    "paper": ", each after the selector was updated with it (the order of the FIRES paper)",
}


def write_report(
    result: PrequentialResult, path: str | os.PathLike[str] | None = None, title: str | None = None
) -> Path | InlinePage:
    """Write a run's report: one HTML file of tens of kilobytes that opens offline.

    Parameters
    ----------
    result : PrequentialResult
        What :func:`tamis.prequential` returns.
    path : str or path, optional
        The file. An existing one is replaced atomically, or left unchanged on failure. Without a path the page is
        returned, and displayed by a notebook.
    title : str, optional
        Heading of the page; by default the names of selector, learner and data.

    Returns
    -------
    pathlib.Path or InlinePage
        The file, or the page.

    Raises
    ------
    ValueError
        If the file cannot be written; see :func:`check_writable`.

    Examples
    --------
    >>> import tempfile
    >>> from tamis import FIRES, load_dataset, prequential
    >>> result = prequential(load_dataset("electricity"), FIRES(n_features_to_select=4), max_rows=3000)
    >>> path = write_report(result, tempfile.mkdtemp() + "/report.html")
    >>> page = path.read_text(encoding="utf-8")
    >>> "<h1>FIRES on electricity</h1>" in page, "http:" in page, len(page) < 100_000
    (True, False, True)
    """
    return write_page(path, lambda: page(result, title))


def page(result: PrequentialResult, title: str | None = None) -> str:
    """Return the report of a run as HTML. It contains no date: the same run gives the same page."""
    sections = [
        Section(key, heading, values(result))
        for key, heading, values, is_shown in _SECTIONS
        if is_shown(result)
    ]
    return render_page("run/page.html.j2", title or subject(result.settings), _top(result), sections)


# -- above the sections ------------------------------------------------------------------------------------


def _top(result: PrequentialResult) -> Values:
    """Return the title of the run, its caveats, and the headline numbers."""
    steps = result.frames["steps"]
    n_steps = len(steps["step"])
    order = _ORDERS.get(result.options.protocol, "")
    if delay := result.options.delay:
        when = f"{plural(delay, 'row', 'rows')} after it" if isinstance(delay, int) else "by the label times"
        order = f", each before its label arrived, {when}"
    return {
        "n_steps": n_steps,
        "n_rows": int(np.sum(steps["n_rows"])),
        "order": order,
        "has_selection": bool(len(result.frames["changes"]["step"])),
        "is_interrupted": bool(result.settings.get("interrupted")),
        "dependence": result.dependence_note(),
        "threshold": result.threshold_note(),
        "remarks": result.remarks(),
        "tiles": _tiles(result) if n_steps else [],
    }


def _tiles(result: PrequentialResult) -> list[tuple[str, str, str]]:
    steps = result.frames["steps"]
    seconds, rows = float(np.nansum(steps["seconds_run"])), float(np.sum(steps["n_rows"]))
    low, high = last(result, "stability_low"), last(result, "stability_high")
    latest = f"latest {fraction(last(result, 'stability'))} (95 %: {fraction(low)} to {fraction(high)})"
    pace = rate(rows / seconds) if seconds > 0 else "–"
    return [
        *(_error_tiles(result) if _predicts_numbers(result) else _accuracy_tiles(result)),
        (
            "Mean stability",
            fraction(mean(result, "stability")),
            latest if np.isfinite(low) else "nothing to compare",
        ),
        ("Features selected", *_kept(steps["n_selected"], len(result.feature_names))),
        ("Rows per second", pace, f"{duration(seconds)} in all"),
    ]


def _error_tiles(result: PrequentialResult) -> list[tuple[str, str, str]]:
    r2 = "1 is perfect, 0 is the mean of all targets"
    return [
        (
            "Mean absolute error",
            scientific(last(result, "mae_cumulative")),
            _beside(result, "mae", scientific),
        ),
        ("R²", fraction(last(result, "r2_cumulative")), r2),
        *([_truth_tile(result)] if _knows_truth(result) else []),
    ]


def _ranking_tiles(result: PrequentialResult) -> list[tuple[str, str, str]]:
    """Return the measures that are more informative than accuracy for imbalanced classes."""
    share = 1.0 - last(result, "majority_accuracy_cumulative")
    recall = fraction(last(result, "recall_at_precision_cumulative"))
    return [
        (
            "Average precision",
            fraction(last(result, "average_precision_cumulative")),
            f"{fraction(share)} at random, the share of the rare class",
        ),
        ("AUC", fraction(last(result, "auc_cumulative")), _beside(result, "auc", fraction)),
        ("Recall", recall, "of the rare class, at a precision of 0.9"),
    ]


def _accuracy_tiles(result: PrequentialResult) -> list[tuple[str, str, str]]:
    if result.is_imbalanced:
        return [*_ranking_tiles(result), *([_truth_tile(result)] if _knows_truth(result) else [])]
    balanced = fraction(last(result, "balanced_accuracy_cumulative"))
    return [
        ("Accuracy", fraction(last(result, "accuracy_cumulative")), _beside(result, "accuracy", fraction)),
        ("Kappa", fraction(last(result, "kappa_cumulative")), "0 is chance, 1 is perfect"),
        _truth_tile(result)
        if _knows_truth(result)
        else ("Balanced accuracy", balanced, "mean over the classes"),
    ]


def _beside(result: PrequentialResult, measure: str, form: Callable[[float], str]) -> str:
    """Return the same measure for each baseline; those that select first."""
    ordered = sorted(charts.BASELINES, key=lambda one: one[0] not in ("frozen", "random", "all"))
    return ", ".join(
        f"{label} {form(last(result, column))}"
        for name, label, _, _ in ordered
        if is_known(result, column := f"{name}_{measure}_cumulative")
    )


def _truth_tile(result: PrequentialResult) -> tuple[str, str, str]:
    value, spared = (100 * mean(result, name) for name in ("rsr", "cucp"))
    note = f"{value:.0f} % of the relevant features selected, {spared:.0f} % of the others unselected"
    return "Selection accuracy", fraction(mean(result, "selection_accuracy")), note


def _kept(n_selected: numbers.Column, n_features: int) -> tuple[str, str]:
    low, high, end = int(n_selected.min()), int(n_selected.max()), int(n_selected[-1])
    note = "at every step" if low == high else f"at the end; {count(low)} to {count(high)} on the way"
    return f"{count(end)} of {count(n_features)}", note


# -- the sections ------------------------------------------------------------------------------------------


def _accuracy(result: PrequentialResult) -> Values:
    ranks = {
        "average precision": "average_precision_windowed", "AUC": "auc_windowed",
        "recall": "recall_at_precision_windowed",
    }  # fmt: skip
    columns = (ranks if result.is_imbalanced else {}) | {
        "accuracy, whole run": "accuracy_cumulative", charts.window_name(result): "accuracy_windowed",
        "kappa": "kappa_windowed", "balanced": "balanced_accuracy_windowed", "macro AUC": "macro_auc_windowed",
        "majority": "majority_accuracy_windowed", "no-change": "no_change_accuracy_windowed",
        "frozen": "frozen_accuracy_windowed", "random": "random_accuracy_windowed",
        "every feature": "all_accuracy_windowed", "stability": "stability",
    }  # fmt: skip
    optional = ("macro AUC", "frozen", "random", "every feature")
    pair = [charts.accuracy_chart(result), charts.quality_chart(result)]
    return {
        "charts": pair[::-1] if result.is_imbalanced else pair,
        "window": charts.window_name(result),
        "positive": repr(result.settings.get("positive")) * is_known(result, "average_precision_windowed"),
        "table": _course(result, {
            label: (column, fraction)
            for label, column in columns.items()
            if label not in optional or is_known(result, column)
        }),
        **_beside_selection(result, "accuracy", "random_spread_cumulative", fraction),
    }  # fmt: skip


def _errors(result: PrequentialResult) -> Values:
    columns: dict[str, tuple[str, Callable[[float], str]]] = {
        "error, whole run": ("mae_cumulative", scientific),
        charts.window_name(result): ("mae_windowed", scientific),
    }
    for name, label, _, _ in sorted(
        charts.BASELINES, key=lambda one: one[0] not in ("frozen", "random", "all")
    ):
        if is_known(result, column := f"{name}_mae_windowed"):
            columns[label] = (column, scientific)
    columns |= {"R²": ("r2_windowed", fraction), "stability": ("stability", fraction)}
    return {
        "charts": [charts.error_chart(result), charts.r2_chart(result)],
        "table": _course(result, columns),
        **_beside_selection(result, "mae", "random_spread_cumulative", scientific),
    }


def _beside_selection(
    result: PrequentialResult, measure: str, spread: str, form: Callable[[float], str]
) -> Values:
    """Return the sentences about the frozen selection, the random subsets and the scale."""
    deviation = last(result, spread)
    return {
        "frozen_after": result.options.frozen_after * is_known(result, f"frozen_{measure}_cumulative"),
        "has_random": is_known(result, f"random_{measure}_cumulative"),
        "n_draws": result.options.n_draws,
        "deviation": form(deviation) if np.isfinite(deviation) else "",
        "is_scaled": result.options.scale == "standard",
    }


def _course(result: PrequentialResult, columns: Mapping[str, tuple[str, Callable[[float], str]]]) -> Table:
    """Return the run over time as a table; `columns` maps each heading to a column and its number format."""
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
    note = "Entered and left are counted since the line above."
    return Table("The run over time", [("n", one) for one in head], rows, note)


def _stability(result: PrequentialResult) -> Values:
    window = result.options.stability_window
    said = f"the last {count(window)} selections" if isinstance(window, int) else "the latest selections"
    known = is_known(result, "stability")
    return {"selections": said, "chart": charts.stability_chart(result) if known else None}


def _truth(result: PrequentialResult) -> Values:
    drifts = numbers.drift_rows(result)
    rows = [[count(round(at))] for at in drifts]
    score, name = ("r2_windowed", "R²") if _predicts_numbers(result) else ("accuracy_windowed", "accuracy")
    for column in (score, "selection_accuracy") if rows else ():
        back = result.recovery(column)
        for row, drop, until in zip(rows, back.drops, back.rows, strict=True):
            row += [fraction(drop), count(round(until)) if np.isfinite(until) else "not recovered"]
    head = (
        "true drift at row", f"{name} fell by", "recovery (rows)", "selection fell by", "recovery (rows)",
    )  # fmt: skip
    note = (
        "Recovered: at most 0.05 below the median before the drift. The"
        f" {name} is windowed, so it falls and recovers with a delay of up to the length of the window."
    )
    table = Table("After each true drift", [("n", one) for one in head], rows, note)
    return {"chart": charts.truth_chart(result), "table": table if rows else None}


def _selection(result: PrequentialResult) -> Values:
    selection = numbers.selection_map(result)
    n_shown, n_features = len(selection.names), len(result.feature_names)
    which = (
        f"The {count(n_shown)} selected longest of" if n_shown < selection.n_ever else f"{count(n_shown)} of"
    )
    return {
        "which": "All" if n_shown == n_features else which,
        "n_features": n_features,
        "has_truth": selection.relevant is not None,
        "n_never": n_features - selection.n_ever,
        "chart": charts.map_chart(result, selection),
        "kept": numbers.last_selection(result),
    }


def _reasons(result: PrequentialResult) -> Values:
    left, kept = (numbers.reasons(result, 12, kept=whether) for whether in (False, True))
    top = max((value for one in (*left, *kept) for value in (one.alone, one.added)), default=0.0)
    if top <= 0.0:
        return {"tables": []}
    rows: dict[bool, list[list[Cell]]] = {
        whether: [
            [Names([one.name]), _meter(one.alone, top, 2), _meter(one.added, top, 1)] for one in reasons
        ]
        for whether, reasons in ((False, left), (True, kept))
    }
    for row, one in zip(rows[False], left, strict=True):
        row.append(Names([one.redundant_to] if one.redundant_to else []))
    head = [("", "feature"), ("share", "alone")]
    tables = [
        Table(
            "Unselected, most informative alone",
            [*head, ("share", "given the selected"), ("", "redundant to")],
            rows[False],
        ),
        Table("Selected, most informative alone", [*head, ("share", "added when selected")], rows[True]),
    ]
    return {"tables": tables if left else tables[1:]}


def _meter(value: float, top: float, colour: int) -> Meter:
    return Meter(96 * max(value, 0.0) / top, fraction(value), colour)


def _scores(result: PrequentialResult) -> Values:
    chart = charts.score_chart(result)
    return {"chart": chart, "n_lines": len(numbers.score_lines(result)[1])}


def _changes(result: PrequentialResult) -> Values:
    latest, largest = numbers.changes(result, 10), numbers.changes(result, 6, largest=True)
    if not latest:
        return {"tables": []}
    tables = [_changes_table("Latest changes", latest)]
    if largest[0].n_features > max(change.n_features for change in latest):
        tables.append(_changes_table("Largest changes", largest))
    return {
        "n_changed": len(np.unique(result.frames["changes"]["step"])) - 1,
        "n_steps": len(result.frames["steps"]["step"]),
        "chart": charts.change_chart(result),
        "tables": tables,
    }


def _changes_table(caption: str, changes: Sequence[Change]) -> Table:
    rows: list[list[Cell]] = [[count(one.n_seen), Names(one.entered), Names(one.left)] for one in changes]
    return Table(caption, [("n", "rows seen"), ("half", "entered"), ("half", "left")], rows)


def _costs(result: PrequentialResult) -> Values:
    parts = charts.timings(result)
    total = sum(float(np.nansum(seconds)) for _, seconds, _ in parts) or 1.0
    rows = list[list[Cell]]()
    for name, seconds, colour in parts:
        spent = float(np.nansum(seconds))
        share = 100 * spent / total
        slow = duration(float(np.nanpercentile(seconds, 95)))
        meter = Meter(share, f"{share:.0f} %", colour)
        rows.append([name, meter, duration(spent), duration(spent / len(seconds)), slow])
    head = [
        ("", "part"),
        ("share", "share"),
        ("n", "in all"),
        ("n", "mean per batch"),
        ("n extra", "slowest 5 % from"),
    ]
    drawn = [charts.time_chart(result), charts.memory_chart(result)]
    return {"table": Table("Time by stage", head, rows), "charts": [chart for chart in drawn if chart]}


def _repeat(result: PrequentialResult) -> Values:
    settings, line = result.settings, command_line(result.settings)
    own = {name: value for name, value in settings.items() if name != "comparison"}
    listing = json.dumps(own, indent=2, ensure_ascii=False, default=str)
    shell = {"In a shell": line} if line else {}
    return {
        "lines": {**shell, "In Python": snippet(settings)},
        "listings": {"All settings as JSON": listing},
    }


# -- which sections have something to show -----------------------------------------------------------------


def _predicts_numbers(result: PrequentialResult) -> bool:
    return "mae_cumulative" in result.frames["steps"]


def _knows_truth(result: PrequentialResult) -> bool:
    return is_known(result, "selection_accuracy")


def _is_tested(result: PrequentialResult) -> bool:
    return bool(len(result.frames["steps"]["step"]))


def _is_selected(result: PrequentialResult) -> bool:
    return _is_tested(result) and bool(len(result.frames["changes"]["step"]))


_SECTIONS: tuple[
    tuple[str, str, Callable[[PrequentialResult], Values], Callable[[PrequentialResult], bool]], ...
] = (
    ("accuracy", "Accuracy", _accuracy, lambda run: _is_tested(run) and not _predicts_numbers(run)),
    ("errors", "Errors", _errors, lambda run: _is_tested(run) and _predicts_numbers(run)),
    ("race", "Candidates", race, lambda run: _is_tested(run) and bool(run.settings.get("comparison"))),
    ("stability", "Stability", _stability, _is_selected),
    ("truth", "Selection and truth", _truth, lambda run: _is_tested(run) and _knows_truth(run)),
    ("selection", "Selection", _selection, _is_selected),
    (
        "reasons",
        "Relevance and redundancy",
        _reasons,
        lambda run: _is_selected(run) and "reasons" in run.frames,
    ),
    ("scores", "Scores", _scores, _is_selected),
    ("changes", "Changes", _changes, _is_selected),
    ("costs", "Time and memory", _costs, _is_tested),
    ("repeat", "Repeat this run", _repeat, lambda run: True),
)
