"""What an experiment adds to the runs in its cells: making them, naming them, saving each, reading the numbers back.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_experiment.py [CELLS]

Within one call of `run_experiment` into a new folder (on the disk of the current folder), the time spent inside the
bare `prequential` calls is taken; all the rest of the call is what the experiment adds. Two separate calls would differ
by more than that from one to the next. Printed, for each cell, in processor time and by the clock; the clock waits for
the disk too. Then, what several processes cost to start.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis import prequential, run_experiment
from tamis.evaluate import experiment

GRID: dict[str, tuple[Any, str, int]] = {
    "electricity (45,312 x 8), FIRES": ("electricity", "fires", 3),
    "SEA of 20,000 rows (x 50), FIRES": (("SEA", {"n_rows": 20_000}), "fires", 2),
    "SEA of 100,000 rows (x 50), FIRES": ("SEA", "fires", 2),
    "SEA of 100,000 rows (x 50), mutual information": ("SEA", "mi", 2),
}


def clocks() -> np.ndarray:
    return np.array([time.process_time(), time.perf_counter()])


def shares(stream: Any, selector: str, n_features: int, n_cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the seconds of a cell inside `prequential`, and of all that is around it: processor and clock."""
    inside = np.zeros(2)

    def timed(*arguments: Any, **options: Any) -> Any:
        nonlocal inside
        begin = clocks()
        result = prequential(*arguments, **options)
        inside += clocks() - begin
        return result

    experiment.prequential = timed
    with tempfile.TemporaryDirectory(dir=".") as folder:
        begin = clocks()
        run_experiment(
            stream,
            selector,
            "logistic",
            list(range(n_cells)),
            f"{folder}/out",
            n_features_to_select=n_features,
            baselines="none",
        )
        whole = clocks() - begin
    experiment.prequential = prequential
    return inside / n_cells, (whole - inside) / n_cells


def main(n_cells: int) -> None:
    shares("electricity", "mi", 3, 1)  # what is imported and compiled once
    print(f"{'a cell':<48}  prequential  adds (processor)    adds (clock)")
    for name, (stream, selector, n_features) in GRID.items():
        bare, rest = shares(stream, selector, n_features, n_cells)
        columns = (f"{1e3 * b:6.1f} ms {b / a:6.2%}" for a, b in zip(bare, rest, strict=True))
        print(f"{name:<48}  {bare[0]:8.3f} s  {'  '.join(columns)}")
    begin = time.perf_counter()
    run_experiment(("SEA", {"n_rows": 300}), "none", seeds=3, n_jobs=2)
    print(f"two processes, three cells of 300 rows: {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
