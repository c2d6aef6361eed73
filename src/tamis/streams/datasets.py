"""Named real data sets: one is bundled with Tamis, the others are read from a data folder or fetched from OpenML.

A data folder contains one folder per set with `card.json` (description, source, licence, SHA-256 of the data) and
`data.npz` (X, or the arrays of a CSR matrix; y as codes; class_names; feature_names if known).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._interrupts import os_errors_as, raise_asynchronous
from tamis._validation import Array, Rows
from tamis.errors import StreamError, UnknownNameError, did_you_mean
from tamis.streams.stream import ArrayStream

# -- downloads ---------------------------------------------------------------------------------------------


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
        arrays: dict[str, Any] = {**parts, "y": codes, "class_names": classes.astype(str)}
        arrays["feature_names"] = np.array(bunch.feature_names)
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


_BUNDLED = Path(__file__).parent / "data"
_ALIASES = {"iads": "internet_ads", "spam": "spam_corpus"}  # names in the literature on feature drift


class DatasetStream(ArrayStream):
    """The rows of a named data set, with its card.

    Attributes
    ----------
    card : dict
        Title, source, licence, order of the rows and more.
    """

    def __init__(
        self, X: Rows, y: Array, names: list[str] | None, card: dict[str, Any], options: dict[str, Any]
    ) -> None:
        super().__init__(X, y, feature_names=names)
        self.card = card
        self._options = options

    def baselines(self) -> dict[str, float]:
        """Return the accuracy of the majority-class and no-change baselines, in this order of the rows.

        If rows are sorted by class, the no-change baseline is nearly always correct.

        Returns
        -------
        dict
            ``majority``: proportion of the most frequent class; ``no_change``: proportion of rows with the same label
            as the previous row.

        Examples
        --------
        >>> {name: round(value, 3) for name, value in load_dataset("electricity").baselines().items()}
        {'majority': 0.575, 'no_change': 0.853}
        """
        _, counts = np.unique(self._y, return_counts=True)
        same = int(np.count_nonzero(self._y[1:] == self._y[:-1]))
        return {"majority": float(counts.max() / len(self._y)), "no_change": same / max(len(self._y) - 1, 1)}

    def _title(self) -> str:
        return str(self._options["name"])

    def describe(self) -> dict[str, Any]:
        """Return the name of the set and the options with which it was read."""
        return {**super().describe(), "kind": "dataset", **self._options}


def data_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of data sets: `data_home`, else the environment's TAMIS_DATA, else ~/tamis_data."""
    return Path(data_home or os.environ.get("TAMIS_DATA") or Path.home() / "tamis_data").expanduser()


def load_dataset(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    shuffle: int | None = None,
    fetch: bool = True,
) -> DatasetStream:
    """Return a named data set as a stream.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`, in upper or lower case; ``"electricity"`` is bundled with Tamis.
    data_home : path-like, optional
        Folder of data sets; by default the environment variable ``TAMIS_DATA``, else ``~/tamis_data``.
    shuffle : int, optional
        Seed for shuffling the rows; by default, they are in the order of the source.
    fetch : bool, default=True
        Whether a set that is not in the folder may be downloaded from OpenML into it. The download is compared with the
        known SHA-256 of the rows; if none is known, a warning is issued.

    Returns
    -------
    DatasetStream
        With the original labels, and a description of the set in ``card``.

    Raises
    ------
    UnknownNameError
        If the name is unknown; the message suggests the nearest names.
    StreamError
        If the set cannot be downloaded, has unexpected contents, or its file is damaged.

    Examples
    --------
    >>> stream = load_dataset("electricity")
    >>> stream.n_rows, stream.feature_names[3:6], stream.classes.tolist()
    (45312, ['nswprice', 'nswdemand', 'vicprice'], ['DOWN', 'UP'])
    """
    home = data_folder(data_home)
    if name and not (home / name / "card.json").is_file():
        name = _ALIASES.get(name.lower(), name.lower())
    if (_BUNDLED / f"{name}.npz").is_file():
        card_path, data_path = _BUNDLED / f"{name}.json", _BUNDLED / f"{name}.npz"
    else:
        if not name or Path(name).name != name or not (home / name / "card.json").is_file():
            _fetch(name, home, fetch)
        card_path, data_path = home / name / "card.json", home / name / "data.npz"
    card = _read_card(card_path)
    X, y, names = _read_arrays(data_path, card)
    if shuffle is not None:
        order = np.random.default_rng(shuffle).permutation(X.shape[0])
        X, y = X[order], y[order]
    return DatasetStream(X, y, names, card, {"name": name, "shuffle": shuffle})


