"""svmlight files: rows of a label and the stored values, ``label index:value index:value ...``."""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis.errors import StreamError
from tamis.streams.source import FileStream, Source
from tamis.streams.stream import Batch

__all__ = ["SvmlightStream"]

_LINES = 1024


class SvmlightStream(FileStream):
    """Rows of an svmlight file, as CSR: ``label index:value index:value ...``.

    Indices count from 1 unless the file has a 0 among them.
    """

    def __init__(self, source: Source, n_features: int | None) -> None:
        super().__init__(source)
        if source.is_stdin and n_features is None:
            raise ValueError(
                "n_features must be given for svmlight rows from standard input: their width is not known."
            )
        self._given = n_features
        self._zero_based = False
        self.n_features = n_features
        if not source.is_stdin:
            low, high = self._index_range()
            self._zero_based = low == 0
            width = high + 1 if self._zero_based else high
            self.n_features = width if n_features is None else n_features
            if width > self.n_features:
                raise StreamError(
                    f"{source.name!r} has {width} columns, more than n_features={n_features}: give more."
                )

    def describe(self) -> dict[str, Any]:
        """Return path, format, options and a fingerprint of the file."""
        return {
            "kind": "file",
            "format": "svmlight",
            "n_features": self.n_features,
            **self._source.fingerprint(),
        }

    def _line_blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        block: list[bytes] = []
        first = 1
        number = 0
        try:
            with self._source.open() as file:
                for number, line in enumerate(file, start=1):
                    block.append(line)
                    if len(block) == _LINES:
                        yield first, block
                        first, block = number + 1, []
        except (EOFError, lzma.LZMAError, OSError) as error:
            self._source.fail(error)
        if block:
            yield first, block

    def _index_range(self) -> tuple[int, int]:
        low, high, rows = 1, 0, 0
        for first, lines in self._line_blocks():
            X, y = self._parse(lines, first, zero_based=True, n_features=None)
            rows += len(y)
            if X.nnz:
                low, high = min(low, int(X.indices.min())), max(high, int(X.indices.max()))
        if rows == 0:
            raise StreamError(f"{self._source.name!r} has no rows.")
        self.n_rows = rows
        return low, max(high, 1)

    def _parse(self, lines: list[bytes], first: int, zero_based: bool, n_features: int | None) -> Batch:
        from sklearn.datasets import load_svmlight_file

        def parsed(some: list[bytes]) -> Any:
            text = io.BytesIO(b"".join(some))
            return load_svmlight_file(text, n_features=n_features, zero_based=zero_based, dtype=np.float64)

        try:
            X, y = parsed(lines)
        except ValueError:
            for number, line in enumerate(lines, start=first):
                try:
                    parsed([line])
                except ValueError as error:
                    raise StreamError(
                        f"{self._source.name!r} cannot be read in line {number} ({error}): mend that line."
                    ) from None
            raise
        return X, y.astype(np.int64) if len(y) and (y == np.floor(y)).all() else y

    def _blocks(self, start: int) -> Iterator[Batch]:
        skipped = 0
        for first, lines in self._line_blocks():
            X, y = self._parse(lines, first, self._zero_based, self.n_features)
            if not np.isfinite(X.data).all():
                at = (
                    int(np.searchsorted(X.indptr, int(np.flatnonzero(~np.isfinite(X.data))[0]), side="right"))
                    - 1
                )
                raise StreamError(
                    f"{self._source.name!r} holds a value that is not finite near line {first + at}."
                )
            skip = min(start - skipped, len(y))
            skipped += skip
            if skip < len(y):
                yield sp.csr_matrix(X[skip:]), y[skip:]
        self._source.finish()
