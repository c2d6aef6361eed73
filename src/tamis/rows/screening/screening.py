"""The five screening scores, and all of them at once: TScore, FisherScore, MutualInformation, ChiSquare, GiniIndex.

Wang, Barbu: Online Feature Screening for Data Streams with Concept Drift, IEEE TKDE 35(11), 2023. Equations (1) to
(6) of :mod:`tamis.rows.screening`, which has the table of symbols, the errata and our deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from tamis._docstrings import fill_docstring, paragraphs_of
from tamis._validation import Array, Floats, check_choice
from tamis._validation.parameters import Kind, parameter
from tamis.base.html_repr import html_repr
from tamis.base.rows import feature_names
from tamis.dependence.e_values import restart_level
from tamis.rows.screening.bin_counts import BinCounts
from tamis.rows.screening.mean_variance import f_statistic
from tamis.rows.screening.screener import SCORES, BinScreener, Screener

# The paragraphs that the docstrings of the base classes contain, for those of the scores: ``%(half_life)s``.
_OF_MOMENTS, _OF_BINS = paragraphs_of(Screener), paragraphs_of(BinScreener)


@fill_docstring(_OF_MOMENTS)
class TScore(Screener):
    """Selects the features whose means in two classes differ most, relative to their standard errors.

    Parameters
    ----------
    %(n_features_to_select)s
    %(task)s
    %(half_life)s
    %(fading)s
    %(fade_per)s
    %(clock)s
    %(level)s
    %(redundancy)s
    %(restarts)s
    %(dependence)s

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Equation (1), for three classes or more the largest of each class against the rest; for a numeric target the
        trend of the means over its levels, equation (4) of :mod:`tamis.rows.screening.mean_variance`.
    pvalues_ : ndarray of shape (n_features,), float64
        Probability of a larger difference between classes with equal means (Welch's test, in which the variance of a
        class is at least that of all rows); for three classes or more, times the number of classes.
    %(evalues_)s
    %(warming_up_)s

    Raises
    ------
    %(Raises)s

    Notes
    -----
    %(Notes)s

    References
    ----------
    %(References)s
    Equation (1) of :mod:`tamis.rows.screening`.

    Examples
    --------
    The relevant feature changes in mid-stream; with a half-life the new one is selected:

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


@fill_docstring(_OF_MOMENTS)
class FisherScore(Screener):
    """Selects the features whose class means differ most, relative to the spread within the classes.

    Parameters
    ----------
    %(n_features_to_select)s
    %(task)s
    %(half_life)s
    %(fading)s
    %(fade_per)s
    %(clock)s
    %(level)s
    %(redundancy)s
    %(restarts)s
    %(dependence)s

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Equation (2); infinite if the classes differ without variance within them, 0 for a constant or missing feature.
    f_, pvalues_ : ndarray of shape (n_features,), float64
        Equation (3), and the probability of larger differences if the class means are equal: the larger one of the
        p-values of F and of Welch's analysis of variance, in which the variance of a class is at least that of all
        rows. With effective numbers of rows, if rows fade or have weights.
    %(evalues_)s
    %(warming_up_)s

    Raises
    ------
    %(Raises)s

    Notes
    -----
    %(Notes)s

    References
    ----------
    %(References)s
    Equations (2) and (3) of :mod:`tamis.rows.screening`.

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
    def f_(self) -> Floats:
        """The F statistic of a one-way analysis of variance."""
        return np.zeros(self.n_features_in_) if self.warming_up_ else f_statistic(self._moments)


@fill_docstring(_OF_BINS)
class MutualInformation(BinScreener):
    """Selects the features whose bins have the largest mutual information with the class.

    Parameters
    ----------
    %(n_features_to_select)s
    %(task)s
    %(n_bins)s
    %(categorical)s
    %(eps)s
    %(dtype)s
    %(half_life)s
    %(fading)s
    %(fade_per)s
    %(clock)s
    %(level)s
    %(redundancy)s
    %(restarts)s
    %(dependence)s

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Equation (4) in nats, from 0 to the logarithm of the number of classes.
    pvalues_ : ndarray of shape (n_features,), float64
        Probability of a larger score if feature and class are independent: 2 n MI is approximately chi-square, with
        (bins with counts - 1) (classes with counts - 1) degrees of freedom (G-test). If an expected count is less than
        five, the smaller one of chi-square and 2 n MI is tested.
    %(evalues_)s
    %(warming_up_)s

    Raises
    ------
    %(Raises)s

    Notes
    -----
    %(Notes)s

    References
    ----------
    %(References)s
    Equation (4) of :mod:`tamis.rows.screening`.

    Examples
    --------
    The class means of feature 3 are equal, so only its bins show that it is relevant:

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


