"""The result of a run: one tidy frame for each kind of record, and the settings that reproduce it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from tamis._interrupts import os_errors_as, raise_asynchronous
from tamis._validation import Array, Indices, Mask, check_choice
from tamis.errors import CheckpointError, import_extra
from tamis.evaluate.metrics.drift import Recovery, recovery
from tamis.evaluate.prequential.presentation import RunPresentation
from tamis.evaluate.prequential.remarks import (
    auc_gain,
    is_imbalanced,
    paired_gain,
    remarks_on,
    threshold_note,
    with_draws,
)
from tamis.evaluate.prequential.settings import CLASSIFICATION, Task, find_task
from tamis.options import RunOptions
from tamis.pipeline import StreamPipeline
from tamis.pipeline.masked_learner import MaskedRegressor
from tamis.pipeline.scaling import RunningScale
from tamis.pipeline.selective_learner import SelectiveLearner

Frame = dict[str, Array]

STEP_COLUMNS = CLASSIFICATION.columns  # where numbers are predicted, those of `task.REGRESSION`
WHOLE_NUMBERS = {
    "step", "n_seen", "n_rows", "n_selected", "n_entered", "n_left", "memory_bytes", "model_bytes",
}  # fmt: skip
_SETTINGS = "settings.json"
_KINDS = ("steps", "changes", "truth", "scores", "reasons")


@dataclass(frozen=True)
class Step:
    """One batch of a run, as `on_step` receives it.

    Attributes
    ----------
    values : dict of str to float
        The row of the frame ``"steps"``.
    selected : ndarray of int
        Columns selected for this batch; all before the first selection.
    top : list of (str, float)
        The columns with the highest current scores, best first; empty if the selector has no scores.
    progress : float or None
        Fraction of the stream consumed; None if unknown.
    batch : tuple of (X, y, predictions) or None
        The rows, their labels, and the predictions before any update; valid until the next batch.
    models : object
        The selector, the scale and the learner, updated with the batch; they change with the next one.
    names : list of str
        Names of the features; x0, x1, ... without names. Later steps may have more.
    """

    values: dict[str, float]
    selected: Indices
    top: list[tuple[str, float]]
    progress: float | None
    batch: tuple[Any, Any, Any] | None = None
    models: Any = None
    names: Sequence[str] = ()

    def __getattr__(self, name: str) -> float:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(f"a Step has no {name!r}") from None


class PrequentialResult(RunPresentation):
    """The result of a prequential evaluation.

    Attributes
    ----------
    frames : dict of str to dict of str to ndarray
        ``"steps"``: one row per batch, with the columns of ``task.columns``. ``"changes"``: step, feature, name and
        event ("enter" or "leave") of each change of the selection. ``"truth"``: the same for the relevant features,
        if known. ``"scores"``: step, feature, name and score of the columns with the highest scores, about every
        thousand rows (more often at first). ``"reasons"``, if the selector has them: one row per column with its
        feature, name, selected (1 or 0), its univariate relevance, its gain when it was selected (or at the end), and
        redundant_to, the column given which its gain is smallest ("": none).
    settings : dict
        Stream, selector, learner, options and versions, which repeat the run. ``interrupted`` is True if it was stopped
        before the end of the stream.
    feature_names : list of str
        ``x0``, ``x1``, ... if the stream has no names.

    Notes
    -----
    Memory: 464 bytes per step, 24 per change of the selection and per tracked score.
    """

    def __init__(
        self,
        frames: dict[str, Frame],
        settings: dict[str, Any],
        feature_names: list[str],
        models: SelectiveLearner | None = None,
        categories: Mapping[int, list[Any]] = MappingProxyType({}),
    ) -> None:
        self._models, self._categories = models, categories
        self.frames = frames
        self.settings = settings
        self.feature_names = feature_names

    @property
    def task(self) -> Task:
        """The task: classification or regression."""
        return find_task(self.settings.get("task", ""))

    @property
    def options(self) -> RunOptions:
        """The options of the run."""
        return RunOptions.from_settings(self.settings)

    @property
    def scale(self) -> RunningScale | None:
        """The scaling of the features for the learner; to continue with it, pass it ``scale.transform(X)``.

        None without scaling, or if the result was read from a folder.
        """
        return None if self._models is None else self._models.scale

    @property
    def target_scale(self) -> RunningScale | None:
        """The same for a numeric target: a prediction p of the learner is ``p / factor + shift`` in its units."""
        learner = None if self._models is None else self._models.learner
        return learner.target if isinstance(learner, MaskedRegressor) and learner.is_scaled else None

    def pipeline(self) -> StreamPipeline:
        """Return the current selector, scale and learner, as one model for new rows.

        Returns
        -------
        StreamPipeline
            A copy: it learns separately from the selector and the learner of the run.

        Raises
        ------
        ValueError
            If the result was read from a folder, which has no models.

        Examples
        --------
        >>> from tamis import TScore, prequential
        >>> rng = np.random.default_rng(0)
        >>> X = 1000 * rng.normal(size=(1500, 8))
        >>> y = X[:, 3] > 0
        >>> model = prequential((X[:1000], y[:1000]), TScore(1)).pipeline()
        >>> model.score(X[1000:], y[1000:]) > 0.95, model.partial_fit(X[1000:], y[1000:]).n_seen_
        (True, 1500)
        """
        if self._models is None:
            raise ValueError("This result has no models: it was read from a folder, or learned from no row.")
        return StreamPipeline.of_run(self._models, self.feature_names, self.options, self._categories)

    @property
    def n_features(self) -> int:
        """Number of columns of the stream."""
        return len(self.feature_names)

    @property
    def is_imbalanced(self) -> bool:
        """Whether one of two classes has less than a tenth of the rows: AUC is more informative than accuracy."""
        return is_imbalanced(self.summary())

    def __repr__(self) -> str:
        total = self.summary()
        first = _RANKING if is_imbalanced(total) else ()
        fields = ", ".join(
            f"{name}={total[name]:.4g}"
            for name in dict.fromkeys((*first, *total))
            if name in (*first, *_HEADLINE) and not math.isnan(total[name])
        )
        return f"PrequentialResult({fields})"

    def to_frame(
        self, kind: str = "steps", backend: Literal["pandas", "polars", "pyarrow"] | None = None
    ) -> Any:
        """Return one of the frames as a DataFrame or Table.

        Parameters
        ----------
        kind : {"steps", "changes", "truth", "scores", "reasons"}, default="steps"
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of these that is installed.

        Raises
        ------
        ValueError
            If the frame does not exist.
        ImportError
            If the backend is not installed.
        """
        check_choice("kind", kind, tuple(self.frames))
        return native_frame(self.frames[kind], backend)

    def summary(self) -> dict[str, float]:
        """Return the numbers of the entire run; NaN where a number is not defined."""
        steps, measure = self.frames["steps"], self.task.measure
        n_steps = len(steps["step"])
        rows = float(steps["n_rows"].sum())
        seconds = float(steps["seconds_total"].sum())
        last = {
            name: float(steps[f"{name}_cumulative"][-1]) if n_steps else math.nan
            for name in (*self.task.totals, *self.settings.get("metrics", ()))
        }
        whole = float(steps["seconds_run"].sum())
        parts = {f"seconds_{part}": float(steps[f"seconds_{part}"].sum()) for part in _TIMED}
        back = self.recovery()
        truth = {name: _mean(steps[name], steps["n_rows"]) for name in ("selection_accuracy", "rsr", "cucp")}
        return {
            "n_rows": rows,
            "n_steps": float(n_steps),
            **last,
            f"{measure}_windowed": _mean(steps[f"{measure}_windowed"]),
            **self._gains(),
            **truth,
            "n_drifts": float(len(back.rows)),
            "n_drifts_not_recovered": float(back.n_lost),
            "recovery_rows": back.mean_rows,
            "stability": _mean(steps["stability"]),
            "n_selected": float(steps["n_selected"][-1]) if n_steps else math.nan,
            "n_features": float(self.n_features),
            "n_changes": float((steps["n_entered"] + steps["n_left"] > 0).sum()),
            "seconds": seconds,
            **parts,
            "seconds_other": whole - sum(parts.values()),
            "seconds_run": whole,
            "rows_per_second": rows / whole if whole else math.nan,
            "memory_bytes": float(steps["memory_bytes"].max()) if n_steps else math.nan,
            "model_bytes": float(steps["model_bytes"].max()) if n_steps else math.nan,
            "ram_hours": float((steps["model_bytes"] * steps["seconds_total"]).sum()) / _GIGABYTE / 3600,
        }

    def _gains(self) -> dict[str, float]:
        """Return by how much the run is better than baselines on the same rows, and how sure that is.

        The standard error, half of the 95 % confidence interval, and the rows that are missing if it is undetermined.
        """
        steps, window = self.frames["steps"], max(2, self.options.window)
        kinds: list[Any] = [("", paired_gain, self.task.measure)]
        kinds += [("auc_", auc_gain, window)] if self.task.ranks else []
        gains: dict[str, float] = {}
        for prefix, difference, how in kinds:
            for name in ("frozen", "all", "random"):
                gain, error = difference(steps, how, name)
                if name == "random":
                    spread = steps[f"random_{prefix}spread_cumulative"]
                    error = with_draws(error, spread[-1] if len(spread) else math.nan, self.options.n_draws)
                parts = {"": gain, "_error": error.error, "_bound": error.bound, "_missing": error.missing}
                is_known = math.isfinite(gain)
                gains |= {
                    f"{name}_{prefix}gain{part}": value if is_known else math.nan
                    for part, value in parts.items()
                }
        return gains

    def dependence_note(self) -> str:
        """Return a note with the effective number of rows if they are autocorrelated; else an empty text.

        It is the number of rows divided by the variance inflation of the labels or targets, an upper bound of that of
        every unrelated feature (:mod:`tamis.summaries.label_series`).
        """
        if not (counts := self.settings.get("dependence")):
            return ""
        return f"rows are autocorrelated: {counts['n_rows']:,} rows count as {counts['n_effective']:,.0f}"

    def threshold_note(self) -> str:
        """Return a note on the decision threshold and its performance for a rare class; else an empty text.

        The threshold is chosen from labelled rows before those it is tested on, see
        :mod:`tamis.evaluate.metrics.ranking`. ``settings["threshold"]`` has its numbers, also where no class is rare.
        """
        return threshold_note(self.settings) if self.is_imbalanced else ""

    def remarks(self) -> list[str]:
        """Return remarks: baselines that the run does not exceed, and why fewer features are selected than allowed.

        The baselines are the majority class and the previous label (of numbers: the mean and the previous target); a
        selection frozen after the first rows, and random subsets of the same size, to be exceeded by more than half of
        the 95 % interval of the difference; and all features, if they are better by as much.
        """
        n_steps = len(self.frames["steps"]["step"])
        stopped = (
            f"This run was interrupted: the figures cover the {n_steps:,} batches before the interruption."
        )
        remarks = remarks_on(self.summary(), self.settings) if n_steps else []
        return [stopped, *remarks] if self.settings.get("interrupted") else remarks

    def recovery(self, measure: str | None = None, *, tolerance: float = 0.05) -> Recovery:
        """Return the number of rows after which a measure recovered from each true drift of the run, if these are
        known.

        Parameters
        ----------
        measure : str, optional
            A column of the frame ``"steps"``, larger is better. By default ``"accuracy_windowed"``, or
            ``"r2_windowed"`` where numbers are predicted.
        tolerance : float, default=0.05
            See :func:`tamis.evaluate.recovery`; the level is that of the last `window` rows before a drift.

        Raises
        ------
        ValueError
            If the column does not exist.
        """
        steps, settings = self.frames["steps"], self.settings
        measure = self.task.recovers_by if measure is None else measure
        check_choice("measure", measure, tuple(steps))
        end = steps["n_seen"][-1] if len(steps["n_seen"]) else 0
        known = zip(settings.get("drifts", ()), settings.get("drift_widths", ()), strict=True)
        met = [(at, width) for at, width in known if at < end]
        return recovery(
            steps["n_seen"],
            steps[measure],
            [at for at, _ in met],
            widths=[width for _, width in met],
            tolerance=tolerance,
            reference=RunOptions.from_settings(settings).window,
        )

    def selection_map(self) -> Mask:
        """Return which columns were selected at each step, shape (n_steps, n_features)."""
        return self._replay("changes")

    def relevance_map(self) -> Mask:
        """Return which columns were relevant at each step, shape (n_steps, n_features); all False where unknown."""
        return self._replay("truth")

    def _replay(self, kind: str) -> Mask:
        n_steps = len(self.frames["steps"]["step"])
        changes = self.frames[kind]
        flips = np.zeros((n_steps + 1, self.n_features), dtype=np.int8)
        at = np.searchsorted(self.frames["steps"]["step"], changes["step"])
        np.add.at(flips, (at, changes["feature"]), np.where(changes["event"] == "enter", 1, -1))
        return np.cumsum(flips[:n_steps], axis=0, dtype=np.int8).astype(bool)

    def selected(self, step: int = -1) -> list[str]:
        """Return the names of the columns selected at a step, by default the last; empty before any selection."""
        steps = self.frames["steps"]["step"]
        if len(steps) == 0:
            return []
        changes = self.frames["changes"]
        until = changes["step"] <= steps[step]
        count = np.bincount(
            changes["feature"][until],
            weights=np.where(changes["event"][until] == "enter", 1, -1),
            minlength=self.n_features,
        )
        return [self.feature_names[j] for j in np.flatnonzero(count > 0)]

    def save(self, folder: str | os.PathLike[str], *, flush: bool = True) -> Path:
        """Write the frames as Parquet files and the settings as JSON into a folder; on an error nothing is written.

        Parameters
        ----------
        folder : path-like
        flush : bool, default=True
            Whether to flush everything to disk, which protects against a power failure; a killed process loses
            nothing in either case.

        Raises
        ------
        CheckpointError
            If the folder cannot be written, or contains something else.
        """
        parquet = _parquet()
        folder = Path(folder)
        mine = {_SETTINGS, *(f"{kind}.parquet" for kind in self.frames)}
        known = mine | {f"{kind}.parquet" for kind in _KINDS}
        if folder.exists() and not (folder.is_dir() and {path.name for path in folder.iterdir()} <= known):
            raise CheckpointError(f"{str(folder)!r} contains other files: choose a new folder.")
        document = {
            "settings": self.settings,
            "feature_names": self.feature_names,
            # JSON has no NaN.
            "summary": {k: None if math.isnan(v) else v for k, v in self.summary().items()},
        }
        new = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
        old = new.with_suffix(".old")
        try:
            with os_errors_as(CheckpointError, f"Cannot write {str(folder)!r}", "choose another folder"):
                new.mkdir(parents=True)
                for kind in self.frames:
                    parquet.write_table(arrow_table(self.frames[kind]), new / f"{kind}.parquet")
                (new / _SETTINGS).write_text(json.dumps(document, indent=1), encoding="utf-8")
                for name in mine if flush else ():
                    with open(new / name, "rb+") as file:
                        os.fsync(file.fileno())
                if folder.exists():
                    os.replace(folder, old)
                os.replace(new, folder)
        finally:
            if old.exists() and not folder.exists():
                os.replace(old, folder)
            for rest in (new, old):
                shutil.rmtree(rest, ignore_errors=True)
        return folder

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> PrequentialResult:
        """Read the output of :meth:`save`.

        Raises
        ------
        CheckpointError
            If the folder does not contain a result, or it is damaged.
        """
        parquet = _parquet()
        folder = Path(folder)
        try:
            document = json.loads((folder / _SETTINGS).read_text(encoding="utf-8"))
            frames = {}
            for kind in _KINDS:
                if kind == "reasons" and not (folder / f"{kind}.parquet").exists():
                    continue
                table = parquet.read_table(folder / f"{kind}.parquet")
                columns = zip(table.column_names, table.columns, strict=True)
                frames[kind] = {
                    name: np.array(column.to_pylist(), dtype=_dtype(kind, name)) for name, column in columns
                }
            return cls(frames, document["settings"], document["feature_names"])
        except Exception as error:
            raise_asynchronous(error)
            raise CheckpointError(
                f"{str(folder)!r} does not contain a whole result ({type(error).__name__}): run it again."
            ) from error


_RANKING = ("average_precision", "auc", "frozen_auc", "random_auc", "recall_at_precision")
_HEADLINE = (
    "n_rows", "accuracy", "majority_accuracy", "no_change_accuracy", "random_accuracy", "frozen_accuracy", "kappa",
    "kappa_t", "balanced_accuracy", "mae", "r2", "mean_mae", "last_mae", "random_mae", "frozen_mae",
    "selection_accuracy", "stability", "n_selected", "n_features",
)  # fmt: skip
_TIMED = ("select", "predict", "learn", "baselines", "read", "compile")
_GIGABYTE = 2.0**30


def _mean(values: Array, weights: Array | None = None) -> float:
    known = ~np.isnan(values)
    if not known.any():
        return math.nan
    return float(np.average(values[known], weights=None if weights is None else weights[known]))


def _dtype(kind: str, name: str) -> Any:
    if name in ("name", "event", "redundant_to"):
        return object
    whole = name in WHOLE_NUMBERS or name in ("step", "feature", "selected")
    return np.int64 if whole else np.float64


def arrow_table(frame: Frame) -> Any:
    """Return a frame as an Arrow table."""
    import pyarrow

    return pyarrow.table({name: pyarrow.array(column) for name, column in frame.items()})


def _parquet() -> Any:
    return import_extra("pyarrow.parquet", "Saving results needs pyarrow", "cli")


def native_frame(frame: Frame, backend: Literal["pandas", "polars", "pyarrow"] | None) -> Any:
    """Return a frame as one of a library, by default of the first that is installed."""
    known: tuple[Literal["pandas", "polars", "pyarrow"], ...] = ("pandas", "polars", "pyarrow")
    if backend is not None:
        check_choice("backend", backend, known)
    for name in known if backend is None else (backend,):
        with contextlib.suppress(ModuleNotFoundError):
            return nw.from_dict(frame, backend=name).to_native()
    found = "None of pandas, polars and pyarrow is" if backend is None else f"backend={backend!r} is not"
    raise ImportError(f"{found} installed: pip install {backend or 'pandas'}.")
