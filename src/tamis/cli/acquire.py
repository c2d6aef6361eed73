"""`tamis acquire`: a saved model asks for one value at a time, then decides; or is replayed on a file of records."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from tamis._interrupts import os_errors_as
from tamis.cli.dialogue import Dialogue, ImplausibleValueError, amount, decision_text, label_text, safe_repr
from tamis.cli.failure import MisuseError
from tamis.cli.options import OUTPUT, Force, command
from tamis.cli.output import Output, note, terminal, write_csv
from tamis.cli.reading import ReadingOptions
from tamis.cli.train import Table

if TYPE_CHECKING:
    from rich.console import Console

    from tamis.cells import CellClassifier
    from tamis.cells.records import RecordsResult
    from tamis.streams import Stream

_BAR, _MOST_CLASSES = 24, 6


@dataclass
class _Records(ReadingOptions):
    """How a file of records is read, and what is written about them.

    Parameters
    ----------
    depth : N
        Largest number of questions in the tree.
    out : FILE
        Write the policy of each record as CSV.
    tree : FILE
        Write a decision tree for paper (.html or .svg), with its cost and error on the records.
    report : FILE
        Write an HTML report on the records.
    """

    depth: Annotated[int, typer.Option(min=1)] = 4
    out: Annotated[str | None, OUTPUT] = None
    tree: Annotated[str | None, OUTPUT] = None
    report: Annotated[str | None, OUTPUT] = None

    def check(self) -> None:
        """Raise if options are invalid together."""
        if self.tree is not None and self.label is None:
            raise MisuseError(
                f"--tree {self.tree} needs the outcome of each record: name its column with --label."
            )
        if self.tree is not None and Path(self.tree).suffix.lower() not in (".html", ".svg"):
            raise MisuseError(f"--tree {self.tree} must end in .html or .svg.")


@dataclass
class _Case:
    """The case that is asked about.

    Parameters
    ----------
    budget : PRICE
        Largest total price of a case.
    unavailable : NAME
        A column that cannot be acquired; may be repeated.
    case : NAME
        The name of the case, for the log.
    log : FILE
        Append each answer and decision to this file, as lines of JSON.
    """

    panel: ClassVar[str] = "Case"

    budget: float | None = None
    unavailable: list[str] | None = None
    case: str = ""
    log: str | None = None

    def dialogue(self, model: str) -> Dialogue:
        """Return the dialogue of a saved model."""
        if self.budget is not None and not 0 <= self.budget < math.inf:
            raise MisuseError(f"--budget {self.budget:g} must be 0 or more, and finite.")
        dialogue = Dialogue.load(model, self.unavailable or (), self.budget, case=self.case)
        if self.log is not None:
            from tamis.persistence.journal import Journal

            dialogue.log = Journal(self.log)
        return dialogue


@dataclass
class _Serving:
    """A page for any number of cases.

    Parameters
    ----------
    serve : bool
        Ask on a local web page instead, with a JSON interface for programs (/openapi.json).
    port : N
        Port of the page; 0: any free port.
    host : ADDRESS
        Address of the page; by default that of this machine alone.
    wording : JSON
        JSON or CSV file with the text of the question for each column.
    """

    panel: ClassVar[str] = "Page"

    serve: bool = False
    port: int = 0
    host: str = "127.0.0.1"
    wording: str | None = None

    def check(self) -> None:
        """Raise if options are invalid together."""
        if not 0 <= self.port < 65536:
            raise MisuseError(f"--port {self.port} must be from 0 to 65535.")
        if not self.serve and (self.port or self.wording is not None or self.host != "127.0.0.1"):
            raise MisuseError("--port, --host and --wording are for the page: add --serve.")


@command()
def acquire(
    model: Annotated[str, typer.Argument()],
    file: Annotated[str | None, typer.Argument()] = None,
    *,
    records: _Records,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json"), OUTPUT] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q"), OUTPUT] = False,
    serve: _Serving,
    case: _Case,
) -> None:
    """Classify one case, asking for one value at a time.

    It asks while the next value is worth its cost. With a FILE of records, it says which values it would acquire for
    each, and estimates the cost and the error of doing so.

    Parameters
    ----------
    model : MODEL
        A model written by tamis train or tamis.save.
    file : FILE
        Records with the columns of the model: CSV, JSON lines, Parquet ...; with --label, cost and error are estimated.
    as_json : bool
        Read and write JSON lines, for programs.
    quiet : bool
        Show only the decision, without the class probabilities before it.

    Notes
    -----
    At each question: a value; `?` or nothing if it is unavailable; `-` if it was acquired without a result, and paid
    for; `name=value` to give another value unasked; `u` to undo the last answer; `w` for the best questions and their
    reasons; `q` to decide now. A value outside the range of the training rows,
    and a new category, are asked for once more.

    With --json: lines such as {"value": 3.5}, {"value": null}, {"outcome": "no result"}, {"feature": "age", "value":
    40}, {"undo": true} and {"stop": true} on standard input, one line of JSON for each on standard output. The answer
    to a "question" about a value is the same line with "confirmed": true, or with a declared "unit".
    """
    output = Output(
        as_json, quiet, records.report, {"--out": records.out, "--tree": records.tree, "--log": case.log}
    )
    output.check([model] if file is None else [model, file], force)
    serve.check()
    if serve.serve and as_json:
        raise MisuseError("--serve and --json are mutually exclusive: give one of them.")
    if file is not None and (serve.serve or case.log):
        raise MisuseError(f"--serve and --log are for single cases: omit {file}, or these options.")
    if file is None and (records.out or records.tree or records.report):
        raise MisuseError("--out, --tree and --report are for records: give a FILE with one record per line.")
    records.check()
    dialogue = case.dialogue(model)
    if file is not None:
        _replay(dialogue, file, records, output)
    elif serve.serve:
        _serve(dialogue, serve, model)
    else:
        dialogue.record("open")
        (_run_json if as_json else partial(_run_interactive, quiet=quiet))(dialogue)
        dialogue.record("decision")


# -- records -----------------------------------------------------------------------------------------------


def _replay(dialogue: Dialogue, file: str, reading: _Records, output: Output) -> None:
    """Replay the policy on the records of a file."""
    import numpy as np

    from tamis.cells.records import replay_records

    model = dialogue.model
    table = Table.read(_records(model, file, reading))
    lacking = [name for name in map(str, model._column_names()) if name not in (table.names or ())]
    if lacking and hasattr(model, "feature_names_in_"):
        raise MisuseError(
            f"{file} has no column {lacking[0]!r}, which the model was trained with: add it, empty where unknown."
        )
    rows = table.rows(np.arange(len(table.y)))
    rows = rows.select(list(map(str, model.feature_names_in_))) if hasattr(rows, "select") else rows
    labels = None if reading.label is None else table.y
    result = replay_records(
        model, rows, labels, budget=dialogue.budget, unavailable=dialogue.unavailable, title=table.title
    )

    def draw(place: str) -> None:
        from tamis.cells.paper_tree import PaperTree

        PaperTree(model, rows, labels, depth=reading.depth, title=table.title).write(place)

    writers = {
        "policy": (output.files["--out"], lambda place: _write_policy(result, place)),
        "tree": (output.files["--tree"], draw),
    }
    output.finish(result, writers)


def _records(model: CellClassifier, file: str, reading: ReadingOptions) -> Stream:
    """Open a file of records: the columns of the model, and the label if there is one."""
    from tamis.streams import open_file
    from tamis.streams.files import TableStream

    table = reading.table(file)
    if table is None:
        return open_file(
            file, format=reading.format, n_features=model.n_features_in_, zero_based=reading.zero_based
        )
    label = reading.label_column()
    options = reading.user_options()
    known = set(map(str, model._column_names()))
    times = table.times() if reading.times == "parts" else {}
    unused = [
        name for name in table.names()
        if name != label and not known & {name, *(f"{name}.{part}" for part in times.get(name, ()))}
    ]  # fmt: skip
    texts = [str(name) for name in model.categories_ if str(name) in table.names()]
    options |= {"categorical": [*options["categorical"], *texts], "drop": [*options["drop"], *unused]}
    return TableStream(table, label, **options)


def _write_policy(result: RecordsResult, place: str) -> None:
    columns = result.records()
    columns["acquired"] = [";".join(map(str, names)) for names in columns["acquired"]]
    write_csv(place, columns)


# -- a page ------------------------------------------------------------------------------------------------


def _serve(dialogue: Dialogue, serving: _Serving, path: str) -> None:
    """Serve the page until Ctrl-C."""
    import threading

    from tamis.cli.question_page import QuestionPage, read_wording

    texts = {} if serving.wording is None else read_wording(serving.wording)
    if unknown := sorted(set(texts) - set(map(str, dialogue.model._column_names()))):
        note(
            f"--wording {serving.wording} has a question for {unknown[0]!r}, which is not a column of the model."
        )
    problem = f"--port {serving.port} of {serving.host} cannot be used"
    with os_errors_as(MisuseError, problem, "choose another one, or 0"):
        page = QuestionPage(
            dialogue.model, texts, serving.port, unavailable=dialogue.unavailable, budget=dialogue.budget,
            title=" · ".join(filter(None, (dialogue.model.target_name_, Path(path).name))), host=serving.host,
            log=dialogue.log,
        )  # fmt: skip
    if serving.host not in ("127.0.0.1", "localhost"):
        note("everyone who reaches that address can use the model and read open sessions.")
    note(f"the page is at {page.address}, its JSON interface at {page.address}openapi.json; Ctrl-C ends it")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        page.close()


# -- for programs ------------------------------------------------------------------------------------------


def _run_json(dialogue: Dialogue) -> None:
    dialogue.advice = "enter null"
    _print_line(dialogue.status())
    for line in filter(str.strip, sys.stdin):
        try:
            stop = _handle_message(dialogue, line)
        except ImplausibleValueError as asks:
            _print_line(
                {
                    "question": str(asks), "feature": asks.feature, "value": asks.value, "units": asks.units,
                    "next": dialogue.asks[0],
                }
            )  # fmt: skip
            continue
        except (ValueError, TypeError) as error:
            _print_line({"error": " ".join(str(error).split()), "next": dialogue.asks[0]})
            continue
        if stop or dialogue.finished:
            break
        _print_line(dialogue.status())
    _print_line({**dialogue.status(), "finished": True, "path": dialogue.path()})


def _handle_message(dialogue: Dialogue, line: str) -> bool:
    """Handle a line of input; return whether it requests to stop."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(
            f'A line is not valid JSON: write one object, such as {{"value": 3.5}}, on a line, not'
            f" {safe_repr(line.strip())}."
        ) from None
    known = ("value", "values", "outcome", "observed", "undo", "stop")
    if not isinstance(message, dict) or not set(known) & set(message):
        raise ValueError(f"A line must be an object with one of {', '.join(known)}.")
    if "observed" in message:
        dialogue.session = dialogue.open(message)
    elif message.get("undo"):
        dialogue.undo()
    else:
        dialogue.handle(message)
    return bool(message.get("stop", False))


