"""What the command line advises for messy files: every printed option is accepted, and makes no result worse."""

import json
import shlex

import numpy as np
import pytest

from tamis.cli import main

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("typer")

N = 1500


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*line):
        code = main([str(word) for word in line])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def accuracy(call, line):
    code, out, err = call(
        *line, "--selector", "none", "--learner", "nb", "--baselines", "none", "--json", "--quiet"
    )
    assert code == 0, err
    return json.loads(out)["summary"]["accuracy"]


def marked(values, marker, share, rng):
    return np.where(rng.random(N) < share, marker, values)


def heights(cm, rng):
    texts = [f"{value:.0f}" for value in cm]
    for i in np.flatnonzero(rng.random(N) < 0.08):
        inches = cm[i] / 2.54
        texts[i] = rng.choice(
            [f"{int(inches // 12)}'{int(inches % 12)}\"", f"{cm[i]:.0f}cm", f"{cm[i]:.0f} cm"]
        )
    return texts


def tables():
    """Return messy tables whose label depends on the column of each mess, and what must be suggested for each."""
    rng = np.random.default_rng(0)
    y = rng.random(N) < 0.5
    x, label = rng.normal(size=N) + 1.5 * y, np.where(y, "on", "off")
    noise = rng.normal(size=N).round(3)
    many = {f"x{j}": marked((x + rng.normal(size=N)).round(2), -99, 0.05, rng) for j in range(8)}
    days = np.where(rng.random(N) < 0.9 - 0.6 * y, 999, rng.integers(0, 28, N))
    took = [f"0:{i % 60:02}:00" for i in range(N)]
    at = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(N), unit="h")
    return {
        "sentinel": ({"x": marked(50 + 10 * x, -999, 0.1, rng).round(1), "noise": noise, "y": label}, "x=-999"),
        "sentinel 9999": ({"x": marked(50 + 10 * x, 9999, 0.1, rng).round(1), "y": label}, "x=9999"),
        "sentinel -9": ({"x": marked((2 * x - (2 * x).min()).round(1), -9, 0.1, rng), "y": label}, "x=-9"),
        "sentinel 1e30": ({"x": marked(x.round(2), 1e30, 0.1, rng), "y": label}, "x=1e+30"),
        "sentinels": (many | {"y": label}, "*=-99"),
        "informative": ({"days": days, "y": label}, None),
        "in range": ({"x": (999 + 300 * x).round(), "y": label}, None),
        "of one side": ({"x": -np.exp(x).round(2), "y": label}, None),
        "height": ({"height": heights(150 + 12 * x, rng), "noise": noise, "y": label}, "height=*"),
        "identifiers": ({"x": x, "user_id": rng.integers(10**8, 10**9, 200)[rng.integers(0, 200, N)],
                         "tweet": rng.integers(10**17, 10**18, 300)[rng.integers(0, 300, N)], "y": label}, None),
        "twice": ({"x": x.round(3), " x": noise, "y": label}, None),
        "times": ({"x": x.round(3), "at": at.strftime("%m/%d/%Y %I:%M %p"), "took": took, "y": label}, None),
        "missing": ({"x": np.where(rng.random(N) < 0.1, np.nan, x), "y": label}, None),
    }  # fmt: skip


@pytest.mark.parametrize("name", tables())
def test_no_printed_option_harms(call, tmp_path, name):
    table, suggested = tables()[name]
    path = tmp_path / "t.csv"
    pd.DataFrame(table).to_csv(path, index=False)
    code, out, err = call("look", path, "--label", "y", "--json")
    assert code == 0, err
    found = json.loads(out)
    options = [shlex.split(one["option"]) for one in (*found["problems"], *found["suggestions"])]
    assert [words[1] for words in options if words[0] == "--na"] == ([suggested] if suggested else [])
    advised = shlex.split(found["command"])[1:]
    with_hint = accuracy(call, advised)
    if found["problems"]:
        plain = accuracy(call, ["run", path, "--label", "y", "--categorical", name])
    else:
        plain = accuracy(call, ["run", path, "--label", "y"])
    assert with_hint >= plain - 0.005
    if suggested:
        assert with_hint > 0.7


def test_two_columns_of_one_name_are_both_read(call, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    rows = "".join(
        f"{a:.3f},{b:.3f},{c}\n"
        for a, b, c in zip(rng.normal(size=N), y + 0.4 * rng.normal(size=N), y, strict=True)
    )
    (tmp_path / "t.csv").write_text(f"x,x,y\n{rows}")
    code, out, _ = call("look", "t.csv", "--label", "y")
    assert (code, "To fix" in out) == (0, False)
    assert "several columns are named x: the later ones are read as x.1" in " ".join(out.split())
    assert accuracy(call, ["run", "t.csv", "--label", "y"]) > 0.85


def test_identifiers_that_repeat_are_excluded(call, tmp_path):
    table, _ = tables()["identifiers"]
    rng = np.random.default_rng(1)
    table |= {"session": [f"{7**40 * (v + 1):032x}" for v in rng.integers(0, 90, N).tolist()],
              "station_id": rng.integers(1, 9, N),
              "amount": rng.integers(1, 10**6, N)[rng.integers(0, 300, N)]}  # fmt: skip
    pd.DataFrame(table).to_csv(tmp_path / "t.csv", index=False)
    found = json.loads(call("look", "t.csv", "--label", "y", "--json")[1])
    assert set(found["excluded"]) == {"user_id", "tweet", "session"}


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.jsonl", "JSON, UTF-8"), ("a.xlsx", "the first sheet of a workbook"), ("a.txt", "blanks between")],
)
def test_the_format_is_named(call, tmp_path, name, text):
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"a": [0.5, 1.5] * 20, "y": [0, 1] * 20})
    writers = {
        "a.jsonl": lambda: frame.to_json(name, orient="records", lines=True),
        "a.xlsx": lambda: frame.to_excel(name, index=False), "a.txt": lambda: frame.to_csv(name, sep=" ", index=False),
    }  # fmt: skip
    writers[name]()
    code, out, _ = call("look", name, "--label", "y")
    assert (code, text in out) == (0, True)
    assert accuracy(call, ["run", name, "--label", "y", "--batch-size", "10"]) > 0.9


