"""Save and load models and plain values in one file; nothing in the file is ever executed.

The file is a zip archive: `manifest.json` holds the tree of values, each array is a member of its own (`0.npy`, ...).
The manifest lists the size and SHA-256 of every array and is itself sealed by one, so that a truncated or altered
file is refused. Objects are rebuilt without calling anything that the file names: a class must be a class of Tamis or
an estimator of scikit-learn, an instance is made empty, and its attributes are set.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from tamis.errors import CheckpointError

__all__ = ["load", "save"]

FORMAT = "tamis"
SCHEMA = 1
_MANIFEST = "manifest.json"

# Rebuilt by scikit-learn on the next call, and not values: losses are compiled objects.
_REBUILT = {"_loss_function_", "loss_function_"}


def save(obj: Any, path: str | os.PathLike[str]) -> Path:
    """Write a model or a plain value to a file, all of it or nothing.

    Parameters
    ----------
    obj : object
        An estimator of Tamis or scikit-learn whose attributes are values, or a value: None, bool, int, float, str,
        bytes, list, tuple, dict, set, NumPy scalars and arrays (no objects other than labels), CSR matrices, NumPy's
        random generators, and any nesting of these. An array that is met twice is stored twice.
    path : path-like
        An existing file is replaced, and is left as it is if anything goes wrong.

    Returns
    -------
    pathlib.Path
        The path written.

    Raises
    ------
    TypeError
        If something inside cannot be stored; the message names where it is.
    CheckpointError
        If the file cannot be written.

    Examples
    --------
    >>> import tamis, numpy as np, tempfile, os
    >>> X = np.random.default_rng(0).normal(size=(500, 10))
    >>> selector = tamis.FIRES(2).fit(X, X[:, 4] > X[:, 8])
    >>> path = os.path.join(tempfile.mkdtemp(), "selector.tamis")
    >>> _ = tamis.save(selector, path)
    >>> tamis.load(path).get_support(indices=True)
    array([4, 8])
    """
    path = Path(path)
    arrays: list[np.ndarray[Any, Any]] = []
    tree = _encode(obj, arrays, type(obj).__name__)
    blobs = [_npy(array) for array in arrays]
    body = {
        "tree": tree,
        "arrays": [{"bytes": len(blob), "sha256": hashlib.sha256(blob).hexdigest()} for blob in blobs],
    }
    manifest = {"format": FORMAT, "schema": SCHEMA, "seal": _seal(body), **body}
    folder = path.parent
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=folder)
    except OSError as error:
        raise CheckpointError(f"Cannot write {str(path)!r} ({error.strerror}): choose a folder that exists and can be"
                              " written.") from error  # fmt: skip
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                for number, blob in enumerate(blobs):
                    archive.writestr(_member(f"{number}.npy"), blob)
                archive.writestr(_member(_MANIFEST), json.dumps(manifest, separators=(",", ":")))
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError as error:
        _remove(name)
        raise CheckpointError(f"Cannot write {str(path)!r} ({error.strerror}): free some space, or choose another"
                              " path.") from error  # fmt: skip
    except BaseException:
        _remove(name)
        raise
    _sync_folder(folder)
    return path


def load(path: str | os.PathLike[str]) -> Any:
    """Read what :func:`save` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    object
        Equal to what was saved; a model goes on learning exactly as the saved one would have.

    Raises
    ------
    CheckpointError
        If the file is missing, truncated, altered, not one of Tamis, or written by a newer schema.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(_read(archive, _MANIFEST, limit=1 << 30))
            _check_manifest(manifest, path)
            arrays = [_array(archive, number, entry, path) for number, entry in enumerate(manifest["arrays"])]
    except FileNotFoundError as error:
        raise CheckpointError(f"There is no file {str(path)!r}: check the path.") from error
    except IsADirectoryError as error:
        raise CheckpointError(
            f"{str(path)!r} is a folder, not a saved state: name the file inside."
        ) from error
    except CheckpointError:
        raise
    except Exception as error:  # a damaged archive can fail anywhere in zipfile, zlib, json or numpy
        raise CheckpointError(_damaged(path, f"{type(error).__name__}: {error}")) from error
    try:
        return _decode(manifest["tree"], arrays)
    except CheckpointError as error:
        raise CheckpointError(f"{str(path)!r} cannot be loaded: {error}") from error
    except Exception as error:
        raise CheckpointError(_damaged(path, f"{type(error).__name__}: {error}")) from error


