"""Columns of an unbounded stream, and the decoding of its rows into numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis._validation import Mask
from tamis.streams.csv_table import CSVTable
from tamis.streams.files import TableStream
from tamis.streams.source import BytesSource
from tamis.streams.stream import Batch
from tamis.streams.tables import SchemaTable, Table, schema_types
from tamis.streams.tail.pending import PendingRows, all_missing, keys_of


class DecoderState(NamedTuple):
    """State that changes while rows are decoded."""

    encoders: list[tuple[int, float, int]]
    whole_labels: bool
    n_unlabelled: int
    facts: dict[str, Any]  # of the table


class RowDecoder:
    """Decodes rows into numbers and labels, with columns determined by the first rows.

    Parameters
    ----------
    path : str
        Path for error messages about columns.
    table : Table
    label : str or int
    how : dict
        Options of :class:`~tamis.streams.files.TableStream`.
    """

    def __init__(
        self, path: str, table: Table, label: str | int | Sequence[str], how: dict[str, Any]
    ) -> None:
        self.table: Any = table
        table.source.name = path
        self.how = how
        self.rows = TableStream(table, label, **how)
        self._encoders = self.rows.encoders()
        self._facts: dict[str, Any] = {}

    @classmethod
    def from_state(cls, path: str, label: str | int | Sequence[str], state: dict[str, Any]) -> RowDecoder:
        """Return a decoder from a saved state."""
        facts, source = state["table"], BytesSource(path)
        table: Table = (
            CSVTable.from_state(source, facts)
            if facts["format"] in ("csv", "json")
            else SchemaTable(source, facts["format"], facts["names"], schema_types(facts["types"]))
        )
        table.n_first = facts.get("n_first")
        columns = cls(path, table, label, state["how"])
        for encoder, known in zip(columns._encoders, state["encoders"], strict=True):
            encoder.restore(known)
        return columns

    def begin(self) -> None:
        """Start with the first row."""
        if isinstance(self.table, CSVTable):
            self.table.check_mixed()
            self.table.begin()

    def allow_columns(self, most: int | None) -> None:
        """Append columns that later rows name, up to this number of columns (None: any); 0: append none."""
        names, n_first = self.table.names(), self.table.n_first
        n_excluded = self.rows.n_excluded(len(names) if n_first is None else n_first)
        self.table.gains_columns = most != 0
        if most:
            self.table.room = max(0, most - (len(names) - n_excluded))

    @property
    def first_categorical(self) -> list[int]:
        """The categorical features of the first rows, without those of columns that later rows have named."""
        return self.rows.categorical_of(self.table.n_first)

    def as_batch(self, columns: list[Any], n: int, row: int, absent: dict[str, Mask]) -> Batch:
        """Return rows as numbers and labels; `row` is the number of the first one, and some may lack a column."""
        return self.rows.as_batch(self._encoders, columns, n, row, absent)

    def as_delayed_batch(
        self, columns: list[Any], n: int, row: int, absent: dict[str, Mask], key: str, waiting: PendingRows
    ) -> Batch:
        """Return the rows whose label has arrived, in the order in which the labels arrived."""
        keys = keys_of(columns[self.table.names().index(key)], key, self.table.source.name, row)
        labels, features = self.rows.split(columns)
        has_label = ~labels.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        is_row = ~(has_label & all_missing(features, n))
        filtered = [column.filter(is_row) for column in columns]
        absent = {name: mask[is_row] for name, mask in absent.items()}
        X = self.rows.as_numbers(self._encoders, filtered, int(is_row.sum()), row, absent)
        values = self.rows.label_values(labels.filter(has_label))
        rows: list[Any] = [None] * n
        its_label: list[Any] = [None] * n
        for i, row_values in zip(np.flatnonzero(is_row).tolist(), X, strict=True):
            rows[i] = row_values
        for i, label in zip(np.flatnonzero(has_label).tolist(), values, strict=True):
            its_label[i] = label
        matched, labels_found = waiting.match(keys, rows, its_label)
        return waiting.as_array(matched, X.shape[1]), np.array(labels_found, dtype=values.dtype)

    def mark(self) -> DecoderState:
        """Return a mark of the current state, for `rollback`."""
        marks = [one.mark() for one in self._encoders]
        if self._facts.get("names") != (names := self.table.names()):
            its = self.table
            self._facts = {"format": its.format, "names": names, "n_first": its.n_first, **its.facts()}
        return DecoderState(marks, self.table.whole_labels, self.rows.n_dropped, self._facts)

    def rollback(self, known: DecoderState) -> None:
        """Restore the state at a mark; columns that were appended since remain."""
        marks = [*known.encoders, *[(0, 0.0, 0)] * (len(self._encoders) - len(known.encoders))]
        for encoder, mark in zip(self._encoders, marks, strict=True):
            encoder.rollback(mark)
        self.table.whole_labels, self.rows.n_dropped = known.whole_labels, known.n_unlabelled

    def state(self, known: DecoderState) -> dict[str, Any]:
        """Return the state at a mark, to be saved."""
        encoders = [one.state(mark) for one, mark in zip(self._encoders, known.encoders, strict=False)]
        return {
            "table": {**known.facts, "labels": self.table.labels, "whole_labels": known.whole_labels},
            "how": self.how, "encoders": encoders,
        }  # fmt: skip
