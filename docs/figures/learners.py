"""Pictures of the learners."""

from __future__ import annotations

import numpy as np

from tamis import (
    HUWRS,
    AdaptiveRandomForest,
    HEFTStream,
    HoeffdingTree,
    load_stream,
)

from .canvas import GREY, Draw, Figure, panels


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
        figure, axes = panels()
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
        figure, axes = panels()
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
