"""A bounded sample of the rows of a stream, to refit a model to.

The sample is uniform: each row draws a number, and the rows with the smallest numbers are kept, at most 10,000. Two
rows of each class are kept in addition, so that no class disappears. With a fading factor f, a row also leaves once its
number exceeds f to the power of the number of rows after it, so it remains with the probability of its weight. The
number of a row depends on the seed and on the position of the row only, not on the batches.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
import scipy.sparse as sp

from tamis._shapes import Shapes
from tamis._validation import Array, Floats, Ints, Rows
from tamis.base.categories import Categories

_MOST = 10_000  # rows
_OF_A_CLASS = 2  # rows, so that one can be held out
_DRAWS = 4  # numbers that Philox generates per step


class RowSample:
    """Rows of a stream with their classes.

    Parameters
    ----------
    categories : Categories
        Categories of the categorical columns.
    classes : ndarray of shape (n_classes,)
        Empty for numeric targets, where all codes are 0.

    Attributes
    ----------
    rows : ndarray or CSR matrix of shape (n_kept, n_features), or None
        In the order of the stream.
    codes : ndarray of shape (n_kept,), int
        Class of each row.
    target : ndarray of shape (n_kept,), float64
        The numeric target of each row; 0 for classes.
    origin : ndarray of shape (n_kept,), int
        The row of the stream that each row is a copy of.
    n_seen : int
        Number of rows so far, including copies.

    Examples
    --------
    >>> sample = RowSample(Categories({}), np.array([0, 1]))
    >>> for start in (0, 15_000):
    ...     X = np.arange(start, start + 15_000.0)[:, None]
    ...     sample = sample.with_rows(X, (X[:, 0] == 7).astype(int), np.arange(15_000), seed=0)
    >>> sample.n_seen, len(sample.rows), int(sample.codes.sum()), round(sample.rows.mean(), -3)
    (30000, 10000, 1, np.float64(15000.0))
    """

    _state_spec = Shapes(
        "rows? (n, j)  classes (k) labels  codes (n) in [0, max(len(self.classes), 1))  target (n) finite"
        "  origin (n) in [0, 2**62) increasing"
        "  _key (n) float in [-inf, inf]  n_seen in [0, 2**62)  _n_rows in [0, 2**62)"
    )

    def __init__(self, categories: Categories, classes: Array) -> None:
        self.categories, self.classes = categories, classes
        self.rows: Rows | None = None
        self.codes, self.origin = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self.target, self._key = np.zeros(0), np.zeros(0)
        self.n_seen = self._n_rows = 0

    def with_rows(
        self, X: Rows, codes: Array, origin: Array, target: Array | None = None, *, seed: int, fading: float = 1.0,
        n_rows: int | None = None,
    ) -> Self:  # fmt: skip
        """Return the sample updated with these rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n, n_features)
        codes : ndarray of shape (n,), int
        origin : ndarray of shape (n,), int
            The row of the batch that each row is a copy of.
        target : ndarray of shape (n,), float64, optional
            By default 0.
        seed : int
        fading : float, default=1.0
            In (0, 1].
        n_rows : int, optional
            Rows of the batch before copies were made; by default `n`.
        """
        sample, n = copy.copy(self), len(codes)
        target = np.zeros(n) if target is None else target
        key = np.log(_uniform(seed, self.n_seen, n)) + np.log(fading) * np.arange(
            self.n_seen, self.n_seen + n
        )
        sample.n_seen, sample._n_rows = self.n_seen + n, self._n_rows + (n if n_rows is None else n_rows)
        key, codes = np.r_[self._key, key], np.r_[self.codes, codes]
        kept = _smallest(key, codes, np.log(fading) * (sample.n_seen - 1) if fading < 1.0 else np.inf)
        old, new = kept[kept < len(self.codes)], kept[kept >= len(self.codes)]
        if len(new) or len(old) < len(self.codes):
            more = X[new - len(self.codes)]
            sample.rows = more if self.rows is None else _concatenate(self.rows[old], more)
            sample._key, sample.codes = key[kept], codes[kept]
            sample.target = np.r_[self.target, target][kept]
            sample.origin = np.r_[self.origin, self._n_rows + origin][kept]
        return sample

    def compact(self) -> Self:
        """Return the sample, encoded by the classes and categories that occur in it, the latter most frequent first."""
        sample = copy.copy(self)
        if len(self.classes):
            present, sample.codes = np.unique(self.codes, return_inverse=True)
            sample.classes = self.classes[present]
        if self.categories.values and self.rows is not None:
            sample.categories, sample.rows = self.categories.by_frequency(self.rows)
        return sample


def _uniform(seed: int, start: int, n: int) -> Floats:
    """Return the numbers in (0, 1] of the rows from `start` on."""
    bits = np.random.Philox(key=seed).advance(start // _DRAWS)
    skipped = start % _DRAWS
    return 1.0 - np.random.Generator(bits).random(skipped + n)[skipped:]


def _smallest(key: Floats, codes: Array, bound: float) -> Ints:
    """Return the rows of the smallest keys below a bound, and the first of each class, in their order."""
    order = np.argsort(key, kind="stable")
    kept = np.zeros(len(key), dtype=bool)
    kept[order[:_MOST]] = True
    kept &= key < bound
    for c in np.unique(codes):
        kept[order[codes[order] == c][:_OF_A_CLASS]] = True
    return np.flatnonzero(kept)


def _concatenate(rows: Rows, more: Rows) -> Rows:
    """Return the concatenated rows, in the format of the first ones."""
    if sp.issparse(rows):
        return sp.vstack([rows, sp.csr_array(more)], format="csr")
    return np.concatenate([rows, more.toarray() if sp.issparse(more) else more])
