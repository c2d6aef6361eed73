import base64
import io
import os
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from tamis import FIRES, ForwardPartialCorrelation, prequential
from tamis.report import check_writable
from tamis.report import write_page as write_report
from tamis.report.page import render_page as page
from tamis.streams import ArrayStream
from tests.report.runs import make_run, settings, with_truth

VOID = {"meta", "link", "br", "hr", "img", "input"}
EVIL = [
    '<script>alert("1")</script>',
    "a & b",
    "x" * 500,
    "",
    "ünï — 特徴 😀",
    "\x00\x1b[31m\ud800",
    "'\"><b>",
    "]]>",
]


class Reader(HTMLParser):
    """Reads a page as a browser does, and insists that every tag is closed where it was opened."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


RUNS = {
    "usual": make_run(
        450, 8, 4, ["date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]
    ),
    "no step": make_run(0),
    "one step": make_run(1),
    "two steps": make_run(2),
    "one feature": make_run(30, 1, 1),
    "wide": make_run(50, 10_000, 1000),
    "known truth": with_truth(make_run(200, 8, 3, churn=0.3)),
    "evil names": make_run(30, len(EVIL), 3, EVIL, churn=1.0),
}


@pytest.fixture(params=RUNS.values(), ids=RUNS)
def run(request):
    return request.param


def test_page_is_well_formed(run):
    source = page(run)
    reader = Reader(source)
    charts = re.findall(r'<svg class="plot".*?</svg></svg>', source, flags=re.DOTALL)
    for chart in charts:
        ElementTree.fromstring(chart)
    assert len(charts) == sum("plot" in attrs.get("class", "") for attrs in reader.all("svg"))
    assert ("no step" in RUNS and run is RUNS["no step"]) == (charts == [])


def test_page_asks_for_nothing_from_outside(run):
    reader = Reader(page(run))
    assert reader.all("script") == []
    links = [
        attrs[key] for _, attrs in reader.tags for key in ("src", "href", "srcset", "action") if key in attrs
    ]
    assert all(link.startswith(("#", "data:")) for link in links)
    style = re.search(r"<style>(.*?)</style>", page(run), flags=re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search(r"https?:", re.sub(r"<pre>.*?</pre>", "", page(run), flags=re.DOTALL))


def test_names_and_titles_are_text_only():
    run = RUNS["evil names"]
    reader = Reader(page(run, title="<i>my & run</i>"))
    assert "i" not in {tag for tag, attrs in reader.tags if not attrs}
    assert reader.all("script") == []
    assert '<script>alert("1")</script>' in reader.text
    assert "<i>my & run</i>" in reader.text
    assert "x" * 60 not in reader.text  # shortened
    assert "\x00" not in page(run)
    page(run).encode("utf-8")


def test_anchors_ids_and_labels_meet(run):
    reader = Reader(page(run))
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = [attrs["href"][1:] for attrs in reader.all("a")]
    assert targets
    named = [name for _, attrs in reader.tags for name in attrs.get("aria-labelledby", "").split()]
    assert set(targets) | set(named) <= set(ids)


def test_page_can_be_read_out(run):
    reader = Reader(page(run))
    assert reader.all("html") == [{"lang": "en"}]
    assert all("scope" in attrs for attrs in reader.all("th"))
    assert len(reader.all("caption")) == len(reader.all("table"))
    charts = [attrs for attrs in reader.all("svg") if "plot" in attrs.get("class", "")]
    assert all(attrs["role"] == "img" and "aria-labelledby" in attrs for attrs in charts)
    assert all(
        "aria-hidden" in attrs for attrs in reader.all("svg") if attrs.get("class") not in ("plot", "marks")
    )


def test_same_run_same_page(run):
    assert page(run) == page(run)


def test_headline_numbers_are_the_last_of_the_run():
    run = RUNS["usual"]
    text = Reader(page(run)).text
    steps = run.frames["steps"]
    for name in ("accuracy_cumulative", "kappa_cumulative", "balanced_accuracy_cumulative"):
        assert f"{steps[name][-1]:.3f}" in text
    assert f"Mean stability {np.nanmean(steps['stability']):.3f} latest {steps['stability'][-1]:.3f}" in text
    assert "Features selected 4 of 8 at every step" in text
    assert "45,000 rows were predicted in 450 batches" in text


def test_map_image_says_when_each_feature_was_kept():
    image = pytest.importorskip("matplotlib.image")
    run = make_run(40, 6, 2, churn=0.6)
    [source] = re.findall(r'href="data:image/png;base64,([^"]+)"', page(run))
    opacity = image.imread(io.BytesIO(base64.b64decode(source)), format="png")[:, :, 3]
    events = run.frames["changes"]
    sets = np.zeros((6, 40))
    for step, feature, event in zip(events["step"], events["feature"], events["event"], strict=True):
        sets[feature, step:] = event == "enter"
    names = re.findall(r'<li title="x(\d)">', page(run))
    np.testing.assert_array_equal(opacity, sets[[int(j) for j in names]])


def test_interrupted_run_says_so_at_the_top():
    assert "interrupted" not in Reader(page(RUNS["usual"])).text
    text = Reader(page(make_run(7, interrupted=True))).text
    assert "This run was interrupted: the figures cover the 7 batches before the interruption." in text


def test_run_without_selector_shows_what_there_is():
    run = make_run(20)
    run.settings["selector"] = None
    run.frames["changes"] = {name: column[:0] for name, column in run.frames["changes"].items()}
    run.frames["scores"] = {name: column[:0] for name, column in run.frames["scores"].items()}
    run.frames["steps"]["stability"] = np.full(20, np.nan)
    reader = Reader(page(run))
    assert [attrs["id"] for attrs in reader.all("section")] == ["accuracy", "costs", "words", "repeat"]
    assert "Without a selector, the learner used every feature." in reader.text
    assert "nan" not in reader.text.lower()


def test_what_is_known_of_the_truth_is_shown():
    reader = Reader(page(RUNS["known truth"]))
    assert "truth" in [attrs["id"] for attrs in reader.all("section")]
    assert "Selection accuracy 0.795 75 % of the relevant features selected, 90 % of" in reader.text
    assert "dotted: true drifts" in reader.text
    table = reader.text.split("After each true drift")[1]
    assert "10,200" in table
    assert "not recovered" in table
    assert "truth" not in [attrs["id"] for attrs in Reader(page(RUNS["usual"])).all("section")]


def test_baselines_stand_beside_the_accuracy():
    text = Reader(page(RUNS["usual"])).text
    assert "majority class 0.575, no-change baseline 0.853" in text


def test_run_without_scores_says_so():
    run = make_run(20)
    del run.frames["scores"]
    assert "has no scores" in Reader(page(run)).text


def test_gap_breaks_the_line():
    run = make_run(50)
    run.frames["steps"]["accuracy_windowed"][20:30] = np.nan
    [line] = re.findall(r'<path class="line s1" d="([^"]*)"><title>last', page(run))
    assert line.count("M") == 2


def test_long_and_wide_run_makes_a_small_page(tmp_path):
    path = write_report(make_run(10_000, 10_000, 100, churn=1.0), tmp_path / "run.html")
    assert 20_000 < path.stat().st_size < 100_000


def test_very_long_run():
    source = page(make_run(100_000, 50, 10, churn=0.2, n_tracked=5))
    assert len(source) < 100_000
    assert "10,000,000 rows were predicted in 100,000 batches" in Reader(source).text


# -- the file ----------------------------------------------------------------------------------------------


def test_file_is_replaced_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "run.html"
    path.write_text("old")
    assert write_report(RUNS["one step"], str(path)) == path
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    path.write_text("old")
    with pytest.raises(ValueError, match=r"run.html': No space left on device; choose another path\.$"):
        write_report(RUNS["one step"], path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "run.html"
    link.symlink_to(tmp_path / "there" / "real.html")
    write_report(RUNS["one step"], link)
    assert link.is_symlink()
    assert (tmp_path / "there" / "real.html").stat().st_size > 1000


def test_check_leaves_no_trace(tmp_path):
    check_writable(tmp_path / "run.html")
    (tmp_path / "old.html").write_text("old")
    check_writable(tmp_path / "old.html")
    assert [path.name for path in tmp_path.iterdir()] == ["old.html"]
    assert (tmp_path / "old.html").read_text() == "old"


def test_unwritable_path_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for path, reason in (
        (tmp_path, "this is a folder; add the name of a file"),
        (tmp_path / "no" / "run.html", "does not exist; create it first"),
        (tmp_path / "file" / "run.html", "does not exist; create it first"),
        (tmp_path / "pipe", "not a regular file"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(ValueError, match=reason) as error:
            check_writable(path)
        assert repr(str(path)) in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.skipif(
    not Path("/proc/self").is_dir(), reason="no file system here that refuses new files even to root"
)
def test_read_only_place_is_refused():
    with pytest.raises(ValueError, match=r"Cannot write the report ./proc/run\.html"):
        check_writable("/proc/run.html")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="Permission denied"):
        check_writable(tmp_path / "run.html")


def test_settings_are_all_there():
    run = make_run(3)
    assert settings()["stream"]["fingerprint"] in Reader(page(run)).text


def test_a_selector_that_tells_why_has_a_section(tmp_path):
    rng = np.random.default_rng(0)
    signals = rng.normal(size=(1500, 2))
    X = np.hstack([signals[:, [0, 0, 0, 1]] + 0.1 * rng.normal(size=(1500, 4)), rng.normal(size=(1500, 3))])
    stream = ArrayStream(X, 2 * signals[:, 0] + signals[:, 1] > 0, feature_names=list("abcdefg"))
    result = prequential(stream, ForwardPartialCorrelation(2), baselines="none")
    frame = result.frames["reasons"]
    copy = next(j for j in range(3) if not frame["selected"][j])
    assert frame["redundant_to"][copy] in "abc"
    assert frame["alone"][copy] > 5 * frame["added"][copy]
    page = result.report(tmp_path / "run.html").read_text(encoding="utf-8")
    section = page.split('id="reasons"')[1].split("</section>")[0]
    assert "Relevance and redundancy" in section
    again = type(result).load(result.save(tmp_path / "saved"))
    assert {key: column.tolist() for key, column in again.frames["reasons"].items()} == {
        key: column.tolist() for key, column in frame.items()
    }
    other = prequential(stream, FIRES(2), baselines="none")
    assert 'id="reasons"' not in other.report(tmp_path / "run.html").read_text(encoding="utf-8")


def test_a_page_explains_the_terms_that_it_uses_as_the_documentation_does():
    from tamis.report.page import VOCABULARY
    from tests.test_house import ROOT

    text = (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8")
    for term, meaning in VOCABULARY.items():
        assert f"| {term} | {meaning} |" in text
    assert text.count("\n| ") == len(VOCABULARY) + 2

    class Result:
        def verdict(self):
            return "The frozen selection is better."

    shown = page(Result())
    assert f"<dt>frozen</dt><dd>{VOCABULARY['frozen']}</dd>" in shown
    assert "<dt>kappa</dt>" not in shown
