"""One writer: a second process is refused and told who the first is; what dead processes leave is taken over."""

import contextlib
import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from tamis import FisherScore, prequential
from tamis.cli import main
from tamis.errors import CheckpointError
from tamis.persistence.lock import write_lock

HOLD = """
import sys, time
from tamis.persistence.lock import write_lock
with write_lock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def another(place):
    """Let another process hold a lock; yield the process."""
    line = [sys.executable, "-c", HOLD, str(place)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        assert next(process.stdout) == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_the_second_process_is_told_of_the_first(tmp_path):
    place = tmp_path / "run.tamis"
    with another(place) as process:
        at = r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d"
        told = rf"run.tamis' is being written by process {process.pid}, started at {at}: wait"
        for _ in range(2):  # to be refused takes nothing from the first
            with pytest.raises(CheckpointError, match=told), write_lock(place):
                pass
        link = tmp_path / "link"
        link.symlink_to(place)
        with pytest.raises(CheckpointError, match=told.replace("run.tamis", "link")), write_lock(link):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert json.loads((tmp_path / ".run.tamis.lock").read_text())["pid"] == process.pid
        with write_lock(place):
            assert json.loads((tmp_path / ".run.tamis.lock").read_text())["pid"] == os.getpid()
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


@pytest.mark.parametrize(
    "left", ['{"pid": 1, "host": "elsewhere", "since": "2020-01-01 00:00:00"}', "", "half a li", "[1]"]
)
def test_what_was_left_is_taken_over(tmp_path, left):
    (tmp_path / ".run.tamis.lock").write_text(left)
    with write_lock(tmp_path / "run.tamis"):
        owner = json.loads((tmp_path / ".run.tamis.lock").read_text())
    assert (owner["pid"], owner["host"]) == (os.getpid(), socket.gethostname())
    assert list(tmp_path.iterdir()) == []


def test_an_owner_that_did_not_sign_or_is_elsewhere_is_named_as_far_as_it_is_known(tmp_path):
    with open(tmp_path / ".a.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(CheckpointError, match="is being written by another process: wait"):
            write_lock(tmp_path / "a").__enter__()
        file.write('{"pid": 12, "host": "elsewhere", "since": "2020-01-01 00:00:00"}')
        file.flush()
        told = "by process 12 on elsewhere, started at 2020-01-01 00:00:00: wait"
        with pytest.raises(CheckpointError, match=told):
            write_lock(tmp_path / "a").__enter__()


def test_within_a_process_it_is_held_until_the_last_one_lets_go(tmp_path):
    place = tmp_path / "a"
    with write_lock(place):
        with write_lock(place, again=True):
            pass
        assert (tmp_path / ".a.lock").exists()
        with pytest.raises(CheckpointError, match=f"by process {os.getpid()}, started"), write_lock(place):
            pass
        child = os.fork()
        if child == 0:  # what a fork inherited is not its own
            try:
                with write_lock(place, again=True):
                    os._exit(0)
            except CheckpointError:
                os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_file_that_its_owner_just_removed_is_not_taken_for_the_lock(tmp_path, monkeypatch):
    place, opened = tmp_path / "a", []
    flock = fcntl.flock

    def removed_meanwhile(descriptor, how):
        if not opened:
            os.unlink(tmp_path / ".a.lock")
        opened.append(descriptor)
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", removed_meanwhile)
    with write_lock(place):
        assert len(opened) == 2
        assert os.path.samestat(os.fstat(opened[1]), os.stat(tmp_path / ".a.lock"))


def test_what_has_no_lock(tmp_path, monkeypatch):
    with write_lock(os.devnull):
        assert not os.path.lexists("/dev/.null.lock")

    def unknown(descriptor, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unknown)
    with write_lock(tmp_path / "a"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    really = os.open

    def read_only(path, *how, **more):
        if str(path).endswith(".lock"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return really(path, *how, **more)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(
        CheckpointError, match=r"next to .*run.tamis' \(Read-only file system\): choose a writable folder"
    ):
        prequential((X, y), FisherScore(1), checkpoint=tmp_path / "run.tamis")


# -- the commands --------------------------------------------------------------------------------------------

HOW = [
    "--label",
    "y",
    "--selector",
    "fisher",
    "--select",
    "1",
    "--batch-size",
    "20",
    "--baselines",
    "none",
    "-q",
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    made = [f"{a:.3f},{b:.3f},{int(a > 0)}\n" for a, b in rng.normal(size=(200, 2))]
    (tmp_path / "a.csv").write_text("a,b,y\n" + "".join(made))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "arguments"),
    [
        ("run.tamis", ["run", "a.csv", *HOW, "--checkpoint", "run.tamis"]),
        ("results", ["run", "a.csv", *HOW, "--out", "results"]),
        ("run.tamis", ["follow", "a.csv", *HOW, "--idle", "0", "--checkpoint", "run.tamis"]),
        ("steps.jsonl", ["follow", "a.csv", *HOW, "--idle", "0", "--out", "steps.jsonl"]),
        ("bad.jsonl", ["follow", "a.csv", *HOW, "--idle", "0", "--dead-letters", "bad.jsonl"]),
    ],
)
def test_a_place_that_another_process_writes_is_refused_and_left_alone(here, capfd, place, arguments):
    kept = b'{"event": "end"}\n' if place.endswith("jsonl") else b""
    if kept:
        (here / place).write_bytes(kept)
    with another(here / place) as process:
        assert main(arguments) == 1
        told = capfd.readouterr().err
        assert f"{place}' is being written by process {process.pid}, started at " in told
        assert told.count("\n") == 1
    if kept:
        assert (here / place).read_bytes() == kept
    assert main(arguments) == 0  # it was killed
    assert [path.name for path in here.iterdir() if path.name.startswith(".")] == []


@pytest.mark.slow
def test_two_real_processes_on_one_checkpoint(here):
    line = [sys.executable, "-m", "tamis", "follow", "a.csv", *HOW, "--checkpoint", "run.tamis"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as first:
        try:
            since = time.monotonic()
            while not (here / "run.tamis").exists() and time.monotonic() - since < 60:
                time.sleep(0.05)
            saved = (here / "run.tamis").read_bytes()
            second = subprocess.run(line, capture_output=True, text=True, timeout=100)
        finally:
            first.send_signal(signal.SIGTERM)
            first.communicate(timeout=60)
    assert second.returncode == 1
    assert f"'run.tamis' is being written by process {first.pid}, started at " in second.stderr
    assert saved
    assert sorted(path.name for path in here.iterdir()) == ["a.csv", "run.tamis"]