def list_datasets(data_home: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Return a description of every data set that is available locally or on OpenML, sorted by name.

    Returns
    -------
    list of dict
        ``name``, ``title``, ``rows``, ``features``, ``licence``, ``order`` and ``where`` (``"bundled"``, ``"folder"``
        or ``"OpenML"``); unknown values are None.

    Examples
    --------
    >>> [row["name"] for row in list_datasets() if row["where"] == "bundled"]
    ['electricity']
    """
    cards = [("bundled", path.stem, path) for path in _BUNDLED.glob("*.json")]
    home = data_folder(data_home)
    if home.is_dir():
        cards += [("folder", path.parent.name, path) for path in home.glob("*/card.json")]
    rows: dict[str, dict[str, Any]] = {name: {"name": name, "where": "OpenML"} for name in OPENML}
    for where, name, path in reversed(cards):
        card = _read_card(path)
        rows[name] = {
            "name": name, "where": where, "title": card.get("title"), "rows": card.get("rows"),
            "features": card.get("features"), "licence": card.get("licence"), "order": card.get("row_order"),
        }  # fmt: skip
    empty = dict.fromkeys(("title", "rows", "features", "licence", "order"))
    return [{**empty, **rows[name]} for name in sorted(rows)]


def _read_card(path: Path) -> dict[str, Any]:
    try:
        card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise_asynchronous(error)
        raise StreamError(
            f"The card {str(path)!r} cannot be read ({error}): restore or remove its folder."
        ) from error
    return card


def _read_arrays(path: Path, card: dict[str, Any]) -> tuple[Rows, Array, list[str] | None]:
    with os_errors_as(StreamError, f"The data {str(path)!r} cannot be read", "restore its folder"):
        blob = path.read_bytes()
    if card.get("sha256") not in (None, hashlib.sha256(blob).hexdigest()):
        raise StreamError(f"The data {str(path)!r} does not match the checksum on its card: fetch it again.")
    try:
        return _unpack(path)
    except (KeyError, ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise_asynchronous(error)
        raise StreamError(f"The data {str(path)!r} cannot be read ({error}): restore its folder.") from error


def _unpack(path: Path) -> tuple[Rows, Array, list[str] | None]:
    with np.load(path, allow_pickle=False) as arrays:
        if "X" in arrays:
            X = arrays["X"]
            X = X if X.dtype.char in "df" else X.astype(np.float32 if X.dtype.itemsize <= 2 else np.float64)
        else:
            parts = (arrays["data"].astype(np.float64), arrays["indices"], arrays["indptr"])
            X = sp.csr_matrix(parts, shape=tuple(arrays["shape"]))
        y = arrays["class_names"][arrays["y"]] if "class_names" in arrays else arrays["y"]
        names = arrays["feature_names"].tolist() if "feature_names" in arrays else None
    return X, y, names


def _fetch(name: str, home: Path, allowed: bool) -> None:
    """Download a set from OpenML into the folder, atomically."""
    if name not in OPENML:
        known = [row["name"] for row in list_datasets(home)]
        hint = did_you_mean(name, known, "; load_stream opens generated ones.", n=2)
        raise UnknownNameError(
            f"No data set is named {name!r}{hint} Known: {', '.join(known)} (folder {str(home)!r})."
        )
    if not allowed:
        raise StreamError(
            f"The data set {name!r} is not in {str(home)!r}: allow the download, or put it there."
        )
    download(name, home)
