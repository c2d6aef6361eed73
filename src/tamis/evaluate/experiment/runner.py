"""A grid of streams, selectors, learners and seeds, test-then-train; finished runs are not run again.

Each cell is one :func:`tamis.prequential` run. Its result is written atomically into a folder named by the checksum of
its definition. An experiment that was killed, or is called again, only runs the missing cells.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tamis._interrupts import os_errors_as, raise_asynchronous
from tamis._validation import check_number, is_integer
from tamis.errors import CheckpointError, DataError
from tamis.evaluate.experiment.cells import CELLS, EXPERIMENT, contains_other_files, is_finished, write_json
from tamis.evaluate.experiment.grid import Cell, Opener, cells_of, parts_of
from tamis.evaluate.experiment.result import ExperimentResult
from tamis.evaluate.prequential.loop import prequential
from tamis.options import RunOptions
from tamis.persistence.lock import write_lock

# -- the workers -------------------------------------------------------------------------------------------


_READY = "ready"


@dataclass(frozen=True)
class Lost:
    """The outcome of a task that could not be sent to a process, or whose process died.

    Attributes
    ----------
    reason : str
        One sentence.
    """

    reason: str


class _Worker:
    """A process, the connection to it, and the number of its task."""

    def __init__(self, context: Any, function: Callable[[Any], Any]) -> None:
        self.line, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, function), daemon=True)
        self.process.start()
        other.close()  # so that the connection closes when the process ends
        self.task: int | None = None
        self.is_ready = False


def run_tasks(
    function: Callable[[Any], Any], tasks: Sequence[Any], n_jobs: int = 1
) -> Iterator[tuple[int, Any]]:
    """Yield the number and the result of each task, in order of completion.

    Parameters
    ----------
    function : callable
        Takes a task and returns its result; it should not raise. With several processes it is pickled.
    tasks : sequence
    n_jobs : int, default=1
        1: all in this process, in their order.

    Yields
    ------
    number : int
    result : object
        What the function returned, or :class:`Lost`.

    Raises
    ------
    RuntimeError
        If processes cannot be started at all.

    Examples
    --------
    >>> list(run_tasks(len, ["a", "bc"]))
    [(0, 1), (1, 2)]
    """
    if n_jobs == 1:
        with _one_thread():
            for number, task in enumerate(tasks):
                yield number, function(task)
        return
    context = multiprocessing.get_context("spawn")
    workers = [_Worker(context, function) for _ in range(min(n_jobs, len(tasks)))]
    try:
        waiting = iter(range(len(tasks)))
        while workers:
            by_line = {worker.line: worker for worker in workers}
            for line in wait(list(by_line)):
                worker = by_line[line]
                outcome = _receive(worker)
                if worker.task is not None:
                    yield worker.task, outcome
                    worker.task = None
                if isinstance(outcome, Lost):  # its process died
                    workers.remove(worker)
                    worker = _Worker(context, function)
                    workers.append(worker)
                    continue  # until it is ready
                yield from _assign(worker, waiting, tasks)
                if worker.task is None:
                    workers.remove(worker)
                    worker.line.close()
                    worker.process.join()
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()


def _receive(worker: _Worker) -> Any:
    """Return the message of a process."""
    try:
        message = worker.line.recv()
    except (EOFError, OSError):
        worker.process.join()
        if not worker.is_ready:
            raise RuntimeError(
                "No process could be started for n_jobs > 1: put the call under `if __name__ == '__main__':` in a file"
                " of its own, or choose n_jobs=1."
            ) from None
        code = worker.process.exitcode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        return Lost(f"The process of this task died ({how}); perhaps it was out of memory.")
    worker.is_ready = True
    return message


def _assign(worker: _Worker, waiting: Iterator[int], tasks: Sequence[Any]) -> Iterator[tuple[int, Lost]]:
    """Send the next task that can be sent, and yield those before it that cannot."""
    for number in waiting:
        try:
            worker.line.send(tasks[number])
        except Exception as error:  # pickle may raise any exception
            text = " ".join(str(error).split())
            yield number, Lost(f"This task cannot be sent to a process ({text}): choose n_jobs=1.")
        else:
            worker.task = number
            return


def _work(line: Connection, function: Callable[[Any], Any]) -> None:
    """Process tasks until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with _one_thread():
        line.send(_READY)
        while True:
            try:
                task = line.recv()
            except EOFError:
                return
            line.send(function(task))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _one_thread() -> AbstractContextManager[Any]:
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


