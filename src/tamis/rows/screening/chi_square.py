"""Chi-square of the bins of a feature and the class.

Wang, Barbu: Online Feature Screening for Data Streams with Concept Drift, IEEE TKDE 35(11), 2023. Equation (5) of
:mod:`tamis.rows.screening`, which has the table of symbols, the errata and our deviations.
"""

from __future__ import annotations

from tamis.rows.screening.screener import BinScreener

__all__ = ["ChiSquare"]


class ChiSquare(BinScreener):
    """Selects the features whose bins are spread most unlike in the classes.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=0.1
        How many features to keep, or which fraction of them, in (0, 1]; None: as many as `level` allows.
    n_bins : int, default=5
        How many bins of about equal weight a number is put in, at least 2.
    categorical : "all", list of int or str, or bool mask, optional
        Columns (positions, names of a frame) whose values are categories without order, whole numbers from 0 to 65,535:
        each value is a bin. By default all columns are numbers.
    eps : float, optional
        Largest error of a cumulative count, as a fraction of all counts, in [1e-6, 0.5); 0 for a feature of at most
        1 / eps distinct values in each class. By default 2e-6 times the number of features, within 0.001 and 0.01:
        about 150 MB after ten million rows.
    dtype : {"float32", "float64"}, default="float32"
        How numbers are kept; neighbours that float32 cannot tell apart are ties.
    half_life : float, optional
        Rows (or calls, see `fade_per`) after which a row counts half, in [0.01, inf]. By default nothing fades.
    fading : float, optional
        The same as a factor in [1e-6, 1]; give one of the two.
    fade_per : {"row", "batch"}, default="row"
        Whether the clock counts rows or calls of `partial_fit`.
    clock : {"global", "class"}, default="global"
        Whether a row fades with every row that comes, or with those of its own class.
    level : float in (0, 1), optional
        With ``n_features_to_select=None``: the features kept are those with evidence enough that at any time, however
        often one looks, at most this share of them tells nothing of the class, on average. Rows must not fade; see
        `restarts`.
    redundancy : int, at least 1, optional
        Of so many columns of the best scores, those are kept that add most to one another, by partial correlations in
        the last 1000 rows: few copies of one signal. `scores_` stays what each column tells by itself.
    restarts : "drift" or int, at least 1, optional
        When all rows are forgotten, so that the screen begins anew: "drift", when the last 512 rows show that some
        column tells otherwise of the class than in all rows before; a number, after so many rows. With `level`, each
        beginning has its share of the level (see `restart`), so the promise is kept over the whole stream. Parts of a
        stream cannot be merged then. By default, never.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Equation (5), of the (faded) counts.
    pvalues_ : ndarray of shape (n_features,), float64
        Probability of a larger score if feature and class are independent, with
        (bins with counts - 1) (classes with counts - 1) degrees of freedom (large counts).
    evalues_, n_observed_, nbytes_
        As in :class:`tamis.rows.Screening`.
    waiting_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, when the first rows arrive.
    DataError
        If a value is infinite, too large for `dtype`, or no category where one is due; NaN is passed over, feature by
        feature. The model is left as it was.

    Notes
    -----
    A batch is the same as its rows one at a time up to rounding. Memory is bounded, see
    :class:`tamis.summaries.quantiles.QuantileSummary`; CSR rows cost O(stored values), and categorical columns of them
    as much as dense ones.

    References
    ----------
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift. Equation (5) of
    :mod:`tamis.rows.screening`.

    Examples
    --------
    Column 2 holds categories; the middle one is that of class 1, which no order of them shows:

    >>> import numpy as np
    >>> from tamis import ChiSquare
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=(900, 2)), rng.integers(0, 3, 900)])
    >>> y = (X[:, 2] == 1) & (rng.random(900) < 0.7)
    >>> selector = ChiSquare(1, categorical=[2]).fit(X, y)
    >>> selector.get_support(indices=True), selector.pvalues_ < 0.001
    (array([2]), array([False, False,  True]))
    """

    def _score_names(self) -> tuple[str, ...]:
        return ("chi2",)
