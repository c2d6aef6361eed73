"""The record of every offer of a column selector: the evidence, the bar it had to pass, and the decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._shapes import Shapes
from tamis._validation import Array

__all__ = [
    "ACCEPTED",
    "COLLINEAR",
    "CONSTANT",
    "DECISIONS",
    "FULL",
    "RECORD",
    "REJECTED",
    "Trace",
    "Verdicts",
]

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
_LEAST = 64  # records there is room for at first


@dataclass
class Verdicts:
    """The decisions about consecutive columns.

    Attributes
    ----------
    decision : ndarray of shape (m,), int8
        Positions in :data:`DECISIONS`.
    statistic, log_p, threshold, wealth : ndarray of shape (m,), float64
        NaN where a method has no such value, or the column was not tested.
    dropped : tuple of int
        Features accepted earlier that leave again, by their place in the order of offers.
    entered : tuple of int, optional
        The accepted ones in the order in which they entered, if that is not the order of the columns.

    Examples
    --------
    >>> verdicts = Verdicts.empty(2)
    >>> verdicts.decision[1] = ACCEPTED
    >>> verdicts.decision, verdicts.wealth
    (array([0, 1], dtype=int8), array([nan, nan]))
    """

    decision: NDArray[np.int8]
    statistic: NDArray[np.float64]
    log_p: NDArray[np.float64]
    threshold: NDArray[np.float64]
    wealth: NDArray[np.float64]
    dropped: tuple[int, ...] = ()
    entered: tuple[int, ...] | None = None

    @classmethod
    def empty(cls, m: int) -> Verdicts:
        """Return `m` rejections without further values."""
        unknown = np.full((len(_FLOATS), m), np.nan)
        return cls(np.zeros(m, dtype=np.int8), unknown[0], unknown[1], unknown[2], unknown[3])


class Trace:
    """The records of all offers, or of the accepted ones only; 64 bytes each.

    A shallow copy is a snapshot: records added later to one of the two do not change the other, as long as only one of
    them is continued.

    Examples
    --------
    >>> trace = Trace()
    >>> trace.append(0, ["red"], Verdicts.empty(1), np.zeros(1, dtype=np.int32))
    >>> trace.records()["name"].tolist(), trace.records()["decision"].tolist()
    (['red'], ['rejected'])
    """

    _state_spec = Shapes(
        "_floats (n, 4)  _counts (n, 3)  _names (n)  length in [0, n]  _counts[:, 2] in [0, 5)"
    )

    def __init__(self, *, accepted_only: bool = False) -> None:
        self.accepted_only = accepted_only
        self.length = 0
        self._floats = np.zeros((_LEAST, len(_FLOATS)))
        self._counts = np.zeros((_LEAST, 3), dtype=np.int64)  # place of the offer, values missing, decision
        self._names = np.empty(_LEAST, dtype=object)

    def append(
        self, first: int, names: list[str] | None, verdicts: Verdicts, n_missing: NDArray[np.int32]
    ) -> None:
        """Add the records of consecutive offers; `names` is None where columns are known by their place only."""
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
        """Clear what stands after the last record."""
        self._floats[self.length :] = self._counts[self.length :] = 0
        self._names[self.length :] = None

    def records(self) -> Array:
        """Return the records as a structured array of dtype :data:`RECORD`."""
        result = np.empty(self.length, dtype=RECORD)
        for j, name in enumerate(_FLOATS):
            result[name] = self._floats[: self.length, j]
        counts = self._counts[: self.length]
        result["offer"], result["n_missing"] = counts[:, 0], counts[:, 1]
        result["decision"] = np.array(DECISIONS)[counts[:, 2]]
        result["p_value"] = np.exp(result["log_p"])
        result["name"] = [
            f"x{offer}" if name is None else name
            for offer, name in zip(counts[:, 0].tolist(), self._names[: self.length].tolist(), strict=True)
        ]
        return result
