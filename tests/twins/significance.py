"""Tests of significance by their definitions: all signs counted out, formulas as printed, loops over pairs."""

from __future__ import annotations

import itertools
import math

import numpy as np


def ranks(row):
    """Rank 1 for the largest; equal ones share the mean of their ranks."""
    return [sum(other > one for other in row) + (sum(other == one for other in row) + 1) / 2 for one in row]


def friedman_without_ties(mean_ranks, n_datasets):
    """Demsar (2006), Friedman's chi square and Iman and Davenport's F."""
    n, m = n_datasets, len(mean_ranks)
    chi2 = 12 * n / (m * (m + 1)) * (sum(rank**2 for rank in mean_ranks) - m * (m + 1) ** 2 / 4)
    return chi2, (n - 1) * chi2 / (n * (m - 1) - chi2)


def wilcoxon(gaps):
    """Rank sums of both signs, and the share of all assignments of signs with one as small, for both sides."""
    gaps = [gap for gap in gaps if gap]
    weights = [len(gaps) + 1 - rank for rank in ranks([abs(gap) for gap in gaps])]
    plus = sum(weight for weight, gap in zip(weights, gaps, strict=True) if gap > 0)
    minus = sum(weights) - plus
    sums = [
        sum(weight for weight, sign in zip(weights, signs, strict=True) if sign)
        for signs in itertools.product((0, 1), repeat=len(gaps))
    ]
    as_small = sum(value <= min(plus, minus) for value in sums) / len(sums)
    return plus, minus, min(1.0, 2 * as_small)


def holm(p_values):
    """Step down: the smallest of n p-values times n, the next times n - 1, never below an earlier one, at most 1."""
    adjusted, highest = [math.nan] * len(p_values), 0.0
    for step, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - step) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def groups(mean_ranks, gap):
    """All largest sets of at least two methods within less than the critical difference, best first."""
    close = [
        {name for name, rank in mean_ranks.items() if low <= rank < low + gap}
        for low in sorted(mean_ranks.values())
    ]
    largest = [one for one in close if len(one) > 1 and not any(one < other for other in close)]
    return [one for i, one in enumerate(largest) if one not in largest[:i]]


def posterior(gaps, rope, prior, n_samples, seed):
    """Share of Dirichlet draws in which each of the three regions holds most of the mass of the pairs' means."""
    rng = np.random.default_rng(seed)
    gaps = [0.0, *gaps]
    wins = np.zeros(3)
    for weights in rng.dirichlet([prior] + [1.0] * (len(gaps) - 1), n_samples):
        mass = np.zeros(3)
        for one, w in zip(gaps, weights, strict=True):
            for other, v in zip(gaps, weights, strict=True):
                mass[0 if one + other > 2 * rope else 2 if one + other < -2 * rope else 1] += w * v
        wins[mass.argmax()] += 1
    return wins / n_samples


def friedman_p_value(table):
    """Of all orders of the ranks within every data set, the share whose mean ranks are as far apart or farther."""

    def spread(rows):
        return sum(sum(row[j] for row in rows) ** 2 for j in range(len(rows[0])))

    rows = [ranks(row) for row in table]
    orders = list(itertools.product(*(itertools.permutations(row) for row in rows)))
    return sum(spread(order) >= spread(rows) - 1e-9 for order in orders) / len(orders)
