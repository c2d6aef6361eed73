"""The pictures of the method pages: each function computes what its picture shows and returns how to draw it.

`conf.py` draws each in light and in dark, under the name of its function. Colours are those of the style (C0, C1, ...)
or a middle grey, so that both can be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from tamis import (
    DISCUSS,
    FCBF,
    HUWRS,
    OFS,
    OSFS,
    AdaptiveRandomForest,
    CancelOut,
    FisherScore,
    ForwardStepwise,
    Grafting,
    HEFTStream,
    HoeffdingTree,
    JointScreening,
    MutualInformation,
    PenalisedSelector,
    RandomSubset,
    load_stream,
    prequential,
)

Draw = Callable[[], Figure]
GREY = "0.55"


def _panels(n: int = 1, height: float = 2.6, **options: Any) -> tuple[Figure, Any]:
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    return plt.subplots(1, n, figsize=(6.6, height), layout="constrained", **options)


def blanket() -> Draw:
    """Which columns OSFS has selected after each offer; copies come before what they copy, and after it."""
    rng = np.random.default_rng(3)
    n, late = 500, (30, 45)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 60))
    X[:, list(late)] += y[:, None] * np.array([2.0, 1.6])  # tell of the class by themselves
    X[:, [4, 12, 20, 52]] = X[:, [30]] + 0.7 * X[:, [4, 12, 20, 52]]  # noisy copies of the first
    X[:, 38] = X[:, 45] + 0.7 * X[:, 38]
    selector = OSFS(alpha=0.001).start(y)
    kept = []
    for j in range(X.shape[1]):
        selector.offer(X[:, j], f"x{j}")
        kept.append([int(name[1:]) for name in selector.selected_])

    def draw() -> Figure:
        figure, axes = _panels()
        ever = sorted({j for row in kept for j in row})
        for at, j in enumerate(ever):
            colour = "C0" if j in late else "C1"
            inside = [offer for offer, row in enumerate(kept) if j in row]
            axes.plot([inside[0], inside[-1] + 1], [at, at], color=colour, lw=4, solid_capstyle="butt")
            if inside[-1] + 1 < len(kept):
                axes.plot(inside[-1] + 1, at, "x", color=colour)
        names = {4: "x4, copy of x30", 12: "x12, copy of x30", 20: "x20, copy of x30", 38: "x38, copy of x45"}
        axes.set_yticks(range(len(ever)), [names.get(j, f"x{j}") for j in ever])
        axes.set(xlabel="columns offered", xlim=(0, len(kept)))
        return figure

    return draw


def penalties() -> Draw:
    """How many of a thousand columns are accepted, of which five matter."""
    rng = np.random.default_rng(0)
    n, p = 200, 1000
    X = rng.normal(size=(n, p))
    matter = [50, 250, 450, 650, 850]
    y = X[:, matter].sum(axis=1) + rng.normal(size=n)
    counts = {}
    for criterion in ("aic", "bic", "ric"):
        trace = PenalisedSelector(criterion, n_candidates=p).fit(X, y).trace_
        counts[criterion.upper()] = np.cumsum(trace["decision"] == "accepted")

    def draw() -> Figure:
        figure, axes = _panels()
        for name, count in counts.items():
            axes.plot(count, label=f"{name}: {count[-1]}")
        axes.plot(np.searchsorted(matter, np.arange(p)), "--", color=GREY, label="relevant so far: 5")
        axes.set(xlabel="columns offered", ylabel="accepted", yscale="symlog", ylim=(0, None))
        axes.set_yticks([0, 1, 5, 20, 100], ["0", "1", "5", "20", "100"])
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        return figure

    return draw


def grafting() -> Draw:
    """The weights of the selected columns after each offer."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 200))
    y = X[:, 50] - X[:, 150] + 0.5 * rng.normal(size=300)
    X[:, 3] = X[:, 150] + 0.3 * rng.normal(size=300)
    selector = Grafting(alpha=0.001).start(y)
    weights = np.full((200, 200), np.nan)
    for j in range(200):
        selector.offer(X[:, j], f"x{j}")
        weights[j, [int(name[1:]) for name in selector.selected_]] = selector.weights_

    def draw() -> Figure:
        figure, axes = _panels()
        axes.axhline(0, color=GREY, lw=0.8)
        for at, (j, text) in enumerate({3: "x3, a copy of x150", 50: "x50", 150: "x150"}.items()):
            line = weights[:, j]
            axes.plot(line, color=f"C{at}", lw=2, drawstyle="steps-post", label=text)
        axes.set(xlabel="columns offered", ylabel="weight in the lasso", xlim=(0, 199))
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        return figure

    return draw


