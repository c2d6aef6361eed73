"""Monitoring of a model in use: the loss of its finished cases, and which values are recorded.

A case is finished when its decision is made; its label may arrive much later, or never. Two kinds of change are
detected by adaptive windows (:class:`tamis.drift.ADWIN`):

* the mean loss of labelled cases, in units of the largest misclassification cost, rises: the classes, or their relation
  to the values, have drifted;
* the share of the cases in which a feature is recorded changes in either direction: it is requested, or volunteered,
  for other cases than before. Labels are not needed. The probability of a false alarm is divided by the number of
  features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.base import Acquisition, CellClassifier, Session
from tamis.drift import ADWIN


class CaseMonitor:
    """Detects a rise of the loss of finished cases, and changes of the pattern of recorded values.

    Parameters
    ----------
    model : CellClassifier
        A fitted model.
    delta : float, default=0.002
        Probability of a false alarm at each test, in (0, 1), of the loss, and of all features together.

    Attributes
    ----------
    drift_detected : bool
        Whether the last case revealed a rise of the loss.
    changed_features : list of str or int
        The features whose share of recorded values changed with the last case.
    n_cases, n_labelled : int
        Number of cases, and of those with a label.
    loss : float
        Mean misclassification cost and price of the labelled cases since the one after the last drift; 0 before the
        first.

    Raises
    ------
    ValueError
        If `delta` is invalid.

    Examples
    --------
    Class 1 is recognised by a value that loses its meaning after 300 cases:

    >>> from tamis import AdaptiveIFC2F
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 2)) + [0, 3] * y[:, None]
    >>> model = AdaptiveIFC2F(cost=0.01, random_state=0).fit(X[:400], y[:400])
    >>> X[700:, 1] = rng.normal(1.5, 2.0, 300)
    >>> monitor = CaseMonitor(model)
    >>> alarms = []
    >>> for i, case in enumerate(model.acquire(X[400:])):
    ...     if monitor.update(case, y[400 + i]):
    ...         alarms.append(i)
    >>> 300 < alarms[0] < 400
    True
    """

    def __init__(self, model: CellClassifier, delta: float = 0.002) -> None:
        self.model, self.delta = model, delta
        self._names = model._names()
        self._loss = ADWIN(delta)
        self._recorded = [ADWIN(delta / max(len(self._names), 1), two_sided=True) for _ in self._names]
        self._largest = float(model._Q.max()) or 1.0
        self.drift_detected = False
        self.changed_features: list[str | int] = []
        self.n_cases = self.n_labelled = 0
        self._n_since, self._total = 0, 0.0

    @property
    def loss(self) -> float:
        """Mean misclassification cost and price of the labelled cases since the one after the last drift."""
        return self._total / max(self._n_since, 1)

    def update(self, case: Session | Acquisition, label: Any = None) -> bool:
        """Include a finished case; return whether its loss, or the values recorded for it, reveal a change.

        Parameters
        ----------
        case : Session or Acquisition
            With its decision, cost and recorded values.
        label : object, optional
            The true class (or number); None if it is unknown, in which case only the recorded values are included.

        Returns
        -------
        bool
            Whether an alarm was raised: see `drift_detected` and `changed_features`.
        """
        if isinstance(case, Session):
            decision, cost = case.decision, case.cost
            recorded = {step["feature"] for step in case.explain() if step["value"] is not None}
        else:
            decision, cost, recorded = case.label, case.cost, set(case.features)
        self.n_cases += 1
        self.changed_features = [
            name
            for name, window in zip(self._names, self._recorded, strict=True)
            if window.update(float(name in recorded))
        ]
        if self.drift_detected:
            self._n_since, self._total, self.drift_detected = 0, 0.0, False
        if label is not None:
            self.n_labelled, self._n_since = self.n_labelled + 1, self._n_since + 1
            loss = float(self.model._losses(np.array([label]), np.array([decision]))[0]) + cost
            self._total += loss
            self.drift_detected = self._loss.update(min(loss / self._largest, 1.0))
        return self.drift_detected or bool(self.changed_features)
