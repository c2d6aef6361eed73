"""Streams with known relevant features: concepts one after another, label noise, appended features.

The drift law, for a drift at row t_k of width W from concept a to concept b (erratum of Barddal's thesis: Eq. 4.1 omits
the factor 4/W of its derivation and of MOA):

    P(row t comes from b) = 1 / (1 + exp(-4 (t - t_k) / W))                                                    (1)

Each row follows the nearest drift, so (1) is exact if drifts are far apart compared with W. MOA nests its streams
instead, which slightly delays later drifts. Every random number belongs to a row and a purpose
(:mod:`tamis.streams.draws`), so rows do not depend on batches, and noise and appended features do not affect the rest.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tamis._validation import Array, Indices, Mask, check_number, is_integer
from tamis.streams.appended import Irrelevant, Redundant, RedundantColumns
from tamis.streams.concepts.concept import Concept, Feature, feature_ranges
from tamis.streams.draws import Draws
from tamis.streams.stream import Batch, Stream, rechunk


class SyntheticStream(Stream):
    """A sequence of concepts whose relevant features are known for every row.

    Parameters
    ----------
    concepts : sequence of Concept
        At least one; all have the same features.
    n_rows : int
        At least 1.
    drifts : sequence of int, default=()
        Rows at which one concept is replaced by the next, in ascending order, within (0, n_rows). With more drifts than
        concepts, the concepts recur in turn.
    width : float, default=1
        W of the drift law (1), in rows: 98 % of a change is within 1.15 W on either side. 1 is an abrupt drift (with
        mixed adjacent rows), 0 an instantaneous one.
    label_noise : float in [0, 1), default=0.0
        Probability that a label is replaced by another one.
    appended : sequence of Irrelevant or Redundant, default=()
        Features appended to those of the concepts, in this order.
    seed : int, default=0
        At least 0.

    Attributes
    ----------
    feature_names : list of str
    feature_types : list of {"numeric", "nominal"}
        Nominal features are codes 0, 1, ... in a float column.
    features : tuple of Feature
        Names, types and ranges together.
    drifts : tuple of int
    drift_widths : tuple of float
    relevant_anywhere : ndarray of shape (n,), intp
        Columns relevant in any concept of the stream, ascending.
    copy_of : ndarray of shape (n_features,), intp
        The source column of each redundant column; the column itself for all others.

    Raises
    ------
    ValueError
        If a parameter is invalid, or the concepts do not have the same features.

    References
    ----------
    Barddal (2019). Doctoral thesis on feature drift in data streams, chapter 4.

    Examples
    --------
    Two concepts, a drift at row 1000, and two features computed from the relevant ones:

    >>> from tamis.streams.concepts import SEA
    >>> concepts = [SEA(relevant=(0, 1), n_features=5), SEA(relevant=(2, 4), n_features=5)]
    >>> stream = SyntheticStream(concepts, 2000, drifts=[1000], appended=[Redundant(2)], seed=1)
    >>> stream.feature_names
    ['x0', 'x1', 'x2', 'x3', 'x4', 'x0_linear', 'x1_linear']
    >>> stream.relevant_at(999), stream.relevant_at(1000)
    (array([0, 1]), array([2, 4]))
    >>> [X.shape for X, y in stream.batches(800)]
    [(800, 7), (800, 7), (400, 7)]
    """

    feature_names: list[str]
    n_features: int
    n_rows: int

    def __init__(
        self,
        concepts: Sequence[Concept],
        n_rows: int,
        *,
        drifts: Sequence[int] = (),
        width: float = 1.0,
        label_noise: float = 0.0,
        appended: Sequence[Irrelevant | Redundant] = (),
        seed: int = 0,
    ) -> None:
        self.concepts = tuple(concepts)
        if not self.concepts or not all(isinstance(concept, Concept) for concept in self.concepts):
            raise ValueError(f"concepts must be a list of at least one Concept, got {concepts!r}.")
        check_number("n_rows", n_rows, low=1, integer=True)
        check_number("width", width, low=0)
        check_number("label_noise", label_noise, low=0, high=1, open_high=True)
        check_number("seed", seed, low=0, integer=True)
        self.n_rows, self._width, self._noise = int(n_rows), float(width), float(label_noise)
        self.drifts = _check_drifts(drifts, self.n_rows)
        self.drift_widths = (self._width,) * len(self.drifts)
        self._seed, self._appended, self._draws = int(seed), tuple(appended), Draws(seed)
        self._check_concepts()
        self._plan_appended()
        self.feature_names = [feature.name for feature in self.features]
        self.feature_types = ["nominal" if feature.n_values else "numeric" for feature in self.features]
        self.categorical = [j for j, feature in enumerate(self.features) if feature.n_values]
        self.n_features = len(self.features)
        self._edges = np.array([(a + b) / 2 for a, b in zip(self.drifts, self.drifts[1:], strict=False)])
        self._relevant = np.zeros((len(self.concepts), self.n_features), dtype=bool)
        for k, concept in enumerate(self.concepts):
            self._relevant[k, list(concept.relevant)] = True
        self._read = 0
        self.settings: dict[str, Any] | None = None

    def _check_concepts(self) -> None:
        first = self.concepts[0]
        self._n_classes, self._base = first.n_classes, first.features
        for concept in self.concepts:
            if (concept.features, concept.n_classes) != (self._base, self._n_classes):
                raise ValueError(
                    f"All concepts must have the same features and classes, unlike {first!r} and {concept!r}."
                )
        if self._n_classes:
            self.classes = np.arange(self._n_classes)
        elif self._noise:
            raise ValueError(f"label_noise must be 0 for a numeric target, got {self._noise}.")

    def _plan_appended(self) -> None:
        """Determine which columns are appended, and where."""
        anywhere = sorted({j for concept in self.concepts for j in concept.relevant})
        self.relevant_anywhere = np.array(anywhere, dtype=np.intp)
        features, copies = list(self._base), list(range(len(self._base)))
        self._writers: list[Any] = []
        for part in self._appended:
            first = len(features)
            if isinstance(part, Irrelevant):
                new: tuple[Feature, ...] = part.features
                self._writers.append((feature_ranges(new), first))
                copies += range(first, first + part.n)
            elif isinstance(part, Redundant):
                at = part.sources(self._base, tuple(anywhere))
                sources = [self._base[j] for j in at]
                new = part.features(sources)
                self._writers.append(RedundantColumns(part, sources, new, at, first))
                copies += at
            else:
                raise TypeError(
                    f"appended must contain Irrelevant or Redundant objects, got a {type(part).__name__}."
                )
            features += _make_unique(new, features)
        self.features, self.copy_of = tuple(features), np.array(copies, dtype=np.intp)

    # -- truth ---------------------------------------------------------------------------------------------

    def concept_at(self, t: int) -> int:
        """Return the current concept at row `t`, counted from 0; from the middle of a drift on, the new one."""
        self._check_row("t", t, self.n_rows - 1)
        return int(np.searchsorted(np.array(self.drifts), t, side="right")) % len(self.concepts)

    def relevant_at(self, t: int) -> Indices:
        """Return the columns relevant to the current concept at row `t`, ascending.

        Raises
        ------
        ValueError
            If the row does not exist.
        """
        return np.flatnonzero(self._relevant[self.concept_at(t)])

    def concept_of_rows(self, start: int, stop: int) -> Indices:
        """Return the concept of each row from `start` to before `stop`, shape (n_rows,)."""
        self._check_row("start", start, self.n_rows)
        self._check_row("stop", stop, self.n_rows)
        return self._sample_concepts(np.arange(start, stop))

    def relevant_rows(self, start: int, stop: int) -> Mask:
        """Return the columns that are relevant to each row, shape (stop - start, n_features).

        During a gradual drift, rows of both concepts are mixed; each row has the relevant columns of its own concept.
        """
        return self._relevant[self.concept_of_rows(start, stop)]

    def _check_row(self, name: str, row: int, last: int) -> None:
        if not is_integer(row) or not 0 <= row <= last:
            raise ValueError(f"{name} must be a row from 0 to {last}, got {row!r}.")

    def _sample_concepts(self, rows: Array) -> Indices:
        if not self.drifts:
            return np.zeros(len(rows), dtype=np.intp)
        nearest = np.searchsorted(self._edges, rows, side="right")
        late = rows - np.array(self.drifts)[nearest]
        if self._width > 0:
            odds = np.exp(np.clip(-4 * late / self._width, -50, 50))  # odds of the old concept
            # (1): the new one where u < 1 / (1 + odds)
            late = 1 - self._draws.child("drift").one(rows) * (1 + odds)
        return (nearest + (late >= 0)) % len(self.concepts)

    # -- rows ----------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int) -> Batch:
        """Return the rows from `start` to before `stop` (or the end of the stream) as one batch.

        Returns
        -------
        X : ndarray of shape (n_rows, n_features), float64
        y : ndarray of shape (n_rows,)
            Classes 0, 1, ...; numbers in a regression.
        """
        rows = np.arange(start, min(stop, self.n_rows))
        X = np.empty((len(rows), self.n_features))
        y = np.empty(len(rows), dtype=np.int64 if self._n_classes else np.float64)
        concept = self._sample_concepts(rows)
        for drawn, k in enumerate(np.flatnonzero(np.bincount(concept))):
            if not drawn:  # all of them, then the rows of other concepts again
                y[:] = self.concepts[k].draw(self._draws, rows, X)
            else:
                mine = np.flatnonzero(concept == k)
                part = np.empty((len(mine), len(self._base)))
                y[mine] = self.concepts[k].draw(self._draws, rows[mine], part)
                X[mine, : len(self._base)] = part
        for number, writer in enumerate(self._writers):
            draws = self._draws.child("appended").child(number)
            if isinstance(writer, tuple):
                draws.fill(rows, X, *writer)
            else:
                writer.write(draws, rows, X)
        return X, self._add_label_noise(rows, y)

    def _add_label_noise(self, rows: Array, y: Array) -> Array:
        if self._noise:
            u = self._draws.child("noise").one(rows)
            hit = np.flatnonzero(u < self._noise)
            # Given noise, u is again uniform.
            step = 1 + np.floor(u[hit] / self._noise * (self._n_classes - 1))
            y[hit] = (y[hit] + step.astype(np.int64)) % self._n_classes
        return y

    def batches(self, size: int = 100, *, start: int = 0) -> Iterator[Batch]:
        """Return an iterator over batches of exactly `size` rows (the last may be shorter); see :class:`Stream`."""
        check_number("batch_size", size, low=1, integer=True)
        check_number("start", start, low=0, integer=True)
        n = min(max(2**18 // self.n_features, 256), 4096)
        return rechunk(self._blocks(int(start), max(n // int(size), 1) * int(size)), int(size))

    def _blocks(self, start: int, n: int = 4096) -> Iterator[Batch]:
        self._read = start
        while self._read < self.n_rows:
            first, self._read = self._read, min(self._read + n, self.n_rows)
            yield self.read(first, self._read)

    def progress(self) -> float | None:
        """Return the fraction of the rows returned in the current pass."""
        return self._read / self.n_rows

    def _title(self) -> str:
        return str((self.settings or {}).get("name", ""))

    def _facts(self) -> list[str]:
        n = len(self.drifts)
        return [*super()._facts(), f"{n} drift{'s' * (n != 1)}"]

    def describe(self) -> dict[str, Any]:
        """Return the parameters of the stream, and a fingerprint of its first rows."""
        X, y = self.read(0, 64)
        made = self.settings or {
            "kind": "synthetic", "concepts": [_as_dict(concept) for concept in self.concepts], "n_rows": self.n_rows,
            "drifts": list(self.drifts), "width": self._width, "label_noise": self._noise,
            "appended": [_as_dict(part) for part in self._appended], "seed": self._seed,
        }  # fmt: skip
        # Rounded, since the cosine may differ in the last bit between machines.
        digest = hashlib.sha256(np.rint(np.column_stack([X, y]) * 1e3).astype("<i8").tobytes())
        return {**made, "fingerprint": digest.hexdigest()[:16]}


def _as_dict(part: Any) -> dict[str, Any]:
    values = dataclasses.asdict(part) if dataclasses.is_dataclass(part) and not isinstance(part, type) else {}
    lists = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {"class": f"{type(part).__module__}.{type(part).__qualname__}", **lists}


def _check_drifts(drifts: Sequence[int], n_rows: int) -> tuple[int, ...]:
    rows = list(drifts)
    if not all(map(is_integer, rows)) or rows != sorted(set(rows)):
        raise ValueError(f"drifts must be row numbers in ascending order, got {drifts!r}.")
    if rows and not (rows[0] > 0 and rows[-1] < n_rows):
        raise ValueError(
            f"drifts must lie within the stream's {n_rows} rows, and after the first, got {drifts!r}."
        )
    return tuple(map(int, rows))


def _make_unique(new: Sequence[Feature], old: Sequence[Feature]) -> list[Feature]:
    """Return the new features with unique names."""
    taken, made = {feature.name for feature in old}, []
    for feature in new:
        name, number = feature.name, 1
        while name in taken:
            number += 1
            name = f"{feature.name}_{number}"
        taken.add(name)
        made.append(dataclasses.replace(feature, name=name))
    return made
