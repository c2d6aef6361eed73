"""Class-imbalanced variants of Barddal's Table 4.1: how selectors do when one class is rare (thesis, chapter 10).

    python experiments/thesis_imbalanced.py FOLDER [--shares 0.5 0.1 0.02] [--seeds 3] [--rows 30000] [--learner nb]
        [--selectors none oracle abfs joint discuss] [--streams BG1 SEA ...]

The seven streams with three concepts of 10,000 rows. Class 1 has the given share, and no label is flipped: 10 % of the
rows of the frequent class would be more than the rare class has. Test-then-train in batches of 100 rows. Printed are
means over the seeds with 95 % confidence intervals: AUC, average precision, and selection accuracy. Every finished cell
is kept in FOLDER and not run again.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from thesis_chapter7 import with_interval
from thesis_chapter9 import PLAIN, SEVEN, values

from tamis import run_experiment

METRICS = {"auc": "AUC", "average_precision": "average precision", "selection_accuracy": "selection accuracy"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.5, 0.1, 0.02])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--learner", default="nb")
    parser.add_argument("--selectors", nargs="+", default=["none", "oracle", "abfs", "joint", "discuss"])
    parser.add_argument("--streams", nargs="+", default=list(SEVEN), choices=SEVEN)
    options = parser.parse_args()
    common = {"n_rows": options.rows, "n_drifts": options.rows // 10_000 - 1, "label_noise": 0.0}
    streams = {
        f"{name}, {share:g}": (name, {**common, "positive_share": share})
        for share in options.shares
        for name in options.streams
    }
    result = run_experiment(
        streams, options.selectors, [options.learner], options.seeds, options.folder,
        batch_size=100, n_tracked=0, **{**PLAIN, "scale": "auto"},
    )  # fmt: skip
    for cell, error in result.failed.items():
        print(f"failed: {cell}: {error}")
    for metric, title in METRICS.items():
        print(f"\n{title}\n\n| stream | share | {' | '.join(options.selectors)} |")
        print("|---|" + "---|" * (1 + len(options.selectors)))
        for name in (*options.streams, "mean"):
            for share in options.shares:
                titles = [f"{one}, {share:g}" for one in ([name] if name != "mean" else options.streams)]
                cells = []
                for selector in options.selectors:
                    of_seeds = [values(result, one, selector, options.learner, metric) for one in titles]
                    done = min(map(len, of_seeds))
                    cells.append(with_interval(np.mean([of[:done] for of in of_seeds], axis=0), 3))
                print(f"| {name} | {share:g} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
