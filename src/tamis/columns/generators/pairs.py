"""Features from pairs: selected features with every column, as products or ratios."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._validation import Floats, Ints, Mask, check_choice, check_number
from tamis.base import ColumnSelector
from tamis.columns.generators import formulas
from tamis.columns.generators.generator import CandidateBlock, FeatureGenerator, order
from tamis.columns.generators.sources import check_seed, seed_of
from tamis.columns.generators.table import Block, Columns, as_columns, dense, label

_OF = ("selected", "selected originals", "originals")


class _Pairs(FeatureGenerator):
    """Pairs each parent in turn with the columns with which it has not been paired yet.

    A subclass defines `_can_be_parent`, `_partners`, `_names`, `_recipe` and `_combine`.
    """

    columns: Columns

    def __init__(self, X: Any, of: str, random_state: int | None) -> None:
        super().__init__(as_columns(X))
        check_choice("of", of, _OF)
        self.of, self.random_state = of, check_seed(random_state)
        self._queue: list[str] = []  # parents in order of entry; those before `_at` are finished
        self._at = self._next = 0
        self._codes: Ints | None = None  # partners of the current parent
        self._values = np.empty(0)
        self._finished = np.zeros(self.columns.n_columns, dtype=bool)  # columns that were parents

    @abstractmethod
    def _can_be_parent(self, name: str, recipe: formulas.Recipe) -> bool:
        """Return whether a selected feature can be a parent."""

    @abstractmethod
    def _partners(self, parent: str) -> Ints:
        """Return the codes of the candidates of a parent."""

    @abstractmethod
    def _names(self, parent: str, codes: Ints) -> list[str]:
        """Return the candidates' names."""

    @abstractmethod
    def _recipe(self, parent: str, code: int) -> formulas.Recipe:
        """Return a candidate's recipe."""

    @abstractmethod
    def _combine(self, values: Floats, codes: Ints) -> Block:
        """Return the candidates of a parent with these values."""

    def _draw(self, selector: ColumnSelector, width: int) -> CandidateBlock | None:
        self._extend_originals()
        self._extend(selector)
        pieces: list[CandidateBlock] = []
        while width > 0 and self._at < len(self._queue):
            parent = self._queue[self._at]
            if self._codes is None:
                codes = self._shuffle(self._partners(parent))
                self._values, self._codes = self._values_of(parent), codes
            codes = self._codes[self._next : self._next + width]
            if len(codes):
                self._next, width = self._next + len(codes), width - len(codes)
                pieces.append(self._make(parent, codes))
                if self.of != "originals":
                    break  # one block for each parent, for selectors that process whole blocks
            else:
                self._finish(parent)
                self._at, self._next, self._codes = self._at + 1, 0, None
        return _concatenate_blocks(pieces) if pieces else None

    def _make(self, parent: str, codes: Ints) -> CandidateBlock:
        names = self._disambiguate(self._names(parent, codes))
        return CandidateBlock(
            names, self._combine(self._values, codes), lambda i: self._recipe(parent, int(codes[i]))
        )

    def _extend(self, selector: ColumnSelector) -> None:
        if self.of == "originals":
            return
        waiting = set(self._queue)
        for name in selector.selected_:
            recipe = None if name in waiting else self._find_recipe(name)
            if recipe is not None and self._can_be_parent(name, recipe):
                self._queue.append(name)

    def _shuffle(self, codes: Ints) -> Ints:
        return codes[order(len(codes), seed_of(self.random_state, self.place, 1 + self._at))]

    def _finish(self, parent: str) -> None:
        if (j := self.columns.index.get(parent)) is not None:
            self._finished[j] = True

    def position(self) -> Any:
        """Return the parents, the index of the current one, and the number of its candidates offered.

        Returns
        -------
        dict
        """
        queue = [] if self.of == "originals" else list(self._queue)
        return {"queue": queue, "at": self._at, "next": self._next}

    def seek(self, position: Any) -> None:
        """Go to the candidate at a position.

        Parameters
        ----------
        position : dict
        """
        same_parent = position["at"] == self._at and self._codes is not None
        self._next = int(position["next"])
        if self.of != "originals":
            self._queue = list(position["queue"])
        if not same_parent:
            self._at, self._codes = int(position["at"]), None
            self._extend_originals()
            self._finished[:] = False
            for parent in self._queue[: self._at]:
                self._finish(parent)

    def _extend_originals(self) -> None:
        if self.of == "originals" and not self._queue:
            places = order(self.columns.n_columns, seed_of(self.random_state, self.place))
            self._queue = [self.columns.names[j] for j in places.tolist()]

    def _settings(self) -> dict[str, Any]:
        return {"of": self.of, "random_state": self.random_state}


