"""One call at a time on one object: kernels let go of the GIL, so two threads would write into the same arrays.

A public method or property of a :class:`Guarded` class waits until no other thread is inside the same object. Locks are
kept beside the objects, not in them: a copy, a pickle, a clone and a saved file know nothing of them.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["Guarded", "held"]

_TURN = 2e-5  # seconds in which a thread that waits is sure to get its turn


class _Lock:
    """A lock that one thread may take again, and that it leaves to those who wait when it has done."""

    __slots__ = ("_lock", "_waiting")

    def __init__(self) -> None:
        self._lock, self._waiting = threading.RLock(), 0

    def take(self) -> bool:
        """Take the lock if it is free; return whether it was."""
        return self._lock.acquire(blocking=False)

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._wait(1)
            try:
                self._lock.acquire()
            finally:
                self._wait(-1)

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if self._waiting and not self._lock._is_owned():  # type: ignore[attr-defined]
            time.sleep(_TURN)  # else a thread that calls again at once would always be the first

    def _wait(self, n: int) -> None:
        with _making:
            self._waiting += n


_locks: dict[int, _Lock] = {}  # by id, as long as the object lives
_alive: dict[int, weakref.ref[Any]] = {}
_making = threading.Lock()


def _forget_all() -> None:
    """Forget the locks in a child process: the threads that held them are not there."""
    global _making
    _locks.clear()
    _making = threading.Lock()


os.register_at_fork(after_in_child=_forget_all)


def _lock_of(one: Any) -> _Lock:
    key = id(one)
    if (lock := _locks.get(key)) is not None:
        return lock
    with _making:
        if key not in _locks:
            _alive[key] = weakref.ref(one, lambda _: (_locks.pop(key, None), _alive.pop(key, None)))
            _locks[key] = _Lock()
        return _locks[key]


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
    locks = [_lock_of(one) for one in objects]
    while True:
        with contextlib.ExitStack() as stack:
            for lock in locks:
                if not lock.take():
                    break
                stack.push(lock)
            else:
                yield
                return
        with lock:  # until it is free
            pass


class Guarded:
    """A class whose objects are used by one thread at a time; a second thread waits."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, member in list(vars(cls).items()):
            if name.startswith("_") and name != "_get_support_mask":
                continue
            if isinstance(member, property):
                setattr(cls, name, property(_alone(member.fget), member.fset, member.fdel, member.__doc__))
            elif inspect.isfunction(member):
                setattr(cls, name, _alone(member, of_two=name == "merge"))
            elif hasattr(member, "fn"):  # scikit-learn's available_if
                member.fn = _alone(member.fn)

    def __copy__(self) -> Any:
        twin: Any = object.__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        with _lock_of(self):
            twin: Any = object.__new__(type(self))
            memo[id(self)] = twin
            vars(twin).update({name: copy.deepcopy(part, memo) for name, part in vars(self).items()})
        return twin

    def __getstate__(self) -> Any:
        with _lock_of(self):
            state: Any = super().__getstate__()
            # What is pickled is read after this returns, when another thread may write again.
            return copy.deepcopy(state) if threading.active_count() > 1 else state


def _alone(method: Any, *, of_two: bool = False) -> Any:
    """Return the method so that it waits for other threads to leave the object, or both objects."""

    @functools.wraps(method)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _locks.get(id(self)) or _lock_of(self):
            return method(self, *args, **kwargs)

    @functools.wraps(method)
    def together(self: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        with held([self, other]) if isinstance(other, Guarded) else _lock_of(self):
            return method(self, other, *args, **kwargs)

    return together if of_two else alone
