"""Updates are atomic: a batch is learned completely or not at all, whatever interrupts it.

While an update runs, signals wait: a handler that raises in the middle of a kernel (Ctrl-C) would leave half a state.
It is called as soon as the state is whole. After any other exception (out of memory, a bug, a user's module) a
snapshot is restored. Copying all arrays would cost more than many an update. So of a large state only the attributes
and containers are kept, and if an update of it fails after it may have written into an array, the model refuses
every further use.
"""

from __future__ import annotations

import enum
import os
import random
import sys
import threading
import types
from _signal import getsignal, signal  # type: ignore[import-not-found]  # those of `signal` make enums of all they get
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from signal import Signals
from threading import get_ident
from types import FrameType
from typing import Any

import numpy as np

from tamis._guard import ThreadSafe, fail_closed
from tamis.errors import TamisError

__all__ = [
    "LARGEST_PART",
    "Attributes",
    "Snapshot",
    "atomically",
    "deliver_signals",
    "parts",
]

_SMALL = 1 << 14  # bytes of a state that are always copied: 2 us

# -- signals -----------------------------------------------------------------------------------------------

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK", "SIGALRM", "SIGUSR1", "SIGUSR2")
_NUMBERS = tuple(int(one) for one in Signals if one.name in _NAMES)
_replaced_handlers: dict[int, Callable[[int, FrameType | None], object]] = {}  # the handlers that wait
_pending_signals: dict[int, FrameType | None] = {}
_main = threading.main_thread().ident


class _ThreadState:
    """What runs in a thread."""

    __slots__ = ("delivers_signals", "is_covered", "is_updating")

    def __init__(self) -> None:
        self.is_updating = False  # with signals deferred
        self.is_covered = False  # by a snapshot of everything that is updated
        self.delivers_signals = False  # so an exception from a handler would do no harm


class _Threads(threading.local):
    def __init__(self) -> None:
        self.here = _ThreadState()


_in_main, _in_others = (
    _ThreadState(),
    _Threads(),
)  # a thread-local attribute takes several times as long to read


def _after_fork() -> None:
    global _main, _in_main
    if _main != get_ident():
        _main, _in_main = get_ident(), _in_others.here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _record(number: int, frame: FrameType | None) -> None:
    """Stand in for a handler while an update runs."""
    _pending_signals.setdefault(number, frame)
    if not _in_main.is_updating:  # what puts the handlers back was interrupted
        _restore_handlers()
        deliver_signals()


def _restore_handlers() -> None:
    while _replaced_handlers:
        number, handler = next(iter(_replaced_handlers.items()))
        signal(number, handler)  # may call another one, which may raise: that one's number stays in the list
        _replaced_handlers.pop(number, None)


def deliver_signals() -> None:
    """Call the handlers of the signals that came, where an exception does no harm.

    Within an update this is so if a snapshot of everything was taken: between two parts of a large batch.
    """
    if (
        not _pending_signals
        or get_ident() != _main
        or (_in_main.is_updating and not _in_main.delivers_signals)
    ):
        return
    number, frame = _pending_signals.popitem()
    handler = _replaced_handlers.get(number) or getsignal(number)
    try:
        if callable(handler):
            handler(number, frame)
    finally:
        deliver_signals()


# -- snapshots ---------------------------------------------------------------------------------------------

Restore = Callable[[], object]


def _refill(container: Any, items: Any) -> None:
    container.clear()
    container.extend(items) if hasattr(container, "extend") else container.update(items)


def _generator(one: Any) -> Restore:
    bits = getattr(one, "bit_generator", one)
    return partial(setattr, bits, "state", bits.state)


def _random_state(one: np.random.RandomState) -> Restore:
    return partial(one.set_state, one.get_state(legacy=False))


def _python_random(one: random.Random) -> Restore:
    return partial(one.setstate, one.getstate())


_GENERATORS: dict[type, Callable[[Any], Restore]] = {
    np.random.RandomState: _random_state,
    np.random.Generator: _generator,
    np.random.BitGenerator: _generator,
    random.Random: _python_random,
}
_NEVER_CHANGE: tuple[type, ...] = (
    int, float, complex, bool, str, bytes, type(None), range, slice, type, frozenset, enum.Enum, os.PathLike,
    np.generic, np.dtype, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType,
)  # fmt: skip
# Libraries whose C objects do not change.
_COMPILED = {"sklearn", "numba", "builtins", "_thread", "_weakref", "weakref"}
_PLAIN, _ARRAY, _DICT, _LIST, _TUPLE, _OBJECT, _GENERATOR, _FOREIGN = range(8)
_kinds: dict[type, int] = {}
_plain: set[type] = set()  # the classes of that kind


