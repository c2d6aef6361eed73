"""A pack of compiled kernels that is installed with the package, so that the first run compiles nothing.

The file begins with a line of its format and the SHA-256 of its index. The index, in JSON, states for what the kernels
were compiled, and for each kernel and signature the place and the SHA-256 of its code. The code is what Numba stores in
its own cache, a pickle; therefore nothing is unpickled before its hash was verified. A kernel is found by its module,
its name and the digest of its source, of the kernels that it calls and of the constants that it uses, so a kernel whose
source differs is compiled instead.

A pack is compiled for a level of processors, not for one processor: x86-64-v3 (AVX2 and FMA: most since 2013), or any
64-bit ARM.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import functools
import hashlib
import json
import os
import pickle
import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("kernels.pack")
# The environment variable that, set to 0, neither builds a pack nor reads it.
VARIABLE = "TAMIS_KERNEL_PACK"

_FORMAT = "tamis kernels 1"
# What LLVM calls the features of a level; every 64-bit ARM has those of its own.
_X86_64_V3 = (
    "avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse3", "sse4.1",
    "sse4.2", "ssse3", "xsave",
)  # fmt: skip
_LEVELS = {
    "x86_64": ("x86-64-v3", _X86_64_V3),
    "amd64": ("x86-64-v3", _X86_64_V3),
    "aarch64": ("generic", ()),
    "arm64": ("generic", ()),
}
# Settings of Numba that change the machine code.
_SETTINGS = (
    "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "DISABLE_INTEL_SVML", "ENABLE_AVX", "LOOP_VECTORIZE", "OPT",
    "SLP_VECTORIZE", "USING_SVML",
)  # fmt: skip


def level() -> tuple[str, tuple[str, ...]] | None:
    """Return the level of processors for which this machine compiles a pack, and the features that it requires."""
    return _LEVELS.get(platform.machine().lower())


def setup() -> dict[str, Any]:
    """Return what must be the same where a pack is compiled and where it is used."""
    import llvmlite
    import numba
    import numpy as np

    return {
        "python": f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}",
        "system": sys.platform,
        "level": (level() or ("none",))[0],
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": ".".join(np.__version__.split(".")[:2]),
        "settings": {name: str(getattr(numba.config, name, None)) for name in _SETTINGS},
    }


def write_pack(path: Path, codes: Iterable[tuple[str, bytes]]) -> None:
    """Write a pack, beside its place and then moved over it."""
    index: dict[str, Any] = {"setup": setup(), "kernels": {}}
    blobs, offset = [], 0
    for name, code in codes:
        index["kernels"][name] = [offset, len(code), hashlib.sha256(code).hexdigest()]
        blobs.append(code)
        offset += len(code)
    text = json.dumps(index, sort_keys=True).encode()
    head = f"{_FORMAT} {hashlib.sha256(text).hexdigest()} {len(text)}\n".encode()
    partial = path.with_suffix(".partial")
    partial.write_bytes(b"".join([head, text, *blobs]))
    partial.replace(path)


class KernelPack:
    """The kernels of a file; none if it is absent, damaged, or compiled for something else.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._start = 0

    @functools.cached_property
    def kernels(self) -> dict[str, tuple[int, int, str]]:
        """Offset, length and SHA-256 of the code of each kernel and signature."""
        try:
            with open(self.path, "rb") as file:
                form, digest, length = file.readline(200).decode("ascii").rsplit(" ", 2)
                text = file.read(int(length))
                self._start = file.tell()
            if form != _FORMAT or hashlib.sha256(text).hexdigest() != digest:
                return {}
            index = json.loads(text)
            if index["setup"] != setup() or not _runs_here():
                return {}
            return {name: (offset, size, code) for name, (offset, size, code) in index["kernels"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError):
            return {}

    def payload(self, name: str) -> Any:
        """Return what Numba rebuilds a kernel from; None if the pack lacks it or its code is damaged."""
        if name not in self.kernels:
            return None
        offset, size, digest = self.kernels[name]
        try:
            with open(self.path, "rb") as file:
                file.seek(self._start + offset)
                code = file.read(size)
        except OSError:
            return None
        return pickle.loads(code) if hashlib.sha256(code).hexdigest() == digest else None

    def load(self, name: str, signature: Any, target_context: Any) -> Any:
        """Return a compiled kernel as Numba's cache does, or None."""
        from numba.core.compiler import CompileResult

        try:
            payload = self.payload(f"{name}{signature}")
            if payload is None or tuple(payload[3].args) != tuple(signature):
                return None
            target_context.refresh()
            return CompileResult._rebuild(target_context, *payload)
        # Whatever a class or module lacks here, the kernel can be compiled.
        except Exception:
            return None


def _runs_here() -> bool:
    """Return whether the processor has the features of the level, and Numba compiles for no other one."""
    import numba
    from llvmlite import binding

    config: Any = numba.config
    here = level()
    if here is None or config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return False
    features = binding.get_host_cpu_features() if here[1] else {}
    return all(features.get(name, False) for name in here[1])


@functools.cache
def installed_pack() -> KernelPack:
    """Return the pack that is installed with the package; without kernels if it is switched off."""
    return KernelPack(PATH if os.environ.get(VARIABLE) != "0" else Path(os.devnull))
