"""Save and load models, checkpoints and results without pickle: one file or its bytes; nothing in it is executed.

The file is a zip archive (stored, so it cannot be a zip bomb) of `manifest.json` and one `.npy` file per array. Its
comment, the last bytes of the file, is the SHA-256 of everything before it, so any altered byte is detected.

The manifest contains a table of nodes. A node is a container, an array, a random number generator or an object, and
refers only to earlier nodes, so any file is read in a single loop, and the work that it requests is limited in
proportion to its size. An object with several references is stored once, and is a single object after loading.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, overload
from zipfile import ZipFile

import numpy as np
import sklearn

import tamis
from tamis._guard import ThreadSafe, locked
from tamis._interrupts import os_errors_as, raise_asynchronous
from tamis._validation import as_list, short_repr
from tamis.errors import CheckpointError, DataError, StateError
from tamis.persistence.archive import (
    open_bytes,
    open_verified,
    read_stream,
    replace_file,
    write,
    write_stream,
)
from tamis.persistence.codec import SCHEMA, Encoder, decode, full_name, is_instance

__all__ = ["dumps", "load", "loads", "replace_file", "save"]


@overload
def save(obj: Any, path: str | os.PathLike[str]) -> Path: ...
@overload
def save(obj: Any, path: BinaryIO) -> None: ...
def save(obj: Any, path: str | os.PathLike[str] | BinaryIO) -> Path | None:
    """Write an object to a file or a file object; if anything fails, an existing file is unchanged.

    Parameters
    ----------
    obj : object
        A Tamis object, a scikit-learn estimator, or None, bool, int, float, str, bytes, tuple, list, dict, set,
        NumPy scalar, array or random number generator, SciPy CSR matrix; nested to any depth. Your own
        estimators can be saved too; see :func:`load`.
    path : str, path or binary file object
        The file; an existing file is replaced atomically, or is unchanged if anything fails. A file object needs only
        a `write` that accepts bytes. It receives the bytes that :func:`dumps` returns, and is not closed.

    Returns
    -------
    pathlib.Path or None
        The file; None if a file object was given.

    Raises
    ------
    TypeError
        If something in `obj` cannot be saved; the message names its location. If a file object accepts text only.
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
    if not isinstance(path, str | os.PathLike):
        _write_to(path, dumps(obj))
        return None
    with locked(_thread_safe_models(obj)):
        return _save(obj, path)


def dumps(obj: Any) -> bytes:
    """Return the bytes that :func:`save` would write to a file; equal states give equal bytes.

    Parameters
    ----------
    obj : object
        As for :func:`save`.

    Returns
    -------
    bytes

    Raises
    ------
    TypeError
        If something in `obj` cannot be saved; the message names its location.

    Examples
    --------
    >>> import numpy as np, tamis
    >>> selector = tamis.FisherScore(1).partial_fit(np.eye(4), [0, 0, 1, 1])
    >>> state = tamis.dumps(selector)
    >>> tamis.loads(state).scores_.tolist() == selector.scores_.tolist(), state == tamis.dumps(selector)
    (True, True)
    """
    file = io.BytesIO()
    with locked(_thread_safe_models(obj)):
        write(file, *_encode(obj))
    return file.getvalue()


def _write_to(file: Any, data: bytes) -> None:
    if not hasattr(file, "write"):
        raise TypeError(f"path must be a path or a binary file object, got {short_repr(file)}.")
    if isinstance(file, io.TextIOBase):
        raise TypeError(
            f"{_file_name(file)} accepts text only: open it in binary mode, as in open(path, 'wb')."
        )
    try:
        write_stream(file, memoryview(data))
    except io.UnsupportedOperation as error:
        raise CheckpointError(
            f"Cannot write {_file_name(file)}: open it for writing, as in open(path, 'wb')."
        ) from error
    except OSError as error:
        raise_asynchronous(error)
        raise CheckpointError(f"Cannot write {_file_name(file)} ({error.strerror or error}).") from error


def _file_name(file: Any) -> str:
    """Return the name of a file object for messages."""
    name = getattr(file, "name", None)
    return repr(name) if isinstance(name, str) else f"'<{type(file).__name__}>'"


def _thread_safe_models(obj: Any) -> list[ThreadSafe]:
    """Return the models in an object and its nested containers; the lock of a model covers its parts."""
    models, pending, seen = [], [obj], set[int]()
    while pending:
        item = pending.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, ThreadSafe):
            models.append(item)
        elif isinstance(item, list | tuple):
            pending += item
        elif isinstance(item, dict):
            pending += item.values()
    return models


