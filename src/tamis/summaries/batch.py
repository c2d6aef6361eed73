"""Validation of a batch before it is added to a summary."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis._shapes import state_error
from tamis._validation import Array, Rows, as_weights
from tamis.errors import DataError

__all__ = ["check_batch", "check_waiting"]


def check_batch(
    X: Rows, codes: Array, sample_weight: Array | None, keep: float | Array, n_features: int, n_classes: int
) -> None:
    """Reject a batch with a wrong shape, unknown classes, invalid weights or an invalid fading factor.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    codes : ndarray of shape (n_rows,), int
        At least 0 and below `n_classes`.
    sample_weight : ndarray of shape (n_rows,), optional
        Finite and not negative.
    keep : float or ndarray of shape (n_classes,), in [0, 1]
    n_features, n_classes : int
        Number of features and classes of the summary.

    Raises
    ------
    DataError
        If an argument is invalid; the message names it.

    Examples
    --------
    >>> check_batch(np.ones((2, 3)), np.array([0, 1]), np.array([1.0, np.nan]), 1.0, n_features=3, n_classes=2)
    Traceback (most recent call last):
    ...
    tamis.errors.DataError: sample_weight[1] is nan: weights must be finite and not negative.
    """
    if X.ndim != 2 or X.shape[1] != n_features:
        raise DataError(
            f"X has shape {X.shape}, but the summary has {n_features} features: pass the same number."
        )
    if codes.shape != (X.shape[0],) or codes.dtype.kind not in "iu":
        raise DataError(
            f"codes is a {codes.dtype} array of shape {codes.shape}, but X has {X.shape[0]}"
            " rows: pass one integer per row."
        )
    if len(codes) and not (codes.min() >= 0 and codes.max() < n_classes):
        bad = codes.min() if codes.min() < 0 else codes.max()
        raise DataError(
            f"codes contains {bad}, but the summary has {n_classes} classes: grow it, or use 0, 1, ..."
        )
    # Weights that fade within a batch become arbitrarily small.
    as_weights(sample_weight, X.shape[0], (0.0, 1e100))
    if not (np.greater_equal(keep, 0.0) & np.less_equal(keep, 1.0)).all():
        raise DataError(f"keep must lie in [0, 1], got {keep}: 1 keeps all earlier rows, 0 discards them.")


def faded(sample_weight: Array | None, fade: Array | None) -> Array | None:
    """Return the weights of rows, each times its factor at the end of the batch; None for 1.

    Parameters
    ----------
    sample_weight, fade : ndarray of shape (n_rows,), optional
    """
    return sample_weight if fade is None else fade if sample_weight is None else fade * sample_weight


def check_waiting(blocks: list[tuple[Any, ...]], n_features: int) -> None:
    """Validate loaded pending rows (with codes, possibly weights): their number of columns must be `n_features`.

    Raises
    ------
    StateError
        If it differs.
    """
    for X, *others in blocks:
        if X.shape[1:] != (n_features,) or any(one.shape != X.shape[:1] for one in others):
            raise state_error(f"Rows of shape {X.shape} are pending in a summary of {n_features} features")
