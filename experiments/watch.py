"""Alarms of Watch where a feature of a live model ceases to be relevant, beside ADWIN on the errors and PSI.

    OMP_NUM_THREADS=1 python experiments/watch.py --runs 5
    OMP_NUM_THREADS=1 python experiments/watch.py --models refitted arf --delays 1 --streams linear sea --runs 2
    OMP_NUM_THREADS=1 python experiments/watch.py --stationary 60000 --runs 2
    OMP_NUM_THREADS=1 python experiments/watch.py --cost

Each stream has 12,000 rows; a LightGBM classifier is fitted on the first 2,000 and the others are watched. From row
7,000 on, the values of the most important feature are those of other rows: its distribution stays, its relation to the
label ends. The label of a row arrives 1, 500 or 4,000 rows late. The model is frozen, refitted on the last 2,000
labelled rows every 2,000 rows, or an adaptive random forest that learns from every label.

The table is the median number of rows from the change to the first alarm after it (inf: none before the end): of Watch
with its sequential test, without it (by patience alone), of ADWIN on the errors of the model, and of PSI; then how
often the first alarm of Watch names the feature. In the 400 rows after the first labels of changed
rows, batches have 20 rows, otherwise 100.

The oracle knows the feature and tests nothing else: the Shiryaev-Roberts statistic of the likelihood ratio of the label
given the other features (20 earlier rows for each) to that given all, alarm at 50,000, one in so many stationary rows.
It is measured for the frozen model, whose probabilities are its densities.

With --stationary, alarms are counted on streams without a change: independent rows, AR(1) columns (phi = .9), and AR(1)
columns with AR(1) noise in the labels, for each of the built-in rules.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier

from tamis import AdaptiveRandomForest, Watch, load_dataset
from tamis.drift import ADWIN

N, FITTED, CHANGE, REFIT = 12_000, 2_000, 7_000, 2_000
STEP, FINE = 100, 20  # rows of a batch, and where the first alarms are due
USED = 'state("*") == "used but no longer relevant"'
PSI = 'psi("*") > 0.2 for 500 rows'
N_DONORS, EPS = 20, 0.02  # of the oracle
FIRST_SEED = 100  # those below served to choose the constants of the test
Rows = tuple[np.ndarray, np.ndarray]


def linear(seed: int, n: int = N) -> Rows:
    rng = np.random.default_rng([1, seed])
    X = rng.normal(size=(n, 10))
    return X, (X[:, 0] + X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)


def sea(seed: int, n: int = N) -> Rows:
    rng = np.random.default_rng([2, seed])
    X = rng.uniform(0, 10, size=(n, 6))
    return X, ((X[:, 0] + X[:, 1] <= 9) ^ (rng.random(n) < 0.1)).astype(int)


def electricity(seed: int, n: int = N) -> Rows:
    """Rows from another start for each seed, in random order: the stream has drifts of its own."""
    parts = [(X, y) for X, y in load_dataset("electricity").batches(45_312)]
    X, y = np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])
    chosen = np.random.default_rng([3, seed]).permutation(len(X))[:n]
    return X[chosen], np.unique(y, return_inverse=True)[1][chosen]


def autocorrelated(seed: int, n: int, noise_too: bool) -> Rows:
    rng, phi = np.random.default_rng([9, seed]), 0.9
    E = rng.normal(size=(n, 11))
    for i in range(1, n):
        E[i, : 10 + noise_too] = (
            phi * E[i - 1, : 10 + noise_too] + np.sqrt(1 - phi**2) * E[i, : 10 + noise_too]
        )
    X = np.ascontiguousarray(E[:, :10])
    return X, (X[:, 0] + X[:, 1] + 0.5 * X[:, 2] + 0.5 * E[:, 10] > 0).astype(int)


STREAMS: dict[str, Callable[..., Rows]] = {"linear": linear, "sea": sea, "electricity": electricity}


def lightgbm(X: np.ndarray, y: np.ndarray) -> LGBMClassifier:
    return LGBMClassifier(n_estimators=50, num_leaves=15, verbose=-1, n_jobs=1).fit(X, y)


def replaced(X: np.ndarray, feature: int, seed: int) -> np.ndarray:
    X = X.copy()
    X[CHANGE:, feature] = np.random.default_rng([4, seed]).permutation(X[CHANGE:, feature])
    return X


def batches(n: int, delay: int) -> Iterator[tuple[int, int]]:
    start = FITTED
    while start < n:
        step = FINE if CHANGE <= start - delay // STEP * STEP < CHANGE + 400 else STEP
        yield start, step
        start += step


def alarms(
    kind: str, X: np.ndarray, y: np.ndarray, delay: int, *, test: bool = True
) -> Iterator[tuple[str, int, str | None]]:
    """Yield (method, row, feature) of each alarm."""
    model: Any = lightgbm(X[:FITTED], y[:FITTED])
    if kind == "arf":
        model = AdaptiveRandomForest(random_state=0).fit(X[:FITTED], y[:FITTED])
    rows_per_alarm = 50_000 if test else None
    watch = Watch(model, rules=[USED, PSI], max_pending=delay + 2 * STEP, rows_per_false_alarm=rows_per_alarm)
    adwin, known, wrong = ADWIN(), FITTED, np.zeros(len(X))
    for start, step in batches(len(X), delay):
        rows = slice(start, start + step)
        wrong[rows] = model.predict(X[rows]) != y[rows]
        found = watch.update(X[rows], keys=range(start, start + step))
        last = max(known, start + step - delay)
        if last > known:
            found += watch.update_labels(range(known, last), y[known:last])
            if adwin.drifts(wrong[known:last]):
                yield "ADWIN", start + step, None
            if kind == "arf":
                model.partial_fit(X[known:last], y[known:last])
            known = last
        for alert in found:
            yield "Watch" if alert["rule"] == USED else "PSI", start + step, alert["feature"]
        if kind == "refitted" and (start + step - FITTED) % REFIT == 0:
            model = lightgbm(X[max(0, known - FITTED) : known], y[max(0, known - FITTED) : known])
            watch.set_model(model, version=start)


def oracle(X: np.ndarray, y: np.ndarray, delay: int, feature: int) -> float:
    """Return the rows from the change to the alarm of a test that knows which feature is lost."""
    model, draw = lightgbm(X[:FITTED], y[:FITTED]), np.random.default_rng(0)
    rows, share = np.arange(FITTED, len(X)), np.bincount(y[:FITTED]) / FITTED
    with_all = model.predict_proba(X[rows])[np.arange(len(rows)), y[rows]]
    without = np.zeros(len(rows))
    for _ in range(N_DONORS):
        changed = X[rows].copy()
        changed[:, feature] = X[draw.integers(rows - FITTED, rows), feature]
        without += model.predict_proba(changed)[np.arange(len(rows)), y[rows]] / N_DONORS
    mixed = [(1 - EPS) * p + EPS * share[y[rows]] for p in (without, with_all)]
    level, log_ratio = 0.0, np.log(mixed[0] / mixed[1])
    for row, one in zip(rows, log_ratio, strict=True):
        level = (1.0 + level) * np.exp(one)
        if level > 50_000:
            if row >= CHANGE:
                return float(row - CHANGE + delay)
            level = 0.0
    return np.inf


def compare(runs: int, kinds: list[str], delays: list[int], streams: list[str]) -> None:
    columns = ("Watch", "patience", "ADWIN", "PSI", "oracle")
    print(
        f"{'stream':>12} {'model':>9} {'delay':>6} {' '.join(f'{name:>8}' for name in columns)} {'named':>7}"
    )
    every: dict[str, list[float]] = {name: [] for name in columns}
    total = []
    for name in streams:
        for kind in kinds:
            for delay in delays:
                waits: dict[str, list[float]] = {method: [] for method in columns}
                named = []
                for seed in range(FIRST_SEED, FIRST_SEED + runs):
                    X, y = STREAMS[name](seed)
                    gain = lightgbm(X[:FITTED], y[:FITTED]).booster_.feature_importance("gain")
                    feature = int(np.argmax(gain))
                    X = replaced(X, feature, seed)
                    first: dict[str, tuple[int, str | None]] = {}
                    for test in (True, False):
                        for method, row, about in alarms(kind, X, y, delay, test=test):
                            if row > CHANGE:
                                method = method if test or method != "Watch" else "patience"
                                first.setdefault(method, (row, about))
                    if kind == "frozen" and (late := oracle(X, y, delay, feature)) < np.inf:
                        first["oracle"] = CHANGE + int(late), None
                    for method, found in waits.items():
                        found.append(first[method][0] - CHANGE if method in first else np.inf)
                    if "Watch" in first:
                        named.append(first["Watch"][1] == str(feature))
                shown = [f"{np.median(found):>8.0f}" for found in waits.values()]
                print(
                    f"{name:>12} {kind:>9} {delay:>6} {' '.join(shown)} {sum(named):>3} of {len(named)}",
                    flush=True,
                )
                total += named
                for method, found in waits.items():
                    every[method] += found
    print("median of all:", {name: float(np.median(found)) for name, found in every.items()}, end="; ")
    print(f"named {sum(total)} of {len(total)}")


def stationary(n: int, runs: int) -> None:
    """Count alarms of the built-in rules on streams without a change."""
    makers: dict[str, Callable[..., Rows]] = {
        "linear": linear, "sea": sea,
        "AR(1) columns": lambda seed, n: autocorrelated(seed, n, False),
        "AR(1) columns and noise": lambda seed, n: autocorrelated(seed, n, True),
    }  # fmt: skip
    for name, make in makers.items():
        counts = {"Watch": 0, "ADWIN": 0, "PSI": 0}
        for seed in range(FIRST_SEED, FIRST_SEED + runs):
            for method, _, _ in alarms("frozen", *make(seed, n), 1):
                counts[method] += 1
        print(f"{name}: alarms in {runs * (n - FITTED):,} rows: {counts}", flush=True)


def cost() -> None:
    """Print the processor time of a watched row, in predictions of the model for it."""
    X, y = linear(FIRST_SEED)
    model = lightgbm(X[:FITTED], y[:FITTED])
    for step in (20, 100, 1000):
        watch, seconds = Watch(model, rules=[USED, PSI]), np.zeros(2)
        for start in range(FITTED, len(X), step):
            rows = slice(start, start + step)
            begin = time.process_time()
            model.predict_proba(X[rows])
            middle = time.process_time()
            watch.update(X[rows], keys=range(start, start + step))
            watch.update_labels(range(start, start + step), y[rows])
            if start >= 2 * FITTED:
                seconds += middle - begin, time.process_time() - middle
        print(f"batches of {step}: a watched row costs {seconds[1] / seconds[0]:.1f} predictions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--models", nargs="+", default=["frozen"], choices=["frozen", "refitted", "arf"])
    parser.add_argument("--delays", nargs="+", type=int, default=[1, 500, 4000])
    parser.add_argument("--streams", nargs="+", default=list(STREAMS), choices=list(STREAMS))
    parser.add_argument("--stationary", type=int, metavar="ROWS")
    parser.add_argument("--cost", action="store_true")
    given = parser.parse_args()
    if given.cost:
        cost()
    elif given.stationary:
        stationary(given.stationary, given.runs)
    else:
        compare(given.runs, given.models, given.delays, given.streams)


if __name__ == "__main__":
    main()
