"""Tests of dependence between a column and the target, marginally and given kept columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from tamis._shapes import Shapes
from tamis._validation import Array, Floats, Ints, Mask, check_choice, check_number
from tamis.dependence.autocorrelation import (
    bounded_inflation,
    cross_inflation,
    fourier,
    is_steady,
    lasts_long,
    power_spectrum,
    uncertainty,
    variance_inflation,
)


@dataclass(frozen=True)
class Screening:
    """The result of a quick test of each of m columns.

    Attributes
    ----------
    strength, log_p : ndarray of shape (m,), float64
        Strength of the dependence on the target, and the logarithm of its p-value.
    near : ndarray of shape (m,), bool
        Whether the column may be dependent, and must be tested in full precision.
    """

    strength: Floats
    log_p: Floats
    near: Mask


@dataclass(frozen=True)
class Candidate:
    """One column, tested against the target in full precision."""

    values: Array  # in the representation of the test
    constant: bool
    strength: float
    log_p: float
    dependent: bool
    inflation: float = 1.0  # of the variance of its sums over neighbouring rows
    with_target: float = 1.0  # of the variance of its covariance with the target


_FEWEST_DF = 4.0
_OWN_BAR = 5.0  # standard errors: of thousands of columns, few are called dependent by chance
# Shapes and ranges that are common to all tests; a subclass adds its own.
KEPT = (
    "_n (=n)  _codes (n) int64 in [0, n)  n_kept_ (=k)  _kept (>1, n)  strength_ (k)  _n in [1, 2**31)"
    "  n_kept_ in [0, len(_kept)]"
    "  _own_inflation (k) float in [1, inf)  _with_target (k) float in [1, inf)"
)


@dataclass(eq=False, repr=False)
class DependenceTest(BaseEstimator, ABC):  # type: ignore[misc]
    """Tests columns for dependence on a target, and on the columns kept so far.

    State is replaced, or appended beyond the range of older copies, so a shallow copy is a snapshot.

    Attributes
    ----------
    n_kept_ : int
        Number of columns kept.
    strength_ : ndarray of shape (n_kept,), float64
        Strength of the dependence of each kept column on the target.
    """

    alpha: float = 0.01
    _: KW_ONLY
    dependence: str = "auto"
    n_kept_: int = field(init=False)
    strength_: Floats = field(init=False)
    _codes: Ints = field(init=False)  # the class of each row
    _is_dependent: bool = field(init=False)  # whether classes are autocorrelated
    _kept: Array = field(init=False)  # the values of each kept column, as a row
    _own_inflation: Floats = field(init=False)  # of each kept column
    _with_target: Floats = field(init=False)  # of its covariance with the target

    _state_spec = Shapes(KEPT)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.requires_fit = False, False  # it has no `fit`: parameters alone
        return tags

    @abstractmethod
    def start(self, codes: Ints) -> Self:
        """Validate the parameters, remove all columns and set the classes of the rows.

        Raises
        ------
        DataError
            If there is only one class, or too few rows.
        ValueError
            If a parameter is invalid.
        """

    @abstractmethod
    def screen(self, columns: Any) -> Screening:
        """Test the columns of an array or CSC matrix of shape (n_rows, m), float64, approximately."""

    @abstractmethod
    def candidate(self, column: Floats) -> Candidate:
        """Test one column of shape (n_rows,) in full precision."""

    @abstractmethod
    def dependence_on_kept(self, candidate: Candidate) -> tuple[Floats, Mask]:
        """Return the dependence between the candidate and each kept column, and where it is significant."""

    @abstractmethod
    def is_separated(self, place: int, others: list[int], most: int, always: int | None = None) -> bool:
        """Return whether the target is independent of a kept column given some other kept columns.

        Parameters
        ----------
        place : int
            The kept column to test.
        others : list of int
            Kept columns that may be conditioned on.
        most : int
            Largest size of a conditioning set, 1 or more.
        always : int, optional
            A kept column that belongs to every conditioning set, and counts towards `most`.
        """

    # -- rows that depend on those before them ------------------------------------------------------------

    @property
    def rows_dependent_(self) -> bool:
        """Whether tests count autocorrelated rows as fewer."""
        return self._is_dependent

    def _measure_target(self, codes: Ints) -> None:
        """Measure whether the classes are autocorrelated."""
        check_choice("dependence", self.dependence, ("auto", "independent", "series"))
        self._codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
        of_class = (np.arange(self._codes.max() + 1)[:, None] == self._codes).astype(np.float64)
        of_class -= of_class.mean(axis=1, keepdims=True)
        self._is_dependent = self.dependence == "series" or (
            self.dependence == "auto" and bool((variance_inflation(of_class) > 1.0).any())
        )

    def _inflations(self, values: Floats) -> tuple[float, float]:
        """Return the inflations of some values (m, n_rows) within the classes, and of their covariance with these.

        The classes of a sorted file are parts of a series; the difference between them does not count as dependence.
        Both are 1 where rows are independent. The second is (11) with (8), enlarged by the uncertainty of its estimate,
        and the number of rows if this is undetermined; or the first, if the class lasts for many rows, (12).
        """
        if not self.rows_dependent_:
            return 1.0, 1.0
        count = np.bincount(self._codes)
        means = np.array([np.bincount(self._codes, row) for row in values]) / count
        within = values - means[:, self._codes]
        own = float(bounded_inflation(within, _OWN_BAR).max())
        of_class = (np.arange(len(count))[:, None] == self._codes) / np.sqrt(count)[:, None]
        size = np.linalg.norm(values - values.mean(axis=1, keepdims=True), axis=1)
        within /= np.maximum(size, 1e-300)[:, None]
        A, F = (power_spectrum(fourier(x)) for x in (within, of_class))
        if lasts_long(self._codes) and is_steady(A).all():
            return own, own
        inflation, freedom = cross_inflation(A.sum(axis=0)[None], F.sum(axis=0)[None])
        if freedom[0] < _FEWEST_DF:
            return own, float(self._n)
        return own, float(np.clip(inflation[0] * uncertainty(freedom, self.alpha)[0], 1.0, self._n))

    # -- the kept columns ----------------------------------------------------------------------------------

    def keep(self, candidate: Candidate) -> None:
        """Append a column to the kept ones."""
        k = self.n_kept_
        if k == len(self._kept):
            room = np.zeros((2 * k, self._n), dtype=self._kept.dtype)
            room[:k] = self._kept
            self._kept = room
        self._kept[k] = candidate.values
        self._on_keep(candidate)
        self.strength_ = np.append(self.strength_, candidate.strength)
        self._own_inflation = np.append(self._own_inflation, candidate.inflation)
        self._with_target = np.append(self._with_target, candidate.with_target)
        self.n_kept_ = k + 1

    def drop(self, places: list[int]) -> None:
        """Remove kept columns; the indices of those after them decrease."""
        if not places:
            return
        left = np.delete(np.arange(self.n_kept_), places)
        kept = np.zeros_like(self._kept)
        kept[: len(left)] = self._kept[left]
        self._kept = kept
        self._on_drop(left)
        self.strength_, self.n_kept_ = self.strength_[left], len(left)
        self._own_inflation, self._with_target = self._own_inflation[left], self._with_target[left]

    def clear_room(self) -> None:
        """Clear the unused rows after the last kept column."""
        self._kept[self.n_kept_ :] = 0

    def _reset_kept(self, n_rows: int, dtype: type) -> None:
        """Remove all columns, and allocate a buffer for columns of `n_rows` rows."""
        self._n = n_rows
        self._kept = np.zeros((8, n_rows), dtype=dtype)  # row n_kept_ and those after it are free
        self.n_kept_, self.strength_, self._own_inflation, self._with_target = 0, *np.zeros((3, 0))

    def _on_keep(self, candidate: Candidate) -> None:
        """Hook: store further data of a column kept at index `n_kept_`."""

    def _on_drop(self, left: Ints) -> None:
        """Hook: keep only the data of the columns `left`, given by index."""

    def _check_alpha(self) -> None:
        check_number("alpha", self.alpha, low=0.0, high=1.0, open_low=True, open_high=True)
