"""Categorical features: encodes text and other unordered values as codes, and decodes them.

A code is the rank of a category by frequency: the most frequent one is 0, and ties are resolved by first occurrence,
so the names of categories and their previous codes have no influence. The 31 most frequent categories of a feature
have a bin each and all others share the last one, because a table of two features has the square of the number of
bins.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from tamis._validation.arrays import Array, Ints, Rows, as_weights, columns_of, repeated_rows
from tamis._validation.rows import as_rows
from tamis._validation.table import as_table
from tamis._validation.values import is_missing, short_repr
from tamis.errors import DataError

_MOST = 32  # bins of a feature
_WRITTEN_NUMBER = re.compile(r"\s*[-+]?[\d.,' ]*\d[.,]\d+\s*")
MAX_CATEGORIES = 10_000  # of a feature encoded online, so that free text cannot exhaust the memory


class CategoryCodes:
    """Codes of the categories of one feature, in the order in which they first appear.

    Parameters
    ----------
    values : iterable, optional
        The categories known so far. A missing value is a category, None.
    most : int, optional
        Maximum number of categories; further ones share the next code. By default unlimited.

    Examples
    --------
    >>> codes = CategoryCodes(["red"])
    >>> [codes.add(value) for value in ["blue", "red", None]], codes.find("green"), codes.values
    ([1, 0, 2], 3, ['red', 'blue', None])
    """

    def __init__(self, values: Iterable[Any] = (), most: int | None = None) -> None:
        self.values = list(values)
        self._most = most
        self._codes = {value: code for code, value in enumerate(self.values)}

    def add(self, value: Any) -> int:
        """Return the code of a category; a new one gets the next code."""
        value = None if is_missing(value) else value  # NaN does not equal itself, so it cannot be a key
        code = self._codes.get(value)
        if code is None:
            code = len(self.values)
            if self._most is None or code < self._most:
                self._codes[value] = code
                self.values.append(value)
        return code

    def encode(self, values: Iterable[Any]) -> Ints:
        """Return the codes of the values of a column; new categories get the next codes."""
        codes = {value: self.add(value) for value in dict.fromkeys(values)}
        return np.array([codes[value] for value in values], dtype=np.int64)

    def find(self, value: Any) -> int:
        """Return the code of a category, or the next free one if it is unknown."""
        return self._codes.get(None if is_missing(value) else value, len(self.values))


class Categories:
    """The categories of the categorical features.

    Parameters
    ----------
    values : mapping of int to list
        Categories of each categorical column, most frequent first.

    Examples
    --------
    >>> X = np.array([["a", 1.5], ["b", 2.0], ["b", 0.5]], dtype=object)
    >>> categories, rows, names = Categories.learn(X, [0])
    >>> categories.values, rows
    ({0: ['b', 'a']}, array([[1. , 1.5],
           [0. , 2. ],
           [0. , 0.5]]))
    """

    def __init__(self, values: Mapping[int, list[Any]]) -> None:
        self.values: dict[int, list[Any]] = dict(values)

    @classmethod
    def learn(
        cls, X: Any, declared: Any, sample_weight: Any = None
    ) -> tuple[Categories, Rows, list[str] | None]:
        """Return the categories of rows, the encoded rows, and the names of the columns.

        Parameters
        ----------
        X : array-like, CSR matrix or frame
        declared : categorical columns, as for :func:`tamis._validation.columns_of`, or None
            Text columns and categorical columns of a frame are always included.
        sample_weight : array-like of shape (n_rows,), optional
            How often each row counts.

        Raises
        ------
        DataError
            If X is a sparse matrix, and columns are declared.
        """
        raw, rows, names = split_rows(X, declared)
        weight = as_weights(sample_weight, rows.shape[0])
        at = None if weight is None else repeated_rows(weight)
        categories = cls({j: _by_frequency(column, at) for j, column in raw.items()})
        return categories, categories._fill(rows, raw), names

    def encode(self, X: Any, new: float = np.nan) -> tuple[Rows, list[str] | None]:
        """Return encoded rows, and the names of the columns.

        A category that did not occur in `fit` becomes `new`, by default NaN, a missing value.
        """
        if not self.values:
            return as_rows(X)
        raw, rows, names = split_rows(X, list(self.values))
        return self._fill(rows, raw, new), names

    def raw(self, X: Any) -> dict[int, list[Any]]:
        """Return the values of the categorical columns as given, None where missing."""
        return split_rows(X, list(self.values))[0] if self.values else {}

    def extend(self, X: Any) -> tuple[Categories, Rows]:
        """Return the categories, extended by new ones in these rows, and the encoded rows."""
        if not self.values:
            return self, as_rows(X)[0]
        raw, rows, _ = split_rows(X, list(self.values))
        categories = Categories({j: [*known, *_new(raw[j], known)] for j, known in self.values.items()})
        return categories, categories._fill(rows, raw)

    def by_frequency(self, rows: Array) -> tuple[Categories, Array]:
        """Return the categories that occur in encoded rows, most frequent first, and the rows encoded by them."""
        categories, ranked = Categories({}), np.array(rows)
        for j, known in self.values.items():
            code = rows[:, j]
            values = _by_frequency([None if np.isnan(at) else known[int(at)] for at in code], None)
            categories.values[j], place = values, {value: at for at, value in enumerate(values)}
            rank = np.array([place.get(value, np.nan) for value in known])
            there = ~np.isnan(code)
            ranked[there, j] = rank[code[there].astype(np.int64)]
        return categories, ranked

    def _fill(self, rows: Rows, raw: dict[int, list[Any]], new: float = np.nan) -> Rows:
        if not raw:
            return rows
        filled = np.array(rows, dtype=np.float64)
        for j, column in raw.items():
            code = {value: float(at) for at, value in enumerate(self.values.get(j, ()))}
            filled[:, j] = [code.get(value, np.nan if value is None else new) for value in column]
        return filled

    def decode(self, rows: Array) -> Array:
        """Return dense rows with decoded categories; dtype object if there are any."""
        if not self.values:
            return rows
        decoded = rows.astype(object)
        for j, values in self.values.items():
            decoded[:, j] = [
                None if np.isnan(code) else values[int(code)] for code in rows[:, j].astype(np.float64)
            ]
        return decoded

    def sizes(self, n_features: int) -> Ints:
        """Return the number of bins of each categorical feature, 0 for numeric ones."""
        sizes = np.zeros(n_features, dtype=np.int64)
        for j, values in self.values.items():
            sizes[j] = min(len(values), _MOST)
        return sizes

    def code(self, column: int, name: Any, value: Any) -> float:
        """Return the code of a category; NaN for one that did not occur in `fit`.

        Raises
        ------
        DataError
            If the value cannot be a category.
        """
        value = _plain([value], name)[0]
        known = self.values[column]
        return float(known.index(value)) if value in known else np.nan


def split_rows(X: Any, declared: Any) -> tuple[dict[int, list[Any]], Rows, list[str] | None]:
    """Return the values of categorical columns, None where missing, and the rows with 0 in their place."""
    table = as_table(X)
    if table is not None:
        names, n = table.own_names, len(table)
        known = set(columns_of(declared, len(names), table.names).tolist())
        mine = known.union(table.categorical)
        raw = {j: _plain(table.values(j), names[j]) for j in sorted(mine)}
        for j in mine.difference(known, *(table.kinds.get(kind, ()) for kind in (nw.Categorical, nw.Enum))):
            reject_written_numbers(names[j], raw[j])
        if not raw:
            return raw, *as_rows(table)
        rest = [j for j in range(len(names)) if j not in mine]
        rows = np.zeros((n, len(names)))
        if rest and n:
            rows[:, rest] = as_rows(table.take(rest))[0]
        return raw, as_rows(rows)[0], table.names
    if declared is None:
        return {}, *as_rows(X)
    if not hasattr(X, "shape") or len(X.shape) != 2:
        X = np.asarray(X, dtype=object)
    if hasattr(X, "tocsr"):
        raise DataError("categorical names columns of a sparse matrix: pass dense rows, or a frame.")
    mine = columns_of(declared, X.shape[1], None).tolist() if X.ndim == 2 else []
    raw = {j: _plain(X[:, j].tolist(), j) for j in mine}
    rows = np.array(X, dtype=object if X.dtype.kind in "OUS" else X.dtype)
    if mine:
        rows[:, mine] = 0
    return raw, as_rows(rows)[0], None


def check_categories(name: Any, values: list[Any]) -> None:
    """Raise if a value of a column is a list, an array, a dict or a set, which cannot be a category."""
    for value in values:
        try:
            hash(value)
        except TypeError:
            raise DataError(
                f"Column {name!r} contains {short_repr(value)}, which cannot be a category: convert it to text."
            ) from None


def reject_written_numbers(name: str, values: Sequence[Any]) -> None:
    """Raise if a column of text contains numbers with decimals, most of them different: categories without meaning."""
    known = [value for value in values if not is_missing(value)]
    if len(known) < 10 or not all(isinstance(v, str) and _WRITTEN_NUMBER.fullmatch(v) for v in known):
        return
    if len(set(known)) > len(known) / 2:
        raise DataError(
            f"Column {name!r} contains {short_repr(known[0])} and other numbers written as text: convert it to"
            " numbers, or to the category type if these are names."
        )


def _plain(column: list[Any], name: Any) -> list[Any]:
    """Return comparable values: None where missing."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in column]
    check_categories(name, plain)
    return [None if is_missing(value) else value for value in plain]


def _new(column: list[Any], known: list[Any]) -> list[Any]:
    """Return the values of a column that are not among the known ones, in the order of occurrence."""
    before = {None, *known}
    return list(dict.fromkeys(value for value in column if value not in before))


def _by_frequency(column: list[Any], at: Array | None) -> list[Any]:
    counted = column if at is None else [column[i] for i in at]
    count = Counter(value for value in counted if value is not None)
    return [value for value, _ in count.most_common()]  # ties: by first occurrence
