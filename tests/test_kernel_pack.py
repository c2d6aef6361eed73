"""A pack of compiled kernels: used where everything agrees, verified first, with the bits of a compilation."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pickle
import sys
import types
from pathlib import Path

import pytest

import tamis._kernel_pack as kernel_pack
from tamis._compile_ahead import (
    LISTED,
    _decode_signature,
    build_pack,
    compile_in_processes,
    default_kernels,
    encode_signature,
    missing,
)
from tamis._kernel_pack import KernelPack, level, write_pack
from tests.test_kernels import INNER, OUTER, run

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1" or level() is None, reason="kernels are not compiled here"
)
KERNELS = {"a": pickle.dumps((1, 2.0)), "b": pickle.dumps("three")}


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if not kernel_pack._runs_here():
        pytest.skip("this processor is below the level of a pack")
    path = tmp_path / "kernels.pack"
    write_pack(path, KERNELS.items())
    return path


# -- verified before anything is unpickled ---------------------------------------------------------------------


def test_what_is_written_is_read(pack: Path) -> None:
    one = KernelPack(pack)
    assert (one.payload("a"), one.payload("b"), one.payload("c")) == ((1, 2.0), "three", None)


def test_no_damaged_byte_is_ever_unpickled(pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, seen = pack.read_bytes(), []
    monkeypatch.setattr(kernel_pack.pickle, "loads", lambda code: seen.append(code))
    for at in range(len(whole)):
        pack.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        one = KernelPack(pack)
        for name in KERNELS:
            one.payload(name)
    assert seen
    assert set(seen) <= set(KERNELS.values())
    seen.clear()
    for length in range(len(whole)):
        pack.write_bytes(whole[:length])
        KernelPack(pack).payload("b")
    assert seen == []


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"tamis kernels 1 0 0\n", b"tamis kernels 1 x y\n{}", b"\xff" * 300]
)
def test_a_file_that_is_no_pack_has_no_kernels(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kernels.pack").write_bytes(content)
    assert KernelPack(tmp_path / "kernels.pack").kernels == {}
    assert KernelPack(tmp_path / "nothing").kernels == {}
    assert KernelPack(tmp_path).kernels == {}


def test_an_index_whose_entries_were_exchanged_is_rejected(pack: Path) -> None:
    head, _, rest = pack.read_bytes().partition(b"\n")
    pack.write_bytes(
        head + b"\n" + rest.replace(b'"a"', b'"c"').replace(b'"b"', b'"a"').replace(b'"c"', b'"b"')
    )
    assert KernelPack(pack).kernels == {}


def test_an_interrupted_write_leaves_the_pack_that_was_there(
    pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write_pack(pack, [])
    assert KernelPack(pack).payload("b") == "three"


# -- only where everything is the same -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("numba.__version__", "0.1.0"),
        ("llvmlite.__version__", "0.1.0"),
        ("numpy.__version__", "1.0.0"),
        ("numba.config.OPT", 0),
        ("numba.config.BOUNDSCHECK", 1),
        ("numba.config.CPU_NAME", "generic"),
        ("numba.config.CPU_FEATURES", ""),
        ("sys.platform", "other"),
        ("platform.machine", lambda: "riscv64"),
    ],
)
def test_a_pack_for_something_else_has_no_kernels(pack: Path, monkeypatch, place: str, value: object) -> None:
    assert set(KernelPack(pack).kernels) == set(KERNELS)
    monkeypatch.setattr(place, value)
    assert KernelPack(pack).kernels == {}


@pytest.mark.skipif(not (level() or ("", ()))[1], reason="every processor of this kind has the features")
@pytest.mark.parametrize("feature", (level() or ("", ()))[1])
def test_a_processor_without_a_feature_of_the_level_compiles(pack: Path, monkeypatch, feature: str) -> None:
    from llvmlite import binding

    here = dict(binding.get_host_cpu_features())
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: here | {feature: False})
    assert KernelPack(pack).kernels == {}


@pytest.mark.parametrize("machine", ["aarch64", "arm64"])
def test_a_pack_of_64_bit_arm_is_for_every_such_processor(tmp_path: Path, monkeypatch, machine: str) -> None:
    """Compiled for the generic processor, whose features each has; not read on x86-64, nor the other way round."""
    from llvmlite import binding

    ours = tmp_path / "x86.pack"
    write_pack(ours, KERNELS.items())
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr(binding, "get_host_cpu_features", dict)
    assert level() == ("generic", ())
    write_pack(tmp_path / "arm.pack", KERNELS.items())
    assert set(KernelPack(tmp_path / "arm.pack").kernels) == set(KERNELS)
    assert KernelPack(ours).kernels == {}
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert KernelPack(tmp_path / "arm.pack").kernels == {}


def test_a_pack_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_KERNEL_PACK", "0")
    assert kernel_pack.installed_pack.__wrapped__().kernels == {}
    monkeypatch.delenv("TAMIS_KERNEL_PACK")
    assert kernel_pack.installed_pack.__wrapped__().path == kernel_pack.PATH


# -- kernels of a pack -----------------------------------------------------------------------------------------

_DOUBLE, _FOLD = "kernels_outer.double_after_two", "kernels_outer.fold"
_SIGNATURES = {_DOUBLE: [["float64"]], _FOLD: [[["array", "float64", 1, "C", True, True]]]}
_BUILD = """
import sys
from pathlib import Path
import tamis._compile_ahead as ahead
ahead.LISTED = Path("list.json")
print(*ahead.build_pack(Path("kernels.pack"), 300.0))
"""
_USE = """
from pathlib import Path
import numpy as np
import tamis._kernel_pack as pack
pack.PATH = Path("kernels.pack").resolve()
import kernels_outer as k
values = np.random.default_rng(0).normal(size=1001)
print(k.double_after_two(1.0), k.fold(values).hex(), k.countdown(5))
for kernel in (k.double_after_two, k.fold, k.countdown):
    print(sum(kernel.stats.cache_misses.values()))
