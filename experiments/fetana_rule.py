"""F-ETANA's half-spaces beside the best policy, on problems small enough to compute the cost of every policy exactly.

    python experiments/fetana_rule.py [--problems 12] [--seeds 3]
    python experiments/fetana_rule.py --real [--data FOLDER]     learning rates on data sets

Five independent columns of three values, two or three classes, price .05, 3,000 rows. The cost of a policy is its
expected cost under the model fitted to the rows, over all values; the best is that of dynamic programming over every
history. Printed is how much more a policy costs, the mean over problems and the largest.

`--real`: the loss (price .01 a value, 1 an error) of three folds of 1,500 rows, with the default choice of the stopping
rule on held-out rows and with the half-spaces alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from sklearn.model_selection import StratifiedKFold

from tamis import ETANA, FETANA, load_dataset
from tests.twins.ifc2f import bellman, chain_likelihood, policy_cost

ROOT = Path(__file__).resolve().parents[1]
REAL = ("german", "wdbc", "ionosphere", "cleveland", "svmguide3", "splice", "magic04", "spambase")
RATES = (0.0167, 0.05, 0.1667)

SETTINGS: dict[str, Any] = {
    "cost": 0.05,
    "calibrate": False,
    "order": "spread",
    "threshold": "all",
    "n_bins": 3,
}


def problem(seed: int, n_rows: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    tables = rng.dirichlet(np.full(3, 1.2), size=(5, 2 + seed % 2))
    y = rng.integers(0, tables.shape[1], n_rows)
    X = [[rng.choice(3, p=tables[k, c]) for k in range(5)] for c in y]
    return np.array(X, dtype=np.float64), y


def excess(model: Any) -> float:
    """Return by which share the policy of a model costs more than the best one."""
    prices, belief = model.prices_, model._first_belief()

    def likelihood(history: tuple[int, ...]) -> np.ndarray:
        return np.asarray(chain_likelihood(model._chain, len(history), history))

    def goes_on(k: int, posterior: np.ndarray, history: tuple[int, ...]) -> bool:
        values = np.array([history + (0,) * (len(prices) - k)])
        return bool(model._should_continue(k, posterior[None], values)[0])

    best = bellman(likelihood, belief, model._Q, prices)
    return float(policy_cost(goes_on, likelihood, belief, model._Q, prices) / best - 1.0)


def real(name: str, data: Path) -> tuple[np.ndarray, np.ndarray]:
    stream = load_dataset(name, data_home=data)
    X, labels = stream.take(stream.n_rows)
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(X).any(axis=1))
    y = np.unique(np.asarray(labels)[known], return_inverse=True)[1]
    at = np.random.default_rng(0).permutation(len(y))[:1500]
    return X[known][at], y[at]


def loss(X: np.ndarray, y: np.ndarray, calibrate: bool, rate: float) -> float:
    losses = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        model = FETANA(cost=0.01, calibrate=calibrate, learning_rate=rate, random_state=0).fit(
            X[train], y[train]
        )
        errors = model.predict(X[test]) != y[test]
        losses.append(np.mean(model.cost_) + np.mean(errors))
    return float(np.mean(losses))


def show_real(data: Path) -> None:
    print("| | " + " | ".join(f"{kind}, {rate}" for kind in ("held-out", "alone") for rate in RATES) + " |")
    for name in REAL:
        X, y = real(name, data)
        cells = [loss(X, y, calibrate, rate) for calibrate in (True, False) for rate in RATES]
        print(f"| {name} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    options = parser.parse_args()
    if options.real:
        show_real(options.data)
        return
    problems = [problem(seed) for seed in range(options.problems)]
    kinds: dict[str, Any] = {"ETANA": lambda seed: ETANA(random_state=seed, **SETTINGS)}
    for steps in (1, 4000, 40_000, 400_000):
        kinds[f"F-ETANA, {steps:,} rows a class"] = lambda seed, steps=steps: FETANA(
            n_iterations=steps, random_state=seed, **SETTINGS
        )
    for rate in (0.05, 0.1667, 0.5):
        kinds[f"F-ETANA, learning_rate={rate}"] = lambda seed, rate=rate: FETANA(
            learning_rate=rate, random_state=seed, **SETTINGS
        )
    kinds["F-ETANA.published"] = lambda seed: FETANA.published(0.05, random_state=seed)
    for title, make in kinds.items():
        found = [
            np.mean([excess(make(seed).fit(X, y)) for seed in range(options.seeds)]) for X, y in problems
        ]
        print(f"| {title} | {100 * np.mean(found):.1f} % | {100 * np.max(found):.1f} % |", flush=True)


if __name__ == "__main__":
    main()