# -- the file ----------------------------------------------------------------------------------------------


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)  # no time of day: the same state makes the same bytes
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _seal(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, separators=(",", ":"), sort_keys=True).encode()).hexdigest()


def _remove(name: str) -> None:
    if os.path.exists(name):
        os.remove(name)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system lets a folder be synchronised."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        return
    finally:
        os.close(handle)


def _read(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """Read a member, but never more than is expected of it."""
    with archive.open(name) as member:
        blob = member.read(limit + 1)
    if len(blob) > limit:
        raise ValueError(f"{name} is longer than {limit} bytes")
    return blob


def _damaged(path: Path, what: str) -> str:
    return (
        f"{str(path)!r} is damaged or not a saved state ({what}): save it again, or restore it from a backup."
    )


def _check_manifest(manifest: Any, path: Path) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CheckpointError(
            f"{str(path)!r} was not written by tamis.save: load the file it came from otherwise."
        )
    if not isinstance(manifest.get("schema"), int) or manifest["schema"] > SCHEMA:
        raise CheckpointError(
            f"{str(path)!r} has schema {manifest.get('schema')!r}, this Tamis reads up to {SCHEMA}: upgrade Tamis."
        )
    if manifest.get("seal") != _seal({"tree": manifest.get("tree"), "arrays": manifest.get("arrays")}):
        raise CheckpointError(_damaged(path, "its contents do not match their checksum"))


def _array(archive: zipfile.ZipFile, number: int, entry: dict[str, Any], path: Path) -> np.ndarray[Any, Any]:
    blob = _read(archive, f"{number}.npy", limit=int(entry["bytes"]))
    if len(blob) != entry["bytes"] or hashlib.sha256(blob).hexdigest() != entry["sha256"]:
        raise CheckpointError(_damaged(path, f"array {number} does not match its checksum"))
    return np.asarray(np.lib.format.read_array(io.BytesIO(blob), allow_pickle=False))


# -- values ------------------------------------------------------------------------------------------------


def _encode(value: Any, arrays: list[np.ndarray[Any, Any]], where: str) -> Any:
    """Return the value as JSON: plain where JSON has it, else a list of a tag and what the tag needs."""
    if value is None or isinstance(value, bool | str):
        return value
    if type(value) is int:
        return value if abs(value) < 2**53 else ["int", str(value)]
    if type(value) is float:
        return ["float", value.hex() if math.isfinite(value) else str(value)]
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, np.generic):
        return ["scalar", _store(np.asarray(value), arrays, where)]
    if isinstance(value, np.ndarray):
        return _store(value, arrays, where)
    if sp.issparse(value):
        return _encode_sparse(value, arrays, where)
    if type(value) in (list, tuple, set, frozenset):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [type(value).__name__, [_encode(v, arrays, f"{where}[{i}]") for i, v in enumerate(items)]]
    if type(value) is dict:
        pairs = [[_encode(k, arrays, where), _encode(v, arrays, f"{where}[{k!r}]")] for k, v in value.items()]
        return ["dict", pairs]
    if isinstance(value, np.random.Generator):
        state = value.bit_generator.state
        return ["generator", _encode(state, arrays, where)]
    if isinstance(value, np.random.RandomState):
        return ["random_state", _encode(value.get_state(legacy=False), arrays, where)]
    return _encode_object(value, arrays, where)


def _store(array: np.ndarray[Any, Any], arrays: list[np.ndarray[Any, Any]], where: str) -> Any:
    if array.dtype.hasobject:
        if array.dtype != object:
            raise TypeError(f"{where} is an array of {array.dtype}, which cannot be saved: drop it first.")
        return ["labels", list(array.shape), [_encode(v, arrays, where) for v in array.ravel().tolist()]]
    arrays.append(array)
    return ["array", len(arrays) - 1]


