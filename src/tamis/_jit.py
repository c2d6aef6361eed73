"""How kernels are compiled: lazily, serial, releasing the GIL, cached where a cache can be written."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

__all__ = ["njit"]

P = ParamSpec("P")
R = TypeVar("R")

# The part of fast-math that keeps NaN and Inf visible: sums may be reordered, nothing is assumed finite.
_FAST = {"reassoc", "contract", "nsz", "arcp"}


class _Kernel:
    """A function that is compiled when it is first called, then replaced by it wherever it was imported."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.options = options

    def compiled(self) -> Any:
        import numba

        # A kernel that another kernel calls must be compiled before its caller.
        scope = self.function.__globals__
        for name in self.function.__code__.co_names:
            if isinstance(callee := scope.get(name), _Kernel) and callee is not self:
                scope[name] = callee.compiled()
        try:
            kernel = numba.njit(cache=True, nogil=True, **self.options)(self.function)
            _forgive_a_full_disk(kernel)
        except RuntimeError:  # no folder for the cache can be written
            kernel = numba.njit(nogil=True, **self.options)(self.function)
        importing = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("tamis.")]
        for names in (scope, *importing):
            if names.get(self.function.__name__) is self:
                names[self.function.__name__] = kernel
        self.compiled = lambda: kernel  # type: ignore[method-assign]
        return kernel

    def __call__(self, *args: Any) -> Any:
        return self.compiled()(*args)


def _forgive_a_full_disk(kernel: Any) -> None:
    """Go on with a kernel that is compiled but cannot be cached."""
    cache = getattr(kernel, "_cache", None)
    write = getattr(cache, "save_overload", None)
    if write is None:  # the JIT is switched off
        return

    def write_if_possible(*overload: Any) -> None:
        with contextlib.suppress(OSError):
            write(*overload)

    cache.save_overload = write_if_possible  # type: ignore[union-attr]


def njit(*, strict: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a kernel on its first call.

    Parameters
    ----------
    strict : bool
        True keeps the order of floating-point operations as written, where a batch is to equal its rows one at a time,
        or a fast version its twin, bit for bit. False lets the compiler reorder sums: about twice as fast over long
        rows, and right where a result is promised up to rounding, or no sum is long enough to be reordered.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        options = {} if strict else {"fastmath": _FAST}
        return cast("Callable[P, R]", _Kernel(function, options))

    return decorate
