"""How kernels are compiled: lazily, serial, releasing the GIL, cached where a cache can be written."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

__all__ = ["njit"]

P = ParamSpec("P")
R = TypeVar("R")

# The part of fast-math that keeps NaN and Inf visible: sums may be reordered, nothing is assumed finite.
_FAST = {"reassoc", "contract", "nsz", "arcp"}


class _Kernel:
    """A function that is compiled when it is first called, then replaced in its module by the compiled one."""

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
        except RuntimeError:  # no folder for the cache can be written
            kernel = numba.njit(nogil=True, **self.options)(self.function)
        if scope.get(self.function.__name__) is self:
            scope[self.function.__name__] = kernel
        self.compiled = lambda: kernel  # type: ignore[method-assign]
        return kernel

    def __call__(self, *args: Any) -> Any:
        return self.compiled()(*args)


def njit(*, strict: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a kernel on its first call.

    Parameters
    ----------
    strict : bool
        True keeps the order of floating-point operations as written; False lets the compiler reorder sums.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        options = {} if strict else {"fastmath": _FAST}
        return cast("Callable[P, R]", _Kernel(function, options))

    return decorate
