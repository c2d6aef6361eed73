"""JointScreening on SEA with 50 features: accuracy with naive Bayes, and rows a second, beside River; cost over d.

    pip install river==0.26.1
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_joint.py [--rows 100000] [--seeds 3]

The stream: 50 uniform features, two of them relevant and others from one concept to the next, a drift every 10,000
rows, 10 % of the labels flipped. River's models run on the first rows only. All on one thread in one process.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import DISCUSS, JointScreening, StreamPipeline, WeightedNaiveBayes, prequential
from tamis.evaluate.experiment.grid import Oracle
from tamis.rows.joint.pair_counts import cut
from tamis.streams import ArrayStream


class KnownStream(ArrayStream):
    """Arrays that know which columns are relevant."""

    def __init__(self, X: np.ndarray, y: np.ndarray, relevant: list[tuple[int, int]], period: int) -> None:
        super().__init__(X, y)
        self.X, self.y = X, y
        self.relevant, self.period = relevant, period
        self.drifts = tuple(range(period, len(y), period))
        self.drift_widths = (1.0,) * len(self.drifts)

    def relevant_at(self, t: int) -> np.ndarray:
        return np.sort(self.relevant[t // self.period])

    def relevant_rows(self, start: int, stop: int) -> np.ndarray:
        found = np.zeros((stop - start, self.n_features), dtype=bool)
        columns = np.array(self.relevant)[np.arange(start, stop) // self.period]
        np.put_along_axis(found, columns, True, axis=1)
        return found


def sea(seed: int, n_rows: int, n_features: int = 50, period: int = 10_000) -> KnownStream:
    rng = np.random.default_rng(1000 + seed)
    X, y = rng.uniform(0, 10, (n_rows, n_features)), np.zeros(n_rows, dtype=int)
    relevant: list[tuple[int, int]] = []
    for start in range(0, n_rows, period):
        before = relevant[-1] if relevant else ()
        a, b = rng.choice([j for j in range(n_features) if j not in before], 2, replace=False)
        relevant.append((int(a), int(b)))
        y[start : start + period] = X[start : start + period, a] + X[start : start + period, b] <= 7.0
    return KnownStream(X, np.where(rng.random(n_rows) < 0.1, 1 - y, y), relevant, period)


def ours(n_rows: int, n_seeds: int, batch: int) -> None:
    found: dict[str, list[tuple[float, ...]]] = {}
    prequential(sea(0, 2000), JointScreening(), WeightedNaiveBayes(window=None, weight=None))  # compiles
    for seed in range(n_seeds):
        stream = sea(seed, n_rows)
        selectors = {"joint": JointScreening(), "told the truth": Oracle(stream), "none": None}
        for name, selector in selectors.items():
            learner = WeightedNaiveBayes(window=None, weight=None)
            start = time.perf_counter()
            options = {"batch_size": batch, "n_tracked": 0, "baselines": "none"}
            total = prequential(stream, selector, learner, **options).summary()
            rate = n_rows / (time.perf_counter() - start)
            found.setdefault(name, []).append((total["accuracy"], total["selection_accuracy"], rate))
    print(f"{n_rows} rows, {n_seeds} seeds, batches of {batch}: naive Bayes with ...")
    for name, rows in found.items():
        accuracy, selection, rate = (statistics.mean(values) for values in zip(*rows, strict=True))
        print(
            f"{name:>16}: accuracy {accuracy:.4f}, selection accuracy {selection:.3f}, {rate:,.0f} rows a second"
        )


def river(n_rows: int) -> None:
    if not importlib.util.find_spec("river"):
        return
    from river import forest, naive_bayes, tree

    stream = sea(0, n_rows)
    rows = [dict(enumerate(row)) for row in stream.X.tolist()]
    models = {"GaussianNB": naive_bayes.GaussianNB(), "HAT": tree.HoeffdingAdaptiveTreeClassifier(seed=0),
              "ARF, 10 trees": forest.ARFClassifier(seed=0)}  # fmt: skip
    print(f"River, one by one, the first {n_rows} rows:")
    for name, model in models.items():
        right, start = 0, time.perf_counter()
        for row, label in zip(rows, stream.y.tolist(), strict=True):
            right += model.predict_one(row) == label
            model.learn_one(row, label)
        rate = n_rows / (time.perf_counter() - start)
        print(f"{name:>16}: accuracy {right / n_rows:.4f}, {rate:,.0f} rows a second")


def behind(n_rows: int, batch: int, n_rounds: int) -> None:
    """Print the time of a row, predicted and then learned: naive Bayes behind selectors, and River, in turn."""
    if not importlib.util.find_spec("river"):
        return
    from river import naive_bayes

    stream = sea(0, n_rows * (n_rounds + 1))
    X, y, few = stream.X, stream.y, min(n_rows, 500)
    dicts, labels = [dict(enumerate(row)) for row in X[:few].tolist()], y[:few].tolist()
    models = {
        name: StreamPipeline(selector, WeightedNaiveBayes(window=None, weight=None), batch_size=batch)
        for name, selector in (("joint", JointScreening()), ("discuss", DISCUSS()), ("all features", None))
    }
    for model in models.values():
        model.partial_fit(X[:n_rows], y[:n_rows], classes=[0, 1])
    spent: dict[str, list[float]] = {name: [] for name in ("River", *models)}
    for at in range(n_rows, len(y), n_rows):
        peer, start = naive_bayes.GaussianNB(), time.process_time()
        for row, label in zip(dicts, labels, strict=True):
            peer.predict_one(row)
            peer.learn_one(row, label)
        spent["River"].append((time.process_time() - start) / few)
        for name, model in models.items():
            start = time.process_time()
            for first in range(at, at + n_rows, batch):
                model.predict(X[first : first + batch])
                model.partial_fit(X[first : first + batch], y[first : first + batch])
            spent[name].append((time.process_time() - start) / n_rows)
    print(f"naive Bayes, batches of {batch}: microseconds a row, and times as fast as River's GaussianNB")
    for name, seconds in spent.items():
        ratio = statistics.median(a / b for a, b in zip(spent["River"], seconds, strict=True))
        print(f"{name:>16}: {1e6 * statistics.median(seconds):8.1f} {ratio:6.1f}", flush=True)


def cost() -> None:
    print(
        "selector alone, batches of 100, rows a second of processor time: d of normal features, and d of bits"
    )
    for d in (10, 20, 50, 100, 200, 500):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20_000, d))
        y = (X[:, 0] + X[:, 1] + rng.normal(size=len(X)) > 0).astype(int)
        rates = []
        for data in (X, (X > 0).astype(float)):
            model = JointScreening()
            start = time.process_time()
            for at in range(0, len(y), 100):
                model.partial_fit(data[at : at + 100], y[at : at + 100], classes=[0, 1])
            rates.append(len(y) / (time.process_time() - start))
        print(f"{d:>5}: {rates[0]:>9,.0f} {rates[1]:>9,.0f}", flush=True)


def wide() -> None:
    """The first batch of many columns, and a drift among as many as are looked at in pairs, in processor time."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 100_000)), rng.integers(0, 2, 100)
    JointScreening().fit(X[:, :600], y)  # compiles
    start = time.process_time()
    JointScreening().fit(X, y)
    whole = time.process_time() - start
    some = X[:64, :5000]
    start = time.process_time()
    cut(some, 10)
    at_once, start = time.process_time() - start, time.process_time()
    for column in some.T:
        np.unique(column), np.unique(np.quantile(column, np.arange(1, 10) / 10))
    print(f"first batch of 100 x 100,000: {whole:.1f} s; to cut 5,000 columns one by one takes"
          f" {(time.process_time() - start) / at_once:.0f} times as long as all at once")  # fmt: skip
    X = rng.normal(size=(20_000, 500))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=len(X)) > 0).astype(int)
    y[10_000:] = X[10_000:, 5] + X[10_000:, 6] + rng.normal(size=10_000) > 0
    model, start = JointScreening(), time.process_time()
    for at in range(0, len(y), 100):
        model.partial_fit(X[at : at + 100], y[at : at + 100], classes=[0, 1])
    rate = len(y) / (time.process_time() - start)
    print(f"500 features with a drift (found in row {model.drifts_}): {rate:,.0f} rows a second", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument(
        "--behind", type=int, default=0, metavar="ROUNDS", help="only beside River, in rounds"
    )
    arguments = parser.parse_args()
    if arguments.behind:
        behind(2000, arguments.batch, arguments.behind)
        return
    ours(arguments.rows, arguments.seeds, arguments.batch)
    cost()
    wide()
    river(min(arguments.rows, 20_000))


if __name__ == "__main__":
    main()
