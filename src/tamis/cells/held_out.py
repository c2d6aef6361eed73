"""What pays on rows that were not learned from: which probabilities to trust, and when to stop.

A model that learned its tables from few rows promises itself too much: it buys noise, and ends below buying nothing.
Here every row is walked to the end by a model that has not seen it, and what stopping would have cost is added up at
each step: the price of the values bought so far, and the cost of the decision. A policy is then chosen by its mean cost
over these walks:

* whose probabilities are believed: the model's own, or those of a :class:`~tamis.cells.discriminant.Discriminant`;
* after how many values it stops at the latest, `most`; 0 buys nothing;
* below which expected cost of deciding it stops at once, `max_risk`; or when the model's own rule says so.

Buying nothing and buying the same values for every row are among the policies, so that neither is ahead of the chosen
one on these rows. The mean cost of each policy grows with the prices, and so does the least of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis._check import Array

__all__ = ["FOLDS", "Policy", "Walks", "best_policy", "folds_of", "pays"]

Floats = NDArray[np.float64]

FOLDS = 5
_LEVELS = np.linspace(0.0, 1.0, 26)[:-1]  # of the risks met: the values of `max_risk` that are tried
_SURE = 1.0  # standard errors by which a policy must be ahead of buying nothing


@dataclass
class Policy:
    """Whose probabilities are believed, and when to stop.

    Attributes
    ----------
    belief : {"own", "discriminant"}
    rule : {"own", "risk"}
        Stop when the model says so, or when deciding costs at most `max_risk`.
    most : int
        Values after which to stop at the latest.
    max_risk : float
    """

    belief: str
    rule: str
    most: int
    max_risk: float


@dataclass
class Walks:
    """Rows walked to the end by a model that has not seen them.

    Attributes
    ----------
    belief : {"own", "discriminant"}
    posterior : ndarray of shape (n_steps + 1, n_rows, n_classes)
        Before the first value, and after each.
    spent : ndarray of shape (n_steps + 1, n_rows)
    stops : ndarray of shape (n_steps + 1, n_rows), bool, or None
        Where the model's own rule stops; None if it has none.
    """

    belief: str
    posterior: Floats
    spent: Floats
    stops: NDArray[np.bool_] | None = None


def folds_of(y: Array, n_folds: int = FOLDS) -> NDArray[np.int64]:
    """Return the fold of each row, the rows of each class spread evenly; -1 where a class has a single row.

    >>> folds_of(np.array([0, 0, 0, 1, 0, 2, 1]), 2)
    array([ 0,  1,  0,  0,  1, -1,  1])
    """
    found = np.full(len(y), -1)
    for c in np.unique(y):
        rows = np.flatnonzero(y == c)
        if len(rows) > 1:
            found[rows] = np.arange(len(rows)) % n_folds
    return found


def best_policy(walks: list[Walks], y: Array, Q: Floats, *, every_row_alike: bool = False) -> Policy:
    """Return the policy of least mean cost on these walks; nothing is bought unless that is surely dearer.

    Parameters
    ----------
    walks : list of Walks
        Of the same rows; the first come first among equals.
    y : ndarray of shape (n_rows,), int
    Q : ndarray of shape (n_classes, n_classes)
    every_row_alike : bool
        Consider only policies that buy the same values for every row.
    """
    nothing = _decided(walks[0].posterior[0], y, Q)
    best, least, per_row = Policy(walks[0].belief, "risk", 0, np.inf), nothing.mean(), nothing
    for walk in walks:
        for policy, cost in _policies(walk, y, Q, every_row_alike):
            if cost.mean() < least:
                best, least, per_row = policy, cost.mean(), cost
    return best if pays(per_row, nothing) else Policy(walks[0].belief, "risk", 0, np.inf)


def pays(cost: Floats, nothing: Floats) -> bool:
    """Return whether a policy is ahead of buying nothing by more than one standard error, from what each row costs.

    >>> pays(np.array([0.1, 0.2, 0.1]), np.array([1.0, 0.0, 1.0])), pays(np.ones(3), np.ones(3))
    (True, False)
    """
    gain = nothing - cost
    return bool(gain.mean() > _SURE * gain.std() / np.sqrt(len(gain)))


def _decided(posterior: Floats, y: Array, Q: Floats) -> Floats:
    """Return what the decision costs each row."""
    found: Floats = Q[y, (posterior @ Q).argmin(axis=-1)]
    return found


def _policies(walk: Walks, y: Array, Q: Floats, every_row_alike: bool) -> Iterator[tuple[Policy, Floats]]:
    """Yield every policy that is tried on these walks, and what it costs each row."""
    risk = (walk.posterior @ Q).min(axis=2)
    cost = np.stack([_decided(step, y, Q) for step in walk.posterior]) + walk.spent
    rows = np.arange(len(y))
    for most in range(len(risk)):
        met, levels = risk[:most], np.array([-np.inf])
        if most and not every_row_alike:
            levels = np.unique(np.r_[levels, np.quantile(met, _LEVELS)])
        for level in levels:
            yield Policy(walk.belief, "risk", most, float(level)), cost[_first(met <= level), rows]
        if walk.stops is not None and most and not every_row_alike:
            yield Policy(walk.belief, "own", most, -np.inf), cost[_first(walk.stops[:most]), rows]


def _first(stops: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the first step at which each row stops; the one after the last where it does not."""
    last = np.ones((1, stops.shape[1]), dtype=bool)
    found: NDArray[np.int64] = np.concatenate([stops, last]).argmax(axis=0)
    return found
