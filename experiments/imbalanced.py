"""How far is the default run from the best on a fraud-like file: 30,000 rows, 0.9 % positives, 26 columns, four matter?

    python experiments/imbalanced.py [--seeds 5]

Amount (lognormal, twice), country, merchant and channel (categories), age (12 % missing), velocity, an old score that
says nothing, customer and constant, twelve columns of noise. log odds = -6.2 + .45 (log amount - 3.5) + 1.6 [two
countries] + .7 [web] + .55 velocity, and + 1.1 [age < 25] in the second half. Test-then-train in batches of 100; AUC
and average precision are means over windows of 1,000 rows. "default" is what `tamis run` does without options.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.naive_bayes import GaussianNB

from tamis import Auto, ForwardPartialCorrelation, SGDLogisticRegression, WeightedNaiveBayes, prequential
from tamis.catalog import find_learner
from tamis.evaluate.candidates import choose_learner
from tamis.evaluate.metrics import SlidingAUC
from tamis.options import learner_kind, model_parameters
from tamis.streams.stream import ArrayStream

NAMES = (
    "customer", "amount", "amount_eur", "country", "merchant", "channel", "age", "velocity", "score", "const",
    *(f"v{k}" for k in range(12)),
)  # fmt: skip
CATEGORICAL = [NAMES.index(name) for name in ("country", "merchant", "channel")]
RELEVANT = np.isin(NAMES, ("amount", "country", "channel", "velocity"))


def fraud(seed: int, n: int = 30_000) -> tuple[ArrayStream, np.ndarray]:
    """Return a stream, and the log odds of each row."""
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3.5, 1.1, n)
    country = rng.choice(7, n, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.03, 0.02])
    merchant, channel = rng.zipf(1.6, n) % 3000, rng.choice(3, n)
    age, velocity = rng.integers(18, 90, n).astype(float), rng.poisson(1.2, n)
    z = -6.2 + 0.45 * (np.log(amount) - 3.5) + 1.6 * (country >= 5) + 0.7 * (channel == 0) + 0.55 * velocity
    known = rng.random(n) >= 0.12
    z += 1.1 * ((age < 25) & known & (np.arange(n) > n // 2))
    age[~known] = age[known].mean()
    codes = [rng.permutation(of.max() + 1)[of] for of in (country, merchant, channel)]  # in no order
    X = np.column_stack([
        rng.integers(1, 4000, n), amount, amount, *codes, age, velocity, rng.normal(size=n), np.ones(n),
        rng.normal(size=(n, 12)),
    ])  # fmt: skip
    stream = ArrayStream(X, rng.random(n) < 1 / (1 + np.exp(-z)), feature_names=list(NAMES))
    stream.categorical = CATEGORICAL
    return stream, z


class Fixed:
    """Columns known beforehand."""

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def partial_fit(self, X: Any, y: Any) -> Fixed:
        return self

    def get_support(self) -> Any:
        return self.mask


def default(stream: ArrayStream) -> tuple[Any, Any]:
    learner = find_learner(choose_learner(stream).name)
    selector = Auto(learner=learner_kind(learner), categorical=CATEGORICAL)
    return selector, learner.load()(**model_parameters(learner, seed=0, categorical=CATEGORICAL))


def counting() -> WeightedNaiveBayes:
    return WeightedNaiveBayes(window=None, weight=None, categorical=CATEGORICAL)


def logistic() -> SGDLogisticRegression:
    return SGDLogisticRegression(learning_rate="constant")


PAIRS: dict[str, Callable[[ArrayStream], tuple[Any, Any]]] = {
    "every column, logistic regression": lambda _: (None, logistic()),
    "the four relevant columns, logistic regression": lambda _: (Fixed(RELEVANT), logistic()),
    "default": default,
    "`Auto`, Gaussian naive Bayes": lambda _: (
        Auto(learner="naive-bayes", categorical=CATEGORICAL),
        GaussianNB(),
    ),
    "`forward` 5, naive Bayes that counts": lambda _: (ForwardPartialCorrelation(5), counting()),
    "every column, naive Bayes that counts": lambda _: (None, counting()),
    "the four relevant columns, naive Bayes that counts": lambda _: (Fixed(RELEVANT), counting()),
    "the same, logarithm of the amount": lambda stream: (Fixed(RELEVANT), counting()),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    n_seeds = parser.parse_args().seeds
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in PAIRS}
    best = []
    for seed in range(n_seeds):
        for name, make in PAIRS.items():
            stream, z = fraud(seed)
            if name.endswith("the amount"):
                stream._X[:, 1:3] = np.log(stream._X[:, 1:3])
            selector, learner = make(stream)
            run = prequential(stream, selector, learner, baselines="none").summary()
            found[name].append((run["auc"], run["average_precision"], run["n_selected"]))
        auc = SlidingAUC(1000)
        auc.update(stream._y, z)
        best.append(auc.mean)
    print(
        "| columns, learner | AUC | by seed | average precision | kept at the end |\n| --- | ---: | --- | ---: | ---: |"
    )
    for name, rows in found.items():
        auc, precision, kept = np.mean(rows, axis=0)
        print(
            f"| {name} | {auc:.3f} | {', '.join(f'{one[0]:.3f}' for one in rows)} | {precision:.3f} | {kept:.0f} |"
        )
    print(f"| true log odds | {np.mean(best):.3f} | {', '.join(f'{one:.3f}' for one in best)} | | |")


if __name__ == "__main__":
    main()
