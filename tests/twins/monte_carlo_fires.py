"""FIRES over a network or a soft tree, slow and obvious: one sample, one row, one unit at a time.

The likelihood of a row is written down as the paper has it; its gradients are differences of the log of the mean
likelihood, so nothing of the fast version's way back through the layers is repeated here.
"""

from __future__ import annotations

import math

import numpy as np


def softmax(logits):
    largest = max(logits)
    total = sum(math.exp(value - largest) for value in logits)
    return [math.exp(value - largest) / total for value in logits]


def network(x, matrices):
    """Return the probability of each class."""
    return softmax(network_outputs(x, matrices))


def network_outputs(x, matrices):
    """Return the last sums: softplus after each layer but the last."""
    values = list(x)
    for at, matrix in enumerate(matrices):
        sums = [sum(value * matrix[i][k] for i, value in enumerate(values)) for k in range(len(matrix[0]))]
        values = sums if at == len(matrices) - 1 else [math.log1p(math.exp(value)) for value in sums]
    return values


def paths_of(x, nodes):
    """Return the share of a row that comes to each node and leaf, a heap from 0, and what goes left there."""
    n_nodes = len(nodes[0])
    came, left = [0.0] * (2 * n_nodes + 1), []
    came[0] = 1.0
    for node in range(n_nodes):
        share = 1 / (1 + math.exp(-sum(value * nodes[j][node] for j, value in enumerate(x))))
        left.append(share)
        came[2 * node + 1] += came[node] * share
        came[2 * node + 2] += came[node] * (1 - share)
    return came, left


def tree(x, matrices):
    """Return the probability of each class."""
    return softmax(tree_outputs(x, matrices))


def tree_outputs(x, matrices):
    """Return the mean of the leaves, weighted by the shares that reach them."""
    nodes, leaves = matrices
    came, _ = paths_of(x, nodes)
    reached = came[len(nodes[0]) :]
    return [sum(share * leaves[i][c] for i, share in enumerate(reached)) for c in range(len(leaves[0]))]


def normal(model, noise):
    """Return the likelihood of a number given the model's one output, for `objective`: a normal one, up to a factor."""

    def likelihood(x, matrices):
        (output,) = model(x, matrices)
        return NormalDensity(output, noise)

    return likelihood


class NormalDensity:
    """Indexed by a target, as the probabilities of classes are."""

    def __init__(self, mean, variance):
        self.mean, self.variance = mean, variance

    def __getitem__(self, y):
        return math.exp(-((y - self.mean) ** 2) / (2 * self.variance))


def node_penalty(X, weight, nodes, strength):
    """Return Frosst and Hinton's penalty of a tree: its nodes should send half of the rows to either side."""
    routes = [paths_of(x, nodes) for x in X]
    total = 0.0
    for node in range(len(nodes[0])):
        came = sum(w * route[0][node] for w, route in zip(weight, routes, strict=True))
        left = (
            sum(w * route[0][node] * route[1][node] for w, route in zip(weight, routes, strict=True)) / came
        )
        depth = int(math.log2(node + 1))
        total -= strength * 2**-depth * 0.5 * (math.log(left) + math.log(1 - left))
    return total


def objective(model, mu, sigma, noise, X, y, weight, strength=0.0):
    """Return the mean over rows of log 1/L sum_l f, less the mean penalty; `noise` has a list of arrays per sample."""
    samples = [[m + s * r for m, s, r in zip(mu, sigma, one, strict=True)] for one in noise]
    total = 0.0
    for x, label, w in zip(X, y, weight, strict=True):
        total += w * math.log(sum(model(x, one)[label] for one in samples) / len(samples))
    if strength:
        total -= sum(node_penalty(X, weight, one[0], strength) for one in samples) / len(samples)
    return total


def gradients(model, mu, sigma, noise, X, y, weight, strength=0.0, h=1e-5):
    """Return central differences of the objective in each mean and each deviation."""
    found = []
    for which in (mu, sigma):
        for part in which:
            slopes = np.zeros_like(part)
            for at in np.ndindex(part.shape):
                kept = part[at]
                part[at] = kept + h
                up = objective(model, mu, sigma, noise, X, y, weight, strength)
                part[at] = kept - h
                down = objective(model, mu, sigma, noise, X, y, weight, strength)
                part[at] = kept
                slopes[at] = (up - down) / (2 * h)
            found.append(slopes)
    return found[: len(mu)], found[len(mu) :]


def scores(mu, sigma, penalty, paper_shift=None):
    """Return (5), or (6) with the shifts c and d."""
    if paper_shift is None:
        return (mu[0] ** 2).mean(axis=1) - penalty * (sigma[0] ** 2).mean(axis=1)
    c, d = paper_shift
    return (mu[0].mean(axis=1) + c) ** 2 - penalty * (sigma[0].mean(axis=1) + d) ** 2
