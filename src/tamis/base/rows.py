"""The base class of online feature selection: a selector that is updated with batches of rows.

Updates are atomic: if `partial_fit` raises, the model is unchanged.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tamis._atomic import LARGEST_PART, atomically, parts
from tamis._validation.arrays import (
    Array,
    Floats,
    Indices,
    Ints,
    Mask,
    Rows,
    as_weights,
    fill_masked,
)
from tamis._validation.labels import as_classes, as_column, encode_labels
from tamis._validation.parameters import (
    COLUMNS,
    GROUPS,
    PRIOR,
    SEED,
    Kind,
    are_checked,
    check_parameters,
    number,
    parameters,
)
from tamis._validation.rows import has_rows, is_plain, reject_nonfinite
from tamis._validation.table import as_table
from tamis._validation.values import check_number, is_integer
from tamis.base.changing_columns import ChangingColumns
from tamis.base.column_terms import ColumnTerms
from tamis.base.declarations import Claims, Inputs
from tamis.base.numeric_target import N_LEVELS, TargetLevels
from tamis.base.prices import PRICES
from tamis.base.row_encoder import RowEncoder
from tamis.base.row_intake import RowIntake
from tamis.base.selector_mixin import SelectorMixin
from tamis.errors import DataError


class _SelectorColumns(ChangingColumns):
    """Appends and resets the columns of a selector by its hooks `_widen` and `_forget_columns`."""

    def _append_columns(self, n_features: int) -> None:
        selector: Any = self
        if not can_widen(selector):
            raise ValueError(f"{type(self).__name__} has a fixed number of columns: create a new one.")
        selector._widen(n_features)
        RowSelector._state_spec.extend(self, "j", n_features)

    def _reset_columns(self, columns: Ints) -> None:
        selector: Any = self
        if not can_forget_columns(selector):
            raise ValueError(f"{type(self).__name__} cannot forget single columns: create a new one.")
        selector._forget_columns(columns)
        RowSelector._state_spec.reset(self, "j", columns)


class RowSelector(_SelectorColumns, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Selects features while rows arrive in batches.

    A subclass is a dataclass of its parameters, or stores them in its constructor, and implements three hooks:
    `_start` allocates the state, `_learn` updates it with a batch, `_relevance` returns the scores. A method that
    determines the number of features itself sets `_chooses_count` and implements a fourth hook, `_selection`.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Current relevance of each feature; larger is more relevant. All zero while `warming_up_`.
    warming_up_ : bool
        True until features can be ranked: until rows of two classes were seen, however many are declared, or ten
        values of a target that is discretized. Until then `get_support` keeps every feature.
    classes_ : ndarray of shape (n_classes,)
        Labels in the order in which they were declared or first seen (classification only). A classification method
        discretizes a numeric target into five levels, 0 to 4 (:mod:`tamis.base.numeric_target`).
    n_seen_ : int
        Number of rows learned so far.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,), str
        Present if the first rows were a frame with column names.
    """

    _shapes = """
        n_features_in_ (=j)  feature_names_in_? fixed  classes_? (c) labels fixed  _unseen (*) int64 in [0, c) fixed
        n_seen_ in [0, 2**62)  _intake? fixed  _intake.n_unlabelled in [0, 2**62)
        _intake.levels? (its own)  _intake.levels?.cuts (c-1)  _intake.encoder? (its own)
        _terms? fixed  _terms?.keep (n_features_in_) bool  _terms?.group (n_features_in_) int64 in [0, n_features_in_)
        _terms?.worth (n_features_in_) float in (0, inf)  _terms?.prior? (n_features_in_) float in (0, inf)
        _terms?.tariff?.own (n_features_in_) float in [0, inf)
        _terms?.tariff?.member (*, n_features_in_) bool  _terms?.tariff?.fee (*) float in [0, inf)
        _intake.encoder?.totals (2, j) fill "[[0.0], [its.totals[1].max(initial=0.0)]]"
    """

    n_features_to_select: int | float
    drift_detected_: bool  # set by methods with drift detection, with `n_replay`: see `tamis.replay`
    classes_: Array
    n_features_in_: int
    n_seen_: int
    _unseen: Array = np.empty(0, np.int64)  # codes of declared classes that have not occurred yet
    feature_names_in_: Array
    _terms: ColumnTerms | None = None  # of the parameters prices, keep, groups and prior
    _intake: RowIntake = RowIntake()  # replaced by each update that changes it

    # Of those of these parameters that the class has, and of its own.
    _allowed = parameters(
        n_features_to_select=number("(0, inf)"),
        task=("classification", "regression"),
        categorical=(COLUMNS, None),
        random_state=SEED,
        prices=(*PRICES, None),
        keep=(Kind("a list of columns", lambda value: isinstance(value, list | tuple)), None),
        groups=(GROUPS, None),
        prior=(PRIOR, None),
    )

    # -- hooks ---------------------------------------------------------------------------------------------

    accepts = Inputs()
    claims = Claims()

    # Number of categories of a feature that are encoded by their index: for methods that count values.
    _n_exact_categories = 0

    _chooses_count = False  # True: `_selection` determines how many features are kept

    @abstractmethod
    def _start(self, n_features: int) -> None:
        """Validate the parameters and allocate the state."""

    @abstractmethod
    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        """Update the state with a batch: `y` contains int64 class codes, or the float64 target of a regression.

        All weights are positive: rows of weight 0 are left out.
        """

    @abstractmethod
    def _relevance(self) -> Floats:
        """Return the scores, shape (n_features,)."""

    def _selection(self) -> Mask:
        """Return which features are kept, if the method determines their number."""
        raise NotImplementedError

    def _widen(self, n_features: int) -> None:
        """Append features, in new arrays, that were 0 in all rows so far: those with a fill value in `_shapes`."""
        self._state_spec.extend(self, "j", n_features)

    def _forget_columns(self, columns: Indices) -> None:
        """Reset features, in new arrays, as if they were 0 in all rows so far: those with a fill value."""
        self._state_spec.reset(self, "j", columns)

    def clone_unfitted(self) -> Self:
        """Return an unfitted selector that can learn other rows elsewhere and then be merged with this one.

        It shares the choices fixed by the first rows, such as bin edges. Parts that started from the same selector thus
        count in the same bins, and their merged state is no larger than one of them.

        Returns
        -------
        RowSelector
        """
        _ = self.warming_up_  # raises if not fitted
        return clone(self)

    def _claims(self) -> Claims:
        """Return what the method guarantees with its parameters."""
        return self.claims

    def _is_regression(self) -> bool:
        return vars(self).get("task") == "regression"

    # -- verbs ---------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Reset the selector, then learn from the rows of `X` in order; atomic like `partial_fit`.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Optional if the method does not use labels.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        return self._fit_atomic(X, y, None, sample_weight, forget=True)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Update the model with a batch of rows. If it raises, the model is unchanged.

        Ctrl-C and other signals are delivered after the batch. A batch of more than a megabyte is processed in parts,
        unless the method is defined per batch, and a signal between two parts undoes the call. After an unexpected
        error (out of memory) while updating a model whose state is too large to copy (more than half a megabyte and the
        batch, and than is copied in a tenth of an update), every method except `fit` raises
        :class:`tamis.errors.StateError`.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            float32, float64, int or bool; NaN and infinity are rejected unless the method documents otherwise.
        y : array-like of shape (n_rows,)
            Labels of any type (or numbers, for a regression); optional if the method does not use them.
        classes : array-like, optional
            Labels known in advance; labels not listed may still appear later.
        sample_weight : array-like of shape (n_rows,), optional
            How many rows each row counts as; the exceptions are listed under Sample weights in the documentation.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If the rows, labels or weights are invalid.
        """
        if classes is None and sample_weight is None and are_checked(self):
            codes = codes_of_row(self, X, y)
            if codes is not None:
                atomically(self, learn_row, self, X, codes, n_bytes=X.nbytes, n_rows=1)
                return self
        return self._fit_atomic(X, y, classes, sample_weight, forget=False) if has_rows(X) else self

    def check_state(self) -> None:
        """Raise if a loaded selector is inconsistent: a label twice, or no classes.

        Raises
        ------
        DataError
            If so.
        """
        if not hasattr(self, "n_features_in_"):
            return
        if not self._is_regression() and not hasattr(self, "classes_"):
            raise DataError(
                f"The file contains a {type(self).__name__} without the required attribute 'classes_'."
            )
        labels = [] if self._is_regression() else self.classes_.tolist()
        if len(set(labels)) < len(labels):
            raise DataError(
                f"The file contains a {type(self).__name__} whose 'classes_' contain a label twice."
            )

    def _fit_atomic(self, X: Any, y: Any, classes: Any, sample_weight: Any, *, forget: bool) -> Self:
        check_parameters(self)
        is_first = forget or not hasattr(self, "n_features_in_")
        intake = RowIntake() if is_first else self._intake
        raw, X, names = intake.split(self, X)
        # Missing labels are rejected when labels are encoded, so known labels need no extra pass.
        y = (
            None
            if not self.accepts.labels
            else as_column(y, X.shape[0], type(self).__name__, allow_missing=True)
        )
        if sample_weight is not None:
            sample_weight = as_weights(sample_weight, X.shape[0], some=forget)
        if not is_first:
            known = feature_names(self)
            check_columns(type(self).__name__, X, names, self.n_features_in_, known)
            names = known
        if not (self.accepts.checked_in_kernel or self.accepts.categories):
            reject_nonfinite(X, names, allow_nan=self.accepts.nan)
        if sample_weight is not None and not sample_weight.all():
            reject_nonfinite(X, names, allow_nan=self.accepts.nan)
            intake.check_target(self, y)
            there = np.flatnonzero(sample_weight)
            if not len(there):
                return self
            raw = {j: [values[i] for i in there] for j, values in raw.items()}
            X, y, sample_weight = X[there], None if y is None else y[there], sample_weight[there]
        # Before anything changes: the snapshot may run out of memory too.
        target = () if is_first else intake.target_of(self, y, X.shape[0])
        n_bytes = _n_bytes(X)
        in_parts = n_bytes > LARGEST_PART[self.claims.equals_rows]
        atomically(
            self, _update, self, X, raw, names, y, classes, sample_weight, target, in_parts,
            n_bytes=n_bytes, n_rows=X.shape[0] if sample_weight is None else None, in_parts=in_parts,
            from_scratch=is_first,
        )  # fmt: skip
        return self

    # -- read-outs -----------------------------------------------------------------------------------------

    @property
    def scores_(self) -> Floats:
        """Current relevance of each feature; larger is more relevant."""
        return np.zeros(self.n_features_in_) if self.warming_up_ else self._relevance()

    @property
    def feature_importances_(self) -> Floats:
        """`scores_` for scikit-learn's `SelectFromModel`: shifted so that none is negative, 0 where there is none."""
        scores = np.nan_to_num(self.scores_, nan=-np.inf)
        known = scores[np.isfinite(scores)]
        low, high = min(known.min(initial=0.0), 0.0), known.max(initial=0.0)
        return np.clip(scores, low, high) - low

    @property
    def warming_up_(self) -> bool:
        """Whether features cannot be ranked yet."""
        if "n_seen_" not in vars(self):
            check_is_fitted(self)
        if self._is_regression():
            levels = self._intake.levels
            return levels is not None and (levels.warming_up or len(self.classes_) - len(self._unseen) < 2)
        return len(self.classes_) - len(self._unseen) < 2 and not self._intake.n_unlabelled

    def transform(self, X: Any) -> Any:
        """Return the currently selected features.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray, CSR matrix or (with ``set_output``) frame of shape (n_rows, n_kept)

        Raises
        ------
        ValueError
            If the columns differ from those of the earlier rows, or a value is infinite (or NaN, if the method does
            not accept missing values).
        """
        plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float32, np.float64) and len(X)
        if plain and vars(self).get("n_features_in_") == X.shape[1] and feature_names(self) is None:
            reject_nonfinite(X, allow_nan=self.accepts.nan)
            if (mask := self._get_support_mask()).any():
                return X[:, mask]
        table = as_table(X := fill_masked(X))
        _, rows, names = self._intake.split(self, X if table is None else table)
        reject_nonfinite(rows, names, allow_nan=self.accepts.nan or self.accepts.categories)
        return self._transform_rows(X if table is None else table)

    def _get_support_mask(self) -> Mask:
        if self.warming_up_:
            return np.ones(self.n_features_in_, dtype=bool)
        if self._chooses_count:
            mask = self._selection()
        else:
            mask = top_mask(self._relevance(), n_to_select(self.n_features_to_select, self.n_features_in_))
        return mask if self._terms is None else self._terms.complete(mask)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_seen_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.accepts.nan
        tags.target_tags.required = self.accepts.labels
        return tags


