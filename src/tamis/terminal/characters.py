"""Bars and sparklines made of characters, and formatting of numbers and names for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

WIDEST = 100  # columns: beyond that the eye loses the line


def bar(fraction: float, width: int, ascii_only: bool = False) -> str:
    """Return a bar as long as the fraction of `width` columns, to an eighth of a column.

    >>> bar(0.5, 8), bar(0.55, 8), bar(2.0, 4), bar(0.5, 8, ascii_only=True)
    ('████', '████▍', '████', '####')
    """
    fraction = min(max(fraction, 0.0), 1.0) if math.isfinite(fraction) else 0.0
    if ascii_only:
        return "#" * round(fraction * width)
    full, rest = divmod(round(fraction * width * 8), 8)
    return "█" * full + " ▏▎▍▌▋▊▉"[rest].strip()


def spark(values: Iterable[float], width: int) -> str:
    """Return a sparkline of the values, scaled from the lowest to the highest.

    >>> spark([0.0, 0.5, 1.0, 0.5], 4)
    '▁▅█▅'
    """
    course = np.array([value for value in values if math.isfinite(value)])
    if course.size == 0 or width < 1:
        return ""
    parts = [part.mean() for part in np.array_split(course, min(width, course.size))]
    low, high = min(parts), max(parts)
    step = (high - low) or 1.0
    return "".join("▁▂▃▄▅▆▇█"[min(int(8 * (part - low) / step), 7)] for part in parts)


def duration(seconds: float) -> str:
    """Return a duration in clock format.

    >>> duration(7.2), duration(83), duration(7325)
    ('0:07', '1:23', '2:02:05')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


MARKS = {False: ("●", "○"), True: ("*", " ")}  # chosen or not, on a terminal with or without Unicode


def printable(name: str) -> str:
    """Return the name with a question mark for each character that the terminal cannot display."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def width_of(names: Iterable[str], max_width: int) -> int:
    """Return the width of the longest name, at most `most`."""
    return min(max((cell_len(printable(name)) for name in names), default=0), max_width)


def figure_text(value: float) -> str:
    """Return a number of about 1 with three decimals, or a dash for NaN."""
    return f"{value:.3f}" if math.isfinite(value) else "  -  "


def error_text(value: float) -> str:
    """Return an error in the units of the target with four digits, or a dash for NaN.

    >>> error_text(0.08664), error_text(47.5953), error_text(183_250.0), error_text(float("nan"))
    ('0.08664', '47.60', '183,250', '  -  ')
    """
    if not math.isfinite(value):
        return "  -  "
    if value != 0 and not 1e-3 <= abs(value) < 1e7:
        return f"{value:.3e}"
    digits = 3 if value == 0 else max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def score_text(value: float) -> str:
    """Return a score, in scientific notation if that is shorter."""
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.2e}"


def shades(chosen: NDArray[Any], width: int, ascii_only: bool = False) -> str:
    """Return a strip that is darker where a feature was selected at more of the steps.

    >>> shades(np.array([False, False, True, True, True, False, True, True]), 4)
    '  █▒█'
    """
    levels = " .:+#" if ascii_only else " ░▒▓█"
    n = chosen.size
    edges = [
        (i * n // width, max((i + 1) * n // width, i * n // width + 1)) for i in range(width if n else 0)
    ]
    return "".join(levels[math.ceil(4 * float(chosen[low:high].mean()))] for low, high in edges)
