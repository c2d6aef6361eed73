"""The command line in the hands of a stranger: any option, any wrong word, any place to write to."""

import io
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from tamis.cli import app, main

pytest.importorskip("pyarrow")
typer = pytest.importorskip("typer")

ROOT = typer.main.get_command(app())
FILE = ["table.csv", "--label", "state"]
USUAL = {
    "look": FILE, "run": FILE, "compare": FILE, "screen": FILE, "columns": FILE, "train": [*FILE, "--save", "m.tamis"],
    "generate": ["SEA", "--rows", "20", "--out", "made.csv"],
}  # fmt: skip
ANYTHING = ("--na",)  # any word may stand for a missing value


@pytest.fixture
def here(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).round(3)
    rows = [f"{a},{b},{c},{'on' if a + e > 0 else 'off'}" for a, b, c, e in X.tolist()]
    (tmp_path / "table.csv").write_text("\n".join(["heat,light,sound,state", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def options():
    """Yield each option of each command that takes a value."""
    for name, command in ROOT.commands.items():
        for option in command.params:
            if option.param_type_name == "option" and not option.is_flag and option.opts[0] not in ANYTHING:
                yield pytest.param(name, option, id=f"{name} {option.opts[0]}")


@pytest.mark.parametrize(("command", "option"), list(options()))
def test_a_wrong_value_is_one_sentence_at_once_and_writes_nothing(here, capsys, command, option):
    name, line = option.opts[0], list(USUAL.get(command, []))
    if name in line:
        at = line.index(name)
        del line[at : at + 2]
    places = {"FILE": ["no/such/folder"], "FOLDER": ["table.csv"]}
    for value in places.get(option.metavar, ["non\x01sense", "1e999"]):
        before, began = sorted(os.listdir(here)), time.process_time()
        code = main([command, *line, name, value])
        out, err = capsys.readouterr()
        if value == "1e999" and code == 0:
            assert name in ("--half-life", "--max-seconds")  # which may be without end
            continue
        assert (code, out) == (2, ""), err
        assert len(err.splitlines()) == 1, err
        assert err.startswith("tamis: ")
        assert "unexpected" not in err
        assert sorted(os.listdir(here)) == before
        assert time.process_time() - began < 5


@pytest.mark.parametrize("command", sorted(set(USUAL) - {"generate"}))
@pytest.mark.parametrize("kind", ["missing", "empty", "folder", "unreadable", "binary", "one line"])
def test_what_cannot_be_read_is_one_sentence(here, capsys, command, kind):
    path = here / "odd.csv"
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        contents = {"binary": bytes(range(256)) * 50, "one line": b"heat,light,sound,state\n"}
        path.write_bytes(contents.get(kind, b"" if kind == "empty" else (here / "table.csv").read_bytes()))
    if kind == "unreadable":
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("this user may read everything")
    line = [command, "odd.csv", *USUAL[command][1:]]
    code = main(line)
    out, err = capsys.readouterr()
    assert (code in (1, 2), out, len(err.splitlines())) == (True, "", 1), err
    assert "odd.csv" in err
    assert "unexpected" not in err


@pytest.mark.parametrize("selector", ["auto", "fires"])
def test_a_label_of_one_class_is_told(here, capsys, selector):
    text = (here / "table.csv").read_text().replace(",off", ",on")
    (here / "table.csv").write_text(text)
    assert main(["run", *FILE, "--selector", selector, "--report", "run.html", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert "Every row has the same label" in " ".join(out.split())
    assert "unexpected" not in err
    assert "Every row has the same label" in (here / "run.html").read_text(encoding="utf-8")


def test_a_file_is_not_given_as_a_stream(here, capsys):
    assert main(["compare", "--stream", "table.csv", "--label", "state"]) == 2
    assert capsys.readouterr().err == (
        "tamis: --stream table.csv is a file: give it without --stream, and its label with --label.\n"
    )


def run(here, line, **more):
    environment = {**os.environ, "PYTHONUNBUFFERED": "", **more.pop("env", {})}
    command = [sys.executable, "-m", "tamis", *line] if isinstance(line, list) else ["bash", "-c", line]
    return subprocess.run(
        command, cwd=here, env=environment, capture_output=True, text=True, check=False, **more
    )


@pytest.mark.slow
def test_a_full_disk_is_one_sentence(here):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    for line in (
        "datasets",
        "list --json",
        "look table.csv --label state",
        "generate SEA --rows 5000 --out -",
    ):
        done = run(here, f"{sys.executable} -m tamis {line} > /dev/full")
        assert done.returncode == 1, line
        assert (
            done.stderr
            == "tamis: cannot write to standard output (No space left on device): free some space there.\n"
        )


@pytest.mark.slow
def test_who_stops_reading_hears_no_complaint(here):
    for line in (
        "list",
        "datasets --json",
        "look table.csv --label state",
        "generate SEA --rows 20000 --out -",
    ):
        done = run(here, f"set -o pipefail; {sys.executable} -m tamis {line} | head -1")
        assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 1), line


def test_colours_only_where_they_are_wanted(here, monkeypatch, capsys):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    code, out = main(["look", *FILE]), capsys.readouterr().out
    assert (code, "\x1b" in out) == (0, False)
    assert max(map(len, out.splitlines()[:-1])) <= 60
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    for width in ("", "0", "nonsense", "20"):
        monkeypatch.setenv("COLUMNS", width)
        assert (main(["look", *FILE]), capsys.readouterr().err) == (0, ""), width


@pytest.mark.slow
def test_all_is_said_as_one_json_document(here, monkeypatch, capsys):
    import json

    lines = [
        ["list"], ["list", "fires"], ["datasets"], ["look", *FILE], ["screen", *FILE], ["columns", *FILE],
        ["train", *FILE, "--save", "m.tamis"], ["run", *FILE, "--batch-size", "30", "--baselines", "none"],
        ["compare", *FILE, "--batch-size", "30", "--seeds", "1", "--selector", "mi", "--baselines", "none"],
        ["generate", "SEA", "--rows", "20", "--out", "made.csv"],
    ]  # fmt: skip
    for line in lines:
        assert main([*line, "--json", "--quiet"]) == 0, line
        out, err = capsys.readouterr()
        assert json.loads(out), line
        assert err == "", line
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"value": 1.0}\n{"stop": true}\n'))
    assert main(["acquire", "m.tamis", "--json", "--quiet"]) == 0
    assert [json.loads(line)["finished"] for line in capsys.readouterr().out.splitlines()][-1] is True


SEVERAL = ("run", "recommend", "screen", "compare", "follow")


@pytest.mark.parametrize("command", [name for name in ROOT.commands if name not in SEVERAL])
def test_one_label_of_several_is_not_dropped(here, capsys, command):
    if not any(one.name == "label" for one in ROOT.commands[command].params):
        pytest.skip("it has no label")
    code = main([command, "table.csv", "--label", "state", "--label", "heat"])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err == (
        f"tamis: --label is given 2 times: give it once to {command}; run, recommend, screen, compare and follow"
        " take several labels.\n"
    )