def codes_of_row(selector: RowSelector, X: Any, y: Any) -> Array | None:
    """Return the code of the label of one row that `learn_row` can learn; None for any other input.

    It is a row of an array, with moderate numbers and a class that has occurred: nothing to convert, grow or refuse.
    """
    classes = vars(selector).get("classes_")
    if not (
        classes is not None
        and type(y) is np.ndarray
        and y.shape == (1,)
        and y.dtype.kind == classes.dtype.kind != "O"
        and is_plain(X, selector.n_features_in_)
        and len(X) == 1
        and selector.accepts.labels
    ):
        return None
    known, label, intake = classes.tolist(), y.item(), selector._intake
    is_numeric = intake.encoder is None or not intake.encoder.categories
    is_known = label in known and is_numeric and intake.levels is None and not len(selector._unseen)
    return np.array([known.index(label)]) if is_known else None


def learn_row(selector: RowSelector, X: Rows, codes: Array) -> None:
    """Learn a row with the code from `codes_of_row`, within an update of the selector or of an enclosing model."""
    intake = selector._intake
    X, encoder = intake.encode(X, {}, codes, None, None)
    if encoder is not None:
        selector._intake = RowIntake(encoder, None, intake.n_unlabelled)
    selector._learn(X, codes, None)
    selector.n_seen_ += 1