def _encode_sparse(value: Any, arrays: list[np.ndarray[Any, Any]], where: str) -> Any:
    if value.format != "csr":
        raise TypeError(
            f"{where} is a sparse matrix in {value.format} format: convert it with .tocsr() first."
        )
    kind = "csr_array" if isinstance(value, sp.sparray) else "csr_matrix"
    parts = [_store(part, arrays, where) for part in (value.data, value.indices, value.indptr)]
    return ["csr", kind, list(value.shape), parts]


def _encode_object(value: Any, arrays: list[np.ndarray[Any, Any]], where: str) -> Any:
    kind = type(value)
    if not _is_known(kind):
        raise TypeError(
            f"{where} is a {kind.__module__}.{kind.__qualname__}, which cannot be saved: drop it first."
        )
    attributes = {k: v for k, v in vars(value).items() if k not in _REBUILT}
    pairs = [[name, _encode(item, arrays, f"{where}.{name}")] for name, item in attributes.items()]
    return ["object", kind.__module__, kind.__qualname__, pairs]


def _is_known(kind: type) -> bool:
    root = kind.__module__.partition(".")[0]
    return root == "tamis" or (root == "sklearn" and issubclass(kind, BaseEstimator))


def _decode(node: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if not isinstance(node, list):
        return node
    tag, *rest = node
    if tag not in _DECODERS:
        raise CheckpointError(f"it holds a value of the unknown kind {tag!r}.")
    return _DECODERS[tag](arrays, *rest)


def _decode_dict(arrays: list[np.ndarray[Any, Any]], pairs: list[Any]) -> dict[Any, Any]:
    return {_decode(key, arrays): _decode(value, arrays) for key, value in pairs}


def _decode_labels(arrays: list[np.ndarray[Any, Any]], shape: list[int], items: list[Any]) -> Any:
    labels = np.empty(len(items), dtype=object)
    labels[:] = [_decode(item, arrays) for item in items]
    return labels.reshape(shape)


def _decode_csr(arrays: list[np.ndarray[Any, Any]], kind: str, shape: list[int], parts: list[Any]) -> Any:
    make = sp.csr_array if kind == "csr_array" else sp.csr_matrix
    return make(tuple(_decode(part, arrays) for part in parts), shape=tuple(shape))


def _decode_generator(arrays: list[np.ndarray[Any, Any]], state: Any) -> np.random.Generator:
    state = _decode(state, arrays)
    kinds = {"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"}
    if state["bit_generator"] not in kinds:
        raise CheckpointError(f"it holds a random generator of the unknown kind {state['bit_generator']!r}.")
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)


def _decode_random_state(arrays: list[np.ndarray[Any, Any]], state: Any) -> np.random.RandomState:
    random_state = np.random.RandomState()
    random_state.set_state(_decode(state, arrays))
    return random_state


def _decode_object(arrays: list[np.ndarray[Any, Any]], module: str, name: str, pairs: list[Any]) -> Any:
    if module.partition(".")[0] not in ("tamis", "sklearn") or not name.isidentifier():
        raise CheckpointError(f"it holds a {module}.{name}, which is neither of Tamis nor of scikit-learn.")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise CheckpointError(
            f"there is no class {module}.{name} here: install the version that saved it."
        ) from None
    if not isinstance(kind, type) or not _is_known(kind) or kind.__module__ != module:
        raise CheckpointError(f"it holds a {module}.{name}, which is no class that can be loaded.")
    instance: Any = object.__new__(kind)
    for attribute, value in pairs:
        instance.__dict__[attribute] = _decode(value, arrays)
    return instance


_DECODERS: dict[str, Callable[..., Any]] = {
    "int": lambda arrays, text: int(text),
    "float": lambda arrays, text: float.fromhex(text),
    "bytes": lambda arrays, text: bytes.fromhex(text),
    "scalar": lambda arrays, node: _decode(node, arrays)[()],
    "array": lambda arrays, number: arrays[number],
    "labels": _decode_labels,
    "csr": _decode_csr,
    "list": lambda arrays, items: [_decode(item, arrays) for item in items],
    "tuple": lambda arrays, items: tuple(_decode(item, arrays) for item in items),
    "set": lambda arrays, items: {_decode(item, arrays) for item in items},
    "frozenset": lambda arrays, items: frozenset(_decode(item, arrays) for item in items),
    "dict": _decode_dict,
    "generator": _decode_generator,
    "random_state": _decode_random_state,
    "object": _decode_object,
}
