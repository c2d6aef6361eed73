"""Kernels that only kernels call: kept as bitcode, never made into machine code by themselves.

Numba optimises every kernel by itself and makes machine code of it. Then a kernel that calls it takes it in, and does
both again for all that it is made of. In a chain of five calls the innermost kernel is compiled five times, and only
the last is ever run. So nothing is done here but what the next kernel needs.
"""
# mypy: allow-untyped-calls

from __future__ import annotations

import functools
from typing import Any

__all__ = ["bitcode_compiler"]


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