def _concatenate_blocks(pieces: list[CandidateBlock]) -> CandidateBlock:
    """Concatenate the blocks of several parents."""
    if len(pieces) == 1:
        return pieces[0]
    stops = np.cumsum([len(piece.names) for piece in pieces])
    blocks = [piece.values for piece in pieces]
    values = (
        sp.hstack(blocks, format="csc") if any(map(sp.issparse, blocks)) else np.concatenate(blocks, axis=1)
    )

    def recipe(i: int) -> formulas.Recipe:
        which = int(np.searchsorted(stops, i, side="right"))
        return pieces[which].recipe(i - int(stops[which]) + len(pieces[which].names))

    return CandidateBlock([name for piece in pieces for name in piece.names], values, recipe)


class Interactions(_Pairs):
    """Products of the selected features with every column; each product once, regardless of the order of its factors.

    Parameters
    ----------
    X : array-like, memory map, sparse matrix, frame or Columns, of shape (n_rows, n_columns)
    of : {"selected", "selected originals", "originals"}, default="selected"
        The first factor: every selected feature of this stream, the selected columns, or every column.
    squares : bool, default=True
        Whether a column is also multiplied by itself; the name is that of the power, ``x^2``.
    degree : int, default=2
        The largest number of factors, at least 2. With 3, a selected product is multiplied by every column.
    random_state : int or None, default=None
        Seed for shuffling the partners of each feature.

    Notes
    -----
    Products of columns with a mean far from 0 resemble their factors, so centre such columns first. Until a relevant
    product is selected, its effect acts as heteroscedastic noise, which makes the p-values of earlier products too
    small; use ``AlphaInvesting(variance="robust")``.

    Examples
    --------
    The product of three columns is offered because that of two was accepted:

    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> from tamis.columns.generators import Chain, Interactions, Originals
    >>> X = np.random.default_rng(1).normal(size=(400, 100))
    >>> y = X[:, 1] + X[:, 1] * X[:, 50] + X[:, 1] * X[:, 50] * X[:, 7]
    >>> stream = Chain(Originals(X), Interactions(X, degree=3))
    >>> AlphaInvesting(target_fdr=0.05, variance="robust").fit_stream(stream, y).selected_
    ['x1', 'x1*x50', 'x1*x50*x7']
    """

    def __init__(
        self,
        X: Any,
        *,
        of: str = "selected",
        squares: bool = True,
        degree: int = 2,
        random_state: int | None = None,
    ) -> None:
        super().__init__(X, of, random_state)
        check_choice("squares", squares, (True, False))
        check_number("degree", degree, low=2, integer=True)
        if of == "originals" and degree != 2:
            raise ValueError(f"degree must be 2 with of='originals', got {degree!r}: choose of='selected'.")
        self.squares, self.degree = bool(squares), int(degree)

    def _factors(self, parent: str) -> tuple[str, ...]:
        return self.recipe_of(parent).factors(parent)

    def _can_be_parent(self, name: str, recipe: formulas.Recipe) -> bool:
        factors = recipe.factors(name)
        if self.of == "selected originals" and not all(factor in self.columns.index for factor in factors):
            return False
        size = recipe.size() if len(factors) == 1 else len(factors)
        return size < self.degree

    def _partners(self, parent: str) -> Ints:
        factors = self._factors(parent)
        free = np.ones(self.columns.n_columns, dtype=bool)
        own = [self.columns.index[name] for name in set(factors) if name in self.columns.index]
        if len(factors) == 1:
            if own:  # pairs with a column that has been a parent were offered by that parent
                free &= ~self._finished
        else:
            for other in self._queue[: self._at]:
                self._exclude(Counter(factors), Counter(self._factors(other)), free)
        if not self.squares:
            free[own] = False
        elif len(own) == len(set(factors)) == 1:
            name = formulas.product_name((*factors, factors[0]))
            free[own] &= self.book.powers.setdefault(name, self.place) == self.place
        return np.flatnonzero(free)

    def _exclude(self, factors: Counter[str], done: Counter[str], free: Mask) -> None:
        """Exclude the column whose product was already offered as another product times its partner."""
        more, less = list((done - factors).elements()), list((factors - done).elements())
        if not self.squares and any(name in done for name in less):
            return  # the other product excluded that partner
        if len(more) == len(less) == 1 and less[0] in self.columns.index and more[0] in self.columns.index:
            free[self.columns.index[more[0]]] = False

    def _names(self, parent: str, codes: Ints) -> list[str]:
        factors, labels = self._factors(parent), self.columns.labels
        front = formulas.product_name(factors)
        names = [f"{front}*{labels[j]}" for j in codes.tolist()]
        for factor in set(factors):
            for i in np.flatnonzero(codes == self.columns.index.get(factor, -1)).tolist():
                names[i] = formulas.product_name((*factors, factor))
        return names

    def _recipe(self, parent: str, code: int) -> formulas.Recipe:
        factors = (*self._factors(parent), self.columns.names[code])
        if len(set(factors)) == 1:
            return formulas.Power(formulas.Column(factors[0]), factors[0], float(len(factors)))
        return formulas.Product(tuple(self.recipe_of(name) for name in factors), factors)

    def _combine(self, values: Floats, codes: Ints) -> Block:
        block = self.columns.block(codes)
        if not sp.issparse(block):
            return block * values[:, None]
        if np.isnan(values).any():
            return dense(block) * values[:, None]
        return sp.csc_matrix((block.data * values[block.indices], block.indices, block.indptr), block.shape)

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "squares": self.squares, "degree": self.degree}


