"""Ten million rows through a stream without an end: does the memory stay flat?

    python experiments/follow_soak.py [--rows 10000000] [--out docs]

CSV files of 250,000 rows appear in a folder while it is followed; those that were read are removed. A selector and a
classifier are tested and trained in batches of 1,000, with a checkpoint every second. Prints rows, memory and the size
of the checkpoint at every twentieth of the way, and draws them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from tamis import TScore, prequential
from tamis.streams import follow_files

PER_FILE, BATCH = 250_000, 1000


def write_part(folder: Path, k: int) -> None:
    """Write a file whose label shows in one of ten columns, another one every million rows."""
    rng = np.random.default_rng(k)
    X = rng.normal(size=(PER_FILE, 10)).round(3)
    y = X[:, k * PER_FILE // 1_000_000 % 10] > 0
    table = pa.table({**{f"x{j}": X[:, j] for j in range(10)}, "state": np.where(y, "on", "off")})
    part = folder / f".{k:04d}.csv"
    pa.csv.write_csv(table, part)
    part.rename(folder / f"{k:04d}.csv")


def resident() -> float:
    """Return the memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    seen: list[tuple[float, float, float]] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "parts")
        folder.mkdir()
        checkpoint = Path(place, "run.tamis")
        write_part(folder, 0)
        began = time.perf_counter()
        pause = 0.0

        def on_step(step) -> None:  # type: ignore[no-untyped-def]
            nonlocal pause
            n = int(step.n_seen)
            if n % PER_FILE == 0 and n < given.rows:
                at = time.perf_counter()
                write_part(folder, n // PER_FILE)
                for old in sorted(folder.glob("*.csv"))[:-2]:
                    old.unlink()
                pause += time.perf_counter() - at
            if n % (given.rows // 20) == 0:
                size = checkpoint.stat().st_size / 1e6 if checkpoint.exists() else 0.0
                seen.append((n / 1e6, resident(), size))
                rate = n / (time.perf_counter() - began - pause)
                print(
                    f"{n:>12,} rows {resident():7.1f} MB  checkpoint {size:.2f} MB  {rate:,.0f} rows/s",
                    flush=True,
                )

        stream = follow_files(folder, label="state", idle=0)
        result = prequential(
            stream, TScore(2), batch_size=BATCH, baselines="none", auc=False, keep_steps=2000, max_rows=given.rows,
            checkpoint=checkpoint, checkpoint_every=1 << 62, checkpoint_seconds=1.0, on_step=on_step,
        )  # fmt: skip
        print(f"records kept: {len(result.frames['steps']['step'])} of {given.rows // BATCH - 1}")
    if given.out:
        import matplotlib.pyplot as plt

        rows, memory, size = np.array(seen).T
        figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
        axes.plot(rows, memory, label="memory of the process")
        axes.plot(rows, size, label="checkpoint")
        axes.set(xlabel="million rows", ylabel="MB", ylim=(0, None), title="tamis follow, ten columns")
        axes.legend(frameon=False)
        figure.savefig(given.out / "follow_memory.png", dpi=110)


if __name__ == "__main__":
    main()
