"""`tamis acquire`: a saved model asks for one value at a time, then decides; or is replayed on a file of records."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.cli.dialogue import (
    Dialogue,
    ImplausibleValueError,
    amount,
    decision_text,
    label_text,
    rounded,
    safe_repr,
)
from tamis.cli.failure import MisuseError
from tamis.cli.options import OUTPUT, Force, Panel, command
from tamis.cli.output import Output, terminal, write_csv
from tamis.cli.reading import ReadingOptions
from tamis.cli.train import Table

if TYPE_CHECKING:
    from rich.console import Console

    from tamis.cells import CellClassifier
    from tamis.cells.records import RecordsResult
    from tamis.streams import Stream

__all__ = ["acquire"]


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


@command()
def acquire(
    model: Annotated[str, typer.Argument()],
    file: Annotated[str | None, typer.Argument()] = None,
    *,
    records: _Records,
    budget: float | None = None,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json"), OUTPUT] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q"), OUTPUT] = False,
    serve: Annotated[bool, Panel("Page")] = False,
    port: Annotated[int, Panel("Page")] = 0,
    wording: Annotated[str | None, Panel("Page")] = None,
    unavailable: Annotated[list[str] | None, Panel("Values")] = None,
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
    budget : PRICE
        Largest total price of a case.
    as_json : bool
        Read and write JSON lines, for programs.
    quiet : bool
        Show only the decision, without the class probabilities before it.
    serve : bool
        Ask on a local web page instead, for any number of sessions.
    port : N
        Port of the page; 0: any free port.
    wording : JSON
        JSON or CSV file with the text of the question for each column.
    unavailable : NAME
        A column that cannot be acquired for this case; may be repeated.

    Notes
    -----
    At each question: a value; `?` or nothing if it is unavailable; `-` if it was acquired without a result, and paid
    for; `name=value` to give another value unasked; `q` to decide now. A value outside the range of the training rows,
    and a new category, are asked for once more.

    With --json: lines such as {"value": 3.5}, {"value": null}, {"outcome": "no result"}, {"feature": "age", "value":
    40} and {"stop": true} on standard input, one line of JSON for each on standard output. The answer to a "question"
    about a value is the same line with "confirmed": true, or with a declared "unit".
    """
    if not 0 <= port < 65536:
        raise MisuseError(f"--port {port} must be from 0 to 65535.")
    if not serve and (port or wording is not None):
        raise MisuseError("--port and --wording are for the page: add --serve.")
    if serve and as_json:
        raise MisuseError("--serve and --json are mutually exclusive: give one of them.")
    if budget is not None and not 0 <= budget < math.inf:
        raise MisuseError(f"--budget {budget:g} must be 0 or more, and finite.")
    if file is not None and serve:
        raise MisuseError(f"--serve asks about one case at a time: omit {file}, or --serve.")
    if file is None and (records.out or records.tree or records.report):
        raise MisuseError("--out, --tree and --report are for records: give a FILE with one record per line.")
    records.check()
    dialogue = Dialogue.load(model, unavailable or (), budget)
    if file is not None:
        output = Output(as_json, quiet, records.report, {"--out": records.out, "--tree": records.tree})
        output.check([model, file], force)
        _replay(dialogue, file, records, budget, output)
    elif serve:
        _serve(dialogue, wording, port)
    elif as_json:
        _run_json(dialogue)
    else:
        _run_interactive(dialogue, quiet)


# -- records -----------------------------------------------------------------------------------------------


