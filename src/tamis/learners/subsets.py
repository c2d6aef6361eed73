"""Random feature subsets for ensembles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamis._validation import Ints
from tamis._validation.parameters import Kind, integer, number

COUNT_OR_FRACTION = Kind(
    "an integer from 1 on, a float in (0, 1]",
    lambda value: (
        integer("[1, inf)").accepts(value) or (isinstance(value, float) and number("(0, 1]").accepts(value))
    ),
)


def resolve_max_features(max_features: Any, n_features: int) -> int:
    """Return the number of features that `max_features` specifies: "sqrt", a count, a fraction, or None for all."""
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        count = round(math.sqrt(n_features)) + 1
    elif isinstance(max_features, int | np.integer):
        count = int(max_features)
    else:
        count = max(1, round(max_features * n_features))
    return min(count, n_features)


def balanced_subsets(n_subsets: int, size: int, n_features: int, seed: int) -> Ints:
    """Return random subsets of the features such that the frequencies of two features differ by at most one.

    Parameters
    ----------
    n_subsets : int
    size : int
        Number of features of a subset, at most `n_features`.
    n_features : int
    seed : int

    Returns
    -------
    ndarray of shape (n_subsets, size), int64
        Ascending in each row.

    Examples
    --------
    >>> balanced_subsets(3, 2, 6, seed=0)
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
