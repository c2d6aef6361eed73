"""The page of `tamis follow --live`: shown by a server on the loopback address, updated by server-sent events.

The page makes no external request: style and script are inline, and its policy limits the browser to this server.
Column names are sent as data and inserted as text, never as HTML. Prometheus reads its numbers at `/metrics`.
"""

from __future__ import annotations

import html
import json
import queue
import threading
from collections import Counter
from importlib.resources import files
from typing import Any

from tamis._json import null_nonfinite
from tamis.cli.local_server import LocalHandler, LocalPage

_POINTS, _EVENTS, _ALERTS = 400, 30, 100  # sent to a page when it is opened
_VIEWERS = 16  # at the same time


class LivePage(LocalPage):
    """Shows the events of a running evaluation.

    Parameters
    ----------
    title : str
        Selector and stream.
    port : int, default=0
        0: a free port.

    Attributes
    ----------
    address : str
        URL of the page.

    Examples
    --------
    >>> import urllib.request
    >>> page = LivePage("FIRES on log.csv")
    >>> page.publish({"event": "selection", "n_seen": 200, "entered": ["heat"], "left": [], "n_selected": 1})
    >>> with urllib.request.urlopen(page.address) as answer:
    ...     b"FIRES on log.csv" in answer.read()
    True
    >>> page.close()
    """

    def __init__(self, title: str, port: int = 0) -> None:
        from tamis.report.text import shorten

        self.title = title
        self._lock = threading.Lock()
        self._points, self._strips = _Thinned(), _Thinned()  # lines of scores, and of a watch
        self._events: list[dict[str, Any]] = []  # the last of all others
        self._alerts: list[dict[str, Any]] = []
        self._n_alerts: Counter[tuple[str, str]] = Counter()  # by severity and feature
        self._n_seen = 0
        self._selected: dict[str, None] = {}
        self._viewers: list[queue.Queue[str]] = []
        super().__init__("live", _Handler, port, heading=html.escape(shorten(title, 300)))

    def publish(self, line: dict[str, Any]) -> None:
        """Send an event to all viewers."""
        with self._lock:
            self._record(line)
            message = _as_event({**line, "selected": list(self._selected)})
            for viewer in list(self._viewers):
                try:
                    viewer.put_nowait(message)
                except queue.Full:  # the viewer has left
                    self._viewers.remove(viewer)

    def _record(self, line: dict[str, Any]) -> None:
        self._n_seen = line.get("n_seen", self._n_seen)
        if line["event"] == "scores":
            self._points.add(line)
        elif line["event"] == "watch":
            self._strips.add(line)
        elif line["event"] == "alert":
            self._alerts = [*self._alerts, line][-_ALERTS:]
            self._n_alerts[line["severity"], line["feature"] or ""] += 1
        else:
            self._events = [*self._events, line][-_EVENTS:]
            for name in line.get("left", ()):
                self._selected.pop(name, None)
            self._selected.update(dict.fromkeys(line.get("entered", ())))

    def metrics(self) -> bytes:
        """Return the last numbers in the format of Prometheus."""
        with self._lock:
            return metrics_text(self._points.last, self._strips.last, self._n_alerts, self._n_seen)

    def _add_viewer(self) -> tuple[str, queue.Queue[str]] | None:
        """Return the events so far and the queue of further ones; None if there are too many viewers."""
        with self._lock:
            if len(self._viewers) >= _VIEWERS:
                return None
            viewer: queue.Queue[str] = queue.Queue(1000)
            self._viewers.append(viewer)
            rest = sorted([*self._events, *self._alerts], key=lambda line: line.get("n_seen", 0))
            known = [*self._points.lines, *self._strips.lines, *rest]
            snapshot = {"event": "known", "lines": known, "selected": list(self._selected)}
            return _as_event(snapshot), viewer

    def _remove_viewer(self, viewer: queue.Queue[str]) -> None:
        with self._lock:
            if viewer in self._viewers:
                self._viewers.remove(viewer)


