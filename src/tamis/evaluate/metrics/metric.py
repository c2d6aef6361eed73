"""The protocol of a metric, with weights: over all rows, over a sliding window, or with exponential fading.

A metric is an object with the methods of River's: `update(y_true, y_pred, w)` for a row or a batch, `get()`,
`bigger_is_better` and `works_with(model)`. :class:`Sliding` and :class:`Fading` make it a metric of recent rows.
:func:`wrap_metric` accepts names, River's metrics, and scikit-learn's functions and scorers too.

A metric *decomposes* if its value follows from weighted sums over the rows. Any other (a rank statistic, a function of
scikit-learn's) is computed on the last `window` rows.
"""

from __future__ import annotations

import copy
import difflib
import inspect
import math
import re
import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_regressor

from tamis._guard import ThreadSafe
from tamis._validation.arrays import Array, Floats, as_numbers
from tamis._validation.labels import as_column, as_target, encode_labels
from tamis._validation.values import check_number, short_repr
from tamis.errors import UnknownNameError
from tamis.options import read_value

_LARGEST = 512  # exponent of a fading weight, beyond which all sums are scaled


class Metric(ThreadSafe):
    """Base class of the metrics.

    Attributes
    ----------
    bigger_is_better : bool
    takes : {"labels", "probabilities", "numbers"}
        What `y_pred` contains.
    decomposes : bool
        Whether the value follows from sums over the rows.
    classes : ndarray
        The labels so far; empty if numbers are predicted.
    """

    bigger_is_better = True
    takes = "labels"
    decomposes = True
    classes: Array

    def __init__(self) -> None:
        self.classes = np.zeros(0, np.int64)

    @property
    def name(self) -> str:
        """The name by which `prequential` and the command line know the metric."""
        values = self._arguments()
        arguments = ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in values)
        return _snake_case(type(self).__name__) + (f"({arguments})" if arguments else "")

    def _arguments(self) -> list[Any]:
        """Return the arguments that differ from their defaults."""
        parameters = inspect.signature(type(self)).parameters.values()
        return [value for p in parameters if (value := getattr(self, p.name)) != p.default]

    def update(self, y_true: Any, y_pred: Any, w: Any = 1.0, *, labels: Any = None) -> None:
        """Count a row, or a batch.

        Parameters
        ----------
        y_true : label or number, or array-like of shape (n_rows,)
        y_pred : label or number, or array-like of shape (n_rows,) or (n_rows, n_classes)
            Labels, numbers, or probabilities with a column for each of `labels`; for two classes also those of the
            second alone. The probabilities of a row may be a dict, as in River.
        w : float or array-like of shape (n_rows,), default=1.0
            Weight of each row, at least 0.
        labels : array-like of shape (n_classes,), optional
            The label of each column of probabilities; by default 0, 1, ...

        Raises
        ------
        ValueError
            If the arrays do not have one valid value for each row. Nothing is then counted.
        """
        self._count(*self._encode(y_true, y_pred, w, labels))

    def get(self) -> float:
        """Return the value over the rows so far; NaN where it is not defined."""
        raise NotImplementedError

    def works_with(self, model: Any) -> bool:
        """Return whether the predictions of a model, of scikit-learn's or River's kind, can be evaluated."""
        if self.takes == "numbers" or predicts_numbers(model):
            return self.takes == "numbers" and predicts_numbers(model)
        return self.takes == "labels" or any(
            hasattr(model, name) for name in ("predict_proba", "predict_proba_one")
        )

    def _unused(self) -> Self:
        """Return a metric with the same parameters and labels that has counted no rows."""
        fresh = type(self)(*(getattr(self, name) for name in inspect.signature(type(self)).parameters))
        fresh.classes, fresh.takes = self.classes, self.takes
        return fresh

    def _count(self, actual: Floats, predicted: Floats, weights: Floats) -> None:
        """Count rows of codes (or numbers), and of codes, probabilities by code, or numbers, shape (n_rows, k)."""
        raise NotImplementedError

    def _scale(self, factor: float) -> None:
        """Multiply the weights of all rows so far."""
        raise NotImplementedError

    def _encode(self, y_true: Any, y_pred: Any, w: Any, labels: Any) -> tuple[Floats, Floats, Floats]:
        """Return validated rows as numbers, and remember their labels."""
        if np.ndim(y_true) == 0:
            y_true, y_pred = _one(y_true), [y_pred] if isinstance(y_pred, dict) else _one(y_pred)
        y = as_column(y_true, len(y_true), "y_true")
        weights = np.broadcast_to(as_numbers("w", w), y.shape) if np.ndim(w) == 0 else as_numbers("w", w)
        if weights.shape != y.shape or not (np.isfinite(weights) & (weights >= 0.0)).all():
            raise ValueError(
                f"w must be a finite weight of at least 0 for each of {len(y)} rows, got {short_repr(w)}."
            )
        if self.takes == "numbers":
            return as_target(y), as_target(as_column(y_pred, len(y), "y_pred"))[:, None], weights
        if self.takes == "labels":
            found, labels = as_column(y_pred, len(y), "y_pred"), None
            classes = encode_labels(found, encode_labels(y, self.classes)[1])[1]
            predicted = encode_labels(found, classes)[0][:, None].astype(np.float64)
        else:
            found, labels = _probabilities(y_pred, labels)
            classes = encode_labels(y, encode_labels(labels, self.classes)[1])[1]
            if found.shape != (len(y), len(labels)) or not ((found >= 0.0) & (found <= 1.0)).all():
                raise ValueError(
                    f"y_pred must have a probability for each of {len(y)} rows and {len(labels)} labels,"
                    f" got {short_repr(y_pred)}."
                )
            predicted = np.zeros((len(y), len(classes)))
            predicted[:, encode_labels(labels, classes)[0]] = found
        self.classes = classes
        return encode_labels(y, classes)[0].astype(np.float64), predicted, weights

    def state(self) -> dict[str, Any]:
        """Return what the rows so far have changed, to be saved."""
        return {
            name: value.state() if isinstance(value, Metric) else value
            for name, value in vars(self).items()
            if name != "function"
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state of a metric with the same parameters."""
        for name, value in state.items():
            part = getattr(self, name)
            if isinstance(part, Metric):
                part.restore(value)
            else:
                setattr(self, name, value)

    def __repr__(self) -> str:
        return f"{self.name}: {self.get():.4g}"


class RowMetric(Metric):
    """A metric of the last rows, computed from all of them.

    Parameters
    ----------
    window : int
        Rows, at least 1.
    """

    decomposes = False
    _shapes = """
        window in [1, 2**62)  classes (*) labels  _actual (n) finite  _predicted (n, *) finite
        _weights (n) float in [0, inf)
    """

    def __init__(self, window: int) -> None:
        check_number("window", window, low=1, integer=True)
        super().__init__()
        self.window = int(window)
        self._actual, self._predicted, self._weights = np.zeros(0), np.zeros((0, 0)), np.zeros(0)

    def _count(self, actual: Floats, predicted: Floats, weights: Floats) -> None:
        before, width = self._predicted, predicted.shape[1]
        if before.shape[1] < width:  # earlier rows have no probability of a new class
            before = np.pad(before, ((0, 0), (0, width - before.shape[1])))
        self._actual = np.concatenate([self._actual, actual])[-self.window :]
        self._predicted = np.concatenate([before, predicted])[-self.window :]
        self._weights = np.concatenate([self._weights, weights])[-self.window :]

    def get(self) -> float:
        """Return the value over the last `window` rows; NaN where it is not defined."""
        if not self._weights.any():
            return math.nan
        return self._measure(self._actual, self._predicted, self._weights)

    def _measure(self, actual: Floats, predicted: Floats, weights: Floats) -> float:
        raise NotImplementedError


class _Wrapper(Metric):
    """A metric that counts the rows of another one in a different way."""

    metric: Metric

    def _encode(self, y_true: Any, y_pred: Any, w: Any, labels: Any) -> tuple[Floats, Floats, Floats]:
        return self.metric._encode(y_true, y_pred, w, labels)

    def works_with(self, model: Any) -> bool:
        """As for the metric."""
        return self.metric.works_with(model)

    def _wrap(self, metric: Any, window: int) -> None:
        self.metric = wrap_metric(metric, window)
        self.bigger_is_better, self.takes = self.metric.bigger_is_better, self.metric.takes

    def _arguments(self) -> list[Any]:
        *_, size = inspect.signature(type(self)).parameters
        return [self.metric.name, getattr(self, size)]


class Sliding(_Wrapper, RowMetric):
    """A metric over the last rows.

    Parameters
    ----------
    metric : Metric, str, metric of River, function or scorer of scikit-learn
    size : int, default=1000
        Number of rows, at least 1. They are kept, and counted when the value is read.

    Examples
    --------
    >>> from tamis.evaluate import Accuracy
    >>> recent = Sliding(Accuracy(), size=2)
    >>> recent.update(["a", "a", "b"], ["b", "a", "b"])
    >>> recent.get()
    1.0
    """

    def __init__(self, metric: Any, size: int = 1000) -> None:
        check_number("size", size, low=1, integer=True)
        super().__init__(size)
        self.size = int(size)
        self._wrap(metric, self.size)

    def _measure(self, actual: Floats, predicted: Floats, weights: Floats) -> float:
        fresh = self.metric._unused()
        fresh._count(actual, predicted, weights)
        return fresh.get()


class Fading(_Wrapper):
    """A metric in which the weight of a row is halved every `half_life` rows.

    Parameters
    ----------
    metric : Metric or str
        A metric that decomposes.
    half_life : float, default=1000
        Number of rows, above 0.

    Examples
    --------
    >>> from tamis.evaluate import Accuracy
    >>> recent = Fading(Accuracy(), half_life=1)
    >>> recent.update([0, 0, 1], [1, 0, 1])
    >>> round(recent.get(), 3)  # weights 1/4, 1/2, 1
    0.857
    """

    _shapes = "half_life float in (0, inf)  _exponent float in [0, inf)  classes (*) labels"

    def __init__(self, metric: Any, half_life: float = 1000) -> None:
        check_number("half_life", half_life, low=0, open_low=True)
        super().__init__()
        self.half_life, self._exponent = float(half_life), 0.0
        self._wrap(metric, 1)
        if not self.metric.decomposes or isinstance(self.metric, RiverMetric):
            raise ValueError(
                f"metric must be a weighted sum over rows to be faded, got {self.metric.name}: choose Sliding instead."
            )

    def _count(self, actual: Floats, predicted: Floats, weights: Floats) -> None:
        # Weights that increase are weights that fade, up to a factor. Powers of two are exact.
        step = max(1, int(_LARGEST * self.half_life))
        for at in range(0, len(actual), step):
            rows = slice(at, at + step)
            exponents = self._exponent + np.arange(1, len(actual[rows]) + 1) / self.half_life
            self.metric._count(actual[rows], predicted[rows], weights[rows] * 2.0**exponents)
            whole = math.floor(exponents[-1])
            self.metric._scale(2.0**-whole)
            self._exponent = float(exponents[-1]) - whole

    def get(self) -> float:
        """Return the value over the rows so far, with fading weights; NaN where it is not defined."""
        return self.metric.get()


class RiverMetric(Metric):
    """A metric of River.

    Parameters
    ----------
    function : metric of River
        It is updated row by row.
    """

    _shapes = "classes (*) labels"

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.bigger_is_better = bool(function.bigger_is_better)
        if not hasattr(function, "requires_labels"):
            self.takes = "numbers"
        elif not function.requires_labels:
            self.takes = "probabilities"

    @property
    def name(self) -> str:
        """The name of its class."""
        return type(self.function).__name__

    def _unused(self) -> RiverMetric:
        fresh = copy.copy(self)
        fresh.function = self.function.clone()
        return fresh

    def _count(self, actual: Floats, predicted: Floats, weights: Floats) -> None:
        labels, one = self.classes.tolist(), self.function
        for y, values, w in zip(actual.tolist(), predicted.tolist(), weights.tolist(), strict=True):
            if self.takes == "numbers":
                pair = y, values[0]
            elif self.takes == "labels":
                pair = labels[int(y)], labels[int(values[0])]
            else:
                pair = labels[int(y)], dict(zip(labels, values, strict=False))
            one.update(*pair, *(() if w == 1.0 else (w,)))

    def get(self) -> float:
        """Return its value."""
        return float(self.function.get())


class FunctionMetric(RowMetric):
    """A function or a scorer of scikit-learn, over the last rows.

    Parameters
    ----------
    function : callable
        ``f(y_true, y_pred)`` of labels or numbers, with `sample_weight` where rows have weights; or a scorer.
    window : int, default=1000
        Rows, at least 1.
    alias : str, optional
        Its name; by default that of the function.

    Notes
    -----
    A scorer of probabilities is NaN unless every label so far is among these rows.
    """

    def __init__(self, function: Any, window: int = 1000, alias: str = "") -> None:
        super().__init__(window)
        inside = getattr(function, "_score_func", function)
        sign = "neg_" if getattr(function, "_sign", 1) < 0 else ""
        self.alias = alias or sign + str(getattr(inside, "__name__", type(inside).__name__))
        arguments = list(inspect.signature(function).parameters)
        self.function, self._is_scorer = function, arguments[:1] == ["estimator"]
        if self._is_scorer:
            method = getattr(function, "_response_method", "predict")
            self.takes = "labels" if method == "predict" else "probabilities"
        elif (
            arguments[1:2] != ["y_pred"] and arguments[1:2] in (["y_score"], ["y_proba"])
        ) or "log_loss" in self.name:
            raise ValueError(
                f"{self.name} takes probabilities: pass the name of a scorer, as 'neg_log_loss'."
            )
        # scikit-learn's convention.
        self.bigger_is_better = self._is_scorer or not self.name.endswith(("_error", "_loss", "_deviance"))

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.alias

    def works_with(self, model: Any) -> bool:
        """Return whether the model predicts what the function takes."""
        return self.takes != "probabilities" or super().works_with(model)

    def _encode(self, y_true: Any, y_pred: Any, w: Any, labels: Any) -> tuple[Floats, Floats, Floats]:
        if self.takes != "probabilities":
            self.takes = "numbers" if np.asarray(y_true).dtype.kind == "f" else "labels"
        return super()._encode(y_true, y_pred, w, labels)

    def _measure(self, actual: Floats, predicted: Floats, weights: Floats) -> float:
        if self.takes == "probabilities" and len(np.unique(actual)) < len(self.classes):
            return math.nan
        if self.takes != "numbers":
            actual = self.classes[actual.astype(np.intp)]
        if self.takes == "labels":
            predicted = self.classes[predicted.astype(np.intp)]
        if self.takes == "probabilities":
            order = np.argsort(self.classes)
            model: Any = _Probabilities(predicted[:, order], self.classes[order])
        elif self._is_scorer:
            model = (_Numbers if self.takes == "numbers" else _Labels)(predicted[:, 0])
        arguments = (model, predicted, actual) if self._is_scorer else (actual, predicted[:, 0])
        weighted = {} if (weights == 1.0).all() else {"sample_weight": weights}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a value that is not defined
            try:
                return float(self.function(*arguments, **weighted))
            except ValueError as error:
                raise ValueError(f"The metric {self.name} rejects the last rows: {error}") from error


class _Labels(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predictions made earlier, as the estimator that a scorer asks."""

    def __init__(self, predicted: Any) -> None:
        self.predicted, self.classes_ = predicted, np.unique(predicted)

    def predict(self, X: Any) -> Any:
        """Return them."""
        return self.predicted


class _Probabilities(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Probabilities predicted earlier."""

    def __init__(self, predicted: Any, classes: Any) -> None:
        self.predicted, self.classes_ = predicted, classes

    def predict_proba(self, X: Any) -> Any:
        """Return them."""
        return self.predicted


class _Numbers(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Floats predicted earlier."""

    def __init__(self, predicted: Any) -> None:
        self.predicted = predicted

    def predict(self, X: Any) -> Any:
        """Return them."""
        return self.predicted


def wrap_metric(metric: Any, window: int) -> Metric:
    """Return a metric of Tamis for a name, or for one of River or scikit-learn.

    Raises
    ------
    UnknownNameError
        If the name is unknown.
    ValueError
        If it is something else.

    Examples
    --------
    >>> wrap_metric("pinball_loss(0.9)", 1000).name, wrap_metric("f1_macro", 1000).name
    ('pinball_loss(0.9)', 'f1_macro')
    """
    if isinstance(metric, Metric):
        return copy.deepcopy(metric)
    if isinstance(metric, str):
        return _find_metric(metric, window)
    if hasattr(metric, "update") and hasattr(metric, "get"):
        return RiverMetric(copy.deepcopy(metric))
    if callable(metric) and not isinstance(metric, type):
        return FunctionMetric(metric, window)
    raise ValueError(
        "metrics must be names, metrics with update and get, or functions of y_true and y_pred,"
        f" got {short_repr(metric)}."
    )


def _find_metric(text: str, window: int) -> Metric:
    from sklearn.metrics import get_scorer, get_scorer_names

    internal = (RowMetric, RiverMetric, FunctionMetric)
    kinds = [kind for kind in _subclasses(Metric) if kind not in internal and kind.__name__[0] != "_"]
    known = {_snake_case(kind.__name__): kind for kind in kinds}
    parts = re.fullmatch(r"(\w+)(?:\((.*)\))?", text)
    name, arguments = parts.groups() if parts else (text, None)
    if name in known:
        values = [read_value(part) for part in _split(arguments or "")]
        try:
            return known[name](*values)
        except TypeError:
            expected = ", ".join(inspect.signature(known[name]).parameters) or "none"
            raise ValueError(
                f"metrics contains {text!r}; the parameters of {name} are: {expected}."
            ) from None
    if name in get_scorer_names() and arguments is None:
        return FunctionMetric(get_scorer(name), window, name)
    near = difflib.get_close_matches(name, [*known, *get_scorer_names()], n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"choose one of {', '.join(known)}."
    raise UnknownNameError(f"No metric is named {text!r}; {hint}")


def _subclasses(kind: type[Metric]) -> Iterator[type[Metric]]:
    for one in kind.__subclasses__():
        yield one
        yield from _subclasses(one)


def _split(arguments: str) -> list[str]:
    """Return the arguments in a name; an argument may be a name with arguments."""
    return [part.strip() for part in re.findall(r"[^,(]+(?:\([^)]*\))?", arguments)]


class Tracked:
    """A metric over the rows of a run and over the last `window`.

    A metric that does not decompose has no value over all rows: the mean of its windowed value over the rows is taken.
    """

    def __init__(self, metric: Any, window: int) -> None:
        self.metric = wrap_metric(metric, window)
        self.recent = self.metric if not self.metric.decomposes else Sliding(self.metric, window)
        self.name = metric if isinstance(metric, str) else self.metric.name
        self.windowed, self._sums = math.nan, np.zeros(2)

    @property
    def is_of_river(self) -> bool:
        """Whether it is a metric of River."""
        inside = self.metric
        while isinstance(inside, _Wrapper):
            inside = inside.metric
        return isinstance(inside, RiverMetric)

    def update(self, y_true: Array, y_pred: Array, labels: Array | None) -> None:
        """Count a batch."""
        for metric in {id(one): one for one in (self.metric, self.recent)}.values():
            metric.update(y_true, y_pred, labels=labels)
        self.windowed = self.recent.get()
        if math.isfinite(self.windowed):
            self._sums = self._sums + len(y_true) * np.array([self.windowed, 1.0])

    @property
    def values(self) -> tuple[float, float]:
        """The value over the run, and over the last rows."""
        if self.metric.decomposes:
            return self.metric.get(), self.windowed
        return (self._sums[0] / self._sums[1] if self._sums[1] else math.nan), self.windowed

    def state(self) -> dict[str, Any]:
        """Return the state to be saved."""
        return {"metric": self.metric.state(), "recent": self.recent.state(), "sums": self._sums}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.metric.restore(state["metric"])
        self.recent.restore(state["recent"])
        self._sums = state["sums"]


def predicts_numbers(model: Any) -> bool:
    """Return whether a model of scikit-learn's or River's kind is a regressor."""
    if hasattr(model, "learn_one"):
        return not hasattr(model, "predict_proba_one")
    return hasattr(model, "get_params") and bool(is_regressor(model))


def _one(value: Any) -> Array:
    values = np.empty(1, dtype=object)
    values[0] = value
    return np.array(values.tolist())


def _probabilities(y_pred: Any, labels: Any) -> tuple[Floats, Array]:
    """Return probabilities, shape (n_rows, n_classes), and the label of each column."""
    if isinstance(y_pred, list) and y_pred and isinstance(y_pred[0], dict):
        labels = list(dict.fromkeys(label for row in y_pred for label in row)) if labels is None else labels
        y_pred = [[row.get(label, 0.0) for label in labels] for row in y_pred]
    found = as_numbers("y_pred", y_pred)
    if found.ndim == 1:
        found = np.column_stack([1.0 - found, found])
    columns = np.arange(found.shape[-1]) if labels is None else labels
    return found, as_column(columns, len(columns), "labels")


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
