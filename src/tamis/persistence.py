"""Save and load models, checkpoints and results without pickle: one file, and nothing in it is ever executed.

The file is a zip archive (stored, so it cannot be a zip bomb) of `manifest.json` and one `.npy` file per array. Its
comment, the last bytes of the file, is the SHA-256 of everything before it, so any altered byte is noticed.

The manifest holds a table of nodes. A node is a container, an array, a random number generator or an object, and
refers only to nodes before it, so whatever the file says, it is read in one loop. An object that is met twice is
stored once, and is one object again after loading.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import math
import os
import secrets
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

import tamis
from tamis.errors import CheckpointError, DataError

__all__ = ["load", "replace_file", "save"]

Json: TypeAlias = Any
Array: TypeAlias = np.ndarray[Any, Any]

SCHEMA = 1  # to be raised when an older Tamis could not read what this one writes
_MARK = b"tamis sha256 "
_END = len(_MARK) + 64
_PLAIN = "biufcSUmM"  # kinds of arrays that are nothing but bytes
_SEQUENCES = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}
_GENERATORS = {
    name: getattr(np.random, name) for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
}
_BUFFERS = {"MT19937": 624, "Philox": 4}  # numbers drawn ahead
_PUBLIC = {f"sklearn.{module}" for module in (*sklearn.__all__, "feature_extraction.text")}
_DERIVED = {"_loss_function_"}  # of scikit-learn's SGD family: made anew at each partial_fit
_MOVED = {  # classes that stand elsewhere now, by the name that older files give them
    "tamis.cells.classifier:_Bill": "tamis.base.cells:_Bill",
    "tamis.evaluate.auc:SlidingAUC": "tamis.evaluate.metrics.auc:SlidingAUC",
    "tamis.evaluate.masking:Masker": "tamis.evaluate.test_then_train.masking:Masker",
    "tamis.evaluate.metrics:RunningMetrics": "tamis.evaluate.metrics.classification:RunningMetrics",
    "tamis.evaluate.oracle:Oracle": "tamis.evaluate.experiment.oracle:Oracle",
    "tamis.evaluate.records:Records": "tamis.evaluate.test_then_train.run_log:RunLog",
    "tamis.evaluate.records:Table": "tamis.evaluate.test_then_train.run_log:Table",
    "tamis.evaluate.stability:SlidingStability": "tamis.evaluate.metrics.stability:SlidingStability",
    "tamis.evaluate.stability_preq_cv:PreqCVStability": "tamis.evaluate.metrics.preq_cv:PreqCVStability",
    "tamis.rows.bin_counts:BinCounts": "tamis.rows.screening.bin_counts:BinCounts",
    "tamis.rows.screening:ChiSquare": "tamis.rows.screening.chi_square:ChiSquare",
    "tamis.rows.screening:FisherScore": "tamis.rows.screening.fisher:FisherScore",
    "tamis.rows.screening:GiniIndex": "tamis.rows.screening.gini:GiniIndex",
    "tamis.rows.screening:MutualInformation": "tamis.rows.screening.mutual_information:MutualInformation",
    "tamis.rows.screening:Screening": "tamis.rows.screening.screening:Screening",
    "tamis.rows.screening:TScore": "tamis.rows.screening.t_score:TScore",
    "tamis.trace:Trace": "tamis.base.trace:Trace",
}


def save(obj: Any, path: str | os.PathLike[str]) -> Path:
    """Write an object to a file, whole or not at all.

    Parameters
    ----------
    obj : object
        A Tamis object, a scikit-learn estimator, or None, bool, int, float, str, bytes, tuple, list, dict, set,
        NumPy scalar, array or random number generator, SciPy CSR matrix; nested as you like. An estimator of
        your own can be saved too; see :func:`load`.
    path : str or path
        The file; one that exists is replaced in one step, or stays as it is if anything fails.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    TypeError
        If something in `obj` cannot be saved; the message says where it is.
    CheckpointError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile, numpy as np, tamis
    >>> path = tempfile.mkdtemp() + "/state.tamis"
    >>> _ = tamis.save({"rng": np.random.default_rng(0), "step": 3, "seen": {"a", 1}}, path)
    >>> state = tamis.load(path)
    >>> state["step"], bool(state["rng"].random() == np.random.default_rng(0).random())
    (3, True)
    """
    encoder = _Encoder()
    root = encoder.encode(obj, type(obj).__name__ if _is_instance(obj) else "")
    content = {
        "format": "tamis",
        "schema": SCHEMA,
        "versions": {"tamis": tamis.__version__, "numpy": np.__version__, "sklearn": sklearn.__version__},
        "nodes": encoder.nodes,
        "root": root,
    }
    manifest = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
    try:
        replace_file(Path(os.path.realpath(path)), lambda file: _write(file, manifest, encoder.arrays))
    except OSError as error:
        raise CheckpointError(
            f"Cannot write {os.fspath(path)!r} ({error.strerror or error}): choose a folder that exists, can be"
            " written to and has space left."
        ) from error
    return Path(path)


def load(path: str | os.PathLike[str], *, classes: Iterable[type] = ()) -> Any:
    """Read what :func:`save` wrote.

    No code is run that the file could choose: objects are made without their constructor, and only of classes of
    Tamis, of scikit-learn's public estimators, and of `classes`. A class with a method ``check_state`` looks at what
    was loaded, and refuses what it could not have saved.

    Parameters
    ----------
    path : str or path
    classes : iterable of classes
        Your own estimators that the file holds, and classes of Tamis that are loaded only if they are named, such as
        :class:`tamis.columns.generators.Query`, whose text is run as the file has it.

    Returns
    -------
    object
        Equal to what was saved; a model or generator continues exactly where it was.

    Raises
    ------
    CheckpointError
        If the file is missing, truncated, altered, of a newer Tamis, or not one of ours.

    Examples
    --------
    >>> import tempfile, numpy as np, tamis
    >>> from sklearn.linear_model import Perceptron
    >>> X, y = np.eye(4), [0, 0, 1, 1]
    >>> path = tamis.save(Perceptron().partial_fit(X, y, classes=[0, 1]), tempfile.mkdtemp() + "/model.tamis")
    >>> tamis.load(path).partial_fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """
    name = repr(os.fspath(path))
    try:
        with open(path, "rb") as file:
            _verify(file, name)
            return _read(file, name, {_full_name(cls): cls for cls in classes})
    except OSError as error:
        raise CheckpointError(f"Cannot read {name} ({error.strerror or error}): check the path.") from error
    except (CheckpointError, MemoryError):
        raise
    except DataError as error:  # of an object that was looked at
        raise CheckpointError(f"{name} is no valid file of tamis.save: {error}") from error
    except Exception as error:  # whatever a file made by someone else makes the decoder stumble over
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise CheckpointError(f"{name} is no valid file of tamis.save ({reason}): save it again.") from error


# -- the file ----------------------------------------------------------------------------------------------


def replace_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file beside `path`, and put it in its place once all of it is on the disk; else nothing is left.

    Parameters
    ----------
    path : pathlib.Path
    write : callable
        Takes the open file.

    Raises
    ------
    OSError
        If the file cannot be written; whatever `write` raises is raised too.
    """
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "x+b") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # not every system can open a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _write(file: BinaryIO, manifest: bytes, arrays: list[Array]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = _MARK.ljust(_END)
        archive.writestr(zipfile.ZipInfo("manifest.json"), manifest)  # no time of day: same state, same bytes
        for i, array in enumerate(arrays):
            info = zipfile.ZipInfo(f"{i}.npy")
            info.file_size = array.nbytes + 1024  # tells zipfile whether the member is large
            with archive.open(info, "w") as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
    size = file.seek(0, os.SEEK_END) - _END
    digest = _digest(file, size)
    file.seek(size)
    file.write(_MARK + digest)


