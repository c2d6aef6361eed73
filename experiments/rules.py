"""Rules beside trees, naive Bayes and the majority class: prequential accuracy, size and CPU seconds.

    python experiments/rules.py [--data FOLDER] [--out FOLDER] [--streams NAMES] [--arms NAMES] [--rows N] [--seeds N]

Test-then-train in batches of 100 rows, each arm with its defaults. A stream's name with a number,
as "SEA 3", is a stream of that many drifts. Electricity and the usenet sets keep their order; spambase and magic04 are
shuffled, so they have no drift. Each cell is the mean over seeds, which draw the stream or shuffle the set; it is kept
in --out as it is done, and not done again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import (
    CVFDT,
    VFDR,
    HoeffdingAdaptiveTree,
    HoeffdingTree,
    RandomRules,
    WeightedNaiveBayes,
    load_stream,
)
from tamis.streams import load_dataset

ROOT = Path(__file__).resolve().parents[1]
GENERATED = [
    f"{name} {drifts}" for drifts in (0, 3) for name in ("SEA", "AGR", "AN", "BG1", "BG2", "BG3", "RTG")
]
IN_TIME, SHUFFLED = ("electricity", "usenet2"), ("spambase", "magic04")
CATEGORIES = {"BG1": "all", "BG2": "all", "BG3": "all"}
ARMS: dict[str, Callable[[Any], Any]] = {
    "majority class": lambda c: HoeffdingTree(max_depth=0, leaf="majority"),
    "naive Bayes": lambda c: WeightedNaiveBayes(None, weight=None, categorical=c),
    "tree": lambda c: HoeffdingTree(categorical=c),
    "adaptive tree": lambda c: HoeffdingAdaptiveTree(categorical=c),
    "CVFDT": lambda c: CVFDT(categorical=c),
    "ordered": lambda c: VFDR(categorical=c),
    "unordered": lambda c: VFDR(ordered=False, categorical=c),
    "ordered, drift": lambda c: VFDR(drift=0.002, categorical=c),
    "unordered, drift": lambda c: VFDR(ordered=False, drift=0.002, categorical=c),
    "random": lambda c: RandomRules(categorical=c),
    "random, published": lambda c: RandomRules(grace_period=200, delta=1e-7, drift=None, categorical=c),
    "ordered, majority": lambda c: VFDR(leaf="majority", categorical=c),
    "tree, majority": lambda c: HoeffdingTree(leaf="majority", categorical=c),
}  # fmt: skip


def rows_of(name: str, data: Path, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if name in IN_TIME + SHUFFLED:
        source = load_dataset(name, data_home=data)
        X, y = source.take(source.n_rows)
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y)) if name in SHUFFLED else np.arange(len(y))
        X, y = X[order[:n_rows]], np.asarray(y)[order[:n_rows]]
    else:
        generator, drifts = name.split()
        X, y = load_stream(generator, seed=seed, n_rows=n_rows, n_drifts=int(drifts)).take(n_rows)
    X = X.toarray() if hasattr(X, "toarray") else X
    return np.asarray(X, dtype=float), np.unique(np.asarray(y), return_inverse=True)[1]


def cell(X: np.ndarray, y: np.ndarray, model: Any) -> dict[str, float]:
    """Return accuracy, CPU seconds, and leaves or rules at the end."""
    classes, right, start = np.unique(y), 0, time.process_time()
    for at in range(0, len(y), 100):
        part = slice(at, at + 100)
        right += int((model.predict(X[part]) == y[part]).sum()) if at else 0
        model.partial_fit(X[part], y[part], classes=classes)
    seconds = time.process_time() - start
    size = getattr(model, "n_rules_", getattr(model, "n_leaves_", 1))
    return {"accuracy": right / (len(y) - 100), "seconds": seconds, "size": float(np.sum(size))}


def mean_of(cells: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in cells])) for name in cells[0]}


def table(found: dict[str, dict[str, dict[str, float]]], arms: list[str]) -> str:
    lines = ["| stream | " + " | ".join(arms) + " |", "| --- |" + " ---: |" * len(arms)]
    for name, cells in found.items():
        shown = [f"{100 * cells[arm]['accuracy']:.1f} ({cells[arm]['size']:.0f})" for arm in arms]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    for what, scale in (("accuracy", 100.0), ("seconds", 1.0)):
        means = [scale * np.mean([cells[arm][what] for cells in found.values()]) for arm in arms]
        lines.append(f"| mean {what} | " + " | ".join(f"{mean:.1f}" for mean in means) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "rules")
    parser.add_argument("--streams", default=",".join((*GENERATED, *IN_TIME, *SHUFFLED)))
    parser.add_argument("--arms", default=";".join(ARMS), help="separated by ;")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    place = options.out / f"{options.rows}_{options.seeds}.json"
    known: dict[str, Any] = json.loads(place.read_text()) if place.exists() else {}
    arms, names = options.arms.split(";"), options.streams.split(",")
    for name in names:
        cells = known.setdefault(name, {})
        for arm in arms:
            if arm in cells:
                continue
            runs = []
            for seed in range(1 if name in IN_TIME else options.seeds):
                X, y = rows_of(name, options.data, options.rows, seed)
                cell(X[:2000], y[:2000], ARMS[arm](CATEGORIES.get(name.split()[0])))  # compiles
                runs.append(cell(X, y, ARMS[arm](CATEGORIES.get(name.split()[0]))))
            cells[arm] = mean_of(runs)
            print(
                f"{name:12} {arm:18} " + " ".join(f"{k} {v:.4g}" for k, v in cells[arm].items()), flush=True
            )
            place.write_text(json.dumps(known, indent=1))
    print(table({name: known[name] for name in names}, arms))


if __name__ == "__main__":
    main()
