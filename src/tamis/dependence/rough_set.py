"""Dependency of a class on columns by neighbourhood rough sets: the share of a row's class among its neighbours.

Zhou, Hu, Li, Wu: OFS-Density: A novel online streaming feature selection method. Pattern Recognition 86, 2019; and
Online streaming feature selection using adapted Neighborhood Rough Set. Information Sciences 481, 2019 (OFS-A3M).

Distances are Euclidean, each column divided by its sample standard deviation. For each row, with d_1 <= ... <= d_(N-1)
to the others, the first m of them are its neighbours::

    "gap"              as long as d_t - d_(t-1) < 1.5 (d_(N-1) - d_1) / (N - 2)        (1)
    "density"          as long as d_t / t <= d_(t-1) / (t - 1), or d_t = 0             (2)
    "density-article"  as long as d_t / t >= d_(t-1) / (t - 1)                         (3)

    gamma = mean over the rows of (neighbours of the row's class) / m                  (4)

Errata and deviations, each with its reason:

* The article on OFS-A3M divides by N - 1 in (1), but its printed dependencies result from N - 2, as in the released
  program.
* The article on OFS-Density states that neighbours end where the density first *decreases*, (3); the released program
  ends them where it first *rises*, (2). Both are implemented.
* Where a rule ends among rows at the same distance, the program keeps those that come first in the table. Here all of
  them count with equal weight, so the result does not depend on the order of the rows.

Distances and densities whose relative difference is below 1e-12 are equal: rounding must not break ties.

A single column is sorted once, and neighbours are searched outwards from each row: O(N log N + N m) instead of O(N^2
log N).
"""

from __future__ import annotations

import numpy as np

from tamis._kernels import njit
from tamis._validation import Array, Floats, Ints, check_choice

RULES = ("gap", "density", "density-article")
_GAP, _DENSITY = 0, 1
_CELLS = 1 << 18  # distances in memory: 2 MB, which fit in the cache
_NEAREST = 8  # neighbours tried first
_LESS, _MORE = 1.0 - 1e-12, 1.0 + 1e-12  # relative tolerances


def neighbourhood_dependency(X: Array, y: Array, rule: str = "gap") -> float:
    """Return the dependency of the class on the columns together, (4).

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns), 3 rows or more
        Constant columns are ignored.
    y : ndarray of shape (n_rows,)
    rule : {"gap", "density", "density-article"}, default="gap"
        Which rows are neighbours.

    Returns
    -------
    float
        In [0, 1]; the share of the own class in a neighbourhood, so an irrelevant column has about the sum of the
        squared class frequencies.

    Examples
    --------
    The example of the article on OFS-A3M, eight objects with two features:

    >>> X = np.array([[3, 5, 8, 13, 6, 5, 9, 15], [5.6, 6.9, 5.3, 12.3, 15.2, 2.6, 6.8, 8.4]]).T
    >>> y = np.array([-1, 1, 1, 1, -1, 1, -1, -1])
    >>> [round(neighbourhood_dependency(X[:, part], y), 5) for part in ([0], [1], [0, 1])]
    [0.2625, 0.33542, 0.32292]
    """
    check_choice("rule", rule, RULES)
    X = np.asarray(X, dtype=np.float64)
    if len(X) < 3:
        raise ValueError(f"X has {len(X)} rows, but neighbourhoods need 3 or more.")
    X = X[:, np.ptp(X, axis=0) > 0]
    codes = np.unique(y, return_inverse=True)[1].astype(np.int64)
    if X.shape[1] == 1:
        return float(column_dependencies(X, codes, rule)[0])
    return set_dependency(np.ascontiguousarray((X / X.std(axis=0, ddof=1)).T), codes, rule)


# -- one column --------------------------------------------------------------------------------------------


def column_dependencies(X: Floats, codes: Ints, rule: str) -> Floats:
    """Return the dependency of the class on each column.

    Parameters
    ----------
    X : ndarray of shape (n_rows, m), float64
    codes : ndarray of shape (n_rows,), int64
        Classes 0, 1, ...
    rule : {"gap", "density", "density-article"}

    Returns
    -------
    ndarray of shape (m,), float64
    """
    columns = np.ascontiguousarray(X.T)
    order = np.argsort(columns, axis=1)
    return np.asarray(
        _column_dependencies(np.take_along_axis(columns, order, axis=1), codes[order], RULES.index(rule))
    )


@njit(strict=True)
def _is_neighbour(rule: int, distance: float, before: float, t: int, limit: float) -> bool:
    """Return whether the t-th row, t > 1, is a neighbour if the previous one is."""
    if rule == _GAP:
        return distance - before < limit * _LESS  # (1)
    if rule == _DENSITY:
        return distance / t <= before / (t - 1) * _MORE  # (2)
    return distance / t >= before / (t - 1) * _LESS  # (3)


