"""StreamPipeline: scaling, selection and learning as one incremental scikit-learn estimator.

Rows are grouped into batches of `batch_size`, counted from the first row, regardless of how many arrive per call.
Complete batches are processed as in :func:`tamis.prequential`. A copy of the models learns the rows of an incomplete
batch and predicts until the batch is complete, so the predictions depend only on the rows and their order.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tamis._atomic import Snapshot, atomically, deliver_signals
from tamis._guard import ThreadSafe
from tamis._validation.arrays import Array, Floats, Mask, Rows
from tamis._validation.labels import as_classes, as_column, as_target, encode_labels
from tamis._validation.parameters import Kind, are_checked, check_parameters, integer, parameter
from tamis._validation.rows import has_rows, is_plain, reject_nonfinite
from tamis._validation.table import as_table
from tamis._validation.values import is_integer
from tamis.base.categories import MAX_CATEGORIES, CategoryCodes, split_rows
from tamis.base.rows import check_columns
from tamis.base.selector_mixin import SelectorMixin
from tamis.errors import DataError
from tamis.learners.dense_rows import Wrapper
from tamis.options import RunOptions
from tamis.pipeline.masked_learner import ColumnChange, in_order
from tamis.pipeline.scaling import wants_scale
from tamis.pipeline.selective_learner import (
    LEARNER,
    SELECTOR,
    SelectiveLearner,
    check_models,
    declare_categories,
    default_learner,
    is_regression_learner,
)
from tamis.replay import concatenate_labels, concatenate_rows
from tamis.streams.encode import TableEncoder

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

_REPLAY = Kind("a number of rows", lambda value: is_integer(value) and value >= 0)


def _if_learner_has(name: str) -> Any:
    return available_if(lambda self: hasattr(self._learner(), name))


@dataclass(repr=False, eq=False)
class StreamPipeline(ThreadSafe, Wrapper, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """A running scaler, a row selector and a learner, as one incremental model.

    :func:`tamis.prequential` evaluates the same model, with the same predictions. Unselected features are removed in
    the way that suits the learner, and the learner is reset when the selector requests it.

    Parameters
    ----------
    selector : RowSelector or estimator with `partial_fit` and `get_support`, optional
        It is cloned. By default every feature is kept.
    learner : classifier or regressor with `partial_fit`, optional
        It is cloned. The default is ``SGDLogisticRegression(learning_rate="constant")``, or
        ``SGDRegressor(loss="huber", epsilon=1.0, random_state=0)`` if the selector is set to regression.
    batch_size : int, default=100
        Rows per batch, counted from the first row; the selection is updated after each batch.
    scale : {"auto", "standard", "none"}, default="auto"
        Whether features are standardised for the learner, by the mean and standard deviation of the rows before.
        ``"auto"``: for dense rows, if the learner depends on the scale. The selector gets unscaled rows.
    replay : {"auto", "always", "never"} or int, default="auto"
        When the learner is reset, and on how many of the last rows it is retrained; see :func:`tamis.prequential`.
    masking : {"auto", "zeros"}, default="auto"
        How unselected features are removed; see :func:`tamis.prequential`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Present if the learner is a classifier.
    selector_, learner_ : estimator
        The fitted selector and learner, read-only.
    scores_ : ndarray of shape (n_features,), float64
        The selector's score of each feature, if it has scores.
    n_features_in_ : int
    categories_ : dict of int to list
        The categories of each text feature, in the order of their codes.
    feature_names_in_ : ndarray of shape (n_features,), str
        Present if the first rows were a frame with column names.
    n_seen_ : int
        Number of rows learned.

    Raises
    ------
    ValueError
        If a parameter is invalid, or if one of selector and learner is for classification and the other for
        regression.
    DataError
        If rows are invalid; the model is left unchanged.

    Notes
    -----
    **Row-exact.** The model does not depend on how rows are split into calls. A call copies the models once, or twice
    if it ends within a batch, so many rows per call are faster. For one row per call ``batch_size=1`` is fastest.

    **Missing values** are accepted if the selector accepts them (without a selector: if the learner does). A learner
    that gets standardised features but does not accept missing values gets the mean of the feature. Any other learner
    that does not accept them rejects them in the features passed to it: all features in the first batch, then the
    selected ones.

    **Categories.** Text and categorical features of a frame become codes in the order in which they first appear. A
    selector or learner whose parameter `categorical` is None is given their positions; a selector without this
    parameter rejects them. A category that was not seen in training gets the next code. An array contains codes.

    **Times** of a frame become seconds, as in :func:`tamis.prequential`.

    **Labels.** While only one class is known, it is predicted, and the learner is not trained. A label that was unknown
    when the learner was first trained resets it, because scikit-learn's linear models cannot add classes.

    Memory: the models, two copies of them while a batch is incomplete, and the rows of a batch.

    Examples
    --------
    The class is determined by two of the 30 features, whose values are a thousand times as large as the others:

    >>> import numpy as np
    >>> from sklearn.linear_model import SGDClassifier
    >>> from tamis import FIRES, StreamPipeline
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 30)) * np.where(np.arange(30) % 2, 1000.0, 1.0)
    >>> y = np.where(X[:, 3] > X[:, 9], "up", "down")
    >>> model = StreamPipeline(FIRES(2), SGDClassifier(random_state=0))
    >>> for at in range(0, 2000, 40):
    ...     _ = model.partial_fit(X[at : at + 40], y[at : at + 40])
    >>> model.get_feature_names_out().tolist(), round(model.score(X[2000:], y[2000:]), 2)
    (['x3', 'x9'], 0.99)

    Forty rows per call and all of them at once give the same model:

    >>> whole = StreamPipeline(FIRES(2), SGDClassifier(random_state=0)).fit(X[:2000], y[:2000])
    >>> bool((whole.decision_function(X) == model.decision_function(X)).all())
    True
    """

    _shapes = "selector fixed  learner fixed  _declared? fixed  _ahead? fixed"

    selector: Any = parameter(SELECTOR, None, default=None)
    learner: Any = parameter(LEARNER, None, default=None)
    _: KW_ONLY
    batch_size: int = parameter(integer("[1, inf)"), default=100)
    scale: str = parameter("auto", "standard", "none", default="auto")
    replay: str | int = parameter(_REPLAY, "auto", "always", "never", default="auto")
    masking: str = parameter("auto", "zeros", default="auto")
    categories_: dict[int, list[Any]] = field(init=False)

    @classmethod
    def of_run(
        cls, models: SelectiveLearner, names: list[str] | None, options: RunOptions,
        categories: Mapping[int, list[Any]] = MappingProxyType({}),
    ) -> StreamPipeline:  # fmt: skip
        """Return a copy of the selector and learner of a run, as a separate model.

        Parameters
        ----------
        models : SelectiveLearner
            They are copied.
        names : list of str, optional
            Names of the columns.
        options : RunOptions
            Options of the run.
        categories : mapping of int to list
            The categories of each text feature, in the order of their codes.

        Returns
        -------
        StreamPipeline
            The next row starts a new batch.
        """
        selector = None if models.selector is None else clone(models.selector)
        pipeline = cls(
            selector, clone(models.learner.model), batch_size=options.rows_per_block, scale=options.scale,
            replay=options.replay, masking=options.masking,
        )  # fmt: skip
        pipeline._models, pipeline._waiting, pipeline._declared = deepcopy(models), [], None
        pipeline.categories_ = {j: list(values) for j, values in categories.items()}
        pipeline._set_columns(models.n_features, names)
        pipeline.is_sparse_, pipeline.n_seen_ = models.is_sparse, models.n_seen
        return pipeline

    # -- learning ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Reset the model, then learn from these rows in order; see `partial_fit`."""
        return self._fit_atomic(X, y, None, forget=True)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Update the model with rows. If it raises, the model is unchanged.

        Ctrl-C takes effect after a batch of `batch_size` rows; the model is then unchanged.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)
            Dense or sparse. Later rows are converted to the format of the first ones.
        y : array-like of shape (n_rows,)
            Labels, or numbers for a regressor.
        classes : array-like, optional
            Labels known in advance, at the first call. The learner is then not reset when they first occur.

        Returns
        -------
        self
        """
        if self._learn_row(X, y, classes):
            return self
        return self._fit_atomic(X, y, classes, forget=False) if has_rows(X) else self

    def _learn_row(self, X: Any, y: Any, classes: Any) -> bool:
        """Learn one row of an array, if nothing about it is new; return whether it was learned.

        The result is that of the general case, which validates, converts and encodes what any rows may be.
        """
        models = vars(self).get("_models")
        if (
            models is None
            or classes is not None
            or not are_checked(self)
            or self.batch_size > 1
            or self._waiting
        ):
            return False
        if (codes := models.codes_of_row(X, y)) is None:
            return False
        before = Snapshot((models.selector, models.learner), n_rows=1)
        if not before.is_complete:
            return False

        def update() -> None:
            models.learn_row(X, codes)
            self.n_seen_ = models.n_seen

        atomically(self, update, from_scratch=True, before=before)
        return True

    def _fit_atomic(self, X: Any, y: Any, classes: Any, *, forget: bool) -> Self:
        if not are_checked(self):
            check_models(self.selector, self.learner)
            check_parameters(self)
        raw, X, names = self._split(X, forget=forget)
        y = as_column(y, X.shape[0], type(self).__name__)
        # Models whose state Python cannot see are updated in a copy.
        n_rows = X.shape[0] + sum(len(labels) for _, labels in vars(self).get("_waiting", ()))
        before = None if forget else Snapshot(self, n_rows=n_rows)
        in_place = before is not None and before.is_complete

        def update() -> None:
            if forget:
                self._forget()
                self.__dict__.pop("_models", None)
            if not hasattr(self, "_models"):
                self._begin(X, raw, names, classes)
            self._learn(self._convert(X, raw, names, learn=True), y, in_place)

        atomically(self, update, from_scratch=True, before=before)
        return self

    def _split(self, X: Any, *, forget: bool = False) -> tuple[dict[int, list[Any]], Rows, list[str] | None]:
        """Return the categories of a frame, by feature, its numbers, and the names; an array contains codes."""
        table = as_table(X)
        if table is None:
            return split_rows(X, None)
        known = {} if forget else vars(self).get("categories_", {})
        every = range(len(table.own_names))
        declared = [j for j in known if j in every]
        times = sorted({*every}.difference(table.numeric, table.categorical, declared))
        if not times:
            return split_rows(table, declared or None)
        raw: dict[int, list[Any]] = {}
        rows = np.empty((len(table), len(every)))
        rows[:, times] = TableEncoder().encode(table.take(times), 1)
        if plain := sorted({*every}.difference(times)):
            raw, rows[:, plain], _ = split_rows(table.take(plain), [plain.index(j) for j in declared] or None)
        return {plain[j]: values for j, values in raw.items()}, rows, table.names

    def _encode(self, X: Rows, raw: dict[int, list[Any]], *, learn: bool) -> Rows:
        """Return rows with the codes of their categories; new categories are added if `learn`."""
        if not raw:
            return X
        new, names = sorted(raw.keys() - self.categories_.keys()), self._names()
        if new:
            name = names[new[0]] if names else new[0]
            raise DataError(
                f"Feature {name!r} had numbers in the first rows, got text: convert it to numbers."
            )
        rows, categories = np.array(X, dtype=np.float64), dict(self.categories_)
        for j, values in raw.items():
            codes = CategoryCodes(categories[j], MAX_CATEGORIES)
            rows[:, j] = codes.encode(values) if learn else [codes.find(value) for value in values]
            categories[j] = codes.values
        if learn:
            self.categories_ = categories
        return rows

    def _begin(self, X: Rows, raw: dict[int, list[Any]], names: list[str] | None, classes: Any) -> None:
        self._set_columns(X.shape[1], names)
        self.categories_ = {j: [] for j in raw}
        self.is_sparse_ = bool(sp.issparse(X))
        self._declared = None if classes is None else as_classes(classes)
        self._models = self._new_models()
        self._waiting: list[tuple[Rows, Array]] = []

    def _new_models(self) -> SelectiveLearner:
        numbers = is_regression_learner(self.selector, self.learner)
        selector, learner = None if self.selector is None else clone(self.selector), clone(self._learner())
        declare_categories(list(self.categories_), self._names(), selector, learner)
        return SelectiveLearner(
            selector,
            learner,
            np.array([]) if self._declared is None else self._declared,
            numbers=numbers, scale=self.scale, masking=self.masking, replay=self.replay,
        )  # fmt: skip

    def _learner(self) -> Any:
        if self.learner is not None:
            return self.learner
        return default_learner(numbers=is_regression_learner(self.selector, None))

    def _learn(self, X: Rows, y: Array, in_place: bool) -> None:
        """Update the models, or a copy of them, with complete batches, and another copy with the remaining rows."""
        rows, labels = X, as_target(y) if self._models.numbers else y.copy()
        if self._waiting:
            rows = concatenate_rows([*(X for X, _ in self._waiting), rows])
            labels = concatenate_labels([*(y for _, y in self._waiting), labels])
        whole = len(labels) - len(labels) % self.batch_size
        models = self._models if in_place or not whole else deepcopy(self._models)
        for at in range(0, whole, self.batch_size):
            deliver_signals()
            self._learn_batch(models, rows[at : at + self.batch_size], labels[at : at + self.batch_size])
        rest = [] if whole == len(labels) else [(rows[whole:].copy(), labels[whole:].copy())]
        ahead = self._ahead_of(models, rest)
        self._models, self._waiting, self._ahead, self.n_seen_ = models, rest, ahead, ahead.n_seen

    def change_columns(self, change: ColumnChange, X: Rows, y: Array) -> None:
        """Append or reset columns, as :class:`tamis.ByName` does when features appear or are evicted.

        Parameters
        ----------
        change : ColumnChange
        X, y : recent rows and their labels, after the change
            A selector or learner that cannot append or reset columns is fitted again to these.
        """
        models = deepcopy(self._models)
        waiting = [(change.of_rows(rows), labels) for rows, labels in self._waiting]
        n = len(y) - sum(len(labels) for _, labels in waiting)
        models.change_columns(change, X[:n], y[:n])
        self._models, self._waiting, self.n_features_in_ = models, waiting, change.n_features
        self.__dict__.pop("_ahead", None)

    def _ahead_of(self, models: SelectiveLearner, rest: list[tuple[Rows, Array]]) -> SelectiveLearner:
        """Return models that have also learned the incomplete batch."""
        models.learner.release_buffers()
        if not rest:
            return models
        ahead = deepcopy(models)
        for block in rest:
            self._learn_batch(ahead, *block)
        ahead.learner.release_buffers()
        return ahead

    def _learn_batch(self, models: SelectiveLearner, X: Rows, y: Array) -> None:
        try:
            known = models.learner.classes
            classes = known if models.numbers else encode_labels(y, known)[1]
            models.learn(X, y, classes, self._declared, list(self.categories_))
        except ValueError as error:
            models.reject(error, X, self._names())
            raise

    @functools.cached_property
    def _ahead(self) -> SelectiveLearner:
        """The models that also learned an incomplete batch; they are computed again if it is loaded or copied."""
        return self._ahead_of(self._models, self._waiting)

    def _current_models(self) -> SelectiveLearner:
        """Return the models that have learned from every row."""
        if "n_seen_" not in vars(self):
            check_is_fitted(self)
        return self._ahead

    def __copy__(self) -> Self:
        twin: Self = super().__copy__()
        if hasattr(twin, "_models"):  # which are updated in place
            twin._models = deepcopy(twin._models)
            twin.__dict__.pop("_ahead", None)
        return twin

    # -- rows ----------------------------------------------------------------------------------------------

    def _convert(self, X: Rows, raw: dict[int, list[Any]], names: list[str] | None, *, learn: bool) -> Rows:
        """Return coded rows in the format of the first ones, dense or sparse; raise if they do not match."""
        check_columns(type(self).__name__, X, names, self.n_features_in_, self._names())
        X = self._encode(X, raw, learn=learn)
        reject_nonfinite(X, self._names(), allow_nan=self._models.accepts_nan)
        if sp.issparse(X) == self.is_sparse_:
            return X
        return sp.csr_matrix(X) if self.is_sparse_ else X.toarray()

    def _apply_learner(self, X: Any, verb: str) -> Any:
        """Return the learner's output for rows."""
        models = self._current_models()
        if self.is_sparse_ or not is_plain(X, self.n_features_in_):
            raw, X, names = self._split(X)
            X = self._convert(X, raw, names, learn=False)
        learner = models.learner
        try:
            view = models.view(X)
            if verb == "predict":
                return learner.predict(view)
            if learner.n_known_classes == 0:  # one class is known: probability 1
                return np.ones(X.shape[0] if verb == "decision_function" else (X.shape[0], 1))
            with np.errstate(divide="ignore", invalid="ignore"):  # as in `MaskedLearner.predict`
                return np.array(getattr(view.predictor, verb)(view.asked), dtype=np.float64)
        except ValueError as error:
            models.reject(error, X, self._names())
            raise
        finally:
            learner.release_buffers()

    # -- read-outs -----------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Array:
        """Return the label (or number) of each row, shape (n_rows,)."""
        return self._apply_learner(X, "predict")

    @_if_learner_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n_rows, n_classes); only if the learner has it."""
        return self._apply_learner(X, "predict_proba")

    @_if_learner_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Return the score of each class, or of the second of two; only if the learner has it."""
        return self._apply_learner(X, "decision_function")

    def transform(self, X: Any) -> Any:
        """Return the selected features, unscaled.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray, CSR matrix or (with ``set_output``) frame of shape (n_rows, n_kept)
        """
        return super().transform(X)

    def freeze(self) -> Pipeline:
        """Return the model as a plain scikit-learn pipeline that predicts the same; see :func:`tamis.freeze`."""
        from tamis.pipeline.freezing import freeze

        return freeze(self)

    def _get_support_mask(self) -> Mask:
        mask = self._current_models().selection[0]
        return np.ones(self.n_features_in_, dtype=bool) if mask is None else mask.copy()

    @property
    def classes_(self) -> Array:
        """The labels, in the order of the columns of `predict_proba`."""
        models = self._current_models()
        if models.numbers:
            raise AttributeError("A pipeline that predicts numbers has no classes_.")
        return in_order(models.learner.classes)

    @property
    def selector_(self) -> Any:
        """The fitted selector; None if every feature is kept."""
        return self._current_models().selector

    @property
    def learner_(self) -> Any:
        """The fitted learner; it expects masked and scaled features."""
        return self._current_models().learner.model

    @property
    def scores_(self) -> Floats:
        """The selector's score of each feature; larger is more relevant."""
        selector: Any = self._current_models().selector
        return selector.scores_

    def __sklearn_tags__(self) -> Tags:
        learner = self._learner()
        tags = self._tags_like(super().__sklearn_tags__(), learner)
        tags.target_tags.required = True
        passes_nan = self.selector is None or get_tags(self.selector).input_tags.allow_nan
        is_scaled = self.scale == "standard" or (self.scale == "auto" and wants_scale(learner))
        tags.input_tags.allow_nan = passes_nan and (
            tags.input_tags.allow_nan or (is_scaled and self.selector is not None)
        )
        return tags