def _replay(dialogue: Dialogue, file: str, reading: _Records, budget: float | None, output: Output) -> None:
    """Replay the policy on the records of a file."""
    from tamis.cells.records import replay_records

    model = dialogue.model
    table = Table.read(_records(model, file, reading))
    lacking = [name for name in map(str, model._column_names()) if name not in (table.names or ())]
    if lacking and hasattr(model, "feature_names_in_"):
        raise MisuseError(
            f"{file} has no column {lacking[0]!r}, which the model was trained with: add it, empty where unknown."
        )
    rows = table.rows(slice(None))
    rows = rows.select(list(map(str, model.feature_names_in_))) if hasattr(rows, "select") else rows
    labels = None if reading.label is None else table.y
    result = replay_records(
        model, rows, labels, budget=budget, unavailable=dialogue.unavailable, title=table.title
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
    label, options, known = (
        reading.label_column(),
        reading.user_options(),
        set(map(str, model._column_names())),
    )
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


def _serve(dialogue: Dialogue, wording: str | None, port: int) -> None:
    """Serve the page until Ctrl-C."""
    import threading

    from tamis.cli.output import note
    from tamis.cli.question_page import QuestionPage, read_wording

    texts = {} if wording is None else read_wording(wording)
    if unknown := sorted(set(texts) - set(map(str, dialogue.model._column_names()))):
        note(f"--wording {wording} has a question for {unknown[0]!r}, which is not a column of the model.")
    try:
        page = QuestionPage(dialogue.model, texts, port, unavailable=dialogue.unavailable)
    except OSError as error:
        raise MisuseError(
            f"--port {port} cannot be used ({error.strerror}): choose another one, or 0."
        ) from None
    note(f"the page is at {page.address}; Ctrl-C ends it")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        page.close()


# -- for programs ------------------------------------------------------------------------------------------


def _run_json(dialogue: Dialogue) -> None:
    dialogue.advice = "enter null"
    _print_line(_status(dialogue))
    for line in filter(str.strip, sys.stdin):
        try:
            stop = _handle_message(dialogue, line)
        except ImplausibleValueError as asks:
            _print_line(
                {
                    "question": str(asks), "feature": asks.feature, "value": asks.value, "units": asks.units,
                    "next": dialogue.session.next_feature,
                }
            )  # fmt: skip
            continue
        except (ValueError, TypeError) as error:
            _print_line({"error": " ".join(str(error).split()), "next": dialogue.session.next_feature})
            continue
        if stop or dialogue.session.finished:
            break
        _print_line(_status(dialogue))
    _print_line({**_status(dialogue), "finished": True, "path": dialogue.path()})


def _handle_message(dialogue: Dialogue, line: str) -> bool:
    """Handle a line of input; return whether it requests to stop."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(
            f'A line is not valid JSON: write one object, such as {{"value": 3.5}}, on a line, not'
            f" {safe_repr(line.strip())}."
        ) from None
    if not isinstance(message, dict) or not {"value", "outcome", "stop", "observed"} & set(message):
        raise ValueError('A line must be an object with "value", "outcome", "stop" or "observed".')
    if "observed" in message:
        dialogue.session = dialogue.open(message)
    else:
        dialogue.handle(message)
    return bool(message.get("stop", False))


def _status(dialogue: Dialogue) -> dict[str, Any]:
    session = dialogue.session
    options = dialogue.categories.get("" if session.next_feature is None else session.next_feature)
    return {
        "next": session.next_feature, "price": session.next_cost, **({"values": options} if options else {}),
        "decision": session.decision, **({} if session.deviation is None else {"deviation": session.deviation}),
        "posterior": rounded(session.posterior), "cost": session.cost,
        "finished": session.finished, **session.state(),
    }  # fmt: skip


def _print_line(message: dict[str, Any]) -> None:
    line = json.dumps(message, ensure_ascii=False, default=str)
    print(line if line.isprintable() else json.dumps(message, default=str), flush=True)


# -- for people --------------------------------------------------------------------------------------------


def _run_interactive(dialogue: Dialogue, quiet: bool) -> None:
    console, session = terminal(), dialogue.session
    names = [dialogue.model.name_of(k) for k in range(len(dialogue.model.candidates_))]
    console.print(
        f"{type(dialogue.model).__name__}, at most {len(names):,} value{'s' * (len(names) != 1)}",
        style="bold",
    )
    console.print(
        "A value; ? if it is unavailable, - if it has no result; name=value gives another one; q decides now.",
        style="dim",
    )
    if not quiet:
        _bars(console, session.posterior, None)
    while session.next_feature is not None:
        before = session.posterior
        answer = _ask(console, dialogue)
        if answer in ("q", None):
            break
        try:
            _answer(dialogue, answer)
        except (ValueError, TypeError) as error:
            console.print(f"  {' '.join(str(error).split())}", style="yellow", markup=False)
            continue
        if not quiet:
            _bars(console, session.posterior, before)
    _show_decision(console, dialogue)


def _ask(console: Console, dialogue: Dialogue) -> str | None:
    """Return the answer; None at the end of the input."""
    feature, price = dialogue.session.next_feature, dialogue.session.next_cost
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
    console.print(
        f"Decision: {decision_text(session)}, paid {amount(dialogue.model, session.cost)}",
        style="bold",
        markup=False,
    )
    if not steps and session.finished:
        follows = (
            "decision follows the class proportions"
            if session.deviation is None
            else "prediction is the mean"
        )
        console.print(f"No value is worth its cost: the {follows}.")
    first = str(session.decision) if session.deviation is None else ""
    for step in steps:
        value = step["outcome"] if step["value"] is None else step["value"]
        paid = amount(dialogue.model, step["cost"]) if step["paid"] else "-"
        after = f"  {first} {step['posterior'][first]:.3f}" if first else ""
        console.print(f"  {step['feature']} = {value}  paid {paid}{after}", markup=False)
