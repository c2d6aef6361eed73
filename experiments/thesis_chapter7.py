"""Tables 5.2, 5.3, 7.1 and 7.2 of Barddal's thesis: learners and ensembles, rerun beside the published figures.

    python experiments/thesis_chapter7.py [--seeds 30] [--learners nb knn hat] [--streams BG1 SEA] [--out FOLDER]
    python experiments/thesis_chapter7.py --learners detectors --seeds 1 --streams AGR AN BG1 BG2 BG3 RTG SEA
    python experiments/thesis_chapter7.py --learners ensembles --seeds 1 --short
    python experiments/thesis_chapter7.py --real spam ads --data FOLDER
    python experiments/thesis_chapter7.py --tables        the tables of all that is in FOLDER
    python experiments/thesis_chapter7.py --figure        the weights over time, beside the truth
    python experiments/thesis_chapter7.py --windows       Figure 6.1: the SU of a window beside that of all rows

Streams are those of Table 4.1 as `tamis.load_stream` makes them: 100,000 rows, ten concepts, drifts of width 1000,
uniform samplers; labels flipped: BG1, BG2, BG3, SEA 10 %, AN 5 %, none in AGR and RTG (AGR's numbers are perturbed by 5
%). Trees have MOA's delta, 1e-7. Beside them, with five seeds, others that may be closer to what was run: BG1 and BG2
with 5 % flipped; the released program's samplers of bits, and its four sets of features in turn; SEA whose two features
stay while the thresholds move. Trees with classifiers in their leaves take long: for them there are the first three
concepts too.

Test-then-train in batches of 100 rows; a figure is the mean, over all batches, of the accuracy of the last 10,000 rows.
Every result goes to FOLDER at once, and what is there is not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from scipy.stats import t as student_t

from tamis import load_stream, prequential
from tamis.catalog import find_learner
from tamis.errors import DataError
from tamis.evaluate.significance import wilcoxon
from tamis.learners import ResetOnDrift
from tamis.streams import Irrelevant, Redundant, SyntheticStream
from tamis.streams.concepts import BG1, BG2, SEA
from tamis.summaries.entropy import WindowCounts

ROOT = Path(__file__).resolve().parents[1]
SEVEN = ("AGR", "AN", "BG1", "BG2", "BG3", "RTG", "SEA")
SETS = ((0, 1, 2), (3, 4, 5), (1, 3, 5), (0, 1, 3))  # of the released program


def recurring(kind: type[BG1 | BG2], seed: int) -> SyntheticStream:
    concepts = [kind(columns, n_features=6, sampler="reference") for columns in SETS]
    return synthetic(concepts, [Irrelevant(29, n_values=2), Redundant(15)], seed)


def one_pair(seed: int) -> SyntheticStream:
    copies = [Redundant(5, kind=kind) for kind in ("linear", "quadratic", "cosine")]
    return synthetic([SEA((0, 1), theta, 35) for theta in (5.0, 9.5, 9.0, 7.0)], copies, seed)


def synthetic(concepts: list[Any], appended: list[Any], seed: int) -> SyntheticStream:
    drifts = range(10_000, 100_000, 10_000)
    return SyntheticStream(
        concepts, 100_000, drifts=drifts, width=1000, label_noise=0.1, appended=appended, seed=seed
    )


STREAMS: dict[str, Callable[[int], SyntheticStream]] = {
    **{name: lambda seed, name=name: load_stream(name, seed=seed) for name in SEVEN},
    "BG1, 5 %": lambda seed: load_stream("BG1", seed=seed, label_noise=0.05),
    "BG2, 5 %": lambda seed: load_stream("BG2", seed=seed, label_noise=0.05),
    "BG1, four sets": lambda seed: recurring(BG1, seed),
    "BG2, four sets": lambda seed: recurring(BG2, seed),
    "BG3, reference": lambda seed: load_stream("BG3", seed=seed, sampler="reference"),
    "SEA, one pair": one_pair,
    **{
        f"{name}, 30,000 rows": lambda seed, name=name: load_stream(
            name, seed=seed, n_rows=30_000, n_drifts=2
        )
        for name in SEVEN
    },
}
SHORT = tuple(title for title in STREAMS if title.endswith("rows"))
MOA: dict[str, Any] = {"delta": 1e-7}  # of trees
NB, KNN, HAT = "nb-su", "knn-su", "hoeffding-adaptive-tree"
VFDT, VFDR, RESET = "hoeffding-tree", "vfdr", "reset"
ARF = "adaptive-random-forest"
KINDS = {"": None, "-entropy": "entropy_thesis", "-gain": "entropy", "-SU": "su"}
BARE: dict[str, tuple[str, dict[str, Any]]] = {
    "kNN": (KNN, {"weight": None}),
    "NB": (NB, {"weight": None, "window": None}),
    "VFDT": (VFDT, MOA),
    "VFDR": (VFDR, {}),
    "HAT": (HAT, MOA),
}
# What is run: the catalogue's key and parameters; `leaf` names another of these.
LEARNERS: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "nb": {
        **{f"NB{end}": (NB, {"weight": kind, "window": None}) for end, kind in KINDS.items()},
        **{f"NB-W{end}": (NB, {"weight": kind}) for end, kind in KINDS.items()},
        "NB-W-root": (NB, {"formulation": "roots"}),
    },
    "knn": {f"kNN{end}": (KNN, {"weight": kind}) for end, kind in KINDS.items()},
    "hat": {
        "HAT": (HAT, MOA),
        **{f"HAT-kNN{end}": (HAT, {**MOA, "leaf": f"kNN{end}"}) for end in ("-entropy", "-SU")},
        **{f"HAT-NB{end}": (HAT, {**MOA, "leaf": f"NB-W{end}"}) for end in ("-entropy", "-SU")},
    },
    "detectors": {
        **BARE,
        **{
            f"{name}-{detector}": (RESET, {"estimator": name, "detector": detector.lower()})
            for detector in ("ADWIN", "ECDD")
            for name in BARE
        },
    },
    "rules": {
        **{
            f"RR-{m}": (
                "random-rules",
                {"n_estimators": 100, "max_features": m, "grace_period": 200, "delta": 1e-7, "drift": None},
            )
            for m in (1, 2)
        },
        "RR": ("random-rules", {}),
    },
    "ensembles": {
        **{f"SRF-{m}": ("streaming-random-forest", {"max_features": m}) for m in (1, 2)},
        "HEFT": ("heft-stream", {}),
        "stacking": ("streaming-stacking", {}),
        "ARF": (ARF, {"n_estimators": 100, "max_features": "sqrt"}),
    },
}
ALL = {name: spec for family in LEARNERS.values() for name, spec in family.items()}
PAIRS = [
    ("NB-SU", "NB"), ("NB-entropy", "NB"), ("NB-W", "NB"), ("NB-W-SU", "NB-W"), ("NB-W-gain", "NB-W"),
    ("NB-W-entropy", "NB-W"), ("NB-W-root", "NB-W"), ("NB-W-SU", "NB"),
    ("kNN-SU", "kNN"), ("kNN-gain", "kNN"), ("kNN-entropy", "kNN"),
    ("HAT-kNN-entropy", "HAT"), ("HAT-kNN-SU", "HAT"), ("HAT-NB-entropy", "HAT"), ("HAT-NB-SU", "HAT"),
]  # fmt: skip
SHOWN = {
    "Table 5.2": {
        f"{name}{end}": f"{name}_{end.removeprefix('-') or 'none'}"
        for end in ("", "-ADWIN", "-ECDD")
        for name in BARE
    },
    "Table 5.3": {
        "RR-1": "RandomRules_M1", "RR-2": "RandomRules_M2", "RR": None,
        "SRF-1": "SRF_M1", "SRF-2": "SRF_M2", "HEFT": "HEFT", "stacking": "StreamingStacking", "ARF": "ARF",
    },
    "Table 7.1": {
        "kNN": "kNN", "kNN-entropy": "kNN_entropy", "kNN-gain": None, "kNN-SU": "kNN_SU",
        "NB": "NB", "NB-entropy": "NB_entropy", "NB-SU": "NB_SU",
        "NB-W": None, "NB-W-entropy": None, "NB-W-gain": None, "NB-W-SU": None, "NB-W-root": None, "HAT": "HAT",
    },
    "Table 7.2": {
        "HAT": "HAT", "HAT-kNN-entropy": "HAT_kNN_entropy", "HAT-kNN-SU": "HAT_kNN_SU",
        "HAT-NB-entropy": "HAT_NB_entropy", "HAT-NB-SU": "HAT_NB_SU",
    },
}  # fmt: skip


def with_interval(values: Any, digits: int = 1) -> str:
    """Return a mean over seeds with half the width of its 95 % confidence interval, by Student's t."""
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    if not len(known):
        return "-"
    shown = f"{known.mean():.{digits}f}"
    if len(known) < 3 or np.ptp(known) == 0:
        return shown
    half = student_t.ppf(0.975, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known))
    return f"{shown} ± {half:.{digits}f}"


