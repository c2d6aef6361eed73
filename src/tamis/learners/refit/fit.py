"""A fit of an estimator on the last rows, saved as these rows and the unfitted estimator.

scikit-learn's estimators, and compatible ones, have no file format except pickle, which executes code when it is read.
The rows and the unfitted estimator can be saved without it, and refitting the estimator on them gives the same model.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from tamis._validation import Array, Floats, Ints, Rows
from tamis.errors import DataError
from tamis.learners.refit.libraries import with_categories
from tamis.learners.refit.recent_rows import RecentRows

__all__ = ["Fit", "Fitted"]


class Fitted(NamedTuple):
    """A fitted estimator.

    Attributes
    ----------
    model : estimator or None
        None: the rows had a single class, or no column was selected.
    present : ndarray of int
        Codes of the classes in the rows, in the order of the model's classes.
    constant : ndarray
        Proportion of each class present, or the mean target: the prediction without a model.
    fill : ndarray or None
        Means of the columns, for an estimator that does not accept missing values.
    """

    model: Any
    present: Ints
    constant: Floats
    fill: Floats | None


# The fitted estimators: fitted on first use, and never part of a saved or copied state.
_fitted: WeakKeyDictionary[Fit, Fitted] = WeakKeyDictionary()


class Fit:
    """The rows, the columns and the unfitted estimator of a fit; immutable, so copies of a model share it.

    Parameters
    ----------
    recipe : estimator
        Unfitted.
    rows : RecentRows
    columns : ndarray of int, or None
        The columns used, ascending; None: all.
    categorical : ndarray of int
        The categorical ones among all columns.
    is_numeric : bool
        Whether the task is a regression.
    fills : bool
        Whether missing values are replaced by the mean of the column.
    """

    def __init__(
        self, recipe: BaseEstimator, rows: RecentRows, columns: NDArray[np.intp] | None, categorical: NDArray[np.intp],
        is_numeric: bool, fills: bool,
    ) -> None:  # fmt: skip
        self.recipe, self.rows, self.columns, self.categorical = recipe, rows, columns, categorical
        self.is_numeric, self.fills = is_numeric, fills

    def __deepcopy__(self, memo: dict[int, Any]) -> Fit:
        twin = memo[id(self)] = object.__new__(Fit)
        vars(twin).update(deepcopy(vars(self), memo))
        if (value := _fitted.get(self)) is not None:
            _fitted[twin] = value
        return twin

    def fit_once(self) -> Fitted:
        """Return the fitted estimator, which is fitted by the first call, and again after loading."""
        fitted = _fitted.get(self)
        if fitted is None:
            fitted = _fitted[self] = self._run()
        return fitted

    def _run(self) -> Fitted:
        X, y, weights = self.rows.concatenate()
        X = self._select(X)
        fill = self._means(X) if self.fills else None
        X = impute(X, fill)
        if self.is_numeric:
            present, target = np.zeros(1, np.int64), y
            constant = np.array(
                [np.average(y, weights=weights) if weights is None or weights.any() else y.mean()]
            )
        else:
            present, target = np.unique(y, return_inverse=True)
            counts = np.bincount(target, weights=weights)
            constant = counts / counts.sum() if counts.any() else np.full(len(present), 1.0 / len(present))
        if X.shape[1] == 0 or (not self.is_numeric and len(present) < 2):
            return Fitted(None, present, constant, fill)
        model = clone(self.recipe)
        rows, options = with_categories(model, X, self._categorical())
        if weights is not None:
            options["sample_weight"] = weights
        try:
            model.fit(rows, target, **options)
        except (ValueError, TypeError) as error:
            name = type(model).__name__
            raise DataError(f"{name} cannot be fitted on the last {len(y):,} rows: {error}") from error
        return Fitted(model, present, constant, fill)

    def apply(self, X: Rows, verb: str) -> Array:
        """Return the output of a method of the fitted estimator for rows with all columns."""
        fitted = self.fit_once()
        rows = impute(self._select(X), fitted.fill)
        if len(self.categorical):
            rows, _ = with_categories(clone(self.recipe), rows, self._categorical())
        output: Array = np.asarray(getattr(fitted.model, verb)(rows))
        return output

    def _select(self, X: Rows) -> Rows:
        if self.columns is None:
            return X
        return X[:, self.columns] if sp.issparse(X) else X.take(self.columns, axis=1)

    def _categorical(self) -> NDArray[np.intp]:
        if self.columns is None or len(self.categorical) == 0:
            return self.categorical
        return np.flatnonzero(np.isin(self.columns, self.categorical))

    def _means(self, X: Rows) -> Floats:
        """Return the mean of the non-missing values of each column, 0 if all are missing."""
        values = X.data if sp.issparse(X) else X
        if not np.isnan(values.sum()):
            return np.zeros(0) if sp.issparse(X) else X.mean(axis=0, dtype=np.float64)
        if sp.issparse(X):
            raise DataError(
                "Sparse rows contain NaN, which the estimator does not accept: impute or drop it first."
            )
        known = ~np.isnan(X)
        total = np.where(known, X, 0.0).sum(axis=0, dtype=np.float64)
        return np.asarray(total / np.maximum(known.sum(axis=0), 1))


def impute(X: Rows, fill: Floats | None) -> Rows:
    """Return dense rows with their missing values replaced."""
    if fill is None or sp.issparse(X) or not np.isnan(X.sum()):
        return X
    return np.where(np.isnan(X), fill, X).astype(X.dtype, copy=False)
