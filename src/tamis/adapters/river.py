"""Adapters for River: its classifiers and drift detectors in every evaluation, our selectors in its pipelines.

River learns from one row at a time, a dictionary from names to values. Here rows come in batches; a classifier of
River's learns from them row by row, in order, so that nothing depends on the size of the batches.

River's objects are not thread-safe; each of these locks its own object while it uses them (`_guard`).
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tamis._guard import ThreadSafe
from tamis._validation.arrays import Array, Floats, Rows, as_weights, reject_masked, repeated_rows
from tamis._validation.labels import as_classes, as_column, check_label, encode_labels
from tamis._validation.parameters import SEED, Kind, check_parameters, parameters
from tamis._validation.rows import as_rows, has_rows, reject_nonfinite
from tamis._validation.table import as_table
from tamis._validation.values import check_number, is_missing, short_repr
from tamis.base import Claims, RowSelector
from tamis.base.rows import check_columns, feature_names
from tamis.errors import DataError
from tamis.learners.traits import accepts_nan, adapts_itself
from tamis.pipeline.by_name import ByName, check_cells, named_cells
from tamis.pipeline.masked_learner import MaskedLearner, MaskedRegressor, View
from tamis.pipeline.reset_candidate import ResetCandidate
from tamis.replay import Replay
from tamis.rows.screening import FisherScore

try:
    from river import base, ensemble, forest, naive_bayes, neighbors, tree
except ImportError:
    raise ImportError("River's models need river: pip install 'tamis[river]'") from None

__all__ = [
    "RiverClassifier", "RiverDetector", "RiverLearner", "RiverRegressor", "RiverReplay", "RiverSelector",
]  # fmt: skip

_MODELS: dict[str, Callable[[int | None], Any]] = {
    "naive-bayes": lambda seed: naive_bayes.GaussianNB(),  # type: ignore[no-untyped-call]
    "knn": lambda seed: neighbors.KNNClassifier(n_neighbors=5),
    "hoeffding-tree": lambda seed: tree.HoeffdingTreeClassifier(),
    "adaptive-tree": lambda seed: tree.HoeffdingAdaptiveTreeClassifier(seed=seed),
    "adaptive-forest": lambda seed: forest.ARFClassifier(seed=seed),
    "random-patches": lambda seed: ensemble.SRPClassifier(seed=seed),
}


class RiverClassifier(ThreadSafe, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of River with scikit-learn's methods.

    Parameters
    ----------
    model : river classifier or str, default="hoeffding-tree"
        The model; it is copied before it learns. By name: "naive-bayes", "knn", "hoeffding-tree", "adaptive-tree",
        "adaptive-forest" or "random-patches", with River's defaults.
    random_state : int, optional
        Seed of a model given by name.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : river classifier
        The fitted model.
    n_features_in_ : int

    Raises
    ------
    ValueError
        If no model has that name.
    DataError
        If rows or labels are invalid.

    Notes
    -----
    A column has the name that it has in the frame, else its number. In River, a missing value is not in the dictionary:
    a NaN is left out, and of CSR rows only the stored values are given. (In the first row of all, NaNs are zeros,
    because some of River's ensembles draw their features from it.) The model cannot be saved in a checkpoint, because
    River has no format but pickle.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.adapters.river import RiverClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = (X[:, 1] > 0).astype(int)
    >>> model = RiverClassifier("naive-bayes").partial_fit(X[:500], y[:500], classes=[0, 1])
    >>> round(model.score(X[500:], y[500:]), 2)
    1.0
    """

    classes_: Array
    claims = Claims(
        equals_rows="exactly",
        copies_differ="passed to the model as `w`; if it has no `w`, whole weights repeat the row",
    )

    _allowed = parameters(
        model=(*_MODELS, Kind("a classifier of River", lambda value: isinstance(value, base.Classifier))),
        random_state=(SEED[0], None),
    )

    def __init__(self, model: Any = "hoeffding-tree", random_state: int | None = None) -> None:
        self.model = model
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Reset, then learn from these rows in order."""
        if not has_rows(X):  # `partial_fit` accepts such a batch
            as_rows(X)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows in order.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        classes : array-like, optional
            Labels known in advance; others may follow.
        sample_weight : array-like of shape (n_rows,), optional
            Passed to River as `w`. A model that does not accept it learns a row as often as it counts.

        Returns
        -------
        self
        """
        if not has_rows(X):
            return self
        check_parameters(self)
        X, names = as_rows(X)
        reject_nonfinite(X, names, allow_nan=True)
        labels = as_column(y, X.shape[0], type(self).__name__)
        weights = as_weights(sample_weight, X.shape[0])
        before = dict(vars(self))
        try:
            if not hasattr(self, "model_"):
                X = self._initialize(X, names, classes)
            check_columns(type(self).__name__, X, names, self.n_features_in_, feature_names(self))
            codes, self.classes_ = encode_labels(labels, self.classes_)
            takes_weight = "w" in inspect.signature(self.model_.learn_one).parameters
            if weights is not None:
                at = np.flatnonzero(weights) if takes_weight else repeated_rows(weights)
                X, codes, weights = X[at], codes[at], weights[at] if takes_weight else None
            for i, (row, code) in enumerate(zip(self._rows(X), codes.tolist(), strict=True)):
                more = {} if weights is None else {"w": float(weights[i])}
                self.model_.learn_one(row, code, **more)  # codes: River puts some labels in order
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def predict(self, X: Any) -> Array:
        """Return the label of each row; the first class while the model gives no prediction."""
        X = self._validate(X)
        codes = [self.model_.predict_one(row) or 0 for row in self._rows(X)]
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n_rows, n_classes); all equal while the model gives none."""
        X = self._validate(X)
        result = np.zeros((X.shape[0], len(self.classes_)))
        for row, values in zip(result, self._rows(X), strict=True):
            proba = self.model_.predict_proba_one(values)
            row[:] = [proba.get(c, 0.0) for c in range(len(self.classes_))]
            row[:] = row / row.sum() if row.sum() > 0.0 else 1.0 / len(row)
        return result

    def _initialize(self, X: Rows, names: list[str] | None, classes: Any) -> Rows:
        """Create the model; return the rows, the first without NaN."""
        if isinstance(self.model, str):
            self.model_ = _MODELS[self.model](self.random_state)
        else:
            self.model_ = self.model.clone()
        self.n_features_in_ = X.shape[1]
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.classes_ = np.array([]) if classes is None else as_classes(classes)
        if not sp.issparse(X) and np.isnan(X[0]).any():
            X = X.copy()
            X[0, np.isnan(X[0])] = 0.0
        return X

    def _validate(self, X: Any) -> Rows:
        check_is_fitted(self)
        X, names = as_rows(X)
        reject_nonfinite(X, names, allow_nan=True)
        check_columns(type(self).__name__, X, names, self.n_features_in_, feature_names(self))
        return X

    def _rows(self, X: Rows) -> Iterator[dict[Any, float]]:
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        if sp.issparse(X):
            for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
                columns, values = X.indices[start:stop].tolist(), X.data[start:stop].tolist()
                yield {names[j]: value for j, value in zip(columns, values, strict=True)}
        else:
            for row, lacks in zip(X.tolist(), np.isnan(X).any(axis=1).tolist(), strict=True):
                values = dict(zip(names, row, strict=True))
                yield {name: value for name, value in values.items() if value == value} if lacks else values

    @property
    def wants_scale(self) -> bool:
        """Whether the model depends on the scale of a column, as nearest neighbours do."""
        return "knn" in (self.model if isinstance(self.model, str) else type(self.model).__name__).lower()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


class RiverDetector(ThreadSafe):
    """A drift detector of River with the protocol of :class:`tamis.drift.DriftDetector`.

    Parameters
    ----------
    detector : river drift detector
        The detector. It is copied.

    Examples
    --------
    >>> from river import drift
    >>> from tamis.adapters.river import RiverDetector
    >>> detector = RiverDetector(drift.PageHinkley())
    >>> next(i for i in range(2000) if detector.update(float(i > 1000)))
    1052
    """

    def __init__(self, detector: Any) -> None:
        self.detector = detector
        self.reset()

    @property
    def in_warning(self) -> bool:
        """Whether River's detector is in its warning zone; False if it has none."""
        return bool(getattr(self._running, "warning_detected", False))

    def update(self, value: float) -> bool:
        """Add a finite value; return True if a drift is detected, and then restart."""
        reject_masked("value", value)
        try:
            is_finite = math.isfinite(value)
        except (TypeError, ValueError):  # text, or an array
            is_finite = False
        if not is_finite:
            raise DataError(f"value must be a finite number, got {short_repr(value)}.")
        self._running.update(value)
        self.n_seen += 1
        result = bool(self._running.drift_detected)
        if result:
            self.reset()
        return result

    def reset(self) -> None:
        """Reset the detector."""
        self._running = self.detector.clone()
        self.n_seen = 0


