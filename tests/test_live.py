"""The live page: what its server answers, and what a real browser shows while a run goes on."""

import contextlib
import http.client
import json
import re
import shutil
import socket
import struct
import threading
import time

import pytest

from tamis.cli.live import LivePage
from tamis.cli.local_server import LocalHandler

SCORES = {
    "event": "scores", "accuracy": 0.9, "random_subsets": 0.6, "majority": 0.5, "stability": 1.0, "bad": 3,
}  # fmt: skip


def selection(n, entered, left=()):
    return {"event": "selection", "n_seen": n, "entered": [*entered], "left": [*left], "n_selected": 1}


@pytest.fixture
def page():
    page = LivePage("FIRES on <b>log</b>.csv")
    yield page
    page.close()


def ask(page, path, host=None):
    port = int(page.address.rsplit(":", 1)[1].strip("/"))
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    link.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}"})
    return link, link.getresponse()


def lines(answer, n):
    found = []
    while len(found) < n:
        line = answer.fp.readline().decode()
        if line.startswith("data: "):
            found.append(json.loads(line.removeprefix("data: ")))
    return found


def test_it_listens_on_the_loopback_address_only_and_asks_nobody(page):
    assert page._server.server_address[0] == "127.0.0.1"
    _, answer = ask(page, "/")
    body = answer.read().decode()
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "connect-src 'self'" in policy
    assert "<b>" not in body
    assert "http://" not in body.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in body


def test_another_name_for_the_address_is_refused(page):
    for path in ("/", "/events"):
        assert ask(page, path, host="evil.example")[1].status == 403
    assert ask(page, "/secret")[1].status == 404


def test_who_comes_late_is_given_what_there_was_and_then_what_comes(page):
    page.publish(selection(200, ["a", "b"]))
    page.publish(selection(300, ["c"], ["a"]))
    page.publish({**SCORES, "n_seen": 1000, "random_subsets": float("nan")})
    link, answer = ask(page, "/events")
    [known] = lines(answer, 1)
    assert known["selected"] == ["b", "c"]
    assert [one["event"] for one in known["lines"]] == ["scores", "selection", "selection"]
    assert known["lines"][0]["random_subsets"] is None
    page.publish({"event": "drift", "n_seen": 1100})
    assert lines(answer, 1) == [{"event": "drift", "n_seen": 1100, "selected": ["b", "c"]}]
    link.close()


def test_memory_is_bounded_and_who_looks_no_more_is_forgotten(page):
    links = [ask(page, "/events") for _ in range(16)]
    assert ask(page, "/events")[1].status == 503
    for i in range(5000):
        page.publish({**SCORES, "n_seen": i})
        page.publish({"event": "drift", "n_seen": i})
    assert len(page._points.lines) < 400
    assert len(page._events) == 30
    for link, answer in links:
        answer.close()
        link.close()
    until = time.monotonic() + 20
    while len(page._viewers) and time.monotonic() < until:
        page.publish({"event": "drift", "n_seen": 0})
        time.sleep(0.05)
    assert page._viewers == []


def connect(page):
    link = socket.create_connection(("127.0.0.1", int(page.address.rsplit(":", 1)[1].strip("/"))))
    link.settimeout(20)
    return link


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: ", b"POST /reply HTTP/1.1\r\nContent-Le"])
def test_a_request_that_does_not_arrive_is_given_up(page, monkeypatch, sent):
    monkeypatch.setattr(LocalHandler, "timeout", 0.5)
    began, n = time.monotonic(), 0
    with connect(page) as link:
        link.sendall(sent)
        link.settimeout(0.1)  # a byte now and then does not extend the time
        while time.monotonic() - began < 15:
            try:
                assert link.recv(1) == b""
                break
            except TimeoutError:
                n += 1
            with contextlib.suppress(OSError):
                link.sendall(b"x" * bool(sent))
    assert time.monotonic() - began < 10
    assert n < 60
    assert ask(page, "/")[1].status == 200


