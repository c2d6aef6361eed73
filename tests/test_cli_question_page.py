"""The page of tamis acquire --serve: its replies, its safety, and a session in a real browser."""

import http.client
import json
import shutil

import numpy as np
import pytest

from tamis import FixedSubset
from tamis.base import PriceList
from tamis.base.session import limits_of
from tamis.cli.failure import MisuseError
from tamis.cli.question_page import QuestionPage, read_wording


@pytest.fixture(scope="module")
def page():
    rng = np.random.default_rng(0)
    y = np.where(rng.integers(0, 2, 300), "ill", "<b>well</b>")
    X = np.empty((300, 3), dtype=object)
    X[:, 0] = rng.normal(size=300) + 1.5 * (y == "ill")
    X[:, 1] = np.where(rng.random(300) < 0.8, y == "ill", rng.random(300) < 0.5).astype(int)
    X[:, 1] = np.where(X[:, 1] == 1, "yes", "no")
    X[:, 2] = rng.normal(size=300) + (y == "ill")
    prices = PriceList(2.0, fees=[([0, 2], 3.0)], currency="EUR")
    model = FixedSubset(prices, n_features=3, misclassification_cost=100 * (1 - np.eye(2)), categorical=[1])
    page = QuestionPage(model.fit(X, y), {"0": "Temperature (°C)"})
    yield page
    page.close()


def post(page, message, **headers):
    port = int(page.address.rsplit(":", 1)[1].strip("/"))
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    given = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", **headers}
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    link.request("POST", "/reply", body=body, headers=given)
    answer = link.getresponse()
    return answer.status, answer.read()


def reply(page, message):
    status, body = post(page, message)
    return status, json.loads(body)


def test_a_session_is_the_list_of_its_values(page):
    answers = {0: 3.75, 1: "yes", 2: 0.3}
    observed, session = [], page.model.open()
    while True:
        status, found = reply(page, {"observed": observed})
        assert status == 200
        assert found["finished"] == session.finished
        assert found["cost"] == f"{session.cost:.4g} EUR"
        assert {label: p for label, p, _ in found["posterior"]} == pytest.approx(session.posterior)
        if found["finished"]:
            break
        feature = found["question"]["feature"]
        assert feature == session.next_feature
        assert found["question"]["price"] == f"{session.next_cost:.4g} EUR"
        assert found["question"]["reason"].startswith("An answer can move the probability of")
        status, found = reply(page, {"observed": observed, "value": str(answers[feature])})
        session.observe(answers[feature])
        observed = found["observed"]
    assert found["decision"] == f"Decision: {session.decision} ({session.posterior[session.decision]:.3f})"
    assert found["steps"][-1]["after"] == f"ill {session.posterior['ill']:.3f}"
    assert [step["text"] for step in found["steps"]].count("Temperature (°C)") == 1
    assert session.cost == 3 * 2.0 + 3.0
    _, undone = reply(page, {"observed": observed[:-1]})
    assert undone["question"]["feature"] == observed[-1][0]


def test_the_page_asks_before_it_records_an_implausible_value(page):
    status, found = reply(page, {"observed": [], "feature": 0, "value": "98.6"})
    low, high = limits_of(page.model, page.model._names().index(0))
    assert status == 400
    assert found["question"].startswith(f"98.6 is outside {low:g} to {high:g}: which unit?")
    _, found = reply(page, {"observed": [], "feature": 0, "value": "98.6", "confirmed": True})
    assert [(step["value"], step["outcome"]) for step in found["steps"]] == [(98.6, "out of range")]
    _, found = reply(page, {"observed": [], "outcome": "no result"})
    assert (found["steps"][0]["outcome"], found["cost"]) == ("no result", found["steps"][0]["price"])
    assert found["cost"] != "0 EUR"


def test_no_session_asks_for_what_the_page_was_told_is_unavailable(page):
    usual = page.model.open().next_feature
    other = QuestionPage(page.model, unavailable=[usual])
    try:
        _, found = reply(other, {"observed": []})
        assert found["question"]["feature"] != usual
        assert found["question"]["reason"].startswith("An answer can move")
        assert usual not in {one["feature"] for one in found["others"]}
        assert b'id="refuse"' in other.source
    finally:
        other.close()


def test_values_known_before_are_free_and_unavailable_ones_are_not_asked_again(page):
    _, found = reply(page, {"observed": [], "value": "1.5", "feature": 2})
    assert found["cost"] == "0 EUR"
    assert found["steps"][0]["paid"] is False
    assert 2 not in {one["feature"] for one in found["others"]}
    asked = found["question"]["feature"]
    _, found = reply(page, {"observed": found["observed"], "value": None})
    assert found["question"]["feature"] != asked
    assert found["cost"] == "0 EUR"


