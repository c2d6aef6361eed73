"""How kernels are compiled: lazily, serial, releasing the GIL, cached where a cache can be written."""

# mypy: allow-untyped-calls

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

__all__ = ["njit", "overwrite"]

P = ParamSpec("P")
R = TypeVar("R")

# The part of fast-math that keeps NaN and Inf visible: sums may be reordered, nothing is assumed finite.
_FAST = {"reassoc", "contract", "nsz", "arcp"}


class _Kernel:
    """A function that is compiled when it is first called, then replaced by it wherever it was imported."""

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.options = options

    def compiled(self) -> Any:
        """Return the kernel as Python calls it, which takes the place of this object wherever it was imported."""
        kernel = self._compile()
        kernel.of_kernel = self
        importing = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("tamis.")]
        for names in (self.function.__globals__, *importing):
            if names.get(self.function.__name__) is self:
                names[self.function.__name__] = kernel
        self.compiled = lambda: kernel  # type: ignore[method-assign]
        return kernel

    @functools.cached_property
    def inner(self) -> Any:
        """The kernel as kernels call it, without what unpacks Python's arguments or machine code of its own."""
        kernel = self._compile(
            ".inner", no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=self._reorders,
            pipeline_class=bitcode_compiler(),
        )  # fmt: skip
        if hasattr(kernel, "get_call_template"):  # the JIT is not switched off
            _compile_once_for_all_constants(kernel)
        return kernel

    @property
    def _reorders(self) -> bool:
        """Whether the compiler may reorder sums. Such a kernel is part of each kernel that calls it.

        If it were called, there would be several of it: one by itself, and one in the file of each caller. Each is
        optimised by itself and may have last bits of its own. Which one runs depends on what the process did before.
        """
        return bool(self.options["fastmath"])

    @functools.cached_property
    def _used(self) -> dict[str, Any]:
        """The other kernels and the constants that the kernel reads, whether they are compiled yet or not."""
        scope = self.function.__globals__
        mapping = {name: scope[name] for name in self.function.__code__.co_names if name in scope}
        mapping = {name: getattr(value, "of_kernel", value) for name, value in mapping.items()}
        return {name: value for name, value in mapping.items() if value is not self}

    @functools.cached_property
    def _digest(self) -> str:
        """What the kernel is made of: its code, and the kernels and constants that it reads, wherever they stand.

        Numba looks at the file of a kernel alone. It would take one from the cache as it was before a kernel of another
        file changed that is part of it.
        """
        code = self.function.__code__
        parts = [code.co_code.hex(), repr(code.co_consts), repr(code.co_names)]
        parts += [f"{self._reorders} {self.options['_nrt']}"]
        for name, value in self._used.items():
            if isinstance(value, _Kernel):
                parts.append(f"{name}: {value._digest}")
            elif isinstance(value, int | float | str | tuple | np.generic | np.ndarray):
                parts.append(f"{name} = {value if not isinstance(value, np.ndarray) else value.tolist()!r}")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    def _compile(self, suffix: str = "", **options: Any) -> Any:
        import numba

        own, scope = self.function, dict(self.function.__globals__)
        for name, callee in self._used.items():
            if isinstance(callee, _Kernel):
                scope[name] = callee.inner
        function = FunctionType(own.__code__, scope, own.__name__, own.__defaults__)
        # Its name is that of its file in the cache.
        functools.update_wrapper(function, own).__qualname__ += f"{suffix}.{self._digest}"
        options = {"nogil": True, **self.options, **options}
        try:
            kernel = numba.njit(cache=True, **options)(function)
            _forgive_a_full_disk(kernel)
        except RuntimeError:  # no folder for the cache can be written
            kernel = numba.njit(**options)(function)
        scope[own.__name__] = kernel  # a kernel may call itself
        return kernel

    def __call__(self, *args: Any) -> Any:
        with _collecting_no_garbage():
            return self.compiled()(*args)


