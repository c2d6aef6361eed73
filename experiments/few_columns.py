"""Few columns for a refitted LightGBM: chosen penalties, fixed ones, importances and selectors against all columns.

    python experiments/few_columns.py [--data FOLDER] [--out FILE] [--streams NAMES] [--arms NAMES] [--rows 8000]

LightGBM of 50 trees with 15 leaves is refitted every 1,000 rows (at first after 200, 400 and 800) on the last 3,000;
test-then-train in batches of 100 rows, from the first fit on. The score is AUC if the rarer of two classes has less
than a fifth of the rows, R^2 for numbers and otherwise accuracy, in points. The arms:

    all            every column
    few            Refit("lightgbm", features="few") with this LightGBM
    penalty K      every split on a column that is not used yet pays K (`cegb_penalty_feature_coupled`)
    importance     the columns with the largest gain in a LightGBM of all columns on the same rows: as many as "few" has
                   at the same refit
    JointScreening, Auto   these selectors, the second one for trees
    few NAME=VALUE  with another value of a constant of tamis.learners.refit.few_columns, which makes an ablation

The streams are those of shared/data/streams4, which have numbers and one-hot categories; electricity in order; a8a,
spambase and madelon shuffled; and generators of Tamis. Each cell is kept in --out as it is done, and not done again.
Shown are the mean difference to all columns with a 95 % interval (Student's t over the streams), the worst stream,
the share of the columns that the model uses, the share of all columns that enter or leave at a refit, and the time.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.stats import t as student
from sklearn.metrics import r2_score, roc_auc_score

from tamis import Auto, JointScreening, Refit, load_stream
from tamis.learners.refit import few_columns

ROOT = Path(__file__).resolve().parents[1]
GENERATED = ("SEA", "BG3", "AGR")
IN_ORDER, SHUFFLED = ("electricity",), ("spambase", "a8a", "madelon")
EVERY, WINDOW, BATCH = 1000, 3000, 100
ARMS = ("all", "few", "penalty 2", "penalty 5", "penalty 10", "importance", "JointScreening", "Auto")


def rows_of(name: str, folder: Path, n_rows: int) -> tuple[Any, Any]:
    """Return the first rows of a stream, and their labels or numbers."""
    if (place := folder / "streams4" / f"{name}.npz").exists():
        with np.load(place, allow_pickle=False) as content:
            return content["X"][:n_rows].astype(np.float64), content["y"][:n_rows]
    if name in GENERATED:
        return load_stream(name).take(n_rows)
    place = folder / name / "data.npz"
    with np.load(place, allow_pickle=False) as content:
        y = content["y"]
        X = content["X"] if "X" in content else sp.load_npz(place).toarray()
    order = np.arange(len(y)) if name in IN_ORDER else np.random.default_rng(0).permutation(len(y))
    return X[order[:n_rows]].astype(np.float64), y[order[:n_rows]]


def new_lightgbm(is_numeric: bool, **options: Any) -> Any:
    return (LGBMRegressor if is_numeric else LGBMClassifier)(
        n_estimators=50, num_leaves=15, n_jobs=1, verbose=-1, random_state=0, deterministic=True,
        force_col_wise=True, **options,
    )  # fmt: skip


class Importance:
    """The usual practice: at each refit, the columns with the largest gain of a model of all columns."""

    def __init__(self, model: Any, sizes: list[int]) -> None:
        self.model, self.sizes, self.n_fits_ = Refit(model, every=EVERY, window=WINDOW), sizes, 0
        self.support: Any = None

    def partial_fit(self, X: Any, y: Any) -> None:
        self.model.partial_fit(X, y)
        if self.model.n_fits_ > self.n_fits_:
            gain = self.model.estimator_.booster_.feature_importance("gain")
            self.support = np.sort(np.argsort(-gain, kind="stable")[: self.sizes[self.n_fits_]])
            self.n_fits_ = self.model.n_fits_


def cell(name: str, arm: str, X: Any, y: Any, sizes: list[int]) -> dict[str, Any]:
    """Return the score of an arm, the columns used after each refit, and the CPU seconds."""
    is_numeric = y.dtype.kind == "f" and len(np.unique(y)) > 20
    penalty = float(arm.split()[1]) if arm.startswith("penalty") else 0.0
    options: dict[str, Any] = {}
    if penalty:
        options = {"cegb_tradeoff": 1.0, "cegb_penalty_feature_coupled": [penalty] * X.shape[1]}
    recipe = new_lightgbm(is_numeric, **options)
    kind, _, change = arm.partition(" ")
    name_of, _, value = change.partition("=")
    usual = {one: getattr(few_columns, one) for one in [name_of] if value}
    for one in usual:
        setattr(few_columns, one, float(value))
    model = Refit(recipe, every=EVERY, window=WINDOW, features="few" if kind == "few" else "all")
    task = {"task": "regression"} if is_numeric else {}
    selector: Any = {
        "JointScreening": lambda: JointScreening(**task),
        "Auto": lambda: Auto(learner="trees", **task),
        "importance": lambda: Importance(recipe, sizes),
    }.get(arm, lambda: None)()
    classes, predicted, n_fits, used = np.unique(y), [], 0, list[list[int]]()
    begin = time.process_time()
    for start in range(0, len(y), BATCH):
        rows, labels = X[start : start + BATCH], y[start : start + BATCH]
        if n_fits:
            predicted.append(model.predict(rows) if is_numeric else model.predict_proba(rows))
        more: dict[str, Any] = {} if is_numeric else {"classes": classes}
        if selector is not None:
            selector.partial_fit(rows, labels)
            more["columns"] = selector.support if arm == "importance" else selector.get_support(indices=True)
        model.partial_fit(rows, labels, **more)
        if model.n_fits_ > n_fits:
            n_fits, columns = model.n_fits_, model.columns_
            if penalty and model.estimator_ is not None:
                columns = np.flatnonzero(model.estimator_.feature_importances_)
            used.append(columns.tolist())
    seconds, truth = time.process_time() - begin, y[-sum(map(len, predicted)) :]
    output = np.concatenate(predicted)
    for one in usual:
        setattr(few_columns, one, usual[one])
    if is_numeric:
        score = r2_score(truth, output)
    elif len(classes) == 2 and min(np.mean(truth == label) for label in classes) < 0.2:
        score = roc_auc_score(truth == classes[1], output[:, 1])
    else:
        score = np.mean(classes[output.argmax(axis=1)] == truth)
    return {"score": 100 * float(score), "used": used, "seconds": seconds, "n_features": X.shape[1]}


def changes(one: dict[str, Any]) -> float:
    """Return the mean share of the columns that enter or leave at a refit."""
    sets = [set(used) for used in one["used"]]
    return float(np.mean([len(a ^ b) for a, b in pairwise(sets)] or [0])) / one["n_features"]


def share(one: dict[str, Any]) -> float:
    return float(np.mean([len(used) for used in one["used"]])) / one["n_features"]


def tables(done: dict[str, dict[str, Any]], streams: list[str], arms: list[str]) -> str:
    """Return the summary over the streams, and the score and the share of the columns of each stream."""
    arms = [arm for arm in arms if all(f"{name}/{arm}" in done for name in streams)]
    lines = [
        "| | against all columns | worst stream | columns | changes per refit | CPU seconds |",
        "| --- | ---: | --- | ---: | ---: | ---: |",
    ]
    for arm in arms:
        cells = [done[f"{name}/{arm}"] for name in streams]
        scores = np.array([one["score"] for one in cells])
        gains = scores - [done[f"{name}/all"]["score"] for name in streams]
        half = student.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / len(gains) ** 0.5
        worst = f"{streams[gains.argmin()]} {gains.min():+.1f}" if arm != "all" else ""
        said = f"{gains.mean():+.2f} ± {half:.2f}" if arm != "all" else f"{scores.mean():.1f}"
        lines.append(
            f"| {arm} | {said} | {worst} | {np.mean([share(c) for c in cells]):.2f}"
            f" | {np.mean([changes(c) for c in cells]):.3f} | {np.mean([c['seconds'] for c in cells]):.1f} |"
        )
    lines += ["", "| stream (columns) | " + " | ".join(arms) + " |", "| --- |" + " ---: |" * len(arms)]
    for name in streams:
        cells = [done[f"{name}/{arm}"] for arm in arms]
        shown = " | ".join(f"{one['score']:.1f} ({share(one):.2f})" for one in cells)
        lines.append(f"| {name} ({cells[0]['n_features']}) | {shown} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "few_columns.json")
    parser.add_argument("--streams", default="")
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--rows", type=int, default=8000)
    options = parser.parse_args()
    real = sorted(place.stem for place in (options.data / "streams4").glob("*.npz"))
    streams = options.streams.split(",") if options.streams else [*real, *IN_ORDER, *SHUFFLED, *GENERATED]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in streams:
        X, y = rows_of(name, options.data, options.rows)
        for arm in options.arms.split(","):
            if (key := f"{name}/{arm}") in done:
                continue
            sizes = [len(used) for used in done[f"{name}/few"]["used"]] if arm == "importance" else []
            done[key] = cell(name, arm, X, y, sizes)
            print(key, f"{done[key]['score']:.2f}", f"{share(done[key]):.2f}", flush=True)
            options.out.write_text(json.dumps(done))
    print(f"\n{tables(done, streams, options.arms.split(','))}\n", flush=True)


if __name__ == "__main__":
    main()
