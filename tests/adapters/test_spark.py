"""Spark: the cases run in a process of their own, so that a suite in many processes starts one Java."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JAVA = shutil.which("java") or os.environ.get("JAVA_HOME")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pyspark") is None, reason="no Spark here: pip install 'tamis[spark]'")
@pytest.mark.skipif(JAVA is None, reason="no Java here: apt-get install openjdk-17-jre-headless")
def test_spark():
    """All of `spark_cases.py`, one by one: `pytest tests/adapters/spark_cases.py -k vectors`."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--durations=5"]
    done = subprocess.run(
        [*command, "tests/adapters/spark_cases.py"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


COMPILES = """
import sys, time
import numpy as np
from tamis.adapters.spark import _compiling
from tamis._kernels import overwrite

with _compiling():
    began = time.time()
    overwrite(np.zeros(3), np.ones(3))
    time.sleep(0.3)
    ended = time.time()
from tamis._kernels import overwrite
print(began, ended, sum(overwrite.stats.cache_hits.values()), sum(overwrite.stats.cache_misses.values()))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_the_processes_of_a_machine_compile_a_kernel_once(tmp_path):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "TMPDIR": str(tmp_path)}
    both = [
        subprocess.Popen([sys.executable, "-c", COMPILES], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    first, second = sorted([float(word) for word in process.communicate()[0].split()] for process in both)
    assert first[1] <= second[0]  # one after the other
    assert (first[2:], second[2:]) == ([0, 1], [1, 0])


@pytest.mark.slow
def test_the_module_needs_no_spark_to_be_imported():
    code = "import sys; sys.modules['pyspark'] = None; import tamis.adapters.spark as s; print(s.__all__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "StreamingScreen" in done.stdout
