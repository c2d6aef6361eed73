"""scikit-learn's SelectorMixin, imported when one of its methods is called."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import TransformerMixin
from sklearn.utils import get_tags

from tamis._validation import Array, Mask, Table, as_table, reject_nonfinite, with_accepted_names


def _original() -> Any:
    # Importing the package also imports scikit-learn's metrics, decompositions, neighbours and linear models.
    from sklearn.feature_selection import SelectorMixin as Original

    return Original


class SelectorMixin(TransformerMixin, metaclass=ABCMeta):  # type: ignore[misc]
    """The methods of :class:`sklearn.feature_selection.SelectorMixin`, for a class with ``_get_support_mask``."""

    def get_support(self, indices: bool = False) -> Array:
        """Return the selected features.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return their indices.

        Returns
        -------
        ndarray of shape (n_features,), bool, or of shape (n_kept,), int
        """
        mask = self._get_support_mask()
        return np.flatnonzero(mask) if indices else mask

    @abstractmethod
    def _get_support_mask(self) -> Mask:
        """Return which features are selected, shape (n_features,)."""

    def transform(self, X: Any) -> Any:
        """Return the selected columns.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray, CSR matrix or (with ``set_output``) frame of shape (n_rows, n_kept)
        """
        return self._transform_rows(X)

    def _transform_rows(self, X: Any) -> Any:
        """Return the selected columns; scikit-learn rejects other columns, warns, and returns frames."""
        if (table := as_table(X)) is None:
            return _original().transform(self, X)
        if (values := self._all_values(table)) is None:
            return _original().transform(self, with_accepted_names(table.native))
        return self._transform(values)

    def _all_values(self, table: Table) -> Array | None:
        """Return the values of the known columns if an array of some of them is wanted, otherwise None."""
        state = vars(self)
        known = state.get("feature_names_in_")
        output = state.get("_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
        is_known = table.names == (None if known is None else known.tolist()) and len(table) > 0
        if not is_known or output != "default" or state.get("n_features_in_") != len(table.own_names):
            return None
        if not len(at := self.get_support(indices=True)):
            return None
        if table.is_numeric:
            values = table.array
            try:
                reject_nonfinite(values, table.names)
            except ValueError:
                if not get_tags(self).input_tags.allow_nan:
                    raise
                reject_nonfinite(values, table.names, allow_nan=True)
        else:
            values = np.empty((len(table), len(table.own_names)), dtype=object)
            for j in at:
                values[:, j] = table.values(j)
        return values

    def _transform(self, X: Any) -> Any:
        return _original()._transform(self, X)

    def inverse_transform(self, X: Any) -> Any:
        """Return rows of all columns, with zeros in the columns that are not selected.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_kept)

        Returns
        -------
        ndarray or sparse matrix of shape (n_rows, n_features)
        """
        return _original().inverse_transform(self, X)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the selected features.

        Parameters
        ----------
        input_features : array-like of str of shape (n_features,), optional
            By default ``feature_names_in_``, or ``x0``, ``x1`` and so on.

        Returns
        -------
        ndarray of shape (n_kept,), object
        """
        return _original().get_feature_names_out(self, input_features)
