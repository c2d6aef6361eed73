"""The estimator under test: fresh copies, data, comparisons; a class each for rows, columns and cells."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn
from unittest import SkipTest

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from tamis._validation import Array, Floats
from tamis.base import Claims, ColumnSelector, RowSelector
from tamis.base.trace import RECORD

NAMES = ["red", "größe", "x 2", "blue", "speed", "T"]  # of the columns of a frame
_TRACE_NUMBERS = ("statistic", "log_p", "threshold", "wealth")


@dataclass(frozen=True)
class Subject(ABC):
    """The estimator under test.

    Attributes
    ----------
    prototype : estimator
        Never fitted; every check uses copies of it.
    """

    prototype: Any

    # Each raises NotFittedError before fitting.
    reads: ClassVar[Mapping[str, Callable[[Any, Array], Any]]]
    # Relative tolerance for results on the same numbers in another memory order.
    order_tolerance: ClassVar[float] = 0.0
    n_small: ClassVar[int] = 3  # small data sets that the checks of the same rows use

    def new(self, **parameters: Any) -> Any:
        """Return an unfitted copy, with a fixed seed if it has one."""
        model = clone(self.prototype).set_params(**parameters)
        return model.set_params(random_state=0) if "random_state" in model.get_params() else model

    def learned(self, n_batches: int = 1, **parameters: Any) -> Any:
        """Return a copy that was fitted to the data of the seeds 0 to n_batches - 1."""
        model = self.learn(self.new(**parameters), *self.data())
        for seed in range(1, n_batches):
            self.learn_on(model, *self.data(seed))
        return model

    def is_fitted(self, model: Any) -> bool:
        """Return whether read-outs are available."""
        try:
            next(iter(self.reads.values()))(model, self.data()[0])
        except NotFittedError:
            return False
        return True

    @property
    def accepts_sparse(self) -> bool:
        """Whether CSR input is supported."""
        return True

    @abstractmethod
    def data(self, seed: int = 0) -> tuple[Floats, Array]:
        """Return X and y; X has multiples of 1/8, which float32 represents exactly, and zeros."""

    def small(self, seed: int) -> tuple[Floats, Array]:
        """Return few rows with ties, a constant column and a rare class, and missing values where they are allowed."""
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 4, (60, 6)).astype(np.float64), rng.integers(0, 8, 60)
        X[:, 3], X[:, 0] = 2.0, np.where(y > 3, X[:, 0] + 2.0, X[:, 0])
        if self.allows_nan:
            X[rng.random(X.shape) < 0.1] = np.nan
        return X, self.target(y)

    def target(self, y: Array) -> Array:
        """Return a target that this estimator supports, made of eight classes."""
        return (y > 5).astype(np.int64)

    @property
    def part_tolerance(self) -> float:
        """Relative tolerance for results on the same data in parts."""
        return self.order_tolerance

    @property
    def allows_nan(self) -> bool:
        """Whether rows may have missing values."""
        return bool(get_tags(self.prototype).input_tags.allow_nan)

    @property
    def copies_differ(self) -> str:
        """How a row of weight w differs from w copies of it; empty if it does not."""
        return str(getattr(self.prototype, "claims", Claims()).copies_differ)

    def compare_results(self, one: Any, other: Any, what: str, *, tolerance: float = 0.0) -> None:
        """Fail unless two models agree in all that does not depend on how the same rows were passed."""
        self.compare(one, other, what, tolerance=tolerance)

    def in_parts(self, X: Any, y: Any) -> Any:
        """Return a copy that learned the data in parts; None if that is another method."""
        return None

    @abstractmethod
    def learn(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the first data; return the model."""

    @abstractmethod
    def learn_on(self, model: Any, X: Any, y: Any) -> None:
        """Learn more, where the method can."""

    @abstractmethod
    def compare(self, one: Any, other: Any, what: str, *, tolerance: float = 0.0) -> None:
        """Fail unless two models agree in all attributes; `what` describes how their histories differ.

        A `tolerance` of 0 requires the same bits; else it is the largest relative difference.
        """


def _eighths(rng: np.random.Generator, X: Array, share_of_zeros: float) -> Floats:
    X = np.round(np.clip(X, -4.0, 4.0) * 8.0) / 8.0
    X[rng.random(size=X.shape) < share_of_zeros] = 0.0
    return X


