"""What resets of the learner are worth: tried first ("auto"), at each drift that the selector reports, or never.

    python experiments/resets.py [--data FOLDER] [--out FILE] [--rows 10000] [--streams NAMES] [--learners NAMES]

Test-then-train in batches of 100 rows (`tamis.prequential`, columns selected by JointScreening and DISCUSS, which
report drifts). The seven drifting streams of the thesis' Table 4.1 have three drifts each; electricity, usenet and
usenet2 keep their order, magic04 is shuffled. The forest and the adaptive tree adapt by themselves, so "auto" never
resets them. Each cell is kept in --out as it is done, and not done again. Shown is the accuracy in %, and by how much
"auto" is behind the better of the other two.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB

from tamis import (
    DISCUSS,
    AdaptiveRandomForest,
    HoeffdingAdaptiveTree,
    JointScreening,
    load_stream,
    prequential,
)

ROOT = Path(__file__).resolve().parents[1]
DRIFTING = ("AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA")
REAL = ("electricity", "usenet", "usenet2", "magic04")
LEARNERS = {
    "naive Bayes": GaussianNB,
    "SGD": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "adaptive tree": HoeffdingAdaptiveTree,
    "forest": lambda: AdaptiveRandomForest(random_state=0),
}
SELECTORS = {"Joint": JointScreening, "DISCUSS": DISCUSS}
WAYS = ("always", "never", "auto")


def stream(name: str, folder: Path, rows: int) -> Any:
    if name in DRIFTING:
        return load_stream(name, n_rows=rows, n_drifts=3, seed=0)
    file = np.load(folder / name / "data.npz", allow_pickle=False)
    X = file["X"] if "X" in file else sp.load_npz(folder / name / "data.npz").toarray()
    X, y = np.nan_to_num(X.astype(np.float64)), file["y"].astype(np.int64)
    if name == "magic04":
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
    most = len(y) if name == "electricity" else rows
    return X[:most], y[:most]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of data sets"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("resets.json"), help="file of the cells that are done"
    )
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--streams", default=",".join((*REAL, *DRIFTING)))
    parser.add_argument("--learners", default=",".join(LEARNERS))
    given = parser.parse_args()
    done = json.loads(given.out.read_text("utf-8")) if given.out.exists() else {}
    print("| stream | selector | learner | always | never | auto | tried, adopted | behind the better |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    gaps = []
    for name in given.streams.split(","):
        data = None
        for selector in SELECTORS:
            for learner in given.learners.split(","):
                found = {}
                for way in WAYS:
                    key = f"{name}/{selector}/{learner}/{way}/{given.rows}"
                    if key not in done:
                        data = stream(name, given.data, given.rows) if data is None else data
                        result = prequential(
                            data,
                            SELECTORS[selector](),
                            LEARNERS[learner](),
                            replay=way,
                            baselines="none",
                            auc=False,
                        )
                        counts = [result.settings[of] for of in ("challenges", "replays")]
                        done[key] = [100.0 * result.summary()["accuracy"], *counts]
                        given.out.write_text(json.dumps(done, indent=1), encoding="utf-8")
                    found[way] = done[key]
                always, never, auto = (found[way][0] for way in WAYS)
                gaps.append(max(always, never) - auto)
                cells = f"{always:.1f} | {never:.1f} | {auto:.1f} | {found['auto'][1]}, {found['auto'][2]}"
                print(f"| {name} | {selector} | {learner} | {cells} | {gaps[-1]:+.1f} |", flush=True)
    behind = sum(gap > 0.3 for gap in gaps)
    print(f"\nMore than .3 points behind the better: {behind} of {len(gaps)}; the most {max(gaps):.1f}.")


if __name__ == "__main__":
    main()
