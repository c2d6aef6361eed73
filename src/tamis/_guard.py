"""One call at a time on one object: kernels release the GIL, so two threads could write into the same arrays.

A public method or property of a :class:`ThreadSafe` class waits until no other thread uses the same object, and
rejects an object with inconsistent arrays (`_shapes`). Locks are stored outside the objects: deep copies, pickles,
clones and saved files do not contain them. A shallow copy shares the arrays, and so the lock.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from tamis._shapes import Shapes
from tamis.errors import StateError

__all__ = [
    "ThreadSafe",
    "fail_closed",
    "lock_of",
    "locked",
    "locked_and_validated",
    "snapshot_sizes",
    "validated_parameters",
]

_locks: dict[int, Any] = {}  # by id, for the lifetime of the object
_alive: dict[int, weakref.ref[Any]] = {}
_failed: dict[int, str] = {}  # the exception that left an object half updated
validated_parameters: dict[int, tuple[Any, ...]] = {}  # the parameters of an object that passed validation
snapshot_sizes: dict[int, int] = {}  # bytes of an object's arrays when they were last copied
_registry_lock = threading.Lock()


def _discard_all() -> None:
    """Drop the locks in a child process: the threads that held them do not exist there."""
    global _registry_lock
    _locks.clear()
    _registry_lock = threading.Lock()


os.register_at_fork(after_in_child=_discard_all)


def lock_of(one: Any) -> Any:
    """Return the lock of an object."""
    lock = _locks.get(id(one))
    return _register(one, threading.RLock()) if lock is None else lock


def _register(one: Any, lock: Any) -> Any:
    """Register a lock for the lifetime of an object unless it has one; return its lock."""
    key = id(one)
    with _registry_lock:
        if key not in _locks:
            _alive[key] = weakref.ref(one, partial(_discard, key))
            _locks[key] = lock
        return _locks[key]


def _discard(key: int, _: Any) -> None:
    for registry in (_locks, _alive, _failed, validated_parameters, snapshot_sizes):
        registry.pop(key, None)


def fail_closed(one: Any, error: BaseException) -> None:
    """Reject every further use, except `fit` and `reset`, of an object that an exception left partially updated."""
    lock_of(one)  # the entry is discarded with the object
    _failed[id(one)] = type(error).__name__


def _reject_failed(one: Any) -> None:
    if (error := _failed.get(id(one))) is not None:
        raise StateError(
            f"An update of this {type(one).__name__} failed half-way ({error}): load the model from where it was saved,"
            " or fit it again."
        )


@contextlib.contextmanager
def locked(objects: Iterable[Any]) -> Iterator[None]:
    """Lock several objects; no lock is held while waiting for another one, so there is no deadlock.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.summaries.moments import RunningMoments
    >>> a, b = RunningMoments(2), RunningMoments(2)
    >>> with locked([a, b]):
    ...     _ = a.update(np.ones((1, 2)))
    >>> a.weight
    1.0
    """
    objects = list(objects)
    locks = {id(lock): lock for lock in map(lock_of, objects) if not lock._is_owned()}
    busy = None
    try:
        while (busy := next((lock for lock in locks.values() if not lock.acquire(False)), None)) is not None:
            _release(locks.values())
            with busy:  # wait until it is free
                pass
        for one in objects:
            _reject_failed(one)
        yield
    finally:
        _release(locks.values())


def _release(locks: Iterable[Any]) -> None:
    """Release the locks owned by this thread; an interrupt may have occurred before all were acquired."""
    try:
        for lock in locks:
            if lock._is_owned():
                lock.release()
    except BaseException:
        _release(locks)
        raise


@contextlib.contextmanager
def locked_and_validated(one: ThreadSafe) -> Iterator[None]:
    """Lock a validated object: calls within this context do not check its shapes again.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.summaries.entropy import WindowCounts
    >>> counts = WindowCounts(1, 2)
    >>> with locked_and_validated(counts):
    ...     for code in (0, 1, 1):
    ...         counts.update(np.zeros((1, 1)), np.array([code]))
    >>> counts.class_counts
    array([1, 2])
    """
    with lock_of(one):
        one._reject_invalid_state()
        yield


class ThreadSafe:
    """A class whose objects are used by one thread at a time; other threads wait."""

    _shapes: str = ""  # of the arrays that the class itself adds
    _state_spec: Shapes | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        shapes = "  ".join(vars(owner).get("_shapes", "") for owner in reversed(cls.__mro__))
        cls._state_spec = Shapes(shapes) if shapes.strip() else None
        for name, member in list(vars(cls).items()):
            if name.startswith("_") and name != "_get_support_mask":
                continue
            if isinstance(member, property):
                setattr(
                    cls, name, property(_exclusive(member.fget), member.fset, member.fdel, member.__doc__)
                )
            elif inspect.isfunction(member):
                setattr(cls, name, _exclusive(member, of_two=name == "merge"))
            elif hasattr(member, "fn"):  # scikit-learn's available_if
                member.fn = _exclusive(member.fn)

    def _reject_invalid_state(self) -> None:
        if _failed:
            _reject_failed(self)
        if self._state_spec is not None:
            self._state_spec.check(self)

    def __copy__(self) -> Any:
        twin: Any = object.__new__(type(self))
        with (lock := lock_of(self)):
            _reject_failed(self)
            vars(twin).update(vars(self))
        _register(twin, lock)  # both share their arrays
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        with lock_of(self):
            _reject_failed(self)
            twin: Any = object.__new__(type(self))
            memo[id(self)] = twin
            vars(twin).update({name: copy.deepcopy(part, memo) for name, part in vars(self).items()})
        return twin

    def __getstate__(self) -> Any:
        with lock_of(self):
            _reject_failed(self)
            state: Any = super().__getstate__()
            # Pickle reads the state after this returns, when another thread may write again.
            return copy.deepcopy(state) if threading.active_count() > 1 else state


def _exclusive(method: Any, *, of_two: bool = False) -> Any:
    """Wrap a method to run exclusively on its object, or on both objects."""

    resets = method.__name__ in ("fit", "reset")  # independent of the current arrays

    @functools.wraps(method)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        lock = _locks.get(id(self)) or lock_of(self)
        if lock._is_owned():
            return method(self, *args, **kwargs)
        with lock:  # implemented in C: no interrupt can occur between acquiring it and entering the block
            if resets:
                return _run_reset(self, method, args, kwargs)
            if _failed:
                _reject_failed(self)
            if self._state_spec is not None:
                self._state_spec.check(self)
            try:
                return method(self, *args, **kwargs)
            except SystemError as error:
                raise _raised_in_kernel(error) from None

    @functools.wraps(method)
    def together(self: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        with locked([self, other]) if isinstance(other, ThreadSafe) else lock_of(self):
            for one in (self, other):
                if isinstance(one, ThreadSafe):
                    one._reject_invalid_state()
            return method(self, other, *args, **kwargs)

    return together if of_two else alone


def _run_reset(one: Any, method: Any, args: Any, kwargs: Any) -> Any:
    found = method(one, *args, **kwargs)
    _failed.pop(id(one), None)
    return found


def _raised_in_kernel(error: SystemError) -> BaseException:
    """Return the exception of a signal's handler that was called while a kernel ran: "returned a result with ..."."""
    cause: BaseException | None = error
    while isinstance(cause, SystemError):  # one for each kernel that called another
        cause = cause.__cause__ or cause.__context__
    return cause if isinstance(cause, KeyboardInterrupt) else error
