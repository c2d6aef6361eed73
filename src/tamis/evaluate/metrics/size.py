"""The size of a model in bytes: the numbers it contains, without the overhead of Python objects.

The size includes the buffers of all arrays (each once, regardless of the number of views), 8 bytes for each number and
each entry of a container, and the characters of strings. It excludes what depends on the interpreter: object headers,
spare capacity of dictionaries and lists, code, and memory outside of Python's control.
"""

from __future__ import annotations

import sys
import types
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

_NUMBER = 8
_CONTAINERS = (list, tuple, set, frozenset, deque)
_CODE = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)


def state_bytes(*models: Any) -> int:
    """Return the bytes of the numbers in models; shared arrays are counted once.

    Parameters
    ----------
    *models : object
        Estimators, arrays, containers of them; None counts nothing.

    Returns
    -------
    int

    Examples
    --------
    Two columns of a table are views of the same 800 bytes:

    >>> import numpy as np
    >>> table = np.zeros((50, 2))
    >>> state_bytes(table), state_bytes([table[:, 0], table[:, 1]])
    (800, 816)
    """
    total, seen = 0, set()
    todo: list[Any] = list(models)
    kept = []  # temporary objects must be kept alive, or another object may reuse their id
    while todo:
        item = todo.pop()
        if item is None or isinstance(item, _CODE):
            continue
        if isinstance(item, bool | int | float | complex | np.generic):
            total += item.nbytes if isinstance(item, np.generic) else _NUMBER
            continue
        while isinstance(item, np.ndarray) and isinstance(item.base, np.ndarray):
            item = item.base
        if id(item) in seen:
            continue
        seen.add(id(item))
        kept.append(item)
        size, parts = _open(item)
        total += size
        todo.extend(parts)
    return total


def _open(thing: Any) -> tuple[int, Iterable[Any]]:
    """Return the bytes of one object itself, and its contents."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes, thing.ravel().tolist() if thing.dtype.kind == "O" else ()
    if isinstance(thing, str | bytes | bytearray):
        return len(thing), ()
    if isinstance(thing, dict):
        inside = getattr(thing, "__dict__", {})
        return 2 * _NUMBER * len(thing), [*thing.keys(), *thing.values(), *inside.values()]
    if isinstance(thing, _CONTAINERS):
        return _NUMBER * len(thing), list(thing)
    if isinstance(thing, np.random.Generator | np.random.RandomState):
        state = thing.bit_generator.state if isinstance(thing, np.random.Generator) else thing.get_state()
        return 0, [state]
    slots = [name for kind in type(thing).__mro__ for name in _names(kind.__dict__.get("__slots__", ()))]
    attributes = [*vars(thing).values()] if hasattr(thing, "__dict__") else []
    attributes += [getattr(thing, name) for name in slots if hasattr(thing, name)]
    if not attributes:
        return sys.getsizeof(thing), ()  # memory of compiled code, as far as it reports it
    return 0, attributes


def _names(slots: Any) -> tuple[str, ...]:
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))
