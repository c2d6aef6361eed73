"""The cells of an experiment: a record of each, its runs, tables and tests of significance.

The folder contains ``experiment.json`` (the list of cells), ``cells.parquet`` (a line per cell), and in ``cells`` a
folder per finished cell, which :meth:`tamis.evaluate.PrequentialResult.load` reads, or the error of one that failed.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from scipy.special import stdtrit

from tamis._interrupts import os_errors_as, raise_asynchronous
from tamis._validation import Array, Floats, check_choice
from tamis.errors import CheckpointError
from tamis.evaluate.experiment.score_table import ScoreTable, Significance, significance
from tamis.evaluate.prequential.remarks import is_imbalanced, is_uninformative
from tamis.evaluate.prequential.result import Frame, PrequentialResult, arrow_table, native_frame
from tamis.persistence import replace_file
from tamis.streams.arrow import parquet

EXPERIMENT, CELLS = "experiment.json", "cells"
_PARTS = ("stream", "selector", "learner")
_OF_SELECTION = ("selection_accuracy", "rsr", "cucp", "stability", "n_changes")
_ROUNDING = 1e-12  # a smaller gain is one of rounding
_FILES = ("steps", "changes", "truth", "scores")


class ExperimentCells:
    """The cells of an experiment, their runs and tables; shown by :class:`~tamis.evaluate.ExperimentResult`."""

    def __init__(self, folder: Path, *, interrupted: bool = False, temporary: Any = None) -> None:
        self.folder, self.interrupted = folder, interrupted
        self._temporary = temporary  # a folder deleted together with the result
        self.cells, is_oracle, keeps_all, self._is_resampled = _read_cells(folder)
        self.oracles = list(dict.fromkeys(self.cells["method"][is_oracle].tolist()))
        self.keep_all = list(dict.fromkeys(self.cells["method"][keeps_all].tolist()))
        self.runs = functools.lru_cache(maxsize=8)(self._run)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read the experiment in a folder, finished or not.

        Raises
        ------
        CheckpointError
            If the folder contains no experiment.
        """
        return cls(Path(folder))

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(set(self.cells[part]))} {part}s" for part in _PARTS)
        status = [f"{np.sum(self.cells['status'] == one)} {one}" for one in ("done", "failed", "missing")]
        return f"ExperimentResult({counts}; cells: {', '.join(s for s in status if s[0] != '0')})"

    @property
    def streams(self) -> list[str]:
        """Names of the streams, in order."""
        return list(dict.fromkeys(self.cells["stream"].tolist()))

    @property
    def methods(self) -> list[str]:
        """Names of the pairs of selector and learner, in order."""
        return list(dict.fromkeys(self.cells["method"].tolist()))

    @property
    def metrics(self) -> list[str]:
        """Names of the numbers that each cell has."""
        return [name for name, column in self.cells.items() if column.dtype == np.float64]

    @property
    def imbalanced(self) -> list[str]:
        """Streams where one of two classes has less than a tenth of the rows: AUC is more informative than accuracy."""
        names = ("majority_accuracy", "average_precision")
        if not set(names) <= set(self.metrics):
            return []
        tables = {name: self.table(name).mean for name in names}

        def mean(name: str, i: int) -> float:
            known = tables[name][i][np.isfinite(tables[name][i])]
            return float(known.mean()) if len(known) else math.nan

        return [
            stream
            for i, stream in enumerate(self.streams)
            if is_imbalanced({name: mean(name, i) for name in names})
        ]

    @property
    def measure(self) -> str:
        """The measure of predictions to rank by: average precision if every stream is imbalanced, else accuracy."""
        is_rare = 0 < len(self.imbalanced) == len(self.streams)
        return "average_precision" if is_rare else "accuracy"

    @property
    def failed(self) -> dict[str, str]:
        """The cells that failed, and the reason of each."""
        at = np.flatnonzero(self.cells["status"] == "failed")
        return {self._name(i): str(self.cells["error"][i]) for i in at}

    def _name(self, i: Any) -> str:
        return ", ".join(str(self.cells[part][i]) for part in _PARTS) + f", seed {self.cells['seed'][i]}"

    @property
    def is_temporary(self) -> bool:
        """Whether the folder is deleted together with the result."""
        return self._temporary is not None

    @property
    def settings(self) -> dict[str, Any]:
        """The contents of ``experiment.json``: the options of the runs, and the list of cells."""
        return json.loads((self.folder / EXPERIMENT).read_text(encoding="utf-8"))

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] | None = None) -> Any:
        """Return `cells` as a DataFrame or Table of pandas, Polars or Arrow, by default the first installed."""
        return native_frame(self.cells, backend)

    def run(self, stream: str, method: str, seed: int | None = None) -> PrequentialResult:
        """Return the full result of one cell.

        Parameters
        ----------
        stream, method : str
            Names as in `streams` and `methods`.
        seed : int, optional
            By default the first seed that is finished.

        Raises
        ------
        ValueError
            If the cell does not exist, or is not finished.
        """
        at = self.finished(stream, method)
        if seed is not None:
            at = at[self.cells["seed"][at] == seed]
        if not len(at):
            which = "" if seed is None else f" with the seed {seed}"
            raise ValueError(f"No finished cell has the stream {stream!r} and the method {method!r}{which}.")
        return self.runs(str(self.cells["key"][at[0]]))

    def _run(self, key: str) -> PrequentialResult:
        return PrequentialResult.load(self.folder / CELLS / key)

    def finished(self, stream: str, method: str) -> Array:
        """Return which entries of `cells` are finished runs of a method on a stream.

        Raises
        ------
        ValueError
            If the stream or method does not exist.
        """
        check_choice("stream", stream, tuple(self.streams))
        check_choice("method", method, tuple(self.methods))
        cells = self.cells
        return np.flatnonzero(
            (cells["stream"] == stream) & (cells["method"] == method) & (cells["status"] == "done")
        )

    def curves(self, column: str = "accuracy_windowed") -> Frame:
        """Return a column of the steps of all finished cells: stream, method, seed, n_seen and the value.

        Parameters
        ----------
        column : str, default="accuracy_windowed"
            One of :data:`tamis.evaluate.prequential.result.STEP_COLUMNS`.

        Raises
        ------
        ValueError
            If the column does not exist.
        """
        parts = []
        for stream in self.streams:
            for method in self.methods:
                for i in self.finished(stream, method):
                    parts.append((stream, method, int(self.cells["seed"][i]), *self._curve(i, column)))
        lengths = [len(part[3]) for part in parts]
        frame: Frame = {
            name: np.repeat(np.array([part[k] for part in parts], dtype=kind), lengths)
            for k, (name, kind) in enumerate((("stream", object), ("method", object), ("seed", np.int64)))
        }
        for k, (name, kind) in enumerate((("n_seen", np.int64), (column, np.float64)), start=3):
            frame[name] = np.concatenate([np.empty(0, kind), *(part[k] for part in parts)])
        return frame

    def _curve(self, i: int, column: str) -> tuple[Array, Array]:
        path = self.folder / CELLS / str(self.cells["key"][i]) / "steps.parquet"
        check_choice("column", column, tuple(parquet.read_schema(path).names))
        table = parquet.read_table(path, columns=["n_seen", column])
        return table["n_seen"].to_numpy(), table[column].to_numpy()

    def table(self, metric: str = "accuracy") -> ScoreTable:
        """Return the mean and the standard deviation over seeds of a number, for each stream and method.

        Parameters
        ----------
        metric : str, default="accuracy"
            One of `metrics`.

        Raises
        ------
        ValueError
            If the number does not exist.
        """
        check_choice("metric", metric, tuple(self.metrics))
        values = [
            [self.cells[metric][self.finished(stream, method)] for method in self.methods]
            for stream in self.streams
        ]
        return ScoreTable.build(metric, self.streams, self.methods, values, self._unranked_methods(metric))

    def _unranked_methods(self, metric: str) -> list[str]:
        """Return the methods that use the true features and, for selection metrics, those that keep all features."""
        return [*self.oracles, *self.keep_all] if metric in _OF_SELECTION else self.oracles

    def gain_over(self, baseline: Literal["frozen", "random", "all"]) -> tuple[Floats, Floats]:
        """Return the mean gain of each method over a baseline on the same rows, and half of its 95 % interval.

        If each seed has rows of its own, the interval is that of Student's t between the seeds. Otherwise seeds share
        their rows, and it is the mean of those of the runs, since more seeds are no more rows.

        Parameters
        ----------
        baseline : {"frozen", "random", "all"}
            The measure is AUC where one of two classes has less than a tenth of the rows, or the method does not exceed
            the majority-class baseline.

        Returns
        -------
        gain, bound : ndarray of shape (n_streams, n_methods), float64
            NaN where they were not compared; an undetermined bound is NaN, or infinite for a single draw.
        """
        names = ("accuracy", "majority_accuracy", f"{baseline}_auc")
        by_rank = is_uninformative(*(self._mean(name) for name in names))
        gain, bound = np.full((2, len(self.streams), len(self.methods)), math.nan)
        for i, stream in enumerate(self.streams):
            for j, method in enumerate(self.methods):
                name = f"{baseline}_{'auc_' * bool(by_rank[i, j])}gain"
                at = self.finished(stream, method)
                if name not in self.metrics or not len(at):
                    continue
                gains, bounds = (
                    self.cells.get(one, np.full(len(self.cells["key"]), math.nan))[at]
                    for one in (name, f"{name}_bound")
                )
                gain[i, j], bound[i, j], n = gains.mean(), bounds.mean(), len(at)
                if n > 1 and self._is_resampled[at].all():
                    bound[i, j] = stdtrit(n - 1.0, 0.975) * gains.std(ddof=1) / math.sqrt(n)
        return np.where(np.abs(gain) < _ROUNDING, 0.0, gain), bound

    def no_better_than_random(self) -> dict[str, list[str]]:
        """Return, by stream, the methods without a proven advantage over random subsets of the same size.

        A method is listed if the 95 % interval of :meth:`gain_over` includes 0 or is below it. Streams without such a
        method, methods that ran without draws, and undetermined intervals are not listed.
        """
        return self._without_advantage("random")

    def no_better_than_frozen(self) -> dict[str, list[str]]:
        """Return, by stream, the methods without a proven advantage over a selection frozen after the first rows.

        As in :meth:`no_better_than_random`; methods that keep all features are not listed either.
        """
        return self._without_advantage("frozen")

    def _without_advantage(
        self, baseline: Literal["frozen", "random"], *, loses: bool = False
    ) -> dict[str, list[str]]:
        """Return the methods that are not ahead of a baseline (that lose to it) beyond the 95 % interval, by stream."""
        gain, bound = self.gain_over(baseline)
        listed = gain < -bound if loses else gain <= bound
        if baseline == "frozen":
            listed &= self._mean("n_selected") < self._mean("n_features")
        return self._by_stream(listed)

    def _mean(self, name: str) -> Floats:
        """Return the means of a number by stream and method, NaN if the cells do not have it."""
        shape = len(self.streams), len(self.methods)
        return self.table(name).mean if name in self.metrics else np.full(shape, math.nan)

    def _by_stream(self, holds: Array) -> dict[str, list[str]]:
        """Return the methods of which something holds, by stream, where it holds of any."""
        methods = np.array(self.methods, dtype=object)
        return {
            stream: methods[mine].tolist()
            for stream, mine in zip(self.streams, holds, strict=True)
            if mine.any()
        }

    def compare(self, metric: str = "accuracy", *, alpha: float = 0.05, rope: float = 0.01) -> Significance:
        """Test whether the methods differ over the streams, by their mean scores over seeds.

        Parameters
        ----------
        metric : str, default="accuracy"
        alpha : float in (0, 1), default=0.05
            Level of Nemenyi's test.
        rope : float, default=0.01
            Largest difference at which two methods count as practically equal, for the Bayesian test.

        Raises
        ------
        ValueError
            If there are not two methods and two streams on which all methods have a score.
        """
        return significance(self.table(metric), alpha=alpha, rope=rope)

    def write(self) -> Path:
        """Write `cells` as ``cells.parquet`` into the folder, and return the path; on an error nothing is written."""
        path = self.folder / "cells.parquet"
        replace_file(path, lambda file: parquet.write_table(arrow_table(self.cells), file))
        return path


