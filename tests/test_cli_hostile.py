"""A file whose labels, values, column names and own name contain escape sequences, in the hands of every command."""

import io
import re

import numpy as np
import pytest

from tamis.cli import app, main
from tamis.cli.output import note, terminal

pytest.importorskip("pyarrow")
typer = pytest.importorskip("typer")

COMMANDS = typer.main.get_command(app()).commands
FILE = "sen\x1b[31msors\x07.csv"
HEAT, LIGHT, SOUND, COLOUR = "heat\x1b[2J", "light\x9b31m", "so\u202eund", "<b>col\x1b]52;c;aGk=\x07our"
STATE = "sta\x1b]0;owned\x07te"
ON, OFF = "on\x1b[1A", "o\x9b2Kff"
# What a terminal obeys, or takes for the direction of the text.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

TABLE = [FILE, "--label", STATE]
LINES = {
    "look": [TABLE, [*TABLE, "--json"], [FILE], [*TABLE, "--drop", "no\x1b[2Jcolumn"]],
    "run": [
        [*TABLE, "--report", "run\x07.html", "--save", "run\x07.tamis"],
        [*TABLE, "--force", "--json"],
        ["no\x1b[2Jfile.csv", "--label", STATE],
        [FILE, "--label", "no\x1b[2Jlabel"],
        [*TABLE, "--selector", "no\x1b[2Jselector"],
        [*TABLE, "--drop", HEAT, "--drop", "no\x1b[2Jcolumn", "--debug"],
    ],
    "recommend": [[*TABLE, "--report", "recommend\x07.html"]],
    "compare": [
        [*TABLE, "--selector", "fires", "--selector", "fisher", "--report", "compare\x07.html"],
        [*TABLE, "--selector", "fires", "--out", "cel\x07ls"],
    ],
    "screen": [[*TABLE, "--report", "screen\x07.html", "--out", "screen\x07.csv"]],
    "columns": [[*TABLE, "--report", "columns\x07.html"], [*TABLE, "--json"]],
    "train": [[*TABLE, "--save", "model\x07.tamis"]],
    "acquire": [["model\x07.tamis"], ["model\x07.tamis", "--json"]],
    "follow": [[FILE, "--label", STATE, "--idle", "0", "--every", "100", "--report", "follow\x07.html"]],
    "watch": [[*TABLE, "--prediction", HEAT], [*TABLE, "--prediction", "no\x1b[2Jcolumn"]],
    "retire": [[*TABLE, "--prediction", HEAT], [*TABLE, "--prediction", "no\x1b[2Jcolumn"]],
    "freeze": [["no\x1b[2Jmodel", "--out", "frozen\x07.joblib"]],
    "generate": [["SEA", "--rows", "20", "--out", "ma\x1b[31mde.csv"], ["SE\x1b[2JA", "--out", "x.csv"]],
    "list": [[]],
    "warm-up": [["no\x1b[2Jmethod"]],
    "datasets": [[]],
    "demo": [["--no\x1b[2Joption"]],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    names = (HEAT, LIGHT, SOUND, COLOUR, STATE)
    lines = [",".join(names)]
    for a, b, c in rng.normal(size=(300, 3)).round(3).tolist():
        colour, state = ("re\x1b[7md", "blue")[b > 0], (ON, OFF)[a > 0]
        lines.append(f"{a},{b},{c},{colour},{state}")
    folder = tmp_path_factory.mktemp("hostile")
    (folder / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def call(folder, monkeypatch, capfd):  # follow writes past sys.stdout
    monkeypatch.chdir(folder)

    def call(command, line, said=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(said))
        main([command, *line])
        return capfd.readouterr()

    return call


def test_every_command_is_tried():
    assert set(LINES) == set(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("command", LINES)
def test_no_escape_sequence_reaches_the_terminal(call, folder, command):
    if command == "acquire":
        call("train", LINES["train"][0])
    for line in LINES[command]:
        said = '{"value": 1}\n' * 3 if "--json" in line else "1\n" * 5
        out, err = call(command, line, said)
        assert out + err, line
        assert not OBEYED.search(out), (line, out)
        assert not OBEYED.search(err), (line, err)


@pytest.mark.parametrize("command", ["run", "recommend", "compare", "screen", "columns", "follow"])
def test_no_name_is_markup_in_a_report(call, folder, command):
    call(command, LINES[command][0])
    page = (folder / f"{command}\x07.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;col" in page or command == "recommend"  # which names no column
    assert "<b>col" not in page


def test_the_codes_of_the_console_itself_remain(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal().print("\x1b[2Jred\x07", style="red", markup=False)
    note("on\x1b[2J")
    out, err = capsys.readouterr()
    assert out == "\x1b[31m?[2Jred\x1b[0m\n"  # rich itself drops the bell
    assert err == "tamis: on?[2J\n"
