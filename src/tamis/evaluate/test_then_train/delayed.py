"""Labels that come late: the rows that wait for theirs."""

from __future__ import annotations

from tamis._check import Array, Rows
from tamis.streams.stream import join_batches

__all__ = ["LateLabels"]


class LateLabels:
    """Rows whose labels have not come yet: that of a row comes with the `delay`-th row after it.

    Parameters
    ----------
    delay : int
        Rows, at least 0.

    Attributes
    ----------
    batches : list of pairs
        The rows that wait, in order: `delay` of them at most, copied.

    Examples
    --------
    >>> import numpy as np
    >>> late = LateLabels(3)
    >>> late.exchange(np.array([[1.0], [2.0]]), np.array(["a", "b"])) is None
    True
    >>> X, y = late.exchange(np.array([[3.0], [4.0], [5.0]]), np.array(["c", "d", "e"]))
    >>> X[:, 0].tolist(), y.tolist()
    ([1.0, 2.0], ['a', 'b'])
    """

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self.batches: list[tuple[Rows, Array]] = []

    def exchange(self, X: Rows, y: Array) -> tuple[Rows, Array] | None:
        """Take the rows of a batch, and return those whose labels came with it; None if there are none."""
        if self.delay == 0:
            return X, y
        self.batches.append((X.copy(), y.copy()))
        n_due = sum(len(labels) for _, labels in self.batches) - self.delay
        due = []
        while n_due > 0:
            rows, labels = self.batches.pop(0)
            if len(labels) > n_due:
                self.batches.insert(0, (rows[n_due:], labels[n_due:]))
            due.append((rows[:n_due], labels[:n_due]))
            n_due -= len(due[-1][1])
        return join_batches(due) if due else None
