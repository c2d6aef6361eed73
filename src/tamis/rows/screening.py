"""Online screening: T-score, Fisher score, mutual information, chi-square and Gini index of every feature, by itself.

Wang, Barbu: Online Feature Screening for Data Streams with Concept Drift, IEEE TKDE 35(11), 2023 (preprint 2021).
Covered: the mean-variance scores (Section 2.1) and the bin-count scores (Section 2.2), their running and faded forms,
sparse rows, and merging.

=============  ==================  ================================================================
paper          here                meaning
=============  ==================  ================================================================
n_c            count               (faded) number of values of the feature in class c
mu_c, sigma_c  mean, var           their mean and variance (divided by n_c)
alpha          `fading`            what the weight of older rows is multiplied by, or `half_life`
K              `n_bins`            bins of about equal weight
N_bc           T[b, c]             (faded) number of values in bin b of class c
eps            `eps`               largest error of a cumulative count, as a fraction of all
=============  ==================  ================================================================

With n = sum_c n_c, m = sum_c n_c m_c / n, r_b = sum_c T[b, c], k_c = sum_b T[b, c], and A_c, B_c the counts of class c
up to and beyond edge h, of sums a and b::

    T      = |m_1 - m_2| / sqrt(v_1 / e_1 + v_2 / e_2)                              (1)
    Fisher = sum_c n_c (m_c - m)^2 / sum_c n_c v_c                                  (2)
    F      = Fisher (n - C) / (C - 1)                                               (3)
    MI     = sum_bc T[b, c] / n log(T[b, c] n / (r_b k_c))                          (4)
    chi2   = sum_bc (T[b, c] - r_b k_c / n)^2 / (r_b k_c / n)                       (5)
    Gini   = max_h sum_c [A_c^2 / a + B_c^2 / b - k_c^2 / n] / n                    (6)

Errata and deviations, each with its reason:

* The printed MS - mu^2 loses all digits where the mean is large: N(1e6, 1) gives a variance of 0.9966 for 0.9849.
  Deviations from the mean are summed instead.
* The printed faded mean and MS are faded *sums*, so their MS - mu^2 is no variance (it gives -640 for 2.72): sums are
  divided by the faded count.
* e_c in (1) is the effective sample size W^2 / W2 of the faded rows; with the faded count T would be too small.
* The printed alpha = 0.9 cannot be meant per row, where it leaves a window of 19 rows and detects nothing; `fade_per`
  says whether it counts rows or calls. `clock` says whether the rows of a class fade as rows or as rows of that class.
* Three classes or more: T is the largest of the classes against their rest.
* The printed Algorithm 1 stores a pruned summary back at the level it came from, which voids its bound, and the printed
  update of exact weights is no bound either; :mod:`tamis.summaries.quantiles` has a certificate instead.
* The printed Algorithm 3 compares the count of *one* bin with the *cumulative* cut h N / K, which gives five bins of
  [1, 200, 400, 399] for 1000 values. Here bin(x) = #{h : F(values below x) >= h / K}, ties included, which is what
  sorting all the values gives. A value that is frequent enough fills several bins' room, so that some are empty.
* The printed zero count of a sparse feature includes the row of its last stored value: here the zeros are all rows less
  the stored ones.
* The Gini index is printed as the impurity that is left, smaller for a better feature; (6) is what the best edge takes
  off the impurity, so that larger is more relevant in all scores.
* Categories (`categorical`) have no order: each value is a bin of (4) and (5), and (6) splits the categories in two: it
  cuts them in the order of their share of a class, of every class in turn; of two classes this is the best split.
* Faded counts are smaller than the evidence: p-values multiply (5), and G = 2 n MI, by W / W2, the effective number of
  rows per weight, which is 1 if nothing fades.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._check import check_choice
from tamis.rows.bin_counts import BinCounts
from tamis.rows.mean_variance import f_statistic
from tamis.rows.screener import SCORES, BinScreener, Screener

__all__ = ["ChiSquare", "FisherScore", "GiniIndex", "MutualInformation", "Screening", "TScore"]


class TScore(Screener):
    """Selects the features whose means in two classes differ most against their standard errors.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep, or which fraction of them, in (0, 1].
    half_life : float, optional
        Rows (or calls, see `fade_per`) after which a row counts half, in (0, inf]. By default nothing fades.
    fading : float, optional
        The same as a factor in (0, 1]; give one of the two.
    fade_per : {"row", "batch"}, default="row"
        Whether the clock counts rows or calls of `partial_fit`.
    clock : {"global", "class"}, default="global"
        Whether a row fades with every row that comes, or with those of its own class.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Equation (1), of three classes or more the largest of each class against the rest.
    pvalues_ : ndarray of shape (n_features,), float64
        Probability of a larger T between classes of equal means (large samples); of three classes or more, times
        the number of classes.
    n_observed_ : ndarray of shape (n_features,), float64
        (Faded) number of values that are not missing; a feature without any has 0, and the score 0.
    nbytes_ : int
        Bytes of what is kept of the stream.
    waiting_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, when the first rows arrive.
    DataError
        If a value is infinite; NaN is passed over, feature by feature. The model is left as it was.

    Notes
    -----
    A batch is the same as its rows one at a time up to rounding. Memory: 24 bytes per feature and class, whatever the
    number of rows. CSR rows cost O(stored values).

    References
    ----------
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift. Equation (1) of the source
    file's header.

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


