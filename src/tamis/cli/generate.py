"""`tamis generate`: a stream with known relevant features as a file, and the truth in a second file."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TypeAlias

import typer

from tamis.cli.failure import MisuseError
from tamis.cli.methods import part
from tamis.cli.options import AsJSON, Force, Quiet, check_word, command
from tamis.cli.output import check_outputs, print_json, progress, write_output

if TYPE_CHECKING:
    from tamis.streams import SyntheticStream

_ROWS = 5000  # written at a time
_LABEL = "class"


@command()
def generate(
    *,
    stream: Annotated[str, typer.Argument()],
    out: Annotated[str, typer.Option("--out", "-o")],
    rows: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    varying: str | None = None,
    share: Annotated[float | None, typer.Option(min=0.0, max=1.0)] = None,
    periods: Annotated[int | None, typer.Option(min=2)] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> None:
    """Write a stream with known relevant features to a file.

    The relevant features at each row are written to a second file.

    Parameters
    ----------
    stream : STREAM
        Name of a stream (see `tamis datasets`), with parameters as NAME:KEY=VALUE,KEY=VALUE.
    out : FILE
        File to write: .csv, .jsonl, .parquet or .arff; - is standard output (CSV).
    rows : N
        Number of rows; by default as published.
    seed : N
        Seed; another seed gives another stream.
    varying : KIND
        Let features appear and vanish: trapezoidal, capricious, evolvable, shuffled or open. They are missing where
        they do not exist; in .jsonl their keys are.
    share : P
        With --varying capricious or open, the probability that a feature exists. [default: 0.5]
    periods : N
        With --varying, the number of periods of equal length. [default: 10]

    Examples
    --------
    `tamis generate SEA --rows 10000 --seed 1 --out sea.csv`

    `tamis generate SEA:n_drifts=3,n_irrelevant=200 --out wide.parquet`

    `tamis generate SEA --out - | tamis run - --label class`

    `tamis generate SEA --varying trapezoidal --out growing.jsonl`
    """
    from tamis.streams.stream import KINDS_OF_VARYING

    write, made = _writer(out), _open_stream(stream, rows, seed)
    given: dict[str, Any] = {
        name: value for name, value in {"share": share, "n_periods": periods}.items() if value is not None
    }
    if varying is None and given:
        raise MisuseError("--share and --periods are for --varying: add it.")
    if varying is not None:
        check_word("--varying", varying, KINDS_OF_VARYING)
    written = made if varying is None else made.with_varying_features(varying, seed=seed, **given)
    if out == "-":
        write(written, sys.stdout.buffer, lambda n: None)
        return
    path = Path(out).absolute()
    truth = path.with_name(f"{path.stem}.truth.json")
    check_outputs([], {"--out": out, "--out (its truth)": str(truth)}, force=force)
    document = truth_of(made) if written is made else truth_of(made) | varying_truth(written)
    with progress(quiet) as show:
        n_written = 0

        def advance(n: int) -> None:
            nonlocal n_written
            n_written += n
            show(n_written / made.n_rows, f"{n_written:,} rows written")

        write_output(out, lambda file: write(written, file, advance))
    write_output(str(truth), lambda file: file.write(json.dumps(document, indent=1).encode()))
    if as_json:
        print_json({"data": out, "truth": str(Path(out).with_name(truth.name)), **document})
        return
    n_relevant = len({name for concept in document["concepts"] for name in concept["relevant"]})
    drifts = f"{len(made.drifts)} drift{'s' * (len(made.drifts) != 1)}"
    kind = f" ({varying})" if varying else ""
    print(
        f"{stream}{kind}: {made.n_rows:,} rows of {made.n_features:,} features, {n_relevant} of them relevant at some"
        f" time, {drifts}, label {_LABEL!r}."
    )
    print(f"The rows: {out}")
    print(f"The relevant features: {Path(out).with_name(truth.name)}")


def _open_stream(text: str, rows: int | None, seed: int) -> SyntheticStream:
    """Return the named stream."""
    from tamis.evaluate.experiment.grid import open_stream, parts_of
    from tamis.streams import list_streams

    key, params = part(text)
    options = params if rows is None else {"n_rows": rows, **params}
    [source] = parts_of("stream", {text: (key, options)})
    if source.source != "generated":
        known = ", ".join(row["name"] for row in list_streams())
        raise MisuseError(f"{key} is a data set, and cannot be generated. Streams: {known}.")
    return open_stream(source, seed)  # type: ignore[return-value]  # of a known truth


def truth_of(stream: SyntheticStream) -> dict[str, Any]:
    """Return the properties of a stream: its drifts, and the features that are relevant from each row on.

    In a gradual drift, rows come from either concept; its centre is taken as the boundary.
    """
    ends = [0, *stream.drifts, stream.n_rows]
    names = stream.feature_names
    return {
        "stream": stream.describe(),
        "label": _LABEL,
        "n_rows": stream.n_rows,
        "drifts": [
            {"row": int(row), "width": float(width)}
            for row, width in zip(stream.drifts, stream.drift_widths, strict=True)
        ],
        "concepts": [
            {
                "first_row": int(a),
                "last_row": int(b) - 1,
                "relevant": [names[j] for j in stream.relevant_at(a)],
            }
            for a, b in itertools.pairwise(ends)
        ],
        "features": names,
    }


def varying_truth(stream: Any) -> dict[str, Any]:
    """Return which features exist in which rows, in the order of the columns; not for each row of "capricious"."""
    import numpy as np

    document = {"stream": stream.describe()}
    if stream.kind == "capricious":
        return document
    names, spans = stream.feature_names, list[dict[str, Any]]()
    for start in range(0, stream.n_rows, stream.period):
        exists = stream.present_rows(start, min(start + stream.period, stream.n_rows))
        changes = np.flatnonzero((exists[1:] != exists[:-1]).any(axis=1)) + 1
        for first, stop in itertools.pairwise([0, *changes.tolist(), len(exists)]):
            there = [names[j] for j in stream.order_at(start) if exists[first, j]]
            spans.append({"first_row": start + first, "last_row": start + stop - 1, "features": there})
    return {**document, "existing": spans}


_Advance: TypeAlias = Callable[[int], None]
_Write: TypeAlias = Callable[[Any, BinaryIO, _Advance], None]


def _writer(out: str) -> _Write:
    """Return the writer of the format given by a name."""
    writers: dict[str, _Write] = {
        ".csv": _write_csv, ".jsonl": _write_json, ".parquet": _write_parquet, ".arff": _write_arff
    }  # fmt: skip
    suffix = ".csv" if out == "-" else Path(out).suffix.lower()
    if suffix not in writers:
        raise MisuseError(
            f"--out {out} has an unsupported format: end the name in .csv, .jsonl, .parquet or .arff."
        )
    return writers[suffix]


def _blocks(stream: Any, advance: _Advance) -> Iterator[Any]:
    """Yield the rows as Arrow tables, one batch at a time; values that do not exist are null."""
    import pyarrow

    for X, y in stream.batches(_ROWS):
        columns = [pyarrow.array(column, from_pandas=True) for column in X.T]
        for j in stream.categorical:
            columns[j] = columns[j].cast(pyarrow.int64())
        yield pyarrow.table([*columns, pyarrow.array(y)], [*stream.feature_names, _LABEL])
        advance(len(y))


def _write_json(stream: Any, file: BinaryIO, advance: _Advance) -> None:
    """Write the existing features of each row, in the order of the columns at that time."""
    row, order_at = 0, getattr(stream, "order_at", None)
    order = [*stream.feature_names, _LABEL]
    for table in _blocks(stream, advance):
        for one in table.to_pylist():
            if order_at is not None and row % stream.period == 0:
                order = [*(stream.feature_names[j] for j in order_at(row)), _LABEL]
            existing = {name: one[name] for name in order if one[name] is not None}
            file.write(json.dumps(existing).encode() + b"\n")
            row += 1


def _write_tables(module: str, name: str, stream: Any, file: BinaryIO, advance: _Advance) -> None:
    """Write the rows by a class of pyarrow."""
    writer = None
    for table in _blocks(stream, advance):
        writer = writer or getattr(import_module(module), name)(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


_write_csv = partial(_write_tables, "pyarrow.csv", "CSVWriter")
_write_parquet = partial(_write_tables, "pyarrow.parquet", "ParquetWriter")


def _write_arff(stream: Any, file: BinaryIO, advance: _Advance) -> None:
    classes = None if stream.classes is None else [str(label) for label in stream.classes]
    whole: SyntheticStream = getattr(stream, "whole", stream)
    kinds = [_arff_kind(feature.n_values) for feature in whole.features]
    lines = [f"@relation {stream.describe().get('name', 'stream')}", ""]
    lines += [f"@attribute '{name}' {kind}" for name, kind in zip(stream.feature_names, kinds, strict=True)]
    lines += [f"@attribute '{_LABEL}' {'numeric' if classes is None else '{' + ','.join(classes) + '}'}"]
    file.write("\n".join([*lines, "", "@data", ""]).encode())
    for table in _blocks(stream, advance):
        columns = [column.to_pylist() for column in table.columns]
        rows = (["?" if value is None else str(value) for value in row] for row in zip(*columns, strict=True))
        file.writelines(",".join(row).encode() + b"\n" for row in rows)


def _arff_kind(n_values: int) -> str:
    return "{" + ",".join(map(str, range(n_values))) + "}" if n_values else "numeric"
