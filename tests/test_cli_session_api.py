"""The JSON interface of tamis acquire --serve: answers have the form of its OpenAPI document, errors change nothing."""

import http.client
import json
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from tamis import AdaptiveIFC2F
from tamis.base.prices import Panel, PriceList
from tamis.cli import question_page
from tamis.cli.question_page import QuestionPage
from tamis.persistence.journal import Journal

DOCUMENT = json.loads(files("tamis.cli").joinpath("session_api.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    n = 900
    y = np.where(rng.random(n) < 0.5, "ill", "well")
    ill = y == "ill"
    X = pd.DataFrame({
        "temperature": 36.8 + 0.5 * rng.normal(size=n) + 0.4 * ill,
        "cough": np.where(rng.random(n) < 0.7, np.where(ill, "yes", "no"), "no"),
        "sodium": 140 + 3 * rng.normal(size=n) - 2 * ill,
        "potassium": 4 + 0.3 * rng.normal(size=n) + 0.3 * ill,
    })  # fmt: skip
    prices = PriceList(
        {"temperature": 1.0, "cough": 0.0}, panels={"blood": Panel(["sodium", "potassium"], 3.0, 2.0)},
        units={"temperature": {"°C": 1.0, "°F": (5 / 9, -160 / 9)}}, currency="EUR",
    )  # fmt: skip
    return AdaptiveIFC2F(prices, misclassification_cost=90 * (1 - np.eye(2)), random_state=0).fit(X, y)


@pytest.fixture
def page(model, tmp_path):
    page = QuestionPage(model, log=Journal(tmp_path / "log.jsonl"))
    yield page
    page.close()


@pytest.fixture
def call(page):
    validate = pytest.importorskip("jsonschema").validate

    def call(method, path, message=None):
        port = int(page.address.rsplit(":", 1)[1].strip("/"))
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        body = b"" if message is None else json.dumps(message).encode()
        link.request(method, path, body=body, headers={"Content-Type": "application/json"} if body else {})
        answer = link.getresponse()
        content = answer.read()
        found = json.loads(content) if content else None
        pattern = "/sessions" if path == "/sessions" else "/".join(["/sessions/{id}", *path.split("/")[3:]])
        known = DOCUMENT["paths"].get(pattern, {}).get(method.lower())
        if known is not None:
            declared = known["responses"][str(answer.status)]
            if "content" in declared:
                schema = declared["content"]["application/json"]["schema"]
                validate(found, {**schema, "components": DOCUMENT["components"]})
            else:
                assert found is None
        return answer.status, found

    return call


def test_the_document_is_served(page):
    import urllib.request

    with urllib.request.urlopen(page.address + "openapi.json") as answer:
        assert json.loads(answer.read()) == DOCUMENT
    assert DOCUMENT["openapi"].startswith("3.")


def test_a_session_asks_and_decides_as_one_in_python(call, model, tmp_path):
    answers = {"temperature": 37.9, "cough": "yes", "sodium": 138.0, "potassium": 4.2}
    status, found = call("POST", "/sessions", {"case": "Miller"})
    assert status == 201
    session, path = model.open(), f"/sessions/{found['id']}"
    while found["next"] is not None:
        expected = (session.arrived or [session.next_feature])[0]
        assert found["next"] == expected
        assert found["questions"][0]["feature"] == expected
        assert 1 <= len(found["questions"]) <= 3
        feature = found["next"]
        session.observe(answers[feature], feature)
        status, found = call("POST", f"{path}/answers", {"value": answers[feature]})
        assert status == 200
        assert found["cost"] == session.cost
        assert found["posterior"] == pytest.approx(session.posterior, abs=1e-6)
    assert found["finished"]
    assert found["decision"] == session.decision
    assert len(found["steps"]) == len(session.explain())
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["event"] for line in lines] == ["open", *["answer"] * len(found["steps"])]
    assert {line["case"] for line in lines} == {"Miller"}
    assert lines[-1]["cost"] == session.cost


def test_the_other_values_of_a_panel_arrive_with_the_first(call, model):
    _, found = call("POST", "/sessions", {"unavailable": ["temperature", "cough"]})
    path = f"/sessions/{found['id']}"
    assert (found["next"] in ("sodium", "potassium"), found["price"]) == (True, 5.0)
    first, second = found["next"], {"sodium": "potassium", "potassium": "sodium"}[found["next"]]
    values = {"sodium": 139.5, "potassium": 4.1}
    _, found = call("POST", f"{path}/answers", {"value": values[first]})
    assert (found["next"], found["price"], found["cost"]) == (second, 0.0, 5.0)
    assert found["questions"][0]["reason"] == "It arrived with the other values of its panel."
    _, found = call("POST", f"{path}/answers", {"value": values[second]})
    assert (found["next"], found["cost"]) == (None, 5.0)
    call("PUT", path, {"observed": []})
    _, both = call("POST", f"{path}/answers", {"values": values})
    assert both["posterior"] == found["posterior"]
    assert both["cost"] == 5.0


def test_what_if_and_undo(call):
    _, start = call("POST", "/sessions", {})
    path = f"/sessions/{start['id']}"
    _, other = call("POST", f"{path}/what-if", {"value": 39.0, "feature": "temperature", "confirmed": True})
    assert other["posterior"]["ill"] > start["posterior"]["ill"]
    assert call("GET", path) == (200, start)
    call("POST", f"{path}/answers", {"feature": "temperature", "value": 37.0})
    assert call("POST", f"{path}/undo") == (200, start)
    assert call("POST", f"{path}/undo")[0] == 400
    _, found = call("POST", f"{path}/stop")
    assert (found["finished"], found["next"], found["questions"]) == (True, None, [])
    assert call("POST", f"{path}/undo") == (200, start)


def test_an_earlier_answer_can_be_corrected(call):
    _, found = call("POST", "/sessions", {"observed": [["cough", "yes", True], ["temperature", 39.0, True]]})
    path = f"/sessions/{found['id']}"
    _, other = call("PUT", path, {"observed": [["cough", "no", True], ["temperature", 39.0, True]]})
    assert other["posterior"] != found["posterior"]
    assert other["cost"] == found["cost"]
    assert call("GET", path)[1]["observed"][0] == ["cough", "no", True]


def test_an_implausible_value_is_confirmed_or_converted(call):
    _, found = call("POST", "/sessions", {})
    path = f"/sessions/{found['id']}/answers"
    status, asks = call("POST", path, {"feature": "temperature", "value": 98.6})
    assert status == 400
    assert "98.6 is outside" in asks["question"]
    assert asks["units"] == ["°C", "°F"]
    _, found = call("POST", path, {"feature": "temperature", "value": 98.6, "unit": "°F"})
    assert found["observed"][0][1] == pytest.approx(37.0)
    assert call("POST", path, {"feature": "cough", "value": "loud"})[0] == 400
    _, found = call("POST", path, {"feature": "cough", "value": "loud", "confirmed": True})
    assert found["steps"][-1]["outcome"] == "new category"


def test_a_budget_holds_for_one_session(call):
    _, found = call("POST", "/sessions", {"budget": 4.0})
    assert found["budget"] == 4.0
    while found["next"] is not None:
        assert found["cost"] + found["price"] <= 4.0
        status, found = call("POST", f"/sessions/{found['id']}/answers", {"outcome": "no result"})
        assert status == 200
    assert call("POST", "/sessions", {})[1].get("budget") is None


@pytest.mark.parametrize(
    ("method", "path", "message", "status", "said"),
    [
        ("POST", "/sessions", [1], 400, "one JSON object"),
        ("POST", "/sessions", {"budget": -1}, 400, "budget must be a number"),
        ("POST", "/sessions", {"budget": "much"}, 400, "budget must be a number"),
        ("POST", "/sessions", {"observed": [3]}, 400, "triples"),
        ("POST", "/sessions", {"observed": "x"}, 400, "triples"),
        ("POST", "/sessions", {"observed": [["nose", 1, True]]}, 400, "No feature is named 'nose'"),
        ("POST", "/sessions", {"unavailable": ["nose"]}, 400, "nose"),
        ("GET", "/sessions/none", None, 404, "POST /sessions opens a session"),
        ("POST", "/elsewhere", {}, 404, "POST /sessions opens a session"),
    ],
)
def test_invalid_requests_are_explained(call, method, path, message, status, said):
    code, found = call(method, path, message)
    assert code == status
    assert said in found["error"]


@pytest.mark.parametrize(
    "message",
    [{}, {"value": "warm", "feature": "temperature"}, {"value": True, "feature": "temperature"}, {"outcome": "lost"},
     {"values": [1]}, {"values": {"cough": "yes", "nose": 1}}, {"values": {"cough": "yes", "temperature": 1e9}},
     {"value": 1, "feature": "nose"}, {"value": 1, "feature": "temperature", "unit": "K"}],
    ids=str,
)  # fmt: skip
def test_an_invalid_answer_changes_nothing(call, message):
    _, start = call("POST", "/sessions", {})
    path = f"/sessions/{start['id']}"
    code, found = call("POST", f"{path}/answers", message)
    assert code == 400
    assert found["error"]
    assert call("GET", path) == (200, start)


def test_a_deleted_session_is_gone_and_old_ones_are_dropped(call, page, monkeypatch):
    ids = [call("POST", "/sessions", {})[1]["id"] for _ in range(3)]
    assert call("DELETE", f"/sessions/{ids[0]}") == (204, None)
    assert call("GET", f"/sessions/{ids[0]}")[0] == 404
    monkeypatch.setattr(question_page, "_MOST", 2)
    call("GET", f"/sessions/{ids[1]}")  # so that the other one is unused for longest
    call("POST", "/sessions", {})
    assert call("GET", f"/sessions/{ids[1]}")[0] == 200
    assert call("GET", f"/sessions/{ids[2]}")[0] == 404


def test_another_address_has_a_name_of_its_own(model):
    page = QuestionPage(model, host="localhost")
    try:
        assert page.address.startswith("http://localhost:")
        port = int(page.address.rsplit(":", 1)[1].strip("/"))
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        link.request("GET", "/", headers={"Host": "evil.example"})
        assert link.getresponse().status == 403
    finally:
        page.close()