def _print_line(message: dict[str, Any]) -> None:
    line = json.dumps(message, ensure_ascii=False, default=str)
    print(line if line.isprintable() else json.dumps(message, default=str), flush=True)


# -- for people --------------------------------------------------------------------------------------------


def _run_interactive(dialogue: Dialogue, quiet: bool) -> None:
    console = terminal()
    target, most = dialogue.model.target_name_, len(dialogue.model.candidates_)
    console.print(
        f"{target + ' by ' * bool(target)}{type(dialogue.model).__name__}, at most {most:,} value{'s' * (most != 1)}",
        style="bold",
    )
    console.print(
        "A value; ? if it is unavailable, - if it has no result; name=value gives another one; u undoes, w says why,"
        " q decides now.",
        style="dim",
    )
    if not quiet:
        _bars(console, dialogue.session.posterior, None)
    while not dialogue.finished:
        before = dialogue.session.posterior
        answer = _ask(console, dialogue)
        is_value = answer in [str(one) for one in dialogue.categories.get(dialogue.asks[0], ())]
        if answer is None or (answer == "q" and not is_value):
            break
        if answer == "w" and not is_value:
            _explain(console, dialogue)
            continue
        try:
            if answer == "u" and not is_value:
                dialogue.undo()
            else:
                _answer(dialogue, answer)
        except (ValueError, TypeError) as error:
            console.print(f"  {' '.join(str(error).split())}", style="yellow", markup=False)
            continue
        if not quiet:
            _bars(console, dialogue.session.posterior, before)
    _show_decision(console, dialogue)


