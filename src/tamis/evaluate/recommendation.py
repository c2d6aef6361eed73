"""Recommendation of a selector and a number of features, from a comparison on the first rows of a stream.

The comparison is that of :class:`tamis.rows.Auto`, with more sizes and with random subsets: every selector at every
size has a separate learner, and the evaluation is prequential (test-then-train). The recommendation is the smallest set
within one standard error of the most accurate arm (the one-standard-error rule of Breiman et al. 1984). The standard
error is that of the paired difference to the best over the blocks of rows.
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._validation import check_number
from tamis.base.html_repr import html_repr
from tamis.catalog import find, find_learner
from tamis.errors import DataError, UnknownNameError
from tamis.evaluate.prequential.frozen import lasso_order
from tamis.evaluate.prequential.loop import prequential
from tamis.options import RunOptions, learner_kind, model_parameters
from tamis.rows.auto.auto import Auto
from tamis.streams.any_source import as_stream
from tamis.summaries.label_series import LabelSeries

__all__ = ["Contestant", "Recommendation", "recommend"]

_N_SIZES = 8
_LEARNERS = ("logistic", "naive-bayes", "adaptive-random-forest")  # compared by default
_BLOCK = 100  # rows
_ROWS = 5000  # to read by default
_RARE_ROWS = 200  # rows of the rarer class to wait for by default
_WORD_FOR = {"accuracy": "accuracy", "auc": "AUC"}
# Names on the command line that differ from the arm's name.
_WORDS = {"fisher-recent": "fisher --set half_life=200"}


class _Contest(Auto):
    """The comparison of `Auto` with more sizes and with random subsets; no arm is selected."""

    def __init__(self, learner: str = "linear", n_draws: int = 3, categorical: Any = None) -> None:
        super().__init__(None, learner=learner, categorical=categorical)
        self.n_draws = n_draws
        self.frozen: tuple[int, ...] = ()  # columns in the order of the frozen selection
        self.frozen_at = 0  # the rows after it was used

    def freeze(self, order: Any) -> None:
        """Use this ranking of the features for the frozen selection, from the block after the next one."""
        self.frozen, self.frozen_at = tuple(order.tolist()), self.n_seen_ + _BLOCK

    def _all_sizes(self, n_features: int) -> list[int]:
        largest = max(1, n_features // 2)
        sizes = np.unique(np.rint(np.geomspace(1, largest, _N_SIZES)).astype(int))
        return [int(size) for size in sizes]

    def _names_of_rankers(self, n_features: int) -> list[str]:
        draws = (f"random-{draw}" for draw in range(self.n_draws))
        return [*super()._names_of_rankers(n_features), "frozen", *draws]

    def _scores_without_selector(self, name: str) -> Any:
        if name == "frozen":
            if not self.frozen:
                return super()._scores_without_selector("fisher")
            return -np.argsort(np.array(self.frozen)).astype(np.float64)
        if not name.startswith("random-"):
            return super()._scores_without_selector(name)
        order = np.random.default_rng([int(name.removeprefix("random-")), self.n_features_in_])
        return order.permutation(self.n_features_in_).astype(np.float64)

    def contestants(self, learner: str) -> list[Contestant]:
        """Return the results of the arms that can be named on the command line."""
        course = self.race_
        tested = (course["n_seen"] > self._counted_from) & (course["n_tested"] > 0)
        course = {name: values[tested] for name, values in course.items()}
        rows, contestants = course["n_tested"], list[Contestant]()
        if not rows.any():
            raise DataError(
                "No rows arrived after those that began the comparison, as they were of one class for too long: give"
                " more rows, or shuffle them."
            )
        # The frozen selection is compared on the rows after it was made.
        since = rows * (course["n_seen"] > self.frozen_at) * bool(self.frozen)
        for arm, size, errors in zip(self.arms_, self._size, course["errors"].T, strict=True):
            name, is_frozen = arm.split(" ")[0], arm.startswith("frozen")
            if (
                name == "trees"
                or arm.endswith("knee")
                or arm.startswith("joint ")
                or (is_frozen and not since.any())
            ):
                continue
            accuracy = float(1.0 - rows @ errors / rows.sum())
            contestants.append(
                Contestant(learner, name, int(size), accuracy, errors, since if is_frozen else rows)
            )
        return contestants


@dataclass(frozen=True)
class Contestant:
    """A candidate of the comparison, and its performance.

    Attributes
    ----------
    learner, selector : str
        Names on the command line; "all" keeps all features, "random-0" is a random subset, "frozen" the highest-ranked
        features of an L1-regularised model of the first 1,000 rows.
    size : int
        Number of selected features; for "joint", at the end.
    accuracy : float
        Prequential accuracy over the complete blocks of 100 rows. If one of two classes has less than a tenth of the
        rows, the mean AUC over the blocks.
    errors, rows : ndarray of shape (n_blocks,)
        Error rate and number of rows of each block; 0 rows before the selection was frozen. For the AUC, the number of
        rows of the rarer class.
    """

    learner: str
    selector: str
    size: int
    accuracy: float
    errors: Any = field(repr=False)
    rows: Any = field(repr=False)

    def behind(self, best: Contestant) -> tuple[float, float]:
        """Return the loss in accuracy to another contestant, and its standard error."""
        gap, share = self.errors - best.errors, self.rows / self.rows.sum()
        mean = float(share @ gap)
        return mean, math.sqrt(float(share**2 @ (gap - mean) ** 2))


@dataclass(repr=False)
class Recommendation:
    """The recommendation of :func:`recommend`, and the comparison that supports it.

    Attributes
    ----------
    chosen, best : Contestant
        The recommended contestant, and the most accurate one.
    contestants : list of Contestant
        All contestants, of every learner.
    n_rows, n_features : int
    majority : float
        Accuracy of the majority-class baseline.
    reason : str
        The reason, in one or two sentences.
    measure : {"accuracy", "auc"}
        The criterion of the comparison.
    ranking : dict of str to float
        If that is the AUC and the stream can be read again: "average_precision", "auc", "frozen_auc" and
        "recall_at_precision" of a run of the recommendation on the same rows.
    threshold : str
        The decision threshold of that run and its performance, as in :meth:`PrequentialResult.threshold_note`.
    """

    chosen: Contestant
    best: Contestant
    contestants: list[Contestant]
    n_rows: int
    n_features: int
    majority: float
    reason: str
    measure: str = "accuracy"
    ranking: dict[str, float] = field(default_factory=dict)
    threshold: str = ""

    def __repr__(self) -> str:
        return f"Recommendation({self.arguments()!r}, {self.word} {self.chosen.accuracy:.3f})"

    @property
    def word(self) -> str:
        """The criterion of the comparison, for use in a sentence."""
        return _WORD_FOR[self.measure]

    def ranking_note(self) -> str:
        """Return average precision, AUC and recall of a run, and its decision threshold; empty if no class is rare."""
        if not self.ranking:
            return ""
        frozen = self.ranking["frozen_auc"]
        beside = f" (frozen selection {frozen:.3f})" if math.isfinite(frozen) else ""
        return (
            f"A run with these options on these rows: average precision {self.ranking['average_precision']:.3f}"
            f" ({1.0 - self.majority:.3f} at random), AUC {self.ranking['auc']:.3f}{beside}, recall"
            f" {self.ranking['recall_at_precision']:.3f} at a precision of 0.9. {self.threshold}"
        ).strip()

    def _repr_html_(self) -> str:
        curves = {
            name: [" ".join(f"{size:,}: {accuracy:.3f}" for size, accuracy in curve)]
            for name, curve in self.curve().items()
        }
        facts = [note for note in (f"{self.arguments()}: {self.reason}", self.ranking_note()) if note]
        return html_repr("Recommendation", facts, curves, ("selector", f"{self.word} by columns kept"))

    def arguments(self) -> str:
        """Return the recommended options of ``tamis run``.

        Examples
        --------
        See :func:`recommend`.
        """
        chosen = self.chosen
        if chosen.selector == "all":
            selector = "none"
        else:
            selector = _WORDS.get(chosen.selector, chosen.selector)
            selector += "" if chosen.selector == "joint" else f" --select {chosen.size}"
        return f"--selector {selector} --learner {chosen.learner}"

    def curve(self, learner: str | None = None) -> dict[str, list[tuple[int, float]]]:
        """Return accuracy (or the AUC) by size for each selector; "random" is the mean of its draws.

        Parameters
        ----------
        learner : str, optional
            By default the recommended one.
        """
        mapping: dict[str, dict[int, list[float]]] = {}
        for one in self.contestants:
            if one.learner == (learner or self.chosen.learner):
                name = "random" if one.selector.startswith("random-") else one.selector
                mapping.setdefault(name, {}).setdefault(one.size, []).append(one.accuracy)
        return {name: [(k, float(np.mean(v))) for k, v in sorted(by.items())] for name, by in mapping.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return everything in plain values."""
        return {
            "n_rows": self.n_rows, "n_features": self.n_features, "majority": self.majority, "measure": self.measure,
            "arguments": self.arguments(), "reason": self.reason,
            "ranking": self.ranking, "threshold": self.threshold,
            "chosen": _plain(self.chosen), "best": _plain(self.best),
            "curves": {name: self.curve(name) for name in dict.fromkeys(one.learner for one in self.contestants)},
        }  # fmt: skip

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        title: str = "Which selector?",
        *,
        repeat: Mapping[str, str] | None = None,
        command: str = "tamis run FILE --label NAME",
    ) -> Path | str:
        """Write a page with the curves: one HTML file that opens offline; `repeat` has lines that reproduce it.

        Without a path the HTML is returned, which a notebook displays. `command` is `tamis run` with the options of the
        stream.
        """
        from tamis.report.recommendation import write_report

        return write_report(self, path, title, repeat, command)


