"""One call at a time on one object: kernels let go of the GIL, so two threads would write into the same arrays.

A public method or property of a :class:`Guarded` class waits until no other thread is inside the same object, and
refuses an object whose arrays do not fit together (`_shapes`). Locks are kept beside the objects, not in them: a deep
copy, a pickle, a clone and a saved file know nothing of them. A shallow copy shares the arrays, and so the lock.
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

__all__ = ["Guarded", "fail_closed", "held", "lock_of", "looked_at", "parameters_passed"]

_locks: dict[int, Any] = {}  # by id, as long as the object lives
_alive: dict[int, weakref.ref[Any]] = {}
_failed: dict[int, str] = {}  # the exception that left an object half updated
parameters_passed: dict[int, tuple[Any, ...]] = {}  # the parameters of an object that were found good
_making = threading.Lock()


def _forget_all() -> None:
    """Forget the locks in a child process: the threads that held them are not there."""
    global _making
    _locks.clear()
    _making = threading.Lock()


os.register_at_fork(after_in_child=_forget_all)


def lock_of(one: Any) -> Any:
    """Return what is kept beside an object."""
    lock = _locks.get(id(one))
    return _keep(one, threading.RLock()) if lock is None else lock


def _keep(one: Any, lock: Any) -> Any:
    """Keep a lock beside an object as long as it lives, unless it has one; return the one it has."""
    key = id(one)
    with _making:
        if key not in _locks:
            _alive[key] = weakref.ref(one, partial(_forget, key))
            _locks[key] = lock
        return _locks[key]


def _forget(key: int, _: Any) -> None:
    for beside in (_locks, _alive, _failed, parameters_passed):
        beside.pop(key, None)


def fail_closed(one: Any, error: BaseException) -> None:
    """Refuse every further use of an object that an exception has left half updated, except what makes it anew."""
    lock_of(one)  # what is kept is forgotten when the object ends
    _failed[id(one)] = type(error).__name__


def _refuse_failed(one: Any) -> None:
    if (error := _failed.get(id(one))) is not None:
        raise StateError(
            f"An update of this {type(one).__name__} failed half-way ({error}): load the model from where it was saved,"
            " or fit it again."
        )


@contextlib.contextmanager
def held(objects: Iterable[Any]) -> Iterator[None]:
    """Hold several objects; nothing is held while one is waited for, so two who hold some cannot wait for each other.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.summaries.moments import RunningMoments
    >>> a, b = RunningMoments(2), RunningMoments(2)
    >>> with held([a, b]):
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
            with busy:  # until it is free
                pass
        for one in objects:
            _refuse_failed(one)
        yield
    finally:
        _release(locks.values())


def _release(locks: Iterable[Any]) -> None:
    """Release those of the locks that this thread has; an interrupt can have come before each was taken."""
    try:
        for lock in locks:
            if lock._is_owned():
                lock.release()
    except BaseException:
        _release(locks)
        raise


@contextlib.contextmanager
def looked_at(one: Guarded) -> Iterator[None]:
    """Hold an object that fits together: what is called within does not look at its shapes again.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.summaries.entropy import WindowCounts
    >>> counts = WindowCounts(1, 2)
    >>> with looked_at(counts):
    ...     for code in (0, 1, 1):
    ...         counts.update(np.zeros((1, 1)), np.array([code]))
    >>> counts.class_counts
    array([1, 2])
    """
    with lock_of(one):
        one._refuse_unfit()
        yield


class Guarded:
    """A class whose objects are used by one thread at a time; a second thread waits."""

    _shapes: str = ""  # of the arrays that the class itself adds
    _fit_together: Shapes | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        shapes = "  ".join(vars(owner).get("_shapes", "") for owner in reversed(cls.__mro__))
        cls._fit_together = Shapes(shapes) if shapes.strip() else None
        for name, member in list(vars(cls).items()):
            if name.startswith("_") and name != "_get_support_mask":
                continue
            if isinstance(member, property):
                setattr(cls, name, property(_alone(member.fget), member.fset, member.fdel, member.__doc__))
            elif inspect.isfunction(member):
                setattr(cls, name, _alone(member, of_two=name == "merge"))
            elif hasattr(member, "fn"):  # scikit-learn's available_if
                member.fn = _alone(member.fn)

    def _refuse_unfit(self) -> None:
        if _failed:
            _refuse_failed(self)
        if self._fit_together is not None:
            self._fit_together.check(self)

    def __copy__(self) -> Any:
        twin: Any = object.__new__(type(self))
        with (lock := lock_of(self)):
            _refuse_failed(self)
            vars(twin).update(vars(self))
        _keep(twin, lock)  # they have their arrays in common
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        with lock_of(self):
            _refuse_failed(self)
            twin: Any = object.__new__(type(self))
            memo[id(self)] = twin
            vars(twin).update({name: copy.deepcopy(part, memo) for name, part in vars(self).items()})
        return twin

    def __getstate__(self) -> Any:
        with lock_of(self):
            _refuse_failed(self)
            state: Any = super().__getstate__()
            # What is pickled is read after this returns, when another thread may write again.
            return copy.deepcopy(state) if threading.active_count() > 1 else state


def _alone(method: Any, *, of_two: bool = False) -> Any:
    """Return the method so that it waits for other threads to leave the object, or both objects."""

    forgets = method.__name__ in ("fit", "reset")  # whatever the arrays were

    @functools.wraps(method)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        lock = _locks.get(id(self)) or lock_of(self)
        if lock._is_owned():
            return method(self, *args, **kwargs)
        with lock:  # of C: no interrupt can come between taking it and being sure to release it
            if forgets:
                return _done_anew(self, method, args, kwargs)
            if _failed:
                _refuse_failed(self)
            if self._fit_together is not None:
                self._fit_together.check(self)
            try:
                return method(self, *args, **kwargs)
            except SystemError as error:
                raise _raised_in_kernel(error) from None

    @functools.wraps(method)
    def together(self: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        with held([self, other]) if isinstance(other, Guarded) else lock_of(self):
            for one in (self, other):
                if isinstance(one, Guarded):
                    one._refuse_unfit()
            return method(self, other, *args, **kwargs)

    return together if of_two else alone


def _done_anew(one: Any, method: Any, args: Any, kwargs: Any) -> Any:
    found = method(one, *args, **kwargs)
    _failed.pop(id(one), None)
    return found


def _raised_in_kernel(error: SystemError) -> BaseException:
    """Return the exception of a signal's handler that was called while a kernel ran: "returned a result with ..."."""
    cause = error.__cause__
    return cause if isinstance(cause, KeyboardInterrupt) else error
