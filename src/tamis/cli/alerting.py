"""The options about rules and alerts of `tamis watch` and `tamis follow --watch`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tamis.cli.failure import MisuseError
from tamis.cli.output import note

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tamis.watch import Rule, Watch


@dataclass
class Alerting:
    """When alerts are raised, and where they are sent.

    Parameters
    ----------
    rule : TEXT
        Condition that raises an alert; may be repeated. [default: lost or missed features, causes of changed labels,
        drifts, missing values, errors]
    rules : TOML
        Read the rules from a TOML file, with severity and cool-down.
    on_alert : COMMAND
        Run this shell command for each alert, with the alert as JSON on its standard input.
    webhook : URL
        Post each alert as JSON to this URL.
    """

    panel: ClassVar[str] = "Rules and alerts"

    rule: list[str] | None = None
    rules: str | None = None
    on_alert: str | None = None
    webhook: str | None = None

    @property
    def is_given(self) -> bool:
        """Whether any of the options was given."""
        return any(value is not None for value in (self.rule, self.rules, self.on_alert, self.webhook))

    def read_rules(self) -> list[Rule]:
        """Return the rules: those of the command line, of the file, or the default.

        Raises
        ------
        MisuseError
            If one is invalid.
        """
        from tamis.watch import Rule, read_rules
        from tamis.watch.watch import DEFAULT_RULES

        if self.rule is not None and self.rules is not None:
            raise MisuseError("--rule and --rules both define the rules: choose one.")
        try:
            if self.rules is not None:
                return read_rules(self.rules)
            return [Rule(text) for text in (DEFAULT_RULES if self.rule is None else self.rule)]
        except ValueError as error:
            raise MisuseError(f"{'--rule' if self.rules is None else '--rules'}: {error}") from None

    def sender(self) -> Callable[[dict[str, Any]], None]:
        """Return the function that delivers an alert; a failure is printed on standard error.

        Raises
        ------
        MisuseError
            If the URL is invalid.
        """
        from tamis.watch import Delivery

        try:
            delivery = Delivery(self.on_alert, self.webhook)
        except ValueError as error:
            raise MisuseError(f"--webhook: {error}") from None

        def send(alert: dict[str, Any]) -> None:
            for failure in delivery.send(alert):
                note(f"warning: {failure}.")

        return send


def update_watch(
    watched: Watch,
    waiting: list[Any],
    X: NDArray[Any],
    predictions: NDArray[Any],
    y: NDArray[Any],
    delay: int,
) -> list[dict[str, Any]]:
    """Add a batch, and the labels of the rows `delay` rows before its end; `waiting` has the labels between."""
    import numpy as np

    if delay == 0:
        return watched.update(X, predictions=predictions, y=y)
    alerts = watched.update(X, predictions=predictions)
    first = watched.n_rows_ - len(y) - len(waiting)
    waiting += y.tolist()
    if (due := len(waiting) - delay) > 0:
        alerts += watched.update_labels(range(first, first + due), np.array(waiting[:due]))
        del waiting[:due]
    return alerts


def check_names(rules: list[Rule], features: list[str], task: str) -> None:
    """Reject rules that name an unknown feature or measure."""
    from tamis.watch.watch import check_rules

    try:
        check_rules(rules, features, task)
    except ValueError as error:
        raise MisuseError(f"--rule: {error}") from None
