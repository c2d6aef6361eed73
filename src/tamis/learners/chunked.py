"""Ensembles that look at the world in chunks of rows: what HEFT-Stream and HUWRS share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tamis._atomic import let_signals_in
from tamis.catalog import find_learner
from tamis.learners.dense_rows import DenseRowClassifier

__all__ = ["ChunkedEnsemble", "made"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def made(given: Any) -> Any:
    """Return a classifier that has not learned anything: a learner by name, or a copy."""
    if not isinstance(given, str):
        return clone(given)
    entry = find_learner(given)
    return entry.load()(**dict(entry.parameters))


class ChunkedEnsemble(DenseRowClassifier):
    """Members that learn each row as it comes, and are looked at when a chunk of rows is full.

    A subclass writes `_teach_members`, `_end_chunk` and `_ballots`, and calls `_begin_chunks` when it allocates its
    state. Chunks are counted from the first row on, so any division of the rows into batches is the same.
    """

    _equals_rows = ""  # parts are chunks

    # State:
    #   _chunk_            rows of a chunk
    #   _rows_, _codes_    (chunk, J) and (chunk,)  the rows of the chunk so far

    def _begin_chunks(self, chunk_size: int, n_features: int) -> None:
        self._chunk_ = int(chunk_size)
        self._rows_, self._codes_ = np.zeros((self._chunk_, n_features)), np.zeros(self._chunk_, np.int64)

    @abstractmethod
    def _teach_members(self, X: Floats, y: Ints, first: int) -> None:
        """Let the members learn rows of one chunk, of which the first has a number."""

    @abstractmethod
    def _end_chunk(self, seen: int) -> None:
        """Look at the chunk that is full now, after so many rows."""

    @abstractmethod
    def _ballots(self) -> Sequence[tuple[Any, NDArray[np.intp], float]]:
        """Return model, columns and weight of each member that has a vote."""

    def _learn(self, rows: Floats, codes: Ints) -> None:
        at, seen = 0, self.n_seen_
        if not self._codes_.flags.writeable:  # of a file mapped for reading
            self._rows_, self._codes_ = self._rows_.copy(), self._codes_.copy()
        while at < len(codes):
            let_signals_in()
            place = seen % self._chunk_
            n = min(len(codes) - at, self._chunk_ - place)
            X, y = rows[at : at + n], codes[at : at + n]
            self._rows_[place : place + n], self._codes_[place : place + n] = X, y
            self._teach_members(X, y, seen)
            at, seen = at + n, seen + n
            if seen % self._chunk_ == 0:
                self._end_chunk(seen)

    def _declared(self, model: Any) -> dict[str, Any]:
        """Return what the first call of a model's `partial_fit` is told of the classes."""
        return {} if hasattr(model, "classes_") else {"classes": np.arange(len(self.classes_))}

    def _votes_of(self, model: Any, rows: Floats) -> Floats:
        """Return the probabilities of a member; the same for all if it has learned nothing yet."""
        votes = np.zeros((len(rows), len(self.classes_)))
        if hasattr(model, "classes_"):
            votes[:, model.classes_.astype(np.intp)] = model.predict_proba(rows)
        else:
            votes[:] = 1.0 / max(votes.shape[1], 1)
        return votes

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class: the mean of what the members say, by weight.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
        """
        check_is_fitted(self)
        rows = self._bounded(self._rows(X, False))
        votes = np.zeros((len(rows), len(self.classes_)))
        for model, columns, weight in self._ballots():
            votes += weight * self._votes_of(model, rows[:, columns])
        found: NDArray[np.float64] = votes / votes.sum(axis=1, keepdims=True)
        return found
