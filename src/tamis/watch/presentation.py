"""What a watch shows: relevance and reliance over the rows, alerts, and the state of each feature."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.report.charts.chart import Chart, HeatStrip, Mark, Points, row_count_axis
from tamis.report.content import Cell, Figure, Names, Remark, Reproduction, Section, Table
from tamis.report.result import Result
from tamis.report.text import count, fraction, plural, shorten

_COLOURS = {"relevance": (47, 127, 193, 255), "reliance": (213, 94, 0, 255)}  # on white and on near-black
_LEVELS = 64
_MOST_FEATURES, _MOST_ROWS = 20, 200
_STALE, _MISSED = "used but no longer relevant", "relevant but unused"
_ORDER = (_STALE, _MISSED, "used and relevant", "used but not relevant")
_NAMES = {"accuracy": "Accuracy", "auc": "AUC", "mae": "Mean absolute error"}
_BASELINES = {"accuracy": ("majority_accuracy", "majority class"), "mae": ("mean_mae", "mean so far")}


class WatchPresentation(Result):
    """The presentation of a :class:`~tamis.watch.Watch`, which has the numbers."""

    if TYPE_CHECKING:
        n_rows_: int
        n_labelled_: int

        @property
        def alerts_(self) -> list[dict[str, Any]]: ...
        @property
        def feature_names_(self) -> list[str]: ...
        def table(self) -> list[dict[str, Any]]: ...
        def history(self) -> dict[str, NDArray[Any]]: ...
        def performance(self) -> dict[str, float]: ...

    def _of_state(self, state: str) -> list[dict[str, Any]]:
        return [row for row in self.table() if row["state"] == state]

    def verdict(self) -> str:
        """Return whether the model relies on features that are no longer relevant, and whether it is of use."""
        if not self.n_rows_:
            return "No rows have arrived."
        stale, known = self._of_state(_STALE), [row for row in self.table() if row["state"] != "unknown"]
        if not known:
            said = f"After {plural(self.n_rows_, 'row', 'rows')} it is unknown which features are used and relevant"
        elif stale:
            since = ", ".join(
                f"{shorten(row['feature'], 40)} since row {row['since']:,}" for row in stale[:3]
            )
            more = f" and {len(stale) - 3:,} more" * (len(stale) > 3)
            said = f"The model relies on {plural(len(stale), 'feature', 'features')} no longer relevant: {since}{more}"
        else:
            said = f"The model relies on no feature that is no longer relevant, of {len(known):,}"
        for name, value in self._measures():
            baseline, label = _BASELINES[name]
            beside = self.performance().get(baseline, math.nan)
            other = f", against {fraction(beside)} of the {label}" if math.isfinite(beside) else ""
            said += f"; its recent {_NAMES[name].lower()} is {fraction(value)}{other}"
        return f"{said}."

    def _measures(self) -> list[tuple[str, float]]:
        measures = self.performance()
        return [(name, measures[name]) for name in _BASELINES if math.isfinite(measures.get(name, math.nan))]

    def about(self) -> str:
        """Return the numbers of rows and alerts."""
        alerts = plural(len(self.alerts_), "alert", "alerts")
        return f"{plural(self.n_rows_, 'row', 'rows')}, {count(self.n_labelled_)} with labels, {alerts}"

    def headline(self) -> list[Figure]:
        """Return the numbers of features by state and of alerts, and the performance of the model."""
        alerts, measures = self.alerts_, self.performance()
        critical = sum(alert["severity"] == "critical" for alert in alerts)
        shown = [
            Figure("Rows", count(self.n_rows_), f"{count(self.n_labelled_)} with labels", is_main=False),
            Figure("Features", count(len(self.table())), is_main=False),
            Figure("Alerts", count(len(alerts)), f"{count(critical)} critical", is_main=False),
            Figure("Stale", count(len(self._of_state(_STALE))), _STALE),
            Figure("Missed", count(len(self._of_state(_MISSED))), _MISSED),
        ]
        for name, label in _NAMES.items():
            if math.isfinite(measures.get(name, math.nan)):
                baseline, other = _BASELINES.get(name, ("", ""))
                value = measures.get(baseline, math.nan)
                shown.append(
                    Figure(label, fraction(measures[name]), f"{other} {fraction(value)}" if other else "")
                )
        return shown

    def sections(self) -> list[Section]:
        """Return relevance and reliance over the rows, the alerts, and the state of each feature."""
        table = self.table()
        nothing = Remark("No rows have arrived.", "note")
        over_time: list[Any] = [nothing]
        if table:
            meaning = Remark(
                "For each feature, the upper strip shows its relevance for the label and the lower strip the"
                " reliance of"
                " the predictions on it. A feature whose lower strip persists while the upper one fades is used but no"
                " longer relevant.",
                "note",
            )
            over_time = [self._chart(), meaning]
        return [
            Section("time", "Relevance and reliance over time", over_time),
            Section(
                "alerts", "Alerts", [self._alert_table() or Remark("No rule has raised an alert.", "note")]
            ),
            Section("features", "Features", [self._feature_table(table) if table else nothing]),
        ]

    def _chart(self) -> Chart:
        """Return the chart: two rows of pixels for each of the leading features, those with alerts first."""
        history, names = self.history(), self.feature_names_
        alerts = [alert for alert in self.alerts_ if alert["feature"] in names]
        first = self._leading(history, {alert["feature"] for alert in alerts})
        position = {names[j]: 2 * row for row, j in enumerate(first)}
        marked = [alert for alert in alerts if alert["feature"] in position]
        x = row_count_axis(float(self.n_rows_), 4, "rows")
        at = np.array([alert["row"] for alert in marked], dtype=np.float64)
        places = np.array([position[alert["feature"]] + 0.5 for alert in marked])
        marks: list[Mark] = [Points(at, places, "alert", 6)]
        if len(history["row"]) and first:
            marks.append(_strip(history["relevance"][:, first], history["reliance"][:, first], x.high))
        last = {names[j]: [float(history[name][-1, j]) for name in _COLOURS] for j in first[:10]}
        said = "; ".join(f"{shorten(name, 40)} {a:.0%} and {b:.0%}" for name, (a, b) in last.items())
        return Chart(
            "hea", "Relevance and reliance", "by rows; a stronger colour is a larger share, points are alerts",
            f"{plural(len(alerts), 'alert', 'alerts')}. Shares of relevance and reliance at the end: {said}.",
            x, None, marks, rows=[text for j in first for text in (names[j], "")], row_height=13,
        )  # fmt: skip

    def _leading(self, history: dict[str, NDArray[Any]], alerted: set[str]) -> list[int]:
        """Return the features to show: those with alerts, then by their largest share."""
        if not len(history["relevance"]):
            return []
        largest = np.maximum(history["relevance"].max(axis=0), history["reliance"].max(axis=0))
        names = self.feature_names_
        return sorted(range(len(names)), key=lambda j: (names[j] not in alerted, -largest[j]))[
            :_MOST_FEATURES
        ]

    def _alert_table(self) -> Table | None:
        alerts = self.alerts_
        rows: list[list[Cell]] = [
            [count(one["row"]), one["severity"], Names([one["feature"] or ""]), shorten(one["message"], 400)]
            for one in alerts[-_MOST_ROWS:][::-1]
        ]
        head = [("n", "row"), ("", "severity"), ("", "feature"), ("long", "message")]
        more = len(alerts) - len(rows)
        note = f"And {plural(more, 'earlier alert', 'earlier alerts')}." if more else ""
        return Table("The latest first", head, rows, note) if rows else None

    def _feature_table(self, table: list[dict[str, Any]]) -> Table:
        rank = {state: i for i, state in enumerate(_ORDER)}
        ordered = sorted(table, key=lambda row: (rank.get(row["state"], len(rank)), -row["reliance_share"]))
        rows: list[list[Cell]] = [
            [
                Names([row["feature"]]), row["state"], "" if row["state"] == "unknown" else count(row["since"]),
                *(fraction(row[name]) for name in ("relevance_share", "reliance_share", "psi", "missing")),
            ]
            for row in ordered[:_MOST_ROWS]
        ]  # fmt: skip
        numbers = ("since row", "relevance", "reliance", "PSI", "missing")
        head = [("long", "feature"), ("long", "state"), *(("n", name) for name in numbers)]
        more = len(ordered) - len(rows)
        note = f"And {plural(more, 'more feature', 'more features')}." if more else ""
        return Table("Shares of the sum over the features, in the last rows", head, rows, note, is_main=True)

    def reproduce(self) -> Reproduction:
        """Return the line of Python."""
        return Reproduction(python="watch.report('watch.html')")

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values: the keys are in the table of JSON keys in the documentation."""
        return {
            "verdict": self.verdict(),
            "n_rows": self.n_rows_,
            "n_labelled": self.n_labelled_,
            "features": self.table(),
            "performance": self.performance(),
            "alerts": self.alerts_,
        }


def _strip(relevance: NDArray[np.float32], reliance: NDArray[np.float32], high: float) -> HeatStrip:
    shares = np.stack([relevance.T, reliance.T], axis=1)  # (j, 2, t)
    largest = np.maximum(shares.max(axis=(0, 2)), 1e-9)
    levels = np.rint((_LEVELS - 1) * shares / largest[None, :, None]).astype(np.uint8)
    levels[:, 1] += _LEVELS
    palette = np.repeat(np.array([*_COLOURS.values()]), _LEVELS, axis=0)
    palette[:, 3] = np.tile(np.rint(np.linspace(0, 255, _LEVELS)), 2)
    return HeatStrip(levels.reshape(-1, levels.shape[2]), palette.astype(np.uint8), 0.0, high, _COLOURS)
