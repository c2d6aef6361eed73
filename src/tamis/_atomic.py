"""Updates are atomic: a batch is either learned completely or not at all.

Signals are deferred during an update, since a handler that reads the model within a kernel would see an inconsistent
state. They are delivered as soon as the state is consistent. After any other exception (out of memory, a bug, a user's
module) a snapshot is restored. For a state too large to copy in the time of an update, the snapshot contains only its
attributes and containers; if an update fails after it may have written into an array, the model rejects further use.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import os
import random
import re
import struct
import sys
import threading
import types
from _signal import getsignal, signal  # type: ignore[import-not-found]  # those of `signal` make enums of all they get
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from signal import Signals
from threading import get_ident
from time import perf_counter_ns
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from tamis._guard import ThreadSafe, fail_closed, record_of
from tamis._interrupts import ACTION_SIZE, sigaction
from tamis.errors import TamisError

# Bytes of a state that are always copied: about 20 us, as long as the fastest methods take for a row. With 50 features,
# the state of most methods is smaller.
_SMALL = 1 << 19
# Of a larger one, as many as are copied in a tenth of the time of an update; before the first, this many.
_COPIED_PER_NS, _AT_FIRST = 0.5, 1 << 26

# -- signals -----------------------------------------------------------------------------------------------

_NAMES = (
    "SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGABRT", "SIGVTALRM",
    "SIGPROF", "SIGXCPU",
)  # fmt: skip
_NUMBERS = tuple(int(one) for one in Signals if one.name in _NAMES)
_replaced_handlers: dict[int, Callable[[int, FrameType | None], object]] = {}  # the deferred handlers
# All handlers when they were last read; the places of those among them that could interrupt an update, their numbers,
# and structures that receive what C code sees.
_handlers: tuple[Any, ...] = ()
_interrupting: list[tuple[int, int, Any]] = []
_actions = {number: ctypes.create_string_buffer(ACTION_SIZE) for number in _NUMBERS}
# Address and flags in such a structure, those that `signal.signal` installs, and the signals that have others.
_address_and_flags = struct.Struct({"linux": "P128xi", "darwin": "P4xi"}.get(sys.platform, "Pi")).unpack_from
_python_action: tuple[int, int] | None = None
_foreign: set[int] = set()
_pending_signals: dict[int, FrameType | None] = {}
_main = threading.main_thread().ident


class _ThreadState:
    """The state of a thread."""

    __slots__ = ("delivers_signals", "is_covered", "is_updating")

    def __init__(self) -> None:
        self.is_updating = False  # with signals deferred
        self.is_covered = False  # by a snapshot of all that is updated
        self.delivers_signals = False  # an exception from a handler is harmless


class _Threads(threading.local):
    def __init__(self) -> None:
        self.here = _ThreadState()


# Reading a thread-local attribute takes several times as long.
_in_main, _in_others = _ThreadState(), _Threads()


def _after_fork() -> None:
    global _main, _in_main
    if _main != get_ident():
        _main, _in_main = get_ident(), _in_others.here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _defer_signals() -> None:
    """Replace the Python handlers that could interrupt an update; handlers in C and their flags stay."""
    global _handlers, _interrupting, _python_action
    handlers = (*map(getsignal, _NUMBERS),)
    if handlers != _handlers:
        _interrupting = [
            (i, number, _actions[number])
            for i, (number, one) in enumerate(zip(_NUMBERS, handlers, strict=True))
            if not isinstance(one, int) and callable(one) and one is not _record
        ]
        _handlers = handlers
    for i, number, action in _interrupting:
        sigaction(number, None, action)
        _replaced_handlers[number] = handlers[i]
        if _address_and_flags(action) == _python_action:
            signal(number, _record)
            continue
        _foreign.add(number)  # or unknown yet, in the first update
        signal(number, _record)
        found = ctypes.create_string_buffer(ACTION_SIZE)
        sigaction(number, None, found)
        sigaction(number, action, None)
        _python_action = _address_and_flags(found)


def _record(number: int, frame: FrameType | None) -> None:
    """Replace a handler while an update runs."""
    _pending_signals.setdefault(number, frame)
    if not _in_main.is_updating:  # restoring the handlers was interrupted
        _restore_handlers()
        deliver_signals()


def _restore_handlers() -> None:
    while _replaced_handlers:
        number, handler = next(iter(_replaced_handlers.items()))
        try:
            signal(number, handler)  # may run another one, which may raise and stays in the list
        finally:
            if number in _foreign:
                sigaction(number, _actions[number], None)
        _replaced_handlers.pop(number, None)
        _foreign.discard(number)


def deliver_signals() -> None:
    """Call the handlers of pending signals at a point where an exception is harmless.

    Within an update, this requires a snapshot of everything: between two parts of a large batch.
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
    if isinstance(one, random.Random):
        return partial(one.setstate, one.getstate())
    if isinstance(one, np.random.RandomState):
        return partial(one.set_state, one.get_state(legacy=False))
    bits = getattr(one, "bit_generator", one)
    return partial(setattr, bits, "state", bits.state)


