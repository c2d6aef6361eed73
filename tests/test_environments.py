"""Updates, signals and saving where models live: a notebook, an event loop, a web server, pools of processes."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tamis import FIRES, FisherScore

ROOT = Path(__file__).resolve().parents[1]
X = np.random.default_rng(0).normal(size=(400, 6))
Y = (X[:, 1] > 0).astype(int)

pytestmark = pytest.mark.slow


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is not installed")


unix = pytest.mark.skipif(os.name == "nt", reason="signals and fork of POSIX")
MODEL = """
import asyncio, os, signal, sys, threading, time
import numpy as np
import tamis
X = np.random.default_rng(0).normal(size=(400, 6))
Y = (X[:, 1] > 0).astype(int)
model = tamis.FIRES(2).partial_fit(X, Y, classes=[0, 1])
"""


def run(code: str, *arguments: object) -> str:
    """Return what a program prints that ends without an error within two minutes."""
    done = subprocess.run(
        [sys.executable, "-c", MODEL + code, *map(str, arguments)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- Jupyter -----------------------------------------------------------------------------------------------


@pytest.fixture
def cell() -> Iterator[Any]:
    """A function that executes a cell of a notebook, and after a time interrupts its kernel."""
    manager_of = pytest.importorskip("jupyter_client.manager", reason="jupyter_client is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    manager, client = manager_of.start_new_kernel(startup_timeout=100)

    def execute(code: str, interrupt_after: float | None = None) -> tuple[str, str]:
        """Return what the cell prints, and the name of its exception."""
        asked, printed, error = client.execute(code), [], ""
        end = time.monotonic() + 100
        while time.monotonic() < end:
            try:
                message = client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != asked:
                continue
            content = message["content"]
            if message["msg_type"] == "stream":
                printed.append(content["text"])
                if interrupt_after is not None and "looping" in content["text"]:
                    time.sleep(interrupt_after)
                    manager.interrupt_kernel()
                    interrupt_after = None
            elif message["msg_type"] == "error":
                error = content["ename"]
            elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                return "".join(printed), error
        raise AssertionError("the cell does not end")

    try:
        yield execute
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@unix
def test_a_notebook_is_interrupted_and_goes_on(cell: Any, tmp_path: Path) -> None:
    assert cell(MODEL + "before = signal.getsignal(signal.SIGINT)\n_ = tamis.dumps(model)") == ("", "")
    loops = {
        "update": "while True: model.partial_fit(X[:1], Y[:1])",
        "save": f"while True: tamis.save(model, {str(tmp_path / 'model.tamis')!r})",
        "read": "while True: model.scores_, model.transform(X)",
    }
    for name, loop in loops.items():
        for after in (0.05, 0.2):
            printed, error = cell(f"print('looping', flush=True)\n{loop}", after)
            assert (printed.strip(), error) == ("looping", "KeyboardInterrupt"), name
            printed, error = cell("print(tamis.loads(tamis.dumps(model)).partial_fit(X, Y).n_seen_ >= 800)")
            assert (printed.strip(), error) == ("True", "")
    printed, error = cell("print(signal.getsignal(signal.SIGINT) is before)")
    assert (printed.strip(), error) == ("True", "")
    assert [path.name for path in tmp_path.iterdir()] == ["model.tamis"]
    assert tamis.load(tmp_path / "model.tamis").n_seen_ >= 400


# -- asyncio -----------------------------------------------------------------------------------------------

LOOP = """
async def main():
    loop, received, rows = asyncio.get_running_loop(), [], 0
    other = tamis.FisherScore(2).partial_fit(X, Y)
    loop.add_signal_handler(signal.SIGUSR1, lambda: received.append(len(tamis.dumps(model))))
    signal.signal(signal.SIGUSR2, lambda number, frame: received.append(-len(tamis.dumps(other))))
    def kill():
        for i in range(40):
            time.sleep(0.005)
            os.kill(os.getpid(), signal.SIGUSR1 if i % 2 else signal.SIGUSR2)
    def learn(one):
        for i in range(100):
            one.partial_fit(X[i : i + 1], Y[i : i + 1])
    thread = threading.Thread(target=kill)
    thread.start()
    while thread.is_alive():
        work = asyncio.to_thread(learn, other)  # in another thread, while handlers run in this one
        learn(model)
        await work
        rows += 100
        await asyncio.sleep(0)
    learn(model)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.sleep(0.2)
    assert model.n_seen_ == 500 + rows, (model.n_seen_, rows)
    assert other.n_seen_ == 400 + rows, (other.n_seen_, rows)
    print(any(n > 0 for n in received), any(n < 0 for n in received), len(received) > 2)
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    model.partial_fit(X, Y)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(stop.wait(), 20)
    tamis.save(model, sys.argv[1])
"""


@unix
@pytest.mark.parametrize("runner", ["asyncio", pytest.param("uvloop", marks=needs("uvloop"))])
def test_handlers_of_an_event_loop_are_called(runner: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tamis"
    assert run(f"{LOOP}\nimport {runner}\n{runner}.run(main())", path).split() == ["True"] * 3
    assert tamis.load(path).n_seen_ > 800


# -- a web server ------------------------------------------------------------------------------------------

SERVER = """
import os
import numpy as np
import tamis

PATH = os.environ["MODEL_PATH"]
X = np.random.default_rng(0).normal(size=(400, 6))
Y = (X[:, 1] > 0).astype(int)
model = tamis.FIRES(2).partial_fit(X, Y, classes=[0, 1])  # with --preload, before the workers are forked

