"""`tamis columns`: streamwise feature selection, which accepts or rejects each feature when it is offered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer

from tamis.cli.candidates import MOST_TEXTS, RULES, CandidateOptions, ColumnTask, Rule, find_rule
from tamis.cli.failure import INTERRUPTED, MisuseError
from tamis.cli.options import OUTPUT, AsJSON, Force, Quiet, command
from tamis.cli.output import Output
from tamis.cli.reading import Reading
from tamis.cli.walk import Walk, read_groups
from tamis.errors import TamisError


@dataclass
class _Reading(Reading):
    """How features are accepted.

    Parameters
    ----------
    missing : HOW
        Missing numbers: mean of the column (with a note), or error.
    """

    panel: ClassVar[str] = "Reading the file"
    missing: str = "mean"


@dataclass
class _RuleOptions:
    """How features are accepted.

    Parameters
    ----------
    rule : NAME
        A spending rule (alpha-investing, lord++, saffron ...), aic, bic, ric, stepwise-bic ..., grafting, osfs,
        fast-osfs, saola, ofs-density, ofs-a3m or gfsfs.
    model : NAME
        linear, logistic, multinomial or poisson. [default: chosen from the label]
    target_fdr : SHARE
        False discovery rate of the accepted features, for a spending rule. [default: 0.05]
    initial_wealth : SHARE
        Initial wealth of alpha-investing, in place of --target-fdr; 0.5 in the paper.
    payout : SHARE
        Payout of alpha-investing per accepted feature.
    robust : bool
        Use tests that are valid under heteroscedastic noise.
    release : SHARE
        Drop an accepted feature if its p-value, given later ones, exceeds this, such as 0.05.
    groups : WHAT
        Decide on groups of columns: text (each text column), prefix (names up to _; prefix:. up to a dot), or a JSON or
        CSV file. For gfsfs and spending rules.
    """

    panel: ClassVar[str] = "Deciding"
    rule: Annotated[str, typer.Option(autocompletion=lambda: list(RULES))] = "alpha-investing"
    model: str | None = None
    target_fdr: float | None = None
    initial_wealth: float | None = None
    payout: float | None = None
    robust: bool = False
    release: float | None = None

    groups: str | None = None

    def get_rule(self) -> Rule:
        """Return the rule; raise for options that it does not use."""
        rule = find_rule(self.rule)
        own = self.initial_wealth is not None or self.payout is not None
        if own and rule.name != "alpha-investing":
            raise MisuseError(
                f"--initial-wealth and --payout are for --rule alpha-investing, not for {rule.name}."
            )
        if own and self.target_fdr is not None:
            raise MisuseError("Give either --target-fdr, or --initial-wealth and --payout.")
        for name, is_given in (
            ("--target-fdr", self.target_fdr is not None),
            ("--robust", self.robust),
            ("--release", self.release is not None),
        ):
            if is_given and rule.kind != "spending":
                raise MisuseError(f"{name} is for spending rules, not for {rule.name}.")
        if self.groups is not None and not rule.has_groups:
            raise MisuseError(f"--groups is for gfsfs and spending rules, not for {rule.name}.")
        if self.groups is not None and self.release is not None:
            raise MisuseError("--release drops single features: omit it, or --groups.")
        return rule

    def read_groups(self, matter: ColumnTask) -> dict[str, list[str]] | None:
        """Return the columns of each group; None if there is none."""
        if self.groups is None:
            return None
        return read_groups(self.groups, matter.columns.names, matter.texts) or None

    def selector(
        self,
        rule: Rule,
        model: str,
        missing: str,
        seed: int,
        max_features: int | None,
        groups: dict[str, list[str]] | None,
    ) -> Any:
        """Return the selector, not fitted yet."""
        target = 0.05 if self.target_fdr is None else self.target_fdr
        own = self.initial_wealth is not None or self.payout is not None
        return rule.make(
            model,
            target_fdr=None if own else target,
            initial_wealth=self.initial_wealth,
            payout=self.payout,
            variance="robust" if self.robust else None,
            release=self.release,
            missing="refuse" if missing == "error" else "mean",
            random_state=seed,
            max_features=max_features,
            groups=groups,
        )


@command(panel="Budget")
def columns(
    *,
    deciding: _RuleOptions,
    generating: CandidateOptions,
    max_candidates: Annotated[int | None, typer.Option(min=1)] = None,
    max_features: Annotated[int | None, typer.Option(min=1)] = None,
    max_seconds: float | None = None,
    checkpoint: str | None = None,
    reading: _Reading,
    top: Annotated[int, typer.Option(min=1), OUTPUT] = 20,
    save: Annotated[str | None, OUTPUT] = None,
    report: Annotated[str | None, OUTPUT] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> int:
    """Accept or reject features one by one (streaming features).

    The features are the columns, and features made from them.

    Parameters
    ----------
    max_candidates : N
        Try at most this many candidates.
    max_features : N
        Accept at most this many features.
    max_seconds : S
        Stop after this many seconds.
    checkpoint : FILE
        Save the search to this file; if it exists, continue from it.
    top : N
        Number of accepted features to show.
    save : FILE
        Save the selector and the recipes of its features.
    report : FILE
        Write an HTML report: wealth, p-values, accepted features.

    Examples
    --------
    `tamis columns genes.csv --label type --report genes.html`

    `tamis columns houses.parquet --label price --logs --interactions --target-fdr 0.1`

    `tamis columns words.svm --rule saola --json`

    `tamis columns machines.parquet --label state --rule gfsfs --groups prefix`
    """
    from tamis._validation import check_number
    from tamis.cli.train import Table

    rule = deciding.get_rule()
    if max_seconds is not None:
        check_number("max_seconds", max_seconds, low=0.0, open_low=True)
    if max_features is not None and rule.kind in ("classes", "lasso"):
        raise MisuseError(f"--rule {rule.name} may drop features again: omit --max-features.")
    if deciding.groups is not None:
        _check_groups(generating, max_candidates, checkpoint)
    if reading.missing not in ("mean", "error"):
        raise MisuseError(f"--missing {reading.missing} is not known here: write mean or error.")
    output = Output(as_json, quiet, report, {"--save": save, "--checkpoint": checkpoint}, top=top)
    missing, reading.missing = reading.missing, "keep" if reading.missing == "mean" else "error"
    output.check(reading.inputs, force)
    stream = reading.open(classes=False, max_texts=MOST_TEXTS, quiet=quiet)
    table = Table.read(stream)
    matter = ColumnTask(table, str(stream.describe().get("label", "the label")), rule, deciding.model)
    groups = deciding.read_groups(matter)
    selector = deciding.selector(rule, matter.model, missing, generating.seed, max_features, groups)
    walk = Walk(matter, selector, generating, stream.describe(), table.title, groups)
    walk.settings = _settings(deciding, generating, missing, max_candidates, max_features, max_seconds)
    try:
        walk.go(max_seconds, max_candidates, checkpoint, output.quiet)
    except TamisError as error:
        if walk.n_offered:
            _finish(walk, output, str(error))
        raise
    _finish(walk, output)
    return INTERRUPTED if walk.ended == "interrupted" else 0


def _finish(walk: Walk, output: Output, error: str | None = None) -> None:
    """Show the result, and write it to the requested files."""
    import tamis

    matter = walk.matter
    saved = {"selector": walk.selector, "recipes": walk.recipes(), "texts": matter.texts}
    output.finish(
        walk.result(error), {"selector": (output.files["--save"], lambda place: tamis.save(saved, place))},
        stream=walk.source, rule=matter.rule.name, model=matter.model or None, options=walk.settings,
        n_rows=len(matter.y), n_columns=matter.columns.n_columns, texts=matter.texts, ended=walk.ended or None,
        error=error,
    )  # fmt: skip


def _check_groups(generating: CandidateOptions, max_candidates: int | None, checkpoint: str | None) -> None:
    """Raise for options that would offer further candidates, or only a part of a group."""
    if generating.names() != ["Originals"] or generating.shuffle:
        raise MisuseError(
            "--groups offers the columns of the file in their order: omit --pca, --powers, --logs, --interactions,"
            " --ratios and --shuffle."
        )
    for name, value in (("--max-candidates", max_candidates), ("--checkpoint", checkpoint)):
        if value is not None:
            raise MisuseError(f"{name} can end within a group: omit it, or --groups.")


def _settings(
    deciding: _RuleOptions, generating: CandidateOptions, missing: str, *budget: Any
) -> dict[str, Any]:
    """Return the given options, by their names on the command line."""
    mapping: dict[str, Any] = {}
    for group in (deciding, generating):
        mapping.update(vars(group))
    mapping["missing"] = missing
    mapping.update(zip(("max_candidates", "max_features", "max_seconds"), budget, strict=True))
    usual = {"rule": None, "missing": "mean", "seed": 0}
    return {n: v for n, v in mapping.items() if v is not None and v is not False and v != usual.get(n, ...)}
