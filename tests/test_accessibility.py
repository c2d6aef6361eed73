"""Contrast, names and keyboard of every page that Tamis writes or serves, as axe-core judges them in Chromium."""

from __future__ import annotations

import numpy as np
import pytest

from tamis import FIRES, FixedSubset, IncrementalPFI, Watch, load_dataset, prequential, recommend
from tamis.cells.acquisition_result import AcquisitionResult
from tamis.cells.paper_tree import PaperTree
from tamis.cells.records import replay_records
from tamis.cli.live import LivePage
from tamis.cli.question_page import QuestionPage
from tests.test_cli_question_page import browser, needs_browser

axe = pytest.importorskip("axe_core_python.selenium", reason="no axe-core: pip install 'tamis[dev]'")

pytestmark = [pytest.mark.slow, needs_browser]


def model():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 4)) + y[:, None]
    X[::5, 0] = np.nan
    return FixedSubset(0.01, n_features=2).fit(X, y), X, y


def run():
    return prequential(load_dataset("electricity").take(3000), FIRES(3), baselines="both")


def acquisition():
    fitted, X, y = model()
    return AcquisitionResult(fitted, X, y, X, y)


PAGES = {
    "run": run,
    "recommendation": lambda: recommend(load_dataset("electricity").take(2000), learner="logistic"),
    "acquisition": acquisition,
    "records": lambda: replay_records(*model()),
    "tree": lambda: PaperTree(*model()),
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


def problems(driver, scheme):
    """Return what axe-core finds on the page in a colour scheme: the rule, and the first element."""
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    found = axe.Axe().run(driver)["violations"]
    return [(one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"]) for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", PAGES)
def test_a_report_has_no_barriers(driver, tmp_path, kind, scheme):
    page = tmp_path / "page.html"
    PAGES[kind]().report(page)
    driver.get(page.as_uri())
    assert problems(driver, scheme) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_that_are_served_have_no_barriers(driver, scheme):
    from selenium.webdriver.support.ui import WebDriverWait

    fitted, *_ = model()
    asks, live = QuestionPage(fitted), LivePage("FIRES on log.csv")
    live.publish({"event": "selection", "n_seen": 200, "entered": ["heat"], "left": [], "n_selected": 1})
    try:
        driver.get(asks.address)
        WebDriverWait(driver, 20).until(lambda _: "price" in driver.find_element("id", "text").text)
        assert problems(driver, scheme) == []
        driver.get(live.address)
        WebDriverWait(driver, 20).until(lambda _: "heat" in driver.find_element("tag name", "body").text)
        assert problems(driver, scheme) == []
    finally:
        asks.close()
        live.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_watch_has_no_barriers(driver, tmp_path, scheme):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4))
    y = (X[:, 0] + rng.normal(size=1200) > 0).astype(int)
    watch = Watch(lambda rows: 1 / (1 + np.exp(-2 * rows[:, 0])), importance=IncrementalPFI())
    for at in range(0, 1200, 100):
        watch.update(X[at : at + 100], y=y[at : at + 100])
    page = tmp_path / "watch.html"
    watch.report(page)
    driver.get(page.as_uri())
    assert problems(driver, scheme) == []
