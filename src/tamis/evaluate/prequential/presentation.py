"""What a run shows: its verdict, measures beside those of the baselines, the selection over time, and the cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tamis._validation import Array, Floats, Indices
from tamis.dependence.autocorrelation import MeanError
from tamis.evaluate.prequential.remarks import (
    auc_gain,
    is_imbalanced,
    is_uninformative,
    paired_gain,
    with_draws,
)
from tamis.evaluate.prequential.rerun import command_line, snippet, subject
from tamis.evaluate.prequential.selection_history import Change, SelectionHistory, SelectionMap
from tamis.options import RunOptions
from tamis.report.charts.chart import (
    Axis,
    Bars,
    Chart,
    Line,
    Mark,
    VerticalLines,
    axis,
    bucket_starts,
    limits,
    mean_per_bucket,
    row_count_axis,
    trend,
    whole_number,
)
from tamis.report.content import Cell, Figure, Meter, Names, Remark, Reproduction, Score, Section, Table
from tamis.report.result import Result
from tamis.report.text import (
    MISSING,
    NAME_OF,
    count,
    duration,
    fraction,
    lower,
    plural,
    rate,
    scientific,
    shorten,
    signed,
    size,
)

Written: TypeAlias = Callable[[float], str]

_EVERY, _FROZEN = "every feature", "a selection frozen after"
_ORDERS = {
    "honest": ", each before any model was updated with it",
    "paper": ", each after the selector was updated with it (the order of the FIRES paper)",
}
# Prefix in the frame of the steps, label, style, whether the line is thin; those that select features first.
_BASELINES = (
    ("frozen", "frozen selection", 7, True), ("random", "random subsets", 3, False),
    ("all", "every feature", 4, True), ("majority", "majority class", 6, True),
    ("no_change", "no-change baseline", 5, True), ("mean", "mean so far", 6, True),
    ("last", "no-change baseline", 5, True),
)  # fmt: skip
MEASURES = {
    "accuracy": "Accuracy", "mae": "Mean absolute error", "r2": "R²", "auc": "AUC",
    "average_precision": "Average precision", "recall_at_precision": "Recall at precision 0.9",
    "macro_auc": "Macro AUC", "balanced_accuracy": "Balanced accuracy", "kappa": "Kappa",
}  # fmt: skip
_OF_RANKING = ("average_precision", "auc", "recall_at_precision")
_TABLE_ROWS, _SWITCHES, _LINES = 20, 20, 6
_TIMED = {
    "select": "selector", "learn": "learner", "predict": "prediction", "baselines": "baselines", "read": "reading",
    "compile": "compilation", "other": "rest",
}  # fmt: skip
_WHY = {
    "better": "significantly more accurate",
    "smaller": "as accurate, with fewer features",
    "drift": "concept drift",
}


class RunPresentation(Result):
    """The presentation of a :class:`~tamis.evaluate.PrequentialResult`, which has the numbers."""

    frames: dict[str, dict[str, Array]]
    settings: dict[str, Any]
    feature_names: list[str]
    event: tuple[int, str] | None = None  # a row and what happened there, marked in the map of the selection

    if TYPE_CHECKING:

        def summary(self) -> dict[str, float]: ...
        def selected(self, step: int = -1) -> list[str]: ...
        def recovery(self, measure: str | None = None, *, tolerance: float = 0.05) -> Any: ...
        def dependence_note(self) -> str: ...
        def threshold_note(self) -> str: ...

        @property
        def options(self) -> RunOptions: ...

    # -- numbers -------------------------------------------------------------------------------------------

    @property
    def _steps(self) -> dict[str, Array]:
        return self.frames["steps"]

    @property
    def _n_steps(self) -> int:
        return len(self._steps["step"])

    @property
    def _is_regression(self) -> bool:
        return "mae_cumulative" in self._steps

    @property
    def history(self) -> SelectionHistory:
        """The selected features over time."""
        return SelectionHistory(self.frames, self.feature_names)

    def _values(self, name: str) -> Floats:
        values = np.asarray(self._steps.get(name, np.empty(0)), np.float64)
        return values[np.isfinite(values)]

    def _is_known(self, name: str) -> bool:
        return bool(len(self._values(name)))

    def _last(self, name: str) -> float:
        return float(self._values(name)[-1]) if self._is_known(name) else math.nan

    def _mean(self, name: str) -> float:
        return float(self._values(name).mean()) if self._is_known(name) else math.nan

    @property
    def _has_truth(self) -> bool:
        return self._is_known("selection_accuracy")

    @property
    def _has_selection(self) -> bool:
        return bool(len(self.frames["changes"]["step"]))

    @property
    def drift_rows(self) -> Floats:
        """Rows at which the stream drifts, if known and reached by the run."""
        drifts = np.asarray(self.settings.get("drifts", ()), np.float64)
        return drifts[drifts < (self._steps["n_seen"][-1] if self._n_steps else 0)]

    # -- above the sections --------------------------------------------------------------------------------

    def heading(self) -> str:
        """Return the selector and the data."""
        rows = f"{np.sum(self._steps['n_rows']):,.0f} rows"
        return subject(self.settings) + (
            f", interrupted after {rows}" if self.settings.get("interrupted") else ""
        )

    def verdict(self) -> str:
        """Return whether the selection pays: by how much it differs from its closest baseline, and how sure that is."""
        if not self._n_steps:
            return "No batch was predicted: the stream ended before the first test."
        total, measure = self.summary(), self._compared_measure()
        kept, n = int(total["n_selected"]), int(total["n_features"])
        value, name, written = total[measure], lower(MEASURES[measure]), _written(measure)
        compared = self._comparisons(total, measure) if self._has_selection and kept < n else []
        if not compared:
            said = f"With {'all' if kept >= n or not self._has_selection else f'{kept:,} of'} {n:,} features, {name} is"
            return f"{said} {written(value)}{self._featureless(total, measure)}."
        label, gain, error = min(compared, key=lambda one: one[1])
        half, sign = error.bound, -1.0 if measure == "mae" else 1.0
        pays = "pays" if gain > half else "does not pay" if gain < -half else "has no proven advantage"
        ends = sorted((sign * (gain - half), sign * (gain + half)))
        interval = f" (95 % interval {signed(ends[0], written)} to {signed(ends[1], written)})"
        if not math.isfinite(half):
            interval = " (too few rows for an interval)"
        if error.missing:
            interval = f" (no interval: about {float(f'{error.missing:.1g}'):,.0f} more rows are needed)"
        said = f"The selection {pays}"
        if pays == "does not pay" and label == _EVERY:
            said = f"Keep all {n:,} features"
        elif pays == "does not pay" and label.startswith(_FROZEN):
            said = "Select once instead of online"
        return (
            f"{said}: {kept:,} of {n:,} features {'gives' if kept == 1 else 'give'} {name} {written(value)},"
            f" {signed(sign * gain, written)} against {label}{interval}{self._featureless(total, measure)}."
        )

    def _compared_measure(self) -> str:
        """Return the measure by which the run is compared: AUC where accuracy is uninformative."""
        if self._is_regression:
            return "mae"
        total = self.summary()
        beside = next(
            (total[key] for key in ("frozen_auc", "random_auc") if math.isfinite(total.get(key, math.nan))),
            math.nan,
        )
        return (
            "auc" if is_uninformative(total["accuracy"], total["majority_accuracy"], beside) else "accuracy"
        )

    def _comparisons(self, total: dict[str, float], measure: str) -> list[tuple[str, float, MeanError]]:
        """Return the baselines that select features: a label, the gain over it, and its standard error.

        That of random subsets includes the deviation of the draws.
        """
        options, items = self.options, []
        spread = total.get("random_auc_spread" if measure == "auc" else "random_spread", math.nan)
        begun = f"{_FROZEN} {options.frozen_after:,} rows"
        labels = {"frozen": begun, "random": "random subsets", "all": _EVERY}
        for name, label in labels.items():
            if not self._is_known(f"{name}_{measure}_windowed"):
                continue
            if measure == "auc":
                gain, error = auc_gain(self._steps, max(2, options.window), name)
            else:
                gain, error = paired_gain(self._steps, measure, name)
            if name == "random":
                error = with_draws(error, spread, options.n_draws)
            items.append((label, gain, error))
        return [item for item in items if math.isfinite(item[1])]

    def _featureless(self, total: dict[str, float], measure: str) -> str:
        """Return a clause on a baseline without features that is as good."""
        names = {"mae": ("mean", "last"), "accuracy": ("majority", "no_change")}.get(measure, ())
        worse = -1.0 if measure == "mae" else 1.0
        known = {name: total.get(f"{name}_{measure}", math.nan) for name in names}
        ahead = {name: value for name, value in known.items() if worse * (value - total[measure]) >= 0}
        if not ahead:
            return ""
        name = max(ahead, key=lambda one: worse * ahead[one])
        labels = {key: label for key, label, _, _ in _BASELINES} | {"majority": "majority-class baseline"}
        return f"; the {labels[name]}, which uses no feature, reaches {_written(measure)(ahead[name])}"

    def about(self) -> str:
        """Return the rows, the order of test and training, the models, and notes on dependence and threshold."""
        if not self._n_steps:
            return ""
        options, learner = self.options, self.settings.get("learner")
        order = _ORDERS.get(options.protocol, "")
        if delay := options.delay:
            when = (
                f"{plural(delay, 'row', 'rows')} after it" if isinstance(delay, int) else "by the label times"
            )
            order = f", each before its label arrived, {when}"
        rows = plural(int(np.sum(self._steps["n_rows"])), "row was", "rows were")
        chosen = ", the batch size chosen by the labels" if options.batch_size == "auto" else ""
        said = [f"{rows} predicted in {plural(self._n_steps, 'batch', 'batches')}{chosen}{order}."]
        if learner:
            scaled = " on standardised features" if self.settings.get("scale") == "standard" else ""
            said.append(f"Learner: {learner['class'].rpartition('.')[2]}{scaled}.")
        if not self._has_selection:
            said.append("Without a selector, the learner used every feature.")
        if note := self.dependence_note():
            said.append(f"The {note}.")
        return " ".join([*said, *filter(None, [self.threshold_note()])])

    def headline(self) -> list[Figure]:
        """Return the headline numbers."""
        if not self._n_steps:
            return []
        steps, kept = self._steps, self._steps["n_selected"]
        latest = self._last("stability")
        fewest, most, end = int(kept.min()), int(kept.max()), int(kept[-1])
        way = (
            "at every step" if fewest == most else f"at the end; {count(fewest)} to {count(most)} on the way"
        )
        seconds, rows = float(np.nansum(steps["seconds_run"])), float(np.sum(steps["n_rows"]))
        return [
            *(Figure(*one, is_main=False) for one in self._measure_figures()),
            Figure("Mean stability", fraction(self._mean("stability")),
                   f"latest {fraction(latest)}" if np.isfinite(latest) else "nothing to compare"),
            Figure("Features selected", f"{count(end)} of {count(len(self.feature_names))}", way),
            Figure("Rows per second", rate(rows / seconds) if seconds > 0 else MISSING,
                   f"{duration(seconds)} in all"),
        ]  # fmt: skip

    def _measure_figures(self) -> list[tuple[str, str, str]]:
        last = {name: self._last(f"{name}_cumulative") for name in (*MEASURES, "majority_accuracy")}
        value, spared = (100 * self._mean(name) for name in ("rsr", "cucp"))
        truth = [(
            "Selection accuracy", fraction(self._mean("selection_accuracy")),
            f"{value:.0f} % of the relevant features selected, {spared:.0f} % of the others unselected",
        )] * self._has_truth  # fmt: skip
        if self._is_regression:
            r2 = ("R²", fraction(last["r2"]), "1 is perfect, 0 is the mean of all targets")
            return [("Mean absolute error", scientific(last["mae"]), self._beside("mae")), r2, *truth]
        if is_imbalanced(self.summary()):
            return [
                ("Average precision", fraction(last["average_precision"]),
                 f"{fraction(1.0 - last['majority_accuracy'])} at random, the share of the rare class"),
                ("AUC", fraction(last["auc"]), self._beside("auc")),
                ("Recall", fraction(last["recall_at_precision"]), "of the rare class, at a precision of 0.9"), *truth,
            ]  # fmt: skip
        return [
            ("Accuracy", fraction(last["accuracy"]), self._beside("accuracy")),
            ("Kappa", fraction(last["kappa"]), "0 is chance, 1 is perfect"),
            *(truth or [("Balanced accuracy", fraction(last["balanced_accuracy"]), "mean over the classes")]),
        ]

    def _beside(self, measure: str) -> str:
        """Return the same measure for each baseline."""
        known = [(label, self._last(f"{name}_{measure}_cumulative")) for name, label, _, _ in _BASELINES]
        return ", ".join(f"{name} {_written(measure)(one)}" for name, one in known if math.isfinite(one))

    # -- the sections --------------------------------------------------------------------------------------

    def sections(self) -> list[Section]:
        """Return the sections that have something to show."""
        if not self._n_steps:
            return []
        sections = [self._performance()]
        if self.settings.get("comparison"):
            sections.append(self._candidates())
        if self.settings.get("model_columns"):
            sections.append(self._model_columns())
        if self._has_selection:
            sections.append(self._stability())
        if self._has_truth:
            sections.append(self._truth())
        if self._has_selection:
            sections += [self._selection(), *self._reasons(), self._scores(), self._changes()]
        return [*sections, self._costs()]

    def _performance(self) -> Section:
        """Return the measures beside those of the baselines."""
        if self._is_regression:
            charts = [self._measure_chart("mae", "mae"), self._line_chart(
                "rsq", "R²", [self._line("r2_windowed", self._window), self._line("r2_cumulative", "whole run", 2)],
                (-1, 1),
            )]  # fmt: skip
            said = [
                "Error of the learner on each batch, with the features selected at that time; the mean"
                " absolute error is"
                " in the units of the target. The baselines that predict the mean of all targets so far, or the last"
                " target, use no feature; the learner should have a smaller error."
            ]
        else:
            is_rare = is_imbalanced(self.summary())
            first = self._measure_chart("auc", "auc") if is_rare else self._measure_chart("acc", "accuracy")
            second = self._measure_chart("acc", "accuracy") if is_rare else self._quality_chart()
            charts = [first, second]
            said = [
                "Accuracy of the learner on each batch, with the features selected at that time. For"
                " imbalanced classes,"
                f" read balanced accuracy and kappa over the {self._window}. The majority-class and no-change baselines"
                " use no feature; the learner should be more accurate."
            ]
        measure = "mae" if self._is_regression else "accuracy"
        if self._is_known(f"frozen_{measure}_cumulative"):
            after = plural(self.options.frozen_after, "row", "rows")
            said.append(
                f"The frozen selection has the same number of features, selected once after {after} by an L1-penalised"
                " logistic or linear regression, for a copy of the same learner."
            )
        if self._is_known(f"random_{measure}_cumulative"):
            draws = plural(self.options.n_draws, "draw", "draws")
            spread = self._last("random_spread_cumulative")
            deviation = f", standard deviation {_written(measure)(spread)}" if math.isfinite(spread) else ""
            said.append(
                "Random subsets have the same number of features, for copies of the same learner: mean of"
                f" {draws}{deviation}."
            )
        if self._is_known("average_precision_windowed"):
            positive = shorten(repr(self.settings.get("positive")), 300)
            said.append(
                f"Average precision and recall at a precision of 0.9 are for the rarer class, {positive}."
            )
        title = "Errors" if self._is_regression else "Accuracy"
        tables = [self._measure_table(), self._course_table()]
        items = [*charts, Remark(" ".join(said), "note"), *tables]
        return Section("errors" if self._is_regression else "accuracy", title, items)

    def _listed_measures(self) -> list[tuple[str, str, bool]]:
        """Return the measures that have a value, and their baselines: column, label, whether it is a baseline."""
        if self._is_regression:
            known = ["mae", "r2"]
        else:
            first = _OF_RANKING if is_imbalanced(self.summary()) else ()
            known = [*first, "accuracy", "balanced_accuracy", "kappa", "macro_auc", *_OF_RANKING]
        listed = []
        for name in dict.fromkeys([*known, *self.settings.get("metrics", ())]):
            if self._is_known(f"{name}_cumulative"):
                listed.append((name, MEASURES.get(name, name), False))
                beside = [(f"{key}_{name}", label, True) for key, label, _, _ in _BASELINES]
                listed += [one for one in beside if self._is_known(f"{one[0]}_cumulative")]
        return listed

    def _measure_table(self) -> Table:
        """Return each measure over the run and over the recent rows, with those of the baselines below it."""
        rows: list[list[Cell]] = []
        for name, label, is_baseline in self._listed_measures():
            values = [_written(name)(self._last(f"{name}_{part}")) for part in ("cumulative", "windowed")]
            first: Cell = Score(f"   {label}", is_aside=True) if is_baseline else label
            rows.append([first, *(Score(value, is_best=not is_baseline) for value in values)])
        return Table("Measures", [("", ""), ("n", "whole run"), ("n", self._window)], rows, is_main=True)

    def _course_table(self) -> Table:
        """Return the run over time as a table."""
        steps, columns = self._steps, dict[str, tuple[str, Written]]()
        main = "mae" if self._is_regression else "accuracy"
        columns[f"{lower(MEASURES[main])}, whole run"] = (f"{main}_cumulative", _written(main))
        for name, label, is_baseline in self._listed_measures():
            if not is_baseline or name.endswith(f"_{main}"):
                title = self._window if name == main else lower(label)
                columns[title] = (f"{name}_windowed", _written(name))
        columns["stability"] = ("stability", fraction)
        starts = bucket_starts(self._n_steps, _TABLE_ROWS)
        ends = np.append(starts[1:], self._n_steps) - 1
        rows = [
            [
                count(steps["n_seen"][end]),
                *(written(steps[column][end]) for column, written in columns.values()),
                count(steps["n_selected"][end]),
                *(count(np.sum(steps[column][start : end + 1])) for column in ("n_entered", "n_left")),
            ]
            for start, end in zip(starts, ends, strict=True)
        ]
        head = [("n", name) for name in ("rows seen", *columns, "kept", "entered", "left")]
        note = "Entered and left are counted since the line above."
        return Table("The run over time", head, rows, note, is_folded=True)

    def _stability(self) -> Section:
        if not self._is_known("stability"):
            said = "Stability is undefined: it needs two selections that contain some but not all features."
            return Section("stability", "Stability", [Remark(said, "note")])
        steps, window = self._steps, self.options.stability_window
        which = f"the last {count(window)} selections" if isinstance(window, int) else "the latest selections"
        said = (
            f"Similarity of {which} by the measure of Nogueira: 1 for identical sets, 0 in expectation for random"
            " ones."
        )
        line, y = self._line("stability", "stability"), axis(*limits(steps["stability"], within=(-1, 1)))
        chart = self._line_chart("sta", "Stability", [line], y=y, shape="wide", is_main=True)
        return Section("stability", "Stability", [said, chart])

    def _truth(self) -> Section:
        said = (
            "The relevant features of this stream are known at every row. Selection accuracy is 0.7 times the share of"
            " relevant features that are selected plus 0.3 times the share of irrelevant features that are not: 0.3 for"
            " the empty set, 0.7 for all features."
        )
        lines = [
            self._line("selection_accuracy", "selection accuracy"),
            self._line("rsr", "relevant, selected (RSR)", 3),
            self._line("cucp", "irrelevant, unselected (CUCP)", 4),
        ]
        items: list[Any] = [said, self._line_chart("tru", "Selection accuracy", lines, (0, 1), shape="wide")]
        rows = [[count(round(at))] for at in self.drift_rows]
        score, name = ("r2_windowed", "R²") if self._is_regression else ("accuracy_windowed", "accuracy")
        for column in (score, "selection_accuracy") if rows else ():
            back = self.recovery(column)
            for row, drop, until in zip(rows, back.drops, back.rows, strict=True):
                row += [fraction(drop), count(round(until)) if np.isfinite(until) else "not recovered"]
        if rows:
            head = (
                "true drift at row", f"{name} fell by", "recovery (rows)", "selection fell by", "recovery (rows)",
            )  # fmt: skip
            note = (
                "Recovered: at most 0.05 below the median before the drift. The"
                f" {name} is windowed, so it falls and recovers with a delay of up to the length of the window."
            )
            items.append(Table("After each true drift", [("n", one) for one in head], rows, note))
        return Section("truth", "Selection and truth", items)

    def _selection(self) -> Section:
        selection, n = self.history.map(), len(self.feature_names)
        n_shown, n_never = len(selection.names), n - selection.n_ever
        is_cut = n_shown < selection.n_ever
        longest = f"The {count(n_shown)} selected longest of" if is_cut else f"{count(n_shown)} of"
        has_truth = selection.relevant is not None
        order = "those that were ever relevant first" if has_truth else "the one selected longest first"
        said = (
            f"{'All' if n_shown == n else longest} {plural(n, 'feature', 'features')}, {order}. Colour shows when a"
            " feature was selected (paler: part of the time); the number at the right is the share of the run."
        )
        if n_never:
            said += f" {count(n_never)} {'was' if n_never == 1 else 'were'} never selected."
        chart = self.map_chart(selection, is_main=True)
        return Section(
            "selection", "Selection", [said, chart, Names(self.selected(), 60, "Selected at the end")]
        )

    def map_chart(
        self, selection: SelectionMap, key: str = "map", title: str = "Features selected", **how: Any
    ) -> Chart:
        """Return the chart of the selected features over time, a row of pixels for each, with the truth where known."""
        marks = [VerticalLines(self.drift_rows)]
        if self.event is not None:
            marks.append(VerticalLines(np.array([float(self.event[0])]), self.event[1]))
        begin = float(self._steps["n_seen"][0] - self._steps["n_rows"][0])
        chart = selection.chart(self._x(4), marks, self.selected(), key, title, begin)
        return replace(chart, **how)

    def _reasons(self) -> list[Section]:
        """Return relevance and redundancy of the features, if the selector has them."""
        frame = self.frames.get("reasons")
        if frame is None:
            return []
        title, rows = "Relevance and redundancy", dict[bool, Indices]()
        for kept in (False, True):
            mine = np.flatnonzero((frame["selected"] == 1) == kept)
            rows[kept] = mine[np.argsort(-frame["alone"][mine], kind="stable")][:12]
        both = np.concatenate([*rows.values()])
        top = float(max(frame[name][both].max(initial=0.0) for name in ("alone", "added")))
        if top <= 0.0:
            return [Section("reasons", title, [Remark("No feature is informative yet.", "note")])]

        def cells(j: int) -> list[Cell]:
            bars = (Meter(96 * max(float(frame[name][j]), 0.0) / top, fraction(float(frame[name][j])), colour)
                    for name, colour in (("alone", 2), ("added", 1)))  # fmt: skip
            return [Names([str(frame["name"][j])]), *bars]

        def beside(j: int) -> Cell:
            return Names([str(frame["redundant_to"][j])] if frame["redundant_to"][j] else [])

        said = (
            "Share of the target's variation that a feature explains at the end of the run: alone, and in"
            " addition to the"
            " selected features. A feature that is informative alone but adds little is redundant; the last"
            " column names"
            " the selected feature that it is most redundant with. The shares are conservative while there"
            " are few rows."
        )
        head = [("", "feature"), ("share", "alone")]
        left = Table("Unselected, most informative alone",
                     [*head, ("share", "given the selected"), ("", "redundant to")],
                     [[*cells(j), beside(j)] for j in rows[False].tolist()])  # fmt: skip
        kept_table = Table("Selected, most informative alone", [*head, ("share", "added when selected")],
                           [cells(j) for j in rows[True].tolist()])  # fmt: skip
        return [Section("reasons", title, [said, *([left] if left.rows else []), kept_table])]

    def _scores(self) -> Section:
        lines = self._score_lines()
        if not lines:
            return Section(
                "scores", "Scores", [Remark("The selector has no scores, or none were tracked.", "note")]
            )
        which = f"The {len(lines)} features" if len(lines) > 1 else "The feature"
        said = (
            f"{which} with the highest scores over the run, ordered by the last score, which the legend shows. A larger"
            " score is more relevant. A line has a gap where its feature is not tracked."
        )
        y = axis(*limits(np.empty(0), *(line.y for line in lines)))
        chart = self._line_chart("sco", "Score", lines, y=y, shape="wide", is_main=True)
        return Section("scores", "Scores", [said, chart])

    def _score_lines(self, n_lines: int = _LINES) -> list[Line]:
        """Return the scores of the features that ranked highest over the whole run, the last leader first.

        At each record of the scores, a feature earns a point for every tracked feature that does not exceed it.
        """
        frame, steps = self.frames.get("scores", {}), self._steps
        feature = np.asarray(frame.get("feature", ()), np.intp)
        score = np.asarray(frame.get("score", ()), np.float64)
        if not np.isfinite(score).any():
            return []
        recorded, record = np.unique(frame["step"], return_inverse=True)
        order = np.lexsort((score, record))
        first = np.searchsorted(record[order], np.arange(len(recorded)))
        rank = np.arange(len(order)) - first[record[order]] + 1
        points = np.bincount(feature[order], weights=rank)
        at = np.asarray(steps["n_seen"], np.float64)[np.searchsorted(steps["step"], recorded)]
        leaders = []
        for j in np.argsort(-points, kind="stable")[:n_lines]:
            mine = (feature == j) & np.isfinite(score)
            scores = np.full(len(recorded), np.nan)
            scores[record[mine]] = score[mine]
            if mine.any():
                leaders.append((float(scores[~np.isnan(scores)][-1]), str(self.feature_names[j]), scores))
        leaders.sort(key=lambda one: -one[0])
        return [
            Line(at, scores, name, style, note=scientific(last))
            for style, (last, name, scores) in enumerate(leaders, start=1)
        ]

    def _changes(self) -> Section:
        latest, largest = self.history.largest_changes(10), self.history.largest_changes(6, by_size=True)
        if not latest:
            return Section("changes", "Changes", [Remark("The selected set never changed.", "note")])
        n_changed = len(np.unique(self.frames["changes"]["step"])) - 1
        said = (
            f"After the first selection, the set changed at {count(n_changed)} of"
            f" {plural(self._n_steps, 'step', 'steps')}."
        )
        tables = [_changes_table("Latest changes", latest)]
        if largest[0].n_features > max(change.n_features for change in latest):
            tables.append(_changes_table("Largest changes", largest))
        return Section("changes", "Changes", [said, self._change_chart(), *tables])

    def _change_chart(self) -> Chart:
        """Return the chart of the number of features that entered (up) and left (down)."""
        entered, left, edges = self.history.change_counts(160)
        values = np.concatenate([entered, left])
        # A single large change is cut off rather than flatten the others.
        usual = 1.5 * float(np.percentile(values[values > 0], 98)) if (values > 0).any() else 1.0
        top = min(usual, float(values.max())) or 1.0
        n_cut = int(np.sum((entered > top) | (left > top)))
        longer = plural(n_cut, "bar", "bars")
        cut = f" Cut off: {longer}, the longest {scientific(values.max())}." if n_cut else ""
        several = self._n_steps > len(entered)
        part = "part of the run" if several else "batch"
        said = f"Up to {count(entered.max())} features entered and {count(left.max())} left in a {part}."
        marks = [Bars(edges, entered, "entered", 1), Bars(edges, -left, "left", 2)]
        y = axis(-top, top, 5, lambda value: whole_number(abs(value)))
        parts = f"in {len(entered)} parts of the run" if several else "per batch"
        title, caption = "Features that entered and left", f"{parts}, by rows seen.{cut}"
        return Chart("cha", title, caption, said, self._x(), y, marks, "wide low")

    def _costs(self) -> Section:
        steps, total = self._steps, self.summary()
        each = {"selector": (steps["seconds_select"], 1), "prediction": (steps["seconds_predict"], 2),
                "learner": (steps["seconds_learn"], 3)}  # fmt: skip
        spent = {name: total.get(f"seconds_{key}", math.nan) for key, name in _TIMED.items()}
        spent = {name: seconds for name, seconds in spent.items() if seconds > 0}
        whole, rows = sum(spent.values()) or 1.0, list[list[Cell]]()
        for name, seconds in spent.items():
            meter = Meter(
                100 * seconds / whole, f"{100 * seconds / whole:.0f} %", each[name][1] if name in each else 6
            )
            slow = duration(float(np.nanpercentile(each[name][0], 95))) if name in each else ""
            rows.append([name, meter, duration(seconds), duration(seconds / self._n_steps), slow])
        head = [
            ("", "part"), ("share", "share"), ("n", "in all"), ("n", "mean per batch"), ("n extra", "slowest 5 % from"),
        ]  # fmt: skip
        # Each point is a mean, as single batches vary with the machine's load.
        at = mean_per_bucket(self._steps["n_seen"], 100)
        lines = [
            Line(at, 1e3 * mean_per_bucket(seconds, 100), name, style)
            for name, (seconds, style) in each.items()
        ]
        y = axis(0, limits(*(line.y for line in lines))[1], unit="milliseconds")
        charts = [self._line_chart("tim", "Time per batch", lines, y=y)]
        memory = self._line("memory_bytes", "memory")
        if np.max(memory.y) > 0:
            y = axis(0, limits(memory.y)[1], 5, size)
            charts.append(self._line_chart("mem", "Memory of the process", [memory], y=y))
        return Section("costs", "Time and memory", [Table("Time by stage", head, rows), *charts])

    # -- candidates of Auto --------------------------------------------------------------------------------

    def _candidates(self) -> Section:
        """Return the selected candidate over time, the accuracy of each, and the reason of each switch."""
        course: dict[str, Any] = self.settings["comparison"]
        shares = {candidate: share for candidate, share in course["share"].items() if share > 0}
        longest = ", ".join(f"{candidate} ({share:.0%})" for candidate, share in list(shares.items())[:3])
        n_restarts = len(course["restarts"])
        again = f" The learners restarted {plural(n_restarts, 'time', 'times')}." if n_restarts else ""
        said = (
            f"{plural(len(course['candidates']), 'candidate was', 'candidates were')} compared: selectors with several"
            f" subset sizes, each with its own learner. Selected longest: {longest}; at the end,"
            f" {course['followed'][-1]}.{again} {_candidate_verdict(course)}"
        )
        charts = [self._followed_chart(course, list(shares)), self._candidate_chart(course)]
        table = _switches(course) or Remark("The selected candidate never changed.", "note")
        return Section("comparison", "Candidates", [said, *charts, table])

    def _followed_chart(self, course: dict[str, Any], candidates: list[str]) -> Chart:
        """Return the chart of the selected candidate over time, a row of pixels for each."""
        n_seen = self._steps["n_seen"]
        edges = np.linspace(float(n_seen[0] - self._steps["n_rows"][0]), float(n_seen[-1]), 201)
        at = np.searchsorted(np.asarray(course["n_seen"], np.float64), (edges[:-1] + edges[1:]) / 2)
        followed = np.array(course["followed"], dtype=object)[np.minimum(at, len(course["followed"]) - 1)]
        shares = np.array([(followed == candidate).astype(np.float64) for candidate in candidates])
        kept = np.array([course["share"][candidate] for candidate in candidates])
        selection = SelectionMap(candidates, kept, shares, None, len(candidates))
        last = [course["followed"][-1]]
        return selection.chart(self._x(4), [], last, "who", "Selected candidate", float(edges[0]))

    def _candidate_chart(self, course: dict[str, Any]) -> Chart:
        """Return the chart of the criterion: recent accuracy of each selector's best candidate."""
        at = np.asarray(course["n_seen"], np.float64)
        best = {candidate.split(" ")[0]: candidate for candidate in reversed(course["accuracy"])}
        candidates = [candidate for candidate in course["accuracy"] if candidate in best.values()][:_LINES]
        lines = [
            Line(at, np.asarray(course["accuracy"][candidate]), candidate, style)
            for style, candidate in enumerate(candidates, start=1)
        ]
        late = at >= min(500.0, at[-1] / 2)  # the first rows are noisy, and would stretch the axis
        y = axis(*limits(*(line.y[late] for line in lines), within=(0, 1)))
        measure = lower(NAME_OF[course.get("measure", "accuracy")])
        title = f"Recent {measure} of the best candidate of each selector, with its own learner"
        return self._line_chart("arm", title, lines, y=y, shape="wide")

    def _model_columns(self) -> Section:
        """Return what each refit of a learner selected, and the candidates that it chose from."""
        course: dict[str, Any] = self.settings["model_columns"]
        refits, last = course["refits"], course["refits"][-1]
        rows: list[list[Cell]] = [
            [
                count(one["row"]), one["candidate"], count(one["n_columns"]), scientific(one["price"]),
                *(Names([self.feature_names[j] for j in one[name]]) for name in ("entered", "left")),
            ]
            for one in refits[-_TABLE_ROWS:]
        ]  # fmt: skip
        heads = [
            ("n", "rows seen"), ("", "candidate"), ("n", "features"), ("n", "price"),
            ("half", "entered"), ("half", "left"),
        ]  # fmt: skip
        losses: list[list[Cell]] = [
            [
                Score(one["candidate"], is_best=one["candidate"] == last["candidate"]), count(one["n_columns"]),
                fraction(one["loss"]), signed(one["behind_all"]), fraction(one["behind_all_error"]),
            ]
            for one in course["candidates"]
        ]  # fmt: skip
        said = (
            f"Each refit selects the features of the learner; since row {count(last['row'])} they are"
            f" {count(last['n_columns'])}, at a price of {scientific(last['price'])}."
        )
        note = "Loss: Brier score or squared error, relative to that of a constant, on up to 3,000 rows after the fits."
        return Section("model-columns", "Features of the learner", [
            said, Table("Refits", heads, rows),
            Table("Candidates", [
                ("", "candidate"), ("n", "features"), ("n", "loss"), ("n", "against all"), ("n", "standard error"),
            ], losses, note),
        ])  # fmt: skip

    # -- charts --------------------------------------------------------------------------------------------

    @property
    def _window(self) -> str:
        """The label of the window of the windowed measures."""
        window = self.options.window
        return f"last {plural(window, 'row', 'rows')}" if isinstance(window, int) else "recent rows"

    def _x(self, n_ticks: int = 5) -> Axis:
        """Return the horizontal axis that all charts share; names leave little room for ticks on a phone."""
        n_seen = self._steps["n_seen"]
        return row_count_axis(float(n_seen[-1]) if len(n_seen) else 1.0, n_ticks)

    def _line(self, column: str, name: str, style: int = 1, is_thin: bool = False) -> Line:
        return Line(self._steps["n_seen"], self._steps[column], name, style, is_thin)

    def _line_chart(
        self, key: str, title: str, lines: Sequence[Line], within: tuple[float, float] | None = None, *,
        y: Axis | None = None, shape: str = "", is_main: bool = False,
    ) -> Chart:  # fmt: skip
        """Return a chart of lines over the rows seen, the first on top."""
        said = "; ".join(f"{shorten(one.name, 40)}: {trend(np.asarray(one.y, np.float64))}" for one in lines)
        caption = "by rows seen; dotted: true drifts" if len(self.drift_rows) else "by rows seen"
        marks: list[Mark] = [*lines, VerticalLines(self.drift_rows)]
        vertical = y or axis(*limits(*(line.y for line in lines), within=within))
        said = f"{said}. Horizontal: rows seen."
        return Chart(key, title, caption, said, self._x(), vertical, marks, shape, is_main=is_main)

    def _measure_chart(self, key: str, measure: str) -> Chart:
        """Return the chart of a measure and of its baselines."""
        lines = [
            self._line(f"{measure}_windowed", self._window), self._line(f"{measure}_cumulative", "whole run", 2),
            *(
                self._line(column, label, style, is_thin)
                for name, label, style, is_thin in (*_BASELINES[3:], *_BASELINES[:3])
                if self._is_known(column := f"{name}_{measure}_windowed")
            ),
        ]  # fmt: skip
        within = (0.0, np.inf if measure == "mae" else 1.0)
        is_main = measure == "mae" or (measure == "auc") == is_imbalanced(self.summary())
        return self._line_chart(key, MEASURES[measure], lines, within, is_main=is_main)

    def _quality_chart(self) -> Chart:
        """Return the chart of the measures besides accuracy: balanced accuracy, kappa and ranking."""
        candidates = (
            ("auc", "AUC", 1, False), ("macro_auc", "macro AUC", 1, False),
            ("average_precision", "average precision", 2, False),
            ("recall_at_precision", "recall at precision 0.9", 5, False),
            ("balanced_accuracy", "balanced accuracy", 4, False), ("kappa", "kappa", 3, False),
            ("frozen_auc", "AUC of the frozen selection", 7, True), ("random_auc", "AUC of random subsets", 6, True),
        )  # fmt: skip
        lines = [
            self._line(f"{name}_windowed", label, style, is_thin)
            for name, label, style, is_thin in candidates
            if name in ("balanced_accuracy", "kappa") or self._is_known(f"{name}_windowed")
        ]
        title = "Ranking, balanced accuracy and kappa" if len(lines) > 2 else "Balanced accuracy and kappa"
        return self._line_chart("kap", title, lines, (-1, 1))

    # -- elsewhere -----------------------------------------------------------------------------------------

    def reproduce(self) -> Reproduction:
        """Return the shell command, if it can express the run, the lines of Python, and all settings."""
        results = ("comparison", "model_columns")
        own = {name: value for name, value in self.settings.items() if name not in results}
        return Reproduction(command_line(self.settings) or "", snippet(self.settings), own)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values: the keys are in the table of JSON keys in the documentation."""
        summary, shown = self.summary(), self.history.map(max_features=100)
        return {
            "verdict": self.verdict(),
            "summary": {
                name: int(n) if name.startswith("n_") and n == n else n for name, n in summary.items()
            },
            "remarks": [str(remark) for remark in self.remarks()],
            "dependence": self.settings.get("dependence"),
            "selected": self.selected(),
            "chosen": dict(zip(shown.names, shown.kept.tolist(), strict=True)),
            "settings": self.settings,
        }


def _written(measure: str) -> Written:
    is_share = measure.endswith(tuple(MEASURES)) and not measure.endswith("mae")
    return fraction if is_share else scientific


def _changes_table(title: str, changes: Sequence[Change]) -> Table:
    rows: list[list[Cell]] = [[count(one.n_seen), Names(one.entered), Names(one.left)] for one in changes]
    return Table(title, [("n", "rows seen"), ("half", "entered"), ("half", "left")], rows)


# The loss that candidates of Auto are compared by, by its key.
_LOSS_OF = {
    "brier": "relative Brier score", "accuracy": "error rate", "auc": "loss in AUC", "mae": "relative error",
}  # fmt: skip


def _candidate_verdict(course: Mapping[str, Any]) -> str:
    """Return a sentence that compares the final set with the best one."""
    candidate, behind, most = course["followed"][-1], course["behind"], course["tolerance"]
    word = _LOSS_OF[course.get("objective", course["measure"])]
    said = [
        f"{lost:+.3f} ± {error:.3f} against {name}"
        for name, (lost, error) in course.get("regret", {}).items()
        if name != candidate
    ]
    beside = f" Its {word}, with the standard error of the difference: {', '.join(said)}." if said else ""
    if candidate == "all":
        nearest = min((one for one in behind if one != "all"), key=lambda one: behind[one])
        return (
            f"Every feature is selected: the {word} of the best smaller set, {nearest}, is larger by"
            f" {behind[nearest]:.3f}; {most:g} is tolerated, including one standard error of the difference.{beside}"
        )
    best = min(behind, key=lambda one: behind[one])
    return (
        f"At the end, the {word} of {candidate} is {behind[candidate]:.3f} above that of the best set, {best}. For"
        f" fewer features, {most:g} is tolerated, including one standard error of the difference.{beside}"
    )


def _switches(course: Mapping[str, Any]) -> Table | None:
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