def steps() -> Draw:
    """What each step of forward stepwise regression gains, beside what it is charged."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 300))
    y = X[:, :6] @ np.array([3, 2, 1.5, 1, 0.8, 0.6]) + rng.normal(size=100)
    found = {name: ForwardStepwise(name).fit(X, y) for name in ("aic", "bic", "ric")}
    gains = found["aic"].trace_["statistic"][[int(name[1:]) for name in found["aic"].selected_]]

    def draw() -> Figure:
        figure, axes = _panels()
        axes.plot(range(1, 21), gains[:20], "o-", ms=3, color="C0", label="gain of the step")
        for at, (name, selector) in enumerate(found.items(), 1):
            n = len(selector.selected_)
            axes.axhline(
                selector.trace_["threshold"].max(),
                ls="--",
                color=f"C{at}",
                label=f"{name.upper()}: {n} steps",
            )
        axes.set(xlabel="step", ylabel="gain, 2 log likelihood", yscale="log", xticks=[1, 6, 10, 15, 20])
        axes.set_yticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
        axes.minorticks_off()
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        return figure

    return draw


def neighbourhoods() -> Draw:
    """Where the neighbours of a row end, by two rules, in one column and in five."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 5))
    X /= X.std(axis=0, ddof=1)
    found = {}
    for title, columns in (("in one column", 1), ("in five columns", 5)):
        d = np.sort(np.linalg.norm(X[1:, :columns] - X[0, :columns], axis=1))
        gap = np.argmax(np.append(np.diff(d) >= 1.5 * (d[-1] - d[0]) / (len(d) - 1), True)) + 1
        share = d / np.arange(1, len(d) + 1)
        dense = np.argmax(np.append(np.diff(share) > 0, True)) + 1
        found[title] = d, gap, dense

    def draw() -> Figure:
        figure, panels = _panels(2, 2.5)
        places = ("lower right", "upper left")
        for axes, place, (title, (d, gap, dense)) in zip(panels, places, found.items(), strict=True):
            at = np.arange(1, len(d) + 1)
            axes.plot(at, d, "o", ms=3, color=GREY)
            axes.axvline(gap + 0.5, color="C0", label=f"OFS-A3M: {gap}")
            axes.axvline(dense + 0.5, color="C1", ls="--", label=f"OFS-Density: {dense}")
            axes.set(title=title, xlabel="other rows, nearest first", ylabel="distance")
            axes.legend(frameon=False, fontsize=8, loc=place)
        return figure

    return draw


def copies() -> Draw:
    """Accuracy with the best features one by one, and with random ones, where each signal has four copies."""
    rng = np.random.default_rng(0)
    signals = rng.normal(size=(3000, 10))
    X = np.repeat(signals, 5, axis=1) + 0.1 * rng.normal(size=(3000, 50))
    y = (signals.sum(axis=1) + signals[:, 0] > 0).astype(int)
    sizes = (2, 5, 10, 20, 30, 50)

    def accuracy(selector: Any) -> float:
        return float(prequential((X, y), selector, baselines="none").summary()["accuracy"])

    fisher = [accuracy(FisherScore(k)) for k in sizes]
    drawn = np.array([[accuracy(RandomSubset(k, random_state=s)) for k in sizes] for s in range(5)])

    def draw() -> Figure:
        figure, axes = _panels()
        axes.plot(sizes, fisher, "o-", label="FisherScore")
        axes.plot(sizes, drawn.mean(axis=0), "s-", label="RandomSubset, mean of five")
        axes.fill_between(sizes, drawn.min(axis=0), drawn.max(axis=0), color="C1", alpha=0.25, lw=0)
        axes.set(xlabel="features kept, of 50", ylabel="prequential accuracy")
        axes.legend(frameon=False)
        return figure

    return draw


