"""Exploration of a stream of features with a budget, interruption by Ctrl-C, and resumption from a checkpoint."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tamis._interrupts import defer_interrupts
from tamis._validation import Floats, check_number
from tamis.base import ColumnSelector, html_repr
from tamis.columns.generators.generator import FeatureGenerator
from tamis.columns.generators.recipes import Recipes
from tamis.columns.generators.sources import FromIterable
from tamis.errors import CheckpointError
from tamis.persistence import load, save


@dataclass(frozen=True)
class Progress:
    """The progress of an exploration.

    Attributes
    ----------
    n_candidates, n_selected : int
    seconds : float
    stage : str
        The current generator.
    """

    n_candidates: int
    n_selected: int
    seconds: float
    stage: str


@dataclass(frozen=True)
class Exploration:
    """The result of an exploration of a stream of features.

    Attributes
    ----------
    selector : ColumnSelector
        The selector passed to :func:`explore`.
    recipes : Recipes
        The recipes of the selected features.
    n_candidates : int
        Number of features offered, including those before a checkpoint.
    seconds : float
        Time taken, including that before a checkpoint.
    ended : str
        "exhausted", "max_candidates", "max_seconds", "interrupted", or the reason why the selector stopped.
    """

    selector: ColumnSelector
    recipes: Recipes
    n_candidates: int
    seconds: float
    ended: str

    def __repr__(self) -> str:
        return f"Exploration({', '.join(self._facts())})"

    def _repr_html_(self) -> str:
        return html_repr("Exploration", self._facts(), {name: [] for name in self.selector.selected_})

    def _facts(self) -> list[str]:
        selected = f"{len(self.selector.selected_):,} of {self.n_candidates:,} candidates selected"
        return [selected, f"{self.seconds:.3g} s", f"ended: {self.ended}"]

    def transform(self, X: Any) -> Floats:
        """Compute the selected features of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_selected), float64
        """
        return self.recipes.transform(X)


def explore(
    selector: ColumnSelector,
    features: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    max_seconds: float | None = None,
    max_candidates: int | None = None,
    on_step: Callable[[Progress], object] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 30.0,
) -> Exploration:
    """Offer a stream of features to a selector until the stream ends, the budget is spent, or Ctrl-C is pressed.

    Parameters
    ----------
    selector : ColumnSelector
        Updated in place.
    features : FeatureGenerator, FeatureStream or iterable
        As for ``fit_stream``.
    y : array-like of shape (n_rows,), optional
        The target, which starts the selector. Without it, a started selector continues.
    sample_weight : array-like of shape (n_rows,), optional
    max_seconds : float or None, default=None
        Time limit in seconds, checked after each block of candidates. Time before a checkpoint counts.
    max_candidates : int or None, default=None
        Number of candidates to offer, unless the stream ends first. Those before a checkpoint count.
    on_step : callable, optional
        Called with a :class:`Progress` after each block, a few times to a few hundred times a second.
    checkpoint : path-like, optional
        The file to save to and, if it exists, to resume from. The decisions are the same whether or not the process was
        killed in between. A selector with ``trace="selected"`` keeps the file small.
    checkpoint_seconds : float, default=30
        Minimum time between two saves. The state is also saved at the end.

    Returns
    -------
    Exploration
        After Ctrl-C it contains the features selected so far, with ``ended`` "interrupted". The selector is then in a
        valid state, and the stream can be continued. Ctrl-C, SIGTERM and SIGHUP wait for the current block; a second
        one stops at once.

    Raises
    ------
    DataError
        If a feature cannot be decided on. Features selected before remain in the selector and the checkpoint.
    CheckpointError
        If the checkpoint belongs to another exploration.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> from tamis.columns.generators import Chain, explore
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 40))
    >>> y = X[:, 3] - X[:, 3] * X[:, 30] + 0.1 * rng.normal(size=200)
    >>> result = explore(AlphaInvesting(target_fdr=0.05), Chain.published(X, 3), y, max_candidates=1000)
    >>> result.selector.selected_, result.n_candidates, result.ended
    (['x3', 'x3*x30'], 83, 'exhausted')
    >>> np.allclose(result.transform(X[:2])[:, 1], X[:2, 3] * X[:2, 30])
    True
    """
    if max_seconds is not None:
        check_number("max_seconds", max_seconds, low=0.0)
    if max_candidates is not None:
        check_number("max_candidates", max_candidates, low=0, integer=True)
    check_number("checkpoint_seconds", checkpoint_seconds, low=0.0)
    stream = features if isinstance(features, FeatureGenerator) else FromIterable(features)
    run = _ExplorationRun(selector, stream, None if checkpoint is None else Path(checkpoint))
    run.start(y, sample_weight)
    try:
        with defer_interrupts() as stop_if_asked:
            ended = run.run(max_seconds, max_candidates, on_step, float(checkpoint_seconds), stop_if_asked)
    except KeyboardInterrupt:
        ended = "interrupted"
    finally:
        run.save()
    return Exploration(selector, stream.recipes(selector), run.n_candidates, run.seconds(), ended)


class _ExplorationRun:
    """A selector, a stream, and their progress."""

    def __init__(self, selector: ColumnSelector, stream: FeatureGenerator, path: Path | None) -> None:
        self.selector, self.stream, self.path = selector, stream, path
        self.n_candidates = 0
        self.earlier, self.began = 0.0, time.perf_counter()
        self.settings: dict[str, str] = {}
        if path is not None and (path.is_dir() or not os.access(path.absolute().parent, os.W_OK | os.X_OK)):
            raise CheckpointError(
                f"Cannot write the checkpoint {str(path)!r}: choose a file in a folder that exists and can be written."
            )

    def seconds(self) -> float:
        return self.earlier + time.perf_counter() - self.began

    # -- start and checkpoint -----------------------------------------------------------------------------

    def start(self, y: Any, sample_weight: Any) -> None:
        """Start the selector, or resume from the checkpoint."""
        if self.path is not None:
            self.settings = {
                "selector": f"{type(self.selector).__name__}({self.selector.get_params()})",
                "stream": repr(self.stream.signature()),
                "target": _digest(y) + _digest(sample_weight),
            }
            if self.path.exists():
                self._resume(load(self.path, classes=[type(self.selector)]))
                return
        if y is not None:
            self.selector.start(y, sample_weight)
        for name in self.selector.selected_:
            self.stream.recipe_of(name)

    def _resume(self, saved: Any) -> None:
        if not isinstance(saved, dict) or "walk" not in saved:
            raise CheckpointError(
                f"{str(self.path)!r} is not a checkpoint of a stream of features: choose another file, or remove it."
            )
        for which, now in self.settings.items():
            if saved["settings"][which] != now:
                raise CheckpointError(
                    f"{str(self.path)!r} is the checkpoint of another exploration: the {which} differs (its parameters,"
                    " or the data that it reads). Choose another file, or remove it."
                )
        walk = saved["walk"]
        self.stream.join(walk["book"], self.stream.place)
        self.stream.seek(walk["position"])
        self.selector.__dict__.clear()
        self.selector.__dict__.update(walk["selector"].__dict__)
        self.n_candidates, self.earlier = walk["n_candidates"], walk["seconds"]

    def save(self) -> None:
        """Save the exploration, if it has a checkpoint file."""
        self.stream.store_accepted(self.selector)
        if self.path is None:
            return
        walk = {
            "selector": self.selector, "book": self.stream.book, "position": self.stream.position(),
            "n_candidates": self.n_candidates, "seconds": self.seconds(),
        }  # fmt: skip
        save({"settings": self.settings, "walk": walk}, self.path)

    # -- offering ------------------------------------------------------------------------------------------

    def run(
        self,
        max_seconds: float | None,
        max_candidates: int | None,
        on_step: Callable[[Progress], object] | None,
        every: float,
        stop_if_asked: Callable[[], None],
    ) -> str:
        """Offer block after block; return the reason for the end."""
        saved = time.perf_counter()
        while True:
            if self.selector.stopped_ is not None:
                return str(self.selector.stopped_)
            if max_candidates is not None and self.n_candidates >= max_candidates:
                return "max_candidates"
            if max_seconds is not None and self.seconds() >= max_seconds:
                return "max_seconds"
            if not self._step(None if max_candidates is None else max_candidates - self.n_candidates):
                return "exhausted"
            if on_step is not None:
                n_selected = len(self.selector.selected_)
                on_step(Progress(self.n_candidates, n_selected, self.seconds(), self.stream.stage()))
            stop_if_asked()
            if self.path is not None and time.perf_counter() - saved >= every:
                self.save()
                saved = time.perf_counter()

    def _step(self, limit: int | None) -> bool:
        """Offer one block atomically; return whether there was one."""
        selector, stream = self.selector, self.stream
        stream.store_accepted(selector)
        position, n_offered = stream.position(), selector.n_offered_
        try:
            block = stream.next_features(selector, limit)
            if block is not None:
                selector.offer_many(block[1], block[0])
        except BaseException:
            if selector.n_offered_ == n_offered:
                stream.seek(position)
                stream.discard_last_block()
            raise
        finally:
            self.n_candidates += selector.n_offered_ - n_offered
        return block is not None


def _digest(values: Any) -> str:
    array = np.asarray(values)
    data = repr(array.tolist()).encode() if array.dtype.kind == "O" else np.ascontiguousarray(array).tobytes()
    return hashlib.sha256(str(array.dtype).encode() + data).hexdigest()[:32]
