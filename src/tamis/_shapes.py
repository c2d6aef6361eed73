"""Consistency of a model's arrays: kernels trust shapes and values, so both are validated before a kernel runs.

A class declares each array once, in the string `_shapes`, with a letter for each size::

    n_features_in_ (=j)
    _mean (k, j)
    _keys (m)
    _start (j+1) in [0, m] increasing
    _codes (n, j) int32 in [-1, k)
    _links (n, 2) int
    _links[:, 0] in [0, n)
    _end in [0, len(_keys)]
    _points[].slot (j) in [-1, len(its.points))
    _cuts (j, c) float in [-inf, inf] or nan
    _chain?.link (j)

**Shapes** are compared before each public call, by one compiled expression. A size may be computed from earlier letters
(``q*(q-1)//2``); ``*`` is any size, ``>n`` at least n, ``j?`` j or 0, and a capital letter is a size of one item of a
list alone. ``=`` marks an attribute that is a size, ``[]`` each item of a list or dict, and ``?`` after a name an
optional attribute, with everything inside it; a fitted model has all others. ``(its own)``: the part declares its own
shapes, as its `_state_spec`.

**Dtypes** and orders are validated once, when an object is loaded, because a kernel is compiled for each of them. An
array is ``float`` (float64) unless another dtype is declared, or ``int`` (int64) if it has a range; other dtypes are
``int32``, ``bool``, ``labels`` (any labels), ``object`` and ``dtype`` (the attribute `dtype` of the model). It is
C-contiguous unless ``fortran`` is declared; an array in another order is copied. The dtypes of a part that declares its
own shapes are left to it. Where items are declared one by one (``_model[0]``, ``_model[1]``), no other items may exist.

**Ranges** are validated at the same time: every array or number that a kernel uses as an index, offset, count, length
or code declares which values are safe. A range without a shape is validated at load only, so it suits numbers that
change with each call and columns of an array (``_links[:, 0]``). The bounds are expressions of size letters, attributes
of the model, ``self``, ``its`` (the object that the attribute belongs to), ``len``, ``min``, ``max``, ``abs``,
``diff``, ``inf`` and ``nan``; an array as a bound is broadcast. Further words: ``increasing`` (never decreases along
the last axis), ``distinct``, ``finite`` (floats without NaN and infinity), ``or nan``, and ``any "reason"`` for
integers whose values no kernel relies on. ``codes`` is int64 in [0, len(classes_)), or finite in a model without
classes_, of numeric targets. For a sparse matrix, the stored values are validated.

A **fill value** is what an array contains for a feature or class that has not occurred: ``_gain (c) fill 1``, or an
expression of the names of a bound, which broadcasts to the array: ``_sigma (m, j) fill its.prior``. Features have the
letter j and classes the letter c. Widening, new classes, forgetting and reordering follow from it: see
:class:`SizedState`. They apply to a part with declarations of its own if it says ``(its own) fill own``.

**What an update writes** is what a snapshot copies: everything except an attribute declared ``fixed``, which is only
replaced, and the slots of a ``ring w[its._next]`` that a batch does not overwrite: its axis of the letter w contains
the last rows, and the next row is written to slot `_next`, modulo w. Rings of the parts in a container are copied as
a whole, unless it says ``late 100``: the parts learn a batch and at most 100 rows before it. No shape is needed.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from tamis.errors import StateError

Array = Any

_ENTRY = re.compile(r"""
    \s* (?P<path> (?: [\w.] | \?\. | \[[^\]]*\] )+ ) (?P<optional> \?? )
    (?: [ ] \( (?P<size> (?: [^()] | \([^()]*\) )* ) \) )?
    (?: [ ] (?P<dtype> (?: u?int | float | bool ) \d* | codes | labels | object | dtype ) )?
    (?: [ ] in [ ] (?P<range> (?: [\[(] (?: [^()\[\]] | \((?: [^()] | \([^()]*\) )*\) | \[[^\[\]]*\] )* [\])] ) ) )?
    (?P<words> (?: [ ] (?: increasing | finite | distinct | fortran | or[ ]nan | any[ ]"[^"]+" ) )* )
    (?: [ ] fill [ ] (?P<fill> "[^"]+" | \S+ ) )?
    (?P<kept> (?: [ ] fixed | [ ] ring [ ] [a-z] \[ \S+ \] | [ ] late [ ] \d+ )? ) (?: \s+ | $ )
    """, re.VERBOSE)  # fmt: skip
_SLICE = re.compile(r"((?:[\w.]|\[\w*\])*)(\[[^\]]*:[^\]]*\])?")  # a path, and a slice of the array there
_IN_BOUNDS = {"len": len, "min": min, "max": max, "abs": abs, "diff": np.diff, "inf": np.inf, "nan": np.nan}
_KINDS = {"i": "iu", "u": "iu", "f": "f", "b": "b"}  # of numbers
_LABELS = "biufUSOMm"
_ITS_OWN = "its own"
_REMEMBERED = 64  # valid combinations of shapes


class Shapes:
    """The declared shapes of the arrays of a class.

    Parameters
    ----------
    text : str
        In the syntax of the module docstring.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> shapes = Shapes("weight (k)  mean (k, j)  best (k) in [0, j)")
    >>> model = SimpleNamespace(weight=np.ones(2), mean=np.ones((2, 3)), best=np.array([0, 3]))
    >>> shapes.check(model)
    >>> shapes.check_values(model)
    Traceback (most recent call last):
    ...
    tamis.errors.StateError: 'best' of a SimpleNamespace contains 3, but must be in [0, j): ...
    >>> shapes.check(SimpleNamespace(weight=np.ones(2), mean=np.ones((3, 3))))
    Traceback (most recent call last):
    ...
    tamis.errors.StateError: 'mean' of a SimpleNamespace has the shape (3, 3), but (2, *) fits the rest: ...
    """

    def __init__(self, text: str) -> None:
        self.declared = declared = list(_declarations(text))
        self._sized = [one for one in declared if one.size]
        certain = {one.path for one in declared if one.values and one.values.is_declared}
        self._valued = [
            (one.path, one.values)
            for one in declared
            if one.values and (one.values.is_declared or one.path not in certain)
        ]
        # Items that are declared one by one, as those of a tuple.
        paths = "\n".join(sorted(one.path for one in declared))
        items = re.findall(r"^(.*[\w\]])\[([1-9]\d*)\]", paths, re.MULTILINE)
        self._lengths = {whole: int(last) + 1 for whole, last in items}
        certain = {one.name for one in declared if not (one.is_absent or "[" in one.path)}
        self.required = certain - {one.name for one in declared if one.is_absent}
        self.fixed = frozenset(one.path for one in declared if one.kept == "fixed")
        self.rings = {
            one.path: (one.sizes.index(one.kept[5]), one.kept[7:-1])
            for one in declared
            if one.kept.startswith("ring")
        }
        self.late = max((int(one.kept[5:]) for one in declared if one.kept.startswith("late")), default=None)
        # One expression reads all shapes: a loop over them would take longer than many kernels.
        parts = "".join(f"{_expression(one.source, one.optional, one.size)}, " for one in self._sized)
        source = f"lambda model: ({parts})"
        self._look: Callable[[Any], Any] = eval(source, {"each": _each, "own": _own})
        self._known: set[Any] = set()
        self._last: Any = None

    def check(self, model: Any) -> None:
        """Raise for a model whose arrays are inconsistent.

        Raises
        ------
        StateError
            If so.
        """
        try:
            shapes = self._look(model)
        except (AttributeError, TypeError, LookupError):  # not fitted, or without a part
            self._compare(model)
            return
        if shapes != self._last:  # faster than a hash
            if shapes not in self._known:
                if not self._fits(shapes):
                    self._compare(model)
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known.add(shapes)
            self._last = shapes

    def check_values(self, model: Any) -> None:
        """Raise for a loaded model whose arrays are inconsistent, or contain invalid values.

        An array in another memory order than the declared one is copied.

        Raises
        ------
        StateError
            If so.
        """
        sizes = self._compare(model)
        for path, n_items in self._lengths.items():
            for _, part in _resolve(model, path):
                if len(part) not in (0, n_items):
                    raise state_error(
                        f"{path!r} of a {type(model).__name__} has {len(part)} items, not {n_items}"
                    )
        for path, values in self._valued:
            for i, (owner, part) in enumerate(_resolve(model, path)):
                if not values.is_declared and owner is not model and hasattr(owner, "_state_spec"):
                    continue  # the part declares it
                values.check(part, _Names(model, owner, sizes, i), f"{path!r} of a {type(model).__name__}")
                order = functools.partial(_in_order, "F" if "fortran" in values.words else "C")
                if ":" not in path and isinstance(part, np.ndarray) and order(part) is not part:
                    _replace(model, _steps(path), order, in_place=True)

    # -- features and classes that come and go -------------------------------------------------------------------

    def n_filled(self, letter: str) -> int:
        """Return the number of arrays with an axis of this letter if all have a fill value, else 0."""
        filled = [
            bool(one.fill) for one in self._sized if any(letter in s and s[0] != "=" for s in one.sizes)
        ]
        return len(filled) * all(filled)

    def extend(self, model: Any, letter: str, size: int) -> None:
        """Extend the axes of a letter to a size, in new arrays that contain the fill values; in j+1, one stays last.

        >>> from types import SimpleNamespace
        >>> model = SimpleNamespace(gain=np.ones(1), mean=np.array([[5.0, 7.0]]))
        >>> shapes = Shapes("gain (c) fill 1  mean (c, j) fill 0")
        >>> shapes.extend(model, "c", 2)
        >>> model.gain.tolist(), model.mean.tolist()
        ([1.0, 1.0], [[5.0, 7.0], [0.0, 0.0]])
        """

        def extended(array: Array, axis: int, fill: Any, n_last: int) -> Array:
            before, shape = (slice(None),) * axis, list(array.shape)
            n, shape[axis] = shape[axis] - n_last, size + n_last
            if sp.issparse(array):
                return type(array)((array.data, array.indices, array.indptr), shape=shape)
            new = np.empty(shape, array.dtype)
            new[...] = fill
            new[(*before, slice(n))] = array[(*before, slice(n))]
            new[(*before, slice(size, None))] = array[(*before, slice(n, None))]
            return new

        self._change(model, letter, extended, size)

    def reset(self, model: Any, letter: str, places: Array) -> None:
        """Set the fill values at some places of the axes of a letter, in new arrays."""

        def cleared(array: Array, axis: int, fill: Any, _: int) -> Array:
            if sp.issparse(array):
                return without_columns(array, places)
            at, new = (slice(None),) * axis + (places,), array.copy()
            new[at] = np.broadcast_to(fill, array.shape)[at]
            return new

        self._change(model, letter, cleared)

    def reorder(self, model: Any, letter: str, order: Array) -> None:
        """Reorder the axes of a letter: index i becomes what index `order[i]` was."""

        def reordered(array: Array, axis: int, *_: Any) -> Array:
            return np.ascontiguousarray(array.take(order, axis))

        self._change(model, letter, reordered)

    def _change(self, model: Any, letter: str, change: Callable[..., Any], size: int | None = None) -> None:
        """Replace each array with an axis of a letter, and the part that it belongs to, by a changed copy."""

        def changed(one: _Entry, axes: list[int], part: Any, owner: Any) -> Any:
            if one.size == _ITS_OWN:
                part = copy.copy(part)
                part._state_spec._change(part, letter, change, size)
                return part
            if one.size == f"={letter}":
                return part if size is None else size
            for axis in axes:
                if part.shape[axis] or not one.sizes[axis].endswith("?"):
                    what = f"The fill value of a {type(model).__name__}"
                    value = _bound(one.fill, _Names(model, owner, {}, 0), what)
                    part = change(part, axis, value, one.sizes[axis].endswith("+1"))
            return part

        for one in self._sized:
            axes = [i for i, name in enumerate(one.sizes) if name in (letter, f"{letter}?", f"{letter}+1")]
            # Other parts keep their identity.
            if (one.fill and (axes or one.size == _ITS_OWN)) or one.size == f"={letter}":
                _replace(model, _steps(one.path), functools.partial(changed, one, axes), in_place=True)

    @functools.cached_property
    def _fits(self) -> Callable[[Any], bool]:
        """Return a function that quickly accepts valid shapes: arrays that grow have new shapes in each call."""
        scope: dict[str, Any] = {"flat": _flat}
        exec(_comparison([(one.path, one.size) for one in self._sized]), scope)
        return scope["fits"]

    def _compare(self, model: Any) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for path, expected in [(one.path, one.size) for one in self._sized]:
            for i, part in enumerate(_parts(model, _steps(path))):
                if expected == _ITS_OWN:
                    _own(part)
                    continue
                if expected[0] == "=":
                    if not isinstance(part, int | np.integer | np.bool_) or part < 0:
                        raise state_error(f"{path!r} of a {type(model).__name__} is {part!r}, not a size")
                    if sizes.setdefault(expected[1], int(part)) != part:
                        raise StateError(
                            f"{path!r} of a {type(model).__name__} is {part}, but {sizes[expected[1]]} fits the rest:"
                            f" {_CHANGED}"
                        )
                    continue
                # A capital letter belongs to this item alone.
                names = re.sub(r"[A-Z]", rf"\g<0>{i}", expected).split(", ")
                _reject_invalid_state(model, path, getattr(part, "shape", None), names, sizes)
                sizes.update(
                    {name: size for name, size in zip(names, part.shape, strict=True) if name.isidentifier()}
                )
        return sizes


class SizedState:
    """A state with axes of features or classes, declared with fill values."""

    _state_spec: Any

    def grow(self, n_classes: int) -> None:
        """Add classes, with codes after the existing ones, in new arrays."""
        self._state_spec.extend(self, "c", n_classes)

    def reorder(self, order: Array) -> None:
        """Reorder the classes: the new class c is the old class `order[c]`."""
        self._state_spec.reorder(self, "c", order)

    def widen(self, n_features: int) -> None:
        """Add features, which count as 0 in all rows so far, in new arrays."""
        self._state_spec.extend(self, "j", n_features)

    def forget(self, columns: Array) -> None:
        """Reset features, in new arrays: they then count as 0 in all rows so far."""
        self._state_spec.reset(self, "j", columns)

    def grown(self, n_classes: int) -> Self:
        """Return a copy with added classes."""
        wide = copy.copy(self)
        wide.grow(n_classes)
        return wide

    def widened(self, n_features: int) -> Self:
        """Return a copy with added features."""
        wide = copy.copy(self)
        wide.widen(n_features)
        return wide

    def without(self, columns: Array) -> Self:
        """Return a copy in which features are reset."""
        cleared = copy.copy(self)
        cleared.forget(columns)
        return cleared


@dataclass
class _Values:
    """The valid values of an array or a number."""

    dtype: str
    low: str  # expressions; "" without a range
    high: str
    closed: tuple[bool, bool]
    words: tuple[str, ...]
    is_declared: bool = True  # more than a shape

    def check(self, part: Any, names: Mapping[str, Any], what: str) -> None:
        """Raise for invalid values."""
        if self.dtype == "codes":
            size, kind = np.size(part), _CODES if hasattr(names["self"], "classes_") else _TARGETS
            return kind.check(part, names, what) if size else None
        values = self._of_dtype(part, names, what)
        if not values.size:
            return
        if self.low:
            low, high = _bound(self.low, names, what), _bound(self.high, names, what)
            try:
                fits = (values >= low if self.closed[0] else values > low) & (
                    values <= high if self.closed[1] else values < high
                )
            except ValueError:  # bounds are arrays of another shape
                raise StateError(
                    f"{what} has the shape {values.shape}, which fits no other: {_CHANGED}"
                ) from None
            if "or nan" in self.words:
                fits = fits | np.isnan(values)
            if not fits.all():
                limits = f"{'(['[self.closed[0]]}{self.low}, {self.high}{')]'[self.closed[1]]}"
                outside = np.broadcast_to(values, fits.shape)[~fits][0]
                raise StateError(f"{what} contains {outside}, but must be in {limits}: {_CHANGED}")
        if "finite" in self.words and not np.isfinite(values).all():
            raise StateError(
                f"{what} contains {values[~np.isfinite(values)][0]}, but must be finite: {_CHANGED}"
            )
        if "distinct" in self.words and len(np.unique(values)) < values.size:
            raise StateError(f"{what} contains a number twice, but must not: {_CHANGED}")
        if "increasing" in self.words and (values[..., 1:] < values[..., :-1]).any():
            raise StateError(f"{what} decreases, but must not: {_CHANGED}")

    def _of_dtype(self, part: Any, names: Mapping[str, Any], what: str) -> Any:
        """Return the values of an array, sparse matrix or number of the dtype that kernels are compiled for."""
        values = part.data if sp.issparse(part) else np.asarray(part)
        if self.dtype == "labels":
            fits = values.dtype.kind in _LABELS
        else:
            dtype = np.dtype(names["dtype"] if self.dtype == "dtype" else self.dtype)
            is_number = isinstance(part, int | float | np.generic)
            fits = values.dtype.kind in _KINDS.get(dtype.kind, "") if is_number else values.dtype == dtype
        if not fits:
            raise StateError(
                f"{what} has the dtype {values.dtype}, but {self.dtype} fits the rest: {_CHANGED}"
            )
        return values


_CODES = _Values("int64", "0", "len(self.classes_)", (True, False), ())
_TARGETS = _Values("float", "", "", (True, True), ("finite",))
_CHANGED = "the model was changed from outside, so fit it again or load it from where it was saved."


def state_error(what: str) -> StateError:
    """Return the error for an inconsistent state; `what` is a sentence that states the inconsistency."""
    return StateError(f"{what}: {_CHANGED}")


class _Names(Mapping[str, Any]):
    """The names in a bound: sizes, attributes of the model, and `its` owner."""

    def __init__(self, model: Any, owner: Any, sizes: dict[str, int], i: int) -> None:
        self._model, self._owner, self._sizes, self._i = model, owner, sizes, i

    def __getitem__(self, name: str) -> Any:
        if name == "its":
            return self._owner
        if name == "self":
            return self._model
        known = self._sizes.get(f"{name}{self._i}" if name.isupper() else name)
        if known is not None:
            return known
        if name in _IN_BOUNDS:
            return _IN_BOUNDS[name]
        return getattr(self._model, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)


def _bound(expression: str, names: Mapping[str, Any], what: str) -> Any:
    try:
        return eval(_code(expression), {"__builtins__": {}}, names)
    except (AttributeError, TypeError, LookupError, ValueError):  # a missing or mistyped part
        raise StateError(f"{what} refers to a missing part, {expression!r}: {_CHANGED}") from None


@functools.cache
def _code(expression: str) -> Any:
    return compile(expression, "<shapes>", "eval")


@dataclass
class _Entry:
    """What a declaration contains."""

    source: str  # the path, with question marks
    optional: bool
    size: str  # "" if it has none
    values: _Values | None
    fill: str
    kept: str  # of the words `fixed`, `ring` and `late`

    def __post_init__(self) -> None:
        self.path, self.name = self.source.replace("?.", "."), _steps(self.source)[0]
        self.sizes = self.size.split(", ")
        # Whether the attribute that the path begins with may be absent.
        rest = self.source.removeprefix(self.name)
        self.is_absent = rest.startswith("?.") or (not rest and self.optional)


def _declarations(text: str) -> Iterator[_Entry]:
    """Yield the entries.

    Raises
    ------
    ValueError
        If the text violates the syntax of the module docstring.
    """
    text, at = text.strip(), 0
    while at < len(text):
        match = _ENTRY.match(text, at)
        parts = match.groupdict() if match else {}
        if match is None or not any(parts[name] for name in ("size", "range", "dtype", "words", "kept")):
            raise ValueError(
                f"_shapes declares {text[at : at + 60]!r}, which violates the syntax of tamis._shapes."
            )
        at = match.end()
        optional, size, fill = bool(parts["optional"]), parts["size"] or "", (parts["fill"] or "").strip('"')
        one = _Entry(parts["path"], optional, size, _values(parts), fill, (parts["kept"] or "").strip())
        _split(one.path)
        yield one


def _values(parts: dict[str, str | None]) -> _Values | None:
    """Return the values of an entry; None for a size, and for a part that declares its own."""
    limits, size = parts["range"] or "", parts["size"]
    words = tuple(re.findall(r'increasing|finite|distinct|fortran|or nan|any "', parts["words"] or ""))
    is_declared = bool(parts["dtype"] or limits or words)
    if not is_declared and (size is None or size == _ITS_OWN or size[0] == "="):
        return None
    low, high = _two(limits[1:-1]) if limits else ("", "")
    is_float = not limits and (not words or "finite" in words or "fortran" in words)
    dtype = parts["dtype"] or ("float" if is_float else "int")
    return _Values(dtype, low, high, (limits[:1] == "[", limits[-1:] == "]"), words, is_declared)


def _two(bounds: str) -> tuple[str, str]:
    """Split the bounds of a range at the one comma outside brackets."""
    depth = 0
    for at, letter in enumerate(bounds):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            return bounds[:at].strip(), bounds[at + 1 :].strip()
    raise ValueError(f"_shapes declares a range of {bounds!r}: give two bounds.")


def _split(path: str) -> tuple[str, str]:
    """Return the path of an array, and the slice of it, "" for all."""
    match = _SLICE.fullmatch(path)
    if match is None:
        raise ValueError(f"_shapes declares {path!r}, which is not a path.")
    return match[1], match[2] or ""


def _steps(path: str) -> list[str]:
    """Return the names and brackets of a path."""
    return re.findall(r"\w+|\[\w*\]", path)


def _resolve(model: Any, path: str) -> Iterator[tuple[Any, Any]]:
    """Yield what a path refers to, each with the object that it belongs to."""
    path, some = _split(path)
    owner, _, name = path.rpartition(".")
    for one in _parts(model, _steps(owner)):
        for part in _parts(one, _steps(name)):
            yield one, eval(_code(f"part{some}"), {"part": part}) if some else part


def _expression(path: str, optional: bool, size: str, owner: str = "model") -> str:
    """Return the Python expression that reads a shape."""
    if "?." in path:
        part, rest = path.split("?.", 1)
        inside = _expression(rest, optional, size, "part")
        owner, _, part = f"{owner}.{part}".rpartition(".")
        return f"(None if (part := getattr({owner}, {part!r}, None)) is None else {inside})"
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
    """Return the Python source of a function that quickly accepts valid shapes."""
    letters = sorted(
        {letter for _, size in entries if size != _ITS_OWN for letter in re.findall("[a-z]", size)}
    )
    lines = ["def fits(found):", "    of_item = {}", *(f"    {letter} = None" for letter in letters)]
    for n, (path, size) in enumerate(entries):
        if size == _ITS_OWN:
            continue
        if size[0] == "=":
            lines.append(f"    if {size[1]} is not None and {size[1]} != found[{n}]: return False")
            lines.append(f"    {size[1]} = found[{n}]")
            continue
        names = size.split(", ")
        shapes = f"flat(found[{n}], {path.count('[]')})"
        if not re.search("[A-Z]", size):  # the number of an item does not matter
            shapes = f"dict.fromkeys({shapes})"
        lines.append(f"    for i, shape in enumerate({shapes}):")
        lines.append(f"        if len(shape) != {len(names)}: return False")
        for axis, name in enumerate(names):
            lines += _comparison_of_size(f"shape[{axis}]", name)
    return "\n".join([*lines, "    return True"])


def _comparison_of_size(size: str, name: str) -> list[str]:
    """Return the lines that compare one size with the sizes before; the first occurrence of a letter defines it."""
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


def _flat(shapes: Any, depth: int) -> list[tuple[int, ...]]:
    """Return the shapes in nested lists, except those of absent optional parts."""
    found = [shapes]
    for _ in range(depth):
        found = [item for items in found if items is not None for item in items]
    return [shape for shape in found if shape is not None]


def _own(part: Any) -> None:
    shapes = getattr(part, "_state_spec", None)
    if shapes is not None:
        shapes.check(part)


def _each(items: Any) -> Any:
    return items.values() if isinstance(items, dict) else items or ()


def _parts(part: Any, path: list[str]) -> Iterator[Any]:
    """Yield what a path refers to, if it exists."""
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


def _replace(
    owner: Any, path: list[str], change: Callable[[Any, Any], Any], *, in_place: bool = False
) -> Any:
    """Return a copy of an object in which a part is changed, together with copies of all objects on the way to it."""
    if owner is None:
        return None
    if path[0][0] != "[":
        name, rest = path[0], path[1:]
        part = getattr(owner, name, None)
        if part is None:
            return owner
        part = change(part, owner) if not rest else _replace(part, rest, change)
        if hasattr(owner, "_replace"):
            return owner._replace(**{name: part})
        owner = owner if in_place else copy.copy(owner)
        object.__setattr__(owner, name, part)  # the owner may be a frozen dataclass
        return owner
    items, at = owner, path[0][1:-1]

    def item(one: Any) -> Any:
        return change(one, items) if len(path) == 1 else _replace(one, path[1:], change)

    if at:
        if len(items) > int(at):
            return (*items[: int(at)], item(items[int(at)]), *items[int(at) + 1 :])
        return items
    if isinstance(items, dict):
        return {key: item(one) for key, one in items.items()}
    return type(items)(map(item, items))


def _in_order(order: Any, array: Any, owner: Any = None) -> Array:
    return np.asarray(array, order=order)


def without_columns(X: Any, columns: Array, blank: float = 0.0) -> Any:
    """Return the rows without stored values in some columns of CSR rows, or with `blank` in those of dense rows."""
    if not sp.issparse(X):
        X = X.copy()
        X[:, columns] = blank
        return X
    kept = ~np.isin(X.indices, columns)
    indptr = np.r_[0, np.cumsum(kept)][X.indptr]
    return type(X)((X.data[kept], X.indices[kept], indptr), shape=X.shape)


def _reject_invalid_state(
    model: Any, path: str, shape: tuple[int, ...] | None, names: list[str], sizes: dict[str, int]
) -> None:
    fits = shape is not None and len(shape) == len(names)
    if not fits or not all(
        _is_size(size, name, sizes) for size, name in zip(shape or (), names, strict=True)
    ):
        fitting = ", ".join("*" if (size := _size_of(name, sizes)) is None else str(size) for name in names)
        raise StateError(
            f"{path!r} of a {type(model).__name__} has the shape {shape}, but ({fitting}) fits the rest: {_CHANGED}"
        )


def _is_size(size: int, name: str, sizes: dict[str, int]) -> bool:
    known = _size_of(name, sizes)
    return (
        known is None or size == known or (name[0] == ">" and size > known) or (name[-1] == "?" and size == 0)
    )


def _size_of(name: str, sizes: dict[str, int]) -> int | None:
    """Return the size at a position, if earlier positions determine it."""
    expression = name.strip(">?")
    if expression == "*" or not set(re.findall(r"[a-zA-Z]\d*", expression)) <= set(sizes):
        return None
    return int(eval(expression, {}, dict(sizes)))
