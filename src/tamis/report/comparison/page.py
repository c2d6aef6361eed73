"""The page of a comparison: tables, critical-difference diagrams, curves, maps, and which cells failed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tamis.evaluate import ExperimentResult
from tamis.evaluate.experiment.score_table import ScoreTable, Significance
from tamis.report.comparison.charts import curves_chart, map_charts, scores_chart
from tamis.report.comparison.numbers import drifts_of, mean_curves, selection_maps
from tamis.report.page.cells import Cell, Names, Score, Table
from tamis.report.page.document import InlinePage, Section, render_page, write_page
from tamis.report.page.number_format import MISSING, count, duration, fraction, size
from tamis.report.page.rerun import snippet
from tamis.report.page.text import plural, shorten
from tamis.report.ranks import draw_ranks

__all__ = ["comparison_page", "write_comparison"]

Values = dict[str, Any]
_Format = Callable[[float], str]
_TABLES: tuple[tuple[str, str, _Format], ...] = (
    ("accuracy", "Accuracy", fraction),
    ("kappa_t", "Kappa-temporal: 0 is the no-change baseline, 1 is perfect", fraction),
    (
        "frozen_accuracy",
        "Accuracy on the same number of features, selected once from the first rows (L1)",
        fraction,
    ),
    ("random_accuracy", "Accuracy on random subsets of the same size, mean of the draws", fraction),
    ("all_accuracy", "Accuracy on every feature", fraction),
    ("auc", "AUC, for two classes", fraction),
    ("frozen_auc", "AUC on the same number of features, selected once from the first rows (L1)", fraction),
    ("random_auc", "AUC on random subsets of the same size, mean of the draws", fraction),
    ("macro_auc", "Macro AUC: one-vs-rest, for three classes or more", fraction),
    ("average_precision", "Average precision of the rarer class", fraction),
    ("recall_at_precision", "Recall of the rarer class at a precision of 0.9", fraction),
    ("selection_accuracy", "Selection accuracy: 0.7 recall + 0.3 specificity", fraction),
    ("rsr", "Recall: share of the relevant features that are selected", fraction),
    ("cucp", "Specificity: share of the irrelevant features that are not selected", fraction),
    ("stability", "Stability of the selected sets (Nogueira)", fraction),
    ("recovery_rows", "Rows until the accuracy recovers after a drift", count),
    ("seconds", "Seconds of a run", fraction),
    ("model_bytes", "Size of the arrays of selector and learner", size),
)
_RANKED = (
    ("average_precision", "average precision"), ("accuracy", "accuracy"),
    ("selection_accuracy", "selection accuracy"), ("stability", "stability"),
)  # fmt: skip
_RANKING = ("average_precision", "auc", "frozen_auc", "random_auc", "recall_at_precision")
_FEW = 5  # streams: too few for a test below that
# Not of the methods.
_BASELINE_METRICS = ("frozen_accuracy", "random_accuracy", "all_accuracy", "frozen_auc", "random_auc")
_BASELINES = {"accuracy": (("majority_accuracy", "majority"), ("no_change_accuracy", "no change"))}


def write_comparison(
    result: ExperimentResult,
    path: str | os.PathLike[str] | None,
    title: str | None = None,
    repeat: dict[str, str] | None = None,
) -> Path | InlinePage:
    """Write the report of an experiment: one HTML file that opens offline.

    Parameters
    ----------
    result : ExperimentResult
        What :func:`tamis.run_experiment` returns.
    path : str or path
        The file. An existing one is replaced atomically, or left unchanged on failure.
    title : str, optional
        Heading of the page.
    repeat : dict of str to str, optional
        Lines that reproduce the experiment, by where they are run (shell, Python).

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ValueError
        If the file cannot be written.
    """
    return write_page(path, lambda: comparison_page(result, title, repeat))


def comparison_page(
    result: ExperimentResult, title: str | None = None, repeat: dict[str, str] | None = None
) -> str:
    """Return the report as HTML."""
    streams = plural(len(result.streams), "stream", "streams")
    heading = f"{plural(len(result.methods), 'method', 'methods')} on {streams}"
    sections = [Section(key, label, values(result)) for key, label, values in _SECTIONS]
    sections = [section for section in sections if section.values is not None]
    sections.append(Section("repeat", "Repeat this run", _repeat(result, repeat or {})))
    return render_page("comparison/page.html.j2", title or heading, _top(result), sections)


def _top(result: ExperimentResult) -> Values:
    cells = result.cells
    n_seeds = len(set(cells["seed"].tolist()))
    rows, seconds = (float(np.nansum(cells.get(one, np.zeros(1)))) for one in ("n_rows", "seconds"))
    n_failed, n_missing = (int(np.sum(cells["status"] == status)) for status in ("failed", "missing"))
    lost = [
        plural(n, f"cell {verb}", f"cells {verbs}")
        for n, verb, verbs in ((n_failed, "failed", "failed"), (n_missing, "is missing", "are missing"))
        if n
    ]
    return {
        "n_seeds": n_seeds,
        "oracles": result.oracles,
        "keep_all": result.keep_all if "selection_accuracy" in result.metrics else [],
        "lost": " and ".join(lost),
        "behind": {
            "a selection frozen after the first rows (L1)": result.no_better_than_frozen(),
            "random subsets of the same size": result.no_better_than_random(),
        },
        "tiles": [
            ("Streams", f"{len(result.streams)}", ""), ("Methods", f"{len(result.methods)}", ""),
            ("Seeds", f"{n_seeds}", ""),
            ("Runs", count(int(np.sum(cells["status"] == "done"))), f"of {len(cells['key']):,}"),
            ("Rows predicted", count(rows), "in all runs"),
            ("Time of the runs", duration(seconds), "one after the other"),
        ],
    }  # fmt: skip


def _glance(result: ExperimentResult) -> Values | None:
    if (scores := _scores(result, result.measure)) is None:
        return None
    majority = np.full(len(scores.streams), np.nan)
    if "majority_accuracy" in result.metrics:
        means = result.table("majority_accuracy").mean
        majority = np.array([_finite_mean(row) for row in means])
    if scores.metric == "average_precision":  # of a random ranking
        majority = 1.0 - majority
    return {"has_more": len(scores.methods) > 6, "chart": scores_chart("gla", scores, majority)}


def _scores(result: ExperimentResult, metric: str) -> ScoreTable | None:
    """Return the table of a metric that has a value."""
    if metric not in result.metrics:
        return None
    scores = result.table(metric)
    return scores if np.isfinite(scores.mean).any() else None


def _finite_mean(values: Any) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def _tables(result: ExperimentResult) -> Values | None:
    # For a rare class, ranking metrics come first.
    place = {metric: at for at, metric in enumerate(_RANKING if result.imbalanced else ())}
    ordered = sorted(_TABLES, key=lambda one: place.get(one[0], len(place)))
    known = [(_scores(result, metric), caption, form) for metric, caption, form in ordered]
    tables = [_table(result, scores, caption, form) for scores, caption, form in known if scores is not None]
    return {"tables": tables} if tables else None


def _table(result: ExperimentResult, scores: ScoreTable, caption: str, form: _Format) -> Table:
    baselines, rows = _BASELINES.get(scores.metric, ()), list[list[Cell]]()
    for i, stream in enumerate(scores.streams):
        cells = [_cell(scores, i, j, form) for j in range(len(scores.methods))]
        means = (_finite_mean(result.table(key).mean[i]) for key, _ in baselines)  # the same for all methods
        rows.append([Names([stream]), *cells, *map(form, means)])
    if scores.metric not in _BASELINE_METRICS and (ranks := scores.mean_ranks()):
        row = [f"{ranks[one]:.2f}" if one in ranks else MISSING for one in scores.methods]
        rows.append([Score("mean rank", is_aside=True), *row, *([""] * len(baselines))])
    asides = (Score(label, is_aside=True) for _, label in baselines)
    head: list[Cell] = [*(Names([method]) for method in scores.methods), *asides]
    return Table(caption, [("", "stream"), *(("n", one) for one in head)], rows)


def _cell(scores: ScoreTable, i: int, j: int, form: _Format) -> Score:
    deviation = float(scores.deviation[i, j])
    is_best = bool(scores.best[i, j]) and scores.metric not in _BASELINE_METRICS
    return Score(form(float(scores.mean[i, j])), "" if math.isnan(deviation) else form(deviation), is_best)


def _ranks(result: ExperimentResult) -> Values | None:
    parts = []
    for metric, label in _RANKED:
        if metric not in result.metrics or (metric == "average_precision" and metric != result.measure):
            continue
        try:
            tests = result.compare(metric)
        except ValueError:
            continue
        diagram = draw_ranks(tests.nemenyi)
        parts.append({"label": label, "tests": tests, "diagram": diagram, "verdict": _verdict(tests)})
    return {"parts": parts} if parts else None


def _verdict(tests: Significance) -> str:
    p, alpha, n = tests.friedman.p, tests.nemenyi.alpha, len(tests.streams)
    if tests.friedman.is_underpowered(alpha):
        least = f"p cannot be below {tests.friedman.least_p_value:.3f}"
        return f"{n} streams are too few to test whether the methods differ: for any ranks, {least}."
    how = "as corrected by Iman and Davenport" if math.isnan(tests.friedman.exact_p_value) else "exact"
    said = f"Friedman's test, {how}: {'p < 0.001' if p < 0.001 else f'p = {p:.3f}'}."
    if n < _FEW:
        return f"{said} With so few streams the test has little power."
    return f"{said} The methods differ." if p < alpha else f"{said} A difference is not certain at {alpha:g}."


def _curves(result: ExperimentResult) -> Values | None:
    columns = (("accuracy_windowed", "Accuracy"), ("selection_accuracy", "Selection accuracy"))
    curves = {column: mean_curves(result, column) for column, _ in columns}
    streams = {}
    for i, stream in enumerate(result.streams):
        drifts = drifts_of(result, stream)
        streams[stream] = [
            curves_chart(f"cur{i}{column[0]}", title, curves[column][stream], drifts, (0.0, 1.0))
            for column, title in columns
            if curves[column][stream]
        ]
    if not any(streams.values()):
        return None
    return {
        "has_more": len(result.methods) > 6,
        "streams": {name: one for name, one in streams.items() if one},
    }


def _selection(result: ExperimentResult) -> Values | None:
    mapping = {stream: selection_maps(result, stream) for stream in result.streams}
    streams = [
        {"name": stream, "seed": maps.seed, "n_more": maps.n_more, "charts": map_charts(f"sel{i}", maps)}
        for i, (stream, maps) in enumerate(mapping.items())
        if maps is not None
    ]
    return {"streams": streams} if streams else None


def _cells(result: ExperimentResult) -> Values | None:
    rows = [[shorten(cell, 300), shorten(error, 400)] for cell, error in result.failed.items()]
    return {"table": Table("Failed cells", [("", "cell"), ("", "error")], rows)} if rows else None


def _repeat(result: ExperimentResult, lines: dict[str, str]) -> Values:
    lines = dict(lines)
    done = np.flatnonzero(result.cells["status"] == "done")
    if len(done):
        stream, method = (str(result.cells[one][done[0]]) for one in ("stream", "method"))
        lines["In Python, the first of the runs"] = snippet(result.run(stream, method).settings)
    if not result.is_temporary:
        load = f"from tamis.evaluate import ExperimentResult\n\nresult = ExperimentResult.load({str(result.folder)!r})"
        lines["In Python, all runs"] = load
    listing = json.dumps(result.settings, indent=1, ensure_ascii=False, default=str)
    return {"lines": lines, "listings": {"All runs as JSON": listing}}


_SECTIONS: tuple[tuple[str, str, Callable[[ExperimentResult], Values | None]], ...] = (
    ("glance", "At a glance", _glance),
    ("results", "Results", _tables),
    ("ranks", "Ranks", _ranks),
    ("curves", "Over time", _curves),
    ("selection", "Selected features", _selection),
    ("cells", "Failed runs", _cells),
)
