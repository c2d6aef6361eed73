"""The site as it is built: within its cost, and a search that leads to a guide."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.test_house import ROOT

pytest.importorskip("sphinx")
pytest.importorskip("pydata_sphinx_theme")

SEARCHES = {
    "imbalanced": "imbalanced",
    "missing values": "missing_values",
    "save model": "persistence",
    "plot": "report",
    "mutual information": "screening",
    "jupyter": "api/first_notebook",
    "categorical": "missing_values",
    "drift": "drift",
    "SHAP": "importance",
    "spark": "spark",
    "regression": "regression",
}


# Builds as the command does, then prints the CPU seconds of all processes and the peak of this one's memory in MB, from
# /proc: what `getrusage` returns includes the memory of the process that started this one.
BUILD = """
import json, os, pathlib, sys
from sphinx.cmd.build import main
code = main(sys.argv[1:])
lines = dict(line.split(":") for line in pathlib.Path("/proc/self/status").read_text().splitlines())
print(json.dumps([sum(os.times()[:4]), int(lines["VmHWM"].split()[0]) / 1024]))
sys.exit(code)
"""


@pytest.fixture
def site(tmp_path):
    command = [sys.executable, "-c", BUILD, "-q", "-W", "-b", "html", "docs", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return tmp_path / "site", *json.loads(built.stdout.splitlines()[-1])


def search(browser, site, words):
    """Return the pages that the search box lists, best first, as soon as all are shown."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{site.as_uri()}/search.html?q={words.replace(' ', '+')}")
    WebDriverWait(browser, 60).until(
        lambda browser: "Search Results" in browser.find_element(By.ID, "search-results").text
    )
    links = browser.find_elements(By.CSS_SELECTOR, "ul.search > li > a")
    return [link.get_attribute("href").removeprefix(f"{site.as_uri()}/").split(".html")[0] for link in links]


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
def test_the_build_is_cheap_and_the_search_finds_a_guide_first(site):
    """One test, so that the site is built once."""
    folder, seconds, megabytes = site
    assert seconds < 90
    assert megabytes < 500
    assert (folder / "llms.txt").stat().st_size > 1000
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    chrome, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chrome and driver):
        pytest.skip("no chromium with chromedriver: the search is not tested")
    options = webdriver.ChromeOptions()
    options.binary_location = chrome
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        first = {words: search(browser, folder, words)[:1] for words in SEARCHES}
    finally:
        browser.quit()
    assert first == {words: [page] for words, page in SEARCHES.items()}
