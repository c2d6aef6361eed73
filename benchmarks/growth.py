"""How the time of a row and the memory grow: with the rows so far, the columns, the classes and the window.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/growth.py --out /tmp/growth
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/growth.py --out /tmp/growth --memory   # two million rows

Every selector and every learner of the catalogue learns batches of 100 normal rows (20 columns, 2 classes by two of
them, by others after every 250,000 rows) in a process of its own; learners predict them first. Shown is the processor
time of a row, the median of up to thirty batches, and the slope of its logarithm over the larger half of the sizes: 0
is flat, 1 in proportion. A size is left out once a method has had `--seconds` for one kind of growth. What was measured
is kept in `--out`: a run that was stopped goes on there. At the end it draws `growth_light.png` and `growth_dark.png`.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tamis.catalog import CATALOG, LEARNERS, Entry

SIZES = {
    "rows": (2_000, 10_000, 50_000, 200_000, 1_000_000),
    "features": (10, 100, 1_000, 10_000),
    "classes": (2, 5, 10, 20, 50),
    "window": (100, 1_000, 10_000),
}
TITLES = {
    "rows": "rows so far",
    "features": "columns",
    "classes": "classes",
    "window": "window, or half-life",
}
METHODS = {
    entry.key: entry
    for entry in (*CATALOG, *LEARNERS)
    if entry.module.startswith("tamis.")
    and not entry.key.startswith("river-")
    and (entry in LEARNERS or entry.family == "rows")
}
REPRESENTATIVE = (
    "fires", "ofs", "t-score", "mi", "screening", "discuss", "nb", "nb-su", "knn", "hoeffding-tree",
    "hoeffding-adaptive-tree", "random-rules",
)  # fmt: skip
SIZE, PER_CONCEPT, AT_MOST = 100, 250_000, 30


def make(entry: Entry, window: int | None = None) -> Any:
    """Return a new model, with a window of so many rows where it can have one."""
    given = dict(entry.parameters)
    names = [name for name in ("window", "half_life") if name in inspect.signature(entry.load()).parameters]
    if window is not None and names and given.get(names[0], 0) is not None:
        given[names[0]] = window
    return entry.load()(**given)


def has_window(entry: Entry) -> bool:
    return repr(make(entry, 77)) != repr(make(entry))


def pool(n: int, n_features: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, and what is divided into classes in each concept: shape (n, concepts)."""
    rng = np.random.default_rng(n_features)
    X = rng.standard_normal((n, n_features))
    sums = np.stack([X[:, k % n_features] + X[:, (k + 3) % n_features] for k in range(4)], axis=1)
    ranks = sums.argsort(axis=0).argsort(axis=0)
    return X, ranks * n_classes // n


def batches(n: int, n_features: int = 20, n_classes: int = 2) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give batches without end, of `n` rows that come again and again."""
    X, codes = pool(n, n_features, n_classes)
    at = 0
    while True:
        part = slice(at % n, at % n + SIZE)
        yield X[part], codes[part, at // PER_CONCEPT % 4]
        at += SIZE


def resident() -> float:
    """Return the memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def learn(model: Any, stream: Any, n: int, n_classes: int, until: float) -> list[float]:
    """Predict and learn so many batches, and return the microseconds a row of each; fewer if time is up."""
    spent: list[float] = []
    for _ in range(n):
        X, y = next(stream)
        begun = time.process_time()
        if hasattr(model, "predict") and hasattr(model, "n_seen_"):
            model.predict(X)
        model.partial_fit(X, y, classes=list(range(n_classes)))
        spent.append((time.process_time() - begun) / SIZE * 1e6)
        if time.process_time() > until:
            break
    return spent