_NEVER_CHANGE: tuple[type, ...] = (
    int, float, complex, bool, str, bytes, type(None), range, slice, type, frozenset, enum.Enum, os.PathLike,
    np.generic, np.dtype, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType,
)  # fmt: skip
# Libraries whose C objects do not change.
_COMPILED = {"sklearn", "numba", "builtins", "_thread", "_weakref", "weakref"}
_PLAIN, _ARRAY, _DICT, _LIST, _TUPLE, _OBJECT, _GENERATOR, _FOREIGN = range(8)


@functools.cache
def _kind_of(cls: type) -> int:
    """Return how to snapshot the objects of a class."""
    if issubclass(cls, np.ndarray):
        return _ARRAY
    if issubclass(cls, dict):
        return _DICT
    if issubclass(cls, list | deque | set | bytearray):
        return _LIST
    if issubclass(cls, tuple):
        return _TUPLE
    if issubclass(cls, np.random.RandomState | np.random.Generator | np.random.BitGenerator | random.Random):
        return _GENERATOR
    if not issubclass(cls, _NEVER_CHANGE):
        if cls.__dictoffset__ and not cls.__module__.startswith("torch"):
            return _OBJECT
        if cls.__module__.partition(".")[0] not in _COMPILED:
            return _FOREIGN
    return _PLAIN


def _ring(array: Any, axis: int, n_seen: Any, n_rows: int | None) -> Any:
    """Return the slots of a ring buffer that the next rows overwrite: all, if they wrap around.

    >>> _ring(np.arange(5), 0, 7, 2), _ring(np.arange(5), 0, 7, 4)
    (array([2, 3]), array([0, 1, 2, 3, 4]))
    """
    first = int(n_seen) % array.shape[axis] if array.shape[axis] else 0
    if n_rows is None or first + n_rows > array.shape[axis]:
        return array
    return array[(slice(None),) * axis + (slice(first, first + n_rows),)]


def _changeable(values: Iterable[Any]) -> Iterable[Any]:
    """Return the values, or nothing if all are immutable."""
    return values if values and any(_kind_of(cls) != _PLAIN for cls in set(map(type, values))) else ()


# In turn: dicts, each followed by a copy; arrays; callables that restore other parts; and parts not yet read.
_Found = tuple[list[Any], list[Any], list[Restore], list[Any]]
_readers: dict[type, tuple[Callable[[Any, int | None], _Found | None], ...]] = {}
_MOST_READERS = 8  # per class: an attribute that is sometimes None makes two
_LONGEST_TUPLE = 64  # read item by item; a growing one would make many readers


def _read(one: Any, n_rows: int | None) -> _Found:
    """Read an object by a compiled function, which applies to all objects whose attributes have the same types."""
    readers = _readers.get(type(one), ())
    for reader in readers:
        if (parts_read := reader(one, n_rows)) is not None:
            return parts_read
    reader = _compiled_reader(one)
    _readers[type(one)] = (reader, *readers[: _MOST_READERS - 1])
    parts_read = reader(one, n_rows)
    assert parts_read is not None
    return parts_read


