"""Named data sets: bundled, in a folder, from OpenML."""

from __future__ import annotations

import hashlib
import json
import types

import numpy as np
import pytest
import scipy.sparse as sp

from tamis.errors import StreamError, UnknownNameError
from tamis.streams import datasets, list_datasets, load_dataset
from tamis.streams.datasets import OPENML, contents_digest


def test_the_bundled_stream_shows_a_feature_that_comes_alive(tmp_path):
    stream = load_dataset("electricity", data_home=tmp_path)
    X, _ = stream.take(stream.n_rows)
    price = X[:, stream.feature_names.index("vicprice")]
    assert stream.n_rows == 45312
    assert np.ptp(price[:17_000]) == 0 < np.ptp(price[20_000:])
    assert "OpenML" in stream.card["attribution"]


def put(folder, name="tiny", damage=False):
    (folder / name).mkdir()
    np.savez(folder / name / "data.npz", X=np.eye(3, dtype=np.uint8), y=[0, 1, 1], class_names=["no", "yes"])
    digest = hashlib.sha256((folder / name / "data.npz").read_bytes()).hexdigest()
    card = {
        "title": "Tiny",
        "rows": 3,
        "features": 3,
        "licence": "CC0",
        "sha256": "0" * 64 if damage else digest,
    }
    (folder / name / "card.json").write_text(json.dumps(card))


def test_a_set_in_the_data_folder(tmp_path, monkeypatch):
    put(tmp_path)
    monkeypatch.setenv("TAMIS_DATA", str(tmp_path))
    X, y = load_dataset("tiny").take(3)
    assert X.tolist() == np.eye(3).tolist()
    assert y.tolist() == ["no", "yes", "yes"]
    (row,) = (row for row in list_datasets() if row["name"] == "tiny")
    assert (row["where"], row["rows"], row["licence"]) == ("folder", 3, "CC0")


def test_names_forgive_and_baselines_tell_of_sorted_rows(tmp_path):
    put(tmp_path, "spam_corpus")
    stream = load_dataset("SPAM", data_home=tmp_path)
    assert stream.describe()["name"] == "spam_corpus"
    assert stream.baselines() == {"majority": 2 / 3, "no_change": 0.5}
    with pytest.raises(UnknownNameError, match="load_stream opens generated ones"):
        load_dataset("STAGGER", data_home=tmp_path)


def test_shuffling_is_by_seed(tmp_path):
    order = [load_dataset("electricity", shuffle=seed).take(50)[1].tolist() for seed in (1, 1, 2)]
    assert order[0] == order[1] != order[2]


def test_a_damaged_set_is_refused(tmp_path):
    put(tmp_path, damage=True)
    with pytest.raises(StreamError, match="does not match the checksum"):
        load_dataset("tiny", data_home=tmp_path)
    (tmp_path / "tiny" / "card.json").write_text("{")
    with pytest.raises(StreamError, match="cannot be read"):
        load_dataset("tiny", data_home=tmp_path)


def test_unknown_names_suggest_the_nearest(tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean 'spambase'"):
        load_dataset("spambas", data_home=tmp_path)
    with pytest.raises(UnknownNameError, match=r"No data set is named '\.\./tiny'"):
        load_dataset("../tiny", data_home=tmp_path)


ROWS = np.arange(6.0).reshape(3, 2)


def test_a_fetched_set_is_kept(tmp_path, monkeypatch):
    calls = []

    def fetch_openml(*, data_id, **_):
        calls.append(data_id)
        return types.SimpleNamespace(
            data=ROWS,
            target=np.array(["1", "0", "1"]),
            feature_names=["f", "g"],
            details={"licence": "Public"},
        )

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    monkeypatch.setitem(OPENML, "spambase", (44, contents_digest(ROWS, ["yes", "no", "yes"])))
    for _ in range(2):
        stream = load_dataset("spambase", data_home=tmp_path)
        assert (stream.feature_names, stream.take(3)[1].tolist()) == (["f", "g"], ["1", "0", "1"])
    assert calls == [44]
    assert [path.name for path in tmp_path.iterdir()] == ["spambase"]
    card = json.loads((tmp_path / "spambase" / "card.json").read_text())
    assert card["contents_sha256"] == OPENML["spambase"][1]


@pytest.mark.parametrize("change", ["value", "label", "row", "column"])
def test_a_fetched_set_that_holds_something_else_is_refused(tmp_path, monkeypatch, change):
    data, target = ROWS.copy(), np.array(["1", "0", "1"])
    monkeypatch.setitem(OPENML, "spambase", (44, contents_digest(data, target)))
    data[0, 0] += change == "value"
    target[0] = "0" if change == "label" else "1"
    data, target = (data[:2], target[:2]) if change == "row" else (data, target)
    data = data[:, :1] if change == "column" else data
    bunch = types.SimpleNamespace(data=data, target=target, feature_names=["f", "g"])
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: bunch)
    with pytest.raises(StreamError, match=r"'spambase' from OpenML does not match its checksum") as refused:
        load_dataset("spambase", data_home=tmp_path)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_what_the_sets_are_known_to_hold_is_what_other_mirrors_have(load_shared):
    for name in ("arcene", "ionosphere", "madelon", "spambase"):
        X, y, _ = load_shared(name)
        assert contents_digest(X[::-1], -y[::-1]) == OPENML[name][1]