def _digest(file: BinaryIO, size: int) -> bytes:
    digest = hashlib.sha256()
    file.seek(0)
    while size > 0 and (chunk := file.read(min(size, 1 << 20))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest().encode("ascii")


def _verify(file: BinaryIO, name: str) -> None:
    """Refuse a file that is not, byte for byte, as it was written."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _END, 0))
    end = file.read()
    if end == _MARK + _digest(file, size - _END):
        return
    file.seek(0)
    if b"manifest.json" in file.read(64):
        raise CheckpointError(f"{name} is truncated or was altered: use another copy of it, or save again.")
    raise CheckpointError(f"{name} was not written by tamis.save: give the path of a file that was.")


def _read(file: BinaryIO, name: str, classes: dict[str, type]) -> Any:
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if (
            any(m.compress_type != zipfile.ZIP_STORED for m in members)
            or sum(m.file_size for m in members) > size
        ):
            raise CheckpointError(f"{name} declares more than it holds: it was not written by tamis.save.")
        content = json.loads(archive.read("manifest.json"))
        if content["schema"] > SCHEMA:
            raise CheckpointError(
                f"{name} was saved by Tamis {content['versions']['tamis']}, which is newer than this one"
                f" ({tamis.__version__}): upgrade with `pip install -U tamis`."
            )
        decoder = _Decoder(archive, classes, content["versions"]["sklearn"])
        for node in content["nodes"]:
            decoder.values.append(decoder.build(node))
        return decoder.value(content["root"])


# -- classes -----------------------------------------------------------------------------------------------


def _is_instance(value: Any) -> bool:
    """Return whether the value is an object that is saved by its attributes."""
    return isinstance(value, BaseEstimator) or type(value).__module__.partition(".")[0] == "tamis"


def _full_name(cls: type) -> str:
    """Return the name by which a class is found again: for scikit-learn, that in its public module."""
    module = cls.__module__
    if module.startswith("sklearn."):
        module = module.partition("._")[0]
    return f"{module}:{cls.__qualname__}"


def _find_class(full_name: str, classes: dict[str, type]) -> type:
    """Return a class by its name; no other modules are imported than those of Tamis and public ones of scikit-learn."""
    full_name = _MOVED.get(full_name, full_name)
    module, _, name = full_name.partition(":")
    found: Any = classes.get(full_name)
    if found is None and module.partition(".")[0] == "tamis" and "__main__" not in module:
        found = getattr(importlib.import_module(module), name, None)
        if getattr(found, "loaded_if_named", False):
            raise CheckpointError(
                f"The file holds a {name}, which runs what its author wrote: if you trust the author, load the file"
                f" with classes=[{name}]."
            )
    elif found is None and module in _PUBLIC:
        found = getattr(importlib.import_module(module), name, None)
        found = found if isinstance(found, type) and issubclass(found, BaseEstimator) else None
    makes_plainly = found.__new__ is object.__new__  # true of nothing that needs arguments to exist
    if not makes_plainly or not isinstance(found, type) or _full_name(found) != full_name:
        raise CheckpointError(
            f"The file holds an object of the class {full_name.replace(':', '.')}, which is neither of Tamis nor a"
            f" public estimator of scikit-learn: if it is yours, load the file with classes=[{name}]."
        )
    return found


# -- values ------------------------------------------------------------------------------------------------


class _Encoder:
    """Turns a value into JSON, a table of nodes, and a list of arrays.

    A value is written as itself (None, bool, int, float, str), as ``{kind: text}``, or as ``{"at": node}``.
    """

    def __init__(self) -> None:
        self.nodes: list[Json] = []
        self.arrays: list[Array] = []
        self._done: dict[int, tuple[int, Any]] = {}  # by id; the object is held, lest its id be used again
        self._open: set[int] = set()

    def encode(self, value: Any, path: str) -> Json:
        kind = type(value)
        if value is None or kind in (bool, str) or (kind is int and abs(value) < 2**63):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
        if kind is int:
            return {"int": hex(value)}  # decimals are limited in their length
        if kind is bytes:
            return {"bytes": value.hex()}
        if isinstance(value, np.generic) and value.dtype.kind in _PLAIN:
            return {"scalar": [value.dtype.str, value.tobytes().hex()]}
        return {"at": self._place(value, path)}

    def _place(self, value: Any, path: str) -> int:
        """Return where the value's node is in the table."""
        if id(value) in self._open:
            raise TypeError(f"Cannot save {path}: it contains itself.")
        if id(value) not in self._done:
            self._open.add(id(value))
            node = self._node(value, path)
            self._open.remove(id(value))
            self._done[id(value)] = len(self.nodes), value
            self.nodes.append(node)
        return self._done[id(value)][0]

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
        if _is_instance(value):
            return self._instance(value, path)
        raise TypeError(
            f"Cannot save {path or 'the object'}: it is a {kind.__module__}.{kind.__qualname__}, but only plain values,"
            " arrays, CSR matrices, random number generators, and estimators made of these can be saved."
        )

    def _pairs(self, mapping: dict[Any, Any], path: str) -> Json:
        pairs = []
        for key, value in mapping.items():
            named = isinstance(key, str) and key.isidentifier()
            at = f"{path}[{key!r}]" if not named else f"{path}.{key}" if path else key
            pairs.append([self.encode(key, f"the key of {at}"), self.encode(value, at)])
        return pairs

    def _array(self, value: Array, path: str) -> Json:
        if value.dtype.kind in _PLAIN:
            self.arrays.append(value)
            return {"array": len(self.arrays) - 1}
        if value.dtype.kind != "O":
            raise TypeError(
                f"Cannot save {path or 'the array'}: its dtype is {value.dtype}; convert it first."
            )
        order: Literal["C", "F"] = "F" if value.flags.fnc else "C"
        items = [self.encode(item, f"{path}[{i}]") for i, item in enumerate(value.ravel(order))]
        return {"objects": [order, list(value.shape), items]}

    def _bits(self, bits: Any, state: Any, path: str) -> Json:
        if _GENERATORS.get(type(bits).__name__) is not type(bits):
            raise TypeError(
                f"Cannot save {path or 'the generator'}: it draws from a {type(bits).__qualname__}."
            )
        seed = bits.seed_seq.state if type(bits.seed_seq) is np.random.SeedSequence else None  # for spawn()
        return self._pairs({"state": state, "seed": seed}, path)

    def _instance(self, value: Any, path: str) -> Json:
        name = _full_name(type(value))
        package = name.partition(":")[0].partition(".")[0]
        try:
            is_free = package in ("tamis", "sklearn") and not hasattr(type(value), "loaded_if_named")
            _find_class(name, {} if is_free else {name: type(value)})
            state = vars(value)
        except (CheckpointError, ImportError, TypeError):
            raise TypeError(
                f"Cannot save {path or 'the object'}: a {name.replace(':', '.')} is more than its attributes."
            ) from None
        if package == "sklearn":
            state = {name: part for name, part in state.items() if name not in _DERIVED}
        return {"instance": [name, self._pairs(state, path)]}


class _Decoder:
    """Turns nodes back into values; whatever does not fit raises."""

    def __init__(self, archive: zipfile.ZipFile, classes: dict[str, type], sklearn_version: str) -> None:
        self.values: list[Any] = []
        self._archive = archive
        self._classes = classes
        self._sklearn_version = sklearn_version

    def value(self, written: Json) -> Any:
        if not isinstance(written, dict):
            return written
        ((kind, content),) = written.items()
        if kind == "at":
            return self.values[content]
        if kind == "float":
            return struct.unpack(">d", bytes.fromhex(content))[0]
        if kind == "int":
            return int(content, 16)
        if kind == "bytes":
            return bytes.fromhex(content)
        if kind == "scalar":
            dtype, data = content
            return np.ndarray((1,), _plain(np.dtype(dtype)), bytes.fromhex(data))[0]
        raise CheckpointError(f"The file holds a value of the unknown kind {kind!r}.")

    def build(self, node: Json) -> Any:
        """Return the value of a node, all earlier ones being built."""
        ((kind, content),) = node.items()
        if kind in _SEQUENCES:
            return _SEQUENCES[kind](self.value(item) for item in content)
        if kind == "dict":
            return self._pairs(content)
        if kind == "array":
            return self._array(content)
        if kind == "objects":
            order, shape, items = content
            array = np.empty(len(items), dtype=object)
            for i, item in enumerate(items):
                array[i] = self.value(item)
            return array.reshape(shape, order=order)
        if kind in ("csr_matrix", "csr_array"):
            return _csr(getattr(sp, kind), **self._pairs(content))
        if kind in ("Generator", "RandomState"):
            return _generator(kind, **self._pairs(content))
        if kind == "instance":
            return self._instance(*content)
        raise CheckpointError(f"The file holds a value of the unknown kind {kind!r}.")

    def _pairs(self, pairs: Json) -> dict[Any, Any]:
        return {self.value(key): self.value(value) for key, value in pairs}

    def _array(self, number: int) -> Array:
        data = self._archive.read(f"{number}.npy")
        header = io.BytesIO(data)
        np.lib.format.read_magic(header)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(header)
        # NumPy refuses a shape that needs more bytes than there are. The copy is aligned and can be written to.
        view: Array = np.ndarray(
            shape, _plain(dtype), memoryview(data)[header.tell() :], order="F" if fortran else "C"
        )
        return view.copy(order="K")

    def _instance(self, name: str, state: Json) -> Any:
        cls = _find_class(name, self._classes)
        if name.startswith("sklearn.") and self._sklearn_version != sklearn.__version__:
            warning = InconsistentVersionWarning(
                estimator_name=cls.__name__,
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=self._sklearn_version,
            )
            warnings.warn(warning, stacklevel=5)
        attributes = self._pairs(state)
        if not all(name.isidentifier() and not name.startswith("__") for name in attributes):
            raise CheckpointError(f"The file gives a {cls.__name__} attributes that none can have.")
        instance: Any = object.__new__(cls)
        vars(instance).update(attributes)
        if hasattr(cls, "check_state"):
            instance.check_state()
        return instance


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind not in _PLAIN:
        raise CheckpointError(f"The file holds values of dtype {dtype}, which tamis.save does not write.")
    return dtype


def _csr(make: type[Any], data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Any:
    matrix = make((data, indices, indptr), shape=shape)
    matrix.indices, matrix.indptr = indices, indptr  # SciPy may have chosen a smaller integer type
    matrix.check_format(full_check=True)
    return matrix


def _generator(kind: str, state: dict[str, Any], seed: dict[str, Any] | None) -> Any:
    name = state["bit_generator"]
    position = state.get(
        "buffer_pos", state["state"].get("pos", 0)
    )  # NumPy does not look whether it is inside
    if not 0 <= position <= _BUFFERS.get(name, 0):
        raise CheckpointError(f"The file holds a {name} at the impossible position {position!r}.")
    bits = _GENERATORS[name](None if seed is None else np.random.SeedSequence(**seed))
    bits.state = state
    if kind == "Generator":
        return np.random.Generator(bits)
    random_state = np.random.RandomState(bits)
    random_state.set_state(state)  # with the second of a pair of normal numbers, if one waits
    return random_state