def _update(
    selector: RowSelector,
    X: Rows,
    raw: dict[int, list[Any]],
    names: list[str] | None,
    y: Array | None,
    classes: Any,
    sample_weight: Array | None,
    target: tuple[Any, ...],
    in_parts: bool,
) -> None:
    """Learn validated rows; without a `target`, begin with them."""
    if not target:
        _begin(selector, X, list(raw), names, classes)
        target = selector._intake.target_of(selector, y, X.shape[0])
    intake = selector._intake
    levels, n_unlabelled = intake.levels, intake.n_unlabelled + (X.shape[0] if y is None else 0)
    y, *known = target
    if known:
        n_classes = len(selector.classes_)
        selector.classes_, selector._unseen, levels = known
        if n_classes < len(selector.classes_) or not selector.n_seen_:
            selector._state_spec.extend(selector, "c", len(selector.classes_))
    X, encoder = intake.encode(X, raw, y, sample_weight, names)
    if encoder is not intake.encoder or levels is not intake.levels or n_unlabelled > intake.n_unlabelled:
        selector._intake = RowIntake(encoder, levels, n_unlabelled)
    if in_parts:
        for rows in parts(len(y), _n_bytes(X), selector.claims.equals_rows):
            selector._learn(X[rows], y[rows], None if sample_weight is None else sample_weight[rows])
    else:
        selector._learn(X, y, sample_weight)
    selector.n_seen_ += X.shape[0]


