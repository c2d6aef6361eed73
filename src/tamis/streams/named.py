"""Streams with known truth by name: the seven experiments of Barddal's Table 4.1, and others of the literature.

Two protocols: `"thesis"` (chapters 5 to 8) has 100,000 rows, 10 concepts with a drift every 10,000 rows, and the
irrelevant and redundant features of Table 4.1; `"chapter9"` has 200,000 rows, 3 concepts, and `n_irrelevant`
(100, 200, 500) irrelevant features. What neither states, and where the released generators do otherwise than the text
says, the page on generators tells what was chosen.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._check import check_choice, check_number
from tamis.errors import UnknownNameError
from tamis.streams.appended import Irrelevant, Redundant
from tamis.streams.concepts import SEA, Concept
from tamis.streams.draws import Draws
from tamis.streams.synthetic import SyntheticStream

__all__ = ["list_streams", "load_stream"]


@dataclass(frozen=True)
class _Plan:
    """What the concepts of one stream are drawn by."""

    rng: np.random.Generator
    n_concepts: int
    n_irrelevant: int
    chapter9: bool
    sampler: str

    def subsets(self, n_features: int, sizes: Sequence[int]) -> list[tuple[int, ...]]:
        """Return random relevant columns for each concept, never the same twice in a row."""
        made: list[tuple[int, ...]] = []
        while len(made) < self.n_concepts:
            size = sizes[int(self.rng.integers(len(sizes)))]
            columns = tuple(sorted(self.rng.choice(n_features, size, replace=False).tolist()))
            if not made or columns != made[-1] or n_features == size:
                made.append(columns)
        return made


@dataclass(frozen=True)
class _Recipe:
    text: str
    concepts: Callable[[_Plan], list[Concept]]
    n_irrelevant: int
    label_noise: float = 0.0
    redundant: tuple[Redundant, ...] = ()
    appends: bool = False  # whether irrelevant features come after those of the concepts, and not among them


def _sea(plan: _Plan) -> list[Concept]:
    n_features, thetas = 2 + plan.n_irrelevant, (8.0, 9.5, 9.0, 7.0)
    subsets = plan.subsets(n_features, [2])
    return [SEA(columns, thetas[k % 4], n_features) for k, columns in enumerate(subsets)]


_THREE_KINDS = (Redundant(5), Redundant(5, "quadratic"), Redundant(5, "cosine"))
_RECIPES = {
    "SEA": _Recipe("whether the sum of two numbers exceeds a threshold", _sea, 33, 0.1, _THREE_KINDS),
}
_ALIASES = {"seafd": "SEA"}


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
) -> SyntheticStream:
    """Return a stream whose relevant features are known at every row.

    Parameters
    ----------
    name : str
        One of :func:`list_streams`, in capitals or not.
    seed : int, default=0
        Another seed is another stream: other relevant features, other rows. At least 0.
    protocol : {"thesis", "chapter9"}, default="thesis"
        ``"thesis"``: 100,000 rows, 9 drifts, the features of Table 4.1. ``"chapter9"``: 200,000 rows, 2 drifts,
        `n_irrelevant` features that do not matter and none that is redundant.
    n_rows : int, optional
        By default that of the protocol.
    n_drifts : int, optional
        Drifts at equal distances; by default those of the protocol. 0: one concept.
    width : float, optional
        Rows that a drift takes, at least 0; 1 is abrupt. By default 1000 ("thesis") or 5000 ("chapter9").
    label_noise : float in [0, 1), optional
        Probability that a label is wrong; by default what the published runs had.
    n_irrelevant : int, optional
        Features that never matter; by default those of Table 4.1, and 100 in "chapter9".
    sampler : {"uniform", "reference"}, default="uniform"
        How BG1, BG2 and BG3 draw the relevant bits given the class: uniformly, or as the released generators do.

    Returns
    -------
    SyntheticStream

    Raises
    ------
    UnknownNameError
        If there is no such stream; the message suggests the nearest names.
    ValueError
        If an option is out of range.

    Examples
    --------
    >>> stream = load_stream("SEA", seed=1)
    >>> stream.n_rows, stream.n_features, stream.drifts[:3]
    (100000, 50, (10000, 20000, 30000))
    >>> stream.relevant_at(0), stream.relevant_at(10_000)
    (array([11, 30]), array([ 4, 16]))
    """
    name = _canonical(name)
    recipe = _RECIPES[name]
    check_choice("protocol", protocol, ("thesis", "chapter9"))
    check_choice("sampler", sampler, ("uniform", "reference"))
    chapter9 = protocol == "chapter9"
    given = {
        "n_rows": n_rows, "n_drifts": n_drifts, "width": width, "label_noise": label_noise,
        "n_irrelevant": n_irrelevant,
    }  # fmt: skip
    usual = {
        "n_rows": 200_000 if chapter9 else 100_000,
        "n_drifts": 2 if chapter9 else 9,
        "width": 5000.0 if chapter9 else 1000.0,
        "label_noise": recipe.label_noise,
        "n_irrelevant": 100 if chapter9 else recipe.n_irrelevant,
    }
    chosen: dict[str, Any] = {key: usual[key] if value is None else value for key, value in given.items()}
    check_number("seed", seed, low=0, integer=True)
    check_number("n_rows", chosen["n_rows"], low=1, integer=True)
    check_number("n_drifts", chosen["n_drifts"], low=0, high=chosen["n_rows"] - 1, integer=True)
    check_number("n_irrelevant", chosen["n_irrelevant"], low=0, integer=True)
    n_concepts, irrelevant = chosen["n_drifts"] + 1, chosen["n_irrelevant"]
    plan = _Plan(Draws(seed).child("concepts").generator(), n_concepts, irrelevant, chapter9, sampler)
    stream = SyntheticStream(
        recipe.concepts(plan),
        chosen["n_rows"],
        drifts=[k * chosen["n_rows"] // n_concepts for k in range(1, n_concepts)],
        width=chosen["width"],
        label_noise=chosen["label_noise"],
        appended=[*_irrelevant(irrelevant if recipe.appends else 0), *(() if chapter9 else recipe.redundant)],
        seed=seed,
    )
    stream.settings = {"name": name, "seed": int(seed), "protocol": protocol, **given, "sampler": sampler}
    return stream


def list_streams() -> list[dict[str, Any]]:
    """Return what is known of every stream with known truth, in the order of Table 4.1, then others.

    Returns
    -------
    list of dict
        ``name``, ``n_features``, ``n_rows``, ``drifts`` (their number) and ``text``.

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
    """Return half numbers, half binary, as chapter 9 appended them."""
    parts = ((n - n // 2, 0), (n // 2, 2))
    return [Irrelevant(many, n_values) for many, n_values in parts if many]


def _canonical(name: str) -> str:
    plain = {_plain(known): known for known in _RECIPES} | _ALIASES
    if _plain(str(name)) not in plain:
        near = difflib.get_close_matches(_plain(str(name)), plain, n=2)
        hint = f"; did you mean {' or '.join(repr(plain[key]) for key in near)}?" if near else "."
        raise UnknownNameError(
            f"No stream is named {name!r}{hint} Known: {', '.join(_RECIPES)}; load_dataset opens real data."
        )
    return plain[_plain(str(name))]


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
