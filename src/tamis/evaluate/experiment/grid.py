"""The cells of an experiment: streams x selectors x learners x seeds, each identified by its definition.

A part (a stream, a selector or a learner) is named by a key, with or without parameters, or is an object. A cell's
definition consists of the settings of its :func:`tamis.prequential` run and the version of Tamis. If it changes, so
does the cell's key, and the cell is run again. Cells that differ only in a seed that no part accepts are one cell.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

import tamis
from tamis._validation import Array, Mask, Rows
from tamis.catalog import find, find_learner
from tamis.errors import UnknownNameError, did_you_mean
from tamis.evaluate.prequential.settings import REGRESSION, settings_of, task_of
from tamis.options import RunOptions, model_parameters
from tamis.streams import list_datasets, list_streams, load_dataset, load_stream, open_file
from tamis.streams.named_streams import as_stream
from tamis.streams.stream import BatchStream, Stream

_OPENERS: dict[str, Any] = {"generated": load_stream, "dataset": load_dataset, "file": open_file}


class Oracle:
    """Selects the relevant features of the next row, as reported by the stream.

    It is a reference, not an upper bound: copies of a relevant feature may improve a learner further. When the
    relevant features change it signals a drift, and the learner resets with the rows since then (Barddal's thesis,
    Chapter 9, whose oracle compares consecutive rows and so resets hundreds of times in a gradual drift; here once).

    Parameters
    ----------
    stream : Stream
        A stream with known relevant features (`relevant_at`).

    Attributes
    ----------
    drift_detected_ : bool
        Whether the relevant features of the next row differ from those before the last batch.
    n_replay : int
        Number of rows of the last batch since the drift.
    """

    def __init__(self, stream: Any) -> None:
        self.stream, self.n_seen_, self.drift_detected_, self.n_replay = stream, 0, False, 0

    def partial_fit(self, X: Rows, y: Array) -> Oracle:
        """Count the rows."""
        self.n_features_in_ = X.shape[1]
        before = self.get_support() if self.n_seen_ else None
        self.n_seen_ += X.shape[0]
        now = self.get_support()
        self.drift_detected_ = before is None or bool((before != now).any())
        self.n_replay = 0
        while (
            self.drift_detected_
            and self.n_replay < X.shape[0]
            and self._is_at(self.n_seen_ - 1 - self.n_replay, now)
        ):
            self.n_replay += 1
        return self

    def _is_at(self, t: int, mask: Mask) -> bool:
        return np.array_equal(np.sort(self.stream.relevant_at(t)), np.flatnonzero(mask))

    def get_support(self) -> Mask:
        """Return which features are relevant in the next row, shape (n_features,)."""
        mask = np.zeros(self.n_features_in_, dtype=bool)
        end = self.stream.n_rows  # after the last row, keep the last selection
        mask[self.stream.relevant_at(self.n_seen_ if end is None else min(self.n_seen_, end - 1))] = True
        return mask


@dataclass(frozen=True)
class Part:
    """A stream, a selector or a learner of the grid.

    Attributes
    ----------
    noun : {"stream", "selector", "learner"}
    name : str
        Its name in tables.
    what : object
        A key, an object, None (the selector that keeps all features), or a function of the seed (a stream).
    params : dict
        Parameters that go with a key.
    source : {"generated", "file", "dataset", "made", "given"}
        Origin of a stream; the first and the fourth depend on the seed.
    """

    noun: str
    name: str
    what: Any
    params: dict[str, Any]
    source: str = "given"

    @property
    def is_oracle(self) -> bool:
        """Whether it is the selector with the true features."""
        return self.noun == "selector" and isinstance(self.what, str) and self.what.lower() == "oracle"


@dataclass(frozen=True)
class Cell:
    """One run of the grid.

    Attributes
    ----------
    key : str
        Checksum of the definition.
    stream, selector, learner : Part
    seed : int
    n_features_to_select : int, float or None
    options : RunOptions
    """

    key: str
    stream: Part
    selector: Part
    learner: Part
    seed: int
    n_features_to_select: float | None
    options: RunOptions

    def models(self, stream: Stream) -> tuple[Any, Any]:
        """Return a new selector and a new learner."""
        selector = _model(self.selector, stream, self.seed, self.n_features_to_select)
        return selector, _model(self.learner, stream, self.seed, None)


def parts_of(noun: str, items: Any) -> list[Part]:
    """Return the parts that a user passed.

    Parameters
    ----------
    noun : {"stream", "selector", "learner"}
    items : part, list of parts, or dict of names to parts
        A part is a key, a pair (key, parameters), or an object.

    Raises
    ------
    ValueError
        If there is none, or two have one name.

    Examples
    --------
    >>> [part.name for part in parts_of("selector", ["fires", ("ofs", {"learning_rate": 0.5}), None])]
    ['fires', 'ofs(learning_rate=0.5)', 'none']
    """
    if isinstance(items, Mapping):
        parts = [_part(noun, one, str(name)) for name, one in items.items()]
    else:
        parts = [_part(noun, one, None) for one in (items if isinstance(items, list) else [items])]
    names = [part.name for part in parts]
    if not parts:
        raise ValueError(f"{noun}s must name at least one {noun}, got {items!r}.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Two {noun}s are named {twice!r}: give them distinct names, as a dict.")
    return parts


def _part(noun: str, item: Any, name: str | None) -> Part:
    subject, params = item, {}
    is_pair = isinstance(item, tuple) and len(item) == 2
    if is_pair and isinstance(item[0], str | os.PathLike) and isinstance(item[1], Mapping):
        subject, params = item[0], dict(item[1])
    if isinstance(subject, os.PathLike):
        subject = os.fspath(subject)
    if noun == "selector" and isinstance(subject, str) and subject.lower() == "none":
        subject = None
    if name is None:
        settings = ", ".join(f"{key}={value}" for key, value in params.items())
        name = _name(noun, subject) + (f"({settings})" if settings else "")
    return Part(noun, name, subject, params, _source(subject) if noun == "stream" else "given")


def _source(what: Any) -> str:
    """Return the origin of a stream.

    Raises
    ------
    UnknownNameError
        If a key names neither a stream with known truth nor a data set nor a file.
    """
    if not isinstance(what, str):
        return "made" if callable(what) and not isinstance(what, Stream) else "given"
    if os.path.isfile(what) or os.path.splitext(what)[1]:
        return "file"
    if what in (datasets := [row["name"] for row in list_datasets()]):
        return "dataset"
    with contextlib.suppress(UnknownNameError):
        load_stream(what, n_rows=100, n_drifts=0)
        return "generated"
    known = [*(row["name"] for row in list_streams()), *datasets]
    hint = did_you_mean(what, known, n=2, cutoff=0.5)
    raise UnknownNameError(f"No stream, data set or file is named {what!r}{hint} Known: {', '.join(known)}.")


def _name(noun: str, what: Any) -> str:
    if what is None:
        return "none"
    if isinstance(what, str):
        return os.path.basename(what) if noun == "stream" else what
    if isinstance(what, Stream):
        described = what.describe()
        return os.path.basename(str(described.get("name") or described.get("path") or described["kind"]))
    return str(getattr(what, "__name__", "arrays" if noun == "stream" else type(what).__name__))


class Opener:
    """Opens streams, and keeps the last one open, since consecutive cells mostly read the same stream."""

    def __init__(self) -> None:
        self._last: tuple[tuple[str, int | None], Stream] | None = None

    def open(self, part: Part, seed: int) -> Stream:
        """Return the stream of a part; see :func:`open_stream`."""
        wanted = (part.name, seed if part.source in ("generated", "made") else None)
        if self._last is None or self._last[0] != wanted:
            self._last = (wanted, open_stream(part, seed))
        return self._last[1]


def cells_of(
    streams: list[Part],
    selectors: list[Part],
    learners: list[Part],
    seeds: Iterable[int],
    n_features_to_select: Any,
    options: RunOptions,
) -> list[Cell]:
    """Return the cells in the order in which they run; each part is created once, so that errors are raised early."""
    cells: dict[str, Cell] = {}
    opener = Opener()
    for stream in streams:
        amount = n_features_to_select
        if isinstance(amount, Mapping):
            amount = amount.get(stream.name)
        for seed in seeds:
            source = opener.open(stream, seed)
            for selector in selectors:
                if selector.is_oracle and not hasattr(source, "relevant_at"):
                    continue
                for learner in learners:
                    cell = Cell("", stream, selector, learner, seed, amount, options)
                    models = cell.models(source)
                    if task_of(*models) is REGRESSION:
                        raise ValueError(
                            f"The learner {learner.name!r} predicts numbers, but an experiment compares classifiers:"
                            " run tamis.prequential for each."
                        )
                    key = _key(source, *models, options)
                    cells.setdefault(key, replace(cell, key=key))
    if (lost := {part.name for part in selectors} - {cell.selector.name for cell in cells.values()}) != set():
        raise ValueError(
            f"The selector {lost.pop()!r} needs a stream with known relevant features:"
            " see tamis.streams.list_streams()."
        )
    return list(cells.values())


def _key(stream: Stream, selector: Any, learner: Any, options: RunOptions) -> str:
    settings = settings_of(stream, selector, learner, options)
    parts = [settings[name] for name in ("stream", "selector", "learner", "options")]
    text = json.dumps([*parts, tamis.__version__], sort_keys=True, default=str)
    text = re.sub(r" at 0x[0-9a-f]+", "", text)  # a memory address is not part of the identity
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def open_stream(part: Part, seed: int) -> Stream:
    """Return the stream of a part.

    Raises
    ------
    StreamError
        If a file or data set cannot be read.
    ValueError
        If the stream can be read only once, or a parameter is out of range.
    """
    if part.source in _OPENERS:
        open_it = _OPENERS[part.source]
        known = [name for name in inspect.signature(open_it).parameters if name not in ("name", "path")]
        for name in part.params:
            if name not in known:
                raise ValueError(f"{part.what!r} has no parameter {name!r}; it has: {', '.join(known)}.")
        return open_it(part.what, **({"seed": seed} if "seed" in known else {}) | part.params)
    stream = as_stream(part.what(seed) if part.source == "made" else part.what)
    if isinstance(stream, BatchStream):
        raise ValueError(
            f"The stream {part.name!r} yields batches that cannot be read for every cell: give arrays (X, y), a Stream,"
            " or a function that makes one from a seed."
        )
    return stream


def _model(part: Part, stream: Stream, seed: int, amount: float | None) -> Any:
    """Return an unfitted selector or learner, with the cell's seed if it accepts one."""
    if part.what is None:
        return None
    if part.is_oracle:
        return Oracle(stream)
    if isinstance(part.what, str):
        return _from_catalog(part, stream, seed, amount)
    if not isinstance(part.what, BaseEstimator):
        return clone(part.what, safe=False)
    model = clone(part.what)
    own = model.get_params(deep=False)
    params: dict[str, Any] = {"random_state": seed, "n_features_to_select": amount}
    if own.get("categorical") is None:
        params["categorical"] = list(stream.categorical) or None
    model.set_params(**{name: value for name, value in params.items() if name in own and value is not None})
    return model


def _from_catalog(part: Part, stream: Stream, seed: int, amount: float | None) -> Any:
    entry = find_learner(part.what) if part.noun == "learner" else find(part.what, "rows")
    known = inspect.signature(entry.load()).parameters
    unknown = [name for name in part.params if name not in known]
    if unknown:
        raise ValueError(f"{entry.name} has no parameter {unknown[0]!r}; it has: {', '.join(known)}.")
    usual = model_parameters(entry, seed=seed, categorical=stream.categorical, n_features_to_select=amount)
    return entry.load()(**usual | part.params)
