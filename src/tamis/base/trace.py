"""The record of every offer of a column selector: statistic, threshold and decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._shapes import Shapes
from tamis._validation import Array, Floats

DECISIONS = ("rejected", "accepted", "constant", "collinear", "full")
REJECTED, ACCEPTED, CONSTANT, COLLINEAR, FULL = range(len(DECISIONS))

RECORD = np.dtype(
    [
        ("offer", np.int64), ("name", object), ("statistic", np.float64), ("p_value", np.float64),
        ("log_p", np.float64), ("threshold", np.float64), ("wealth", np.float64), ("n_missing", np.int32),
        ("decision", "U9"),
    ]
)  # fmt: skip
_FLOATS = ("statistic", "log_p", "threshold", "wealth")
_LEAST = 64  # initial capacity in records


@dataclass
class Verdicts:
    """The decisions about consecutive columns.

    Attributes
    ----------
    decision : ndarray of shape (m,), int8
        Indices into :data:`DECISIONS`.
    statistic, log_p, threshold, wealth : ndarray of shape (m,), float64
        NaN if a method has no such value, or the column was not tested.
    dropped : tuple of int
        Features accepted earlier that are dropped, by the number of the offer.
    entered : tuple of int, optional
        The accepted ones in the order of acceptance, if that differs from the order of the columns.

    Examples
    --------
    >>> verdicts = Verdicts.empty(2)
    >>> verdicts.decision[1] = ACCEPTED
    >>> verdicts.decision, verdicts.wealth
    (array([0, 1], dtype=int8), array([nan, nan]))
    """

    decision: NDArray[np.int8]
    statistic: Floats
    log_p: Floats
    threshold: Floats
    wealth: Floats
    dropped: tuple[int, ...] = ()
    entered: tuple[int, ...] | None = None

    @classmethod
    def empty(cls, m: int) -> Verdicts:
        """Return `m` rejections without further values."""
        unknown = np.full((len(_FLOATS), m), np.nan)
        return cls(np.zeros(m, dtype=np.int8), unknown[0], unknown[1], unknown[2], unknown[3])


class Trace:
    """The records of all offers, or of accepted ones only; 64 bytes each.

    A shallow copy is a snapshot: records appended to one of the two do not change the other, as long as only one of
    them is continued.

    Examples
    --------
    >>> trace = Trace()
    >>> trace.append(0, ["red"], Verdicts.empty(1), np.zeros(1, dtype=np.int32))
    >>> trace.records()["name"].tolist(), trace.records()["decision"].tolist()
    (['red'], ['rejected'])
    """

    _state_spec = Shapes(
        "_floats (n, 4)  _counts (n, 3) int  _names (n) object  length in [0, n]  _counts[:, 2] in [0, 5)"
    )

    def __init__(self, *, accepted_only: bool = False) -> None:
        self.accepted_only = accepted_only
        self.length = 0
        self._floats = np.zeros((_LEAST, len(_FLOATS)))
        self._counts = np.zeros((_LEAST, 3), dtype=np.int64)  # number of the offer, missing values, decision
        self._names = np.empty(_LEAST, dtype=object)

    def append(
        self, first: int, names: list[str] | None, verdicts: Verdicts, n_missing: NDArray[np.int32]
    ) -> None:
        """Append the records of consecutive offers; `names` is None if columns are identified by number only."""
        kept: Any = slice(None)
        if self.accepted_only:
            kept = np.flatnonzero(verdicts.decision == ACCEPTED)
        offers = np.arange(first, first + len(verdicts.decision))[kept]
        self._make_room(len(offers))
        rows = slice(self.length, self.length + len(offers))
        for j, name in enumerate(_FLOATS):
            self._floats[rows, j] = getattr(verdicts, name)[kept]
        self._counts[rows, 0] = offers
        self._counts[rows, 1] = n_missing[kept]
        self._counts[rows, 2] = verdicts.decision[kept]
        self._names[rows] = None if names is None else np.array(names, dtype=object)[kept]
        self.length += len(offers)

    def _make_room(self, n: int) -> None:
        if self.length + n <= len(self._names):
            return
        capacity = max(2 * len(self._names), self.length + n)
        for name, nothing in (("_floats", 0), ("_counts", 0), ("_names", None)):
            old: Array = getattr(self, name)
            new = np.full((capacity, *old.shape[1:]), nothing, dtype=old.dtype)
            new[: self.length] = old[: self.length]
            setattr(self, name, new)

    def clear_room(self) -> None:
        """Clear everything after the last record."""
        self._floats[self.length :] = self._counts[self.length :] = 0
        self._names[self.length :] = None

    def records(self) -> Array:
        """Return the records as a structured array of dtype :data:`RECORD`."""
        records = np.empty(self.length, dtype=RECORD)
        for j, name in enumerate(_FLOATS):
            records[name] = self._floats[: self.length, j]
        counts = self._counts[: self.length]
        records["offer"], records["n_missing"] = counts[:, 0], counts[:, 1]
        records["decision"] = np.array(DECISIONS)[counts[:, 2]]
        records["p_value"] = np.exp(records["log_p"])
        records["name"] = [
            f"x{offer}" if name is None else name
            for offer, name in zip(counts[:, 0].tolist(), self._names[: self.length].tolist(), strict=True)
        ]
        return records
