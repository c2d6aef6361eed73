"""The rules that are satisfied, since when, and the alerts that they raise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tamis._guard import ThreadSafe
from tamis.watch.hypotheses import STALE
from tamis.watch.rules import Rule

_MOST_ALERTS = 1000


class AlertLog(ThreadSafe):
    """The rules of a watch, and the last 1,000 alerts.

    Parameters
    ----------
    rules : list of Rule
    """

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.alerts: list[dict[str, Any]] = []
        self._held: dict[str, int] = {}  # row since which a rule is satisfied for a feature
        self._last: dict[str, int] = {}  # row of its last alert

    def update(
        self,
        row: int,
        names: list[str],
        of_feature: Callable[[str, str], Any],
        performance: Mapping[str, Any],
        first: Mapping[str, float],
        version: int | str | None,
    ) -> list[dict[str, Any]]:
        """Apply the rules after `row` rows; return the new alerts."""
        alerts = []
        for number, rule in enumerate(self.rules):
            features: list[Any] = list(names) if "*" in rule.features else [None]
            for feature in features:
                key = f"{number} {feature}"
                if not rule.holds(of_feature, performance, first, feature):
                    self._held.pop(key, None)
                elif self._is_due(key, rule, row):
                    named = (
                        next((name for name in rule.features if name != "*"), None)
                        if feature is None
                        else feature
                    )
                    since = self._held[key]
                    alerts.append({
                        "row": row, "severity": rule.severity, "feature": named, "rule": rule.text, "since_row": since,
                        "model_version": version,
                        "message": rule.sentence(of_feature, performance, first, feature, since),
                        "cause": _cause(rule, named, of_feature, performance),
                    })  # fmt: skip
        self.alerts = [*self.alerts, *alerts][-_MOST_ALERTS:]
        return alerts

    def _is_due(self, key: str, rule: Rule, row: int) -> bool:
        since, last = self._held.setdefault(key, row), self._last.get(key)
        if row - since < rule.n_rows or (last is not None and row - last < rule.cooldown):
            return False
        if last is not None and last >= since and not rule.names.isdisjoint({"state", "cause"}):
            return False  # the same state still; a number may have changed
        self._last[key] = row
        return True


def _cause(
    rule: Rule, feature: str | None, of_feature: Callable[[str, str], Any], now: Mapping[str, Any]
) -> str | None:
    """Return the cause in force, for an alert on a state or another one."""
    if "state" in rule.names and feature is not None:
        return STALE if of_feature("state", feature) == STALE else None
    cause: str = now.get("cause", "none")
    return cause if cause != "none" else STALE if now.get("evidence of features") else None