def recommend(
    stream: Any,
    *,
    label: str | int | tuple[Any, ...] | None = None,
    learner: str | None = None,
    max_rows: int | None = None,
    n_draws: int = 3,
    on_progress: Callable[[float], None] | None = None,
) -> Recommendation:
    """Compare selectors and sizes on the first rows of a stream, with random subsets and all features as baselines.

    Parameters
    ----------
    stream : Stream, (X, y), frame or iterable
        As for :func:`tamis.prequential`.
    label : str, int or tuple, optional
        The label column, for a frame or an iterable of dicts, as for :func:`tamis.prequential`.
    learner : str, optional
        The classifier that is used later, by a name of `tamis list`: "logistic", "naive-bayes", "lightgbm" or another.
        The most similar learner of the comparison represents it: a logistic regression, naive Bayes, or a small forest
        refitted on the last rows. By default "logistic", "naive-bayes" and "adaptive-random-forest" are compared, and
        one is recommended. Sparse rows require a linear learner.
    max_rows : int, optional
        Maximum number of rows to use, at least 100. By default 5000, or for a rare class as many as contain 200 rows of
        it.
    n_draws : int, default=3
        Number of random subsets of each size.
    on_progress : callable, optional
        Called with the fraction of the rows read so far.

    Returns
    -------
    Recommendation

    Raises
    ------
    DataError
        If there are fewer than 100 rows, or only one class.
    ValueError
        If an argument is invalid, or no classifier has that name.

    Examples
    --------
    Ten copies of one signal, a second signal, and 29 noise features: two features suffice.

    >>> rng = np.random.default_rng(0)
    >>> signals = rng.normal(size=(3000, 2))
    >>> X = np.hstack([signals[:, [0] * 10 + [1]] + 0.1 * rng.normal(size=(3000, 11)), rng.normal(size=(3000, 29))])
    >>> result = recommend((X, signals.sum(axis=1) > 0), learner="naive-bayes")
    >>> result.arguments()
    '--selector forward --select 2 --learner naive-bayes'
    """
    learner = _classifier(learner)
    if max_rows is not None:
        check_number("max_rows", max_rows, low=100, integer=True)
    check_number("n_draws", n_draws, low=1, integer=True)
    source = as_stream(stream, label)
    categorical = list(getattr(source, "categorical", ())) or None
    contests: dict[str, _Contest] = {}
    n_rows, n_of, show = 0, Counter[Any](), on_progress or (lambda share: None)
    first, frozen_after, labels = list[tuple[Any, Any]](), RunOptions.frozen_after, list[Any]()
    for X, y in source.batches(_BLOCK):
        X, y = X[: (max_rows or sys.maxsize) - n_rows], y[: (max_rows or sys.maxsize) - n_rows]
        if not contests:
            contests = _contests(learner, X, n_draws, categorical)
        for contest in contests.values():
            contest.partial_fit(X, y)
        n_rows += len(y)
        n_of.update(np.asarray(y).tolist())
        labels.append(np.asarray(y))
        if n_rows <= frozen_after:
            first.append((X, y))
        if n_rows == frozen_after and len(n_of) > 1:
            _freeze(contests, first, categorical or ())
        show(min(n_rows / (max_rows or _ROWS), 1.0))
        waits = max_rows is None and len(n_of) == 2 and min(n_of.values()) < _RARE_ROWS
        if n_rows >= (max_rows or _ROWS) and not waits:
            break
    if n_rows < 100:
        raise DataError(f"The stream has {n_rows} rows: a recommendation needs at least 100.")
    if next(iter(contests.values())).warming_up_:
        raise DataError(f"The first {n_rows} rows are of one class: give more rows, or shuffle them.")
    items = [one for name, contest in contests.items() for one in contest.contestants(name)]
    one = next(iter(contests.values()))
    advice = _judge(items, n_rows, one.n_features_in_, max(n_of.values()) / n_rows, one.measure_)
    advice.reason += _dependence_note(np.concatenate(labels), advice)
    if advice.measure == "auc" and source.is_resumable:  # otherwise its rows can be read only once
        return _with_ranking(advice, source, categorical)
    return advice


