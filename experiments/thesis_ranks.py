"""The critical-difference diagrams of Barddal's thesis, recomputed from its tables, beside what the thesis states.

    python experiments/thesis_ranks.py [--tables FOLDER] [--out FOLDER]

For each table: Friedman's test, the mean ranks, Nemenyi's critical difference and the groups that do not differ, and
what figure and text say. With --out a picture of each diagram is written. "Out of memory" counts as the worst score. Of
the diagrams of times and memory no numbers are printed, so they are left out.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from tamis.evaluate.significance import Nemenyi, bayesian_signed_rank, friedman, nemenyi, wilcoxon
from tamis.report.charts.ranks import plot_ranks

ROOT = Path(__file__).resolve().parents[1]
STATED = {
    "table_5_2": ("Figure 5.1", None, "HAT, VFDT-ADWIN, VFDT-ECDD, VFDT, HAT-ADWIN, HAT-ECDD, NB-ECDD, NB-ADWIN"),
    "table_5_3": ("Figure 5.2", 2.85, "right, best first: SS, ARF, HEFT; left, worst first: RR2, RR1, SRF1, SRF2"),
    "table_7_1": ("Figure 7.1", 1.96, "right, best first: HAT, kNN-SU, NB-SU; left: kNN, NB, NB-Entropy, kNN-Entropy"),
    "table_7_2": ("Figure 7.6", None, "all weighted leaves are superior to the plain HAT"),
    "table_8_2": ("Figure 8.16a", None, "VFDT-n*, NB-n*, VFDT-n, kNN-n*, HAT > NB-n, VFDT, kNN-n, kNN, NB"),
    "table_8_3": ("Figure 8.16b", None, "VFDT-t*, HAT, NB-t*, kNN-t*, VFDT-auto, VFDT-t > kNN-t, VFDT, kNN-auto,"
                                        " NB-auto, NB-t, kNN, NB"),
}  # fmt: skip
PAIRS = {  # "significantly better, 99 % confidence" in chapter 8; "NB and HT significantly improved" in chapter 9
    "table_8_2": [("kNN_nbar", "kNN"), ("NB_nbar", "NB"), ("VFDT_nbar", "VFDT"),
                  ("kNN_nstar", "kNN"), ("NB_nstar", "NB"), ("VFDT_nstar", "VFDT")],
    "table_8_3": [("kNN_thetastar", "kNN"), ("NB_thetastar", "NB"), ("VFDT_thetastar", "VFDT"),
                  ("kNN_thetaauto", "kNN"), ("NB_thetaauto", "NB"), ("VFDT_thetaauto", "VFDT")],
    "table_9_1": [("NB_ABFS", "NB"), ("HT_ABFS", "HT"), ("KNN_ABFS", "KNN"), ("HAT_ABFS", "HAT")],
}  # fmt: skip


def read(path: Path) -> tuple[list[str], np.ndarray]:
    with open(path, encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return head[1:], np.array([[0.0 if cell == "OOM" else float(cell) for cell in row[1:]] for row in rows])


def show(name: str, methods: list[str], scores: np.ndarray) -> Nemenyi:
    figure, stated, said = STATED[name]
    compared = nemenyi(scores, methods)
    print(f"\n== {name}, {figure}\n{friedman(scores, methods)}")
    print(
        f"CD {compared.critical_difference:.3f}; printed: {stated if stated is not None else 'not legible'}"
    )
    for group in compared.groups:
        print(f"  do not differ: {', '.join(group)}")
    print(f"  stated: {said}")
    return compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=Path, default=ROOT.parent / "shared" / "tables" / "thesis")
    parser.add_argument("--out", type=Path, help="folder for the pictures")
    options = parser.parse_args()
    for name in STATED:
        compared = show(name, *read(options.tables / f"{name}.csv"))
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            plot_ranks(compared).savefig(options.out / f"{name}.png", dpi=130)
    print("\n== pairs")
    for name, pairs in PAIRS.items():
        methods, scores = read(options.tables / f"{name}.csv")
        for pair in pairs:
            columns = scores[:, [methods.index(method) for method in pair]]
            print(
                f"{name}: {wilcoxon(columns, names=pair)}\n    {bayesian_signed_rank(columns, names=pair, rope=1.0)}"
            )


if __name__ == "__main__":
    main()
