"""Test-then-train: every batch first tests the selector and the learner, then trains them.

A checkpoint saves the run, and is resumed by the same run only.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tamis._interrupts import defer_interrupts
from tamis._validation import check_choice
from tamis.errors import CheckpointError
from tamis.evaluate.prequential.result import PrequentialResult, Step
from tamis.evaluate.prequential.run import Run
from tamis.evaluate.prequential.settings import REGRESSION, find_task, task_of
from tamis.options import RunOptions
from tamis.persistence import load, save
from tamis.persistence.lock import write_lock
from tamis.pipeline.selective_learner import declare_categories, declare_task, default_learner
from tamis.streams import DictStream, FrameStream, as_stream

# -- the checkpoint ----------------------------------------------------------------------------------------


_SHARE = 0.05  # largest fraction of the run time spent on saving
_COMPARED = ("stream", "selector", "learner", "options")


class Checkpoint:
    """The file that a run is saved in; as a context manager it prevents other processes from writing it.

    Parameters
    ----------
    options : RunOptions
        Its `checkpoint` is the path; None disables saving. Saves every `checkpoint_every` steps are skipped if they
        would take more than 5 % of the time.

    Raises
    ------
    CheckpointError
        If the file cannot be created.
    """

    def __init__(self, options: RunOptions) -> None:
        path, seconds = options.checkpoint, options.checkpoint_seconds
        self.path, self.every = None if path is None else Path(path), options.checkpoint_every
        self.seconds = math.inf if seconds is None else seconds
        self._saved, self._cost = time.perf_counter(), 0.0
        self._step = -1  # the last saved step
        self._lock = contextlib.ExitStack()
        if self.path is None:
            return
        folder = self.path.absolute().parent
        if self.path.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise CheckpointError(
                f"Cannot write the checkpoint {str(path)!r}: choose a file in a folder that exists and can be written."
            )

    def __enter__(self) -> Checkpoint:
        if self.path is not None:
            self._lock.enter_context(write_lock(self.path, again=True))
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def load(self, settings: dict[str, Any], classes: list[type]) -> Any:
        """Return the state of the run that was saved, or None if there is none.

        Raises
        ------
        CheckpointError
            If the file is damaged, or belongs to a run with other settings.
        """
        if self.path is None or not self.path.exists():
            return None
        content = load(self.path, classes=classes)
        is_run = isinstance(content, dict) and set(content) == {"settings", "run"}
        if not is_run or not isinstance(content["settings"], dict) or not isinstance(content["run"], dict):
            raise CheckpointError(
                f"{str(self.path)!r} is not a checkpoint of a run: choose another file, or remove it."
            )
        for name in _COMPARED:
            differs = _difference(settings[name], content["settings"].get(name), name)
            if differs is not None:
                setting, now, then = differs
                raise CheckpointError(
                    f"{str(self.path)!r} is the checkpoint of another run, whose {setting} is {then!r}, not {now!r}:"
                    " choose another file, or remove it."
                )
        return content["run"]

    @contextlib.contextmanager
    def restoring(self) -> Iterator[None]:
        """Name the file in the message of an error in its content."""
        try:
            yield
        except CheckpointError as error:
            raise CheckpointError(f"{str(self.path)!r} cannot be resumed. {error}") from error

    def keep(self, step: int, settings: dict[str, Any], state: Callable[[], dict[str, Any]]) -> None:
        """Save the run if a checkpoint is due and the run has changed."""
        if self.path is None or step == self._step:
            return
        since = time.perf_counter() - self._saved
        if (step % self.every == 0 or since >= self.seconds) and since >= self._cost / _SHARE:
            self.write(settings, state)
            self._step = step

    def write(self, settings: dict[str, Any], state: Callable[[], dict[str, Any]]) -> None:
        """Save the run."""
        if self.path is not None:
            begin = time.perf_counter()
            save({"settings": settings, "run": state()}, self.path)
            self._saved = time.perf_counter()
            self._cost = self._saved - begin


def _difference(now: Any, then: Any, where: str) -> tuple[str, Any, Any] | None:
    """Return the first difference of two JSON values; None if they are equal."""
    if isinstance(now, dict) and isinstance(then, dict):
        for key in [*now, *(key for key in then if key not in now)]:
            if (first := _difference(now.get(key), then.get(key), f"{where}.{key}")) is not None:
                return first
        return None
    same = json.dumps(now) == json.dumps(then, default=repr)  # NaN equals itself here
    return None if same else (where, now, then)


def prequential(
    stream: Any,
    selector: Any = None,
    learner: Any = None,
    *,
    label: str | int | tuple[Any, ...] | None = None,
    task: str | None = None,
    missing: str | None = None,
    batch_size: int | str = 100,
    max_rows: int | None = None,
    protocol: str = "honest",
    delay: int | tuple[str, str] = 0,
    max_waiting: int = 100_000,
    window: int = 1000,
    stability_window: int = 10,
    n_tracked: int = 20,
    auc: bool | str = "auto",
    metrics: list[Any] | tuple[Any, ...] = (),
    replay: str | int = "auto",
    masking: str = "auto",
    scale: str = "auto",
    baselines: str = "random",
    n_draws: int = 3,
    frozen_after: int = 1000,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 100,
    checkpoint_seconds: float | None = None,
    keep_steps: int | None = None,
    on_step: Callable[[Step], object] | None = None,
    on_interrupt: str = "raise",
) -> PrequentialResult:
    """Evaluate a selector and a learner on a stream, prequentially (test-then-train).

    The first full batch trains both and is not scored. In every later batch, unselected features are removed (in the
    way that suits the learner, see Notes), and the learner predicts and is scored. Then the selector and the learner
    are updated with the batch.

    Parameters
    ----------
    stream : Stream, pair (X, y), frame, iterable of dicts or of pairs
        A pandas, Polars or Arrow frame, a LazyFrame, a DuckDB relation, and dicts require `label`. Pairs are
        (dict, label), as in the data sets of River, or batches (X, y), as from the DataLoader of PyTorch.
    selector : estimator with `partial_fit` and `get_support`, or None
        None keeps all features, as a baseline. The object itself is fitted, so it can be used afterwards.
    learner : classifier or regressor with `partial_fit`, optional
        The object itself is fitted; a River classifier is wrapped and copied. A regressor requires a selector for
        regression; the type of the labels does not matter. The default is
        ``SGDLogisticRegression(learning_rate="constant")``, or ``SGDRegressor(loss="huber", epsilon=1.0,
        random_state=0)`` if the selector is set to regression.
    label : str, int or tuple, optional
        The label column, if `stream` is a frame or yields dicts: its name, or its position if no column has that name.
        Text and categorical columns become codes, dates and times seconds since 1970, and a selector or learner whose
        parameter `categorical` is None gets the positions of the categories.
    task : {"classification", "regression"}, optional
        Kind of label, where neither learner nor selector determines it: with ``"regression"``, a selector with default
        settings is set to regression, as ``--task regression`` does. By default that of the learner, else that
        of the selector, never that of the labels.
    missing : {"keep", "mean", "error"}, optional
        Treatment of missing numbers, as by :meth:`Stream.with_missing`. By default that of the stream; frames, arrays
        and dicts keep NaN, which is an error only if selector or learner do not accept it.
    batch_size : int or "auto", default=100
        Rows per batch: they are predicted together, before any update. ``"auto"``: one row at a time while labels (or
        targets) are autocorrelated, else 100. This is decided every 100 rows from the rows before: whether the
        no-change baseline was more accurate than the majority-class baseline over the last `window` rows, by more than
        three standard errors (for regression: whether the last known target is closer than the mean). After 50,000
        rows, and with more than 1,000 columns, it is 10 rows instead of one.
    max_rows : int, optional
        Stop after this many rows.
    protocol : {"honest", "paper"}, default="honest"
        ``"honest"`` selects by the state before the batch. ``"paper"`` is the order of the FIRES paper: the selector
        has already seen the labels of the batch on which it is tested.
    delay : int or pair of str, default=0
        Delayed labels: number of rows after which the label of a row arrives. Or the names of two numeric columns, the
        time of the row and the time of its label: the label then arrives with the first row at or after that time, and
        never if it is NaN. These two columns are not used as features. Selector, learner and baselines learn a row when
        its label arrives, in the order of arrival. Every row is tested on its own arrival, from the first label on.
        ``settings["labels"]`` counts rows pending at the end, rows that never got a label, and rows that were given up.
    max_waiting : int, default=100_000
        Maximum number of rows waiting for their labels, at least 1, if columns give the times. Beyond it, the oldest
        are given up and not learned. With a delay in rows, exactly that many rows wait.
    window : int, default=1000
        Number of rows of the windowed measures.
    stability_window : int, default=10
        Number of selections compared by the stability.
    n_tracked : int, default=20
        Number of highest scores that are recorded, about every thousand rows (more often at first); 0: none.
    auc : bool or "auto", default="auto"
        Whether to request scores from a learner too (`decision_function` or `predict_proba`), which costs another
        prediction. For two classes they give the area under the ROC curve, average precision, and recall at a precision
        of .9. The last two are of the rarer class; ``settings["positive"]`` names it. For more classes they give the
        mean of the one-vs-rest areas, ``macro_auc``; the others are NaN from a third class on. ``"auto"``: if the
        learner has scores.
    metrics : list of str, metric or callable, default=()
        Further metrics of the predictions: names such as ``"log_loss"``, ``"precision(spam)"`` or
        ``"pinball_loss(0.9)"`` (:mod:`tamis.evaluate.metrics.predictions`), metrics of Tamis or River, and functions or
        scorers of scikit-learn or their names. They are copied. Each has a column ``<name>_cumulative`` and one over
        the last `window` rows, ``<name>_windowed``. A function or scorer, or the macro AUC, is computed on these rows,
        and its cumulative value is the mean over the rows of the run. Probabilities take another prediction.
    replay : {"auto", "always", "never"} or int, default="auto"
        When the learner is reset, and trained on how many of the last rows, masked to the new selection. ``"auto"``:
        when the selector reports a drift (``drift_detected_``), a reset learner is trained on the number of rows that
        it requests (``n_replay``), runs beside the old one for up to 1,000 rows, and replaces it if it predicts
        significantly better; learners that adapt to drift themselves are never reset. ``"always"``: at each of these
        drifts. ``"never"``. A number: whenever the selection changes, on that number of rows. ``settings["replays"]``
        counts the replacements, ``settings["challenges"]`` the learners that were tried.
    masking : {"auto", "zeros"}, default="auto"
        How unselected features are removed. ``"auto"``: in the way that suits the learner. ``"zeros"``: as zeros for
        every learner, as in published tables.
    scale : {"auto", "standard", "none"}, default="auto"
        Whether features are standardised for the learner, by the mean and standard deviation of the rows before the
        batch. ``"auto"``: for dense rows, if the learner depends on the scale (linear models, River's neighbours).
        ``"standard"``: always. ``"none"``: never. ``settings["scale"]`` records it, and ``result.scale`` has the
        numbers. The selector gets unscaled rows. If features are standardised, so is a numeric target; predictions are
        in the units of the target.
    baselines : {"random", "all", "both", "none"}, default="random"
        The baselines that run beside a selector, each with a separate copy of the learner on the same batches. All
        features and a frozen selection are always among them; with ``"random"`` (or its synonym ``"both"``) also random
        subsets of the size of the selection. Their cost is that of as many additional learners; see
        ``seconds_baselines``. ``"none"``: no such baselines.
    n_draws : int, default=3
        Number of random subsets; their accuracy (or mean absolute error) is recorded as mean and standard deviation.
    frozen_after : int, default=1000
        Number of rows on which the baseline of a frozen selection selects once, as many features as the selector, by
        the weights of an L1-regularised logistic regression (or lasso). Until then it uses every feature, and its
        scores are recorded from then on. 0: no such baseline.
    checkpoint : path-like, optional
        File to save the run in: after the first batch, every `checkpoint_every` steps, and at the end. If the file
        exists, the run resumes. Its result is that of a run without interruption, except for the columns of times,
        `memory_bytes` and `model_bytes`.
    checkpoint_every : int, default=100
        Number of steps between two checkpoints; larger if saving would take more than 5 % of the time.
    checkpoint_seconds : float, optional
        Also save after this many seconds, and while a stream waits for rows.
    keep_steps : int, optional
        Maximum number of records, at least 20. When it is reached, they are thinned, so memory is bounded for any
        length of the stream. One record then represents 2, 4, 8 ... steps: its rows, seconds, entered and left columns
        are sums, its accuracy is a mean, and all else is that of its last step. By default a record of each step is
        kept, 464 bytes.
    on_step : callable, optional
        Called with a :class:`Step` after every batch (with ``batch_size="auto"``, after every 100 rows). If it has
        methods `state` and `restore`, the value of `state` is saved in the checkpoint too. If it has a method `is_due`,
        it is only called if that returns True: a :class:`Step` costs more than the records of a batch.
    on_interrupt : {"raise", "return"}, default="raise"
        Behaviour after Ctrl-C, SIGTERM or SIGHUP. These signals take effect after the current batch, when the
        checkpoint has been written; a second one takes effect at once, without a new checkpoint. ``"raise"`` raises
        KeyboardInterrupt, with the result so far as its attribute ``result``, so that a loop over streams ends, and a
        partial run is not mistaken for a complete one. ``"return"`` returns the result so far, with
        ``settings["interrupted"]`` True.

    Returns
    -------
    PrequentialResult

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, SIGTERM or SIGHUP, unless ``on_interrupt="return"``.
    ValueError
        If an option is invalid, or if one of selector and learner is for classification and the other for regression.
    CheckpointError
        If the checkpoint cannot be written, is being written by another process, or belongs to another run; the
        message names the difference.
    DataError, StreamError
        If a batch is invalid or the stream cannot be read. Every error after the start of the run (from the
        stream, a model, `on_step`) carries the result so far as its attribute ``result``.

    Notes
    -----
    A label that was unknown at the start (there is no ``stream.classes``) resets the learner with all labels seen,
    because scikit-learn's linear models cannot add classes. ``settings["learner_restarts"]`` counts these resets.

    How unselected features are removed depends on the learner. Naive Bayes and nearest neighbours learn every feature,
    and predict from the selected ones as if trained with these only. Learners that support missing values (trees,
    River's) get NaN in the others. All other learners, including linear models, get 0 there.
    :mod:`tamis.learners.traits` has the list.

    The array of masked rows is reused for the next batch: a learner that stores rows must copy them.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import FIRES, prequential
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 30))
    >>> result = prequential((X, X[:, 3] > X[:, 8]), FIRES(2))
    >>> result.selected()
    ['x3', 'x8']
    >>> result.summary()["accuracy"] > 0.9
    True

    A selector and a learner for regression predict a number; here with the default learner:

    >>> y = 2 * X[:, 3] - X[:, 8] + 20 + 0.3 * rng.normal(size=3000)
    >>> result = prequential((X, y), FIRES(2, model="gaussian"))
    >>> result.selected()
    ['x3', 'x8']
    >>> total = result.summary()
    >>> total["r2"] > 0.8, total["mae"] < 0.3 * total["mean_mae"]
    (True, True)
    """
    arguments = dict(locals())  # before any other name is bound
    options = RunOptions(**{name: arguments[name] for name in RunOptions.known()})
    check_choice("on_interrupt", on_interrupt, ("raise", "return"))
    source = as_stream(stream, label)
    if missing is not None:
        source = source.with_missing(missing)
    if checkpoint is not None and not source.is_resumable:
        raise ValueError(
            f"checkpoint={str(checkpoint)!r} cannot resume standard input, which can be read only once: save the rows"
            " to a file, or let the producer number them (follow_files(..., number=))."
        )
    source.forget_appended()
    return drive(make_run(source, selector, learner, options, task), on_step, on_interrupt)


def make_run(source: Any, selector: Any, learner: Any, options: RunOptions, task: str | None) -> Run:
    """Return a run that has not begun; its arguments are those of :func:`prequential`."""
    learner = _wrap_river(learner)
    if task is not None:
        check_choice("task", task, ("classification", "regression"))
        declare_task(task, selector, learner)
    kind = task_of(selector, learner) if task is None else find_task(task)
    if learner is None:
        learner = default_learner(numbers=kind is REGRESSION)
    if options.auc is True and kind is REGRESSION:
        raise ValueError(
            f"auc=True ranks rows of two classes, but {type(learner).__name__} predicts numbers."
        )
    if options.auc is True and not any(
        hasattr(learner, name) for name in ("decision_function", "predict_proba")
    ):
        raise ValueError(
            f"auc=True needs a learner with decision_function or predict_proba, got {type(learner).__name__}."
        )
    # The text of a file is coded for every selector; that of a frame or of dicts only for those that take categories.
    in_memory = isinstance(source, FrameStream | DictStream)
    declare_categories(source.categorical, source.feature_names, selector, learner, strict=in_memory)
    return Run(source, selector, learner, options, kind)


def drive(run: Any, on_step: Callable[[Any], object] | None, on_interrupt: str) -> Any:
    """Process the stream of a run, or of those of several targets, and return the result."""
    source, options = run.stream, run.options
    listener: Any = on_step
    is_due = getattr(on_step, "is_due", lambda: True)
    interrupt: BaseException | None = None
    with Checkpoint(options) as saved:
        if (state := saved.load(run.settings, run.user_classes())) is not None:
            reported = state.pop("listener", None)
            with saved.restoring():
                run.restore(state)
                if reported is not None and hasattr(listener, "restore"):
                    listener.restore(reported)

        def everything() -> dict[str, Any]:
            return run.state() | ({"listener": listener.state()} if hasattr(listener, "state") else {})

        def keep() -> None:
            is_chosen = options.batch_size == "auto"  # then the steps of a block are saved together
            done = run.n_seen // options.rows_per_block if is_chosen else run.n_steps
            saved.keep(done, run.settings, everything)

        asked = False

        def is_between_batches() -> bool:  # called when a signal arrives
            nonlocal asked
            asked = True
            return run.is_consistent

        try:
            # A column is absent from the rows before it, and from those after it if it vanishes.
            is_imputed = run.settings["stream"].get("missing") == "mean"
            source.on_idle = keep
            source.gains_columns = source.may_gain_columns and (run.takes_missing or is_imputed)
            with defer_interrupts(is_between_batches) as stop_if_asked:
                for X, y in run.batches():
                    (run.process_block if options.batch_size == "auto" else run.process_batch)(X, y)
                    if on_step is not None and run.n_steps and is_due():
                        with run.uninterrupted():
                            on_step(run.step())
                    if asked:
                        stop_if_asked()
                    if saved.path is not None:
                        keep()  # after the first batch too, to detect errors early
                stop_if_asked()  # a stream may end because its producer was interrupted too
        except (KeyboardInterrupt, SystemExit) as error:
            run.interrupted, interrupt = True, error
        except Exception as error:
            run.interrupted = True
            error.result = run.result()  # type: ignore[attr-defined]
            raise
        finally:
            for name in ("on_idle", "gains_columns"):
                vars(source).pop(name, None)
        if run.is_consistent and run.n_seen:  # otherwise the last checkpoint remains
            saved.write(run.settings, everything)
        result = run.result()
        if interrupt is not None and (on_interrupt == "raise" or isinstance(interrupt, SystemExit)):
            interrupt.result = result  # type: ignore[attr-defined]
            raise interrupt
        return result


def _wrap_river(learner: Any) -> Any:
    """Return a classifier of River with scikit-learn's methods; anything else unchanged."""
    if hasattr(learner, "partial_fit") or not hasattr(learner, "learn_one"):
        return learner
    from tamis.adapters.river import RiverClassifier

    return RiverClassifier(learner)
