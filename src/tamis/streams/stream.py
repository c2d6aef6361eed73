"""The base class of streams: batches of (X, y), with the same rows for any batch size, from any row on."""

from __future__ import annotations

import copy
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from tamis._checksum import checksum
from tamis._validation.arrays import Array, Ints, Mask, Rows
from tamis._validation.labels import as_classes, as_column
from tamis._validation.rows import as_rows
from tamis._validation.table import as_table
from tamis._validation.values import as_list, check_choice, check_number
from tamis.base import html_repr
from tamis.errors import DataError, StreamError
from tamis.streams.draws import Draws

Batch: TypeAlias = tuple[Rows, Array]


class Stream(ABC):
    """A source of rows that can be read repeatedly in batches.

    Attributes
    ----------
    feature_names : list of str or None
        Names of the columns, if they have any.
    n_features, n_rows : int or None
        None if unknown before reading.
    classes : ndarray of shape (n_classes,) or None
        Labels known in advance.
    categorical : sequence of int
        Positions of the categorical columns, as far as known.
    delayed_features : dict of str to int
        Features whose values arrive some rows later, see :meth:`with_delayed_features`.
    missing : {"keep", "mean", "error"}
        Treatment of missing numbers, see :meth:`with_missing`.
    gains_columns : bool
        Set by a consumer, such as :func:`tamis.prequential`, that accepts new columns in later batches: JSON objects
        and followed files then append those that later rows name to `feature_names`. Their values are missing in
        earlier rows.
    may_gain_columns : bool
        Whether later rows can name further columns at all.
    """

    feature_names: list[str] | None = None
    n_features: int | None = None
    n_rows: int | None = None
    classes: Array | None = None
    categorical: Sequence[int] = ()
    delayed_features: Mapping[str, int] = MappingProxyType({})
    missing: str = "keep"
    gains_columns: bool = False
    may_gain_columns: bool = False
    on_idle: Callable[[], object] = staticmethod(lambda: None)  # called while waiting for rows

    def batches(self, size: int = 100, *, start: int = 0) -> Iterator[Batch]:
        """Return an iterator over batches of exactly `size` rows (the last may be shorter).

        Parameters
        ----------
        size : int, default=100
            Rows per batch, at least 1.
        start : int, default=0
            Number of rows to skip first, to resume a run.

        Returns
        -------
        iterator of (X, y)
            X is a C-contiguous float array or a CSR matrix, y is one-dimensional. Every call starts from the beginning.

        Raises
        ------
        ValueError
            If `size` or `start` is out of range.
        StreamError
            While reading, if the source cannot be read.
        """
        check_number("batch_size", size, low=1, integer=True)
        check_number("start", start, low=0, integer=True)
        if self.missing == "keep":
            return rechunk(self._blocks(int(start)), int(size))
        # The means are those of all earlier rows.
        return rechunk(_without_first(self._complete_blocks(), int(start)), int(size))

    def forget_appended(self) -> None:  # noqa: B027  optional
        """Drop the columns that later rows have named, before another pass with `gains_columns`; there are none."""

    def with_delayed_features(self, delays: Mapping[str, int]) -> Self:
        """Return the stream with delayed features, whose values arrive after their row, like delayed labels.

        Batches are unchanged and contain the delayed values. :func:`tamis.prequential` predicts a row with NaN in the
        delayed features, and trains on the complete row when its label and all of its values have arrived.

        Parameters
        ----------
        delays : dict of str to int
            Number of rows after which a feature's value arrives, at least 0, by name; x0, x1, ... without names.

        Raises
        ------
        ValueError
            If a number is invalid.

        Examples
        --------
        >>> import numpy as np
        >>> from tamis import HoeffdingTree, prequential
        >>> from tamis.streams import ArrayStream
        >>> X = np.random.default_rng(0).normal(size=(3000, 3))
        >>> stream = ArrayStream(X, X[:, 0] + X[:, 1] > 0)
        >>> delayed = stream.with_delayed_features({"x1": 200})
        >>> for each in (stream, delayed):
        ...     print(round(prequential(each, None, HoeffdingTree()).summary()["accuracy"], 2))
        0.95
        0.75
        """
        for name, n_rows in delays.items():
            check_number(f"delays[{name!r}]", n_rows, low=0, integer=True)
        other = copy.copy(self)
        other.delayed_features = {str(name): int(n_rows) for name, n_rows in delays.items()}
        return other

    def with_varying_features(
        self, kind: str, *, share: float = 0.5, n_periods: int = 10, period: int | None = None, seed: int = 0
    ) -> VaryingStream:
        """Return the stream with features that appear and vanish, and the truth about when they exist.

        Parameters
        ----------
        kind : {"trapezoidal", "capricious", "evolvable", "shuffled", "open"}
            ``"trapezoidal"``: features are only added, in each period as many. ``"capricious"``: each value exists with
            probability `share`. ``"evolvable"``: a group of features per period, which overlaps with the next one.
            ``"shuffled"``: all features, in another order in each period. ``"open"``: features appear and vanish
            between any two periods, with other orders.
        share : float in (0, 1], default=0.5
            Probability that a feature exists, for "capricious" and "open".
        n_periods : int, default=10
            Number of periods, at least 2.
        period : int, optional
            Rows of a period. By default the number of rows divided by `n_periods`.
        seed : int, default=0
            At least 0.

        Returns
        -------
        VaryingStream
            Its batches have NaN where a feature does not exist; `named_batches` yields dicts of the existing ones, for
            :class:`tamis.ByName`. `present_rows(start, stop)` is the truth.

        Raises
        ------
        ValueError
            If a parameter is invalid, or the number of features or rows is unknown.

        Examples
        --------
        >>> import numpy as np
        >>> from tamis.streams import ArrayStream
        >>> stream = ArrayStream(np.arange(12.0).reshape(4, 3), [0, 1, 0, 1])
        >>> for rows, y in stream.with_varying_features("trapezoidal", n_periods=3, period=1).named_batches(2):
        ...     print(rows)
        [{'x2': 2.0}, {'x1': 4.0, 'x2': 5.0}]
        [{'x0': 6.0, 'x1': 7.0, 'x2': 8.0}, {'x0': 9.0, 'x1': 10.0, 'x2': 11.0}]
        """
        return VaryingStream(self, kind, share, n_periods, period, seed)

    def with_missing(self, missing: str) -> Self:
        """Return the stream with another treatment of missing numbers.

        Parameters
        ----------
        missing : {"keep", "mean", "error"}
            ``"keep"`` keeps NaN, for models that accept it. ``"mean"`` replaces it by the mean of the column in the
            earlier rows, 0 before any. ``"error"`` rejects it.

        Raises
        ------
        ValueError
            If it is none of these, or the stream continues from a position, so that earlier rows are not read again.

        Examples
        --------
        >>> import numpy as np
        >>> from tamis.streams import ArrayStream
        >>> ArrayStream([[2.0], [np.nan], [6.0], [np.nan]], [0, 1, 0, 1]).with_missing("mean").take(4)[0].ravel()
        array([2., 2., 6., 4.])
        """
        check_choice("missing", missing, ("keep", "mean", "error"))
        if missing != "keep" and type(self).position is not Stream.position:
            raise ValueError(
                f"missing={missing!r} cannot be set for a stream that is followed: pass it to tamis.follow_files."
            )
        other = copy.copy(self)
        other.missing = missing
        return other

    def _complete_blocks(self) -> Iterator[Batch]:
        """Yield all rows in blocks, with missing numbers replaced or rejected."""
        sums = counts = np.zeros(1)
        first_row = 1
        for X, y in self._blocks(0):
            if sp.issparse(X) and np.isnan(X.data).any():
                raise DataError(
                    f"missing={self.missing!r} is for dense rows, but the rows are sparse: impute them first, or choose"
                    " missing='keep'."
                )
            if not sp.issparse(X) and (self.missing == "mean" or np.isnan(X).any()):
                unknown = np.isnan(X)
                if self.missing == "error":
                    j, row = np.argwhere(unknown.T)[0]
                    name = self.feature_names[j] if self.feature_names else int(j)
                    raise StreamError(
                        f"Column {name!r} is missing in row {first_row + row}: fix or drop the row, or choose"
                        " missing='mean'."
                    )
                # Sums are cumulative by row, so a mean depends neither on later rows nor on the division into blocks.
                totals = np.cumsum(np.vstack([sums * np.ones(X.shape[1]), np.where(unknown, 0.0, X)]), axis=0)
                numbers = np.cumsum(np.vstack([counts * np.ones(X.shape[1]), ~unknown]), axis=0)
                sums, counts = totals[-1], numbers[-1]
                means = totals[:-1] / np.maximum(numbers[:-1], 1.0)
                X = np.where(unknown, means, X).astype(X.dtype, copy=False)
            first_row += len(y)
            yield X, y

    def take(self, n: int) -> Batch:
        """Return the first `n` rows (fewer if the stream is shorter) as one batch."""
        for batch in self.batches(n):
            return batch
        raise StreamError("The stream has no rows: check its source.")

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def progress(self) -> float | None:
        """Return the fraction of the input that the current pass has consumed, or None if it is unknown."""
        return None

    @property
    def is_resumable(self) -> bool:
        """Whether a new pass can continue where an earlier one stopped, in another process too."""
        return True

    def position(self) -> Any:
        """Return the position after the last batch; None if resuming requires counting rows."""
        return None

    def seek(self, position: Any) -> None:
        """Continue from a `position`: the next pass begins with the row after it."""
        raise NotImplementedError(f"{type(self).__name__} does not support positions.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._facts())})"

    def _repr_html_(self) -> str:
        names = self.feature_names or []
        listed = {"columns": [", ".join(names[:12]) + (" ..." if len(names) > 12 else "")]} if names else None
        return html_repr(type(self).__name__, self._facts(), listed)

    def _facts(self) -> list[str]:
        """Return a description of the stream, without reading it."""
        parts = [name] if (name := self._title()) else []
        for n, one, many in ((self.n_rows, "row", "rows"), (self.n_features, "feature", "features")):
            if n is not None:
                parts.append(f"{n:,} {one if n == 1 else many}")
        if self.classes is not None and len(self.classes) <= 10:
            parts.append("classes " + ", ".join(map(str, self.classes)))
        elif self.classes is not None:
            parts.append(f"{len(self.classes):,} classes")
        return parts

    def _title(self) -> str:
        """Return the name of the source; empty if it has none."""
        return str(getattr(self, "name", ""))

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the values needed to reopen the stream, and a fingerprint of its contents, as plain JSON values."""

    def _blocks(self, start: int) -> Iterator[Batch]:
        """Yield the rows from `start` on in blocks of any size; by default, earlier rows are read and dropped."""
        return _without_first(self._all_blocks(), start)

    def _all_blocks(self) -> Iterator[Batch]:
        """Yield all rows in blocks of any size."""
        raise NotImplementedError(f"{type(self).__name__} must define _blocks.")


class ArrayStream(Stream):
    """A stream of rows in memory.

    Parameters
    ----------
    X : array-like, CSR matrix or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    feature_names : list of str, optional
        By default the column names of a frame.
    classes : array-like, optional
        By default the sorted labels of `y`, unless `y` is continuous.

    Examples
    --------
    >>> import numpy as np
    >>> stream = ArrayStream(np.eye(5), ["a", "b", "a", "b", "a"])
    >>> [len(y) for X, y in stream.batches(2)]
    [2, 2, 1]
    >>> stream.classes
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(self, X: Any, y: Any, feature_names: list[str] | None = None, classes: Any = None) -> None:
        self._X, names = as_rows(X)
        self._y = as_column(y, self._X.shape[0], "A stream")
        self.n_rows, self.n_features = self._X.shape
        if feature_names is not None:
            names = [str(name) for name in as_list("feature_names", feature_names)]
        self.feature_names = names
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise ValueError(
                f"feature_names has {len(self.feature_names)} names for {self.n_features} columns."
            )
        if classes is not None:
            self.classes = as_classes(classes)
        elif self._y.dtype.kind != "O" and not (self._y.dtype.kind == "f" and (self._y % 1 != 0).any()):
            self.classes = np.unique(self._y)
        self._read = 0

    def progress(self) -> float | None:
        """Return the fraction of the rows returned in the current pass."""
        return float(min(self._read / self._X.shape[0], 1.0))

    def describe(self) -> dict[str, Any]:
        """Return the shape of the rows and a checksum of all of them."""
        types = zlib.crc32(str((self._X.dtype, self._y.dtype)).encode())
        fingerprint = f"{checksum(self._y, checksum(self._X, types)):08x}"
        return {"kind": "arrays", "shape": [int(n) for n in self._X.shape], "fingerprint": fingerprint}

    def _blocks(self, start: int) -> Iterator[Batch]:
        self._read = start
        while self._read < self._X.shape[0]:
            rows = slice(self._read, self._read + 4096)
            self._read = min(rows.stop, self._X.shape[0])
            yield self._X[rows], self._y[rows]


class BatchStream(Stream):
    """A stream of batches from another program: an iterable of (X, y), read once if it is an iterator.

    Parameters
    ----------
    source : iterable of (X, y)
    feature_names : list of str, optional
    classes : array-like, optional

    Examples
    --------
    >>> import numpy as np
    >>> batches = ((np.ones((3, 2)), [0, 1, 0]) for _ in range(3))
    >>> [len(y) for X, y in BatchStream(batches).batches(4)]
    [4, 4, 1]
    """

    def __init__(
        self, source: Iterable[Any], feature_names: list[str] | None = None, classes: Any = None
    ) -> None:
        self._source = source
        self.feature_names = None if feature_names is None else as_list("feature_names", feature_names)
        self.n_features = None if self.feature_names is None else len(self.feature_names)
        self.classes = None if classes is None else as_classes(classes)
        self._spent = False

    def describe(self) -> dict[str, Any]:
        """Return the kind of the source; its contents are not known in advance."""
        return {"kind": "batches", "source": type(self._source).__name__}

    def _all_blocks(self) -> Iterator[Batch]:
        once = iter(self._source) is self._source
        if once and self._spent:
            raise StreamError(
                "These batches have been read already: make the stream from a list, or a new iterator."
            )
        self._spent = True
        for batch in self._source:
            if as_table(batch) is not None:
                raise DataError('The frames need the name of their label column: pass label="...".')
            try:
                X, y = batch
            except (TypeError, ValueError):
                raise StreamError(
                    f"A stream yields pairs (X, y), but this one yielded a {type(batch).__name__}."
                ) from None
            if isinstance(X, dict):
                raise StreamError("These rows are dicts: pass tamis.streams.DictStream(rows).")
            try:
                X, names = as_rows(X)
            except DataError:
                if as_table(X) is None:
                    raise
                raise StreamError(
                    "These frames contain more than numbers: pass tamis.streams.DictStream(batches)."
                ) from None
            y = as_column(y, X.shape[0], "A stream")
            self.feature_names = self.feature_names or names
            if self.n_features not in (None, X.shape[1]):
                raise StreamError(
                    f"A batch has {X.shape[1]} columns, the earlier ones had {self.n_features}."
                )
            self.n_features = X.shape[1]
            yield X, y


def _without_first(blocks: Iterator[Batch], n_rows: int) -> Iterator[Batch]:
    """Yield the rows of the blocks after the first ones."""
    for X, y in blocks:
        skip = min(n_rows, X.shape[0])
        n_rows -= skip
        if skip < X.shape[0]:
            yield X[skip:], y[skip:]


def rechunk(blocks: Iterator[Batch], size: int) -> Iterator[Batch]:
    """Split and join blocks into batches of `size` rows; a block of that size is passed on unchanged."""
    kept: list[Batch] = []
    have = 0
    for X, y in blocks:
        at, rows = 0, X.shape[0]
        while have + rows - at >= size:
            stop = at + size - have
            kept.append((X[at:stop], y[at:stop]))
            yield join_batches(kept)
            kept, have, at = [], 0, stop
        if at < rows:
            kept.append((X[at:], y[at:]))
            have += rows - at
    if kept:
        yield join_batches(kept)


def join_batches(parts: list[Batch]) -> Batch:
    """Concatenate batches; a single one is returned unchanged."""
    if len(parts) == 1:
        return parts[0]
    blocks = [X for X, _ in parts]
    if any(map(sp.issparse, blocks)):
        width = max(X.shape[1] for X in blocks)  # svmlight rows of any width
        blocks = [sp.csr_matrix(X) for X in blocks]
        blocks = [sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], width)) for X in blocks]
    elif any(X.shape[1] < blocks[-1].shape[1] for X in blocks):  # columns were appended
        blocks = [append_missing(X, blocks[-1].shape[1]) for X in blocks]
    X = sp.vstack(blocks, format="csr") if sp.issparse(blocks[0]) else np.concatenate(blocks)
    labels = [y for _, y in parts]
    kinds = {y.dtype.kind for y in labels}
    large = any(max(-int(y.min()), int(y.max())) > 1 << 53 for y in labels if y.dtype.kind in "iu" and len(y))
    # 1 and "1" must remain different labels, and float64 would round large integers.
    if len(kinds) > 1 and (large or not kinds <= set("iuf")):
        labels = [y.astype(object) for y in labels]
    return X, np.concatenate(labels)


