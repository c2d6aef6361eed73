"""What a state weighs, and what it costs to merge two, for every selector that merges.

    python benchmarks/bench_merge.py [--columns 100 10000] [--rows 8000]
    python benchmarks/bench_merge.py --by-rule

Each state learned half of the rows, in batches of 1000, of two classes; the columns are normal, so quantiles are
thinned. `dumps` is the whole state as bytes. The last two columns are a `merge_tree` of 16 states that learned a
sixteenth of the rows each, and its bytes over those of one pass. `--by-rule`: what the merges lose that follow a
rule, on 20,000 rows of 100 columns, of which ten are relevant with falling slopes, and ten are correlated
with these at .7: relevant columns among ten kept, and kept ones shared with one pass, by the number of parts.
"""

from __future__ import annotations

import argparse
import copy
import math
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import tamis
from tamis.catalog import CATALOG


def learned(make: Any, X: Any, y: Any) -> Any:
    found = make()
    for start in range(0, len(X), 1000):
        found.partial_fit(X[start : start + 1000], y[start : start + 1000], classes=[0, 1])
    return found


def fastest(act: Any, prepare: Any, repeat: int = 3) -> float:
    times = []
    for _ in range(repeat):
        given = prepare()
        start = perf_counter()
        act(*given)
        times.append(perf_counter() - start)
    return min(times)


def row(entry: Any, n_columns: int, n_rows: int) -> str:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_rows, n_columns)).astype(np.float32), rng.integers(0, 2, n_rows)
    X[:, 0] += y

    def make() -> Any:
        return entry.load()(10)

    halves = [learned(make, part, code) for part, code in zip(np.split(X, 2), np.split(y, 2), strict=True)]
    whole = learned(make, X, y)
    many = [learned(make, part, code) for part, code in zip(np.split(X, 16), np.split(y, 16), strict=True)]
    assert whole.scores_.argmax() == halves[0].scores_.argmax() == 0
    merging = fastest(lambda a, b: a.merge(b), lambda: copy.deepcopy(halves))
    data = tamis.dumps(halves[0])
    dumping = fastest(lambda: tamis.dumps(halves[0]), lambda: ())
    loading = fastest(lambda: tamis.loads(data), lambda: ())
    tree = fastest(lambda: tamis.merge_tree(many), lambda: (), 1)
    ratio = len(tamis.dumps(tamis.merge_tree(many))) / len(tamis.dumps(whole))
    return (
        f"| `{entry.name}` | {n_columns:,} | {len(data) / 1e3:,.0f} | {1e3 * merging:.2f} | {1e3 * dumping:.2f} |"
        f" {1e3 * loading:.2f} | {1e3 * tree:.1f} | {ratio:.2f} |"
    )


def losses(n_draws: int = 5) -> None:
    """Print how merges that follow a rule compare with one pass."""
    methods = {
        "FIRES": lambda: tamis.FIRES(10, half_life=math.inf),
        "FIRES, assumed-density": lambda: tamis.FIRES(10, half_life=math.inf, update="assumed-density"),
        "OFS": lambda: tamis.OFS(10),
        "DISCUSS": lambda: tamis.DISCUSS(10),
        "Auto": tamis.Auto,
        "Auto, 10 features": lambda: tamis.Auto(10),
    }
    print("| selector | parts | relevant of 10 | the same as one pass | rank correlation of the scores |")
    print("| --- | --- | --- | --- | --- |")
    for name, make in methods.items():
        found: dict[int, list[tuple[float, float, float]]] = {}
        for seed in range(n_draws):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(20_000, 100))
            X[:, 10:20] = 0.7 * X[:, :10] + math.sqrt(1 - 0.7**2) * X[:, 10:20]
            y = (X[:, :10] @ 0.8 ** np.arange(10) + rng.logistic(size=len(X)) > 0).astype(int)
            whole = make().fit(X, y)
            for n in (1, 4, 16, 64):
                parts = [make().fit(X[at], y[at]) for at in np.array_split(np.arange(len(X)), n)]
                merged = tamis.merge_tree(parts)
                kept, of_whole = merged.get_support(), whole.get_support()
                rho = float(spearmanr(merged.scores_, whole.scores_).statistic)
                found.setdefault(n, []).append((kept[:10].sum(), (kept & of_whole).sum(), rho))
        for n, values in found.items():
            relevant, same, rho = np.mean(values, axis=0)
            print(f"| `{name}` | {n} | {relevant:.1f} | {same:.1f} | {rho:.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--by-rule", action="store_true")
    given = parser.parse_args()
    if given.by_rule:
        return losses()
    print(
        "| selector | columns | kB | merge, ms | dumps, ms | loads, ms | tree of 16, ms | its bytes / one pass |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for entry in CATALOG:
        for n_columns in given.columns if entry.mergeable else []:
            if entry.key == "forward" and n_columns > 2000:
                continue  # it merges up to max_columns
            print(row(entry, n_columns, given.rows), flush=True)


if __name__ == "__main__":
    main()
