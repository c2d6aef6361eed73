"""Recipes: a feature as a function of columns or other features, stored and applied to new rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._validation import Floats
from tamis.columns.generators.table import Columns, dense, label

_CELLS = 1 << 20


class Recipe(ABC):
    """The definition of one feature; ``str(recipe)`` is its formula.

    Attributes
    ----------
    is_atom : bool
        Whether the feature is not computed from other features: a column, a component.
    """

    is_atom = False

    @abstractmethod
    def values(self, columns: Columns) -> Floats:
        """Return the feature's values for the rows of a table, shape (n_rows,)."""

    def needs(self) -> set[str]:
        """Return the names of the columns from which it is computed."""
        parts = [
            one for value in vars(self).values() for one in (value if isinstance(value, tuple) else (value,))
        ]
        return set().union(*(part.needs() for part in parts if isinstance(part, Recipe)))

    def factors(self, name: str) -> tuple[str, ...]:
        """Return the names of its factors: its own name, unless it is a product."""
        return (name,)

    def size(self) -> int:
        """Return its number of atoms."""
        return 1


@dataclass(frozen=True)
class Column(Recipe):
    """An unchanged column.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.columns.generators import Column, Columns
    >>> Column("x1").values(Columns(np.eye(2)))
    array([0., 1.])
    """

    name: str
    is_atom = True

    def values(self, columns: Columns) -> Floats:
        """Return the column."""
        return columns.column(self.name)

    def needs(self) -> set[str]:
        """Return its name."""
        return {self.name}

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Projection:
    """Directions onto which rows are projected; missing values are replaced by the column mean.

    Attributes
    ----------
    names : tuple of str
    mean, scale : ndarray of shape (n_columns,)
    axes : ndarray of shape (n_columns, n_components)
    """

    names: tuple[str, ...]
    mean: Floats
    scale: Floats
    axes: Floats

    def values(self, columns: Columns, which: Any = slice(None)) -> Floats:
        """Return the components of rows, shape (n_rows, n_components).

        Parameters
        ----------
        columns : Columns
        which : slice or list of int, optional
        """
        places = [columns.index[name] for name in self.names] if list(self.names) != columns.names else None
        components = np.zeros((columns.n_rows, self.axes[:1, which].shape[1]))
        width = max(1, _CELLS // columns.n_rows)
        for start in range(0, len(self.names), width):
            part = slice(start, min(start + width, len(self.names)))
            block = dense(columns.block(part if places is None else places[part]))
            centred = (block - self.mean[part]) / self.scale[part]
            components += np.where(np.isnan(centred), 0.0, centred) @ self.axes[part, which]
        return components


@dataclass(frozen=True, eq=False)
class Component(Recipe):
    """One of the directions of a projection."""

    projection: Projection
    number: int
    is_atom = True

    def values(self, columns: Columns) -> Floats:
        """Return the component."""
        return self.projection.values(columns, [self.number])[:, 0]

    def needs(self) -> set[str]:
        """Return the names of all columns."""
        return set(self.projection.names)

    def __str__(self) -> str:
        return f"principal component {self.number + 1} of {len(self.projection.names)} columns"


def power_of(values: Any, exponent: float) -> Any:
    """Return a power; non-integer powers are those of the absolute value, with the sign preserved.

    Parameters
    ----------
    values : ndarray
    exponent : float or ndarray

    Returns
    -------
    ndarray
    """
    if np.all(exponent == np.floor(exponent)):
        return values**exponent
    return np.sign(values) * np.abs(values) ** exponent


@dataclass(frozen=True)
class Power(Recipe):
    """A power of a feature.

    Examples
    --------
    >>> from tamis.columns.generators import Column, Power
    >>> str(Power(Column("age"), "age", 2))
    'age^2'
    """

    base: Recipe
    base_name: str
    exponent: float

    def values(self, columns: Columns) -> Floats:
        """Return the power."""
        return power_of(self.base.values(columns), self.exponent)

    def factors(self, name: str) -> tuple[str, ...]:
        """Return the base, repeated as often as the exponent."""
        whole = float(self.exponent).is_integer()
        return (self.base_name,) * int(self.exponent) if whole else (name,)

    def size(self) -> int:
        """Return the number of factors."""
        return len(self.factors(""))

    def __str__(self) -> str:
        return f"{label(self.base_name)}^{self.exponent:g}"


@dataclass(frozen=True)
class Product(Recipe):
    """A product of features; a feature named twice is squared.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.columns.generators import Column, Columns, Product
    >>> product = Product((Column("a"), Column("b")), ("a", "b"))
    >>> str(product), product.values(Columns([[2, 3], [4, 5]], names=["a", "b"]))
    ('a*b', array([ 6., 20.]))
    """

    parts: tuple[Recipe, ...]
    names: tuple[str, ...]

    def values(self, columns: Columns) -> Floats:
        """Return the product."""
        product = self.parts[0].values(columns)
        for part in self.parts[1:]:
            product = product * part.values(columns)
        return product

    def factors(self, name: str) -> tuple[str, ...]:
        """Return the names of its parts."""
        return self.names

    def size(self) -> int:
        """Return the number of parts."""
        return len(self.parts)

    def __str__(self) -> str:
        return product_name(self.names)


@dataclass(frozen=True)
class Log(Recipe):
    """The logarithm of a feature, shifted to be positive; new values are clipped at the smallest training value.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.columns.generators import Column, Columns, Log
    >>> log = Log(Column("x0"), "x0", 1.0, 1.0)
    >>> str(log), log.values(Columns([[0.0], [np.e - 1], [-5.0]]))
    ('log(x0 + 1)', array([0., 1., 0.]))
    """

    base: Recipe
    base_name: str
    shift: float
    floor: float

    def values(self, columns: Columns) -> Floats:
        """Return the logarithm."""
        return np.log(np.maximum(self.base.values(columns) + self.shift, self.floor))

    def __str__(self) -> str:
        return f"log({self.base_name} + {self.shift:g})" if self.shift else f"log({self.base_name})"


@dataclass(frozen=True)
class Ratio(Recipe):
    """One feature divided by another, whose absolute value is clipped at its smallest nonzero training value.

    Examples
    --------
    >>> from tamis.columns.generators import Column, Columns, Ratio
    >>> ratio = Ratio(Column("a"), Column("b"), ("a", "b"), 0.5)
    >>> str(ratio), ratio.values(Columns([[1, 2], [1, 0]], names=["a", "b"]))
    ('a/b', array([0.5, 2. ]))
    """

    above: Recipe
    below: Recipe
    names: tuple[str, str]
    floor: float

    def values(self, columns: Columns) -> Floats:
        """Return the ratio."""
        return self.above.values(columns) / away_from_zero(self.below.values(columns), self.floor)

    def size(self) -> int:
        """Return 2."""
        return 2

    def __str__(self) -> str:
        return f"{label(self.names[0])}/{label(self.names[1])}"


def away_from_zero(values: Floats, floor: Any) -> Floats:
    """Return the values with absolute value at least the floor; zeros become the floor."""
    return np.where(np.abs(values) < floor, np.where(values < 0, -1.0, 1.0) * floor, values)


def product_name(names: tuple[str, ...]) -> str:
    """Return the name of a product: its factors in order, repeated ones as powers.

    Parameters
    ----------
    names : tuple of str

    Returns
    -------
    str

    Examples
    --------
    >>> from tamis.columns.generators.formulas import product_name
    >>> product_name(("a", "b", "a"))
    'a^2*b'
    """
    return "*".join(f"{label(name)}^{k}" if k > 1 else label(name) for name, k in Counter(names).items())
