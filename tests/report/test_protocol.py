"""One protocol: a class defined here is drawn as a page, in a terminal and in a notebook, and so is every result."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tamis.cli import main
from tamis.report import Chart, Figure, Remark, Reproduction, Result, Section, Table, write_page
from tamis.report.charts.chart import HeatStrip, Line, axis
from tamis.report.content import Group, Meter, Names, Score
from tamis.terminal import show

ROOT = Path(__file__).resolve().parents[2]
VERDICT = (
    "The selection pays: 3 of 5 <features> suffice, +0.100 against all (95 % interval +0.050 to +0.150)."
)


class Tasting(Result):
    """A kind of result that nothing in the package knows."""

    def heading(self):
        return "Tasting of <b>tea</b>"

    def verdict(self):
        return VERDICT

    def about(self):
        return "40 cups"

    def headline(self):
        return [Figure("Cups", "40", "of two teas")]

    def remarks(self):
        return ["The water was cold.", Remark("Rows are cups.", "note")]

    def sections(self):
        cells = [Names(["<green>"]), Meter(50.0, "50 %"), Score("0.812", "0.010", is_best=True)]
        table = Table(
            "Scores", [("long", "tea"), ("share", "share"), ("n", "score")], [cells], "By cup.", is_main=True
        )
        x, y = axis(0.0, 4.0), axis(0.0, 1.0)
        line = Line(np.arange(5.0), np.linspace(0, 1, 5), "warmth")
        chart = Chart("war", "Warmth", "by minute", "It rises.", x, y, [line], is_main=True)
        shares = np.array([[0.0, 1.0], [1.0, 0.0]])
        palette = np.array([[0, 0, 0, 0], [0, 0, 255, 255]], np.uint8)
        strip = HeatStrip(shares.astype(np.uint8), palette, 0.0, 4.0, {}, shares)
        rows = Chart(
            "cup", "Cups", "", "Who drank.", x, None, [strip], rows=["ann", "bob"], shares=["50 %", "50 %"],
            chosen=[False, True], row_height=20, is_main=True,
        )  # fmt: skip
        return [
            Section("a", "Scores", ["A sentence.", table]),
            Section("b", "Charts", [Group([chart]), rows]),
        ]

    def reproduce(self):
        return Reproduction("tea --cups 40", "tea(cups=40)", {"cups": 40})


class Plain:
    """The same protocol without the base class."""

    def verdict(self):
        return VERDICT

    def tables(self):
        return [Table("Counts", [("", "side"), ("n", "count")], [["heads", "12"]], is_main=True)]

    def charts(self):
        return [
            Chart(
                "c", "Course", "", "", axis(0.0, 1.0), axis(0.0, 1.0), [Line(np.arange(2.0), np.arange(2.0))]
            )
        ]

    def remarks(self):
        return ["Few tosses."]

    def reproduce(self):
        return Reproduction(python="toss(12)")


def in_terminal(result, width=100, encoding="utf-8", **options):
    buffer = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    show(Console(file=buffer, width=width, _environ={}, highlight=False), result, **options)
    buffer.flush()
    return buffer.buffer.getvalue().decode(encoding)


def test_a_new_kind_of_result_has_a_page():
    page = Tasting().report()
    text = page.partition("<body>")[2]
    assert "<h1>Tasting of &lt;b&gt;tea&lt;/b&gt;</h1>" in page
    assert "<green>" not in page
    places = [text.index(part) for part in (
        "The selection pays: 3 of 5 &lt;features&gt;", "40 cups", "The water was cold.", "<dt>Cups</dt>", "A sentence.",
        "0.812", "By cup.", "Warmth", "cup-t", "tea --cups 40", "tea(cups=40)", "&#34;cups&#34;: 40",
    )]  # fmt: skip
    assert places == sorted(places)
    assert 'class="alert note" role="note">Rows are cups.' in page


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [40, 100])
def test_a_new_kind_of_result_is_shown_in_a_terminal(encoding, width):
    shown = in_terminal(Tasting(), width, encoding)
    assert max(map(len, shown.splitlines())) <= width
    words = " ".join(shown.split())
    places = [words.index(part) for part in (
        "Tasting of <b>tea</b>", "The selection pays: 3 of 5 <features>", "40 cups", "The water was cold.", "Cups 40",
        "Scores", "bob",
    )]  # fmt: skip
    assert places == sorted(places)
    assert words.index("bob") < words.index("ann")  # chosen at the end
    assert ("▁" in shown) == (encoding == "utf-8")


def test_a_new_kind_of_result_is_shown_in_a_notebook():
    html = Tasting()._repr_html_()
    assert html.startswith("<b>Tasting</b> The selection pays: 3 of 5 &lt;features&gt;")
    for part in (
        "40 cups",
        "The water was cold.",
        "<th>Cups</th><td>40</td>",
        "&lt;green&gt;",
        "0.812 ± 0.010",
    ):
        assert part in html
    frame = Tasting().report()._repr_html_()
    assert frame.startswith("<iframe")


def test_a_new_kind_of_result_has_a_figure():
    pytest.importorskip("matplotlib")
    assert [axes.get_title(loc="left") for axes in Tasting().plot().axes] == ["Warmth", "Cups"]
    assert [table.title for table in Tasting().tables()] == ["Scores"]
    assert [chart.key for chart in Tasting().charts()] == ["war", "cup"]


def test_five_methods_suffice(tmp_path):
    page = write_page(Plain(), tmp_path / "plain.html", command="toss").read_text(encoding="utf-8")
    for part in (
        "<h1>Plain</h1>",
        "The selection pays",
        "Few tosses.",
        "heads",
        "Course",
        "toss(12)",
        ">toss<",
    ):
        assert part in page
    shown = in_terminal(Plain(), title="A coin")
    assert shown.startswith("A coin\n")
    assert "heads" in shown


def test_a_result_without_a_verdict_names_its_class():
    class Mute(Result):
        pass

    with pytest.raises(NotImplementedError, match=r"Mute must define verdict\(\)"):
        Mute().report()


# -- the keys of --json, and what each command shows -----------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    state = np.where(X[:, 0] + 0.5 * rng.normal(size=900) > 0, "on", "off")
    log = np.column_stack([X, 1 / (1 + np.exp(-X[:, 0])), state == "on"])
    for name, head, rows in (("a", "heat,light,sound,dust,state", np.column_stack([X.round(3), state])),
                             ("log", "heat,light,sound,dust,p,state", log.round(3))):  # fmt: skip
        (folder / f"{name}.csv").write_text(
            "\n".join([head, *(",".join(map(str, row)) for row in rows.tolist())]) + "\n"
        )
    train = ["train", str(folder / "a.csv"), "--label", "state", "--method", "fixed-subset", "--quiet"]
    assert main([*train, "--save", str(folder / "ward.tamis")]) == 0
    return folder


COMMANDS = {
    "run": ("a.csv", "--label", "state", "--selector", "fisher", "--select", "2", "--learner", "logistic"),
    "compare": ("a.csv", "--label", "state", "--selector", "fisher", "--selector", "none", "--seeds", "1"),
    "recommend": ("a.csv", "--label", "state", "--learner", "logistic"),
    "screen": ("a.csv", "--label", "state"),
    "columns": ("a.csv", "--label", "state"),
    "train": ("a.csv", "--label", "state", "--method", "fixed-subset", "--save", "m.tamis", "--force"),
    "acquire": ("ward.tamis", "a.csv", "--label", "state"),
    "watch": ("log.csv", "--label", "state", "--prediction", "p"),
    "retire": ("log.csv", "--label", "state", "--prediction", "p"),
}
OPTIONAL = {
    "train": {"candidates", "currency", "missingness"},
    "run": {"targets", "by_target", "price"},
    "compare": {"mean"},
    "screen": {"targets", "by_target", "price", "selected"},
    "recommend": {"targets", "by_target", "commands", "price", "selected"},
}


def documented():
    """Return the keys of each command in the table of the documentation."""
    keys = {command: set() for command in COMMANDS}
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8").partition("| key | commands | value |")[2]
    for line in text.split("\n\n")[0].splitlines()[2:]:
        names, commands, value = line.strip("| ").split(" | ")
        assert value
        for command in COMMANDS if commands == "all" else commands.split(", "):
            keys[command] |= set(re.findall(r"`(\w+)`", names))
    return keys


@pytest.mark.parametrize("command", COMMANDS)
def test_every_key_of_json_is_documented(files, monkeypatch, capsys, command):
    monkeypatch.chdir(files)
    assert main([command, *COMMANDS[command], "--json", "--quiet"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) | OPTIONAL.get(command, set()) == documented()[command]
    assert document["verdict"].endswith(".")
    assert "nan" not in document["verdict"].lower()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_its_verdict_first(files, monkeypatch, capsys, command):
    monkeypatch.chdir(files)
    assert main([command, *COMMANDS[command], "--json", "--quiet"]) == 0
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    report = [] if command == "train" else ["--report", "page.html", "--force"]
    assert main([command, *COMMANDS[command], "--quiet", *report]) == 0
    shown = capsys.readouterr().out
    assert " ".join(verdict.split()) in " ".join(shown.split())
    if report:
        page = Path("page.html").read_text(encoding="utf-8")
        start = page.index('<p class="verdict">')
        assert page.index("<h1>") < start < page.index("<nav")
