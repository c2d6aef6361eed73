"""SparseFSA, slow and obvious: centred dense rows, one weight vector per model, all weights touched in every step.

Barbu, She, Ding, Gramajo, IEEE TPAMI 39(2), 2017, with the same options as `tamis.learners.sparse_fsa`.
"""

from __future__ import annotations

import math

import numpy as np

H = 0.1


def loss(u, name):
    if name == "logistic":
        return math.log1p(math.exp(-u))
    if name == "lorenz":
        return math.log(1 + (u - 1) ** 2) if u < 1 else 0.0
    if u < 1 - H:
        return 1 - u
    return 0.0 if u > 1 + H else (1 + H - u) ** 2 / (4 * H)


def slope(u, name):
    if name == "logistic":
        return -1 / (1 + math.exp(u))
    if name == "lorenz":
        return 2 * (u - 1) / (1 + (u - 1) ** 2) if u < 1 else 0.0
    if u < 1 - H:
        return -1.0
    return 0.0 if u > 1 + H else -(1 + H - u) / (2 * H)


def left_after(epoch, n_epochs, mu, k, n_features):
    return k + round((n_features - k) * max(0.0, (n_epochs - 2 * epoch) / (2 * epoch * mu + n_epochs)))


def sparse_fsa(
    X, y, k, *, name="logistic", n_epochs=30, mu=10.0, eta=1.0, ridge=1e-5, size=100, scaled=True, balanced=True,
    weight=None, seed=0,
):  # fmt: skip
    """Return coef (n_models, n_features), intercept (n_models,) and the features left."""
    n, n_features = X.shape
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    weight = weight / weight.mean()
    mean = sum(w * x for w, x in zip(weight, X, strict=True)) / n
    scale = np.abs(X - mean).max(axis=0) if scaled else np.ones(n_features)
    scale[scale <= 1e-10 * np.abs(X).max(axis=0)] = 1.0
    Z = (X - mean) / scale

    covariance = (Z.T * weight) @ Z / n
    direction = np.cos(np.arange(1.0, n_features + 1.0))
    for _ in range(10):
        direction = covariance @ (direction / np.linalg.norm(direction))
    top, spread = np.linalg.norm(direction), np.diag(covariance)

    labels = sorted(set(y))
    models = labels if len(labels) > 2 else labels[1:]
    signs = [[1.0 if label == model else -1.0 for label in y] for model in models]
    pull = np.tile(weight, (len(models), 1))
    for c, sign in enumerate(signs):
        for side in (1.0, -1.0):
            rows = [i for i in range(n) if sign[i] == side]
            if balanced:
                pull[c, rows] *= n / (2 * weight[rows].sum())

    beta, bias = np.zeros((len(models), n_features)), np.zeros(len(models))
    left = list(range(n_features))
    random = np.random.RandomState(seed)
    batch_size, size = size, min(size, n)
    curvature = {"logistic": 0.25, "lorenz": 2.0, "huber": 1.0}[name]
    for epoch in range(1, n_epochs + 1):
        width = sum(spread[j] for j in left)
        step = eta / curvature / (1 + min(top, width) + width / batch_size)
        order = random.permutation(n)
        for first in range(0, n, size):
            batch = order[first : first + size]
            gradient, pulled = np.zeros_like(beta), np.zeros_like(bias)
            for c in range(len(models)):
                for i in batch:
                    u = signs[c][i] * (beta[c] @ Z[i] + bias[c])
                    g = pull[c, i] * signs[c][i] * slope(u, name) / size
                    gradient[c] += g * Z[i]
                    pulled[c] += g
            beta = beta / (1 + 2 * step * ridge) - step * gradient
            bias = bias - step * pulled
            beta[:, [j for j in range(n_features) if j not in left]] = 0.0
        sizes = np.sqrt((beta**2).sum(axis=0))
        n_left = left_after(epoch, n_epochs, mu, k, n_features)
        left = sorted(sorted(left, key=lambda j: (-sizes[j], j))[:n_left])
        beta[:, [j for j in range(n_features) if j not in left]] = 0.0
    coef = beta / scale
    return coef, bias - coef @ mean, left
