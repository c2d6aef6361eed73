"""How many of the features that a screen selects by evidence are false, at every look, and what looking at will costs.

    python experiments/anytime_selection.py [--runs 1000] [--score t] [--rows 1600] [--features 30] [--out FOLDER]
    python experiments/anytime_selection.py --joint [--runs 200] [--out FOLDER]
    python experiments/anytime_selection.py --bands [--runs 1000]
    python experiments/anytime_selection.py --figure docs/anytime_fdr.png --out FOLDER

The class decides five of the features, the others are independent of it. Every 100 rows the selection is looked at, by
evidence (`n_features_to_select=None, level=0.05`) and by Benjamini-Hochberg on the p-values of the same score. Printed:
the false discovery rate at the worst look (the mean over the runs of the share of false ones, with its standard error),
the share of runs with a false selection at some look, and the share of the five that is selected at the end. The last
table compares the evidence of 2 n rows with one test of n rows. In "two drifts, found", of three times as many rows,
the screen finds the drifts itself (`restarts="drift"`), and what told since the last beginning counts as true; the
p-values have all rows.

`--joint`: the same for `JointScreening(level=)` beside its default, where two of 20 columns decide by XOR.
`--bands`: at how many of 100 looks' bands of 200 features was the truth outside at some look.

With `--out`, what was run is kept (a file for each group of runs), and a second call goes on. `--figure` draws the
share of runs in which something false was selected so far from these files.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from pathlib import Path

import numpy as np

from tamis import FisherScore, JointScreening, MutualInformation, Screening
from tamis.dependence.e_values import e_bh

LEVEL, RELEVANT, LOOK = 0.05, 5, 100
GROUP = (
    50  # runs that share their labels, and nothing else, are screened at once: features are tested one by one
)
FIRST = 6 / np.pi**2  # share of the level before the first restart
CASES = (
    "nothing relevant",
    "independent",
    "AR(.9) columns",
    "AR(.9) rows",
    "blocks of .9",
    "Cauchy",
    "lognormal, 5 % in class 1",
    "3 classes",
    "two drifts",
    "two drifts, found",
)
FOUND = "two drifts, found"
RARE = {"5 % in class 1": 0.05, "2 % in class 1": 0.02}


def noise(rng: np.random.Generator, case: str, n: int, p: int) -> np.ndarray:
    if case == "AR(.9) columns" or case == "AR(.9) rows":
        X = rng.normal(size=(p, n) if case.endswith("columns") else (n, p))
        for i in range(1, len(X)):
            X[i] = 0.9 * X[i - 1] + np.sqrt(1 - 0.81) * X[i]
        return np.ascontiguousarray(X.T) if case.endswith("columns") else X
    if case.startswith("blocks"):
        common = np.repeat(rng.normal(size=(n, p // 5)), 5, axis=1)
        return np.sqrt(0.9) * common + np.sqrt(0.1) * rng.normal(size=(n, p))
    if case == "Cauchy":
        return rng.standard_cauchy((n, p))
    return np.exp(rng.normal(size=(n, p))) if case.startswith("lognormal") else rng.normal(size=(n, p))


def stream(seed: int, case: str, n: int, p: int, effect: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of GROUP runs side by side, labels, and which features of a run are relevant in each row."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < (0.05 if case.startswith("lognormal") else 0.5)).astype(np.int64)
    if case == "3 classes":
        y = rng.integers(0, 3, n)
    X, relevant = noise(rng, case, n, p * GROUP), np.zeros((n, p), dtype=bool)
    effect *= 2.0 if case == FOUND else 1.0
    drifts = [n // LOOK // 3 * LOOK, 2 * (n // LOOK // 3) * LOOK] if case.startswith("two drifts") else []
    for i, rows in enumerate(np.split(np.arange(n), drifts)):
        if case != "nothing relevant":
            relevant[rows, RELEVANT * i : RELEVANT * (i + 1)] = True
    X += effect * np.tile(relevant, GROUP) * (y == 1)[:, None]
    return X, y, relevant


def benjamini_hochberg(p: np.ndarray, level: float) -> np.ndarray:
    enough = np.flatnonzero(np.sort(p) <= level * np.arange(1, len(p) + 1) / len(p))
    return p <= np.sort(p)[enough[-1]] if len(enough) else np.zeros(len(p), dtype=bool)


def watch(seed: int, case: str, score: str, n: int, p: int) -> np.ndarray:
    """Return the share of false features and that of the relevant ones found, (GROUP, 2 methods, n_looks, 2)."""
    X, y, relevant = stream(seed, case, n, p, 0.5)
    own = "drift" if case == FOUND else None
    screen, found = Screening(None, scores=[score], level=LEVEL, eps=0.01, restarts=own), []
    told = np.zeros(p, dtype=bool)
    for start in range(0, n, LOOK):
        if own is None and start and (relevant[start] != relevant[start - 1]).any():
            screen.restart()  # as after a drift that was detected
        rows = slice(start, start + LOOK)
        screen.partial_fit(X[rows], y[rows], classes=range(3) if case == "3 classes" else [0, 1])
        with np.errstate(divide="ignore"):
            log_e = np.log(screen.evalues_).reshape(GROUP, p)
        share = FIRST / (len(screen.restarts_) + 1) ** 2
        began = max([0, *screen.restarts_])
        told = relevant[min(began, start) : start + LOOK].any(axis=0)
        pvalues = (np.ones(p * GROUP) if screen.pvalues_ is None else screen.pvalues_).reshape(GROUP, p)
        now = relevant[start]
        looks = []
        for e, q in zip(log_e, pvalues, strict=True):
            kept = (e_bh(e, LEVEL * share), benjamini_hochberg(q, LEVEL))
            looks.append([[k[~told].sum() / max(k.sum(), 1), k[now].sum() / max(now.sum(), 1)] for k in kept])
        found.append(looks)
    return np.array(found).transpose(1, 2, 0, 3)


def kept_or_run(place: Path | None, name: str, run) -> np.ndarray:
    """Return what a file holds, or run and write it."""
    if place is None:
        return run()
    file = place / f"{name}.npy"
    if not file.exists():
        found = run()
        place.mkdir(parents=True, exist_ok=True)
        np.save(place / f".{name}.npy", found)
        os.replace(place / f".{name}.npy", file)
    return np.load(file)


def name_of(*words: object) -> str:
    return "_".join("".join(c if c.isalnum() else "-" for c in str(word)) for word in words)


def rows_of(case: str, n: int) -> int:
    return 3 * n if case == FOUND else n


def report(case: str, score: str, runs: int, n: int, p: int, place: Path | None) -> None:
    all_ = np.concatenate([
        kept_or_run(place, name_of(score, case, n, p, seed), lambda: watch(seed, case, score, rows_of(case, n), p))  # noqa: B023
        for seed in range(-(-runs // GROUP))
    ])  # fmt: skip
    show(case, all_)


def show(case: str, all_: np.ndarray) -> None:
    cells = []
    for method in range(2):
        false = all_[:, method, :, 0]
        worst = int(false.mean(axis=0).argmax())
        rate, error = false[:, worst].mean(), false[:, worst].std() / np.sqrt(len(all_))
        cells += [f"{rate:.4f} +- {error:.4f}", f"{(false > 0).any(axis=1).mean():.3f}"]
        cells += [f"{all_[:, method, -1, 1].mean():.3f}"]
    print(f"| {case} | {' | '.join(cells)} |", flush=True)


def pairs(seed: int, case: str, n: int = 1600) -> np.ndarray:
    """Return the shares as `watch` does, (1, 2, n_looks, 2), of JointScreening with a level and without."""
    rng = np.random.default_rng(seed)
    X, relevant = rng.normal(size=(n, 20)), np.zeros((n, 20), dtype=bool)
    if case == "noise, copies":
        X[:, 10:] = X[:, :10] + 0.3 * rng.normal(size=(n, 10))
    y = rng.integers(0, 2, n)
    if case.startswith("XOR"):
        for i, rows in enumerate(np.array_split(np.arange(n), 2 if case.endswith("drift") else 1)):
            a, b = 2 * i, 2 * i + 1
            relevant[rows, a] = relevant[rows, b] = True
            y[rows] = (X[rows, a] * X[rows, b] > 0) ^ (rng.random(len(rows)) < 0.1)
    found = []
    for model in (JointScreening(5, level=LEVEL), JointScreening(5, alpha=LEVEL)):
        looks = []
        for start in range(0, n, LOOK):
            model.partial_fit(X[start : start + LOOK], y[start : start + LOOK], classes=[0, 1])
            kept = np.zeros(20, dtype=bool)
            kept[model.selected_] = True
            told = relevant[max([0, *model.drifts_]) : start + LOOK].any(axis=0)
            now = relevant[start]
            looks.append([kept[~told].sum() / max(kept.sum(), 1), kept[now].sum() / max(now.sum(), 1)])
        found.append(looks)
    return np.array(found)[None]


def joint(runs: int, place: Path | None) -> None:
    three = "worst FDR | any false | found"
    print(f"| level, {runs} runs | {three} | alpha: {three} |\n|---|---|---|---|---|---|---|")
    for case in ("noise", "noise, copies", "XOR", "XOR, drift"):
        groups = [
            kept_or_run(
                place,
                name_of("joint", case, seed),
                lambda: np.concatenate([pairs(seed + i, case) for i in range(20)]),  # noqa: B023
            )
            for seed in range(0, runs, 20)
        ]
        show(case, np.concatenate(groups))


def bands(runs: int) -> None:
    """Print how many of the bands of features were wrong at some of 100 looks, at level 0.05, and their widths."""
    print(
        "| values | means apart: wrong | width at the end | information: wrong | width |\n|---|---|---|---|---|"
    )
    rare = [share + of for share in RARE for of in ("", ", lognormal", ", bits")]
    for case in ("normal", "t3", "lognormal", *rare):
        wrong, widths = [[], []], [[], []]
        for seed in range(-(-runs // 200)):
            rng = np.random.default_rng(seed)
            t, mi, out = FisherScore(1), MutualInformation(1), np.zeros((2, 200), dtype=bool)
            late = values(rng, case, 200_000)
            for look in range(100):
                y = (rng.random(100) < RARE.get(case.partition(",")[0], 0.5)).astype(int)
                X = values(rng, case, (100, 200)) + 0.3 * y[:, None]
                t.partial_fit(X, y, classes=[0, 1])
                mi.partial_fit(X, y, classes=[0, 1])
                low, high = t.effect_band(0.05)
                out[0] |= (low > 0.3) | (high < 0.3)
                if look % 10 == 9:
                    truth = information(mi, late)
                    low, high = mi.effect_band(0.05)
                    out[1] |= (low > truth) | (high < truth)
            for i, screen in enumerate((t, mi)):
                wrong[i].append(out[i])
                low, high = screen.effect_band(0.05)
                widths[i].append(high - low)
        cells = [f"{np.mean(wrong[i]):.4f} | {np.mean(widths[i]):.3f}" for i in (0, 1)]
        print(f"| {case} | {' | '.join(cells)} |", flush=True)


def values(rng: np.random.Generator, case: str, size: int | tuple[int, int]) -> np.ndarray:
    if case == "t3":
        return rng.standard_t(3, size)
    if case.endswith("bits"):
        return (rng.random(size) < 0.01).astype(float)
    return np.exp(rng.normal(size=size)) if case.endswith("lognormal") else rng.normal(size=size)


def information(screen: MutualInformation, late: np.ndarray) -> np.ndarray:
    """Return the information of the bins of a screen, by many values of class 0; those of class 1 are 0.3 larger."""
    edges, rows = screen._bins._exact.edges, screen._bins._exact.counts_since_cut()
    late = np.sort(late)
    ends = [np.searchsorted(late, edges - shift, side="right") / len(late) for shift in (0.0, 0.3)]
    q = np.stack([np.diff(e, prepend=0.0, append=1.0) for e in ends], axis=2)
    w = rows.sum(axis=1) / rows.sum(axis=(1, 2))[:, None]
    mean = (q * w[:, None]).sum(axis=2, keepdims=True)
    return (w[:, None] * q * np.log(np.where(q > 0, q, 1.0) / np.maximum(mean, 1e-300))).sum(axis=(1, 2))


def draw(path: str, place: Path, score: str, n: int, p: int) -> None:
    """Draw the share of runs in which something false was selected so far, evidence beside p-values."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharex=True, constrained_layout=True)
    for k, case in enumerate(CASES):
        files = sorted(place.glob(f"{name_of(score, case, n, p)}_*.npy"))
        if files and case != FOUND:
            false = np.concatenate([np.load(file) for file in files])[..., 0] > 0.0
            for axis, rates in zip(axes, np.maximum.accumulate(false, axis=2).mean(axis=0), strict=True):
                axis.plot(
                    LOOK * np.arange(1, len(rates) + 1), rates, label=case, color=f"C{k}", linewidth=1.4
                )
    titles = ("by evidence: level=0.05", "by p-values and Benjamini-Hochberg")
    for axis, title in zip(axes, titles, strict=True):
        axis.set(title=title, xlabel="rows", ylim=(0, 1))
    axes[0].set_ylabel("runs with something false so far")
    axes[0].legend(fontsize=7, loc="upper right")
    figure.savefig(path, dpi=150)


