"""Checksums of data, by which a resumed run recognises the data from which it was started."""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

_BLOCK = 1 << 20  # bytes


def checksum(data: Any, value: int = 0) -> int:
    """Return the CRC-32 of all values of an array or sparse matrix, continued from an earlier one.

    >>> checksum(np.arange(3)) == checksum(np.array([0, 1, 2])) != checksum(np.array([0, 2, 1]))
    True
    """
    if sp.issparse(data):
        for part in (data.data, data.indices, data.indptr):
            value = checksum(part, value)
        return value
    array = np.asarray(data)
    if array.dtype.kind == "O":
        return zlib.crc32(repr(array.tolist()).encode(errors="surrogatepass"), value)
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, value)


def file_checksum(file: BinaryIO) -> int:
    """Return the CRC-32 of the rest of a file."""
    value = 0
    while block := file.read(_BLOCK):
        value = zlib.crc32(block, value)
    return value