@dataclass(frozen=True)
class Progress:
    """The progress of an experiment, as `on_progress` receives it.

    Attributes
    ----------
    n_done, n_cells : int
        Number of cells that are finished (or failed), and of all cells.
    n_failed : int
    cell : str
        The cell that finished last; "" at the start.
    error : str or None
        The error of that cell.
    seconds : float
        Seconds since the start.
    remaining : float or None
        Estimated seconds left, from the time that similar cells took; None until some have finished.
    """

    n_done: int
    n_cells: int
    n_failed: int
    cell: str
    error: str | None
    seconds: float
    remaining: float | None

    def __str__(self) -> str:
        failed = f", {self.n_failed} failed" if self.n_failed else ""
        left = "" if self.remaining is None else f", about {self.remaining:.0f} s left"
        return f"{self.n_done} of {self.n_cells} cells{failed}{left}  {self.cell}".rstrip()


def run_experiment(
    streams: Any,
    selectors: Any,
    learners: Any = "logistic",
    seeds: int | Sequence[int] = 5,
    folder: str | os.PathLike[str] | None = None,
    *,
    n_features_to_select: Any = None,
    n_jobs: int = 1,
    on_progress: Callable[[Progress], object] | None = None,
    **options: Any,
) -> ExperimentResult:
    """Run every selector with every learner on every stream, and compare them.

    Parameters
    ----------
    streams : part, list of parts, or dict of names to parts
        A part is a key, a pair of key and parameters, or an object. Keys of streams are those of
        :func:`tamis.streams.list_streams` (they take the cell's seed) and :func:`tamis.streams.list_datasets`, and
        paths of files (``("sensors.csv", {"label": "state"})``). Objects are a Stream, a pair (X, y), or a function
        that takes a seed and returns one of these.
    selectors : part, list of parts, or dict of names to parts
        Keys are those of :data:`tamis.catalog.CATALOG`, ``"none"`` (all features) and ``"oracle"``. The oracle keeps
        the relevant features, on streams where they are known; it is shown, but not ranked. Objects are copied before
        they learn.
    learners : part, list of parts, or dict of names to parts, default="logistic"
        Keys are those of :data:`tamis.catalog.LEARNERS`.
    seeds : int or sequence of int, default=5
        The number of seeds (0, 1, ...), or the seeds. A seed is passed to the stream, and to selector and learner as
        `random_state`. If none of them accepts one, a single cell represents all seeds.
    folder : path-like, optional
        Folder of finished cells, which are not run again. By default a temporary folder that is deleted together with
        the result.
    n_features_to_select : int, float or dict of stream names to these, optional
        Passed to every selector that accepts it. By default each has its own default.
    n_jobs : int, default=1
        Number of processes; -1: one per core. With more than one, the call must be guarded by ``if __name__ ==
        "__main__":`` in a script, and all objects must be picklable.
    on_progress : callable, optional
        Called with a :class:`Progress` at the start and after every cell, for example `print`.
    **options
        Options of :func:`tamis.prequential`: `batch_size`, `max_rows`, `protocol`, `delay`, `max_waiting`, `window`,
        `stability_window`, `n_tracked`, `auc`, `metrics`, `replay`, `masking`, `scale`, `baselines`, `n_draws`,
        `frozen_after`, `keep_steps`.

    Returns
    -------
    ExperimentResult
        Failed cells are included with their errors. After Ctrl-C it contains the finished cells, with ``interrupted``
        True.

    Raises
    ------
    ValueError, UnknownNameError, StreamError
        If a name, parameter or option is invalid; raised before anything runs.
    CheckpointError
        If the folder contains something else, cannot be written, or another experiment is running in it.
    RuntimeError
        If processes cannot be started.

    Notes
    -----
    A cell's numbers do not depend on `n_jobs`, except for times and memory: each cell has one thread for linear
    algebra.

    A cell is identified by its stream (with a fingerprint of data), selector, learner, options and the version of
    Tamis, but not by the code of your own classes and functions. After a change of that code, choose another folder.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import run_experiment
    >>> def stream(seed):
    ...     X = np.random.default_rng(seed).normal(size=(2000, 10))
    ...     return X, X[:, 2] > X[:, 7]
    >>> result = run_experiment(stream, ["fires", "none"], "perceptron", seeds=2, n_features_to_select=2)
    >>> result
    ExperimentResult(1 streams, 2 selectors, 1 learners; cells: 4 done)
    >>> table = result.table("accuracy")
    >>> print(table)
    accuracy  fires          none
    stream    0.97... ± 0.0...  0.93... ± 0.0...
    >>> table.best
    array([[ True, False]])
    """
    run_options = _run_options(options)
    cells = _cells(streams, selectors, learners, seeds, n_features_to_select, run_options)
    if n_jobs != -1:
        check_number("n_jobs", n_jobs, low=1, integer=True)
    temporary = tempfile.TemporaryDirectory(prefix="tamis-") if folder is None else None
    place = Path(temporary.name if temporary is not None else folder or "")
    _prepare(place)
    with write_lock(place, place / ".lock"):
        settings = {"tamis": "experiment", "options": run_options.describe()}
        write_json(place / EXPERIMENT, settings | {"cells": [_record(cell) for cell in cells]})
        interrupted = _run_missing(
            cells, place, os.cpu_count() or 1 if n_jobs == -1 else int(n_jobs), on_progress
        )
        result = ExperimentResult(place, interrupted=interrupted, temporary=temporary)
        result.write()
    return result


