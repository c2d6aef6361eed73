"""Data sets from OpenML: downloaded, compared with their known contents, and kept in the data folder."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._interrupts import raise_asynchronous
from tamis._validation import Array, Rows
from tamis.errors import StreamError

# name -> number of the data set on OpenML, and the SHA-256 of its contents, if known (contents_digest)
OPENML: dict[str, tuple[int, str | None]] = {
    "arcene": (1458, "b4506c094d395693515c1437a3d38630bd1af61d750cd71fb5445dcc5659a008"),
    "gisette": (41026, None),
    "har": (1478, None),
    "internet_ads": (40978, None),
    "ionosphere": (59, "2938bdd5c59078d721a048002da71dc6d631233e40c1a9ed3d8a294d8f20a5c3"),
    "madelon": (1485, "558bd9d40991ec8065481d8771cd0efcc1729d1c354ebc8283970c6fa0bf1edd"),
    "mnist": (554, "036f63690dc0251c42d56900f32978003a77d76ff0304ca3acb9aa625231f93a"),
    "nomao": (1486, None),
    "spambase": (44, "f21f688482571803afecdb7c96700d727776c75afe787e2da1330e5989d16fb6"),
    # Mirrors differ in the digits of six values.
    "wdbc": (1510, None),
}


def contents_digest(X: Rows, y: Array) -> str:
    """Return the SHA-256 of the rows and of the partition by label, as hexadecimal digits.

    It does not depend on the order of the rows or the names of the classes, in which mirrors of a data set differ.
    Values are converted to float32.

    Examples
    --------
    >>> rows = np.array([[0.0, 1.5], [2.0, 0.0], [2.0, 1.0]])
    >>> contents_digest(rows, ["a", "b", "b"]) == contents_digest(rows[::-1], [0, 0, 1])
    True
    >>> contents_digest(rows, ["a", "b", "b"]) == contents_digest(rows, ["a", "a", "b"])
    False
    """
    _, codes = np.unique(y, return_inverse=True)
    classes: list[list[bytes]] = [[] for _ in range(int(codes.max(initial=-1)) + 1)]
    for row, code in enumerate(codes.tolist()):
        values = X[[row]].toarray()[0] if sp.issparse(X) else X[row]
        values = np.nan_to_num(np.asarray(values, "<f4"), nan=np.inf) + np.float32(0.0)  # one NaN, one zero
        classes[code].append(hashlib.sha256(values.tobytes()).digest())
    own = sorted(hashlib.sha256(b"".join(sorted(rows))).digest() for rows in classes)
    return hashlib.sha256(f"{X.shape}".encode() + b"".join(own)).hexdigest()


def download(name: str, home: Path) -> None:
    """Download a set of `OPENML` into the data folder, atomically.

    Raises
    ------
    StreamError
        If it cannot be downloaded or stored, or its contents are not the expected ones.
    """
    from sklearn.datasets import fetch_openml

    number, known = OPENML[name]
    try:
        bunch = fetch_openml(data_id=number, as_frame=False, parser="liac-arff")
    except Exception as error:  # no network, a proxy's page, or OpenML unavailable
        raise_asynchronous(error)
        raise StreamError(
            f"The data set {name!r} could not be fetched from OpenML ({type(error).__name__}): check the network, or"
            f" put its folder into {str(home)!r}."
        ) from error
    X: Rows = bunch.data.tocsr() if sp.issparse(bunch.data) else np.asarray(bunch.data, dtype=np.float32)
    digest = contents_digest(X, bunch.target)
    if known is None:
        warnings.warn(
            f"No checksum of {name!r} is stored, so the download cannot be verified: the"
            f" SHA-256 of its rows is {digest}.",
            stacklevel=4,
        )
    elif digest != known:
        raise StreamError(
            f"The data set {name!r} from OpenML does not match its checksum (SHA-256 {digest[:12]}..."
            f" instead of {known[:12]}...) and was discarded: fetch it again, or put its folder into {str(home)!r}."
        )
    _store(name, bunch, X, {"source": f"OpenML {number}", "contents_sha256": digest}, home)


def _store(name: str, bunch: Any, X: Rows, known: dict[str, str], home: Path) -> None:
    parts = (
        {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        if sp.issparse(X)
        else {"X": X}
    )
    classes, codes = np.unique(bunch.target, return_inverse=True)
    home.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=home))
    try:
        arrays: dict[str, Any] = {
            **parts,
            "y": codes,
            "class_names": classes.astype(str),
            "feature_names": np.array(bunch.feature_names),
        }
        np.savez_compressed(new / "data.npz", allow_pickle=False, **arrays)
        details = getattr(bunch, "details", None) or {}
        card = {
            "name": name,
            "title": details.get("name", name),
            "rows": X.shape[0],
            "features": X.shape[1],
            "licence": details.get("licence"),
            "row_order": "as in the source",
            **known,
            "sha256": hashlib.sha256((new / "data.npz").read_bytes()).hexdigest(),
        }
        (new / "card.json").write_text(json.dumps(card, indent=1), encoding="utf-8")
        os.replace(new, home / name)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise_asynchronous(error)
        if not (home / name / "card.json").is_file():  # otherwise another process has stored it meanwhile
            raise StreamError(
                f"The data set {name!r} cannot be stored in {str(home)!r} ({error.strerror}): free some space there, or"
                " choose another data_home."
            ) from error
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