class _Collector(ABC):
    """Collects rows of River's into batches; each is validated on arrival, so that it cannot spoil its batch."""

    every: int
    _rows: list[dict[Any, float]]
    _labels: list[Any]

    @abstractmethod
    def _check(self, row: dict[Any, float], y: Any) -> None:
        """Raise if the row cannot be learned."""

    @abstractmethod
    def _learn(self, rows: list[dict[Any, float]], labels: list[Any]) -> None:
        """Learn from a batch."""

    def learn_one(self, x: dict[Any, float], y: Any) -> None:
        """Add a row; after every `every` rows, all of them are learned. A rejected row is not added."""
        row = dict(x)
        self._check(row, y)
        self._rows.append(row)
        self._labels.append(y)
        if len(self._rows) < self.every:
            return
        rows, labels = self._rows, self._labels
        self._rows, self._labels = [], []
        try:
            self._learn(rows, labels)
        except ValueError:
            self._learn_each(rows, labels)

    def learn_many(self, X: Any, y: Any) -> None:
        """Add the rows of a frame."""
        if (table := as_table(X)) is None:
            raise DataError(
                f"X must be a frame, got a {type(X).__name__}: pass a frame of pandas, Polars or Arrow."
            )
        columns = map(table.values, range(len(table.own_names)))
        for cells, label in zip(zip(*columns, strict=True), y, strict=True):
            # None would be an absent feature
            row = [np.nan if is_missing(value) else value for value in cells]
            self.learn_one(dict(zip(table.own_names, row, strict=True)), label)

    def _learn_each(self, rows: list[dict[Any, float]], labels: list[Any]) -> None:
        """Learn the rows of a rejected batch one at a time, then raise if some of them were rejected."""
        errors = []
        for row, label in zip(rows, labels, strict=True):
            try:
                self._learn([row], [label])
            except ValueError as error:
                errors.append(error)
        if errors:
            raise errors[0]


