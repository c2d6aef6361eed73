"""CancelOut, slow and obvious: a row at a time forward, differences of the objective for the gradient, Adam by hand."""

from __future__ import annotations

import math

import numpy as np

from tests.twins.monte_carlo_fires import network


def objective(gates, matrices, X, y, weight, gate_penalty, variance_reward, weight_penalty):
    n = len(gates)
    total = 0.0
    for x, label, w in zip(X, y, weight, strict=True):
        gated = [value / (1 + math.exp(-gate)) for value, gate in zip(x, gates, strict=True)]
        total += w * math.log(network(gated, matrices)[label])
    mean = sum(gates) / n
    total += variance_reward * sum(((gate - mean) / n) ** 2 for gate in gates) / n
    total -= weight_penalty * sum(abs(gate) / n for gate in gates)
    total -= gate_penalty * sum(1 / (1 + math.exp(-gate)) for gate in gates)
    return total


def gradient(gates, matrices, *rest, h=1e-5):
    found = []
    for part in (gates, *matrices):
        slopes = np.zeros_like(part)
        for at in np.ndindex(part.shape):
            kept = part[at]
            part[at] = kept + h
            up = objective(gates, matrices, *rest)
            part[at] = kept - h
            down = objective(gates, matrices, *rest)
            part[at] = kept
            slopes[at] = (up - down) / (2 * h)
        found.append(slopes)
    return found


def adam(theta, slopes, first, second, t, rate):
    """Return the parameters and both averages after step t, from 1."""
    first = 0.9 * first + 0.1 * slopes
    second = 0.999 * second + 0.001 * slopes**2
    move = rate * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
    return theta + move, first, second
