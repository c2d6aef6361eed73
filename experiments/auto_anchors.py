"""`Auto` beside the two anchors that cost nothing: all columns, and an L1 selection frozen after 1,000 rows.

    python experiments/auto_anchors.py [--streams NAMES] [--learners NAMES] [--rows 6000] [--change NAME=VALUE ...]

Test-then-train in batches of 100 rows on the real streams of shared/data/streams4 and on bundled ones. The frozen
selection has as many columns as `Auto` selects at that row. A figure is a difference in points of 100: of the AUC where
fewer than 20 % of the rows are of the rarer of two classes, of accuracy elsewhere, and of 1 - MAE / (mean absolute
deviation) for a numeric target. `--change` sets a constant of the comparison, `_ENOUGH=2000`, which makes an ablation.

The constants were chosen on DEVELOPED, the other streams judge them; docs/evidence/auto.md has the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from lightgbm import LGBMRegressor
from sklearn.linear_model import SGDRegressor
from sklearn.naive_bayes import GaussianNB

from tamis import Auto, Refit, SGDLogisticRegression, prequential
from tamis.learners import AdaptiveRandomForest
from tamis.pipeline.selective_learner import default_learner
from tamis.rows.auto import auto
from tamis.streams import load_dataset
from tamis.summaries import paired_losses

DATA = Path(os.environ.get("TAMIS_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"
DEVELOPED = ("stackoverflow", "loanapp", "happiness", "employment", "imagesegments", "tmy_cloud")
REAL = (
    *("attrition", "cells", "credit_data", "grants", "musk", "phishing", "foods_text", "tmy_wind_rare"),
    *("electricity", "magic04", "spambase", "german", "splice", "a8a"),
)
NUMERIC = ("ames", "chicago")
LEARNERS: dict[str, Any] = {
    "logistic": lambda: SGDLogisticRegression(learning_rate="constant"),
    "naive-bayes": GaussianNB,
    "trees": lambda: AdaptiveRandomForest(random_state=0),
    "lightgbm": lambda: Refit("lightgbm"),
}


def rows_of(name: str, n_rows: int) -> tuple[Any, Any, bool]:
    """Return the first rows of a stream, and whether the target is numeric."""
    if (DATA / "streams4" / f"{name}.npz").exists():
        stored = np.load(DATA / "streams4" / f"{name}.npz", allow_pickle=True)
        X, y, is_numeric = stored["X"][:n_rows], stored["y"][:n_rows], str(stored["task"]) == "reg"
        return X.astype(np.float64), y.astype(np.float64) if is_numeric else y.astype(int), is_numeric
    X, y = load_dataset(name, data_home=DATA).take(10**6)
    order = np.arange(len(y)) if name == "electricity" else np.random.default_rng(0).permutation(len(y))
    X = np.asarray(X[order[:n_rows]].todense() if hasattr(X, "todense") else X[order[:n_rows]], np.float64)
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X), np.asarray(y)[order[:n_rows]], False


def cell(name: str, learner: str, n_rows: int) -> dict[str, Any]:
    """Return the points of `Auto` above both anchors, the share of columns that it keeps, and its time."""
    X, y, is_numeric = rows_of(name, n_rows)
    model = LEARNERS[learner]()
    if is_numeric:
        models = {"logistic": lambda: default_learner(numbers=True), "naive-bayes": SGDRegressor}
        model = models.get(learner, lambda: Refit(LGBMRegressor(n_estimators=50, verbose=-1)))()
    selector = Auto(learner=model, task="regression" if is_numeric else "classification")
    share = np.unique(y, return_counts=True)[1].min() / len(y)
    is_rare = bool(not is_numeric and len(np.unique(y)) == 2 and share < 0.2)
    begin = time.process_time()
    run = prequential(
        (X, y), selector, model, batch_size=100, baselines="all", frozen_after=1000, auc=is_rare
    )
    found = run.summary()
    if is_numeric:
        unit = 100.0 / np.abs(y - y.mean()).mean()
        scores = [-unit * found[key] for key in ("mae", "all_mae", "frozen_mae")]
    else:
        key = "auc" if is_rare else "accuracy"
        scores = [100.0 * found[one] for one in (key, f"all_{key}", f"frozen_{key}")]
    return {
        "auto": scores[0],
        "all": scores[0] - scores[1],
        "frozen": scores[0] - scores[2],
        "kept": float(np.mean(run.frames["steps"]["n_selected"])) / X.shape[1],
        "changes": len(selector.switches_),
        "select": float(np.sum(run.frames["steps"]["seconds_select"])),
        "seconds": time.process_time() - begin,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", default=",".join((*DEVELOPED, *REAL)))
    parser.add_argument("--learners", default=",".join(LEARNERS))
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--change", action="append", default=[])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    for change in given.change:
        name, _, value = change.partition("=")
        setattr(auto if hasattr(auto, name) else paired_losses, name, json.loads(value))
    warnings.simplefilter("ignore")  # remarks on the results
    print("| stream | learner | Auto | to all | to frozen | kept | changes | s select |\n|" + " --- |" * 8)
    cells = []
    for learner in given.learners.split(","):
        for name in given.streams.split(","):
            one = cell(name, learner, given.rows)
            cells.append({"stream": name, "learner": learner, **one})
            print(
                f"| {name} | {learner} | {one['auto']:.1f} | {one['all']:+.2f} | {one['frozen']:+.2f}"
                f" | {one['kept']:.2f} | {one['changes']} | {one['select']:.2f} |",
                flush=True,
            )
        mine = [one for one in cells if one["learner"] == learner]
        print(f"| mean | {learner} | {summary(mine)} |", flush=True)
    print(f"| mean | | {summary(cells)} |")
    if given.out:
        given.out.write_text(json.dumps(cells))


def summary(cells: list[dict[str, Any]]) -> str:
    """Return the mean score, the mean difference from each anchor with its standard error, and what lies far behind."""
    found = []
    for key in ("all", "frozen"):
        values = np.array([one[key] for one in cells])
        values = values[np.isfinite(values)]  # fewer rows have no frozen selection
        error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
        found.append(f"{values.mean():+.2f} ± {error:.2f} ({(values < -1).mean():.0%} below -1)")
    means = [np.mean([one[key] for one in cells]) for key in ("auto", "kept", "changes", "select")]
    return f"{means[0]:.2f} | {found[0]} | {found[1]} | {means[1]:.2f} | {means[2]:.1f} | {means[3]:.2f}"


if __name__ == "__main__":
    main()
