"""Constraints of estimator parameters: a table next to the constructor, validated before anything changes.

A class has ``_allowed = parameters(window=integer("[8, inf)"), cuts=("robust", "range"), alpha=number("(0, 1)"))``:
one kind, or several alternatives. A dataclass states them with the default, as in
``window: int = parameter(integer("[8, inf)"), default=100)``. Kinds are intervals, classes, :class:`Kind` and literal
values. A subclass extends the tables of its bases. Constraints that depend on the data, or on two parameters, are
validated where they are known.

scikit-learn's equivalent is private; it accepts True as 1, and quotes values of any length.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamis._guard import record_of
from tamis._validation import is_integer, short_repr
from tamis.errors import UnknownNameError

_MOST = 2**31 - 1  # of an integer: kernels use 32 bits


@dataclass(frozen=True)
class Kind:
    """A kind of values: its description for messages, and the predicate that accepts a value."""

    description: str
    accepts: Callable[[Any], bool]


def number(interval: str) -> Kind:
    """Return the kind of the numbers in an interval, written as ``"(0, 1]"``.

    >>> number("(0, 1]").accepts(1), number("(0, 1]").accepts(0), number("(0, 1]").accepts(True)
    (True, False, False)
    """
    inside = _inside(interval)
    return Kind(f"a number in {interval}", lambda value: _is_real(value) and inside(_as_float(value)))


def integer(interval: str) -> Kind:
    """Return the kind of the integers in an interval, of magnitude at most 2**31 - 1."""
    inside = _inside(interval)
    return Kind(
        f"an integer in {interval}",
        lambda value: is_integer(value) and -_MOST <= value <= _MOST and inside(float(value)),
    )


def with_methods(description: str, *members: str) -> Kind:
    """Return the kind of the objects, not classes, with these members."""
    return Kind(
        description,
        lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in members),
    )


def name_or(noun: str, find: Callable[[str], Any], other: Kind) -> Kind:
    """Return the kind of the names that `find` accepts, or of objects of another kind."""

    def accepts(value: Any) -> bool:
        # The error of `find` suggests similar names.
        return bool(find(value)) if isinstance(value, str) else other.accepts(value)

    return Kind(f"the name of {noun} or {other.description}", accepts)


def parameters(**kinds: Any) -> Mapping[str, tuple[Any, ...]]:
    """Return the table of a class: the kinds of each parameter."""
    return {name: kind if isinstance(kind, tuple) else (kind,) for name, kind in kinds.items()}


def parameter(*kinds: Any, default: Any) -> Any:
    """Return the field of a parameter in a class that is a dataclass: its kinds, and its default.

    >>> @dataclass
    ... class Window:
    ...     size: int = parameter(integer("[8, inf)"), default=100)
    >>> Window().size, allowed(Window)["size"][0].description
    (100, 'an integer in [8, inf)')
    """
    return field(default=default, metadata={"kinds": kinds})


def _inside(interval: str) -> Callable[[float], bool]:
    low, high = (float(end) for end in interval[1:-1].split(","))
    above = operator.gt if interval[0] == "(" else operator.ge
    below = operator.lt if interval[-1] == ")" else operator.le
    return lambda value: above(value, low) and below(value, high)


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _is_columns(value: Any) -> bool:
    if isinstance(value, str):
        return value == "all"
    return isinstance(value, Sized) and not isinstance(value, Mapping | bytes | set | frozenset)


COLUMNS = Kind("'all', a list of columns or a mask", _is_columns)
GROUPS = Kind(
    "a list of lists of columns",
    lambda value: all(isinstance(part, list | tuple) for part in (value, *value)),
)
PRIOR = Kind(
    "a dict from columns to weights, numbers from 0.001 to 1000",
    lambda value: (
        isinstance(value, Mapping)
        and len(value) > 0
        and all(_is_real(weight) and 1e-3 <= weight <= 1e3 for weight in value.values())
    ),
)
SEED = (
    Kind("an integer from 0 to 2**32 - 1", lambda value: is_integer(value) and 0 <= value < 1 << 32),
    np.random.RandomState,
    None,
)


@functools.cache
def allowed(cls: Any) -> dict[str, tuple[Any, ...]]:
    """Return the kinds of each parameter of a class, including inherited ones."""
    known = inspect.signature(cls.__init__).parameters
    tables = [
        table
        for base in reversed(cls.__mro__)
        for table in (vars(base).get("_allowed", {}), _of_fields(base))
    ]
    return {name: kinds for table in tables for name, kinds in table.items() if name in known}


def _of_fields(cls: Any) -> Mapping[str, tuple[Any, ...]]:
    """Return the kinds of the fields that a dataclass itself declares."""
    fields = vars(cls).get("__dataclass_fields__", {})
    own = [fields[name] for name in vars(cls).get("__annotations__", {}) if name in fields]
    return {one.name: one.metadata["kinds"] for one in own if "kinds" in one.metadata}


@functools.cache
def _reader(cls: Any) -> Any:
    return operator.attrgetter("__class__", "__class__", *allowed(cls))


def check_parameters(one: Any) -> None:
    """Raise if a parameter of an estimator is invalid; values that were validated before are skipped.

    Raises
    ------
    ValueError
        With the parameter, its value and the valid values.
    """
    cls: Any = type(one)
    if not are_checked(one):
        values = _reader(cls)(one)
        for (name, kinds), value in zip(allowed(cls).items(), values[2:], strict=True):
            check_parameter(name, value, kinds)
        record_of(one).passed_parameters = values


def are_checked(one: Any) -> bool:
    """Return whether the parameters of an estimator are those that were validated before."""
    cls: Any = type(one)
    passed = record_of(one).passed_parameters
    return passed is not None and all(map(operator.is_, passed, _reader(cls)(one)))


def check_parameter(name: str, value: Any, kinds: tuple[Any, ...]) -> None:
    """Raise if no kind accepts the value."""
    try:
        if any(_fits(value, kind) for kind in kinds):
            return
    except UnknownNameError as error:
        raise UnknownNameError(f"{name}: {error}") from None
    plain = [repr(kind) for kind in kinds if not isinstance(kind, Kind | type)]
    said = [
        kind.description if isinstance(kind, Kind) else f"a {kind.__name__}"
        for kind in kinds
        if isinstance(kind, Kind | type)
    ]
    if len(plain) > 1 or not said:
        either = ", or ".join([f"one of {', '.join(plain)}", *said])
    else:
        every = said + plain
        either = " or ".join([", ".join(every[:-1]), every[-1]]) if len(every) > 1 else every[0]
    raise ValueError(f"{name} must be {either}, got {short_repr(value)}.")


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, Kind):
        try:
            return kind.accepts(value)
        except (TypeError, ValueError):  # a list of lists of different lengths has no shape
            return False
    if isinstance(kind, type):
        return isinstance(value, kind)
    return value is kind or (type(value) is type(kind) and bool(value == kind))
