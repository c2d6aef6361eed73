"""Importing Tamis is light: nothing heavy is loaded before it is used."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tamis

HEAVY = {"numba", "llvmlite", "pandas", "polars", "pyarrow", "matplotlib", "typer", "rich"}


def loaded_after(code: str) -> set[str]:
    """Return which top-level modules are loaded after a new interpreter ran the code."""
    report = "import json, sys; print(json.dumps([name for name in sys.modules if '.' not in name]))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_tamis_loads_nothing() -> None:
    assert not loaded_after("import tamis") & (HEAVY | {"numpy", "scipy", "sklearn", "narwhals"})


def test_a_deferred_module_is_the_module_once_it_is_used() -> None:
    code = """
import sys
from tamis._deferred import deferred
with deferred("wave", "sched", "no_such_module"):
    import wave
    from sched import scheduler
assert "wave" not in sys.modules and "sched" in sys.modules
assert wave.Error.__name__ == "Error" and "wave" in sys.modules
import wave as imported
assert imported.Error is wave.Error and imported is not wave
import tamis.rows, scipy.stats, sklearn.utils.fixes
assert sklearn.utils.fixes.scipy.stats is sys.modules["scipy.stats"] is scipy.stats
assert scipy.stats.norm.cdf(0.0) == 0.5"""
    loaded_after(code)


def test_selectors_are_imported_without_what_scikit_learn_imports_for_others() -> None:
    code = "import sys, tamis.rows, tamis.columns, tamis.learners, tamis.pipeline, tamis.evaluate.prequential"
    unused = ("scipy.stats", "sklearn.metrics", "sklearn.linear_model")
    assert not loaded_after(f"{code}\nassert not sys.modules.keys() & set({unused!r})") & HEAVY


@pytest.mark.slow
def test_nothing_heavy_before_it_is_used() -> None:
    code = """
import sys
for line in (
    "from tamis import FIRES; FIRES()",
    "from tamis import OFS; repr(OFS())",
    "from tamis import load, save",
    "import tamis.catalog, tamis.checks, tamis.streams, tamis.errors",
    "import tamis; dir(tamis); tamis.catalog.find('fires').load()",
    "from tamis import prequential, load_dataset, open_file",
):
    exec(line)
    assert "numba" not in sys.modules, line
"""
    assert not loaded_after(code) & HEAVY


@pytest.mark.slow
def test_learning_loads_numba_but_no_frames() -> None:
    code = "import numpy as np, tamis; tamis.FIRES(1).partial_fit(np.eye(4), [0, 0, 1, 1])"
    assert loaded_after(code) & HEAVY == {"numba", "llvmlite"}


@pytest.mark.slow
@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["--help"], ["run", "--help"]], ids=" ".join)
def test_what_only_prints_the_catalogue_imports_no_method(words: list[str]) -> None:
    code = f"""
import sys
sys.argv = ["tamis", *{words!r}]
from tamis.cli import main
try:
    main()
except SystemExit as done:
    assert not done.code
print()"""
    assert not loaded_after(code) & {"numba", "llvmlite", "sklearn", "scipy"}


@pytest.mark.slow
def test_without_extras_the_core_works(tmp_path: Path) -> None:
    """As on a machine where only the core's dependencies are installed."""
    code = f"""
import sys
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(HEAVY - {"numba", "llvmlite"})!r}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, NotInstalled())
import numpy as np, tamis
X, y = np.eye(4), [0, 0, 1, 1]
selector = tamis.FIRES(2).partial_fit(X, y)
assert tamis.load(tamis.save(selector, {str(tmp_path / "model")!r})).get_support().sum() == 2
assert tamis.OFS(2).partial_fit(X, y).transform(X).shape == (4, 2)
for X, y in tamis.load_dataset("electricity").batches(100):
    selector = tamis.FIRES(2).partial_fit(X, y)
    break
"""
    assert loaded_after(code) & HEAVY == {"numba", "llvmlite"}


def test_every_public_name_is_there() -> None:
    for name in tamis.__all__:
        assert getattr(tamis, name) is not None, name
    assert set(tamis.__all__) <= set(dir(tamis))
    with pytest.raises(AttributeError, match="module 'tamis' has no attribute 'nothing'"):
        importlib.import_module("tamis").nothing  # noqa: B018


@pytest.mark.slow
def test_import_time(
    record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = {}
    for code in (
        "pass",
        "import numpy",
        "import numpy, tamis",
        "import numpy, sklearn.feature_selection",
        "import tamis.rows",
    ):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        seconds[code] = time.perf_counter() - start
        record_property(code, seconds[code])
    with capsys.disabled():
        print("\n" + "\n".join(f"{value:6.3f} s  {code}" for code, value in seconds.items()))
