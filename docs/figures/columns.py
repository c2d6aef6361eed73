"""Pictures of streaming feature selection."""

from __future__ import annotations

import numpy as np

from tamis import OSFS, SAOLA, FastOSFS, ForwardStepwise, Grafting, PenalisedSelector

from .canvas import GREY, Draw, Figure, legend_beside, panels


def blanket() -> Draw:
    """Features selected by OSFS after each offer; copies arrive before their originals, and after them."""
    rng = np.random.default_rng(3)
    n, late = 500, (30, 45)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 60))
    X[:, list(late)] += y[:, None] * np.array([2.0, 1.6])  # informative alone
    X[:, [4, 12, 20, 52]] = X[:, [30]] + 0.7 * X[:, [4, 12, 20, 52]]  # noisy copies of the first
    X[:, 38] = X[:, 45] + 0.7 * X[:, 38]
    selector = OSFS(alpha=0.001).start(y)
    kept = []
    for j in range(X.shape[1]):
        selector.offer(X[:, j], f"x{j}")
        kept.append([int(name[1:]) for name in selector.selected_])

    def draw() -> Figure:
        figure, axes = panels()
        ever = sorted({j for row in kept for j in row})
        for at, j in enumerate(ever):
            colour = "C0" if j in late else "C1"
            inside = [offer for offer, row in enumerate(kept) if j in row]
            axes.plot([inside[0], inside[-1] + 1], [at, at], color=colour, lw=4, solid_capstyle="butt")
            if inside[-1] + 1 < len(kept):
                axes.plot(inside[-1] + 1, at, "x", color=colour)
        names = {4: "x4, copy of x30", 12: "x12, copy of x30", 20: "x20, copy of x30", 38: "x38, copy of x45"}
        axes.set_yticks(range(len(ever)), [names.get(j, f"x{j}") for j in ever])
        axes.set(xlabel="features offered", xlim=(0, len(kept)))
        return figure

    return draw


def penalties() -> Draw:
    """Number of accepted features of a thousand, of which five are relevant."""
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
        figure, axes = panels()
        for name, count in counts.items():
            axes.plot(count, label=f"{name}: {count[-1]}")
        axes.plot(np.searchsorted(matter, np.arange(p)), "--", color=GREY, label="relevant so far: 5")
        axes.set(xlabel="features offered", ylabel="accepted", yscale="symlog", ylim=(0, None))
        axes.set_yticks([0, 1, 5, 20, 100], ["0", "1", "5", "20", "100"])
        legend_beside(axes)
        return figure

    return draw


def steps() -> Draw:
    """Gain of each step of forward stepwise regression, beside its penalty."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 300))
    y = X[:, :6] @ np.array([3, 2, 1.5, 1, 0.8, 0.6]) + rng.normal(size=100)
    found = {name: ForwardStepwise(name).fit(X, y) for name in ("aic", "bic", "ric")}
    gains = found["aic"].trace_["statistic"][[int(name[1:]) for name in found["aic"].selected_]]

    def draw() -> Figure:
        figure, axes = panels()
        axes.plot(range(1, 21), gains[:20], "o-", ms=3, color="C0", label="gain of the step")
        for at, (name, selector) in enumerate(found.items(), 1):
            n = len(selector.selected_)
            axes.axhline(
                selector.trace_["threshold"].max(),
                ls="--",
                color=f"C{at}",
                label=f"{name.upper()}: {n} steps",
            )
        axes.set(xlabel="step", ylabel="gain, 2 log-likelihood", yscale="log", xticks=[1, 6, 10, 15, 20])
        axes.set_yticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
        axes.minorticks_off()
        legend_beside(axes)
        return figure

    return draw


def grafting() -> Draw:
    """Weights of the selected features after each offer."""
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
        figure, axes = panels()
        axes.axhline(0, color=GREY, lw=0.8)
        for at, (j, text) in enumerate({3: "x3, a copy of x150", 50: "x50", 150: "x150"}.items()):
            line = weights[:, j]
            axes.plot(line, color=f"C{at}", lw=2, drawstyle="steps-post", label=text)
        axes.set(xlabel="features offered", ylabel="weight in the lasso", xlim=(0, 199))
        legend_beside(axes)
        return figure

    return draw


def neighbourhoods() -> Draw:
    """Where the neighbours of a row end, by two rules, with one feature and with five."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 5))
    X /= X.std(axis=0, ddof=1)
    found = {}
    for title, columns in (("one feature", 1), ("five features", 5)):
        d = np.sort(np.linalg.norm(X[1:, :columns] - X[0, :columns], axis=1))
        gap = np.argmax(np.append(np.diff(d) >= 1.5 * (d[-1] - d[0]) / (len(d) - 1), True)) + 1
        share = d / np.arange(1, len(d) + 1)
        dense = np.argmax(np.append(np.diff(share) > 0, True)) + 1
        found[title] = d, gap, dense

    def draw() -> Figure:
        figure, both = panels(2, 2.5)
        places = ("lower right", "upper left")
        for axes, place, (title, (d, gap, dense)) in zip(both, places, found.items(), strict=True):
            at = np.arange(1, len(d) + 1)
            axes.plot(at, d, "o", ms=3, color=GREY)
            axes.axvline(gap + 0.5, color="C0", label=f"OFS-A3M: {gap}")
            axes.axvline(dense + 0.5, color="C1", ls="--", label=f"OFS-Density: {dense}")
            axes.set(title=title, xlabel="other rows, nearest first", ylabel="distance")
            axes.legend(frameon=False, fontsize=8, loc=place)
        return figure

    return draw


