"""Encodes a value as a table of nodes and a list of arrays, and decodes it again.

The decoder rejects anything invalid, and work out of proportion to the size of the file.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import re
import struct
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

import tamis
from tamis._guard import cache_names, state_of
from tamis._shapes import Shapes
from tamis._validation import Array, safe_repr
from tamis._validation.parameters import allowed, check_parameters
from tamis.errors import CheckpointError
from tamis.persistence.attributes import check_attributes, is_fitted

Json: TypeAlias = Any

# -- the classes whose objects a file may contain ----------------------------------------------------------


_PUBLIC = {f"sklearn.{module}" for module in (*sklearn.__all__, "feature_extraction.text")}
# Estimators of other libraries that are saved unfitted: their attributes are the parameters that they are fitted with.
_UNFITTED = {
    "lightgbm.sklearn": ("LGBMClassifier", "LGBMRegressor"),
    "xgboost.sklearn": ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor"),
}


def is_instance(value: Any) -> bool:
    """Return whether the value is an object that is saved by its attributes."""
    return isinstance(value, BaseEstimator) or type(value).__module__.partition(".")[0] == "tamis"


def is_free(name: str) -> bool:
    """Return whether files with objects of a class, by its full name, are loaded without naming it."""
    module, _, short = name.partition(":")
    return module.partition(".")[0] in ("tamis", "sklearn") or short in _UNFITTED.get(module, ())


def full_name(cls: type) -> str:
    """Return the name that `find_class` resolves; for a class of scikit-learn, the one in its public module."""
    module = cls.__module__
    if module.startswith("sklearn."):
        module = module.partition("._")[0]
    return f"{module}:{cls.__qualname__}"


def find_class(name: str, classes: dict[str, type]) -> type:
    """Return a class by its name; only modules of Tamis and public ones of scikit-learn are imported."""
    module, _, short = name.partition(":")
    result: Any = classes.get(name)
    if result is None and module.partition(".")[0] == "tamis" and "__main__" not in module:
        result = getattr(_import_or_none(module), short, None)
    elif result is None and module in _PUBLIC:
        result = getattr(_import_or_none(module), short, None)
        result = result if isinstance(result, type) and issubclass(result, BaseEstimator) else None
    elif result is None and short in _UNFITTED.get(module, ()):
        result = getattr(_import_or_none(module), short, None)
        if result is None:
            package = module.partition(".")[0]
            raise CheckpointError(f"The file contains a {short}: pip install {package} to load it.")
    has_plain_new = result.__new__ is object.__new__  # false for every class whose __new__ needs arguments
    if not has_plain_new or not isinstance(result, type) or full_name(result) != name:
        raise CheckpointError(
            f"The file contains an object of class {name.replace(':', '.')}, which belongs neither to Tamis nor to the"
            f" public estimators of scikit-learn: if it is yours, load the file with classes=[{short}]."
        )
    return result


def _import_or_none(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ImportError, ValueError):
        return None


# -- encoding ----------------------------------------------------------------------------------------------


PLAIN_KINDS = "biufcSUmM"  # dtype kinds whose arrays consist of plain bytes
BIT_GENERATORS = {
    name: getattr(np.random, name) for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
}
_DERIVED = {"_loss_function_"}  # of scikit-learn's SGD family: recomputed by partial_fit


class Encoder:
    """Writes a value as itself (None, bool, int, float, str), as ``{kind: text}``, or as ``{"at": node}``.

    Attributes
    ----------
    nodes : list
    arrays : list of ndarray
    """

    def __init__(self) -> None:
        self.nodes: list[Json] = []
        self.arrays: list[Array] = []
        # By id; the reference to the object keeps its id from being reused
        self._node_of_id: dict[int, tuple[int, Any]] = {}
        # Tuples, frozensets: equal ones may or may not be one object
        self._node_of_content: dict[str, int] = {}
        self._in_progress: set[int] = set()

    def encode(self, value: Any, path: str) -> Json:
        """Return a value as JSON; `path` is its location in the object, for errors."""
        kind = type(value)
        if value is None or kind in (bool, str) or (kind is int and abs(value) < 2**63):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
        if kind is int:
            return {"int": hex(value)}  # decimals are limited in their length
        if kind is bytes:
            return {"bytes": value.hex()}
        if isinstance(value, np.generic) and value.dtype.kind in PLAIN_KINDS:
            return {"scalar": [value.dtype.str, value.tobytes().hex()]}
        return {"at": self._node_index(value, path)}

    def _node_index(self, value: Any, path: str) -> int:
        """Return the index of the value's node in the table."""
        if id(value) in self._in_progress:
            raise TypeError(f"Cannot save {path}: it contains itself.")
        if id(value) not in self._node_of_id:
            self._in_progress.add(id(value))
            node = self._node(value, path)
            self._in_progress.remove(id(value))
            at = len(self.nodes)
            if type(value) in (tuple, frozenset):
                at = self._node_of_content.setdefault(json.dumps(node), at)
            self._node_of_id[id(value)] = at, value
            if at == len(self.nodes):
                self.nodes.append(node)
        return self._node_of_id[id(value)][0]

    def _node(self, value: Any, path: str) -> Json:
        kind = type(value)
        if kind in (list, tuple, set, frozenset):
            items = value if kind in (list, tuple) else sorted(value, key=repr)
            return {kind.__name__: [self.encode(item, f"{path}[{i}]") for i, item in enumerate(items)]}
        if kind is dict:
            return {"dict": self._pairs(value, path)}
        if kind in (np.ndarray, np.memmap):
            return self._array(value, path)
        if kind in (sp.csr_matrix, sp.csr_array):
            parts = {
                "data": value.data,
                "indices": value.indices,
                "indptr": value.indptr,
                "shape": value.shape,
            }
            return {kind.__name__: self._pairs(parts, path)}
        if kind is np.random.Generator:
            return {"Generator": self._bits(value.bit_generator, value.bit_generator.state, path)}
        if kind is np.random.RandomState:
            return {"RandomState": self._bits(value._bit_generator, value.get_state(legacy=False), path)}
        if is_instance(value):
            return self._instance(value, path)
        raise TypeError(
            f"Cannot save {path or 'the object'}: it is a {kind.__module__}.{kind.__qualname__}, but only plain values,"
            " arrays, CSR matrices, random number generators, and estimators that contain these can be saved."
        )

    def _pairs(self, mapping: dict[Any, Any], path: str) -> Json:
        pairs = []
        for key, value in mapping.items():
            named = isinstance(key, str) and key.isidentifier()
            at = f"{path}[{key!r}]" if not named else f"{path}.{key}" if path else key
            pairs.append([self.encode(key, f"the key of {at}"), self.encode(value, at)])
        return pairs

    def _array(self, value: Array, path: str) -> Json:
        if value.dtype.kind in PLAIN_KINDS:
            # Zero-width strings take no bytes, so a file could declare any number of them.
            self.arrays.append(value if value.dtype.itemsize else value.astype(f"{value.dtype.kind}1"))
            return {"array": len(self.arrays) - 1}
        if value.dtype.kind != "O":
            raise TypeError(
                f"Cannot save {path or 'the array'}: its dtype is {value.dtype}; convert it first."
            )
        order: Literal["C", "F"] = "F" if value.flags.fnc else "C"
        items = [self.encode(item, f"{path}[{i}]") for i, item in enumerate(value.ravel(order))]
        return {"objects": [order, list(value.shape), items]}

    def _bits(self, bits: Any, state: Any, path: str) -> Json:
        if BIT_GENERATORS.get(type(bits).__name__) is not type(bits):
            raise TypeError(
                f"Cannot save {path or 'the generator'}: it draws from a {type(bits).__qualname__}."
            )
        seed = bits.seed_seq.state if type(bits.seed_seq) is np.random.SeedSequence else None  # for spawn()
        return self._pairs({"state": state, "seed": seed}, path)

    def _instance(self, value: Any, path: str) -> Json:
        name = full_name(type(value))
        package = name.partition(":")[0].partition(".")[0]
        try:
            find_class(name, {} if is_free(name) else {name: type(value)})
            state = state_of(value)
        except (CheckpointError, ImportError, TypeError):
            raise TypeError(
                f"Cannot save {path or 'the object'}: a {name.replace(':', '.')} is not restored by its attributes."
            ) from None
        if package == "sklearn":
            state = {name: part for name, part in state.items() if name not in _DERIVED}
        return {"instance": [name, self._pairs(state, path)]}


