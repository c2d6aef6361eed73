"""FCBF: the fast correlation-based filter, over a sliding window.

Yu, Liu: Feature Selection for High-Dimensional Data: A Fast Correlation-Based Filter Solution, ICML 2003. On a stream,
chunk by chunk, it is used by HEFT-Stream: Nguyen, Woon, Ng, Wan, PAKDD 2012. Here the window consists of the last
`window` rows, and the selection is computed on demand.

===========  =======================  ====================================================================
paper        here                     meaning
===========  =======================  ====================================================================
F_i, C       a column, the class
SU_i,c       ``scores_``              symmetrical uncertainty of a feature and the class
SU_i,j                                of two features
delta        `threshold`              lower bound of SU_i,c
S_list       order of the scores      features above delta, by decreasing SU
===========  =======================  ====================================================================

With entropies of the counts in the window::

    SU(X, Y) = 2 (H(X) - H(X|Y)) / (H(X) + H(Y))                                         (1)
    F_j is predominant if SU_j,c > delta and no predominant F_i before it has
    SU_i,j >= SU_j,c                                                                     (2)

Features are processed by decreasing SU_i,c, ties in the order of the columns; the first is always predominant, and each
predominant feature removes the later ones for which (2) holds.

Deviations, each with its reason:

* n rows of two independent variables have an information gain of (values - 1) (others - 1) / (2 n ln 2) on average. Two
  features of ten bins have nine times the bias of one of them and two classes, so (2) removes weak features wrongly.
  `bias_correction` subtracts the bias from each gain, of features with the class and of pairs.
* The paper leaves delta to the user; 0 keeps irrelevant features. ``threshold="chance"`` is the value that the largest
  of J irrelevant features exceeds with probability 1 / 20: 2 n ln 2 times their gain is approximately chi-square
  distributed, with (values - 1) (classes - 1) degrees of freedom. ``FCBF.paper`` uses delta 0 and raw gains.
* The paper discretises numbers by the labels of all rows (Fayyad, Irani). Here the bins are quantiles of the window.
* If no feature is above delta, the best one is selected, because a learner needs at least one feature.
"""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import chdtri

from tamis._atomic import atomic
from tamis._docstrings import fill_docstring
from tamis._validation import (
    Array,
    Floats,
    Indices,
    Ints,
    Mask,
    Rows,
    are_categories,
    check_choice,
    columns_of,
)
from tamis._validation.arrays import repeat_rows
from tamis._validation.parameters import integer, number, parameter
from tamis.base import Claims, Inputs, RowSelector, n_to_select
from tamis.base.rows import check_mergeable, feature_names, joint_classes
from tamis.merging import MERGE_DOCS
from tamis.summaries.entropy import WindowCounts

_LN4 = 2.0 * np.log(2.0)
_CHANCE = 0.05  # probability that any irrelevant feature exceeds the threshold


