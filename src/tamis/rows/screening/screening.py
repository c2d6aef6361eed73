"""Several scores of one stream, in one pass and from one state.

Wang, Barbu: Online Feature Screening for Data Streams with Concept Drift, IEEE TKDE 35(11), 2023. Equations (1) to
(6) of :mod:`tamis.rows.screening`, which has the table of symbols, the errata and our deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._check import check_choice
from tamis._parameters import Kind, parameters
from tamis.base.glance import glance
from tamis.dependence.e_values import level_of_beginning
from tamis.rows.screening.bin_counts import BinCounts
from tamis.rows.screening.screener import SCORES, BinScreener

__all__ = ["Screening"]


class Screening(BinScreener):
    """Several scores of one stream, in one pass and from one state; one of them selects.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=0.1
        How many features to keep, or which fraction of them, in (0, 1]; None: as many as `level` allows.
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
        The score named by `select_by`.
    pvalues_ : ndarray of shape (n_features,), float64, or None
        Of that score; the Gini index has none.
    table_ : dict of str to ndarray of shape (n_features,)
        One row per feature: "feature" (its name), "n_observed", each score under its own name, and "t_pvalue",
        "fisher_pvalue", "mi_pvalue", "chi2_pvalue" of those that are there; with `level`, "evalue", and "effect_low"
        and "effect_high" of `effect_band`, each feature's wrong at any time of the whole stream with the chance `level`
        at most; with it or with `redundancy`, "selected". A data frame can be made of it.
    evalues_ : ndarray of shape (n_features,), float64
        With `level`: the evidence of each feature against "it tells nothing of the class". It starts at 1, and if the
        feature tells nothing its mean is 1 at most at any time; see :mod:`tamis.summaries.evidence`.
    n_observed_ : ndarray of shape (n_features,), float64
        (Faded) number of values that are not missing; a feature without any has 0, and the score 0.
    restarts_ : list of int
        How many rows had come each time when the screen began anew.
    drift_detected_ : bool
        With `restarts`: whether it began anew in the last batch.
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
    Wang, Barbu (2021). Online Feature Screening for Data Streams with Concept Drift. Equations (1) to (6) of
    :mod:`tamis.rows.screening`.

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

    _allowed = parameters(
        scores=Kind(
            f"a list of {', '.join(SCORES)}",
            lambda value: not isinstance(value, str) and set() < {*value} <= {*SCORES},
        ),
        select_by=(*SCORES, None),
    )

    def __init__(
        self,
        n_features_to_select: int | float | None = 0.1,
        *,
        scores: Sequence[str] = SCORES,
        select_by: str | None = None,
        n_bins: int = 5,
        categorical: Any = None,
        eps: float | None = None,
        dtype: str = "float32",
        half_life: float | None = None,
        fading: float | None = None,
        fade_per: str = "row",
        clock: str = "global",
        level: float | None = None,
        redundancy: int | None = None,
        restarts: str | int | None = None,
    ) -> None:
        super().__init__(
            n_features_to_select, n_bins=n_bins, categorical=categorical, eps=eps, dtype=dtype,
            half_life=half_life, fading=fading, fade_per=fade_per, clock=clock, level=level, redundancy=redundancy,
            restarts=restarts,
        )  # fmt: skip
        self.scores = scores
        self.select_by = select_by

    def _repr_html_(self) -> str:
        """Return the best features and their scores, once there are some; before, the parameters."""
        if not hasattr(self, "classes_") or self.waiting_:
            return str(self._repr_html_inner())
        table = self.table_
        names = [name for name in table if name not in ("feature", "n_observed")]
        best = np.argsort(-table[names[0]], kind="stable").tolist()
        rows = {str(table["feature"][j]): [f"{table[name][j]:.4g}" for name in names] for j in best}
        facts = [f"{self.n_seen_:,} rows", f"{len(best):,} features"]
        return glance(type(self).__name__, facts, rows, ("feature", *names))

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
        for name, readout in zip(names, self._read(names, pvalues=True), strict=True):
            table[name] = readout.scores
            if readout.pvalues is not None:
                table[f"{name}_pvalue"] = readout.pvalues
        if self.level is not None:
            table["evalue"] = self.evalues_
            table["effect_low"], table["effect_high"] = self.effect_band(
                level_of_beginning(self.level, self._n_restarts + 1)
            )
        if self._decides_how_many:
            table["selected"] = self.get_support()
        return table
