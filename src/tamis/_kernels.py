"""Compilation of kernels: lazy, serial, without the GIL, cached if a cache can be written."""

# mypy: allow-untyped-calls

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from enum import EnumType
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from tamis._interrupts import ignore_os_errors
from tamis._kernel_pack import installed_pack

P = ParamSpec("P")
R = TypeVar("R")

# The part of fast-math that keeps NaN and infinity visible: sums may be reordered, values may be non-finite.
_FAST = {"reassoc", "contract", "nsz", "arcp"}


class _Kernel:
    """A function that is compiled on its first call, and then replaced by the kernel wherever it was imported."""

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.options = options

    def compiled(self) -> Any:
        """Return the kernel for calls from Python; it replaces this object wherever it was imported."""
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
        """The kernel for calls from kernels, without a Python wrapper or separate machine code."""
        kernel = self._compile(
            ".inner", no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=self._reorders,
            pipeline_class=bitcode_compiler(),
        )  # fmt: skip
        if hasattr(kernel, "get_call_template"):  # the JIT is enabled
            _compile_once_for_all_constants(kernel)
        return kernel

    @property
    def _reorders(self) -> bool:
        """Whether the compiler may reorder sums. Such a kernel is inlined into each kernel that calls it.

        Otherwise several versions would exist: a separate one, and one in the file of each caller. Each is optimised
        separately and may differ in the last bits, and which one runs would depend on the history of the process.
        """
        return bool(self.options["fastmath"])

    @functools.cached_property
    def _dependencies(self) -> dict[str, Any]:
        """The other kernels and the constants that the kernel uses, whether compiled or not."""
        scope = self.function.__globals__
        mapping = {name: scope[name] for name in self.function.__code__.co_names if name in scope}
        mapping = {name: getattr(value, "of_kernel", value) for name, value in mapping.items()}
        return {name: value for name, value in mapping.items() if value is not self}

    @functools.cached_property
    def _digest(self) -> str:
        """A hash of the kernel's code and of all kernels and constants that it uses, in any module.

        Numba checks the file of a kernel alone, so after a change of an inlined kernel in another file it would load an
        outdated version from the cache.
        """
        code = self.function.__code__
        parts = [code.co_code.hex(), repr(code.co_consts), repr(code.co_names)]
        parts += [f"{self._reorders} {self.options['_nrt']}"]
        for name, value in self._dependencies.items():
            if isinstance(value, _Kernel):
                parts.append(f"{name}: {value._digest}")
            elif isinstance(value, int | float | str | tuple | np.generic | np.ndarray):
                parts.append(f"{name} = {value if not isinstance(value, np.ndarray) else value.tolist()!r}")
            elif isinstance(value, EnumType):
                parts.append(f"{name} = {list(value)!r}")
            elif hasattr(value, "_fields"):  # a NamedTuple
                parts.append(f"{name} = {value._fields}")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    def _compile(self, suffix: str = "", **options: Any) -> Any:
        numba = _import_numba()
        own, scope = self.function, dict(self.function.__globals__)
        for name, callee in self._dependencies.items():
            if isinstance(callee, _Kernel):
                scope[name] = callee.inner
        function = FunctionType(own.__code__, scope, own.__name__, own.__defaults__)
        # The name determines the file name in the cache.
        functools.update_wrapper(function, own).__qualname__ += f"{suffix}.{self._digest}"
        options = {"nogil": True, **self.options, **options}
        try:
            kernel = numba.njit(cache=True, **options)(function)
            _guard_cache(kernel)
        except RuntimeError:  # no writable folder for the cache
            kernel = numba.njit(**options)(function)
        if not suffix:
            _read_pack_first(kernel, f"{own.__module__}.{function.__qualname__}")
        scope[own.__name__] = kernel  # a kernel may call itself
        return kernel

    def __call__(self, *args: Any) -> Any:
        with _collecting_no_garbage():
            return self.compiled()(*args)


class _Compilation:
    """The seconds that this process spent on importing Numba, and compiling kernels or loading them from the cache."""

    seconds = 0.0


compilation = _Compilation()


@functools.cache
def _import_numba() -> Any:
    """Import Numba when the first kernel is compiled, and measure its compilation from then on."""
    begin = time.perf_counter()
    import numba
    from numba.core import event

    class Listener(event.TimingListener):
        def on_end(self, event: Any) -> None:
            super().on_end(event)
            compilation.seconds = importing + (self.duration if self.done else 0.0)

    event.register("numba:compiler_lock", Listener())
    importing = compilation.seconds = time.perf_counter() - begin
    return numba


