"""Candidates of a comparison on the first rows of a stream: pairs of a selector and a learner, run prequentially.

If no learner is named, a few are compared in this way, with all features, and the most accurate one is chosen. A run
ends once it has more errors than a complete one, and boosting has 63 bins, since it takes most of the time. If one of
two classes is rare, it is the one with the largest average precision, since the majority-class baseline is nearly
always correct there. If features are categorical or have missing values, the naive Bayes that accepts them replaces the
Gaussian one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._validation import Floats, Ints, check_number
from tamis.catalog import find, find_learner
from tamis.errors import DataError
from tamis.evaluate.prequential import PrequentialResult, Step, prequential
from tamis.evaluate.prequential.remarks import RARE
from tamis.learners.refit.fit import new_recipe
from tamis.options import RunOptions, model_parameters
from tamis.streams import ArrayStream, as_stream
from tamis.streams.leaks import leak_of, leak_text, orders, runs_of_labels
from tamis.summaries.paired_losses import PairedLosses

# Compared if none is named; the last one is refitted on the last rows.
_BOOSTING = "hist-boosting" if find_spec("lightgbm") is None else "lightgbm"
REGRESSORS = ("sgd-regressor", "least-squares", f"{_BOOSTING}-regressor")
LEARNERS = ("logistic", "perceptron", "naive-bayes", "adaptive-random-forest", _BOOSTING)
# Replacements if features are categorical, whose codes would be treated as numbers, or have missing values.
_TOLERANT = {"naive-bayes": "nb"}
_RARE_ROWS = 200  # rows of the rarer class to wait for
_MOST_ROWS = 50_000  # read in waiting for them
_LEAK_ROWS = 5000
_BINS = {"lightgbm": {"max_bin": 63}, "hist-boosting": {"max_bins": 63}}


@dataclass(frozen=True)
class Candidate:
    """A selector and a learner, and their run on the rows of a comparison.

    Attributes
    ----------
    learner, selector : str
        Keys of the catalogue; "none" keeps all features, and "few" those that the learner itself selects.
    assigned : dict of str to object
        Parameters of the selector that differ from those of a run, in the words of `tamis run`.
    size : int
        Number of selected features, at the end of the run.
    score : float
        The criterion of the comparison: what the run reports.
    losses, rows : ndarray of shape (n_blocks,)
        Loss and number of rows of each block of the run.
    run : PrequentialResult
    model : selector or None
        As it was fitted by the run.
    """

    learner: str
    selector: str
    assigned: dict[str, Any]
    size: int
    score: float
    losses: Floats = field(repr=False)
    rows: Ints = field(repr=False)
    run: PrequentialResult = field(repr=False)
    model: Any = field(repr=False)

    @property
    def loss(self) -> float:
        """The error of numbers, else 1 - score."""
        return self.score if "regression" in find_learner(self.learner).targets else 1.0 - self.score

    def words(self) -> str:
        """Return the options of `tamis run`."""
        words = ["--features", "few"] if self.selector == "few" else ["--selector", self.selector]
        for name, value in self.assigned.items():
            is_size = name == "n_features_to_select"
            words += ["--select", str(value)] if is_size else ["--set", f"{name}={value}"]
        return " ".join([*words, "--learner", self.learner])


def paired(candidates: Sequence[Candidate]) -> PairedLosses:
    """Return the losses of candidates on the same blocks; weights are numbers of rows, relative to their mean."""
    rows = candidates[0].rows
    losses = np.stack([one.losses for one in candidates], axis=1)
    return PairedLosses(len(candidates)).with_rows(losses, rows / max(rows.mean(), 1.0))


class _BeatenError(Exception):
    """A candidate has more errors than another one on all rows."""

    result: PrequentialResult


class FirstRows:
    """The first rows of a stream, on which candidates are run.

    Parameters
    ----------
    source : Stream
    n_rows : int
        Rows to read; of a rare class, as many more as contain 200 rows of it, at most 50,000.
    max_rows : int, optional
        Rows to read, also of a rare class.
    numbers : bool, default=False
        Whether the target is numeric.

    Attributes
    ----------
    n_rows, n_features : int
    y : ndarray of shape (n_rows,)
    labels, counts : ndarray of shape (n_classes,)
    is_rare : bool
        Whether one of two classes has less than a tenth of the rows.
    learners : list of str
        The learners that are compared if none is named, without those that do not accept the rows.
    """

    def __init__(
        self, source: Any, n_rows: int, max_rows: int | None = None, *, numbers: bool = False
    ) -> None:
        self.is_regression = numbers
        X_parts, y_parts, counts, n, missing = list[Any](), list[Any](), Counter[Any](), 0, False
        for X, y in source.batches(100):
            # The rows of some streams can be read only once.
            if not source.is_resumable:
                X_parts.append(X.copy())
            is_sparse, self.n_features = sp.issparse(X), X.shape[1]
            missing |= not is_sparse and bool(np.isnan(X).any())
            y_parts.append(np.array(y))
            n += len(y)
            counts.update(y_parts[-1].tolist())
            rarest = min(counts.values())
            waits = (
                max_rows is None
                and not numbers
                and len(counts) <= 2
                and rarest < _RARE_ROWS
                and n < _MOST_ROWS
            )
            if n >= (max_rows or n_rows) and not (waits and (len(counts) == 1 or rarest < RARE * n)):
                break
        self.y = np.concatenate(y_parts)[:max_rows] if y_parts else np.empty(0)
        self.n_rows = len(self.y)
        self.labels, self.counts = np.unique(self.y, return_counts=True)
        self.is_rare = not numbers and len(self.labels) == 2 and bool(self.counts.min() < RARE * self.n_rows)
        self._categorical = [int(j) for j in source.categorical]
        # Values that arrive later than these rows would leave no row to compare on.
        waiting = {name: min(rows, self.n_rows // 4) for name, rows in source.delayed_features.items()}
        if X_parts:
            X = (sp.vstack if is_sparse else np.concatenate)(X_parts)[:max_rows]
            known = None if numbers else self.labels
            source = ArrayStream(X, self.y, source.feature_names, classes=known)
        self._stream = source.with_delayed_features(waiting)
        self._stream.categorical = self._categorical
        replaces = bool(self._categorical) or missing or any(waiting.values())
        usual = REGRESSORS if numbers else LEARNERS
        names = [_TOLERANT.get(name, name) if replaces else name for name in usual]
        self.learners = [name for name in names if not (n and is_sparse) or find_learner(name).sparse]

    def leaks(self) -> list[str]:
        """Return a question about each of the first columns that reveals the label by itself."""
        X, y = self._stream.take(min(self.n_rows, _LEAK_ROWS))
        codes = np.unique(y, return_inverse=True)[1].ravel()
        if sp.issparse(X) or (not self.is_regression and runs_of_labels(codes)):
            return []
        names = self._stream.feature_names or [f"x{j}" for j in range(X.shape[1])]
        shares = [orders(x, y) if self.is_regression else leak_of(x, codes) for x in X.T[:1000]]
        return [leak_text(name, share) for name, share in zip(names, shares, strict=False) if share]

    def run(
        self,
        learner: str,
        selector: str = "none",
        *,
        measure: str = "accuracy",
        seed: int = 0,
        on_progress: Callable[[float], None] = lambda share: None,
        options: Mapping[str, Any] = MappingProxyType({"baselines": "none"}),
        most_errors: float | None = None,
        **assigned: Any,
    ) -> Candidate:
        """Run a candidate as `tamis run` does, and return it with its results.

        Parameters
        ----------
        learner, selector : str
            Keys of the catalogue, "none", or "few" for a learner that selects.
        measure : str
            A key of the summary of the run.
        seed : int, default=0
        on_progress : callable, optional
            Called with the fraction of the rows read so far.
        options : mapping, optional
            Options of the run that differ from the defaults; by default without baselines.
        most_errors : float, optional
            Number of errors after which a run that chooses a learner ends; boosting then has fewer bins.
        **assigned : object
            Parameters of the selector.
        """
        entry, model = find_learner(learner), None
        predictor = entry.load()(**model_parameters(entry, seed=seed, categorical=self._categorical))
        if most_errors is not None and learner in _BINS:
            predictor.set_params(estimator=new_recipe(learner, seed).set_params(**_BINS[learner]))
        errors = 0.0

        def report(step: Step) -> None:
            nonlocal errors
            on_progress(step.n_seen / self.n_rows)
            errors += (1.0 - step.accuracy) * step.n_rows if most_errors is not None else 0.0
            if most_errors is not None and errors > most_errors + 0.5:
                raise _BeatenError

        if selector == "few":
            predictor.set_params(features="few")
        elif selector != "none":
            method = find(selector, "rows")
            usual = model_parameters(
                method,
                seed=seed,
                categorical=self._categorical,
                learner=entry,
                is_regression=self.is_regression,
            )
            model = method.load()(**usual | assigned)
        try:
            run = prequential(self._stream, model, predictor, max_rows=self.n_rows, on_step=report, **options)
        except _BeatenError as error:
            run = error.result
        steps, score = run.frames["steps"], run.summary()[measure]
        losses, rows = steps["mae"] if self.is_regression else 1.0 - steps["accuracy"], steps["n_rows"]
        if measure not in ("accuracy", "mae"):  # of windows that do not overlap
            at = np.arange(len(rows) - 1, -1, -max(1, RunOptions.window // 100))[::-1]
            losses = 1.0 - steps[f"{measure}_windowed"][at]
            rows = np.diff(np.cumsum(rows)[at], prepend=0) * np.isfinite(losses)
            losses = np.nan_to_num(losses)
        size = int(steps["n_selected"][-1]) if selector != "none" else self.n_features
        return Candidate(learner, selector, assigned, size, float(score), losses, rows, run, model)


# -- choice of a learner -----------------------------------------------------------------------------------


_ROWS = 2000


@dataclass(frozen=True)
class LearnerChoice:
    """The learner chosen on the first rows, and the scores of all compared learners.

    Attributes
    ----------
    name : str
        Key of the catalogue.
    scores : dict of str to float
        Accuracy or average precision of each learner; of one that could no longer be the most accurate, on the rows
        until then.
    measure : {"accuracy", "average precision"}
    n_rows : int
        Number of rows read.
    majority, no_change : float
        Accuracy of the majority-class and of the no-change baseline; with average precision, the share of the rare
        class, and NaN.
    """

    name: str
    scores: dict[str, float]
    measure: str
    n_rows: int
    majority: float
    no_change: float

    def sentence(self) -> str:
        """Return the choice and its reason, as one sentence."""
        others = ", ".join(f"{name} {score:.3f}" for name, score in self.scores.items() if name != self.name)
        beside = f"majority {self.majority:.3f}, no-change {self.no_change:.3f}"
        if self.measure != "accuracy":
            beside = f"the rare class has {self.majority:.2%} of the rows"
        return (
            f"Learner: {self.name}, {self.measure} {self.scores[self.name]:.3f} on the first {self.n_rows:,} rows"
            f" ({others}; {beside})."
        )


def choose_learner(stream: Any, *, max_rows: int | None = None, random_state: int = 0) -> LearnerChoice:
    """Choose a learner for a stream: a linear one, naive Bayes, an adaptive forest or refitted boosting.

    Parameters
    ----------
    stream : Stream or (X, y)
        As for :func:`tamis.prequential`; its first rows are read.
    max_rows : int, optional
        Maximum number of rows to use, at least 200. By default 2000, or for a rare class as many as contain 200 rows of
        it, at most 50,000.
    random_state : int, default=0
        Seed of the learners.

    Returns
    -------
    LearnerChoice

    Raises
    ------
    DataError
        If there are fewer than 200 rows, or only one class.

    Examples
    --------
    The label is whether two features have the same sign, which a linear model cannot represent:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 4))
    >>> choice = choose_learner((X, X[:, 0] * X[:, 1] > 0))
    >>> choice.scores["logistic"] < 0.6 < choice.scores["adaptive-random-forest"] <= choice.scores[choice.name]
    True
    """
    if max_rows is not None:
        check_number("max_rows", max_rows, low=200, integer=True)
    first = FirstRows(as_stream(stream), _ROWS, max_rows)
    if first.n_rows < 200 or len(first.labels) < 2:
        n = first.n_rows
        reason = f"has {n} rows" if n < 200 else f"has one class in its first {n:,} rows"
        raise DataError(f"The stream {reason}, too few to choose a learner: name one.")
    measure = "average_precision" if first.is_rare else "accuracy"
    options = {"baselines": "none", "auc": first.is_rare}
    runs, least = list[Candidate](), math.inf
    for name in first.learners:
        limit = math.inf if first.is_rare else least
        one = first.run(name, measure=measure, seed=random_state, options=options, most_errors=limit)
        runs.append(one)
        least = min(least, float(one.losses @ one.rows))
    best = max(runs, key=lambda one: one.score)
    total = best.run.summary()
    share = float(first.counts.min() / first.n_rows) if first.is_rare else float(total["majority_accuracy"])
    no_change = float("nan") if first.is_rare else float(total["no_change_accuracy"])
    scores = {one.learner: one.score for one in runs}
    return LearnerChoice(best.learner, scores, measure.replace("_", " "), first.n_rows, share, no_change)