class _Thinned:
    """The lines of one kind: fewer than 400, evenly spaced, and the last one."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.last: dict[str, Any] = {}
        self._stride, self._n = 1, 0

    def add(self, line: dict[str, Any]) -> None:
        self.last = line
        if self._n % self._stride == 0:
            self.lines.append(line)
            if len(self.lines) >= _POINTS:
                self.lines, self._stride = self.lines[::2], 2 * self._stride
        self._n += 1


class _Handler(LocalHandler):
    """Serves the page and its events; subclasses set the page."""

    page: LivePage

    def do_GET(self) -> None:
        if self.reject_foreign():
            return
        if self.path == "/":
            self.answer(200, "text/html; charset=utf-8", self.page.source)
        elif self.path == "/events":
            self._stream()
        elif self.path == "/metrics":
            self._metrics()
        elif self.path == "/grafana.json":
            self.answer(200, "application/json", files("tamis.cli").joinpath("grafana.json").read_bytes())
        else:
            self.send_error(404)

    def _metrics(self) -> None:
        try:
            self.answer(200, "text/plain; version=0.0.4; charset=utf-8", self.page.metrics())
        except ImportError as error:
            self.answer(501, "text/plain; charset=utf-8", f"{error}\n".encode())

    def _stream(self) -> None:
        entry = self.page._add_viewer()
        if entry is None:
            self.send_error(503)
            return
        first, viewer = entry
        try:
            self.answer(200, "text/event-stream", None)
            self.wfile.write(first.encode())
            while True:
                try:
                    message = viewer.get(timeout=15)
                except queue.Empty:
                    message = ": nothing new\n\n"
                self.wfile.write(message.encode())
                self.wfile.flush()
        except OSError:  # the viewer has left
            self.page._remove_viewer(viewer)


def _as_event(line: dict[str, Any]) -> str:
    return f"data: {json.dumps(null_nonfinite(line))}\n\n"


# -- metrics -----------------------------------------------------------------------------------------------


_OF_FEATURE = {
    "relevance": "Share of the relevance for the label",
    "reliance": "Share of the reliance of the predictions",
    "psi": "Population stability index of the last rows against the first ones",
}
_NO_SCORES = ("event", "step", "n_seen", "top", "selected")


def metrics_text(
    scores: dict[str, Any], watch: dict[str, Any], alerts: Counter[tuple[str, str]], n_seen: int
) -> bytes:
    """Return the metrics in the format of Prometheus.

    Parameters
    ----------
    scores, watch : dict
        The last lines of these events; empty if there is none.
    alerts : Counter
        Number of alerts by severity and feature.
    n_seen : int

    Raises
    ------
    ImportError
        If prometheus_client is missing; the message names the extra that installs it.
    """
    try:
        from prometheus_client import CollectorRegistry, Gauge, generate_latest
        from prometheus_client import Counter as Total
    except ImportError:
        raise ImportError("Metrics need prometheus_client: pip install 'tamis[metrics]'.") from None
    registry = CollectorRegistry()
    Gauge("tamis_rows", "Rows so far", registry=registry).set(n_seen)
    of_scores = Gauge(
        "tamis_score", "Scores of the last rows, and counts of rows", ["name"], registry=registry
    )
    for name, value in scores.items():
        if name not in _NO_SCORES and isinstance(value, int | float):
            of_scores.labels(name).set(value)
    for name, help_text in _OF_FEATURE.items():
        gauge = Gauge(f"tamis_{name}", help_text, ["feature"], registry=registry)
        for feature, value in zip(watch.get("features", ()), watch.get(name, ()), strict=True):
            gauge.labels(feature).set(value)
    total = Total("tamis_alerts", "Alerts so far", ["severity", "feature"], registry=registry)
    for labels, n in alerts.items():
        total.labels(*labels).inc(n)
    return generate_latest(registry)
