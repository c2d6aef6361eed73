"""`tamis columns`: columns offered one after the other to a rule that decides on each at once."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.cli.candidates import RULES, Generating, Matter, Rule, find_rule
from tamis.cli.failure import INTERRUPTED, MisuseError
from tamis.cli.offered import Output
from tamis.cli.options import AsJSON, Debug, Quiet, Reading, check_whole, grouped, option
from tamis.cli.output import terminal, warnings_in_one_line
from tamis.errors import TamisError

if TYPE_CHECKING:
    from tamis.columns.generators import Progress

__all__ = ["Walk", "add", "columns"]

_EXAMPLES = """\
Examples:

[bold]tamis columns genes.csv --label type --report genes.html[/]

[bold]tamis columns houses.parquet --label price --logs --interactions --target-fdr 0.1[/]

[bold]tamis columns words.svm --rule saola --json[/]"""

_DECIDING, _BUDGET = "Deciding", "Budget"
_STAGES = {
    "PrincipalComponents": "components", "Originals": "columns", "Powers": "powers", "Logs": "logarithms",
    "Interactions": "products", "Ratios": "ratios", "FromIterable": "columns",
}  # fmt: skip


@dataclass
class _Reading(Reading):
    missing: Annotated[
        str,
        option("Reading the file", "HOW", "Missing numbers: mean of the column (and said so), or error."),
    ] = "mean"


def add(root: typer.Typer) -> None:
    """Add the command."""
    root.command(epilog=_EXAMPLES)(grouped(columns))


@dataclass
class _Deciding:
    rule: Annotated[
        str,
        option(
            _DECIDING,
            "NAME",
            "A spending rule (alpha-investing, lord++, saffron ...), aic, bic, ric, stepwise-bic ..., osfs, fast-osfs,"
            " saola, ofs-density or ofs-a3m.",
            autocompletion=lambda: list(RULES),
        ),
    ] = "alpha-investing"
    model: Annotated[
        str | None,
        option(
            _DECIDING,
            "NAME",
            "linear, logistic or poisson.  [dim]\\[default: as the label][/]",
            show_default=False,
        ),
    ] = None
    target_fdr: Annotated[
        float | None,
        option(
            _DECIDING,
            "SHARE",
            "How many of the accepted may be false, for a spending rule.  [dim]\\[default: 0.05][/]",
            show_default=False,
        ),
    ] = None
    initial_wealth: Annotated[
        float | None,
        option(
            _DECIDING, "SHARE", "Of alpha-investing, in place of --target-fdr; the paper has 0.5.", show_default=False
        ),
    ] = None  # fmt: skip
    payout: Annotated[
        float | None, option(_DECIDING, "SHARE", "Likewise: what each accepted feature earns.", show_default=False)
    ] = None  # fmt: skip
    robust: Annotated[
        bool, option(_DECIDING, None, "Tests that hold if the noise differs from row to row.", "--robust")
    ] = False

    def found(self) -> Rule:
        """Return the rule; options that it has no use for are refused."""
        rule = find_rule(self.rule)
        own = self.initial_wealth is not None or self.payout is not None
        if own and rule.name != "alpha-investing":
            raise MisuseError(
                f"--initial-wealth and --payout are for --rule alpha-investing, not for {rule.name}."
            )
        if own and self.target_fdr is not None:
            raise MisuseError("Say either --target-fdr, or --initial-wealth and --payout.")
        for name, is_given in (("--target-fdr", self.target_fdr is not None), ("--robust", self.robust)):
            if is_given and rule.kind != "spending":
                raise MisuseError(f"{name} is for the rules that spend, not for {rule.name}.")
        return rule

    def selector(self, rule: Rule, model: str, missing: str, seed: int, max_features: int | None) -> Any:
        """Return the selector, not started yet."""
        target = 0.05 if self.target_fdr is None else self.target_fdr
        own = self.initial_wealth is not None or self.payout is not None
        return rule.make(
            model,
            target_fdr=None if own else target,
            initial_wealth=self.initial_wealth,
            payout=self.payout,
            variance="robust" if self.robust else None,
            missing="refuse" if missing == "error" else "mean",
            random_state=seed,
            max_features=max_features,
        )


def columns(
    *,
    deciding: _Deciding,
    generating: Generating,
    max_candidates: Annotated[int | None, option(_BUDGET, "N", "Try at most so many.")] = None,
    max_features: Annotated[int | None, option(_BUDGET, "N", "Accept at most so many.")] = None,
    max_seconds: Annotated[float | None, option(_BUDGET, "S", "Stop after so many seconds.")] = None,
    checkpoint: Annotated[
        str | None, option(_BUDGET, "FILE", "Save the search there; if the file is there, go on from it.")
    ] = None,
    reading: _Reading,
    top: Annotated[int, option("Output", "N", "How many accepted features to show.")] = 20,
    save: Annotated[
        str | None, option("Output", "FILE", "Save the selector and how its features are made.")
    ] = None,
    report: Annotated[
        str | None, option("Output", "FILE", "Write an HTML report: wealth, p-values, accepted features.")
    ] = None,
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Offer the columns, and features made of them, one after the other: each is kept or refused at once."""
    from tamis._check import check_number
    from tamis.cli.train import Table

    rule = deciding.found()
    for name, value, least in (
        ("--max-candidates", max_candidates, 1),
        ("--max-features", max_features, 1),
        ("--top", top, 1),
    ):
        check_whole(name, value, least)
    if max_seconds is not None:
        check_number("max_seconds", max_seconds, low=0.0, open_low=True)
    if max_features is not None and rule.kind == "classes":
        raise MisuseError(f"--rule {rule.name} may drop features again: leave --max-features out.")
    if reading.missing not in ("mean", "error"):
        raise MisuseError(f"--missing {reading.missing} is not known here: write mean or error.")
    output = Output(top, save, report, checkpoint, as_json, quiet)
    missing, reading.missing = reading.missing, "keep" if reading.missing == "mean" else "error"
    stream = reading.open()
    table = Table.read(stream)
    matter = Matter(table, str(stream.describe().get("label", "the label")), rule, deciding.model)
    selector = deciding.selector(rule, matter.model, missing, generating.seed, max_features)
    walk = Walk(matter, selector, generating, stream.describe(), table.title)
    walk.settings = _settings(deciding, generating, missing, max_candidates, max_features, max_seconds)
    try:
        walk.go(max_seconds, max_candidates, checkpoint, output.quiet)
    except TamisError as error:
        if walk.n_offered:
            output.finish(walk, str(error))
        raise
    output.finish(walk)
    return INTERRUPTED if walk.ended == "interrupted" else 0