def annealing() -> Draw:
    """How many of 100,000 features are left after each pass, by `annealing`."""
    n, k, passes = 100_000, 1000, 30
    e = np.arange(passes + 1)

    def draw() -> Figure:
        figure, axes = _panels()
        for mu in (1, 10, 100):
            left = k + (n - k) * np.maximum(0, (passes - 2 * e) / (2 * e * mu + passes))
            axes.plot(e, left, "o-", ms=3, label=f"annealing={mu}")
        axes.axvline(passes / 2, color=GREY, ls="--")
        axes.annotate(
            "from here on the passes only learn", (passes / 2, 6e4), (5, 0), textcoords="offset points"
        )
        axes.set(xlabel="passes over the rows", ylabel="features left", yscale="log")
        axes.legend(frameon=False, loc="center right")
        return figure

    return draw


def pairs() -> Draw:
    """What twenty features tell alone, and what JointScreening finds, where the class is the sign of a product."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    y = X[:, 3] * X[:, 8] > 0
    alone = MutualInformation().fit(X, y).scores_ / np.log(2)
    joint = JointScreening().fit(X, y).scores_

    def draw() -> Figure:
        figure, panels = _panels(2, 2.4, sharey=True)
        for axes, title, bits in zip(
            panels,
            ("MutualInformation: each alone", "JointScreening: with a partner"),
            (alone, joint),
            strict=True,
        ):
            axes.bar(range(20), bits, color=["C1" if j in (3, 8) else GREY for j in range(20)])
            axes.set(title=title, xlabel="feature", xticks=[3, 8, 19])
        panels[0].set_ylabel("bits about the class")
        return figure

    return draw


def gates() -> Draw:
    """How far the gates of twelve features are open, over the rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 12))
    y = np.r_[X[:6000, 3] * X[:6000, 7], X[6000:, 1]] > 0
    selector, opened = CancelOut(n_features_to_select=2), []
    for start in range(0, len(X), 100):
        selector.partial_fit(X[start : start + 100], y[start : start + 100])
        opened.append(selector.scores_)

    def draw() -> Figure:
        figure, axes = _panels()
        rows = np.arange(1, len(opened) + 1) * 100
        for j, line in enumerate(np.transpose(opened)):
            known = {3: ("C0", "x3 and x7: the class is the sign of their product"), 7: ("C0", None)}
            known[1] = ("C1", "x1: the class is its sign")
            colour, label = known.get(j, (GREY, "the other nine" if j == 0 else None))
            axes.plot(rows, line, color=colour, label=label, lw=1.8 if j in known else 0.8)
        axes.axvline(6000, color=GREY, ls="--")
        axes.set(xlabel="rows", ylabel="gate, from shut to open")
        axes.legend(frameon=False, fontsize=8)
        return figure

    return draw


