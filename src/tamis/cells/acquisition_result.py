"""A classifier that acquires values, evaluated on held-out rows: losses, accuracy against cost, and single rows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from tamis._validation import Array, Floats, Mask, as_rows
from tamis.base import PriceList
from tamis.base.cells import missingness_text
from tamis.cells import evaluation
from tamis.report.charts.axes import draw, new_figure, plain_text
from tamis.report.charts.chart import Band, Bars, Chart, Line, Mark, axis, limits, percent, whole_number
from tamis.report.content import Cell, Figure, Group, Names, Remark, Reproduction, Score, Section, Table
from tamis.report.result import Result
from tamis.report.text import count, fraction, plural, scientific, shorten, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from tamis.cells import Acquisition, CellClassifier

_ROWS = 1000  # held-out rows whose acquisitions are recorded
_MOST_COLUMNS, _MOST_CLASSES = 20, 6
_FIRST = 5  # points of each other method that the chart always shows
# Key, title and range of the chart of each measure, and its name in a table.
_MEASURES = {
    "accuracy": ("cos", "Accuracy", (0.0, 1.0), "accuracy"),
    "auc": ("cau", "AUC", (0.0, 1.0), "AUC"),
    "error": ("cse", "Squared error as a share of the variance", (0.0, np.inf), "squared error"),
}


class AcquisitionResult(Result):
    """A fitted classifier that acquires values, and its results on held-out rows.

    Parameters
    ----------
    model : CellClassifier
        Fitted to `X` and `y`. Copies of it are fitted at other prices, for the curve of a page.
    X, y : training rows and labels
    X_held, y_held : held-out rows and labels
    title : str
        The data, for the heading.
    candidates : sequence of dict
        The methods that were compared to choose this one: "name", "loss", "ahead" of the first and its "error".
    on_progress : callable, optional
        Called with the completed fraction and the name of the next step, while a page is made.

    Examples
    --------
    >>> from tamis import IFC2F
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 4)) + 2 * y[:, None]
    >>> model = IFC2F(random_state=0).fit(X[:300], y[:300])
    >>> page = AcquisitionResult(model, X[:300], y[:300], X[300:], y[300:]).report()
    >>> "Accuracy against cost" in page
    True
    """

    def __init__(
        self, model: CellClassifier, X: Any, y: Any, X_held: Any, y_held: Any, title: str = "held-out rows", *,
        candidates: Sequence[dict[str, Any]] = (), on_progress: Callable[[float, str], None] | None = None,
    ) -> None:  # fmt: skip
        self.model, self.X, self.y, self.y_held = model, X, y, np.asarray(y_held)
        self.X_held = evaluation.completed(model, X_held, self.y_held)
        self._title, self.candidates, self._on_progress = title, candidates, on_progress

    # -- numbers -------------------------------------------------------------------------------------------

    @property
    def _sides(self) -> tuple[CellClassifier, Any, Any, Any, Any]:
        return self.model, self.X, self.y, self.X_held, self.y_held

    @cached_property
    def baselines(self) -> list[evaluation.Baseline]:
        """Results of the model, and of simpler ones, on the held-out rows."""
        return evaluation.baselines(*self._sides)

    @cached_property
    def gain(self) -> evaluation.Gain:
        """Gain of the model over the same values for every row."""
        return evaluation.gain_over_fixed(*self._sides)

    @cached_property
    def curves(self) -> list[evaluation.Curve]:
        """Measures against mean cost."""
        return evaluation.cost_curves(*self._sides, self._on_progress)

    @cached_property
    def _predictions(self) -> tuple[Any, Mask, Array, Floats]:
        """The predictions, whether each is right (a number: within one standard deviation), its values and its cost."""
        posterior = self.model.predict_proba(self.X_held)
        predicted = self.model._decide(posterior)
        deviation = self.model._deviation(posterior)
        right = (
            predicted == self.y_held if deviation is None else np.abs(predicted - self.y_held) <= deviation
        )
        return predicted, right, self.model.n_features_used_.copy(), self.model.cost_.copy()

    @cached_property
    def _traces(self) -> list[Acquisition]:
        rows = self.X_held if self.model.categories_ else as_rows(self.X_held)[0]
        traces: Any = self.model.acquire(rows[:_ROWS])
        return list(traces)

    @property
    def _is_number(self) -> bool:
        return self.model._is_regression

    @property
    def _measure(self) -> str:
        return "r2" if self._is_number else "accuracy"

    # -- above the sections --------------------------------------------------------------------------------

    def heading(self) -> str:
        """Return the method and the data."""
        return f"{evaluation.method_name(self.model)} on {self._title}"

    def verdict(self) -> str:
        """Return whether acquiring different values for each row pays, against the same values for every row."""
        if not len(self.y_held):
            return "No rows are held out, so nothing is known about the model."
        gain = self.gain
        if gain.n_values == 0:
            return "Nothing is acquired: no value is worth its price on these data."
        worse = "has a higher loss" if gain.prices_differ else "is less accurate"
        how = "pays" if gain.low > 0 else worse if gain.high < 0 else "has no proven advantage"
        form = scientific if gain.prices_differ else fraction
        if gain.low == gain.high == 0.0:
            name = "a squared error, as a share of the variance, of" if self._is_number else "an accuracy of"
            name = "a loss per row of" if gain.prices_differ else name
            return (
                f"The same {gain.n_values:.2f} values are acquired for every row, with {name} {form(gain.fixed)}: no"
                " choice that differs by row is better on these data."
            )
        sign = -1.0 if gain.prices_differ or self._is_number else 1.0  # of a loss, a gain is a reduction
        ends = sorted((sign * gain.low, sign * gain.high))
        what = "accuracy changes" if sign > 0 else "the squared error, as a share of the variance, changes"
        if gain.prices_differ:
            what = "the loss per row, errors and prices, changes"
        beside = f"{gain.n_values:.2f} values per row, the same for every row"
        if gain.prices_differ:
            beside = "the same values for every row, each worth its price"
        return (
            f"Instance-wise acquisition {how}: {what} by {signed(sign * gain.mean, form)} (95 % interval"
            f" {signed(ends[0], form)} to {signed(ends[1], form)}) from {form(gain.fixed)} with {beside}."
        )

    def about(self) -> str:
        """Return the numbers of rows, classes and features, and the cost of errors."""
        model = self.model
        asked = f"{len(model.candidates_):,} of {plural(model.n_features_in_, 'feature', 'features')}"
        kinds = (
            ", a numeric target"
            if self._is_number
            else f", {plural(len(model.classes_), 'class', 'classes')}"
        )
        said = f"{plural(len(self.y), 'training row', 'training rows')}{kinds}; may ask for {asked}."
        if not len(self.y_held):
            return said
        cost = "A wrong decision costs 1 unless other costs were given."
        if self._is_number:
            cost = f"A squared error of its variance costs {model._unit_loss:g}."
        return f"{said} {plural(len(self.y_held), 'row', 'rows')} were not used in fitting. {cost}"

    def remarks(self) -> list[str]:
        """Return what decides in place of the method, and what qualifies the figures."""
        remarks, own = list[Any](), type(self.model).__name__
        if evaluation.method_name(self.model) != own:
            how = f"calibrate='never' ({own} itself: --set calibrate=never)"
            remarks.append(Remark(f"{own} is decided by {self.model.decided_by_}; {how} omits it.", "note"))
        if self.model.missingness_ is not None:
            remarks.append(f"{missingness_text(self.model)} {self.assumption}")
        if not len(self.y_held) or self._predictions[2].any():
            return remarks
        if self._is_number:
            return [*remarks, "No value is worth its cost: every prediction is the mean."]
        return [
            *remarks,
            "No value is worth its cost: every decision follows the class proportions.",
            Remark("To rank rows by probability instead: --method adaptive --set objective=auc", "note"),
        ]

    @property
    def assumption(self) -> str:
        """What the figures of the held-out rows assume about values that were not recorded."""
        if self.model.missingness_ is None:
            return "An unavailable value is skipped and costs nothing."
        if self.model.missingness == "informative":
            return "The held-out figures assume that values are recorded for the same reason where the model is used."
        return (
            "The model does not use this as evidence. The held-out figures are those of rows whose values are all"
            " available: a value that was not recorded is drawn from recorded ones of the same class and of similar"
            " rows."
        )

    def headline(self) -> list[Figure]:
        """Return accuracy, acquired values and costs on the held-out rows."""
        if not len(self.y_held):
            return []
        predicted, right, acquired, cost = self._predictions
        losses = self.model._losses(self.y_held, predicted)
        first = Figure("Accuracy", fraction(float(right.mean())), is_main=False)
        if self._is_number:
            share = f"{losses.mean() / self.model._unit_loss:.3f}"
            first = Figure("Squared error", share, "of the variance", is_main=False)
        figures = [
            (
                "Acquired values",
                f"{acquired.mean():.2f}",
                f"per row, of {count(self.model.n_features_in_)} features",
            ),
            ("Paid", scientific(float(cost.mean())), "per row"),
            ("Errors and prices", scientific(float((losses + cost).mean())), "per row"),
            ("Decided without a value", f"{np.mean(acquired == 0):.0%}", "of the rows"),
        ]
        if (last := self.baselines[-1]).name.startswith("all"):
            figures.append(
                ("All features", fraction(last.accuracy), f"{last.name}, for {scientific(last.cost)}")
            )
        return [first, *(Figure(*one, is_main=False) for one in figures)]

    # -- the sections --------------------------------------------------------------------------------------

    def sections(self) -> list[Section]:
        """Return the losses beside those of simpler models, the curves, and the paths of single rows."""
        sections = self.main_sections()
        if not len(self.y_held):
            return sections
        title = f"{'Squared error' if self._is_number else 'Accuracy'} against cost"
        said = (
            "The model at a tenth to ten times its prices, beside a fixed subset, whose values are the same"
            " for every row,"
            " and gradient boosting on random values. Dashed lines use every feature. The band is the 95 %"
            " interval of the"
            " model on these rows."
        )
        known = [
            key
            for key in self.curves[0].measures
            if all(np.isfinite(one.measures[key].value).all() for one in self.curves)
        ]
        hidden = "Values of the held-out rows are removed at random; an unavailable value is skipped and costs nothing."
        paths = "The prediction for some rows after each value, from the shortest path to the longest."
        return [
            *sections,
            Section("costs", title, [said, *(self.costs_chart(key) for key in known), self._points()]),
            Section("values", "Acquired values", [self._acquired_chart(), self._columns()]),
            Section("missing", "Missing values", [hidden, *self.missing_charts()]),
            Section(
                "paths", "Single rows", [paths, *(self._path(i, right) for i, right in self._example_rows())]
            ),
        ]

    def main_sections(self) -> list[Section]:
        """Return the methods that were compared, and the losses beside those of baselines."""
        tables, rows = list[Table](), list[list[Cell]]()
        if self.candidates:
            for one in self.candidates:
                ahead = "" if one is self.candidates[0] else f"{one['ahead']:+.4f} ± {one['error']:.4f}"
                rows.append([one["name"], f"{one['loss']:.4f}", ahead])
            heads = [("", "method"), ("n", "loss"), ("n", "gain over fixed-subset")]
            tables.append(Table("Comparison of methods, three folds", heads, rows, is_main=True))
        if not len(self.y_held):
            return [Section("losses", "Losses", tables)] if tables else []
        rows = [
            [
                Score(one.name, is_best=one is self.baselines[0]), f"{one.loss:.4f}", fraction(one.accuracy),
                *([] if self._is_number else ["–" if one.auc is None else fraction(one.auc)]),
                f"{one.cost:.4f}", f"{one.n_values:.2f}",
            ]
            for one in self.baselines
        ]  # fmt: skip
        auc = [] if self._is_number else ["AUC"]
        names = ["loss", "R²" if self._is_number else "accuracy", *auc, "price", "values"]
        title = f"{len(self.y_held):,} held-out rows"
        currency = getattr(self.model.cost, "currency", "")
        note = f"Losses and prices are in {currency}." if currency else ""
        losses = Table(title, [("", "method"), *(("n", name) for name in names)], rows, note, is_main=True)
        return [Section("losses", "Losses", [*tables, losses])]

    def _points(self) -> Table:
        rows = []
        for curve in self.curves:
            for i in range(len(curve.cost)):
                row = [curve.name, scientific(float(curve.cost[i])), f"{curve.acquired[i]:.2f}"]
                for own in curve.measures.values():
                    low, high = own.band[:, i].tolist()
                    row += [fraction(float(own.value[i])), f"{fraction(low)} to {fraction(high)}"]
                rows.append(row)
        head = [("", "method"), ("n", "price per row"), ("n", "values")]
        for key in self.curves[0].measures:
            head += [("n", _MEASURES[key][3]), ("n", f"95 % interval of {_MEASURES[key][3]}")]
        return Table("Points of the chart", head, rows, is_folded=True)

    def _columns(self) -> Table:
        """Return a table of the features that are acquired most often."""
        model, places = self.model, dict[Any, list[int]]()
        for trace in self._traces:
            for place, feature in enumerate(trace.features, start=1):
                places.setdefault(feature, []).append(place)
        order = sorted(places, key=lambda feature: -len(places[feature]))[:_MOST_COLUMNS]
        prices = dict(zip(map(model.name_of, range(len(model.candidates_))), model.prices_, strict=True))
        rows: list[list[Cell]] = [
            [
                Names([str(feature)]), f"{len(places[feature]) / len(self._traces):.0%}",
                f"{np.mean(places[feature]):.1f}", scientific(float(prices[feature])),
            ]
            for feature in order
        ]  # fmt: skip
        of = (
            "" if len(self._traces) == len(self.y_held) else f", in the first {count(len(self._traces))} rows"
        )
        head = [("", "feature"), ("n", "rows"), ("n", "mean position"), ("n", "price")]
        return Table(f"Features acquired most often{of}", head, rows)

    def _example_rows(self) -> list[tuple[int, bool]]:
        """Return examples of short, typical and long paths, of right and of wrong decisions."""
        n = np.array([len(trace.features) for trace in self._traces])
        right = self._predictions[1][: len(n)]
        mapping: dict[int, bool] = {}
        for is_right in (True, False):
            mine = np.flatnonzero(right == is_right)
            ranked = mine[np.argsort(n[mine], kind="stable")]
            for share in (0.05, 0.5, 0.99) if len(ranked) else ():
                mapping.setdefault(int(ranked[int(share * (len(ranked) - 1))]), is_right)
        return sorted(mapping.items(), key=lambda item: n[item[0]])

    def _path(self, i: int, is_right: bool) -> Group:
        """Return the chart of the prediction for a row after each value, and a table of the values."""
        trace, true, classes = self._traces[i], self.y_held[i], self.model.classes_
        if self._is_number:
            predicted = self.model._decide(trace.posteriors)
            deviation = self.model._deviation(trace.posteriors)
            assert deviation is not None
            title = f"Row {i}: {predicted[-1]:.4g} ± {deviation[-1]:.2g}"
            caption = f", {'within' if is_right else 'beyond'} one standard deviation of {true:.4g}"
            said = (
                f"Prediction {predicted[-1]:.4g} after {len(trace.features)} values; true value {true:.4g}."
            )
            chart, heading = _number_chart(predicted, deviation, float(true), f"p{i}", title), "prediction"
            moves = [
                f"{before:.4g} → {after:.4g} ± {own:.2g}"
                for (before, after), own in zip(itertools.pairwise(predicted), deviation[1:], strict=True)
            ]
        else:
            chart = path_chart(trace, classes, f"p{i}", f"Row {i}: {shorten(trace.label, 40)}")
            caption = ", right" if is_right else f", wrong, it is {shorten(true, 40)}"
            said = f"Decision {trace.label} after {len(trace.features)} values; true class {true}."
            decided = int(np.flatnonzero(classes == trace.label)[0])
            heading = f"P({shorten(trace.label, 20)})"
            moves = [f"{a[decided]:.3f} → {b[decided]:.3f}" for a, b in itertools.pairwise(trace.posteriors)]
        rows: list[list[Cell]] = [
            [str(step), Names([str(feature)]), shorten(_value_text(value), 30), move]
            for step, (feature, value, move) in enumerate(
                zip(trace.features, trace.values, moves, strict=True), start=1
            )
        ]
        has_texts = any(feature in self.model.categories_ for feature in trace.features)
        head = [("n", ""), ("", "feature"), ("" if has_texts else "n", "value"), ("n", heading)]
        nothing = Remark("No value is worth its price here: the prediction is that of the prior.", "note")
        below = Table(f"Paid {scientific(trace.cost)}", head, rows) if rows else nothing
        return Group([replace(chart, caption=caption, description=said), below])

    # -- charts --------------------------------------------------------------------------------------------

    def costs_chart(self, measure: str = "accuracy") -> Chart:
        """Return the chart of a measure against cost; a method with a single, large cost is a horizontal line.

        The band is the 95 % confidence interval of the model.

        Parameters
        ----------
        measure : {"accuracy", "auc", "error"}
            "error" for numeric targets, the others for classes.
        """
        curves = self.curves
        several = [curve for curve in curves if len(curve.cost) > 1]
        most = max([1.6 * float(several[0].cost.max()), *(float(c.cost[:_FIRST].max()) for c in several[1:])])
        heights = [curve.measures[measure].value for curve in curves]
        band, near = several[0].measures[measure].band, several[0].cost <= most
        marks: list[Mark] = [Band(several[0].cost[near], band[0, near], band[1, near], "95 % interval")]
        for style, curve in enumerate([*several, *(c for c in curves if len(c.cost) == 1)], start=1):
            height = curve.measures[measure].value
            if len(curve.cost) == 1:
                ends, price = np.array([0.0, most]), f"for {scientific(float(curve.cost[0]))}"
                marks.append(Line(ends, np.repeat(height, 2), curve.name, min(style, 6), note=price))
            else:
                near = curve.cost <= most
                marks.append(Line(curve.cost[near], height[near], curve.name, min(style, 6), has_points=True))
        said = "; ".join(
            f"{c.name}: {own.min():.3f} to {own.max():.3f}" for c, own in zip(curves, heights, strict=True)
        )
        key, title, within, _ = _MEASURES[measure]
        x = axis(0.0, most, 6, unit="mean price paid per row")
        y = axis(*limits(*heights, *band, within=within))
        return Chart(key, title, "by mean price paid per row", said, x, y, marks, "wide")

    def _acquired_chart(self) -> Chart:
        """Return the chart of the share of rows by number of acquired values."""
        acquired = self._predictions[2]
        share = np.bincount(acquired).astype(np.float64) / len(acquired)
        x = axis(-0.5, len(share) - 0.5, 8, whole_number, "acquired values")
        bars = Bars(np.linspace(-0.5, len(share) - 0.5, len(share) + 1), share)
        said = f"Between {acquired.min()} and {acquired.max()} values, {acquired.mean():.2f} on average."
        y = axis(0.0, float(share.max()) * 1.05, 4, percent)
        return Chart("num", "Rows", "by number of acquired values", said, x, y, [bars], "low")

    def missing_charts(self) -> list[Chart]:
        """Return the charts of accuracy or error and of the number of acquired values by share of values missing."""
        shares, measured, acquired = evaluation.missing_curve(self.model, self.X_held, self.y_held)
        _, name, within, _ = _MEASURES["error" if self._is_number else "accuracy"]
        x, charts = axis(0.0, float(shares[-1]), 5, percent, "share of values missing"), []
        most = limits(acquired, within=(0.0, np.inf))[1]
        for key, title, values, style, y in (
            ("hac", name, measured, 1, axis(*limits(measured, within=within), 5)),
            ("hnu", "Acquired values per row", acquired, 2, axis(0.0, most, 5)),
        ):
            said = (
                f"From {values[0]:.3f} with none missing to {values[-1]:.3f} with {shares[-1]:.0%} missing."
            )
            charts.append(
                Chart(
                    key, title, "by share of values missing", said, x, y, [Line(shares, values, style=style)]
                )
            )
        return charts

    # -- elsewhere -----------------------------------------------------------------------------------------

    def reproduce(self) -> Reproduction:
        """Return the lines of Python."""
        name, made = type(self.model).__name__, re.sub(r"\s+", " ", BaseEstimator.__repr__(self.model))
        return Reproduction(python="\n".join([
            f"from tamis import {name}",
            "from tamis.cells.acquisition_result import AcquisitionResult",
            "",
            "# X, y: training rows and labels; X_held, y_held: held-out rows and labels",
            f"model = {made}.fit(X, y)",
            'AcquisitionResult(model, X, y, X_held, y_held).report("report.html")',
        ]))  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values: the keys are in the table of JSON keys in the documentation."""
        model = self.model
        result: dict[str, Any] = {
            "verdict": self.verdict(), "remarks": [str(remark) for remark in self.remarks()],
            "method": type(model).__name__, "decided_by": getattr(model, "decided_by_", type(model).__name__),
            "data": self._title, "n_rows": len(self.y),
            "n_columns": model.n_features_in_,
            **({} if self._is_number else {"classes": model.classes_.tolist()}),
            "may_ask_for": [model.name_of(k) for k in range(len(model.candidates_))],
        }  # fmt: skip
        if isinstance(model.cost, PriceList) and model.cost.currency:
            result["currency"] = model.cost.currency
        if (found := model.missingness_) is not None:
            names = [model._column_names()[column] for column in found.columns]
            result["missingness"] = {
                "auc": found.auc, "handled_as": model.missingness,
                "recorded": {
                    str(name): dict(zip(map(str, model.classes_), shares.tolist(), strict=True))
                    for name, shares in zip(names, found.recorded, strict=True)
                },
            }  # fmt: skip
        if self.candidates:
            result["candidates"] = list(self.candidates)
        if len(self.y_held):
            own, *others = self.baselines
            result["held_out"] = {
                "n_rows": len(self.y_held), self._measure: own.accuracy,
                **({} if own.auc is None else {"auc": own.auc}),
                "loss": own.loss, "loss_error": own.error, "mean_features": own.n_values, "mean_cost": own.cost,
                "nothing_acquired": float((self._predictions[2] == 0).mean()), "assumption": self.assumption,
                "baselines": [self._plain(other) for other in others],
            }  # fmt: skip
        return result

    def _plain(self, one: evaluation.Baseline) -> dict[str, Any]:
        """Return a result with the names of its measures."""
        names = {"accuracy": self._measure}
        return {names.get(key, key): value for key, value in asdict(one).items() if value is not None}


