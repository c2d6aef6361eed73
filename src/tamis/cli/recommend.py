"""`tamis recommend`: a selector and a number of features, compared on the first rows of a file."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from tamis.catalog import find_learner
from tamis.cli.failure import MisuseError
from tamis.cli.options import OUTPUT, AsJSON, Force, Quiet, check_word, command
from tamis.cli.output import Output, progress
from tamis.cli.reading import TargetReading, stream_name
from tamis.cli.warm_up import compile_missing


@command(panel="Comparison")
def recommend(
    *,
    max_rows: Annotated[int | None, typer.Option(min=200)] = None,
    task: str | None = None,
    learner: str = "all",
    n_draws: Annotated[int, typer.Option(min=1)] = 3,
    reading: TargetReading,
    report: Annotated[str | None, OUTPUT] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> None:
    """Recommend a selector and a number of features for a file.

    On the first rows, run selectors, sizes and learners beside all features; print a command to copy.

    Parameters
    ----------
    max_rows : N
        Number of first rows to use; by default 5,000, and more if a class is rare.
    task : WHAT
        Kind of label: classification (classes) or regression (a number). [default: that of the learner, or
        classification]
    learner : NAME
        The learner to use (see tamis list), or all: logistic, perceptron, naive-bayes, adaptive-random-forest and
        lightgbm are compared (for numbers sgd-regressor, least-squares and lightgbm-regressor), and one is recommended;
        hist-boosting where LightGBM is not installed.
    n_draws : N
        Number of random subsets of the recommended size.
    report : FILE
        Write an HTML page with the candidates.

    Examples
    --------
    `tamis recommend sensors.csv --label state`

    `tamis recommend posts.csv --label python --label sql`

    `tamis recommend sensors.csv --label state --max-rows 20000 --learner logistic --report which.html`
    """
    named = None if learner == "all" else find_learner(learner)
    numbers = task == "regression" if named is None else "regression" in named.targets
    if task is not None:
        check_word("--task", task, ("classification", "regression"))
        if named is not None and numbers != (task == "regression"):
            predicted = "numbers" if numbers else "classes"
            raise MisuseError(
                f"--learner {learner} predicts {predicted}: choose another one for --task {task}."
            )
    output = Output(as_json, quiet, report)
    output.check(reading.inputs, force)
    labels: list[Any] = reading.targets()
    given = {"learner": None if named is None else learner, "task": task}
    number_of = reading.numbers_of(labels, given, numbers=numbers)
    streams = {
        label: reading.of(label).open(classes=not number_of.get(label, numbers), quiet=quiet)
        for label in labels or [None]
    }
    if named is None and not numbers:
        compile_missing("recommend", quiet=quiet)
    from tamis.evaluate.recommendation import Recommendation, TargetsRecommendation
    from tamis.evaluate.recommendation import recommend as compare

    found: dict[str | None, Recommendation] = {}
    with progress(quiet) as show:
        for label, stream in streams.items():
            before, of = len(found), f" for {label}" if labels else ""

            def share_of_all(share: float, before: int = before, of: str = of) -> None:
                show((before + share) / len(streams), f"comparing selectors{of}")

            found[label] = compare(
                stream,
                task="regression" if number_of.get(label) else task,
                learner=None if named is None else named.key,
                max_rows=max_rows,
                n_draws=n_draws,
                on_progress=share_of_all,
            )

    def run(names: list[str]) -> str:
        return f"tamis run {shlex.join(reading.of_labels(names).words())}"

    result: Any
    if labels:
        result = TargetsRecommendation({label: found[label] for label in labels}, run)
        closing = "\n".join(result.commands())
    else:
        (result,) = found.values()
        result.command = f"tamis run {shlex.join(reading.words())}"
        closing = f"{result.command} {result.arguments()}"
    name = reading.dataset or stream_name(str(reading.file))
    several = f" and {len(labels)} targets" if labels else ""
    output.finish(result, title=f"Which selector for {name}{several}?", closing=closing)
