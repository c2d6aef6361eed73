"""Features that appear and vanish: the learners of Tamis beside published kinds of learners for varying features.

    python experiments/varying_features.py [--data FOLDER] [--sets NAMES] [--rows 2000] [--seeds 3] [--learners NAMES]
    python experiments/varying_features.py --kinds pairs --sets german,wdbc,ionosphere    the setting of OVFM's program
    python experiments/varying_features.py --delayed                                      delayed features
    python experiments/varying_features.py --by-name [--seeds 1]                          pipelines of named columns
    python experiments/varying_features.py --recovery                                     relevant features found
    python experiments/varying_features.py --lead --sets NAMES --seeds 5                  OVFM against each pipeline
    python experiments/varying_features.py --learners "logistic,OpenMOA FTRL"             programs of OpenMOA

Five sets with two classes, shuffled, features scaled to [0, 1], test-then-train in batches of 20 rows, all features.
Absent values are missing (NaN) for learners that skip them. Linear ones receive features standardised by the values
present so far, and 0 where a value is absent.

trapezoidal  The first tenth of the rows has a tenth of the features, the next one two tenths, and so on.
capricious   Each value is absent with probability 0.5.
vanishing    Each feature is present in half of the stream, an interval with a random beginning.
pairs        Of each two neighbouring features one is absent, drawn independently for each row.

"OLSF" re-implements the passive-aggressive learner of Zhang, Zhang, Long, Ding, Zhang and Wu (2016), IEEE TKDE 28(10):
variant I with C = 1, with an intercept and without its truncation. "Hedge of blocks" has a logistic regression for each
tenth of the features, whose probabilities are weighted by exp(-rate sum of log losses) of the batches in which the
block was present. "OVFM" follows He, Dong, Hou, Wang, Wang (2021), ICDM: normal scores of each feature, by its last
200 values, with a correlation matrix learned by expectation maximisation (a twentieth of it is new); absent ones are
their conditional means. A logistic regression on these and one on the observed values are weighted by their losses,
exp(-.001 sum). The authors' program fits the imputation to all rows twice before it classifies them; here each row is
predicted first. Their tuned FTRL is replaced by the logistic regression of the other columns, whose step is constant.

"OLVF" follows Beyazit, Alagurajah, Wu (2019), AAAI: passive-aggressive as OLSF, with C = 1 and the same omissions. The
update of a feature seen before is scaled by the confidence sigma(sum of w_bar) of all features seen so far, that of a
new one by the confidence of the row's features. w_bar learns by passive-aggressive steps (at most .1) on the logistic
loss whether rows with these features are classified correctly.

"OCDS" follows He, Wu, Wu, Beyazit, Chen, Wu (2019), IJCAI: a graph G maps the values x of the d features present to the
universal space, psi = G_present^T x / d. Gradient steps, .1 / sqrt(t), in w and in G descend (y - w psi)^2 + alpha |x -
psi_present|^2; those in w also beta (|w|_1 + w (D - G) w), with D the sums of the rows of G. The scores of the present
values and of the mapped absent ones are weighted by exp(-.5 sum of squared losses). alpha is a quarter of the number of
features, beta 1e-4: the best of six pairs of steps and alphas on another order of german, spambase and magic04.

The texts of OLVF and OCDS were not available, so their formulas are those of public programs. The programs disagree on
the signs of OLVF's two classifiers; each step here descends its loss.

"normal scores" is OVFM without its imputation: a logistic regression on normal scores, 0 where a value is absent.

"OpenMOA FTRL" and so on are the programs of OpenMOA 1.0.1 (``pip install openmoa``) with their default settings, on
values standardised as for the other linear learners. FESL requires the rows at which features are replaced; OLD3S and
OWSS need PyTorch.

``--by-name`` compares pipelines in ByName on the five kinds of :meth:`Stream.with_varying_features`, which yield dicts,
with the published learners, which are given the wide array. "first columns" is the logistic pipeline that ignores all
features absent from the first batch. ``--recovery`` prints the mean share of the relevant features that exist in the
next batch which are among as many of the highest scores: 20 features, of which two determine the class, 10 % label
noise.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit
from scipy.stats import norm
from sklearn.base import clone

from tamis import (
    FIRES,
    AdaptiveRandomForest,
    Auto,
    ByName,
    FisherScore,
    HoeffdingAdaptiveTree,
    HoeffdingTree,
    Refit,
    SGDLogisticRegression,
    StreamPipeline,
    WeightedNaiveBayes,
    prequential,
)
from tamis.streams import ArrayStream, SyntheticStream, load_dataset
from tamis.streams.concepts import SEA

ROOT = Path(__file__).resolve().parents[1]
SETS = ("spambase", "german", "magic04", "a8a", "madelon")
BATCH, N_BLOCKS = 20, 10


class Standardised:
    """A linear learner that is given values standardised by those present so far, and `absent` for absent ones."""

    def __init__(self, learner: Any, absent: float = 0.0) -> None:
        self.learner, self.n, self.total, self.squares = learner, 0.0, 0.0, 0.0
        self.absent = absent

    def filled(self, X: np.ndarray) -> np.ndarray:
        n = np.maximum(self.n, 1.0)
        mean = self.total / n
        deviation = np.sqrt(np.maximum(self.squares / n - mean**2, 1e-4))
        return np.nan_to_num((X - mean) / deviation, nan=self.absent)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.learner.predict_proba(self.filled(X))

    def partial_fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.n, self.total = self.n + (~np.isnan(X)).sum(axis=0), self.total + np.nansum(X, axis=0)
        self.squares = self.squares + np.nansum(X**2, axis=0)
        self.learner.partial_fit(self.filled(X), y, classes=[0, 1])


class OLSF:
    """Passive-aggressive updates of the weights of the features present."""

    def __init__(self) -> None:
        self.w: Any = 0.0

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        score = (np.pad(X, ((0, 0), (0, 1)), constant_values=1.0) * self.w).sum(axis=1)
        return np.column_stack([-score, score])

    def partial_fit(self, X: np.ndarray, y: np.ndarray, classes: Any = None) -> None:
        for x, sign in zip(np.pad(X, ((0, 0), (0, 1)), constant_values=1.0), 2.0 * y - 1.0, strict=True):
            loss = max(0.0, 1.0 - sign * float((x * self.w).sum()))
            self.w = self.w + min(1.0, loss / max(float(x @ x), 1e-12)) * sign * x


def logistic() -> SGDLogisticRegression:
    return SGDLogisticRegression(learning_rate="constant", random_state=0)


def with_intercept(X: np.ndarray) -> np.ndarray:
    return np.pad(X, ((0, 0), (0, 1)), constant_values=1.0)


class OLVF:
    """Passive-aggressive updates, whose steps are scaled by the confidence in the features of the row."""

    def __init__(self, n_features: int, C: float = 1.0, C_bar: float = 0.1) -> None:
        self.w, self.w_bar = np.zeros(n_features + 1), np.zeros(n_features + 1)
        self.seen = np.zeros(n_features + 1, dtype=bool)
        self.C, self.C_bar = C, C_bar

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        score = np.nan_to_num(with_intercept(X)) @ self.w
        return np.column_stack([-score, score])

    def partial_fit(self, X: np.ndarray, y: np.ndarray, classes: Any = None) -> None:
        for x, sign in zip(with_intercept(X), 2.0 * y - 1.0, strict=True):
            there, x = ~np.isnan(x), np.nan_to_num(x)
            score = sign * float(x @ self.w)
            of_model, of_row = expit(self.w_bar[self.seen].sum()), expit(self.w_bar[there].sum())
            step = min(self.C, max(0.0, 1.0 - score) / max(float(x @ x), 1e-12))
            self.w += np.where(self.seen, of_model, of_row) * step * sign * x
            # the logistic loss of the feature spaces, where the label is whether the row was classified correctly
            margin = self.w_bar[there].sum() * (1.0 if score > 0 else -1.0)
            slope = expit(-margin)
            step = min(self.C_bar, float(np.logaddexp(0.0, -margin)) / max(slope**2 * there.sum(), 1e-12))
            self.w_bar[there] += step * slope * (1.0 if score > 0 else -1.0)
            self.seen |= there


class OCDS:
    """Weights of a universal feature space, into which a graph of the features maps the values of a row."""

    def __init__(
        self, n_features: int, rate: float = 0.1, alpha: float = 0.25, beta: float = 1e-4, temper: float = 0.5
    ) -> None:
        n = n_features + 1
        self.w, self.graph, self.losses, self.t = np.zeros(n), np.zeros((n, n)), np.zeros(2), 0
        self.rate, self.alpha, self.beta, self.temper = rate, alpha * n_features, beta, temper

    def parts(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
        """Return where and which values are present, the mapped values, and the scores of both parts."""
        there = ~np.isnan(x)
        values = x[there]
        mapped = values @ self.graph[there] / max(len(values), 1)
        return there, values, mapped, float(values @ self.w[there]), float(mapped[~there] @ self.w[~there])

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        weight = np.exp(-self.temper * (self.losses - self.losses.min()))
        score = np.array([self.parts(x)[3:] for x in with_intercept(X)]) @ (weight / weight.sum())
        return np.column_stack([-score, score])

    def partial_fit(self, X: np.ndarray, y: np.ndarray, classes: Any = None) -> None:
        for x, sign in zip(with_intercept(X), 2.0 * y - 1.0, strict=True):
            there, values, mapped, observed, reconstructed = self.parts(x)
            self.losses += (sign - observed) ** 2, (sign - reconstructed) ** 2
            self.t += 1
            rate, residual = self.rate / np.sqrt(self.t), sign - float(mapped @ self.w)
            degrees = self.graph.sum(axis=1)
            smooth = 2.0 * degrees * self.w - (self.graph + self.graph.T) @ self.w
            errors = residual * self.w
            errors[there] += self.alpha * (values - mapped[there])
            self.w += rate * (2.0 * residual * mapped - self.beta * (np.sign(self.w) + smooth))
            self.graph[there] += rate * 2.0 / len(values) * np.outer(values, errors)


class Hedge:
    """A learner for each block of features, weighted by its losses."""

    def __init__(self, n_features: int, rate: float = 0.5) -> None:
        self.blocks = np.array_split(np.arange(n_features), min(N_BLOCKS, n_features))
        self.learners = [Standardised(logistic()) for _ in self.blocks]
        self.losses, self.rate = np.zeros(len(self.blocks)), rate

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        weight = np.exp(-self.rate * (self.losses - self.losses.min()))
        total = np.zeros((len(X), 2))
        for of_block, block, learner in zip(weight, self.blocks, self.learners, strict=True):
            there = ~np.isnan(X[:, block]).all(axis=1)
            if there.any() and hasattr(learner.learner, "classes_"):
                total[there] += of_block * learner.predict_proba(X[there][:, block])
        return total

    def partial_fit(self, X: np.ndarray, y: np.ndarray) -> None:
        for k, (block, learner) in enumerate(zip(self.blocks, self.learners, strict=True)):
            there = ~np.isnan(X[:, block]).all(axis=1)
            if not there.any():
                continue
            rows, labels = X[there][:, block], y[there]
            if hasattr(learner.learner, "classes_"):
                of_label = learner.predict_proba(rows)[np.arange(len(rows)), labels]
                self.losses[k] -= np.log(np.maximum(of_label, 1e-6)).mean()
            learner.partial_fit(rows, labels)


class NormalScores:
    """A logistic regression on the normal scores of the values present."""

    def __init__(self, n_features: int, window: int = 200) -> None:
        self.recent = np.full((window, n_features), np.nan)
        self.n_seen = np.zeros(n_features, dtype=int)
        self.learner = logistic()

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return the normal scores of the values present, by mid-ranks among the last ones of their feature."""
        latent = np.full(X.shape, np.nan)
        for j in np.flatnonzero(self.n_seen > 1):
            known = np.sort(self.recent[: min(self.n_seen[j], len(self.recent)), j])
            ranks = np.searchsorted(known, X[:, j]) + np.searchsorted(known, X[:, j], side="right")
            latent[:, j] = norm.ppf((ranks / 2 + 0.5) / (len(known) + 1))
        return np.where(np.isnan(X), np.nan, latent)

    def remember(self, X: np.ndarray) -> None:
        for j in range(X.shape[1]):
            values = X[~np.isnan(X[:, j]), j]
            at = self.n_seen[j] + np.arange(len(values))
            self.recent[at % len(self.recent), j] = values
            self.n_seen[j] += len(values)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.learner.predict_proba(np.nan_to_num(self.scores(X)))

    def partial_fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.remember(X)
        self.learner.partial_fit(np.nan_to_num(self.scores(X)), y, classes=[0, 1])


