"""Save and load models, checkpoints and results without pickle: one file, and nothing in it is ever executed.

The file is a zip archive (stored, so it cannot be a zip bomb) of `manifest.json` and one `.npy` file per array. Its
comment, the last bytes of the file, is the SHA-256 of everything before it, so any altered byte is noticed.

The manifest holds a table of nodes. A node is a container, an array, a random number generator or an object, and
refers only to nodes before it, so whatever the file says, it is read in one loop, and the work that it asks for is
counted against the file's size. An object that is met twice is stored once, and is one object again after loading.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

import tamis
from tamis._guard import Guarded, held
from tamis.errors import CheckpointError, DataError, StateError
from tamis.persistence.archive import open_verified, replace_file, write
from tamis.persistence.classes import full_name, is_instance
from tamis.persistence.decoder import SCHEMA, decode
from tamis.persistence.encoder import Encoder

__all__ = ["load", "replace_file", "save"]


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
    with held(_guarded_in(obj)):
        return _save(obj, path)


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
    encoder = Encoder()
    root = encoder.encode(obj, type(obj).__name__ if is_instance(obj) else "")
    content = {
        "format": "tamis",
        "schema": SCHEMA,
        "versions": {"tamis": tamis.__version__, "numpy": np.__version__, "sklearn": sklearn.__version__},
        "nodes": encoder.nodes,
        "root": root,
    }
    manifest = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
    try:
        replace_file(Path(os.path.realpath(path)), lambda file: write(file, manifest, encoder.arrays))
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

    Notes
    -----
    Whatever the file says, loading takes memory and time in proportion to its size, beside what it takes to import the
    classes that it holds.

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
        with open_verified(path) as (archive, size):
            return decode(archive, size, name, {full_name(cls): cls for cls in classes})
    except OSError as error:
        raise CheckpointError(f"Cannot read {name} ({error.strerror or error}): check the path.") from error
    except (CheckpointError, MemoryError):
        raise
    except (DataError, StateError) as error:  # of an object that was looked at
        raise CheckpointError(f"{name} is no valid file of tamis.save: {error}") from error
    except Exception as error:  # whatever a file made by someone else makes the decoder stumble over
        raise CheckpointError(f"{name} is no valid file of tamis.save: save it again.") from error
