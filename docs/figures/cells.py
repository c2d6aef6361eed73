"""Pictures of the methods that buy values."""

from __future__ import annotations

import numpy as np

from tamis import ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset

from .canvas import GREY, Draw, Figure, legend_beside, panels


def _ten_telling() -> tuple[np.ndarray, np.ndarray]:
    """Return rows of thirty columns, of which each of the first ten tells a little of the class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    X = rng.normal(size=(3000, 30))
    X[:, :10] += 1.2 * y[:, None]
    return X, y


def beliefs() -> Draw:
    """What ETANA believes of forty rows after each value that it buys; one of them is easy and one is hard."""
    X, y = _ten_telling()
    model = ETANA(cost=0.01, random_state=0).fit(X[:1000], y[:1000])
    walks = sorted((trace.posteriors[:, 1] for trace in model.acquire(X[1000:1040])), key=len)

    def draw() -> Figure:
        figure, axes = panels()
        for walk in walks:
            axes.plot(walk, color=GREY, lw=0.7)
        axes.plot([], color=GREY, lw=0.7, label="38 other rows")
        for walk, colour, text in ((walks[0], "C0", "easy row"), (walks[-1], "C1", "hard row")):
            axes.plot(walk, "o-", color=colour, ms=4, lw=2, label=f"{text}, {len(walk) - 1} bought")
        axes.set(xlabel="values bought", ylabel="probability of class 1", ylim=(-0.02, 1.02))
        legend_beside(axes)
        return figure

    return draw


def half_spaces() -> Draw:
    """Where F-ETANA stops: a threshold for each class and stage, and some rows that walk between them."""
    X, y = _ten_telling()
    model = FETANA(cost=0.01, calibrate=False, random_state=0).fit(X[:1000], y[:1000])
    walks = [trace.posteriors[:, 1] for trace in model.acquire(X[1000:1012])]
    rules = model.thresholds_[:, : max(map(len, walks))]
    low, high = -rules[..., 0] / (
        rules[..., 1] - rules[..., 0]
    )  # where a rule is 0, as probability of class 1

    def draw() -> Figure:
        figure, axes = panels()
        stages = np.arange(len(low))
        axes.fill_between(stages, high, 1, color="C1", alpha=0.35, lw=0, step="mid", label="stop: class 1")
        axes.plot([], color=GREY, label="buy on: twelve rows")
        axes.fill_between(stages, 0, low, color="C0", alpha=0.35, lw=0, step="mid", label="stop: class 0")
        for walk in walks:
            axes.plot(walk, ".-", color=GREY, lw=1, ms=5)
        axes.set(xlabel="values bought", ylabel="probability of class 1", ylim=(0, 1), xlim=(0, len(low) - 1))
        legend_beside(axes)
        return figure

    return draw


def how_many() -> Draw:
    """How many values IFC2F buys for a row, at two prices."""
    X, y = _ten_telling()
    found = {}
    for price in (0.02, 0.005):
        model = IFC2F(cost=price, random_state=0).fit(X[:1500], y[:1500])
        right = model.score(X[1500:], y[1500:])
        found[price] = np.bincount(model.n_features_used_), right

    def draw() -> Figure:
        figure, both = panels(2, sharex=True, sharey=True)
        for axes, colour, (price, (counts, right)) in zip(both, ("C0", "C1"), found.items(), strict=True):
            axes.bar(range(len(counts)), 100 * counts / counts.sum(), color=colour)
            axes.axvline(np.arange(len(counts)) @ counts / counts.sum(), color=GREY, ls="--")
            axes.set(title=f"{price:g} a value: {100 * right:.0f} % right", xlabel="values bought for a row")
        both[0].set_ylabel("% of the rows")
        return figure

    return draw


def questions() -> Draw:
    """Which values are bought, by what the first one says: one order for all rows, and an order for each."""
    rng = np.random.default_rng(0)
    y, which = rng.integers(0, 2, 4000), rng.integers(0, 4, 4000)
    X = rng.normal(size=(4000, 5))
    X[:, 0] = which  # is free, and says which of the four others holds the class
    X[:, 1:] += 3 * (2 * y[:, None] - 1) * (which[:, None] == range(4))
    found = {}
    prices = np.array([0, 0.02, 0.02, 0.02, 0.02])
    for model in (IFC2F(cost=prices, random_state=0), AdaptiveIFC2F(cost=prices)):
        traces = model.fit(X[:3000], y[:3000]).acquire(X[3000:])
        right = model.score(X[3000:], y[3000:])
        asked = np.array([[j in trace.features for j in range(5)] for trace in traces])
        shares = np.array([asked[which[3000:] == value].mean(axis=0) for value in range(4)])
        found[f"{type(model).__name__}: {100 * right:.0f} % right"] = shares

    def draw() -> Figure:
        figure, both = panels(2, sharey=True)
        for axes, (title, shares) in zip(both, found.items(), strict=True):
            axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
            for (value, j), share in np.ndenumerate(shares):
                colour = "white" if share > 0.5 else "black"
                axes.text(j, value, f"{100 * share:.0f}", ha="center", va="center", color=colour, fontsize=8)
            axes.set(title=title, xlabel="value bought, in % of the rows", yticks=range(4))
            axes.set_xticks(range(5), [f"x{j}" for j in range(5)])
        both[0].set_ylabel("what x0 says")
        return figure

    return draw


def beside_fixed() -> Draw:
    """How often a row is classified right, by how many values are bought: the same for each row, or its own."""
    X, y = _ten_telling()
    makes = {
        "AdaptiveIFC2F": lambda n: AdaptiveIFC2F(cost=1.0, mean_budget=n),
        "FixedSubset": lambda n: FixedSubset(cost=1.0, n_features=n),
    }
    found = {}
    for name, make in makes.items():
        points = []
        for n in (1, 2, 3, 5, 7):
            model = make(n).fit(X[:600, :12], y[:600])
            right = 100 * model.score(X[1500:, :12], y[1500:])
            points.append((model.n_features_used_.mean(), right))
        found[name] = np.transpose(points)

    def draw() -> Figure:
        figure, axes = panels()
        for (name, (values, right)), mark in zip(found.items(), "os", strict=True):
            axes.plot(values, right, f"{mark}-", label=name)
        axes.set(xlabel="values bought for a row, mean", ylabel="% of rows right")
        axes.legend(frameon=False, loc="lower right")
        return figure

    return draw