def plot_paths(
    traces: Sequence[Acquisition],
    classes: Sequence[Any] | Array,
    titles: Sequence[str] | None = None,
    *,
    names: Sequence[str] | None = None,
) -> Drawing:
    """Draw the posterior of each class after each acquired value, one panel for each row.

    Parameters
    ----------
    traces : list of Acquisition
        What :meth:`CellClassifier.acquire` returns.
    classes : sequence of n_classes labels
    titles : list of str, optional
        By default the decision and its cost.
    names : list of str, optional
        Names of the features, if the model was fitted without names.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot, so it need not be closed.

    Examples
    --------
    >>> from tamis import IFC2F
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = rng.normal(size=(300, 4)) + 2 * y[:, None]
    >>> model = IFC2F(random_state=0).fit(X, y)
    >>> figure = plot_paths(model.acquire(X[:2]), model.classes_)
    >>> len(figure.axes)
    2
    """
    across = min(len(traces), 2)
    down = -(-len(traces) // max(across, 1))
    figure = new_figure(6.2 * across, 3.1 * down)
    for i, trace in enumerate(traces):
        axes = figure.add_subplot(down, across, i + 1)
        paid = f"{trace.label}, paid {scientific(trace.cost)}"
        draw(axes, path_chart(trace, classes, "", paid if titles is None else f"{titles[i]}: {paid}"))
        values = [
            f"{shorten(f if names is None else names[int(f)], 18)} = {shorten(_value_text(value), 18)}"
            for f, value in zip(trace.features, trace.values, strict=True)
        ]
        labels = [plain_text(label, 40) for label in ("at first", *values)]
        axes.set_xticks(np.arange(len(labels)), labels, rotation=35, ha="right", fontsize=7)
    return figure


def path_chart(trace: Acquisition, classes: Sequence[Any] | Array, key: str, title: str) -> Chart:
    """Return the chart of the posterior of the likeliest classes after each value."""
    posteriors = trace.posteriors
    likeliest = sorted(np.argsort(-posteriors.max(axis=0), kind="stable")[:_MOST_CLASSES])
    steps = np.arange(len(posteriors), dtype=np.float64)
    lines = [
        Line(steps, posteriors[:, c], str(classes[c]), style, has_points=True)
        for style, c in enumerate(likeliest, start=1)
    ]
    x = axis(0.0, max(float(len(posteriors) - 1), 1.0), 8, whole_number)
    return Chart(key, title, "", "", x, axis(0.0, 1.0, 5), lines, "low")


def _number_chart(predicted: Any, deviation: Any, true: float, key: str, title: str) -> Chart:
    """Return the chart of a predicted number after each value, with one standard deviation to each side."""
    steps = np.arange(len(predicted), dtype=np.float64)
    low, high = predicted - deviation, predicted + deviation
    marks: list[Mark] = [
        Band(steps, low, high, "one standard deviation"),
        Line(steps, predicted, "prediction", 1, has_points=True),
        Line(steps, np.full(len(steps), true), "true value", 2),
    ]
    x = axis(0.0, max(float(len(predicted) - 1), 1.0), 8, whole_number)
    return Chart(key, title, "", "", x, axis(*limits(low, high, np.array([true])), 5), marks, "low")


def _value_text(value: Any) -> str:
    if value is None:
        return "no result"
    return scientific(value) if isinstance(value, float) else str(value)
