"""Monitoring of a live model: the features it relies on, the features that are relevant, and their divergence.

*Relevance* is the dependence of the label on a feature in recent rows, measured by a selector. *Reliance* is the
dependence of the predictions on the feature: with the model, the mean squared change of its predictions when the
feature is replaced (:class:`~tamis.importance.pfi.IncrementalPFI` with ``loss="change"``); from logs, the mutual
information of the feature and the logged prediction. Reliance requires no labels, so it is unchanged when a feature
ceases to be relevant.

A feature is relevant (or, from logs, used) if its p-value is below 0.001 / n_features. With a model, it is used if its
importance is positive. In either case, its value must be at least 1/20 of the largest one.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tamis._atomic import atomically
from tamis._guard import ThreadSafe
from tamis._shapes import state_error
from tamis._validation.arrays import Array, Floats, Ints, Mask, as_array, columns_of, reject_masked
from tamis._validation.labels import as_classes, as_column, encode_labels, reject_missing
from tamis._validation.rows import has_rows, reject_nonfinite
from tamis._validation.values import as_list, check_choice, check_number, short_repr
from tamis.base.rows import check_columns
from tamis.errors import DataError
from tamis.importance.pfi import IncrementalPFI
from tamis.importance.predictions import is_numeric, outputs
from tamis.rows.screening import MutualInformation
from tamis.summaries.quantiles import QuantileSummary
from tamis.watch.alerts import AlertLog
from tamis.watch.causes import CauseTest
from tamis.watch.conditional import ConditionalRelevance
from tamis.watch.history import History
from tamis.watch.hypotheses import WEAKENING
from tamis.watch.input_drift import MEASURES, InputDrift
from tamis.watch.live_model import LiveModel, ModelInput, returns_probabilities
from tamis.watch.pending import PendingRows
from tamis.watch.performance import Performance, order_by_label, predicted_classes
from tamis.watch.presentation import WatchPresentation
from tamis.watch.rules import Rule
from tamis.watch.states import FeatureStates, share

DEFAULT_RULES = (
    'state("*") == "used but no longer relevant"',
    'state("*") == "relevant but unused"',
    'cause != "none"',
    'drift("*") > 0.2 for 500 rows',
    'missing_rise("*") > 0.05 for 200 rows',
    "label_drift > 0.1 for 200 rows",
    "prediction_drift > 0.2 for 500 rows",
    "error_increase > 0.05 for 200 rows",
)

_LEAST_SHARE = 0.05  # smallest value relative to the largest
_ALPHA = 0.001  # family-wise level to become relevant
_STAYS = 0.05  # level for each feature to remain relevant
_MOST_CLASSES = 3  # whose residuals are tested for a relation to unused features
_MOST_OUTPUTS = 10  # outputs of the model whose drift is measured
_EPS = 0.005  # error of a cumulative share, whose standard error in the rows of a half-life of 500 is .02
_N_CLASSES = 5  # classes into which a numeric target is binned
_OF_MODEL = ("cause", "label_drift", "prediction_drift", "error_increase")
_OF_FEATURE = ("relevance", "reliance", "state", *MEASURES)


class Watch(ThreadSafe, WatchPresentation):
    """Relevance and reliance of each feature, input drift, performance and alerts of a model in production.

    Parameters
    ----------
    model : object, optional
        The live model, as in :class:`~tamis.importance.pfi.IncrementalPFI`. Without it, reliance is that of the logged
        predictions.
    selector : object with `partial_fit` and `scores_`, optional
        Measures relevance; a copy is used. By default :class:`~tamis.MutualInformation` with `half_life`. A feature
        is relevant according to `pvalues_` or, without these, if it is selected. A feature
        that the model does not use is relevant only given the features used (:mod:`tamis.watch.conditional`).
    importance : IncrementalPFI or IncrementalSAGE, optional
        Measures reliance on a `model`; a copy is used. By default IncrementalPFI with ``loss="change"``.
    input_drift : InputDrift, optional
        A copy is used.
    rules : sequence of Rule or str
        By default `DEFAULT_RULES`: features that are *used but no longer relevant* or *relevant but unused*, causes of
        changed labels, drifts of features, labels and predictions, more missing values, and more errors.
    task : {"classification", "regression"}, default="classification"
    classes : array-like, optional
        The labels, in the order of the columns of probabilities; by default those of the model, or 0, 1, ...
    feature_names : list of str, optional
        By default the columns of the first batch, or "0", "1", ...
    categorical : None, "all", list of int or str, or mask
        Categorical features.
    half_life : float, default=500
        Number of rows after which the weight of a row is halved, for components that are not passed.
    patience : int, default=500
        Number of rows for which a state must last; four times as many for "used but no longer relevant" if the test of
        `rows_per_false_alarm` is active, which detects it sooner.
    season : int or None, default=None
        Number of rows of a season, such as a day or a week, whose course is not a drift of inputs, labels or errors.
    window : int, default=1000
        Number of labelled rows over which the performance is measured.
    max_pending : int, default=10000
        Largest number of rows with delayed labels; beyond it, the oldest are dropped.
    rows_per_false_alarm : float or None, default=50_000
        With probabilities or numbers as predictions, sequential tests (:mod:`tamis.watch.causes`) detect a feature that
        is used but no longer relevant, so that its state changes without `patience`, and other causes of a change. This
        parameter is the mean number of labelled rows between two false alarms for a calibrated model, at least 100. The
        tests take up to 21 predictions per labelled row and start after 1,200 labelled rows of the first model. None
        disables them.
    random_state : int or None, default=0
        Seed of the default importance and of the test.

    Attributes
    ----------
    n_rows_ : int
        Number of rows so far.
    n_labelled_ : int
        Number of rows whose labels have arrived.
    n_dropped_ : int
        Number of rows dropped before their labels arrived.
    n_unknown_ : int
        Number of labels whose keys are not pending.
    alerts_ : list of dict
        The last 1,000 alerts.

    Notes
    -----
    Memory: `max_pending` rows with their predictions, the components, 512 numbers per feature for :meth:`history`, and
    1,000 alerts. :func:`tamis.save` saves a Watch with its model if the model can be saved; otherwise call
    ``set_model(None)`` before saving, and `set_model` after loading.

    Examples
    --------
    The label depends on the first two columns, later on the second and third. The model is unchanged:

    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(9000, 4))
    >>> y = np.where(np.arange(9000) < 5000, X[:, 0] + X[:, 1] > 0, X[:, 2] + X[:, 1] > 0)
    >>> watch = Watch(LogisticRegression().fit(X[:1000], y[:1000]))
    >>> for start in range(1000, 9000, 100):
    ...     alerts = watch.update(X[start : start + 100], y=y[start : start + 100])
    >>> [row["state"] for row in watch.table()]
    ['used but no longer relevant', 'used and relevant', 'relevant but unused', 'neither']
    >>> for alert in watch.alerts_:
    ...     print(alert["feature"], alert["rule"], alert["cause"], sep=" | ")
    0 | state("*") == "used but no longer relevant" | used but no longer relevant
    None | error_increase > 0.05 for 200 rows | used but no longer relevant
    2 | state("*") == "relevant but unused" | None
    """

    _shapes = "n_rows_ in [0, 2**62)  n_labelled_ in [0, 2**62)"

    def __init__(
        self,
        model: Any = None,
        selector: Any = None,
        importance: Any = None,
        input_drift: InputDrift | None = None,
        rules: Sequence[Rule | str] = DEFAULT_RULES,
        *,
        task: str = "classification",
        classes: Any = None,
        feature_names: Sequence[str] | None = None,
        categorical: Any = None,
        half_life: float = 500,
        patience: int = 500,
        season: int | None = None,
        window: int = 1000,
        max_pending: int = 10_000,
        rows_per_false_alarm: float | None = 50_000,
        random_state: int | None = 0,
    ) -> None:
        check_choice("task", task, ("classification", "regression"))
        if isinstance(model, str | os.PathLike):
            raise ValueError(
                f"model must be the model itself, got the path {str(model)!r}: pass joblib.load(path),"
                " mlflow.pyfunc.load_model(path) or tamis.load(path)."
            )
        check_number("half_life", half_life, low=1.0)
        check_number("patience", patience, low=0, integer=True)
        if season is not None:
            check_number("season", season, low=2, integer=True)
        check_number("window", window, low=2, integer=True)
        check_number("max_pending", max_pending, low=1, integer=True)
        if isinstance(rules, str) or not all(isinstance(rule, Rule | str) for rule in rules):
            raise ValueError(f"rules must be a list of rules, got {short_repr(rules)}.")
        if rows_per_false_alarm is not None:
            check_number("rows_per_false_alarm", rows_per_false_alarm, low=100)
        self.rows_per_false_alarm, self.random_state = rows_per_false_alarm, random_state
        self.task, self.categorical, self.half_life = task, categorical, float(half_life)
        self.feature_names = (
            None if feature_names is None else [str(name) for name in as_list("feature_names", feature_names)]
        )
        if self.feature_names is not None and len(set(self.feature_names)) < len(self.feature_names):
            raise ValueError(f"feature_names must not repeat a name, got {short_repr(self.feature_names)}.")
        self.classes = None if classes is None else as_classes(classes)
        self.patience, self.window, self.max_pending = int(patience), int(window), int(max_pending)
        self.season = season
        self.model = model
        self.model_version: int | str | None = None
        self._importance = copy.deepcopy(importance) or IncrementalPFI(
            loss="change", half_life=half_life, random_state=random_state
        )
        self._selector, self._input_drift = copy.deepcopy(selector), copy.deepcopy(input_drift)
        self._has_own_selector = selector is None
        self._marginal: ConditionalRelevance | None = None
        self._of_predictions: Any = None  # the selector applied to the predictions
        self.n_rows_ = self.n_labelled_ = self.n_dropped_ = self.n_unknown_ = 0
        self._names: list[str] = []
        self._has_names = False
        self._kind = ""  # kind of the predictions
        self._labels: Array = np.empty(0, dtype=np.int64)  # predicted labels
        self._pending = PendingRows(self.max_pending)
        self._states, self._history = FeatureStates(0, self.patience), History(0)
        self._lost: CauseTest | None = None
        self._input = ModelInput()
        self._has_probabilities: bool | None = None  # of a function; None until the first row
        self._performance = Performance(task, self.window, np.empty(0, dtype=np.int64))
        self._target_quantiles, self._prediction_quantiles = (
            QuantileSummary(1, 1, dtype=np.float64) for _ in range(2)
        )
        self._conditional: ConditionalRelevance | None = None
        self._drift_of_predictions: InputDrift | None = None
        self._drift_of_labels: InputDrift | None = None  # of labels and of errors
        self._alert_log = AlertLog([rule if isinstance(rule, Rule) else Rule(rule) for rule in rules])

    def __repr__(self) -> str:
        return f"Watch(n_rows={self.n_rows_}, n_labelled={self.n_labelled_}, alerts={len(self._alert_log.alerts)})"

    # -- updating ------------------------------------------------------------------------------------------

    def set_model(self, model: Any, version: int | str | None = None) -> None:
        """Replace the model.

        Parameters
        ----------
        model : object or None
        version : int or str, optional
            Passed to the importance as `model_version`.
        """
        is_another = version != self.model_version or (self.model is not None and model is not self.model)
        if is_another and model is not None and self._lost is not None:
            self._lost.restart()
        self.model, self.model_version = model, version
        self._has_probabilities = None

    def update(
        self,
        X: Any,
        *,
        predictions: ArrayLike | None = None,
        keys: Sequence[Any] | None = None,
        y: ArrayLike | None = None,
    ) -> list[dict[str, Any]]:
        """Add rows and their predictions. If it raises, the object is unchanged.

        Parameters
        ----------
        X : array-like, frame or CSR matrix of shape (n_rows, n_features)
            Numbers, categories as codes, NaN for missing values. Of a frame, text and categories are coded, and a model
            gets the frame, with the values that are replaced.
        predictions : array-like of shape (n_rows,) or (n_rows, n_classes), optional
            Floats are scores of the positive class (the larger label) in [0, 1]; a 2-dimensional array contains the
            probabilities of `classes`; any other type is predicted labels. For a regression, numbers. By default, the
            predictions of the model.
        keys : sequence of hashable, optional
            Identifiers of the rows, for `update_labels`; by default the number of preceding rows.
        y : array-like of shape (n_rows,), optional
            The labels, if already known.

        Returns
        -------
        list of dict
            The new alerts: rule, severity, feature, row, version of the model, cause and message.

        Raises
        ------
        DataError
            If rows, predictions or labels are invalid.
        ValueError
            If a rule names an unknown measure or feature.
        """
        if not has_rows(X):
            return []
        given, rows, names = self._input.encoded(X, self.model)
        dense = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
        reject_nonfinite(dense, names, allow_nan=True)
        labels = None if y is None else as_column(y, len(dense), "Watch")
        if labels is not None:
            reject_missing(labels)
        if self._names:
            check_columns("Watch", dense, names, len(self._names), self._names if self._has_names else None)
        chosen = (
            list(range(self.n_rows_, self.n_rows_ + len(dense))) if keys is None else as_list("keys", keys)
        )
        if len(chosen) != len(dense) or self._pending.is_repeated(chosen):
            raise DataError(
                f"keys must be {len(dense)} identifiers that no pending row has, got {short_repr(keys)}."
            )
        if predictions is None and self.model is None:
            raise DataError("predictions must be given, since Watch has no model: pass them, or a model.")
        return atomically(self, self._update, dense, names, predictions, chosen, labels, given, in_parts=True)

    def update_labels(self, keys: Sequence[Any], y: ArrayLike) -> list[dict[str, Any]]:
        """Add the labels of earlier rows. If it raises, the object is unchanged.

        Parameters
        ----------
        keys : sequence of shape (n,)
            Keys of pending rows; others are counted in `n_unknown_`.
        y : array-like of shape (n,)

        Returns
        -------
        list of dict
            The new alerts.

        Raises
        ------
        DataError
            If a label is missing or a key is repeated.
        """
        wanted = as_list("keys", keys)
        labels = as_column(y, len(wanted), "Watch")
        reject_missing(labels)
        if len(set(wanted)) != len(wanted):
            raise DataError("keys must not repeat a row: pass one label per row.")
        return atomically(self, self._update_labels, wanted, labels, in_parts=True)

    def _update(
        self, X: Floats, names: list[str] | None, predictions: Any, keys: list[Any], y: Array | None, given: ModelInput
    ) -> list[dict[str, Any]]:  # fmt: skip
        self._input = given
        if not self._names:
            self._start(X.shape[1], names)
        values = self._predictions(X, predictions)
        assert self._input_drift is not None
        self._input_drift.update(X)
        if self._drift_of_predictions is None:
            self._drift_of_predictions = self._new_drift([0] if self._kind == "label" else [])
        self._drift_of_predictions.update(
            values[:, -_MOST_OUTPUTS:] if values.shape[1] != 2 else values[:, 1:]
        )
        self.n_rows_ += len(X)
        if self.model is None:
            codes = self._classes_of(values, self._prediction_quantiles)
            self._of_predictions = self._of_predictions or self._default_selector()
            self._of_predictions.partial_fit(X, codes)
        elif self._importance.loss == "change":
            self._importance.update(self._live_model(X), X, model_version=self.model_version)
        if y is not None:
            self._learn_labels(X, values, y)
        alerts = self._alerts()
        if y is None:
            self.n_dropped_ += self._pending.add(keys, X, values)
        return alerts

    def _update_labels(self, keys: list[Any], y: Array) -> list[dict[str, Any]]:
        known, X, values = self._pending.rows_of(keys)
        self.n_unknown_ += len(keys) - len(known)
        if known:
            self._learn_labels(X, values, y[known])
        alerts = self._alerts()
        self._pending.remove([keys[i] for i in known])
        return alerts

    def _start(self, n_features: int, names: list[str] | None) -> None:
        self._has_names = names is not None
        if names is None and self.feature_names is not None:
            if len(self.feature_names) != n_features:
                raise DataError(
                    f"feature_names must be {n_features} names, one per column of X, got {len(self.feature_names)}."
                )
            names = self.feature_names
        self._names = [str(j) for j in range(n_features)] if names is None else list(names)
        declared = columns_of(self.categorical, n_features, names).tolist()
        self._categories = sorted({*declared, *self._input.categories})
        if self._input_drift is None:
            self._input_drift = self._new_drift(self._categories)
        self._drift_of_labels = self._new_drift([0, 1] if self.task == "classification" else [])
        # A delay of an increase of the errors costs most.
        self._drift_of_labels.most_growth = np.array([self._drift_of_labels.most_growth, math.inf])
        if self._has_own_selector:
            self._selector = self._default_selector()
        self._states = FeatureStates(n_features, self.patience)
        self._history = History(n_features)
        if self.rows_per_false_alarm is not None:
            self._lost = CauseTest(n_features, self.rows_per_false_alarm, self.random_state)
        classes = getattr(self.model, "classes_", None) if self.classes is None else self.classes
        self._performance = Performance(
            self.task, self.window, np.empty(0, dtype=np.int64) if classes is None else np.array(classes)
        )
        check_rules(self._alert_log.rules, self._names, self.task)

    def check_state(self) -> None:
        """Validate that loaded pending rows have the features, and predictions of the kind, of this object.

        Raises
        ------
        StateError
            If they do not.
        """
        high = {"label": len(self._labels) - 1.0, "number": math.inf}.get(self._kind, 1.0)
        if not self._pending.fits(len(self._names), -high if self._kind == "number" else 0.0, high):
            raise state_error("The pending rows of a Watch do not fit its features or predictions")

    def _new_drift(self, categorical: list[int]) -> InputDrift:
        return InputDrift(half_life=self.half_life, categorical=categorical, season=self.season)

    def _default_selector(self) -> Any:
        # Its scores measure relevance; its p-values are not used, except for the logged predictions.
        return MutualInformation(
            1,
            half_life=self.half_life,
            categorical=self._categories or None,
            dependence="independent",
            eps=_EPS,
        )

    def _live_model(self, X: Floats) -> LiveModel:
        """Return the model as it is called with encoded rows."""
        if self._has_probabilities is None:
            shown = self._input.frame(X[:1])
            self._has_probabilities = self.task == "classification" and returns_probabilities(
                self.model, shown
            )
        return LiveModel(self.model, self._input, has_probabilities=self._has_probabilities)

    def _predictions(self, X: Floats, predictions: Any) -> Floats:
        """Return the predictions as numbers of shape (n_rows, n_outputs)."""
        if predictions is None:
            model = self._live_model(X)
            numeric = self.task == "regression" or is_numeric("auto", model)
            values, _ = outputs(model, X, self._names if self._has_names else None, numeric=numeric)
            kind = "number" if self.task == "regression" else "score" if numeric else "probabilities"
        else:
            reject_masked("predictions", predictions)
            array = as_array("predictions", predictions)
            if array.ndim not in (1, 2) or len(array) != len(X):
                raise DataError(f"predictions must be {len(X)} rows, got an array of shape {array.shape}.")
            kind = "number" if self.task == "regression" else "probabilities" if array.ndim == 2 else "label"
            kind = "score" if kind == "label" and array.dtype.kind == "f" else kind
            if kind == "label":
                codes, self._labels = encode_labels(array, self._labels)
                values = codes[:, None].astype(np.float64)
            else:
                values = np.asarray(array, dtype=np.float64).reshape(len(X), -1)
                outside = values[(values < 0.0) | (values > 1.0)]
                if kind != "number" and len(outside):
                    raise DataError(
                        f"predictions must be scores or probabilities in [0, 1], got {outside[0]:g}: convert them, or"
                        " pass labels as integers or text."
                    )
        if self._kind not in ("", kind):
            raise DataError(
                f"predictions are now a {kind}, but were a {self._kind}: pass the same kind each time."
            )
        if not np.isfinite(values).all():
            raise DataError("predictions must be finite: drop the rows without one.")
        self._kind = kind
        if kind == "probabilities" and not len(self._performance.classes):
            self._performance.classes = np.arange(values.shape[1])
        return values

    def _classes_of(self, values: Floats, quantiles: QuantileSummary) -> Ints:
        """Return a numeric target as classes: fifths of the values so far."""
        if self._kind in ("label", "probabilities") and quantiles is self._prediction_quantiles:
            return predicted_classes(values, self._kind)
        numbers = np.ascontiguousarray(values[:, :1])
        quantiles.update(numbers, np.zeros(len(numbers), dtype=np.int64))
        cuts = quantiles.quantile(np.arange(1, _N_CLASSES) / _N_CLASSES)[0]
        return np.searchsorted(np.unique(cuts), numbers[:, 0], side="left").astype(np.int64)

    def _learn_labels(self, X: Floats, values: Floats, y: Array) -> None:
        self.n_labelled_ += len(y)
        target = self._performance.codes(y)
        predicted, kind = values, self._kind
        if kind == "label":  # the codes of the labels, in the order of the classes
            codes = self._performance.codes(self._labels[values[:, 0].astype(np.int64)])
            predicted = codes[:, None].astype(np.float64)
        self._performance.update(target, predicted, kind)
        self._add_errors(target, predicted)
        if self.model is not None and self._importance.loss != "change":
            self._importance.update(self._live_model(X), X, y, model_version=self.model_version)
        classes = target
        if self.task == "regression":
            classes = self._classes_of(target[:, None], self._target_quantiles)
        self._selector.partial_fit(X, classes)
        before = np.zeros(X.shape[1], dtype=bool) if self._lost is None else self._lost.lost.copy()
        ages = self._find_causes(X, values, y)
        lost = before if self._lost is None else self._lost.lost
        was = self._states.is_relevant | (before & ~lost)  # found relevant again
        relevant = self._is_relevant(self._selector, was, self._marginal_pvalues(X, target))
        used = self._is_used(self._states.is_used)
        if relevant is not None and used is not None:
            relevant = np.where(used, relevant & ~lost, self._is_informative(X, target, used))
            has_cause = self._lost is not None and self._lost.cause in WEAKENING
            shares = share(self._relevances() * used)
            self._states.update(
                used,
                relevant,
                self.n_rows_,
                ages,
                shares,
                has_cause=has_cause,
                is_tested=self.model is not None,
            )

    def _marginal_pvalues(self, X: Floats, target: Array) -> Floats | None:
        """Return the p-value of the dependence of the label on each feature, for rows that depend on one another.

        None if a selector was passed, which has p-values of its own.
        """
        if not self._has_own_selector:
            return None
        values = self._target_values(target)
        if self._marginal is None:
            self._marginal = ConditionalRelevance(
                X.shape[1], values.shape[1], self.half_life, is_sequential=False
            )
        self._marginal.update(X, values, np.empty(0, dtype=np.int64))
        return self._marginal.pvalues()

    def _target_values(self, target: Array) -> Floats:
        """Return the target as numbers of shape (n_rows, n_outputs): indicators of classes, or the target."""
        if self.task == "classification":
            return (target[:, None] == np.arange(_MOST_CLASSES)).astype(np.float64)
        return np.asarray(target, dtype=np.float64)[:, None]

    def _is_informative(self, X: Floats, target: Array, used: Mask) -> Mask:
        """Return which features the label depends on given the features used.

        The residuals are not those of the model, whose predictions may depend a little on an unused feature.
        """
        values = self._target_values(target)
        reliance = np.nan_to_num(self._reliances(), nan=0.0)
        order = np.argsort(-reliance, kind="stable")
        if self._conditional is None:
            self._conditional = ConditionalRelevance(X.shape[1], values.shape[1], self.half_life)
        assert self._input_drift is not None
        self._conditional.update(X, values, order[used[order]], self._input_drift.inflation())
        # That a feature was relevant while it was used does not show that it is, given the others.
        was = self._states.is_relevant & ~self._states.is_used
        with np.errstate(divide="ignore"):
            pvalues = np.where(was, self._conditional.pvalues(), 1.0 / self._conditional.evalues())
        return _below(pvalues, was)

    def _find_causes(self, X: Floats, values: Floats, y: Array) -> Ints | None:
        """Return for each feature the number of rows since it was last relevant, if detected now; otherwise 0.

        None if no test detects it, since predictions are labels.
        """
        classes = self._performance.classes
        if self._lost is None or self._kind == "label" or (self._kind == "score" and len(classes) != 2):
            return None
        labels, target = None, y
        if self._kind == "score":
            values, labels = np.column_stack([1.0 - values, values]), classes[order_by_label(classes)]
        elif self._kind == "probabilities":
            labels = classes[: values.shape[1]]
        else:
            target = self._performance.codes(y)
        model = None if self.model is None else self._live_model(X)
        ages = self._lost.update(
            X,
            target,
            values,
            model,
            labels,
            self._names,
            reliance=self._reliances(),
            has_names=self._has_names,
        )
        return np.array(ages, dtype=np.int64)

    def _is_relevant(self, selector: Any, was: Mask, pvalues: Floats | None = None) -> Mask | None:
        """Return which features are relevant by a selector; None before two classes are seen.

        The threshold to become relevant is stricter than that to cease to be relevant; with a single threshold, a
        feature near it would change its state at random.
        """
        if selector is None or getattr(selector, "warming_up_", False):
            return None
        scores = np.nan_to_num(np.asarray(selector.scores_, dtype=np.float64), nan=0.0)
        pvalues = getattr(selector, "pvalues_", None) if pvalues is None else pvalues
        passes = selector.get_support() if pvalues is None else _below(np.asarray(pvalues), was)
        return np.asarray(passes & _is_large(scores, was))

    def _is_used(self, was: Mask) -> Mask | None:
        if self.model is None:
            return self._is_relevant(self._of_predictions, was)
        values = np.nan_to_num(self._reliances(), nan=0.0)
        return np.asarray((values > 0.0) & _is_large(values, was))

    def _alerts(self) -> list[dict[str, Any]]:
        values, position = self._values(), {name: j for j, name in enumerate(self._names)}
        self._history.add(self.n_rows_, values["relevance"], values["reliance"])
        return self._alert_log.update(
            self.n_rows_, self._names, lambda measure, name: values[measure][position[name]],
            self._performance.measures() | self._cause() | self._drifts_of_model(), self._performance.first,
            self.model_version,
        )  # fmt: skip

    def _add_errors(self, target: Array, predicted: Floats) -> None:
        """Add labels and the errors of the predictions to their drift."""
        classes = self._performance.classes
        if self._kind == "number":
            errors = np.abs(target - predicted[:, 0])
        elif self._kind == "score":
            order = np.array([*order_by_label(classes), 0, 0], dtype=np.int64)
            errors = target != np.where(predicted[:, 0] > 0.5, order[len(classes) - 1], order[0])
        else:
            errors = target != predicted_classes(predicted, self._kind)
        assert self._drift_of_labels is not None
        self._drift_of_labels.update(np.column_stack([target, errors]).astype(np.float64))

    def _drifts_of_model(self) -> dict[str, Any]:
        """Return the drift of predictions, labels and errors, each with a sentence."""
        if self._drift_of_labels is None or self._drift_of_predictions is None:
            return {}
        labels, now, first = (
            self._drift_of_labels.measures(),
            self._performance.measures(),
            self._performance.first,
        )
        found: dict[str, Any] = {"prediction_drift": math.nan, "label_drift": math.nan, "error_increase": 0.0}
        if self._drift_of_predictions.is_ready:
            found["prediction_drift"] = float(self._drift_of_predictions.measures()["drift"].max())
        if self._drift_of_labels.is_ready:
            found["label_drift"] = float(labels["drift"][0])
        if first and self._drift_of_labels.is_ready and labels["shift"][1] > 0.0:
            if self.task == "classification":
                found["error_increase"] = first["accuracy"] - now["accuracy"]
            else:
                found["error_increase"] = (now["mae"] - first["mae"]) / max(first["mean_mae"], 1e-300)
        return found

    def _cause(self) -> dict[str, Any]:
        if self._lost is None:
            return {"cause": "none"}
        lost = {self._names[j]: self._lost.evidence_of[j] for j in np.flatnonzero(self._lost.lost)}
        return {"cause": self._lost.cause, "evidence": self._lost.evidence, "evidence of features": lost}

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def alerts_(self) -> list[dict[str, Any]]:
        """The last 1,000 alerts."""
        return list(self._alert_log.alerts)

    @property
    def feature_names_(self) -> list[str]:
        """Names of the features, in the order of the columns; empty before the first row."""
        return list(self._names)

    def _relevances(self) -> Floats:
        if self.n_labelled_ == 0:
            return np.full(len(self._names), np.nan)
        return np.asarray(self._selector.scores_, dtype=np.float64)

    def _reliances(self) -> Floats:
        if self.model is None and self._of_predictions is not None:
            return np.asarray(self._of_predictions.scores_, dtype=np.float64)
        importances = self._importance.importances_
        return importances if len(importances) == len(self._names) else np.full(len(self._names), np.nan)

    def _values(self) -> dict[str, Any]:
        """Return each measure of a feature, in the order of the features."""
        return {
            "relevance": share(self._relevances()),
            "reliance": share(self._reliances()),
            "state": self._states.names,
            **{name: item.tolist() for name, item in self._drift().items()},
        }

    def _drift(self) -> dict[str, Floats]:
        return {} if self._input_drift is None else self._input_drift.measures()

    def table(self) -> list[dict[str, Any]]:
        """Return one row per feature, for `pandas.DataFrame` or `polars.DataFrame`.

        Returns
        -------
        list of dict
            feature, state, since (rows before the state began), relevance and reliance (in their own units), their
            shares of the sum over the features, and the measures of :meth:`InputDrift.measures
            <tamis.watch.input_drift.InputDrift.measures>`.
        """
        columns = {
            "feature": self._names,
            "state": self._states.names,
            "since": self._states.since,
            "relevance": self._relevances().tolist(),
            "reliance": self._reliances().tolist(),
            "relevance_share": share(self._relevances()).tolist(),
            "reliance_share": share(self._reliances()).tolist(),
            **{name: item.tolist() for name, item in self._drift().items()},
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def history(self) -> dict[str, NDArray[Any]]:
        """Return relevance and reliance over time: 128 to 256 points, evenly spaced over all rows.

        Returns
        -------
        dict of str to ndarray
            "row" of shape (n_points,), the number of rows before each point; "relevance" and "reliance" of shape
            (n_points, n_features), as shares of the sum over the features.
        """
        rows, relevance, reliance = self._history.read()
        return {"row": rows, "relevance": relevance, "reliance": reliance}

    def performance(self) -> dict[str, float]:
        """Return the measures of the last `window` labelled rows and of the baselines; NaN before the first."""
        return self._performance.measures() if self._names else {}


def check_rules(rules: Sequence[Rule], features: Sequence[str], task: str) -> None:
    """Validate the names of features and measures in rules.

    Raises
    ------
    ValueError
        If a name is unknown.
    """
    measures = Performance(task, 2, np.empty(0, dtype=np.int64)).measures()
    for rule in rules:
        unknown = [name for name in rule.features if name not in ("*", *features)]
        if unknown:
            raise ValueError(
                f"The rule {rule.text!r} names {unknown[0]!r}, which is not a feature: the features are"
                f" {short_repr(list(features))}."
            )
        unknown = sorted(rule.names - {*measures, *_OF_MODEL, *_OF_FEATURE})
        if unknown:
            raise ValueError(
                f"The rule {rule.text!r} names {unknown[0]!r}, which is not a measure: the measures are"
                f" {', '.join(sorted(measures))}, and of a feature {', '.join(_OF_FEATURE)}."
            )


def _below(pvalues: Floats, was: Mask) -> Mask:
    """Return which p-values are below the level of features that were relevant or not; NaN changes none."""
    level = np.where(was, _STAYS, _ALPHA / len(pvalues))
    return np.asarray(np.where(np.isnan(pvalues), was, pvalues < level))


def _is_large(values: Floats, was: Mask) -> Mask:
    """Return which values are large relative to the largest; half as much suffices for those that already were."""
    return np.asarray(values >= np.where(was, _LEAST_SHARE / 2.0, _LEAST_SHARE) * values.max())
