"""The Gram matrix of an intercept, named columns and a target, updated with each batch; and the sweep operator.

Sweeping a symmetric matrix G on its k-th column makes that column a regressor (Beaton 1964; Goodnight 1979)::

    pivot d = G_kk;  row k: G_kj / d;  others: G_ij - G_ik G_kj / d;  column k: -G_ik / d;  G_kk: 1 / d        (1)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["COLLINEAR", "AugmentedGram", "sweep"]

Floats = NDArray[np.float64]
COLLINEAR = 1e-10  # of the variance of a column: a Gram matrix has half the digits of its columns


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
        return subset

    def with_rows(
        self, columns: dict[str, Floats], names: list[str], y: Floats, keep: float
    ) -> AugmentedGram:
        """Return the Gram matrix with further rows; the weights of earlier rows are multiplied by `keep`."""
        updated = AugmentedGram()
        values = np.column_stack([*(columns[name] for name in names), y])
        fresh = self.n == 0.0
        updated.names, updated.shift = list(names), values.mean(axis=0) if fresh else self.shift
        rows = np.column_stack([np.ones(len(y)), values - updated.shift])
        updated.matrix = rows.T @ rows + (0.0 if fresh else keep * self.matrix)
        return updated

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