def _begin(
    selector: RowSelector, X: Rows, categorical: list[int], names: list[str] | None, classes: Any
) -> None:
    for name in [name for name in vars(selector) if name.endswith("_")]:
        delattr(selector, name)  # `_start` allocates the rest of the state again
    selector.n_features_in_ = X.shape[1]
    if names is not None:
        selector.feature_names_in_ = np.array(names, dtype=object)
    if not selector._chooses_count:
        n_to_select(selector.n_features_to_select, selector.n_features_in_)
    selector._intake = RowIntake()
    if not selector._is_regression():
        selector.classes_ = np.array([]) if classes is None else as_classes(classes)
        selector._unseen = np.arange(len(selector.classes_))
    elif selector.accepts.levels:
        selector.classes_ = selector._unseen = np.arange(N_LEVELS)
        selector._intake = RowIntake(levels=TargetLevels())
    selector.n_seen_ = 0
    given = {name: vars(selector).get(name) for name in ("prices", "keep", "groups", "prior")}
    selector._terms = None
    if any(value is not None for value in given.values()):
        columns: list[Any] = list(names or range(selector.n_features_in_))
        selector._terms = ColumnTerms.of(**given, columns=columns, is_named=names is not None)
    selector._start(selector.n_features_in_)
    if selector.accepts.categories:
        encoder = RowEncoder(selector.n_features_in_, categorical, selector._n_exact_categories)
        selector._intake = RowIntake(encoder, selector._intake.levels)


