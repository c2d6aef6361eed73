"""Models whose columns can be appended, and reset for reuse."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

from tamis._atomic import atomic
from tamis._guard import ThreadSafe
from tamis._validation.arrays import Ints, check_width, existing_columns


class ChangingColumns(ThreadSafe):
    """A selector or learner whose features can be appended and reset, if its method supports it."""

    _noun: ClassVar[str] = "selector"

    n_features_in_: int

    @abstractmethod
    def _append_columns(self, n_features: int) -> None:
        """Append features up to this number, or raise a ValueError."""

    @abstractmethod
    def _reset_columns(self, columns: Ints) -> None:
        """Reset features, or raise a ValueError."""

    @atomic
    def widen(self, n_features: int) -> Self:
        """Append features, if the method supports it; they count as absent in all rows so far.

        Absent is 0 for a selector and for rows or methods without missing values, otherwise missing. `Refit` uses them
        from the next fit on. For columns with names, see :class:`tamis.ByName`.

        Parameters
        ----------
        n_features : int
            At least the current number of features.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the method cannot grow (some cannot after dense rows), `n_features` is too small, or the columns have
            names.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        self._append_columns(check_width(n_features, self.n_features_in_, names, self._noun))
        return self

    @atomic
    def forget_columns(self, columns: Any) -> Self:
        """Reset some features, if the method supports it; they then count as absent in all rows so far.

        Their columns can then be reused; :class:`tamis.ByName` does so with a `budget`. See :meth:`widen`.

        Parameters
        ----------
        columns : array-like of int

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the method cannot reset features (some cannot after dense rows), or a column does not exist.
        """
        check_is_fitted(self)
        self._reset_columns(existing_columns(columns, self.n_features_in_))
        return self
