"""A selection with one learner beside forests: accuracy and CPU seconds under feature drift.

    python experiments/forests.py [--data FOLDER] [--out FOLDER] [--streams NAMES] [--arms NAMES] [--rows 20000]
        [--seeds 1]

Test-then-train in batches of 100 rows (`tamis.prequential`), each arm with its defaults. The seven drifting streams of
the thesis' Table 4.1 and SEA with 48 more features have three drifts each. Electricity and the two usenet sets keep
their order; spambase and magic04 are shuffled, so they have no drift. What is compiled is compiled by a run of 2,000
rows before, and not counted in the CPU seconds. Each cell is kept in --out as it is done, and not done again.

Shown are the means over the seeds; sets that keep their order are run once. The last table asks, over the streams that
drift, how far each arm is from the forest of all features, and how much less time it takes.
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
from scipy.stats import t as student

from tamis import (
    DISCUSS,
    FCBF,
    HUWRS,
    AdaptiveRandomForest,
    ForwardPartialCorrelation,
    HEFTStream,
    HoeffdingAdaptiveTree,
    JointScreening,
    StreamingRandomPatches,
    StreamingStacking,
    WeightedNaiveBayes,
    load_stream,
    prequential,
)
from tamis.catalog import find_learner
from tamis.evaluate.significance import bayesian_signed_rank
from tamis.streams import load_dataset

ROOT = Path(__file__).resolve().parents[1]
DRIFTING = ("AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA", "SEA50")
IN_TIME, SHUFFLED = ("electricity", "usenet", "usenet2"), ("spambase", "magic04")
Arm = Callable[[], tuple[Any, Any]]
ARMS: dict[str, Arm] = {
    "naive Bayes": lambda: (None, WeightedNaiveBayes()),
    "adaptive tree": lambda: (None, HoeffdingAdaptiveTree()),
    "Forward + naive Bayes": lambda: (ForwardPartialCorrelation(), WeightedNaiveBayes()),
    "Forward + adaptive tree": lambda: (ForwardPartialCorrelation(), HoeffdingAdaptiveTree()),
    "Joint + naive Bayes": lambda: (JointScreening(), WeightedNaiveBayes()),
    "Joint + adaptive tree": lambda: (JointScreening(), HoeffdingAdaptiveTree()),
    "DISCUSS + naive Bayes": lambda: (DISCUSS(), WeightedNaiveBayes()),
    "FCBF + naive Bayes": lambda: (FCBF(window=150), WeightedNaiveBayes()),
    "HEFT-Stream": lambda: (None, HEFTStream()),
    "HUWRS": lambda: (None, HUWRS()),
    "plain naive Bayes": lambda: (None, WeightedNaiveBayes(None, weight=None)),
    "HUWRS plain": lambda: (None, HUWRS(estimator="nb")),
    "HUWRS never again": lambda: (None, HUWRS(estimator="nb", retrain_below=0.0)),
    "forest of sqrt": lambda: (None, AdaptiveRandomForest(max_features="sqrt")),
    "forest of 60 %": lambda: (None, AdaptiveRandomForest(max_features=0.6)),
    "forest of all": lambda: (None, AdaptiveRandomForest(max_features=None)),
    "patches of 60 %": lambda: (None, StreamingRandomPatches()),
    "stacked pairs": lambda: (None, StreamingStacking()),
    "River's forest": lambda: (None, river_forest()),
}
FOREST = "forest of all"


def river_forest() -> Any:
    entry = find_learner("river-adaptive-forest")
    return entry.load()(**dict(entry.parameters))


def rows_of(name: str, data: Path, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if name in IN_TIME + SHUFFLED:
        source = load_dataset(name, data_home=data)
        X, y = source.take(source.n_rows)
        order = np.random.default_rng(seed).permutation(len(y)) if name in SHUFFLED else np.arange(len(y))
        X, y = X[order[:n_rows]], np.asarray(y)[order[:n_rows]]
    else:
        extra = {"n_irrelevant": 48} if name == "SEA50" else {}
        X, y = load_stream(name.removesuffix("50"), seed=seed, n_rows=n_rows, n_drifts=3, **extra).take(
            n_rows
        )
    X = X.toarray() if hasattr(X, "toarray") else X
    return np.asarray(X, dtype=float), np.unique(np.asarray(y), return_inverse=True)[1]


def cell(X: np.ndarray, y: np.ndarray, make: Arm) -> dict[str, float]:
    """Return the accuracy and the CPU seconds of an arm."""

    def run(n: int) -> tuple[float, float]:
        start = time.process_time()
        result = prequential((X[:n], y[:n]), *make(), baselines="none", auc=False, replay="always")
        return time.process_time() - start, float(result.summary()["accuracy"])

    run(2000)  # compiles
    seconds, accuracy = run(len(y))
    return {"accuracy": accuracy, "seconds": seconds}


def averaged(found: dict[str, dict[str, dict[str, float]]], arms: list[str]) -> dict[str, Any]:
    """Return accuracy and seconds of each stream that all arms have run on, arms by two, means over the seeds."""
    cells: dict[str, list[Any]] = {}
    for key, of in found.items():
        if set(arms) <= set(of):
            cells.setdefault(key.split("/")[0], []).append(
                [(of[a]["accuracy"], of[a]["seconds"]) for a in arms]
            )
    return {name: np.mean(seeds, axis=0) for name, seeds in cells.items()}


def table(whole: dict[str, Any], arms: list[str]) -> str:
    lines = ["| stream | " + " | ".join(arms) + " |", "| --- |" + " ---: |" * len(arms)]
    ranks = []
    for name, cells in whole.items():
        scores = cells[:, 0]
        ranks.append([(scores > score).sum() + ((scores == score).sum() + 1) / 2 for score in scores])
        lines.append(f"| {name} | " + " | ".join(f"{100 * score:.1f}" for score in scores) + " |")
    mean, spread = np.mean(ranks, axis=0), np.std(ranks, axis=0, ddof=1) / np.sqrt(len(ranks))
    lines.append(
        "| mean rank | " + " | ".join(f"{m:.1f} ± {s:.1f}" for m, s in zip(mean, spread, strict=True)) + " |"
    )
    seconds = sum(cells[:, 1] for cells in whole.values())
    lines.append("| CPU seconds | " + " | ".join(f"{s:.1f}" for s in seconds) + " |")
    return "\n".join(lines)


def claim(whole: dict[str, Any], arms: list[str]) -> str:
    """Compare each arm with the forest over the streams that drift: points, 95 % interval, chances, time."""
    cells = np.array([whole[name] for name in (*DRIFTING, *IN_TIME) if name in whole])
    forest = cells[:, arms.index(FOREST)]
    lines = [
        f"over {len(cells)} streams that drift, against the {FOREST}",
        "",
        "| method | accuracy | points | 95 % interval | at most a point behind | CPU seconds | times as fast |",
        "| --- |" + " ---: |" * 6,
    ]
    for i, arm in enumerate(arms):
        gap = 100 * (cells[:, i, 0] - forest[:, 0])
        half = student.ppf(0.975, len(gap) - 1) * gap.std(ddof=1) / np.sqrt(len(gap))
        chance = bayesian_signed_rank(100 * cells[:, i, 0], 100 * forest[:, 0], rope=1.0)
        low, high, seconds = gap.mean() - half, gap.mean() + half, cells[:, i, 1].sum()
        lines.append(
            f"| {arm} | {100 * cells[:, i, 0].mean():.1f} | {gap.mean():+.1f} | {low:+.1f} to {high:+.1f}"
            f" | {1 - chance.second:.2f} | {seconds:.1f} | {forest[:, 1].sum() / seconds:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "forests")
    parser.add_argument("--streams", default=",".join((*DRIFTING, *IN_TIME, *SHUFFLED)))
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    place = options.out / f"{options.rows}.json"
    found: dict[str, Any] = json.loads(place.read_text()) if place.exists() else {}
    arms = [arm for arm in ARMS if arm in {part.strip() for part in options.arms.split(",")}]
    for seed in range(options.seeds):
        for name in options.streams.split(","):
            if seed and name in IN_TIME:
                continue
            cells = found.setdefault(f"{name}/{seed}", {})
            for arm in arms:
                if arm not in cells:
                    X, y = rows_of(name, options.data, options.rows, seed)
                    cells[arm] = cell(X, y, ARMS[arm])
                    shown = f"{cells[arm]['accuracy']:.4f} {cells[arm]['seconds']:.1f} s"
                    print(f"{name:12} {arm:24} {shown}", flush=True)
                    place.write_text(json.dumps(found, indent=1))
    whole = averaged(found, arms)
    print(table(whole, arms))
    if FOREST in arms:
        print(f"\n{claim(whole, arms)}")


if __name__ == "__main__":
    main()