def is_finished(folder: Path, key: str) -> bool:
    """Return whether a cell's result is complete."""
    place = folder / CELLS / key
    try:
        for name in _FILES:
            parquet.read_metadata(place / f"{name}.parquet")
        return "summary" in json.loads((place / "settings.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise_asynchronous(error)
        return False


def contains_other_files(folder: Path) -> bool:
    """Return whether a folder contains other files than those of an experiment, or of one that was killed early."""
    if (folder / EXPERIMENT).is_file():
        return False
    cells, ours = folder / CELLS, re.compile(rf"\.lock|\.{re.escape(EXPERIMENT)}\.[0-9a-f]+\.tmp")
    is_begun = cells.is_dir() and not any(cells.iterdir())
    return any(not ours.fullmatch(one.name) and not (one == cells and is_begun) for one in folder.iterdir())


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON file atomically.

    Raises
    ------
    CheckpointError
        If it cannot be written.
    """
    text = json.dumps(document, indent=1, default=str)
    advice = "free some space there, or choose another folder"
    with os_errors_as(CheckpointError, f"Cannot write {str(path)!r}", advice):
        replace_file(path, lambda file: file.write(text.encode()))


def _read_cells(folder: Path) -> tuple[Frame, Array, Array, Array]:
    """Return the row of each cell, and whether it uses the true features, keeps all, and has rows of its own."""
    try:
        listed = json.loads((folder / EXPERIMENT).read_text(encoding="utf-8"))["cells"]
        parts = {name: np.array([cell[name] for cell in listed], dtype=object) for name in (*_PARTS, "key")}
        seeds = np.array([cell["seed"] for cell in listed], dtype=np.int64)
        is_oracle = np.array([cell["oracle"] for cell in listed], dtype=bool)
        keeps_all = np.array([one.get("keeps_all", one["selector"] == "none") for one in listed], dtype=bool)
        is_resampled = np.array([cell.get("resampled", False) for cell in listed], dtype=bool)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise_asynchronous(error)
        raise CheckpointError(
            f"{str(folder)!r} does not contain an experiment: run it there first."
        ) from error
    items = [_outcome(folder, key) for key in parts["key"]]
    names = dict.fromkeys(name for _, _, summary in items for name in summary)
    cells = {
        **{part: parts[part] for part in _PARTS},
        "method": _methods(parts["selector"].tolist(), parts["learner"].tolist()),
        "seed": seeds,
        "status": np.array([status for status, _, _ in items], dtype=object),
        "error": np.array([error for _, error, _ in items], dtype=object),
        "key": parts["key"],
        **{
            name: np.array([_number(summary.get(name)) for _, _, summary in items], dtype=np.float64)
            for name in names
        },
    }
    return cells, is_oracle, keeps_all, is_resampled


def _outcome(folder: Path, key: str) -> tuple[str, str, dict[str, Any]]:
    """Return status, error and numbers of a cell."""
    if is_finished(folder, key):
        document = json.loads((folder / CELLS / key / "settings.json").read_text(encoding="utf-8"))
        return "done", "", document["summary"]
    try:
        document = json.loads((folder / CELLS / f"{key}.error.json").read_text(encoding="utf-8"))
        return "failed", str(document["error"]), {}
    except (OSError, ValueError, KeyError) as error:
        raise_asynchronous(error)
        return "missing", "", {}


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _methods(selectors: list[str], learners: list[str]) -> Array:
    """Return the label of each pair: the selector alone if there is one learner, and vice versa."""
    if len(set(learners)) == 1:
        names = selectors
    elif len(set(selectors)) == 1:
        names = learners
    else:
        names = [f"{selector} + {learner}" for selector, learner in zip(selectors, learners, strict=True)]
    return np.array(names, dtype=object)
