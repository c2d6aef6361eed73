"""The features that the generators make, one at a time, in the plainest way: what was offered is kept in a set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

Selected = Callable[[], list[str]]
Features = Iterator[tuple[str, np.ndarray]]


class OneByOne:
    """A stream of single features from Python generators that are told what was selected."""

    def __init__(self, *parts: Callable[[Selected], Features]) -> None:
        self.parts, self.selector = parts, None
        self.features = self._all()

    def _all(self) -> Features:
        for part in self.parts:
            yield from part(lambda: self.selector.selected_)

    def next_features(self, selector):
        self.selector = selector
        return next(self.features, None)


def components(X: np.ndarray, k: int) -> Callable[[Selected], Features]:
    def make(selected: Selected) -> Features:
        spread = X.std(axis=0)
        Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
        for j, axis in enumerate(np.linalg.svd(Z, full_matrices=False)[2][:k]):
            yield f"pc{j}", Z @ axis * np.sign(axis[np.abs(axis).argmax()])

    return make


def originals(X: np.ndarray) -> Callable[[Selected], Features]:
    return lambda selected: ((f"x{j}", X[:, j]) for j in range(X.shape[1]))


def powers(X: np.ndarray, exponents: tuple[float, ...]) -> Callable[[Selected], Features]:
    def make(selected: Selected) -> Features:
        for j in range(X.shape[1]):
            for e in exponents:
                root = np.sign(X[:, j]) * np.abs(X[:, j]) ** e
                yield f"x{j}^{e:g}", X[:, j] ** e if float(e).is_integer() else root

    return make


def logs(X: np.ndarray) -> Callable[[Selected], Features]:
    def make(selected: Selected) -> Features:
        for j, x in enumerate(X.T):
            yield f"log(x{j})", np.log(x if x.min() > 0 else x - x.min() + (x.mean() - x.min()))

    return make


def interactions(X: np.ndarray, squares: bool = True, degree: int = 2) -> Callable[[Selected], Features]:
    """Selected columns and products of them with every column, each set of factors once."""

    def factors_of(name: str) -> list[int]:
        return [int(part.split("^")[0][1:]) for part in name.split("*") for _ in range(_power(part))]

    def make(selected: Selected) -> Features:
        offered, i = set(), 0
        while i < len(selected()):
            parent = selected()[i]
            i += 1
            if not re.fullmatch(r"x\d+(\^\d+)?(\*x\d+(\^\d+)?)*", parent):
                continue
            factors = factors_of(parent)
            for k in range(X.shape[1]):
                key = tuple(sorted([*factors, k]))
                if len(key) > degree or key in offered or (k in factors and not squares):
                    continue
                offered.add(key)
                counts = Counter([*factors, k])
                name = "*".join(f"x{j}^{c}" if c > 1 else f"x{j}" for j, c in counts.items())
                yield name, np.prod([X[:, j] for j in key], axis=0)

    return make


def ratios(X: np.ndarray) -> Callable[[Selected], Features]:
    def guarded(x: np.ndarray) -> np.ndarray:
        floor = max(np.abs(x[x != 0]).min(), 1e-8 * np.abs(x).max())
        return np.array([v if abs(v) >= floor else -floor if v < 0 else floor for v in x])

    def make(selected: Selected) -> Features:
        done, i = set(), 0
        while i < len(selected()):
            parent = selected()[i]
            i += 1
            if not parent.removeprefix("x").isdigit():
                continue
            a = int(parent[1:])
            others = [b for b in range(X.shape[1]) if b != a and b not in done]
            yield from ((f"x{a}/x{b}", X[:, a] / guarded(X[:, b])) for b in others)
            yield from ((f"x{b}/x{a}", X[:, b] / guarded(X[:, a])) for b in others)
            done.add(a)

    return make


def _power(part: str) -> int:
    return int(part.split("^")[1]) if "^" in part else 1
