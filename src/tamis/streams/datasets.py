"""Named real data sets: one is bundled with Tamis, the others are read from a data folder or fetched from OpenML.

A data folder contains one folder per set with `card.json` (description, source, licence, SHA-256 of the data) and
`data.npz` (X, or the arrays of a CSR matrix; y as codes; class_names; feature_names if known).
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis._interrupts import raise_asynchronous
from tamis._validation import Array, Rows
from tamis.errors import StreamError, UnknownNameError
from tamis.streams.openml import OPENML, download
from tamis.streams.stream import ArrayStream

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
            "name": name,
            "where": where,
            "title": card.get("title"),
            "rows": card.get("rows"),
            "features": card.get("features"),
            "licence": card.get("licence"),
            "order": card.get("row_order"),
        }
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
    try:
        blob = path.read_bytes()
    except OSError as error:
        raise_asynchronous(error)
        raise StreamError(
            f"The data {str(path)!r} cannot be read ({error.strerror}): restore its folder."
        ) from error
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
        import difflib

        known = [row["name"] for row in list_datasets(home)]
        near = difflib.get_close_matches(name, known, n=2)
        hint = (
            f"; did you mean {' or '.join(map(repr, near))}?"
            if near
            else "; load_stream opens generated ones."
        )
        raise UnknownNameError(
            f"No data set is named {name!r}{hint} Known: {', '.join(known)} (folder {str(home)!r})."
        )
    if not allowed:
        raise StreamError(
            f"The data set {name!r} is not in {str(home)!r}: allow the download, or put it there."
        )
    download(name, home)
