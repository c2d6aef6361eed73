"""Where warnings are errors, a batch that makes a model warn is learned from whole or not at all."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from tamis import StreamPipeline, TScore, cli, prequential
from tamis.catalog import CATALOG, LEARNERS, Entry

TAKES_BATCHES = [
    entry
    for entry in (*CATALOG, *LEARNERS)
    if entry.module.startswith("tamis.")
    and "river" not in entry.module
    and hasattr(entry.load(), "partial_fit")
]
SCALES = {"tiny": 1e-60, "tinier": 1e-310, "large": 1e40, "larger": 1e140, "constant": 0.0}


@pytest.mark.parametrize("entry", TAKES_BATCHES, ids=lambda entry: entry.key)
def test_a_warning_that_is_an_error_leaves_the_model_as_it_was(entry: Entry) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
    model = entry.load()(**dict(entry.parameters))
    declared: dict[str, Any] = (
        {"classes": [0, 1]} if "classes" in inspect.signature(model.partial_fit).parameters else {}
    )
    model.partial_fit(X, y, **declared)
    for scale in SCALES.values():
        batch = X[:20].copy()
        batch[:, 1:3] *= scale
        for target in (y[:20], y[:20, None], np.ones(20, int)):
            before = joblib.hash(vars(model))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    model.partial_fit(batch, target)
                except Exception:
                    assert joblib.hash(vars(model)) == before


@pytest.mark.parametrize(
    "entry", [entry for entry in TAKES_BATCHES if entry.family == "rows"], ids=lambda e: e.key
)
def test_degenerate_rows_raise_no_numpy_warning(entry: Entry) -> None:
    """Whatever rows a selector accepts, no computation overflows, divides by zero or is invalid."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    constant, missing = X.copy(), X.copy()
    constant[:, 1], constant[:, 2], missing[:, 1] = 5.0, 0.0, np.nan
    cases = {
        "a class of weight 0": (X, y, y == 0),
        "constants": (constant, y, None),
        "one row": (X[:1], y[:1], None),
    }
    cases |= {f"times {scale:g}": (scale * X, y, None) for scale in (1e-200, 1e90, 1e150)}
    cases |= {
        "one column": (X[:, :1], y, None),
        "all missing": (missing, y, None),
        "offset": (X + 1e12, y, None),
    }
    for parameters in (entry.parameters, entry.regression) if entry.regression else (entry.parameters,):
        for what, (rows, target, weight) in cases.items():
            model = entry.load()(**dict(parameters))
            weights = {} if weight is None else {"sample_weight": weight.astype(float)}
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                warnings.simplefilter("ignore", UserWarning)
                try:
                    for _ in range(2):
                        model.partial_fit(rows, target, **weights)
                    model.get_support(), model.scores_, getattr(model, "pvalues_", None)
                except ValueError:
                    pass  # such rows are rejected
                except RuntimeWarning as warning:
                    pytest.fail(f"{what}: {warning}")


def test_a_class_without_rows_raises_no_numpy_warning() -> None:
    """Naive Bayes takes the log of its prior, 0."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        pipeline = StreamPipeline(TScore(2), GaussianNB()).partial_fit(X, y, classes=[0, 1, 2])
        assert set(pipeline.predict(X)) <= {0, 1}
        assert pipeline.predict_proba(X)[:, 2].max() == 0.0
        prequential([(X[:150], y[:150]), (X[150:], y[150:])], TScore(2), GaussianNB())


def test_the_command_line_prints_a_warning_as_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        cli, "_command", lambda: lambda **_: warnings.warn("rescale\n  it.", RuntimeWarning, stacklevel=1)
    )
    assert cli.main(["recommend"]) == 0
    assert capsys.readouterr().err == "tamis: warning: rescale it.\n"
