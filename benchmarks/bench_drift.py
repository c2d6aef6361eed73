"""Drift detectors beside River's: nanoseconds a value, one at a time from Python and in arrays.

    pip install '.[river]'
    OMP_NUM_THREADS=1 python benchmarks/bench_drift.py

All run in one process, in turn, on the same errors; medians over the rounds. River has no ECDD.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from tamis.drift import ADWIN, DDM, ECDD, HDDMA, HDDMW, Detector


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def one_by_one(detector: Detector, values: list[float]) -> Callable[[], object]:
    def run() -> None:
        for value in values:
            detector.update(value)

    return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--values", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    errors = (np.random.default_rng(0).random(arguments.values) < 0.2).astype(float)
    plain = errors.tolist()
    try:
        from river import drift

        peers = {
            ADWIN: drift.ADWIN,
            DDM: drift.binary.DDM,
            HDDMA: drift.binary.HDDMA,
            HDDMW: drift.binary.HDDMW,
        }
    except ImportError:
        peers = {}
    print(f"{arguments.values} errors, nanoseconds a value, {arguments.rounds} rounds")
    print(f"{'':>8} {'River':>8} {'one by one':>11} {'in arrays':>10} {'River / arrays':>15}")
    for kind in (ADWIN, DDM, HDDMA, HDDMW, ECDD):
        kind().drifts(errors[:1000])  # compiles
        rounds = []
        for _ in range(arguments.rounds):
            ours, many = seconds(one_by_one(kind(), plain)), seconds(lambda kind=kind: kind().drifts(errors))
            theirs = seconds(one_by_one(peers[kind](), plain)) if kind in peers else float("nan")
            rounds.append((theirs, ours, many, theirs / many))
        theirs, ours, many, ratio = (statistics.median(part) for part in zip(*rounds, strict=True))
        scale = 1e9 / arguments.values
        print(
            f"{kind.__name__:>8} {theirs * scale:>8.0f} {ours * scale:>11.0f} {many * scale:>10.0f} {ratio:>15.1f}"
        )


if __name__ == "__main__":
    main()
