"""Estimators of other libraries: created by name, seeded, and informed of categorical columns.

A fit of an estimator on the last rows, saved as these rows and the unfitted estimator.

scikit-learn's estimators, and compatible ones, have no file format except pickle, which executes code when it is read.
The rows and the unfitted estimator can be saved without it, and refitting the estimator on them gives the same model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from tamis._guard import limited_threads
from tamis._shapes import state_error
from tamis._validation import Array, Floats, Indices, Ints, Mask, Rows
from tamis.errors import DataError, import_extra

# -- The last rows of a stream, in immutable blocks shared by the copies of a model ----------------------

# Minimum rows per block: 10,000 single rows are 156 arrays to concatenate, not 10,000.
_MIN_BLOCK = 64


class Block(NamedTuple):
    """Consecutive rows, with their codes or targets, and their weights (None: 1 each)."""

    X: Rows
    y: Array
    weights: Array | None

    def take(self, rows: Any) -> Block:
        """Return some of the rows, by a slice or mask."""
        return Block(self.X[rows], self.y[rows], None if self.weights is None else self.weights[rows])


class RecentRows:
    """The last rows; immutable: adding rows returns another object that shares the blocks.

    Parameters
    ----------
    blocks, tail : tuple of tuples (X, y, weights)
        In order of arrival; the blocks of the tail are small and are merged later.
    n_rows : int
        Number of last rows that count.

    Examples
    --------
    >>> rows = RecentRows()
    >>> for at in range(5):
    ...     rows = rows.with_rows(Block(np.array([[float(at)]]), np.array([at]), None), max_rows=3)
    >>> rows.concatenate().y.tolist()
    [2, 3, 4]
    """

    def __init__(
        self,
        blocks: tuple[tuple[Rows, Array, Array | None], ...] = (),
        tail: tuple[tuple[Rows, Array, Array | None], ...] = (),
        n_rows: int = 0,
    ) -> None:
        self.blocks, self.tail, self.n_rows = blocks, tail, n_rows

    def __deepcopy__(self, memo: dict[int, Any]) -> RecentRows:
        return self

    def with_rows(self, block: Block, max_rows: int) -> RecentRows:
        """Return the last `max_rows` rows after appending a block, which must not be written to later.

        Fewer than `max_rows` rows, one block and 64 rows are stored.
        """
        n_new = len(block.y)
        blocks, tail = self.blocks, (*self.tail, tuple(block))
        n_rows = min(self.n_rows + n_new, max_rows)
        if n_new >= _MIN_BLOCK or len(tail) >= _MIN_BLOCK or sum(len(y) for _, y, _ in tail) >= _MIN_BLOCK:
            blocks, tail = (*blocks, tuple(_join(tail))), ()
            first, n_held = 0, sum(len(y) for _, y, _ in blocks)
            while n_held - len(blocks[first][1]) >= n_rows:
                n_held -= len(blocks[first][1])
                first += 1
            blocks = blocks[first:]
        return RecentRows(blocks, tail, n_rows)

    def changed(self, change: Callable[[Rows], Rows]) -> RecentRows:
        """Return the rows with other columns."""
        blocks, tail = (
            tuple((change(X), y, weights) for X, y, weights in part) for part in (self.blocks, self.tail)
        )
        return RecentRows(blocks, tail, self.n_rows)

    def last(self, n_rows: int) -> RecentRows:
        """Return the last `n_rows` of the rows."""
        return RecentRows(self.blocks, self.tail, min(n_rows, self.n_rows))

    def concatenate(self) -> Block:
        """Return the rows as one block."""
        block = _join((*self.blocks, *self.tail))
        start = len(block.y) - self.n_rows
        return block.take(slice(start, None)) if start else block

    def check(self, n_features: int, n_codes: int | None, *, is_sparse: bool) -> None:
        """Validate loaded rows; `n_codes`: number of classes, None for a regression.

        Raises
        ------
        StateError
            If the state is inconsistent with `n_features` columns.
        """
        n_held = 0
        for X, y, weights in (*self.blocks, *self.tail):
            fits = (
                sp.issparse(X) == is_sparse
                and isinstance(y, np.ndarray)
                and X.shape == (len(y), n_features)
                and X.dtype.kind == "f"
                and not np.isinf(X.data if is_sparse else X).any()
                and y.shape == (len(y),)
                and y.dtype == (np.float64 if n_codes is None else np.int64)
                and bool(np.isfinite(y).all() if n_codes is None else ((y >= 0) & (y < n_codes)).all())
                and (weights is None or (weights.shape == y.shape and bool((weights >= 0.0).all())))
            )
            if not fits:
                raise state_error("The rows of a Refit do not match its columns and classes")
            n_held += len(y)
        if not 0 <= self.n_rows <= n_held:
            raise state_error(f"A Refit counts {self.n_rows} rows of {n_held}")


def _join(blocks: tuple[tuple[Rows, Array, Array | None], ...]) -> Block:
    if len(blocks) == 1:
        return Block(*blocks[0])
    parts, targets, weights = zip(*blocks, strict=True)
    try:
        X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    except ValueError:
        raise state_error("The blocks of a Refit's rows have different columns") from None
    if all(one is None for one in weights):
        return Block(X, np.concatenate(targets), None)
    filled = [np.ones(len(y)) if w is None else w for y, w in zip(targets, weights, strict=True)]
    return Block(X, np.concatenate(targets), np.concatenate(filled))


# -- Estimators of other libraries: created by name, seeded, and informed of categorical columns ---------


def _lightgbm(name: str) -> Any:
    lightgbm = import_extra("lightgbm", "estimator='lightgbm' needs LightGBM", "boosting")
    # Without these two, LightGBM times two ways of building histograms and chooses the faster: results then vary.
    return getattr(lightgbm, name)(n_jobs=1, verbose=-1, deterministic=True, force_col_wise=True)


def _random_forest(name: str) -> Any:
    from sklearn import ensemble

    return getattr(ensemble, name)(n_jobs=1)


def _hist_boosting(name: str) -> Any:
    from sklearn import ensemble

    return getattr(ensemble, name)()


# The estimators available by name, and the functions that create them.
NAMES: dict[str, Callable[[], Any]] = {
    "lightgbm": lambda: _lightgbm("LGBMClassifier"),
    "lightgbm-regressor": lambda: _lightgbm("LGBMRegressor"),
    "random-forest": lambda: _random_forest("RandomForestClassifier"),
    "random-forest-regressor": lambda: _random_forest("RandomForestRegressor"),
    "hist-boosting": lambda: _hist_boosting("HistGradientBoostingClassifier"),
    "hist-boosting-regressor": lambda: _hist_boosting("HistGradientBoostingRegressor"),
}


def new_recipe(estimator: Any, seed: int | None) -> Any:
    """Return an unfitted estimator; each of its `random_state` parameters that is None gets the seed.

    Examples
    --------
    >>> new_recipe("random-forest", 7).random_state
    7
    """
    recipe = NAMES[estimator]() if isinstance(estimator, str) else clone(estimator)
    parameters = recipe.get_params(deep=True)
    unset = [
        name for name, value in parameters.items() if name.split("__")[-1] == "random_state" and value is None
    ]
    return recipe.set_params(**dict.fromkeys(sorted(unset), seed)) if unset else recipe


def library_of(estimator: Any) -> str:
    """Return the top-level package of an estimator's class, or that of the library that it inherits from."""
    packages = [base.__module__.partition(".")[0] for base in type(estimator).__mro__]
    return next((name for name in packages if name in ("lightgbm", "xgboost", "catboost")), packages[0])


