"""Features computed from one other feature: powers and logarithms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

from tamis._validation import Floats, Ints, check_choice, check_number
from tamis.base import ColumnSelector
from tamis.columns.generators.formulas import Component, Log, Power, Projection, Recipe, power_of
from tamis.columns.generators.generator import CandidateBlock, FeatureGenerator, order
from tamis.columns.generators.sources import check_seed, seed_of
from tamis.columns.generators.table import Block, Columns, as_columns, dense, label
from tamis.errors import DataError

_OF = ("originals", "selected")


class _Transform(FeatureGenerator):
    """A few features of each source, in sequence.

    A subclass sets `_variants`, their number per source, and defines `_name`, `_recipe` and `_transform`.
    """

    columns: Columns
    _variants = 1

    def __init__(self, X: Any, of: str, random_state: int | None) -> None:
        super().__init__(as_columns(X))
        check_choice("of", of, _OF)
        self.of, self.random_state = of, check_seed(random_state)
        self._queue: list[str] = []  # of="selected": sources in their order of entry
        self._next = 0
        self._order: Ints | None = None

    @abstractmethod
    def _name(self, source: str, variant: int) -> str:
        """Return the feature's name."""

    @abstractmethod
    def _recipe(self, source: str, variant: int) -> Recipe:
        """Return the feature's recipe."""

    @abstractmethod
    def _transform(self, values: Block, variants: Ints) -> Block:
        """Return the features of a block of sources."""

    def _draw(self, selector: ColumnSelector, width: int) -> CandidateBlock | None:
        codes = np.empty(0, dtype=np.int64)
        while not len(codes):
            codes = self._codes(selector, width)
            if not len(codes):
                return None
            self._next += len(codes)
            codes = codes[[self._is_new(int(code)) for code in codes]]
        which, variants = codes // self._variants, codes % self._variants
        names = [self.columns.names[j] if self.of == "originals" else self._queue[j] for j in which.tolist()]
        pairs = list(zip(names, variants.tolist(), strict=True))
        if self.of == "originals":
            values = self.columns.block(which)
        else:
            values = np.column_stack([self._values_of(name) for name in names])
        made = self._transform(values, variants)
        return CandidateBlock(
            self._disambiguate([self._name(*pair) for pair in pairs]), made, lambda i: self._recipe(*pairs[i])
        )

    def _codes(self, selector: ColumnSelector, width: int) -> Ints:
        """Return the next candidates: source times the number of variants, plus variant."""
        if self.of == "selected":
            waiting = set(self._queue)
            atoms = [
                name for name in selector.selected_ if (recipe := self._find_recipe(name)) and recipe.is_atom
            ]
            self._queue += [name for name in atoms if name not in waiting]
            return np.arange(self._next, min(self._next + width, len(self._queue) * self._variants))
        if self._order is None:
            seed = seed_of(self.random_state, self.place)
            self._order = order(self.columns.n_columns * self._variants, seed)
        return self._order[self._next : self._next + width]

    def _is_new(self, code: int) -> bool:
        return True

    def _source(self, code: int) -> str:
        j = code // self._variants
        return self.columns.names[j] if self.of == "originals" else self._queue[j]

    def position(self) -> Any:
        """Return the sources, and the number of features offered.

        Returns
        -------
        dict
        """
        return {"queue": list(self._queue), "next": self._next}

    def seek(self, position: Any) -> None:
        """Go to the feature at a position.

        Parameters
        ----------
        position : dict
        """
        self._queue, self._next = list(position["queue"]), int(position["next"])

    def _settings(self) -> dict[str, Any]:
        return {"of": self.of, "random_state": self.random_state}