@njit(strict=True)
def _own_class_share(x: Array, codes: Array, p: int, rule: int) -> float:
    """Return the share of the own class among the neighbours of the row at place p of the sorted column."""
    n, left, right = len(x), p - 1, p + 1
    to_left, to_right = x[p] - x[0], x[n - 1] - x[p]
    nearest = min(x[p] - x[left] if left >= 0 else np.inf, x[right] - x[p] if right < n else np.inf)
    limit = 1.5 * (max(to_left, to_right) - nearest) / (n - 2)
    # Number of neighbours, distance of the last, whether the search has ended.
    kept, before, cut = 0, 0.0, False
    below, same_below, tied, same_tied = 0, 0, 0, 0  # rows nearer than the last neighbour, and as near
    for t in range(1, n):
        d_left = x[p] - x[left] if left >= 0 else np.inf
        d_right = x[right] - x[p] if right < n else np.inf
        distance = min(d_left, d_right)
        cut = cut or (t > 1 and not _is_neighbour(rule, distance, before, t, limit))
        if cut and distance > before * _MORE:
            break
        if not cut:
            if t > 1 and distance > before * _MORE:
                below, same_below, tied, same_tied = below + tied, same_below + same_tied, 0, 0
            kept, before = t, distance
        tied += 1
        if d_left <= d_right:
            same_tied += codes[left] == codes[p]
            left -= 1
        else:
            same_tied += codes[right] == codes[p]
            right += 1
    return (same_below + (kept - below) * same_tied / tied) / kept


@njit(strict=True)
def _column_dependencies(x: Array, codes: Array, rule: int) -> Array:
    m, n = x.shape
    dependencies = np.empty(m)
    for j in range(m):
        total = 0.0
        for p in range(n):
            total += _own_class_share(x[j], codes[j], p, rule)
        dependencies[j] = total / n  # (4)
    return dependencies


# -- several columns ---------------------------------------------------------------------------------------


def set_dependency(units: Floats, codes: Ints, rule: str) -> float:
    """Return the dependency of the class on several columns together.

    Parameters
    ----------
    units : ndarray of shape (k, n_rows), float64, C-contiguous
        The columns, each divided by its standard deviation.
    codes : ndarray of shape (n_rows,), int64
        Classes 0, 1, ...
    rule : {"gap", "density", "density-article"}

    Returns
    -------
    float
        In [0, 1].
    """
    n, which = len(codes), RULES.index(rule)
    shares = np.empty(n)
    step = max(1, _CELLS // n)
    for start in range(0, n, step):
        squares = _squared_distances(units, start, min(start + step, n))
        places = np.arange(start, start + len(squares))
        own = _own_class_shares(squares, _nearest(squares, min(_NEAREST, n - 1)), places, codes, which)
        open_ended = np.flatnonzero(np.isnan(own))
        if len(open_ended):
            squares, places = squares[open_ended], places[open_ended]
            nearest = np.sort(squares, axis=1)[:, : n - 1]
            own[open_ended] = _own_class_shares(squares, nearest, places, codes, which)
        shares[start : start + step] = own
    return float(shares.mean())  # (4)


@njit(strict=True)
def _squared_distances(units: Array, start: int, stop: int) -> Array:
    """Return the squared distances from rows start, ..., stop - 1 to all rows; infinite from a row to itself."""
    k, n = units.shape
    squares = np.zeros((stop - start, n))
    for i in range(start, stop):
        row = squares[i - start]
        for s in range(k):
            column = units[s]
            for j in range(n):
                row[j] += (column[i] - column[j]) * (column[i] - column[j])
        row[i] = np.inf
    return squares


@njit(strict=True)
def _nearest(squares: Array, few: int) -> Array:
    """Return the `few` smallest values of each row, sorted by insertion."""
    nearest = np.full((len(squares), few), np.inf)
    for r in range(len(squares)):
        best = nearest[r]
        for square in squares[r]:
            if square < best[few - 1]:
                at = few - 1
                while at > 0 and best[at - 1] > square:
                    best[at] = best[at - 1]
                    at -= 1
                best[at] = square
    return nearest


@njit(strict=True)
def _own_class_shares(squares: Array, nearest: Array, places: Array, codes: Array, rule: int) -> Array:
    """Return the share of the own class among each row's neighbours; NaN if these extend beyond the nearest."""
    n, few = squares.shape[1], nearest.shape[1]
    shares = np.empty(len(squares))
    for r in range(len(squares)):
        farthest = 0.0
        for j in range(n):
            farthest = max(farthest, squares[r, j] if j != places[r] else 0.0)
        before = np.sqrt(nearest[r, 0])
        limit, kept = 1.5 * (np.sqrt(farthest) - before) / (n - 2), 1
        while kept < few:
            distance = np.sqrt(nearest[r, kept])
            if not _is_neighbour(rule, distance, before, kept + 1, limit):
                break
            kept, before = kept + 1, distance
        if kept == few < n - 1:
            shares[r] = np.nan
            continue
        last = nearest[r, kept - 1]
        first_tied, last_tied = last * _LESS, last * _MORE
        below, same_below, tied, same_tied = 0, 0, 0, 0
        for j in range(n):
            same = codes[j] == codes[places[r]]
            nearer, near = squares[r, j] < first_tied, squares[r, j] <= last_tied
            below += nearer
            same_below += same and nearer
            tied += near and not nearer
            same_tied += same and near and not nearer
        shares[r] = (same_below + (kept - below) * same_tied / tied) / kept
    return shares
