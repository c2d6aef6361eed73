"""RandomSubset: a random subset of the features, sampled once, as a baseline.

This is the baseline of every selection. A method that ranks features univariately selects many copies of one signal,
and a random subset of the same size, which covers more signals, may be more accurate: Guyon, Elisseeff (2003), Section
3.2, on redundant variables. A selector that is not more accurate than it gains nothing from the labels.

==========  ===========  ==================================================
symbol      here         meaning
==========  ===========  ==================================================
r_j         ``_rank``    position of feature j in a random permutation
==========  ===========  ==================================================

The score of feature j is 1 - r_j / J: the selections of all sizes from one seed are nested.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from tamis._validation import Array, Floats, Indices, Rows
from tamis.base import Claims, Inputs, RowSelector

# State:
#   _rank  (J,) int64   r_j, from 0


@dataclass(eq=False, repr=False)
class RandomSubset(RowSelector):
    """Selects a random subset of the features when the first rows arrive, as a baseline.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep: a number in [1, n_features], or a fraction in (0, 1].
    random_state : int, RandomState or None, default=None
        Seed of the subset. None: a different subset for each fit.
    task : {"classification", "regression"}, default="classification"
        Classification or regression. It only affects the validation of targets, which are optional.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        From 1 / n_features to 1, all distinct: the order of selection. All zero while `warming_up_`.

    Raises
    ------
    DataError
        If a batch is invalid.

    Notes
    -----
    A batch costs only the validation of its rows. The subset depends only on the seed and the number of features.
    Columns added later (:meth:`widen`) are inserted at random positions of the order.

    References
    ----------
    Guyon, Elisseeff (2003). An introduction to variable and feature selection. JMLR 3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(100, 8)), rng.integers(0, 2, size=100)
    >>> two, four = (RandomSubset(k, random_state=1).fit(X, y) for k in (2, 4))
    >>> two.get_support(indices=True), four.get_support(indices=True)
    (array([2, 7]), array([1, 2, 6, 7]))
    """

    claims = Claims(equals_rows="exactly", sparse_time=True, ranks_relevance=False, counts_columns=True)
    accepts = Inputs(targets=("binary", "multiclass", "regression"), labels=False)
    _shapes = "_rank (j) int64 in [0, j) distinct"

    n_features_to_select: int | float = 0.1
    _: KW_ONLY
    random_state: Any = None
    task: str = "classification"

    def _start(self, n_features: int) -> None:
        self._rank = np.argsort(check_random_state(self.random_state).permutation(n_features))

    def _widen(self, n_features: int) -> None:
        """Insert each new column at a random position, so that the order stays uniformly random."""
        draws, rank = np.random.default_rng(self._rank), self._rank
        for j in range(len(rank), n_features):
            place = draws.integers(j + 1)
            rank = np.append(rank + (rank >= place), place)
        self._rank = rank

    def _forget_columns(self, columns: Indices) -> None:
        """Do nothing: the only state of a column is its random position."""

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        """Do nothing."""

    def _relevance(self) -> Floats:
        return 1.0 - self._rank / len(self._rank)
