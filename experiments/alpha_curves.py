"""False discovery rate and power of every spending rule, over the strength of the signals and their correlation.

    python experiments/alpha_curves.py [--out FOLDER] [--runs 150] [--rows 200]

Left: 1,000 hypotheses, one in five with a mean of mu standard errors, independent one-sided p-values. Right: features
of a linear model, one in fifty of 500 relevant, each correlated with its neighbour by rho, tested by AlphaInvesting
beside those selected before; a discovery is false if the feature's own coefficient is 0. Every rule aims at 0.1 (dashed
line).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import log_ndtr

from tamis import AlphaInvesting
from tamis.columns.online_fdr import RULES, make_rule

TARGET = 0.1
STRENGTHS = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.9)
_MARKERS = "osDd^v<>PxX*h8"  # one for each rule


def shares(rejected: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    return float((rejected & ~true).sum() / max(rejected.sum(), 1)), float(rejected[true].mean())


def of_p_values(rule: str, mu: float, runs: int) -> np.ndarray:
    found = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        true = rng.random(1000) < 0.2
        log_p = log_ndtr(-(rng.normal(size=1000) + mu * true))
        found.append(shares(make_rule(rule, TARGET).start().decide(log_p), true))
    return np.mean(found, axis=0)


def of_features(rule: str, rho: float, runs: int, n: int) -> np.ndarray:
    found = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 500))
        for j in range(1, 500):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
        true = np.zeros(500, dtype=bool)
        true[25::50] = True
        y = X[:, true] @ rng.choice([-0.5, 0.5], true.sum()) + rng.normal(size=n)
        selector = AlphaInvesting(rule=rule, target_fdr=TARGET).start(y)
        found.append(shares(selector.offer_many(X), true))
    return np.mean(found, axis=0)


def draw(strengths: dict[str, np.ndarray], correlations: dict[str, np.ndarray], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
    for column, (xs, by_rule, label) in enumerate(
        (
            (STRENGTHS, strengths, "strength of the signals, mu"),
            (CORRELATIONS, correlations, "correlation of neighbours, rho"),
        )
    ):
        for at, (rule, values) in enumerate(by_rule.items()):
            # Ten colours, then the same with dashes.
            style = {"marker": _MARKERS[at], "color": f"C{at % 10}", "linestyle": "--" if at >= 10 else "-"}
            for row in range(2):
                axes[row, column].plot(xs, values[:, row], markersize=4, linewidth=1.2, label=rule, **style)
        axes[0, column].axhline(TARGET, color="black", linestyle="--", linewidth=1)
        axes[0, column].set_title(("independent p-values", "features of a linear model")[column])
        axes[1, column].set_ylim(0.0, 1.02)
        axes[1, column].set_xlabel(label)
    axes[0, 0].set_ylim(0.0, 1.3 * TARGET)
    axes[0, 0].set_ylabel("false discovery rate")
    axes[1, 0].set_ylabel("power")
    axes[0, 0].annotate(
        "guarantee",
        (STRENGTHS[-1], TARGET),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8,
    )
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--runs", type=int, default=150)
    parser.add_argument("--rows", type=int, default=200)
    args = parser.parse_args()
    strengths = {rule: np.array([of_p_values(rule, mu, args.runs) for mu in STRENGTHS]) for rule in RULES}
    few = max(args.runs // 4, 2)
    correlations = {
        rule: np.array([of_features(rule, rho, few, args.rows) for rho in CORRELATIONS]) for rule in RULES
    }
    for title, xs, by_rule in (("mu", STRENGTHS, strengths), ("rho", CORRELATIONS, correlations)):
        print(
            f"\n| rule: FDR / power at {title} = | "
            + " | ".join(map(str, xs))
            + " |\n|"
            + "---|" * (len(xs) + 1)
        )
        for rule, values in by_rule.items():
            print(f"| {rule} | " + " | ".join(f"{fdr:.3f} / {power:.2f}" for fdr, power in values) + " |")
    args.out.mkdir(parents=True, exist_ok=True)
    draw(strengths, correlations, args.out / "alpha_curves.png")


if __name__ == "__main__":
    main()
