"""`tamis follow --watch`: relevance and reliance of the features while the selection and the learner are running."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tamis.cli.alerting import Alerting, check_names, update_watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tamis.evaluate import Step
    from tamis.pipeline.selective_learner import SelectiveLearner

_MOST_FEATURES = 20  # of a line of events


class FollowedWatch:
    """Passes each batch of a run to a `Watch`, and returns its events; it is reset when columns are appended.

    Parameters
    ----------
    alerting : Alerting
    names, categorical
        Of the features.
    is_regression : bool
    delay : int
        After how many rows a label is known.
    """

    def __init__(
        self, alerting: Alerting, names: list[str], categorical: Any, *, is_regression: bool, delay: int
    ) -> None:
        rules, task = alerting.read_rules(), "regression" if is_regression else "classification"
        check_names(rules, names, task)
        self._send: Callable[[dict[str, Any]], None] = alerting.sender()
        self.delay, self.is_regression = delay, is_regression
        self._rules = rules
        self._begin(names, categorical)

    def _begin(self, names: Sequence[str], categorical: Any) -> None:
        from tamis.watch import Watch

        self._n_features = len(names)

        # The learner has learned from the rows that are shown to the watch, so its probabilities are no forecasts.
        self.watched = Watch(
            rules=self._rules, task="regression" if self.is_regression else "classification", feature_names=list(names),
            categorical=list(categorical), max_pending=self.delay + 100_000, rows_per_false_alarm=None,
        )  # fmt: skip
        self.waiting: list[Any] = []

    def update(self, step: Step, categorical: Any) -> list[dict[str, Any]]:
        """Add a batch, as predicted before anything learned from it; return its alerts."""
        if step.batch is None or step.models.learner.n_known_classes == 0:
            return []
        X, y, predicted = step.batch
        if X.shape[1] > self._n_features:
            self._begin(step.names, categorical)
        # Alerts count the rows of the run, of which the first are not predicted.
        if self.watched.n_rows_ == 0:
            self.watched.n_rows_ = int(step.n_seen) - len(X)
        if not self.is_regression and predicted.dtype.kind == "f":  # floats would be scores
            y, predicted = y.astype(str), predicted.astype(str)
        live = _Numbers(step.models) if self.is_regression else _Probabilities(step.models)
        self.watched.set_model(live)
        try:
            alerts = update_watch(self.watched, self.waiting, X, predicted, y, self.delay)
        finally:
            self.watched.set_model(None)  # the models are saved by the run
        for alert in alerts:
            self._send(alert)
        return [{"event": "alert", **alert} for alert in alerts]

    def line(self) -> dict[str, Any]:
        """Return the relevance and the reliance of the leading features, as shares."""
        table = self.watched.table()
        table.sort(key=lambda row: -max(row["relevance_share"], row["reliance_share"]))
        first = table[:_MOST_FEATURES]
        names = {
            "states": "state", "relevance": "relevance_share", "reliance": "reliance_share", "psi": "psi",
        }  # fmt: skip
        values = {name: [row[key] for row in first] for name, key in names.items()}
        return {"event": "watch", "features": [row["feature"] for row in first], **values}

    def state(self) -> dict[str, Any]:
        """Return the files of a checkpoint."""
        return {"watched": self.watched, "waiting": self.waiting}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.watched, self.waiting = state["watched"], state["waiting"]
        self._n_features = len(self.watched.feature_names or ())


class _Probabilities:
    """The running selector and classifier as one model."""

    def __init__(self, models: SelectiveLearner) -> None:
        self._models = models
        self.classes_ = models.learner.model.classes_

    def predict_proba(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return probabilities, those of a learner without them from its scores or labels."""
        import numpy as np

        from tamis.importance.predictions import from_scores

        view, learner = self._models.view(X), self._models.learner
        if view.asked.shape[1] and hasattr(learner.model, "predict_proba"):
            return np.array(view.predictor.predict_proba(view.asked), dtype=np.float64)
        if view.asked.shape[1] and hasattr(learner.model, "decision_function"):
            return from_scores(np.array(view.predictor.decision_function(view.asked), dtype=np.float64))
        return np.asarray(learner.predict(view)[:, None] == self.classes_, dtype=np.float64)


class _Numbers:
    """The running selector and regressor as one model."""

    def __init__(self, models: SelectiveLearner) -> None:
        self._models = models

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the predictions."""
        return self._models.learner.predict(self._models.view(X))
