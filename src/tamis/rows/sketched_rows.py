"""Base class of selectors without labels that summarise the rows by a sketch of their directions.

Frequent Directions: Liberty, Simple and Deterministic Matrix Sketching, KDD 2013. A block of rows Y is appended to the
sketch B of l directions, and both are compressed to a new sketch::

    C = [B, Y],  C = U diag(s) V'                                        (1)
    delta = s_l^2,  s'_i = sqrt(s_i^2 - delta),  i = 1, ..., l           (2)
    B = U_l diag(s')                                                     (3)

So |C'x|^2 - |B'x|^2 is never negative, and at most the sum of all delta for every unit vector x.

The squares s^2 are the eigenvalues of C'C, whose block B'B is diag(s'^2), so (1) to (3) cost three products with Y or B
and one small eigenproblem. Where there are fewer features than columns, CC' is the smaller matrix, and its eigenvectors
are U.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import scipy.sparse as sp

from tamis._validation import Array, Floats, Indices, Rows
from tamis._validation.parameters import integer, number, parameter, parameters
from tamis.base import Claims, Inputs, RowSelector
from tamis.errors import DataError

# State, for J columns:
#   _sketch    (l, J) float64   B'; row i is s'_i times a unit vector, longest first
#   _squares   (l,)   float64   s'_i^2
#   _waiting   (n, J) float64   rows since the last whole block, times the root of their weight

_LARGEST = 1e140  # squares of larger values may be too large to sum


def shrink(sketch: Floats, squares: Floats, block: Floats) -> tuple[Floats, Floats]:
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


@dataclass(eq=False, repr=False)
class SketchedRows(RowSelector):
    """A selector that learns from blocks of `block_size` rows, regardless of the batches in which they arrive."""

    claims = Claims(
        equals_rows="exactly",
        ranks_relevance=False,
        copies_differ="a row is multiplied by the root of its weight; copies fill the sketch sooner",
    )
    accepts = Inputs(targets=("binary", "multiclass", "regression"), labels=False)
    _allowed = parameters(n_components=integer("[1, 100]"))

    _shapes = """
        _sketch (l, j) float in [-1e150, 1e150] fill 0
        _squares (l) float in [0, 1e300]
        _n_waiting (=w)
        _waiting (w, j) float in [-1e150, 1e150] fill 0
    """

    _: KW_ONLY
    n_components: int
    sketch_size: int | None = parameter(integer("[2, 2000]"), None, default=None)
    block_size: int = parameter(integer("[1, 10000]"), default=100)
    half_life: float | None = parameter(number("[0.01, inf]"), None, default=None)
    task: str = "classification"

    def _start(self, n_features: int) -> None:
        size = self._size(n_features)
        self._sketch, self._squares = np.zeros((size, n_features)), np.zeros(size)
        self._waiting, self._n_waiting = np.zeros((0, n_features)), 0

    def _default_size(self, n_features: int) -> int:
        """Return the size of the sketch if the caller passes none."""
        raise NotImplementedError

    def _size(self, n_features: int) -> int:
        if self.sketch_size is None:
            return self._default_size(n_features)
        if self.sketch_size <= self.n_components:
            raise ValueError(
                f"sketch_size must be above n_components, got {self.sketch_size!r} and {self.n_components!r}."
            )
        return int(self.sketch_size)

    def _claims(self) -> Claims:
        return replace(self.claims, counts_columns=self.sketch_size is None)

    def _widen(self, n_features: int) -> None:
        super()._widen(n_features)
        more = ((0, self._size(n_features) - len(self._squares)), (0, 0))
        self._sketch, self._squares = np.pad(self._sketch, more), np.pad(self._squares, more[0])

    def _forget_columns(self, columns: Indices) -> None:
        """Keep the directions of the other features, and orthogonalise them again."""
        super()._forget_columns(columns)
        gram_values, vectors = np.linalg.eigh(self._sketch @ self._sketch.T)
        self._squares = np.maximum(gram_values[::-1], 0.0)
        self._sketch = vectors[:, ::-1].T @ self._sketch

    def _learn(self, X: Rows, y: Array, sample_weight: Array | None) -> None:
        values = X.data if sp.issparse(X) else X
        largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
        if largest > _LARGEST:
            raise DataError(f"X contains values up to {largest:g}, above {_LARGEST:g}: rescale the features.")
        start, block_size = 0, int(self.block_size)
        while start < X.shape[0]:
            stop = min(start + block_size - self._n_waiting, X.shape[0])
            rows = X[start:stop].toarray() if sp.issparse(X) else X[start:stop]
            rows = rows.astype(np.float64, copy=False)
            roots = np.ones(stop - start) if sample_weight is None else np.sqrt(sample_weight[start:stop])
            self._take(rows if sample_weight is None else rows * roots[:, None], roots, block_size)
            start = stop

    def _take(self, rows: Floats, roots: Floats, block_size: int) -> None:
        """Buffer rows; complete blocks are added to the sketch. `roots` are the square roots of their weights."""
        block = np.concatenate((self._waiting, rows)) if self._n_waiting else rows
        if len(block) == block_size:
            self._sketch, self._squares = self._updated_sketch(block)
            block = block[:0]
        self._waiting, self._n_waiting = block.copy(), len(block)

    def _updated_sketch(self, block: Floats) -> tuple[Floats, Floats]:
        keep = self._kept_share(len(block))
        sketch = math.sqrt(keep) * self._sketch if keep < 1.0 else self._sketch
        return shrink(sketch, keep * self._squares, block)

    def _kept_share(self, n_rows: int) -> float:
        """Return the fraction of the weight of earlier rows that remains after `n_rows` further ones."""
        return 1.0 if self.half_life is None else float(0.5 ** (n_rows / self.half_life))

    def _longest(self, squares: Floats) -> int:
        """Return `n_components`, checked again: a sketch in use keeps its size."""
        k = int(self.n_components)
        if k >= len(squares):
            raise DataError(
                f"n_components must be below {len(squares)}, the size of the sketch, got {k}: lower it, or call fit."
            )
        return k
