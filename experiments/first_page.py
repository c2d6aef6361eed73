"""The table of the first page: nine of 300 sensors that measure 20 signals, whose target changes halfway.

    python experiments/first_page.py [--seeds 10] [--noise 0.5]

Every selector keeps nine columns for the default learner, a logistic regression, prequentially in batches of 100 rows.
The stream is that of `tamis demo`. "refitted" selectors are fitted on the last 2,000 rows after every 1,000 rows.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectKBest, f_classif

import tamis
from tamis.cli.demo import sensors

K = 9


class RefittedSelector(BaseEstimator):
    """The columns with the largest importances, fitted on the last rows now and then."""

    def __init__(self, importances: Any, every: int | None = 1000, window: int = 2000) -> None:
        self.importances, self.every, self.window = importances, every, window

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> RefittedSelector:
        if not hasattr(self, "rows_"):
            self.rows_, self.labels_, self.n_, self.support_ = X[:0], y[:0], 0, np.ones(X.shape[1], bool)
        self.rows_ = np.concatenate([self.rows_, X])[-self.window :]
        self.labels_ = np.concatenate([self.labels_, y])[-self.window :]
        before, self.n_ = self.n_, self.n_ + len(y)
        due = self.every or 1000
        if before // due < self.n_ // due and (self.every or before < due):
            scores = self.importances(self.rows_, self.labels_)
            self.support_ = np.zeros(X.shape[1], bool)
            self.support_[np.argsort(-scores, kind="stable")[:K]] = True
        return self

    def get_support(self, indices: bool = False) -> Any:
        return np.flatnonzero(self.support_) if indices else self.support_


def anova(X: Any, y: Any) -> Any:
    return SelectKBest(f_classif, k=K).fit(X, y).scores_


def lightgbm_gain(X: Any, y: Any) -> Any:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_estimators=50, importance_type="gain", n_jobs=1, verbose=-1, random_state=0)
    return model.fit(X, y).feature_importances_


class RiverSelectKBest(BaseEstimator):
    """River's SelectKBest by the absolute correlation, row by row."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> RiverSelectKBest:
        from river import feature_selection, stats

        if not hasattr(self, "model_"):
            self.model_ = feature_selection.SelectKBest(stats.PearsonCorr(), k=K, use_abs=True)
            self.n_ = X.shape[1]
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            self.model_.learn_one(dict(enumerate(row)), int(label))
        return self

    def get_support(self, indices: bool = False) -> Any:
        best = [j for j, _ in self.model_.leaderboard.most_common(K)]
        support = np.isin(np.arange(self.n_), best)
        return np.flatnonzero(support) if indices else support


METHODS = {
    "every column": lambda: None,
    "random subset": lambda: tamis.RandomSubset(K, random_state=0),
    "scikit-learn SelectKBest, fitted once on 1,000 rows": lambda: RefittedSelector(anova, every=None),
    "scikit-learn SelectKBest, refitted": lambda: RefittedSelector(anova),
    "LightGBM importances, refitted": lambda: RefittedSelector(lightgbm_gain),
    "River SelectKBest": RiverSelectKBest,
    "Tamis FIRES": lambda: tamis.FIRES(K),
    "Tamis ForwardPartialCorrelation": lambda: tamis.ForwardPartialCorrelation(K),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--noise", type=float, default=0.1, help="standard deviation of a sensor's noise")
    options = parser.parse_args()
    streams = [sensors(seed, noise=options.noise) for seed in range(options.seeds)]
    print("| nine of 300 columns | accuracy | after the drift |\n| --- | ---: | ---: |")
    for name, make in METHODS.items():
        accuracies = []
        for X, y in streams:
            steps = tamis.prequential((X, y), make(), baselines="none", auc=False).frames["steps"]
            after = steps["n_seen"] > len(y) // 2 + 1000
            accuracies.append((steps["accuracy"].mean(), steps["accuracy"][after].mean()))
        whole, late = np.mean(accuracies, axis=0)
        print(f"| {name} | {whole:.3f} | {late:.3f} |", flush=True)


if __name__ == "__main__":
    main()
