"""F-ETANA's stochastic approximation as its recursion reads, one walk after the other."""

from __future__ import annotations

import numpy as np


def walk(theta, likelihood, row, belief, prices, Q_i):
    """Cost of a row of class i under theta, and how many stages were tested."""
    belief, cost = np.array(belief), 0.0
    for k in range(len(theta)):
        if theta[k] @ belief < 0:
            return cost + Q_i @ belief, k + 1
        cost += prices[k]
        if row[k] >= 0:
            belief = belief * likelihood[k][row[k]]
            belief /= belief.sum()
    return cost + Q_i @ belief, len(theta)


def train(theta, rows, signs, likelihood, belief, prices, Q_i, perturbation, learning_rate):
    """(1) for the given rows and signs, one (K, L) array of signs per row."""
    theta = np.array(theta)
    for t, (row, d) in enumerate(zip(rows, signs, strict=True)):
        step, reach = learning_rate / (t + 1.5) ** 0.602, perturbation / (t + 1) ** 0.2
        up, n_up = walk(theta + reach * d, likelihood, row, belief, prices, Q_i)
        down, n_down = walk(theta - reach * d, likelihood, row, belief, prices, Q_i)
        reached = np.arange(len(theta)) < max(n_up, n_down)
        theta -= step * (up - down) / (2 * reach) * d * reached[:, None]
    return theta
