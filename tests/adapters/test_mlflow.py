"""Models and runs in a real MLflow with a store of files: what is loaded predicts and learns as what was logged."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mlflow", reason="MLflow is not installed")
pytest.importorskip("mlflow.pyfunc", reason="MLflow has no pyfunc: it needs pandas")

import mlflow
import pandas as pd

import tamis
from tamis import FIRES, ForwardPartialCorrelation, SGDLogisticRegression, StreamPipeline, WeightedNaiveBayes
from tamis.adapters import mlflow as adapter

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(1200, 6)), columns=list("abcdef"))
LABELS = np.where(FRAME["b"] - FRAME["e"] > 0, "up", "down")


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield
    while mlflow.active_run():
        mlflow.end_run()
    adapter.autolog(disable=True)


@pytest.fixture
def model() -> StreamPipeline:
    return StreamPipeline(FIRES(2), SGDLogisticRegression()).fit(FRAME[:1000], LABELS[:1000])


def test_a_logged_model_predicts_and_learns_on(model) -> None:
    with mlflow.start_run():
        info = adapter.log_model(model, input_example=FRAME[:3])
    again = adapter.load_model(info.model_uri)
    assert tamis.dumps(again) == tamis.dumps(model)
    for one in (model, again):
        one.partial_fit(FRAME[1000:], LABELS[1000:])
    assert (again.predict_proba(FRAME) == model.predict_proba(FRAME)).all()


def test_pyfunc_has_a_signature_and_an_example(model) -> None:
    with mlflow.start_run():
        info = adapter.log_model(model, input_example=FRAME[:3])
    loaded = mlflow.pyfunc.load_model(info.model_uri)
    assert [column.name for column in loaded.metadata.signature.inputs] == list(FRAME)
    assert (np.ravel(loaded.predict(FRAME)) == model.predict(FRAME)).all()
    assert loaded.metadata.load_input_example(info.model_uri) is not None
    with pytest.raises(mlflow.exceptions.MlflowException, match="schema"):
        loaded.predict(FRAME.drop(columns="b"))


@pytest.mark.parametrize("make", [lambda: ForwardPartialCorrelation(2), WeightedNaiveBayes, FIRES])
def test_selectors_and_learners_are_saved(make, tmp_path) -> None:
    one = make().fit(FRAME.to_numpy(), LABELS)
    adapter.save_model(one, tmp_path / "model")
    assert tamis.dumps(adapter.load_model(str(tmp_path / "model"))) == tamis.dumps(one)
    verb = "predict" if hasattr(one, "predict") else "transform"
    found = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(FRAME.to_numpy())
    assert (np.asarray(found) == getattr(one, verb)(FRAME.to_numpy())).all()


def test_nothing_of_a_model_is_a_pickle(model, tmp_path) -> None:
    adapter.save_model(model, tmp_path / "model")
    assert not [
        path for path in (tmp_path / "model").rglob("*") if path.suffix in (".pkl", ".pickle", ".joblib")
    ]
    requirements = (tmp_path / "model" / "requirements.txt").read_text()
    assert f"tamis=={tamis.__version__}" in requirements


def test_a_model_of_another_library_is_an_error(tmp_path) -> None:
    (tmp_path / "other.txt").write_text("no model")
    mlflow.pyfunc.save_model(
        str(tmp_path / "other"),
        loader_module="json",
        data_path=str(tmp_path / "other.txt"),
        pip_requirements=[],
    )
    with pytest.raises(ValueError, match="was not logged by tamis"):
        adapter.load_model(str(tmp_path / "other"))


def test_a_result_is_logged_with_its_steps_and_page() -> None:
    result = tamis.prequential((FRAME, LABELS), FIRES(2), batch_size=100, baselines="none")
    with mlflow.start_run() as run:
        adapter.log_result(result)
    stored = mlflow.get_run(run.info.run_id)
    assert stored.data.metrics["accuracy"] == result.summary()["accuracy"]
    params = stored.data.params
    assert (params["options.batch_size"], params["selector.params.n_features_to_select"]) == ("100", "2")
    assert params["selector.class"].endswith("FIRES")
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "step_accuracy")
    steps = result.frames["steps"]
    assert [one.step for one in history] == steps["n_seen"].tolist()
    assert [one.value for one in history] == steps["accuracy"].tolist()
    assert [one.path for one in mlflow.MlflowClient().list_artifacts(run.info.run_id)] == ["report.html"]


def test_autolog_logs_each_run_and_its_model() -> None:
    adapter.autolog()
    adapter.autolog()  # once is enough
    results = [tamis.prequential((FRAME, LABELS), FIRES(n), batch_size=100, baselines="none") for n in (1, 2)]
    assert mlflow.active_run() is None
    adapter.autolog(disable=True)
    tamis.prequential((FRAME, LABELS), FIRES(3), batch_size=100, baselines="none")
    runs = mlflow.search_runs(output_format="list")
    assert len(runs) == 2
    found = sorted(run.data.metrics["accuracy"] for run in runs)
    assert found == sorted(result.summary()["accuracy"] for result in results)
    with mlflow.start_run():
        adapter.autolog()
        tamis.prequential((FRAME, LABELS), FIRES(2), batch_size=100, baselines="none")
        assert mlflow.active_run() is not None
    models = mlflow.search_logged_models(output_format="list")
    assert len(models) == 3
    assert isinstance(adapter.load_model(models[0].model_uri), StreamPipeline)


def test_the_page_runs() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "production.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL):
        if "mlflow" in block:
            exec(block, {})