def _kind_of(cls: type) -> int:
    """Return how the state of objects of a class is kept."""
    if issubclass(cls, np.ndarray):
        kind = _ARRAY
    elif issubclass(cls, dict):
        kind = _DICT
    elif issubclass(cls, list | deque | set | bytearray):
        kind = _LIST
    elif issubclass(cls, tuple):
        kind = _TUPLE
    elif issubclass(cls, tuple(_GENERATORS)):
        kind = _GENERATOR
    elif issubclass(cls, _NEVER_CHANGE):
        kind = _PLAIN
    elif cls.__dictoffset__ and not cls.__module__.startswith("torch"):
        kind = _OBJECT
    else:
        kind = _PLAIN if cls.__module__.partition(".")[0] in _COMPILED else _FOREIGN
    _kinds[cls] = kind
    if kind == _PLAIN:
        _plain.add(cls)
    return kind


class Snapshot:
    """The state of an object and of all that it consists of, to be put back into the same objects.

    Parameters
    ----------
    one : object
    most : int or None
        Bytes of arrays that are copied. Of a larger state only the attributes, containers and random generators are
        kept. None: all arrays are copied.

    Attributes
    ----------
    is_complete : bool
        Whether all of the state can be put back: the arrays were copied, and nothing keeps its state where Python
        cannot see it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(mean=np.zeros(2), n=0)
    >>> before, mean = Snapshot(model), model.mean
    >>> model.mean += 1.0
    >>> model.mean, model.n = model.mean * 2.0, 1
    >>> before.restore()
    >>> model.mean is mean, model
    (True, namespace(mean=array([0., 0.]), n=0))
    """

    __slots__ = ("_arrays", "_copies", "_dicts", "_has_foreign", "_others", "is_complete")

    def __init__(self, one: Any, most: int | None = None) -> None:
        attributes = one.__dict__
        self._dicts = [attributes, attributes.copy()]  # in turn: a dict, and what was in it
        self._others = list[Restore]()
        self._has_foreign = False
        arrays = self._arrays = list[Any]()
        parts = list[Any]()
        size, plain, array = 0, _plain, np.ndarray
        for value in attributes.values():
            if (cls := value.__class__) in plain:
                continue
            if cls is array:
                arrays.append(value)
                size += value.nbytes
            else:
                parts.append(value)
        if parts:
            size += self._visit(parts, {id(one)})
        if most is None or size <= most:
            self._copies = [one.copy() if one.dtype.hasobject else one.tobytes() for one in arrays]
            self.is_complete = not self._has_foreign
        else:
            self._copies, self.is_complete = [], False

    def _visit(self, parts: list[Any], seen: set[int]) -> int:
        """Keep what the parts and theirs consist of; return how many bytes of arrays were found."""
        size, plain, kinds, arrays, dicts = 0, _plain, _kinds, self._arrays, self._dicts
        for part in parts:  # which grows
            if id(part) in seen:
                continue
            seen.add(id(part))
            cls = part.__class__
            kind = kinds[cls] if cls in kinds else _kind_of(cls)
            if kind in (_OBJECT, _DICT):
                items = part.__dict__ if kind == _OBJECT else part
                dicts += items, items.copy()
                items = items.values()
            elif kind == _LIST:
                self._others.append(partial(_refill, part, part.copy()))
                items = part
            elif kind == _TUPLE:
                items = part
            else:
                if kind == _ARRAY:
                    self._arrays.append(part)
                    size += part.nbytes
                elif kind == _GENERATOR:
                    self._others.append(
                        next(save for cls, save in _GENERATORS.items() if isinstance(part, cls))(part)
                    )
                elif kind == _FOREIGN:
                    self._has_foreign = True
                continue
            for value in items:
                if (cls := value.__class__) in plain:
                    continue
                if cls is np.ndarray:
                    arrays.append(value)
                    size += value.nbytes
                else:
                    parts.append(value)
        return size

    def restore(self) -> None:
        """Restore the state in place; no array or container is recreated."""
        for items, before in zip(self._dicts[::2], self._dicts[1::2], strict=True):
            items.clear()
            items.update(before)
        for restore in self._others:
            restore()
        for array, copied in zip(self._arrays, self._copies, strict=False):
            if isinstance(copied, bytes):
                copied = np.frombuffer(copied, array.dtype).reshape(array.shape)
            if array.flags.writeable:
                array[...] = copied