@contextlib.contextmanager
def _collecting_no_garbage() -> Iterator[None]:
    """Suspend garbage collection, which takes a tenth of the compilation time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _compile_once_for_all_constants(kernel: Any) -> None:
    """Treat literal numbers in calls as variables: Numba would compile the kernel again for each value."""
    from numba.core.types.misc import unliteral

    template = kernel.get_call_template

    def template_of_any(args: Any, kws: Any) -> Any:
        return template(tuple(map(unliteral, args)), kws)

    kernel.get_call_template = template_of_any


def _guard_cache(kernel: Any) -> None:
    """Compile a kernel whose cached code names a module that was moved, and continue if it cannot be cached."""
    cache: Any = getattr(kernel, "_cache", None)
    if cache is None:  # the JIT is disabled
        return
    read, write = cache.load_overload, cache.save_overload

    def read_if_possible(*overload: Any) -> Any:
        with contextlib.suppress(ImportError):
            return read(*overload)

    def write_if_possible(*overload: Any) -> None:
        with ignore_os_errors():
            write(*overload)

    cache.load_overload, cache.save_overload = read_if_possible, write_if_possible


def _read_pack_first(kernel: Any, name: str) -> None:
    """Look for a kernel in the installed pack, then in the user's cache."""
    cache = getattr(kernel, "_cache", None)
    if cache is None:  # the JIT is disabled
        return
    read_cache = cache.load_overload

    def read(signature: Any, target_context: Any) -> Any:
        packed = installed_pack().load(name, signature, target_context)
        return read_cache(signature, target_context) if packed is None else packed

    cache.load_overload, kernel.pack_name = read, name


def is_compiled(kernel: Any, signature: Any) -> bool:
    """Return whether a kernel needs no compilation for the types of its arguments, or could not store its code."""
    cache = getattr(kernel, "_cache", None)
    if cache is None or cache.cache_path is None:
        return True
    if kernel.pack_name + str(signature) in installed_pack().kernels:
        return True
    return cache._index_key(signature, kernel.targetctx.codegen()) in cache._cache_file._load_index()


def njit(*, strict: bool = False, allocates: bool = True) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a kernel on its first call.

    Parameters
    ----------
    strict : bool
        True preserves the order of floating-point operations, for kernels in which a batch must equal its rows one at
        a time, or a fast version its twin, bit for bit. False lets the compiler reorder sums: about twice as fast over
        long rows, and valid if results are guaranteed up to rounding, or no sum is long enough to be reordered. In both
        cases every process computes the same bits.
    allocates : bool
        False for a kernel that creates no array: array references are then not counted. In small kernels that read
        arrays from tuples for each row, counting dominates the time.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        # Both are always set: otherwise a kernel inherits them from its first caller.
        options: dict[str, Any] = {"fastmath": False if strict else _FAST, "_nrt": allocates}
        return cast("Callable[P, R]", _Kernel(cast("FunctionType", function), options))

    return decorate


@njit(strict=True)
def overwrite(target: Any, values: Any) -> None:
    """Copy a vector into another one.

    In a kernel, ``target[:] = values`` takes three seconds longer to compile, because the message for vectors of
    different lengths is built by compiled code.
    """
    for i in range(target.shape[0]):
        target[i] = values[i]


# -- arrays by their addresses -----------------------------------------------------------------------------------
#
# An argument of a kernel takes 0.1 us. A kernel that reads hundreds of arrays receives a table of their addresses; its
# caller keeps the arrays alive.


class _OfNumba(_Kernel):
    """A function for kernels that needs Numba, which is imported when the first kernel is compiled."""

    def __init__(self, function: Any, make: Callable[[], Any]) -> None:
        super().__init__(function, {"fastmath": False, "_nrt": True})
        self.make = make

    @functools.cached_property
    def inner(self) -> Any:
        from numba import config

        return self.function if getattr(config, "DISABLE_JIT", 0) else self.make()


def _int_to_pointer() -> Any:
    from numba.core import types
    from numba.core.cgutils import voidptr_t
    from numba.extending import intrinsic

    def pointer_to(_: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], voidptr_t)

        return types.voidptr(address), generate

    return intrinsic(pointer_to)


def _numba_carray() -> Any:
    import numba

    return numba.carray  # type: ignore[attr-defined]


def _address(address: int) -> int:
    """Return the pointer for `carray` to an address."""
    return address


def _array_at(address: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the C-contiguous array at a pointer."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(int(address))
    return np.frombuffer(memory, dtype).reshape(shape)


pointer: Any = _OfNumba(_address, _int_to_pointer)
carray: Any = _OfNumba(_array_at, _numba_carray)


# -- kernels that only kernels call -----------------------------------------------------------------------------
#
# Numba optimises every kernel and generates machine code for it; a kernel that calls it inlines it and does both again.
# In a chain of five calls the innermost kernel is compiled five times, and only the last version is ever run. Such a
# kernel is therefore stored as bitcode, without machine code.


@functools.cache
def bitcode_compiler() -> Any:
    """Return Numba's compiler for kernels that are called only by kernels.

    It overrides two private methods of Numba. With a release that lacks them, kernels are compiled as usual.
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
        """The library of a kernel to be inlined."""

        def _optimize_final_module(self) -> None:
            """Do nothing: the kernel that inlines it is optimised."""

        def _finalize_final_module(self) -> None:
            """Define the variables that Numba sets in every kernel, without other machine code."""
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
