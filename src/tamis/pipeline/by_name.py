"""ByName: named features that may appear, disappear and change their order over the stream.

A row is a dict from names to values, a row of a frame, or a CSR row with column names. Names are assigned to columns in
the order of their first appearance; the wrapped selector or pipeline receives rows with these columns. It grows when
new names appear (:meth:`tamis.base.RowSelector.widen`), by at least a quarter, so that a name costs O(1) amortised. A
selector that cannot grow gets spare columns, which are 0 until they are assigned to a name; a part of a pipeline that
cannot grow is fitted again to the last rows.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import KW_ONLY, dataclass, field
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tamis._guard import ThreadSafe
from tamis._shapes import state_error
from tamis._validation.arrays import Array, Floats, Ints, Mask, Rows, as_numbers
from tamis._validation.labels import check_label
from tamis._validation.parameters import Kind, check_parameters, integer, parameter, parameters
from tamis._validation.rows import as_rows, has_rows, reject_nonfinite
from tamis._validation.table import as_table
from tamis._validation.values import is_integer, short_repr
from tamis.base import RowSelector, n_to_select, top_mask
from tamis.base.rows import can_forget_columns, can_widen
from tamis.errors import DataError
from tamis.pipeline.masked_learner import ColumnChange
from tamis.pipeline.selective_learner import is_regression_learner
from tamis.pipeline.stream_pipeline import StreamPipeline
from tamis.replay import concatenate_labels

_GROWTH = 1.25
_NUMBERS = (float, int, np.floating, np.integer, np.bool_)
_MANY = 100_000  # names; without a budget, more are learned with a warning
_PROTECTED_BATCHES = 10  # batches during which a new name is not evicted
_TEXT_NAMES = "The column names of the frame must be strings: rename the columns."
_EVICTED_AT_ONCE = 0.1  # of the budget of a pipeline, whose learner may have to be fitted again


def _if_model_has(name: str) -> Any:
    return available_if(
        lambda self: isinstance(self.estimator, StreamPipeline) and hasattr(self.estimator, name)
    )


@dataclass(eq=False, repr=False)
class ByName(ThreadSafe, BaseEstimator):  # type: ignore[misc]
    """A wrapper that applies a row selector, or a pipeline with a learner, to named features that may appear any time.

    Parameters
    ----------
    estimator : RowSelector or StreamPipeline
        The selector, or a selector with a learner. It is cloned.
    absent : {"zero", "missing"}, default="zero"
        The value of a feature in a row that does not name it, and in the rows before it was first named: 0, or missing.
        "missing" needs a selector that skips missing values (the screening selectors do), and without a selector a
        learner that does.
    max_columns : int, optional
        Maximum number of names. Required by a selector without a learner with ``absent="missing"``, or if it cannot
        grow and names appear after its first rows. By default the number of columns grows with the names.
    budget : int, optional
        Maximum number of names in use at a time, at least 1. Beyond it, a selector evicts the names with the lowest
        scores, and a pipeline those that have been absent longest; see Notes. Without a budget, memory grows with every
        new name, and a warning is issued at 100,000 names.
    replay : int, at least 1, default=1000
        Number of recent rows that are stored for a pipeline. Parts of it that cannot append or reset columns are fitted
        again to these.

    Attributes
    ----------
    estimator_ : RowSelector or StreamPipeline
        The fitted one. The last of its columns may not be assigned to a name yet.
    classes_ : ndarray of shape (n_classes,)
        Of a pipeline with a classifier.
    feature_names_ : list
        The names, in the order of their columns.
    scores_ : ndarray of shape (n_names,), float64
        Current relevance of each name; larger is more relevant.
    selected_ : list
        The currently selected names, in the order of their columns.
    n_evicted_, n_passed_over_ : int
        With a `budget`: number of evicted names, and of names of a batch that were ignored. Repeated evictions of a
        name count each time.

    Raises
    ------
    DataError
        If rows are invalid, or no column is left for a new name; the model is unchanged.
    ValueError
        If ``absent="missing"`` and missing values are not supported.

    Notes
    -----
    All selectors can grow, except CancelOut and MonteCarloFIRES of a PyTorch module, which need `max_columns`. Their
    state is then, bit for bit, that of a selector with all columns from the first row on; up to rounding for FSDS,
    LeverageScores, MonteCarloFIRES, the matrix of forward selection, and for FIRES unless ``scaling=None``, because
    these sum over the columns. Parameters that depend on the number of columns use that of the names so far: the step
    of FIRES, if no `learning_rate` is given, OFS with a fraction or ``information="partial"``, the ridge of forward
    selection, the levels of the tests of DISCUSS, FCBF and JointScreening, and the number of levels into which
    JointScreening cuts a column. A fraction as `n_features_to_select` is a fraction of the names so far. If a number is
    larger than the names so far, all are kept. The sizes that Auto compares are updated whenever the number of names
    has doubled.

    **Learners.** The linear classifiers, WeightedNaiveBayes, WeightedKNN, the single Hoeffding trees, VFDR, and Refit
    append columns: their state is, bit for bit, that of a learner with all columns from the first row on, in which a
    new feature was missing so far (0 for the linear ones). All others, and those of other libraries, are fitted again
    to the last `replay` rows, at most once whenever the number of names has grown by a quarter. So is a selector with
    ``absent="missing"``, whenever that number has doubled; `max_columns` or `budget` avoids it. A prediction uses the
    features that a row names; unknown names are ignored.

    **Budget.** All selectors can reset single columns, with these exceptions: with `level`, whose guarantee covers all
    names ever seen; with `restarts`; and ABFS and the screening selectors with `categorical`. New names are admitted in
    the order of the number of rows of the batch that name them. If there are too few columns, a selector evicts names
    in the order of their scores, the lowest first. A name is not evicted if it is selected, if the batch names it, or
    if it was admitted during the last ten batches. A pipeline evicts the names that have been absent longest, a tenth
    of the budget at a time. New names without a column are ignored in this batch. An evicted name may return; it is
    then new, with value 0 (or missing) in all earlier rows. The evicted names depend on the batch size.

    Examples
    --------
    >>> from tamis import ByName, FisherScore
    >>> rows = [{"a": 1.0, "b": 2.0}, {"b": 3.0}, {"c": 7.0, "a": 1.0}, {"c": 8.0, "b": 2.5}]
    >>> model = ByName(FisherScore(1)).partial_fit(rows[:2], ["no", "no"])
    >>> model.partial_fit(rows[2:], ["yes", "yes"]).selected_
    ['c']
    >>> model.transform([{"c": 5.0, "a": 2.0}, {"b": 1.0}])
    [{'c': 5.0}, {}]

    With a learner. A sensor "b" replaces "a":

    >>> import numpy as np
    >>> from tamis import StreamPipeline, WeightedNaiveBayes
    >>> rng, model = np.random.default_rng(0), ByName(StreamPipeline(learner=WeightedNaiveBayes()), absent="missing")
    >>> for batch in range(20):
    ...     y = rng.integers(0, 2, size=100)
    ...     rows = [{"a" if batch < 10 else "b": label + rng.normal() / 4, "noise": rng.normal()} for label in y]
    ...     _ = model.partial_fit(rows, y)
    >>> model.feature_names_, model.predict([{"a": 1.0}, {"b": 0.1}, {"b": 0.9, "noise": 0.0, "unknown": 5.0}])
    (['a', 'noise', 'b'], array([1, 0, 1]))
    """

    _allowed = parameters(
        estimator=Kind(
            "a row selector or a StreamPipeline",
            lambda value: isinstance(value, RowSelector | StreamPipeline),
        )
    )

    _shapes = "_since[] in [0, 2**62)  _last_named[] in [0, 2**62)  _n_batches in [0, 2**62)"

    def check_state(self) -> None:
        """Raise if the positions of a loaded model are not 0, 1, 2 and so on.

        Raises
        ------
        StateError
            If so.
        """
        places = vars(self).get("_places", {})
        taken = sorted(places.values())
        fits = taken == list(range(len(taken)))
        if self._is_model and self.budget is not None:  # columns of evicted names may be free
            fits = len(set(taken)) == len(taken) and (
                not taken or 0 <= taken[0] <= taken[-1] < len(self._last_named)
            )
        if not fits:
            raise state_error("The names of a ByName do not have one column each")

    estimator: RowSelector | StreamPipeline
    _: KW_ONLY
    estimator_: Any = field(init=False)
    _places: dict[Any, int] = field(init=False)
    _recent: list[tuple[Array, Array, Array, Array]] = field(init=False)
    absent: str = parameter("zero", "missing", default="zero")
    max_columns: int | None = parameter(integer("[1, inf)"), None, default=None)
    budget: int | None = parameter(integer("[1, inf)"), None, default=None)
    replay: int = parameter(integer("[1, inf)"), default=1000)

    # -- learning ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Reset the model, then learn from these rows in order; see `partial_fit`."""
        before = dict(self.__dict__)
        try:
            self._places = {}
            return self.partial_fit(X, y, None, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Update the model with named rows. If it raises, the model is unchanged.

        Parameters
        ----------
        X : list of dict, frame with column names, or (CSR matrix, list of names)
            The features of each row. None is equivalent to not naming a feature, a masked value to NaN.
        y : array-like of shape (n_rows,)
        classes : array-like, optional
            Labels known in advance.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        if not has_rows(X[0] if isinstance(X, tuple) else X):
            return self
        check_parameters(self)
        if sample_weight is not None and self._is_model:
            raise TypeError("A StreamPipeline does not support sample_weight: omit it.")
        before = dict(self.__dict__)
        places = vars(self).get("_places") or self._begin()
        n_known = len(places)
        try:
            taken = copy.copy(self.estimator_)
            if self.budget is None:
                rows = self._rows(X, places)
            else:
                places = dict(places)
                rows = self._rows_in_budget(X, places, taken)
            if self.budget is None and self.max_columns is None and n_known < _MANY <= len(places):
                warnings.warn(
                    f"The rows have named {len(places):,} features, and each new name takes more memory: pass budget,"
                    " the number of names in use at a time, if new names never end.",
                    UserWarning,
                    stacklevel=3,
                )
            n_used = len(places) if self.budget is None else max(places.values(), default=-1) + 1
            self._make_room(taken, n_used)
            width = taken.n_features_in_ if hasattr(taken, "n_seen_") else self._first_width(n_used)
            options = {} if self._is_model else {"sample_weight": sample_weight}
            taken.partial_fit(self._to_width(rows, width), y, classes, **options)
            if self._is_model:
                self._store(rows, y)
        except BaseException:
            if self.budget is None:
                for name in list(places)[n_known:]:
                    del places[name]
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        self._places, self.estimator_ = places, taken
        return self

    @property
    def _is_model(self) -> bool:
        return isinstance(self.estimator, StreamPipeline)

    @property
    def _selector(self) -> Any:
        """The unfitted selector; None in a pipeline without one."""
        return self.estimator.selector if isinstance(self.estimator, StreamPipeline) else self.estimator

    @property
    def _accepts_nan(self) -> bool:
        if isinstance(self.estimator, StreamPipeline):
            return bool(get_tags(self.estimator).input_tags.allow_nan)
        return self.estimator.accepts.nan

    def _store(self, rows: tuple[Array, Array, Array], y: Any) -> None:
        """Append rows to the recent ones, and drop the oldest."""
        recent = [*self._recent, (*rows, np.array(y))]
        wanted = self.replay + self.estimator.batch_size  # rows of an incomplete batch are not replayed
        while sum(len(one[-1]) for one in recent[1:]) >= wanted:
            recent = recent[1:]
        self._recent = recent

    def _change_columns(self, model: StreamPipeline, change: ColumnChange) -> None:
        """Append or reset columns of a pipeline."""
        if change.forgotten is not None:
            cleared = []
            for values, indices, indptr, y in self._recent:
                kept = ~np.isin(indices, change.forgotten)
                n_before = np.concatenate([[0], np.cumsum(kept)])
                cleared.append((values[kept], indices[kept], n_before[indptr], y))
            self._recent = cleared
        parts = [self._to_width((data, at, ends), change.n_features) for data, at, ends, _ in self._recent]
        labels = concatenate_labels([y for *_, y in self._recent])
        X = sp.vstack(parts, format="csr") if self.absent == "zero" else np.concatenate(parts)
        model.change_columns(change, X, labels)

    def _begin(self) -> dict[Any, int]:
        if self.absent == "missing" and not self._accepts_nan:
            raise ValueError(
                f"absent='missing', but {type(self.estimator).__name__} does not support missing values: choose"
                " absent='zero'."
            )
        if self.absent == "missing" and self.max_columns is None and not self._is_model:
            raise ValueError("absent='missing' needs max_columns, the maximum number of names.")
        if self.budget is not None:
            self._check_budget()
        self.estimator_ = clone(self.estimator)
        self._places = {}
        # With a budget: the batches in which the name of each column was admitted, and last named.
        self._since: list[int] = []
        self._last_named: list[int] = []
        self._n_batches = self.n_evicted_ = self.n_passed_over_ = 0
        # Of a pipeline: data, indices and indptr of recent rows as in CSR, and their labels.
        self._recent = []
        return self._places

    def _check_budget(self) -> None:
        if self.max_columns is not None or (self.absent != "zero" and not self._is_model):
            raise ValueError(
                f"budget={self.budget} cannot be combined with max_columns or absent='missing': omit these."
            )
        if isinstance(self.estimator, RowSelector) and not can_forget_columns(self.estimator):
            raise ValueError(
                f"budget={self.budget}, but {type(self.estimator).__name__} with these parameters cannot forget single"
                " columns: omit budget, or level, restarts and categorical, if they were given."
            )

    def _first_width(self, n_names: int) -> int:
        """Return the initial number of columns: at least the number of features to select, if that is given."""
        selector: Any = self._selector
        wanted: Any = getattr(selector, "n_features_to_select", None)
        width = max(n_names, self.max_columns or 0, int(wanted) if is_integer(wanted) else 1)
        if self.absent == "zero" or self.max_columns is not None:
            return width
        return max(width, 2 * n_names if self.budget is None else self.budget)

    def _check_room(self, estimator: Any, n_names: int) -> bool:
        """Return whether the estimator must grow for so many names; raise if it cannot."""
        if self.max_columns is not None and n_names > self.max_columns:
            raise DataError(
                f"The rows name {n_names} columns, but max_columns is {self.max_columns}: raise it, or use fewer names."
            )
        if not hasattr(estimator, "n_seen_") or n_names <= estimator.n_features_in_:
            return False
        if not self._is_model and not can_widen(estimator):
            raise DataError(
                f"{n_names - estimator.n_features_in_} columns are new, but {type(estimator).__name__} cannot grow:"
                f" reserve room for new names, as in ByName(..., max_columns={2 * n_names})."
            )
        return True

    def _make_room(self, estimator: Any, n_names: int) -> None:
        """Grow the estimator by at least a quarter, if necessary and supported."""
        if not self._check_room(estimator, n_names):
            return
        if not self._is_model and estimator._claims().counts_columns:
            room = n_names
        else:
            room = int((_GROWTH if self.absent == "zero" else 2.0) * estimator.n_features_in_)
        room = max(n_names, room if self.budget is None else min(room, self.budget))
        if self._is_model:
            self._change_columns(estimator, ColumnChange(room))
        else:
            estimator.widen(room)

    def check_row(self, row: dict[Any, Any], y: Any, n_names: int) -> None:
        """Raise if `partial_fit` would reject a row, so that a batch can be collected from valid rows.

        Parameters
        ----------
        row : dict
            The features of the row.
        y : object
            Its label.
        n_names : int
            Number of names so far, including those of rows that are not learned yet and of this one.

        Raises
        ------
        DataError
            If so, with the name and the value.
        """
        check_parameters(self)
        check_cells(row, allow_nan=self._accepts_nan)
        if isinstance(self.estimator, StreamPipeline):
            check_label(
                y, type(self).__name__, numbers=is_regression_learner(self._selector, self.estimator.learner)
            )
        elif self.estimator.accepts.labels:
            check_label(y, type(self).__name__, numbers=self.estimator._is_regression())
        if self.budget is None:
            self._check_room(vars(self).get("estimator_", self.estimator), n_names)

    # -- a budget of names ---------------------------------------------------------------------------------

    def _rows_in_budget(self, X: Any, places: dict[Any, int], estimator: Any) -> tuple[Array, Array, Array]:
        """Return the cells of names that have a column, after admissions and evictions."""
        names, values, indptr = self._cells(X)
        self._admit_names(names, places, estimator)
        return self._known_cells(names, values, indptr, places)

    def _cells(self, X: Any) -> tuple[list[Any], Array, Array]:
        """Return the name and value of each cell, and the end of each row."""
        if isinstance(X, list) and X and all(isinstance(row, dict) for row in X):
            return named_cells(X)
        rows, columns = self._named_rows(X)
        return [columns[j] for j in rows.indices], rows.data, rows.indptr

    def _known_cells(
        self, names: list[Any], values: Array, indptr: Array, places: dict[Any, int]
    ) -> tuple[Array, Array, Array]:
        """Return the cells of names that have a column."""
        known = np.fromiter((name in places for name in names), np.bool_, len(names))
        indices = np.fromiter((places[name] for name in names if name in places), np.int64)
        n_before = np.concatenate([[0], np.cumsum(known)])
        values, indptr = values[known], n_before[indptr]
        self._refuse_nonfinite(values, indices, indptr, places)
        return values, indices, indptr

    def _admit_names(self, names: list[Any], places: dict[Any, int], estimator: Any) -> None:
        """Assign columns to new names, the most frequent first, as far as columns are free or can be freed."""
        assert self.budget is not None
        often, named = Counter(name for name in names if name not in places), set(names)
        lacking = len(often) - (self.budget - len(places))
        leaving: list[Any] = []
        if lacking > 0 and places:
            leaving = (
                self._longest_absent(named, lacking) if self._is_model else self._least_useful(named, lacking)
            )
        freed = [places.pop(name) for name in leaving]
        if freed and self._is_model:
            self._change_columns(estimator, ColumnChange(estimator.n_features_in_, np.array(sorted(freed))))
        elif freed:
            estimator.forget_columns(freed)
        used = {*places.values(), *freed}
        free = [*freed, *(place for place in range(self.budget) if place not in used)]
        coming = sorted(often, key=lambda name: -often[name])[: len(free)]
        n_more = max([*used, *free[: len(coming)]], default=-1) + 1 - len(self._since)
        since, last_named = [*self._since, *[0] * n_more], [*self._last_named, *[0] * n_more]
        for name, place in zip(coming, free, strict=False):
            places[name], since[place] = place, self._n_batches
        for name in named & places.keys():
            last_named[places[name]] = self._n_batches
        self._since, self._last_named, self._n_batches = since, last_named, self._n_batches + 1
        self.n_evicted_ += len(freed)
        self.n_passed_over_ += len(often) - len(coming)

    def _longest_absent(self, named: set[Any], n: int) -> list[Any]:
        """Return up to `n` names that the batch does not name, or a tenth of the budget, the longest absent first."""
        absent = [
            (self._last_named[place], place, name)
            for name, place in self._places.items()
            if name not in named
        ]
        n = max(n, int(_EVICTED_AT_ONCE * (self.budget or 0)))
        return [name for *_, name in sorted(absent, key=lambda one: one[:2])[:n]]

    def _least_useful(self, named: set[Any], n: int) -> list[Any]:
        """Return up to `n` names that may be evicted, those with the lowest scores first."""
        if self.estimator_.warming_up_:
            return []
        kept, scores = self.get_support(), self.scores_
        may_leave = [
            (scores[place], self._since[place], name)
            for place, name in enumerate(self.feature_names_)
            if not kept[place]
            and name not in named
            and self._n_batches - self._since[place] >= _PROTECTED_BATCHES
        ]
        return [name for *_, name in sorted(may_leave, key=lambda one: one[:2])[:n]]

    # -- rows ----------------------------------------------------------------------------------------------

    def _rows(self, X: Any, places: dict[Any, int]) -> tuple[Array, Array, Array]:
        """Return data, indices and indptr of the rows as in CSR; new names are assigned to columns."""
        if isinstance(X, list) and X and all(isinstance(row, dict) for row in X):
            if (alike := self._rows_with_same_names(X, places)) is not None:
                return alike
            names, values, indptr = named_cells(X)
            try:
                indices = np.fromiter(map(places.__getitem__, names), np.int64, len(names))
            except KeyError:
                _assign_positions(names, places)
                indices = np.fromiter(map(places.__getitem__, names), np.int64, len(names))
        else:
            rows, names = self._named_rows(X)
            _assign_positions(names, places)
            place = np.fromiter(map(places.__getitem__, names), np.int64, len(names))
            values, indices, indptr = rows.data, place[rows.indices], rows.indptr
        self._refuse_nonfinite(values, indices, indptr, places)
        return values, indices, indptr

    def _refuse_nonfinite(self, values: Array, indices: Array, indptr: Array, places: dict[Any, int]) -> None:
        if not np.isfinite(values).all():
            cells = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, len(places)))
            reject_nonfinite(cells, list(map(str, _ordered_names(places))), allow_nan=self._accepts_nan)

    def _rows_with_same_names(
        self, X: list[dict[Any, Any]], places: dict[Any, int]
    ) -> tuple[Array, Array, Array] | None:
        """Return the same for rows that all have the names of the first one, looked up once; None otherwise."""
        names = list(X[0])
        if len(names) < 2 or set(map(len, X)) != {len(names)}:
            return None
        try:
            rows = [*map(itemgetter(*names), X)]
        except KeyError:
            return None
        if (values := _numbers(rows)) is None:
            return None
        _assign_positions(names, places)
        place = np.fromiter(map(places.__getitem__, names), np.int64, len(names))
        order = np.argsort(place)
        values = values.reshape(len(X), -1)[:, order].ravel()
        indices = np.tile(place[order], len(X))
        indptr = np.arange(0, len(values) + 1, len(names))
        self._refuse_nonfinite(values, indices, indptr, places)
        return values, indices, indptr

    def _named_rows(self, X: Any) -> tuple[Rows, list[Any]]:
        if isinstance(X, tuple) and len(X) == 2 and sp.issparse(X[0]):
            rows, names = as_rows(X[0])[0], list(X[1])
            if len(names) != rows.shape[1] or len(set(names)) != len(names):
                raise DataError(
                    f"X has {rows.shape[1]} columns and {len(set(names))} distinct names: names must be unique."
                )
            return rows, names
        if as_table(X) is None:
            raise _no_names(X)
        rows, columns = as_rows(X)
        if columns is None:
            raise DataError(_TEXT_NAMES)
        if sp.issparse(rows) or self.absent == "zero":
            return sp.csr_matrix(rows), columns
        n, n_columns = rows.shape  # every cell is there, also if it is 0
        ends = np.arange(0, rows.size + 1, n_columns)
        return sp.csr_matrix((rows.ravel(), np.tile(np.arange(n_columns), n), ends), rows.shape), columns

    def _to_width(self, parts: tuple[Array, Array, Array], width: int) -> Rows:
        values, indices, indptr = parts
        if self.absent == "zero":
            rows = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, width))
            if self._is_model:
                # So a sum over a row does not depend on the order of its names.
                return rows.sorted_indices()
            return rows
        dense = np.full((len(indptr) - 1, width), np.nan)
        dense[np.repeat(np.arange(len(dense)), np.diff(indptr)), indices] = values
        return dense

    # -- read-outs -----------------------------------------------------------------------------------------

    @property
    def feature_names_(self) -> list[Any]:
        """The names, in the order of their columns."""
        check_is_fitted(self)
        return _ordered_names(self._places) if self.n_evicted_ else list(self._places)

    def _columns(self) -> slice | list[int]:
        """Return the columns of the names; the last one may be spare, and those of evicted names free."""
        return sorted(self._places.values()) if self._is_model else slice(len(self._places))

    @property
    def scores_(self) -> Floats:
        """Current relevance of each name; larger is more relevant."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.scores_[self._columns()])

    @property
    def selected_(self) -> list[Any]:
        """The currently selected names, in the order of their columns."""
        names = self.feature_names_
        return [names[j] for j in np.flatnonzero(self.get_support())]

    @property
    def drift_detected_(self) -> bool:
        """Whether the selector detected a drift in the last batch."""
        return bool(getattr(vars(self).get("estimator_"), "drift_detected_", False))

    @property
    def n_replay(self) -> int:
        """Number of recent rows from which a learner should be refitted; see :mod:`tamis.replay`."""
        return int(getattr(vars(self).get("estimator_", self.estimator), "n_replay", 0))

    def get_support(self) -> Mask:
        """Return whether each name is currently selected, in the order of their columns."""
        check_is_fitted(self)
        if self._is_model:
            return np.asarray(self.estimator_.get_support()[self._columns()])
        selector, n = self.estimator_, len(self._places)
        best_of_first = getattr(selector, "_best_of_first", None)
        chooses = selector._chooses_count and best_of_first is None
        if selector.warming_up_ or chooses or n == selector.n_features_in_:
            return selector.get_support()[:n]
        wanted = selector.n_features_to_select
        n_kept = min(int(wanted), n) if is_integer(wanted) else n_to_select(wanted, n)
        if best_of_first is not None and selector._chooses_count:
            return best_of_first(n, n_kept)
        return top_mask(selector._relevance()[:n], n_kept)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the currently selected names, in the order of their columns.

        Parameters
        ----------
        input_features : None
            Ignored.
        """
        names = np.empty(len(selected := self.selected_), dtype=object)
        names[:] = selected
        return names

    def transform(self, X: Any) -> Any:
        """Return the rows with the currently selected features.

        Parameters
        ----------
        X : list of dict, frame with column names, or (CSR matrix, list of names)
            Unknown names are ignored.

        Returns
        -------
        list of dict, frame or (CSR matrix, list of names)
        """
        return self._with_names(X, set(self.selected_))

    def _with_names(self, X: Any, kept: Container[Any]) -> Any:
        """Return the rows with these names only."""
        if isinstance(X, list) and all(isinstance(row, dict) for row in X):
            return [{name: row[name] for name in row if name in kept} for row in X]
        if isinstance(X, tuple):
            rows, names = self._named_rows(X)
            columns = [j for j, name in enumerate(names) if name in kept]
            return rows[:, columns], [names[j] for j in columns]
        table = as_table(X)
        if table is None:
            raise _no_names(X)
        if table.names is None:
            raise DataError(_TEXT_NAMES)
        return table.take(j for j, name in enumerate(table.own_names) if name in kept).native

    def _rows_to_predict(self, X: Any) -> Rows:
        """Return the rows of the known names; values of others, such as texts, do not matter."""
        check_is_fitted(self)
        known = X if isinstance(X, tuple) else self._with_names(X, self._places)
        if (table := as_table(known)) is not None and not table.own_names:
            known = X  # without a column, some frames have no rows
        return self._to_width(
            self._known_cells(*self._cells(known), self._places), self.estimator_.n_features_in_
        )

    @_if_model_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Array:
        """Return the label (or number) of each row; unknown names are ignored. Only of a pipeline.

        Parameters
        ----------
        X : list of dict, frame with column names, or (CSR matrix, list of names)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self.estimator_.predict(self._rows_to_predict(X))

    @_if_model_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n_rows, n_classes); only if the learner has it."""
        return self.estimator_.predict_proba(self._rows_to_predict(X))

    @_if_model_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Return the score of each class, or of the second of two; only if the learner has it."""
        return self.estimator_.decision_function(self._rows_to_predict(X))

    @_if_model_has("score")  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy, or for a regressor R^2, on held-out rows."""
        return float(self.estimator_.score(self._rows_to_predict(X), y))

    @property
    def classes_(self) -> Array:
        """The labels, in the order of the columns of `predict_proba`."""
        check_is_fitted(self)
        return self.estimator_.classes_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self._is_model:
            inner = get_tags(self.estimator)
            tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
            tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.two_d_array, tags.input_tags.dict = False, True  # columns have names
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_places") and bool(self._places)