def _ask(console: Console, dialogue: Dialogue) -> str | None:
    """Return the answer; None at the end of the input."""
    feature, price = dialogue.asks
    options = [str(one) for one in dialogue.categories.get(feature or "", [])]
    hint = f" ({', '.join(options)})" if 0 < len(options) <= 8 else ""
    hint = hint or (f" ({units[0]})" if (units := dialogue.units(feature)) else "")
    console.print(
        f"\n{feature}{hint}, for {amount(dialogue.model, price)}: ", end="", markup=False, style="cyan"
    )
    try:
        return input().strip()
    except EOFError:
        console.print()
        return None


def _explain(console: Console, dialogue: Dialogue) -> None:
    """Show the best questions, with their prices and reasons."""
    for one in dialogue.best_questions():
        price = amount(dialogue.model, one["price"])
        console.print(f"  {one['feature']}, for {price}. {one['reason']}", markup=False)


def _answer(dialogue: Dialogue, answer: str) -> None:
    feature, equals, value = (part.strip() for part in answer.partition("="))
    if not equals:
        feature, value = "", answer
    if value == "-":
        dialogue.no_result(feature or None)
    else:
        dialogue.observe(None if value in ("", "?") else value, feature or None)


def _bars(console: Console, posterior: dict[Any, float], before: dict[Any, float] | None) -> None:
    from tamis.terminal import bar

    likeliest = sorted(posterior, key=lambda label: -posterior[label])[:_MOST_CLASSES]
    widest = min(max(len(label_text(label)) for label in likeliest), 24)
    for label in [one for one in posterior if one in likeliest]:
        p = posterior[label]
        move = (
            ""
            if before is None or math.isclose(p, before[label], abs_tol=5e-4)
            else f"  {p - before[label]:+.3f}"
        )
        drawn = bar(p, _BAR, console.options.ascii_only)
        console.print(f"  {label_text(label)[:24]:<{widest}}  {p:.3f}  {drawn:<{_BAR}}{move}", markup=False)
    if (left := len(posterior) - len(likeliest)) > 0:
        console.print(f"  and {left} less likely classes", style="dim")


def _show_decision(console: Console, dialogue: Dialogue) -> None:
    session, steps = dialogue.session, dialogue.path()
    console.print()
    decision = f"Decision: {decision_text(session)}, paid {amount(dialogue.model, session.cost)}"
    console.print(decision, style="bold", markup=False)
    if not steps and session.finished:
        is_class = session.deviation is None
        follows = "decision follows the class proportions" if is_class else "prediction is the mean"
        console.print(f"No value is worth its cost: the {follows}.")
    first = str(session.decision) if session.deviation is None else ""
    for step in steps:
        value = step["outcome"] if step["value"] is None else step["value"]
        paid = amount(dialogue.model, step["cost"]) if step["paid"] else "-"
        after = f"  {first} {step['posterior'][first]:.3f}" if first else ""
        console.print(f"  {step['feature']} = {value}  paid {paid}{after}", markup=False)
