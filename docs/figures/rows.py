"""Pictures of online feature selection."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import pyplot as plt

from tamis import (
    DISCUSS,
    EFS,
    FCBF,
    FSDS,
    OFS,
    Auto,
    CancelOut,
    FisherScore,
    ForwardPartialCorrelation,
    JointScreening,
    MutualInformation,
    RandomSubset,
    load_stream,
    prequential,
)

from .canvas import GREY, Draw, Figure, legend_beside, panels


def first_page() -> Draw:
    """The run of the first page: recent accuracy, and the signals of the selected sensors."""
    from tamis.cli.demo import sensors as stream
    from tamis.cli.demo import signal_of_sensors

    result = prequential(stream(), ForwardPartialCorrelation(9), baselines="both", batch_size=100)
    steps, signal, chosen = result.frames["steps"], signal_of_sensors(), result.selection_map()
    seen = np.asarray(steps["n_seen"], np.float64) / 1000
    lines = {
        "9 of 300, selected online": "accuracy_windowed", "all 300 sensors": "all_accuracy_windowed",
        "9 of 300, selected once": "frozen_accuracy_windowed", "9 of 300, at random": "random_accuracy_windowed",
    }  # fmt: skip
    causes = {f"signal {k}": chosen[:, signal == k].sum(axis=1) for k in (3, 8, 11)}

    def draw() -> Figure:
        plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
        figure, (above, below) = plt.subplots(2, 1, figsize=(6.2, 5.6), sharex=True, layout="constrained")
        for (label, column), style in zip(lines.items(), ("-", "--", "-.", ":"), strict=True):
            above.plot(seen, steps[column], style, label=label, lw=2)
        above.set(ylabel="accuracy, last 1,000 rows", ylim=(0.4, 1))
        above.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
        below.stackplot(seen, causes.values(), labels=causes, alpha=0.8)
        below.set(xlabel="thousand rows", ylabel="sensors selected")
        below.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
        for axes in (above, below):
            axes.axvline(6, color=GREY, lw=1)
        return figure

    return draw


def copies() -> Draw:
    """Accuracy with the best single features and with random ones, where each signal has four copies."""
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
        figure, axes = panels()
        axes.plot(sizes, fisher, "o-", label="FisherScore")
        axes.plot(sizes, drawn.mean(axis=0), "s-", label="RandomSubset, mean of five")
        axes.fill_between(sizes, drawn.min(axis=0), drawn.max(axis=0), color="C1", alpha=0.25, lw=0)
        axes.set(xlabel="features selected, of 50", ylabel="prequential accuracy")
        axes.legend(frameon=False)
        return figure

    return draw


def annealing() -> Draw:
    """Remaining features of 100,000 after each pass, by `annealing`."""
    n, k, passes = 100_000, 1000, 30
    e = np.arange(passes + 1)

    def draw() -> Figure:
        figure, axes = panels()
        for mu in (1, 10, 100):
            left = k + (n - k) * np.maximum(0, (passes - 2 * e) / (2 * e * mu + passes))
            axes.plot(e, left, "o-", ms=3, label=f"annealing={mu}")
        axes.axvline(passes / 2, color=GREY, ls="--")
        axes.annotate(
            "from here on the passes only learn", (passes / 2, 6e4), (5, 0), textcoords="offset points"
        )
        axes.set(xlabel="passes over the rows", ylabel="remaining features", yscale="log")
        axes.legend(frameon=False, loc="center right")
        return figure

    return draw


def pairs() -> Draw:
    """Information of twenty features alone and with a partner, where the class is the sign of a product."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    y = X[:, 3] * X[:, 8] > 0
    alone = MutualInformation().fit(X, y).scores_ / np.log(2)
    joint = JointScreening().fit(X, y).scores_

    def draw() -> Figure:
        figure, both = panels(2, 2.4, sharey=True)
        for axes, title, bits in zip(
            both,
            ("MutualInformation: each alone", "JointScreening: with a partner"),
            (alone, joint),
            strict=True,
        ):
            axes.bar(range(20), bits, color=["C1" if j in (3, 8) else GREY for j in range(20)])
            axes.set(title=title, xlabel="feature", xticks=[3, 8, 19])
        both[0].set_ylabel("bits about the class")
        return figure

    return draw