# In a pipeline of River 0.26, later steps learn from the output of a `Transformer`, but not of a supervised one.
class RiverSelector(_Collector, ThreadSafe, base.SupervisedTransformer, base.Transformer):  # type: ignore[misc]
    """A row selector of Tamis as a transformer in River's pipelines.

    Parameters
    ----------
    selector : RowSelector
        The selector. It is copied. A feature that a row does not name is 0. New names may come at any time if the
        selector can grow (see :class:`~tamis.pipeline.by_name.ByName`); otherwise in the first `every` rows, or as many
        as there is room for.
    every : int, default=100
        Rows that are collected before the selector learns from them, because it is made for batches, at least 1. Each
        is validated on arrival; one that is rejected is not added.
    max_columns : int, optional
        The most names there is room for, as in :class:`tamis.pipeline.by_name.ByName`.
    budget : int, optional
        Maximum number of names at a time, as in :class:`tamis.pipeline.by_name.ByName`.

    Raises
    ------
    DataError
        If a row is invalid, or `max_columns` is exceeded by a new name.

    Examples
    --------
    >>> from river import naive_bayes
    >>> from river.datasets import synth
    >>> from tamis import FisherScore
    >>> from tamis.adapters.river import RiverSelector
    >>> model = RiverSelector(FisherScore(2)) | naive_bayes.GaussianNB()
    >>> for x, y in synth.SEA(seed=1).take(1000):
    ...     model.learn_one(x, y)
    >>> sorted(model["RiverSelector"].transform_one({0: 1.0, 1: 2.0, 2: 3.0}))
    [0, 1]
    """

    def __init__(
        self,
        selector: RowSelector,
        every: int = 100,
        max_columns: int | None = None,
        budget: int | None = None,
    ) -> None:
        check_number("every", every, low=1, integer=True)
        self.selector, self.every, self.max_columns, self.budget = selector, every, max_columns, budget
        self._model = ByName(selector, max_columns=max_columns, budget=budget)
        self._known: set[Any] = set()  # names so far
        self._has_new_names = False  # in the rows that are collected
        self._kept: dict[Any, None] | None = None
        self._rows, self._labels = [], []

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"selector": FisherScore(2), "every": 20}

    @property
    def drift_detected(self) -> bool:
        """Whether the selector found in the last batch that a learner should restart."""
        return self._model.drift_detected_

    def _check(self, row: dict[Any, float], y: Any) -> None:
        known = self._known if self._known.issuperset(row) else self._known.union(row)
        self._model.check_row(row, y, len(known))
        self._has_new_names |= known is not self._known
        self._known = known

    def _learn(self, rows: list[dict[Any, float]], labels: list[Any]) -> None:
        if self._has_new_names:
            # Ties go to the first column: independent of the order in a row.
            rows = [dict(sorted(row.items(), key=lambda item: str(item[0]))) for row in rows]
        self._model.partial_fit(rows, labels)
        self._has_new_names = False
        self._kept = dict.fromkeys(self._model.selected_)

    def transform_one(self, x: dict[Any, float]) -> dict[Any, float]:
        """Return the selected values of a row; all of them before the selector has learned."""
        kept = self._kept
        if kept is None:
            return x
        if len(kept) < len(x):  # the shorter walk
            return {name: x[name] for name in kept if name in x}
        return {name: value for name, value in x.items() if name in kept}

    def transform_many(self, X: Any) -> Any:
        """Return the selected columns of a pandas frame."""
        return X if self._kept is None else X[[name for name in self._kept if name in X.columns]]