def _run_options(options: dict[str, Any]) -> RunOptions:
    valid = RunOptions.settings()
    for name in options:
        if name not in valid:
            raise ValueError(
                f"{name!r} is not an option of an experiment; the options are {', '.join(valid)}."
            )
    return RunOptions(**options)


def _cells(
    streams: Any, selectors: Any, learners: Any, seeds: Any, amount: Any, options: RunOptions
) -> list[Cell]:
    if is_integer(seeds):
        check_number("seeds", seeds, low=1, integer=True)
        seeds = range(seeds)
    seeds = list(dict.fromkeys(seeds))
    for seed in seeds:
        check_number("seeds", seed, low=0, integer=True)
    if not seeds:
        raise ValueError("seeds must contain at least one seed, got none.")
    nouns = {"stream": streams, "selector": selectors, "learner": learners}
    parts = {noun: parts_of(noun, part) for noun, part in nouns.items()}
    if isinstance(amount, dict) and (strange := set(amount) - {part.name for part in parts["stream"]}):
        raise ValueError(
            f"n_features_to_select names {sorted(strange)[0]!r}, which is not one of the streams."
        )
    numbers = [int(seed) for seed in seeds]
    return cells_of(parts["stream"], parts["selector"], parts["learner"], numbers, amount, options)


def _record(cell: Cell) -> dict[str, Any]:
    names = {part.noun: part.name for part in (cell.stream, cell.selector, cell.learner)}
    return {
        "key": cell.key,
        **names,
        "seed": cell.seed,
        "oracle": cell.selector.is_oracle,
        "keeps_all": cell.selector.what is None,
        # Whether each seed has rows of its own.
        "resampled": cell.stream.source in ("generated", "made"),
    }


def _prepare(folder: Path) -> None:
    with os_errors_as(CheckpointError, f"Cannot write into {str(folder)!r}", "choose another folder"):
        if folder.exists() and contains_other_files(folder):
            raise CheckpointError(f"{str(folder)!r} contains other files: choose a new folder.")
        (folder / CELLS).mkdir(parents=True, exist_ok=True)