def _judge(
    contestants: list[Contestant], n_rows: int, n_features: int, majority: float, measure: str = "accuracy"
) -> Recommendation:
    """Return the fewest columns within one standard error of the best arm of the best learner."""
    serious = [one for one in contestants if not one.selector.startswith(("random-", "frozen"))]
    best = max(serious, key=lambda one: one.accuracy)
    near = [one for one in serious if one.learner == best.learner and _within(one, best)]
    chosen = min(near, key=lambda one: (one.size, -one.accuracy))
    word = _WORD_FOR[measure]
    at_best = "" if chosen is best else f", {best.accuracy:.3f} ({best.selector}, {best.size:,}),"
    reason = (
        f"The smallest subset within one standard error of the best {word}{at_best} has {chosen.size:,} of"
    )
    reason += f" {n_features:,} columns."
    if chosen.selector == "all":
        reason = "All features: no selection is within one standard error of their accuracy."
    else:
        beside = [one for one in contestants if (one.learner, one.size) == (chosen.learner, chosen.size)]
        if any(one.selector == "frozen" and _within(one, chosen) for one in beside):
            reason += (
                f" A selection of that size frozen after {RunOptions.frozen_after:,} rows (L1) is as accurate:"
                " online selection has no advantage on these rows."
            )
        draws = [one for one in beside if one.selector.startswith("random-")]
        # The best of many sets may beat a random one by chance alone.
        by_chance = NormalDist().inv_cdf(1.0 - 0.05 / len(serious))
        if draws and _within(_mean_of(draws), chosen, by_chance):
            reason += " But random subsets of that size are as accurate: the selection has no advantage."
    if measure == "auc":
        n_rare = round((1.0 - majority) * n_rows)
        reason += f" AUC is compared: the rarer class has {n_rare:,} of {n_rows:,} rows, so accuracy is uninformative."
    elif best.accuracy <= majority + math.sqrt(majority * (1.0 - majority) / n_rows):
        reason += (
            f" The majority-class baseline is as accurate, {majority:.3f}, so accuracy cannot rank"
            " selections here: compare the AUC and the average precision of several with tamis run."
        )
    return Recommendation(chosen, best, contestants, n_rows, n_features, majority, reason, measure)