def test_the_digest_tells_every_change_and_no_other(rng):
    X, y = rng.normal(size=(40, 3)).astype(np.float32), rng.integers(0, 3, 40)
    X[3, 1], X[5, 0] = np.nan, 0.0
    digest, order = contents_digest(X, y), rng.permutation(40)
    assert contents_digest(sp.csr_matrix(X[order]), np.array(["b", "c", "a"])[y[order]]) == digest
    same = np.where(X == 0.0, -0.0, X)
    assert contents_digest(same.astype(np.float64), y) == digest
    for i, j in rng.integers(0, [40, 3], (20, 2)):
        other = X.copy()
        other[i, j] = np.nextafter(other[i, j], np.inf) if np.isfinite(other[i, j]) else 0.0
        assert contents_digest(other, y) != digest
    assert contents_digest(X.T.copy().T, y) == digest  # in any order in memory


def test_a_fetched_sparse_set_stays_sparse(tmp_path, monkeypatch):
    rows = sp.random(6, 4, density=0.5, format="csc", random_state=0)
    bunch = types.SimpleNamespace(data=rows, target=np.array(list("abcabc")), feature_names=list("wxyz"))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: bunch)
    with pytest.warns(
        UserWarning, match=r"No checksum of 'gisette' is stored, .* SHA-256 of its rows is [0-9a-f]{64}\."
    ):
        load_dataset("gisette", data_home=tmp_path)
    for _ in range(2):
        X, y = load_dataset("gisette", data_home=tmp_path).take(6)
        assert sp.issparse(X)
        np.testing.assert_array_equal(X.toarray(), rows.toarray())
        assert y.tolist() == list("abcabc")


def test_a_folder_in_the_way_of_a_fetched_set_is_named(tmp_path, monkeypatch):
    bunch = types.SimpleNamespace(data=np.eye(2), target=np.array(["a", "b"]), feature_names=["f", "g"])
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: bunch)
    monkeypatch.setitem(OPENML, "har", (1478, contents_digest(bunch.data, bunch.target)))
    (tmp_path / "har").mkdir()
    (tmp_path / "har" / "notes.txt").write_text("mine")
    with pytest.raises(StreamError, match="'har' cannot be stored in"):
        load_dataset("har", data_home=tmp_path)
    assert [path.name for path in tmp_path.rglob("*.*")] == ["notes.txt"]


def test_data_without_a_checksum_that_is_no_archive_is_refused(tmp_path):
    put(tmp_path)
    card = tmp_path / "tiny" / "card.json"
    card.write_text(json.dumps({"title": "Tiny"}))
    (tmp_path / "tiny" / "data.npz").write_bytes(b"PK but no archive")
    with pytest.raises(StreamError, match="cannot be read"):
        load_dataset("tiny", data_home=tmp_path)


def test_without_network_the_folder_is_named(tmp_path, monkeypatch):
    def offline(**_):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(StreamError, match="could not be fetched from OpenML"):
        load_dataset("spambase", data_home=tmp_path)
    with pytest.raises(StreamError, match="is not in"):
        load_dataset("spambase", data_home=tmp_path, fetch=False)
    assert list(tmp_path.iterdir()) == []


def test_every_development_set_loads(shared):
    names = {path.parent.name for path in (shared / "data").glob("*/card.json")}
    assert len(names) >= 30
    for name in sorted(names - {"news20_full", "imdb", "dorothea", "mnist", "dota2"}):
        stream = load_dataset(name, data_home=shared / "data")
        X, y = stream.take(10)
        assert X.shape == (10, stream.card["features"])
        assert len(y) == 10
        assert stream.n_rows == stream.card["rows"]
        assert sp.issparse(X) == (stream.card["kind"] != "dense")


def test_the_data_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("TAMIS_DATA", raising=False)
    assert datasets.data_folder().name == "tamis_data"
    assert datasets.data_folder(tmp_path) == tmp_path