def accepts_weights(estimator: Any) -> bool:
    """Return whether `fit` has a parameter `sample_weight`."""
    return bool(has_fit_parameter(estimator, "sample_weight"))


def importances_of(model: Any, X: Any, y: Array) -> Floats:
    """Return the importance of each column for a fitted model.

    LightGBM: the total gain of its splits. Others: `feature_importances_`, or without them the loss of log-likelihood
    (or R^2) if the values of a column are permuted in the last thousand rows.
    """
    if library_of(model) == "lightgbm":
        return np.asarray(model.booster_.feature_importance("gain"), dtype=np.float64)
    if hasattr(model, "feature_importances_"):
        return np.asarray(model.feature_importances_, dtype=np.float64)
    from sklearn.inspection import permutation_importance

    X, y = X[-_PERMUTED:], y[-_PERMUTED:]
    has_proba = hasattr(model, "predict_proba") and len(np.unique(y)) == len(model.classes_)
    scoring = "neg_log_loss" if has_proba else None
    X = X.toarray() if sp.issparse(X) else X
    result = permutation_importance(model, X, y, scoring=scoring, n_repeats=1, random_state=0)
    return np.maximum(result.importances_mean, 0.0)


def with_categories(estimator: Any, X: Rows, categorical: Indices) -> tuple[Any, dict[str, Any]]:
    """Return the rows in the format of the estimator's `fit` and `predict`, and the options of `fit`.

    Parameters
    ----------
    estimator : estimator
        Unfitted or fitted; a parameter that names categorical columns is set where the library has one.
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    categorical : ndarray of int
        Categorical columns, whose numbers are codes.

    Notes
    -----
    LightGBM: `categorical_feature` of `fit`. XGBoost: its parameters `feature_types` and `enable_categorical`.
    CatBoost: `cat_features` of `fit`, the columns as text. scikit-learn's histogram boosting: its parameter
    `categorical_features`, for columns with at most 255 categories in the rows. Other estimators get the codes as
    numbers.
    """
    if len(categorical) == 0 or sp.issparse(X):
        return X, {}
    library = library_of(estimator)
    if library == "lightgbm":
        return X, {"categorical_feature": categorical.tolist()}
    if library == "xgboost":
        types = np.full(X.shape[1], "q", dtype=object)
        types[categorical] = "c"
        estimator.set_params(feature_types=types.tolist(), enable_categorical=True)
    elif library == "catboost":
        cells = X.astype(object)
        cells[:, categorical] = X[:, categorical].astype(str)
        return cells, {"cat_features": categorical.tolist()}
    elif type(estimator).__name__.startswith("HistGradientBoosting"):
        few = [j for j in categorical.tolist() if len(np.unique(X[~np.isnan(X[:, j]), j])) <= _MOST_BINS]
        estimator.set_params(categorical_features=few)
    return X, {}


