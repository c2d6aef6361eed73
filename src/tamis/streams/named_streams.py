"""Streams with known relevant features by name: Barddal's Table 4.1, and others of the literature.

Two protocols: `"thesis"` (chapters 5 to 8) has 100,000 rows, 10 concepts with a drift every 10,000 rows, and the
irrelevant and redundant features of Table 4.1; `"chapter9"` has 200,000 rows, 3 concepts, and `n_irrelevant`
(100, 200, 500) irrelevant features. The page on generators documents choices that neither specifies, and deviations of
the released generators from the text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from tamis._validation import as_table, check_choice, check_number
from tamis.errors import DataError, UnknownNameError, did_you_mean
from tamis.streams.appended import Irrelevant, Redundant
from tamis.streams.concepts import (
    BG1,
    BG2,
    BG3,
    SEA,
    STAGGER,
    Agrawal,
    AssetNegotiation,
    Concept,
    Hyperplane,
    LinearWindow,
    RandomRBF,
    RandomTree,
)
from tamis.streams.datasets import list_datasets
from tamis.streams.draws import Draws
from tamis.streams.frames import DictStream, FrameStream, is_frame
from tamis.streams.stream import ArrayStream, BatchStream, Stream
from tamis.streams.synthetic import SyntheticStream


@dataclass(frozen=True)
class _Plan:
    """Recipe for the concepts of one stream."""

    rng: np.random.Generator
    n_concepts: int
    n_irrelevant: int
    chapter9: bool
    sampler: str

    def subsets(self, n_features: int, sizes: Sequence[int], at_least: int = 0) -> list[tuple[int, ...]]:
        """Return random relevant columns for each concept, at least one from `at_least` on, never the same in a row."""
        made: list[tuple[int, ...]] = []
        while len(made) < self.n_concepts:
            size = sizes[int(self.rng.integers(len(sizes)))]
            columns = tuple(sorted(self.rng.choice(n_features, size, replace=False).tolist()))
            if columns[-1] >= at_least and (columns not in made[-1:] or n_features == size):
                made.append(columns)
        return made

    def in_turn(self, functions: Sequence[int]) -> list[int]:
        """Return the function of each concept, in random order, never the same twice in a row."""
        made: list[int] = []
        while len(made) < self.n_concepts:
            order = self.rng.permutation(functions).tolist()
            made += order if not made or order[0] != made[-1] else order[1:]
        return made[: self.n_concepts]

    def seeds(self) -> list[int]:
        """Return a seed for each concept."""
        return [int(seed) for seed in self.rng.integers(2**31, size=self.n_concepts)]


@dataclass(frozen=True)
class _Recipe:
    text: str
    concepts: Callable[[_Plan], list[Concept]]
    n_irrelevant: int
    label_noise: float = 0.0
    redundant: tuple[Redundant, ...] = ()
    appends: bool = False  # whether irrelevant features follow those of the concepts, not among them
    n_drifts: int = 9
    width: float = 1000.0


def _agrawal(plan: _Plan) -> list[Concept]:
    functions = [1 + k % 4 for k in range(plan.n_concepts)] if plan.chapter9 else plan.in_turn(range(2, 10))
    return [Agrawal(function) for function in functions]


def _asset_negotiation(plan: _Plan) -> list[Concept]:
    functions = [1 + k % 5 for k in range(plan.n_concepts)] if plan.chapter9 else plan.in_turn(range(1, 6))
    return [AssetNegotiation(function) for function in functions]


def _bits(kind: type[BG1 | BG2 | BG3]) -> Callable[[_Plan], list[Concept]]:
    def concepts(plan: _Plan) -> list[Concept]:
        wide = kind is BG1 and not plan.chapter9
        n_features = plan.n_irrelevant + (4 if wide else 3)
        subsets = plan.subsets(n_features, (3, 4, 5) if wide else (3,))
        if plan.chapter9 and kind is not BG3:
            subsets = [((0, 1, 2), (3, 4, 5), (1, 3, 5), (0, 1, 3))[k % 4] for k in range(plan.n_concepts)]
        return [kind(columns, n_features, plan.sampler) for columns in subsets]

    return concepts


def _tree(plan: _Plan) -> list[Concept]:
    n_features, size = (plan.n_irrelevant + 6, 6) if plan.chapter9 else (plan.n_irrelevant + 5, 5)
    n_nominal = n_features // 2
    subsets = plan.subsets(n_features, (size,), at_least=n_nominal)
    return [
        RandomTree(columns, n_nominal, n_features - n_nominal, seed=seed)
        for columns, seed in zip(subsets, plan.seeds(), strict=True)
    ]


def _sea(plan: _Plan) -> list[Concept]:
    n_features, thetas = 2 + plan.n_irrelevant, (8.0, 9.5, 9.0, 7.0)
    subsets = plan.subsets(n_features, (2,))
    return [SEA(columns, thetas[k % 4], n_features) for k, columns in enumerate(subsets)]


def _stagger(plan: _Plan) -> list[Concept]:
    return [STAGGER(1 + k % 3) for k in range(plan.n_concepts)]


def _linear(plan: _Plan) -> list[Concept]:
    n_features = 100 + plan.n_irrelevant
    return [LinearWindow(k % n_features, 100, n_features) for k in range(plan.n_concepts)]


def _random(kind: type[Hyperplane | RandomRBF]) -> Callable[[_Plan], list[Concept]]:
    def concepts(plan: _Plan) -> list[Concept]:
        n_features = 10 + plan.n_irrelevant
        subsets = plan.subsets(n_features, (10,))
        return [
            kind(columns, n_features, seed=seed) for columns, seed in zip(subsets, plan.seeds(), strict=True)
        ]

    return concepts


_LINEAR, _THREE_KINDS = ((Redundant(15),), (Redundant(5), Redundant(5, "quadratic"), Redundant(5, "cosine")))
_RECIPES = {
    "AGR": _Recipe("nine facts about a person, ten rules for a loan", _agrawal, 0, 0.0, (Redundant(11),), True),
    "AN": _Recipe("five categories of an offer, five rules of interest", _asset_negotiation, 0, 0.05, _LINEAR, True),
    "BG1": _Recipe("whether all of a few bits are 1", _bits(BG1), 31, 0.1, _LINEAR),
    "BG2": _Recipe("whether two of three bits are 1", _bits(BG2), 32, 0.1, _LINEAR),
    "BG3": _Recipe("whether three bits are equal; none is informative by itself", _bits(BG3), 32, 0.1, _LINEAR),
    "RTG": _Recipe("a random decision tree over categories and numbers", _tree, 30, 0.0, _THREE_KINDS),
    "SEA": _Recipe("whether the sum of two numbers exceeds a threshold", _sea, 33, 0.1, _THREE_KINDS),
    "STAGGER": _Recipe("three concepts about size, colour and shape", _stagger, 12, 0.0, (), True),
    "hyperplane": _Recipe("which side of a plane in ten features", _random(Hyperplane), 40, 0.05),
    "RBF": _Recipe("clouds around random centres in ten features", _random(RandomRBF), 40),
    "linear-window": _Recipe(
        "a linear target of a sliding window of 100 correlated columns (Wang, Barbu 2021)", _linear, 900,
        n_drifts=49, width=0.0,
    ),
}  # fmt: skip
_ALIASES = {
    "agrawal": "AGR", "assetnegotiation": "AN", "bg1fd": "BG1", "bg2fd": "BG2", "bg3fd": "BG3", "randomrbf": "RBF",
    "randomtree": "RTG", "rtgfd": "RTG", "seafd": "SEA", "wangbarbu": "linear-window",
}  # fmt: skip


def load_stream(
    name: str,
    *,
    seed: int = 0,
    protocol: str = "thesis",
    n_rows: int | None = None,
    n_drifts: int | None = None,
    width: float | None = None,
    label_noise: float | None = None,
    n_irrelevant: int | None = None,
    sampler: str = "uniform",
    positive_share: float | None = None,
) -> SyntheticStream:
    """Return a stream whose relevant features are known for every row.

    Parameters
    ----------
    name : str
        One of :func:`list_streams`, in upper or lower case.
    seed : int, default=0
        At least 0. Determines the relevant features and the rows.
    protocol : {"thesis", "chapter9"}, default="thesis"
        ``"thesis"``: 100,000 rows, 9 drifts, the features of Table 4.1. ``"chapter9"``: 200,000 rows, 2 drifts,
        `n_irrelevant` irrelevant features and no redundant one.
    n_rows : int, optional
        Number of rows; by default that of the protocol.
    n_drifts : int, optional
        Number of drifts, evenly spaced; by default that of the protocol. 0: one concept.
    width : float, optional
        Number of rows over which a drift extends, at least 0; 1 is abrupt. By default 1000 ("thesis") or 5000
        ("chapter9").
    label_noise : float in [0, 1), optional
        Probability that a label is wrong; by default that of the published runs.
    n_irrelevant : int, optional
        Number of irrelevant features; by default those of Table 4.1, and 100 in "chapter9".
    sampler : {"uniform", "reference"}, default="uniform"
        How BG1, BG2 and BG3 draw the relevant bits given the class: uniformly, or like the released generators.
    positive_share : float in (0, 1), optional
        Probability of class 1, before labels are flipped; by default 0.5, or the natural one for "RTG" and
        "hyperplane". It cannot be set for "RBF" and "linear-window".

    Returns
    -------
    SyntheticStream

    Raises
    ------
    UnknownNameError
        If the name is unknown; the message suggests the nearest names.
    ValueError
        If an option is out of range.

    Examples
    --------
    >>> stream = load_stream("SEA", seed=1)
    >>> stream.n_rows, stream.n_features, stream.drifts[:3]
    (100000, 50, (10000, 20000, 30000))
    >>> stream.relevant_at(0), stream.relevant_at(10_000)
    (array([11, 30]), array([ 4, 16]))
    >>> rare = load_stream("SEA", seed=1, n_rows=1000, label_noise=0, positive_share=0.05)
    >>> rare.take(1000)[1].mean().round(2)
    np.float64(0.05)
    """
    name = _canonical(name)
    recipe = _RECIPES[name]
    check_choice("protocol", protocol, ("thesis", "chapter9"))
    check_choice("sampler", sampler, ("uniform", "reference"))
    chapter9 = protocol == "chapter9"
    arguments = {
        "n_rows": n_rows, "n_drifts": n_drifts, "width": width, "label_noise": label_noise,
        "n_irrelevant": n_irrelevant,
    }  # fmt: skip
    usual = {
        "n_rows": 200_000 if chapter9 else 100_000,
        "n_drifts": 2 if chapter9 else recipe.n_drifts,
        "width": 5000.0 if chapter9 else recipe.width,
        "label_noise": recipe.label_noise,
        "n_irrelevant": 100 if chapter9 else recipe.n_irrelevant,
    }
    chosen: dict[str, Any] = {key: usual[key] if value is None else value for key, value in arguments.items()}
    check_number("seed", seed, low=0, integer=True)
    check_number("n_rows", chosen["n_rows"], low=1, integer=True)
    check_number("n_drifts", chosen["n_drifts"], low=0, high=chosen["n_rows"] - 1, integer=True)
    check_number("n_irrelevant", chosen["n_irrelevant"], low=0, integer=True)
    n_concepts, irrelevant = chosen["n_drifts"] + 1, chosen["n_irrelevant"]
    plan = _Plan(Draws(seed).child("concepts").generator(), n_concepts, irrelevant, chapter9, sampler)
    stream = SyntheticStream(
        _with_share(recipe.concepts(plan), positive_share, name),
        chosen["n_rows"],
        drifts=[k * (chosen["n_rows"] // n_concepts) for k in range(1, n_concepts)],
        width=chosen["width"],
        label_noise=chosen["label_noise"],
        appended=[*_irrelevant(irrelevant if recipe.appends else 0), *(() if chapter9 else recipe.redundant)],
        seed=seed,
    )
    stream.settings = {
        "kind": "generated",
        "name": name,
        "seed": int(seed),
        "protocol": protocol,
        **arguments,
        "sampler": sampler,
        **({} if positive_share is None else {"positive_share": positive_share}),
    }
    return stream


def _with_share(concepts: list[Concept], positive_share: float | None, name: str) -> list[Concept]:
    if positive_share is None:
        return concepts
    if not all("positive_share" in vars(concept) for concept in concepts):
        raise ValueError(
            f"The classes of {name} have fixed proportions: omit positive_share={positive_share}."
        )
    return [dataclasses.replace(cast(Any, concept), positive_share=positive_share) for concept in concepts]


def list_streams() -> list[dict[str, Any]]:
    """Return a description of every stream with known relevant features: those of Table 4.1, then others.

    Returns
    -------
    list of dict
        ``name``, ``n_features``, ``n_rows``, ``drifts`` (number of drifts) and ``text``.

    Examples
    --------
    >>> [row["n_features"] for row in list_streams() if row["name"] == "SEA"]
    [50]
    """
    rows = []
    for name, recipe in _RECIPES.items():
        stream = load_stream(name)
        rows.append({
            "name": name, "n_features": stream.n_features, "n_rows": stream.n_rows, "drifts": len(stream.drifts),
            "text": recipe.text,
        })  # fmt: skip
    return rows


def _irrelevant(n: int) -> list[Irrelevant]:
    """Return irrelevant features, half numeric and half binary, as in chapter 9."""
    parts = ((n - n // 2, 0), (n // 2, 2))
    return [Irrelevant(many, n_values) for many, n_values in parts if many]


def _canonical(name: str) -> str:
    plain = {_normalize(known): known for known in _RECIPES} | _ALIASES
    if _normalize(str(name)) not in plain:
        hint = did_you_mean(_normalize(str(name)), plain, n=2)
        raise UnknownNameError(
            f"No stream is named {name!r}{hint} Known: {', '.join(_RECIPES)}; load_dataset opens real data."
        )
    return plain[_normalize(str(name))]


def _normalize(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


# -- any source --------------------------------------------------------------------------------------------


def as_stream(source: Any, label: str | int | tuple[Any, ...] | None = None) -> Stream:
    """Return a stream for any supported source of rows and labels.

    Parameters
    ----------
    source : Stream, pair (X, y), frame, or iterable
        A stream is returned unchanged. A frame (pandas, Polars, Arrow, LazyFrame, DuckDB relation) and an iterable of
        dicts or frames need `label`. Other iterables yield pairs (dict, label), like the data sets of River, or batches
        (X, y), like the DataLoader of PyTorch.
    label : str, int or tuple, optional
        Name of the label column, or its position if no column has that name; negative positions count from the end.

    Raises
    ------
    TypeError
        If the argument is none of these; for a path or a name, the message names the function that opens it.
    DataError
        If `label` is missing, is not a column, or is passed although the source contains labels.

    Examples
    --------
    >>> import numpy as np
    >>> as_stream((np.eye(3), [0, 1, 0])).n_rows
    3
    >>> as_stream([({"heat": 1.5}, "on"), ({"heat": 0.5}, "off")]).feature_names
    ['heat']
    """
    is_pair = isinstance(source, tuple) and len(source) == 2 and not isinstance(source[0], tuple)
    # A pair of dicts, or of (dict, label) pairs, is two rows.
    is_pair = is_pair and not all(isinstance(part, dict) for part in source)
    if label is not None and (isinstance(source, Stream) or is_pair):
        raise DataError(f"label={label!r} is for a frame or dicts, but these rows have labels: omit it.")
    if isinstance(source, Stream):
        return source
    if is_pair:
        X, y = source
        table = as_table(X)
        if table is None or len(table.numeric) == len(table.own_names):
            return ArrayStream(X if table is None else table, y)
        return FrameStream(table, y=y)
    if isinstance(source, str | bytes | Path):
        raise TypeError(_opened_by(source))
    table = as_table(source)
    if table is not None or is_frame(source):
        if label is None:
            raise DataError('The frame needs the name of its label column: pass label="...".')
        return FrameStream(source if table is None else table, label)
    # Iterating over an unsupported table would yield its names or rows.
    is_table = hasattr(source, "shape") or hasattr(type(source), "columns")
    if isinstance(source, Iterable) and not is_table and not isinstance(source, dict):
        return DictStream(source, label) if label is not None or _has_names(source) else BatchStream(source)
    kind = "None" if source is None else f"a {type(source).__name__}"
    raise TypeError(
        f"A stream is a Stream, a pair (X, y), a frame with label=, or an iterable, got {kind}: pass the pair (X, y),"
        " or open a file with tamis.open_file."
    )


def _has_names(source: Iterable[Any]) -> bool:
    """Return whether rows are dicts or in frames, without consuming one from an iterator."""
    if type(source).__module__.startswith("river."):
        return True
    first = source[0] if isinstance(source, list | tuple) and source else None
    first = first[0] if isinstance(first, tuple) and first else first
    return isinstance(first, dict) or is_frame(first)


def _opened_by(name: Any) -> str:
    """Return the call to use instead of a name."""
    if isinstance(name, str):
        for function, rows in (("load_dataset", list_datasets()), ("load_stream", list_streams())):
            if any(str(row["name"]).lower() == name.lower() for row in rows):
                return f"{name!r} is a name, not rows: pass tamis.{function}({name!r})."
    if Path(name if not isinstance(name, bytes) else name.decode()).exists():
        return f"{str(name)!r} is a file: pass tamis.open_file({str(name)!r}, label=...)."
    return (
        f"{str(name)!r} is neither a file nor the name of a data set: give the path of a file to tamis.open_file, or a"
        " name of tamis.streams.list_datasets() to tamis.load_dataset."
    )
