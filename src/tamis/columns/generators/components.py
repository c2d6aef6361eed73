"""Principal components, learned without loading the entire table into memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tamis._validation import Floats, check_number
from tamis.base import ColumnSelector
from tamis.columns.generators.formulas import Component, Projection
from tamis.columns.generators.generator import CandidateBlock, FeatureGenerator
from tamis.columns.generators.table import Columns, as_columns, dense
from tamis.errors import DataError

_CELLS = 1 << 20


class PrincipalComponents(FeatureGenerator):
    """The first principal components of a table; in the paper, they precede the columns.

    They are computed from the given rows (the training set), with columns centred and, with `scale`, scaled to variance
    1. Missing values are replaced by the column mean. The loadings of each accepted component are stored.

    Parameters
    ----------
    X : array-like, memory map, sparse matrix, frame or Columns, of shape (n_rows, n_columns)
    n_components : int, default=10
        At least 1. Fewer are offered if the columns have a lower rank. The paper uses 3 to 50.
    scale : bool, default=True
    prefix : str, default="pc"
        First part of the names; a number follows, from 0.

    Notes
    -----
    The table is read in parts, two or three times. Memory is O(m^2), with m the smaller of rows and columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> from tamis.columns.generators import PrincipalComponents
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=200)
    >>> X = hidden[:, None] + rng.normal(size=(200, 30))
    >>> AlphaInvesting().fit_stream(PrincipalComponents(X, 5), hidden).selected_[0]
    'pc0'
    """

    columns: Columns

    def __init__(self, X: Any, n_components: int = 10, *, scale: bool = True, prefix: str = "pc") -> None:
        super().__init__(as_columns(X))
        check_number("n_components", n_components, low=1, integer=True)
        self.n_components, self.scale, self.prefix = int(n_components), bool(scale), prefix
        self._projection: Projection | None = None
        self._next = 0

    def _draw(self, selector: ColumnSelector, width: int) -> CandidateBlock | None:
        if self._projection is None:
            projection = principal_directions(self.columns, self.n_components, self.scale)
            self._values, self._projection = projection.values(self.columns), projection
        projection, first = self._projection, self._next
        stop = min(first + width, self._values.shape[1])
        if first >= stop:
            return None
        names = [f"{self.prefix}{j}" for j in range(first, stop)]
        if taken := [name for name in names if name in self.columns.index]:
            raise DataError(f"A column has the name {taken[0]!r} of a component: choose another prefix.")
        self._next = stop
        return CandidateBlock(names, self._values[:, first:stop], lambda i: Component(projection, first + i))

    def position(self) -> Any:
        """Return the number of components offered.

        Returns
        -------
        int
        """
        return self._next

    def seek(self, position: Any) -> None:
        """Go to the component at a position.

        Parameters
        ----------
        position : int
        """
        self._next = int(position)

    def _settings(self) -> dict[str, Any]:
        return {"n_components": self.n_components, "scale": self.scale, "prefix": self.prefix}


def principal_directions(columns: Columns, n_components: int, scale: bool) -> Projection:
    """Return the first principal directions of a table, largest variance first, the largest loading positive.

    Parameters
    ----------
    columns : Columns
    n_components : int
    scale : bool
        Whether columns are divided by their standard deviations.

    Returns
    -------
    Projection
    """
    n, p = columns.n_rows, columns.n_columns
    mean, spread = np.zeros(p), np.ones(p)
    for part, block in columns.parts(_CELLS):
        values = dense(block)
        known = ~np.isnan(values)
        count = np.maximum(known.sum(axis=0), 1)
        mean[part] = np.where(known, values, 0.0).sum(axis=0) / count
        if scale:
            spread[part] = np.sqrt((np.where(known, values - mean[part], 0.0) ** 2).sum(axis=0) / count)
    spread[~(spread > 0)] = 1.0

    def centred(block: Any, part: slice) -> Floats:
        values = (dense(block) - mean[part]) / spread[part]
        return np.where(np.isnan(values), 0.0, values)

    if n <= p:
        gram = np.zeros((n, n))
        for part, block in columns.parts(_CELLS):
            z = centred(block, part)
            gram += z @ z.T
        size, left = leading_eigenvectors(gram, n_components)
        axes = np.empty((p, len(size)))
        for part, block in columns.parts(_CELLS):
            axes[part] = centred(block, part).T @ left / np.sqrt(size)
    else:
        gram = np.zeros((p, p))
        rows = columns.X.tocsr() if columns.is_sparse else columns.X
        for start in range(0, n, max(1, _CELLS // p)):
            z = centred(rows[start : start + max(1, _CELLS // p)], slice(None))
            gram += z.T @ z
        axes = leading_eigenvectors(gram, n_components)[1]
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return Projection(tuple(columns.names), mean, spread, axes * signs)


def leading_eigenvectors(gram: Floats, k: int) -> tuple[Floats, Floats]:
    """Return the `k` (at most its rank) largest eigenvalues of a Gram matrix, and their eigenvectors."""
    m = len(gram)
    size, vectors = scipy.linalg.eigh(gram, subset_by_index=[max(0, m - k), m - 1])
    size, vectors = size[::-1], vectors[:, ::-1]
    real = size > 10 * m * np.finfo(float).eps * max(size[0], 0.0)
    return size[real], vectors[:, real]
