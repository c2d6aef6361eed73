"""Turns nodes back into values; whatever does not fit is refused, and so is work out of proportion to the file."""

from __future__ import annotations

import io
import json
import math
import re
import struct
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.exceptions import InconsistentVersionWarning

import tamis
from tamis._check import safe_repr
from tamis._shapes import Shapes
from tamis.errors import CheckpointError
from tamis.persistence.classes import check_attributes, find_class
from tamis.persistence.encoder import BIT_GENERATORS, PLAIN

__all__ = ["SCHEMA", "decode"]

Json: TypeAlias = Any
Array: TypeAlias = np.ndarray[Any, Any]

SCHEMA = 1  # to be raised when an older Tamis could not read what this one writes
_SEQUENCES = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}
_BUFFERS = {"MT19937": 624, "Philox": 4}  # numbers drawn ahead
_DTYPE = re.compile(r"[<>|=]?[biufcSUmM][0-9]*(\[[0-9]*[A-Za-z]+\])?")
# What a file may ask for, in units of about 10 ns: so many for each of its bytes, and so many for any file.
_WORK, _LEAST_WORK = 64, 1 << 20
_OF_GENERATOR, _OF_WORDS, _OF_MATRIX, _OF_INSTANCE = 8192, 256, 8192, 512
_SAME_HASH = 64  # keys of one hash are compared with each other


def decode(archive: zipfile.ZipFile, size: int, name: str, classes: dict[str, type]) -> Any:
    """Return what an archive of so many bytes holds.

    Raises
    ------
    CheckpointError
        If it was not written by ``tamis.save``, or by that of a newer Tamis.
    """
    nodes, root, versions = _parts(json.loads(archive.read("manifest.json")), name)
    decoder = _Decoder(archive, classes, versions["sklearn"], _WORK * size + _LEAST_WORK)
    nodes.reverse()
    while nodes:
        decoder.add(nodes.pop())
    return decoder.value(root)


def _parts(content: Json, name: str) -> tuple[list[Json], Json, dict[str, str]]:
    """Return the nodes, the root and the versions of a manifest."""
    content = content if isinstance(content, dict) else {}
    schema, versions, nodes = (content.get(part) for part in ("schema", "versions", "nodes"))
    is_known = isinstance(versions, dict) and all(
        type(versions.get(of)) is str for of in ("tamis", "sklearn")
    )
    if (
        content.get("format") != "tamis"
        or not is_known
        or not isinstance(nodes, list)
        or "root" not in content
    ):
        raise CheckpointError(f"{name} has no manifest as tamis.save writes it: give a file that it wrote.")
    if type(schema) is not int or schema < 1:
        raise CheckpointError(
            f"{name} has the schema {safe_repr(schema)}, but schemas are 1, 2, ...: save it again."
        )
    if schema > SCHEMA:
        raise CheckpointError(
            f"{name} was saved by Tamis {versions['tamis']:.60}, which is newer than this one ({tamis.__version__}):"
            " upgrade with `pip install -U tamis`."
        )
    return nodes, content["root"], versions


