"""Are the p-values of the screens true? The share of unrelated features below 0.05 and 0.001, from 1,000 rows on.

    python experiments/true_pvalues.py [--rows 10000000] [--features 200] [--seeds 1]
    python experiments/true_pvalues.py --rare [--features 3000]

The features are independent of the class; a true p-value is below 0.05 in 5 % of them whatever the number of rows.
Beside the screens stands chi-square read from the quantile summary of the scores (eps = 0.01), as it would be without
counts at fixed edges. `--rare`: where one class has 2 % of the rows, for features that are normal, lognormal, or rarely
anything but 0.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import Screening
from tamis.summaries.contingency import chi_square, chi_square_pvalue
from tamis.summaries.quantiles import QuantileSummary

BATCH = 1000
NAMES = ["t", "fisher", "mi", "chi2"]
MARKS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
STREAMS: dict[str, dict[str, object]] = {
    "plain": {},
    "weighted": {},
    "half-life 2,000": {"half_life": 2000},
    "half-life 2,000, clock of the class": {"half_life": 2000, "clock": "class"},
}


def shares(pvalues: np.ndarray) -> str:
    return f"{np.mean(pvalues < 0.05):.3f} / {np.mean(pvalues < 0.001):.4f}"


def run(name: str, options: dict[str, object], n_rows: int, n_features: int, seeds: int) -> None:
    found: dict[int, dict[str, list[np.ndarray]]] = {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        screening = Screening(1, scores=NAMES, eps=0.01, **options)
        summary = QuantileSummary(n_features, 2, 0.01)
        for start in range(0, n_rows, BATCH):
            X = rng.normal(size=(BATCH, n_features)).astype(np.float32)
            y = (rng.random(BATCH) < 0.3).astype(np.int64)
            weight = rng.choice([0.5, 1.0, 2.0], BATCH) if name == "weighted" else None
            screening.partial_fit(X, y, classes=[0, 1], sample_weight=weight)
            if name == "plain":
                summary.update(X, y)
            n = start + BATCH
            if n in MARKS:
                cells = found.setdefault(n, {})
                for score in NAMES:
                    cells.setdefault(score, []).append(screening.table_[f"{score}_pvalue"])
                if name == "plain":
                    cells.setdefault("summary", []).append(chi_square_pvalue(*chi_square(summary.counts(5))))
                if seed == seeds - 1:
                    line = " | ".join(shares(np.concatenate(p)) for p in cells.values())
                    print(f"| {name} | {n:,} | {line} |", flush=True)


RARE: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "0 or 1, 1 %": lambda rng, shape: rng.random(shape) < 0.01,
    "counts, mean 0.3": lambda rng, shape: rng.poisson(0.3, shape),
    "lognormal, sigma 2": lambda rng, shape: rng.lognormal(0.0, 2.0, shape),
}


def run_rare(name: str, n_rows: int, n_features: int) -> None:
    rng = np.random.default_rng(0)
    X = RARE[name](rng, (n_rows, n_features)).astype(np.float64)
    y = rng.permutation(n_rows) < 0.02 * n_rows
    table = Screening(1, scores=NAMES).fit(X, y).table_
    print(
        f"| {name} | {n_rows:,} | {' | '.join(shares(table[f'{score}_pvalue']) for score in NAMES)} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rare", action="store_true")
    given = parser.parse_args()
    if given.rare:
        print("| features | rows | t | fisher | mi | chi2 |\n|---|---|---|---|---|---|")
        for name in RARE:
            for rows in (300, 3_000, 30_000):
                run_rare(name, rows, given.features)
        return
    print("| stream | rows | t | fisher | mi | chi2 | chi2, summary |\n|---|---|---|---|---|---|---|")
    for name, options in STREAMS.items():
        rows = given.rows if name == "plain" else min(given.rows, 100_000)
        run(name, options, rows, given.features, given.seeds)


if __name__ == "__main__":
    main()
