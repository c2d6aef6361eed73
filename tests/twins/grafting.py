"""Grafting, slow and obvious: the lasso by proximal gradient steps on all weights at once, until nothing moves."""

from __future__ import annotations

import numpy as np


def standard(x, share):
    mean = share @ x
    return (x - mean) / np.sqrt(share @ (x - mean) ** 2)


def slope_of(columns, y, share, b, w, logistic):
    """Return the slopes of the mean loss in the intercept and in each weight."""
    eta = b + columns.T @ w
    mean = 1 / (1 + np.exp(-eta)) if logistic else eta
    pull = share * (y - mean)
    return -pull.sum(), -columns @ pull, pull


def lasso(columns, y, share, cost, logistic):
    """Minimise the mean loss plus cost times the sum of absolute weights, from 0 (FISTA with restarts)."""
    w, b = np.zeros(len(columns)), 0.0
    look_w, look_b, momentum = w, b, 1.0
    bound = (0.25 if logistic else 1.0) * (1 + np.linalg.norm((columns * share) @ columns.T, 2))
    for _ in range(200_000):
        of_b, of_w, _ = slope_of(columns, y, share, look_b, look_w, logistic)
        aim = look_w - of_w / bound
        new = np.sign(aim) * np.maximum(np.abs(aim) - cost / bound, 0)
        new_b = look_b - of_b / bound
        if max(np.abs(new - look_w).max(initial=0), abs(new_b - look_b)) < 1e-13:
            return new_b, new
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        if (look_w - new) @ (new - w) + (look_b - new_b) * (new_b - b) > 0:  # it goes the wrong way: restart
            following, momentum = 1.0, 1.0
        share_of_last = (momentum - 1) / following
        look_w, look_b = new + share_of_last * (new - w), new_b + share_of_last * (new_b - b)
        w, b, momentum = new, new_b, following
    raise AssertionError("the lasso has not settled")


def graft(X, y, cost, logistic, weight=None):
    """Return the places of the features selected, in the order in which they entered, and their weights."""
    share = np.ones(len(y)) if weight is None else weight
    share = share / share.sum()
    target = y.astype(float) if logistic else standard(y, share)
    places, columns, w = [], np.empty((0, len(y))), np.empty(0)
    b, _ = lasso(columns, target, share, cost, logistic)
    for j in range(X.shape[1]):
        z = standard(X[:, j], share)
        _, _, pull = slope_of(columns, target, share, b, w, logistic)
        if abs(z @ pull) <= cost * (1 + 1e-5):
            continue
        columns, places = np.vstack([columns, z]), [*places, j]
        b, w = lasso(columns, target, share, cost, logistic)
        stays = np.abs(w) > 1e-9
        columns, w, places = (
            columns[stays],
            w[stays],
            [p for p, kept in zip(places, stays, strict=True) if kept],
        )
    return places, w