def app(environ, start_response):
    i = int(environ["PATH_INFO"].strip("/") or 0)
    model.partial_fit(X[i : i + 1], Y[i : i + 1])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(model.n_seen_).encode()]

def worker_exit(server, worker):
    tamis.save(model, PATH)
"""


def get(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


@unix
@needs("gunicorn")
@pytest.mark.parametrize("options", [[], ["--preload"], ["--threads", "3"]], ids=" ".join)
def test_a_worker_learns_and_saves_when_it_is_stopped(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "settings.py").write_text("from server import worker_exit\n" if "--preload" not in options else
        "def worker_exit(server, worker):\n    import server\n    server.worker_exit(None, worker)\n")  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = tmp_path / "model.tamis"
    line = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", "1", "--no-control-socket",
            "--config", "settings.py", "--graceful-timeout", "20", *options, "server:app"]  # fmt: skip
    if "control-socket" not in subprocess.run([*line[:3], "--help"], capture_output=True, text=True).stdout:
        line.remove("--no-control-socket")  # of an earlier gunicorn
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen(
            line, cwd=tmp_path, env=dict(os.environ, MODEL_PATH=str(path)), stdout=log, stderr=log
        )
    try:
        end = time.monotonic() + 90
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                get(port, "/0")
                break
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.1)
        seen = [int(get(port, f"/{i}")) for i in range(1, 50)]
        assert seen == list(range(402, 451))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, (tmp_path / "log").read_text()
    finally:
        process.kill()
        process.wait()
    assert tamis.load(path).n_seen_ == 450
    twin = FIRES(2).partial_fit(X, Y, classes=[0, 1])
    for i in (*range(50),):
        twin.partial_fit(X[i : i + 1], Y[i : i + 1])
    assert tamis.dumps(tamis.load(path)) == tamis.dumps(twin)


# -- pools and processes -----------------------------------------------------------------------------------


def learn(model: Any, first: int) -> Any:
    """Learn in a worker, where a signal arrives in the middle."""
    model.partial_fit(X[first : first + 100], Y[first : first + 100])
    received: list[int] = []
    if hasattr(signal, "SIGUSR1"):
        signal.signal(signal.SIGUSR1, lambda number, frame: received.append(len(tamis.dumps(model))))
        os.kill(os.getpid(), signal.SIGUSR1)
    for i in range(first + 100, first + 200):
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
    return model, len(received)


def twins() -> tuple[list[Any], list[bytes]]:
    """Return models that have learned rows, and the bytes of those that learned more in this process."""
    models = [cls(2).partial_fit(X[:100], Y[:100], classes=[0, 1]) for cls in (FIRES, FisherScore)]
    expected = []
    for model in models:
        twin = tamis.loads(tamis.dumps(model)).partial_fit(X[100:200], Y[100:200])
        for i in range(200, 300):
            twin.partial_fit(X[i : i + 1], Y[i : i + 1])
        expected.append(tamis.dumps(twin))
    return models, expected


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_models_learn_in_a_pool_of_joblib(backend: str) -> None:
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    models, expected = twins()
    if backend == "threading":
        found = joblib.Parallel(2, backend=backend)(joblib.delayed(in_thread)(model) for model in models)
        assert [tamis.dumps(model) for model in found] == expected
        return
    found = run_pool(expected)
    assert found == "True True"


def in_thread(model: Any) -> Any:
    model.partial_fit(X[100:200], Y[100:200])
    for i in range(200, 300):
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
    return model


def run_pool(expected: list[bytes]) -> str:
    """Run a pool in another process, whose workers end with it."""
    code = """
import joblib
from tests.test_environments import learn, twins
models, expected = twins()
found = joblib.Parallel(2, backend="loky")(joblib.delayed(learn)(model, 100) for model in models)
again = [learn_more.partial_fit(X, Y) for learn_more, _ in found]  # what came back learns on
print([tamis.dumps(one) for one, _ in joblib.Parallel(2)(joblib.delayed(learn)(m, 100) for m in models)] == expected,
      all(n == 1 for _, n in found) or not hasattr(signal, "SIGUSR1"))
"""
    done = subprocess.run(
        [sys.executable, "-c", MODEL + code],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_models_learn_in_another_process(method: str, tmp_path: Path) -> None:
    models, expected = twins()
    context: Any = multiprocessing.get_context(method)
    with context.Pool(1) as pool:
        found = pool.starmap_async(learn, [(model, 100) for model in models]).get(120)
    assert [tamis.dumps(model) for model, _ in found] == expected
    if os.name != "nt":
        assert [n for _, n in found] == [1, 1]
    path = tamis.save(models[0], tmp_path / "model.tamis")
    process = context.Process(target=save_until_killed, args=(str(path),))
    process.start()
    end = time.monotonic() + 100
    while path.stat().st_mtime_ns == first_time(path) and time.monotonic() < end:
        time.sleep(0.01)
    process.kill()
    process.join(60)
    assert tamis.load(path).n_seen_ >= 100
    tamis.save(models[0], path)
    assert [one.name for one in tmp_path.iterdir()] == ["model.tamis"]


_first: dict[Path, int] = {}


def first_time(path: Path) -> int:
    return _first.setdefault(path, path.stat().st_mtime_ns)


def save_until_killed(path: str) -> None:
    model = tamis.load(path)
    while True:
        tamis.save(model.partial_fit(X[:1], Y[:1]), path)
