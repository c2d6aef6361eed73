"""Coefficients of the model that a selector has grown, in the units of the features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.columns.sequential import RegressionSelector

__all__ = ["coefficients"]

Floats = NDArray[np.float64]
_SEPARATED = 9.0  # smallest linear predictor in size, if the classes are told apart without error


def coefficients(selector: Any, features: Floats, y: Any) -> Floats | None:
    """Return the coefficients of the selected features in the model that the last candidate was tested against.

    A growing model keeps orthonormal columns, not the features; their coefficients are those that give its linear
    predictor.

    Parameters
    ----------
    selector : ColumnSelector
    features : ndarray of shape (n_rows, n_selected), float64
        The selected features in the order in which they were offered, as ``Exploration.transform`` makes them.
    y : array-like of shape (n_rows,)
        The target.

    Returns
    -------
    ndarray of shape (n_selected,), float64, or None
        In a logistic model those of the log odds of ``selector.classes_[1]``. NaN if the classes are separated, so
        that there are none; None if the selector fits no regression.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> y = 2 * X[:, 0] - 5 * X[:, 2] + 7
    >>> selector = AlphaInvesting().fit(X, y)
    >>> coefficients(selector, selector.transform(X), y).round(6)
    array([ 2., -5.])
    """
    if not isinstance(selector, RegressionSelector):
        return None
    model = selector._model
    if hasattr(model, "fit"):  # a generalised linear model: what its own columns predict
        aim = model.design[:, : model.k] @ model.fit.beta
        if np.abs(aim).min() >= _SEPARATED:
            return np.full(features.shape[1], np.nan)
    else:
        aim = np.asarray(y, dtype=np.float64)
    centre = features.mean(axis=0) if selector.intercept else 0.0
    spread = features.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    design = (features - centre) / spread
    if selector.intercept:
        design = np.column_stack([design, np.ones(len(design))])
    found: Floats = np.linalg.lstsq(design, aim, rcond=None)[0][: features.shape[1]] / spread
    return found
