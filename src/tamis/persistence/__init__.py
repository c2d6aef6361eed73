"""Save and load models, checkpoints and results without pickle: one file, or its bytes, and nothing in it is executed.

The file is a zip archive (stored, so it cannot be a zip bomb) of `manifest.json` and one `.npy` file per array. Its
comment, the last bytes of the file, is the SHA-256 of everything before it, so any altered byte is noticed.

The manifest holds a table of nodes. A node is a container, an array, a random number generator or an object, and
refers only to nodes before it, so whatever the file says, it is read in one loop, and the work that it asks for is
counted against the file's size. An object that is met twice is stored once, and is one object again after loading.
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
from tamis._check import short_repr
from tamis._guard import Guarded, held
from tamis.errors import CheckpointError, DataError, StateError
from tamis.persistence.archive import (
    from_memory,
    open_verified,
    read_all,
    write,
    write_all,
)
from tamis.persistence.classes import full_name, is_instance
from tamis.persistence.decoder import SCHEMA, decode
from tamis.persistence.encoder import Encoder
from tamis.persistence.replacement import replace_file

__all__ = ["dumps", "load", "loads", "replace_file", "save"]


@overload
def save(obj: Any, path: str | os.PathLike[str]) -> Path: ...
@overload
def save(obj: Any, path: BinaryIO) -> None: ...
def save(obj: Any, path: str | os.PathLike[str] | BinaryIO) -> Path | None:
    """Write an object to a file or a file object; if anything fails, an existing file stays as it is.

    Parameters
    ----------
    obj : object
        A Tamis object, a scikit-learn estimator, or None, bool, int, float, str, bytes, tuple, list, dict, set,
        NumPy scalar, array or random number generator, SciPy CSR matrix; nested as you like. An estimator of
        your own can be saved too; see :func:`load`.
    path : str, path or binary file object
        The file; an existing file is replaced in one step, or stays as it is if anything fails. A file object needs
        only a `write` that takes bytes. It is given what :func:`dumps` returns, and is not closed.

    Returns
    -------
    pathlib.Path or None
        The file; None if a file object was given.

    Raises
    ------
    TypeError
        If something in `obj` cannot be saved; the message says where it is. If a file object takes text.
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
    with held(_guarded_in(obj)):
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
        If something in `obj` cannot be saved; the message says where it is.

    Examples
    --------
    >>> import numpy as np, tamis
    >>> selector = tamis.FisherScore(1).partial_fit(np.eye(4), [0, 0, 1, 1])
    >>> state = tamis.dumps(selector)
    >>> tamis.loads(state).scores_.tolist() == selector.scores_.tolist(), state == tamis.dumps(selector)
    (True, True)
    """
    file = io.BytesIO()
    with held(_guarded_in(obj)):
        write(file, *_encoded(obj))
    return file.getvalue()


def _write_to(file: Any, data: bytes) -> None:
    if not hasattr(file, "write"):
        raise TypeError(f"path must be a path or a binary file object, got {short_repr(file)}.")
    if isinstance(file, io.TextIOBase):
        raise TypeError(f"{_name_of(file)} takes text: open it in binary mode, as in open(path, 'wb').")
    try:
        write_all(file, memoryview(data))
    except io.UnsupportedOperation as error:
        raise CheckpointError(
            f"Cannot write {_name_of(file)}: open it for writing, as in open(path, 'wb')."
        ) from error
    except OSError as error:
        raise CheckpointError(f"Cannot write {_name_of(file)} ({error.strerror or error}).") from error


def _name_of(file: Any) -> str:
    """Return what a file object is called in a message."""
    name = getattr(file, "name", None)
    return repr(name) if isinstance(name, str) else f"'<{type(file).__name__}>'"


def _guarded_in(obj: Any) -> list[Guarded]:
    """Return the models in an object, as far as containers hold them: each answers for what is in it."""
    found, left, seen = [], [obj], set[int]()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Guarded):
            found.append(one)
        elif isinstance(one, list | tuple):
            left += one
        elif isinstance(one, dict):
            left += one.values()
    return found


def _save(obj: Any, path: str | os.PathLike[str]) -> Path:
    manifest, arrays = _encoded(obj)
    try:
        replace_file(path, lambda file: write(file, manifest, arrays))
    except OSError as error:
        raise CheckpointError(
            f"Cannot write {os.fspath(path)!r} ({error.strerror or error}): choose a folder that exists, can be"
            " written to and has space left."
        ) from error
    return Path(path)


def _encoded(obj: Any) -> tuple[bytes, list[np.ndarray[Any, Any]]]:
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

    A file cannot choose code to run. Objects are made without their constructor, and only of classes of Tamis, of
    scikit-learn's public estimators, and of `classes`. A class with a method ``check_state`` checks what was loaded,
    and refuses a state that it could not have saved.

    Parameters
    ----------
    path : str, path or binary file object
        A file object is read from its present position to its end, and is not closed.
    classes : iterable of classes
        Your own estimators that the file holds. Also classes of Tamis that are loaded only if they are named, such as
        :class:`tamis.columns.generators.Query`, because the text in the file is run as a query.

    Returns
    -------
    object
        Equal to the saved object; a model or generator continues exactly where it was.

    Notes
    -----
    Whatever the file contains, loading takes memory and time in proportion to its size, plus the time to import the
    classes that it holds. A file object is read no further if its first bytes are not those of a saved file.

    Raises
    ------
    CheckpointError
        If the file is missing, truncated, altered, of a newer Tamis, or not one of ours.
    TypeError
        If a file object gives text.

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
            f"path must be a path or a binary file object, got {short_repr(path)}: bytes are for tamis.loads."
        )
    name = _name_of(path)
    try:
        data = read_all(path, name)
    except OSError as error:
        raise CheckpointError(f"Cannot read {name} ({error.strerror or error}).") from error
    return _load(from_memory(data, name), name, classes)


def loads(data: bytes | bytearray | memoryview, *, classes: Iterable[type] = ()) -> Any:
    """Return the object that :func:`dumps` turned into bytes; they are checked as :func:`load` checks a file.

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
        If the bytes are truncated, altered, of a newer Tamis, or not ours.
    TypeError
        If `data` is not bytes.

    Examples
    --------
    >>> import tamis
    >>> tamis.loads(tamis.dumps({"rows": 200}))
    {'rows': 200}
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"data must be bytes, got {short_repr(data)}: a file is read by tamis.load.")
    name = f"'<{type(data).__name__}>'"
    return _load(from_memory(data, name), name, classes)


def _load(opened: AbstractContextManager[tuple[ZipFile, int]], name: str, classes: Iterable[type]) -> Any:
    try:
        with opened as (archive, size):
            return decode(archive, size, name, {full_name(cls): cls for cls in classes})
    except OSError as error:
        raise CheckpointError(f"Cannot read {name} ({error.strerror or error}): check the path.") from error
    except (CheckpointError, MemoryError):
        raise
    except (DataError, StateError) as error:  # of an object that was looked at
        raise CheckpointError(f"{name} is no valid file of tamis.save: {error}") from error
    except Exception as error:  # whatever a file made by someone else makes the decoder stumble over
        raise CheckpointError(f"{name} is no valid file of tamis.save: save it again.") from error