class FisherScore(Screener):
    """Selects the features whose class means differ most against the spread within the classes.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep, or which fraction of them, in (0, 1].
    half_life : float, optional
        Rows (or calls, see `fade_per`) after which a row counts half, in (0, inf]. By default nothing fades.
    fading : float, optional
        The same as a factor in (0, 1]; give one of the two.
    fade_per : {"row", "batch"}, default="row"
        Whether the clock counts rows or calls of `partial_fit`.
    clock : {"global", "class"}, default="global"
        Whether a row fades with every row that comes, or with those of its own class.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Equation (2); infinite where the classes differ and nothing varies within them, 0 for a constant or missing
        feature.
    f_, pvalues_ : ndarray of shape (n_features,), float64
        Equation (3), and the probability of a larger F if the class means are equal (normal features, no fading).
    n_observed_ : ndarray of shape (n_features,), float64
        (Faded) number of values that are not missing; a feature without any has 0, and the score 0.
    nbytes_ : int
        Bytes of what is kept of the stream.
    waiting_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, when the first rows arrive.
    DataError
        If a value is infinite; NaN is passed over, feature by feature. The model is left as it was.

    Notes
    -----
    A batch is the same as its rows one at a time up to rounding. Memory: 24 bytes per feature and class, whatever the
    number of rows. CSR rows cost O(stored values).

    References
    ----------
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift. Equations (2) and (3) of the
    source file's header.

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
        return f_statistic(self.scores_, self._moments)


class MutualInformation(BinScreener):
    """Selects the features whose bins tell most about the class.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep, or which fraction of them, in (0, 1].
    n_bins : int, default=5
        How many bins of about equal weight a number is put in, at least 2.
    categorical : "all", list of int or str, or bool mask, optional
        Columns (positions, names of a frame) whose values are categories without order, whole numbers from 0 to 65,535:
        each value is a bin. By default all columns are numbers.
    eps : float, default=0.01
        Largest error of a cumulative count, as a fraction of all counts, in (0, 0.5); 0 for a feature of at most
        1 / eps distinct values in each class.
    dtype : {"float32", "float64"}, default="float32"
        How numbers are kept; neighbours that float32 cannot tell apart are ties.
    half_life : float, optional
        Rows (or calls, see `fade_per`) after which a row counts half, in (0, inf]. By default nothing fades.
    fading : float, optional
        The same as a factor in (0, 1]; give one of the two.
    fade_per : {"row", "batch"}, default="row"
        Whether the clock counts rows or calls of `partial_fit`.
    clock : {"global", "class"}, default="global"
        Whether a row fades with every row that comes, or with those of its own class.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Equation (4) in nats, from 0 to the logarithm of the number of classes.
    pvalues_ : ndarray of shape (n_features,), float64
        Probability of a larger score if feature and class are independent: 2 n MI is about chi-square, with
        (bins with counts - 1) (classes with counts - 1) degrees of freedom (G-test, large counts).
    n_observed_ : ndarray of shape (n_features,), float64
        (Faded) number of values that are not missing; a feature without any has 0, and the score 0.
    nbytes_ : int
        Bytes of what is kept of the stream.
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
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift. Equation (4) of the source
    file's header.

    Examples
    --------
    The class means of column 3 are equal, so only its bins show that it matters:

    >>> import numpy as np
    >>> from tamis import MutualInformation, TScore
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = rng.normal(size=(2000, 20))
    >>> X[:, 3] *= 1 + 2 * y
    >>> [s.fit(X, y).get_support(indices=True).tolist() for s in (MutualInformation(1), TScore(1))]
    [[3], [2]]
    """

    def _score_names(self) -> tuple[str, ...]:
        return ("mi",)


class ChiSquare(BinScreener):
    """Selects the features whose bins are spread most unlike in the classes.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep, or which fraction of them, in (0, 1].
    n_bins : int, default=5
        How many bins of about equal weight a number is put in, at least 2.
    categorical : "all", list of int or str, or bool mask, optional
        Columns (positions, names of a frame) whose values are categories without order, whole numbers from 0 to 65,535:
        each value is a bin. By default all columns are numbers.
    eps : float, default=0.01
        Largest error of a cumulative count, as a fraction of all counts, in (0, 0.5); 0 for a feature of at most
        1 / eps distinct values in each class.
    dtype : {"float32", "float64"}, default="float32"
        How numbers are kept; neighbours that float32 cannot tell apart are ties.
    half_life : float, optional
        Rows (or calls, see `fade_per`) after which a row counts half, in (0, inf]. By default nothing fades.
    fading : float, optional
        The same as a factor in (0, 1]; give one of the two.
    fade_per : {"row", "batch"}, default="row"
        Whether the clock counts rows or calls of `partial_fit`.
    clock : {"global", "class"}, default="global"
        Whether a row fades with every row that comes, or with those of its own class.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Equation (5), of the (faded) counts.
    pvalues_ : ndarray of shape (n_features,), float64
        Probability of a larger score if feature and class are independent, with
        (bins with counts - 1) (classes with counts - 1) degrees of freedom (large counts).
    n_observed_ : ndarray of shape (n_features,), float64
        (Faded) number of values that are not missing; a feature without any has 0, and the score 0.
    nbytes_ : int
        Bytes of what is kept of the stream.
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
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift. Equation (5) of the source
    file's header.

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