# -- decoding ----------------------------------------------------------------------------------------------


SCHEMA = 2  # raise it when an older Tamis could not read new files; files of an earlier schema are rejected
_SEQUENCES = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}
_BUFFERS = {"MT19937": 624, "Philox": 4}  # numbers drawn ahead
_DTYPE = re.compile(r"[<>|=]?[biufcSUmM][0-9]*(\[[0-9]*[A-Za-z]+\])?")
# Work that a file may request, in units of about 10 ns: per byte, and for any file.
_WORK_PER_BYTE, _MIN_WORK = 64, 1 << 20
_GENERATOR_WORK, _WORD_WORK, _MATRIX_WORK, _INSTANCE_WORK = 8192, 256, 8192, 512
_MAX_COLLISIONS = 64  # keys with equal hashes are compared pairwise


def decode(archive: zipfile.ZipFile, size: int, name: str, classes: dict[str, type]) -> Any:
    """Return the object in an archive of `size` bytes.

    Raises
    ------
    CheckpointError
        If it was not written by ``tamis.save``, or by a newer Tamis.
    """
    nodes, root, versions = _parts(json.loads(archive.read("manifest.json")), name)
    decoder = _Decoder(archive, classes, versions["sklearn"], _WORK_PER_BYTE * size + _MIN_WORK)
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
        raise CheckpointError(f"{name} has no manifest of tamis.save: pass a file that tamis.save wrote.")
    if type(schema) is not int or schema < SCHEMA:
        raise CheckpointError(
            f"{name} has the schema {safe_repr(schema)}, but this Tamis reads schema {SCHEMA}: save it again."
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
        self._weights: list[int] = []  # work to hash each value
        self._archive, self._arrays_read = archive, set[int]()
        self._classes, self._class_cache = classes, dict[str, type]()
        self._sklearn_version = sklearn_version
        self._work = self._max_weight = work

    def add(self, node: Json) -> None:
        """Decode the next node."""
        kind, content = _kind_and_content(node)
        value = self._build(kind, content)
        self._weights.append(self._weight_of(kind, content))
        self._values.append(value)

    def value(self, written: Json) -> Any:
        """Return an inline value, or the value of an earlier node."""
        if not isinstance(written, dict | list):
            return written
        kind, content = _kind_and_content(written)
        if kind == "at":
            if type(content) is not int or not 0 <= content < len(self._values):
                known = f"0 to {len(self._values) - 1}" if self._values else "none"
                raise CheckpointError(
                    f"The file refers to node {content!r:.60}, but the earlier nodes are {known}."
                )
            return self._values[content]
        if kind == "scalar":
            dtype, data = content
            return np.ndarray((1,), _dtype(dtype), bytes.fromhex(data))[0]
        if type(content) is not str:
            raise CheckpointError(f"The file contains a value of unknown kind {kind!r:.60}.")
        if kind == "float":
            return struct.unpack(">d", bytes.fromhex(content))[0]
        if kind == "int":
            return int(content, 16)
        if kind == "bytes":
            return bytes.fromhex(content)
        raise CheckpointError(f"The file contains a value of unknown kind {kind!r:.60}.")

    def _build(self, kind: str, content: Json) -> Any:
        if kind in _SEQUENCES:
            items = [self.value(item) for item in content]
            if kind in ("set", "frozenset"):
                self._check_keys(content, items)
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
        raise CheckpointError(f"The file contains a value of unknown kind {kind!r:.60}.")

    # -- work ----------------------------------------------------------------------------------------------

    def _charge(self, work: int) -> None:
        self._work -= work
        if self._work < 0:
            raise CheckpointError(
                "The file requests more work than its size justifies: it was not written by tamis.save."
            )

    def _weight_of(self, kind: str, content: Json) -> int:
        """Return the work to hash a node: hashing a tuple hashes all its elements each time."""
        if kind == "instance":
            content = [part for _, part in content[1]]
        elif kind not in ("tuple", "frozenset"):
            return 1
        return min(1 + sum(map(self._weight, content)), self._max_weight + 1)

    def _weight(self, written: Json) -> int:
        if isinstance(written, dict):
            kind, content = _kind_and_content(written)
            return self._weights[content] if kind == "at" else 1 + len(content) // 8
        return 1 + len(written) // 8 if isinstance(written, str) else 1

    def _check_keys(self, written: Iterable[Json], keys: list[Any]) -> None:
        """Charge the work of hashing keys; reject keys that were chosen to collide."""
        self._charge(sum(map(self._weight, written)))
        if len(keys) > _MAX_COLLISIONS and max(Counter(map(hash, keys)).values()) > _MAX_COLLISIONS:
            raise CheckpointError(
                "The file contains keys with colliding hashes: it was not written by tamis.save."
            )

    # -- the kinds of nodes --------------------------------------------------------------------------------

    def _pairs(self, pairs: Json) -> dict[Any, Any]:
        keys = [self.value(key) for key, _ in pairs]
        self._check_keys([key for key, _ in pairs], keys)
        return dict(zip(keys, [self.value(value) for _, value in pairs], strict=True))

    def _array(self, number: Json) -> Array:
        if type(number) is not int or number in self._arrays_read:
            raise CheckpointError(
                f"The file refers to the array {number!r:.60}, which does not exist or was used before."
            )
        self._arrays_read.add(number)
        data = self._archive.read(f"{number}.npy")
        header = io.BytesIO(data)
        np.lib.format.read_magic(header)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(header)
        if _check_plain(dtype).itemsize == 0 and 0 not in shape:
            raise CheckpointError(f"The file contains an array of shape {shape} whose values take no bytes.")
        # NumPy rejects a shape that needs more bytes than available. The copy is aligned and writeable.
        view: Array = np.ndarray(
            shape, dtype, memoryview(data)[header.tell() :], order="F" if fortran else "C"
        )
        return view.copy(order="K")

    def _objects(self, order: Any, shape: Any, items: Any) -> Array:
        if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape[:64]) != len(items):
            raise CheckpointError(
                f"The file contains {len(items)} values in an array of shape {shape!r:.60}."
            )
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = self.value(item)
        return array.reshape(shape, order=order)

    def _csr(self, make: type[Any], data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
        is_shape = type(shape) is tuple and [type(n) for n in shape] == [int, int]
        if not is_shape or not all(type(part) is np.ndarray for part in (data, indices, indptr)):
            raise CheckpointError(
                f"The file contains a sparse matrix of invalid shape {safe_repr(shape)} or without its arrays."
            )
        self._charge(_MATRIX_WORK + data.nbytes + indices.nbytes + indptr.nbytes)
        try:
            matrix = make((data, indices, indptr), shape=shape)
            matrix.indices, matrix.indptr = indices, indptr  # SciPy may have chosen a smaller integer type
            matrix.check_format(full_check=True)
        except ValueError:
            raise CheckpointError(
                f"The file contains a sparse matrix of shape {shape} with indices out of range."
            ) from None
        return matrix

    def _generator(self, kind: str, state: Any, seed: Any) -> Any:
        _check_generator(state, seed)
        words = sum(len(part) for part in state["state"].values() if isinstance(part, np.ndarray))
        self._charge(_GENERATOR_WORK + _WORD_WORK * words + (0 if seed is None else _seed_work(**seed)))
        bits = BIT_GENERATORS[state["bit_generator"]](
            None if seed is None else np.random.SeedSequence(**seed)
        )
        bits.state = state
        if kind == "Generator":
            return np.random.Generator(bits)
        random_state = np.random.RandomState(bits)
        random_state.set_state(state)  # includes a cached second normal deviate, if there is one
        return random_state

    def _instance(self, name: str, state: Json) -> Any:
        self._charge(_INSTANCE_WORK)
        if name not in self._class_cache:
            self._class_cache[name] = find_class(name, self._classes)
            self._warn_of_version(name, self._class_cache[name])
        cls = self._class_cache[name]
        # Files of earlier versions contain caches.
        attributes = {key: part for key, part in self._pairs(state).items() if key not in cache_names(cls)}
        check_attributes(cls, attributes)
        instance: Any = object.__new__(cls)
        vars(instance).update(attributes)
        if is_fitted(cls, attributes) and allowed(cls):
            try:
                check_parameters(instance)
            except ValueError as error:
                raise CheckpointError(f"The file contains an invalid {cls.__name__}: {error}") from None
        if isinstance(shapes := getattr(cls, "_state_spec", None), Shapes):
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


def _kind_and_content(node: Json) -> tuple[str, Json]:
    """Return kind and content of a node written as ``{kind: content}``."""
    if not isinstance(node, dict) or len(node) != 1:
        raise CheckpointError(f"The file contains {repr(node)[:60]} where a node of one kind is expected.")
    ((kind, content),) = node.items()
    return kind, content


def _dtype(text: Json) -> np.dtype[Any]:
    if type(text) is not str or not _DTYPE.fullmatch(text):
        raise CheckpointError(
            f"The file contains values of dtype {text!r:.60}, which tamis.save does not write."
        )
    return np.dtype(text)


def _check_plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind not in PLAIN_KINDS:
        raise CheckpointError(f"The file contains values of dtype {dtype}, which tamis.save does not write.")
    return dtype


# -- random number generators: NumPy does not validate their state -------------------------------------


def _check_generator(state: Any, seed: Any) -> None:
    name = state.get("bit_generator") if isinstance(state, dict) else None
    inner = state.get("state") if isinstance(state, dict) else None
    if name not in BIT_GENERATORS or not isinstance(inner, dict):
        raise CheckpointError(
            f"The file contains a random number generator of unknown kind {safe_repr(name)}."
        )
    flat = [*inner.values(), *(part for key, part in state.items() if key != "state")]
    position = state.get("buffer_pos", inner.get("pos", 0))
    is_plain = all(type(part) in (int, float, str) or _is_words(part) for part in flat)
    if not is_plain or type(position) is not int or not 0 <= position <= _BUFFERS.get(name, 0):
        raise CheckpointError(f"The file contains a {name} at the impossible position {safe_repr(position)}.")
    if seed is not None:
        size = seed.get("pool_size") if isinstance(seed, dict) else None
        if type(size) is not int or not 4 <= size <= 1 << 16:
            raise CheckpointError(
                f"The file contains a {name} whose seed has the pool size {safe_repr(size)}."
            )


def _is_words(part: Any) -> bool:
    return type(part) is np.ndarray and part.dtype.kind in "ui" and part.ndim == 1


def _seed_work(pool_size: int, entropy: Any = None, spawn_key: Any = (), **rest: Any) -> int:
    """Return the work to split a seed into 32-bit words and to mix them."""
    work = pool_size**2
    for part in (entropy, spawn_key):
        for number in part if isinstance(part, list | tuple) else [part]:
            if type(number) is int and number >= 0:
                work += (number.bit_length() // 32 + 1) * (number.bit_length() // 32 + pool_size)
            elif number is not None and not _is_words(number):
                raise CheckpointError(f"The file contains a generator with the seed {safe_repr(number)}.")
            elif number is not None:
                work += len(number) * pool_size
    return work
