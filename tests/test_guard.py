"""Threads on one object: no row is lost, nobody waits for ever; copies, pickles and files know nothing of locks."""

from __future__ import annotations

import ast
import copy
import functools
import importlib
import inspect
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import joblib
import numpy as np
import pytest
import threadpoolctl
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import tamis
from tamis import _guard
from tamis._guard import limited_threads
from tamis.base import CellClassifier, ColumnSelector, RowSelector
from tamis.catalog import CATALOG, LEARNERS
from tamis.drift.detector import Detector
from tamis.learners import Refit
from tamis.learners.dense_rows import DenseRowClassifier
from tamis.summaries.moments import RunningMoments


def test_two_writers_count_every_row(rng: np.random.Generator) -> None:
    """Without the guard, two threads lose rows of each other."""
    moments, rows = RunningMoments(3), rng.normal(size=(2000, 3))
    threads = [threading.Thread(target=lambda: [moments.update(row[None]) for row in rows]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(moments.weight, 8000.0)
    np.testing.assert_allclose(moments.mean, rows.mean(axis=0), atol=1e-12)


def test_merging_in_both_directions_does_not_wait_for_ever(rng: np.random.Generator) -> None:
    a, b = RunningMoments(2), RunningMoments(2)
    a.update(rng.normal(size=(5, 2)))
    pairs = [(a, b), (b, a)]
    threads = [
        threading.Thread(target=lambda x=x, y=y: [x.merge(y) for _ in range(100)], daemon=True)
        for x, y in pairs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)


def test_every_base_class_is_guarded() -> None:
    for base in (RowSelector, ColumnSelector, CellClassifier, DenseRowClassifier, Detector):
        assert issubclass(base, _guard.ThreadSafe)
    for entry in CATALOG:
        cls = entry.load()
        assert issubclass(cls, _guard.ThreadSafe)
        for name in ("fit", "partial_fit", "offer", "predict", "merge", "scores_", "get_support"):
            member = inspect.getattr_static(cls, name, None)
            function = member.fget if isinstance(member, property) else member
            # scikit-learn's methods call guarded ones, here `_get_support_mask`.
            is_ours = inspect.isfunction(function) and function.__module__.startswith("tamis")
            if is_ours and function.__module__ != "tamis.base.selector_mixin":
                assert hasattr(function, "__wrapped__"), (cls, name)


@pytest.mark.parametrize("key", ["discuss", "knn-su", "alpha-investing"])
def test_copies_and_files_hold_no_lock(key: str, rng: np.random.Generator, tmp_path: Path) -> None:
    entry = next(entry for entry in (*CATALOG, *LEARNERS) if entry.key == key)
    X = rng.normal(size=(60, 4))
    y = (X[:, 1] > 0).astype(int)
    model = entry.load()(**dict(entry.parameters)).fit(X, y)
    path = tmp_path / "model"
    joblib.dump(model, path)
    twins = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), joblib.load(path), clone(model).fit(X, y),
             tamis.load(tamis.save(model, path))]  # fmt: skip
    assert not any("lock" in repr(type(part)).lower() for part in vars(model).values())
    for twin in [*twins, copy.copy(model)]:
        assert vars(twin).keys() == vars(model).keys()
        assert type(twin).__name__ == type(model).__name__
    read = "predict" if hasattr(model, "predict") else "transform"
    for twin in twins:
        np.testing.assert_array_equal(getattr(twin, read)(X), getattr(model, read)(X))
    n_records = len(_guard._records)
    del twin, twins
    assert len(_guard._records) < n_records  # they end with their objects


def test_the_end_of_an_object_runs_no_python() -> None:
    """A signal's handler that raises within a callback in Python is ignored: Ctrl-C would be lost."""
    moments = RunningMoments(2)
    callback = _guard.record_of(moments).reference.__callback__
    assert isinstance(callback, functools.partial)
    assert inspect.isbuiltin(callback.func)


def test_a_copy_that_is_made_while_another_thread_learns_is_whole(rng: np.random.Generator) -> None:
    moments, rows = RunningMoments(50), rng.normal(size=(200, 50))
    going = threading.Event()

    def learn() -> None:
        while not going.is_set():
            moments.update(rows)

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        twins = [copy.deepcopy(moments) for _ in range(50)] + [
            pickle.loads(pickle.dumps(moments)) for _ in range(50)
        ]
    finally:
        going.set()
        thread.join()
    for twin in twins:
        assert twin.weight % 200 == 0


