"""The recipes of all selected features, to compute them for new rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tamis._validation import Array, Floats, as_table, safe_repr
from tamis.base import html_repr
from tamis.columns.generators.formulas import Recipe
from tamis.columns.generators.table import Columns
from tamis.errors import DataError


class Recipes:
    """The recipes of the selected features, by which these are computed for new rows.

    They are saved and loaded by :func:`tamis.save` and :func:`tamis.load`, alone or with the selector.

    Parameters
    ----------
    recipes : dict of str to Recipe
        Recipes by feature name, in the order of the columns to return.
    fills : dict of str to float
        The value that replaces NaN, by feature. A feature without an entry must not be NaN.
    columns : list of str
        Names of the columns, for rows without names.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> from tamis.columns.generators import Chain, Interactions, Originals
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> stream = Chain(Originals(X), Interactions(X))
    >>> selector = AlphaInvesting(target_fdr=0.05).fit_stream(stream, X[:, 1] + X[:, 1] * X[:, 4])
    >>> recipes = stream.recipes(selector)
    >>> recipes.names, recipes.transform([[1, 2, 3, 4, 5]])
    (['x1', 'x1*x4'], array([[ 2., 10.]]))
    """

    def __init__(self, recipes: dict[str, Recipe], fills: dict[str, float], columns: list[str]) -> None:
        self._recipes, self._fills, self._columns = dict(recipes), dict(fills), list(columns)

    def check_state(self) -> None:
        """Validate that all features have recipes.

        Raises
        ------
        DataError
            If one has none.
        """
        for name, recipe in self._recipes.items():
            if type(name) is not str or not isinstance(recipe, Recipe):
                raise DataError(
                    f"The feature {safe_repr(name)} must have a recipe, got {type(recipe).__name__!r}."
                )

    @property
    def names(self) -> list[str]:
        """Names of the features, in the order of the columns that `transform` returns."""
        return list(self._recipes)

    def __repr__(self) -> str:
        first = ", ".join(self.names[:4]) + (", ..." if len(self) > 4 else "")
        return f"Recipes({len(self):,} features: {first})" if first else "Recipes()"

    def _repr_html_(self) -> str:
        made = {name: [str(recipe)] for name, recipe in self._recipes.items()}
        return html_repr("Recipes", [f"{len(self):,} features"], made)

    def __getitem__(self, name: str) -> Recipe:
        return self._recipes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._recipes)

    def __len__(self) -> int:
        return len(self._recipes)

    def transform(self, X: Any) -> Floats:
        """Compute the features of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_rows, n_columns)
            Columns are matched by name in a frame, and by position otherwise.

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64

        Raises
        ------
        DataError
            If a column is missing, or a feature is NaN or infinite.
        """
        columns = self._columns_of(X)
        features = np.empty((columns.n_rows, len(self)))
        for j, (name, recipe) in enumerate(self._recipes.items()):
            with np.errstate(all="ignore"):
                values = recipe.values(columns)
            if name in self._fills:
                values = np.where(np.isnan(values), self._fills[name], values)
            if not np.isfinite(values).all():
                row = int(np.flatnonzero(~np.isfinite(values))[0])
                raise DataError(f"Feature {name!r} is {values[row]} in row {row}: impute the rows first.")
            features[:, j] = values
        return features

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the features.

        Parameters
        ----------
        input_features : object
            Not used.

        Returns
        -------
        ndarray of shape (n_features,), str
        """
        return np.array(self.names, dtype=object)

    def _columns_of(self, X: Any) -> Columns:
        needed = set().union(*(recipe.needs() for recipe in self._recipes.values()))
        table = as_table(X)
        if table is not None:
            lacking = sorted(needed - set(table.texts))
            if lacking:
                raise DataError(f"The rows have no column {lacking[0]!r}, from which a feature is computed.")
            at = [j for j, name in enumerate(table.texts) if name in needed]
            # A selection without columns would have no rows either.
            return Columns(table.take(at) if at else np.zeros((len(table), 1)))
        columns = Columns(X)
        if columns.n_columns != len(self._columns):
            raise DataError(
                f"X has {columns.n_columns} features, but the features were computed from {len(self._columns)}"
                " columns: give rows with the same columns, or a frame."
            )
        return Columns(columns.X, self._columns)
