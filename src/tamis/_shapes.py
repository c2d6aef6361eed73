"""The arrays of a model fit together: kernels trust the shapes they are given, so these are looked at before each call.

A class says once which shapes its arrays have, a letter for each size, and the same letter wherever it is the same::

    _shapes = "n_features_in_ (=j)  _mean (k, j)  _start (j+1)  _grid (j, 2)  _tables[] (k, *)  _scatter.S? (m, m)"

A size may be computed from earlier letters (``q*(q-1)//2``); ``*`` is any size, ``>n`` at least n, ``j?`` j or 0, and
a capital letter is a size of one item of a list alone. ``=`` marks an attribute that is a size, ``[]`` each item
of a list or dict, and ``?`` after a name what a model need not have. ``(its own)``: the part says its shapes itself, as
its `_fit_together`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from tamis.errors import StateError

__all__ = ["Shapes"]

_ENTRY = re.compile(r"([\w.\[\]]+)(\??) \(((?:[^()]|\([^()]*\))*)\)")
_ITS_OWN = "its own"
_REMEMBERED = 64  # combinations of shapes that were found to fit


class Shapes:
    """Which shapes the arrays of a class have.

    Parameters
    ----------
    text : str
        As the head of the module says.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> shapes = Shapes("weight (k)  mean (k, j)")
    >>> shapes.check(SimpleNamespace(weight=np.ones(2), mean=np.ones((2, 3))))
    >>> shapes.check(SimpleNamespace(weight=np.ones(2), mean=np.ones((3, 3))))
    Traceback (most recent call last):
    ...
    tamis.errors.StateError: 'mean' of a SimpleNamespace has the shape (3, 3), but (2, *) fits the rest: ...
    """

    def __init__(self, text: str) -> None:
        self._entries = [(path, size) for path, _, size in _ENTRY.findall(text)]
        # One expression reads all shapes: looking at them one by one would take longer than many a kernel.
        parts = [_expression(path, bool(optional), size) for path, optional, size in _ENTRY.findall(text)]
        source = f"lambda model: ({''.join(part + ', ' for part in parts)})"
        self._look: Callable[[Any], Any] = eval(source, {"each": _each, "own": _own})
        self._known: set[Any] = set()
        self._last: Any = None

    def check(self, model: Any) -> None:
        """Refuse a model whose arrays do not fit together.

        Raises
        ------
        StateError
            If so.
        """
        try:
            found = self._look(model)
        except (AttributeError, TypeError, LookupError):  # not started, or without a part
            self._compare(model)
            return
        if found != self._last:  # quicker than the hash
            if found not in self._known:
                if not self._fits(found):
                    self._compare(model)
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known.add(found)
            self._last = found

    @functools.cached_property
    def _fits(self) -> Callable[[Any], bool]:
        """Say whether shapes that were read are sure to fit: arrays that grow have other shapes in each call."""
        scope: dict[str, Any] = {"flat": _flat}
        exec(_comparison(self._entries), scope)
        return scope["fits"]  # type: ignore[no-any-return]

    def _compare(self, model: Any) -> None:
        sizes: dict[str, int] = {}
        for path, expected in self._entries:
            for i, part in enumerate(_parts(model, re.findall(r"\w+|\[\w*\]", path))):
                if expected == _ITS_OWN:
                    _own(part)
                    continue
                if expected[0] == "=":
                    sizes[expected[1]] = part
                    continue
                # A capital letter is one of this item alone.
                names = re.sub(r"[A-Z]", rf"\g<0>{i}", expected).split(", ")
                _refuse_unfit(model, path, getattr(part, "shape", None), names, sizes)
                sizes.update(
                    {name: size for name, size in zip(names, part.shape, strict=True) if name.isidentifier()}
                )


def _expression(path: str, optional: bool, size: str, owner: str = "model") -> str:
    """Return what reads a shape, as Python."""
    if "[]" in path:
        many, rest = path.split("[]", 1)
        whole = "own(item)" if size == _ITS_OWN else "item.shape"
        item = _expression(rest.removeprefix("."), optional, size, "item") if rest else whole
        return f"tuple([item if item is None else {item} for item in each({owner}.{many})])"
    if size == _ITS_OWN:
        return f"own({owner}.{path})"
    whole = f"{owner}{path}" if path[0] == "[" else f"{owner}.{path}"
    if not optional:
        return whole if size[0] == "=" else f"{whole}.shape"
    owner, _, name = whole.rpartition(".")
    return f"(part.shape if (part := getattr({owner}, {name!r}, None)) is not None else None)"


def _comparison(entries: list[tuple[str, str]]) -> str:
    """Return, as Python, a function that says whether shapes that were read are sure to fit together."""
    letters = sorted(
        {letter for _, size in entries if size != _ITS_OWN for letter in re.findall("[a-z]", size)}
    )
    lines = ["def fits(found):", "    of_item = {}", *(f"    {letter} = None" for letter in letters)]
    for n, (path, size) in enumerate(entries):
        if size == _ITS_OWN:
            continue
        if size[0] == "=":
            lines.append(f"    {size[1]} = found[{n}]")
            continue
        names = size.split(", ")
        lines.append(f"    for i, shape in enumerate(flat(found[{n}], {path.count('[]')})):")
        lines.append(f"        if len(shape) != {len(names)}: return False")
        for axis, name in enumerate(names):
            lines += _comparison_of_size(f"shape[{axis}]", name)
    return "\n".join([*lines, "    return True"])


def _comparison_of_size(size: str, name: str) -> list[str]:
    """Return the lines that compare one size with what the sizes before say; the first of a letter says it."""
    expression = name.strip(">?")
    if expression == "*":
        return []
    known = [
        f"{a} is not None" if a.islower() else f"({a!r}, i) in of_item"
        for a in set(re.findall("[a-zA-Z]", name))
    ]
    value = re.sub("[A-Z]", r"of_item['\g<0>', i]", expression)
    differs = f"{size} <= {value}" if name[0] == ">" else f"{size} != {value}"
    differs += f" and {size} != 0" if name[-1] == "?" else ""
    lines = [f"        if {' and '.join([*known, differs])}: return False"]
    return [*lines, f"        {value} = {size}"] if name.isidentifier() else lines


def _flat(found: Any, depth: int) -> Iterator[tuple[int, ...]]:
    """Give the shapes that were read in lists of lists, but not of what a model does not have."""
    if found is None:
        return
    if depth == 0:
        yield found
        return
    for item in found:
        yield from _flat(item, depth - 1)


def _own(part: Any) -> None:
    shapes = getattr(part, "_fit_together", None)
    if shapes is not None:
        shapes.check(part)


def _each(items: Any) -> Any:
    return items.values() if isinstance(items, dict) else items or ()


def _parts(part: Any, path: list[str]) -> Iterator[Any]:
    """Give what stands at the end of a path, if there is such a thing."""
    if part is None:
        return
    if not path:
        yield part
    elif path[0] == "[]":
        for item in _each(part):
            yield from _parts(item, path[1:])
    elif path[0][0] == "[":
        yield from _parts(next(iter(part[int(path[0][1:-1]) :]), None), path[1:])
    else:
        yield from _parts(getattr(part, path[0], None), path[1:])


def _refuse_unfit(
    model: Any, path: str, shape: tuple[int, ...] | None, names: list[str], sizes: dict[str, int]
) -> None:
    fits = shape is not None and len(shape) == len(names)
    if not fits or not all(
        _is_size(size, name, sizes) for size, name in zip(shape or (), names, strict=True)
    ):
        shown = ", ".join(
            str(found) if (found := _size_of(name, sizes)) is not None else "*" for name in names
        )
        raise StateError(
            f"{path!r} of a {type(model).__name__} has the shape {shape}, but ({shown}) fits the rest: the model was"
            " changed from outside, so fit it again or load it from where it was saved."
        )


def _is_size(size: int, name: str, sizes: dict[str, int]) -> bool:
    known = _size_of(name, sizes)
    return (
        known is None or size == known or (name[0] == ">" and size > known) or (name[-1] == "?" and size == 0)
    )


def _size_of(name: str, sizes: dict[str, int]) -> int | None:
    """Return which size belongs at a place, if the places before say so."""
    expression = name.strip(">?")
    if expression == "*" or not set(re.findall(r"[a-zA-Z]\d*", expression)) <= set(sizes):
        return None
    return int(eval(expression, {}, dict(sizes)))
