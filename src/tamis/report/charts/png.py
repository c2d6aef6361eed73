"""Palette images as PNG files, with nothing but zlib."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["png"]


def png(pixels: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    r"""Return an image as the bytes of a PNG file.

    Parameters
    ----------
    pixels : ndarray of shape (height, width), uint8
        Each pixel's row in the palette.
    palette : ndarray of shape (n_colours, 4), uint8
        Red, green, blue and opacity, each 0 to 255; 1 to 256 colours.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If the image is empty, or a pixel lies outside the palette.

    Examples
    --------
    One transparent pixel and one blue one:

    >>> image = png(np.array([[0, 1]], np.uint8), np.array([[0, 0, 0, 0], [0, 0, 255, 255]], np.uint8))
    >>> image[:8], len(image)
    (b'\x89PNG\r\n\x1a\n', 100)
    """
    if pixels.ndim != 2 or pixels.size == 0:
        raise ValueError(f"pixels has the shape {pixels.shape}: an image needs a row and a column at least.")
    if palette.ndim != 2 or palette.shape[1] != 4 or not pixels.max() < palette.shape[0] <= 256:
        raise ValueError(f"palette has the shape {palette.shape}, but pixels go up to {pixels.max()}.")
    height, width = pixels.shape
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with its filter: 0, none
    rows[:, 1:] = pixels
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)  # 8 bits a pixel, with palette
    chunks = (
        (b"IHDR", header),
        (b"PLTE", palette[:, :3].astype(np.uint8).tobytes()),
        (b"tRNS", palette[:, 3].astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