class GiniIndex(BinScreener):
    """Selects the features of which one cut takes most off the Gini impurity of the class.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep, or which fraction of them, in (0, 1].
    n_bins : int, default=5
        How many bins of about equal weight a number is put in, at least 2.
    categorical : "all", list of int or str, or bool mask, optional
        Columns (positions, names of a frame) whose values are categories without order, whole numbers from 0 to 65,535:
        each value is a bin. By default all columns are numbers.
    eps : float, default=0.01
        Largest error of a cumulative count, as a fraction of all counts, in (0, 0.5); 0 for a feature of at most
        1 / eps distinct values in each class.
    dtype : {"float32", "float64"}, default="float32"
        How numbers are kept; neighbours that float32 cannot tell apart are ties.
    half_life : float, optional
        Rows (or calls, see `fade_per`) after which a row counts half, in (0, inf]. By default nothing fades.
    fading : float, optional
        The same as a factor in (0, 1]; give one of the two.
    fade_per : {"row", "batch"}, default="row"
        Whether the clock counts rows or calls of `partial_fit`.
    clock : {"global", "class"}, default="global"
        Whether a row fades with every row that comes, or with those of its own class.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Equation (6), in [0, 1).
    n_observed_ : ndarray of shape (n_features,), float64
        (Faded) number of values that are not missing; a feature without any has 0, and the score 0.
    nbytes_ : int
        Bytes of what is kept of the stream.
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
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift. Equation (6) of the source
    file's header.

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


class Screening(BinScreener):
    """Several scores of one stream, in one pass and from one state; one of them selects.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep, or which fraction of them, in (0, 1].
    scores : list of {"t", "fisher", "mi", "chi2", "gini"}, default=all of them
        Which scores are wanted. T and Fisher share the moments of the classes, the other three share the bin counts;
        what no score needs is not kept.
    select_by : str, optional
        The score that `scores_` and the selection follow; by default the first of `scores`.
    n_bins : int, default=5
        How many bins of about equal weight a number is put in, at least 2.
    categorical : "all", list of int or str, or bool mask, optional
        Columns (positions, names of a frame) whose values are categories without order, whole numbers from 0 to 65,535:
        each value is a bin. By default all columns are numbers.
    eps : float, default=0.01
        Largest error of a cumulative count, as a fraction of all counts, in (0, 0.5); 0 for a feature of at most
        1 / eps distinct values in each class.
    dtype : {"float32", "float64"}, default="float32"
        How numbers are kept; neighbours that float32 cannot tell apart are ties.
    half_life : float, optional
        Rows (or calls, see `fade_per`) after which a row counts half, in (0, inf]. By default nothing fades.
    fading : float, optional
        The same as a factor in (0, 1]; give one of the two.
    fade_per : {"row", "batch"}, default="row"
        Whether the clock counts rows or calls of `partial_fit`.
    clock : {"global", "class"}, default="global"
        Whether a row fades with every row that comes, or with those of its own class.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        The score named by `select_by`.
    pvalues_ : ndarray of shape (n_features,), float64, or None
        Of that score; the Gini index has none.
    table_ : dict of str to ndarray of shape (n_features,)
        One row per feature: "feature" (its name), "n_observed", each score under its own name, and "t_pvalue",
        "fisher_pvalue", "mi_pvalue", "chi2_pvalue" of those that are there. A data frame can be made of it.
    n_observed_ : ndarray of shape (n_features,), float64
        (Faded) number of values that are not missing; a feature without any has 0, and the score 0.
    nbytes_ : int
        Bytes of what is kept of the stream.
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
    T and Fisher take the codes of a categorical column for numbers.

    References
    ----------
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift. Equations (1) to (6) of the source
    file's header.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import Screening
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = rng.normal(size=(2000, 20))
    >>> X[:, 3] *= 1 + 2 * y  # only the spread differs
    >>> X[:, 8] += 0.3 * y  # only the mean differs
    >>> screening = Screening(1, scores=["mi", "t"]).fit(X, y)
    >>> screening.get_support(indices=True), int(screening.scores_of("t").argmax())
    (array([3]), 8)
    >>> list(screening.table_)
    ['feature', 'n_observed', 'mi', 'mi_pvalue', 't', 't_pvalue']
    """

    def __init__(
        self,
        n_features_to_select: int | float = 0.1,
        *,
        scores: Sequence[str] = SCORES,
        select_by: str | None = None,
        n_bins: int = 5,
        categorical: Any = None,
        eps: float = 0.01,
        dtype: str = "float32",
        half_life: float | None = None,
        fading: float | None = None,
        fade_per: str = "row",
        clock: str = "global",
    ) -> None:
        super().__init__(
            n_features_to_select, n_bins=n_bins, categorical=categorical, eps=eps, dtype=dtype,
            half_life=half_life, fading=fading, fade_per=fade_per, clock=clock,
        )  # fmt: skip
        self.scores = scores
        self.select_by = select_by

    def _start(self, n_features: int) -> None:
        if isinstance(self.scores, str) or len(self.scores) == 0:
            raise ValueError(f"scores must be a list of {', '.join(SCORES)}, got {self.scores!r}.")
        for name in self.scores:
            check_choice("scores", name, SCORES)
        if self.select_by is not None:
            check_choice("select_by", self.select_by, tuple(self.scores))
        super()._start(n_features)

    def _new_bins(self, n_features: int) -> BinCounts | None:
        return super()._new_bins(n_features) if {"mi", "chi2", "gini"}.intersection(self.scores) else None

    def _score_names(self) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(self.scores))
        return names if self.select_by is None else tuple(dict.fromkeys((self.select_by, *names)))

    def scores_of(self, name: str) -> NDArray[np.float64]:
        """Return one of the scores.

        Parameters
        ----------
        name : str
            One of `scores`.

        Returns
        -------
        ndarray of shape (n_features,), float64

        Raises
        ------
        ValueError
            If it was not asked for in `scores`.
        """
        check_choice("name", name, tuple(self.scores))
        return self._read((name,))[0].scores

    @property
    def table_(self) -> dict[str, NDArray[Any]]:
        """All scores and their p-values, one row per feature; a data frame can be made of it."""
        names = tuple(dict.fromkeys(self.scores))
        features = self._names() or [f"x{j}" for j in range(self.n_features_in_)]
        table: dict[str, NDArray[Any]] = {
            "feature": np.array(features, dtype=object),
            "n_observed": self.n_observed_,
        }
        for name, readout in zip(names, self._read(names), strict=True):
            table[name] = readout.scores
            if readout.pvalues is not None:
                table[f"{name}_pvalue"] = readout.pvalues
        return table