class RiverReplay(ThreadSafe, base.Classifier):
    """A row selector of Tamis before a classifier of River, which restarts when the selector asks for it.

    The last rows are kept. When the selector renews its set because the data have changed (``drift_detected_``), or at
    any change of the selection, a new copy of the classifier learns from them, with the columns selected now. With
    ``"auto"`` it then runs beside the old one, and replaces it if it predicts significantly better; classifiers that
    adapt by themselves are never replaced.

    Parameters
    ----------
    selector : RowSelector
    model : river classifier
        Both are copied.
    replay : {"auto", "always", "never"} or int, default="auto"
        When to restart, as in :func:`tamis.prequential`.
    every : int, default=100
        Rows that are collected before the selector learns from them, at least 1.

    Attributes
    ----------
    selector_ : RiverSelector
    model_ : river classifier
        The current ones.
    n_replays : int
        Number of times that the classifier was replaced.

    Examples
    --------
    >>> from river import naive_bayes
    >>> from river.datasets import synth
    >>> from tamis import FisherScore
    >>> from tamis.adapters.river import RiverReplay
    >>> model = RiverReplay(FisherScore(2, half_life=300), naive_bayes.GaussianNB(), replay=300)
    >>> for x, y in synth.SEA(seed=1).take(1000):
    ...     model.learn_one(x, y)
    >>> model.n_replays, sorted(model.selector_.transform_one({0: 1.0, 1: 2.0, 2: 3.0}))
    (1, [0, 1])
    """

    def __init__(
        self, selector: RowSelector, model: Any, replay: str | int = "auto", every: int = 100
    ) -> None:
        self.selector, self.model, self.replay, self.every = selector, model, replay, every
        self.n_replays = 0
        self.selector_ = RiverSelector(selector, every)
        self.model_ = model.clone()
        self._replay = Replay(self.selector_._model, replay)
        self._recent: deque[tuple[dict[Any, float], Any]] = deque()
        self._candidate: Any = None
        self._n_failed = 0

    @property
    def _multiclass(self) -> bool:
        return bool(self.model._multiclass)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"selector": FisherScore(2), "model": naive_bayes.GaussianNB(), "every": 20}  # type: ignore[no-untyped-call]

    def learn_one(self, x: dict[Any, float], y: Any) -> None:
        """Give the row to the selector, and its selected values to the classifier."""
        self.selector_._check(dict(x), y)
        if self._candidate is not None:
            self._compare(x, y)
        before = self.selector_._kept
        self._recent.append((dict(x), y))  # the caller may fill one dict again and again
        while len(self._recent) > self._replay.n_rows:
            self._recent.popleft()
        self.selector_.learn_one(x, y)
        has_learned = not self.selector_._rows
        is_due = has_learned and self._replay.is_due(changed=self.selector_._kept != before)
        if is_due and self.replay != "auto":
            self.model_ = self._trained_on_recent_rows()
            self.n_replays += 1
            return
        self.model_.learn_one(self.selector_.transform_one(x), y)
        if self._candidate is not None:
            self._candidate.learner.learn_one(self.selector_.transform_one(x), y)
            self._decide()
        if is_due and self._candidate is None and not adapts_itself(self.model_):
            self._candidate = ResetCandidate(self._trained_on_recent_rows(), self._n_failed)

    def _trained_on_recent_rows(self) -> Any:
        model = self.model_.clone()
        for x, y in self._recent:
            model.learn_one(self.selector_.transform_one(x), y)
        return model

    def _compare(self, x: dict[Any, float], y: Any) -> None:
        """Let both classifiers predict a row that neither has learned."""
        values = self.selector_.transform_one(x)
        wrong = [np.array([one.predict_one(values) != y]) for one in (self._candidate.learner, self.model)]
        self._candidate.compare(*wrong)

    def _decide(self) -> None:
        """Exchange the two if the candidate is ahead, and drop it when the comparison is over."""
        candidate = self._candidate
        if candidate.is_ahead:
            self._n_failed += candidate.is_old
            self.n_replays += 1 - 2 * candidate.is_old
            self.model_, old = candidate.learner, self.model_
            self._candidate = ResetCandidate(old, self._n_failed, not candidate.is_old)
        elif candidate.is_over:
            self._n_failed += not candidate.is_old
            self._candidate = None

    def predict_proba_one(self, x: dict[Any, float], **kwargs: Any) -> dict[Any, float]:
        """Return the probability of each class, by the selected values."""
        return self.model_.predict_proba_one(self.selector_.transform_one(x), **kwargs)


