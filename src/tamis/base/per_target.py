"""PerTarget: one selection for each of several targets, and one for all of them.

Each target has a selector of its own, which learns the same rows: a target may be a class or a number, and drifts by
itself. The shared selection is the union: a column is acquired, and paid for, once for all targets that need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tamis._atomic import atomic, atomically
from tamis._guard import ThreadSafe
from tamis._shapes import state_error
from tamis._validation.arrays import Array, Floats, Ints, Mask, as_array, as_weights, reject_masked
from tamis._validation.labels import as_column, missing_labels, reject_missing
from tamis._validation.parameters import Kind, check_parameters, parameters
from tamis._validation.rows import as_rows, has_rows, reject_nonfinite
from tamis._validation.table import as_table
from tamis._validation.values import short_repr
from tamis.base.changing_columns import ChangingColumns
from tamis.base.rows import RowSelector, feature_names
from tamis.base.selector_mixin import SelectorMixin
from tamis.errors import DataError

_TASKS = ("classification", "regression")


def columns_of_targets(y: Any, n_rows: int | None = None) -> tuple[list[Array], list[str] | None]:
    """Return the columns of several targets, or of one in a one-dimensional array, and their names in a frame.

    Examples
    --------
    >>> columns_of_targets([[1, "a"], [2, "b"]], 2)
    ([array([1, 2]), array(['a', 'b'], dtype='<U1')], None)
    """
    if y is None:
        raise DataError("PerTarget requires y to be passed, but the target y is None.")
    reject_masked("y", y)
    if (table := as_table(y)) is not None:
        columns, names = [table.column(j).to_numpy() for j in range(len(table.texts))], table.texts
    else:
        try:  # of a list, each column has its own type
            rows = np.array(y, dtype=object) if isinstance(y, Sequence) else np.asarray(y)
            rows = rows[:, None] if rows.ndim == 1 else rows
            columns, names = list(np.ascontiguousarray(rows.T)), None
            if rows.dtype == object:
                columns = [as_array("y", column.tolist()) for column in columns]
        except (ValueError, TypeError):
            rows = np.empty(())
        if rows.ndim != 2:
            raise DataError(
                f"y must have shape (n_rows, n_targets), got {short_repr(y)}: pass a column per target."
            )
    if not columns:
        raise DataError("y has 0 targets: pass at least one column.")
    n_rows = len(columns[0]) if n_rows is None else n_rows
    return [as_column(column, n_rows, "PerTarget", allow_missing=True) for column in columns], names


def _labelled(column: Array) -> tuple[Array, Ints | None]:
    """Return the labels that are not missing, and their rows, or None for all; reject infinity."""
    missing = missing_labels(column)
    if not missing.any():
        return column, None
    filled = column.copy()
    filled[missing] = 0
    reject_missing(filled)
    there = np.flatnonzero(~missing)
    known = column[there]
    return as_array("y", known.tolist()) if known.dtype == object else known, there


def _rows_at(X: Any, there: Ints) -> Any:
    """Return these rows of an array, a CSR matrix, a frame or a list."""
    if (table := as_table(X)) is not None:
        return nw.from_native(table.native, eager_only=True)[there].to_native()
    return X[there] if hasattr(X, "shape") else [X[i] for i in there]


def is_numeric_target(column: Array) -> bool:
    """Return whether a target contains a number that is not whole, and so has no classes."""
    return column.dtype.kind == "f" and bool((column[np.isfinite(column)] % 1.0 != 0.0).any())


class SeveralTargets(ThreadSafe, BaseEstimator):  # type: ignore[misc]
    """What models with a selector for each target have in common."""

    selector: Any
    selectors_: list[Any]
    targets_: list[str]

    def _new_names(self, names: list[str] | None, n_targets: int, parameter: str) -> list[str]:
        """Return the names of new targets, of which `parameter` has an entry for each."""
        given = getattr(self, parameter)
        if given is not None and len(given) != n_targets:
            raise ValueError(
                f"{parameter} must have an entry for each of {n_targets} targets, got {len(given)}."
            )
        if names is not None and len(set(names)) < n_targets:
            raise DataError(f"y has two targets of the same name, among {short_repr(names)}: rename one.")
        return [f"y{at}" for at in range(n_targets)] if names is None else names

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        check_is_fitted(self)
        return int(self.selectors_[0].n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features, if the rows of a frame were learned; otherwise absent."""
        check_is_fitted(self)
        if feature_names(self.selectors_[0]) is None:
            raise AttributeError("The first rows had no column names.")
        return np.asarray(self.selectors_[0].feature_names_in_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags = get_tags(self.selector).input_tags
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "selectors_")


