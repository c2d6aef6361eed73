"""Alarms of Watch where a feature of a live model ceases to be relevant, beside ADWIN on the errors and PSI.

    OMP_NUM_THREADS=1 python experiments/watch.py --runs 4
    OMP_NUM_THREADS=1 python experiments/watch.py --streams linear sea --models refitted --delays 1
    OMP_NUM_THREADS=1 python experiments/watch.py --stationary 27000 --runs 2
    OMP_NUM_THREADS=1 python experiments/watch.py --cost

A LightGBM classifier is fitted on the first 2,000 rows of a stream and the others are watched. From a row on, drawn
between 4,500 and 6,500, the values of the most important feature are those of other rows: its distribution stays, its
relation to the label ends. The label of a row arrives 1, 500 or 5,000 rows late. The model is frozen, refitted on the
last 2,000 labelled rows every 2,000 rows, or an adaptive random forest that learns from every label.

The table is the median number of rows from the change to the first alarm after it (inf: none within 2,500 rows after
the first changed label): of Watch, of ADWIN on the errors of the model, of PSI, and of an oracle; then how often the
first alarm of Watch names the feature. Batches have 100 rows, and 5 in the 300 rows after the first changed label.
With --patience, Watch without its sequential test is a further column.

The oracle knows the feature and tests nothing else: the Shiryaev-Roberts statistic of the likelihood ratio of the label
given the other features (20 earlier rows for each) to that given all, alarm at 50,000, one in so many stationary rows.

Streams: normal features with a linear rule; SEA; electricity, magic04 and a8a in random order, since they have drifts
of their own (the latter two from OpenML or the folder of TAMIS_DATA); four generators of Barddal's thesis with five
irrelevant features and their redundant ones, without a drift.

With --stationary, alarms are counted on streams without a change, and on AR(1) columns (phi = .9) without and with
AR(1) noise in the labels, for each of the built-in rules.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier

from tamis import AdaptiveRandomForest, Watch, load_dataset, load_stream
from tamis.drift import ADWIN

FITTED, REFIT, AFTER = 2_000, 2_000, 2_500
CHANGES = 4_500, 6_500
STEP, FINE, N_FINE = 100, 5, 300  # rows of a batch, and where the first alarms are due
USED = 'state("*") == "used but no longer relevant"'
PSI = 'psi("*") > 0.2 for 500 rows'
N_DONORS, EPS = 20, 0.02  # of the oracle
FIRST_SEED = 300  # those below served to develop the test
Rows = tuple[np.ndarray, np.ndarray]


def linear(seed: int, n: int) -> Rows:
    rng = np.random.default_rng([1, seed])
    X = rng.normal(size=(n, 10))
    return X, (X[:, 0] + X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)


def sea(seed: int, n: int) -> Rows:
    rng = np.random.default_rng([2, seed])
    X = rng.uniform(0, 10, size=(n, 6))
    return X, ((X[:, 0] + X[:, 1] <= 9) ^ (rng.random(n) < 0.1)).astype(int)


def real(name: str, seed: int, n: int) -> Rows:
    """Rows in random order; beyond the end those after the first 2,000 are drawn again."""
    parts = list(load_dataset(name).batches(50_000))
    X = np.concatenate([X if isinstance(X, np.ndarray) else X.toarray() for X, _ in parts]).astype(float)
    y = np.unique(np.concatenate([y for _, y in parts]), return_inverse=True)[1]
    rng = np.random.default_rng([3, seed])
    order = rng.permutation(len(X))
    chosen = np.append(order, rng.choice(order[FITTED:], size=max(0, n - len(X))))[:n]
    return X[chosen], y[chosen]


def generated(name: str, seed: int, n: int) -> Rows:
    stream = load_stream(name, seed=seed, n_rows=n, n_drifts=0, n_irrelevant=5)
    parts = list(stream.batches(n))
    return np.concatenate([X for X, _ in parts]).astype(float), np.concatenate([y for _, y in parts]).astype(
        int
    )


def autocorrelated(noise_too: bool, seed: int, n: int) -> Rows:
    rng, phi = np.random.default_rng([9, seed]), 0.9
    E = rng.normal(size=(n, 11))
    for i in range(1, n):
        E[i, : 10 + noise_too] = (
            phi * E[i - 1, : 10 + noise_too] + np.sqrt(1 - phi**2) * E[i, : 10 + noise_too]
        )
    X = np.ascontiguousarray(E[:, :10])
    return X, (X[:, 0] + X[:, 1] + 0.5 * X[:, 2] + 0.5 * E[:, 10] > 0).astype(int)


STREAMS: dict[str, Callable[[int, int], Rows]] = {
    "linear": linear,
    "sea": sea,
    **{name: partial(real, name) for name in ("electricity", "magic04", "a8a")},
    **{name: partial(generated, name) for name in ("AGR", "AN", "RTG", "hyperplane")},
}
DEPENDENT: dict[str, Callable[[int, int], Rows]] = {
    "AR(1) columns": partial(autocorrelated, False),
    "AR(1) columns and noise": partial(autocorrelated, True),
}


def lightgbm(X: np.ndarray, y: np.ndarray) -> LGBMClassifier:
    return LGBMClassifier(n_estimators=50, num_leaves=15, verbose=-1, n_jobs=1).fit(X, y)


class Oracle:
    """A test that knows which feature is lost."""

    def __init__(self, feature: int, y: np.ndarray) -> None:
        self.feature, self.share, self.level = feature, np.bincount(y) / len(y), 0.0
        self.rng = np.random.default_rng(0)

    def update(self, model: Any, X: np.ndarray, y: np.ndarray, donors: np.ndarray) -> bool:
        every = np.repeat(X[:, None], N_DONORS + 1, axis=1)
        every[:, 1:, self.feature] = self.rng.choice(donors[:, self.feature], size=(len(X), N_DONORS))
        proba = model.predict_proba(every.reshape(-1, X.shape[1])).reshape(len(X), N_DONORS + 1, -1)
        true = proba[np.arange(len(X)), :, y]
        mixed = (1 - EPS) * np.column_stack([true[:, 1:].mean(axis=1), true[:, 0]]) + EPS * self.share[y][
            :, None
        ]
        for ratio in mixed[:, 0] / mixed[:, 1]:
            self.level = (1.0 + self.level) * ratio
            if self.level > 50_000:
                self.level = 0.0
                return True
        return False


def batches(n: int, fine: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the length of each batch; those from row `fine` on are shorter."""
    start = FITTED
    while start < n:
        step = FINE if fine <= start < fine + N_FINE else min(STEP, fine - start if start < fine else STEP)
        yield start, step
        start += step


