"""Replay: a learner restarts from the last rows when the selection reports a drift.

A selector that renews its set reports it by two attributes, and does not touch a learner:

* ``drift_detected_``, bool: in the last batch the set was renewed in a way that makes a learner outdated;
* ``n_replay``, int: how many of the last rows a learner should restart from.

The code that runs the learner keeps these rows, and gives them to a new learner, masked to the new selection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._validation import Array, Rows, check_number, is_integer

__all__ = ["Replay", "joined_labels", "joined_rows"]


class Replay:
    """Keeps the last rows, and decides when a learner restarts from them.

    Parameters
    ----------
    selector : object
        A selector with or without these two attributes; None has none.
    replay : {"auto", "always", "never"} or int, default="auto"
        ``"auto"`` and ``"always"``: when the selector asks for it, from as many rows as it asks for. An int: whenever
        the selection changes, from so many rows, for any selector.

    Attributes
    ----------
    batches : list of pairs
        The rows kept, as they came.

    Raises
    ------
    ValueError
        If `replay` is something else.

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

    def __init__(self, selector: Any, replay: str | int = "auto") -> None:
        if is_integer(replay):
            check_number("replay", replay, low=0, integer=True)
        elif replay not in ("auto", "always", "never"):
            raise ValueError(f"replay must be 'auto', 'always', 'never' or a number of rows, got {replay!r}.")
        self.selector, self.replay = selector, replay
        self.batches: list[tuple[Rows, Array]] = []
        self._n_kept = 0  # rows in them: to count them again at each row would take longer than to learn it

    @property
    def n_rows(self) -> int:
        """Number of rows to keep."""
        if self.replay == "never":
            return 0
        return int(getattr(self.selector, "n_replay", 0) if isinstance(self.replay, str) else self.replay)

    def is_due(self, *, changed: bool) -> bool:
        """Whether to restart after a batch that `changed` the selection or not."""
        if self.replay == "never":
            return False
        is_alarm = bool(getattr(self.selector, "drift_detected_", False))
        return is_alarm if isinstance(self.replay, str) else changed

    def add(self, X: Rows, y: Array) -> None:
        """Keep a copy of a batch, and no more batches than it takes."""
        wanted = self.n_rows
        if wanted == 0:
            return
        self.batches.append((X[-wanted:].copy(), y[-wanted:].copy()))
        self._n_kept += len(self.batches[-1][1])
        while self._n_kept - len(self.batches[0][1]) >= wanted:
            self._n_kept -= len(self.batches.pop(0)[1])

    def restore(self, batches: list[tuple[Rows, Array]]) -> None:
        """Restore the batches of another replay."""
        self.batches, self._n_kept = batches, sum(len(labels) for _, labels in batches)

    def rows(self) -> tuple[Rows, Array] | None:
        """Return the last rows and their labels, in order; None if none are kept."""
        wanted = self.n_rows
        if not self.batches or wanted == 0:
            return None
        parts, labels = zip(*self.batches, strict=True)
        return joined_rows(parts)[-wanted:], joined_labels(labels)[-wanted:]


def joined_rows(parts: Sequence[Rows]) -> Rows:
    """Return batches, dense or CSR as the first of them, as one."""
    if len(parts) == 1:
        return parts[0]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def joined_labels(labels: Sequence[Array]) -> Array:
    """Return the labels of batches as one array."""
    if len({part.dtype.kind for part in labels}) > 1:  # joining 1 and "1" must not make them one label
        labels = [part.astype(object) for part in labels]
    return np.concatenate(labels)