class _Decoder:
    def __init__(
        self, archive: zipfile.ZipFile, classes: dict[str, type], sklearn_version: str, work: int
    ) -> None:
        self._values: list[Any] = []
        self._weights: list[int] = []  # what it takes to hash each
        self._archive, self._read = archive, set[int]()
        self._classes, self._found = classes, dict[str, type]()
        self._sklearn_version = sklearn_version
        self._work = self._heaviest = work

    def add(self, node: Json) -> None:
        """Read the next node."""
        kind, content = _only(node)
        value = self._build(kind, content)
        self._weights.append(self._weight_of(kind, content))
        self._values.append(value)

    def value(self, written: Json) -> Any:
        """Return a value that is written in place, or that of a node before."""
        if not isinstance(written, dict | list):
            return written
        kind, content = _only(written)
        if kind == "at":
            if type(content) is not int or not 0 <= content < len(self._values):
                known = f"0 to {len(self._values) - 1}" if self._values else "none"
                raise CheckpointError(
                    f"The file refers to node {content!r:.60}, but those before are {known}."
                )
            return self._values[content]
        if kind == "scalar":
            dtype, data = content
            return np.ndarray((1,), _dtype(dtype), bytes.fromhex(data))[0]
        if type(content) is not str:
            raise CheckpointError(f"The file holds a value of the unknown kind {kind!r:.60}.")
        if kind == "float":
            return struct.unpack(">d", bytes.fromhex(content))[0]
        if kind == "int":
            return int(content, 16)
        if kind == "bytes":
            return bytes.fromhex(content)
        raise CheckpointError(f"The file holds a value of the unknown kind {kind!r:.60}.")

    def _build(self, kind: str, content: Json) -> Any:
        if kind in _SEQUENCES:
            items = [self.value(item) for item in content]
            if kind in ("set", "frozenset"):
                self._take_keys(content, items)
            return items if kind == "list" else _SEQUENCES[kind](items)
        if kind == "dict":
            return self._pairs(content)
        if kind == "array":
            return self._array(content)
        if kind == "objects":
            return self._objects(*content)
        if kind in ("csr_matrix", "csr_array"):
            return self._csr(getattr(sp, kind), **self._pairs(content))
        if kind in ("Generator", "RandomState"):
            return self._generator(kind, **self._pairs(content))
        if kind == "instance":
            return self._instance(*content)
        raise CheckpointError(f"The file holds a value of the unknown kind {kind!r:.60}.")

    # -- work ----------------------------------------------------------------------------------------------

    def _spend(self, work: int) -> None:
        self._work -= work
        if self._work < 0:
            raise CheckpointError(
                "The file asks for more work than its size explains: tamis.save did not write it."
            )

    def _weight_of(self, kind: str, content: Json) -> int:
        """Return what it takes to hash a node: a tuple is hashed with all that is in it, each time."""
        if kind == "instance":
            content = [part for _, part in content[1]]
        elif kind not in ("tuple", "frozenset"):
            return 1
        return min(1 + sum(map(self._weight, content)), self._heaviest + 1)

    def _weight(self, written: Json) -> int:
        if isinstance(written, dict):
            kind, content = _only(written)
            return self._weights[content] if kind == "at" else 1 + len(content) // 8
        return 1 + len(written) // 8 if isinstance(written, str) else 1

    def _take_keys(self, written: Iterable[Json], keys: list[Any]) -> None:
        """Count the work of hashing keys; refuse those that were chosen to have one hash."""
        self._spend(sum(map(self._weight, written)))
        if len(keys) > _SAME_HASH and max(Counter(map(hash, keys)).values()) > _SAME_HASH:
            raise CheckpointError(
                "The file holds keys that were chosen to be slow: tamis.save did not write it."
            )

    # -- the kinds of nodes --------------------------------------------------------------------------------

    def _pairs(self, pairs: Json) -> dict[Any, Any]:
        keys = [self.value(key) for key, _ in pairs]
        self._take_keys([key for key, _ in pairs], keys)
        return dict(zip(keys, [self.value(value) for _, value in pairs], strict=True))

    def _array(self, number: Json) -> Array:
        if type(number) is not int or number in self._read:
            raise CheckpointError(
                f"The file names the array {number!r:.60}, which is none, or was named before."
            )
        self._read.add(number)
        data = self._archive.read(f"{number}.npy")
        header = io.BytesIO(data)
        np.lib.format.read_magic(header)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(header)
        if _plain(dtype).itemsize == 0 and 0 not in shape:
            raise CheckpointError(f"The file holds an array of shape {shape} whose values take no bytes.")
        # NumPy refuses a shape that needs more bytes than there are. The copy is aligned and can be written to.
        view: Array = np.ndarray(
            shape, dtype, memoryview(data)[header.tell() :], order="F" if fortran else "C"
        )
        return view.copy(order="K")

    def _objects(self, order: Any, shape: Any, items: Any) -> Array:
        if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape[:64]) != len(items):
            raise CheckpointError(f"The file holds {len(items)} values in an array of shape {shape!r:.60}.")
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = self.value(item)
        return array.reshape(shape, order=order)

    def _csr(self, make: type[Any], data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
        is_shape = type(shape) is tuple and [type(n) for n in shape] == [int, int]
        if not is_shape or not all(type(part) is np.ndarray for part in (data, indices, indptr)):
            raise CheckpointError(
                f"The file holds a sparse matrix of shape {safe_repr(shape)} that no arrays make."
            )
        self._spend(_OF_MATRIX + data.nbytes + indices.nbytes + indptr.nbytes)
        try:
            matrix = make((data, indices, indptr), shape=shape)
            matrix.indices, matrix.indptr = indices, indptr  # SciPy may have chosen a smaller integer type
            matrix.check_format(full_check=True)
        except ValueError:
            raise CheckpointError(
                f"The file holds a sparse matrix of shape {shape} with indices outside."
            ) from None
        return matrix

    def _generator(self, kind: str, state: Any, seed: Any) -> Any:
        _check_generator(state, seed)
        words = sum(len(part) for part in state["state"].values() if isinstance(part, np.ndarray))
        self._spend(_OF_GENERATOR + _OF_WORDS * words + (0 if seed is None else _work_of_seed(**seed)))
        bits = BIT_GENERATORS[state["bit_generator"]](
            None if seed is None else np.random.SeedSequence(**seed)
        )
        bits.state = state
        if kind == "Generator":
            return np.random.Generator(bits)
        random_state = np.random.RandomState(bits)
        random_state.set_state(state)  # with the second of a pair of normal numbers, if one waits
        return random_state

    def _instance(self, name: str, state: Json) -> Any:
        self._spend(_OF_INSTANCE)
        if name not in self._found:
            self._found[name] = find_class(name, self._classes)
            self._warn_of_version(name, self._found[name])
        cls = self._found[name]
        attributes = self._pairs(state)
        check_attributes(cls, attributes)
        instance: Any = object.__new__(cls)
        vars(instance).update(attributes)
        if isinstance(shapes := getattr(cls, "_fit_together", None), Shapes):
            shapes.check_values(instance)
        if hasattr(cls, "check_state"):
            instance.check_state()
        return instance

    def _warn_of_version(self, name: str, cls: type) -> None:
        if name.startswith("sklearn.") and self._sklearn_version != sklearn.__version__:
            warning = InconsistentVersionWarning(
                estimator_name=cls.__name__,
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=self._sklearn_version,
            )
            warnings.warn(warning, stacklevel=7)


def _only(node: Json) -> tuple[str, Json]:
    """Return the kind and the content of what is written as ``{kind: content}``."""
    if not isinstance(node, dict) or len(node) != 1:
        raise CheckpointError(f"The file holds {repr(node)[:60]} where a value of one kind belongs.")
    ((kind, content),) = node.items()
    return kind, content


def _dtype(text: Json) -> np.dtype[Any]:
    if type(text) is not str or not _DTYPE.fullmatch(text):
        raise CheckpointError(
            f"The file holds values of dtype {text!r:.60}, which tamis.save does not write."
        )
    return np.dtype(text)


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind not in PLAIN:
        raise CheckpointError(f"The file holds values of dtype {dtype}, which tamis.save does not write.")
    return dtype


# -- random number generators: NumPy does not look at what it is given -------------------------------------


def _check_generator(state: Any, seed: Any) -> None:
    name = state.get("bit_generator") if isinstance(state, dict) else None
    inner = state.get("state") if isinstance(state, dict) else None
    if name not in BIT_GENERATORS or not isinstance(inner, dict):
        raise CheckpointError(
            f"The file holds a random number generator of the unknown kind {safe_repr(name)}."
        )
    flat = [*inner.values(), *(part for key, part in state.items() if key != "state")]
    position = state.get("buffer_pos", inner.get("pos", 0))
    is_plain = all(type(part) in (int, float, str) or _is_words(part) for part in flat)
    if not is_plain or type(position) is not int or not 0 <= position <= _BUFFERS.get(name, 0):
        raise CheckpointError(f"The file holds a {name} at the impossible position {safe_repr(position)}.")
    if seed is not None:
        size = seed.get("pool_size") if isinstance(seed, dict) else None
        if type(size) is not int or not 4 <= size <= 1 << 16:
            raise CheckpointError(f"The file holds a {name} whose seed has the pool size {safe_repr(size)}.")


def _is_words(part: Any) -> bool:
    return type(part) is np.ndarray and part.dtype.kind in "ui" and part.ndim == 1


def _work_of_seed(pool_size: int, entropy: Any = None, spawn_key: Any = (), **rest: Any) -> int:
    """Return what it takes to make words of 32 bits of a seed, and to mix them."""
    work = pool_size**2
    for given in (entropy, spawn_key):
        for number in given if isinstance(given, list | tuple) else [given]:
            if type(number) is int and number >= 0:
                work += (number.bit_length() // 32 + 1) * (number.bit_length() // 32 + pool_size)
            elif number is not None and not _is_words(number):
                raise CheckpointError(f"The file holds a generator with the seed {safe_repr(number)}.")
            elif number is not None:
                work += len(number) * pool_size
    return work
