"""HEFTStream: a heterogeneous ensemble whose members use the features selected when they were created.

Nguyen, Woon, Ng, Wan: Heterogeneous Ensemble for Feature Drifts in Data Streams, PAKDD 2012; Barddal's thesis, section
5.5.2. Rows are processed in chunks of a fixed size. FCBF selects from each chunk; a selection that differs from the
previous one indicates a feature drift, and a new member replaces the worst one.

===========  ==================  ======================================================================
paper        here                meaning
===========  ==================  ======================================================================
k            `n_estimators`      members
chunk        `chunk_size`        rows between two selections
E_i          `members_`          a classifier on the features selected when it was created
===========  ==================  ======================================================================

Let P_i[y] be the probability that member i, in its state before the chunk, assigned to the true class y of a row, and
p_c the proportion of class c in the chunk::

    e_i = mean (1 - P_i[y])^2,    e = sum_c p_c (1 - p_c)^2                                        (1)
    w_i = max(e - e_i, 0),        P[c] ~ sum_i w_i P_i[c]                                          (2)

e is the error of always predicting the class proportions (Wang, Fan, Yu, Han, KDD 2003); if no member is better, all
weights are equal. A new member gets the weight of the best one. Each member learns each row Poisson(1) times (online
bagging).

Deviations, each with its reason:

* No selection precedes the first chunk: members start with all features, so that the model predicts from the first row
  on, and are retrained on that chunk once FCBF has selected from it.
* A new member is trained on the chunk that its features were selected from; its first predictions would otherwise be
  guesses.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtr
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tamis._kernels import njit
from tamis._validation import Floats, Ints, Mask
from tamis._validation.parameters import Kind, parameter, with_methods
from tamis.learners.chunked import ChunkedEnsemble, new_classifier
from tamis.learners.dense_rows import is_third_party
from tamis.learners.hoeffding.adaptive import draw_count
from tamis.learners.traits import accepts_nan
from tamis.rows import FCBF

_Model = tuple[int, int, BaseEstimator]
_SHARES: Floats = pdtr(np.arange(20), 1.0)  # P[K <= 0], P[K <= 1], ...


def _are_learners(value: Any) -> bool:
    if not isinstance(value, list | tuple):
        return False
    learners = [new_classifier(one) if isinstance(one, str) else one for one in value]
    classifier = with_methods("a classifier", "partial_fit", "predict_proba")
    return len(learners) > 0 and all(classifier.accepts(one) for one in learners)


class Member(NamedTuple):
    """A classifier of the ensemble.

    Attributes
    ----------
    kind : int
        Index of its kind in `estimators`.
    columns : ndarray of shape (n_columns,), int
        The features it uses.
    model : classifier
        Fitted on positions in `classes_` as labels.
    weight : float
        Weight of its probabilities; the weights sum to 1.
    """

    kind: int
    columns: NDArray[np.intp]
    model: Any
    weight: float


@njit()
def _times(seed: int, first: int, born: int, shares: Floats, times: Ints) -> None:
    """Write how often a member learns each row: Poisson numbers determined by seed, row and member."""
    for i in range(times.shape[0]):
        times[i] = draw_count(shares, seed, first + i, born)


@dataclass(repr=False, eq=False)
class HEFTStream(ChunkedEnsemble):
    """An ensemble of several kinds of classifiers, renewed when the selection changes (HEFT-Stream).

    Parameters
    ----------
    n_estimators : int from 1 to 1000, default=10
        Number of members.
    chunk_size : int from 8 to 1000000, default=150
        Number of rows between two selections.
    estimators : sequence of str or classifier, default=("nb", "hoeffding-tree")
        The kinds of members: keys of learners in the catalogue, or classifiers with `partial_fit` and `predict_proba`,
        which are cloned. The ensemble starts with an equal number of each kind. At a new label, those of other
        libraries are replaced by new ones.
    selector : row selector or None, default=None
        The selector, which is cloned. None: :class:`~tamis.rows.FCBF` over the last `chunk_size` rows.
    categorical : None, "all", list of int or str, or bool mask, default=None
        Categorical features, for FCBF and for the `estimators` given by name.
    random_state : int, at least 0, default=0
        Seed of the online bagging.

    Attributes
    ----------
    selected_ : ndarray of int
        The features selected after the last chunk; before the first selection, all features.
    drifts_ : list of int
        Row numbers, from 0, at which the selection changed.
    members_ : list of Member
        Kind, features, classifier and weight of each member.
    %(fitted)s

    Notes
    -----
    Members learn each row on arrival, and chunks are counted in rows, so a batch leaves the same state as its rows one
    at a time if this holds for the members and the selector. Memory: two copies of each member, because errors are
    measured in the state before the chunk, and `chunk_size` rows. Sparse rows are rejected. Missing values are passed
    to the members.

    References
    ----------
    Nguyen, Woon, Ng, Wan (2012). Heterogeneous ensemble for feature drifts in data streams. PAKDD.

    Examples
    --------
    Feature 3 determines the class, and feature 8 from row 4000 on; the other 28 are irrelevant:

    >>> import numpy as np
    >>> from tamis import HEFTStream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(8000, 30))
    >>> y = np.where(np.arange(8000) < 4000, X[:, 3] > 0, X[:, 8] > 0).astype(int)
    >>> model = HEFTStream().fit(X[:4000], y[:4000])
    >>> model.selected_
    array([3])
    >>> model = model.partial_fit(X[4000:7000], y[4000:7000])
    >>> model.selected_, model.drifts_[-1]
    (array([8]), 4199)
    >>> bool(model.score(X[7000:], y[7000:]) > 0.95)
    True
    """

    _shapes = """
        _selector_ (its own)  _counts_ (c) in [0, 2**62) fill 0  _weights_ (n) float in [0, 1]
        _models_[][0] in [0, len(estimators))  _models_[][1] in [0, _begun_)
        _models_[][2].classes_ in [0, max(c, 1))  _models_before_[][2].classes_ in [0, max(c, 1))
        _begun_ in [0, 2**62)  selected_ in [0, j)  _knows_ (n, j) bool  _knew_ (n, j) bool
    """

    # State:
    #   _models_, _models_before_   n of (kind, serial number, classifier): now, and before the chunk
    #   _knows_, _knew_    (n, J) bool    their features, now and before the chunk
    #   _weights_          (n,)   float64 w_i, sum 1
    #   _counts_           (K,)   int64   rows of each class in the chunk
    chunk_size: int = 150
    _: KW_ONLY
    estimators: Any = parameter(
        Kind("a sequence of learners, by name or as classifiers with predict_proba", _are_learners),
        default=("nb", "hoeffding-tree"),
    )
    selector: Any = parameter(
        with_methods("a row selector", "partial_fit", "get_support"), None, default=None
    )

    # -- learning ------------------------------------------------------------------------------------------

    @property
    def _has_third_party_parts(self) -> bool:
        return any(
            is_third_party(one) for one in (self._selector_, *(model for _, _, model in self._models_))
        )

    def _initialize(self, n_features: int, names: list[str] | None) -> None:
        super()._initialize(n_features, names)
        self._selector_ = (
            FCBF(window=self.chunk_size, categorical=np.flatnonzero(self._is_category_).tolist())
            if self.selector is None
            else clone(self.selector)
        )
        self._begun_ = 0
        self._counts_ = np.zeros(len(self.classes_), dtype=np.int64)
        self.selected_ = np.arange(n_features)
        self._models_: list[_Model] = [self._new(m % len(self.estimators)) for m in range(self._size_)]
        self._models_before_: list[_Model] = []  # none before the first chunk
        self._knows_ = np.ones((self._size_, n_features), dtype=bool)
        self._knew_ = self._knows_
        self._weights_ = np.full(self._size_, 1.0 / self._size_)

    def _grow(self, n_classes: int) -> None:
        super()._grow(n_classes)
        # A classifier of another library cannot add a class.
        self._models_ = [
            (kind, born, new_classifier(self.estimators[kind]) if is_third_party(model) else model)
            for kind, born, model in self._models_
        ]

    def _new(self, kind: int) -> _Model:
        """Return a new classifier for the currently selected features."""
        self._begun_ += 1
        return kind, self._begun_ - 1, self._new_member(self.estimators[kind], self.selected_)

    def _train_members(self, X: Floats, y: Ints, first: int) -> None:
        self._counts_ = self._counts_ + np.bincount(y, minlength=len(self._counts_))
        self._selector_.partial_fit(X, y, **self._classes_argument(self._selector_))
        for model, mask in zip(self._models_, self._knows_, strict=True):
            self._train(model, mask, X, y, first)

    def _train(self, member: _Model, mask: Mask, X: Floats, y: Ints, first: int) -> None:
        """Update a member with rows, each repeated by its Poisson number; `first` is the number of the first row."""
        times, (_, born, model) = np.empty(len(y), dtype=np.int64), member
        _times(int(self.random_state), first, born, _SHARES, times)
        rows = np.repeat(np.arange(len(y)), times)
        if len(rows):
            model.partial_fit(X[rows][:, mask], y[rows], **self._classes_argument(model))

    def _end_chunk(self, seen: int) -> None:
        """Evaluate the members, select, and replace the worst member if the selection changed."""
        errors, is_first = self._errors(), not self._models_before_
        selected = np.flatnonzero(self._selector_.get_support())
        self._models_, self._knows_ = list(self._models_), self._knows_.copy()
        if not is_first and not np.array_equal(selected, self.selected_):
            self.drifts_ = [*self.drifts_, seen - 1]
            worst, best = int(errors.argmax()), int(errors.argmin())
            self.selected_ = selected
            self._renew(worst, self._models_[best][0], seen)
            errors[worst] = errors[best]
        if is_first:
            self.selected_ = selected
            for m in range(self._size_):
                self._renew(m, m % len(self.estimators), seen)
        shares = self._counts_ / self._chunk_
        gains = np.maximum((shares * (1.0 - shares) ** 2).sum() - errors, 0.0)  # (2)
        self._weights_ = (gains if gains.any() else np.ones_like(gains)) / (gains.sum() or len(gains))
        self._models_before_, self._knew_ = deepcopy(self._models_), self._knows_
        self._counts_ = np.zeros_like(self._counts_)

    def _renew(self, m: int, kind: int, seen: int) -> None:
        """Replace a member by a new one, trained on the chunk with the currently selected features."""
        self._models_[m], self._knows_[m] = self._new(kind), False
        self._knows_[m, self.selected_] = True
        self._train(self._models_[m], self._knows_[m], self._rows_, self._codes_, seen - self._chunk_)

    def _errors(self) -> Floats:
        """Return the mean squared error of each member, in its state before the chunk, by (1)."""
        errors, every = np.zeros(self._size_), np.arange(self._chunk_)
        for m, (_, _, model) in enumerate(self._models_before_):
            votes = self._member_proba(model, self._rows_[:, self._knew_[m]])
            errors[m] = np.mean((1.0 - votes[every, self._codes_]) ** 2)
        return errors

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def members_(self) -> list[Member]:
        """Members of the ensemble."""
        check_is_fitted(self)
        return [
            Member(kind, np.flatnonzero(mask), model, float(weight))
            for (kind, _, model), mask, weight in zip(
                self._models_, self._knows_, self._weights_, strict=True
            )
        ]

    def _voting_members(self) -> list[tuple[Any, NDArray[np.intp], float]]:
        return [(one.model, one.columns, one.weight) for one in self.members_ if one.weight > 0.0]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        classifiers = [one for one in self.estimators if not isinstance(one, str)]
        tags.input_tags.allow_nan = all(accepts_nan(one) for one in classifiers)
        return tags