def gate() -> Draw:
    """Number of features selected by OSFS and Fast-OSFS after each offer, where groups of features share a cause."""
    rng = np.random.default_rng(0)
    causes = rng.normal(size=(60, 8))
    y = (causes.sum(axis=1) + 0.5 * rng.normal(size=60) > 0).astype(int)
    X = causes[:, rng.integers(0, 8, 600)] + rng.normal(size=(60, 600))
    held: dict[str, list[int]] = {}
    for selector in (FastOSFS(alpha=0.05), OSFS(alpha=0.05)):
        selector.start(y)
        for j in range(X.shape[1]):
            selector.offer(X[:, j], f"x{j}")
            held.setdefault(type(selector).__name__, []).append(len(selector.selected_))

    def draw() -> Figure:
        figure, axes = panels()
        for name, line in held.items():
            axes.plot(line, drawstyle="steps-post", label=f"{name}: {line[-1]}")
        axes.set(xlabel="features offered", ylabel="selected features", ylim=(0, None))
        legend_beside(axes)
        return figure

    return draw


def beaten() -> Draw:
    """Correlation of each feature with the class and with a stronger selected feature, when SAOLA receives it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 300))
    y = (X[:, 0] + X[:, 1] + X[:, 2] > 0).astype(int)
    X[:, 20:140] += X[:, np.arange(120) % 3] * rng.uniform(0, 2.5, 120)  # copies, from faint to faithful
    selector = SAOLA(alpha=0.01).start(y)
    kinds: dict[str, list[tuple[float, float]]] = {"accepted": [], "rejected": []}
    for j in range(X.shape[1]):
        rivals = [int(name[1:]) for name in selector.selected_]
        strength = np.abs(np.corrcoef(X[:, [j, *rivals]].T, y)[-1, :-1])
        better = [i for i, power in zip(rivals, strength[1:], strict=True) if power >= strength[0]]
        closest = max((abs(np.corrcoef(X[:, j], X[:, i])[0, 1]) for i in better), default=0.0)
        taken = selector.offer(X[:, j], f"x{j}")
        kinds["accepted" if taken else "rejected"].append((strength[0], closest))

    def draw() -> Figure:
        figure, axes = panels(1, 3)
        axes.plot([0, 0.6], [0, 0.6], color=GREY, ls="--", label="equal correlations")
        for (kind, points), mark in zip(kinds.items(), "ox", strict=True):
            axes.plot(*np.transpose(points), mark, ms=4, label=f"{kind}: {len(points)}")
        axes.set(
            xlabel="correlation with the class", ylabel="correlation with a stronger feature", ylim=(0, 1)
        )
        legend_beside(axes)
        return figure

    return draw
