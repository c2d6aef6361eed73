"""The page of a comparison: tables, critical-difference diagrams, curves, maps, and which cells failed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tamis.evaluate import ExperimentResult
from tamis.evaluate.experiment.score_table import ScoreTable, Significance
from tamis.report.comparison.figures import curves_figure, maps_figure, scores_figure
from tamis.report.comparison.numbers import drifts_of, mean_curves, selection_maps
from tamis.report.page import number_format
from tamis.report.page.document import document, write_page
from tamis.report.page.markup import name, names, notice, plural, repeat_lines, table, text, tiles
from tamis.report.page.rerun import snippet
from tamis.report.ranks import draw_ranks

__all__ = ["comparison_page", "write_comparison"]

_Format = Callable[[float], str]
_TABLES: tuple[tuple[str, str, _Format], ...] = (
    ("accuracy", "Accuracy", number_format.fraction),
    ("kappa_t", "Kappa-temporal: 0 is to repeat the last label, 1 is perfect", number_format.fraction),
    (
        "random_accuracy",
        "Accuracy on random subsets of the same size, mean of the draws",
        number_format.fraction,
    ),
    ("all_accuracy", "Accuracy on every feature", number_format.fraction),
    ("auc", "AUC, where there are two classes", number_format.fraction),
    ("random_auc", "AUC on random subsets of the same size, mean of the draws", number_format.fraction),
    ("average_precision", "Average precision of the rarer class", number_format.fraction),
    ("recall_at_precision", "Recall of the rarer class at a precision of 0.9", number_format.fraction),
    (
        "selection_accuracy",
        "Selection accuracy: 0.7 recall and 0.3 left out",
        number_format.fraction,
    ),
    ("rsr", "Recall: share of the relevant features that was kept", number_format.fraction),
    ("cucp", "Left out: share of the other features that was not kept", number_format.fraction),
    ("stability", "Stability of the selected sets (Nogueira)", number_format.fraction),
    ("recovery_rows", "Rows until the accuracy is back after a drift", number_format.count),
    ("seconds", "Seconds of a run", number_format.fraction),
    ("model_bytes", "Numbers held by selector and learner", number_format.size),
)
_RANKED = (("accuracy", "accuracy"), ("selection_accuracy", "selection accuracy"), ("stability", "stability"))
_FEW = 5  # streams: fewer are no base for a test
_RIVALS = ("random_accuracy", "all_accuracy", "random_auc")  # not of the methods
_BASELINES = {"accuracy": (("majority_accuracy", "majority"), ("no_change_accuracy", "no change"))}


def write_comparison(
    result: ExperimentResult,
    path: str | os.PathLike[str],
    title: str | None = None,
    repeat: dict[str, str] | None = None,
) -> Path:
    """Write the report of an experiment: one HTML file that opens offline.

    Parameters
    ----------
    result : ExperimentResult
        What :func:`tamis.run_experiment` returns.
    path : str or path
        The file; one that exists is replaced in one step, or stays as it is if anything fails.
    title : str, optional
        Heading of the page.
    repeat : dict of str to str, optional
        Lines that repeat the experiment, by where they are typed.

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
    n_methods, n_streams = len(result.methods), len(result.streams)
    heading = title or (
        f"{plural(n_methods, 'method', 'methods')} on {plural(n_streams, 'stream', 'streams')}"
    )
    made = [(key, label, section(result)) for key, label, section in _SECTIONS]
    parts = [(key, label, content) for key, label, content in made if content]
    parts.append(("repeat", "Repeat this run", _repeat(result, repeat or {})))
    return document(heading, _lead(result), _alerts(result) + _tiles(result), parts)


def _lead(result: ExperimentResult) -> str:
    seeds = sorted(set(result.cells["seed"].tolist()))
    said = f"Every method on every stream, test-then-train, with {plural(len(seeds), 'seed', 'seeds')}."
    if len(seeds) > 1:
        said += " Where nothing takes a seed there is one run, and no deviation."
    if result.oracles:
        said += f" {names(result.oracles)} was told the truth: it is shown, but not ranked."
    if result.keep_all and "selection_accuracy" in result.metrics:
        said += f" {names(result.keep_all)} keeps every feature: it is not ranked by what is selected."
    return said