def power(score: str, runs: int, p: int) -> None:
    print("\n| effect | n | one test of n rows | evidence of 2 n rows |\n|---|---|---|---|")
    for effect, n in ((0.4, 500), (0.2, 2000)):
        fixed, anytime = [], []
        for seed in range(-(-runs // GROUP)):
            X, y, _ = stream(seed, "independent", 2 * n, p, effect)
            test = Screening(1, scores=[score], eps=0.01).partial_fit(X[:n], y[:n])
            fixed += [benjamini_hochberg(q, LEVEL)[:RELEVANT].mean() for q in test.pvalues_.reshape(GROUP, p)]
            screen = Screening(None, scores=[score], level=LEVEL, eps=0.01).partial_fit(X, y)
            log_e = np.log(screen.evalues_).reshape(GROUP, p)
            anytime += [e_bh(e, LEVEL * FIRST)[:RELEVANT].mean() for e in log_e]
        print(f"| {effect} | {n:,} | {np.mean(fixed):.3f} | {np.mean(anytime):.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--joint", action="store_true")
    parser.add_argument("--bands", action="store_true")
    parser.add_argument("--figure", help="where to draw what --out holds")
    parser.add_argument("--out", type=Path, help="a folder in which what was run is kept")
    parser.add_argument("--score", choices=("t", "fisher", "mi", "chi2"), default="t")
    parser.add_argument("--case", choices=CASES, action="append", help="only this one; may be repeated")
    parser.add_argument("--rows", type=int, default=1600)
    parser.add_argument("--features", type=int, default=30)
    given = parser.parse_args()
    if given.joint or given.bands or given.figure:
        if given.joint:
            joint(given.runs, given.out)
        if given.bands:
            bands(given.runs)
        if given.figure:
            draw(given.figure, given.out, given.score, given.rows, given.features)
        return
    three = "worst FDR | any false | found"
    print(
        f"| {given.score}, {given.runs} runs | {three} | p-values: {three} |\n|---|---|---|---|---|---|---|"
    )
    for case in given.case or CASES:
        report(case, given.score, given.runs, given.rows, given.features, given.out)
    power(given.score, given.runs // 5, given.features)


if __name__ == "__main__":
    main()
