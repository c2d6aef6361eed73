"""One row, and the agreement on 100,000: a model, its frozen scikit-learn pipeline and its ONNX graph.

    python benchmarks/bench_frozen.py        # the ONNX columns need skl2onnx and onnxruntime

Models learn 5,000 rows of 30 features. The time is the best of 20 rounds of 200 rows, one row per call, in one thread.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from tamis import (
    AdaptiveRandomForest,
    ForwardPartialCorrelation,
    HoeffdingTree,
    Refit,
    SGDLogisticRegression,
    StreamPipeline,
    WeightedNaiveBayes,
    freeze,
)  # fmt: skip

MODELS = {
    "logistic regression": SGDLogisticRegression(),
    "naive Bayes": WeightedNaiveBayes(),
    "Hoeffding tree": HoeffdingTree(leaf="majority"),
    "forest of 10 trees": AdaptiveRandomForest(leaf="majority"),
    "Hoeffding tree, Bayes leaves": HoeffdingTree(),
    "forest of 10, Bayes leaves": AdaptiveRandomForest(),
    "LightGBM": Refit("lightgbm"),
    "histogram boosting": Refit("hist-boosting"),
}


def microseconds(predict, row: np.ndarray) -> float:
    best = np.inf
    for _ in range(20):
        begun = time.perf_counter()
        for _ in range(200):
            predict(row)
        best = min(best, (time.perf_counter() - begun) / 200)
    return 1e6 * best


def main() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(5000, 30)), rng.normal(size=(100_000, 30))
    y = X[:, 3] + X[:, 8] + 0.5 * rng.normal(size=5000) > 0
    print(
        f"{'µs a row, five of 30 columns':30}{'model':>9}{'frozen':>9}{'ONNX':>9}   predictions that differ"
    )
    for name, learner in MODELS.items():
        model = StreamPipeline(ForwardPartialCorrelation(5), learner).fit(X, y.astype(int))
        expected, times, wrong = model.predict(new), [microseconds(model.predict, new[:1])], []
        try:
            frozen = freeze(model)
            times.append(microseconds(frozen.predict, new[:1]))
            wrong.append(int((frozen.predict(new) != expected).sum()))
        except ValueError:  # leaves that use naive Bayes
            times.append(np.nan)
        try:
            import onnxruntime

            from tamis.pipeline.freezing import to_onnx

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), options)
            times.append(microseconds(lambda row, run=session.run: run(None, {"X": row}), new[:1]))
            wrong.append(int((session.run(None, {"X": new})[0] != expected).sum()))
        except ImportError:
            times.append(np.nan)
        print(f"{name:30}" + "".join(f"{t:9.1f}" for t in times) + f"   {wrong}", flush=True)


if __name__ == "__main__":
    main()
