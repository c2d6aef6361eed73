"""ETANA on a grid of beliefs as its recursion reads: dictionaries and loops."""

from __future__ import annotations

import itertools

import numpy as np


def grid(resolution, n_classes):
    """Every belief n / resolution."""
    return [n for n in itertools.product(range(resolution + 1), repeat=n_classes) if sum(n) == resolution]


def rounded(belief, resolution):
    """The grid point of the same sum: floors, then the largest remainders up, the first class first."""
    scaled = np.asarray(belief) * resolution
    whole = np.floor(scaled + 1e-9).astype(int)
    for c in sorted(range(len(whole)), key=lambda c: -(scaled[c] - whole[c]))[: resolution - whole.sum()]:
        whole[c] += 1
    return tuple(whole.tolist())


def train(likelihood, Q, prices, resolution):
    """A_k at each grid point, a list of dictionaries; likelihood[k][v] is P(v | c) over the classes."""
    points = grid(resolution, len(Q))
    stop = {n: min(np.array(n) / resolution @ Q) for n in points}
    after, found = stop, []
    for k in reversed(range(len(prices))):
        go_on = {}
        for n in points:
            belief, cost = np.array(n) / resolution, prices[k]
            for delta in likelihood[k]:
                p = delta @ belief
                cost += p * after[rounded(delta * belief / p, resolution)]
            go_on[n] = cost
        after = {n: min(stop[n], go_on[n]) for n in points}
        found.append(go_on)
    return stop, found[::-1]