def _alerts(result: ExperimentResult) -> str:
    n_failed, n_missing = (int(np.sum(result.cells["status"] == status)) for status in ("failed", "missing"))
    told = [
        plural(n, f"cell {verb}", f"cells {verbs}")
        for n, verb, verbs in ((n_failed, "failed", "failed"), (n_missing, "is missing", "are missing"))
        if n
    ]
    found = [f"<b>{' and '.join(told)}.</b> The numbers are those of the others."] if told else []
    if behind := result.no_better_than_random():
        each = "; ".join(f"{names(methods)} on {name(stream)}" for stream, methods in behind.items())
        found.append(f"<b>No better than random subsets of the same size:</b> {each}.")
    return "".join(map(notice, found))


def _tiles(result: ExperimentResult) -> str:
    cells = result.cells
    rows, seconds = (float(np.nansum(cells.get(one, np.zeros(1)))) for one in ("n_rows", "seconds"))
    done = int(np.sum(cells["status"] == "done"))
    return tiles((
        ("Streams", f"{len(result.streams)}", ""),
        ("Methods", f"{len(result.methods)}", ""),
        ("Seeds", f"{len(set(cells['seed'].tolist()))}", ""),
        ("Runs", number_format.count(done), f"of {len(cells['key']):,}"),
        ("Rows predicted", number_format.count(rows), "in all runs"),
        ("Time of the runs", number_format.duration(seconds), "one after the other"),
    ))  # fmt: skip


def _glance(result: ExperimentResult) -> str:
    if "accuracy" not in result.metrics or not np.isfinite((scores := result.table("accuracy")).mean).any():
        return ""
    majority = np.full(len(scores.streams), np.nan)
    if "majority_accuracy" in result.metrics:
        means = result.table("majority_accuracy").mean
        majority = np.array(
            [row[np.isfinite(row)].mean() if np.isfinite(row).any() else np.nan for row in means]
        )
    few = (
        " Of more than six methods, those with the highest mean are drawn." if len(scores.methods) > 6 else ""
    )
    return (
        "<p>Mean over seeds, each point a method. A method left of the dotted mark has learned nothing on that stream."
        f"{few}</p>{scores_figure('gla', scores, majority)}"
    )


def _tables(result: ExperimentResult) -> str:
    parts = []
    for metric, caption, form in _TABLES:
        if metric in result.metrics and np.isfinite((scores := result.table(metric)).mean).any():
            parts.append(_table(result, scores, caption, form))
    if not parts:
        return ""
    note = (
        "<p>Mean and, smaller, the standard deviation over seeds; the best of each stream in bold. <i>Majority</i>"
        " predicts the class that was most frequent so far, <i>no change</i> repeats the last label: a learner that"
        " does not beat them has learned nothing.</p>"
    )
    return note + "".join(parts)


def _table(result: ExperimentResult, scores: ScoreTable, caption: str, form: _Format) -> str:
    baselines = _BASELINES.get(scores.metric, ())
    rows = []
    for i, stream in enumerate(scores.streams):
        cells = [_cell(scores, i, j, form) for j in range(len(scores.methods))]
        rows.append([name(stream), *cells, *(_baseline(result, key, i, form) for key, _ in baselines)])
    if scores.metric not in _RIVALS and (ranks := scores.mean_ranks()):
        row = [f"{ranks[one]:.2f}" if one in ranks else number_format.MISSING for one in scores.methods]
        rows.append(["<i>mean rank</i>", *row, *([""] * len(baselines))])
    head = ["stream", *map(name, scores.methods), *(f"<i>{label}</i>" for _, label in baselines)]
    return table(caption, head, rows, ["", *["n"] * (len(head) - 1)])


def _cell(scores: ScoreTable, i: int, j: int, form: _Format) -> str:
    mean, deviation = float(scores.mean[i, j]), float(scores.deviation[i, j])
    is_rival = scores.metric in _RIVALS
    shown = f"<b>{form(mean)}</b>" if scores.best[i, j] and not is_rival else form(mean)
    return shown if math.isnan(deviation) else f"{shown} <small>± {form(deviation)}</small>"


def _baseline(result: ExperimentResult, key: str, i: int, form: _Format) -> str:
    row = result.table(key).mean[i]  # the same for all methods, up to the seeds that are finished
    return form(float(np.nanmean(row))) if np.isfinite(row).any() else number_format.MISSING


def _ranks(result: ExperimentResult) -> str:
    parts = []
    for metric, label in _RANKED:
        if metric not in result.metrics:
            continue
        try:
            found = result.compare(metric)
        except ValueError:
            continue
        bayes = "".join(_against(found, other) for other in found.bayes)
        parts.append(
            f"<h3>By {label}, on {plural(len(found.streams), 'stream', 'streams')}</h3>"
            f'<div class="scroll" tabindex="0" role="group" aria-label="Ranks by {label}">'
            f"{draw_ranks(found.nemenyi)}</div>"
            f"<p>{_verdict(found)}</p><ul>{bayes}</ul>"
        )
    if not parts:
        return ""
    return (
        "<p>Mean ranks over the streams, the best at the right. Methods under one bar do not differ by Nemenyi's test:"
        " their mean ranks are nearer to each other than the critical difference. Below, the best ranked one against"
        " each other: by the Bayesian signed-rank test, and with the p-value of Nemenyi's.</p>"
        + "".join(parts)
    )


