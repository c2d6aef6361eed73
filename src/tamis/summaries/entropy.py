"""Entropies of every feature and of the class over a sliding window, exact, in O(1) per feature and row.

Barddal's thesis, section 6.1, as counts. With n rows in the window, n_x of value (bin) x, n_y of class y, n_xy of both,
and f(k) = k log2 k::

    T_X = sum f(n_x)     T_Y = sum f(n_y)     T_XY = sum f(n_xy)
    H(X) = (f(n) - T_X) / n     H(Y) = (f(n) - T_Y) / n                                      (1)
    H(Y|X) = (T_X - T_XY) / n                                                                (2)
    IG = H(Y) - H(Y|X)     gain ratio = IG / H(X)     SU = 2 IG / (H(X) + H(Y))              (3)
    bias = (values - 1) (classes - 1) / (2 n ln 2)                                           (4)

A row that enters or leaves changes one term of each sum. f is tabulated as integer multiples of a power of two, so the
sums are integers: rounding errors do not accumulate over the stream, and the state depends only on the rows of the
window. (1) to (3) agree with a recount within about 1e-15. The thesis updates entropies by floating-point recurrences
(Algorithm 1), which are correct except for windows of 0 and 1 rows and drift by 3e-10 in a million rows; its Eq. 6.7
prints H(X|Y) where (2) is meant. (4) is the mean information gain of an irrelevant feature (Miller, Madow), where
"values" counts the values that occur. Corrected scores subtract it from IG and are clipped at 0.

Entropies are in bits. SU is 0 while the window has fewer than two classes, and for constant features.

Numbers are binned (:mod:`tamis.summaries.discretize`), categories counted one by one
(:mod:`tamis.summaries.categories`), sparse binary rows by their ones (:mod:`tamis.summaries.window`).

After every row
---------------
An algorithm that needs SU after every row calls this function from its own kernel::

    update_row(row, code, state, su, corrected)      # modifies state and su in place

    row : ndarray of shape (n_features,), float64, C-contiguous; NaN is missing
    code : int, the row's class
    state : ``counts.state``, tuples of arrays: read it again after each ``counts.prepare`` and ``counts.grow``
    su : ndarray of shape (n_features,), float64; overwritten by ``symmetrical_uncertainty(corrected)``
    corrected : bool

It adds at most as many rows at a time as ``prepare`` returns, which allocates slots for their categories::

    while len(X):
        n = counts.prepare(X, codes)                 # also validates them
        for row, code in zip(X[:n], codes[:n]):      # in a kernel
            update_row(row, code, counts.state, su, corrected)
        X, codes = X[n:], codes[n:]

This works for dense rows only. The state equals that after ``update``, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._guard import ThreadSafe
from tamis._shapes import state_error
from tamis._validation import Array, Rows, check_choice, check_number, is_integer, reject_nonfinite
from tamis.errors import StateError
from tamis.summaries import window as kernels
from tamis.summaries.batch import check_batch, n_bytes
from tamis.summaries.categories import make_room, n_slots_for
from tamis.summaries.discretize import CELLS_PER_BIN, MIN_GAP, n_counted, quantile_cuts
from tamis.summaries.window import SparseWindow, State, update_row

__all__ = ["WindowCounts", "update_row"]

Floats = NDArray[np.float64]
_LN4 = 2.0 * np.log(2.0)
_BITS = 60  # bits of the sums
_PLAIN = np.dtype(np.float64), np.dtype(np.int64)  # dtypes of rows and codes in kernels
_ROWS = 1024  # rows counted at a time, so that memory does not depend on the batch size
_OF_FEATURES = (
    "_raw", "_bins", "_keys", "_used", "_counts", "_sums", "_cuts", "_grid", "_band", "_built", "_counted",
)  # fmt: skip


class WindowCounts(ThreadSafe):
    """Joint counts of each feature's values and the class over a sliding window.

    Parameters
    ----------
    n_features : int, at least 1
    n_classes : int, at least 0
        Classes are the codes 0, 1, ..., n_classes - 1; :meth:`grow` adds classes.
    window : int, at least 1, default=200
        w, the number of rows in the window.
    categorical : sequence of int, default=()
        Columns whose values are categories: any finite numbers. All other columns are numeric and are binned.
    n_bins : int, at least 2, default=10
        Maximum number of bins of a numeric feature.
    discretizer : {"pad", "quantile"}, default="pad"
        How numeric features are binned: adaptively (PaD), or by the exact quantiles of the window, recomputed every
        w / 4 rows. In both cases, all rows of the window are counted in the current bins.
    missing : {"category", "skip"}, default="category"
        Whether NaN is a separate category, or a row with NaN is skipped for that feature.

    Attributes
    ----------
    n_features, n_classes, window, n_rows : int
        `n_rows` is the number of rows in the window.
    class_counts : ndarray of shape (n_classes,), int64
    n_seen : int
        Number of rows added so far.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Notes
    -----
    Rows are counted one by one, so scores do not depend on how rows are divided into batches, bit for bit.

    Memory: 12 bytes per numeric and 4 per categorical value in the window, 4 per feature, bin and class, and about 300
    per feature; with PaD another 160 per numeric feature, bin and class if the window has at least ten rows for each.
    CSR rows: 4 bytes per one in the window, and 4 per feature and class.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> counts = WindowCounts(n_features=3, n_classes=2, window=300, categorical=[2])
    >>> codes = rng.integers(0, 2, 1000)
    >>> X = np.c_[rng.normal(size=1000), rng.normal(size=1000) + 2 * codes, rng.integers(0, 4, 1000)]
    >>> counts.update(X, codes)
    >>> counts.n_rows, counts.class_counts.sum()
    (300, np.int64(300))
    >>> counts.symmetrical_uncertainty().round(2)
    array([0.02, 0.22, 0.  ])
    >>> counts.symmetrical_uncertainty(corrected=True).round(2)
    array([0.01, 0.21, 0.  ])
    """

    _shapes = """
        n_features (=j)  window (=w)  n_bins (=b)  _n_numeric (=p)
        _class_counts (k) int64 in [0, w]
        _numeric (j) int64 in [-1, p)
        _ring (w) int64 in [0, max(k, 1))
        _seen (1) int64 in [0, 2**62)
        _start? (j+1) int64 in [0, len(_keys)] increasing
        _start? (s)  _raw? (p*(s>0), w) ring w[its._seen[0]]
        _bins (j*(s>0), w) int32 in [0, diff(_start)[:, None])
        _f (w+1) int64 any "sums of them are only compared" fixed
        _step (w+1) int64 any "sums of them are only compared" fixed
        _options (3) int64 in [0, 62] fixed
        _keys? (m)
        _used? (j) int64 in [0, m]
        _counts? (m, k+1) int32 in [0, w]
        _sums? (j, 3) int64 any "sums of _f"
        _cuts? (j, b-1) float in [-inf, inf]
        _grid? (j, 3) float in [-inf, inf]
        _grid[:, 1:] finite
        _band? (j, 2)
        _built? (j, 2) int64 in [0, 2**62)
        _n_counted (=h)
        _counted? (p, k, h) int32 in [-w, w]
        _cells? (200*b+2) int32 any "working space"
        _sparse._ones? (j, k+1)  _sparse._place? (w, 2)
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        window: int = 200,
        *,
        categorical: Any = (),
        n_bins: int = 10,
        discretizer: str = "pad",
        missing: str = "category",
    ) -> None:
        check_number("n_features", n_features, low=1, integer=True)
        check_number("n_classes", n_classes, low=0, integer=True)
        check_number("window", window, low=1, integer=True)
        check_number("n_bins", n_bins, low=2, integer=True)
        check_choice("discretizer", discretizer, ("pad", "quantile"))
        check_choice("missing", missing, ("category", "skip"))
        self.n_features, self.window, self.n_bins = int(n_features), int(window), int(n_bins)
        self.discretizer, self.missing = discretizer, missing
        self._numeric = _numeric_columns(categorical, self.n_features)
        self._n_numeric = int(np.count_nonzero(self._numeric >= 0))
        self._sparse: SparseWindow | None = None  # replaces the state below if the first rows are CSR
        self._raw = np.zeros((0, self.window))  # allocated by the first rows, like the rest of the state
        self._bins = np.zeros((0, self.window), np.int32)
        self._ring = np.zeros(self.window, np.int64)
        self._seen = np.zeros(1, np.int64)
        self._class_counts = np.zeros(int(n_classes), np.int64)
        k = np.arange(self.window + 1, dtype=np.float64)
        f = k * np.log2(np.maximum(k, 1.0))
        scale = _BITS - int(np.ceil(np.log2(max(f[-1], 1.0))))
        self._f = np.rint(np.ldexp(f, scale)).astype(np.int64)
        self._step = np.r_[0, np.diff(self._f)]
        self._options = np.array([discretizer == "pad", missing == "skip", scale], np.int64)
        self._renewed = 0  # row of the last quantile computation
        self._n_counted = 0
        self._binned = (0, 0)  # row at which PaD's bins were last written, and number of rows written

    def check_state(self) -> None:
        """Validate that loaded counts match the loaded rows; otherwise a kernel would count below zero.

        Raises
        ------
        StateError
            If they differ.
        """
        order = self._order()
        if not np.array_equal(np.bincount(self._ring[order], minlength=self.n_classes), self._class_counts):
            raise _mismatch("_class_counts")
        if self._sparse is not None:
            self._sparse.check_rows(order, self._ring[order])
        elif "_start" in vars(self):
            self._check_counts(order)

    def _check_counts(self, order: NDArray[np.int64]) -> None:
        numeric, start, k = self._numeric >= 0, self._start, self.n_classes
        width = np.diff(start)
        room = width[~numeric] - 1  # slots of a category table
        if (
            start[0] != 0
            or (width[numeric] != self.n_bins + 1).any()
            or (room < 1).any()
            or (room & (room - 1)).any()
        ):
            raise _mismatch("_start")
        if not np.array_equal(self._numeric, np.where(numeric, np.cumsum(numeric) - 1, -1)):
            raise _mismatch("_numeric")
        known = np.append(0, np.cumsum(self._keys == self._keys))
        used, missing = known[start[1:] - 1] - known[start[:-1]], self._keys[start[1:] - 1]
        if (
            (used != self._used)[~numeric].any()
            or (4 * used > 3 * (width - 1))[~numeric].any()
            or (missing == missing).any()
        ):
            raise _mismatch("_keys")
        bins, y, pad = self._bins[:, order].astype(np.int64), self._ring[order], self.discretizer == "pad"
        if (np.isinf(self._grid[:, 0]) & (self._grid[:, 1] == 0.0)).any():  # a cell would be NaN
            raise _mismatch("_grid")
        if pad and self._n_numeric:
            # PaD counts numeric features by cell and writes their bins only when they are read.
            grid, cuts, raw = self._grid[numeric][:, None], self._cuts[numeric], self._raw[:, order]
            with np.errstate(over="ignore", invalid="ignore"):
                cells = np.floor((0.5 * raw - grid[..., 0]) * grid[..., 1])
                places = np.clip(cells - grid[..., 2], 0.0, self._n_counted - 1.0)
            missing = raw != raw
            bins[numeric] = np.where(
                missing, self.n_bins, sum(cuts[:, q, None] < cells for q in range(cuts.shape[1]))
            )
            self._check_cells(np.where(missing, 0.0, places).astype(np.int64), y, ~missing)
        slots = (start[:-1, None] + bins) * k + y
        counts = np.bincount(slots.ravel(), minlength=start[-1] * k).reshape(-1, k)
        if not np.array_equal(counts, self._counts[:, 1:]) or not np.array_equal(
            counts.sum(axis=1), self._counts[:, 0]
        ):
            raise _mismatch("_counts")

    def _check_cells(self, places: NDArray[np.int64], y: NDArray[np.int64], known: NDArray[np.bool_]) -> None:
        """Raise unless each value is counted in its cell, or in the first cell if classes were added since."""
        shape = self._counted.shape
        at = (np.arange(shape[0])[:, None] * shape[1] + y) * shape[2] + places
        more = self._counted - np.bincount(at[known], minlength=self._counted.size).reshape(shape)
        if (more[..., 1:] > 0).any() or more.sum(axis=2).any():
            raise _mismatch("_counted")

    # -- attributes ----------------------------------------------------------------------------------------

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self._class_counts)

    @property
    def n_seen(self) -> int:
        """Number of rows added so far."""
        return int(self._seen[0])

    @property
    def n_rows(self) -> int:
        """Number of rows in the window."""
        return min(self.n_seen, self.window)

    @property
    def class_counts(self) -> NDArray[np.int64]:
        """Rows of each class in the window, shape (n_classes,)."""
        return self._class_counts.copy()

    @property
    def state(self) -> State:
        """The arrays that :func:`update_row` changes."""
        if self._sparse is not None:
            raise ValueError(
                "The first rows were CSR, of which only the ones are stored: pass rows to update()."
            )
        if "_start" not in vars(self):
            self._build()
        return self._arrays()

    def _arrays(self) -> State:
        return (
            (self._raw, self._bins, self._ring, self._seen, self._class_counts),
            (self._start, self._keys, self._counts, self._sums),
            (self._numeric, self._cuts, self._grid, self._band, self._built, self._counted, self._cells),
            # The last is written by reads.
            (self._f, self._step, self._options, np.empty((4, self.n_features))),
        )

    def _build(self) -> None:
        d = self.n_features
        self._raw = np.zeros((self._n_numeric, self.window))
        self._bins = np.zeros((d, self.window), np.int32)
        start = np.r_[0, np.cumsum(np.where(self._numeric >= 0, self.n_bins + 1, n_slots_for(2)))]
        self._keys = np.full(start[-1], np.nan)
        self._used = np.zeros(d, np.int64)  # slots with a key
        self._counts = np.zeros((start[-1], 1 + self.n_classes), np.int32)
        self._sums = np.zeros((d, 3), np.int64)
        self._cuts = np.full((d, self.n_bins - 1), np.inf)
        self._grid, self._band = np.zeros((d, 3)), np.zeros((d, 2))
        self._built = np.zeros((d, 2), np.int64)
        self._counted = self._empty_cells()
        self._cells = np.zeros(10 * CELLS_PER_BIN * self.n_bins + 2, np.int32)
        self._start = start  # last: it shows that all of them are allocated

    def _empty_cells(self) -> NDArray[np.int32]:
        """Return empty cell counts."""
        self._n_counted = n_counted(self.n_bins, self.n_classes, self.window)
        return np.zeros((self._n_numeric, self.n_classes, self._n_counted), np.int32)

    def with_bins(self, n: int) -> State:
        """Return `state` with the bins of the last n rows written; with PaD, bins may change with each row.

        Parameters
        ----------
        n : int
            From 0 to `n_rows`.
        """
        state = self.state
        if (
            self.discretizer == "pad"
            and self._n_numeric
            and not (self._binned[0] == self.n_seen and n <= self._binned[1])
        ):
            kernels.write_bins(n, state)
            self._binned = (self.n_seen, n)
        return state

    # -- learning ------------------------------------------------------------------------------------------

    def grow(self, n_classes: int) -> None:
        """Add classes, with codes after the existing ones.

        Parameters
        ----------
        n_classes : int
            New number of classes, not smaller than before.
        """
        check_number("n_classes", n_classes, low=self.n_classes, integer=True)
        new = n_classes - self.n_classes
        self._class_counts = np.r_[self._class_counts, np.zeros(new, np.int64)]
        if self._sparse is not None:
            self._sparse.grow(n_classes)
        elif "_start" in vars(self):
            self._counts = np.pad(self._counts, ((0, 0), (0, new)))
            kept, self._counted = self._counted, self._empty_cells()
            if kept.shape[2] == self._counted.shape[2]:
                self._counted[:, : kept.shape[1]] = kept
            else:  # all in the first cell, as if far away: the next build reads the rows
                self._counted[:, : kept.shape[1], 0] = kept.sum(axis=2)

    def reorder(self, order: NDArray[np.intp]) -> None:
        """Reorder the classes, in new arrays: the new class c is the old class ``order[c]``.

        Parameters
        ----------
        order : ndarray of shape (n_classes,), int
            A permutation of the codes.
        """
        code = np.argsort(order)
        self._class_counts, self._ring = self._class_counts[order], code[self._ring]
        columns = np.r_[0, 1 + order]  # the first one counts the rows of all classes
        if self._sparse is not None:
            self._sparse = self._sparse.reordered(columns)
        elif "_start" in vars(self):
            self._counts = np.ascontiguousarray(self._counts[:, columns])
            self._counted = np.ascontiguousarray(self._counted[:, order])

    def widen(self, n_features: int, categorical: bool = False, value: float = 0.0) -> None:
        """Add features after the existing ones, in new arrays; they had one value in all rows so far.

        Parameters
        ----------
        n_features : int
            New number of features, not smaller than before.
        categorical : bool, default=False
            Whether the new features are categorical.
        value : float, default=0
            That value: 0 or NaN.
        """
        check_number("n_features", n_features, low=self.n_features, integer=True)
        more = int(n_features) - self.n_features
        zeros = self._constant_counts(value, categorical)
        numeric = np.arange(more) + self._n_numeric if not categorical else np.full(more, -1)
        self.n_features, self._numeric = int(n_features), np.r_[self._numeric, numeric]
        self._n_numeric += 0 if categorical else more
        if self._sparse is not None:
            self._sparse = self._sparse.widened(more)
        elif "_start" in vars(self):
            width = int(zeros._start[-1])
            self._start = np.r_[self._start, self._start[-1] + width * np.arange(1, more + 1)]
            for name in _OF_FEATURES:
                new = getattr(zeros, name)
                setattr(self, name, np.r_[getattr(self, name), np.tile(new, (more,) + (1,) * (new.ndim - 1))])
            self._binned = (0, 0)

    def forget(self, columns: NDArray[np.intp], value: float = 0.0) -> None:
        """Forget some features, in new arrays: they then had one value in all rows so far, which must have been dense.

        Parameters
        ----------
        columns : ndarray of int
        value : float, default=0
            That value: 0 or NaN.
        """
        _ = self.state  # allocates
        for name in _OF_FEATURES:
            setattr(self, name, getattr(self, name).copy())
        for j in columns.tolist():
            zeros, at = self._constant_counts(value, self._numeric[j] < 0), self._numeric[j]
            slots = slice(self._start[j], self._start[j] + zeros._start[-1] - 1)
            last = self._start[j + 1] - 1
            self._keys[slots.start : last + 1], self._counts[slots.start : last + 1] = np.nan, 0
            self._keys[slots], self._counts[slots] = zeros._keys[:-1], zeros._counts[:-1]
            self._counts[last] = zeros._counts[-1]
            for name in ("_bins", "_used", "_sums", "_cuts", "_grid", "_band", "_built"):
                getattr(self, name)[j] = getattr(zeros, name)[0]
            if at >= 0:
                self._raw[at], self._counted[at] = value, zeros._counted[0]
        self._binned = (0, 0)

    def _constant_counts(self, value: float, categorical: bool) -> WindowCounts:
        """Return the counts of one feature that had this value in all rows so far.

        Its bins were determined while the window filled, so no later row has changed them.
        """
        zeros = WindowCounts(
            1, self.n_classes, self.window, categorical=[0] if categorical else [], n_bins=self.n_bins,
            discretizer=self.discretizer, missing=self.missing,
        )  # fmt: skip
        _ = zeros.state  # allocates
        n = min(self.n_seen, self.window + MIN_GAP + 2)
        zeros.update(np.full((n, 1), value), np.zeros(n, np.int64))
        if zeros.n_seen:
            for counts in (zeros._counts[:, 1:].T, *zeros._counted):  # all rows were of class 0
                counts[:] = np.outer(self._class_counts, counts[0] // zeros.n_rows)
            zeros._sums[0, 1] = self._f[self._class_counts].sum()
        return zeros

    def update(self, X: Rows, codes: Array) -> None:
        """Add rows, in order.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), or CSR matrix of zeros and ones
            Finite numbers or NaN. If the first rows are CSR, only ones are counted: O(ones) per row.
        codes : ndarray of shape (n_rows,), int
            Class of each row, below `n_classes`.

        Raises
        ------
        DataError
            If X or codes are invalid; the state is unchanged.
        """
        sparse = self._sparse
        if sparse is None and sp.issparse(X) and self.n_seen == 0:
            sparse = SparseWindow(self.n_features, self.n_classes, self.window)
        if sparse is not None:
            check_batch(X, codes, None, 1.0, self.n_features, self.n_classes)
            sparse.update(X, codes, self._ring, self._seen, self._class_counts)
            self._sparse = sparse
            return
        X, codes = self._validate(X, codes)
        while 0 < len(X) != (n := self._make_ready(X)):
            kernels.learn(X[:n], codes[:n], self._arrays())
            X, codes = X[n:], codes[n:]
        if len(X):
            kernels.learn(X, codes, self._arrays())

    def prepare(self, X: Array, codes: Array) -> int:
        """Prepare for rows; return how many of them :func:`update_row` may add before this is called again.

        Parameters
        ----------
        X, codes : ndarray
            As in :meth:`update`, dense.

        Returns
        -------
        int
            From 1 to their number.

        Raises
        ------
        DataError
            As in :meth:`update`.
        """
        _ = self.state  # raises if the first rows were CSR
        return self._make_ready(self._validate(X, codes)[0])

    def _validate(self, X: Rows, codes: Array) -> tuple[Array, Array]:
        X = X.toarray() if sp.issparse(X) else X
        plain = (X.dtype, codes.dtype) == _PLAIN and X.flags.carray and codes.flags.carray
        fits = X.shape[1:] == (self.n_features,) and codes.shape == X.shape[:1]
        n_classes = len(self._class_counts)
        if not (plain and fits and kernels.acceptable(X, codes, n_classes)):
            check_batch(X, codes, None, 1.0, self.n_features, n_classes)
            reject_nonfinite(X, allow_nan=True)
        if plain:
            return X, codes
        # Kernels would be compiled again for read-only arrays.
        return np.require(X, np.float64, ["C", "A", "W"]), np.require(codes, np.int64, ["C", "A", "W"])

    def _make_ready(self, X: Array) -> int:
        """Recompute quantiles if due and allocate slots for categories; return for how many rows this is valid."""
        if "_start" not in vars(self):
            self._build()
        n = min(len(X), _ROWS)
        if self.discretizer == "quantile":
            quarter, t = max(self.window // 4, 1), self.n_seen
            if t != self._renewed and (t % quarter == 0 or (t < quarter and t & (t - 1) == 0)):
                self._cuts[self._numeric >= 0] = quantile_cuts(self._raw[:, : self.n_rows], self.n_bins)
                kernels.rebin(self.n_rows, self.state)
                self._renewed = t
            n = min(n, quarter - t % quarter, (1 << t.bit_length()) - t if t < quarter else n)
        if self._n_numeric < self.n_features:
            columns, table = np.flatnonzero(self._numeric < 0), (self._start, self._keys, self._counts)
            table = make_room(X[:n], columns, table, self._bins, self.n_rows, self._used)
            self._start, self._keys, self._counts = table
        return n

    # -- results -------------------------------------------------------------------------------------------

    def _measure(self) -> Floats:
        """Return H(X), H(Y), H(Y|X) and the bias, shape (4, n_features)."""
        if self._sparse is not None:
            return self._sparse.measures(self._class_counts, self._f, int(self._options[2]))
        if "_start" not in vars(self):
            return np.zeros((4, self.n_features))
        state = self._arrays()
        kernels.measure(state)
        return state[3][3]

    def entropy(self) -> Floats:
        """Return H(X) of each feature in bits, (1): shape (n_features,), from 0 to log2 of its values."""
        return self._measure()[0].copy()

    def class_entropy(self) -> float:
        """Return H(Y) of the window in bits, (1): from 0 to log2(n_classes)."""
        n = max(self.n_rows, 1)
        return float((self._f[n] - self._f[self._class_counts].sum()) * 2.0 ** -int(self._options[2]) / n)

    def conditional_entropy(self) -> Floats:
        """Return H(Y|X) of each feature in bits, (2): shape (n_features,), from 0 to H(Y)."""
        return self._measure()[2].copy()

    def information_gain(self, corrected: bool = False) -> Floats:
        """Return IG of each feature in bits, (3): shape (n_features,), from 0 to H(Y).

        Parameters
        ----------
        corrected : bool, default=False
            Whether to subtract the bias (4).
        """
        _, h_y, h_y_x, bias = self._measure()
        return np.maximum(h_y - h_y_x - (bias if corrected else 0.0), 0.0)

    def gain_ratio(self) -> Floats:
        """Return IG / H(X) of each feature, (3): shape (n_features,), 0 where H(X) is 0."""
        h_x, h_y, h_y_x, _ = self._measure()
        gain = np.maximum(h_y - h_y_x, 0.0)
        return np.divide(gain, h_x, out=np.zeros(self.n_features), where=h_x > 0.0)

    def symmetrical_uncertainty(self, corrected: bool = False) -> Floats:
        """Return SU of each feature and the class, (3): shape (n_features,), in [0, 1].

        Parameters
        ----------
        corrected : bool, default=False
            Whether to subtract the bias (4) from IG.
        """
        su = np.empty(self.n_features)
        kernels.uncertainty(self._measure(), bool(corrected), su)
        return su

    def pair_symmetrical_uncertainty(self, i: int, others: Array, corrected: bool = False) -> Floats:
        """Return SU of feature i with each of the others over the window, without the class.

        Parameters
        ----------
        i : int
        others : array of int, shape (m,)
        corrected : bool
            Whether the mean of irrelevant features of as many values is subtracted; of dense rows only.

        Returns
        -------
        ndarray of shape (m,), float64
            In [0, 1]; 1 for a feature with itself, or 0 if it is constant. With missing="skip", over the rows in which
            both values are present.
        """
        others = np.asarray(others, np.int64)
        for j in (i, *others.tolist()):
            self._check_feature(j)
        if self._sparse is not None:
            return self._sparse.pairs(i, others, self._f, self.n_rows)
        su = np.empty(len(others))
        kernels.pairs(i, others, self.n_rows, self.with_bins(self.n_rows), su)
        if corrected:
            entropy, more = self.entropy(), self._sums[:, 2] - 1
            spread = np.maximum(entropy[i] + entropy[others], 1e-300)
            su = np.maximum(su - 2.0 * more[i] * more[others] / (self.n_rows * _LN4 * spread), 0.0)
        return su

    # -- the bins ------------------------------------------------------------------------------------------

    def table(self, j: int) -> NDArray[np.int64]:
        """Return the joint counts of the values of feature j and the classes.

        Parameters
        ----------
        j : int

        Returns
        -------
        ndarray of shape (n_values, n_classes), int64
            Row b counts the value with code b in :meth:`binned`; the last row counts NaN.
        """
        self._check_feature(j)
        if self._sparse is not None:
            return self._sparse.table(j, self._class_counts)
        _, (start, keys, counts, _), _, _ = self.state
        slots, last = np.arange(start[j], start[j + 1] - 1), start[j + 1] - 1
        if self._numeric[j] < 0:
            slots = slots[counts[slots, 0] > 0]
            slots = slots[np.argsort(keys[slots])]
        return counts[np.append(slots, last), 1:].astype(np.int64)

    def edges(self, j: int) -> Floats:
        """Return the edges between the bins of a numeric feature, ascending: shape (bins - 1,), float64.

        With PaD a bin includes its lower edge, with quantiles its upper one.
        """
        self._check_feature(j)
        if self._sparse is not None or self._numeric[j] < 0:
            raise ValueError(f"Feature {j} is categorical and has no bin edges.")
        _, _, (_, cuts, grid, _, _, _, _), _ = self.state
        finite: Floats = cuts[j][np.isfinite(cuts[j])]
        return 2.0 * ((finite + 1.0) / grid[j, 1] + grid[j, 0]) if self.discretizer == "pad" else finite

    def _check_feature(self, j: Any) -> None:
        if not (is_integer(j) and 0 <= j < self.n_features):
            raise ValueError(f"There is no feature {j!r}: the features are 0 to {self.n_features - 1}.")

    # -- the window ----------------------------------------------------------------------------------------

    def _order(self) -> NDArray[np.int64]:
        """Return the positions of the window's rows in the ring, oldest first."""
        return np.arange(self.n_seen - self.n_rows, self.n_seen) % self.window

    def binned(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the window's rows as bins, oldest first, and their classes.

        Returns
        -------
        bins : ndarray of shape (n_rows, n_features), int32
            The bin of a numeric value, in ascending order, or the rank of a category among those in the window. The
            code of NaN is `n_bins` or the number of categories in the window.
        codes : ndarray of shape (n_rows,), int64
        """
        order = self._order()
        if self._sparse is not None:
            return self._sparse.rows(order).toarray().astype(np.int32), self._ring[order]
        _, (start, keys, _, _), _, _ = self.with_bins(self.n_rows)
        bins = np.ascontiguousarray(self._bins[:, order].T)
        for j in np.flatnonzero(self._numeric < 0):
            values = keys[start[j] + bins[:, j]]
            known = np.unique(values[~np.isnan(values)])
            bins[:, j] = np.where(np.isnan(values), len(known), np.searchsorted(known, values))
        return bins, self._ring[order]

    def rows(self) -> tuple[Rows, NDArray[np.int64]]:
        """Return the original rows of the window, oldest first, and their classes.

        Returns
        -------
        X : ndarray of shape (n_rows, n_features), float64, or CSR matrix
        codes : ndarray of shape (n_rows,), int64
        """
        order = self._order()
        if self._sparse is not None:
            return self._sparse.rows(order), self._ring[order]
        _, (start, keys, _, _), _, _ = self.state
        if self._n_numeric == self.n_features:
            return self._raw[:, order].T, self._ring[order]
        X = keys[start[:-1] + self._bins[:, order].T]  # numeric features have no keys
        X[:, self._numeric >= 0] = self._raw[:, order].T
        return X, self._ring[order]

    nbytes = property(n_bytes)


def _mismatch(name: str) -> StateError:
    return state_error(f"{name!r} of a WindowCounts is not as its rows make it")


def _numeric_columns(categorical: Any, n_features: int) -> NDArray[np.int64]:
    """Return the index of each numeric column among the numeric ones, and -1 for the others."""
    numeric = np.ones(n_features, np.bool_)
    for j in np.asarray(categorical).reshape(-1).tolist():
        if not (is_integer(j) and 0 <= j < n_features):
            raise ValueError(
                f"categorical names the column {j!r}, but the columns are 0 to {n_features - 1}: give their numbers."
            )
        numeric[j] = False
    return np.where(numeric, np.cumsum(numeric) - 1, -1)
