"""Values recorded depending on the class: accuracy on complete rows, by design and method.

    python experiments/cells_missingness.py
    python experiments/cells_missingness.py --designs suspicion --methods adaptive tree etana --seeds 3

For each design, a method is fitted to complete rows, to the records with `missingness="informative"`, and to the
records by default. All three classify the same complete rows: accuracy, and the largest difference between the mean
probability of a class and its share.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis import AACO, ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset

DESIGNS = ("suspicion", "weak", "per-feature", "three-classes", "rare", "by-feature", "random")
METHODS = {
    "adaptive": lambda **k: AdaptiveIFC2F(0.01, random_state=0, **k),
    "tree": lambda **k: AdaptiveIFC2F(0.01, random_state=0, decision="tree", **k),
    "ensemble": lambda **k: AdaptiveIFC2F(0.01, random_state=0, decision="ensemble", **k),
    "etana": lambda **k: ETANA(0.01, random_state=0, **k),
    "ifc2f": lambda **k: IFC2F(0.01, random_state=0, **k),
    "fetana": lambda **k: FETANA(0.01, random_state=0, n_iterations=2000, **k),
    "fixed-subset": lambda **k: FixedSubset(0.01, **k),
    "aaco": lambda **k: AACO(0.01, random_state=0, n_stored=200, **k),
}


def design(
    kind: str, seed: int, n: int = 4000
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]:
    """Return the records, the complete rows and the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    if kind == "three-classes":
        y = rng.integers(0, 3, n)
        X = rng.normal(size=(n, 5)) + 0.6 * y[:, None] * (np.arange(5) == 3) + 1.2 * np.eye(3, 5)[y]
        rate = np.array([0.85, 0.4, 0.15])[y][:, None]
    elif kind == "rare":
        y = (rng.random(n) < 0.15).astype(int)
        X, rate = rng.normal(size=(n, 5)) + y[:, None], np.where(y == 1, 0.9, 0.2)[:, None]
    elif kind == "per-feature":
        X = rng.normal(size=(n, 6)) + 0.7 * y[:, None]
        rate = np.where(y[:, None] == 1, [0.95, 0.9, 0.8, 1, 1, 0.5], [0.2, 0.1, 0.5, 1, 1, 0.5])
    else:
        X = rng.normal(size=(n, 4)) + 0.8 * y[:, None]
        rates = {"suspicion": (0.9, 0.2), "weak": (0.6, 0.3), "random": (0.6, 0.6)}
        ill, well = rates.get(kind, (0.0, 0.0))
        rate = np.where(y == 1, ill, well)[:, None]
        if kind == "by-feature":
            rate = np.where(np.arange(4) == 0, 1.0, 1.0 / (1.0 + np.exp(-3.0 * (X[:, :1] - 0.4))))
    return np.where(rng.random(X.shape) < rate, X, np.nan), X, y


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=DESIGNS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["adaptive"])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    print(f"{'design':14}{'method':14}{'complete':>16}{'informative':>16}{'default':>16}  AUC of the mask")
    for kind in options.designs:
        for name in options.methods:
            figures, auc = np.zeros((options.seeds, 3, 2)), []
            for seed in range(options.seeds):
                records, X, y = design(kind, seed)
                half = len(y) // 2
                for at, (rows, given) in enumerate(
                    ((X, {}), (records, {"missingness": "informative"}), (records, {}))
                ):
                    model = METHODS[name](**given).fit(rows[:half], y[:half])
                    posterior, true = model.predict_proba(X[half:]), y[half:]
                    share = np.bincount(true, minlength=posterior.shape[1]) / len(true)
                    figures[seed, at] = (
                        (posterior.argmax(axis=1) == true).mean(),
                        np.abs(posterior.mean(axis=0) - share).max(),
                    )
                auc.append(np.nan if model.missingness_ is None else model.missingness_.auc)
            columns = "".join(f"{right:>10.3f} {off:.3f}" for right, off in figures.mean(axis=0))
            print(f"{kind:14}{name:14}{columns}  {np.mean(auc):.2f}", flush=True)


if __name__ == "__main__":
    main()