def learner(name: str, categorical: list[int]) -> Any:
    key, parameters = ALL[name]
    if key == RESET:
        return ResetOnDrift(learner(parameters["estimator"], categorical), parameters["detector"])
    made = find_learner(key).load()(**{**dict(find_learner(key).parameters), **parameters})
    if isinstance(getattr(made, "leaf", None), str) and made.leaf in ALL:
        made.set_params(leaf=learner(made.leaf, categorical))
    return made.set_params(categorical=categorical) if "categorical" in made.get_params() else made


# -- runs ------------------------------------------------------------------------------------------------------


def score(stream: Any, name: str, categorical: list[int], window: int) -> dict[str, float]:
    result = prequential(
        stream, None, learner(name, categorical), window=window, stability_window=2, n_tracked=0
    )
    summary, steps = result.summary(), result.to_frame("steps", "pandas")
    return {
        "accuracy": 100 * steps["accuracy_windowed"].mean(),
        "cumulative": 100 * summary["accuracy"],
        "majority": 100 * steps["majority_accuracy_cumulative"].iloc[-1],
        "no_change": 100 * steps["no_change_accuracy_cumulative"].iloc[-1],
        "kappa_t": summary["kappa_t"],
    }


def write(file: Path, stream: str, name: str, seed: int, scores: dict[str, float], seconds: float) -> None:
    new = not file.exists()
    with open(file, "a", encoding="utf-8", newline="") as out:
        rows = csv.writer(out)
        if new:
            rows.writerow(["stream", "learner", "seed", *scores, "seconds"])
        rows.writerow([stream, name, seed, *(f"{value:.6g}" for value in scores.values()), f"{seconds:.1f}"])
    print(f"{stream:>14} {name:>16} {seed:>3} {scores['accuracy']:7.2f} {seconds:7.1f} s", flush=True)


