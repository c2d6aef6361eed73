"""The base of feature streams, which use the accepted features, store their recipes, and can be resumed."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._validation import Floats, Ints
from tamis.base import ColumnSelector
from tamis.columns.generators.formulas import Column, Recipe
from tamis.columns.generators.recipes import Recipes
from tamis.columns.generators.table import Block, Columns, dense
from tamis.errors import DataError

_CELLS = 1 << 20  # values of a block of candidates: 8 MB
_WIDEST = 1 << 14


@dataclass
class CandidateBlock:
    """A block of candidates.

    Attributes
    ----------
    names : list of str
    values : ndarray of shape (n_rows, m), or CSC matrix
    recipe : callable
        Returns the recipe of the candidate at a position of the block.
    """

    names: list[str]
    values: Block
    recipe: Callable[[int], Recipe]


class RecipeBook:
    """The accepted features, shared by the generators of one stream.

    Attributes
    ----------
    recipes : dict of str to Recipe
    values : dict of str to ndarray of shape (n_rows,)
    means : dict of str to float
        Mean of the non-missing values of each feature.
    powers : dict of str to int
        Powers offered so far, and the position of the generator that offered them; no other generator offers them.
    """

    def __init__(self) -> None:
        self.recipes: dict[str, Recipe] = {}
        self.values: dict[str, Floats] = {}
        self.means: dict[str, float] = {}
        self.powers: dict[str, int] = {}

    def add(self, name: str, recipe: Recipe, values: Floats) -> None:
        """Add an accepted feature.

        Parameters
        ----------
        name : str
        recipe : Recipe
        values : ndarray of shape (n_rows,)
        """
        self.recipes[name] = recipe
        self.values[name] = np.array(values, dtype=np.float64)
        values = self.values[name]
        known = values[~np.isnan(values)]
        self.means[name] = float(known.mean()) if len(known) else 0.0


class FeatureGenerator(ABC):
    """A stream of features, for ``fit_stream``, ``offer_stream`` and :func:`tamis.columns.generators.explore`.

    A subclass defines `_draw`, `position` and `seek`. The candidates and their order must not depend on the block size.
    A generator is used for one selector, once.

    Parameters
    ----------
    columns : Columns or None
        The table from which features are computed.

    Attributes
    ----------
    columns : Columns or None
    book : RecipeBook
        The accepted features; generators in a :class:`Chain` share it.
    """

    whole = False  # whether a block is offered as a whole, regardless of its size

    def __init__(self, columns: Columns | None = None) -> None:
        self.columns = columns
        self.book = RecipeBook()
        self.place = 0  # position in a chain
        self._last_block: CandidateBlock | None = None

    def __repr__(self) -> str:
        table = "" if self.columns is None else repr(self.columns)
        return f"{type(self).__name__}({table})"

    # -- hooks ---------------------------------------------------------------------------------------------

    @abstractmethod
    def _draw(self, selector: ColumnSelector, width: int) -> CandidateBlock | None:
        """Return 1 to `width` candidates, or None if none are available for now."""

    @abstractmethod
    def position(self) -> Any:
        """Return the position in the stream as plain values."""

    @abstractmethod
    def seek(self, position: Any) -> None:
        """Return to an earlier position.

        Parameters
        ----------
        position : object
            A return value of `position`.
        """

    def _settings(self) -> dict[str, Any]:
        """Return the parameters that distinguish this stream from another."""
        return {}

    # -- offering ------------------------------------------------------------------------------------------

    def next_features(self, selector: ColumnSelector, limit: int | None = None) -> Any:
        """Return names and a block of candidates, or None if there are no more.

        Parameters
        ----------
        selector : ColumnSelector
            The features accepted so far.
        limit : int, optional
            The most candidates to return.

        Returns
        -------
        (list of str, block) or None
        """
        self.store_accepted(selector)
        n_rows = selector._n_rows
        if self.columns is not None and self.columns.n_rows != n_rows:
            raise DataError(
                f"The features of {type(self).__name__} have {self.columns.n_rows} values, the first is"
                f" {self.columns.names[0]!r}, but y has {n_rows} rows: give one value for each row."
            )
        width = sys.maxsize if self.whole else max(1, min(_WIDEST, _CELLS // n_rows))
        with np.errstate(all="ignore"):  # values that overflow are rejected by name
            self._last_block = self._draw(selector, width if limit is None else min(width, limit))
        return None if self._last_block is None else (self._last_block.names, self._last_block.values)

    def store_accepted(self, selector: ColumnSelector) -> None:
        """Store the recipes of the accepted features of the last block.

        Parameters
        ----------
        selector : ColumnSelector
        """
        made, self._last_block = self._last_block, None
        new = [name for name in selector.selected_ if name not in self.book.recipes]
        if made is None or not new:
            return
        places = {name: i for i, name in enumerate(made.names)}
        for name in new:
            if (i := places.get(name)) is not None:
                self.book.add(name, made.recipe(i), dense(made.values[:, [i]])[:, 0])

    def discard_last_block(self) -> None:
        """Discard the last block, because it was not offered."""
        self._last_block = None

    def recipes(self, selector: ColumnSelector) -> Recipes:
        """Return the recipes of the selected features, in the order of ``selector.get_feature_names_out()``.

        Parameters
        ----------
        selector : ColumnSelector

        Returns
        -------
        Recipes

        Raises
        ------
        DataError
            If the selector contains a feature that this stream did not generate.
        """
        self.store_accepted(selector)
        mapping, means = {}, {}
        for name in selector.get_feature_names_out().tolist():
            mapping[name] = self.recipe_of(name)
            if selector.missing == "mean" and name in self.book.means:
                means[name] = self.book.means[name]
        return Recipes(mapping, means, self._column_names())

    def recipe_of(self, name: str) -> Recipe:
        """Return the recipe of a selected feature.

        Parameters
        ----------
        name : str

        Returns
        -------
        Recipe
        """
        recipe = self._find_recipe(name)
        if recipe is None:
            raise DataError(
                f"Feature {name!r} was not generated by this stream: offer all features through one."
            )
        return recipe

    def signature(self) -> dict[str, Any]:
        """Return values that distinguish this stream from another, with a fingerprint of its data.

        Returns
        -------
        dict
        """
        data = None if self.columns is None else self.columns.digest()
        return {"generator": type(self).__name__, **self._settings(), "data": data}

    def stage(self) -> str:
        """Return the name of the current stage, one word.

        Returns
        -------
        str
        """
        return type(self).__name__

    def join(self, book: RecipeBook, place: int) -> None:
        """Become part of a chain.

        Parameters
        ----------
        book : RecipeBook
        place : int
        """
        self.book, self.place = book, place

    # -- for subclasses ------------------------------------------------------------------------------------

    def _column_names(self) -> list[str]:
        return [] if self.columns is None else self.columns.names

    def _find_recipe(self, name: str) -> Recipe | None:
        """Return the recipe of an accepted feature; columns of the table need none."""
        recipe = self.book.recipes.get(name)
        if recipe is None and self.columns is not None and name in self.columns.index:
            return Column(name)
        return recipe

    def _values_of(self, name: str) -> Floats:
        """Return the values of an accepted feature, or of a column."""
        assert self.columns is not None
        return self.book.values[name] if name in self.book.values else self.columns.column(name)

    def _disambiguate(self, names: list[str]) -> list[str]:
        """Put a name in brackets if a column has the same name."""
        assert self.columns is not None
        if not self.columns.formulas:
            return names
        return [f"({name})" if name in self.columns.index else name for name in names]


def order(n: int, seed: Sequence[int] | None) -> Ints:
    """Return 0 to n - 1, shuffled if there is a seed."""
    if seed is None:
        return np.arange(n)
    return np.random.default_rng(list(seed)).permutation(n)
