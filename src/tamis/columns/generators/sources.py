"""Features that do not depend on others: the columns, and any iterable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tamis._validation import check_number
from tamis.base import ColumnSelector, FeatureStream
from tamis.base.column_intake import block_of, one_column
from tamis.columns.generators.formulas import Column
from tamis.columns.generators.generator import CandidateBlock, FeatureGenerator, order
from tamis.columns.generators.table import Columns, as_columns
from tamis.errors import DataError

_CELLS = 1 << 20


class Originals(FeatureGenerator):
    """The unchanged columns of a table.

    Parameters
    ----------
    X : array-like, memory map, sparse matrix, frame or Columns, of shape (n_rows, n_columns)
    random_state : int or None, default=None
        Seed for shuffling the columns; None keeps their order.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> from tamis.columns.generators import Originals
    >>> X = np.random.default_rng(0).normal(size=(100, 300))
    >>> AlphaInvesting(target_fdr=0.05).fit_stream(Originals(X, random_state=1), X[:, 7] - X[:, 200]).selected_
    ['x200', 'x7']
    """

    columns: Columns

    def __init__(self, X: Any, *, random_state: int | None = None) -> None:
        super().__init__(as_columns(X))
        self.random_state = check_seed(random_state)
        self._next = 0

    def _draw(self, selector: ColumnSelector, width: int) -> CandidateBlock | None:
        if self._next == 0:
            self._order = order(self.columns.n_columns, seed_of(self.random_state, self.place))
        places = self._order[self._next : self._next + width]
        if not len(places):
            return None
        self._next += len(places)
        names = [self.columns.names[j] for j in places.tolist()]
        return CandidateBlock(names, self.columns.block(places), lambda i: Column(names[i]))

    def position(self) -> Any:
        """Return the number of columns offered.

        Returns
        -------
        int
        """
        return self._next

    def seek(self, position: Any) -> None:
        """Go to the column at a position.

        Parameters
        ----------
        position : int
        """
        self._next = int(position)
        self._order = order(self.columns.n_columns, seed_of(self.random_state, self.place))

    def _settings(self) -> dict[str, Any]:
        return {"random_state": self.random_state}


class FromIterable(FeatureGenerator):
    """Features from any Python iterable, or from a stream of your own.

    Parameters
    ----------
    features : iterable or FeatureStream
        Pairs of a name and a column, or of names and a block of columns, dense or sparse; or an object with a method
        ``next_features(selector)``. To be resumable, it must yield the same features again.

    Notes
    -----
    In new rows, such a feature is the column with its name.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> from tamis.columns.generators import FromIterable
    >>> x = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    >>> waves = ((f"sin {k}x", np.sin(k * x)) for k in range(1, 29))
    >>> AlphaInvesting().fit_stream(FromIterable(waves), np.sin(9 * x) + 0.1 * np.cos(5 * x)).selected_
    ['sin 9x']
    """

    def __init__(self, features: Any) -> None:
        super().__init__()
        self._own = features if isinstance(features, FeatureStream) else None
        self._pairs: Iterator[Any] | None = None if self._own is not None else iter(features)
        self._taken = 0  # columns before the current block
        self._block: tuple[list[str], Any] = ([], np.empty((0, 0)))
        self._used = 0

    def _draw(self, selector: ColumnSelector, width: int) -> CandidateBlock | None:
        if self._used == len(self._block[0]) and not self._load(selector):
            return None
        names, values = self._block
        part = slice(self._used, min(self._used + width, len(names)))
        self._used = part.stop
        chosen = names[part]
        return CandidateBlock(chosen, values[:, part], lambda i: Column(chosen[i]))

    def _load(self, selector: Any) -> bool:
        """Load the next pair; return whether there was one."""
        if self._own is not None:
            pair = self._own.next_features(selector)
        else:
            assert self._pairs is not None
            pair = next(self._pairs, None)
        if pair is None:
            return False
        try:
            names, content = pair
        except (TypeError, ValueError):
            raise DataError(
                f"A stream must yield pairs of a name and a column, or of names and a block, got {pair!r:.60}."
            ) from None
        before = self._taken + len(self._block[0])
        if names is None or isinstance(names, str):
            values, names = one_column(content), [f"x{before}" if names is None else names]
        else:
            values, names = block_of(content)[0], [str(name) for name in names]
        if values.shape[1] != len(names):
            raise DataError(
                f"A block has {len(names)} names for {values.shape[1]} columns: give one for each."
            )
        self._taken, self._used, self._block = before, 0, (names, values)
        return True

    def _find_recipe(self, name: str) -> Any:
        return self.book.recipes.get(name)

    def position(self) -> Any:
        """Return the number of features offered.

        Returns
        -------
        int
        """
        return self._taken + self._used

    def seek(self, position: Any) -> None:
        """Go to the feature at a position: forward, or back within the current block.

        Parameters
        ----------
        position : int
        """
        if self._own is not None and position > self._taken + len(self._block[0]):
            raise DataError("A stream of your own cannot be resumed: derive it from FeatureGenerator.")
        while position > self._taken + len(self._block[0]):
            if not self._load(None):
                raise DataError(
                    f"The iterable ended after {self._taken + self._used} features, but {position} were offered before:"
                    " resume with the same one."
                )
        self._used = int(position) - self._taken


def check_seed(random_state: Any) -> int | None:
    """Validate a seed."""
    if random_state is not None:
        check_number("random_state", random_state, low=0, integer=True)
    return None if random_state is None else int(random_state)


def seed_of(random_state: int | None, *more: int) -> tuple[int, ...] | None:
    """Return the seed of a part of a stream."""
    return None if random_state is None else (random_state, *more)