def read(folder: Path) -> list[dict[str, str]]:
    lines = []
    for file in sorted(folder.glob("*.csv")):
        with open(file, encoding="utf-8") as text:
            lines += list(csv.DictReader(text))
    return lines


def run_streams(options: argparse.Namespace) -> None:
    done = {(line["stream"], line["learner"], int(line["seed"])) for line in read(options.out)}
    file = options.out / f"{'_'.join(options.learners)}.csv"
    for seed in range(options.seeds):
        for title in options.streams:
            if title not in SEVEN + SHORT and seed >= 5:
                continue
            stream = STREAMS[title](seed)
            categorical = list(stream.categorical)
            for name in (name for family in options.learners for name in LEARNERS[family]):
                if (title, name, seed) in done:
                    continue
                start = time.perf_counter()
                scores = score(stream, name, categorical, window=10_000)
                write(file, title, name, seed, scores, time.perf_counter() - start)


def real(data: Path, name: str, order: str, size: int = 100) -> tuple[Any, list[int]]:
    """Return a data set as batches of so many rows if it is sparse, and its columns of 0 and 1 only."""
    folder = data / {"spam": "spam_corpus", "ads": "internet_ads_part"}[name]
    with np.load(folder / "data.npz", allow_pickle=False) as arrays:
        y = arrays["y"].astype(np.int64)
        X = sp.load_npz(folder / "data.npz") if "indptr" in arrays else arrays["X"].astype(np.float64)
    if order == "shuffled":
        at = np.random.default_rng(0).permutation(len(y))
        X, y = X[at], y[at]
    if sp.issparse(X):
        categorical = list(range(X.shape[1]))
        batches = (
            (X[i : i + size].toarray().astype(np.float64), y[i : i + size]) for i in range(0, len(y), size)
        )
        return batches, categorical
    return (X, y), np.flatnonzero((np.isin(X, [0, 1]) | np.isnan(X)).all(axis=0)).tolist()


def run_real(options: argparse.Namespace) -> None:
    done = {(line["stream"], line["learner"]) for line in read(options.out)}
    file = options.out / f"real_{'_'.join(options.real)}_{'_'.join(options.learners)}.csv"
    for what in options.real:
        for order in ("spam",) if what == "spam" else ("ads", "shuffled"):
            title = {"spam": "SPAM", "ads": "IADS (998 rows)", "shuffled": "IADS, shuffled"}[order]
            for name in (name for family in options.learners for name in LEARNERS[family]):
                if (title, name) in done:
                    continue
                stream, categorical = real(options.data, what, order)
                start = time.perf_counter()
                try:
                    scores = score(stream, name, categorical, window=930 if what == "spam" else 100)
                except DataError as error:  # more pairs of features than a stack may have trees
                    print(f"{title:>14} {name:>16}: {error}", flush=True)
                    continue
                write(file, title, name, 0, scores, time.perf_counter() - start)


