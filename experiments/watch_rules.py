"""False alarms of the rules on accuracy and AUC where nothing changes.

    OMP_NUM_THREADS=1 python experiments/watch_rules.py --runs 200

A model is right by a margin: with d + e > 0 its prediction is correct, and its score of a label y in {-1, 1} is
y (d + e), where e is normal, and either independent or AR(1) with phi = .9, so that errors come in runs. d = 1.28 gives
an accuracy of .9, d = .67 one of .75. Each run is a stream of 50,000 labelled rows in batches of 100; the rules have
their defaults (a window of 1,000 rows, a cool-down of 5,000).

The table is the mean number of alarms per stream and the share of streams with one or more, for each drop.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from scipy.signal import lfilter

from tamis.watch.alerts import AlertLog
from tamis.watch.performance import Performance
from tamis.watch.rules import Rule

N, STEP, PHI = 50_000, 100, 0.9
DROPS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1)
MARGINS = {0.9: 1.2816, 0.75: 0.6745}
FIRST_SEED = 200


def margins(rng: np.random.Generator, mean: float, dependent: bool) -> np.ndarray:
    noise = rng.normal(size=N)
    if dependent:
        start = rng.normal()
        noise, _ = lfilter([math.sqrt(1 - PHI**2)], [1.0, -PHI], noise, zi=[PHI * start])
    return mean + noise


def count(rng: np.random.Generator, mean: float, dependent: bool, window: int) -> dict[str, int]:
    """Return the number of alarms of each rule on one stream."""
    rules = [Rule(f"{name} drops by more than {drop}") for name in ("accuracy", "auc") for drop in DROPS]
    log, performance = AlertLog(rules), Performance("classification", window, np.array([0, 1]))
    y = rng.integers(0, 2, size=N)
    scores = 1 / (1 + np.exp(-margins(rng, mean, dependent) * (2 * y - 1)))
    counts = {rule.text: 0 for rule in rules}
    for start in range(0, N, STEP):
        rows = slice(start, start + STEP)
        performance.update(y[rows], scores[rows, None], "score")
        measures = performance.measures()
        for alert in log.update(start + STEP, [], lambda *_: None, measures, performance.first, None):
            counts[alert["rule"]] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--windows", nargs="+", type=int, default=[1000])
    options = parser.parse_args()
    print(f"{'measure':>9} {'accuracy':>9} {'rows':>12} {'window':>7}", *(f"{drop:>11}" for drop in DROPS))
    for window in options.windows:
        for accuracy, mean in MARGINS.items():
            for dependent in (False, True):
                runs = [
                    count(np.random.default_rng([FIRST_SEED, seed]), mean, dependent, window)
                    for seed in range(options.runs)
                ]
                for name in ("accuracy", "auc"):
                    cells = []
                    for drop in DROPS:
                        counts = np.array([run[f"{name} drops by more than {drop}"] for run in runs])
                        cells.append(f"{counts.mean():.3f} ({np.mean(counts > 0):.2f})")
                    kind = "AR(1)" if dependent else "independent"
                    print(
                        f"{name:>9} {accuracy:>9} {kind:>12} {window:>7}",
                        *(f"{cell:>11}" for cell in cells),
                        flush=True,
                    )


if __name__ == "__main__":
    main()