def feature_names(selector: Any) -> list[str] | None:
    """Return the names of the columns of the first rows, if they had any."""
    names = vars(selector).get("feature_names_in_")
    return None if names is None else list(names)


def can_widen(selector: RowSelector) -> bool:
    """Return whether features can be appended."""
    is_defined = type(selector)._widen is not RowSelector._widen or _fills_features(selector)
    return is_defined and selector._claims().widens and selector._terms is None


def can_forget_columns(selector: RowSelector) -> bool:
    """Return whether single features can be reset."""
    is_own = type(selector)._forget_columns is not RowSelector._forget_columns
    return (is_own or _fills_features(selector)) and selector._claims().forgets_columns


def _fills_features(selector: RowSelector) -> bool:
    """Return whether the class declares fill values of its arrays, and of all."""
    return bool(selector._state_spec.n_filled("j") > RowSelector._state_spec.n_filled("j"))


def joint_classes(selector: RowSelector, other: RowSelector) -> tuple[Array, dict[str, Array]]:
    """Return the codes that the classes of another selector have in this one, and the attributes of the merged one."""
    codes, classes = encode_labels(other.classes_, selector.classes_)
    unseen = np.ones(len(classes), dtype=bool)
    unseen[: len(selector.classes_)][np.delete(np.arange(len(selector.classes_)), selector._unseen)] = False
    unseen[np.delete(codes, other._unseen)] = False
    return codes, {"classes_": classes, "_unseen": np.flatnonzero(unseen)}


def check_mergeable(selector: RowSelector, other: Any, may_differ: tuple[str, ...]) -> bool:
    """Return whether both selectors are fitted; reject other types, parameters or columns.

    A selector that is not fitted becomes a copy of the other.
    """
    if type(other) is not type(selector):
        raise TypeError(
            f"A {type(selector).__name__} can be merged only with another one, got a {type(other).__name__}."
        )
    for name, mine in selector.get_params(deep=False).items():
        theirs = getattr(other, name)
        is_same = mine == theirs if isinstance(mine, list | tuple | Mapping) else np.array_equal(mine, theirs)
        if name not in may_differ and not is_same:
            raise ValueError(
                f"{name} is {mine!r} here and {theirs!r} there: merge selectors with the same {name}."
            )
    if selector.accepts.levels and selector._is_regression():
        raise ValueError(
            "task='regression' discretises the target by the rows of each part, so parts cannot be merged: fit one"
            " selector on all rows, or pass classes."
        )
    if not hasattr(other, "n_seen_"):
        return False
    if not hasattr(selector, "n_seen_"):
        selector.__dict__.update({**copy.deepcopy(vars(other)), **selector.get_params(deep=False)})
        return False
    if feature_names(selector) != feature_names(other) or selector.n_features_in_ != other.n_features_in_:
        raise ValueError(
            f"The columns differ, {selector.n_features_in_} here and {other.n_features_in_} there: merge"
            " selectors of the same columns."
        )
    return True