def alarms(
    kind: str,
    X: np.ndarray,
    y: np.ndarray,
    delay: int,
    change: int,
    oracle: Oracle | None,
    *,
    test: bool = True,
) -> Iterator[tuple[str, int, str | None]]:
    """Yield (method, row, feature) of each alarm."""
    model: Any = lightgbm(X[:FITTED], y[:FITTED])
    if kind == "arf":
        model = AdaptiveRandomForest(random_state=0).fit(X[:FITTED], y[:FITTED])
    watch = Watch(
        model, rules=[USED, PSI], max_pending=delay + 2 * STEP, rows_per_false_alarm=50_000 if test else None
    )
    adwin, known, wrong = ADWIN(), FITTED, np.zeros(len(X))
    for start, step in batches(len(X), change + delay):
        rows = slice(start, start + step)
        wrong[rows] = model.predict(X[rows]) != y[rows]
        alerts = watch.update(X[rows], keys=range(start, start + step))
        last = max(known, start + step - delay)
        if last > known:
            alerts += watch.update_labels(range(known, last), y[known:last])
            if adwin.drifts(wrong[known:last]):
                yield "ADWIN", start + step, None
            if known >= change - 2 * STEP and oracle is not None:
                donors = X[known - FITTED : known]
                if oracle.update(model, X[known:last], y[known:last], donors):
                    yield "oracle", start + step, None
            if kind == "arf":
                model.partial_fit(X[known:last], y[known:last])
            known = last
        for alert in alerts:
            yield "Watch" if alert["rule"] == USED else "PSI", start + step, alert["feature"]
        if kind == "refitted" and (start + step - FITTED) // REFIT > (start - FITTED) // REFIT:
            model = lightgbm(X[max(0, known - FITTED) : known], y[max(0, known - FITTED) : known])
            watch.set_model(model, version=start)


