"""No command overwrites what it reads, another of its outputs, or a file that somebody else wrote."""

import json
import os
from itertools import combinations

import numpy as np
import pytest
import typer

import tamis
from tamis.cli import app, main
from tamis.cli.output import is_ours

pytest.importorskip("pyarrow")


@pytest.fixture
def here(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).round(3)
    rows = [f"{a},{b},{c},{'on' if a > 0 else 'off'}" for a, b, c in X.tolist()]
    (tmp_path / "run.csv").write_text("\n".join(["heat,light,sound,state", *rows]) + "\n")
    (tmp_path / "prices.json").write_text(json.dumps(dict.fromkeys(["heat", "light", "sound"], 0.01)))
    (tmp_path / "diary.html").write_text("<p>Dear diary</p>")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(here, capsys):
    def call(*arguments):
        code = main([str(a) for a in arguments])
        return code, *capsys.readouterr()

    return call


FILE = ("run.csv", "--label", "state")
WRITES = [
    ("run", *FILE, "--report"), ("run", *FILE, "--out"), ("run", *FILE, "--checkpoint"), ("run", *FILE, "--save"),
    ("run", *FILE, "--columns"), ("screen", *FILE, "--out"), ("screen", *FILE, "--plot"), ("columns", *FILE, "--save"),
    ("columns", *FILE, "--report"), ("columns", *FILE, "--checkpoint"), ("train", *FILE, "--save"),
    ("train", *FILE, "--report"), ("compare", *FILE, "--report"), ("compare", *FILE, "--out"),
]  # fmt: skip


@pytest.mark.parametrize("line", WRITES, ids=lambda line: f"{line[0]} {line[-1]}")
@pytest.mark.parametrize("alias", ["itself", "link", "hard link", "detour"])
def test_what_is_read_is_never_overwritten(call, here, line, alias):
    (here / "link.csv").symlink_to("run.csv")
    os.link("run.csv", "hard.csv")
    (here / "folder").mkdir()
    place = {"itself": "run.csv", "link": "link.csv", "hard link": "hard.csv", "detour": "folder/../run.csv"}[
        alias
    ]
    before = (here / "run.csv").read_bytes()
    code, out, err = call(*line, place, "--force")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"{line[-1]} {place}" in err
    assert (here / "run.csv").read_bytes() == before


STREAMED = [line for line in WRITES if line[0] != "compare" and line[-1] not in ("--checkpoint", "--out")]


@pytest.mark.parametrize(
    "line", [*STREAMED, ("screen", *FILE, "--out")], ids=lambda line: f"{line[0]} {line[-1]}"
)
def test_a_file_that_is_read_as_standard_input_is_safe(here, line, capfd):
    os.link("run.csv", "hard.csv")
    before, terminal = (here / "run.csv").read_bytes(), os.dup(0)
    with open("run.csv") as file:
        os.dup2(file.fileno(), 0)
    try:
        code = main([line[0], "-", *line[2:], "hard.csv", "--force"])
    finally:
        os.dup2(terminal, 0)
        os.close(terminal)
    out, err = capfd.readouterr()
    assert (code, out) == (2, "")
    assert (
        err == f"tamis: {line[-1]} hard.csv is the file redirected to standard input: choose another path.\n"
    )
    assert (here / "run.csv").read_bytes() == before


def options_that_write():
    """Return a command line for each command that writes, and its options that do."""
    root = typer.main.get_command(app())
    begins = {
        "demo": ("demo",), "generate": ("generate", "SEA", "--rows", "50"),
        "watch": ("watch", *FILE, "--prediction", "heat"), "retire": ("retire", *FILE, "--prediction", "heat"),
        "freeze": ("freeze", "run.csv"), "acquire": ("acquire", "run.csv"),
    }  # fmt: skip
    for name, command in root.commands.items():
        options = [option.opts[0] for option in command.params if option.metavar in ("FILE", "FOLDER")]
        if writing := [option for option in options if option.startswith("--")]:
            yield begins.get(name, (name, *FILE)), writing


def test_every_pair_of_outputs_is_two_places(call, here):
    (here / "folder").mkdir()
    (here / "here").symlink_to(here)
    pairs = [
        (line, first, second)
        for line, options in options_that_write()
        for first, second in combinations(options, 2)
    ]
    assert len(pairs) > 15
    for line, first, second in pairs:
        for place in ("new.svg", "folder/../new.svg", "here/new.svg"):
            code, out, err = call(*line, first, place, second, "new.svg", "--force")
            assert (code, out, "are the same path" in err) == (2, "", True), (line, first, second)


def test_two_names_that_differ_in_case_are_one_place_where_the_disk_says_so(call, monkeypatch):
    monkeypatch.setattr("tamis.cli.output._ignores_case", lambda folder: True)
    code, _, err = call("run", *FILE, "--report", "a.html", "--save", "A.HTML")
    assert (code, "are the same path" in err) == (2, True)


def test_no_output_is_a_file_of_another(call, here):
    (here / "results").mkdir()
    code, _, err = call("run", *FILE, "--out", "results", "--save", "results/settings.json")
    assert (code, err) == (
        2,
        "tamis: --save results/settings.json is a file of --out results: choose another path.\n",
    )
    assert call("run", *FILE, "--batch-size", "50", "--out", "results", "--report", "results/r.html")[0] == 0
    assert sorted(path.name for path in (here / "results").glob("*.html")) == ["r.html"]


