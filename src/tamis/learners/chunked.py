"""Ensembles that process the stream in chunks of rows: the base class of HEFT-Stream and HUWRS."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tamis._atomic import deliver_signals
from tamis._validation import Floats, Indices, Ints, columns_of
from tamis._validation.parameters import SEED, integer, parameter
from tamis.base.declarations import Claims
from tamis.catalog import find_learner
from tamis.learners.dense_rows import DenseRowClassifier


def new_classifier(estimator: Any) -> Any:
    """Return an unfitted classifier: a learner of the catalogue by name, or a clone."""
    if not isinstance(estimator, str):
        return clone(estimator)
    entry = find_learner(estimator)
    return entry.load()(**dict(entry.parameters))


@dataclass(repr=False, eq=False)
class ChunkedEnsemble(DenseRowClassifier):
    """Members that learn every row on arrival and are evaluated at the end of each chunk.

    A subclass implements `_train_members`, `_end_chunk` and `_voting_members`. Chunks are counted from the first row,
    so the result does not depend on the batch size.
    """

    adapts_itself = True  # see `tamis.learners.traits`
    # a batch is processed chunk by chunk
    claims = Claims()

    # State:
    #   _chunk_, _size_    rows of a chunk, and number of members
    #   _rows_, _codes_    (chunk, J) and (chunk,)  the rows of the chunk so far
    _shapes = """
        classes_ (c) labels  n_features_in_ (=j)  _is_category_ (j) bool  _chunk_ (=b)  _size_ (=n)
        _rows_ (b, j) float in [-1e150, 1e150] or nan  _codes_ (b) in [0, max(c, 1))
    """

    n_estimators: int = parameter(integer("[1, 1000]"), default=10)
    chunk_size: int = parameter(integer("[8, 1000000]"), default=500)
    _: KW_ONLY
    categorical: Any = None
    random_state: int = parameter(SEED[0], default=0)

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        self._is_category_ = np.zeros(n_features, dtype=bool)
        self._is_category_[columns_of(self.categorical, n_features, names)] = True
        self._chunk_, self._size_, self.drifts_ = int(self.chunk_size), int(self.n_estimators), list[int]()
        self._rows_, self._codes_ = np.zeros((self._chunk_, n_features)), np.zeros(self._chunk_, np.int64)

    def _new_member(self, estimator: Any, columns: Indices) -> Any:
        """Return an unfitted classifier for some columns; a named one receives the categorical ones among them."""
        model = new_classifier(estimator)
        if isinstance(estimator, str) and "categorical" in model.get_params():
            model.set_params(categorical=np.flatnonzero(self._is_category_[columns]).tolist())
        return model

    @abstractmethod
    def _train_members(self, X: Floats, y: Ints, first: int) -> None:
        """Train the members with rows of one chunk; `first` is the number of the first row."""

    @abstractmethod
    def _end_chunk(self, seen: int) -> None:
        """Evaluate the complete chunk; `seen` is the number of rows so far."""

    @abstractmethod
    def _voting_members(self) -> Sequence[tuple[Any, Indices, float]]:
        """Return the model, columns and weight of each member that votes."""

    def _learn(self, rows: Floats, codes: Ints) -> None:
        at, seen = 0, self.n_seen_
        if not self._codes_.flags.writeable:  # memory-mapped from a file
            self._rows_, self._codes_ = self._rows_.copy(), self._codes_.copy()
        while at < len(codes):
            deliver_signals()
            place = seen % self._chunk_
            n = min(len(codes) - at, self._chunk_ - place)
            X, y = rows[at : at + n], codes[at : at + n]
            self._rows_[place : place + n], self._codes_[place : place + n] = X, y
            self._train_members(X, y, seen)
            at, seen = at + n, seen + n
            if seen % self._chunk_ == 0:
                self._end_chunk(seen)

    def _classes_argument(self, model: Any) -> dict[str, Any]:
        """Return the `classes` argument that the first `partial_fit` of a model needs."""
        return {} if hasattr(model, "classes_") else {"classes": np.arange(len(self.classes_))}

    def _member_proba(self, model: Any, rows: Floats) -> Floats:
        """Return the class probabilities of a member; uniform while it is not fitted."""
        votes = np.zeros((len(rows), len(self.classes_)))
        if hasattr(model, "classes_"):
            votes[:, model.classes_.astype(np.intp)] = model.predict_proba(rows)
        else:
            votes[:] = 1.0 / max(votes.shape[1], 1)
        return votes

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class: the weighted mean over the members.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
        """
        check_is_fitted(self)
        rows = self._check_range(self._rows(X, False))
        votes = np.zeros((len(rows), len(self.classes_)))
        for model, columns, weight in self._voting_members():
            votes += weight * self._member_proba(model, rows[:, columns])
        return votes / votes.sum(axis=1, keepdims=True)
