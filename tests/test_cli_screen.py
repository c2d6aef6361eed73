"""`tamis screen` as a stranger uses it: one pass over any file, a table, CSV, JSON, a picture; mistakes in one line."""

from __future__ import annotations

import copy
import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import tamis
from tamis.catalog import SCORE_TITLES
from tamis.cli import main
from tamis.rows.screening import Screening
from tamis.streams import ArrayStream, open_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The state shows in the mean of `pressure`, the spread of `heat` and in `colour`; `light` has holes."""
    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, 1500)
    X = rng.normal(size=(1500, 3)).round(3)
    X[:, 0] *= 1 + state
    X[:, 2] += 2 * state
    colour = np.where(rng.random(1500) < 0.2, "grey", np.where(state == 1, "red", "blue"))
    folder = tmp_path_factory.mktemp("screen")
    lines = ["heat,light,pressure,colour,empty,state"]
    for i, (heat, light, pressure) in enumerate(X.tolist()):
        kept = "" if i % 3 == 0 else light
        lines.append(f"{heat},{kept},{pressure},{colour[i]},,{('off', 'on')[state[i]]}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = rng.random((2500, 300)).round(3) * (rng.random((2500, 300)) < 0.05)
    words[np.arange(300) > 50 + np.arange(2500)[:, None] // 8] = 0.0  # the later, the wider
    kind = rng.integers(0, 3, 2500)
    words[:, 17] = kind == 2
    for name, zero_based in (("words.svm", False), ("words0.svm", True)):
        dump_svmlight_file(sp.csr_matrix(words), kind, str(folder / name), zero_based=zero_based)
    return folder


@pytest.fixture
def call(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TAMIS_DATA", str(folder / "none"))

    def call(*arguments):
        code = main(["screen", *map(str, arguments)])
        return (code, *capsys.readouterr())

    return call


def features(out):
    return re.findall(r"^ {0,3}\d+  (\S+)", out, flags=re.MULTILINE)


def test_table_fits_the_terminal(call):
    code, out, err = call("table.csv", "--label", "state", "--top", "4", "--keep", "empty", "-q")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "Mutual information on table.csv"
    assert any(line.startswith("5 columns, 1,500 rows, 2 classes, ") for line in lines[1:4])
    text = " ".join(out.split())
    assert "columns are relevant to the label (p < 0.05 / 5 by mutual information): " in text
    assert "1 column has no value at all: empty." in text
    assert lines.index("Ranked by mutual information") > 4
    assert set(features(out)[:2]) == {"pressure", "colour"}
    assert features(out)[2:] == ["heat", "light"]
    assert "█" in next(line for line in lines if "pressure  " in line)
    assert "And 1 more." in lines
    assert max(map(len, lines)) <= 80


@pytest.mark.slow
def test_numbers_are_those_of_the_api_in_any_batching(call, folder):
    every = [word for name in SCORE_TITLES for word in ("--score", name)]
    found = [
        json.loads(call("table.csv", "--label", "state", "--json", "--batch-size", size, *every)[1])
        for size in (1, 700, 5000)
    ]
    for other in found[:2]:  # means in other batches are rounded in other places
        for row, same in zip(other["features"], copy.deepcopy(found[2]["features"]), strict=True):
            assert row.pop("feature") == same.pop("feature")
            assert row == pytest.approx(same, rel=1e-12)
    X, y = open_file(folder / "table.csv", label="state", missing="keep").take(1500)
    expected = Screening(1.0, scores=list(SCORE_TITLES), categorical=[3]).fit(X, y).table_
    names = ["heat", "light", "pressure", "colour", "empty"]
    for row in found[2]["features"]:
        at = names.index(row.pop("feature"))
        del row["rank"]
        assert row == pytest.approx(
            {n: column[at] for n, column in expected.items() if n != "feature"}, rel=1e-12
        )
    assert found[0]["scores"] == list(SCORE_TITLES)
    assert found[0]["n_rows"] == 1500
    assert sorted(found[0]["classes"]) == ["off", "on"]


@pytest.mark.parametrize("name", ["words.svm", "words0.svm"])
def test_svmlight_of_any_width_in_one_pass(call, folder, monkeypatch, name):
    known = {"n_features": 300, "zero_based": name == "words0.svm"}
    expected = Screening(1.0, scores=["chi2"]).fit(*open_file(folder / name, **known).take(2500)).table_
    passes = []
    opened = tamis.streams.source.Source.open
    monkeypatch.setattr(
        tamis.streams.source.Source, "open", lambda self: passes.append(self.name) or opened(self)
    )
    code, out, _ = call(name, "--score", "chi2", "--json", "--top", "1000", "--batch-size", "100")
    found = json.loads(out)
    assert code == 0
    assert len(passes) == 1
    assert found["n_features"] == 300
    first = int(name == "words.svm")  # the columns are called as the file counts them
    assert found["features"][0]["feature"] == f"x{17 + first}"
    for row in found["features"]:
        at = int(row["feature"][1:]) - first
        assert (row["chi2"], row["chi2_pvalue"]) == (expected["chi2"][at], expected["chi2_pvalue"][at])


def test_columns_far_apart_cost_nothing(call, folder):
    (folder / "far.svm").write_text("1 5:1 2000000000:1\n0 7:1\n\n1 5:2 2000000000:1 # end\n0 6:3\n" * 20)
    code, out, _ = call("far.svm", "--score", "mi", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["n_rows"], found["n_features"]) == (80, 4)
    assert [row["feature"] for row in found["features"]] == ["x5", "x2000000000", "x6", "x7"]


def test_rows_without_values(call, folder):
    (folder / "bare.svm").write_text("1\n0\n0\n1 3:1\n")
    found = json.loads(call("bare.svm", "--batch-size", "2", "--json")[1])
    assert [(row["feature"], row["n_observed"]) for row in found["features"]] == [("x3", 4)]
    (folder / "bare.svm").write_text("1\n0\n")
    assert call("bare.svm") == (1, "", "tamis: None of the 2 rows has a value: there is nothing to rank.\n")


def test_dependence_is_measured_unless_rows_are_said_to_be_independent(call, folder):
    state = np.repeat(np.random.default_rng(2).integers(0, 2, 200), 15)
    X = np.repeat(np.random.default_rng(3).normal(size=(200, 2)), 15, axis=0).round(3)
    np.savetxt(folder / "runs.csv", np.c_[X, state], fmt="%g", delimiter=",", header="a,b,y", comments="")
    words = "runs.csv", "--label", "y", "--score", "t", "-q"
    assert "Rows are autocorrelated: 3,000 rows count as" in call(*words)[1]
    assert "Rows are autocorrelated: 3,000 rows count as" in call(*words, "--dependence", "series")[1]
    assert "autocorrelated" not in call(*words, "--dependence", "independent")[1]


def test_a_half_life_follows_what_is_true_now(call, folder):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(4000, 3)).round(3), rng.integers(0, 2, 4000)
    X[:3000, 0] += 2 * y[:3000]
    X[3000:, 1] += 2 * y[3000:]
    np.savetxt(
        folder / "drift.csv", np.c_[X, y], fmt="%g", delimiter=",", header="old,new,none,y", comments=""
    )
    assert features(call("drift.csv", "--label", "y", "--score", "t")[1])[0] == "old"
    _, out, _ = call("drift.csv", "--label", "y", "--score", "t", "--half-life", "200")
    assert features(out)[0] == "new"
    assert "half-life 200 rows" in out
    assert (
        features(call("drift.csv", "--label", "y", "--max-rows", "3000", "--half-life", "200")[1])[0] == "old"
    )


def test_csv_and_picture(call, tmp_path):
    table, picture = tmp_path / "scores.csv", tmp_path / "scores.png"
    code, out, _ = call(
        "table.csv", "--label", "state", "--keep", "empty", "--score", "gini", "--score", "fisher", "--top", "2",
        "--out", table, "--plot", picture,
    )  # fmt: skip
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("The ")] == [
        f"The table: {table}", f"The plot: {picture}",
    ]  # fmt: skip
    with open(table, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["rank"]) for row in rows] == [1, 2, 3, 4, 5]
    scores = [float(row["gini"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert set(rows[0]) == {"rank", "feature", "n_observed", "gini", "gini_pvalue", "fisher", "fisher_pvalue"}
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


class _Interrupted(ArrayStream):
    """Ctrl-C after 500 rows."""

    def batches(self, size=100, *, start=0):
        for i, batch in enumerate(super().batches(100)):
            if i == 5:
                raise self.stop
            yield batch


@pytest.mark.parametrize(
    ("stop", "code", "told"),
    [
        (KeyboardInterrupt(), 130, "tamis: interrupted\n"),
        (
            tamis.errors.StreamError("line 501 is damaged: fix it."),
            1,
            "tamis: line 501 is damaged: fix it.\n",
        ),
    ],
)
def test_what_is_known_is_shown_when_it_ends_early(call, monkeypatch, stop, code, told, rng):
    y = rng.integers(0, 2, 1000)
    stream = _Interrupted(np.c_[rng.normal(size=1000), y + rng.normal(size=1000)], y, ["noise", "signal"])
    stream.stop = stop
    monkeypatch.setattr("tamis.cli.reading.Reading.open", lambda *given, **more: stream)
    found = call("table.csv", "-q")
    assert (found[0], found[2]) == (code, told)
    assert features(found[1]) == ["signal", "noise"]
    assert "500 rows" in found[1]
    assert ("interrupted" in found[1]) == (code == 130)


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (
            ("--score", "chi"),
            2,
            "--score chi is not a score; did you mean 'chi2'? Known: t, fisher, mi, chi2, gini.",
        ),
        (("--dependence", "some"), 2, "--dependence some must be one of auto, independent, series."),
        (("--top", "0"), 2, "--top must be 1 or more, got 0."),
        (("--n-bins", "1"), 2, "--n-bins must be 2 or more, got 1."),
        (("--eps", "0.5"), 2, "--eps must be a number in (0, 0.5), got 0.5."),
        (("--half-life", "0"), 2, "--half-life must be a number in (0, inf), got 0.0."),
        (
            ("--plot", "a.gif"),
            2,
            "The picture 'a.gif' has an unsupported format: end its name with .png, .svg or .pdf.",
        ),
        (("--out", "no/a.csv"), 2, "--out no/a.csv: the folder"),
        (("--label", "stat"), 2, "'table.csv' has no column 'stat'; did you mean 'state'"),
        (
            ("--missing", "error"),
            1,
            "'table.csv': light (33.3 %), empty (100.0 %) have missing values; add --missing mean.",
        ),
        (("--max-rows", "1"), 1, "The only label is "),
    ],
)
def test_mistakes_are_told_in_one_line(call, line, code, message):
    given = line if "--label" in line else (*line, "--label", "state")
    found = call("table.csv", "--keep", "empty", *given)
    assert (found[0], found[1]) == (code, "")
    assert found[2].startswith(f"tamis: {message}")
    assert found[2].count("\n") == 1


def test_page_shows_what_the_command_prints(call):
    page = (Path(__file__).resolve().parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    shown = page.partition("$ tamis screen --dataset electricity --score mi --score t\n")[2].partition("```")[
        0
    ]
    out = call("--dataset", "electricity", "--score", "mi", "--score", "t", "-q")[1]
    timed = [line.rstrip() for line in out.rstrip().splitlines() if " rows, " not in line]
    assert [line for line in shown.rstrip().splitlines() if " rows, " not in line] == timed


def test_a_level_marks_the_columns_that_tell(call, tmp_path):
    code, out, _ = call(
        "--dataset", "electricity", "--score", "t", "--level", "0.05", "--max-rows", "3000", "-q"
    )
    assert code == 0
    assert " selected at level 0.05" in out
    rows_ = [line for line in out.splitlines() if re.match(r" *\d+  ", line)]
    assert any("●" in row or "*" in row for row in rows_)
    place = tmp_path / "scores.csv"
    call("--dataset", "electricity", "--level", "0.05", "--max-rows", "3000", "--out", str(place), "-q")
    with open(place, encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert {row["selected"] for row in table} <= {"True", "False"}
    chosen = [float(row["evalue"]) for row in table if row["selected"] == "True"]
    others = [float(row["evalue"]) for row in table if row["selected"] == "False"]
    assert chosen
    assert min(chosen) > max(others, default=0.0)
    document = call("--dataset", "electricity", "--level", "0.05", "--json", "-q")[1]
    assert json.loads(document)["options"]["level"] == 0.05
    assert "Infinity" not in document
    code, _, err = call("--dataset", "electricity", "--level", "0.05", "--half-life", "100")
    assert code != 0
    assert "--level needs rows of equal weight: give --restarts instead of --half-life" in err


def test_restarts_keep_the_level_over_all_beginnings(call, tmp_path, rng):
    y = rng.integers(0, 2, 4096)
    X = rng.normal(size=(4096, 3))
    X[:2048, 0] += y[:2048]
    X[2048:, 1] += y[2048:]
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, y]), "%.6g", ",", header="a,b,c,y", comments="")
    words = (tmp_path / "rows.csv", "--label", "y", "--score", "t", "--level", "0.05", "--restarts")
    assert "restarted 0 times" in " ".join(call(*words, "9000")[1].split())
    for when, told in (
        ("drift", "restarted 1 time, last after row 2,560"),
        ("3000", "last after row 3,000"),
    ):
        document = json.loads(call(*words, when, "--json", "-q")[1])
        assert [row["feature"] for row in document["features"] if row["selected"]] == ["b"]
        assert str(document["options"]["restarts"]) == when
        assert told in " ".join(call(*words, when)[1].split())
    assert "--restarts -3 is neither drift nor a number of rows" in call(*words, "-3")[2]
    assert "--restarts and --half-life both" in call(*words[:-3], "--restarts", "9", "--half-life", "9")[2]


NASTY = [
    "=1+1", "+1", "-1.5", "@SUM(A1)", "\ttab", "\rcr", "\uff1dwide", "'=quoted", "''-", "'plain'", 'a"b', "a,b",
    "=HYPERLINK(\"http://x\",\"y\")",
]  # fmt: skip


def test_no_cell_of_a_table_is_a_formula_and_our_readers_read_the_names_back(call, tmp_path, rng):
    y = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, len(NASTY))) + 0.1 * y[:, None] * np.arange(len(NASTY))
    with open(tmp_path / "odd.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([[*NASTY, "y"], *np.column_stack([X, y]).tolist()])
    table, kept = tmp_path / "scores.csv", tmp_path / "kept.csv"
    assert call(tmp_path / "odd.csv", "--label", "y", "--score", "t", "--out", table, "-q")[0] == 0
    run = ("run", tmp_path / "odd.csv", "--label", "y", "--select", "5", "--baselines", "none", "-q")
    assert main([str(word) for word in (*run, "--columns", kept)]) == 0
    for place, n in ((table, len(NASTY)), (kept, 5)):
        with open(place, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        assert len(rows) == n + 1
        for cell in (cell for row in rows for cell in row):
            if re.match("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]", cell):
                float(cell)  # a number stays a number
        stream = open_file(place, label="rank")
        stream.take(n)
        read = list(stream.categories["feature"])
        assert set(read) <= {name.strip(" \t") for name in NASTY}  # blanks around names are no part of them
        assert len(read) == n
    names = table.read_text(encoding="utf-8")
    assert ",'-1.5," in names
    assert ",-1.5," not in names


def test_apostrophes_of_other_tables_stay(tmp_path):
    (tmp_path / "other.csv").write_text("word,y\n'=1,0\n'-x,1\n=1,0\n")
    stream = open_file(tmp_path / "other.csv", label="y")
    stream.take(3)
    assert stream.categories["word"] == ["'=1", "'-x", "=1"]


def test_what_is_generated_holds_no_formula():
    """`tamis generate` writes names and labels as they are."""
    from tamis.streams import list_streams, load_stream

    for row in list_streams():
        stream = load_stream(row["name"])
        for text in (*stream.feature_names, *map(str, stream.classes)):
            assert not re.match(r"[=+@\t\r]|-\D", text), row["name"]


def test_of_copies_few_are_shown_with_redundancy(call, tmp_path):
    rng = np.random.default_rng(0)
    signals = rng.normal(size=(400, 2))
    X = signals[:, [0] * 5 + [1]] + 0.1 * rng.normal(size=(400, 6))
    y = 2 * signals[:, 0] + signals[:, 1] > 0
    place = tmp_path / "copies.csv"
    np.savetxt(place, np.column_stack([X, y]), delimiter=",", header="a,b,c,d,e,other,y", comments="")
    line = (str(place), "--label", "y", "--top", "2", "--json", "-q")
    shown = [
        [row["feature"] for row in json.loads(call(*line, *more)[1])["features"]]
        for more in ((), ("--redundancy", "6"))
    ]
    assert "other" not in shown[0]
    assert "other" in shown[1]
    code, _, err = call(*line, "--redundancy", "6", "--level", "0.05")
    assert code == 2
    assert "omit one" in err


def test_the_page_shows_the_ranking_and_how_to_do_it_again(call, folder):
    every = [word for name in SCORE_TITLES for word in ("--score", name)]
    kept = ("--top", "2", "--keep", "empty")
    code, out, err = call("table.csv", "--label", "state", *kept, "--report", "page.html", *every)
    assert (code, err) == (0, "")
    assert out.endswith("The report: page.html\n")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "<h1>T-score on table.csv</h1>" in page
    assert page.index(">pressure<") < page.index(">heat<")
    assert "<summary>From 3 on</summary>" in page
    assert "1 column has no value at all: empty." in page
    assert "http" not in page.replace("http-equiv", "")
    line = re.search(r"tamis screen table.csv --label state .*?--report page.html[^<]*", page)[0]
    code, out, err = call(*line.split()[2:])  # its own report may be replaced
    assert (code, err) == (0, "")
    assert (folder / "page.html").read_text(encoding="utf-8").count("<section") == 4


def test_the_page_of_a_level_and_of_odd_names(call, folder):
    (folder / "odd.csv").write_text("<b>a,y\n" + "".join(f"{i % 2}.5,{i % 2}\n" for i in range(300)))
    assert call("odd.csv", "--label", "y", "--level", ".05", "--report", "page.html")[0] == 0
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;a" in page
    assert "<b>a" not in page
    assert "<dt>Selected</dt><dd>1<" in page
    assert "Scores by rank" not in page  # of one column


def test_a_page_that_cannot_be_written_is_refused_before_the_first_row(call, folder):
    code, _, err = call("table.csv", "--label", "state", "--report", "none/page.html")
    assert code == 2
    assert "the folder 'none' does not exist" in err
    code, _, err = call("table.csv", "--label", "state", "--report", "table.csv")
    assert code == 2
    assert "table.csv" in err
    assert (folder / "table.csv").read_text(encoding="utf-8").startswith("heat,")


def test_dependent_rows_are_announced(folder, call):
    rng = np.random.default_rng(0)
    state = np.repeat(rng.integers(0, 2, 300), 8)
    steps = np.repeat(rng.normal(size=(300, 2)), 8, axis=0) + 0.1 * rng.normal(size=(2400, 2))
    rows = [f"{a:.3f},{b:.3f},{s}" for (a, b), s in zip(steps.tolist(), state.tolist(), strict=True)]
    (folder / "series.csv").write_text("\n".join(["one,two,state", *rows]) + "\n", encoding="utf-8")
    code, out, _ = call("series.csv", "--label", "state", "--score", "t", "--report", "series.html", "-q")
    assert code == 0
    for text in (out, (folder / "series.html").read_text(encoding="utf-8")):
        line = re.search(r"[Rr]ows are autocorrelated: 2,400 rows count as (\d+)", text)
        assert line is not None
        assert 150 < int(line[1]) < 600


@pytest.fixture
def weather(folder):
    """Of seven columns, `hot` depends on a and b, `dry` on b and c, the number `price` on c; `dry` has a hole."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1200, 5)).round(4)
    hot = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    dry = np.where(X[:, 1] - X[:, 2] > 0, 1, 0).astype(object)
    dry[7] = ""
    price = (2 * X[:, 2] + rng.normal(size=1200)).round(3)
    rows = np.c_[X.astype(object), hot, dry, price].tolist()
    lines = [",".join(map(str, row)) for row in [[*"abcde", "hot", "dry", "price"], *rows]]
    (folder / "weather.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [word for label in ("hot", "dry", "price") for word in ("--label", label)]


def test_several_labels_have_a_ranking_each_and_share_a_selection(call, weather, tmp_path):
    words = ["weather.csv", *weather, "--drop-unlabelled", "--level", "0.05", "-q"]
    code, out, err = call(*words, "--json", "--out", tmp_path / "scores.csv")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["targets"] == ["hot", "dry", "price"]
    assert sorted(document["selected"]) == ["a", "b", "c"]
    assert document["price"] == 3
    assert document["verdict"] == "3 of 5 features serve 3 targets, which need 1 to 2 each, 5 in all."
    of_label = document["by_target"]
    assert {name: one["n_rows"] for name, one in of_label.items()} == {
        "hot": 1200,
        "dry": 1199,
        "price": 1200,
    }
    for label, more in (("hot", "dry,price"), ("price", "hot,dry")):
        task = ["--task", "regression"] if label == "price" else []
        alone = ["--label", label, "--drop", more, *task, "--level", "0.05", "--json", "-q"]
        single = json.loads(call("weather.csv", *alone)[1])
        assert of_label[label]["features"] == single["features"]
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["label"], row["rank"]) for row in rows] == [
        (label, str(rank)) for label in ("hot", "dry", "price") for rank in range(1, 6)
    ]
    code, out, _ = call(*words, "--report", tmp_path / "page.html")
    assert code == 0
    shown = [line.split() for line in out.splitlines()]
    assert ["c", "dry,", "price"] in shown
    assert "price: ranked by mutual information" in out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The best columns for price" in page
    assert "Shared selection" in page


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (
            ["--label", "hot"],
            1,
            "'weather.csv': 1 row has no label, the first is row 8; add --drop-unlabelled.",
        ),
        (["--label", "wet", "--drop-unlabelled"], 2, "'weather.csv' has no column 'wet'"),
        (["--label", "-1"], 2, "--label -1 is a position: several labels are given by their names."),
        (
            ["--plot", "a.png"],
            2,
            "--plot draws the ranking for one label: give --report FILE, which shows all.",
        ),
        (
            ["--task", "regression"],
            2,
            "--label hot contains text, but --task regression is for numbers: omit --task",
        ),
        (
            ["--task", "classification", "--drop-unlabelled"],
            2,
            "--label price contains numbers, but --task classification is for classes: omit --task",
        ),
        (["--drop", "dry", "--drop-unlabelled"], 2, "--drop must not contain the label 'dry'"),
    ],
)
def test_mistakes_with_several_labels_are_told_in_one_line(call, weather, more, code, message):
    found = call("weather.csv", *weather, *more, "-q")
    assert (found[0], found[1]) == (code, "")
    assert found[2].startswith(f"tamis: {message}")
    assert found[2].count("\n") == 1


def test_a_numeric_label_is_screened_as_one(call, weather):
    code, out, err = call("weather.csv", "--label", "price", "-q")
    assert code == 1
    assert "predict a number with --task regression" in err
    code, out, err = call(
        "weather.csv", "--label", "price", "--drop", "hot,dry", "--task", "regression", "-q"
    )
    assert (code, err) == (0, "")
    assert features(out)[0] == "c"
    assert "5 columns, 1,200 rows, numeric label" in out