@contextlib.contextmanager
def _collecting_no_garbage() -> Iterator[None]:
    """Leave the garbage for later: a tenth of the time of compiling goes into looking for it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _compile_once_for_all_constants(kernel: Any) -> None:
    """Take a number that is written out in a call for any number: Numba would compile the kernel again for each."""
    from numba.core.types.misc import unliteral

    template = kernel.get_call_template

    def template_of_any(args: Any, kws: Any) -> Any:
        return template(tuple(map(unliteral, args)), kws)

    kernel.get_call_template = template_of_any


def _forgive_a_full_disk(kernel: Any) -> None:
    """Continue with a kernel that is compiled but cannot be cached."""
    cache = getattr(kernel, "_cache", None)
    write = getattr(cache, "save_overload", None)
    if write is None:  # the JIT is switched off
        return

    def write_if_possible(*overload: Any) -> None:
        with contextlib.suppress(OSError):
            write(*overload)

    cache.save_overload = write_if_possible  # type: ignore[union-attr]


def njit(*, strict: bool = False, allocates: bool = True) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a kernel on its first call.

    Parameters
    ----------
    strict : bool
        True keeps the order of floating-point operations as written, where a batch is to equal its rows one at a time,
        or a fast version its twin, bit for bit. False lets the compiler reorder sums: about twice as fast over long
        rows, and right where a result is promised up to rounding, or no sum is long enough to be reordered. Either way
        every process has the same bits.
    allocates : bool
        False for a kernel that makes no array: references to arrays are not counted then. Where small kernels take
        arrays from tuples for each row, counting them is most of what they do.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        # Both are said always: a kernel that does not say takes it from the kernel that calls it first.
        options: dict[str, Any] = {"fastmath": False if strict else _FAST, "_nrt": allocates}
        return cast("Callable[P, R]", _Kernel(cast("FunctionType", function), options))

    return decorate


@njit(strict=True)
def overwrite(target: Any, values: Any) -> None:
    """Copy a vector over another one.

    In a kernel, ``target[:] = values`` costs three seconds more to compile: the message of the error that vectors of
    two lengths would cause is made by compiled code.
    """
    for i in range(target.shape[0]):
        target[i] = values[i]


# -- kernels that only kernels call -----------------------------------------------------------------------------
#
# Numba optimises every kernel by itself and makes machine code of it; a kernel that calls it inlines it and does both
# again. In a chain of five calls the innermost kernel is compiled five times, and only the last is ever run. So such a
# kernel is kept as bitcode, without machine code of its own.


@functools.cache
def bitcode_compiler() -> Any:
    """Return Numba's compiler as it is for kernels that only kernels call.

    It has two private methods of Numba's in another form. A release of Numba without them compiles as it always did.
    """
    from numba.core.compiler import Compiler

    try:
        from numba.core.codegen import JITCodeLibrary, ll, llvmir  # type: ignore[attr-defined]
    except ImportError:
        return Compiler
    if not all(
        hasattr(JITCodeLibrary, name) for name in ("_optimize_final_module", "_finalize_final_module")
    ):
        return Compiler

    class Bitcode(JITCodeLibrary):
        """A kernel for other kernels to take in."""

        def _optimize_final_module(self) -> None:
            """Leave it to the kernel that takes it in and is called by Python."""

        def _finalize_final_module(self) -> None:
            """Make room for the variables that Numba sets in every kernel, and machine code of nothing else."""
            kernel = self._final_module
            variables = self._codegen._create_empty_module(kernel.name)
            for variable in kernel.global_variables:
                if variable.linkage == ll.Linkage.common:
                    own = llvmir.GlobalVariable(variables, llvmir.IntType(8).as_pointer(), variable.name)
                    own.linkage, own.initializer = "common", llvmir.Constant(own.type.pointee, None)
            self._final_module = ll.parse_assembly(str(variables))
            super()._finalize_final_module()
            self._final_module = kernel

    class BitcodeCompiler(Compiler):
        def define_pipelines(self) -> Any:
            library = Bitcode(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            library.enable_object_caching()
            self.state.library = library
            return super().define_pipelines()

    return BitcodeCompiler
