"""What the evaluation loop adds to its selector and learner: 100 rows a batch, 500 features.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_prequential.py

The same selector and learner run over the same batches in a bare loop (select, mask, predict, learn, learn) and in
`prequential`, in turn; the median ratio of many short pairs is what the loop adds, whatever else the machine does.
Beside it, the time within `prequential` itself that is neither selector, nor masking, nor learner, as a share of these.
"""

from __future__ import annotations

import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.linear_model import Perceptron

from tamis import FIRES, prequential
from tamis.streams import ArrayStream


def bare(X: np.ndarray, y: np.ndarray, share: float) -> float:
    selector, learner = FIRES(share), Perceptron(random_state=0)
    begin = time.perf_counter()
    selector.partial_fit(X[:100], y[:100], classes=[0, 1])
    learner.partial_fit(X[:100], y[:100], classes=[0, 1])
    for start in range(100, len(y), 100):
        rows, labels = X[start : start + 100], y[start : start + 100]
        selected = np.flatnonzero(selector.get_support())
        masked = np.zeros_like(rows)
        masked[:, selected] = rows[:, selected]
        learner.predict(masked)
        learner.partial_fit(masked, labels)
        selector.partial_fit(rows, labels)
    return time.perf_counter() - begin


def evaluated(X: np.ndarray, y: np.ndarray, share: float) -> tuple[float, float]:
    stream = ArrayStream(X, y)
    begin = time.perf_counter()
    result = prequential(stream, FIRES(share), Perceptron(random_state=0), batch_size=100)
    seconds = time.perf_counter() - begin
    steps = result.frames["steps"]
    parts = steps["seconds_select"] + steps["seconds_predict"] + steps["seconds_learn"]
    return seconds, float(np.median(steps["seconds_total"] / parts)) - 1


def main() -> None:
    rng = np.random.default_rng(0)
    for n_features in (57, 500, 5000):
        rows = 20_000 if n_features < 5000 else 5_000
        X = rng.random((rows, n_features))
        y = (X[:, :5].sum(axis=1) + 0.3 * rng.normal(size=rows) > 2.5).astype(int)
        bare(X, y, 0.1), evaluated(X, y, 0.1)
        pairs = [(bare(X, y, 0.1), *evaluated(X, y, 0.1)) for _ in range(30)]
        ratio = statistics.median(b / a for a, b, _ in pairs)
        mine, loop = (min(pair[i] for pair in pairs) / rows * 1e8 for i in (0, 1))
        own = statistics.median(pair[2] for pair in pairs)
        print(
            f"{n_features:>6} features: bare {mine:7.1f} us a batch, prequential {loop:7.1f} us, ratio {ratio:.3f};"
            f" own share {own:.3f}"
        )


if __name__ == "__main__":
    main()