def agreement() -> Draw:
    """The weights of the members of HUWRS, of which some know sensors that break; no label comes after that."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 6000)
    X = rng.normal(size=(6000, 20)) + 0.6 * y[:, None]
    X[4000:, :4] = rng.normal(5, 1, size=(2000, 4))
    model, weights = HUWRS(max_features=0.1), []
    for start in range(0, 6000, 250):
        rows = slice(start, start + 250)
        if start < 4000:
            model.partial_fit(X[rows], y[rows], classes=[0, 1])
        else:
            model.reweigh(X[rows])
        weights.append([member.weight for member in model.members_])
    broken = [bool(min(member.columns) < 4) for member in model.members_]

    def draw() -> Figure:
        figure, axes = _panels()
        rows = np.arange(1, len(weights) + 1) * 250
        for line, breaks in sorted(zip(np.transpose(weights), broken, strict=True), key=lambda pair: pair[1]):
            axes.plot(rows, line, color="C1" if breaks else GREY)
        axes.plot([], color="C1", label="members that know a broken sensor")
        axes.plot([], color=GREY, label="the others")
        axes.axvline(4000, color=GREY, ls="--")
        axes.axhline(model.silent_below, color="C0", ls=":", label="silent_below: no vote")
        axes.set(xlabel="rows; the last label comes with row 4,000", ylabel="weight", ylim=(0, 1.05))
        axes.legend(frameon=False, loc="lower left", fontsize=8)
        return figure

    return draw


def one_drift() -> Draw:
    """Accuracy of three classifiers before and after a drift."""
    n, span = 8000, 500
    models = [HoeffdingTree(), AdaptiveRandomForest(), HEFTStream()]
    right = np.zeros((len(models), n))
    for at, model in enumerate(models):
        first = 0
        for X, y in load_stream("SEA", seed=1, n_rows=n, n_drifts=1, width=1, n_irrelevant=8):
            if first:
                right[at, first : first + len(y)] = model.predict(X) == y
            model.partial_fit(X, y)
            first += len(y)
    total = np.cumsum(right, axis=1)

    def draw() -> Figure:
        figure, axes = _panels()
        for model, line in zip(models, total, strict=True):
            axes.plot(
                np.arange(span, n)[::20],
                ((line[span:] - line[:-span]) / span)[::20],
                label=type(model).__name__,
            )
        axes.axvline(n // 2, color=GREY, ls="--")
        axes.set(
            xlabel="rows; other features matter from row 4,000 on",
            ylabel=f"accuracy, last {span} rows",
            ylim=(0.5, 0.95),
        )
        axes.legend(frameon=False, fontsize=8, loc="lower left")
        return figure

    return draw


def redundant() -> Draw:
    """What each of thirty features tells about the class, and which FCBF keeps."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 30))
    y = X[:, 3] + X[:, 8] > 0
    X[:, 20:25] = X[:, [3]] + 0.3 * rng.normal(size=(1000, 5))
    selector = FCBF(window=1000).fit(X, y)

    def draw() -> Figure:
        figure, axes = _panels()
        kinds = {"kept": "C0", "a copy of x3, dropped": "C1", "tells nothing": GREY}
        for j, score in enumerate(selector.scores_):
            kind = (
                "kept"
                if j in selector.selected_
                else "a copy of x3, dropped"
                if 20 <= j < 25 or j == 3
                else "tells nothing"
            )
            axes.bar(j, score, color=kinds[kind])
        for kind, colour in kinds.items():
            axes.bar(0, 0, color=colour, label=kind)
        axes.set(xlabel="feature", ylabel="symmetrical uncertainty")
        axes.legend(frameon=False, loc="upper center")
        return figure

    return draw


def followed() -> Draw:
    """How many of the two relevant features are kept, before and after a drift."""
    n, runs = 3000, 10
    makes = {
        "DISCUSS": lambda: DISCUSS(),
        "JointScreening": JointScreening,
        "MutualInformation(2), forgets nothing": lambda: MutualInformation(2),
    }
    found = {name: np.zeros(2 * n // 50) for name in makes}
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2 * n, 20))
        y = np.r_[X[:n, 2] > X[:n, 5], X[n:, 0] > X[n:, 7]]
        for name, make in makes.items():
            selector = make()
            for at in range(len(found[name])):
                rows = slice(50 * at, 50 * at + 50)
                selector.partial_fit(X[rows], y[rows], classes=[False, True])
                mask = selector.get_support()
                found[name][at] += mask[[2, 5] if at * 50 < n else [0, 7]].sum() / max(mask.sum(), 2) / runs

    def draw() -> Figure:
        figure, axes = _panels()
        for name, share in found.items():
            axes.plot(np.arange(1, len(share) + 1) * 50, share, label=name)
        axes.axvline(n, color=GREY, ls="--")
        axes.set(
            xlabel="rows; other features matter from row 3,000 on",
            ylabel="relevant, of those kept",
            ylim=(0, 1.05),
        )
        axes.legend(frameon=False, fontsize=8, loc="center", bbox_to_anchor=(0.72, 0.5))
        return figure

    return draw


def truncation() -> Draw:
    """In how many of forty streams OFS has all three relevant features in the end, by how many it keeps."""
    sizes, seeds = range(3, 13), range(40)
    whole = np.zeros(len(sizes))
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2000, 200))
        y = X[:, 17] - X[:, 50] + X[:, 123] > 0
        for at, size in enumerate(sizes):
            whole[at] += OFS(size).partial_fit(X, y).get_support()[[17, 50, 123]].all()

    def draw() -> Figure:
        figure, axes = _panels()
        axes.bar(sizes, 100 * whole / len(seeds))
        axes.set(
            xlabel="n_features_to_select; three features matter, of 200",
            ylabel="% that keep all three",
            xticks=sizes,
        )
        return figure

    return draw


FIGURES = (
    blanket,
    penalties,
    steps,
    grafting,
    neighbourhoods,
    copies,
    annealing,
    pairs,
    gates,
    agreement,
    one_drift,
    redundant,
    followed,
    truncation,
)
