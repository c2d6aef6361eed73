"""The next block of a file is read in a second thread while the present one is learned from."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["prefetch"]

T = TypeVar("T")


def prefetch(blocks: Iterator[T]) -> Iterator[T]:
    """Yield what an iterator yields, in its order; the next one is made in a thread meanwhile.

    An error comes where its block would have come. The thread waits for nothing but the block in work, and it has ended
    when this iterator is closed, an interrupt goes through it or the process ends. The second block is not begun before
    it is asked for: one who wants only a look at the first rows has no thread.

    Parameters
    ----------
    blocks : iterator
        None of what it yields is None. Pays where it spends its time without the GIL.

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