class Powers(_Transform):
    """Powers of the columns, or of the selected features.

    Parameters
    ----------
    X : array-like, memory map, sparse matrix, frame or Columns, of shape (n_rows, n_columns)
    exponents : sequence of float, default=(2, 3)
        Positive, not 1. A non-integer exponent is applied to the absolute value, and the sign is preserved: 0.5 is the
        signed square root.
    of : {"originals", "selected"}, default="originals"
        Every column; or the selected features that are not computed from others (columns, components).
    random_state : int or None, default=None
        Seed for shuffling the powers of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> from tamis.columns.generators import Powers
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> AlphaInvesting(target_fdr=0.05).fit_stream(Powers(X), X[:, 4] ** 2).selected_
    ['x4^2']
    """

    def __init__(
        self,
        X: Any,
        exponents: Sequence[float] = (2, 3),
        *,
        of: str = "originals",
        random_state: int | None = None,
    ) -> None:
        super().__init__(X, of, random_state)
        self.exponents = tuple(exponents)
        for exponent in self.exponents:
            check_number("exponents", exponent, low=0, open_low=True, high=100)
        if not self.exponents or len(set(self.exponents)) < len(self.exponents) or 1 in self.exponents:
            raise ValueError(f"exponents must be different numbers, none of them 1, got {exponents!r}.")
        self._variants = len(self.exponents)
        self._each = np.array(self.exponents, dtype=np.float64)

    def _name(self, source: str, variant: int) -> str:
        return f"{label(source)}^{self.exponents[variant]:g}"

    def _recipe(self, source: str, variant: int) -> Recipe:
        return Power(self.recipe_of(source), source, float(self.exponents[variant]))

    def _is_new(self, code: int) -> bool:
        name = self._name(self._source(code), code % self._variants)
        return self.book.powers.setdefault(name, self.place) == self.place

    def _transform(self, values: Block, variants: Ints) -> Block:
        changed = values.copy() if self._sparse(values) else np.empty(values.shape, order="F")
        for v in np.unique(variants).tolist():
            if self._sparse(values):
                at = np.repeat(variants == v, np.diff(values.indptr))
                changed.data[at] = power_of(values.data[at], self._each[v])
            else:
                changed[:, variants == v] = power_of(values[:, variants == v], self._each[v])
        return changed

    def _sparse(self, values: Block) -> bool:
        return self.columns.is_sparse and not isinstance(values, np.ndarray)

    def _settings(self) -> dict[str, Any]:
        return {"exponents": list(self.exponents), **super()._settings()}


class Logs(_Transform):
    """Logarithms of the columns, or of the selected features.

    A feature with values of zero or less is shifted first, so that its smallest value becomes its distance from the
    mean: log(x - min + (mean - min)). The result does not depend on the unit, up to a constant.

    Parameters
    ----------
    X : array-like, memory map, sparse matrix, frame or Columns, of shape (n_rows, n_columns)
    of : {"originals", "selected"}, default="originals"
        Every column; or the selected features that are not computed from others (columns, components).
    random_state : int or None, default=None
        Seed for shuffling the logarithms of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> from tamis.columns.generators import Logs
    >>> X = np.random.default_rng(0).lognormal(size=(100, 20))
    >>> AlphaInvesting(target_fdr=0.05).fit_stream(Logs(X), np.log(X[:, 4])).selected_
    ['log(x4)']
    """

    def __init__(self, X: Any, *, of: str = "originals", random_state: int | None = None) -> None:
        super().__init__(X, of, random_state)

    def _name(self, source: str, variant: int) -> str:
        return f"log({source})"

    def _recipe(self, source: str, variant: int) -> Recipe:
        shift, floor = shift_and_floor(self._values_of(source)[:, None])
        return Log(self.recipe_of(source), source, float(shift[0]), float(floor[0]))

    def _transform(self, values: Block, variants: Ints) -> Block:
        values = dense(values)
        shift, floor = shift_and_floor(values)
        return np.log(np.maximum(values + shift, floor))


def shift_and_floor(values: Floats) -> tuple[Floats, Floats]:
    """Return the shift of each column before its logarithm, and the smallest shifted value; both of shape (m,)."""
    known = ~np.isnan(values)
    low = np.where(known, values, np.inf).min(axis=0)
    mean = np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    rise = np.where(mean > low, mean - low, 1.0)  # a constant column becomes 0
    shift = np.where(low > 0, 0.0, rise - low)
    return shift, np.where(low > 0, low, rise)


# -- Principal components, learned without loading the entire table into memory --------------------------

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