@pytest.mark.parametrize("place", ["a" * 300, "a" * 245, "/proc/new"], ids=["300", "245", "proc"])
def test_a_place_that_cannot_be_written_is_told_before_the_run(call, place):
    if place == "/proc/new" and not os.path.isdir("/proc"):
        pytest.skip("no such file system")
    for line, options in options_that_write():
        for option in options:
            code, out, err = call(*line, option, f"{place}.svg")
            assert (code, out, len(err.splitlines())) == (2, "", 1), (line, option, err)
            assert "rrno" not in err


def test_other_inputs_are_safe_too(call, here):
    before = (here / "prices.json").read_bytes()
    code, _, err = call("train", *FILE, "--cost", "prices.json", "--save", "prices.json", "--force")
    assert (code, err) == (2, "tamis: --save prices.json is the input file: choose another path.\n")
    assert (here / "prices.json").read_bytes() == before
    code, _, err = call("run", *FILE, "--out", ".", "--force")
    assert (code, "contains" in err) == (2, True)


@pytest.mark.parametrize(
    ("line", "first", "second"),
    [
        (("run", *FILE, "--report", "a.html", "--save", "./a.html"), "--save", "--report"),
        (("run", *FILE, "--columns", "link", "--checkpoint", "new.tamis"), "--checkpoint", "--columns"),
        (("screen", *FILE, "--out", "a.svg", "--plot", "a.svg"), "--out", "--plot"),
        (("train", *FILE, "--save", "a", "--report", "a"), "--save", "--report"),
        (("columns", *FILE, "--save", "a", "--checkpoint", "a"), "--save", "--checkpoint"),
    ],
)
def test_two_outputs_are_two_places(call, here, line, first, second):
    (here / "link").symlink_to("new.tamis")
    code, _, err = call(*line)
    assert code == 2
    assert f"{first} and {second} are the same path" in err


@pytest.mark.parametrize(
    "line",
    [
        ("run", *FILE, "--batch-size", "50", "--report"),
        ("run", *FILE, "--batch-size", "50", "--columns"),
        ("columns", *FILE, "--report"),
        ("demo", "--report"),
        ("compare", *FILE, "--report"),
        ("train", *FILE, "--save"),
    ],
    ids=lambda line: f"{line[0]} {line[-1]}",
)
def test_a_file_of_others_is_overwritten_only_by_force(call, here, line):
    code, out, err = call(*line, "diary.html")
    assert (code, out) == (2, "")
    assert err == (
        f"tamis: {line[-1]} diary.html exists already, and is not from Tamis: choose another path, or add --force.\n"
    )
    assert (here / "diary.html").read_text() == "<p>Dear diary</p>"


@pytest.mark.slow
def test_what_tamis_wrote_is_overwritten_and_force_overwrites_the_rest(call, here):
    run = ("run", *FILE, "--batch-size", "50", "--quiet")
    outputs = ("--report", "r.html", "--save", "m.tamis", "--checkpoint", "c.tamis", "--out", "results")
    for line in (
        (*run, *outputs),
        ("screen", *FILE, "--quiet", "--out", "s.csv", "--plot", "s.svg"),
        ("screen", *FILE, "--quiet", "--plot", "s.png"),
        ("screen", *FILE, "--quiet", "--plot", "s.pdf"),
        ("columns", *FILE, "--quiet", "--save", "c2.tamis", "--report", "c.html"),
        ("generate", "SEA", "--rows", "50", "--out", "sea.csv"),
    ):
        for _ in range(2):
            code, _, err = call(*line)
            assert (code, err) == (0, ""), line
    for place in ("r.html", "m.tamis", "c.tamis", "s.csv", "s.svg", "s.png", "s.pdf", "c2.tamis", "sea.csv"):
        assert is_ours(place), place
    assert call(*run, "--report", "diary.html", "--force")[0] == 0
    assert is_ours("diary.html")
    assert not is_ours("run.csv")


def test_a_stream_is_not_written_over_data_or_over_a_strange_truth(call, here):
    assert "is not from Tamis" in call("generate", "SEA", "--rows", "50", "--out", "run.csv")[2]
    (here / "sea.truth.json").write_text('{"my": "notes"}')
    assert "sea.truth.json exists already" in call("generate", "SEA", "--rows", "50", "--out", "sea.csv")[2]


def test_models_and_names_of_a_run(call, here):
    line = ("run", *FILE, "--batch-size", "50", "--select", "1", "--save", "m.tamis", "--columns", "kept.txt")
    code, out, _ = call(*line, "--json", "--quiet")
    found = json.loads(out)
    assert (code, found["written"]) == (0, {"models": "m.tamis", "columns": "kept.txt"})
    assert (here / "kept.txt").read_text() == "".join(f"{name}\n" for name in found["selected"]) == "heat\n"
    saved = tamis.load(here / "m.tamis")
    assert saved["feature_names"] == ["heat", "light", "sound"]
    assert saved["selector"].get_support().tolist() == [True, False, False]
    X, y = tamis.open_file("run.csv", label="state").take(200)
    assert np.mean(saved["learner"].predict(np.where(saved["selector"].get_support(), X, 0.0)) == y) > 0.8


def test_a_run_on_standard_input_has_no_checkpoint(call):
    code, out, err = call("run", "-", "--label", "y", "--checkpoint", "c.tamis")
    assert (code, out) == (2, "")
    assert "--checkpoint cannot resume standard input" in err
