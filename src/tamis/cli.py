"""The command line: `tamis demo`, `tamis run`, `tamis list`, `tamis datasets`.

Exit codes: 0 all went well, 1 the data cannot be used, 2 the command was used wrongly, 130 interrupted.
Results go to standard output; progress and errors go to standard error. What a command needs is imported when it runs,
so that help and mistakes are answered at once.
"""

# No `from __future__ import annotations`: typer reads the commands' annotations, which are local to functions.

import ast
import contextlib
import difflib
import inspect
import json
import math
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import tamis
from tamis.catalog import CATALOG, LEARNERS, Entry, find, find_learner
from tamis.errors import DataError, StreamError, TamisError, UnknownNameError

if TYPE_CHECKING:
    import typer
    from rich.console import Console

    from tamis.evaluate import PrequentialResult, Step
    from tamis.streams import Stream

__all__ = ["app", "main"]

_FAILED, _MISUSED, _INTERRUPTED = 1, 2, 130
_SPELLING = {  # parameters that messages speak of -> the options that set them
    "n_features_to_select": "--select",
    "label": "--label",
    "format": "--format",
    "delimiter": "--delimiter",
    "missing": "--missing",
    "drop": "--drop",
    "drop_unlabelled": "--drop-unlabelled",
    "n_features": "--n-features",
    "protocol": "--protocol",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Examples
    --------
    >>> main(["run", "--selector", "firse", "--dataset", "electricity"])
    2
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(
            stream, "reconfigure"
        ):  # what a terminal cannot show becomes a question mark, not an error
            stream.reconfigure(errors="replace")
    try:
        code = app()(args=given, prog_name="tamis", standalone_mode=False)
        sys.stdout.flush()
        if code == _INTERRUPTED:
            saved = any(text.split("=")[0] == "--checkpoint" for text in given)
            hint = "; the same command goes on from the checkpoint" if saved else ""
            print(f"tamis: interrupted{hint}", file=sys.stderr)
        return code if isinstance(code, int) else 0
    except (BrokenPipeError, SystemExit):  # who reads our output has seen enough; rich then exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in given:
            traceback.print_exc()
        message, code = _explain(error, given)
        if message:
            print(f"tamis: {message}", file=sys.stderr)
        return code


def app() -> "typer.Typer":
    """Return the typer application."""
    try:
        import rich  # noqa: F401
        import typer
    except ImportError:
        raise ImportError("The command line needs typer and rich: pip install 'tamis[cli]'") from None
    root = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for add in (_add_root, _add_demo, _add_run, _add_list, _add_datasets):
        add(root)
    return root


# -- the commands' options -----------------------------------------------------------------------------------


def _options_of(panel: str | None) -> Callable[..., Any]:
    """Return what makes an option of that panel: from its metavar, its help and its names."""
    import typer

    def option(metavar: str | None, help: str, *names: str, **more: Any) -> Any:
        return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, **more)

    return option


def _argument(metavar: str, help: str) -> Any:
    import typer

    return typer.Argument(metavar=metavar, help=help, show_default=False)


def _keys(entries: tuple[Entry, ...]) -> Callable[[], list[str]]:
    return lambda: [entry.key for entry in entries]


_RUN_EXAMPLES = """\
Examples:

[bold]tamis run sensors.csv --label state --report sensors.html[/]

[bold]tamis run clicks.parquet --label clicked --select 20 --out results[/]

[bold]tamis run --dataset electricity --selector ofs --set learning_rate=0.5[/]

[bold]zcat big.csv.gz | tamis run - --label -1 --json > result.json[/]"""


def _add_root(root: "typer.Typer") -> None:
    import typer

    def show_version(wanted: bool) -> None:
        if wanted:
            print(f"tamis {tamis.__version__}")
            raise typer.Exit

    @root.callback(
        epilog="Begin with [bold]tamis demo[/], then try your own file: [bold]tamis run FILE --label NAME[/]"
    )
    def start(
        version: Annotated[
            bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version.")
        ] = False,
    ) -> None:
        """Sift features from data streams: which columns matter [bold]now[/]?"""


