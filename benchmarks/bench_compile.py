"""The first minute: processor seconds that the first use of a method takes, while its kernels are compiled.

    python benchmarks/bench_compile.py
    python benchmarks/bench_compile.py fires discuss --before ../tamis-before/src   # against another version

    python benchmarks/bench_compile.py --commands       # commands instead of methods, as a newcomer calls them
    python benchmarks/bench_compile.py --kernels        # the kernels of default runs, each with its seconds
    python benchmarks/bench_compile.py --record         # writes the list of these kernels into the source

Each method learns 2,000 rows of 20 normal features in batches of 100 and predicts or selects in between, in a new
process: first with an empty cache of kernels, then with the cache that the first has filled. With an installed pack of
kernels, the first compiles only what the pack lacks.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

METHODS = (
    "t-score", "fisher", "ofs", "fires", "forward", "joint", "mi", "nb", "knn", "hoeffding-tree",
    "hoeffding-adaptive-tree", "discuss", "auto",
)  # fmt: skip
USE = """
import sys, time
import numpy as np
import sklearn.base
from tamis.catalog import CATALOG, LEARNERS
entry = next(entry for entry in CATALOG + LEARNERS if entry.key == sys.argv[1])
model = entry.load()(**dict(entry.parameters))
rng = np.random.default_rng(0)
X = rng.standard_normal((2000, 20))
y = (X[:, 0] + X[:, 1] > 0).astype(int)
begun = time.process_time()
for start in range(0, 2000, 100):
    model.partial_fit(X[start : start + 100], y[start : start + 100], classes=[0, 1])
    (model.predict if hasattr(model, "predict") else model.transform)(X[start : start + 100])
print(time.process_time() - begun)
"""


# What a newcomer calls first. The files are written by `write_files`.
USES = {
    "run": ["run small.csv --label state", "run mixed.csv --label state"],
    "recommend": ["recommend small.csv --label state", "recommend mixed.csv --label state"],
    "demo": ["demo"],
    "fit": ["fit"],
}


def write_files(folder: Path) -> None:
    """Write a small file of numbers, and one of three classes with text, missing values and drift."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4)).round(4)
    rows = [f"{','.join(map(str, row))},{'on' if row[0] + row[2] > 0 else 'off'}" for row in X.tolist()]
    (folder / "small.csv").write_text("\n".join(["a,b,c,d,state", *rows]) + "\n")
    X = rng.normal(size=(6000, 12)).round(4)
    kinds = rng.choice(["red", "green", "blue"], 6000)
    score = np.where(np.arange(6000) < 3000, X[:, 0], X[:, 5]) + (kinds == "red")
    state = np.digitize(score, [-0.5, 0.8])
    values = np.where(rng.random(X.shape) < 0.05, "", X.astype(str))
    rows = [f"{','.join(v)},{kind},{s}" for v, kind, s in zip(values, kinds, state, strict=True)]
    (folder / "mixed.csv").write_text(
        "\n".join([f"{','.join(f'x{j}' for j in range(12))},kind,state", *rows]) + "\n"
    )


def call(use: str) -> None:
    """Do in this process what a newcomer does: a command, or a fit of `Auto`."""
    if use == "fit":
        from tamis import Auto

        rng = np.random.default_rng(0)
        X = rng.normal(size=(3000, 20))
        Auto().fit(X, X[:, 0] + X[:, 2] > 0)
        return
    from tamis.cli import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if use == "demo":  # its second part runs in a process of its own
            from tamis.cli.demo import _electricity

            _electricity()
        main([*use.split(), "--quiet", "--json"])


def trace(use: str) -> None:
    """Print the kernels that a use compiles: their types and seconds."""
    from numba.core.dispatcher import _FunctionCompiler

    from tamis import _compile_ahead
    from tamis._compile_ahead import encode_signature

    # Nothing is known to compile ahead: other processes would compile it, and this one could not time it.
    _compile_ahead.default_kernels = dict

    taken: dict[str, float] = {}
    compile_one = _FunctionCompiler.compile

    def timed(self, *args):
        begun = time.process_time()
        try:
            return compile_one(self, *args)
        finally:
            name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
            taken[name] = taken.get(name, 0.0) + time.process_time() - begun

    _FunctionCompiler.compile = timed
    for one in USES[use]:
        call(one)
    kernels = {
        f"{kernel.py_func.__module__}.{kernel.py_func.__name__}": {
            "seconds": round(taken.get(kernel.pack_name, 0.0), 2),
            "signatures": [encode_signature(signature) for signature in kernel.signatures],
        }
        for name, module in list(sys.modules.items())
        if name.startswith("tamis.")
        for kernel in list(vars(module).values())
        if hasattr(kernel, "pack_name") and kernel.signatures
    }
    print(json.dumps(kernels))


