"""Online screening by class means and variances: T-score and Fisher score.

Wang, Barbu: Online Feature Screening for Data Streams with Concept Drift, IEEE TKDE 35(11), 2023 (preprint 2021).
Covered: the mean-variance scores (Section 2.1), their running and faded forms, sparse rows, and merging.

=============  ============  ======================================================================
paper          here          meaning
=============  ============  ======================================================================
n_c            count         (faded) number of values of the feature in class c
mu_c, sigma_c  mean, var     their mean and variance (divided by n_c)
alpha          `fading`      what the weight of older rows is multiplied by, or `half_life`
=============  ============  ======================================================================

With n = sum_c n_c and m = sum_c n_c m_c / n::

    T      = |m_1 - m_2| / sqrt(v_1 / e_1 + v_2 / e_2)            (1)
    Fisher = sum_c n_c (m_c - m)^2 / sum_c n_c v_c                (2)
    F      = Fisher (n - C) / (C - 1)                             (3)

Errata and deviations, each with its reason:

* The printed MS - mu^2 loses all digits where the mean is large: N(1e6, 1) gives a variance of 0.9966 for 0.9849.
  Deviations from the mean are summed instead.
* The printed faded mean and MS are faded *sums*, so their MS - mu^2 is no variance (it gives -640 for 2.72): sums are
  divided by the faded count.
* e_c in (1) is the effective sample size W^2 / W2 of the faded rows; with the faded count T would be too small.
* The printed alpha = 0.9 cannot be meant per row, where it leaves a window of 19 rows and detects nothing; `fade_per`
  says whether it counts rows or calls. `clock` says whether the rows of a class fade as rows or as rows of that class.
* Three classes or more: T is the largest of the classes against their rest.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
import scipy.special
from numpy.typing import NDArray
from sklearn.utils import Tags

from tamis._check import Array, Rows, check_choice, check_number, encode_labels, refuse_nonfinite
from tamis.base import RowSelector
from tamis.errors import DataError
from tamis.summaries.class_moments import ClassMoments

__all__ = ["FisherScore", "TScore"]

_ROUNDING = 8.0 * np.finfo(np.float64).eps  # means that differ relatively by less are equal


class _MeanVariance(RowSelector):
    """What T-score and Fisher score share: the class moments, the clock and merging."""

    _finite_in_kernel = True

    def __init__(
        self,
        n_features_to_select: int | float = 0.1,
        *,
        half_life: float | None = None,
        fading: float | None = None,
        fade_per: str = "row",
        clock: str = "global",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.half_life = half_life
        self.fading = fading
        self.fade_per = fade_per
        self.clock = clock

    def _start(self, n_features: int) -> None:
        check_choice("fade_per", self.fade_per, ("row", "batch"))
        check_choice("clock", self.clock, ("global", "class"))
        if self.half_life is not None:
            check_number("half_life", self.half_life, low=0, open_low=True)
        if self.fading is not None:
            check_number("fading", self.fading, low=0, high=1, open_low=True)
            if self.half_life is not None:
                raise ValueError(
                    f"half_life={self.half_life!r} and fading={self.fading!r} say the same: give one."
                )
        self._moments = ClassMoments(n_features, 0)

    def _factor(self) -> float:
        if self.half_life is not None:
            return float(0.5 ** (1.0 / self.half_life))
        return 1.0 if self.fading is None else float(self.fading)

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        if self._moments.n_classes < len(self.classes_):
            self._moments = copy.copy(self._moments)  # what was before the call must stay as it was
            self._moments.grow(len(self.classes_))
        within, keep = self._fade(y)
        if within is not None:
            sample_weight = within if sample_weight is None else within * sample_weight
        if not self._moments.update(X, y, sample_weight, keep):
            refuse_nonfinite(X, self._names(), allow_nan=True)
            raise DataError("X holds values whose squares are too large to sum: rescale the features.")

    def _fade(self, y: Array) -> tuple[Array | None, float | Array]:
        """Return the weights of the rows at the end of the batch, and what is left of the earlier ones."""
        factor = 1.0 if self.fading is None else float(self.fading)
        factor = factor if self.half_life is None else 0.5 ** (1.0 / self.half_life)
        if factor == 1.0:
            return None, 1.0
        counts = np.bincount(y, minlength=len(self.classes_))
        if self.fade_per == "batch":
            return None, factor if self.clock == "global" else np.where(counts > 0, factor, 1.0)
        if self.clock == "global":
            return factor ** np.arange(len(y) - 1, -1, -1.0), factor ** len(y)
        age = np.empty(len(y))  # how many rows of its own class come after each row
        for c in np.flatnonzero(counts):
            age[y == c] = np.arange(counts[c] - 1, -1, -1.0)
        return factor**age, factor ** counts.astype(np.float64)

    def merge(self, other: Self) -> Self:
        """Take in what another selector has learned from other rows of the same stream.

        Parameters
        ----------
        other : the same kind of selector
            With the same columns; classes that only one has seen are kept.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If `other` is of another kind.
        ValueError
            If its columns or its clock differ; the message names both.
        """
        if type(other) is not type(self):
            raise TypeError(
                f"A {type(self).__name__} merges with its own kind, got a {type(other).__name__}."
            )
        if not hasattr(other, "n_seen_"):
            return self
        if not hasattr(self, "n_seen_"):
            self.__dict__.update({**copy.deepcopy(vars(other)), **self.get_params(deep=False)})
            return self
        for name in ("half_life", "fading", "fade_per", "clock"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(
                    f"{name} is {mine!r} here and {theirs!r} there: merge selectors of one clock."
                )
        if self._names() != other._names() or self.n_features_in_ != other.n_features_in_:
            raise ValueError(
                f"{self.n_features_in_} columns here and {other.n_features_in_} there are not the same ones."
            )
        self._merge(other)
        return self

    def _merge(self, other: Self) -> None:
        codes, classes = encode_labels(other.classes_, self.classes_)
        mine, theirs = copy.deepcopy(self._moments), copy.deepcopy(other._moments)
        mine.grow(len(classes))
        theirs.grow(len(classes))
        theirs.reorder(np.argsort(np.r_[codes, np.setdiff1d(np.arange(len(classes)), codes)]))
        mine.merge(theirs)
        self._moments, self.classes_ = mine, classes
        self.n_seen_ += other.n_seen_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class FisherScore(_MeanVariance):
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
    A batch is the same as its rows one at a time. Memory: 24 bytes per feature and class, whatever the number of rows.
    CSR rows cost O(stored values).

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

    def _relevance(self) -> NDArray[np.float64]:
        count, mean, variance = self._moments.count(), self._moments.mean(), self._moments.variance()
        n = count.sum(axis=0)
        grand = _ratio((count * mean).sum(axis=0), n)
        between = (count * (mean - grand) ** 2).sum(axis=0)
        lowest = np.where(count > 0.0, mean, np.inf).min(axis=0)
        highest = np.where(count > 0.0, mean, -np.inf).max(axis=0)
        between[highest - lowest <= _ROUNDING * np.abs(highest)] = 0.0
        return _ratio(between, (count * variance).sum(axis=0))  # (2)

    @property
    def f_(self) -> NDArray[np.float64]:
        """The F statistic of a one-way analysis of variance."""
        n, n_classes = self._moments.count().sum(axis=0), len(self.classes_)
        found: NDArray[np.float64] = (
            self.scores_ * np.maximum(n - n_classes, 0.0) / max(n_classes - 1, 1)
        )  # (3)
        return found

    @property
    def pvalues_(self) -> NDArray[np.float64]:
        """Probability of a larger F if the class means are equal."""
        n, n_classes = self._moments.count().sum(axis=0), len(self.classes_)
        found: NDArray[np.float64] = scipy.special.fdtrc(
            max(n_classes - 1, 1), np.maximum(n - n_classes, 1.0), self.f_
        )
        return found


class TScore(_MeanVariance):
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
    A batch is the same as its rows one at a time. Memory: 24 bytes per feature and class, whatever the number of rows.
    CSR rows cost O(stored values).

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

    def _relevance(self) -> NDArray[np.float64]:
        moments = self._moments
        count, mean, variance = moments.count(), moments.mean(), moments.variance()
        rows = moments.weight()[:, None]
        effective = moments.effective()[:, None] * _ratio(count, np.broadcast_to(rows, count.shape))
        if len(count) == 2:
            return _t(mean, variance, effective)
        scores = [_t(*_against_rest(k, count, mean, variance, effective)) for k in range(len(count))]
        found: NDArray[np.float64] = np.max(scores, axis=0)
        return found

    @property
    def pvalues_(self) -> NDArray[np.float64]:
        """Probability of a larger T between classes of equal means."""
        tests = len(self.classes_) if len(self.classes_) > 2 else 1
        found: NDArray[np.float64] = np.minimum(2.0 * tests * scipy.special.ndtr(-self.scores_), 1.0)
        return found


def _ratio(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a / b; where b is 0: 0 if a is 0, else infinite."""
    found: NDArray[np.float64] = np.divide(a, b, out=np.where(a > 0.0, np.inf, 0.0), where=b > 0.0)
    return found