@pytest.mark.parametrize("path", ["/", "/events", "/metrics", "/unknown"])
def test_a_client_that_leaves_early_prints_nothing(page, capfd, path):
    for i in range(500):
        page.publish(selection(i, [f"{i} {'x' * 2000}"]))
    for reset in (True, False):
        for cut in (12, None):
            link = connect(page)
            port = link.getpeername()[1]
            link.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()[:cut])
            if reset:  # the connection is reset, not closed
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.close()
    time.sleep(0.3)
    assert ask(page, "/")[1].status == 200
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_an_error_of_the_page_itself_is_printed(page, capfd, monkeypatch):
    def fail():
        raise ZeroDivisionError

    monkeypatch.setattr(page, "metrics", fail)
    with contextlib.suppress(http.client.HTTPException, OSError):
        ask(page, "/metrics")
    assert "ZeroDivisionError" in capfd.readouterr().err


def watch_line(n, relevance):
    shares = {"relevance": [relevance, 0.5 - relevance / 2], "reliance": [0.6, 0.4], "psi": [0.01, 0.3]}
    return {"event": "watch", "n_seen": n, "features": ["age", "<b>income</b>"], **shares}


def alert_line(n, feature="age"):
    message = f"The rule <i> holds for feature {feature!r} since row {n}."
    return {
        "event": "alert", "n_seen": n, "row": n, "severity": "warning", "feature": feature, "message": message
    }  # fmt: skip


def test_metrics_are_those_of_the_last_lines(page):
    pytest.importorskip("prometheus_client", reason="no prometheus_client: pip install 'tamis[metrics]'")
    page.publish({**SCORES, "n_seen": 1000, "random_subsets": float("nan"), "top": {"age": 1.0}})
    for n in (1000, 2000):
        page.publish(watch_line(n, 0.3 if n == 1000 else 0.1))
        page.publish(alert_line(n))
    page.publish({**alert_line(2500), "feature": None, "severity": "critical"})
    _, answer = ask(page, "/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    found = dict(
        line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#")
    )
    assert found['tamis_relevance{feature="age"}'] == "0.1"
    assert found['tamis_psi{feature="<b>income</b>"}'] == "0.3"
    assert found['tamis_alerts_total{feature="age",severity="warning"}'] == "2.0"
    assert found['tamis_alerts_total{feature="",severity="critical"}'] == "1.0"
    assert found['tamis_score{name="accuracy"}'] == "0.9"
    assert found["tamis_rows"] == "2500.0"
    assert not any("top" in name for name in found)
    assert ask(page, "/metrics", host="evil.example")[1].status == 403


