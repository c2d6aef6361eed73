"""Streaming AIC, BIC and RIC by full regressions."""

import math

import numpy as np


def rss(columns, y):
    design = np.column_stack([np.ones(len(y)), *columns])
    beta, *_ = np.linalg.lstsq(design, y, rcond=None)
    return float(((y - design @ beta) ** 2).sum())


def charge(criterion, n, p):
    return {"aic": 2.0, "bic": math.log(n), "ric": 2.0 * math.log(p)}[criterion]


def penalised(X, y, criterion, n_candidates=None):
    selected, gains = [], []
    for i in range(X.shape[1]):
        kept = [X[:, j] for j in selected]
        gain = len(y) * math.log(rss(kept, y) / rss([*kept, X[:, i]], y))
        gains.append(gain)
        if gain > charge(criterion, len(y), n_candidates or i + 2):
            selected.append(i)
    return selected, gains
