"""Prefetching: the next block of a file is read in a second thread while the current one is processed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["prefetch"]

T = TypeVar("T")


def prefetch(blocks: Iterator[T]) -> Iterator[T]:
    """Yield the items of an iterator in order; a thread computes the next one meanwhile.

    An error is raised in place of its block. The thread waits for nothing but the current block, and it has ended when
    this iterator is closed, an interrupt passes through it or the process ends. The second block is started only when
    it is requested: reading only the first rows needs no thread.

    Parameters
    ----------
    blocks : iterator
        None of its items may be None. Prefetching helps if the iterator releases the GIL.

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
