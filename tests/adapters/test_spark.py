"""Spark: the cases run in a process of their own, so that a suite in many processes starts one Java."""

import math
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from tamis import ForwardPartialCorrelation, dumps, loads, merge_tree
from tamis.adapters.spark.selection import ForwardOnce

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
from tamis.adapters.spark.workers import _compiling
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


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_merged_gram_matrices_give_the_selection_of_all_rows(task):
    """The twin: partial F-tests of least squares on all rows, one feature after the other."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 12))
    X[:, 5] = X[:, 2] + 0.05 * rng.normal(size=1200)  # a copy
    target = X[:, 2] + 0.5 * X[:, 7] + rng.normal(size=1200)
    y = target if task == "regression" else (target > 0).astype(int)
    blank = ForwardOnce(None, task=task, half_life=math.inf, alpha_drift=None, max_columns=12)
    parts = [clone(blank).fit(X[part], y[part]) for part in np.array_split(np.arange(1200), 5)]
    merged = merge_tree(parts)
    selector = loads(dumps(merged.finished()))
    assert type(selector) is ForwardPartialCorrelation
    order, gains = forward_least_squares(X, y, n_steps=2)
    assert merged._order.tolist() == order
    assert set(order) == {2, 7} or set(order) == {5, 7}
    np.testing.assert_allclose(merged._entered, gains, rtol=1e-5)
    statistic, pvalues = merged.pvalues()
    np.testing.assert_allclose(statistic, 1200 * np.array(gains) / [1.0, 1.0 - gains[0]], rtol=1e-5)
    assert pvalues.max() < 1e-9
    np.testing.assert_array_equal(selector.get_support(indices=True), sorted(order))


def forward_least_squares(X, y, n_steps):
    """Return the order, and what each feature adds to the explained share of the variance."""
    total, chosen, gains, explained = ((y - y.mean()) ** 2).sum(), [], [], 0.0
    for _ in range(n_steps):
        shares = []
        for j in range(X.shape[1]):
            A = np.column_stack([np.ones(len(y)), X[:, [*chosen, j]]])
            residual = y - A @ np.linalg.lstsq(A, y)[0]
            shares.append(0.0 if j in chosen else 1.0 - (residual**2).sum() / total)
        chosen.append(int(np.argmax(shares)))
        gains.append(max(shares) - explained)
        explained = max(shares)
    return chosen, gains