# -- tables ----------------------------------------------------------------------------------------------------


def published(tables: Path) -> dict[tuple[str, str], str]:
    found = {}
    for name in ("table_5_2", "table_5_3", "table_7_1", "table_7_2"):
        with open(tables / f"{name}.csv", encoding="utf-8") as text:
            for line in csv.DictReader(text):
                found.update({(line["experiment"], method): value for method, value in line.items()})
    return found


def show_tables(options: argparse.Namespace) -> None:
    scores: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    baselines = {}
    for line in read(options.out):
        scores[line["stream"], line["learner"]][int(line["seed"])] = float(line["accuracy"])
        baselines[line["stream"]] = (float(line["majority"]), float(line["no_change"]))
    streams = [
        title for title in (*STREAMS, "SPAM", "IADS (998 rows)", "IADS, shuffled") if title in baselines
    ]
    printed = published(options.data.parent / "tables" / "thesis")
    for table, columns in SHOWN.items():
        show_table(table, columns, streams, scores, printed)
    print("\nBaselines: majority class, no change\n")
    print("; ".join(f"{title} {a:.1f}, {b:.1f}" for title, (a, b) in baselines.items()))
    for titles in (SEVEN, SHORT):
        show_pairs(scores, titles)


def show_table(
    table: str,
    columns: dict[str, str | None],
    streams: list[str],
    scores: dict[tuple[str, str], dict[int, float]],
    printed: dict[tuple[str, str], str],
) -> None:
    names = [name for name in columns if any(scores[title, name] for title in streams)]
    run = [title for title in streams if sum(bool(scores[title, name]) for name in names) > 1]
    if not run:
        return
    print(f"\n{table} (published in brackets)\n")
    print(f"| | seeds | {' | '.join(names)} |\n|---|{'---|' * (len(names) + 1)}")
    for title in run:
        counts = [len(scores[title, name]) for name in names if scores[title, name]]
        cells = ["-".join(str(n) for n in sorted({min(counts), max(counts)}))]
        for name in names:
            values = list(scores[title, name].values())
            theirs = printed.get((title.split()[0].strip(","), columns[name] or ""))
            cells.append((with_interval(values) if values else "") + (f" ({theirs})" if theirs else ""))
        print(f"| {title} | {' | '.join(cells)} |")
    for titles in (SEVEN, SHORT):
        shown = [(name, seeds_of_all(scores, titles, name)) for name in names]
        if len(streams_run := [title for title in titles if title in run]) == len(titles):
            counts = sorted({len(means) for _, means in shown if means})
            cells = ["-".join(str(n) for n in dict.fromkeys((counts[0], counts[-1])))] if counts else [""]
            print(
                f"| mean of {len(streams_run)} | {' | '.join(cells + [with_interval(m) for _, m in shown])} |"
            )


def seeds_of_all(
    scores: dict[tuple[str, str], dict[int, float]], titles: tuple[str, ...], name: str
) -> list[float]:
    """Return the mean over the streams of each seed that ran on all of them."""
    seeds = set.intersection(*(set(scores[title, name]) for title in titles))
    return [float(np.mean([scores[title, name][seed] for title in titles])) for seed in sorted(seeds)]


def show_pairs(scores: dict[tuple[str, str], dict[int, float]], titles: tuple[str, ...]) -> None:
    pairs = [(a, b) for a, b in PAIRS if all(set(scores[s, a]) & set(scores[s, b]) for s in titles)]
    print("\nDifference of the means, Wilcoxon's p over the seeds; the last column over the streams\n")
    print(f"| | seeds | {' | '.join(titles)} | mean |\n|---|{'---|' * (len(titles) + 2)}")
    for first, second in pairs:
        cells, gaps, counts = [], [], []
        for title in titles:
            one, other = scores[title, first], scores[title, second]
            both = np.array([[one[seed], other[seed]] for seed in sorted(set(one) & set(other))])
            counts.append(len(both))
            gaps.append(both.mean(axis=0))
            cells.append(f"{-np.diff(gaps[-1])[0]:+.2f} (p = {wilcoxon(both).p_value:.2g})")
        gap = -np.diff(np.mean(gaps, axis=0))[0]
        cells.append(f"{gap:+.2f} (p = {wilcoxon(np.array(gaps)).p_value:.2g})")
        print(f"| {first} - {second} | {min(counts)} | {' | '.join(cells)} |")


# -- the figure ------------------------------------------------------------------------------------------------


