"""Kernels compile when they are first called, also without a cache, in whatever order, and run without the JIT."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tamis._kernels import bitcode_compiler, njit

INNER = """
from tamis._kernels import njit

@njit()
def add_one(x):
    return x + 1.0

@njit(strict=True)
def add_two(x):
    return add_one(add_one(x))
"""

OUTER = """
from kernels_inner import add_two
from tamis._kernels import njit

@njit()
def double_after_two(x):
    return 2.0 * add_two(x)

@njit()
def countdown(n):
    return 0 if n == 0 else countdown(n - 1)

@njit()
def count_up(n):
    return 0 if n == 0 else 1 + count_up(n - 1)

@njit()
def count_up_twice(n):
    return count_up(n) + count_up(n)

@njit()
def shift(x, k):
    return x + k

@njit()
def shift_twice(x):
    return shift(shift(x, 1), 2)

@njit()
def fold(a):
    total = 0.0
    for value in a:
        total += value
    return total
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "kernels_inner.py").write_text(INNER)
    (folder / "kernels_outer.py").write_text(OUTER)
    return folder


def run(code: str, folder: Path, **environment: str) -> list[str]:
    """Run code in a new interpreter that finds the kernels, and return what it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment = {**kept, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


CALLS = """
    import kernels_outer as k
    import kernels_inner
    print(k.double_after_two(1.0), k.countdown(5), kernels_inner.add_one(2.0))
    print(type(k.double_after_two).__name__, type(getattr(k.double_after_two, "_cache", None)).__name__)
