"""MLflow: log and load fitted models, and log the runs of `prequential`.

A model is stored as one `.tamis` file, which is loaded without pickle, with a loader for `mlflow.pyfunc`: signature,
input example and the model registry work as for any other model.
"""

from __future__ import annotations

import functools
import importlib
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tamis

if TYPE_CHECKING:
    from tamis.evaluate import PrequentialResult

__all__ = ["autolog", "load_model", "log_model", "log_result", "save_model"]

_FILE = "model.tamis"
_LONGEST = 500  # characters of a parameter, which every store accepts
_MOST = 1000  # metrics in a call
_unpatched: Callable[..., Any] | None = None


def save_model(model: Any, path: str | Path, **options: Any) -> None:
    """Write a fitted model to a folder in MLflow's format.

    Parameters
    ----------
    model : StreamPipeline, selector or learner
        Whatever :func:`tamis.save` accepts, with `predict` or `transform`.
    path : str or Path
        A new folder.
    **options
        Of ``mlflow.pyfunc.save_model``: `signature`, `input_example` (from which the signature is inferred),
        `metadata`.
    """
    import mlflow.pyfunc

    _with_file(model, mlflow.pyfunc.save_model, {"path": str(path)} | options)


def log_model(model: Any, name: str = "model", **options: Any) -> Any:
    """Log a fitted model to the active run, or a new one.

    Parameters
    ----------
    model : StreamPipeline, selector or learner
        As for :func:`save_model`.
    name : str, default="model"
        Name of the logged model.
    **options
        Of ``mlflow.pyfunc.log_model``: `signature`, `input_example`, `registered_model_name`, `tags`, ...

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its `model_uri` is what :func:`load_model` and ``mlflow.pyfunc.load_model`` take.
    """
    import mlflow.pyfunc

    return _with_file(model, mlflow.pyfunc.log_model, {"name": name} | options)


def _with_file(model: Any, write: Callable[..., Any], options: dict[str, Any]) -> Any:
    from mlflow.models import infer_signature

    requirements = {"pip_requirements": [f"tamis=={tamis.__version__}"]} | options
    if (example := options.get("input_example")) is not None and options.get("signature") is None:
        requirements["signature"] = infer_signature(example, _Predictor(model).predict(example))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, _FILE)
        tamis.save(model, file)
        return write(loader_module=__name__, data_path=str(file), **requirements)


def load_model(model_uri: str) -> Any:
    """Return a logged model as the object that was logged: it can learn on.

    Parameters
    ----------
    model_uri : str
        As for ``mlflow.pyfunc.load_model``: ``models:/...``, ``runs:/...`` or a folder.

    Raises
    ------
    ValueError
        If the model was logged by another library.
    """
    from mlflow.artifacts import download_artifacts
    from mlflow.models import Model

    uri = str(model_uri)
    folder = Path(uri) if Path(uri).is_dir() else Path(download_artifacts(artifact_uri=uri))
    flavor = Model.load(str(folder)).flavors.get("python_function", {})
    if flavor.get("loader_module") != __name__:
        raise ValueError(
            f"{model_uri} was not logged by tamis.adapters.mlflow: load it with mlflow.pyfunc.load_model."
        )
    return tamis.load(folder / flavor["data"])


class _Predictor:
    """The model as `mlflow.pyfunc` calls it: the predictions, or the selected features of a selector."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        verb = "predict" if hasattr(self.model, "predict") else "transform"
        return getattr(self.model, verb)(model_input)


def _load_pyfunc(path: str) -> _Predictor:
    """Return the model of a file for `mlflow.pyfunc`."""
    return _Predictor(tamis.load(path))


# -- runs ----------------------------------------------------------------------------------------------------------


def log_result(result: PrequentialResult, *, report: bool = True) -> None:
    """Log a result of :func:`tamis.prequential` to the active run, or a new one.

    Parameters
    ----------
    result : PrequentialResult
        Its settings become parameters, its summary and its steps (by rows seen) metrics.
    report : bool, default=True
        Whether the HTML page of the run is logged too.
    """
    import mlflow
    from mlflow.entities import Metric

    run = mlflow.active_run() or mlflow.start_run()
    mlflow.log_params(_flat(result.settings))
    mlflow.log_metrics(_finite(result.summary()))
    steps, now = result.frames["steps"], int(1000 * time.time())
    numbers = {name: values for name, values in steps.items() if name not in ("step", "n_seen")}
    metrics = [
        Metric(f"step_{name}", value, now, int(row))
        for name, values in numbers.items()
        if getattr(values, "dtype", None) is not None and values.dtype.kind in "fiub"
        for row, value in zip(steps["n_seen"].tolist(), map(float, values), strict=True)
        if math.isfinite(value)
    ]
    client = mlflow.MlflowClient()
    for at in range(0, len(metrics), _MOST):
        client.log_batch(run.info.run_id, metrics=metrics[at : at + _MOST])
    if report:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "report.html")
            result.report(str(page))
            mlflow.log_artifact(str(page))


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Return settings as texts, those within others by names such as ``selector.params.model``."""
    flat: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        elif value is not None:
            flat[f"{prefix}{key}"] = str(value)[:_LONGEST]
    return flat


def _finite(summary: dict[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in summary.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }


def autolog(*, disable: bool = False, log_models: bool = True) -> None:
    """Log each later call of ``tamis.prequential``: its settings, measures, report and final model.

    A run that is not active yet is started and ended by the call. A name that was imported before, as by
    ``from tamis import prequential``, is not affected.

    Parameters
    ----------
    disable : bool, default=False
        Stop logging.
    log_models : bool, default=True
        Whether the selector and the learner are logged as one model.
    """
    global _unpatched
    import mlflow

    places = [importlib.import_module(name) for name in ("tamis.evaluate.prequential", "tamis.evaluate")]
    if _unpatched is not None:
        for place in places:
            vars(place)["prequential"] = _unpatched
        _unpatched = None
    if disable:
        return
    original = _unpatched = vars(places[0])["prequential"]

    @functools.wraps(original)
    def prequential(*args: Any, **options: Any) -> PrequentialResult:
        result: PrequentialResult = original(*args, **options)
        is_new = mlflow.active_run() is None
        try:
            log_result(result)
            if log_models:
                log_model(result.pipeline())
        finally:
            if is_new:
                mlflow.end_run()
        return result

    for place in places:
        vars(place)["prequential"] = prequential
