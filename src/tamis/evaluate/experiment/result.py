"""What an experiment shows: its verdict, tables by metric and by stream, ranks, curves, and the selected features."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tamis._validation import Floats, Indices
from tamis.evaluate.experiment.cells import ExperimentCells
from tamis.evaluate.experiment.score_table import ScoreTable, Significance
from tamis.evaluate.prequential.rerun import snippet
from tamis.evaluate.prequential.result import PrequentialResult
from tamis.options import RunOptions
from tamis.report.charts.axes import draw_stacked
from tamis.report.charts.chart import (
    Band,
    Chart,
    Line,
    Mark,
    Points,
    Reference,
    VerticalLines,
    axis,
    limits,
    row_count_axis,
    trend,
)
from tamis.report.charts.ranks import rank_diagram
from tamis.report.content import Cell, Figure, Names, Remark, Reproduction, Score, Section, Table
from tamis.report.result import Result
from tamis.report.text import MISSING, count, duration, fraction, listed, plural, scientific, shorten, size

_MOST = 6  # lines or points of one chart: more colours cannot be distinguished
_FEW = 5  # streams: too few for a test below that
_FROZEN = "on the same number of features, selected once from the first rows (L1)"
# Metric, short name in the terminal, title of its table, and number format.
_METRICS: tuple[tuple[str, str, str, Callable[[float], str]], ...] = (
    ("accuracy", "accuracy", "Accuracy", fraction),
    ("kappa_t", "kappa-T", "Kappa-temporal: 0 is the no-change baseline, 1 is perfect", fraction),
    ("frozen_accuracy", "", f"Accuracy {_FROZEN}", fraction),
    ("random_accuracy", "", "Accuracy on random subsets of the same size, mean of the draws", fraction),
    ("all_accuracy", "", "Accuracy on every feature", fraction),
    ("auc", "AUC", "AUC, for two classes", fraction),
    ("frozen_auc", "", f"AUC {_FROZEN}", fraction),
    ("random_auc", "", "AUC on random subsets of the same size, mean of the draws", fraction),
    ("macro_auc", "macro AUC", "Macro AUC: one-vs-rest, for three classes or more", fraction),
    ("average_precision", "AP", "Average precision of the rarer class", fraction),
    ("recall_at_precision", "R .9", "Recall of the rarer class at a precision of 0.9", fraction),
    ("selection_accuracy", "SA", "Selection accuracy: 0.7 recall + 0.3 specificity", fraction),
    ("rsr", "RSR", "Recall: share of the relevant features that are selected", fraction),
    ("cucp", "CUCP", "Specificity: share of the irrelevant features that are not selected", fraction),
    ("stability", "stable", "Stability of the selected sets (Nogueira)", fraction),
    ("recovery_rows", "", "Rows until the accuracy recovers after a drift", count),
    ("seconds", "sec", "Seconds of a run", fraction),
    ("model_bytes", "", "Size of the arrays of selector and learner", size),
)
_RANKED = {
    "average_precision": "average precision", "accuracy": "accuracy", "selection_accuracy": "selection accuracy",
    "stability": "stability",
}  # fmt: skip
_RANKING = ("average_precision", "auc", "frozen_auc", "random_auc", "recall_at_precision", "macro_auc")
_OF_BASELINES = ("frozen_accuracy", "random_accuracy", "all_accuracy", "frozen_auc", "random_auc")
_BASELINES = {
    "frozen": "frozen selection", "random": "random subsets", "all": "every feature", "majority": "majority class",
    "no_change": "no change",
}  # fmt: skip


class ExperimentResult(ExperimentCells, Result):
    """The result of an experiment; made by :func:`tamis.run_experiment`, or :meth:`load`.

    Attributes
    ----------
    folder : pathlib.Path
        The folder that contains the cells.
    cells : dict of str to ndarray
        One entry per cell: stream, selector, learner, method (the name of selector and learner in tables), seed, status
        ("done", "failed" or "missing"), error, key, and every number of :meth:`PrequentialResult.summary`.
    oracles : list of str
        The methods that use the true relevant features. They are shown, but not ranked.
    keep_all : list of str
        The methods that keep every feature. They are not ranked by measures of the selection.
    interrupted : bool
        Whether the experiment was stopped before all cells were run.
    """

    # -- above the sections --------------------------------------------------------------------------------

    def heading(self) -> str:
        """Return the numbers of methods and streams."""
        streams = plural(len(self.streams), "stream", "streams")
        return f"{plural(len(self.methods), 'method', 'methods')} on {streams}"

    def verdict(self) -> str:
        """Return which method is best, with its test, and in how many pairs the selection pays."""
        if not self._n_done:
            return "No run has finished."
        parts = [f"{part}." for part in (self._best(), self._against_baseline()[0]) if part]
        return " ".join(parts) or "No method has a score."

    @property
    def _n_done(self) -> int:
        return int(np.sum(self.cells["status"] == "done"))

    def _against_baseline(self) -> tuple[str, str]:
        """Return in how many pairs of stream and method the selection pays, and what that means."""
        selects = self._mean("n_selected") < self._mean("n_features")
        after = RunOptions.from_settings(self.settings).frozen_after
        names: dict[Any, str] = {
            "frozen": f"one frozen after {after:,} rows",
            "random": "random subsets of the same size",
        }
        # That of the most pairs: a frozen selection needs more rows.
        gains: dict[Any, Any] = {baseline: self.gain_over(baseline) for baseline in names}
        compared = {baseline: np.isfinite(gain) & selects for baseline, (gain, _) in gains.items()}
        baseline = max(names, key=lambda one: int(compared[one].sum()))
        (gain, bound), is_compared = gains[baseline], compared[baseline]
        if not (n := int(is_compared.sum())):
            return "", ""
        of_all, bound_of_all = self.gain_over("all")
        pays = is_compared & (gain > bound) & ~(of_all < -bound_of_all)
        unknown = int((is_compared & ~np.isfinite(bound)).sum())
        also = ", and does not lose to all features by more than theirs" if np.isfinite(of_all).any() else ""
        return (
            f"The selection pays in {pays.sum():,} of {plural(n, 'pair', 'pairs')} of stream and method"
            + (f", and in {unknown:,} it is undetermined" if unknown else ""),
            f"A selection pays if it exceeds {names[baseline]} by more than half of the 95 % interval of the difference"
            f"{also}.",
        )

    def _best(self) -> str:
        scores = self._scores(self.measure)
        if scores is None:
            return ""
        word = _RANKED[self.measure]
        try:
            tests = self.compare(self.measure)
        except ValueError:
            items = []
            for i, stream in enumerate(scores.streams):
                if len(best := np.flatnonzero(scores.best[i])):
                    items.append(
                        f"{scores.methods[best[0]]} has the highest {word} on {stream}, {scores.cell(i, best[0])}"
                    )
            return "; ".join(items[:2])
        first = tests.holm.control
        of = f"of {len(tests.nemenyi.ranks)} methods by {word}, {tests.nemenyi.ranks[first]:.2f}"
        return f"{first} has the best mean rank {of} over {len(tests.streams)} streams ({_test_words(tests)})"

    def about(self) -> str:
        """Return the protocol, the number of seeds, and methods that are not ranked."""
        n_seeds = len(set(self.cells["seed"].tolist()))
        said = [
            "Prequential evaluation (test-then-train) of every method on every stream, with"
            f" {plural(n_seeds, 'seed', 'seeds')}."
        ]
        if n_seeds > 1:
            said.append("Methods and streams without randomness have one run and no standard deviation.")
        if self.oracles:
            said.append(
                f"{listed(self.oracles)} uses the true relevant features: it is shown, but not ranked."
            )
        if self.keep_all and "selection_accuracy" in self.metrics:
            said.append(
                f"{listed(self.keep_all)} keeps every feature: it is not ranked by selection metrics."
            )
        if self._n_done and (meaning := self._against_baseline()[1]):
            said.append(meaning)
        return " ".join(said)

    def remarks(self) -> list[str]:
        """Return the runs that are missing, and the selections that are no better than a baseline."""
        status = self.cells["status"]
        lost = [
            plural(n, f"cell {verb}", f"cells {verbs}")
            for name, verb, verbs in (
                ("failed", "failed", "failed"),
                ("missing", "is missing", "are missing"),
            )
            if (n := int(np.sum(status == name)))
        ]
        remarks: list[str] = [f"{' and '.join(lost)}: the figures are those of the others."] if lost else []
        names: dict[Any, str] = {
            "frozen": "a frozen selection (L1, of the first rows)", "random": "random subsets of the same size",
        }  # fmt: skip
        for baseline, name in names.items():
            losers = self._without_advantage(baseline, loses=True)
            level = {
                stream: left
                for stream, methods in self._without_advantage(baseline).items()
                if (left := [one for one in methods if one not in losers.get(stream, [])])
            }
            for said, found in (("Loses to", losers), ("No proven advantage over", level)):
                where = "; ".join(f"{listed(some)} on {shorten(at, 40)}" for at, some in found.items())
                remarks += [f"{said} {name}: {where}."] if where else []
        return [*remarks, *self._mean_ranks()]

    def _mean_ranks(self) -> list[str]:
        """Return the mean ranks by the measure as a remark, if there are enough streams and methods."""
        if self.measure not in self.metrics or not (ranks := self._table_of(self.measure).mean_ranks()):
            return []
        listing = ", ".join(f"{name} {ranks[name]:.2f}" for name in sorted(ranks, key=ranks.__getitem__))
        difference = self.compare(self.measure).nemenyi.critical_difference
        beside = f"critical difference {difference:.2f} (Nemenyi, 0.05)"
        said = f"Mean ranks by {_RANKED[self.measure]}: {listing}; {beside}."
        return [Remark(said, "note")]

    def headline(self) -> list[Figure]:
        """Return the numbers of streams, methods, seeds, runs and rows, and the time."""
        cells = self.cells
        rows, seconds = (float(np.nansum(cells.get(one, np.zeros(1)))) for one in ("n_rows", "seconds"))
        figures = [
            ("Streams", count(len(self.streams)), ""), ("Methods", count(len(self.methods)), ""),
            ("Seeds", count(len(set(cells["seed"].tolist()))), ""),
            ("Runs", count(self._n_done), f"of {len(cells['key']):,}"),
            ("Rows predicted", count(rows), "in all runs"),
            ("Time of the runs", duration(seconds), "one after the other"),
        ]  # fmt: skip
        return [Figure(*one, is_main=False) for one in figures]

    # -- the sections --------------------------------------------------------------------------------------

    def sections(self) -> list[Section]:
        """Return the sections that have something to show."""
        sections = [
            Section("glance", "At a glance", self._glance()), Section("results", "Results", self._metric_tables()),
            Section("streams", "By stream", self._stream_tables()), Section("ranks", "Ranks", self._ranks()),
            Section("curves", "Over time", self._curves()), Section("selection", "Selected features", self._maps()),
        ]  # fmt: skip
        if self.failed:
            rows = [[shorten(cell, 300), shorten(error, 400)] for cell, error in self.failed.items()]
            sections.append(
                Section("cells", "Failed runs", [Table("Failed cells", [("", "cell"), ("", "error")], rows)])
            )
        return [section for section in sections if section.items]

    def _scores(self, metric: str) -> ScoreTable | None:
        """Return the table of a metric that has a value."""
        if metric not in self.metrics:
            return None
        scores = self._table_of(metric)
        return scores if np.isfinite(scores.mean).any() else None

    @functools.cached_property
    def _table_of(self) -> Callable[[str], ScoreTable]:
        return functools.cache(self.table)

    def _glance(self) -> list[Any]:
        """Return a chart of the mean over seeds of each method on each stream."""
        if (scores := self._scores(self.measure)) is None:
            return []
        baseline = np.full(len(scores.streams), np.nan)
        if "majority_accuracy" in self.metrics:
            baseline = np.array([_finite_mean(row) for row in self._table_of("majority_accuracy").mean])
        is_accuracy = scores.metric == "accuracy"
        baseline = baseline if is_accuracy else 1.0 - baseline  # of a random ranking
        rows, methods = np.arange(len(scores.streams)), _highest(scores.mean)
        x = axis(*limits(scores.mean[:, methods].ravel(), baseline, within=(0.0, 1.0)), 4)
        points = [
            Points(scores.mean[:, j], rows, scores.methods[j], style)
            for style, j in enumerate(methods, start=1)
        ]
        best = "; ".join(
            f"{shorten(stream, 40)}: {_best_of(scores, i)}" for i, stream in enumerate(scores.streams)
        )
        chart = Chart(
            "gla", "Accuracy" if is_accuracy else "Average precision", "of each method, a line for each stream",
            f"The best on each stream. {best}.", x, None,
            [*points, Reference(baseline, "majority class" if is_accuracy else "random ranking")], "dots",
            rows=scores.streams, row_height=34,
        )  # fmt: skip
        said = "Mean over seeds; each point is a method. A method left of the dotted line does not beat the baseline on"
        return [f"{said} that stream.{_only(len(scores.methods))}", chart]

    def _metric_tables(self) -> list[Any]:
        # For a rare class, ranking metrics come first.
        place = {metric: at for at, metric in enumerate(_RANKING if self.imbalanced else ())}
        ordered = sorted(_METRICS, key=lambda one: place.get(one[0], len(place)))
        known = [(self._scores(metric), title, form) for metric, _, title, form in ordered]
        tables = [self._metric_table(one, title, form) for one, title, form in known if one is not None]
        said = (
            "Mean and, in smaller type, standard deviation over seeds; the best of each stream is bold."
            " Majority predicts"
            " the class that was most frequent so far, no change repeats the last label: a useful learner beats both."
        )
        return [said, *tables] if tables else []

    def _metric_table(self, scores: ScoreTable, title: str, form: Callable[[float], str]) -> Table:
        is_accuracy = scores.metric == "accuracy"
        beside = {"majority_accuracy": "majority", "no_change_accuracy": "no change"} if is_accuracy else {}
        is_ranked, rows = scores.metric not in _OF_BASELINES, list[list[Cell]]()
        for i, stream in enumerate(scores.streams):
            cells = [_cell(scores, i, j, form, is_ranked=is_ranked) for j in range(len(scores.methods))]
            means = (_finite_mean(self._table_of(key).mean[i]) for key in beside)  # the same for all methods
            rows.append([Names([stream]), *cells, *map(form, means)])
        for name, known, form_of in (
            ("mean", scores.means(), form),
            ("mean rank", scores.mean_ranks(), "{:.2f}".format),
        ):
            if is_ranked and known:
                row = [form_of(known[one]) if one in known else MISSING for one in scores.methods]
                rows.append([Score(name, is_aside=True), *row, *([""] * len(beside))])
        asides = (Score(label, is_aside=True) for label in beside.values())
        head: list[Cell] = [*(Names([method]) for method in scores.methods), *asides]
        return Table(title, [("", "stream"), *(("n", one) for one in head)], rows)

    def _stream_tables(self) -> list[Any]:
        """Return a table of each stream: the methods, and the baselines as the mean over them."""
        tables = []
        for i, stream in enumerate(self.streams):
            metrics = self._metrics_of(i)
            rows: list[list[Cell]] = [
                [
                    Names([method]),
                    *(_cell(self._table_of(key), i, j, fraction, key == "accuracy") for key in metrics),
                ]
                for j, method in enumerate(self.methods)
                if len(self.finished(stream, method))
            ]
            for name, label in _BASELINES.items():
                values = [self._baseline(f"{name}_{key}", i) for key in metrics]
                if any(values):
                    rows.append([Score(one, is_aside=True) for one in (label, *values)])
            head = [("long", "method"), *(("n", label) for label in metrics.values())]
            if metrics and rows:
                tables.append(Table(stream, head, rows, is_main=True, is_folded=True))
        return [*tables, Remark(self._abbreviations(), "note")] if tables else []

    def _metrics_of(self, i: int) -> dict[str, str]:
        """Return the metrics of a stream; metrics of the selection replace ranking metrics unless a class is rare."""
        labels = {key: label for key, label, _, _ in _METRICS if label}
        known = [key for key in labels if key in self.metrics and self._table_of(key).n[i].any()]
        is_rare = self.streams[i] in self.imbalanced
        if "selection_accuracy" in known and not is_rare:
            known = [key for key in known if key not in _RANKING]
        elif is_rare:
            known.sort(key=lambda key: _RANKING.index(key) if key in _RANKING else len(_RANKING))
        return {key: labels[key] for key in known}

    def _baseline(self, key: str, i: int) -> str:
        """Return the result of a baseline on a stream, the mean over the methods; empty if it was not measured."""
        is_known = key in self.metrics and self._table_of(key).n[i].any()
        return fraction(_finite_mean(self._table_of(key).mean[i])) if is_known else ""

    def _abbreviations(self) -> str:
        known = {key for i in range(len(self.streams)) for key in self._metrics_of(i)}
        notes = ["kappa-T: 0 is the no-change baseline, 1 is perfect. Bold: the best."]
        if "selection_accuracy" in known:
            notes.append(
                "SA (selection accuracy) = 0.7 RSR + 0.3 CUCP; RSR: share of relevant features selected; CUCP: share of"
                " irrelevant features not selected."
            )
        if "frozen_accuracy" in self.metrics:
            after = RunOptions.from_settings(self.settings).frozen_after
            notes.append(
                "frozen selection: the same learner on the same number of features, selected once after"
                f" {after:,} rows (L1); mean over the methods."
            )
        if "random_accuracy" in self.metrics:
            notes.append(
                "random subsets: the same learner on the same number of random features; mean over the methods."
            )
        if "average_precision" in known:
            notes.append(
                "AP: average precision of the rarer of two classes; R .9: its recall at a precision of 0.9."
            )
        return " ".join(notes)

    def _ranks(self) -> list[Any]:
        items: list[Any] = []
        for metric, label in _RANKED.items():
            if metric not in self.metrics or (metric == "average_precision" and metric != self.measure):
                continue
            try:
                tests = self.compare(metric)
            except ValueError:
                continue
            title = f"By {label}, on {plural(len(tests.streams), 'stream', 'streams')}"
            rows: list[list[Cell]] = [
                [
                    Names([other]),
                    *(
                        fraction(value)
                        for value in (one.first, one.equal, one.second, tests.holm.adjusted[other])
                    ),
                ]
                for other, one in tests.bayes.items()
            ]
            rope = next((one.rope for one in tests.bayes.values()), 0.0)
            numbers = ("better", f"within {rope:g}", "worse", "p (Holm)")
            columns = [("long", f"{tests.holm.control} against"), *(("n", one) for one in numbers)]
            note = f"{_test_words(tests)[0].upper()}{_test_words(tests)[1:]}."
            items += [
                rank_diagram(tests.nemenyi, title),
                Table(f"{title}: probabilities", columns, rows, note),
            ]
        said = (
            "Mean ranks over the streams, the best at the right. Methods joined by a bar do not differ significantly by"
            " Nemenyi's test: their mean ranks differ by less than the critical difference. Below, the"
            " best-ranked method"
            " is compared with each other one by the Bayesian signed-rank test and by a p-value that accounts for its"
            " choice."
        )
        return [said, *items] if items else []

    def _curves(self) -> list[Any]:
        columns = (("accuracy_windowed", "Accuracy"), ("selection_accuracy", "Selection accuracy"))
        curves = {column: self._mean_curves(column) for column, _ in columns}
        charts = [
            self._curves_chart(
                f"cur{i}{column[0]}", f"{title} on {stream}", stream, curves[column][stream], (0.0, 1.0)
            )
            for i, stream in enumerate(self.streams)
            for column, title in columns
            if curves[column][stream]
        ]
        said = "Mean over seeds; the legend shows the mean over the stream. Accuracy is windowed."
        return [f"{said}{_only(len(self.methods))}", *charts] if charts else []

    def _mean_curves(self, column: str) -> dict[str, list[dict[str, Any]]]:
        """Return for each stream the curves of the methods that have values, the highest six; in the methods' order."""
        frame = self.curves(column)
        output = {}
        for stream in self.streams:
            curves = []
            for method in self.methods:
                mine = (frame["stream"] == stream) & (frame["method"] == method)
                if (
                    curve := _curve(method, {name: values[mine] for name, values in frame.items()}, column)
                ) is not None:
                    curves.append(curve)
            best = sorted(curves, key=lambda curve: -curve["level"])[:_MOST]
            output[stream] = [curve for curve in curves if any(curve is one for one in best)]
        return output

    def _curves_chart(
        self, key: str, title: str, stream: str, curves: Sequence[dict[str, Any]],
        within: tuple[float, float] | None = None, *, has_bands: bool = False,
    ) -> Chart:  # fmt: skip
        """Return a chart of the mean over seeds of each method, at most six, perhaps with its deviation."""
        lines: list[Mark] = [
            Line(
                one["at"],
                one["mean"],
                one["method"],
                style,
                note="" if has_bands else scientific(one["level"]),
            )
            for style, one in enumerate(curves, start=1)
        ]
        values, bands = [one["mean"] for one in curves], list[Mark]()
        for style, one in enumerate(curves if has_bands else (), start=1):
            low, high = one["mean"] - one["deviation"], one["mean"] + one["deviation"]
            if np.isfinite(low).any():
                bands.append(Band(one["at"], low, high, style=style))
                values += [low, high]
        drifts = self._drifts_of(stream)
        said = "; ".join(f"{shorten(one['method'], 40)}: {trend(one['mean'])}" for one in curves)
        where = ", ".join(f"{at:,.0f}" for at in drifts)
        drifted = f" True drifts at {where}." if where else ""
        return Chart(
            key, title, "by rows seen", f"{said}.{drifted} Horizontal: rows seen.",
            row_count_axis(float(max(one["at"][-1] for one in curves))), axis(*limits(*values, within=within)),
            [*lines, *bands, VerticalLines(drifts, "true drift" if where else "")],
        )  # fmt: skip

    def _drifts_of(self, stream: str) -> Floats:
        """Return the rows at which a stream drifts, if known and reached by a run."""
        for method in self.methods:
            if len(self.finished(stream, method)):
                return self.run(stream, method).drift_rows
        return np.empty(0)

    def _maps(self) -> list[Any]:
        """Return a map for each method of each stream, all of the same features, of the first seed with a run."""
        items: list[Any] = []
        for i, stream in enumerate(self.streams):
            seeds = self.cells["seed"]
            done = {method: self.finished(stream, method) for method in self.methods}
            seed = min((int(seeds[at].min()) for at in done.values() if len(at)), default=0)
            runs = {one: self.run(stream, one, seed) for one, at in done.items() if seed in seeds[at]}
            runs = {method: run for method, run in runs.items() if len(run.frames["changes"]["step"])}
            if not runs:
                continue
            shown, n_more = _choose_features(list(runs.values()))
            others = plural(n_more, "selected feature is", "selected features are")
            more = f" {others} not shown." if n_more > 0 else ""
            height = 18 if len(shown) <= 10 else 13
            items.append(Remark(f"{stream}, seed {seed}.{more}", "note"))
            items += [
                run.map_chart(
                    run.history.map(max_buckets=200, features=shown), f"sel{i}-{j}", f"{method} on {stream}",
                    caption="", row_height=height, shape="small", has_legend=j == 0,
                )
                for j, (method, run) in enumerate(runs.items())
            ]  # fmt: skip
        return (
            ["Features selected by each method over time; paler: part of the time.", *items] if items else []
        )

    # -- elsewhere -----------------------------------------------------------------------------------------

    def plot(self, column: str = "accuracy_windowed") -> Any:
        """Return a matplotlib figure of a column of the steps over time: one panel per stream, with the true drifts.

        Parameters
        ----------
        column : str, default="accuracy_windowed"
            One of :data:`tamis.evaluate.prequential.result.STEP_COLUMNS`.

        Raises
        ------
        ImportError
            If matplotlib is missing; the message names the extra to install.
        ValueError
            If the column does not exist, or no cell has a value for it.
        """
        mapping = {stream: curves for stream, curves in self._mean_curves(column).items() if curves}
        if not mapping:
            raise ValueError(f"No finished cell has a value of {column!r}.")
        charts = [self._curves_chart("", one, one, curves, has_bands=True) for one, curves in mapping.items()]
        figure = draw_stacked(charts)
        figure.supylabel(column.replace("_", " "), fontsize=9)
        return figure

    def reproduce(self) -> Reproduction:
        """Return the lines of Python that load all runs, or repeat the first, and all settings."""
        done = np.flatnonzero(self.cells["status"] == "done")
        python = ""
        if not self.is_temporary:
            folder = str(self.folder)
            python = (
                f"from tamis.evaluate import ExperimentResult\n\nresult = ExperimentResult.load({folder!r})"
            )
        elif len(done):
            stream, method = (str(self.cells[one][done[0]]) for one in ("stream", "method"))
            python = f"# the first of the runs\n{snippet(self.run(stream, method).settings)}"
        return Reproduction("", python, self.settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values: the keys are in the table of JSON keys in the documentation."""
        try:
            tests = self.compare(self.measure).nemenyi
        except ValueError:  # too few streams or methods
            tests = None
        return {
            "verdict": self.verdict(), "remarks": [str(remark) for remark in self.remarks()], "streams": self.streams,
            "methods": self.methods, "imbalanced": self.imbalanced, "measure": self.measure,
            "no_better_than_frozen": self.no_better_than_frozen(),
            "no_better_than_random": self.no_better_than_random(),
            "tables": {metric: self._table_of(metric).to_dict() for metric in self.metrics},
            "ranks": None if tests is None else tests.ranks,
            "critical_difference": None if tests is None else tests.critical_difference,
            "n_cells": len(self.cells["key"]), "n_done": self._n_done, "failed": self.failed,
            "interrupted": self.interrupted,
        }  # fmt: skip


def _only(n_methods: int) -> str:
    return " Only the six methods with the highest mean are drawn." if n_methods > _MOST else ""


def _finite_mean(values: Any) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def _cell(
    scores: ScoreTable,
    i: int,
    j: int,
    form: Callable[[float], str],
    has_deviation: bool = True,
    *,
    is_ranked: bool = True,
) -> Score:
    deviation = float(scores.deviation[i, j])
    written = form(deviation) if has_deviation and not math.isnan(deviation) else ""
    return Score(form(float(scores.mean[i, j])), written, is_ranked and bool(scores.best[i, j]))


def _highest(means: Floats) -> list[int]:
    """Return the columns with the highest means over the rows, in their order."""
    known = np.isfinite(means)
    level = np.where(known, means, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    there = np.flatnonzero(known.any(axis=0))
    return sorted(there[np.argsort(-level[there], kind="stable")][:_MOST].tolist())


def _best_of(scores: ScoreTable, i: int) -> str:
    best = np.flatnonzero(scores.best[i])
    if not len(best):
        return "none"
    return f"{shorten(scores.methods[best[0]], 40)} {scientific(float(scores.mean[i, best[0]]))}"


def _test_words(tests: Significance) -> str:
    p, alpha, n = tests.friedman.p, tests.nemenyi.alpha, len(tests.streams)
    if tests.friedman.is_underpowered(alpha):
        least = f"p cannot be below {tests.friedman.least_p_value:.3f}"
        return f"{n} streams are too few to test whether the methods differ: for any ranks, {least}"
    how = "as corrected by Iman and Davenport" if math.isnan(tests.friedman.exact_p_value) else "exact"
    said = f"Friedman's test, {how}: {'p < 0.001' if p < 0.001 else f'p = {p:.3f}'}"
    if n < _FEW:
        return f"{said}; with so few streams the test has little power"
    return f"{said}; the methods differ" if p < alpha else f"{said}; a difference is not certain at {alpha:g}"


def _curve(method: str, frame: dict[str, Any], column: str) -> dict[str, Any] | None:
    """Return the mean and the deviation over seeds of a column of the steps."""
    seeds = list(dict.fromkeys(frame["seed"].tolist()))
    values = [frame[column][frame["seed"] == seed] for seed in seeds]
    values = [one for one in values if np.isfinite(one).any()]
    if not values:
        return None
    n = min(map(len, values))
    table = np.array([one[:n] for one in values], dtype=np.float64)
    mean = table.mean(axis=0)
    deviation = table.std(axis=0, ddof=1) if len(table) > 1 else np.full(n, np.nan)
    at = np.asarray(frame["n_seen"][frame["seed"] == seeds[0]][:n], dtype=np.float64)
    return {
        "method": method, "at": at, "mean": mean, "deviation": deviation, "level": float(np.nanmean(mean)),
    }  # fmt: skip


def _choose_features(runs: list[PrequentialResult], at_most: int = 24) -> tuple[Indices, int]:
    """Return the features to show, relevant ones first, in the order of time, and how many others were kept."""
    truth = runs[0].frames["truth"]
    relevant = list(dict.fromkeys(truth["feature"][truth["event"] == "enter"].tolist()))[:at_most]
    held = np.sum([run.history.steps_in(run.frames["changes"]) for run in runs], axis=0)
    longest = [int(j) for j in np.argsort(-held, kind="stable") if held[j] > 0 and j not in set(relevant)]
    others = longest[: max(at_most - len(relevant), 4)]
    return np.array([*relevant, *others], dtype=np.intp), len(longest) - len(others)
