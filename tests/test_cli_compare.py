"""`tamis compare` as a stranger uses it: streams and files, a table beside the baselines, JSON, a page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tamis.cli import main
from tamis.evaluate import ExperimentResult
from tamis.rows import OFS

SEA = "SEA:n_rows=1200,n_drifts=1,n_irrelevant=8"
SELECTORS = ("ofs", "fisher:half_life=500", "none", "oracle")


@pytest.fixture
def call(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 5)).round(3)
    state = np.where(X[:, 3] > 0, "on", "off")
    lines = [",".join([*map(str, row), s]) for row, s in zip(X.tolist(), state, strict=True)]
    (tmp_path / "table.csv").write_text("a,b,c,d,e,state\n" + "\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TAMIS_DATA", str(tmp_path / "none"))

    def call(*arguments):
        code = main(["compare", *map(str, arguments)])
        return (code, *capsys.readouterr())

    return call


@pytest.mark.slow
def test_table_per_stream_beside_the_baselines(call, tmp_path):
    selectors = [word for name in SELECTORS for word in ("--selector", name)]
    code, out, err = call("--stream", SEA, *selectors, "table.csv", "--label", "state", "--seeds", 2, "--out", "kept",
                          "--report", "compare.html", "-q")  # fmt: skip
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "4 methods on 2 streams"
    text = " ".join(out.split())
    order = [" has the best mean rank of ", "The selection pays in "]
    order += ["A selection pays if it exceeds random subsets of the same size", "Mean ranks by accuracy: "]
    assert [text.index(one) for one in order] == sorted(text.index(one) for one in order)
    lines = lines[lines.index("SEA") :]
    assert lines[1].split() == ["method", "accuracy", "kappa-T", "SA", "RSR", "CUCP", "stable", "sec"]
    rows = ["ofs", "fisher", "none", "oracle", "frozen", "random", "every", "majority", "no"]
    assert [line.split()[0] for line in lines[2:11]] == rows
    assert " ±" in lines[2]
    assert lines[12] == "table.csv"
    assert lines[13].split() == ["method", "accuracy", "kappa-T", "AUC", "AP", "R", ".9", "stable", "sec"]
    assert "oracle" not in lines[17]
    assert lines[-2:] == ["The results: kept", "The report: compare.html"]
    result = ExperimentResult.load(tmp_path / "kept")
    assert result.methods == ["ofs", "fisher", "none", "oracle"]
    # As many as are relevant, and of a file 3 at least.
    assert set(result.run("SEA", "ofs").frames["steps"]["n_selected"]) == {2}
    assert set(result.run("table.csv", "ofs").frames["steps"]["n_selected"]) == {3}
    assert "<h1>4 methods on 2 streams</h1>" in (tmp_path / "compare.html").read_text(encoding="utf-8")


def test_where_a_class_is_rare_ranking_comes_first(call, tmp_path):
    rng = np.random.default_rng(0)
    rare = rng.random(900) < 0.05
    X = rng.normal(size=(900, 4)) + 2 * np.outer(rare, [0, 0, 1, 0])
    lines = [
        ",".join([*map(str, row), str(int(s))]) for row, s in zip(X.round(3).tolist(), rare, strict=True)
    ]
    (tmp_path / "rare.csv").write_text("a,b,c,d,fraud\n" + "\n".join(lines) + "\n", encoding="utf-8")
    words = ["--selector", "fisher", "--selector", "none", "--seeds", 1, "--frozen-after", 200]
    code, out, _ = call("rare.csv", "--label", "fraud", *words, "--report", "rare.html", "-q")
    assert code == 0
    lines = out.splitlines()
    first, *rows = lines[lines.index("rare.csv") + 1 :][:7]
    assert first.split()[:5] == ["method", "AP", "AUC", "R", ".9"]
    frozen = next(row for row in rows if row.startswith("frozen"))
    assert 0.5 < float(frozen.split()[2]) < 1.0  # its AUC, below that of the methods
    page = (tmp_path / "rare.html").read_text(encoding="utf-8")
    order = [page.index(f"<caption>{title}") for title in ("Average precision", "AUC, for", "Accuracy<")]
    assert order == sorted(order)
    assert (
        json.loads(call("rare.csv", "--label", "fraud", *words, "--json")[1])["measure"]
        == "average_precision"
    )


def test_json_holds_the_numbers_of_the_api(call, tmp_path):
    arguments = ("--stream", SEA, "--selector", "ofs", "--selector", "none", "--learner", "sgd", "--learner",
                 "perceptron", "--select", 4, "--seeds", 2, "--out", "kept", "--json")  # fmt: skip
    code, out, _ = call(*arguments)
    found = json.loads(out)
    table = ExperimentResult.load(tmp_path / "kept").table("accuracy")
    assert code == 0
    assert found["methods"] == ["ofs + sgd", "ofs + perceptron", "none + sgd", "none + perceptron"]
    assert found["tables"]["accuracy"]["SEA"]["ofs + sgd"] == {
        "mean": table.mean[0, 0],
        "deviation": table.deviation[0, 0],
        "n": 2,
    }
    assert found["ranks"] is None
    assert (found["n_cells"], found["n_done"], found["failed"]) == (8, 8, {})
    assert found["written"] == {"results": "kept"}
    again = json.loads(call(*arguments)[1])  # nothing runs, so the times are the same too
    assert again == found


def test_failed_cells_are_told_and_the_others_shown(call, monkeypatch):
    def fail(self, X, y, classes=None, sample_weight=None):
        raise RuntimeError("no more room")

    monkeypatch.setattr(OFS, "partial_fit", fail)
    code, out, err = call("--stream", SEA, "--selector", "ofs", "--selector", "none", "--seeds", 1, "-q")
    assert code == 1
    assert err == "tamis: failed: SEA, ofs, logistic, seed 0: RuntimeError: no more room\n"
    lines = out.splitlines()
    at = lines.index("SEA")
    assert [line.split()[0] for line in lines[at + 2 : at + 4]] == ["none", "majority"]
    assert "Not saved: --out FOLDER saves every run" in out
    code, out, err = call("--stream", SEA, "--selector", "ofs", "--seeds", 1, "-q", "--report", "none.html")
    assert (code, out, len(err.splitlines())) == (1, "", 1)


def test_two_of_one_name_are_told_apart(call):
    found = json.loads(
        call(
            "--stream",
            SEA,
            "--selector",
            "ofs",
            "--selector",
            "ofs:learning_rate=0.5",
            "--seeds",
            1,
            "--json",
        )[1]
    )
    assert found["methods"] == ["ofs", "ofs:learning_rate=0.5"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stream", "SAE"], "No stream, data set or file is named 'SAE'; did you mean 'SEA'"),
        (["--stream", SEA, "--selector", "fries"], "did you mean 'fires'"),
        (["--stream", SEA, "--selector", "ofs:rate=1"], "OFS has no parameter 'rate'; it has: "),
        (["--stream", SEA, "--learner", "sdg"], "did you mean 'sgd'"),
        (["--stream", SEA, "--select", "much"], "--select much is not a number"),
        (["--stream", SEA, "--seeds", "0"], "--seeds must be 1 or more, got 0."),
        (["--stream", SEA, "--jobs", "0"], "--jobs must be 1 or more, got 0."),
        (["--stream", SEA, "--report", "there/a.html"], "the folder 'there' does not exist"),
        (["--stream", SEA, "--out", "."], "--out . contains other files: choose a new folder."),
        (["nothing.csv", "--label", "state"], "There is no file 'nothing.csv'"),
        (["table.csv", "--label", "stat"], "no column 'stat'; did you mean 'state'?"),
        (["--stream", "electricity", "--selector", "oracle"], "'oracle' needs a stream with known"),
    ],
)
def test_mistakes_take_one_line(call, arguments, message):
    code, out, err = call(*arguments)
    assert code in (1, 2)
    assert message in err
    assert out == ""
    assert len(err.splitlines()) == 1


def test_several_labels_are_streams_with_a_mean(call, tmp_path):
    text = (tmp_path / "table.csv").read_text(encoding="utf-8").splitlines()
    rows = [f"{line},{int(float(line.split(',')[0]) > 0)},{i / 7:.3f}" for i, line in enumerate(text[1:])]
    (tmp_path / "two.csv").write_text("\n".join([f"{text[0]},wet,price", *rows]), encoding="utf-8")
    words = [
        "two.csv",
        "--label",
        "state",
        "--label",
        "wet",
        "--drop",
        "price",
        "--seeds",
        1,
        "--selector",
        "fisher",
    ]
    code, out, err = call(*words, "--selector", "mi", "-q", "--json", "--report", "page.html")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["streams"] == ["two.csv state", "two.csv wet"]
    accuracy = document["tables"]["accuracy"]
    for method in ("fisher", "mi"):
        both = [accuracy[stream][method]["mean"] for stream in document["streams"]]
        assert document["mean"]["accuracy"][method] == pytest.approx(np.mean(both))
        assert both[0] > 0.8
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "mean rank" in page
    assert "Mean over 2 labels (accuracy): fisher 0." in call(*words, "-q")[1]
    assert call("two.csv", "--label", "price")[2] == (
        "tamis: --label price contains numbers, but compare evaluates classifiers: for numbers, use recommend or run.\n"
    )
    assert call("two.csv", "--label", "wet", "--label", "price")[0] == 2
