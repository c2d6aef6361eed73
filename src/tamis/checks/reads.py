"""Reading leaves a model unchanged, also when an exception interrupts a read at any of its lines."""

from __future__ import annotations

import contextlib
import copy
import dis
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, TypeAlias

import numpy as np

from tamis._validation import Array
from tamis.checks.subject import fail
from tamis.persistence import dumps

Place: TypeAlias = tuple[CodeType, int, int]  # a line when it runs for the n-th time

# Public methods that change nothing; those with a required parameter read rows.
_METHODS = (
    "acquire", "clone_unfitted", "decision_function", "effect_band", "get_feature_names_out",
    "get_params", "get_support", "history", "importances", "leaf_of", "measures", "open", "performance", "predict",
    "predict_proba", "predict_with_scores", "quantile", "comparison_summary", "report", "table", "transform",
)  # fmt: skip
# The tracer interrupts between acquiring a lock and the block that releases it, where no signal handler can run.
_LOCKS = ("tamis._guard", "tamis._atomic")
_OTHERS = frozenset({"abc", "builtins", "numpy", "scipy", "sklearn", "typing"})  # packages of base classes


def public_reads(model: Any, X: Array) -> dict[str, Callable[[Any], Any]]:
    """Return the public properties of a fitted model, and its methods that change nothing, as functions of a model.

    Parameters
    ----------
    model : object
    X : ndarray
        Rows for methods such as `predict`.

    Returns
    -------
    dict of str to callable
        Those that are available for the model, in its current state and with its parameters.
    """
    properties = {
        name: functools.partial(_get, name)
        for cls in type(model).__mro__
        for name, member in vars(cls).items()
        if isinstance(member, property) and not name.startswith("_")
    }
    methods = {name: functools.partial(_call, name, X) for name in _METHODS if hasattr(type(model), name)}
    available: dict[str, Callable[[Any], Any]] = {}
    twin = copy.deepcopy(model)
    for name, read in (properties | methods).items():
        with contextlib.suppress(Exception):
            read(twin)
            available[name] = read
    return available


def _get(name: str, model: Any) -> Any:
    return getattr(model, name)


def _call(name: str, X: Array, model: Any) -> Any:
    method = getattr(model, name)
    needs_rows = any(
        one.default is one.empty and one.kind <= 1 for one in inspect.signature(method).parameters.values()
    )
    return method(X) if needs_rows else method()


def check_reads(model: Any, reads: dict[str, Callable[[Any], Any]], n_places: int | None = 25) -> None:
    """Fail if a read changes the bytes of `tamis.dumps`, or if one that was interrupted changes later reads.

    A KeyboardInterrupt is raised at lines of Tamis and of the package that defines the model, one after the other.

    Parameters
    ----------
    model : object
        A fitted model; copies of it are read.
    reads : dict of str to callable
        As returned by :func:`public_reads`.
    n_places : int or None, default=25
        Number of lines of each read at which it is interrupted, besides all that follow the assignment of an attribute:
        evenly spaced in the order of execution. None: at all lines, the first and the second time that they run.

    Raises
    ------
    AssertionError
        If a read changes the model; the message names it.
    """
    whole, traced, interrupted = (copy.deepcopy(model) for _ in range(3))
    state, packages = dumps(whole), _packages(model)
    for name, read in reads.items():
        result = _content(read(whole))
        if dumps(whole) != state:
            fail(f"reading {name} changes the bytes of tamis.dumps.")
        with _Lines(packages) as lines:
            read(traced)
        for place in lines.sample(n_places):
            with contextlib.suppress(KeyboardInterrupt), _Lines(packages, place):
                read(interrupted)
        if _content(read(interrupted)) != result:
            fail(f"{name} differs after an exception interrupted reading it.")
        if dumps(interrupted) != state:
            fail(f"an exception that interrupts reading {name} changes the bytes of tamis.dumps.")


def _packages(model: Any) -> frozenset[str]:
    """Return the packages whose lines are interrupted."""
    return frozenset(cls.__module__.partition(".")[0] for cls in type(model).__mro__) - _OTHERS | {"tamis"}


def _content(value: Any) -> Any:
    """Return what distinguishes the results of two reads."""
    try:
        return dumps(value)
    except TypeError:
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


class _Lines:
    """A context that traces lines, and may raise KeyboardInterrupt at one of them."""

    def __init__(self, packages: frozenset[str], raise_at: Place | None = None) -> None:
        self.packages, self.raise_at = packages, raise_at
        self.places: dict[Place, bool] = {}  # whether the line before, of the same call, assigns an attribute
        self.times: dict[tuple[CodeType, int], int] = {}

    def __enter__(self) -> _Lines:
        self.before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: Any) -> None:
        sys.settrace(self.before)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] not in self.packages or module in (*_LOCKS, __name__):
            return None
        code, line_before = frame.f_code, -1

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal line_before
            if event == "line":
                line = frame.f_lineno
                self.times[code, line] = n = self.times.get((code, line), 0) + 1
                if self.raise_at == (code, line, n):
                    raise KeyboardInterrupt
                if n <= 2:
                    self.places.setdefault((code, line, n), line_before in _assignments(code))
                line_before = line
            return trace

        return trace

    def sample(self, n_places: int | None) -> Iterator[Place]:
        """Yield the places in the order of execution: all behind an assignment, and `n_places` of the others."""
        others = [place for place, is_behind in self.places.items() if not is_behind]
        chosen = set(others)
        if n_places is not None and len(others) > n_places:
            chosen = {others[i] for i in np.linspace(0, len(others) - 1, n_places).astype(int).tolist()}
        yield from (place for place, is_behind in self.places.items() if is_behind or place in chosen)


@functools.cache
def _assignments(code: CodeType) -> frozenset[int]:
    """Return the lines of a function that assign or delete an attribute."""
    lines, line = set(), -1
    for step in dis.get_instructions(code):
        line = step.positions.lineno if step.positions and step.positions.lineno else line
        if step.opname in ("STORE_ATTR", "DELETE_ATTR"):
            lines.add(line)
    return frozenset(lines)
