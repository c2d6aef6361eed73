"""The base class of streamwise feature selection: a selector that gets the target once, then one feature at a time.

A feature is tested when it is offered, and discarded unless it is accepted. An offer that raises changes nothing. A
stream of features is an iterable of ``(name, column)`` or ``(names, block)`` pairs, or a :class:`FeatureStream`, which
can use the accepted features to generate the next one.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tamis._atomic import atomically, deliver_signals
from tamis._guard import ThreadSafe
from tamis._validation.arrays import Array, Floats, Mask, as_weights, repeated_rows
from tamis._validation.labels import as_column, as_target, encode_labels
from tamis._validation.parameters import check_parameters, parameter
from tamis._validation.rows import checked
from tamis._validation.table import as_table
from tamis._validation.values import as_list, short_repr
from tamis.base.column_intake import Columns, as_float64, block_of, by_column, one_column, without_missing
from tamis.base.declarations import Claims, Inputs
from tamis.base.selector_mixin import SelectorMixin
from tamis.base.trace import ACCEPTED, Trace, Verdicts
from tamis.errors import DataError


class OfferSnapshot:
    """A snapshot of a selector before an offer: its attributes, and copies of the parts that hooks change in place.

    Hooks append to arrays beyond the end of the earlier state, so no array is copied.
    """

    is_complete = True

    def __init__(self, selector: ColumnSelector) -> None:
        self._selector, self._attributes = selector, dict(vars(selector))
        self._parts = ("_trace", *selector._parts)
        self._attributes.update({part: copy.copy(self._attributes[part]) for part in self._parts})

    def restore(self) -> None:
        """Restore the attributes, and clear what was appended."""
        self._selector.__dict__.clear()
        self._selector.__dict__.update(self._attributes)
        for part in self._parts:
            if hasattr(self._attributes[part], "clear_room"):
                self._attributes[part].clear_room()


_CELLS = 1 << 18  # values tested together: 2 MB, which fit the cache of a core
# Columns tested together where that is more, up to 32 MB: a row of C order has several in each line of the cache, and
# a product with a matrix of two columns takes three times as long for each as one with sixteen.
_COLUMNS, _MOST_CELLS = 16, 1 << 22


@runtime_checkable
class FeatureStream(Protocol):
    """A generator of features, which may use the features selected so far.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> class Powers:
    ...     def __init__(self, column):
    ...         self.column, self.power = column, 0
    ...     def next_features(self, selector):
    ...         if "x^2" in selector.selected_ or self.power == 5:
    ...             return None  # accepted, or the last power
    ...         self.power += 1
    ...         return f"x^{self.power}", self.column**self.power
    >>> x = np.random.default_rng(0).uniform(-1, 1, 50)
    >>> AlphaInvesting().fit_stream(Powers(x), x**2 + 0.01 * np.sin(99 * x)).selected_
    ['x^2']
    """

    def next_features(self, selector: ColumnSelector) -> tuple[str | Sequence[str], Any] | None:
        """Return a name and a column, or names and a block of columns; None at the end of the stream."""


@dataclass(eq=False, repr=False, kw_only=True)
class ColumnSelector(ThreadSafe, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Selects features while columns arrive, one at a time or in blocks.

    A subclass is a dataclass of its parameters, or stores them in its constructor, and implements two hooks.
    `_begin` validates the parameters and allocates the state for a target. `_consider` decides about one column, or
    `_consider_block` about several. After an error, the state is restored from a shallow copy of ``_state()``, so a
    hook must assign changed state to new objects, or append it beyond the end of the earlier state.

    Attributes
    ----------
    selected_ : list of str
        Names of the selected features, in the order of acceptance.
    trace_ : ndarray of shape (n_records,), structured
        One record per offer (with ``trace="selected"``, per accepted offer): ``offer`` (its number, from 0), ``name``,
        ``statistic``, ``p_value``, ``log_p`` (p-values may underflow), ``threshold``, ``wealth`` after the offer,
        ``n_missing`` (imputed values), and ``decision``: accepted, rejected, constant, collinear or full.
    n_offered_ : int
        Columns offered so far.
    stopped_ : str or None
        Why no further feature can be accepted; None otherwise.
    classes_ : ndarray of shape (n_classes,)
        Labels of the target (classification only).
    n_features_in_ : int
        Columns of `X` for `fit`; otherwise columns offered.
    feature_names_in_ : ndarray of shape (n_features,), str
        Present after `fit` with a frame.
    """

    _shapes = """
        n_offered_ in [0, 2**62)  n_features_in_ in [n_offered_, n_offered_]  _kept[][0] in [0, n_offered_)
        _n_rows in [1, 2**62)  _row_weight? (_n_rows) float in [0, inf)  _trace (its own)
    """

    missing: str = parameter("refuse", "mean", default="refuse")
    trace: str = parameter("all", "selected", default="all")

    # -- hooks ---------------------------------------------------------------------------------------------

    accepts = Inputs()
    claims = Claims(equals_rows="exactly")
    _counts_rows = False  # True: the hooks get each row as often as it counts, so weights are whole numbers
    _statistic = "dependency"  # the statistic in `trace_` for methods without p-values
    _whole_blocks = False  # True: `_consider_block` receives each block of offers undivided
    # Stateful attributes that hooks change in place; snapshots copy them
    _parts: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def _begin(self, y: Array, weight: Array) -> None:
        """Validate the parameters and allocate the state: `y` contains class codes, or the float64 target.

        Rows of weight 0 are left out, here and in the columns.
        """

    def _consider(self, column: Floats) -> Verdicts:
        """Decide about one column of shape (n_rows,)."""
        raise NotImplementedError(f"{type(self).__name__} must define _consider or _consider_block.")

    def _consider_block(self, columns: Columns) -> Verdicts:
        """Decide about the columns, in order."""
        raise NotImplementedError

    def _consider_group(self, columns: Columns) -> Verdicts:
        """Decide about columns that belong together; see :class:`tamis.columns.groups.GroupedOffers`."""
        raise NotImplementedError

    def _is_regression(self) -> bool:
        return False

    # -- verbs ---------------------------------------------------------------------------------------------

    def start(self, y: Any, sample_weight: Any = None) -> Self:
        """Reset the selector, and set the target of the features to come.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            How many rows each row counts as.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If the target is unsuitable.
        ValueError
            If a parameter is invalid.
        """
        atomically(self, self._start, y, sample_weight, from_scratch=True)
        return self

    def offer(self, column: Any, name: str | None = None) -> bool:
        """Decide about one feature. If it raises, nothing has changed. Ctrl-C takes effect after the decision.

        Parameters
        ----------
        column : array-like or sparse column of shape (n_rows,) or (n_rows, 1)
        name : str, optional
            By default ``"x"`` and the number of the offer. A rejected feature may be offered again, a selected one may
            not.

        Returns
        -------
        bool
            Whether the feature was accepted.

        Raises
        ------
        DataError
            If the column cannot be tested; the message names it.
        """
        check_is_fitted(self)
        label = getattr(column, "name", None) if name is None else name
        return bool(self._fit_atomic(one_column(column), [label] if isinstance(label, str) else None)[0])

    def offer_many(self, block: Any, names: Sequence[str] | None = None) -> Mask:
        """Decide about the columns of a block in order, as if offered one at a time. If it raises, nothing has changed.

        Ctrl-C takes effect within the block, before its next 2 MB (32 MB of tall columns); nothing has changed then.

        Parameters
        ----------
        block : array-like, CSR or CSC matrix, memory-mapped array or frame of shape (n_rows, m)
        names : sequence of str, optional
            By default the columns of the frame, or ``"x"`` and the number of the offer.

        Returns
        -------
        ndarray of shape (m,), bool
            Whether each column was accepted.

        Raises
        ------
        DataError
            If a column cannot be tested; the message names it.
        """
        check_is_fitted(self)
        columns, own = block_of(block)
        return self._fit_atomic(
            columns, own if names is None else [str(name) for name in as_list("names", names)]
        )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Start with `y`, then offer the columns of `X` in order. If it raises, nothing has changed.

        Parameters
        ----------
        X : array-like, CSR or CSC matrix, memory-mapped array or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        columns, names = block_of(X)
        y = as_column(y, columns.shape[0], type(self).__name__, allow_missing=True)
        atomically(self, self._fit, columns, names, y, sample_weight, from_scratch=True)
        return self

    def _fit(self, columns: Any, names: list[str] | None, y: Array, sample_weight: Any) -> None:
        self._start(y, sample_weight)
        self._offer_block(columns, names)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def fit_stream(self, features: FeatureStream | Iterable[Any], y: Any, sample_weight: Any = None) -> Self:
        """Start with `y`, then offer the features of a stream until it ends or no more can be accepted.

        Parameters
        ----------
        features : FeatureStream or iterable
            Pairs of a name and a column, or of names and a block of columns.
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        return self.start(y, sample_weight).offer_stream(features)

    def offer_stream(self, features: FeatureStream | Iterable[Any]) -> Self:
        """Continue with a stream of features; decisions before an error are kept.

        Parameters
        ----------
        features : FeatureStream or iterable
            As for `fit_stream`.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        for names, columns in self._pairs(features):
            if isinstance(names, str) or names is None:
                self.offer(columns, names)
            else:
                self.offer_many(columns, names)
            if self.stopped_ is not None:
                break
        return self

    def _pairs(self, features: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(features, FeatureStream):
            yield from iter(lambda: features.next_features(self), None)
        else:
            yield from features

    # -- one offer -----------------------------------------------------------------------------------------

    def _start(self, y: Any, sample_weight: Any) -> None:
        check_parameters(self)
        y = as_column(y, len(y) if hasattr(y, "__len__") else 0, type(self).__name__, allow_missing=True)
        if len(y) == 0:
            raise DataError("y has 0 sample(s), but a minimum of 1 is required.")
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        if sample_weight is not None and not self.accepts.weights:
            raise ValueError(f"{type(self).__name__} has no sample_weight: repeat rows instead.")
        weight = np.ones(len(y)) if sample_weight is None else as_weights(sample_weight, len(y), some=True)
        assert weight is not None
        self._n_rows = len(y)
        self._row_weight = None if (weight == 1.0).all() else weight
        if self._is_regression():
            text = (
                next((one for one in y.tolist() if isinstance(one, str)), None)
                if y.dtype.kind in "OU"
                else None
            )
            if text is not None and hasattr(self, "model"):
                raise DataError(
                    f"y contains {short_repr(text)}, which is text: choose model='logistic' if it has two values, or"
                    " convert it to numbers."
                )
            y = self._counted(as_target(y))
        else:
            codes, labels = encode_labels(y, np.array([]))
            there, y = np.unique(self._counted(codes), return_inverse=True)
            self.classes_: Array = labels[there]
        self.stopped_: str | None = None
        self._kept: tuple[tuple[int, str], ...] = ()  # place of the offer, name
        self._taken: frozenset[str] = frozenset()
        self._trace = Trace(accepted_only=self.trace == "selected")
        self._begin(y, np.ones(len(y)) if self._counts_rows else self._counted(weight))
        self.n_offered_ = self.n_features_in_ = 0

    def _counted(self, rows: Any) -> Any:
        """Return the rows of positive weight, each as often as it counts if the method counts rows."""
        if self._row_weight is None or (self._row_weight.all() and not self._counts_rows):
            return rows
        return rows[
            repeated_rows(self._row_weight) if self._counts_rows else np.flatnonzero(self._row_weight)
        ]

    def _fit_atomic(self, columns: Any, names: list[str] | None) -> Mask:
        return atomically(self, self._validate_and_offer, columns, names, before=OfferSnapshot(self))

    def _validate_and_offer(self, columns: Any, names: list[str] | None) -> Mask:
        self.__dict__.pop("feature_names_in_", None)
        return self._offer_block(columns, names)

    def _offer_block(self, columns: Any, names: list[str] | None) -> Mask:
        n_rows, m = columns.shape
        if n_rows != self._n_rows:
            subject = (
                f"Feature {self._label(names, 0)!r}" if m == 1 else f"The block of {self._label(names, 0)!r}"
            )
            raise DataError(
                f"{subject} has {n_rows} values, but y has {self._n_rows} rows (inconsistent numbers of samples):"
                " give one value for each row."
            )
        self._check_names(names, m)
        accepted = np.zeros(m, dtype=bool)
        for part, together in self._parts_of_block(names, m):
            deliver_signals()
            own = None if names is None else names[part]
            accepted[part] = self._offer_part(columns[:, part], own, together)
        return accepted

    def _parts_of_block(self, names: list[str] | None, m: int) -> Iterator[tuple[slice, bool]]:
        """Yield consecutive parts of a block of `m` columns, and whether each is decided on as a whole."""
        n_rows = self._n_rows
        width = m if self._whole_blocks else max(1, _CELLS // n_rows, min(_COLUMNS, _MOST_CELLS // n_rows))
        yield from ((slice(start, min(start + width, m)), False) for start in range(0, m, width))

    def _offer_part(self, columns: Any, names: list[str] | None, together: bool) -> Mask:
        columns = as_float64(columns, lambda j: self._label(names, j))
        if not (together or self._whole_blocks) and _COLUMNS * columns.shape[0] > _CELLS:
            columns = by_column(columns)
        columns, n_missing = without_missing(
            columns, self.missing, lambda j: self._label(names, j), self._row_weight
        )
        columns = self._counted(columns)
        if together:
            return self._note(self._consider_group(columns), names, n_missing)
        if type(self)._consider_block is not ColumnSelector._consider_block:
            return self._note(self._consider_block(columns), names, n_missing)
        accepted = np.zeros(columns.shape[1], dtype=bool)
        for j in range(columns.shape[1]):
            column = columns[:, [j]].toarray()[:, 0] if sp.issparse(columns) else columns[:, j]
            own = None if names is None else names[j : j + 1]
            accepted[j : j + 1] = self._note(self._consider(column), own, n_missing[j : j + 1])
        return accepted

    def _note(self, verdicts: Verdicts, names: list[str] | None, n_missing: NDArray[np.int32]) -> Mask:
        self._trace.append(self.n_offered_, names, verdicts, n_missing)
        accepted: Mask = verdicts.decision == ACCEPTED
        if verdicts.dropped:
            self._kept = tuple(kept for kept in self._kept if kept[0] not in verdicts.dropped)
        entered = np.flatnonzero(accepted).tolist() if verdicts.entered is None else verdicts.entered
        new = [(self.n_offered_ + j, self._label(names, j)) for j in entered]
        if new or verdicts.dropped:
            self._kept = (*self._kept, *new)
            self._taken = frozenset(name for _, name in self._kept)
        self.n_offered_ += len(accepted)
        self.n_features_in_ = self.n_offered_
        return accepted

    def _label(self, names: list[str] | None, j: int) -> str:
        return f"x{self.n_offered_ + j}" if names is None else names[j]

    def _check_names(self, names: list[str] | None, m: int) -> None:
        if names is not None and len(names) != m:
            raise DataError(
                f"names has {len(names)} entries, but the block has {m} columns: give one for each."
            )
        if names is not None and len(set(names)) < m:
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise DataError(f"Feature {twice!r} occurs twice in the block: give each column its own name.")
        if names is None:
            taken = [name for name in self._taken if self._is_coming(name, m)] if m > 1 else []
            taken += [label] if m == 1 and (label := self._label(None, 0)) in self._taken else []
        else:
            taken = [name for name in names if name in self._taken]
        if taken:
            raise DataError(f"Feature {taken[0]!r} is selected already: give the new column another name.")

    def _is_coming(self, name: str, m: int) -> bool:
        """Return whether one of the next `m` unnamed columns would get this name."""
        number = name.removeprefix("x")
        return number.isdecimal() and self.n_offered_ <= int(number) < self.n_offered_ + m and name[0] == "x"

    # -- read-outs -----------------------------------------------------------------------------------------

    @property
    def selected_(self) -> list[str]:
        """Names of the selected features, in the order of acceptance."""
        check_is_fitted(self)
        return [name for _, name in self._kept]

    @property
    def trace_(self) -> Array:
        """One record per offer, or per accepted offer."""
        check_is_fitted(self)
        return self._trace.records()

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[[place for place, _ in self._kept]] = True
        return mask

    def transform(self, X: Any) -> Any:
        """Return the selected features of `X`, in the order of the offers.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_rows, n_features)
            All features in the order of the offers; or, after `start` and `offer`, a frame whose columns include the
            selected features.

        Returns
        -------
        array, sparse matrix or frame of shape (n_rows, n_selected)
        """
        check_is_fitted(self)
        table = as_table(X)
        if table is not None and not hasattr(self, "feature_names_in_"):
            wanted = self.get_feature_names_out().tolist()
            if wanted and set(wanted) <= set(table.texts):
                return table.take(map(table.texts.index, wanted)).array
        return super().transform(checked(X, allow_nan=self.missing == "mean") if table is None else X)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the selected features, in the order of the offers.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of all features, to use in place of the known ones.

        Returns
        -------
        ndarray of shape (n_selected,), str
        """
        check_is_fitted(self)
        if input_features is not None:
            return super().get_feature_names_out(input_features)
        return np.array([name for _, name in sorted(self._kept)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_offered_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mean"
        tags.target_tags.required = True
        return tags