_MOST_BINS = 255
_PERMUTED = 1000


class Fitted(NamedTuple):
    """A fitted estimator.

    Attributes
    ----------
    model : estimator or None
        None: the rows had a single class, or no column was selected.
    present : ndarray of int
        Codes of the classes in the rows, in the order of the model's classes.
    constant : ndarray
        Proportion of each class present, or the mean target: the prediction without a model.
    fill : ndarray or None
        Means of the columns, for an estimator that does not accept missing values.
    """

    model: Any
    present: Ints
    constant: Floats
    fill: Floats | None


# The fitted estimators: fitted on first use, and never part of a saved or copied state.
_fitted: WeakKeyDictionary[Fit, Fitted] = WeakKeyDictionary()


class Fit:
    """The rows, the columns and the unfitted estimator of a fit; immutable.

    Parameters
    ----------
    recipe : estimator
        Unfitted.
    rows : RecentRows
    columns : ndarray of int, or None
        The columns used, ascending; None: all.
    categorical : ndarray of int
        The categorical ones among all columns.
    is_numeric : bool
        Whether the task is a regression.
    fills : bool
        Whether missing values are replaced by the mean of the column.
    penalties : ndarray of float, or None
        Penalty on the first use of each of the columns, for LightGBM.
    """

    def __init__(
        self, recipe: BaseEstimator, rows: RecentRows, columns: Indices | None, categorical: Indices,
        is_numeric: bool, fills: bool, penalties: Floats | None = None,
    ) -> None:  # fmt: skip
        self.recipe, self.rows, self.columns, self.categorical = recipe, rows, columns, categorical
        self.is_numeric, self.fills, self.penalties = is_numeric, fills, penalties

    def __deepcopy__(self, memo: dict[int, Any]) -> Fit:
        # What it shares with the model, the copies share too: their bytes are the same.
        twin = memo[id(self)] = object.__new__(Fit)
        vars(twin).update(deepcopy(vars(self), memo))
        if (value := _fitted.get(self)) is not None:
            _fitted[twin] = value
        return twin

    def is_valid(self, n_features: int) -> bool:
        """Return whether a loaded fit has columns of these, and a penalty on each."""
        columns, penalties = self.columns, self.penalties
        n_columns = n_features if columns is None else len(columns)
        return (
            columns is None
            or (
                columns.dtype == np.intp
                and columns.ndim == 1
                and bool((np.diff(columns) > 0).all())
                and bool(((columns >= 0) & (columns < n_features)).all())
            )
        ) and (penalties is None or (penalties.shape == (n_columns,) and bool(np.isfinite(penalties).all())))

    def with_rows(self, rows: RecentRows, n_features: int) -> Fit:
        """Return the same fit for rows with more columns, of which the first are those of this one."""
        columns = np.arange(n_features) if self.columns is None else self.columns
        wide = Fit(self.recipe, rows, columns, self.categorical, self.is_numeric, self.fills, self.penalties)
        if (value := _fitted.get(self)) is not None:
            _fitted[wide] = value
        return wide

    def fit_once(self) -> Fitted:
        """Return the fitted estimator, which is fitted by the first call, and again after loading."""
        fitted = _fitted.get(self)
        if fitted is None:
            fitted = _fitted[self] = self._run()
        return fitted

    def _run(self) -> Fitted:
        X, y, weights = self.rows.concatenate()
        X = self._select(X)
        fill = self._means(X) if self.fills else None
        X = impute(X, fill)
        if self.is_numeric:
            present, target = np.zeros(1, np.int64), y
            constant = np.array(
                [np.average(y, weights=weights) if weights is None or weights.any() else y.mean()]
            )
        else:
            present, target = np.unique(y, return_inverse=True)
            counts = np.bincount(target, weights=weights)
            constant = counts / counts.sum() if counts.any() else np.full(len(present), 1.0 / len(present))
        if X.shape[1] == 0 or (not self.is_numeric and len(present) < 2):
            return Fitted(None, present, constant, fill)
        # scikit-learn cannot bin a column without values.
        if not sp.issparse(X) and (empty := np.isnan(X).all(axis=0)).any():
            X = np.where(empty, 0.0, X).astype(X.dtype)
        model = clone(self.recipe)
        if self.penalties is not None:
            model.set_params(cegb_tradeoff=1.0, cegb_penalty_feature_coupled=self.penalties.tolist())
        rows, options = with_categories(model, X, self._categorical())
        if weights is not None:
            options["sample_weight"] = weights
        try:
            with limited_threads(math.prod(rows.shape)):
                model.fit(rows, target, **options)
        except (ValueError, TypeError) as error:
            name = type(model).__name__
            raise DataError(f"{name} cannot be fitted on the last {len(y):,} rows: {error}") from error
        return Fitted(model, present, constant, fill)

    # -- predictions ---------------------------------------------------------------------------------------

    def predict(self, X: Rows) -> Array:
        """Return the code of each row, or the number; rows have all columns."""
        model, present, constant, _ = self.fit_once()
        if model is None:
            return np.full(X.shape[0], constant[0] if self.is_numeric else present[constant.argmax()])
        output = self._apply(X, "predict").reshape(-1)
        return output.astype(np.float64) if self.is_numeric else present[output.astype(np.intp)]

    def predict_proba(self, X: Rows, n_classes: int) -> Floats:
        """Return the probability of each class, shape (n_rows, n_classes)."""
        model, present, constant, _ = self.fit_once()
        proba = np.zeros((X.shape[0], n_classes))
        proba[:, present] = constant if model is None else self._apply(X, "predict_proba")
        return proba

    def losses(self, X: Rows, y: Array) -> Floats:
        """Return the loss of each row: its squared error, or the Brier score of calibrated probabilities, in [0, 1].

        Probabilities are shrunk towards the proportions of the classes by the factor that is best for these rows.
        """
        if self.is_numeric:
            return np.asarray((self.predict(X) - y) ** 2)
        at, (_, present, share, _) = np.arange(len(y)), self.fit_once()
        proba = np.zeros((len(y), int(max(y.max(initial=0), present.max())) + 1))
        truth = np.zeros_like(proba)
        truth[at, y] = 1.0
        truth[:, present] -= share
        if hasattr(self.recipe, "predict_proba"):
            proba = self.predict_proba(X, proba.shape[1])
        else:
            proba[at, self.predict(X)] = 1.0
        proba[:, present] -= share
        factor = np.clip((proba * truth).sum() / max(float((proba**2).sum()), 1e-300), 0.0, 1.0)
        return np.asarray(((factor * proba - truth) ** 2).sum(axis=1) / 2.0)

    def constant_loss(self) -> float:
        """Return the mean loss of a constant prediction on the rows of the fit; 1 if it is 0."""
        share = self.fit_once().constant
        loss = self.rows.concatenate().y.var() if self.is_numeric else (1.0 - (share**2).sum()) / 2.0
        return float(loss) or 1.0

    def _apply(self, X: Rows, verb: str) -> Array:
        """Return the output of a method of the fitted estimator for rows with all columns."""
        rows = self._rows_for_model(X)
        with limited_threads(math.prod(rows.shape)):
            return np.asarray(getattr(self.fit_once().model, verb)(rows))

    def _rows_for_model(self, X: Rows) -> Any:
        """Return rows with all columns as the fitted estimator expects them."""
        rows = impute(self._select(X), self.fit_once().fill)
        if len(self.categorical):
            return with_categories(clone(self.recipe), rows, self._categorical())[0]
        return rows

    # -- columns -------------------------------------------------------------------------------------------

    def importances(self) -> Floats:
        """Return the importance of each column of the fit for its model."""
        X, y, _ = self.rows.concatenate()
        if (model := self.fit_once().model) is None:
            return np.zeros(self._select(X).shape[1])
        target = y if self.is_numeric else np.unique(y, return_inverse=True)[1]
        return importances_of(model, self._rows_for_model(X), target)

    def used_columns(self, n_features: int) -> Mask:
        """Return the columns with an importance, among all."""
        used = np.zeros(n_features, dtype=bool)
        used[self.columns if self.columns is not None else slice(None)] = self.importances() > 0.0
        return used

    def scale_of_gain(self) -> float:
        """Return the mean gain of a split by chance, which a penalty is relative to."""
        X, y, weights = self.rows.concatenate()
        noise = float(self.losses(X, y).mean()) if self.is_numeric else 1.0
        return noise if weights is None else noise * float(weights.mean())

    def _select(self, X: Rows) -> Rows:
        if self.columns is None:
            return X
        return X[:, self.columns] if sp.issparse(X) else X.take(self.columns, axis=1)

    def _categorical(self) -> Indices:
        if self.columns is None or len(self.categorical) == 0:
            return self.categorical
        return np.flatnonzero(np.isin(self.columns, self.categorical))

    def _means(self, X: Rows) -> Floats:
        """Return the mean of the non-missing values of each column, 0 if all are missing."""
        values = X.data if sp.issparse(X) else X
        if not np.isnan(values.sum()):
            return np.zeros(0) if sp.issparse(X) else X.mean(axis=0, dtype=np.float64)
        if sp.issparse(X):
            raise DataError(
                "Sparse rows contain NaN, which the estimator does not accept: impute or drop it first."
            )
        known = ~np.isnan(X)
        total = np.where(known, X, 0.0).sum(axis=0, dtype=np.float64)
        return np.asarray(total / np.maximum(known.sum(axis=0), 1))


def impute(X: Rows, fill: Floats | None) -> Rows:
    """Return dense rows with their missing values replaced."""
    if fill is None or sp.issparse(X) or not np.isnan(X.sum()):
        return X
    return np.where(np.isnan(X), fill, X).astype(X.dtype, copy=False)