def reject_categories(*selectors: RowSelector) -> None:
    """Reject parts with categories."""
    for one in selectors:
        if one._intake.encoder is not None and one._intake.encoder.categories:
            raise ValueError(
                "Categories are encoded by the target of earlier rows, so parts cannot be merged: pass numbers."
            )


def _n_bytes(X: Rows) -> int:
    return X.nbytes if type(X) is np.ndarray else X.data.nbytes


def check_columns(
    estimator: str, X: Rows, names: list[str] | None, n_features: int, known: list[str] | None
) -> None:
    """Reject rows with other columns than the earlier rows.

    Raises
    ------
    DataError
        If so.
    """
    if names is not None and known is not None and names != known:
        raise DataError(describe_differences(names, known))
    if X.shape[1] != n_features:
        raise DataError(
            f"X has {X.shape[1]} features, but {estimator} is expecting {n_features} features as input."
        )


def n_to_select(n_features_to_select: int | float, n_features: int) -> int:
    """Return the number of features to keep: an int unchanged, a fraction of `n_features` rounded, at least one.

    >>> n_to_select(0.1, 57), n_to_select(3, 57)
    (6, 3)
    """
    if type(n_features_to_select) is int and 1 <= n_features_to_select <= n_features:
        return n_features_to_select
    name = "n_features_to_select"
    if is_integer(n_features_to_select):
        check_number(name, n_features_to_select, low=1, high=n_features, integer=True)
        return int(n_features_to_select)
    check_number(name, n_features_to_select, low=0, high=1, open_low=True)
    return max(1, round(float(n_features_to_select) * n_features))


def top_mask(scores: Floats, n_selected: int) -> Mask:
    """Return the mask of the `n_selected` largest scores; ties go to the first columns.

    >>> top_mask(np.array([1.0, 3.0, 1.0, 2.0]), 3)
    array([ True,  True, False,  True])
    """
    n_features = scores.shape[0]
    if n_selected >= n_features:
        return np.ones(n_features, dtype=bool)
    ordered = scores.copy()
    ordered.partition(n_features - n_selected)  # `np.partition` takes twice as long for few features
    border = ordered[n_features - n_selected]
    mask: Mask = scores >= border
    if np.count_nonzero(mask) != n_selected:
        mask = scores > border
        ties = np.flatnonzero(scores == border)
        mask[ties[: n_selected - np.count_nonzero(mask)]] = True
    return mask


def describe_differences(names: list[str], known: list[str]) -> str:
    """Return the message that the columns of a frame differ from those of the first rows."""
    head = "The feature names should match those that were passed during fit."
    new, gone = [n for n in names if n not in set(known)], [n for n in known if n not in set(names)]
    if not new and not gone and len(names) == len(known):
        at = next(i for i, (a, b) in enumerate(zip(names, known, strict=True)) if a != b)
        return f"{head} Column {at} is {names[at]!r}, was {known[at]!r}: Feature names must be in the same order."
    parts = [
        f"{prefix}: {', '.join(map(repr, some[:5]))}{' ...' if len(some) > 5 else ''}"
        for prefix, some in (
            ("Feature names unseen at fit time", new),
            ("Feature names seen at fit time, yet now missing", gone),
        )
        if some
    ]
    return f"{head} {'; '.join(parts)}."