def _dependence_note(labels: Any, advice: Recommendation) -> str:
    """Return a note on autocorrelated rows and on the no-change baseline if it is as accurate; else an empty text."""
    codes = np.unique(labels, return_inverse=True)[1].ravel()
    series = LabelSeries(int(codes.max()) + 1)
    series.update(codes)
    if not series.dependent:
        return ""
    n, repeated = len(codes), float(np.mean(codes[1:] == codes[:-1]))
    note = f" Rows are autocorrelated: {n:,} rows count as {n / series.correlation_length():,.0f}."
    if advice.measure == "accuracy" and repeated >= advice.best.accuracy:
        note += (
            f" The no-change baseline, which repeats the previous label, reaches {repeated:.3f}: if that label is known"
            " in time, add it as a column."
        )
    return note


def _mean_of(draws: list[Contestant]) -> Contestant:
    """Return the mean over the random subsets of one size."""
    errors, first = np.mean([one.errors for one in draws], axis=0), draws[0]
    return replace(first, errors=errors, accuracy=float(1.0 - first.rows @ errors / first.rows.sum()))


def _with_ranking(advice: Recommendation, source: Any, categorical: Any) -> Recommendation:
    """Return the recommendation with the results of a run with its options on the same rows."""
    chosen, columns = advice.chosen, categorical or ()
    selector: Any = None
    if chosen.selector != "all":
        entry = find(chosen.selector.removesuffix("-recent"), "rows")
        selector = entry.load()(
            **model_parameters(entry, seed=0, categorical=columns, n_features_to_select=chosen.size)
        )
        if chosen.selector.endswith("-recent"):
            selector.set_params(half_life=200)
    learner = find_learner(chosen.learner)
    model = learner.load()(**model_parameters(learner, seed=0, categorical=columns))
    run = prequential(source, selector, model, max_rows=advice.n_rows, n_draws=1)
    total = run.summary()
    names = ("average_precision", "auc", "frozen_auc", "recall_at_precision")
    if not math.isfinite(total["average_precision"]):  # the learner has no scores
        return advice
    return replace(advice, ranking={name: total[name] for name in names}, threshold=run.threshold_note())


