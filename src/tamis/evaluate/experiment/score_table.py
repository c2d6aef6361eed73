"""Scores of methods on streams: mean and deviation over seeds, the best of each stream, and tests of significance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._validation import Floats, Ints, Mask
from tamis.base import html_repr
from tamis.evaluate.significance import (
    BayesianSignedRank,
    Friedman,
    Holm,
    Nemenyi,
    bayesian_signed_rank,
    friedman,
    holm,
    mean_ranks,
    nemenyi,
)
from tamis.report.charts.ranks import plot_ranks

_SMALLER_IS_BETTER = ("seconds", "memory_bytes", "model_bytes", "ram_hours", "recovery_rows", "n_changes")


def is_better_larger(metric: str) -> bool:
    """Return whether larger is better for a metric of a run.

    >>> is_better_larger("kappa_t"), is_better_larger("seconds_learn")
    (True, False)
    """
    return not metric.startswith(_SMALLER_IS_BETTER)


@dataclass(frozen=True)
class ScoreTable:
    """A number for each stream and method.

    Attributes
    ----------
    metric : str
    streams, methods : list of str
        Rows and columns.
    mean, deviation : ndarray of shape (n_streams, n_methods)
        Over seeds; the deviation is that of a sample (n - 1), NaN for a single one. NaN where no cell is finished.
    n : ndarray of shape (n_streams, n_methods), int64
        Number of cells that each mean is computed from.
    unranked : list of str
        Methods that are shown but never ranked or compared: they use the true features, or do not select.
    """

    metric: str
    streams: list[str]
    methods: list[str]
    mean: Floats
    deviation: Floats
    n: Ints
    unranked: list[str]

    @classmethod
    def build(
        cls,
        metric: str,
        streams: Sequence[str],
        methods: Sequence[str],
        values: Sequence[Sequence[Floats]],
        unranked: Sequence[str] = (),
    ) -> ScoreTable:
        """Return the table of `values[stream][method]`, each an array over seeds; NaN is ignored."""
        there = [[cell[np.isfinite(cell)] for cell in row] for row in values]
        mean = [[float(cell.mean()) if len(cell) else math.nan for cell in row] for row in there]
        deviation = [[float(one.std(ddof=1)) if len(one) > 1 else math.nan for one in row] for row in there]
        n = [[len(cell) for cell in row] for row in there]
        return cls(
            metric,
            list(streams),
            list(methods),
            np.array(mean),
            np.array(deviation),
            np.array(n),
            list(unranked),
        )

    @property
    def larger_is_better(self) -> bool:
        """Whether larger is better."""
        return is_better_larger(self.metric)

    @property
    def best(self) -> Mask:
        """Which means are the best of their stream, shape (n_streams, n_methods), ties included."""
        compared = np.isfinite(self.mean) & np.array([name not in self.unranked for name in self.methods])
        scores = np.where(compared, self.mean if self.larger_is_better else -self.mean, -np.inf)
        return (scores == scores.max(axis=1, keepdims=True)) & np.isfinite(scores)

    def comparable(self) -> tuple[list[str], list[str], Floats]:
        """Return the ranked methods that have scores, the streams on which all of them do, and the scores.

        Returns
        -------
        methods, streams : list of str
        scores : ndarray of shape (n_streams, n_methods)
        """
        scored: Mask = np.any(np.isfinite(self.mean), axis=0)
        columns = [j for j, name in enumerate(self.methods) if scored[j] and name not in self.unranked]
        means = self.mean[:, columns]
        rows = np.flatnonzero(np.all(np.isfinite(means), axis=1))
        return [self.methods[j] for j in columns], [self.streams[i] for i in rows], means[rows]

    def mean_ranks(self) -> dict[str, float]:
        """Return the mean rank of each ranked method, 1 is best; empty for fewer than two methods or streams."""
        methods, streams, means = self.comparable()
        if len(methods) < 2 or len(streams) < 2:
            return {}
        return mean_ranks(means, methods, larger_is_better=self.larger_is_better)

    def means(self) -> dict[str, float]:
        """Return the mean of each method over the streams on which all ranked ones have a score; empty for one."""
        methods, streams, means = self.comparable()
        return dict(zip(methods, means.mean(axis=0).tolist(), strict=True)) if len(streams) > 1 else {}

    def to_dict(self) -> dict[str, Any]:
        """Return mean, deviation and number of cells by stream and method."""
        columns = {"mean": self.mean.tolist(), "deviation": self.deviation.tolist(), "n": self.n.tolist()}
        return {
            stream: {
                method: {name: values[i][j] for name, values in columns.items()}
                for j, method in enumerate(self.methods)
            }
            for i, stream in enumerate(self.streams)
        }

    def cell(self, i: int, j: int) -> str:
        """Return mean and deviation of a stream and a method as text."""
        mean, deviation = float(self.mean[i, j]), float(self.deviation[i, j])
        if math.isnan(mean):
            return "-"
        digits = 3 if abs(mean) < 100 else 0
        return f"{mean:,.{digits}f}" + ("" if math.isnan(deviation) else f" ± {deviation:,.{digits}f}")

    def to_markdown(self) -> str:
        """Return the table in Markdown, the best of each row in bold."""
        lines = [[self.metric, *self.methods], ["---"] + ["---:"] * len(self.methods)]
        for i, stream in enumerate(self.streams):
            cells = [self.cell(i, j) for j in range(len(self.methods))]
            bold = [f"**{cell}**" if best else cell for cell, best in zip(cells, self.best[i], strict=True)]
            lines.append([stream, *bold])
        return "\n".join(f"| {' | '.join(one.replace('|', chr(92) + '|') for one in row)} |" for row in lines)

    def _repr_html_(self) -> str:
        rows = {
            stream: [self.cell(i, j) for j in range(len(self.methods))]
            for i, stream in enumerate(self.streams)
        }
        return html_repr(self.metric, (), rows, ("", *self.methods))

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [[self.metric, *self.methods]]
        for i, stream in enumerate(self.streams):
            lines.append([stream, *(self.cell(i, j) for j in range(len(self.methods)))])
        widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        padded = (
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines
        )
        return "\n".join(line.rstrip() for line in padded)


@dataclass(frozen=True)
class Significance:
    """The result of :meth:`ExperimentResult.compare`.

    Attributes
    ----------
    metric : str
    streams : list of str
        Those on which every method has a score.
    friedman : Friedman
        Whether any methods differ.
    nemenyi : Nemenyi
        Which pairs differ, as drawn in the critical-difference diagram.
    holm : Holm
        Which methods differ from the best-ranked one, with p-values that account for its choice.
    bayes : dict of str to BayesianSignedRank
        For each other method, the probabilities that the best-ranked one is better, practically equal, or worse.
    """

    metric: str
    streams: list[str]
    friedman: Friedman
    nemenyi: Nemenyi
    holm: Holm
    bayes: dict[str, BayesianSignedRank]

    def _repr_html_(self) -> str:
        ranks = {
            name: [f"{rank:.2f}"] for name, rank in sorted(self.nemenyi.ranks.items(), key=lambda one: one[1])
        }
        facts = [self.metric, f"{len(self.streams):,} streams", str(self.friedman)]
        return html_repr("Significance", facts, ranks, ("method", "mean rank"))

    def plot(self) -> Any:
        """Return a matplotlib figure: the critical-difference diagram of Nemenyi's test."""
        return plot_ranks(self.nemenyi)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        tests: list[Any] = [self.friedman, self.nemenyi, self.holm, *self.bayes.values()]
        return f"{self.metric} on {', '.join(self.streams)}\n" + "\n".join(map(str, tests))


def significance(table: ScoreTable, *, alpha: float = 0.05, rope: float = 0.01) -> Significance:
    """Test whether the methods of a table differ; see :meth:`ExperimentResult.compare`.

    Examples
    --------
    >>> values = [[np.array([0.9]), np.array([0.8])], [np.array([0.8]), np.array([0.6])]]
    >>> result = significance(ScoreTable.build("accuracy", ["s", "t"], ["a", "b"], values))
    >>> result.nemenyi.ranks
    {'a': 1.0, 'b': 2.0}
    """
    names, streams, means = table.comparable()
    if len(names) < 2 or len(streams) < 2:
        raise ValueError(
            f"A comparison by {table.metric!r} needs two methods, and two streams on which each of them has a score;"
            f" there are {len(names)} and {len(streams)}."
        )
    scores = means if table.larger_is_better else -means
    control = holm(scores, names)
    best = scores[:, names.index(control.control)]
    return Significance(
        table.metric,
        streams,
        friedman(scores, names),
        nemenyi(scores, names, alpha=alpha),
        control,
        {
            name: bayesian_signed_rank(best, scores[:, j], (control.control, name), rope=rope)
            for j, name in enumerate(names)
            if name != control.control
        },
    )