def gates() -> Draw:
    """Openness of the gates of twelve features over the rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 12))
    y = np.r_[X[:6000, 3] * X[:6000, 7], X[6000:, 1]] > 0
    selector, opened = CancelOut(n_features_to_select=2), []
    for start in range(0, len(X), 100):
        selector.partial_fit(X[start : start + 100], y[start : start + 100])
        opened.append(selector.scores_)

    def draw() -> Figure:
        figure, axes = panels()
        rows = np.arange(1, len(opened) + 1) * 100
        for j, line in enumerate(np.transpose(opened)):
            known = {3: ("C0", "x3 and x7: the class is the sign of their product"), 7: ("C0", None)}
            known[1] = ("C1", "x1: the class is its sign")
            colour, label = known.get(j, (GREY, "the other nine" if j == 0 else None))
            axes.plot(rows, line, color=colour, label=label, lw=1.8 if j in known else 0.8)
        axes.axvline(6000, color=GREY, ls="--")
        axes.set(xlabel="rows", ylabel="openness of the gate")
        axes.legend(frameon=False, fontsize=8)
        return figure

    return draw


def redundant() -> Draw:
    """Symmetrical uncertainty of thirty features, and the selection of FCBF."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 30))
    y = X[:, 3] + X[:, 8] > 0
    X[:, 20:25] = X[:, [3]] + 0.3 * rng.normal(size=(1000, 5))
    selector = FCBF(window=1000).fit(X, y)

    def draw() -> Figure:
        figure, axes = panels()
        kinds = {"kept": "C0", "a copy of x3, dropped": "C1", "irrelevant": GREY}
        for j, score in enumerate(selector.scores_):
            kind = (
                "kept"
                if j in selector.selected_
                else "a copy of x3, dropped"
                if 20 <= j < 25 or j == 3
                else "irrelevant"
            )
            axes.bar(j, score, color=kinds[kind])
        for kind, colour in kinds.items():
            axes.bar(0, 0, color=colour, label=kind)
        axes.set(xlabel="feature", ylabel="symmetrical uncertainty")
        axes.legend(frameon=False, loc="upper center")
        return figure

    return draw


def followed() -> Draw:
    """Share of relevant features among those selected, before and after a drift."""
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
        figure, axes = panels()
        for name, share in found.items():
            axes.plot(np.arange(1, len(share) + 1) * 50, share, label=name)
        axes.axvline(n, color=GREY, ls="--")
        axes.set(
            xlabel="rows; other features are relevant from row 3,000 on",
            ylabel="share of relevant features",
            ylim=(0, 1.05),
        )
        axes.legend(frameon=False, fontsize=8, loc="center", bbox_to_anchor=(0.72, 0.5))
        return figure

    return draw


def truncation() -> Draw:
    """Share of forty streams in which OFS selects all three relevant features, by the size of the selection."""
    sizes, seeds = range(3, 13), range(40)
    whole = np.zeros(len(sizes))
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2000, 200))
        y = X[:, 17] - X[:, 50] + X[:, 123] > 0
        for at, size in enumerate(sizes):
            whole[at] += OFS(size).partial_fit(X, y).get_support()[[17, 50, 123]].all()

    def draw() -> Figure:
        figure, axes = panels()
        axes.bar(sizes, 100 * whole / len(seeds))
        axes.set(
            xlabel="n_features_to_select; three of 200 features are relevant",
            ylabel="% that select all three",
            xticks=sizes,
        )
        return figure

    return draw


def candidates() -> Draw:
    """Errors of the candidates of Auto around a drift, and the selected candidate."""
    auto = Auto(learner="naive-bayes", random_state=0)
    for X, y in load_stream("SEA", seed=1, n_rows=12_000, n_drifts=1, width=1, n_irrelevant=18):
        auto.partial_fit(X, y)
    race = auto.comparison_
    rows, kernel = race["n_seen"][8:], np.ones(9) / 9
    errors = 100 * np.array([np.convolve(line, kernel, "valid") for line in race["errors"].T])
    followed = race["followed"][8:]

    def draw() -> Figure:
        figure, axes = panels(1, 2.8)
        for line in errors:
            axes.plot(rows, line, color=GREY, lw=0.6)
        axes.plot([], color=GREY, lw=0.6, label=f"{len(errors)} candidates")
        axes.plot(rows, errors[0], color="C1", label="all features")
        axes.plot(rows, errors[followed, np.arange(len(rows))], color="C0", lw=2, label="selected candidate")
        axes.axvline(6000, color=GREY, ls="--")
        axes.set(
            xlabel="rows; other features are relevant from row 6,000 on",
            ylabel="error in %, last 900 rows",
            ylim=(0, None),
        )
        legend_beside(axes)
        return figure

    return draw


