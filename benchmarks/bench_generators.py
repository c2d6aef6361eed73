"""Values per second of every stream with known truth; SEA's rows per second beside River's with the same features.

    pip install river
    OMP_NUM_THREADS=1 python benchmarks/bench_generators.py [--rows 100000]

River makes the three features of its SEA; the other 47 are appended in plain Python, as one would. Both run in one
process, in turn, in CPU seconds; the median over the rounds and the median of the ratios round by round are printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tamis.streams import list_streams, load_stream


def cpu_seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def river_rows(n: int) -> Iterator[tuple[dict[str, float], bool]]:
    """River's SEA, 32 irrelevant features, and 5 of each kind of Table 4.1's redundant ones."""
    from river.datasets import synth

    u = random.Random(0).random
    others = [f"x{j}" for j in range(3, 35)]
    sources = [0, 1, 2, "x3", "x4"]
    for x, y in itertools.islice(synth.SEA(variant=0, noise=0.1, seed=1), n):
        for name in others:
            x[name] = 10 * u()
        for j, source in enumerate(sources):
            value = x[source]
            x[f"linear{j}"] = value + (2 * u() - 1)
            x[f"quadratic{j}"] = (value - 5) ** 2 if u() > 0.1 else 25 * u()
            x[f"cosine{j}"] = math.cos(2 * math.pi * value / 10) if u() > 0.1 else 2 * u() - 1
        yield x, y


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()

    print(f"{'stream':>14} {'features':>9} {'batch':>6} {'rows/s':>12} {'million values/s':>17}")
    for row in list_streams():
        stream = load_stream(row["name"], n_rows=max(arguments.rows * 50 // row["n_features"], 1000))
        stream.take(10)
        for size in (100, 1000):
            passes = [
                cpu_seconds(lambda s=stream, k=size: sum(1 for _ in s.batches(k)))
                for _ in range(arguments.rounds)
            ]
            rate = stream.n_rows / statistics.median(passes)
            values = rate * stream.n_features / 1e6
            print(
                f"{row['name']:>14} {stream.n_features:>9} {size:>6} {rate:>12,.0f} {values:>17.1f}",
                flush=True,
            )

    if importlib.util.find_spec("river") is None:
        print("river is not installed: no comparison")
        return
    stream = load_stream("SEA", n_rows=arguments.rows, n_drifts=0)  # River's does not drift either
    few = arguments.rows // 20
    pairs = []
    for _ in range(arguments.rounds):
        ours = cpu_seconds(lambda: sum(1 for _ in stream.batches(1000))) / arguments.rows
        theirs = cpu_seconds(lambda: sum(1 for _ in river_rows(few))) / few
        pairs.append((ours, theirs))
    ours, theirs = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
    ratio = statistics.median(theirs / ours for ours, theirs in pairs)
    print(f"SEA, 50 features: ours {1 / ours:,.0f} rows/s, River {1 / theirs:,.0f} rows/s, ratio {ratio:.1f}")


if __name__ == "__main__":
    main()
