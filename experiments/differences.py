"""How Tamis differs from the papers and from other implementations: each point is a few lines that run.

    pip install river skfeature-chappers && pip install --no-deps float-evaluation==0.0.2
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python experiments/differences.py [--only WORDS] [--markdown]

A point is a function below. It returns what is compared, what the paper (or the other implementation) gives, what Tamis
gives, and whether the point still holds: if one does not, the program ends with 1. Where an option of the other
implementation removes the difference, the point names it. Points beside a package that is not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from benchmarks.bench_ofs import peer
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import chi2, f_classif
from sklearn.naive_bayes import GaussianNB

import tamis
from tamis.drift import ECDD
from tamis.streams.concepts import Agrawal
from tamis.streams.synthetic import SyntheticStream

Array = NDArray[Any]


class Found(NamedTuple):
    """One point."""

    what: str
    there: str
    here: str
    holds: bool


def signals(n_rows: int = 2000, n_columns: int = 10, seed: int = 0) -> tuple[Array, Array]:
    """Return normal columns, of which the first two decide the class, with a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n_rows) > 0).astype(int)


def noise(n_rows: int, n_columns: int, share: float = 0.5, seed: int = 0) -> tuple[Array, Array]:
    """Return features without relation to the class."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_columns)), (rng.random(n_rows) < share).astype(int)


# -- papers ------------------------------------------------------------------------------------------------------------


def weighted_naive_bayes() -> Found:
    X, y = signals()
    weights = np.random.default_rng(1).random(10)
    plain = GaussianNB().fit(X, y)
    log = (
        -0.5 * np.log(plain.var_) - 0.5 * (X[:, None] - plain.theta_) ** 2 / plain.var_
    )  # (row, class, column)
    prior = np.log(plain.class_prior_)

    def changed(terms: Array) -> float:
        return float(np.mean((prior + terms.sum(axis=2)).argmax(axis=1) != plain.predict(X)))

    printed, exponents = changed(log + np.log(weights + 1e-4)), changed(log * weights)
    return Found(
        "Weighted naive Bayes (thesis, Eq. 7.6): rows whose prediction the weights change",
        f"{printed:.1%}", f"{exponents:.1%}, as exponents", printed == 0.0 < exponents,
    )  # fmt: skip


def discuss() -> Found:
    X, y = tamis.load_stream("BG1", seed=0, n_rows=2000, n_drifts=0).take(2000)
    restarts = []
    for selector in (tamis.DISCUSS.paper(categorical="all"), tamis.DISCUSS(categorical="all")):
        told = [
            selector.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1]).drift_detected_
            for i in range(2000)
        ]
        restarts.append(sum(told))
    return Found(
        "DISCUSS (Algorithm 3): resets of the learner in 2,000 rows of BG1 without drift",
        str(restarts[0]), str(restarts[1]), restarts[0] > 100 > 0 == restarts[1],
    )  # fmt: skip


def abfs() -> Found:
    X = np.random.default_rng(0).integers(2, size=(900, 1)).astype(float)
    kept = [
        len(tamis.ABFS(hoeffding=text, categorical="all").partial_fit(np.c_[X, X], X[:, 0]).selected_)
        for text in (True, False)
    ]
    return Found(
        "ABFS (text): features selected if two are equally relevant, 900 rows",
        str(kept[0]), f"{kept[1]}, as in the released program", kept == [0, 1],
    )  # fmt: skip


def fcbf() -> Found:
    kept = np.zeros(2)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(500, 14))
        X[:, 3:6] = X[:, [0]] + X[:, 3:6] * [0.2, 0.5, 1.0]  # copies of the first signal
        score = X[:, 0] + 0.8 * X[:, 1] + 0.5 * X[:, 2]
        y = (score > 0).astype(int) + (score > 1.5)
        for k, kind in enumerate((tamis.FCBF.paper, tamis.FCBF)):
            kept[k] += len(set(kind(window=500, n_bins=10).fit(X, y).selected_.tolist()) & {0, 1, 2}) / 20
    return Found(
        "FCBF: selected signals of three, mean of 20 draws of 500 rows", f"{kept[0]:.2f}", f"{kept[1]:.2f}",
        kept[0] < 2.5 < kept[1],
    )  # fmt: skip


def fires_units() -> Found:
    X, y = signals(4000, 20)
    X[:, :2] /= 100.0  # metres instead of centimetres
    kept = [
        int(selector.fit(X, y).get_support()[:2].sum()) for selector in (tamis.FIRES.paper(2), tamis.FIRES(2))
    ]
    return Found(
        "FIRES (published for scaled features): relevant features selected of two, in a unit 100 times as large",
        str(kept[0]), str(kept[1]), kept[0] < kept[1] == 2,
    )  # fmt: skip


def fires_replaced() -> Found:
    X, y = signals(12_000, 20)
    after = np.r_[np.zeros(8000, bool), np.ones(4000, bool)]
    X[after] = X[after][:, ::-1]  # the last two columns are relevant now
    kept = []
    for selector in (tamis.FIRES.paper(2), tamis.FIRES(2)):
        for i in range(0, 12_000, 100):
            selector.partial_fit(X[i : i + 100], y[i : i + 100], classes=[0, 1])
        kept.append(int(selector.get_support()[-2:].sum()))
    return Found(
        "FIRES: relevant features selected of two, 4,000 rows after a drift replaced them",
        str(kept[0]), str(kept[1]), kept[0] < kept[1] == 2,
    )  # fmt: skip


def fisher(weights: Array, means: Array, variances: Array) -> float:
    """Return the Fisher score of a column by weight, mean and variance of its two classes."""
    shares = weights / weights.sum()
    return float(shares @ (means - shares @ means) ** 2 / (shares @ variances))


def screening_variance() -> Found:
    X, y = signals(2000, 2)

    def printed(values: Array) -> float:
        parts = [values[y == c] for c in (0, 1)]
        means = np.array([part.mean() for part in parts])
        return fisher(np.bincount(y), means, np.array([(part**2).mean() for part in parts]) - means**2)

    there = printed(X[:, 0] + 1e8)
    here, true = (float(tamis.FisherScore().fit(X + shift, y).scores_[0]) for shift in (1e8, 0.0))
    return Found(
        f"Screening (mean of squares less squared mean): Fisher score after adding 1e8; before, {true:.3f}",
        f"{there:.3g}", f"{here:.3f}", abs(here - true) < 1e-3 < abs(there - true),
    )  # fmt: skip


def screening_faded() -> Found:
    X, y = signals(1000, 2)
    X = X + 10.0
    fade = 0.5 ** (np.arange(1000)[::-1] / 100.0)
    sums = np.array([[fade[y == c] @ X[y == c, 0] ** k for k in (0, 1, 2)] for c in (0, 1)]).T
    there = fisher(
        sums[0], sums[1], sums[2] - sums[1] ** 2
    )  # as printed: nothing is divided by the faded weight
    true = fisher(sums[0], sums[1] / sums[0], sums[2] / sums[0] - (sums[1] / sums[0]) ** 2)
    here = float(tamis.FisherScore(half_life=100).fit(X, y).scores_[0])
    return Found(
        f"Screening: Fisher score with a half-life of 100 rows; by weighted averages, {true:.3f}",
        f"{there:.2g}", f"{here:.3f}", there < 0 < here and abs(here - true) < 1e-3,
    )  # fmt: skip


def ecdd() -> Found:
    rng, lengths = np.random.default_rng(0), []
    for limit in ("published", "simulated"):
        errors = (rng.random(400_000) < 0.1).astype(float)
        lengths.append(400_000 / max(len(ECDD(arl0=1000, limit=limit).drifts(errors)), 1))
    return Found(
        "ECDD (limits for 1,000): mean number of rows between two false alarms, errors of 10 %",
        f"{lengths[0]:,.0f}", f"{lengths[1]:,.0f}", lengths[0] < 200 < 1000 < lengths[1] < 1500,
    )  # fmt: skip


def acquisition_of_noise(method: str) -> Callable[[], Found]:
    def point() -> Found:
        X, y = noise(600, 30, 0.26)
        X = np.round(2 * X)  # whole numbers, for which the published IFC2F is made
        classifier, told = getattr(tamis, method), []
        for model in (classifier.published(cost=0.01), classifier(cost=0.01)):
            model.fit(X[:200], y[:200])
            told.append((model.score(X[200:], y[200:]), float(model.n_features_used_.mean())))
        nothing = float(np.mean(y[200:] == np.bincount(y[:200]).argmax()))
        return Found(
            f"{method}: accuracy / acquired values on 200 rows of 30 noise features; {nothing:.3f} without acquisition",
            *(f"{accuracy:.3f} / {bought:.1f}" for accuracy, bought in told),
            told[0][1] > 0.5 and told[1][0] >= nothing - 0.01,
        )

    point.__name__ = f"{method.lower()}_noise"
    return point


def ofs_a3m() -> Found:
    X, y = load_breast_cancer(return_X_y=True)
    kept = [len(tamis.OFSA3M(relevance=which).fit(X, y).selected_) for which in ("code", "article")]
    return Found(
        "OFS-A3M (released program): features selected of the breast cancer data", str(kept[0]), str(kept[1]),
        kept[0] > kept[1],
    )  # fmt: skip


# -- other implementations ---------------------------------------------------------------------------------------------


def river_agrawal() -> Found:
    from river.datasets import synth

    rows = list(synth.Agrawal(classification_function=0, seed=1).take(1000))
    there = np.mean([label == int(40 <= x["age"] < 60) for x, label in rows])
    stream = SyntheticStream([Agrawal(1, perturbation=0.0, positive_share=None)], n_rows=1000, seed=1)
    X, y = stream.take(1000)
    age = X[:, list(stream.feature_names).index("age")]
    here = np.mean(y == ((age >= 40) & (age < 60)))
    return Found(
        "river: rows of Agrawal's first rule labelled as the rule defines (group A is class 0)",
        f"{there:.0%}", f"{here:.0%}", there < 0.01 and here == 1.0,
    )  # fmt: skip


def river_k_best() -> Found:
    from river import feature_selection, stats

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = np.c_[-2.0 * y, 0.2 * y, 0.0 * y] + rng.normal(size=(2000, 3))
    names = ["falls", "rises a little", "noise"]
    selector = feature_selection.SelectKBest(similarity=stats.PearsonCorr(), k=1)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        selector.learn_one(dict(zip(names, row, strict=True)), label)
    (there,) = selector.transform_one(dict.fromkeys(names, 0.0))
    here = names[int(tamis.FisherScore(1).fit(X, y).get_support(indices=True)[0])]
    return Found(
        "river: the best column by SelectKBest with Pearson's correlation (`use_abs=True` removes this)",
        there, here, (there, here) == ("rises a little", "falls"),
    )  # fmt: skip


def sklearn_chi2() -> Found:
    X, y = signals()
    X -= X.min(axis=0)
    moved = X.copy()
    moved[:, 0] += 1000.0

    def change(score: Callable[[Array, Array], Array]) -> float:
        before, after = (float(score(table, y)[0]) for table in (X, moved))
        return after / before - 1.0

    there = change(lambda table, labels: chi2(table, labels)[0])
    here = change(lambda table, labels: tamis.ChiSquare().fit(table, labels).scores_)
    return Found(
        "scikit-learn: change of the chi-square score of a feature after adding 1000 (it treats values as counts)",
        f"{there:+.1%}", f"{here:+.1%}", abs(here) < 1e-12 < abs(there),
    )  # fmt: skip


def sklearn_fisher() -> Found:
    X, y = signals()
    there = f_classif(X, y)[0]
    here = tamis.FisherScore().fit(X, y).scores_
    here = here * (len(y) - 2)  # F = score (n - K) / (K - 1)
    gap = float(np.max(np.abs(here / there - 1)))
    return Found(
        "scikit-learn: relative difference of F by FisherScore (they agree)",
        "the reference", f"{gap:.0e}", gap < 1e-9,
    )  # fmt: skip


def float_ofs() -> Found:
    X, y = signals(2000, 100)
    there = peer("OFS")(n_total_features=100, n_selected_features=10)  # type: ignore[misc]
    here = tamis.OFS(10)
    for i in range(0, 2000, 100):
        there.weight_features(X[i : i + 100], y[i : i + 100].copy())
        here.partial_fit(X[i : i + 100], y[i : i + 100], classes=[0, 1])
    kept = np.count_nonzero(there.weights), np.count_nonzero(here.scores_)
    return Found(
        "float-evaluation: nonzero weights of OFS, to select 10 of 100",
        str(kept[0]), str(kept[1]), kept[0] > 10 == kept[1],
    )  # fmt: skip


def float_fires() -> Found:
    X, y = signals(400, 20)
    labels = y.copy()
    there = peer("FIRES")(n_total_features=20, n_selected_features=2, classes=[0, 1])  # type: ignore[misc]
    there.weight_features(X, labels)
    ours = y.copy()
    tamis.FIRES(2).fit(X, ours)
    changed = int((labels != y).sum()), int((ours != y).sum())
    return Found(
        "float-evaluation: labels of the caller overwritten by FIRES, of 400",
        str(changed[0]), str(changed[1]), changed[0] > 0 == changed[1],
    )  # fmt: skip


def skfeature_alpha_investing() -> Found:
    alpha_investing = importlib.import_module("skfeature.function.streaming.alpha_investing").alpha_investing
    X, y = noise(500, 3, seed=3)
    selected = alpha_investing(X, y, 0.05, 0.05)
    try:
        there = f"a table of shape {X[:, selected].shape}"
    except IndexError:
        there = "IndexError"
    here = tamis.AlphaInvesting().fit(X, y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No features were selected")
        shape = here.transform(X).shape
    return Found(
        "scikit-feature: the table after alpha-investing, if no feature is relevant",
        there, f"a table of shape {shape}", there == "IndexError" and shape == (500, 0),
    )  # fmt: skip


PAPERS = [
    weighted_naive_bayes, discuss, abfs, fcbf, fires_units, fires_replaced, screening_variance, screening_faded, ecdd,
    *map(acquisition_of_noise, ("IFC2F", "ETANA", "FETANA")), ofs_a3m,
]  # fmt: skip
PACKAGES = {
    "river": [river_agrawal, river_k_best],
    "scikit-learn": [sklearn_chi2, sklearn_fisher],
    "float-evaluation": [float_ofs, float_fires],
    "skfeature-chappers": [skfeature_alpha_investing],
}
_IMPORTED_AS = {
    "river": "river",
    "scikit-learn": "sklearn",
    "float-evaluation": "float",
    "skfeature-chappers": "skfeature",
}


def points() -> dict[str, list[Callable[[], Found]]]:
    """Return the points by what they are beside, with the version of what is installed."""
    found = {"papers": PAPERS}
    for package, beside in PACKAGES.items():
        if importlib.util.find_spec(_IMPORTED_AS[package]) is not None:
            found[f"{package} {version(package)}"] = beside
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="", metavar="WORDS", help="points whose function's name has one of these words"
    )
    parser.add_argument("--markdown", action="store_true", help="print the tables of the documentation")
    options = parser.parse_args()
    words, failed = options.only.split(), 0
    for beside, functions in points().items():
        chosen = [point for point in functions if not words or any(word in point.__name__ for word in words)]
        if not chosen:
            continue
        print(f"\n{beside}\n" if not options.markdown else f"\n| {beside} | there | Tamis |\n|---|---|---|")
        for point in chosen:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = point()
            failed += not found.holds
            if options.markdown:
                print(f"| {found.what} | {found.there} | {found.here} |")
            else:
                print(
                    f"  {found.what}: {found.there} there, {found.here} here{'' if found.holds else '  NO LONGER'}"
                )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
