"""Files that a user asked for: replaced atomically, with their permissions, and no leftovers of dead writers."""

import errno
import multiprocessing
import os
import signal
import socket
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import tamis
from tamis._interrupts import raise_asynchronous
from tamis.errors import CheckpointError
from tamis.persistence import replace_file
from tamis.persistence.journal import Journal
from tamis.streams import follow_files, open_file
from tamis.summaries.moments import RunningMoments
from tests.report.runs import make_run

posix = pytest.mark.skipif(os.name == "nt", reason="permissions and signals of POSIX")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


WRITERS: dict[str, Any] = {
    "replace_file": lambda path: replace_file(path, lambda file: file.write(b"new")),
    "save": lambda path: tamis.save({"rows": 1}, path),
    "report": lambda path: make_run(0).report(path),
}


@posix
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
def test_a_replaced_file_keeps_its_permissions(writer: str, mode: int, tmp_path: Path) -> None:
    if writer == "report" and mode == 0o444:
        mode = 0o664  # a report is not written over a file that its owner made read-only
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    WRITERS[writer](path)
    assert path.read_bytes() != b"old"
    assert mode_of(path) == mode


@posix
@pytest.mark.parametrize("writer", WRITERS)
def test_a_new_file_follows_the_umask(writer: str, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        WRITERS[writer](tmp_path / "file")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "file") == 0o640


@posix
def test_a_private_file_is_private_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(0o600)
    seen = []
    replace_file(path, lambda file: seen.extend(mode_of(one) for one in tmp_path.iterdir()))
    assert seen == [0o600, 0o600]


@posix
def test_the_target_of_a_link_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    link.symlink_to(path)
    replace_file(link, lambda file: file.write(b"new"))
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


