"""The description of a chart: axes and marks, independent of how they are drawn.

A chart is described once. The page draws it as SVG (:mod:`tamis.report.charts.svg`), a figure with matplotlib
(:mod:`tamis.report.charts.axes`).
"""

from __future__ import annotations

import itertools
import math
import struct
import zlib
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.report.text import count, power_of_ten, scientific, ticks

# -- thinning to the resolution of a screen ----------------------------------------------------------------


Column: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]


def bucket_starts(n: int, at_most: int) -> NDArray[np.intp]:
    """Return where each of at most `at_most` buckets of nearly equal size begins among `n` items.

    >>> bucket_starts(10, 4)
    array([0, 2, 5, 7])
    """
    n_buckets = min(n, at_most)
    return np.arange(n_buckets, dtype=np.intp) * n // max(n_buckets, 1)


def thin(x: Column, y: Column, at_most: int = 400) -> tuple[Floats, Floats]:
    """Return at most `at_most` points of a line: the lowest and the highest of each bucket, in their order.

    A bucket of only NaN remains NaN, so a visible interruption is preserved.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
    at_most : int, default=400

    Returns
    -------
    x, y : ndarray of shape (n or fewer,), float64

    Examples
    --------
    A spike of one in ten thousand survives:

    >>> y = np.zeros(10_000)
    >>> y[1234] = 7.0
    >>> x, thinned = thin(np.arange(10_000), y)
    >>> len(thinned), float(x[thinned.argmax()])
    (400, 1234.0)
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(y) <= at_most:
        return x, y
    starts = bucket_starts(len(y), at_most // 2)
    kept = np.zeros(2 * len(starts), np.intp)
    for i, (start, stop) in enumerate(zip(starts, [*starts[1:], len(y)], strict=True)):
        part = y[start:stop]
        ends = (
            (0, len(part) - 1) if np.isnan(part).all() else sorted((np.nanargmin(part), np.nanargmax(part)))
        )
        kept[2 * i : 2 * i + 2] = [start + int(end) for end in ends]
    return x[kept], y[kept]


def thin_band(x: Column, low: Column, high: Column, at_most: int = 200) -> tuple[Floats, Floats, Floats]:
    """Return at most `at_most` points of a band: the lowest low and the highest high of each bucket."""
    if not len(x):
        return (np.empty(0),) * 3
    starts = bucket_starts(len(x), at_most)
    ends = np.append(starts[1:], len(x)) - 1
    middle = (np.asarray(x, np.float64)[starts] + np.asarray(x, np.float64)[ends]) / 2
    return (
        middle,
        np.fmin.reduceat(np.asarray(low, np.float64), starts),
        np.fmax.reduceat(np.asarray(high, np.float64), starts),
    )


def mean_per_bucket(values: Column, at_most: int) -> Floats:
    """Return the mean of each bucket, of the values that are there."""
    starts = bucket_starts(len(values), at_most)
    there = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.add.reduceat(np.where(there, values, 0.0), starts) / np.add.reduceat(
            there.astype(np.float64), starts
        )
    return mean


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


@dataclass(frozen=True)
class Axis:
    """A range and its ticks.

    Attributes
    ----------
    low, high : float
    ticks : list of (float, str)
        Positions and labels.
    unit : str
        The unit, with its power of ten if there is one.
    """

    low: float
    high: float
    ticks: list[tuple[float, str]]
    unit: str = ""

    def fraction(self, values: Any) -> Floats:
        """Return the positions of values between the ends: 0 to 1, clipped."""
        position = (np.asarray(values, np.float64) - self.low) / (self.high - self.low)
        return np.clip(position, 0.0, 1.0)


def axis(
    low: float, high: float, n_ticks: int = 6, label: Callable[[float], str] | None = None, unit: str = ""
) -> Axis:
    """Return an axis over [low, high] with ticks at round numbers.

    Numbers too large or too small to read are divided by a power of ten, which becomes part of the unit.
    """
    if not high > low:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    places = ticks(low, high, n_ticks)
    if label is not None:
        return Axis(low, high, [(at, label(at)) for at in places], unit)
    exponent = math.floor(math.log10(max(abs(low), abs(high))))
    exponent = exponent if not -4 < exponent < 6 else 0
    scaled = [at / 10.0**exponent for at in places]
    gap = min((abs(b - a) for a, b in itertools.pairwise(scaled)), default=abs(scaled[0]) or 1.0)
    decimals = max(0, -math.floor(math.log10(gap) + 1e-9))
    labels = [f"{value:,.{decimals}f}".replace("-", "−") for value in scaled]
    factor = f"× {power_of_ten(exponent)}" if exponent else ""
    return Axis(low, high, list(zip(places, labels, strict=True)), f"{unit} {factor}".strip())


def whole_number(value: float) -> str:
    """Return the label of a tick at a whole number, empty at another one."""
    return count(value) if float(value).is_integer() else ""


def percent(value: float) -> str:
    """Return the label of a tick of shares."""
    return f"{value:.0%}"


def row_count_axis(last: float, n_ticks: int = 5, unit: str = "rows seen") -> Axis:
    """Return an axis of counts from zero to `last`, with ticks at whole numbers."""
    if last >= 2e6:
        return axis(0.0, last, n_ticks, lambda value: f"{value / 1e6:g} M" if value else "0", unit)
    return axis(0.0, max(last, 1.0), n_ticks, whole_number, unit)


def limits(*columns: Column, within: tuple[float, float] | None = None) -> tuple[float, float]:
    """Return the ends of an axis that shows all values with a margin."""
    values = np.concatenate([np.asarray(column, np.float64) for column in columns])
    values = values[np.isfinite(values)]
    if not len(values):
        return within or (0.0, 1.0)
    low, high = float(values.min()), float(values.max())
    room = max(0.06 * (high - low), 0.02 * max(abs(low), abs(high)))
    bottom, top = within or (-np.inf, np.inf)
    return max(low - room, bottom), min(high + room, top)


def trend(values: Floats) -> str:
    """Return a description of the range and the last value of a line."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return "no values"
    low, high, last = (scientific(float(value)) for value in (finite.min(), finite.max(), finite[-1]))
    return f"between {low} and {high}, {last} at the end"