def _t(mean: Array, variance: Array, effective: Array) -> NDArray[np.float64]:
    """Equation (1) of two classes, the rows of each array; 0 where a class has no value of the feature."""
    known = (effective > 0.0).all(axis=0)
    error = np.divide(variance, effective, out=np.zeros_like(variance), where=effective > 0.0).sum(axis=0)
    gap = np.abs(mean[0] - mean[1])
    gap[gap <= _ROUNDING * np.abs(mean[0])] = 0.0
    return np.where(known, _ratio(gap, np.sqrt(error)), 0.0)  # (1)


def _against_rest(
    k: int, count: Array, mean: Array, variance: Array, effective: Array
) -> tuple[Array, Array, Array]:
    """Return mean, variance and effective size of class k and of all the others together."""
    rest = np.arange(len(count)) != k
    n = count[rest].sum(axis=0)
    centre = np.divide((count * mean)[rest].sum(axis=0), n, out=np.zeros_like(n), where=n > 0.0)
    squares = (count * (variance + (mean - centre) ** 2))[rest].sum(axis=0)
    spread = np.divide(squares, n, out=np.zeros_like(n), where=n > 0.0)
    return (
        np.array([mean[k], centre]),
        np.array([variance[k], spread]),
        np.array([effective[k], effective[rest].sum(axis=0)]),
    )
