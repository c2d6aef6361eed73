"""The state of a test-then-train run: what happens to one batch, what is recorded, and how it is saved."""

from __future__ import annotations

import os
import platform
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone

import tamis
from tamis._check import Array, Rows, as_classes, encode_labels, refuse_nonfinite
from tamis._jit import njit
from tamis.base import RowSelector
from tamis.errors import CheckpointError, DataError
from tamis.evaluate.metrics import RunningMetrics
from tamis.evaluate.result import STEP_COLUMNS, WHOLE_NUMBERS, Frame, PrequentialResult, Step
from tamis.evaluate.stability import SlidingStability
from tamis.persistence import load, save
from tamis.streams.stream import Stream

__all__ = ["Run"]

_ROWS_BETWEEN_SCORES = 1000
_STEPS_BETWEEN_MEMORY = 10
_NO_COLUMNS = np.empty(0, np.intp)


@njit()
def _swap_columns(X: Array, before: Array, after: Array, masked: Array) -> None:
    """Clear the columns of the batch before, copy those of this one; the others are zero already."""
    for i in range(X.shape[0]):
        for j in before:
            masked[i, j] = 0.0
        for j in after:
            masked[i, j] = X[i, j]


class Run:
    """The state of a run between two batches."""

    def __init__(self, stream: Stream, selector: Any, learner: Any, options: dict[str, Any]) -> None:
        self.stream, self.selector, self.learner, self.options = stream, selector, learner, options
        self.metrics = RunningMetrics(options["window"])
        SlidingStability(1, options["stability_window"])  # refuse a wrong window before any row is read
        self.stability: SlidingStability | None = None
        self.classes: Array = np.array([]) if stream.classes is None else as_classes(stream.classes)
        self.n_seen = self.n_steps = self.n_features = self.restarts = 0
        self.learner_classes = 0  # how many the learner was told of; 0: it has not learned yet
        self.interrupted = False
        self.whole = True  # False while a batch is half done
        self.steps = np.empty((64, len(STEP_COLUMNS)))
        self.changes: list[tuple[int, Array, Array]] = []  # step, entered, left
        self.scores: list[tuple[int, Array, Array]] = []  # step, features, scores
        self.mask: NDArray[np.bool_] | None = None  # the selection now; None: there is none yet
        self.support: NDArray[np.intp] | None = None  # its columns
        self.recorded: NDArray[np.bool_] = np.zeros(0, dtype=bool)  # the selection of the last record
        self.memory = 0
        self._masked: Array | None = None  # the last dense batch with zeros outside `_columns`
        self._columns: NDArray[np.intp] = _NO_COLUMNS

    # -- one batch -----------------------------------------------------------------------------------------

    def take(self, X: Rows, y: Array) -> None:
        """Test and train on a batch; the first one only trains."""
        self.whole = False
        try:
            self._take(X, y)
        except ValueError as error:
            if not isinstance(error, DataError):  # a learner does not say where it met NaN
                refuse_nonfinite(self._mask(X), self.stream.feature_names)
            raise
        self.whole = True

    def _take(self, X: Rows, y: Array) -> None:
        begin = time.perf_counter()
        codes, classes = encode_labels(y, self.classes)
        if self.n_seen == 0:
            self.n_features = X.shape[1]
            self.stability = SlidingStability(self.n_features, self.options["stability_window"])
            self._train_selector(X, y)
            self.classes = classes
            self._train_learner(X, y)
            self._select()
            self.n_seen = len(y)
            return
        paper = self.options["protocol"] == "paper"
        t0 = time.perf_counter()
        if paper:
            self._train_selector(X, y)
            self._select()
        masked = self._mask(X)
        t1 = time.perf_counter()
        predicted = self._predict(masked)
        t2 = time.perf_counter()
        mask, support = self.mask, self.support
        if not paper:  # before the learner, which then learns nothing from a batch that the selector refuses
            self._train_selector(X, y)
            self._select()
        t3 = time.perf_counter()
        self.classes = classes
        self._train_learner(masked, y)
        t4 = time.perf_counter()
        self.metrics.update(codes, predicted, len(classes))
        self.n_seen += len(y)
        self._record(len(y), mask, support, (t1 - t0 + t3 - t2, t2 - t1, t4 - t3), begin)

    def _train_selector(self, X: Rows, y: Array) -> None:
        if self.selector is None:
            return
        if self.n_seen == 0 and isinstance(self.selector, RowSelector) and not self.selector._is_regression():
            self.selector.partial_fit(X, y, classes=self.stream.classes)
        else:
            self.selector.partial_fit(X, y)

    def _select(self) -> None:
        if self.selector is None or getattr(self.selector, "waiting_", False):
            self.mask = self.support = None
            return
        mask = self.selector.get_support()
        if self.mask is None or (mask != self.mask).any():
            self.mask, self.support = mask, np.flatnonzero(mask)

    def _mask(self, X: Rows) -> Rows:
        """Return the batch with zeros in the columns that are not selected."""
        if self.mask is None or self.support is None:
            return X
        if sp.issparse(X):
            kept = np.where(self.mask[X.indices], X.data, X.dtype.type(0))  # a product would keep NaN
            return sp.csr_matrix((kept, X.indices, X.indptr), shape=X.shape)
        if self._masked is None or self._masked.shape != X.shape or self._masked.dtype != X.dtype:
            self._masked, self._columns = np.zeros_like(X), self.support
        before = _NO_COLUMNS if self._columns is self.support else self._columns
        _swap_columns(X, before, self.support, self._masked)
        self._columns = self.support
        return self._masked

    def _predict(self, X: Rows) -> NDArray[np.int64]:
        if self.learner_classes == 0:  # one class so far: there is nothing else to predict
            return np.zeros(X.shape[0], dtype=np.int64)
        codes, _ = encode_labels(self.learner.predict(X), self.classes)
        return codes

    def _train_learner(self, X: Rows, y: Array) -> None:
        n_classes = len(self.classes)
        if n_classes < 2:
            return
        if self.learner_classes != n_classes:
            if self.learner_classes:  # a label it was not told of: it begins anew with all of them
                self.restarts += 1
                self.learner.__dict__ = clone(self.learner).__dict__
            self.learner_classes = n_classes
            self.learner.partial_fit(
                X, y, classes=np.sort(self.classes) if _sortable(self.classes) else self.classes
            )
        else:
            self.learner.partial_fit(X, y)

    # -- records -------------------------------------------------------------------------------------------

    def _record(
        self,
        n_rows: int,
        mask: NDArray[np.bool_] | None,
        support: NDArray[np.intp] | None,
        seconds: tuple[float, float, float],
        begin: float,
    ) -> None:
        entered = left = 0
        value = low = high = np.nan
        if mask is not None and support is not None and self.stability is not None:
            entered, left = self._record_changes(mask)
            self.stability.add(support)
            value = self.stability.value
            low, high = self.stability.interval()
        if self.n_steps % _STEPS_BETWEEN_MEMORY == 0:
            self.memory = _resident_bytes()
        if self.n_steps % max(1, _ROWS_BETWEEN_SCORES // self.options["batch_size"]) == 0:
            self._record_scores()
        if self.n_steps == len(self.steps):
            self.steps = np.concatenate([self.steps, np.empty_like(self.steps)])
        kept = self.n_features if support is None else len(support)
        self.steps[self.n_steps] = (
            self.n_steps, self.n_seen, n_rows, *self.metrics.values, value, low, high, kept, entered, left,
            *seconds, time.perf_counter() - begin, self.memory,
        )  # fmt: skip
        self.n_steps += 1

    def _record_changes(self, mask: NDArray[np.bool_]) -> tuple[int, int]:
        if mask is self.recorded:
            return 0, 0
        before = self.recorded if len(self.recorded) else np.zeros_like(mask)
        changed = np.flatnonzero(mask ^ before)
        enters = mask[changed]
        entered, left = changed[enters], changed[~enters]
        if len(changed):
            self.changes.append((self.n_steps, entered, left))
        self.recorded = mask
        return len(entered), len(left)

    def _top(self) -> tuple[NDArray[np.intp], Array]:
        scores = None if self.support is None else getattr(self.selector, "scores_", None)
        n_tracked = min(self.options["n_tracked"], self.n_features)
        if scores is None or n_tracked == 0:
            return np.empty(0, np.intp), np.empty(0)
        scores = np.asarray(scores, dtype=np.float64)
        best = np.argpartition(-scores, n_tracked - 1)[:n_tracked]
        best = best[np.lexsort((best, -scores[best]))]
        return best, scores[best]

    def _record_scores(self) -> None:
        features, scores = self._top()
        if len(features):
            self.scores.append((self.n_steps, features, scores))

    def step(self, progress: float | None) -> Step:
        """Return the last step for a callback."""
        values = dict(zip(STEP_COLUMNS, self.steps[self.n_steps - 1].tolist(), strict=True))
        names, (features, scores) = self.stream.feature_names, self._top()
        top = [
            (names[j] if names else f"x{j}", s)
            for j, s in zip(features.tolist(), scores.tolist(), strict=True)
        ]
        if progress is None and self.options["max_rows"]:
            progress = self.n_seen / self.options["max_rows"]
        elif progress is not None and self.options["max_rows"]:
            progress = max(progress, min(self.n_seen / self.options["max_rows"], 1.0))
        selected = np.flatnonzero(self.recorded) if len(self.recorded) else np.arange(self.n_features)
        return Step(values, selected, top, progress)

    # -- results and checkpoints ---------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """Return what it takes to repeat the run."""
        return {
            "stream": self.stream.describe(),
            "selector": _describe(self.selector),
            "learner": _describe(self.learner),
            "options": self.options,
            "versions": {
                "tamis": tamis.__version__,
                "scikit-learn": sklearn.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
        }

    def result(self) -> PrequentialResult:
        """Return the result so far."""
        names = self.stream.feature_names or [f"x{j}" for j in range(self.n_features)]
        rows = self.steps[: self.n_steps]
        steps = {
            name: rows[:, i].astype(np.int64) if name in WHOLE_NUMBERS else rows[:, i].copy()
            for i, name in enumerate(STEP_COLUMNS)
        }
        settings = {**self.settings(), "learner_restarts": self.restarts, "interrupted": self.interrupted}
        frames = {"steps": steps, "changes": self._changes_frame(names), "scores": self._scores_frame(names)}
        return PrequentialResult(frames, settings, list(names))

    def _changes_frame(self, names: list[str]) -> Frame:
        parts = [
            (t, found, event) for t, *sets in self.changes for found, event in zip(sets, _EVENTS, strict=True)
        ]
        features = np.concatenate([np.empty(0, np.int64), *(found for _, found, _ in parts)])
        sizes = [len(found) for _, found, _ in parts]
        return {
            "step": np.repeat(np.array([t for t, _, _ in parts], dtype=np.int64), sizes),
            "feature": features,
            "name": np.array(names, dtype=object)[features],
            "event": np.repeat(np.array([event for _, _, event in parts], dtype=object), sizes),
        }

    def _scores_frame(self, names: list[str]) -> Frame:
        features = np.concatenate([np.empty(0, np.int64), *(f for _, f, _ in self.scores)])
        sizes = [len(f) for _, f, _ in self.scores]
        return {
            "step": np.repeat(np.array([t for t, _, _ in self.scores], dtype=np.int64), sizes),
            "feature": features,
            "name": np.array(names, dtype=object)[features],
            "score": np.concatenate([np.empty(0), *(s for _, _, s in self.scores)]),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all there is to go on from here."""
        kept = {name: value for name, value in vars(self).items() if name not in _REBUILT}
        save({"settings": self.settings(), "run": {**kept, "steps": self.steps[: self.n_steps]}}, path)

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint of this very run."""
        classes = [type(model) for model in (self.selector, self.learner) if model is not None]
        found = load(path, classes=classes)
        if not isinstance(found, dict) or set(found) != {"settings", "run"}:
            raise CheckpointError(
                f"{str(path)!r} is no checkpoint of a run: choose another file, or remove it."
            )
        mine = self.settings()
        for name in ("stream", "selector", "learner", "options"):
            if mine[name] != found["settings"][name]:
                raise CheckpointError(
                    f"{str(path)!r} is the checkpoint of another run, whose {name} is {found['settings'][name]!r}, not"
                    f" {mine[name]!r}: choose another file, or remove it."
                )
        state = found["run"]
        for model, saved in ((self.selector, state.pop("selector")), (self.learner, state.pop("learner"))):
            if model is not None:
                model.__dict__ = saved.__dict__
        self.__dict__.update(state)
        if len(self.steps) == 0:
            self.steps = np.empty((64, len(STEP_COLUMNS)))
        self.interrupted = False


_EVENTS = ("enter", "leave")
_REBUILT = {"stream", "options", "_masked", "_columns"}


def _describe(model: Any) -> dict[str, Any] | None:
    if model is None:
        return None
    params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    params = {name: v.item() if isinstance(v, np.generic) else v for name, v in params.items()}
    plain = {name: value if _is_plain(value) else repr(value) for name, value in params.items()}
    return {"class": f"{type(model).__module__}.{type(model).__qualname__}", "params": plain}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _sortable(labels: Array) -> bool:
    return labels.dtype != object or len({type(label) for label in labels.tolist()}) == 1


def _resident_bytes() -> int:
    """Return the memory that the process occupies now; 0 where the system does not tell cheaply."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
