"""False alarms where nothing changes, and how fast a real drift is found: DISCUSS, JointScreening, ABFS in one table.

    python experiments/false_alarms.py --data FOLDER                     everything, small
    python experiments/false_alarms.py shuffled --data FOLDER [--sets mnist a8a] [--rows 8000] [--seeds 1]
    python experiments/false_alarms.py drifting [--seeds 2]
    python experiments/false_alarms.py seven [--seeds 1] [--rows 30000]
    python experiments/false_alarms.py shifts

`shuffled`: each data set of the folder (subfolders with a `data.npz` that holds X, or a CSR matrix, and y), its rows in
random order, batches of 100. An alarm is a batch after which `drift_detected_` is true, a change one after which the
set
is another one; both per 100 batches. Then the accuracy of the perceptron and of naive Bayes, with the restarts that the
selector asks for, and without any (`replay="never"`).

`drifting`: 50 uniform features, two of which decide, in turn one pair and another, 10 % of the labels flipped; a
drift every
2,500 rows. How many rows after a drift both features of the new pair are selected (batches of 5), the mean and the
worst; alarms per drift; naive Bayes.

`seven`: the streams of Table 4.1: selection accuracy, restarts, features kept, naive Bayes and the perceptron. The
table of docs/joint.md: seven --selectors joint --learners nb --stream-rows 100000 --width 1000 --seeds 2

`shifts`: nothing changes but the scale of what is irrelevant, or the share of the classes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamis import load_stream, prequential
from tamis.catalog import find, find_learner
from tamis.streams import as_stream

SELECTORS = ("discuss", "joint", "abfs")
SEVEN = ("AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA")
LEARNERS = ("perceptron", "nb")


def make(finder: Any, key: str, **parameters: Any) -> Any:
    entry = finder(key)
    return entry.load()(**{**dict(entry.parameters), **parameters})


def load(folder: Path, n_rows: int, seed: int) -> tuple[Any, Any]:
    """Return rows in random order, dense float64, and their labels."""
    with np.load(folder / "data.npz", allow_pickle=False) as file:
        y = file["y"]
        if "X" in file:
            X = file["X"]
        else:
            parts = (file["data"], file["indices"], file["indptr"])
            X = sp.csr_matrix(parts, shape=tuple(file["shape"]))
    order = np.random.default_rng(seed).permutation(len(y))[:n_rows]
    X = X[order]
    X = X.toarray() if sp.issparse(X) else X
    return np.nan_to_num(X.astype(np.float64)), y[order]


def fits(folder: Path) -> bool:
    """Whether a data set has at least ten batches, and few enough columns to be made dense."""
    with np.load(folder / "data.npz", allow_pickle=False) as file:
        shape = file["X"].shape if "X" in file else file["shape"]
        return bool(shape[0] >= 1000 and shape[1] <= 4000)


def walk(selector: Any, X: Any, y: Any, size: int = 100) -> tuple[list[int], list[int], float]:
    """Return the batches with an alarm, those with another set, and the processor time per row."""
    alarms, changes, last = [], [], None
    classes, begin = np.unique(y), time.process_time()
    for k, at in enumerate(range(0, len(y) - size + 1, size)):
        selector.partial_fit(X[at : at + size], y[at : at + size], classes=classes)
        mask = selector.get_support()
        if selector.drift_detected_:
            alarms.append(k)
        if last is not None and (mask != last).any():
            changes.append(k)
        last = mask
    return alarms, changes, (time.process_time() - begin) / len(y)


def accuracy(X: Any, y: Any, key: str, learner: str, replay: str) -> float:
    stream = as_stream((X, y))
    found = prequential(stream, make(find, key), make(find_learner, learner), batch_size=100, replay=replay)
    return float(found.summary()["accuracy"])


def shuffled(args: Any) -> None:
    print("set              rows  cols selector  alarms changes kept  rows/s   " + "".join(
        f"{learner} with, without   " for learner in args.learners))  # fmt: skip
    folders = [args.data / name for name in args.sets] if args.sets else sorted(
        path.parent for path in args.data.glob("*/data.npz") if fits(path.parent))  # fmt: skip
    for folder in folders:
        for key in args.selectors:
            alarms = changes = batches = 0
            for seed in range(args.seeds):
                X, y = load(folder, args.rows, seed)
                selector = make(find, key)
                told, changed, seconds = walk(selector, X, y)
                alarms, changes, batches = alarms + len(told), changes + len(changed), batches + len(y) // 100
            words = ""
            for learner in args.learners:
                without = accuracy(X, y, key, learner, "never")
                restarted = accuracy(X, y, key, learner, "auto") if alarms else without  # the same run
                words += f"{restarted:9.3f} {without:.3f}    "
            print(
                f"{folder.name:15} {len(y):5} {X.shape[1]:5} {key:8} {100 * alarms / batches:7.1f} "
                f"{100 * changes / batches:7.1f} {selector.get_support().sum():4} {1 / seconds:8,.0f} {words}",
                flush=True,
            )  # fmt: skip


def recurring(seed: int, n_rows: int = 20_000, every: int = 2500) -> tuple[Any, Any, Any]:
    """Return rows, labels and the two relevant columns of each row."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (n_rows, 50))
    pairs = rng.permutation(50)[:4].reshape(2, 2)
    pair = pairs[np.arange(n_rows) // every % 2]
    y = X[np.arange(n_rows)[:, None], pair].sum(axis=1) > 10
    return X, np.where(rng.random(n_rows) < 0.1, ~y, y).astype(int), pair


def drifting(args: Any) -> None:
    print(
        "\nselector   rows until found: mean, median, worst   alarms per drift   changes   nb with, without"
    )
    for key in args.selectors:
        late, alarms, changes, drifts, scores = [], 0, 0, 0, []
        for seed in range(args.seeds):
            X, y, pair = recurring(seed)
            selector, found, last = make(find, key), {}, None
            for at in range(0, len(y), 5):
                selector.partial_fit(X[at : at + 5], y[at : at + 5], classes=[0, 1])
                mask, concept = selector.get_support(), at // 2500
                alarms += selector.drift_detected_
                changes += last is not None and bool((mask != last).any())
                last = mask
                if mask.sum() < 50 and mask[pair[at]].all() and (at + 5) % 2500:
                    found.setdefault(concept, at + 5 - 2500 * concept)
            drifts += 7
            late += [found.get(concept, 2500) for concept in range(1, 8)]
            scores.append([accuracy(X, y, key, "nb", replay) for replay in ("always", "never")])
        with_, without = np.mean(scores, axis=0)
        print(
            f"{key:10} {np.mean(late):8.0f} {np.median(late):8.0f} {max(late):8} {alarms / drifts:20.2f} "
            f"{changes / drifts:12.2f} {with_:12.3f} {without:.3f}",
            flush=True,
        )


def seven(args: Any) -> None:
    print(
        "\nstream selector   SA    RSR   CUCP  replays    kept "
        + "".join(f"{name:>11}" for name in args.learners)
    )
    n_drifts = args.stream_rows // 10_000 - 1
    for name in args.streams:
        for key in args.selectors:
            rows = []
            for seed in range(args.seeds):
                stream = load_stream(
                    name, seed=seed, n_rows=args.stream_rows, n_drifts=n_drifts, width=args.width
                )
                options = {} if key == "joint" else {"categorical": stream.categorical}
                words = []
                for learner in args.learners:
                    selector = make(find, key, **options)
                    result = prequential(stream, selector, make(find_learner, learner), batch_size=50)
                    words.append(100 * result.summary()["accuracy"])
                told = result.summary()
                kept = result.to_frame()["n_selected"].mean()
                rows.append([told["selection_accuracy"], told["rsr"], told["cucp"], result.settings["replays"],
                             kept, *words])  # fmt: skip
            m = np.nanmean(rows, axis=0)
            print(f"{name:6} {key:10} {m[0]:.3f} {m[1]:.3f} {m[2]:.3f} {m[3]:7.1f} {m[4]:7.1f} "
                  + "".join(f"{value:11.2f}" for value in m[5:]), flush=True)  # fmt: skip


def shifted(kind: str, seed: int, n_rows: int = 8000) -> tuple[Any, Any]:
    """Return rows of which 0, 1 and 2 tell of the class; from the middle on, something else is otherwise."""
    rng = np.random.default_rng(seed)
    late = np.arange(n_rows) >= n_rows // 2
    y = (rng.random(n_rows) < np.where(late & (kind == "class shares"), 0.85, 0.5)).astype(int)
    X = rng.normal(size=(n_rows, 20))
    X[:, :3] += np.array([1.5, 1.0, 0.8]) * y[:, None]
    if kind == "irrelevant rescaled":
        X[late, 10:] *= 100.0
    if kind == "irrelevant moved":
        X[late, 10:] += 10.0
    if kind == "irrelevant gone":
        X[late, 10:] = 0.0
    return X, y


def shifts(args: Any) -> None:
    print("\nwhat shifts             selector   alarms  changes  relevant kept in the second half")
    for kind in ("nothing", "irrelevant rescaled", "irrelevant moved", "irrelevant gone", "class shares"):
        for key in args.selectors:
            found = []
            for seed in range(max(args.seeds, 3)):
                X, y = shifted(kind, seed)
                selector, alarms, changes, kept, last = make(find, key), 0, 0, [], None
                for at in range(0, len(y), 50):
                    selector.partial_fit(X[at : at + 50], y[at : at + 50], classes=[0, 1])
                    mask = selector.get_support()
                    if at >= len(y) // 2:
                        alarms += selector.drift_detected_
                        changes += bool((mask != last).any())
                        kept.append(mask[:3].mean())
                    last = mask
                found.append([alarms, changes, np.mean(kept)])
            m = np.mean(found, axis=0)
            print(f"{kind:23} {key:8} {m[0]:8.1f} {m[1]:8.1f} {m[2]:8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parts = {"shuffled": shuffled, "drifting": drifting, "seven": seven, "shifts": shifts}
    parser.add_argument("parts", nargs="*", default=list(parts))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--selectors", nargs="+", default=list(SELECTORS))
    parser.add_argument("--learners", nargs="*", default=list(LEARNERS))
    parser.add_argument("--streams", nargs="+", default=list(SEVEN))
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--stream-rows", type=int, default=30_000)
    parser.add_argument("--width", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in args.parts:
        if part != "shuffled" or args.data is not None:
            parts[part](args)


if __name__ == "__main__":
    main()
