"""Does `tamis recommend` pay? Its command on the second half of real streams, against `tamis run` without options.

    python experiments/recommend_or_default.py [--streams NAMES] [--rows 6000]

The recommendation sees the first half of the rows, at most 3,000. Both commands then run over all rows, and the
accuracy of the rows after the first half counts. The default chooses its learner on the first 2,000 rows, which are
most rows of a short stream; here it sees no more than the recommendation. The streams are those of
shared/data/streams4 with classes.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from tamis.evaluate.candidates import choose_learner

FOLDER = (
    Path(os.environ.get("TAMIS_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data/streams4"
)
STREAMS = (
    *("attrition", "cells", "credit_data", "employment", "happiness", "imagesegments", "loanapp", "musk"),
    *("phishing", "stackoverflow", "tmy_cloud", "tmy_wind_rare"),
)


def tamis(*words: str, cwd: Path) -> str:
    """Return what a command prints."""
    line = [sys.executable, "-m", "tamis", *words, "--quiet"]
    return subprocess.run(line, capture_output=True, text=True, check=True, cwd=cwd).stdout


def later_accuracy(words: list[str], folder: Path, first: int) -> tuple[float, int]:
    """Return the accuracy of the rows after the first ones, and the number of columns at the end."""
    out = tempfile.mkdtemp(dir=folder)
    tamis(*words, "--baselines", "none", "--out", f"{out}/run", cwd=folder)
    steps = pq.read_table(f"{out}/run/steps.parquet").to_pandas()
    later = steps[steps["n_seen"] > first + 50]
    return float(np.average(later["accuracy"], weights=later["n_rows"])), int(steps["n_selected"].iloc[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--streams", nargs="+", default=STREAMS)
    parser.add_argument("--rows", type=int, default=6000)
    chosen = parser.parse_args()
    gains = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in chosen.streams:
            stored = np.load(FOLDER / f"{name}.npz")
            X, y = stored["X"][: chosen.rows].astype(float), stored["y"][: chosen.rows]
            frame = pd.DataFrame(X).rename(columns="c{}".format).assign(label=[f"k{value}" for value in y])
            frame.to_csv(folder / f"{name}.csv", index=False)
            first, how = min(3000, len(y) // 2), [f"{name}.csv", "--label", "label", "--keep", "*"]
            limits = ["--max-rows", str(first), "--n-draws", "1", "--json"]
            found = json.loads(tamis("recommend", *how, *limits, cwd=folder))
            advised, k = later_accuracy(shlex.split(found["command"])[1:], folder, first)
            learner = choose_learner((X, y), max_rows=min(first, 2000)).name
            selects = ["--features", "few"] if learner == "lightgbm" else ["--selector", "auto"]
            default, k_default = later_accuracy(["run", *how, "--learner", learner, *selects], folder, first)
            gains.append(100.0 * (advised - default))
            print(
                f"{name:<16} recommended {advised:.4f} ({k} columns)  default {default:.4f} ({k_default})"
                f"  {found['arguments']}  {learner}",
                flush=True,
            )
    error = np.std(gains, ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else float("nan")
    print(f"recommended - default: {np.mean(gains):+.2f} ± {error:.2f} points over {len(gains)} streams")


if __name__ == "__main__":
    main()