def measure(entry: Entry, axis: str, seconds: float) -> Iterator[tuple[int, float, float]]:
    """Give sizes, microseconds a row, and MB."""
    learn(make(entry), batches(2000), 3, 2, np.inf)  # compiles
    until = time.process_time() + seconds
    if axis == "rows":
        model, stream, n = make(entry), batches(20_000), 0
        for size in SIZES[axis]:
            spent = learn(model, stream, (size - n) // SIZE, 2, until)
            if len(spent) < (size - n) // SIZE:
                return
            n = size
            yield size, float(np.median(spent[-AT_MOST:])), resident()
        return
    for size in SIZES[axis]:
        n_features, n_classes = {"features": (size, 2), "classes": (20, size)}.get(axis, (20, 2))
        model = make(entry, size if axis == "window" else None)
        stream = batches(2000, n_features, n_classes)
        first = 3 if axis != "window" else size // SIZE + 1
        if len(learn(model, stream, first, n_classes, until)) < first:
            return
        spent = learn(model, stream, AT_MOST, n_classes, until)
        if len(spent) < 3:
            return
        yield size, float(np.median(spent)), resident()


def memory(entry: Entry, n_rows: int = 2_000_000) -> tuple[float, float]:
    """Return the MB that a process grows by from a tenth of the rows on, and microseconds a row."""
    model, stream, begun = make(entry), batches(20_000), time.process_time()
    learn(model, stream, n_rows // SIZE // 10, 2, np.inf)
    before = resident()
    learn(model, stream, n_rows // SIZE * 9 // 10, 2, np.inf)
    return resident() - before, (time.process_time() - begun) / n_rows * 1e6


# -- what was measured -------------------------------------------------------------------------------------


def slope(sizes: list[float], times: list[float]) -> float:
    half = max(2, (len(sizes) + 1) // 2 + 1)
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes[-half:]), np.log(times[-half:]), 1)[0])


def table(found: dict[str, dict[str, list[list[float]]]]) -> None:
    print(f"{'':26}" + "".join(f"{TITLES[axis]:>30}" for axis in SIZES) + f"{'MB':>8}")
    print(f"{'':26}" + "".join(f"{'us a row':>22}{'slope':>8}" for _ in SIZES))
    for key, axes in found.items():
        shown = f"{key:26}"
        for axis in SIZES:
            points = axes.get(axis) or []
            sizes, times = [p[0] for p in points], [p[1] for p in points]
            span = f"{times[0]:.3g} to {times[-1]:.3g}" if points else ""
            shown += f"{span:>22}" + (f"{slope(sizes, times):8.2f}" if len(points) > 1 else f"{'':8}")
        points = axes.get("rows") or []
        print(shown + (f"{points[-1][2] - points[0][2]:8.1f}" if len(points) > 1 else ""))


def _name_the_steepest(axes: Any, ends: list[tuple[float, float, float, str]]) -> None:
    above = 0.0
    for steep, x, y, key in sorted(ends, key=lambda end: end[2]):
        above = max(y * 1.15, above * 1.6)  # no name on another
        axes.text(x, above, f"{key} {steep:.2f}", ha="right", va="bottom", fontsize=8)


def draw(found: dict[str, dict[str, list[list[float]]]], out: Path) -> None:
    import matplotlib.pyplot as plt

    for name, style in (("light", "default"), ("dark", "dark_background")):
        with plt.style.context(style):
            figure, panels = plt.subplots(1, 4, figsize=(13, 4.6), sharey=True, layout="constrained")
            for axes, axis in zip(panels, SIZES, strict=True):
                ends = []
                for key, measured in found.items():
                    if len(points := measured.get(axis) or []) < 2:
                        continue
                    sizes, times = [p[0] for p in points], [p[1] for p in points]
                    color = "C1" if METHODS[key] in LEARNERS else "C0"
                    axes.loglog(sizes, times, color=color, alpha=0.7, linewidth=1.2)
                    ends.append((slope(sizes, times), SIZES[axis][-1], times[-1], key))
                _name_the_steepest(axes, [end for end in sorted(ends)[-3:] if end[0] > 0.1])
                axes.set_ylim(0.05, 8_000)
                axes.minorticks_off()
                axes.set_xticks(SIZES[axis], [f"{size:,}" for size in SIZES[axis]], fontsize=8)
                axes.set_title(TITLES[axis], fontsize=10)
                axes.grid(alpha=0.25)
            panels[0].set_ylabel("µs a row")
            panels[0].plot([], [], color="C0", label="selectors")
            panels[0].plot([], [], color="C1", label="learners")
            panels[0].legend(frameon=False)
            figure.savefig(out / f"growth_{name}.png", dpi=90)
            plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", default=list(METHODS), help="keys of the catalogue")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each method and kind of growth")
    parser.add_argument("--memory", action="store_true", help="two million rows of a few methods instead")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        key, axis = given.one
        entry = METHODS[key]
        print(json.dumps(list(memory(entry) if axis == "memory" else measure(entry, axis, given.seconds))))
        return
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "growth.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    methods = [key for key in given.methods if not given.memory or key in REPRESENTATIVE]
    for key in methods:
        for axis in ("memory",) if given.memory else SIZES:
            if axis in found.setdefault(key, {}) or (axis == "window" and not has_window(METHODS[key])):
                continue
            command = [sys.executable, __file__, "--out", str(given.out), "--seconds", str(given.seconds)]
            done = subprocess.run(
                [*command, "--one", key, axis], stdout=subprocess.PIPE, text=True, check=False
            )
            if done.returncode:
                print(f"{key}: {axis} failed", file=sys.stderr)
                continue
            found[key][axis] = json.loads(done.stdout)
            path.with_suffix(".new").write_text(json.dumps(found))
            path.with_suffix(".new").replace(path)
    if given.memory:
        for key in methods:
            grown, per_row = found[key]["memory"]
            print(f"{key:26}{grown:8.1f} MB from 200,000 to 2,000,000 rows{per_row:8.2f} us a row")
        return
    table(found)
    draw(found, given.out)


if __name__ == "__main__":
    main()