class _Batched(_Collector):
    """Rows of River's, collected into batches for a learner of Tamis or scikit-learn.

    Parameters
    ----------
    model : estimator with `partial_fit`
    every : int
    columns : sequence, optional
    """

    _kind: type[MaskedLearner] = MaskedLearner

    def __init__(self, model: Any, every: int = 100, columns: Any = None) -> None:
        check_number("every", every, low=1, integer=True)
        self.model, self.every, self.columns = model, every, columns
        # With ByName, which assigns columns to names itself.
        self._named: ByName | None = clone(model) if isinstance(model, ByName) else None
        self._known: set[Any] = set()
        if self._named is not None:
            if not hasattr(model, "predict"):
                raise ValueError(
                    "ByName of a selector does not predict: pass it to RiverSelector, or add a learner."
                )
            self._rows, self._labels = [], []
            return
        self._learner = self._kind(clone(model), np.array([]))
        self._names = None if columns is None else _positions(columns)
        self._blank = np.nan if accepts_nan(model) else 0.0
        self._mask: Any = None
        self._support: Any = None
        self._rows, self._labels = [], []

    def _check(self, row: dict[Any, float], y: Any) -> None:
        if self._named is not None:
            known = self._known if self._known.issuperset(row) else self._known.union(row)
            self._named.check_row(row, y, len(known))
            self._known = known if self._named.budget is None else set()
            return
        if self._names is not None:
            self._reject_unknown(row)
        check_cells(row, allow_nan=bool(np.isnan(self._blank)))
        check_label(y, type(self).__name__, numbers=self._kind is MaskedRegressor)

    def _learn(self, rows: list[dict[Any, float]], labels: list[Any]) -> None:
        if self._named is not None:
            self._named.partial_fit(rows, labels)
            return
        if self._names is None:
            self._names = _positions(sorted(set().union(*rows), key=str))
        X, named = self._matrix(rows, self._names)
        is_named = np.zeros(len(self._names), dtype=bool)
        is_named[named] = True
        self._mask = None if is_named.all() else is_named
        self._support = None if self._mask is None else np.flatnonzero(is_named)
        y = as_column(labels, len(labels), type(self).__name__)
        classes = y[:0]
        if self._kind is MaskedLearner:
            classes = encode_labels(y, self._learner.classes)[1]
        self._learner.learn(self._view(X), y, classes)

    def _reject_unknown(self, row: Iterable[Any]) -> None:
        names = self._names or {}
        if not names.keys() >= set(row):
            new = next(name for name in row if name not in names)
            raise DataError(
                f"A row contains {short_repr(new)}, which is absent from the first batch: pass all names, as"
                f" in {type(self).__name__}(..., columns=[...])."
            )

    def _matrix(self, rows: list[dict[Any, float]], names: dict[Any, int]) -> tuple[Floats, list[int]]:
        """Return the values by column, and the column of each value in the rows."""
        X = np.full((len(rows), len(names)), self._blank)
        named, values, ends = named_cells(rows)
        self._reject_unknown(named)
        columns = [*map(names.__getitem__, named)]
        X[0 if len(rows) == 1 else np.repeat(np.arange(len(rows)), np.diff(ends)), columns] = values
        return X, columns

    def _view(self, X: Rows) -> View:
        return self._learner.view(X, self._mask, self._support, None)

    def _view_of(self, x: dict[Any, float]) -> View | None:
        """Return the model's view of one row; None before it has learned."""
        if self._learner.n_known_classes == 0 or self._names is None:
            return None
        return self._view(self._matrix([x], self._names)[0])