def _add_demo(root: "typer.Typer") -> None:
    plain = _options_of(None)

    @root.command(epilog="Example: [bold]tamis demo --report demo.html[/]")
    def demo(
        report: Annotated[str | None, plain("FILE", "Write an HTML report.")] = None,
        as_json: Annotated[bool, plain(None, "Print one JSON document.", "--json")] = False,
        quiet: Annotated[bool, plain(None, "Show no progress.", "--quiet", "-q")] = False,
        debug: Annotated[bool, plain(None, "Show the traceback of an error.", "--debug")] = False,
    ) -> int:
        """Watch FIRES on two and a half years of an electricity market; no network needed."""
        return _demo(_Output(report, None, None, as_json, quiet))


def _add_run(root: "typer.Typer") -> None:
    panels = (None, "Selection", "Evaluation", "Reading the file", "Output")
    plain, selection, evaluation, reading, output = map(_options_of, panels)
    methods, classifiers = _keys(_selectors()), _keys(LEARNERS)

    @root.command(epilog=_RUN_EXAMPLES)
    def run(
        file: Annotated[str | None, _argument("FILE", "CSV, Parquet, ARFF, svmlight ...; - is standard input.")] = None,
        dataset: Annotated[str | None, plain("NAME", "Run on a data set instead: see [bold]tamis datasets[/].")] = None,
        selector: Annotated[
            str, selection("NAME", "Which method: see [bold]tamis list[/]; none keeps all.", autocompletion=methods)
        ] = "fires",
        select: Annotated[str, selection("N", "How many features to keep (5), or which fraction (0.1).")] = "0.1",
        assign: Annotated[
            list[str] | None,
            selection("KEY=VALUE", "A parameter, see [bold]tamis list NAME[/]; may be repeated.", "--set"),
        ] = None,
        seed: Annotated[int, selection("N", "Of selector and learner.")] = 0,
        learner: Annotated[
            str, evaluation("NAME", "Which classifier: see [bold]tamis list[/].", autocompletion=classifiers)
        ] = "perceptron",
        batch_size: Annotated[int, evaluation("N", "Rows per step.")] = 100,
        max_rows: Annotated[int | None, evaluation("N", "Stop after so many rows.")] = None,
        protocol: Annotated[
            str, evaluation("ORDER", "honest: select before the labels are seen; paper: as in the FIRES paper.")
        ] = "honest",
        window: Annotated[int, evaluation("N", "Rows behind the current accuracy.")] = 1000,
        stability_window: Annotated[int, evaluation("N", "Selections that the stability compares.")] = 10,
        label: Annotated[str | None, reading("NAME", "The label column: name, or position (-1 is the last).")] = None,
        format: Annotated[
            str | None, reading("NAME", "csv, parquet, arrow, arff or svmlight, if the name does not tell.")
        ] = None,
        delimiter: Annotated[str | None, reading("CHAR", "What separates values in CSV.")] = None,
        header: Annotated[bool, reading(None, "Whether a CSV file begins with names.", "--header/--no-header")] = True,
        categorical: Annotated[
            list[str] | None, reading("NAME", "A column of categories that look like numbers; may be repeated.")
        ] = None,
        drop: Annotated[list[str] | None, reading("NAME", "A column to leave out; may be repeated.")] = None,
        missing: Annotated[str, reading("HOW", "Missing numbers: error, or mean of the column so far.")] = "error",
        drop_unlabelled: Annotated[bool, reading(None, "Pass over rows without label.", "--drop-unlabelled")] = False,
        n_features: Annotated[int | None, reading("N", "Columns of an svmlight file.")] = None,
        zero_based: Annotated[
            bool | None, reading(None, "Where the columns of an svmlight file begin.", "--zero-based/--one-based")
        ] = None,
        report: Annotated[str | None, output("FILE", "Write an HTML report.")] = None,
        out: Annotated[str | None, output("FOLDER", "Save the result as Parquet and JSON.")] = None,
        checkpoint: Annotated[
            str | None, output("FILE", "Save the run now and then; if the file is there, go on from it.")
        ] = None,
        checkpoint_every: Annotated[int, output("N", "Steps between two savings.")] = 100,
        as_json: Annotated[bool, output(None, "Print one JSON document.", "--json")] = False,
        quiet: Annotated[bool, output(None, "Show no progress.", "--quiet", "-q")] = False,
        debug: Annotated[bool, output(None, "Show the traceback of an error.", "--debug")] = False,
    ) -> int:  # fmt: skip
        """Select features over a stream, test-then-train: accuracy, stability, and what was chosen when."""
        _check_whole("--batch-size", batch_size, 1)
        _check_whole("--max-rows", max_rows, 1)
        _check_whole("--window", window, 1)
        _check_whole("--stability-window", stability_window, 2)
        _check_whole("--checkpoint-every", checkpoint_every, 1)
        _check_whole("--n-features", n_features, 1)
        _check_whole("--seed", seed, 0)
        done = _Output(report, out, checkpoint, as_json, quiet)
        chosen = _make_selector(selector, select, assign or [], seed)
        classifier = _make(find_learner(learner), {"random_state": seed})
        columns = {
            "delimiter": delimiter,
            "header": header,
            "categorical": categorical or (),
            "drop": drop or (),
            "missing": missing,
            "drop_unlabelled": drop_unlabelled,
            "n_features": n_features,
            "zero_based": zero_based,
        }
        stream = _open(file, dataset, label, format, columns)
        result = _evaluate(
            stream,
            chosen,
            classifier,
            done,
            batch_size=batch_size,
            max_rows=max_rows,
            protocol=protocol,
            window=window,
            stability_window=stability_window,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
        return done.finish(result)


def _add_list(root: "typer.Typer") -> None:
    plain = _options_of(None)

    @root.command("list", epilog="Example: [bold]tamis list fires[/] shows what --set can change")
    def list_(
        name: Annotated[str | None, _argument("NAME", "A selector, to see its parameters.")] = None,
        as_json: Annotated[bool, plain(None, "Print one JSON document.", "--json")] = False,
        debug: Annotated[bool, plain(None, "Show the traceback of an error.", "--debug")] = False,
    ) -> None:
        """The catalogue: which methods there are, or the parameters of one."""
        if name is None:
            _show_catalogue(as_json)
        else:
            _show_parameters(_find_selector(name), as_json)


def _add_datasets(root: "typer.Typer") -> None:
    plain = _options_of(None)

    @root.command(epilog="Another folder of data: [bold]TAMIS_DATA=folder tamis datasets[/]")
    def datasets(
        as_json: Annotated[bool, plain(None, "Print one JSON document.", "--json")] = False,
        debug: Annotated[bool, plain(None, "Show the traceback of an error.", "--debug")] = False,
    ) -> None:
        """The named data sets: their size and licence, and whether they are here."""
        _show_datasets(as_json)


def _check_whole(option: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise _MisuseError(f"{option} must be {least} or more, got {value}.")


# -- what to run -----------------------------------------------------------------------------------------------


def _selectors() -> tuple[Entry, ...]:
    return tuple(entry for entry in CATALOG if entry.family == "rows")


def _find_selector(name: str) -> Entry:
    return find(name, "rows")


def _make_selector(name: str, select: str, assignments: list[str], seed: int) -> Any:
    """Return the selector with its parameters, or None if every feature is kept."""
    if name.lower() == "none":
        return None
    entry = _find_selector(name)
    values = dict(_assignment(entry, text) for text in assignments)
    return _make(entry, {"random_state": seed, **values, "n_features_to_select": _amount(select)})


def _make(entry: Entry, parameters: dict[str, Any]) -> Any:
    """Return an instance; a seed is given where one is taken."""
    known = _parameters(entry)
    return entry.load()(**{name: value for name, value in parameters.items() if name in known})


def _parameters(entry: Entry) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(entry.load()).parameters.items()}


def _assignment(entry: Entry, text: str) -> tuple[str, Any]:
    """Return the name and value of `name=value`, a parameter of the selector."""
    name, equals, value = (part.strip() for part in text.partition("="))
    known = [parameter for parameter in _parameters(entry) if parameter != "n_features_to_select"]
    if not equals:
        raise _MisuseError(f"--set {text} is no assignment: write --set NAME=VALUE.")
    if name == "n_features_to_select":
        raise _MisuseError("How many features to select is said with --select.")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise _MisuseError(f"{entry.name} has no parameter {name!r}{hint} It has: {', '.join(known)}.")
    return name, _value(value)


def _value(text: str) -> Any:
    """Return what a value says: a number, True, False or None, else the text."""
    if text.lower() in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text.lower()]
    if text.lower() in ("inf", "-inf", "nan"):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _amount(text: str) -> int | float:
    """Return how many features, or which fraction of them."""
    try:
        amount = int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    except ValueError:
        raise _MisuseError(f"--select {text} is no number: give a count (5) or a fraction (0.1).") from None
    if not (amount >= 1 if isinstance(amount, int) else 0 < amount <= 1):
        raise _MisuseError(
            f"--select {text} selects nothing sensible: give a count from 1 on, or a fraction in (0, 1]."
        )
    return amount