def test_a_guess_is_called_one(call, tmp_path):
    pd.DataFrame({"species": ["a", "b"] * 40, "x": range(80), "group": [0, 1, 1, 2] * 20}).to_csv(
        "t.csv", index=False
    )
    out = " ".join(call("look", "t.csv")[1].split())
    assert "the label column is not named; species is a guess: --label species" in out


def test_nested_columns_cannot_be_kept(call, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = {
        "s": [{"p": 1.0}] * 60,
        "l": [[1, 2]] * 60,
        "x": [j * 7 % 11 for j in range(60)],
        "y": [0, 1] * 30,
    }
    parquet.write_table(pa.table(table), "t.parquet")
    out = " ".join(call("look", "t.parquet", "--label", "y")[1].split())
    assert (
        "s: it is of type struct<p: double>, which is neither a number nor text: write its parts as columns"
        in out
    )
    assert "--keep s" not in out
    line = (
        "run",
        "t.parquet",
        "--label",
        "y",
        "--batch-size",
        "10",
        "--keep",
        "s,l",
        "--learner",
        "nb",
        "--selector",
        "none",
    )
    code, _, err = call(*line)
    assert (code, "s is excluded: it is of type struct" in err) == (0, True)


def test_text_is_not_made_into_words(call, tmp_path):
    lines = "".join(f"this is text {i} of many,{i % 2}\n" for i in range(60))
    (tmp_path / "t.csv").write_text(f"review,y\n{lines}")
    code, _, err = call("run", "t.csv", "--label", "y")
    assert (code, "review: text is not made into words" in err, "docs/tutorials/text.md" in err) == (
        1,
        True,
        True,
    )


@pytest.mark.parametrize("name", ["xgboost", "XGBClassifier", "catboost", "gradient-boosting"])
def test_other_boosting_points_at_lightgbm(call, name):
    code, _, err = call("run", "--dataset", "electricity", "--learner", name)
    assert (code, "for gradient boosting use 'lightgbm'" in err) == (2, True)


def test_the_number_of_columns_is_not_that_of_selected_ones(call, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n" + "1,2,0\n3,4,1\n" * 100)
    for line in (("run", "t.csv"), ("follow", "t.csv", "--idle", "0"), ("screen", "t.csv")):
        code, _, err = call(*line, "--label", "y", "--n-features", "2")
        assert code == 2
        assert err == (
            "tamis: --n-features is the number of columns of an svmlight file: to select 2 features, use --select 2.\n"
        )


def test_a_run_says_what_a_look_does(call, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], N // 2)
    pd.DataFrame({"a": rng.normal(size=N), "y": y}).to_csv("t.csv", index=False)
    for line in (
        ("run", "t.csv", "--selector", "none", "--learner", "nb"),
        ("recommend", "t.csv", "--learner", "nb"),
    ):
        code, _, err = call(*line, "--label", "y")
        assert (code, "the rows are sorted by the label y: it changes once in 1,500 rows" in err) == (0, True)


@pytest.mark.parametrize(
    ("values", "markers"),
    [
        ([18, 25, 31, 90, -1, -1, -1], [-1]),
        ([0, 3, 25, 31, 90, -1, -2, -1, -1], []),
        ([1, 5, 3, 2, *[-8, -9] * 3], [-8, -9]),
        ([0, 5, 300, 20_000, -999], [-999]),
        ([-5, 5, 30, 20, -999], []),
        ([-5, 5, 30, 20, -999, -999], [-999]),
        ([-5, 5, 30, 20, 1e30], [1e30]),
        ([1990, 2001, 2020, 9999, 9999], [9999]),
        ([100, 5000, 20_000, 9999, 9999], []),
        ([0, 9, 99, 999, 9999, 99, 9], []),
        ([120, 99, 98, 97, 99, 99], []),
        ([1.5, 2.5, 3.5, 99.9, 99.9], [99.9]),
        ([-999, -999, -999, 3, 3], []),
        ([7], []),
    ],
)
def test_numbers_for_missing_values(values, markers):
    from tamis.streams.profile import _markers_in

    assert sorted(_markers_in(np.array(values, dtype=float))) == sorted(markers)


def test_a_marker_of_any_format_is_missing(call, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    from tamis import open_file

    table = pa.table({"days": [1, -999, 3] * 20, "x": [0.5, 9.0, -999.0] * 20, "y": [0, 1, 1] * 20})
    parquet.write_table(table, "t.parquet")
    for na, holes in ((["days=-999"], [20, 0]), (["*=-999", "x=9"], [20, 40])):
        X, _ = open_file("t.parquet", label="y", na=na).take(60)
        assert np.isnan(X).sum(axis=0).tolist() == holes
