"""Features by name: what growing costs, and dict rows against River's `SelectKBest`.

    TAMIS_DATA=... python benchmarks/bench_by_name.py [--rows 3000]

The first table: the mails of `spam_corpus` as dicts from words to counts, in batches of 100. "fixed" has room for all
words from the first batch on, "growing" begins with those of the first batch; both read the selection after each
batch. The second: dict rows of 50 features, learned one by one and each row transformed.
"""

from __future__ import annotations

import argparse
import itertools
from time import perf_counter
from typing import Any

import numpy as np
from river import feature_selection, stats

import tamis
from tamis.adapters.river import RiverSelector


def timed(model: tamis.ByName, batches: list[Any]) -> tuple[float, list[Any]]:
    start, kept = perf_counter(), []
    for rows, y in batches:
        model.partial_fit(rows, y, classes=[0, 1])
        kept.append(model.get_support().tobytes())
    return perf_counter() - start, [kept, model.scores_.tobytes(), len(model.feature_names_)]


def mails(n_rows: int) -> list[Any]:
    batches = []
    for X, y in itertools.islice(tamis.load_dataset("spam_corpus").batches(100), n_rows // 100):
        ends = list(zip(X.indptr, X.indptr[1:], strict=False))
        rows = [dict(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)) for a, b in ends]
        batches.append((rows, np.asarray(y)))
    return batches


def growing(n_rows: int) -> None:
    batches = mails(n_rows)
    first, words = (
        len({w for row in batches[0][0] for w in row}),
        {w for rows, _ in batches for r in rows for w in r},
    )
    print(f"{n_rows} mails, {first:,} words in the first batch, {len(words):,} in all")
    print("| selector | fixed, s | growing, s | growing / fixed | same bits |")
    print("| --- | --- | --- | --- | --- |")
    for selector in (
        tamis.OFS(100), tamis.FIRES(100, scaling=None, learning_rate=0.1), tamis.TScore(100), tamis.FisherScore(100),
        tamis.MutualInformation(100),
    ):  # fmt: skip
        timed(tamis.ByName(selector), batches[:2])  # compiled
        times: dict[str, list[float]] = {"fixed": [], "growing": []}
        found = {}
        for _ in range(3):
            for name, room in (("fixed", len(words)), ("growing", None)):
                seconds, found[name] = timed(tamis.ByName(selector, max_columns=room), batches)
                times[name].append(seconds)
        fixed, grown = min(times["fixed"]), min(times["growing"])
        same = found["fixed"][1:] == found["growing"][1:]
        print(
            f"| `{selector!r}` | {fixed:.2f} | {grown:.2f} | {grown / fixed:.2f} | {'yes' if same else 'no'} |",
            flush=True,
        )


def against_river(n_rows: int = 5000) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_rows, 50)), rng.integers(0, 2, n_rows)
    X[:, 7] += y
    rows = [dict(zip([f"x{j}" for j in range(50)], row, strict=True)) for row in X.tolist()]
    labels = y.tolist()

    def one_by_one(model: Any) -> float:
        start = perf_counter()
        for row, label in zip(rows, labels, strict=True):
            model.transform_one(row)
            model.learn_one(row, label)
        assert "x7" in model.transform_one(rows[0])
        return 1e6 * (perf_counter() - start) / n_rows

    def many(model: tamis.ByName) -> float:
        start = perf_counter()
        for i in range(0, n_rows, 100):
            model.partial_fit(rows[i : i + 100], y[i : i + 100])
            model.transform(rows[i : i + 100])
        assert "x7" in model.selected_
        return 1e6 * (perf_counter() - start) / n_rows

    theirs = min(one_by_one(feature_selection.SelectKBest(stats.PearsonCorr(), k=10)) for _ in range(3))
    print("\n| 50 features | µs a row | times as fast |")
    print("| --- | --- | --- |")
    print(f"| River, `SelectKBest(PearsonCorr())` | {theirs:.1f} | 1 |")
    for selector in (
        tamis.FisherScore(10),
        tamis.TScore(10),
        tamis.OFS(10),
        tamis.FIRES(10),
        tamis.MutualInformation(10),
    ):
        one_by_one(RiverSelector(selector))
        ours = min(one_by_one(RiverSelector(selector)) for _ in range(3))
        print(f"| `RiverSelector({type(selector).__name__}(10))` | {ours:.1f} | {theirs / ours:.1f} |")
        ours = min(many(tamis.ByName(selector)) for _ in range(3))
        print(
            f"| `ByName({type(selector).__name__}(10))`, 100 rows at once | {ours:.1f} | {theirs / ours:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3000)
    growing(parser.parse_args().rows)
    against_river()
