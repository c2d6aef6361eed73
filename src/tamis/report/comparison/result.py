"""What the report of an experiment needs to be told; :class:`tamis.evaluate.ExperimentResult` has all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tamis.report.figures.thinning import Column, Numbers
from tamis.report.ranks import Ranks
from tamis.report.run.numbers import Result

__all__ = ["Comparison", "Scores", "Significance"]


class Scores(Protocol):
    """A number for each stream (row) and method (column)."""

    @property
    def metric(self) -> str: ...  # noqa: D102
    @property
    def streams(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def methods(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def mean(self) -> Numbers: ...  # noqa: D102
    @property
    def deviation(self) -> Numbers: ...  # noqa: D102
    @property
    def best(self) -> Column: ...  # noqa: D102
    def mean_ranks(self) -> Mapping[str, float]: ...  # noqa: D102


class Friedman(Protocol):
    """Whether the methods differ at all."""

    @property
    def p(self) -> float: ...
    @property
    def least_p_value(self) -> float: ...
    @property
    def exact_p_value(self) -> float: ...
    def says_too_little(self, alpha: float) -> bool: ...


class Nemenyi(Ranks, Protocol):
    """Which of all pairs differ."""

    @property
    def alpha(self) -> float: ...


class Holm(Protocol):
    """Which differ from the best ranked method."""

    @property
    def control(self) -> str: ...
    @property
    def adjusted(self) -> Mapping[str, float]: ...


class SignedRank(Protocol):
    """How probable it is that the best ranked method is better than another, practically equal, or worse."""

    @property
    def first(self) -> float: ...
    @property
    def equal(self) -> float: ...
    @property
    def second(self) -> float: ...
    @property
    def rope(self) -> float: ...


class Significance(Protocol):
    """The tests of one number."""

    @property
    def streams(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def friedman(self) -> Friedman: ...  # noqa: D102
    @property
    def nemenyi(self) -> Nemenyi: ...  # noqa: D102
    @property
    def holm(self) -> Holm: ...  # noqa: D102
    @property
    def bayes(self) -> Mapping[str, SignedRank]: ...  # noqa: D102


class Comparison(Protocol):
    """An experiment: a line per cell, every run behind it, tables and tests."""

    cells: dict[str, Column]
    folder: Path
    oracles: list[str]
    keep_all: list[str]

    @property
    def streams(self) -> list[str]: ...  # noqa: D102
    @property
    def methods(self) -> list[str]: ...  # noqa: D102
    @property
    def metrics(self) -> list[str]: ...  # noqa: D102
    @property
    def failed(self) -> dict[str, str]: ...  # noqa: D102
    @property
    def settings(self) -> dict[str, Any]: ...  # noqa: D102
    @property
    def is_temporary(self) -> bool: ...  # noqa: D102
    def table(self, metric: str) -> Scores: ...  # noqa: D102
    def compare(self, metric: str) -> Significance: ...  # noqa: D102
    def curves(self, column: str) -> dict[str, Column]: ...  # noqa: D102
    def finished(self, stream: str, method: str) -> Column: ...  # noqa: D102
    def run(self, stream: str, method: str, seed: int | None = None) -> Result: ...  # noqa: D102
