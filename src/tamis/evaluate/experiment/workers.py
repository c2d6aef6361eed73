"""Tasks in worker processes: results in order of completion; dead workers are replaced, none outlives its parent.

Processes are spawned, not forked, so they do not inherit threads of the parent. Every task has one thread for linear
algebra, in a worker and in this process alike, so its bits do not depend on `n_jobs`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

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

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits
