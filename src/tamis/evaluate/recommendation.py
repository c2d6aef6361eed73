"""Recommendation of a selector, a number of features and a learner, from runs on the first rows of a stream.

For each learner three candidates are run as ``tamis run`` runs them: all features, :class:`tamis.rows.Auto`, and the
smallest fixed selection that is as good as the best one in the comparison of `Auto`, or for LightGBM the features that
it selects itself. The learner is the best one with all features, as in a run without options, unless a candidate of
another is ahead by more than half of the 95 % interval of the difference. The recommendation is the smallest set of
this learner that is behind its best candidate by at most .01, including one standard error: a stricter form of the
one-standard-error rule of Breiman et al. (1984), by which few rows would allow a large loss. Standard error and
interval are those of the paired difference over the blocks of rows. All figures are those of these runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tamis._validation import check_choice, check_number
from tamis.base.per_target import of_target
from tamis.catalog import find_learner
from tamis.errors import DataError, UnknownNameError
from tamis.evaluate.candidates import Candidate, FirstRows, paired
from tamis.evaluate.prequential.remarks import paired_gain
from tamis.evaluate.prequential.targets import TargetsResult, streams_of_targets
from tamis.options import RunOptions
from tamis.report.charts.chart import Axis, Chart, Line, VerticalLines, axis, limits, trend
from tamis.report.content import Cell, Code, Remark, Reproduction, Score, Section, Table
from tamis.report.result import Result
from tamis.report.text import NAME_OF, count, fraction, plural, scientific
from tamis.streams.leaks import runs_of_labels
from tamis.streams.named_streams import as_stream
from tamis.summaries.label_series import LabelSeries
from tamis.summaries.paired_losses import Gaps, PairedLosses

_ROWS = 5000  # to read by default
# By which the smallest set may be behind the best, including one standard error; of the mean absolute deviation for
# numbers. With the one-standard-error rule alone, few rows allow a large loss: 3 of 68 columns on attrition.
_TOLERANCE = 0.01
_STYLES = {"forward": 1, "fires": 2, "fisher": 3, "fisher-recent": 4, "joint": 5}
_WORD_FOR = {"accuracy": "accuracy", "auc": "AUC", "mae": "mean absolute error"}
# The selectors of the comparison of `Auto` that can be named on the command line, and their parameters.
_SELECTORS: dict[str, tuple[str, dict[str, Any]]] = {
    "forward": ("forward", {}), "fires": ("fires", {}), "joint": ("joint", {}), "fisher": ("fisher", {}),
    "fisher-recent": ("fisher", {"half_life": 200}),
}  # fmt: skip


@dataclass(repr=False)
class Recommendation(Result):
    """The recommendation of :func:`recommend`, and the runs that support it.

    Attributes
    ----------
    chosen, best : Candidate
        The recommended candidate, and the one with the highest score.
    candidates : list of Candidate
        All candidates, of every learner.
    figures : dict of str to float
        What the run of the recommendation reports on the same rows.
    curves : dict of str to dict of str to list of (int, float)
        For each learner, mean score by size of each selector in the comparison of `Auto`, whose learner is a linear
        model, naive Bayes or a small forest.
    n_rows, n_features : int
    reason : str
        The reason, in a few sentences.
    measure : {"accuracy", "auc", "mae"}
        The criterion of the comparison.
    run_verdict : str
        The verdict of that run.
    run_remarks : list of str
        The remarks of that run: baselines that it does not exceed.
    threshold : str
        The decision threshold of that run and its performance, as in :meth:`PrequentialResult.threshold_note`.
    n_draws : int
    command : str
        `tamis run` with the options of the stream; those of the recommendation are appended.
    python : str
        The run of the recommendation in Python, on the same rows.
    scale : float
        Unit of the losses: the mean absolute deviation of a numeric target, else 1.
    """

    chosen: Candidate
    best: Candidate
    candidates: list[Candidate]
    figures: dict[str, float]
    curves: dict[str, dict[str, list[tuple[int, float]]]]
    n_rows: int
    n_features: int
    reason: str
    measure: str = "accuracy"
    run_verdict: str = ""
    run_remarks: list[str] = field(default_factory=list)
    threshold: str = ""
    n_draws: int = RunOptions.n_draws
    command: str = "tamis run FILE --label NAME"
    python: str = ""
    scale: float = 1.0

    def __repr__(self) -> str:
        return f"Recommendation({self.arguments()!r}, {self.word} {self._written(self.chosen.score)})"

    def _written(self, score: float) -> str:
        return scientific(score) if self.measure == "mae" else fraction(score)

    @property
    def all_score(self) -> float:
        """The score of all features with the recommended learner."""
        beside = self.figures.get(f"all_{self.measure}", math.nan)
        return self.chosen.score if math.isnan(beside) else beside

    @property
    def word(self) -> str:
        """The criterion of the comparison, for use in a sentence."""
        return _WORD_FOR[self.measure]

    def figures_note(self) -> str:
        """Return what a run with these options reports on these rows, beside its baselines."""
        names = {
            "all": "all columns", "frozen": "frozen selection", "random": "random subsets",
            "majority": "majority class", "no_change": "no-change", "mean": "mean target", "last": "last target",
        }  # fmt: skip
        scores = {name: self.figures.get(f"{name}_{self.measure}", math.nan) for name in names}
        beside = ", ".join(
            f"{names[name]} {self._written(score)}" for name, score in scores.items() if math.isfinite(score)
        )
        note = (
            f"With --max-rows {self.n_rows} the command has {self.word} {self._written(self.chosen.score)}"
            f"{f' ({beside})' if beside else ''}."
        )
        if self.measure == "auc":
            note += (
                f" Average precision {self.figures['average_precision']:.3f}"
                f" ({1.0 - self.figures['majority_accuracy']:.3f} at random), recall"
                f" {self.figures['recall_at_precision']:.3f} at a precision of 0.9. {self.threshold}"
            )
        return note.strip()

    def arguments(self) -> str:
        """Return the recommended options of ``tamis run``.

        Examples
        --------
        See :func:`recommend`.
        """
        draws = f" --n-draws {self.n_draws}" if self.n_draws != RunOptions.n_draws else ""
        return self.chosen.words() + draws

    # -- presentation --------------------------------------------------------------------------------------

    def heading(self) -> str:
        """Return the question."""
        return "Which selector?"

    def verdict(self) -> str:
        """Return the recommended options, and the verdict of their run."""
        is_part = self.chosen.size < self.n_features
        beside = f"; all columns reach {self._written(self.all_score)}" if is_part else ""
        return f"Recommended: {self.arguments()}. {self.run_verdict.removesuffix('.')}{beside}."

    def about(self) -> str:
        """Return the data, and what the run of the recommendation reports."""
        rows, columns = plural(self.n_rows, "row", "rows"), plural(self.n_features, "column", "columns")
        return f"{rows} of {columns}, test-then-train. {self.reason} {self.figures_note()}"

    def remarks(self) -> list[str]:
        """Return the remarks of the run of the recommendation, and when to omit the selector."""
        learner = f" --learner {self.chosen.learner}" if self.measure == "mae" else ""
        said = f"If the stream drifts, omit the selector: {self.command}{learner} keeps comparing candidates."
        return [*self.run_remarks, Remark(said, "note")]

    def sections(self) -> list[Section]:
        """Return the candidates, and for each learner the scores by number of columns."""
        rows: list[list[Cell]] = [
            [Score(one.words(), is_best=one is self.chosen), count(one.size), self._written(one.score)]
            for one in self.candidates
        ]
        heads = [("", "options of tamis run"), ("n", "columns"), ("n", self.word)]
        candidates = Table("Each was run on these rows", heads, rows, is_main=True)
        curves = [
            Section(f"curve-{learner}", f"Sizes, with {learner}", self._curve(learner, curves))
            for learner, curves in self.curves.items()
            if curves
        ]
        command = Code(f"{self.command} {self.arguments()}")
        python = [Code(self.python)] if self.python else []
        return [Section("candidates", "Candidates", [command, *python, candidates]), *curves]

    def _curve(self, learner: str, curves: dict[str, list[tuple[int, float]]]) -> list[Any]:
        """Return the scores by number of columns in the comparison of `Auto`, as a chart and as a table."""
        word, is_chosen = NAME_OF[self.measure], self.chosen.learner == learner
        names = [name for name in curves if name not in ("joint", "all")]
        sizes = sorted({size for name, curve in curves.items() if name != "joint" for size, _ in curve})
        place = {size: float(at) for at, size in enumerate(sizes)}
        x = Axis(-0.3, len(sizes) - 0.7, [(place[size], count(size)) for size in sizes], "columns kept")
        lines = []
        for name in names:
            curve = curves[name] + curves["all"]
            at, scores = np.array([place[k] for k, _ in curve]), np.array([v for _, v in curve])
            lines.append(Line(at, scores, name, _STYLES.get(name, 6)))
        everything = curves["all"][0][1]
        level = Line(np.array([x.low, x.high]), np.array([everything] * 2), "every column", 5, is_thin=True)
        kept = [place[self.chosen.size]] if is_chosen and self.chosen.size in place else []
        y = axis(*limits(*(np.array([v for _, v in curve]) for curve in curves.values()), within=(0, 1)))
        said = "; ".join(f"{line.name}: {trend(line.y)}" for line in lines)
        chart = Chart(
            f"cur-{learner}", word, f"by number of columns kept{'; dotted: recommended' if is_chosen else ''}",
            f"With {learner}. {said}", x, y, [*lines, level, VerticalLines(np.array(kept))], "wide",
        )  # fmt: skip
        rows = [
            [count(size), *(fraction(dict(curves[name]).get(size, math.nan)) for name in names)]
            for size in sizes
        ]
        rows[-1] = [f"{rows[-1][0]} (all)", *[fraction(everything)] * len(names)]
        note = ""
        if "joint" in curves:
            size, score = curves["joint"][0]
            note = f"joint chooses the size: {fraction(score)} with {count(size)} at the end."
        heads = [("n", name) for name in ("columns", *names)]
        return [chart, Table(f"{word} by number of columns", heads, rows, note, is_main=is_chosen)]

    def reproduce(self) -> Reproduction:
        """Return the lines of Python that repeat the comparison."""
        python = (
            'from tamis import recommend\n\nrecommend((X, y)).report("report.html")  # X, y: the same rows'
        )
        return Reproduction(python=python)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values: the keys are in the table of JSON keys in the documentation."""
        return {
            "verdict": self.verdict(),
            "n_rows": self.n_rows, "n_features": self.n_features, "measure": self.measure,
            "arguments": self.arguments(), "reason": self.reason, "remarks": self.run_remarks,
            "figures": self.figures, "threshold": self.threshold,
            "chosen": _plain(self.chosen), "best": _plain(self.best),
            "candidates": [_plain(one) for one in self.candidates], "curves": self.curves,
            "command": f"{self.command} {self.arguments()}",
        }  # fmt: skip


