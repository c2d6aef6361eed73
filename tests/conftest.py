"""What every test may ask for: real data sets, a seed, and kernels compiled from the source as it is now."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background job, whose children ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _package_folder() -> Path:
    spec = importlib.util.find_spec("tamis")
    if spec is None or spec.origin is None:
        raise pytest.UsageError("tamis is not installed: run `pip install -e '.[dev]'` first.")
    return Path(spec.origin).parent


# Set at import, before any test can import numba; subprocesses inherit it. What the tests compile is kept beside them,
# and compiled again when it changes (tamis/_kernels.py).
_TAMIS = _package_folder()
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / "numba"))

# With the compiler off, kernels are NumPy scalars' arithmetic, which warns where compiled code is silent.
if os.environ.get("NUMBA_DISABLE_JIT") == "1":
    np.seterr(all="ignore")

# The first example compiles a kernel, which takes longer than any deadline. The same code is tested by the same
# examples; others are looked for by `pytest --hypothesis-profile=search -m hypothesis`.
settings.register_profile("house", settings(), deadline=None, derandomize=True)
settings.register_profile("search", settings(), deadline=None)
settings.load_profile("house")


def pytest_report_header() -> list[str]:
    return [f"tamis: {_TAMIS}", f"numba cache: {os.environ['NUMBA_CACHE_DIR']}"]


@pytest.hookimpl(tryfirst=True)  # before xdist looks at its options
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run the suite in a process per core, unless files are named, or `-n` says otherwise (0: in this process)."""
    option = config.option
    by_hand = option.file_or_dir or option.usepdb or option.collectonly
    if not by_hand and getattr(option, "numprocesses", 0) is None and not hasattr(config, "workerinput"):
        option.numprocesses, option.dist = len(os.sched_getaffinity(0)), "worksteal"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is slow, unless files are named, or tests are chosen by `-m`."""
    if config.option.file_or_dir or config.option.markexpr:
        return
    fast = [item for item in items if not item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("slow")])
    items[:] = fast


@pytest.fixture(scope="session")
def is_search(pytestconfig: pytest.Config) -> bool:
    """Return whether random histories, kills and damage are more than each run needs: `--hypothesis-profile=search`."""
    return bool(pytestconfig.getoption("--hypothesis-profile") == "search")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of development data: TAMIS_SHARED, else the one beside the repository."""
    folder = Path(os.environ.get("TAMIS_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no development data in {folder} (set TAMIS_SHARED to the folder that holds data/)")
    return folder


@pytest.fixture(scope="session")
def load_shared(shared: Path) -> Callable[[str], tuple[Any, np.ndarray, dict[str, Any]]]:
    """Return a function: name of a data set -> X (float32 array or CSR), y (class codes), its card."""

    def load(name: str) -> tuple[Any, np.ndarray, dict[str, Any]]:
        folder = shared / "data" / name
        if not folder.is_dir():
            pytest.skip(f"the development data has no set {name!r}")
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        with np.load(folder / "data.npz", allow_pickle=False) as arrays:
            y = arrays["y"].astype(np.int64)
            X = sp.load_npz(folder / "data.npz") if "indptr" in arrays else arrays["X"]
        return X.astype(np.float32), y, card

    return load


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator that starts afresh, with the same seed, in each test."""
    return np.random.default_rng(20200823)
