"""The numbers of the live page as Prometheus metrics."""

from __future__ import annotations

from collections import Counter
from typing import Any

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
