"""What the summaries share: validation of a batch, rows that fade, and the size of a state."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._guard import ThreadSafeState, state_of
from tamis._shapes import state_error
from tamis._validation import Array, Rows, as_weights
from tamis.errors import DataError

_LARGEST_GAIN = 1e100


class FadingState(ThreadSafeState):
    """A state that grows instead of fading: rows enter with the `_gain` of their class, by which sums are divided."""

    _gain: Array

    def _rescale(self) -> None:
        """Divide all weights by the gain: an equivalent state with smaller numbers."""
        raise NotImplementedError

    def _faded_gain(self, keep: float | Array) -> Array:
        """Return the gain once earlier rows are discounted; the sums are rescaled before it exceeds 1e100."""
        if isinstance(keep, float) and keep == 1.0:
            return self._gain
        keep = np.maximum(keep, 1.0 / _LARGEST_GAIN)
        if (self._gain / keep).max(initial=0.0) > _LARGEST_GAIN:
            self._rescale()
        return self._gain / keep

    def fade(self, keep: float | Array) -> None:
        """Multiply the weight of all rows (per class, if an array) by `keep`, in [0, 1]."""
        self._gain = self._faded_gain(keep)


def change_parts(owner: Any, names: Iterable[str], change: Callable[[Any], Any]) -> None:
    """Replace the parts of a state, those that exist, by copies to which a change was made."""
    for name in names:
        if (part := getattr(owner, name)) is not None:
            part = copy.copy(part)
            change(part)
            setattr(owner, name, part)


def n_bytes(state: Any) -> int:
    """Bytes of the arrays of a state and of its parts."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    if sp.issparse(state):
        return int(state.data.nbytes)
    parts = (
        state
        if isinstance(state, list | tuple)
        else state_of(state).values()
        if hasattr(state, "__dict__")
        else ()
    )
    return sum(map(n_bytes, parts))


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