class Ratios(_Pairs):
    """Every selected feature divided by every column, and vice versa; each ratio once.

    A denominator of 0 is replaced by the smallest nonzero absolute value, and denominators are clipped at 1e-8 of the
    largest, also in new rows.

    Parameters
    ----------
    X : array-like, memory map, sparse matrix, frame or Columns, of shape (n_rows, n_columns)
    of : {"selected", "selected originals", "originals"}, default="selected"
        The features that are numerator or denominator: the selected features that are not computed from others
        (columns, components), the selected columns, or every column.
    random_state : int or None, default=None
        Seed for shuffling the ratios of each feature.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> from tamis.columns.generators import Chain, Originals, Ratios
    >>> X = np.random.default_rng(0).lognormal(size=(200, 20))
    >>> y = X[:, 3] / X[:, 8]
    >>> "x3/x8" in AlphaInvesting().fit_stream(Chain(Originals(X), Ratios(X)), y).selected_
    True
    """

    def __init__(self, X: Any, *, of: str = "selected", random_state: int | None = None) -> None:
        super().__init__(X, of, random_state)

    def _can_be_parent(self, name: str, recipe: formulas.Recipe) -> bool:
        return recipe.is_atom and (self.of == "selected" or name in self.columns.index)

    def _partners(self, parent: str) -> Ints:
        """Code j: the parent over column j; n_columns + j: column j over the parent."""
        free = np.ones(self.columns.n_columns, dtype=bool)
        if (j := self.columns.index.get(parent)) is not None:
            free &= ~self._finished
            free[j] = False
        places = np.flatnonzero(free)
        return np.concatenate([places, places + self.columns.n_columns])

    def _split(self, code: int) -> tuple[str, bool]:
        """Return the column, and whether it is the denominator."""
        return self.columns.names[code % self.columns.n_columns], code < self.columns.n_columns

    def _names(self, parent: str, codes: Ints) -> list[str]:
        pairs = [self._split(code) for code in codes.tolist()]
        own = label(parent)
        return [f"{own}/{label(name)}" if below else f"{label(name)}/{own}" for name, below in pairs]

    def _recipe(self, parent: str, code: int) -> formulas.Recipe:
        column, below = self._split(code)
        above, under = (parent, column) if below else (column, parent)
        floor = smallest_nonzero(self._values_of(under)[:, None])[0]
        return formulas.Ratio(self.recipe_of(above), self.recipe_of(under), (above, under), float(floor))

    def _combine(self, values: Floats, codes: Ints) -> Block:
        below = codes < self.columns.n_columns
        block = np.array(dense(self.columns.block(codes % self.columns.n_columns)))
        under = block[:, below]
        block[:, below] = values[:, None] / formulas.away_from_zero(under, smallest_nonzero(under))
        block[:, ~below] /= formulas.away_from_zero(values, smallest_nonzero(values[:, None])[0])[:, None]
        return block


def smallest_nonzero(values: Floats) -> Floats:
    """Return the smallest nonzero absolute value of each column, at least 1e-8 of the largest; 1 if all are 0."""
    size = np.abs(values)
    size = np.where(np.isnan(size), 0.0, size)
    largest = size.max(axis=0, initial=0.0)
    least = np.where(size > 0, size, np.inf).min(axis=0, initial=np.inf)
    return np.where(largest > 0, np.maximum(least, 1e-8 * largest), 1.0)
