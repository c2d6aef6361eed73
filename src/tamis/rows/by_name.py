"""ByName: features that have names, and appear, vanish and change their order while rows arrive.

A row is a dict from names to values, a row of a frame, or a CSR row whose columns have names. The names are given
places in the order in which they first appear; the selector behind sees CSR rows with a column for each place. A
selector that can (:meth:`tamis.base.RowSelector.widen`) grows when new names come, by a quarter at a time, so that a
name costs O(1) in the long run. One that cannot is given room for names to come, columns that are 0 as long as they
have no name.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from operator import itemgetter
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from tamis._check import Array, Rows, as_frame, as_numbers, as_rows, is_integer, refuse_nonfinite, short_repr
from tamis._guard import Guarded
from tamis._parameters import Kind, check_parameters, integer, parameters
from tamis._shapes import changed
from tamis.base import RowSelector, n_to_select, top_mask
from tamis.errors import DataError

__all__ = ["ByName"]

_GROWTH = 1.25
_NUMBERS = (float, int, np.floating, np.integer, np.bool_)
_TRIAL = 10  # batches that a name may show what it is worth


class ByName(Guarded, BaseEstimator):  # type: ignore[misc]
    """Lets a row selector work with named features, of which new ones may appear at any time.

    Parameters
    ----------
    selector : RowSelector
        The selector that learns. It is copied.
    absent : {"zero", "missing"}, default="zero"
        The value of a feature in a row that does not name it, and in the rows before it was first named: 0, or missing.
        "missing" needs a selector that skips missing values (the screens do).
    max_columns : int, optional
        The most names there is room for. Needed by ``absent="missing"``, and by a selector that cannot grow if names
        come after its first rows. By default the room grows with the names, if the selector can grow.
    budget : int, optional
        The most names to know at a time, at least 1. When more come, those of the lowest scores are forgotten; see
        Notes.

    Attributes
    ----------
    selector_ : RowSelector
        The fitted selector. Each of its columns is a place for a name; the last places may have no name yet.
    feature_names_ : list
        The names, in the order of their places.
    scores_ : ndarray of shape (n_names,), float64
        Relevance of each name now; larger is more relevant.
    selected_ : list
        The names that are kept now, in the order of their places.
    n_evicted_, n_passed_over_ : int
        With a `budget`: how many names were forgotten, and how many names of a batch found no place. A name counts each
        time.

    Raises
    ------
    DataError
        If rows cannot be learned from, or there is no room for a new name; the model is left as it was.
    ValueError
        If ``absent="missing"`` and the selector does not skip missing values.

    Notes
    -----
    All selectors grow. Their state is then, bit for bit, the state of a selector that had all columns from the first
    row on. It is equal to rounding for FSDS, for the matrix of forward selection, and for FIRES unless
    ``scaling=None``, because these sum over the columns. What depends on the number of columns follows the names so
    far: the step of FIRES, if no `learning_rate` is given, OFS with a fraction or ``information="partial"``, the ridge
    of forward selection, the levels of the tests of DISCUSS, FCBF and JointScreening, and the number of levels into
    which JointScreening cuts a column. A fraction as `n_features_to_select` is a fraction of the names so far. If a
    number is larger than the names so far, all are kept. The sizes that Auto races follow the names whenever there are
    twice as many.

    **Budget.** All selectors can forget single columns, with these exceptions: with `level`, which makes a promise
    about all names that ever came; with `restarts`; and ABFS and the screens with `categorical`. New names enter in the
    order of how many rows of the batch name them. Where places are lacking, names leave in the order of their scores,
    the lowest first. A name stays if it is selected, if the batch names it, or if it came in during the last ten
    batches. New names that find no place are ignored in this batch. A name that left may come back. It is new then, and
    counts as 0 in all rows before. Which names leave depends on how rows are cut into batches.

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
        """Raise if the places of a loaded selector are not 0, 1, 2 and so on.

        Raises
        ------
        StateError
            If so.
        """
        places = vars(self).get("_places", {})
        if sorted(places.values()) != list(range(len(places))):
            raise changed("The names of a ByName do not have one place each")

    selector_: RowSelector
    _places: dict[Any, int]
    _learned_by: tuple[str, ...] = ("_begin",)

    def __init__(
        self,
        selector: RowSelector,
        *,
        absent: str = "zero",
        max_columns: int | None = None,
        budget: int | None = None,
    ) -> None:
        self.selector = selector
        self.absent = absent
        self.max_columns = max_columns
        self.budget = budget

    # -- learning ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Forget names and rows, then learn from these rows in order; see `partial_fit`."""
        before = dict(self.__dict__)
        try:
            self._places = {}
            return self.partial_fit(X, y, None, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows with names. If it raises, the model is as it was before the call.

        Parameters
        ----------
        X : list of dict, frame with column names, or (CSR matrix, list of names)
            The features of each row. None is the same as not naming a feature, a masked value the same as NaN.
        y : array-like of shape (n_rows,)
        classes : array-like, optional
            Labels known in advance.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
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
            self._make_room(taken, len(places))
            width = max(
                taken.n_features_in_ if hasattr(taken, "n_seen_") else 0, self._first_width(len(places))
            )
            taken.partial_fit(self._as_wide(rows, width), y, classes, sample_weight)
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
        if self.absent == "missing" and not self.selector._allows_nan:
            raise ValueError(
                f"absent='missing', but {type(self.selector).__name__} takes no missing values: choose absent='zero'."
            )
        if self.absent == "missing" and self.max_columns is None:
            raise ValueError("absent='missing' needs max_columns: how many names there may be.")
        if self.budget is not None:
            self._check_budget()
        self.selector_ = clone(self.selector)
        self._places = {}
        self._since: list[
            int
        ] = []  # the batch in which the name of each place came in, where there is a budget
        self._n_batches = self.n_evicted_ = self.n_passed_over_ = 0
        return self._places

    def _check_budget(self) -> None:
        if self.max_columns is not None or self.absent != "zero":
            raise ValueError(
                f"budget={self.budget} is of no use beside max_columns or absent='missing': leave these out."
            )
        if not self.selector._can_forget_columns:
            raise ValueError(
                f"budget={self.budget}, but {type(self.selector).__name__} of these parameters cannot forget single"
                " columns: leave budget out, or level, restarts and categorical, if they were given."
            )

    def _first_width(self, n_names: int) -> int:
        """Return how many columns the selector begins with: one that is told a number wants as many."""
        wanted = self.selector.n_features_to_select if not self.selector._decides_how_many else 1
        return max(n_names, self.max_columns or 0, int(wanted) if is_integer(wanted) else 1)

    def _make_room(self, selector: RowSelector, n_names: int) -> None:
        """Grow the selector by a quarter at least, if it needs and can."""
        if self.max_columns is not None and n_names > self.max_columns:
            raise DataError(
                f"The rows name {n_names} columns, but max_columns is {self.max_columns}: raise it, or name fewer."
            )
        if not hasattr(selector, "n_seen_") or n_names <= selector.n_features_in_:
            return
        if not selector._can_widen:
            raise DataError(
                f"{n_names - selector.n_features_in_} columns are new, but {type(selector).__name__} cannot grow:"
                f" give room for names to come, as in ByName(..., max_columns={2 * n_names})."
            )
        room = n_names if selector._counts_columns else int(_GROWTH * selector.n_features_in_)
        selector.widen(max(n_names, room if self.budget is None else min(room, self.budget)))

    # -- a budget of names ---------------------------------------------------------------------------------

    def _rows_in_budget(
        self, X: Any, places: dict[Any, int], selector: RowSelector
    ) -> tuple[Array, Array, Array]:
        """Return the cells of names that have a place; names come in, and leave."""
        if isinstance(X, list) and X and all(isinstance(row, dict) for row in X):
            names, values, indptr = _cells(X)
        else:
            rows, columns = self._named_rows(X)
            names, values, indptr = [columns[j] for j in rows.indices], rows.data, rows.indptr
        self._let_in(names, places, selector)
        known = np.fromiter((name in places for name in names), np.bool_, len(names))
        indices = np.fromiter((places[name] for name in names if name in places), np.int64)
        n_before = np.concatenate([[0], np.cumsum(known)])
        values, indptr = values[known], n_before[indptr]
        self._refuse_nonfinite(values, indices, indptr, places)
        return values, indices, indptr

    def _let_in(self, names: list[Any], places: dict[Any, int], selector: RowSelector) -> None:
        """Give places to new names, the most frequent first, as far as there are any or others leave."""
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
        """Return up to `n` names that may leave, those of the lowest scores first."""
        if self.selector_.waiting_:
            return []
        kept, scores = self.get_support(), self.scores_
        may_leave = [
            (scores[place], self._since[place], name)
            for place, name in enumerate(self.feature_names_)
            if not kept[place] and name not in named and self._n_batches - self._since[place] >= _TRIAL
        ]
        return [name for *_, name in sorted(may_leave, key=lambda one: one[:2])[:n]]

    # -- rows ----------------------------------------------------------------------------------------------

    def _rows(self, X: Any, places: dict[Any, int]) -> tuple[Array, Array, Array]:
        """Return values, places and ends of the rows, as CSR has them; new names are given their places."""
        if isinstance(X, list) and X and all(isinstance(row, dict) for row in X):
            if (alike := self._rows_alike(X, places)) is not None:
                return alike
            names, values, indptr = _cells(X)
            try:
                indices = np.fromiter(map(places.__getitem__, names), np.int64, len(names))
            except KeyError:
                _give_places(names, places)
                indices = np.fromiter(map(places.__getitem__, names), np.int64, len(names))
        else:
            rows, names = self._named_rows(X)
            _give_places(names, places)
            place = np.fromiter(map(places.__getitem__, names), np.int64, len(names))
            values, indices, indptr = rows.data, place[rows.indices], rows.indptr
        self._refuse_nonfinite(values, indices, indptr, places)
        return values, indices, indptr

    def _refuse_nonfinite(self, values: Array, indices: Array, indptr: Array, places: dict[Any, int]) -> None:
        if not np.isfinite(values).all():
            cells = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, len(places)))
            refuse_nonfinite(cells, list(map(str, _by_place(places))), allow_nan=self.selector_._allows_nan)

    def _rows_alike(
        self, X: list[dict[Any, Any]], places: dict[Any, int]
    ) -> tuple[Array, Array, Array] | None:
        """Return the same of rows that all have the names of the first one, by one look at these; None of others."""
        names = list(X[0])
        if len(names) < 2 or set(map(len, X)) != {len(names)}:
            return None
        try:
            rows = [*map(itemgetter(*names), X)]
        except KeyError:
            return None
        if (values := _numbers(rows)) is None:
            return None
        _give_places(names, places)
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
                    f"X has {rows.shape[1]} columns and {len(set(names))} names: give each one its own."
                )
            return rows, names
        if not isinstance(as_frame(X), nw.DataFrame):
            raise DataError(
                f"X must be a list of dicts, a frame or (CSR matrix, names), got {short_repr(X)}."
            )
        rows, found = as_rows(X)
        if found is None:
            raise DataError("The columns of the frame have names that are no text: rename them.")
        return sp.csr_matrix(rows), found

    def _as_wide(self, parts: tuple[Array, Array, Array], width: int) -> Rows:
        values, indices, indptr = parts
        if self.absent == "zero":
            return sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, width))
        dense = np.full((len(indptr) - 1, width), np.nan)
        dense[np.repeat(np.arange(len(dense)), np.diff(indptr)), indices] = values
        return dense

    # -- read-outs -----------------------------------------------------------------------------------------

    @property
    def feature_names_(self) -> list[Any]:
        """The names, in the order of their places."""
        check_is_fitted(self)
        return _by_place(self._places) if self.n_evicted_ else list(self._places)

    @property
    def scores_(self) -> NDArray[np.float64]:
        """Relevance of each name now; larger is more relevant."""
        check_is_fitted(self)
        found: NDArray[np.float64] = self.selector_.scores_[: len(self._places)]
        return found

    @property
    def selected_(self) -> list[Any]:
        """The names that are kept now, in the order of their places."""
        names = self.feature_names_
        return [names[j] for j in np.flatnonzero(self.get_support())]

    @property
    def drift_detected_(self) -> bool:
        """Whether the selector renewed its set in the last batch because the data have changed."""
        return bool(getattr(vars(self).get("selector_"), "drift_detected_", False))

    @property
    def n_replay(self) -> int:
        """How many of the last rows a learner that restarts should learn from; see :mod:`tamis.replay`."""
        return int(getattr(vars(self).get("selector_", self.selector), "n_replay", 0))

    def get_support(self) -> NDArray[np.bool_]:
        """Return which names are kept now, in the order of their places."""
        check_is_fitted(self)
        selector, n = self.selector_, len(self._places)
        if selector.waiting_ or selector._decides_how_many or n == selector.n_features_in_:
            found: NDArray[np.bool_] = selector.get_support()[:n]
            return found
        wanted = selector.n_features_to_select
        n_kept = min(int(wanted), n) if is_integer(wanted) else n_to_select(wanted, n)
        return top_mask(selector._relevance()[:n], n_kept)

    def transform(self, X: Any) -> Any:
        """Return the rows with the features that are kept now.

        Parameters
        ----------
        X : list of dict, frame with column names, or (CSR matrix, list of names)
            Names that are not known are left out.

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
        frame = nw.from_native(X, eager_only=True)
        return nw.to_native(frame.select([name for name in frame.columns if name in kept]))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_places") and bool(self._places)


def _cells(rows: list[dict[Any, Any]]) -> tuple[list[Any], NDArray[np.float64], NDArray[np.int64]]:
    """Return the names and values of all rows, one after the other, and where each row ends."""
    values = _numbers(map(dict.values, rows))
    if values is None:
        rows = [
            {name: _as_float(name, value) for name, value in row.items() if value is not None} for row in rows
        ]
        values = np.array([value for row in rows for value in row.values()])
    return list(chain.from_iterable(rows)), values, np.cumsum([0, *map(len, rows)])


def _numbers(rows: Iterable[Iterable[Any]]) -> NDArray[np.float64] | None:
    """Return the values of all rows, one after the other; None if one is no number of a usual kind."""
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
        return float(as_numbers(f"Column {name!r}", [value])[0])
    except TypeError as error:
        raise DataError(str(error)) from None


def _by_place(places: dict[Any, int]) -> list[Any]:
    return sorted(places, key=places.__getitem__)


def _give_places(names: list[Any], places: dict[Any, int]) -> None:
    for name in names:
        if name not in places:
            places[name] = len(places)