def recommend(
    stream: Any,
    *,
    label: str | int | tuple[Any, ...] | None = None,
    task: str | None = None,
    learner: str | None = None,
    max_rows: int | None = None,
    n_draws: int = RunOptions.n_draws,
    on_progress: Callable[[float], None] | None = None,
) -> Recommendation:
    """Compare selectors, sizes and learners on the first rows of a stream, with random subsets and all features.

    Parameters
    ----------
    stream : Stream, (X, y), frame or iterable
        As for :func:`tamis.prequential`.
    label : str, int or tuple, optional
        The label column, for a frame or an iterable of dicts, as for :func:`tamis.prequential`.
    task : {"classification", "regression"}, optional
        Kind of label; by default that of the learner, or classification. For ``"regression"`` the criterion is the mean
        absolute error, and "sgd-regressor", "least-squares" and "lightgbm-regressor" are compared.
    learner : str, optional
        The learner that is used later, by a name of `tamis list`: "logistic", "naive-bayes", "lightgbm" or another.
        By default "logistic", "perceptron", "naive-bayes" ("nb" if features are categorical or have missing values),
        "adaptive-random-forest" and "lightgbm" ("hist-boosting" if it is not installed) are compared, and one is
        recommended. Of these, the linear ones and LightGBM accept sparse rows.
    max_rows : int, optional
        Maximum number of rows to use, at least 200. By default 5000, or for a rare class as many as contain 200 rows of
        it, at most 50,000.
    n_draws : int, default=3
        Number of random subsets, as for :func:`tamis.prequential`.
    on_progress : callable, optional
        Called with the fraction of the runs completed so far.

    Returns
    -------
    Recommendation

    Raises
    ------
    DataError
        If there are fewer than 200 rows, or only one class.
    ValueError
        If an argument is invalid, or no learner of the task has that name.

    Examples
    --------
    Ten copies of one signal, a second signal, and 29 noise features: two features suffice.

    >>> rng = np.random.default_rng(0)
    >>> signals = rng.normal(size=(3000, 2))
    >>> X = np.hstack([signals[:, [0] * 10 + [1]] + 0.1 * rng.normal(size=(3000, 11)), rng.normal(size=(3000, 29))])
    >>> result = recommend((X, signals.sum(axis=1) > 0), learner="naive-bayes")
    >>> result.arguments()
    '--selector auto --learner naive-bayes'
    >>> result.chosen.size, result.chosen.score > result.all_score
    (2, True)
    """
    numbers = _is_regression(task, learner)
    if max_rows is not None:
        check_number("max_rows", max_rows, low=200, integer=True)
    check_number("n_draws", n_draws, low=1, integer=True)
    first = FirstRows(as_stream(stream, label), _ROWS, max_rows, numbers=numbers)
    if first.n_rows < 200:
        raise DataError(
            f"The stream has {first.n_rows} rows: a recommendation needs at least 200, as the first 100 only train."
        )
    if len(first.labels) < 2:
        what = "have the same target" if numbers else "are of one class"
        raise DataError(f"The first {first.n_rows} rows {what}: give more rows, or shuffle them.")
    measure = "mae" if numbers else "auc" if first.is_rare else "accuracy"
    learners = [find_learner(learner).key] if learner else first.learners
    n_done, n_runs, show = 0, 3 * len(learners) + 1, on_progress or (lambda share: None)

    def run(*names: str, **parameters: Any) -> Candidate:
        nonlocal n_done
        done = first.run(
            *names, measure=measure, on_progress=lambda share: show((n_done + share) / n_runs), **parameters
        )
        n_done += 1
        return done

    candidates, curves = list[Candidate](), {}
    sorted_by = "" if numbers else runs_of_labels(np.unique(first.y, return_inverse=True)[1].ravel())
    for name in learners:
        if sorted_by:
            candidates.append(run(name))
            n_runs -= 2
            continue
        auto = run(name, "auto")
        curves[name], fixed = _fixed(auto.model)
        candidates += [run(name), auto]
        if name.startswith("lightgbm"):  # it selects by itself, as in a run without options
            candidates.append(run(name, "few"))
        elif fixed is not None:
            candidates.append(run(name, fixed[0], **fixed[1]))
        else:
            n_runs -= 1
    deviation = float(np.abs(first.y - np.median(first.y)).mean()) if numbers else 1.0
    best, chosen = _smallest(candidates, deviation)
    # With the baselines, as the printed command has them.
    chosen_run = run(chosen.learner, chosen.selector, options={"n_draws": n_draws}, **chosen.assigned).run
    reason = _reason(chosen, best, measure, first) + _dependence_note(first.y, best, measure)
    if sorted_by:
        reason = f"No selection is recommended, since {sorted_by}: shuffle the rows, or name another label."
    return Recommendation(
        chosen, best, candidates, chosen_run.summary(), curves, first.n_rows, first.n_features, reason, measure,
        chosen_run.verdict(), [*first.leaks(), *chosen_run.remarks()], chosen_run.threshold_note(), n_draws,
        python=chosen_run.reproduce().python, scale=deviation,
    )  # fmt: skip