def _compiled_reader(one: Any) -> Callable[[Any, int | None], _Found | None]:
    lines = list[str]()
    parts_read = {"dicts": "", "arrays": "", "others": "", "rest": ""}
    expected = list[Any]()

    def add(path: str, part: Any, above: tuple[int, ...], declared: dict[str, Any]) -> None:
        """Add the code that reads an object or a tuple, a part of those with the ids `above`.

        `declared` contains the words of its paths that the objects above declare: "fixed", or axis and place of a ring.
        """
        n, is_object = len(expected), not isinstance(part, tuple)
        items = part.__dict__ if is_object else dict(enumerate(part))
        expected.append([*map(type, items.values())])
        lines.append(
            f"p{n} = {path}; d{n} = p{n}.__dict__; v{n} = [*d{n}.values()]"
            if is_object
            else f"v{n} = [*{path}]"
        )
        lines.append(f"if [*map(type, v{n})] != expected[{n}]: return None")
        parts_read["dicts"] += f"d{n}, d{n}.copy(), " if is_object else ""
        if (spec := getattr(type(part), "_state_spec", None)) is not None:
            declared = {**declared, **dict.fromkeys(spec.fixed, "fixed"), **spec.rings}
        for i, (name, value) in enumerate(items.items()):
            kind, inner = _kind_of(value.__class__), f"v{n}[{i}]"
            word = declared.get(name)
            if kind == _PLAIN or word == "fixed":
                continue
            if kind == _ARRAY and not value.dtype.hasobject:
                if word and value.size:
                    n_seen = re.sub(r"\bits\b", f"p{n}", word[1])
                    inner = f"ring({inner}, {word[0]}, {n_seen}, n_rows)"
                parts_read["arrays"] += f"{inner}, "
            elif id(value) not in above and (
                kind == _OBJECT or (kind == _TUPLE and len(value) <= _LONGEST_TUPLE)
            ):
                inside = {
                    path[len(name) + 1 :]: word
                    for path, word in declared.items()
                    if path.startswith(f"{name}.")
                }
                add(inner, value, (*above, id(part)), inside)
            elif kind == _LIST:
                parts_read["others"] += f"partial(refill, {inner}, {inner}.copy()), "
                parts_read["rest"] += f"*changeable({inner}), "
            else:
                parts_read["rest"] += f"{inner}, "

    add("one", one, (), {})
    returned = ", ".join(f"[{parts}]" for parts in parts_read.values())
    source = "\n    ".join(["def read(one, n_rows):", *lines, f"return {returned}"])
    scope: dict[str, Any] = {
        "changeable": _changeable, "expected": expected, "partial": partial, "refill": _refill, "ring": _ring,
    }  # fmt: skip
    exec(source, scope)
    return scope["read"]


def _read_rest(one: Any, parts_read: _Found, n_rows: int | None) -> bool:
    """Read the remaining parts; return whether one keeps state that is invisible to Python."""
    late = getattr(getattr(type(one), "_state_spec", None), "late", None)
    n_of_items = None if late is None or n_rows is None else n_rows + late
    dicts, arrays, others, rest = parts_read
    has_foreign, seen = False, {id(one)}
    for part in rest:  # grows meanwhile
        kind = _kind_of(part.__class__)
        if kind == _PLAIN or id(part) in seen:
            continue
        seen.add(id(part))
        if kind == _OBJECT:
            for known, more in zip(parts_read, _read(part, n_of_items), strict=True):
                known += more
        elif kind == _DICT:
            dicts += part, part.copy()
            rest += _changeable(part.values())
        elif kind in (_LIST, _TUPLE):
            if kind == _LIST:
                others.append(partial(_refill, part, part.copy()))
            rest += _changeable(part)
        elif kind == _ARRAY:
            if part.dtype.hasobject:
                others.append(partial(part.__setitem__, ..., part.copy()))
            else:
                arrays.append(part)
        elif kind == _GENERATOR:
            others.append(_generator(part))
        else:
            has_foreign = True
    return has_foreign


