"""The state of a prequential run: processing of a batch, records, and resuming from a checkpoint."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tamis._kernels import compilation
from tamis._shapes import Shapes
from tamis._validation import Array, Indices, Ints, Mask, Rows, as_classes, as_target, encode_labels
from tamis.base import RowSelector, top_mask
from tamis.dependence.autocorrelation import SERIES_SIZE, add_values
from tamis.errors import DataError, StateError, TamisError
from tamis.evaluate.metrics import RunningErrors, RunningMetrics, SlidingStability
from tamis.evaluate.metrics.metric import Tracked
from tamis.evaluate.metrics.ranking import PastThreshold, SlidingAUC, SlidingMacroAUC, SlidingPrecisionRecall
from tamis.evaluate.metrics.selection import score_rows, state_bytes
from tamis.evaluate.prequential.delayed import Delay, DelayedLabels
from tamis.evaluate.prequential.pairs import (
    Draws,
    Pair,
    Predicted,
    Selected,
    Tested,
    clock,
    make_pairs,
    scores_of,
)
from tamis.evaluate.prequential.result import Frame, PrequentialResult, Step
from tamis.evaluate.prequential.run_log import RunLog
from tamis.evaluate.prequential.settings import REGRESSION, Task, features_of, plain, settings_of
from tamis.options import RunOptions
from tamis.persistence.attributes import check_attributes
from tamis.pipeline.masked_learner import ColumnChange
from tamis.pipeline.scaling import RunningScale
from tamis.pipeline.selective_learner import SelectiveLearner
from tamis.replay import Replay
from tamis.rows.random_subset import RandomSubset
from tamis.streams.stream import Batch, Stream
from tamis.summaries.label_series import LabelSeries

_REPLAYED = 1000  # rows
_SCORE_INTERVAL = 1000
_SHORT_RUN_STEPS = 20  # whose scores are all recorded; then those of every second step, of every third, ...
_ROW_BY_ROW, _MOST_COLUMNS = 50_000, 1000  # rows and columns up to which batches of one row are affordable
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
# Records are written in blocks: one by one, between two models, they would cost three times as much.
_STEPS_PER_BLOCK = 20


class _BatchOutcome(NamedTuple):
    """A step whose record is not written yet."""

    step: int
    n_seen: int
    codes: Array  # or the numeric targets
    arrived: Array  # those that arrived with the batch
    upto: Ints  # how many of them after each row
    positive: Array | None  # which rows are of the positive class, where there are scores of two classes
    baselines: tuple[float, ...]
    seconds: tuple[float, ...]
    predicted: Predicted


def _delay_of(stream: Stream, options: RunOptions) -> Delay:
    """Return when a row can be learned: with its label, or with the last of its values."""
    last = max(stream.delayed_features.values(), default=0)
    if last == 0:
        return options.delay
    if not isinstance(options.delay, int):
        raise ValueError(f"With delayed features, delay must be a number of rows, got {options.delay!r}.")
    if options.protocol == "paper":
        raise ValueError("protocol='paper' learns a row before it predicts it, so no feature can be delayed.")
    return max(options.delay, last)


def _tracked_metrics(options: RunOptions, learner: Any, task: Task) -> list[Tracked]:
    """Return the further metrics, each if it can evaluate what the learner predicts."""
    items = [Tracked(one, options.window) for one in options.metrics]
    names = [one.name for one in items]
    for one in items:
        if names.count(one.name) > 1:
            raise ValueError(f"metrics contains {one.name!r} twice: pass it once.")
        if one.metric.works_with(learner):
            continue
        what = {"numbers": "numbers", "labels": "labels"}.get(
            one.metric.takes, "probabilities (predict_proba)"
        )
        raise ValueError(
            f"metrics contains {one.name!r}, which evaluates {what}, but the {task.name} learner"
            f" {type(learner).__name__} does not predict them."
        )
    if options.checkpoint is not None and (names := [one.name for one in items if one.is_of_river]):
        raise ValueError(
            f"metrics contains {names[0]!r} of River, which a checkpoint cannot store: choose a metric of Tamis."
        )
    return items


def batches_of(stream: Stream, options: RunOptions, start: int) -> Iterator[Batch]:
    """Yield the batches up to the last row to read; none is requested after it, which might block."""
    most = math.inf if options.max_rows is None else options.max_rows
    batches = stream.batches(options.rows_per_block, start=start) if start < most else iter(())
    for X, y in batches:
        n_rows = int(min(len(y), most - start))
        start += n_rows
        yield X[:n_rows], y[:n_rows]
        if start >= most:
            return


class Run:
    """The state of a run between two batches."""

    _state_spec = Shapes(f"""
        n_features (=f)  n_features in [0, n_columns]  n_columns in [0, 2**31)  n_seen in [0, 2**53)
        n_steps in [0, 2**53)  model_bytes in [0, 2**62)  recorded? (f) bool  truth? (f) bool
        target_series ({SERIES_SIZE}) finite
        delayed.n_came in [n_seen, n_seen]  delayed.never in [0, n_seen]  delayed.given_up in [0, n_seen]
        delayed.now float in [-inf, inf]  delayed.columns[] in [0, n_columns)
        delayed.blocks[][0] (B, f)  delayed.blocks[][1] (B) labels  delayed.blocks[][2] (B) float in [-inf, inf]
        delayed.blocks[][3] (B) in [0, n_seen)
        recent.batches fixed  recent.batches[][0] (R, f)  recent.batches[][1] (R) labels
        pair.n_features (=f)  pair.n_seen in [n_seen, n_seen]
        baselines[].selector.order in [0, n_features)  baselines[].columns in [0, n_features)  baselines[]._ring finite
        baselines[].n_seen in [0, n_seen]  baselines[].total finite
        baselines[].selector.first[][0] (R, f)  baselines[].selector.first[][1] (R) labels
    """)

    def __init__(self, stream: Any, selector: Any, learner: Any, options: RunOptions, task: Task) -> None:
        self.stream, self.selector, self.options, self.task = stream, selector, options, task
        self.settings = settings_of(stream, selector, learner, options) | {"task": task.name}
        fitted = getattr(learner, "classes_", None)  # it may be fitted already
        known = stream.classes if fitted is None else fitted
        known = None if task is REGRESSION else known
        classes: Array = np.array([]) if known is None else as_classes(known)
        self.pair = SelectiveLearner(
            selector, learner, classes, numbers=task is REGRESSION,
            scale=options.scale, masking=options.masking, replay=options.replay,
        )  # fmt: skip
        self.labels = classes  # all labels so far, in the order of their codes; the learner may know fewer
        self.delayed = DelayedLabels(_delay_of(stream, options), options.max_waiting)
        self.metrics: RunningMetrics | RunningErrors = (
            RunningErrors if task is REGRESSION else RunningMetrics
        )(options.window)
        can_rank = any(hasattr(learner, name) for name in ("decision_function", "predict_proba"))
        ranks = options.auc and task.ranks and can_rank
        self.auc = SlidingAUC(max(2, options.window)) if ranks else None
        self.precision_recall = SlidingPrecisionRecall(options.window) if ranks else None
        self.threshold = PastThreshold() if ranks else None
        self.macro_auc = SlidingMacroAUC(max(2, options.window)) if ranks else None
        self.positive: Any = None  # the label whose scores are ranked
        # Recreated when the columns are known.
        self.stability = SlidingStability(1, options.stability_window)
        self.label_series = LabelSeries(len(classes))
        self.target_series = np.zeros(SERIES_SIZE)  # of a regression
        self.tracked = _tracked_metrics(options, learner, task)
        self.settings["metrics"] = [one.name for one in self.tracked]
        self.own = Selected(
            self.pair, is_paper=options.protocol == "paper", hide=self._hide_delayed_values,
            wants_probabilities=any(one.metric.takes == "probabilities" for one in self.tracked),
        )  # fmt: skip
        # The first is evaluated, the others are baselines.
        self.pairs: list[Selected | Draws | Pair] = [self.own]
        self.records = RunLog(options.keep_steps, task, self.settings["metrics"])
        self.rows_per_block = options.rows_per_block
        self.pending: deque[_BatchOutcome] = deque()  # steps that are not written yet
        self.n_seen = self.n_steps = self.n_features = self.n_columns = 0
        self.names: list[str] | None = None
        self.recorded: Mask | None = None  # the selection of the last record
        self.truth: Mask | None = None  # the relevant features of the last record
        self.model_bytes = 0
        self.interrupted = False
        self.is_consistent = True  # no update is partially applied
        # Since the last step: the time of the clock, of compilation until then, of reading alone.
        self._clock, self._compiling, self._reading = time.perf_counter(), compilation.seconds, 0.0
        self.batch: tuple[Rows, Array, Array] | None = None  # the last one, as predicted
        # The last rows: a model that cannot gain columns is fitted again to them.
        self.recent = Replay(None, _REPLAYED)

    # -- one batch -----------------------------------------------------------------------------------------

    def batches(self) -> Iterator[Batch]:
        """Yield the batches up to the last row to read, and measure how long they take; the clock starts here."""
        begin = self.start_clock()
        for X, y in batches_of(self.stream, self.options, self.n_seen):
            self._reading += clock() - begin
            yield X, y
            begin = clock()

    def start_clock(self) -> float:
        """Start measuring the time of the next batch; return the time of the processor."""
        self._clock, self._compiling = time.perf_counter(), compilation.seconds
        return clock()

    def process_block(self, X: Rows, y: Array) -> None:
        """Process rows that were read together, in batches of a size chosen from the rows before."""
        size = self._chosen_size()
        for at in range(0, len(y), max(size, 1)):
            self.process_batch(X[at : at + size], y[at : at + size])

    def _chosen_size(self) -> int:
        """Return the batch size for the next rows: small while labels are autocorrelated."""
        self.write()  # pending steps count, too
        now = self.metrics.windowed
        if self.task is REGRESSION:
            is_dependent = now["last_mae"] < now["mean_mae"]
        else:
            shares = np.array([now["no_change_accuracy"], now["majority_accuracy"]])
            n_rows = max(1, min(self.options.window, self.metrics.n_seen))
            error = math.sqrt(float((shares * (1.0 - shares)).sum()) / n_rows)
            is_dependent = shares[0] - shares[1] > 3.0 * error  # high, as it is tested every 100 rows
        if not is_dependent:
            return self.rows_per_block
        return 1 if self.n_seen < _ROW_BY_ROW and self.n_features <= _MOST_COLUMNS else 10

    def process_batch(self, X: Rows, y: Array) -> None:
        """Test on a batch, and train on the rows whose labels arrived with it; before the first labels only train."""
        if self.n_columns not in (0, X.shape[1]) and not (
            self.stream.gains_columns and self.n_columns < X.shape[1]
        ):
            raise DataError(f"A batch has {X.shape[1]} columns, the earlier ones had {self.n_columns}.")
        self.is_consistent = False
        if self.n_columns == 0:
            self._begin(X)
        elif self.n_columns < X.shape[1]:
            X = self._append_columns(X)
        now = comes = None
        if self.delayed.columns is not None:
            X, y, now, comes = self.delayed.split_times(X, y)
        try:
            codes: Array
            if self.task is REGRESSION:
                codes = y = as_target(y)
            else:
                codes, self.labels = encode_labels(y, self.labels)
                if len(self.labels) > 2 and self.auc is not None:
                    self._end_two_classes()
            due: Batch | None
            if self.delayed.delay == 0:
                due, upto = (X, y), np.arange(1, len(y) + 1)
                self.delayed.n_came += len(y)
            else:
                due, upto = self.delayed.exchange(X, y, now, comes)
            X = self._hide_delayed_values(X)
            if self.pair.is_started:
                self._test_and_train(X, y, codes, due, upto)
            else:
                self.pair.update_scale(X, self._complete_rows(X, due))
                if due is not None:
                    self._train_first(*due)
                    # The baselines have seen the first labels, too.
                    self.metrics.learn(self._codes_of(due, X, codes))
                self.n_seen += len(y)
        except ValueError as error:
            self.pair.reject(error, X, self.names)
            raise
        self._measure_dependence(codes)
        if due is not None and self.stream.gains_columns:
            self.recent.add(*due)
        self.is_consistent = True

    def _hide_delayed_values(self, X: Rows) -> Rows:
        """Return rows without the values that arrive later."""
        if not (delayed := self.stream.delayed_features):
            return X
        names = self.names or [f"x{j}" for j in range(self.n_features)]
        if missing := [name for name in delayed if name not in names]:
            raise DataError(
                f"delayed_features must name features, got {missing[0]!r}; the features are {', '.join(names[:20])}."
            )
        if sp.issparse(X):
            raise DataError(
                "Sparse rows cannot have delayed features, which are missing at first: pass dense rows."
            )
        X = np.array(X)
        X[:, [names.index(name) for name, n_rows in delayed.items() if n_rows]] = np.nan
        return X

    def _complete_rows(self, X: Rows, due: Batch | None) -> Rows:
        """Return the rows that a scale is learned from: those of the batch, or those whose last values arrived."""
        if not self.stream.delayed_features:
            return X
        return X[:0] if due is None else due[0]

    def _measure_dependence(self, codes: Array) -> None:
        """Update the measured autocorrelation with labels, or targets, in the order of their rows."""
        if self.task is REGRESSION:
            add_values(codes, self.target_series, 1)
            return
        if self.label_series.n_classes < len(self.labels):
            self.label_series.grow(len(self.labels))
        self.label_series.update(codes)

    def _n_effective(self) -> float | None:
        """Return the effective number of independent rows if the labels or targets are autocorrelated."""
        if self.task is REGRESSION:
            inflation = float(self.target_series[2])
        else:
            inflation = self.label_series.correlation_length() if self.label_series.dependent else 1.0
        return self.n_seen / inflation if inflation > 1.0 else None

    def _codes_of(self, due: Batch, X: Rows, codes: Array) -> Array:
        """Return the codes of the labels that arrived (or the targets); those of the batch are known."""
        if due[0] is X:
            return codes
        return due[1] if self.task is REGRESSION else encode_labels(due[1], self.labels)[0]

    @property
    def takes_missing(self) -> bool:
        """Whether the models take missing values."""
        return self.pair.takes_missing

    @contextlib.contextmanager
    def uninterrupted(self) -> Iterator[None]:
        """Defer interrupts within this context."""
        self.is_consistent = False
        try:
            yield
        finally:
            self.is_consistent = True

    def _begin(self, X: Rows) -> None:
        self.names, self.n_columns = self.stream.feature_names, X.shape[1]
        if self.delayed.is_timed:
            self.names = self.delayed.clock(self.names or [f"x{j}" for j in range(self.n_columns)])
        self.n_features = self.n_columns - 2 * self.delayed.is_timed
        self.stability = SlidingStability(self.n_features, self.options.stability_window)
        self.pair.begin(
            self.n_features, is_sparse=sp.issparse(X), categorical=features_of(self.stream, self.options)[1]
        )

    def _append_columns(self, X: Rows) -> Rows:
        """Append the columns that the stream has gained, which are absent from all rows so far; return the batch."""
        self.write()  # pending steps have the columns so far
        n_before, n_more = self.n_features, X.shape[1] - self.n_columns
        if not self.pair.takes_missing:  # the first rows of the batch may lack them
            X, new = np.array(X), slice(self.n_columns, None)
            X[:, new] = np.where(np.isnan(X[:, new]), 0.0, X[:, new])
        self.n_columns, self.n_features = X.shape[1], n_before + n_more
        self.names, categorical = features_of(self.stream, self.options)
        change = ColumnChange(self.n_features, absent=np.nan if self.pair.takes_missing else 0.0)
        self.stability.widen(self.n_features)
        if self.recorded is not None:
            self.recorded = np.pad(self.recorded, (0, n_more))
        if self.truth is not None:
            self.truth = np.pad(self.truth, (0, n_more))
        self.delayed.blocks = [(change.of_rows(block), *rest) for block, *rest in self.delayed.blocks]
        self.recent.restore([(change.of_rows(block), labels) for block, labels in self.recent.batches])
        rows, y = self.recent.rows() or (np.empty((0, self.n_features)), self.labels[:0])
        new_categories = [j for j in categorical if j >= n_before]
        self.pair.change_columns(change, rows, y, new_categories)
        for at, pair in enumerate(self.baselines):
            pair.append_columns(change, rows, y, new_categories, self.pair.scale, self.baselines[:at])
        return X

    def _classes_with(self, y: Array) -> Array:
        """Return the classes including those of these labels."""
        if self.task is REGRESSION:
            return self.labels
        return self.labels if self.delayed.delay == 0 else encode_labels(y, self.pair.learner.classes)[1]

    def _train_first(self, X: Rows, y: Array) -> None:
        """Train on the first rows that have labels."""
        batch = Tested(None, None, (X, y), self._classes_with(y), self._frozen_scale(X))
        self.own.declared = self.stream.classes
        self.own.test_and_train(batch)
        self._add_baselines()
        for pair in self.pairs[1:]:
            pair.test_and_train(batch)

    def _frozen_scale(self, X: Rows) -> RunningScale | None:
        """Return the scale before the labels of a batch are known: the targets of its categories must not leak."""
        return None if self.pair.scale is None else self.pair.scale.frozen(X)

    def _test_and_train(self, X: Rows, y: Array, codes: Array, due: Batch | None, upto: Ints) -> None:
        begin, models = clock(), self.pair
        classes = models.learner.classes if due is None else self._classes_with(due[1])
        every = self.labels if self.auc is None and self.macro_auc is not None else None
        batch = Tested(X, y, due, classes, self._frozen_scale(X), every, self._ranked_label())
        own = 0.0
        for pair in self.pairs:
            pair.test_and_train(batch)
            own = own or clock()
        beside, done = clock() - own, batch.predicted
        assert done is not None
        models.update_scale(X, self._complete_rows(X, due))
        self.n_seen += len(y)
        seldom = max(1, _SCORE_INTERVAL // self.rows_per_block)
        if self.n_steps % min(seldom, 1 + self.n_steps // _SHORT_RUN_STEPS) == 0:
            self.records.add_scores(self.n_steps, *self._top_features())
        # 8 to 16 times for each doubling of the rows: a fixed schedule, so that every run measures at the same rows.
        at, beyond = divmod(self.n_steps, seldom)
        if beyond == 0 and at % (1 << max(0, at.bit_length() - 4)) == 0:
            self.model_bytes = state_bytes(self.selector, models.learner.model)
        now, compiling = time.perf_counter(), compilation.seconds
        seconds = (
            *done.seconds, beside, clock() - begin - beside,
            self._reading, compiling - self._compiling, now - self._clock,
        )  # fmt: skip
        self._clock, self._compiling, self._reading = now, compiling, 0.0
        self.batch = (X, y, done.labels)
        arrived = codes[:0] if due is None else self._codes_of(due, X, codes)
        positive = None if batch.positive is None else np.asarray(y == batch.positive)
        baselines = scores_of(self.baselines, bool(self.task.ranks))
        self.pending.append(
            _BatchOutcome(self.n_steps, self.n_seen, codes, arrived, upto, positive, baselines, seconds, done)
        )
        self.n_steps += 1
        if len(self.pending) == _STEPS_PER_BLOCK:
            self.write()

    # -- pairs ---------------------------------------------------------------------------------------------

    @property
    def baselines(self) -> list[Pair]:
        """The pairs beside the one that is evaluated."""
        return [one for pair in self.pairs for one in pair.baselines]

    def _add_baselines(self) -> None:
        """Add the pairs that use other columns, if there is a selection to compare with."""
        learner = self.pair.learner
        if self.selector is None and getattr(learner.model, "features", "all") == "few":
            # The baselines of a learner that selects columns itself use those that they are given.
            learner = learner.another()
            learner.model.set_params(features="all")
        elif self.selector is None or isinstance(self.selector, RandomSubset):
            return
        with contextlib.suppress(TypeError):  # a third-party learner that cannot be cloned
            self.pairs += make_pairs(
                learner,
                self.n_features,
                self.options,
                is_fixed=isinstance(self.selector, RowSelector)
                and not self.selector._chooses_count
                and all(getattr(self.selector, terms, None) is None for terms in ("keep", "groups")),
                ranks=self.auc is not None,
                is_regression=self.task is REGRESSION,
                categorical=features_of(self.stream, self.options)[1],
            )

    def _ranked_label(self) -> Any:
        """Return the label of two whose scores are ranked; None without such scores."""
        learner = self.pair.learner
        if self.auc is None or learner.n_known_classes != 2:
            return None
        if self.positive is None:
            self.positive = self._rarer_label(*learner.model.classes_)
        return self.positive

    def _end_two_classes(self) -> None:
        """End the measures of two classes, which are not defined for more, at the first row of a third."""
        self.write()  # pending steps are of two classes
        self.auc = self.precision_recall = self.threshold = None
        for pair in self.baselines:
            pair.auc = None

    def _rarer_label(self, first: Any, second: Any) -> Any:
        """Return the rarer of two labels so far; on a tie the second."""
        self.write()  # pending steps count, too
        assert isinstance(self.metrics, RunningMetrics)
        counts = {label: self.metrics.frequency(code) for code, label in enumerate(self.labels.tolist())}
        return first if counts.get(first, 0) < counts.get(second, 0) else second

    # -- records -------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Write the records of the pending steps."""
        if not self.pending:
            return
        begin, n_steps, memory = clock(), len(self.pending), _resident_bytes()
        self._write_pending(memory)
        # The time is divided equally among the steps.
        total = self.records.at_total
        self.records.steps.rows[-n_steps:, total] += (clock() - begin) / n_steps

    def _encode_predictions(self) -> tuple[Array, int]:
        """Return the predictions of the pending steps, for the metrics, and the number of classes."""
        labels = [taken.predicted.labels for taken in self.pending]
        if len({part.dtype.kind for part in labels}) > 1:  # 1 and "1" must remain two labels
            labels = [part.astype(object) for part in labels]
        if self.task is REGRESSION:
            return np.concatenate(labels), 0
        codes, classes = encode_labels(np.concatenate(labels), self.labels)
        return codes, len(classes)

    def _write_pending(self, memory: int) -> None:
        (predicted, n_classes), row = self._encode_predictions(), 0
        truth = self._truth_from(self.pending[0].n_seen - len(self.pending[0].codes), self.pending[-1].n_seen)
        while self.pending:
            taken = self.pending.popleft()
            n_rows = len(taken.codes)
            part = predicted[row : row + n_rows]
            delayed = (None, None) if taken.arrived is taken.codes else (taken.arrived, taken.upto)
            if isinstance(self.metrics, RunningMetrics):
                self.metrics.update(taken.codes, part, n_classes, *delayed)
            else:
                self.metrics.update(taken.codes, part, *delayed)
            if (
                self.macro_auc is not None
                and taken.predicted.scores is not None
                and taken.predicted.scores.ndim == 2
            ):
                self.macro_auc.update(taken.codes, taken.predicted.scores)
            elif self.auc is not None and taken.predicted.scores is not None:
                self.auc.update(taken.positive, taken.predicted.scores)
                if self.precision_recall is not None:
                    self.precision_recall.update(taken.positive, taken.predicted.scores)
                if self.threshold is not None:
                    decided = np.asarray(taken.predicted.labels == self.positive)
                    self.threshold.update(
                        taken.positive, taken.predicted.scores, decided, taken.predicted.labelled
                    )
            self._track(taken)
            self._record(taken, memory, None if truth is None else truth[row : row + n_rows])
            row += n_rows

    def _truth_from(self, start: int, stop: int) -> Mask | None:
        """Return the relevant columns of these rows, if known."""
        stream: Any = self.stream
        return stream.relevant_rows(start, stop) if hasattr(stream, "relevant_rows") else None

    def _record(self, taken: _BatchOutcome, memory: int, truth: Mask | None) -> None:
        n_entered = n_left = 0
        value = math.nan
        n_selected = self.n_features
        if taken.predicted.mask is not None and taken.predicted.support is not None:
            n_entered, n_left = self._record_changes(taken.step, taken.predicted.mask)
            n_selected = len(taken.predicted.support)
            self.stability.add(taken.predicted.support)
            value = self.stability.value
        ranked: tuple[float, ...] = (math.nan,) * (2 * len(self.task.ranks))
        if self.auc is not None and self.precision_recall is not None:
            ranked = (self.auc.mean, self.auc.windowed, *self.precision_recall.values, math.nan, math.nan)
        elif self.macro_auc is not None:
            ranked = (*ranked[2:], self.macro_auc.mean, self.macro_auc.windowed)
        row = (
            taken.step, taken.n_seen, len(taken.codes), *self.metrics.values.tolist(), *ranked,
            *taken.baselines, *self._selection_accuracy(taken, truth), value,
            n_selected, n_entered, n_left, *taken.seconds, memory, self.model_bytes,
        )  # fmt: skip
        if self.tracked:
            further = {
                f"{one.name}_{scope}": value
                for one in self.tracked
                for scope, value in zip(("cumulative", "windowed"), one.values, strict=True)
            }
            known = dict(zip(self.task.columns, row, strict=True)) | further
            row = tuple(known[name] for name in self.records.columns)
        self.records.add_step(row)

    def _track(self, taken: _BatchOutcome) -> None:
        """Update the further metrics."""
        y = taken.codes if self.task is REGRESSION else self.labels[taken.codes]
        for one in self.tracked:
            if one.metric.takes == "probabilities" and taken.predicted.probabilities is not None:
                one.update(y, *taken.predicted.probabilities)
            else:
                one.update(y, taken.predicted.labels, None)

    def _selection_accuracy(self, taken: _BatchOutcome, truth: Mask | None) -> tuple[float, ...]:
        """Return the selection accuracy for the relevant features of these rows, and record their changes."""
        if truth is None:
            return (math.nan,) * 3
        if self.truth is None or (truth != self.truth).any():
            self._record_truth(taken)
        mask = taken.predicted.mask
        selected = np.ones(self.n_features, dtype=bool) if mask is None else mask
        return score_rows(selected, truth)[:3]

    def _record_truth(self, taken: _BatchOutcome) -> None:
        """Record the relevant features in the middle of the batch, if they have changed."""
        stream: Any = self.stream
        now = np.zeros(self.n_features, dtype=bool)
        now[stream.relevant_at(taken.n_seen - (len(taken.codes) + 1) // 2)] = True
        changed = np.flatnonzero(now if self.truth is None else now != self.truth)
        self.records.add_truth(taken.step, changed, now[changed])
        self.truth = now

    def _record_changes(self, step: int, mask: Mask) -> tuple[int, int]:
        if mask is self.recorded:
            return 0, 0
        changed = np.flatnonzero(mask if self.recorded is None else mask != self.recorded)
        entered = mask[changed]
        self.records.add_changes(step, changed, entered)
        self.recorded = mask
        n_entered = int(np.count_nonzero(entered))
        return n_entered, len(changed) - n_entered

    def _top_features(self) -> tuple[Indices, Array]:
        """Return the currently best-scored columns and their scores, best first."""
        scores = None if self.pair.support is None else getattr(self.selector, "scores_", None)
        n_tracked = min(self.options.n_tracked, self.n_features)
        if scores is None or n_tracked == 0:
            return np.empty(0, np.intp), np.empty(0)
        scores = np.asarray(scores, dtype=np.float64)
        best = np.flatnonzero(top_mask(scores, n_tracked))
        best = best[np.argsort(-scores[best], kind="stable")]
        return best, scores[best]

    def step(self) -> Step:
        """Return the last step for a callback."""
        self.write()
        values = dict(zip(self.records.columns, self.records.steps.rows[-1].tolist(), strict=True))
        features, scores = self._top_features()
        names = self._names()
        top = [(names[j], score) for j, score in zip(features.tolist(), scores.tolist(), strict=True)]
        selected = np.arange(self.n_features) if self.recorded is None else np.flatnonzero(self.recorded)
        return Step(values, selected, top, self._progress(), self.batch, self.pair, names)

    def _progress(self) -> float | None:
        shares = [self.n_seen / n for n in (self.stream.n_rows, self.options.max_rows) if n]
        if self.stream.n_rows is None and (read := self.stream.progress()) is not None:
            shares.append(read)
        return min(max(shares), 1.0) if shares else None  # the limit closest to its end ends the run

    def _names(self) -> list[str]:
        return self.names or [f"x{j}" for j in range(self.n_features)]

    # -- results and checkpoints ---------------------------------------------------------------------------

    def result(self) -> PrequentialResult:
        """Return the result so far."""
        self.write()
        settings = {
            **self.settings,
            "learner_restarts": self.pair.learner.restarts,
            "replays": self.pair.replays,
            "challenges": self.pair.challenges,
            "scale": "none" if self.pair.scale is None else "standard",
            "positive": plain(self.positive),
            "interrupted": self.interrupted,
        }
        if getattr(self.selector, "n_seen_", 0) and hasattr(self.selector, "comparison_summary"):
            comparison = self.selector.comparison_summary()
            if comparison["followed"]:  # no comparison with a single class
                settings["comparison"] = comparison
        model = self.pair.learner.model
        if not getattr(model, "warming_up_", True):  # a learner that selects columns itself
            settings["model_columns"] = {"refits": model.refits_, "candidates": model.comparison_}
        if self.positive is not None and len(self.labels) > 2:
            settings["third_class"] = plain(self.labels[2])
        if self.delayed.is_timed:
            settings["labels"] = self.delayed.counts()
        if why := getattr(self.selector, "why_fewer_", ""):
            settings["why_fewer"] = why
        if self.threshold is not None and self.threshold.n_tested:
            settings["threshold"] = self._threshold_summary(self.threshold)
        if (n_effective := self._n_effective()) is not None:
            settings["dependence"] = {"n_rows": self.n_seen, "n_effective": n_effective}
        names = list(self._names())
        frames = self.records.frames(names) | self._reasons(np.array(names, dtype=object))
        values = getattr(self.stream, "categories", {})
        categories = {j: list(values[name]) for j, name in enumerate(names) if name in values}
        return PrequentialResult(frames, settings, names, self.pair if self.n_seen else None, categories)

    def _threshold_summary(self, threshold: PastThreshold) -> dict[str, Any]:
        """Return the decision threshold, how it was chosen, and its performance and that of the default threshold."""
        model = self.pair.learner.model
        is_probability = not hasattr(model, "decision_function")
        # Scores of the first class are those of the second, negated.
        shift = float(is_probability and self.positive != model.classes_[1])
        names = ("precision", "recall", "f1")
        return {
            "value": threshold.value + shift,
            "score": "probability" if is_probability else "decision function",
            "every": threshold.every,
            "window": threshold.window,
            "n_rows": threshold.n_tested,
            "n_positive": threshold.n_positive,
            **dict(zip(names, map(_finite, threshold.scores()), strict=True)),
            "own_value": 0.5 if is_probability else 0.0,
            **dict(zip((f"own_{name}" for name in names), map(_finite, threshold.own_scores()), strict=True)),
        }

    def _reasons(self, names: Array) -> dict[str, Frame]:
        """Return why columns are selected or not, if the selector reports it: their gain, and given which others."""
        because: Any = getattr(self.selector, "redundant_to_", None)
        table = None if because is None else getattr(self.selector, "table_", None)
        if table is None or not {"selected", "alone", "added"} <= set(table) or len(because) != len(names):
            return {}
        values = {key: np.asarray(table[key], np.float64) for key in ("alone", "added")}
        beside = np.where(because < 0, "", names[because]).astype(object)
        kept = np.asarray(table["selected"], bool).astype(np.int64)
        return {
            "reasons": {
                "feature": np.arange(len(names)), "name": names, "selected": kept, **values, "redundant_to": beside,
            }
        }  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return the state needed to resume from here."""
        self.write()
        kept = {name: getattr(self, name) for name in _KEPT}
        return kept | {
            "models": self.pair.state(), "records": self.records.state(), "delayed": self.delayed.state(),
            "recent": self.recent.batches, "pairs": [pair.state() for pair in self.baselines],
            "tracked": [one.state() for one in self.tracked], "position": self.stream.position(),
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state; the caller's selector and learner get the saved state.

        Raises
        ------
        StateError
            If no run can reach this state.
        """
        try:
            self._restore(state)
        except TamisError:
            raise
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # missing or mistyped parts
            raise _inconsistent() from None

    def _restore(self, state: dict[str, Any]) -> None:
        if (position := state.pop("position", None)) is not None:
            self.stream.seek(position)
        self.records.restore(state.pop("records"))
        for one, kept in zip(self.tracked, state.pop("tracked"), strict=True):
            one.restore(kept)
        self.delayed.restore(state.pop("delayed"))
        self.recent.restore(state.pop("recent"))
        self.pair.restore(state.pop("models"))
        saved = state.pop("pairs")
        self.__dict__.update(state)
        if saved:
            self._add_baselines()
        for pair, kept in zip(self.baselines, saved, strict=True):
            pair.restore(kept)
        self.check_state()

    def check_state(self) -> None:
        """Validate a restored state.

        Raises
        ------
        StateError
            If no run can reach this state.
        """
        for part in (self, self.delayed, self.pair, self.pair.learner, *self.baselines):
            check_attributes(type(part), vars(part))
            if isinstance(shapes := getattr(part, "_state_spec", None), Shapes):
                shapes.check_values(part)
        self.records.check_state(self.n_features, self.n_steps)
        pair, model = self.pair, self.pair.learner.model
        n_classes = len(getattr(model, "classes_", self.labels))
        fits = (
            (
                pair.mask is None
                or (pair.support is not None and np.array_equal(np.flatnonzero(pair.mask), pair.support))
            )
            and (self.positive is None or self.positive in self.labels.tolist())
            and (self.macro_auc is None or self.macro_auc.n_classes <= len(self.labels))
            # Two are separated by their scores.
            and (pair.learner.n_known_classes != 2 or n_classes == 2)
        )
        if not fits:
            raise _inconsistent()

    def user_classes(self) -> list[type]:
        """Return the user-defined classes that a checkpoint may contain."""
        return [type(model) for model in (self.selector, self.pair.learner.model) if model is not None]


_KEPT = (
    "metrics", "auc", "precision_recall", "threshold", "macro_auc", "positive", "stability", "n_seen", "n_steps",
    "n_features", "n_columns", "names", "recorded", "truth", "model_bytes", "labels", "label_series", "target_series",
)  # fmt: skip


def _inconsistent() -> StateError:
    return StateError(
        "The parts of a saved run do not fit together: the checkpoint was changed from outside, so choose another file,"
        " or remove it."
    )


def _finite(value: float) -> float | None:
    """Return a number as a JSON value."""
    return value if math.isfinite(value) else None


def _resident_bytes() -> int:
    """Return the resident memory of the process in bytes; 0 where the system has no cheap way to read it."""
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return 0
    try:
        return int(os.read(file, 100).split()[1]) * _PAGE
    finally:
        os.close(file)
