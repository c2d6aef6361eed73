"""The report on features that arrived: what the trace tells, a page that shows what it is told, the same as figures."""

import re

import numpy as np
import pytest

from tamis import OSFS, AlphaInvesting, FastOSFS, ForwardStepwise, Grafting, OFSDensity, PenalisedSelector
from tamis.columns.result import ColumnsResult
from tamis.report import Remark, Reproduction


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 80))
    X[:, 5] = 1.0
    X[:, 60] = 2 * X[:, 3]
    return X, X[:, 3] - X[:, 30] + 0.5 * rng.normal(size=150)


@pytest.fixture(scope="module")
def selector(data):
    X, y = data
    selector = AlphaInvesting(target_fdr=0.05).start(y)
    selector.offer_many(X, [f"<b>{j}</b>" for j in range(80)])
    return selector


def test_course_is_the_trace(selector):
    course, trace = ColumnsResult(selector), selector.trace_
    assert course.counts() == {"rejected": 76, "accepted": 2, "constant": 1, "collinear": 1}
    np.testing.assert_allclose(10.0**-course.evidence, trace["p_value"])
    np.testing.assert_allclose(10.0**-course.bar, trace["threshold"])
    assert course.kept.tolist() == [3, 30]
    standing = course.standing(course.wealth)
    assert standing[5] == trace["wealth"][4]
    near = course.near_misses(3)
    ratio = np.where(trace["decision"] == "rejected", trace["p_value"] / trace["threshold"], np.inf)
    assert near.tolist() == np.argsort(ratio)[:3].tolist()
    best = course.best_refused(10)
    assert len(best) == 10
    assert trace["p_value"][best].min() == trace["p_value"][trace["decision"] == "rejected"].min()


def test_what_left_again_is_told_apart(data):
    y = data[1]
    rng = np.random.default_rng(1)
    state = (y > 0).astype(int)
    X = np.column_stack(
        [y + rng.normal(size=150), y + 0.5 * rng.normal(size=150), y, y + 0.01 * rng.normal(size=150)]
    )
    selector = FastOSFS().fit(X, state)
    course = ColumnsResult(selector)
    n_accepted = course.counts()["accepted"]
    assert len(course.dropped()) == n_accepted - len(selector.selected_) > 0
    assert course.redundant().sum() == course.counts().get("rejected", 0)
    page = ColumnsResult(selector).report()
    assert "dropped later" in page
    assert "Near misses" not in page


@pytest.mark.parametrize(
    ("make", "evidence"),
    [
        (lambda: PenalisedSelector("bic"), "Gain"),
        (lambda: ForwardStepwise("bic"), "Gain"),
        (lambda: OSFS(), "P-value"),
        (lambda: OFSDensity(), "Dependency"),
        (lambda: Grafting(), "Slope"),
        (lambda: AlphaInvesting(trace="selected"), "P-value"),
    ],
)
def test_each_kind_of_evidence_is_drawn(data, make, evidence):
    X, y = data
    selector = make()
    y = y if hasattr(selector, "model") else (y > 0).astype(int)
    selector.fit(X[:, :40], y)
    page = ColumnsResult(selector).report()
    course = ColumnsResult(selector)
    low, high, _ = course.evidence_limits()
    assert (course.bar[np.isfinite(course.bar)] <= high).all()
    assert (course.bar[np.isfinite(course.bar)] >= low).all()
    assert f"<b>{evidence} of each candidate</b>" in page
    assert [course.records["name"][i] for i in course.kept] == selector.selected_
    assert len(ColumnsResult(selector).plot().axes) == 2 + hasattr(selector, "wealth_")


def test_page_shows_names_and_needs_no_network(selector, tmp_path):
    result = ColumnsResult(
        selector, "two & more", "150 rows", remarks=["Stopped.", Remark("Slow.", "note")],
        coefficients={"<b>3</b>": 1.25, "<b>30</b>": -0.75}, coefficient_note="Positive is up.",
        stages=[(1, "columns"), (41, "products")], seconds=2.0, reproduction=Reproduction("tamis columns a.csv"),
    )  # fmt: skip
    path = result.report(tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    assert "<h1>two &amp; more</h1>" in page
    assert "&lt;b&gt;30&lt;/b&gt;" in page
    assert "<b>30</b>" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert len(page) < 60_000
    for said in (
        "1.25",
        "−0.750",
        "Stopped.",
        "Positive is up.",
        "products from 41 on",
        "tamis columns a.csv",
        "40.0",
    ):
        assert said in page
    accepted = re.search(r"<dt>Accepted</dt><dd>(\d+)", page).group(1)
    assert int(accepted) == len(selector.selected_)


def test_no_offer_and_nothing_accepted_have_their_page(data):
    X, y = data
    selector = AlphaInvesting().start(y)
    assert "No candidate was offered." in ColumnsResult(selector).report()
    selector.offer(X[:, 5], "constant")
    assert "Nothing was accepted." in ColumnsResult(selector).report()
    assert len(ColumnsResult(selector).plot().axes) == 1


def test_a_long_course_stays_small():
    rng = np.random.default_rng(0)
    y = rng.normal(size=50)
    selector = AlphaInvesting().start(y)
    selector.offer_many(rng.normal(size=(50, 30_000)))
    page = ColumnsResult(selector).report()
    assert "the best of every 60" in page
    assert len(page) < 70_000