@pytest.mark.parametrize(
    ("message", "said"),
    [({"observed": [], "value": "warm", "feature": 0}, "got 'warm'; choose Not available if the value is unavailable."),
     ({"observed": [], "value": "perhaps", "feature": 1}, "choose one of no, yes"),
     ({"observed": [["z", 1, True]]}, "No feature is named 'z'"), ({"observed": [3]}, "triples"), ([1], "list"),
     (b"{", "Expecting")],
    ids=str,
)  # fmt: skip
def test_invalid_requests_are_explained(page, message, said):
    status, found = reply(page, message)
    assert status == 400
    assert said in found["error"]


def test_only_the_page_itself_is_answered(page):
    message = {"observed": []}
    assert post(page, message, Host="evil.example")[0] == 403
    assert post(page, message, Origin="http://evil.example")[0] == 403
    assert post(page, message, **{"Content-Type": "text/plain"})[0] == 404
    assert post(page, b" " * (1 << 18) + b"1")[0] == 413
    assert page._server.server_address[0] == "127.0.0.1"
    body = page.source.decode()
    assert "http://" not in body
    assert "https://" not in body


def test_wording_is_read_from_json_and_csv(tmp_path):
    (tmp_path / "a.json").write_text('{"sbp": "Systolic blood pressure"}', encoding="utf-8")
    (tmp_path / "a.csv").write_text("sbp,Systolic blood pressure\n", encoding="utf-8")
    for name in ("a.json", "a.csv"):
        assert read_wording(str(tmp_path / name)) == {"sbp": "Systolic blood pressure"}
    (tmp_path / "b.json").write_text("[1]", encoding="utf-8")
    for name, said in (("b.json", "must contain one object"), ("c.json", "is not a file of text")):
        with pytest.raises(MisuseError, match=said):
            read_wording(str(tmp_path / name))


@pytest.fixture(scope="module")
def number_page():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = 300.0 + 40.0 * X[:, 0] + 20.0 * X[:, 1] + 5.0 * rng.normal(size=400)
    page = QuestionPage(FixedSubset(0.02, n_features=2, objective="squared-error").fit(X, y))
    yield page
    page.close()


def test_a_number_has_a_prediction_with_its_interval(number_page):
    assert b"<h2>Prediction</h2>" in number_page.source
    _, start = reply(number_page, {"observed": []})
    session = number_page.model.open()
    assert start["posterior"] == []
    assert [one["name"] for one in start["number"]] == ["at first", "now"]
    assert start["number"][0]["value"] == start["number"][1]["value"] == session.decision
    assert start["question"]["reason"].startswith("An answer can move the prediction from")
    _, found = reply(number_page, {"observed": [], "value": "1.5"})
    session.observe(1.5)
    first, now = found["number"]
    assert first == start["number"][0]
    assert now["value"] == session.decision
    assert now["high"] - now["low"] == pytest.approx(2 * 1.96 * session.deviation)
    assert now["high"] - now["low"] < first["high"] - first["low"]
    assert found["decision"] == f"Prediction: {session.decision:.5g} ± {session.deviation:.2g}"
    assert found["steps"][0]["after"] == f"prediction {session.decision:.5g} ± {session.deviation:.2g}"


def test_the_interval_contains_nineteen_of_twenty_numbers_or_more(number_page):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 3))
    y = 300.0 + 40.0 * X[:, 0] + 20.0 * X[:, 1] + 5.0 * rng.normal(size=2000)
    posterior = number_page.model.predict_proba(X)
    apart = np.abs(number_page.model._decide(posterior) - y) / number_page.model._deviation(posterior)
    assert 0.94 < np.mean(apart < 1.96) < 0.999


def test_classes_that_are_numbers_are_shown_once():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200).astype(np.float64)
    other = QuestionPage(FixedSubset(n_features=1).fit(rng.normal(size=(200, 2)) + 2 * y[:, None], y))
    try:
        _, found = reply(other, {"observed": [], "value": "4"})
        assert found["decision"].startswith("Decision: 1 (0.9")
        assert [label for label, *_ in found["posterior"]] == ["0", "1"]
    finally:
        other.close()


BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


needs_browser = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no Chromium here: apt-get install chromium chromium-driver"
)