def test_the_dashboard_shows_metrics_that_exist(page):
    pytest.importorskip("prometheus_client", reason="no prometheus_client: pip install 'tamis[metrics]'")
    page.publish({**SCORES, "n_seen": 200})
    page.publish(
        {
            "event": "watch",
            "n_seen": 200,
            "features": ["a"],
            "relevance": [0.5],
            "reliance": [0.5],
            "psi": [0.1],
        }
    )
    page.publish({"event": "alert", "n_seen": 200, "severity": "warning", "feature": "a"})
    known = set(re.findall(rb"^tamis_\w+", ask(page, "/metrics")[1].read(), flags=re.M))
    _, answer = ask(page, "/grafana.json")
    dashboard = json.loads(answer.read())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = {name.encode() for query in queries for name in re.findall(r"tamis_\w+", query)}
    assert used <= known
    assert known - used <= {b"tamis_alerts_created"}
    places = [(p["gridPos"]["x"], p["gridPos"]["y"], p["gridPos"]["w"]) for p in dashboard["panels"]]
    assert all(x + w <= 24 for x, _, w in places)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_without_the_library_metrics_name_the_extra(page, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    _, answer = ask(page, "/metrics")
    assert (answer.status, b"tamis[metrics]" in answer.read()) == (501, True)


def test_lines_of_a_watch_are_thinned_and_alerts_kept(page):
    for n in range(1000):
        page.publish(watch_line(n, 0.2))
        page.publish(alert_line(n))
    _, answer = ask(page, "/events")
    [known] = lines(answer, 1)
    kinds = [line["event"] for line in known["lines"]]
    assert 200 <= kinds.count("watch") < 400
    assert kinds.count("alert") == 100
    assert known["lines"][-1]["n_seen"] == 999


BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.mark.slow
@pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no Chromium here: apt-get install chromium chromium-driver"
)
def test_a_browser_shows_what_happens(page, tmp_path):
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: pip install 'tamis[dev]'")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        page.publish(selection(200, ["heat", "<img src=x onerror=alert(1)>"]))
        for n in range(1, 20):
            page.publish({**SCORES, "n_seen": 1000 * n, "accuracy": 0.5 + n / 50})
        driver.set_window_size(900, 900)
        driver.get(page.address)
        shows(driver, "heat", "<img src=x onerror=alert(1)>", "0.880", "19,000")
        threading.Timer(0.2, page.publish, [selection(20_000, ["pressure"], ["heat"])]).start()
        threading.Timer(0.3, page.publish, [{"event": "drift", "n_seen": 20_000}]).start()
        shows(driver, "in: pressure; out: heat", "drift", "running")
        chosen = driver.execute_script(
            "return [...document.querySelectorAll('#selected li')].map(x => x.textContent)"
        )
        assert chosen == ["<img src=x onerror=alert(1)>", "pressure"]
        line = driver.execute_script("return document.querySelector('#chart .ours').getAttribute('points')")
        assert len(line.split()) == 19
        driver.save_screenshot(str(tmp_path / "page.png"))
        page.publish(
            {"event": "scores", "n_seen": 21_000, "mae": 47.5953, "random_subsets": 60.0, "r2": 0.5, "bad": 0}
        )
        shows(driver, "mean absolute error", "47.6", "Mean absolute error of the last rows")
        for n in range(1, 21):
            page.publish(watch_line(1000 * n, 0.5 if n <= 10 else 0.05))
        page.publish(alert_line(12_000))
        shows(
            driver,
            "Relevance and reliance",
            "12,000 warning: The rule <i> holds for feature 'age'",
            "<b>income</b>",
        )
        for size in ((1280, 900, False), (390, 844, True)):
            screen = dict(zip(("width", "height", "mobile"), size, strict=True)) | {"deviceScaleFactor": 1}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            check_strips(driver)
            height = "return document.querySelector('#chart text').getBoundingClientRect().height"
            assert driver.execute_script(height) > 10  # can be read, on a phone too
            driver.save_screenshot(str(tmp_path / f"strips_{size[0]}.png"))
        page.publish({"event": "end", "n_seen": 20_000})
        shows(driver, "ended")
        assert [one for one in driver.get_log("browser") if one["level"] == "SEVERE"] == []
        asked = [json.loads(one["message"])["message"] for one in driver.get_log("performance")]
        urls = {
            one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"
        }
        assert {url for url in urls if not url.startswith((page.address, "data:", "chrome:"))} == set()
    finally:
        driver.quit()


def check_strips(driver):
    """The strip of age is blue in the first half only, the one below it orange throughout; the mark is at its row."""
    found = driver.execute_script(
        """
        const canvas = document.getElementById('strips'), box = canvas.getBoundingClientRect();
        const at = (x, y) => [...canvas.getContext('2d').getImageData(x, y, 1, 1).data];
        const mark = document.querySelector('#marks span').getBoundingClientRect();
        const rows = [...document.querySelectorAll('#names li')].map(e => [e.textContent, e.getBoundingClientRect()]);
        const root = document.documentElement;
        return {relevance: [at(200, 1), at(700, 1)], reliance: [at(200, 4), at(700, 4)],
            mark: ((mark.left + mark.right) / 2 - box.left) / box.width, markTop: mark.top, markBottom: mark.bottom,
            names: rows.map(([name, b]) => [name, b.top, b.bottom]), canvas: [box.top, box.bottom, box.width],
            fits: root.scrollWidth <= root.clientWidth};
        """
    )
    assert found["relevance"][0] == [47, 127, 193, 255]
    assert found["relevance"][1][3] < 40
    assert [colour[3] for colour in found["reliance"]] == [255, 255]
    assert found["mark"] == pytest.approx(0.6, abs=0.02)
    (name, top, bottom), (other, _, end) = found["names"]
    assert (name, other) == ("age", "<b>income</b>")
    assert top - 3 <= found["markTop"] < found["markBottom"] <= bottom + 3
    assert found["canvas"][:2] == pytest.approx([top, end], abs=1.5)
    assert found["canvas"][2] > 150
    assert found["fits"]


def shows(driver, *texts):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        body = driver.execute_script("return document.body.innerText")
        if all(text in body for text in texts):
            return
        time.sleep(0.05)
    raise AssertionError(body)
