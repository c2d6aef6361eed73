"""Batches of rows that may arrive after reading has started, and the positions between them."""

from __future__ import annotations

import contextlib
import math
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tamis._interrupts import raise_asynchronous
from tamis._validation import check_choice, check_number, short_repr
from tamis.errors import CheckpointError, StreamError, TamisError
from tamis.streams.csv_table import CSVTable
from tamis.streams.dialect import MAX_LINES, check_max_quoted_lines, detect_encoding
from tamis.streams.files import TIMES, find_column
from tamis.streams.source import BytesSource, Source
from tamis.streams.stream import Batch, Stream, join_batches
from tamis.streams.tables import ParquetTable, SchemaTable, Table, split_markers
from tamis.streams.tail.decoder import DecoderState, RowDecoder
from tamis.streams.tail.files import FollowedFiles, Part
from tamis.streams.tail.kafka import FollowedTopics, is_kafka
from tamis.streams.tail.parquet import FollowedParquet
from tamis.streams.tail.pending import PendingRows, new_rows
from tamis.streams.tail.position import BadRows, check_position, invalid_position
from tamis.streams.tail.text import BadLine, FollowedText, StandardInput

_HEAD_ROWS, _HEAD_BYTES = 5000, 1 << 20  # by which columns are judged, if they are in the file
_POLL = 0.1  # seconds
_STALLED = 5.0  # seconds without a row after which a warning about an open quote is issued

Judge = Callable[[Table], dict[str, Any]]


class _Mark(NamedTuple):
    """State at the end of a batch, for resuming."""

    rows: int
    known: DecoderState
    counts: dict[str, int]
    reasons: dict[str, int]
    last: int | None
    letters: int
    n_notes: int
    delayed: dict[str, int]


