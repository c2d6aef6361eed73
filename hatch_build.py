"""Compile the kernels of default runs while a wheel is built, so that the first run does not (docs/install.md)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Seconds after which the wheel is built with the kernels that are compiled by then; with `TAMIS_KERNEL_PACK=1`, as in a
# release, only when all are.
LONGEST, ALL = 120.0, 3600.0
PACK = "kernels.pack"
_INSTALLED = """
import json, sys
from importlib.metadata import version
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except Exception:
        pass
print(json.dumps(found))
"""
_BUILD = """
import sys
from pathlib import Path
from tamis._compile_ahead import build_pack
print(*build_pack(Path(sys.argv[1]), float(sys.argv[2])))
"""


class CompiledKernels(BuildHookInterface):
    """Puts a pack of compiled kernels into a wheel; without one, kernels are compiled when they are first called.

    An editable installation has none, since its source changes. `TAMIS_KERNEL_PACK=0` leaves it out, and 1 waits for
    all kernels.
    """

    @property
    def _wanted(self) -> bool:
        return os.environ.get("TAMIS_KERNEL_PACK") != "0"

    def dependencies(self) -> list[str]:
        """Return what is imported to compile: in the versions that are installed, if any are."""
        # A front end names what it asks for: an editable installation compiles nothing.
        if not self._wanted or "get_requires_for_build_editable" in sys.argv:
            return []
        needed = {"numba", "numpy", "scipy", "scikit-learn", "narwhals", "threadpoolctl", "jinja2"}
        there = _installed(sorted(needed))
        named = [line for line in self.metadata.core.dependencies if line.split(">")[0] in needed]
        return [
            *(line for line in named if line.split(">")[0] not in there),
            *(f"{k}=={v}" for k, v in there.items()),
        ]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the pack, or warn why there is none: an installation never fails for it."""
        pack = Path(self.directory, PACK)
        if version == "editable" or not self._wanted:
            return
        try:
            pack.parent.mkdir(parents=True, exist_ok=True)
            n_packed, n_listed = _compile(Path(self.root, "src"), pack)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.app.display_warning(f"no kernels are compiled ahead: {error}")
            return
        if n_packed:
            self.app.display_info(f"{n_packed} of {n_listed} kernels of default runs are compiled ahead")
            build_data["force_include"][str(pack)] = f"tamis/{PACK}"
            build_data["pure_python"] = False
            build_data["tag"] = _tag()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the pack, which the wheel contains now."""
        Path(self.directory, PACK).unlink(missing_ok=True)


def _installed(names: list[str]) -> dict[str, str]:
    """Return the versions in the environment for which pip builds, which it hides from the build itself."""
    command = [sys.executable, "-I", "-c", _INSTALLED, *names]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    try:
        found: dict[str, str] = json.loads(ran.stdout)
    except ValueError:
        return {}
    return found


def _compile(source: Path, pack: Path) -> tuple[int, int]:
    seconds = ALL if os.environ.get("TAMIS_KERNEL_PACK") == "1" else LONGEST
    command = [sys.executable, "-c", _BUILD, str(pack), str(seconds)]
    path = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH")]))
    ran = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True,
        timeout=2 * seconds, check=False,
    )  # fmt: skip
    if ran.returncode:
        raise ValueError((ran.stderr.strip().splitlines() or ["the compilation ended"])[-1])
    n_packed, n_listed = ran.stdout.split()[-2:]
    return int(n_packed), int(n_listed)


def _tag() -> str:
    """Return the tag of a wheel for this Python on this platform; a release names a platform that an index accepts."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = os.environ.get("TAMIS_WHEEL_PLATFORM") or sysconfig.get_platform()
    # "t" if Python is free-threaded
    return f"{python}-{python}{getattr(sys, 'abiflags', '')}-{platform.replace('-', '_').replace('.', '_')}"