def _save(obj: Any, path: str | os.PathLike[str]) -> Path:
    manifest, arrays = _encode(obj)
    advice = "choose an existing, writable folder with free space"
    with os_errors_as(CheckpointError, f"Cannot write {os.fspath(path)!r}", advice):
        replace_file(path, lambda file: write(file, manifest, arrays))
    return Path(path)


def _encode(obj: Any) -> tuple[bytes, list[np.ndarray[Any, Any]]]:
    """Return the manifest and the arrays."""
    encoder = Encoder()
    root = encoder.encode(obj, type(obj).__name__ if is_instance(obj) else "")
    content = {
        "format": "tamis",
        "schema": SCHEMA,
        "versions": {"tamis": tamis.__version__, "numpy": np.__version__, "sklearn": sklearn.__version__},
        "nodes": encoder.nodes,
        "root": root,
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii"), encoder.arrays


def load(path: str | os.PathLike[str] | BinaryIO, *, classes: Iterable[type] = ()) -> Any:
    """Read an object that :func:`save` wrote.

    A file cannot choose code to execute. Objects are created without their constructor, and only from classes of Tamis,
    scikit-learn's public estimators, and `classes`. A class with a method ``check_state`` validates the loaded state
    and rejects one that it could not have saved.

    Parameters
    ----------
    path : str, path or binary file object
        A file object is read from its current position to its end, and is not closed.
    classes : iterable of classes
        Your own estimators that the file contains.

    Returns
    -------
    object
        Equal to the saved object; a model or generator continues exactly where it was.

    Notes
    -----
    For any file, loading takes memory and time in proportion to its size, plus the time to import the classes that it
    contains. Reading a file object stops if its first bytes are not those of a saved file.

    Raises
    ------
    CheckpointError
        If the file is missing, truncated, altered, from a newer Tamis, or not written by :func:`save`.
    TypeError
        If a file object returns text.

    Examples
    --------
    >>> import tempfile, numpy as np, tamis
    >>> from sklearn.linear_model import Perceptron
    >>> X, y = np.eye(4), [0, 0, 1, 1]
    >>> path = tamis.save(Perceptron().partial_fit(X, y, classes=[0, 1]), tempfile.mkdtemp() + "/model.tamis")
    >>> tamis.load(path).partial_fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """
    if isinstance(path, str | os.PathLike):
        return _load(open_verified(path), repr(os.fspath(path)), classes)
    if not hasattr(path, "read"):
        raise TypeError(
            f"path must be a path or a binary file object, got {short_repr(path)}: pass bytes to tamis.loads."
        )
    name = _file_name(path)
    try:
        data = read_stream(path, name)
    except OSError as error:
        raise_asynchronous(error)
        raise CheckpointError(f"Cannot read {name} ({error.strerror or error}).") from error
    return _load(open_bytes(data, name), name, classes)


def loads(data: bytes | bytearray | memoryview, *, classes: Iterable[type] = ()) -> Any:
    """Return the object that :func:`dumps` serialized; the bytes are validated as :func:`load` validates a file.

    Parameters
    ----------
    data : bytes, bytearray or memoryview
        The result of :func:`dumps`, or all bytes of a file of :func:`save`.
    classes : iterable of classes
        As for :func:`load`.

    Returns
    -------
    object

    Raises
    ------
    CheckpointError
        If the bytes are truncated, altered, from a newer Tamis, or not written by :func:`dumps`.
    TypeError
        If `data` is not bytes.

    Examples
    --------
    >>> import tamis
    >>> tamis.loads(tamis.dumps({"rows": 200}))
    {'rows': 200}
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"data must be bytes, got {short_repr(data)}: read a file with tamis.load.")
    name = f"'<{type(data).__name__}>'"
    return _load(open_bytes(data, name), name, classes)


def _load(opened: AbstractContextManager[tuple[ZipFile, int]], name: str, classes: Iterable[type]) -> Any:
    classes = as_list("classes", classes)
    try:
        with opened as (archive, size):
            return decode(archive, size, name, {full_name(cls): cls for cls in classes})
    except (CheckpointError, MemoryError):
        raise
    except (DataError, StateError) as error:  # raised by check_state
        raise CheckpointError(f"{name} is not a valid file of tamis.save: {error}") from error
    except Exception as error:
        raise_asynchronous(error)
        if isinstance(error, OSError):
            raise CheckpointError(
                f"Cannot read {name} ({error.strerror or error}): check the path."
            ) from error
        # Any error of the decoder on a forged file.
        raise CheckpointError(f"{name} is not a valid file of tamis.save: save it again.") from error