"""


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """Return a folder with two kernels in a pack, and one that is not."""
    (tmp_path / "kernels_inner.py").write_text(INNER)
    (tmp_path / "kernels_outer.py").write_text(OUTER)
    listed = {name: {"seconds": 1.0, "uses": [], "signatures": s} for name, s in _SIGNATURES.items()}
    (tmp_path / "list.json").write_text(json.dumps(listed))
    assert run(_BUILD, tmp_path) == ["2", "2"]
    return tmp_path


@pytest.mark.slow
def test_a_packed_kernel_is_not_compiled_and_has_the_same_bits(packed: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(packed / "cache")}
    with_pack = run(_USE, packed, **cache)
    assert with_pack[3:] == ["0", "0", "1"]
    assert not [path for path in (packed / "cache").rglob("*.nbi") if "countdown" not in path.name]
    compiled = run(_USE, packed, TAMIS_KERNEL_PACK="0", **cache)
    assert compiled[3:] == ["1", "1", "0"]
    cached = run(_USE, packed, TAMIS_KERNEL_PACK="0", **cache)
    assert cached[3:] == ["0", "0", "0"]
    assert with_pack[:3] == compiled[:3] == cached[:3]


@pytest.mark.slow
def test_a_kernel_whose_callee_or_constant_changed_is_compiled(packed: Path) -> None:
    (packed / "kernels_inner.py").write_text("STEP = 10.0\n" + INNER.replace("x + 1.0", "x + STEP"))
    for step, value in (("10.0", "42.0"), ("3.0", "14.0")):
        text = (packed / "kernels_inner.py").read_text()
        (packed / "kernels_inner.py").write_text(f"STEP = {step}\n" + text.partition("\n")[2])
        found = run(_USE, packed, NUMBA_CACHE_DIR=str(packed / "cache"))
        assert (found[0], found[3:5]) == (value, ["1", "0"])


@pytest.mark.slow
def test_a_pack_needs_no_place_to_write(packed: Path) -> None:
    """A read-only installation, and a home that is a file."""
    (packed / "__pycache__").write_text("")
    (packed / "home").write_text("")
    home = str(packed / "home")
    found = run(_USE, packed, NUMBA_CACHE_DIR="", HOME=home, XDG_CACHE_HOME=home, LOCALAPPDATA=home)
    assert (found[0], found[3:5]) == ("6.0", ["0", "0"])


@pytest.mark.slow
def test_damaged_code_is_compiled_instead(packed: Path) -> None:
    path = packed / "kernels.pack"
    whole = path.read_bytes()
    path.write_bytes(whole[:-2000] + bytes(byte ^ 1 for byte in whole[-2000:]))
    found = run(_USE, packed, NUMBA_CACHE_DIR=str(packed / "cache"))
    assert found[0] == "6.0"
    assert "1" in found[3:5]


# -- the kernels of default runs -------------------------------------------------------------------------------


def test_the_list_is_that_of_this_version() -> None:
    """A kernel that was renamed, or has other arguments: `python benchmarks/bench_compile.py --record`."""
    for name, kernel in default_kernels().items():
        module, _, attribute = name.rpartition(".")
        found = getattr(importlib.import_module(module), attribute)
        code = getattr(found, "of_kernel", found).function.__code__
        for encoded in kernel["signatures"]:
            assert len(encoded) <= code.co_argcount, name
            assert encode_signature(_decode_signature(encoded)) == encoded
    assert len(LISTED.read_text(encoding="utf-8").splitlines()) == len(default_kernels()) + 2


_RUN = """
import contextlib, io, json, sys
import numpy as np
from tamis.cli import main
rng = np.random.default_rng(7)
X = rng.normal(size=(3500, 5)).round(3)
rows = [",".join(map(str, row)) + (",up" if row[1] - row[3] > 0 else ",down") for row in X.tolist()]
open("other.csv", "w").write("p,q,r,s,t,way\\n" + "\\n".join(rows) + "\\n")
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main(["run", "other.csv", "--label", "way", "--quiet", "--json"])
print(*sorted({
    f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"
    for name, module in list(sys.modules.items()) if name.startswith("tamis.")
    for kernel in list(vars(module).values()) if hasattr(kernel, "pack_name") and kernel.signatures
}))
"""


@pytest.mark.slow
def test_a_default_run_on_other_rows_needs_no_kernel_that_is_not_listed(tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"]}
    used = set(run(_RUN, tmp_path, **cache))
    assert len(used) > 20
    assert used <= set(default_kernels()) | {"tamis._kernels.overwrite"}


_FIT = """
import hashlib, sys
from pathlib import Path
import numpy as np
import tamis._kernel_pack as pack
pack.PATH = Path("kernels.pack").resolve()
from tamis import Auto
rng = np.random.default_rng(3)
X = rng.normal(size=(2500, 14))
y = np.where(np.arange(2500) < 1200, X[:, 0] + X[:, 2], X[:, 5]) > 0
model = Auto().fit(X, y)
print(hashlib.sha256(np.ascontiguousarray(model.scores_).tobytes() + model.transform(X).tobytes()).hexdigest())
kernels = {
    id(kernel): kernel for name, module in list(sys.modules.items()) if name.startswith("tamis.")
    for kernel in list(vars(module).values()) if hasattr(kernel, "pack_name") and kernel.signatures
}
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels.values()), len(kernels))
"""


@pytest.mark.slow
def test_pack_cache_and_fresh_compilation_give_the_same_bits(tmp_path: Path) -> None:
    listed = {name: kernel for name, kernel in default_kernels().items() if "fit" in kernel["uses"]}
    (tmp_path / "list.json").write_text(json.dumps(listed))
    n_packed, n_listed = run(_BUILD, tmp_path)
    assert n_packed == n_listed
    packed, fresh, cached = (
        run(_FIT, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"), TAMIS_KERNEL_PACK=off) for off in "100"
    )
    assert packed[0] == fresh[0] == cached[0]
    assert (packed[1], cached[1]) == ("0", "0")
    assert int(fresh[1]) >= int(packed[2]) > 20


def test_nothing_is_missing_once_the_longest_kernel_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis._kernels.is_compiled", lambda kernel, signature: True)
    assert missing("fit") == []
    monkeypatch.setattr("tamis._kernels.is_compiled", lambda kernel, signature: False)
    assert set(missing("fit")) == {
        name for name, kernel in default_kernels().items() if "fit" in kernel["uses"]
    }
    assert missing("no such use") == []


def test_a_process_that_ends_is_no_reason_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", sys.executable if sys.platform == "win32" else "/bin/true")
    assert list(compile_in_processes(list(default_kernels())[:3], 2)) == []


def test_a_time_limit_ends_the_compilation(tmp_path: Path) -> None:
    assert build_pack(tmp_path / "kernels.pack", 0.0)[0] == 0
    assert not (tmp_path / "kernels.pack").exists()


# -- the build ---------------------------------------------------------------------------------------------------


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Return the build hook in a folder; Hatchling itself is where wheels are built."""
    names = "hatchling", "hatchling.builders", "hatchling.builders.hooks", "hatchling.builders.hooks.plugin"
    for name in (*names, f"{names[-1]}.interface"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules[f"{names[-1]}.interface"].BuildHookInterface = object
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    warnings: list[str] = []
    one = module.CompiledKernels()
    one.root, one.directory, one.warnings, one.module = str(ROOT), str(tmp_path / "dist"), warnings, module
    one.app = types.SimpleNamespace(display_warning=warnings.append, display_info=lambda text: None)
    dependencies = ["numpy>=2.0", "numba>=0.61", "scikit-learn>=1.6", "typer>=1"]
    one.metadata = types.SimpleNamespace(core=types.SimpleNamespace(dependencies=dependencies))
    monkeypatch.delenv("TAMIS_KERNEL_PACK", raising=False)
    return one


def built(hook, version: str = "standard") -> dict:
    data = {"force_include": {}, "pure_python": True}
    hook.initialize(version, data)
    return data


def test_a_wheel_has_the_pack_and_the_tag_of_its_python(hook, monkeypatch) -> None:
    monkeypatch.setattr(hook.module, "_compile", lambda source, pack: (pack.write_bytes(b""), 5)[::-1])
    monkeypatch.setenv("TAMIS_WHEEL_PLATFORM", "manylinux_2_28_x86_64")
    data = built(hook)
    assert data["force_include"] == {str(Path(hook.directory, "kernels.pack")): "tamis/kernels.pack"}
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert (data["tag"], data["pure_python"]) == (f"{python}-{python}-manylinux_2_28_x86_64", False)
    hook.finalize("standard", data, "tamis.whl")
    assert list(Path(hook.directory).iterdir()) == []
    monkeypatch.setattr(sys, "abiflags", "t")  # free-threaded
    assert built(hook)["tag"] == f"{python}-{python}t-manylinux_2_28_x86_64"


@pytest.mark.parametrize(("value", "seconds"), [(None, 120.0), ("1", 3600.0)])
def test_a_release_waits_for_all_kernels(
    hook, monkeypatch, tmp_path: Path, value: str | None, seconds: float
) -> None:
    if value is not None:
        monkeypatch.setenv("TAMIS_KERNEL_PACK", value)
    monkeypatch.setattr(hook.module, "_BUILD", "import sys; print(sys.argv[2].partition('.')[0], 3600)")
    assert hook.module._compile(ROOT / "src", tmp_path / "kernels.pack") == (int(seconds), 3600)


@pytest.mark.parametrize("failure", [ValueError("no numba"), OSError(28, "full")])
def test_a_build_never_fails_for_the_pack(hook, monkeypatch, failure: Exception) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(hook.module, "_compile", fail)
    assert built(hook) == {"force_include": {}, "pure_python": True}
    assert "no kernels are compiled ahead" in hook.warnings[0]


def test_a_package_that_cannot_be_imported_is_reported(hook, tmp_path: Path) -> None:
    (tmp_path / "tamis").mkdir()
    (tmp_path / "tamis" / "__init__.py").write_text("raise ImportError('no such thing')\n")
    with pytest.raises(ValueError, match="ImportError: no such thing"):
        hook.module._compile(tmp_path, tmp_path / "kernels.pack")


def test_an_editable_installation_and_a_switched_off_build_have_no_pack(hook, monkeypatch) -> None:
    monkeypatch.setattr(hook.module, "_compile", None)  # is not called
    assert built(hook, "editable")["pure_python"]
    monkeypatch.setenv("TAMIS_KERNEL_PACK", "0")
    assert built(hook)["pure_python"]
    assert hook.dependencies() == []


def test_a_pack_is_compiled_with_the_versions_that_are_installed(hook, monkeypatch) -> None:
    monkeypatch.setattr(hook.module, "_installed", lambda names: {"numba": "0.61.2"})
    assert hook.dependencies() == ["numpy>=2.0", "scikit-learn>=1.6", "numba==0.61.2"]