"""


@pytest.mark.slow
def test_kernels_call_kernels_of_other_modules(kernels: Path) -> None:
    printed = run(CALLS, kernels, NUMBA_CACHE_DIR=str(kernels / "cache"))
    assert printed == ["6.0", "0", "3.0", "CPUDispatcher", "FunctionCache"]
    assert list((kernels / "cache").rglob("*.nbi"))


@pytest.mark.slow
def test_a_kernel_that_changed_is_compiled_again_in_its_callers(kernels: Path) -> None:
    """Numba looks at the file of a kernel alone: callers in other files would go on with what it was."""
    code = "import kernels_outer as k; print(k.double_after_two(1.0))"
    cache = {"NUMBA_CACHE_DIR": str(kernels / "cache")}
    assert run(code, kernels, **cache) == ["6.0"]
    (kernels / "kernels_inner.py").write_text(INNER.replace("x + 1.0", "x + 10.0"))
    assert run(code, kernels, **cache) == ["42.0"]
    (kernels / "kernels_inner.py").write_text("STEP = 3.0\n" + INNER.replace("x + 1.0", "x + STEP"))
    assert run(code, kernels, **cache) == ["14.0"]
    (kernels / "kernels_inner.py").write_text("STEP = 4.0\n" + INNER.replace("x + 1.0", "x + STEP"))
    assert run(code, kernels, **cache) == ["18.0"]


@pytest.mark.slow
def test_a_kernel_that_python_called_first_is_part_of_its_callers_all_the_same(kernels: Path) -> None:
    code = """
        import kernels_inner as k
        k.add_one(1.0)
        print(k.add_two(1.0))
    """
    assert run(code, kernels, NUMBA_CACHE_DIR=str(kernels / "cache")) == ["3.0"]
    assert [path.name for path in (kernels / "cache").rglob("*add_one.inner*.nbi")]


@pytest.mark.parametrize("gone", ["llvmir", "CPUCodeLibrary._optimize_final_module"])
def test_a_numba_whose_inner_parts_are_others_compiles_as_it_always_did(gone, monkeypatch) -> None:
    compiler = pytest.importorskip("numba.core.compiler").Compiler
    monkeypatch.delattr(f"numba.core.codegen.{gone}")
    assert bitcode_compiler.__wrapped__() is compiler


@pytest.mark.slow
def test_kernels_take_in_one_that_calls_itself(kernels: Path) -> None:
    code = "import kernels_outer as k; print(k.count_up_twice(3), k.count_up(3))"
    for _ in range(2):  # compiled, and read from the cache
        assert run(code, kernels, NUMBA_CACHE_DIR=str(kernels / "cache")) == ["6", "3"]


@pytest.mark.slow
def test_a_second_process_compiles_nothing(kernels: Path) -> None:
    code = """
        import kernels_outer as k
        k.double_after_two(1.0)
        print(sum(k.double_after_two.stats.cache_hits.values()), sum(k.double_after_two.stats.cache_misses.values()))
    """
    first, second = (run(code, kernels, NUMBA_CACHE_DIR=str(kernels / "cache")) for _ in range(2))
    assert (first, second) == (["0", "1"], ["1", "0"])


@pytest.mark.slow
def test_without_a_place_for_the_cache_kernels_still_compile(kernels: Path) -> None:
    """Where folders should be there are files, which even the superuser cannot write into."""
    (kernels / "__pycache__").write_text("")
    (kernels / "home").write_text("")
    home = str(kernels / "home")
    for cache in ("", str(kernels / "home" / "cache")):
        environment = {"NUMBA_CACHE_DIR": cache, "HOME": home, "XDG_CACHE_HOME": home, "LOCALAPPDATA": home}
        assert run(CALLS, kernels, **environment) == ["6.0", "0", "3.0", "CPUDispatcher", "NullCache"]


def test_with_the_jit_off_kernels_are_plain_python(kernels: Path) -> None:
    printed = run(CALLS, kernels, NUMBA_DISABLE_JIT="1")
    assert printed == ["6.0", "0", "3.0", "function", "NoneType"]


@pytest.mark.slow
def test_kernels_run_in_forks_and_threads(kernels: Path) -> None:
    code = """
        import multiprocessing
        from concurrent.futures import ThreadPoolExecutor
        import numpy as np
        import kernels_outer as k
        rows = [np.full(1000, float(i)) for i in range(8)]
        with ThreadPoolExecutor(4) as threads:  # the first calls of all, at the same time
            print(sum(threads.map(lambda row: k.fold(row), rows)))
        def work(i):
            return k.fold(rows[i])
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(sum(pool.map(work, range(8))))
    """
    assert run(code, kernels, NUMBA_CACHE_DIR=str(kernels / "cache")) == ["28000.0", "28000.0"]


def test_nothing_is_compiled_before_the_first_call() -> None:
    def half(x: float) -> float:
        """Return half of x."""
        return x / 2.0

    kernel = njit()(half)
    assert "_Kernel" in type(kernel).__name__
    assert (kernel.__name__, kernel.__doc__) == ("half", "Return half of x.")
    assert kernel(3.0) == 1.5
    assert kernel(5.0) == 2.5


def test_flags_keep_nan_and_infinity_visible() -> None:
    def check(x: float) -> float:
        return x * 0.0

    for kernel in (njit()(check), njit(strict=True)(check)):
        assert kernel(float("inf")) != kernel(float("inf"))  # NaN
        assert kernel(float("nan")) != kernel(float("nan"))
        assert kernel(1.0) == 0.0


def test_a_disk_that_fills_up_costs_the_cache_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.caching import FunctionCache

    from tamis._kernels import njit

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FunctionCache, "save_overload", full)

    @njit()
    def double(x: float) -> float:
        return 2.0 * x

    assert double(21.0) == 42.0


def test_cached_code_that_names_a_moved_module_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of a kernel names the modules of the kernels in it, which another version may have moved."""
    from numba.core.caching import FunctionCache

    def load(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'tamis.moved'")

    monkeypatch.setattr(FunctionCache, "_load_overload", load)

    @njit()
    def triple(x: float) -> float:
        return 3.0 * x

    assert triple(14.0) == 42.0


@pytest.mark.slow
def test_numbers_written_out_in_calls_compile_a_kernel_once(kernels: Path) -> None:
    code = """
        import kernels_outer as k
        print(k.shift_twice(1.0), *k.shift.inner.signatures)
    """
    assert run(code, kernels, NUMBA_CACHE_DIR=str(kernels / "cache")) == ["4.0", "(float64,", "int64)"]


@pytest.mark.parametrize("enabled", [True, False])
def test_compiling_leaves_the_garbage_collector_as_it_was(enabled: bool) -> None:
    @njit()
    def refuse(x: float) -> float:
        return [x][int(x)]

    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(IndexError):
            refuse(1.0)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


_LEARN = """
import hashlib, sys
import numpy as np
import scipy.sparse as sp
from tamis import FETANA, FIRES, AdaptiveIFC2F
rng = np.random.default_rng(0)
y = rng.integers(0, 4, 150)
X = rng.normal(size=(150, 64))
X[:, :9] += 0.5 * y[:, None]
weight = rng.uniform(0.5, 2.0, 150)
S = sp.csr_matrix(X * (rng.random(X.shape) < 0.1))
work = [
    lambda: FIRES().partial_fit(X, y > 1, sample_weight=weight).scores_,
    lambda: FIRES().partial_fit(S, y).scores_,
    lambda: FIRES(model="logit").partial_fit(X, y > 1).scores_,
    lambda: AdaptiveIFC2F(0.001, decision="tree").fit(X, y).predict_proba(X),
    lambda: FETANA(0.001, order="spread", threshold="all", random_state=0).fit(X, y).predict_proba(X),
]
order = range(len(work)) if sys.argv[1] == "forwards" else reversed(range(len(work)))
found = {i: hashlib.sha1(np.ascontiguousarray(work[i]()).tobytes()).hexdigest() for i in order}
print(*(found[i] for i in range(len(work))))
"""


@pytest.mark.slow  # compiles the kernels of three methods
def test_the_bits_are_those_of_a_process_that_compiles_whatever_it_learned_before(tmp_path: Path) -> None:
    said = []
    for order, hash_seed, threads in (
        ("forwards", "1", "1"),
        ("forwards", "2", "2"),
        ("backwards", "3", "1"),
    ):
        settings = {
            "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONHASHSEED": hash_seed, "OPENBLAS_NUM_THREADS": threads,
        }  # fmt: skip
        command = [sys.executable, "-c", _LEARN, order]
        ran = subprocess.run(
            command, env={**os.environ, **settings}, capture_output=True, text=True, check=True
        )
        said.append(ran.stdout.split())
    assert said[0] == said[1] == said[2]
    assert len(said[0]) == 5