@fill_docstring(_OF_BINS)
class ChiSquare(BinScreener):
    """Selects the features whose distributions over bins differ most between the classes, by a chi-square statistic.

    Parameters
    ----------
    %(n_features_to_select)s
    %(task)s
    %(n_bins)s
    %(categorical)s
    %(eps)s
    %(dtype)s
    %(half_life)s
    %(fading)s
    %(fade_per)s
    %(clock)s
    %(level)s
    %(redundancy)s
    %(restarts)s
    %(dependence)s

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Equation (5), of the (faded) counts.
    pvalues_ : ndarray of shape (n_features,), float64
        Probability of a larger score if feature and class are independent, with
        (bins with counts - 1) (classes with counts - 1) degrees of freedom. If an expected count is less than five, the
        smaller one of chi-square and 2 n MI is tested.
    %(evalues_)s
    %(warming_up_)s

    Raises
    ------
    %(Raises)s

    Notes
    -----
    %(Notes)s

    References
    ----------
    %(References)s
    Equation (5) of :mod:`tamis.rows.screening`.

    Examples
    --------
    Feature 2 is categorical; its middle value is that of class 1, which no order of the values reveals:

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


@fill_docstring(_OF_BINS)
class GiniIndex(BinScreener):
    """Selects the features for which a single cut reduces the Gini impurity of the class most.

    Parameters
    ----------
    %(n_features_to_select)s
    %(task)s
    %(n_bins)s
    %(categorical)s
    %(eps)s
    %(dtype)s
    %(half_life)s
    %(fading)s
    %(fade_per)s
    %(clock)s
    %(level)s
    %(redundancy)s
    %(restarts)s
    %(dependence)s

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Equation (6), in [0, 1).
    %(evalues_)s
    %(warming_up_)s

    Raises
    ------
    %(Raises)s

    Notes
    -----
    %(Notes)s

    `pvalues_` is an upper bound: the p-value of the best cut times the number of cuts, also for dependent rows
    (:func:`tamis.rows.screening.bin_counts.gini_statistic`).

    References
    ----------
    %(References)s
    Equation (6) of :mod:`tamis.rows.screening`.

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


