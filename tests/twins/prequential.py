"""Test-then-train, slow and obvious: plain loops, scikit-learn's measures, stability by its definition."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import accuracy_score, balanced_accuracy_score, cohen_kappa_score


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
    X, y, selector, learner, batch_size, protocol="honest", window=1000, stability_window=10, scale=True
):
    """Return a list of dicts, one per scored batch."""
    classes, rows = np.unique(y), []
    actual, predicted, sets = [], [], []
    first = slice(0, batch_size)
    selector.partial_fit(X[first], y[first], classes=classes)
    learner.partial_fit(standardised(X[first], X[first]) if scale else X[first], y[first], classes=classes)
    for start in range(batch_size, len(y), batch_size):
        part = slice(start, start + batch_size)
        if protocol == "paper":
            selector.partial_fit(X[part], y[part])
        chosen = set() if selector.waiting_ else set(np.flatnonzero(selector.get_support()).tolist())
        masked = standardised(X[part], X[:start]) if scale else X[part].copy()
        if not selector.waiting_:
            masked[:, [j for j in range(X.shape[1]) if j not in chosen]] = 0
        guess = learner.predict(masked)
        learner.partial_fit(masked, y[part])
        if protocol != "paper":
            selector.partial_fit(X[part], y[part])
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
                "stability": stability(sets, X.shape[1]),
                "selected": chosen,
            }
        )
    return rows
