"""Coefficients of the model of a selector, in the units of the features."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis._validation import Floats
from tamis.columns.sequential import RegressionSelector

_SEPARATED = 9.0  # smallest absolute linear predictor at which the classes count as separated


def coefficients(selector: Any, features: Floats, y: Any) -> Floats | None:
    """Return the coefficients of the selected features in the model that the last candidate was tested against.

    A growing model stores orthonormal columns instead of the features; the coefficients returned reproduce its linear
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
        In a logistic model, coefficients of the log odds of ``selector.classes_[1]``. NaN if the classes are separated,
        so that no finite coefficients exist; None if the selector fits no regression, or one of several classes.

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
    if not isinstance(selector, RegressionSelector) or selector.model == "multinomial":
        return None
    model = selector._model
    if hasattr(model, "fit"):  # a generalised linear model: its linear predictor
        target = model.design[:, : model.k] @ model.fit.beta  # type: ignore[union-attr]
        if np.abs(target).min() >= _SEPARATED:
            return np.full(features.shape[1], np.nan)
    else:
        target = np.asarray(y, dtype=np.float64)
    centre = features.mean(axis=0) if selector.intercept else 0.0
    design = features - centre
    spread = np.abs(design).max(axis=0, initial=0.0)  # its square may overflow
    spread = np.where(spread > 0, spread, 1.0)
    design = design / spread
    if selector.intercept:
        design = np.column_stack([design, np.ones(len(design))])
    return np.linalg.lstsq(design, target, rcond=None)[0][: features.shape[1]] / spread