def follow_files(
    path: str | os.PathLike[str],
    *,
    label: str | int | Sequence[str],
    format: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    na: Sequence[str] = (),
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: str = "error",
    times: str = "seconds",
    time_format: str | None = None,
    max_quoted_lines: int = MAX_LINES,
    drop_unlabelled: bool = False,
    clock: Sequence[str] = (),
    number: str | None = None,
    idle: float | None = None,
    dead_letters: str | os.PathLike[str] | None = None,
    label_key: str | None = None,
    max_waiting: int = 100_000,
    max_columns: int | None = None,
    labels: str | None = None,
    schema: Sequence[str] = (),
    client: Mapping[str, Any] | None = None,
    judge: Judge | None = None,
) -> FollowedStream:
    r"""Open an unbounded stream, which waits for rows that do not exist yet.

    Parameters
    ----------
    path : path-like
        A file that grows; a folder, or a pattern such as ``"parts/*.csv"``, whose files are read in the order of their
        names as they appear, and as they grow; or ``"-"``, standard input. CSV (parts may be compressed: .gz, .bz2,
        .xz), JSON objects one per line, or Parquet. A row is complete when its newline exists, or when a later file
        exists. Or a topic, ``"kafka://host[:port]/topic"``, whose messages are JSON objects or Avro records; those of
        all partitions are read in the order of their timestamps.
    label : str, int or list of str
        As for :func:`open_file`. Of several columns, `y` has a column of objects for each: None where a label is
        missing. Rows without any are skipped if `drop_unlabelled`.
    format, delimiter, decimal, encoding, header, na
        As for :func:`open_file`.
    categorical, drop, missing, times, time_format, drop_unlabelled, clock
        As for :func:`open_file`. Options that are not set are determined from the first batch.
    max_quoted_lines : int, default=100
        Maximum number of lines of a quoted value, at least 1. If a quote remains open for longer, or at the end of a
        complete file, its line is a row that cannot be read, and the next line is read as the next row.
    number : str, optional
        Name of a column of standard input with increasing row numbers. A producer may then resend rows: rows up to the
        last number read are skipped.
    idle : float, optional
        Number of seconds without a new row after which the stream ends; 0: read only the existing rows. By default,
        wait forever.
    dead_letters : path-like, optional
        File for rows that cannot be read, one line of JSON each with its reason. By default, such a row raises an
        error.
    label_key : str, optional
        Name of a column that matches a delayed label to its row. A row without a label is pending until a row with the
        same key and a label arrives, whose other columns are ignored and may be empty. The first row is then returned
        with its label, in the order in which labels arrive. A row with values and a label whose key is not pending is
        returned unchanged.
    max_waiting : int, default=100_000
        Maximum number of rows with delayed labels, at least 1; beyond it, the oldest are dropped.
    max_columns : int, optional
        Maximum number of columns besides the label and excluded ones, at least 1: further columns of later rows are
        ignored with a warning. By default, all are read.
    labels : str, optional
        Name of a topic of the delayed labels, with their keys in the column `label_key`; its messages may also be plain
        labels. A key that a message lacks, in either topic, is the key of the message.
    schema : sequence of str, default=()
        Files with the Avro schemas of topics, for all topics or as ``"TOPIC=FILE"``; by default, messages are JSON, or
        Avro files that contain their schema.
    client : dict, optional
        Further settings of the Kafka client (librdkafka), such as ``{"security.protocol": "SSL"}``.
    judge : callable, optional
        Called with the first batch as a :class:`tamis.streams.tables.Table`; returns further options of the columns,
        such as ``{"drop": [...]}``.

    Returns
    -------
    FollowedStream

    Raises
    ------
    StreamError
        If no such file or folder exists. While reading: if a row cannot be read, or a file was truncated or replaced by
        another one, or has different columns than the first one and the consumer does not accept new ones
        (`gains_columns`, which :func:`tamis.prequential` sets).
    ValueError
        If an option is out of range.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "log.csv")
    >>> _ = path.write_text("heat,state\n1,on\n2,off\n3,on\n4,off\n5,o")
    >>> stream = follow_files(path, label="state", idle=0)
    >>> [y.tolist() for X, y in stream.batches(2)]
    [['on', 'off'], ['on', 'off']]

    The last row had no newline yet. Another stream resumes at this row:

    >>> position = stream.position()
    >>> with path.open("a") as file:
    ...     _ = file.write("n\n6,off\n")
    >>> stream = follow_files(path, label="state", idle=0)
    >>> stream.seek(position)
    >>> [(X.tolist(), y.tolist()) for X, y in stream.batches(2)]
    [([[5.0], [6.0]], ['on', 'off'])]
    """
    check_choice("missing", missing, ("error", "mean", "keep"))
    check_choice("times", times, TIMES)
    if format is not None:
        check_choice("format", format, ("csv", "json", "parquet"))
    if idle is not None:
        check_number("idle", idle, low=0)
    check_number("max_waiting", max_waiting, low=1, integer=True)
    if max_columns is not None:
        check_number("max_columns", max_columns, low=1, integer=True)
    written = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "na": tuple(na) or None,
               "time_format": time_format, "max_quoted_lines": check_max_quoted_lines(max_quoted_lines)}  # fmt: skip
    how = {"categorical": list(categorical), "drop": list(drop), "missing": missing, "times": times,
           "drop_unlabelled": drop_unlabelled, **({"clock": list(clock)} if clock else {}),
           **({"na": list(na)} if split_markers(na)[1] else {})}  # fmt: skip
    return FollowedStream(
        os.fspath(path), label, written, how, format=format, header=header, number=number, idle=idle,
        dead_letters=dead_letters, label_key=label_key, max_waiting=int(max_waiting),
        max_columns=max_columns, judge=judge,
        kafka={"labels": labels, "schema": list(schema), "client": dict(client or {})},
    )  # fmt: skip


