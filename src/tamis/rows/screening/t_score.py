"""T-score: the difference of the class means of a feature, against its standard error.

Wang, Barbu: Online Feature Screening for Data Streams with Concept Drift, IEEE TKDE 35(11), 2023. Equation (1) of
:mod:`tamis.rows.screening`, which has the table of symbols, the errata and our deviations.
"""

from __future__ import annotations

from tamis.rows.screening.screener import Screener

__all__ = ["TScore"]


class TScore(Screener):
    """Selects the features whose means in two classes differ most, relative to their standard errors.

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
        Equation (1), of three classes or more the largest of each class against the rest.
    pvalues_ : ndarray of shape (n_features,), float64
        Probability of a larger difference between classes of equal means (Welch's test, in which no class is taken
        to vary less than all rows do); of three classes or more, times the number of classes.
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
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift. Equation (1) of
    :mod:`tamis.rows.screening`.

    Examples
    --------
    The relevant feature changes in mid-stream; with a half-life the new one is found.

    >>> import numpy as np
    >>> from tamis import TScore
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(4000, 20)), rng.integers(0, 2, 4000)
    >>> X[:3000, 4] += y[:3000]
    >>> X[3000:, 9] += y[3000:]
    >>> [TScore(1, half_life=h).fit(X, y).get_support(indices=True).tolist() for h in (None, 300)]
    [[4], [9]]
    """

    def _score_names(self) -> tuple[str, ...]:
        return ("t",)