@dataclass(frozen=True)
class RowSubject(Subject):
    """A row selector, and its guarantees beyond the contract.

    Attributes
    ----------
    per_batch : bool
        Batches may differ from the same rows one at a time.
    multiclass : bool
        More than two classes are supported.
    rounding : bool
        A batch agrees with its rows one at a time only up to rounding.
    """

    prototype: RowSelector
    per_batch: bool = False
    multiclass: bool = True
    rounding: bool = False

    reads: ClassVar = {
        "scores_": lambda model, X: model.scores_,
        "get_support()": lambda model, X: model.get_support(),
        "transform(X)": lambda model, X: model.transform(X),
    }

    @property
    def regression(self) -> bool:
        """Whether the target is numeric."""
        return self.prototype._is_regression()

    def skip_without_labels(self) -> None:
        """Skip a check of labels if the method ignores them."""
        if not self.prototype.accepts.labels:
            skip("the method ignores labels")

    def skip_without_classes(self) -> None:
        """Skip a check of classes if the target is a number, or is ignored."""
        if self.regression:
            skip("a regression has no classes")
        self.skip_without_labels()

    @property
    def chooses_count(self) -> bool:
        """Whether the method determines the number of features itself."""
        return self.prototype._chooses_count

    @property
    def tags(self) -> Any:
        """The scikit-learn input tags of the selector."""
        return get_tags(self.prototype).input_tags

    @property
    def accepts_sparse(self) -> bool:
        """Whether CSR rows are supported."""
        return bool(self.tags.sparse)

    def new(self, **parameters: Any) -> Any:
        """Return an unfitted copy with a fixed seed; it selects two features unless it determines the number itself."""
        if self.chooses_count:
            parameters.pop("n_features_to_select", None)
            return super().new(**parameters)
        return super().new(**{"n_features_to_select": 2, **parameters})

    def data(
        self, seed: int = 0, n_rows: int = 90, n_features: int = 6, relevant: tuple[int, int] = (1, 4)
    ) -> tuple[Floats, Array]:
        """Return rows whose target depends on two features; about a third of the values are zero."""
        rng = np.random.default_rng(seed)
        X = _eighths(rng, rng.normal(size=(n_rows, n_features)), 0.3)
        if self.tags.positive_only:
            X = np.abs(X)
        a, b = (column % n_features for column in relevant)
        signal = X[:, a] - X[:, b] if a != b else X[:, a]
        signal = signal + 0.1 * rng.normal(size=n_rows)
        return X, signal if self.regression else (signal > np.median(signal)).astype(np.int64)

    def learn(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the first data; return the model."""
        return model.partial_fit(X, y, sample_weight=sample_weight)

    @property
    def part_tolerance(self) -> float:
        """Relative tolerance for results on the same data in parts."""
        return 1e-9 if self.rounding else 0.0

    def in_parts(self, X: Any, y: Any) -> Any:
        """Return a copy that learned the data in parts; None if that is another method."""
        if self.per_batch:
            return None
        model = self.new()
        for start in range(0, len(y), 7):
            model.partial_fit(X[start : start + 7], y[start : start + 7])
        return model

    def target(self, y: Array) -> Array:
        """Return a target that this estimator supports, made of eight classes."""
        if self.regression:
            return y.astype(np.float64)
        return np.maximum(y - 3, 0) if self.multiclass else super().target(y)

    @property
    def copies_differ(self) -> str:
        """How a row of weight w differs from w copies of it; empty if it does not."""
        if self.regression and self.prototype.accepts.levels:
            return "the levels of a numeric target are cut by rows"
        return super().copies_differ

    def compare_results(self, one: Any, other: Any, what: str, *, tolerance: float = 0.0) -> None:
        """Fail unless two models agree in all that does not depend on how the same rows were passed."""
        compare_scores(one, other, what, tolerance=tolerance)
        left, right = (np.asarray(getattr(selector, "pvalues_", 0.0)) for selector in (one, other))
        if not np.allclose(left, right, rtol=1e-9 + tolerance, atol=1e-12):
            fail(f"{what}: pvalues_ is {left} and {right}.")

    def learn_on(self, model: Any, X: Any, y: Any) -> None:
        """Learn more, where the method can."""
        model.partial_fit(X, y)

    def compare(self, one: Any, other: Any, what: str, *, tolerance: float = 0.0) -> None:
        """Fail unless two models agree in all that can be read out."""
        _compare_attributes(one, other, what, ("n_features_in_", "n_seen_", "warming_up_"))
        compare_scores(one, other, what, tolerance=tolerance)
        for name in ("classes_", "feature_names_in_"):
            left, right = (getattr(selector, name, np.array([])).tolist() for selector in (one, other))
            if left != right:
                fail(f"{what}: {name} is {left!r} and {right!r}.")


@dataclass(frozen=True)
class ColumnSubject(Subject):
    """A column selector, and its guarantees beyond the contract.

    Attributes
    ----------
    per_batch : bool
        A block may differ from its features one at a time.
    """

    prototype: ColumnSelector
    per_batch: bool = False

    order_tolerance = 1e-6
    reads: ClassVar = {
        "selected_": lambda model, X: model.selected_,
        "offer": lambda model, X: model.offer(X[:, 0]),
        "offer_many": lambda model, X: model.offer_many(X),
        "trace_": lambda model, X: model.trace_,
        "get_support()": lambda model, X: model.get_support(),
        "transform": lambda model, X: model.transform(X),
        "offer_stream": lambda model, X: model.offer_stream([]),
    }

    def data(
        self, seed: int = 0, n_features: int = 7, relevant: tuple[int, int] = (2, 5)
    ) -> tuple[Floats, Array]:
        """Return features of 120 rows, and a target that depends on two; about a third of the values are zero."""
        rng = np.random.default_rng(seed)
        X = _eighths(rng, rng.normal(size=(120, n_features)), 0.3)
        signal = X[:, relevant[0]] - X[:, relevant[1]] + 0.5 * rng.normal(size=120)
        if not self.prototype._is_regression():
            return X, (signal > 0).astype(np.int64)
        if self.prototype.get_params().get("model") != "poisson":
            return X, signal
        return X, np.random.default_rng(seed).poisson(np.exp(np.clip(signal, -3, 3))).astype(np.float64)

    def learn(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the first data; return the model."""
        model.start(y, sample_weight=sample_weight).offer_many(X)
        return model

    def in_parts(self, X: Any, y: Any) -> Any:
        """Return a copy that was offered the columns in parts; None if that is another method."""
        if self.per_batch:
            return None
        model = self.new().start(y)
        for start in range(0, X.shape[1], 2):
            model.offer_many(X[:, start : start + 2])
        return model

    def target(self, y: Array) -> Array:
        """Return a target that this estimator supports, made of eight classes."""
        if not self.prototype._is_regression():
            return super().target(y)
        counts = self.prototype.get_params().get("model") == "poisson"
        return y.astype(np.float64) if counts else y + np.random.default_rng(0).normal(size=len(y))

    def learn_on(self, model: Any, X: Any, y: Any) -> None:
        """Learn more, where the method can."""
        model.offer_many(X)

    def compare(self, one: Any, other: Any, what: str, *, tolerance: float = 0.0) -> None:
        """Fail unless two models agree in all that can be read out."""
        _compare_attributes(one, other, what, ("selected_",))
        left, right = one.trace_["name"].tolist(), other.trace_["name"].tolist()
        if left != right:
            fail(f"{what}: the trace's name is {left} and {right}.")
        self.compare_results(one, other, what, tolerance=tolerance)

    def compare_results(self, one: Any, other: Any, what: str, *, tolerance: float = 0.0) -> None:
        """Fail unless two models agree in all that does not depend on how the same columns were passed."""
        _compare_attributes(one, other, what, ("n_offered_", "stopped_", "n_features_in_"))
        left, right = one.trace_, other.trace_
        if left.dtype != RECORD or right.dtype != RECORD or len(left) != len(right):
            fail(f"{what}: trace_ has {len(left)} and {len(right)} records of dtype {left.dtype}.")
        for name in ("offer", "decision", "n_missing"):
            if left[name].tolist() != right[name].tolist():
                fail(f"{what}: the trace's {name} is {left[name].tolist()} and {right[name].tolist()}.")
        for name in _TRACE_NUMBERS:
            close = np.isclose(left[name], right[name], rtol=tolerance, atol=tolerance, equal_nan=True)
            if not close.all():
                at = int(np.argmin(close))
                fail(f"{what}: {name} of offer {at} is {left[name][at]:.17g} and {right[name][at]:.17g}.")


@dataclass(frozen=True)
class CellSubject(Subject):
    """A classifier that acquires the values of a row one by one."""

    order_tolerance = 1e-9
    n_small = 1
    reads: ClassVar = {
        "predict": lambda model, X: model.predict(X),
        "acquire": lambda model, X: model.acquire(X),
        "open": lambda model, X: model.open(),
    }

    def data(self, seed: int = 0, n_rows: int = 240) -> tuple[Floats, Array]:
        """Return rows of six columns, of which four separate the two classes; a tenth of the values are zero."""
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, n_rows)
        X = rng.normal(size=(n_rows, 6))
        X[:, :4] += np.array([1.4, 1.2, 1.0, 0.8]) * y[:, None]
        return _eighths(rng, X, 0.1), y

    def learn(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the first data; return the model."""
        return model.fit(X, y, sample_weight=sample_weight)

    def learn_on(self, model: Any, X: Any, y: Any) -> None:
        """Learn more, where the method can."""
        if hasattr(model, "partial_fit"):
            model.partial_fit(X, y)

    def compare(self, one: Any, other: Any, what: str, *, tolerance: float = 0.0) -> None:
        """Fail unless two models agree in all that can be read out."""
        X = self.data()[0]
        self.compare_on(one, other, X, X, what, tolerance=tolerance)

    def compare_on(
        self, one: Any, other: Any, X: Any, X_other: Any, what: str, *, tolerance: float = 0.0
    ) -> None:
        """Fail unless two models acquire the same values of rows and have equal posteriors."""
        left = one.predict_proba(X)
        used, cost = one.n_features_used_, one.cost_
        right = other.predict_proba(X_other)
        if used.tolist() != other.n_features_used_.tolist() or not np.allclose(cost, other.cost_):
            fail(f"{what}: {used.sum()} and {other.n_features_used_.sum()} values are acquired.")
        if not np.allclose(left, right, rtol=tolerance, atol=tolerance):
            fail(f"{what}: the posteriors differ by up to {np.abs(left - right).max():.3g}.")


def fail(message: str) -> NoReturn:
    """Raise the error of a failed check."""
    raise AssertionError(message)


def skip(reason: str) -> NoReturn:
    """Report that a check does not apply, and why; pytest and unittest report it as skipped."""
    raise SkipTest(reason)


def _compare_attributes(one: Any, other: Any, what: str, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(one, name) != getattr(other, name):
            fail(f"{what}: {name} is {getattr(one, name)!r} and {getattr(other, name)!r}.")


def compare_scores(one: Any, other: Any, what: str, *, tolerance: float = 0.0) -> None:
    """Fail unless two selectors give the same scores; see `Subject.compare`."""
    left, right = np.asarray(one.scores_), np.asarray(other.scores_)
    if left.shape != right.shape:
        fail(f"{what}: scores_ has shape {left.shape} and {right.shape}.")
    bound = tolerance * max(float(np.abs(right).max(initial=0.0)), 1e-300)
    differs = ~(np.abs(left - right) <= bound)
    if differs.any():
        column = int(np.argmax(differs))
        fail(
            f"{what}: scores_ differs in {np.count_nonzero(differs)} of {len(left)} columns, first in column"
            f" {column}: {left[column]:.17g} and {right[column]:.17g}."
        )


def rejects(act: Callable[[], Any], what: str, *words: str) -> None:
    """Fail unless `act` raises a one-line ValueError or TypeError that contains each of the words."""
    try:
        act()
    except (ValueError, TypeError) as error:
        message = str(error)
        missing = [word for word in words if word not in message]
        if missing:
            fail(f"{what} is rejected, but the message does not contain {', '.join(missing)}: {message}")
        if "\n" in message:
            fail(f"{what} is rejected in more than one line: {message}")
    else:
        fail(f"{what} is accepted, but must be rejected.")


def table(library: str, X: Array, names: list[str]) -> Any:
    """Return the rows as a frame of a library; skips if it is not installed."""
    try:
        module: Any = importlib.import_module(library)
    except ImportError:
        skip(f"{library} is not installed")
    if library == "pandas":
        return module.DataFrame(X, columns=names)
    if library == "polars":
        return module.DataFrame(X, schema=names)
    return module.table({name: X[:, j] for j, name in enumerate(names)})
