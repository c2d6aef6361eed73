"""Charts as inline SVG that fit any width: lines stretch with the page, text and strokes keep their size.

The marks live in an inner coordinate system of 1000 by 1000 that is stretched to the outer one; ticks and grid lines
are placed in percent. Colours and fonts come from the page's style sheet, so both follow light and dark.
"""

from __future__ import annotations

import itertools
import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.report.page.number_format import power_of_ten, ticks

__all__ = ["Axis", "area", "axis", "bars", "chart", "image", "line", "separators", "tick", "uprights"]

UNIT = 1000


@dataclass(frozen=True)
class Axis:
    """A range, and where it is labelled.

    Attributes
    ----------
    low, high : float
    ticks : list of (float, str)
    unit : str
        What the numbers are, with their power of ten where they have one.
    """

    low: float
    high: float
    ticks: list[tuple[float, str]]
    unit: str = ""

    def percent(self, value: float) -> float:
        """Return where a value lies, 0 to 100."""
        return round(100 * (value - self.low) / (self.high - self.low), 3)

    def place(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where the values lie, 0 to 1000; beyond the ends they are put at the ends."""
        return np.clip(UNIT * (values - self.low) / (self.high - self.low), 0, UNIT)


def axis(
    low: float, high: float, n_ticks: int = 6, label: Callable[[float], str] | None = None, unit: str = ""
) -> Axis:
    """Return an axis over [low, high], labelled at round numbers.

    Numbers too large or too small to read are divided by a power of ten, which the unit then names.
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


def chart(key: str, title: str, description: str, x: Axis, y: Axis | None, marks: Iterable[str]) -> str:
    """Return a chart; `title` and `description` are read out in place of it.

    Parameters
    ----------
    key : str
        Unique on the page.
    title, description : str
        Escaped already.
    x : Axis
    y : Axis or None
        None where the rows are labelled outside of the chart.
    marks : iterable of str
        What :func:`line`, :func:`area`, :func:`bars` and :func:`image` return; later ones lie on top.
    """
    return "".join(
        (
            f'<svg class="plot" role="img" aria-labelledby="{key}-t {key}-d">',
            f'<title id="{key}-t">{title}</title><desc id="{key}-d">{description}</desc>',
            "" if y is None else _y_ticks(y),
            _x_ticks(x),
            f'<svg class="marks" viewBox="0 0 {UNIT} {UNIT}" preserveAspectRatio="none" width="100%" height="100%">',
            *marks,
            "</svg></svg>",
        )
    )


def _y_ticks(y: Axis) -> str:
    grid = "".join(
        f'<line x2="100%" y1="{100 - y.percent(at):g}%" y2="{100 - y.percent(at):g}%"/>' for at, _ in y.ticks
    )
    text = "".join(
        f'<text x="-8" y="{100 - y.percent(at):g}%" dy=".32em">{label}</text>' for at, label in y.ticks
    )
    return f'<g class="grid">{grid}</g><g class="tick y">{text}</g>'


def _x_ticks(x: Axis) -> str:
    grid = "".join(
        f'<line x1="{x.percent(at):g}%" x2="{x.percent(at):g}%" y1="100%" y2="100%" class="mark"/>'
        for at, _ in x.ticks
    )
    text = "".join(
        f'<text x="{x.percent(at):g}%" y="100%" dy="1.55em">{label}</text>' for at, label in x.ticks
    )
    return f'<line class="base" x2="100%" y1="100%" y2="100%"/><g class="tick x">{grid}{text}</g>'


def line(
    x: Axis, y: Axis, xs: NDArray[np.float64], ys: NDArray[np.float64], kind: str, name: str = ""
) -> str:
    """Return a line of the style class `kind`, broken where `ys` is NaN; a lonely point becomes a dot."""
    parts = list(_unbroken(x.place(xs), UNIT - y.place(ys)))
    title = f"<title>{name}</title>" if name else ""
    return "".join(
        f'<path class="line {style}" d="{path}">{title}</path>'
        for style, path in (
            (kind, "".join(_segment(*part) for part in parts if len(part[0]) > 1)),
            (f"{kind} dot", "".join(_segment(*part) for part in parts if len(part[0]) == 1)),
        )
        if path
    )


def area(
    x: Axis, y: Axis, xs: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> str:
    """Return a filled band between two lines, broken where one of them is NaN."""
    path = ""
    for px, bottom, top in _unbroken(x.place(xs), UNIT - y.place(low), UNIT - y.place(high)):
        path += _segment(np.append(px, px[::-1]), np.append(bottom, top[::-1])) + "z"
    return f'<path class="band" d="{path}"/>' if path else ""


def bars(x: Axis, y: Axis, edges: NDArray[np.float64], heights: NDArray[np.float64], kind: str) -> str:
    """Return bars from zero, each between two neighbours of `edges` (one more than there are `heights`)."""
    left, zero = x.place(edges), UNIT - float(y.place(np.zeros(1))[0])
    tops = UNIT - y.place(np.asarray(heights, np.float64))
    path = ""
    for start, stop, top in zip(left[:-1], left[1:], tops, strict=True):
        if top != zero:
            gap = min(1.0, (stop - start) / 5)
            path += f"M{start:.4g} {zero:.4g}V{top:.4g}H{stop - gap:.4g}V{zero:.4g}z"
    return f'<path class="bar {kind}" d="{path}"/>' if path else ""


def image(x: Axis, low: float, high: float, png: bytes) -> str:
    """Return a PNG image stretched from `low` to `high` over the whole height of the chart, its pixels sharp."""
    left, right = x.place(np.array([low, high]))
    source = f"data:image/png;base64,{b64encode(png).decode('ascii')}"
    return (
        f'<image x="{left:.5g}" width="{right - left:.5g}" height="{UNIT}" preserveAspectRatio="none"'
        f' href="{source}"/>'
    )


def uprights(x: Axis, at: NDArray[np.float64]) -> str:
    """Return a line from bottom to top at each of the places."""
    path = "".join(f"M{place:.4g} 0v{UNIT}" for place in x.place(at))
    return f'<path class="upright" d="{path}"/>' if path else ""


def tick(x: Axis, y: Axis, at: float, middle: float) -> str:
    """Return a short upright line around the place of a value."""
    place, row = (float(axis.place(np.array([value]))[0]) for axis, value in ((x, at), (y, middle)))
    half = UNIT / (y.high - y.low) / 4
    return f'<path class="upright" d="M{place:.4g} {UNIT - row - half:.4g}v{2 * half:.4g}"/>'


def separators(n_rows: int) -> str:
    """Return hairlines between the rows of a map."""
    path = "".join(f"M0 {UNIT * row / n_rows:.5g}h{UNIT}" for row in range(1, n_rows))
    return f'<path class="between" d="{path}"/>' if path else ""


def _unbroken(*columns: NDArray[np.float64]) -> Iterator[list[NDArray[np.float64]]]:
    """Yield the stretches of rows in which no column is NaN."""
    there = np.isfinite(sum(columns, np.zeros(len(columns[0]))))
    cuts = np.flatnonzero(np.diff(there)) + 1
    for rows in np.split(np.arange(len(there)), cuts):
        if len(rows) and there[rows[0]]:
            yield [column[rows] for column in columns]


def _segment(xs: NDArray[np.float64], ys: NDArray[np.float64]) -> str:
    """Return a path in whole units, in relative steps (they are shorter)."""
    px, py = np.rint(xs).astype(int), np.rint(ys).astype(int)
    moves = zip(np.diff(px), np.diff(py), strict=True)
    return f"M{px[0]} {py[0]}" + ("".join(f"l{dx} {dy}" for dx, dy in moves) or "h0")  # h0: a dot
