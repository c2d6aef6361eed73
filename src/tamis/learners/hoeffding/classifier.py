"""Base class of trees, forests and rule sets: categorical columns, split options and encoding of rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tamis._validation import Array, as_classes, columns_of
from tamis._validation.parameters import integer, number, parameters
from tamis.learners.dense_rows import DenseRowClassifier
from tamis.learners.hoeffding.categories import Categories
from tamis.learners.hoeffding.leaves import GIVEN
from tamis.learners.hoeffding.splits import SplitOptions
from tamis.learners.hoeffding.validation import require

__all__ = ["LEAVES", "TreeClassifier"]

LEAVES = ("majority", "nb", "nb-adaptive")  # in the order of their codes


class TreeClassifier(DenseRowClassifier):
    """A classifier of one or more trees, or of rules. Subclasses implement training and voting."""

    _allowed = parameters(
        grace_period=integer("[1, inf)"),
        delta=number("(0, 1)"),
        tie_threshold=number("[0, inf)"),
        leaf=LEAVES,
        n_cuts=integer("[1, 10000]"),
        splitter=("normal", "quantiles"),
        binary_splits=(True, False),
        max_depth=(integer("[0, inf)"), None),
        max_nodes=(integer("[1, inf)"), None),
        new_feature_penalty=number("[0, 1)"),
    )

    grace_period: int
    delta: float
    tie_threshold: float
    leaf: Any
    n_cuts: int
    categorical: Any
    binary_splits: bool
    max_depth: int | None
    max_nodes: int | None
    new_feature_penalty: float = 0.0  # no parameter of most methods
    splitter: str = "normal"  # likewise
    _categories_: Categories

    @abstractmethod
    def _grow_cells(self, n_cells: int) -> None:
        """Allocate space for new categories."""

    @abstractmethod
    def _vote(self, rows: Array, numbers: Array, cells: NDArray[np.int64], votes: Array) -> None:
        """Write the class probabilities into `votes`."""

    @abstractmethod
    def _check_trees(self) -> None:
        """Reject trees whose links are out of bounds or cyclic."""

    def check_state(self) -> None:
        """Reject a state that learning cannot produce.

        Raises
        ------
        StateError
            If an array contains invalid values.
        """
        if not hasattr(self, "n_seen_"):
            return
        if hasattr(self, "_numeric_"):
            columns = np.concatenate([self._numeric_, self._categorical_])
            fits = len(columns) == self.n_features_in_ and np.array_equal(
                np.sort(columns), np.arange(len(columns))
            )
            require(fits, "_numeric_")
        self._check_trees()

    def _initialize(self, n_features: int, names: list[str] | None, classes: Any) -> None:
        self._categorical_ = columns_of(self.categorical, n_features, names)
        self._numeric_: NDArray[np.int64] = np.setdiff1d(np.arange(n_features), self._categorical_)
        self.classes_ = np.array([]) if classes is None else as_classes(classes)
        self._categories_ = Categories()
        self.n_seen_ = 0

    def _encode(self, rows: Array, *, learn: bool) -> tuple[Array, NDArray[np.int64]]:
        """Return the numeric columns, and the cells of the categorical ones."""
        if not len(self._categorical_):
            return rows, np.empty((len(rows), 0), dtype=np.int64)
        cells = self._categories_.cells(rows[:, self._categorical_], learn=learn)
        self._grow_cells(self._categories_.n_cells)
        return np.ascontiguousarray(rows[:, self._numeric_]), cells

    def _split_options(self, *, watched: bool = False, seed: int = -1) -> SplitOptions:
        own = not isinstance(self.leaf, str)
        return SplitOptions(
            GIVEN if own else LEAVES.index(self.leaf), float(self.grace_period), float(self.delta),
            float(self.tie_threshold), int(self.n_cuts), bool(self.binary_splits),
            -1 if self.max_depth is None else int(self.max_depth),
            -1 if self.max_nodes is None else int(self.max_nodes), watched, seed, own,
            float(self.new_feature_penalty),
        )  # fmt: skip

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite or NaN.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
        """
        check_is_fitted(self)
        rows = self._check_range(self._rows(X, False))
        votes = np.empty((len(rows), len(self.classes_)))
        self._vote(rows, *self._encode(rows, learn=False), votes)
        return votes
