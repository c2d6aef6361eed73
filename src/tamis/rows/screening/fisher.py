"""Fisher score: how far the class means of a feature lie apart, against the spread within the classes.

Wang, Barbu: Online Feature Screening for Data Streams with Concept Drift, IEEE TKDE 35(11), 2023. Equations (2), (3) of
:mod:`tamis.rows.screening`, which has the table of symbols, the errata and our deviations.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.rows.screening.mean_variance import f_statistic
from tamis.rows.screening.screener import Screener

__all__ = ["FisherScore"]


class FisherScore(Screener):
    """Selects the features whose class means differ most, relative to the spread within the classes.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=0.1
        How many features to keep, or which fraction of them, in (0, 1]. None: as many as `level` allows.
    half_life : float, optional
        Rows (or calls, see `fade_per`) after which a row counts half, in [0.01, inf]. By default nothing fades.
    fading : float, optional
        The same as a factor per row (or call) in [1e-6, 1]; give one of the two.
    fade_per : {"row", "batch"}, default="row"
        Whether fading counts rows or calls of `partial_fit`.
    clock : {"global", "class"}, default="global"
        Whether a row fades with every later row, or only with later rows of its own class.
    level : float in (0, 1), optional
        Bound on the false discovery rate, with ``n_features_to_select=None``. At any time, however often you look, at
        most this share of the kept features is irrelevant to the class, on average. A row counts once, whatever its
        weight, and must not fade; see `restarts`.
    redundancy : int, at least 1, optional
        How many columns of the best scores are candidates. Of these, the selector keeps the ones that add most to one
        another, by partial correlations in the last 1000 rows, and so few copies of one signal. `scores_` still rates
        each column by itself.
    restarts : "drift" or int, at least 1, optional
        When to forget all rows and restart. "drift": when the last 512 rows show that the relation of some column to
        the class differs from that in all rows before. A number: after so many rows. With `level`, each start has its
        share of the level (see `restart`), so the bound holds over the entire stream. Parts of a stream then cannot be
        merged. By default, never.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Equation (2); infinite where the classes differ and nothing varies within them, 0 for a constant or missing
        feature.
    f_, pvalues_ : ndarray of shape (n_features,), float64
        Equation (3), and the probability of larger differences if the class means are equal: the larger one of that
        of F and that of Welch's analysis of variance, in which no class is taken to vary less than all rows do. Of the
        effective numbers of rows, where rows fade or have weights.
    evalues_, n_observed_, nbytes_
        As in :class:`tamis.rows.Screening`.
    waiting_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, when the first rows arrive.
    DataError
        If a value is infinite. NaN is no error: it is skipped, feature by feature. The model is left as it was.

    Notes
    -----
    A batch is the same as its rows one at a time up to rounding. Memory is 24 bytes per feature and class, whatever the
    number of rows. CSR rows cost O(stored values).

    References
    ----------
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift. Equations (2) and (3) of
    :mod:`tamis.rows.screening`.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import FisherScore
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 1000)
    >>> X = rng.normal(size=(1000, 50))
    >>> X[:, 7] += y
    >>> FisherScore(n_features_to_select=1).fit(X, y).get_support(indices=True)
    array([7])
    """

    def _score_names(self) -> tuple[str, ...]:
        return ("fisher",)

    @property
    def f_(self) -> NDArray[np.float64]:
        """The F statistic of a one-way analysis of variance."""
        return np.zeros(self.n_features_in_) if self.waiting_ else f_statistic(self._moments)
