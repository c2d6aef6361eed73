"""Random subsets of the features: what ensembles on random subspaces share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._parameters import Kind, integer, number

__all__ = ["SHARE_OR_COUNT", "dealt", "n_drawn"]

SHARE_OR_COUNT = Kind(
    "an integer from 1 on, a float in (0, 1]",
    lambda value: (
        integer("[1, inf)").fits(value) or (isinstance(value, float) and number("(0, 1]").fits(value))
    ),
)


def n_drawn(max_features: Any, n_features: int) -> int:
    """Return how many features `max_features` means: "sqrt", a number, a share, or None for all."""
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        found = round(math.sqrt(n_features)) + 1
    elif isinstance(max_features, int | np.integer):
        found = int(max_features)
    else:
        found = max(1, round(max_features * n_features))
    return min(found, n_features)


def dealt(n_subsets: int, size: int, n_features: int, seed: int) -> NDArray[np.int64]:
    """Return random subsets of the features, each feature in as many of them as another, or one more.

    Parameters
    ----------
    n_subsets : int
    size : int
        Features of a subset, at most `n_features`.
    n_features : int
    seed : int

    Returns
    -------
    ndarray of shape (n_subsets, size), int64
        Ascending in each row.

    Examples
    --------
    >>> dealt(3, 2, 6, seed=0)
    array([[2, 3],
           [0, 5],
           [1, 4]])
    """
    rng, used = np.random.default_rng(seed), np.zeros(n_features, dtype=np.int64)
    subsets = np.empty((n_subsets, size), dtype=np.int64)
    for subset in subsets:
        subset[:] = np.sort(np.lexsort((rng.random(n_features), used))[:size])
        used[subset] += 1
    return subsets