@fill_docstring(_OF_BINS)
@dataclass(eq=False, repr=False)
class Screening(BinScreener):
    """Computes several scores of one stream in one pass and from one state; one of them selects.

    Parameters
    ----------
    %(n_features_to_select)s
    %(task)s
    scores : list of {"t", "fisher", "mi", "chi2", "gini"}, default=all of them
        The scores to compute. T and Fisher share the moments of the classes, the other three share the bin counts.
        State that no score needs is not stored.
    select_by : str, optional
        The score that determines `scores_` and the selection; by default the first of `scores`.
    %(n_bins)s
    %(categorical)s
    %(eps)s
    %(dtype)s
    %(half_life)s
    %(fading)s
    %(fade_per)s
    %(clock)s
    %(level)s
    %(redundancy)s
    %(restarts)s
    %(dependence)s
    summary : {"thinned", "pruned"}, default="thinned"
        How the values behind the bin counts are summarised. "pruned": the published summary of merged and pruned
        blocks, for comparison; it cannot grow, forget single columns or be merged, and makes CSR rows dense.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        The score named by `select_by`.
    pvalues_ : ndarray of shape (n_features,), float64, or None
        The p-values of that score.
    table_ : dict of str to ndarray of shape (n_features,)
        One row per feature; it can be converted to a data frame. "feature" (its name), "n_observed", "n_effective" if
        rows are dependent, each score under its own name, and its p-value ("t_pvalue", "gini_pvalue"). With `level`
        also "evalue", and "effect_low" and "effect_high" of `effect_band`; the probability that a band is ever wrong in
        the entire stream is at most `level`. With `level` or `redundancy` also "selected".
    evalues_ : ndarray of shape (n_features,), float64
        With `level`: the evidence of each feature against "it is irrelevant to the class". It starts at 1. For an
        irrelevant feature its mean is at most 1 at any time; see :mod:`tamis.summaries.evidence`.
    n_observed_ : ndarray of shape (n_features,), float64
        (Faded) number of non-missing values. A feature without any has 0, and the score 0.
    rows_dependent_ : bool
        Whether p-values and bands account for dependent rows; see `dependence`.
    n_effective_ : ndarray of shape (n_features,), float64
        Effective number of independent values of each feature, for the score that selects. nan if it is undetermined,
        because labels stay correlated over too many rows; p-values are then 1.
    rows_missing_ : int
        About how many more rows are needed, at least, where p-values are undetermined; 0 if none is.
    restarts_ : list of int
        Number of rows seen at each restart.
    drift_detected_ : bool
        With `restarts`: whether the selector restarted in the last batch.
    nbytes_ : int
        Size of the state in bytes.
    %(warming_up_)s

    Raises
    ------
    %(Raises)s

    Notes
    -----
    %(Notes)s
    T and Fisher treat the codes of a categorical feature as numbers.

    References
    ----------
    %(References)s
    Equations (1) to (6) of :mod:`tamis.rows.screening`.

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

    _: KW_ONLY
    scores: Sequence[str] = parameter(
        Kind(
            f"a list of {', '.join(SCORES)}",
            lambda value: not isinstance(value, str) and set() < {*value} <= {*SCORES},
        ),
        default=SCORES,
    )
    select_by: str | None = parameter(*SCORES, None, default=None)
    summary: str = parameter("thinned", "pruned", default="thinned")

    @classmethod
    def paper(cls, n_features_to_select: int | float | None = 0.1, **parameters: Any) -> Self:
        """Return the published method: its summary of pruned blocks, an error of 0.001, independent rows, float64.

        Parameters
        ----------
        n_features_to_select : int or float, default=0.1
        **parameters
            Any other parameter of the class.

        Examples
        --------
        >>> Screening.paper(10, scores=["mi"])
        Screening(dependence='independent', dtype='float64', eps=0.001,
                  n_features_to_select=10, scores=['mi'], summary='pruned')
        """
        published: dict[str, Any] = {
            "summary": "pruned", "eps": 0.001, "dependence": "independent", "dtype": "float64",
        }  # fmt: skip
        return cls(n_features_to_select, **{**published, **parameters})

    def _repr_html_(self) -> str:
        """Return the best features and their scores, if there are any; otherwise the parameters."""
        if not hasattr(self, "classes_") or self.warming_up_:
            return str(self._repr_html_inner())
        table = self.table_
        names = [name for name in table if name not in ("feature", "n_observed", "n_effective")]
        best = np.argsort(-table[names[0]], kind="stable").tolist()
        rows = {str(table["feature"][j]): [f"{table[name][j]:.4g}" for name in names] for j in best}
        facts = [f"{self.n_seen_:,} rows", f"{len(best):,} features"]
        return html_repr(type(self).__name__, facts, rows, ("feature", *names))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _start(self, n_features: int) -> None:
        if self.select_by is not None:
            check_choice("select_by", self.select_by, tuple(self.scores))
        super()._start(n_features)

    def _new_bins(self, n_features: int) -> BinCounts | None:
        return super()._new_bins(n_features) if {"mi", "chi2", "gini"}.intersection(self.scores) else None

    def _score_names(self) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(self.scores))
        return names if self.select_by is None else tuple(dict.fromkeys((self.select_by, *names)))

    def scores_of(self, name: str) -> Floats:
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
            If it is not one of `scores`.
        """
        check_choice("name", name, tuple(self.scores))
        return self._read((name,))[0].scores

    @property
    def table_(self) -> dict[str, Array]:
        """All scores and their p-values, one row per feature; it can be converted to a data frame."""
        names = tuple(dict.fromkeys(self.scores))
        features = feature_names(self) or [f"x{j}" for j in range(self.n_features_in_)]
        table: dict[str, Array] = {
            "feature": np.array(features, dtype=object),
            "n_observed": self.n_observed_,
        }
        if self.rows_dependent_:
            table["n_effective"] = self.n_effective_
        for name, readout in zip(names, self._read(names, pvalues=True), strict=True):
            table[name] = readout.scores
            if readout.pvalues is not None:
                table[f"{name}_pvalue"] = readout.pvalues
        if self.level is not None:
            table["evalue"] = self.evalues_
            table["effect_low"], table["effect_high"] = self.effect_band(
                restart_level(self.level, self._n_restarts + 1)
            )
        if self._chooses_count:
            table["selected"] = self.get_support()
        return table