def _no_names(X: Any) -> DataError:
    return DataError(f"X must be a list of dicts, a frame or (CSR matrix, names), got {short_repr(X)}.")


def named_cells(rows: list[dict[Any, Any]]) -> tuple[list[Any], Floats, Ints]:
    """Return the names and values of all rows, concatenated, and the end of each row."""
    values = _numbers(map(dict.values, rows))
    if values is None:
        rows = [
            {name: _as_float(name, value) for name, value in row.items() if value is not None} for row in rows
        ]
        values = np.array([value for row in rows for value in row.values()])
    ends = np.fromiter(accumulate(map(len, rows), initial=0), np.int64, len(rows) + 1)
    return list(chain.from_iterable(rows)), values, ends


def check_cells(row: dict[Any, Any], *, allow_nan: bool) -> None:
    """Raise if a value of a row is not a number, or infinite (or NaN, unless allowed)."""
    if set(map(type, row.values())) == {float} and math.isfinite(sum(row.values())):
        return  # a sum is finite only if all its terms are
    names, values, _ = named_cells([row])
    if not np.isfinite(values).all():
        reject_nonfinite(values[None], list(map(str, names)), allow_nan=allow_nan)


def _numbers(rows: Iterable[Iterable[Any]]) -> Floats | None:
    """Return the values of all rows, concatenated; None if one is not of a common numeric type."""
    values = [*chain.from_iterable(rows)]
    if not all(issubclass(kind, _NUMBERS) for kind in set(map(type, values))):
        return None
    try:
        return np.fromiter(values, np.float64, len(values))
    except OverflowError:
        return None


def _as_float(name: Any, value: Any) -> float:
    if np.ma.is_masked(value):
        return np.nan
    try:
        numbers = as_numbers(f"Column {name!r}", [value])
    except TypeError as error:
        raise DataError(str(error)) from None
    if numbers.shape != (1,):
        raise DataError(
            f"Column {name!r} contains {short_repr(value)}, which is not a number: pass one number."
        )
    return float(numbers[0])


def _ordered_names(places: dict[Any, int]) -> list[Any]:
    return sorted(places, key=places.__getitem__)


def _assign_positions(names: list[Any], places: dict[Any, int]) -> None:
    for name in names:
        if name not in places:
            places[name] = len(places)