def _settings(deciding: _Deciding, generating: Generating, missing: str, *budget: Any) -> dict[str, Any]:
    """Return the options that were given, by the names they have on the command line."""
    found: dict[str, Any] = {}
    for group in (deciding, generating):
        found.update(vars(group))
    found["missing"] = missing
    found.update(zip(("max_candidates", "max_features", "max_seconds"), budget, strict=True))
    usual = {"rule": None, "missing": "mean", "seed": 0}
    return {n: v for n, v in found.items() if v is not None and v is not False and v != usual.get(n, ...)}


class Walk:
    """A selector that is offered the candidates of a table.

    Attributes
    ----------
    matter : Matter
    selector : ColumnSelector
    stages : list of (int, str)
        From which candidate on which kind was offered.
    ended : str
        Why it came to an end.
    seconds : float
    """

    def __init__(
        self, matter: Matter, selector: Any, generating: Generating, source: dict[str, Any], title: str
    ) -> None:
        self.matter, self.selector, self.generating = matter, selector, generating
        self.source, self.title = source, title
        self.settings: dict[str, Any] = {}
        self.stages: list[tuple[int, str]] = []
        self.ended, self.seconds = "", math.nan
        self._stream: Any = None

    @property
    def n_offered(self) -> int:
        """How many candidates were offered."""
        return int(getattr(self.selector, "n_offered_", 0))

    def go(
        self, max_seconds: float | None, max_candidates: int | None, checkpoint: str | None, quiet: bool
    ) -> None:
        """Offer candidates until they end, the budget does, or Ctrl-C is pressed."""
        from tamis.columns.generators import FromIterable, explore

        columns = self.matter.columns
        whole = self.matter.rule.kind == "stepwise" and self.generating.names() == ["Originals"]
        self._stream = self.generating.stream(columns)
        if whole and not self.generating.shuffle and checkpoint is None:  # the search among all at once
            self._stream = FromIterable([(columns.names, columns.X)])
        console = terminal(stderr=True)
        n_known, began = 0, time.perf_counter()
        with (
            warnings_in_one_line(console),
            _progress(self, max_seconds, max_candidates, quiet) as show,
        ):

            def note(progress: Progress) -> None:
                nonlocal n_known
                kind = _STAGES.get(progress.stage, progress.stage)
                if not self.stages or self.stages[-1][1] != kind:
                    self.stages.append((n_known + 1, kind))
                n_known = progress.n_candidates
                show(progress, kind)

            try:
                found = explore(
                    self.selector, self._stream, self.matter.y, max_seconds=max_seconds,
                    max_candidates=max_candidates, on_step=note, checkpoint=checkpoint,
                )  # fmt: skip
            finally:
                self.seconds = time.perf_counter() - began
        self.ended, self.seconds = found.ended, found.seconds

    def expected(self) -> int:
        """Return how many candidates there will be, as far as can be told."""
        columns = self.matter.columns
        parents = sum(name in columns.index for name in self.selector.selected_)
        return self.generating.expected(columns.n_columns, parents)

    def recipes(self) -> Any:
        """Return how the accepted features are made."""
        return self._stream.recipes(self.selector)

    def coefficients(self) -> dict[str, float] | None:
        """Return the coefficient of each accepted feature, if the rule fits a model."""
        from tamis.columns.coefficients import coefficients

        names = self.selector.get_feature_names_out().tolist()
        if not names:
            return None
        y = self.matter.y
        made = self.recipes().transform(
            self.matter.columns.X if self.matter.columns.is_sparse else self._frame()
        )
        found = coefficients(self.selector, made, y)
        return None if found is None else dict(zip(names, found.tolist(), strict=True))

    def _frame(self) -> Any:
        """Return the columns that the accepted features need, by name."""
        import pyarrow as pa

        recipes, columns = self.recipes(), self.matter.columns
        needed = set().union(*(recipes[name].needs() for name in recipes))
        return pa.table({name: columns.column(name) for name in columns.names if name in needed})

    def speaks_for(self) -> str:
        """Return what a positive coefficient says."""
        if self.matter.model != "logistic":
            return ""
        return f"Positive coefficients speak for {self.selector.classes_[1]!s}."

    @property
    def heading(self) -> str:
        """What was done with what."""
        where = "standard input" if self.title == "-" else self.title
        return f"{self.matter.rule.name} on {where}"

    @property
    def detail(self) -> str:
        """How many rows and columns there were, and what was made of them."""
        matter = self.matter
        parts = [f"{len(matter.y):,} rows, {matter.n_given:,} column{'s' * (matter.n_given > 1)}"]
        if matter.texts:
            n = sum(map(len, matter.texts.values()))
            names = ", ".join(list(matter.texts)[:3]) + (" ..." if len(matter.texts) > 3 else "")
            parts.append(f"text as {n:,} column{'s' * (n > 1)} of 0 and 1 ({names})")
        model = f"{matter.model} model {matter.guess}" if matter.model else matter.guess
        return "; ".join([*parts, model.strip()])

    def why_ended(self) -> str:
        """Return why there were no more candidates."""
        return {
            "exhausted": "no more candidates", "max_candidates": "--max-candidates", "max_seconds": "--max-seconds",
            "interrupted": "interrupted",
        }.get(self.ended, self.ended)  # fmt: skip


@contextmanager
def _progress(
    walk: Walk, max_seconds: float | None, max_candidates: int | None, quiet: bool
) -> Iterator[Any]:
    """Yield a function that shows how far a search is, on standard error."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = terminal(stderr=True)
    shown = console.is_terminal and not console.is_dumb_terminal and not quiet
    bar = BarColumn(complete_style="cyan", finished_style="cyan", pulse_style="cyan")
    parts = [bar, TaskProgressColumn(), TextColumn("{task.description}"), TimeRemainingColumn()]
    said = time.monotonic()
    with Progress(*parts, console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task("the first candidates", total=None)

        def show(step: Any, kind: str) -> None:
            nonlocal said
            expected = walk.expected()
            share = step.n_candidates / max(min(expected, max_candidates or expected), step.n_candidates, 1)
            if max_seconds is not None:
                share = max(share, min(step.seconds / max_seconds, 1.0))
            text = f"{step.n_candidates:,} candidates, {step.n_selected:,} accepted ({kind})"
            if shown:
                progress.update(task, description=text, total=1.0, completed=share)
            elif not quiet and time.monotonic() - said > 10:
                said = time.monotonic()
                console.print(f"{share:4.0%}  {text}")

        yield show