class Snapshot:
    """The state of an object and of all its parts, which can be restored into the same objects.

    A class declares what need not be copied, in `_shapes` (:mod:`tamis._shapes`): with the word `fixed`, attributes
    that are replaced but never written into, and with `ring`, arrays of which a batch overwrites its own rows only.

    Parameters
    ----------
    one : object
    max_bytes : int or None
        Bytes of arrays that are copied. For a larger state, only the attributes, containers and random generators are
        kept. None: all arrays are copied.
    n_rows : int, optional
        How many rows an update adds to rings; by default unknown.

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

    __slots__ = ("_arrays", "_copies", "_dicts", "_others", "is_complete")

    def __init__(self, one: Any, max_bytes: float | None = None, n_rows: int | None = None) -> None:
        parts_read = _read(one, n_rows)
        has_foreign = _read_rest(one, parts_read, n_rows) if parts_read[3] else False
        self._dicts, self._arrays, self._others, _ = parts_read
        record = record_of(one) if isinstance(one, ThreadSafe) else None
        size = sys.maxsize if record is None else record.snapshot_size
        if max_bytes is not None and size > max_bytes:
            size = sum([array.nbytes for array in self._arrays])
        is_copied = max_bytes is None or size <= max_bytes
        self._copies = [array.tobytes() for array in self._arrays] if is_copied else []
        self.is_complete = is_copied and not has_foreign
        # An update from scratch (max_bytes=0) may change the size of the state.
        if is_copied and record is not None and max_bytes != 0:
            record.snapshot_size = sum(map(len, self._copies))

    def restore(self) -> None:
        """Restore the state in place; no array or container is recreated."""
        for items, before in zip(self._dicts[::2], self._dicts[1::2], strict=True):
            items.clear()
            items.update(before)
        for restore in self._others:
            restore()
        for array, copied in zip(self._arrays, self._copies, strict=False):
            if array.flags.writeable and not array.dtype.hasobject:
                array[...] = np.frombuffer(copied, array.dtype).reshape(array.shape)


class Attributes:
    """The attributes of an object, for updates that write into no array and no container."""

    __slots__ = ("_attributes", "_before")
    is_complete = False  # parts may be updated in place

    def __init__(self, one: Any) -> None:
        self._attributes = one.__dict__
        self._before = self._attributes.copy()

    def restore(self) -> None:
        """Restore the attributes."""
        self._attributes.clear()
        self._attributes.update(self._before)


# -- updates -----------------------------------------------------------------------------------------------


def is_covered() -> bool:
    """Return whether an enclosing object is being updated, and its snapshot covers its parts."""
    return (_in_main if get_ident() == _main else _in_others.here).is_covered


def atomically(
    one: ThreadSafe,
    update: Callable[..., Any],
    *args: Any,
    n_bytes: int = 0,
    n_rows: int | None = None,
    in_parts: bool = False,
    from_scratch: bool = False,
    before: Any = None,
) -> Any:
    """Return `update(*args)`; if it raises, the object is unchanged.

    Input is validated before. If `update` itself rejects input with a :class:`TamisError`, it does so before it writes
    into an array; any other exception may occur at any time.

    Parameters
    ----------
    one : ThreadSafe
        The object that is updated, with all its parts.
    update : callable
    *args : object
    n_bytes : int
        Size of the batch. A state of more than half a megabyte is copied if it is no larger than the batch, or if that
        takes at most a tenth of the time of the update, as the fastest update so far predicts it.
    n_rows : int, optional
        Rows of the batch, each of which overwrites one slot of a ring buffer: see :class:`Snapshot`.
    in_parts : bool
        Whether a state of any size is copied, and `update` calls :func:`deliver_signals` between its parts.
    from_scratch : bool
        Whether `update` creates a new state, and leaves the current arrays unchanged.
    before : object with `restore` and `is_complete`, optional
        A snapshot, if the class of the object provides a cheaper one than :class:`Snapshot`.

    Raises
    ------
    KeyboardInterrupt
        After the update, if Ctrl-C was pressed while it ran.
    """
    if is_covered():
        return update(*args)
    in_main = get_ident() == _main
    here = _in_main if in_main else _in_others.here
    record, is_timed = record_of(one), False
    if before is None:
        max_bytes: float | None = 0 if from_scratch else None if in_parts else max(_SMALL, n_bytes)
        if max_bytes and n_bytes and record.snapshot_size > max_bytes:
            max_bytes = max(max_bytes, min(_AT_FIRST, n_bytes * record.pace * _COPIED_PER_NS))
            is_timed = True
        before = Snapshot(one, max_bytes, n_rows)
    is_safe = before.is_complete or from_scratch
    is_outermost = in_main and not here.is_updating
    try:
        if is_outermost:
            here.is_updating = True
            _defer_signals()
        here.is_covered, here.delivers_signals = is_safe, is_outermost and is_safe
        try:
            began = perf_counter_ns() if is_timed else 0
            returned = update(*args)
            if is_timed:
                record.pace = min(record.pace, (perf_counter_ns() - began) / n_bytes)
            return returned
        except BaseException as error:
            before.restore()
            if not is_safe and not isinstance(error, TamisError | Warning):
                fail_closed(one, error)
            raise
        finally:
            here.is_covered = here.delivers_signals = False
    finally:
        if is_outermost:
            here.is_updating = False  # from here on, `_record` calls the handler
            try:
                _restore_handlers()
            finally:
                if _pending_signals:
                    deliver_signals()


Method = TypeVar("Method", bound=Callable[..., Any])


def atomic(method: Method) -> Method:
    """Make a method of a :class:`ThreadSafe` class atomic for states of any size."""

    @functools.wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        return atomically(self, partial(method, self, *args, **kwargs), in_parts=True)

    return whole  # type: ignore[return-value]


# Bytes that the slowest methods process in about a second. Sums over parts round differently in the last bits, so the
# parts are larger than most batches.
LARGEST_PART = {"exactly": 1 << 20, "up to rounding": 1 << 26, "": sys.maxsize}


def parts(n_rows: int, n_bytes: int, equals_rows: str) -> Iterator[slice]:
    """Yield the parts in which a batch is processed; signals are delivered before each.

    >>> list(parts(5, 2_000_000, "exactly"))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    size = max(1, n_rows * LARGEST_PART[equals_rows] // n_bytes)
    for first in range(0, n_rows, size):
        deliver_signals()
        yield slice(first, first + size)
