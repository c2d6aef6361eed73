"""IncrementalPFI and IncrementalSAGE row by row, as their papers state them.

Random numbers are drawn in the order of the package: for each row those of the plan, of the replacing rows, and of the
slot.
"""

import math


def _features(n_columns, groups):
    alone = [[j] for j in range(n_columns) if all(j not in group for group in groups)]
    return [*groups, *alone]


def _nearest(store, x, replaced, n_neighbours):
    distances = []
    for slot, row in enumerate(store):
        total = 0.0
        for j in range(len(x)):
            if j in replaced:
                continue
            column = [other[j] for other in store]
            mean = sum(column) / len(column)
            variance = sum((value - mean) ** 2 for value in column) / len(column)
            total += (x[j] - row[j]) ** 2 / variance if variance > 0 else 0.0
        distances.append((total, slot))
    return [store[slot] for _, slot in sorted(distances)[:n_neighbours]]


def _replacing(store, x, replaced, u, n_neighbours):
    eligible = store if n_neighbours is None else _nearest(store, x, replaced, n_neighbours)
    donor = eligible[int(u * len(eligible))]
    return [donor[j] if j in replaced else x[j] for j in range(len(x))]


def _put(store, x, u, size):
    if len(store) < size:
        store.append(x)
    else:
        store[int(u * size)] = x


def _subset(draws, n):
    """Floyd's method."""
    chosen = []
    for c, u in enumerate(draws):
        top = n - len(draws) + c
        draw = int(u * (top + 1))
        chosen.append(top if draw in chosen else draw)
    return chosen


def _summary(history, n_rows, n_features, half_life):
    """Weighted mean, variance and sum of squared weights over the squared sum, from all contributions."""
    means, variances, shares = [], [], []
    for g in range(n_features):
        pairs = [(0.5 ** ((n_rows - 1 - t) / half_life), v) for t, feature, v in history if feature == g]
        total, squared = sum(w for w, _ in pairs), sum(w * w for w, _ in pairs)
        mean = sum(w * v for w, v in pairs) / total
        means.append(mean)
        variances.append(sum(w * (v - mean) ** 2 for w, v in pairs) / (total - squared / total))
        shares.append(squared / total**2)
    return means, variances, shares


def pfi(
    model, loss, rows, targets, rng, *, groups=(), half_life=1000, k=None, m=1, size=100, n_neighbours=None
):
    """`model` maps a row to an output, `loss` an output and a target to a number."""
    features = _features(len(rows[0]), groups)
    n = len(features)
    k = n if k is None else k
    store, history = [rows[0]], []
    for t, (x, y) in enumerate(zip(rows, targets, strict=True)):
        if t == 0:
            continue
        draws = rng.random((k if k < n else 0) + k * m + 1).tolist()
        chosen = _subset(draws[:k], n) if k < n else list(range(n))
        donors = draws[-k * m - 1 : -1]
        for c, g in enumerate(chosen):
            altered = [
                _replacing(store, x, features[g], u, n_neighbours) for u in donors[c * m : (c + 1) * m]
            ]
            history.append((t, g, sum(loss(model(a), y) for a in altered) / m - loss(model(x), y)))
        _put(store, x, draws[-1], size)
    return _summary(history, len(rows), n, half_life)


def sage(
    model, loss, rows, targets, rng, *,
    groups=(), half_life=1000, k=None, m=1, size=100, n_neighbours=None, empty_set="sampled",
):  # fmt: skip
    """`model` maps a row to a list of numbers; `k` features of each random order are measured."""
    features = _features(len(rows[0]), groups)
    n = len(features)
    store, history, seen = [rows[0]], [], []
    for t, (x, y) in enumerate(zip(rows, targets, strict=True)):
        if t == 0:
            continue
        draws = rng.random(n + 1 + m + 1).tolist()
        order = sorted(range(n), key=lambda g: draws[g])
        start = int(draws[n] * n) if k is not None and k < n else 0
        seen.append((t, model(x)))

        def prediction(added, t=t, x=x, order=order, draws=draws):
            if added == n:
                return model(x)
            if added == 0 and empty_set == "mean":
                weights = [0.5 ** ((t - s) / half_life) for s, _ in seen]
                return [
                    sum(w * p[c] for w, (_, p) in zip(weights, seen, strict=True)) / sum(weights)
                    for c in range(len(seen[0][1]))
                ]
            replaced = [j for g in order[added:] for j in features[g]]
            outputs = [
                model(_replacing(store, x, replaced, u, n_neighbours)) for u in draws[n + 1 : n + 1 + m]
            ]
            return [math.fsum(p[c] for p in outputs) / m for c in range(len(outputs[0]))]

        for step in range(n if k is None else min(k, n)):
            at = (start + step) % n
            history.append((t, order[at], loss(prediction(at), y) - loss(prediction(at + 1), y)))
        _put(store, x, draws[-1], size)
    return _summary(history, len(rows), n, half_life)
