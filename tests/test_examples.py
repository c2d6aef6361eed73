"""The examples of docs/examples, as they are."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import tamis
from tamis import FIRES, SGDLogisticRegression, StreamPipeline

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RNG = np.random.default_rng(3)
X = RNG.normal(size=(600, 5))
Y = np.where(X[:, 1] > 0, "on", "off")


@pytest.fixture
def service():
    pytest.importorskip("fastapi", reason="no FastAPI: pip install fastapi httpx")
    pytest.importorskip("httpx", reason="no httpx: pip install httpx")
    return example("service")


def requests(client, start, stop, delay=7):
    """Predict rows, and send each label some rows later."""
    labels = []
    for i in range(start, stop):
        sent = client.post("/predict", json={"id": str(i), "values": X[i].tolist()})
        assert sent.status_code == 200
        labels.append(sent.json()["label"])
        if i - delay >= start:
            assert (
                client.post("/label", json={"id": str(i - delay), "label": Y[i - delay]}).status_code == 200
            )
    return labels


@pytest.mark.filterwarnings("ignore")
def test_the_service_predicts_and_learns_from_late_labels(service, tmp_path):
    from starlette.testclient import TestClient

    model = StreamPipeline(FIRES(1), SGDLogisticRegression()).fit(X[:50], Y[:50])
    service.prepare(model, tmp_path / "model.tamis")
    with TestClient(service.create_app(str(tmp_path / "model.tamis"))) as client:
        labels = requests(client, 50, 200)
        assert client.get("/selected").json() == [1]
        for path, body, status, problem in (
            ("/label", {"id": "9999", "label": "on"}, 404, "'9999' does not wait for a label"),
            ("/predict", {"id": "199", "values": X[0].tolist()}, 409, "'199' waits for its label already"),
            ("/predict", {"id": "x", "values": [1.0]}, 422, "values must be 5 finite numbers"),
        ):
            answer = client.post(path, json=body)
            assert (answer.status_code, problem in answer.text) == (status, True)
        with (
            pytest.raises(tamis.errors.CheckpointError),
            TestClient(service.create_app(str(tmp_path / "model.tamis"))),
        ):
            pass  # a second process
    expected = StreamPipeline(FIRES(1), SGDLogisticRegression()).fit(X[:50], Y[:50])
    for i in range(50, 200):
        assert labels[i - 50] == expected.predict(X[i : i + 1])[0]
        if i - 7 >= 50:
            expected.partial_fit(X[i - 7 : i - 6], Y[i - 7 : i - 6])
    saved = tamis.load(tmp_path / "model.tamis")
    assert tamis.dumps(saved["model"]) == tamis.dumps(expected)
    assert sorted(saved["waiting"]) == [str(i) for i in range(193, 200)]


@pytest.mark.filterwarnings("ignore")
def test_a_service_that_is_killed_continues_where_it_was(service, tmp_path):
    model = StreamPipeline(FIRES(1), SGDLogisticRegression()).fit(X[:50], Y[:50])
    for name in ("whole", "killed"):
        service.prepare(model, tmp_path / f"{name}.tamis")

    def send(served, start, stop):
        for i in range(start, stop):
            served.predict(service.Row(id=str(i), values=X[i].tolist()))
            served.learn(service.Label(id=str(i), label=str(Y[i])))

    whole = service.LearningModel(tmp_path / "whole.tamis", save_every=20)
    send(whole, 50, 200)
    for start in range(50, 200, 30):  # each process ends without a last save
        killed = service.LearningModel(tmp_path / "killed.tamis", save_every=20)
        send(killed, start, start + 30)
    assert tamis.dumps(killed.model) == tamis.dumps(whole.model)
    lines = (tmp_path / "killed.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [str(i) for i in range(50, 200) for _ in range(2)]


@pytest.mark.slow
def test_features_of_a_feast_store(tmp_path):
    pytest.importorskip("feast", reason="no Feast: pip install feast")
    names, labels = example("feast_features").main(tmp_path)
    assert sorted(names) == ["current", "pressure"]
    assert len(labels) == 3
    assert set(labels) <= {"on", "off"}
