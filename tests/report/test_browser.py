"""The report in a real browser: at the width of a desk and of a phone, by day and by night."""

import shutil
import time

import numpy as np
import pytest

from tamis.evaluate import run_experiment
from tests.report.runs import ELECTRICITY, make_run

selenium = pytest.importorskip("selenium", reason="no selenium: pip install 'tamis[dev]'")
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no Chromium here: apt-get install chromium chromium-driver"
)

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run --hide-scrollbars"
    " --disable-background-networking --disable-component-update --disable-sync --disable-default-apps"
)
COMPARED = {
    "streams": {name: (name, {"n_rows": 1200, "n_drifts": 2, "width": 1}) for name in ("SEA", "STAGGER")},
    "selectors": {"ofs": "ofs", "a_long_name_for_a_method" * 4: "fisher", "none": "none", "oracle": "oracle"},
    "learners": "sgd",
    "seeds": 2,
    "n_features_to_select": 2,
}
DESK, TABLET, PHONE = (1280, 900), (768, 1024), (390, 844)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    odd = ["a_very_long_name_without_a_single_space_" * 6, "<script>", "特徴", *(f"x{j}" for j in range(97))]
    return {
        "usual": make_run(450, 8, 4, ELECTRICITY).report(folder / "usual.html"),
        "odd": make_run(450, 100, 20, odd, churn=0.9, interrupted=True).report(folder / "odd.html"),
        "short": make_run(1).report(folder / "short.html"),
        "compared": run_experiment(**COMPARED).report(folder / "compared.html"),
        **searched(folder),
        "watched": watched(folder),
    }


def watched(folder):
    """Return the page of a watch with odd names, whose model uses a feature that is no longer relevant."""
    from tamis import Watch

    X = np.random.default_rng(0).normal(size=(6000, 5))
    y = np.where(np.arange(6000) < 2000, X[:, 0] + X[:, 1] > 0, X[:, 2] + X[:, 1] > 0)
    names = ["a_very_long_name_without_a_single_space_" * 6, "<script>", "特徴", "x", "y"]
    watch = Watch(feature_names=names)
    for i in range(0, 6000, 200):
        watch.update(X[i : i + 200], predictions=X[i : i + 200, 0] + X[i : i + 200, 1] > 0, y=y[i : i + 200])
    return watch.report(folder / "watched.html")


def searched(folder):
    """Return the pages of a search among columns, and of a classifier that buys values, with odd names."""
    import pyarrow as pa

    from tamis import IFC2F, AlphaInvesting, Screening
    from tamis.cells.acquisition_result import AcquisitionResult
    from tamis.columns.result import ColumnsResult
    from tamis.rows.screening.ranking import ColumnRanking

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 12)) + y[:, None] * np.linspace(0, 3, 12)
    names = [
        "a_very_long_name_without_a_single_space_" * 4,
        "<script>",
        "特徴",
        *(f"x{j}" for j in range(9)),
    ][::-1]
    frame = pa.table(dict(zip(names, X.T, strict=True)))
    selector = AlphaInvesting(model="logistic", trace="all").fit(frame, y)
    model = IFC2F(cost=0.001, random_state=0).fit(frame[:200], y[:200])
    screening = Screening(1.0, scores=["chi2", "mi", "t", "fisher", "gini"], n_bins=9).fit(frame, y)
    ranking = ColumnRanking(screening, n_rows=300, top=8, seconds=1.0)
    bought = AcquisitionResult(model, frame[:200], y[:200], frame[200:], y[200:])
    return {
        "ranked": ranking.report(folder / "ranked.html"),
        "columns": ColumnsResult(selector).report(folder / "columns.html"),
        "bought": bought.report(folder / "bought.html"),
    }


def show(browser, path, size, scheme):
    width, height = size
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.get(path.as_uri())


def colour(browser, selector, name):
    """Return red, green, blue, 0 to 255, of the computed style."""
    found = browser.execute_script(
        "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, name
    )
    return [float(part) for part in found.removeprefix("rgb(").removesuffix(")").split(",")]


