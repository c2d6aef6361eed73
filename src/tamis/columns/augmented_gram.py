"""The Gram matrix of an intercept, named columns and a target, updated with each batch; and the sweep operator.

Sweeping a symmetric matrix G on its k-th column makes that column a regressor (Beaton 1964; Goodnight 1979)::

    pivot d = G_kk;  row k: G_kj / d;  others: G_ij - G_ik G_kj / d;  column k: -G_ik / d;  G_kk: 1 / d        (1)

For autocorrelated rows, G is also stored by block. The sum over block k of the product of two columns with coefficients
a and b is a' G_k b, from which the tests of :mod:`tamis.columns.block_test` are computed without the rows. There are 16
to 32 blocks of L rows, and L doubles; with fading, the two oldest blocks are merged instead once 16 blocks contain the
effective number of rows. Rows from before the series was detected form the first block.
"""

from __future__ import annotations

import numpy as np

from tamis._shapes import Shapes
from tamis._validation import Floats
from tamis.columns.block_test import blocked_log_p, is_determined
from tamis.dependence.autocorrelation import blocked_length, join_blocks

_MOST = 32  # blocks
COLLINEAR = 1e-10  # share of a column's variance: a Gram matrix has half the digits of its columns


def sweep(gram: Floats, k: int) -> None:
    """Sweep a symmetric matrix on its k-th column in place, equation (1); a second time undoes it.

    Parameters
    ----------
    gram : ndarray of shape (m, m), float64
    k : int

    Examples
    --------
    >>> G = np.array([[4.0, 2.0], [2.0, 3.0]])
    >>> sweep(G, 0)
    >>> G  # the coefficient 2 / 4, and the residual sum of squares 3 - 2^2 / 4
    array([[ 0.25,  0.5 ],
           [-0.5 ,  2.  ]])
    """
    pivot = gram[k, k]
    row, column = gram[k] / pivot, gram[:, k].copy()
    gram -= np.outer(column, row)
    gram[k], gram[:, k] = row, -column / pivot
    gram[k, k] = 1.0 / pivot


