"""svmlight files: rows of a label and the stored values, ``label index:value index:value ...``.

The lines are parsed by scikit-learn's `load_svmlight_file`, one block at a time; this module adds the blocks, the
width, and error messages that name the line.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._validation import plain_numbers
from tamis.errors import StreamError
from tamis.streams.source import FileStream, Source
from tamis.streams.stream import Batch

_LINES = 1024
_NOT_FINITE = "contains a value that is missing or infinite"
_COLUMNS = 1 << 24  # columns allowed for a file of any size without n_features
_LAST = (1 << 31) - 2  # last column, from 0, so that every index of a batch, and its width, fits in 32 bits


class SvmlightStream(FileStream):
    """Rows of an svmlight file, as CSR: ``label index:value index:value ...``.

    Columns are numbered from 1, or from 0 if `zero_based`. If neither this nor the number of columns is given, the
    file is read once beforehand to determine both. Labels are integers, exactly, as long as all are whole; as numbers,
    ``+1`` and ``01`` are 1.

    With `n_features` "any", there is one pass, and each batch is as wide as the widest row so far. If `zero_based` is
    not given either, column j is the one with index j in the file, and `n_unused` indicates whether column 0 is unused.
    The largest index is 2,147,483,646; a batch uses memory for its stored values only.

    The name of a column is its index in the file: ``x1`` is the first one if they are numbered from 1.
    """

    def __init__(self, source: Source, n_features: int | str | None, zero_based: bool | None) -> None:
        super().__init__(source)
        self._any, self._raw = n_features == "any", n_features == "any" and zero_based is None
        self._lowest: int | None = None  # lowest column read
        self._n_bytes = 0  # bytes of the lines read in this pass
        if self._any:
            n_features, zero_based = None, True if zero_based is None else zero_based
        elif n_features is None:
            if source.is_stdin:
                raise ValueError(
                    "n_features must be given for svmlight rows from standard input: their width is not known."
                )
            low, high = self._index_range()
            zero_based = low == 0 if zero_based is None else zero_based
            n_features = max(1, high + int(zero_based))
        self.n_features = n_features if isinstance(n_features, int) else None
        self._zero_based = bool(zero_based)
        first = self.first_index
        if self.n_features is not None:
            self.feature_names = [f"x{j}" for j in range(first, first + self.n_features)]

    @property
    def first_index(self) -> int:
        """Index in the file of the first column of a batch: 0 or 1."""
        return int(not self._zero_based)

    @property
    def n_unused(self) -> int:
        """1 if columns are numbered from 1 in the rows read so far, so that column 0 is unused; otherwise 0."""
        return int(self._raw and bool(self._lowest))

    def describe(self) -> dict[str, Any]:
        """Return path, format, options and a fingerprint of the file."""
        return {
            "kind": "file",
            "format": "svmlight",
            "n_features": "any" if self._any else self.n_features,
            "zero_based": self._zero_based,
            **self._source.fingerprint(),
        }

    def _line_blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        block: list[bytes] = []
        number = self._n_bytes = 0
        with self._source.reading() as file:
            for number, line in enumerate(self._source.lines(file), start=1):
                self._n_bytes += len(line)
                block.append(line)
                if len(block) == _LINES:
                    yield number - _LINES + 1, block
                    block = []
        if block:
            yield number - len(block) + 1, block

    def _index_range(self) -> tuple[int, int]:
        low, high, rows = 1, 0, 0
        for first, lines in self._line_blocks():
            X, y = self._parse(lines, first, {"zero_based": True})
            rows += len(y)
            if X.nnz:
                low = min(low, int(X.indices.min()))
                high = max(high, self._check_column(int(X.indices.max())))
        self.n_rows = rows
        return low, high

    def _check_column(self, column: int) -> int:
        """Return the column; raise if it is implausibly large for the number of bytes read so far."""
        if column >= max(_COLUMNS, self._n_bytes):
            raise StreamError(
                f"{self._source.name!r} names column {column:,} in {self._n_bytes:,} bytes, which would mean"
                " that many features: fix that line, or set n_features."
            )
        return column

    def _parse(self, lines: list[bytes], first: int, options: dict[str, Any]) -> tuple[Any, Any]:
        from sklearn.datasets import load_svmlight_file

        def load(some: list[bytes]) -> Any:
            X, y = load_svmlight_file(io.BytesIO(b"".join(some)), dtype=np.float64, **options)
            if X.shape[1] > _LAST + 1 and X.shape[1] != self.n_features:
                raise OverflowError("too large to convert")
            if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
                raise ValueError(_NOT_FINITE)
            return X, y

        try:
            X, y = load(lines)
        except (ValueError, OverflowError):
            for number, line in enumerate(lines, start=first):
                try:
                    load([line])
                except (ValueError, OverflowError) as error:
                    raise self._line_error(error, number) from None
            raise
        if (np.abs(y) >= 1 << 53).any():  # float64 may have rounded them
            rows = [line for line in lines if line.partition(b"#")[0].strip()]
            y = plain_numbers([Decimal(line.split(None, 1)[0].decode()) for line in rows])
        return X, y

    def _line_error(self, error: Exception, number: int) -> StreamError:
        text = " ".join(str(error).split())
        if text == _NOT_FINITE:
            return StreamError(f"{self._source.name!r} {text} in line {number}: fix that line.")
        text = text if len(text) <= 120 else f"{text[:120]}…"
        advice = "fix that line"
        if "n_features was set" in text:
            text, advice = f"it has more than {self.n_features} columns", "give more n_features"
        elif "Invalid index 0" in text:
            text, advice = "it counts columns from 0", "choose zero_based=True"
        elif "too large to convert" in text:
            text = f"it names a column beyond {_LAST:,}"
        return StreamError(f"{self._source.name!r} cannot be read in line {number} ({text}): {advice}.")

    def _all_blocks(self) -> Iterator[Batch]:
        options = {"n_features": self.n_features, "zero_based": self._zero_based}
        whole, rows, width = True, 0, 1
        self._lowest = None
        for first, lines in self._line_blocks():
            X, y = self._parse(lines, first, options)
            rows += len(y)
            if self._any:
                X, width = self._widen(X, width)
            whole = whole and bool(y.dtype.kind != "f" or (y == np.floor(y)).all())
            if whole and y.dtype.kind == "f":
                y = y.astype(np.int64)
            yield sp.csr_matrix(X), y
        if rows == 0:
            raise StreamError(f"{self._source.name!r} has no rows.")
        self._source.finish()

    def _widen(self, X: Any, width: int) -> tuple[Any, int]:
        """Return the rows, widened to the widest row so far, and that width."""
        if X.nnz:
            width = max(width, X.shape[1])
            lowest = int(X.indices.min())
            self._lowest = lowest if self._lowest is None else min(self._lowest, lowest)
        return sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], width)), width