def record() -> None:
    """Write the list of the kernels of default runs."""
    from tamis._compile_ahead import LISTED

    listed: dict[str, dict] = {}
    for use in USES:
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder))
            environment = {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/cache", "TAMIS_KERNEL_PACK": "0"}
            command = [sys.executable, str(Path(__file__).resolve()), "--trace", use]
            ran = subprocess.run(
                command, cwd=folder, env=environment, check=True, capture_output=True, text=True
            )
        for name, kernel in json.loads(ran.stdout).items():
            entry = listed.setdefault(name, {"seconds": kernel["seconds"], "uses": [], "signatures": []})
            entry["uses"].append(use)
            entry["signatures"] += [one for one in kernel["signatures"] if one not in entry["signatures"]]
    lines = [f"{json.dumps(name)}: {json.dumps(listed[name])}" for name in sorted(listed)]
    LISTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def show_kernels() -> None:
    from tamis._compile_ahead import default_kernels

    listed = default_kernels()
    for use in USES:
        seconds = [kernel["seconds"] for kernel in listed.values() if use in kernel["uses"]]
        print(f"{use:12}{len(seconds):5} kernels{sum(seconds):8.1f} s")
    for name in sorted(listed, key=lambda name: -listed[name]["seconds"]):
        print(f"{listed[name]['seconds']:6.2f}  {name}  ({', '.join(listed[name]['uses'])})")


def seconds(method: str, cache: str, source: str | None) -> float:
    """Return the processor seconds of a use, importing not counted."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": cache,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if source is not None:
        environment["PYTHONPATH"] = source
    command = [sys.executable, "-c", USE, method]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def cold_and_warm(method: str, source: str | None) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as cache:
        return seconds(method, cache, source), seconds(method, cache, source)


def show_commands() -> None:
    """Print the seconds of each first use in an empty home, and of the second."""
    print(f"{'processor seconds (of the clock)':44}{'first':>14}{'second':>14}{'ratio':>7}")
    for uses in USES.values():
        for use in uses:
            with tempfile.TemporaryDirectory() as folder:
                write_files(Path(folder))
                environment = {
                    **os.environ, "HOME": folder, "XDG_CACHE_HOME": folder, "NUMBA_CACHE_DIR": f"{folder}/cache",
                }  # fmt: skip
                words = ["-m", "tamis", *use.split(), "--quiet", "--json"]
                if use == "fit":
                    words = [str(Path(__file__).resolve()), "--fit"]
                taken = []
                for _ in range(2):
                    begun, used = time.perf_counter(), sum(os.times()[2:4])
                    subprocess.run(
                        [sys.executable, *words], cwd=folder, env=environment, check=True, capture_output=True
                    )
                    taken.append((sum(os.times()[2:4]) - used, time.perf_counter() - begun))
            shown = "".join(f"{used:7.1f} ({clock:.1f})".rjust(14) for used, clock in taken)
            print(f"{use:44}{shown}{taken[0][0] / taken[1][0]:7.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", default=METHODS, help="keys of the catalogue")
    parser.add_argument("--before", type=Path, help="folder of the sources of another version")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--commands", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--trace", help=argparse.SUPPRESS)
    parser.add_argument("--fit", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.trace:
        return trace(given.trace)
    if given.fit:
        return call("fit")
    if given.record:
        return record()
    if given.kernels:
        return show_kernels()
    if given.commands:
        return show_commands()
    sources = [None] if given.before is None else [None, str(given.before.resolve())]
    print(f"{'':26}{'first':>8}{'second':>8}" + (f"{'before':>10}{'ratio':>7}" if given.before else ""))
    for method in given.methods:
        runs = [[cold_and_warm(method, source) for source in sources] for _ in range(given.rounds)]
        cold, warm = (min(run[0][i] for run in runs) for i in (0, 1))
        shown = f"{method:26}{cold:8.1f}{warm:8.1f}"
        if given.before is not None:
            before = min(run[1][0] for run in runs)
            shown += f"{before:10.1f}{cold / before:7.2f}"
        print(shown, flush=True)


if __name__ == "__main__":
    main()
