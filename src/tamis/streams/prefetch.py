"""Prefetching: a second thread reads the next block of a file while the current one is processed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def prefetch(blocks: Iterator[T]) -> Iterator[T]:
    """Yield the items of an iterator in order; a thread computes the next one meanwhile.

    An error is raised in place of its block. The thread waits only for the current block, and has ended when this
    iterator is closed, an interrupt passes through it or the process ends. The second block is read only on request, so
    reading the first rows uses no thread.

    Parameters
    ----------
    blocks : iterator
        Items must not be None. Prefetching is effective if the iterator releases the GIL.

    Examples
    --------
    >>> list(prefetch(iter("abc")))
    ['a', 'b', 'c']
    """
    block = next(blocks, None)
    if block is None:
        return
    yield block
    with ThreadPoolExecutor(1, "tamis-read-ahead") as thread:
        coming = thread.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = thread.submit(next, blocks, None)
            yield block