def first_alarms(
    name: str, kind: str, delay: int, seed: int, patience: bool
) -> tuple[dict[str, float], bool | None]:
    """Return the rows from the change to the first alarm of each method, and whether Watch names the feature."""
    change = int(np.random.default_rng([5, seed]).integers(*CHANGES))
    X, y = STREAMS[name](seed, change + delay + AFTER)
    gain = lightgbm(X[:FITTED], y[:FITTED]).booster_.feature_importance("gain")
    feature = int(np.argmax(gain))
    X[change:, feature] = np.random.default_rng([4, seed]).permutation(X[change:, feature])
    waits: dict[str, float] = {}
    named = None
    for test in (True, False)[: 1 + patience]:
        oracle = Oracle(feature, y[:FITTED]) if test else None
        for method, row, about in alarms(kind, X, y, delay, change, oracle, test=test):
            method = method if test or method != "Watch" else "patience"
            if row > change and method not in waits:
                waits[method] = row - change
                if method == "Watch":
                    named = about == str(feature)
    return waits, named


def compare(runs: int, kinds: list[str], delays: list[int], streams: list[str], patience: bool) -> None:
    methods = ("Watch", "ADWIN", "oracle", "PSI", *(["patience"] if patience else []))
    heads = " ".join(f"{method:>8}" for method in methods)
    print(f"{'stream':>12} {'model':>9} {'delay':>6} {heads} {'named':>8}", flush=True)
    for kind in kinds:
        for delay in delays:
            every: dict[str, list[float]] = {method: [] for method in methods}
            of_streams, names = [], []
            for name in streams:
                waits: dict[str, list[float]] = {method: [] for method in methods}
                named = []
                for seed in range(FIRST_SEED, FIRST_SEED + runs):
                    first, is_named = first_alarms(name, kind, delay, seed, patience)
                    for method in methods:
                        waits[method].append(first.get(method, np.inf))
                    named += [] if is_named is None else [is_named]
                medians = {method: float(np.median(waits[method])) for method in methods}
                line = " ".join(f"{medians[method]:>8.0f}" for method in methods)
                print(
                    f"{name:>12} {kind:>9} {delay:>6} {line} {sum(named):>2} of {len(named):>2}", flush=True
                )
                of_streams.append(medians)
                names += named
                for method in methods:
                    every[method] += waits[method]
            line = " ".join(f"{np.median(every[method]):>8.0f}" for method in methods)
            print(
                f"{'all runs':>12} {kind:>9} {delay:>6} {line} {sum(names):>2} of {len(names):>2}", flush=True
            )


def stationary(n: int, runs: int, kinds: list[str], streams: list[str]) -> None:
    """Count alarms of the built-in rules on streams without a change."""
    for kind in kinds:
        for name, make in ({name: STREAMS[name] for name in streams} | DEPENDENT).items():
            counts = {"Watch": 0, "ADWIN": 0, "PSI": 0}
            for seed in range(FIRST_SEED, FIRST_SEED + runs):
                for method, _, _ in alarms(kind, *make(seed, n), 1, n, None):
                    counts[method] += 1
            print(f"{kind}, {name}: alarms in {runs * (n - FITTED):,} rows: {counts}", flush=True)


def cost() -> None:
    """Print the processor time of a watched row, in predictions of the model for it."""
    X, y = linear(FIRST_SEED, 12_000)
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
    parser.add_argument("--runs", type=int, default=4)
    kinds = ["frozen", "refitted", "arf"]
    parser.add_argument("--models", nargs="+", default=kinds, choices=kinds)
    parser.add_argument("--delays", nargs="+", type=int, default=[1, 500, 5000])
    parser.add_argument("--streams", nargs="+", default=list(STREAMS), choices=list(STREAMS))
    parser.add_argument("--patience", action="store_true")
    parser.add_argument("--stationary", type=int, metavar="ROWS")
    parser.add_argument("--cost", action="store_true")
    options = parser.parse_args()
    if options.cost:
        cost()
    elif options.stationary:
        stationary(options.stationary, options.runs, options.models, options.streams)
    else:
        compare(options.runs, options.models, options.delays, options.streams, options.patience)


if __name__ == "__main__":
    main()
