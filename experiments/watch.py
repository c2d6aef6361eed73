"""Alarms of Watch where a feature of a frozen model ceases to be relevant, beside ADWIN on the errors and PSI.

    OMP_NUM_THREADS=1 python experiments/watch.py --runs 5

Each stream has 12,000 rows; a LightGBM classifier is fitted on the first 2,000 and frozen, the others are watched. From
row 7,000 on, the values of the most important feature are those of other rows: its distribution stays, its relation to
the label ends. The label of a row arrives 1, 500 or 4,000 rows late. The table is the median number of rows from the
change to the first alarm after it (inf: none before the end), and the share of the first alarms of Watch that name the
feature. The last line counts the alarms on the same streams without a change.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from lightgbm import LGBMClassifier

from tamis import Watch, load_dataset
from tamis.drift import ADWIN

N, FITTED, CHANGE, STEP = 12_000, 2_000, 7_000, 100
USED = 'state("*") == "used but no longer relevant"'
PSI = 'psi("*") > 0.2 for 500 rows'
Rows = tuple[np.ndarray, np.ndarray]


def linear(seed: int) -> Rows:
    rng = np.random.default_rng([1, seed])
    X = rng.normal(size=(N, 10))
    return X, (X[:, 0] + X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.normal(size=N) > 0).astype(int)


def sea(seed: int) -> Rows:
    rng = np.random.default_rng([2, seed])
    X = rng.uniform(0, 10, size=(N, 6))
    return X, ((X[:, 0] + X[:, 1] <= 9) ^ (rng.random(N) < 0.1)).astype(int)


def electricity(seed: int) -> Rows:
    """Rows from another start for each seed, in random order: the stream has drifts of its own."""
    parts = [(X, y) for X, y in load_dataset("electricity").batches(45_312)]
    X, y = np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])
    chosen = np.random.default_rng([3, seed]).permutation(len(X))[:N]
    return X[chosen], np.unique(y, return_inverse=True)[1][chosen]


STREAMS: dict[str, Callable[[int], Rows]] = {"linear": linear, "sea": sea, "electricity": electricity}


def replaced(X: np.ndarray, feature: int, seed: int) -> np.ndarray:
    X = X.copy()
    X[CHANGE:, feature] = np.random.default_rng([4, seed]).permutation(X[CHANGE:, feature])
    return X


def alarms(
    model: LGBMClassifier, X: np.ndarray, y: np.ndarray, delay: int
) -> Iterator[tuple[str, int, str | None]]:
    """Yield (method, row, feature) of each alarm."""
    watch, adwin = Watch(model, rules=[USED, PSI], max_pending=delay + 2 * STEP), ADWIN()
    wrong = (model.predict(X) != y).astype(float)
    known = FITTED
    for start in range(FITTED, N, STEP):
        rows = slice(start, start + STEP)
        found = watch.update(X[rows], keys=range(start, start + STEP))
        last = max(known, start + STEP - delay)
        if last > known:
            found += watch.update_labels(range(known, last), y[known:last])
            errors = wrong[known:last]
            if adwin.drifts(errors):
                yield "ADWIN on errors", start + STEP, None
            known = last
        for alert in found:
            yield "Watch" if alert["rule"] == USED else "PSI", start + STEP, alert["feature"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print(f"{'stream':>12} {'delay':>6} {'Watch':>7} {'ADWIN':>7} {'PSI':>7} {'named':>6}")
    false = dict.fromkeys(("Watch", "ADWIN on errors", "PSI"), 0)
    n_stationary = 0
    for name, make in STREAMS.items():
        fitted = []
        for seed in range(runs):
            X, y = make(seed)
            model = LGBMClassifier(n_estimators=50, num_leaves=15, verbose=-1, n_jobs=1).fit(
                X[:FITTED], y[:FITTED]
            )
            fitted.append((model, X, y, int(np.argmax(model.booster_.feature_importance("gain")))))
            n_stationary += N - FITTED
            for method, _, _ in alarms(model, X, y, 1):
                false[method] += 1
        for delay in (1, 500, 4000):
            waits: dict[str, list[float]] = {method: [] for method in false}
            named = []
            for seed, (model, X, y, feature) in enumerate(fitted):
                first: dict[str, tuple[int, str | None]] = {}
                for method, row, about in alarms(model, replaced(X, feature, seed), y, delay):
                    if row > CHANGE:
                        first.setdefault(method, (row, about))
                for method, found in waits.items():
                    found.append(first[method][0] - CHANGE if method in first else np.inf)
                if "Watch" in first:
                    named.append(first["Watch"][1] == str(feature))
            shown = [f"{np.median(found):>7.0f}" for found in waits.values()]
            print(
                f"{name:>12} {delay:>6} {' '.join(shown)} {np.mean(named) if named else np.nan:>6.2f}",
                flush=True,
            )
    print(f"alarms without a change, in {n_stationary:,} rows: {false}")


if __name__ == "__main__":
    main()
