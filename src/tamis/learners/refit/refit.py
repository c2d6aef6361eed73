"""Refit: any estimator with `fit` and `predict` as a stream learner, refitted on the last rows.

This is the usual way to run a boosted model on a stream: a window of the last rows is stored, and a new model is fitted
to it at fixed intervals (here also after a drift, or when the selection changes). In between, the last model predicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tamis._atomic import Attributes, atomically
from tamis._shapes import state_error, without_columns
from tamis._validation.arrays import (
    Array,
    Floats,
    Indices,
    Ints,
    Mask,
    Rows,
    as_weights,
    columns_of,
)
from tamis._validation.labels import as_classes, as_column, as_target, encode_labels
from tamis._validation.parameters import COLUMNS, GROUPS, SEED, Kind, check_parameters, integer, parameter
from tamis._validation.rows import as_rows, has_rows, reject_nonfinite
from tamis.base.changing_columns import ChangingColumns
from tamis.base.column_terms import ColumnTerms
from tamis.base.declarations import Claims
from tamis.base.prices import PRICES
from tamis.base.rows import check_columns
from tamis.base.selector_mixin import SelectorMixin
from tamis.drift import DETECTOR, DriftDetector, new_detector
from tamis.errors import DataError
from tamis.learners.dense_rows import Wrapper
from tamis.learners.refit.few_columns import FewColumns
from tamis.learners.refit.fit import NAMES, Block, Fit, RecentRows, accepts_weights, library_of, new_recipe

_ESTIMATOR = Kind(
    "an unfitted estimator with fit and predict",
    lambda value: (
        not isinstance(value, type) and all(hasattr(value, name) for name in ("fit", "predict", "get_params"))
    ),
)


_KEPT = Kind("a list of columns", lambda value: isinstance(value, list | tuple))


def _has(name: str) -> Any:
    return available_if(lambda self: hasattr(self._recipe(), name))


def _selects() -> Any:
    return available_if(lambda self: self.features == "few")


@dataclass(repr=False, eq=False)
class Refit(ChangingColumns, Wrapper, BaseEstimator):  # type: ignore[misc]
    """An estimator without `partial_fit` as a stream learner: it is refitted on the last rows.

    Parameters
    ----------
    estimator : estimator or str, default="random-forest"
        A classifier or regressor with scikit-learn's interface (LightGBM, XGBoost and CatBoost have it), which is
        cloned for each fit. By name: "lightgbm", "random-forest" or "hist-boosting" with the defaults of their
        libraries and one thread; "-regressor" is appended for numbers.
    every : int from 1 to 10000000 or None, default=1000
        Rows between two fits. Initially fewer: as many as the last fit had. None: only `on_drift` and `on_change`
        trigger fits after the first.
    window : int from 2 to 10000000, default=10000
        Maximum number of rows to fit on: the last ones.
    on_drift : str, DriftDetector or None, default=None
        A drift detector ("adwin", "ddm", "ecdd", "hddm-a" or "hddm-w", or an object with that protocol), updated with
        the error of each row. When it detects a drift, all rows except the last `min_rows` are dropped and the
        estimator is refitted. None: errors are not monitored.
    on_change : bool, default=False
        Whether a change of the selected columns triggers a fit. By default a change takes effect in the next fit.
    min_rows : int from 2 to 10000000, default=200
        Rows before the first fit, at most `window`; until then the majority class, or the mean target, is predicted.
    categorical : None, "all", list of int or str, or bool mask, default=None
        Categorical columns, whose numbers are codes; see Notes.
    dtype : {"float64", "float32"}, default="float64"
        Type of the stored rows, which are passed to the estimator.
    random_state : int from 0 to 2**32 - 1, default=0
        Seed of those `random_state` parameters of the estimator that are None.
    features : {"all", "few"}, default="all"
        ``"few"``: each refit fits several candidates with fewer and fewer columns (10 with LightGBM, 6 with other
        estimators), and the one that predicted best since the last fit is used, or one that is as good and cheaper; see
        Notes.
    prices : float, array, mapping of column to float, or PriceList, optional
        With ``features="few"``: what it costs to use a column; 1 if it is not named.
    keep : list of int or str, optional
        With ``features="few"``: columns that are always used.
    exclude : list of int or str, or bool mask, optional
        With ``features="few"``: columns that are never used.
    groups : sequence of sequences of columns, optional
        With ``features="few"``: columns that are paid once, such as the codes of one category. The price is that of the
        most expensive one.

    Attributes
    ----------
    estimator_ : estimator
        The last fitted one; absent before the first fit. Its classes are positions among the classes of the rows it was
        fitted on.
    classes_ : ndarray of shape (n_classes,)
        Labels in the order in which they were declared or first seen; present if the estimator is a classifier.
    columns_ : ndarray of int
        The columns of the last fit; with ``features="few"``, those that its model uses.
    selected_features_ : ndarray of shape (n_selected,), str
        With ``features="few"``: the names of these columns.
    price_ : float
        With ``features="few"``: their price.
    refits_ : list of dict
        With ``features="few"``: of each refit (of the last 200) the `row`, the `candidate` in use, `n_columns`,
        `price`, and the columns that `entered` and `left`.
    comparison_ : list of dict
        With ``features="few"``: of each candidate `n_columns`, the `loss` (a Brier score or squared error relative to
        that of a constant) on the last 3,000 rows, and how far it is `behind_all`, with the standard error of that.
    n_fits_, fitted_at_ : int
        Number of fits, and the value of `n_seen_` at the last one.
    drifts_ : list of int
        Rows, counted from 0, at which `on_drift` detected a drift.
    n_seen_ : int
        Number of rows learned.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,), str
        Present if the first rows were a frame with column names.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    DataError
        If rows are invalid, or the estimator cannot be fitted on them; the model is left unchanged.

    Notes
    -----
    **Batches.** The times of the fits depend on the number of rows, not on the batches, and of several fits due within
    a batch only the last is carried out. With `on_drift` or `on_change` the batches matter: the errors of a batch are
    those of the model before the batch.

    **Selection.** In :func:`tamis.prequential` and :class:`tamis.StreamPipeline` it stores all columns of a row, is
    fitted on those selected at that time, and predicts from these until the next fit.

    **Memory.** The last `window` rows, the rows of the last fit (they share memory, so both together are at most
    ``window + every`` rows and a batch, or two windows without `every`) and the fitted estimator.

    **Files.** A saved model contains the rows of the last fit and the unfitted estimator, but no fitted one. It is
    fitted again on first use after loading, which gives the same model if the estimator is deterministic. LightGBM is
    deterministic with ``deterministic=True, force_col_wise=True``, which are set if it is created by name. CatBoost's
    estimators, which do not derive from those of scikit-learn, cannot be saved.

    **Categorical columns** are passed to LightGBM as `categorical_feature`, to XGBoost as `feature_types`, to CatBoost
    as `cat_features` and to scikit-learn's histogram boosting as `categorical_features`. Other estimators, and all with
    sparse rows, receive the codes as numbers.

    **Missing values** are passed on if the estimator's tags declare support for NaN. Otherwise they are rejected in
    selected columns, and replaced by the mean of the column in columns that were not selected at the time.

    **Few columns** (:mod:`tamis.learners.refit.few_columns`). The candidates are all columns; a half to a sixteenth of
    them, where half of the columns are dropped each time, the least important ones; with LightGBM a penalty of 2, 5, 10
    or 20 times its price on each column that a model begins to use (`cegb_penalty_feature_coupled`); and the columns in
    use. Each candidate predicts the rows until the next refit, and their paired losses decide. Columns in use cost no
    penalty and count four times their importance, so the selection is stable. The fits take about six times as long as
    one fit of all columns.

    **Weights** need an estimator whose `fit` has a parameter `sample_weight`.

    Examples
    --------
    The class depends on the product of two features, which a linear model cannot represent:

    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from tamis import Refit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 4))
    >>> y = (X[:, 0] * X[:, 2] > 0).astype(int)
    >>> model = Refit(RandomForestClassifier(20), every=500, window=2000)
    >>> for at in range(0, 2000, 100):
    ...     _ = model.partial_fit(X[at : at + 100], y[at : at + 100])
    >>> model.n_fits_, model.fitted_at_, model.score(X[2000:], y[2000:]) > 0.9
    (5, 1800, True)

    Few columns; column 1 costs ten times as much as the others:

    >>> model = Refit(RandomForestClassifier(20), every=500, window=2000, features="few", prices={1: 10.0})
    >>> for at in range(0, 2000, 100):
    ...     _ = model.partial_fit(X[at : at + 100], y[at : at + 100])
    >>> model.selected_features_.tolist(), model.price_, model.score(X[2000:], y[2000:]) > 0.9
    (['x0', 'x2'], 2.0, True)
    """

    _noun = "learner"
    _shapes = """
        classes_? (k) labels  _is_numeric (=r)  _totals_? (k)  _totals_? (>r)  n_features_in_ in [1, 2**31)
        n_seen_ in [0, 2**62)  n_fits_ in [0, n_seen_]
        fitted_at_ in [0, n_seen_]  _n_fitted_ in [0, n_seen_]  _categories_ in [0, n_features_in_)
        _few_? (its own)
    """

    claims = Claims(
        equals_rows="exactly", copies_differ="passed to the estimator; `window` and `every` count rows"
    )
    # See `tamis.learners.traits`: never reset from outside, and new classes need no reset.
    adapts_itself = True
    accepts_new_classes = True
    masking_strategy = "columns"

    estimator: Any = parameter(*NAMES, _ESTIMATOR, default="random-forest")
    _: KW_ONLY
    every: int | None = parameter(integer("[1, 10000000]"), None, default=1000)
    window: int = parameter(integer("[2, 10000000]"), default=10_000)
    on_drift: str | DriftDetector | None = parameter(DETECTOR, None, default=None)
    on_change: bool = parameter(True, False, default=False)
    min_rows: int = parameter(integer("[2, 10000000]"), default=200)
    categorical: Any = parameter(COLUMNS, None, default=None)
    dtype: str = parameter("float64", "float32", default="float64")
    random_state: int = parameter(SEED[0], default=0)
    features: str = parameter("all", "few", default="all")
    prices: Any = parameter(*PRICES, None, default=None)
    keep: Any = parameter(_KEPT, None, default=None)
    exclude: Any = parameter(COLUMNS, None, default=None)
    groups: Any = parameter(GROUPS, None, default=None)

    # -- learning ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Reset the model, then learn from the rows in order and fit the estimator on the last `window`.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        return self._fit_atomic(X, y, None, sample_weight, None, forget=True)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, columns: Any = None
    ) -> Self:
        """Add rows to the window, and refit the estimator if that is due. If it raises, the model is unchanged.

        Ctrl-C takes effect after the batch.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            They are copied. Dense or sparse; later rows are converted to the format of the first ones.
        y : array-like of shape (n_rows,)
            Labels, or numbers for a regressor.
        classes : array-like, optional
            Labels known in advance; others may still appear.
        sample_weight : array-like of shape (n_rows,), optional
            Passed on to the estimator's `fit`.
        columns : array-like of int, optional
            The selected columns, ascending: those to use in the next fit. By default all.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If the rows or labels are invalid.
        """
        return self._fit_atomic(X, y, classes, sample_weight, columns, forget=False) if has_rows(X) else self

    def _fit_atomic(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, columns: Any, *, forget: bool
    ) -> Self:
        check_parameters(self)
        X, names = as_rows(X)
        y = as_column(y, X.shape[0], type(self).__name__)
        weights = as_weights(sample_weight, X.shape[0], some=forget)
        # No array of the state is modified, so only its attributes have to be restored.
        atomically(
            self, self._partial_fit, X, names, y, classes, weights, columns, forget,
            from_scratch=True, before=Attributes(self),
        )  # fmt: skip
        return self

    def _partial_fit(
        self, X: Rows, names: list[str] | None, y: Array, classes: Any, weights: Array | None, columns: Any,
        forget: bool,
    ) -> None:  # fmt: skip
        if forget or not hasattr(self, "n_seen_"):
            self._begin(X, names)
        columns = None if columns is None else np.array(columns, dtype=np.intp)
        X = self._validate(X, names, columns)
        if weights is not None and not self._takes_weights:
            raise DataError(
                f"{type(self._recipe()).__name__}.fit has no parameter sample_weight: omit the weights."
            )
        codes = self._codes(y, classes)
        block = Block(X, codes, weights)
        if weights is not None and not weights.all():
            block = block.take(weights > 0.0)
        if len(block.y):
            self._update(block, columns, fit_at_end=forget)

    def _begin(self, X: Rows, names: list[str] | None) -> None:
        self._forget()
        self._set_columns(X.shape[1], names)
        self._is_sparse = bool(sp.issparse(X))
        recipe = self._recipe()
        tags = get_tags(recipe).input_tags
        if self._is_sparse and not tags.sparse:
            raise TypeError(
                f"Sparse data was passed, but {type(recipe).__name__} requires dense rows: pass X.toarray()."
            )
        self._is_numeric, self._accepts_nan = bool(is_regressor(recipe)), bool(tags.allow_nan)
        self._takes_weights = accepts_weights(recipe)
        self._categories_ = columns_of(self.categorical, self.n_features_in_, names)
        if not self._is_numeric:
            self.classes_: Array = np.array([])
        self._totals_ = np.zeros(1 if self._is_numeric else 0)  # rows of each class, or the sum of targets
        self.n_seen_, self.drifts_ = 0, list[int]()
        self.n_fits_ = self.fitted_at_ = 0
        self._rows_ = RecentRows()
        self._fit_: Fit | None = None
        self._few_: FewColumns | None = None
        if self.features == "few":
            self._terms()  # validated before any row is learned
            self._few_ = FewColumns(self.n_features_in_, library_of(recipe) == "lightgbm")
        self._n_fitted_ = 0  # rows of the last fit
        self._error_total_ = 0.0  # absolute errors since the last fit, for a drift detector
        self._detector_: DriftDetector | None = None if self.on_drift is None else new_detector(self.on_drift)

    def _terms(self) -> ColumnTerms:
        """Return the prices, the columns that are always used, and the groups."""
        names, prices = self._names(), 1.0 if self.prices is None else self.prices
        columns: list[Any] = list(names or range(self.n_features_in_))
        if isinstance(prices, Mapping):
            prices = dict.fromkeys(columns, 1.0) | dict(prices)
        terms = ColumnTerms.of(prices, self.keep, self.groups, columns, is_named=names is not None)
        excluded = self._excluded()
        if (terms.keep & excluded).any() or excluded.all():
            raise ValueError(
                "exclude must leave the columns of keep, and at least one, got"
                f" exclude={self.exclude!r} and keep={self.keep!r}."
            )
        return terms

    def _excluded(self) -> Mask:
        excluded = columns_of(self.exclude, self.n_features_in_, self._names(), "exclude")
        return np.isin(np.arange(self.n_features_in_), excluded)

    def _recipe(self) -> Any:
        """Return an unfitted estimator."""
        check_parameters(self)
        return new_recipe(self.estimator, self.random_state)

    def _validate(self, X: Rows, names: list[str] | None, columns: Indices | None) -> Rows:
        """Return an immutable copy of the rows as they are stored; raise if they are invalid."""
        X = self._as_first(X, names)
        known = self._names()
        if self._accepts_nan or columns is None or self._is_sparse:
            reject_nonfinite(X, known, allow_nan=self._accepts_nan)
        else:
            chosen = None if known is None else [known[j] for j in columns]
            reject_nonfinite(X, known, allow_nan=True)
            reject_nonfinite(X[:, columns], chosen)
        return X

    def _as_first(self, X: Rows, names: list[str] | None) -> Rows:
        """Return a copy of rows in the format of the first rows, and in `dtype`."""
        check_columns(type(self).__name__, X, names, self.n_features_in_, self._names())
        if sp.issparse(X) != self._is_sparse:
            X = sp.csr_matrix(X) if self._is_sparse else X.toarray()
        with np.errstate(over="ignore"):  # infinity is rejected later
            return X.astype(self.dtype)

    def _codes(self, y: Array, classes: Any) -> Array:
        """Return the codes of the labels, or the targets; add new classes."""
        if self._is_numeric:
            return as_target(y)
        known = self.classes_
        if classes is not None:
            known = encode_labels(as_classes(classes), known)[1]
        codes, self.classes_ = encode_labels(y, known)
        return codes

    def _update(self, block: Block, columns: Indices | None, *, fit_at_end: bool) -> None:
        n_rows, done = len(block.y), 0
        since = self._drift_in(block)
        due = self._last_due(n_rows)
        columns = self._usable(columns)
        last = self._few_.fits[0] if self._few_ is not None and self._few_.fits else self._fit_
        changed_columns = self.on_change and last is not None and not _same(columns, last.columns)
        if since is not None or changed_columns or fit_at_end:
            due = n_rows
        if due:
            self._add(block, done, due)
            if since is not None:
                self._rows_ = self._rows_.last(max(self._least, n_rows - since))
            self._refit(columns)
            done = due
        self._add(block, done, n_rows)

    def _add(self, block: Block, start: int, stop: int) -> None:
        if start == stop:
            return
        part = block if stop - start == len(block.y) else block.take(slice(start, stop))
        most = int(self.window)
        # A view would keep all rows in memory.
        stored = part if len(part.y) <= most else deepcopy(part.take(slice(-most, None)))
        self._rows_ = self._rows_.with_rows(stored, most)
        if self._is_numeric:
            self._totals_ = self._totals_ + part.y.sum()
        else:
            grown = np.zeros(len(self.classes_))
            grown[: len(self._totals_)] = self._totals_
            self._totals_ = grown + np.bincount(part.y, part.weights, minlength=len(grown))
        self.n_seen_ += stop - start

    @property
    def _least(self) -> int:
        """Number of rows of the first fit, and of one after a drift."""
        return min(int(self.min_rows), int(self.window))

    def _last_due(self, n_rows: int) -> int:
        """Return the row of the next `n_rows` at which the last fit is due, 0 if none is."""
        at, last, n_fitted = 0, 0, self._n_fitted_
        since = self.n_seen_ - self.fitted_at_
        while True:
            if n_fitted == 0:
                at += max(self._least - self.n_seen_, 1)
            elif self.every is None:
                return last
            else:
                at += max(min(int(self.every), n_fitted) - since, 1)
            if at > n_rows:
                return last
            last, since = at, 0
            n_fitted = min(self._rows_.n_rows + at, int(self.window))

    def _refit(self, columns: Indices | None) -> None:
        if self._few_ is None:
            fit = self._new_fit(self._rows_, columns)
        else:
            self._few_ = few = self._refit_few(self._few_, columns)
            fit = few.fits[-1]
        fit.fit_once()
        self._fit_, self._n_fitted_ = fit, self._rows_.n_rows
        self.n_fits_, self.fitted_at_, self._error_total_ = self.n_fits_ + 1, self.n_seen_, 0.0

    def _new_fit(self, rows: RecentRows, columns: Indices | None, penalties: Floats | None = None) -> Fit:
        recipe, fills = self._recipe(), not self._accepts_nan
        return Fit(recipe, rows, columns, self._categories_, self._is_numeric, fills, penalties)

    def _usable(self, columns: Indices | None) -> Indices | None:
        """Return the columns that a fit may use, of those selected; None: all."""
        if self._few_ is None or not (never := self._excluded()).any():
            return columns
        return np.flatnonzero(~never) if columns is None else columns[~never[columns]]

    def _refit_few(self, few: FewColumns, columns: Indices | None) -> FewColumns:
        """Return the candidates, compared on the rows since their last fits and fitted again."""
        terms, n_features = self._terms(), self.n_features_in_
        allowed = np.full(n_features, columns is None)
        if columns is not None:
            allowed[columns] = True

        def make(rows: RecentRows) -> Callable[..., Fit]:
            return lambda some, *penalties: self._new_fit(
                rows, None if len(some) == n_features else some, *penalties
            )

        if few.fits:
            recent = self._rows_.last(self.n_seen_ - self.fitted_at_)
        else:  # no candidate has predicted a row yet
            recent = self._rows_.last(self._rows_.n_rows // 3)
            n = self._rows_.n_rows - recent.n_rows
            trial = RecentRows().with_rows(self._rows_.concatenate().take(slice(n)), n)
            few = few.refitted(make(trial), allowed, terms, self.n_seen_, is_trial=True)
        return few.with_rows(recent.concatenate()).refitted(make(self._rows_), allowed, terms, self.n_seen_)

    def _drift_in(self, block: Block) -> int | None:
        """Return the row of a batch at which a drift is detected, if any."""
        if self._detector_ is None or self._fit_ is None:
            return None
        predicted = self._predict(block.X)
        if self._is_numeric:  # whether an error exceeds the mean since the fit
            sizes = np.abs(predicted - block.y)
            n_before = self.n_seen_ - self.fitted_at_
            means = (self._error_total_ + np.cumsum(sizes)) / (n_before + 1 + np.arange(len(sizes)))
            errors, self._error_total_ = sizes > means, self._error_total_ + float(sizes.sum())
        else:
            errors = predicted != block.y
        detector = deepcopy(self._detector_)
        drift = None
        for i, error in enumerate(errors.tolist()):
            if detector.update(float(error)):
                drift = i
                self.drifts_ = [*self.drifts_, self.n_seen_ + i]
                break
        self._detector_ = detector
        return drift

    def _append_columns(self, n_features: int) -> None:
        self._reject_few()
        absent, before = np.nan if self._accepts_nan else 0.0, self.n_features_in_

        def appended(X: Rows) -> Rows:
            if sp.issparse(X):
                return type(X)((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
            return np.pad(X, ((0, 0), (0, n_features - before)), constant_values=absent)

        self._change_rows(appended, before)
        self.n_features_in_ = n_features

    def _reset_columns(self, columns: Ints) -> None:
        self._reject_few()
        absent = np.nan if self._accepts_nan else 0.0
        self._change_rows(lambda X: without_columns(X, columns, absent), self.n_features_in_)
        if self._fit_ is not None:
            kept = np.setdiff1d(self.columns_, columns)
            self._fit_ = self._new_fit(self._fit_.rows, kept)
            self._fit_.fit_once()

    def _reject_few(self) -> None:
        if self._few_ is not None:
            raise ValueError("Refit with features='few' has a fixed number of columns: create a new one.")

    def _change_rows(self, change: Callable[[Rows], Rows], n_before: int) -> None:
        self._rows_ = self._rows_.changed(change)
        if self._fit_ is not None:
            self._fit_ = self._fit_.with_rows(self._fit_.rows.changed(change), n_before)

    # -- predicting ----------------------------------------------------------------------------------------

    def _rows_to_predict(self, X: Any) -> Rows:
        check_is_fitted(self)
        X, names = as_rows(X)
        X = self._as_first(X, names)
        is_whole = self._fit_ is None or self._fit_.columns is None
        reject_nonfinite(X, self._names(), allow_nan=self._accepts_nan or not is_whole)
        return X

    def _predict(self, X: Rows) -> Array:
        """Return the code of each row, or the number."""
        if self._fit_ is not None:
            return self._fit_.predict(X)
        mean = self._totals_[0] / max(self.n_seen_, 1) if self._is_numeric else self._totals_.argmax()
        return np.full(X.shape[0], mean)

    def predict(self, X: Any) -> Array:
        """Return the label (or number) of each row.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            All columns, selected or not.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        predicted = self._predict(self._rows_to_predict(X))
        return predicted if self._is_numeric else np.asarray(self.classes_[predicted])

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n_rows, n_classes); 0 for classes not in the last fit."""
        X = self._rows_to_predict(X)
        if self._fit_ is not None:
            return self._fit_.predict_proba(X, len(self.classes_))
        return np.tile(self._totals_ / max(self._totals_.sum(), 1.0), (X.shape[0], 1))

    # -- read-outs -----------------------------------------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """The last fitted estimator; None if the rows of the last fit had a single class."""
        if vars(self).get("_fit_") is None:
            raise AttributeError(
                "Refit has no estimator_ before its first fit: learn from min_rows rows first."
            )
        return self._fit_.fit_once().model  # type: ignore[union-attr]

    @property
    def columns_(self) -> Indices:
        """The columns of the last fit; all before the first one."""
        check_is_fitted(self)
        if self._few_ is not None:
            return np.flatnonzero(self._get_support_mask())
        columns = None if self._fit_ is None else self._fit_.columns
        return np.arange(self.n_features_in_) if columns is None else columns.copy()

    get_support = _selects()(SelectorMixin.get_support)
    get_feature_names_out = _selects()(SelectorMixin.get_feature_names_out)

    def _get_support_mask(self) -> Mask:
        """Return the columns that the model uses; before the first fit, those that it may use."""
        check_is_fitted(self)
        few = self._few_
        return few.used[-1].copy() if few is not None and few.fits else ~self._excluded()

    @property
    def warming_up_(self) -> bool:
        """Whether no fit has selected columns yet."""
        return self._few_ is None or not self._few_.fits

    def _candidates(self) -> FewColumns:
        few = vars(self).get("_few_")
        if few is None or not few.fits:
            raise AttributeError("Refit selects columns with features='few', from its first fit on.")
        return few

    @property
    def selected_features_(self) -> Array:
        """The names of the columns that the model uses."""
        self._candidates()
        return self.get_feature_names_out()

    @property
    def price_(self) -> float:
        """The price of the columns that the model uses."""
        return float(self._candidates().refits[-1]["price"])

    @property
    def refits_(self) -> list[dict[str, Any]]:
        """What the last 200 refits selected, and what it cost."""
        return deepcopy(self._candidates().refits)

    @property
    def comparison_(self) -> list[dict[str, Any]]:
        """The loss of each candidate on the rows since its fits."""
        return self._candidates().comparison()

    def check_state(self) -> None:
        """Validate a loaded state.

        Raises
        ------
        StateError
            If it is inconsistent.
        """
        if not hasattr(self, "n_seen_"):
            return
        n_codes = None if self._is_numeric else len(self.classes_)
        few = () if self._few_ is None else self._few_.fits
        for rows in (self._rows_, *(fit.rows for fit in (self._fit_, *few) if fit is not None)):
            if not isinstance(rows, RecentRows):
                raise state_error("The rows of a Refit are missing")
            rows.check(self.n_features_in_, n_codes, is_sparse=self._is_sparse)
        fits = all(fit is None or fit.is_valid(self.n_features_in_) for fit in (self._fit_, *few))
        if self._few_ is not None:
            fits &= (
                len(few) in (0, len(self._few_.candidates))
                and self._few_.used.shape[1] == self.n_features_in_
            )
        if not fits or self._totals_.shape != (1 if n_codes is None else n_codes,):
            raise state_error("The columns or counts of a Refit do not match its rows")

    def __sklearn_tags__(self) -> Tags:
        tags = self._tags_like(super().__sklearn_tags__(), self._recipe())
        tags.target_tags.multi_output = False
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        return tags


def _same(one: Indices | None, other: Indices | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