def _positions(names: Iterable[Any]) -> dict[Any, int]:
    return {name: j for j, name in enumerate(names)}


class RiverLearner(_Batched, ThreadSafe, base.Classifier):
    """A classifier of Tamis or scikit-learn in River's pipelines and evaluations, such as a :class:`tamis.Refit`.

    Parameters
    ----------
    model : classifier with `partial_fit`
        It is copied. With a :class:`tamis.ByName` of a pipeline, rows may name other features at any time.
    every : int, default=100
        Rows that are collected before the model learns from them, at least 1: a call for each row would take most of
        the time.
    columns : sequence of hashable, optional
        Names of the features. By default those of the first `every` rows.

    Raises
    ------
    ValueError
        If `every` is out of range.
    DataError
        If a row names another feature (except with :class:`tamis.ByName`), or the model rejects a row.

    Notes
    -----
    Features that no row of the last batch names, as after a :class:`RiverSelector`, are left out for the model as in
    :func:`tamis.prequential`. One that a single row does not name is NaN, or 0 if the model does not accept NaN.
    Nothing is standardised: put River's ``preprocessing.StandardScaler`` before a linear model.

    Examples
    --------
    >>> from river.datasets import synth
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from tamis import FisherScore, Refit
    >>> from tamis.adapters.river import RiverLearner, RiverSelector
    >>> model = RiverSelector(FisherScore(2)) | RiverLearner(Refit(DecisionTreeClassifier(max_depth=4), every=200))
    >>> hits = 0
    >>> for x, y in synth.SEA(seed=1).take(2000):
    ...     hits += model.predict_one(x) == y
    ...     model.learn_one(x, y)
    >>> hits / 2000 > 0.9
    True
    """

    _multiclass = True

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from sklearn.naive_bayes import GaussianNB

        yield {"model": GaussianNB(), "every": 10}

    def predict_one(self, x: dict[Any, float], **kwargs: Any) -> Any:
        """Return the predicted class; None before the model has learned."""
        if self._named is not None:
            return self._named.predict([x]).tolist()[0] if hasattr(self._named, "estimator_") else None
        view = self._view_of(x)
        return None if view is None else self._learner.predict(view).tolist()[0]

    def predict_proba_one(self, x: dict[Any, float], **kwargs: Any) -> dict[Any, float]:
        """Return the probability of each class; before the model has learned, the shares of the labels so far."""
        if self._named is not None and hasattr(self._named, "estimator_"):
            shares = self._named.predict_proba([x])[0].tolist()
            return dict.fromkeys(self._labels, 0.0) | dict(
                zip(self._named.classes_.tolist(), shares, strict=True)
            )
        if self._named is not None:
            return {label: n / len(self._labels) for label, n in Counter(self._labels).items()}
        view = self._view_of(x)
        if view is None or view.asked.shape[1] == 0:
            counts = Counter([*self._learner.classes.tolist(), *self._labels])
            return {label: n / counts.total() for label, n in counts.items()}
        proba = np.asarray(view.predictor.predict_proba(view.asked))[0].tolist()
        known = dict(zip(np.asarray(self._learner.model.classes_).tolist(), proba, strict=True))
        return dict.fromkeys(self._labels, 0.0) | known  # labels that are not learned yet, too


