"""Output of a comparison, in the terminal and as JSON: a table per stream with the baselines, and the ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from tamis.options import RunOptions

if TYPE_CHECKING:
    from rich.console import Console

    from tamis.evaluate import ExperimentResult
    from tamis.evaluate.experiment.score_table import ScoreTable

__all__ = ["document_of", "show_comparison"]

_COLUMNS = (
    ("accuracy", "accuracy"),
    ("auc", "AUC"),
    ("average_precision", "AP"),
    ("recall_at_precision", "R .9"),
    ("macro_auc", "macro AUC"),
    ("kappa_t", "kappa-T"),
    ("selection_accuracy", "SA"),
    ("rsr", "RSR"),
    ("cucp", "CUCP"),
    ("stability", "stable"),
    ("seconds", "sec"),
)
_OF_CLASSES = ("average_precision", "auc", "recall_at_precision", "macro_auc")
_WITH_DEVIATION = ("accuracy",)
_BASELINES = (
    ("frozen", "frozen selection"), ("random", "random subsets"), ("all", "every feature"),
    ("majority", "majority class"), ("no_change", "no change"),
)  # fmt: skip


def show_comparison(console: Console, result: ExperimentResult) -> None:
    """Print a table per stream, and the mean ranks if there are enough streams."""
    tables = {metric: result.table(metric) for metric, _ in _COLUMNS if metric in result.metrics}
    if level := result.no_better_than_frozen():
        for stream, methods in level.items():
            said = f"On {stream}, no better than a frozen selection: {', '.join(methods)}."
            console.print(Text(said, style="yellow"))
        console.print()
    for i, stream in enumerate(result.streams):
        metrics = [(metric, title) for metric, title in _COLUMNS if metric in _metrics_of(result, i)]
        if not metrics:
            continue
        if stream in result.imbalanced:
            place = {metric: at for at, metric in enumerate(_OF_CLASSES)}
            metrics.sort(key=lambda one: place.get(one[0], len(place)))
        console.print(Text(stream, style="bold"))
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        table.add_column("", no_wrap=True, overflow="ellipsis", max_width=20, min_width=20)
        for _, title in metrics:
            table.add_column(title, justify="right", no_wrap=True)
        for j, method in enumerate(result.methods):
            if tables["accuracy"].n[i, j]:
                style = "dim" if method in result.oracles else ""
                cells = [_cell(tables[metric], i, j) for metric, _ in metrics]
                table.add_row(Text(f"  {method}", style=style), *cells)
        for name, title in _BASELINES:
            figures = [_figure_of(result, f"{name}_{metric}", i) for metric, _ in metrics]
            if any(figures):
                table.add_row(*(Text(one, style="dim") for one in (f"  {title}", *figures)))
        console.print(table)
        console.print()
    lines = [_notes(result), _ranks(result)]
    console.print("\n".join(line for line in lines if line), markup=False, highlight=False)


def _metrics_of(result: ExperimentResult, i: int) -> set[str]:
    """Return the metrics of a stream: metrics of the selection replace ranking metrics unless a class is rare."""
    known = {metric for metric, _ in _COLUMNS if metric in result.metrics and result.table(metric).n[i].any()}
    knows_truth = "selection_accuracy" in known and result.streams[i] not in result.imbalanced
    return known.difference(_OF_CLASSES) if knows_truth else known


def _cell(table: ScoreTable, i: int, j: int) -> Text:
    mean, deviation = float(table.mean[i, j]), float(table.deviation[i, j])
    text = Text(_figure(mean), style="bold" if table.best[i, j] else "")
    if table.metric in _WITH_DEVIATION:
        text.append("        " if math.isnan(deviation) else f" ±{deviation:.3f}", style="not bold dim")
    return text


def _figure(value: float) -> str:
    return (f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}") if math.isfinite(value) else "-"


def _figure_of(result: ExperimentResult, key: str, i: int) -> str:
    """Return the result of a baseline on a stream; empty if it was not measured."""
    is_known = key in result.metrics and result.table(key).n[i].any()
    return _figure(_over_methods(result, key, i)) if is_known else ""


def _over_methods(result: ExperimentResult, key: str, i: int) -> float:
    """Return the mean over the methods, ignoring missing values."""
    known = [mean for mean in result.table(key).mean[i].tolist() if math.isfinite(mean)]
    return sum(known) / len(known) if known else math.nan


def _notes(result: ExperimentResult) -> str:
    notes = ["kappa-T: 0 is the no-change baseline, 1 is perfect. Bold: the best."]
    if "selection_accuracy" in result.metrics and result.table("selection_accuracy").n.any():
        notes.append(
            "SA (selection accuracy) = 0.7 RSR + 0.3 CUCP; RSR: share of relevant features selected;"
            " CUCP: share of irrelevant features not selected."
        )
    if "frozen_accuracy" in result.metrics and result.table("frozen_accuracy").n.any():
        after = RunOptions.from_settings(result.settings).frozen_after
        notes.append(
            f"frozen selection: the same learner on the same number of features, selected once after {after:,} rows"
            " (L1); mean over the methods."
        )
    if "random_accuracy" in result.metrics and result.table("random_accuracy").n.any():
        notes.append(
            "random subsets: the same learner on the same number of random features; mean over the methods."
        )
        notes += [
            f"On {stream}, no better than random subsets: {', '.join(methods)}."
            for stream, methods in result.no_better_than_random().items()
        ]
    if any("average_precision" in _metrics_of(result, i) for i in range(len(result.streams))):
        notes.append(
            "AP: average precision of the rarer of two classes; R .9: its recall at a precision of 0.9."
        )
    if result.oracles:
        notes.append("oracle uses the true relevant features, and is not ranked.")
    if result.keep_all and ("selection_accuracy" in result.metrics):
        notes.append(
            f"{', '.join(result.keep_all)}: every feature is kept, so not ranked by selection metrics."
        )
    return "\n".join(notes)


def _ranks(result: ExperimentResult) -> str:
    """Return the mean ranks by accuracy, or average precision, and the result of Nemenyi's test."""
    try:
        tests = result.compare(result.measure)
    except ValueError:
        return ""
    value, friedman = tests.nemenyi, tests.friedman
    many = "Friedman" if math.isnan(friedman.exact_p_value) else "Friedman, exact"
    said = f"{many}: p {'< 0.001' if friedman.p < 0.001 else f'= {friedman.p:.3f}'}"
    if friedman.is_underpowered():
        said = f"{len(tests.streams)} streams are too few to test the differences"
    ranks = ", ".join(
        f"{one} {value.ranks[one]:.2f}" for one in sorted(value.ranks, key=value.ranks.__getitem__)
    )
    difference = f"critical difference {value.critical_difference:.2f} (Nemenyi, 0.05)"
    return f"Mean ranks by {result.measure.replace('_', ' ')}: {ranks}; {difference}. {said}."


