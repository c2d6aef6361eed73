"""Short texts: numbers with significant digits and suitable units, ticks, and names of any length."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

MISSING, MINUS = "–", "−"  # the sign of pages and figures; CSV and JSON have that of a keyboard
# What candidates are compared by, as a heading.
NAME_OF = {"accuracy": "Accuracy", "auc": "AUC", "mae": "Explained deviation"}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def fraction(value: float) -> str:
    """Return a share, an accuracy or another number of about one, with three decimals.

    >>> fraction(0.81249), fraction(float("nan")), fraction(-0.25)
    ('0.812', '–', '−0.250')
    """
    text = f"{value:.3f}" if math.isfinite(value) else MISSING
    return (text.removeprefix("-") if text == "-0.000" else text).replace("-", MINUS)


def signed(value: float, written: Callable[[float], str] = fraction) -> str:
    """Return a difference with its sign.

    >>> signed(0.25), signed(-0.25), signed(0.0001)
    ('+0.250', '−0.250', '0.000')
    """
    text = written(value)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def count(value: float) -> str:
    """Return a whole number with its thousands set apart.

    >>> count(45312)
    '45,312'
    """
    return f"{round(value):,}".replace("-", MINUS) if math.isfinite(value) else MISSING


def significant(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits and no exponent."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else MISSING
    value = float(f"{value:.{digits - 1}e}")  # rounded first: 99.97 has its three digits before the point
    text = f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
    return text.replace("-", MINUS)


def scientific(value: float) -> str:
    """Return a number of any size with three significant digits.

    >>> scientific(0.01234), scientific(-4.2e-9)
    ('0.0123', '−4.20 × 10⁻⁹')
    """
    if not math.isfinite(value):
        return MISSING
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return significant(value)
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa.replace('-', MINUS)} × {power_of_ten(int(exponent))}"


def power_of_ten(exponent: int) -> str:
    """Return ten to a power, in superscripts."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def duration(seconds: float) -> str:
    """Return a time in the unit that fits.

    >>> [duration(s) for s in (0, 3.21e-6, 0.01204, 61.5, 7322)]
    ['0 s', '3.21 µs', '12 ms', '1 min 2 s', '2 h 2 min']
    """
    if not math.isfinite(seconds):
        return MISSING
    if seconds >= 3599.5:
        minutes = round(seconds / 60)
        return f"{minutes // 60:,} h {minutes % 60} min"
    if seconds >= 59.95:
        return f"{round(seconds) // 60} min {round(seconds) % 60} s"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale * 0.9995:
            return f"{_trim(seconds / scale)} {unit}"
    return "0 s" if seconds <= 0 else f"{_trim(seconds / 1e-9)} ns"


def size(n_bytes: float) -> str:
    """Return an amount of memory in decimal units.

    >>> size(512), size(1_234_567)
    ('512 B', '1.23 MB')
    """
    if not math.isfinite(n_bytes):
        return MISSING
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= scale * 0.9995:
            return f"{_trim(n_bytes / scale)} {unit}"
    return f"{round(n_bytes)} B"


def rate(per_second: float) -> str:
    """Return a number of rows per second, rounded to reproducible digits.

    >>> rate(123456), rate(87.3)
    ('123,000', '87.3')
    """
    return significant(per_second)


def _trim(value: float) -> str:
    text = significant(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def ticks(low: float, high: float, at_most: int = 6) -> list[float]:
    """Return round numbers in [low, high], evenly spaced: multiples of 1, 2 or 5 times a power of ten.

    >>> ticks(0.31, 0.98)
    [0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    >>> ticks(0, 45312, at_most=5)
    [0.0, 10000.0, 20000.0, 30000.0, 40000.0]
    """
    step = round_step((high - low) / (at_most + 1))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    while last - first + 1 > at_most:
        step = round_step(step * 1.01)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def round_step(at_least: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is not below `at_least`."""
    power = 10.0 ** math.floor(math.log10(at_least))
    return next(float(m * power) for m in (1, 2, 5, 10) if m * power >= at_least * (1 - 1e-9))


_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # by HTML and XML alike


def printable(text: str) -> str:
    """Return a text without the characters that HTML and XML reject."""
    return _REFUSED.sub("\ufffd", text)


def shorten(text: object, at_most: int) -> str:
    """Return a text with its middle elided if it is longer than `at_most`.

    >>> shorten("a" * 40, 10)
    'aaaaa…aaaaa'
    """
    line = printable(str(text))
    return line if len(line) <= at_most else line[: at_most // 2] + "…" + line[-(at_most // 2) :]


def plural(n: int, noun: str, nouns: str) -> str:
    """Return a number with a noun, in singular or plural.

    >>> plural(1, "batch", "batches"), plural(2000, "batch", "batches")
    ('1 batch', '2,000 batches')
    """
    return f"{count(n)} {noun if n == 1 else nouns}"


def listed(names: Sequence[str], at_most: int = 6) -> str:
    """Return the first names within a sentence, and how many more there are.

    >>> listed(["heat", "light", "sound"], at_most=2)
    'heat, light and 1 more'
    """
    more = f" and {len(names) - at_most:,} more" * (len(names) > at_most)
    return ", ".join(shorten(name, 40) for name in names[:at_most]) + more


def lower(title: str) -> str:
    """Return a title within a sentence; abbreviations keep their capitals.

    >>> lower("Mutual information"), lower("AUC"), lower("T-score")
    ('mutual information', 'AUC', 'T-score')
    """
    return title[:1].lower() + title[1:] if title[1:2].islower() else title
