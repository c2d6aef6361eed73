"""HUWRS: an ensemble on random feature subspaces that resets the members whose features have drifted.

Hoens, Chawla, Polikar: Heuristic Updatable Weighted Random Subspaces for Non-stationary Environments, ICDM 2011;
Barddal's thesis, section 5.5.4. The stream is processed in chunks of a fixed size. After each chunk, every member
compares the distributions of its features with those of its reference chunk. Errors are not used.

===========  ==================  ======================================================================
paper        here                meaning
===========  ==================  ======================================================================
Y', Y''      `reference`, `now`  rows of a class in each bin of a feature: in the reference chunk, and now
d_H^2        `distance_sq`       squared Hellinger distance of the two, d_H in [0, sqrt 2]
w_H          `weights_`          agreement, in [0, 1]; for a member, the mean over its features
p            `retrain_below`     a member that agrees less is reset
===========  ==================  ======================================================================

With the fractions P[q] of a class's rows in the bins q of a feature in the reference chunk and Q[q] now, of n and m
rows, in b non-empty bins::

    d_H^2 = sum_q (sqrt P[q] - sqrt Q[q])^2 - (b - 1) / 4 (1 / n + 1 / m),   at least 0     (thesis, Eq. 5.3)
    w_H   = (sqrt 2 - d_H) / sqrt 2,        averaged over the classes, then the features    (thesis, Eq. 5.2)
    P[c]  ~ sum_i w_i P_i[c]                of the members i with w_i >= `silent_below`

Errata and deviations, each with its reason:

* Eq. 5.3 omits its inner roots, and Eq. 5.2 a bar. "Differ by p" is interpreted as an agreement below a threshold.
* The last term of d_H^2 is its expectation by chance, because the variance of sqrt P[q] is (1 - P[q]) / (4 n). Without
  it, a class with few rows always seems to drift. A class with fewer rows than bins is not compared; if no class is
  compared, w_H is 1.
* A member continues to learn while it agrees: it is an incremental classifier, not a tree of one chunk.
* The paper updates the weights with unlabelled rows at prediction time. Here `predict` does not change the model, and
  :meth:`HUWRS.reweigh` accepts such rows.
* Subsets are balanced: the numbers of subsets that contain two features differ by at most one. With independent draws,
  some features are in no subset.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tamis._kernels import njit
from tamis._validation import Array, Floats, Indices, Ints
from tamis._validation.parameters import (
    Kind,
    check_parameters,
    integer,
    name_or,
    number,
    parameter,
    with_methods,
)
from tamis.catalog import find_learner
from tamis.learners.chunked import ChunkedEnsemble, new_classifier
from tamis.learners.dense_rows import is_third_party
from tamis.learners.subsets import COUNT_OR_FRACTION, balanced_subsets, resolve_max_features
from tamis.learners.traits import accepts_nan

_CLASSIFIER = with_methods("a classifier with partial_fit and predict_proba", "partial_fit", "predict_proba")
_LEARNER = name_or("a learner", find_learner, _CLASSIFIER)


class SubspaceMember(NamedTuple):
    """A classifier of the ensemble.

    Attributes
    ----------
    columns : ndarray of shape (n_columns,), int64
        The features that it is trained with.
    model : classifier
        It was trained with the positions of the labels in `classes_`.
    weight : float
        Agreement of the distributions of its features with its reference chunk, in [0, 1].
    """

    columns: Ints
    model: Any
    weight: float


@njit()
def _count(X: Array, codes: Array, columns: Array, cuts: Array, is_category: Array, counts: Array) -> None:
    """Count the rows of each class in each bin of some features; missing values are not counted."""
    n_cuts = cuts.shape[1]
    for i in range(X.shape[0]):
        for k in range(columns.shape[0]):
            x, q = X[i, columns[k]], 0
            if np.isnan(x):
                continue
            if is_category[columns[k]]:
                while q < n_cuts and x != cuts[k, q]:
                    q += 1
            else:
                while q < n_cuts and x > cuts[k, q]:
                    q += 1
            counts[codes[i], k, q] += 1


@njit()
def _agreement(reference: Array, now: Array) -> float:
    """Return w_H, averaged over the classes with at least as many rows as bins in both, then over the features."""
    n_classes, n_columns, n_bins = reference.shape
    total = 0.0
    for k in range(n_columns):
        agreed, compared = 0.0, 0
        for c in range(n_classes):
            n, m = reference[c, k].sum(), now[c, k].sum()
            if min(n, m) < n_bins:
                continue
            distance_sq, in_use = 0.0, 0
            for q in range(n_bins):
                distance_sq += (np.sqrt(reference[c, k, q] / n) - np.sqrt(now[c, k, q] / m)) ** 2
                in_use += reference[c, k, q] + now[c, k, q] > 0
            distance_sq -= (in_use - 1) / 4.0 * (1.0 / n + 1.0 / m)  # (5.3), squared
            agreed += 1.0 - np.sqrt(max(distance_sq, 0.0) / 2.0)  # (5.2)
            compared += 1
        total += agreed / compared if compared > 0 else 1.0
    weight: float = total / n_columns
    return weight


def _bin_edges(column: Floats, n_bins: int, *, is_category: bool) -> Floats:
    """Return the upper bin edges of a feature, or the categories with a separate bin; the rest is in the last bin."""
    values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    if is_category:
        cuts = values[np.argsort(-counts, kind="stable")][: n_bins - 1]
    elif len(values) <= n_bins:
        cuts = values[:-1]  # one bin per value
    else:
        up_to = np.cumsum(counts)
        cuts = values[np.searchsorted(up_to, up_to[-1] * np.arange(1, n_bins) / n_bins)]
    return np.pad(cuts, (0, n_bins - 1 - len(cuts)), constant_values=np.inf)


@dataclass(repr=False, eq=False)
class HUWRS(ChunkedEnsemble):
    """An ensemble on random feature subspaces whose members are reset when their features drift.

    Parameters
    ----------
    n_estimators : int from 1 to 1000, default=10
        Number of classifiers in the ensemble, each with a separate feature subset.
    chunk_size : int from 8 to 1000000, default=500
        Number of rows between two comparisons of the feature distributions. Choose it such that a chunk contains
        several tens of rows of each class: a class with fewer rows than bins is not compared.
    max_features : int, at least 1, or float in (0, 1], default=0.5
        Number of features of a member, or the fraction of all features.
    estimator : str or classifier, default="nb-su"
        The classifier of each member: a learner of the catalogue by its key, or a classifier with `partial_fit` and
        `predict_proba`, which is cloned. At a new label, those of other libraries are replaced by new ones.
    retrain_below : float in [0, 1], default=0.95
        A member whose agreement is below this is reset and trained with the current chunk. 0: never.
    silent_below : float in [0, 1], default=0.8
        A member whose agreement is below this does not vote. If all are below it, all vote with equal weights.
    n_bins : int from 2 to 1000, default=10
        Number of bins of each feature.
    categorical : None, "all", list of int or str, or bool mask, default=None
        Categorical features. They are passed on to an `estimator` given by name.
    random_state : int, at least 0, default=0
        Seed of the subsets.

    Attributes
    ----------
    weights_ : ndarray of shape (n_estimators,), float64
        Agreement of the feature distributions of each member with its reference chunk, in [0, 1].
    drifts_ : list of int
        Rows, counted from 0, at which members were reset.
    members_ : list of SubspaceMember
        Columns, classifier and weight of each.
    %(fitted)s

    Notes
    -----
    Members learn every row on arrival, and chunks end at fixed row numbers, so a batch leaves the same state as its
    rows one at a time if this holds for the members. Memory in addition to the members: `chunk_size` rows, and one
    number for each member, class, feature and bin. Sparse rows are rejected. Missing values are in no bin, and are
    passed on to the members.

    References
    ----------
    Hoens, Chawla, Polikar (2011). Heuristic updatable weighted random subspaces for non-stationary environments. ICDM.

    Examples
    --------
    From row 4000 on, feature 0 has a different mean in each class; the other five features do not change:

    >>> import numpy as np
    >>> from tamis import HUWRS
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, size=8000)
    >>> X = rng.normal(size=(8000, 6)) + y[:, None]
    >>> X[4000:, 0] -= 4 * y[4000:]
    >>> model = HUWRS(6, max_features=1, retrain_below=0.9).fit(X[:4000], y[:4000])
    >>> model.drifts_
    []
    >>> model = model.partial_fit(X[4000:], y[4000:])
    >>> model.drifts_
    [4499]
    >>> bool(model.score(X[6000:], y[6000:]) > 0.95)
    True
    """

    _shapes = """
        _columns_ (n, s) in [0, j)  _cuts_ (n, s, q) float in [-inf, inf]  _reference_ (n, c, s, q+1) in [0, b] fill 0
        weights_ (n) float in [0, 1]  _models_[].classes_ in [0, max(c, 1))
    """

    # State:
    #   _models_         n classifiers
    #   _columns_        (n, s)        int64    the features of each
    #   _cuts_           (n, s, b-1)   float64  upper bin edges, or the categories with a bin; padded with inf
    #   _reference_      (n, K, s, b)  int64    rows of the reference chunk of a member, by class and bin
    #   weights_         (n,)          float64  w_i
    _: KW_ONLY
    max_features: int | float = parameter(COUNT_OR_FRACTION, default=0.5)
    estimator: Any = parameter(
        Kind(
            "a learner with predict_proba, by name or as a classifier",
            lambda value: _LEARNER.accepts(value) and _CLASSIFIER.accepts(new_classifier(value)),
        ),
        default="nb-su",
    )
    retrain_below: float = parameter(number("[0, 1]"), default=0.95)
    silent_below: float = parameter(number("[0, 1]"), default=0.8)
    n_bins: int = parameter(integer("[2, 1000]"), default=10)

    # -- learning ------------------------------------------------------------------------------------------

    @property
    def _has_third_party_parts(self) -> bool:
        return is_third_party(self._models_[0])

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        super()._initialize(n_features, names)
        size = resolve_max_features(self.max_features, n_features)
        self._columns_ = balanced_subsets(self._size_, size, n_features, int(self.random_state))
        self._cuts_ = np.full((self._size_, size, int(self.n_bins) - 1), np.inf)
        self._reference_ = np.zeros((self._size_, len(self.classes_), size, int(self.n_bins)), dtype=np.int64)
        self.weights_ = np.ones(self._size_)
        self._models_: list[BaseEstimator] = [
            self._new_member(self.estimator, columns) for columns in self._columns_
        ]

    def _grow(self, n_classes: int) -> None:
        super()._grow(n_classes)
        if is_third_party(self._models_[0]):  # it cannot add a class
            self._models_ = [self._new_member(self.estimator, columns) for columns in self._columns_]

    def _train_members(self, X: Floats, y: Ints, first: int) -> None:
        for model, columns in zip(self._models_, self._columns_, strict=True):
            self._train(model, X[:, columns], y)

    def _train(self, model: Any, rows: Floats, codes: Ints) -> None:
        model.partial_fit(rows, codes, **self._classes_argument(model))

    def _end_chunk(self, seen: int) -> None:
        """Compare the chunk with the members' reference chunks, and reset the members that agree too little."""
        is_first = seen == self._chunk_
        self.weights_ = np.ones(self._size_) if is_first else self._agreements(self._rows_, self._codes_)
        restarted = np.flatnonzero(self.weights_ < self.retrain_below)
        self._store_reference(np.arange(self._size_) if is_first else restarted)
        if len(restarted):
            self.drifts_ = [*self.drifts_, seen - 1]
            self.weights_[restarted] = 1.0
            self._models_ = list(self._models_)
        for m in restarted.tolist():
            self._models_[m] = self._new_member(self.estimator, self._columns_[m])
            self._train(self._models_[m], self._rows_[:, self._columns_[m]], self._codes_)

    def _agreements(self, rows: Floats, codes: Ints | None) -> Floats:
        """Return w_i of each member for some rows; without codes, all classes are pooled."""
        weights = np.empty(self._size_)
        for m, reference in enumerate(self._reference_):
            if codes is None:
                reference = reference.sum(axis=0, keepdims=True)
            now = self._bin_counts(
                m, rows, np.zeros(len(rows), np.int64) if codes is None else codes, len(reference)
            )
            weights[m] = _agreement(reference, now)
        return weights

    def _store_reference(self, members: Indices) -> None:
        """Store the feature distributions of the chunk as the reference of some members."""
        self._cuts_, self._reference_ = self._cuts_.copy(), self._reference_.copy()
        cuts = {
            j: _bin_edges(self._rows_[:, j], int(self.n_bins), is_category=bool(self._is_category_[j]))
            for j in np.unique(self._columns_[members]).tolist()
        }
        for m in members:
            self._cuts_[m] = [cuts[j] for j in self._columns_[m].tolist()]
            self._reference_[m] = self._bin_counts(m, self._rows_, self._codes_, len(self.classes_))

    def _bin_counts(self, m: int, rows: Floats, codes: Ints, n_classes: int) -> Ints:
        """Return the number of rows of each class in each bin of the features of a member."""
        counts = np.zeros((n_classes, *self._reference_.shape[2:]), dtype=np.int64)
        _count(rows, codes, self._columns_[m], self._cuts_[m], self._is_category_, counts)
        return counts

    def reweigh(self, X: Any) -> Self:
        """Update the weights of the members with unlabelled rows, until the end of the next labelled chunk.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Compared as one chunk, regardless of their number. They are not learned, and no member is reset. Before the
            end of the first labelled chunk, the call has no effect.

        Returns
        -------
        self

        Examples
        --------
        Feature 0 determines the class until its mean shifts:

        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(0, 2, size=600)
        >>> X = rng.normal(size=(600, 2)) + 3 * y[:, None]
        >>> model = HUWRS(2, max_features=1).fit(X, y)
        >>> X[:, 0] += 20
        >>> for member in model.reweigh(X).members_:
        ...     print(member.columns, round(member.weight, 1))
        [1] 1.0
        [0] 0.2
        """
        check_is_fitted(self)
        check_parameters(self)
        rows = self._check_range(self._rows(X, False))
        if self.n_seen_ >= self._chunk_:
            self.weights_ = self._agreements(rows, None)
        return self

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def members_(self) -> list[SubspaceMember]:
        """The current members."""
        check_is_fitted(self)
        every = zip(self._columns_, self._models_, self.weights_.tolist(), strict=True)
        return [SubspaceMember(columns, model, weight) for columns, model, weight in every]

    def _voting_members(self) -> list[tuple[Any, Ints, float]]:
        active = np.where(self.weights_ >= self.silent_below, self.weights_, 0.0)
        weights = active if active.any() else np.ones_like(active)
        return [(self._models_[m], self._columns_[m], weights[m]) for m in np.flatnonzero(weights)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = accepts_nan(new_classifier(self.estimator))
        return tags
