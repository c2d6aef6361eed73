"""`tamis generate`: the rows of a stream as a file, the truth beside it, and nothing half-written."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest

from tamis.cli import main
from tamis.streams import list_streams, load_stream, open_file


@pytest.fixture
def call(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main(["generate", *map(str, arguments)])
        return (code, *capsys.readouterr())

    return call


def read(path, n):
    X, y = open_file(path, label="class").take(n)
    return X, np.asarray(y).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet", "arff"])
@pytest.mark.parametrize("name", ["SEA", "AGR"])
def test_rows_come_back_bit_for_bit(call, tmp_path, name, suffix):
    code, out, err = call(name, "--rows", 7000, "--seed", 3, "--out", f"made.{suffix}")
    stream = load_stream(name, seed=3, n_rows=7000)
    X, y = stream.take(7000)
    found, labels = read(tmp_path / f"made.{suffix}", 8000)
    assert (code, err) == (0, "")
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(labels, y)
    assert f"The rows: made.{suffix}" in out
    assert open_file(tmp_path / f"made.{suffix}", label="class").feature_names == stream.feature_names
    assert {path.name for path in tmp_path.iterdir()} == {f"made.{suffix}", "made.truth.json"}


@pytest.mark.parametrize("row", list_streams(), ids=lambda row: row["name"])
def test_truth_is_that_of_every_row(call, tmp_path, row):
    assert call(f"{row['name']}:width=0", "--rows", 400, "--out", "made.csv")[0] == 0
    truth = json.loads((tmp_path / "made.truth.json").read_text(encoding="utf-8"))
    stream = load_stream(row["name"], n_rows=400, width=0)
    relevant = np.zeros((400, stream.n_features), dtype=bool)
    for concept in truth["concepts"]:
        columns = [truth["features"].index(name) for name in concept["relevant"]]
        relevant[concept["first_row"] : concept["last_row"] + 1, columns] = True
    np.testing.assert_array_equal(relevant, stream.relevant_rows(0, 400))
    assert [drift["row"] for drift in truth["drifts"]] == list(stream.drifts)
    assert truth["stream"] == stream.describe()
    assert (truth["n_rows"], truth["label"]) == (400, "class")


def test_standard_output(tmp_path, capfdbinary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["generate", "SEA:n_irrelevant=1,n_drifts=0", "--rows", "3", "--out", "-"]) == 0
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert len(lines) == 4
    assert list(tmp_path.iterdir()) == []


def test_json(call):
    code, out, _ = call("SEA", "--rows", 50, "--out", "made.csv", "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["data"], document["truth"], len(document["concepts"])) == (
        "made.csv",
        "made.truth.json",
        10,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["SAE", "--out", "a.csv"], "No stream, data set or file is named 'SAE'; did you mean 'SEA'"),
        (
            ["electricity", "--out", "a.csv"],
            "electricity is a data set, and cannot be generated. Streams: ",
        ),
        (["SEA:rows=5", "--out", "a.csv"], "'SEA' has no parameter 'rows'; it has: seed, "),
        (["SEA:rows", "--out", "a.csv"], "named 'SEA:rows'"),
        (["SEA:width=1,=", "--out", "a.csv"], "write parameters as SEA:NAME=VALUE,NAME=VALUE."),
        (
            ["SEA", "--out", "a.xlsx"],
            "--out a.xlsx has an unsupported format: end the name in .csv, .jsonl, .parquet or .arff.",
        ),
        (["SEA", "--out", "there/a.csv"], "the folder"),
        (["SEA", "--rows", "0", "--out", "a.csv"], "--rows must be 1 or more, got 0."),
        (["SEA"], "Missing option '--out'"),
    ],
)
def test_mistakes_take_one_line_and_leave_nothing(call, tmp_path, arguments, message):
    code, out, err = call(*arguments)
    assert code in (1, 2)
    assert message in err
    assert out == ""
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_failure_on_the_way_leaves_the_old_file(call, tmp_path, monkeypatch):
    from tamis.streams.synthetic import SyntheticStream

    (tmp_path / "made.csv").write_text("old", encoding="utf-8")
    whole = SyntheticStream.batches

    def broken(self, size=100, *, start=0):
        yield from list(whole(self, size, start=start))[:1]
        raise OSError("no space")

    monkeypatch.setattr(SyntheticStream, "batches", broken)
    code, _, err = call("SEA", "--rows", 12000, "--out", "made.csv", "--force")
    assert code == 1
    assert "no space" in err
    assert [path.name for path in tmp_path.iterdir()] == ["made.csv"]
    assert (tmp_path / "made.csv").read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arff"])
def test_a_full_disk_is_named_with_its_cause(call, tmp_path, suffix):
    resource = pytest.importorskip("resource")
    assert (
        call("SEA", "--rows", 10, "--out", f"made.{suffix}")[0] == 0
    )  # what is compiled on first use is there
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        code, out, err = call("SEA", "--rows", 20_000, "--out", f"made.{suffix}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (code, out) == (1, "")
    assert err == (
        f"tamis: 'made.{suffix}' cannot be written (File too large): free some space there, or choose another path.\n"
    )
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_disk_without_space_is_not_mistaken_for_standard_output(call, tmp_path, monkeypatch):
    def full(made, file, advance):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tamis.cli.generate._write_csv", full)
    code, _, err = call("SEA", "--rows", 10, "--out", "made.csv")
    assert (code, list(tmp_path.iterdir())) == (1, [])
    assert err == (
        "tamis: 'made.csv' cannot be written (No space left on device): free some space there, or choose another"
        " path.\n"
    )


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "arff"])
@pytest.mark.parametrize("kind", ["trapezoidal", "capricious", "evolvable", "shuffled", "open"])
def test_varying_features_are_missing_where_they_do_not_exist(call, tmp_path, kind, suffix):
    how = ["--share", 0.7] if kind in ("capricious", "open") else []
    code, out, _ = call(
        "AGR", "--rows", 300, "--seed", 3, "--varying", kind, "--periods", 4, *how, "--out", f"made.{suffix}"
    )
    share = {"share": 0.7} if how else {}
    stream = load_stream("AGR", seed=3, n_rows=300).with_varying_features(kind, seed=3, n_periods=4, **share)
    assert (code, f"AGR ({kind}): 300 rows" in out) == (0, True)
    found, labels = read(tmp_path / f"made.{suffix}", 400)
    X, y = stream.take(300)
    names = open_file(tmp_path / f"made.{suffix}", label="class").feature_names
    for j, name in enumerate(stream.feature_names):
        if name not in names:  # no row has its key
            assert np.isnan(X[:, j]).all()
        elif suffix != "arff" or j not in stream.categorical:  # where a missing value is a category
            np.testing.assert_array_equal(found[:, names.index(name)], X[:, j])
    np.testing.assert_array_equal(labels, y)
    truth = json.loads((tmp_path / "made.truth.json").read_text(encoding="utf-8"))
    assert truth["stream"] == stream.describe()
    if kind == "capricious":
        assert "existing" not in truth
        return
    exists = np.zeros((300, stream.n_features), dtype=bool)
    for span in truth["existing"]:
        columns = [stream.feature_names.index(name) for name in span["features"]]
        exists[span["first_row"] : span["last_row"] + 1, columns] = True
    np.testing.assert_array_equal(exists, stream.present_rows(0, 300))
    if suffix == "jsonl":
        first = json.loads((tmp_path / "made.jsonl").read_text().splitlines()[0])
        assert list(first) == [*truth["existing"][0]["features"], "class"]


def test_what_varying_refuses(call, tmp_path):
    for words, message in (
        (["--varying", "other"], "--varying must be trapezoidal, capricious"),
        (["--share", "0.5"], "--share and --periods are for --varying"),
        (["--varying", "open", "--share", "2"], "--share"),
    ):  # fmt: skip
        code, _, err = call("SEA", "--rows", 50, *words, "--out", "made.csv")
        assert (code, message in err) == (2, True)
    assert list(tmp_path.iterdir()) == []