def browser(profile):
    """Return a browser without a window, as large as a phone, that logs errors of scripts."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: pip install 'tamis[dev]'")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 f"--user-data-dir={profile}"):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_window_size(400, 900)
    return driver


@pytest.mark.slow
@needs_browser
def test_a_browser_asks_undoes_and_stops(page, tmp_path):
    driver = browser(tmp_path)
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(driver, 20)

    def element(name):
        return driver.find_element("id", name)

    def steps(n):
        wait.until(lambda _: len(driver.find_elements("css selector", "#steps li")) == n)

    try:
        driver.get(page.address)
        wait.until(lambda _: "price" in element("text").text)
        for n in range(3):
            if driver.find_elements("css selector", "#options button"):
                driver.find_element("tag name", "body").send_keys("1")
            else:
                element("value").send_keys("0.5", Keys.ENTER)
            steps(n + 1)
            driver.save_screenshot(str(tmp_path / f"step{n}.png"))
        wait.until(lambda _: element("decision").is_displayed())
        assert "Decision: " in element("decision").text
        assert element("cost").text == "9 EUR"
        element("undo").click()
        steps(2)
        element("stop").click()
        wait.until(lambda _: element("decision").is_displayed())
        driver.refresh()  # the session is kept
        steps(2)
        assert "<b>well</b>" in element("bars").text
        overflow = "return document.documentElement.scrollWidth <= window.innerWidth"
        assert driver.execute_script(overflow)
        assert driver.get_log("browser") == []
    finally:
        driver.quit()


@pytest.mark.slow
@needs_browser
def test_a_browser_shows_the_interval_of_a_number(number_page, tmp_path):
    driver = browser(tmp_path)
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(driver, 20)
    try:
        driver.get(number_page.address)
        wait.until(lambda _: len(driver.find_elements("css selector", "#bars .interval")) == 2)
        whole = driver.find_elements("css selector", "#bars i")[1].size["width"]
        driver.find_element("id", "value").send_keys("1.5", Keys.ENTER)
        wait.until(lambda _: len(driver.find_elements("css selector", "#steps li")) == 1)
        assert driver.find_elements("css selector", "#bars i")[1].size["width"] < 0.8 * whole
        assert "95 % interval" in driver.find_element("id", "bars").text
        driver.find_element("id", "stop").click()
        wait.until(lambda _: driver.find_element("id", "decision").is_displayed())
        assert driver.find_element("id", "decision").text.startswith("Prediction: ")
        assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        driver.save_screenshot(str(tmp_path / "number.png"))
        assert driver.get_log("browser") == []
    finally:
        driver.quit()


@pytest.mark.slow
@needs_browser
def test_nothing_can_be_entered_before_the_first_question(number_page, tmp_path, monkeypatch):
    """A slow first reply: keys, clicks and values wait for it."""
    from threading import Event

    from selenium.webdriver.support.ui import WebDriverWait

    driver, ready, reply_at_once = browser(tmp_path), Event(), number_page.reply

    def late(message):
        ready.wait(20)
        return reply_at_once(message)

    monkeypatch.setattr(number_page, "reply", late)
    try:
        driver.get(number_page.address)
        driver.execute_script(
            "document.getElementById('stop').focus(); document.getElementById('value').focus()"
        )
        driver.find_element("tag name", "body").send_keys("s", "u", "n", "1")
        assert driver.execute_script("return document.activeElement.tagName") == "BODY"
        ready.set()
        WebDriverWait(driver, 20).until(lambda _: "price" in driver.find_element("id", "text").text)
        assert driver.execute_script("return document.activeElement.id") == "value"
        assert driver.get_log("browser") == []
    finally:
        ready.set()
        driver.quit()


@pytest.mark.slow
@needs_browser
def test_a_browser_searches_edits_supposes_and_confirms(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 900)
    towns = np.array([f"Town {i}" for i in range(30)])
    X = pd.DataFrame(
        {
            "town": towns[np.where(rng.random(900) < 0.8, y, rng.integers(0, 30, 900))],
            "heat": rng.normal(size=900) + y,
        }
    )
    page = QuestionPage(FixedSubset(0.001, n_features=2).fit(X, y), title="state · ward.tamis")
    driver = browser(tmp_path)
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(driver, 20)

    def element(name):
        return driver.find_element("id", name)

    def steps(n):
        wait.until(lambda _: len(driver.find_elements("css selector", "#steps li")) == n)

    try:
        driver.get(page.address)
        wait.until(lambda _: "price" in element("text").text)
        assert driver.title == "state · ward.tamis"
        assert "town" in element("text").text
        assert not driver.find_elements("css selector", "#options button")
        assert len(driver.find_elements("css selector", "#choices option")) == 30
        element("value").send_keys("Town 1", Keys.ENTER)
        steps(1)
        before = element("bars").text
        # A letter in the empty field of a number is a command, and is not written.
        element("value").send_keys("u")
        steps(0)
        element("value").send_keys("Town 0", Keys.ENTER)
        steps(1)
        assert element("bars").text != before
        element("given").send_keys("3")
        element("suppose").click()
        wait.until(lambda _: element("whatif").text.startswith("Then: Decision: "))
        steps(1)
        driver.find_element("css selector", "#steps .edit").click()
        field = driver.find_element("css selector", "#steps select")
        field.send_keys("Town 1")
        driver.find_element("css selector", "#steps form button").click()
        wait.until(lambda _: element("bars").text == before)
        element("case").send_keys("Miller")
        element("new").click()
        driver.switch_to.alert.dismiss()
        steps(1)
        element("new").click()
        driver.switch_to.alert.accept()
        steps(0)
        assert element("case").get_attribute("value") == ""
        assert driver.get_log("browser") == []
    finally:
        driver.quit()
        page.close()
