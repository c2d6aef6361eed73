"""Validation of single parameter values; every message names the parameter, the value and what to pass."""

from __future__ import annotations

import math
import numbers
import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np

_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = 80


def check_number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
    integer: bool = False,
) -> None:
    """Raise for a parameter that is not an (integer) number or is outside its interval."""
    kind = numbers.Integral if integer else numbers.Real
    is_kind = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
    inside = is_kind and low <= value <= high and not (open_low and value == low)
    if not inside or (open_high and value == high):
        left = f"{'(' if open_low or low == -math.inf else '['}{low:g}"
        right = f"{high:g}{')' if open_high or high == math.inf else ']'}"
        noun = "an integer" if integer else "a number"
        raise ValueError(f"{name} must be {noun} in {left}, {right}, got {short_repr(value)}.")


def safe_repr(value: Any) -> str:
    """Return any value as a few characters on one line; a complete representation might take forever."""
    if value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 1 << 64):
        return repr(value)
    return repr(value[:60]) if type(value) is str else f"a {type(value).__name__}"


def short_repr(value: Any) -> str:
    """Return a value for an error message: its `repr` on one line, truncated if long.

    >>> short_repr([1] * 1000), short_repr(10**400), short_repr(np.str_("on"))
    ('[1, 1, 1, 1, 1, 1, ...]', 'an integer of 1329 bits', "'on'")
    """
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is int and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    try:
        return " ".join(_BRIEF.repr(value).split())
    except Exception:  # its `repr` may raise
        return f"a {type(value).__name__}"


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas.NA.

    >>> is_missing(float("nan")), is_missing(0), is_missing(np.zeros(2))
    (True, False, False)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # arrays have no truth value
        return False


def is_integer(value: Any) -> bool:
    """Return whether the value is an integer of any type, but not a bool."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)


def as_list(name: str, values: Any) -> list[Any]:
    """Return a parameter that must be a list; a text, whose letters would be its entries, is rejected."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list, got {short_repr(values)}: pass [{short_repr(values)}].")
    return list(values)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise for a parameter that is not one of the choices."""
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {short_repr(value)}.")
