"""Columns of an unbounded stream, and the decoding of its rows into numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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

    def __init__(self, path: str, table: Table, label: str | int, how: dict[str, Any]) -> None:
        self.table: Any = table
        table.source.name = path
        self.how = how
        self.rows = TableStream(table, label, **how)
        self._encoders = self.rows.encoders()
        self._facts = {"format": table.format, "names": table.names(), **table.facts()}

    @classmethod
    def from_state(cls, path: str, label: str | int, state: dict[str, Any]) -> RowDecoder:
        """Return a decoder from a saved state."""
        facts, source = state["table"], BytesSource(path)
        table = (
            CSVTable.from_state(source, facts)
            if facts["format"] in ("csv", "json")
            else SchemaTable(source, facts["format"], facts["names"], schema_types(facts["types"]))
        )
        columns = cls(path, table, label, state["how"])
        for encoder, known in zip(columns._encoders, state["encoders"], strict=True):
            encoder.restore(known)
        return columns

    def begin(self) -> None:
        """Start with the first row."""
        if isinstance(self.table, CSVTable):
            self.table.check_mixed()
            self.table.begin()

    def as_batch(self, columns: list[Any], n: int, row: int) -> Batch:
        """Return rows as numbers and labels; `row` is the number of the first one."""
        return self.rows.as_batch(self._encoders, columns, n, row)

    def as_delayed_batch(self, columns: list[Any], n: int, row: int, key: str, waiting: PendingRows) -> Batch:
        """Return the rows whose label has arrived, in the order in which the labels arrived."""
        keys = keys_of(columns[self.table.names().index(key)], key, self.table.source.name, row)
        labels, features = self.rows.split(columns)
        has_label = ~labels.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        is_row = ~(has_label & all_missing(features, n))
        filtered = [column.filter(is_row) for column in columns]
        X = self.rows.as_numbers(self._encoders, filtered, int(is_row.sum()), row)
        values = self.rows.label_values(labels.filter(has_label))
        rows: list[Any] = [None] * n
        its_label: list[Any] = [None] * n
        for i, row_values in zip(np.flatnonzero(is_row).tolist(), X, strict=True):
            rows[i] = row_values
        for i, label in zip(np.flatnonzero(has_label).tolist(), values, strict=True):
            its_label[i] = label
        matched, labels_found = waiting.match(keys, rows, its_label)
        return np.array(matched).reshape(len(matched), X.shape[1]), np.array(labels_found, dtype=values.dtype)

    def mark(self) -> DecoderState:
        """Return a mark of the current state, for `rollback`."""
        marks = [one.mark() for one in self._encoders]
        return DecoderState(marks, self.table.whole_labels, self.rows.n_dropped)

    def rollback(self, known: DecoderState) -> None:
        """Restore the state at a mark."""
        for encoder, mark in zip(self._encoders, known.encoders, strict=True):
            encoder.rollback(mark)
        self.table.whole_labels, self.rows.n_dropped = known.whole_labels, known.n_unlabelled

    def state(self, known: DecoderState) -> dict[str, Any]:
        """Return the state at a mark, to be saved."""
        encoders = [one.state(mark) for one, mark in zip(self._encoders, known.encoders, strict=True)]
        return {
            "table": {**self._facts, "labels": self.table.labels, "whole_labels": known.whole_labels},
            "how": self.how, "encoders": encoders,
        }  # fmt: skip