def append_missing(X: Array, n_columns: int) -> Array:
    """Return dense rows with further columns, whose values are missing."""
    wide = np.full((len(X), n_columns), np.nan, X.dtype)
    wide[:, : X.shape[1]] = X
    return wide


KINDS_OF_VARYING = ("trapezoidal", "capricious", "evolvable", "shuffled", "open")
_OVERLAP = 0.2  # of a period, in which the features of two periods exist
_DRAWN_AGAIN = 0.2  # probability, between two periods of an open space


class VaryingStream(Stream):
    """A stream whose features appear and vanish; made by :meth:`Stream.with_varying_features`.

    Batches have a column for each feature, with NaN where it does not exist; :meth:`named_batches` returns rows of the
    existing ones.

    Parameters
    ----------
    stream : Stream
        Of dense rows, whose number of features is known.
    kind : {"trapezoidal", "capricious", "evolvable", "shuffled", "open"}
        Which features exist; see Notes.
    share : float in (0, 1]
        Probability that a feature exists, for "capricious" and "open".
    n_periods : int
        Number of periods, at least 2.
    period : int, optional
        Rows of a period. By default the number of rows of the stream divided by `n_periods`.
    seed : int

    Attributes
    ----------
    whole : Stream
        The stream of all features.
    kind, share, n_periods, period
    relevant_rows, relevant_at
        As for :class:`SyntheticStream`, of the features that exist; only if the stream has them.

    Notes
    -----
    The kinds are those of the literature on varying feature spaces, with P periods of equal length:

    ===========  =======================================================================  ===========================
    kind         features that exist                                                      as in
    ===========  =======================================================================  ===========================
    trapezoidal  in period p the first p / P of them: they are only added                 Zhang et al. (2016), OLSF
    capricious   each in each row with probability `share`, independently                 Beyazit et al. (2019), OLVF
    evolvable    a group of n / P per period; two groups in the last fifth of a period    Hou et al. (2017), FESL
    shuffled     all, in another order in each period
    open         each with probability `share`; drawn again with probability 0.2 between
                 two periods, which also have other orders
    ===========  =======================================================================  ===========================

    Which features are added or grouped is random. Each row and period has its own random numbers, so that rows do not
    depend on the batches.
    """

    feature_names: list[str]
    n_features: int

    def __init__(
        self, stream: Stream, kind: str, share: float = 0.5, n_periods: int = 10, period: int | None = None,
        seed: int = 0,
    ) -> None:  # fmt: skip
        check_choice("kind", kind, KINDS_OF_VARYING)
        check_number("share", share, low=0, high=1, open_low=True)
        check_number("n_periods", n_periods, low=2, integer=True)
        check_number("seed", seed, low=0, integer=True)
        if stream.n_features is None:
            raise ValueError(
                "The number of features of this stream is not known before it is read: use another stream."
            )
        if period is None and stream.n_rows is None:
            raise ValueError(
                "The number of rows of this stream is not known: pass period, the rows of a period."
            )
        if period is not None:
            check_number("period", period, low=1, integer=True)
        self.whole, self.kind, self.share, self.n_periods = stream, kind, float(share), int(n_periods)
        self.period = int(period if period is not None else max(int(stream.n_rows or 1) // n_periods, 1))
        self._seed, self._draws = int(seed), Draws(seed).child("varying")
        self.n_features, self.n_rows = int(stream.n_features), stream.n_rows
        self.feature_names = stream.feature_names or [f"x{j}" for j in range(self.n_features)]
        self.classes, self.categorical = stream.classes, stream.categorical
        self._rank: Ints = self._draws.generator().permutation(self.n_features)

    # -- truth ---------------------------------------------------------------------------------------------

    def present_rows(self, start: int, stop: int) -> Mask:
        """Return which features exist in each row from `start` to before `stop`, shape (stop - start, n_features)."""
        rows = np.arange(start, stop)
        if self.kind == "capricious":
            exists: Mask = self._draws.uniform(rows, self.n_features) < self.share
            exists[~exists.any(axis=1), self._rank[0]] = True
            return exists
        numbers, places = rows // self.period, np.unique(rows // self.period, return_inverse=True)[1]
        of_period = np.array([self._present_in(number) for number in np.unique(numbers)])
        exists = of_period.reshape(-1, self.n_features)[places]
        if self.kind == "evolvable":
            late = rows % self.period >= (1.0 - _OVERLAP) * self.period
            following = np.array([self._present_in(number + 1) for number in np.unique(numbers)])
            exists = exists | (late[:, None] & following.reshape(-1, self.n_features)[places])
        return exists

    def _present_in(self, number: int) -> Mask:
        """Return which features exist in a period."""
        if self.kind == "trapezoidal":
            n_existing = max(round(min(number + 1, self.n_periods) / self.n_periods * self.n_features), 1)
            return np.asarray(self._rank < n_existing)
        if self.kind == "evolvable":
            n_groups = min(self.n_periods, self.n_features)
            return np.asarray(self._rank % n_groups == number % n_groups)
        if self.kind == "shuffled":
            return np.ones(self.n_features, dtype=bool)
        draws = self._draws.uniform(np.arange(number + 1), self.n_features)
        exists = draws[0] < self.share
        for drawn in draws[1:]:
            exists = np.where(drawn < _DRAWN_AGAIN, drawn < _DRAWN_AGAIN * self.share, exists)
        exists[self._rank[0]] |= not exists.any()
        return np.asarray(exists)

    def order_at(self, t: int) -> Ints:
        """Return the order of the columns at row `t`, counted from 0."""
        if self.kind not in ("shuffled", "open"):
            return np.arange(self.n_features)
        return self._draws.child("order").child(t // self.period).generator().permutation(self.n_features)

    @property
    def relevant_rows(self) -> Callable[[int, int], Mask]:
        """A function that returns the features that are relevant to, and exist in, each of some rows."""
        inner: Any = self.whole
        known = inner.relevant_rows
        return lambda start, stop: known(start, stop) & self.present_rows(start, stop)

    @property
    def relevant_at(self) -> Callable[[int], Ints]:
        """A function that returns the features that are relevant at, and exist in, a row."""
        inner: Any = self.whole
        known = inner.relevant_at
        return lambda t: np.intersect1d(known(t), np.flatnonzero(self.present_rows(t, t + 1)[0]))

    # -- rows ----------------------------------------------------------------------------------------------

    def named_batches(
        self, size: int = 100, *, start: int = 0
    ) -> Iterator[tuple[list[dict[str, float]], Array]]:
        """Return an iterator over batches of named rows, for :class:`tamis.ByName`.

        Parameters
        ----------
        size, start : int
            As for :meth:`batches`.

        Returns
        -------
        iterator of (rows, y)
            A row is a dict of the features that exist, in the order of the columns at that time.
        """
        names = self.feature_names
        row = start
        for X, y in self.batches(size, start=start):
            exists, values = self.present_rows(row, row + len(y)), np.asarray(X).tolist()
            rows = []
            for i, numbers in enumerate(values):
                if i == 0 or (row + i) % self.period == 0:
                    order = self.order_at(row + i).tolist()
                rows.append({names[j]: numbers[j] for j in order if exists[i, j]})
            yield rows, y
            row += len(y)

    def _blocks(self, start: int) -> Iterator[Batch]:
        row = start
        for X, y in self.whole._blocks(start):
            if sp.issparse(X):
                raise StreamError(
                    "Features that vary need dense rows, but the rows of this stream are sparse."
                )
            X = np.array(X, dtype=np.float64)
            X[~self.present_rows(row, row + len(y))] = np.nan
            row += len(y)
            yield X, y

    def progress(self) -> float | None:
        """Return the fraction of the input that the current pass has consumed, or None if it is unknown."""
        return self.whole.progress()

    def describe(self) -> dict[str, Any]:
        """Return the parameters, and the description of the stream."""
        return {
            "kind": "varying", "varying": self.kind, "share": self.share, "n_periods": self.n_periods,
            "period": self.period, "seed": self._seed, "stream": self.whole.describe(),
        }  # fmt: skip

    def _title(self) -> str:
        return f"{self.whole._title()} {self.kind}".strip()
