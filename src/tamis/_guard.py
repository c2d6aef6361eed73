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
import time
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from tamis._shapes import Shapes

__all__ = ["Guarded", "held", "lock_of", "looked_at"]

_TURN = 2e-5  # seconds in which a thread that waits is sure to get its turn


class _Lock:
    """A lock that one thread may take again, and that it leaves to those who wait when it has done."""

    __slots__ = ("_lock", "acquire", "depth", "passed", "release", "waiting")

    def __init__(self) -> None:
        self._lock, self.waiting = threading.RLock(), 0
        self.acquire, self.release = self._lock.acquire, self._lock.release
        self.depth = 0  # how often the thread that has the lock took it
        self.passed: tuple[Any, ...] = ()  # the parameters that were found good

    def take(self) -> bool:
        """Take the lock if it is free; return whether it was."""
        is_free = self.acquire(False)
        self.depth += is_free
        return is_free

    def __enter__(self) -> int:
        if not self.acquire(False):
            self.wait()
        self.depth += 1
        return self.depth

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        self.release()
        if self.waiting:
            self.give_way()

    def wait(self) -> None:
        """Wait until the lock is free, and take it."""
        self._count(1)
        try:
            self.acquire()
        finally:
            self._count(-1)

    def give_way(self) -> None:
        """Let those who wait have their turn: a thread that calls again at once would always be the first."""
        if not self._lock._is_owned():  # type: ignore[attr-defined]
            time.sleep(_TURN)

    def _count(self, n: int) -> None:
        with _making:
            self.waiting += n


_locks: dict[int, _Lock] = {}  # by id, as long as the object lives
_alive: dict[int, weakref.ref[Any]] = {}
_making = threading.Lock()


def _forget_all() -> None:
    """Forget the locks in a child process: the threads that held them are not there."""
    global _making
    _locks.clear()
    _making = threading.Lock()


os.register_at_fork(after_in_child=_forget_all)


def lock_of(one: Any) -> _Lock:
    """Return what is kept beside an object."""
    lock = _locks.get(id(one))
    return _keep(one, _Lock()) if lock is None else lock


def _keep(one: Any, lock: _Lock) -> _Lock:
    """Keep a lock beside an object as long as it lives, unless it has one; return the one it has."""
    key = id(one)
    with _making:
        if key not in _locks:
            _alive[key] = weakref.ref(one, lambda _: (_locks.pop(key, None), _alive.pop(key, None)))
            _locks[key] = lock
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
    locks = [lock_of(one) for one in objects]
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
    with lock_of(one) as depth:
        if depth == 1 and one._fit_together is not None:
            one._fit_together.check(one)
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

    def __copy__(self) -> Any:
        twin: Any = object.__new__(type(self))
        with (lock := lock_of(self)):
            vars(twin).update(vars(self))
        _keep(twin, lock)  # they have their arrays in common
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        with lock_of(self):
            twin: Any = object.__new__(type(self))
            memo[id(self)] = twin
            vars(twin).update({name: copy.deepcopy(part, memo) for name, part in vars(self).items()})
        return twin

    def __getstate__(self) -> Any:
        with lock_of(self):
            state: Any = super().__getstate__()
            # What is pickled is read after this returns, when another thread may write again.
            return copy.deepcopy(state) if threading.active_count() > 1 else state


def _alone(method: Any, *, of_two: bool = False) -> Any:
    """Return the method so that it waits for other threads to leave the object, or both objects."""

    checks = method.__name__ not in ("fit", "reset")  # these forget, whatever the arrays were

    @functools.wraps(method)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        lock = _locks.get(id(self)) or lock_of(self)
        if not lock.acquire(False):
            lock.wait()
        lock.depth += 1  # all this by hand: a `with` takes as long as a small kernel
        try:
            if lock.depth == 1 and checks and self._fit_together is not None:
                self._fit_together.check(self)
            return method(self, *args, **kwargs)
        finally:
            lock.depth -= 1
            lock.release()
            if lock.waiting:
                lock.give_way()

    @functools.wraps(method)
    def together(self: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        with held([self, other]) if isinstance(other, Guarded) else lock_of(self):
            for one in (self, other):
                if isinstance(one, Guarded) and one._fit_together is not None:
                    one._fit_together.check(one)
            return method(self, other, *args, **kwargs)

    return together if of_two else alone