@contextmanager
def of_target(name: str) -> Iterator[None]:
    """Name the target in the message of a DataError."""
    try:
        yield
    except DataError as error:
        raise DataError(f"Target {name!r}: {error}") from None


@dataclass(eq=False, repr=False)
class PerTarget(SelectorMixin, ChangingColumns, SeveralTargets):
    """Selects features for several targets at once with any row selector: for each target, and for all.

    Parameters
    ----------
    selector : RowSelector
        The selector; each target gets a clone.
    tasks : list of {"classification", "regression"}, optional
        The task of each target, for a selector with a parameter `task`. By default, "regression" for numbers of which
        one in the first rows is not whole, and otherwise the task of the selector.

    Attributes
    ----------
    selectors_ : list of RowSelector
        The fitted selector of each target.
    targets_ : list of str
        Names of the targets: those of the frame, or ``y0``, ``y1`` and so on.
    support_by_target_ : ndarray of shape (n_targets, n_features), bool
        The features selected for each target. `get_support` returns those selected for any.
    scores_by_target_ : ndarray of shape (n_targets, n_features), float64
        The scores of each selector; those of different targets may have different units.
    price_ : float
        Price of the shared selection, by the `prices` of the selector; without prices, its size. A column that several
        targets need is paid once.
    n_features_in_ : int
    n_seen_ : int
        Number of rows learned, by the target with the most labels.
    feature_names_in_ : ndarray of shape (n_features,), str
        Present if the first rows were a frame with column names.

    Raises
    ------
    DataError
        If rows or a target are invalid, with the name of the target, the targets are not those of the earlier rows, or
        a target has no label in the first rows; the model is then unchanged.

    Notes
    -----
    A row is skipped by the targets whose label is missing: None, NaN or NaT. Each selector has the bits of one that
    learned the labelled rows of its target alone. For T and Fisher scores, the sums of dense rows are computed in one
    pass for all targets that have all labels of a batch.

    Examples
    --------
    A class that depends on two features, and a number that depends on one of them and a third:

    >>> import numpy as np
    >>> from tamis import ForwardPartialCorrelation, PerTarget
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 20))
    >>> noise = rng.normal(size=(2000, 2))
    >>> y = [[bool(c > 0), float(v)] for c, v in zip(X[:, 2] + X[:, 5] + noise[:, 0], X[:, 5] - X[:, 9] + noise[:, 1])]
    >>> model = PerTarget(ForwardPartialCorrelation(2)).fit(X, y)
    >>> [np.flatnonzero(mask).tolist() for mask in model.support_by_target_], model.get_support(indices=True)
    ([[2, 5], [5, 9]], array([2, 5, 9]))
    >>> model.price_
    3.0
    """

    _allowed = parameters(
        selector=Kind("a row selector", lambda value: isinstance(value, RowSelector)),
        tasks=(
            Kind(
                "a list of 'classification' and 'regression'",
                lambda value: isinstance(value, list | tuple) and set(value) <= {*_TASKS},
            ),
            None,
        ),
    )

    selector: RowSelector
    _: KW_ONLY
    selectors_: list[RowSelector] = field(init=False)
    targets_: list[str] = field(init=False)
    tasks: Any = None

    def check_state(self) -> None:
        """Raise if the selectors of a loaded model differ in their columns.

        Raises
        ------
        StateError
            If so.
        """
        widths = [one.n_features_in_ for one in vars(self).get("selectors_", [])]
        if len(set(widths)) > 1 or len(vars(self).get("targets_", [])) != len(widths):
            raise state_error("The selectors of a PerTarget have not learned the same columns")

    # -- learning ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Reset the model, then learn from these rows in order; see `partial_fit`."""
        return self._fit_atomic(X, y, None, sample_weight, forget=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Update the model with a batch of rows. If it raises, the model is unchanged.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
        y : array-like or frame of shape (n_rows, n_targets)
            Of a frame, the names of the columns are those of the targets. A target skips the rows in which it is None
            or NaN, but needs a label in the first rows.
        classes : list of array-like, optional
            Labels of each target known in advance; None for a number.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        return self._fit_atomic(X, y, classes, sample_weight, forget=False) if has_rows(X) else self

    def _fit_atomic(self, X: Any, y: Any, classes: Any, sample_weight: Any, *, forget: bool) -> Self:
        check_parameters(self)
        # Read once for all targets, unless a selector encodes categories.
        rows = X if self.selector.accepts.categories or as_table(X) is not None else as_rows(X)[0]
        n_rows = rows.shape[0] if hasattr(rows, "shape") else len(rows)
        columns, names = columns_of_targets(y, n_rows)
        is_first = forget or not hasattr(self, "selectors_")
        names = (
            self._new_names(names, len(columns), "tasks") if is_first else self._known_names(names, columns)
        )
        if classes is not None and len(classes) != len(columns):
            raise ValueError(
                f"classes must have an entry for each of {len(columns)} targets, got {len(classes)}."
            )
        weights = as_weights(sample_weight, n_rows, some=forget)
        if is_first and weights is not None and not weights.any():
            return self
        selectors, labels, codes = [], [], []
        for at, (name, column) in enumerate(zip(names, columns, strict=True)):
            with of_target(name):
                known, there = _labelled(column)
                labels.append((known, there))
                selectors.append(selector := self._new(at, known) if is_first else self.selectors_[at])
                if is_first:
                    selector._intake.check_target(selector, known)
                    if there is not None and not (len(there) if weights is None else weights[there].any()):
                        raise DataError(
                            "none of the first rows has a label (Input y contains NaN or None): pass a row with one."
                        )
                elif len(known):
                    target = selector._intake.target_of(selector, known, len(known))
                    codes += [target[0]] if there is None else []
        if any(there is not None for _, there in labels) and not self.selector.accepts.categories:
            # A selector would name the row among those with a label.
            reject_nonfinite(*as_rows(rows), allow_nan=self.selector.accepts.nan)
        n_bytes = int(getattr(rows, "nbytes", 0))
        atomically(
            self, self._update, selectors, names, rows, labels, codes, classes, weights,
            n_bytes=n_bytes, from_scratch=is_first,
        )  # fmt: skip
        return self

    def _known_names(self, names: list[str] | None, columns: list[Array]) -> list[str]:
        if len(columns) != len(self.targets_) or (names is not None and names != self.targets_):
            raise DataError(
                f"y has the targets {short_repr(names or len(columns))}, but had {short_repr(self.targets_)} in earlier"
                " rows: pass the same targets in the same order."
            )
        return self.targets_

    def _new(self, at: int, column: Array) -> RowSelector:
        selector: RowSelector = clone(self.selector)
        if "task" in selector.get_params(deep=False):
            own = "regression" if is_numeric_target(column) else selector.get_params(deep=False)["task"]
            selector.set_params(task=own if self.tasks is None else self.tasks[at])
        elif self.tasks is not None:
            raise ValueError(
                f"tasks={short_repr(self.tasks)}, but {type(selector).__name__} has no parameter task: omit tasks."
            )
        return selector

    def _update(
        self,
        selectors: list[RowSelector],
        names: list[str],
        X: Any,
        labels: list[tuple[Array, Ints | None]],
        codes: list[Array],
        classes: Any,
        sample_weight: Any,
    ) -> None:
        plain = type(X) is np.ndarray and X.dtype == np.float64 and X.flags.c_contiguous
        shares = (
            plain
            and codes
            and len(X) > 1
            and X.size
            and sample_weight is None
            and hasattr(self.selector, "_sharing")
        )
        with self.selector._sharing(X, codes) if shares else nullcontext():
            for at, (selector, (known, there)) in enumerate(zip(selectors, labels, strict=True)):
                own, weights = X, sample_weight
                if there is not None:
                    own, weights = _rows_at(X, there), None if weights is None else weights[there]
                selector.partial_fit(own, known, None if classes is None else classes[at], weights)
        self.selectors_, self.targets_ = selectors, names

    def _append_columns(self, n_features: int) -> None:
        for one in self.selectors_:
            one.widen(n_features)

    def _reset_columns(self, columns: Ints) -> None:
        for one in self.selectors_:
            one.forget_columns(columns)

    @available_if(lambda self: hasattr(self.selector, "merge"))  # type: ignore[untyped-decorator]
    @atomic
    def merge(self, other: Self, **how: Any) -> Self:
        """Add what another model has learned from other rows of the same stream, if the selector can be merged.

        Parameters
        ----------
        other : PerTarget
            With the same targets and columns.
        **how
            Of the `merge` of the selector, such as ``when="after"``.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If `other` is not a PerTarget.
        ValueError
            If its targets, columns or parameters differ.
        """
        if type(other) is not type(self):
            raise TypeError(f"A PerTarget can be merged only with another one, got a {type(other).__name__}.")
        if not hasattr(other, "selectors_"):
            return self
        selectors = vars(self).get("selectors_") or [clone(one) for one in other.selectors_]
        names = vars(self).get("targets_", other.targets_)
        if names != other.targets_:
            raise ValueError(
                f"The targets are {short_repr(names)} here and {short_repr(other.targets_)} there: merge models of the"
                " same targets."
            )
        for one, theirs in zip(selectors, other.selectors_, strict=True):
            one.merge(theirs, **how)
        self.selectors_, self.targets_ = selectors, list(names)
        return self

    # -- read-outs -----------------------------------------------------------------------------------------

    @property
    def support_by_target_(self) -> Mask:
        """The features selected for each target."""
        check_is_fitted(self)
        return np.array([selector.get_support() for selector in self.selectors_])

    @property
    def scores_by_target_(self) -> Floats:
        """The scores of each selector."""
        check_is_fitted(self)
        return np.array([selector.scores_ for selector in self.selectors_])

    @property
    def price_(self) -> float:
        """Price of the shared selection."""
        mask, terms = self.get_support(), self.selectors_[0]._terms
        return float(mask.sum()) if terms is None else float(terms.total(mask[None])[0])

    @property
    def n_seen_(self) -> int:
        """Number of rows learned so far, by the target with the most labels."""
        check_is_fitted(self)
        return max(one.n_seen_ for one in self.selectors_)

    def table(self) -> dict[str, NDArray[Any]]:
        """Return which features are selected for which target, one row per feature.

        Returns
        -------
        dict of str to ndarray of shape (n_features,)
            "feature", "selected" (for any target), and one column per target. It can be converted to a data frame.
        """
        support = self.support_by_target_
        features = feature_names(self.selectors_[0]) or [f"x{j}" for j in range(self.n_features_in_)]
        by_target = dict(zip(self.targets_, support, strict=True))
        return {"feature": np.array(features, dtype=object), "selected": support.any(axis=0), **by_target}

    def _get_support_mask(self) -> Mask:
        return np.asarray(self.support_by_target_.any(axis=0))
