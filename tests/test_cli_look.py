"""A new user's three files: each command works on them from the first line, or says in one list what to add."""

import datetime as dt
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import tamis
from tamis.cli import main

pytest.importorskip("pyarrow")

N = 300


def sensors(path):
    """Identifiers, times, text, gaps; firmware has versions among numbers. The state shows in `pressure`."""
    rng = np.random.default_rng(0)
    pressure, heat = rng.normal(3, 1, N), rng.normal(60, 5, N)
    state = np.where(pressure + 0.2 * rng.normal(size=N) > 3, "on", "off")
    notes = np.array(["", "ok", "check bearing", "restarted by hand"])[rng.integers(0, 4, N)]
    rows = ["id,timestamp,firmware,heat,pressure,room,comment,state"]
    for i in range(N):
        at = dt.datetime(2024, 3, 1, 8) + dt.timedelta(minutes=17 * i)
        heat_i = "" if i % 30 == 3 else f"{heat[i]:.2f}"
        firmware = ["1.4", "1.5", "1.6", "1.5.2"][i % 4]
        rows.append(f"M-{i:05},{at},{firmware},{heat_i},{pressure[i]:.3f},7,{notes[i]},{state[i]}")
    path.write_text("\n".join(rows) + "\n")


def fraud(path):
    """3 % of fraud, which shows in `amount`; serial numbers, addresses, many merchants."""
    rng = np.random.default_rng(1)
    y = (np.arange(N) % 33 == 5).astype(int)
    amount = rng.lognormal(3, 0.5, N) + 200 * y
    rows = ["transaction_id,amount,hour,merchant,country,email,fraud"]
    for i in range(N):
        rest = (
            f"{rng.integers(0, 24)},shop{rng.integers(0, 120)},{['DE', 'FR', 'PL'][i % 3]},u{i}@mail.example"
        )
        rows.append(f"{100000 + i},{amount[i]:.2f},{rest},{y[i]}")
    path.write_text("\n".join(rows) + "\n")


def europe(path):
    """Semicolons, decimal commas, thousands, Latin-1, dates with points."""
    rng = np.random.default_rng(2)
    size = rng.normal(50, 9, N)
    kind = np.where(size + rng.normal(size=N) > 50, "groß", "klein")
    rows = ["Gerät;Datum;Größe;Gewicht;Klasse"]
    for i in range(N):
        day = dt.date(2023, 1, 1) + dt.timedelta(days=i)
        weight = f"{3000 * rng.random():,.2f}".translate(str.maketrans(",.", ".,"))
        rows.append(
            f"G{i % 7};{day:%d.%m.%Y};{size[i]:.1f}".replace(
                f"{size[i]:.1f}", f"{size[i]:.1f}".replace(".", ",")
            )
            + f";{weight};{kind[i]}"
        )
    path.write_bytes(("\n".join(rows) + "\n").encode("latin-1"))


