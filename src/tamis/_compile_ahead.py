"""Compile the kernels of default runs ahead, in parallel processes: into the user's cache, or into a pack.

``default_kernels.json`` lists these kernels, the types of their arguments and the seconds that each took to compile.
`python benchmarks/bench_compile.py --record` writes it.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tamis._kernel_pack import level, write_pack

LISTED = Path(__file__).with_name("default_kernels.json")


@functools.cache
def default_kernels() -> dict[str, dict[str, Any]]:
    """Return the uses, the signatures and the seconds of each kernel of a default run, by its dotted name."""
    return json.loads(LISTED.read_text(encoding="utf-8"))


def missing(use: str) -> list[str]:
    """Return the kernels of a use that are to be compiled: all, or none if the one that takes longest is compiled."""
    kernels = {name: kernel for name, kernel in default_kernels().items() if use in kernel["uses"]}
    longest = max(kernels, key=lambda name: float(kernels[name]["seconds"]), default=None)
    if longest is None:
        return []
    from tamis._kernels import is_compiled

    kernel = _kernel(longest)
    signatures = map(_decode_signature, kernels[longest]["signatures"])
    return [] if all(is_compiled(kernel, signature) for signature in signatures) else list(kernels)


def compile_in_processes(
    names: list[str], jobs: int, *, codes: Path | None = None, seconds: float | None = None
) -> Iterator[dict[str, Any]]:
    """Compile kernels in parallel, and yield the outcome for each as it ends.

    Parameters
    ----------
    names : list of str
        Of `default_kernels`.
    jobs : int
        Number of processes.
    codes : Path, optional
        Folder for the code of the kernels; by default they are only cached.
    seconds : float, optional
        Stop afterwards, whether all are compiled or not.

    Yields
    ------
    dict
        The ``name``, the ``seconds``, the number of signatures that were ``compiled`` and ``loaded``, and an ``error``.
    """
    work, done = _in_groups(names), queue.SimpleQueue[dict[str, Any] | None]()
    until = time.monotonic() + (1e9 if seconds is None else seconds)
    environment = dict(os.environ)
    if codes is not None:
        here = level()
        if here is None:
            return
        # For the level of a pack, and not from what the user has cached for this processor.
        environment |= {
            "NUMBA_CPU_NAME": here[0], "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(codes / "cache"),
            "TAMIS_KERNEL_PACK": "0",
        }  # fmt: skip
    command = [sys.executable, "-c", "from tamis._compile_ahead import work; work()", str(codes or "")]
    workers = [
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(min(jobs, len(work)))
    ]
    for worker in workers:
        threading.Thread(target=_feed, args=(worker, work, done), daemon=True).start()
    running = len(workers)
    try:
        while running:
            outcome = done.get(timeout=max(until - time.monotonic(), 0.0))
            if outcome is None:
                running -= 1
            else:
                yield outcome
    except queue.Empty:
        return
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def _in_groups(names: list[str]) -> list[list[str]]:
    """Return the kernels of each package, which share the kernels that they call; the longest last."""
    listed, groups = default_kernels(), dict[str, list[str]]()
    for name in names:
        groups.setdefault(name.rsplit(".", 2)[0], []).append(name)
    return sorted(groups.values(), key=lambda group: sum(listed[name]["seconds"] for name in group))


def _feed(worker: Any, work: list[list[str]], done: queue.SimpleQueue[dict[str, Any] | None]) -> None:
    """Let a process compile one kernel after the other, until nothing is left."""
    try:
        while True:
            for name in work.pop():
                request = {"name": name, "signatures": default_kernels()[name]["signatures"]}
                worker.stdin.write(json.dumps(request) + "\n")
                worker.stdin.flush()
                done.put(json.loads(worker.stdout.readline()))
    # Nothing is left; or the process was killed.
    except (IndexError, OSError, ValueError):
        done.put(None)


def work() -> None:
    """Compile the kernels that standard input names, and print the outcome of each as a line of JSON."""
    codes = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a module prints is not part of the answer
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_compile(request, Path(codes) if codes else None)), file=answers, flush=True)


def _compile(request: dict[str, Any], codes: Path | None) -> dict[str, Any]:
    begun, compiled, loaded, error, stored = time.perf_counter(), 0, 0, "", {}
    try:
        dispatcher = _kernel(request["name"])
        for encoded in request["signatures"]:
            signature = _decode_signature(encoded)
            dispatcher.compile(signature)
            if codes is not None:
                stored[dispatcher.pack_name + str(signature)] = _store(dispatcher.overloads[signature], codes)
        compiled, loaded = (
            sum(c.values()) for c in (dispatcher.stats.cache_misses, dispatcher.stats.cache_hits)
        )
    # The list is of another version, or Numba lacks what the kernel needs: it is compiled when it is called.
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    seconds = time.perf_counter() - begun
    return {
        "name": request["name"], "seconds": seconds, "compiled": compiled, "loaded": loaded, "error": error,
        "codes": stored,
    }  # fmt: skip


def _kernel(name: str) -> Any:
    """Return the dispatcher of a kernel."""
    module, _, attribute = name.rpartition(".")
    kernel = getattr(importlib.import_module(module), attribute)
    return kernel.compiled() if hasattr(kernel, "compiled") else kernel


def _store(compiled: Any, codes: Path) -> str:
    """Write the code of a compiled kernel into a folder, without its source, and return the name of the file."""
    from numba.core.serialize import dumps

    payload = list(compiled._reduce())
    payload[6] = ""  # the annotated source, with the paths of this machine
    code = dumps(tuple(payload))
    name = hashlib.sha256(code).hexdigest()
    (codes / name).write_bytes(code)
    return name


# -- the pack -----------------------------------------------------------------------------------------------------


def n_processors() -> int:
    """Return the number of processors that this process may use."""
    available = getattr(os, "sched_getaffinity", None)
    return len(available(0)) if available is not None else os.cpu_count() or 1


def build_pack(path: Path, seconds: float) -> tuple[int, int]:
    """Compile the kernels of default runs into a pack.

    Parameters
    ----------
    path : Path
        The pack; it is not written if nothing was compiled.
    seconds : float
        After this time, the pack has the kernels that are compiled by then.

    Returns
    -------
    n_packed, n_listed : int
    """
    names = list(default_kernels())
    with tempfile.TemporaryDirectory() as folder:
        codes = dict[str, str]()
        for outcome in compile_in_processes(names, n_processors(), codes=Path(folder), seconds=seconds):
            codes |= outcome["codes"]
        if codes:
            write_pack(
                path, ((name, Path(folder, code).read_bytes()) for name, code in sorted(codes.items()))
            )
    return len(codes), sum(len(kernel["signatures"]) for kernel in default_kernels().values())


# -- types of arguments as JSON -----------------------------------------------------------------------------------


def encode_signature(signature: Any) -> list[Any]:
    """Return the types of arguments as JSON values: names, and lists for arrays and tuples."""
    return [_encode(one) for one in signature]


def _encode(one: Any) -> Any:
    types: Any = importlib.import_module("numba.core.types")

    if isinstance(one, types.Array):
        return ["array", _encode(one.dtype), one.ndim, one.layout, one.mutable, one.aligned]
    if isinstance(one, types.BaseNamedTuple):
        kind = one.instance_class
        return [f"{kind.__module__}.{kind.__qualname__}", *map(_encode, one.types)]
    if isinstance(one, types.BaseTuple):
        return ["tuple", *map(_encode, one.types)]
    return str(one)


def _decode_signature(encoded: list[Any]) -> Any:
    return tuple(map(_decode, encoded))


def _decode(encoded: Any) -> Any:
    types: Any = importlib.import_module("numba.core.types")

    if isinstance(encoded, str):
        return getattr(types, {"bool": "boolean"}.get(encoded, encoded))
    kind, *parts = encoded
    if kind == "array":
        dtype, ndim, layout, mutable, aligned = parts
        return types.Array(_decode(dtype), ndim, layout, readonly=not mutable, aligned=aligned)
    if kind == "tuple":
        return types.BaseTuple.from_types(tuple(map(_decode, parts)))
    module, _, name = kind.rpartition(".")
    named = getattr(importlib.import_module(module), name)
    return types.BaseTuple.from_types(tuple(map(_decode, parts)), named)