def document_of(result: ExperimentResult) -> dict[str, Any]:
    """Return the comparison as one JSON document."""
    return {
        "streams": result.streams,
        "methods": result.methods,
        "imbalanced": result.imbalanced,
        "measure": result.measure,
        "no_better_than_frozen": result.no_better_than_frozen(),
        "no_better_than_random": result.no_better_than_random(),
        "tables": {metric: _as_dict(result.table(metric)) for metric in result.metrics},
        "ranks": _or_none(lambda: result.compare(result.measure).nemenyi.ranks),
        "critical_difference": _or_none(lambda: result.compare(result.measure).nemenyi.critical_difference),
        "n_cells": len(result.cells["key"]),
        "n_done": int((result.cells["status"] == "done").sum()),
        "failed": result.failed,
        "interrupted": result.interrupted,
    }


def _as_dict(table: ScoreTable) -> dict[str, Any]:
    return {
        stream: {
            method: {
                "mean": float(table.mean[i, j]),
                "deviation": float(table.deviation[i, j]),
                "n": int(table.n[i, j]),
            }
            for j, method in enumerate(table.methods)
        }
        for i, stream in enumerate(table.streams)
    }


def _or_none(test: Callable[[], Any]) -> Any:
    try:
        return test()
    except ValueError:  # too few streams or methods
        return None
