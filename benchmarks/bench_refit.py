"""What Refit costs beside the estimator: an estimator that does nothing, learned and predicted batch by batch.

CPU time in microseconds a row, 50 columns, the default settings (a fit every 1,000 rows on the last 10,000).
"""

import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from tamis import Refit


class Nothing(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=np.int64)


def main():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100_000, 50)), rng.integers(0, 2, 100_000)
    for size in (1, 10, 100, 1000):
        n_rows, model = min(len(y), 2000 * size), Refit(Nothing()).partial_fit(X[:1000], y[:1000])
        seconds = {}
        for verb in ("partial_fit", "predict"):
            begin = time.process_time()
            for at in range(0, n_rows, size):
                part = (X[at : at + size], y[at : at + size])
                getattr(model, verb)(*part[: 2 if verb == "partial_fit" else 1])
            seconds[verb] = time.process_time() - begin
        costs = ", ".join(f"{verb} {1e6 * value / n_rows:.1f} us a row" for verb, value in seconds.items())
        print(f"batches of {size}: {costs}")


if __name__ == "__main__":
    main()
