"""The committed pictures of the documentation: drawn from the present sources, all shown, and still drawable."""

import re
import subprocess
import sys

import pytest

from tests.test_house import ROOT

pytest.importorskip("matplotlib")
sys.path.insert(0, str(ROOT / "docs"))
import draw
import gallery

FIGURES = [name for name in draw.checksums() if not name.startswith("tutorials/")]


def test_each_picture_is_drawn_from_the_present_source():
    present, drawn = draw.checksums(), draw.drawn()
    stale = sorted(name for name in present if drawn.get(name) != present[name])
    assert not stale, f"run `python docs/draw.py`, which draws {stale}"
    assert set(drawn) == set(present)


def test_pages_show_each_picture_in_both_styles():
    pages = [
        page for folder in (".", "tutorials", "evidence") for page in (ROOT / "docs" / folder).glob("*.md")
    ]
    shown = {
        name
        for page in pages
        for name in re.findall(r"pictures/(\w+\.png)", page.read_text(encoding="utf-8"))
    }
    files = {path.name for path in draw.PICTURES.glob("*.png")}
    assert shown == files
    assert {name.rpartition("_")[0] for name in files} >= {name.partition(".")[2] for name in FIGURES}
    assert {name.rpartition("_")[2] for name in files} == {"light.png", "dark.png"}


def test_a_changed_figure_is_stale_and_its_neighbours_are_not(tmp_path, monkeypatch):
    (tmp_path / "figures").mkdir()
    module = tmp_path / "figures" / "two.py"
    (tmp_path / "figures" / "canvas.py").write_text("GREY = 1\n", encoding="utf-8")
    text = "import os\nN = 1\ndef one() -> Draw:\n    return 1\ndef other() -> Draw:\n    return 2\n"
    monkeypatch.setattr(draw, "DOCS", tmp_path)

    def sums(text):
        module.write_text(text, encoding="utf-8")
        return draw.checksums()

    before = sums(text)
    assert set(before) == {"two.one", "two.other"}
    assert sums(text.replace("import os", "import sys  # why")) == before
    after = sums(text.replace("return 2", "return 3"))
    assert (after["two.one"], after["two.other"]) != (before["two.one"], before["two.other"])
    assert after["two.one"] == before["two.one"]
    assert not set(sums(text.replace("N = 1", "N = 2")).values()) & set(before.values())


def test_the_gallery_has_a_program_for_each_picture(tmp_path):
    pictures = [picture for section in gallery.gallery().values() for picture in section]
    files = {path.name.rpartition("_")[0] for path in draw.PICTURES.glob("*.png")}
    assert sorted(picture.name for picture in pictures) == sorted(files)
    drawn = {name.partition(".")[2] for name in FIGURES}
    for picture in pictures:
        if picture.name not in drawn:
            continue  # a tutorial, which runs block by block
        (tmp_path / f"{picture.name}.py").write_text(picture.program, encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F821,E9", str(tmp_path)]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_each_program_of_the_gallery_draws_its_picture(name, tmp_path, monkeypatch):
    from matplotlib import pyplot as plt

    module, _, figure = name.partition(".")
    monkeypatch.chdir(tmp_path)
    exec(gallery.program(draw.DOCS / "figures" / f"{module}.py", figure), {"__name__": "gallery_program"})
    assert plt.gcf().axes
    assert (tmp_path / f"{figure}.png").stat().st_size > 5000
    plt.close("all")
