"""Does a selection pay: every row selector beside a random subset of the same size, and beside all features.

    python experiments/selection_pays.py [--data FOLDER] [--out FOLDER] [--sets NAMES] [--selectors NAMES]
        [--shares 0.1,0.05] [--rows 5000] [--seconds 120] [--seed 0]

Honest order: of each batch, columns that were not selected before it are set to 0 (naive Bayes leaves them out), each
learner predicts and is scored, then learners and selector learn from it. Batches of 100 rows (50 and 25 of shorter
sets), features scaled to [0, 1], accuracy as the mean over all batches but the first, stability (Nogueira's) over ten
sets that follow one another, milliseconds of CPU per batch of the selector alone. A selector that finds a drift has its
learners restarted from the last rows, as in `tamis.prequential`. "frozen" selects once, after 1,000 rows, by an
L1-regularised model. Random subsets are drawn ten times; the interval is 2.26 standard errors (95 %).

Each cell is kept in --out as it is done, and not done again; a selector that has used --seconds is broken off and is
the worst. Settings of the selectors were chosen on every second set (TUNED); the others are reported apart.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from tamis import (
    ABFS,
    DISCUSS,
    EFS,
    FCBF,
    FIRES,
    FSDS,
    OFS,
    CancelOut,
    ChiSquare,
    FisherScore,
    ForwardPartialCorrelation,
    GiniIndex,
    JointScreening,
    LeverageScores,
    MonteCarloFIRES,
    MutualInformation,
    SparseFSA,
    TScore,
    load_stream,
)
from tamis.base import n_to_select
from tamis.evaluate.metrics.stability import SlidingStability
from tamis.evaluate.prequential.frozen import lasso_order
from tamis.evaluate.significance import friedman, nemenyi
from tamis.learners.traits import masking_strategy, restrict_columns
from tamis.options import RunOptions
from tamis.replay import Replay
from tamis.report.charts.ranks import plot_ranks
from tamis.streams import load_dataset

ROOT = Path(__file__).resolve().parents[1]
IN_TIME = ("usenet", "usenet2", "electricity", "spam_corpus")  # kept in their order; the others are shuffled
REAL = (
    "spambase", "usenet", "usenet2", "madelon", "dota2", "mnist", "a8a", "electricity", "magic04", "german", "splice",
    "pcmac", "spam_corpus", "isolet", "coil20", "news20", "internet_ads_part",
)  # fmt: skip
DRIFTING = ("AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA", "SEA50")
SETS = (*REAL, *DRIFTING)
TUNED = SETS[::2]
SELECTORS: dict[str, Callable[[float], Any]] = {
    "forward": ForwardPartialCorrelation,
    "forward-decides": lambda _share: ForwardPartialCorrelation(None),
    "fires": FIRES,
    "fires-rate-1": lambda share: FIRES(share, learning_rate=1.0),
    "fires-rate-10": lambda share: FIRES(share, learning_rate=10.0),
    "fires-paper": FIRES.paper,
    "fires-logit": lambda share: FIRES(share, model="logit"),
    "fires-network": MonteCarloFIRES,
    "fires-tree": lambda share: MonteCarloFIRES(share, model="tree"),
    "ofs": OFS,
    "cancel-out": CancelOut,
    "efs": EFS,
    "fsds": FSDS,
    "leverage": LeverageScores,
    "leverage-scores": lambda share: LeverageScores(share, redundancy=None),
    "fcbf": lambda _share: FCBF(),
    "fcbf-paper": lambda _share: FCBF.paper(),
    "efs-range": lambda share: EFS(share, normalize="range"),
    "t-score": lambda share: TScore(share, half_life=2000),
    "fisher": lambda share: FisherScore(share, half_life=2000),
    "mi": lambda share: MutualInformation(share, half_life=2000),
    "chi2": lambda share: ChiSquare(share, half_life=2000),
    "gini": lambda share: GiniIndex(share, half_life=2000),
    "discuss": DISCUSS,
    "joint": lambda _share: JointScreening(),
    "abfs": lambda _share: ABFS(),
    "sparse-fsa": lambda share: Refitted(SparseFSA(share)),
    "frozen": lambda share: Frozen(share),
    "all": lambda _share: None,
}
LEARNERS: dict[str, Callable[[bool], Any]] = {
    "perceptron": lambda _sparse: Perceptron(random_state=0),
    "logistic": lambda _sparse: SGDClassifier(loss="log_loss", random_state=0),
    "naive-bayes": lambda sparse: MultinomialNB() if sparse else GaussianNB(),
}
DRAWS, FROZEN_AFTER = 10, RunOptions.frozen_after


class Refitted:
    """A method that learns from many rows at once: again after every ten batches, from the last 2000 rows."""

    def __init__(self, model: Any) -> None:
        self.model, self.rows, self.n_batches = model, Replay(None, 2000), 0

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> None:
        self.rows.add(X, y)
        if self.n_batches % 10 == 0 or not hasattr(self.model, "classes_"):
            known, labels = self.rows.rows()
            if len(np.unique(labels)) > 1:
                self.model.fit(known, labels)
        self.n_batches += 1

    def get_support(self) -> np.ndarray:
        if not hasattr(self.model, "classes_"):  # one class so far
            return np.ones(self.rows.rows()[0].shape[1], bool)
        return self.model.get_support()


class Frozen:
    """Columns selected once, by an L1-regularised model of the first rows; every column until then."""

    def __init__(self, share: float) -> None:
        self.share, self.rows, self.mask = share, list[tuple[Any, np.ndarray]](), None

    def partial_fit(self, X: Any, y: np.ndarray, classes: Any = None) -> None:
        if self.rows is None:
            return
        self.rows.append((X, y))
        self.mask = np.ones(X.shape[1], bool)
        labels = np.concatenate([y for _, y in self.rows])
        if len(labels) >= FROZEN_AFTER and len(np.unique(labels)) > 1:
            parts = [X for X, _ in self.rows]
            rows = sp.vstack(parts, format="csr") if sp.issparse(X) else np.vstack(parts)
            self.mask[:] = False
            self.mask[lasso_order(rows, labels)[: n_to_select(self.share, X.shape[1])]] = True
            self.rows = None

    def get_support(self) -> np.ndarray:
        return self.mask


class Random:
    """A fixed random subset."""

    def __init__(self, share: float, seed: int) -> None:
        self.share, self.seed = share, seed

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> None:
        self.mask = np.zeros(X.shape[1], bool)
        kept = np.random.default_rng(self.seed).permutation(X.shape[1])[: n_to_select(self.share, X.shape[1])]
        self.mask[kept] = True

    def get_support(self) -> np.ndarray:
        return self.mask


# -- data ----------------------------------------------------------------------------------------------------


def scaled(X: Any) -> Any:
    if sp.issparse(X):
        top = np.abs(X).max(axis=0).toarray().ravel().astype(float)
        return sp.csr_matrix(X.multiply(1.0 / np.where(top > 0, top, 1.0)))
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return (X - low) / np.where(width > 0, width, 1.0)


def rows_of(name: str, data: Path, n_rows: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    if name in DRIFTING:
        if name == "SEA50":
            stream = load_stream("SEA", seed=seed + 1, n_rows=2 * n_rows, n_drifts=3, n_irrelevant=48)
        else:
            stream = load_stream(name, seed=seed, n_rows=2 * n_rows, n_drifts=3)
        X, y = stream.take(2 * n_rows)
        return scaled(np.asarray(X, dtype=float)), np.unique(y, return_inverse=True)[1]
    source = load_dataset(name, data_home=data)
    X, y = source.take(source.n_rows)
    codes = np.unique(np.asarray(y), return_inverse=True)[1]
    if name == "mnist":
        codes = (np.asarray(y).astype(str) == "3").astype(int)
    order = np.arange(len(codes)) if name in IN_TIME else np.random.default_rng(seed).permutation(len(codes))
    X, codes = X[order[:n_rows]], codes[order[:n_rows]]
    dense = X if not sp.issparse(X) else X.toarray() if X.shape[1] < 4000 else None
    return scaled(X.astype(float) if dense is None else np.asarray(dense, dtype=float)), codes


def batches(X: Any, y: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    size = 100 if len(y) > 1600 else 50 if len(np.unique(y)) > 10 else 25
    for start in range(0, len(y) - size + 1, size):
        yield X[start : start + size], y[start : start + size]


# -- one cell ------------------------------------------------------------------------------------------------


def masked(X: Any, mask: np.ndarray) -> Any:
    return sp.csr_matrix(X.multiply(mask)) if sp.issparse(X) else np.where(mask, X, 0.0)


def learned(learner: Any, X: Any, mask: np.ndarray) -> Any:
    """Return what a learner is given to learn: naive Bayes all columns, the others zeros for those left out."""
    return X if masking_strategy(learner) == "whole" else masked(X, mask)


def predicted(learner: Any, X: Any, mask: np.ndarray) -> np.ndarray:
    """Return what a learner predicts from the selected columns: naive Bayes without the others."""
    if masking_strategy(learner) != "whole":
        return learner.predict(masked(X, mask))
    support = np.flatnonzero(mask)
    return restrict_columns(learner, support).predict(X[:, support])


def cell(X: Any, y: np.ndarray, selector: Any, seconds: float) -> dict[str, Any]:
    """Run a selector and all learners over a stream; return accuracies, stability and milliseconds."""
    classes, n_features = np.unique(y), X.shape[1]
    learners = {name: make(sp.issparse(X)) for name, make in LEARNERS.items()}
    scores: dict[str, list[float]] = {name: [] for name in learners}
    mask, masks, spent, replay = np.ones(n_features, bool), [], 0.0, Replay(selector)
    for i, (rows, labels) in enumerate(batches(X, y)):
        if i:
            masks.append(mask)
            for name, learner in learners.items():
                scores[name].append(float((predicted(learner, rows, mask) == labels).mean()))
        for learner in learners.values():
            learner.partial_fit(learned(learner, rows, mask), labels, classes=classes)
        if selector is None:
            continue
        start = time.process_time()
        selector.partial_fit(rows, labels, classes=classes)
        mask = np.array(selector.get_support())
        spent += time.process_time() - start
        replay.add(rows, labels)
        if replay.is_due(changed=False) and (known := replay.rows()) is not None:
            for name in learners:
                learners[name] = clone(learners[name]).partial_fit(
                    learned(learners[name], known[0], mask), known[1], classes=classes
                )
        if spent > seconds:
            return {"broken_off": True}
    sets, sliding, stability = np.array(masks), SlidingStability(n_features), []
    for kept in sets:
        sliding.add(np.flatnonzero(kept))
        stability.append(sliding.value)
    return {
        **{name: float(np.mean(values)) for name, values in scores.items()},
        "stability": float(np.nanmean(stability)) if selector is not None else 1.0,
        "ms": 1e3 * spent / max(len(sets), 1),
        "kept": float(sets.sum(axis=1).mean()),
    }


def fill(options: argparse.Namespace) -> None:
    """Do the cells that are not done yet."""
    for name in options.sets:
        todo = []
        for share in options.shares:
            names = [*options.selectors, *(f"random-{i}" for i in range(DRAWS))]
            todo += [(share, n) for n in names if not place(options.out, name, n, share).exists()]
        if not todo:
            continue
        X, y = rows_of(name, options.data, options.rows, options.seed)
        for share, who in todo:
            drawn = who.startswith("random-")
            selector = Random(share, int(who[7:])) if drawn else SELECTORS[who](share)
            try:
                found = cell(X, y, selector, options.seconds)
            except (ValueError, MemoryError) as error:
                found = {"broken_off": True, "error": str(error)}
            path = place(options.out, name, who, share)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".part").write_text(json.dumps(found), encoding="utf-8")
            path.with_suffix(".part").replace(path)
            print(
                name,
                share,
                who,
                {k: round(v, 3) if isinstance(v, float) else v for k, v in found.items()},
                flush=True,
            )


def place(out: Path, name: str, selector: str, share: float) -> Path:
    return out / f"{name}_{selector}_{share:g}.json"


# -- tables --------------------------------------------------------------------------------------------------


def table(
    options: argparse.Namespace, share: float, sets: tuple[str, ...], learner: str, half_of: str = ""
) -> None:
    """Print accuracies with the interval of random subsets, mean ranks, and who loses to random."""
    done = [n for n in sets if all(place(options.out, n, s, share).exists() for s in options.selectors)]
    done = [n for n in done if place(options.out, n, f"random-{DRAWS - 1}", share).exists()]
    read = lambda n, s: json.loads(place(options.out, n, s, share).read_text(encoding="utf-8"))  # noqa: E731
    done = [n for n in done if learner in read(n, f"random-{DRAWS - 1}")]
    if len(done) < 2:
        return
    scores, losses = np.zeros((len(done), len(options.selectors) + 1)), dict.fromkeys(options.selectors, 0)
    print(
        f"\n## {learner}, {share:.0%} of the features\n\n| set | {' | '.join(options.selectors)} | random |"
    )
    print("|---" * (len(options.selectors) + 2) + "|")
    for i, name in enumerate(done):
        draws = [read(name, f"random-{d}")[learner] for d in range(DRAWS)]
        half = 2.262 * np.std(draws, ddof=1) / np.sqrt(DRAWS)
        row = [read(name, s).get(learner, np.nan) for s in options.selectors]
        for s, value in zip(options.selectors, row, strict=True):
            losses[s] += not value >= np.mean(draws) - half
        scores[i] = [*np.nan_to_num(row), np.mean(draws)]
        cells = " | ".join("-" if np.isnan(v) else f"{v:.3f}" for v in row)
        print(f"| {name} | {cells} | {np.mean(draws):.3f} +- {half:.3f} |")
    kept = [[read(n, s) for n in done] for s in options.selectors]
    mean = lambda cells, what: np.mean([c[what] for c in cells if what in c])  # noqa: E731
    print("| **mean** | " + " | ".join(f"{v:.3f}" for v in scores.mean(axis=0)) + " |")
    for what in ("stability", "ms"):
        print(f"| {what} | " + " | ".join(f"{mean(cells, what):.3f}" for cells in kept) + " | |")
    print("| sets lost to random | " + " | ".join(str(losses[s]) for s in options.selectors) + " | |")
    if len(done) > 4:
        compared = nemenyi(scores, [*options.selectors, "random"])
        print(f"\n{friedman(scores, [*options.selectors, 'random'])}\nmean ranks (1 is best):")
        print(
            ", ".join(
                f"{name} {rank:.2f}"
                for name, rank in sorted(compared.ranks.items(), key=lambda pair: pair[1])
            )
        )
        print(f"critical difference {compared.critical_difference:.2f}")
        plot_ranks(compared).savefig(options.out / f"ranks_{learner}_{share:g}{half_of}.png", dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of data sets"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("selection_pays"), help="folder of the cells and pictures"
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--selectors", default=",".join(SELECTORS))
    parser.add_argument("--shares", default="0.1,0.05")
    parser.add_argument("--rows", type=int, default=5000, help="at most so many rows of a set")
    parser.add_argument("--seconds", type=float, default=120.0, help="CPU that a selector may use for a cell")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the order of the rows and of the drifting streams"
    )
    options = parser.parse_args()
    options.out = options.out / f"seed-{options.seed}" if options.seed else options.out
    options.sets, options.selectors = tuple(options.sets.split(",")), options.selectors.split(",")
    options.shares = [float(share) for share in options.shares.split(",")]
    fill(options)
    for share in options.shares:
        for learner in LEARNERS:
            table(options, share, options.sets, learner)
        for half, sets in {"tuned on": TUNED, "held out": tuple(s for s in SETS if s not in TUNED)}.items():
            print(f"\n# {half}")
            table(options, share, tuple(s for s in sets if s in options.sets), "perceptron", f" {half}")


if __name__ == "__main__":
    main()
