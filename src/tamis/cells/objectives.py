"""Objectives of acquisition: the loss of a posterior on a labelled row, and its risk without the label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tamis._validation import Array, Floats

OBJECTIVES = ("loss", "log-loss", "auc", "squared-error")
_LEAST = 1e-6  # lower bound on a probability before its logarithm is taken


@dataclass(frozen=True)
class Objective:
    """The loss that acquisitions reduce, in units of the prices.

    Attributes
    ----------
    name : {"loss", "log-loss", "auc", "squared-error"}
        The misclassification cost of the decision; the negative logarithm of the probability of the class, in nats; one
        minus the area under the ROC curve of each class against the rest; or, for the levels of a number, the squared
        error of the posterior mean relative to the variance.
    Q : ndarray of shape (n_classes, n_classes)
        Misclassification costs, or squared distances of levels.
    unit : float
        The loss of a squared error of one variance.
    """

    name: str
    Q: Floats
    unit: float = 1.0

    def losses(self, posterior: Floats, y: Array) -> Floats:
        """Return the loss of each row, from posteriors of shape (..., n_rows, n_classes)."""
        if self.name == "loss":
            return decision_cost(posterior, y, self.Q)
        if self.name == "auc":
            parts = posterior.reshape(-1, *posterior.shape[-2:])
            return np.stack([ranking_losses(part, y) for part in parts]).reshape(posterior.shape[:-1])
        if self.name == "squared-error":
            # (p.m - m_y)^2 is the mean of (m - m_y)^2 minus the variance.
            apart: Floats = (posterior * self.Q[y]).sum(axis=-1) - self.risk(posterior)
            return np.maximum(apart, 0.0)
        return -np.log(np.maximum(posterior[..., np.arange(len(y)), y], _LEAST))

    def risk(self, posterior: Floats) -> Floats:
        """Return the expected misclassification cost, entropy or variance of posteriors along the last axis."""
        if self.name == "loss":
            return (posterior @ self.Q).min(axis=-1)
        # Summed class by class, so that a single row has the same bits as in a batch.
        risk = np.zeros(posterior.shape[:-1])
        for c in range(posterior.shape[-1]):
            p = posterior[..., c]
            if self.name == "squared-error":
                for other in range(c):  # of each pair of levels
                    risk += p * posterior[..., other] * self.Q[c, other]
                continue
            risk -= p * np.log(np.maximum(p, _LEAST))
        return risk

    def risk_of_rows(self, posterior: Floats) -> Floats:
        """Return the risk of posteriors of shape (n_rows, n_classes); a single row has the same bits as in a batch."""
        if self.name == "loss":
            return (posterior[:, :, None] * self.Q).sum(axis=1).min(axis=1)
        return self.risk(posterior)

    @property
    def worst(self) -> Floats:
        """The largest loss of a row, as a table of the same shape as misclassification costs."""
        return self.Q if self.name == "loss" else np.full((1, 1), self.unit)


def decision_cost(posterior: Floats, y: Array, Q: Floats) -> Floats:
    """Return the misclassification cost of the decision for each row."""
    return Q[y, (posterior @ Q).argmin(axis=-1)]


def ranking_losses(posterior: Floats, y: Array) -> Floats:
    """Return, per row, the proportion of rows of other classes with a higher probability of its class (ties: 1/2).

    The mean over the rows of a class is one minus its area under the ROC curve against the rest.

    >>> ranking_losses(np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3], [0.6, 0.4]]), np.array([0, 1, 1, 0]))
    array([0. , 0. , 0.5, 0.5])
    """
    losses = np.zeros(len(y))
    for c in np.unique(y):
        mine = y == c
        others = np.sort(posterior[~mine, c])
        own = posterior[mine, c]
        above = len(others) - np.searchsorted(others, own, side="right")
        ties = len(others) - above - np.searchsorted(others, own, side="left")
        losses[mine] = (above + 0.5 * ties) / max(len(others), 1)
    return losses
