"""FSDS: unsupervised feature selection by ridge regression on the singular vectors of a sketch of the stream.

Huang, Yoo, Kasiviswanathan: Unsupervised Feature Selection on Data Streams, CIKM 2015. The sketch is Frequent
Directions: Liberty, Simple and Deterministic Matrix Sketching, KDD 2013. The labels are not used.

===========  =================  ============================================================================
paper        here               meaning
===========  =================  ============================================================================
m            J                  number of features
l            `sketch_size`      columns of the sketch
k            `n_components`     singular vectors used for the scores
B_t          ``_sketch``        the sketch after block t, here its l rows: orthogonal, of decreasing length
Y_t          a block            the new rows as columns, `block_size` of them
===========  =================  ============================================================================

A block of rows Y is appended to the sketch, and both are compressed to a new sketch::

    C = [B, Y],  C = U diag(s) V'                                        (1)
    delta = s_l^2,  s'_i = sqrt(s_i^2 - delta),  i = 1, ..., l           (2)
    B = U_l diag(s')                                                     (3)

So |C'x|^2 - |B'x|^2 is never negative, and at most the sum of all delta for every unit vector x. The features are
scored by the ridge regressions of the first k directions::

    w_j = max_i |U_ji| s'_i / (s'_i^2 + a),   a = 8 s'_k,   i = 1, ..., k          (4)

How it is computed: the squares s^2 are the eigenvalues of C'C, of which B'B is known to be diag(s'^2), so (1) to (3)
cost three products with Y or B and one small eigenproblem. Where there are fewer features than columns, CC' is the
smaller matrix, and its eigenvectors are U. Row i of the sketch is s'_i U_i, so (4) is the largest
|B_ji| / (s'_i^2 + a), without a division by s'_i.

Errata of public versions, and our deviations, each with its reason:

* The published code has as many columns as there are rows in the first batch, and shrinks by the last of them in (2) if
  there are fewer than l: it loses information although the sketch has space. Here delta is 0 until there are l columns.
* The authors use the batches of the caller. Here rows are buffered until there are `block_size` of them, so a batch
  leaves the same state as its rows one at a time; scores treat the buffered rows as a block.
* In the paper, old rows fade by (2) only; with `half_life` the sketch fades with each block.
* Rows are not centred, as in the paper. If their means are large, the first direction is the mean: centre them.
* A row with sample weight w is multiplied by sqrt(w); a row of weight 0 is ignored.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tamis._validation import Array, Rows
from tamis._validation.parameters import integer, number, parameters
from tamis.base import RowSelector
from tamis.errors import DataError
from tamis.summaries.batch import without_columns

__all__ = ["FSDS"]

# State, for J columns:
#   _sketch    (l, J) float64   B', of which row i is s'_i times a unit vector, longest first
#   _squares   (l,)   float64   s'_i^2
#   _waiting   (n, J) float64   rows since the last whole block

_LARGEST = 1e140  # squares of larger values may be too large to sum
_RIDGE = 8.0

Floats = NDArray[np.float64]


def _shrink(sketch: Floats, squares: Floats, block: Floats) -> tuple[Floats, Floats]:
    """Return the sketch of a sketch and a block, and its squares."""
    size, n_all, n_features = len(sketch), len(sketch) + len(block), sketch.shape[1]
    if n_features < n_all:  # CC' is smaller than C'C, and its eigenvectors are U
        squared, directions = np.linalg.eigh(sketch.T @ sketch + block.T @ block)
        squared = np.pad(squared[::-1], (0, max(size - n_features, 0)))[:size]
        left = np.maximum(squared - max(squared[-1], 0.0), 0.0)  # (2)
        new = np.zeros_like(sketch)
        new[:n_features] = np.sqrt(left[:n_features, None]) * directions.T[::-1][:size]  # (3)
        return new, left
    gram = np.zeros((n_all, n_all))  # C'C; its lower half is read
    np.fill_diagonal(gram[:size, :size], squares)
    np.matmul(block, sketch.T, out=gram[size:, :size])
    np.matmul(block, block.T, out=gram[size:, size:])
    squared, vectors = np.linalg.eigh(gram)  # (1): s^2 and V
    squared, vectors = np.maximum(squared[::-1][:size], 0.0), vectors[:, ::-1][:, :size]
    left = squared - squared[-1]  # (2)
    vectors = vectors * np.sqrt(np.divide(left, squared, out=np.zeros_like(left), where=squared > 0.0))
    return vectors[:size].T @ sketch + vectors[size:].T @ block, left  # (3)


class FSDS(RowSelector):
    """Selects the features with the largest weights in the leading directions of the stream, without labels.

    A sketch of `sketch_size` directions summarises all rows so far. It never overestimates the length of a direction,
    and the underestimation is bounded. The scores are ridge regression coefficients of the `n_components` longest
    directions.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.1
        How many features to keep, or which fraction of them, in (0, 1].
    n_components : int in [1, 100], default=2
        Number of directions used for the scores (k): typically the number of clusters.
    sketch_size : int in [2, 2000], optional
        Number of directions in the sketch (l), more than `n_components`. By default the root of the number of features,
        rounded down, and at least ``n_components + 1``.
    block_size : int in [1, 10000], default=100
        Number of rows that are added to the sketch at once.
    half_life : float in [0.01, inf], optional
        Number of rows after which the weight of the sketch is halved. By default there is no fading, as published.
    task : {"classification", "regression"}, default="classification"
        Classification or regression. It only affects the validation of targets.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,), float64
        Largest coefficient of a feature (equation 4 of the source file's header), from 0. All zero while `warming_up_`.
    warming_up_, classes_, n_seen_, n_features_in_, feature_names_in_
        As in :class:`tamis.base.RowSelector`. Labels are optional and not used. If they are passed, `warming_up_` is
        true until a second class occurs.

    Raises
    ------
    ValueError
        If a parameter is invalid, or `sketch_size` is not above `n_components`.
    DataError
        If the rows, labels or weights are invalid, or a value exceeds 1e140 in absolute value; the model is left
        unchanged.

    Notes
    -----
    Memory: ``8 (sketch_size + block_size)`` bytes per feature. A block of n rows costs about ``2 J l (l + 2 n) + 2 J
    n^2`` operations. Reading scores between two blocks costs as much as a block. CSR rows are made dense block by
    block.

    References
    ----------
    Huang, Yoo, Kasiviswanathan (2015). Unsupervised Feature Selection on Data Streams. CIKM, 1031-1040.
    Liberty (2013). Simple and Deterministic Matrix Sketching. KDD, 581-588.

    Examples
    --------
    Two latent variables drive three features each of forty; the others are noise.

    >>> import numpy as np
    >>> from tamis import FSDS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 40))
    >>> X[:, :3] += 3 * rng.normal(size=(1000, 1))
    >>> X[:, 20:23] += 3 * rng.normal(size=(1000, 1))
    >>> FSDS(6).fit(X).get_support(indices=True)
    array([ 0,  1,  2, 20, 21, 22])
    """

    _equals_rows = "exactly"
    _target_kinds = ("binary", "multiclass", "regression")
    _shapes = """
        _sketch (l, j) float in [-1e150, 1e150]
        _squares (l) float in [0, 1e300]
        _n_waiting (=w)
        _waiting (w, j) float in [-1e150, 1e150]
    """

    _unsupervised = True
    _ranks_relevance = False

    _allowed = parameters(
        n_components=integer("[1, 100]"),
        sketch_size=(integer("[2, 2000]"), None),
        block_size=integer("[1, 10000]"),
        half_life=(number("[0.01, inf]"), None),
        task=("classification", "regression"),
    )

    def __init__(
        self,
        n_features_to_select: int | float = 0.1,
        *,
        n_components: int = 2,
        sketch_size: int | None = None,
        block_size: int = 100,
        half_life: float | None = None,
        task: str = "classification",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_components = n_components
        self.sketch_size = sketch_size
        self.block_size = block_size
        self.half_life = half_life
        self.task = task

    def _is_regression(self) -> bool:
        return self.task == "regression"

    def _start(self, n_features: int) -> None:
        size = self._size(n_features)
        self._sketch, self._squares = np.zeros((size, n_features)), np.zeros(size)
        self._waiting, self._n_waiting = np.zeros((0, n_features)), 0

    def _size(self, n_features: int) -> int:
        if self.sketch_size is None:
            return max(math.isqrt(n_features), int(self.n_components) + 1)
        if self.sketch_size <= self.n_components:
            raise ValueError(
                f"sketch_size must be above n_components, got {self.sketch_size!r} and {self.n_components!r}."
            )
        return int(self.sketch_size)

    @property
    def _counts_columns(self) -> bool:
        return self.sketch_size is None

    def _widen(self, n_features: int) -> None:
        more, rows = n_features - self._sketch.shape[1], self._size(n_features) - len(self._squares)
        self._sketch = np.pad(self._sketch, ((0, rows), (0, more)))
        self._squares = np.pad(self._squares, (0, rows))
        self._waiting = np.pad(self._waiting, ((0, 0), (0, more)))

    def _forget_columns(self, columns: NDArray[np.intp]) -> None:
        """Keep the directions of the other features, and orthogonalise them again."""
        self._waiting, known = without_columns(self._waiting, columns), without_columns(self._sketch, columns)
        gram_values, vectors = np.linalg.eigh(known @ known.T)
        self._squares = np.maximum(gram_values[::-1], 0.0)
        self._sketch = vectors[:, ::-1].T @ known

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        values = X.data if sp.issparse(X) else X
        largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
        if largest > _LARGEST:
            raise DataError(f"X holds values up to {largest:g}, above {_LARGEST:g}: rescale the features.")
        if sample_weight is not None:
            X, sample_weight = X[sample_weight > 0], sample_weight[sample_weight > 0]
        start, block_size = 0, int(self.block_size)
        while start < X.shape[0]:
            stop = min(start + block_size - self._n_waiting, X.shape[0])
            rows = X[start:stop].toarray() if sp.issparse(X) else X[start:stop]
            rows = rows.astype(np.float64, copy=False)
            if sample_weight is not None:
                rows = rows * np.sqrt(sample_weight[start:stop, None])
            self._take(rows, block_size)
            start = stop

    def _take(self, rows: Floats, block_size: int) -> None:
        """Buffer rows; complete blocks are added to the sketch."""
        block = np.concatenate((self._waiting, rows)) if self._n_waiting else rows
        if len(block) == block_size:
            self._sketch, self._squares = self._updated_sketch(block)
            block = block[:0]
        self._waiting, self._n_waiting = block.copy(), len(block)

    def _updated_sketch(self, block: Floats) -> tuple[Floats, Floats]:
        keep = 1.0 if self.half_life is None else 0.5 ** (len(block) / self.half_life)
        sketch = math.sqrt(keep) * self._sketch if keep < 1.0 else self._sketch
        return _shrink(sketch, keep * self._squares, block)

    def _relevance(self) -> Floats:
        sketch, squares = (
            self._updated_sketch(self._waiting) if self._n_waiting else (self._sketch, self._squares)
        )
        k = int(self.n_components)
        if k >= len(squares):
            raise DataError(
                f"n_components must be below {len(squares)}, the size of the sketch, got {k}: lower it, or call fit."
            )
        ridge = squares[:k, None] + _RIDGE * np.sqrt(squares[k - 1])
        long = np.abs(sketch[:k])
        result: Floats = np.divide(long, ridge, out=np.zeros_like(long), where=ridge > 0.0).max(axis=0)  # (4)
        return result
