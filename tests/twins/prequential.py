"""Test-then-train, slow and obvious: plain loops, scikit-learn's measures, stability by its definition."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    cohen_kappa_score,
    mean_absolute_error,
    r2_score,
)


def stability(sets, n_features):
    """Nogueira, Sechidis and Brown (2017), equation (4): one minus the ratio of variances."""
    r = len(sets)
    if r < 2:
        return np.nan
    Z = np.zeros((r, n_features))
    for row, chosen in zip(Z, sets, strict=True):
        row[list(chosen)] = 1
    p, size = Z.mean(axis=0), Z.sum() / r
    if size in (0, n_features):
        return 1.0
    return 1 - (r / (r - 1) * p * (1 - p)).mean() / (size / n_features * (1 - size / n_features))


def stability_variance(sets, n_features):
    """Nogueira, Sechidis and Brown (2018), theorem 7."""
    J, r, phi = n_features, len(sets), stability(sets, n_features)
    Z = np.array([[j in chosen for j in range(J)] for chosen in sets], dtype=float)
    p, size, sizes = Z.mean(axis=0), Z.sum() / r, Z.sum(axis=1)
    if r < 2:
        return np.nan
    if size in (0, J):
        return 0.0
    share = size / J
    each = [
        ((z * p).mean() - k * size / J**2 + phi / 2 * (2 * size * k / J**2 - k / J - share + 1))
        / (share * (1 - share))
        for z, k in zip(Z, sizes, strict=True)
    ]
    return 4 / r**2 * ((each - np.mean(each)) ** 2).sum()


def standardised(rows, before):
    """Scale rows by the mean and the standard deviation of the rows before, to at most 5."""
    deviation = before.std(axis=0)
    return np.clip((rows - before.mean(axis=0)) / np.where(deviation > 0, deviation, 1), -5, 5)


def prequential(
    X,
    y,
    selector,
    learner,
    batch_size,
    protocol="honest",
    window=1000,
    stability_window=10,
    scale=True,
    delay=0,
    now=None,
    comes=None,
):
    """Return a list of dicts, one per scored batch; the label of row i comes with row i + delay, or at comes[i]."""
    classes, rows = np.unique(y), []
    actual, predicted, sets, last_known = [], [], [], []
    now = np.arange(len(y)) if now is None else now
    comes = np.arange(len(y)) + delay if comes is None else np.maximum(comes, now)
    told = []  # rows whose labels have come, as they came

    def came_until(stop):
        new = [i for i in range(stop) if i not in told and comes[i] <= max(now[:stop])]
        return sorted(new, key=lambda i: (comes[i], i))

    def masked(part, before):
        chosen = set() if selector.warming_up_ else set(np.flatnonzero(selector.get_support()).tolist())
        given = standardised(X[part], X[:before]) if scale else X[part].copy()
        if not selector.warming_up_:
            given[:, [j for j in range(X.shape[1]) if j not in chosen]] = 0
        return given, chosen

    for start in range(0, len(y), batch_size):
        stop = min(start + batch_size, len(y))
        part, due = slice(start, stop), came_until(stop)
        if not told:
            told = due
            if told:
                selector.partial_fit(X[due], y[due], classes=classes)
                learner.partial_fit(
                    standardised(X[due], X[:stop]) if scale else X[due], y[due], classes=classes
                )
            continue
        if protocol == "paper":
            selector.partial_fit(X[part], y[part])
        given, chosen = masked(part, start)
        guess = learner.predict(given)
        for i in range(start, stop):  # the label that came last with the rows before
            clock = max(now[:i])
            known = [*told, *(j for j in due if (comes[j], j) <= (clock, i - 1))]
            last_known.append(y[known[-1]] == y[i])
        told = told + due
        if due:
            learner.partial_fit(masked(due, start)[0], y[due])
            if protocol != "paper":
                selector.partial_fit(X[due], y[due])
        actual, predicted = [*actual, *y[part]], [*predicted, *guess]
        sets = [*sets, chosen][-stability_window:]
        recent = slice(-window, None)
        rows.append(
            {
                "accuracy": accuracy_score(y[part], guess),
                "accuracy_cumulative": accuracy_score(actual, predicted),
                "kappa_cumulative": cohen_kappa_score(actual, predicted),
                "balanced_accuracy_cumulative": balanced_accuracy_score(actual, predicted),
                "accuracy_windowed": accuracy_score(actual[recent], predicted[recent]),
                "kappa_windowed": cohen_kappa_score(actual[recent], predicted[recent]),
                "balanced_accuracy_windowed": balanced_accuracy_score(actual[recent], predicted[recent]),
                "no_change_accuracy_cumulative": np.mean(last_known),
                "stability": stability(sets, X.shape[1]),
                "selected": chosen,
            }
        )
    return rows


def prequential_of_numbers(X, y, selector, learner, batch_size, window=1000, delay=0, scale=True):
    """The same where numbers are predicted; what the learner sees of them is scaled too, by those that came."""
    rows, actual, predicted, mean, last = [], [], [], [], []
    told = 0

    def masked(part, before):
        given = standardised(X[part], X[:before]) if scale else X[part].copy()
        kept = selector.get_support() if hasattr(selector, "n_seen_") else np.ones(X.shape[1], bool)
        given[:, ~kept] = 0
        return given

    def unit(n):
        if not scale:
            return 0.0, 1.0
        return y[:n].mean(), y[:n].std() if y[:n].std() > 0 else 1.0

    for start in range(0, len(y), batch_size):
        stop = min(start + batch_size, len(y))
        part, due = slice(start, stop), slice(told, max(told, stop - delay))
        if told == 0:
            told = due.stop
            if told:
                centre, spread = unit(told)
                learner.partial_fit(
                    standardised(X[due], X[:stop]) if scale else X[due], (y[due] - centre) / spread
                )
                selector.partial_fit(X[due], y[due])
            continue
        centre, spread = unit(told)
        guess = learner.predict(masked(part, start)) * spread + centre
        told = due.stop
        if due.stop > due.start:
            centre, spread = unit(told)
            learner.partial_fit(masked(due, start), (y[due] - centre) / spread)
            selector.partial_fit(X[due], y[due])
        for i in range(start, stop):
            came = y[: i - delay] if i > delay else y[:0]
            mean.append(came.mean() if len(came) else 0.0)
            last.append(came[-1] if len(came) else 0.0)
        actual, predicted = [*actual, *y[part]], [*predicted, *guess]
        row = {"mae": mean_absolute_error(y[part], guess)}
        for scope, recent in (("cumulative", slice(None)), ("windowed", slice(-window, None))):
            row[f"mae_{scope}"] = mean_absolute_error(actual[recent], predicted[recent])
            row[f"r2_{scope}"] = r2_score(actual[recent], predicted[recent])
            row[f"mean_mae_{scope}"] = mean_absolute_error(actual[recent], mean[recent])
            row[f"last_mae_{scope}"] = mean_absolute_error(actual[recent], last[recent])
        rows.append(row)
    return rows
