"""OFS-A3M with every neighbourhood found by sorting all rows, one row at a time."""

import math

import numpy as np

EQUAL = 1e-12


def n_neighbours(d, rule):
    """How many of the rows at sorted distances d are neighbours."""
    limit = 1.5 * (d[-1] - d[0]) / (len(d) - 1)
    kept = 1
    while kept < len(d):
        t, here, before = kept + 1, d[kept], d[kept - 1]
        if rule == "gap":
            goes_on = here - before < limit * (1 - EQUAL)
        elif rule == "density":
            goes_on = here == 0 or here / t <= before / (t - 1) * (1 + EQUAL)
        else:
            goes_on = here / t >= before / (t - 1) * (1 - EQUAL)
        if not goes_on:
            break
        kept += 1
    return kept


def dependency(columns, y, rule):
    """Rows at the distance of the last neighbour share the places that are left."""
    shares = []
    for i in range(len(y)):
        others = [j for j in range(len(y)) if j != i]
        if len(columns) == 1:
            square = {j: (columns[0][i] - columns[0][j]) ** 2 for j in others}
        else:
            square = {j: sum((column[i] - column[j]) ** 2 for column in columns) for j in others}
        squares = sorted(square.values())
        if len(columns) == 1:
            distances = sorted(abs(columns[0][i] - columns[0][j]) for j in others)
        else:
            distances = [math.sqrt(s) for s in squares]
        kept = n_neighbours(distances, rule)
        last = squares[kept - 1]
        nearer = [y[j] == y[i] for j in others if square[j] < last * (1 - EQUAL)]
        as_near = [y[j] == y[i] for j in others if abs(square[j] - last) <= last * EQUAL]
        shares.append((sum(nearer) + (kept - len(nearer)) * sum(as_near) / len(as_near)) / kept)
    return sum(shares) / len(shares)


def unit(column):
    return (column - column.mean()) / column.std(ddof=1)


def is_copy(X, j, selected):
    return any(abs(np.corrcoef(X[:, j], X[:, q])[0, 1]) > 1 - 1e-12 for q in selected)


def gamma_of(X, y, features, rule):
    columns = [X[:, j] for j in features] if len(features) == 1 else [unit(X[:, j]) for j in features]
    return dependency(columns, y, rule)


def orders(seed):
    """The order in which selected features are tried, for the offer of each place."""
    start = int(np.random.RandomState(seed).randint(2**31 - 1))
    return lambda place, features: np.random.default_rng([start, place]).permutation(features).tolist()


def ofs_a3m(X, y, relevance="article", seed=0):
    selected, gamma, bar, order = [], 0.0, 0.0, orders(seed)
    for f in range(X.shape[1]):
        if np.ptp(X[:, f]) == 0:
            continue
        alone = gamma_of(X, y, [f], "gap")
        if alone < bar - EQUAL or (relevance == "code" and alone <= bar + EQUAL) or is_copy(X, f, selected):
            continue
        together = gamma_of(X, y, [*selected, f], "gap")
        if together < gamma - EQUAL:
            continue
        kept, now = [*selected, f], together
        if together <= gamma + EQUAL:
            for q in order(f, selected):
                without = gamma_of(X, y, [j for j in kept if j != q], "gap")
                if abs(without - now) <= EQUAL:
                    kept, now = [j for j in kept if j != q], without
        selected, gamma = kept, now
        singles = [gamma_of(X, y, [j], "gap") for j in selected]
        bar = sum(singles) / len(singles) if relevance == "article" else gamma / len(selected)
    return selected