FILES = {"sensors.csv": (sensors, "state"), "fraud.csv": (fraud, "fraud"), "europe.csv": (europe, "Klasse")}
ADDED = {"sensors.csv": ["--missing", "mean", "--na", "1.5.2"], "fraud.csv": [], "europe.csv": []}
TELLS = {"sensors.csv": "pressure", "fraud.csv": "amount", "europe.csv": "Größe"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first contact")
    for name, (write, _) in FILES.items():
        write(folder / name)
    return folder


@pytest.fixture
def call(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments):
        code = main([str(a) for a in arguments])
        return code, *capsys.readouterr()

    return call


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_look_leads_to_a_run_that_works(call, name):
    code, out, err = call("look", name, "--label", FILES[name][1], "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    words = shlex.split(found["command"])
    assert words[:3] == ["tamis", "run", name]
    code, out, _ = call(*words[1:], "--select", 1, "--batch-size", 20, "--json")
    assert code == 0
    assert json.loads(out)["chosen"].keys() & {TELLS[name]}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["run", "screen", "columns", "train"])
def test_each_command_works_or_tells_everything_in_one_list(call, tmp_path, command, name):
    more = {"run": ["--batch-size", "20"], "train": ["--save", tmp_path / "m.tamis"]}.get(command, [])
    line = (command, name, "--label", FILES[name][1], *more)
    code, out, err = call(*line)
    if code:
        told = err.splitlines()
        assert told[0].startswith(f"tamis: '{name}'")
        alone = re.fullmatch(r"tamis: .*; add (.*)\.", told[0])  # a single problem is one sentence
        added = line + tuple(shlex.split(alone[1])) if alone else ()
        mended = added or shlex.split(told[-1].removeprefix("Corrected: tamis "))
        assert len(mended) > len(line)
        code, out, err = call(*mended)
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80 or command == "train"  # paths are never cut
    if command != "train":
        assert TELLS[name] in out


def test_one_list_has_every_problem_in_words_of_the_command_line(call):
    code, out, err = call("run", "sensors.csv")
    assert (code, out) == (2, "")
    assert err == (
        "tamis: 'sensors.csv' cannot be used as it is:\n"
        "  the label column is not named; state is a guess: --label state\n"
        "  firmware contains '1.5.2' among numbers, first in row 4: --na 1.5.2\n"
        "Corrected: tamis run sensors.csv --label state --na 1.5.2\n"
    )


def test_the_page_shows_what_is_printed(call):
    page = (Path(__file__).resolve().parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    line, shown = re.search(r"^```text\n\$ tamis (look .*)\n((?s:.*?))^```", page, flags=re.M).groups()
    code, out, _ = call(*line.split())
    assert code == 0
    assert [row.rstrip() for row in out.splitlines()] == shown.splitlines()


ODD = {
    "twice": "a|a|b|y\n" + "1.5|2.5|0.5|no\n2.5|1.5|1.5|yes\n0.5|0.5|2.5|yes\n" * 20,
    "mixed": "a;b;y\n" + "1,5;2;0\n2,5;1;1\n" * 30 + "3,5;abc;1\n",
    "infinite": "a,b,y\n" + "1.5,inf,0\n2.5,1.5,1\n0.5,0.25,1\n" * 20,
    "unlabelled": "a,b,y\n" + "1.5,2,0\n2.5,1,1\n0.5,0,\n" * 20,
    "export": "sep=;\nNr.;Maß;Preis;Preis;y;\n"
    + "".join(f"{i + 7};{i % 9},5;{i},50 €;{i},5;{i % 2};\n" for i in range(60)),
    "notes": "# by LabSys\n# units: see manual\n y , crp, temp\n"
    + " a , <0.5 , - \n b , 7.5 , 38.5 \n b , 6.5 , 37.5\n a , 1.5 , 36.5\n" * 15,
}


@pytest.mark.parametrize("name", ODD)
def test_what_a_look_says_mends_everything_at_once(call, tmp_path, name):
    path = tmp_path / f"{name}.csv"
    path.write_text(ODD[name])
    codes = (0,) if name in ("twice", "export") else (1, 2)  # names are made unique without a question
    assert call("run", path, "--label", "y", "--batch-size", 10, "--quiet")[0] in codes
    found = json.loads(call("look", path, "--label", "y", "--json")[1])
    words = shlex.split(found["command"])
    code, _, err = call(*words[1:], "--selector", "fires", "--select", 1, "--batch-size", 10, "--quiet")
    assert code == 0, err


def test_a_look_promises_no_run_where_no_option_helps(call, tmp_path):
    (tmp_path / "odd.csv").write_text("a,y\n" + "".join(f"{i},{i / 7}\n" for i in range(200)))
    code, out, _ = call("look", tmp_path / "odd.csv", "--label", "y")
    assert (code, "To fix" in out, "Next:" in out) == (0, True, False)


def test_what_is_left_out_is_said_and_can_be_kept(call):
    line = ("screen", "fraud.csv", "--label", "fraud", "--top", "20")
    code, out, err = call(*line)
    assert code == 0
    assert "email is excluded: an identifier, 300 distinct texts in 300 rows; --keep email keeps it." in err
    assert "transaction_id is excluded: an identifier, it numbers the rows in ascending order;" in err
    assert "email" not in out
    assert "email" in call(*line, "--keep", "e*,trans*")[1]
    assert call(*line, "--keep", "*")[2] == ""
    assert call(*line, "--quiet")[2] == ""
    assert "merchant" not in call(*line, "--drop", "merchant,country")[1]


def test_look_in_a_terminal(call, monkeypatch):
    code, out, _ = call("look", "sensors.csv", "--label", "state")
    lines = out.splitlines()
    assert code == 0
    assert lines[:2] == [
        "sensors.csv",
        "300 rows, 8 columns, CSV with commas between values, decimal points, UTF-8",
    ]
    assert lines[2] == "columns: 2 numbers, 1 identifier, 1 time, 1 mixed, 1 constant, 1 category"
    assert re.fullmatch(r"state: \w+ [\d.]+%, \w+ [\d.]+%", lines[3])
    assert {"Excluded", "To fix"} <= set(lines)
    assert lines[-1] == "Next: tamis run sensors.csv --label state --na 1.5.2"
    monkeypatch.setenv("COLUMNS", "40")
    narrow = call("look", "sensors.csv", "--label", "state")[1].splitlines()
    assert max(map(len, narrow[:-1])) <= 40


def test_look_at_other_things(call, tmp_path):
    assert "electricity" in call("look", "--dataset", "electricity")[1]
    words = tmp_path / "words.svm"
    words.write_text("1 3:2.0 17:1.0\n-1 5:1.0\n")
    code, out, _ = call("look", words)
    assert code == 0
    assert "1.5 values are stored in each row" in out
    for content, told in ((b"", "is empty"), (b"a,y\n", "has a header but no rows")):
        (tmp_path / "bad.csv").write_bytes(content)
        code, _, err = call("look", tmp_path / "bad.csv", "--label", "y")
        assert (code, told in err, len(err.splitlines())) == (1, True, 1)


@pytest.mark.slow
def test_train_does_not_learn_a_row_by_its_own_label(call, folder):
    """An identifier that is kept says nothing: a category of one row has no relation to the class."""
    accuracy = {}
    line = ("train", "sensors.csv", "--label", "state", "--na", "1.5.2", "--json", "--quiet", "--save")
    for keep in ((), ("--keep", "id")):
        code, out, err = call(*line, folder / f"{len(keep)}.tamis", *keep)
        assert (code, err) == (0, "")
        accuracy[keep] = json.loads(out)["held_out"]["accuracy"]
    assert min(accuracy.values()) > 0.85
    assert set(tamis.load(folder / "2.tamis").categories_) == {"id", "comment"}


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 1])
def test_every_command_numbers_the_columns_of_svmlight_as_the_file_does(call, tmp_path, first):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    lines = []
    for label in y.tolist():
        cells = {j: rng.random() for j in range(12) if j == 0 or rng.random() < 0.3}
        cells[7] = label + 0.1 * rng.random()
        lines.append(f"{label} " + " ".join(f"{j + first}:{value:.3f}" for j, value in sorted(cells.items())))
    words, best = tmp_path / "words.svm", f"x{7 + first}"
    words.write_text("\n".join(lines) + "\n")
    code, out, _ = call("look", words)
    assert (code, "300 rows, 12 columns" in out) == (0, True)
    kept = tmp_path / "kept.txt"
    run = ("--batch-size", "50", "--baselines", "none", "--json", "-q", "--columns", kept, "--force")
    found = json.loads(call("run", words, "--selector", "mi", "--select", "1", *run)[1])
    assert found["selected"] == [best] == kept.read_text().split()
    assert json.loads(call("screen", words, "--json", "-q")[1])["features"][0]["feature"] == best
    assert json.loads(call("columns", words, "--json", "-q")[1])["selected"] == [best]
    model = tmp_path / "m.tamis"
    assert best in json.loads(call("train", words, "--save", model, "--json", "-q")[1])["may_ask_for"]
    assert tamis.load(model).open().next_feature == best


def test_a_decimal_mark_that_was_said_and_is_another_one_is_told(call, tmp_path):
    path = tmp_path / "said.csv"
    path.write_text("a;b;y\n" + "1,5;2,25;0\n2,5;1,75;1\n" * 30)
    code, _, err = call("run", path, "--label", "y", "--decimal", ".")
    assert code == 1
    assert "a contains '1,5', '2,5', but the decimal mark is set to .; add --decimal ,." in err
    err = call("run", path, "--decimal", ".")[2]
    corrected = shlex.split(err.rpartition("Corrected: ")[2])
    assert corrected == ["tamis", "run", str(path), "--label", "y", "--decimal", ","]
    words = shlex.split(
        json.loads(call("look", path, "--label", "y", "--decimal", ".", "--json")[1])["command"]
    )
    code, out, _ = call(*words[1:], "--selector", "fires", "--batch-size", 10, "--json")
    assert (code, json.loads(out)["summary"]["n_rows"]) == (0, 50)