def gains() -> Draw:
    """Gain of each feature, alone and given the selected features."""
    rng = np.random.default_rng(0)
    signals = rng.normal(size=(3000, 3))
    X = rng.normal(size=(3000, 20))
    X[:, :12] = signals[:, [0] * 6 + [1] * 4 + [2] * 2] + 0.1 * X[:, :12]
    selector = ForwardPartialCorrelation(3).fit(X, signals @ [3, 2, 1.5] > 0)
    table = selector.table_

    def draw() -> Figure:
        figure, axes = panels()
        places = np.arange(20)
        axes.bar(places, 100 * table["alone"], color=GREY, label="alone")
        axes.bar(places, 100 * table["added"], width=0.4, color="C1", label="given the selected features")
        for j in selector.get_support(indices=True):
            axes.bar(j, 100 * table["added"][j], width=0.4, color="C0")
        axes.bar(0, 0, color="C0", label="gain at its selection")
        axes.set(
            xlabel="feature: six copies, four copies, two copies, noise",
            ylabel="% of the variation of the class",
        )
        axes.set_xticks([2.5, 7.5, 10.5, 15.5], ["0 to 5", "6 to 9", "10, 11", "12 to 19"])
        axes.legend(frameon=False)
        return figure

    return draw


def winnow() -> Draw:
    """Scores of EFS for the relevant words, before and after a drift, beside the best of all other words."""
    rng = np.random.default_rng(0)
    selector, spans, scores = EFS(n_features_to_select=3), ([17, 50, 123], [200, 300, 400]), []
    for at in range(120):
        X = (rng.random((100, 1000)) < 0.1).astype(float)
        y = X[:, spans[at >= 60]].sum(axis=1) > 0
        selector.partial_fit(X, y, classes=[False, True])
        scores.append(selector.scores_)
    lines = np.array(scores)

    def draw() -> Figure:
        figure, axes = panels()
        rows = np.arange(1, len(lines) + 1) * 100
        others = np.delete(lines, spans[0] + spans[1], axis=1).max(axis=1)
        for colour, words, text in (("C0", spans[0], "relevant first"), ("C1", spans[1], "relevant later")):
            axes.plot(rows, lines[:, words], color=colour)
            axes.plot([], color=colour, label=f"three words {text}")
        axes.plot(rows, others, color=GREY, label="best of 994 others")
        axes.axvline(6000, color=GREY, ls="--")
        axes.set(xlabel="rows", ylabel="score", yscale="log")
        legend_beside(axes)
        return figure

    return draw


def directions() -> Draw:
    """Selected features of six correlated ones by FSDS, before and after a change of the six."""
    rng = np.random.default_rng(0)
    makes = {"half_life=200": {"half_life": 200}, "forgets nothing": {}}
    found: dict[str, list[int]] = {name: [] for name in makes}
    selectors = {name: FSDS(6, task="regression", **options) for name, options in makes.items()}
    for at in range(80):
        X = rng.normal(size=(100, 40))
        together = np.array([0, 1, 2, 20, 21, 22]) + 10 * (at >= 40)  # two hidden causes move three each
        X[:, together] += 3 * np.repeat(rng.normal(size=(100, 2)), 3, axis=1)
        for name, selector in selectors.items():
            selector.partial_fit(X, np.zeros(100))
            found[name].append(int(selector.get_support()[together].sum()))

    def draw() -> Figure:
        figure, axes = panels()
        for name, line in found.items():
            axes.plot(np.arange(1, 81) * 100, line, label=name, drawstyle="steps-post")
        axes.axvline(4000, color=GREY, ls="--")
        axes.set(
            xlabel="rows; other features are correlated from row 4,000 on",
            ylabel="selected, of six",
            ylim=(0, 6.3),
        )
        legend_beside(axes)
        return figure

    return draw