def test_a_shallow_copy_takes_turns_with_what_it_shares_its_arrays_with() -> None:
    moments = RunningMoments(2)
    twin = copy.copy(moments)
    assert _guard.lock_of(twin) is _guard.lock_of(moments)
    assert _guard.lock_of(copy.deepcopy(moments)) is not _guard.lock_of(moments)
    moments.merge(twin)  # one lock is taken twice, and nobody waits


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_process_does_not_wait_for_the_parents_threads() -> None:
    code = """
import os, threading, time
import numpy as np
from tamis import _guard
from tamis.summaries.moments import RunningMoments
moments, ready = RunningMoments(2), threading.Event()
def hold():
    with _guard.locked([moments]):
        ready.set(); time.sleep(60)
threading.Thread(target=hold, daemon=True).start()
ready.wait()
child = os.fork()
if child == 0:
    moments.update(np.array([[1.0, 2.0]]))
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=50, check=True
    )
    assert done.stdout.strip() == "7"


HANDLERS_THAT_SAVE = """
import signal, sys, time
import numpy as np
import tamis
from tamis.summaries.moments import RunningMoments
number, timer = signal.SIGALRM, signal.ITIMER_REAL
if sys.argv[1] == "SIGVTALRM":
    number, timer = signal.SIGVTALRM, signal.ITIMER_VIRTUAL
X = np.random.default_rng(0).normal(size=(100, 4))
model, saved = tamis.FisherScore(2).partial_fit(X, X[:, 0] > 0), []

def save(number, frame):
    saved.append(len(tamis.dumps({"model": model, "other": RunningMoments(2)})))
    signal.setitimer(timer, 0.0005)  # not while this handler runs: it would be called within itself

tamis.dumps(model)
signal.signal(number, save)
signal.setitimer(timer, 0.0005)
end = time.monotonic() + 60
while len(saved) < 300 and time.monotonic() < end:
    for _ in range(20):
        RunningMoments(3).update(X[:1, :3])
    tamis.FIRES(1)
signal.signal(number, signal.SIG_IGN)
print(len(saved), len(set(saved)))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
@pytest.mark.parametrize("name", ["SIGALRM", "SIGVTALRM"])
def test_a_handler_saves_a_model_while_others_are_created(name: str) -> None:
    """With a lock that cannot be taken again, the handler waits for the code that it interrupts."""
    done = subprocess.run(
        [sys.executable, "-c", HANDLERS_THAT_SAVE, name],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    n_saved, n_sizes = map(int, done.stdout.split())
    assert n_saved >= 300
    assert n_sizes == 1


def test_a_record_is_made_once_whoever_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that reads the object between the creation of its record and the registration."""
    make, made = _guard._Record, []

    def interrupted(*args: object) -> object:
        if not made:
            made.append(True)
            made.append(_guard.record_of(moments))
        return make(*args)

    moments = RunningMoments(2)
    _guard._records.pop(id(moments), None)
    monkeypatch.setattr(_guard, "_Record", interrupted)
    assert _guard.record_of(moments) is made[1]
    assert _guard.record_of(moments) is made[1]


def test_no_lock_that_a_handler_could_wait_for() -> None:
    """Only the pages that are served have plain locks, and no code of a model calls them."""
    root = Path(_guard.__file__).parent
    plain = {"Lock", "Condition", "Event", "Semaphore", "BoundedSemaphore", "Barrier", "Queue", "SimpleQueue"}
    found = {
        f"{path.relative_to(root).as_posix()}:{node.func.attr}"
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in plain
        and isinstance(node.func.value, ast.Name) and node.func.value.id in ("threading", "queue")
    }  # fmt: skip
    assert found == {
        "cli/live.py:Lock", "cli/live.py:Queue", "cli/acquire.py:Event", "cli/question_page.py:Lock",
    }  # fmt: skip


# -- threads of libraries --------------------------------------------------------------------------------------


def openmp_threads() -> set[int]:
    return {one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "openmp"}


def test_boosting_uses_one_thread_for_small_data_and_those_of_the_user_for_large() -> None:
    """On a busy machine the threads of a small fit wait for one another: four times the processor time."""
    importlib.import_module("sklearn.ensemble._hist_gradient_boosting")
    with threadpoolctl.threadpool_limits(3, "openmp"):
        with limited_threads(1000):
            assert openmp_threads() == {1}
        assert openmp_threads() == {3}
        with limited_threads(1_000_000):
            assert openmp_threads() == {3}


def test_a_refitted_model_is_fitted_and_predicts_on_one_thread() -> None:
    seen: list[set[int]] = []

    class Watched(LogisticRegression):
        def fit(self, X, y):
            seen.append(openmp_threads())
            return super().fit(X, y)

        def predict(self, X):
            seen.append(openmp_threads())
            return super().predict(X)

    X = np.random.default_rng(0).normal(size=(300, 3))
    with threadpoolctl.threadpool_limits(3, "openmp"):
        model = Refit(Watched(), every=100, min_rows=50).partial_fit(X, X[:, 0] > 0, classes=[False, True])
        model.predict(X)
    assert seen
    assert set().union(*seen) == {1}
