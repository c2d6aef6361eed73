"""Base class of trees, forests and rule sets: categorical columns, split options and encoding of rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._validation import Array, Floats, Ints, columns_of
from tamis._validation.parameters import integer, number, parameter, parameters
from tamis.learners.dense_rows import DenseRowClassifier
from tamis.learners.hoeffding.categories import Categories
from tamis.learners.hoeffding.leaves import GIVEN
from tamis.learners.hoeffding.nodes import Pools
from tamis.learners.hoeffding.records import require
from tamis.learners.hoeffding.splits import SplitOptions

LEAVES = ("majority", "nb", "nb-adaptive")  # in the order of their codes


@dataclass(repr=False, eq=False, kw_only=True)
class TreeClassifier(DenseRowClassifier):
    """A classifier of one or more trees, or of rules. Subclasses implement training and voting."""

    _allowed = parameters(splitter=("normal", "quantiles"), new_feature_penalty=number("[0, 1)"))

    grace_period: int = parameter(integer("[1, inf)"), default=200)
    delta: float = parameter(number("(0, 1)"), default=1e-7)
    tie_threshold: float = parameter(number("[0, inf)"), default=0.05)
    leaf: Any = parameter(*LEAVES, default="nb-adaptive")
    n_cuts: int = parameter(integer("[1, 10000]"), default=10)
    categorical: Any = None
    binary_splits: bool = parameter(True, False, default=False)
    max_depth: int | None = parameter(integer("[0, inf)"), None, default=None)
    max_nodes: int | None = parameter(integer("[1, inf)"), None, default=None)

    new_feature_penalty = 0.0  # no parameter of most methods
    splitter = "normal"  # likewise

    def _every_pool(self) -> list[Pools]:
        """Return the pools that have an entry for each category."""
        return [self._pools_]

    @abstractmethod
    def _vote(self, rows: Array, numbers: Array, cells: Ints, votes: Array) -> None:
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

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        self._categorical_ = columns_of(self.categorical, n_features, names)
        self._numeric_: Ints = np.setdiff1d(np.arange(n_features), self._categorical_)
        self._categories_ = Categories()

    def _columns_in_use(self) -> Ints:
        """Return the columns that splits or rules use."""
        raise NotImplementedError

    def _change_columns(self, how: str, columns: Any) -> None:
        is_filled = self._state_spec.n_filled("p")
        if not is_filled or len(self._categorical_) or not isinstance(self.leaf, str):
            raise ValueError(f"{type(self).__name__} has a fixed number of columns: create a new one.")
        if how == "reset" and np.isin(columns, self._columns_in_use()).any():
            raise ValueError(f"{type(self).__name__} cannot forget columns that its splits use.")
        getattr(self._state_spec, how)(self, "p", columns)
        self.n_features_in_ = columns if how == "extend" else self.n_features_in_
        self._numeric_ = np.arange(self.n_features_in_)

    def _encode(self, rows: Array, *, learn: bool) -> tuple[Array, Ints]:
        """Return the numeric columns, and the cells of the categorical ones."""
        if not len(self._categorical_):
            return rows, np.empty((len(rows), 0), dtype=np.int64)
        cells = self._categories_.cells(rows[:, self._categorical_], learn=learn)
        for pools in self._every_pool():
            pools.grow_cells(self._categories_.n_cells)
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

    def predict_proba(self, X: Any) -> Floats:
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
