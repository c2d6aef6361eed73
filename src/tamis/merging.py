"""Merging: combine states that learned from parts of a stream, on threads, processes or machines.

Everything with `merge` can be merged: row selectors that are mergeable by the catalogue, and their summaries.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, TypeVar

__all__ = ["merge_tree"]

State = TypeVar("State")


def merge_tree(states: Iterable[State], **how: Any) -> State:
    """Merge any number of states, two of equal size at a time, so that none goes through many merges.

    The number of merges of each state is at most the logarithm (to base 2, rounded up) of the number of states. This
    keeps rounding errors small and merges states of similar size. The order is kept: only neighbours are merged.

    Parameters
    ----------
    states : iterable of objects with a method ``merge``
        The states, in the order of their rows, where rows fade. They stay as they are. From a generator, at most that
        logarithm of states, plus one, is held at once.
    **how : optional
        Further arguments of `merge`: ``when="after"`` where rows fade.

    Returns
    -------
    object
        A new state of the same class.

    Raises
    ------
    ValueError
        If `states` is empty, or two of them cannot be merged.
    TypeError
        If they cannot be merged.

    Examples
    --------
    >>> import numpy as np, tamis
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(700, 3)), rng.integers(0, 2, 700)
    >>> parts = [tamis.FisherScore(1).fit(X[i : i + 100], y[i : i + 100]) for i in range(0, 700, 100)]
    >>> whole = tamis.FisherScore(1).fit(X, y)
    >>> merged = tamis.merge_tree(parts)
    >>> merged.n_seen_, bool(np.allclose(merged.scores_, whole.scores_, rtol=1e-12))
    (700, True)
    """
    waiting: list[tuple[int, Any]] = []  # heights and states of whole trees, the highest first
    for state in states:
        if not hasattr(state, "merge"):
            raise TypeError(f"A {type(state).__name__} cannot be merged: its catalogue row says why.")
        height, right = 0, state
        while waiting and waiting[-1][0] == height:
            height, left = waiting.pop()
            left.merge(right, **how)
            height, right = height + 1, left
        waiting.append((height, copy.deepcopy(right) if height == 0 else right))
    if not waiting:
        raise ValueError("states is empty: give at least one.")
    _, merged = waiting.pop()
    while waiting:
        _, left = waiting.pop()
        left.merge(merged, **how)
        merged = left
    result: State = merged
    return result
