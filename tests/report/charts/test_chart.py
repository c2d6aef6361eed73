import io
import zlib

import numpy as np
import pytest

from tamis.report.charts.chart import png

PALETTE = np.array([[0, 0, 0, 0], [47, 127, 193, 128], [255, 0, 9, 255]], np.uint8)


def test_another_reader_finds_the_same_pixels(rng):
    image = pytest.importorskip("matplotlib.image")
    pixels = rng.integers(0, 3, size=(7, 23), dtype=np.uint8)
    read = image.imread(io.BytesIO(png(pixels, PALETTE)), format="png")
    np.testing.assert_array_equal(np.rint(read * 255).astype(np.uint8), PALETTE[pixels])


def test_every_chunk_has_its_length_and_checksum():
    data = png(np.zeros((2, 3), np.uint8), PALETTE)
    at, kinds = 8, []
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert int.from_bytes(data[at + 8 + length : at + 12 + length], "big") == zlib.crc32(kind + body)
        kinds.append(kind)
        at += 12 + length
    assert kinds == [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"]


@pytest.mark.parametrize(
    ("pixels", "palette"),
    [
        (np.zeros((0, 3), np.uint8), PALETTE),
        (np.zeros(3, np.uint8), PALETTE),
        (np.full((1, 1), 3, np.uint8), PALETTE),
        (np.zeros((1, 1), np.uint8), PALETTE[:, :3]),
        (np.zeros((1, 1), np.uint8), np.zeros((257, 4), np.uint8)),
    ],
)
def test_refuses_what_is_no_palette_image(pixels, palette):
    with pytest.raises(ValueError, match="shape"):
        png(pixels, palette)