def figure(path: Path) -> None:
    """Draw the weights of SEA and BG1 over time: the features that matter, and the others."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    _, panels = plt.subplots(2, 1, figsize=(8, 5.2), sharex=True, layout="constrained")
    for axis, name in zip(panels, ("BG1", "SEA"), strict=True):
        stream = load_stream(name, seed=1, n_rows=40_000, n_drifts=3)
        categorical = list(stream.categorical)
        model, times, weights = learner("NB-W-SU", categorical), [], []
        for X, y in stream.batches(400):
            model.partial_fit(X, y)
            times.append(model.n_seen_)
            weights.append(model.weights_)
        shown, drawn = np.array(weights), set()
        sources = np.asarray(stream.copy_of)
        for j in range(stream.n_features):
            matters = np.array([j in stream.relevant_at(min(t, stream.n_rows - 1)) for t in times])
            copies = (
                np.array([sources[j] in stream.relevant_at(min(t, stream.n_rows - 1)) for t in times])
                & ~matters
            )
            for mask, colour, label, width in (
                (~matters & ~copies, "0.75", "irrelevant now", 0.5),
                (copies, "tab:orange", "copy of one that matters", 0.7),
                (matters, "tab:blue", "matters now", 1.2),
            ):
                if mask.any():
                    line = np.where(mask, shown[:, j], np.nan)
                    axis.plot(times, line, color=colour, lw=width, label=None if label in drawn else label)
                    drawn.add(label)
        for drift in stream.drifts:
            axis.axvline(drift, color="k", ls=":", lw=1)
        axis.set(ylabel=f"{name}: weight", ylim=(0, 1.02))
    panels[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8, frameon=False)
    panels[1].set_xlabel("row (dotted: drifts)")
    plt.savefig(path, dpi=110)


def windows(path: Path) -> None:
    """Draw Figure 6.1: how far the SU of the last w rows is from that of 100,000 rows without drift."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    sizes = (10, 20, 50, 100, 150, 200, 250, 300, 500, 1000)
    picture, panels = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
    print("| | corrected | " + " | ".join(str(size) for size in sizes) + " |")
    for name in SEVEN:
        stream = load_stream(name, seed=0, n_drifts=0)
        X, y = stream.take(stream.n_rows)
        counts = {
            w: WindowCounts(X.shape[1], 2, window=w, categorical=stream.categorical) for w in (*sizes, len(y))
        }
        counts[len(y)].update(X, y)
        for axis, corrected in zip(panels, (False, True), strict=True):
            truth, gaps = counts[len(y)].symmetrical_uncertainty(corrected=corrected), []
            for size in sizes:
                found = []
                for start in range(0, 200 * size, size)[: len(y) // size]:
                    counts[size].update(X[start : start + size], y[start : start + size])
                    told = counts[size].symmetrical_uncertainty(corrected=corrected)
                    found.append(np.abs(told - truth).mean())
                gaps.append(np.mean(found))
            axis.plot(sizes, gaps, marker=".", label=name)
            print(f"| {name} | {corrected} | " + " | ".join(f"{gap:.4f}" for gap in gaps) + " |")
    for axis, title in zip(panels, ("as in the thesis", "corrected for chance"), strict=True):
        axis.set(xscale="log", yscale="log")
        axis.set_title(title, color="0.5", fontsize=10)
        axis.set_xlabel("rows in the window", color="0.5")
        axis.axhline(0.01, color="0.5", ls=":", lw=1)
        axis.tick_params(colors="0.5", which="both")
        axis.spines[:].set_color("0.5")
    panels[0].set_ylabel("mean error of the SU", color="0.5")
    panels[1].legend(fontsize=8, frameon=False, labelcolor="0.5")
    picture.savefig(path, dpi=110, transparent=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=list(STREAMS)[: -len(SHORT)])
    parser.add_argument("--short", action="store_true", help="the first three concepts of the seven streams")
    parser.add_argument("--real", nargs="+", choices=("spam", "ads"))
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=Path("thesis_chapter7"))
    parser.add_argument("--tables", action="store_true", help="run nothing")
    parser.add_argument("--figure", type=Path, nargs="?", const=ROOT / "docs" / "weights_over_time.png")
    parser.add_argument("--windows", type=Path, nargs="?", const=ROOT / "docs" / "su_of_windows.png")
    options = parser.parse_args()
    if options.windows:
        windows(options.windows)
        return
    if options.figure:
        figure(options.figure)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    if options.real:
        run_real(options)
    elif options.short:
        options.streams = SHORT
        run_streams(options)
    elif not options.tables:
        run_streams(options)
    show_tables(options)


if __name__ == "__main__":
    main()
