"""The base class of active feature acquisition: a classifier that acquires the values of a row one at a time.

A subclass chooses the next feature and updates the posterior with its value. `predict` does so for many rows at once;
a session, returned by ``open``, for one row whose values the caller provides (:mod:`tamis.base.session`).
"""

from __future__ import annotations

import copy
import functools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import RegressorTags, Tags
from sklearn.utils.validation import check_is_fitted

from tamis._guard import ThreadSafe
from tamis._validation.arrays import Array, Floats, Ints, Mask, Rows, as_numbers, as_weights, repeated_rows
from tamis._validation.labels import as_column, as_target, encode_labels, reject_missing
from tamis._validation.parameters import (
    GROUPS,
    SEED,
    Kind,
    check_parameters,
    integer,
    number,
    parameters,
    with_methods,
)
from tamis._validation.rows import has_rows, reject_nonfinite
from tamis._validation.values import short_repr
from tamis.base.categories import Categories
from tamis.base.declarations import Claims, Inputs
from tamis.base.html_repr import html_repr
from tamis.base.missingness import Missingness, complete_rows, missingness_of
from tamis.base.numeric_target import NumericTarget
from tamis.base.prices import PRICES, PriceList, Tariff, check_groups, own_costs, tariff_of
from tamis.base.row_sample import RowSample
from tamis.base.session import Session, State, add_values, limits_of, outcome_of, session_number
from tamis.errors import DataError

_CELLS = 1 << 20  # values times classes in memory at a time while rows are walked
_NEW_CATEGORY = -1.0  # in encoded rows
_NO_RESULT = -np.inf
_WITHOUT_RESULT = np.int16(-2)  # code of both in `_cells`, where -1 is an unavailable value

# For each acquisition: rows, positions, values, posteriors after it.
Purchases = list[tuple[Array, Array, Array, Floats]]


class _Bill:
    """Acquisitions of a prediction, not saved; a separate object, since `predict` must not set attributes."""

    trace: Purchases | None = None

    @functools.cached_property
    def n_features(self) -> Ints:
        return np.zeros(0, dtype=np.int64)

    @functools.cached_property
    def cost(self) -> Floats:
        return np.zeros(0)


@dataclass(frozen=True)
class Acquisition:
    """The features acquired for one row, and the decision based on them.

    Attributes
    ----------
    label : object
        The decision.
    cost : float
        Total acquisition cost.
    features : list of str or int
        The features in the order of acquisition; by name if the model has feature names.
    values : list
        Numbers, or categories; None where a feature was acquired without a result.
    posteriors : ndarray of shape (n_acquired + 1, n_classes)
        Class probabilities before the first value, and after each.
    outcomes : list of str
        Of each feature, as in :meth:`Session.explain`.
    """

    label: Any
    cost: float
    features: list[Any]
    values: list[Any]
    posteriors: Floats
    outcomes: list[str]

    def __repr__(self) -> str:
        return f"Acquisition({', '.join(self._facts())})"

    def _repr_html_(self) -> str:
        likeliest = [f"{row.max():.3f}" for row in self.posteriors[1:]]
        acquired = {
            f"{place}. {feature}": [f"{value:g}" if isinstance(value, float) else short_repr(value), after]
            for place, (feature, value, after) in enumerate(
                zip(self.features, self.values, likeliest, strict=True), start=1
            )
        }
        return html_repr(
            "Acquisition", self._facts(), acquired, ("acquired", "value", "likeliest class then")
        )

    def _facts(self) -> list[str]:
        number = f"{len(self.features):,} value{'s' * (len(self.features) != 1)} acquired"
        return [f"decision {short_repr(self.label)}", number, f"paid {self.cost:g}"]