def _open(
    file: str | None, dataset: str | None, label: str | None, format: str | None, columns: dict[str, Any]
) -> "Stream":
    """Open the file or data set."""
    from tamis.streams import list_datasets, load_dataset, open_file

    if (file is None) == (dataset is None):
        raise _MisuseError("Say what to run on: a FILE (- is standard input) or --dataset NAME, one of them.")
    if dataset is not None:
        if label is not None or format is not None:
            raise _MisuseError("--label and --format are for files; a data set brings its own label.")
        return load_dataset(dataset)
    assert file is not None
    if not Path(file).exists() and any(row["name"] == file for row in list_datasets()):
        raise StreamError(f"There is no file {file!r}: for the data set of that name say --dataset {file}.")
    position = label is not None and re.fullmatch(r"-?\d+", label)
    return open_file(file, label=int(label) if label and position else label, format=format, **columns)


# -- running it ------------------------------------------------------------------------------------------------


def _evaluate(
    stream: "Stream", selector: Any, learner: Any, output: "_Output", **options: Any
) -> "PrequentialResult":
    """Run test-then-train under the eyes of the user; what was seen before an error is kept and shown."""
    from tamis.evaluate import prequential
    from tamis.terminal import Watch

    console = _console(stderr=True)
    names = [type(model).__name__ if model is not None else None for model in (selector, learner)]
    watch = Watch(
        console,
        _title(stream.describe(), names[0]),
        f"{names[1]}, batches of {options['batch_size']:,}, {options['protocol']} order",
        window=options["window"],
        stability_window=options["stability_window"],
        names=stream.feature_names,
        n_rows=min((n for n in (options.get("max_rows"), stream.n_rows) if n is not None), default=None),
        quiet=output.quiet,
    )
    with _warnings_in_one_line(console), _unhurried_interrupt() as stop_if_asked, watch:

        def on_step(step: "Step") -> None:
            watch(step)
            stop_if_asked()

        try:
            result = prequential(stream, selector, learner, on_step=on_step, **options)
        except TamisError as error:
            error.__cause__ = error.__cause__ or error.__context__
            partial = getattr(error, "result", None)
            failure = error
        else:
            return result
    if partial is not None and len(partial.frames["steps"]["step"]):
        output.finish(partial, str(failure))
    raise failure


