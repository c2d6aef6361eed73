"""Where warnings are errors, a batch that makes a model warn is learned from whole or not at all."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import joblib
import numpy as np
import pytest

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
