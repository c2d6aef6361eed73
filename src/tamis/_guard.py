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
import math
import os
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, cast

from tamis._shapes import Shapes, SizedState
from tamis.errors import StateError


class _Record:
    """Data about an object other than its attributes, for its lifetime."""

    __slots__ = ("addresses", "failure", "lock", "pace", "passed_parameters", "reference", "snapshot_size")

    def __init__(self, reference: weakref.ref[Any], lock: Any) -> None:
        self.reference = reference
        self.lock = lock
        self.failure: str | None = None  # the exception that left the object partially updated
        self.passed_parameters: tuple[Any, ...] | None = None
        self.addresses: Any = None  # a table of its arrays for kernels that read many
        self.snapshot_size = sys.maxsize  # bytes of its arrays when they were last copied
        self.pace = math.inf  # nanoseconds of its fastest update for each byte of the batch


_records: dict[int, _Record] = {}  # by id


def _renew_locks() -> None:
    """Replace the locks in a child process: the threads that held them do not exist there."""
    new: dict[Any, Any] = {}
    for record in list(_records.values()):
        record.lock = new.setdefault(record.lock, threading.RLock())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def record_of(one: Any) -> _Record:
    """Return the record of an object."""
    record = _records.get(id(one))
    return _register(one, threading.RLock()) if record is None else record


def lock_of(one: Any) -> Any:
    """Return the lock of an object."""
    return record_of(one).lock


def _register(one: Any, lock: Any) -> _Record:
    """Make a record for the lifetime of an object unless it has one; return its record."""
    key = id(one)
    # Implemented in C: an exception of a signal handler within a Python callback would be lost.
    record = _Record(weakref.ref(one, partial(_records.pop, key)), lock)
    return _records.setdefault(key, record)  # atomic, without a lock that a signal handler could wait for


@functools.cache
def cache_names(cls: type) -> frozenset[str]:
    """Return the names of the cached properties of a class: computed when first read, and no part of the state."""
    members = [item for base in cls.__mro__ for item in vars(base).items()]
    return frozenset(name for name, member in members if isinstance(member, functools.cached_property))


def state_of(one: Any) -> dict[str, Any]:
    """Return the attributes of an object without its cached properties."""
    cls: type = type(one)
    caches = cache_names(cls)
    return {name: part for name, part in vars(one).items() if name not in caches} if caches else vars(one)


def fail_closed(one: Any, error: BaseException) -> None:
    """Reject every further use, except `fit` and `reset`, of an object that an exception left partially updated."""
    record_of(one).failure = type(error).__name__


def _reject_failed(one: Any) -> None:
    if (record := _records.get(id(one))) is not None and record.failure is not None:
        raise StateError(
            f"An update of this {type(one).__name__} failed ({record.failure}): load the model from where it"
            " was saved, or fit it again."
        )


@contextlib.contextmanager
def locked(objects: Iterable[Any]) -> Iterator[None]:
    """Lock several objects; no lock is held while waiting for another one, which prevents deadlocks.

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
        try:
            while (
                busy := next((lock for lock in locks.values() if not lock.acquire(False)), None)
            ) is not None:
                _release(locks.values())
                with busy:  # wait until it is free
                    pass
            for one in objects:
                _reject_failed(one)
            yield
        finally:
            _release(locks.values())
    finally:  # again, since a signal handler may have raised in the first one
        _release(locks.values())


def _release(locks: Iterable[Any]) -> None:
    """Release the locks owned by this thread."""
    for lock in locks:
        if lock._is_owned():
            lock.release()


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
    _state_spec: Any = None  # a `Shapes`, if any are declared

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
                member.fn = _exclusive(member.fn, of_two=name == "merge")

    def _reject_invalid_state(self) -> None:
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
            vars(twin).update({name: copy.deepcopy(part, memo) for name, part in state_of(self).items()})
        return twin

    def __getstate__(self) -> Any:
        with lock_of(self):
            _reject_failed(self)
            state, cls = cast("Any", super().__getstate__()), cast("type", type(self))
            for name in cache_names(cls) & state.keys() if state else ():
                state.pop(name)
            # Pickle reads the state after this returns, when another thread may write again.
            return copy.deepcopy(state) if threading.active_count() > 1 else state


def _exclusive(method: Any, *, of_two: bool = False) -> Any:
    """Wrap a method to run exclusively on its object, or on both objects."""

    resets = method.__name__ in ("fit", "reset")  # independent of the current arrays

    @functools.wraps(method)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        record = _records.get(id(self)) or record_of(self)
        if record.lock._is_owned():
            return method(self, *args, **kwargs)
        # Implemented in C: no interrupt can occur between acquiring the lock and entering the block.
        with record.lock:
            try:
                if resets:
                    returned = method(self, *args, **kwargs)
                    record.failure = None
                    return returned
                if record.failure is not None:
                    _reject_failed(self)
                if self._state_spec is not None:
                    self._state_spec.check(self)
                return method(self, *args, **kwargs)
            except SystemError as error:
                raise _raised_in_kernel(error) from None

    @functools.wraps(method)
    def together(self: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        with locked([self, other]) if isinstance(other, ThreadSafe) else lock_of(self):
            for one in (self, other):
                if isinstance(one, ThreadSafe):
                    one._reject_invalid_state()
            try:
                return method(self, other, *args, **kwargs)
            except SystemError as error:
                raise _raised_in_kernel(error) from None

    return together if of_two else alone


def _raised_in_kernel(error: SystemError) -> BaseException:
    """Return the exception of a signal handler, or of another thread, that was raised within a kernel."""
    cause: BaseException | None = error
    in_kernel = False
    while isinstance(cause, SystemError):  # one per nested kernel
        in_kernel = in_kernel or "returned a result with an exception set" in str(cause)
        cause = cause.__cause__ or cause.__context__
    return cause if in_kernel and cause is not None else error


class ThreadSafeState(ThreadSafe, SizedState):
    """A state with axes of features or classes that is used by one thread at a time."""

    grow, reorder, widen, forget = SizedState.grow, SizedState.reorder, SizedState.widen, SizedState.forget


# -- threads of libraries --------------------------------------------------------------------------------------

_FEW_VALUES = 500_000  # up to which boosting uses one thread
_BOOSTING = ("sklearn.ensemble._hist_gradient_boosting", "lightgbm", "xgboost")


def limited_threads(n_values: int) -> contextlib.AbstractContextManager[object]:
    """Return a context in which boosting uses one thread for small data.

    Several threads gain little there; and on a busy machine, or in a container with fewer processors than it shows,
    each waits for the others in a loop that takes several times the processor time of the work.
    """
    if n_values >= _FEW_VALUES:
        return contextlib.nullcontext()
    return _openmp(tuple(name in sys.modules for name in _BOOSTING)).limit(limits=1)


@functools.cache
def _openmp(loaded: tuple[bool, ...]) -> Any:
    """Return what controls the threads of the libraries that are loaded; finding them takes a millisecond."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="openmp")