# -- marks: those with a name are listed in the legend -----------------------------------------------------


@dataclass(frozen=True, eq=False)
class Line:
    """A line, broken where `y` is NaN and thinned to the resolution of a screen.

    Attributes
    ----------
    x, y : ndarray of shape (n_points,)
    name : str
    style : int
        Colour and dashes, 1 to 6.
    is_thin : bool
    note : str
        Printed after the name in the legend.
    has_points : bool
        Whether each point is marked.
    is_stepped : bool
        Whether `y` is constant between points.
    """

    x: Column
    y: Column
    name: str = ""
    style: int = 1
    is_thin: bool = False
    note: str = ""
    has_points: bool = False
    is_stepped: bool = False


@dataclass(frozen=True, eq=False)
class Points:
    """Points without a line: at most a thousand of them; those outside of the axes lie on their edge."""

    x: Column
    y: Column
    name: str = ""
    style: int = 1
    is_small: bool = False


@dataclass(frozen=True, eq=False)
class Band:
    """The area between two lines, as an interval around a line."""

    x: Column
    low: Column
    high: Column
    name: str = ""
    style: int = 1


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars from zero, each between two neighbours of `edges` (one more than there are `heights`)."""

    edges: Column
    heights: Column
    name: str = ""
    style: int = 1


@dataclass(frozen=True, eq=False)
class HeatStrip:
    """Rows of coloured pixels from `low` to `high`, one row for each of the chart's `rows`.

    Attributes
    ----------
    pixels : ndarray of shape (n_rows, n_columns), uint8
        The row of each pixel in the palette.
    palette : ndarray of shape (n_colours, 4), uint8
        Red, green, blue and opacity, 0 to 255.
    low, high : float
        Horizontal range.
    key : dict of str to (int, int, int, int)
        Colours for the legend.
    shares : ndarray of shape (n_rows, n_columns), float64, or None
        Values from 0 to 1, for a terminal.
    """

    pixels: NDArray[np.uint8]
    palette: NDArray[np.uint8]
    low: float
    high: float
    key: dict[str, tuple[int, int, int, int]]
    shares: Floats | None = None

    @property
    def source(self) -> str:
        """The image as a data URL."""
        return f"data:image/png;base64,{b64encode(png(self.pixels, self.palette)).decode('ascii')}"


@dataclass(frozen=True, eq=False)
class VerticalLines:
    """Dotted lines over the whole height."""

    at: Column
    name: str = ""


@dataclass(frozen=True, eq=False)
class Reference:
    """A short dotted line in each row of the chart, from the first on; NaN: none."""

    at: Column
    name: str = ""


Mark: TypeAlias = Line | Points | Band | Bars | HeatStrip | VerticalLines | Reference


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart.

    Attributes
    ----------
    key : str
        Its id, unique on a page.
    title : str
        What is drawn.
    caption : str
        The rest of the caption, after the title.
    description : str
        Read out in place of the chart.
    x : Axis
    y : Axis or None
        None if the chart has `rows`: its vertical positions are their numbers, from 0.
    marks : sequence of Mark
        The first lies on top.
    shape : str
        Style classes: "wide", "low", "small", "dots".
    rows : sequence of str
        Names of the rows, from top to bottom.
    shares : sequence of str
        Numbers to the right of the rows.
    chosen : sequence of bool
        The rows that a terminal marks with a dot; if there are any.
    row_height : int
        In pixels.
    is_main : bool
        Whether a terminal and :meth:`tamis.report.Result.plot` show it too.
    has_legend : bool
    """

    key: str
    title: str
    caption: str
    description: str
    x: Axis
    y: Axis | None
    marks: Sequence[Mark]
    shape: str = ""
    rows: Sequence[str] = ()
    shares: Sequence[str] = ()
    chosen: Sequence[bool] = ()
    row_height: int = 0
    is_main: bool = False
    has_legend: bool = True

    @property
    def is_small(self) -> bool:
        """Whether two of them stand side by side."""
        return "small" in self.shape if self.y is None else "wide" not in self.shape

    @property
    def caption_gap(self) -> str:
        """The parts between title and caption."""
        return "" if self.caption.startswith(",") else " "

    @property
    def legend(self) -> list[Mark]:
        """The marks of the legend: at least two, or one with a note."""
        named = [mark for mark in self.marks if getattr(mark, "name", "")]
        return named if len(named) > 1 or any(getattr(mark, "note", "") for mark in named) else []

    @property
    def key_colours(self) -> dict[str, tuple[int, int, int, int]]:
        """The colours of its heat strips, by meaning."""
        strips = (mark for mark in self.marks if isinstance(mark, HeatStrip))
        return {label: colour for strip in strips for label, colour in strip.key.items()}

    @property
    def vertical(self) -> Axis:
        """The vertical axis; of a chart with rows their numbers, the first row on top."""
        return self.y or Axis(max(len(self.rows), 1) - 0.5, -0.5, [])
