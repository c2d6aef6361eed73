"""HUWRS: classifiers on random subsets of the features, of which those restart whose features look different now.

Hoens, Chawla, Polikar: Heuristic Updatable Weighted Random Subspaces for Non-stationary Environments, ICDM 2011;
Barddal's thesis, section 5.5.4. Rows come in chunks of a fixed number. After each, every member compares how its
features are distributed in the chunk with how they were distributed when it began. No error is counted.

===========  ==================  ======================================================================
paper        here                meaning
===========  ==================  ======================================================================
Y', Y''      `_then_`, `now`     rows of a class in each bin of a feature: when a member began, and now
d_H          `apart`             Hellinger distance of the two, in [0, sqrt 2]
w_H          `weights_`          agreement, in [0, 1]; of a member the mean over its features
p            `retrain_below`     a member that agrees less restarts
===========  ==================  ======================================================================

With the shares P[q] of a class's rows in the bins q of a feature then, Q[q] now, of n and m rows, in b bins that are
not empty::

    d_H^2 = sum_q (sqrt P[q] - sqrt Q[q])^2 - (b - 1) / 4 (1 / n + 1 / m),   at least 0     (thesis, Eq. 5.3)
    w_H   = (sqrt 2 - d_H) / sqrt 2,        averaged over the classes, then the features    (thesis, Eq. 5.2)
    P[c]  ~ sum_i w_i P_i[c]                of the members i with w_i >= `silent_below`

Errata and deviations, each with its reason:

* Eq. 5.3 lost its inner roots, and Eq. 5.2 a bar. "Differ by p" is read as: the agreement is less than a threshold.
* The last term of d_H^2 is what chance alone adds, for the variance of sqrt P[q] is (1 - P[q]) / (4 n). Without it, a
  class of few rows always looks different. One of fewer rows than bins is not compared; where none is, w_H is 1.
* A member learns on while it agrees: it is a classifier of streams, not a tree of one chunk.
* The paper weighs by unlabelled rows whenever some are predicted. Here `predict` changes nothing, and
  :meth:`HUWRS.reweigh` takes such rows in.
* Subsets are dealt: each feature is in as many as another, or one more. Drawn freely, some features are in none.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tamis._check import Array, as_classes, columns_of
from tamis._jit import njit
from tamis._parameters import SEED, Kind, check_parameters, having, integer, named, number, parameters
from tamis.catalog import find_learner
from tamis.learners.chunked import ChunkedEnsemble, made
from tamis.learners.dense_rows import is_foreign
from tamis.learners.leaving_out import takes_nan
from tamis.learners.subsets import dealt

__all__ = ["HUWRS", "SubspaceMember"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_CLASSIFIER = having("a classifier with partial_fit and predict_proba", "partial_fit", "predict_proba")
_LEARNER = named("a learner", find_learner, _CLASSIFIER)


class SubspaceMember(NamedTuple):
    """A classifier of the ensemble.

    Attributes
    ----------
    columns : ndarray of shape (n_columns,), int64
        The features that it knows.
    model : classifier
        It has learned the positions of the labels in `classes_`.
    weight : float
        How much its features are distributed as when it began, in [0, 1].
    """

    columns: NDArray[np.int64]
    model: Any
    weight: float


@njit()
def _count(X: Array, codes: Array, columns: Array, cuts: Array, is_category: Array, counts: Array) -> None:
    """Count the rows of each class in each bin of some features; what is missing is in none."""
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
def _agreement(then: Array, now: Array) -> float:
    """Return w_H, averaged over the classes that have a row for each bin in both, then over the features."""
    n_classes, n_columns, n_bins = then.shape
    total = 0.0
    for k in range(n_columns):
        agreed, compared = 0.0, 0
        for c in range(n_classes):
            n, m = then[c, k].sum(), now[c, k].sum()
            if min(n, m) < n_bins:
                continue
            apart, in_use = 0.0, 0
            for q in range(n_bins):
                apart += (np.sqrt(then[c, k, q] / n) - np.sqrt(now[c, k, q] / m)) ** 2
                in_use += then[c, k, q] + now[c, k, q] > 0
            apart -= (in_use - 1) / 4.0 * (1.0 / n + 1.0 / m)  # (5.3), squared
            agreed += 1.0 - np.sqrt(max(apart, 0.0) / 2.0)  # (5.2)
            compared += 1
        total += agreed / compared if compared > 0 else 1.0
    found: float = total / n_columns
    return found


def _cuts_of(column: Floats, n_bins: int, *, is_category: bool) -> Floats:
    """Return where the bins of a feature end, or which categories have a bin of their own; the last takes the rest."""
    values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    if is_category:
        cuts = values[np.argsort(-counts, kind="stable")][: n_bins - 1]
    elif len(values) <= n_bins:
        cuts = values[:-1]  # a bin for each value
    else:
        up_to = np.cumsum(counts)
        cuts = values[np.searchsorted(up_to, up_to[-1] * np.arange(1, n_bins) / n_bins)]
    return np.pad(cuts, (0, n_bins - 1 - len(cuts)), constant_values=np.inf)


class HUWRS(ChunkedEnsemble):
    """Classifiers on random subspaces that restart when their features are distributed otherwise.

    Parameters
    ----------
    n_estimators : int from 1 to 1000, default=10
        How many classifiers the ensemble has, each on its own features.
    chunk_size : int from 8 to 1000000, default=500
        Rows between two comparisons of how features are distributed. Choose it such that a chunk has some tens of rows
        of each class: a class with fewer rows than bins is not compared.
    max_features : int, at least 1, or float in (0, 1], default=0.5
        Features of a member: this many, or this share of them.
    estimator : str or classifier, default="nb-su"
        What each member is: a learner of the catalogue by its key, or a classifier with `partial_fit` and
        `predict_proba`, which is copied before it learns.
    retrain_below : float in [0, 1], default=0.95
        A member whose features agree less with what they were restarts: it knows the chunk alone. 0: never.
    silent_below : float in [0, 1], default=0.8
        A member whose features agree less has no vote. If all do, all have.
    n_bins : int from 2 to 1000, default=10
        Bins in which the values of a feature are counted.
    categorical : None, "all", list of int or str, or bool mask, default=None
        The columns whose values are categories. They are known to an `estimator` given by name.
    random_state : int, at least 0, default=0
        Seed of the subsets.

    Attributes
    ----------
    weights_ : ndarray of shape (n_estimators,), float64
        How much the features of each member agree with what they were when it began, in [0, 1].
    drifts_ : list of int
        Rows, counted from 0, at which members restarted.
    members_ : list of SubspaceMember
        Columns, classifier and weight of each.
    classes_ : ndarray of shape (n_classes,)
        Labels in the order in which they were declared or first seen.
    n_seen_ : int
        Rows learned from.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,), str
        Present if the rows came as a frame with column names.

    Raises
    ------
    ValueError
        If a parameter is not as above, when the first rows are learned from.

    Notes
    -----
    Members learn a row when it comes; what is decided per chunk is decided by the number of the row, so a batch leaves
    the same state as its rows one at a time if the members do. Memory beside the members: `chunk_size` rows, and a
    number for each member, class, feature and bin. Sparse rows are refused. Missing values are in no bin, and go to the
    members.

    References
    ----------
    Hoens, Chawla, Polikar (2011). Heuristic updatable weighted random subspaces for non-stationary environments. ICDM.

    Examples
    --------
    From row 4000 on, feature 0 has another mean in each class; the other five are as they were:

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
        classes_ (k)  n_features_in_ (=j)  _chunk_ (=c)  _size_ (=n)
        _rows_ (c, j) float in [-1e150, 1e150] or nan  _codes_ (c) in [0, max(k, 1))  _is_category_ (j)
        _columns_ (n, s) in [0, j)  _cuts_ (n, s, q) float in [-inf, inf]  _then_ (n, k, s, q+1) in [0, c]
        weights_ (n) float in [0, 1]  _models_[].classes_ in [0, max(k, 1))
    """

    _allowed = parameters(
        n_estimators=integer("[1, 1000]"),
        chunk_size=integer("[8, 1000000]"),
        max_features=Kind(
            "an integer from 1 on or a float in (0, 1]",
            lambda value: (
                integer("[1, inf)").fits(value) or (isinstance(value, float) and number("(0, 1]").fits(value))
            ),
        ),
        estimator=Kind(
            "a learner with predict_proba, by name or as a classifier",
            lambda value: _LEARNER.fits(value) and _CLASSIFIER.fits(made(value)),
        ),
        retrain_below=number("[0, 1]"),
        silent_below=number("[0, 1]"),
        n_bins=integer("[2, 1000]"),
        random_state=SEED[0],
    )

    # State:
    #   _models_         n classifiers
    #   _columns_        (n, s)        int64    the features of each
    #   _cuts_           (n, s, b-1)   float64  where their bins end, or the categories that have one; the rest is inf
    #   _then_           (n, K, s, b)  int64    rows of the chunk that a member began with, by class and bin
    #   weights_         (n,)          float64  w_i
    _models_: list[Any]

    def __init__(
        self,
        n_estimators: int = 10,
        chunk_size: int = 500,
        *,
        max_features: int | float = 0.5,
        estimator: Any = "nb-su",
        retrain_below: float = 0.95,
        silent_below: float = 0.8,
        n_bins: int = 10,
        categorical: Any = None,
        random_state: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.chunk_size = chunk_size
        self.max_features = max_features
        self.estimator = estimator
        self.retrain_below = retrain_below
        self.silent_below = silent_below
        self.n_bins = n_bins
        self.categorical = categorical
        self.random_state = random_state

    # -- learning ------------------------------------------------------------------------------------------

    @property
    def _has_foreign_parts(self) -> bool:
        return is_foreign(self._models_[0])

    def _open(self, n_features: int, names: list[str] | None, classes: Any) -> None:
        self._is_category_ = np.zeros(n_features, dtype=bool)
        self._is_category_[columns_of(self.categorical, n_features, names)] = True
        self.classes_ = np.array([]) if classes is None else as_classes(classes)
        self._begin_chunks(self.chunk_size, n_features)
        self._size_, self.n_seen_ = int(self.n_estimators), 0
        share = self.max_features if isinstance(self.max_features, float) else self.max_features / n_features
        size = min(max(1, round(share * n_features)), n_features)
        self._columns_ = dealt(self._size_, size, n_features, int(self.random_state))
        self._cuts_ = np.full((self._size_, size, int(self.n_bins) - 1), np.inf)
        self._then_ = np.zeros((self._size_, len(self.classes_), size, int(self.n_bins)), dtype=np.int64)
        self.weights_, self.drifts_ = np.ones(self._size_), list[int]()
        self._models_ = [self._new(m) for m in range(self._size_)]

    def _grow(self, n_classes: int) -> None:
        more = n_classes - self._then_.shape[1]
        self._then_ = np.pad(self._then_, ((0, 0), (0, more), (0, 0), (0, 0)))

    def _new(self, m: int) -> Any:
        """Return a classifier for the features of a member."""
        model = made(self.estimator)
        if isinstance(self.estimator, str) and "categorical" in model.get_params():
            model.set_params(categorical=np.flatnonzero(self._is_category_[self._columns_[m]]).tolist())
        return model

    def _teach_members(self, X: Floats, y: Ints, first: int) -> None:
        for model, columns in zip(self._models_, self._columns_, strict=True):
            self._teach(model, X[:, columns], y)

    def _teach(self, model: Any, rows: Floats, codes: Ints) -> None:
        model.partial_fit(rows, codes, **self._declared(model))

    def _end_chunk(self, seen: int) -> None:
        """Compare the chunk with those that the members began with, and restart those that agree too little."""
        is_first = seen == self._chunk_
        self.weights_ = np.ones(self._size_) if is_first else self._compared(self._rows_, self._codes_)
        restarted = np.flatnonzero(self.weights_ < self.retrain_below)
        self._remember(np.arange(self._size_) if is_first else restarted)
        if len(restarted):
            self.drifts_ = [*self.drifts_, seen - 1]
            self.weights_[restarted] = 1.0
            self._models_ = list(self._models_)
        for m in restarted.tolist():
            self._models_[m] = self._new(m)
            self._teach(self._models_[m], self._rows_[:, self._columns_[m]], self._codes_)

    def _compared(self, rows: Floats, codes: Ints | None) -> Floats:
        """Return w_i of each member for some rows; without codes, all classes are taken together."""
        weights = np.empty(self._size_)
        for m, then in enumerate(self._then_):
            if codes is None:
                then = then.sum(axis=0, keepdims=True)
            now = self._counted(m, rows, np.zeros(len(rows), np.int64) if codes is None else codes, len(then))
            weights[m] = _agreement(then, now)
        return weights

    def _remember(self, members: NDArray[np.intp]) -> None:
        """Keep how the features of some members are distributed in the chunk."""
        self._cuts_, self._then_ = self._cuts_.copy(), self._then_.copy()
        cuts = {
            j: _cuts_of(self._rows_[:, j], int(self.n_bins), is_category=bool(self._is_category_[j]))
            for j in np.unique(self._columns_[members]).tolist()
        }
        for m in members:
            self._cuts_[m] = [cuts[j] for j in self._columns_[m].tolist()]
            self._then_[m] = self._counted(m, self._rows_, self._codes_, len(self.classes_))

    def _counted(self, m: int, rows: Floats, codes: Ints, n_classes: int) -> Ints:
        """Return how many rows of each class are in each bin of the features of a member."""
        counts = np.zeros((n_classes, *self._then_.shape[2:]), dtype=np.int64)
        _count(rows, codes, self._columns_[m], self._cuts_[m], self._is_category_, counts)
        return counts

    def reweigh(self, X: Any) -> Self:
        """Weigh the members by rows whose labels are not known yet, until the next labelled chunk ends.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            They are compared as one chunk, however many they are. Nothing is learned from them, and no member
            restarts. Before the first labelled chunk is full nothing happens.

        Returns
        -------
        self

        Examples
        --------
        Feature 0 tells the class, until it is far from where it was:

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
        rows = self._bounded(self._rows(X, False))
        if self.n_seen_ >= self._chunk_:
            self.weights_ = self._compared(rows, None)
        return self

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def members_(self) -> list[SubspaceMember]:
        """The members as they are now."""
        check_is_fitted(self)
        every = zip(self._columns_, self._models_, self.weights_.tolist(), strict=True)
        return [SubspaceMember(columns, model, weight) for columns, model, weight in every]

    def _ballots(self) -> list[tuple[Any, Ints, float]]:
        loud = np.where(self.weights_ >= self.silent_below, self.weights_, 0.0)
        weights = loud if loud.any() else np.ones_like(loud)
        return [(self._models_[m], self._columns_[m], weights[m]) for m in np.flatnonzero(weights)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = takes_nan(made(self.estimator))
        return tags