@posix
def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        replace_file(pipe, lambda file: file.write(b"new"))
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_error_names_the_file_and_leaves_nothing(tmp_path: Path) -> None:
    def fill(file: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left") as caught:
        replace_file(tmp_path / "file", fill)
    assert caught.value.filename == str(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_name_as_long_as_the_disk_allows(tmp_path: Path) -> None:
    path = tmp_path / ("数" * 85)  # 255 bytes
    replace_file(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"


# -- leftovers ------------------------------------------------------------------------------------------


def killed_while_writing(path: Path) -> Path:
    """Leave the temporary file of a process that was killed; return it."""

    def write(file: Any) -> None:
        file.write(b"half")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    before = set(path.parent.iterdir())
    child = os.fork()
    if not child:
        replace_file(path, write)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    [left] = set(path.parent.iterdir()) - before
    return left


@posix
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_next_save_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    mine, other = tmp_path / "model.tamis", tmp_path / "other.tamis"
    killed_while_writing(mine)
    of_other = killed_while_writing(other)
    tamis.save(1, mine)
    assert set(tmp_path.iterdir()) == {mine, of_other}


def _write_slowly(path: Path, begun: Any, go_on: Any) -> None:
    def write(file: Any) -> None:
        file.write(b"slow")
        file.flush()
        begun.set()
        assert go_on.wait(60)

    replace_file(path, write)


@pytest.mark.slow
def test_a_living_process_keeps_its_temporary_file(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    begun, go_on = context.Event(), context.Event()
    path = tmp_path / "file"
    other = context.Process(target=_write_slowly, args=(path, begun, go_on))
    other.start()
    try:
        assert begun.wait(60)
        replace_file(path, lambda file: file.write(b"quick"))
        assert path.read_bytes() == b"quick"
        assert len(list(tmp_path.iterdir())) == 2
    finally:
        go_on.set()
        other.join(60)
    assert other.exitcode == 0
    assert path.read_bytes() == b"slow"


def test_a_thread_keeps_its_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def write(file: Any) -> None:
        file.write(b"outer")
        replace_file(path, lambda inner: inner.write(b"inner"))

    replace_file(path, write)
    assert path.read_bytes() == b"outer"
    assert list(tmp_path.iterdir()) == [path]


@posix
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_restarted_container_with_the_same_process_number_removes_its_own(tmp_path: Path) -> None:
    path = tmp_path / "file"
    left = killed_while_writing(path)
    host, _, rest = left.name.removeprefix(".file.").split("-")
    left.rename(left.with_name(f".file.{host}-{os.getpid()}-{rest}"))
    replace_file(path, lambda file: file.write(b"new"))
    assert list(tmp_path.iterdir()) == [path]


@posix
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_another_host_left_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    left = killed_while_writing(path)
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    replace_file(path, lambda file: file.write(b"new"))
    assert set(tmp_path.iterdir()) == {path, left}


# -- exceptions of signal handlers ----------------------------------------------------------------------------


class Timeout(Exception):
    """What a handler of somebody's raises."""


class RaiseAtLine:
    """A tracer that raises an exception at the k-th line that is executed."""

    def __init__(self, k: int, kind: type[BaseException]) -> None:
        self.k, self.kind, self.where = k, kind, None

    def __call__(self, frame: Any, event: str, arg: Any) -> Any:
        if event == "line":
            self.k -= 1
            if self.k == 0:
                self.where = frame.f_code.co_filename, frame.f_lineno
                sys.settrace(None)
                raise self.kind
        return self

    def run(self, call: Any) -> BaseException | None:
        tracer = sys.gettrace()
        try:
            sys.settrace(self)
            call()
        except BaseException as error:
            return error
        finally:
            sys.settrace(tracer)
        return None


@pytest.mark.slow
@pytest.mark.parametrize("kind", [KeyboardInterrupt, Timeout, TimeoutError])
@pytest.mark.parametrize("name", ["save", "dumps"])
def test_an_exception_at_any_line_propagates_as_it_is(name: str, kind: Any, tmp_path: Path) -> None:
    moments = RunningMoments(1)
    moments.update(np.ones((2, 1)))
    state = {"moments": moments, "rows": np.arange(3.0)}
    path = tamis.save(state, tmp_path / "file")
    after = path.read_bytes()
    save, dumps = tamis.save, tamis.dumps
    call = {"save": lambda: save(state, path), "dumps": lambda: dumps(state)}[name]
    saved: list[bytes] = []
    for k in range(1, 20_000):
        path.write_bytes(b"before")
        tracer = RaiseAtLine(k, kind)
        error = tracer.run(call)
        if tracer.where is None:
            break
        # The standard library handles the OSError of some calls; TimeoutError is one.
        if kind is not TimeoutError or "tamis" in tracer.where[0]:
            assert type(error) is kind, tracer.where
            assert path.read_bytes() in (b"before", after), tracer.where
        del error  # with the frames of its traceback
        assert os.listdir(tmp_path) == ["file"], tracer.where
        if k % 20 == 0 or "_guard" in tracer.where[0] or "contextlib" in tracer.where[0]:
            thread = threading.Thread(target=lambda: saved.append(dumps(state)), daemon=True)
            thread.start()
            thread.join(60)
            assert not thread.is_alive(), f"the lock is held: {tracer.where}"
    assert k > 500
    assert path.read_bytes() == (after if name == "save" else b"before")
    assert set(saved) == {dumps(state)}


def _reads(tmp_path: Path) -> dict[str, Any]:
    """Return calls that read files, each of which reports the errors of a file in one of its own."""
    X, y = np.arange(60.0).reshape(20, 3), np.arange(20) % 2
    state = {"rows": X, "model": RunningMoments(1)}
    model, data = tamis.save(state, tmp_path / "model"), tamis.dumps(state)
    table = pa.table({"a": X[:, 0], "b": [f"{one}" for one in y], "label": y})
    csv, parquet, arrow = (str(tmp_path / f"rows.{kind}") for kind in ("csv", "parquet", "arrow"))
    pyarrow.csv.write_csv(table, csv)
    pyarrow.parquet.write_table(table, parquet)
    pyarrow.feather.write_feather(table, arrow)
    arff, svmlight = tmp_path / "rows.arff", tmp_path / "rows.svmlight"
    arff.write_text("@relation r\n@attribute a numeric\n@attribute label {0,1}\n@data\n1,0\n2,1\n")
    svmlight.write_text("1 1:2.5\n0 2:1\n")

    def rows(path: Any, follow: bool = False) -> None:
        label = None if str(path).endswith("svmlight") else "label"
        for _ in (
            follow_files(path, label="label", idle=0) if follow else open_file(path, label=label)
        ).batches(5):
            pass

    def loaded() -> None:
        with open(model, "rb") as file:
            tamis.load(file)

    paths = {"csv": csv, "parquet": parquet, "arrow": arrow, "arff": arff, "svmlight": svmlight}
    return {
        "load": lambda: tamis.load(model), "load a file object": loaded, "loads": lambda: tamis.loads(data),
        **{name: lambda path=path: rows(path) for name, path in paths.items()},
        "follow": lambda: rows(csv, follow=True),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # files that are closed by their finalizer
@pytest.mark.parametrize("kind", [KeyboardInterrupt, Timeout, TimeoutError, RuntimeError])
@pytest.mark.parametrize(
    "name",
    ["load", "load a file object", "loads", "csv", "parquet", "arrow", "arff", "svmlight", "follow"],
)
def test_an_exception_at_any_line_of_reading_propagates_as_it_is(
    name: str, kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class of its own, or one that the code it hits raises too."""
    lost: list[Any] = []  # exceptions in finalizers, which Python cannot propagate
    monkeypatch.setattr(sys, "unraisablehook", lambda info: lost.append(info.exc_type))
    read = _reads(tmp_path)[name]
    read()
    counter = RaiseAtLine(10**9, kind)
    counter.run(read)
    for k in np.linspace(1, 10**9 - counter.k, 150).astype(int).tolist():
        tracer = RaiseAtLine(k, kind)
        lost.clear()
        error = tracer.run(read)
        # The standard library handles exceptions of some calls.
        if tracer.where is not None and "tamis" in tracer.where[0] and kind not in lost:
            assert type(error) is kind, (tracer.where, error)


def test_a_timeout_of_a_handler_is_no_error_of_the_disk(tmp_path: Path) -> None:
    def handler(number: int, frame: Any) -> None:
        raise TimeoutError

    def late(file: Any) -> None:
        handler(signal.SIGALRM, sys._getframe())

    with pytest.raises(TimeoutError):
        replace_file(tmp_path / "file", late)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TimeoutError):
        _failed_write(tmp_path, late)
    with pytest.raises(CheckpointError):
        _failed_write(tmp_path, lambda _: os.open("", os.O_RDONLY))


def _failed_write(folder: Path, write: Any) -> None:
    journal = Journal(folder / "log")
    try:
        with journal._write_errors():
            write(journal)
    finally:
        journal.close()


def test_a_network_that_is_late_is_no_handler() -> None:
    try:
        raise TimeoutError("timed out")
    except TimeoutError as error:
        raise_asynchronous(error)
