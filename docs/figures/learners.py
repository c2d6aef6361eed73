"""Pictures of the learners."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tamis import (
    CVFDT,
    HUWRS,
    VFDR,
    AdaptiveRandomForest,
    HEFTStream,
    HoeffdingTree,
    StreamingStacking,
    WeightedKNN,
    load_stream,
)

from .canvas import GREY, Draw, Figure, legend_beside, panels


def agreement() -> Draw:
    """The weights of the members of HUWRS, some of which use sensors that break after the last label."""
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
        figure, axes = panels()
        rows = np.arange(1, len(weights) + 1) * 250
        for line, breaks in sorted(zip(np.transpose(weights), broken, strict=True), key=lambda pair: pair[1]):
            axes.plot(rows, line, color="C1" if breaks else GREY)
        axes.plot([], color="C1", label="members with a broken sensor")
        axes.plot([], color=GREY, label="other members")
        axes.axvline(4000, color=GREY, ls="--")
        axes.axhline(model.silent_below, color="C0", ls=":", label="silent_below: no vote")
        axes.set(xlabel="rows (no labels after row 4,000)", ylabel="weight", ylim=(0, 1.05))
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
        figure, axes = panels()
        for model, line in zip(models, total, strict=True):
            axes.plot(
                np.arange(span, n)[::20],
                ((line[span:] - line[:-span]) / span)[::20],
                label=type(model).__name__,
            )
        axes.axvline(n // 2, color=GREY, ls="--")
        axes.set(
            xlabel="rows (concept drift at row 4,000)",
            ylabel=f"accuracy, last {span} rows",
            ylim=(0.5, 0.95),
        )
        axes.legend(frameon=False, fontsize=8, loc="lower left")
        return figure

    return draw


def _accuracy(models: dict[str, Any], batches: Iterable[tuple[Any, Any]], span: int = 500) -> dict[str, Any]:
    """Return each classifier's prequential accuracy over the last `span` rows."""
    batches = list(batches)
    curves = {}
    for name, model in models.items():
        right = [np.zeros(len(batches[0][1]))]
        for at, (X, y) in enumerate(batches):
            if at:
                right.append(model.predict(X) == y)
            model.partial_fit(X, y)
        total = np.cumsum(np.concatenate(right))
        curves[name] = (np.arange(span, len(total))[::20], ((total[span:] - total[:-span]) / span)[::20])
    return curves


def _draw_accuracy(curves: dict[str, Any], drift: int, low: float) -> Figure:
    figure, axes = panels()
    for name, (rows, share) in curves.items():
        axes.plot(rows, 100 * share, label=name)
    axes.axvline(drift, color=GREY, ls="--")
    axes.set(
        xlabel=f"rows (concept drift at row {drift:,})",
        ylabel="accuracy, last 500 rows, %",
        ylim=(low, 100),
    )
    legend_beside(axes)
    return figure


def window() -> Draw:
    """Accuracy of a windowed tree and of a tree over all rows, before and after a drift."""
    stream = load_stream("SEA", seed=1, n_rows=12_000, n_drifts=1, width=1, n_irrelevant=8)
    models = {"CVFDT(window=2000)": CVFDT(window=2000), "HoeffdingTree": HoeffdingTree()}
    curves = _accuracy(models, stream)
    return lambda: _draw_accuracy(curves, 6000, 50)


def words_of_pairs() -> Draw:
    """Accuracy where features are informative only in combination."""
    stream = load_stream("BG3", seed=1, n_rows=12_000, n_drifts=1, width=1, n_irrelevant=12)
    models = {
        "StreamingStacking": StreamingStacking(),
        "AdaptiveRandomForest": AdaptiveRandomForest(),
        "HoeffdingTree": HoeffdingTree(),
    }
    curves = _accuracy(models, stream)
    return lambda: _draw_accuracy(curves, 6000, 35)


def noise() -> Draw:
    """Accuracy of nearest neighbours by the number of irrelevant features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 102))
    y = X[:, 0] + X[:, 1] > 0
    widths = (0, 5, 10, 20, 40, 70, 100)
    accuracy: dict[str, list[float]] = {}
    for name, make in {"WeightedKNN()": WeightedKNN, "weight=None": lambda: WeightedKNN(weight=None)}.items():
        for width in widths:
            model = make().fit(X[:2000, : 2 + width], y[:2000])
            accuracy.setdefault(name, []).append(100 * model.score(X[2000:, : 2 + width], y[2000:]))

    def draw() -> Figure:
        figure, axes = panels()
        for (name, right), mark in zip(accuracy.items(), "os", strict=True):
            axes.plot(widths, right, f"{mark}-", label=name)
        axes.set(xlabel="irrelevant features, beside two relevant ones", ylabel="accuracy, %")
        axes.legend(frameon=False)
        return figure

    return draw


def rule_regions() -> Draw:
    """The regions of a plane that the rules of VFDR cover."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20_000, 2))
    y = (X[:, 0] > 0.6) | ((X[:, 1] > 0.5) & (X[:, 0] < 0.3))
    rules = VFDR().fit(X, y).rules_
    u, v = plane = np.meshgrid(*[np.linspace(0.0025, 0.9975, 200)] * 2)
    first = np.full(u.shape, len(rules) - 1)
    texts = ["5: default"]
    for at, rule in reversed(list(enumerate(rules[:-1]))):
        holds = [plane[one.feature] > one.value for one in rule.literals]
        holds = [
            right if one.operator == ">" else ~right for right, one in zip(holds, rule.literals, strict=True)
        ]
        first[np.all(holds, axis=0)] = at
        texts.insert(
            0, f"{at + 1}: " + ", ".join(f"x{o.feature} {o.operator} {o.value:.2f}" for o in rule.literals)
        )
    inside = np.array([rule.class_weights[1] > rule.class_weights[0] for rule in rules])[first]

    def draw() -> Figure:
        figure, axes = panels(1, 3)
        axes.contourf(u, v, inside, levels=[-0.5, 0.5, 1.5], colors=["C0", "C1"], alpha=0.35)
        for at in range(len(rules)):
            axes.contour(u, v, first == at, levels=[0.5], colors=GREY, linewidths=1)
            axes.text(
                np.median(u[first == at]), np.median(v[first == at]), str(at + 1), ha="center", va="center"
            )
        for text in texts:
            axes.plot([], " ", label=text)
        axes.fill_between([], [], color="C1", alpha=0.35, label="class 1")
        axes.fill_between([], [], color="C0", alpha=0.35, label="class 0")
        axes.set(xlabel="x0", ylabel="x1", aspect="equal", xlim=(0, 1), ylim=(0, 1))
        legend_beside(axes)
        return figure

    return draw
