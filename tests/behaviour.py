"""What every method gives for one small stream: numbers that change when its published tables may be out of date.

    python -m tests.behaviour fires ifc2f    # after the tables of these were made again: store what they give now
    python -m tests.behaviour --all          # of those that changed

`tests/behaviour.json` has, of each method, three sums of what it gives and the commit at which they were stored. A hash
of the source would change with every renamed variable; these change with the results alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tamis.catalog import CATALOG, LEARNERS, Entry

STORED = Path(__file__).with_suffix(".json")
# Methods of Tamis; those that need another package give what that package gives.
ENTRIES = {
    entry.key: entry
    for entry in [*CATALOG, *LEARNERS]
    if entry.module.startswith("tamis.") and entry.name not in ("Refit", "RiverClassifier")
}


def stream() -> tuple[np.ndarray, np.ndarray]:
    """Return 600 rows of twelve columns, some with few values; another column becomes relevant after 300 rows."""
    rng = np.random.default_rng(20)
    X = rng.normal(size=(600, 12))
    X[:, 6:9] = rng.integers(0, 4, size=(600, 3))
    X[:, 9] = X[:, 0] + 0.5 * X[:, 9]
    odds = X[:, 0] + 0.7 * (X[:, 6] - 1.5) + np.where(np.arange(600) < 300, X[:, 1], X[:, 2])
    return X, (odds + rng.logistic(size=600) > 0).astype(int)


def variants(entry: Entry) -> list[Any]:
    """Return the method with its defaults, with categorical columns and as published where a class has that."""
    cls = entry.load()
    made = [cls(**dict(entry.parameters))]
    if "categorical" in made[0].get_params(deep=False) and "categorical" not in dict(entry.parameters):
        made.append(cls(**dict(entry.parameters), categorical=[6, 7, 8]))
    published = getattr(cls, "published", getattr(cls, "paper", None))
    if published is not None and not entry.parameters:
        made.append(published())
    for model in made:
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=0)
    return made


def outcome(entry: Entry, model: Any) -> np.ndarray:
    """Return what a method gives for the stream: scores, a trace or probabilities."""
    X, y = stream()
    if entry.family == "columns":
        model.fit(X[:200], y[:200])
        return np.concatenate([model.get_support(), np.nan_to_num(model.trace_["statistic"])])
    if entry.family == "cells":
        model.fit(X[:200], y[:200])
        return np.append(model.predict_proba(X[200:300])[:, 1], model.n_features_used_)
    if not hasattr(model, "partial_fit"):
        return np.asarray(model.fit(X, y).predict(X))
    for start in range(0, 600, 100):
        rows = slice(start, start + 100)
        classes = (
            {} if entry.family == "rows" or start or entry.targets == ("regression",) else {"classes": [0, 1]}
        )
        model.partial_fit(X[rows], y[rows], **classes)
    if entry.family == "rows":
        return np.concatenate([model.scores_, model.get_support()])
    return np.asarray(model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X))


def numbers_of(entry: Entry) -> list[float]:
    """Return three sums of what a method gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = [np.asarray(outcome(entry, model), dtype=np.float64) for model in variants(entry)]
    values = np.concatenate(given)
    return [
        float(values.sum()),
        float(np.abs(values).sum()),
        float(values @ np.cos(np.arange(len(values)))),
    ]


def stored() -> dict[str, Any]:
    return dict(json.loads(STORED.read_text(encoding="utf-8"))) if STORED.exists() else {}


def is_same(numbers: list[float], before: list[float]) -> bool:
    return bool(np.allclose(numbers, before, rtol=1e-6, atol=1e-9))


def write(known: dict[str, Any]) -> None:
    text = json.dumps({key: known[key] for key in sorted(known) if key in ENTRIES}, indent=1)
    STORED.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("keys", nargs="*", choices=[*ENTRIES, []])
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    command = ["git", "rev-parse", "--short=10", "HEAD"]
    commit = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=STORED.parent
    ).stdout.strip()
    known = stored()
    for key in ENTRIES if options.all else options.keys:
        numbers = numbers_of(ENTRIES[key])
        if key not in known or not is_same(numbers, known[key]["numbers"]):
            known[key] = {"commit": commit, "numbers": numbers}
            print(key, numbers, flush=True)
            write(known)
    write(known)


if __name__ == "__main__":
    main()