def _within(one: Contestant, best: Contestant, errors: float = 1.0) -> bool:
    """Return whether the loss of one to the other is at most this many standard errors."""
    gap, error = one.behind(best)
    return gap <= errors * error


def _contests(learner: str | None, X: Any, n_draws: int, categorical: Any) -> dict[str, _Contest]:
    """Return a comparison for each learner, by its name."""
    names = [learner] if learner else list(_LEARNERS)
    names = ["logistic"] if sp.issparse(X) else names
    return {name: _Contest(learner_kind(find_learner(name)), n_draws, categorical) for name in names}


def _freeze(contests: dict[str, _Contest], first: list[tuple[Any, Any]], categorical: Sequence[int]) -> None:
    """Select features once, from the first rows."""
    stack = sp.vstack if sp.issparse(first[0][0]) else np.vstack
    X, y = stack([X for X, _ in first]), np.concatenate([y for _, y in first])
    order = lasso_order(X, y, categorical=categorical)
    for contest in contests.values():
        contest.freeze(order)


def _classifier(name: str | None) -> str | None:
    """Return the key of a classifier of the catalogue."""
    if name is None:
        return None
    try:
        entry = find_learner(name)
    except UnknownNameError as error:
        raise ValueError(str(error)) from None
    if "regression" in entry.targets:
        raise ValueError(f"learner must be a classifier, got {name!r}, which predicts numbers.")
    return entry.key


def _plain(one: Contestant) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("learner", "selector", "size", "accuracy")}
