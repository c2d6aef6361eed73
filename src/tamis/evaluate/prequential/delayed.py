"""Delayed labels: the rows that wait for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tamis._validation import Array, Ints, Rows
from tamis.errors import DataError
from tamis.streams.stream import Batch, join_batches

Delay = int | tuple[str, str]


class Due(NamedTuple):
    """The rows whose labels arrived with a batch, in the order of arrival.

    Attributes
    ----------
    batch : pair (X, y) or None
        None if there are none.
    upto : ndarray of shape (n_rows,), int
        Number of these labels that were known after each row of the batch.
    """

    batch: Batch | None
    upto: Ints


class DelayedLabels:
    """Rows whose labels have not arrived yet.

    Parameters
    ----------
    delay : int or pair of str
        Delay of the labels in rows. Or two columns: the time of a row, and the time of its label. The
        label then arrives with the first row at or after that time, and never if it is NaN.
    max_rows : int, default=100_000
        Maximum number of waiting rows if times are given; beyond it the oldest are dropped.

    Attributes
    ----------
    blocks : list of tuples
        The waiting rows, in order: X, y, arrival times of the labels, row numbers.
    never, given_up : int
        Rows whose labels were declared never to arrive, and those given up.

    Examples
    --------
    >>> import numpy as np
    >>> late = DelayedLabels(3)
    >>> late.exchange(np.array([[1.0], [2.0]]), np.array(["a", "b"])).batch is None
    True
    >>> (X, y), upto = late.exchange(np.array([[3.0], [4.0], [5.0]]), np.array(["c", "d", "e"]))
    >>> X[:, 0].tolist(), y.tolist(), upto.tolist()
    ([1.0, 2.0], ['a', 'b'], [0, 1, 2])

    By times: the second label arrives before the first, the third never.

    >>> late = DelayedLabels(("at", "known"))
    >>> late.clock(["at", "heat", "known"])
    ['heat']
    >>> rows = np.array([[1.0, 20.0, 6.0], [2.0, 21.0, 5.0], [3.0, 22.0, np.nan], [6.5, 23.0, 9.0]])
    >>> (X, y), upto = late.exchange(*late.split_times(rows, np.array(["a", "b", "c", "d"])))
    >>> X[:, 0].tolist(), y.tolist(), upto.tolist(), late.never
    ([21.0, 20.0], ['b', 'a'], [0, 0, 0, 2], 1)
    """

    def __init__(self, delay: Delay, max_rows: int = 100_000) -> None:
        self.delay, self.max_rows = delay, max_rows
        self.blocks: list[tuple[Rows, Array, Array, Array]] = []
        self.n_came = self.never = self.given_up = 0
        self.now = -np.inf  # the latest time of a row
        self.columns: tuple[int, int] | None = None  # of the times

    @property
    def is_timed(self) -> bool:
        """Whether columns contain the times at which labels arrive."""
        return not isinstance(self.delay, int)

    @property
    def n_waiting(self) -> int:
        """Number of rows that wait for their labels."""
        return sum(len(y) for _, y, _, _ in self.blocks)

    def clock(self, names: list[str]) -> list[str]:
        """Find the columns of the times; return the names of the others.

        Raises
        ------
        DataError
            If the column does not exist.
        """
        if isinstance(self.delay, int):
            return names
        for name in self.delay:
            if name not in names:
                raise DataError(
                    f"delay names the column {name!r}, which does not exist; the columns are {', '.join(names[:20])}."
                )
        row, label = (names.index(name) for name in self.delay)
        self.columns = row, label
        return [name for j, name in enumerate(names) if j not in self.columns]

    def split_times(self, X: Rows, y: Array) -> tuple[Rows, Array, Array | None, Array | None]:
        """Return rows without the times, their labels, the times of the rows and those of the labels."""
        if self.columns is None:
            return X, y, None, None
        times = X[:, list(self.columns)]
        now, comes = (times.toarray() if sp.issparse(times) else times).astype(np.float64).T
        if not np.isfinite(now).all():
            row = int(np.argmin(np.isfinite(now)))
            raise DataError(f"The time {self.delay[0]!r} of row {row} of the batch is {now[row]}: fix it.")  # type: ignore[index]
        kept = np.delete(np.arange(X.shape[1]), self.columns)
        return X[:, kept] if sp.issparse(X) else X.take(kept, axis=1), y, now, comes

    def exchange(self, X: Rows, y: Array, now: Array | None = None, comes: Array | None = None) -> Due:
        """Add the rows of a batch, and return those whose labels arrived with it."""
        self.n_came += len(y)
        number = np.arange(self.n_came - len(y), self.n_came)
        if isinstance(self.delay, int) or now is None or comes is None:
            assert isinstance(self.delay, int)
            now, comes = number.astype(np.float64), number + float(self.delay)
        now = np.maximum.accumulate(np.append(self.now, now))[1:]
        self.now = float(now[-1])
        known = ~np.isnan(comes)
        self.never += int((~known).sum())
        comes = np.maximum(comes, now)  # no label arrives before its row
        self.blocks.append((X[known], y[known], comes[known], number[known]))
        due = self._take_due()
        if self.is_timed:
            self._give_up()
        if due is None:
            return Due(None, np.zeros(len(y), np.int64))
        rows, labels, arrival, of_row = due
        return Due((rows, labels), _known_after(arrival, of_row, now, number))

    def _take_due(self) -> tuple[Rows, Array, Array, Array] | None:
        """Remove and return the rows whose labels have arrived, in the order of arrival."""
        parts, waiting = [], []
        for X, y, comes, number in self.blocks:
            due = comes <= self.now
            if due.any():
                parts.append((X[due], y[due], comes[due], number[due]))
                X, y, comes, number = X[~due], y[~due], comes[~due], number[~due]
            if len(y):
                waiting.append((X, y, comes, number))
        self.blocks = waiting
        if not parts:
            return None
        X, y = join_batches([(X, y) for X, y, _, _ in parts])
        comes, number = (np.concatenate([part[k] for part in parts]) for k in (2, 3))
        order = np.lexsort((number, comes))
        if (order[:-1] < order[1:]).all():  # already in order
            return X, y, comes, number
        return X[order], y[order], comes[order], number[order]

    def _give_up(self) -> None:
        """Drop the oldest rows beyond the maximum number of waiting rows."""
        while (over := self.n_waiting - self.max_rows) > 0:
            block = self.blocks.pop(0)
            n = min(over, len(block[1]))
            self.given_up += n
            if n < len(block[1]):
                X, y, comes, number = block
                self.blocks.insert(0, (X[n:], y[n:], comes[n:], number[n:]))

    def counts(self) -> dict[str, int]:
        """Return the number of rows that still wait, that never get a label, and that were given up."""
        return {"waiting": self.n_waiting, "never": self.never, "given_up": self.given_up}

    def state(self) -> dict[str, Any]:
        """Return the state to be saved."""
        return {name: value for name, value in vars(self).items() if name not in ("delay", "max_rows")}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.__dict__.update(state)


def _known_after(arrival: Array, of_row: Array, now: Array, number: Array) -> Ints:
    """Return the number of known labels after each row; simultaneous rows see no label of later ones."""
    is_row = np.repeat([False, True], [len(arrival), len(now)])
    order = np.lexsort((is_row, np.append(of_row, number), np.append(arrival, now)))
    return np.cumsum(~is_row[order])[is_row[order]]
