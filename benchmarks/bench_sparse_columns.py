"""JointScreening and DISCUSS on 100,000 sparse columns, beside the same rows as dense ones.

    python benchmarks/bench_sparse_columns.py [--rows 1000] [--methods joint discuss]

Rows of 100 values: of words, whose frequency is that of Zipf's law, or of columns drawn uniformly. Prints the
processor time of a row over the second half, and the memory that the model holds and at most needed on the way, by
tracemalloc in a second run. The selections are compared after every batch.
"""

import argparse
import gc
import time
import tracemalloc

import numpy as np
import scipy.sparse as sp

from tamis import DISCUSS, JointScreening

METHODS = {"joint": JointScreening, "discuss": DISCUSS}
N_COLUMNS, N_VALUES, N_BATCH = 100_000, 100, 100


def rows_of(kind, n_rows, rng):
    """Return rows with 100 values each, and a class that two frequent columns determine."""
    weight = 1.0 / np.arange(1, N_COLUMNS + 1) if kind == "words" else np.ones(N_COLUMNS)
    columns = rng.choice(N_COLUMNS, size=(n_rows, N_VALUES), p=weight / weight.sum())
    y = rng.integers(0, 2, n_rows)
    columns[np.arange(n_rows), 0] = np.where(y ^ (rng.random(n_rows) < 0.1), 17, 99)
    places = np.repeat(np.arange(n_rows), N_VALUES), columns.ravel()
    return sp.csr_matrix((np.ones(columns.size), places), (n_rows, N_COLUMNS)), y


def learn(method, X, y, as_given):
    """Return the milliseconds of a row over the second half, and what was selected after every batch."""
    model, selected, start = method(), [], time.process_time()
    for first in range(0, len(y), N_BATCH):
        if first == len(y) // 2 // N_BATCH * N_BATCH:
            start = time.process_time()
        part = slice(first, first + N_BATCH)
        model.partial_fit(as_given(X[part]), y[part])
        selected.append(list(model.selected_))
    n_late = len(y) - len(y) // 2 // N_BATCH * N_BATCH
    return (time.process_time() - start) / n_late * 1e3, selected, model


def memory(method, X, y, as_given):
    """Return the megabytes that the model holds after all rows, and the most on the way."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = learn(method, X, y, as_given)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del kept
    return held / 1e6, most / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    print(
        f"{'method':16} {'rows':8} {'given as':8} {'ms a row':>9} {'ratio':>6} {'MB held':>8} {'ratio':>6}"
        f" {'at most':>8}"
    )
    for name in options.methods:
        method = METHODS[name]
        for kind in ("words", "uniform"):
            X, y = rows_of(kind, options.rows, rng)
            learn(method, X[:200, :50], y[:200], sp.csr_matrix)  # compiles
            learn(method, X[:200, :50], y[:200], sp.csr_matrix.toarray)
            base, chosen = None, None
            for label, as_given in (("dense", sp.csr_matrix.toarray), ("CSR", sp.csr_matrix)):
                spent, selected, _ = learn(method, X, y, as_given)
                held, most = memory(method, X, y, as_given)
                base, chosen = base or (spent, held), chosen or selected
                assert selected == chosen, "the selections differ"
                print(
                    f"{method.__name__:16} {kind:8} {label:8} {spent:9.2f} {spent / base[0]:6.3f} {held:8.1f}"
                    f" {held / base[1]:6.3f} {most:8.1f}"
                )


if __name__ == "__main__":
    main()
