"""Gini index: what the best cut of a feature takes off the impurity of the class.

Wang, Barbu: Online Feature Screening for Data Streams with Concept Drift, IEEE TKDE 35(11), 2023. Equation (6) of
:mod:`tamis.rows.screening`, which has the table of symbols, the errata and our deviations.
"""

from __future__ import annotations

from tamis.rows.screening.screener import BinScreener

__all__ = ["GiniIndex"]


class GiniIndex(BinScreener):
    """Selects the features for which a single cut reduces the Gini impurity of the class most.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=0.1
        How many features to keep, or which fraction of them, in (0, 1]. None: as many as `level` allows.
    n_bins : int, default=5
        Number of bins of about equal weight for a numeric column, at least 2.
    categorical : "all", list of int or str, or bool mask, optional
        Columns (positions, or names of a frame) whose values are categories without order, coded as whole numbers from
        0 to 65,535. Each value is a bin. By default all columns are numbers.
    eps : float, optional
        Largest error of a cumulative count, as a fraction of all counts, in [1e-6, 0.5). A feature of at most 1 / eps
        distinct values in each class has no error. By default 2e-6 times the number of features, within 0.001 and 0.01;
        this takes about 150 MB after ten million rows.
    dtype : {"float32", "float64"}, default="float32"
        How numbers are stored. Values that float32 cannot distinguish are ties.
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
        Equation (6), in [0, 1).
    evalues_, n_observed_, nbytes_
        As in :class:`tamis.rows.Screening`.
    waiting_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, when the first rows arrive.
    DataError
        If a value is infinite, too large for `dtype`, or not a category in a categorical column. NaN is no error: it is
        skipped, feature by feature. The model is left as it was.

    Notes
    -----
    A batch is the same as its rows one at a time up to rounding. Memory is bounded; see
    :class:`tamis.summaries.quantiles.QuantileSummary`. CSR rows cost O(stored values), except that their categorical
    columns cost as much as dense ones.

    References
    ----------
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift. Equation (6) of
    :mod:`tamis.rows.screening`.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import GiniIndex
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 20))
    >>> y = X[:, 5] > 0.8
    >>> GiniIndex(1).fit(X, y).get_support(indices=True)
    array([5])
    """

    def _score_names(self) -> tuple[str, ...]:
        return ("gini",)
