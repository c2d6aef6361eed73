"""Merging: combine states that learned from parts of a stream, on threads, processes or machines.

Every object with `merge` can be merged: row selectors that are mergeable by the catalogue, and their summaries.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, TypeVar, cast

__all__ = ["merge_tree"]

State = TypeVar("State")

# Paragraphs of the docstrings of `merge`.
MERGE_DOCS = {
    "when": """
        when : {"after", "before"}, default="after"
            Whether the rows of `other` follow or precede those of this selector.
    """,
    "returns_and_raises": """
        Returns
        -------
        self

        Raises
        ------
        TypeError
            If `other` is of another class.
    """,
}


def merge_tree(states: Iterable[State], **how: Any) -> State:
    """Merge any number of states, pairs of equal size first, so that no state is merged many times.

    Each state takes part in at most log2(number of states) merges, rounded up. This keeps rounding errors small and
    merges states of similar size. The order is preserved: only neighbours are merged.

    Parameters
    ----------
    states : iterable of objects with a method ``merge``
        The states, in the order of their rows if rows fade. They are not modified. From a generator, at most
        log2(number of states) + 1 of them are in memory at once.
    **how : optional
        Further arguments of `merge`: ``when="after"`` if rows fade.

    Returns
    -------
    object
        A new state of the same class.

    Raises
    ------
    ValueError
        If `states` is empty, or two of them cannot be merged.
    TypeError
        If they have no `merge`.

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
    waiting: list[tuple[int, Any]] = []  # heights and states of complete trees, the highest first
    for state in states:
        if not hasattr(state, "merge"):
            raise TypeError(
                f"A {type(state).__name__} cannot be merged: its catalogue entry states the reason."
            )
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
    return cast(State, merged)
