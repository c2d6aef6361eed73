"""ByName: named features that may appear, disappear and change their order over the stream.

A row is a dict from names to values, a row of a frame, or a CSR row with column names. Names are assigned to columns in
the order of their first appearance; the wrapped selector receives CSR rows with these columns. A selector that supports
it (:meth:`tamis.base.RowSelector.widen`) grows when new names appear, by at least a quarter, so that a name costs O(1)
amortised. Other selectors get spare columns, which are 0 until they are assigned to a name.
"""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tamis._guard import ThreadSafe
from tamis._shapes import state_error
from tamis._validation import (
    Array,
    Floats,
    Ints,
    Mask,
    Rows,
    as_numbers,
    as_rows,
    as_table,
    check_label,
    has_rows,
    is_integer,
    reject_nonfinite,
    short_repr,
)
from tamis._validation.parameters import Kind, check_parameters, integer, parameters
from tamis.base import RowSelector, n_to_select, top_mask
from tamis.base.rows import can_forget_columns, can_widen
from tamis.errors import DataError

_GROWTH = 1.25
_NUMBERS = (float, int, np.floating, np.integer, np.bool_)
_MANY = 100_000  # names; without a budget, more are learned with a warning
_PROTECTED_BATCHES = 10  # batches during which a new name is not evicted