class TargetsRecommendation(TargetsResult):
    """The recommendations for several targets of the same features, and the options that serve all of one kind.

    Of the candidates that were run for every target, that is all features and `Auto` with each learner, the shared one
    is chosen as for a single target, by the mean over targets of the losses (of numbers, in units of their mean
    absolute deviation); its size is that of the union of the selections.

    Parameters
    ----------
    recommendations : dict of str to Recommendation
        The recommendation of each target alone.
    command : callable, optional
        Returns `tamis run` with the options of the stream for some of the targets.

    Attributes
    ----------
    recommendations : dict of str to Recommendation
    chosen : dict of str to Candidate
        The shared candidate, with its run for each target. Classes and numbers have different ones.
    price : int
        Number of features that are selected for any target.
    """

    def __init__(
        self,
        recommendations: Mapping[str, Recommendation],
        command: Callable[[list[str]], str] = lambda names: " --label ".join(["tamis run FILE", *names]),
    ) -> None:
        self.recommendations, self._command_of = dict(recommendations), command
        self.chosen: dict[str, Candidate] = {}
        for names in self._groups():
            self.chosen |= self._shared(names)
        super().__init__({name: self.chosen[name].run for name in self.recommendations})

    def _groups(self) -> list[list[str]]:
        """Return the targets of classes, and those of numbers."""
        kinds: dict[bool, list[str]] = {}
        for name, one in self.recommendations.items():
            kinds.setdefault(one.measure == "mae", []).append(name)
        return list(kinds.values())

    def _shared(self, names: list[str]) -> dict[str, Candidate]:
        """Return the best common candidate for each of some targets."""
        found = [{one.words(): one for one in self.recommendations[name].candidates} for name in names]
        common = [words for words in found[0] if all(words in one for one in found)]
        by_target = [[one[words] for words in common] for one in found]
        sizes = [
            len({feature for one in places for feature in one.run.selected() or one.run.feature_names})
            for places in zip(*by_target, strict=True)
        ]
        _, chosen = _choose(by_target, [self.recommendations[name].scale for name in names], sizes)
        return {name: some[chosen] for name, some in zip(names, by_target, strict=True)}

    def arguments(self) -> dict[str, list[str]]:
        """Return the recommended options of ``tamis run``, each with its targets."""
        return {self.chosen[names[0]].words(): names for names in self._groups()}

    def commands(self) -> list[str]:
        """Return a command for the targets of classes, and one for those of numbers."""
        return [f"{self._command_of(names)} {words}" for words, names in self.arguments().items()]

    def heading(self) -> str:
        """Return the question."""
        return f"Which selector for {len(self.targets)} targets?"

    def verdict(self) -> str:
        """Return the recommended options, and how many features all targets need."""
        of_each = self.arguments()
        parts = [f"{words} for {', '.join(names)}" for words, names in of_each.items()]
        return f"Recommended: {'; '.join(parts if len(parts) > 1 else of_each)}. {super().verdict()}"

    def tables(self) -> list[Table]:
        """Return a table of the targets, each alone and with the shared options, and one of the shared selection."""
        rows: list[list[Cell]] = []
        for name, alone in self.recommendations.items():
            shared = self.chosen[name]
            key = shared.learner, "none"
            every = next(one for one in alone.candidates if (one.learner, one.selector) == key)
            scores = [alone._written(one.score) for one in (every, shared, alone.chosen)]
            rows.append(
                [name, alone.word, scores[0], scores[1], count(shared.size), alone.arguments(), scores[2],
                 count(alone.chosen.size)]
            )  # fmt: skip
        heads = [
            ("", "target"), ("", "measure"), ("n", "all columns"), ("n", "shared options"), ("n", "columns"),
            ("", "options for it alone"), ("n", "value"), ("n", "columns"),
        ]  # fmt: skip
        return [Table("Targets", heads, rows, is_main=True), self.shared_table()]

    def sections(self) -> list[Section]:
        """Return the commands, and the tables."""
        return [Section("targets", "Targets", [*map(Code, self.commands()), *self.tables()])]

    def remarks(self) -> list[str]:
        """Return the reason for each recommendation, and the remarks of its run."""
        said: list[str] = []
        for name, one in self.recommendations.items():
            said += [Remark(f"{name}: {one.reason}", "note")]
            said += [f"{name}: {text}" for text in one.run_remarks]
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values: what is shared, and the recommendation of each target."""
        of_each = {
            name: one.to_dict() | {"shared": _plain(self.chosen[name])}
            for name, one in self.recommendations.items()
        }
        return super().to_dict() | {"commands": self.commands(), "by_target": of_each}


def recommend_by_target(
    data: Any, *, labels: Sequence[str] | None = None, **options: Any
) -> TargetsRecommendation:
    """Recommend a selector, a number of features and a learner for each of several targets, and for all of them.

    Parameters
    ----------
    data : frame, or pair (X, Y)
        A frame with the columns `labels`, or rows and targets of shape (n_rows, n_targets). A target of numbers that
        are not whole is a regression.
    labels : list of str, optional
        Columns of the frame that are targets; none of them is a feature.
    **options
        Of :func:`recommend`: `learner`, `max_rows`, `n_draws`, `on_progress`.

    Returns
    -------
    TargetsRecommendation

    Raises
    ------
    DataError
        As :func:`recommend`, with the name of the target.
    ValueError
        If a label is not a column of the frame, or `labels` is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame(rng.normal(size=(1500, 8)), columns=list("abcdefgh"))
    >>> frame["hot"], frame["dry"] = frame.a + frame.b > 0, frame.b - frame.c > 0
    >>> result = recommend_by_target(frame, labels=["hot", "dry"], learner="naive-bayes", n_draws=1)
    >>> result.commands(), result.selected()
    (['tamis run FILE --label hot --label dry --selector auto --learner naive-bayes'], ['a', 'b', 'c'])
    """
    found = {}
    for name, stream, own in streams_of_targets(data, labels):
        with of_target(name):
            found[name] = recommend(stream, **{**own, **options})
    return TargetsRecommendation(found)


def _fixed(auto: Any) -> tuple[dict[str, list[tuple[int, float]]], tuple[str, dict[str, Any]] | None]:
    """Return the curves of the comparison of a fitted `Auto`, and the smallest fixed selection as good as the best."""
    history, curves = auto.comparison_, dict[str, list[tuple[int, float]]]()
    rows, errors = history["n_tested"], history["errors"]
    if not rows.any():
        return curves, None
    names, sizes = [name.partition(" ") for name in auto.candidates_], auto.sizes_
    # `joint` chooses its size itself; a knee, a lasso or the ranking of boosted trees cannot be passed.
    is_fixed = [
        selector == "all"
        or (selector in _SELECTORS and amount != "knee" and (selector != "joint" or not amount))
        for selector, _, amount in names
    ]
    at = np.flatnonzero(is_fixed)
    losses = PairedLosses(len(at)).with_rows(errors[:, at], rows / rows.mean())
    for i, mean in zip(at, losses.mean(), strict=True):
        curves.setdefault(names[i][0], []).append((int(sizes[i]), float(1.0 - mean)))
    near = [
        (sizes[i], mean, names[i][0])
        for i, mean, is_good in zip(
            at, losses.mean(), losses.behind(in_order="error").within(_TOLERANCE), strict=True
        )
        if names[i][0] != "all" and is_good
    ]
    if not near:
        return curves, None
    size, _, selector = min(near)
    key, parameters = _SELECTORS[selector]
    return curves, (key, parameters | ({} if key == "joint" else {"n_features_to_select": int(size)}))


def _smallest(candidates: list[Candidate], scale: float = 1.0) -> tuple[Candidate, Candidate]:
    """Return the best candidate, and the smallest of the same learner that is behind it by at most the tolerance."""
    best, chosen = _choose([candidates], [scale], [one.size for one in candidates])
    return candidates[best], candidates[chosen]


def _choose(by_target: list[list[Candidate]], scales: list[float], sizes: list[int]) -> tuple[int, int]:
    """Return the places of the best candidate, and of the smallest that is behind it by at most the tolerance.

    Losses, differences and their errors are means over the targets, as if the errors of all were the same ones.
    The best of many candidates leads partly by chance. So another learner than the best one of all features, which a
    run without options chooses, must be ahead of it by more than half of the 95 % interval.
    """
    first = by_target[0]
    loss = np.mean(
        [[one.loss / scale for one in some] for some, scale in zip(by_target, scales, strict=True)], axis=0
    )

    def behind(places: list[int], reference: int, of: Literal["error", "bound"] = "error") -> Gaps:
        gap, error = np.zeros((2, len(places)))
        for some, scale in zip(by_target, scales, strict=True):
            one = paired([some[i] for i in places]).behind(reference, in_order=of)
            gap, error = gap + one.gap / scale, error + one.error / scale
        return Gaps(gap / len(scales), error / len(scales))

    def of_learner(place: int) -> list[int]:
        return [at for at, one in enumerate(first) if one.learner == first[place].learner]

    best = int(np.argmin(loss))
    bare = [at for at, one in enumerate(first) if one.selector == "none"]
    every = min(bare, key=loss.__getitem__, default=best)
    same = of_learner(every)
    usual = min(same, key=loss.__getitem__)
    gap, bound = behind([best, usual], 0, "bound")
    if gap[1] > bound[1]:
        same = of_learner(best)
    else:
        best = usual
    is_near = behind(same, same.index(best)).within(_TOLERANCE)
    near = [at for at, is_good in zip(same, is_near, strict=True) if is_good]
    return best, min(near, key=lambda at: (sizes[at], loss[at]))


def _reason(chosen: Candidate, best: Candidate, measure: str, first: FirstRows) -> str:
    """Return why a candidate is recommended."""
    word, n_features = _WORD_FOR[measure], first.n_features
    written = scientific if measure == "mae" else fraction
    if chosen.size >= n_features:
        reason = f"All features: every selection may be behind them by more than {_TOLERANCE:g} in {word}."
    else:
        at_best = "" if chosen is best else f", {written(best.score)} ({best.words()}, {best.size:,}),"
        reason = (
            f"The smallest set that is behind the best {word}{at_best} by at most {_TOLERANCE:g}, one standard error"
            f" included, has {chosen.size:,} of {n_features:,} columns."
        )
    if measure == "auc":
        reason += (
            f" AUC is compared: the rarer class has {first.counts.min():,} of {first.n_rows:,} rows, so accuracy is"
            " uninformative."
        )
    elif measure == "accuracy":
        gain, error = paired_gain(best.run.frames["steps"], measure, "majority")
        if gain <= error.bound:
            reason += (
                f" The majority-class baseline is as accurate, {best.run.summary()['majority_accuracy']:.3f}, so"
                " accuracy cannot rank selections here: compare the AUC and the average precision of several with"
                " tamis run."
            )
    return reason


def _dependence_note(labels: Any, best: Candidate, measure: str) -> str:
    """Return a note on autocorrelated rows and on the no-change baseline if it is as accurate; else an empty text."""
    if measure == "mae":
        return ""
    codes = np.unique(labels, return_inverse=True)[1].ravel()
    series = LabelSeries(int(codes.max()) + 1)
    series.update(codes)
    if not series.dependent:
        return ""
    n, repeated = len(codes), float(np.mean(codes[1:] == codes[:-1]))
    note = f" Rows are autocorrelated: {n:,} rows count as {n / series.correlation_length():,.0f}."
    if measure == "accuracy" and repeated >= best.score:
        note += (
            f" The no-change baseline, which repeats the previous label, reaches {repeated:.3f}: if that label is known"
            " in time, add it as a column."
        )
    return note


def _is_regression(task: str | None, learner: str | None) -> bool:
    """Return whether the target is numeric: by the task, or else by the learner."""
    if task is not None:
        check_choice("task", task, ("classification", "regression"))
    numbers = task == "regression"
    if learner is None:
        return numbers
    try:
        predicts_numbers = "regression" in find_learner(learner).targets
    except UnknownNameError as error:
        raise ValueError(str(error)) from None
    if task is not None and predicts_numbers != numbers:
        predicted = "numbers" if predicts_numbers else "classes"
        raise ValueError(f"learner={learner!r} predicts {predicted}: choose another one for task={task!r}.")
    return predicts_numbers


def _plain(one: Candidate) -> dict[str, Any]:
    return {"command": one.words()} | {
        name: getattr(one, name) for name in ("learner", "selector", "size", "score")
    }
