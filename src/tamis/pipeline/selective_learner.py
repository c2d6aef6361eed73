"""A selector and a learner that knows nothing but what it selects, and what happens to both with a batch.

    1. the columns that were selected before the batch, standardised by the rows before it, go to the learner
    2. the selector learns from the whole batch, and selects
    3. the learner learns from the batch, or restarts from the last rows if the selection says that it must
    4. the scale of the columns learns from the batch

The first batch trains both: the learner has all columns then, and the scale has seen the batch.
"""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_regressor

from tamis._check import Array, Rows, refuse_nonfinite
from tamis.base import RowSelector
from tamis.catalog import CATALOG
from tamis.errors import DataError
from tamis.learners.column_masking import accepts_nan
from tamis.pipeline.masked_learner import MaskedLearner, MaskedRegressor, View
from tamis.pipeline.masking import Masker
from tamis.pipeline.scaling import RunningScale, wants_scale
from tamis.replay import Replay

__all__ = ["SelectiveLearner", "predicts_numbers", "usual_learner"]


class SelectiveLearner:
    """A selector and a learner, between two batches.

    Parameters
    ----------
    selector : estimator with `partial_fit` and `get_support`, or None
        None selects every column.
    learner : classifier or regressor with `partial_fit`
        Both are fitted themselves.
    classes : ndarray of shape (n_classes,)
        Labels known in advance; empty where numbers are predicted.
    numbers : bool
        Whether numbers are predicted.
    scale : {"auto", "standard", "none"}
    masking : {"auto", "zeros"}
    replay : {"auto", "never"} or int
        As for :func:`tamis.prequential`.

    Attributes
    ----------
    learner : MaskedLearner
    scale : RunningScale or None
        None where columns are not scaled, and before `begin`.
    mask, support : ndarray or None
        The selection now, and its columns; None: there is none yet, and every column is used.
    replays : int
        How often the learner restarted from the last rows.
    n_seen : int
        Rows that were seen, with or without their labels.

    Examples
    --------
    >>> from sklearn.linear_model import Perceptron
    >>> from tamis import TScore
    >>> X, y = np.array([[9.0, 1.0], [8.0, 2.0], [9.0, 11.0], [8.0, 12.0]]), np.array([0, 0, 1, 1])
    >>> pair = SelectiveLearner(
    ...     TScore(1), Perceptron(random_state=0), np.array([0, 1]), numbers=False, scale="auto", masking="auto",
    ...     replay="auto",
    ... )
    >>> for _ in range(2):
    ...     pair.learn(X, y, pair.learner.classes)
    >>> pair.support, pair.learner.predict(pair.view(X))
    (array([1]), array([0, 0, 1, 1]))
    """

    def __init__(
        self, selector: Any, learner: Any, classes: Array, *, numbers: bool, scale: str, masking: str,
        replay: str | int,
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
        self.replay = Replay(selector, replay)
        self.replays = 0
        self.mask: NDArray[np.bool_] | None = None
        self.support: NDArray[np.intp] | None = None
        self.is_open = False  # nothing was learned yet
        self.n_features, self.n_seen, self.is_sparse = 0, 0, False  # of the rows

    def begin(self, n_features: int, *, is_sparse: bool) -> None:
        """Make what depends on the columns, before the first batch."""
        self.n_features, self.is_sparse = n_features, is_sparse
        if self.scaling == "standard" and (self.is_sure_to_scale or not is_sparse):
            self.scale = RunningScale(n_features)

    # -- a batch -------------------------------------------------------------------------------------------

    def learn(self, X: Rows, y: Array, classes: Array, declared: Array | None = None) -> None:
        """Learn from a batch whose labels are among the classes; `declared` are those known before the first."""
        if not self.is_open:
            self.begin(X.shape[1], is_sparse=sp.issparse(X))
            self.see(X)
            self.open(X, y, classes, declared)
            return
        view = self.view(X)
        self.teach_selector(X, y)
        self.teach_learner(view, X, y, classes, renewed=self.select())
        self.see(X)

    def open(self, X: Rows, y: Array, classes: Array, declared: Array | None) -> None:
        """Learn from the first batch."""
        if isinstance(self.selector, RowSelector) and not self.selector._is_regression():
            self.selector.partial_fit(X, y, classes=declared)
        else:
            self.teach_selector(X, y)
        self.is_open = True
        self.replay.add(X, y)
        self.learner.learn(self.view(X), y, classes)
        if self.select():
            self.begin_anew(classes)

    def see(self, X: Rows) -> None:
        """Learn the scale of the columns."""
        self.n_seen += X.shape[0]
        if self.scale is not None:
            self.scale.update(X)

    def teach_selector(self, X: Rows, y: Array) -> None:
        """Let the selector learn."""
        if self.selector is not None:
            self.selector.partial_fit(X, y)

    def select(self) -> bool:
        """Take over the selection; return whether the learner is to restart."""
        if self.selector is None or (self.mask is None and getattr(self.selector, "waiting_", False)):
            return False
        mask = np.array(self.selector.get_support(), dtype=bool)  # a copy: the selector may write in its own
        changed = self.mask is None or bool((mask != self.mask).any())
        if changed:
            self.mask, self.support = mask, np.flatnonzero(mask)
        return self.replay.is_due(changed=changed)

    def teach_learner(self, view: View, X: Rows, y: Array, classes: Array, *, renewed: bool) -> None:
        """Let the learner learn from a view of the batch, or restart."""
        self.replay.add(X, y)
        if renewed:
            self.begin_anew(classes)
        else:
            self.learner.learn(view, y, classes)

    def begin_anew(self, classes: Array) -> None:
        """Let the learner forget, and learn from the last rows with the columns selected now."""
        self.learner.forget()
        self.learner.classes = classes
        self.replays += 1
        if (kept := self.replay.rows()) is not None:
            self.learner.learn(self.view(kept[0]), kept[1], classes)

    def view(self, X: Rows) -> View:
        """Return what the learner is given of rows now."""
        return self.learner.view(X, self.mask, self.support, self.scale)

    def refuse(self, error: Exception, X: Rows, names: list[str] | None) -> None:
        """Say of NaN and infinity, if these are why rows were refused, where they are.

        The selector knows no names of columns, and of NaN scikit-learn's learners tell no more than that it is. Where
        selector and learner take NaN, it is not why.
        """
        takes = all(accepts_nan(one) for one in (self.selector, self.learner.model) if one is not None)
        is_masked = self.mask is not None and self.support is not None and not isinstance(error, DataError)
        seen: Any = Masker().mask(X, self.mask, self.support) if is_masked else X  # type: ignore[arg-type]
        refuse_nonfinite(seen, names, allow_nan=takes)

    # -- state ---------------------------------------------------------------------------------------------

    def another(self) -> Self:
        """Return a copy that learns without changing this one."""
        twin = copy(self)
        twin.replay, twin.learner = copy(self.replay), copy(self.learner)
        twin.replay.restore([*self.replay.batches])  # which are never written to
        twin.selector = twin.replay.selector = deepcopy(self.selector)
        twin.learner.model = deepcopy(self.learner.model)
        twin.learner.rest()
        twin.scale = deepcopy(self.scale)
        if isinstance(twin.learner, MaskedRegressor):
            twin.learner.target = deepcopy(twin.learner.target)
        return twin

    def state(self) -> dict[str, Any]:
        """Return all there is to save."""
        return {name: getattr(self, name) for name in _KEPT} | {
            "recent": self.replay.batches,
            "learner": self.learner.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what was saved; selector and model become the saved ones and stay the same objects."""
        self.replay.restore(state.pop("recent"))
        if (saved := state.pop("selector")) is not None:
            self.selector.__dict__ = saved.__dict__
        self.learner.restore(state.pop("learner"))
        self.__dict__.update(state)


_KEPT = (
    "selector", "scale", "mask", "support", "replays", "n_features", "n_seen", "is_open", "is_sparse",
)  # fmt: skip


def predicts_numbers(selector: Any, learner: Any) -> bool:
    """Return what is predicted: as the learner says, or without one the selector; what y looks like says nothing.

    Raises
    ------
    ValueError
        If the two do not go together.

    Examples
    --------
    >>> from sklearn.linear_model import SGDRegressor
    >>> from tamis import FIRES
    >>> predicts_numbers(None, SGDRegressor()), predicts_numbers(FIRES(), None)
    (True, False)
    >>> predicts_numbers(FIRES(), SGDRegressor())
    Traceback (most recent call last):
    ...
    ValueError: SGDRegressor predicts numbers, but FIRES is set to learn classes: choose FIRES(model='gaussian').
    """
    is_own = isinstance(selector, RowSelector)
    if learner is None:
        return bool(is_own and selector._is_regression())
    numbers = _is_regressor(learner)
    if is_own and selector._is_regression() != numbers:
        given, kind = type(learner).__name__, type(selector).__name__
        says = ("numbers", "classes") if numbers else ("classes", "numbers")
        raise ValueError(
            f"{given} predicts {says[0]}, but {kind} is set to learn {says[1]}: choose"
            f" {_that_learns_numbers(kind) if numbers else 'a regressor'}."
        )
    return numbers


def _is_regressor(learner: Any) -> bool:
    try:
        return bool(is_regressor(learner))
    except (AttributeError, TypeError):  # somebody else's, without scikit-learn's tags
        return False


def _that_learns_numbers(kind: str) -> str:
    told = next((dict(entry.regression) for entry in CATALOG if entry.name == kind), {})
    if told:
        return f"{kind}({', '.join(f'{name}={value!r}' for name, value in told.items())})"
    known = [entry.name for entry in CATALOG if entry.family == "rows" and "regression" in entry.targets]
    return f"one of {', '.join(known)}"


def usual_learner(*, numbers: bool) -> Any:
    """Return the learner where none is named."""
    from sklearn.linear_model import Perceptron, SGDRegressor

    # Huber's loss: no row, and no unlucky step in many columns, throws the weights out for good.
    return SGDRegressor(loss="huber", epsilon=1.0, random_state=0) if numbers else Perceptron(random_state=0)