class FollowedStream(Stream):
    """A stream of rows that may arrive later; created by :func:`follow_files`.

    Attributes
    ----------
    reasons : dict of str to int
        Number of rows that could not be read, by reason.
    n_waiting : int
        Number of rows at the end that are too few for a batch and were not read.
    on_idle : callable
        Called repeatedly while the stream waits for rows.
    """

    def __init__(
        self,
        path: str,
        label: str | int | Sequence[str],
        written: dict[str, Any],
        how: dict[str, Any],
        *,
        format: str | None,
        header: bool,
        number: str | None,
        idle: float | None,
        dead_letters: str | os.PathLike[str] | None,
        label_key: str | None,
        max_waiting: int,
        max_columns: int | None,
        judge: Judge | None,
        kafka: dict[str, Any],
    ) -> None:
        self.path, self._label, self._written, self._how = path, label, written, how
        self._format, self._header, self._number = format, header, number
        self._idle, self._judge = idle, judge
        self._label_key, self._max_waiting = label_key, max_waiting
        self.max_columns, self.may_gain_columns = max_columns, True
        self.is_pipe, self._kafka = path == "-", kafka
        if not is_kafka(path) and any(kafka.values()):
            name = next(name for name, value in kafka.items() if value)
            raise ValueError(f"{name}={kafka[name]!r} is for Kafka: follow 'kafka://host/topic'.")
        if is_kafka(path) and format not in (None, "json"):
            raise ValueError(
                f"format={format!r} is for files: messages of Kafka are JSON, or Avro with a schema."
            )
        if label_key is not None and not isinstance(label, str | int):
            raise ValueError(
                f"label_key={label_key!r} matches the labels of one column, but label names {len(label)}."
            )
        if number is not None and not self.is_pipe:
            raise ValueError(
                f"number={number!r} is for standard input: the rows of a file are identified by their position."
            )
        if self.is_pipe and format == "parquet":
            raise ValueError("format='parquet' is not for standard input: name the file.")
        self._bad = BadRows(dead_letters)
        self._decoder: RowDecoder | None = None  # None before the first rows
        self._warned: set[str] = set()
        self._begin_at(None)

    def _begin_at(self, position: dict[str, Any] | None) -> None:
        """Reset to a position, or to the beginning."""
        known = position or {"counts": {}, "last": None, "notes": [], "places": {}}
        max_lines = self._written["max_quoted_lines"] or MAX_LINES
        skips = {"skips_long_lines": self._bad.is_enabled}
        self._files = (
            FollowedTopics(
                self.path, self._label, self._label_key, **self._kafka, skips_bad=self._bad.is_enabled
            )
            if is_kafka(self.path)
            else FollowedFiles(self.path, self._format, self._header, max_lines, **skips)
        )
        self._pipe = StandardInput(self._header, max_lines, **skips) if self.is_pipe else None
        self._current: Part | None = self._pipe
        self._counts = Counter(known["counts"])
        absent = 0.0 if self._how["missing"] == "mean" else math.nan
        self._delayed = None if self._label_key is None else PendingRows(self._max_waiting, absent)
        if self._delayed is not None and position is not None:
            self._delayed.restore(position["delayed"], position["delayed_counts"])
        self._last: int | None = known["last"]  # number of the last row
        self._notes: list[dict[str, Any]] = list(known["notes"])
        self._places: dict[str, list[Any]] = dict(known["places"])
        self._mark: _Mark | None = None
        self._is_at_mark = False
        self.n_waiting = 0
        for name, place in self._places.items():
            self._files.part(name).seek(*place)
        if position is not None:
            self._bad.rollback(position["letters"], position["reasons"])
            self._set_mark(position["rows"])

    # -- description ---------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Return path and options."""
        options = {name: value for name, value in self._written.items() if value is not None}
        return {
            "kind": "followed", "path": self.path, "format": self._format, "label": self._label,
            "header": self._header, "number": self._number, **self._how,
            **({} if self._delayed is None else {"label_key": self._label_key, "max_waiting": self._max_waiting}),
            **{name: list(value) if isinstance(value, tuple) else value for name, value in options.items()},
            **{name: self._kafka[name] for name in ("labels", "schema") if self._kafka[name]},
        }  # fmt: skip

    def _title(self) -> str:
        return self.path

    @property
    def is_resumable(self) -> bool:
        """Whether a run can continue where it stopped: not in standard input without row numbers."""
        return not self.is_pipe or self._number is not None

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of rows that could not be read, had no label, or were resent: ``bad``, ``unlabelled``, ``repeated``.

        With a `label_key` also the number of rows with delayed labels, ``pending``, and the counts of
        :class:`~tamis.streams.tail.pending.PendingRows`: ``given_up``, ``unmatched``, ``twice``. If files cannot be
        read, also their number, ``unreadable``.
        """
        counts = {name: self._counts[name] for name in ("bad", "unlabelled", "repeated")}
        if self._delayed is not None:
            counts["pending"] = len(self._delayed.waiting)
            counts |= {name: self._delayed.counts[name] for name in ("given_up", "unmatched", "twice")}
        return counts | ({"unreadable": len(self.unreadable)} if self.unreadable else {})

    @property
    def unreadable(self) -> dict[str, str]:
        """Files that cannot be read now, and why."""
        return self._files.unreadable()

    @property
    def has_damaged_files(self) -> bool:
        """Whether a file cannot be read, and is not just incomplete."""
        return self._files.has_damaged()

    @property
    def reasons(self) -> dict[str, int]:
        """Number of rows that could not be read, by reason."""
        return self._bad.reasons

    @property
    def categories(self) -> dict[str, list[Any]]:
        """The values of each text column, in the order of their codes."""
        return {} if self._decoder is None else self._decoder.rows.categories

    def pop_events(self) -> list[dict[str, Any]]:
        """Return new events of the source up to the last batch: missing rows, and what happened to files."""
        if self._mark is None:
            return []
        n = self._mark.n_notes
        events, self._notes = self._notes[:n], self._notes[n:]
        self._mark = self._mark._replace(n_notes=0)
        return events

    def events_after_batch(self) -> list[dict[str, Any]]:
        """Return the events after the last batch; a resumed stream reports them again."""
        return self._notes[0 if self._mark is None else self._mark.n_notes :]

    # -- positions -----------------------------------------------------------------------------------------

    def position(self) -> dict[str, Any] | None:
        """Return the position after the last batch and the state of the columns; None before the first batch.

        Plain values and bytes, which :func:`tamis.save` accepts.
        """
        if self._mark is None or self._decoder is None or not self.is_resumable:
            return None
        self._bad.flush()
        mark = self._mark
        return {
            **self._decoder.state(mark.known), "rows": mark.rows, "counts": mark.counts, "reasons": mark.reasons,
            "last": mark.last, "letters": self._bad.mark(mark.letters), "notes": self._notes[: mark.n_notes],
            "places": dict(self._places),
            **({} if self._delayed is None else {
                "delayed": self._delayed.state(len(mark.known.encoders)), "delayed_counts": mark.delayed,
            }),
        }  # fmt: skip

    def seek(self, position: dict[str, Any]) -> None:
        """Continue with the row after the last batch of an earlier `position`.

        Raises
        ------
        CheckpointError
            If the position is invalid, or is one in another file; the stream is unchanged.
        """
        check_position(position, has_delayed=self._delayed is not None)
        places = position["places"]
        if self._files.is_single and set(places) != {self.path}:
            names = ", ".join(map(short_repr, places)) or "no file"
            raise CheckpointError(
                f"The position is in {names}, not in {self.path!r}: follow that file, or start again without the"
                " checkpoint."
            )
        try:
            decoder = RowDecoder.from_state(self.path, self._label, position)
        except TamisError:
            raise
        except Exception as error:
            raise_asynchronous(error)
            raise invalid_position(f"describes its columns as no run does ({error!r})") from error
        self._set_decoder(decoder)
        self._begin_at(position)
        if not (self.is_pipe or self._files.is_single):
            self._files.n_resumed = len(places)

    def _set_mark(self, n_rows: int) -> None:
        """Mark the end of a batch."""
        for name in self._files.changed:
            part = self._files.parts.get(name)
            if part is not None and part.at:
                self._places[name] = [part.at, part.row, part.identity()]
            else:
                self._places.pop(name, None)
                if self._files.is_single:  # a rotated file
                    self._places[name] = [0, 0, []]
        self._files.changed.clear()
        assert self._decoder is not None
        self._is_at_mark = True  # no row was read since
        self._mark = _Mark(
            n_rows, self._decoder.mark(), dict(self._counts), dict(self._bad.reasons), self._last, self._bad.length,
            len(self._notes), {} if self._delayed is None else dict(self._delayed.counts),
        )  # fmt: skip
        if self._delayed is not None:
            self._delayed.settle()

    # -- columns -------------------------------------------------------------------------------------------

    def begin(self, size: int) -> bool:
        """Wait for the first batch and determine the columns; return whether it arrived."""
        since = time.monotonic()
        while self._decoder is None:
            if (table := self._first_table(size)) is not None:
                how = {**self._how, **({} if self._judge is None else self._judge(table))}
                for name in (self._number, self._label_key):
                    if name is not None:
                        find_column(name, table.names(), self.path)
                        how["drop"] = [*how["drop"], name]
                table.later = None
                columns = RowDecoder(self.path, table, self._label, how)
                self._set_decoder(columns)
                columns.begin()
            elif self._is_over(since):
                self._warn_at_end()
                return False
            else:
                self._wait(0.0)
        return True

    def _set_decoder(self, columns: RowDecoder) -> None:
        """Set the decoder and the attributes that depend on it."""
        self._decoder, rows = columns, columns.rows
        self.feature_names, self.n_features = rows.feature_names, rows.n_features
        self.categorical = columns.first_categorical
        labels = [columns.table.label] if isinstance(self._label, str | int) else self._label
        needed = (*labels, self._number, self._label_key, *self._how.get("clock", ()))
        columns.table.required = tuple(name for name in needed if name is not None)

    def _first_table(self, size: int) -> Table | None:
        """Return the first rows as a table, as soon as there are enough: a batch, or a complete file."""
        if self._pipe is not None:
            return self._head(self._pipe, size, self._pipe.ended)
        with contextlib.suppress(FileNotFoundError):  # renamed meanwhile
            for old, is_whole in self._files.to_finish():
                if isinstance(old, FollowedText) and (table := self._head(old, size, is_whole)) is not None:
                    return table
        names = self._files.names()
        for name in names:
            part, is_whole = self._files.part(name), self._files.is_whole(name, names)
            if isinstance(part, FollowedParquet):
                if part.has_rows():
                    return ParquetTable(Source(name, seekable=True))
            elif (table := self._head(part, size, is_whole)) is not None:
                return table
            elif not is_whole or part.n_waiting():
                return None
        return None

    def _head(self, part: FollowedText, size: int, is_whole: bool, **known: str) -> CSVTable | None:
        """Return the first rows; without a known dialect, with the choices that further rows in the file allow."""
        part.peek(1, is_whole)  # indicates whether rows have a header
        lines = part.peek(size + part.header, is_whole)
        if len(lines) <= part.header or (len(lines) < size + part.header and not is_whole):
            return None
        rows = [row for row in lines if not isinstance(row, BadLine)]
        written = {name: value or None for name, value in (self._written | known).items()}
        head = b"".join(rows)
        encoding = written.get("encoding") or detect_encoding(head, True)
        if "\n".encode(encoding) != b"\n":
            raise StreamError(f"{part.name!r} is {encoding}: only text in UTF-8 or Latin-1 can be followed.")
        table = CSVTable(BytesSource(part.name, head), header=self._header, **written)
        if table.format == "json" and not part.is_json:
            raise StreamError(f"{part.name!r} is a JSON array, which cannot grow: write one object per line.")
        if table.above:
            first = short_repr(table.above.lstrip("\ufeff").splitlines()[0])
            raise StreamError(
                f"{part.name!r} begins with {first} above its header: only files that begin"
                " with the header can be followed."
            )
        if self._pipe is None and not known:
            n = min(_HEAD_ROWS, _HEAD_BYTES * len(rows) // len(head))
            more = b"".join(row for row in part.peek(n, is_whole) if not isinstance(row, BadLine))
            with contextlib.suppress(StreamError):  # which these rows raise when they are read
                table.read_on(CSVTable(BytesSource(part.name, more), header=self._header, **written))
        return table

    # -- batches -------------------------------------------------------------------------------------------

    def batches(self, size: int = 100, *, start: int = 0) -> Iterator[Batch]:
        """Return an iterator over batches of exactly `size` rows; it waits for each of them.

        At the end of standard input, the last one may be shorter. Remaining rows of files that do not fill a batch are
        not read; they belong to the batch that later rows complete. A pass starts where the previous one ended.
        """
        check_number("batch_size", size, low=1, integer=True)
        n_taken = 0 if self._mark is None else self._mark.rows
        if start not in (0, n_taken):
            raise StreamError(f"The stream is after row {n_taken:,}, not {start:,}: seek a position instead.")
        return self._batches(int(size))

    def _blocks(self, start: int) -> Iterator[Batch]:
        return self.batches(100, start=start)

    def _batches(self, size: int) -> Iterator[Batch]:
        if (position := self.position()) is not None and not self.is_pipe:
            self.seek(position)  # an earlier pass may have read further
        if not self.begin(size):
            return
        assert self._decoder is not None
        self._decoder.allow_columns(self.max_columns if self.gains_columns else 0)
        n_taken = 0 if self._mark is None else self._mark.rows
        while True:
            have: list[Batch] = []
            n_left = size
            while n_left and (taken := self._next(n_left)) is not None:
                part, rows = taken
                have += self._decode(part, rows, part.row - len(rows))
                n_left = size - sum(len(y) for _, y in have)
            if n_left and (not self.is_pipe or not have):
                self.n_waiting = size - n_left
                self._warn_at_end()
                return
            n_taken += size - n_left
            rows, n_known = self._decoder.rows, self.n_features or 0
            if more := (rows.feature_names or [])[n_known:]:
                self._notes.append({"event": "columns", "appended": more})
                self.feature_names, self.n_features = rows.feature_names, rows.n_features
                self.categorical = rows.categorical
            self._set_mark(n_taken)
            yield join_batches(have)

    def _next(self, n: int) -> tuple[Part, Any] | None:
        """Return up to `n` rows and their file as soon as any are available; None at the end."""
        since = time.monotonic()
        while True:
            current = self._current
            if current and current is not self._pipe and self._files.parts.get(current.name) is not current:
                self._current = None  # finished after it was renamed or removed
            if self._current is not None and (rows := self._take(self._current, n, self._is_ended())):
                return self._current, rows
            began = time.monotonic()
            for part, is_whole in self._files.with_rows(self._current):
                self._mark_files()
                if rows := self._take(part, n, is_whole):
                    self._current = part
                    return part, rows
            self._mark_files()
            if self._is_over(since):
                return None
            if time.monotonic() - since > _STALLED:
                self._warn_of_held_rows()
            self._wait(time.monotonic() - began)

    def _mark_files(self) -> None:
        """Mark renamed and finished files at once if no row was read since the last batch."""
        if self._is_at_mark and self._mark is not None and self._files.changed:
            self._collect_notes()
            self._set_mark(self._mark.rows)

    def _take(self, part: Part, n: int, is_whole: bool) -> Any:
        self._collect_notes()
        assert self._decoder is not None
        table = self._decoder.table
        if not part.look(table) or not self._append_columns(part, n, is_whole):
            return None
        rows = part.take(n, is_whole, table)
        if rows is None or len(rows) == 0:
            return None
        self._is_at_mark = False
        self._files.changed.add(part.name)
        return rows

    def _append_columns(self, part: Part, n: int, is_whole: bool) -> bool:
        """Append the columns that a further file has in addition; return False while too few of its rows exist.

        The kinds of columns of text are those of the `n` rows that complete the batch, whenever they arrive.
        """
        assert self._decoder is not None
        table = self._decoder.table
        new = [name for name in part.names or () if name not in table.names()]
        if isinstance(part, FollowedText):
            new = [name for name in new if name not in table.all_names]
        if len(new) > table.room:
            self._warn(
                "columns",
                f"{part.name!r} names the column {new[table.room]!r} beyond the largest number of columns, so it is"
                " ignored: raise max_columns to read it.",
            )
        if not (new := new[: table.room]):
            return True
        other: Any = None
        if isinstance(part, FollowedParquet):
            other = SchemaTable(table.source, table.format, list(part.names or ()), list(part.schema.types))
        else:
            dialect = {name: getattr(table, name) for name in ("delimiter", "decimal", "encoding")}
            other = self._head(part, n, is_whole, **dialect)
        if other is not None:
            if isinstance(other, CSVTable):
                other.text = {*other.names()}.difference(new).union(table.matching(new))
                other.check_mixed()
            table.append(new, other)
        return other is not None

    def _collect_notes(self) -> None:
        """Add the events of the files."""
        self._notes += self._files.notes
        self._files.notes = []

    def _warn_at_end(self) -> None:
        """Warn of all rows and files that were not read."""
        self._warn_of_held_rows()
        self._files.report_unreadable()
        self._collect_notes()

    def _warn_of_held_rows(self) -> None:
        """Warn of rows held back because a quoted value has not ended, together with all later lines."""
        for part in (*self._files.parts.values(), self._pipe):
            if isinstance(part, FollowedText) and part.is_in_long_line:
                row = f"row {part.n_ready() + 1:,}"
                self._warn(
                    f"long {part.name} {row}",
                    f"{part.name!r} has a line of {part.n_waiting():,} bytes in {row}, whose end has not arrived.",
                )
            if isinstance(part, FollowedText) and (n := part.n_held_lines()):
                row = f"row {part.n_ready() + 1:,}"
                self._warn(
                    f"{part.name} {row}",
                    f"{part.name!r} has an unclosed quote in {row}: {n:,} lines wait for its end.",
                )

    def _warn(self, what: str, text: str) -> None:
        """Warn once."""
        if what not in self._warned:
            self._warned.add(what)
            warnings.warn(text, stacklevel=2)

    def _is_ended(self) -> bool:
        return self._pipe is not None and self._pipe.ended

    def _is_over(self, since: float) -> bool:
        """Return whether no more rows will arrive, or none arrived within the idle time."""
        if self._pipe is not None:
            return self._pipe.ended and not self._pipe.n_waiting()
        return self._idle is not None and time.monotonic() - since >= self._idle

    def _wait(self, cost: float) -> None:
        self.on_idle()
        if self._pipe is not None:
            self._pipe.wait(_POLL)
        else:
            time.sleep(min(max(_POLL, 10 * cost), 2.0))  # less often if there are many files

    # -- rows ----------------------------------------------------------------------------------------------

    def _decode(self, part: Part, rows: Any, before: int) -> list[Batch]:
        """Return rows as numbers and labels; unreadable rows are written to the file of bad rows, if any."""
        assert self._decoder is not None
        known = self._decoder.mark()
        try:
            columns, absent = part.columns(rows, self._decoder.table, before)
            n, absent = len(rows), absent if self.gains_columns else {}
            last: int | None = self._last
            gaps: list[dict[str, Any]] = []
            if self._number is not None:
                at = self._decoder.table.names().index(self._number)
                kept, last, gaps = new_rows(columns[at], self._number, last, before)
                columns, n = [one.filter(kept) for one in columns], kept.true_count
                absent = {name: mask[kept.to_numpy(False)] for name, mask in absent.items()}
            if self._delayed is None:
                X, y = self._decoder.as_batch(columns, n, before + 1, absent)
            else:
                X, y = self._decoder.as_delayed_batch(
                    columns, n, before + 1, absent, str(self._label_key), self._delayed
                )
        except StreamError as error:
            self._decoder.rollback(known)
            has_numbers = self._delayed is None and not is_kafka(self.path)
            if not self._bad.is_enabled and (has_numbers or len(rows) == 1):
                raise  # rows were skipped, or have offsets: only a single row has the position in the message
            if len(rows) > 1:
                half = len(rows) // 2
                first = self._decode(part, rows[:half], before)
                return first + self._decode(part, rows[half:], before + half)
            self._bad.put(part.place(rows), before + 1, str(error), part.row_text(rows))
            self._counts["bad"] += 1
            if isinstance(rows[0], BadLine):
                self._warn(part.name, f"{error} This line was skipped; further ones are only counted as bad.")
            return []
        self._counts["repeated"] += len(rows) - n
        self._counts["unlabelled"] += self._decoder.rows.n_dropped - known.n_unlabelled
        self._last = last
        self._notes += gaps
        return [(X, y)] if len(y) else []
