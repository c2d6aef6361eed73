"""Classifiers at the leaves: a copy of the parent's classifier at first, trained with the rows of the leaf only."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis.learners.hoeffding.nodes import ALIVE, BIRTHS, BORN, LEFT, PARENT, Pools

__all__ = ["LeafClassifiers"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class LeafClassifiers:
    """The classifiers of the leaves, by the birth number of the leaf; a leaf without rows has none yet.

    Parameters
    ----------
    prototype : classifier with partial_fit and predict_proba
        Cloned for a leaf without a parent.
    """

    def __init__(self, prototype: Any) -> None:
        self._prototype = prototype
        self._by_birth: dict[int, Any] = {}
        self._births = 0  # leaves born earlier have inherited already

    def train(self, births: Ints, X: Floats, codes: Ints, n_classes: int) -> None:
        """Train each leaf's classifier with the rows that reached it, in order."""
        for birth in dict.fromkeys(births.tolist()):
            rows = births == birth
            known = self._by_birth.get(birth)
            if known is None:
                fresh = clone(self._prototype)
                self._by_birth[birth] = fresh.partial_fit(X[rows], codes[rows], classes=np.arange(n_classes))
            else:
                known.partial_fit(X[rows], codes[rows])

    def guess(self, births: Ints, X: Floats, weights: Floats) -> Ints:
        """Return the prediction of each leaf for one row: the majority class without a classifier, -1 if empty."""
        guesses = np.where(weights.any(axis=1), weights.argmax(axis=1), -1)
        for k, birth in enumerate(births.tolist()):
            known = self._by_birth.get(birth)
            if known is not None:
                guesses[k] = known.predict(X)[0]
        return guesses

    def inherit(self, pools: Pools) -> None:
        """Copy the parent's classifier to leaves created by a split, and drop those of leaves that no longer exist."""
        links = pools.links
        leaves = np.flatnonzero((links[:, ALIVE] == 1) & (links[:, LEFT] < 0))
        for leaf in leaves[links[leaves, BORN] >= self._births]:
            parent = links[leaf, PARENT]
            if parent >= 0 and int(links[parent, BORN]) in self._by_birth:
                self._by_birth[int(links[leaf, BORN])] = deepcopy(self._by_birth[int(links[parent, BORN])])
        kept = set(links[leaves, BORN].tolist())
        self._by_birth = {birth: known for birth, known in self._by_birth.items() if birth in kept}
        self._births = int(pools.state[BIRTHS])

    def votes(self, births: Ints, X: Floats, votes: Floats) -> None:
        """Overwrite the votes of rows whose leaf has a classifier with the probabilities of that classifier."""
        for birth in dict.fromkeys(births.tolist()):
            known = self._by_birth.get(birth)
            if known is not None:
                rows = np.flatnonzero(births == birth)
                votes[rows] = 0.0
                votes[rows[:, None], known.classes_.astype(np.int64)] = known.predict_proba(X[rows])

    def of(self, birth: int) -> Any:
        """Return the classifier of a leaf, or None if it has none yet."""
        return self._by_birth.get(birth)