class RiverRegressor(_Batched, ThreadSafe, base.Regressor):
    """A regressor of Tamis or scikit-learn in River's pipelines and evaluations, such as a :class:`tamis.Refit`.

    Parameters
    ----------
    model : regressor with `partial_fit`
        It is copied.
    every, columns
        As for :class:`RiverLearner`.

    Examples
    --------
    >>> from tamis import Refit
    >>> from tamis.adapters.river import RiverRegressor
    >>> rng, model = np.random.default_rng(0), RiverRegressor(Refit("random-forest-regressor", every=200))
    >>> for a, b in rng.normal(size=(500, 2)).tolist():
    ...     model.learn_one({"a": a, "b": b}, 3 * a)
    >>> 1 < model.predict_one({"a": 0.5, "b": 2.0}) < 2
    True
    """

    _kind = MaskedRegressor

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from sklearn.linear_model import SGDRegressor

        yield {"model": SGDRegressor(random_state=0), "every": 10}

    def predict_one(self, x: dict[Any, float]) -> float:
        """Return the predicted number; 0 before the model has learned."""
        if self._named is not None:
            return float(self._named.predict([x])[0]) if hasattr(self._named, "estimator_") else 0.0
        view = self._view_of(x)
        return 0.0 if view is None else float(self._learner.predict(view)[0])
