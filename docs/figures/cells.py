"""Pictures of active feature acquisition."""

from __future__ import annotations

import numpy as np

from tamis import ETANA, FETANA, IFC2F, AdaptiveIFC2F, FixedSubset

from .canvas import GREY, Draw, Figure, legend_beside, panels


def _weakly_relevant() -> tuple[np.ndarray, np.ndarray]:
    """Return rows of thirty features, the first ten of them weakly relevant."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    X = rng.normal(size=(3000, 30))
    X[:, :10] += 1.2 * y[:, None]
    return X, y


def beliefs() -> Draw:
    """The posterior of ETANA for forty rows after each acquired value; one row is easy and one is hard."""
    X, y = _weakly_relevant()
    model = ETANA(cost=0.01, random_state=0).fit(X[:1000], y[:1000])
    walks = sorted((trace.posteriors[:, 1] for trace in model.acquire(X[1000:1040])), key=len)

    def draw() -> Figure:
        figure, axes = panels()
        for walk in walks:
            axes.plot(walk, color=GREY, lw=0.7)
        axes.plot([], color=GREY, lw=0.7, label="38 other rows")
        for walk, colour, text in ((walks[0], "C0", "easy row"), (walks[-1], "C1", "hard row")):
            axes.plot(walk, "o-", color=colour, ms=4, lw=2, label=f"{text}, {len(walk) - 1} values")
        axes.set(xlabel="acquired values", ylabel="probability of class 1", ylim=(-0.02, 1.02))
        legend_beside(axes)
        return figure

    return draw


def half_spaces() -> Draw:
    """The stopping thresholds of F-ETANA per class and stage, and the posteriors of some rows."""
    X, y = _weakly_relevant()
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
        axes.plot([], color=GREY, label="continue: twelve rows")
        axes.fill_between(stages, 0, low, color="C0", alpha=0.35, lw=0, step="mid", label="stop: class 0")
        for walk in walks:
            axes.plot(walk, ".-", color=GREY, lw=1, ms=5)
        axes.set(
            xlabel="acquired values", ylabel="probability of class 1", ylim=(0, 1), xlim=(0, len(low) - 1)
        )
        legend_beside(axes)
        return figure

    return draw


def how_many() -> Draw:
    """The number of values that IFC2F acquires per row, at two costs."""
    X, y = _weakly_relevant()
    by_price = {}
    for price in (0.02, 0.005):
        model = IFC2F(cost=price, random_state=0).fit(X[:1500], y[:1500])
        right = model.score(X[1500:], y[1500:])
        by_price[price] = np.bincount(model.n_features_used_), right

    def draw() -> Figure:
        figure, both = panels(2, sharex=True, sharey=True)
        for axes, colour, (price, (counts, right)) in zip(both, ("C0", "C1"), by_price.items(), strict=True):
            axes.bar(range(len(counts)), 100 * counts / counts.sum(), color=colour)
            axes.axvline(np.arange(len(counts)) @ counts / counts.sum(), color=GREY, ls="--")
            axes.set(title=f"cost {price:g}: accuracy {100 * right:.0f} %", xlabel="acquired values per row")
        both[0].set_ylabel("% of the rows")
        return figure

    return draw


def questions() -> Draw:
    """The acquired values given the first one: one order for all rows, and an order for each row."""
    rng = np.random.default_rng(0)
    y, which = rng.integers(0, 2, 4000), rng.integers(0, 4, 4000)
    X = rng.normal(size=(4000, 5))
    X[:, 0] = which  # is free, and indicates which of the four others is informative
    X[:, 1:] += 3 * (2 * y[:, None] - 1) * (which[:, None] == range(4))
    shares_by_title = {}
    prices = np.array([0, 0.02, 0.02, 0.02, 0.02])
    for model in (IFC2F(cost=prices, random_state=0), AdaptiveIFC2F(cost=prices)):
        traces = model.fit(X[:3000], y[:3000]).acquire(X[3000:])
        right = model.score(X[3000:], y[3000:])
        asked = np.array([[j in trace.features for j in range(5)] for trace in traces])
        shares = np.array([asked[which[3000:] == value].mean(axis=0) for value in range(4)])
        shares_by_title[f"{type(model).__name__}: accuracy {100 * right:.0f} %"] = shares

    def draw() -> Figure:
        figure, both = panels(2, sharey=True)
        for axes, (title, shares) in zip(both, shares_by_title.items(), strict=True):
            axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
            for (value, j), share in np.ndenumerate(shares):
                colour = "white" if share > 0.5 else "black"
                axes.text(j, value, f"{100 * share:.0f}", ha="center", va="center", color=colour, fontsize=8)
            axes.set(title=title, xlabel="acquired value, % of the rows", yticks=range(4))
            axes.set_xticks(range(5), [f"x{j}" for j in range(5)])
        both[0].set_ylabel("value of x0")
        return figure

    return draw


def beside_fixed() -> Draw:
    """Accuracy by the number of acquired values: the same features for each row, or chosen per row."""
    X, y = _weakly_relevant()
    makes = {
        "AdaptiveIFC2F": lambda n: AdaptiveIFC2F(cost=1.0, mean_budget=n),
        "FixedSubset": lambda n: FixedSubset(cost=1.0, n_features=n),
    }
    curves = {}
    for name, make in makes.items():
        points = []
        for n in (1, 2, 3, 5, 7):
            model = make(n).fit(X[:600, :12], y[:600])
            right = 100 * model.score(X[1500:, :12], y[1500:])
            points.append((model.n_features_used_.mean(), right))
        curves[name] = np.transpose(points)

    def draw() -> Figure:
        figure, axes = panels()
        for (name, (values, right)), mark in zip(curves.items(), "os", strict=True):
            axes.plot(values, right, f"{mark}-", label=name)
        axes.set(xlabel="acquired values per row, mean", ylabel="accuracy, %")
        axes.legend(frameon=False, loc="lower right")
        return figure

    return draw