class Attributes:
    """The attributes of an object alone: where a batch is small, a :class:`Snapshot` takes as long as to learn it."""

    __slots__ = ("_attributes", "_before")
    is_complete = False

    def __init__(self, one: Any) -> None:
        self._attributes = one.__dict__
        self._before = self._attributes.copy()

    def restore(self) -> None:
        """Put the attributes back."""
        self._attributes.clear()
        self._attributes.update(self._before)


# -- updates -----------------------------------------------------------------------------------------------


def atomically(
    one: ThreadSafe,
    update: Callable[..., Any],
    *args: Any,
    n_bytes: int = 0,
    in_parts: bool = False,
    from_scratch: bool = False,
    before: Any = None,
) -> Any:
    """Return `update(*args)`, after which the object is as after the whole update, or if that raises, as before it.

    What may be refused is refused before. What `update` itself refuses, with a :class:`TamisError`, it refuses before
    it writes into an array; any other exception may come at any time.

    Parameters
    ----------
    one : ThreadSafe
        What is updated, with all that it consists of.
    update : callable
    *args : object
    n_bytes : int
        Size of a state that is copied; a larger one is not. A copy is to take a small part of the time of the update,
        so this is the size of the batch, or a multiple of it where learning takes long.
    in_parts : bool
        Whether the state is copied however large it is, and `update` calls :func:`deliver_signals` between its parts.
    from_scratch : bool
        Whether `update` makes a new state, and leaves the arrays of the present one alone.
    before : object with `restore` and `is_complete`, optional
        What is put back, where the object's class knows a cheaper way than a :class:`Snapshot`.

    Raises
    ------
    KeyboardInterrupt
        After the update, if Ctrl-C came while it ran.
    """
    in_main = get_ident() == _main
    here = _in_main if in_main else _in_others.here
    if here.is_covered:  # by the snapshot of what this object is part of
        return update(*args)
    most = 0 if from_scratch else None if in_parts else max(_SMALL, n_bytes)
    if here.is_updating or not in_main:
        return _restored_on_error(here, one, update, args, most, from_scratch, before)
    try:
        here.is_updating = True
        for number, handler in zip(_NUMBERS, map(getsignal, _NUMBERS), strict=True):
            if handler.__class__ is not int and callable(handler) and handler is not _record:
                _replaced_handlers[number] = handler
                signal(number, _record)
        return _restored_on_error(here, one, update, args, most, from_scratch, before, is_outermost=True)
    finally:
        here.is_updating = False  # from here on, `_record` calls the handler
        try:
            _restore_handlers()
        finally:
            if _pending_signals:
                deliver_signals()


def _restored_on_error(
    here: _ThreadState,
    one: ThreadSafe,
    update: Any,
    args: Any,
    most: int | None,
    from_scratch: bool,
    before: Any,
    *,
    is_outermost: bool = False,
) -> Any:
    if before is None:
        before = Snapshot(one, most)
    here.is_covered = is_safe = before.is_complete or from_scratch
    here.delivers_signals = is_outermost and is_safe
    try:
        return update(*args)
    except BaseException as error:
        before.restore()
        if not is_safe and not isinstance(error, TamisError | Warning):
            fail_closed(one, error)
        raise
    finally:
        here.is_covered = here.delivers_signals = False


# Bytes that the slowest methods learn from in about a second. Sums that are rounded differ in their last bits if they
# are taken in parts, so these are larger than what most are given at once.
LARGEST_PART = {"exactly": 1 << 20, "up to rounding": 1 << 26, "": sys.maxsize}


def parts(n_rows: int, n_bytes: int, equals_rows: str) -> Iterator[slice]:
    """Yield the parts in which a batch is learned from; signals are let in before each.

    >>> list(parts(5, 2_000_000, "exactly"))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    size = max(1, n_rows * LARGEST_PART[equals_rows] // n_bytes)
    for first in range(0, n_rows, size):
        deliver_signals()
        yield slice(first, first + size)