class OVFM(NormalScores):
    """Two logistic regressions, on the observed values and on latent normal ones, of which absent ones are imputed."""

    def __init__(self, n_features: int, window: int = 200, share: float = 0.05, rate: float = 0.001) -> None:
        super().__init__(n_features, window)
        self.correlation, self.share, self.rate = np.eye(n_features), share, rate
        self.learners = [Standardised(logistic()) for _ in range(2)]
        self.losses = np.zeros(2)

    def impute(self, latent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the latent values with conditional means, and the mean of their second moments."""
        full, moment = latent.copy(), np.zeros_like(self.correlation)
        for row in full:
            there = ~np.isnan(row)
            if not there.any():
                row[:] = 0.0
                moment += self.correlation / len(full)
                continue
            within = self.correlation[np.ix_(there, there)] + 1e-3 * np.eye(there.sum())
            across = self.correlation[np.ix_(~there, there)]
            gain = np.linalg.solve(within, across.T).T
            row[~there] = gain @ row[there]
            moment[np.ix_(~there, ~there)] += (
                self.correlation[np.ix_(~there, ~there)] - gain @ across.T
            ) / len(full)
        return full, moment + full.T @ full / len(full)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        weight = np.exp(-self.rate * (self.losses - self.losses.min()))
        inputs = X, self.impute(self.scores(X))[0]
        total = sum(w * one.predict_proba(Z) for w, one, Z in zip(weight, self.learners, inputs, strict=True))
        return np.asarray(total) / weight.sum()

    def partial_fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.remember(X)
        full, moment = self.impute(self.scores(X))
        mixed = (1.0 - self.share) * self.correlation + self.share * moment
        deviation = np.sqrt(np.maximum(np.diag(mixed), 1e-6))
        self.correlation = mixed / np.outer(deviation, deviation)
        for k, (learner, Z) in enumerate(zip(self.learners, (X, full), strict=True)):
            if hasattr(learner.learner, "classes_"):
                of_label = learner.predict_proba(Z)[np.arange(len(y)), y]
                self.losses[k] -= np.log(np.maximum(of_label, 1e-6)).sum()
            learner.partial_fit(Z, y)


class OpenMOA:
    """A learner of OpenMOA, with its default settings."""

    def __init__(self, name: str, n_features: int) -> None:
        import openmoa.classifier

        # Its own schema starts a Java machine, which these learners do not use.
        schema = SimpleNamespace(
            get_num_classes=lambda: 2, get_num_attributes=lambda: n_features, is_regression=lambda: False
        )
        self.learner = getattr(openmoa.classifier, f"{name}Classifier")(schema)
        self.takes_missing = name in ("OVFM", "OSLMF")

    def _instance(self, x: np.ndarray, label: int) -> Any:
        there = np.flatnonzero(~np.isnan(x))
        if self.takes_missing:
            return SimpleNamespace(x=x, y_index=label, y_label=str(label))
        return SimpleNamespace(x=x[there], y_index=label, y_label=str(label), feature_indices=there)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        predicted = [self.learner.predict(self._instance(x, 0)) for x in X]
        return np.eye(2)[[int(label or 0) for label in predicted]]

    def partial_fit(self, X: np.ndarray, y: np.ndarray, classes: Any = None) -> None:
        for x, label in zip(X, y.tolist(), strict=True):
            self.learner.train(self._instance(x, label))


def openmoa(name: str) -> Callable[[int], Any]:
    return lambda n: Standardised(OpenMOA(name, n), absent=np.nan)


LEARNERS: dict[str, Callable[[int], Any]] = {
    "naive Bayes": lambda _: WeightedNaiveBayes(None, weight=None),
    "tree": lambda _: HoeffdingTree(),
    "adaptive tree": lambda _: HoeffdingAdaptiveTree(),
    "forest": lambda _: AdaptiveRandomForest(),
    "logistic": lambda _: Standardised(logistic()),
    "logistic optimal": lambda _: Standardised(SGDLogisticRegression(random_state=0)),
    "OLSF": lambda _: Standardised(OLSF()),
    "OLVF": lambda n: Standardised(OLVF(n), absent=np.nan),
    "OCDS": lambda n: Standardised(OCDS(n), absent=np.nan),
    "hedge of blocks": Hedge,
    "OVFM": OVFM,
    "normal scores": NormalScores,
}
THEIRS = ("FTRL", "FOBOS", "RSOL", "OASF", "ORF3V", "OVFM", "OSLMF")


def rows_of(name: str, data: Path, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    source = load_dataset(name, data_home=data)
    X, y = source.take(source.n_rows)
    order = np.random.default_rng(seed).permutation(len(y))[:n_rows]
    X = np.asarray(X[order].toarray() if hasattr(X, "toarray") else X[order], dtype=float)
    low, width = np.nanmin(X, axis=0), np.ptp(X, axis=0)
    return (X - low) / np.where(width > 0, width, 1.0), np.unique(np.asarray(y)[order], return_inverse=True)[
        1
    ]


def present(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Return which values are present."""
    n, n_features = shape
    if kind == "capricious":
        return rng.random(shape) < 0.5
    if kind == "pairs":
        first = rng.random((n, (n_features + 1) // 2)) < 0.5
        return np.stack([first, ~first], axis=2).reshape(n, -1)[:, :n_features]
    row = np.arange(n)[:, None] / n
    if kind == "trapezoidal":
        return rng.permutation(n_features) / n_features < (np.floor(N_BLOCKS * row) + 1) / N_BLOCKS
    begin = rng.uniform(0.0, 1.0, n_features)
    return (row - begin) % 1.0 < 0.5


def accuracy(X: np.ndarray, y: np.ndarray, learner: Any) -> float:
    right = 0
    for start in range(0, len(y), BATCH):
        rows, labels = X[start : start + BATCH], y[start : start + BATCH]
        if start:
            right += int((learner.predict_proba(rows).argmax(axis=1) == labels).sum())
        learner.partial_fit(rows, labels) if isinstance(
            learner, Standardised | Hedge | NormalScores
        ) else learner.partial_fit(rows, labels, classes=[0, 1])
    return right / (len(y) - BATCH)


def show_delayed(n_rows: int = 15_000, wait: int = 48) -> None:
    """Print accuracies on electricity where two features are delayed by a day, or are left out."""
    X, y = load_dataset("electricity").take(n_rows)
    names = list(load_dataset("electricity").feature_names or [])
    delayed = ("nswprice", "nswdemand")
    rest = [j for j, name in enumerate(names) if name not in delayed]
    columns, known = [names.index(name) for name in delayed], X.copy()
    known[:wait, columns], known[wait:, columns] = np.nan, X[:-wait, columns]
    streams = {
        "on time": ArrayStream(X, y, names),
        "delayed": ArrayStream(X, y, names).with_delayed_features(dict.fromkeys(delayed, wait)),
        "removed": ArrayStream(X[:, rest], y),
        "last known": ArrayStream(known, y, names),
    }
    print("| | " + " | ".join(streams) + " |\n|---|---|---|---|")
    for learner in (
        AdaptiveRandomForest(), HoeffdingTree(), WeightedNaiveBayes(None, weight=None),
        SGDLogisticRegression(learning_rate="constant"),
    ):  # fmt: skip
        scores = [
            prequential(s, None, clone(learner), delay=wait).summary()["accuracy"] for s in streams.values()
        ]
        print(
            f"| {type(learner).__name__} | " + " | ".join(f"{score:.3f}" for score in scores) + " |",
            flush=True,
        )


KINDS = ("trapezoidal", "capricious", "evolvable", "shuffled", "open")


def pipeline(selector: Any, learner: Any) -> ByName:
    return ByName(StreamPipeline(selector, learner, batch_size=BATCH), absent="missing")


PIPELINES: dict[str, Callable[[], ByName]] = {
    "logistic": lambda: pipeline(FisherScore(1.0), logistic()),
    "screen, logistic": lambda: pipeline(FisherScore(0.5), logistic()),
    "FIRES, logistic": lambda: pipeline(FIRES(0.5), logistic()),
    "Auto, naive Bayes": lambda: pipeline(Auto(), WeightedNaiveBayes(None, weight=None)),
    "naive Bayes": lambda: pipeline(None, WeightedNaiveBayes(None, weight=None)),
    "tree": lambda: pipeline(None, HoeffdingTree()),
    "Refit": lambda: pipeline(None, Refit("hist-boosting", every=200, window=1000)),
    "first columns": lambda: pipeline(FisherScore(1.0), logistic()),
}


def named_accuracy(stream: Any, model: ByName, *, only_first: bool) -> float:
    right, n, first = 0, 0, set()
    for rows, y in stream.named_batches(BATCH):
        first = first or {name for row in rows for name in row}
        rows = [{name: row[name] for name in row if name in first} for row in rows] if only_first else rows
        if n:
            right += int((model.predict(rows) == y).sum())
        model.partial_fit(rows, y)
        n += len(y)
    return right / (n - BATCH)


def show_named(options: argparse.Namespace) -> None:
    """Print accuracies of pipelines of named columns, and of published learners on the wide array."""
    wide = {name: LEARNERS[name] for name in ("hedge of blocks", "OVFM", "OLSF")}
    print("| features | majority class | " + " | ".join([*PIPELINES, *wide]) + " |")
    print("| --- |" + " ---: |" * (len(PIPELINES) + len(wide) + 1))
    for kind in KINDS:
        found = []
        for name in options.sets.split(","):
            for seed in range(options.seeds):
                X, y = rows_of(name, options.data, options.rows, seed)
                stream = ArrayStream(X, y).with_varying_features(kind, seed=seed)
                cells = [np.bincount(y).max() / len(y)]
                for key, make in PIPELINES.items():
                    cells.append(named_accuracy(stream, make(), only_first=key == "first columns"))
                masked = stream.take(len(y))[0]
                found.append([*cells, *(accuracy(masked, y, make(X.shape[1])) for make in wide.values())])
        print(
            f"| {kind} | " + " | ".join(f"{100 * cell:.1f}" for cell in np.mean(found, axis=0)) + " |",
            flush=True,
        )


def show_lead(options: argparse.Namespace) -> None:
    """Print by how many points OVFM, and normal scores alone, are ahead of each pipeline, set by set."""
    keys = [key for key in options.pipelines.split(",") if key in PIPELINES]
    for kind in options.kinds.split(","):
        header = [*(f"OVFM - {key}" for key in keys), "OVFM - normal scores"]
        print(f"\n| {kind} | OVFM | " + " | ".join(header) + " |\n| --- |" + " ---: |" * (len(header) + 1))
        leads = []
        for name in options.sets.split(","):
            found = []
            for seed in range(options.seeds):
                X, y = rows_of(name, options.data, options.rows, seed)
                stream = ArrayStream(X, y).with_varying_features(kind, seed=seed)
                rest = [named_accuracy(stream, PIPELINES[key](), only_first=False) for key in keys]
                masked = stream.take(len(y))[0]
                ovfm, scores = (accuracy(masked, y, make(X.shape[1])) for make in (OVFM, NormalScores))
                found.append([ovfm, *(ovfm - np.array([*rest, scores]))])
            leads.append(100 * np.array(found))
            mean, error = leads[-1].mean(axis=0), leads[-1].std(axis=0, ddof=1) / np.sqrt(options.seeds)
            cells = [f"{a:+.1f} ± {b:.1f}" for a, b in zip(mean[1:], error[1:], strict=True)]
            print(f"| {name} | {mean[0]:.1f} | " + " | ".join(cells) + " |", flush=True)
        by_set = np.array(leads).mean(axis=1)
        mean, error = by_set.mean(axis=0), by_set.std(axis=0, ddof=1) / np.sqrt(len(by_set))
        cells = [f"{a:+.1f} ± {b:.1f}" for a, b in zip(mean[1:], error[1:], strict=True)]
        print(f"| **mean** | {mean[0]:.1f} | " + " | ".join(cells) + " |", flush=True)


def show_recovery(n_rows: int = 6000) -> None:
    """Print the mean recall of the relevant features that exist, after the first fifth of the stream."""
    selectors: dict[str, Any] = {"FisherScore": FisherScore, "FIRES": FIRES, "Auto": Auto}
    print("| features | " + " | ".join(selectors) + " | random |\n| --- |" + " ---: |" * (len(selectors) + 1))
    for kind in KINDS:
        cells = []
        for make in selectors.values():
            recalls, chances = [], []
            for seed in range(3):
                whole = SyntheticStream(
                    [SEA(relevant=(0, 1), n_features=20)], n_rows, label_noise=0.1, seed=seed
                )
                stream = whole.with_varying_features(kind, seed=seed)
                model, row, names = ByName(make(3)), 0, stream.feature_names
                for rows, y in stream.named_batches(100):
                    exists = stream.present_rows(row, row + len(y)).any(axis=0)
                    relevant = {
                        names[j] for j in np.flatnonzero(stream.relevant_rows(row, row + len(y)).any(axis=0))
                    }
                    if row >= n_rows // 5 and relevant:
                        present = {names[j] for j in np.flatnonzero(exists)}
                        best = sorted(present & set(model.feature_names_), key=lambda name: -score[name])[
                            : len(relevant)
                        ]
                        recalls.append(len(relevant & set(best)) / len(relevant))
                        chances.append(len(relevant) / len(present))
                    model.partial_fit(rows, y)
                    score = dict(zip(model.feature_names_, model.scores_.tolist(), strict=True))
                    row += len(y)
            cells.append(np.mean(recalls))
        print(
            f"| {kind} | " + " | ".join(f"{cell:.2f}" for cell in [*cells, np.mean(chances)]) + " |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kinds", default="trapezoidal,capricious,vanishing")
    parser.add_argument("--learners", default=",".join(LEARNERS))
    parser.add_argument("--delayed", action="store_true")
    parser.add_argument("--by-name", action="store_true")
    parser.add_argument("--recovery", action="store_true")
    parser.add_argument("--lead", action="store_true")
    parser.add_argument("--pipelines", default=",".join(("logistic", "tree", "naive Bayes")))
    options = parser.parse_args()
    if options.delayed or options.recovery:
        (show_delayed if options.delayed else show_recovery)()
        return
    if options.by_name:
        show_named(options)
        return
    if options.lead:
        show_lead(options)
        return
    of_openmoa = {f"OpenMOA {name}": openmoa(name) for name in THEIRS}
    chosen = {name: (LEARNERS | of_openmoa)[name] for name in options.learners.split(",")}
    for kind in options.kinds.split(","):
        print(f"\n| {kind} | majority class | " + " | ".join(chosen) + " |")
        print("| --- |" + " ---: |" * (len(chosen) + 1))
        whole = []
        for name in options.sets.split(","):
            cells = []
            for seed in range(options.seeds):
                X, y = rows_of(name, options.data, options.rows, seed)
                X = np.where(present(kind, X.shape, np.random.default_rng(seed)), X, np.nan)
                scores = [accuracy(X, y, make(X.shape[1])) for make in chosen.values()]
                cells.append([np.bincount(y).max() / len(y), *scores])
            whole.append(np.mean(cells, axis=0))
            print(f"| {name} | " + " | ".join(f"{100 * cell:.1f}" for cell in whole[-1]) + " |", flush=True)
        print(
            "| **mean** | " + " | ".join(f"{100 * cell:.1f}" for cell in np.mean(whole, axis=0)) + " |",
            flush=True,
        )


if __name__ == "__main__":
    main()
