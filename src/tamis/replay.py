"""Replay: a learner is reset and trained on the last rows when the selection reports a drift.

A selector that replaces its selection reports it by two attributes, and does not modify a learner:

* ``drift_detected_``, bool: the last batch changed the selection in a way that makes a learner outdated;
* ``n_replay``, int: the number of last rows to train a new learner on.

The code that runs the learner stores these rows, and trains a new learner on them, masked to the new selection.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from tamis._validation import Array, Rows, check_number, is_integer

__all__ = ["Replay", "concatenate_labels", "concatenate_rows"]


class Replay:
    """Stores the last rows, and decides when a learner is reset and trained on them.

    Parameters
    ----------
    selector : object
        A selector with or without these two attributes, or None.
    replay : {"auto", "always", "never"} or int, default="auto"
        ``"auto"`` and ``"always"``: when the selector requests it, on the number of rows it requests. An int: whenever
        the selection changes, on that number of rows, for any selector.

    Attributes
    ----------
    batches : list of pairs
        The stored batches. The list is replaced, never modified.

    Raises
    ------
    ValueError
        If `replay` is invalid.

    Examples
    --------
    >>> replay = Replay(None, 3)
    >>> for start in (0, 2, 4):
    ...     replay.add(np.arange(start, start + 2)[:, None], np.array(["a", "b"]))
    >>> replay.is_due(changed=True)
    True
    >>> X, y = replay.rows()
    >>> X[:, 0].tolist(), y.tolist()
    ([3, 4, 5], ['b', 'a', 'b'])
    """

    def __init__(self, selector: BaseEstimator | None, replay: str | int = "auto") -> None:
        if is_integer(replay):
            check_number("replay", replay, low=0, integer=True)
        elif replay not in ("auto", "always", "never"):
            raise ValueError(f"replay must be 'auto', 'always', 'never' or a number of rows, got {replay!r}.")
        self.selector, self.replay = selector, replay
        self.batches: list[tuple[Rows, Array]] = []
        self._n_kept = 0  # rows in them, cached: counting them per row takes longer than learning

    def __deepcopy__(self, memo: dict[int, Any]) -> Replay:
        twin = copy(self)
        twin.selector = deepcopy(self.selector, memo)
        return twin

    @property
    def n_rows(self) -> int:
        """Number of rows to store."""
        if self.replay == "never":
            return 0
        return int(getattr(self.selector, "n_replay", 0) if isinstance(self.replay, str) else self.replay)

    def is_due(self, *, changed: bool) -> bool:
        """Whether to reset the learner after a batch that `changed` the selection or not."""
        if self.replay == "never":
            return False
        is_alarm = bool(getattr(self.selector, "drift_detected_", False))
        return is_alarm if isinstance(self.replay, str) else changed

    def add(self, X: Rows, y: Array) -> None:
        """Store a copy of a batch, and drop batches that are no longer needed."""
        wanted = self.n_rows
        if wanted == 0:
            return
        new, first = (X[-wanted:].copy(), y[-wanted:].copy()), 0
        self._n_kept += len(new[1])
        while first < len(self.batches) and self._n_kept - len(self.batches[first][1]) >= wanted:
            self._n_kept -= len(self.batches[first][1])
            first += 1
        self.batches = [*self.batches[first:], new]

    def restore(self, batches: list[tuple[Rows, Array]]) -> None:
        """Restore the batches of another replay."""
        self.batches, self._n_kept = batches, sum(len(labels) for _, labels in batches)

    def rows(self) -> tuple[Rows, Array] | None:
        """Return the last rows and their labels, in order; None if none are stored."""
        wanted = self.n_rows
        if not self.batches or wanted == 0:
            return None
        parts, labels = zip(*self.batches, strict=True)
        return concatenate_rows(parts)[-wanted:], concatenate_labels(labels)[-wanted:]


def concatenate_rows(parts: Sequence[Rows]) -> Rows:
    """Return the concatenated batches, dense or CSR like the first one."""
    if len(parts) == 1:
        return parts[0]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def concatenate_labels(labels: Sequence[Array]) -> Array:
    """Return the concatenated labels of batches."""
    if len({part.dtype.kind for part in labels}) > 1:  # 1 and "1" must remain two labels
        labels = [part.astype(object) for part in labels]
    return np.concatenate(labels)