@dataclass(eq=False, repr=False)
class ByName(ThreadSafe, BaseEstimator):  # type: ignore[misc]
    """A wrapper that applies a row selector to named features, which may appear at any time.

    Parameters
    ----------
    selector : RowSelector
        The selector. It is cloned.
    absent : {"zero", "missing"}, default="zero"
        The value of a feature in a row that does not name it, and in the rows before it was first named: 0, or missing.
        "missing" needs a selector that skips missing values (the screening selectors do).
    max_columns : int, optional
        Maximum number of names. Required by ``absent="missing"``, and by a selector that cannot grow if names appear
        after its first rows. By default the number of columns grows with the names, if the selector can grow.
    budget : int, optional
        Maximum number of names in use at a time, at least 1. Beyond it, the names with the lowest scores are evicted;
        see Notes. Without a budget, memory grows with every new name, and a warning is issued at 100,000 names.

    Attributes
    ----------
    selector_ : RowSelector
        The fitted selector. The last of its columns may not be assigned to a name yet.
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
        If ``absent="missing"`` and the selector does not skip missing values.

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

    **Budget.** All selectors can reset single columns, with these exceptions: with `level`, whose guarantee covers all
    names ever seen; with `restarts`; and ABFS and the screening selectors with `categorical`. New names are admitted in
    the order of the number of rows of the batch that name them. If there are too few columns, names are evicted in the
    order of their scores, the lowest first. A name is not evicted if it is selected, if the batch names it, or if it
    was admitted during the last ten batches. New names without a column are ignored in this batch. An evicted name may
    return; it is then new, with value 0 in all earlier rows. The evicted names depend on the batch size.

    Examples
    --------
    >>> from tamis import ByName, FisherScore
    >>> rows = [{"a": 1.0, "b": 2.0}, {"b": 3.0}, {"c": 7.0, "a": 1.0}, {"c": 8.0, "b": 2.5}]
    >>> model = ByName(FisherScore(1)).partial_fit(rows[:2], ["no", "no"])
    >>> model.partial_fit(rows[2:], ["yes", "yes"]).selected_
    ['c']
    >>> model.transform([{"c": 5.0, "a": 2.0}, {"b": 1.0}])
    [{'c': 5.0}, {}]
    """

    _allowed = parameters(
        selector=Kind("a row selector", lambda value: isinstance(value, RowSelector)),
        absent=("zero", "missing"),
        max_columns=(integer("[1, inf)"), None),
        budget=(integer("[1, inf)"), None),
    )

    _shapes = "_since[] in [0, 2**62)  _n_batches in [0, 2**62)"

    def check_state(self) -> None:
        """Raise if the positions of a loaded selector are not 0, 1, 2 and so on.

        Raises
        ------
        StateError
            If so.
        """
        places = vars(self).get("_places", {})
        if sorted(places.values()) != list(range(len(places))):
            raise state_error("The names of a ByName do not have one column each")

    selector: RowSelector
    _: KW_ONLY
    selector_: RowSelector = field(init=False)
    _places: dict[Any, int] = field(init=False)
    absent: str = "zero"
    max_columns: int | None = None
    budget: int | None = None

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
        before = dict(self.__dict__)
        places = vars(self).get("_places") or self._begin()
        n_known = len(places)
        try:
            taken = copy.copy(self.selector_)
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
            self._make_room(taken, len(places))
            width = max(
                taken.n_features_in_ if hasattr(taken, "n_seen_") else 0, self._first_width(len(places))
            )
            taken.partial_fit(self._to_width(rows, width), y, classes, sample_weight)
        except BaseException:
            if self.budget is None:
                for name in list(places)[n_known:]:
                    del places[name]
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        self._places, self.selector_ = places, taken
        return self

    def _begin(self) -> dict[Any, int]:
        if self.absent == "missing" and not self.selector.accepts.nan:
            raise ValueError(
                f"absent='missing', but {type(self.selector).__name__} does not support missing values: choose"
                " absent='zero'."
            )
        if self.absent == "missing" and self.max_columns is None:
            raise ValueError("absent='missing' needs max_columns, the maximum number of names.")
        if self.budget is not None:
            self._check_budget()
        self.selector_ = clone(self.selector)
        self._places = {}
        # With a budget: the batch in which the name of each column was admitted.
        self._since: list[int] = []
        self._n_batches = self.n_evicted_ = self.n_passed_over_ = 0
        return self._places

    def _check_budget(self) -> None:
        if self.max_columns is not None or self.absent != "zero":
            raise ValueError(
                f"budget={self.budget} cannot be combined with max_columns or absent='missing': omit these."
            )
        if not can_forget_columns(self.selector):
            raise ValueError(
                f"budget={self.budget}, but {type(self.selector).__name__} with these parameters cannot forget single"
                " columns: omit budget, or level, restarts and categorical, if they were given."
            )

    def _first_width(self, n_names: int) -> int:
        """Return the initial number of columns: at least the number of features to select, if that is given."""
        wanted = self.selector.n_features_to_select if not self.selector._chooses_count else 1
        return max(n_names, self.max_columns or 0, int(wanted) if is_integer(wanted) else 1)

    def _check_room(self, selector: RowSelector, n_names: int) -> bool:
        """Return whether the selector must grow for so many names; raise if it cannot."""
        if self.max_columns is not None and n_names > self.max_columns:
            raise DataError(
                f"The rows name {n_names} columns, but max_columns is {self.max_columns}: raise it, or use fewer names."
            )
        if not hasattr(selector, "n_seen_") or n_names <= selector.n_features_in_:
            return False
        if not can_widen(selector):
            raise DataError(
                f"{n_names - selector.n_features_in_} columns are new, but {type(selector).__name__} cannot grow:"
                f" reserve room for new names, as in ByName(..., max_columns={2 * n_names})."
            )
        return True

    def _make_room(self, selector: RowSelector, n_names: int) -> None:
        """Grow the selector by at least a quarter, if necessary and supported."""
        if not self._check_room(selector, n_names):
            return
        room = n_names if selector._claims().counts_columns else int(_GROWTH * selector.n_features_in_)
        selector.widen(max(n_names, room if self.budget is None else min(room, self.budget)))

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
        names, values, _ = named_cells([row])
        if not np.isfinite(values).all():
            reject_nonfinite(values[None], list(map(str, names)), allow_nan=self.selector.accepts.nan)
        if self.selector.accepts.labels:
            check_label(y, type(self).__name__, numbers=self.selector._is_regression())
        if self.budget is None:
            self._check_room(vars(self).get("selector_", self.selector), n_names)

    # -- a budget of names ---------------------------------------------------------------------------------

    def _rows_in_budget(
        self, X: Any, places: dict[Any, int], selector: RowSelector
    ) -> tuple[Array, Array, Array]:
        """Return the cells of names that have a column, after admissions and evictions."""
        if isinstance(X, list) and X and all(isinstance(row, dict) for row in X):
            names, values, indptr = named_cells(X)
        else:
            rows, columns = self._named_rows(X)
            names, values, indptr = [columns[j] for j in rows.indices], rows.data, rows.indptr
        self._admit_names(names, places, selector)
        known = np.fromiter((name in places for name in names), np.bool_, len(names))
        indices = np.fromiter((places[name] for name in names if name in places), np.int64)
        n_before = np.concatenate([[0], np.cumsum(known)])
        values, indptr = values[known], n_before[indptr]
        self._refuse_nonfinite(values, indices, indptr, places)
        return values, indices, indptr

    def _admit_names(self, names: list[Any], places: dict[Any, int], selector: RowSelector) -> None:
        """Assign columns to new names, the most frequent first, as far as columns are free or can be freed."""
        assert self.budget is not None
        often = Counter(name for name in names if name not in places)
        lacking = len(often) - (self.budget - len(places))
        leaving = self._least_useful(set(names), lacking) if lacking > 0 and places else []
        freed = [places.pop(name) for name in leaving]
        if freed:
            selector.forget_columns(freed)
        free = [*freed, *range(len(places) + len(freed), self.budget)]
        coming = sorted(often, key=lambda name: -often[name])[: len(free)]
        since = [*self._since, *[0] * (len(places) + len(coming) - len(self._since))]
        for name, place in zip(coming, free, strict=False):
            places[name], since[place] = place, self._n_batches
        self._since, self._n_batches = since, self._n_batches + 1
        self.n_evicted_ += len(freed)
        self.n_passed_over_ += len(often) - len(coming)

    def _least_useful(self, named: set[Any], n: int) -> list[Any]:
        """Return up to `n` names that may be evicted, those with the lowest scores first."""
        if self.selector_.warming_up_:
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
            reject_nonfinite(
                cells, list(map(str, _ordered_names(places))), allow_nan=self.selector_.accepts.nan
            )

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
            raise DataError(
                f"X must be a list of dicts, a frame or (CSR matrix, names), got {short_repr(X)}."
            )
        rows, columns = as_rows(X)
        if columns is None:
            raise DataError("The column names of the frame must be strings: rename the columns.")
        return sp.csr_matrix(rows), columns

    def _to_width(self, parts: tuple[Array, Array, Array], width: int) -> Rows:
        values, indices, indptr = parts
        if self.absent == "zero":
            return sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, width))
        dense = np.full((len(indptr) - 1, width), np.nan)
        dense[np.repeat(np.arange(len(dense)), np.diff(indptr)), indices] = values
        return dense

    # -- read-outs -----------------------------------------------------------------------------------------

    @property
    def feature_names_(self) -> list[Any]:
        """The names, in the order of their columns."""
        check_is_fitted(self)
        return _ordered_names(self._places) if self.n_evicted_ else list(self._places)

    @property
    def scores_(self) -> Floats:
        """Current relevance of each name; larger is more relevant."""
        check_is_fitted(self)
        return self.selector_.scores_[: len(self._places)]

    @property
    def selected_(self) -> list[Any]:
        """The currently selected names, in the order of their columns."""
        names = self.feature_names_
        return [names[j] for j in np.flatnonzero(self.get_support())]

    @property
    def drift_detected_(self) -> bool:
        """Whether the selector detected a drift in the last batch."""
        return bool(getattr(vars(self).get("selector_"), "drift_detected_", False))

    @property
    def n_replay(self) -> int:
        """Number of recent rows from which a learner should be refitted; see :mod:`tamis.replay`."""
        return int(getattr(vars(self).get("selector_", self.selector), "n_replay", 0))

    def get_support(self) -> Mask:
        """Return whether each name is currently selected, in the order of their columns."""
        check_is_fitted(self)
        selector, n = self.selector_, len(self._places)
        best_of_first = getattr(selector, "_best_of_first", None)
        chooses = selector._chooses_count and best_of_first is None
        if selector.warming_up_ or chooses or n == selector.n_features_in_:
            return selector.get_support()[:n]
        wanted = selector.n_features_to_select
        n_kept = min(int(wanted), n) if is_integer(wanted) else n_to_select(wanted, n)
        if best_of_first is not None and selector._chooses_count:
            mask = best_of_first(n, n_kept)
            return mask
        return top_mask(selector._relevance()[:n], n_kept)

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
        kept = set(self.selected_)
        if isinstance(X, list):
            return [{name: row[name] for name in row if name in kept} for row in X]
        if isinstance(X, tuple):
            rows, names = self._named_rows(X)
            columns = [j for j, name in enumerate(names) if name in kept]
            return rows[:, columns], [names[j] for j in columns]
        table = as_table(X)
        if table is None:
            raise DataError(
                f"X must be a list of dicts, a frame or (CSR matrix, names), got {short_repr(X)}."
            )
        return table.take(j for j, name in enumerate(table.own_names) if name in kept).native

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.dict = False, True  # columns have names
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_places") and bool(self._places)


def named_cells(rows: list[dict[Any, Any]]) -> tuple[list[Any], Floats, Ints]:
    """Return the names and values of all rows, concatenated, and the end of each row."""
    values = _numbers(map(dict.values, rows))
    if values is None:
        rows = [
            {name: _as_float(name, value) for name, value in row.items() if value is not None} for row in rows
        ]
        values = np.array([value for row in rows for value in row.values()])
    return list(chain.from_iterable(rows)), values, np.cumsum([0, *map(len, rows)])


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