def _run_missing(
    cells: list[Cell], folder: Path, n_jobs: int, on_progress: Callable[[Progress], object] | None
) -> bool:
    """Run the unfinished cells; return whether the experiment was interrupted."""
    missing = [cell for cell in cells if not is_finished(folder, cell.key)]
    watch = _Watch(len(cells), missing, n_jobs, on_progress)
    for cell in missing:  # partial results of a killed run, and earlier errors
        for rest in (folder / CELLS).glob(f"*{cell.key}*"):
            shutil.rmtree(rest) if rest.is_dir() else rest.unlink()
    finished = run_tasks(_Runner(folder), missing, n_jobs)
    try:
        for number, outcome in finished:
            cell = missing[number]
            if isinstance(outcome, Lost):
                outcome = _Outcome(outcome.reason, 0.0)
                _write_error(folder, cell.key, outcome.error)
            watch.count(cell, outcome)
    except KeyboardInterrupt:
        return True
    finally:
        finished.close()  # type: ignore[attr-defined]  # a generator: its processes end
    return False


@dataclass(frozen=True)
class _Outcome:
    error: str | None
    seconds: float


class _Runner:
    """Runs a cell and stores its result or its error."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.opener = folder, Opener()

    def __call__(self, cell: Cell) -> _Outcome:
        began = time.perf_counter()
        error = None
        try:
            stream = self.opener.open(cell.stream, cell.seed)
            run = prequential(stream, *cell.models(stream), **cell.options.keywords())
            if not len(run.frames["steps"]["step"]):
                raise DataError(
                    "The stream ends within its first batch, used for training only: choose a smaller batch size."
                )
            run.save(self.folder / CELLS / cell.key, flush=False)
        except Exception as caught:
            raise_asynchronous(caught)
            error = f"{type(caught).__name__}: {' '.join(str(caught).split())}"
            _write_error(self.folder, cell.key, error, traceback.format_exc())
        return _Outcome(error, time.perf_counter() - began)


def _write_error(folder: Path, key: str, error: str | None, trace: str = "") -> None:
    with contextlib.suppress(CheckpointError):  # a full disk: the other cells continue
        write_json(folder / CELLS / f"{key}.error.json", {"error": error, "traceback": trace})


class _Watch:
    """Counts cells, and estimates the remaining time."""

    def __init__(
        self, n_cells: int, missing: list[Cell], n_jobs: int, on_progress: Callable[[Progress], object] | None
    ) -> None:
        self.n_cells, self.n_jobs, self.on_progress = n_cells, n_jobs, on_progress
        self.n_done, self.n_failed, self.began = n_cells - len(missing), 0, time.perf_counter()
        self.waiting = {cell.key: cell for cell in missing}
        self.took: dict[tuple[str, ...], list[float]] = {}
        self._report("", None)

    def count(self, cell: Cell, outcome: _Outcome) -> None:
        """Count a finished cell."""
        del self.waiting[cell.key]
        self.n_done += 1
        self.n_failed += outcome.error is not None
        if outcome.error is None:
            for kind in _kinds(cell):
                self.took.setdefault(kind, []).append(outcome.seconds)
        names = [part.name for part in (cell.stream, cell.selector, cell.learner)]
        self._report(f"{', '.join(names)}, seed {cell.seed}", outcome.error)

    def _report(self, cell: str, error: str | None) -> None:
        if self.on_progress is not None:
            seconds = time.perf_counter() - self.began
            self.on_progress(
                Progress(self.n_done, self.n_cells, self.n_failed, cell, error, seconds, self._remaining())
            )

    def _remaining(self) -> float | None:
        if not self.took and self.waiting:
            return None
        seconds = 0.0
        for cell in self.waiting.values():  # estimated from the most similar cells
            like = next(self.took[kind] for kind in _kinds(cell) if kind in self.took)
            seconds += sum(like) / len(like)
        return seconds / min(self.n_jobs, max(len(self.waiting), 1))


def _kinds(cell: Cell) -> tuple[tuple[str, ...], ...]:
    stream, selector, learner = cell.stream.name, cell.selector.name, cell.learner.name
    return (stream, selector, learner), (stream, learner), (stream,), ()