@dataclass(eq=False, repr=False)
class FCBF(RowSelector):
    """Selects features that are relevant to the class but not redundant with each other, over a sliding window.

    Features are processed in the order of their symmetrical uncertainty with the class. A feature is dropped if its
    symmetrical uncertainty with a selected feature is at least that with the class. Of many copies of one signal, one
    is selected, and the number of features need not be chosen.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Maximum number of features to select, or the fraction of all features, in (0, 1]. None: all that pass.
    threshold : "chance" or float in [0, 1], default="chance"
        Symmetrical uncertainty with the class that a feature must exceed (delta). "chance": the value that, if all
        features are irrelevant, one of them exceeds in one of twenty windows.
    window : int in [8, 5000000], default=1000
        Number of last rows that count.
    bias_correction : bool, default=True
        Whether to subtract the expected gain by chance from each information gain.
    categorical : "all", list of int or str, or bool mask, optional
        Categorical features. By default all features are numeric.
    n_bins : int in [2, 10000], default=5
        Number of bins of a numeric feature, by the quantiles of the window.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Symmetrical uncertainty with the class in the window, in [0, 1], minus its bias if `bias_correction` is set.
    selected_ : ndarray of int
        The selected features, by decreasing score.
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If rows or labels are invalid; the model is left unchanged.

    Notes
    -----
    A batch leaves the same state as its rows one at a time, bit for bit: the selection is computed from the window when
    it is read. A row costs O(n_features); a selection O(window) for each pair of a selected feature and a remaining
    candidate above the threshold. NaN is a separate category. Weights must be integers: a row of weight k counts k
    times. CSR rows are converted to dense arrays.

    Features that are relevant only in combination (XOR) are not detected.

    References
    ----------
    Yu, Liu (2003). Feature Selection for High-Dimensional Data: A Fast Correlation-Based Filter Solution. ICML.

    Examples
    --------
    Two features determine the class; five more are noisy copies of one of them.

    >>> import numpy as np
    >>> from tamis import FCBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 30))
    >>> y = X[:, 3] + X[:, 8] > 0
    >>> X[:, 20:25] = X[:, [3]] + 0.3 * rng.normal(size=(1000, 5))
    >>> FCBF().fit(X, y).get_support(indices=True)
    array([3, 8])
    """

    claims = Claims(equals_rows="exactly")
    _shapes = "_counts (its own)  _counts._class_counts (c)  _counts._numeric (j)"

    accepts = Inputs(nan=True)
    _chooses_count = True

    n_features_to_select: int | float | None = parameter(number("(0, inf)"), None, default=None)  # type: ignore[assignment]
    _: KW_ONLY
    threshold: float | str = parameter("chance", number("[0, 1]"), default="chance")
    window: int = parameter(integer("[8, 5000000]"), default=1000)
    bias_correction: bool = parameter(True, False, default=True)
    categorical: Any = None
    n_bins: int = parameter(integer("[2, 10000]"), default=5)

    @classmethod
    def paper(cls, n_features_to_select: int | float | None = None, **parameters: Any) -> Self:
        """Return the published filter: a threshold of 0, and information gains without a correction.

        Parameters
        ----------
        n_features_to_select : int, float or None, default=None
        **parameters
            Any other parameter of the class.

        Examples
        --------
        >>> FCBF.paper()
        FCBF(bias_correction=False, threshold=0.0)
        """
        published: dict[str, Any] = {"threshold": 0.0, "bias_correction": False}
        return cls(n_features_to_select, **{**published, **parameters})

    def _start(self, n_features: int) -> None:
        self._most(n_features)
        self._counts = self._empty_counts(len(self.classes_))

    def _empty_counts(self, n_classes: int) -> WindowCounts:
        n_features = self.n_features_in_
        return WindowCounts(
            n_features, n_classes, self.window, n_bins=self.n_bins, discretizer="quantile",
            categorical=columns_of(self.categorical, n_features, feature_names(self)),
        )  # fmt: skip

    def _most(self, n_features: int) -> int:
        most = self.n_features_to_select
        return n_features if most is None else n_to_select(most, n_features)

    def _claims(self) -> Claims:
        return replace(self.claims, counts_columns=self.threshold == "chance")  # the level of the tests

    def _widen(self, n_features: int) -> None:
        self._counts = copy.copy(self._counts)
        self._counts.widen(n_features, are_categories(self.categorical))

    def _forget_columns(self, columns: Indices) -> None:
        self._counts = copy.copy(self._counts)
        self._counts.forget(columns)

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        X = np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, np.float64)
        if sample_weight is not None:
            X, y = repeat_rows(X, y, sample_weight)
        if len(self.classes_) > self._counts.n_classes:
            self._counts.grow(len(self.classes_))
        if len(y):
            self._counts.update(X, y)

    @atomic
    @fill_docstring(MERGE_DOCS)
    def merge(self, other: Self, when: str = "after") -> Self:
        """Add the rows of another selector, which precede or follow those of this one; the last `window` rows count.

        Up to `window` rows in the later part, this equals one pass, bit for bit. With more, the window has the same
        rows as in one pass, and the bins are the quantiles of all of them; in one pass they are up to a quarter of a
        window old.

        Parameters
        ----------
        other : FCBF
            With the same columns and parameters (except the number of selected features).
        %(when)s

        %(returns_and_raises)s
        ValueError
            If its columns or parameters differ.

        Examples
        --------
        >>> import numpy as np
        >>> from tamis import FCBF
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(800, 3)), np.arange(800) % 2
        >>> parts = FCBF().fit(X[:400], y[:400]), FCBF().fit(X[400:], y[400:])
        >>> bool((parts[0].merge(parts[1]).scores_ == FCBF().fit(X, y).scores_).all())
        True
        """
        check_choice("when", when, ("after", "before"))
        if not check_mergeable(self, other, ("n_features_to_select", "threshold", "bias_correction")):
            return self
        codes, joint = joint_classes(self, other)
        n_classes = len(joint["classes_"])
        earlier, later = (self, other) if when == "after" else (other, self)
        parts = [
            (X, y if one is self else codes[y]) for one in (earlier, later) for X, y in [one._window_rows()]
        ]
        X, y = parts[1]
        if earlier is self and len(y) < self.window:
            counts = copy.deepcopy(self._counts)
            counts.grow(n_classes)
        else:
            counts = self._empty_counts(n_classes)
            # A full window is counted twice: the second time in bins of all its rows.
            counts.update(*parts[0 if len(y) < self.window else 1])
        counts.update(X, y)
        self.__dict__.update({**joint, "_counts": counts, "n_seen_": self.n_seen_ + other.n_seen_})
        return self

    def _window_rows(self) -> tuple[Floats, Ints]:
        if not self._counts.n_rows:
            return np.zeros((0, self.n_features_in_)), np.zeros(0, np.int64)
        X, y = self._counts.rows()
        return np.ascontiguousarray(X), y

    def _relevance(self) -> Floats:
        return self._counts.symmetrical_uncertainty(self.bias_correction)

    def _thresholds(self) -> Floats:
        """Return the threshold of the score of each feature."""
        if self.threshold != "chance":
            return np.full(self.n_features_in_, float(self.threshold))
        n, classes = self._counts.n_rows, np.count_nonzero(self._counts.class_counts)
        free = (self._counts.state[1][3][:, 2] - 1.0) * (classes - 1.0)  # of the values or bins in the window
        gain = chdtri(np.maximum(free, 1.0), _CHANCE / self.n_features_in_) / (n * _LN4)
        if self.bias_correction:
            gain -= free / (n * _LN4)
        spread = self._counts.entropy() + self._counts.class_entropy()
        is_defined = (free > 0.0) & (spread > 0.0)
        return np.divide(2.0 * gain, spread, out=np.full(self.n_features_in_, np.inf), where=is_defined)

    @property
    def selected_(self) -> Indices:
        """The selected features, by decreasing score; empty while features cannot be ranked."""
        return np.zeros(0, np.intp) if self.warming_up_ else self._predominant()

    def _predominant(self) -> Indices:
        su, most = self._relevance(), self._most(self.n_features_in_)
        order = np.argsort(-su, kind="stable")
        left, kept = order[su[order] > self._thresholds()[order]], list[int]()
        while len(left) and len(kept) < most:
            kept.append(int(left[0]))
            left = left[1:]
            if len(left) and len(kept) < most:
                pairs = self._counts.pair_symmetrical_uncertainty(kept[-1], left, self.bias_correction)
                left = left[pairs < su[left]]  # (2)
        return np.array(kept or order[:1], np.intp)

    def _selection(self) -> Mask:
        mask = np.zeros(self.n_features_in_, bool)
        mask[self._predominant()] = True
        return mask