class AugmentedGram:
    """G of the intercept, some named columns and y, each centred on its mean in the first rows.

    Examples
    --------
    >>> rows = {"a": np.array([1.0, 2.0, 3.0])}
    >>> gram = AugmentedGram().with_rows(rows, ["a"], np.array([2.0, 4.0, 6.0]), 1.0)
    >>> swept, _ = gram.sweep_on(["a"])
    >>> float(swept[1, -1]), gram.n  # the coefficient, and the rows
    (2.0, 3.0)
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.shift = np.zeros(1)
        self.matrix: Floats = np.zeros((2, 2))
        self.square = 0.0  # sum of the squared weights of the rows
        self.blocks: Floats = np.zeros((0, 2, 2))
        self.block_squares = np.zeros(0)  # as `square`
        self.length = 1  # L
        self.n_last = 0  # rows of the last block

    _state_spec = Shapes("""
        shift (q) float in [-1e150, 1e150]  matrix (q+1, q+1) finite  square float in [0, inf)
        blocks (b, q+1, q+1) finite  block_squares (b) float in [0, inf)
        length in [1, 2**62)  n_last in [0, length]
    """)

    @property
    def n(self) -> float:
        """Sum of the weights of the rows."""
        return float(self.matrix[0, 0])

    def subset(self, names: list[str]) -> AugmentedGram:
        """Return the Gram matrix of these columns; all must be known, except before the first rows."""
        if self.n == 0.0 or names == self.names:
            return self
        subset = AugmentedGram()
        places = [self.names.index(name) for name in names]
        subset.names, subset.shift = list(names), self.shift[[*places, -1]]
        kept = [0, *(1 + place for place in places), -1]
        subset.matrix = self.matrix[np.ix_(kept, kept)]
        subset.blocks = self.blocks[:, kept][:, :, kept]
        subset.square, subset.block_squares = self.square, self.block_squares
        subset.length, subset.n_last = self.length, self.n_last
        return subset

    def with_rows(
        self, columns: dict[str, Floats], names: list[str], y: Floats, keep: float, series: bool = False
    ) -> AugmentedGram:
        """Return the Gram matrix with further rows; the weights of earlier rows are multiplied by `keep`.

        With `series`, these rows are also stored by block.
        """
        updated = AugmentedGram()
        values = np.column_stack([*(columns[name] for name in names), y])
        fresh = self.n == 0.0
        updated.names, updated.shift = list(names), values.mean(axis=0) if fresh else self.shift
        rows = np.column_stack([np.ones(len(y)), values - updated.shift])
        updated.matrix = rows.T @ rows + (0.0 if fresh else keep * self.matrix)
        updated.square = len(y) + (0.0 if fresh else keep * keep * self.square)
        updated.blocks = np.zeros((0, *updated.matrix.shape))
        if series:
            updated._add_blocks(rows, keep, AugmentedGram() if fresh else self)
        return updated

    def _add_blocks(self, rows: Floats, keep: float, before: AugmentedGram) -> None:
        """Add rows to the blocks of an earlier state."""
        blocks = list(keep * (before.blocks if len(before.blocks) or not before.n else before.matrix[None]))
        squares = (
            before.block_squares if len(before.blocks) or not before.n else np.array([before.square])
        ) * keep**2
        length, n_last = before.length, before.n_last if len(before.blocks) else before.length
        start = 0
        while start < len(rows):
            if not blocks or n_last >= length:
                if len(blocks) >= _MOST:
                    starts, length = join_blocks(len(blocks), length, self.n**2 / self.square, _MOST)
                    blocks = list(np.add.reduceat(blocks, starts, axis=0))
                    squares = np.add.reduceat(squares, starts)
                blocks.append(np.zeros_like(self.matrix))
                squares, n_last = np.r_[squares, 0.0], 0
            part = rows[start : start + length - n_last]
            blocks[-1] = blocks[-1] + part.T @ part
            squares[-1] += len(part)
            start, n_last = start + len(part), n_last + len(part)
        self.blocks, self.block_squares, self.length, self.n_last = np.array(blocks), squares, length, n_last

    def _sums(self, left: Floats, right: Floats) -> Floats:
        """Return a' G_k b of each block, shape (n_blocks,), for a and b of shape (m,) with few entries."""
        i, j = np.flatnonzero(left), np.flatnonzero(right)
        return left[i] @ self.blocks[:, i[:, None], j] @ right[j]

    def _residual(self, swept: Floats, regressors: list[int]) -> tuple[Floats, tuple[float, float]]:
        """Return the coefficients of the residual of y in the columns, and its correlation length and memory."""
        residual = np.zeros(len(swept))
        inside = [0, *regressors]
        residual[inside], residual[-1] = -swept[inside, -1], 1.0
        intercept = np.eye(1, len(swept))[0]
        variance = float(swept[-1, -1]) * self.square / self.n
        length, level = blocked_length(self._sums(intercept, residual), self._share, variance)
        return residual, (length, self.length * 2.0**level if level else 1.0)

    @property
    def _share(self) -> Floats:
        """F."""
        return self.block_squares / self.square

    def is_determined(self, names: list[str]) -> bool:
        """Whether the number of rows suffices for tests beside these columns, given their autocorrelation."""
        swept, regressors = self.sweep_on(names)
        return len(self.blocks) > 0 and is_determined(
            self._share, self.length, *self._residual(swept, regressors)[1]
        )

    def series_log_p(self, swept: Floats, regressors: list[int], k: int) -> float:
        """Return the log p-value of column k beside the regressors, valid for autocorrelated rows; 0 if undetermined.

        Parameters
        ----------
        swept : ndarray of shape (m, m), float64
            The matrix swept on the intercept and the regressors.
        regressors : list of int
            With or without k.
        k : int
        """
        if not len(self.blocks):
            return 0.0
        z = np.zeros(len(swept))
        residual, memory = self._residual(swept, regressors)
        by_block, apart = self._sums(np.eye(1, len(z))[0], residual), 0.0
        inside = [0, *regressors]
        if k in regressors:
            z[inside] = swept[k, inside] / swept[k, k]
            c, square = swept[k, -1] / swept[k, k], 1.0 / swept[k, k]
        else:
            z[inside], z[k] = -swept[inside, k], 1.0
            c, square = swept[k, -1], swept[k, k]
            apart = c / swept[-1, -1]
            residual = residual - c / square * z
        own = self._sums(np.eye(1, len(z))[0], z) - apart * by_block
        scores = self._sums(z, residual)
        # Squares of sums are those of `square` independent rows, but |z|^2 is a sum over n.
        of_rows = np.array([(square - apart * c) * self.square / self.n])
        log_p = blocked_log_p(
            own[:, None], scores[:, None], self._share, self.length, of_rows, np.array([c]), *memory
        )
        return float(log_p[0])

    def centred_square_sum(self, k: int) -> float:
        """Return the centred sum of squares of a column."""
        return float(self.matrix[k, k] - self.matrix[0, k] ** 2 / self.matrix[0, 0])

    def sweep_on(self, names: list[str]) -> tuple[Floats, list[int]]:
        """Return the matrix swept on the intercept and these columns, and which of them are not collinear."""
        swept, regressors = self.matrix.copy(), []
        sweep(swept, 0)
        for k in (1 + self.names.index(name) for name in names):
            if swept[k, k] > COLLINEAR * self.centred_square_sum(k):
                sweep(swept, k)
                regressors.append(k)
        return swept, regressors