def contrast(one, other):
    """Return the contrast of two colours as WCAG defines it, 1 to 21."""
    light = []
    for rgb in (one, other):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb)]
        light.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(light) + 0.05) / (min(light) + 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize(
    "name", ["usual", "odd", "short", "compared", "columns", "bought", "ranked", "watched"]
)
def test_page_opens_quietly_and_fits(browser, report, name, size, scheme):
    import json

    show(browser, report[name], size, scheme)
    for details in browser.find_elements("tag name", "details"):
        details.find_element("tag name", "summary").click()
        assert details.get_attribute("open")
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    address = report[name].as_uri()
    assert browser.find_element("id", "repeat").find_element("tag name", "h2").text == "Repeat this run"
    by_page = {
        each["request"]["url"] for each in asked if each["documentURL"] == address
    }  # not by the browser
    assert {url for url in by_page if not url.startswith("data:")} == {address}
    root = "document.documentElement"
    assert browser.execute_script(f"return {root}.scrollWidth <= {root}.clientWidth")
    assert browser.execute_script(CUT) == []


# Labels that stick out of the screen, or of the picture that scrolls in a box; boxes that scroll and do not show it.
CUT = """
const found = [], inside = (a, b) => a.left > b.left - 1.5 && a.right < b.right + 1.5;
for (const label of document.querySelectorAll('svg text, .tick text, .legend li')) {
    const box = label.closest('.scroll'), drawn = label.getBoundingClientRect();
    const screen = {left: 0, right: innerWidth};
    if (drawn.width && !inside(drawn, box ? label.closest('svg').getBoundingClientRect() : screen))
        found.push(label.textContent);
}
for (const caption of document.querySelectorAll('caption')) {
    const drawn = caption.getBoundingClientRect();
    if (drawn.width && !inside(drawn, {left: 0, right: innerWidth})) found.push(caption.textContent);
}
for (const box of document.querySelectorAll('.scroll')) {
    const shadow = getComputedStyle(box).backgroundImage;
    if (box.scrollWidth > box.clientWidth + 1 && (box.tabIndex !== 0 || shadow === 'none'))
        found.push('not shown to scroll: ' + box.getAttribute('aria-label'));
}
return found;
"""


def test_a_page_may_ask_for_nothing_and_run_nothing(browser, report, tmp_path):
    """Whatever got into a page, the browser refuses it; what belongs there is shown (above: nothing is logged)."""
    foreign = (
        '<img src="https://tamis.invalid/a.png"><script>document.title = "run"</script>'
        '<link rel="stylesheet" href="https://tamis.invalid/a.css"><p style="background:url(https://tamis.invalid/b)">'
        '<iframe src="https://tamis.invalid/c"></iframe><form action="https://tamis.invalid/d"><button>x</button></form>'
    )
    path = tmp_path / "foreign.html"
    path.write_text(
        report["short"].read_text(encoding="utf-8").replace("</main>", f"{foreign}</main>"), "utf-8"
    )
    show(browser, path, DESK, "light")
    browser.find_element("tag name", "button").click()
    assert browser.title != "run"
    refused, began = [], time.monotonic()
    while len(refused) < 6:  # it writes its log in its own time
        said = [entry["message"] for entry in browser.get_log("browser")]
        refused += [line for line in said if "Content Security Policy" in line]
        assert time.monotonic() - began < 60, refused
    import json

    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    answered = [m["params"]["response"]["url"] for m in messages if m["method"] == "Network.responseReceived"]
    assert not [url for url in answered if "tamis.invalid" in url]


@pytest.mark.parametrize("size", [DESK, TABLET, PHONE], ids=["desk", "tablet", "phone"])
def test_nothing_lies_on_anything_else(browser, report, size):
    show(browser, report["odd"], size, "light")
    overlaps = browser.execute_script(
        """
        const boxes = [...document.querySelectorAll('.tick text, .legend li, .tiles div, figcaption, h2, h3, .map li')]
            .map(e => [e, e.getBoundingClientRect()]).filter(([e, b]) => b.width && e.textContent.trim());
        const found = [];
        for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
            const [e, a] = boxes[i], [f, b] = boxes[j];
            if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1.5 && b.top < a.bottom - 1.5)
                found.push(e.textContent + ' | ' + f.textContent);
        }
        return found;
        """
    )
    assert overlaps == []
    root = "document.documentElement"
    assert browser.execute_script(f"return {root}.scrollWidth <= {root}.clientWidth")


@pytest.mark.parametrize("name", ["usual", "odd", "short", "compared", "watched"])
def test_names_stand_beside_their_rows_of_the_map(browser, report, name):
    show(browser, report[name], DESK, "light")
    names, rows = browser.execute_script(
        "return ['.map .names', '.map .plot'].map(e => document.querySelector(e).getBoundingClientRect())"
        ".map(b => [b.top, b.bottom])"
    )
    assert names == pytest.approx(rows, abs=0.5)


def test_every_tick_is_on_the_screen(browser, report):
    show(browser, report["usual"], PHONE, "light")
    ends = browser.execute_script(
        "return [...document.querySelectorAll('.tick text')].map(e => e.getBoundingClientRect())"
        ".map(b => [b.left, b.right])"
    )
    assert len(ends) > 30
    assert all(left >= 0 and right <= PHONE[0] for left, right in ends)


@pytest.mark.slow
def test_links_lead_to_their_sections(browser, report):
    show(browser, report["usual"], DESK, "light")
    links = browser.find_elements("css selector", "nav a")
    assert len(links) == 7
    for link in links:
        browser.execute_script("window.scrollTo(0, 0)")
        link.click()
        target = browser.find_element("id", link.get_attribute("hash")[1:])
        top, at_end = browser.execute_script(
            "return [arguments[0].getBoundingClientRect().top,"
            " innerHeight + scrollY >= document.documentElement.scrollHeight - 2]",
            target,
        )
        assert abs(top) < 30 or (at_end and top < DESK[1])
        assert target.find_element("tag name", "h2").text == link.text


def test_keyboard_reaches_links_and_details(browser, report):
    from selenium.webdriver.common.keys import Keys

    show(browser, report["usual"], DESK, "light")
    body, reached = browser.find_element("tag name", "body"), []
    for _ in range(30):
        (browser.switch_to.active_element if reached else body).send_keys(Keys.TAB)
        reached.append(browser.switch_to.active_element.tag_name)
        if reached.count("summary") == 2:
            break
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert reached.count("a") == 7
    assert browser.execute_script("return [...document.querySelectorAll('details')].map(e => e.open)") == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_told_from_the_paper(browser, report, scheme):
    show(browser, report["usual"], DESK, scheme)
    paper = colour(browser, "body", "backgroundColor")
    assert (sum(paper) < 150) == (scheme == "dark")
    for selector, name, least in (
        ("h2", "color", 7), (".lead", "color", 4.5), ("a", "color", 4.5), (".tick text", "fill", 4.5),
        ("summary", "color", 4.5), *((f".line.s{i}", "stroke", 3) for i in range(1, 8)),
    ):  # fmt: skip
        assert contrast(colour(browser, selector, name), paper) >= least, selector
    assert contrast((47, 127, 193), colour(browser, ".map .plot", "backgroundColor")) >= 3  # the map's image


def test_marks_are_as_tall_as_their_values(browser, report):
    """The line at the last row ends where the axis says its value is."""
    show(browser, report["usual"], DESK, "light")
    run = make_run(450, 8, 4, ELECTRICITY)
    last = run.frames["steps"]["accuracy_cumulative"][-1]
    end, ticks = browser.execute_script(
        """
        const chart = document.querySelector('#acc-t').parentElement, line = chart.querySelector('.line.s2');
        const end = line.getPointAtLength(line.getTotalLength()).matrixTransform(line.getScreenCTM());
        return [end.y, [...chart.querySelectorAll('.tick.y text')].map((e, i) =>
            [+e.textContent, chart.querySelectorAll('.grid line')[i].getBoundingClientRect().top])];
        """
    )
    (low, low_y), (high, high_y) = ticks[0], ticks[-1]
    assert end == pytest.approx(low_y + (last - low) / (high - low) * (high_y - low_y), abs=1)
