"""False alarms of Watch's default rules on rows without a change, and the time of a row.

    OMP_NUM_THREADS=1 python experiments/watch_nulls.py --rows 120000
    OMP_NUM_THREADS=1 python experiments/watch_nulls.py --cost
    OMP_NUM_THREADS=1 python experiments/watch_nulls.py --retire 100
    OMP_NUM_THREADS=1 python experiments/watch_nulls.py --unused 12
    OMP_NUM_THREADS=1 python experiments/watch_nulls.py --ablate 6

A logistic regression is fitted on the first 1,500 rows and the others are watched in batches of 100. The label depends
on the first two of ten columns, whose course is: independent; AR(1) with phi = .9, .99 and .995; lots of 200 rows with
values of their own, of a fixed or geometric length; fractional noise (d = .4); a daily and weekly calendar, whose
season is known (168 rows) or not; log-normal volatility; t with 1.5 degrees of freedom; and episodes of missing values.

The table is the number of alarms of each rule per 100,000 rows, and the simulation error of their sum (one standard
error of a Poisson count). With --cost: microseconds of a row and megabytes of the saved watch along a stream of 30
columns, and milliseconds of an update of 100 rows of 1,000 columns. With --retire: in how many drifting streams the
loss of the columns that `retire` chooses exceeds its bound. With --unused: in which share of the unused features
without relevance an e-value of the test given the features used ever reaches 20 (promised: at most .05) and 1,000,
beside the share in which a p-value of one look falls below .001; and after how many rows both find a relevant feature.
With --ablate: the same with other values of the constants of that test, one at a time.
"""

from __future__ import annotations

import argparse
import collections
import math
import time
from collections.abc import Callable

import numpy as np
from scipy.signal import fftconvolve, lfilter
from sklearn.linear_model import LogisticRegression

import tamis
from tamis import Watch
from tamis.watch import InputDrift, conditional, loss_bound
from tamis.watch.conditional import ConditionalRelevance
from tamis.watch.watch import DEFAULT_RULES

FITTED, STEP, D = 1_500, 100, 10
FIRST_SEED = 700
Rng = np.random.Generator


def ar(rng: Rng, n: int, phi: float) -> np.ndarray:
    return lfilter([np.sqrt(1 - phi**2)], [1, -phi], rng.normal(size=(n + 1000, D)), axis=0)[1000:]


