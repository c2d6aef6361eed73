"""A selector, and a learner that uses only the selected features; how both process a batch.

1. the learner gets the features selected before the batch, standardised by the earlier rows
2. the selector is updated with the batch, and selects
3. the learner is updated with the batch; after a drift reported by the selector, a reset learner runs beside it and
   replaces it if it predicts better (`reset_candidate.py`)
4. the scaler is updated with the batch

The first batch trains both: the learner then uses all features, and the scaler is updated before.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_regressor

from tamis._guard import lock_of
from tamis._shapes import Shapes
from tamis._validation import Array, Mask, Rows, encode_labels, reject_nonfinite, short_repr
from tamis._validation.parameters import with_methods
from tamis.base import RowSelector
from tamis.base.column_terms import name_to_position
from tamis.base.row_encoder import class_targets
from tamis.base.rows import codes_of_row, learn_row
from tamis.catalog import CATALOG, find, find_learner
from tamis.errors import DataError
from tamis.learners.dense_rows import DenseRowClassifier, is_third_party
from tamis.learners.linear import SGDLogisticRegression
from tamis.learners.traits import accepts_nan, adapts_itself
from tamis.pipeline.masked_learner import ColumnChange, MaskedLearner, MaskedRegressor, Masker, View
from tamis.pipeline.reset_candidate import ResetCandidate
from tamis.pipeline.scaling import RunningScale, wants_scale
from tamis.replay import Replay

SELECTOR = with_methods("an estimator with partial_fit and get_support", "partial_fit", "get_support")
LEARNER = with_methods("a classifier or regressor with partial_fit", "partial_fit", "predict")


class SelectiveLearner:
    """A selector and a learner; their state between two batches.

    Parameters
    ----------
    selector : estimator with `partial_fit` and `get_support`, or None
        None selects every feature.
    learner : classifier or regressor with `partial_fit`
        Selector and learner are fitted in place.
    classes : ndarray of shape (n_classes,)
        Labels known in advance; empty for a regression.
    numbers : bool
        Whether the task is a regression.
    scale : {"auto", "standard", "none"}
    masking : {"auto", "zeros"}
    replay : {"auto", "always", "never"} or int
        As for :func:`tamis.prequential`.

    Attributes
    ----------
    learner : MaskedLearner
    scale : RunningScale or None
        None if features are not scaled, and before `begin`.
    mask, support : ndarray or None
        The current selection, and its columns; None: nothing is selected yet, and every feature is used.
    replays : int
        Number of resets of the learner with a replay of the last rows.
    candidate : ResetCandidate or None
        A reset learner, or the learner it replaced; it runs beside the one that predicts.
    challenges, failures : int
        Number of candidates so far, and of those not adopted or replaced again.
    n_seen : int
        Number of rows seen, with or without labels.

    Examples
    --------
    >>> from tamis import TScore
    >>> X, y = np.array([[9.0, 1.0], [8.0, 2.0], [9.0, 11.0], [8.0, 12.0]]), np.array([0, 0, 1, 1])
    >>> pair = SelectiveLearner(
    ...     TScore(1), default_learner(numbers=False), np.array([0, 1]), numbers=False, scale="auto", masking="auto",
    ...     replay="auto",
    ... )
    >>> for _ in range(2):
    ...     pair.learn(X, y, pair.learner.classes)
    >>> pair.support, pair.learner.predict(pair.view(X))
    (array([1]), array([0, 0, 1, 1]))
    """

    _state_spec = Shapes("""
        n_features (=f)  n_features in [0, 2**31)  n_seen in [0, 2**53)  replays in [0, 2**53)
        challenges in [0, 2**53)  failures in [0, 2**53)
        mask? (f) bool fixed  support? (s) in [0, n_features) fixed  replay.batches fixed  replay.selector fixed
        replay.batches[][0] (R, f)  replay.batches[][1] (R) labels
    """)

    def __init__(
        self, selector: BaseEstimator | None, learner: Any, classes: Array, *, numbers: bool, scale: str,
        masking: str, replay: str | int,
    ) -> None:  # fmt: skip
        self.selector, self.numbers = selector, numbers
        self.scaling = "standard" if scale == "auto" and wants_scale(learner) else scale
        self.is_sure_to_scale = scale == "standard"
        self.learner = (
            MaskedRegressor(learner, classes, masking, self.scaling == "standard")
            if numbers
            else MaskedLearner(learner, classes, masking)
        )
        self.scale: RunningScale | None = None
        self.replay = Replay(selector, "never" if replay == "auto" and adapts_itself(learner) else replay)
        self.tries_resets = replay == "auto"
        self.candidate: ResetCandidate | None = None
        self.replays = self.challenges = self.failures = 0
        self.mask: Mask | None = None
        self.support: NDArray[np.intp] | None = None
        self.is_started = False  # whether the first batch was processed
        self.n_features, self.n_seen, self.is_sparse = 0, 0, False  # of the rows

    @functools.cached_property
    def accepts_nan(self) -> bool:
        """Whether the model that gets all rows, the selector or without one the learner, accepts missing values."""
        return accepts_nan(self.learner.model if self.selector is None else self.selector)

    def begin(self, n_features: int, *, is_sparse: bool, categorical: Sequence[int] = ()) -> None:
        """Create the state that depends on the features, before the first batch."""
        self.n_features, self.is_sparse = n_features, is_sparse
        if self.scaling == "standard" and (self.is_sure_to_scale or not is_sparse):
            self.scale = RunningScale(n_features, categorical)

    # -- a batch -------------------------------------------------------------------------------------------

    def learn(
        self,
        X: Rows,
        y: Array,
        classes: Array,
        declared: Array | None = None,
        categorical: Sequence[int] = (),
    ) -> None:
        """Update with a batch whose labels are among the classes; `declared`: those known before the first batch."""
        if not self.is_started:
            self.begin(X.shape[1], is_sparse=sp.issparse(X), categorical=categorical)
            self.update_scale(X)
            self.learn_first(X, y, classes, declared)
            return
        view = self.learner.view(X, self.mask, self.support, self.scale, predicts=self.candidate is not None)
        self.update_selector(X, y)
        self.update_learner(view, X, y, classes, renewed=self.select())
        self.update_scale(X)

    @functools.cached_property
    def _learns_rows(self) -> bool:
        """Whether the hooks of both models suffice for a row, and the learner gets all columns as they are."""
        selector, model = self.selector, self.learner.model
        own = isinstance(selector, RowSelector) and type(selector).partial_fit is RowSelector.partial_fit
        own = own and isinstance(model, DenseRowClassifier) and not is_third_party(model)
        is_plain = self.learner.way == "whole" and self.scale is None and not self.is_sparse
        return own and is_plain and isinstance(self.replay.replay, str)

    def codes_of_row(self, X: Any, y: Any) -> Array | None:
        """Return the code of the label of one row that :meth:`learn_row` can learn; None for any other input."""
        if self.mask is None or self.candidate is not None or not self._learns_rows:
            return None
        selector: Any = self.selector
        if getattr(selector, "n_replay", 0) or (codes := codes_of_row(selector, X, y)) is None:
            return None
        classes = self.learner.classes.tolist()
        are_alike = classes == selector.classes_.tolist() == self.learner.model.classes_.tolist()
        return codes if are_alike else None

    def learn_row(self, X: Array, codes: Array) -> None:
        """Update with a row; `codes` is from :meth:`codes_of_row`, and a snapshot covers `selector` and `learner`.

        The other attributes change at the end, when nothing can fail.
        """
        selector: Any = self.selector
        with lock_of(selector):
            selector._reject_invalid_state()
            learn_row(selector, X, codes)
            self.learner.learn_row(X, codes)
            self.select()
        self.n_seen += 1

    def learn_first(self, X: Rows, y: Array, classes: Array, declared: Array | None) -> None:
        """Update with the first batch."""
        if isinstance(self.selector, RowSelector) and not self.selector._is_regression():
            self.selector.partial_fit(X, y, classes=declared)
        else:
            self.update_selector(X, y)
        self.is_started = True
        self.replay.add(X, y)
        self.learner.learn(self.view(X), y, classes)
        self._learn_categories(X, y, classes)
        if self.select():
            self.reset(classes)

    def _learn_categories(self, X: Rows, y: Array, classes: Array) -> None:
        """Update the mean targets of categories, after the learner was trained on the rows."""
        if self.scale is not None and self.scale.tables:
            target = y if self.numbers else class_targets(encode_labels(y, classes)[0])
            self.scale.learn_categories(X, np.asarray(target, dtype=np.float64))

    def update_scale(self, X: Rows, complete: Rows | None = None) -> None:
        """Update the scale with a batch, or with the rows whose last values arrived with it."""
        self.n_seen += X.shape[0]
        complete = X if complete is None else complete
        if self.scale is not None and complete.shape[0]:
            self.scale.update(complete)

    def update_selector(self, X: Rows, y: Array) -> None:
        """Update the selector with a batch."""
        if self.selector is not None:
            self.selector.partial_fit(X, y)

    def select(self) -> bool:
        """Update the selection; return whether the learner must be reset."""
        if self.selector is None or (self.mask is None and getattr(self.selector, "warming_up_", False)):
            return False
        # A copy: the selector may reuse its own array.
        mask = np.array(self.selector.get_support(), dtype=bool)
        changed = self.mask is None or mask.tobytes() != self.mask.tobytes()
        if changed:
            self.mask, self.support = mask, np.flatnonzero(mask)
        is_alarm = bool(getattr(self.selector, "drift_detected_", False))
        return (changed or is_alarm) and self.replay.is_due(changed=changed)

    @property
    def selection(self) -> tuple[Mask | None, NDArray[np.intp] | None]:
        """The columns in use, as a mask and as positions: without a selector, those that the learner selects itself."""
        model = self.learner.model
        if self.selector is not None or not hasattr(model, "get_support"):
            return self.mask, self.support
        if self.learner.n_known_classes == 0 or getattr(model, "warming_up_", False):
            return None, None
        mask = np.array(model.get_support(), dtype=bool)
        return mask, np.flatnonzero(mask)

    def update_learner(self, view: View, X: Rows, y: Array, classes: Array, *, renewed: bool) -> None:
        """Update the learner with a view of the batch, or reset it."""
        if not isinstance(self.replay.replay, str) or bool(getattr(self.selector, "n_replay", 0)):
            self.replay.add(X, y)
        if renewed and not self.tries_resets:
            self.reset(classes)
        else:
            self._train(view, X, y, classes, renewed=renewed)
        self._learn_categories(X, y, classes)

    def _train(self, view: View, X: Rows, y: Array, classes: Array, *, renewed: bool) -> None:
        if (candidate := self.candidate) is not None:
            losses = candidate.learner.losses(
                candidate.learner.predict(self._candidate_view(candidate, view, X)), y
            )
            candidate.compare(losses, self.learner.losses(self.learner.predict(view), y))
        self.learner.learn(view, y, classes)
        if candidate is not None:
            candidate.learner.learn(self._candidate_view(candidate, view, X), y, classes)
            self._decide(candidate)
        if renewed and self.candidate is None:
            self._challenge(classes)

    # -- resets that are tried first -----------------------------------------------------------------------

    def _challenge(self, classes: Array) -> None:
        """Train a new learner on the last rows, to run beside the current one."""
        kept = self.replay.rows()
        if kept is None or self.learner.n_known_classes == 0:
            return
        learner = self.learner.another()
        if isinstance(learner, MaskedRegressor) and isinstance(self.learner, MaskedRegressor):
            learner.target = deepcopy(self.learner.target)
        learner.learn(learner.view(kept[0], self.mask, self.support, self.scale), kept[1], classes)
        if learner.n_known_classes:
            self.candidate = ResetCandidate(learner, self.failures)
            self.challenges += 1

    def _candidate_view(self, candidate: ResetCandidate, view: View, X: Rows) -> View:
        """Return the candidate's view of rows, with the features of the current learner's view."""
        if view.support is None:
            return candidate.learner.view(X, None, None, self.scale)
        mask = np.zeros(X.shape[1], dtype=bool)
        mask[view.support] = True
        return candidate.learner.view(X, mask, view.support, self.scale)

    def _decide(self, candidate: ResetCandidate) -> None:
        """Swap the two if the candidate is better, and drop it when the comparison is over.

        The old learner then challenges the new one, since a temporary advantage may not last.
        """
        if candidate.is_ahead:
            was_old = candidate.is_old
            self.failures += was_old
            self.replays += 1 - 2 * was_old
            self.learner.swap(candidate.learner)
            self.candidate = ResetCandidate(candidate.learner, self.failures, not was_old)
        elif candidate.is_over:
            self.failures += not candidate.is_old
            self.candidate = None

    def reset(self, classes: Array) -> None:
        """Reset the learner, and train it on the last rows with the currently selected features."""
        self.learner.reset()
        self.learner.classes = classes
        self.candidate = None
        self.replays += 1
        if (kept := self.replay.rows()) is not None:
            self.learner.learn(self.view(kept[0]), kept[1], classes)

    def view(self, X: Rows) -> View:
        """Return the learner's current view of rows."""
        return self.learner.view(X, self.mask, self.support, self.scale)

    @property
    def takes_missing(self) -> bool:
        """Whether neither selector nor learner rejects missing values; scaling replaces them by the mean."""
        has_scale = self.scaling == "standard" and (self.is_sure_to_scale or not self.is_sparse)
        takes = has_scale or accepts_nan(self.learner.model)
        return takes and (self.selector is None or self.accepts_nan)

    def reject(self, error: Exception, X: Rows, names: list[str] | None) -> None:
        """Raise an error that locates NaN or infinity, if one of them is the reason why rows were rejected.

        The selector has no column names, and scikit-learn's learners only report that NaN is present. If selector and
        learner both accept NaN, it is not the reason.
        """
        is_masked = self.mask is not None and self.support is not None and not isinstance(error, DataError)
        seen: Any = Masker().mask(X, self.mask, self.support) if is_masked else X  # type: ignore[arg-type]
        reject_nonfinite(seen, names, allow_nan=self.takes_missing)

    # -- columns that come and go --------------------------------------------------------------------------

    def change_columns(
        self, change: ColumnChange, X: Rows, y: Array, categorical: Sequence[int] = ()
    ) -> None:
        """Append or reset columns.

        A selector or learner that does not support this is fitted again to recent rows. A reset learner that runs
        beside the current one is dropped.

        Parameters
        ----------
        change : ColumnChange
        X, y : recent rows and their labels, after the change
        categorical : sequence of int
            The appended columns whose values are category codes.
        """
        self.n_features, self.candidate = change.n_features, None
        self.replay.restore([(change.of_rows(rows), labels) for rows, labels in self.replay.batches])
        if self.scale is not None:
            self.scale.widen(change.n_features)
            if change.forgotten is not None:
                self.scale.forget(change.forgotten)
            self.scale.tables = {**self.scale.tables, **{int(j): np.zeros((0, 2)) for j in categorical}}
        if not self.is_started:
            return
        if self.mask is not None:
            mask = np.pad(self.mask, (0, change.n_features - len(self.mask)))
            if change.forgotten is not None:
                mask[change.forgotten] = False
            self.mask, self.support = mask, np.flatnonzero(mask)
        renewed = [one for one in (self.selector, self.learner.model) if add_categories(one, categorical)]
        # An appended column was 0 in all rows. It was missing in dense ones, for which a selector may have imputed 0.
        has_zeros = self.is_sparse or change.absent == 0.0 or _imputes(self.selector)
        if self.selector is not None and (
            self.selector in renewed or not has_zeros or not change.apply(self.selector)
        ):
            self.selector.__dict__ = clone(self.selector).__dict__
            classes = {} if self.numbers else {"classes": self.learner.classes}
            is_own = isinstance(self.selector, RowSelector)
            self.selector.partial_fit(X, y, **classes if is_own else {})
            self.select()
        if self.learner.model in renewed or not self.learner.change_columns(change):
            self.learner.reset()
            self.learner.learn(self.view(X), y, self.learner.classes)

    # -- state ---------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state to save."""
        return {name: getattr(self, name) for name in _KEPT} | {
            "recent": self.replay.batches,
            "learner": self.learner.state(),
            "candidate": None if self.candidate is None else self.candidate.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state; selector and model get the saved state and stay the same objects."""
        self.replay.restore(state.pop("recent"))
        if (saved := state.pop("selector")) is not None:
            self.selector.__dict__ = saved.__dict__
        self.learner.restore(state.pop("learner"))
        if (candidate := state.pop("candidate")) is not None:
            self.candidate = ResetCandidate(self.learner.another())
            self.candidate.restore(candidate)
        self.__dict__.update(state)


def _imputes(selector: Any) -> bool:
    """Return whether a selector learns from complete rows, in which a column without values so far is 0."""
    return isinstance(selector, RowSelector) and selector._intake.encoder is not None


def add_categories(model: Any, columns: Sequence[int]) -> bool:
    """Add columns to the categories of a model that has such a parameter; return whether it changed."""
    if not columns or "categorical" not in (
        model.get_params(deep=False) if hasattr(model, "get_params") else ()
    ):
        return False
    model.set_params(categorical=[*(model.categorical or ()), *map(int, columns)])
    return True


_KEPT = (
    "selector", "scale", "mask", "support", "replays", "challenges", "failures", "n_features", "n_seen",
    "is_started", "is_sparse",
)  # fmt: skip


def is_regression_learner(selector: Any, learner: Any) -> bool:
    """Return whether the task is a regression: determined by the learner, or without one by the selector, not by y.

    Raises
    ------
    ValueError
        If the two disagree, or the learner has no `partial_fit`.

    Examples
    --------
    >>> from sklearn.linear_model import SGDRegressor
    >>> from tamis import FIRES
    >>> is_regression_learner(None, SGDRegressor()), is_regression_learner(FIRES(), None)
    (True, False)
    >>> is_regression_learner(FIRES(), SGDRegressor())
    Traceback (most recent call last):
    ...
    ValueError: SGDRegressor predicts numbers, but FIRES is set to learn classes: choose FIRES(model='gaussian').
    """
    is_own = isinstance(selector, RowSelector)
    check_models(selector, learner)
    if learner is None:
        return bool(is_own and selector._is_regression())
    numbers = _is_regressor(learner)
    if is_own and selector._is_regression() != numbers:
        predictor, kind = type(learner).__name__, type(selector).__name__
        targets = ("numbers", "classes") if numbers else ("classes", "numbers")
        raise ValueError(
            f"{predictor} predicts {targets[0]}, but {kind} is set to learn {targets[1]}: choose"
            f" {_as_regressor(kind) if numbers else 'a regressor'}."
        )
    return numbers


def declare_task(task: str, selector: Any, learner: Any) -> None:
    """Set an unfitted selector with default settings to regression, and raise if a model is for the other task.

    Parameters
    ----------
    task : {"classification", "regression"}
    selector, learner : estimator or None
        The selector may be changed.

    Raises
    ------
    ValueError
        If one of them is for the other task.

    Examples
    --------
    >>> from tamis import FIRES
    >>> selector = FIRES(2)
    >>> declare_task("regression", selector, None)
    >>> selector.model
    'gaussian'
    """
    check_models(selector, learner)
    numbers = task == "regression"
    if learner is not None and _is_regressor(learner) != numbers:
        needed = "a regressor, such as sklearn.linear_model.SGDRegressor" if numbers else "a classifier"
        raise ValueError(f"task={task!r} does not suit the learner {type(learner).__name__}: pass {needed}.")
    if not isinstance(selector, RowSelector) or selector._is_regression() == numbers:
        return
    kind = type(selector).__name__
    settings = _regression_settings(kind) if numbers else {}
    usual = type(selector)().get_params()
    is_new = not hasattr(selector, "n_features_in_")
    if not (settings and is_new and all(getattr(selector, name) == usual[name] for name in settings)):
        advice = _as_regressor(kind) if numbers else "a selector for classes"
        raise ValueError(f"task={task!r} does not suit this {kind}: pass {advice}.")
    selector.set_params(**settings)


def declare_categories(
    columns: Sequence[int], names: Sequence[str] | None, selector: Any, learner: Any, *, strict: bool = True
) -> None:
    """Pass positions to models: of categorical features to a parameter `categorical` that is None, of named columns.

    Parameters
    ----------
    columns : sequence of int
        Positions of the features whose values are category codes.
    names : sequence of str, optional
        Names of all features, in the parameters of models (prices, kept columns, groups) and in messages.
    selector, learner : estimator or None
        They are changed.
    strict : bool, default=True
        Whether a selector without the parameter is an error.

    Raises
    ------
    DataError
        If a feature is categorical, and the selector has no parameter `categorical`.
    """
    for model in (selector, learner):
        name_to_position(model, names)
    if not columns:
        return
    for model in (selector, learner):
        params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
        if "categorical" in params and params["categorical"] is None:
            model.set_params(categorical=[int(j) for j in columns])
        elif strict and model is selector and selector is not None and "categorical" not in params:
            name = names[columns[0]] if names else columns[0]
            raise DataError(
                f"{type(selector).__name__} learns from numbers, but column {name!r} contains categories: encode it as"
                " numbers, or choose a selector with a parameter categorical, such as Auto or FIRES."
            )


def check_models(selector: Any, learner: Any) -> None:
    """Raise for a selector or learner of another kind; the message names what to pass.

    Raises
    ------
    ValueError
        For a name, a class, or an object without the methods of a selector or learner.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> check_models(None, RandomForestClassifier())
    Traceback (most recent call last):
    ...
    ValueError: RandomForestClassifier has no partial_fit: wrap it, as in Refit(RandomForestClassifier()).
    >>> check_models("fires", None)
    Traceback (most recent call last):
    ...
    ValueError: selector must be an estimator with partial_fit and get_support or None, got 'fires': pass FIRES().
    """
    if hasattr(learner, "fit") and not hasattr(learner, "partial_fit"):
        name = learner.__name__ if isinstance(learner, type) else type(learner).__name__
        raise ValueError(f"{name} has no partial_fit: wrap it, as in Refit({name}()).")
    for parameter, value, kind, find_entry in (
        ("selector", selector, SELECTOR, find),
        ("learner", learner, LEARNER, find_learner),
    ):
        if value is not None and not kind.accepts(value):
            hint = ""
            if isinstance(value, type):
                hint = f": pass {value.__name__}()"
            elif isinstance(value, str):
                entry = find_entry(value)  # its error suggests similar names
                arguments = ", ".join(f"{name}={part!r}" for name, part in entry.parameters)
                hint = f": pass {entry.name}({arguments})" if entry.family in ("rows", "learners") else ""
            raise ValueError(
                f"{parameter} must be {kind.description} or None, got {short_repr(value)}{hint}."
            )


def _is_regressor(learner: Any) -> bool:
    try:
        return bool(is_regressor(learner))
    except (AttributeError, TypeError):  # a third-party learner without scikit-learn's tags
        return False


def _regression_settings(kind: str) -> dict[str, Any]:
    """Return the parameters with which a selector learns from numbers."""
    return next((dict(entry.regression) for entry in CATALOG if entry.name == kind), {})


def _as_regressor(kind: str) -> str:
    if settings := _regression_settings(kind):
        return f"{kind}({', '.join(f'{name}={value!r}' for name, value in settings.items())})"
    known = [entry.name for entry in CATALOG if entry.family == "rows" and "regression" in entry.targets]
    return f"one of {', '.join(known)}"


def default_learner(*, numbers: bool) -> Any:
    """Return the default learner."""
    if not numbers:
        # A constant step follows drifts; of seven settings it is the most accurate on 21 streams (docs/linear.md).
        return SGDLogisticRegression(learning_rate="constant")
    from sklearn.linear_model import SGDRegressor

    # Under the Huber loss no single row or step can permanently distort the weights.
    return SGDRegressor(loss="huber", epsilon=1.0, random_state=0)
