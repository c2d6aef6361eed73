"""The report of a watch: relevance and reliance over the rows, alerts, and the state of each feature."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tamis.report.page.cells import Cell, Names, Table
from tamis.report.page.document import Section, render_page, write_page
from tamis.report.page.number_format import count, fraction
from tamis.report.page.text import plural, shorten
from tamis.report.watching.charts import heat_chart
from tamis.watch import Watch

__all__ = ["watch_page", "write_report"]

_MOST_ROWS = 200
_ORDER = ("used but no longer relevant", "relevant but unused", "used and relevant", "used but not relevant")


def write_report(
    watch: Watch,
    path: str | os.PathLike[str],
    title: str = "Watch",
    *,
    repeat: Mapping[str, str] | None = None,
) -> Path:
    """Write the report of a watch as one HTML file that opens offline.

    Parameters
    ----------
    watch : Watch
    path : str or path
        The file. An existing one is replaced atomically, or left unchanged on failure.
    title : str
    repeat : dict of str to str, optional
        Headings and lines that repeat the result.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ValueError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> watch = Watch()
    >>> _ = watch.update(X, X[:, 0] > 0, y=X[:, 1] > 0)
    >>> path = write_report(watch, tempfile.mkdtemp() + "/watch.html")
    >>> "Relevance and reliance" in path.read_text(encoding="utf-8")
    True
    """
    return write_page(path, lambda: watch_page(watch, title, repeat=repeat))


def watch_page(watch: Watch, title: str = "Watch", *, repeat: Mapping[str, str] | None = None) -> str:
    """Return the report as HTML; parameters as for :func:`write_report`."""
    table = watch.table()
    lines = dict(repeat) if repeat else {"In Python": "write_report(watch, 'watch.html')"}
    sections = [
        Section("time", "Relevance and reliance over time", {"chart": heat_chart(watch) if table else None}),
        Section("alerts", "Alerts", _alerts(watch)),
        Section("features", "Features", _features(table)),
        Section("repeat", "Repeat this run", lines),
    ]
    return render_page("watching/page.html.j2", title, {"tiles": _tiles(watch, table)}, sections)


def _tiles(watch: Watch, table: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    alerts, measures = watch.alerts_, watch.performance()
    n_by_state = {state: sum(row["state"] == state for row in table) for state in _ORDER[:2]}
    critical = sum(alert["severity"] == "critical" for alert in alerts)
    shown = [
        ("Rows", count(watch.n_rows_), f"{count(watch.n_labelled_)} with labels"),
        ("Features", count(len(table)), ""),
        ("Alerts", count(len(alerts)), f"{count(critical)} critical"),
        ("Stale", count(n_by_state[_ORDER[0]]), _ORDER[0]),
        ("Missed", count(n_by_state[_ORDER[1]]), _ORDER[1]),
    ]
    for name, baseline in (("accuracy", "majority"), ("mae", "mean")):
        if np.isfinite(measures.get(name, np.nan)):
            value = measures.get(f"{baseline}_{name}", np.nan)
            shown.append((name.upper() if name == "mae" else "Accuracy", fraction(measures[name]),
                          f"{baseline}-class baseline {fraction(value)}" if name == "accuracy"
                          else f"mean so far {fraction(value)}"))  # fmt: skip
    return shown


def _alerts(watch: Watch) -> dict[str, Any]:
    alerts = watch.alerts_
    rows: list[list[Cell]] = [
        [
            count(alert["row"]),
            alert["severity"],
            Names([alert["feature"] or ""]),
            shorten(alert["message"], 400),
        ]
        for alert in alerts[-_MOST_ROWS:][::-1]
    ]
    head = [("n", "row"), ("", "severity"), ("", "feature"), ("long", "message")]
    more = len(alerts) - len(rows)
    note = f"And {plural(more, 'earlier alert', 'earlier alerts')}." if more else ""
    return {"table": Table("The latest first", head, rows, note) if rows else None}


def _features(table: list[dict[str, Any]]) -> dict[str, Any]:
    rank = {state: i for i, state in enumerate(_ORDER)}
    ordered = sorted(table, key=lambda row: (rank.get(row["state"], len(rank)), -row["reliance_share"]))
    rows: list[list[Cell]] = [
        [
            Names([row["feature"]]), row["state"], "" if row["state"] == "unknown" else count(row["since"]),
            *(fraction(row[name]) for name in ("relevance_share", "reliance_share", "psi", "missing")),
        ]
        for row in ordered[:_MOST_ROWS]
    ]  # fmt: skip
    head = [("long", "feature"), ("long", "state"), ("n", "since row"), ("n", "relevance"), ("n", "reliance"),
            ("n", "PSI"), ("n", "missing")]  # fmt: skip
    more = len(ordered) - len(rows)
    note = f"And {plural(more, 'more feature', 'more features')}." if more else ""
    return {
        "table": Table("Shares of the sum over the features, in the last rows", head, rows, note)
        if rows
        else None
    }