def lots(rng: Rng, n: int, geometric: bool) -> np.ndarray:
    sizes = rng.geometric(1 / 200, size=n // 20) if geometric else np.full(n // 200 + 1, 200)
    return np.repeat(rng.normal(size=(len(sizes), D)), sizes, axis=0)[:n]


def fractional(rng: Rng, n: int) -> np.ndarray:
    k = np.arange(1, 4000)
    weights = np.append(1.0, np.cumprod((k - 0.6) / k))
    X = fftconvolve(rng.normal(size=(n + 4000, D)), weights[:, None], axes=0)[4000 : 4000 + n]
    return X / X.std(axis=0)


def calendar(rng: Rng, n: int) -> np.ndarray:
    hours = np.arange(n)
    daily = np.sin(2 * np.pi * (hours[:, None] / 24 + rng.random(D)))
    return daily * np.where(hours % 168 >= 120, 0.3, 1.0)[:, None] + 0.5 * ar(rng, n, 0.8)


def missing(rng: Rng, n: int) -> np.ndarray:
    X = ar(rng, n, 0.9)
    X[np.repeat(rng.random((n // 100 + 1, D)) < 0.3, 100, axis=0)[:n]] = np.nan
    return X


STREAMS: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "independent": lambda rng, n: rng.normal(size=(n, D)),
    "AR .9": lambda rng, n: ar(rng, n, 0.9),
    "AR .99": lambda rng, n: ar(rng, n, 0.99),
    "lots": lambda rng, n: lots(rng, n, False),
    "geometric lots": lambda rng, n: lots(rng, n, True),
    "fractional": fractional,
    "calendar": calendar,
    "known season": calendar,
    "volatility": lambda rng, n: ar(rng, n, 0.9) * np.exp(ar(rng, n, 0.99)),
    "t(1.5)": lambda rng, n: rng.standard_t(1.5, size=(n, D)),
    "missing": missing,
    "AR .995": lambda rng, n: ar(rng, n, 0.995),
}


def count(name: str, n: int, seed: int) -> collections.Counter[str]:
    """Return the number of alarms of each rule."""
    rng = np.random.default_rng([13, seed])
    X = STREAMS[name](rng, n + FITTED)
    shown = np.nan_to_num(X)
    y = (shown[:, 0] + 0.7 * shown[:, 1] + 0.5 * rng.logistic(size=len(X)) > 0).astype(int)
    model = LogisticRegression().fit(shown[:FITTED], y[:FITTED])
    watch = Watch(
        lambda A: model.predict_proba(np.nan_to_num(A)), season=168 if name == "known season" else None
    )
    alarms: collections.Counter[str] = collections.Counter()
    for start in range(FITTED, len(X), STEP):
        rows = slice(start, start + STEP)
        for alert in watch.update(X[rows], y=y[rows]):
            if "unused" not in alert["rule"] or alert["feature"] not in ("0", "1"):
                alarms[alert["rule"]] += 1
    return alarms


def nulls(n: int, runs: int, streams: list[str]) -> None:
    print(f"{'stream':15} {'all':>6} {'error':>6}  alarms of each rule in {runs * n:,} rows")
    for name in streams:
        alarms = sum((count(name, n, FIRST_SEED + seed) for seed in range(runs)), collections.Counter[str]())
        scale, total = 100_000 / (runs * n), sum(alarms.values())
        each = ", ".join(f"{rule}: {alarms[rule]}" for rule in DEFAULT_RULES if alarms[rule])
        print(f"{name:15} {scale * total:>6.1f} {scale * math.sqrt(max(total, 1)):>6.1f}  {each}", flush=True)


def cost() -> None:
    rng = np.random.default_rng(0)
    n, d = 300_000, 30
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=n) > 0).astype(int)
    model = LogisticRegression().fit(X[:FITTED], y[:FITTED])
    watch, begin = Watch(model), time.process_time()
    for start in range(0, n, STEP):
        watch.update(X[start : start + STEP], y=y[start : start + STEP])
        if (start + STEP) % 50_000 == 0:
            now = time.process_time()
            size = len(tamis.dumps(watch)) / 1e6
            print(
                f"{start + STEP:>9,} rows: {1e6 * (now - begin) / 50_000:.0f} us per row, saved {size:.2f} MB",
                flush=True,
            )
            begin = time.process_time()
    X = rng.normal(size=(6000, 1000))
    y = (X[:, 0] + rng.logistic(size=len(X)) > 0).astype(int)
    watch, times = Watch(lambda A: np.column_stack([A[:, 0] <= 0, A[:, 0] > 0]) * 0.8 + 0.1), []
    for start in range(0, len(X), STEP):
        begin = time.process_time()
        watch.update(X[start : start + STEP], y=y[start : start + STEP])
        times.append(time.process_time() - begin)
    print(f"1,000 columns: {1000 * np.median(times[30:]):.0f} ms for an update of {STEP} rows")


def retire(runs: int) -> None:
    """The bound of the loss in streams whose relation drifts, at all rows at once."""
    exceeded = 0
    for seed in range(FIRST_SEED, FIRST_SEED + runs):
        rng = np.random.default_rng([14, seed])
        n = 5_000
        drift = np.clip(np.cumsum(rng.normal(size=n)) / 300, -0.1, 0.1) + 0.02
        loss = np.where(rng.random(n) < np.abs(drift), np.sign(drift), 0.0)
        truth = np.cumsum(drift) / np.arange(1, n + 1)
        exceeded += bool((loss_bound(loss) < truth).any())
    print(f"the bound was exceeded at some row in {exceeded} of {runs} drifting streams")


UNUSED = {
    "independent": lambda rng, n: rng.normal(size=(n, D + 1)),
    "AR .9": lambda rng, n: np.column_stack([ar(rng, n, 0.9), ar(rng, n, 0.9)[:, :1]]),
    "lots of 50 rows, and noise": lambda rng, n: (
        np.repeat(rng.normal(size=(n // 50, D + 1)), 50, axis=0) + 0.3 * rng.normal(size=(n, D + 1))
    ),
    "lots of 200 rows": lambda rng, n: np.column_stack([lots(rng, n, False), 0.5 * rng.logistic(size=n)]),
    "t, 2 degrees of freedom": lambda rng, n: rng.standard_t(2, size=(n, D + 1)),
    "a class of 1 %": lambda rng, n: rng.normal(size=(n, D + 1)),
}


def unused(runs: int) -> None:
    """The conditional test for a model that uses the first column; the last of a draw is the noise of the label."""
    rows, least = 20_000, 0.001 / D
    print("| design | e-value ever 20 | ever 1,000 | p-value ever .001 |\n| --- | ---: | ---: | ---: |")
    for name, draw in UNUSED.items():
        largest, smallest = [], []
        for seed in range(runs):
            Z = draw(np.random.default_rng([15, seed]), rows)
            score = Z[:, 0] + Z[:, D]
            y = score > (np.quantile(score, 0.99) if name.endswith("1 %") else 0.0)
            e, p = along(Z[:, :D], y)
            largest.append(np.nanmax(e, axis=0)[1:])
            smallest.append(np.nanmin(p, axis=0)[1:])
        at = np.concatenate(largest)
        shares = (at >= 20).mean(), (at >= 1000).mean(), (np.concatenate(smallest) < 0.001).mean()
        print(f"| {name} | {' | '.join(f'{one:.3f}' for one in shares)} |", flush=True)
    for name, effect in (
        ("independent", 0.3), ("independent", 0.5), ("independent", 1.0), ("AR .9", 1.0), ("lots of 200 rows", 1.0),
    ):  # fmt: skip
        found = []
        for seed in range(runs):
            Z = UNUSED[name](np.random.default_rng([16, seed]), 3 * rows if "lots" in name else rows)
            e, p = along(Z[:, :D], Z[:, 0] + effect * Z[:, 5] + Z[:, D] > 0)
            each = e[:, 5] > 1 / least, p[:, 5] < least
            found.append([STEP * (1 + int(np.argmax(one))) if one.any() else math.inf for one in each])
        print(
            f"{name}, effect {effect}: found after {np.median(found, axis=0)} rows by e-value and p-value",
            flush=True,
        )


def along(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the e-values and p-values after each 100 rows."""
    test, drift, found = ConditionalRelevance(D, 3, 500.0), InputDrift(), []
    residuals = np.column_stack([~y, y, np.zeros(len(y))])
    for start in range(0, len(X), STEP):
        rows = slice(start, start + STEP)
        drift.update(X[rows])
        test.update(X[rows], residuals[rows], np.array([0]), drift.inflation())
        found.append((np.nan_to_num(test.evalues(), nan=1.0), np.nan_to_num(test.pvalues(), nan=1.0)))
    e, p = zip(*found, strict=True)
    return np.array(e), np.array(p)


ALTERNATIVES: dict[str, list[object]] = {
    "_PRIORS": [np.array([10.0]), np.array([1.0]), np.array([1.0, 3.0, 10.0, 30.0])],
    "_INFLATIONS": [1, 2, 8],
    "_FEWEST_ROWS": [10, 50, 100],
    "_FEWEST_PAIRS": [16, 32],
    "_PROMISING": [0.01, 0.03, 0.3],
}


def ablate(runs: int) -> None:
    """The conditional test with other constants: e-values of features without relevance, and the rows to find one."""
    print("| constant | e-value ever 20, lots | class of 1 % | rows, independent | AR .9 | lots |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    settings = [("as it is", None), *((name, one) for name, values in ALTERNATIVES.items() for one in values)]
    names = (
        "lots of 50 rows, and noise",
        "a class of 1 %",
        "independent",
        "AR .9",
        "lots of 50 rows, and noise",
    )
    for name, value in settings:
        before = getattr(conditional, name, None)
        if value is not None:
            setattr(conditional, name, value)
        cells = []
        for k, design in enumerate(names):
            found = []
            for seed in range(runs):
                Z = UNUSED[design](np.random.default_rng([17, seed]), 12_000)
                score = Z[:, 0] + Z[:, D] + (0.7 * Z[:, 5] if k > 1 else 0.0)
                e, _ = along(Z[:, :D], score > (np.quantile(score, 0.99) if k == 1 else 0.0))
                at = e[:, 5] > 10_000
                found.append(
                    (e[:, 1:].max(axis=0) >= 20).mean()
                    if k < 2
                    else STEP * (1 + at.argmax())
                    if at.any()
                    else np.inf
                )
            cells.append(f"{np.mean(found):.3f}" if k < 2 else f"{np.median(found):,.0f}")
        if value is not None:
            setattr(conditional, name, before)
        print(f"| {name} {'' if value is None else value} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=120_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--streams", nargs="+", choices=list(STREAMS), default=list(STREAMS))
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--retire", type=int, metavar="RUNS")
    parser.add_argument("--unused", type=int, metavar="RUNS")
    parser.add_argument("--ablate", type=int, metavar="RUNS")
    options = parser.parse_args()
    if options.cost:
        cost()
    elif options.ablate:
        ablate(options.ablate)
    elif options.unused:
        unused(options.unused)
    elif options.retire:
        retire(options.retire)
    else:
        nulls(options.rows, options.runs, options.streams)


if __name__ == "__main__":
    main()
