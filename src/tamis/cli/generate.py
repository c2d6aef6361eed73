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
from tamis.cli.options import AsJSON, Force, Quiet, command
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
        File to write: .csv, .parquet or .arff; - is standard output (CSV).
    rows : N
        Number of rows; by default as published.
    seed : N
        Seed; another seed gives another stream.

    Examples
    --------
    `tamis generate SEA --rows 10000 --seed 1 --out sea.csv`

    `tamis generate SEA:n_drifts=3,n_irrelevant=200 --out wide.parquet`

    `tamis generate SEA --out - | tamis run - --label class`
    """
    write, made = _writer(out), _open_stream(stream, rows, seed)
    if out == "-":
        write(made, sys.stdout.buffer, lambda n: None)
        return
    path = Path(out).absolute()
    truth = path.with_name(f"{path.stem}.truth.json")
    check_outputs([], {"--out": out, "--out (its truth)": str(truth)}, force=force)
    document = truth_of(made)
    with progress(quiet) as show:
        written = 0

        def advance(n: int) -> None:
            nonlocal written
            written += n
            show(written / made.n_rows, f"{written:,} rows written")

        write_output(out, lambda file: write(made, file, advance))
    write_output(str(truth), lambda file: file.write(json.dumps(document, indent=1).encode()))
    if as_json:
        print_json({"data": out, "truth": str(Path(out).with_name(truth.name)), **document})
        return
    n_relevant = len({name for concept in document["concepts"] for name in concept["relevant"]})
    drifts = f"{len(made.drifts)} drift{'s' * (len(made.drifts) != 1)}"
    print(
        f"{stream}: {made.n_rows:,} rows of {made.n_features:,} features, {n_relevant} of them relevant at some time,"
        f" {drifts}, label {_LABEL!r}."
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


_Advance: TypeAlias = Callable[[int], None]
_Write: TypeAlias = Callable[["SyntheticStream", BinaryIO, _Advance], None]


def _writer(out: str) -> _Write:
    """Return the writer of the format given by a name."""
    writers: dict[str, _Write] = {".csv": _write_csv, ".parquet": _write_parquet, ".arff": _write_arff}
    suffix = ".csv" if out == "-" else Path(out).suffix.lower()
    if suffix not in writers:
        raise MisuseError(f"--out {out} has an unsupported format: end the name in .csv, .parquet or .arff.")
    return writers[suffix]


def _blocks(stream: SyntheticStream, advance: _Advance) -> Iterator[Any]:
    """Yield the rows as Arrow tables, one batch at a time."""
    import pyarrow

    nominal = [kind == "nominal" for kind in stream.feature_types]
    for X, y in stream.batches(_ROWS):
        columns = [X[:, j].astype("int64") if nominal[j] else X[:, j] for j in range(X.shape[1])]
        yield pyarrow.table([*map(pyarrow.array, columns), pyarrow.array(y)], [*stream.feature_names, _LABEL])
        advance(len(y))


def _write_tables(module: str, name: str, stream: SyntheticStream, file: BinaryIO, advance: _Advance) -> None:
    """Write the rows by a class of pyarrow."""
    writer = None
    for table in _blocks(stream, advance):
        writer = writer or getattr(import_module(module), name)(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


_write_csv = partial(_write_tables, "pyarrow.csv", "CSVWriter")
_write_parquet = partial(_write_tables, "pyarrow.parquet", "ParquetWriter")


def _write_arff(stream: SyntheticStream, file: BinaryIO, advance: _Advance) -> None:
    classes = None if stream.classes is None else [str(label) for label in stream.classes]
    kinds = [_arff_kind(feature.n_values) for feature in stream.features]
    lines = [f"@relation {stream.describe().get('name', 'stream')}", ""]
    lines += [f"@attribute '{name}' {kind}" for name, kind in zip(stream.feature_names, kinds, strict=True)]
    lines += [f"@attribute '{_LABEL}' {'numeric' if classes is None else '{' + ','.join(classes) + '}'}"]
    file.write("\n".join([*lines, "", "@data", ""]).encode())
    for table in _blocks(stream, advance):
        columns = [column.to_pylist() for column in table.columns]
        file.writelines(",".join(map(str, row)).encode() + b"\n" for row in zip(*columns, strict=True))


def _arff_kind(n_values: int) -> str:
    return "{" + ",".join(map(str, range(n_values))) + "}" if n_values else "numeric"
