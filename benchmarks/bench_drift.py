"""Drift detectors beside River's, and classifiers that restart at their detections.

    pip install '.[river]'
    OMP_NUM_THREADS=1 python benchmarks/bench_drift.py

The first table is nanoseconds a value, one at a time from Python and in arrays; all run in one process, in turn, on the
same errors; medians over the rounds. River has no ECDD. `auto / plain`: `dependence="auto"` against its default.

The second is naive Bayes with each detector on a stream of two relevant features among 50 that change every 10,000
rows, with River's DriftRetrainingClassifier beside it, and River's naive Bayes in a plain loop and in the adapter; not
with `--rows 0`. Seconds are of the process.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tamis import ResetOnDrift, prequential
from tamis.drift import ADWIN, DDM, DETECTORS, ECDD, HDDMA, HDDMW, Detector
from tamis.evaluate.metrics.drift import detections
from tamis.streams import load_stream


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def one_by_one(detector: Detector, values: list[float]) -> Callable[[], object]:
    def run() -> None:
        for value in values:
            detector.update(value)

    return run


def compare_detectors(n: int, n_rounds: int) -> None:
    errors = (np.random.default_rng(0).random(n) < 0.2).astype(float)
    plain = errors.tolist()
    try:
        from river import drift

        peers = {
            ADWIN: drift.ADWIN, DDM: drift.binary.DDM, HDDMA: drift.binary.HDDMA, HDDMW: drift.binary.HDDMW,
        }  # fmt: skip
    except ImportError:
        peers = {}
    print(f"{n} errors, nanoseconds a value, {n_rounds} rounds")
    print(
        f"{'':>8} {'River':>8} {'one by one':>11} {'in arrays':>10} {'River / arrays':>15} {'auto / plain':>13}"
    )
    for kind in (ADWIN, DDM, HDDMA, HDDMW, ECDD):
        kind().drifts(errors[:1000])  # compiles
        rounds = []
        for _ in range(n_rounds):
            ours, many = seconds(one_by_one(kind(), plain)), seconds(lambda kind=kind: kind().drifts(errors))
            theirs = seconds(one_by_one(peers[kind](), plain)) if kind in peers else float("nan")
            tracked = seconds(lambda kind=kind: kind(dependence="auto").drifts(errors))
            rounds.append((theirs, ours, many, theirs / many, tracked / many))
        theirs, ours, many, *ratios = (statistics.median(part) for part in zip(*rounds, strict=True))
        parts = (part * 1e9 / n for part in (theirs, ours, many))
        print("{:>8} {:>8.0f} {:>11.0f} {:>10.0f} {:>15.1f} {:>13.2f}".format(kind.__name__, *parts, *ratios))


def in_a_loop(model: Any, X: Any, y: Any) -> tuple[float, float]:
    """Return accuracy and rows per second of a model of River's in the plain loop."""
    names, rows, labels, right = range(X.shape[1]), X.tolist(), y.tolist(), 0

    def run() -> None:
        nonlocal right
        for row, label in zip(rows, labels, strict=True):
            values = dict(zip(names, row, strict=True))
            right += model.predict_one(values) == label
            model.learn_one(values, label)

    spent = seconds(run)
    return right / len(labels), len(labels) / spent


def compare_classifiers(n_rows: int) -> None:
    stream = load_stream("SEA", seed=0)
    batches = list(stream.batches(n_rows))
    X, y = batches[0][0][:n_rows], batches[0][1][:n_rows]
    drifts = [at for at in stream.drifts if at < n_rows]
    print(f"\n{n_rows} rows of SEA, {X.shape[1]} features, {len(drifts)} drifts")
    print(f"{'':>32} {'accuracy':>9} {'rows/s':>9} {'missed':>7} {'false':>6} {'delay':>6}")

    def show(name: str, accuracy: float, speed: float, found: str = "") -> None:
        print(f"{name:>32} {accuracy:>9.4f} {speed:>9.0f} {found}")

    prequential((X[:2000], y[:2000]), None, ResetOnDrift())  # compiles
    for name in DETECTORS:
        model, held = ResetOnDrift("naive-bayes", name), []
        spent = seconds(lambda m=model, h=held: h.append(prequential((X, y), None, m)))
        found = detections(drifts, model.drifts_, widths=stream.drift_widths[: len(drifts)])
        numbers = f"{found.n_missed:>7} {found.n_false_alarms:>6} {found.mean_delay:>6.0f}"
        show(f"naive Bayes, {name}", held[0].summary()["accuracy"], n_rows / spent, numbers)
    try:
        from river import drift, naive_bayes

        from tamis.adapters.river import RiverClassifier
    except ImportError:
        return
    model, held = drift.DriftRetrainingClassifier(naive_bayes.GaussianNB(), drift.binary.DDM()), []
    show("River's naive Bayes, its DDM", *in_a_loop(model, X, y))
    few = min(n_rows, 10_000)
    show(f"River's, loop, {few} rows", *in_a_loop(naive_bayes.GaussianNB(), X[:few], y[:few]))
    spent = seconds(
        lambda: held.append(prequential((X[:few], y[:few]), None, RiverClassifier("naive-bayes")))
    )
    show(f"River's, adapter, {few} rows", held[0].summary()["accuracy"], few / spent)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--values", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=49_000)
    arguments = parser.parse_args()
    compare_detectors(arguments.values, arguments.rounds)
    arguments.rows and compare_classifiers(arguments.rows)


if __name__ == "__main__":
    main()