def _verdict(found: Significance) -> str:
    p, alpha, n = found.friedman.p, found.nemenyi.alpha, len(found.streams)
    if found.friedman.says_too_little(alpha):
        least = f"p cannot be below {found.friedman.least_p_value:.3f}"
        return f"{n} streams are too few to say whether the methods differ: however they rank, {least}."
    how = "as corrected by Iman and Davenport" if math.isnan(found.friedman.exact_p_value) else "counted out"
    said = f"Friedman's test, {how}: {'p &lt; 0.001' if p < 0.001 else f'p = {p:.3f}'}."
    if n < _FEW:
        return f"{said} With so few streams it says little."
    return f"{said} The methods differ." if p < alpha else f"{said} A difference is not certain at {alpha:g}."


def _against(found: Significance, other: str) -> str:
    one = found.bayes[other]
    return (
        f"<li>{name(found.holm.control)} against {name(other)}: better with a probability of {one.first:.2f},"
        f" within {one.rope:g} of it {one.equal:.2f}, worse {one.second:.2f};"
        f" p {found.holm.adjusted[other]:.3f}</li>"
    )


def _curves(result: ExperimentResult) -> str:
    columns = [
        ("accuracy_windowed", "Accuracy", (0.0, 1.0)),
        ("selection_accuracy", "Selection accuracy", (0.0, 1.0)),
    ]
    curves = {column: mean_curves(result, column) for column, _, _ in columns}
    parts = []
    for i, stream in enumerate(result.streams):
        drifts = drifts_of(result, stream)
        figures = [
            curves_figure(f"cur{i}{column[0]}", title, curves[column][stream], drifts, within)
            for column, title, within in columns
            if curves[column][stream]
        ]
        if figures:
            parts.append(f'<h3>{name(stream)}</h3><div class="pair">{"".join(figures)}</div>')
    if not parts:
        return ""
    few = (
        " Of more than six methods, those with the highest mean are drawn." if len(result.methods) > 6 else ""
    )
    return (
        "<p>Mean over seeds; the legend tells the mean over the stream. Accuracy is that of the latest rows."
        f"{few}</p>" + "".join(parts)
    )


def _selection(result: ExperimentResult) -> str:
    parts = []
    for i, stream in enumerate(result.streams):
        maps = selection_maps(result, stream)
        if maps is not None:
            more = f" {plural(maps.n_more, 'feature', 'features')} that were kept are not shown." * (
                maps.n_more > 0
            )
            said = f'<p class="note">Seed {maps.seed}.{more}</p>'
            parts.append(f"<h3>{name(stream)}</h3>{said}{maps_figure(f'sel{i}', maps)}")
    if not parts:
        return ""
    return "<p>What each method kept, by rows seen; paler: some of the time.</p>" + "".join(parts)


def _cells(result: ExperimentResult) -> str:
    failed = [[text(cell), text(error, 400)] for cell, error in result.failed.items()]
    return table("Cells that failed", ("cell", "error"), failed, ["", ""]) if failed else ""


def _repeat(result: ExperimentResult, lines: dict[str, str]) -> str:
    lines = dict(lines)
    done = np.flatnonzero(result.cells["status"] == "done")
    if len(done):
        stream, method = (str(result.cells[one][done[0]]) for one in ("stream", "method"))
        first = result.run(stream, method)
        lines["In Python, the first of the runs"] = snippet(first.settings)
    if not result.is_temporary:
        load = f"from tamis.evaluate import ExperimentResult\n\nresult = ExperimentResult.load({str(result.folder)!r})"
        lines["In Python, to look at all of them again"] = load
    listing = json.dumps(result.settings, indent=1, ensure_ascii=False, default=str)
    return repeat_lines(lines, {"All runs as JSON": listing})


_SECTIONS: tuple[tuple[str, str, Callable[[ExperimentResult], str]], ...] = (
    ("glance", "At a glance", _glance),
    ("results", "Results", _tables),
    ("ranks", "Ranks", _ranks),
    ("curves", "Over time", _curves),
    ("selection", "What was kept", _selection),
    ("cells", "Runs that failed", _cells),
)