class CellClassifier(ThreadSafe, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Classifies a row from a few of its values: acquires a value only if it is worth its cost.

    With ``objective="squared-error"`` the target is a number: its levels are the classes, and the prediction is their
    mean (:class:`tamis.base.numeric_target.NumericTarget`).

    A subclass stores its parameters in the constructor, `cost` and `misclassification_cost` among them, and implements
    three hooks. `_learn` fits the model and sets `candidates_`, `_next` chooses a feature, `_observe` updates the
    posterior with its value.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Means of the levels, for a numeric target.
    prior_ : ndarray of shape (n_classes,)
        Proportion of each class in the rows of `fit`; the posterior before the first acquisition.
    candidates_ : ndarray of shape (K,), int
        Features that may be acquired, in the model's order.
    prices_ : ndarray of shape (K,)
        Acquisition cost of each candidate.
    target_name_ : str
        Name of the labels, if they were a named column in `fit`; or empty.
    missingness_ : Missingness or None
        How the class depends on which values were recorded in the rows of `fit`; None if it does not.
    n_features_used_ : ndarray of shape (n_rows,), int
        Number of values acquired for each row of the last `predict`; empty in a model that was loaded.
    cost_ : ndarray of shape (n_rows,)
        Their total cost.
    """

    _shapes = """
        n_features_in_ (=y)  classes_ (k) labels  prior_ (k) float in [0, 1]  _Q (k, k) finite
        candidates_ (c) in [0, n_features_in_)
        prices_ (c) float in [0, inf)  _bins.edges (c, a) float in [-inf, inf]  _bins.sizes (c) in [0, a+1]
        _bins.levels in [1, a+1]  _sizes (y) in [0, 33)  _class_order (k) in [0, k) distinct
        _tariff.own (c) float in [0, inf)  _tariff.member (g, c) bool  _tariff.fee (g) float in [0, inf)
        _tariff.pairs (p, 2) in [0, c)  _tariff.given (p) float in [0, inf)
        _evidence_model? (its own)  _any_order? (its own)  _target? (its own)
        _sample? (its own)  _sample?.rows? (*, y)  _sample?.classes (k?) labels
        _n_fitted in [0, 2**62)  _n_since in [0, 2**62)  _ranges? (c, 2) float in [-inf, inf] or nan
        missingness_?.columns (m) in [0, n_features_in_)  missingness_?.recorded (m, k) float in [0, 1]
    """

    cost: float | Array | Mapping[str, float] | PriceList
    misclassification_cost: Array | float | None
    groups: Any = None
    categorical: Any = None
    classes_: Array
    _categories: Categories
    _target: NumericTarget | None = None  # levels of a numeric target
    missingness: str = "uninformative"
    missingness_: Missingness | None = None
    _sizes: Ints
    _class_order: Ints
    prior_: Floats
    candidates_: Ints
    prices_: Floats
    target_name_: str = ""
    _ranges: Floats | None = None  # smallest and largest value of each candidate in `fit`, NaN for categories

    _allowed = parameters(
        cost=PRICES,
        groups=(GROUPS, None),
        misclassification_cost=(
            Kind("a table of numbers", lambda value: len(np.shape(value)) == 2),
            number("[1e-100, 1e100]"),
            None,
        ),
        random_state=(SEED[0], None),
        # Tables of pairs have the square of this size.
        n_bins=integer("[2, 256]"),
        classifier=(with_methods("a classifier with predict_proba", "fit", "predict_proba"), None),
        binning=("quantile", "width"),
        n_beliefs=integer("[1, 100000]"),
        max_features=(integer("[1, inf)"), None),
        missingness=("uninformative", "informative"),
        categorical=(Kind("columns", lambda value: isinstance(value, str) or np.ndim(value) == 1), None),
    )

    # -- hooks ---------------------------------------------------------------------------------------------

    claims = Claims(
        equals_rows="exactly", sparse_time=True, copies_differ="the copies of a row are held out together"
    )
    accepts = Inputs(targets=("binary", "multiclass", "regression"))
    _numbers_count = False  # whether the state keeps the values themselves
    # During a fit with weights: the row that each row is a copy of, so that copies are held out together.
    _origin: Ints | None = None
    _sample: RowSample | None = None  # of the rows of `partial_fit`
    _n_fitted: int  # rows that the model was fitted to, and rows since
    _n_since: int

    @abstractmethod
    def _learn(self, X: Rows, y: Array) -> None:
        """Fit the model; `y` contains class codes. Sets `candidates_`."""

    def _update(self, X: Rows, y: Array) -> None:
        """Learn from further rows of known classes between two fits; may replace state."""

    @abstractmethod
    def _codes(self, values: Array, positions: Array) -> NDArray[np.int16]:
        """Return the codes of values of the candidates at these positions; -1 for NaN."""

    @abstractmethod
    def _next(self, state: State) -> Ints:
        """Return the position to acquire for each row, or -1 to stop; may advance the state."""

    @abstractmethod
    def _observe(self, state: State, position: Array, code: Array, value: Array) -> None:
        """Update the state with one value of each row and its code; -1 means unavailable."""

    def _price(self, state: State, position: Array) -> Floats:
        """Return the cost of the feature at that position for each row."""
        if not self._tariff.varies:
            return self._tariff.own[position]
        return self._tariff.following(state.paid_or_known)[np.arange(len(position)), position]

    def _start(self, n_rows: int, unavailable: Mask | None = None) -> State:
        K = len(self.candidates_)
        if unavailable is None:
            unavailable = np.zeros((n_rows, 0), dtype=bool)
        return State(
            np.full((n_rows, K), -1, dtype=np.int16),
            unavailable.copy() if unavailable.shape[1] else np.zeros((n_rows, K), dtype=bool),
            np.tile(self._first_belief(), (n_rows, 1)),
            np.zeros(n_rows, dtype=np.int64),
            np.zeros(n_rows),
            np.full((n_rows, K if self._numbers_count else 0), np.nan),
            np.zeros(n_rows, dtype=bool),
            unavailable,
            np.zeros((n_rows, K), dtype=bool),
        )

    def _first_belief(self) -> Floats:
        return self.prior_

    def _origin_of(self, rows: Array) -> Ints | None:
        """Return the original of each row of a fit with repeated rows; None without weights."""
        return None if self._origin is None else self._origin[rows]

    # -- verbs ---------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from complete rows. If it raises, the model is unchanged; Ctrl-C takes effect immediately.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            NaN is a missing value.
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            Whole numbers: how often each row counts. All copies of a row are held out together.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If a value is infinite, a label is missing, or a weight is negative or not a whole number.
        ValueError
            If a parameter is invalid.
        """
        check_parameters(self)
        fresh = copy.copy(self)
        fresh._forget()
        fresh._sample = None
        fresh._fit(X, y, sample_weight)
        if isinstance(self.cost, PriceList) and self.cost.currency and self.misclassification_cost is None:
            what = "a squared error of one variance" if self._is_regression else "a wrong decision"
            warnings.warn(
                f"cost is in {self.cost.currency}, but misclassification_cost was not given: {what} costs 1"
                f" {self.cost.currency}.",
                stacklevel=3,
            )
        if fresh.missingness_ is not None and fresh.missingness == "uninformative":
            warnings.warn(f"{missingness_text(fresh)} {NOT_EVIDENCE}", stacklevel=3)
        # In one step: a concurrent reader gets the old model or the new one, never a mixture.
        self.__dict__ = fresh.__dict__
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further rows: they enter a sample, to which the whole model is refitted when rows double.

        The model is fitted to the rows of the first call, and refitted, with a new order, bins and classes, whenever
        the number of rows has doubled or a new class occurs. In between, it is unchanged unless its class documents
        otherwise. The sample is uniform: at most 10,000 rows and two of each class. `fit` keeps no rows: after it, the
        model is refitted once `partial_fit` has received as many rows, and to those only. If it raises, the model is
        unchanged; Ctrl-C takes effect immediately.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            NaN is a missing value. A new category counts as missing until the next fit.
        y : array-like of shape (n_rows,)
        classes : ignored
            Present for API consistency: classes are added when they occur.
        sample_weight : array-like of shape (n_rows,), optional
            As in `fit`.

        Returns
        -------
        self

        Raises
        ------
        DataError
            As in `fit`; or if a label did not occur in `fit`, and the rows since are too few for a refit.
        """
        if not has_rows(X):
            return self
        check_parameters(self)
        fresh = copy.copy(self)
        fresh._partial_fit(X, y, sample_weight)
        self.__dict__ = fresh.__dict__
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        is_first = not hasattr(self, "classes_")
        if is_first:
            self._fit(X, y, sample_weight)
        known = self._rows(X, new_category=np.nan)
        y = as_column(y, known.shape[0], type(self).__name__)
        reject_missing(y)
        at = _copies(sample_weight, known.shape[0])
        at = np.arange(known.shape[0]) if at is None else at
        classes = np.zeros(0) if self._is_regression else self.classes_
        sample = RowSample(self._categories, classes) if self._sample is None else self._sample
        categories, rows = sample.categories.extend(X)
        sample = copy.copy(sample)
        sample.categories = categories
        target = as_target(y[at]) if self._is_regression else np.zeros(len(at))
        codes = np.zeros(len(at), dtype=np.int64)
        if not self._is_regression:
            codes, sample.classes = encode_labels(y[at], sample.classes)
        fading = float(getattr(self, "fading", 1.0))
        sample = sample.with_rows(
            rows[at], codes, at, target, seed=self.random_state or 0, fading=fading, n_rows=len(y)
        )
        if any(len(values) > 2 * len(sample.codes) for values in sample.categories.values.values()):
            sample = sample.compact()  # most categories no longer occur in it
        self._sample = sample
        if is_first:
            return
        self._n_since += len(at)
        is_whole = sample.n_seen == self._n_fitted + self._n_since
        is_new = not self._is_regression and len(sample.classes) > len(self.classes_)
        if self._n_since >= _effective(self._n_fitted, fading) or (is_new and is_whole):
            self._refit()
        else:
            self._update(known[at], self._encode_labels(y[at]))
            if self._ranges is not None:
                self._ranges = _joint_ranges(
                    self._ranges, _ranges_of(known[at], self.candidates_, self._sizes)
                )

    def _refit(self) -> None:
        """Fit to the rows of the sample."""
        assert self._sample is not None
        sample = self._sample = self._sample.compact()
        names, target_name = getattr(self, "feature_names_in_", None), self.target_name_
        self._forget()
        self.target_name_ = target_name
        self._categories, self._origin = sample.categories, sample.origin
        labels = sample.target if self._is_regression else sample.classes[sample.codes]
        self._fit_rows(sample.rows, labels, None if names is None else list(names))
        self._n_fitted = sample.n_seen

    def _forget(self) -> None:
        """Remove what was learned."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("__")]:
            delattr(self, name)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._categories, X, names = Categories.learn(X, self.categorical, sample_weight)
        target_name = getattr(y, "name", None)
        self.target_name_ = target_name if isinstance(target_name, str) else ""
        y = as_column(y, X.shape[0], type(self).__name__)
        reject_nonfinite(X, names, allow_nan=True)
        if (at := _copies(sample_weight, X.shape[0])) is not None:
            X, y, self._origin = X[at], y[at], at
        self._fit_rows(X, y, names)

    def _fit_rows(self, X: Rows, y: Array, names: list[str] | None) -> None:
        """Fit to rows whose categories are codes."""
        self._n_fitted, self._n_since = len(y), 0
        self.n_features_in_ = X.shape[1]
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self._sizes = self._categories.sizes(X.shape[1])
        self._target = (
            NumericTarget(y, _error_cost(self.misclassification_cost)) if self._is_regression else None
        )
        if self._target is None:
            codes, self.classes_ = encode_labels(y, np.array([]))
        else:
            codes, self.classes_ = self._target.codes(y), self._target.means
        # Classes in the order of occurrence, so that random draws do not depend on their names.
        self._ranges, given = None, X
        self.missingness_ = None if sp.issparse(X) else missingness_of(X, codes, len(self.classes_))
        if self.missingness_ is not None and self.missingness == "uninformative":
            X, self._origin = complete_rows(X, codes, self._sizes, self._origin, self.random_state or 0)
        self._class_order = np.argsort(np.unique(codes, return_index=True)[1])
        self.prior_ = np.bincount(codes, minlength=len(self.classes_)) / len(codes)
        self._Q, self._bill = self._misclassification(), _Bill()
        costs = self._costs()
        self._learn(X, codes)
        self.prices_ = costs[self.candidates_]
        self._tariff: Tariff = self._whole_tariff().take(self.candidates_)
        self._ranges = _ranges_of(given, self.candidates_, self._sizes)
        self.__dict__.pop("_origin", None)

    def predict(self, X: Any) -> Array:
        """Return the label of each row, acquiring its values one at a time.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            NaN is an unavailable value: it is skipped and costs nothing. A category that did not occur in `fit` is paid
            for, but provides no evidence.
        """
        return self._decide(self._walk(self._rows(X)).posterior)

    def predict_proba(self, X: Any) -> Floats:
        """Return the class probabilities of each row after its last acquisition, shape (n_rows, n_classes)."""
        return self._walk(self._rows(X)).posterior

    @property
    def categories_(self) -> dict[str | int, list[Any]]:
        """Categories of each categorical feature, most frequent first; keyed by name if features have names."""
        check_is_fitted(self)
        return {
            self._name_of_column(column): list(values) for column, values in self._categories.values.items()
        }

    def acquire(
        self, x: Any, unavailable: Any = None, *, no_result: Any = None
    ) -> Acquisition | list[Acquisition]:
        """Return the values acquired for a row, in order, and the class probabilities after each.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (n_rows, n_features)
            One row, or several; for several, a list is returned.
        unavailable : sequence of str or int, or bool array of shape (n_rows, n_features), optional
            Features (names or numbers) that cannot be acquired, for all rows or row by row. They are never requested,
            whereas a missing value is requested without success.
        no_result : sequence of str or int, or bool array of shape (n_rows, n_features), optional
            Features that are paid for when they are acquired, but have no result.

        Raises
        ------
        ValueError
            If `unavailable` or `no_result` names an unknown feature, or has another shape.
        """
        if not hasattr(x, "columns") and not sp.issparse(x) and np.ndim(x) == 1:
            acquisitions = self.acquire(np.asarray(x).reshape(1, -1), unavailable, no_result=no_result)
            assert isinstance(acquisitions, list)
            return acquisitions[0]
        X = self._rows(x)
        if (empty := self._unavailable(no_result, X.shape[0], "no_result")) is not None:
            X = X.tolil() if sp.issparse(X) else np.array(X, dtype=np.float64)
            rows, position = np.nonzero(empty)
            X[rows, self.candidates_[position]] = _NO_RESULT
            X = sp.csr_array(X) if sp.issparse(X) else X
        trace: Purchases = []
        state = self._walk(X, trace, self._unavailable(unavailable, X.shape[0]))
        return self._acquisitions(state, trace, self._categories.raw(x))

    def open(
        self, state: Mapping[str, Any] | None = None, *, unavailable: Any = None, budget: float | None = None
    ) -> Session:
        """Return a session that classifies one row, value by value.

        Parameters
        ----------
        state : mapping, optional
            As returned by :meth:`Session.state` of an earlier session, which the new one continues.
        unavailable : sequence of str or int, optional
            Features (names or numbers) that cannot be acquired for this row; the session does not request them.
        budget : float, optional
            Largest total cost of this row: a feature whose price exceeds the rest of it is not requested.

        Returns
        -------
        Session
            It keeps the current model, even if the model is refitted.
        """
        check_is_fitted(self)
        return Session(copy.copy(self), state, unavailable, budget)

    # -- read-outs -----------------------------------------------------------------------------------------

    @property
    def n_features_used_(self) -> Ints:
        """Number of values acquired for each row of the last `predict`."""
        check_is_fitted(self)
        return self._bill.n_features

    @property
    def cost_(self) -> Floats:
        """Total cost of the values acquired for each row of the last `predict`."""
        check_is_fitted(self)
        return self._bill.cost

    def _walk(
        self, X: Rows, trace: Purchases | None = None, unavailable: Mask | None = None,
        most_cells: int | None = None,
    ) -> State:  # fmt: skip
        """Acquire until every row stops; a batch of rows at a time, to bound the memory."""
        n, n_cells = X.shape[0], max(len(self.candidates_), 1) * len(self.classes_)
        step = max(1, (most_cells or _CELLS) // n_cells)
        bill = _Bill()
        bill.n_features, bill.cost, bill.trace = np.zeros(n, dtype=np.int64), np.zeros(n), trace
        parts = [
            self._walk_block(
                X,
                np.arange(at, min(at + step, n)),
                bill,
                None if unavailable is None else unavailable[at : at + step],
            )
            for at in range(0, n, step)
        ]
        vars(self._bill).update(n_features=bill.n_features, cost=bill.cost)
        if len(parts) == 1:
            return parts[0]
        whole = self._start(0)
        whole.posterior = np.concatenate([part.posterior for part in parts])
        return whole

    def _walk_block(self, X: Rows, rows: Array, bill: _Bill, unavailable: Mask | None) -> State:
        values, codes = self._cells(X, rows)
        state = self._start(len(rows), unavailable)
        alive = np.arange(len(rows))
        while len(alive):
            part = state.take(alive)
            position = self._next(part)
            state.put(alive, part)
            alive, position = alive[position >= 0], position[position >= 0]
            part, code, value = state.take(alive), codes[alive, position], values[alive, position]
            price = np.where(code != -1, self._price(part, position), 0.0)
            add_values(self, part, position, code, value, price)
            state.put(alive, part)
            self._pay(rows[alive], position, code, price, value, part.posterior, bill)
        return state

    def _cells(self, X: Rows, rows: Array) -> tuple[Array, NDArray[np.int16]]:
        """Return the candidates' values in a batch of rows, and their codes.

        The code is -1 if a value is unavailable, -2 if it is paid for without evidence.
        """
        values = X[rows[0] : rows[-1] + 1][:, self.candidates_] if len(rows) else X[:0][:, self.candidates_]
        values = values.toarray() if sp.issparse(values) else np.asarray(values)
        codes = self._codes(values, np.arange(len(self.candidates_)))
        is_category = self._sizes[self.candidates_] > 0
        is_empty = values == _NO_RESULT
        if is_category.any():
            is_empty |= is_category & (values == _NEW_CATEGORY)
        codes[is_empty] = _WITHOUT_RESULT
        return values, codes

    def _pay(
        self, rows: Array, position: Array, code: Array, price: Floats, value: Array, posterior: Floats,
        bill: _Bill,
    ) -> None:  # fmt: skip
        """Record the acquisitions; unavailable values cost nothing."""
        acquired = code != -1
        bill.n_features[rows[acquired]] += 1
        bill.cost[rows[acquired]] += price[acquired]
        if bill.trace is not None:
            bill.trace.append((rows[acquired], position[acquired], value[acquired], posterior[acquired]))

    def _acquisitions(
        self, state: State, trace: Purchases, raw: Mapping[int, list[Any]]
    ) -> list[Acquisition]:
        """Return the acquisitions of each row; `raw` contains the categories as given."""
        n, first, names = len(state.posterior), self._first_belief()[None], self._names()
        empty = (np.zeros(0, dtype=np.int64),) * 3 + (np.zeros((0, first.shape[1])),)
        rows, position, value, posterior = (np.concatenate(part) for part in zip(empty, *trace, strict=True))
        order = np.argsort(rows, kind="stable")  # steps of a row remain in order
        bounds = np.searchsorted(rows[order], np.arange(n + 1))
        label, cost = self._decide(state.posterior), self._bill.cost.tolist()
        acquisitions = []
        for i in range(n):
            steps = order[bounds[i] : bounds[i + 1]]
            acquired = position[steps].tolist()
            values, outcomes = list[Any](), list[str]()
            for at, given in zip(acquired, value[steps].tolist(), strict=True):
                column = int(self.candidates_[at])
                is_new, is_empty = column in raw and given == _NEW_CATEGORY, given == _NO_RESULT
                values.append(
                    raw[column][i] if is_new else None if is_empty else self._plain_value(at, float(given))
                )
                outcomes.append(outcome_of(values[-1], np.nan if is_new else given, limits_of(self, at)))
            after = np.concatenate([first, posterior[steps]])
            acquisitions.append(
                Acquisition(label[i], cost[i], [names[at] for at in acquired], values, after, outcomes)
            )
        return acquisitions

    @property
    def _is_regression(self) -> bool:
        return bool(getattr(self, "objective", "") == "squared-error")

    def _losses(self, y: Array, predicted: Array) -> Floats:
        """Return the loss of each prediction, in units of the prices; the largest loss if the class is unknown."""
        if self._target is not None:
            return self._target.losses(y, predicted)
        known = np.isin(y, self.classes_)
        true, decided = (
            np.searchsorted(self.classes_, np.where(known, part, predicted)) for part in (y, predicted)
        )
        return np.where(known, self._Q[true, decided], self._Q.max())

    def _deviation(self, posterior: Floats) -> Floats | None:
        """Return the standard deviation of a numeric target given posteriors; None for classes."""
        return None if self._target is None else self._target.deviation(posterior)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, or the coefficient of determination for a numeric target, of `predict`.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        """
        from sklearn.metrics import accuracy_score, r2_score

        measure = r2_score if self._is_regression else accuracy_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def _decide(self, posterior: Floats) -> Array:
        if self._target is not None:
            return self._target.predict(posterior)
        return self.classes_[np.argmin(posterior @ self._Q, axis=1)]

    def name_of(self, position: int) -> str | int:
        """Return the name of a candidate, or its column if columns have no names."""
        return self._name_of_column(int(self.candidates_[position]))

    def _name_of_column(self, column: int) -> str | int:
        return str(self.feature_names_in_[column]) if hasattr(self, "feature_names_in_") else column

    def _names(self) -> list[str | int]:
        """Return the name of each candidate."""
        return [self._name_of_column(column) for column in self.candidates_.tolist()]

    def _number(self, position: int, value: Any, name: str | int) -> float:
        """Return a value of the candidate at a position as a number; NaN for None, and for a new category."""
        column = int(self.candidates_[position])
        if value is not None and column in self._categories.values:
            return self._categories.code(column, name, value)
        return session_number(value, name)

    def _plain_value(self, position: int, number: float) -> Any:
        """Return the original value of a number of the candidate at a position: the number, or a category."""
        known = self._categories.values.get(int(self.candidates_[position]))
        return number if known is None else known[int(number)]

    # -- checks --------------------------------------------------------------------------------------------

    def _unavailable(self, columns: Any, n_rows: int, parameter: str = "unavailable") -> Mask | None:
        """Return which candidates are among columns or cells, shape (n_rows, K), or None if none is."""
        if columns is None:
            return None
        if np.ndim(columns) == 2:
            mask = np.asarray(columns)
            if mask.shape != (n_rows, self.n_features_in_) or mask.dtype != bool:
                raise ValueError(
                    f"{parameter} has shape {mask.shape} and type {mask.dtype}: pass columns, or a bool array of shape"
                    f" {(n_rows, self.n_features_in_)}."
                )
            return mask[:, self.candidates_]
        if isinstance(columns, str) or np.ndim(columns) != 1:
            raise ValueError(f"{parameter} must be a list of columns, got {short_repr(columns)}.")
        excluded = np.zeros(self.n_features_in_, dtype=bool)
        for column in columns:
            at = np.flatnonzero([name == column for name in self._column_names()])
            if not len(at) or isinstance(column, bool | np.bool_):
                raise ValueError(
                    f"{parameter} names {column!r}, which is not a column: pass names of columns."
                )
            excluded[at] = True
        barred = excluded[self.candidates_]
        return np.tile(barred, (n_rows, 1)) if barred.any() else None

    def _column_names(self) -> list[Any]:
        """Return the name of each column of the rows, or its number."""
        return list(getattr(self, "feature_names_in_", range(self.n_features_in_)))

    def _rows(self, X: Any, new_category: float = _NEW_CATEGORY) -> Rows:
        check_is_fitted(self)
        X, names = self._categories.encode(X, new_category)
        known = list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None
        if names is not None and known is not None and names != known:
            raise DataError(
                "The feature names should match those that were passed during fit, in the same order."
            )
        if X.shape[1] != self.n_features_in_:
            raise DataError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting"
                f" {self.n_features_in_} features as input."
            )
        reject_nonfinite(X, names, allow_nan=True)
        return X

    def _encode_labels(self, y: Array) -> Ints:
        """Return the codes of labels, all of which occurred in `fit`, or the levels of numbers."""
        if self._target is not None:
            return self._target.codes(y)
        codes, classes = encode_labels(y, self.classes_)
        if len(classes) > len(self.classes_):
            new = classes[len(self.classes_)]
            raise DataError(f"Label {new} was not seen in fit: fit again with rows of that class.")
        return codes

    @property
    def _unit_loss(self) -> float:
        """The loss of a squared error of one variance of a numeric target; 1 for classes."""
        return 1.0 if self._target is None else self._target.error_cost

    def _misclassification(self) -> Floats:
        n = len(self.classes_)
        if self._target is not None:
            return self._target.distances()
        if self.misclassification_cost is None:
            return 1.0 - np.eye(n)
        Q = np.array(as_numbers("misclassification_cost", self.misclassification_cost))
        if Q.shape != (n, n):
            raise ValueError(
                f"misclassification_cost has shape {Q.shape}: give one row and one column for each of {n} classes."
            )
        if (wrong := np.argwhere(~(np.isfinite(Q) & (Q >= 0.0)))).size:
            i, j = wrong[0]
            raise ValueError(
                f"misclassification_cost has {Q[i, j]:g} at [{i}, {j}], for predicting {self.classes_[j]} when the"
                f" class is {self.classes_[i]},"
                " which is negative or not finite: give numbers of 0 or more."
            )
        if (np.diag(Q)[:, None] > Q).any():
            worst = int(np.argmax((np.diag(Q)[:, None] > Q).any(axis=1)))
            raise ValueError(
                f"misclassification_cost makes it more expensive to predict class {self.classes_[worst]} correctly than"
                " as another class: the diagonal must be the smallest of each row."
            )
        return Q

    def _costs(self) -> Floats:
        """Return the cost of each feature if acquired first."""
        tariff = self._whole_tariff()
        if not tariff.varies:
            return tariff.own
        nothing = np.zeros((1, self.n_features_in_), dtype=bool)
        return tariff.following(nothing)[0]

    def _whole_tariff(self) -> Tariff:
        """Return the tariff of all features."""
        names = self._column_names()
        check_groups(self.groups, names)
        return tariff_of(
            self.cost if isinstance(self.cost, PriceList) else None, self._own_costs(), self.groups, names
        )

    def _own_costs(self) -> Floats:
        """Return the cost of each feature without fees."""
        return own_costs(self.cost, self._column_names(), is_named=hasattr(self, "feature_names_in_"))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        if self._is_regression:
            tags.estimator_type = "regressor"
            tags.classifier_tags = None
            tags.regressor_tags = RegressorTags()
        return tags


def _ranges_of(X: Rows, columns: Ints, sizes: Ints) -> Floats:
    """Return the smallest and the largest value of columns, NaN for a category, and where there is none."""
    if sp.issparse(X):
        part = X[:, columns]
        low, high = (one.toarray().ravel() for one in (part.nanmin(axis=0), part.nanmax(axis=0)))
    else:
        low, high = np.fmin.reduce(X, axis=0)[columns], np.fmax.reduce(X, axis=0)[columns]
    is_number = sizes[columns] == 0
    # In C order, as it is after loading.
    return np.ascontiguousarray(np.where(is_number, (low, high), np.nan).T, dtype=np.float64)


def missingness_text(model: CellClassifier) -> str:
    """Return a sentence on how the class of a fitted model depends on which values were recorded."""
    found = model.missingness_
    assert found is not None
    rates = found.recorded[0]
    if model._is_regression:
        among = f"{rates.min():.0%} to {rates.max():.0%} of the rows, depending on the target"
    else:
        high, low = (model.classes_[at] for at in (rates.argmax(), rates.argmin()))
        among = f"{rates.max():.0%} of the rows of class {high} and {rates.min():.0%} of those of {low}"
    column = model._column_names()[found.columns[0]]
    return (
        f"Which values were recorded indicates the class, with an AUC of {found.auc:.2f}: {column} was recorded for"
        f" {among}."
    )


NOT_EVIDENCE = (
    "This is not used as evidence; pass missingness='informative' if values are recorded for the same reason where the"
    " model is used."
)


def _joint_ranges(some: Floats, more: Floats) -> Floats:
    """Return the ranges of both."""
    return np.stack([np.fmin(some[:, 0], more[:, 0]), np.fmax(some[:, 1], more[:, 1])], axis=1)


def _error_cost(cost: Any) -> float:
    """Return the cost of a squared error of one variance of a numeric target."""
    if np.ndim(cost):
        raise ValueError(
            f"misclassification_cost has shape {np.shape(cost)}: with objective='squared-error' give one number, the"
            " cost of a squared error of one variance."
        )
    return 1.0 if cost is None else float(cost)


def _effective(n: int, fading: float) -> float:
    """Return the sum of the weights of n rows."""
    return float(n) if fading == 1.0 else (1.0 - fading**n) / (1.0 - fading)


def _copies(sample_weight: Any, n_rows: int) -> Ints | None:
    """Return the rows to learn from, each as often as it counts; None for all rows once."""
    weight = as_weights(sample_weight, n_rows, some=True)
    return None if weight is None else repeated_rows(weight)