def _title(stream: dict[str, Any], selector: str | None) -> str:
    where = stream.get("name") or Path(str(stream.get("path", "a stream"))).name
    return f"{selector or 'Every feature'} on {'standard input' if where == '-' else where}"


def _console(stderr: bool = False) -> "Console":
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


@contextlib.contextmanager
def _warnings_in_one_line(console: "Console") -> Iterator[None]:
    """Show each warning once, as a line above the live display."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *rest, **more: console.print(
            f"tamis: warning: {' '.join(str(message).split())}", markup=False, soft_wrap=True
        )
        yield


@contextlib.contextmanager
def _unhurried_interrupt() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C wait for the batch in work, so that a checkpoint is whole, but no longer than a second.

    Yields a function to be called between batches. Pressed again, Ctrl-C stops at once.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not hasattr(signal, "setitimer"):
        yield lambda: None
        return
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        signal.setitimer(signal.ITIMER_REAL, 1.0)

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def stop_if_asked() -> None:
        if asked:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, ask), signal.signal(signal.SIGALRM, stop)
    try:
        yield stop_if_asked
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGALRM, before[1])


# -- what comes out --------------------------------------------------------------------------------------------


@dataclass
class _Output:
    """Where the result goes; every place is tried before the run."""

    report: str | None
    out: str | None
    checkpoint: str | None
    as_json: bool
    quiet: bool

    def __post_init__(self) -> None:
        if self.report is not None:
            from tamis.report.html import check_writable

            try:
                check_writable(self.report)
            except ValueError as error:
                raise _MisuseError(str(error)) from error
        if self.out is not None:
            _check_place("--out", self.out, is_folder=True)
        if self.checkpoint is not None:
            _check_place("--checkpoint", self.checkpoint, is_folder=False)

    def finish(
        self,
        result: "PrequentialResult",
        error: str | None = None,
        event: tuple[int, str] | None = None,
        closing: str = "",
        **more: Any,
    ) -> int:
        """Show the result and write it where it is wanted; return the exit code."""
        if len(result.frames["steps"]["step"]) == 0:
            if result.settings["interrupted"]:
                return _INTERRUPTED
            size = result.settings["options"]["batch_size"]
            raise DataError(
                f"The stream ends within its first batch of {size:,} rows, which only trains:"
                " choose a smaller --batch-size."
            )
        if not self.as_json:
            self._show(result, event, closing)
        written = self._write(result)
        if self.as_json:
            _print_json({**_document(result), "written": written, "error": error, **more})
        else:
            for name, place in written.items():
                print(f"The {name}: {place}")
        return _INTERRUPTED if result.settings["interrupted"] else 0

    def _write(self, result: "PrequentialResult") -> dict[str, str]:
        written = {}
        if self.out is not None:
            written["results"] = str(result.save(self.out))
        if self.report is not None:
            written["report"] = str(result.report(self.report))
        return written

    def _show(self, result: "PrequentialResult", event: tuple[int, str] | None, closing: str) -> None:
        from tamis.terminal import show_result

        console = _console()
        show_result(console, result, *_headline(result), event)
        console.print()
        if closing:
            console.print(closing, markup=False)


def _headline(result: "PrequentialResult") -> tuple[str, str]:
    settings, total = result.settings, result.summary()
    selector, learner = (
        settings[part]["class"].rsplit(".", 1)[-1] if settings[part] else None
        for part in ("selector", "learner")
    )
    options = settings["options"]
    end = f", interrupted after {total['n_rows']:,.0f} rows" if settings["interrupted"] else ""
    return (
        _title(settings["stream"], selector) + end,
        f"{total['n_selected']:,.0f} of {total['n_features']:,.0f} features, {learner},"
        f" batches of {options['batch_size']:,}, {options['protocol']} order",
    )


def _document(result: "PrequentialResult") -> dict[str, Any]:
    from tamis.terminal import chosen_features, chosen_steps

    summary = result.summary()
    return {
        "summary": {name: int(n) if name.startswith("n_") and n == n else n for name, n in summary.items()},
        "selected": result.selected(),
        "chosen": {
            result.feature_names[j]: float(chosen_steps(result, j).mean())
            for j in chosen_features(result, 100)
        },
        "settings": result.settings,
    }


def _print_json(document: Any) -> None:
    print(json.dumps(_finite(document), indent=1, allow_nan=False, default=str))


def _finite(value: Any) -> Any:
    """Return the value with null for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _check_place(option: str, place: str, *, is_folder: bool) -> None:
    """Refuse a place that cannot be written, before the run."""
    path = Path(place).absolute()
    if is_folder and path.exists() and not (path / "settings.json").is_file():
        if not path.is_dir():
            raise _MisuseError(f"{option} {place} is a file: choose a folder.")
        if any(path.iterdir()):
            raise _MisuseError(f"{option} {place} holds something else: choose a new folder.")
    if not is_folder and path.is_dir():
        raise _MisuseError(f"{option} {place} is a folder: add the name of a file.")
    if not is_folder and not path.parent.is_dir():
        raise _MisuseError(
            f"{option} {place}: the folder {str(path.parent)!r} does not exist; make it first."
        )
    nearest = next(parent for parent in path.parents if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise _MisuseError(
            f"{option} {place} cannot be written: {str(nearest)!r} does not allow it; choose another."
        )


# -- the demo --------------------------------------------------------------------------------------------------


def _demo(output: _Output) -> int:
    """Run the bundled stream, in which a feature comes alive, and say what there is to see."""
    if not output.as_json:
        print(_BEFORE_THE_DEMO, flush=True)
    from sklearn.linear_model import Perceptron

    from tamis.rows import FIRES
    from tamis.streams import load_dataset
    from tamis.terminal import chosen_steps

    stream = load_dataset("electricity")
    names = stream.feature_names or []
    options = {"batch_size": 100, "protocol": "honest", "window": 1000, "stability_window": 10}
    result = _evaluate(stream, FIRES(n_features_to_select=3), Perceptron(random_state=0), output, **options)
    if result.settings["interrupted"]:
        return output.finish(result)
    everything = _evaluate(stream, None, Perceptron(random_state=0), output, **options).summary()["accuracy"]
    column = stream.take(stream.n_rows or 1)[0][:, names.index("vicprice")]
    opened = int((column != column[0]).argmax())
    split = int((result.frames["steps"]["n_seen"] <= opened).sum())
    chosen = {name: chosen_steps(result, j) for j, name in enumerate(names)}
    before, after = (
        {name: float(c[part].mean()) for name, c in chosen.items()}
        for part in (slice(split), slice(split, None))
    )
    lesson = _AFTER_THE_DEMO.format(
        before=before["vicprice"], after=after["vicprice"], three=result.summary()["accuracy"], all=everything
    )
    event = (split, "Victoria's market opens")
    return output.finish(
        result, event=event, closing=lesson, market_opened_at_row=opened, accuracy_of_every_feature=everything,
        chosen_before=before, chosen_after=after,
    )  # fmt: skip


_BEFORE_THE_DEMO = """\
Electricity in New South Wales, each half hour from May 1996 to December 1998:
is the price above its mean of the last day? Before each batch of 100 rows FIRES
chooses 3 of 8 columns; a perceptron sees no others.
"""
_AFTER_THE_DEMO = """\
vicprice, the price in Victoria, stood still until that market opened in May 1997. FIRES chose it in {before:.0%} \
of the batches before and in {after:.0%} after. Its 3 columns bring the perceptron to an accuracy of {three:.3f}; \
with all 8 it comes to {all:.3f}.

A page with every figure:  tamis demo --report demo.html
Your own file:             tamis run FILE --label NAME"""


# -- tables ----------------------------------------------------------------------------------------------------


def _show_catalogue(as_json: bool) -> None:
    if as_json:
        _print_json(
            {"selectors": [asdict(e) for e in _selectors()], "learners": [asdict(e) for e in LEARNERS]}
        )
        return
    from tamis.terminal import show_entries

    console = _console()
    show_entries(console, "Selectors, for --selector", _selectors())
    show_entries(console, "Learners, for --learner", LEARNERS)


def _show_parameters(entry: Entry, as_json: bool) -> None:
    parameters = [
        {"name": name, "default": default, "text": text}
        for name, default, text in zip(
            _parameters(entry), _parameters(entry).values(), _parameter_texts(entry), strict=True
        )
    ]
    if as_json:
        _print_json({**asdict(entry), "parameters": parameters})
        return
    from tamis.terminal import show_parameters

    show_parameters(_console(), entry, parameters)


def _parameter_texts(entry: Entry) -> list[str]:
    """Return what the class's docstring says of each parameter."""
    section = re.search(r"Parameters\n-+\n(.*?)\n\n", inspect.getdoc(entry.load()) or "", flags=re.DOTALL)
    texts: dict[str, list[str]] = {}
    names: list[str] = []
    for line in section.group(1).splitlines() if section else []:
        if not line.startswith(" "):
            names = [name.strip() for name in line.partition(" :")[0].split(",")]
            texts.update({name: [] for name in names})
        else:
            for name in names:
                texts[name].append(line.strip())
    return [re.sub(r"`+", "", " ".join(texts.get(name, []))) for name in _parameters(entry)]


def _show_datasets(as_json: bool) -> None:
    from tamis.streams import list_datasets
    from tamis.streams.datasets import data_folder

    rows = list_datasets()
    if as_json:
        _print_json({"folder": str(data_folder()), "datasets": rows})
        return
    from tamis.terminal import show_datasets

    show_datasets(_console(), rows, str(data_folder()))


# -- what goes wrong -------------------------------------------------------------------------------------------


class _MisuseError(Exception):
    """The command was used wrongly."""


def _explain(error: BaseException, given: list[str]) -> tuple[str, int]:
    """Return one line that says what went wrong, and the exit code."""
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return "interrupted", _INTERRUPTED
    if hasattr(error, "format_message"):  # typer found the command line wrong
        command = getattr(getattr(error, "ctx", None), "command_path", "tamis")
        message = _one_line(error.format_message()).rstrip(".")
        stop = "" if message.endswith("?") else "."
        return f"{message}{stop} See {command} --help." if message else "", _MISUSED
    message = _one_line(str(error))
    if isinstance(error, _MisuseError | UnknownNameError | ImportError):
        return message, _MISUSED
    if isinstance(error, TamisError | ValueError | TypeError | OSError):
        spelled = _spell(message, given)
        return spelled, _MISUSED if spelled.startswith("--") else _FAILED
    return f"unexpected {type(error).__name__}: {message}. Run it again with --debug to see where.", _FAILED


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _spell(message: str, given: list[str]) -> str:
    """Return the message with the options' spelling in place of the parameters'."""
    message = message.replace("choose one of csv", "say --format, one of csv")
    spelling = dict(_SPELLING)
    for text in given:  # --set name=value
        if (name := text.removeprefix("--set=").partition("=")[0]).isidentifier():
            spelling[name] = f"--set {name}"
    names = "|".join(sorted(spelling, key=len, reverse=True))

    def spelled(found: re.Match[str]) -> str:
        value = (found["value"] or "").strip("'")  # as in `name='value'`, `name=['value']` or `name=True`
        return " ".join(part for part in (spelling[found["name"]], "" if value == "True" else value) if part)

    return re.sub(
        rf"(?<![\w.'-])(?P<name>{names})(?:=\[?(?P<value>'[^']*'|\w+)\]?|(?= must ))", spelled, message
    )
